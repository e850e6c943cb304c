"""Frames of other libraries give what polars frames give; flat twins hold what nested results hold."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import oddsengine as oe
from oddsengine.tables.frames import to_polars
from oddsengine.tables.sample import SAMPLE_BOARD

ODDS = pl.read_csv(SAMPLE_BOARD, infer_schema_length=None, try_parse_dates=True)


class Capsule:
    """An object that has the Arrow PyCapsule interface and nothing else."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


FORMS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pandas, arrow types": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pandas, filtered": lambda frame: frame.to_pandas().loc[lambda f: f["event_id"] != ""],
    "pandas, index": lambda frame: frame.to_pandas().set_index(["event_id", "sportsbook"]),
    "pandas, categories": lambda frame: frame.to_pandas().astype({"sportsbook": "category", "is_live": "category"}),
    "pyarrow": lambda frame: frame.to_arrow(),
    "pyarrow reader": lambda frame: frame.to_arrow().to_reader(),
    "capsule": Capsule,
}


FUTURES = pl.DataFrame(
    {
        "sportsbook": ["pinnacle", "pinnacle", "fanduel", "fanduel"], "league": "nba", "event_id": "f",
        "market": "To make the playoffs 2026-27", "subject": "Spurs", "selection": ["Yes", "No"] * 2, "is_live": False,
        "odds_decimal": [1.5, 2.7, 1.65, 2.2],
    }
)  # fmt: skip


class Wanted(NamedTuple):
    """What functions over tables give for a frame of polars."""

    rejected: pl.DataFrame
    markets: pl.DataFrame
    fair: pl.Series
    checked: int
    changed: int
    futures: pl.DataFrame
    best: str
    explained: str


@cache
def found() -> oe.Opportunities:
    return oe.find_all(ODDS)


@cache
def wanted() -> Wanted:
    best = found().ev["id"][0]
    return Wanted(
        oe.rejected(ODDS), oe.markets(ODDS), oe.fair(ODDS)["fair_probability"], oe.check_odds(ODDS).height,
        oe.Engine().step(ODDS).changed.height, oe.find_futures(FUTURES).odds, best, str(oe.explain(ODDS, best)),
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_any_frame_gives_the_same(form: str) -> None:
    wanted = found()
    got = oe.find_all(FORMS[form](ODDS))
    for name in ("ev", "arbitrage", "low_hold", "middles"):
        assert_frame_equal(getattr(got, name), getattr(wanted, name))
    assert got.rejected_counts == wanted.rejected_counts


@pytest.mark.parametrize("form", FORMS)
def test_every_function_over_tables_takes_any_frame(form: str) -> None:
    given, want = FORMS[form], wanted()
    assert_frame_equal(oe.rejected(given(ODDS)), want.rejected)
    assert oe.markets(given(ODDS)).equals(want.markets)
    assert oe.fair(given(ODDS))["fair_probability"].equals(want.fair)
    assert oe.check_odds(given(ODDS)).height == want.checked
    assert oe.Engine().step(given(ODDS)).changed.height == want.changed > 0
    futures = oe.find_futures(given(FUTURES)).odds
    assert futures.drop("last_seen_at", "odds_changed_at").equals(want.futures.drop("last_seen_at", "odds_changed_at"))
    assert futures.drop_nulls("ev_percentage").height == 2
    assert str(oe.explain(given(ODDS), want.best)) == want.explained


def test_a_polars_frame_is_not_copied() -> None:
    assert to_polars(ODDS) is ODDS
    frame = pl.DataFrame({"a": [1.0, None]})
    assert_frame_equal(to_polars(frame.to_pandas().set_axis([3, 5])), frame)


@pytest.mark.parametrize("name", ["ev", "arbitrage", "low_hold", "middles"])
def test_results_become_pandas_and_arrow(name: str) -> None:
    result = getattr(oe.find_all(ODDS), name)
    assert result.height
    assert result.to_pandas().shape == result.shape
    assert_frame_equal(pl.DataFrame(result.to_arrow()), result)
    table = oe.read_odds(SAMPLE_BOARD)
    assert table.to_pandas().shape == table.to_arrow().shape == table.shape


@pytest.mark.parametrize("name", ["ev", "arbitrage", "low_hold", "middles"])
def test_flat_twins_have_no_structs(name: str) -> None:
    result = getattr(oe.find_all(ODDS), name)
    flat = oe.flatten(result)
    assert not any("Struct" in str(dtype) for dtype in flat.dtypes)
    if name != "arbitrage":
        assert flat.height == result.height
    assert [c for c in flat.columns if c in result.columns] == [
        c for c, dtype in result.schema.items() if "Struct" not in str(dtype)
    ]
    assert flat.to_pandas().shape == flat.shape


def test_legs_become_rows_in_their_order() -> None:
    arbs = oe.find_arbitrage(ODDS)
    flat = oe.flatten(arbs)
    wanted = [
        (arb["id"], n, leg["sportsbook"], leg["odds_decimal"])
        for arb in arbs.iter_rows(named=True)
        for n, leg in enumerate(arb["legs"], 1)
    ]
    assert flat.select("id", "leg", "leg_sportsbook", "leg_odds_decimal").rows() == wanted
    assert flat["game_state_period"].null_count() == flat.height


def test_flat_names_and_empty_lists() -> None:
    entry = pl.Struct({"a": pl.Int64, "b": pl.Struct({"c": pl.Int64})})
    frame = pl.DataFrame(
        {
            "leg_a": [1, 2, 3],
            "legs": [[{"a": 1, "b": {"c": 2}}, {"a": 3, "b": None}], [], None],
            "others": [[{"x": 1}], [{"x": 2}, {"x": 3}], []],
        },
        schema_overrides={"legs": pl.List(entry)},
    )
    flat = oe.flatten(frame)
    assert flat.columns == ["leg_a", "leg", "leg_a_", "leg_b_c", "others_x"]
    assert flat.rows() == [
        (1, 1, 1, 2, [1]), (1, 2, 3, None, [1]), (2, None, None, None, [2, 3]), (3, None, None, None, [])
    ]  # fmt: skip
    assert oe.flatten(arbs := oe.find_arbitrage(ODDS).clear()).height == arbs.height == 0


def test_names_end_without_a_separator_too() -> None:
    frame = pl.DataFrame({"ab": [1], "a": [{"b": 2}]})
    assert oe.flatten(frame, separator="").columns == ["ab", "ab_"]


@pytest.mark.parametrize("name", ["ev", "arbitrage", "low_hold", "middles"])
def test_joined_lists_can_be_written_as_csv(name: str) -> None:
    flat = oe.flatten(getattr(oe.find_all(ODDS), name), join="|")
    assert not any(dtype.is_nested() for dtype in flat.dtypes)
    assert flat.write_csv().count("\n") > flat.height
    odd = pl.DataFrame({"a": [["x", None, "y"], [], None], "b": [[[1, 2], [3]], [], None]})
    assert oe.flatten(odd, join="|").rows() == [("x||y", "1|2|3"), ("", ""), (None, None)]


def test_flat_twins_of_any_frame() -> None:
    arbs = oe.find_arbitrage(ODDS)
    assert_frame_equal(oe.flatten(arbs.lazy()), oe.flatten(arbs))
    assert_frame_equal(oe.flatten(arbs.to_arrow()), oe.flatten(arbs))


_WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import pandas, oddsengine as oe
columns = {"book": ["a", "b"], "event_id": ["e", "e"], "market": ["moneyline"] * 2, "team": ["home", "away"]}
columns["odds"] = [2.1, 2.1]
assert oe.find_arbitrage(columns).height == 1
try:
    oe.find_arbitrage(pandas.DataFrame(columns))
except ModuleNotFoundError as error:
    print(error)
"""


def test_pandas_without_pyarrow_names_the_extra() -> None:
    """In a process of its own, as an import cannot be taken back; two seconds, most of them importing pandas."""
    made = subprocess.run([sys.executable, "-c", _WITHOUT_PYARROW], capture_output=True, text=True, check=True)
    assert made.stdout == "a frame of pandas needs pyarrow: install oddsengine[pandas]\n"
