"""Contracts: each is valid, says what is wrong with requests and documents, and our local servers keep to it."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.contract_payloads import UNHEARD_OF, payloads, unheard_of

from oddsengine.feeds.contract_types import NEW_FIELD, NEW_VALUE, OTHER, ContractError, parse
from oddsengine.feeds.venue_contracts import Request, load, read, venues
from oddsengine.sources import kind_names
from oddsengine.testing.contract_check import ContractCheck

HEAD = """
name = "Shop"
checked = 2026-11-29
tried = false
needs = []
not_read = []
[[sources]]
url = "https://example.com"
date = 2026-11-29
"""
SHOP = (
    HEAD
    + """
[pace.prices]
requests = 2
seconds = 60
[send.prices]
method = "GET"
path = "/leagues/{league}/prices"
path_fields = { league = "one of nba nfl" }
query = { ids = "comma list of integer up to 3", state = "list of state?", odds = "one of decimal american?" }
headers = { x-key = "text" }
pace = ["prices"]
answer = "prices"
[send.login]
method = "POST"
path = "/login"
form = { user = "text" }
[send.search]
method = "POST"
path = "/search"
body = "filter"
[send.stream]
method = "WEBSOCKET"
path = "/stream"
message = "command"
answer = "prices"
[read]
prices = "map of price"
[type.price]
odds = "number 1 to 1000"
state = "state"
line = "decimal or number?"
[type.filter]
sports = "list of text up to 2"
live = "boolean?"
[type.subscribe]
op = "text"
ids = "list of integer"
[choice.command]
by = "op"
of = { subscribe = "subscribe" }
[enum.state]
values = ["open", "for sale"]
decides = true
"""
)
PATH = "/leagues/nba/prices"
WELL: dict[str, Any] = dict(query={"ids": ["1,2"]}, headers={"x-key": "k", "host": "h"})


@pytest.mark.parametrize("venue", venues())
def test_contracts_are_valid_and_of_kinds_of_feeds(venue: str) -> None:
    table = load(venue)
    assert venue in kind_names()
    assert table.sends
    assert all(send.answer is not None for send in table.sends.values())


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('"number 1 to 1000"', '"number of 1"', "shop: price.odds: 'number of 1' is no type; allowed: text, "),
        ('"map of price"', '"map of prices"', "shop: prices: 'map of prices' is no type|'prices' is no type"),
        ('pace = ["prices"]', 'pace = ["odds"]', "shop: send.prices.pace: odds; allowed: prices"),
        ("{league}", "{sport}", "shop: send.prices.path_fields: league; needed: sport"),
        ('answer = "prices"\n[send.login]', "[send.login]\nanswer = 5", r"Expected `str`, got `int` - at `\$.send"),
        ("decides = true", "decide = true", "Object contains unknown field `decide`"),
        ("[type.filter]", "[type.other]\na = \"text\"\n[type.filter]", "shop: nothing refers to other"),
        ("[type.filter]", "[enum.price]\nvalues = []\n[type.filter]", "shop: price: more than one table of that name"),
        ("tried = false", "", "missing required field `tried`"),
        ("[[sources]]", "[[source]]", "unknown field `source`|missing required field `sources`"),
        ("name = ", "name ", "shop: "),
    ],
)  # fmt: skip
def test_a_contract_that_is_wrong_says_where(before: str, after: str, why: str) -> None:
    assert before in SHOP
    with pytest.raises(ContractError, match=why):
        read("shop", SHOP.replace(before, after, 1))


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"path": "/leagues/nba"}, 404, "GET /leagues/nba; allowed: GET /leagues/{league}/prices, POST /login, "),
        ({"method": "POST"}, 404, "POST /leagues/nba/prices; allowed: GET /leagues"),
        ({"path": "/leagues/xfl/prices"}, 400, "path.league: 'xfl'; allowed: one of nba, nfl"),
        ({"query": {}}, 400, "query.ids: nothing; allowed: comma list of integer up to 3"),
        ({"query": {"ids": ["1,2,3,4"]}}, 400, "query.ids: 4 values; allowed: comma list of integer up to 3"),
        ({"query": {"ids": ["1,b"]}}, 400, "query.ids[]: 'b'; allowed: integer"),
        ({"query": {"ids": ["1", "2"]}}, 400, "query.ids: 2 times; allowed: once"),
        ({"query": {"ids": ["1"], "state": ["open", "shut"]}}, 400, "state[]: 'shut'; allowed: one of open, for sale"),
        ({"query": {"ids": ["1"], "id": ["1"]}}, 400, "query.id: '1'; allowed: ids, state, odds"),
        ({"headers": {}}, 401, "headers.x-key: nothing; allowed: text"),
        ({"headers": {"x-key": "k", "x-keys": "k"}}, 401, "headers.x-keys: 'k'; allowed: x-key"),
        ({"body": b"{}"}, 400, "body: 2 bytes; allowed: none"),
    ],
)
def test_requests_that_a_venue_refuses(change: dict[str, Any], status: int, reason: str) -> None:
    shop = read("shop", SHOP)
    assert shop.check_request(Request("GET", PATH, **WELL)) == []
    (refusal,) = shop.check_request(Request(**{"method": "GET", "path": PATH, **WELL} | change))
    assert refusal.status == status
    assert reason in refusal.reason


def test_bodies_and_forms() -> None:
    shop = read("shop", SHOP)
    assert shop.check_request(Request("POST", "/login", form={"user": ["u"]})) == []
    assert [one.reason for one in shop.check_request(Request("POST", "/login", form={"username": ["u"]}))] == [
        "form.username: 'u'; allowed: user", "form.user: nothing; allowed: text",
    ]  # fmt: skip
    assert shop.check_request(Request("POST", "/search", body=b'{"sports": ["a"]}')) == []
    (refusal,) = shop.check_request(Request("POST", "/search", body=b'{"sports": ["a", "b", "c"]}'))
    assert refusal.reason == "body.sports: 3 values; allowed: list of text up to 2"
    (refusal,) = shop.check_request(Request("POST", "/search", body=b'{"sports": [], "market": "x"}'))
    assert refusal.reason == "body.market: 'x'; allowed: a field of filter: sports, live"


def test_messages_of_a_connection() -> None:
    shop = read("shop", SHOP)
    assert shop.check_sent("stream", {"op": "subscribe", "ids": [1]}) == []
    assert shop.check_sent("stream", {"op": "follow"}) == ["op: 'follow'; allowed: one of subscribe"]
    assert shop.check_sent("stream", {"op": "subscribe", "ids": ["1"]}) == ["ids[]: '1'; allowed: integer"]
    with pytest.raises(ContractError, match=r"send\.prices has no messages"):
        shop.check_sent("prices", {})


def test_what_a_document_has_that_is_not_known() -> None:
    shop = read("shop", SHOP)
    known = {"1": {"odds": 1.9, "state": "for sale"}, "2": {"odds": 1000, "state": "open", "line": "-2.5"}}
    assert shop.unknown("prices", known) == []
    strange = {"1": {"odds": "1.9", "state": "shut", "line": True, "size": 5}, "2": {"odds": 1000.5}, "3": []}
    assert [(one.path, one.kind, one.came, one.decides) for one in shop.unknown("prices", strange)] == [
        ("{}.odds", OTHER, "'1.9'", False), ("{}.state", NEW_VALUE, "'shut'", True), ("{}.line", OTHER, "true", False),
        ("{}.size", NEW_FIELD, "5", False), ("{}.odds", OTHER, "1000.5", False), ("{}.state", OTHER, "nothing", False),
        ("{}", OTHER, "[]", False),
    ]  # fmt: skip


def test_names_of_fields_are_shown_in_few_printable_characters() -> None:
    book = {"odds": 1.9, "state": "open", "\x1b[2J\n" + "x" * 1000: 1}
    (found,) = read("shop", SHOP).unknown("prices", {"1": book})
    assert (found.kind, found.path) == (NEW_FIELD, "{}.?[2J?" + "x" * 192 + "...")


def test_of_a_large_document_another_part_is_looked_at_each_turn() -> None:
    shop = read("shop", SHOP)
    many = {str(n): {"odds": n % 100 + 1, "state": "open"} for n in range(1000)} | {"x": {"odds": 0, "state": "open"}}
    assert [len(shop.unknown("prices", many, turn)) for turn in range(21)] == [0] * 13 + [1] + [0] * 7
    assert len(shop.unknown("prices", many)) == 1


@pytest.mark.parametrize(
    ("place", "table"),
    [
        ("GET /leagues/nba/prices", "prices"), ("GET /api/v2/leagues/nba/prices", "prices"), ("stream", "prices"),
        ("POST /leagues/nba/prices", ""), ("GET /prices", ""), ("POST /api/login", ""), ("other", ""),
    ],
)  # fmt: skip
def test_what_an_answer_is_follows_from_the_request(place: str, table: str) -> None:
    shop = read("shop", SHOP)
    assert shop.answer_to(place) is (shop.types[table] if table else None)


@pytest.mark.parametrize(
    ("text", "valid", "wrong"),
    [
        ("text", ["", "a"], [1, None]), ("boolean", [True], [0, "true"]), ("integer", [5, -1], [5.0, True, "5"]),
        ("number", [5, 0.5], ["5", True, None]), ("any", [None, 1, {}], []), ("integer 1 to 3", [1, 3], [0, 4, 2.5]),
        ("decimal", ["0.5", "-1", "+2.25"], [0.5, "", "a", "1,5"]), ("date", ["2026-11-29"], ["29.11.2026", 5]),
        ("time", ["2026-11-29T18:00:00Z", "2026-11-29T18:00:00+01:00"], ["2026-11-29", "soon", 5]),
        ("seconds", [1_795_975_200], [1_795_975_200_000, "1795975200"]),
        ("milliseconds", [1_795_975_200_000], [1_795_975_200]), ("one of a b", ["a"], ["c", 1]),
        ("text?", [None, "a"], [1]), ("list of integer up to 2", [[], [1, 2]], [[1, 2, 3], ["a"], 1, None]),
        ("comma list of integer", ["1,2", "1"], ["a", [1]]), ("map of list of integer", [{}, {"a": [1]}], [{"a": 1}]),
        ("encoded list of text", ['["a"]'], ['[1]', "[", ["a"]]), ("decimal or number?", ["1.5", 1.5, None], ["a", []]),
    ],
)  # fmt: skip
def test_types(text: str, valid: list[Any], wrong: list[Any]) -> None:
    kind = parse(text, {})
    assert [value for value in valid if not kind.accepts(value)] == []
    assert [value for value in wrong if kind.accepts(value)] == []


def test_a_local_server_counts_requests_and_refuses_what_is_too_fast() -> None:
    check = ContractCheck("smarkets")
    check.pace = True
    for n in range(20):
        assert check.refused("GET", "/markets/1/quotes/", {}, {}, b"", n * 0.1) is None
    refusal = check.refused("GET", "/markets/1/quotes/", {}, {}, b"", 59.9)
    assert refusal == ("/markets/1/quotes/: more than 20 requests in 60 s", 429)
    assert check.refused("GET", "/markets/1/contracts/", {}, {}, b"", 59.9) is None
    with pytest.raises(AssertionError, match="Smarkets refuses: /markets/1/quotes/: more than 20 requests in 60 s"):
        check.assert_kept()


# ---- payloads made from contracts ----


@pytest.mark.parametrize("venue", venues())
@given(data=st.data())
def test_payloads_made_from_a_contract_keep_to_it(venue: str, data: st.DataObject) -> None:
    table = load(venue)
    name = data.draw(st.sampled_from(sorted(table.types)))
    assert table.unknown(name, data.draw(payloads(table, name))) == []


def test_each_value_that_decides_is_changed_once() -> None:
    shop = read("shop", SHOP)
    document = {"1": {"odds": 1.9, "state": "open"}, "2": {"odds": 1.9, "state": "for sale"}}
    changed = dict(unheard_of(shop, "prices", document))
    assert list(changed) == ["1.state", "2.state"]
    assert changed["2.state"] == {"1": document["1"], "2": {"odds": 1.9, "state": UNHEARD_OF}}


# ---- recorded payloads, where there are some ----

RECORDED = os.environ.get("RECORDED_FEEDS", "")
OF_FILES: dict[tuple[str, str], str] = {  # (kind, pattern of files in its folder) -> table of its contract
    ("betfair", "mcm_live_*.json"): "message",
    ("betfair", "market_definition_*.json"): "market_definition",
    ("betfair", "list_market_catalogue.json"): "listed_market",
    ("kalshi", "market_rest.json"): "one_market",
    ("kalshi", "orderbook_rest.json"): "one_book",
    ("polymarket", "gamma_event.json"): "events",
    ("polymarket", "gamma_market_*.json"): "market",
    ("polymarket", "ws_market_*.json"): "frame",
}


@pytest.mark.skipif(not RECORDED, reason="RECORDED_FEEDS names no folder of recorded payloads")
@pytest.mark.parametrize(("venue", "pattern"), OF_FILES)
def test_recorded_payloads_keep_to_contracts(venue: str, pattern: str) -> None:
    files = sorted(Path(RECORDED, venue).glob(pattern))
    assert files
    for file in files:
        found = load(venue).unknown(OF_FILES[venue, pattern], json.loads(file.read_text(encoding="utf-8")))
        assert [str(one) for one in found if one.kind != NEW_FIELD] == [], file.name


def test_all_kinds_with_a_contract_are_held_to_it_by_a_local_server() -> None:
    """The server of a kind names its contract; see `SourceServer`."""
    folder = Path(__file__).parents[1]
    files = [*(folder / "support").glob("*.py"), *(folder / "sources").glob("*.py")]
    texts = "\n".join(file.read_text(encoding="utf-8") for file in files)
    named = set(re.findall(r'(?:ContractCheck\(|Checked\(|venue = )"(\w+)"', texts))
    assert set(venues()) - named == set()
