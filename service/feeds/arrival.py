"""Times at which prices of a stream count as seen.

While a stream is well, its prices are renewed at our own time (`alive` of its reader). What it says next may carry an
earlier time of the source's, for news travel, and clocks differ; the board would take it for late and keep the old
price. A stream is in order, so what it says counts as seen when it arrives. This is for books' own streams: a node
upstream says itself when it saw each price.
"""

from oddsengine.feeds import Payload


def on_arrival(payload: Payload) -> Payload:
    """Remove the times of quotes, so that they count as seen now."""
    quotes = [{name: value for name, value in row.items() if name != "last_seen_at"} for row in payload.quotes]
    return payload._replace(quotes=quotes)
