"""What the plots of audits and backtests draw."""

import math
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes

import oddsengine as oe
from oddsengine.backtesting import SHOWN_SCHEMA, Audit
from oddsengine.backtesting.against import RELIABILITY
from oddsengine.plot import bankroll, calibration, models
from oddsengine.plot.audit_plots import bet_points


@pytest.fixture(scope="module")
def expected(past: pl.DataFrame) -> oe.Backtest:
    """A backtest without scores."""
    return oe.backtest(past, oe.Strategy(min_ev=1.0, size=0.5), bankroll=1000.0)


@pytest.fixture(scope="module")
def result(expected: oe.Backtest) -> oe.Backtest:
    """The same, as if each bet had the result that was to be expected."""
    return replace(expected, trades=expected.trades.with_columns(profit="expected_profit"))


def audited(rows: list[dict[str, Any]]) -> Audit:
    plain = {"threshold": 1.0, "odds": 2.0, "hours": 5.0}
    return Audit(pl.DataFrame([{**plain, **row} for row in rows], schema=SHOWN_SCHEMA), pl.DataFrame(), 1, "packaged")


def points(axes: Axes) -> list[tuple[float, float, float]]:
    """The points of error bars and half of each interval."""
    (container,) = axes.containers
    line, _, (bars,) = container.lines  # type: ignore[attr-defined]
    halves = [(segment[1][1] - segment[0][1]) / 2 for segment in bars.get_segments()]
    return list(zip(line.get_xdata(), line.get_ydata(), halves, strict=True))


def test_calibration_has_a_point_a_band_with_errors_by_event() -> None:
    rows = [
        {"event": str(event), "ev": ev, "worth": worth}
        for event in range(12)
        for ev, worth in ((1.2, float(event % 3)), (1.4, float(event % 3)), (3.5, 2.0 + event % 2))
    ]
    rows += [{"event": "x", "ev": 6.0, "worth": 1.0}] * 9  # too few for a point
    rows += [{"event": "x", "ev": 2.5, "worth": None}] * 20  # without a close
    rows += [{"event": "x", "ev": 2.5, "worth": 1.0, "odds": 5.0}] * 20  # a long shot
    rows += [{"event": "x", "ev": 2.5, "worth": 1.0, "hours": 100.0}] * 20  # long before
    (axes,) = calibration(audited(rows)).axes

    def half(worth: list[float], each: int) -> float:
        """1.96 standard errors of a mean over events with so many equal prices each."""
        centre = sum(worth) / len(worth)
        groups = len(worth)
        spread = sum((each * (value - centre)) ** 2 for value in worth)
        return 1.96 * math.sqrt(groups / (groups - 1) * spread) / (groups * each)

    wanted = [
        (1.3, 1.0, half([float(event % 3) for event in range(12)], 2)),
        (3.5, 2.5, half([2.0 + event % 2 for event in range(12)], 1)),
    ]
    np.testing.assert_allclose(points(axes), wanted)
    (diagonal,) = (line for line in axes.get_lines() if line.get_label() == "worth what it shows")
    assert np.array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert [text.get_text() for text in axes.texts] == ["24", "12"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("EV shown, %", "EV at the close, %")
    assert len(points(calibration(audited(rows), hours=120.0).axes[0])) == 3


def test_calibration_without_points_says_so() -> None:
    figure = calibration(audited([]))
    assert [text.get_text() for text in figure.axes[0].texts] == ["too few graded prices"]
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_calibration_of_an_audit(past: pl.DataFrame) -> None:
    audit = oe.audit(past)
    (axes,) = calibration(audit).axes
    band = audit.table.filter(threshold=1.0, by="EV", value="2-3").row(0, named=True)
    found = {round(x, 6): (y, half) for x, y, half in points(axes)}
    assert found[round(band["shown"], 6)] == pytest.approx((band["worth"], 1.96 * band["worth_se"]))


def test_a_bankroll_is_that_of_the_results_in_order(result: oe.Backtest) -> None:
    top, bottom = bankroll(result).axes
    profits: dict[datetime, float] = {}
    for bet in result.bets.drop_nulls("profit").iter_rows(named=True):
        profits[bet["event_start_time"]] = profits.get(bet["event_start_time"], 0.0) + bet["profit"]
    money, peak = [1000.0], 1000.0
    falls = [0.0]
    for at in sorted(profits):
        money.append(money[-1] + profits[at])
        peak = max(peak, money[-1])
        falls.append(-100.0 * (peak - money[-1]) / peak)
    (line,) = (each for each in top.get_lines() if each.get_label() == "bankroll")
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), money)
    assert list(line.get_xdata()) == [result.bets["placed_at"].min(), *sorted(profits)]  # type: ignore[arg-type]
    (line,) = (each for each in bottom.get_lines() if each.get_label() == "drawdown")
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), falls)
    assert len(money) > 4
    assert min(falls) < 0.0
    bets, every = result.bets.drop_nulls("profit").height, result.bets.height
    settled = f"{bets} of {every}" if bets < every else f"{bets}"
    assert top.get_title(loc="left") == f"Bankroll: 1,000 to {money[-1]:,.2f} with {settled} settled bets"
    assert bottom.get_title(loc="left") == f"Drawdown: at most {-min(falls):.1f} %"


def test_without_results_the_bankroll_is_called_expected(result: oe.Backtest, expected: oe.Backtest) -> None:
    assert expected.equity().is_empty()
    for settled, other in zip(bankroll(result).axes, bankroll(expected).axes, strict=True):
        one, two = (np.asarray(each.get_lines()[-1].get_ydata(), float) for each in (settled, other))
        np.testing.assert_allclose(one, two)
        assert "xpected" in other.get_title(loc="left")
        assert "xpected" not in settled.get_title(loc="left")
    top, bottom = bankroll(expected).axes
    assert top.get_title(loc="left").endswith(f" with {expected.bets['expected_profit'].count()} bets, none settled")
    assert top.get_ylabel() == "expected bankroll"
    assert bottom.get_title(loc="left").startswith("Drawdown of the expected bankroll: at most ")


def test_luck_is_the_mean_by_the_close_and_nine_results_in_ten(result: oe.Backtest) -> None:
    """Bet by bet: a price is worth its EV at the close, and the shown one where there is no close."""
    top, _ = bankroll(result, luck=True).axes
    middle, spread = [1000.0], [0.0]
    for _, part in (
        result.bets.drop_nulls("profit").sort("event_start_time").group_by("event_start_time", maintain_order=True)
    ):
        mean = variance = 0.0
        for bet in part.iter_rows(named=True):
            ev = bet["ev"] if bet["closing_ev"] is None else bet["closing_ev"]
            push, odds = bet["push_probability"] or 0.0, bet["net_odds"]
            p = (1.0 + ev) / odds
            chances = ((1.0 - push) * p, odds - 1.0), ((1.0 - push) * (1.0 - p), -1.0), (push, 0.0)
            expected = sum(chance * gain for chance, gain in chances)
            mean += bet["stake"] * expected
            variance += bet["stake"] ** 2 * sum(chance * (gain - expected) ** 2 for chance, gain in chances)
        middle.append(middle[-1] + mean)
        spread.append(spread[-1] + variance)
    (line,) = (each for each in top.get_lines() if each.get_label() == "mean by the close")
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), middle)
    (band,) = (each for each in top.collections if each.get_label() == "nine results in ten")
    corners = np.asarray(band.get_paths()[0].vertices, float)[:, 1]
    half = 1.645 * np.sqrt(spread)
    assert half[-1] > 0.0
    assert (corners.min(), corners.max()) == pytest.approx(((middle - half).min(), (middle + half).max()))
    assert "nine results in ten" not in [each.get_label() for each in bankroll(result).axes[0].collections]


def test_models_have_a_line_each_with_errors_by_event() -> None:
    rows = [
        ("ours", "0 to 1", 0.5, 0.4, 0.1),
        ("ours", "1 to 2", 1.5, 1.2, 0.3),
        ("mine", "1 to 2", 1.4, -1.0, None),
        ("mine", "5 or more", 20.0, -5.0, 0.5),
        ("mine", "2 to 3", 2.5, None, None),
    ]
    names = ["model", "band", "shown", "worth", "worth_se"]
    reliability = pl.DataFrame(rows, names, orient="row").with_columns(observations=10).select(*RELIABILITY)
    audit = Audit(pl.DataFrame(schema=SHOWN_SCHEMA), pl.DataFrame(), 1, "packaged", reliability=reliability)
    (axes,) = models(audit).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("EV by the model, %", "EV at the close, %")
    found = {}
    for container in axes.containers:
        line, _, (bars,) = container.lines  # type: ignore[attr-defined]
        halves = [(segment[1][1] - segment[0][1]) / 2 for segment in bars.get_segments()]
        found[container.get_label()] = list(zip(line.get_xdata(), line.get_ydata(), halves, strict=True))
    np.testing.assert_allclose(found["ours"], [(0.5, 0.4, 0.196), (1.5, 1.2, 0.588)])
    np.testing.assert_allclose(found["mine"], [(1.4, -1.0, 0.0), (20.0, -5.0, 0.98)])
    (diagonal,) = (line for line in axes.get_lines() if line.get_label() == "worth what it says")
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0.5, 20.0]  # type: ignore[arg-type]


def test_an_audit_without_models_says_so() -> None:
    with pytest.raises(ValueError, match="the audit compares no models; give it some with against"):
        models(audited([]))


def test_a_backtest_without_bets_has_an_empty_bankroll(past: pl.DataFrame) -> None:
    figure = bankroll(oe.backtest(past, oe.Strategy(min_ev=500.0)), luck=True)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Bankroll: 1,000 to 1,000.00 with 0 settled bets", "Drawdown: at most 0.0 %",
    ]  # fmt: skip
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_the_points_of_bets_are_bins_of_equal_size(result: oe.Backtest) -> None:
    bets = result.bets.drop_nulls("closing_ev").sort("ev")
    found = bet_points(result, 3)
    assert sum(point.size for point in found) == bets.height
    assert max(point.size for point in found) - min(point.size for point in found) <= 1
    first = bets.head(found[0].size)
    assert found[0][:2] == pytest.approx((100 * first["ev"].mean(), 100 * first["closing_ev"].mean()))  # type: ignore[operator]
    assert bet_points(result, bets.height + 1) == []


def test_legs_are_not_drawn_as_single_bets(expected: oe.Backtest) -> None:
    """The spread of their results is not known from each, and they have no EV."""
    trades = expected.trades.with_columns(kind=pl.lit("arbitrage"), ev=pl.lit(None, pl.Float64))
    legs = replace(expected, trades=pl.concat([expected.trades, trades]))
    assert bet_points(legs, 3) == bet_points(expected, 3)
    assert [len(bankroll(each, luck=True).axes[0].collections) for each in (expected, legs)] == [1, 0]
