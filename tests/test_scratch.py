"""Uncleared memory is written before it is read: whatever it held, results are the same."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from polars.testing import assert_frame_equal
from support import golden
from support.boards import frame, random_board
from support.effort import some
from support.rows import MOMENT

import oddsengine as oe

KINDS = ("ev", "arbitrage", "low_hold", "middles")
METHODS = ("close", "power", "shin", "additive", "odds_ratio", "logarithmic", "worst_case", "multiplicative")
FILLS: tuple[dict[str, Any], ...] = (
    {"f": np.nan, "i": 77, "u": 77, "b": True},
    {"f": 1e200, "i": 1, "u": 1, "b": True},
)


def fill(monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]) -> set[str]:
    """From now on, arrays that the package allocates uncleared hold these values; returns the modules that did so."""
    modules: set[str] = set()

    def filling(allocate: Callable[..., npt.NDArray[Any]]) -> Callable[..., npt.NDArray[Any]]:
        def allocated(*args: Any, **words: Any) -> npt.NDArray[Any]:
            out = allocate(*args, **words)
            module = sys._getframe(1).f_globals.get("__name__", "")
            if out.dtype.kind in values and module.startswith("oddsengine"):
                modules.add(module)
                out.fill(values[out.dtype.kind])
            return out

        return allocated

    monkeypatch.setattr(np, "empty", filling(np.empty))
    monkeypatch.setattr(np, "empty_like", filling(np.empty_like))
    return modules


@pytest.mark.parametrize("values", some(FILLS, 1), ids=str)
@pytest.mark.parametrize("name", some(golden.WORLDS, 1))
def test_a_recorded_world_replays_the_same(name: str, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    modules = fill(monkeypatch, values)
    for was, now in zip(golden.expected(name), golden.replayed(name), strict=True):
        assert now == was
    assert modules >= {
        f"oddsengine.{name}"
        for name in ("board.state", "detection.sweep", "detection.tails", "guards.verdicts", "identity.layout")
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_table_gives_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words: dict[str, Any] = dict(
        now=MOMENT, method=method, min_ev=-3.0, min_profit=-3.0, max_hold=6.0, min_middle_ev=None
    )
    tables = [frame(random_board(seed, 2)) for seed in range(2)]
    wanted = [oe.find_all(table, **words) for table in tables]
    for values in FILLS:
        with monkeypatch.context() as patch:
            assert fill(patch, values) == set()
            for table, whole in zip(tables, wanted, strict=True):
                found = oe.find_all(table, **words)
                for kind in KINDS:
                    assert_frame_equal(getattr(found, kind), getattr(whole, kind))
                assert found.rejected_counts == whole.rejected_counts
