"""Closing boards of a replay: the last snapshot of each event before its start."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.board.facts import Facts
from oddsengine.board.names import Names
from oddsengine.columns import SECOND, Longs
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.identity.layout import BOOK_BITS, LIVE, ON, SUSPENDED
from oddsengine.live.engine import Engine

CLOSE_S = 1800  # maximum time from the last snapshot to the start, in seconds


class _StartingRows(NamedTuple):
    """Rows of events about to start."""

    facts: Facts
    snapshot_at: Longs
    event: Any  # codes

    def where(self, mask: Any) -> "_StartingRows":
        at = np.flatnonzero(mask)
        return _StartingRows(self.facts.take(at), self.snapshot_at[at], self.event[at])


class Closes:
    """Collects the closing boards of events during a replay.

    Only the newest snapshot of an event about to start is kept; once the event starts, it is the close.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: Names | None = None
        self._held: list[_StartingRows] = []  # of events about to start
        self._closed: list[_StartingRows] = []

    def follow(self, now: int) -> None:
        """Process a step."""
        with self._engine.still() as board:
            rows, names = board.rows, board.names
            left = rows.start[: rows.top] - now
            soon = (left > 0) & (left <= CLOSE_S * SECOND)
            if not (self._held or soon.any()):
                return
            if names is not self._names:
                self._names = names
                codes = names.events.codes  # -1 if the event is gone
                self._held = [
                    _StartingRows(facts, at, np.array([codes.get(text[0] or "", -1) for text in facts.texts], np.int32))
                    for facts, at, _ in self._held
                ]
            soon &= (rows.state[: rows.top] == ON) & ((rows.flags[: rows.top] & (LIVE | SUSPENDED)) == 0)
            slots = np.flatnonzero(soon).astype(np.int32)
            event = names.terms.event.values[rows.key[slots] >> BOOK_BITS]
            taken = _StartingRows(board.facts(slots), np.full(slots.size, now), event)
        before, self._held = self._held, [taken] if slots.size else []
        for part in before:
            started = ~np.isin(part.event, event)
            if started.any():
                waits = started & (part.facts.start > now)  # none of these is available now
                self._held += [part.where(waits)] if waits.any() else []
                self._closed += [part.where(started & ~waits)] if (started & ~waits).any() else []

    def take_closed(self, *, everything: bool = False) -> pl.DataFrame | None:
        """Return rows of events closed since the last call, or of all, as an odds table with two columns more.

        `row_id`, and `snapshot_at`, which is the time of the event's last snapshot, microseconds.
        """
        parts, self._closed = self._closed, []
        if everything:
            parts, self._held = parts + self._held, []
        if not parts:
            return None
        whole = Facts.frame_of(part.facts for part in parts).with_columns(
            row_id=pl.Series(hexadecimal(np.concatenate([part.facts.id for part in parts])), dtype=pl.String),
            snapshot_at=pl.Series(np.concatenate([part.snapshot_at for part in parts])),
        )
        return newest(whole)


def newest(closes: pl.DataFrame) -> pl.DataFrame:
    """The last closing board of each event."""
    return closes.filter(pl.col("snapshot_at") == pl.col("snapshot_at").max().over("event_id"))
