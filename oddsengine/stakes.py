"""Stakes on bets that belong together: portfolios of value bets, and arbitrages within what the books take.

`kelly_portfolio` finds the growth-optimal stakes on many open bets (`portfolio`), whose joint outcomes come from the
margins and totals of their games (`outcomes`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.catalog.names import plain
from oddsengine.columns import Floats, Longs
from oddsengine.frames import IntoFrame, to_polars
from oddsengine.kelly import kelly
from oddsengine.outcomes import factors
from oddsengine.portfolio import Games, Limits, best_stakes, growth, whole_steps
from oddsengine.schema import ODDS_SCHEMA, OddsError, OddsTable, check_odds

_NAMES = {"game_id": "event_id", "market": "market_type"}  # of `find_ev`, as odds tables call them
_MONEYLINE = catalog.family_name("moneyline_3way", catalog.FULL_GAME, "soccer")


class Portfolio(NamedTuple):
    """Stakes on open bets, and what they promise."""

    bets: pl.DataFrame  # the bets that came, with `stake`, `stake_fraction` and `kelly_fraction`
    growth: float  # mean log growth of the bankroll
    profit: float  # mean profit, in money
    deviation: float  # standard deviation of the profit, in money


def kelly_portfolio(
    bets: IntoFrame,
    *,
    bankroll: float = 1.0,
    fraction: float = 1.0,
    max_bet: float | None = None,
    max_book: float | Mapping[str, float] | None = None,
    max_event: float | None = None,
    step: float | None = None,
    uncertain: bool = True,
) -> Portfolio:
    """Growth-optimal stakes on bets that are open at the same time.

    The stakes make the mean log growth of the bankroll largest, over the joint outcomes of all bets: outcomes of one
    market exclude each other, markets of a game are tied together by its margin and total, games are independent.
    `oddsengine.portfolio` has the optimisation, `oddsengine.outcomes` the joint law.

    A probability p with a standard error e (column `fair_error`) is bet smaller: at odds d it moves towards 1/d, so
    that a single bet has x^2 / (x^2 + (d e)^2) of its Kelly stake, x = p d - 1 being its edge (Baker and McHale 2013,
    "Optimal betting under parameter uncertainty", https://doi.org/10.1287/deca.2013.0271).

    Parameters
    ----------
    bets
        One bet a row, as `find_ev` and `fair` return them: `event_id`, `sportsbook`, `market_type`, `selection`,
        `odds_decimal` and `fair_probability` (given no push), and where they apply `line`, `selection_type`, the teams,
        `sport`, `league` and `player_name`. `net_odds` replaces `odds_decimal` for prices after commission. Of
        `fair_error` and `max_bet`, in money, nulls say that there is none.
    bankroll
        Money of which the stakes are a part.
    fraction
        Of the full stakes, above 0 and at most 1. Limits hold for what is left.
    max_bet
        Most money on one bet; the smaller of this and the column `max_bet` counts.
    max_book
        Most money at one book, or a mapping of books to that.
    max_event
        Most money on one event.
    step
        Stakes are whole multiples of this. Changing any one of them by one step does not make growth larger.
    uncertain
        Whether `fair_error` makes stakes smaller.

    Returns
    -------
    Portfolio
        The bets in their order, with `stake` in money, `stake_fraction` of the bankroll, and `kelly_fraction`, the
        stake that the bet would have alone, without limits.

    Raises
    ------
    OddsError
        If a row is no bet: a column is missing, or a price or probability cannot be.
    ValueError
        If a number is out of its range.

    Examples
    --------
    Both teams' bets in one game, and one in another:

    >>> bets = pl.DataFrame(
    ...     {
    ...         "event_id": ["e1", "e1", "e2"],
    ...         "sport": "basketball",
    ...         "home_team": ["Lakers", "Lakers", "Bulls"],
    ...         "away_team": ["Celtics", "Celtics", "Heat"],
    ...         "sportsbook": ["betmgm", "fanduel", "betmgm"],
    ...         "market_type": ["moneyline", "point_spread", "moneyline"],
    ...         "selection": ["Lakers", "Lakers", "Heat"],
    ...         "line": [None, -2.5, None],
    ...         "odds_decimal": [1.8, 2.1, 2.2],
    ...         "fair_probability": [0.58, 0.5, 0.48],
    ...     }
    ... )
    >>> found = kelly_portfolio(bets, bankroll=1000)
    >>> found.bets.select(pl.col("stake").round(1), pl.col("kelly_fraction").round(3)).rows()
    [(34.9, 0.055), (20.0, 0.045), (46.5, 0.047)]
    """
    frame = to_polars(bets)
    for name, value in (("bankroll", bankroll), ("max_bet", max_bet), ("max_event", max_event), ("step", step)):
        if value is not None and not 0.0 < value < np.inf:
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"fraction must be above 0 and at most 1, got {fraction!r}")
    table, prob, error, odds = _bets(frame)
    parts = factors(table, prob, error if uncertain else np.full(prob.size, np.nan), odds)
    order = np.concatenate([np.empty(0, np.int64), *(part.bets for part in parts)]).astype(np.int64)
    games = Games.of([(part.prob, _gains(part.share, odds[part.bets])) for part in parts])
    scale = bankroll * fraction
    limits = _limits(frame, table, max_bet, max_book, max_event, scale, order)
    stakes = best_stakes(games, limits)
    if np.isnan(stakes).any():
        raise ValueError("no stakes were found: the probabilities contradict each other")
    if step is not None:
        # Limits and steps are of what is staked; the optimum is of the full stakes, which `fraction` makes smaller.
        stakes = whole_steps(games, stakes, np.full(stakes.size, step / scale), limits)
    out = np.empty(order.size)
    out[order] = stakes * fraction
    alone = kelly(np.clip(prob, 0.0, 1.0), odds) * fraction
    mean, variance = _spread(games, stakes * fraction)
    return Portfolio(
        frame.with_columns(
            stake=pl.Series(out * bankroll), stake_fraction=pl.Series(out), kelly_fraction=pl.Series(alone)
        ),
        growth(games, stakes * fraction) if order.size else 0.0,
        mean * bankroll,
        float(np.sqrt(variance)) * bankroll,
    )


def _bets(frame: pl.DataFrame) -> tuple[OddsTable, Floats, Floats, Floats]:
    """Bets as a table of prices, their probabilities, standard errors (nan: none) and prices after commission."""
    if "fair_probability" not in frame.columns:
        raise OddsError(f"bets must have the column fair_probability, got {', '.join(frame.columns) or 'none'}")
    named = frame.rename({a: b for a, b in _NAMES.items() if a in frame.columns and b not in frame.columns})
    known = [name for name in named.columns if name in ODDS_SCHEMA]
    table = check_odds(named.select(known).with_columns(row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)))
    # A book whose bets have no draw among them quotes one all the same, or there would be no fair probability.
    three = [catalog.sport(name).draws for name in table["sport"].fill_null("").to_list()]
    two_way = [
        plain(league) in catalog.sport(name).two_way_leagues
        for name, league in table.select(pl.col("sport", "league").fill_null("")).iter_rows()
    ]
    with_draw = pl.Series(three, dtype=pl.Boolean) & ~pl.Series(two_way, dtype=pl.Boolean)
    draws = table.filter(with_draw & (table["market_type"] == _MONEYLINE)).with_columns(
        selection=pl.lit("Draw"), selection_type=pl.lit("draw")
    )
    table = OddsTable(table, table.rejected, draws)
    if table.rejected.height:
        row, field, value, reason = table.rejected.select("row", "field", "value", "reason").row(0)
        raise OddsError(f"bet {row}: {field} {value!r} is {reason}")
    prob = frame["fair_probability"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    if not ((prob > 0.0) & (prob < 1.0)).all():
        row = int(np.flatnonzero(~((prob > 0.0) & (prob < 1.0)))[0])
        raise OddsError(f"bet {row + 1}: fair_probability must be above 0 and below 1, got {prob[row]}")
    odds = table["odds_decimal"].to_numpy()
    if "net_odds" in frame.columns:
        odds = frame["net_odds"].cast(pl.Float64).fill_null(pl.Series(odds)).to_numpy()
    error = np.full(prob.size, np.nan)
    if "fair_error" in frame.columns:
        error = frame["fair_error"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return table, prob, error, odds


def _gains(share: Floats, odds: Floats) -> Floats:
    """Profit per unit staked, (scenarios, bets), by the share of the stake that is won or lost."""
    return np.where(share > 0.0, share * (odds - 1.0), share)


def _limits(
    frame: pl.DataFrame, table: pl.DataFrame, max_bet: float | None, max_book: float | Mapping[str, float] | None,
    max_event: float | None, scale: float, order: Longs,
) -> Limits:  # fmt: skip
    """Limits of the bets in some order, as parts of `scale`."""
    n = table.height
    most = np.full(n, np.inf if max_bet is None else max_bet)
    if "max_bet" in frame.columns:
        most = np.fmin(most, frame["max_bet"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    members, ends = [], []
    for column, given in (("sportsbook", max_book), ("event_id", max_event)):
        if given is None:
            continue
        for name in table[column].unique(maintain_order=True).to_list():
            end = given.get(name) if isinstance(given, Mapping) else given
            if end is None:
                continue
            if not 0.0 <= end < np.inf:
                raise ValueError(f"most money of {name} must be a finite number from 0, got {end!r}")
            members.append((table[column] == name).to_numpy()[order])
            ends.append(end)
    return Limits(
        most[order] / scale, np.array(members, bool).reshape(len(members), n), np.array(ends, np.float64) / scale
    )


def _spread(games: Games, stakes: Floats) -> tuple[float, float]:
    """Mean and variance of the profit, as parts of the bankroll."""
    mean = variance = 0.0
    for g in range(games.scenario.size - 1):
        p = games.prob[games.scenario[g] : games.scenario[g + 1]]
        table = games.gains[games.gain_at[g] : games.gain_at[g + 1]].reshape(p.size, -1)
        x = table @ stakes[games.bet[g] : games.bet[g + 1]]
        at = float(p @ x)
        mean += at
        variance += float(p @ (x - at) ** 2)
    return mean, variance
