"""Parlays by enumeration: every combination of the games' scenarios, and of the parts of stakes that are divided."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

Game = tuple[list[int], list[tuple[float, list[float]]]]
"""The legs of a game, and its scenarios: a probability, and the share of each leg's stake that is won or lost."""


def chance(scenarios: list[tuple[float, list[float]]], legs: Sequence[int]) -> float:
    """The probability that some legs of a game all win, given that none of them is pushed."""
    won = settled = 0.0
    for p, share in scenarios:
        won += p * math.prod(max(share[leg], 0.0) for leg in legs)
        settled += p * math.prod(abs(share[leg]) for leg in legs)
    return won / settled


def states(share: Sequence[float]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Parts of a stake, each with what it makes of the legs: 1 won, 0 pushed, -1 lost."""
    for parts in product((True, False), repeat=len(share)):
        weight = math.prod(abs(s) if whole else 1.0 - abs(s) for whole, s in zip(parts, share, strict=True))
        if weight > 0.0:
            yield weight, tuple((1 if s > 0.0 else -1) if whole else 0 for whole, s in zip(parts, share, strict=True))


def paid(games: Sequence[Game], odds: Sequence[float], offered: float, won: Sequence[bool]) -> float:
    """What a book pays for the legs that won, if the others were pushed."""
    several = [game for game in games if len(game[0]) > 1]
    if several:
        others = math.prod(odds[legs[0]] for legs, _ in games if len(legs) == 1)
        margin = offered / others
        for legs, scenarios in several:
            margin *= chance(scenarios, range(len(legs)))
        margin = margin ** (1.0 / len(several))
        power = 1.0
    else:
        margin, power = 1.0, math.log(offered) / math.log(math.prod(odds))
    value = 1.0
    for legs, scenarios in games:
        remaining = [at for at, leg in enumerate(legs) if won[leg]]
        if len(remaining) == 1:
            value *= odds[legs[remaining[0]]] ** power
        elif len(remaining) == len(legs):
            value *= margin / chance(scenarios, remaining)
        elif remaining:
            value *= max(1.0, margin / chance(scenarios, remaining))
    return value


def outcomes(
    games: Sequence[Game], odds: Sequence[float], offered: float, boost: float = 0.0, refund: str = "",
    refund_value: float = 0.0,
) -> list[tuple[float, float]]:  # fmt: skip
    """Probabilities of all scenarios, and what a unit returns in each."""
    found = []
    for combination in product(*(scenarios for _, scenarios in games)):
        p = math.prod(each[0] for each in combination)
        share = [0.0] * len(odds)
        for (legs, _), (_, own) in zip(games, combination, strict=True):
            for leg, s in zip(legs, own, strict=True):
                share[leg] = s
        lost = share.count(-1.0)
        if lost:
            value = refund_value if refund == "loss" or (refund == "one_leg" and lost == 1) else 0.0
        else:
            value = 0.0
            for weight, state in states(share):
                if -1 not in state:
                    value += weight * paid(games, odds, offered, [each == 1 for each in state])
            if value > 1.0:
                value = 1.0 + (value - 1.0) * (1.0 + boost)
        found.append((p, value))
    return found


def growth(found: Sequence[tuple[float, float]], stake: float) -> float:
    """Mean log growth of the bankroll."""
    return sum(p * math.log(1.0 + stake * (value - 1.0)) for p, value in found if p > 0.0)


def kelly(found: Sequence[tuple[float, float]]) -> float:
    """The stake with the largest growth, by ternary search."""
    low, high = 0.0, 1.0 - 1e-9
    for _ in range(200):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        if growth(found, a) < growth(found, b):
            low = a
        else:
            high = b
    return 0.5 * (low + high)
