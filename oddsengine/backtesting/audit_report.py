"""Tables of an audit: EV shown and value at the close, with standard errors clustered by game."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.against import (
    AGAINST,
    RELIABILITY,
    Observed,
    PriceObservations,
    compare,
    judged,
    read_rivals,
    side_by_side,
)
from oddsengine.backtesting.cells import CELLS, cell, with_error
from oddsengine.backtesting.closes import CLOSE_S, newest
from oddsengine.backtesting.delays import Delay, read_delays
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.grading import THRESHOLDS, grade_shown, located_prices, with_closes
from oddsengine.backtesting.parts import Plan, planned, play, sendable
from oddsengine.backtesting.replay import check_books, engine_of, known_results, opened, recorded_fair
from oddsengine.backtesting.shown import collect_shown
from oddsengine.catalog.fair_constants import FLAGS
from oddsengine.catalog.reasons import Guards
from oddsengine.columns import NO_TIME
from oddsengine.detection.question import included
from oddsengine.maths.devig import Method
from oddsengine.progress import Tick
from oddsengine.tables.timestamps import micros
from oddsengine.tape import Tape

MOST_ODDS, MOST_HOURS = 4.0, 72.0
_BEGUN_US = 60_000_000  # the last snapshot may be this long before a start, as the close of opening and closing odds is

LATER: dict[str, type[pl.DataType]] = {
    "threshold": pl.Float64,
    "delay": pl.String,
    "n": pl.Int64,  # prices whose event was looked at again
    "there": pl.Float64,  # percent
    **{
        f"{of}_{figure}": pl.Int64 if figure == "graded" else pl.Float64
        for of in ("there", "gone", "still")
        for figure in ("graded", "ev", "worth", "worth_se")
    },
}
"""Columns of `Audit.later`: `there` stood at the same odds or better, `gone` did not, `still` was also still shown."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The EV shown over a history, and its value at the close.

    Attributes
    ----------
    shown
        `SHOWN_SCHEMA`: one row each time a price first reached a threshold.
    table
        The calibration table: cells by threshold, `by` and `value`.
    observations
        Number of snapshots.
    fair
        Name of the table of constants.
    waiting
        Number of games with a price shown that had not begun at the end of the history; they are left out.
    later
        `LATER`: what became of the prices after each delay, by threshold.
    against
        `AGAINST`: our fair prices and other models, on the prices that all of them judge.
    reliability
        `RELIABILITY`: EV by each model and its value at the close, by bands of EV.
    """

    shown: pl.DataFrame
    table: pl.DataFrame
    observations: int
    fair: str
    waiting: int = 0
    later: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LATER))
    against: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=AGAINST))
    reliability: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RELIABILITY))

    def __str__(self) -> str:
        """Format the table as plain text."""
        what = "EV in percent of the stake, +- one standard error by game"
        head = f"{self.observations:,} observations, fair table {self.fair}; {what}"
        lines = [head]
        if self.waiting:
            lines.append(f"left out: {self.waiting:,} games that had not begun at the end of the history")
        if self.shown.height and not self.shown["worth"].count():
            lines.append(
                f"no price has a close: a snapshot in the {CLOSE_S // 60} minutes before the start with four other "
                "books, or a sharp one, on the line"
            )
        if not self.shown.height and not self.waiting:
            lines.append(
                "no price was above its fair price before a start: prices need event_start_time, and two other books "
                "beside them, or Pinnacle where it was measured alone"
            )
        for row in self.table.iter_rows(named=True):
            name = "all" if row["by"] == "all" else f"  {row['by']} {row['value']}"
            if row["by"] == "all":
                lines.append(f"EV >= {row['threshold']:g}: {row['n']} first showings, {row['graded']} graded")
            if row["graded"] < 2:
                lines.append(f"{name:<28} n {row['graded']:>5}  {_NONE[row['graded']]}{_returned(row)}")
                continue
            held = f"  90 % range holds {row['inside_90']:.0f} %, 50 % range {row['inside_50']:.0f} %"
            lines.append(
                f"{name:<28} n {row['graded']:>5}  games {row['events']:>4}  shown {row['shown']:5.2f}  "
                f"worth {with_error(row, 'worth'):>13}  bias {with_error(row, 'bias', sign='+')}  "
                f"ratio {with_error(row, 'ratio')}  slope {with_error(row, 'slope')}"
                + ("" if row["inside_90"] is None else held)
                + _returned(row)
            )
        for row in self.later.iter_rows(named=True):
            there = "-" if row["there"] is None else f"{row['there']:.0f} %"
            lines.append(
                f"EV >= {row['threshold']:g}, {row['delay']} later: n {row['n']:>5}, {there} still there, "
                f"worth {_value(row, 'there')}; gone, worth {_value(row, 'gone')}; "
                f"still shown, worth {_value(row, 'still')}"
            )
        return "\n".join([*lines, *side_by_side(self.against, self.reliability)])


_NONE = ("no price has a close", "one price, which has no mean")


def _returned(row: dict[str, Any]) -> str:
    if row["returned"] is None:
        return ""
    return f"  returned {with_error(row, 'returned', sign='+')} % (n {row['settled']})"


def _value(row: dict[str, Any], of: str) -> str:
    if row[f"{of}_worth"] is None:
        return f"- (n {row[f'{of}_graded']})"
    return f"{with_error(row, f'{of}_worth')} of {row[f'{of}_ev']:.2f} (n {row[f'{of}_graded']})"


def audit(
    history: Any,
    *,
    method: Method | None = None,
    sharp: Any = None,
    books: Iterable[str] | None = None,
    guards: Guards = None,
    fair: catalog.FairTable | None = None,
    include: Iterable[str] = (),
    hours: float = MOST_HOURS,
    delays: Any = (),
    against: Any = None,
    processes: int | None = 1,
    client: Any = None,
    progress: bool | Callable[[int], None] = False,
) -> Audit:
    """Replay a history through the live engine and grade prices, when first shown, at the other books' close.

    Parameters
    ----------
    history
        A frame or path of spells, openings or quotes, or the folder of a tape; see `oddsengine.backtesting.formats`.
        Or a list, such as the tapes of a node: each is played by an engine of its own, and a price counts once.
    method, sharp, books
        The fair price to audit, as for `find_ev`; by default the fair price at the close, or "power" with `sharp`.
    guards, fair
        As for `Engine`. Tapes use the recorded guards and accept no others.
    include
        As for `find_ev`: ``one_sided`` judges prices in markets that too few books quote whole too, flagged
        `one_sided`. Suspect prices are always judged, flagged.
    hours
        Prices shown earlier before the start are listed, but not part of the table.
    delays
        A delay or several, such as ``"10m"``: how many prices still stood so much later, what these were worth, what
        the others, and what those that were still shown.
    against
        Probabilities of another model, a frame, the path of a table or a fair price that a package registers, or
        several by name, to compare with the fair price at the close; see `oddsengine.backtesting.against`.
    processes, client
        How many processes play the history side by side (None: one per core for half a million rows or more), or a
        client of Dask, whose workers do; see docs/scale.md. The result is the same. One tape is played by one.
    progress
        True: a bar on standard error, in terminals and notebooks. A function: called with the number of snapshots.

    Returns
    -------
    Audit
        Graded prices, and the calibration table of prices below 4.

    Raises
    ------
    ValueError
        If the history or a parameter is invalid, or a book occurs neither in the history nor in the catalog.

    Examples
    --------
    >>> import oddsengine as oe
    >>> world = oe.World(7, events=4, live=0.0, tick=600.0)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    >>> found = audit(pl.DataFrame(quotes, infer_schema_length=None))
    >>> found.table.filter(by="all").select("threshold", "n", pl.col("shown", "worth").round(2)).rows()
    [(1.0, 153, 1.79, 1.1), (2.0, 59, 2.9, 1.37)]
    """
    asked, rivals, more = read_delays(delays), read_rivals(against), included(include)
    if rivals and (method or sharp):
        raise ValueError("against compares with the fair price at the close; method and sharp must be None")
    histories = opened(history)
    table = fair or recorded_fair(histories) or catalog.fair_table()
    results, stats = known_results(histories)
    wanted = _Wanted(
        method,
        sendable(sharp),
        sendable(books),
        sendable(guards),
        table,
        more,
        hours,
        asked,
        observed=bool(rivals),
        fairs=tuple(dict.fromkeys(rival.fair for rival in rivals if rival.fair)),
    )
    plan = planned(histories, wanted, processes, client)
    found = _Played.joined(play(_play, wanted, histories, plan, progress=progress), plan, table)
    prices = found.prices
    waits = pl.col("event_start_time").to_physical() > found.now + _BEGUN_US
    for known in (results, stats):
        if known is not None:  # whatever happened is over
            waits &= ~pl.col("event_id").is_in(known["event_id"].to_list())
    waiting = prices.filter(waits)["event_id"].n_unique() if prices.height else 0
    begun = prices.filter(~waits.fill_null(value=False)) if waiting else prices
    shown = grade_shown(begun, results, stats, table)
    out = Audit(
        shown, calibration(shown, hours, table), found.snapshots, table.name, waiting, _later(shown, hours, asked)
    )
    if not rivals:
        return out
    rows = judged(found.observed, found.closes, rivals, table, lambda asked_for: located_prices(asked_for, table))
    models, reliability = compare(rows, rivals)
    return replace(out, against=models, reliability=reliability)


class _Wanted(NamedTuple):
    """What an audit plays a history with; see `audit`."""

    method: Method | None
    sharp: Any
    books: Iterable[str] | None
    guards: Guards
    table: catalog.FairTable
    include: Iterable[str]
    hours: float
    delays: tuple[Delay, ...]
    observed: bool  # every price at every snapshot
    fairs: tuple[str, ...] = ()  # registered fair prices that judge them


class _Played(NamedTuple):
    """What a history or a part of it showed.

    The closes of a tape may be in the next one; of others, the prices have theirs already, and closes are kept only for
    models to compare with.
    """

    prices: pl.DataFrame
    closes: pl.DataFrame | None
    snapshots: int
    now: int  # the last one
    observed: Observed

    @classmethod
    def joined(cls, parts: "Sequence[_Played]", plan: Plan, table: catalog.FairTable) -> "_Played":
        """What all parts showed."""
        closes = [part.closes for part in parts if part.closes is not None]
        closed = newest(pl.concat(closes)) if closes else None  # tapes can share a game
        prices = [part.prices for part in parts if "who" in part.prices.columns]
        if len(prices) < len(parts):
            taped = [part.prices for part in parts if "who" not in part.prices.columns]
            prices.append(with_closes(pl.concat([each for each in taped if each.height] or taped[:1]), closed, table))
        some = pl.concat([each for each in prices if each.height] or prices[:1]).sort("t", "ident", "threshold")
        return cls(
            some.unique(["ident", "threshold"], keep="first", maintain_order=True),
            closed,
            plan.snapshots or parts[0].snapshots,
            max(part.now for part in parts),
            Observed.joined(part.observed for part in parts),
        )


def _play(wanted: _Wanted, history: History | Tape, tick: Tick) -> _Played:
    engine = engine_of(history, wanted.guards, wanted.table)
    view = engine.view(
        wanted.books, wanted.sharp, wanted.method, kinds=("ev",), min_ev=0.0, include={"suspect", *wanted.include},
        keep=True,
    )  # fmt: skip
    every = PriceObservations(engine, wanted.hours, MOST_ODDS, fairs=wanted.fairs) if wanted.observed else None
    prices, closes, count = collect_shown(history, engine, view, THRESHOLDS, wanted.delays, every, tick)
    check_books(engine, view)
    if not isinstance(history, Tape):
        prices, closes = with_closes(prices, closes, wanted.table), closes if wanted.observed else None
    now = NO_TIME if engine.now is None else micros(engine.now)
    return _Played(prices, closes, count, now, Observed.joined([] if every is None else [every.observed()]))


def selected_prices(shown: pl.DataFrame, hours: float = MOST_HOURS) -> pl.DataFrame:
    """Return the prices of `SHOWN_SCHEMA` that the tables of an audit are about."""
    return shown.filter((pl.col("odds") < MOST_ODDS) & (pl.col("hours") < hours))


def _later(shown: pl.DataFrame, hours: float, delays: tuple[Delay, ...]) -> pl.DataFrame:
    """Summarise what became of the prices after each delay."""
    rows = []
    for threshold in (1.0, 2.0):
        part = selected_prices(shown, hours).filter(threshold=threshold)
        for delay in delays:
            there, still = delay.columns
            looked = part.drop_nulls(there)
            row = {"threshold": threshold, "delay": delay.name, "n": looked.height}
            row["there"] = 100.0 * float(looked[there].mean()) if looked.height else None  # type: ignore[arg-type]
            for name, keep in (("there", pl.col(there)), ("gone", ~pl.col(there)), ("still", pl.col(still))):
                figures = cell(looked.filter(keep))
                row |= {f"{name}_graded": figures["graded"], f"{name}_ev": figures["shown"],
                        f"{name}_worth": figures["worth"], f"{name}_worth_se": figures["worth_se"]}  # fmt: skip
            rows.append(row)
    return pl.DataFrame(rows, schema=LATER)


def calibration(shown: pl.DataFrame, hours: float = MOST_HOURS, table: catalog.FairTable | None = None) -> pl.DataFrame:
    """Return the calibration table: total, and by league, market, book, hours left, EV and flag."""
    selected = selected_prices(shown, hours)
    bands = {
        "hours": _band("hours", {"0-3": 3.0, "3-24": 24.0}, "24-72"),
        "EV": _band("ev", {"1-2": 2.0, "2-3": 3.0, "3-5": 5.0}, "5-"),
    }
    rows = []
    for threshold in (1.0, 2.0):
        part = selected.filter(pl.col("threshold") == threshold).with_columns(**bands)
        rows.append({"threshold": threshold, "by": "all", "value": "", **cell(part, table)})
        for by in ("league", "market", "book", "hours", "EV"):
            for value in sorted(part[by].drop_nulls().unique().to_list()):
                of = part.filter(pl.col(by) == value)
                rows.append({"threshold": threshold, "by": by, "value": value, **cell(of, table)})
        for value in FLAGS:
            of = part.filter(pl.col("flags").list.contains(value))
            if of.height:
                rows.append({"threshold": threshold, "by": "flag", "value": value, **cell(of, table)})
    schema: dict[str, Any] = {"threshold": pl.Float64, "by": pl.String, "value": pl.String, **CELLS}
    return pl.DataFrame(rows, schema=schema)


def _band(column: str, below: dict[str, float], rest: str) -> pl.Expr:
    """Return the name of the first upper bound above a value."""
    out = pl.lit(rest)
    for name, bound in reversed(below.items()):
        out = pl.when(pl.col(column) < bound).then(pl.lit(name)).otherwise(out)
    return out
