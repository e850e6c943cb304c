"""Calculators: stakes for arbitrages, hedges, middles, boosts, free bets and parlays. Odds are decimal."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np

from oddsengine import arbitrage_stakes, kelly, round_stakes
from oddsengine.maths import calculators
from oddsengine.maths.rounding import exact
from oddsengine_service.errors import invalid, must_be, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Param, Query
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.numbers import rounded
from oddsengine_service.wire.texts import MOST_TEXT

_TAG = "Calculators"
_MOST, _MOST_STEPS = 20, 1_000_000  # legs; total divided by step
_MOST_BOOST = 100.0 * calculators.MOST_BOOST
_SIX_DIGITS = ("odds", "probability", "kelly", "conversion", "break_even")
Figures = dict[str, float | list[float] | None]


def _unsigned(name: str, value: str) -> None:
    """Reject odds with a sign, which are American; an unencoded plus sign arrives as a space."""
    if any(word.startswith(("+", "-", " ")) for word in value.split(",")):
        raise invalid(must_be(name, "decimal odds such as 2.5, without a sign or space", quoted(value)))


def _list(doc: str, one: str, **more: Any) -> Param:
    """A parameter for `_numbers`; `one` is the pattern of one number."""
    kind = {"type": "string", "maxLength": MOST_TEXT, "pattern": f"^{one}(,{one}){{0,{_MOST - 1}}}$"}
    return Param(f"{doc}, separated by commas.", schema=kind, **more)


def _numbers(context: Context, name: str, low: float, high: float) -> list[float]:
    try:
        values = [float(word) for word in context.query.get(name).replace("_", "x").split(",")]
    except ValueError:
        values = []
    if not 1 <= len(values) <= _MOST or not all(low < value < high for value in values):
        got = quoted(context.query.get(name))
        raise invalid(f"{name} must be 1 to {_MOST} numbers between {low:g} and {high:,.10g}, got {got}")
    return values


def _figures(context: Context, figures: Mapping[str, Any]) -> dict[str, Any]:
    """A response with rounded figures."""
    out = {}
    for name, value in figures.items():
        digits = 6 if name in _SIX_DIGITS else 4
        out[name] = [exact(v, digits) for v in value] if isinstance(value, list | tuple) else rounded(value, digits)
    return data(context, out)


def arbitrage(context: Context) -> Any:
    odds, total, step = _numbers(context, "odds", 1.0, 1e6), context.query.total, context.query.step
    limits = [np.inf] * len(odds) if context.query.limits is None else _numbers(context, "limits", -1.0, 1e15)
    if min(limits) < 0.0:
        raise invalid(f"limits must be 0 or more, got {min(limits):g}")
    if len(limits) != len(odds):
        raise invalid(f"limits must have as many numbers as odds, {len(odds)}, got {len(limits)}")
    if step and total / step > _MOST_STEPS:
        raise invalid(f"total must be at most {_MOST_STEPS:,} steps, got {total / step:,.0f}")
    stakes = round_stakes(odds, total, step, limits).stakes.tolist() if step else []
    if not any(stakes):  # no arbitrage: all outcomes pay the same
        stakes = arbitrage_stakes(odds, total, limits).tolist()
    payouts = [stake * price for stake, price in zip(stakes, odds, strict=True)]
    staked = sum(stakes)
    return _figures(context, {"stakes": stakes, "payouts": payouts, "staked": staked, "profit": min(payouts) - staked})


def hedge(context: Context) -> Any:
    q: HedgeQuery = context.query
    result = calculators.hedge(q.stake, q.odds, q.against, commission=q.commission / 100.0)
    return _figures(context, result._asdict())


def free_bet(context: Context) -> Any:
    q: FreeBetQuery = context.query
    result = calculators.free_bet(q.stake, q.odds, **_other_side(q), returned=bool(q.returned))
    return _figures(context, result._asdict())


def qualifying(context: Context) -> Any:
    q: MatchedQuery = context.query
    return _figures(context, calculators.qualifying(q.stake, q.odds, **_other_side(q))._asdict())


def _other_side(q: "MatchedQuery") -> dict[str, Any]:
    """The other side of a bet: its odds, or a lay price; and the commission there."""
    if (q.against is None) == (q.lay is None):
        raise invalid("give either against, odds of the other side, or lay, odds at which the bet can be laid")
    return {"against": q.against, "lay": q.lay, "commission": q.commission / 100.0}


def boost(context: Context) -> Any:
    q: BoostQuery = context.query
    odds = calculators.boost(q.odds, q.boost / 100.0)
    p = q.probability
    ev, fraction = (None, None) if p is None else (100.0 * (odds * p - 1.0), float(kelly(p, odds)))
    return _figures(context, {"odds": odds, "ev_percent": ev, "kelly": fraction})


def parlay(context: Context) -> Any:
    odds, probs = _numbers(context, "odds", 1.0, 1e6), _numbers(context, "probabilities", 0.0, 1.0)
    if len(odds) != len(probs):
        raise invalid(f"probabilities must have as many numbers as odds, {len(odds)}, got {len(probs)}")
    result = calculators.parlay(odds, probs)
    prob, ev = result.prob or 0.0, result.ev or 0.0  # both are known: there are probabilities
    fraction = float(kelly(prob, result.odds)) if np.isfinite(result.odds) else 0.0
    return _figures(context, {"odds": result.odds, "probability": prob, "ev_percent": 100.0 * ev, "kelly": fraction})


def middle(context: Context) -> Any:
    q: MiddleStakesQuery = context.query
    result = calculators.middle_stakes(q.total, q.odds, q.against, q.probability)
    return _figures(context, result._asdict())


_FRACTION = "[0-9]{0,8}[1-9]"  # after the point, above 0
_ODD = rf"(1\.{_FRACTION}|([2-9]|[1-9][0-9]{{1,5}})(\.[0-9]{{0,9}})?)"
_Odds = Annotated[str, _list("Decimal odds of all legs", _ODD, check=_unsigned)]
_price = partial(Param, low=1.0001, high=1e6, check=_unsigned)
_Price = Annotated[float, _price("Decimal odds of the bet.")]
_Against = Annotated[float, _price("Decimal odds of the other side.")]
_Commission = Annotated[float, Param("Commission on the winnings of the other side, in percent.", low=0.0, high=99.0)]
_Total = Annotated[float, Param("Amount to divide.", low=0.0, high=1e12)]
_Stake = Annotated[float, Param("Stake of the bet.", low=0.0, high=1e12)]


class ArbitrageStakesQuery(Query):
    """Parameters of stakes for an arbitrage."""

    odds: _Odds
    total: _Total = 100.0
    step: Annotated[float, Param("Stakes are multiples of it.", low=0.0, high=1e6)] = 0.01
    limits: Annotated[str | None, _list("Maximum stake at each book", r"[0-9]{1,15}(\.[0-9]{0,9})?")] = None


class HedgeQuery(Query):
    """Parameters of a hedge."""

    stake: _Stake = 100.0
    odds: _Price
    against: _Against
    commission: _Commission = 0.0


class MatchedQuery(Query):
    """Parameters of a bet that is hedged for an offer."""

    stake: _Stake = 100.0
    odds: _Price
    against: Annotated[float | None, _price("Decimal odds of the other side; or `lay`.")] = None
    lay: Annotated[
        float | None, _price("Decimal odds at which the bet can be laid; `stake` of the answer is then the liability.")
    ] = None
    commission: _Commission = 0.0


class MiddleStakesQuery(Query):
    """Parameters of stakes for a middle."""

    total: _Total = 100.0
    odds: _Price
    against: _Against
    probability: Annotated[
        float | None, Param("Fair probability, 0 to 1. Without it, `ev` is null.", low=0.0, high=1.0)
    ] = None


class BoostQuery(Query):
    """Parameters of a boosted price."""

    odds: _Price
    boost: Annotated[float, Param("Boost of the winnings in percent.", low=0.0, high=_MOST_BOOST)] = 50.0
    probability: Annotated[
        float | None,
        Param("Fair probability, 0 to 1. Without it, `ev_percent` and `kelly` are null.", low=0.0, high=1.0),
    ] = None


class FreeBetQuery(MatchedQuery):
    """Parameters of a free bet."""

    returned: Annotated[bool, Param("True if the stake is paid back with the winnings.")] = False


class ParlayQuery(Query):
    """Parameters of a parlay."""

    odds: _Odds
    probabilities: Annotated[str, _list("Fair probabilities of all legs", rf"0\.{_FRACTION}")]


def _calculator(name: str, answer: Any, summary: str, query: type[Query]) -> Endpoint:
    return Endpoint(f"/calculators/{name}", answer, summary, _TAG, Data[Figures], query, cache="never")


endpoints = (
    _calculator("arbitrage", arbitrage, "Stakes for an arbitrage", ArbitrageStakesQuery),
    _calculator("hedge", hedge, "Hedge a bet", HedgeQuery),
    _calculator("middle", middle, "Stakes for a middle", MiddleStakesQuery),
    _calculator("boost", boost, "EV of a boosted price", BoostQuery),
    _calculator("free-bet", free_bet, "Value of a free bet", FreeBetQuery),
    _calculator("qualifying", qualifying, "Qualifying loss of a matched bet", MatchedQuery),
    _calculator("parlay", parlay, "Combine bets into a parlay", ParlayQuery),
)
