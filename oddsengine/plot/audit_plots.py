"""Plots of audits and backtests."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.audit_report import MOST_HOURS, MOST_ODDS, Audit
from oddsengine.backtesting.backtest import Backtest
from oddsengine.backtesting.cells import clustered_mean
from oddsengine.columns import Floats
from oddsengine.maths import scoring
from oddsengine.plot.figure import BLUE, COLORS, GREY, RED, SKY, Z, legend, new_figure, plain, set_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BANDS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0)  # %: bounds of the EV shown
_LEAST = 10  # prices of a point
_MARKS = "os^D"
_NINE_IN_TEN = 1.645  # standard deviations in half a 90 % range


class CalibrationPoint(NamedTuple):
    """The mean EV of some prices when shown and at the close, in percent."""

    shown: float
    worth: float
    error: float  # standard error of `worth`, clustered by event; nan for one event
    size: int


def calibration(result: Audit, *, hours: float = MOST_HOURS) -> "Figure":
    """Plot the EV at the close over the EV shown: on the diagonal, an EV is worth what it shows.

    Each point is the mean of a band of EV, with a 95 % interval clustered by event. The prices are those of the
    audit's own table: first shown at an EV of at least 1 %, at odds below 4.

    Parameters
    ----------
    result
        Result of `audit`.
    hours
        Prices shown earlier before the start are left out.

    Returns
    -------
    matplotlib.figure.Figure
        One point for each band with at least ten graded prices; without any, axes that say so.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> books = ["pinnacle", "draftkings", "fanduel", "betmgm", "caesars"]
    >>> world = oe.World(7, events=8, live=0.0, tick=900.0, books=books)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    >>> figure = oe.plot.calibration(oe.audit(pl.DataFrame(quotes, infer_schema_length=None)))
    >>> figure.axes[0].get_xlabel()
    'EV shown, %'
    """
    figure = new_figure(6.4, 5.6)
    draw_calibration(figure.subplots(), audit_points(result.shown, hours))
    return figure


def models(result: Audit) -> "Figure":
    """Plot the EV at the close over the EV by each model of an audit: a good model is on the diagonal.

    Parameters
    ----------
    result
        Result of `audit` with `against`.

    Returns
    -------
    matplotlib.figure.Figure
        One axes with a line for each model, by bands of EV, with 95 % intervals clustered by event. A band with the
        prices of one event has none.

    Raises
    ------
    ValueError
        If the audit compares no models.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> books = ["pinnacle", "draftkings", "fanduel", "betmgm", "caesars"]
    >>> world = oe.World(7, events=8, live=0.0, tick=900.0, books=books)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    >>> history = pl.DataFrame(quotes, infer_schema_length=None)
    >>> home = history.filter(market_type="moneyline").unique("event_id").select("event_id", "market_type", "home_team")
    >>> even = home.with_columns(selection="home_team", probability=0.5, line=pl.lit(None, pl.Float64))
    >>> figure = oe.plot.models(oe.audit(history, against={"even": even}))
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['worth what it says', 'ours', 'even']
    """
    rows = result.reliability.drop_nulls("worth")
    if rows.is_empty():
        raise ValueError("the audit compares no models; give it some with against")
    figure = new_figure(8.4, 5.0)
    axes = figure.subplots()
    plain(axes, "EV at the close by EV of each model")
    axes.set(xlabel="EV by the model, %", ylabel="EV at the close, %")
    for at, ((model,), part) in enumerate(rows.group_by("model", maintain_order=True)):
        error = Z * part["worth_se"].fill_null(0.0).fill_nan(0.0)
        axes.errorbar(
            part["shown"], part["worth"], yerr=error, fmt=f"{_MARKS[at % len(_MARKS)]}-",
            color=COLORS[at % len(COLORS)], capsize=3, linewidth=1.4, markersize=5, label=str(model),
        )  # fmt: skip
    ends = [float(bound) for bound in rows.select(pl.col("shown").min(), most=pl.col("shown").max()).row(0)]
    axes.plot(ends, ends, color=GREY, linewidth=1.2, linestyle="--", label="worth what it says")
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    legend(axes)
    return figure


def bankroll(result: Backtest, *, luck: bool = False) -> "Figure":
    """Plot the bankroll of a backtest after each start, and the drawdown from its highest point.

    Parameters
    ----------
    result
        Result of `backtest`.
    luck
        Also draw what the same bets earn on average if every price is worth its EV at the close (that shown where there
        is no close), and the range that holds nine results in ten. Bets count as independent, and stakes as given.

    Returns
    -------
    matplotlib.figure.Figure
        Two axes with one axis of time.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> books = ["pinnacle", "draftkings", "fanduel", "betmgm", "caesars"]
    >>> world = oe.World(7, events=8, live=0.0, tick=900.0, books=books)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    >>> result = oe.backtest(pl.DataFrame(quotes, infer_schema_length=None), oe.Strategy(min_ev=1.0))
    >>> figure = oe.plot.bankroll(result)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['expected bankroll', 'drawdown, %']
    """
    figure = new_figure(8.0, 5.0)
    top, bottom = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    draw_bankroll(top, result)
    if luck:
        _draw_luck(top, result)
    draw_drawdown(bottom, result)
    top.set_xlabel("")
    return figure


def _draw_luck(axes: "Axes", result: Backtest) -> None:
    """Draw the expected bankroll of the same stakes, and 1.645 standard deviations on both sides.

    With legs of arbitrages or low holds, whose results depend on each other, nothing is drawn.
    """
    bets = result.bets.drop_nulls(_drawn(result))
    if bets.is_empty() or (bets["kind"] != "ev").any():
        return
    ev = pl.coalesce("closing_ev", "ev")
    decided = 1.0 - pl.col("push_probability").fill_null(0.0)
    won = ((1.0 + ev) / pl.col("net_odds")).clip(0.0, 1.0)
    mean = decided * ev
    square = decided * (won * (pl.col("net_odds") - 1.0) ** 2 + 1.0 - won)
    stake = pl.col("stake")
    each = bets.select(
        at=pl.coalesce("event_start_time", "placed_at"), mean=stake * mean, variance=stake**2 * (square - mean**2)
    )
    path = (
        each.group_by("at")
        .agg(pl.col("mean", "variance").sum())
        .sort("at")
        .with_columns(pl.all().exclude("at").cum_sum())
    )
    at, _ = _path(result)
    middle = result.bankroll + np.concatenate([[0.0], path["mean"].to_numpy()])
    half = _NINE_IN_TEN * np.sqrt(np.concatenate([[0.0], path["variance"].to_numpy()]))
    axes.fill_between(
        at, middle - half, middle + half, step="post", color=SKY, alpha=0.3, linewidth=0, label="nine results in ten"
    )
    axes.step(at, middle, where="post", color=SKY, linestyle="--", linewidth=1.4, label="mean by the close")
    legend(axes)


# ---- axes ----


def audit_points(shown: pl.DataFrame, hours: float = MOST_HOURS) -> list[CalibrationPoint]:
    """Return the points of an audit's prices (`SHOWN_SCHEMA`) by band of EV."""
    graded = shown.filter(
        (pl.col("threshold") == _BANDS[0]) & (pl.col("odds") < MOST_ODDS) & (pl.col("hours") < hours)
    ).drop_nulls("worth")
    bands = (graded.filter((pl.col("ev") >= low) & (pl.col("ev") < high)) for low, high in pairwise(_BANDS))
    return [_point(band) for band in bands if band.height >= _LEAST]


def bet_points(result: Backtest, bins: int) -> list[CalibrationPoint]:
    """Return the points of a backtest's bets on +EV prices, in bins of equal size."""
    bets = result.bets.drop_nulls(["ev", "closing_ev"]).sort("ev")
    graded = bets.select(event="event_id", ev=pl.col("ev") * 100.0, worth=pl.col("closing_ev") * 100.0)
    if graded.height < bins:
        return []
    return [_point(graded[part]) for part in np.array_split(np.arange(graded.height), bins)]


def _point(prices: pl.DataFrame) -> CalibrationPoint:
    event = np.unique(prices["event"].fill_null("").to_numpy(), return_inverse=True)[1]
    mean, error = clustered_mean(prices["worth"].to_numpy(), event)
    shown = float(np.mean(prices["ev"].to_numpy()))
    return CalibrationPoint(shown, mean, error if event.max() > 0 else math.nan, prices.height)


def draw_calibration(axes: "Axes", points: list[CalibrationPoint]) -> None:
    """Draw points with 95 % intervals over the diagonal."""
    plain(axes, "EV at the close by EV shown")
    axes.set(xlabel="EV shown, %", ylabel="EV at the close, %")
    if not points:
        axes.text(0.5, 0.5, "too few graded prices", transform=axes.transAxes, ha="center", va="center", color=GREY)
        return
    shown, worth = (np.array([point[at] for point in points]) for at in (0, 1))
    error = Z * np.nan_to_num([point.error for point in points])
    ends = [min(0.0, float(shown.min())), float(shown.max()) * 1.08]
    axes.plot(ends, ends, color=GREY, linewidth=1.2, linestyle="--", label="worth what it shows")
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.errorbar(shown, worth, yerr=error, fmt="o", color=BLUE, capsize=3, label="mean and 95 % interval")
    for point in points:
        axes.annotate(
            f"{point.size:,}", (point.shown, point.worth), xytext=(6, 5), textcoords="offset points",
            fontsize="x-small",
        )  # fmt: skip
    axes.legend(loc="best", frameon=False, fontsize="small", title="numbers: prices", title_fontsize="small")


def _drawn(result: Backtest) -> str:
    """Return the column of profits that is drawn: by results, or to expect at the close if there are none."""
    bets = result.bets
    return "profit" if bets["profit"].count() or not bets["expected_profit"].count() else "expected_profit"


def _path(result: Backtest) -> tuple[list[Any], Floats]:
    """Return the times of a backtest's results and the bankroll at each, from the initial one."""
    equity = result.equity() if _drawn(result) == "profit" else result.expected_equity()
    money = np.concatenate([[result.bankroll], equity["bankroll"].to_numpy()])
    first = result.bets["placed_at"].min()
    return [first, *equity["at"].to_list()], money


def draw_bankroll(axes: "Axes", result: Backtest) -> None:
    """Draw the bankroll over time."""
    at, money = _path(result)
    drawn, every = _drawn(result), result.bets.height
    bets = result.bets.drop_nulls(drawn).height
    if drawn == "expected_profit":
        plain(axes, f"Expected at the close: {money[0]:,.0f} to {money[-1]:,.2f} with {bets:,} bets, none settled")
        axes.set_ylabel("expected bankroll")
    else:
        settled = f"{bets:,}" if bets == every else f"{bets:,} of {every:,}"
        plain(axes, f"Bankroll: {money[0]:,.0f} to {money[-1]:,.2f} with {settled} settled bets")
        axes.set_ylabel("bankroll")
    axes.axhline(result.bankroll, color=GREY, linewidth=0.8)
    if bets:
        axes.step(at, money, where="post", color=BLUE, label=axes.get_ylabel())
        axes.ticklabel_format(axis="y", useOffset=False)
        set_time(axes)


def draw_drawdown(axes: "Axes", result: Backtest) -> None:
    """Draw the fall below the highest bankroll so far."""
    at, money = _path(result)
    drawdown = -100.0 * scoring.drawdown(np.maximum(money, 1e-9))
    of_what = "" if _drawn(result) == "profit" else " of the expected bankroll"
    plain(axes, f"Drawdown{of_what}: at most {-drawdown.min():.1f} %")
    axes.set_ylabel("drawdown, %")
    if money.size > 1:
        axes.step(at, drawdown, where="post", color=RED, linewidth=1.2, label="drawdown")
        axes.fill_between(at, drawdown, step="post", color=RED, alpha=0.5, linewidth=0)
        set_time(axes)
