"""Figures of a set of graded prices, with standard errors clustered by game."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.columns import Floats
from oddsengine.pricing.close_errors import central_errors

_LEAST = 20  # minimum rows of a slope
_SLOPE_BELOW = 8.0  # %: maximum EV in the slope

CELLS: dict[str, type[pl.DataType]] = {
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
    "settled": pl.Int64,  # prices with a result
    "returned": pl.Float64,  # percent of a stake of 1 on each
    "returned_se": pl.Float64,
}


def with_error(row: Mapping[str, Any], name: str, digits: int = 2, sign: str = "") -> str:
    """Format a figure of a row and its standard error, `name` and `name_se`."""
    value, error = row.get(name), row.get(f"{name}_se")
    if value is None:
        return "-"
    return f"{value:{sign}.{digits}f}" + ("" if error is None else f" +-{error:.{digits}f}")


def cell(part: pl.DataFrame, table: catalog.FairTable | None = None) -> dict[str, Any]:
    """Summarise a set of prices; `table` has the distribution of errors at the close."""
    graded = part.drop_nulls("worth")
    n = graded.height
    out: dict[str, Any] = dict.fromkeys(CELLS) | {"n": part.height, "graded": n, "events": graded["event"].n_unique()}
    won = part.drop_nulls("won")
    out["settled"] = won.height
    if won.height:
        gains = 100.0 * (won["won"].to_numpy() * won["odds"].to_numpy() - 1.0)
        out["returned"], out["returned_se"] = clustered_mean(gains, won["event"].rank("dense").to_numpy())
    if n >= 2:
        out |= _graded(graded, table)
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in out.items()}


def _graded(graded: pl.DataFrame, table: catalog.FairTable | None) -> dict[str, float]:
    """Summarise prices that have a value at the close."""
    out: dict[str, float] = {}
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
    return out


def clustered_mean(values: Floats, game: Any) -> tuple[float, float]:
    """Return the mean and its standard error, clustered by game."""
    return weighted_mean(values, np.ones(values.size), game)


def weighted_mean(values: Floats, weight: Floats, game: Any) -> tuple[float, float]:
    """Return the weighted mean and its standard error, clustered by game; the error of a single game is nan."""
    total = float(weight.sum())
    mean = float((weight * values).sum()) / total
    sums = np.bincount(game, weight * (values - mean))
    groups = len(np.unique(game))
    if groups < 2:
        return mean, math.nan
    return mean, math.sqrt(groups / (groups - 1) * float((sums**2).sum())) / total


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
