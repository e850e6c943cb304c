"""Margin removal again, slowly: one market at a time, plain floats, every unknown by bisection."""

import math
from collections.abc import Callable
from statistics import NormalDist

Market = list[float]

NO_ANSWER = math.nan


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 1, between two positive numbers, bisected in the logarithm."""
    for _ in range(200):
        middle = math.sqrt(low) * math.sqrt(high)
        if falling(middle) > 1.0:
            low = middle
        else:
            high = middle
    return math.sqrt(low) * math.sqrt(high)


def multiplicative(odds: Market) -> Market:
    total = math.fsum(1.0 / d for d in odds)
    return [1.0 / d / total for d in odds]


def additive(odds: Market) -> Market:
    margin = math.fsum(1.0 / d for d in odds) - 1.0
    return [1.0 / d - margin / len(odds) for d in odds]


def power(odds: Market) -> Market:
    logs = [-math.log(d) for d in odds]
    k = _root(lambda k: math.fsum(math.exp(k * q) for q in logs), 1e-9, 1e17)
    return [math.exp(k * q) for q in logs]


def shin(odds: Market) -> Market:
    total = math.fsum(1.0 / d for d in odds)

    def fair(insiders: float) -> Market:
        """Probabilities for z = 1 - 1 / insiders, each from the form that does not cancel."""
        z, uninformed = 1.0 - 1.0 / insiders, 1.0 / insiders
        found = []
        for d in odds:
            a = 1.0 / d / d / total
            r = math.sqrt(z * z + 4.0 * uninformed * a)
            found.append((r - z) / (2.0 * uninformed) if z < 0.0 else 2.0 * a / (r + z))
        return found

    return fair(_root(lambda x: math.fsum(fair(x)), 1e-9, 1e17))


def odds_ratio(odds: Market) -> Market:
    def fair(c: float) -> Market:
        return [1.0 / (1.0 + c * (d - 1.0)) for d in odds]

    return fair(_root(lambda c: math.fsum(fair(c)), 1e-17, 1e17))


def logarithmic(odds: Market) -> Market:
    """The logit of every implied probability moves by one shift, here found on the logits themselves."""
    logits = [-math.log(d - 1.0) for d in odds]

    def fair(shift: float) -> Market:
        return [1.0 / (1.0 + math.exp(shift - x)) for x in logits]

    low, high = -40.0, 40.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if math.fsum(fair(middle)) > 1.0:
            low = middle
        else:
            high = middle
    return fair(0.5 * (low + high))


def goto(odds: Market) -> Market:
    """Every implied probability gives up the same number of its standard errors."""
    errors = [math.sqrt((d - 1.0) / d) for d in odds]
    steps = (math.fsum(1.0 / d for d in odds) - 1.0) / math.fsum(errors)
    return [1.0 / d - steps * error for d, error in zip(odds, errors, strict=True)]


def probit(odds: Market) -> Market:
    """The normal score of every implied probability moves by one shift."""
    quantile = NormalDist().inv_cdf
    scores = [quantile(1.0 / d) if d > 2.0 else -quantile((d - 1.0) / d) for d in odds]

    def fair(shift: float) -> Market:
        return [0.5 * math.erfc((shift - z) / math.sqrt(2.0)) for z in scores]

    low, high = -80.0, 80.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if math.fsum(fair(middle)) > 1.0:
            low = middle
        else:
            high = middle
    return fair(0.5 * (low + high))


def worst_case(odds: Market) -> Market:
    others = [method(odds) for method in (multiplicative, additive, power, shin, odds_ratio)]
    if not all(0.0 < p < 1.0 for answer in others for p in answer):
        return [NO_ANSWER] * len(odds)
    return [min(answer[i] for answer in others) for i in range(len(odds))]


METHODS = {
    "multiplicative": multiplicative,
    "additive": additive,
    "power": power,
    "shin": shin,
    "odds_ratio": odds_ratio,
    "logarithmic": logarithmic,
    "goto": goto,
    "probit": probit,
    "worst_case": worst_case,
}


def devig(odds: Market, method: str) -> Market:
    """Fair probabilities of one market, or `nan` for each outcome."""
    if len(odds) < 2 or not all(math.isfinite(d) and d > 1.0 for d in odds):
        return [NO_ANSWER] * len(odds)
    answer = METHODS[method](odds)
    if not all(0.0 < p < 1.0 for p in answer):
        return [NO_ANSWER] * len(odds)
    return answer


def blend(odds: Market, weights: dict[str, float]) -> Market:
    """Weighted mean of the methods' probabilities."""
    answers = {method: devig(odds, method) for method in weights}
    total = sum(weights.values())
    return [sum(weight * answers[m][i] for m, weight in weights.items()) / total for i in range(len(odds))]
