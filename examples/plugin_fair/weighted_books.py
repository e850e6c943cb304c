"""A fair price: the mean of all books in log-odds, each without its margin, in which sharp books count more."""

import math

import oddsengine as oe

VOTES = {"pinnacle": 3.0, "circa": 2.0}  # of other books: 1
LEAST = 3  # books


def fair(prices: oe.MarketPrices) -> list[float] | None:
    """Return the probabilities of the outcomes of a market; None with too few books."""
    if len(prices.odds) < LEAST:
        return None
    totals, votes = [0.0] * len(prices.outcomes), 0.0
    for book, odds in prices.odds.items():
        weight = VOTES.get(book, 1.0)
        votes += weight
        for at, probability in enumerate(oe.devig(odds, "power")):
            totals[at] += weight * math.log(probability / (1.0 - probability))
    shares = [1.0 / (1.0 + math.exp(-total / votes)) for total in totals]
    return [share / sum(shares) for share in shares]
