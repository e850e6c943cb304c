"""The client that users of the interface already have, `sharpapi`, against a running server: every helper of it.

Where the contract says one thing and the client expects another the contract wins; those helpers are listed in
`CONFLICTS`, and each is shown to be no more than that: the server answers as the contract says.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import pytest
from sharpapi import AsyncSharpAPI, SharpAPI
from sharpapi.exceptions import (
    AuthenticationError,
    RateLimitedError,
    SharpAPIError,
    TierRestrictedError,
    ValidationError,
)
from sharpapi.models import (
    APIKey,
    ArbitrageOpportunity,
    Event,
    EVOpportunity,
    League,
    LowHoldOpportunity,
    MiddleOpportunity,
    OddsLine,
    Sport,
    Sportsbook,
)
from support.service_running import PATIENCE_S, TIER_IDS, Running

Ids = dict[str, str]

# Helper, what it is given, what its rows are. Every parameter that a helper has is given somewhere.
ROWS: list[tuple[str, dict[str, Any], type]] = [
    ("odds.get", {}, OddsLine),
    ("odds.get", {"sportsbook": ["draftkings", "fanduel"], "sport": "{sport}", "league": ["{league}"]}, OddsLine),
    ("odds.get", {"add_sportsbook": "circa", "market": ["main", "props"], "event": "{event}"}, OddsLine),
    ("odds.get", {"live": False, "sort": "-odds_decimal", "limit": 200, "offset": 10}, OddsLine),
    ("odds.best", {}, OddsLine),
    ("odds.best", {"sport": "{sport}", "league": "{league}", "market": "main", "event": "{event}", "live": False,
                   "sportsbook": "draftkings", "add_sportsbook": "circa", "limit": 5, "offset": 1}, OddsLine),
    ("ev.get", {}, EVOpportunity),
    ("ev.get", {"min_ev": 1.0, "max_ev": 20.0, "max_market_width": 20.0, "max_odds_age": 600, "sort": "-kelly",
                "live": False, "limit": 5, "offset": 1}, EVOpportunity),
    ("ev.get", {"sport": ["basketball", "football", "hockey", "baseball", "soccer"], "market": "main",
                "sportsbook": "draftkings", "add_sportsbook": ["novig", "betrivers"], "min_market_width": 0.0,
                "date_range": "week"}, EVOpportunity),
    ("arbitrage.get", {"min_profit": 0.5}, ArbitrageOpportunity),
    ("arbitrage.get", {"min_profit": -5.0, "max_odds_age": 600, "sort": "sport", "group": "best", "limit": 3},
     ArbitrageOpportunity),
    ("arbitrage.get", {"sort": "time", "market": "main", "sport": "{sport}", "live": False, "min_profit": -5.0,
                       "sportsbook": ["draftkings", "fanduel"], "add_sportsbook": "novig"}, ArbitrageOpportunity),
    ("arbitrage.get", {"sort": "market", "min_profit": -5.0, "offset": 1}, ArbitrageOpportunity),
    ("middles.get", {}, MiddleOpportunity),
    ("middles.get", {"max_odds_age": 600, "state": "nj", "sort": "ev", "min_size": 0.5, "limit": 3},
     MiddleOpportunity),
    ("low_hold.get", {"max_hold": 5.0}, LowHoldOpportunity),
    ("low_hold.get", {"max_hold": 5.0, "state": "nj", "sort": "hold", "limit": 3}, LowHoldOpportunity),
    ("sports.list", {}, Sport),
    ("leagues.list", {}, League),
    ("leagues.list", {"sport": "{sport}"}, League),
    ("sportsbooks.list", {}, Sportsbook),
    ("events.list", {}, Event),
    ("events.list", {"sport": "{sport}", "league": "{league}", "live": False, "limit": 5, "offset": 0}, Event),
    ("keys.list", {}, APIKey),
]  # fmt: skip
ONE: list[tuple[str, str, type]] = [
    ("sports.get", "sport", Sport),
    ("leagues.get", "league", League),
    ("sportsbooks.get", "book", Sportsbook),
    ("events.get", "event", Event),
]
# Helper, what it is given, what it fails with, and the path and what the contract has there; where that is a refusal,
# a word of its message.
CONFLICTS: list[tuple[str, Any, type[Exception], str, str]] = [
    ("events.markets", ["{event}"], pydantic.ValidationError, "/events/{event}/markets", "data of strings"),
    ("odds.comparison", ["{event}"], pydantic.ValidationError, "/odds/comparison?event={event}", "data is an object"),
    ("odds.batch", [["{event}"]], pydantic.ValidationError, "POST /odds/batch", "data is an object"),
    ("arbitrage.csv", [], json.JSONDecodeError, "/opportunities/arbitrage?format=csv", "a file"),
    ("odds.get", {"group_by": "event"}, pydantic.ValidationError, "/odds?group_by=event", "events with odds"),
    ("odds.get", {"fields": ["id", "odds_decimal"]}, pydantic.ValidationError, "/odds?fields=id,odds_decimal",
     "two fields"),
    ("odds.get", {"limit": 500}, ValidationError, "/odds?limit=500", "limit"),
    ("ev.get", {"limit": 201}, ValidationError, "/opportunities/ev?limit=201", "200"),
]  # fmt: skip
OTHERS = {  # each in a test of its own
    "account.me", "account.usage", "keys.create", "keys.rotate", "keys.revoke", "odds.closing", "gamestate.get",
}  # fmt: skip
SYNC_ONLY = {"arbitrage.csv"}
STREAMS = {"stream.odds", "stream.opportunities", "stream.all", "stream.event", "stream.gamestate"}


class Both:
    """The two clients behind one face: what is called by name runs in either."""

    def __init__(self, make: type, origin: str, key: str, **more: Any) -> None:
        self._loop = asyncio.new_event_loop() if make is AsyncSharpAPI else None
        self.client = make(key, base_url=origin, timeout=PATIENCE_S, **more)

    def __call__(self, name: str, *given: Any, **words: Any) -> Any:
        resource, method = name.split(".")
        found = getattr(getattr(self.client, resource), method)(*given, **words)
        return self._loop.run_until_complete(found) if self._loop is not None else found

    def close(self) -> None:
        if self._loop is None:
            self.client.close()
        else:
            self._loop.run_until_complete(self.client.close())
            self._loop.close()


Make = Callable[..., Both]


@pytest.fixture(params=[SharpAPI, AsyncSharpAPI], ids=["sync", "async"])
def make(request: pytest.FixtureRequest, service: Running) -> Iterator[Make]:
    made: list[Both] = []

    def one(tier: str = "enterprise", key: str = "", **more: Any) -> Both:
        service.clock.pass_minute()
        made.append(Both(request.param, service.origin, key or f"demo_{tier}", **more))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def ids(service: Running) -> Ids:
    with service.client() as client:
        event = max(client.get("/events?live=false").json()["data"], key=lambda each: len(each["markets"]))
    return {"event": event["id"], "sport": event["sport"], "league": event["league"], "book": "draftkings"}


def filled(value: Any, ids: Ids) -> Any:
    """Something with ids in the place of their names."""
    if isinstance(value, str):
        return value.format(**ids)
    if isinstance(value, list):
        return [filled(each, ids) for each in value]
    return {name: filled(each, ids) for name, each in value.items()} if isinstance(value, dict) else value


def helpers(client: Any) -> set[str]:
    return {
        f"{resource}.{name}"
        for resource, held in vars(client).items()
        if not resource.startswith("_")
        for name, _ in inspect.getmembers(held, callable)
        if not name.startswith("_")
    }


def test_every_helper_is_here(make: Make) -> None:
    tested = {row[0] for row in ROWS} | {row[0] for row in ONE} | {row[0] for row in CONFLICTS} | OTHERS
    client = make()
    if isinstance(client.client, SharpAPI):
        assert helpers(client.client) == tested | STREAMS
    else:
        assert helpers(client.client) == tested - SYNC_ONLY


@pytest.mark.parametrize(("name", "given", "kind"), ROWS, ids=[f"{name}-{at}" for at, (name, *_) in enumerate(ROWS)])
def test_lists(make: Make, ids: Ids, name: str, given: dict[str, Any], kind: type) -> None:
    answer = make()(name, **filled(given, ids))
    assert answer.success is True
    assert answer.data
    assert all(isinstance(row, kind) for row in answer.data)
    if name.startswith(("odds", "ev", "arbitrage", "middles", "low_hold", "events")):
        assert answer.meta.count == len(answer.data) <= answer.meta.total


@pytest.mark.parametrize(("name", "word", "kind"), ONE, ids=[row[0] for row in ONE])
def test_single_things(make: Make, ids: Ids, name: str, word: str, kind: type) -> None:
    found = make()(name, ids[word])
    assert isinstance(found, kind)
    assert found.id == ids[word]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "given", "error", "path", "what"), CONFLICTS, ids=[f"{row[0]} {row[4]}" for row in CONFLICTS]
)
def test_known_conflicts(
    make: Make, service: Running, ids: Ids, name: str, given: Any, error: type[Exception], path: str, what: str
) -> None:
    """The helper cannot read what the contract says, or asks for what it does not have."""
    both = make()
    if name in helpers(both.client):
        words = filled(given, ids)
        with pytest.raises(error):
            both(name, **words) if isinstance(words, dict) else both(name, *words)
    with service.client() as client:
        if path.startswith("POST "):
            answer = client.post(path[5:], json={"event_ids": [ids["event"]]})
        else:
            answer = client.get(path.format(**ids))
    if error is ValidationError:
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "validation_error")
        assert what in answer.json()["error"]["message"]
        return
    assert answer.status_code == 200
    if what == "a file":
        assert answer.headers["content-type"].startswith("text/csv")
        return
    data = answer.json()["data"]
    shown = {
        "data of strings": lambda: all(isinstance(each, str) for each in data),
        "data is an object": lambda: all(isinstance(each, list) for each in data.values()),
        "events with odds": lambda: all(each["event_id"] and each["odds"] for each in data),
        "two fields": lambda: all(set(each) == {"id", "odds_decimal"} for each in data),
    }
    assert shown[what]()


def test_a_minus_turns_an_order(make: Make) -> None:
    """The client calls the falling order `-profit`; in the contract `profit` falls, and a minus turns it."""
    client = make()
    plain, turned = (
        [row.profit_percent for row in client("arbitrage.get", sort=sort, min_profit=-5.0, limit=200).data]
        for sort in ("profit", "-profit")
    )
    assert plain == sorted(plain, reverse=True)
    assert turned == sorted(turned)
    assert plain[0] > turned[0]


def test_closing_lines(make: Make, service: Running) -> None:
    event = service.close_an_event()
    found = make("pro")("odds.closing", event)
    assert set(found.books) == {"draftkings", "fanduel", "pinnacle"}
    assert all(line.sportsbook == book for book, lines in found.books.items() for line in lines)
    assert all(line.market_segment == "full_game" for lines in found.books.values() for line in lines)
    assert (found.event_id, found.sport, found.league) == (event, "basketball", "nba")
    assert found.captured_at == found.event_start_time
    assert set(make("hobby")("odds.closing", event, sportsbook="fanduel").books) == {"fanduel"}
    with pytest.raises(SharpAPIError) as caught:
        make("pro")("odds.closing", "nothing")
    assert (caught.value.code, caught.value.status) == ("not_found", 404)


def test_game_states(make: Make) -> None:
    for found in (make("enterprise")("gamestate.get"), make("enterprise")("gamestate.get", "basketball")):
        assert isinstance(found, dict)
    with pytest.raises(TierRestrictedError) as caught:
        make("sharp")("gamestate.get")
    assert caught.value.required_tier == "enterprise"


def test_an_address_with_its_prefix(service: Running) -> None:
    with SharpAPI("demo_pro", base_url=f"{service.base}/") as client:
        assert client.sports.list().data


def test_what_rows_say_in_the_clients_words(make: Make, service: Running) -> None:
    client = make()
    with service.client() as plain:
        rows = {row["id"]: row for row in plain.get("/opportunities/ev").json()["data"]}
        prices = {row["id"]: row for row in plain.get("/odds").json()["data"]}
        holds = {row["id"]: row for row in plain.get("/opportunities/low_hold?max_hold=5").json()["data"]}
    for row in client("ev.get").data:
        told = rows[row.id]
        assert (row.event_id, row.event_name, row.market_type) == (told["game_id"], told["game"], told["market"])
        assert (row.ev_percentage, row.sharp_book) == (told["ev_percentage"], told["sharp_book"])
    for row in client("odds.get").data:
        told = prices[row.id]
        assert (row.probability, row.timestamp) == (told["odds_probability"], told["last_seen_at"])
        assert (row.is_active, row.market_segment) == (told["is_active"], told["market_segment"])
    for row in client("low_hold.get", max_hold=5.0).data:
        assert row.side1.odds.probability == holds[row.id]["side1"]["odds"]["implied_probability"]


def test_keys(make: Make) -> None:
    client = make("pro")
    made = client("keys.create", "from the client")
    assert made.key
    assert made.name == "from the client"
    turned = client("keys.rotate", made.id)
    assert turned.key not in (None, made.key)
    client("keys.revoke", made.id)
    assert {key.id: key.is_active for key in client("keys.list").data}[made.id] is False


def test_usage(make: Make) -> None:
    me = make("hobby")("account.me")
    assert (me.features.arbitrage, me.features.ev, me.features.streaming) == (True, False, False)
    assert me.limits.requests_per_minute == 120
    found = make("hobby")("account.usage")
    assert found["requests"]["limit"]["per_minute"] == 120
    assert found["streams"]["max"] == 0


@pytest.mark.parametrize("tier", TIER_IDS)
def test_limits_of_the_last_answer(make: Make, tier: str) -> None:
    client = make(tier)
    client("sports.list")
    limit = client.client.rate_limit
    assert limit.limit == {"free": 12, "hobby": 120, "pro": 300, "sharp": 1000, "enterprise": 6000}[tier]
    assert limit.remaining == limit.limit - 1
    assert limit.tier == tier
    assert limit.reset > 1e9


def test_bearer(make: Make) -> None:
    assert make("pro", auth_method="bearer")("odds.get", limit=1).data
    with pytest.raises(AuthenticationError):
        make(key="nobody", auth_method="bearer")("odds.get")


# Who, helper, what it is given, what the client makes of the refusal
REFUSED: list[tuple[str, str, list[Any], dict[str, Any], type[SharpAPIError], str, int]] = [
    ("nobody", "odds.get", [], {}, AuthenticationError, "unauthorized", 401),
    ("demo_hobby", "ev.get", [], {}, TierRestrictedError, "feature_required", 403),
    ("demo_free", "arbitrage.get", [], {}, TierRestrictedError, "tier_restricted", 403),
    ("demo_free", "odds.get", [], {"sportsbook": "pinnacle"}, TierRestrictedError, "tier_restricted", 403),
    ("demo_pro", "odds.get", [], {"limit": 500}, ValidationError, "validation_error", 400),
    ("demo_pro", "odds.get", [], {"sort": "colour"}, ValidationError, "validation_error", 400),
    ("demo_pro", "events.get", ["nothing"], {}, SharpAPIError, "not_found", 404),
]


@pytest.mark.parametrize(("key", "name", "given", "words", "kind", "code", "status"), REFUSED)
def test_refusals(
    make: Make, key: str, name: str, given: list[Any], words: dict[str, Any], kind: type[SharpAPIError], code: str,
    status: int,
) -> None:  # fmt: skip
    with pytest.raises(kind) as caught:
        make(key=key)(name, *given, **words)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert str(caught.value)
    if isinstance(caught.value, TierRestrictedError):
        assert caught.value.required_tier is not None
        assert caught.value.required_tier in str(caught.value)


def test_at_the_limit(make: Make) -> None:
    client = make("free")
    for _ in range(12):
        client("sports.list")
    with pytest.raises(RateLimitedError) as caught:
        client("sports.list")
    assert caught.value.code == "rate_limited"
    assert caught.value.retry_after is not None
    assert caught.value.retry_after >= 1
