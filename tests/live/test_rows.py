"""The rows of the live board beside their slow twin: every rule of a price, step by step, and where each rule ends."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from naive.live import TEXTS, Key, NaiveLive, Said, key
from support.hazards import NOW, SECOND, Row
from support.live_strategies import EPOCH, moment

import oddsengine as oe
from oddsengine.board.state import Board
from oddsengine.identity.layout import LIVE
from oddsengine.live.engine import Engine

TIMES = ("last_seen_at", "odds_changed_at", "event_start_time")
MOVES = {
    "new": "new", "price_moved": "price", "line_moved": "line", "liveness_moved": "live", "status_moved": "status"
}  # fmt: skip
PRICES = (2.0, 1.99, 2.04, 2.06, 2.5, 1.95)  # 0.5; within 0.3 points of it; within 1.2; beyond; far; beyond, below


def micros(time: datetime | None) -> int | None:
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a frame with its times as numbers."""
    return {name: micros(value) if name in TIMES else value for name, value in row.items()}


def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a removal says of a row."""
    return tuple(row[name] for name in ("sportsbook", "event_id", "market_type", "selection", "line"))


class Pair:
    """The board and its twin, side by side."""

    def __init__(self) -> None:
        self.engine, self.twin = Engine(), NaiveLive()
        self.now = NOW
        self.ids: dict[Key, str] = {}  # of rows that are on the board, or whose removal is remembered

    def step(
        self,
        quotes: Sequence[Row] = (),
        at: float | None = None,
        removed: Iterable[Key] = (),
        complete: Sequence[tuple[str, str | None]] = (),
        events: Sequence[dict[str, Any]] = (),
    ) -> Said:
        """One step of both, `at` seconds from the beginning; all that they say and show is equal."""
        self.now = self.now if at is None else NOW + round(at * SECOND)
        removed = list(removed)
        before = {named: row["sportsbook"] for named, row in self.twin.table().items()}
        ids = [self.ids[named] for named in removed]
        said = self.twin.step(quotes, self.now, removed, complete, events)
        notices = [
            {name: moment(value) if name == "event_start_time" else value for name, value in notice.items()}
            for notice in events
        ]
        update = self.engine.step(quotes, moment(self.now), removed=ids, complete=complete, events=notices)
        assert (update.late, update.seen) == (said.late, said.seen)
        assert Counter(update.rejected["guard"]) == Counter(why for _, why in said.refused)
        self._table()
        self._changed(update.changed, said)
        gone = Counter(place(row) for row in update.removed.iter_rows(named=True))
        assert gone == Counter(self._place(named) for named in said.removed)
        assert {self.ids[named] for named in said.removed & before.keys()} <= set(update.removed["id"])
        assert set(update.removed["removed_at"]) <= {moment(self.now)}
        self._removals()
        self._events()
        return said

    def _place(self, named: Key) -> tuple[Any, ...]:
        row = dict(zip(TEXTS, named[1:], strict=True))
        return place(row | {"sportsbook": self.twin.books[named[0]]})

    def _table(self) -> None:
        expected, found = self.twin.table(), {}
        for row in self.engine.table().iter_rows(named=True):
            ident, named = row.pop("row_id"), key(row)
            assert self.ids.setdefault(named, ident) == ident
            found[named] = plain(row)
        assert found == expected
        assert all(list(row) == list(oe.ODDS_SCHEMA) for row in found.values())
        self.ids = {named: ident for named, ident in self.ids.items() if named in self.twin.rows}
        assert len(set(self.ids.values())) == len(self.ids)

    def _changed(self, changed: pl.DataFrame, said: Said) -> None:
        expected, told = self.twin.table(), {}
        for row in changed.iter_rows(named=True):
            assert row["id"] == self.ids[key(row)]
            told[key(row)] = {short for name, short in MOVES.items() if row[name]}
            shown = expected[key(row)]
            assert plain({name: row[name] for name in oe.ODDS_SCHEMA if name != "id"}) == {
                name: value for name, value in shown.items() if name != "id"
            }
        assert told == said.changed
        assert changed.height == len(told)

    def _removals(self) -> None:
        found = Counter(
            (row["sportsbook"], row["event_id"], micros(row["removed_at"]))
            for row in self.engine.removed().iter_rows(named=True)
        )
        remembered = self.twin.removals()
        assert found == Counter((*self._place(named)[:2], left) for named, left in remembered.items())
        known = {self.ids[named] for named in remembered if named in self.ids}
        assert known <= set(self.engine.removed()["id"])

    def _events(self) -> None:
        found = {
            event: (status, micros(start), *counts)
            for event, status, start, *counts in self.engine.events().iter_rows()
        }
        assert found == self.twin.listing()

    def refused(self) -> None:
        held = self.engine.rejected_counts()
        assert {name: held.get(name, 0) for name in self.twin.refused} == self.twin.refused


# ---- everything at once ----


def quote(
    book: str, event: str, market: str, selection: str, line: float | None, odds: Any = 2.0, **fields: Any
) -> Row:
    """A price of one of three events: one that starts later, one without a start, one that has started."""
    start = {"e0": NOW + 400 * SECOND, "e2": NOW - 60 * SECOND}.get(event)
    return {
        "sportsbook": book, "event_id": event, "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
        "away_team": "Los Angeles Lakers", "market_type": market, "selection": selection, "line": line,
        "odds_decimal": odds, "event_start_time": start, **fields,
    }  # fmt: skip


OFFERS = (
    ("moneyline", "Boston Celtics", None), ("moneyline", "Los Angeles Lakers", None), ("total_points", "Over", 220.5),
    ("total_points", "Over", 221.5), ("total_points", "Under", 220.5),
)  # fmt: skip
UNIVERSE = tuple(product(("pinnacle", "draftkings", "fanduel"), ("e0", "e1", "e2"), OFFERS))
SPELLED = {"draftkings": "DraftKings"}
PAUSES = (0.0, 0.0, 0.4, 1.0, 1.0, 9.6, 10.0, 30.0, 299.6, 600.0, 601.0, 900.0, 901.0, 21_600.0, 21_601.0)
AGES = (None, None, None, None, 0.0, 0.4, 1.0, 5.0, 40.0, 601.0, 21_600.0, 21_700.0, -3.0)
LIMITS = (10, 30, 600, 900, 1500, 21_600)
NEAR = (-SECOND, -1, 0, 1, SECOND, 2 * SECOND)
SPOILT: tuple[dict[str, Any], ...] = (
    {"odds_decimal": 1.0}, {"odds_decimal": None}, {"odds_decimal": "soon"}, {"selection": None}, {"sportsbook": ""}
)  # fmt: skip
STATUSES = ("upcoming", "live", "ended", "cancelled")

some = st.lists(st.integers(0, len(UNIVERSE) - 1), min_size=1, max_size=4)
one = st.integers(0, len(UNIVERSE) - 1)
prices = st.sampled_from(PRICES)
pauses = st.sampled_from(PAUSES)


class Rows(RuleBasedStateMachine):
    """Things happen to a few rows; time passes, often just past a limit."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()
        self.starts = {"e0": NOW + 400 * SECOND, "e2": NOW - 60 * SECOND}

    def teardown(self) -> None:
        self.pair.refused()

    def said(self, at: int, odds: float | None, **fields: Any) -> Row:
        """A quote of one row of the universe; some name their own texts, or write the book otherwise."""
        book, event, (market, selection, line) = UNIVERSE[at]
        book = SPELLED.get(book, book) if at % 2 else book
        other = self.pair.now // (7 * SECOND) % 2
        own: Row = {"id": f"s{at}", "max_bet": 10.0 + at + other} if at % 4 == 0 else {}
        if at % 8 == 0:
            own |= {"volume": 500.0 + other} if other else {"open_interest": 9.0, "exchange_token_id": f"t{at}"}
        american = {"odds_american": -105.0} if odds == 1.95 and other else {}
        start = {"event_start_time": self.starts.get(event)}
        return quote(book, event, market, selection, line, odds, **own | american | start | fields)

    def here(self) -> list[Key]:
        return sorted(self.pair.twin.on(), key=str)

    def again(self, named: Key, **fields: Any) -> Row:
        """A quote of a row as it is."""
        row = self.pair.twin.rows[named]
        start = {"event_start_time": row.start}
        same = {"odds_decimal": row.odds, "odds_american": row.american, "is_live": row.live}
        return {**row.quote, **same, "is_active": not row.suspended, "last_seen_at": None, **start, **fields}

    def go(self, pause: float, quotes: Sequence[Row] = (), **words: Any) -> None:
        self.pair.step(quotes, (self.pair.now - NOW) / SECOND + pause, **words)

    @rule(rows=some, odds=prices, pause=pauses, age=st.sampled_from(AGES), live=st.booleans())
    def prices_come(self, rows: list[int], odds: float, pause: float, age: float | None, live: bool) -> None:
        now = self.pair.now + round(pause * SECOND)
        seen = None if age is None else now - round(age * SECOND)
        self.go(pause, [self.said(at, odds, last_seen_at=seen, is_live=live and at % 3 == 0) for at in rows])

    @rule(row=one, steps=st.lists(st.tuples(prices, st.sampled_from((0.0, 0.4, 1.0, 5.0))), min_size=2, max_size=9))
    def a_price_wanders(self, row: int, steps: list[tuple[float, float]]) -> None:
        for odds, pause in steps:
            self.go(pause, [self.said(row, odds)])

    @rule(rows=some, first=prices, second=prices)
    def twice_in_a_batch(self, rows: list[int], first: float, second: float) -> None:
        now = self.pair.now
        changed = {"odds_changed_at": now - 7 * SECOND, "last_seen_at": now}
        self.go(0.0, [self.said(at, odds, **changed) for at in rows for odds in (first, second)])

    @rule(
        row=st.integers(0, 99),
        ahead=st.sampled_from((-SECOND, -1, 0, 1)),
        odds=prices,
        pause=st.sampled_from((0.0, 0.4, 1.0)),
    )
    def late_or_just_not(self, row: int, ahead: int, odds: float, pause: float) -> None:
        """A quote about as old as what is known of its row, or as its removal."""
        known = sorted(self.pair.twin.rows, key=str)
        if known:
            named = known[row % len(known)]
            held = self.pair.twin.rows[named]
            limit = held.seen if held.left is None else held.left
            self.go(pause, [self.again(named, odds_decimal=odds, odds_american=None, last_seen_at=limit + ahead)])

    @rule(pause=pauses, book=st.sampled_from(("", "pinnacle", "draftkings")))
    def all_seen_again(self, pause: float, book: str) -> None:
        self.go(pause, [self.again(named) for named in self.here() if book in named[0]])

    @rule(rows=some, active=st.booleans(), bare=st.booleans(), odds=prices, pause=st.sampled_from((0.0, 1.0)))
    def suspended(self, rows: list[int], active: bool, bare: bool, odds: float, pause: float) -> None:
        price = None if bare and not active else odds
        self.go(pause, [self.said(at, price, is_active=active) for at in rows])

    @rule(row=st.integers(0, 99), bare=st.booleans(), pause=st.sampled_from((0.0, 1.0)))
    def suspended_or_opened(self, row: int, bare: bool, pause: float) -> None:
        if here := self.here():
            named = here[row % len(here)]
            off = self.pair.twin.rows[named].suspended
            nothing = {"odds_decimal": None, "odds_american": None} if bare and not off else {}
            self.go(pause, [self.again(named, is_active=off, **nothing)])

    @rule(event=st.sampled_from(("e0", "e1", "e2")), pause=st.sampled_from((0.0, 1.0)))
    def goes_live(self, event: str, pause: float) -> None:
        rows = [named for named in self.here() if named[1] == event]
        self.go(pause, [self.again(named, is_live=not self.pair.twin.rows[named].live) for named in rows])

    @rule(by=st.sampled_from((-3600, -1, 0, 1, 600)), pause=st.sampled_from((0.0, 1.0)))
    def start_moves(self, by: int, pause: float) -> None:
        self.starts["e0"] = self.pair.now + by * SECOND
        mine = [named for named in self.here() if named[1] == "e0"]
        self.go(pause, [self.again(named, event_start_time=self.starts["e0"]) for named in mine])

    @rule(rows=st.lists(st.integers(0, 99), min_size=1, max_size=3), pause=st.sampled_from((0.0, 0.4, 1.0)))
    def removed(self, rows: list[int], pause: float) -> None:
        """Rows that are there, or were."""
        known = sorted(self.pair.ids, key=str)
        if known:
            self.go(pause, removed={known[at % len(known)] for at in rows})

    @rule(row=st.integers(0, 99), up=st.sampled_from((-1.0, 1.0)))
    def line_moves(self, row: int, up: float) -> None:
        lined = [named for named in self.here() if named[-1] is not None]
        if lined:
            named = lined[row % len(lined)]
            self.go(0.0, [self.again(named, line=named[-1] + up)], removed=[named])

    @rule(book=st.sampled_from(("pinnacle", "DraftKings", "nobody")), event=st.sampled_from((None, "e0", "e1", "e9")),
          kept=st.sets(st.integers(0, 9)), odds=prices, pause=st.sampled_from((0.0, 1.0)))  # fmt: skip
    def snapshot(self, book: str, event: str | None, kept: set[int], odds: float, pause: float) -> None:
        mine = [named for named in self.here() if named[0] == book.lower() and event in (None, named[1])]
        listed = [named for at, named in enumerate(mine) if at in kept]
        quotes = [self.again(named, odds_decimal=odds, odds_american=None) for named in listed]
        self.go(pause, quotes, complete=[(book, event)])

    @rule(event=st.sampled_from(("e0", "e1", "e2", "e9")), status=st.sampled_from(STATUSES), pause=pauses)
    def notice(self, event: str, status: str, pause: float) -> None:
        self.go(pause, events=[{"event_id": event, "status": status}])

    @rule(days=st.integers(1, 3), pause=st.sampled_from((0.0, 10.0, 900.0)))
    def postponed(self, days: int, pause: float) -> None:
        """The event whose rows name no start."""
        start = self.pair.now + days * 86_400 * SECOND
        self.go(pause, events=[{"event_id": "e1", "status": "postponed", "event_start_time": start}])

    @rule(rows=some, spoilt=st.sampled_from(SPOILT), odds=prices)
    def bad_rows(self, rows: list[int], spoilt: dict[str, Any], odds: float) -> None:
        good = [self.said(at, odds) for at in rows]
        self.go(0.4, [*good[:1], good[0] | spoilt, *good[1:]])

    @rule(pause=pauses)
    def time_passes(self, pause: float) -> None:
        self.go(pause)

    @rule(row=st.integers(0, 99), limit=st.sampled_from(LIMITS), by=st.sampled_from(NEAR))
    def just_at_a_limit(self, row: int, limit: int, by: int) -> None:
        """So long after a row was seen, or left."""
        known = sorted(self.pair.twin.rows, key=str)
        if known:
            held = self.pair.twin.rows[known[row % len(known)]]
            then = (held.seen if held.left is None else held.left) + limit * SECOND + by
            self.go(max(0, then - self.pair.now) / SECOND)


TestRows = Rows.TestCase
TestRows.settings = settings(max_examples=max(1, settings().max_examples // 2), stateful_step_count=20)


# ---- one rule at a time ----

A, C, NEARER, NEARLY = 2.0, 2.06, 2.04, 1.99


def price(odds: float | None, seen: float | None = None, **fields: Any) -> Row:
    """The one row of the tests below."""
    time = None if seen is None else NOW + round(seen * SECOND)
    return quote("pinnacle", "e1", "moneyline", "Boston Celtics", None, odds, **fields | {"last_seen_at": time})


ONE = key(price(2.0))


def flaps(observations: Iterable[tuple[float, float | None]], *, live: bool = False) -> list[bool]:
    """The flag after each observation; price None is a repeat of what was said."""
    pair, out = Pair(), []
    for at, odds in observations:
        pair.step([price(odds, is_live=live)] if odds else [], at)
        out.append(pair.twin.rows[ONE].memory.flap)
    return out


def test_a_price_that_returns_flaps_until_two_observations_agree() -> None:
    assert flaps([(0, A), (1, C), (2, A), (3, A), (4, A)]) == [False, False, True, False, False]
    assert flaps([(0, A), (1, C), (2, A), (3, None), (4, C), (5, C)]) == [False, False, True, True, True, False]


def test_in_play_it_takes_three_returns_within_sixteen_observations() -> None:
    to_and_fro = [(at, A if at % 2 == 0 else C) for at in range(6)]
    assert flaps(to_and_fro, live=True) == [False, False, False, False, True, True]
    assert flaps(to_and_fro)[2]
    calm = [(at, C) for at in range(4, 20)]
    once_more = [(20, A), (21, C)]
    assert not any(flaps([*to_and_fro[:4], *calm, *once_more], live=True))
    # A price that drifts near the level it is back at has not returned again.
    assert not any(flaps([(0, A), (1, C), (2, A), (3, NEARLY), (4, A), (5, NEARLY)], live=True))


def test_a_second_observation_that_agrees_confirms_a_price() -> None:
    def confirmed(*observations: tuple[float, float, float]) -> list[bool]:
        pair, out = Pair(), []
        for at, odds, seen in observations:
            pair.step([price(odds, seen)], at)
            out.append(pair.engine.table()["confirmed"].item())
        return out

    assert confirmed((0, A, 0), (1, A, 1), (2, C, 2), (3, C, 3)) == [False, True, False, True]
    assert confirmed((0, A, 0), (1, A, 0), (2, A, 0)) == [False, False, False]  # the source said nothing new


def test_how_far_a_price_leaves_and_how_near_it_comes_back() -> None:
    assert not any(flaps([(0, A), (1, NEARER), (2, A)]))  # 0.98 points away
    assert flaps([(0, A), (1, C), (2, NEARLY)])[-1]  # 0.25 points from where it was
    assert not flaps([(0, A), (1, C), (2, NEARER)])[-1]


@pytest.mark.parametrize(("observations", "flap"), [(15, True), (16, False)])
def test_sixteen_observations(observations: int, flap: bool) -> None:
    assert flaps([(0, A), *((1 + at, C) for at in range(observations)), (60, A)])[-1] is flap


@pytest.mark.parametrize(("seconds", "flap"), [(21_600.9, True), (21_601, False)])
def test_six_hours(seconds: float, flap: bool) -> None:
    """In whole seconds."""
    assert flaps([(0, A), (10_000, C), (seconds, A)])[-1] is flap


@pytest.mark.parametrize(("between", "flap"), [(4, True), (5, True), (6, False)])
def test_six_levels(between: int, flap: bool) -> None:
    """The seventh price back is forgotten."""
    away = [3.0 + 0.5 * at for at in range(between)]
    assert flaps([(0, A), *((1 + at, odds) for at, odds in enumerate(away)), (60, A)])[-1] is flap


def test_what_is_an_observation() -> None:
    """A new time or another price; the same time and price are none, nor is a price that is suspended."""
    pair = Pair()
    for at, odds in ((0, A), (1, C), (2, A)):
        pair.step([price(odds)], at)
    pair.step([price(A, seen=2)], 3)
    pair.step([price(A, is_active=False)], 4)
    assert pair.twin.rows[ONE].memory.flap
    pair.step([price(A)], 5)
    assert not pair.twin.rows[ONE].memory.flap


def test_going_live_begins_anew() -> None:
    pair = Pair()
    for at, odds in ((0, A), (1, C), (2, A)):
        pair.step([price(odds)], at)
    pair.step([price(A, is_live=True)], 3)
    pair.step([price(C, is_live=True)], 4)
    assert not pair.twin.rows[ONE].memory.flap


def test_memory_outlives_a_short_absence() -> None:
    pair = Pair()
    pair.step([price(A)], 0)
    pair.step([price(C)], 1)
    pair.step([], 2, removed=[ONE])
    pair.step([price(A)], 600)
    assert pair.twin.rows[ONE].memory.flap


@pytest.mark.parametrize(("seconds", "remembered"), [(600.0, True), (600.9, True), (601.0, False)])
def test_a_removal_is_remembered_for_ten_minutes(seconds: float, remembered: bool) -> None:
    """An old price of a row that left is late for as long, and after that a new row."""
    pair = Pair()
    pair.step([price(A)], 0)
    pair.step([], 5, removed=[ONE])
    pair.step([], 5 + seconds)
    assert pair.engine.removed().height == int(remembered)
    said = pair.step([price(A, seen=4)], 5 + seconds)
    assert said.late == int(remembered)


def test_late_is_older_than_the_price_or_its_removal() -> None:
    pair = Pair()
    pair.step([price(A)], 10)
    assert pair.step([price(C, seen=9.999999)], 11).late
    assert pair.step([price(C, seen=10)], 11).changed == {ONE: {"price"}}
    pair.step([], 20, removed=[ONE])
    assert pair.step([price(A, seen=19.999999)], 21).late
    assert pair.step([price(C, seen=20)], 21).changed == {ONE: {"new"}}


@pytest.mark.parametrize(("seconds", "stays"), [(21_600.0, True), (21_600.9, True), (21_601.0, False)])
def test_unseen_for_six_hours(seconds: float, stays: bool) -> None:
    pair = Pair()
    pair.step([price(A)], 0)
    assert pair.step([], seconds).removed == (set() if stays else {ONE})


def test_when_an_event_is_live_and_when_it_leaves() -> None:
    """Live for 15 minutes after its last live price, then ended; ten minutes later its rows leave."""
    pair = Pair()
    pair.step([price(A, is_live=True, event_start_time=NOW - SECOND)], 0)
    status = []
    for at in (900, 910, 1500, 1510):
        said = pair.step([], at)
        status.append([entry[0] for entry in pair.twin.listing().values()])
    assert status == [["live"], ["ended"], ["ended"], []]
    assert said.removed == {ONE}


def test_an_event_that_started_ends_when_nothing_is_seen() -> None:
    """Whatever a source says of its beginning."""
    pair, status = Pair(), []
    pair.step([price(A, event_start_time=NOW - SECOND)], 0, events=[{"event_id": "e1", "status": "live"}])
    for at in (900, 901):
        pair.step([], at)
        status.append(pair.engine.events()["status"].item())
    assert status == ["live", "ended"]


def test_postponed_until_it_is_live() -> None:
    pair = Pair()
    pair.step([price(A, is_live=True)], 0, events=[{"event_id": "e1", "status": "postponed"}])
    assert pair.engine.events()["status"].item() == "postponed"
    pair.step([price(A, is_live=True)], 1)
    assert pair.engine.events()["status"].item() == "live"


def test_a_row_leaves_once() -> None:
    pair = Pair()
    pair.step([price(A)], 0)
    assert pair.step([], 1, removed=[ONE]).removed
    assert not pair.step([], 9, removed=[ONE]).removed
    pair.step([], 602)
    assert not pair.engine.removed().height


def test_when_a_source_says_that_an_event_ended() -> None:
    pair = Pair()
    pair.step([price(A)], 0)
    pair.step([price(A)], 5, events=[{"event_id": "e1", "status": "ended"}])
    assert not pair.step([price(A)], 605).removed
    assert not pair.step([], 609).removed  # looked for every ten seconds
    assert pair.step([], 610).removed == {ONE}


def test_a_price_that_is_quoted_long_after_the_end_stays() -> None:
    pair = Pair()
    pair.step([price(A)], 0)
    pair.step([price(A)], 5, events=[{"event_id": "e1", "status": "ended"}])
    assert not pair.step([price(A)], 606).removed
    assert not pair.step([], 620).removed


def test_odds_changed_at() -> None:
    """The time of what moved, or the source's own; nothing else renews it."""
    pair = Pair()
    own = {"odds_changed_at": NOW - 50 * SECOND}
    steps: list[tuple[float, Row, float]] = [
        (0, price(A, **own), -50), (1, price(A), -50), (2, price(A, is_active=False), -50), (3, price(A), -50),
        (4, price(C), 4), (5, price(C, **own), 4), (6, price(C, is_live=True, seen=5.5), 5.5),
        (7, price(A, is_live=True, odds_changed_at=NOW + 99 * SECOND), 7),
    ]  # fmt: skip
    for at, said, changed in steps:
        pair.step([said], at)
        assert pair.twin.rows[ONE].changed == NOW + round(changed * SECOND)


def test_a_price_cannot_have_changed_before_the_one_it_replaces() -> None:
    """A source's time from before the last change is not believed: the price changed when it was first seen."""
    pair = Pair()
    steps: list[tuple[float, Row, float]] = [
        (0, price(A, odds_changed_at=NOW - 50 * SECOND), -50),
        (1, price(C, odds_changed_at=NOW - 50 * SECOND), -50),  # at the same time: believed
        (2, price(A, odds_changed_at=NOW - 51 * SECOND), 2),
        (3, price(A, odds_changed_at=NOW - 60 * SECOND), 2),
        (4, price(C, odds_changed_at=NOW + 3 * SECOND), 3),
        (5, price(C, is_live=True, odds_changed_at=NOW + 1 * SECOND, seen=4.5), 4.5),
    ]  # fmt: skip
    for at, said, changed in steps:
        pair.step([said], at)
        assert pair.twin.rows[ONE].changed == NOW + round(changed * SECOND)
    pair.step([], 6, removed=[ONE])
    pair.step([price(C, is_live=True, odds_changed_at=NOW)], 7)  # a price that left and returned
    assert pair.twin.rows[ONE].changed == NOW + 7 * SECOND


def test_a_large_batch() -> None:
    """Quotes of one row count in order however many there are."""
    pair = Pair()
    lines = [100.5 + at for at in range(400)]
    for at in range(2):
        many = [quote("pinnacle", f"e{i % 3}", "total_points", "Over", line, PRICES[(i + at) % 6], is_live=i % 2 == at)
                for _ in range(11) for i, line in enumerate(lines)]  # fmt: skip
        for i, row in enumerate(many):
            row["odds_decimal"] += 0.25 * (i % 11)
            row["max_bet"] = 5.0 + i % 400
        said = pair.step(many, at)
        assert len(said.changed) == 400
    complete = [("pinnacle", "e1")]
    assert len(pair.step(many[:300], 2, complete=complete).removed) == 33


def test_two_raw_labels_of_one_bet_are_two_rows() -> None:
    """Each has an id of its own and keeps it when the other leaves."""
    pair = Pair()
    over = [quote("pinnacle", "e1", "total_points", text, 220.5) for text in ("Over", "OVER", "over")]
    for at, row in enumerate(over):
        pair.step([row], at)
    ids = dict(pair.ids)
    pair.step([], 5, removed=[key(over[0])])
    pair.step([over[1]], 6)
    assert pair.ids == ids
    pair.step([], 700)
    assert pair.ids == {key(row): ids[key(row)] for row in over[1:]}


# ---- what was found once ----


def test_numbers_of_refused_rows() -> None:
    quotes = [price(1.0), price(None, is_active=False), price(A), price(None, is_active=False), price(None)]
    refused = Engine().step(quotes, moment(NOW)).rejected
    assert dict(refused.select("row", "reason").iter_rows()) == {
        0: "not a finite price above 1", 1: "no price given", 4: "no price given"
    }  # fmt: skip


def test_a_snapshot_lists_what_is_late() -> None:
    pair = Pair()
    other = quote("pinnacle", "e1", "moneyline", "Los Angeles Lakers", None)
    pair.step([price(A), other], 10)
    said = pair.step([price(C, seen=5)], 11, complete=[("pinnacle", None)])
    assert said.late == 1
    assert said.removed == {key(other)}


def flaps_after(observations: Iterable[tuple[float, float]]) -> bool:
    """The flag after observations that come in one batch."""
    pair, quotes = Pair(), [price(odds, seen=at) for at, odds in observations]
    pair.step(quotes, 86_400)
    return pair.twin.rows[ONE].memory.flap


@pytest.mark.parametrize("between", [15, 16, 240, 254, 255, 256, 264, 271, 272, 600])
def test_a_price_that_returns_after_many_observations(between: int) -> None:
    observations = [(70_000, A), *((70_001 + at, C) for at in range(between)), (71_000, A)]
    assert flaps_after(observations) == (between < 16)


@pytest.mark.parametrize("hours", [3, 8, 12, 17, 18.5, 19, 22, 24])
def test_a_price_that_returns_after_many_hours(hours: float) -> None:
    """Observed every five hours meanwhile."""
    observations = [(0, A), *((3600 * at, C) for at in range(1, 24, 5) if at < hours), (3600 * hours, A)]
    assert flaps_after(observations) == (hours <= 6)


@pytest.mark.parametrize("before", [0, 1, 252, 253, 254, 255, 508, 509, 510])
def test_a_repeat_is_no_observation_however_many_there_were(before: int) -> None:
    last = 80_000 + before + 2
    assert flaps_after([*((80_000 + at, A) for at in range(before + 1)), (last - 1, C), (last, A), (last, A)])


def test_an_american_price_that_moves_alone() -> None:
    """Whoever holds a row and hears of what changed has the row."""
    engine = Engine()
    engine.step([price(1.95)], moment(NOW))
    update = engine.step([price(1.95, odds_american=-105.0)], moment(NOW + SECOND))
    assert engine.table()["odds_american"].to_list() == [-105.0]
    assert update.changed["odds_american"].to_list() == [-105.0]


def test_another_raw_label_of_a_line_is_no_move() -> None:
    pair = Pair()
    first = quote("pinnacle", "e1", "total_points", "Over", 220.5)
    pair.step([first], 0)
    update = pair.engine.step(
        [first | {"selection": "OVER"}], moment(NOW + SECOND), removed=list(pair.ids.values())
    )  # fmt: skip
    assert update.changed["line_moved"].to_list() == [False]
    update = pair.engine.step(
        [first | {"line": 221.5}], moment(NOW + 2 * SECOND), removed=pair.engine.table()["row_id"].to_list()
    )  # fmt: skip
    assert update.changed["line_moved"].to_list() == [True]


@pytest.mark.parametrize("turned", [False, True])
def test_the_start_of_an_event_is_the_one_last_given(turned: bool) -> None:
    """However its rows stand, and whoever gives it."""
    pair, begins = Pair(), NOW + 1000 * SECOND
    rows = [price(A, seen=0), price(A, seen=-5, event_start_time=begins) | {"selection": "Los Angeles Lakers"}]
    pair.step(rows[::-1] if turned else rows, 0)
    assert pair.twin.standing("e1")[1] == begins
    pair.step([], 1, events=[{"event_id": "e1", "status": "upcoming", "event_start_time": begins + SECOND}])
    pair.step([], 60)
    assert pair.twin.standing("e1")[1] == begins + SECOND


def test_a_postponed_event_has_not_ended() -> None:
    """Its rows stay, though it was to start and none of them was seen for long."""
    pair = Pair()
    pair.step([price(A, event_start_time=NOW - SECOND)], 0, events=[{"event_id": "e1", "status": "postponed"}])
    assert not pair.step([], 1600).removed
    assert pair.twin.standing("e1")[0] == "postponed"


def _limits(board: Board, slot: int) -> list[int]:
    """When time alone changes what a price on the board is."""
    rows, limits = board.rows, board.limits
    if rows.flags[slot] & LIVE:
        seconds = [limits.stale_live_s, limits.stale_live_leg_s, 2 * limits.stale_live_s, limits.witness_live_s]
        more = list[int]()
    else:
        seconds = [limits.stale_prematch_s, 2 * limits.stale_prematch_s, limits.witness_prematch_s]
        more = [int(rows.start[slot])]
    return [int(rows.seen[slot]) + round(each * 1e6) for each in (*seconds, limits.event_unseen_leave_s)] + more


@pytest.mark.parametrize("seed", range(4))
def test_time_alone_is_never_overlooked(seed: int) -> None:
    """Every partition with a limit between two steps is dirty after the second, whatever came before it."""
    engine, rng = oe.Engine(), np.random.default_rng(seed)
    start, passed = datetime(2026, 2, 8, 12, tzinfo=UTC), 0
    now = datetime(2026, 2, 8, tzinfo=UTC)
    for _ in range(150):
        board, before = engine.state.board, engine.state.board.moment
        now += timedelta(seconds=float(rng.choice([1.0, 7.0, 7.0, 30.0, 600.0])))
        board.partitions.dirty[:] = 0
        on = board.on()
        due = {
            int(board.rows.partition[slot])
            for slot in on.tolist()
            if any(before <= limit < round(now.timestamp() * 1e6) for limit in _limits(board, slot))
        }
        events = rng.integers(0, 4, rng.integers(0, 3)).tolist()
        quotes = [
            {
                "sportsbook": "abc"[rng.integers(3)], "event_id": f"e{event}", "sport": "tennis", "home_team": "X",
                "away_team": "Y", "market_type": "moneyline", "selection": "X", "odds_decimal": 1.9,
                "last_seen_at": now - timedelta(seconds=int(rng.integers(0, 200))), "is_live": event % 2 == 0,
                "event_start_time": start + timedelta(days=event),
            }
            for event in events
        ]  # fmt: skip
        engine.step((), now)  # time alone
        assert all(board.partitions.dirty[partition] for partition in due)
        passed += len(due)
        engine.step(quotes, now)
    assert passed > 50


def test_what_rows_were_before_a_step_is_the_same_whenever_it_is_read() -> None:
    own: Row = {"event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y", "market_type": "moneyline"}
    books: list[dict[str, Row]] = [
        {"a": {"odds_decimal": 2.0, "deep_link": "one"}, "b": {"odds_decimal": 2.2}, "c": {"odds_decimal": 2.4}},
        {"a": {"odds_decimal": 2.1, "deep_link": "two"}, "b": {"is_active": False}, "d": {"odds_decimal": 2.5}},
        {"a": {"odds_decimal": 2.3}, "b": {"odds_decimal": 2.6}, "d": {"odds_decimal": 2.7}},
    ]
    steps = [[own | {"sportsbook": book, "selection": "X"} | row for book, row in some.items()] for some in books]
    engine, seen = Engine(), []
    for number, rows in enumerate(steps):
        seen.append(engine.step(rows, moment(NOW + number * SECOND), complete=("c",)))
    first, second, third = (update.before for update in seen)
    assert not first.shown.any()
    assert second.shown.tolist() == [True, True, False]
    assert second.odds[:2].tolist() == [2.0, 2.2]
    assert [(link or "").strip("\x1f") for link in second.links[:2]] == ["one", ""]
    assert third.shown.tolist() == [True, False, True]
    assert third.odds[[0, 2]].tolist() == [2.1, 2.5]
    assert [update.removed_shown.tolist() for update in seen] == [[], [True], []]
