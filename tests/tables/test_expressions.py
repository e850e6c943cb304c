"""The polars namespace gives what the functions give, market by market, however the rows lie."""

from itertools import groupby, pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_series_equal

import oddsengine as oe
from oddsengine.maths.value import edge
from oddsengine.tables.expressions import OddsExpr, _markets

ANY_NUMBER = st.one_of(
    st.floats(1.001, 500.0),
    st.sampled_from([1.0, 0.0, -110.0, 100.0, -100.0, 2.0, float("nan"), float("inf")]),
    st.none(),
)


def answer(frame: pl.DataFrame, expr: pl.Expr) -> pl.Series:
    return frame.select(expr.alias("x")).to_series()


def numbers(values: list[float | None]) -> Any:
    american = any(x is not None and x <= -100.0 for x in values)
    return np.array(
        [np.nan if x is None or x < -99.0 or (american and x >= 100.0 and x % 1 == 0) else x for x in values]
    )


def same(got: pl.Series, wanted: Any) -> None:
    series = pl.Series("x", np.asarray(wanted, np.float64), nan_to_null=True)
    assert_series_equal(got, series, rel_tol=1e-14, abs_tol=1e-15)


@given(st.lists(ANY_NUMBER, min_size=1), st.floats(0.0, 1.0))
def test_elementwise_expressions_are_the_functions(values: list[float | None], prob: float) -> None:
    frame = pl.DataFrame({"odds": values, "prob": prob}, schema={"odds": pl.Float64, "prob": pl.Float64})
    x: Any = pl.col("odds")
    d = numbers(values)
    same(answer(frame, x.odds.implied()), oe.decimal_to_probability(d))
    same(answer(frame, x.odds.to_american()), oe.decimal_to_american(d))
    american = np.array([np.nan if v is None else v for v in values])
    same(answer(frame, x.odds.from_american()), oe.american_to_decimal(american))
    same(answer(frame, x.odds.edge("prob")), edge(prob, d))
    same(answer(frame, x.odds.kelly(prob, 0.25)), oe.kelly(prob, d, 0.25))


def by_groups(rows: list[tuple[str | None, int, float | None]], method: str) -> tuple[list[float], list[float]]:
    """Fair probabilities and holds, market by market, in plain Python."""
    fair, hold = [np.nan] * len(rows), [np.nan] * len(rows)
    every = numbers([row[2] for row in rows])
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0] or "", rows[i][0] is None, rows[i][1]))
    for _, group in groupby(order, key=lambda i: rows[i][:2]):
        places = list(group)
        prices = every[places]
        answers, kept = oe.devig(prices, method), float(oe.hold(prices)) if len(places) > 1 else np.nan
        for i, p in zip(places, answers.tolist(), strict=True):
            fair[i], hold[i] = p, kept
    return fair, hold


ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None, ""]), st.integers(0, 2), ANY_NUMBER.filter(lambda x: x != float("inf"))),
    min_size=1, max_size=40,
)  # fmt: skip


@given(ROWS, st.sampled_from(oe.DEVIG_METHODS))
def test_markets_are_the_rows_with_equal_keys(rows: list[tuple[str | None, int, float | None]], method: str) -> None:
    frame = pl.DataFrame(rows, schema={"event": pl.String, "n": pl.Int64, "odds": pl.Float64}, orient="row")
    x: Any = pl.col("odds")
    fair, hold = by_groups(rows, method)
    same(answer(frame, x.odds.devig(method, by=["event", "n"])), fair)
    same(answer(frame, x.odds.devig(method).over("event", pl.col("n"))), fair)
    same(answer(frame, x.odds.devig(method).over(["event", "n"])), fair)
    same(answer(frame, x.odds.hold(by=["event", "n"])), hold)
    same(frame.lazy().select(x.odds.devig(method, by=("event", "n")).alias("x")).collect().to_series(), fair)


def test_python_is_called_once_and_not_once_a_market() -> None:
    frame = pl.DataFrame({"market": np.repeat(np.arange(200), 2), "odds": 1.9})
    calls = 0

    def counted(prices: Any, offsets: Any) -> Any:
        nonlocal calls
        calls += 1
        return oe.devig_groups(prices, offsets)

    expr = OddsExpr(pl.col("odds"))._of_market(counted, None)
    assert answer(frame, expr.over("market")).to_list() == [0.5] * 400
    assert calls == 1


def test_keys_that_share_a_hash_stay_apart() -> None:
    keys = [pl.Series(["a", "b", "a", "c", "b"])]
    for hashes in (None, np.array([0, 1, 0, 1, 0], np.uint64), np.array([0, 1, 0, 2, 0], np.uint64)):
        rows, offsets = _markets(keys, hashes)
        assert rows is not None
        assert [rows[a:b].tolist() for a, b in pairwise(offsets)] == [[0, 2], [1, 4], [3]]


@given(ROWS, st.sampled_from([pl.Categorical, pl.Enum(["a", "b", ""])]))
def test_coded_keys_are_as_good_as_text(rows: list[tuple[str | None, int, float | None]], dtype: Any) -> None:
    frame = pl.DataFrame(rows, schema={"event": pl.String, "n": pl.Int64, "odds": pl.Float64}, orient="row")
    x: Any = pl.col("odds")
    by = ["event", "n"]
    wanted = frame.select(x.odds.devig(by=by))
    assert frame.with_columns(pl.col("event").cast(dtype)).select(x.odds.devig(by=by)).equals(wanted)
    assert frame.lazy().select(x.odds.devig(by=[pl.col("event").cast(dtype), "n"])).collect().equals(wanted)
    assert frame.select(x.odds.devig().over(pl.col("event").cast(dtype), "n")).equals(wanted)


def test_markets_of_odds_in_any_dtype() -> None:
    x: Any = pl.col("odds")
    texts = pl.DataFrame({"odds": ["1.9", "2.1", "1.9", None], "market": ["a", "b", "a", "b"]})
    for dtype in (pl.Float64, pl.Float32, pl.String, pl.Categorical, pl.Enum(["1.9", "2.1"])):
        frame = texts.with_columns(x.cast(dtype))
        assert frame.select(x.odds.devig(by="market"))["odds"].to_list() == pytest.approx([0.5, None, 0.5, None])
        assert frame.select(x.odds.hold(by="market"))["odds"].round(4).to_list() == [0.0526, None, 0.0526, None]


def test_without_keys_the_column_is_one_market_and_groups_work_as_usual() -> None:
    frame = pl.DataFrame({"book": ["a", "a", "b", "b"], "odds": [1.9, 1.9, 1.8, 2.2]})
    x: Any = pl.col("odds")
    assert answer(frame, x.odds.devig()).sum() == pytest.approx(1.0)
    lists = frame.group_by("book", maintain_order=True).agg(x.odds.devig("shin"))["odds"].to_list()
    assert lists[0] == pytest.approx([0.5, 0.5])
    assert lists[1] == pytest.approx(oe.devig([1.8, 2.2], "shin").tolist())
    assert answer(frame, x.odds.devig().over("book", order_by="odds")).len() == 4


def test_empty_columns_integers_and_categories() -> None:
    x: Any = pl.col("odds")
    empty = pl.DataFrame(schema={"event": pl.Categorical, "odds": pl.Int32})
    assert answer(empty, x.odds.devig(by="event")).to_list() == answer(empty, x.odds.hold(by="event")).to_list() == []
    whole = pl.DataFrame({"event": ["a", "b", "a", "b"], "odds": [2, 3, 2, 3]}).with_columns(
        pl.col("event").cast(pl.Categorical)
    )
    assert answer(whole, x.odds.devig(by="event")).to_list() == pytest.approx([0.5] * 4)


def test_wrong_arguments_are_refused_when_the_expression_is_made() -> None:
    x: Any = pl.col("odds")
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'x'"):
        x.odds.devig("x")
    with pytest.raises(ValueError, match="fraction must be above 0"):
        x.odds.kelly("p", 0.0)
    with pytest.raises(TypeError, match="by must be column names or expressions, got 3"):
        x.odds.devig(by=3)
    with pytest.raises(TypeError, match="prob must be a column name, an expression or a number, got None"):
        x.odds.kelly(None)


def test_results_are_named_after_the_odds() -> None:
    frame = pl.DataFrame({"odds": [2.0, 110.0], "fair": [0.5, 0.4]})
    x: Any = pl.col("odds").alias("price")
    made = [x.odds.implied(), x.odds.to_american(), x.odds.from_american(), x.odds.edge("fair"), x.odds.edge(0.5)]
    made += [x.odds.kelly("fair"), x.odds.kelly(0.5), x.odds.hold(), x.odds.devig()]
    for expr in made:
        assert frame.select(expr).columns == ["price"]
    both: Any = pl.col("odds", "fair")
    assert frame.select(both.odds.implied()).columns == ["odds", "fair"]
    assert frame.with_columns(pl.col("odds").odds.edge("fair"))["fair"].to_list() == [0.5, 0.4]  # type: ignore[attr-defined]


def test_american_prices_are_no_decimal_odds() -> None:
    frame = pl.DataFrame({"g": [1, 1, 2, 2], "odds": [110.0, -120.0, 250.5, 101.0]})
    x: Any = pl.col("odds")
    assert answer(frame, x.odds.implied()).to_list() == [None, None, pytest.approx(1 / 250.5), None]
    assert answer(frame, x.odds.implied().over("g")).to_list()[2:] == pytest.approx([1 / 250.5, 1 / 101.0])
    assert answer(frame.clear().extend(frame[2:]), x.odds.to_american()).to_list() == [24950.0, 10000.0]
    assert answer(frame, x.odds.devig(by="g")).null_count() == 4
    grouped = frame.group_by("g", maintain_order=True).agg(x.odds.edge(0.5))
    assert grouped["odds"].to_list()[0] == [None, None]
    long = pl.DataFrame({"g": [1, 1], "odds": [101.0, 1.005]})
    assert answer(long, x.odds.devig(by="g")).null_count() == 0


def test_a_market_of_one_price_has_no_hold() -> None:
    frame = pl.DataFrame({"g": [1, 2, 2], "odds": [1.9, 1.9, 1.9]})
    assert answer(frame, pl.col("odds").odds.hold(by="g").round(3)).to_list() == [None, 0.053, 0.053]  # type: ignore[attr-defined]
