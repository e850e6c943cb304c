"""Closing lines: the last pre-match price of every row, de-vigged when its event starts.

An event closes at its start, or when it first goes live, whichever comes first. Its rows may then be live or removed
already, so the recorder keeps the last pre-match price of each slot of the board; prices seen after the start are
ignored. A price that was removed, suspended or went live at most `LAST_S` before the close counts as the last one; a
price that left earlier has no closing price.

`ClosingRecorder.follow` runs right after each step and copies a few columns; de-vigging and storing are handed to
`run`. Fair probabilities are those of `find_ev` over the closing prices, with the same guards, references and method.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.board.event_status import CANCELLED, ENDED, IN_PLAY, POSTPONED, UPCOMING
from oddsengine.board.facts import Facts, moments_of
from oddsengine.board.names import Names
from oddsengine.board.open import Hits
from oddsengine.board.state import Board
from oddsengine.columns import NO_TIME, SECOND, Floats, Ints, Longs, Words, dtype_of, grown
from oddsengine.detection import question as finder
from oddsengine.detection.kinds import KINDS, thresholds
from oddsengine.detection.market_fair import market_fair
from oddsengine.detection.search import FIGURES, LEGS
from oddsengine.history.closing_consensus import Position, Vote, Votes, closing_logits, votes_at
from oddsengine.identity.groups import Groups, mix
from oddsengine.identity.layout import BOOK_BITS, FLAP, LIVE, MISMATCH, SUSPENDED
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update, hexadecimal
from oddsengine.maths.devig import Method
from oddsengine.maths.odds import decimal_to_american
from oddsengine.pricing import votes
from oddsengine.query.values import league_id, sport_id, team_names
from oddsengine.staking.outcomes import settle
from oddsengine.tables.timestamps import time_of

LAST_S = 300  # s: a price that left this long before the close still counts
_OPEN = np.iinfo(np.int64).max
_MEMBERS = 2  # minimum books of a consensus
Run = Callable[[Callable[[], None]], Any]


class Bets(NamedTuple):
    """+EV prices when shown, as columns."""

    id: list[str]
    outcome: Words  # of event, market, line and side, for any book
    event_id: list[str]
    sport: list[str]
    league: list[str]
    market: list[str]
    selection: list[str]
    line: list[float | None]
    sportsbook: list[str]
    live: Sequence[bool]
    start: Longs  # NO_TIME if unknown
    at: Longs
    odds: Floats  # as quoted
    price: Floats  # after commission
    ev: Floats  # fraction
    fair: Floats
    where: pl.DataFrame  # see `closing_consensus.Position`


class Close(NamedTuple):
    """The closing lines of one event."""

    event_id: str
    sport: str
    league: str
    home_team: str
    away_team: str
    start: int
    captured_at: int
    lines: pl.DataFrame
    outcome: Words  # outcomes with a fair probability, and that
    fair: Floats
    votes: Votes  # of all books, for the other books' close


class _Due(NamedTuple):
    """Events that close at one time, with their rows."""

    at: int
    events: dict[str, int]  # start of each event, by id
    facts: Facts


class _Mirror:
    """The last pre-match price of each slot of the board."""

    id: Words
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs
    shut: Longs  # time when it left, `_OPEN` while available

    def __init__(self) -> None:
        for name, column in _Mirror.__annotations__.items():
            setattr(self, name, np.zeros(0, dtype_of(column)))

    def room_for(self, slots: int) -> None:
        for name in _Mirror.__annotations__:
            setattr(self, name, grown(getattr(self, name), slots))

    def update(self, board: Board, slots: Ints, begins: Longs, now: int) -> None:
        rows = board.rows
        on = (rows.state[slots] == 1) & ((rows.flags[slots] & (LIVE | SUSPENDED)) == 0)
        start = begins[board.names.terms.event.values[rows.key[slots] >> BOOK_BITS]]
        start = np.where(start == NO_TIME, rows.start[slots], start)
        early = (start == NO_TIME) | (rows.seen[slots] <= start)
        offered = slots[on & early]
        for name in ("id", "odds", "american", "seen", "changed"):
            getattr(self, name)[offered] = getattr(rows, name)[offered]
        self.shut[offered] = _OPEN
        left = slots[~on]
        left = left[(self.id[left] == rows.id[left]) & (self.shut[left] == _OPEN)]
        self.shut[left] = now

    def last(self, board: Board, slots: Ints, since: int) -> Ints:
        """Return the slots with a pre-match price that was available at or after a time."""
        current = (self.id[slots] == board.rows.id[slots]) & (self.shut[slots] >= since)
        last_slots: Ints = slots[current]
        return last_slots


def at_once(job: Callable[[], None]) -> None:
    """Run a job immediately."""
    job()


class Store(Protocol):
    """Stores closing lines and bets."""

    def show(self, bets: Bets) -> None:
        """Store +EV prices that are shown, new or again."""

    def put(self, close: Close) -> None:
        """Store the close of an event; one without lines ends the wait of its bets, and changes no other close."""

    def discard(self, event_id: str) -> None:
        """Delete the close of an event that has not started after all."""


class ClosingRecorder:
    """Records closing lines and bets of one engine.

    The engine's default view over all books is kept active; bets are the +EV prices of that view by a method. `run`
    runs a job: in the service in order, in a thread of its own.
    """

    def __init__(self, engine: Engine, store: Store, run: Run = at_once, *, method: Method | None = None) -> None:
        self.engine, self.store, self._run = engine, store, run
        self._view = engine.view(method=method, keep=True)
        self._mirror = _Mirror()
        self._closed: dict[str, int] = {}  # event to the time of its close
        self._old_starts: dict[str, int] = {}  # previous starts of postponed events
        self._moment = int(NO_TIME)
        self._begins: Longs = np.empty(0, np.int64)
        self._names: Names | None = None
        self._begun = False

    def follow(self, update: Update) -> None:
        """Process an update, in the thread of the step and before the next one."""
        with self.engine.still() as board:
            rows, names = board.rows, board.names
            self._mirror.room_for(rows.key.size)
            look = update.moment != self._moment or names is not self._names
            if look:
                status, reported = board.statuses()
                begins = self._last_starts(names, reported)
                off = self._put_off(names, status, reported)
                self._moment, self._names, self._begins = update.moment, names, begins
            elif self._begins.size < len(names.events.values):
                more = np.full(len(names.events.values) - self._begins.size, NO_TIME)
                self._begins = np.concatenate((self._begins, more))
            if self._begun:
                again = rows.find_ids(update.again)
                slots = np.concatenate((update.facts.slot[update.rows], again[again >= 0], update.removed_rows.slot))
            else:
                slots = board.on()
            self._mirror.update(board, slots.astype(np.int32), self._begins, update.now)
            due, unpriced = self._due(board, status, reported, off) if look else ([], [])
            hits = self._shown(update)
            bets = self._bets(board, update, hits) if hits.size else None
            self._begun = True
        for each in due:
            self._run(partial(self._close, each))
        for close in unpriced:
            self._run(partial(self.store.put, close))
        if bets is not None:
            self._run(partial(self.store.show, bets))

    # ---- closes ----

    def _last_starts(self, names: Names, reported: Longs) -> Longs:
        """Return the starts of events; of those whose prices have all left, the last one that was known."""
        before = np.full(reported.size, NO_TIME)
        if names is self._names:
            before[: self._begins.size] = self._begins
        elif self._names is not None:
            for event, start in zip(self._names.events.values, self._begins.tolist(), strict=False):
                if event in names.events.codes:
                    before[names.events.codes[event]] = start
        return np.where(reported == NO_TIME, before, reported)

    def _put_off(self, names: Names, status: Any, begins: Longs) -> Any:
        """Return postponed events without a new start."""
        off = status == POSTPONED
        before = self._begins if names is self._names else begins[:0]
        starts, self._old_starts = self._old_starts, {}
        for code in np.flatnonzero(off).tolist():
            id_ = names.events.values[code]
            old = starts.get(id_, int(before[code]) if code < before.size else int(begins[code]))
            self._old_starts[id_] = old
            off[code] = begins[code] <= old
        return off

    def _due(self, board: Board, status: Any, reported: Longs, off: Any) -> tuple[list[_Due], list[Close]]:
        """Return events that close now, and the closes of those without prices; closes of others are deleted.

        `reported` has the starts by prices on the board. An event whose prices have all left closes at the last one.
        """
        names, moment, begins = board.names, self._moment, self._begins
        begun = (begins != NO_TIME) & (begins <= moment)
        # Without a start nothing says that it did not begin: its last price may have left the board after the match.
        waits = ~begun & (((status == UPCOMING) & (reported != NO_TIME)) | (status == POSTPONED))
        codes = names.events.codes
        for id_ in [id_ for id_ in self._closed if id_ in codes and waits[codes[id_]]]:
            del self._closed[id_]
            self._run(partial(self.store.discard, id_))
        closing = (begun & ~off & (status != CANCELLED)) | (status == IN_PLAY) | (status == ENDED)
        batches: dict[int, list[tuple[str, int, Ints]]] = {}
        unpriced = []
        for code in np.flatnonzero(closing).tolist():
            id_ = names.events.values[code]
            if id_ in self._closed:
                continue
            at = int(begins[code]) if begun[code] else moment
            self._closed[id_] = at
            partitions = np.array(names.partitions.of_event[code], np.int64)
            slots = self._mirror.last(board, board.partitions.slots_of(partitions), at - LAST_S * SECOND)
            if slots.size:
                batches.setdefault(at, []).append((id_, int(begins[code]), slots))
            else:
                unpriced.append(_unpriced(id_, int(begins[code]), at))
        if len(self._closed) > 4 * len(names.events.values) + 1024:
            self._closed = {id_: at for id_, at in self._closed.items() if id_ in names.events.codes}
        return [self._taken(board, at, events) for at, events in batches.items()], unpriced

    def _taken(self, board: Board, at: int, events: Sequence[tuple[str, int, Ints]]) -> _Due:
        """Copy the columns of some events."""
        facts = board.facts(np.unique(np.concatenate([slots for _, _, slots in events])))
        m, slot = self._mirror, facts.slot
        starts = {id_: start for id_, start, _ in events}
        own = np.array([starts[text[0]] for text in facts.texts], np.int64)
        facts = facts._replace(
            odds=m.odds[slot], american=m.american[slot], seen=m.seen[slot], changed=m.changed[slot],
            start=np.where(own == NO_TIME, facts.start, own), flags=facts.flags & np.uint8(FLAP | MISMATCH),
            books=list(facts.books),
        )  # fmt: skip
        return _Due(at, starts, facts)

    def _close(self, due: _Due) -> None:
        lines, outcome, event_of, fair = closing_lines(due.facts, due.at, self._view.wanted.method, self.engine.fair)
        ends = due.facts.frame().with_columns(snapshot_at=pl.lit(due.at))
        for id_, start in due.events.items():
            of_event = lines.filter(pl.col("event_id") == id_)
            about = of_event.row(0, named=True)
            which = event_of == id_
            sport = sport_id(about["sport"] or "")
            league = league_id(about["league"], sport) if about["league"] else ""
            self.store.put(
                Close(
                    id_, sport, league, *team_names(about["home_team"], about["away_team"], sport, league), start,
                    due.at,
                    of_event.select(LINE), outcome[which], fair[which],
                    votes_at(ends.filter(pl.col("event_id") == id_), self.engine.fair),
                )
            )  # fmt: skip

    # ---- bets ----

    def _shown(self, update: Update) -> Hits:
        """Store the +EV prices shown by this step, or open before the first one."""
        if self._begun:
            hits = update.of(self._view).hits
            return hits.take(hits.kind == KINDS.code("ev"))
        table, at = self._view.open.table, self._view.open.places()
        at = at[table.kind[at] == KINDS.code("ev")]
        return Hits(
            table.id[at],
            table.kind[at],
            table.partition[at],
            table.legs[at],
            table.figures[at],
            table.shown[at],
            np.zeros(at.size, np.uint8),
        )

    def _bets(self, board: Board, update: Update, hits: Hits) -> Bets:
        assert hits.legs.shape[1] == LEGS
        assert hits.figures.shape[1] == FIGURES
        slots = hits.legs[:, 0]
        distinct, of = np.unique(slots, return_inverse=True)
        facts = board.facts(distinct.astype(np.int32)).take(of)
        texts, books = facts.texts, facts.sportsbooks
        sports = [sport_id(text[1] or "") for text in texts]
        leagues = [league_id(text[2], sport) if text[2] else "" for text, sport in zip(texts, sports, strict=True)]
        begins = self._begins[board.names.terms.event.values[facts.key >> BOOK_BITS]]
        ev, fair, _, price, _ = hits.figures.T
        gathered = board.gather(np.unique(board.rows.partition[slots]).astype(np.int64))
        order = np.argsort(gathered.groups.row)
        at = order[np.searchsorted(gathered.groups.row[order], slots)]
        return Bets(
            id=hexadecimal(hits.id),
            outcome=outcomes(board, gathered.groups, at),
            event_id=[text[0] for text in texts],
            sport=sports,
            league=leagues,
            market=[
                catalog.published_name(text[5] or "", sport, text[10] or "", text[6] or "")
                for text, sport in zip(texts, sports, strict=True)
            ],
            selection=[text[7] or "" for text in texts],
            line=[text[-1] for text in texts],
            sportsbook=books,
            live=((facts.flags & LIVE) != 0).tolist(),
            start=np.where(begins == NO_TIME, facts.start, begins),
            at=np.full(slots.size, update.now),
            odds=facts.odds,
            price=price,
            ev=ev,
            fair=fair,
            where=Position.of(board, gathered, at, self.engine.fair).frame(),
        )


def _unpriced(event_id: str, start: int, at: int) -> Close:
    """Return the close of an event without closing prices: its bets no longer wait."""
    none = np.empty(0)
    return Close(event_id, "", "", "", "", start, at, pl.DataFrame(), none.view(np.uint64), none, {})


def outcomes(board: Board, g: Groups, at: Longs) -> Words:
    """Hash the outcomes of rows: event, market, line and side, for any book."""
    market = g.market[at]
    ladder = board.names.hashes(g).ladder[g.ladder[market]]
    return mix(ladder, g.threshold[market].astype(np.int64), g.side[at].astype(np.int64))


PLACE = ("ladder", "threshold_", "side", "outcomes", "slope", "reach")
"""Columns of a bet's position on its ladder; see `closing_consensus.Position`."""


def others_close(bets: Sequence[Sequence[Any]], close: Close) -> list[float | None]:
    """Return fair probabilities of bets (book and `PLACE`) at the close of all other books; None if unknown."""
    if not bets:
        return []
    rows = pl.DataFrame(bets, ["sportsbook", *PLACE], orient="row", infer_schema_length=None)
    placed = rows.with_columns(
        pl.col("ladder").cast(pl.Int64).fill_null(0).reinterpret(signed=False),
        pl.col("slope").cast(pl.Float64).fill_null(np.nan),
        pl.col("threshold_", "side", "outcomes", "reach").cast(pl.Int64).fill_null(0),
    )
    votes = {ladder: [Vote(*vote) for vote in of] for ladder, of in close.votes.items()}
    x = closing_logits(placed, votes)["x"].to_numpy()
    return [None if np.isnan(each) else float(1.0 / (1.0 + np.exp(-each))) for each in x]


def gain(where: tuple[str, str, int, int, int, str, str], home: int, away: int) -> float | None:
    """Return the share of the stake won or lost by a final score; None if undetermined.

    `where` is family, period, subject, threshold, side, sport and league.
    """
    family, period, subject, threshold, side, sport, league = where
    share = settle(family, period, subject, threshold, side, catalog.sport(sport), league, home, away)
    return None if np.isnan(share) else share


LINE = (
    "id", "sportsbook", "market_type", "market_segment", "selection", "selection_type", "line", "player_name",
    "stat_category", "team_side", "odds_american", "odds_decimal", "odds_probability", "last_seen_at",
    "odds_changed_at", "fair_probability", "no_vig_odds", "sharp_book", "own_probability", "outcome",
)  # fmt: skip


def closing_lines(
    facts: Facts, at: int, method: str, table_of_fair: catalog.FairTable
) -> tuple[pl.DataFrame, Words, Any, Floats]:
    """Return lines with fair probabilities by a method; and hash, event and probability of every priced outcome."""
    table = facts.frame().with_columns(id=pl.Series(hexadecimal(facts.id), dtype=pl.String))
    question = finder.ask(
        finder.prepare(table, None, time_of(at)), None, None, method, None, thresholds(), fair=table_of_fair
    )
    prepared, v = question.prepared, question.prices
    g = v.groups
    of = g.market.astype(np.int64)
    if v.close is not None and v.board is not None:
        fair = v.close.segment[g.segments[of] + g.side]
        reference = votes.sharpest(v.board.of, v.board.logits, v.traits, of, g.book)
    else:
        fallback = market_fair(v, np.arange(g.threshold.size))[of, g.side] if of.size else np.empty(0)
        # A single book is no consensus; without a reference, `market_fair` uses the best prices.
        speaks = (
            (v.references.member[g.book] != 0) & (v.columns.trusted != 0) & ~np.isnan(v.columns.own) & (g.side == 0)
        )
        several = np.bincount(of[speaks], minlength=g.threshold.size) >= _MEMBERS
        consensus = (v.columns.reference == votes.CONSENSUS) & several
        fair = np.where((v.columns.reference >= 0) | consensus, 0.0, np.nan)[of] + fallback
        reference = v.columns.reference[of]
    hashed = mix(question.hashes.ladder[g.ladder[of]], g.threshold[of].astype(np.int64), g.side.astype(np.int64))
    source = prepared.table["row"].gather(g.row).to_numpy().astype(np.int64)
    read = pl.DataFrame(
        {
            "place": source,
            "side": finder.sides(question, np.arange(of.size, dtype=np.int32)),
            "fair_probability": fair,
            "own_probability": v.columns.own,
            "outcome": hashed,
            "sharp_book": question.labels.books[reference],
        }
    ).with_columns(
        pl.col("fair_probability", "own_probability").fill_nan(None),
        no_vig_odds=pl.Series(decimal_to_american(1.0 / fair)).fill_nan(None),
    )
    lines = (
        table.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64))
        .join(read, on="place", how="left", maintain_order="left")
        .with_columns(
            selection_type=pl.coalesce("side", "selection_type"),
            sharp_book=pl.when(pl.col("fair_probability").is_not_null()).then("sharp_book"),
            last_seen_at=moments_of(facts.seen), odds_changed_at=moments_of(facts.changed),
        )
    )  # fmt: skip
    priced = np.flatnonzero(~np.isnan(fair))
    events = np.array(table["event_id"].to_list(), dtype=object)[source[priced]]
    order = ("sportsbook", "market_type", "player_name", "line", "selection")
    return lines.sort(order, nulls_last=False), hashed[priced], events, fair[priced]
