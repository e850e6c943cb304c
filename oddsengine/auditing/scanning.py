"""A history through the live engine: every opportunity with its birth, death and best figure.

`play` is the run itself: what an audit needs of it are the prices that were shown as +EV, look by look, and each
event's board at its last look before the start.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.auditing.formats import History, Look, read_history
from oddsengine.board.facts import moments_of
from oddsengine.board.rows import ON, SUSPENDED
from oddsengine.board.state import Board
from oddsengine.board.units import Gathered
from oddsengine.casts import TIME
from oddsengine.engine import Engine, micros
from oddsengine.find.board import Sharp
from oddsengine.find.ids import hexadecimal
from oddsengine.frames import to_polars
from oddsengine.groups import Floats, Longs
from oddsengine.open import ARBITRAGE, EV, KINDS, LOW_HOLD, NEW
from oddsengine.reasons import Guards
from oddsengine.tape import Tape, engine_for
from oddsengine.tape import play as steps_of
from oddsengine.update import Update
from oddsengine.view import View

CLOSE_S = 1800  # the close is the last look, at most so long before the start
_LIVE = np.uint8(1)

SCAN_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "kind": pl.String,
    "id": pl.String,
    "event_id": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "market_type": pl.String,
    "is_live": pl.Boolean,
    "event_start_time": TIME,
    "sportsbooks": pl.List(pl.String),
    "selections": pl.List(pl.String),
    "lines": pl.List(pl.Float64),
    "odds": pl.List(pl.Float64),  # at birth
    "born_at": TIME,
    "died_at": TIME,  # null: open at the end of the history
    "first": pl.Float64,  # percent: EV, profit, hold or expected value
    "best": pl.Float64,
    "best_at": TIME,
    "last": pl.Float64,
    "last_before_start": pl.Float64,
}
"""Columns of `scan_history`."""


class Shown(NamedTuple):
    """+EV of one step, a column each."""

    at: int
    id: Any
    status: Any
    edge: Floats
    fair: Floats
    net: Floats
    odds: Floats
    flags: Any
    facts: pl.DataFrame  # of those that are new


class Step(NamedTuple):
    """One step of a history."""

    now: int
    update: Update


def source(history: Any) -> History | Tape:
    """A history by what is given: a frame, the path of a table, or of a tape.

    Raises
    ------
    ValueError
        If it is no table that is known, or a row of it has no time.
    TypeError
        If it is neither a frame nor a path.
    FileNotFoundError
        If there is nothing at the path.
    """
    if isinstance(history, pl.DataFrame | pl.LazyFrame) or hasattr(history, "__arrow_c_stream__"):
        return read_history(to_polars(history))
    if not isinstance(history, str | os.PathLike):
        raise TypeError(f"a history is a frame, a path or the folder of a tape, got {type(history).__name__}")
    path = os.fspath(history)
    if os.path.isdir(path):
        return Tape(path)
    if path.endswith(".parquet"):
        return read_history(pl.read_parquet(path))
    if path.endswith((".ndjson", ".jsonl")):
        return read_history(pl.read_ndjson(path, infer_schema_length=None))
    if path.endswith(".csv"):
        return read_history(pl.read_csv(path, infer_schema_length=None, try_parse_dates=True))
    raise ValueError(f"a history is a folder with a tape, or a .parquet, .ndjson, .jsonl or .csv file, got {path!r}")


def steps(engine: Engine, history: History | Tape) -> Iterator[Step]:
    """Play a history through an engine."""
    if isinstance(history, Tape):
        for _, update in steps_of(history, engine):
            yield Step(update.now, update)
        return
    for look in history.looks:
        yield Step(micros(look.now), step(engine, look))


def step(engine: Engine, look: Look) -> Update:
    """One look as a step of the engine."""
    return engine.step(look.quotes, now=look.now)


class Closes:
    """The board of each event at its last look before the start."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._parts: list[pl.DataFrame] = []

    def follow(self, now: int, update: Update) -> None:
        """Take the board of the events that start within half an hour and that were looked at."""
        with self._engine.still() as board:
            rows = board.rows
            left = rows.start[: rows.top] - now
            some = (rows.state[: rows.top] == ON) & (left > 0) & (left <= CLOSE_S * 1_000_000)
            some &= (rows.flags[: rows.top] & (_LIVE | SUSPENDED)) == 0
            at = np.flatnonzero(some).astype(np.int32)
            if not at.size:
                return
            frame = board.facts(at).frame()
        self._parts.append(frame.with_columns(pl.lit(now).alias("look")))

    def frame(self) -> pl.DataFrame | None:
        """Rows of the last look of each event, if there was one."""
        if not self._parts:
            return None
        whole = pl.concat(self._parts)
        return whole.filter(pl.col("look") == pl.col("look").max().over("event_id"))


def located(board: Board, some: Gathered, at: Longs, table: catalog.FairTable) -> pl.DataFrame:
    """Where some rows of gathered units stand: the key of the ladder, the line, the outcome, and what moves a line."""
    g, names = some.groups, board.names
    of = names.estimator(table)
    ladder, kinds = g.ladder[g.market[at]], names.kinds
    kind, sport = g.kind[ladder], of.lines.sport[g.event[ladder]]
    return pl.DataFrame(
        {
            "ladder": names.hashes(g).ladder[ladder],
            "threshold_": g.threshold[g.market[at]],
            "side": g.side[at],
            "outcomes": g.outcomes[g.market[at]],
            "slope": of.lines.slope[kind, sport],
            "reach": of.lines.reach[kind, sport],
            "market": [kinds[k].family.removesuffix("_3way") for k in kind.tolist()],
            "period": [kinds[k].period for k in kind.tolist()],
            "outcome": [kinds[k].outcomes[s] for k, s in zip(kind.tolist(), g.side[at].tolist(), strict=True)],
            "lined": [kinds[k].has_line for k in kind.tolist()],
        }
    )


def shown(engine: Engine, now: int, update: Update, view: View) -> Shown | None:
    """What one step showed as +EV: new, or with other figures."""
    change = update.of(view)
    pick = change.hits.kind == EV
    if not pick.any():
        return None
    hits = change.hits.take(pick)
    status = change.status[pick]
    new = status == NEW
    places = update.facts.places(hits.legs[:, 0])
    facts = update.facts.take(places[new]).frame()
    if new.any():
        with engine.still() as board:
            some = board.gather(np.unique(hits.unit[new]).astype(np.int64))
            order = np.argsort(some.groups.row)
            at = order[np.searchsorted(some.groups.row[order], hits.legs[new, 0])]
            facts = facts.hstack(located(board, some, at, engine.fair))
    edge, fair, _, net, last = hits.figures.T
    return Shown(now, hits.id, status, edge, fair, net, update.facts.odds[places], last.astype(np.int64) >> 1, facts)


class _Open:
    """An opportunity that is open, while a history is scanned."""

    __slots__ = ("best", "best_at", "born", "facts", "first", "last", "prestart", "start")

    def __init__(self, born: int, value: float, facts: dict[str, Any], start: int) -> None:
        self.born, self.first, self.best, self.best_at, self.last = born, value, value, born, value
        self.facts, self.start, self.prestart = facts, start, value if born < start else None


def _value(kind: int, figures: Floats) -> float:
    """The figure that a kind is known by, percent."""
    x = float(figures[0])
    if kind == ARBITRAGE:
        return 100.0 / x - 100.0
    if kind == LOW_HOLD:
        return max(x - 1.0, 0.0) * 100.0
    return x * 100.0


def scan_history(
    quotes: Any,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = "close",
    kinds: Iterable[str] = KINDS,
    min_ev: float = 0.0,
    min_profit: float = 0.5,
    max_hold: float = 2.0,
    min_size: float = 0.0,
    min_middle_ev: float | None = 0.0,
    commission: Any = None,
    guards: Guards = None,
    fair: catalog.FairTable | None = None,
) -> pl.DataFrame:
    """Every opportunity of a history, by the live engine: when it was born and died, and how good it became.

    Parameters
    ----------
    quotes
        A history: a frame of any kind, the path of a table (spells, openings, or an odds table with `last_seen_at` or
        `timestamp`), or the folder of a tape. Times may come in all forms of `check_odds`; every row must have one.
    books, sharp, method, kinds, min_ev, min_profit, max_hold, min_size, min_middle_ev, commission
        As of `Engine.view`.
    guards, fair
        As of `Engine`.

    Returns
    -------
    polars.DataFrame
        `SCAN_SCHEMA`: one row for each time an opportunity was open, in order of birth.

    Raises
    ------
    ValueError
        If the history is none, or a parameter is out of its range.

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
    history = source(quotes)
    engine = engine_for(history) if isinstance(history, Tape) else Engine(guards=guards, fair=fair)
    view = engine.view(
        books, sharp, method, commission=commission, kinds=kinds, min_ev=min_ev, min_profit=min_profit,
        max_hold=max_hold, min_size=min_size, min_middle_ev=min_middle_ev, keep=True,
    )  # fmt: skip
    live: dict[tuple[int, int], _Open] = {}
    done: list[dict[str, Any]] = []
    for now, update in steps(engine, history):
        change = update.of(view)
        for kind, ident in zip(change.expired_kind.tolist(), change.expired.tolist(), strict=True):
            done.append(_row(kind, ident, live.pop((kind, ident)), now))
        new = np.flatnonzero(change.status == NEW)
        facts = _facts(update, change.hits.legs[new]) if new.size else []
        for at, (kind, ident) in enumerate(zip(change.hits.kind.tolist(), change.hits.id.tolist(), strict=True)):
            value = _value(kind, change.hits.figures[at])
            if change.status[at] == NEW:
                said = facts[int(np.searchsorted(new, at))]
                live[kind, ident] = _Open(now, value, said, said.pop("start"))
                continue
            one = live[kind, ident]
            one.last = value
            if now < one.start:
                one.prestart = value
            better = value < one.best if kind == LOW_HOLD else value > one.best
            if better:
                one.best, one.best_at = value, now
    done += [_row(kind, ident, one, None) for (kind, ident), one in live.items()]
    frame = pl.DataFrame(done, schema=SCAN_SCHEMA) if done else pl.DataFrame(schema=SCAN_SCHEMA)
    return frame.sort("born_at", "kind", "id")


def _facts(update: Update, legs: Any) -> list[dict[str, Any]]:
    """What is said of new opportunities, by their legs."""
    held = legs >= 0
    case = np.nonzero(held)[0]
    frame = update.facts.take(update.facts.places(legs[held])).frame().with_columns(case=pl.Series(case))
    grouped = frame.group_by("case", maintain_order=True).agg(
        pl.col("event_id", "sport", "league", "market_type", "is_live", "event_start_time").first(),
        sportsbooks="sportsbook",
        selections="selection",
        lines="line",
        odds="odds_decimal",
    )
    start = grouped["event_start_time"].to_physical().fill_null(1 << 62)
    return grouped.drop("case").with_columns(start.alias("start")).to_dicts()


def _row(kind: int, ident: int, one: _Open, died: int | None) -> dict[str, Any]:
    def time(at: int | None) -> datetime | None:
        return None if at is None else moments_of(np.array([at], np.int64)).to_list()[0]

    return {
        "kind": KINDS[kind],
        "id": hexadecimal(np.array([ident], np.uint64))[0],
        **one.facts,
        "born_at": time(one.born),
        "died_at": time(died),
        "first": one.first,
        "best": one.best,
        "best_at": time(one.best_at),
        "last": one.last,
        "last_before_start": one.prestart,
    }


class Played(NamedTuple):
    """What an audit takes from a history."""

    shown: pl.DataFrame  # a row each time a price first reached a threshold
    closes: pl.DataFrame | None
    looks: int


def play(
    history: History | Tape, engine: Engine, view: View, thresholds: tuple[float, ...], progress: Any = None
) -> Played:
    """Play a history and keep when each price first reached each threshold, and the boards before the starts."""
    closes = Closes(engine)
    facts: list[pl.DataFrame] = []
    ids: list[Any] = []
    seen: dict[int, int] = {}  # id -> how many thresholds it has reached
    rows: list[tuple[Any, ...]] = []
    count = 0
    for now, update in steps(engine, history):
        count += 1
        part = shown(engine, now, update, view)
        if part is not None:
            new = part.status == NEW
            if part.facts.height:
                facts.append(part.facts)
                ids.append(part.id[new])
            ev = part.edge * 100.0
            for at, ident in enumerate(part.id.tolist()):
                reached = seen.get(ident, 0)
                while reached < len(thresholds) and ev[at] >= thresholds[reached] - 1e-7:
                    figures = (ev[at], part.fair[at], part.net[at], part.odds[at], int(part.flags[at]))
                    rows.append((ident, now, thresholds[reached], *figures))
                    reached += 1
                seen[ident] = reached
        closes.follow(now, update)
        if progress is not None:
            progress(count)
    frame = pl.DataFrame(
        rows,
        schema={
            "ident": pl.UInt64, "t": pl.Int64, "threshold": pl.Float64, "ev": pl.Float64, "fair": pl.Float64,
            "net_odds": pl.Float64, "odds": pl.Float64, "flag": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    if not facts:
        return Played(frame, closes.frame(), count)
    said = pl.concat(facts).with_columns(ident=pl.Series(np.concatenate(ids), dtype=pl.UInt64))
    said = said.unique("ident", keep="first", maintain_order=True)
    return Played(frame.join(said, on="ident", how="left", maintain_order="left"), closes.frame(), count)
