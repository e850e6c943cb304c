"""Fair-price constants: fair.toml, or your own, as one frozen record."""

import math
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.bounds import check_number
from oddsengine.catalog import data_files

FLAGS = ("thin", "no_sharp", "early", "long", "total", "unmeasured", "suspect", "live", "one_reference", "one_sided")
"""Flags of a fair price, in bit order."""

OTHER = "other"
"""The entry of `close.sigma` for leagues that have none of their own."""


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
    momentum_beside_sharp: float
    momentum_line_keep: float
    momentum_sample_s: float
    fresh_weight: float
    fresh_fade_s: float
    fresh_clip: float
    fresh_beside_sharp: float
    close_scale: float
    close_degrees: float
    close_least_h: float
    stands_base: float
    stands_stood: float
    stands_stood_s: float
    stands_hours: float
    stands_least_h: float
    stands_ev: float
    stands_ev_most: float
    stands_momentum: float
    stands_momentum_clip: float
    sharp_share: float
    sharp_exchange: float
    sharp_other: float
    lines_logit: float
    props_suspect_ev: float
    props_suspect_others: float
    margin_like: float
    margin_weight: float
    margin_sum_error: float
    margin_sum_high: float
    margin_least: float
    margin_vote_error: float
    flags_thin_others: float
    flags_early_h: float
    flags_long_odds: float
    flags_live_below: float
    confidence_scale: float
    confidence_unknown_se: float


class Alone(NamedTuple):
    """A book that is enough as the only reference for some markets of a full game."""

    book: str
    families: tuple[str, ...]  # in every sport
    props: tuple[str, ...]  # sports
    measured: str  # what the EV shown was worth


class FairTable(NamedTuple):
    """Constants of the estimator."""

    name: str
    date: str
    constants: Constants
    sharps: Mapping[str, float]  # weight by book
    own: Mapping[str, float]  # factor of `own` by book
    lines: Mapping[str, Mapping[str, float]]  # league: sigma of spread and total, points
    measured: Mapping[str, tuple[str, ...]]  # sport: families of a full game
    alone: tuple[Alone, ...]  # books that are enough as the only reference
    hours: tuple[float, ...]  # before the start, of the columns of `sigma`
    sigma: Mapping[str, tuple[float, ...]]  # league, or "other": root mean square error in logits, at one hour
    scale: tuple[float, ...]  # by flag
    factor: tuple[float, ...]  # by flag: factor of the confidence
    note: Mapping[str, Any] = MappingProxyType({})  # of a fitted table: games, errors

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which does not take read-only mappings."""
        return _frozen, tuple(map(_writable, self))


def _writable(value: Any) -> Any:
    return {key: _writable(of) for key, of in value.items()} if isinstance(value, Mapping) else value


def _frozen(*values: Any) -> FairTable:
    return FairTable._make(MappingProxyType(value) if isinstance(value, dict) else value for value in values)


@cache
def fair_table() -> FairTable:
    """Return the packaged table.

    Examples
    --------
    >>> table = fair_table()
    >>> table.name, table.constants.own_weight, table.sharps["pinnacle"]
    ('us-2026-11', 1.5, 1.0)
    """
    return read_fair_table(data_files.toml("fair.toml"))


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
    return read_fair_table(_merged(data_files.toml("fair.toml"), changes, ""))


def fair_content(table: FairTable) -> dict[str, Any]:
    """Return the content of a table in the form of fair.toml, the inverse of `read_fair_table`."""
    out: dict[str, Any] = {"name": table.name, "date": table.date, "note": dict(table.note)}
    for field, value in table.constants._asdict().items():
        section, _, name = field.partition("_")
        out.setdefault(section, {})[name] = value
    out["close"] |= {"hours": list(table.hours), "sigma": {league: list(of) for league, of in table.sigma.items()}}
    out["alone"] = [
        {**right._asdict(), "families": list(right.families), "props": list(right.props)} for right in table.alone
    ]
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
        signed = field in _SIGNED
        numbers[field] = _number(content.get(section, {}).get(name), f"{section}.{name}", signed=signed)
    if numbers["close_degrees"] not in (0.0, 4.0):
        raise ValueError(f"close.degrees must be 4 (Student's t) or 0 (normal), got {numbers['close_degrees']:g}")
    flagged = {"flags.scale": content["flags"]["scale"], "confidence.factor": content["confidence"]["factor"]}
    for name, of in flagged.items():
        if unknown := sorted(set(of) ^ set(FLAGS)):
            raise ValueError(
                f"{name} must have one number for each of {', '.join(FLAGS)}; missing or unknown: {', '.join(unknown)}"
            )
    scale, factor = (tuple(_number(of[f], f"{name}.{f}") for f in FLAGS) for name, of in flagged.items())
    hours = _increasing(content["close"]["hours"], "close.hours")
    sigma = content["close"]["sigma"]
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
        alone=_alone(content["alone"]),
        hours=hours,
        sigma=MappingProxyType({league: _row(of, hours, f"close.sigma.{league}") for league, of in sigma.items()}),
        scale=scale,
        factor=factor,
        note=MappingProxyType(dict(content.get("note", {}))),
    )


_MOST_ALONE = 64  # a bit for each
_SIGNED = frozenset({"stands_base", "stands_stood", "stands_hours", "stands_ev", "stands_momentum"})


def _alone(content: Any) -> tuple[Alone, ...]:
    rights = []
    for at, entry in enumerate(content if isinstance(content, list) else [content]):
        name = f"alone[{at}]"
        if not isinstance(entry, Mapping) or entry.keys() != set(Alone._fields):
            raise ValueError(f"{name} must be a table with the keys {', '.join(Alone._fields)}, got {entry!r:.200}")
        for key in ("families", "props"):
            if not isinstance(entry[key], list) or not all(isinstance(each, str) for each in entry[key]):
                raise ValueError(f"{name}.{key} must be a list of names, got {entry[key]!r:.80}")
        for key in ("book", "measured"):
            if not isinstance(entry[key], str):
                raise ValueError(f"{name}.{key} must be text, got {entry[key]!r:.80}")
        rights.append(Alone(entry["book"], tuple(entry["families"]), tuple(entry["props"]), entry["measured"]))
    if len(rights) > _MOST_ALONE:
        raise ValueError(f"alone can have {_MOST_ALONE} entries, got {len(rights)}")
    return tuple(rights)


def _increasing(values: Any, name: str) -> tuple[float, ...]:
    numbers = tuple(_number(value, name) for value in values) if isinstance(values, list | tuple) else ()
    if not numbers or numbers[0] <= 0.0 or any(a >= b for a, b in pairwise(numbers)):
        raise ValueError(f"{name} must be a list of increasing numbers above 0, got {values!r:.80}")
    return numbers


def _row(values: Any, hours: tuple[float, ...], name: str) -> tuple[float, ...]:
    if not isinstance(values, list | tuple) or len(values) != len(hours):
        raise ValueError(f"{name} must have one number for each of close.hours, {len(hours)}, got {values!r:.80}")
    return tuple(_number(value, name) for value in values)


def _number(value: Any, name: str, *, signed: bool = False) -> float:
    check_number(name, value, -math.inf if signed else 0.0)
    return float(value)


def _numbers(content: Mapping[str, Any], name: str) -> Mapping[str, float]:
    return MappingProxyType({key: _number(value, f"{name}.{key}") for key, value in content.items()})


# Tables that accept new entries
_OPEN = ("sharp.books", "books.own", "lines", "measured", "close.sigma", "sources", "note")


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
