"""The page in headless Chromium, before a server on a real socket."""

from support.chromium import launched  # first: without Playwright it skips these tests

# isort: split
import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import polars as pl
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    Route,
    expect,
)
from service.test_alerts import Hook, hooked
from support.service_running import Running, running, until

from oddsengine import catalog
from oddsengine.maths.odds import format_american
from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.http import pages

KEY = "demo_enterprise"
PATIENCE_MS = 20_000
KINDS = ("ev", "arbitrage", "low_hold", "middles")
ROWS = "#list tbody tr:not(.empty)"
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI));
"""

# ---- the browser and the server ----


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("page"), now=True) as server:
        yield server


def leave(page: Page) -> None:
    """Ask for another key."""
    page.click("#open-settings")
    page.click("#leave")


def ungroup(page: Page) -> None:
    """Show rows in their order, also those of one event."""
    page.click("#more-filters")
    page.uncheck("#group")
    page.click("#more-filters")


def show_odds(page: Page, form: str) -> None:
    """Choose the format of odds."""
    page.click("#open-settings")
    page.check(f"[name=format][value={form}]", force=True)
    page.click("#settings-close")


class Visit:
    """A page, and what went wrong on it."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.origin, self.faults, self.requests = origin, list[str](), list[Request]()
        self.accepted = ""  # pattern of faults that are meant to be
        self.page.add_init_script(_WATCH)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self._fault(str(error)))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._requested)
        self.page.on("response", self._answered)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._fault(message.text)

    def _asked(self, dialog: Dialog) -> None:
        self._fault(f"dialog {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        self.requests.append(request)

    def _answered(self, response: Response) -> None:
        """No request has a parameter that the API ignores."""
        if warning := response.headers.get("warning"):
            self._fault(f"{response.url}: {warning}")

    def _fault(self, text: str) -> None:
        self.faults.append(text)

    def enter(self, key: str = "", shows: str = "") -> Page:
        """Open the page, which connects with the demo's key, or connect with another."""
        if key not in ("", KEY):
            self.ask(key)
        else:
            self.page.goto(self.origin)
        self.page.wait_for_selector(shows or ROWS)
        return self.page

    def ask(self, key: str) -> None:
        self.page.goto(self.origin)
        leave(self.page)
        self.requests.clear()  # of the demo's key
        self.page.fill("#key", key)
        self.page.click("#entry button")

    def stream(self, part: str, *events: tuple[str, Any], ends: str = "\n") -> None:
        """Answer a stream with these events, and end it."""
        lines: list[str] = [": a comment", "retry: 60000", ""]
        for at, (name, payload) in enumerate(events):
            first, _, second = json.dumps(payload, indent=1).partition("\n")
            data = [f"data: {line}" for line in (first, *second.split("\n")) if line]
            lines += [f"id: evt_{at}", f"event:{name}", *data, ""]
        body = ends.join([*lines, ""])
        headers = {"content-type": "text/event-stream"}
        for path in (part, *(["all"] if part.startswith("events/") else [])):
            self.page.route(f"**/stream/{path}*", lambda route: route.fulfill(body=body, headers=headers))

    def tab(self, name: str) -> Page:
        self.page.click(f"#tab-{name}")
        return self.page

    def check(self) -> None:
        hosts = {urlsplit(request.url).netloc for request in self.requests if not request.url.startswith("data:")}
        assert hosts <= {urlsplit(self.origin).netloc}
        assert not any(KEY in request.url for request in self.requests)
        assert self.page.evaluate("window.violations") == []
        assert [each for each in self.faults if not self.accepted or not re.search(self.accepted, each)] == []


Visiting = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, server: Running) -> Iterator[Visiting]:
    visits: list[tuple[BrowserContext, Visit]] = []

    def made(origin: str = "", **options: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        visits.append((context, Visit(context, origin or server.origin)))
        return visits[-1][1]

    yield made
    for context, each in visits:
        each.check()
        context.close()


def keys_of(server: Running) -> KeyStore:
    assert isinstance(server.node.keys, KeyStore)
    return server.node.keys


def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return found


def column(page: Page, at: int) -> list[str]:
    return texts(page, f"{ROWS} td:nth-child({at})")


def number(text: str) -> float:
    return float(text.partition("\n")[0].replace("−", "-").replace("%", "").strip())


def counted(page: Page, kind: str) -> int:
    text = page.locator(f"#tab-{kind} .count").inner_text()
    return int(text) if text else -1


# ---- what is made up ----


def found_ev(at: int, **other: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    row = {
        "id": f"ev{at:06}", "game_id": "g1", "ev_percentage": 1 + at % 997 / 100, "odds_american": 100 + at % 300,
        "odds_decimal": 2 + at % 300 / 100, "no_vig_odds": 105.0, "selection": f"Side {at}", "market": "moneyline",
        "line": None, "sportsbook": "bet365", "game": f"Guests {at % 50} @ Hosts", "sport": "soccer", "league": "x",
        "start_time": (now + timedelta(hours=2)).isoformat(), "is_live": at % 5 == 0, "confidence_score": 50 + at % 50,
        "kelly_percent": 0.02, "player_name": None, "possibly_stale": False, "is_alternate_line": False,
        "market_segment": "full_game", "detected_at": now.isoformat(),
    }  # fmt: skip
    return {**row, **other}


def price(at: int, **other: Any) -> dict[str, Any]:
    now = (datetime.now(UTC) - timedelta(seconds=30)).isoformat()
    row = {
        "id": f"p{at}", "sportsbook": "bet365", "event_id": "g1", "sport": "soccer", "league": "x",
        "home_team": "Hosts", "away_team": "Guests", "market_type": "moneyline", "market_segment": "full_game",
        "selection": "Hosts",
        "selection_type": "home", "odds_american": 100, "odds_decimal": 2.0, "odds_probability": 0.5, "line": None,
        "event_start_time": now, "is_live": False, "odds_changed_at": now, "player_name": None, "team_side": None,
    }  # fmt: skip
    return {**row, **other}


def beginning(*events: tuple[str, Any]) -> Sequence[tuple[str, Any]]:
    return ("connected", {}), *events, ("snapshot:complete", {"status": "ready", "books": [], "total_odds": 0})


# ---- without a browser ----


def test_policy_names_exactly_what_the_page_has() -> None:
    page = pages.live("/api/v1", '"><script>')
    (style,) = re.findall(r"<style>(.*?)</style>", page.html, re.S)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page.html, re.S)
    for text in (style, script):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in page.policy
    assert "unsafe" not in page.policy
    assert "<script>" not in page.html
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|cookie", script)
    assert "https:" not in page.html.replace("http://www.w3.org", "")


def test_the_root_has_its_own_policy_and_no_other(service: Running) -> None:
    answer = httpx2.get(f"{service.origin}/")
    assert answer.headers.get_list("content-security-policy") == [pages.live("/api/v1").policy]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe-inline" in httpx2.get(f"{service.origin}/docs", timeout=60.0).headers["content-security-policy"]
    assert f'data-demo-key="{KEY}"' in answer.text
    assert KEY not in pages.live("/api/v1").html


# ---- the lists ----


def test_opportunities_appear_and_update(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    expect(page.locator("#state")).to_have_text("Live")
    for kind in KINDS:
        v.tab(kind)
        page.wait_for_selector(ROWS)
        assert counted(page, kind) > 0
        assert page.locator(ROWS).count() <= 50
    with server.client() as client:
        for _ in range(2):
            server.advance(3)
            for kind, path in (("ev", "ev?min_ev=1"), ("arbitrage", "arbitrage?")):
                total = client.get(f"/opportunities/{path}&limit=1").json()["meta"]["total"]
                expect(page.locator(f"#tab-{kind} .count")).to_have_text(str(total), timeout=PATIENCE_MS)
        rows = client.get("/opportunities/ev?min_ev=1&limit=1").json()["data"]
    v.tab("ev")
    expect(page.locator(f"{ROWS}:first-child .value")).to_have_text(f"{rows[0]['ev_percentage']:.2f} %")
    assert page.evaluate("sessionStorage.getItem('oddsengine.key')") == KEY
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    sent = [request.headers for request in v.requests if "/api/" in request.url]
    assert sent
    assert all(headers["x-api-key"] == KEY for headers in sent)
    page.reload()
    page.wait_for_selector(ROWS)


def test_sorting(visit: Visiting) -> None:
    page = visit().enter()
    ungroup(page)
    page.click("#pause")
    show_odds(page, "decimal")
    values = [number(text) for text in column(page, 1)]
    assert values == sorted(values, reverse=True)
    head = page.locator("th[data-column=odds]")
    for way, down in (("descending", True), ("ascending", False)):
        head.locator("button").click()
        expect(head).to_have_attribute("aria-sort", way)
        expect(page.locator("th[aria-sort]")).to_have_count(1)
        page.wait_for_timeout(100)
        odds = [number(text) for text in column(page, 4)]
        assert odds == sorted(odds, reverse=down)
        assert len(odds) > 3
    page.locator("th[data-column=book] button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[data-column=book]")).to_have_attribute("aria-sort", "ascending")
    page.wait_for_timeout(100)
    books = texts(page, f"{ROWS} td:nth-child(3) > a")
    assert books == sorted(books, key=str.lower)


def test_filters(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    page.click("#pause")
    everything = counted(page, "ev")
    page.fill("#least", "2")
    page.wait_for_timeout(100)
    assert all(number(text) >= 2 for text in column(page, 1))
    assert 0 <= counted(page, "ev") < everything
    page.fill("#least", "")
    page.wait_for_selector("#sport option[value=soccer]", state="attached")
    page.select_option("#sport", "soccer")
    page.wait_for_timeout(100)
    with server.client() as client:
        total = client.get("/opportunities/ev?min_ev=0&sport=soccer&limit=1").json()["meta"]["total"]
    assert counted(page, "ev") == total
    page.select_option("#sport", "")
    page.fill("#find", "no such team")
    expect(page.locator("#list .empty")).to_have_text("No matches for these filters.")
    page.fill("#find", "")
    page.click("#pause")
    page.click("#books")
    page.click("#books-none")
    expect(page.locator("#list .empty")).to_be_visible()
    page.check("#books-boxes [value=betrivers]")
    expect(page.locator("#books")).to_have_text("BetRivers")
    with page.expect_request(lambda request: "sportsbook=betrivers" in request.url):
        pass
    page.keyboard.press("Escape")
    expect(page.locator("#books-list")).to_be_hidden()
    expect(page.locator("#state")).to_have_text("Live")
    page.wait_for_timeout(500)
    assert set(column(page, 3)) == {"BetRivers"}
    v.tab("arbitrage")
    expect(page.locator("#list .empty")).to_be_visible()


def test_pausing_holds_what_is_shown(visit: Visiting, server: Running) -> None:
    page = visit().enter()
    page.click("#pause")
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    before = texts(page, f"{ROWS} .value")
    server.advance(4)
    page.wait_for_timeout(900)
    assert texts(page, f"{ROWS} .value") == before
    page.click("#pause")
    shown = "[...document.querySelectorAll('.value')].map((n) => n.innerText) + ''"
    page.wait_for_function(f"(was) => {shown} !== was", arg=",".join(before))


def test_rows_show_what_they_rest_on_sister_books_fold_and_markets_group(visit: Visiting) -> None:
    v = visit()
    far = {"ev_low": -0.5, "ev_high": 3.25, "prob_positive": 0.9, "ev_vs_sharp": 2.0, "flags": ["GENEROUS"]}
    same = {"sharp_book": "pinnacle", "devig_method": "power", "selection_type": "home", "book_count": 9}
    rows = [
        found_ev(1, ev_percentage=3.0, sportsbook="betrivers", reference="close", kelly_shrunk=0.01, **far, **same),
        found_ev(2, ev_percentage=2.0, sportsbook="unibet", **same),  # the same odds provider
        found_ev(3, ev_percentage=1.0, sportsbook="fanduel", **same),
        found_ev(4, ev_percentage=2.5, game_id="g2", **same),
    ]
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter()
    expect(page.locator(ROWS)).to_have_count(3)
    order = "nodes => nodes.map(node => node.dataset.id)"
    assert page.locator(ROWS).evaluate_all(order) == ["ev000001", "ev000003", "ev000004"]
    first = page.locator("[data-id=ev000001]")
    for text in ("−0.5 to 3.3 %", "Generous", "9 books", "Unibet +102"):
        expect(first).to_contain_text(text)
    expect(first).to_contain_text("expected at the close")  # the others are by Pinnacle
    expect(page.locator("[data-id=ev000003]")).to_contain_text("by Pinnacle")
    said = re.compile(r"4 open · prices up to \d+ s old · 1 at a second book")
    expect(page.locator("#summary")).to_contain_text(said)
    expect(page.locator("#simulated")).to_have_text("Simulated market")
    expect(page.locator("[data-id=ev000003]")).to_have_class(re.compile("follows"))
    ungroup(page)
    expect(page.locator(ROWS).nth(1)).to_have_attribute("data-id", "ev000004")
    assert page.locator(ROWS).evaluate_all(order) == ["ev000001", "ev000004", "ev000003"]
    page.click("#open-settings")
    for field, value in (("bankroll", "10000"), ("unit", "50")):
        page.fill(f"#{field}", value)
    page.select_option("#fraction", "0.5")
    page.locator("#step").fill("20")
    page.locator("#step").press("Tab")
    stake = page.locator("[data-id=ev000001] td").nth(5)
    expect(stake).to_have_text("1002.0 u")  # Kelly's 1 %, which is reduced already
    page.select_option("#setting-currency", "EUR")
    expect(stake).to_have_text("€1002.0 u")
    page.select_option("#setting-currency", "")
    page.reload()
    expect(stake).to_have_text("1002.0 u")
    page.click("#open-settings")
    page.fill("#bankroll", "900")
    page.locator("#bankroll").press("Tab")
    expect(stake).to_have_text("under 20Kelly 1.0 %")  # 9 is less than half a step
    expect(stake.locator("b")).to_have_attribute("title", "Kelly, reduced for uncertainty: 1.0 % of the bankroll")
    page.fill("#bankroll", "1100")
    page.locator("#bankroll").press("Tab")
    expect(stake).to_have_text("200.4 u")  # 11, to the nearest step


def test_filters_stand_in_the_address_and_can_be_saved(visit: Visiting) -> None:
    v = visit()
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    rows = [
        found_ev(1, sport="soccer", league="x", odds_american=150, start_time=soon),
        found_ev(2, sport="soccer", league="y", odds_american=150, start_time=soon, game_id="g2"),
        found_ev(3, sport="soccer", league="x", odds_american=-250, start_time=soon, game_id="g3"),
        found_ev(4, sport="soccer", league="x", odds_american=150, game_id="g4"),
        found_ev(5, sport="soccer", league="x", odds_american=150, start_time=soon, game_id="g5", market="total_goals"),
    ]
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter()
    expect(page.locator(ROWS)).to_have_count(5)
    page.goto(f"{v.origin}/?league=x&min_odds=-200&starts_within=1.5&market=main&event=ignored")
    expect(page.locator(ROWS)).to_have_count(2)
    page.select_option("#only", "total")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS)).to_have_attribute("data-id", "ev000005")
    assert "market=total" in page.url
    page.click("#more-filters")
    page.fill("#save-name", "Totals / soon")
    page.locator("#save-name").press("Enter")
    expect(page.locator("#save-said")).to_have_text("Saved as Totals / soon.")
    page.goto(v.origin)
    expect(page.locator(ROWS)).to_have_count(5)
    page.click("#more-filters")
    page.select_option("#saved", "Totals / soon")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator("#low")).to_have_value("-200")
    page.fill("#low", "1.4")  # decimal
    page.locator("#low").press("Tab")
    assert "min_odds=-250" in page.url
    page.click("#forget")
    expect(page.locator("#save-said")).to_have_text("Totals / soon was deleted.")
    assert KEY not in page.url


def test_the_list_begins_at_an_ev_of_one(visit: Visiting) -> None:
    v = visit()
    rows = [found_ev(at, ev_percentage=ev, game_id=f"g{at}") for at, ev in ((1, 0.4), (2, 1.0), (3, 2.0))]
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter()
    expect(page.locator(ROWS)).to_have_count(2)
    expect(page.locator("#tab-ev .count")).to_have_text("2")
    expect(page.locator("#least")).to_have_value("1")
    assert "min_ev" not in page.url
    for minimum in ("0", ""):
        page.fill("#least", minimum)
        expect(page.locator(ROWS)).to_have_count(3)
        assert page.url.endswith("/?min_ev=0")
    page.reload()
    expect(page.locator(ROWS)).to_have_count(3)
    expect(page.locator("#least")).to_have_value("0")
    page.goto(f"{v.origin}/?min_ev=1.5")
    expect(page.locator(ROWS)).to_have_count(1)


def test_rows_say_whether_their_price_stands(visit: Visiting) -> None:
    v = visit()
    rows = [
        found_ev(1, still_there=0.62, ev_percentage=3.0, oldest_odds_age_seconds=20.0, is_live=False),
        found_ev(2, still_there=0.3, ev_percentage=2.0, oldest_odds_age_seconds=90.0, game_id="g2", is_live=False),
        found_ev(3, still_there=None, ev_percentage=1.5, oldest_odds_age_seconds=20.0, game_id="g3", is_live=True),
    ]
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter()
    expect(page.locator(ROWS)).to_have_count(3)
    assert column(page, 8) == ["62 %", "30 %", "–"]
    expect(page.locator(f"{ROWS}.doubtful")).to_have_count(2)  # in play sooner
    old = page.locator("[data-id=ev000002]")
    expect(old).to_have_attribute("title", "A price of this row was not seen for 1 min: check it at the book")
    colour = "(row) => getComputedStyle(row.cells[1].querySelector('.bet')).color"
    assert old.evaluate(colour) != page.locator("[data-id=ev000001]").evaluate(colour)
    page.click("th[data-column=stands] button")
    page.click("th[data-column=stands] button")
    expect(page.locator(ROWS).first).to_have_attribute("data-id", "ev000002")
    expect(page.locator("th[data-column=stands] button")).to_have_attribute("title", re.compile("ten minutes from now"))
    page.click("#more-filters")
    page.fill("#stands", "50")
    expect(page.locator(ROWS)).to_have_count(1)
    assert page.url.endswith("?min_still_there=0.5")
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)
    page.click("#more-filters")
    expect(page.locator("#stands")).to_have_value("50")


def of_two_legs(id_: str, event: str, **other: Any) -> dict[str, Any]:
    """An arbitrage of a contract and a bet."""
    now = datetime.now(UTC)
    leg = {"odds_american": 100, "odds_decimal": 2.1, "implied_probability": 0.47, "stake_percent": 50.0, "line": None}
    row = {
        "id": id_, "event_id": event, "event_name": f"Guests @ {event}", "sport": "football", "league": "nfl",
        "market_type": "moneyline", "line": None, "profit_percent": 1.2, "is_live": False, "home_team": event,
        "away_team": "Guests", "start_time": (now + timedelta(hours=2)).isoformat(), "player_name": None,
        "detected_at": now.isoformat(), "terms_differ": False, "terms_worst_case": None, "terms": [],
        "legs": [{**leg, "sportsbook": "kalshi", "selection": event, "odds_id": "a"},
                 {**leg, "sportsbook": "draftkings", "selection": "Guests", "odds_id": "b"}],
    }  # fmt: skip
    return {**row, **other}


def test_rows_say_where_their_legs_settle_differently(visit: Visiting) -> None:
    v = visit()
    v.accepted = "404"
    text = "tie: kalshi pays 0.50, draftkings returns the stake"
    unlike = of_two_legs("g1:moneyline:1111111111111111", "g1", terms_differ=True, terms=[text], terms_worst_case=-8.96)
    alike = of_two_legs("g2:moneyline:2222222222222222", "g2")
    rows = {row["id"]: row for row in (unlike, alike)}
    legs = [{"sportsbook": book, "terms": said, "source": source, "date": source and "2026-08-12"}
            for book, said, source in (("kalshi", "pays 0.50", "its rules"), ("draftkings", None, None))]  # fmt: skip
    told = {
        "prices": [], "rejected": [], "fair": [], "formula": "", "reference": "close", "devig_method": "power",
        "terms": [{"case": "tie", "differ": True, "result_percent": -8.96, "legs": legs}],
    }  # fmt: skip
    v.stream("opportunities", *beginning(("arb:detected", list(rows.values()))))
    v.page.route("**/opportunities/explain/*", lambda route: route.fulfill(json={"data": told}))
    v.page.route(
        "**/opportunities/arbitrage/*",
        lambda route: route.fulfill(json={"data": rows["g1:moneyline:1111111111111111"]}),
    )
    page = v.page
    page.goto(v.origin + "/?list=arbitrage")
    expect(page.locator(ROWS)).to_have_count(2)
    chip = page.locator(f"{ROWS} .chip", has_text="Terms differ")
    expect(chip).to_have_count(1)
    expect(chip).to_have_attribute("title", text)
    page.locator(f"{ROWS}[data-id='g1:moneyline:1111111111111111'] [data-open]").click()
    expect(page.locator("#details-terms tbody tr")).to_have_count(1)
    assert texts(page, "#details-terms tbody th") == ["Tie"]
    assert [part for cell in texts(page, "#details-terms tbody td") for part in cell.split("\n")] == [
        "Kalshi pays 0.50", "DraftKings has unknown terms", "−8.96 %"
    ]  # fmt: skip
    page.keyboard.press("Escape")
    page.click("#more-filters")
    page.select_option("#terms", "same")
    expect(page.locator(ROWS)).to_have_count(1)
    assert "terms=same" in page.url
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)
    page.click("#more-filters")
    expect(page.locator("#terms")).to_have_value("same")


def test_an_address_opens_a_row_which_is_looked_up_again(visit: Visiting, server: Running) -> None:
    v = visit()
    v.accepted = "404"
    page = v.enter()
    ident = opened(page)
    assert page.url.endswith(f"/?open={ident}")
    expect(page.locator("#details-ended")).to_be_hidden()
    page.reload()
    expect(page.locator("#details")).to_be_visible()
    with server.client() as client:
        row = client.get(f"/opportunities/ev/{ident}").json()["data"]
    expect(page.locator("#details-value")).to_contain_text(f"{row['ev_percentage']:.2f} % EV")
    if row["still_there"] is not None:
        expect(page.locator("#details-value")).to_contain_text(
            f"{100 * row['still_there']:.0f} % still there in 10 min"
        )
    now, table = server.node.engine.now, server.node.engine.table()
    event = table.filter(event_id=row["game_id"], sportsbook=row["sportsbook"]).drop("row_id")
    suspended = event.with_columns(is_active=pl.lit(False), last_seen_at=pl.lit(now))
    server.node.write(server.node.step, suspended, now).result()
    ended = f"No longer open: {catalog.book(row['sportsbook']).display_name} has suspended"
    expect(page.locator("#details-ended")).to_contain_text(ended, timeout=PATIENCE_MS)
    expect(page.locator("#details-game .chip")).to_have_text("No longer open")
    page.click("#details-close")
    assert "open=" not in page.url
    page.goto(f"{v.origin}/?list=ev&open={ident}")
    expect(page.locator("#alert-now")).to_contain_text(f"The opportunity of this link: {ended}")
    assert "open=" not in page.url
    server.advance()


def test_a_reference_and_a_method_of_ones_own(visit: Visiting) -> None:
    v = visit()
    page = v.enter()
    page.fill("#least", "0")
    page.click("#more-filters")
    page.wait_for_selector("#sharp option[value=fanduel]", state="attached")
    page.select_option("#sharp", "fanduel")
    with page.expect_response(re.compile("devig_book=fanduel&devig_method=shin")) as found:
        page.select_option("#method", "shin")
    total = found.value.json()["meta"]["total"]
    expect(page.locator("#tab-ev .count")).to_have_text(str(total))
    expect(page.locator("#state")).to_have_text(re.compile("Live|Polling"))


def test_a_key_is_remembered_only_on_request(visit: Visiting) -> None:
    v = visit()
    v.page.goto(v.origin)
    leave(v.page)
    v.page.check("#remember")
    v.page.click("#entry button")
    v.page.wait_for_selector(ROWS)
    v.page.evaluate("sessionStorage.clear()")
    v.page.reload()
    v.page.wait_for_selector(ROWS)
    leave(v.page)
    assert v.page.evaluate("localStorage.getItem('oddsengine.key')") is None


# ---- a row that is opened, bets ----


def opened(page: Page) -> str:
    """Open the first row; its id."""
    page.locator(f"{ROWS} [data-open]").first.click()
    expect(page.locator("#details")).to_be_visible()
    page.wait_for_selector("#details-prices tbody tr")
    return page.locator(ROWS).first.get_attribute("data-id") or ""


def test_a_row_opens_with_its_movement_prices_and_reasons(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    page.click("#pause")
    first = page.locator(ROWS).first
    ident, event = first.get_attribute("data-id"), first.evaluate("(node) => node.item.eventId")
    with server.client() as client:
        said = client.get(f"/opportunities/explain/{ident}?event_id={event}").json()["data"]
    opened(page)
    leg = next(each for each in said["prices"] if each["role"] == "leg")
    same = [each for each in said["prices"] if (each["outcome"], each.get("line")) == (leg["outcome"], leg.get("line"))]
    expect(page.locator("#details-prices tbody tr")).to_have_count(len(same))
    expect(page.locator("#details-prices .chip.good")).to_have_text("This bet")
    expect(page.locator("#details-agree")).to_have_text(re.compile(r"^\d+ of \d+ independent books agree"))
    expect(page.locator(".chart")).to_have_attribute("aria-label", re.compile("^Prices of"))
    assert page.locator(".chart .leg-line").count() == 1
    assert page.locator(".chart .book-line").count() > 3
    assert said["reference"] == "close"
    fair = next(each["fair_probability"] for each in said["fair"] if each["outcome"] == leg["outcome"])
    drawn = page.locator(".chart .fair-line").get_attribute("d") or ""
    assert re.fullmatch(r"M[\d.]+ [\d.]+H[\d.]+", drawn), "a level: the fair price that the EV is computed from"
    label = page.locator(".chart").get_attribute("aria-label") or ""
    assert label.endswith(f"; fair now {1 / fair:.2f}")
    sharp = page.locator(".chart .sharp-line title")
    assert sharp.evaluate("(node) => node.textContent").endswith(" without its margin")
    expect(page.locator("#details-why")).to_contain_text("Fair price from")
    expect(page.locator("#calculator-out dd").first).to_be_visible()
    for name in ("boost", "free-bet", "parlay", "middle", "arbitrage", "hedge"):
        page.select_option("#calculator", name)
        expect(page.locator("#calculator-out dd").first).to_be_visible()
        expect(page.locator("#calculator-out .error")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("#details")).to_be_hidden()
    expect(page.locator(f"{ROWS} [data-open]").first).to_be_focused()


def test_a_price_has_one_ev(visit: Visiting, server: Running) -> None:
    """In the details of an arbitrage, each price has the EV that the +EV list has for it."""
    v = visit()
    page = v.enter()
    v.tab("arbitrage")
    page.click("#pause")
    opened(page)
    event, market = page.locator(ROWS).first.evaluate("({ item }) => [item.eventId, item.market]")
    shown = page.locator("#details-prices tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [row.cells[0].firstChild.data, row.cells[1].innerText, row.cells[3].innerText])"
    )
    with server.client() as client:
        rows = client.get(f"/opportunities/ev?event={event}&market={market}&min_ev=-100&limit=200").json()["data"]
    listed = {
        (catalog.book(row["sportsbook"]).name, format_american(row["odds_american"]).replace("-", "−"),
         f"{row['ev_percentage']:.2f} %".replace("-", "−"))
        for row in rows
    }  # fmt: skip
    valued = {tuple(each) for each in shown if each[2]}
    assert len(valued) > 3
    assert valued <= listed


def test_a_bet_is_placed_tracked_and_settled(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    page.click("#pause")
    opened(page)
    page.fill("[data-ticket='0'][name=stake]", "")
    page.click("#details-place")
    expect(page.locator("#details-said")).to_contain_text("stake of each leg")
    page.fill("[data-ticket='0'][name=stake]", "50")
    page.fill("[data-ticket='0'][name=odds]", "+150")
    page.click("#details-place")
    expect(page.locator("#details-said")).to_contain_text("Bet added; see Bets.")
    expect(page.locator("#details-said")).to_contain_text(re.compile("closing price is recorded|Placed in play"))
    page.click("#details-close")
    expect(page.locator(f"{ROWS} .chip.good").first).to_have_text("Placed")
    v.tab("bets")
    row = page.locator("#bets-table tbody tr").first
    row.locator("select").select_option("half_won")
    expect(row.locator("td").last).to_contain_text(re.compile("^3[67]"))
    with server.client() as client:
        bet = client.get("/bets").json()["data"][0]
    assert (bet["odds_decimal"], bet["stake"], bet["result"]) == (2.5, 50.0, "half_won")
    assert bet["event_id"]
    assert bet["odds_id"]
    with page.expect_download() as download:
        page.click("#bets-export")
    assert download.value.suggested_filename == "bets.csv"
    row.locator("[data-remove]").click()
    expect(row.locator("[data-remove]")).to_have_text("Delete for good")
    with server.client() as client:
        assert len(client.get("/bets").json()["data"]) == 1  # asked only
    row.locator("[data-remove]").click()
    expect(page.locator("#bets-said")).to_have_text("Deleted.")


def test_rows_are_hidden_and_noted(visit: Visiting) -> None:
    v = visit()
    page = v.enter()
    page.click("#pause")
    ungroup(page)
    ident = opened(page)
    page.fill("#details-note", "ask a friend")
    page.locator("#details-note").press("Tab")
    expect(page.locator(f"[data-id='{ident}'] .chip.note")).to_have_text("ask a friend")
    page.click("#details-hide")
    expect(page.locator("#details-said")).to_have_text("Hidden.")
    page.click("#details-close")
    expect(page.locator(f"[data-id='{ident}']")).to_have_count(0)
    page.click("#more-filters")
    page.check("#hidden-too")
    expect(page.locator(f"[data-id='{ident}'] .chip.gone")).to_have_text("Hidden")
    page.locator(f"[data-id='{ident}'] [data-open]").click()
    page.fill("#details-note", "")
    page.locator("#details-note").press("Tab")
    page.click("#details-hide")
    expect(page.locator("#details-said")).to_have_text("No longer hidden.")


def test_an_alert_is_told_once_and_again_when_it_improves(visit: Visiting) -> None:
    v = visit()
    first, then = found_ev(1, ev_percentage=3.0), found_ev(2, ev_percentage=4.0, game_id="g2")
    v.page.add_init_script("""
        window.beeps = [];
        window.AudioContext = class {  // a machine of tests has no sound
            currentTime = 0;
            createOscillator() {
                return { frequency: {}, connect: (to) => to, start: () => beeps.push(1), stop() {} };
            }
            createGain() {
                return { gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} }, connect: (to) => to };
            }
        };
    """)
    v.stream("opportunities", *beginning(("ev:detected", [first])))
    page = v.enter()
    page.fill("#least", "2")
    page.click("#more-filters")
    page.fill("#save-name", "good ones")
    page.locator("#save-name").press("Enter")
    expect(page.locator("#save-said")).to_have_text("Saved as good ones.")
    v.tab("alerts")
    page.click("#alert-form button[type=submit]")
    expect(page.locator("#alert-list b")).to_have_text(["good ones"])
    page.wait_for_timeout(1500)  # a look of the page
    assert page.evaluate("beeps.length") == 0
    v.page.unroute_all()
    v.stream("opportunities", *beginning(("ev:detected", [first, then, found_ev(3, ev_percentage=1.0)])))
    page.click("#again")
    expect(page.locator("#alert-now")).to_contain_text("good ones: 4.00 %")
    assert page.evaluate("beeps.length") == 1
    v.page.unroute_all()
    v.stream("opportunities", *beginning(("ev:detected", [first, {**then, "ev_percentage": 5.5}])))
    page.click("#again")
    expect(page.locator("#alert-now")).to_contain_text("good ones: 5.50 %")
    page.fill("#alert-targets", "https://127.0.0.1/hook")
    v.accepted = "400"
    page.click("#alert-form button[type=submit]")
    expect(page.locator("#alert-said")).to_contain_text("private network")
    page.click("#alert-list [data-do=delete]")
    expect(page.locator("#alert-list")).to_have_text("No alerts yet.")


def test_a_target_of_an_alert_is_confirmed_on_the_page(
    visit: Visiting, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.service.alerts.sender.webhooks, "private", True)
    v = visit()
    page = v.enter()
    page.click("#more-filters")
    page.fill("#save-name", "confirmed")
    page.locator("#save-name").press("Enter")
    expect(page.locator("#save-said")).to_have_text("Saved as confirmed.")
    v.tab("alerts")
    page.select_option("#alert-filter", "confirmed")
    with hooked() as hook:
        Hook.codes.clear()
        page.fill("#alert-targets", hook.url)
        page.click("#alert-form button[type=submit]")
        expect(page.locator("#alert-said")).to_contain_text("enter its code")
        expect(page.locator("#alert-list")).to_contain_text("not confirmed: http://localhost/...")
        (code,) = Hook.codes
        v.accepted = "400"
        page.fill("#alert-list input", "0")
        v.tab("ev")
        v.tab("alerts")
        expect(page.locator("#alert-list input")).to_have_value("0")  # what is typed stays when the list is read again
        page.click("#alert-list [data-do=confirm]")
        expect(page.locator("#alert-said")).to_contain_text("test message")
        page.fill("#alert-list input", code)
        page.click("#alert-list [data-do=confirm]")
        expect(page.locator("#alert-said")).to_have_text("Saved.")
        expect(page.locator("#alert-list")).not_to_contain_text("not confirmed")
    page.click("#alert-list [data-do=delete]")
    expect(page.locator("#alert-list")).to_have_text("No alerts yet.")


# ---- the board ----


def test_the_odds_screen_is_what_the_service_says(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    v.tab("board")
    page.wait_for_selector("#screen .outcome")
    page.click("#pause")
    league, market = page.input_value("#screen-league"), page.input_value("#market")
    assert market == "moneyline"
    with server.client() as client:
        games = client.get(f"/odds/screen?league={league}&market={market}").json()["data"]
    outcomes = [outcome for game in games for each in game["markets"] for outcome in each["outcomes"]]
    rows = page.locator("#screen .outcome")
    expect(rows).to_have_count(len(outcomes))
    expect(page.locator("#screen .game")).to_have_count(len(games))
    heads = texts(page, "#screen thead th")[3:]
    books = {book for outcome in outcomes for book in outcome["prices"]}
    assert len(heads) == len(books)
    for row, outcome in zip(rows.all()[:6], outcomes, strict=False):
        assert outcome["selection"] in row.locator("th").inner_text()
        cells = row.locator("td").all_inner_texts()
        assert len(cells) == 2 + len(books)
        assert row.locator("td.best").count() == len(outcome["best"])
        if outcome["best"]:
            best = outcome["prices"][outcome["best"][0]]["odds_american"]
            assert number(cells[0].split()[0]) == pytest.approx(best, abs=0.5)
            assert all(number(text.split()[0]) == number(cells[0].split()[0])
                       for text in row.locator("td.best").all_inner_texts())  # fmt: skip
        assert cells[2:].count("·") == len(books) - len(outcome["prices"])
    total = page.locator("#market option[value^=total_]").first.get_attribute("value")
    assert total
    page.click("#pause")
    page.select_option("#market", total)
    expect(page.locator("#screen .outcome th").first).to_have_text(re.compile(r"^Over [\d.]+$"))
    page.locator("#screen [data-event]").first.click()
    page.wait_for_selector("#board tbody tr")
    expect(page.locator("#all-games")).to_be_hidden()
    assert "event=" in page.url
    page.click("#back-to-games")
    page.wait_for_selector("#screen .outcome")
    assert "event=" not in page.url
    expect(page.locator("#event")).to_be_focused()


def test_the_odds_screen_is_searched(visit: Visiting, server: Running) -> None:
    page = visit().enter()
    page.click("#tab-board")
    games = page.locator("#screen tbody tr.game")
    expect(games.first).to_be_visible()
    expect(page.locator("#find")).to_be_visible()
    league = page.locator("#screen-league").input_value()
    with server.client() as client:
        events = client.get(f"/events?league={league}").json()["data"]
    team = events[0]["home_team"]
    count = games.count()
    assert count > 1
    page.fill("#find", team.upper())
    expect(games).to_have_count(1)
    expect(page.locator("#screen-summary")).to_contain_text("1 game,")
    page.fill("#find", "no such team")
    expect(page.locator("#screen-summary")).to_contain_text("No matches for this search.")
    page.fill("#find", "")
    expect(games).not_to_have_count(1)


def test_the_odds_screen_follows_prices_and_books(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    v.tab("board")
    page.wait_for_selector("#screen .outcome")
    count = len(texts(page, "#screen thead th"))
    body = page.locator("#screen tbody")
    before = body.inner_text()
    server.advance(4)
    expect(body).not_to_have_text(before, use_inner_text=True)
    page.click("#books")
    page.click("#books-none")
    page.check("#books-boxes input[value=fanduel]")
    page.check("#books-boxes input[value=draftkings]")
    page.keyboard.press("Escape")
    expect(page.locator("#screen thead th")).to_have_count(5)
    assert count > 5
    assert {*texts(page, "#screen thead th")[3:]} == {"DraftKings", "FanDuel"}


def test_movers_open_the_lines_of_all_books(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    server.advance(6)
    v.tab("movers")
    page.select_option("#movers-live", "")
    page.wait_for_selector("#movers-table tbody tr")
    with server.client() as client:
        rows = client.get("/odds/movers?minutes=10&limit=50").json()["data"]
    expect(page.locator("#movers-table tbody tr")).to_have_count(len(rows))
    first = page.locator("#movers-table tbody tr").first
    expect(first).to_contain_text(f"{rows[0]['shorter']} of {rows[0]['books']} shortened")
    first.click()
    expect(page.locator("#moves")).to_be_visible()
    page.wait_for_selector("#moves-chart svg")
    assert page.locator("#moves-prices tbody tr").count() >= 3
    evs = {text for text in texts(page, "#moves-prices tbody td:nth-child(3)") if text != "–"}
    best = rows[0]["odds"]
    with server.client() as client:
        (game,) = client.get(f"/odds/screen?event={best['event_id']}&market={best['market_type']}").json()["data"]
    listed = [
        price["ev_percentage"] for market in game["markets"] for outcome in market["outcomes"]
        for price in outcome["prices"].values()
    ]  # fmt: skip
    figures = [each for each in (rows[0]["ev_percentage"], *listed) if each is not None]
    assert evs
    assert evs <= {f"{each:.2f} %".replace("-", "−") for each in figures}
    page.click("#moves-close")
    page.select_option("#movers-sort", "spread")
    expect(page.locator("#movers-table td[data-label='Spread between books']").first).to_have_text(re.compile(r" pt$"))


def test_settings_are_where_lists_begin(visit: Visiting) -> None:
    v = visit()
    page = v.enter()
    page.click("#open-settings")
    page.fill("#setting-ev", "2")
    page.locator("#setting-ev").press("Tab")
    page.select_option("#setting-theme", "dark")
    page.select_option("#setting-zone", "UTC")
    page.click("#settings-close")
    expect(page.locator("#least")).to_have_value("2")
    assert "min_ev" not in page.url
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 26)"
    page.goto(v.origin)
    expect(page.locator("#least")).to_have_value("2")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 26)"
    page.goto(f"{v.origin}/?min_ev=0.5")
    expect(page.locator("#least")).to_have_value("0.5")


def test_books_of_the_settings_are_chosen_at_the_start(visit: Visiting) -> None:
    v = visit()
    page = v.enter()
    page.click("#books")
    page.click("#books-none")
    page.check("#books-boxes input[value=fanduel]")
    page.keyboard.press("Escape")
    page.click("#open-settings")
    page.click("#setting-books-keep")
    expect(page.locator("#setting-books")).to_have_text("1 book: FanDuel")
    page.click("#settings-close")
    page.goto(v.origin)
    expect(page.locator("#books")).to_have_text("FanDuel")
    page.click("#open-settings")
    page.click("#setting-books-all")
    page.click("#settings-close")
    expect(page.locator("#books")).to_have_text("All")


def test_books_that_take_bets_in_a_place_are_chosen(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    page.click("#books")
    page.select_option("#books-place", "US-NJ")
    boxes = page.locator("#books-boxes input:checked")
    expect(boxes).to_have_count(3)
    assert {box.get_attribute("value") for box in boxes.all()} == {"caesars", "draftkings", "fanduel"}
    expect(page.locator("#books-said")).to_contain_text("3 books known to take bets there.")
    expect(page.locator("#books")).to_have_text("3 books")
    page.check("#books-boxes input[value=betmgm]")
    expect(page.locator("#books")).to_have_text("4 books")
    page.wait_for_function("location.search.includes('betmgm')")
    with server.client() as client:
        here = client.get("/sportsbooks?location=GB").json()["data"]
    page.select_option("#books-place", "GB")
    expect(boxes).to_have_count(len(here))


def test_prices_for_a_stake(visit: Visiting) -> None:
    v = visit()
    page = v.enter()
    page.click("#more-filters")
    with page.expect_request(lambda request: "/stream/opportunities" in request.url and "stake=5000" in request.url):
        page.fill("#staked", "5000")
        page.locator("#staked").press("Tab")
    expect(page.locator("#more-filters")).to_have_text("More (1)")
    assert "stake=5000" in page.url
    page.wait_for_selector(ROWS)
    with page.expect_request(lambda request: "/explain/" in request.url and "stake=5000" in request.url):
        page.locator(ROWS).first.locator("[data-open]").first.click()
    page.goto(page.url)  # it stands in the address
    expect(page.locator("#staked")).to_have_value("5000")


def test_an_alert_is_made_from_a_list(visit: Visiting) -> None:
    v = visit()
    page = v.enter()
    page.click("#pause")
    page.fill("#least", "0")
    rows = page.locator(ROWS).count()
    page.click("#bell")
    expect(page.locator("#bell-what")).to_contain_text("match now")
    assert page.locator("#bell-preview li").count() == min(3, rows)
    page.fill("#bell-name", "from a list")
    page.click("#bell-form button[type=submit]")
    expect(page.locator("#bell-dialog")).to_be_hidden()
    expect(page.locator("#alert-now")).to_have_text("The alert from a list is on.")
    v.tab("alerts")
    expect(page.locator("#alert-list")).to_contain_text("from a list")
    page.click("#alert-list [data-do=delete]")
    v.tab("ev")
    page.click("#bell")
    page.fill("#bell-name", "sent away")
    page.fill("#bell-targets", "nonsense")
    page.click("#bell-form button[type=submit]")
    v.accepted = "400"
    expect(page.locator("#bell-said")).to_contain_text("A target must begin with https://")


def test_a_total_is_shared_among_the_legs(visit: Visiting) -> None:
    v = visit()
    v.accepted = "404"
    leg = {
        "odds_american": 110.0, "odds_decimal": 2.1, "line": None, "selection_type": "home", "stake_percent": 50.0,
    }  # fmt: skip
    now = datetime.now(UTC)
    row = {
        "id": "arb1", "event_id": "g1", "event_name": "Guests @ Hosts", "sport": "soccer", "league": "x",
        "market_type": "moneyline", "market_segment": "full_game", "player_name": None, "profit_percent": 5.0,
        "start_time": (now + timedelta(hours=2)).isoformat(), "detected_at": now.isoformat(), "is_live": False,
        "possibly_stale": False, "oldest_odds_age_seconds": 5.0, "terms_differ": False, "terms": [],
        "largest_stakes": [], "largest_profit": 0.0,
        "legs": [
            leg | {"sportsbook": "fanduel", "selection": "Hosts", "odds_id": "a"},
            leg | {"sportsbook": "bet365", "selection": "Guests", "odds_id": "b"},
        ],
    }  # fmt: skip
    v.stream("opportunities", *beginning(("arb:detected", [row])))
    page = v.page
    page.goto(f"{v.origin}/?list=arbitrage")
    page.click(f"{ROWS} [data-open]")
    expect(page.locator("#details-kelly")).to_contain_text("whichever bet wins returns 105.00 for every 100 staked")
    page.fill("#details-total", "1,000")
    expect(page.locator("[data-ticket='0'][name=stake]")).to_have_value("500")
    expect(page.locator("[data-ticket='1'][name=stake]")).to_have_value("500")


def test_bets_are_added_corrected_and_imported(visit: Visiting, server: Running, tmp_path: Path) -> None:
    v = visit()
    made = keys_of(server).create("tracker", KeyTerms("pro", streaming=True))
    page = v.enter(made.key)
    v.tab("bets")
    page.click("#bets-add")
    page.click("#bet-form button[type=submit]")
    expect(page.locator("#bet-said")).to_have_text("Enter the bet.")
    page.fill("#bet-selection", "Boston Celtics −3.5")
    page.select_option("#bet-book", "draftkings")
    page.fill("#bet-odds", "50")
    page.fill("#bet-stake", "1,000")
    page.click("#bet-form button[type=submit]")
    expect(page.locator("#bet-said")).to_contain_text("Enter the odds, such as +110")
    page.fill("#bet-odds", "+110")
    page.fill("#bet-stake", "1,000")
    page.fill("#bet-fair", "+100")
    page.click("#bet-form button[type=submit]")
    row = page.locator("#bets-table tbody tr")
    expect(row).to_contain_text("Boston Celtics −3.5")
    expect(row).to_contain_text("EV 5.0 %")
    page.click("#bets-table [data-edit]")
    expect(page.locator("#bet-odds")).to_have_value("+110")
    page.click("#bet-form button[type=submit]")
    page.click("#bets-table [data-edit]")
    page.fill("#bet-odds", "+120")
    page.select_option("#bet-result", "won")
    page.click("#bet-form button[type=submit]")
    expect(row).to_contain_text("1,200")
    lines = [
        "Date;Sportsbook;Pick;Price;Wager;Status;Event", '2/3/2026;FanDuel;"Heat; +3";-110;$50.00;Win;Heat @ Celtics',
        "13/1/2026;BetMGM;Over 220;1,95;25;loss;", "4/2/2026;BetMGM;Under 220;0.5;25;loss;",
    ]  # fmt: skip
    file = tmp_path / "bets.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    page.click("#bets-import")
    page.set_input_files("#file-chosen", file)
    page.select_option("#file-order", "day")
    expect(page.locator("#file-said")).to_have_text("2 bets ready to import; 1 row skipped: row 4: invalid odds 0.5.")
    assert "Heat; +3" in page.locator("#file-preview tbody tr").first.inner_text()
    page.click("#file-import")
    expect(page.locator("#file-said")).to_have_text("2 bets imported.")
    page.click("#bet-file [data-close]")
    expect(row).to_have_count(3)
    with server.client(
        None, headers={"X-API-Key": page.evaluate("sessionStorage.getItem('oddsengine.key')")}
    ) as client:
        bets = {bet["selection"]: bet for bet in client.get("/bets").json()["data"]}
    heat, over = bets["Heat; +3"], bets["Over 220"]
    assert (heat["stake"], heat["result"], heat["away_team"], heat["placed_at"][:7]) == (50.0, "won", "Heat", "2026-03")
    assert (over["odds_decimal"], over["result"], over["profit"]) == (1.95, "lost", -25.0)
    course = page.get_attribute("#bets-course .leg-line", "d") or ""
    drawn = [tuple(map(float, point.split())) for point in re.findall(r"[\d.]+ [\d.]+", course)]
    nought = page.locator("#bets-course text", has_text=re.compile("^0$")).get_attribute("y") or ""
    assert drawn[0][1] == pytest.approx(float(nought) - 4, abs=0.1)  # it begins at 0
    dates = page.locator("#bets-course .tick").evaluate_all(
        "(all) => all.map((each) => Number(each.getAttribute('x1')))"
    )
    assert len(dates) == len(drawn) - 1
    assert dates == pytest.approx([x for x, _ in drawn[1:]], abs=0.1)  # each below its point
    expect(page.locator("#bets-groups tbody tr")).to_have_count(3)
    expect(page.locator("#bets-summary > div").first).to_have_attribute("aria-label", "Settled")
    expect(page.locator("#bets-summary > div").first).to_contain_text("Expected profit")
    page.select_option("#bets-by", "months")
    expect(page.locator("#bets-groups tbody th").first).to_have_text("2026-01")
    page.select_option("#bets-book", "betmgm")
    expect(row).to_have_count(1)
    page.fill("#bets-until", "2026-01-01")
    expect(page.locator("#bets-table .empty")).to_have_text("No bets match these filters.")


def test_a_key_is_rotated_and_what_it_stores_is_backed_up(visit: Visiting, server: Running, tmp_path: Path) -> None:
    v = visit()
    made = keys_of(server).create("mover", KeyTerms("pro", streaming=True))
    headers = {"X-API-Key": made.key}
    with server.client(None, headers=headers) as client:
        bet = {"sportsbook": "fanduel", "selection": "Boston Celtics", "odds_decimal": 2.1, "stake": 50.0}
        ident = client.post("/bets", json=bet).json()["data"]["id"]
        page = v.enter(made.key)
        page.click("#open-settings")
        with page.expect_download() as saved:
            page.click("#backup")
        expect(page.locator("#backup-said")).to_contain_text("1 bet, 0 filters")
        saved.value.save_as(file := tmp_path / "backup.json")
        client.delete(f"/bets/{ident}")
        page.set_input_files("#restore", file)
        expect(page.locator("#backup-said")).to_have_text("1 record was added or replaced.")
        assert [each["id"] for each in client.get("/bets").json()["data"]] == [ident]
        (wrong := tmp_path / "wrong.json").write_text("[", encoding="utf-8")
        page.set_input_files("#restore", wrong)
        expect(page.locator("#backup-said")).to_have_text("wrong.json is not a backup: it is not JSON.")
        page.click("#rotate")
        page.click("#rotate-now")
        secret = page.locator("#rotate-said code")
        expect(secret).not_to_have_text(made.key)
        assert client.get("/account").status_code == 200  # for a day
    with server.client(None, headers={"X-API-Key": secret.inner_text()}) as client:
        assert client.get("/bets").json()["meta"]["total"] == 1
    page.click("#settings-close")
    expect(page.locator("#state")).to_have_text("Live")


def test_the_sources_of_prices_are_told(visit: Visiting) -> None:
    v = visit()
    feeds = [
        {"name": "main", "kind": "the_odds_api", "status": "green", "reason": "prices arrive in time", "books": ["a"],
         "last_message_at": datetime.now(UTC).isoformat(), "events": 12, "rows": 3400, "stale_share": 0.02},
        {"name": "file", "kind": "table", "status": "red", "reason": "no valid row", "books": [], "events": 0,
         "last_message_at": None, "rows": 0, "stale_share": None,
         "written_at": (datetime.now(UTC) - timedelta(minutes=12)).isoformat()},
    ]  # fmt: skip
    meta = {
        "status": "amber",
        "reason": "a source is down",
        "rows": 3400,
        "books": 1,
        "events": 12,
        "stale_share": 0.02,
    }
    answer = json.dumps({"success": True, "data": feeds, "meta": meta})
    v.page.route("**/api/v1/feeds", lambda route: route.fulfill(body=answer, content_type="application/json"))
    page = v.enter()
    expect(page.locator("#sources-said")).to_have_text(re.compile(r"^Feeds degraded, a file written 1[23] min ago$"))
    page.click("#sources")
    expect(page.locator("#sources-sum")).to_contain_text(
        "A source is down. 3,400 prices from 1 book on 12 games, 2.0 % stale."
    )
    rows = page.locator("#sources-table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("no valid row")
    expect(rows.nth(1)).to_contain_text("never")


def test_columns_and_chips_are_explained_without_hovering(visit: Visiting) -> None:
    v = visit(has_touch=True)
    far = {"ev_low": -1.0, "ev_high": 4.0, "prob_positive": 0.8, "ev_vs_sharp": 1.0, "flags": ["UNMEASURED"]}
    v.stream("opportunities", *beginning(("ev:detected", [found_ev(1, reference="close", **far)])))
    page = v.enter(KEY)
    page.click("#welcome-close")
    expect(page.locator("#legend")).to_be_hidden()
    page.click("#legend-open")
    expect(page.locator("#legend")).to_contain_text("average profit in percent of the stake")
    page.click("#legend-open")
    expect(page.locator("#legend")).to_be_hidden()
    chip = page.locator(f"{ROWS} .chip", has_text="Untested market")
    chip.tap()
    expect(page.locator("#tip")).to_contain_text("has not been tested against closing prices")
    expect(page.locator("#details")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()


def test_a_bankroll_is_asked_for_once_and_where_a_stake_is_opened(visit: Visiting) -> None:
    v = visit()
    v.accepted = "404"
    row = found_ev(1, kelly_percent=0.08, kelly_shrunk=0.012)
    page = opened_on(v, ("ev:detected", [row]))
    page.fill("#details-bankroll", "much")
    page.keyboard.press("Enter")
    expect(page.locator("#details-said")).to_have_text("Enter the bankroll as a number.")
    page.fill("#details-bankroll", "1,000")
    page.keyboard.press("Enter")
    expect(page.locator("[data-ticket='0'][name=stake]")).to_have_value("12")
    expect(page.locator("[data-ticket='0'][name=stake]")).to_be_focused()
    expect(page.locator("#details-bankroll")).to_have_count(0)
    expect(page.locator("#details-kelly")).to_contain_text("Staked: 12")
    other = visit()
    other.accepted = "404"
    page = opened_on(other, ("ev:detected", [row]))
    page.click("#details-bankroll-later")
    for _ in range(2):
        expect(page.locator("#details-bankroll")).to_have_count(0)
        expect(page.locator("#details-kelly")).to_contain_text("Enter a bankroll in Settings")
        page.goto(other.origin)
        page.click(f"{ROWS} [data-open]")


def test_kelly_stakes_stand_side_by_side(visit: Visiting) -> None:
    v = visit()
    v.accepted = "404"
    row = found_ev(1, kelly_percent=0.08, kelly_shrunk=0.012, max_bet=9.0)
    v.stream("opportunities", *beginning(("ev:detected", [row])))
    page = v.enter(KEY)
    page.click("#open-settings")
    page.fill("#bankroll", "1000")
    page.locator("#bankroll").press("Tab")
    page.click("#settings-close")
    page.click(f"{ROWS} [data-open]")
    stakes = ("Full Kelly8.00 %80", "Half Kelly4.00 %40", "Quarter Kelly2.00 %20", "Reduced for uncertainty1.20 %12")
    expect(page.locator("#details-kelly tr")).to_have_text([re.compile(f"^{each}") for each in stakes])
    expect(page.locator("#details-kelly tr.used")).to_contain_text("Reduced")
    said = page.locator("#details-kelly p")
    expect(said).to_contain_text("Staked: 9, Kelly, reduced for uncertainty; limits: the book takes 9")


def test_stakes_keep_to_the_rules_of_a_venue(visit: Visiting) -> None:
    """In its steps; none below its minimum; and how late a bet is accepted is said."""
    v = visit()
    v.accepted = "404"
    rules = {"kelly_shrunk": 0.012, "bet_step": 0.7, "bet_delay": 5.0}
    rows = [found_ev(at, min_bet=least, **rules) for at, least in ((1, 2.0), (2, 20.0))]
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter(KEY)
    page.click("#open-settings")
    page.fill("#bankroll", "1000")
    page.locator("#bankroll").press("Tab")
    page.click("#settings-close")
    expect(page.locator(f"{ROWS}")).to_contain_text(["under 20", "11.90"])
    page.locator(f"{ROWS} [data-open]").last.click()
    said = page.locator("#details-kelly p")
    expect(said).to_contain_text("Staked: 11.90")
    expect(said).to_contain_text("limits: minimum 2, in steps of 0.70, accepted after 5 s")


def test_board_has_every_book_and_marks_the_best(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.enter()
    page.locator("[data-compare]").first.click()
    expect(page.locator("#tab-board")).to_have_attribute("aria-selected", "true")
    page.wait_for_selector("#board tbody tr")
    page.select_option("#market", "main")
    page.check("#alternates")
    page.click("#pause")
    with server.client() as client:
        event = page.input_value("#event")
        priced = client.get(f"/events/{event}").json()["data"]["books"]
        charged = any(catalog.book(book).commission or catalog.book(book).fee for book in priced)
        books = {book["name"] for book in client.get("/sportsbooks").json()["data"] if book["id"] in priced}
    assert {*texts(page, "#board thead th")[3:]} <= books
    show_odds(page, "decimal")
    page.wait_for_timeout(200)
    for row in page.locator("#board tbody tr").all()[:12]:
        cells = row.locator("td").all_inner_texts()
        best = [number(text.split()[0]) for text in row.locator("td.best").all_inner_texts()]
        assert number(cells[1 - 1].split()[0]) == best[0]
        others = row.locator("td:nth-child(n+4):not(.refused)").all_inner_texts()
        offers = [number(text.split()[0]) for text in others if text.strip() not in ("·", "")]
        assert best[0] == max(offers) or (best[0] in offers and charged)  # an exchange may quote more, and pay less
    page.click("#pause")
    expect(page.locator("#state")).to_have_text("Live")
    for _ in range(6):
        server.advance(2)
        page.wait_for_timeout(400)
    assert page.locator("#board svg[role=img]").count() > 0
    assert ", from " in (page.locator("#board svg[role=img]").first.get_attribute("aria-label") or "")


def test_board_never_stars_what_cannot_be_bet(visit: Visiting, server: Running) -> None:
    """Each price has its age; a rejected one is crossed out with its reason; the best is the best after commission."""
    now = server.node.engine.now
    assert now is not None

    def side(book: str, team: str, odds: float, **more: Any) -> dict[str, Any]:
        return {
            "sportsbook": book, "event_id": "starred", "sport": "basketball", "league": "nba",
            "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline", "selection": team,
            "odds_decimal": odds, "event_start_time": now + timedelta(hours=3), "last_seen_at": now, **more,
        }  # fmt: skip

    books = {"fanduel": (1.95, 1.9), "betfair_exchange": (2.04, 1.93), "bet365": (2.0, 1.88)}
    both = [
        side(book, team, odds)
        for book, two in books.items()
        for team, odds in zip(("Boston Celtics", "Miami Heat"), two, strict=True)
    ]
    old = side("pinnacle", "Boston Celtics", 4.4, last_seen_at=now - timedelta(seconds=640))
    off = side("betmgm", "Boston Celtics", 2.5)
    server.node.write(server.node.step, [*both, old, off], now).result(30)
    v = visit()
    page = v.enter()
    v.tab("board")
    page.select_option("#event", "starred")
    row = page.locator("#board tbody tr", has=page.locator("th", has_text="Boston Celtics"))
    expect(row.locator("td.best")).to_have_count(1)
    expect(row.locator("td.best span").first).to_have_text("+100")  # the exchange pays 1.988 of its +104
    expect(row.locator("td").first).to_have_text(re.compile(r"\+100\s*bet365"))
    for odds, why in (("+340", "not seen for too long"), ("+150", "too generous compared with the other books")):
        cell = row.locator("td.refused", has=page.locator("s", has_text=odds))
        expect(cell.locator(".why")).to_have_text(why)
    expect(cell.locator(".why")).to_have_attribute("title", "guard: outlier")
    assert row.locator("td:has(span, s) time.seen").count() == 5
    expect(row.locator("td.refused time.seen").last).to_have_text(re.compile(r"^(9|1[01]) min$"))
    server.node.write(server.node.step, [old | {"last_seen_at": now, "odds_decimal": 2.01}], now).result(30)
    expect(row.locator("td.best span").first).to_have_text("+101")  # it was seen again, and is no longer stale


def test_board_follows_the_merge_rules_and_any_framing(visit: Visiting) -> None:
    v = visit()
    v.stream("opportunities", *beginning(("ev:detected", [found_ev(1)])), ends="\r\n")
    moved = {"odds_american": 150.0, "odds_decimal": 2.5, "odds_probability": 0.4, "line": None, "is_live": False}
    now = {"odds_changed_at": datetime.now(UTC).isoformat()}
    v.stream(
        "events/g1",
        ("connected", {}),
        ("snapshot", {"odds": [price(1), price(2, sportsbook="caesars"), price(3, sportsbook="novig")]}),
        ("snapshot:complete", {}),
        ("odds:update", {"odds": [{"id": "p1", **moved, **now}, {"id": "unknown", **moved, **now}], "book": "bet365"}),
        ("odds:removed", {"ids": ["p2", "unknown"], "count": 2, "book": "caesars"}),
        ends="\r",
    )
    page = v.enter()
    page.locator("[data-compare]").first.click()
    page.wait_for_selector("#board tbody tr")
    expect(page.locator("#board tbody tr")).to_have_count(1)
    expect(page.locator("#board thead th")).to_have_text(["Selection", "Best", "Movement", "bet365", "Novig"])
    expect(page.locator("#board td:nth-child(4) span").first).to_have_text("+150")
    expect(page.locator("#board td:nth-child(3) svg")).to_have_attribute(
        "aria-label", "best price: 1 move, from 2.00 to 2.50 decimal"
    )
    expect(page.locator("#state")).to_have_text("Broken: The server closed the stream.")
    expect(page.locator("#board td.best")).to_have_count(0)  # nobody knows whether it is still there
    expect(page.locator("#board td").first).to_have_text("not confirmed")
    expect(page.locator("#board-summary")).to_contain_text("Not live: these prices may be out of date.")
    with page.expect_request("**/stream/opportunities*"):
        page.click("#again")


def test_history_goes_before_what_was_seen(visit: Visiting) -> None:
    v = visit()
    v.stream("opportunities", *beginning(("ev:detected", [found_ev(1)])))
    v.stream("events/g1", *beginning(("snapshot", {"odds": [price(1)]})))
    early = [(datetime.now(UTC) - timedelta(hours=hours)).isoformat() for hours in (3, 2, 1)]
    points = {"at": early[1:], "odds_decimal": [2.1, 2.2], "is_active": [True, True]}
    moved = {"id": "p1", "opening": {"at": early[0], "odds_decimal": 2.05}, "points": points, "omitted": 0}
    told = {"data": [moved], "pagination": {"next_offset": None}}
    v.page.route("**/odds/history?*", lambda route: route.fulfill(json=told))
    page = v.enter()
    page.locator("[data-compare]").first.click()
    label = page.locator("#board td:nth-child(3) svg")
    expect(label).to_have_attribute("aria-label", "best price: 3 moves, from 2.05 to 2.00 decimal")


# ---- what goes wrong ----


def test_a_wrong_key_is_told_in_a_sentence(visit: Visiting) -> None:
    v = visit()
    v.accepted = "401"
    page = v.page
    page.goto(v.origin)
    leave(page)
    page.fill("#key", "nobody")
    page.keyboard.press("Enter")
    expect(page.locator("#key-error")).to_have_text("Invalid API key.")
    expect(page.locator("#key-error")).to_have_attribute("role", "alert")
    expect(page.locator("#key")).to_be_focused()
    expect(page.locator("#key")).to_have_attribute("aria-invalid", "true")
    assert page.evaluate("sessionStorage.length") == 0
    page.fill("#key", "käse")
    page.keyboard.press("Enter")
    expect(page.locator("#key-error")).to_contain_text("no spaces")
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector(ROWS)
    leave(page)
    expect(page.locator("#entry")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_tier_without_streams_asks(visit: Visiting, server: Running) -> None:
    v = visit()
    v.page.clock.install()
    page = v.enter("demo_hobby", shows="#list .empty")  # no arbitrage of the tier's books reaches the minimum
    expect(page.locator("#state")).to_have_text("Polling every 15 s")
    expect(page.locator("#notice")).to_contain_text("not include streaming")
    expect(page.locator("#tab-arbitrage")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#tab-ev .count")).to_have_text("Pro")
    for _ in range(2):
        with server.client("hobby") as client:
            for kind, path in (("arbitrage", "arbitrage?"), ("low_hold", "low-hold?")):
                total = client.get(f"/opportunities/{path}&limit=1").json()["meta"]["total"]
                expect(page.locator(f"#tab-{kind} .count")).to_have_text(str(total), timeout=PATIENCE_MS)
        server.advance(3)
        page.clock.fast_forward(16_000)
    v.tab("ev")
    expect(page.locator("#list .empty")).to_have_text(
        "+EV requires the pro tier or higher; this key has the hobby tier."
    )
    v.tab("board")
    page.wait_for_selector("#screen .outcome")
    page.click("#books")
    with server.client("hobby") as client:
        found = client.get("/sportsbooks").json()["data"]
    mine = {each["id"] for each in found if each["requires_tier"] in ("free", "hobby")}
    shown = page.eval_on_selector_all("#books-boxes input", "(all) => all.map((n) => n.value)")
    assert {*shown} == mine
    assert not [request for request in v.requests if "/stream/" in request.url]


def test_the_lowest_tier_compares_books(visit: Visiting) -> None:
    v = visit()
    page = v.page
    v.ask("demo_free")
    page.wait_for_selector("#screen .outcome")
    expect(page.locator("#notice")).to_contain_text("delayed by 60 s")
    expect(page.locator("#tab-board")).to_have_attribute("aria-selected", "true")


def test_a_key_in_the_address_is_used_and_does_not_stay_there(visit: Visiting, server: Running) -> None:
    v = visit()
    page = v.page
    key = keys_of(server).create("addressed", KeyTerms("hobby")).key
    page.goto(f"{v.origin}/?list=board#key={key}")
    expect(page.locator("#notice")).to_contain_text("The hobby tier does not include streaming")
    assert page.evaluate("location.hash") == ""
    assert "list=board" in page.url


def test_a_key_without_a_kind_is_told_so(visit: Visiting, server: Running) -> None:
    v = visit()
    key = keys_of(server).create("acme", KeyTerms("hobby", streaming=True)).key
    page = v.enter(key, shows="#tab-arbitrage[aria-selected=true]")  # perhaps without rows
    expect(page.locator("#tab-arbitrage")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#state")).to_have_text("Live")
    v.tab("middles")
    expect(page.locator("#list .empty")).to_contain_text("requires the pro tier")


def test_a_revoked_key_is_told_so(visit: Visiting, server: Running) -> None:
    v = visit()
    v.accepted = "401"
    made = keys_of(server).create("acme", KeyTerms("enterprise"))
    page = v.enter(made.key)
    expect(page.locator("#state")).to_have_text("Live")
    keys_of(server).revoke(made.record.id)
    expect(page.locator("#key-error")).to_have_text("Invalid API key.")
    expect(page.locator("#key")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_nothing_of_a_key_stays_when_it_is_revoked(visit: Visiting, server: Running) -> None:
    v = visit()
    v.accepted = "401"
    made = keys_of(server).create("acme", KeyTerms("enterprise"))
    hostile = "<img src=x onerror=alert(1)>"
    with server.client(None, headers={"X-API-Key": made.key}) as client:
        bet = {"sportsbook": "fanduel", "selection": hostile, "odds_decimal": 2, "stake": 5, "note": hostile}
        assert client.post("/bets", json=bet).status_code == 201
        assert client.put(f"/filters/{quote(hostile, safe='')}", json={"list": "ev"}).status_code == 200
        assert client.post("/alerts", json={"filter": hostile}).status_code == 201
    page = v.enter(made.key)
    v.tab("alerts")
    expect(page.locator("#alert-list")).to_contain_text(hostile)
    page.fill("#alert-targets", "https://example.com/secret")
    v.tab("bets")
    expect(page.locator("#bets-table")).to_contain_text(hostile)
    keys_of(server).revoke(made.record.id)
    expect(page.locator("#key-error")).to_have_text("Invalid API key.")
    expect(page.locator("#bets-table")).not_to_contain_text("onerror")
    for part in ("#bets-summary", "#alert-list", "#alert-filter", "#saved"):
        expect(page.locator(part)).not_to_contain_text("onerror")
    assert page.input_value("#alert-targets") == ""
    v.check()


def test_a_broken_stream_is_shown_and_comes_back(visit: Visiting, tmp_path: Path) -> None:
    first = Running(tmp_path / "a").start()
    v = visit(first.origin)
    v.accepted = "ERR_|Failed to load"
    page = v.enter()
    try:
        expect(page.locator("#age")).to_have_text(re.compile(r"^last event \d+ s ago$"))
    finally:
        first.stop()
    expect(page.locator("#state")).to_have_text(re.compile("^Broken: "), timeout=PATIENCE_MS)
    expect(page.locator("#age")).to_contain_text("next try in")
    expect(page.locator("#again")).to_be_visible()
    assert page.locator(ROWS).count() > 0  # what was known stays, and looks old
    second = Running(tmp_path / "b", seed=8)
    second._server.config.port = first.port
    second.start()
    try:
        expect(page.locator("#state")).to_have_text("Live", timeout=60_000)
        with second.client() as client:
            total = client.get("/opportunities/ev?min_ev=1&limit=1").json()["meta"]["total"]
        expect(page.locator("#tab-ev .count")).to_have_text(str(total), timeout=PATIENCE_MS)
        again = [request.headers for request in v.requests if "/stream/" in request.url][-1]
        assert again["last-event-id"].startswith("evt_")
    finally:
        v.check()
        page.goto("about:blank")
        v.page.evaluate("window.violations = []")
        second.stop()


def test_silence_is_shown_and_ends_in_a_new_connection(visit: Visiting) -> None:
    v = visit()
    v.page.clock.install()
    page = v.enter()
    page.wait_for_timeout(1000)  # all of the beginning is here
    page.clock.fast_forward(45_000)
    expect(page.locator("#state")).to_have_text("Late")
    streams = sum("/stream/" in request.url for request in v.requests)
    page.clock.fast_forward(65_000)  # more than enough, even if a heartbeat came since
    expect(page.locator("#state")).to_have_text("Broken: No data received for too long.")
    expect(page.locator("#state")).to_have_text("Live", timeout=PATIENCE_MS)
    assert sum("/stream/" in request.url for request in v.requests) > streams


def test_hostile_names_stay_text(visit: Visiting) -> None:
    v = visit()
    bad = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    v.stream("opportunities", *beginning(("ev:detected", [
        found_ev(1, selection=bad, game=bad, league=bad, market=bad, sportsbook=f'"{bad}', id=f"javascript:{bad}"),
    ])))  # fmt: skip
    v.stream("events/g1", *beginning(("snapshot", {"odds": [
        price(1, home_team=bad, sportsbook=bad, market_type=bad),
        price(2, selection_type="other", selection=bad, market_type=bad),
    ]})))  # fmt: skip
    named = {"data": [{"id": "soccer", "name": bad}], "pagination": {"next_offset": None}}

    def hostile(route: Route) -> None:
        route.fulfill(json=named)

    for what in ("sports", "leagues", "sportsbooks", "markets"):
        v.page.route(f"**/api/v1/{what}", hostile)
    page = v.enter()
    assert bad in page.locator(ROWS).first.inner_text()
    targets = page.eval_on_selector_all("#list a", "(all) => all.map((a) => a.getAttribute('href'))")
    assert all(target.startswith("/api/v1/deeplink/") for target in targets)
    page.locator("[data-compare]").first.click()
    page.wait_for_selector("#board tbody tr")
    assert bad in page.locator("#board").inner_text()
    assert page.locator("img, table script, option script").count() == 0


# ---- scores ----


def state(**other: Any) -> dict[str, Any]:
    row = {
        "home_team": "Hosts", "away_team": "Guests", "sport": "soccer", "league": "x", "home_score": 1, "away_score": 2,
        "is_live": True, "game_period": "2H", "game_clock": "71:20", "possession": None, "stale": False,
    }  # fmt: skip
    return {**row, **other}


def test_scores_stand_beside_what_is_in_play(visit: Visiting) -> None:
    v = visit()
    rows = [found_ev(1, is_live=True), found_ev(2, is_live=True, game_id="g2"), found_ev(3, is_live=False)]
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    v.stream(
        "gamestate",
        ("connected", {}),
        ("gamestate:snapshot", {"g1": state(), "g2": state(home_score=None), "g3": state()}),
        ("gamestate:update", {"g1": state(home_score=3)}),
        ("gamestate:removed", {"ids": ["g3"], "count": 1}),
        ("snapshot:complete", {}),
        ("heartbeat", {}),
    )
    now = ("snapshot", {"odds": [price(1, is_live=True)]}), ("gamestate:snapshot", {"g1": state()})
    v.stream("events/g1", *beginning(*now))
    page = v.enter()
    ungroup(page)
    expect(page.locator("[data-id=ev000002] .chip.live")).to_have_text("In play")
    expect(page.locator("[data-id=ev000003] .chip")).to_have_count(0)
    chip = page.locator("[data-id=ev000001] .score")
    expect(chip.locator("[aria-hidden]")).to_have_text("2–3 2H 71:20")
    expect(chip.locator(".unseen")).to_have_text("In play: Guests 2, Hosts 3. 2nd half 71:20")
    expect(chip).to_have_class(re.compile("dated"))  # the stream that was made up ended
    page.locator("[data-id=ev000001] [data-compare]").click()
    expect(page.locator("#board-score")).to_have_text("Guests 2  Hosts 12nd half, 71:20")


def test_scores_of_the_world_are_shown(visit: Visiting, server: Running) -> None:
    v = visit()
    v.enter()
    page = v.tab("low_hold")
    ungroup(page)
    page.select_option("#when", "live")
    page.wait_for_selector(f"{ROWS} .score")
    with server.client() as client:
        states = client.get("/gamestate?live=true").json()["data"]
    games = {event: each for sport in states.values() for event, each in sport.items()}
    for row in page.locator(f"{ROWS}:has(.score)").all()[:5]:
        game = games[row.evaluate("(node) => node.item.eventId")]
        assert row.locator(".score b").inner_text() == f"{game['away_score']}–{game['home_score']}"
    row.locator("[data-compare]").click()
    expect(page.locator("#board-score b")).to_have_text([str(game["away_score"]), str(game["home_score"])])


def test_a_key_without_the_right_sees_no_scores(visit: Visiting) -> None:
    v = visit()
    v.enter("demo_pro")
    page = v.tab("low_hold")
    page.select_option("#when", "live")
    page.wait_for_selector(f"{ROWS} .chip.live")
    page.wait_for_timeout(500)
    assert page.locator(".score").count() == 0
    v.tab("board")
    page.wait_for_selector("#screen .outcome")
    expect(page.locator("#board-score")).to_be_hidden()
    assert not [request for request in v.requests if re.search("gamestate|stream/all", request.url)]


# ---- below the hand ----


def test_rows_stay_where_they_are_pointed_at(visit: Visiting, server: Running) -> None:
    page = visit().enter()
    order = f"[...document.querySelectorAll('{ROWS}')].map((row) => row.dataset.id)"
    page.fill("#least", "0")  # more rows, of which some end
    page.wait_for_timeout(500)
    page.locator(f"{ROWS} .value").nth(1).hover()
    page.wait_for_timeout(400)
    before = page.evaluate(order)
    server.advance(12)
    page.wait_for_selector(f"{ROWS} .chip.gone")
    assert page.evaluate(order) == before
    page.mouse.move(5, 5)
    expect(page.locator(".chip.gone")).to_have_count(0)
    assert page.evaluate(order) != before


def test_focus_stays_while_prices_move(visit: Visiting, server: Running) -> None:
    page = visit().enter()
    page.locator(f"{ROWS}:nth-child(3) a").focus()
    page.evaluate("window.had = document.activeElement; window.rows = [...document.querySelectorAll('tbody tr')]")
    server.advance(6)
    page.wait_for_timeout(900)
    assert page.evaluate("had === document.activeElement && had.isConnected")
    assert page.evaluate("had.closest('tr').sectionRowIndex") == 2
    page.evaluate("document.activeElement.blur()")


def test_nothing_chatters(visit: Visiting, server: Running) -> None:
    v = visit()
    v.page.add_init_script("""addEventListener("DOMContentLoaded", () => {
        window.said = [];
        new MutationObserver(() => said.push(document.getElementById("said").textContent))
            .observe(document.getElementById("said"), { childList: true });
    })""")
    page = v.enter()
    until(lambda: page.evaluate("said.length") == 1)
    assert page.evaluate("said") == ["Live"]
    for _ in range(4):
        server.advance(2)
        page.wait_for_timeout(400)
    assert page.evaluate("said") == ["Live"]
    page.fill("#find", "no such team")
    until(lambda: page.evaluate("said.length") == 2)
    assert page.evaluate("said[1]").startswith("0 of ")


def test_a_hidden_page_rests_and_wakes(visit: Visiting, server: Running) -> None:
    v = visit()
    v.page.clock.install()
    page = v.enter()
    expect(page.locator("#state")).to_have_text("Live")
    hide = """(hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.clock.fast_forward(30_000)
    expect(page.locator("#state")).to_have_text("Live")
    page.clock.fast_forward(30_500)
    expect(page.locator("#state")).to_have_text("Paused while hidden")
    server.advance(5)
    page.evaluate(hide, False)
    expect(page.locator("#state")).to_have_text("Live")
    with server.client() as client:
        total = client.get("/opportunities/ev?min_ev=1&limit=1").json()["meta"]["total"]
    expect(page.locator("#tab-ev .count")).to_have_text(str(total), timeout=PATIENCE_MS)


def test_drawing_waits_for_the_one_frame_that_comes(visit: Visiting, server: Running) -> None:
    page = visit().enter()
    page.evaluate("""() => {
        window.frames = [];
        window.real = window.requestAnimationFrame;
        window.requestAnimationFrame = (act) => frames.push(act);  // as in the background
    }""")
    for _ in range(5):
        server.advance(1)
        page.wait_for_timeout(400)
    assert page.evaluate("frames.length") == 1
    page.evaluate("window.requestAnimationFrame = real; frames[0](performance.now())")


# ---- how it feels ----


def test_twenty_thousand_rows_stay_quick(visit: Visiting) -> None:
    v = visit()
    rows = [found_ev(at) for at in range(20_000)]
    chunks = [("ev:detected", rows[at : at + 1000]) for at in range(0, 20_000, 1000)]
    v.stream("opportunities", *beginning(*chunks))
    page = v.enter()
    expect(page.locator("#tab-ev .count")).to_have_text("20000")
    assert page.locator(ROWS).count() == 50
    spent = page.evaluate("""async () => {
        const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        const names = Array.from({ length: 20000 }, (_, at) => `row ${(at * 7919) % 20000}`);
        const timed = async (work) => {
            const begin = performance.now();
            work();
            await frame();
            await frame();
            return performance.now() - begin;
        };
        const out = [];
        for (const id of ["odds", "game", "kelly", "value"]) {
            out.push([
                await timed(() => document.querySelector(`th[data-column=${id}] button`).click()),
                await timed(() => [...names].sort((a, b) => a.localeCompare(b))),
            ]);
        }
        return out;
    }""")
    shown, plain = (sum(each) for each in zip(*spent, strict=True))
    assert shown < 30 * plain, spent  # about three times as long as sorting as many texts, on a quiet machine
    page.click("#after")
    expect(page.locator("#where")).to_have_text("51 to 100 of 20000")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(visit: Visiting, scheme: str) -> None:
    v = visit(color_scheme=scheme)
    page = v.page
    page.goto(v.origin)
    assert page.evaluate(_CONTRAST) == []
    v.enter()
    for tab in (*KINDS, "board", "movers", "bets", "alerts"):
        v.tab(tab)
        page.wait_for_selector(_FILLED.get(tab, ROWS))
        page.wait_for_timeout(1800)  # a flash is over
        assert page.evaluate(_CONTRAST) == []


# Text whose contrast with what lies behind it is below 4.5 to 1.
_CONTRAST = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const color = rgba(getComputedStyle(at).backgroundColor);
            if (color[3] === 255) return color;
        }
        return rgba("white");
    };
    const out = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
        if (node.closest("script, style, option, :disabled")) continue;
        if (node.closest(".up-now, .down-now")?.getAnimations().length) continue;
        const [a, b] = [light(rgba(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) out.push(`${walker.currentNode.data.trim()}: ${ratio.toFixed(2)}`);
    }
    return out;
}"""


_NAMES = """() => [
    [...document.querySelectorAll("[id]")].map((n) => n.id),
    ["aria-controls", "aria-labelledby", "aria-describedby", "for"].flatMap(
        (name) => [...document.querySelectorAll(`[${name}]`)].map((n) => n.getAttribute(name))),
]"""


def test_roles_names_and_keys(visit: Visiting) -> None:
    v = visit()
    page = v.enter()  # which moves the focus to the contents
    first = page.evaluate("document.querySelector('a[href], button, input, select, [tabindex]').className")
    assert first == "skip"
    page.focus(".skip")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    for selector in ("header", "main", "footer", "h1", "[aria-live]"):
        expect(page.locator(selector)).to_have_count(1)
    expect(page.locator("[aria-live]")).to_have_attribute("aria-live", "polite")
    assert page.evaluate(_NAMELESS) == []
    ids, meant = page.evaluate(_NAMES)  # at one moment: rows come and go
    assert len(ids) == len({*ids})
    assert {*" ".join(meant).split()} <= {*ids}
    page.focus("#tab-ev")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-arbitrage")).to_be_focused()
    expect(page.locator("#tab-arbitrage")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#panel-list")).to_have_attribute("aria-labelledby", "tab-arbitrage")
    expect(page.locator("[role=tab][tabindex='0']")).to_have_count(1)
    page.keyboard.press("End")
    expect(page.locator("#tab-record")).to_be_focused()
    assert page.evaluate(_NAMELESS) == []
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tab-alerts")).to_be_focused()
    assert page.evaluate(_NAMELESS) == []
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#bets-table .empty")).to_be_visible()
    assert page.evaluate(_NAMELESS) == []
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#panel-movers")).to_be_visible()
    assert page.evaluate(_NAMELESS) == []
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#screen .outcome")
    assert page.evaluate(_NAMELESS) == []
    page.locator("#screen [data-event]").first.click()
    page.wait_for_selector("#board tbody tr")
    assert page.evaluate(_NAMELESS) == []
    for table in ("screen", "board"):
        assert page.locator(f"#{table} thead th:not([scope=col])").count() == 0
        assert page.locator(f"#{table} tbody tr > :first-child:not(th[scope])").count() == 0
    page.focus("#tab-board")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Home")
    expect(page.locator("#list thead th").first).to_have_attribute("scope", "col")
    expect(page.get_by_role("columnheader", name="EV", exact=True)).to_have_attribute("aria-sort", "descending")
    row = page.locator("[data-compare]").first
    row.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#tab-board")).to_be_focused()


_FILLED = {
    "board": "#screen .outcome", "movers": "#panel-movers select", "bets": "#bets-table .empty",
    "alerts": "#alert-list li",
}  # fmt: skip

# Controls that a screen reader could not name.
_NAMELESS = """() => {
    const named = (node) => node.labels?.length
        || node.getAttribute("aria-label") || node.getAttribute("aria-labelledby")
        || (!["SELECT", "INPUT"].includes(node.tagName) && node.innerText?.trim());
    const all = document.querySelectorAll("button, a, input, select, [role=tabpanel], [role=region], svg[role=img]");
    return [...all].filter((n) => n.checkVisibility() && !named(n)).map((n) => n.outerHTML.slice(0, 120));
}"""


def test_a_phone_never_scrolls_sideways(visit: Visiting) -> None:
    phone: Mapping[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    v = visit(**phone)
    v.page.goto(v.origin)
    assert v.page.evaluate(_TOO_WIDE) == []
    page = v.enter()
    for tab in (*KINDS, "board", "movers", "bets", "alerts"):
        v.tab(tab)
        page.wait_for_selector(_FILLED.get(tab, ROWS))
        assert page.evaluate(_TOO_WIDE) == []
        heights = page.eval_on_selector_all(
            "button:not(.plain), select, input:not([type=radio], [type=checkbox])",
            "(all) => all.filter((n) => n.checkVisibility()).map((n) => n.getBoundingClientRect().height)",
        )
        assert min(heights) >= 24
    v.tab("ev")
    for button in ("#more", "#books"):
        page.click(button)
        assert page.evaluate(_TOO_WIDE) == []


@pytest.mark.parametrize("width", [1200, 1600])
def test_the_stake_on_one_bet_in_several_forms_stays_in_its_column(visit: Visiting, width: int) -> None:
    v = visit(viewport={"width": width, "height": 800})
    same = {"market": "point_spread", "selection_type": "home", "fair_probability": 0.5, "is_live": False}
    forms = [found_ev(at, line=at - 0.5, odds_decimal=2.1, **same) for at in (1, 2)]
    v.stream("opportunities", *beginning(("ev:detected", forms)))
    page = v.enter()
    expect(page.locator("#list .same")).to_have_text([re.compile(r"^all 2: \d+\.\d %$")] * 2)
    wide = "nodes => nodes.filter(node => node.closest('td').scrollWidth > node.closest('td').clientWidth).length"
    assert page.locator("#list .same").evaluate_all(wide) == 0


@pytest.mark.parametrize("width", [768, 1024, 1200, 1280])
def test_no_window_scrolls_sideways(visit: Visiting, width: int) -> None:
    v = visit(viewport={"width": width, "height": 800})
    page = v.enter()
    for tab in (*KINDS, "board", "movers", "bets", "alerts"):
        v.tab(tab)
        page.wait_for_selector(_FILLED.get(tab, ROWS))
        assert page.evaluate("document.documentElement.scrollWidth") == width


# What reaches over the right edge, where it does not scroll by itself; nothing if the page does not either.
_TOO_WIDE = """() => {
    const width = Math.max(innerWidth, document.documentElement.scrollWidth, document.body.scrollWidth);
    if (width === 360) return [];
    const wide = [...document.querySelectorAll("body *")].filter((n) => n.getBoundingClientRect().right > 360.5);
    return [width, ...wide.map((n) => n.outerHTML.slice(0, 100))];
}"""


def test_reduced_motion_is_respected(visit: Visiting) -> None:
    page = visit(reduced_motion="reduce").enter()
    page.eval_on_selector(f"{ROWS}", "(row) => row.classList.add('up-now')")
    assert page.eval_on_selector(".up-now", "(row) => getComputedStyle(row).animationName") == "none"


def test_odds_format(visit: Visiting) -> None:
    page = visit().enter()
    page.click("#pause")
    assert all(re.fullmatch(r"[+−]\d{3,}", text) for text in column(page, 4))
    show_odds(page, "decimal")
    page.wait_for_timeout(100)
    assert all(re.fullmatch(r"\d+\.\d\d", text) for text in column(page, 4))


def opened_on(v: Visit, *events: tuple[str, Any]) -> Page:
    """A page with these rows, whose first one is open."""
    v.stream("opportunities", *beginning(*events))
    page = v.enter(KEY)
    page.click(f"{ROWS} [data-open]")
    return page


@pytest.mark.parametrize(
    ("selection", "line", "shown"),
    [
        ("Philadelphia 76ers", -6.0, "Philadelphia 76ers −6"),
        ("San Francisco 49ers", 4.0, "San Francisco 49ers +4"),
        ("1. FC Köln", -1.0, "1. FC Köln −1"),
        ("Mainz 05", 0.0, "Mainz 05 0"),
        ("Philadelphia 76ers -6", -6.0, "Philadelphia 76ers −6"),
        ("Hosts (-1.0)", -1.0, "Hosts (-1.0)"),
        ("Over 12.5", 2.5, "Over 12.5 2.5"),
        ("Over 2.5", 2.5, "Over 2.5"),
        ("Under", 2.5, "Under 2.5"),
    ],
)
def test_a_line_is_shown_unless_the_selection_names_it(
    visit: Visiting, selection: str, line: float, shown: str
) -> None:
    v = visit()
    v.stream("opportunities", *beginning(("ev:detected", [found_ev(1, selection=selection, line=line)])))
    v.enter(KEY)
    assert texts(v.page, f"{ROWS} .bet") == [shown]


def test_what_was_just_found_is_not_in_the_future(visit: Visiting) -> None:
    v = visit()
    soon = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    v.stream("opportunities", *beginning(("ev:detected", [found_ev(1, detected_at=soon)])))
    v.enter(KEY)
    assert re.fullmatch(r"now|\d+ s ago", column(v.page, 10)[0])


@pytest.mark.parametrize(("ev", "shown"), [(-0.001, "0.00 % EV"), (0.3, "0.30 % EV"), (-0.3, "−0.30 % EV")])
def test_a_row_that_is_open_says_what_its_figure_is(visit: Visiting, ev: float, shown: str) -> None:
    v = visit()
    v.origin += "/?min_ev=-1"
    v.accepted = "404"
    page = opened_on(v, ("ev:detected", [found_ev(1, ev_percentage=ev)]))
    expect(page.locator("#details-value")).to_have_text(shown)


@pytest.mark.parametrize(
    ("kind", "typed", "stake", "decimal", "amount"),
    [
        ("american", "", "1,000", 2.01, 1000.0),
        ("american", "-110", "2,50", 1.909091, 2.5),
        ("american", "1.95", "10", 1.95, 10.0),
        ("decimal", "2.012", "10", 2.012, 10.0),
        ("decimal", "2,05", "1,234.5", 2.05, 1234.5),
        ("decimal", "150", "10", 150.0, 10.0),
    ],
)
def test_a_bet_is_placed_as_typed(
    visit: Visiting, server: Running, kind: str, typed: str, stake: str, decimal: float, amount: float
) -> None:
    v = visit()
    v.accepted = "404"
    row = found_ev(1, id=f"typed{kind}{typed}{stake}", odds_american=101, odds_decimal=2.01, selection="Typed")
    v.stream("opportunities", *beginning(("ev:detected", [row])))
    page = v.enter(KEY)
    show_odds(page, kind)
    page.click(f"{ROWS} [data-open]")
    page.fill("[data-ticket='0'][name=stake]", stake)
    if typed:
        page.fill("[data-ticket='0'][name=odds]", typed)
    page.click("#details-place")
    expect(page.locator("#details-said")).to_contain_text("Bet added; see Bets.")
    with server.client() as client:
        bet = next(each for each in client.get("/bets").json()["data"] if each["group"] == row["id"])
        client.delete(f"/bets/{bet['id']}")
    assert (round(bet["odds_decimal"], 6), bet["stake"]) == (decimal, amount)


def test_each_leg_is_placed_with_its_own_line(visit: Visiting, server: Running) -> None:
    """Also if the prices of the market are not there, or one has moved since."""
    v = visit()
    v.accepted = "404"
    leg = {"stake_percent": 50.0, "odds_american": 102, "odds_decimal": 2.02}
    row = {
        "id": "g1:point_spread:legs", "event_id": "g1", "event_name": "Guests @ Hosts", "sport": "football",
        "league": "nfl", "market_type": "point_spread", "line": -2.5, "profit_percent": 1.0, "is_live": False,
        "start_time": (datetime.now(UTC) + timedelta(hours=2)).isoformat(), "home_team": "Hosts",
        "away_team": "Guests", "player_name": None, "detected_at": datetime.now(UTC).isoformat(),
        "legs": [
            {**leg, "sportsbook": book, "selection": who, "selection_type": side, "line": line, "odds_id": book[0]}
            for book, who, side, line in (("bet365", "Hosts", "home", -2.5), ("unibet", "Guests", "away", 2.5))
        ],
    }  # fmt: skip
    v.stream("opportunities", *beginning(("arb:detected", [row])))
    v.page.goto(v.origin + "/?list=arbitrage")
    page = v.page
    page.click(f"{ROWS} [data-open]")
    for at in (0, 1):
        page.fill(f"[data-ticket='{at}'][name=stake]", "50")
    page.click("#details-place")
    expect(page.locator("#details-said")).to_contain_text("2 bets added; see Bets.")
    with server.client() as client:
        bets = [each for each in client.get("/bets").json()["data"] if each["group"] == row["id"]]
        for each in bets:
            client.delete(f"/bets/{each['id']}")
    names = ("sportsbook", "selection", "selection_type", "line", "odds_id")
    assert {tuple(each[name] for name in names) for each in bets} == {
        ("bet365", "Hosts", "home", -2.5, "b"), ("unibet", "Guests", "away", 2.5, "u"),
    }  # fmt: skip


def test_legs_of_a_low_hold_pay_alike_after_commission(visit: Visiting) -> None:
    v = visit()
    side: dict[str, Any] = {"line": None, "deep_links": {}}
    row = {
        "id": "low", "event_id": "g1", "event_name": "Guests @ Hosts", "sport": "soccer", "league": "x",
        "market_type": "moneyline", "line": None, "hold_percentage": 1.0, "is_live": False, "home_team": "Hosts",
        "away_team": "Guests", "start_time": None, "player_name": None, "detected_at": datetime.now(UTC).isoformat(),
        "all_books": ["bet365", "matchbook"], "side3": None,
        "side1": {**side, "selection": "Hosts", "books": ["bet365"], "odds_ids": {"bet365": "a"},
                  "odds": {"american": 100, "decimal": 2.0, "implied_probability": 0.5, "fair_probability": 0.5}},
        "side2": {**side, "selection": "Guests", "books": ["matchbook"], "odds_ids": {"matchbook": "b"},
                  "odds": {"american": 100, "decimal": 2.0, "implied_probability": 0.51, "fair_probability": 0.5}},
    }  # fmt: skip
    v.stream("opportunities", *beginning(("low_hold:detected", [row])))
    v.page.goto(v.origin + "/?list=low_hold")
    v.page.wait_for_selector(ROWS)
    assert texts(v.page, f"{ROWS} .leg small") == ["49.5 %", "50.5 %"]


@pytest.mark.parametrize(("kind", "against"), [("american", "-150"), ("decimal", "1.6667")])
def test_calculators_take_odds_as_the_page_shows_them(visit: Visiting, kind: str, against: str) -> None:
    v = visit()
    v.accepted = "404"
    v.stream("opportunities", *beginning(("ev:detected", [found_ev(1, odds_american=200, odds_decimal=3.0)])))
    page = v.enter(KEY)
    show_odds(page, kind)
    page.click(f"{ROWS} [data-open]")
    expect(page.locator("#calculator-fields [name=odds]")).to_have_value("+200" if kind == "american" else "3")
    page.fill("#calculator-fields [name=against]", against)
    page.locator("#calculator-fields [name=against]").press("Tab")
    expect(page.locator("#calculator-out dd").first).to_have_text(
        re.compile(r"^180(\.00)?$")
    )  # 100 at 3.0, against 1.6667
    page.select_option("#calculator", "arbitrage")
    page.fill("#calculator-fields [name=odds]", "+200; -150" if kind == "american" else "3; 1.6667")
    page.locator("#calculator-fields [name=odds]").press("Tab")
    expect(page.locator("#calculator-out dd").first).to_have_text("35 · 63")  # 105 either way


# ---- the track record ----


@pytest.mark.parametrize(
    ("books", "shown"),
    [
        (["draftkings"], "20 to 30 % of similar ones could be taken in full at $100"),
        (["betmgm"], "12 % of similar ones could be taken in full at $100"),
    ],
)
def test_a_row_that_is_open_says_how_many_similar_ones_could_be_taken(
    visit: Visiting, books: list[str], shown: str
) -> None:
    v = visit()
    v.accepted = "404"
    of = {"kind": "ev", "stake": 100.0, "shown": 64}
    fills = [
        {**of, "sportsbooks": None, "whole_least": 12.2, "whole_most": 11.9},
        {**of, "sportsbooks": ["draftkings"], "whole_least": 20.2, "whole_most": 30.3},
        {**of, "kind": "arbitrage", "sportsbooks": None, "whole_least": 90.0, "whole_most": 90.0},
    ]
    v.page.route("**/api/v1/truth", lambda route: route.fulfill(json={"success": True, "data": {"fills": fills}}))
    page = opened_on(v, ("ev:detected", [found_ev(1, sportsbook=books[0])]))
    expect(page.locator("#details-value")).to_contain_text(shown)


def test_the_track_record_by_week_and_book(visit: Visiting) -> None:
    v = visit()
    figures = {
        "prices": 70,
        "graded": 62,
        "games": 60,
        "avg_ev": 2.0,
        "avg_worth": 1.5,
        "worth_error": 0.3,
        "bias": 0.5,
    }
    weeks = [{**figures, "bias_error": 0.29, "week": f"2026-W0{at}", "begins": "2026-01-05"} for at in (2, 3)]
    few = {**weeks[0], "week": "2026-W04", "graded": 1, "avg_ev": None, "avg_worth": None, "bias": None}
    group = {**figures, "bias_error": 0.1, "by": "book", "value": "bovada", "biased": True}
    record = {
        "read_until": "2026-01-24T18:00:00Z", "fair": "mine", "games_missing": 0, "games_waiting": 1,
        "left_out": ["a: b"], "summary": "shown at 2.00 %, worth 1.50 +-0.30 %", "total": group,
        "weeks": [*weeks, few], "groups": [group],
    }  # fmt: skip
    v.page.route("**/api/v1/truth", lambda route: route.fulfill(json={"success": True, "data": record}))
    page = v.enter()
    page.click("#tab-record")
    expect(page.locator("#record-said")).to_contain_text("Shown at 2.00 %, worth 1.50 ±0.30 %. 1 game not graded yet.")
    expect(page.locator("#record-said")).to_contain_text("Left out: a: b.")
    expect(page.locator("#record-weeks circle")).to_have_count(2)
    expect(page.locator("#record-groups tbody tr")).to_have_count(4)
    expect(page.locator("#record-groups tbody tr").nth(2)).to_have_text(re.compile("2026-W04.*–.*–.*–"))
    page.select_option("#record-by", "book")
    expect(page.locator("#record-groups tbody tr").first).to_contain_text("0.50 % ± 0.10calibrate would help")
    page.unroute("**/api/v1/truth")
    page.click("#tab-bets")
    page.click("#tab-record")
    expect(page.locator("#record-said")).to_have_text(re.compile("Nothing is recorded yet"))
    expect(page.locator("#record-found")).to_be_hidden()


# ---- any screen ----

PHONE: Mapping[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
_HEIGHT = "(node) => node.getBoundingClientRect().height"
_TOPS = "(nodes) => [...new Set(nodes.map((node) => Math.round(node.getBoundingClientRect().bottom)))]"


def test_a_phone_shows_three_cards_below_a_header_of_one_line(visit: Visiting) -> None:
    v = visit(**PHONE)
    more = {"game": "Philadelphia Eagles @ San Francisco 49ers", "selection": "San Francisco 49ers", "still_there": 0.5}
    rows = [found_ev(at, game_id=f"g{at}", fair_probability=0.5, **more) for at in range(1, 7)]
    v.stream("opportunities", *beginning(("ev:detected", rows)))  # those of the server differ with the hour
    v.accepted = "404"  # no game of the server
    page = v.enter()
    expect(page.locator("#welcome")).to_be_visible()  # also on the first visit
    expect(page.locator("#pause, #open-settings, #sources, #markets")).to_have_count(4)
    assert page.locator("header").evaluate(_HEIGHT) < 50
    tabs = page.locator("#tabs")
    assert tabs.evaluate(_HEIGHT) < 50
    assert tabs.evaluate("(node) => node.scrollWidth > node.clientWidth")
    assert len(page.locator("#more, #order, #find").evaluate_all(_TOPS)) == 1
    third = page.locator(ROWS).nth(2).bounding_box()
    assert third is not None
    assert third["y"] + third["height"] <= 844
    card = page.locator(ROWS).first
    for column in ("value", "game", "start", "book", "odds", "fair", "kelly"):
        expect(card.locator(f".c-{column}")).to_be_visible()
    for column in ("trust", "stands", "found"):
        expect(card.locator(f".c-{column}")).to_be_hidden()
    card.locator(".c-odds").tap()
    expect(page.locator("#details-value")).to_contain_text("still there in 10 min")


def test_the_menu_of_a_phone_needs_no_mouse(visit: Visiting) -> None:
    page = visit(**PHONE).enter()
    expect(page.locator("#light")).to_have_attribute(
        "aria-label", re.compile("^Live, Feeds (OK|degraded)$")
    )  # by the age of prices
    pause, menu = page.locator("#pause"), page.locator("#menu-open")
    expect(pause).to_be_hidden()
    menu.focus()
    page.keyboard.press("Enter")
    expect(menu).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#sources")).to_be_visible()  # once they were asked for
    page.keyboard.press("Tab")
    expect(page.locator("#sources")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(pause).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(pause).to_be_hidden()
    expect(menu).to_be_focused()


def test_cards_are_put_in_order_by_a_list(visit: Visiting) -> None:
    v = visit(**PHONE)
    rows = [found_ev(at, game_id=f"g{at}", ev_percentage=ev, odds_decimal=odds)
            for at, ev, odds in ((1, 3.0, 2.1), (2, 2.0, 4.0), (3, 4.0, 1.5))]  # fmt: skip
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter()
    for order, ids in (("value true", "312"), ("odds true", "213"), ("odds false", "312"), ("value false", "213")):
        page.select_option("#order", order)
        expect(page.locator(ROWS).first).to_have_attribute("data-id", f"ev00000{ids[0]}")
        assert page.locator(ROWS).evaluate_all("(nodes) => nodes.map((n) => n.dataset.id.at(-1)).join('')") == ids


def test_filters_have_one_line_and_rows_two(visit: Visiting) -> None:
    v = visit(viewport={"width": 1400, "height": 900})
    same: dict[str, Any] = {
        "sharp_book": "pinnacle", "devig_method": "power", "selection_type": "home", "reference": "close",
        "fair_probability": 0.5, "is_live": False, "ev_low": -1.0, "ev_high": 4.0, "prob_positive": 0.8,
        "ev_vs_sharp": 1.0, "flags": ["UNMEASURED", "EARLY"], "book_count": 9, "independent_books": 8,
        "agreeing_books": 7, "still_there": 0.5, "oldest_odds_age_seconds": 2.0,
    }  # fmt: skip
    rows = [found_ev(at, line=at - 0.5, market="point_spread", sportsbook=book, **same)
            for at, book in ((1, "betrivers"), (1, "unibet"), (2, "bet365"))]  # fmt: skip
    v.stream("opportunities", *beginning(("ev:detected", [row | {"id": f"ev{at}"} for at, row in enumerate(rows)])))
    page = v.enter()
    expect(page.locator(ROWS)).to_have_count(2)
    assert len(page.locator("#filters :is(select, input, button):visible").evaluate_all(_TOPS)) == 1
    expect(page.locator("#summary")).to_contain_text("fair prices expected at the close · prices up to ")
    for row in page.locator(ROWS).all():
        expect(row).not_to_contain_text("at the close")
        expect(row.locator(".age")).to_be_hidden()
        assert row.evaluate("(row) => row.getBoundingClientRect().height") < 3 * 22
    numbers = page.locator("#list td.number").evaluate_all("(all) => all.map((n) => getComputedStyle(n).textAlign)")
    assert {*numbers} == {"right"}
    arrow = "(node) => getComputedStyle(node, '::after').content"
    assert page.locator("th[aria-sort] button").evaluate(arrow) == '""'  # drawn, so that no font lacks it


@pytest.mark.parametrize("width", [390, 1400])
def test_event_and_best_price_stay_in_sight(visit: Visiting, width: int) -> None:
    v = visit(viewport={"width": width, "height": 844})
    page = v.enter()
    v.tab("board")
    page.wait_for_selector("#screen .outcome")
    where = """(row) => [row.cells[0], row.cells[1]].map((cell) => {
        const box = cell.getBoundingClientRect();
        const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        return [Math.round(box.left), cell.contains(top)];
    })"""
    row = page.locator("#screen .outcome").nth(1)
    before = row.evaluate(where)
    moved = page.evaluate("""() => {
        const wide = document.querySelector("#all-games .wide");
        wide.scrollLeft = 10_000;
        return wide.scrollLeft;
    }""")
    assert moved > 100
    assert row.evaluate(where) == before
    assert [seen for _, seen in before] == [True, True]


def test_rows_wait_for_the_names_in_them(visit: Visiting) -> None:
    v = visit()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    for what in ("leagues", "sportsbooks"):
        v.page.route(f"**/api/v1/{what}", hold)
    page = v.page
    page.goto(v.origin)
    page.wait_for_timeout(800)
    assert len(held) == 2
    assert page.locator(ROWS).count() == 0
    for route in held:
        route.continue_()
    page.wait_for_selector(ROWS)
    assert not re.search(r"\b(Nba|Nfl|Betrivers|Fanduel)\b", page.locator("#list").inner_text())


def test_a_first_visitor_is_told_what_this_is_once(visit: Visiting) -> None:
    page = visit(viewport={"width": 1400, "height": 900}).enter()
    welcome, legend = page.locator("#welcome"), page.locator("#legend")
    expect(welcome).to_contain_text("this market is simulated")
    expect(legend.locator(".example")).to_contain_text(page.locator(f"{ROWS}.example .bet").inner_text())
    expect(legend).to_contain_text("Still there in 10 min")
    page.click("#welcome-close")
    for _ in range(2):
        expect(welcome).to_be_hidden()
        expect(legend).to_be_hidden()
        page.reload()
        page.wait_for_selector(ROWS)
    page.click("#legend-open")
    expect(legend.locator(".example")).to_contain_text("on average")
    page.click("#tab-arbitrage")
    expect(legend.locator(".example")).to_contain_text("whichever bet wins")


def test_sides_are_called_by_their_teams(visit: Visiting) -> None:
    v = visit()
    teams = {"home_team": "Hosts", "away_team": "Guests"}
    rows = [found_ev(at, game_id=f"g{at}", selection=side, selection_type=side, **teams)
            for at, side in ((1, "away"), (2, "home"))]  # fmt: skip
    v.stream("opportunities", *beginning(("ev:detected", rows)))
    page = v.enter()
    assert texts(page, f"{ROWS} .bet") == ["Hosts", "Guests"]
    v.tab("bets")
    page.click("#bets-add")
    assert not re.search(r"\b(home|away)\b", page.locator("#bet-form").inner_text(), re.IGNORECASE)
