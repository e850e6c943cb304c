"""Stream events: how changes are encoded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oddsengine_service.stream.sse import CHUNK, RETRY, clock, frame, raw
from oddsengine_service.stream.stream_messages import (
    Expired,
    GamesRemoved,
    Heartbeat,
    OddsChanged,
    OddsRemoved,
    OddsRenewed,
    OddsSnapshot,
    SnapshotComplete,
    StreamError,
)


class Wire:
    """A message format; this class is Server-Sent Events, and others override what differs.

    All members of a group use the same format, so each event is encoded once per group, without its id.
    """

    comments = True  # heartbeats have a comment with the update that the client has reached
    resumes = False  # clients may resume opportunities
    keeps_suspended = False  # suspended prices stay with the client, marked as inactive

    # ---- payloads ----

    def price_event(self, name: str, book: str, rows: Sequence[Any], *, more: bool) -> bytes:
        """An event with prices of a book; `more` of the same batch follow."""
        return frame(name, OddsChanged(rows, len(rows), book, more))

    def removal(self, book: str, ids: Sequence[str]) -> bytes:
        """An event with removed or suspended prices of a book."""
        return frame("odds:removed", OddsRemoved(ids, len(ids), book))

    def detection(self, kind: str, rows: Sequence[Any]) -> bytes:
        """An event with opportunities."""
        return frame(f"{kind}:detected", rows)

    def expiration(self, kind: str, ids: Sequence[str]) -> bytes:
        """An event with expired opportunities."""
        return frame(f"{kind}:expired", Expired(ids, clock()) if kind in ("ev", "arb") else Expired(ids))

    def parts(self, rows: Sequence[Any]) -> list[slice]:
        """Split prices, or their ids, into parts that fit into one event."""
        return [slice(at, at + CHUNK) for at in range(0, len(rows), CHUNK)]

    def opportunity_parts(self, rows: Sequence[Any]) -> list[slice]:
        """Split opportunities into parts that fit into one event."""
        return self.parts(rows)

    def id_parts(self, ids: Sequence[str]) -> list[slice]:
        """Split ids of opportunities into parts that fit into one event."""
        return [slice(0, len(ids))] if ids else []

    # ---- prices ----

    def removed(self, book: str, ids: Sequence[str]) -> list[bytes]:
        """Removed or suspended prices of a book."""
        return [self.removal(book, ids[some]) for some in self.parts(ids)]

    def added(self, rows: Sequence[Any], total: int, books: Sequence[str]) -> list[bytes]:
        """Complete prices, the last of `total`. `books`, by row, is for formats that send prices by book."""
        del books
        offset = max(total - len(rows), 0)
        return [_snapshot(rows[some], total, offset + some.start, has_more=False) for some in self.parts(rows)]

    def moved(self, book: str, deltas: Sequence[Any], name: str = "odds:update") -> list[bytes]:
        """The changes of a book's prices."""
        return [self.price_event(name, book, deltas[some], more=some.stop < len(deltas)) for some in self.parts(deltas)]

    def locked(self, book: str, deltas: Sequence[Any]) -> list[bytes]:
        """Suspended prices of a book, for subscribers to suspended prices."""
        return self.moved(book, deltas, "odds:locked")

    def snapshot(self, rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """Frames of the first snapshot."""
        total, out = len(rows), []
        for first in range(0, max(total, 1), CHUNK):
            chunk = raw(rows[first : first + CHUNK])
            out.append(_snapshot(chunk, total, first, has_more=first + CHUNK < total))
        return out

    def empty(self) -> list[bytes]:
        """Frames for subscribers to opportunities only, without prices."""
        return [_snapshot([], 0, 0, has_more=False)]

    # ---- opportunities ----

    def detected(self, kind: str, rows: Sequence[Any]) -> list[bytes]:
        """Opportunities that are new or have changed."""
        return [self.detection(kind, rows[some]) for some in self.opportunity_parts(rows)]

    def expired(self, kind: str, ids: Sequence[str]) -> list[bytes]:
        """Expired opportunities."""
        return [self.expiration(kind, ids[some]) for some in self.id_parts(ids)]

    def opened(self, kind: str, rows: Sequence[Any]) -> list[bytes]:
        """Frames of the open opportunities of a kind in the first snapshot."""
        return self.detected(kind, rows)

    # ---- the connection ----

    def complete(self, books: list[str], total: int, *, resumed: bool) -> bytes:
        """The frame that ends the snapshot."""
        del resumed  # already in `connected`
        return frame("snapshot:complete", SnapshotComplete("ready", books, total))

    def beginning(self, prices: list[bytes], others: list[bytes]) -> list[bytes]:
        """Frames of the snapshot in their order, without the last one."""
        return [*prices, *others]

    def heartbeat(self, moment: str) -> bytes:
        """A heartbeat."""
        return frame("heartbeat", Heartbeat(moment))

    def error(self, code: str, message: str) -> bytes:
        """An error; the connection stays open."""
        return frame("error", StreamError(code, message))

    def opening(self, connected: list[bytes], sequence: Iterator[int]) -> list[bytes]:
        """The first frame."""
        return [RETRY, *self.numbered(connected, sequence)]

    def numbered(self, frames: Sequence[bytes], sequence: Iterator[int], number: int = 0) -> list[bytes]:
        """Add ids that all connections share to frames, if the format has them."""
        del number
        return [piece for body, at in zip(frames, sequence, strict=False) for piece in (b"id: evt_%d\n" % at, body)]


@dataclass(frozen=True)
class Resumable(Wire):
    """Server-Sent Events for clients that resume: an event's id has its update, and a hash of the subscription.

    Events of one update share an id: a replay begins with that update. Within a snapshot it is 0.
    """

    subscription: str
    resumes = True

    def numbered(self, frames: Sequence[bytes], _: Iterator[int], number: int = 0) -> list[bytes]:
        """Frames with the id of their update."""
        line = f"id: evt_{number}.{self.subscription}\n" if number else "id: evt_0\n"
        return [piece for body in frames for piece in (line.encode(), body)]

    def number(self, ident: str) -> int | None:
        """The update in the id of an event of an equal subscription."""
        digits, _, subscription = ident.strip().removeprefix("evt_").partition(".")
        own = subscription == self.subscription and digits.isdecimal() and len(digits) < 17
        return int(digits) if own else None


SSE = Wire()


def _snapshot(rows: Sequence[Any], total: int, offset: int, *, has_more: bool) -> bytes:
    return frame("snapshot", OddsSnapshot(rows, len(rows), total, offset, has_more))


# ---- Server-Sent Events only ----


def renewed(rows: Sequence[Any]) -> list[bytes]:
    """When prices were last seen."""
    return [frame("odds:seen", OddsRenewed(rows[some], len(rows[some]))) for some in SSE.parts(rows)]


def played(states: Mapping[str, Any]) -> list[bytes]:
    """States of games that began or changed."""
    return [frame("gamestate:update", states)] if states else []


def forgotten(ids: Sequence[str]) -> list[bytes]:
    """Games whose state was dropped."""
    return [frame("gamestate:removed", GamesRemoved(ids))] if ids else []
