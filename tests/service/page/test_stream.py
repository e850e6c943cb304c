"""A browser's own EventSource before a server on a real socket: it hears, and comes back by itself."""

from support.chromium import launched  # first: without Playwright it skips these tests

# isort: split
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from support.stream_running import Served, full_board, lasting, moment, price

_LISTEN = """
([address, names]) => {
  window.told = [];
  window.odds = {};
  window.errors = 0;
  window.source = new EventSource(address);
  source.onerror = () => errors++;
  for (const name of names)
    source.addEventListener(name, (event) => {
      const data = JSON.parse(event.data);
      told.push({ name, id: event.lastEventId, data });
      if (name === "connected") odds = {};
      if (name === "snapshot") for (const row of data.odds) odds[row.id] = row;
      if (name === "odds:update") for (const row of data.odds) Object.assign(odds[row.id], row);
      if (name === "odds:removed") for (const id of data.ids) delete odds[id];
    });
}
"""
NAMES = [
    "connected", "snapshot", "snapshot:complete", "odds:update", "odds:removed", "ev:detected", "ev:expired",
    "arb:detected", "middles:detected", "low_hold:detected", "gamestate:snapshot", "heartbeat",
]  # fmt: skip
PATIENCE_MS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


def told(page: Page, name: str) -> list[Any]:
    found: list[Any] = page.evaluate("(name) => told.filter((each) => each.name === name)", name)
    return found


def until(page: Page, condition: str) -> None:
    page.wait_for_function(condition, timeout=PATIENCE_MS)


def test_a_browser_listens_and_comes_back(browser: Browser, served: Served) -> None:
    now = moment()
    served.step(full_board("page"), now)
    page = browser.new_page()
    origin = f"http://127.0.0.1:{served.port}"
    page.goto(f"{origin}/api/v1/health")  # any page of the same origin
    address = f"/api/v1/stream/all?event=page&min_ev=0.5&api_key={served.key('enterprise')}"
    page.evaluate(_LISTEN, [address, NAMES])

    until(page, "told.some((each) => each.name === 'heartbeat')")
    names = page.evaluate("told.map((each) => each.name)")
    assert names[:2] == ["connected", "snapshot"]
    assert set(NAMES) - set(names) <= {"odds:update", "odds:removed", "ev:expired"}
    assert told(page, "connected")[0]["data"]["reconnected"] is False
    assert page.evaluate("source.readyState") == 1

    served.step([price("page", "draftkings", "Home", 1.9)], now + timedelta(seconds=1))
    until(page, "told.some((each) => each.name === 'odds:update')")
    until(page, "told.some((each) => each.name === 'ev:expired')")
    last = told(page, "odds:update")[-1]
    assert last["data"]["odds"][0]["odds_decimal"] == 1.9
    assert last["id"].startswith("evt_")
    assert page.evaluate("errors") == 0

    assert served.app.loop is not None
    served.app.loop.call_soon_threadsafe(served.hub.subscribers.end_all)
    until(page, "errors > 0")
    served.step((), now + timedelta(seconds=2), complete=["fanduel"])  # while it is away
    until(page, "told.filter((each) => each.name === 'snapshot:complete').length === 2")
    again = told(page, "connected")
    assert len(again) == 2
    assert again[1]["data"]["reconnected"] is True  # it said which event it had last
    assert again[1]["data"]["stream_id"] != again[0]["data"]["stream_id"]

    served.step([price("page", "pinnacle", "Away", 2.2)], now + timedelta(seconds=3))
    until(page, "Object.values(odds).some((row) => row.odds_decimal === 2.2)")
    rows = served.rows("/odds", "enterprise", {"event": "page"})
    held = page.evaluate("odds")
    assert set(held) == set(rows)
    assert "fanduel" not in {row["sportsbook"] for row in held.values()}
    for id_, row in held.items():
        assert lasting(row).items() <= rows[id_].items()

    page.evaluate("source.close()")
    page.close()


def test_a_browser_is_told_that_its_key_is_wrong(browser: Browser, served: Served) -> None:
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{served.port}/api/v1/health")
    page.evaluate(_LISTEN, ["/api/v1/stream?api_key=wrong", NAMES])
    until(page, "errors > 0")
    assert page.evaluate("source.readyState") == 2  # it does not try again
    assert page.evaluate("told.length") == 0
    page.close()


_SOCKET = """
(address) => {
  window.said = [];
  window.odds = {};
  window.socket = new WebSocket(address);
  socket.onclose = ({ code }) => { window.code = code; };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    said.push(message);
    if (message.type === "subscribed") odds = {};
    if (message.type === "initial" || message.type === "odds:update")
      for (const row of message.data) odds[row.id] = { ...odds[row.id], ...row };
    if (message.type === "odds:removed") for (const id of message.ids) delete odds[id];
  };
}
"""


def test_a_browser_opens_a_websocket(browser: Browser, served: Served) -> None:
    now = moment()
    served.step([*full_board("socket"), *full_board("other")], now)
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{served.port}/api/v1/health")
    page.evaluate(_SOCKET, f"ws://127.0.0.1:{served.port}/api/v1/ws?event_id=socket&api_key={served.key('sharp')}")
    until(page, "said.some((each) => each.type === 'heartbeat')")
    assert page.evaluate("said.every((each, at) => each.seq === at + 1)")
    served.step([price("socket", "draftkings", "Home", 1.9)], now + timedelta(seconds=1))
    until(page, "Object.values(odds).some((row) => row.odds_decimal === 1.9)")
    page.evaluate(
        "socket.send(JSON.stringify({type: 'subscribe', channels: ['odds'], filters: {eventIds: ['other']}}))"
    )
    until(page, "said.filter((each) => each.type === 'snapshot:complete').length === 2")
    rows = served.rows("/odds", "sharp", {"event": "other"})
    held = page.evaluate("odds")
    assert set(held) == set(rows)
    for id_, row in held.items():
        assert lasting(row).items() <= rows[id_].items()
    page.evaluate("socket.close()")
    until(page, "window.code !== undefined")
    page.goto("data:text/html,")  # a page of no origin
    page.evaluate(_SOCKET, f"ws://127.0.0.1:{served.port}/api/v1/ws?api_key={served.key('sharp')}")
    until(page, "window.code === 1006")
    assert page.evaluate("said.length") == 0
    page.close()
