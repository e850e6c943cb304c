"""A user's own model as `ModelPrices`: from a table of probabilities, or matrices of the probabilities of scores.

A table has a row per outcome: `event_id`, `market_type`, `selection`, `line` and `probability`, as in odds tables, and
where known `error`, the standard error of the probability. Outcomes are identified as prices are, so that any
wording of a book will do; what a row lacks to be identified (sport, league, teams) is taken from the prices.

A matrix of a football game has the probability of each score, home goals by row. It gives the result, totals, handicaps
and both teams to score; `FootballProbabilityGrid` of penaltyblog is one, by its `grid`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from oddsengine.catalog import thresholds
from oddsengine.catalog.reasons import CODES, GUARDS, NAMES
from oddsengine.columns import Floats
from oddsengine.detection import question as board
from oddsengine.detection.question import PreparedTable
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import NO_TIME
from oddsengine.identity.table import identify
from oddsengine.pricing.close import Fair
from oddsengine.pricing.model import ModelPrices, of_rows, outcomes
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, check_odds

IntoModel = IntoFrame | Mapping[str, Any] | ModelPrices
_EVENT = ("sport", "league", "home_team", "away_team")
_REQUIRED = ("event_id", "market_type", "selection", "probability")
_LEAST_ERROR = 1e-9  # of a model that is said to be exact
_ALL_OFF = frozenset(CODES[name] for name in GUARDS)


def read_model(model: IntoModel, prices: pl.DataFrame) -> ModelPrices:
    """Read a model; `prices` has the events' sports and teams where the model does not.

    Raises
    ------
    OddsError
        If a column is missing, or a row is not an outcome with a probability.
    """
    if isinstance(model, ModelPrices):
        return model
    if isinstance(model, str):
        raise OddsError(f"model: a live board has no column {model!r}; give a frame with a row per outcome")
    try:
        given = _of_scores(model) if isinstance(model, Mapping) else to_polars(model)
    except (TypeError, ValueError) as problem:
        raise OddsError(f"model: {problem}") from None
    if missing := [name for name in _REQUIRED if name not in given.columns]:
        came = ", ".join(given.columns[:20]) or "none"
        raise OddsError(f"model: it has no {', no '.join(missing)} (its columns: {came})")
    prob, error = probabilities(given["probability"], given["error"] if "error" in given.columns else None, "model row")
    if np.isnan(prob).any():
        given, prob, error = given.filter(~np.isnan(prob)), prob[~np.isnan(prob)], error[~np.isnan(prob)]
    table = check_odds(_priced(given, prices, prob))
    if table.rejected.height:
        row, field, value, reason = table.rejected.select("row", "field", "value", "reason").row(0)
        raise OddsError(f"model row {row}: {field} {value!r} is {reason}")
    identity = identify(table, _ALL_OFF)
    g = identity.groups
    nothing = np.empty(0, np.uint8)
    verdicts = Verdicts(nothing, np.empty(0), nothing, nothing, int(NO_TIME), thresholds())
    prepared = PreparedTable(table, identity, verdicts, _ALL_OFF, table, {})
    wrong = np.flatnonzero(identity.verdict)
    if wrong.size:
        text = board.reasons_of(prepared, wrong[:1])[0]
        about = table.select("event_id", "market_type", "selection", "line").row(int(wrong[0]))
        raise OddsError(
            f"model row {wrong[0] + 1} {about}: {NAMES[identity.verdict[wrong[0]]]}, {text}; the prices, or columns "
            "sport, home_team and away_team of the model, say who plays"
        )
    key = outcomes(g, board.hashes(prepared).ladder, g.market.astype(np.int64), g.side.astype(np.int64))
    order = np.argsort(key, kind="stable")
    key, row = key[order], g.row[order]
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        first, second = sorted((int(row[twice[0]]), int(row[twice[0] + 1])))
        raise OddsError(f"model rows {first + 1} and {second + 1} are the same outcome")
    # A book may name the teams the other way round, but not a model.
    return ModelPrices(key, prob[row], error[row])


def probabilities(column: pl.Series, errors: pl.Series | None, what: str) -> tuple[Floats, Floats]:
    """Probabilities and their standard errors in log-odds; nan for null. Raises `OddsError` for what is neither."""
    prob = _numbers(column, what, "probability")
    wrong = np.flatnonzero((prob <= 0.0) | (prob >= 1.0))
    if wrong.size:
        raise OddsError(f"{what} {wrong[0] + 1}: probability must be above 0 and below 1, got {prob[wrong[0]]:g}")
    error = np.full(prob.size, np.nan) if errors is None else _numbers(errors, what, "error")
    wrong = np.flatnonzero((error < 0.0) | (error >= 1.0))
    if wrong.size:
        raise OddsError(f"{what} {wrong[0] + 1}: error must be 0 or more and below 1, got {error[wrong[0]]:g}")
    return prob, np.maximum(error / (prob * (1.0 - prob)), _LEAST_ERROR)


def _numbers(column: pl.Series, what: str, name: str) -> Floats:
    cast = column.cast(pl.Float64, strict=False)
    lost = (cast.is_null() & column.is_not_null()).arg_true()
    if lost.len():
        raise OddsError(f"{what} {lost[0] + 1}: {name} must be a number, got {column[lost[0]]!r}")
    return np.asarray(cast.fill_null(np.nan).to_numpy(), np.float64).copy()


def _priced(given: pl.DataFrame, prices: pl.DataFrame, prob: Floats) -> pl.DataFrame:
    """The rows of a model as prices of one book."""
    own = given.select(name for name in given.columns if name in ODDS_SCHEMA and not name.startswith("odds_"))
    own = own.with_columns(
        pl.col("event_id").cast(pl.String), sportsbook=pl.lit("model"), odds_decimal=pl.Series(1.0 / prob),
        row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32),
    )  # fmt: skip
    if "event_id" not in prices.columns:
        return own
    known = [name for name in _EVENT if name in prices.columns]
    events = prices.select(pl.col("event_id").cast(pl.String), *known).unique("event_id", keep="first")
    joined = own.join(events, on="event_id", how="left", suffix="_of_prices", maintain_order="left")
    both = [name for name in known if f"{name}_of_prices" in joined.columns]
    return joined.with_columns(pl.coalesce(name, f"{name}_of_prices").alias(name) for name in both)


# ---- scores ----


def _of_scores(matrices: Mapping[str, Any]) -> pl.DataFrame:
    """A table of the markets that follow from the probabilities of scores."""
    tables = [_of_matrix(event, getattr(matrix, "grid", matrix)) for event, matrix in matrices.items()]
    return pl.concat(tables) if tables else pl.DataFrame(schema=dict.fromkeys(_REQUIRED, pl.String))


def _of_matrix(event: str, given: Any) -> pl.DataFrame:
    grid = np.asarray(given, np.float64)
    if grid.ndim != 2 or not grid.size:
        raise ValueError(f"event {event!r} needs a matrix of the probabilities of scores, got {type(given).__name__}")
    if not (np.isfinite(grid).all() and grid.min() >= 0.0 and abs(grid.sum() - 1.0) < 0.01):
        raise ValueError(f"the probabilities of the scores of event {event!r} must sum to 1, got {grid.sum():g}")
    grid = grid / grid.sum()
    home, away = np.indices(grid.shape)
    goals, margin = home + away, home - away
    rows: list[tuple[str, str, float | None, float]] = [
        ("moneyline_3way", "home", None, float(grid[margin > 0].sum())),
        ("moneyline_3way", "draw", None, float(grid[margin == 0].sum())),
        ("moneyline_3way", "away", None, float(grid[margin < 0].sum())),
        ("both_teams_to_score", "yes", None, float(grid[1:, 1:].sum())),
        ("both_teams_to_score", "no", None, float(1.0 - grid[1:, 1:].sum())),
    ]
    for line in np.arange(0.5, goals.max(), 0.25).tolist():
        rows += [("total_goals", "over", line, winning(grid, goals, line))]
        rows += [("total_goals", "under", line, winning(grid, -goals, -line))]
    for line in np.arange(-min(grid.shape) + 1.5, min(grid.shape) - 1.0, 0.25).tolist():
        rows += [("point_spread", "home", line, winning(grid, margin, -line))]
        rows += [("point_spread", "away", -line, winning(grid, -margin, line))]
    return pl.DataFrame(
        [(event, kind, side, side, line, p) for kind, side, line, p in rows if 1e-9 < p < 1.0 - 1e-9],
        schema={
            "event_id": pl.String, "market_type": pl.String, "selection": pl.String, "selection_type": pl.String,
            "line": pl.Float64, "probability": pl.Float64,
        }, orient="row",
    )  # fmt: skip


def winning(grid: Floats, figure: Any, line: float) -> float:
    """Probability that a figure of the score is above a line, given no push; a quarter line is half of two bets."""
    won = lost = 0.0
    for part in (line - 0.25, line + 0.25) if line % 0.5 else (line, line):
        won += 0.5 * float(grid[figure > part].sum())
        lost += 0.5 * float(grid[figure < part].sum())
    return won / (won + lost) if won + lost else np.nan


def modelled(model: IntoModel | str | None, prepared: PreparedTable) -> ModelPrices | Fair | None:
    """Read the `model` of a finder: a column of the table, or what `read_model` reads."""
    if model is None:
        return None
    return _of_column(prepared, model) if isinstance(model, str) else read_model(model, prepared.table)


def _of_column(prepared: PreparedTable, name: str) -> Fair:
    """Fair prices from a column of the table, with standard errors from the column `<name>_error` if it exists."""
    table = prepared.table
    if name not in table.columns:
        raise OddsError(f"model: the prices have no column {name!r} (their columns: {', '.join(table.columns[-20:])})")
    error = f"{name}_error"
    prob, logits = probabilities(table[name], table[error] if error in table.columns else None, f"{name} of price")
    g = prepared.identity.groups
    return of_rows(g, prob[g.row], logits[g.row])
