"""A kind of opportunity that is not one of the four has a tab of its own on the page."""

from pathlib import Path

from service.test_registered_kind import node
from support.chromium import launched


def test_the_page_has_it(tmp_path: Path) -> None:
    with launched() as browser, node(tmp_path) as origin:
        page = browser.new_page()
        faults = list[str]()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{origin}/?list=standout")
        row = page.locator("#list tbody tr:not(.empty)").first
        row.wait_for(timeout=20_000)
        assert page.locator("[role=tab][aria-selected=true]").inner_text().startswith("Standouts")
        assert page.locator("#least-label").inner_text() == "Minimum lead"
        assert float(row.locator(".value").inner_text().split()[0]) >= 2.0
        row.locator("[data-open]").click()
        assert page.locator("#details-title").inner_text().startswith("Standouts: ")
        page.locator("#details-value").filter(has_text="lead").wait_for(timeout=20_000)
        assert faults == []
