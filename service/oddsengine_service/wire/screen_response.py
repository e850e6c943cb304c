"""The odds screen in responses."""

import msgspec

from oddsengine_service.wire.envelopes import Moment, PageWith, Share
from oddsengine_service.wire.odds_response import TruncatedMeta


class ScreenPrice(msgspec.Struct, gc=False):
    """One book's price of an outcome; `rejection` is why it cannot be bet."""

    id: str
    odds_american: float
    odds_decimal: float
    line: float | None
    ev_percentage: float | None
    last_seen_at: Moment
    is_active: bool
    rejection: str | None


class ScreenOutcome(msgspec.Struct):
    """One outcome at the market's main line: its fair price, the books with the best price, and each book's price."""

    selection: str
    selection_type: str
    line: float | None
    fair_probability: Share | None
    fair_odds_american: float | None
    best: list[str]
    prices: dict[str, ScreenPrice]


class ScreenMarket(msgspec.Struct):
    """One market of a game; `hold_percentage` is of the best prices, `holds` of each book."""

    market_type: str
    market_segment: str
    player_name: str | None
    team_side: str | None
    line: float | None
    hold_percentage: float | None
    holds: dict[str, float]
    outcomes: list[ScreenOutcome]


class ScreenGame(msgspec.Struct):
    """One game with its markets."""

    event_id: str
    event_name: str
    sport: str
    league: str
    home_team: str
    away_team: str
    event_start_time: Moment | None
    is_live: bool
    markets: list[ScreenMarket]


class ScreenMeta(TruncatedMeta, kw_only=True):
    """Numbers of games on the page and in total; the books with a price on the page."""

    count: int
    total: int
    sportsbooks: list[str]


class ScreenPage(PageWith[ScreenGame, ScreenMeta], kw_only=True):
    """Games with their prices side by side."""
