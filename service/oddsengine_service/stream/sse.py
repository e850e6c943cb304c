"""Server-Sent Events: the framing, and price rows used only in streams.

A frame is encoded once for all recipients without its id. Ids are prepended in the order of sending, so they increase
on every connection.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

CHUNK = 1000  # rows per event
RETRY = b"retry: 3000\n"
_encode = msgspec.json.Encoder().encode
# Line separators to some readers, though not in JSON; escaped so that no reader splits a payload there.
_ENDS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))


class OddsDelta(msgspec.Struct, frozen=True, gc=False):
    """The fields of a price that can change."""

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


def clock(moment: datetime | None = None) -> str:
    """Format a time for events; None is now."""
    return (moment or datetime.now(UTC)).isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


def raw(structs: Iterable[Any]) -> list[msgspec.Raw]:
    """Rows that are already encoded."""
    return [msgspec.Raw(_encode(struct)) for struct in structs]
