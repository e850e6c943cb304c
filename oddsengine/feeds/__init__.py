"""Parsers of odds feeds: bytes in, `Payload` out, without I/O.

| source | parser | state |
| --- | --- | --- |
| The Odds API v4 | `the_odds_api.TheOddsApi` | listed prices, to detect removals |
| another node | `node_api.read_page`, `node_api.InterfaceStream` | the stream's rows |
| OpticOdds v3 | `optic.OpticOdds` | fixtures, listed prices, the stream's rows |
| Betfair exchange stream | `betfair.BetfairMarkets` | markets |
| football-data.co.uk | `football_data.read` | none |
| any odds table | `table.read` | none |

Reading order: payload, display, decoding, feed_names, tracking, then any of the sources; `sse_parser` is the framing
used by two of them. A parser that raises `FeedError` keeps its previous state.
"""

from oddsengine.feeds.payload import FeedError, Game, Payload

__all__ = ["FeedError", "Game", "Payload"]
