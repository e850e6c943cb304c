"""The reader with bodies, and the whole source with a server on this machine. The package has to be installed."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cornerbook.reader import read

import oddsengine as oe
from oddsengine.feeds import FeedError
from oddsengine.feeds.payload_checks import check_payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received
from oddsengine.sources.failure import FetchError

NOW = datetime(2026, 12, 1, 18, tzinfo=UTC)


def market(kind: str, line: float | None, *selections: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "type": kind, "line": line,
        "selections": [{"id": ident, "side": side, "odds": odds} for ident, side, odds in selections],
    }  # fmt: skip


WINNER = market("winner", None, ("w1", "home", "1.80"), ("w2", "away", "2.10"))
HANDICAP = market("handicap", -2.5, ("h1", "home", "1.91"), ("h2", "away", "1.95"))
TOTAL = market("total", 221.5, ("t1", "over", "1.90"), ("t2", "under", "1.92"))


def body(*markets: dict[str, Any]) -> bytes:
    start = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
    game = {"id": "g1", "home": "Boston Celtics", "away": "Los Angeles Lakers", "starts_at": start, "state": "upcoming"}
    return json.dumps({"games": [game | {"markets": list(markets)}]}).encode()


def test_prices_are_read_with_their_lines() -> None:
    payload = check_payload(read("NBA", Received(body(WINNER, HANDICAP, TOTAL), NOW), ListedIds()))
    rows = [(row["market_type"], row["selection"], row["line"], row["odds_decimal"]) for row in payload.quotes]
    assert rows == [
        ("moneyline", "Boston Celtics", None, 1.8), ("moneyline", "Los Angeles Lakers", None, 2.1),
        ("point_spread", "Boston Celtics", -2.5, 1.91), ("point_spread", "Los Angeles Lakers", 2.5, 1.95),
        ("total_points", "Over", 221.5, 1.9), ("total_points", "Under", 221.5, 1.92),
    ]  # fmt: skip


def test_prices_that_are_gone_are_removed_by_their_ids() -> None:
    listed = ListedIds()
    read("NBA", Received(body(WINNER, TOTAL), NOW), listed)
    assert list(read("NBA", Received(body(WINNER), NOW), listed).removed) == ["t1", "t2"]


def test_a_market_that_the_catalog_does_not_have_is_counted() -> None:
    payload = read("NBA", Received(body(market("tip_off", None, ("x", "home", "1.9"))), NOW), ListedIds())
    assert payload.unmapped == {("cornerbook", "tip_off"): 1}


@pytest.mark.parametrize("wrong", [b"<html>", b'{"games": 5}', body(market("winner", None, ("w", "home", "evens")))])
def test_a_body_that_is_not_valid_changes_nothing(wrong: bytes) -> None:
    listed = ListedIds()
    read("NBA", Received(body(WINNER), NOW), listed)
    with pytest.raises(FeedError, match="not a payload of Cornerbook"):
        read("NBA", Received(wrong, NOW), listed)
    assert list(read("NBA", Received(body(), NOW), listed).removed) == ["w1", "w2"]


@contextmanager
def served(answer: bytes) -> Iterator[str]:
    """Cornerbook on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            welcome = self.headers["x-api-key"] == "my-key" and self.path == "/v1/games?league=NBA"
            self.send_response(200 if welcome else 401)
            self.end_headers()
            self.wfile.write(answer if welcome else b"no such key")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_it_is_fetched_by_its_name() -> None:
    with served(body(WINNER, TOTAL)) as url:
        odds = oe.fetch("cornerbook", sport="nba", key="my-key", url=url)
        assert odds["sportsbook"].to_list() == ["cornerbook"] * 4
        with pytest.raises(FetchError, match="check the key"):
            oe.fetch("cornerbook", sport="nba", key="other-key", url=url)
