"""Game states."""

import msgspec

from oddsengine.feeds.merged_scores import State
from oddsengine.tables.timestamps import timestamp
from oddsengine_service.wire.envelopes import GameState, Moment


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """State of a game, merged over all sources. Periods are Q3, 2H, P2, S2, T5 or B5, OT, HT, FT."""

    home_team: str
    away_team: str
    sport: str
    league: str
    home_score: int | None
    away_score: int | None
    is_live: bool
    game_period: str | None
    game_clock: str | None
    possession: str | None
    primary_book: str
    book_count: int
    stale: bool
    updated_at: Moment


class Teams(msgspec.Struct, frozen=True):
    """The teams, home and away."""

    sport: str
    league: str
    home: str
    away: str


def standing(state: State, teams: Teams) -> Standing:
    return Standing(
        home_team=teams.home, away_team=teams.away, sport=teams.sport, league=teams.league, home_score=state.home,
        away_score=state.away, is_live=not state.over, game_period=state.period or None,
        game_clock=state.clock or None, possession=state.possession or None, primary_book=state.primary,
        book_count=state.sources, stale=state.stale, updated_at=timestamp(state.changed) or "",
    )  # fmt: skip


def state_of(game: Standing | None) -> GameState | None:
    """State of a game as included in rows of other kinds."""
    if game is None:
        return None
    return GameState(game.game_period, game.game_clock, game.home_score, game.away_score)
