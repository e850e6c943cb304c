"""What a batch changes on a board, so that it can be undone, and so that readers see what was before."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine.board.facts import Before, Facts
from oddsengine.board.rows import QUOTED, Rows
from oddsengine.columns import NONE, Bytes, Ints, Longs
from oddsengine.identity.layout import FREE, LIVE, ON, SUSPENDED

_SHOWN = ("state", "flags", "odds", "american", "start")  # columns of which readers want to know what was before


class Undo:
    """The state before a batch, as far as needed to undo it."""

    def __init__(self, rows: Rows, keys: Longs, facts: dict[str, Any], rejudged: int) -> None:
        slots = rows.find(keys)
        self.slots = slots[slots >= 0].astype(np.intp)  # rows named in its quotes
        self.columns = {name: getattr(rows, name)[self.slots] for name in QUOTED}  # of these
        records = rows.record[self.slots].astype(np.intp)
        self.levels = rows.levels.taken(records[records >= 0])  # their records, and all that were spare
        self.top, self.spare = rows.top, rows.spare[: rows.spares].copy()
        self.lost: list[tuple[Ints, Bytes, Longs]] = []  # removed or forgotten rows: slot, state, moved
        # Rows with a new verdict: slot, then NONE; rejected; judged, None if it has not changed yet.
        self.verdicts: list[list[Any]] = []
        self.links: dict[int, str | None] = {}
        self.facts = facts  # attributes of the board
        self.rejudged = rejudged  # how many lists of rows with another verdict there were
        self.new: Ints = np.empty(0, np.int32)  # rows that the batch adds

    def remember_lost(self, rows: Rows, slots: Ints) -> None:
        """Remember rows that are about to be removed or forgotten."""
        self.lost.append((slots, rows.state[slots], rows.moved[slots]))

    def restore(self, rows: Rows) -> None:
        """Give the rows their state before the batch, but for what `Board.rebuild` derives."""
        for slots, state, moved in reversed(self.lost):
            rows.state[slots], rows.moved[slots] = state, moved
        for slots, rejected, judged in reversed(self.verdicts):
            changed = slots[slots != NONE]
            rows.rejected[changed] = rejected[: changed.size]
            if judged is not None:
                rows.judged[changed] = judged
        for slot, link in self.links.items():
            rows.link(slot, link)
        rows.state[self.top : rows.top] = FREE
        rows.state[self.spare] = FREE
        for name, column in self.columns.items():
            getattr(rows, name)[self.slots] = column
        records = rows.record[self.slots]
        rows.levels.undo(records[records >= 0], self.levels)
        rows.top, rows.spare, rows.spares = self.top, self.spare, self.spare.size

    def past(self) -> "Past":
        """What readers want to know of the rows that the batch changed."""
        columns = {name: self.columns[name] for name in _SHOWN}
        return Past(self.slots, columns, self.links, self.new)


class Past(NamedTuple):
    """What changed rows were before a batch."""

    slots: Longs  # rows named in its quotes
    columns: dict[str, npt.NDArray[Any]]  # of these
    links: dict[int, str | None]  # own texts that it changed
    new: Ints  # rows that it added

    def before(self, facts: Facts) -> Before:
        """Rows that are on the board after the batch or that it removed, in order of slot, as they were before it.

        `facts` is what the board said of them after it.
        """
        slots = facts.slot
        if not slots.size:
            return Before.none()
        was = {name: getattr(facts, name).copy() for name in _SHOWN if name != "state"}
        was["state"] = np.full(slots.size, ON, np.uint8)  # of rows that no quote names
        at = np.minimum(np.searchsorted(slots, self.slots), slots.size - 1)
        held = slots[at] == self.slots
        at = at[held]
        for name, column in was.items():
            column[at] = self.columns[name][held]
        links = facts.links
        if links and self.links:
            links = [self.links.get(slot, link) for slot, link in zip(slots.tolist(), links, strict=True)]
        shown = (was["state"] == ON) & ((was["flags"] & SUSPENDED) == 0) & ~np.isin(slots, self.new)
        return Before(shown, (was["flags"] & LIVE) != 0, was["odds"], was["american"], was["start"], links)
