"""True arbitrages among honest prices, found by plain arithmetic, to count those that the detector misses."""

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.columns import Bools, Floats, Longs
from oddsengine.simulate.simulated_labels import Place
from oddsengine.simulate.simulated_leagues import MONEYLINE

Offer = tuple[int, float, float]  # row, net odds, time seen


class TrueArbitrage(NamedTuple):
    """The best prices of one market, one book per outcome."""

    event_id: str
    place: Place  # of its first outcome
    is_live: bool
    profit: float  # percent
    books: tuple[str, ...]


class HonestPrices(NamedTuple):
    """Honest prices, as flat columns."""

    event: Longs
    ladder: Longs
    quarters: Longs
    live: Bools
    side: Longs
    net: Floats
    seen: Floats


def best(board: HonestPrices, draws: Bools) -> Iterator[tuple[int, float, list[int]]]:
    """Yield a row of each market with a profit, the sum of 1 / odds, and the rows of its legs.

    `draws` says for every row whether a moneyline of its event has a draw.
    """
    order = np.lexsort((board.side, board.quarters, board.live, board.ladder, board.event))
    columns = (board.event, board.ladder, board.live, board.quarters)
    new = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0) if order.size else []
    starts = np.flatnonzero(np.concatenate([[True], new])) if order.size else np.zeros(0, np.int64)
    for first, last in pairwise([*starts, order.size]):
        rows = order[first:last]
        three = board.ladder[rows[0]] == MONEYLINE and draws[rows[0]]
        offers = _sides(board, rows)
        if len(offers) != (3 if three else 2) or _cheapest(offers)[0] >= 1.0:
            continue
        total, legs = _in_time(offers) if board.live[rows[0]] else _cheapest(offers)
        if total < 1.0:
            yield int(rows[0]), total, legs


def _sides(board: HonestPrices, rows: Longs) -> list[list[Offer]]:
    offers = list(zip(rows.tolist(), board.net[rows].tolist(), board.seen[rows].tolist(), strict=True))
    return [list(group) for _, group in groupby(offers, key=lambda offer: int(board.side[offer[0]]))]


def _cheapest(sides: list[list[Offer]]) -> tuple[float, list[int]]:
    legs = [max(side, key=lambda offer: offer[1]) for side in sides]
    return sum(1.0 / odds for _, odds, _ in legs), [row for row, _, _ in legs]


def _in_time(sides: list[list[Offer]]) -> tuple[float, list[int]]:
    """Return the best live legs seen close enough together."""
    gap = catalog.thresholds().stale_live_gap_s
    best_pair: tuple[float, list[int]] = (np.inf, [])
    for _, _, earliest in (offer for side in sides for offer in side):
        near = [[offer for offer in side if earliest <= offer[2] <= earliest + gap] for side in sides]
        if all(near):
            best_pair = min(best_pair, _cheapest(near))
    return best_pair
