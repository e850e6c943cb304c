"""Levels and fees of the rows that have their own, as numbers; and which rows have rules of stakes.

They are derived from the rows' texts (`row_links`), whenever those are set. Levels of a row stand together in a pool,
best first; those of earlier texts stay in it until it is packed.
"""

import numpy as np

from oddsengine.board.row_links import FEES, LADDER, RULES, depth_parts
from oddsengine.columns import Bytes, Ints, Longs, grown, spans
from oddsengine.pricing.commission import PriceDepth
from oddsengine.tables.levels import FlatLevels, levels_of_text


class Depth:
    """The levels and fees of rows, by slot."""

    def __init__(self, least: int = 1024) -> None:
        self._least = least  # levels below which the pool is not packed
        self._fees: dict[int, tuple[float, float]] = {}  # commission and fee, nan: those of the book
        self._ruled: set[int] = set()  # slots with rules of stakes
        self._first = np.empty(0, np.int64)  # per slot: place of its levels in the pool
        self._size = np.empty(0, np.int64)
        self._odds, self._stake = np.empty(0), np.empty(0)
        self._used = 0
        self._held = 0  # of these, the levels of current texts

    def put(self, slot: int, link: str | None) -> int:
        """Replace those of a row by those of its text. Returns what it has, as `links.own_parts`."""
        levels, fees, parts = depth_parts(link)
        if parts & RULES:
            self._ruled.add(slot)
        elif self._ruled:
            self._ruled.discard(slot)
        if any(fees):
            commission, fee = (float(text or "nan") for text in fees)
            self._fees[slot] = commission, fee
        elif self._fees:
            self._fees.pop(slot, None)
        if levels or (slot < self._size.size and self._size[slot]):
            self._put_levels(slot, sorted(levels_of_text(levels), reverse=True))
        return parts

    def _put_levels(self, slot: int, levels: list[tuple[float, float]]) -> None:
        self._first, self._size = grown(self._first, slot + 1), grown(self._size, slot + 1)
        count, room = len(levels), int(self._size[slot])
        self._held += count - room
        if count > room:
            if self._used > max(self._least, 2 * self._held):
                self._pack(slot)
            self._first[slot] = self._used
            self._used += count
            self._odds, self._stake = grown(self._odds, self._used), grown(self._stake, self._used)
        self._size[slot] = count
        at = int(self._first[slot])
        for place, (odds, stake) in enumerate(levels, at):
            self._odds[place], self._stake[place] = odds, stake

    def _pack(self, but: int) -> None:
        """Leave out what is not of a current text, nor of a row that is about to get another."""
        self._size[but] = 0
        slots = np.flatnonzero(self._size)
        sizes = self._size[slots]
        at = spans(self._first[slots], self._first[slots] + sizes)
        self._odds, self._stake = self._odds[at], self._stake[at]
        self._first[slots] = np.cumsum(sizes) - sizes
        self._used = at.size

    @property
    def is_empty(self) -> bool:
        """Whether no row has any."""
        return not (self._held or self._fees or self._ruled)

    def take(self, slots: Ints | Longs, parts: Bytes, *, levels: bool) -> PriceDepth | None:
        """Those of some rows, `parts` being what each has; None if it is nothing that is asked for."""
        charged = np.flatnonzero(parts & FEES)
        deep = np.flatnonzero(parts & LADDER) if levels else charged[:0]
        if not (charged.size or deep.size):
            return None
        rates = np.array([self._fees[slot] for slot in slots[charged].tolist()], np.float64).reshape(-1, 2)
        first, size = self._first[slots[deep]], self._size[slots[deep]]
        at = spans(first, first + size)
        flat = FlatLevels(np.repeat(deep, size), self._odds[at], self._stake[at])
        return PriceDepth(charged, rates[:, 0], rates[:, 1], flat)
