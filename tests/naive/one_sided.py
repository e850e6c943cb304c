"""The fair price of one-sided prices again, slowly: one price at a time, as the formulas read.

Constants come as the tables of fair.toml. It imports nothing of the package.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from naive.close import Books, Price, adds_up
from naive.devig import power

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Quote:
    """What a book quotes in one market of an event and kind; None for a side that it does not."""

    market: Any
    book: str
    odds: tuple[float | None, float | None]
    usable: bool = True  # no guard rejects it

    @property
    def side(self) -> int | None:
        """The side of a one-sided quote."""
        return None if None not in self.odds else int(self.odds[0] is None)


@dataclass(frozen=True)
class Sample:
    market: Any
    side: int
    provider: str
    level: float
    total: float
    compared: bool


def level(odds: float) -> float:
    return -math.log(odds - 1.0)


def logit(odds: Sequence[float]) -> float:
    p = power(list(odds))
    return math.log(p[0] / p[1])


def voters(quotes: Sequence[Quote], market: Any, books: Books, params: Params) -> dict[str, Quote]:
    """By provider, the first book that quotes both sides of a market."""
    out: dict[str, Quote] = {}
    for quote in sorted((q for q in quotes if q.market == market and q.side is None), key=lambda q: q.book):
        if quote.usable and adds_up(Price(quote.book, 0.0, quote.odds, 0.0, None), params):  # type: ignore[arg-type]
            out.setdefault(books.provider[quote.book], quote)
    return out


def samples(quotes: Sequence[Quote], books: Books, params: Params) -> list[Sample]:
    """The book sums of all prices that tell of a margin."""
    out = []
    for quote in quotes:
        provider, side = books.provider[quote.book], quote.side
        if not quote.usable:
            continue
        if side is None:
            total = math.fsum(1.0 / d for d in quote.odds if d is not None)
            if adds_up(Price(quote.book, 0.0, quote.odds, 0.0, None), params):  # type: ignore[arg-type]
                out += [
                    Sample(quote.market, k, provider, level(d), total, False) for k, d in enumerate(quote.odds) if d
                ]
            continue
        others = voters(quotes, quote.market, books, params)
        logits = [logit(other.odds) for name, other in others.items() if name != provider]  # type: ignore[arg-type]
        if not logits:
            continue
        x, odds = median(logits), quote.odds[side]
        assert odds is not None
        p = 1.0 / (1.0 + math.exp(-x if side == 0 else x))
        # The price of the hidden side with which the power method gives p.
        k = math.log(p) / math.log(1.0 / odds)
        total = 1.0 / odds + (1.0 - p) ** (1.0 / k)
        total = min(max(total, params["vote"]["sum_low"]), params["margin"]["sum_high"])
        out.append(Sample(quote.market, side, provider, level(odds), total, True))
    return out


def margin(quote: Quote, known: Sequence[Sample], books: Books, params: Params) -> tuple[float, float] | None:
    """The book sum that is usual for a one-sided price, and its standard error."""
    of, side = params["margin"], quote.side
    assert side is not None
    odds = quote.odds[side]
    assert odds is not None

    def weighted(some: Sequence[Sample]) -> list[tuple[float, float]]:
        return [(1.0 / (1.0 + ((level(odds) - s.level) / of["like"]) ** 2) ** 2, s.total) for s in some]

    like = [s for s in known if s.side == side and s.market != quote.market]
    both = weighted([s for s in like if not s.compared])
    total = math.fsum(w for w, _ in both)
    if total < of["least"]:
        return None
    mean = math.fsum(w * b for w, b in both) / total
    variance = math.fsum(w * (b - mean) ** 2 for w, b in both) / total + of["sum_error"] ** 2
    same = [s for s in like if s.provider == books.provider[quote.book]]
    for compared in (False, True):
        own = weighted([s for s in same if s.compared == compared])
        total = math.fsum(w for w, _ in own) + of["weight"]
        after = (math.fsum(w * b for w, b in own) + of["weight"] * mean) / total
        squares = math.fsum(w * (b - after) ** 2 for w, b in own) + of["weight"] * (variance + (mean - after) ** 2)
        mean, variance = after, squares / total
    return mean, math.sqrt(variance)


def completed(
    quote: Quote, known: Sequence[Sample], books: Books, params: Params
) -> tuple[tuple[float, float], float] | None:
    """A one-sided price as a whole market, and the error of its logit; None if its margin is unknown."""
    found, side = margin(quote, known, books, params), quote.side
    assert side is not None
    odds = quote.odds[side]
    assert odds is not None
    if found is None or not params["vote"]["sum_low"] <= found[0] <= params["vote"]["sum_high"]:
        return None
    hidden = [found[0] - 1.0 / odds, found[0] - found[1] - 1.0 / odds]
    if not (hidden[1] > 0.0 and hidden[0] < 1.0):
        return None
    first, second = ((odds, 1.0 / q) if side == 0 else (1.0 / q, odds) for q in hidden)
    return first, abs(logit(second) - logit(first))


def own_error(logits: Sequence[float], errors: Sequence[float], close: float, params: Params) -> float:
    """The standard error of an estimate from the logits of the other providers, and the errors of their margins."""
    of, n = params["margin"], len(logits)
    mean = math.fsum(logits) / n
    squares = math.fsum((x - mean) ** 2 for x in logits) + of["weight"] * of["vote_error"] ** 2
    spread = squares / (n - 1 + of["weight"]) / n
    if math.isnan(close):
        close = params["confidence"]["unknown_se"]
    return math.sqrt(close**2 + (math.fsum(errors) / n) ** 2 + spread)
