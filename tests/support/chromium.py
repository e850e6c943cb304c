"""The Chromium that pages are driven with. Where there is none the run ends with one sentence.

`CHROMIUM=optional` in the environment lets it pass instead: tests that need one are skipped, and say so.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="`make page` installs it")
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser for a while: Playwright's own, or one of this machine."""
    if "PAGE_TESTS" not in os.environ:
        pytest.skip("it takes a minute of Chromium: `make page` runs it")
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        found = str(own) if own.exists() else next(filter(None, map(shutil.which, _NAMES)), None)
        if found is None:
            _without(f"no Chromium: neither {own} nor any of {', '.join(_NAMES)}")
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
        browser = playwright.chromium.launch(executable_path=found, args=sandbox)
        yield browser
        browser.close()


def _without(sentence: str) -> None:
    if os.environ.get("CHROMIUM") == "optional":
        pytest.skip(sentence)
    pytest.exit(f"{sentence}; install one, or set CHROMIUM=optional to go on without these tests", returncode=1)
