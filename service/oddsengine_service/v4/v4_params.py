"""Parameters of `/v4`."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from oddsengine.feeds.the_odds_api_names import REGIONS
from oddsengine_service.errors import must_be, quoted
from oddsengine_service.http.params import Param, Query, Words, time_of
from oddsengine_service.http.v4_errors import refused

ID = re.compile("[0-9a-f]{32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_TIMES: Mapping[str, Any] = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}
_SOME: Mapping[str, Any] = {"type": "string", "pattern": r"[^,\s]"}
_IDS: Mapping[str, Any] = {"type": "string", "pattern": "^([0-9a-f]{32})?(,([0-9a-f]{32})?){0,499}$"}
_ALLOWED = "a time such as 2026-02-08T18:00:00Z"


def _moment(value: str) -> datetime:
    if not _TIME.fullmatch(word := value.strip()):
        raise ValueError
    return datetime.fromisoformat(word)


def _date(value: str) -> datetime:
    return time_of(value.strip()).astimezone(UTC)


def _ids(name: str, value: str) -> None:
    words = [word.strip() for word in value.split(",") if word.strip()]
    if wrong := next((word for word in words if not ID.fullmatch(word)), None):
        raise refused("INVALID_EVENT_IDS", must_be(name, "ids of 32 hexadecimal digits", quoted(wrong)))


def _markets(name: str, value: str) -> None:
    if not value.replace(",", "").strip():
        raise refused("MISSING_MARKET", f"{name} must name a market, such as h2h, got {quoted(value)}")


class DatesQuery(Query):
    """The format of times."""

    date_format: Annotated[
        str, Param("Format of times.", name="dateFormat", choices=("iso", "unix"), code="INVALID_DATE_FORMAT")
    ] = "iso"


class SportsQuery(Query):
    """Parameters of `/v4/sports`."""

    every: Annotated[bool, Param("true: also sports without events.", name="all")] = False


class EventsQuery(DatesQuery):
    """Parameters of lists of events."""

    event_ids: Annotated[Words, Param("Ids of events.", name="eventIds", check=_ids, schema=_IDS)] = None
    since: Annotated[
        datetime | None,
        Param(
            "Earliest start.", name="commenceTimeFrom", read=_moment, allowed=_ALLOWED, schema=_TIMES,
            code="INVALID_COMMENCE_TIME_FROM",
        ),
    ] = None  # fmt: skip
    until: Annotated[
        datetime | None,
        Param(
            "Latest start.", name="commenceTimeTo", read=_moment, allowed=_ALLOWED, schema=_TIMES,
            code="INVALID_COMMENCE_TIME_TO",
        ),
    ] = None  # fmt: skip


class BooksQuery(DatesQuery):
    """Filters of bookmakers."""

    regions: Annotated[Words, Param("Regions of bookmakers.", choices=REGIONS, code="INVALID_REGION")] = None
    bookmakers: Annotated[Words, Param("Keys of bookmakers, instead of regions.")] = None


class EventOddsQuery(BooksQuery):
    """Parameters of the prices of an event."""

    markets: Annotated[Words, Param("Keys of markets, or our market types.", check=_markets, schema=_SOME)] = None
    odds_format: Annotated[
        str,
        Param("Format of prices.", name="oddsFormat", choices=("decimal", "american"), code="INVALID_ODDS_FORMAT"),
    ] = "decimal"
    links: Annotated[bool, Param("Adds links to the bookmakers.", name="includeLinks")] = False
    sids: Annotated[bool, Param("Adds the bookmakers' own ids.", name="includeSids")] = False
    limits: Annotated[bool, Param("Adds the bet limits.", name="includeBetLimits")] = False
    multipliers: Annotated[
        bool, Param("Accepted; there are no prices with multipliers.", name="includeMultipliers")
    ] = False
    rotations: Annotated[bool, Param("Accepted; there are no rotation numbers.", name="includeRotationNumbers")] = False


class OddsQuery(EventOddsQuery, EventsQuery):
    """Parameters of the prices of a sport."""


class ScoresQuery(DatesQuery):
    """Parameters of scores."""

    days: Annotated[
        int | None,
        Param(
            "Adds games that ended in this many days.", name="daysFrom", low=1, high=3, code="INVALID_SCORES_DAYS_FROM"
        ),
    ] = None
    event_ids: Annotated[Words, Param("Ids of events.", name="eventIds", check=_ids, schema=_IDS)] = None


Date = Annotated[
    datetime,
    Param(
        "A time in the past, ISO 8601.", read=_date, allowed=_ALLOWED, schema={"type": "string", "format": "date-time"},
        code="INVALID_HISTORICAL_TIMESTAMP", missing="INVALID_HISTORICAL_TIMESTAMP",
    ),
]  # fmt: skip


class PastEventsQuery(EventsQuery):
    """Parameters of past events."""

    date: Date


class PastOddsQuery(OddsQuery):
    """Parameters of past prices."""

    date: Date


class PastEventOddsQuery(EventOddsQuery):
    """Parameters of the past prices of an event."""

    date: Date
