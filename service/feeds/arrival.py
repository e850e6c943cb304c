"""Time at which the prices of a stream count as seen.

While a stream works, its prices are renewed at our own time (`alive` of its reader). Its next message may carry an
earlier time of the source, because of latency and clock differences; the board would consider it late and keep the old
price. A stream is ordered, so its messages count as seen on arrival. This applies to streams of books: an upstream node
reports when it saw each price.
"""

from oddsengine.feeds import Payload


def on_arrival(payload: Payload) -> Payload:
    """Remove the times of quotes, so that they count as seen now."""
    quotes = [{name: value for name, value in row.items() if name != "last_seen_at"} for row in payload.quotes]
    return payload._replace(quotes=quotes)
