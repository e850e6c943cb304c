"""Middles by enumeration: every pair of lines, every pair of books, every result of the game."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, product

from naive.detection import PROFIT_CAP, Leg, View, by, fair_of, trusted
from naive.quotes import EPSILON, Ladder, Quote

WORST_MIDDLE = -0.20


@dataclass(frozen=True)
class Middle:
    """Over the lower line at one book, under the higher at another."""

    over: Leg
    under: Leg

    @property
    def total(self) -> float:
        return self.over.cost + self.under.cost

    @property
    def worst(self) -> float:
        return 1.0 / self.total - 1.0

    @property
    def numbers(self) -> list[int]:
        low, high = self.over.quote.threshold, self.under.quote.threshold
        return [n for n in range(low // 100, high // 100 + 1) if low < 100 * n < high]


def find_middles(board: View) -> list[Middle]:
    """Of every pair of lines the cheapest admissible pair of books; ties: the smallest pair of books."""
    pairs: dict[tuple[Ladder, int, int], list[Middle]] = {}
    for key, legs in _ladders(board.offers).items():
        first, last = legs[0].quote.family.outcomes[0], legs[0].quote.family.outcomes[-1]
        for over, under in product(legs, legs):
            if (over.quote.side, under.quote.side) != (first, last) or over.book == under.book:
                continue
            middle = Middle(over, under)
            if middle.numbers and board.admissible((over, under)):
                lines = (key, over.quote.threshold, under.quote.threshold)
                pairs.setdefault(lines, []).append(middle)
    best = [
        min(group, key=lambda middle: (middle.total, middle.over.book, middle.under.book)) for group in pairs.values()
    ]
    return [
        middle
        for middle in best
        if WORST_MIDDLE - EPSILON <= middle.worst <= PROFIT_CAP + EPSILON
        and _size(middle) >= board.settings.min_size - EPSILON
    ]


def _size(middle: Middle) -> float:
    return (middle.under.quote.threshold - middle.over.quote.threshold) / 100.0


def _ladders(legs: Iterable[Leg]) -> dict[Ladder, list[Leg]]:
    """The legs of two-way families with lines, by ladder."""
    ladders: dict[Ladder, list[Leg]] = {}
    for leg in legs:
        if leg.quote.family.has_line and len(leg.quote.family.outcomes) == 2:
            ladders.setdefault(leg.quote.ladder, []).append(leg)
    return ladders


def half_points(line: int) -> list[int]:
    """The half points, in hundredths, around the whole number that a line settles on."""
    if line % 100 == 50:
        return [line]
    whole = round(line / 100) * 100
    return [whole - 50, whole + 50]


def settle(number: int, line: int, price: float, *, under: bool) -> float:
    """Return per unit staked; a quarter line is two bets of half the stake on the lines beside it."""
    if line % 50:
        return 0.5 * sum(settle(number, line + step, price, under=under) for step in (-25, 25))
    distance = line - 100 * number if under else 100 * number - line
    return price if distance > 0 else 1.0 if distance == 0 else 0.0


def expected_return(middle: Middle, tail: Mapping[int, float]) -> float:
    """Mean return per unit of total stake, from P(X > h) at the half points of both lines."""
    low, high = middle.over.quote.threshold, middle.under.quote.threshold
    points = sorted({*half_points(low), *half_points(high)})
    chances = [1.0 - tail[points[0]]]
    chances += [tail[a] - tail[b] for a, b in pairwise(points)]
    chances += [tail[points[-1]]]
    numbers = [(points[0] - 50) // 100] + [(point + 50) // 100 for point in points]
    result = 0.0
    for chance, number in zip(chances, numbers, strict=True):
        over = settle(number, low, middle.over.price, under=False) * middle.over.cost
        under = settle(number, high, middle.under.price, under=True) * middle.under.cost
        result += chance * (over + under) / middle.total
    return result


def generous(board: View, middle: Middle, tail: Mapping[int, float]) -> bool:
    """Whether a leg alone pays more than `outlier` allows beside the same tail, where three other providers quote."""
    quote = middle.over.quote
    providers = {board.world.provider(leg.book) for leg in board.everything if leg.quote.ladder == quote.ladder}
    if len(providers) < 4:
        return False
    bound = 0.24 if not quote.live and quote.period == "full_game" and not quote.family.is_prop else 0.35
    for leg, under in ((middle.over, False), (middle.under, True)):
        around = half_points(leg.quote.threshold)
        win, lose = tail[around[-1]], 1.0 - tail[around[0]]
        if under:
            win, lose = 1.0 - tail[around[-1]], tail[around[0]]
        if min(win, lose) <= 0.0:
            continue
        fair = win / (win + lose)
        if -math.log(leg.price - 1.0) - math.log(win / lose) < -(bound + 0.015 / (fair * (1.0 - fair))):
            return True
    return False


# -- the probability of the window ---------------------------------------------------------------------

# P(the full game ends level), overtime included; a sport that is not here says nothing.
LEVEL = {"basketball": 0.0, "baseball": 0.0, "hockey": 0.0, "football": 0.003}


@dataclass(frozen=True)
class Tail:
    """P(X > h) at the half points a middle needs; `source` is a reference's ladder or the books' median."""

    source: str
    at: Mapping[int, float]


def needed_points(middle: Middle) -> list[int]:
    """Below and above what the over line can push on, then the same of the under line."""
    points = []
    for leg in (middle.over, middle.under):
        around = half_points(leg.quote.threshold)
        points += [around[0], around[-1]]
    return points


def known_tail(board: View, middle: Middle) -> Tail | None:
    """The first reference that knows every point; else the median book, by the width of what it knows."""
    points = needed_points(middle)
    legs = [leg for leg in board.universe if _same_game(leg.quote, middle.over.quote)]
    for book in board.settings.sharp:
        own = _points_of(board, trusted(board, legs), middle.over.quote, book, points)
        if own is not None:
            return Tail("ladder", own)
    by_provider: dict[str, dict[int, float]] = {}
    for book in sorted({leg.book for leg in legs} & board.speakers):
        own = _points_of(board, legs, middle.over.quote, book, points)
        if own is not None:
            by_provider.setdefault(board.world.provider(book), own)
    if not by_provider:
        return None
    ordered = sorted(by_provider.values(), key=lambda own: own[points[0]] - own[points[-1]])
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return Tail("median", {point: 0.5 * (low[point] + high[point]) for point in points})


def _same_game(quote: Quote, other: Quote) -> bool:
    same = (quote.event, quote.live, quote.period) == (other.event, other.live, other.period)
    moneyline = other.family.name == "spread" and quote.family.name in ("moneyline", "moneyline_3way")
    return same and (quote.ladder == other.ladder or moneyline)


def _points_of(board: View, legs: list[Leg], quote: Quote, book: str, points: list[int]) -> dict[int, float] | None:
    """What one book says of all the points, if it does and they fall."""
    fair = {
        (market[0].quote.family.name, market[0].quote.threshold): own.probs
        for market in by(legs, lambda leg: leg.quote.market)
        if (own := fair_of(board, market, book)) is not None
    }
    level = LEVEL.get(quote.sport) if quote.period == "full_game" else None
    over, name = quote.family.outcomes[0], quote.family.name

    def tail(point: int) -> float | None:
        if (name, point) in fair:
            return fair[name, point][over]
        if name != "spread" or abs(point) != 50:
            return None
        if level is not None:
            if ("moneyline", 0) in fair:
                win = fair["moneyline", 0]["home"] * (1.0 - level)
                return win if point == 50 else win + level
            if (name, -point) in fair:
                return fair[name, -point][over] + (-level if point == 50 else level)
            return None
        if ("moneyline_3way", 0) in fair:
            three = fair["moneyline_3way", 0]
            return three["home"] if point == 50 else 1.0 - three["away"]
        return None

    found = [tail(point) for point in points]
    known = [p for p in found if p is not None]
    if len(known) < len(points) or any(a < b for a, b in pairwise(known)):
        return None
    return dict(zip(points, known, strict=True))


def probability(middle: Middle, tail: Tail) -> float:
    """P(a whole number strictly between the lines)."""
    first, last = middle.numbers[0], middle.numbers[-1]
    return tail.at[first * 100 - 50] - tail.at[last * 100 + 50]
