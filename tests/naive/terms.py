"""What a set of bets returns where a game does not end in the usual way, by trying every way that it can go."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

NEVER = float("inf")


def worst(case: str, rules: Sequence[Any], odds: Sequence[float]) -> float | None:
    """Worst return less the stake of bets on all outcomes, staked for equal payouts; None if it is not known.

    `rules` are what the books do, as in the catalog: `pays`, and `limit` of a postponement or a retirement.
    """
    total = sum(1.0 / each for each in odds)
    stakes = [1.0 / each / total for each in odds]
    found = []
    for moment in _moments(case, rules):
        stand = [_stands(case, rule, moment) for rule in rules]
        if all(stand):
            continue  # as if nothing had happened
        for winner in range(len(odds)):
            back: float | None = 0.0
            for leg, rule in enumerate(rules):
                if stand[leg]:
                    paid: float | None = stakes[leg] * odds[leg] if leg == winner else 0.0
                else:
                    paid = {"void": stakes[leg], "half": 0.5 * stakes[leg] * odds[leg], "fair": None}[rule.pays]
                back = None if back is None or paid is None else back + paid
            if back is not None:
                found.append(back - 1.0)
    return min(found, default=None)


def _moments(case: str, rules: Sequence[Any]) -> Iterator[Mapping[Any, float]]:
    """How late a game starts and when a day and a week end, or how many sets were completed."""
    if case == "postponed":
        ends = sorted(
            {float(rule.limit) for rule in rules if not isinstance(rule.limit, str)} | {0.0, 24.0, 48.0, 168.0}
        )
        late = [*ends, *(each + 0.5 for each in ends), 10_000.0]
        for hours, day, week in product(late, (0.0, 0.5, 12.0, 23.5, 24.0), (48.0, 60.0, 100.0, 168.0)):
            yield {"hours": hours, "day": day, "week": week, "ever": NEVER}
    elif case == "retirement":
        for sets in range(-1, 5):  # before the first ball, then sets completed
            yield {"sets": float(sets)}
    else:
        yield {}


def _stands(case: str, rule: Any, moment: Mapping[Any, float]) -> bool:
    if case == "postponed":
        return moment["hours"] <= (moment[rule.limit] if isinstance(rule.limit, str) else float(rule.limit))
    if case == "retirement":
        return bool(moment["sets"] >= {"ball": 0.0, "match": NEVER}.get(rule.limit, rule.limit))
    return False
