"""Bodies of `/v4`."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

Time = Annotated[str | int, Meta(description="2026-02-08T18:00:00Z; with `dateFormat=unix` seconds since 1970.")]
Link = str | UnsetType | None
Sid = str | UnsetType | None


class V4Sport(msgspec.Struct):
    """A league, or the outrights of one."""

    key: str
    group: str
    title: str
    description: str
    active: bool
    has_outrights: bool


class V4Outcome(msgspec.Struct, gc=False):
    """One price. `link`, `sid` and `bet_limit` are there if they were requested, and null if unknown."""

    name: str
    price: Annotated[float | int, Meta(description="Decimal, or with `oddsFormat=american` American and whole.")]
    point: float | UnsetType = UNSET
    description: Annotated[str | UnsetType, Meta(description="The player, or the team of its total.")] = UNSET
    link: Link = UNSET
    sid: Sid = UNSET
    bet_limit: float | UnsetType | None = UNSET


class V4Market(msgspec.Struct, gc=False):
    """One market of a bookmaker. A list of available markets has no outcomes."""

    key: str
    last_update: Time
    outcomes: list[V4Outcome] | UnsetType = UNSET
    link: Link = UNSET
    sid: Sid = UNSET


class V4Bookmaker(msgspec.Struct, gc=False):
    """A bookmaker with its markets."""

    key: str
    title: str
    last_update: Time
    markets: list[V4Market]
    link: Link = UNSET
    sid: Sid = UNSET


class V4Event(msgspec.Struct):
    """An event; one of outrights has no teams."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    sport_key: str
    sport_title: str
    commence_time: Time | None
    home_team: str | None
    away_team: str | None


class V4EventOdds(V4Event):
    """An event with its prices."""

    bookmakers: list[V4Bookmaker]


class V4TeamScore(msgspec.Struct):
    """The score of a team."""

    name: str
    score: str


class V4EventScore(msgspec.Struct):
    """An event with its score; null before its start."""

    id: str
    sport_key: str
    sport_title: str
    commence_time: Time
    completed: bool
    home_team: str | None
    away_team: str | None
    scores: list[V4TeamScore] | None
    last_update: Time | None


class V4Participant(msgspec.Struct):
    """A team, or a player of an individual sport."""

    id: str
    full_name: str


class V4PastEvents(msgspec.Struct):
    """The events of a time."""

    timestamp: str
    previous_timestamp: str
    next_timestamp: str | None
    data: list[V4Event]


class V4PastOdds(msgspec.Struct):
    """The prices of a time."""

    timestamp: str
    previous_timestamp: str
    next_timestamp: str | None
    data: list[V4EventOdds]


class V4PastEventOdds(msgspec.Struct):
    """The prices of an event at a time."""

    timestamp: str
    previous_timestamp: str
    next_timestamp: str | None
    data: V4EventOdds
