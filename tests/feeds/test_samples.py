"""Real-shaped payloads of every source, small and written by hand, and that each of them reads whole."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest
from support import kalshi, matchbook, odds_api_io, smarkets, sportsgameodds, sx_bet
from support.polymarket import book, change, match, offer, three_way
from support.polymarket import event as game_event

from oddsengine.feeds import Payload, football_data, table
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.kalshi import KalshiMarkets
from oddsengine.feeds.matchbook import MatchbookPrices, read_sports
from oddsengine.feeds.node_api import InterfaceStream, read_page
from oddsengine.feeds.odds_api_io import OddsApiIo
from oddsengine.feeds.optic import OpticOdds
from oddsengine.feeds.polymarket import PolymarketMarkets
from oddsengine.feeds.polymarket_events import League
from oddsengine.feeds.polymarket_events import read_page as read_events_page
from oddsengine.feeds.smarkets import SmarketsPrices, read_events
from oddsengine.feeds.smarkets import read_markets as smarkets_markets
from oddsengine.feeds.sportsgameodds import SportsGameOdds
from oddsengine.feeds.sx_bet import SxBetMarkets, read_leagues, read_markets
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.feeds.turns import Received

Json = dict[str, Any]
MARKETS = ("h2h", "spreads", "totals")
POLYMARKET_NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
ASKED = RequestScope.of(MARKETS, sport="basketball_nba")


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


# ---- The Odds API ----


def outcome(name: str, price: float, **more: Any) -> Json:
    return {"name": name, "price": price, **more}


def maker(key: str, **markets: list[Json]) -> Json:
    seen = "2026-02-08T17:59:40Z"
    offers = [{"key": name, "last_update": seen, "outcomes": listed} for name, listed in markets.items()]
    return {"key": key, "title": key.title(), "last_update": seen, "markets": offers}


def game(*makers: Json, **more: Any) -> Json:
    return {
        "id": "e912304de2b2ce35b473ce2ecd3d1502", "sport_key": "basketball_nba", "sport_title": "NBA",
        "commence_time": "2026-02-09T00:30:00Z", "home_team": "Boston Celtics", "away_team": "Los Angeles Lakers",
        "bookmakers": list(makers), **more,
    }  # fmt: skip


DRAFTKINGS = maker(
    "draftkings",
    h2h=[outcome("Los Angeles Lakers", 2.6), outcome("Boston Celtics", 1.54)],
    spreads=[outcome("Boston Celtics", 1.91, point=-4.5), outcome("Los Angeles Lakers", 1.91, point=4.5)],
    totals=[outcome("Over", 1.87, point=228.5), outcome("Under", 1.95, point=228.5)],
)
FEATURED = [
    game(DRAFTKINGS, maker("betmgm", h2h=[outcome("Boston Celtics", 1.57), outcome("Los Angeles Lakers", 2.5)]))
]
PROPS = game(
    maker(
        "fanduel",
        player_points=[
            outcome("Over", 1.83, point=27.5, description="Jayson Tatum", sid="a1", bet_limit=500.0),
            outcome("Under", 1.91, point=27.5, description="Jayson Tatum", link="https://fanduel.example/slip?1"),
        ],
        team_totals=[
            outcome("Over", 1.9, point=115.5, description="Boston Celtics"),
            outcome("Under", 1.9, point=115.5, description="Boston Celtics"),
        ],
    )
)
PAST = {
    "timestamp": "2026-02-08T18:00:00Z", "previous_timestamp": "2026-02-08T17:55:00Z",
    "next_timestamp": "2026-02-08T18:05:00Z", "data": FEATURED,
}  # fmt: skip

# ---- the interface ----


def odds(row: str, selection: str, price: float, **more: Any) -> Json:
    return {
        "id": row, "sportsbook": "draftkings", "event_id": "nba_celtics_lakers_2026-02-09", "sport": "basketball",
        "league": "nba", "home_team": "Boston Celtics", "away_team": "Los Angeles Lakers", "market_type": "moneyline",
        "selection": selection, "selection_type": "home" if selection.startswith("B") else "away",
        "odds_decimal": price,
        "odds_american": (price - 1) * 100 if price >= 2 else -100 / (price - 1), "odds_probability": 1 / price,
        "line": None, "event_start_time": "2026-02-09T00:30:00Z", "is_live": False,
        "last_seen_at": "2026-02-08T17:59:58.25Z", "odds_changed_at": "2026-02-08T17:41:00Z", "deep_link": None, **more,
    }  # fmt: skip


ROWS = [
    odds("r1", "Boston Celtics", 1.54),
    odds("r2", "Los Angeles Lakers", 2.6),
    odds("r3", "Boston Celtics", 1.91, market_type="point_spread", line=-4.5),
]
PAGE = {"success": True, "data": ROWS, "pagination": {"limit": 50, "offset": 0, "has_more": True, "next_offset": 50}}
META_PAGE = {"data": ROWS[:1], "meta": {"count": 1, "total": 1, "pagination": {"has_more": False, "next_offset": None}}}
CHANGES = {"success": True, "data": ROWS[:1], "removed": ["r9"], "pagination": {"has_more": False}}
STREAM: list[tuple[str, Any]] = [
    ("connected", {"stream_id": "s", "channel": "odds", "filters": {"sportsbook": None}, "reconnected": False}),
    ("snapshot", {"odds": ROWS[:2], "count": 2, "total": 3, "offset": 0, "has_more": True}),
    ("snapshot", {"odds": ROWS[2:], "count": 1, "total": 3, "offset": 2, "has_more": False}),
    ("snapshot:complete", {"status": "ready", "books": ["draftkings"], "total_odds": 3}),
    (
        "odds:update",
        {"odds": [{"id": "r1", "odds_american": -190, "odds_decimal": 1.5263, "odds_probability": 0.6552, "line": None,
                   "is_live": False, "odds_changed_at": "2026-02-08T18:00:10Z"}],
         "count": 1, "book": "draftkings", "partial": False},
    ),
    ("odds:locked", {"odds": [{"id": "r2", "is_active": False}], "count": 1, "book": "draftkings", "partial": False}),
    ("heartbeat", {"timestamp": "2026-02-08T18:00:30Z"}),
    ("error", {"code": "upstream_error", "message": "one source is late"}),
    ("odds:removed", {"ids": ["r3"], "count": 1, "book": "draftkings"}),
]  # fmt: skip

# ---- OpticOdds ----


def optic_row(row: str, market: str, selection: str, price: float, **more: Any) -> Json:
    return {
        "id": row, "sportsbook": "DraftKings", "market": market, "name": selection, "is_main": True,
        "selection": selection, "normalized_selection": selection.lower().replace(" ", "_"), "selection_line": None,
        "player_id": None, "team_id": "t", "price": price, "timestamp": 1770573580.25, "grouping_key": "default",
        "points": None, "deep_link": None, "limits": {"max": 750}, **more,
    }  # fmt: skip


FIXTURES = {
    "data": [
        {
            "id": "20260209F1", "game_id": "1-2-3", "start_date": "2026-02-09T00:30:00Z",
            "home_competitors": [{"id": "h", "name": "Boston Celtics"}], "away_competitors": [],
            "home_team_display": "Boston Celtics", "away_team_display": "Los Angeles Lakers", "status": "unplayed",
            "is_live": False, "sport": {"id": "basketball", "name": "Basketball"},
            "league": {"id": "nba", "name": "NBA"},
            "tournament": None,
            "odds": [
                optic_row("o1", "Moneyline", "Boston Celtics", -185),
                optic_row("o2", "Moneyline", "Los Angeles Lakers", 160),
                optic_row("o3", "Point Spread", "Boston Celtics", -110, points=-4.5, grouping_key="default:-4.5"),
                optic_row("o4", "Total Points", "", -115, selection_line="over", points=228.5, name="Over 228.5"),
                optic_row(
                    "o5", "Player Points", "Jayson Tatum", 105, selection_line="under", points=27.5, player_id="p",
                ),
            ],
        }
    ]
}  # fmt: skip


def optic_frame(kind: str, *rows: Json) -> Json:
    stamped = [row | {"fixture_id": "20260209F1", "league": "NBA", "sport": "basketball"} for row in rows]
    return {"data": stamped, "entry_id": "1730079534820-2", "type": kind}


FRAMES: list[tuple[str, Any]] = [
    ("odds", optic_frame("odds", optic_row("o1", "Moneyline", "Boston Celtics", -200, limits={"max_stake": 400}))),
    ("locked-odds", optic_frame("locked-odds", optic_row("o2", "Moneyline", "Los Angeles Lakers", 160))),
    (
        "fixture-status",
        {
            "data": {"fixture_id": "20260209F1", "old_status": "unplayed", "new_status": "live"},
            "entry_id": "1730079534821-0",
        },
    ),
]

# ---- Betfair ----


def definition(market_type: str = "MATCH_ODDS", **more: Any) -> Json:
    return {
        "bspMarket": False, "turnInPlayEnabled": True, "persistenceEnabled": True, "marketBaseRate": 5.0,
        "eventId": "33", "eventTypeId": "7522", "numberOfWinners": 1, "bettingType": "ODDS", "marketType": market_type,
        "marketTime": "2026-02-09T00:30:00.000Z", "suspendTime": "2026-02-09T00:30:00.000Z", "bspReconciled": False,
        "complete": True, "inPlay": False, "crossMatching": True, "runnersVoidable": False, "numberOfActiveRunners": 2,
        "betDelay": 0, "status": "OPEN", "version": 1, "regulators": ["MR_INT"], "discountAllowed": True,
        "timezone": "GMT", "openDate": "2026-02-09T00:30:00.000Z", "eventName": "Boston Celtics v Los Angeles Lakers",
        "runners": [
            {"status": "ACTIVE", "sortPriority": 1, "id": 11, "name": "Boston Celtics"},
            {"status": "ACTIVE", "sortPriority": 2, "id": 12, "name": "Los Angeles Lakers"},
        ],
        **more,
    }  # fmt: skip


def ladder(runner: int, *levels: tuple[float, float], hc: float | None = None) -> Json:
    change: Json = {"id": runner, "batb": [[at, price, size] for at, (price, size) in enumerate(levels)]}
    return change | {"batl": [[0, 3.0, 0]]} | ({} if hc is None else {"hc": hc})


def mcm(*changes: Json, **more: Any) -> Json:
    return {"op": "mcm", "id": 2, "clk": "AAAA", "pt": 1770573590000, "mc": list(changes), **more}


IMAGE = mcm(
    {
        "id": "1.2001", "img": True, "tv": 100.5, "marketDefinition": definition(),
        "rc": [ladder(11, (1.56, 210.0), (1.55, 400.0)), ladder(12, (2.7, 90.0), (2.68, 500.0))],
    },
    ct="SUB_IMAGE", initialClk="IIII", clk="AAAA", conflateMs=0, heartbeatMs=5000,
)  # fmt: skip
LINES: list[Json] = [
    {"op": "connection", "connectionId": "c"},
    {"op": "status", "id": 1, "statusCode": "SUCCESS", "connectionsAvailable": 9},
    IMAGE,
    mcm({"id": "1.2001", "con": True, "rc": [{"id": 11, "batb": [[0, 1.57, 20.0]]}]}, clk="AAAB"),
    {"op": "mcm", "id": 2, "clk": "AAAC", "pt": 1770573595000, "ct": "HEARTBEAT"},
]

# ---- files ----

SEASON = (
    b"\xef\xbb\xbfDiv,Date,Time,HomeTeam,AwayTeam,FTHG,FTAG,FTR,HTHG,HTAG,HTR,HS,AS,HC,AC,B365H,B365D,B365A,PSH,PSD,PSA,"
    b"MaxH,MaxD,MaxA,B365>2.5,B365<2.5,P>2.5,P<2.5,AHh,B365AHH,B365AHA,B365CH,B365CD,B365CA,PCAHH,PCAHA,AHCh\r\n"
    b"E0,17/08/2025,16:30,Arsenal,Wolves,2,0,H,1,0,H,18,9,8,2,1.17,8,15,1.19,7.9,16.2,1.2,8.5,17,1.5,2.62,1.53,2.65,"
    b"-2,1.95,1.98,1.18,7.5,15,2.01,1.9,-2.25\r\n"
    b"E0,23/12/25,,Fulham,Chelsea,1,2,A,,,,,,,,3.1,3.5,2.25,,,,3.2,3.6,2.3,,,,,,,,,,,,,\r\n"
)
TABLE = (
    b"sportsbook,event_id,sport,home_team,away_team,market_type,selection,odds_american,line\n"
    b"pinnacle,e1,basketball,Boston Celtics,Los Angeles Lakers,moneyline,Boston Celtics,-180,\n"
    b"pinnacle,e1,basketball,Boston Celtics,Los Angeles Lakers,moneyline,Los Angeles Lakers,+165,\n"
)


class Sample(NamedTuple):
    """A payload and the reader it goes into: `make` gives a reader, with what came before already read."""

    data: bytes
    make: Callable[[], Callable[[bytes], Any]]


def _the_odds_api(*before: Any) -> Callable[[], Callable[[bytes], Payload]]:
    def make() -> Callable[[bytes], Payload]:
        reader = TheOddsApi(markets=MARKETS)
        for given in before:
            reader.read(encoded(given), ASKED)
        return Bound(reader, lambda data: reader.read(data, ASKED))

    return make


class Bound:
    """Reads with a reader, and holds it, so that what it remembers can be compared."""

    def __init__(self, reader: Any, read: Callable[[bytes], Payload]) -> None:
        self.reader, self._read = reader, read

    def __call__(self, data: bytes) -> Payload:
        return self._read(data)


def _stream(name: str, before: list[tuple[str, Any]]) -> Callable[[], Bound]:
    def make() -> Bound:
        reader = InterfaceStream()
        for event, given in before:
            reader.read(event, encoded(given))
        return Bound(reader, lambda data: reader.read(name, data))

    return make


def _optic(name: str = "") -> Callable[[], Bound]:
    def make() -> Bound:
        reader = OpticOdds()
        if not name:
            return Bound(reader, lambda data: reader.read(data, ["DraftKings"]))
        reader.read(encoded(FIXTURES), ["DraftKings"])
        return Bound(reader, lambda data: reader.frame(name, data))

    return make


def _betfair(*before: Json) -> Callable[[], Bound]:
    def make() -> Bound:
        reader = BetfairMarkets()
        for line in before:
            reader.read(encoded(line))
        return Bound(reader, reader.read)

    return make


POLYMARKET = [
    game_event(
        offer("moneyline"),
        offer("spreads", ident="0x2", tokens=("s1", "s2"), line=-2.5),
        offer("points", ("Yes", "No"), "0x3", ("p1", "p2"), line="9.5", groupItemTitle="A. Guard: Points O/U 9.5"),
    ),
    match(*three_way()),
]
BOOKS = [book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)]), book("y0", [], [(0.3, 1)])]
CHANGE_OF_BOOK = [
    change("t1", "SELL", "0.54", "10", ("0.53", "0.54")),
    {"event_type": "best_bid_ask", "asset_id": "t2", "best_bid": "0.45", "best_ask": "0.47", "timestamp": "3000"},
]


def _polymarket(how: str) -> Callable[[], Bound]:
    def make() -> Bound:
        reader, league = PolymarketMarkets(), League("nfl", "1", "away")

        def events(data: bytes) -> Payload:
            return reader.list_events([read_events_page(data)], league, POLYMARKET_NOW)

        if how == "events":
            return Bound(reader, events)
        events(encoded(POLYMARKET))
        if how == "books":
            return Bound(reader, lambda data: reader.read_books(data, ["t1", "t2", "y0", "n0"], POLYMARKET_NOW))
        reader.read(encoded(BOOKS), POLYMARKET_NOW)
        return Bound(reader, lambda data: reader.read(data, POLYMARKET_NOW))

    return make


def _kalshi(read: Callable[[KalshiMarkets, bytes], Payload]) -> Callable[[], Bound]:
    """A reader with a game and its markets, of which one is streamed."""

    def make() -> Bound:
        reader, now = KalshiMarkets(), kalshi.START
        reader.add_events("KXNFLGAME", [encoded(kalshi.event_page(kalshi.milestone()))], now)
        reader.add_targets(encoded(kalshi.targets_page()), kalshi.TARGETS, now)
        reader.read_markets("KXNFLGAME", [encoded(kalshi.markets_page(*kalshi.winners()))], now)
        reader.read(encoded(kalshi.snapshot(f"{kalshi.EVENT}-SEA", 1, [("0.5900", "9")], [("0.3900", "8")])), now)
        return Bound(reader, lambda data: read(reader, data))

    return make


def _kalshi_samples() -> dict[str, Sample]:
    sea, now = f"{kalshi.EVENT}-SEA", kalshi.START
    book = kalshi.order_book([("0.5900", "152.00")], [("0.4000", "11392.59"), ("0.3900", "1")])
    lists: dict[str, tuple[Any, Callable[[KalshiMarkets, bytes], Payload]]] = {
        "events": (
            kalshi.event_page(kalshi.milestone()), lambda reader, data: reader.add_events("KXNFLGAME", [data], now)
        ),
        "markets": (
            kalshi.markets_page(*kalshi.winners(), cursor="x"),
            lambda reader, data: reader.read_markets("KXNFLGAME", [data], now),
        ),
        "targets": (kalshi.targets_page(), lambda reader, data: reader.add_targets(data, kalshi.TARGETS, now)),
        "books": (
            {"orderbooks": [{"ticker": sea, "orderbook_fp": book}]},
            lambda reader, data: reader.read_order_books(data, now),
        ),
        "fee_changes": (
            kalshi.fee_changes(events=[(kalshi.EVENT, None, 0.5)], series=[("KXNFLGAME", "quadratic", 1)]),
            lambda reader, data: reader.add_fee_changes([data], [data]),
        ),
        "snapshot": (
            kalshi.snapshot(sea, 2, [("0.5800", "300.00")], [("0.4100", "20.00")]),
            lambda reader, data: reader.read(data, now),
        ),
        "delta": (kalshi.delta(sea, 2, "0.4000", "-8.00"), lambda reader, data: reader.read(data, now)),
        "status": (kalshi.lifecycle(sea, 1, "deactivated"), lambda reader, data: reader.read(data, now)),
        "strike": (
            kalshi.lifecycle(sea, 1, "metadata_updated", floor_strike=4.5, strike_type="greater"),
            lambda reader, data: reader.read(data, now),
        ),
        "fee": (kalshi.fee_update(1, "quadratic", 0.5), lambda reader, data: reader.read(data, now)),
    }  # fmt: skip
    return {f"kalshi_{name}": Sample(encoded(given), _kalshi(read)) for name, (given, read) in lists.items()}


SX_MARKETS = sx_bet.page(
    sx_bet.winner(), sx_bet.soccer("0xt", ("Over 2.5", "Under 2.5"), 2, line=2.5, mainLine=True), key="abc"
)  # fmt: skip
SX_BOOK = sx_bet.book([(0.5, 5.0), (0.49, 1.0)], [(0.48, 3.0)])


def _sx_bet(how: str) -> Callable[[], Bound]:
    def make() -> Bound:
        reader, now = SxBetMarkets(), sx_bet.START
        leagues = read_leagues(encoded(sx_bet.sports_list()), encoded(sx_bet.league_list()))

        def read(markets: bytes, book: bytes) -> Payload:
            listing = read_markets([markets], leagues, now)
            return reader.read("nfl", listing, {one.hash: Received(book, now) for one in listing.markets})

        read(encoded(SX_MARKETS), encoded(SX_BOOK))
        if how == "markets":
            return Bound(reader, lambda data: read(data, encoded(SX_BOOK)))
        return Bound(reader, lambda data: read(encoded(SX_MARKETS), data))

    return make


SMARKETS: dict[str, Any] = {
    "events": {"events": [smarkets.event()], "pagination": {"next_page": None}},
    "markets": {"markets": [smarkets.market(), smarkets.market("m2", "OVER_UNDER", "2.5")]},
    "contracts": {"contracts": [*smarkets.RESULT, *smarkets.OVER_UNDER]},
    "quotes": {f"c{n}": smarkets.quotes([(4500, 100.0), (4600, 9.0)], [(4300, 50.0)]) for n in range(1, 6)},
}


def _smarkets(how: str) -> Callable[[], Bound]:
    def make() -> Bound:
        reader, now = SmarketsPrices(), smarkets.START

        def read(**given: bytes) -> Payload:
            bodies = {name: encoded(value) for name, value in SMARKETS.items()} | given
            listed = read_events([bodies["events"]], now)
            own = smarkets_markets([bodies["markets"]], listed, ("WINNER_3_WAY", "OVER_UNDER"))
            return reader.read("x", listed.games, own, [bodies["contracts"]], [Received(bodies["quotes"], now)])

        read()
        return Bound(reader, lambda data: read(**{how: data}))

    return make


MATCHBOOK = matchbook.page(matchbook.event(), matchbook.event(matchbook.TOTAL | {"id": 7}, ident=101))


def _matchbook() -> Bound:
    reader, sports, now = MatchbookPrices(), read_sports(encoded(matchbook.sports_list())), matchbook.START
    return Bound(reader, lambda data: reader.read("x", [Received(data, now)], sports, now))


def _sportsgameodds() -> Bound:
    reader, now = SportsGameOdds(), sportsgameodds.START
    return Bound(reader, lambda data: reader.read("NFL", [Received(data, now)]))


def _odds_api_io() -> Bound:
    reader, now = OddsApiIo(), odds_api_io.START
    return Bound(reader, lambda data: reader.read("basketball/usa-nba", [Received(data, now)]))


SAMPLES: dict[str, Sample] = {
    "sportsgameodds": Sample(encoded(sportsgameodds.page(sportsgameodds.event())), _sportsgameodds),
    "odds_api_io": Sample(encoded([odds_api_io.event()]), _odds_api_io),
    **{f"smarkets_{name}": Sample(encoded(given), _smarkets(name)) for name, given in SMARKETS.items()},
    "matchbook": Sample(encoded(MATCHBOOK), _matchbook),
    "sx_bet_markets": Sample(encoded(SX_MARKETS), _sx_bet("markets")),
    "sx_bet_book": Sample(encoded(SX_BOOK), _sx_bet("book")),
    **_kalshi_samples(),
    "polymarket_events": Sample(encoded(POLYMARKET), _polymarket("events")),
    "polymarket_books": Sample(encoded(BOOKS), _polymarket("books")),
    "polymarket_changes": Sample(encoded(CHANGE_OF_BOOK), _polymarket("changes")),
    "the_odds_api": Sample(encoded(FEATURED), _the_odds_api()),
    "the_odds_api_again": Sample(encoded(FEATURED), _the_odds_api(FEATURED)),
    "the_odds_api_props": Sample(encoded(PROPS), _the_odds_api(FEATURED)),
    "the_odds_api_past": Sample(encoded(PAST), _the_odds_api()),
    "page": Sample(encoded(PAGE), lambda: read_page),
    "page_meta": Sample(encoded(META_PAGE), lambda: read_page),
    "page_changes": Sample(encoded(CHANGES), lambda: read_page),
    **{
        f"stream_{at}_{name}": Sample(encoded(given), _stream(name, STREAM[:at]))
        for at, (name, given) in enumerate(STREAM)
    },
    "optic": Sample(encoded(FIXTURES), _optic()),
    **{f"optic_{name}": Sample(encoded(given), _optic(name)) for name, given in FRAMES},
    **{f"betfair_{at}": Sample(encoded(line), _betfair(*LINES[:at])) for at, line in enumerate(LINES)},
    "season": Sample(SEASON, lambda: football_data.read),
    "table": Sample(TABLE, lambda: lambda data: table.read(data, ".csv")),
    "rows_json": Sample(encoded(ROWS), lambda: lambda data: table.read(data, ".json")),
    "rows_ndjson": Sample(b"\n".join(map(encoded, ROWS)), lambda: lambda data: table.read(data, ".ndjson")),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_read_whole(name: str) -> None:
    sample = SAMPLES[name]
    found = sample.make()(sample.data)
    payload = getattr(found, "payload", found)
    assert not payload.refused
