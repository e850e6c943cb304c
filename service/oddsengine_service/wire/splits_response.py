"""Public betting splits, in requests and responses. Fields are in the order of the response."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from oddsengine_service.wire.envelopes import Body, Counted, Pagination, Share
from oddsengine_service.wire.numbers import Number


class Sides(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Share of each team, 0 to 1."""

    away: Share
    home: Share


class OverUnder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Share of each side of a total, 0 to 1."""

    over: Share
    under: Share


class SpreadSplit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares on a spread; `away_odds` and `home_odds` are the lines, as in the published interface."""

    away_odds: Number
    home_odds: Number
    handle_pct: Sides
    bets_pct: Sides


class TotalSplit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares on a total."""

    line: Number
    handle_pct: OverUnder
    bets_pct: OverUnder


class MoneylineSplit(SpreadSplit, frozen=True):
    """Shares on a result; prices are American."""


class SplitsGame(msgspec.Struct, frozen=True, kw_only=True):
    """Public betting on one event at one book, by money (`handle_pct`) and by number of bets."""

    event_id: str
    sport: str
    league: str
    sportsbook: str
    home_team: str
    away_team: str
    fetched_at: str
    spread: SpreadSplit | None
    total: TotalSplit | None
    moneyline: MoneylineSplit | None


class SpreadEntry(msgspec.Struct, frozen=True):
    """Shares on a spread."""

    away_line: Number
    home_line: Number
    handle_pct: Sides
    bets_pct: Sides


class SplitsHistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot; `timestamp` is `ts` in Unix seconds."""

    book: str
    ts: str
    timestamp: int
    spread: SpreadEntry | None
    total: TotalSplit | None
    moneyline: MoneylineSplit | None


Name = Annotated[str, Meta(min_length=1, max_length=200)]


class SplitsGiven(Body, kw_only=True):
    """A record from an operator's source; `fetched_at` defaults to now."""

    event_id: Name
    sportsbook: Name
    sport: Annotated[str, Meta(max_length=200)] = ""
    league: Annotated[str, Meta(max_length=200)] = ""
    home_team: Annotated[str, Meta(max_length=200)] = ""
    away_team: Annotated[str, Meta(max_length=200)] = ""
    fetched_at: Annotated[datetime, Meta(tz=True)] | None = None
    spread: SpreadSplit | None = None
    total: TotalSplit | None = None
    moneyline: MoneylineSplit | None = None


class SplitsPosted(Body):
    """A request to store records."""

    splits: Annotated[list[SplitsGiven], Meta(min_length=1, max_length=1000)]


class SplitsStored(msgspec.Struct, frozen=True):
    """The result of storing records."""

    accepted: int
    ignored: int  # not newer than the last record, or too old to be stored


class SplitsPage(msgspec.Struct, frozen=True):
    """Splits, with their own envelope."""

    data: list[SplitsGame]
    pagination: Pagination
    updated_at: str | None
    meta: Counted


class HistoryMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a history; `total` counts all matches."""

    event_id: str
    total: int
    books: list[str]
    oldest: str | None
    newest: str | None
    updated_at: str
    ignored: list[str] | msgspec.UnsetType = msgspec.UNSET


class SplitsHistory(msgspec.Struct, frozen=True):
    """Snapshots of one event."""

    success: bool
    data: list[SplitsHistoryEntry]
    meta: HistoryMeta
