"""Settings, statuses, waits, secrets and the folder of what did not parse; and the commands over sources."""

import asyncio
import io
import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.local_servers import game, new_hub, prices, running, until

from oddsengine.sources import documents, kind_names
from oddsengine.sources.documents import football_data, table
from oddsengine.sources.failure import Failure
from oddsengine.sources.retry import Backoff
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import (
    FootballDataSettings,
    InterfaceSettings,
    TableSettings,
    TheOddsApiSettings,
)
from oddsengine.testing.local_servers import Answering, Request, http, now
from oddsengine_cli import main
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub, MessageThrottle
from oddsengine_service.feeds.quarantine import PayloadQuarantine
from oddsengine_service.feeds.status import Track
from oddsengine_service.monitoring import log
from oddsengine_service.settings import SettingsError, load, secret

GOOD = """
[data]
folder = "here"
[feeds.american]
kind = "the_odds_api"
key_env = "ODDS_KEY"
sports = ["basketball_nba", "icehockey_nhl"]
interval = 45
[feeds.node]
kind = "interface"
url = "https://node.example/api/v1"
stream = false
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "oddsengine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_several_sources_at_once(tmp_path: Path) -> None:
    settings = load(written(tmp_path, GOOD), {})
    american, node = settings.feeds["american"], settings.feeds["node"]
    assert isinstance(american, TheOddsApiSettings)
    assert isinstance(node, InterfaceSettings)
    assert (american.sports, american.interval, american.regions) == (
        ("basketball_nba", "icehockey_nhl"),
        45.0,
        ("us",),
    )
    assert (node.stream, settings.data.folder, settings.data.kept_files) == (False, "here", 50)
    assert secret(settings, "feeds.american.key_env", {"ODDS_KEY": " k "}) == "k"
    assert secret(settings, "feeds.node.key_env", {}) == ""
    assert load(None, {}).feeds == {}


def test_the_environment_overrides_every_setting(tmp_path: Path) -> None:
    environ = {
        "ODDSENGINE_FEEDS_AMERICAN_INTERVAL": "60", "ODDSENGINE_FEEDS_AMERICAN_SPORTS": "basketball_nba, soccer_epl",
        "ODDSENGINE_DATA_FOLDER": "there", "ODDSENGINE_DATA_KEPT_FILES": "0", "ODDSENGINE_FEEDS_NODE_STREAM": "true",
        "ODDSENGINE_FEEDS_FILE_KIND": "table", "ODDSENGINE_FEEDS_FILE_PATH": "odds.csv",
        "ODDSENGINE_FEEDS_FILE_COLUMNS": "Bookie=sportsbook, a=b=line",
    }  # fmt: skip
    settings = load(written(tmp_path, GOOD), environ)
    american, node, file = settings.feeds["american"], settings.feeds["node"], settings.feeds["file"]
    assert isinstance(american, TheOddsApiSettings)
    assert isinstance(node, InterfaceSettings)
    assert (american.interval, american.sports) == (60.0, ("basketball_nba", "soccer_epl"))
    assert (settings.data.folder, settings.data.kept_files, node.stream) == ("there", 0, True)
    assert isinstance(file, TableSettings)
    assert (file.path, file.columns) == ("odds.csv", {"Bookie": "sportsbook", "a=b": "line"})


WRONG = {  # what is written, and what the sentence has to hold
    "kind": ("[feeds.a]\nkind = 'pinnacle'", "feeds.a.kind must be one of the_odds_api, interface"),
    "no kind": ("[feeds.a]\nurl = 'x'", "feeds.a.kind must be one of the_odds_api, interface, optic, betfair"),
    "number": (GOOD.replace("45", "'often'"), "feeds.american.interval must be a number of seconds above 0, got"),
    "range": (GOOD.replace("45", "0"), "feeds.american.interval must be a number of seconds above 0, got 0"),
    "list": (GOOD.replace('["basketball_nba", "icehockey_nhl"]', '"nba"'), "american.sports must be a list of at"),
    "none": (GOOD.replace('["basketball_nba", "icehockey_nhl"]', "[]"), "feeds.american.sports must be a list of at"),
    "typing error": (GOOD + "intervall = 3", "feeds.node.intervall is not a setting; allowed: backoff,"),
    "flag": (GOOD.replace("false", "'no'"), "feeds.node.stream must be true or false, got 'no'"),
    "url": (GOOD.replace("https://node", "node"), "feeds.node.url must be a URL that starts with http"),
    "section": ("[fedes.a]\nkind = 'table'", "[fedes] is not a section; allowed: archive, data,"),
    "name": ("[feeds.'A b']\nkind = 'table'", "feed names must be lower-case letters"),
    "no table": ("feeds = 3", "feeds must be a table, got 3"),
    "both": ("[feeds.t]\nkind = 'table'\npath = 'a'\nurl = 'http://b'", "feeds.t takes path or url, not both"),
    "columns": ("[feeds.t]\nkind = 'table'\npath = 'a'\ncolumns = {B = 'bok'}", "wrong name: column 'B' cannot be"),
    "no columns": ("[feeds.t]\nkind = 'table'\npath = 'a'\ncolumns = 'B'", "feeds.t.columns must be a table of its"),
    "neither": ("[feeds.t]\nkind = 'table'", "feeds.t needs path or url"),
    "login": ("[feeds.b]\nkind = 'betfair'\nkey_env = 'K'", "feeds.b.session_env must be given, or user_env"),
    "socket": (
        "[feeds.b]\nkind = 'betfair'\nkey_env = 'K'\nsession_env = 'S'\nurl = 'https://x'",
        "feeds.b.url must be tls://HOST:PORT or tcp://HOST:PORT",
    ),
    "heartbeat": (
        "[feeds.b]\nkind = 'betfair'\nkey_env = 'K'\nsession_env = 'S'\nheartbeat = 5.5",
        "feeds.b.heartbeat must be 0.5 to 5 seconds, got 5.5",
    ),
    "levels": (
        "[feeds.b]\nkind = 'betfair'\nkey_env = 'K'\nsession_env = 'S'\nlevels = 11",
        "feeds.b.levels must be a whole number from 1 to 10, got 11",
    ),
    "currency": (
        "[feeds.m]\nkind = 'matchbook'\nsports = ['nfl']\ncurrency = 'pounds'",
        "feeds.m.currency must be three letters such as GBP, got 'pounds'",
    ),
    "port": (GOOD.replace("node.example/", "node.example:99999/"), "feeds.node.url must be a URL that starts"),
    "stream port": (
        "[feeds.p]\nkind = 'polymarket'\nsports = ['nfl']\nstream_url = 'wss://x:99999/ws'",
        "feeds.p.stream_url must be a URL that starts with ws:// or wss://, with a port up to 65535",
    ),
    "table url": ("[feeds.t]\nkind = 'table'\nurl = 'ftp://b'", "feeds.t.url must be a URL that starts with http"),
    "catalogue": (
        "[feeds.b]\nkind = 'betfair'\nkey_env = 'K'\nsession_env = 'S'\ncatalogue_url = 'x'",
        "feeds.b.catalogue_url must be a URL that starts with http",
    ),
    "no key": (GOOD.replace('"ODDS_KEY"', '""'), "feeds.american.key_env must be the name of an environment variable"),
    "servers": (
        "[scale]\nrole = 'writer'\nservers = ['nats://10.0.0.11:422200']",
        "scale.servers must be a list of addresses such as nats://10.0.0.11:4222, got",
    ),
    "syntax": ("[feeds", "not valid TOML"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_one_sentence(case: str, tmp_path: Path) -> None:
    text, sentence = WRONG[case]
    path = written(tmp_path, text)
    with pytest.raises(SettingsError) as error:
        load(path, {})
    assert str(error.value).startswith(path)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_wrong_environment_is_one_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    with pytest.raises(SettingsError, match=r"^environment: ODDSENGINE_FEEDS_NODE_INTERVAL must be a number.*got 'x'$"):
        load(path, {"ODDSENGINE_FEEDS_NODE_INTERVAL": "x"})
    with pytest.raises(SettingsError, match="ODDSENGINE_FEEDS_NODE_INTERVALL is not a setting"):
        load(path, {"ODDSENGINE_FEEDS_NODE_INTERVALL": "3"})
    with pytest.raises(
        SettingsError, match=r"feeds.american.key_env is 'ODDS_KEY', but that environment variable is not set"
    ):
        secret(load(path, {}), "feeds.american.key_env", {})
    with pytest.raises(SettingsError, match="no such file"):
        load(str(tmp_path / "nowhere.toml"), {})


@pytest.mark.parametrize(
    ("variable", "allowed"),
    [
        ("ODDSENGINE_SERVCE_PORT", "ODDSENGINE_API_KEY, ODDSENGINE_CACHE, ODDSENGINE_ARCHIVE_..., "),
        ("ODDSENGINE_SERVICE", "ODDSENGINE_API_KEY, ODDSENGINE_CACHE, ODDSENGINE_ARCHIVE_..., "),
        ("ODDSENGINE_KEYS_PEPER", "ODDSENGINE_KEYS_FILE, ODDSENGINE_KEYS_PEPPER"),
        ("ODDSENGINE_FEEDS_NOD_STREAM", "ODDSENGINE_FEEDS_AMERICAN_BACKOFF, "),
        ("ODDSENGINE_SCALE_ROLL", "ODDSENGINE_SCALE_CREDENTIALS_ENV, "),
    ],
)
def test_a_variable_that_is_no_setting_is_refused(variable: str, allowed: str, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + "[scale]\nrole = 'writer'\nservers = ['nats://10.0.0.11:4222']")
    with pytest.raises(SettingsError) as error:
        load(path, {variable: "1"})
    assert str(error.value).startswith(f"environment: {variable} is not a setting; allowed: {allowed}")


@pytest.mark.parametrize("text", ["", GOOD])
def test_a_feed_from_the_environment_needs_a_kind(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        load(written(tmp_path, text), {"ODDSENGINE_FEEDS_MY_FILE_PATH": "odds.csv"})
    assert str(error.value).startswith("environment: ODDSENGINE_FEEDS_MY_FILE_PATH is not a setting; allowed: ")
    assert str(error.value).endswith(f"ODDSENGINE_FEEDS_MY_FILE_KIND beside it, one of {', '.join(kind_names())}")


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    """As compose files pass on variables that are not set."""
    names = (
        "DATA_FOLDER", "SERVICE_PORT", "SERVICE_ORIGINS", "FEEDS_NODE_STREAM", "FEEDS_AMERICAN_SPORTS", "SCALE_ROLE",
        "FEEDS_OTHER_KIND", "FEEDS_OTHER_PATH",
    )  # fmt: skip
    path = written(tmp_path, GOOD)
    assert load(path, {f"ODDSENGINE_{name}": "" for name in names}) == load(path, {})
    with pytest.raises(SettingsError, match=r"oddsengine.toml: feeds.node.interval must be"):
        load(written(tmp_path, GOOD + "interval = 'x'"), {"ODDSENGINE_FEEDS_NODE_INTERVAL": ""})


def test_variables_that_kubernetes_sets_are_allowed(tmp_path: Path) -> None:
    """For Services named oddsengine and oddsengine-page; the first one's host and port are settings of ours."""
    address = "tcp://10.0.0.7:80"
    given = {
        "ODDSENGINE_PORT": address, "ODDSENGINE_PORT_80_TCP": address, "ODDSENGINE_PORT_80_TCP_ADDR": "10.0.0.7",
        "ODDSENGINE_SERVICE_PORT_HTTP": "80", "ODDSENGINE_PAGE_SERVICE_HOST": "10.0.0.8",
        "ODDSENGINE_PAGE_PORT": address,
    }  # fmt: skip
    load(written(tmp_path, GOOD), given)
    with pytest.raises(SettingsError, match="ODDSENGINE_PAGE_PORT is not a setting"):
        load(written(tmp_path, GOOD), {"ODDSENGINE_PAGE_PORT": "80"})


def test_variables_that_others_read_are_allowed(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + "[service]\nmetrics_token_env = 'ODDSENGINE_TOKEN'")
    others = ("ODDSENGINE_CACHE", "ODDSENGINE_API_KEY", "ODDSENGINE_TOKEN", "ODDSENGINES", "HOME")
    assert load(path, dict.fromkeys(others, "1")).service.metrics_token_env == "ODDSENGINE_TOKEN"


def test_waits_have_full_jitter_and_a_cap() -> None:
    backoff = Backoff(1.0, 8.0, random.Random(3))
    waits = [[Backoff(1.0, 8.0, random.Random(seed)) for seed in range(300)]]
    for most in (1.0, 2.0, 4.0, 8.0, 8.0):
        drawn = [one.wait(Failure("x")) for one in waits[0]]
        assert 0.0 <= min(drawn) < 0.1 * most
        assert 0.9 * most < max(drawn) <= most
    assert 30.0 <= backoff.wait(Failure("429", wait=30.0)) <= 31.0
    assert backoff.wait(Failure("429", wait=1e9)) <= 3600.0 + 8.0
    assert backoff.wait(Failure("key", fatal=True)) >= 4.0
    backoff.reset()
    assert backoff.wait(Failure("x")) <= 1.0


def test_a_source_is_what_its_parts_are() -> None:
    start = datetime(2026, 2, 8, tzinfo=UTC)
    track = Track("main", "the_odds_api", start, 60.0, declared=("never_seen",))
    assert track.assess(start)[0] == "starting"
    nba, nhl = track.part("nba"), track.part("nhl")
    nba.well(start)
    nba.books["draftkings"] = start
    nhl.well(start)
    nhl.books["fanduel"] = start
    assert track.assess(start)[:2] == ("ok", "")
    nhl.failed(Failure("status 500"), start + timedelta(seconds=1))
    later = start + timedelta(seconds=2)
    assert track.assess(later)[:2] == ("degraded", "nhl: status 500")
    assert track.book("draftkings", later)[0] == "ok"
    assert track.book("fanduel", later)[:2] == ("degraded", "main: nhl: status 500")
    assert track.book("fanduel", start + timedelta(seconds=62))[0] == "down"
    assert track.assess(start + timedelta(seconds=200))[0] == "down"  # the other part is silent by then
    nba.well(start + timedelta(seconds=200))
    assert track.assess(start + timedelta(seconds=200))[0] == "degraded"
    assert track.book("never_seen", start + timedelta(seconds=200))[0] == "degraded"


def test_a_book_that_stays_away_shows() -> None:
    """Its source answers, but without it: that is not the same as a book without value."""
    start = datetime(2026, 2, 8, tzinfo=UTC)
    track = Track("main", "the_odds_api", start, 60.0)
    part = track.part("")
    part.polled, part.within = True, 10.0
    part.books.update(draftkings=start, fanduel=start)
    for seconds in range(0, 200, 5):
        part.well(start + timedelta(seconds=seconds))
        part.books["fanduel"] = start + timedelta(seconds=seconds)
    end = start + timedelta(seconds=200)
    assert track.book("fanduel", end)[0] == "ok"
    status, reason, _ = track.book("draftkings", end)
    assert (status, "without a price of it since 2026-02-08T00:00:00Z" in reason) == ("degraded", True)


def test_the_folder_of_payloads_is_bounded_and_clean(tmp_path: Path) -> None:
    kept = PayloadQuarantine(tmp_path / "kept", 4, 1000, Secrets(["verysecret"]))
    for n in range(10):
        kept.keep(
            "main",
            b'{"n": %d, "url": "https://x/?apiKey=abc123&a=1", "k": "verysecret", "token": "t0k"}' % n,
            "why",
            now(),
        )
    bodies = sorted(kept.folder.glob("*.payload"))
    assert [json.loads(path.read_bytes())["n"] for path in bodies] == [6, 7, 8, 9]
    text = b"".join(path.read_bytes() for path in bodies)
    assert not any(word in text for word in (b"abc123", b"verysecret", b"t0k"))
    kept.keep("main", b"x" * 5000, "why", now())
    kept.keep("main", b"x" * 5000, "why verysecret", now())
    assert sum(path.stat().st_size for path in kept.folder.iterdir()) <= 1000
    newest = max(kept.folder.glob("*.payload"))
    assert "cut after 250 of 5000 bytes" in newest.with_suffix(".reason").read_text()
    assert "verysecret" not in newest.with_suffix(".reason").read_text()
    assert PayloadQuarantine(tmp_path / "none", 0, 1000, Secrets()).keep("main", b"x", "why", now()) is None
    assert not (tmp_path / "none").exists()


def test_the_same_payload_is_kept_once(tmp_path: Path) -> None:
    """As a source that is tried again sends it; by this process or the next."""
    for _ in range(2):
        kept = PayloadQuarantine(tmp_path, 10, 10_000, Secrets())
        first, again, other = (kept.keep("main", body, "why", now()) for body in (b"broken", b"broken", b"torn"))
        assert first == again != other
    assert sorted(path.read_bytes() for path in tmp_path.glob("*.payload")) == [b"broken", b"torn"]


def test_a_reason_is_said_once_and_again_after_a_while() -> None:
    saying, start = MessageThrottle(), now()
    assert saying.is_due("feeds.a", "down", start)
    assert not saying.is_due("feeds.a", "down", start + timedelta(minutes=9))
    assert saying.is_due("feeds.b", "down", start)
    assert saying.is_due("feeds.a", "torn", start + timedelta(minutes=9))
    assert not saying.is_due("feeds.a", "torn", start + timedelta(minutes=18))
    assert saying.is_due("feeds.a", "torn", start + timedelta(minutes=19))


def test_a_source_that_stays_down_is_one_line_and_strangers_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    feed = TableSettings(
        name="t", kind="table", path=str(tmp_path / "odds.csv"), interval=0.01, backoff=0.01, backoff_cap=0.02
    )

    async def check() -> None:
        hub = new_hub()
        async with running(hub, table(feed, {}, Secrets())):
            await until(lambda: hub.statuses()[0].failures_total > 5, "failures")
            (tmp_path / "odds.csv").write_text(HEAD + line("pinny", 1.95) + line("fanduel", 2.0))
            await until(lambda: len(prices(hub)) == 2, "prices")
            (tmp_path / "odds.csv").write_text(HEAD + line("pinny", 1.955) + line("mybookie2", 2.0))
            await until(lambda: hub.tracks["t"].unknown == {"mybookie2", "pinny"}, "another book")

    asyncio.run(check())
    said = [message for message in caplog.messages if message.startswith("feeds.t")]
    assert sum("no such file" in message for message in said) == 1
    assert [message for message in said if "catalog" in message] == [
        f"feeds.t: books not in the catalog: {book}" for book in ("pinny", "mybookie2")
    ]


def test_a_log_whose_stream_was_closed_writes_nothing() -> None:
    """Standard error may have been replaced, and closed, before the process ends."""
    out = io.StringIO()
    with log.written(out):
        out.close()
        log.event("too late")


def test_what_fetchers_log_is_json_without_secrets() -> None:
    out, logger = io.StringIO(), logging.getLogger("oddsengine.feeds")
    secrets, level = Secrets(["hunter2hunter2"]), logger.level
    with log.written(out), secrets.out_of_logs():
        logger.info("costs %d credits", 3)
        try:
            raise ValueError("hunter2hunter2")
        except ValueError:
            logger.exception("feeds.%s stopped", "a")
    told, stopped = map(json.loads, out.getvalue().splitlines())
    assert (told["event"], told["level"], told["message"]) == ("feeds", "info", "costs 3 credits")
    assert (stopped["level"], stopped["error"]) == ("error", "feeds.a stopped")
    assert "ValueError: ***" in stopped["trace"]
    assert (logger.level, logger.handlers) == (level, [])


def test_secrets_stay_out_of_logs(caplog: pytest.LogCaptureFixture) -> None:
    secrets, logger = Secrets(["hunter2hunter2"]), logging.getLogger("httpx2")
    caplog.set_level(logging.INFO)
    with secrets.out_of_logs():
        logger.info("GET %s", "https://u:pw@api.example/odds?apiKey=abc123&sport=nba hunter2hunter2")
    assert caplog.messages == ["GET https://***@api.example/odds?apiKey=***&sport=nba ***"]


# ---- documents ----

HEAD = "sportsbook,event_id,sport,league,home_team,away_team,event_start_time,market_type,selection,odds_decimal\n"
START = (now() + timedelta(hours=1)).isoformat()


def line(book: str, odds: float) -> str:
    return f"{book},e,basketball,nba,Boston Celtics,Los Angeles Lakers,{START},moneyline,Boston Celtics,{odds}\n"


def test_a_watched_table(tmp_path: Path) -> None:
    """A change shows, a book that is dropped leaves, a broken state removes nothing, and mending it heals."""
    path = tmp_path / "odds.csv"
    path.write_text(HEAD + line("a", 1.9) + line("b", 2.0))
    feed = TableSettings(
        name="t", kind="table", path=str(path), interval=0.01, backoff=0.01, backoff_cap=0.02, timeout=1.0
    )

    def status(hub: Hub) -> str:
        return hub.statuses()[0].status

    async def check() -> None:
        hub = new_hub()
        async with running(hub, table(feed, {}, Secrets())):
            await until(lambda: sorted(prices(hub).values()) == [1.9, 2.0], "the first state")
            path.write_text(HEAD + line("a", 1.95))
            await until(lambda: list(prices(hub).values()) == [1.95], "the second state")
            path.write_bytes(b"\0\0 no table")
            await until(lambda: status(hub) == "degraded", "degraded")
            assert list(prices(hub).values()) == [1.95]
            path.unlink()
            await until(lambda: "no such file" in hub.statuses()[0].reason, "no file")
            path.write_text(HEAD + line("a", 2.5))
            await until(lambda: status(hub) == "ok" and list(prices(hub).values()) == [2.5], "the third state")

    asyncio.run(check())


def test_a_table_that_stays_as_it_is_does_not_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once, and its prices before games are seen again and again; its age is reported."""
    monkeypatch.setattr(documents, "RENEW_S", 0.02)
    path = tmp_path / "odds.csv"
    live = line("b", 2.0).replace(",e,", ",e2,").rstrip() + ",true\n"
    path.write_text(HEAD.rstrip() + ",is_live\n" + line("a", 1.9).rstrip() + ",false\n" + live)
    written = time.time() - 3600.0
    os.utime(path, (written, written))

    async def check() -> None:
        hub = new_hub(ages=True)

        def seen() -> dict[str, datetime]:
            return dict(hub.engine.table().select("sportsbook", "last_seen_at").iter_rows())

        async with running(hub, table(TableSettings(name="t", kind="table", path=str(path)), {}, Secrets())):
            await until(lambda: len(prices(hub)) == 2, "prices")
            first = seen()
            await until(lambda: seen()["a"] > first["a"], "the price to be seen again")
            assert seen()["b"] == first["b"], "in play"
            (status,) = hub.statuses()
            assert (status.status, status.unmapped, status.refused) == ("ok", 0, 0)
            assert status.written_at == datetime.fromtimestamp(written, UTC)

    asyncio.run(check())


def test_a_table_older_than_its_maximum_age_has_no_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "RENEW_S", 0.02)
    path = tmp_path / "odds.csv"
    path.write_text(HEAD + line("a", 1.9))
    feed = TableSettings(name="t", kind="table", path=str(path), interval=0.02, max_age=60.0)

    def age(seconds: float) -> None:
        os.utime(path, (time.time() - seconds, time.time() - seconds))

    async def check() -> None:
        hub = new_hub(ages=True)
        async with running(hub, table(feed, {}, Secrets())):
            await until(lambda: len(prices(hub)) == 1, "prices")
            age(61.0)
            await until(lambda: not prices(hub), "the prices to be gone")
            await until(lambda: hub.statuses()[0].status == "degraded", "the reason")
            assert hub.statuses()[0].public == "the file is older than max_age, 60 s"
            age(1.0)
            await until(lambda: len(prices(hub)) == 1 and hub.statuses()[0].status == "ok", "prices again")

    asyncio.run(check())


def test_files_of_a_folder_may_list_the_same_books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of one, or its age, removes nothing of the others; of two prices of one bet, the one read last holds."""
    monkeypatch.setattr(documents, "RENEW_S", 0.02)
    first, second, third = (tmp_path / name for name in ("1.csv", "2.csv", "3.csv"))
    live = line("d", 3.0).replace(",e,", ",e2,").rstrip() + ",true\n"
    first.write_text(HEAD.rstrip() + ",is_live\n" + line("a", 1.9).rstrip() + ",false\n" + live)
    second.write_text(HEAD + line("a", 2.0).replace("Boston Celtics,2", "Los Angeles Lakers,2"))
    third.write_text(HEAD + line("a", 1.8))
    feed = TableSettings(name="t", kind="table", path=str(tmp_path), interval=0.02, max_age=60.0)

    async def check() -> None:
        hub = new_hub(ages=True)

        def board() -> list[tuple[str, float]]:
            return sorted(hub.engine.table().select("sportsbook", "odds_decimal").iter_rows())

        def seen() -> dict[float, datetime]:
            return dict(hub.engine.table().select("odds_decimal", "last_seen_at").iter_rows())

        steps = [[("a", 1.8), *other, ("d", 3.0)] for other in ([("a", 2.0)], [("a", 2.1)], [])]
        boards = []

        def is_at(step: int) -> bool:
            boards.append(board())
            return boards[-1] == steps[step]

        async with running(hub, table(feed, {}, Secrets())):
            await until(lambda: board() == steps[0], "all prices")
            at = seen()
            await until(lambda: seen()[1.8] > at[1.8], "prices to be seen again")
            second.write_text(second.read_text().replace("2.0", "2.1"))
            await until(lambda: is_at(1), "a change")
            assert seen()[3.0] == at[3.0], "in play"
            os.utime(second, (time.time() - 61.0, time.time() - 61.0))
            await until(lambda: is_at(2), "the second file to be too old")
            assert all(each in steps for each in boards)

    asyncio.run(check())


def test_a_table_that_is_being_rewritten_removes_nothing(tmp_path: Path) -> None:
    """A writer that is slow leaves a file that ends anywhere: the rest of the books would seem to be gone."""
    path, rest = tmp_path / "odds.csv", threading.Event()
    path.write_text(HEAD + line("a", 1.9) + line("b", 2.0))
    feed = TableSettings(
        name="t", kind="table", path=str(path), interval=0.01, backoff=0.01, backoff_cap=0.02, timeout=1.0
    )

    def write() -> None:
        while not rest.is_set():
            path.write_text(HEAD + line("a", 1.9))
            rest.wait(0.005)
        path.write_text(HEAD + line("a", 1.9) + line("b", 2.1))

    async def check() -> None:
        hub, writer = new_hub(), threading.Thread(target=write)
        async with running(hub, table(feed, {}, Secrets())):
            await until(lambda: sorted(prices(hub).values()) == [1.9, 2.0], "the first state")
            writer.start()
            try:
                await until(lambda: "was changed while it was read" in hub.statuses()[0].reason, "a reason")
                assert sorted(prices(hub).values()) == [1.9, 2.0]
            finally:
                rest.set()
                writer.join()
            await until(lambda: sorted(prices(hub).values()) == [1.9, 2.1], "the second state")

    asyncio.run(check())


SEASON = (
    "Div,Date,Time,HomeTeam,AwayTeam,FTHG,FTAG,FTR,B365H,B365D,B365A,PSCH,PSCD,PSCA\n"
    "E0,17/08/2024,15:00,Arsenal,Wolves,2,0,H,1.17,8,15,1.16,8.5,17\n"
)


@pytest.mark.parametrize("way", ["file", "address"])
def test_seasons_bring_their_time(way: str, tmp_path: Path) -> None:
    async def serve(_: Request, answering: Answering) -> None:
        await answering.answer(SEASON.encode())

    async def check() -> None:
        from oddsengine.live.engine import Engine
        from oddsengine.matching import Matcher

        hub = Hub(Writer(Engine()), Matcher(), clock=None)
        async with http(serve) as url:
            (tmp_path / "E0.csv").write_text(SEASON)
            where: dict[str, Any] = {"path": str(tmp_path)} if way == "file" else {"url": url + "/E0.csv"}
            await hub.run([football_data(FootballDataSettings(name="f", kind="football_data", **where), {}, Secrets())])
        assert hub.engine.now == datetime(2024, 8, 17, 13, 59, tzinfo=UTC)  # a minute before the kick-off in London
        assert {book for book, _ in prices(hub)} == {"pinnacle"}  # the others were seen the day before
        assert hub.statuses()[0].books == ("bet365", "pinnacle")
        assert (hub.engine.number, hub.statuses()[0].quotes, hub.statuses()[0].status) == (2, 6, "ok")
        assert "to its end" in hub.statuses()[0].reason
        await hub.close()

    asyncio.run(check())


# ---- commands ----


@contextmanager
def provider() -> Iterator[str]:
    """A provider in a thread of its own, for commands that run an event loop themselves."""
    found: list[Any] = []
    ready = threading.Event()

    async def odds(request: Request, answering: Answering) -> None:
        left = {"x-requests-remaining": "40000", "x-requests-used": "100"}
        event = game()
        if request.path.endswith("/events"):
            await answering.answer([{"id": "g1", "commence_time": event["commence_time"]}], headers=left)
            return
        outcomes = [{"name": "Boston Celtics", "price": 3.0}]
        for book in event["bookmakers"]:
            book["markets"].append({"key": "first_dunk_colour", "outcomes": outcomes})
        await answering.answer([event], headers=left)

    async def serve() -> None:
        async with http(odds) as url:
            loop, stop = asyncio.get_running_loop(), asyncio.Event()
            found.extend([url, loop, stop])
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait(5)
    try:
        yield found[0]
    finally:
        found[1].call_soon_threadsafe(found[2].set)
        thread.join()


def test_check_says_what_each_source_would_deliver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODDS_KEY", "secretsecret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odds.csv").write_text(HEAD + line("a", 1.9))
    with provider() as url:
        text = f"""
[feeds.american]
kind = "the_odds_api"
key_env = "ODDS_KEY"
sports = ["basketball_nba"]
markets = ["h2h"]
url = "{url}"
[feeds.file]
kind = "table"
path = "odds.csv"
[feeds.keyless]
kind = "optic"
key_env = "NO_SUCH_VARIABLE"
sports = ["basketball"]
books = ["x"]
[feeds.dead]
kind = "interface"
url = "http://127.0.0.1:9/api/v1"
"""
        assert main(["feeds", "check", "--config", written(tmp_path, text), "--format", "json"]) == 1  # not all are ok
        out = capsys.readouterr().out
        found: dict[str, Any] = {one["name"]: one for one in json.loads(out)}
        american = found["american"]
        assert (american["status"], american["events"], american["quotes"]) == ("ok", 1, 6)
        assert american["books"] == ["draftkings", "fanduel"]
        assert american["unmapped"][0]["market"] == "first_dunk_colour"
        assert any("credits an hour now" in note and "40,000 left" in note for note in american["notes"])
        assert (found["file"]["status"], found["file"]["quotes"]) == ("ok", 1)
        assert found["file"]["notes"] == ["books not in the catalog: a"]
        assert "NO_SUCH_VARIABLE" in found["keyless"]["reason"]
        assert found["dead"]["status"] in ("degraded", "down")
        assert "secretsecret" not in out
        assert main(["feeds", "check", "--config", "oddsengine.toml"]) == 1
        out = capsys.readouterr().out
        assert "american  the_odds_api  ok" in out
        assert "file: books not in the catalog: a" in out
        for more in ([], ["--check"]):
            assert main(["feeds", "unmapped", *more, "--config", "oddsengine.toml"]) == 0
            assert '\n[markets."first_dunk_colour"]\nmeans = ""\n' in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odds.csv", "oddsengine-data", "oddsengine.toml"]
    assert [path.name for path in (tmp_path / "oddsengine-data").iterdir()] == ["feeds-checked.json"]


def test_unmapped_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "odds.csv"
    odd = [
        line("a", 2.0 + n / 10).replace("moneyline", name)
        for n, name in enumerate(["corner kicks x", "corner kicks x", "zz"])
    ]
    path.write_text(HEAD + "".join(odd))
    config = written(tmp_path, "[feeds.t]\nkind = 'table'\npath = 'odds.csv'\n")
    assert main(["feeds", "unmapped", "--config", config]) == 2
    assert "no data yet" in capsys.readouterr().err
    path.write_text(HEAD + line("a", 2.0).replace("moneyline", "of the check"))
    main(["feeds", "check", "--config", config])
    capsys.readouterr()
    assert main(["feeds", "unmapped", "--config", config, "--format", "json"]) == 0
    assert [one["market"] for one in json.loads(capsys.readouterr().out)] == ["of the check"]
    path.write_text(HEAD + "".join(odd))

    async def run() -> None:
        from oddsengine_service.feeds.check import state_file

        hub, feed = new_hub(), load(config, {}).feeds["t"]
        assert isinstance(feed, TableSettings)
        await hub.run([table(feed, {}, Secrets())], state=state_file(load(config, {})))
        await hub.close()

    asyncio.run(run())
    assert main(["feeds", "unmapped", "--config", config, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["market"], one["times"]) for one in found] == [("corner kicks x", 2), ("zz", 1)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no feeds are configured; add a [feeds.NAME] table with a kind to /"),
        ("[feeds.a]\nkind = 'x'", "must be one of"),
    ],
)
def test_check_refuses_in_one_sentence(
    text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feeds", "check", "--config", written(tmp_path, text)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert sentence in err


def test_check_says_where_feeds_would_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["feeds", "check"]) == 2
    assert "with a kind to oddsengine.toml (which does not exist)" in capsys.readouterr().err


def test_the_library_needs_no_http_client() -> None:
    code = (
        "import sys, oddsengine.commands.cli; sys.exit(any(m in sys.modules for m in ('httpx2', 'oddsengine_service')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, env=os.environ).returncode == 0
