"""Responses of history: closing lines, price movements, and bets against the close."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from oddsengine_service.wire.envelopes import AnswerMeta, DataWith, Moment, Share
from oddsengine_service.wire.numbers import Number


class ClosingLine(msgspec.Struct, gc=False):
    """The last price of one book before the start, and the reference's probability then."""

    id: str
    sportsbook: str
    market_type: str
    market_segment: str
    selection: str
    selection_type: str | None
    line: Number
    player_name: str | None
    stat_category: str | None
    team_side: str | None
    odds_american: float
    odds_decimal: float
    odds_probability: Share
    last_seen_at: Moment
    odds_changed_at: Moment
    fair_probability: Annotated[Share | None, Meta(description="Null if no sharp book quoted the whole market.")]
    no_vig_odds: Number
    sharp_book: str | None


class Closing(msgspec.Struct):
    """An event at its start."""

    event_id: str
    sport: str
    league: str
    home_team: str
    away_team: str
    event_start_time: Moment | None
    captured_at: Annotated[Moment | None, Meta(description="Null while there are no closing lines.")]
    books: Annotated[dict[str, list[ClosingLine]], Meta(description="Lines by book; empty if there are none.")]


class ClosingMeta(AnswerMeta, kw_only=True):
    """Why there are no closing lines, and notes on the request."""

    reason: str | UnsetType = UNSET


class ClosingAnswer(DataWith[Closing, ClosingMeta]):
    """The closing lines of one event."""


class Opening(msgspec.Struct, gc=False):
    """The first price seen."""

    at: Moment
    odds_american: float
    odds_decimal: float


class Points(msgspec.Struct, gc=False):
    """Successive prices, column by column."""

    at: list[Moment]
    odds_american: list[float]
    odds_decimal: list[float]
    is_live: list[bool]
    is_active: list[bool]


class MovedPrice(msgspec.Struct):
    """A price at one book that has moved, and where it began."""

    id: str
    event_id: str
    sportsbook: str
    market_type: str
    market_segment: str
    selection: str
    selection_type: str
    line: Number
    player_name: str | None
    opening: Opening


class Movement(MovedPrice):
    """Movement of one price at one book."""

    points: Points
    omitted: Annotated[int, Meta(description="Number of earlier points that are not included.")]


class ClvGroup(msgspec.Struct, kw_only=True):
    """Bets of one group against the close; means are over graded bets, in percent, errors are standard errors."""

    group: str
    count: int
    graded: int
    without_close: Annotated[int, Meta(description="Their event closed without a reference for their outcome.")]
    waiting: Annotated[int, Meta(description="Their event has not closed.")]
    in_play: Annotated[int, Meta(description="First shown after the close; never graded.")]
    events: Annotated[int, Meta(description="Events of the graded ones.")]
    avg_ev: Number
    avg_ev_error: Number
    avg_clv: Number
    avg_clv_error: Number
    beat_close: Annotated[Share | None, Meta(description="Share of the graded ones with a CLV above 0.")]
    beat_close_error: Number
    avg_best_clv: Annotated[Number, Meta(description="At the best price of each bet while it was available.")]
    avg_best_clv_error: Number
    others_graded: Annotated[
        int, Meta(description="Bets shown before the close, graded by the close of all other books.")
    ]
    avg_others_ev: Number
    avg_others_clv: Annotated[
        Number, Meta(description="By the close of all books except the bet's own and those that share its feed.")
    ]
    avg_others_clv_error: Number
    others_beat_close: Share | None
    won: Annotated[int, Meta(description="Of the bets before the close whose result is known.")]
    lost: int
    pushed: int
    avg_return: Annotated[Number, Meta(description="Profit by result, in percent of the stake.")]
    avg_return_error: Number


class ClvMeta(AnswerMeta, kw_only=True):
    """Totals of all bets, and how they were grouped."""

    group_by: str
    count: int
    total: ClvGroup
    min_ev: float | UnsetType = UNSET


class ClvPage(msgspec.Struct, kw_only=True):
    """Groups of bets."""

    success: bool
    data: list[ClvGroup]
    meta: ClvMeta
