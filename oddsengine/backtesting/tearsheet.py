"""Tear sheets: a backtest as a figure or as an HTML file. Requires matplotlib."""

import base64
import html
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.strategy import Backtest
from oddsengine.backtesting.summary import lines
from oddsengine.maths import scoring

_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#777777"
_BINS = 6
_MOST_GROUPS = 10
_Z = 1.96


def tear_sheet(result: Backtest) -> Any:
    """Plot a backtest: bankroll, drawdown, calibration, and EV at the close by book, market and time to start.

    Parameters
    ----------
    result
        Result of `backtest`.

    Returns
    -------
    matplotlib.figure.Figure
        Bars and points have 95 % intervals clustered by event.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  only who draws needs it
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a tear sheet needs the package matplotlib; run pip install matplotlib", name=error.name
        ) from None
    figure = Figure(figsize=(11.0, 10.0), layout="constrained")
    axes = figure.subplots(3, 2)
    for each in axes.ravel():
        each.spines[["top", "right"]].set_visible(False)
    _bankroll(axes[0, 0], axes[0, 1], result)
    _calibration(axes[1, 0], result)
    for place, column, title in (
        (axes[1, 1], "sportsbook", "book"),
        (axes[2, 0], "market_type", "market"),
        (axes[2, 1], "hours", "hours to the start"),
    ):
        _groups(place, result, column, title)
    return figure


def write_tear_sheet(result: Backtest, path: str | Path) -> None:
    """Write a backtest's summary, plots and trades as a self-contained HTML file.

    Parameters
    ----------
    result
        Result of `backtest`.
    path
        Path of the file.
    """
    picture = io.BytesIO()
    tear_sheet(result).savefig(picture, format="png", dpi=110)
    encoded = base64.b64encode(picture.getvalue()).decode()
    facts = "".join(f"<tr><th>{html.escape(name)}<td>{html.escape(text)}" for name, text in lines(result.summary()))
    rule = html.escape(", ".join(f"{k} = {v!r}" for k, v in vars(result.strategy).items() if v is not None))
    trades = result.trades.select(
        "placed_at", "status", "reason", "event_id", "market_type", "selection", "line", "sportsbook",
        pl.col("net_odds").round(3), (pl.col("ev") * 100.0).round(2).alias("ev %"), "stake",
        (pl.col("closing_ev") * 100.0).round(2).alias("closing ev %"), "graded_by", pl.col("profit").round(2),
    )  # fmt: skip
    head = "".join(f"<th>{html.escape(name)}" for name in trades.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{'' if cell is None else html.escape(_text(cell))}" for cell in row)
        for row in trades.iter_rows()
    )
    Path(path).write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Tear sheet</title><style>"
        "body{font:14px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse}th,td{padding:.15em .7em;text-align:left;border-bottom:1px solid #ddd}"
        "img{max-width:100%}div{overflow:auto;max-height:60vh}</style><h1>Tear sheet</h1>"
        f"<p>{rule}</p><table>{facts}</table><p><img alt='Bankroll, drawdown, calibration and closing EV' "
        f"src='data:image/png;base64,{encoded}'></p><h2>Trades</h2><div><table><tr>{head}{body}</table></div></html>",
        encoding="utf-8",
    )


def _text(cell: Any) -> str:
    return cell.strftime("%Y-%m-%d %H:%M:%S") if hasattr(cell, "strftime") else str(cell)


def _bankroll(path: Any, under: Any, result: Backtest) -> None:
    equity = result.equity()
    path.set(title="Bankroll after each start", ylabel="money")
    under.set(title="Drawdown", ylabel="% below the peak")
    if not equity.height:
        return
    money = np.concatenate([[result.bankroll], equity["bankroll"].to_numpy()])
    times = [equity["at"][0], *equity["at"].to_list()]
    path.step(times, money, where="post", color=_BLUE)
    path.axhline(result.bankroll, color=_GREY, lw=0.8)
    drawdown = -100.0 * scoring.drawdown(np.maximum(money, 1e-9))
    under.fill_between(times, drawdown, step="post", color=_RED, alpha=0.5, lw=0)
    for axes in (path, under):
        axes.tick_params(axis="x", labelrotation=30, labelsize=8)


def _calibration(axes: Any, result: Backtest) -> None:
    """Plot fair probabilities against results if scores are known, else EV shown against EV at the close."""
    bets = result.bets.filter(graded_by="score")
    decided = bets.filter((pl.col("gain") == -1.0) | (pl.col("gain") > 0.0))
    if decided.height >= _BINS:
        p = decided["fair_probability"].to_numpy()
        won = (decided["gain"] > 0.0).to_numpy()
        bins = scoring.calibration(np.stack([p, 1.0 - p], axis=1), np.where(won, 0, 1), _BINS)
        x, y = bins["mean"].to_numpy(), bins["observed"].to_numpy()
        half = np.abs(bins.select("low", "high").to_numpy().T - y)
        axes.errorbar(x, y, yerr=half, fmt="o", color=_BLUE)
        axes.plot([0.0, 1.0], [0.0, 1.0], color=_GREY, lw=1)
        axes.set(title="Calibration", xlabel="fair probability", ylabel="share that won (both sides)")
        return
    graded = result.bets.drop_nulls("closing_ev").sort("ev")
    axes.set(title="EV at the close by EV shown", xlabel="EV shown, %", ylabel="EV at the close, %")
    if graded.height < _BINS:
        return
    ev, close = (graded[name].to_numpy() * 100.0 for name in ("ev", "closing_ev"))
    parts = np.array_split(np.arange(graded.height), _BINS)
    x = np.array([ev[part].mean() for part in parts])
    y = np.array([close[part].mean() for part in parts])
    half = np.array([_Z * close[part].std() / math.sqrt(part.size) for part in parts])
    axes.errorbar(x, y, yerr=half, fmt="o", color=_BLUE)
    axes.plot([x.min(), x.max()], [x.min(), x.max()], color=_GREY, lw=1)


def _groups(axes: Any, result: Backtest, column: str, title: str) -> None:
    axes.set(title=f"EV at the close by {title}, %; diamonds: shown")
    groups = result.by(column).filter(pl.col("graded") > 0).head(_MOST_GROUPS)
    place = np.arange(groups.height)
    close, error = (groups[name].to_numpy() * 100.0 for name in ("closing_ev", "error"))
    colors = np.where(close >= 0.0, _GREEN, _RED).tolist()
    axes.barh(place, close, color=colors, height=0.6, alpha=0.8, xerr=_Z * np.nan_to_num(error), ecolor=_GREY)
    axes.plot(groups["ev"] * 100.0, place, "D", color=_ORANGE, ms=5)
    axes.set_yticks(
        place, [f"{name or 'unknown'} ({n})" for name, n in groups.select(column, "graded").iter_rows()], fontsize=8
    )
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", lw=0.8)
