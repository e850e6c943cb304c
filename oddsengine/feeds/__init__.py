"""Formats of odds sources: pure parsers, payload in, quotes out.

| source | reader | remembers |
| --- | --- | --- |
| The Odds API v4 | `the_odds_api.TheOddsApi` | what was listed, to know what is gone |
| this interface | `interface.read_page`, `interface.InterfaceStream` | the stream's rows |
| OpticOdds v3 | `optic.OpticOdds` | fixtures, what was listed, the stream's rows |
| Betfair exchange stream | `betfair.BetfairMarkets` | markets |
| football-data.co.uk | `football_data.read` | nothing |
| any odds table | `table.read` | nothing |

Reading order: payload, decoding, names, held, then any of the sources; `sse` is the framing of two of them. A reader
that raises `FeedError` is as it was before.
"""

from oddsengine.feeds.payload import FeedError, Game, Payload

__all__ = ["FeedError", "Game", "Payload"]
