"""What clients that others wrote for the venues read from our local servers, and in what we send.

A field that a client does not know, or reads as something else, is one that the venue has otherwise.
"""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from feeds.test_samples import IMAGE
from support import betfair, kalshi, matchbook, odds_api_io, polymarket, sportsgameodds
from support.local_servers import new_hub, running, until
from support.official import ran

from oddsengine.sources.betfair_client import BetfairSource
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import BetfairSettings
from oddsengine.testing.local_servers import Answering, Request, iso, served
from oddsengine.testing.source_server import SourceServer

pytestmark = pytest.mark.exhaustive  # the clients are installed first


def without_contract(server: SourceServer, prefix: str = "") -> Any:
    """A server that takes what other clients ask, which our contract does not have."""
    server.check = None

    async def serve(request: Request, answering: Answering) -> None:
        await server(request._replace(path=request.path.removeprefix(prefix)), answering)

    return serve


def test_odds_api_io() -> None:
    server = odds_api_io.Aggregator(odds_api_io.event(ident=7))
    code = """
import json, sys
from odds_api import OddsAPIClient
client = OddsAPIClient("0123456789abcdef", base_url=sys.argv[1])
print(json.dumps([client.get_events(sport="basketball", league="usa-nba"),
    client.get_odds_for_multiple_events(event_ids="7", bookmakers="Bet365")]))
"""
    with served(without_contract(server)) as url:
        events, odds = ran("odds_api", code, url)
    assert events == [odds_api_io.listed(7)]
    assert odds == server.events


def test_sportsgameodds() -> None:
    server = sportsgameodds.Aggregator()
    code = """
import json, sys
from sports_odds_api import SportsGameOdds
client = SportsGameOdds(api_key_header="k", base_url=sys.argv[1])
page = client.events.get(league_id="NFL", limit=50)
unknown = [one.model_extra for event in page.data for one in (event.status, *event.odds.values(),
    *(price for odd in event.odds.values() for price in odd.by_bookmaker.values()))]
print(json.dumps([page.data[0].to_dict(mode="json"), [extra for extra in unknown if extra]]))
"""
    with served(without_contract(server)) as url:
        event, unknown = ran("sports_odds_api", code, url)
    assert event["odds"] == server.events[0]["odds"]
    assert event["status"]["startsAt"] == server.events[0]["status"]["startsAt"]
    assert event["teams"] == server.events[0]["teams"]
    assert unknown == []


def test_matchbook() -> None:
    server = matchbook.Matchbook()
    code = """
import json, sys, dataclasses
from matchbook.client import MatchbookClient
client = MatchbookClient("me", "secret", base_url=sys.argv[1])
found = client.get_events(sport_ids=[15], include_prices=True, odds_type="DECIMAL", exchange_type="back-lay",
    currency="GBP", offset=0, per_page=100)
def plain(one):
    if dataclasses.is_dataclass(one):
        return {field.name: plain(getattr(one, field.name, None)) for field in dataclasses.fields(one)}
    return [plain(each) for each in one] if isinstance(one, list) else one
print(json.dumps(plain(found), default=str))
"""
    with served(without_contract(server, "/edge/rest")) as url:
        found = ran("matchbook", code, url)
    (sent,), (read,) = server.events, found["events"]
    assert (read["id"], read["name"], read["status"]) == (sent["id"], sent["name"], sent["status"])
    for of, market in zip(sent["markets"], read["markets"], strict=True):
        assert (market["id"], market["name"], market["market_type"]) == (of["id"], of["name"], of["market-type"])
        for one, runner in zip(of["runners"], market["runners"], strict=True):
            assert (runner["name"], runner["handicap"]) == (one["name"], one.get("handicap"))
            prices = [(price["side"], price["odds"], price["available-amount"]) for price in one["prices"]]
            assert [(price["side"], price["odds"], price["available_amount"]) for price in runner["prices"]] == prices


WHOLE = {
    name: iso(kalshi.START) for name in ("created_time", "updated_time", "open_time", "latest_expiration_time")
} | dict.fromkeys(
    ("last_price_dollars", "previous_yes_bid_dollars", "previous_yes_ask_dollars", "previous_price_dollars"), "0.5000"
)
"""What a market of Kalshi also has, which is not read."""


def test_kalshi() -> None:
    exchange = kalshi.Exchange()
    more: dict[str, Any] = {
        "settlement_timer_seconds": 60, "can_close_early": True, "notional_value_dollars": "1.0000",
        "settlement_bounds_type": "default", "expiration_value": "", "rules_primary": "", "rules_secondary": "",
        "price_level_structure": "linear_cent", "price_ranges": [{"start": "0", "end": "1", "step": "0.01"}],
        "fractional_trading_enabled": False,
    }  # fmt: skip
    exchange.markets["KXNFLGAME"] = [one | WHOLE | more for one in kalshi.winners()]
    exchange.books = {f"{kalshi.EVENT}-SEA": kalshi.order_book([("0.5700", "100.00")], [("0.4200", "200.00")])}
    code = """
import json, sys
from kalshi_python_sync import ApiClient, Configuration
from kalshi_python_sync.api.events_api import EventsApi
from kalshi_python_sync.api.market_api import MarketApi
client = ApiClient(Configuration(host=sys.argv[1]))
events = EventsApi(client).get_events(limit=200, status="open", series_ticker="KXNFLGAME", with_milestones=True)
markets = MarketApi(client).get_markets(limit=1000, status="open", series_ticker="KXNFLGAME", mve_filter="exclude")
print(json.dumps([events.model_dump(mode="json"), markets.model_dump(mode="json")]))
"""
    with served(exchange) as url:
        events, markets = ran("kalshi_python_sync", code, f"{url}/trade-api/v2")
    assert [one["event_ticker"] for one in events["events"]] == [kalshi.EVENT]
    assert events["milestones"][0]["details"] == exchange.events[0]["details"]
    sent = exchange.markets["KXNFLGAME"]
    names = ("ticker", "status", "yes_sub_title", "yes_ask_dollars", "yes_bid_dollars", "strike_type", "market_type")
    for one, read in zip(sent, markets["markets"], strict=True):
        assert {name: str(read[name]) for name in names} == {name: one[name] for name in names}


def test_polymarket() -> None:
    winner = polymarket.offer("moneyline", ident=f"0x{1:064x}", gameStartTime=polymarket.starts(2))
    exchange = polymarket.Exchange(polymarket.event(winner))
    code = """
import dataclasses, json, sys
from polymarket import PublicClient
from polymarket.environments import PRODUCTION, _create_environment
config = dataclasses.replace(PRODUCTION._config, gamma_url=sys.argv[1], clob_url=sys.argv[1])
client = PublicClient(_create_environment(name="here", config=config))
books = client.get_order_books(token_ids=["t1", "t2"])
events = [event for page in client.list_events(closed=False) for event in page.items]
print(json.dumps([[one.model_dump(mode="json") for one in books], [one.model_dump(mode="json") for one in events]]))
"""
    with served(exchange.answer) as url:
        books, events = ran("polymarket", code, url)
    for token, book in zip(("t1", "t2"), books, strict=True):
        for side in ("bids", "asks"):
            given = [(Decimal(str(price)), Decimal(str(size))) for price, size in exchange.books[token][side]]
            assert [(Decimal(level["price"]), Decimal(level["size"])) for level in book[side]] == given
    assert [event["slug"] for event in events] == [exchange.events[0]["slug"]]


def test_polymarket_order_books() -> None:
    exchange = polymarket.Exchange()
    code = """
import json, sys
from py_clob_client_v2.client import ClobClient
from py_clob_client_v2.clob_types import BookParams
print(json.dumps(ClobClient(sys.argv[1], chain_id=137).get_order_books([BookParams(token_id="t1")])))
"""
    with served(exchange.answer) as url:
        (book,) = ran("py_clob_client_v2", code, url)
    assert book["bids"] == polymarket.levels((0.53, 40))
    assert book["asks"] == polymarket.levels((0.55, 100))


def test_betfair_reads_what_we_send() -> None:
    """Its parser is strict: a field that the stream does not have is an error."""

    async def sent() -> list[Any]:
        async with betfair.betfair(betfair.Market("1.1")) as served:
            stream = served.stream
            feed = BetfairSettings(
                name="b", kind="betfair", key_env="K", session_env="S", sports=("7522",), timeout=5.0, **served.urls
            )
            source = BetfairSource(
                feed, {"key_env": "appkey", "session_env": "token", "user_env": "", "password_env": ""}, Secrets()
            )
            async with running(new_hub(), source):
                await until(lambda: bool(stream.asked), "a subscription")
        return [*stream.logins[:1], *stream.asked[:1]]

    code = """
import enum, json, sys, msgspec
from betfair_parser.spec.streaming import Authentication, MarketSubscription
def plain(one):
    if isinstance(one, msgspec.Struct):
        names = zip(one.__struct_fields__, one.__struct_encode_fields__)
        return {name: plain(getattr(one, own)) for own, name in names}
    if isinstance(one, (list, tuple, set, frozenset)):
        return [plain(each) for each in one]
    return one.value if isinstance(one, enum.Enum) else one
given = zip(json.loads(sys.argv[1]), (Authentication, MarketSubscription))
print(json.dumps([plain(msgspec.json.decode(json.dumps(text), type=kind, strict=True)) for text, kind in given]))
"""
    messages = asyncio.run(sent())
    read = ran("betfair_parser", code, json.dumps(messages))
    for message, back in zip(messages, read, strict=True):
        assert contains({"op": message["op"]} | back, message), (back, message)


def test_betfair_changes() -> None:
    (image,) = IMAGE["mc"]
    code = """
import json, sys
from betfair_parser.spec.streaming import stream_decode
(change,) = stream_decode(sys.argv[1]).mc
definition = change.market_definition
kind = getattr(definition.market_type, "value", definition.market_type)
print(json.dumps([change.id, definition.status.value, kind,
    [[runner.id, [[level.level, level.price, level.volume] for level in runner.batb]] for runner in change.rc]]))
"""
    ident, status, kind, runners = ran("betfair_parser", code, json.dumps(IMAGE))
    assert (ident, status, kind) == ("1.2001", "OPEN", "MATCH_ODDS")
    assert runners == [[one["id"], one["batb"]] for one in image["rc"]]


def contains(whole: Any, part: Any) -> bool:
    """Whether what a client read has all that was sent; the order in lists of filters does not matter."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and contains(whole[name], own) for name, own in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and sorted(map(str, whole)) == sorted(map(str, part))
    return bool(whole == part)
