"""Messages of Betfair's exchange stream and its market catalogue, and what its types of markets mean.

`ltp` is the price of the last trade. It is no offer: nobody says that more can be had at it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from oddsengine.bounds import excerpt
from oddsengine.feeds.decoding import Level, Name, Text, Time, inside, plain, valid_items
from oddsengine.feeds.feed_names import THREE_WAY, MarketName, market

# Event types: https://docs.developer.betfair.com, listEventTypes.
SPORTS = {
    "1": "soccer", "2": "tennis", "3": "golf", "4": "cricket", "5": "rugby_union", "6": "boxing",
    "1477": "rugby_league", "3503": "darts", "6422": "snooker", "6423": "football",
    "7511": "baseball", "7522": "basketball", "7524": "hockey", "61420": "aussie_rules", "468328": "handball",
    "998917": "volleyball", "26420387": "mma", "27454571": "esports",
}  # fmt: skip
_TOTALS = re.compile(r"(OVER_UNDER|FIRST_HALF_GOALS)_(\d{1,4})(_CORNR)?")
_ASIAN = {
    "ASIAN_HANDICAP": "asian_handicap", "HANDICAP": "point_spread", "ALT_TOTAL_GOALS": "asian_total_goals",
    "COMBINED_TOTAL": "total_points", "TOTAL_POINTS": "total_points",
}  # fmt: skip
HANDICAPS = ("ASIAN_HANDICAP", "HANDICAP")
_PLAIN = {"HALF_TIME": "1st_half_moneyline_3way"}
_LINES = ("MATCH_ODDS", "MONEY_LINE", "HANDICAP", "COMBINED_TOTAL", "TOTAL_POINTS", "DRAW_NO_BET")
_MARKETS = {
    "soccer": (
        "MATCH_ODDS", "DRAW_NO_BET", "BOTH_TEAMS_TO_SCORE", "ASIAN_HANDICAP", "ALT_TOTAL_GOALS", "HALF_TIME",
        *(f"OVER_UNDER_{goals}5" for goals in range(9)), *(f"FIRST_HALF_GOALS_{goals}5" for goals in range(3)),
    ),
}  # fmt: skip


def event_types(sports: Sequence[str]) -> tuple[str, ...]:
    """Numbers of event types, from numbers or our ids of sports; all that are known by default.

    Raises `ValueError` for a text that is neither.

    Examples
    --------
    >>> event_types(["soccer", "2", "7"])
    ('1', '2', '7')
    """
    numbers = {sport: number for number, sport in SPORTS.items()}
    for sport in sports:
        if sport not in numbers and not sport.isdecimal():
            raise ValueError(f"sports must be numbers of event types, or of {', '.join(numbers)}, got {excerpt(sport)}")
    return tuple(dict.fromkeys(numbers.get(sport, sport) for sport in sports or SPORTS.values()))


def market_types(numbers: Sequence[str]) -> tuple[str, ...]:
    """The types of markets that are read by default, of some event types.

    Examples
    --------
    >>> market_types(["2", "7522"])[:3], len(market_types(["1", "2"]))
    (('MATCH_ODDS', 'MONEY_LINE', 'HANDICAP'), 22)
    """
    return tuple(dict.fromkeys(kind for one in numbers for kind in _MARKETS.get(SPORTS.get(one, ""), _LINES)))


class RunnerDefinition(msgspec.Struct):
    id: int
    hc: float | None = None
    name: Text | None = None
    status: str = "ACTIVE"


class KeyLine(msgspec.Struct):
    """A runner of the main line, with its handicap there."""

    id: int
    hc: float | None = None


class KeyLines(msgspec.Struct):
    kl: list[KeyLine] = []


class Definition(msgspec.Struct):
    status: str = "OPEN"
    inPlay: bool = False  # noqa: N815
    bettingType: str = "ODDS"  # noqa: N815
    marketType: str = ""  # noqa: N815
    marketBaseRate: float | None = None  # noqa: N815
    betDelay: int | None = None  # noqa: N815  # seconds
    keyLineDefinition: KeyLines | None = None  # noqa: N815
    marketTime: Time = None  # noqa: N815
    eventId: str = ""  # noqa: N815
    eventTypeId: str = ""  # noqa: N815
    eventName: Text | None = None  # noqa: N815
    runners: list[RunnerDefinition] = []


class RunnerChange(msgspec.Struct):
    id: int
    hc: float | None = None
    tv: float | None = None
    ltp: float | None = None
    batb: list[tuple[float, float, float]] | None = None
    bdatb: list[tuple[float, float, float]] | None = None
    atb: list[tuple[float, float]] | None = None
    batl: list[tuple[float, float, float]] | None = None
    bdatl: list[tuple[float, float, float]] | None = None
    atl: list[tuple[float, float]] | None = None


class MarketChange(msgspec.Struct):
    id: Name
    img: bool | None = None
    marketDefinition: Definition | None = None  # noqa: N815
    rc: list[RunnerChange] | None = None


class Message(msgspec.Struct):
    op: str
    id: int | None = None  # of the subscription
    pt: int | None = None
    clk: str | None = None
    initialClk: str | None = None  # noqa: N815
    ct: str | None = None
    segmentType: str | None = None  # noqa: N815
    status: int | None = None
    mc: list[MarketChange] | None = None
    statusCode: str | None = None  # noqa: N815
    errorCode: str | None = None  # noqa: N815
    errorMessage: str | None = None  # noqa: N815


class NamedItem(msgspec.Struct):
    name: Text | None = None


class RunnerName(msgspec.Struct):
    selectionId: int  # noqa: N815
    runnerName: Text  # noqa: N815


class Catalogue(msgspec.Struct):
    """A market, its start, and what was matched on it."""

    marketId: Name  # noqa: N815
    marketStartTime: Time = None  # noqa: N815
    totalMatched: float | None = None  # noqa: N815
    event: NamedItem | None = None
    competition: NamedItem | None = None
    runners: list[RunnerName] = []


message_decoder = msgspec.json.Decoder(Message)
_LISTED = Level(Catalogue, "a market of the catalogue", "runners", Level(RunnerName, "a runner of the catalogue"))


def read_catalogue(data: bytes) -> tuple[list[Catalogue], Counter[str]]:
    """Parse a response of the market catalogue, of REST or of JSON-RPC, and count what in it is not valid.

    Raises `FeedError` if it is not valid at all.
    """
    source, refused = "the Betfair catalogue", Counter[str]()
    document = plain(data, source)
    listed = inside(document, "result") if isinstance(document, dict) else document
    return valid_items(listed, _LISTED, refused, source, f"not a payload of {source}: it has no list")[0], refused


class MarketMapping(NamedTuple):
    """The meaning of a market: its catalog name, and where its line comes from."""

    market: MarketName
    line: float | None  # line of the market
    by_runner: bool  # each runner has its own line, the handicap


@lru_cache(maxsize=4096)
def meaning(market_type: str, betting_type: str, sport: str, draw: bool = False) -> MarketMapping:  # noqa: FBT001, FBT002
    """Return the meaning of a Betfair market type.

    Examples
    --------
    >>> meaning("OVER_UNDER_25", "ODDS", "soccer")[:2][1], meaning("MATCH_ODDS", "ODDS", "tennis").market.name
    (2.5, 'moneyline')
    """
    total = _TOTALS.fullmatch(market_type)
    if betting_type.startswith("ASIAN_HANDICAP") and market_type in _ASIAN:
        return MarketMapping(market(_ASIAN[market_type], sport), None, by_runner=True)
    if betting_type != "ODDS":
        return MarketMapping(MarketName(market_type), None, by_runner=True)
    if total:
        name = "total_corners" if total[3] else "total_goals"
        half = "1st_half_" if total[1] == "FIRST_HALF_GOALS" else ""
        return MarketMapping(market(half + name, sport), int(total[2]) / 10.0, by_runner=False)
    if market_type == "MATCH_ODDS":
        return MarketMapping(market(THREE_WAY if draw else "moneyline", sport), None, by_runner=False)
    kind_of = market(_PLAIN.get(market_type, market_type), sport)
    return MarketMapping(kind_of, None, by_runner=False)
