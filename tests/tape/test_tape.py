"""The tape: what is written is what is read, a replay is the run, and no crash leaves more than a shorter tape."""

import errno
import io
import json
import os
import pty
import resource
import signal
import struct
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.test_interruption import ARB, NOW
from support import effort
from support.forking import CLI, PIPE, python, ran

import oddsengine as oe
from oddsengine import catalog
from oddsengine.board.event_status import STATUSES
from oddsengine.board.rows import CodedQuotes
from oddsengine.board.serialisation import no_quotes
from oddsengine.board.state import Batch
from oddsengine.columns import NO_TIME
from oddsengine.identity.layout import BOOK_BITS
from oddsengine.identity.raw_labels import RAW_LABEL, RawLabel
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.recorder import Recorder
from oddsengine.live.update import Update
from oddsengine.progress import line
from oddsengine.simulate import World
from oddsengine.simulate.simulated_books import DEFAULT_BOOKS
from oddsengine.tape import Tape, TapeError, TapeStep, TapeWriter, engine_for, play, replay, resume
from oddsengine_cli import main

START = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)
SMALL = {"block_rows": 400, "block_s": 4.0, "sync": "never"}


# ---- any batches at all ----

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
bits = st.integers(-(2**63), 2**63 - 1)
lines = st.none() | st.floats(width=64)
raw_labels: st.SearchStrategy[RawLabel] = st.tuples(*[st.none() | texts] * len(RAW_LABEL), lines)
limits = dict(min_ev=0.0, min_profit=0.5, max_hold=2, min_size=0.0, min_middle_ev=None, max_profit=10.0)
wants = st.sampled_from(
    [
        ViewKey.from_parameters(None, None, "power", None, **limits),
        ViewKey.from_parameters(["FanDuel", "b€t"], ["pinnacle"], "shin", {"fanduel": 0.1}, **limits),
        ViewKey.from_parameters([], {"pinnacle": 3, "circa": 0.1 + 0.2}, "power", None, **{**limits, "min_ev": 1e-300}),
    ]
)
notes = st.lists(st.tuples(st.sampled_from(["wake", "sleep"]), wants), max_size=2)


def column(values: list[int], dtype: type) -> Any:
    """Any bits as numbers, not-a-numbers of all kinds included."""
    return np.array(values, np.int64).view(dtype)


@st.composite
def tapes(draw: st.DrawFn) -> list[TapeStep]:
    """Steps whose codes fit together."""
    steps, terms, books, now = [], 0, 0, draw(st.integers(-(2**40), 2**50))
    for number in range(1, draw(st.integers(0, 6)) + 1):
        new_terms, new_books = draw(st.lists(raw_labels, max_size=3)), draw(st.lists(texts, max_size=2))
        terms, books = terms + len(new_terms), books + len(new_books)
        n = draw(st.integers(0, 4)) if terms and books else 0
        keys = [draw(st.integers(0, terms - 1)) << BOOK_BITS | draw(st.integers(0, books - 1)) for _ in range(n)]

        def some(strategy: st.SearchStrategy[Any], n: int = n) -> list[Any]:
            return draw(st.lists(strategy, min_size=n, max_size=n))

        times = bits | st.just(int(NO_TIME))
        quoted = CodedQuotes(
            np.array(keys, np.int64), column(some(bits), np.float64), column(some(bits), np.float64),
            column(some(times), np.int64), column(some(times), np.int64), column(some(times), np.int64),
            np.array(some(st.integers(0, 255)), np.uint8),
        )  # fmt: skip
        now += draw(st.sampled_from([0, 1, 999_999, 1_000_000, 10**9]))
        batch = Batch(
            now, new_terms, new_books, quoted, some(st.none() | texts),
            np.array(draw(st.lists(st.integers(0, 2**64 - 1), max_size=2)), np.uint64),
            draw(st.lists(st.tuples(texts, st.none() | texts), max_size=2)),
            draw(st.lists(st.tuples(texts, st.sampled_from(STATUSES), bits), max_size=2)),
            draw(st.dictionaries(texts, st.integers(1, 9), max_size=2)),
        )  # fmt: skip
        steps.append(TapeStep(number, batch, draw(notes)))
    return steps


def plain(batch: Batch) -> list[Any]:
    """A batch as values that are equal when every bit is."""
    arrays = [(a.dtype.str, a.tobytes()) for a in (*batch.quoted, batch.removed)]
    terms = [(*w[:-1], None if w[-1] is None else struct.pack("<d", w[-1])) for w in batch.raw_labels]
    order = list(batch.rejected.items())
    return [batch.now, terms, batch.books, arrays, batch.links, batch.complete, batch.events, order]


def write_note(writer: TapeWriter, kind: str, view: ViewKey) -> None:
    if kind == "wake":
        writer.view_resumed(view)
    else:
        writer.view_suspended(view)


@given(tapes(), notes, st.integers(1, 6), st.sampled_from([0.0, 1.0, 1e6]), st.sampled_from([1, 4000, 10**9]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, steps: list[TapeStep], last: list[Any], rows: int, span: float, most: int
) -> None:
    path = tmp_path_factory.mktemp("tape")
    with TapeWriter(path, sync="never", block_rows=rows, block_s=span, segment_bytes=most) as writer:
        for step in steps:
            for kind, wanted in step.notes:
                write_note(writer, kind, wanted)
            writer.batch(step.batch)
        for kind, wanted in last:
            write_note(writer, kind, wanted)
    tape = Tape(path)
    read = list(tape)
    assert [(s.number, plain(s.batch), s.notes) for s in read] == [(s.number, plain(s.batch), s.notes) for s in steps]
    assert tape.closing == last
    assert all(column.flags.writeable for step in read for column in step.batch.quoted)  # as the engine's own are
    assert (tape.steps, tape.last, tape.torn) == (len(steps), len(steps), None)
    assert tape.first == min(1, len(steps))
    assert tape.quotes == sum(step.batch.quoted.key.size for step in steps)
    if steps:
        moments = [(when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
                   for when in (tape.since, tape.until) if when is not None]  # fmt: skip
        assert moments == [steps[0].batch.now, steps[-1].batch.now]


def test_notes_between_two_writers_come_before_the_next_step(tmp_path: Path) -> None:
    a, b = (ViewKey.from_parameters([name], None, "power", None, **limits) for name in "ab")
    for wanted in (a, b):
        with TapeWriter(tmp_path) as writer:
            writer.view_resumed(wanted)
    with TapeWriter(tmp_path) as writer:
        writer.batch(nothing(0))
    (step,) = Tape(tmp_path)
    assert step.notes == [("wake", a), ("wake", b)]
    assert Tape(tmp_path).closing == []


def test_notes_in_a_segment_of_their_own(tmp_path: Path) -> None:
    """A reader who goes on after some step hears what was noted since."""
    a, b = (ViewKey.from_parameters([name], None, "power", None, **limits) for name in "ab")
    for wanted, now in ((a, 0), (b, 1)):
        with TapeWriter(tmp_path, segment_bytes=1) as writer:
            writer.batch(nothing(now))
            writer.flush()
            writer.view_resumed(wanted)
    with TapeWriter(tmp_path, segment_bytes=1) as writer:
        writer.batch(nothing(2))
    tape = Tape(tmp_path)
    assert len(list(tmp_path.glob("*.tape"))) == 5
    assert [step.notes for step in tape] == [[], [("wake", a)], [("wake", b)]]
    assert [step.notes for step in tape.between(after=1)] == [[("wake", a)], [("wake", b)]]


def nothing(now: int) -> Batch:
    """A batch of no quotes."""
    return Batch(now, [], [], no_quotes(), [], np.empty(0, np.uint64), [], [], {})


# ---- runs ----

Given = list[dict[str, Any]]


@pytest.fixture(scope="module")
def world() -> Given:
    """Batches of a small world in which everything goes wrong, with what else a step takes."""
    run = World(11, events=3, hazards=True, pace=20.0, live=0.5, books=effort.some(DEFAULT_BOOKS, 5)).run(60)
    batches: Given = [batch._asdict() for batch in run]
    batches[20]["quotes"] = batches[20]["quotes"] + [{"sportsbook": "a", "event_id": "é"}]
    batches[30]["complete"] = [*batches[30]["complete"], "fanduel"]
    batches[40] = {"quotes": [], "now": batches[40]["now"]}
    return batches


def ask(engine: Engine, step: int) -> None:
    """Let views be resumed and suspended at some steps."""
    if step == 3:
        engine.view(keep=True)
    if step in (10, 45):
        engine.view(["fanduel", "draftkings"], {"pinnacle": 3, "circa": 1}, "shin", commission={"fanduel": 0.01})
    if step == 25:
        engine.close(engine.view(["fanduel", "draftkings"], {"pinnacle": 3, "circa": 1}, "shin",
                                 commission={"fanduel": 0.01}))  # fmt: skip


def told(engine: Engine, update: Update) -> tuple[Any, ...]:
    """All that a step says, and the state after it."""
    seen = {repr(view.wanted): update.json(view) for view in engine.views}
    return update.number, update.json(), seen, update.late, engine.state_hash()


def run(engine: Engine, batches: Given, start: int = 0, **also: Any) -> list[tuple[Any, ...]]:
    """Make the steps of some batches; what each said."""
    said = []
    for at, batch in enumerate(batches[start:], start):
        ask(engine, at)
        said.append(told(engine, engine.step(**batch, **also)))
    return said


def replayed(path: Path, engine: Engine | None = None, until: datetime | None = None) -> list[tuple[Any, ...]]:
    """What each step of a tape says."""
    tape = Tape(path)
    engine = engine_for(tape) if engine is None else engine
    return [told(engine, update) for _, update in play(tape, engine, until=until)]


@pytest.fixture(scope="module")
def taped(world: Given, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[Any, ...]]]:
    """A tape of several segments, and what the engine that was recorded said."""
    path = tmp_path_factory.mktemp("run") / "tape"
    engine, writer = resume(path, segment_bytes=30_000, **SMALL)  # type: ignore[arg-type]
    with writer:
        said = run(engine, world)
    assert len(list(path.glob("*.tape"))) > 3
    assert engine.views
    return path, said


def test_a_replay_says_what_the_run_said(taped: tuple[Path, list[tuple[Any, ...]]]) -> None:
    path, said = taped
    assert replayed(path) == said
    assert any(seen and b'"detected":[{' in next(iter(seen.values())) for _, _, seen, _, _ in said)
    assert sum(late for *_, late, _ in said) > 0


def test_views_that_begin_while_steps_are_made(world: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is searched for in parts, between steps; from then on it says what a replay says, which searches at once."""
    monkeypatch.setattr("oddsengine.live.active._PART", 1)
    books: list[tuple[dict[str, Any], ...]] = [
        tuple(dict(books=some, method=method, min_ev=-4.0, max_hold=9.0) for method in ("close", "power"))
        for some in (["fanduel", "draftkings"], ["pinnacle", "betmgm", "fanduel"], ["circa", "caesars", "draftkings"])
    ]
    engine, said, between = Engine(), [], []
    with TapeWriter(tmp_path, **SMALL) as writer:  # type: ignore[arg-type]
        engine.record(writer)
        engine.view(keep=True)
        stop = threading.Event()

        def begin(wanted: dict[str, Any]) -> None:
            while not stop.is_set():
                before = engine.number
                view = engine.view(**wanted)
                begun = engine.number
                between.append(begun - before)
                while engine.number == begun and not stop.wait(0.001):  # it has a part in a step
                    pass
                engine.close(view)

        threads = [threading.Thread(target=begin, args=(wanted,)) for wanted in (*books[0], *books[1], books[0][0])]
        said.append(by_view(engine.step(**world[0])))
        for thread in threads:
            thread.start()
        for batch in world[1:]:
            said.append(by_view(engine.step(**batch)))
        stop.set()
        for thread in threads:
            thread.join()
        for wanted in books[2]:
            engine.view(**wanted)
        end = engine.state_hash()
    assert max(between) > 0  # steps were made while a view began
    again = Engine()
    assert [by_view(update) for _, update in play(Tape(tmp_path), again)] == said
    assert sum(len(views) > 1 for _, _, views in said) > 10
    assert again.state_hash() == end


def by_view(update: Update) -> tuple[int, bytes, dict[str, bytes]]:
    """All that an update says, to each of its views."""
    return update.number, update.json(), {repr(view.wanted): update.json(view) for view in update.views}


def test_replay_stops_where_it_is_told_and_goes_on(taped: tuple[Path, list[tuple[Any, ...]]]) -> None:
    path, said = taped
    until = START + timedelta(seconds=33)
    engine = replay(Tape(path), until=until)
    assert (engine.now, engine.number, engine.state_hash()) == (until, 34, said[33][-1])
    heard: list[int] = []
    again = replay(Tape(path), engine, on_update=lambda update: heard.append(update.number))
    assert again is engine
    assert heard == list(range(35, len(said) + 1))
    assert engine.state_hash() == said[-1][-1]


def test_times_choose_steps(taped: tuple[Path, list[tuple[Any, ...]]]) -> None:
    path, said = taped
    tape = Tape(path)
    at = [START + timedelta(seconds=s) for s in range(len(said))]
    for a, b in [(0, 60), (10, 20), (45, 45), (59, 200), (-9, 3), (61, 99), (20, 10)]:
        since, until = START + timedelta(seconds=a), START + timedelta(seconds=b)
        expected = [number for number, now in enumerate(at, 1) if since <= now <= until]
        assert [step.number for step in tape.between(since, until)] == expected
    assert [step.number for step in tape.between(after=57)] == [58, 59, 60, 61]


def test_an_engine_from_a_tape_goes_on_as_if_it_had_never_stopped(
    world: Given, tmp_path: Path, taped: tuple[Path, list[tuple[Any, ...]]]
) -> None:
    _, said = taped
    done = 0
    for stop in (1, 20, 21, 61):
        engine, writer = resume(tmp_path, segment_bytes=30_000, **SMALL)  # type: ignore[arg-type]
        assert engine.number == done
        with writer:
            for view in engine.views:
                engine.view(view.wanted.books, view.wanted.reference, view.wanted.method,
                            commission=dict(view.wanted.commission), keep=view.wanted.books is None)  # fmt: skip
            assert run(engine, world[:stop], done) == said[done:stop]
        done = stop
    assert replayed(tmp_path) == said


def test_views_sleep_as_they_slept(tmp_path: Path) -> None:
    """One that nobody reads is suspended in the middle of a step, and resumed when it is read."""
    event = dict(event_id="e", sport="tennis", home_team="X", away_team="Y", market_type="moneyline")
    sides = (("a", "X"), ("b", "Y"))
    rows = [dict(event, sportsbook=book, selection=side, odds_decimal=2.2) for book, side in sides]
    engine, writer = resume(tmp_path)
    said = []
    with writer:
        view = engine.view(["a", "b"])
        engine.view(["a"], keep=True)
        for at in range(16):
            if at == 12:
                assert not view.active
                assert view.ids()["arbitrage"]
            said.append(told(engine, engine.step(rows, START + timedelta(seconds=60 * at))))
    assert {len(seen) for _, _, seen, _, _ in said} == {1, 2}
    assert replayed(tmp_path) == said


def test_views_that_are_there_stay_awake(taped: tuple[Path, list[tuple[Any, ...]]]) -> None:
    path, said = taped
    engine = Engine()
    mine = engine.view(
        ["fanduel", "draftkings"], {"pinnacle": 3, "circa": 1}, "shin", commission={"fanduel": 0.01}, keep=True
    )
    engine.view(keep=True)
    replayed(path, engine)
    assert mine.active
    assert [view for view in engine.views if view is mine]
    assert len(engine.views) == len(said[-1][2])


def test_restored_views_sleep_like_others(taped: tuple[Path, list[tuple[Any, ...]]]) -> None:
    engine = replay(Tape(taped[0]))
    now = engine.now
    assert now is not None
    engine.step(now=now + timedelta(seconds=200))
    assert engine.views
    engine.step(now=now + timedelta(seconds=400))
    assert not engine.views


def test_guards_are_those_of_the_run(world: Given, tmp_path: Path) -> None:
    guards = ["stale", "outlier", "price_mismatch"]
    engine, writer = resume(tmp_path, Engine(guards=guards))
    with writer:
        said = run(engine, world[:12])
    assert replayed(tmp_path) == said
    assert "ladder" in Tape(tmp_path).without
    with pytest.raises(
        TapeError, match=r"recorded with guards disabled: bad_price, other_game, .*the engine has disabled \(none\)"
    ):
        replay(Tape(tmp_path), Engine())
    again, writer = resume(tmp_path)
    writer.close()
    assert again.state_hash() == engine.state_hash()


# ---- what anybody can read ----

HEADER = struct.Struct("<4sHHIIIIIQqq4I")


def blocks(path: Path) -> list[tuple[int, int]]:
    """Where the blocks of a segment begin and end, read by its description."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        fields = HEADER.unpack_from(data, at)
        assert fields[0] == b"tape"
        end = at + HEADER.size + sum(fields[-4:])
        found.append((at, end))
        at = end
    return found


def tables(path: Path) -> Iterator[list[pl.DataFrame]]:
    """The four tables of each block."""
    for segment in sorted(path.glob("*.tape")):
        data = segment.read_bytes()
        for start, _ in blocks(segment):
            at, found = start + HEADER.size, []
            for size in HEADER.unpack_from(data, start)[-4:]:
                found.append(pl.read_ipc_stream(io.BytesIO(data[at : at + size])))
                at += size
            yield found


def test_polars_reads_it(world: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes mean what the tables say, also after the engine counted its terms anew."""
    monkeypatch.setattr("oddsengine.board.state._FEW", 8)
    engine, writer = resume(tmp_path, **SMALL)  # type: ignore[arg-type]
    expected = []
    with writer:
        for at, batch in enumerate(world[:36]):
            ask(engine, at)
            part, rest = divmod(at, 6)  # of a part, all leave when the next begins, and are forgotten at the one after
            rows = [{**row, "event_id": f"{row['event_id']} {part}"} for row in batch["quotes"]]
            gone = list(engine.table()["sportsbook"].unique()) if not rest else []
            engine.step(rows, batch["now"] + timedelta(seconds=700 * part), complete=gone)
            expected += [(at + 1, row["sportsbook"], row["event_id"], row["market_type"], row["selection"])
                         for row in rows if "selection" in row]  # fmt: skip
        said = engine.state_hash()
    found: list[Any] = []
    meaning: dict[int, Any] = {}
    books: dict[int, str] = {}
    again = 0
    for quotes, terms, new_books, _ in tables(tmp_path):
        named = terms.rows_by_key("step", named=True)
        books |= dict(new_books.select("code", "name").iter_rows())
        for (number,), rows_ in quotes.group_by("step", maintain_order=True):
            for term in named.get(number, []):
                meaning[term["code"]] = term
                again += not term["new"]
            for term, book in rows_.select("term", "book").iter_rows():
                t = meaning[term]
                found.append((number, books[book], t["event_id"], t["market_type"], t["selection"]))
    assert found == expected
    assert again > 0
    assert replay(Tape(tmp_path)).state_hash() == said


# ---- crashes ----

CHILD = """
import sys, zlib
from oddsengine.simulate import World
from oddsengine.tape import resume
engine, writer = resume(sys.argv[1], sync="block", block_rows=300, block_s=2.0, segment_bytes=60_000)
engine.view(keep=True)
for batch in World(5, events=3, hazards=True).run(10_000):
    if engine.number == 3:
        other = engine.view(["fanduel"], ["pinnacle"], "shin")
    if engine.number == 9:
        engine.close(other)
    update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    said = [zlib.crc32(update.json(view)) for view in (None, *engine.views)]
    print(engine.number, writer.written, engine.state_hash(), *said, flush=True)
"""


@pytest.mark.parametrize("steps", effort.some([12, 45], 1))
def test_killed_in_the_middle(tmp_path: Path, steps: int) -> None:
    """All that the killed run said of the steps that are on its tape, their replay says."""
    path = tmp_path / "tape"
    with python(CHILD, str(path), stdout=PIPE) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(steps)]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    run = [text.split() for text in lines if text.endswith("\n")]
    tape = Tape(path)
    assert tape.last >= int(run[-1][1]) > 0
    assert len(run) + 1 >= tape.last == tape.steps
    assert steps == 12 or len(list(path.glob("*.tape"))) > 2
    engine = engine_for(tape)
    again = []
    for _, update in play(tape, engine):
        said = [zlib.crc32(update.json(view)) for view in (None, *engine.views)]
        again.append([engine.state_hash(), *map(str, said)])
    assert len(again) == tape.last
    theirs = [words[2:] for words in run]
    assert again[: len(run)] == theirs[: tape.last]
    assert {len(words) for words in theirs} == {3, 4}
    engine, writer = resume(path)
    with writer:
        engine.step(now=engine.now)
    assert Tape(path).last == tape.last + 1


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, list[str]]:
    """A tape of three blocks with a step each, and the state after each."""
    path = tmp_path / "small"
    engine, writer = resume(path, block_s=0.0, sync="never")
    hashes = []
    with writer:
        engine.view(keep=True)
        for at in range(3):
            row = dict(sportsbook=f"b{at}", event_id="e", market_type="moneyline", selection="é", odds_decimal=2.0 + at)
            engine.step([row], START + timedelta(seconds=at))
            hashes.append(engine.state_hash())
    assert len(blocks(path / "00000001.tape")) == 3
    return path, hashes


@pytest.mark.parametrize("listed", [True, False])
def test_cut_anywhere_in_the_last_block(small: tuple[Path, list[str]], listed: bool) -> None:
    path, hashes = small
    file = path / "00000001.tape"
    start, end = blocks(file)[-1]
    assert end == file.stat().st_size
    assert replay(Tape(path)).state_hash() == hashes[2]
    if not listed:
        (path / "catalogue.json").unlink()
    for cut in reversed(some(start, end)):
        os.truncate(file, cut)
        tape = Tape(path)
        assert (tape.steps, tape.last) == (2, 2)
        if cut == start and not listed:
            assert tape.torn is None
            continue
        assert tape.torn is not None
        assert tape.torn.startswith(f"{file} is torn at byte {start:,}")
        assert (f"the {cut - start:,} bytes from there are not a complete block" in tape.torn) == (cut > start)
        assert ("catalogue.json knows of 1 steps more" in tape.torn) == listed
        if cut % 50 == 0:
            assert len(list(tape)) == 2
    assert replay(Tape(path)).state_hash() == hashes[1]


def some(start: int, end: int) -> list[int]:
    """All bytes of a block's header and of its end, and some of what is between."""
    return [at for at in range(start, end) if at < start + HEADER.size or at % 5 == 0 or at > end - 20]


def test_any_byte_of_the_last_block(small: tuple[Path, list[str]]) -> None:
    path, _ = small
    file = path / "00000001.tape"
    start, end = blocks(file)[-1]
    for at in some(start, end):
        with wrong(file, at):
            tape = Tape(path)
        assert tape.steps == 2, at
        assert tape.torn
    assert Tape(path).steps == 3


@contextmanager
def wrong(path: Path, at: int) -> Iterator[None]:
    """A file with one byte wrong."""
    with path.open("r+b", buffering=0) as file:
        byte = os.pread(file.fileno(), 1, at)
        os.pwrite(file.fileno(), bytes([byte[0] ^ 0x41]), at)
        yield
        os.pwrite(file.fileno(), byte, at)


@pytest.mark.parametrize("listed", [True, False])
def test_any_byte_in_the_middle(small: tuple[Path, list[str]], listed: bool) -> None:
    path, _ = small
    file = path / "00000001.tape"
    if not listed:
        (path / "catalogue.json").unlink()
    for start, end in blocks(file)[:2]:
        for at in some(start, end):
            said = r"has format version \d+;" if at in (4, 5) else f"{file} is damaged at byte {start:,}: "
            with wrong(file, at), pytest.raises(TapeError, match=said):
                Tape(path)
    assert Tape(path).steps == 3


def test_zeros_at_the_end_are_torn_and_zeros_in_the_middle_are_damage(small: tuple[Path, list[str]]) -> None:
    path, hashes = small
    file = path / "00000001.tape"
    data = file.read_bytes()
    file.write_bytes(data + bytes(5000))
    tape = Tape(path)
    assert tape.torn == f"{file} is torn at byte {len(data):,}: the 5,000 bytes from there are not a complete block"
    assert replay(tape).state_hash() == hashes[2]
    start, end = blocks_of(data)[1]
    file.write_bytes(data[:start] + bytes(end - start) + data[end:])
    with pytest.raises(TapeError, match=f"damaged at byte {start:,}: valid blocks follow at byte {end:,}"):
        Tape(path)
    file.write_bytes(data[:start] + data[end:])
    with pytest.raises(TapeError, match=r"continues with step 3 at byte .*, after step 1"):
        Tape(path)


def blocks_of(data: bytes | bytearray) -> list[tuple[int, int]]:
    at, found = 0, []
    while at < len(data):
        end = at + HEADER.size + sum(HEADER.unpack_from(data, at)[-4:])
        found.append((at, end))
        at = end
    return found


def test_another_form_of_the_format(small: tuple[Path, list[str]]) -> None:
    path, _ = small
    file = path / "00000001.tape"
    data = bytearray(file.read_bytes())
    data[4] = 9
    file.write_bytes(data)
    (path / "catalogue.json").unlink()
    with pytest.raises(TapeError, match="format version 9; this version of oddsengine reads version 1"):
        Tape(path)
    assert zlib.crc32(data[12 : blocks_of(data)[0][1]]) == struct.unpack_from("<I", data, 8)[0]


def test_damage_in_a_segment_that_was_closed(taped: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path) -> None:
    """It is found when the tape is read, at the latest; without the catalogue, when it is opened."""
    path = copied(taped[0], tmp_path)
    file = path / "00000002.tape"
    data = file.read_bytes()
    for at in (3, 9, 20, 30, 60, 70, len(data) // 2, len(data) - 1):
        with wrong(file, at), pytest.raises(TapeError, match=r"00000002.tape"):
            list(Tape(path))
    file.write_bytes(data[:-1])
    with pytest.raises(TapeError, match=r"catalogue.json says that 00000002.tape has .* one of them is damaged"):
        Tape(path)
    (path / "catalogue.json").unlink()
    with pytest.raises(TapeError, match=r"00000002.tape is damaged at byte .*, but it is not the last segment"):
        Tape(path)
    file.write_bytes(data)
    assert Tape(path).steps == len(taped[1])


def copied(path: Path, where: Path) -> Path:
    out = where / "copy"
    out.mkdir()
    for file in path.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    return out


def test_missing_segments(taped: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path) -> None:
    path = copied(taped[0], tmp_path)
    names = sorted(file.name for file in path.glob("*.tape"))
    last = (path / names[-1]).read_bytes()
    (path / names[-1]).unlink()
    with pytest.raises(TapeError, match=f"{names[-1]} is missing, but listed in catalogue.json"):
        Tape(path)
    (path / names[-1]).write_bytes(last)
    second = (path / names[1]).read_bytes()
    (path / names[1]).unlink()
    with pytest.raises(TapeError, match=f"{names[1]} is missing, but {names[2]} exists"):
        Tape(path)
    (path / names[1]).write_bytes((path / names[2]).read_bytes())
    (path / "catalogue.json").unlink()
    with pytest.raises(TapeError, match=f"{names[1]} continues with step"):
        Tape(path)
    (path / names[1]).write_bytes(second)
    assert replayed(path) == taped[1]


# ---- the catalogue ----


def test_the_catalogue_lists_segments(taped: tuple[Path, list[tuple[Any, ...]]]) -> None:
    path, said = taped
    listed = json.loads((path / "catalogue.json").read_text())["segments"]
    assert [entry["file"] for entry in listed] == sorted(file.name for file in path.glob("*.tape"))
    assert [entry["bytes"] for entry in listed] == [(path / entry["file"]).stat().st_size for entry in listed]
    assert all(b["first"] == a["last"] + 1 for a, b in pairwise(listed))
    assert (listed[0]["first"], listed[-1]["last"]) == (1, len(said))
    assert sum(entry["steps"] for entry in listed) == len(said)
    assert listed[0]["first_now"] == round(START.timestamp() * 1e6)
    assert all(entry["bytes"] <= 30_000 or len(blocks(path / entry["file"])) == 1 for entry in listed)


def test_a_catalogue_that_lags_or_is_lost(taped: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path) -> None:
    path = copied(taped[0], tmp_path)
    whole = json.loads((path / "catalogue.json").read_text())
    expected = Tape(path)
    for kept in range(len(whole["segments"]) + 1):
        (path / "catalogue.json").write_text(json.dumps({**whole, "segments": whole["segments"][:kept]}))
        tape = Tape(path)
        assert (tape.steps, tape.quotes, tape.size, tape.until) == (
            expected.steps, expected.quotes, expected.size, expected.until
        )  # fmt: skip
        assert tape.torn is None
    (path / "catalogue.json").unlink()
    assert Tape(path).steps == expected.steps
    TapeWriter(path).close()
    assert json.loads((path / "catalogue.json").read_text()) == whole


def test_a_catalogue_of_the_last_segment_half_way(small: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, _ = small
    file = path / "00000001.tape"
    whole = json.loads((path / "catalogue.json").read_text())
    half = tmp_path / "half"
    half.mkdir()
    data = file.read_bytes()
    (half / file.name).write_bytes(data[: blocks(file)[1][1]])
    TapeWriter(half).close()
    then = json.loads((half / "catalogue.json").read_text())
    assert then["segments"][0]["last"] == 2
    (half / file.name).write_bytes(data)
    assert Tape(half).steps == 3
    TapeWriter(half).close()
    assert json.loads((half / "catalogue.json").read_text()) == whole


@pytest.mark.parametrize(
    ("name", "value"), [("first", 2), ("last", 2), ("steps", 9), ("quotes", 9), ("bytes", 99), ("terms", 9)]
)
def test_a_catalogue_that_contradicts(small: tuple[Path, list[str]], name: str, value: int) -> None:
    path, _ = small
    file = path / "catalogue.json"
    whole = json.loads(file.read_text())
    whole["segments"][0][name] = value
    file.write_text(json.dumps(whole))
    with pytest.raises(TapeError, match="one of them is damaged"):
        Tape(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"segments": 3}', '{"segments": [{"file": "x"}]}', "\x00" * 40])
def test_a_catalogue_that_does_not_read(small: tuple[Path, list[str]], text: str) -> None:
    path, _ = small
    (path / "catalogue.json").write_text(text)
    with pytest.raises(TapeError, match=r"catalogue.json cannot be read"):
        Tape(path)
    with pytest.raises(TapeError, match=r"catalogue.json cannot be read"):
        TapeWriter(path)


def test_no_tape(tmp_path: Path) -> None:
    with pytest.raises(TapeError, match="there is no tape at"):
        Tape(tmp_path / "none")
    (tmp_path / "notes.txt").write_text("mine")
    for open_ in (Tape, TapeWriter):
        with pytest.raises(TapeError, match=r"is not a tape: it has no segments and no catalogue.json"):
            open_(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_tape(tmp_path: Path) -> None:
    TapeWriter(tmp_path / "t").close()
    tape = Tape(tmp_path / "t")
    assert (tape.steps, tape.quotes, tape.first, tape.last, tape.since, tape.until) == (0, 0, 0, 0, None, None)
    assert (list(tape), tape.closing, tape.torn, tape.without) == ([], [], None, ())
    assert replay(tape).number == 0
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "catalogue.json.new").write_text("{")  # a crash at the very beginning
    TapeWriter(tmp_path / "u").close()
    assert Tape(tmp_path / "u").steps == 0


# ---- writing ----


def test_writing_goes_on_after_a_torn_end(
    taped: tuple[Path, list[tuple[Any, ...]]], world: Given, tmp_path: Path
) -> None:
    path = copied(taped[0], tmp_path)
    (path / "catalogue.json").unlink()
    file = sorted(path.glob("*.tape"))[-1]
    file.write_bytes(file.read_bytes()[:-7])
    assert Tape(path).torn
    engine, writer = resume(path, segment_bytes=30_000, **SMALL)  # type: ignore[arg-type]
    assert writer.torn
    assert writer.torn.startswith(f"{file} is torn at byte ")
    assert Tape(path).torn is None
    done = engine.number
    assert 0 < done < len(world)
    with writer:
        engine.view(keep=True)
        assert run(engine, world, done) == taped[1][done:]
    assert replayed(path) == taped[1]


@pytest.mark.parametrize("block", [0, 2])
def test_steps_that_the_catalogue_knows_of_are_kept_in_a_file_of_their_own(
    small: tuple[Path, list[str]], block: int
) -> None:
    """A disk error in a block makes the rest of a tape unreadable; it is not overwritten."""
    path, hashes = small
    file = path / "00000001.tape"
    start, _ = blocks(file)[block]
    data = bytearray(file.read_bytes()[: blocks(file)[block][1]])
    listed = (path / "catalogue.json").read_bytes()
    data[start + HEADER.size + 5] ^= 1
    for n in (1, 2):
        file.write_bytes(data)
        (path / "catalogue.json").write_bytes(listed)
        engine, writer = resume(path)
        writer.close()
        assert engine.number == block
        aside = path / f"00000001.damaged{n}"
        assert aside.read_bytes() == data
        assert writer.torn
        assert writer.torn.endswith(f"catalogue.json knows of {3 - block} steps more; a copy is {aside.name}")
        assert Tape(path).last == block
    assert len(hashes) == 3


def test_a_disk_that_is_full_takes_the_step_back(world: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a block ends in its middle or is found missing afterwards; the next is written where it belongs."""
    engine, writer = resume(tmp_path, block_s=2.0, segment_bytes=60_000)
    free, limits = os.fsync, resource.getrlimit(resource.RLIMIT_FSIZE)
    failures = []

    def full(number: int) -> None:
        raise OSError(28, "No space left on device", number)

    def state() -> tuple[Any, ...]:
        segment = max(tmp_path.glob("*.tape"), default=None)
        return engine.number, engine.state_hash(), writer.size, segment and segment.stat().st_size

    with writer:
        for at, batch in enumerate(world[:30]):
            ask(engine, at)
            if at % 3 == 2:
                before = state()
                if at % 2:
                    resource.setrlimit(resource.RLIMIT_FSIZE, ((before[-1] or 0) + 100, limits[1]))
                else:
                    monkeypatch.setattr(os, "fsync", full)
                try:
                    engine.step(**batch)
                except OSError as error:
                    failures.append(error.errno)
                    engine_, hash_, size, on_disk = state()
                    assert (engine_, hash_, size) == before[:3]
                    assert on_disk in (before[-1], 0)  # the next segment may have been begun
                    again = True
                else:
                    again = False
                finally:
                    monkeypatch.setattr(os, "fsync", free)
                    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                if not again:
                    continue
            engine.step(**batch)
        said = engine.state_hash()
    assert set(failures) == {errno.ENOSPC, errno.EFBIG}
    assert len(list(tmp_path.glob("*.tape"))) > 1
    assert (Tape(tmp_path).last, Tape(tmp_path).torn) == (engine.number, None)
    assert engine.number == 30
    assert replay(Tape(tmp_path)).state_hash() == said


class Unwilling(Recorder):
    """A recorder that fails now and then."""

    def __init__(self) -> None:
        self.fails = False

    def batch(self, _: Batch, suspended: Sequence[ViewKey] = ()) -> None:
        if self.fails:
            raise RuntimeError("no")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("rows", effort.some([1, 1000, 10**9], 2))
def test_steps_that_were_taken_back_are_not_on_the_tape(world: Given, tmp_path: Path, first: bool, rows: int) -> None:
    """Nor are the names they taught lost, whichever recorder failed, and whether the step was written or waits."""
    engine, other = Engine(), Unwilling()
    if first:
        engine.record(other)
    _, writer = resume(tmp_path, engine, block_s=1e9, block_rows=rows, segment_bytes=30_000, sync="never")
    if not first:
        engine.record(other)
    said = []
    with writer:
        for at, batch in enumerate(world[:29]):
            ask(engine, at)
            other.fails = at % 4 == 0
            if other.fails:
                with pytest.raises(RuntimeError):
                    engine.step(**batch)
            if at % 8 != 0:
                other.fails = False
                said.append(told(engine, engine.step(**batch)))
        other.fails = True
        with pytest.raises(RuntimeError):
            engine.step(**world[29])
    assert len(said) == engine.number == 25
    assert replayed(tmp_path) == said


def test_a_view_that_did_not_sleep_after_all(tmp_path: Path) -> None:
    """The step it was to be suspended in was taken back, and it was read before the next."""
    engine, other = Engine(), Unwilling()
    _, writer = resume(tmp_path, engine)
    engine.record(other)
    said = []
    with writer:
        said.append(told(engine, engine.step(now=START)))
        view = engine.view(["a"])
        other.fails = True
        with pytest.raises(RuntimeError):
            engine.step(now=START + timedelta(seconds=400))
        assert view.active
        other.fails = False
        for seconds in (200, 400):
            view.ids()
            said.append(told(engine, engine.step(now=START + timedelta(seconds=seconds))))
            assert view.active
    assert replayed(tmp_path) == said


def test_texts_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    """Before anything of their batch is kept, so that they are in nobody's way."""
    bad = "\ud800"
    good = nothing(0)
    with TapeWriter(tmp_path) as writer:
        writer.batch(good)
        for batch in (
            good._replace(complete=[("a", bad)]), good._replace(events=[(bad, "live", 0)]),
            good._replace(rejected={bad: 1}), good._replace(links=[None, bad]), good._replace(books=["a", bad]),
            good._replace(raw_labels=[("e", bad, *[None] * 10, 1.0)]),
        ):  # fmt: skip
            with pytest.raises(UnicodeEncodeError):
                writer.batch(batch)
        writer.batch(good)
    assert [plain(step.batch) for step in Tape(tmp_path)] == [plain(good)] * 2


def test_an_engine_that_is_not_where_the_tape_ends(small: tuple[Path, list[str]]) -> None:
    path, _ = small
    engine = Engine()
    with TapeWriter(path) as writer, pytest.raises(TapeError, match="ends with step 3, and the engine is at step 0"):
        writer.follow(engine)
    for at in range(3):
        engine.step(now=START + timedelta(seconds=at))
    with TapeWriter(path) as writer, pytest.raises(TapeError, match="of something else"):
        writer.follow(engine)
    engine.step(now=START + timedelta(seconds=9))
    with pytest.raises(TapeError, match="ends with step 3, and the engine is at step 4"):
        resume(path, engine)


def test_two_writers(tmp_path: Path) -> None:
    """The second is told so, and cuts nothing off that the first is about to end."""
    engine, first = resume(tmp_path, block_s=0.0)
    with first:
        engine.step(now=START)
        with pytest.raises(TapeError, match="is being written by another process"):
            TapeWriter(tmp_path)
        assert Tape(tmp_path).steps == 1
        engine.step(now=START)
    with pytest.raises(TapeError, match="is closed"):
        first.batch(nothing(0))
    resume(tmp_path)[1].close()
    assert Tape(tmp_path).steps == 2


def test_a_file_that_somebody_else_wrote_to(tmp_path: Path) -> None:
    engine, writer = resume(tmp_path, block_s=0.0)
    engine.step(now=START)
    with (tmp_path / "00000001.tape").open("ab") as file:
        file.write(b"x")
    with pytest.raises(TapeError, match="was changed by another process"):
        engine.step(now=START)
    assert engine.number == 1
    writer.close()


def test_parameters(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sync must be one of block, segment, never, got 'always'"):
        TapeWriter(tmp_path, sync="always")


@pytest.mark.parametrize(("sync", "least", "most"), [("block", 20, 40), ("segment", 5, 12), ("never", 0, 0)])
def test_how_often_it_is_put_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str, least: int, most: int
) -> None:
    calls: list[None] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: calls.append(fsync(number)))
    with TapeWriter(tmp_path, sync=sync, block_s=0.0) as writer:
        for at in range(20):
            writer.batch(nothing(at))
    assert least <= len(calls) <= most


# ---- the command line ----

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit status, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        status = main(words)
        return (status, *capsys.readouterr())

    return call


def as_lines(batches: Given) -> str:
    return "".join(json.dumps({k: v for k, v in b.items() if v}, default=str) + "\n" for b in batches)


def test_record_and_replay(world: Given, tmp_path: Path, command: Run) -> None:
    """From a file, then from standard input; a replay has the same state, and the updates of the run."""
    file, tape, updates = tmp_path / "batches.ndjson", tmp_path / "t", tmp_path / "u.ndjson"
    file.write_text(as_lines(world[:20]), encoding="utf-8")
    status, out, err = command("record", str(tape), "--from", str(file))
    assert (status, err) == (0, "")
    assert out.startswith("20 batches with ")
    done = ran(CLI, "record", str(tape), "--from", "-", given=as_lines(world[20:35]))
    assert done.returncode == 0
    assert done.stdout.startswith("15 batches with ")
    assert f"{tape}: 35 steps, " in done.stdout
    assert "2026-02-07T18:00:00Z to 2026-02-07T18:00:34Z" in done.stdout
    engine = Engine()
    view = engine.view(keep=True)
    said = [engine.step(**batch).json(view) for batch in world[:35]]
    assert done.stdout.endswith(f"state hash {engine.state_hash()}\n")
    status, out, err = command("replay", str(tape), "--updates", str(updates))
    assert (status, err) == (0, "")
    assert updates.read_bytes().splitlines() == said
    assert f"{engine.table().height:,} prices on the board; " in out
    assert " 1 refused: missing_value 1\n" in out
    counts = ", ".join(f"{kind} {len(ids)}" for kind, ids in view.ids().items())
    assert f"open over all books (close): {counts}\n" in out
    assert out.endswith(f"state hash {engine.state_hash()}\n")


def test_replay_of_a_part(taped: tuple[Path, list[tuple[Any, ...]]], command: Run) -> None:
    path, said = taped
    words = ("--from", "2026-02-07T18:00:10Z", "--to", "2026-02-07T18:00:20", "--updates", "-", "--json")
    status, out, err = command("replay", str(path), *words)
    assert status == 0
    assert [json.loads(text)["number"] for text in out.splitlines()] == list(range(11, 22))
    facts = json.loads(err)
    assert (facts["steps"], facts["shown"], facts["state_hash"]) == (21, 11, said[20][-1])
    assert (facts["since"], facts["until"]) == ("2026-02-07T18:00:00Z", "2026-02-07T18:00:20Z")
    assert [view["method"] for view in facts["views"]] == ["close", "shin"]
    assert facts["torn"] is None
    assert command("replay", str(path), "--to", "2020-01-01")[1].startswith("0 steps, 0 quotes; ")


def test_replay_keeps_pace(small: tuple[Path, list[str]], command: Run) -> None:
    began = time.monotonic()
    assert command("replay", str(small[0]), "--speed", "8")[0] == 0
    assert 0.25 <= time.monotonic() - began < 1.5


def test_replay_says_that_the_tape_was_torn(small: tuple[Path, list[str]], command: Run) -> None:
    path, hashes = small
    file = path / "00000001.tape"
    file.write_bytes(file.read_bytes()[:-1])
    status, out, _ = command("replay", str(path))
    assert status == 0
    assert out.splitlines()[-2] == f"state hash {hashes[1]}"
    assert out.splitlines()[-1].startswith(f"torn: {file} is torn at byte ")
    status, out, err = command("record", str(path), "--simulate", "1", "--seconds", "0")
    assert status == 0
    assert err.startswith(f"oddsengine record: {file} is torn at byte ")
    assert err.endswith("; the incomplete end was removed\n")
    assert command("record", str(path), "--simulate", "1", "--seconds", "0")[2] == ""


def test_record_a_simulation_in_two_parts(tmp_path: Path, command: Run) -> None:
    words = ("--simulate", "7", "--events", "2", "--hazards")
    assert command("record", str(tmp_path / "a"), *words, "--seconds", "12")[0] == 0
    _, out, _ = command("record", str(tmp_path / "b"), *words, "--seconds", "5", "--sync", "never")
    assert out.startswith("6 batches with ")
    _, out, _ = command("record", str(tmp_path / "b"), *words, "--seconds", "12")
    assert out.startswith("7 batches with ")
    a, b = (replay(Tape(tmp_path / name)).state_hash() for name in "ab")
    assert a == b


ROW = '{"sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "x", "odds_decimal": 2}'
FIRST = f'{{"now": "2026-02-08T18:00:00Z", "quotes": [{ROW}]}}\n\n'
BAD_LINES = [
    ("{", "line 3 is not a batch (Input data was truncated): {"),
    ("[1]", "line 3 is not a batch (Expected `object`, got `array`): [1]"),
    ('{"nwo": 1}', "line 3 is not a batch (Object contains unknown field `nwo`)"),
    ('{"now": "soon"}', "line 3 is not a batch (Invalid RFC3339 encoded datetime - at `$.now`)"),
    ('{"now": "2026-02-08T17:00:00Z"}', "line 3: now must not go back"),
    ('{"quotes": 3}', "line 3: quotes must be a list of mappings"),
    ('{"removed": ["x"]}', "line 3: removed must be row ids"),
    ('{"complete": [["a", "e", "x"]]}', "line 3 is not a batch (Expected `array` of length 2"),
    ('{"events": [{"event_id": "e", "status": "over"}]}', "line 3: status of e must be one of"),
    ('{"events": [{"event_id": "e", "status": "live", "event_start_time": "soon"}]}', "line 3: "),
    ('"' + "é" * 200 + '"', "..."),
    ("\udcff\udcfe", "line 3 is not a batch"),
]


@pytest.mark.parametrize(("text", "said"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_ends_it_and_what_came_before_is_kept(tmp_path: Path, command: Run, text: str, said: str) -> None:
    file = tmp_path / "b.ndjson"
    file.write_text(FIRST + text + "\n" + FIRST, encoding="utf-8", errors="surrogateescape")
    status, out, err = command("record", str(tmp_path / "t"), "--from", str(file))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert err.startswith(f"oddsengine record: {file}, line 3")
    assert err.endswith("; the batches before it were recorded\n")
    assert len(err) < 400
    assert Tape(tmp_path / "t").quotes == 1


@pytest.mark.parametrize("text", ["nonsense", '{"quotes": [{"sportsbook": "a"}]}'])
def test_input_that_begins_with_a_bad_line_leaves_no_tape(tmp_path: Path, command: Run, text: str) -> None:
    file, tape = tmp_path / "b.ndjson", tmp_path / "t"
    file.write_text(f"{text}\n{FIRST}")
    status, out, err = command("record", str(tape), "--from", str(file))
    assert (status, out) == (2, "")
    assert err.endswith("; nothing was recorded\n")
    assert not tape.exists()
    file.write_text(FIRST)
    assert command("record", str(tape), "--from", str(file))[1].startswith("1 batch with 1 quote recorded in ")
    file.write_text(f"{text}\n{FIRST}")
    assert command("record", str(tape), "--from", str(file))[2].endswith("; the batches before it were recorded\n")
    assert Tape(tape).steps == 1, "it was there before"


WRONG = [
    (("record", "T"), "give either --from or --simulate, got neither"),
    (("record", "T", "--from", "-", "--simulate", "3"), "got both"),
    (("record", "T", "--from", "no_such.ndjson"), "no_such.ndjson"),
    (("record", "T", "--simulate", "x"), "expected a whole number"),
    (("record", "T", "--simulate", "1", "--sync", "often"), "'often'"),
    (("record", __file__, "--simulate", "1"), "test_tape.py is a file; a tape must be a folder"),
    (("replay", "T"), "there is no tape at T"),
    (("replay", "T", "--speed", "0"), "expected a number above 0, or max, got '0'"),
    (("replay", "T", "--speed", "nan"), "got 'nan'"),
    (("replay", "T", "--from", "later"), "got 'later'"),
]


@pytest.mark.parametrize(
    ("words", "said"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_wrong_words(command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = command(*words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_replay_wrong_range(command: Run, small: tuple[Path, list[str]]) -> None:
    status, _, err = command("replay", str(small[0]), "--from", "2026-02-08", "--to", "2026-02-07")
    assert status == 2
    assert "--to 2026-02-07 00:00:00 is before --from 2026-02-08 00:00:00" in err


def test_help(command: Run) -> None:
    assert "a batch is a line of JSON" in command("record", "--help")[1]
    assert "--speed" in command("replay", "--help")[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_a_whole_tape(tmp_path: Path, world: Given, number: signal.Signals) -> None:
    """While it waits for more, and while it works."""
    with python(
        CLI, "record", str(tmp_path / "t"), "--from", "-", stdin=PIPE, stdout=PIPE, stderr=PIPE
    ) as child:  # fmt: skip
        assert child.stdin is not None
        child.stdin.write(as_lines(world[:10]))
        child.stdin.flush()
        waited((tmp_path / "t" / "00000001.tape").exists)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "")
    tape = Tape(tmp_path / "t")
    assert f"{tape.last:,} batches with {tape.quotes:,} quotes recorded in " in out
    assert "until interrupted" in out
    assert tape.torn is None
    assert tape.last > 0
    engine = Engine()
    engine.view(keep=True)
    for batch in world[: tape.last]:
        engine.step(**batch)
    assert replay(tape).state_hash() == engine.state_hash()
    assert f"state hash {engine.state_hash()}" in out


def waited(ready: Callable[[], bool]) -> None:
    for _ in range(1200):
        if ready():
            return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def on_terminal(monkeypatch: pytest.MonkeyPatch, *words: str, term: str = "xterm") -> str:
    """What a command writes to a terminal on standard error."""
    parent, child = pty.openpty()
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(parent, 65536):
                parts.append(part)
        except OSError:  # the terminal was closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, os.fdopen(child, "w") as terminal:
        patch.setattr(sys, "stderr", terminal)
        patch.setenv("COLUMNS", "70")
        patch.setenv("TERM", term)
        assert main(words) == 0
    reader.join()
    os.close(parent)
    return b"".join(parts).decode()


def test_progress_on_a_terminal(
    small: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("replay", str(small[0]), "--speed", "5")
    shown = on_terminal(monkeypatch, *words)
    frames = [frame for frame in shown.split("\r\x1b[K") if frame]
    assert frames
    assert all(len(frame) < 70 for frame in frames)
    assert {frame[:5] for frame in frames} <= {" 33 %", " 66 %", "100 %"}
    assert any(" % " in frame and "2026-02-07 18:00:0" in frame and "quotes" in frame for frame in frames)
    assert shown.endswith("\r\x1b[K")
    assert capsys.readouterr().out.startswith("3 steps, ")
    assert on_terminal(monkeypatch, *words, term="dumb") == ""
    shown = on_terminal(monkeypatch, *words, "--to", "2026-02-07T18:00:01")
    assert "100 %" in shown
    shown = on_terminal(
        monkeypatch, "record", str(tmp_path / "r"), "--simulate", "1", "--seconds", "40", "--events", "4"
    )
    assert "batches" in shown


def test_progress_fits() -> None:
    assert line(0.0, "x", 30).startswith("  0 % ---")
    assert line(1.0, "x", 30).startswith("100 % ###")
    assert line(7.0, "x", 30) == line(1.0, "x", 30)
    for width in range(1, 120):
        assert len(line(0.37, "1,234 quotes  99/s", width)) <= width
        assert len(line(None, textwrap.shorten("1,234 quotes", 40), width)) <= width


def test_constants_of_fair_prices_are_those_of_the_run(world: Given, tmp_path: Path) -> None:
    fair = catalog.amended_fair_table({"sharp": {"share": 0.5}, "books": {"own": {"fanduel": 0.7}}})
    engine, writer = resume(tmp_path, Engine(fair=fair))
    engine.view(keep=True)
    with writer:
        said = run(engine, world[:12])
    assert Tape(tmp_path).fair == fair
    assert replayed(tmp_path) == said
    other = Engine()
    other.view(keep=True)
    assert run(other, world[:12]) != said
    again, writer = resume(tmp_path)
    writer.close()
    assert again.fair == fair


def test_constants_that_change_are_on_the_tape(world: Given, tmp_path: Path) -> None:
    engine, writer = resume(tmp_path, Engine())
    engine.view(keep=True)
    with writer:
        said = run(engine, world[:6])
        engine.fair = catalog.amended_fair_table({"sharp": {"share": 0.5}})
        said += run(engine, world[:12], 6)
    assert Tape(tmp_path).fair == catalog.fair_table()
    assert replayed(tmp_path) == said
    mine = engine_for(Tape(tmp_path), fair=engine.fair)
    assert replayed(tmp_path, mine) != said
    assert mine.fair is engine.fair


def test_numbers_of_other_kinds_can_be_recorded(tmp_path: Path) -> None:
    engine, writer = oe.resume(tmp_path)
    numbers: dict[str, Any] = dict(
        min_ev=np.float32(1.0), sharp={"pinnacle": np.int64(2)}, commission={"a": np.float32(0.01)}
    )
    with writer:
        engine.view(**numbers)
        engine.step(ARB, NOW)
    assert oe.replay(oe.Tape(tmp_path)).state_hash() == engine.state_hash()
    assert oe.replay(tmp_path).state_hash() == oe.replay(str(tmp_path)).state_hash() == engine.state_hash()


def test_a_tape_begun_without_steps_forgets_the_guards_of_its_first_engine(tmp_path: Path) -> None:
    _, writer = oe.resume(tmp_path, oe.Engine(guards=["stale"]))
    writer.close()
    engine, writer = oe.resume(tmp_path, oe.Engine())
    with writer:
        engine.step(ARB, NOW)
    assert oe.Tape(tmp_path).without == ()
    assert oe.replay(oe.Tape(tmp_path)).state_hash() == engine.state_hash()
