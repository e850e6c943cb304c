"""A user's own model as `ModelPrices`: from a table of probabilities, or matrices of the probabilities of scores.

A table has a row per outcome: `event_id`, `market_type`, `selection`, `line` and `probability`, as in odds tables, and
where known `error`, the standard error of the probability. Outcomes are identified as prices are, so that any
raw label of a book will do; what a row lacks to be identified (sport, league, teams) is taken from the prices.

A matrix of a football game has the probability of each score, home goals by row. It gives the result, totals, handicaps
and both teams to score; `FootballProbabilityGrid` of penaltyblog is one, by its `grid`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.catalog import thresholds
from oddsengine.catalog.reasons import CODES, GUARDS, NAMES
from oddsengine.columns import NO_TIME, Floats
from oddsengine.detection import question as board
from oddsengine.detection.opportunity_ids import hash_text, hash_texts
from oddsengine.detection.question import PreparedTable
from oddsengine.detection.registered_fair import asked
from oddsengine.fair_functions import Calls, RegisteredFair, fair_plugin, registered_fair
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import Groups
from oddsengine.identity.raw_labels import crossed, normalised_team, numbered_side, team_word
from oddsengine.identity.table_identity import identify
from oddsengine.plugins import FAIR, PluginError, registered
from oddsengine.pricing.close import Fair
from oddsengine.pricing.model import ModelPrices, first_known, of_rows, outcomes
from oddsengine.tables.column_names import Columns
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, check_rows, named, row_column, warn, with_teams

IntoModel = IntoFrame | Mapping[str, Any] | ModelPrices
_EVENT = ("sport", "league", "home_team", "away_team")
_REQUIRED = ("event_id", "market_type", "selection", "probability")
_MOST_OFF = 0.02  # of the sum of a market's probabilities, and between two of one outcome
_UNCLEAR = "ambiguous_moneyline"
_LEAST_ERROR = 1e-9  # of a model that is said to be exact
_OF_MODEL = ("probability", "error")  # columns that an odds table does not have
_ALL_OFF = frozenset(CODES[name] for name in GUARDS)


def read_model(model: IntoModel, prices: pl.DataFrame | PreparedTable) -> ModelPrices:
    """Read a model; `prices` says which sports and teams its events have, where the model does not.

    Raises
    ------
    OddsError
        If a column is missing, a row is not an outcome with a probability, or probabilities contradict each other.
    """
    if isinstance(model, ModelPrices):
        return model
    if isinstance(model, str):
        raise OddsError(f"model: a live board has no column {model!r}; give a frame with a row per outcome")
    events = _events(prices)
    if _is_scores(model):
        try:
            given = _of_scores(model, events)  # type: ignore[arg-type]
        except (TypeError, ValueError) as problem:
            raise OddsError(f"model: {problem}") from None
    else:
        given = check_model(model)
    given = with_teams(given)
    prob, error = probabilities(given["probability"], given["error"] if "error" in given.columns else None, "model row")
    known = ~np.isnan(prob)
    given, prob, error = given.filter(known), prob[known], error[known]
    table = check_rows(_priced(given, events, prob), position=pl.Series(np.flatnonzero(known), dtype=pl.UInt32))
    if table.rejected.height:
        row, field, value, reason = table.rejected.select("row", "field", "value", "reason").row(0)
        raise OddsError(f"model row {row}: {field} {excerpt(value)} is {reason}")
    identity = identify(table, _ALL_OFF)
    g = identity.groups
    nothing = np.empty(0, np.uint8)
    verdicts = Verdicts(nothing, np.empty(0), nothing, nothing, int(NO_TIME), thresholds())
    prepared = PreparedTable(table, identity, verdicts, _ALL_OFF, table, {})
    _check_outcomes(prepared)
    ladder = board.hashes(prepared).ladder
    key = outcomes(g, ladder, g.market.astype(np.int64), g.side.astype(np.int64))
    order = np.argsort(key, kind="stable")
    key, row = key[order], g.row[order]
    numbers = table["row"]
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        first, second = sorted((numbers[int(row[twice[0]])], numbers[int(row[twice[0] + 1])]))
        raise OddsError(f"model rows {first} and {second} are the same outcome")
    check_sums(g, prob[g.row], lambda at: str(table.select("event_id", "market_type", "line").row(at)))
    return ModelPrices(key, prob[row], error[row], _teams(table))


def check_model(model: IntoFrame, *, columns: Columns | None = None) -> pl.DataFrame:
    """Read a model's table of outcomes whose columns have names of their own, for `model=`.

    Parameters
    ----------
    model
        A frame with a row per outcome: its event, market, selection, line and probability.
    columns
        Names of the table's columns by what they are called there, and columns to add, as for `check_odds`.

    Returns
    -------
    polars.DataFrame
        The table with the columns `event_id`, `market_type`, `selection`, `probability` and others that it has.

    Raises
    ------
    OddsError
        If one of these columns is missing, or a name of `columns` is wrong.

    Examples
    --------
    >>> mine = [{"game": "e1", "bet": "Lakers", "p": 0.46}]
    >>> columns = {"bet": "selection", "p": "probability", "market_type": pl.lit("moneyline")}
    >>> sorted(check_model(mine, columns=columns).row(0, named=True).items())
    [('event_id', 'e1'), ('market_type', 'moneyline'), ('probability', 0.46), ('selection', 'Lakers')]
    """
    try:
        given = to_polars(model)
        came = ", ".join(given.columns[:20]) or "none"
        given = named(given, columns, (*ODDS_SCHEMA, *_OF_MODEL), "a model")
    except (TypeError, ValueError) as problem:
        raise OddsError(f"model: {problem}") from None
    if missing := [name for name in _REQUIRED if name not in given.columns]:
        raise OddsError(
            f"model: it has no {', no '.join(missing)} (its columns: {came}); a column of another name is given as "
            f"check_model(model, columns={{its name: {missing[0]!r}}})"
        )
    return given


def _is_scores(model: object) -> bool:
    return isinstance(model, Mapping) and not {"event_id", "probability"} & set(model)


def _check_outcomes(prepared: PreparedTable) -> None:
    """Raise for the first row that is no outcome."""
    table, verdict = prepared.table, prepared.identity.verdict
    wrong = np.flatnonzero(verdict)
    if not wrong.size:
        return
    at = int(wrong[0])
    name, text = NAMES[verdict[at]], board.reasons_of(prepared, wrong[:1])[0]
    hint = "; the prices, or columns sport, home_team and away_team of the model, say who plays"
    about = table.select("event_id", "market_type", "selection", "line").row(at)
    raise OddsError(
        f"model row {table['row'][at]} {about}: {name}, {text}{hint if name in ('unknown_outcome', _UNCLEAR) else ''}"
    )


def check_sums(g: Groups, prob: Floats, describe: Callable[[int], str]) -> None:
    """Raise if the probabilities of a market, all of whose outcomes have one, do not sum to 1."""
    starts = np.minimum(g.rows[:-1], max(prob.size - 1, 0)).astype(np.int64)
    filled = np.diff(g.rows) > 0
    of_outcome = np.where(filled, prob[starts], np.nan) if prob.size else np.full(filled.size, np.nan)
    total = np.add.reduceat(of_outcome, g.segments[:-1].astype(np.int64)) if filled.size else np.empty(0)
    wrong = np.flatnonzero(np.abs(total - 1.0) > _MOST_OFF)
    if wrong.size:
        row = g.rows[g.segments[wrong[0]]]
        about = describe(int(g.row[row]))
        raise OddsError(f"model: the probabilities of the outcomes of {about} must sum to 1, got {total[wrong[0]]:.4g}")


def _teams(table: pl.DataFrame) -> dict[int, tuple[str, str]]:
    """The teams of each event as the model takes them, by the hash of its id; see `normalised_team`."""
    named = table.select("event_id", pl.col("sport").fill_null(""), "home_team", "away_team").drop_nulls().unique()
    return {
        hash_text(event): (normalised_team(sport, home), normalised_team(sport, away))
        for event, sport, home, away in named.iter_rows()
    }


def probabilities(column: pl.Series, errors: pl.Series | None, what: str) -> tuple[Floats, Floats]:
    """Probabilities and their standard errors in log-odds; nan for null. Raises `OddsError` for what is neither."""
    prob = _numbers(column, what, "probability")
    wrong = np.flatnonzero((prob <= 0.0) | (prob >= 1.0))
    if wrong.size:
        raise OddsError(f"{what} {wrong[0]}: probability must be above 0 and below 1, got {prob[wrong[0]]:g}")
    error = np.full(prob.size, np.nan) if errors is None else _numbers(errors, what, "error")
    wrong = np.flatnonzero((error < 0.0) | (error >= 1.0))
    if wrong.size:
        raise OddsError(f"{what} {wrong[0]}: error must be 0 or more and below 1, got {error[wrong[0]]:g}")
    return prob, np.maximum(error / (prob * (1.0 - prob)), _LEAST_ERROR)


def _numbers(column: pl.Series, what: str, name: str) -> Floats:
    cast = column.cast(pl.Float64, strict=False)
    lost = (cast.is_null() & column.is_not_null()).arg_true()
    if lost.len():
        raise OddsError(f"{what} {lost[0]}: {name} must be a number, got {excerpt(column[lost[0]])}")
    return np.asarray(cast.fill_null(np.nan).to_numpy(), np.float64).copy()


def _events(prices: pl.DataFrame | PreparedTable) -> pl.DataFrame:
    """Sport, league and teams of each event of the prices; the teams in the order that was chosen for the event."""
    table = prices.table if isinstance(prices, PreparedTable) else prices
    if "event_id" not in table.columns:
        return pl.DataFrame(schema={"event_id": pl.String})
    names = [name for name in _EVENT if name in table.columns]
    some = table.select(pl.col("event_id").cast(pl.String), *names)
    if isinstance(prices, PreparedTable):
        swapped = pl.Series(prices.identity.swapped[: table.height])  # rows without a price follow
        home, away = some["home_team"], some["away_team"]
        some = some.with_columns(home_team=home.zip_with(~swapped, away), away_team=away.zip_with(~swapped, home))
    firsts = [pl.col(name).cast(pl.String).drop_nulls().first() for name in names]
    return some.group_by("event_id", maintain_order=True).agg(firsts)


def _priced(given: pl.DataFrame, events: pl.DataFrame, prob: Floats) -> pl.DataFrame:
    """The rows of a model as prices of one book, with the teams as the event's prices have them."""
    own = given.select(name for name in given.columns if name in ODDS_SCHEMA and not name.startswith("odds_"))
    own = own.with_columns(
        pl.col("event_id").cast(pl.String), sportsbook=pl.lit("model"), odds_decimal=pl.Series(1.0 / prob)
    )
    known = events.columns[1:]
    joined = own.join(events, on="event_id", how="left", suffix="_of_prices", maintain_order="left")
    both = [name for name in known if f"{name}_of_prices" in joined.columns]
    if {"home_team", "away_team"} <= set(both):
        joined = _swapped(joined)
    return joined.with_columns(pl.coalesce(name, f"{name}_of_prices").alias(name) for name in both)


def _swapped(joined: pl.DataFrame) -> pl.DataFrame:
    """Give the rows that name the teams the other way round the teams of the prices, and their sides the other word."""
    teams = ("home_team", "away_team", "home_team_of_prices", "away_team_of_prices")
    sport = joined["sport"] if "sport" in joined.columns else joined["sport_of_prices"]
    sports = [str(each or "") for each in sport.to_list()]
    home, away, first, second = (
        np.array(
            [normalised_team(*pair) if pair[1] else "" for pair in zip(sports, joined[name].to_list(), strict=True)]
        )
        for name in teams
    )
    across = pl.Series(crossed(home, away, first, second))
    words = [name for name in ("selection", "selection_type", "team_side") if name in joined.columns]
    texts = list(zip(sports, joined["selection"].fill_null("").to_list(), strict=True))
    by_word = pl.Series([team_word(*text) >= 0 for text in texts], dtype=pl.Boolean)
    by_number = pl.Series([numbered_side(text) >= 0 for _, text in texts], dtype=pl.Boolean)
    other = [
        pl.col(name).str.replace_many(["home", "away"], ["away", "home"], ascii_case_insensitive=True) for name in words
    ]
    swapped = [
        pl.when(across & by_word if name == "selection" else across).then(new).otherwise(name).alias(name)
        for name, new in zip(words, other, strict=True)
    ]
    at = words.index("selection")
    number = pl.col("selection").str.replace_many(["1", "2"], ["2", "1"])
    swapped[at] = pl.when(across & by_number).then(number).otherwise(swapped[at]).alias("selection")
    ours = [pl.when(across).then(f"{name}_of_prices").otherwise(name).alias(name) for name in teams[:2]]
    return joined.with_columns(*swapped, *ours)


# ---- scores ----


def _of_scores(matrices: Mapping[str, Any], events: pl.DataFrame) -> pl.DataFrame:
    """A table of the markets that follow from the probabilities of scores."""
    if "sport" in events.columns:
        for event, sport in events.select("event_id", "sport").drop_nulls().iter_rows():
            if event in matrices and catalog.sport(sport).id != "soccer":
                raise ValueError(f"matrices of scores are for soccer, and event {event!r} is {sport}")
    tables = [_of_matrix(str(event), getattr(matrix, "grid", matrix)) for event, matrix in matrices.items()]
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
    if isinstance(model, str):
        plugin = _registered(prepared, model)
        return _of_column(prepared, model) if plugin is None else _of_plugin(prepared, plugin)
    read = read_model(model, prepared)
    if read.teams and not isinstance(model, ModelPrices):
        known = set(hash_texts(prepared.table["event_id"].unique().to_list()).tolist())
        if 0 < (strange := len(read.teams.keys() - known)) < len(read.teams):
            warn(f"the model has {strange} of {len(read.teams)} events that the prices do not have; ids must be equal")
    return read


def _registered(prepared: PreparedTable, name: str) -> RegisteredFair | None:
    """The fair price that a package registers under a name. Raises `OddsError` if a column has it too."""
    try:
        plugin = fair_plugin(name)
        if plugin is not None and name in prepared.table.columns:
            raise OddsError(f"model: {name!r} is a column of the prices and {plugin.label}; rename the column")
        return None if plugin is None else registered_fair(name)
    except PluginError as error:
        raise OddsError(f"model: {error}") from None


def _of_plugin(prepared: PreparedTable, fair: RegisteredFair) -> Fair:
    """Fair prices of a plugin; a warning says where it has no answer that can be used."""
    calls = Calls(fair.method)
    prob, error = asked(calls, prepared)
    if said := calls.said():
        warn(f"{fair.plugin.label}: {said}")
    return of_rows(prepared.identity.groups, prob, error / (prob * (1.0 - prob)))


def _of_column(prepared: PreparedTable, name: str) -> Fair:
    """Fair prices from a column of the table, with standard errors from the column `<name>_error` if it exists."""
    table = prepared.table
    if name in ("probability", "odds_probability"):
        raise OddsError(
            f"model: the column {name} of prices is what their odds imply; give that of a model another name"
        )
    if name not in table.columns:
        own = [each for each in table.columns if each not in ODDS_SCHEMA]
        fair = [plugin.name for plugin in registered(FAIR)]
        raise OddsError(
            f"model: the prices have no column {name!r} (columns of their own: {', '.join(own) or 'none'}), and no "
            f"package registers a fair price of that name (registered: {', '.join(fair) or 'none'})"
        )
    error = f"{name}_error"
    prob, logits = probabilities(table[name], table[error] if error in table.columns else None, f"{name} of row")
    g = prepared.identity.groups
    of_price, numbers = prob[g.row], table[row_column(table.columns)]
    segment = np.repeat(np.arange(g.rows.size - 1), np.diff(g.rows))
    at, first = first_known(g, of_price)
    least = np.full(g.rows.size - 1, np.nan)
    least[at] = of_price[first]
    apart = np.flatnonzero(np.abs(of_price - least[segment]) > _MOST_OFF)
    if apart.size:
        other = first[np.searchsorted(at, segment[apart[0]])]
        raise OddsError(
            f"model: the prices of rows {numbers[int(g.row[other])]} and {numbers[int(g.row[apart[0]])]} are of the "
            f"same outcome, and {name} is {of_price[other]:g} and {of_price[apart[0]]:g}"
        )
    check_sums(g, least[segment], lambda at: str(table.select("event_id", "market_type", "line").row(at)))
    return of_rows(g, of_price, logits[g.row])
