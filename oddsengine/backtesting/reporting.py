"""Tables of an audit: EV shown and value at the close, with standard errors clustered by game."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.delays import Delay, read_delays
from oddsengine.backtesting.grading import THRESHOLDS, grade_shown
from oddsengine.backtesting.replay import check_books, engine_of, source
from oddsengine.backtesting.shown import collect_shown
from oddsengine.catalog.fair import FLAGS
from oddsengine.catalog.reasons import Guards
from oddsengine.columns import NO_TIME, Floats
from oddsengine.maths.devig import Method
from oddsengine.pricing.close import central_errors
from oddsengine.tables.timestamps import micros
from oddsengine.tape import Tape

MOST_ODDS, MOST_HOURS = 4.0, 72.0
_LEAST = 20  # minimum rows of a cell
_BEGUN_US = 60_000_000  # the last snapshot may be this long before a start, as the close of opening and closing odds is
_SLOPE_BELOW = 8.0  # %: maximum EV in the slope

CELLS = {
    "n": pl.Int64,
    "graded": pl.Int64,
    "events": pl.Int64,
    "shown": pl.Float64,
    "worth": pl.Float64,
    "worth_se": pl.Float64,
    "bias": pl.Float64,
    "bias_se": pl.Float64,
    "ratio": pl.Float64,
    "ratio_se": pl.Float64,
    "slope": pl.Float64,
    "slope_se": pl.Float64,
    "inside_90": pl.Float64,
    "inside_50": pl.Float64,
    "returned": pl.Float64,
}


LATER: dict[str, type[pl.DataType]] = {
    "threshold": pl.Float64,
    "delay": pl.String,
    "n": pl.Int64,  # prices whose event was looked at again
    "there": pl.Float64,  # percent
    **{
        f"{of}_{figure}": pl.Int64 if figure == "graded" else pl.Float64
        for of in ("there", "gone", "still")
        for figure in ("graded", "ev", "worth", "worth_se")
    },
}
"""Columns of `Audit.later`: `there` stood at the same odds or better, `gone` did not, `still` was also still shown."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The EV shown over a history, and its value at the close.

    Attributes
    ----------
    shown
        `SHOWN_SCHEMA`: one row each time a price first reached a threshold.
    table
        The calibration table: cells by threshold, `by` and `value`.
    looks
        Number of snapshots.
    fair
        Name of the table of constants.
    waiting
        Number of games with a price shown that had not begun at the end of the history; they are left out.
    later
        `LATER`: what became of the prices after each delay, by threshold.
    """

    shown: pl.DataFrame
    table: pl.DataFrame
    looks: int
    fair: str
    waiting: int = 0
    later: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LATER))

    def __str__(self) -> str:
        """Format the table as plain text."""
        head = (
            f"{self.looks:,} looks, fair table {self.fair}; EV in percent of the stake, +- one standard error by game"
        )
        lines = [head]
        if self.waiting:
            lines.append(f"left out: {self.waiting:,} games that had not begun at the end of the history")
        for row in self.table.iter_rows(named=True):
            name = "all" if row["by"] == "all" else f"  {row['by']} {row['value']}"
            if row["by"] == "all":
                lines.append(f"EV >= {row['threshold']:g}: {row['n']} first showings, {row['graded']} graded")
            if row["graded"] < 2:
                lines.append(f"{name:<28} n {row['graded']:>5}  {_NONE[row['graded']]}")
                continue
            lines.append(
                f"{name:<28} n {row['graded']:>5}  games {row['events']:>4}  shown {row['shown']:5.2f}  "
                f"worth {row['worth']:5.2f} +-{row['worth_se']:.2f}  bias {row['bias']:+.2f} +-{row['bias_se']:.2f}  "
                f"ratio {row['ratio']:.2f} +-{row['ratio_se']:.2f}  slope {_text(row['slope'])} "
                f"+-{_text(row['slope_se'])}"
                + (
                    ""
                    if row["inside_90"] is None
                    else f"  90 % range holds {row['inside_90']:.0f} %, 50 % range {row['inside_50']:.0f} %"
                )
                + ("" if row["returned"] is None else f"  returned {row['returned']:+.2f} %")
            )
        for row in self.later.iter_rows(named=True):
            there = "-" if row["there"] is None else f"{row['there']:.0f} %"
            lines.append(
                f"EV >= {row['threshold']:g}, {row['delay']} later: n {row['n']:>5}, {there} still there, "
                f"worth {_value(row, 'there')}; gone, worth {_value(row, 'gone')}; "
                f"still shown, worth {_value(row, 'still')}"
            )
        return "\n".join(lines)


_NONE = ("no price has a close", "too few for a figure with an error")


def _value(row: dict[str, Any], of: str) -> str:
    if row[f"{of}_worth"] is None:
        return f"- (n {row[f'{of}_graded']})"
    n, ev, worth, error = (row[f"{of}_{figure}"] for figure in ("graded", "ev", "worth", "worth_se"))
    return f"{worth:.2f} +-{error:.2f} of {ev:.2f} (n {n})"


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def audit(
    history: Any,
    *,
    method: Method | None = None,
    sharp: Any = None,
    books: Iterable[str] | None = None,
    guards: Guards = None,
    fair: catalog.FairTable | None = None,
    hours: float = MOST_HOURS,
    delays: Any = (),
    progress: Any = None,
) -> Audit:
    """Replay a history through the live engine and grade prices, when first shown, at the other books' close.

    Parameters
    ----------
    history
        A frame or path of spells, openings or quotes, or the folder of a tape; see `oddsengine.backtesting.formats`.
    method, sharp, books
        The fair price to audit, as for `find_ev`; by default the fair price at the close, or "power" with `sharp`.
    guards, fair
        As for `Engine`. Tapes use the recorded guards and accept no others.
    hours
        Prices shown earlier before the start are listed, but not part of the table.
    delays
        A delay or several, such as ``"10m"``: how many prices still stood so much later, what these were worth, what
        the others, and what those that were still shown.
    progress
        Called with the number of snapshots so far.

    Returns
    -------
    Audit
        Graded prices, and the calibration table of prices below 4.

    Raises
    ------
    ValueError
        If the history or a parameter is invalid, or a book occurs neither in the history nor in the catalog.
    """
    asked = read_delays(delays)
    replayed = source(history)
    table = fair or (replayed.fair if isinstance(replayed, Tape) else None) or catalog.fair_table()
    engine = engine_of(replayed, guards, table)
    view = engine.view(books, sharp, method, kinds=("ev",), min_ev=0.0, include=("suspect",), keep=True)
    results = None if isinstance(replayed, Tape) else replayed.results
    prices, closes, looks = collect_shown(replayed, engine, view, THRESHOLDS, asked, progress)
    check_books(engine, view)
    waits = (
        pl.col("event_start_time").to_physical() > (NO_TIME if engine.now is None else micros(engine.now)) + _BEGUN_US
    )
    waiting = prices.filter(waits)["event_id"].n_unique() if prices.height else 0
    shown = grade_shown(prices.filter(~waits.fill_null(value=False)) if waiting else prices, closes, results, table)
    return Audit(shown, calibration(shown, hours, table), looks, table.name, waiting, _later(shown, hours, asked))


def _selected(shown: pl.DataFrame, hours: float) -> pl.DataFrame:
    return shown.filter((pl.col("odds") < MOST_ODDS) & (pl.col("hours") < hours))


def _later(shown: pl.DataFrame, hours: float, delays: tuple[Delay, ...]) -> pl.DataFrame:
    """Summarise what became of the prices after each delay."""
    rows = []
    for threshold in (1.0, 2.0):
        part = _selected(shown, hours).filter(threshold=threshold)
        for delay in delays:
            there, still = delay.columns
            looked = part.drop_nulls(there)
            row = {"threshold": threshold, "delay": delay.name, "n": looked.height}
            row["there"] = 100.0 * float(looked[there].mean()) if looked.height else None  # type: ignore[arg-type]
            for name, keep in (("there", pl.col(there)), ("gone", ~pl.col(there)), ("still", pl.col(still))):
                figures = cell(looked.filter(keep))
                row |= {f"{name}_graded": figures["graded"], f"{name}_ev": figures["shown"],
                        f"{name}_worth": figures["worth"], f"{name}_worth_se": figures["worth_se"]}  # fmt: skip
            rows.append(row)
    return pl.DataFrame(rows, schema=LATER)


def calibration(shown: pl.DataFrame, hours: float = MOST_HOURS, table: catalog.FairTable | None = None) -> pl.DataFrame:
    """Return the calibration table: total, and by league, market, book, hours left, EV and flag."""
    selected = _selected(shown, hours)
    bands = {
        "hours": _band("hours", {"0-3": 3.0, "3-24": 24.0}, "24-72"),
        "EV": _band("ev", {"1-2": 2.0, "2-3": 3.0, "3-5": 5.0}, "5-"),
    }
    rows = []
    for threshold in (1.0, 2.0):
        part = selected.filter(pl.col("threshold") == threshold).with_columns(**bands)
        rows.append({"threshold": threshold, "by": "all", "value": "", **cell(part, table)})
        for by in ("league", "market", "book", "hours", "EV"):
            for value in sorted(part[by].drop_nulls().unique().to_list()):
                of = part.filter(pl.col(by) == value)
                rows.append({"threshold": threshold, "by": by, "value": value, **cell(of, table)})
        for value in FLAGS:
            of = part.filter(pl.col("flags").list.contains(value))
            if of.height:
                rows.append({"threshold": threshold, "by": "flag", "value": value, **cell(of, table)})
    schema = {"threshold": pl.Float64, "by": pl.String, "value": pl.String, **CELLS}
    return pl.DataFrame(rows, schema=schema)


def _band(column: str, below: dict[str, float], rest: str) -> pl.Expr:
    """Return the name of the first upper bound above a value."""
    out = pl.lit(rest)
    for name, bound in reversed(below.items()):
        out = pl.when(pl.col(column) < bound).then(pl.lit(name)).otherwise(out)
    return out


def cell(part: pl.DataFrame, table: catalog.FairTable | None = None) -> dict[str, Any]:
    """Summarise a set of prices; `table` has the distribution of errors at the close."""
    graded = part.drop_nulls("worth")
    n = graded.height
    out: dict[str, Any] = dict.fromkeys(CELLS) | {"n": part.height, "graded": n, "events": graded["event"].n_unique()}
    if n < 2:
        return out
    ev, worth = graded["ev"].to_numpy(), graded["worth"].to_numpy()
    game = np.unique(graded["event"].to_numpy(), return_inverse=True)[1]
    out["shown"], (out["worth"], out["worth_se"]) = float(ev.mean()), clustered_mean(worth, game)
    out["bias"], out["bias_se"] = clustered_mean(ev - worth, game)
    ratio = float(worth.sum() / ev.sum())
    out["ratio"], out["ratio_se"] = ratio, clustered_mean((worth - ratio * ev) / ev.mean(), game)[1]
    low = ev < _SLOPE_BELOW
    if low.sum() > _LEAST:
        out["slope"], out["slope_se"] = clustered_slope(ev[low], worth[low], game[low])
    inside = graded.drop_nulls("se")
    if inside.height:
        z = (inside["error"] / inside["se"]).abs().to_numpy()
        degrees = (table or catalog.fair_table()).constants.close_degrees
        for share in (90, 50):
            out[f"inside_{share}"] = 100.0 * float((z < central_errors(share, degrees)).mean())
    won = part.drop_nulls("won")
    if won.height:
        out["returned"] = 100.0 * float(np.mean(won["won"].to_numpy() * won["odds"].to_numpy() - 1.0))
    return out


def clustered_mean(values: Floats, game: Any) -> tuple[float, float]:
    """Return the mean and its standard error, clustered by game."""
    mean, sums = float(values.mean()), np.bincount(game, values - values.mean())
    groups = len(np.unique(game))
    return mean, math.sqrt(groups / max(groups - 1, 1) * float((sums**2).sum())) / values.size


def clustered_slope(x: Floats, y: Floats, game: Any) -> tuple[float, float]:
    """Return the least-squares slope of y on x and its standard error, clustered by game."""
    design = np.column_stack((np.ones(x.size), x))
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ y
    variance = clustered_variance(design * (y - design @ beta)[:, None], inverse, game)
    return float(beta[1]), math.sqrt(float(variance[1, 1]))


def clustered_variance(scores: Floats, inverse: Any, game: Any) -> Floats:
    """Return the covariance of least-squares estimates, clustered by game.

    `scores` are the rows of the design times their residuals, `inverse` is that of the information matrix.
    """
    sums = np.zeros((int(game.max(initial=-1)) + 1, scores.shape[1]))
    np.add.at(sums, game, scores)
    spread = sums @ inverse.T  # multiplied with itself, so that rounding leaves no variance below 0
    return np.asarray(spread.T @ spread)
