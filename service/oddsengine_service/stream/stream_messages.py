"""Payloads of stream events, which encode them and describe them in the AsyncAPI document.

Rows shared by a group of subscribers are already encoded (`msgspec.Raw`); a field's type is that
of the rows themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from oddsengine.detection.kinds import KINDS
from oddsengine_service.stream.sse import OddsDelta, OddsSeen
from oddsengine_service.wire.encodings import ENCODINGS
from oddsengine_service.wire.envelopes import AnswerMeta, Moment
from oddsengine_service.wire.games_response import Standing
from oddsengine_service.wire.odds_response import Odds


class StreamConnected(msgspec.Struct, kw_only=True):
    """The stream is open: clear everything, unless `resumed` is true; a snapshot follows."""

    stream_id: str
    channel: Annotated[str, Meta(description="Its channels, comma-separated.")]
    filters: Annotated[dict[str, Any], Meta(description="The filters in force; null for all.")]
    reconnected: bool
    resumed: Annotated[
        bool | UnsetType, Meta(description="With `resume`: whether changes since your last event follow.")
    ] = UNSET
    seen: bool | UnsetType = UNSET
    meta: AnswerMeta | UnsetType = UNSET


class OddsSnapshot(msgspec.Struct):
    """Full prices to insert, or to replace by `id`; after `snapshot:complete`, prices that are new or back."""

    odds: Sequence[Odds]
    count: int
    total: int
    offset: int
    has_more: bool


class SnapshotComplete(msgspec.Struct):
    """The snapshot is complete; changes follow."""

    status: str
    books: list[str]
    total_odds: int


class OddsChanged(msgspec.Struct):
    """Changed fields of a book's prices, by `id`."""

    odds: Sequence[OddsDelta]
    count: int
    book: str
    partial: Annotated[bool, Meta(description="More changes of the same update follow.")]


class OddsRemoved(msgspec.Struct):
    """Prices of a book that are gone or suspended: delete them."""

    ids: Sequence[str]
    count: int
    book: str


class OddsRenewed(msgspec.Struct):
    """When prices were last seen, by `id`; with `seen=true` only."""

    odds: Sequence[OddsSeen]
    count: int


class Expired(msgspec.Struct):
    """Opportunities that are gone, or below the thresholds of this stream: delete them."""

    expired: Sequence[str]
    timestamp: Moment | UnsetType = UNSET


class GamesRemoved(msgspec.Struct):
    """Games whose state was dropped: delete them."""

    ids: Sequence[str]


class Heartbeat(msgspec.Struct):
    """The connection is alive; reconnect after twice the interval without one."""

    timestamp: Moment


class StreamError(msgspec.Struct):
    """A problem; the stream may end after it."""

    code: str
    message: str


def _detected(row: Any) -> Any:
    return Annotated[Sequence[row], Meta(description="Opportunities to insert, or to replace by `id`.")]


_Games = Annotated[dict[str, Standing], Meta(description="Games to insert, or to replace by event id.")]
PRICES: Mapping[str, Any] = {
    "snapshot": OddsSnapshot, "odds:update": OddsChanged, "odds:removed": OddsRemoved, "odds:seen": OddsRenewed,
    "odds:locked": OddsChanged,
}  # fmt: skip
OPPORTUNITIES: Mapping[str, Any] = {
    name: payload
    for kind in KINDS.values()
    for name, payload in (
        (f"{kind.event_name}:detected", _detected(ENCODINGS[kind.name].struct)),
        (f"{kind.event_name}:expired", Expired),
    )
}
GAMES: Mapping[str, Any] = {
    "gamestate:snapshot": _Games, "gamestate:update": _Games, "gamestate:removed": GamesRemoved,
}  # fmt: skip
CONNECTION: Mapping[str, Any] = {
    "connected": StreamConnected, "snapshot:complete": SnapshotComplete, "heartbeat": Heartbeat, "error": StreamError,
}  # fmt: skip
