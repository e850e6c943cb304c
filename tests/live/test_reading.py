"""Reading the live board: as it was seconds ago, while it is written, after a suspension, after a step that failed."""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from itertools import count
from types import FrameType
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.test_engine import KINDS, SEEDS, WIDE, apply, few, same_frames, tape
from polars.testing import assert_frame_equal
from support.boards import build, unnumbered
from support.hazards import HAZARDS, NOW, SECOND, Row
from support.live_strategies import PAUSES, Feed, Step, feed, moment, row_ids
from support.rows import whatever_is_found

import oddsengine as oe
from oddsengine.board.names import Names
from oddsengine.live import searcher
from oddsengine.live.delayed import DelayedBoard, NotYetError
from oddsengine.live.engine import IDLE_S, Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.readable import Readable
from oddsengine.live.recorder import Recorder
from oddsengine.live.update import Update
from oddsengine.live.view import View


def small(seed: int, pauses: Sequence[float] = PAUSES) -> Feed:
    """A feed over two events and four books."""
    rng = random.Random(seed)
    markets = ["moneyline", *rng.sample(("spread", "total", "props"), 1)]
    return Feed(seed, build(seed, 2, 4, markets, rng.sample(sorted(HAZARDS), 3)), pauses)


# ---- as it was ----


class ReadState(NamedTuple):
    """All that an engine and one view of it show."""

    number: int
    moment: datetime | None
    table: pl.DataFrame
    removed: pl.DataFrame
    events: pl.DataFrame
    ids: dict[str, list[str]]
    found: oe.Opportunities


def shown(engine: Readable, view: View) -> ReadState:
    table, removed = engine.table().sort("row_id"), engine.removed().sort("id")
    ids, found = view.ids(), view.opportunities()
    return ReadState(engine.number, engine.moment, table, removed, engine.events(), ids, found)


def same(ours: ReadState, theirs: ReadState) -> None:
    assert (ours.number, ours.moment) == (theirs.number, theirs.moment)
    for name in ("table", "removed", "events"):
        assert_frame_equal(getattr(ours, name), getattr(theirs, name), check_exact=True)
    assert ours.ids == theirs.ids
    assert ours.found.rejected_counts == theirs.found.rejected_counts
    for kind in KINDS:
        frames = [unnumbered(getattr(each.found, kind)).sort("id") for each in (ours, theirs)]
        assert_frame_equal(*frames, check_exact=True)


@few(12)
@given(SEEDS, st.sampled_from([0.4, 1.0, 5.0, 30.0, 600.0]), st.integers(-1, 3))
def test_delayed_shows_the_past(seed: int, seconds: float, asked: int) -> None:
    """Asked for before the first step or after a few; what was before that is never shown."""
    engine, past = Engine(), list[tuple[int, ReadState]]()
    view = engine.view(**WIDE, keep=True)
    late, late_view = _delayed(engine, seconds) if asked < 0 else (None, None)
    other: tuple[int, View] | None = None  # a view that nobody had before, and since when
    said = small(seed, pauses=(0.0, 0.2, 0.4, 1.0, 4.0, 5.0, 29.0, 30.0, 300.0, 601.0))
    for number, _ in enumerate(tape(said, engine, 6)):
        past.append((said.now, shown(engine, view)))
        if number == asked:
            late, late_view = _delayed(engine, seconds)
        if late is not None and late_view is not None:
            old = [then for at, then in past[max(asked, 0) :] if at <= said.now - round(seconds * SECOND)]
            if old:
                same(shown(late, late_view), old[-1])
            else:
                assert (late.number, late.table().height) == (0, 0)
                with pytest.raises(NotYetError, match="not known yet; ask again in"):
                    late_view.ids()
            if other is None:
                other = said.now, late.view(**WIDE | dict(min_ev=-3.9), keep=True)
            elif other[0] <= said.now - round(seconds * SECOND):
                assert set(other[1].ids()["ev"]) <= set(late_view.ids()["ev"])
            else:
                with pytest.raises(NotYetError):
                    other[1].opportunities()


def _delayed(engine: Engine, seconds: float) -> tuple[DelayedBoard, View]:
    late = engine.delayed(seconds)
    return late, late.view(**WIDE, keep=True)


def test_delayed_by_exactly_so_much() -> None:
    engine = Engine()
    late = engine.delayed(5)
    assert engine.delayed(5) is late
    numbers = []
    for step in (0.0, 4.999999, 5.0, 9.999998, 9.999999, 10.0):
        engine.step([], moment(NOW + round(step * SECOND)))
        numbers.append(late.number)
    assert numbers == [0, 0, 1, 1, 2, 3]
    assert late.now == moment(NOW + 5 * SECOND)


def test_no_step_learns_the_names_of_the_first_batch_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute after the first batch, it would take longer than any other step."""
    engine = Engine()
    late = engine.delayed(5)
    names: list[int] = []
    add = Names.add

    def counted(self: Names, raw_labels: Sequence[Any]) -> None:
        names.append(len(raw_labels))
        add(self, raw_labels)

    monkeypatch.setattr(Names, "add", counted)
    engine.step([price("e", "b", "moneyline", side, 2.0) for side in ("X", "Y")], moment(NOW))
    assert sum(names) == 2
    names.clear()
    engine.step([], moment(NOW + 5 * SECOND))
    assert (late.number, late.size, sum(names)) == (1, 2, 0)
    assert late.table().drop("row_id").equals(engine.table().drop("row_id"))


# ---- while it is written ----

BITS = 6  # of the number of the step, said by which markets hold an arbitrage
LOW, MIDDLING, HIGH = 1.75, 1.85, 2.1
TINY = 0.0001
LINES = 150
GUESTS = 240
OFTEN = 6


def price(event: str, book: str, market: str, selection: str, odds: float, line: float | None = None) -> Row:
    return {
        "event_id": event, "sportsbook": book, "sport": "tennis", "home_team": "Ann", "away_team": "Bea",
        "market_type": market, "selection": selection, "line": line, "odds_decimal": odds,
    }  # fmt: skip


def numbered(number: int) -> list[Row]:
    """A board in which every price says the number of its step."""
    up, rows = TINY * number, []
    for bit in range(BITS):
        best = HIGH if number >> bit & 1 else MIDDLING
        for copy in "ab":
            event = f"{copy}{bit}"
            for book, first, second in (("fanduel", best, LOW), ("draftkings", LOW, best)):
                rows.append(price(event, book, "moneyline", "Ann", first + up))
                rows.append(price(event, book, "moneyline", "Bea", second + up))
    for at in range(LINES):
        for side in ("Over", "Under"):
            rows.append(price("lines", "fanduel", "total_games", side, MIDDLING + up, 10.5 + at))
    return rows


def guests(number: int) -> list[Row]:
    """Rows that are there at every other step."""
    return [
        price("guests", "betmgm", "total_games", "Over", MIDDLING + TINY * number, 10.5 + at) for at in range(GUESTS)
    ]


def number_of(odds: float) -> int:
    base = max(base for base in (LOW, MIDDLING, HIGH) if base <= odds + 1e-9)
    return round((odds - base) / TINY)


def bits_of(events: set[str]) -> int:
    """What the events with an arbitrage say; both copies say the same."""
    first, second = (sum(1 << bit for bit in range(BITS) if f"{copy}{bit}" in events) for copy in "ab")
    assert first == second
    return first


class Written:
    """An engine whose every step changes everything, and what each thing that can be read says of the number."""

    def __init__(self) -> None:
        self.engine = Engine(guards=["stale"])
        self.view = self.engine.view(max_profit=None, keep=True)
        self.hashes: dict[int, str] = {}
        self.engine.step(numbered((1 << BITS) - 1) + guests(1), moment(NOW))
        found = self.view.opportunities().arbitrage
        self.event = {ident[-16:]: event for ident, event in found.select("id", "event_id").iter_rows()}
        self.ids = self.engine.table().filter(pl.col("event_id") == "guests")["row_id"].to_list()
        assert len(self.event) == 2 * BITS

    def write(self) -> None:
        number = self.engine.number + 1
        there = guests(number) if number % 2 else []
        start = moment(NOW + (1_000_000 + number) * SECOND)
        events = [{"event_id": event, "status": "upcoming", "event_start_time": start} for event in ("a0", "b0")]
        removed = [] if number % 2 else self.ids
        self.engine.step(numbered(number) + there, moment(NOW + number * SECOND), removed=removed, events=events)
        self.hashes[number] = self.engine.state_hash()

    # What each reading says of the number: those that it may be, of some.

    def by_table(self, among: range) -> set[int]:
        table = self.engine.table()
        said = {number_of(odds) for odds in table["odds_decimal"]}
        (number,) = said
        assert table.filter(pl.col("event_id") == "guests").height == (GUESTS if number % 2 else 0)
        return said

    def by_ids(self, among: range) -> set[int]:
        events = {self.event[ident] for ident in self.view.ids()["arbitrage"]}
        bits = bits_of(events)
        return {number for number in among if number % (1 << BITS) == bits}

    def by_opportunities(self, among: range) -> set[int]:
        found = self.view.opportunities().arbitrage
        bits = bits_of(set(found["event_id"]))
        said = {number_of(leg["odds_decimal"]) for legs in found["legs"] for leg in legs}
        assert len(said) <= 1
        return {number for number in said or among if number % (1 << BITS) == bits}

    def by_removed(self, among: range) -> set[int]:
        times = self.engine.removed()["removed_at"].to_list()
        assert len(times) in (0, GUESTS)
        if not times:
            return {number for number in among if number % 2}
        (time,) = set(times)
        number = round((time - moment(NOW)).total_seconds())
        assert number % 2 == 0
        return {number}

    def by_events(self, among: range) -> set[int]:
        rows = {row["event_id"]: row for row in self.engine.events().iter_rows(named=True)}
        starts = {rows[event]["event_start_time"] for event in ("a0", "b0")}
        (start,) = starts
        number = round((start - moment(NOW)).total_seconds()) - 1_000_000
        assert ("guests" in rows) == bool(number % 2)
        return {number}


READINGS = ("by_table", "by_ids", "by_opportunities", "by_removed", "by_events")


@contextmanager
def impatient() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_readers_see_whole_updates() -> None:
    """Five readers and one of hashes, while a writer changes everything with every step."""
    written = Written()
    written.write()
    done, failed = threading.Event(), list[BaseException]()
    seen: dict[str, set[int]] = {name: set() for name in READINGS}
    hashes: list[tuple[int, str, int]] = []

    def read(name: str) -> None:
        try:
            while not done.is_set():
                first = written.engine.number
                if name == "hashes":
                    hashes.append((first, written.engine.state_hash(), written.engine.number))
                    continue
                # The number is one more from early in a step on: what is read is of some update from here ...
                ahead = range(first, first + 100_000)
                said = getattr(written, name)(ahead) & set(range(first, written.engine.number + 1))
                assert said, name  # ... to there
                seen[name] |= said
        except BaseException as error:
            failed.append(error)

    readers = [threading.Thread(target=read, args=(name,)) for name in (*READINGS, "hashes")]
    with impatient():
        for reader in readers:
            reader.start()
        for _ in range(390):
            written.write()
            done.wait(0.002)
            if failed or (min(map(len, seen.values())) >= OFTEN and len(hashes) >= OFTEN):
                break
        done.set()
        for reader in readers:
            reader.join()
    if failed:
        raise failed[0]
    assert min(map(len, seen.values())) >= OFTEN
    for first, said, last in hashes:
        assert said in {written.hashes.get(number) for number in range(first, last + 1)}


# ---- after a suspension ----


def searches(act: Callable[[], object]) -> int:
    """How often views are searched meanwhile, each counted."""
    found = 0

    def hear(frame: FrameType, event: str, _: Any) -> None:
        nonlocal found
        if event == "call" and frame.f_code is searcher._find.__code__:
            found += len(frame.f_locals["views"])

    sys.setprofile(hear)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


def as_the_table(engine: Engine, view: View) -> None:
    with whatever_is_found():
        whole = oe.find_all(oe.prepare(engine.table(), now=engine.moment), **WIDE)
    same_frames(view.opportunities(), whole)


@few(10)
@given(SEEDS)
def test_a_view_sleeps_and_wakes(seed: int) -> None:
    engine, said = Engine(), small(seed, pauses=(1.0, 5.0, 10.0, 30.0))
    kept, view = engine.view(keep=True), engine.view(**WIDE)
    apply(engine, said.first())
    view.ids()
    said.now += (IDLE_S + 1) * SECOND
    update = apply(engine, said.step(row_ids(engine.table())))
    assert engine.views == (kept,)
    assert view not in update.views
    for _ in range(4):
        step = said.step(row_ids(engine.table()))
        assert searches(lambda step=step: apply(engine, step)) <= 1  # type: ignore[misc]
    as_the_table(engine, view)
    assert set(engine.views) == {kept, view}
    apply(engine, said.step(row_ids(engine.table())))
    as_the_table(engine, view)


@pytest.mark.parametrize("read", [View.ids, View.opportunities])
def test_when_a_view_falls_asleep(read: Callable[[View], object]) -> None:
    """Five minutes after it was last read; it costs nothing then."""
    engine, said = Engine(), feed(5)
    kept, view = engine.view(**WIDE | {"min_ev": 1.0}, keep=True), engine.view(**WIDE)
    apply(engine, said.first())
    read(view)
    rows = [{**row, "last_seen_at": None, "odds_american": None} for row in said.quoted]
    awake, cost = [], []
    for at in (IDLE_S - 1, 2 * IDLE_S - 2, 2 * IDLE_S, 2 * IDLE_S + 1):
        step = Step(named(rows, odds_decimal=1.8 + 0.0001 * at), moment(NOW + at * SECOND))
        cost.append(searches(lambda step=step: apply(engine, step)))  # type: ignore[misc]
        awake.append(view in engine.views)
        if at == IDLE_S - 1:
            read(view)
    assert awake == [True, True, False, False]
    assert cost == [2, 2, 1, 1]
    engine.close(kept)
    assert searches(lambda: engine.step(rows, moment(NOW + 4 * IDLE_S * SECOND))) == 0
    as_the_table(engine, view)


def test_a_view_that_waits_for_prices() -> None:
    """It is active for the first step, whenever that is."""
    engine = Engine()
    view = engine.view(**WIDE)
    update = apply(engine, feed(5).first())
    assert engine.views == (view,)
    assert view in update.views


def test_a_kept_view_never_sleeps() -> None:
    engine, said = Engine(), feed(3, pauses=(500.0, 700.0))
    view = engine.view(**WIDE, keep=True)
    for _ in tape(said, engine, 6):
        assert engine.views == (view,)
    assert searches(view.ids) == 0
    as_the_table(engine, view)


# ---- after a step that failed ----


class Refuses(Recorder):
    """A recorder whose disk is full."""

    def batch(self, batch: object, slept: Sequence[ViewKey] = ()) -> None:
        raise OSError("no space left on device")


class Held(NamedTuple):
    """All that an engine shows, its moment and its hash too."""

    shown: ReadState
    other: dict[str, list[str]]
    aside: dict[str, int]
    awake: frozenset[ViewKey]
    now: datetime | None
    digits: str


def views(engine: Engine) -> tuple[View, View]:
    """One that is kept, one that may be suspended."""
    return engine.view(**WIDE, keep=True), engine.view()


def held(engine: Engine) -> Held:
    kept, other = (engine.view(**WIDE), engine.view())
    digits = engine.state_hash()
    awake = frozenset(view.wanted for view in engine.views)
    return Held(shown(engine, kept), other.ids(), engine.rejected_counts(), awake, engine.now, digits)


def fails(engine: Engine, step: Step) -> None:
    """A step that is not recorded, and so is not made."""
    full = Refuses()
    engine.record(full)
    digits, number, awake = engine.state_hash(), engine.number, engine.views
    with pytest.raises(OSError, match="no space"):
        apply(engine, step)
    assert (engine.state_hash(), engine.number, engine.views) == (digits, number, awake)
    engine.stop_recording(full)


def alike(ours: Held, theirs: Held) -> None:
    same(ours.shown, theirs.shown)
    assert ours[1:] == theirs[1:]


def decoy(rng: random.Random, step: Step, ids: list[str]) -> Step:
    """Much of what a step says and more: names that nobody else says, removals, snapshots, notices, a long pause."""
    quotes = [dict(row) for row in step.quotes]
    for row in rng.sample(quotes, len(quotes) // 2):
        row[rng.choice(("event_id", "sportsbook", "player_name"))] = f"new {rng.randrange(9)}"
        row["odds_decimal"], row["max_bet"] = 1.0 + rng.random(), 7.0
    later = rng.choice((0, 1, 10, 31, 601, 22_000))
    event, book = (step.quotes[0]["event_id"], step.quotes[0]["sportsbook"]) if step.quotes else ("e", "b")
    events = [{"event_id": event, "status": rng.choice(("ended", "live")), "event_start_time": step.now}]
    complete = rng.choice(([], [(book, None)], [(book, event)]))
    return Step(quotes, moment(NOW) + (step.now - moment(NOW)) + later * _SECOND, ids, complete, events)


_SECOND = moment(SECOND) - moment(0)


def expired(update: Update) -> list[list[int]]:
    return [sorted(change.expired.tolist()) for change in update.views.values()]


@few(16)
@given(SEEDS)
def test_what_fails_never_was(seed: int) -> None:
    """A step fails before each step, with something else; the other engine never hears of it."""
    rng, one, other = random.Random(seed), Engine(), Engine()
    views(one), views(other)
    said = small(seed, pauses=(0.0, 0.4, 1.0, 10.0, 301.0, 601.0))
    step, before = said.first(), held(one)
    for number in count():
        ids = one.table()["row_id"].to_list()
        fails(one, decoy(rng, step, rng.sample(ids, len(ids) // 3)))
        alike(held(one), before)
        ours, theirs = apply(one, step), apply(other, step)
        assert ours.plain() == theirs.plain()
        assert expired(ours) == expired(theirs)
        before = held(one)
        alike(before, held(other))
        if number == 4:
            break
        step = said.step(row_ids(one.table()))


AT = 1100  # seconds, when the steps below fail
LATER = Step([], moment(NOW + (AT + 30) * SECOND))


def at(rows: list[Row], seconds: float = AT, **words: Any) -> Step:
    return Step([{**row, "last_seen_at": None} for row in rows], moment(NOW + round(seconds * SECOND)), **words)


def named(rows: list[Row], **fields: Any) -> list[Row]:
    return [row | fields for row in rows]


def begun() -> tuple[Engine, list[Row], list[str]]:
    """A board with history: two slots were freed, two removals are remembered; its rows, and their ids."""
    engine, rows = Engine(), [dict(row) for row in full()]
    views(engine)
    apply(engine, at(rows, 0))
    ids = engine.table()["row_id"].to_list()
    apply(engine, at([], 1, removed=ids[:2]))
    apply(engine, at(rows[2:], AT - 1))
    apply(engine, at([], AT - 0.9, removed=ids[2:4]))
    return engine, rows, ids


@cache
def full() -> list[Row]:
    """Rows of a board with hazards, which takes longer to make than to read."""
    return feed(FULL, events=2, books=5).first().quotes


FULL = 33
FAILURES: dict[str, Callable[[list[Row], list[str]], Step]] = {
    "prices": lambda rows, ids: at(named(rows, odds_decimal=1.3, odds_american=None)),
    "new rows where others were": lambda rows, ids: at(rows[:2] + named(rows[:1], line=77.5)),
    "new names": lambda rows, ids: at(named(rows[:9], event_id="x") + named(rows[:9], sportsbook="y", max_bet=3.0)),
    "many new rows": lambda rows, ids: at([r for n in range(40) for r in named(rows, event_id=f"x{n}")]),
    "teams turned": lambda rows, ids: at([r | dict(home_team=r["away_team"], away_team=r["home_team"]) for r in rows]),
    "another sport": lambda rows, ids: at(named(rows, sport="chess")),
    "removals": lambda rows, ids: at([], removed=ids[4:]),
    "a snapshot": lambda rows, ids: at(rows[:1], complete=[(row["sportsbook"], None) for row in rows]),
    "a snapshot of an event": lambda rows, ids: at([], complete=[(r["sportsbook"], r["event_id"]) for r in rows[::9]]),
    "notices": lambda rows, ids: at([], AT + 10, events=[{"event_id": r["event_id"], "status": "ended"} for r in rows]),
    "suspended": lambda rows, ids: at(named(rows, is_active=False, odds_decimal=None, odds_american=None)),
    "live": lambda rows, ids: at(named(rows, is_live=True)),
    "bad rows": lambda rows, ids: at(named(rows[:3], odds_decimal=0.5) + named(rows[3:5], deep_link="d")),
    "a second": lambda rows, ids: at([]),
    "stale": lambda rows, ids: at([], AT + 700),
    "views that sleep": lambda rows, ids: at(rows, AT + 302),
    "slots freed": lambda rows, ids: at(rows, AT + 650),
    "all unseen": lambda rows, ids: at([], AT + 30_000),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_each_kind_of_step_may_fail(kind: str) -> None:
    engine, rows, ids = begun()
    other, *_ = begun()
    before = held(engine)
    alike(before, held(other))  # a view that is read is resumed: both have the same active ones
    assert before.shown.ids["low_hold"]
    step = FAILURES[kind](rows, ids)
    fails(engine, step)
    alike(held(engine), before)
    fails(engine, step)
    for following in (LATER, at(rows, AT + 31)):
        assert apply(engine, following).plain() == apply(other, following).plain()
    alike(held(engine), held(other))
    fresh, *_ = begun()
    apply(fresh, step)
    assert fresh.state_hash() != before.digits
