"""Freshness, coverage and health of sources, for everybody: over sockets, from files and servers that behave badly."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.handler_calls import answer, found, node
from support.service_running import PATIENCE_S, Clock, Running, until

from oddsengine.live.engine import Engine
from oddsengine.sources.failure import FAILED, RATE_LIMITED, REFUSED, TIMEOUT, UNREACHABLE, Failure
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.board.freshness import Freshness
from oddsengine_service.feeds.status import SourceStatus, Track, light
from oddsengine_service.routes.feed_routes import endpoints
from oddsengine_service.routes.health_routes import data_check
from oddsengine_service.scale.log_messages import Entry, Sources, packed, unpacked
from oddsengine_service.scale.node_changes import RemoteFeeds
from oddsengine_service.server import Server, build
from oddsengine_service.settings import load
from oddsengine_service.tiers import ANONYMOUS_RATE

FEEDS = found(endpoints, "/feeds")
START = datetime(2026, 2, 8, 18, tzinfo=UTC)
HEAD = "sportsbook,event_id,sport,league,home_team,away_team,market_type,selection,odds_decimal,event_start_time\n"


def source(**more: Any) -> SourceStatus:
    given: dict[str, Any] = dict(
        name="mine", kind="table", status="ok", reason="", last_payload=None, last_seen=None, payloads=0, quotes=0,
        events=0, quarantined=0, failures=0, failures_total=0, unmapped=0, refused=0, credits_left=None,
        credits_used=None, credits_an_hour=None, books=(),
    )  # fmt: skip
    return SourceStatus(**{**given, **more})


def table(odds: float, books: tuple[str, ...] = ("draftkings", "fanduel")) -> str:
    start = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    return HEAD + "".join(
        f"{book},g1,basketball,nba,Boston Celtics,Miami Heat,moneyline,{team},{odds},{start}\n"
        for book in books
        for team in ("Boston Celtics", "Miami Heat")
    )


class Serving:
    """A node with sources, as `serve` runs it, in this process."""

    def __init__(self, folder: Path, feeds: Mapping[str, Mapping[str, str]]) -> None:
        (folder / "data").mkdir()
        environ = {"ODDSENGINE_DATA_FOLDER": str(folder / "data"), "ODDSENGINE_ALERTS_EVERY": "86400", **os.environ}
        for name, settings in feeds.items():
            environ |= {f"ODDSENGINE_FEEDS_{name.upper()}_{key.upper()}": value for key, value in settings.items()}
        self._service = build(load(None, environ), environ, demonstration=False)
        self._listens = threading.Event()
        self._server = Server(self._service, "127.0.0.1", 0, self._heard)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self.node, self.clock = self._service.node, Clock()
        self.node.limits = Limits(clock=self.clock)

    def _heard(self, origin: str) -> None:
        self.base = f"{origin}/api/v1"
        self._listens.set()

    def __enter__(self) -> "Serving":
        self._thread.start()
        assert self._listens.wait(PATIENCE_S)
        until(lambda: self.node.ready and (not self._service.settings.feeds or self.node.feeds is not None), "ready")
        until(lambda: self.node.feeds is None or bool(self.node.feeds.statuses()), "sources")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)

    def feeds(self) -> dict[str, Any]:
        self.clock.pass_minute()
        answer = httpx2.get(f"{self.base}/feeds", timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def message(self) -> str:
        return str(httpx2.get(f"{self.base}/health", timeout=PATIENCE_S).json()["checks"]["data"]["message"])


@contextmanager
def refusing(status: int) -> Iterator[str]:
    """A server that answers every request with a text that names its address and a key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"see https://odds.example.com/?key=s3cr3t-key"
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


# ---- the rule ----


@pytest.mark.parametrize(
    ("fields", "color", "reason"),
    [
        ({"quotes": 9}, "green", "data in time"),
        ({}, "green", "answers in time, without a price so far"),
        ({"prices": 100, "stale": 49, "quotes": 1}, "green", "data in time"),
        ({"prices": 100, "stale": 50}, "amber", "50% of its 100 prices are rejected as stale"),
        ({"prices": 100, "stale": 100}, "red", "100% of its 100 prices are rejected as stale"),
        ({"status": "starting", "public": "no data yet"}, "amber", "no data yet"),
        ({"status": "degraded", "public": "late"}, "amber", "late"),
        ({"status": "degraded", "public": "late", "prices": 4, "stale": 3}, "amber",
         "late; 75% of its 4 prices are rejected as stale"),
        ({"status": "down", "public": "it cannot be reached"}, "red", "it cannot be reached"),
        ({"status": "down", "reason": "from a writer of an older version"}, "red", "down"),
        ({"quarantined": 12}, "amber", "none of its 12 games could be matched"),
        ({"quarantined": 12, "events": 1, "quotes": 2}, "green", "data in time"),
        ({"public": "read to its end at X"}, "green", "read to its end at X"),
    ],
)  # fmt: skip
def test_one_colour_and_why(fields: dict[str, Any], color: str, reason: str) -> None:
    assert light(source(**fields)) == (color, reason)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure("odds.example.com cannot be reached: no route", kind=UNREACHABLE), "it cannot be reached"),
        (Failure("status 401: key s3cr3t", kind=REFUSED, status=401),
         "it refuses the request or the key (status 401)"),
        (Failure("slow down", kind=RATE_LIMITED, status=429), "it limits the requests (status 429)"),
        (Failure("no answer of https://x", kind=TIMEOUT), "it does not answer in time"),
        (Failure("/home/me/prices.csv cannot be read", kind=FAILED), "it fails, or what it sends cannot be used"),
    ],
)  # fmt: skip
def test_words_for_everybody_name_no_address_and_quote_nobody(failure: Failure, words: str) -> None:
    track = Track("mine", "table", START, 60.0)
    track.part("nba").failed(failure, START)
    status = track.status(START)
    assert status.reason == f"nba: {failure}"
    assert status.public == f"nba: {words}, since 2026-02-08T18:00:00Z"


def test_a_problem_of_a_source_that_keeps_running_is_named_but_not_quoted() -> None:
    track = Track("mine", "table", START, 60.0)
    track.part("").well(START)
    track.warning = "the fee of X cannot be read: https://x/?key=s3cr3t"
    assert track.status(START).public == "it reports a problem"
    track.warning, track.public_warning = "none of the 3 rows of /home/me/a.csv is valid", "no row is valid"
    assert track.status(START).public == "no row is valid"
    track.warning, track.conflict = "", "interval is 900 s, but prices older than 600 s are rejected as stale"
    assert track.status(START).public == track.conflict


def test_the_board_is_counted_once_a_second_at_most() -> None:
    engine, now = Engine(), 100.0
    freshness = Freshness(engine, lambda: now)
    assert freshness.counts() == (0, 0, 0, 0)
    row = {
        "sportsbook": "fanduel", "event_id": "e", "sport": "basketball", "league": "nba",
        "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline",
        "selection": "Boston Celtics", "odds_decimal": 1.9, "last_seen_at": START,
    }  # fmt: skip
    engine.step([row, {**row, "sportsbook": "betmgm"}], START)
    assert freshness.counts() == (0, 0, 0, 0)
    now = 101.0
    assert freshness.counts() == (1, 2, 2, 0)
    engine.step([], START + timedelta(seconds=601))
    now = 50.0  # the clock was set back
    assert freshness.counts() == (1, 2, 2, 2)


# ---- over sockets ----


def test_a_file_without_a_valid_row_is_not_ok_while_its_old_prices_stand(tmp_path: Path) -> None:
    path, other = tmp_path / "prices.csv", tmp_path / "other.csv"
    path.write_text(table(1.9))
    other.write_text(table(2.0, ("pinnacle",)))
    feeds = {
        "mine": {"kind": "table", "path": str(path), "interval": "0.05"},
        "other": {"kind": "table", "path": str(other), "interval": "0.05"},
    }

    with Serving(tmp_path, feeds) as serving:
        until(lambda: serving.feeds()["meta"]["rows"] == 6, "prices")
        body = serving.feeds()
        assert [(feed["name"], feed["kind"], feed["status"]) for feed in body["data"]] == [
            ("mine", "table", "green"), ("other", "table", "green"),
        ]  # fmt: skip
        until(lambda: [feed["rows"] for feed in serving.feeds()["data"]] == [4, 2], "the count of each source's rows")
        mine = serving.feeds()["data"][0]
        assert {name: mine[name] for name in ("events", "books", "stale_share", "refused", "quarantined")} == {
            "events": 1, "books": ["draftkings", "fanduel"], "stale_share": 0.0, "refused": 0, "quarantined": 0,
        }  # fmt: skip
        assert 0.0 <= mine["age_seconds"] < PATIENCE_S
        meta = serving.feeds()["meta"]
        assert (meta["status"], meta["feeds"]) == ("green", {"green": 2, "amber": 0, "red": 0})
        assert (meta["events"], meta["books"], meta["stale_share"]) == (1, 3, 0.0)

        path.write_text(table(0.5))  # no odds are below 1
        until(lambda: serving.feeds()["data"][0]["status"] == "amber", "the fault to be seen")
        body = serving.feeds()
        assert body["data"][0]["reason"] == "none of the 4 rows of its latest data is valid"
        assert body["data"][0]["refused"] == 4
        assert (body["meta"]["rows"], body["meta"]["status"], body["meta"]["refused"]) == (6, "amber", 4)
        assert serving.message() == "sources: 1 degraded, 1 ok; mine: none of the 4 rows of its latest data is valid"
        assert str(tmp_path) not in json.dumps(body)
        assert str(path) in serving.node.feeds.statuses()[0].reason  # type: ignore[union-attr]

        path.write_text(table(1.8))
        until(lambda: serving.feeds()["data"][0]["status"] == "green", "the fault to end")
        assert serving.message() == "sources: 2 ok"


def test_a_folder_is_ok_again_once_a_file_without_a_valid_row_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "a.csv").write_text(table(1.9))
    (folder / "b.csv").write_text(table(0.5))
    with Serving(tmp_path, {"mine": {"kind": "table", "path": str(folder), "interval": "0.05"}}) as serving:
        until(lambda: serving.feeds()["data"][0]["reason"].startswith("none of"), "the fault to be seen")
        assert "b.csv is valid" in serving.node.feeds.statuses()[0].reason  # type: ignore[union-attr]
        (folder / "b.csv").unlink()
        until(lambda: serving.feeds()["data"][0]["status"] == "green", "the fault to end")


def test_a_node_without_a_price_says_which_source_waits_for_what(tmp_path: Path) -> None:
    with refusing(401) as url:
        feeds = {
            "american": {"kind": "the_odds_api", "url": url, "key_env": "THE_KEY", "sports": "basketball_nba"},
            "mine": {"kind": "table", "path": str(tmp_path / "missing.csv")},
        }
        os.environ["THE_KEY"] = "s3cr3t-key"
        try:
            with Serving(tmp_path, feeds) as serving:
                until(lambda: serving.message().count(", since 20") == 2, "both reasons")
                message, body = serving.message(), httpx2.get(f"{serving.base}/feeds", timeout=PATIENCE_S)
        finally:
            del os.environ["THE_KEY"]
    assert message.startswith("no price yet; sources: ")
    assert "american: basketball_nba: it refuses the request or the key (status 401), since 20" in message
    assert "mine: it fails, or what it sends cannot be used, since 20" in message
    assert {feed["name"]: feed["status"] for feed in body.json()["data"]} == {"american": "red", "mine": "amber"}
    for secret in ("s3cr3t", "127.0.0.1", "example.com", "missing.csv", str(tmp_path)):
        assert secret not in body.text + message


def test_it_is_for_everybody_but_not_without_end(tmp_path: Path) -> None:
    with Serving(tmp_path, {}) as serving, httpx2.Client(base_url=serving.base, timeout=PATIENCE_S) as client:
        answers = [client.get("/feeds") for _ in range(ANONYMOUS_RATE + 1)]
    assert [one.status_code for one in answers] == [200] * ANONYMOUS_RATE + [429]
    assert int(answers[-1].headers["retry-after"]) > 0


def test_a_simulated_market_has_no_sources_but_a_board(tmp_path: Path) -> None:
    server = Running(tmp_path).start()
    try:
        with server.client(None) as client:
            body = client.get("/feeds").json()
        assert body["data"] == []
        assert body["meta"]["rows"] == server.node.engine.table().height
        with server.client("free") as client:
            assert client.get("/feeds").headers["x-tier"] == "free"  # counted for the key, not for the address
    finally:
        server.stop()


# ---- in a cluster ----


def test_a_gateway_says_of_sources_what_the_writer_wrote_to_the_log() -> None:
    now = datetime.now(UTC)
    states = [
        source(name="a", payloads=3, quotes=30, last_payload=now - timedelta(seconds=30), last_seen=now),
        source(name="b", status="down", public="it cannot be reached", reason="b.example.com cannot be reached"),
    ]
    (entry,) = unpacked(packed([Entry("sources", Sources(states, []))]))
    gateway, remote = node(Engine()), RemoteFeeds()
    remote.replace(entry.value.sources, entry.value.books)
    gateway.use_feeds(remote)
    gateway.wait_for("")
    gateway.changed_at = gateway.clock.time()
    body = answer(FEEDS, gateway)
    assert [(feed["name"], feed["status"], feed["reason"]) for feed in body["data"]] == [
        ("a", "green", "data in time"), ("b", "red", "it cannot be reached"),
    ]  # fmt: skip
    assert body["data"][0]["age_seconds"] < 20.0
    assert body["meta"]["reason"] == data_check(gateway)[1] == "sources: 1 down, 1 ok; b: it cannot be reached"
    gateway.report("log", "no connection for 30 s")
    assert (answer(FEEDS, gateway)["meta"]["status"], answer(FEEDS, gateway)["meta"]["reason"]) == (
        "amber", "failing: log",
    )  # fmt: skip
