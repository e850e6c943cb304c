"""Every view of the page, by the rules of axe: nothing serious, light and dark, on a phone and a desktop."""

from support.chromium import launched  # first: without Playwright it skips these tests

# isort: split
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page
from support.service_running import Running, running

from oddsengine_service.site import description

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="`make page` installs it")

EXAMPLE = description()["paths"]["/truth"]["get"]["responses"]["200"]["content"]["application/json"]["example"]
ROWS = "#list tbody tr:not(.empty)"
# The rows after the first ones are like them, and each takes axe a tenth of a second.
_LOOKED_AT = {"exclude": [["tbody tr:nth-child(n+7)"]]}
_OPTIONS = {"resultTypes": ["violations"]}
_SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("axe"), now=True, offers_live=True) as server:
        with server.client() as client:
            bets = [
                {"sportsbook": "fanduel", "selection": team, "odds_decimal": 2.1, "stake": 50, "result": result,
                 "placed_at": f"2026-0{month}-05T12:00:00Z", "closing_probability": 0.5, "fair_probability": 0.49}
                for month, (team, result) in enumerate((("Heat", "won"), ("Celtics", "lost"), ("Bulls", None)), 1)
            ]  # fmt: skip
            client.post("/bets/import", json={"bets": bets}).raise_for_status()
        server.advance(6)
        yield server


def views(page: Page) -> Iterator[str]:
    """Show each view in turn; its name."""
    narrow = page.locator("#menu-open").is_visible()

    def menu() -> None:
        if narrow:
            page.click("#menu-open")

    def tab(name: str, shown: str) -> None:
        page.keyboard.press("Escape")
        page.click(f"#tab-{name}")
        page.wait_for_selector(shown)

    if narrow:
        page.click("#legend-open")
    yield "first visit"
    menu()
    yield "menu"
    page.keyboard.press("Escape")
    page.click("#welcome-close")
    yield "+EV"
    if narrow:
        page.click("#more")
    page.click("#more-filters")
    page.click("#books")
    yield "filters"
    for kind in ("arbitrage", "low_hold", "middles"):
        tab(kind, ROWS)
        yield kind
    tab("board", "#screen .outcome")
    yield "odds screen"
    page.locator("#screen [data-event]").first.click()
    page.wait_for_selector("#board td")
    yield "game"
    tab("movers", "#movers-live")
    page.select_option("#movers-live", "")
    page.wait_for_selector("#movers-table tbody tr")
    yield "movers"
    page.locator("#movers-table tbody tr").first.click()
    page.wait_for_selector("#moves svg")
    yield "mover"
    tab("bets", "#bets-course svg")
    yield "bets"
    page.click("#bets-add")
    yield "bet"
    page.keyboard.press("Escape")
    page.click("#bets-import")
    yield "import"
    tab("alerts", "#alert-list li")
    yield "alerts"
    page.route("**/truth", lambda route: route.fulfill(json=EXAMPLE))
    tab("record", "#record-weeks svg")
    yield "track record"
    tab("ev", ROWS)
    page.locator(f"{ROWS} [data-open]").first.click()
    page.wait_for_selector("#details-prices tbody tr")
    yield "opened row"
    page.click("#details-close")
    page.click("#bell")
    yield "alert of a list"
    page.keyboard.press("Escape")
    menu()
    page.click("#open-settings")
    yield "settings"
    page.click("#settings-close")
    menu()
    page.click("#sources")
    yield "feeds"


# Each look of axe takes about a second, most of it for contrast.
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, server: Running, width: int, scheme: Literal["light", "dark"]
) -> None:
    # Its script is refused by the page's own policy, which the other tests are under.
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(server.origin)
    page.wait_for_selector(ROWS)
    found = {}
    for name in views(page):
        page.wait_for_timeout(200)
        for rule in axe.Axe().run(page, _LOOKED_AT, _OPTIONS).response["violations"]:
            if rule["impact"] in _SERIOUS:
                found[name, rule["id"]] = [(node["target"], node["failureSummary"]) for node in rule["nodes"][:3]]
    context.close()
    assert found == {}
