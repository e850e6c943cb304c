"""Prices of an audit taken later: whether a price still stands after a delay, and whether it is still shown.

A price is looked at again in the first snapshot of its event that is at least the delay later. If there is none within
three times the delay, or 40 minutes, the answer is unknown. In a tape every step is a look at all events. A price that
is in play by then is gone.
"""

import re
from collections import deque
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.bounds import excerpt, is_number
from oddsengine.columns import SECOND
from oddsengine.identity.layout import BOOK_BITS, LIVE, ON, SUSPENDED
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update

_UNITS = {"s": 1, "m": 60, "h": 3600}
# A snapshot may be early by this share of the delay, and at most by so many seconds: those of a source are not regular.
_EARLY, _EARLY_S = 0.1, 20
_WITHIN, _AT_LEAST_S = 3, 2400  # times the delay, and at least
_SAME = 1e-6  # odds


class Delay(NamedTuple):
    """A delay, as given and in seconds."""

    name: str
    seconds: int

    @classmethod
    def read(cls, given: Any) -> "Delay":
        """Parse ``"10m"``, ``"90s"``, ``"2h"``, a number of seconds or a `timedelta`.

        Examples
        --------
        >>> Delay.read("10m"), Delay.read(90).name
        (Delay(name='10m', seconds=600), '90s')
        """
        seconds: float | None = None
        if isinstance(given, timedelta):
            seconds = given.total_seconds()
        elif is_number(given):
            seconds = float(given)
        elif isinstance(given, str) and (read := re.fullmatch(r"(\d+(?:\.\d+)?) ?([smh])?", given.strip())):
            seconds = float(read[1]) * _UNITS[read[2] or "s"]
        if seconds is None or not 1.0 <= seconds <= 7 * 86400.0:
            raise ValueError(
                f"a delay must be a time from 1 second to 7 days, such as 90s, 10m or 2h, got {excerpt(given)}"
            )
        whole = round(seconds)
        unit = next(name for name in ("h", "m", "s") if whole % _UNITS[name] == 0)
        return cls(f"{whole // _UNITS[unit]}{unit}", whole)

    @property
    def columns(self) -> tuple[str, str]:
        """The columns of the prices shown: whether each still stood, and was still shown."""
        return f"there_{self.name}", f"shown_{self.name}"


def read_delays(given: Any) -> tuple[Delay, ...]:
    """Parse a delay or several; each counts once."""
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    return tuple(dict.fromkeys(map(Delay.read, several)))


class Taken(NamedTuple):
    """A price to look at again."""

    at: int  # row of the result
    shown: int  # microseconds
    event: str
    row: int  # id of the price
    odds: float
    ident: int  # id of the opportunity
    threshold: float


class Later:
    """Looks at prices again, during a replay."""

    def __init__(self, engine: Engine, delays: tuple[Delay, ...], *, every_step: bool) -> None:
        self._engine, self._delays, self._every_step = engine, delays, every_step
        self._next: list[deque[Taken]] = [deque() for _ in delays]  # in order of time
        self._due: list[dict[str, list[Taken]]] = [{} for _ in delays]  # by event
        self._found: list[dict[int, tuple[bool, bool]]] = [{} for _ in delays]

    def add(self, taken: Taken) -> None:
        for waiting in self._next:
            waiting.append(taken)

    def follow(self, now: int, update: Update, shown: dict[int, float]) -> None:
        """Process a step; `shown` has the EV of all that is shown after it."""
        for delay, waiting, due, found in zip(self._delays, self._next, self._due, self._found, strict=True):
            least = delay.seconds - min(_EARLY * delay.seconds, _EARLY_S)
            while waiting and waiting[0].shown + round(least * SECOND) <= now:
                due.setdefault(waiting[0].event, []).append(waiting.popleft())
            if not due:
                continue
            limit = max(_WITHIN * delay.seconds, _AT_LEAST_S) * SECOND
            for event in self._looked_at(update, due):
                of = due.pop(event)
                inside = [taken for taken in of if now - taken.shown < limit]
                stands = self._stand(inside)
                for taken, is_there in zip(inside, stands, strict=True):
                    is_shown = is_there and shown.get(taken.ident, -np.inf) >= taken.threshold - 1e-7
                    found[taken.at] = is_there, is_shown

    def _looked_at(self, update: Update, due: dict[str, list[Taken]]) -> list[str]:
        if self._every_step:
            return list(due)
        keys = np.concatenate((update.facts.key[update.rows], update.again_key, update.removed_rows.key))
        with self._engine.still() as board:
            names = board.names
            events = set(names.terms.event.values[np.unique(keys >> BOOK_BITS)].tolist())
            return [event for event in due if names.events.codes.get(event, -1) in events]

    def _stand(self, taken: list[Taken]) -> list[bool]:
        if not taken:
            return []
        with self._engine.still() as board:
            rows = board.rows
            slots = rows.find_ids(np.array([each.row for each in taken], np.uint64))
            at = np.maximum(slots, 0)
            stands = (slots >= 0) & (rows.state[at] == ON) & ((rows.flags[at] & (LIVE | SUSPENDED)) == 0)
            stands &= rows.odds[at] >= np.array([each.odds for each in taken]) - _SAME
        return list(stands.tolist())

    def columns(self, height: int) -> list[pl.Series]:
        """The answers for the rows of a result."""
        out = []
        for delay, found in zip(self._delays, self._found, strict=True):
            for k, name in enumerate(delay.columns):
                answers = [found[at][k] if at in found else None for at in range(height)]
                out.append(pl.Series(name, answers, dtype=pl.Boolean))
        return out
