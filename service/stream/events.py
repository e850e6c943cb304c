"""Stream events: the encoded bytes, and the rows they describe.

Most subscribers are sent the bytes. The rows are for slow ones, for whom `backlog` merges several events into one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oddsengine_service.stream.sse import (
    CHUNK,
    RETRY,
    Expired,
    Failure,
    GamesRemoved,
    Heartbeat,
    OddsRemoved,
    OddsUpdate,
    Renewed,
    Snapshot,
    SnapshotComplete,
    clock,
    frame,
    numbered,
    raw,
)

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


# ---- prices ----


def removed(book: str, ids: Sequence[str], total: int) -> list[StreamEvent]:
    """Prices of a book that are gone or suspended."""
    return [
        StreamEvent(
            frame("odds:removed", OddsRemoved(list(some), len(some), book)), ODDS, some, None, book=book, total=total
        )
        for some in (ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK))
    ]


def added(
    ids: Sequence[str], rows: Sequence[Any], fresh: Sequence[bool], total: int, books: Sequence[str] = ()
) -> list[StreamEvent]:  # fmt: skip
    """Whole prices; they are the last ones of `total`. Books of each are for wires that send them by book."""
    del books
    out, offset = [], max(total - len(ids), 0)
    for at in range(0, len(ids), CHUNK):
        some = rows[at : at + CHUNK]
        body = frame("snapshot", Snapshot(some, len(some), total, offset + at, has_more=False))
        out.append(StreamEvent(body, ODDS, ids[at : at + CHUNK], some, fresh[at : at + CHUNK], total=total))
    return out


def moved(book: str, ids: Sequence[str], deltas: Sequence[Any], total: int) -> list[StreamEvent]:
    """What moved of a book's prices."""
    out = []
    for at in range(0, len(ids), CHUNK):
        some = deltas[at : at + CHUNK]
        body = frame("odds:update", OddsUpdate(some, len(some), book, at + CHUNK < len(ids)))
        out.append(StreamEvent(body, ODDS, ids[at : at + CHUNK], some, partly=True, book=book, total=total))
    return out


def locked(book: str, ids: Sequence[str], deltas: Sequence[Any], total: int) -> list[StreamEvent]:
    """Prices of a book that are suspended, for those who are told of suspended prices."""
    return [
        each._replace(body=each.body.replace(b"odds:update", b"odds:locked", 1), rows=None, partly=False)
        for each in moved(book, ids, deltas, total)
    ]


def renewed(ids: Sequence[str], rows: Sequence[Any]) -> list[StreamEvent]:
    """When prices were last seen; a slow reader does without."""
    return [
        StreamEvent(frame("odds:seen", Renewed(some, len(some))), SEEN, ids[at : at + CHUNK], some)
        for at in range(0, len(ids), CHUNK)
        for some in (rows[at : at + CHUNK],)
    ]


# ---- opportunities and games ----


def detected(kind: str, ids: Sequence[str], rows: Sequence[Any], fresh: Sequence[bool]) -> list[StreamEvent]:
    """Opportunities that are new, or not what they were."""
    return [
        StreamEvent(
            frame(f"{kind}:detected", rows[at : at + CHUNK]), kind, ids[at : at + CHUNK], rows[at : at + CHUNK],
            fresh[at : at + CHUNK],
        )
        for at in range(0, len(ids), CHUNK)
    ]  # fmt: skip


def expired(kind: str, ids: Sequence[str]) -> list[StreamEvent]:
    """Opportunities that are no more."""
    if not ids:
        return []
    gone = Expired(list(ids), clock()) if kind in ("ev", "arb") else Expired(list(ids))
    return [StreamEvent(frame(f"{kind}:expired", gone), kind, ids, None)]


def played(states: Mapping[str, Any], fresh: Sequence[bool]) -> list[StreamEvent]:
    """How games stand that began or moved."""
    if not states:
        return []
    return [StreamEvent(frame("gamestate:update", states), GAMES, list(states), list(states.values()), fresh)]


def forgotten(ids: Sequence[str]) -> list[StreamEvent]:
    """Games whose state is no longer kept."""
    return [StreamEvent(frame("gamestate:removed", GamesRemoved(list(ids))), GAMES, ids, None)] if ids else []


# ---- the wire ----


class Wire:
    """How a connection is sent what happens; this one is Server-Sent Events, others override what differs.

    Groups are of one wire, so whatever is sent to a group is encoded once.
    """

    comments = True  # a heartbeat says in a comment which update of the board the client holds
    keeps_suspended = False  # suspended prices stay with the client, marked as inactive

    removed = staticmethod(removed)
    added = staticmethod(added)
    moved = staticmethod(moved)
    locked = staticmethod(locked)
    detected = staticmethod(detected)
    expired = staticmethod(expired)

    def opened(self, kind: str, ids: Sequence[str], rows: Sequence[Any]) -> list[bytes]:
        """Frames of the opportunities of a kind that are open at the beginning."""
        return bodies(self.detected(kind, ids, rows, [True] * len(ids)))

    def snapshot(self, rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """Frames of all prices at the beginning."""
        total, out = len(rows), []
        for first in range(0, max(total, 1), CHUNK):
            chunk = raw(rows[first : first + CHUNK])
            out.append(frame("snapshot", Snapshot(chunk, len(chunk), total, first, first + CHUNK < total)))
        return out

    def empty(self) -> list[bytes]:
        """Frames of no prices, for those who want only opportunities."""
        return [frame("snapshot", Snapshot([], 0, 0, 0, has_more=False))]

    def complete(self, books: list[str], total: int, *, resumed: bool) -> bytes:
        """The frame that ends the beginning."""
        del resumed  # `connected` says so
        return frame("snapshot:complete", SnapshotComplete("ready", books, total))

    def beginning(self, prices: list[bytes], others: list[bytes]) -> list[bytes]:
        """Frames of the beginning in their order, without the last one."""
        return [*prices, *others]

    def heartbeat(self, moment: str) -> bytes:
        """A sign of life."""
        return frame("heartbeat", Heartbeat(moment))

    def error(self, code: str, message: str) -> bytes:
        """A failure; the connection stays open."""
        return frame("error", Failure(code, message))

    def opening(self, connected: list[bytes], sequence: Iterator[int]) -> list[bytes]:
        """What is sent at once."""
        return [RETRY, *numbered(connected, sequence)]

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

    def opening(self, connected: list[bytes], sequence: Iterator[int]) -> list[bytes]:
        """What is sent at once."""
        return [RETRY, *self.numbered(connected, sequence)]

    def numbered(self, frames: Sequence[bytes], _: Iterator[int], number: int = 0) -> list[bytes]:
        """Frames with the id of their update."""
        return numbered(frames, itertools.repeat(number))


SSE = Wire()
RESUMABLE = Resumable()
