"""Prices that orders wait for: how each has changed since it was first watched."""

from bisect import bisect_right
from collections.abc import Collection
from operator import itemgetter

from oddsengine.execution.ladders import Ladder

Look = tuple[int, Ladder | None]  # from when on, microseconds; None: it is gone


class WatchedPrices:
    """The ladders of some prices by id, and those that changed in the current step."""

    def __init__(self) -> None:
        self._looks: dict[int, list[Look]] = {}
        self._changed: set[int] = set()
        self._since = 0

    @property
    def rows(self) -> Collection[int]:
        """Ids of the prices."""
        return self._looks.keys()

    def begin(self, since: int) -> None:
        """Begin a step. Looks that were over by `since`, microseconds, are not needed any more."""
        self._since = since
        self._changed.clear()

    def watch(self, ladder: Ladder, now: int) -> None:
        """Watch a price from now on, unless it is."""
        if ladder.row not in self._looks:
            self._looks[ladder.row] = [(now, ladder)]

    def change(self, row: int, ladder: Ladder | None, now: int) -> None:
        """A watched price has changed."""
        looks = self._looks[row]
        looks.append((now, ladder))
        while looks[1][0] <= self._since:
            del looks[0]
        self._changed.add(row)

    def keep(self, rows: Collection[int]) -> None:
        """Watch no others any more."""
        self._looks = {row: looks for row, looks in self._looks.items() if row in rows}

    def has_changed(self, *rows: int) -> bool:
        """Whether one of some prices changed in this step."""
        return not self._changed.isdisjoint(rows)

    def shown(self, row: int, *, before: bool = False) -> Ladder | None:
        """A price as it is shown, or was `before` this step; None if it is gone, or not watched."""
        looks = self._looks.get(row)
        return looks[-2 if before and row in self._changed else -1][1] if looks else None

    def changed_at(self, row: int) -> int:
        """When a price has changed last, or was first watched; 0 if it is not watched."""
        return self._looks[row][-1][0] if row in self._looks else 0

    def around(self, row: int, time: int, first: Ladder) -> list[tuple[Ladder | None, bool]]:
        """How a price was shown at a time, and after it had changed; nothing if it has not.

        `first` is how it was shown before the looks that are kept. With each, whether it was shown until this step.
        """
        looks = self._looks.get(row, [])
        after = bisect_right(looks, time, key=itemgetter(0))
        if after == len(looks):
            return []
        before = looks[after - 1][1] if after else first
        return [(before, after == len(looks) - 1 and row in self._changed), (looks[after][1], False)]
