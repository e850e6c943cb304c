"""Every opportunity of a history: birth, death, best figure, closing line and CLV (`scan_history`).

**Closing line.** The close of an event is its last snapshot before the start (`closes`). `closing_odds` are the last
odds of the same price: same book, same line. `closing_probability` is the fair probability at the other books' close
(`grading`). With stakes of equal payout, legs at odds `d` after commission and closing probabilities `q` are worth

    CLV = sum q / sum 1 / d - 1

of the total stake; for a single bet, `d q - 1`.

**Memory.** Only open opportunities, those about to close, one piece of quotes and the result are held.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.calibrations import Fair, fair_by_time
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.grading import closing_probabilities
from oddsengine.backtesting.parts import planned, play, sendable
from oddsengine.backtesting.replay import check_books, engine_of, opened, steps
from oddsengine.board.facts import Facts, moments_of
from oddsengine.board.open import NEW, Hits
from oddsengine.catalog import FairTable
from oddsengine.catalog.reasons import Guards
from oddsengine.columns import NO_TIME, Bools, Bytes, Floats, Longs, Words, grown
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.detection.question import Sharp
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.maths.devig import Method
from oddsengine.pricing.close_table import named
from oddsengine.pricing.one_sided import ONE_SIDED
from oddsengine.progress import Tick
from oddsengine.tables.casts import TIME
from oddsengine.tape import Tape

SCAN_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "kind": pl.String,
    "id": pl.String,
    "event_id": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "market_type": pl.String,
    "market_segment": pl.String,
    "player_name": pl.String,
    "is_live": pl.Boolean,
    "event_start_time": TIME,
    "sportsbooks": pl.List(pl.String),
    "selections": pl.List(pl.String),
    "lines": pl.List(pl.Float64),
    "odds": pl.List(pl.Float64),  # at birth; net odds too, after commission
    "net_odds": pl.List(pl.Float64),
    "born_at": TIME,
    "died_at": TIME,  # null: open at the end of the history
    "first": pl.Float64,  # percent: EV, profit, hold or expected value
    "best": pl.Float64,
    "best_at": TIME,
    "last": pl.Float64,
    "last_before_start": pl.Float64,
    "closing_odds": pl.List(pl.Float64),  # of the same prices; null if no longer available
    "closing_probability": pl.List(pl.Float64),  # fair, at the other books' close
    "clv": pl.Float64,  # percent, of the first odds after commission
    "fair": pl.String,  # name of the constants in force at birth
    "flags": pl.List(pl.String),  # of a +EV bet at birth; empty for the other kinds
}
"""Columns of `scan_history`."""

_EVENT = (
    "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "player_name", "is_live",
    "event_start_time",
)  # fmt: skip
_LISTED = {"sportsbooks": "sportsbook", "selections": "selection", "lines": "line", "odds": "odds_decimal"}
_GRADED = {"row_id": pl.String, "closing_odds": pl.Float64, "closing_probability": pl.Float64, "who": pl.String}
_FIGURES = ("first", "best", "last", "last_before_start")
_FIRST, _BEST, _LAST, _PRESTART = range(4)
_TIMES = ("born_at", "died_at", "best_at", "start")
_BORN, _DIED, _BEST_AT, _START = range(4)
_NEVER = 1 << 62
_FORGET_S = 7 * 86_400  # seconds after the start for which a game may be moved and close again


class _NewOpportunities(NamedTuple):
    """Opportunities that opened in one step."""

    now: int
    fair: str
    kind: Bytes
    id: Words
    at: Longs  # opportunity of each leg
    flags: Longs
    legs: Facts
    net: Floats  # per leg
    own: Bools  # per leg: whether it is the price by which the market is named


class Scan:
    """All opportunities of a scan in order of birth, as columns."""

    def __init__(self, engine: Engine, view: View, fair_at: Callable[[int], FairTable]) -> None:
        self._engine, self._view, self._closes, self._fair_at = engine, view, Closes(engine), fair_at
        self._size = 0
        self._place: dict[int, int] = {}  # by id, of open ones
        self._figures = np.empty((0, len(_FIGURES)))
        self._times = np.empty((0, len(_TIMES)), np.int64)
        self._opened: list[_NewOpportunities] = []  # not yet in the frames below
        self._heads: list[pl.DataFrame] = []
        self._legs: list[pl.DataFrame] = []
        self._waiting: list[pl.DataFrame] = []  # prices waiting for a close
        self._graded: list[pl.DataFrame] = []

    def follow(self, now: int, update: Update) -> None:
        change = update.of(self._view)
        if change.expired.size:
            expired = [self._place.pop(ident) for ident in change.expired.tolist()]
            self._times[expired, _DIED] = now
        if change.hits.size:
            new = change.status == NEW
            value, old = change.hits.values(), ~new
            at = np.array([self._place[ident] for ident in change.hits.id[old].tolist()], np.int64)
            self._move(now, at, value[old], _falls()[change.hits.kind[old]])
            if new.any():
                self._add(now, update, change.hits.take(new), value[new])
        self._closes.follow(now)

    def _move(self, now: int, at: Longs, value: Floats, low: Any) -> None:
        figures = self._figures
        figures[at, _LAST] = value
        early = now < self._times[at, _START]
        figures[at[early], _PRESTART] = value[early]
        better = np.where(low, value < figures[at, _BEST], value > figures[at, _BEST])
        figures[at[better], _BEST] = value[better]
        self._times[at[better], _BEST_AT] = now

    def _add(self, now: int, update: Update, hits: Hits, value: Floats) -> None:
        begin, self._size = self._size, self._size + hits.size
        self._figures, self._times = grown(self._figures, self._size), grown(self._times, self._size)
        self._place.update(zip(hits.id.tolist(), range(begin, self._size), strict=True))
        has_leg = hits.legs >= 0
        of, leg = np.nonzero(has_leg)
        legs = update.facts.take(update.facts.places(hits.legs[has_leg]))
        self._opened.append(
            _NewOpportunities(
                now, self._engine.fair.name, hits.kind, hits.id, of + begin, _flags(hits), legs,
                hits.net_odds()[has_leg], leg == hits.own[of],
            )
        )  # fmt: skip
        start = np.empty(hits.size, np.int64)
        start[of] = np.where(legs.start == NO_TIME, _NEVER, legs.start)
        self._figures[begin : self._size] = value[:, None]
        self._figures[begin : self._size, _PRESTART] = np.where(now < start, value, np.nan)
        times = self._times[begin : self._size]
        times[:, _BORN], times[:, _DIED], times[:, _BEST_AT], times[:, _START] = now, NO_TIME, now, start

    def settle(self, *, everything: bool = False) -> None:
        """Convert recorded opportunities to frames, and grade those that have closed."""
        if self._opened:
            heads, legs = _frames(self._opened)
            self._opened = []
            self._heads.append(heads)
            self._legs.append(legs.select("at", "row_id", "net_odds", "one_sided", *_LISTED.values()))
            early = ~pl.col("is_live") & (pl.col("event_start_time") > pl.col("born_at"))
            self._waiting.append(legs.filter(early).drop("at", "born_at", "net_odds", "own"))
        closes = self._closes.take_closed(everything=everything)
        if not self._waiting:
            return
        waiting = pl.concat(self._waiting).with_columns(pl.col("one_sided").any().over("row_id"))
        waiting = waiting.unique("row_id", keep="last", maintain_order=True)
        if closes is not None:
            closed = waiting["event_id"].is_in(closes["event_id"].unique().implode())
            due = waiting.filter(closed)  # which wait on: a game that is moved closes again
            if due.height:
                self._graded.append(self._grade(due, closes))
        now = self._engine.now
        if now is not None:
            start = pl.col("event_start_time").dt.epoch("s")
            waiting = waiting.filter((start >= now.timestamp() - _FORGET_S).fill_null(value=True))
        self._waiting = [waiting]

    def _grade(self, due: pl.DataFrame, closes: pl.DataFrame) -> pl.DataFrame:
        last = closes.select("row_id", closing_odds="odds_decimal").unique("row_id")
        at = dict(closes.select("event_id", "snapshot_at").unique("event_id").iter_rows())
        tables = {event: self._fair_at(moment) for event, moment in at.items()}  # in force at each close
        parts = []
        for table in {id(each): each for each in tables.values()}.values():
            of = due.filter(pl.col("event_id").is_in([event for event, other in tables.items() if other is table]))
            fair = closing_probabilities(of.drop("one_sided"), closes, table, of["one_sided"])
            parts.append(of.select("row_id").hstack(fair))
        return pl.concat(parts).join(last, on="row_id", how="left").select(*_GRADED)

    @property
    def size(self) -> int:
        """How many opportunities have been found."""
        return self._size

    def frame(self) -> pl.DataFrame:
        """The opportunities, in `SCAN_SCHEMA`, in the order in which they were found."""
        if not self._heads:
            return pl.DataFrame(schema=SCAN_SCHEMA)
        graded = pl.concat(self._graded) if self._graded else pl.DataFrame(schema=_GRADED)
        legs = pl.concat(self._legs).join(
            graded.unique("row_id", keep="last"), on="row_id", how="left", maintain_order="left"
        )
        early = self._times[: self._size, _BORN] < self._times[: self._size, _START]
        # A close of one-sided prices is only for bets that were found by them.
        theirs = (pl.col("who") != "one_sided").fill_null(value=True) | pl.col("one_sided")
        legs = legs.with_columns(pl.when(theirs).then("closing_probability"))
        closing = pl.col("closing_probability")
        worth = pl.when(closing.is_not_null().all()).then(closing.sum() / (1.0 / pl.col("net_odds")).sum() - 1.0)
        listed = legs.group_by("at", maintain_order=True).agg(
            pl.col("net_odds", "closing_odds", "closing_probability"), clv=100.0 * worth, **_LISTED
        )
        figures, times = self._figures[: self._size], self._times[: self._size]
        none = pl.lit(None)
        return (
            pl.concat(self._heads)
            .hstack(listed.drop("at"))
            .with_columns(pl.Series(name, figures[:, at], nan_to_null=True) for at, name in enumerate(_FIGURES))
            .with_columns(moments_of(times[:, at]).alias(name) for at, name in enumerate(_TIMES[:_START]))
            .with_columns(
                pl.when(pl.Series(early) & ~pl.col("is_live")).then(name).otherwise(none)
                for name in ("closing_odds", "closing_probability", "clv")
            )
            .select(*SCAN_SCHEMA)
        )


def _falls() -> Any:
    """Per kind: whether less of its main figure is better."""
    return np.array([not kind.rises for kind in KINDS.values()])


def _flags(hits: Hits) -> Longs:
    """Return the flags of +EV prices as bits; 0 for the other kinds."""
    return np.where(hits.kind == KINDS.code("ev"), hits.figures[:, -1], 0.0).astype(np.int64) >> 1


def _frames(opened: list[_NewOpportunities]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one row per opportunity, and one per leg as in an odds table, with `row_id` and `born_at`."""
    moment = np.repeat([one.now for one in opened], [one.at.size for one in opened])
    legs = Facts.frame_of(one.legs for one in opened).with_columns(
        at=pl.Series(np.concatenate([one.at for one in opened])),
        row_id=pl.Series(hexadecimal(np.concatenate([one.legs.id for one in opened])), dtype=pl.String),
        net_odds=pl.Series(np.concatenate([one.net for one in opened])),
        own=pl.Series(np.concatenate([one.own for one in opened])),
        born_at=moments_of(moment),
        one_sided=np.concatenate([(one.flags[one.at - one.at[0]] & int(ONE_SIDED)) != 0 for one in opened]),
    )
    first = legs.filter("own")
    sizes = [one.kind.size for one in opened]
    heads = first.select(*_EVENT).with_columns(
        kind=pl.Series(list(KINDS)).gather(np.concatenate([one.kind for one in opened])),
        id=pl.Series(hexadecimal(np.concatenate([one.id for one in opened]))),
        fair=pl.Series([one.fair for one in opened]).gather(np.repeat(np.arange(len(opened)), sizes)),
        flags=pl.Series([named(bits) for one in opened for bits in one.flags.tolist()], dtype=SCAN_SCHEMA["flags"]),
    )
    return heads, legs


def scan_history(
    quotes: Any,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    kinds: Iterable[str] = KINDS,
    min_ev: float = 0.0,
    min_profit: float = 0.5,
    max_hold: float = 2.0,
    min_size: float = 0.0,
    min_middle_ev: float | None = 0.0,
    include: Iterable[str] = (),
    commission: Any = None,
    guards: Guards = None,
    fair: Fair = None,
    every: float = 1.0,
    processes: int | None = 1,
    client: Any = None,
    progress: bool | Callable[[int], None] = False,
    storage_options: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Find every opportunity of a history with the live engine: opening, expiry, best figure and closing line.

    Parameters
    ----------
    quotes
        A history: a frame (spells, openings, or an odds table with `recorded_at`, else `last_seen_at` or `timestamp`),
        a lazy query, a file, folder, pattern or URL of Parquet, a Delta table, seasons of football-data.co.uk, or the
        folder of a tape; or a list of them. Every row must have a time.
    books, sharp, method, kinds, min_ev, min_profit, max_hold, min_size, min_middle_ev, include, commission
        As for `Engine.view`: EV is measured against the fair price at the close unless `sharp` or another
        `method` is given; `include` adds +EV bets that are ``suspect`` or ``one_sided``, with these flags.
    guards, processes, client
        As for `Engine`, and for `audit`. Tapes use the recorded guards and accept no others.
    fair
        Fair-price constants: one table (None: that of the tape, or the packaged one), tables by the date from which
        they are in force, or a function called once per day with its midnight (UTC).
    every
        Seconds combined into one step. More are faster, but miss opportunities that live shorter; not for tapes.
    progress
        True: a bar on standard error, in terminals and notebooks. A function: called with the number of snapshots.
    storage_options
        Credentials and settings of the object store, as in `polars.scan_parquet`.

    Returns
    -------
    polars.DataFrame
        `SCAN_SCHEMA`: one row for each period an opportunity was open, in order of birth.

    Raises
    ------
    ValueError
        If the history or a parameter is invalid, a book is unknown, or no constants are in force yet.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> quotes = pl.DataFrame(
    ...     {
    ...         "event_id": "e1", "market_type": "total_points", "line": 220.5,
    ...         "sportsbook": ["fanduel", "fanduel", "draftkings", "draftkings", "fanduel"],
    ...         "selection": ["Over", "Under", "Over", "Under", "Over"],
    ...         "odds_decimal": [2.1, 1.75, 1.75, 2.05, 1.9],
    ...         "last_seen_at": [datetime(2026, 1, 1, 12, m, tzinfo=UTC) for m in (0, 0, 0, 0, 1)],
    ...     }
    ... )
    >>> scan_history(quotes, kinds=["arbitrage"]).select("kind", pl.col("best").round(2), "died_at").rows()
    [('arbitrage', 3.73, datetime.datetime(2026, 1, 1, 12, 1, tzinfo=zoneinfo.ZoneInfo(key='UTC')))]
    """
    histories = opened(quotes, every, storage_options)
    view = {
        "books": books, "sharp": sharp, "method": method, "commission": commission,
        "kinds": kinds if isinstance(kinds, str) else [*kinds], "min_ev": min_ev, "min_profit": min_profit,
        "max_hold": max_hold, "min_size": min_size, "min_middle_ev": min_middle_ev, "include": include,
    }  # fmt: skip
    wanted = ScanWanted({name: sendable(value) for name, value in view.items()}, sendable(guards), fair)
    frames = play(_play, wanted, histories, planned(histories, wanted, processes, client), progress=progress)
    return pl.concat(frames).sort("born_at", "kind", "id")


class ScanWanted(NamedTuple):
    """What a scan plays a history with; see `scan_history`."""

    view: Mapping[str, Any]
    guards: Guards
    fair: Fair


def _play(wanted: ScanWanted, history: History | Tape, tick: Tick) -> pl.DataFrame:
    return play_scan(wanted, history, tick).frame()


Follow = Callable[[Engine, View, Update, int], None]
"""A function that is called with each step, and how many opportunities had been found before it."""


def play_scan(wanted: ScanWanted, history: History | Tape, tick: Tick, follow: Follow | None = None) -> Scan:
    """Play a history and find its opportunities."""
    fair_at = None if wanted.fair is None else fair_by_time(wanted.fair)
    engine = engine_of(history, wanted.guards)
    view = engine.view(**wanted.view, keep=True)
    scan = Scan(engine, view, fair_at or (lambda _: engine.fair))
    for step in steps(engine, history, fair_at):
        before = scan.size
        scan.follow(step.now, step.update)
        if follow is not None:
            follow(engine, view, step.update, before)
        if step.settles:
            scan.settle()
        tick(step.now, step.prices)
    check_books(engine, view)
    scan.settle(everything=True)
    return scan
