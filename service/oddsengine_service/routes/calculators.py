"""Calculators: stakes for arbitrages, hedges, middles, boosts, free bets and parlays. Odds are decimal."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oddsengine import arbitrage_stakes, kelly, round_stakes
from oddsengine.maths import calculators
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import MOST_TEXT, Param, flag, number, text
from oddsengine_service.http.problems import invalid, quoted
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.numbers import exact, rounded

_TAG = "Calculators"
_MOST, _MOST_STEPS = 20, 1_000_000  # legs; total divided by step
_MOST_BOOST = 100.0 * calculators.MOST_BOOST
_STEP = number("step", "Stakes are multiples of it.", 0.0, 1e6, default=0.01)
_SIX_DIGITS = ("odds", "probability", "kelly", "conversion", "break_even")
Figures = dict[str, float | list[float] | None]


def _list(name: str, doc: str, one: str, **more: Any) -> Param:
    """A parameter for `_numbers`; `one` is the pattern of one number."""
    kind = {"type": "string", "maxLength": MOST_TEXT, "pattern": f"^{one}(,{one}){{0,{_MOST - 1}}}$"}
    return replace(text(name, f"{doc}, separated by commas.", **more), kind=kind)


def _decimal(param: Param) -> Param:
    """Reject odds with a sign, which are American; an unencoded plus sign arrives as a space."""

    def read(name: str, value: str) -> Any:
        if any(word.startswith(("+", "-", " ")) for word in value.split(",")):
            raise invalid(f"{name} must be decimal odds such as 2.5, without a sign or space, got {quoted(value)}")
        return param.read(name, value)

    return replace(param, read=read)


_FRACTION = "[0-9]{0,8}[1-9]"  # after the point, above 0
_ODDS = _decimal(_list(
    "odds", "Decimal odds of all legs", rf"(1\.{_FRACTION}|([2-9]|[1-9][0-9]{{1,5}})(\.[0-9]{{0,9}})?)", required=True
))  # fmt: skip


def _price(name: str, doc: str) -> Param:
    return _decimal(number(name, doc, 1.0001, 1e6, required=True))


def _numbers(context: Context, name: str, low: float, high: float) -> list[float]:
    try:
        values = [float(word) for word in context.query[name].replace("_", "x").split(",")]
    except ValueError:
        values = []
    if not 1 <= len(values) <= _MOST or not all(low < value < high for value in values):
        got = quoted(context.query[name])
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
    odds, total, step = _numbers(context, "odds", 1.0, 1e6), context.query["total"], context.query["step"]
    limits = [np.inf] * len(odds) if context.query["limits"] is None else _numbers(context, "limits", -1.0, 1e15)
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
    q = context.query
    return _figures(context, calculators.hedge(q["stake"], q["odds"], q["against"])._asdict())


def free_bet(context: Context) -> Any:
    q = context.query
    result = calculators.free_bet(q["stake"], q["odds"], q["against"], returned=bool(q["returned"]))
    return _figures(context, result._asdict())


def boost(context: Context) -> Any:
    q = context.query
    odds = calculators.boost(q["odds"], q["boost"] / 100.0)
    p = q["probability"]
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
    q = context.query
    result = calculators.middle_stakes(q["total"], q["odds"], q["against"], q["probability"])
    return _figures(context, result._asdict())


_PRICE, _AGAINST = _price("odds", "Decimal odds of the bet."), _price("against", "Decimal odds of the other side.")
_TOTAL = number("total", "Amount to divide.", 0.0, 1e12, default=100.0)
_STAKE = number("stake", "Stake of the bet.", 0.0, 1e12, default=100.0)


def _chance(figures: str) -> Param:
    return number("probability", f"Fair probability, 0 to 1. Without it, {figures} null.", 0.0, 1.0)


def _calculator(name: str, answer: Any, summary: str, *params: Param) -> Endpoint:
    return Endpoint(f"/calculators/{name}", answer, summary, _TAG, Data[Figures], params, cache="never")


endpoints = (
    _calculator("arbitrage", arbitrage, "Stakes for an arbitrage", _ODDS, _TOTAL, _STEP,
                _list("limits", "Maximum stake at each book", r"[0-9]{1,15}(\.[0-9]{0,9})?")),
    _calculator("hedge", hedge, "Hedge a bet", _STAKE, _PRICE, _AGAINST),
    _calculator("middle", middle, "Stakes for a middle", _TOTAL, _PRICE, _AGAINST, _chance("`ev` is")),
    _calculator("boost", boost, "EV of a boosted price", _PRICE,
                number("boost", "Boost of the winnings in percent.", 0.0, _MOST_BOOST, default=50.0),
                _chance("`ev_percent` and `kelly` are")),
    _calculator("free-bet", free_bet, "Value of a free bet", _STAKE, _PRICE, _AGAINST,
                flag("returned", "True if the stake is paid back with the winnings.", default=False)),
    _calculator("parlay", parlay, "Combine bets into a parlay", _ODDS,
                _list("probabilities", "Fair probabilities of all legs", rf"0\.{_FRACTION}", required=True)),
)  # fmt: skip
