"""The live board: steps of 1 to 10,000 changes on a million prices of 5,000 events, compared with a full pass.

    pytest benchmarks/bench_live.py -o python_files='bench_*.py' --benchmark-enable --benchmark-only

Guards, one view over all books (METHOD=power for the classical reference) and the changes of its open set are
always included. `full pass` is a step in which every partition is dirty and nothing changed. Changes are spread over
all events; the prices of a batch move by up to one percent.
"""

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import pytest
from synthetic import NOW
from synthetic import board as make_board

from oddsengine.board.state import Batch
from oddsengine.live.engine import Engine
from oddsengine.live.view import View

ROWS = 1_000_000
COUNTS = (1, 100, 1_000, 10_000)
ROUNDS = {1: 300, 100: 200, 1_000: 60, 10_000: 20}


class Live(NamedTuple):
    """A loaded board with one view, and its original prices."""

    engine: Engine
    view: View
    frame: pl.DataFrame


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    frame = make_board(ROWS)
    engine = Engine(threads=int(os.environ.get("THREADS", "1")))
    engine.step(frame, NOW)
    view = engine.view(method=os.environ.get("METHOD", "close"), keep=True)
    gc.collect()
    gc.freeze()
    yield Live(engine, view, frame.with_columns(pl.col("event_start_time", "last_seen_at").dt.to_string("iso:strict")))
    gc.unfreeze()


def texts(frame: pl.DataFrame, count: int, seed: int = 0) -> Callable[[], bytes]:
    """Return another batch of changes per call as JSON, different from all previous ones."""
    drawn = np.random.default_rng((count, seed))

    def draw() -> bytes:
        some = frame.sample(count, seed=int(drawn.integers(1 << 31)))
        moved = some.with_columns(
            odds_decimal=pl.col("odds_decimal") * pl.Series(1.0 + drawn.random(some.height) * 0.01),
            last_seen_at=pl.lit(NOW.isoformat()),
        )
        return msgspec.json.encode(moved.to_dicts())

    return draw


def codes(engine: Engine, text: bytes) -> Batch:
    """A batch in the engine's codes, as a tape has it."""
    return engine._batch(engine._reader.read_quotes(text, engine.state.board.names), NOW, (), (), ())


@pytest.mark.benchmark(group="live step, 1M rows")
@pytest.mark.parametrize("count", COUNTS)
def test_changes(benchmark: Any, live: Live, count: int) -> None:
    draw = texts(live.frame, count)
    benchmark.pedantic(
        live.engine.feed, setup=lambda: ((codes(live.engine, draw()),), {}), rounds=ROUNDS[count], warmup_rounds=3
    )


@pytest.mark.benchmark(group="live step, 1M rows")
@pytest.mark.parametrize("more", [0, 100])
def test_a_hundred_more_views(benchmark: Any, live: Live, more: int) -> None:
    """100 changes, for one view and for a hundred more with other books and the same references."""
    draw, rng = texts(live.frame, 100, 2 + more), np.random.default_rng(7)
    books = np.unique(live.frame["sportsbook"].to_numpy())
    sets = [sorted(rng.choice(books, int(rng.integers(3, books.size)), replace=False)) for _ in range(more)]
    views = [live.engine.view(some, method=live.view.wanted.method, keep=True) for some in sets]
    benchmark.pedantic(live.engine.feed, setup=lambda: ((codes(live.engine, draw()),), {}), rounds=100, warmup_rounds=3)
    for view in views:
        live.engine.close(view)


@pytest.mark.benchmark(group="live step, 1M rows")
def test_full_pass(benchmark: Any, live: Live) -> None:
    partitions = live.engine.state.board.partitions

    def everything() -> tuple[tuple[()], dict[str, Any]]:
        partitions.dirty[partitions.size > 0] = 1
        return (), {"now": NOW}

    benchmark.pedantic(live.engine.step, setup=everything, rounds=10, warmup_rounds=2)


@pytest.fixture(scope="module")
def met(live: Live) -> None:
    """The text of every row has been met before, as that of nearly every row of a running feed."""
    for part in live.frame.iter_slices(20_000):
        live.engine.step(msgspec.json.encode(part.to_dicts()), NOW)


@pytest.mark.benchmark(group="live JSON to JSON, 1M rows")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("texts_are", ["new", "met"])
def test_json_to_json(
    benchmark: Any, live: Live, texts_are: str, count: int, request: pytest.FixtureRequest
) -> None:  # fmt: skip
    """New: each text is met for the first time, as after a start."""
    if texts_are == "met":
        request.getfixturevalue("met")
    draw = texts(live.frame, count, ["new", "met"].index(texts_are))  # the same prices again would change nothing
    benchmark.pedantic(
        lambda text: live.engine.step(text, NOW).json(live.view), setup=lambda: ((draw(),), {}), rounds=ROUNDS[count],
        warmup_rounds=3,
    )  # fmt: skip


@pytest.mark.benchmark(group="live JSON to JSON, 1M rows")
@pytest.mark.parametrize("count", [10_000])
def test_json_alone(benchmark: Any, live: Live, count: int) -> None:
    """Lower bound: the text to plain objects and back."""
    text = texts(live.frame, count)()
    benchmark.pedantic(lambda: msgspec.json.encode(msgspec.json.decode(text)), rounds=20, warmup_rounds=2)


@pytest.mark.benchmark(group="live step, 1M rows")
def test_first_answer_of_a_view(benchmark: Any, live: Live) -> None:
    made = iter(range(1000))

    def another() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (["draftkings", "fanduel", "bet365"],), {"min_ev": next(made) * 0.001}

    def ask(books: list[str], min_ev: float) -> dict[str, list[str]]:
        view = live.engine.view(books, min_ev=min_ev)
        found = view.ids()
        live.engine.close(view)
        return found

    benchmark.pedantic(ask, setup=another, rounds=10, warmup_rounds=1)
