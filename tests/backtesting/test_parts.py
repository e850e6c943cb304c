"""Parts of a history, played side by side, are the history: to the last digit, wherever it is cut."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from backtesting.test_scan import quotes
from hypothesis import given
from hypothesis import strategies as st
from live.test_engine import few

import oddsengine as oe
from oddsengine.backtesting import audit_report, history_scan, parts
from oddsengine.backtesting.processes import play_parts
from oddsengine.backtesting.replay import source


def spells(seed: int, games: int = 9) -> pl.DataFrame:
    """Games one after the other, each quoted by five books from some hours before its start."""
    rng = np.random.default_rng(seed)
    rows = []
    for game in range(games):
        start = 1_760_000_000 + 9_000 * game + int(rng.integers(600))
        for book in ("pinnacle", "circa", "betonline", "draftkings", "fanduel"):
            looks = start - np.arange(20_000, 0, -1_500 + int(rng.integers(300)))
            for market, sides, line in (("moneyline", ("home", "away"), None), ("total", ("over", "under"), 8.5)):
                chance = 0.5
                for at, until in zip(looks[:-1].tolist(), looks[1:].tolist(), strict=True):
                    chance = float(np.clip(chance + rng.normal(0.0, 0.012), 0.2, 0.8))
                    rows += [
                        {"event": f"g{game}", "sport": "baseball", "league": "mlb", "home": f"H{game}", "book": book,
                         "away": f"A{game}", "market": market, "selection": side, "line": line, "odds": 0.96 / part,
                         "seen_from": at, "seen_to": until, "start": start}
                        for side, part in zip(sides, (chance, 1.0 - chance), strict=True)
                    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


@contextmanager
def one_after_the_other() -> Iterator[None]:
    """Play parts in this process: others take seconds to start."""

    def play(part_of: Any, some: Any, _: int, progress: Callable[[int], None]) -> list[Any]:
        return [part_of(part, progress) for part in some]

    with pytest.MonkeyPatch.context() as patch:
        for module in (audit_report, history_scan):
            patch.setattr(module, "play_parts", play)
        yield


def same(one: Any, other: Any) -> None:
    for name in ("shown", "table", "later", "against", "reliability"):
        assert getattr(one, name).equals(getattr(other, name)), name
    assert (one.observations, one.waiting) == (other.observations, other.waiting)


@few(6)
@given(st.integers(0, 1000), st.integers(2, 12))
def test_the_cut_changes_nothing(seed: int, count: int) -> None:
    frame = spells(seed) if seed % 3 else quotes(seed % 5)
    with one_after_the_other():
        whole = oe.scan_history(frame)
        assert whole.height > 5
        assert oe.scan_history(frame, processes=count).equals(whole)
        audits = [oe.audit(frame, delays=["10m", "1h"], include=["one_sided"], processes=some) for some in (1, count)]
        assert audits[0].shown.height > 3
        same(*audits)


def test_models_are_compared_over_all_parts() -> None:
    frame = spells(3, games=4)
    model = frame.select("event", "market", "selection", "line").unique().with_columns(probability=0.5)
    with one_after_the_other():
        one, other = (oe.audit(frame, against={"coin": model}, processes=count) for count in (1, 4))
    assert one.against["observations"][0] > 100
    same(one, other)


def test_a_part_has_whole_games_and_all_snapshots_from_its_first_on() -> None:
    history = source(spells(1))
    some = parts.parts_for(history, 3)
    assert len(some) == 3
    games = [set(part.held.table["event_id"]) for part in some]
    assert sum(map(len, games)) == len(set.union(*games)) == 9
    moments = np.unique(history.held.when)  # type: ignore[union-attr]
    for part in some:
        assert part.moments.tolist() == moments[moments >= part.held.when[0]].tolist()
        assert part.books == ["pinnacle", "circa", "betonline", "draftkings", "fanduel"]


def test_what_one_process_plays(tmp_path: Any) -> None:
    frame = quotes(1)
    frame.write_parquet(tmp_path / "quotes.parquet")
    lazy = pl.scan_parquet(tmp_path / "quotes.parquet")
    with pytest.raises(ValueError, match=r"^a history that is read in pieces is played by one process; processes must"):
        oe.scan_history(lazy, processes=2)
    assert oe.scan_history(lazy, processes=None).equals(oe.scan_history(lazy))
    for wrong in (0, 65, 2.0, True, "2"):
        with pytest.raises(ValueError, match=r"^processes must be from 1 to 64, or None for one per core, got "):
            oe.audit(frame, processes=wrong)  # type: ignore[arg-type]


# ---- processes ----


def test_processes() -> None:
    """Three seconds: two processes start and load their kernels."""
    frame, said = spells(2, games=4), list[int]()
    whole = oe.audit(frame, progress=said.append)
    same(oe.audit(frame, processes=2, progress=said.append), whole)
    assert said[: whole.observations] == list(range(1, whole.observations + 1))


def answer(what: str, part: int, tick: Callable[[int], None]) -> int:
    """A part that does something else."""
    tick(part)
    if what == "die" and part == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise" and part == 1:
        raise ValueError("the price is wrong")
    if what == "wait":
        os.read(os.pipe()[0], 1)
    return 10 * part


def test_a_process_that_ends_or_fails() -> None:
    assert play_parts(partial(answer, ""), [3, 1, 2], 2, print) == [30, 10, 20]
    with pytest.raises(ChildProcessError, match=r"ended \(signal 9\), perhaps for lack of memory; nothing was kept"):
        play_parts(partial(answer, "die"), [0, 1], 2, print)
    with pytest.raises(ValueError, match=r"^the price is wrong$"):
        play_parts(partial(answer, "raise"), [0, 1], 2, print)


def test_an_interruption_ends_them() -> None:
    """As Ctrl+C: the processes wait for ever, and none is left."""

    class StopError(Exception):
        pass

    def stop(_: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        play_parts(partial(answer, "wait"), [0, 1], 2, stop)
    assert not multiprocessing.active_children()
