"""The demo's choice between the simulated market and live prediction markets, in headless Chromium."""

from support.chromium import launched  # first: without Playwright it skips these tests

# isort: split
import asyncio
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from support.exchanges_running import Exchanges, exchanges
from support.service_running import PATIENCE_S, Running, running

from oddsengine_service import live_markets

PATIENCE_MS = 20_000
ROWS = "#list tbody tr:not(.empty)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests start it again and again."""
    monkeypatch.setattr(live_markets, "AGAIN_S", 0.0)


@pytest.fixture(scope="module")
def venues() -> Iterator[Exchanges]:
    with exchanges() as served:
        yield served


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, venues: Exchanges) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("demo"), offers_live=True, now=True, settings=venues.environ) as server:
        yield server


@pytest.fixture
def page(browser: Browser, demo: Running) -> Iterator[Page]:
    """The page of the demo, on which no script fails."""
    context, faults = browser.new_context(viewport={"width": 390, "height": 844}), list[str]()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(demo.origin)
    page.wait_for_selector(ROWS)
    page.click("#menu-open")  # of a phone
    yield page
    assert not faults
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_the_choice_is_made_with_one_click(page: Page, venues: Exchanges) -> None:
    live, simulated, said = (page.locator(f"#market-{name}") for name in ("live", "simulated", "said"))
    expect(simulated).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#simulated")).to_be_hidden()
    expect(said).to_have_text("Kalshi and Polymarket; no key is needed.")
    expect(page.locator("#market-league option").first).to_have_text("NFL")
    before = venues.requests
    page.wait_for_timeout(500)
    assert venues.requests == before  # none by itself
    live.click()
    expect(page).to_have_url(re.compile(r"/live/\?list=arbitrage$"), timeout=PATIENCE_MS)
    expect(live).to_have_attribute("aria-pressed", "true")
    expect(said).to_have_text("1 NFL game, from Kalshi and Polymarket")
    row = page.locator(ROWS).first
    for text in ("Dallas Cowboys @ Seattle Seahawks", "Kalshi", "Polymarket"):
        expect(row).to_contain_text(text, timeout=PATIENCE_MS)
    expect(page.locator("#sources-said")).to_have_text("2 feeds")
    page.click("#menu-open")
    simulated.click()
    page.wait_for_selector(ROWS)
    expect(simulated).to_have_attribute("aria-pressed", "true")
    assert "/live" not in page.url


def test_hosts_that_refuse_leave_the_simulated_market(page: Page, venues: Exchanges) -> None:
    said, live = page.locator("#market-said"), page.locator("#market-live")
    with venues.refusing(451):
        page.select_option("#market-league", "nba")
        live.click()
        expect(said).to_have_text(
            re.compile(
                r"^No live prices\. Kalshi fails, .* \(status 451\); Polymarket fails, .* \(status 451\)\. "
                r"This is still the simulated market\.$"
            ),
            timeout=PATIENCE_MS,
        )
    expect(said).to_have_class(re.compile("error"))
    expect(page.locator("#market-simulated")).to_have_attribute("aria-pressed", "true")
    expect(live).to_be_enabled()
    expect(page.locator(ROWS).first).to_be_visible()
    assert "/live" not in page.url
    visitor = page.context.new_page()  # a later visitor begins with what they can choose
    visitor.goto(page.url)
    expect(visitor.locator("#market-league")).to_have_value("nba")
    expect(visitor.locator("#market-said")).to_have_text("Kalshi and Polymarket; no key is needed.")
    expect(visitor.locator("#market-close")).to_be_hidden()
    visitor.close()
    page.click("#market-close")
    expect(said).to_have_text("Kalshi and Polymarket; no key is needed.")
    expect(page.locator("#market-close")).to_be_hidden()


def test_the_live_page_changes_the_league_and_says_that_it_was_stopped(page: Page, demo: Running) -> None:
    said, league = page.locator("#market-said"), page.locator("#market-league")
    league.select_option("nfl")
    page.click("#market-live")
    expect(said).to_have_text("1 NFL game, from Kalshi and Polymarket", timeout=PATIENCE_MS)
    page.click("#menu-open")
    league.select_option("nba")
    expect(said).to_have_text("1 NBA game, from Kalshi and Polymarket", timeout=PATIENCE_MS)
    page.click("#menu-open")
    assert demo.service.live is not None
    asyncio.run_coroutine_threadsafe(demo.service.live.stop(), demo.service.loop).result(PATIENCE_S)
    expect(said).to_have_text("Stopped. Choose them again to go on.", timeout=PATIENCE_MS)
    page.click("#market-live")
    expect(said).to_have_text("1 NBA game, from Kalshi and Polymarket", timeout=PATIENCE_MS)
    expect(page.locator("#state")).to_have_text("Live", timeout=PATIENCE_MS)
