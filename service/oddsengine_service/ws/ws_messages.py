"""Messages of a WebSocket, which encode them and describe them in the AsyncAPI document.

Each is an object with its name as `type`. The connection adds `seq`, and in messages of an update `global_seq`
(`SocketEnvelope`). Rows are already encoded (`msgspec.Raw`); a field's type is that of the rows themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from oddsengine.detection.kinds import KINDS
from oddsengine_service.stream.sse import OddsDelta, clock
from oddsengine_service.wire.encodings import ENCODINGS
from oddsengine_service.wire.envelopes import AnswerMeta, Moment
from oddsengine_service.wire.odds_response import Odds

OddsRow = Annotated[
    dict[str, Any],
    Meta(
        description="A full price, or its `id` and the fields that can change.",
        extra_json_schema={"anyOf": [{"$ref": f"#/components/schemas/{row.__name__}"} for row in (Odds, OddsDelta)]},
    ),
]


class SuspendedOdds(OddsDelta, frozen=True, gc=False):
    """A suspended price: the fields that can change, and `is_active`, which is false."""

    is_active: bool


class SocketEnvelope(msgspec.Struct):
    """Fields of every message: `seq` counts those of the connection, `global_seq` is the board's update."""

    seq: int
    type: str
    timestamp: Moment
    global_seq: int | UnsetType = UNSET


class SocketMessage(msgspec.Struct, kw_only=True, tag_field="type"):
    """A message without the fields that its connection adds."""

    timestamp: Moment = field(default_factory=clock)


class BookRights(msgspec.Struct):
    """The books of the key's tier."""

    max: Annotated[int, Meta(description="-1: all.")]
    allowed: Annotated[list[str] | None, Meta(description="null: all.")]


class SocketConnected(SocketMessage, tag="connected", kw_only=True):
    """The connection is open; the fields describe what the key may receive."""

    message: str
    stream_id: str
    tier: str
    features: dict[str, bool]
    channels: list[str] | None
    global_seq: Annotated[int, Meta(description="The number of the board's latest update.")]
    books: BookRights
    resumed: bool


class Subscribed(SocketMessage, tag="subscribed", kw_only=True):
    """The subscription in force; a null filter means all. Clear everything, unless `resumed`; a snapshot follows."""

    channels: list[str]
    sports: Sequence[str] | None
    sportsbooks: Sequence[str] | None
    leagues: Sequence[str] | None
    markets: Sequence[str] | None
    eventIds: Sequence[str] | None  # noqa: N815  a name on the wire
    min_ev: float
    min_profit: float
    min_odds: float | None
    max_odds: float | None
    subscription: Annotated[str, Meta(description="Send it back to resume on any gateway.")]
    terms: str | UnsetType = UNSET
    stake: float | UnsetType = UNSET
    location: str | UnsetType = UNSET
    meta: AnswerMeta | UnsetType = UNSET


class BookPrices(SocketMessage, tag="initial", kw_only=True):
    """Active prices of a book, in one or more messages."""

    source: Annotated[str, Meta(description="The book.")]
    data: Sequence[Odds]
    count: int


class OddsChanges(SocketMessage, tag="odds:update", kw_only=True):
    """Prices of a book that are new or have changed: merge each into the one with its `id`."""

    source: Annotated[str, Meta(description="The book.")]
    data: Sequence[OddsRow]
    count: int


class OddsLocked(SocketMessage, tag="odds:locked", kw_only=True):
    """Prices of a book that were suspended; follows an `odds:update` that says so."""

    source: Annotated[str, Meta(description="The book.")]
    data: Sequence[SuspendedOdds]
    count: int


class SocketRemoved(SocketMessage, tag="odds:removed", kw_only=True):
    """Prices of a book that are gone: delete them."""

    source: Annotated[str, Meta(description="The book.")]
    ids: Sequence[str]
    count: int


class SocketComplete(SocketMessage, tag="snapshot:complete", kw_only=True):
    """The snapshot is complete; changes follow."""

    books: list[str]
    total: int
    resumed: bool
    progressive: bool = False


class ExpiredIds(msgspec.Struct):
    """Ids of opportunities."""

    expired: Sequence[str]


class SocketHeartbeat(SocketMessage, tag="heartbeat", kw_only=True):
    """The connection is alive."""


class Pong(SocketMessage, tag="pong", kw_only=True):
    """The answer to `ping`."""


class SocketError(SocketMessage, tag="error", kw_only=True):
    """A problem with a message of the client, or with a feed."""

    code: str
    message: str


def _rows(row: Any) -> Any:
    return Sequence[row]


def _made(name: str, doc: str, tag: str, fields: Sequence[Any]) -> Any:
    made = msgspec.defstruct(name, fields, bases=(SocketMessage,), kw_only=True, tag=tag, tag_field="type")
    made.__doc__ = doc
    return made


OpportunitiesSnapshot = _made(
    "OpportunitiesSnapshot", "All open opportunities of one channel, in several messages if there are many.",
    "opportunities_snapshot",
    [
        *((name, _rows(encoding.struct) | UnsetType, UNSET) for name, encoding in ENCODINGS.items()),
        ("chunk", Annotated[int | UnsetType, Meta(description="From 1.")], UNSET),
        ("totalChunks", int | UnsetType, UNSET),
    ],
)  # fmt: skip
_TITLES = {kind.event_name: "".join(word.title() for word in kind.event_name.split("_")) for kind in KINDS.values()}
DETECTED: Mapping[str, Any] = {
    kind.event_name: _made(
        f"{_TITLES[kind.event_name]}Detected", "Opportunities that are new or have changed.",
        f"{kind.event_name}:detected", [("data", _rows(ENCODINGS[kind.name].struct))],
    )
    for kind in KINDS.values()
}  # fmt: skip
EXPIRED: Mapping[str, Any] = {
    name: _made(
        f"{title}Expired", "Opportunities that are no longer open, or below your thresholds.", f"{name}:expired",
        [("data", ExpiredIds)],
    )
    for name, title in _TITLES.items()
}  # fmt: skip
MESSAGES: Mapping[str, Any] = {
    kind.__struct_config__.tag: kind
    for kind in (
        SocketConnected, Subscribed, OpportunitiesSnapshot, BookPrices, SocketComplete, OddsChanges, SocketRemoved,
        OddsLocked, *DETECTED.values(), *EXPIRED.values(), SocketHeartbeat, Pong, SocketError,
    )
}  # fmt: skip
