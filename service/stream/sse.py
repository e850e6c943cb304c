"""Events as they are sent: one struct a payload, and the framing of Server-Sent Events.

A frame without its id is made once for all who get it. Ids are put before it in the order of sending, so that they rise
on every connection.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from oddsengine_service.wire.envelopes import AnswerMeta

CHUNK = 1000  # rows of one event
RETRY = b"retry: 3000\n"
_encode = msgspec.json.Encoder().encode
# Line ends to some readers, though not to JSON: escaped, no reader cuts a payload there.
_ENDS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))


class Filters(msgspec.Struct, frozen=True):
    """What was asked for; null is all."""

    sportsbook: tuple[str, ...] | None
    sport: tuple[str, ...] | None
    league: tuple[str, ...] | None
    event: tuple[str, ...] | None
    market: tuple[str, ...] | None
    live: bool | UnsetType = UNSET  # where it was asked for


class Trial(msgspec.Struct, frozen=True):
    """A trial of streaming."""

    active: bool
    expires_at: str
    remaining_hours: float
    max_streams: int


class Connected(msgspec.Struct, frozen=True):
    """The first event."""

    stream_id: str
    channel: str
    filters: Filters
    reconnected: bool
    resumed: bool | UnsetType = UNSET  # with `resume=true`: what was missed follows, not a snapshot
    seen: bool | UnsetType = UNSET  # `odds:seen` will say when prices were seen again
    trial: Trial | UnsetType = UNSET
    meta: AnswerMeta | UnsetType = UNSET  # as in answers of lists: unknown ids and ignored parameters


class Snapshot(msgspec.Struct, frozen=True):
    """Whole prices: the board at the beginning, and later those that are new to the subscriber."""

    odds: Sequence[Any]
    count: int
    total: int
    offset: int
    has_more: bool


class SnapshotComplete(msgspec.Struct, frozen=True):
    """Everything of the beginning was sent."""

    status: str
    books: list[str]
    total_odds: int


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


class OddsUpdate(msgspec.Struct, frozen=True):
    """Prices of one book that moved; `partial` says that more of this batch follow."""

    odds: Sequence[Any]
    count: int
    book: str
    partial: bool


class Renewed(msgspec.Struct, frozen=True):
    """Prices that were seen again, for those who asked."""

    odds: Sequence[Any]
    count: int


class OddsRemoved(msgspec.Struct, frozen=True):
    """Prices of one book that are gone or suspended."""

    ids: list[str]
    count: int
    book: str


class Expired(msgspec.Struct, frozen=True):
    """Opportunities that are no more, for this subscriber."""

    expired: list[str]
    timestamp: str | UnsetType = UNSET


class Heartbeat(msgspec.Struct, frozen=True):
    """The connection lives."""

    timestamp: str


class Failure(msgspec.Struct, frozen=True):
    """Something does not work for now; the stream goes on."""

    code: str
    message: str


class GamesRemoved(msgspec.Struct, frozen=True):
    """Games whose state is no longer kept."""

    ids: list[str]


def frame(name: str, payload: Any) -> bytes:
    """An event without an id.

    Examples
    --------
    >>> frame("heartbeat", Heartbeat("2026-02-08T18:00:00Z")).splitlines()
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
