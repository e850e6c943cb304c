"""Parlays: the fair probability that all legs win, and what a price for them is worth.

**Dependence.** Legs of different games are independent, so probabilities multiply. Legs of one game have the joint
distribution that stakes use (`outcomes`): that of the final score, or of one number at several lines. Where it does not
say how they depend, there is no answer, unless a book's prices do (`maths.joint`): then the joint probabilities q_c of
the four results are changed as little as possible, in relative entropy, such that each leg wins with its own fair
probability.

**Settlement.** A leg that wins multiplies the parlay by its odds, a leg that loses makes it lose, and a leg that is
pushed reduces it to the other legs. Of a quarter line half of the stake is pushed, or won and lost as the rest. So the
return R of a unit is a product over games, R = prod R_g, and for a game with the single leg i it is ::

    R_g = 1 + s (d_i - 1) if s > 0, else 1 + s          s from -1 (lost) to 1 (won), 0 for a push

**Price.** Without a price of its own, a parlay has the product of its odds. Legs of one game are not sold at that: a
book prices them together, and what it would pay after a push is estimated. With D the price of all legs of a game, P
the probability that all of them win, and P_S that the legs S do that are not pushed (all given no push) ::

    R_g = d_i for a single leg i that remains, D P / P_S >= 1 for several

which is the same margin. D is the given price divided by the odds of the other games' legs; if several games have
several legs, they share its margin evenly. A given price of independent legs is the product of d_i^t, with one t.

**Offers.** A boost b raises winnings: R' = 1 + (R - 1) (1 + b) where R > 1. A refund returns the stake as a free bet,
which is worth a share v of it (`free_bet` says how much can be kept): R' = v where the parlay loses, or only where
exactly one leg does.

**Value.** EV = E R' - 1, and the fair odds are the price at which E R = 1: 1 / P if no leg can be pushed. Else they are
not, since a push of one leg may say that the other has won, as of a favourite's spread. The Kelly fraction f maximises
E log(1 + f (R' - 1)), by `growth`.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import exp, log, prod
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.columns import Floats, Longs
from oddsengine.maths.calculators import boost as raised
from oddsengine.maths.calculators import boosted
from oddsengine.staking.outcomes import Factor, factors, profits, tilt
from oddsengine.staking.portfolio import GameColumns, StakeLimits, best_stakes
from oddsengine.staking.stakes import bet_columns, why_left_out
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import OddsError, OddsTable

REFUNDS = ("loss", "one_leg")
_MOST_RETURNS, _BINS = 1 << 14, 1 << 12  # more returns are merged with those nearest in logarithm, at their mean
_STEPS, _LONGEST = 64, 60.0  # of the search of fair odds, and their largest logarithm
_CONTRADICTION = 1e-3  # of a leg's probability
_NOTHING = 1e-9  # probability that counts as none


class DependentLegs(NamedTuple):
    """Legs of one game, and how they depend."""

    legs: tuple[int, ...]  # positions in the parlay, from 0
    law: str  # "score", "number" (one number, at several lines), or "given" (`joint`)
    fair_probability: float  # that all of them win, given no push
    product: float  # of their own, which it would be if they were independent


class PricedParlay(NamedTuple):
    """A parlay's fair probability, and the value of its price."""

    fair_probability: float  # that all legs win, given no push
    fair_odds: float  # the price at which the EV is 0, without offers
    odds: float | None  # offered: as given, or the product; None if there is neither
    price: float | None  # with the boost
    ev_percentage: float | None  # per stake, with pushes and offers
    kelly_fraction: float | None  # of the bankroll
    dependent: tuple[DependentLegs, ...]  # the games of which several legs are
    reason: str | None  # why there is no price


class _Game(NamedTuple):
    """The legs of one game, and what happens to them."""

    legs: Longs  # positions in the parlay
    law: str
    prob: Floats  # of each scenario
    share: Floats  # (scenarios, legs) of the stake won or lost
    chance: float  # that all win, given no push


class _Games(NamedTuple):
    """The legs of a parlay, game by game."""

    odds: Floats  # of each leg
    prob: Floats
    each: list[_Game]


class _Returns(NamedTuple):
    """What a unit on a parlay, or on the legs of a game, returns."""

    prob: Floats  # of each value, where no leg loses
    value: Floats
    one: float  # probability that exactly one leg loses
    more: float  # that several do


def parlay(
    bets: IntoFrame,
    *,
    odds: float | None = None,
    joint: Mapping[tuple[int, int], Sequence[float]] | None = None,
    boost: float = 0.0,
    refund: str | None = None,
    refund_value: float | None = None,
) -> PricedParlay:
    """Price a parlay: the fair probability that all legs win, and the EV of what a book offers for them.

    Legs of different games are independent. How legs of one game depend follows from the final score, as in
    `kelly_portfolio`, from one number at several lines, or from `joint`; else it is an error (docs/stakes.md).

    Parameters
    ----------
    bets
        One leg per row, as returned by `find_ev` and `fair`: `event_id`, `odds_decimal`, `fair_probability`, and what
        says when it is pushed and depends on another: `market_type`, `selection`, `line`, teams, `sport` and so on.
    odds
        Decimal odds offered for all legs; by default the product of theirs (`net_odds`), if of one book and of
        different games.
    joint
        By pair of legs that are all of their game, as positions from 0: the probabilities that both win, only the
        first, only the second, and neither (`joint_probabilities`). They are adjusted to the legs' `fair_probability`.
    boost
        Boost of the winnings, 0.3 for 30 %.
    refund
        When the stake comes back as a free bet: ``"loss"`` of the parlay, or ``"one_leg"`` if exactly one leg loses.
    refund_value
        What that free bet is worth, as a share of the stake, 0.7 for example.

    Returns
    -------
    PricedParlay
        `fair_probability` that all legs win, given no push, and `fair_odds`, at which the EV is 0; `odds` offered and
        `price` with the boost; `ev_percentage` and `kelly_fraction`, with pushes and offers; `dependent`, what legs of
        one game depend on. Without a price, `reason` says why, and what needs one is None.

    Raises
    ------
    OddsError, ValueError
        If a leg cannot be bet or has no fair probability, if it is not known how legs of one game depend, if they
        contradict each other or cannot all win, or if a number is out of range.

    Examples
    --------
    >>> legs = {"event_id": ["a", "b"], "odds_decimal": [2.5, 1.9], "fair_probability": [0.42, 0.53]}
    >>> both = parlay(legs)
    >>> round(both.fair_probability, 4), round(both.fair_odds, 2), both.odds, round(both.ev_percentage, 2)
    (0.2226, 4.49, 4.75, 5.73)
    >>> round(parlay(legs, boost=0.3).ev_percentage, 2)
    30.78
    """
    frame = to_polars(bets)
    if not frame.height:
        raise OddsError("bets must have at least one leg, got none")
    lost = _lost(refund, refund_value)
    legs = _completed(frame)
    games = _games(legs, joint or {})
    chance = prod(game.chance for game in games.each)
    several = [game for game in games.each if game.legs.size > 1]
    fair = chance, _fair_odds(games)
    dependent = tuple(
        DependentLegs(tuple(game.legs.tolist()), game.law, game.chance, float(games.prob[game.legs].prod()))
        for game in several
    )
    offered = float(games.odds.prod() if odds is None else odds)
    price = raised(offered, boost)
    reason = None if odds is not None else _no_price(frame, several)
    if reason is not None:
        return PricedParlay(*fair, None, None, None, None, dependent, reason)
    found = _combined(_returns(games, odds))
    prob = np.concatenate([found.prob, [found.one, found.more]])
    gains = np.concatenate([boosted(found.value, boost), lost]) - 1.0
    stake = best_stakes(GameColumns.from_pairs([(prob / prob.sum(), gains[:, None])]), StakeLimits.none(1)).item()
    ev = 100.0 * float(prob @ gains)
    return PricedParlay(*fair, offered, price, ev, stake, dependent, None)


# ---- input ----


def _lost(refund: str | None, value: float | None) -> tuple[float, float]:
    """Return what a unit is worth if exactly one leg loses, and if several do."""
    if refund is None and value is None:
        return 0.0, 0.0
    if refund not in REFUNDS:
        raise ValueError(f"refund must be one of {', '.join(REFUNDS)}, got {excerpt(refund)}")
    if value is None or not 0.0 <= value <= 1.0:
        raise ValueError(f"refund_value must be the share of the stake that a refund is worth, 0 to 1, got {value}")
    return float(value), float(value) if refund == "loss" else 0.0


def _completed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return legs with the columns that every bet has; a leg without a market only wins or loses."""
    number = pl.int_range(1, pl.len() + 1).cast(pl.String)
    texts = {"sportsbook": pl.lit("book"), "market_type": pl.lit("unknown"), "selection": "leg " + number}
    columns = [
        (pl.coalesce(pl.col(name).cast(pl.String), text) if name in frame.columns else text).alias(name)
        for name, text in texts.items()
    ]
    if "fair_probability" not in frame.columns:
        columns.append(pl.lit(None, pl.Float64).alias("fair_probability"))
    return frame.with_columns(columns)


def _games(frame: pl.DataFrame, joint: Mapping[tuple[int, int], Sequence[float]]) -> _Games:
    """Return the games of a parlay. Raises `OddsError` if it is not known how legs of one game depend."""
    columns = bet_columns(frame)
    prob, odds, events = columns[1].copy(), columns[3], columns[0]["event_id"].to_list()
    tables = {pair: _table(pair, four, events) for pair, four in joint.items()}
    given = [leg for pair in tables for leg in pair]
    if len(set(given)) < len(given):
        raise ValueError(f"joint must have each leg in one pair, got {', '.join(map(str, tables))}")
    for leg, why in enumerate(why_left_out(frame).to_list()):
        if why is not None and not (why == "no_fair_probability" and leg in given):
            raise OddsError(f"bet {leg + 1} cannot be a leg of a parlay: {why}")
    each = [_of_joint(frame, pair, four, prob) for pair, four in tables.items()]
    rest = np.setdiff1d(np.arange(frame.height), given)
    if rest.size:
        each += _of_law(bet_columns(frame[rest], rest) if given else columns, rest, events)
    for game in each:
        _check(game, prob)
    return _Games(odds, prob, sorted(each, key=lambda game: int(game.legs[0])))


def _table(pair: tuple[int, int], four: Sequence[float], events: Sequence[str]) -> Floats:
    """Return the joint probabilities of two legs, checked."""
    p = np.asarray(list(four), np.float64)
    if len(set(pair)) != 2 or not all(leg in range(len(events)) for leg in pair):
        raise ValueError(f"joint must be by pairs of legs, as positions from 0 to {len(events) - 1}, got {pair}")
    if p.shape != (4,) or not (p >= 0.0).all() or abs(p.sum() - 1.0) > 1e-6:
        raise ValueError(f"joint {pair} must be four probabilities that sum to 1, got {p.tolist()}")
    own = [leg for leg, event in enumerate(events) if event == events[pair[0]]]
    if own != sorted(pair):
        raise OddsError(f"joint {pair} must be all legs of one game, but {_listed(own)} of game {events[pair[0]]} are")
    return p


def _of_law(
    columns: tuple[OddsTable, Floats, Floats, Floats], legs: Longs, events: Sequence[str]
) -> list[_Game]:  # fmt: skip
    """Return the games of legs whose joint distribution is that of stakes."""
    found = _factors(columns)
    of_event: dict[str, list[Factor]] = {}
    for factor in found:
        of_event.setdefault(events[legs[factor.bets[0]]], []).append(factor)
    for event, parts in of_event.items():
        own = sorted(legs[np.concatenate([part.bets for part in parts])].tolist())
        if len(own) > 1 and (len(parts) > 1 or parts[0].law == "unknown"):
            prices = (
                f"; if a book prices all four parlays of the two, give joint={{{tuple(own)}: joint_probabilities(...)}}"
            )
            raise OddsError(
                f"{_listed(own)} are of one game ({event}), and it is not known how they depend"
                f"{prices if len(own) == 2 else ''}"
            )
    return [_game(legs[factor.bets], factor.law, factor.prob, factor.share) for factor in found]


def _of_joint(frame: pl.DataFrame, pair: tuple[int, int], table: Floats, prob: Floats) -> _Game:
    """Return the game of two legs with given joint probabilities; writes those that the legs do not have to `prob`."""
    share = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    conditions = []
    for column, leg in enumerate(pair):
        won = share[:, column] > 0.0
        if np.isnan(prob[leg]):
            prob[leg] = float(table @ won)
        conditions.append(np.where(won, 1.0 - prob[leg], -prob[leg]))
        (alone,) = _factors(bet_columns(frame[[leg]].with_columns(fair_probability=pl.lit(float(prob[leg])))))
        if (np.abs(alone.share) < 1.0).any():
            raise OddsError(f"bet {leg + 1} can be pushed, of which joint {pair} says nothing")
    return _game(np.array(pair), "given", tilt(table, np.array(conditions)), share)


def _factors(columns: tuple[OddsTable, Floats, Floats, Floats]) -> list[Factor]:
    """Return the factors of bets by their fair probabilities as they are, whatever the errors of these."""
    table, prob, error, odds = columns
    return factors(table, prob, np.full_like(error, np.nan), odds)


def _game(legs: Longs, law: str, prob: Floats, share: Floats) -> _Game:
    some = prob > 0.0
    return _Game(legs, law, prob[some], share[some], _chance(prob, share))


def _chance(prob: Floats, share: Floats) -> float:
    """Return the probability that all bets win, given that none is pushed; 0 if they cannot."""
    won, settled = prob @ np.maximum(share, 0.0).prod(axis=1), prob @ np.abs(share).prod(axis=1)
    return float(won / settled) if won > _NOTHING else 0.0


def _check(game: _Game, prob: Floats) -> None:
    """Raise if probabilities of a game's legs contradict each other, or the legs cannot be bet together."""
    legs = game.legs.tolist()
    for at, leg in enumerate(legs):
        if abs(_chance(game.prob, game.share[:, [at]]) - prob[leg]) > _CONTRADICTION:
            got = ", ".join(f"{p:.4g}" for p in prob[legs].tolist())
            raise OddsError(f"the fair probabilities of {_listed(legs)} contradict each other: {got}")
    for at, before in combinations(range(len(legs)), 2):
        if game.prob @ (game.share[:, at] != game.share[:, before]) < _NOTHING:
            raise OddsError(f"{_listed([legs[at], legs[before]])} are one bet: they win and lose together")
    if not game.chance:
        raise OddsError(f"{_listed(legs)} cannot all win")


def _no_price(frame: pl.DataFrame, several: Sequence[_Game]) -> str | None:
    """Return why the product of the legs' odds is offered nowhere; None if it may be."""
    if several:
        legs = _listed(several[0].legs.tolist())
        return f"{legs} are of one game, which a book prices together: give its price as odds"
    names = frame["sportsbook"].drop_nulls().to_list() if "sportsbook" in frame.columns else []
    books = list(dict.fromkeys(catalog.book(name).id for name in names))
    if len(books) > 1:
        return f"a parlay is bet at one book, and the legs are at {', '.join(books)}: give the price as odds"
    return None


def _listed(legs: Sequence[int]) -> str:
    """Return how messages name legs.

    Examples
    --------
    >>> _listed([0]), _listed([0, 1, 4])
    ('bet 1', 'bets 1, 2 and 5')
    """
    *first, last = (str(leg + 1) for leg in legs)
    return f"bets {', '.join(first)} and {last}" if first else f"bet {last}"


# ---- settlement ----


def _returns(games: _Games, odds: float | None) -> list[_Returns]:
    """Return what each game's legs multiply a parlay by, at a given price or at the product of the odds."""
    d, several = games.odds, [game for game in games.each if game.legs.size > 1]
    margin = 1.0
    if odds is not None and several:
        others = prod(d[game.legs[0]] for game in games.each if game.legs.size == 1)
        margin = (odds / others * prod(game.chance for game in several)) ** (1.0 / len(several))
    elif odds is not None:
        d = d ** (log(odds) / log(d.prod()))
    return [_settled(game, d[game.legs], margin / game.chance) for game in games.each]


def _settled(game: _Game, odds: Floats, price: float) -> _Returns:
    """Return what the legs of a game multiply a parlay by; `price` is that of several together."""
    lost = (game.share <= -1.0).sum(axis=1)
    if game.legs.size == 1:
        value = 1.0 + profits(game.share, odds)[:, 0]
    else:
        value = _joint_values(game, odds, price)
    open_ = lost == 0
    values, at = np.unique(value[open_], return_inverse=True)
    prob = np.bincount(at, game.prob[open_], values.size).astype(np.float64)
    return _Returns(prob, values, float(game.prob[lost == 1].sum()), float(game.prob[lost > 1].sum()))


def _joint_values(game: _Game, odds: Floats, price: float) -> Floats:
    """Return what several legs of a game multiply a parlay by in each scenario."""
    row, weight, state = np.arange(game.prob.size), np.ones(game.prob.size), np.sign(game.share)
    for leg in range(odds.size):  # a bet that is settled in part is divided: the rest of it is pushed
        part = np.abs(game.share[row, leg])
        split = (part > 0.0) & (part < 1.0)
        pushed = state[split].copy()
        pushed[:, leg] = 0.0
        rest = weight[split] * (1.0 - part[split])
        weight = np.concatenate([np.where(split, weight * part, weight), rest])
        row, state = np.concatenate([row, row[split]]), np.concatenate([state, pushed])
    patterns, at = np.unique(state, axis=0, return_inverse=True)
    values = np.zeros(patterns.shape[0])
    for each, pattern in enumerate(patterns):
        won = pattern > 0.0
        if (pattern < 0.0).any():
            continue
        if won.sum() < 2:
            values[each] = odds[won].prod()  # of one leg; 1 without any
        elif won.all():
            values[each] = price
        else:
            values[each] = max(1.0, price * game.chance / _chance(game.prob, game.share[:, won]))
    return np.bincount(row, weight * values[at.reshape(-1)], game.prob.size).astype(np.float64)


def _fair_odds(games: _Games) -> float:
    """Return the price at which a unit returns a unit on average."""
    if all((np.abs(game.share) >= 1.0).all() for game in games.each):
        return 1.0 / prod(game.chance for game in games.each)
    low, high = 0.0, _LONGEST
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        mean = prod(float(each.prob @ each.value) for each in _returns(games, exp(middle)))
        low, high = (middle, high) if mean < 1.0 else (low, middle)
    return exp(high)


def _combined(games: Sequence[_Returns]) -> _Returns:
    """Return what a unit on legs of independent games returns."""
    prob, value, one, more = np.ones(1), np.ones(1), 0.0, 0.0
    for game in games:
        still, open_ = float(prob.sum()), float(game.prob.sum())
        one, more = one * open_ + still * game.one, more + one * (game.one + game.more) + still * game.more
        prob, value = np.outer(prob, game.prob).ravel(), np.outer(value, game.value).ravel()
        if prob.size > _MOST_RETURNS:
            size = np.log(value)
            place = ((size - size.min()) * ((_BINS - 1) / np.ptp(size))).astype(np.int64)
            mass = np.bincount(place, prob)
            value = np.bincount(place, prob * value)[mass > 0.0] / mass[mass > 0.0]
            prob = mass[mass > 0.0].astype(np.float64)
    return _Returns(prob, value, one, more)
