"""Fit the fair-price constants to a history.

There is a row for each snapshot, judged book and side near or above the mean m of the others that has a close; rows of
one game, market, book and side have a total weight of 1. In logits::

    close - m  ~  own (x_j - m) / (base + n) + far r M + near (1 - r) M + fresh f

is fitted by weighted least squares, then the residuals on x_j - m by book. Errors are clustered by game. The estimate
is shrunk towards the table in force by the precision of both: posterior = (V^-1 + P^-1)^-1 (V^-1 fit + P^-1 table).

Errors at the close are fitted by league and hours left, with z = error / hours^(1/3)::

    sigma = sqrt((50 x 0.05^2 + sum over games of the mean of z^2) / (50 + games))
"""

from collections.abc import Callable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.cells import cell, clustered_variance
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.grading import ids_of
from oddsengine.backtesting.parts import planned, play
from oddsengine.backtesting.replay import engine_of, opened, recorded_fair, steps
from oddsengine.catalog.fair_constants import OTHER, FairTable
from oddsengine.columns import Floats
from oddsengine.history.closing_consensus import Position, closing_logits, votes_at
from oddsengine.live.engine import Engine
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_errors, close_table
from oddsengine.pricing.commission import after_commission
from oddsengine.progress import Tick
from oddsengine.tape import Tape

LEAST_GAMES = 50
_PRIOR = np.array([0.4, 0.25, 0.08, 0.4])  # prior sd of own, far, near, fresh
_BOOK_SD = 0.09  # prior sd of a book's own weight
_SIGMA, _SIGMA_GAMES = 0.05, 50.0  # prior of an error at the close, and the games that it counts for
_NEAR = -0.02  # logits: minimum ln(d - 1) + m of a row
_NAMES = ("own_weight", "momentum_far", "momentum_near", "fresh_weight")


class Fit(NamedTuple):
    """Result of a calibration."""

    games: int
    kept: bool  # the table in force stays, since the new one is not better on the last third of the games
    table: FairTable  # the table in force with the fitted constants
    errors: dict[str, float]  # standard errors of the fit alone, by constant that the history determines
    comparison: pl.DataFrame  # prices first shown in the last third, by table

    @property
    def changes(self) -> dict[str, Any]:
        """Return the differences from the packaged table, in the form of fair.toml."""
        return catalog.fair_changes(self.table)


def calibrate(
    history: Any, *, fair: FairTable | None = None, hours: float = 72.0, processes: int | None = 1, client: Any = None,
    progress: bool | Callable[[int], None] = False,
) -> Fit:  # fmt: skip
    """Fit the constants to a history; see the module docstring.

    Parameters
    ----------
    history
        As for `audit`, or a list of histories, such as the tapes of a node.
    fair
        The table in force; None is that of the last tape, or the packaged one.
    hours
        Use snapshots at most this long before the start.
    processes, client, progress
        As for `audit`.

    Raises
    ------
    ValueError
        If fewer than 50 games have a close.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from oddsengine.simulate.football_seasons import seasons
    >>> season = pathlib.Path(tempfile.mkdtemp(), "E0.csv")
    >>> rows = next(seasons(1)).data.splitlines(keepends=True)
    >>> _ = season.write_bytes(b"".join(rows[:81]))  # the first 80 games
    >>> fit = calibrate(season)
    >>> fit.games, fit.kept, sorted(fit.errors)
    (76, False, ['momentum_near', 'own_weight'])
    """
    histories = opened(history)
    table = fair or recorded_fair(histories) or catalog.fair_table()
    rows = collect(histories, table, hours, processes=processes, client=client, progress=progress)
    games = rows["event"].n_unique()
    if games < LEAST_GAMES:
        raise ValueError(f"calibrate requires at least {LEAST_GAMES} games with a close, got {games}")
    order = rows.group_by("event").agg(pl.col("start").first()).sort("start", "event")["event"].to_list()
    early = set(order[: 2 * games // 3])
    first = rows.filter(pl.col("event").is_in(early))
    last = rows.filter(~pl.col("event").is_in(early))
    new, _ = fit(first, table)
    old_error, new_error = (squared(last, of) for of in (table, new))
    comparison = pl.DataFrame(
        [{"table": name, **_compared(last, of)} for name, of in (("in force", table), ("fitted", new))]
    )
    whole, errors = fit(rows, table)
    note = {"games": games, "squared_error_in_force": old_error, "squared_error_fitted": new_error, **errors}
    until = datetime.fromtimestamp(float(rows["start"].max()) / 1e6, UTC)  # type: ignore[arg-type]
    whole = whole._replace(name="calibrated", date=f"{until:%Y-%m-%d}", note=note)
    return Fit(games, not new_error < old_error, whole, errors, comparison)


class _Wanted(NamedTuple):
    """What rows of a fit are collected with."""

    table: FairTable
    hours: float


class _Collected(NamedTuple):
    """Rows of a fit, and the closing boards."""

    rows: list[pl.DataFrame]
    closes: pl.DataFrame | None


def collect(
    history: Any, table: FairTable, hours: float, *, processes: int | None = 1, client: Any = None,
    progress: bool | Callable[[int], None] = False,
) -> pl.DataFrame:  # fmt: skip
    """Collect the rows of a fit, in logits: keys, m, x_j - m over (base + n), momentum, fresh movers, close."""
    histories, wanted = opened(history), _Wanted(table, hours)
    parts = play(_play, wanted, histories, planned(histories, wanted, processes, client), progress=progress)
    looks, boards = [rows for part in parts for rows in part.rows], [part.closes for part in parts]
    some = [board for board in boards if board is not None]
    if not some or not looks:
        return pl.DataFrame(schema={"event": pl.String, "start": pl.Int64})
    board, where = pl.concat(some), ("sportsbook", "ladder", "threshold_", "side")
    rows = pl.concat(looks).sort("t", *where)
    priced = rows.unique(where)
    closing = closing_logits(priced, votes_at(board, table))
    priced = priced.select(where).with_columns(close=closing["x"], who=closing["who"])
    rows = rows.join(priced.filter(pl.col("who") == "others"), on=where, how="inner")
    return rows.with_columns(weight=1.0 / pl.len().over(where))


def _play(wanted: _Wanted, history: History | Tape, tick: Tick) -> _Collected:
    engine = engine_of(history, fair=wanted.table)
    engine.view(method="close", kinds=("ev",), min_ev=0.0, keep=True)
    flat, closes, rows = _flat(wanted.table), Closes(engine), []
    for now, _, prices, _ in steps(engine, history):
        closes.follow(now)
        part = _look(engine, flat, now, wanted.hours)
        if part is not None:
            rows.append(part)
        tick(now, prices)
    return _Collected(rows, closes.take_closed(everything=True))


def _flat(table: FairTable) -> dict[str, FairTable]:
    """Build tables with a single term of coefficient 1 and no scaling, which add just that term to m."""
    zero = table.constants._replace(own_weight=0.0, own_sharp=0.0, own_sharp_alone=0.0, momentum_far=0.0,
                                    momentum_near=0.0, fresh_weight=0.0)  # fmt: skip
    plain = table._replace(own={}, scale=(1.0,) * len(table.scale))
    return {
        "mean": plain._replace(constants=zero),
        "own": plain._replace(constants=zero._replace(own_weight=1.0)),
        "fresh": plain._replace(constants=zero._replace(fresh_weight=1.0)),
        "momentum": plain._replace(constants=zero._replace(momentum_far=1.0, momentum_near=1.0)),
    }


def _look(engine: Engine, flat: dict[str, FairTable], now: int, hours: float) -> pl.DataFrame | None:
    with engine.still() as board:
        names = board.names
        partitions = np.flatnonzero(board.partitions.size[: names.partitions.size] > 0)
        partitions = partitions[names.partitions.live.values[partitions] == 0]
        if not partitions.size:
            return None
        gathered = board.gather(partitions)
        g, traits = gathered.groups, names.tables.traits
        rejected = board.rows.reason[g.row]
        read, _ = board.estimated(gathered, rejected, g.row, engine.fair)
        net = after_commission(g, traits)
        gross = fair_close.gross(traits, traits.fees)
        logits = {}
        for name, table in flat.items():
            out = fair_close.estimate(
                read.of._replace(table=table, voters=read.of.voters._replace(own=np.ones(traits.provider.size))), g,
                traits, net, rejected, gross, read.times, read.momentum, read.logits,
            )  # fmt: skip
            with np.errstate(all="ignore"):
                logits[name] = np.log(out.row / (1.0 - out.row))
        left = (gathered.start - now) / 3.6e9
        with np.errstate(all="ignore"):
            pick = (np.log(net - 1.0) + logits["mean"] > _NEAR) & (left > 0.0) & (left < hours) & (rejected == 0)
            pick &= traits.exchange[g.book] == 0
        at = np.flatnonzero(pick)
        if not at.size:
            return None
        slots = g.row[at]
        facts = board.facts(slots)
        places_ = facts.places(slots)
        where = Position.of(board, gathered, at, engine.fair).frame()
    frame = facts.frame()[places_]
    mean = logits["mean"][at]
    return frame.select(
        "sportsbook", "sport", "league", event="event_id", start=pl.col("event_start_time").to_physical()
    ).hstack(where).with_columns(
        t=pl.lit(now), net=net[at], hours=left[at], mean=mean, own=logits["own"][at] - mean,
        fresh=logits["fresh"][at] - mean, momentum=logits["momentum"][at] - mean,
        n=out.others[at].astype(np.float64),
    )  # fmt: skip


def _design(rows: pl.DataFrame, table: FairTable) -> tuple[Floats, Floats, Floats, Floats, Any]:
    c = table.constants
    ramp = np.clip((rows["hours"].to_numpy() - c.momentum_near_h) / (c.momentum_far_h - c.momentum_near_h), 0.0, 1.0)
    moved = rows["momentum"].to_numpy()
    design = np.column_stack((rows["own"].to_numpy(), moved * ramp, moved * (1.0 - ramp), rows["fresh"].to_numpy()))
    left = (rows["close"] - rows["mean"]).to_numpy()
    game = np.unique(rows["event"].to_numpy(), return_inverse=True)[1]
    return design, left, rows["weight"].to_numpy(), ramp, game


def fit(rows: pl.DataFrame, table: FairTable) -> tuple[FairTable, dict[str, float]]:
    """Return a table with the fitted constants, and the standard errors of the fit alone.

    Constants that the rows do not determine keep their values, and have no standard error.
    """
    design, left, weight, _, game = _design(rows, table)
    weighted = design * weight[:, None]
    information = weighted.T @ design
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    determined = inverse @ information  # the identity, except for constants that the rows do not determine
    beta = inverse @ weighted.T @ left
    rest = left - design @ beta
    variance = clustered_variance(weighted * rest[:, None], inverse, game)
    prior = np.array([getattr(table.constants, name) for name in _NAMES])
    sure = determined.T @ np.linalg.inv(variance + 1e-9 * np.eye(4)) @ determined
    tight = np.diag(_PRIOR**-2)
    posterior = np.linalg.solve(sure + tight, sure @ beta + tight @ prior)
    posterior = np.maximum(posterior, 0.0)
    c = table.constants
    rest = left - design @ posterior
    gap = design[:, 0] * (c.own_base + rows["n"].to_numpy())  # x_j - m
    usual = posterior[0] / (c.own_base + 9.0)
    own = {}
    books = _book_ids(rows)
    for book in sorted(set(books)):
        at = np.array([book == other for other in books])
        w, x = weight[at], gap[at]
        bread = float((w * x * x).sum())
        if bread == 0.0 or usual <= 0.0:
            continue
        slope = float((w * x * rest[at]).sum()) / bread
        sums = np.bincount(game[at], w * x * (rest[at] - slope * x))
        noise = float((sums**2).sum()) / bread**2
        shrunk = slope * _BOOK_SD**2 / (_BOOK_SD**2 + noise)
        own[book] = round(float(np.clip(1.0 + shrunk / usual, 0.0, 4.0)), 3)
    values = dict(zip(_NAMES, posterior.round(4).tolist(), strict=True))
    fitted = table._replace(constants=c._replace(**values), own=MappingProxyType({**table.own, **own}))
    fitted = fitted._replace(sigma=MappingProxyType({**table.sigma, **_sigmas(rows, fitted)}))
    errors = np.sqrt(np.diag(variance)).round(4).tolist()
    return fitted, {name: error for name, error, k in zip(_NAMES, errors, np.diag(determined), strict=True) if k > 0.5}


def _sigmas(rows: pl.DataFrame, table: FairTable) -> dict[str, tuple[float, ...]]:
    """Fit the errors at the close by league and hours left; without games they are those of the table."""
    hours = np.maximum(rows["hours"].to_numpy(), table.constants.close_least_h)
    error = rows["close"].to_numpy() - _predicted(rows, table)
    bounds = np.sqrt(np.array(table.hours[:-1]) * np.array(table.hours[1:]))  # halfway between, in logarithms
    by_game = (
        rows.select("event", "weight", league=ids_of(rows, "sport", "league", close_table.league_key))
        .with_columns(at=pl.Series(np.searchsorted(bounds, hours)), z=pl.Series((error / hours ** (1.0 / 3.0)) ** 2))
        .group_by("league", "at", "event")
        .agg((pl.col("z") * pl.col("weight")).sum() / pl.col("weight").sum())
        .group_by("league", "at")
        .agg(pl.len(), pl.col("z").sum())
    )
    found = {(league, at): (n, z) for league, at, n, z in by_game.iter_rows()}
    out = {}
    for league in sorted({league for league, _ in found}):
        before = table.sigma.get(league, table.sigma[OTHER])
        out[league] = tuple(
            round(float(np.sqrt((_SIGMA_GAMES * _SIGMA**2 + z) / (_SIGMA_GAMES + n))), 4) if n else before[at]
            for at in range(len(table.hours))
            for n, z in [found.get((league, at), (0, 0.0))]
        )
    return out


def _book_ids(rows: pl.DataFrame) -> list[str]:
    return [catalog.book(name).id for name in rows["sportsbook"].to_list()]


def _predicted(rows: pl.DataFrame, table: FairTable) -> Floats:
    design, *_ = _design(rows, table)
    c = table.constants
    factor = np.array([table.own.get(book, 1.0) for book in _book_ids(rows)])
    beta = np.array([getattr(c, name) for name in _NAMES])
    own = design[:, 0] * (factor - 1.0) * beta[0]
    return np.asarray(rows["mean"].to_numpy() + design @ beta + own)


def squared(rows: pl.DataFrame, table: FairTable) -> float:
    """Mean squared error of the predicted log-odds at the close; each price has the same weight."""
    weight = rows["weight"].to_numpy()
    error = rows["close"].to_numpy() - _predicted(rows, table)
    return float((weight * error * error).sum() / weight.sum())


def _compared(rows: pl.DataFrame, table: FairTable) -> dict[str, Any]:
    """Compare prices first shown at an EV of at least 1 with their value at the close."""
    x = _predicted(rows, table)
    frame = rows.with_columns(
        ev=100.0 * (pl.col("net") / (1.0 + (-pl.Series(x)).exp()) - 1.0),
        worth=100.0 * (pl.col("net") / (1.0 + (-pl.col("close")).exp()) - 1.0),
        error=pl.col("close") - pl.Series(x),
        se=pl.Series(close_errors.standard_errors(rows["sport"], rows["league"], rows["hours"].to_numpy(), table)),
        won=pl.lit(None, pl.Float64),
        odds="net",
    )
    shown = frame.filter((pl.col("ev") >= 1.0) & (pl.col("net") < 4.0)).sort("t")
    shown = shown.unique(["ladder", "threshold_", "side", "sportsbook"], keep="first", maintain_order=True)
    return cell(shown, table)
