"""Reference data and events. Fields are in the order of the response."""

import msgspec

from oddsengine_service.wire.envelopes import GameState


class Sport(msgspec.Struct, frozen=True, kw_only=True):
    """A sport; counts are of what the caller can see."""

    id: str
    name: str
    event_count: int
    live_count: int
    leagues: list[str]
    slug: str
    active: bool
    numerical_id: int | None = None


class League(msgspec.Struct, frozen=True, kw_only=True):
    """A competition."""

    id: str
    name: str
    sport: str
    event_count: int
    live_count: int
    slug: str
    active: bool
    sport_id: str
    country: str | None
    numerical_id: int | None = None


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where a book takes bets online, by ISO 3166. A part counts before its country; what is not listed is unknown."""

    open: list[str]
    closed: list[str]
    unknown: list[str]
    source: str
    date: str | None


class Sportsbook(msgspec.Struct, frozen=True, kw_only=True):
    """A book. `degraded` has had no update for a minute, `down` has prices too old to be used."""

    id: str
    name: str
    display_name: str
    is_sharp: bool
    has_live_odds: bool
    has_player_props: bool
    regions: list[str]
    requires_tier: str
    status: str
    event_count: int
    last_update: str | None
    unlisted: bool
    slug: str
    active: bool
    numerical_id: int | None = None
    places: Places


class Market(msgspec.Struct, frozen=True, kw_only=True, rename={"has_line": "hasLine"}):
    """A market type."""

    id: str
    name: str
    description: str
    has_line: bool
    examples: list[str]
    event_count: int
    selection_count: int
    sports: list[str]
    numerical_id: int | None = None


class Team(msgspec.Struct, frozen=True, kw_only=True):
    """A team with an event on the board."""

    id: str
    name: str
    sport: str
    leagues: list[str]
    aliases: list[str]
    event_count: int
    live_count: int
    numerical_id: int | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event. `status` is upcoming, live, ended, postponed or cancelled."""

    id: str
    external_ids: dict[str, str]
    sport: str
    league: str
    home_team: str
    away_team: str
    start_time: str | None
    status: str
    is_live: bool
    book_count: int
    markets: list[str]
    books: list[str]
    game_state: GameState | None = None  # for tiers with game states
