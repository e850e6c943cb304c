"""Stream events: the encoded bytes, and the rows they describe.

Most subscribers are sent the bytes. The rows are for slow ones, for whom `backlog` merges several events into one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oddsengine_service.stream.sse import CHUNK, RETRY, clock, frame, numbered, raw

ODDS, GAMES, SEEN = "odds", "gamestate", "seen"


class StreamEvent(NamedTuple):
    """An event without its id. `rows` is None where the ids were removed; `partly`: rows hold only what changed."""

    body: bytes
    family: str  # prices, games, or a kind of opportunities by its name in events
    ids: Sequence[str]
    rows: Sequence[Any] | None
    fresh: Sequence[bool] = ()  # of each whole row: it was not there before
    partly: bool = False
    book: str = ""  # of prices that moved or are gone
    total: int = 0  # prices that match afterwards


def bodies(events: Sequence[StreamEvent]) -> list[bytes]:
    """The bytes."""
    return [each.body for each in events]


class Wire:
    """How a connection is sent what happens; this one is Server-Sent Events, others override what differs.

    Groups are of one wire, so whatever is sent to a group is encoded once.
    """

    comments = True  # a heartbeat says in a comment which update of the board the client holds
    keeps_suspended = False  # suspended prices stay with the client, marked as inactive

    # ---- payloads ----

    def event(self, name: str, **fields: Any) -> bytes:
        """One event."""
        return frame(name, fields)

    def price_event(self, name: str, book: str, rows: Sequence[Any], *, more: bool) -> bytes:
        """An event with prices of a book; `more` of the same batch follow."""
        return self.event(name, odds=rows, count=len(rows), book=book, partial=more)

    def removal(self, book: str, ids: Sequence[str]) -> bytes:
        """An event with prices of a book that are gone or suspended."""
        return self.event("odds:removed", ids=ids, count=len(ids), book=book)

    def detection(self, kind: str, rows: Sequence[Any]) -> bytes:
        """An event with opportunities."""
        return frame(f"{kind}:detected", rows)

    def expiration(self, kind: str, ids: Sequence[str]) -> bytes:
        """An event with opportunities that are no more."""
        return self.event(f"{kind}:expired", expired=ids, **({"timestamp": clock()} if kind in ("ev", "arb") else {}))

    def parts(self, rows: Sequence[Any]) -> list[slice]:
        """Parts of prices, or of their ids, that fit into one event."""
        return [slice(at, at + CHUNK) for at in range(0, len(rows), CHUNK)]

    def opportunity_parts(self, rows: Sequence[Any]) -> list[slice]:
        """Parts of opportunities that fit into one event."""
        return self.parts(rows)

    def id_parts(self, ids: Sequence[str]) -> list[slice]:
        """Parts of ids of opportunities that fit into one event."""
        return [slice(0, len(ids))] if ids else []

    # ---- prices ----

    def removed(self, book: str, ids: Sequence[str], total: int) -> list[StreamEvent]:
        """Prices of a book that are gone or suspended."""
        return [
            StreamEvent(self.removal(book, ids[some]), ODDS, ids[some], None, book=book, total=total)
            for some in self.parts(ids)
        ]

    def added(
        self, ids: Sequence[str], rows: Sequence[Any], fresh: Sequence[bool], total: int, books: Sequence[str] = ()
    ) -> list[StreamEvent]:  # fmt: skip
        """Whole prices; they are the last ones of `total`. Books of each are for wires that send them by book."""
        del books
        out, offset = [], max(total - len(ids), 0)
        for some in self.parts(rows):
            body = _snapshot(rows[some], total, offset + some.start, has_more=False)
            out.append(StreamEvent(body, ODDS, ids[some], rows[some], fresh[some], total=total))
        return out

    def moved(self, book: str, ids: Sequence[str], deltas: Sequence[Any], total: int) -> list[StreamEvent]:
        """What moved of a book's prices."""
        out = []
        for some in self.parts(deltas):
            body = self.price_event("odds:update", book, deltas[some], more=some.stop < len(ids))
            out.append(StreamEvent(body, ODDS, ids[some], deltas[some], partly=True, book=book, total=total))
        return out

    def locked(self, book: str, ids: Sequence[str], deltas: Sequence[Any], total: int) -> list[StreamEvent]:
        """Prices of a book that are suspended, for subscribers to suspended prices."""
        return [
            each._replace(body=each.body.replace(b"odds:update", b"odds:locked", 1), rows=None, partly=False)
            for each in self.moved(book, ids, deltas, total)
        ]

    def snapshot(self, rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """Frames of all prices at the beginning."""
        total, out = len(rows), []
        for first in range(0, max(total, 1), CHUNK):
            chunk = raw(rows[first : first + CHUNK])
            out.append(_snapshot(chunk, total, first, has_more=first + CHUNK < total))
        return out

    def empty(self) -> list[bytes]:
        """Frames of no prices, for subscribers to opportunities alone."""
        return [_snapshot([], 0, 0, has_more=False)]

    # ---- opportunities ----

    def detected(self, kind: str, ids: Sequence[str], rows: Sequence[Any], fresh: Sequence[bool]) -> list[StreamEvent]:
        """Opportunities that are new, or not what they were."""
        return [
            StreamEvent(self.detection(kind, rows[some]), kind, ids[some], rows[some], fresh[some])
            for some in self.opportunity_parts(rows)
        ]

    def expired(self, kind: str, ids: Sequence[str]) -> list[StreamEvent]:
        """Opportunities that are no more."""
        return [StreamEvent(self.expiration(kind, ids[some]), kind, ids[some], None) for some in self.id_parts(ids)]

    def opened(self, kind: str, ids: Sequence[str], rows: Sequence[Any]) -> list[bytes]:
        """Frames of the opportunities of a kind that are open at the beginning."""
        return bodies(self.detected(kind, ids, rows, [True] * len(ids)))

    # ---- the connection ----

    def complete(self, books: list[str], total: int, *, resumed: bool) -> bytes:
        """The frame that ends the beginning."""
        del resumed  # `connected` says so
        return self.event("snapshot:complete", status="ready", books=books, total_odds=total)

    def beginning(self, prices: list[bytes], others: list[bytes]) -> list[bytes]:
        """Frames of the beginning in their order, without the last one."""
        return [*prices, *others]

    def heartbeat(self, moment: str) -> bytes:
        """A sign of life."""
        return self.event("heartbeat", timestamp=moment)

    def error(self, code: str, message: str) -> bytes:
        """A failure; the connection stays open."""
        return self.event("error", code=code, message=message)

    def opening(self, connected: list[bytes], sequence: Iterator[int]) -> list[bytes]:
        """What is sent at once."""
        return [RETRY, *self.numbered(connected, sequence)]

    def numbered(self, frames: Sequence[bytes], sequence: Iterator[int], number: int = 0) -> list[bytes]:
        """Frames with the ids that all connections share, where there are such.

        `number` is the `global_seq` of the update that they leave a client with, 0 within a snapshot.
        """
        del number
        return numbered(frames, sequence)


class Resumable(Wire):
    """Server-Sent Events for clients that resume: the id of an event is where a client that has it goes on.

    Events of one update share an id: a replay begins with that update. Within a snapshot it is 0: nobody goes on there.
    """

    def numbered(self, frames: Sequence[bytes], _: Iterator[int], number: int = 0) -> list[bytes]:
        """Frames with the id of their update."""
        return numbered(frames, itertools.repeat(number))


SSE = Wire()
RESUMABLE = Resumable()


def _snapshot(rows: Sequence[Any], total: int, offset: int, *, has_more: bool) -> bytes:
    return frame("snapshot", {"odds": rows, "count": len(rows), "total": total, "offset": offset, "has_more": has_more})


# ---- what only Server-Sent Events have ----


def renewed(ids: Sequence[str], rows: Sequence[Any]) -> list[StreamEvent]:
    """When prices were last seen; a slow reader does without."""
    return [
        StreamEvent(SSE.event("odds:seen", odds=rows[some], count=len(rows[some])), SEEN, ids[some], rows[some])
        for some in SSE.parts(rows)
    ]


def played(states: Mapping[str, Any], fresh: Sequence[bool]) -> list[StreamEvent]:
    """How games stand that began or moved."""
    if not states:
        return []
    return [StreamEvent(frame("gamestate:update", states), GAMES, list(states), list(states.values()), fresh)]


def forgotten(ids: Sequence[str]) -> list[StreamEvent]:
    """Games whose state is no longer stored."""
    return [StreamEvent(SSE.event("gamestate:removed", ids=list(ids)), GAMES, ids, None)] if ids else []
