"""The report of `fills`: of what was shown, how much could be had, and what that was worth."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.cells import weighted_mean
from oddsengine.bounds import excerpt
from oddsengine.columns import Floats
from oddsengine.detection.kinds import KINDS
from oddsengine.execution.attempts import OPEN, OUTCOMES, Rules
from oddsengine.tables.casts import TIME

_OF_SCAN = (
    "kind", "id", "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment",
    "player_name", "is_live", "event_start_time", "sportsbooks", "selections", "lines", "born_at",
)  # fmt: skip
FILLS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(_OF_SCAN[:10], pl.String),
    "is_live": pl.Boolean,
    "event_start_time": TIME,
    "sportsbooks": pl.List(pl.String),
    "selections": pl.List(pl.String),
    "lines": pl.List(pl.Float64),
    "born_at": TIME,
    "shown": pl.Float64,  # percent: EV, profit, hold or expected value, when first shown
    "stake": pl.Float64,
    "bound": pl.String,  # `least` or `most`
    "there": pl.Boolean,  # still there when the first order arrived; null: unknown, or nothing was ordered
    "outcome": pl.String,  # one of `OUTCOMES`
    "reason": pl.String,  # why the first leg that fell short did
    "known_size": pl.Boolean,  # the sizes of all legs are known
    "units": pl.List(pl.Float64),  # of payout, by leg
    "costs": pl.List(pl.Float64),
    "hedge_units": pl.List(pl.Float64),
    "hedge_cost": pl.Float64,
    "staked": pl.Float64,  # on everything
    "held": pl.Float64,  # profit without hedges, what is open at its value at the close; null: that is unknown
    "profit": pl.Float64,  # the same with hedges
}
"""Columns of `Fills.attempts`."""
ORDERS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "kind": pl.String,
    "id": pl.String,
    "event_id": pl.String,
    "market_type": pl.String,
    "market_segment": pl.String,
    "player_name": pl.String,
    "selection": pl.String,  # of the leg
    "line": pl.Float64,
    "stake": pl.Float64,  # of the opportunity
    "bound": pl.String,
    "leg": pl.Int64,
    "is_hedge": pl.Boolean,
    "sportsbook": pl.String,
    "odds_id": pl.String,
    "sent_at": TIME,
    "arrives_at": TIME,
    "rests_until": TIME,
    "limit_odds": pl.Float64,  # before fees
    "wanted": pl.Float64,  # units of payout
    "units": pl.Float64,  # filled
    "cost": pl.Float64,
    "reason": pl.String,
}
"""Columns of `Fills.orders`."""
Cell = Mapping[str, Any]
_COVERS = ("arbitrage", "low_hold")  # one leg wins whatever happens

_ALL = 99.5  # percent
_KEYS = ("kind", "stake", "sport", "league", "market_type", "is_live", "books")


def result_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Attempts in `FILLS_SCHEMA`, from what they got and the columns of the scan."""
    lists = ("units", "hedge_units", "closing_probability", "costs")
    most_legs = int(rows["units"].list.len().max() or 0)  # type: ignore[arg-type]
    units, hedges, close, paid = (_by_leg(rows[name], most_legs) for name in lists)
    costs, hedge_cost = np.nansum(paid, axis=1), rows["hedge_cost"].to_numpy()
    covers, both = rows["kind"].is_in(_COVERS).to_numpy(), units + hedges
    lot = rows["lot"].to_numpy()
    columns = rows.with_columns(
        shown="first",
        staked=pl.Series(costs + hedge_cost),
        held=pl.Series(_value(units, close, covers, lot) - costs, nan_to_null=True),
        profit=pl.Series(_value(both, close, covers, lot) - costs - hedge_cost, nan_to_null=True),
    )
    return columns.select(pl.col(name).cast(dtype) for name, dtype in FILLS_SCHEMA.items())


def _by_leg(lists: pl.Series, most_legs: int) -> Floats:
    """Lists of numbers as rows of an array, nan beyond."""
    sizes = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    out = np.full((lists.len(), most_legs), nan)
    flat = lists.explode(empty_as_null=False, keep_nulls=False)
    out[np.arange(out.shape[1]) < sizes[:, None]] = flat.to_numpy()
    return out


def _value(units: Floats, close: Floats, covers: Any, lot: Floats) -> Floats:
    """What units of payout are worth: of legs of which one wins, what all have is certain; nan if it is unknown.

    What some have more than others, within a lot, is worth nothing if that is unknown.
    """
    every = np.where(np.isnan(units), np.inf, units).min(axis=1, initial=np.inf)
    certain = np.where(covers & np.isfinite(every), every, 0.0)
    more = np.where(np.isnan(units), 0.0, units - certain[:, None])
    least = np.maximum(OPEN * (certain + more.max(axis=1, initial=0.0)), np.where(covers, lot * (1.0 + 1e-6), 0.0))
    worth = np.where(more > least[:, None], more * close, more * np.nan_to_num(close))
    return np.asarray(certain + worth.sum(axis=1))


TABLE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "bound": pl.String,
    "n": pl.Int64,  # opportunities shown
    "events": pl.Int64,
    "there": pl.Float64,  # percent of those of which it is known; null if it is of none
    **dict.fromkeys(OUTCOMES, pl.Float64),  # percent
    "shown": pl.Float64,  # percent, on average
    "staked": pl.Float64,
    "valued": pl.Float64,  # percent of what was staked whose worth is known
    "worth": pl.Float64,  # percent of that, with hedges
    "worth_se": pl.Float64,  # clustered by event
    "held": pl.Float64,  # the same without hedges, what is open held to the close
    "held_se": pl.Float64,
    "held_valued": pl.Float64,  # percent of what was staked of which both are known
    "unknown_size": pl.Float64,  # percent with a leg whose size is not known
}
"""Columns of `Fills.table`, after those of `by`."""


@dataclass(frozen=True)
class Fills:
    """How much could be had of the opportunities of a history.

    Attributes
    ----------
    attempts
        `FILLS_SCHEMA`: a row for each opportunity, stake and bound.
    orders
        `ORDERS_SCHEMA`, if they were kept.
    rules
        How opportunities were attempted.
    """

    attempts: pl.DataFrame
    orders: pl.DataFrame | None
    rules: Rules

    def table(self, by: Sequence[str] = ("kind", "stake")) -> pl.DataFrame:
        """Shares, shown and worth, by some of kind, stake, sport, league, market_type, is_live and books.

        `books` are those of the legs. There are two rows of each, one by bound; in `TABLE_SCHEMA` after the columns
        of `by`.
        """
        by = checked_by(by)
        rows = self.attempts.with_columns(books=pl.col("sportsbooks").list.sort().list.join(", "))
        schema = {name: rows.schema[name] for name in by} | TABLE_SCHEMA
        parts = rows.partition_by([*by, "bound"], as_dict=True, maintain_order=True)
        cells = [dict(zip([*by, "bound"], key, strict=True)) | _cell(part) for key, part in parts.items()]
        order = [pl.col("kind").cast(pl.Enum(list(KINDS))) if name == "kind" else pl.col(name) for name in by]
        return pl.DataFrame(cells, schema).sort(*order, "bound")

    def lines(self) -> list[str]:
        """What could be had, in sentences: one for each kind and stake."""
        return [_sentence(*pair) for pairs in self._pairs().values() for pair in pairs]

    def __str__(self) -> str:
        """What could be had: a table for each kind."""
        parts = [_text(pairs) for pairs in self._pairs().values()]
        return "\n\n".join(parts) if parts else "nothing was shown"

    def _pairs(self) -> dict[str, list[tuple[Cell, Cell]]]:
        """The figures by kind: of each stake at least and at most."""
        out: dict[str, list[tuple[Cell, Cell]]] = {}
        rows = self.table().sort(pl.col("kind").cast(pl.Enum(list(KINDS))), "stake", "bound").to_dicts()
        for least, most in zip(rows[::2], rows[1::2], strict=True):
            out.setdefault(least["kind"], []).append((least, most))
        return out


def checked_by(by: Sequence[str]) -> list[str]:
    """Validate by what a table is grouped."""
    if not isinstance(by, Iterable):
        raise ValueError(f"by must be a list of {', '.join(_KEYS)}, got {excerpt(by)}")
    names = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if wrong := [name for name in names if name not in _KEYS]:
        raise ValueError(f"by must be one of {', '.join(_KEYS)}, got {excerpt(wrong[0])}")
    return names


def _cell(part: pl.DataFrame) -> dict[str, Any]:
    """The figures of some attempts of one bound."""
    n = part.height
    counts = dict(part["outcome"].value_counts().iter_rows())
    out: dict[str, Any] = {name: 100.0 * counts.get(name, 0) / n for name in OUTCOMES}
    there = part["there"].drop_nulls()
    staked = float(part["staked"].sum())
    out |= {
        "n": n, "events": part["event_id"].n_unique(), "shown": part["shown"].mean(), "staked": staked,
        "there": 100.0 * float(there.mean()) if there.len() else None,  # type: ignore[arg-type]
        "unknown_size": 100.0 * float((~part["known_size"]).mean()),  # type: ignore[arg-type]
    }  # fmt: skip
    bought = part.filter(pl.col("staked") > 0.0)
    for name, figure, cost in (("worth", "profit", "staked"), ("held", "held", "own")):
        known = bought.with_columns(own=pl.col("costs").list.sum()).drop_nulls(["profit", figure])
        if known.is_empty():
            continue
        money, game = known[cost].to_numpy(), np.unique(known["event_id"].to_numpy(), return_inverse=True)[1]
        mean, error = weighted_mean(known[figure].to_numpy() / money, money, game)
        of = "valued" if name == "worth" else "held_valued"
        out |= {name: 100.0 * mean, f"{name}_se": None if isnan(error) else 100.0 * error}
        out[of] = 100.0 * float(known["staked"].sum()) / staked
    return out


def _sentence(least: Cell, most: Cell) -> str:
    taken = f"{_range(least, most, 'whole')} % could be taken in full at a ${least['stake']:g} stake"
    rest = [
        f"{_range(least, most, name)} % {words}"
        for name, words in (("part", "in part"), ("hedged", "with a hedge"), ("open", "left open"))
        if least[name] or most[name]
    ]
    more = f" ({', '.join(rest)})" if rest else ""
    return f"{_title(least)}; {taken}{more}; worth {_worth(least, most)}"


def _title(cell: Cell) -> str:
    """How many were shown, and at what."""
    kind = KINDS[cell["kind"]]
    return f"{kind.title}: {cell['n']:,} shown, average {kind.measure} {cell['shown']:.2f} %"


_COLUMNS = {"there": "still there", "whole": "in whole", "part": "in part", "hedged": "hedged", "open": "left open"}


def _text(pairs: Sequence[tuple[Cell, Cell]]) -> str:
    title = f"{_title(pairs[0][0])}. In percent:"
    lines = [("stake", *_COLUMNS.values(), "worth")]
    for least, most in pairs:
        shares = (_range(least, most, name) for name in _COLUMNS)
        lines.append((f"${least['stake']:g}", *shares, _worth(least, most)))
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join([*(text.rjust(width) for text, width in zip(line[:-1], wide, strict=False)), line[-1]])
        for line in lines
    ]
    unknown = max(cell["unknown_size"] for pair in pairs for cell in pair)
    note = [f"{unknown:.0f} % have a leg of unknown size, which counts as unlimited"] if unknown else []
    return "\n".join([title, *rows, *note])


def _worth(least: Cell, most: Cell) -> str:
    """What was had is worth, in percent of what was staked; - where nothing was bought."""
    known = [_figure(cell) for cell in (least, most)]
    return " to ".join(dict.fromkeys(known))


def _figure(cell: Cell) -> str:
    if not cell["staked"]:
        return "-"
    if cell["worth"] is None:
        return "unknown"
    text = f"{cell['worth']:.2f}" + ("" if cell["worth_se"] is None else f" ±{cell['worth_se']:.2f}") + " %"
    return text if cell["valued"] > _ALL else f"{text} (of {cell['valued']:.0f} % of the stakes)"


def _range(least: Cell, most: Cell, name: str) -> str:
    ends = sorted(cell[name] for cell in (least, most) if cell[name] is not None)
    return " to ".join(dict.fromkeys(f"{end:.0f}" for end in ends)) or "unknown"
