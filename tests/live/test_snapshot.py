"""A restored engine goes on as the one that the snapshot was taken of."""

import copy
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from support.effort import less, some

from oddsengine.live.engine import Engine
from oddsengine.live.recorder import Recorder
from oddsengine.live.snapshot import SnapshotError, dump, restore
from oddsengine.live.snapshot_checks import checksum
from oddsengine.simulate import World


class Batches(Recorder):
    """A recorder that keeps what an engine applied."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def batch(self, batch: Any, slept: Any = ()) -> None:
        self.made.append(batch)


def through_msgpack(held: dict[str, Any]) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(held))


@pytest.mark.parametrize(("seed", "method"), some([(3, "close"), (3, "power"), (4, "power"), (4, "close")], 1))
def test_goes_on_alike(seed: int, method: str) -> None:
    recorder, engine = Batches(), Engine()
    engine.record(recorder)
    view = engine.view(method=method, keep=True)
    late = engine.delayed(60.0)
    copy: Engine | None = None
    for at, batch in enumerate(World(seed, events=less(8, 4), live=0.4, tick=5.0, hazards=True).run(less(260, 160))):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        if copy is None:
            if at == 20:
                copy = Engine()
                copy.view(method=method, keep=True)  # it may be active before
                behind = copy.delayed(60.0)
                restore(copy, through_msgpack(dump(engine)))
                assert copy.state_hash() == engine.state_hash()
            continue
        again = copy.feed(recorder.made[-1])
        assert again.json(copy.view(method=method, keep=True)) == update.json(view)
        assert copy.state_hash() == engine.state_hash()
        assert copy.state_hash(views=False) == engine.state_hash(views=False)
        assert again.judged.tolist() == update.judged.tolist()
    assert copy is not None
    assert late.number == behind.number > less(20, 15)
    assert late.state_hash() == behind.state_hash()
    assert copy.rejected_counts() == engine.rejected_counts()
    assert copy.table().equals(engine.table())
    first = copy.view(method=method).opportunities(("ev",)).ev
    assert first.equals(engine.view(method=method).opportunities(("ev",)).ev)


def test_a_delayed_board_follows_an_engine_restored_from_before_its_first_step() -> None:
    engine = Engine()
    late = engine.delayed(5)
    restore(engine, dump(Engine()))
    for second in range(0, 12, 3):
        engine.step([], datetime(2026, 2, 8, tzinfo=UTC) + timedelta(seconds=second))
    assert (engine.number, late.number) == (4, 2)


def test_what_does_not_fit_is_refused() -> None:
    engine = Engine()
    held = dump(engine)
    with pytest.raises(ValueError, match="format 99; this version reads format 4"):
        restore(Engine(), {**held, "form": 99})
    engine.step([], now=next(World(1, events=1).run(1.0)).now)
    with pytest.raises(ValueError, match="restore needs a new engine, got one at step 1"):
        restore(engine, held)


@cache
def a_snapshot() -> tuple[bytes, str]:
    """A snapshot of a board with free rows, earlier levels and momentum, and the hash of its engine."""
    engine = Engine()
    engine.view(method="close", keep=True)
    for batch in World(5, events=4, live=0.6, tick=5.0, hazards=True).run(400):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    now = batch.now
    engine.step((), now, complete=[engine.books[0]])
    for hours in (1, 10, 30):
        now += timedelta(hours=hours)
        engine.step((), now)
    for batch in World(5, events=2, live=0.6, tick=5.0, hazards=True, start=now).run(200):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return msgspec.msgpack.encode(dump(engine)), engine.state_hash()


def refused(held: dict[str, Any], match: str = "") -> None:
    """It is refused with a sentence, and the engine is as new: it takes the whole snapshot afterwards."""
    data, state = a_snapshot()
    engine = Engine()
    view = engine.view(method="power")
    with pytest.raises(SnapshotError, match=match) as caught:
        restore(engine, held)
    assert str(caught.value).startswith("the snapshot ")
    assert (engine.number, engine.now, engine.table().height, list(engine.raw_labels)) == (0, None, 0, [])
    assert engine.active_views() == [view]
    restore(engine, msgspec.msgpack.decode(data))
    engine.close(view)
    assert engine.state_hash() == state


def test_content_with_a_flipped_bit_is_refused() -> None:
    """Either it is no msgpack any more, or not of this format, or the checksum says so: never another engine."""
    data, _ = a_snapshot()
    rng = random.Random(1)
    refusals = 0
    for _ in range(less(2000, 60)):
        held, at = bytearray(data), rng.randrange(len(data))
        held[at] ^= 1 << rng.randrange(8)
        try:
            snapshot = msgspec.msgpack.decode(held, type=dict[str, Any])
        except ValueError:  # of msgspec and of UTF-8
            continue
        with pytest.raises(ValueError, match=r"the snapshot is damaged|snapshot has format"):
            restore(Engine(), snapshot)
        refusals += 1
    assert refusals


def test_content_that_was_damaged_is_refused() -> None:
    held = msgspec.msgpack.decode(a_snapshot()[0])
    held["books"][0] += "x"
    refused(held, "the snapshot is damaged: its content does not match its checksum")


def changed(held: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    for step in path[:-1]:
        held = held[step]
    value = held[path[-1]]
    if isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes):
        array = change(np.frombuffer(value[2], value[0]).reshape(value[1]).copy())
        value = [array.dtype.str, list(array.shape), array.tobytes()]
    else:
        value = change(value)
    held[path[-1]] = value


def with_one(value: int) -> Callable[[Any], Any]:
    """The array with another first value, where rows have a price."""

    def change(array: Any) -> Any:
        array[0] = value
        return array

    return change


WRONG: list[tuple[str, tuple[Any, ...], Callable[[Any], Any], str]] = [
    ("short column", ("rows", "odds"), lambda a: a[:-1], "column odds should be float64 of shape"),
    ("other dtype", ("rows", "odds"), lambda a: a.astype(np.float32), "column odds should be float64"),
    ("unknown state", ("rows", "state"), with_one(9), "column state should be within 0 and 2"),
    ("term out of range", ("rows", "key"), lambda a: np.full_like(a, 1 << 50), "terms of column key"),
    ("negative key", ("rows", "key"), lambda a: np.full_like(a, -1), "terms of column key"),
    ("book out of range", ("rows", "key"), lambda a: a | 0xFFFF, "books of column key"),
    ("unknown verdict", ("rows", "reason"), with_one(200), "column reason should be within"),
    ("unknown rejection", ("rows", "rejected"), with_one(200), "column rejected should be within"),
    ("too many levels", ("rows", "depth"), lambda a: np.full_like(a, 200), "column depth"),
    ("record out of range", ("rows", "record"), lambda a: np.full_like(a, 1 << 30), "the records of levels"),
    ("record of another", ("rows", "record"), np.zeros_like, "the records of levels"),
    ("free row twice", ("spare",), lambda a: np.zeros_like(a) + a[0], "the free rows are not distinct"),
    ("free row out of range", ("spare",), with_one(1 << 30), "the free rows should be within"),
    ("free row lost", ("spare",), lambda a: a[1:], "the free rows should be int32 of shape"),
    ("levels of other shape", ("levels", 0), lambda a: a[:, :2], "levels level should be uint16"),
    ("more levels than room", ("levels", 6), lambda a: a + 100_000, "there is room for"),
    ("no column", ("rows",), lambda rows: {n: c for n, c in rows.items() if n != "seen"}, "lacks columns .* seen"),
    ("no rows", ("rows",), lambda _: None, "the snapshot cannot be used: AttributeError"),
    ("no raw labels", ("wordings",), lambda _: [], "terms of column key"),
    ("short raw label", ("wordings", 0), lambda label: label[1:], "raw labels of other than 13 parts"),
    ("a raw label twice", ("wordings", 0), lambda _: ["e", *[None] * 12], ""),
    ("a book twice", ("books",), lambda books: [books[0]] * len(books), "a book or a raw label twice"),
    ("no book", ("books", 0), lambda _: 5, "books that are not text"),
    ("no number", ("number",), lambda _: -1, "its step is -1"),
    ("no time", ("now",), lambda _: "noon", "not whole numbers"),
    ("another second", ("moment",), lambda moment: moment + 1, "its time in whole seconds"),
    ("too many rows", ("top",), lambda top: top + 1, "of shape"),
    ("text of no row", ("links",), lambda _: {"123456": "https://b"}, "texts of rows that it does not have"),
    ("unknown status", ("said",), lambda _: {"e": [17, 0, 0]}, "the notice about event 'e' has no status"),
    ("unknown kind", ("views", 0, 3), lambda a: a + 100, "the kinds of opportunities"),
    ("fewer times", ("views", 0, 4), lambda a: a[1:], "the times of opportunities"),
    ("unknown method", ("views", 0, 0, "method"), lambda _: "magic", "magic"),
    ("momentum slots", ("momentum", "_slot"), lambda a: a + 1_000_000, "the ladders of momentum"),
    ("momentum table full", ("momentum", "_keys"), lambda a: a | np.uint64(1), "the table of ladders"),
    ("momentum entries", ("momentum", "_start"), lambda a: a + 1_000_000, "entries of momentum"),
    ("momentum books", ("momentum", "_book"), lambda a: a + 1_000_000, "books of momentum"),
    ("momentum room", ("momentum", "used"), lambda _: 1 << 40, "ladders and"),
    ("momentum numbering", ("momentum", "_books"), lambda books: dict.fromkeys(books, 0), "not numbered from 0"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "change", "match"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_content_that_would_break_kernels_is_refused(
    path: tuple[Any, ...], change: Callable[[Any], Any], match: str
) -> None:
    """Even with a checksum that fits."""
    held = msgspec.msgpack.decode(a_snapshot()[0])
    assert held["momentum"]["used"]
    assert min(held["spare"][1], held["views"][0][2][1]) > [1]
    if path == ("wordings", 0) and match == "":
        held["wordings"][1] = copy.copy(held["wordings"][0])
        match = "a book or a raw label twice"
    else:
        changed(held, path, change)
    refused({**held, "checksum": checksum(held)}, match)
