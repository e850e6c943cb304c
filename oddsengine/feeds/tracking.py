"""State of parsers that detects removed prices and renews unchanged ones.

`ListedIds` is for polled sources: a price that is no longer listed, in the requested markets, is removed. `StreamRows`
is for streams, which send changes only: all rows are current while the stream is alive. Renewing 100,000 rows takes a
step of up to half a second, so rows are renewed rarely: live ones, whose prices count for ten seconds, every `LIVE_S`,
the others every `ALL_S`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

LIVE_S = 3.0
ALL_S = 25.0
Row = dict[str, Any]
Requested = frozenset[str] | None


Pair = tuple[str, str]  # book and market, as named by the source


class ListedIds:
    """The ids last listed by a source, by event, each with its book and market."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, Pair]] = {}

    def __contains__(self, event: str) -> bool:
        return event in self._ids

    def removed(self, event: str, now: Mapping[str, Pair], markets: Requested, books: Requested) -> list[str]:
        """Return the ids of an event that are no longer listed, among the requested markets and books."""
        before = self._ids.get(event, _NONE)
        return sorted(id_ for id_ in before.keys() - now.keys() if _covered(before[id_], markets, books))

    def replace(self, event: str, now: Mapping[str, Pair], markets: Requested, books: Requested) -> None:
        """Store the current ids, keeping previous ones that were not requested."""
        before = self._ids.get(event, _NONE)
        missing = [id_ for id_ in before.keys() - now.keys() if not _covered(before[id_], markets, books)]
        listed = dict(now) | {id_: before[id_] for id_ in missing}
        if listed:
            self._ids[event] = listed
        else:
            self._ids.pop(event, None)

    def add(self, event: str, more: Mapping[str, Pair]) -> None:
        if more:
            self._ids.setdefault(event, {}).update(more)


def _covered(pair: Pair, markets: Requested, books: Requested) -> bool:
    """Whether a response covers a book's market; None covers all."""
    return (books is None or pair[0] in books) and (markets is None or pair[1] in markets)


_NONE: dict[str, Pair] = {}


class StreamRows:
    """The rows of a stream by source id, without the time seen, since they are current while it is alive.

    `renewed` is the number of seconds after which rows before the start are due; None: `ALL_S`.
    """

    def __init__(self, renewed: float | None = None) -> None:
        self._renewed = renewed
        self.rows: dict[str, Row] = {}
        self._live: dict[str, None] = {}
        self._live_at: datetime | None = None
        self._all_at: datetime | None = None

    def put(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows[row["id"]] = row
            if row.get("is_live"):
                self._live[row["id"]] = None
            else:
                self._live.pop(row["id"], None)

    def drop(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            self.rows.pop(id_, None)
            self._live.pop(id_, None)

    def clear(self) -> None:
        self.rows, self._live = {}, {}

    def due(self, now: datetime) -> list[Row]:
        """Return the rows to renew, active prices only; empty if it is too early."""
        if _since(self._all_at, now) >= (ALL_S if self._renewed is None else self._renewed):
            self._all_at = self._live_at = now
            return [row for row in self.rows.values() if row.get("is_active") is not False]
        if _since(self._live_at, now) >= LIVE_S:
            self._live_at = now
            rows = self.rows
            return [row for id_ in self._live if (row := rows[id_]).get("is_active") is not False]
        return []


def _since(then: datetime | None, now: datetime) -> float:
    return float("inf") if then is None else (now - then).total_seconds()
