"""Reads what Cornerbook sends: bytes in, `Payload` out, without a network and without a clock."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from oddsengine.feeds import FeedError, Game, Payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received, Turn

LEAGUES = {"nba": "NBA", "nfl": "NFL"}  # its names by our ids
_OURS = {"NBA": ("basketball", "nba"), "NFL": ("football", "nfl")}
_MARKETS = {"winner": "moneyline", "handicap": "point_spread", "total": "total_points"}


class _Selection(msgspec.Struct):
    id: str
    side: Literal["home", "away", "over", "under"]
    odds: Annotated[float, msgspec.Meta(gt=1.0, lt=10_000.0)]  # it sends a text


class _Market(msgspec.Struct):
    type: str
    selections: list[_Selection]
    line: float | None = None  # of a handicap: that of the home team


class _Game(msgspec.Struct):
    id: str
    home: str
    away: str
    starts_at: datetime
    state: Literal["upcoming", "live", "ended"]
    markets: list[_Market]


def read(league: str, answer: Received, listed: ListedIds) -> Payload:
    """Read a league; of `listed` prices, those that are gone are removed. A `FeedError` leaves `listed` as it is."""
    turn = Turn()
    try:
        for one in msgspec.json.decode(answer.body, type=dict[str, list[_Game]], strict=False)["games"]:
            game = Game(one.id, *_OURS[league], one.home, one.away, one.starts_at, one.state)
            turn.games[game.id] = game
            for market in one.markets:
                _add(turn, game, market, answer.at)
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        raise FeedError(f"not a payload of Cornerbook: {error}") from None
    return turn.payload(listed, league)


def _add(turn: Turn, game: Game, market: _Market, at: datetime) -> None:
    """Add the prices of a market; one that the catalog does not have is counted as unmapped."""
    teams = {"home": game.home, "away": game.away}
    for one in market.selections:
        line = -market.line if market.line and one.side == "away" else market.line
        row = game.fields | {
            "id": one.id, "sportsbook": "cornerbook", "market_type": _MARKETS.get(market.type, market.type),
            "selection": teams.get(one.side, one.side.title()), "selection_type": one.side, "line": line,
            "odds_decimal": one.odds, "last_seen_at": at, "is_live": game.status == "live",
        }  # fmt: skip
        turn.put(row, in_catalog=market.type in _MARKETS)
