"""Deep links: where an id leads, and that no redirect ever leads off the hosts of the catalog."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handler_calls import answer, found, node

from oddsengine import catalog
from oddsengine.catalog import links
from oddsengine.live.engine import Engine
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Answer
from oddsengine_service.node import Node
from oddsengine_service.routes import deeplinks as module

GO = found(module.endpoints, "/deeplink/{id}")
BATCH = found(module.endpoints, "/deeplinks/batch", "POST")
NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
HOME, AWAY = "Boston Celtics", "LA Lakers"
GOOD = "https://sportsbook.draftkings.com/event/1"

# What turns a redirect that checks carelessly into an open one.
HOSTILE = [
    "//evil.com", "///evil.com", "/\\evil.com", "\\\\evil.com", "https:/evil.com", "https:evil.com", "https:///evil.com",
    "https://evil.com", "https://evil.com/sportsbook.draftkings.com", "https://evil.com?sportsbook.draftkings.com",
    "https://evil.com#sportsbook.draftkings.com", "https://sportsbook.draftkings.com@evil.com/",
    "https://sportsbook.draftkings.com:443@evil.com/", "https://evil@sportsbook.draftkings.com/",
    "https://sportsbook.draftkings.com%40evil.com/", "https://sportsbook.draftkings.com%2eevil.com/",
    "https://sportsbook.draftkings.com.evil.com/", "https://evilsportsbook.draftkings.com/",
    "https://sportsbook.draftkings.com\\@evil.com/", "https://sportsbook.draftkings.com\\.evil.com/",
    "https://sportsbook.draftkings.com:8443/", "https://sportsbook.draftkings.com:443/",
    "https://sportsbook.draftkings.com:/",
    "http://sportsbook.draftkings.com/", "HTTP://sportsbook.draftkings.com/", "ftp://sportsbook.draftkings.com/",
    "javascript:alert(1)", "javascript://sportsbook.draftkings.com/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x", "file:///etc/passwd", "about:blank", "sportsbook.draftkings.com", "/api/v1/health", "", " ",
    "https://sportsbook.draftkings.com/\r\nSet-Cookie: a=b", "https://sportsbook.draftkings.com/\nX: y",
    "https://sportsbook.draftkings.com\r\n", "https://sportsbook.draftkings.com/\x00",
    "https://sportsbook.draftkings.com/ x",
    "https://sportsbook.draftkings.com\t.evil.com/", "java\tscript:alert(1)",
    "https://spo\u0433tsbook.draftkings.com/", "https://sportsbook.draftkings\u3002com/",
    "https://sportsboo\u212a.draftkings.com/",
    "https://\u017fportsbook.draftkings.com/", "https://sportsbook.draftkings.com\uff0fevil.com/",
    "https://sportsbook.draftkings.com\u2044evil.com/", "https://xn--sportsbook-.draftkings.com/",
    "https://sportsbook.draftkings.com/\u2028", "https://sportsbook.draftkings.com/é", "https://[::1]/", "https://127.0.0.1/",
    "https://2130706433/", "https://localhost/", "https://sportsbook.draftkings.com./", "https://draftkings.com/",
    "https://sportsbook.draftkings.com/" + "a" * 3000,
]  # fmt: skip


def quote(book: str, selection: str, odds: float, **more: Any) -> dict[str, Any]:
    row = {
        "sportsbook": book, "event_id": "e", "sport": "basketball", "league": "nba", "home_team": HOME,
        "away_team": AWAY, "market_type": "moneyline", "selection": selection, "odds_decimal": odds,
        "last_seen_at": NOW, "event_start_time": "2026-02-09T00:30:00Z",
    }  # fmt: skip
    return row | more


ROWS = [
    quote("pinnacle", HOME, 1.95), quote("pinnacle", AWAY, 1.95),
    quote("draftkings", HOME, 2.06, external_event_id="7", market_id="8", selection_id="9"),
    quote("draftkings", AWAY, 1.8, external_event_id="7"),
    quote("fanduel", AWAY, 2.05, market_id="m", selection_id="s"),
    quote("fanduel", HOME, 1.8),
    quote("caesars", HOME, 1.85, deep_link="https://evil.com/steal"),
    quote("caesars", AWAY, 1.85, deep_link="https://sportsbook.caesars.com/us/{state}/bet/tennis"),
    quote("betmgm", HOME, 1.85, deep_link="https://sports.betmgm.com/en/sports/events/77"),
    quote("corner_shop", HOME, 1.85),
]  # fmt: skip


@pytest.fixture(scope="module")
def here() -> Node:
    engine = Engine()
    engine.view(keep=True)
    engine.step(ROWS, NOW)
    return node(engine)


def row_id(here: Node, book: str, selection: str) -> str:
    found: str = next(
        row["row_id"] for row in here.engine.table().to_dicts()
        if row["sportsbook"] == book and row["selection"] == selection
    )  # fmt: skip
    return found


def go(here: Node, ident: str, **query: str) -> tuple[str, str]:
    """Where it leads, and as what."""
    found = answer(GO, here, query, "free", path={"id": ident})
    assert isinstance(found, Answer)
    assert (found.status, found.body) == (302, b"")
    headers = dict(found.headers)
    assert set(headers) == {"Location", "X-Deep-Link-Type"}
    parts = urlsplit(headers["Location"])
    assert parts.scheme == "https"
    assert parts.netloc == parts.hostname
    assert any(parts.netloc in links.hosts(book) for book in catalog.books())
    assert headers["Location"].isascii()
    assert headers["Location"].isprintable()
    return headers["Location"], headers["X-Deep-Link-Type"]


def refused(here: Node, ident: str, **query: str) -> Problem:
    with pytest.raises(Problem) as caught:
        go(here, ident, **query)
    return caught.value


def test_a_price_leads_as_close_as_its_ids_allow(here: Node) -> None:
    site = "https://sportsbook.draftkings.com"
    assert go(here, row_id(here, "draftkings", HOME)) == (f"{site}/event/7?outcomes=9", "outcome")
    assert go(here, row_id(here, "draftkings", AWAY)) == (f"{site}/event/7", "event")
    assert go(here, row_id(here, "fanduel", HOME)) == ("https://sportsbook.fanduel.com/", "home")
    assert go(here, row_id(here, "fanduel", AWAY), state="NJ")[0].startswith("https://nj.sportsbook.fanduel.com/")
    assert go(here, row_id(here, "betmgm", HOME)) == ("https://sports.betmgm.com/en/sports/events/77", "event")
    assert go(here, row_id(here, "betmgm", HOME), state="nj")[0].startswith("https://sports.nj.betmgm.com/")


def test_a_link_of_a_source_is_followed_only_to_the_catalog(here: Node) -> None:
    assert go(here, row_id(here, "caesars", HOME)) == ("https://sportsbook.caesars.com/", "home")
    assert go(here, row_id(here, "caesars", AWAY), state="nv") == (
        "https://sportsbook.caesars.com/us/nv/bet/tennis",
        "event",
    )
    assert go(here, row_id(here, "caesars", AWAY)) == ("https://sportsbook.caesars.com/", "home")  # it needs a state


def test_an_opportunity_leads_to_its_book(here: Node) -> None:
    view = here.engine.view()
    found = view.opportunities()
    ev = next(row for row in found.ev.to_dicts() if row["sportsbook"] == "draftkings")
    assert go(here, ev["id"])[0].endswith("?outcomes=9")
    (arb,) = found.arbitrage.to_dicts()
    books = {leg["sportsbook"] for leg in arb["legs"]}
    assert books == {"draftkings", "fanduel"}
    assert ":" in arb["id"]
    assert go(here, arb["id"], book="draftkings")[0].endswith("?outcomes=9")
    assert "fanduel" in go(here, arb["id"], book="FanDuel")[0]
    assert (
        go(here, arb["id"], book="betmgm")[0] == "https://sports.betmgm.com/en/sports/events/77"
    )  # the same side there


def test_what_nobody_knows(here: Node) -> None:
    for ident in ("0" * 16, "nonsense", "a:b:c", "e:moneyline:" + "0" * 16, "é" * 16, "x" * 5000, "'; DROP TABLE keys"):
        assert refused(here, ident).status == 404
        assert go(here, ident, book="draftkings") == ("https://sportsbook.draftkings.com/", "home")
        assert go(here, ident, fallback=GOOD) == (GOOD, "home")
        assert go(here, ident, fallback=GOOD, book="fanduel")[0] == GOOD
        assert refused(here, ident, book="corner_shop").status == 404
    assert refused(here, row_id(here, "corner_shop", HOME)).status == 404
    assert go(here, row_id(here, "corner_shop", HOME), fallback=GOOD) == (GOOD, "home")


@pytest.mark.parametrize("fallback", [each for each in HOSTILE if each.strip()])
def test_hostile_fallbacks_are_refused_whether_needed_or_not(here: Node, fallback: str) -> None:
    assert not module._safe(fallback)
    for ident in ("0" * 16, row_id(here, "draftkings", HOME)):
        if module._safe(fallback.strip()):  # a parameter has no space around it
            assert go(here, "0" * 16, fallback=fallback)[0] == fallback.strip()
            continue
        problem = refused(here, ident, fallback=fallback)
        assert (problem.status, problem.code) == (400, "validation_error")


def test_every_hostile_address_is_unsafe() -> None:
    assert not any(module._safe(each) for each in HOSTILE)
    assert module._safe(GOOD)


@given(st.text(max_size=60), st.sampled_from(["", "https://", "https://sportsbook.draftkings.com"]))
def test_whatever_is_safe_is_on_a_known_host(tail: str, start: str) -> None:
    url = start + tail
    if module._safe(url):
        parts = urlsplit(url)
        assert (parts.scheme.lower(), parts.port, parts.username) == ("https", None, None)
        assert parts.hostname is not None
        assert parts.hostname.removeprefix("www.") in {
            h.removeprefix("www.") for b in catalog.books() for h in links.hosts(b)
        }
        assert url.isascii()
        assert url.isprintable()


@pytest.mark.parametrize("state", ["xx", "n", "new jersey", "nj.evil.com/", "nj@evil.com", "nj\r\n", "..", "ＮＪ"])
def test_states_are_of_the_list(here: Node, state: str) -> None:
    if state.strip().lower() in links.link_states():
        assert go(here, row_id(here, "betmgm", HOME), state=state)[0].startswith("https://sports.nj.betmgm.com/")
        return
    problem = refused(here, row_id(here, "betmgm", HOME), state=state)
    assert problem.status == 400
    assert "state must be one of" in problem.message
    with pytest.raises(Problem):
        answer(BATCH, here, body={"ids": ["a"], "state": state})


def test_ids_of_sources_stay_one_part_of_the_address() -> None:
    """A source's own ids are data: they may be as hostile as a caller's words."""
    engine = Engine()
    nasty = [
        "../../evil",
        "7/../../x",
        "a@evil.com",
        "1?next=//evil.com",
        "1#//evil.com",
        "%2e%2e%2f",
        "é\u3002",
        "1\\..\\2",
    ]
    rows = [
        quote("draftkings", HOME, 1.9, event_id=f"e{n}", external_event_id=each, selection_id=each,
              deep_link=HOSTILE[n * 5])
        for n, each in enumerate(nasty)
    ]  # fmt: skip
    engine.step(rows, NOW)
    here = node(engine)
    for row in engine.table().to_dicts():
        url, _ = go(here, row["row_id"])
        parts = urlsplit(url)
        assert parts.netloc == "sportsbook.draftkings.com"
        assert parts.path.count("/") <= 2


def test_many_at_once(here: Node) -> None:
    (arb,) = here.engine.view().opportunities().arbitrage.to_dicts()
    ids = [row_id(here, "draftkings", HOME), row_id(here, "corner_shop", HOME), arb["id"], "0" * 16, "nonsense"]
    found = answer(BATCH, here, body={"ids": ids, "state": "nj"})
    assert found == {
        "success": True,
        "data": {
            ids[0]: f"/api/v1/deeplink/{ids[0]}?state=nj", ids[1]: None, ids[2]: f"/api/v1/deeplink/{ids[2]}?state=nj",
            ids[3]: None, ids[4]: None,
        },
    }  # fmt: skip
    for path in (found["data"][ids[0]], found["data"][ids[2]]):
        ident, _, query = path.removeprefix("/api/v1/deeplink/").partition("?")
        assert query == "state=nj"
        go(here, ident, state="nj")
    low = answer(
        BATCH, here, tier="free", body={"ids": [row_id(here, "pinnacle", HOME), row_id(here, "caesars", HOME)]}
    )
    assert None in low["data"].values()  # two books are in that tier


@pytest.mark.parametrize("ids", [[], [f"{n:016x}" for n in range(501)], ["x" * 201]])
def test_batches_are_bounded(here: Node, ids: list[str]) -> None:
    with pytest.raises(Problem) as caught:
        answer(BATCH, here, body={"ids": ids})
    assert caught.value.status == 400
    assert answer(BATCH, here, body={"ids": [f"{n:016x}" for n in range(500)]})["success"]
