"""When a price of a stream counts as seen.

While a stream is well, its prices are renewed at our own time (`alive` of its reader). What it says next may carry an
earlier time of the source's, for news travel, and clocks differ; the board would take it for late and keep the old
price. A stream is in order, so what it says counts as seen when it arrives.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from oddsengine.feeds import Payload


def on_arrival(payload: Payload, now: datetime, but: timedelta | None = None) -> Payload:
    """Take the times off quotes, so that they count as seen now; older ones than `but` keep theirs."""
    quotes = [row if _old(row.get("last_seen_at"), now, but) else _undated(row) for row in payload.quotes]
    return payload._replace(quotes=quotes)


def _undated(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "last_seen_at"} if "last_seen_at" in row else row


def _old(seen: datetime | None, now: datetime, but: timedelta | None) -> bool:
    if seen is None or but is None:
        return False
    return now - seen.replace(tzinfo=seen.tzinfo or UTC) > but
