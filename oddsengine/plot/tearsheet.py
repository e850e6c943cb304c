"""Tear sheets: a backtest as a figure or as an HTML file."""

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.backtest import Backtest
from oddsengine.backtesting.summary import lines
from oddsengine.maths import scoring
from oddsengine.plot.audit_plots import bet_points, draw_bankroll, draw_calibration, draw_drawdown
from oddsengine.plot.figure import BLUE, GREEN, GREY, ORANGE, RED, Z, neutral, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = 6
_MOST_GROUPS = 10


def tear_sheet(result: Backtest) -> "Figure":
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
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> world = oe.World(7, events=2, live=0.0, tick=900.0)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    >>> result = oe.backtest(pl.DataFrame(quotes, infer_schema_length=None), oe.Strategy(min_ev=1.0))
    >>> figure = tear_sheet(result)
    >>> len(figure.axes)
    6
    """
    figure = new_figure(11.0, 10.0)
    axes = figure.subplots(3, 2)
    draw_bankroll(axes[0, 0], result)
    draw_drawdown(axes[0, 1], result)
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

    Examples
    --------
    >>> import tempfile
    >>> import oddsengine as oe
    >>> world = oe.World(7, events=2, live=0.0, tick=900.0)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    >>> result = oe.backtest(pl.DataFrame(quotes, infer_schema_length=None), oe.Strategy(min_ev=1.0))
    >>> path = Path(tempfile.mkdtemp(), "result.html")
    >>> write_tear_sheet(result, path)
    >>> path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    picture = io.BytesIO()
    tear_sheet(result).savefig(picture, format="png", dpi=110)
    encoded = base64.b64encode(picture.getvalue()).decode()
    facts = "".join(f"<tr><th>{html.escape(name)}<td>{html.escape(text)}" for name, text in lines(result.summary()))
    rule = html.escape(", ".join(f"{k} = {v!r}" for k, v in vars(result.strategy).items() if v is not None))
    trades = result.trades.select(
        "placed_at", "kind", "status", "reason", "event_id", "market_type", "selection", "line", "sportsbook",
        pl.col("net_odds").round(3), (pl.col("ev") * 100.0).round(2).alias("ev %"), "wanted",
        pl.col("stake").round(2),
        (pl.col("closing_ev") * 100.0).round(2).alias("closing ev %"), "graded_by",
        pl.col("profit").round(2), pl.col("expected_profit").round(2).alias("expected profit"),
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


def _calibration(axes: "Axes", result: Backtest) -> None:
    """Plot fair probabilities against results if scores are known, else EV shown against EV at the close."""
    bets = result.bets.filter(graded_by="score", kind="ev")
    decided = bets.filter((pl.col("gain") == -1.0) | (pl.col("gain") > 0.0))
    if decided.height >= _BINS:
        p = decided["fair_probability"].to_numpy()
        won = (decided["gain"] > 0.0).to_numpy()
        bins = scoring.calibration(np.stack([p, 1.0 - p], axis=1), np.where(won, 0, 1), _BINS)
        x, y = bins["mean"].to_numpy(), bins["observed"].to_numpy()
        half = np.abs(bins.select("low", "high").to_numpy().T - y)
        plain(axes, "Calibration")
        axes.errorbar(x, y, yerr=half, fmt="o", color=BLUE, capsize=3)
        axes.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.2, linestyle="--")
        axes.set(xlabel="fair probability", ylabel="share that won (both sides)")
        return
    draw_calibration(axes, bet_points(result, _BINS))


def _spoken(column: str, name: str | None) -> str:
    """Write the value of a column as people say it."""
    if name is None:
        return "unknown"
    return catalog.book(name).name if column == "sportsbook" else name.replace("_", " ")


def _groups(axes: "Axes", result: Backtest, column: str, title: str) -> None:
    plain(axes, f"EV at the close by {title}")
    axes.set_xlabel("EV, %")
    groups = result.by(column).filter(pl.col("graded") > 0).head(_MOST_GROUPS)
    place = np.arange(groups.height)
    close, error = (groups[name].to_numpy() * 100.0 for name in ("closing_ev", "error"))
    colors = np.where(close >= 0.0, GREEN, RED).tolist()
    axes.barh(place, close, color=colors, height=0.6, alpha=0.8, xerr=Z * np.nan_to_num(error), ecolor=GREY)
    axes.plot(groups["ev"] * 100.0, place, "D", color=ORANGE, ms=5, label="EV shown")
    names = (_spoken(column, name) for name in groups[column])
    axes.set_yticks(place, [f"{name} ({n})" for name, n in zip(names, groups["graded"], strict=True)], fontsize="small")
    axes.invert_yaxis()
    axes.axvline(0.0, color=neutral(), lw=0.8)
    if groups.height:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.99), frameon=False, fontsize="small")
