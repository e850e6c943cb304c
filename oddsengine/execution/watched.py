"""Prices that orders wait for: how each has changed since it was first watched."""

from collections.abc import Collection

from oddsengine.execution.ladders import Ladder

_LOOKS = 64  # of a price that are kept
Look = tuple[int, Ladder | None]  # from when on, microseconds; None: it is gone


class WatchedPrices:
    """The ladders of some prices by id, and those that changed in the current step."""

    def __init__(self) -> None:
        self._looks: dict[int, list[Look]] = {}
        self._changed: set[int] = set()

    @property
    def rows(self) -> Collection[int]:
        """Ids of the prices."""
        return self._looks.keys()

    def watch(self, ladder: Ladder, now: int) -> None:
        """Watch a price from now on, unless it is."""
        self._looks.setdefault(ladder.row, [(now, ladder)])

    def change(self, row: int, ladder: Ladder | None, now: int) -> None:
        """A watched price has changed."""
        looks = self._looks[row]
        looks.append((now, ladder))
        del looks[:-_LOOKS]
        self._changed.add(row)

    def passed(self) -> None:
        """The step is over."""
        self._changed.clear()

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

    def after(self, row: int, time: int, now: int) -> int | None:
        """The place of the first look at a price after a time, at most now; None if it has not changed since."""
        return next((at for at, (since, _) in enumerate(self._looks.get(row, ())) if time < since <= now), None)

    def around(self, row: int, time: int, now: int, first: Ladder) -> list[tuple[Ladder | None, bool]]:
        """How a price was shown at a time, and after it had changed; nothing if it has not.

        `first` is how it was shown if that is longer ago than what is kept. With each, whether it was shown until this
        step.
        """
        after = self.after(row, time, now)
        if after is None:
            return []
        looks = self._looks[row]
        before = looks[after - 1][1] if after else first
        return [(before, after == len(looks) - 1 and row in self._changed), (looks[after][1], False)]
