"""The API reference in a browser: names of endpoints do not overlap, and nothing is wider than the window."""

from support.chromium import launched  # first: without Playwright it skips these tests

# isort: split
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from oddsengine_service.http import pages
from oddsengine_service.http.openapi import document
from oddsengine_service.http.request import BASE
from oddsengine_service.routing import ENDPOINTS

_OVERLAPS = """
() => {
  const boxes = [...document.querySelectorAll("nav b, nav span, nav h4, .fields code")].flatMap((each) => {
    const range = document.createRange();
    range.selectNodeContents(each);
    return [...range.getClientRects()].map((box) => [each.textContent, box]);
  });
  return boxes.flatMap(([one, a], at) => boxes.slice(0, at)
    .filter(([_, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
    .map(([other]) => `${one} and ${other}`));
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.mark.parametrize("width", [390, 800, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_do_not_overlap(tmp_path: Path, browser: Browser, width: int, scheme: Literal["light", "dark"]) -> None:
    path = tmp_path / "docs.html"
    path.write_text(pages.reference(document(ENDPOINTS, BASE)), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(path.as_uri())
    assert page.locator("nav a").count() == len(ENDPOINTS)
    assert page.evaluate(_OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
