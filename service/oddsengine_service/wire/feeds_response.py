"""The body of `/feeds`."""

from typing import Annotated

import msgspec
from msgspec import Meta

from oddsengine_service.wire.envelopes import AnswerMeta, Moment, Share

GREEN, AMBER, RED = "green", "amber", "red"
Color = Annotated[str, Meta(extra_json_schema={"enum": [GREEN, AMBER, RED]})]


class Feed(msgspec.Struct):
    """One feed, without its address and other details that are for the operator."""

    name: str
    kind: str
    status: Color
    reason: Annotated[str, Meta(description="The reason for the status, in words.")]
    last_message_at: Annotated[Moment | None, Meta(description="Data, an unchanged response, or a heartbeat.")]
    last_data_at: Moment | None
    age_seconds: Annotated[float | None, Meta(description="Seconds since the last message.")]
    written_at: Annotated[Moment | None, Meta(description="Of a table: when the oldest of its files was written.")]
    messages: Annotated[int, Meta(description="Messages with data since the node started.")]
    events: int
    books: list[str]
    rows: Annotated[int, Meta(description="Its prices on the board, counted every 5 s.")]
    stale_share: Annotated[Share | None, Meta(description="Share of its rows rejected as stale; null without rows.")]
    refused: Annotated[int, Meta(description="Invalid rows that were left out since the node started.")]
    quarantined: Annotated[int, Meta(description="Games that could not be matched to an event.")]
    unmapped: Annotated[int, Meta(description="Rows in markets that the catalog does not know.")]
    unknown_values: Annotated[
        int, Meta(description="Different values of its answers that the feed's contract does not have; 0 without one.")
    ]
    new_fields: Annotated[int, Meta(description="Different fields that the contract does not have; they are not read.")]


class FeedsMeta(AnswerMeta, kw_only=True):
    """The whole node: its board, and the totals of its feeds."""

    status: Color
    reason: str
    timestamp: Moment
    feeds: Annotated[dict[str, int], Meta(description="Number of feeds of each colour.")]
    last_message_at: Moment | None
    age_seconds: float | None
    events: int
    books: int
    rows: Annotated[int, Meta(description="Prices on the board; one that two feeds deliver counts once.")]
    stale_share: Share | None
    refused: int
    quarantined: int
    unmapped: int
    unknown_values: int
    new_fields: int
