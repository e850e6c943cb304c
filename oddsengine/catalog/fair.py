"""Fair-price constants: fair.toml, or your own, as one frozen record."""

import math
from collections.abc import Mapping
from functools import cache
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.catalog import files

FLAGS = ("thin", "no_sharp", "early", "long", "total", "unmeasured", "suspect", "live")
"""Flags of a fair price, in bit order."""


class Constants(NamedTuple):
    """Constants passed to kernels: `own_weight` is `weight` of the table `[own]` in fair.toml."""

    vote_age_s: float
    vote_sum_low: float
    vote_sum_high: float
    vote_others: float
    vote_neighbour_points: float
    vote_neighbour_weight: float
    vote_clip: float
    vote_live_behind_s: float
    own_weight: float
    own_base: float
    own_clip: float
    own_sharp: float
    own_sharp_alone: float
    momentum_half_life_s: float
    momentum_far: float
    momentum_near: float
    momentum_far_h: float
    momentum_near_h: float
    momentum_clip: float
    momentum_move_clip: float
    momentum_line_keep: float
    momentum_sample_s: float
    fresh_weight: float
    fresh_fade_s: float
    fresh_clip: float
    close_sigma: float
    close_least_h: float
    sharp_share: float
    sharp_exchange: float
    sharp_other: float
    lines_logit: float
    flags_thin_others: float
    flags_early_h: float
    flags_long_odds: float
    flags_live_below: float
    confidence_scale: float
    confidence_unknown_se: float


class FairTable(NamedTuple):
    """Constants of the estimator."""

    name: str
    date: str
    constants: Constants
    sharps: Mapping[str, float]  # weight by book
    own: Mapping[str, float]  # factor of `own` by book
    lines: Mapping[str, Mapping[str, float]]  # league: sigma of spread and total, points
    measured: Mapping[str, tuple[str, ...]]  # sport: families of a full game
    scale: tuple[float, ...]  # by flag
    factor: tuple[float, ...]  # by flag: factor of the confidence
    note: Mapping[str, Any] = MappingProxyType({})  # of a fitted table: games, errors


@cache
def fair_table() -> FairTable:
    """Return the packaged table.

    Examples
    --------
    >>> table = fair_table()
    >>> table.name, table.constants.own_weight, table.sharps["pinnacle"]
    ('us-2026-08', 1.5, 1.0)
    """
    return read_fair_table(files.toml("fair.toml"))


def chosen_fair_table(table: FairTable | None) -> FairTable:
    """Validate the `fair` parameter; None is the packaged table."""
    if not isinstance(table, FairTable | None):
        raise TypeError(f"fair must be a FairTable (see catalog.amended_fair_table), got {table!r:.80}")
    return table or fair_table()


def amended_fair_table(changes: Mapping[str, Any]) -> FairTable:
    """Return the packaged table with some entries replaced, given in the form of fair.toml.

    Raises `ValueError` if a table or an entry does not exist, or a value is not a finite number.

    Examples
    --------
    >>> amended_fair_table({"own": {"weight": 1.68}, "books": {"own": {"fanduel": 1.0}}}).constants.own_weight
    1.68
    """
    return read_fair_table(_merged(files.toml("fair.toml"), changes, ""))


def fair_content(table: FairTable) -> dict[str, Any]:
    """Return the content of a table in the form of fair.toml, the inverse of `read_fair_table`."""
    out: dict[str, Any] = {"name": table.name, "date": table.date, "note": dict(table.note)}
    for field, value in table.constants._asdict().items():
        section, _, name = field.partition("_")
        out.setdefault(section, {})[name] = value
    out["sharp"]["books"], out["books"] = dict(table.sharps), {"own": dict(table.own)}
    out["lines"] |= {league: dict(of) for league, of in table.lines.items()}
    out["measured"] = {sport: list(families) for sport, families in table.measured.items()}
    out["flags"]["scale"] = dict(zip(FLAGS, table.scale, strict=True))
    out["confidence"]["factor"] = dict(zip(FLAGS, table.factor, strict=True))
    return out


def fair_changes(table: FairTable) -> dict[str, Any]:
    """Return the entries that differ from the packaged table, the inverse of `amended_fair_table`.

    Examples
    --------
    >>> fair_changes(amended_fair_table({"own": {"weight": 1.68, "base": 4.0}}))
    {'own': {'weight': 1.68}}
    """
    return _different(fair_content(fair_table()), fair_content(table))


def _different(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in new.items():
        before = old.get(name)
        if value != before:
            nested = isinstance(value, Mapping) and isinstance(before, Mapping)
            out[name] = _different(before, value) if nested else value  # type: ignore[arg-type]
    return out


def read_fair_table(content: Mapping[str, Any]) -> FairTable:
    """Parse and check a table in the form of fair.toml."""
    numbers = {}
    for field in Constants._fields:
        section, _, name = field.partition("_")
        numbers[field] = _number(content.get(section, {}).get(name), f"{section}.{name}")
    by_flag = {"flags.scale": content["flags"]["scale"], "confidence.factor": content["confidence"]["factor"]}
    for name, of in by_flag.items():
        if unknown := sorted(set(of) ^ set(FLAGS)):
            raise ValueError(
                f"{name} must have one number for each of {', '.join(FLAGS)}; missing or unknown: {', '.join(unknown)}"
            )
    scale, factor = (tuple(_number(of[f], f"{name}.{f}") for f in FLAGS) for name, of in by_flag.items())
    return FairTable(
        name=str(content["name"]),
        date=str(content["date"]),
        constants=Constants(**numbers),
        sharps=_numbers(content["sharp"]["books"], "sharp.books"),
        own=_numbers(content["books"]["own"], "books.own"),
        lines=MappingProxyType(
            {
                league: _numbers(of, f"lines.{league}")
                for league, of in content["lines"].items()
                if isinstance(of, Mapping)
            }
        ),
        measured=MappingProxyType(
            {sport: tuple(families) for sport, families in content["measured"].items() if isinstance(families, list)}
        ),
        scale=scale,
        factor=factor,
        note=MappingProxyType(dict(content.get("note", {}))),
    )


def _number(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(float(value)) or float(value) < 0.0:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def _numbers(content: Mapping[str, Any], name: str) -> Mapping[str, float]:
    return MappingProxyType({key: _number(value, f"{name}.{key}") for key, value in content.items()})


_OPEN = ("sharp.books", "books.own", "lines", "measured", "sources", "note")  # tables that accept new entries


def _merged(content: Mapping[str, Any], changes: Mapping[str, Any], path: str) -> dict[str, Any]:
    out = dict(content)
    for name, value in changes.items():
        at = f"{path}.{name}" if path else name
        free = path.startswith(_OPEN) or at in _OPEN
        if name not in content and not free:
            raise ValueError(f"the fair table has no key {at}; allowed here: {', '.join(content)}")
        before = content.get(name)
        if before is not None and isinstance(before, Mapping) != isinstance(value, Mapping):
            kind = "a table" if isinstance(before, Mapping) else "a value"
            raise ValueError(f"{at} of the fair table must be {kind}, got {value!r:.80}")
        out[name] = _merged(before or {}, value, at) if isinstance(value, Mapping) else value
    return out
