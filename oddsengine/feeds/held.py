"""What readers remember of a source, so that silence can be read.

`Listed` is for sources that are asked again and again: a price that was listed and no longer is, in the markets that
were asked for, is gone. `Held` is for streams, which send what changes: all that is held is as good as the stream is
alive. A step of 100,000 renewed rows costs under half a second of a core, so rows are renewed seldom: those of games in
play, whose prices count for ten seconds, every `LIVE_S`, all others every `ALL_S`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

LIVE_S = 3.0
ALL_S = 25.0
Row = dict[str, Any]
Asked = frozenset[str] | None


Pair = tuple[str, str]  # book, market, as the source names them


class Listed:
    """The ids that a source listed last, by its event, each with its book and market."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, Pair]] = {}

    def __contains__(self, event: str) -> bool:
        return event in self._ids

    def gone(self, event: str, now: Mapping[str, Pair], markets: Asked, books: Asked) -> list[str]:
        """Ids of an event that are listed no more, of the markets and books that were asked for."""
        before = self._ids.get(event, _NONE)
        return sorted(given for given in before.keys() - now.keys() if _covered(before[given], markets, books))

    def replace(self, event: str, now: Mapping[str, Pair], markets: Asked, books: Asked) -> None:
        """Remember what is listed now, and of what was not asked for, what was."""
        before = self._ids.get(event, _NONE)
        missing = [given for given in before.keys() - now.keys() if not _covered(before[given], markets, books)]
        listed = dict(now) | {given: before[given] for given in missing}
        if listed:
            self._ids[event] = listed
        else:
            self._ids.pop(event, None)

    def add(self, event: str, more: Mapping[str, Pair]) -> None:
        """Remember some more."""
        if more:
            self._ids.setdefault(event, {}).update(more)


def _covered(pair: Pair, markets: Asked, books: Asked) -> bool:
    """Whether an answer speaks of a book's market; None: it does of all of them."""
    return (books is None or pair[0] in books) and (markets is None or pair[1] in markets)


_NONE: dict[str, Pair] = {}


class Held:
    """The rows of a stream by the source's ids, without the time they were seen: they are seen as long as it lives."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self._live: dict[str, None] = {}
        self._live_at: datetime | None = None
        self._all_at: datetime | None = None

    def put(self, rows: Iterable[Row]) -> None:
        """Keep rows, in place of those with their ids."""
        for row in rows:
            self.rows[row["id"]] = row
            if row.get("is_live"):
                self._live[row["id"]] = None
            else:
                self._live.pop(row["id"], None)

    def drop(self, ids: Iterable[str]) -> None:
        """Forget rows."""
        for given in ids:
            self.rows.pop(given, None)
            self._live.pop(given, None)

    def clear(self) -> None:
        """Forget everything."""
        self.rows, self._live = {}, {}

    def due(self, now: datetime) -> list[Row]:
        """Rows whose time is to be renewed, prices that can be bet only; none while it is too early."""
        if _since(self._all_at, now) >= ALL_S:
            self._all_at = self._live_at = now
            return [row for row in self.rows.values() if row.get("is_active") is not False]
        if _since(self._live_at, now) >= LIVE_S:
            self._live_at = now
            rows = self.rows
            return [row for given in self._live if (row := rows[given]).get("is_active") is not False]
        return []


def _since(then: datetime | None, now: datetime) -> float:
    return float("inf") if then is None else (now - then).total_seconds()
