"""The copy of a live board that readers see: equal to the board after every write, and never waited for."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from live.test_interruption import ARB, NOW, interrupted, quote
from support.effort import less, some
from support.stream_running import turned

import oddsengine as oe
from oddsengine.board import state as board_state
from oddsengine.board.codes import Copyable, GrowingColumn
from oddsengine.board.rows import COLUMNS
from oddsengine.identity.layout import FREE
from oddsengine.live import active
from oddsengine.live.delayed import NotYetError
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.readable import Readable
from oddsengine.live.recorder import Recorder
from oddsengine.live.replica import ReadState, Replica
from oddsengine.live.searcher import Searcher
from oddsengine.live.view import View
from oddsengine.query import Index, RowFilter
from oddsengine.simulate import World

PATIENCE_S = 60
CHEAPER = [quote("X", 1.5, "fanduel"), quote("Y", 1.5, "draftkings")]  # no opportunity is left
UNSEEN = {"pending", "close", "record"}  # what only a search needs, and places that may differ
JUDGED = {"reason", "not_reference", "doubt"}


def replica_of(engine: Engine) -> Replica:
    found = engine._readable()
    assert found is not None
    return found


def columns_of(part: Copyable, path: str = "") -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """All columns of names, by path."""
    for name, value in vars(part).items():
        if isinstance(value, GrowingColumn):
            yield f"{path}.{name}", value.values
        elif isinstance(value, Copyable):
            yield from columns_of(value, f"{path}.{name}")


def alike(engine: Engine, *, failed: bool = False) -> None:
    """Everything that a reader can reach is equal on both boards; after a step has failed, the engine judges again."""
    with engine.shown() as shown, engine._lock:
        mine, other = engine.state.board, shown.board
        assert other is not mine
        assert (other.number, other.now, other.moment) == (engine.number, mine.now, mine.moment)
        assert (other.rejected, other.notices.latest) == (mine.rejected, mine.notices.latest)
        held = np.flatnonzero(mine.rows.state[: mine.rows.top] != FREE)
        assert other.rows.top == mine.rows.top
        assert (other.rows.state[: mine.rows.top] == mine.rows.state[: mine.rows.top]).all()
        for name in COLUMNS:
            if name not in UNSEEN and not (failed and name in JUDGED):
                np.testing.assert_array_equal(getattr(other.rows, name)[held], getattr(mine.rows, name)[held], name)
        texts = [{at: text for at, text in enumerate(board.rows.links) if text} for board in (mine, other)]
        assert texts[0] == texts[1]
        np.testing.assert_array_equal(other.rows.find(mine.rows.key[held]), held)
        np.testing.assert_array_equal(other.rows.find_ids(mine.rows.id[held]), held)
        partitions = mine.names.partitions.size
        for partition in range(partitions):
            at = np.array([partition], np.int64)
            assert sorted(other.partitions.slots_of(at)) == sorted(mine.partitions.slots_of(at)), partition
        terms = len(other.names.terms.raw_labels)
        assert other.names.terms.raw_labels == mine.names.terms.raw_labels[:terms]
        assert failed or other.names.numbering is mine.names.terms.raw_labels
        assert other.names.books.values == mine.names.books.values[: len(other.names.books.values)]
        assert int(mine.rows.key[held].max(initial=0)) >> 16 < max(terms, 1)
        mine_columns, other_columns = (dict(columns_of(board.names)) for board in (mine, other))
        assert mine_columns.keys() == other_columns.keys()
        for name, column in other_columns.items():
            np.testing.assert_array_equal(column, mine_columns[name][: column.shape[0]], name)
        assert set(shown.rows) == set(engine._active.active)
        for wanted, row in shown.rows.items():
            ours, theirs = engine._active.active[wanted].open.places(), shown.opened.places(row)
            np.testing.assert_array_equal(theirs, ours)
            for name in ("id", "kind", "partition", "legs", "figures", "detected_at"):
                np.testing.assert_array_equal(
                    getattr(shown.opened, name)[theirs], getattr(engine.state.opened, name)[ours], name
                )
        assert other.momentum.digest() == mine.momentum.digest()


@pytest.mark.parametrize("few", some([40, 65_536], 1))
def test_it_is_equal_after_every_write(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds with all hazards, views that come and go, steps that fail; with `few` small, terms get other codes."""
    monkeypatch.setattr(board_state, "_FEW", few)
    draw = random.Random(few)
    engine = Engine()
    engine.keep_replica()
    copied = replica_of(engine)
    fails = Failing()
    engine.record(fails)
    views: list[View] = []
    compared = failed = renamed = 0
    names = engine.state.board.names
    for day in range(2):
        begin = datetime(2026, 2, 7, 18, tzinfo=UTC) + timedelta(hours=12 * day)
        world = World(
            day + few, events=4, live=0.7, pace=20.0, hazards=True, start=begin,
            books=["pinnacle", "draftkings", "fanduel", "betfair_ex"],
        )  # fmt: skip
        for tick, batch in enumerate(world.run(24)):
            quotes = turned(batch.quotes, draw)
            if tick % 7 == 3:
                fails.next = True
                new = [{**quotes[0], "sportsbook": f"new {tick}", "event_id": f"new {tick}"}] if quotes else []
                with pytest.raises(FailureError):
                    engine.step([*quotes, *new], batch.now, complete=batch.complete, events=batch.events)
                failed += 1
                alike(engine, failed=True)
            with held_up(engine) if tick % 5 == 2 else nothing():  # the writes of several steps are due
                engine.step(quotes, batch.now, complete=batch.complete, events=batch.events)
                engine.step(quotes[:3], batch.now + timedelta(milliseconds=1))
            renamed, names = renamed + (engine.state.board.names is not names), engine.state.board.names
            alike(engine)
            if tick % 6 == 1:
                books = draw.choice([None, ["pinnacle", "fanduel"], ["draftkings", "betfair_ex", "fanduel"]])
                method = draw.choice(["close", "power"])
                views.append(engine.view(books, method=method, min_ev=0.001 * len(views), keep=draw.random() < 0.5))
                alike(engine)
            if tick % 11 == 10:
                views.pop(draw.randrange(len(views))).close()
                alike(engine)
            compared += sum(view.open.places().size for view in engine._active.active.values())
        later = begin + timedelta(hours=6)  # views are suspended, rows leave and are forgotten
        for minutes in (0, 11, 22):
            engine.step(now=later + timedelta(minutes=minutes))
            alike(engine)
    assert replica_of(engine) is copied  # nothing needed a second copy
    assert failed > 4
    assert compared > 100
    assert (renamed > 0) == (few == 40)


class FailureError(Exception):
    pass


class Failing(Recorder):
    """A recorder that fails when it is asked to."""

    def __init__(self) -> None:
        self.next = False

    def batch(self, *_: Any) -> None:
        failing, self.next = self.next, False
        if failing:
            raise FailureError


@contextmanager
def nothing() -> Iterator[None]:
    yield


@contextmanager
def held_up(engine: Readable) -> Iterator[ReadState]:
    """Another thread reads meanwhile."""
    begun, end = threading.Event(), threading.Event()
    seen: list[ReadState] = []

    def read() -> None:
        with engine.shown() as shown:
            seen.append(shown)
            begun.set()
            assert end.wait(PATIENCE_S)

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(PATIENCE_S)
    try:
        yield seen[0]
    finally:
        end.set()
        thread.join()


class Holding(Recorder):
    """A recorder in which a step waits."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()

    def batch(self, *_: Any) -> None:
        self.inside.set()
        assert self.go_on.wait(PATIENCE_S)


def test_readers_do_not_wait_for_a_step() -> None:
    engine = Engine()
    engine.keep_replica()
    view = engine.view(keep=True)
    index = Index(engine)
    engine.step(ARB, NOW)

    def state() -> list[Any]:
        with index.reader(judged=True) as reader:
            best = sorted(reader.take(reader.best(RowFilter(), {})).odds.tolist())
            number = reader.number
        found = view.opportunities()
        return [
            number, engine.number, engine.now, best, engine.size, engine.table()["odds_decimal"].sort().to_list(),
            engine.events()["prices"].to_list(), found.arbitrage["id"].to_list(), found.ev.height, view.counts(),
            view.ids(), engine.rejected_counts(), engine.removed().height, [each.wanted for each in engine.views],
        ]  # fmt: skip

    before, holding = state(), Holding()
    assert before[-2] == 0
    engine.record(holding)
    step = threading.Thread(target=engine.step, args=(CHEAPER, NOW + timedelta(seconds=1)), daemon=True)
    step.start()
    assert holding.inside.wait(PATIENCE_S)
    assert within(state) == before
    assert not engine.busy
    holding.go_on.set()
    step.join(PATIENCE_S)
    after = state()
    assert after[:2] == [2, 2]
    assert after[3] != before[3]
    assert after[7] == []


def test_readers_of_a_delayed_board_do_not_wait_for_a_step() -> None:
    """Nor does keeping its views active."""
    engine = Engine()
    late, holding = engine.delayed(1.0), Holding()
    view = late.view(kinds=["arbitrage"])
    for second in range(3):
        engine.step(ARB, NOW + timedelta(seconds=second))
    engine.record(holding)
    step = threading.Thread(target=engine.step, args=(CHEAPER, NOW + timedelta(seconds=3)), daemon=True)
    step.start()
    assert holding.inside.wait(PATIENCE_S)
    assert within(lambda: (late.number, late.size, view.counts()["arbitrage"])) == (2, 4, 1)
    assert within(lambda: view.opportunities().arbitrage.height) == 1
    assert within(lambda: (late.close(view), view.kept)[1]) == 0  # type: ignore[func-returns-value]
    holding.go_on.set()
    step.join(PATIENCE_S)
    assert late.number == 3


def within(read: Callable[[], Any]) -> Any:
    """What another thread reads; fails if that takes too long."""
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(read()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert out, "the reader waits"
    return out[0]


def test_a_step_does_not_wait_for_readers() -> None:
    engine = Engine()
    engine.keep_replica()
    view = engine.view(keep=True, kinds=["arbitrage"])
    engine.step(ARB, NOW)
    with held_up(engine) as shown:
        assert within(lambda: engine.step(CHEAPER, NOW + timedelta(seconds=1)).number) == 2
        assert engine.number == 2
        assert shown.number == 1
        assert shown.open(view.wanted).places().size == 1
        assert engine.busy
    with engine.shown() as shown:
        assert shown.number == 2
        assert shown.open(view.wanted).places().size == 0


def test_a_read_inside_of_a_read_sees_the_same_update() -> None:
    engine = Engine()
    engine.keep_replica()
    view = engine.view(keep=True)
    engine.step(ARB, NOW)
    with engine.shown() as shown:
        engine.step(CHEAPER, NOW + timedelta(seconds=1))
        assert shown.number == 1
        assert view.counts()["arbitrage"] == 1
        with pytest.raises(RuntimeError, match="cannot be resumed inside of another read"):
            engine.view(["pinnacle"]).opportunities()
    assert view.counts()["arbitrage"] == 0


def test_writes_that_cannot_be_repeated_cost_the_copy_and_not_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.keep_replica()
    view = engine.view(keep=True)
    engine.step(ARB, NOW)
    first = replica_of(engine)
    monkeypatch.setattr(first._shown.opened, "commit", lambda *_: 1 / 0)
    with pytest.warns(RuntimeWarning, match=r"copied again for readers: ZeroDivisionError"):
        update = engine.step(CHEAPER, NOW + timedelta(seconds=1))
    assert (update.number, engine.number) == (2, 2)
    assert len(update.of(view).expired_ids("arbitrage")) == 1
    engine.step(now=NOW + timedelta(seconds=2))
    assert not first._due, "nothing is stored for a copy that nobody will read"
    alike(engine)
    assert replica_of(engine) is not first
    assert view.counts()["arbitrage"] == 0


def test_a_reader_does_not_notice_writes_that_cannot_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.keep_replica()
    view = engine.view(keep=True)
    engine.step(ARB, NOW)
    with held_up(engine):
        engine.step(CHEAPER, NOW + timedelta(seconds=1))
        monkeypatch.setattr(replica_of(engine)._shown.opened, "commit", lambda *_: 1 / 0)
    with pytest.warns(RuntimeWarning, match=r"copied again for readers: ZeroDivisionError"):
        assert view.counts()["arbitrage"] == 0
    alike(engine)


def test_a_delayed_board_that_fails_is_empty_until_it_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs no update."""
    engine = Engine()
    late = engine.delayed(3.0)
    view = late.view(keep=True)
    for second in range(5):
        engine.step([quote("X", 2.1 + second / 100, "fanduel"), *ARB[1:]], NOW + timedelta(seconds=second))
    assert (late.number, late.size, late.failure) == (2, 4, "")
    monkeypatch.setattr(late.replica._shown.opened, "commit", lambda *_: 1 / 0)
    with pytest.warns(RuntimeWarning, match=r"delayed by 3 s is empty until a copy is old enough: ZeroDivisionError"):
        update = engine.step([quote("X", 2.15, "fanduel")], NOW + timedelta(seconds=5))
    assert (update.number, engine.number) == (6, 6)
    for second in range(6, 10):  # the copy is made after the next step, and three seconds old after three more
        assert (late.number, late.now, late.size, late.table().height) == (0, None, 0, 0)
        assert late.failure
        with pytest.raises(NotYetError):
            view.ids()
        engine.step([quote("X", 2.1 + second / 100, "fanduel")], NOW + timedelta(seconds=second))
    assert (late.number, late.now, late.failure) == (7, NOW + timedelta(seconds=6), "")
    assert late.table().filter(sportsbook="fanduel")["odds_decimal"].max() == 2.16
    assert view.counts()["arbitrage"] == 1
    engine.step(now=NOW + timedelta(seconds=10))
    assert late.number == 8


def test_a_delayed_board_that_fails_for_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer learns of it at the next step, whatever it has stored meanwhile."""
    engine = Engine()
    late = engine.delayed(2.0)
    for second in range(4):
        engine.step([quote("X", 2.0 + second / 100)], NOW + timedelta(seconds=second))
    assert late.number == 2
    with held_up(late):
        engine.step([quote("X", 2.04)], NOW + timedelta(seconds=4))
        monkeypatch.setattr(late.replica._shown.board, "repeat", lambda *_: 1 / 0)
    with pytest.warns(RuntimeWarning, match=r"delayed by 2 s is empty"):
        assert late.size == 0
    for second in range(5, 8):
        assert late.number == 0
        engine.step([quote("X", 2.0 + second / 100)], NOW + timedelta(seconds=second))
    assert (late.number, late.size, late.failure) == (6, 1, "")


def test_a_delayed_board_costs_one_search() -> None:
    """It repeats what was found: neither guards nor finders run again, and it has what the board had."""
    engine = Engine()
    late = engine.delayed(60.0)
    engine.keep_replica()
    view, behind = engine.view(keep=True), late.view()
    seen: list[tuple[int, str, dict[str, list[str]]]] = []
    for at, batch in enumerate(World(4, events=4, live=0.5, tick=5.0, hazards=True).run(150.0)):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        seen.append((engine.number, engine.state_hash(), view.ids()))
        if late.number:
            assert (late.number, late.state_hash(), behind.ids()) == seen[at - 12]
    assert late.number > 10


def test_a_step_that_is_interrupted_anywhere_is_shown_whole_or_not_at_all() -> None:
    """At some lines of a step."""
    second: dict[str, Any] = {
        "quotes": [*CHEAPER, quote("Z", 3.0, "new_book", event_id="new", league="other")],
        "now": NOW + timedelta(seconds=31), "complete": [("bet365", None)],
    }  # fmt: skip
    at, seen = 1, set()
    while True:
        engine = Engine()
        engine.keep_replica()
        view = engine.view(keep=True)
        engine.step([*ARB, quote("X", 2.0, "bet365", event_id="other")], NOW)
        stopped = interrupted(engine, at, **second)
        alike(engine, failed=engine.number == 1)
        seen.add(engine.number)
        assert view.counts()["arbitrage"] == (1 if engine.number == 1 else 0)
        if not stopped:
            break
        if engine.number == 1:
            engine.step(**second)
            alike(engine)
        at += less(40, 100)
    assert seen == {1, 2}


def test_a_step_that_is_interrupted_between_its_own_lines_is_shown_by_the_copy() -> None:
    """At every line of the function that makes a step; so also between counting it and keeping its batch."""
    at, seen = 1, set()
    while True:
        engine = Engine()
        engine.keep_replica()
        engine.step([*ARB, quote("X", 2.0, "bet365", event_id="other")], NOW)
        stopped = interrupted(engine, at, Engine._feed, quotes=CHEAPER, now=NOW + timedelta(seconds=31))
        alike(engine, failed=engine.number == 1)
        seen.add(engine.number)
        if not stopped:
            break
        at += 1
    assert seen == {1, 2}
    assert at > 20


def test_rows_without_a_price_are_counted() -> None:
    engine = Engine()
    engine.keep_replica()
    suspended = quote("X", book="new", is_active=False) | {"odds_decimal": None}
    update = engine.step([*ARB, suspended], NOW)
    assert update.rejected["guard"].to_list() == ["bad_price"]
    assert engine.rejected_counts()["bad_price"] == 1
    alike(engine)


def test_a_delayed_board_and_a_restored_one() -> None:
    from oddsengine.live import snapshot

    engine = Engine()
    late = engine.delayed(5.0)
    engine.keep_replica()
    view = late.view(keep=True)
    for second in range(8):
        engine.step([quote("X", 2.1 + second / 100, "fanduel"), *ARB[1:]], NOW + timedelta(seconds=second))
        alike(engine)
    assert late.number == 3
    assert view.counts()["arbitrage"] == 1
    again = oe.Engine()
    again.keep_replica()
    assert again.size == 0
    snapshot.restore(again, snapshot.dump(engine))
    alike(again)
    assert again.size == engine.size == 4


def tennis(event: str, first: float, second: float, books: str = "ab") -> list[dict[str, Any]]:
    """A moneyline at two books; an arbitrage if the prices are above 2 and below."""
    return [
        quote(side, odds, book, event_id=event)
        for book, both in zip(books, ((first, second), (second, first)), strict=False)
        for side, odds in zip("XY", both, strict=True)
    ]


def totals(event: str, sport: str, books: str) -> list[dict[str, Any]]:
    return [
        quote(side, 1.9, book, event_id=event, sport=sport, market_type="total_points", line=5.5, selection_type=side)
        for book in books for side in ("over", "under")
    ]  # fmt: skip


def test_units_of_a_batch_that_failed_are_not_those_of_another_for_the_copies() -> None:
    """The sport of an event changes in a step that fails, which makes partitions; the copies never saw it."""
    engine, fails = Engine(), Failing()
    engine.record(fails)
    engine.keep_replica()
    late, view = engine.delayed(2.0), engine.view(keep=True, kinds=["arbitrage"])
    behind = late.view(kinds=["arbitrage"])
    first = [row | {"sport": "hockey"} for row in tennis("e", 1.9, 1.9)]
    engine.step([*first, *totals("e", "hockey", "a")], NOW)
    assert engine.size == 6
    fails.next = True
    with pytest.raises(FailureError):
        engine.step(totals("e", "basketball", "cdfgh"), NOW + timedelta(seconds=1))
    engine.step(tennis("n", 2.07, 1.9), NOW + timedelta(seconds=2))
    engine.step([], NOW + timedelta(seconds=5))
    for each in (view, behind):
        (ident,) = each.ids()["arbitrage"]
        assert each.opportunities().arbitrage["id"].str.ends_with(ident).to_list() == [True]
    alike(engine)


def test_a_view_that_is_half_awake_when_a_step_is_interrupted_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the board stay in step, and a delayed board shows no update without its opportunities."""
    monkeypatch.setattr(active, "_PART", 2)
    engine = Engine()
    late, one = engine.delayed(2.0), engine.view(keep=True, kinds=["arbitrage"])
    engine.keep_replica()
    behind = late.view(kinds=["arbitrage"], keep=True)
    engine.step([row for at in range(6) for row in tennis(f"e{at}", 2.07, 1.9)], NOW)
    assert engine.size == 24
    other = View(engine, ViewKey.from_parameters(None, None, None, None, ["arbitrage"], min_profit=1.0))
    engine._active.add(other)
    assert not engine._active.advance(other)  # the first part only

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Searcher, "keep", stopped)
        with pytest.raises(KeyboardInterrupt):
            engine.step(tennis("z", 2.07, 1.9), NOW + timedelta(seconds=1))
    assert engine.number == 2
    assert len(other.ids()["arbitrage"]) == len(one.ids()["arbitrage"]) == 7
    found = []
    for second in range(2, 7):
        engine.step(tennis(f"e{second % 6}", 2.05 + second / 100, 1.9), NOW + timedelta(seconds=second))
        assert late.failure == ""
        found.append((late.number, len(behind.ids()["arbitrage"])))
    assert found == [(1, 6), (2, 7), (3, 7), (4, 7), (5, 7)]


def test_views_of_a_delayed_board_are_kept_by_it_alone() -> None:
    engine = Engine()
    late = engine.delayed(600.0)

    def pass_(start: int, end: int, read: Callable[[], object] = lambda: None) -> None:
        for second in range(start, end, 5):
            engine.step(tennis("e", 2.07, 1.9), NOW + timedelta(seconds=second))
            read()

    behind = late.view(kinds=["arbitrage"])
    pass_(0, 605)  # it was told to ask again after so long
    pass_(605, 1300, behind.ids)  # as often as it likes
    live = engine.view(kinds=["arbitrage"])
    live.close()  # a caller of the engine is done with it
    assert live.active
    kept, mine = late.view(kinds=["arbitrage"], keep=True), engine.view(kinds=["arbitrage"], keep=True)
    kept.release()
    assert mine.kept == 1
    mine.release()
    behind.close()
    pass_(1300, 1340)  # nobody reads it for half a minute
    assert not live.active
    assert engine.views == ()


def test_how_long_to_wait_for_a_view_of_the_past() -> None:
    """As long as the younger takes, the board or the view."""
    engine = Engine()
    old = engine.view(keep=True)

    def seconds(view: View) -> int:
        with pytest.raises(NotYetError, match="ask again in") as caught:
            view.ids()
        return caught.value.seconds

    assert seconds(engine.delayed(20.0).view()) == 20  # nothing has happened yet
    for second in range(10):
        engine.step(tennis("e", 2.07, 1.9), NOW + timedelta(seconds=second))
    assert seconds(engine.delayed(20.0).view()) == 11
    late = engine.delayed(60.0)
    assert seconds(late.view()) == 60
    assert old.active
    for second in range(10, 40):
        engine.step(tennis("e", 2.07, 1.9), NOW + timedelta(seconds=second))
    assert seconds(late.view()) == 30
    assert seconds(late.view(min_profit=1.5)) == 60
