"""Records of earlier price levels: who has one, and that a step that fails gives back all of them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from support.effort import some

from oddsengine.board.flap import EARLIER
from oddsengine.board.rows import Rows
from oddsengine.board.state import Batch
from oddsengine.live import snapshot
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.recorder import Recorder

NOW = datetime(2026, 2, 8, 12, tzinfo=UTC)
PRICES = (1.9, 2.0, 2.2, 2.5, 3.0, 4.0, 5.0, 7.0)
PAUSES = (0.4, 0.3, 0.2, 0.06, 0.02, 0.02)
ROWS = [(book, event) for book in "abc" for event in range(8)]


def quote(book: str, event: int, odds: float, seen: datetime, *, live: bool = False) -> dict[str, Any]:
    return {
        "sportsbook": book, "event_id": f"e{event}", "sport": "tennis", "home_team": "X", "away_team": "Y",
        "market_type": "moneyline", "selection": "X", "odds_decimal": odds, "last_seen_at": seen, "is_live": live,
    }  # fmt: skip


def records(rows: Rows) -> int:
    """Records in use, each by one row that has a history."""
    used, spare = rows.levels.used.tolist()
    held = rows.record[: rows.top][rows.state[: rows.top] != 0]
    held = held[held >= 0]
    free = rows.levels.spare[:spare].tolist()
    assert sorted([*held.tolist(), *free]) == list(range(used))
    return int(used - spare)


class Refusing(Recorder):
    """A recorder that makes steps fail on demand, after they were applied."""

    def __init__(self) -> None:
        self.fails = False

    def batch(self, batch: Batch, slept: Sequence[ViewKey] = ()) -> None:
        if self.fails:
            raise OSError("no space left on device")


def test_a_row_has_a_record_while_its_price_has_moved() -> None:
    engine = Engine()
    rows = engine.state.board.rows
    engine.step([quote(book, event, 1.9, NOW) for book, event in ROWS], NOW)
    assert records(rows) == 0
    engine.step([quote("a", 0, 2.0, NOW + timedelta(seconds=1)), quote("a", 1, 1.9, NOW)], NOW + timedelta(seconds=1))
    assert records(rows) == 1
    counts = []
    for at in range(engine.state.board.limits.flap_observations + 1):  # until the change is too many observations ago
        later = NOW + timedelta(seconds=2.0 + at)
        engine.step([quote(book, event, 2.0, later) for book, event in ROWS], later)
        counts.append(records(rows))
    assert counts == [*[len(ROWS)] * (len(counts) - 2), len(ROWS) - 1, 0]
    engine.step([quote(book, event, 2.2, later) for book, event in ROWS], later)
    assert records(rows) == len(ROWS)
    removed = engine.table()["row_id"].to_list()
    engine.step((), later + timedelta(seconds=1), removed=removed)
    engine.step((), later + timedelta(seconds=700))  # the removals are forgotten
    assert records(rows) == 0
    for at, odds in enumerate(PRICES):
        last = later + timedelta(seconds=700 + at)
        engine.step([quote("a", 0, odds, last)], last)
    assert (records(rows), int(rows.depth[rows.record >= 0].max())) == (1, EARLIER + 1)


@pytest.mark.parametrize("seed", some(range(6), 3))
def test_a_failed_step_gives_back_what_it_took(seed: int) -> None:
    """Interleaved with steps that fail, the others have the results and the records that they have alone."""
    rng = np.random.default_rng(seed)
    one, other, restored, recorder = Engine(), Engine(), Engine(), Refusing()
    one.record(recorder)
    now, flaps, failed = NOW, 0, 0
    for at in range(120):
        now += timedelta(
            seconds=float(rng.choice([0.5, 1.0, 5.0, 30.0, 400.0, 700.0], p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]))
        )

        def batch(now: datetime = now) -> list[dict[str, Any]]:
            some = rng.integers(0, len(ROWS), rng.integers(1, 30)).tolist()
            odds = rng.choice(PRICES[: rng.integers(2, 9)], len(some)).tolist()
            live = bool(rng.random() < 0.5)
            return [
                quote(ROWS[at][0], ROWS[at][1], price, now, live=live) for at, price in zip(some, odds, strict=True)
            ]

        if rng.random() < 0.4:
            recorder.fails, failed = True, failed + 1
            with pytest.raises(OSError, match="no space"):
                one.step(batch(), now + timedelta(seconds=float(rng.choice([0.0, 800.0, 23_000.0]))))
            recorder.fails = False
        quotes = batch()
        for engine in (one, other, restored) if at > 60 else (one, other):
            engine.step(quotes, now)
        assert records(one.state.board.rows) == records(other.state.board.rows)
        assert one.state_hash() == other.state_hash()
        flaps += one.rejected_counts().get("flap", 0)
        if at == 60:
            snapshot.restore(restored, snapshot.dump(one))
    assert restored.state_hash() == one.state_hash()
    assert flaps > 0
    assert failed > 20


def test_a_batch_of_known_prices_takes_no_room() -> None:
    engine = Engine()
    engine.step([quote("a", event, 1.9, NOW) for event in range(1200)], NOW)
    room = engine.state.board.rows.key.size
    later = NOW + timedelta(seconds=1)
    engine.step([quote("a", event, 2.0, later) for event in range(1200)], later)
    assert engine.state.board.rows.key.size == room < 2400
