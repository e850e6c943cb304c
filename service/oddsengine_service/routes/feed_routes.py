"""The status of feeds: whether each works, how fresh it is and what it covers, without a key."""

from collections import Counter
from typing import Any

import msgspec

from oddsengine.maths.rounding import AGE_DIGITS, exact
from oddsengine_service.feeds.status import SourceStatus, light
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.routes.health_routes import data_check
from oddsengine_service.wire.envelopes import DataWith
from oddsengine_service.wire.feeds_response import AMBER, GREEN, RED, Feed, FeedsMeta
from oddsengine_service.wire.numbers import format_time

_COLORS = {"ok": GREEN, "degraded": AMBER, "down": RED}  # of the status in `/health`


def _feed(source: SourceStatus, now: float) -> Feed:
    color, reason = light(source)
    seen = source.last_sign
    return Feed(
        name=source.name,
        kind=source.kind,
        status=color,
        reason=reason,
        last_message_at=format_time(seen),
        last_data_at=format_time(source.last_payload),
        age_seconds=None if seen is None else exact(max(0.0, now - seen.timestamp()), AGE_DIGITS),
        written_at=format_time(source.written_at),
        messages=source.payloads,
        events=source.events,
        books=list(source.books),
        rows=source.prices,
        stale_share=None if source.stale_share is None else exact(source.stale_share),
        refused=source.refused,
        quarantined=source.quarantined,
        unmapped=source.unmapped,
        unknown_values=source.unknown_values,
        new_fields=source.new_fields,
    )


def feeds(context: Context) -> Any:
    node, hub = context.node, context.node.feeds
    moment = node.clock.now()
    rows = [_feed(source, moment.timestamp()) for source in (hub.statuses() if hub is not None else ())]
    status, reason = data_check(node)
    counts, colors = node.freshness.counts(), Counter(row.status for row in rows)
    meta = FeedsMeta(
        status=_COLORS[status],
        reason=reason or "prices arrive in time",
        timestamp=format_time(moment) or "",
        feeds={color: colors[color] for color in (GREEN, AMBER, RED)},
        last_message_at=max((row.last_message_at for row in rows if row.last_message_at), default=None),
        age_seconds=min((row.age_seconds for row in rows if row.age_seconds is not None), default=None),
        events=counts.events,
        books=counts.books,
        rows=counts.prices,
        stale_share=exact(counts.stale / counts.prices) if counts.prices else None,
        refused=sum(row.refused for row in rows),
        quarantined=sum(row.quarantined for row in rows),
        unmapped=sum(row.unmapped for row in rows),
        unknown_values=sum(row.unknown_values for row in rows),
        new_fields=sum(row.new_fields for row in rows),
    )
    return data(context, rows, **msgspec.to_builtins(meta))


endpoints = (
    Endpoint(
        "/feeds", feeds, "Status of feeds", "Reference Data", DataWith[list[Feed], FeedsMeta], key="optional",
        query_key=True, cache="never",
        doc="Freshness, coverage and health of each feed, and in `meta` of the whole node. `green`: works; `amber`: "
        "impaired, late, or no data yet; `red`: down, or all of its prices are stale. Requests without a key are "
        "limited by address.",
    ),
)  # fmt: skip
