"""Server-Sent Events: the framing, and the rows of prices that are made for streams alone.

A frame without its id is made once for all who get it. Ids are put before it in the order of sending, so that they rise
on every connection.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

CHUNK = 1000  # rows of one event
RETRY = b"retry: 3000\n"
_encode = msgspec.json.Encoder().encode
# Line ends to some readers, though not to JSON: escaped, no reader cuts a payload there.
_ENDS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))


class OddsDelta(msgspec.Struct, frozen=True, gc=False):
    """What can move of a price."""

    id: str
    odds_american: float
    odds_decimal: float
    odds_probability: float
    line: float | None
    is_live: bool
    odds_changed_at: str


class OddsSeen(msgspec.Struct, frozen=True, gc=False):
    """When a price was last seen."""

    id: str
    last_seen_at: str


def frame(name: str, payload: Any) -> bytes:
    """An event without an id.

    Examples
    --------
    >>> frame("heartbeat", {"timestamp": "2026-02-08T18:00:00Z"}).splitlines()
    [b'event: heartbeat', b'data: {"timestamp":"2026-02-08T18:00:00Z"}', b'']
    """
    data = _encode(payload)
    if not data.isascii():
        for end, escape in _ENDS:
            data = data.replace(end, escape)
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


def numbered(frames: Iterable[bytes], sequence: Iterable[int]) -> list[bytes]:
    """Frames with their ids before them, piece by piece."""
    return [piece for body, at in zip(frames, sequence, strict=False) for piece in (b"id: evt_%d\n" % at, body)]


def clock(moment: datetime | None = None) -> str:
    """A time as events have it; now if none is given."""
    return (moment or datetime.now(UTC)).isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


def raw(structs: Iterable[Any]) -> list[msgspec.Raw]:
    """Rows that are encoded, each once."""
    return [msgspec.Raw(_encode(struct)) for struct in structs]
