"""`fetch` and `source` against local servers that speak each format: prices, reports, and failures by name."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sources.test_streams import beat, begin, fixture, offer, row
from sources.test_the_odds_api import HEADERS, Provider, well
from support.betfair import Betfair, Market, betfair
from support.local_servers import game

import oddsengine as oe
from oddsengine.feeds import Payload
from oddsengine.feeds.feed_names import sport_and_league
from oddsengine.feeds.the_odds_api_names import SPORT_KEYS
from oddsengine.sources.failure import Failure
from oddsengine.sources.fetching import FetchedOdds, Reports
from oddsengine.sources.source_settings import SettingsError
from oddsengine.testing.local_servers import Answering, Handler, Request, http, iso, now, served
from oddsengine_cli import main

KEY = "0123456789abcdefsecret"
QUICK: dict[str, Any] = {"timeout": 5.0, "backoff": 0.01, "backoff_cap": 0.05}


def fetched(serve: Handler, **settings: Any) -> FetchedOdds:
    with served(serve) as url:
        return oe.fetch("the_odds_api", **{"sport": "nba", "key": KEY, "url": url} | QUICK | settings)


def failing(status: int, body: Any = "no", **headers: str) -> Provider:
    async def odds(_: Request, answering: Answering, __: int) -> None:
        await answering.answer(body, status, headers)

    return Provider(odds)


# ---- one source ----


def test_the_odds_api_is_read_once() -> None:
    provider = Provider(well)
    odds = fetched(provider, markets="h2h", regions=("us", "eu"))
    assert sorted(odds.select("sportsbook", "odds_decimal").rows()) == [
        ("draftkings", 1.8), ("draftkings", 2.1), ("fanduel", 1.8), ("fanduel", 2.1),
    ]  # fmt: skip
    assert odds["event_id"].unique().to_list() == ["g1"], "the source's own id"
    (request,) = provider.asked
    assert request.path == "/v4/sports/basketball_nba/odds"
    assert (request.query["markets"], request.query["regions"]) == (["h2h"], ["us,eu"])
    assert request.query["apiKey"] == [KEY]
    report = odds.sources["the_odds_api"]
    assert (report.payloads, report.quotes) == (1, 4)
    assert (report.credits_left, report.credits_used) == (1_000_000_000, 7)
    assert oe.markets(odds).height == 1


def test_a_price_stamped_ahead_is_as_old_as_the_others() -> None:
    """Ages are judged at the newest time of a table, so all the others would be stale."""
    listed = game()
    listed["bookmakers"][0]["markets"] = [
        {**listed["bookmakers"][0]["markets"][0], "last_update": "2036-01-01T00:00:00Z"}
    ]

    async def ahead(_: Request, answering: Answering, __: int) -> None:
        await answering.answer([listed], headers=HEADERS)

    newest = fetched(Provider(ahead))["last_seen_at"].max()
    assert isinstance(newest, datetime)
    assert newest <= now()


def test_our_ids_of_leagues_are_its_sport_keys() -> None:
    for league, key in SPORT_KEYS.items():
        assert sport_and_league(key)[1] == league


def test_more_props_than_one_turn_asks_for_are_all_read() -> None:
    async def serve(request: Request, answering: Answering) -> None:
        if request.path.endswith("/events"):
            listed = [{"id": f"g{n}", "commence_time": game()["commence_time"]} for n in range(30)]
            await answering.answer(listed, headers=HEADERS)
        elif "/events/" in request.path:
            await answering.answer(game(ident=request.path.split("/")[5]), headers=HEADERS)
        else:
            await answering.answer([], headers=HEADERS)

    odds = fetched(serve, props=["player_points"])
    assert odds["event_id"].n_unique() == 30


def test_a_node_is_read_from_its_stream_or_its_lists() -> None:
    async def stream(request: Request, answering: Answering) -> None:
        assert request.headers["x-api-key"] == KEY
        await begin(answering, row("r1", 1.9), row("r2", 2.05, "Los Angeles Lakers"))
        await beat(answering)

    async def lists(request: Request, answering: Answering) -> None:
        assert request.query["league"] == ["nba"]
        await answering.answer({"data": [row("r1", 1.9)], "pagination": {"has_more": False}})

    with served(stream) as url:
        assert oe.fetch("interface", url=url, key=KEY, **QUICK)["odds_decimal"].to_list() == [1.9, 2.05]
    with served(lists) as url:
        assert oe.fetch("interface", url=url, stream=False, leagues="nba", **QUICK)["odds_decimal"].to_list() == [1.9]


def test_optic_odds_is_read_from_its_lists() -> None:
    async def serve(request: Request, answering: Answering) -> None:
        assert request.headers["x-api-key"] == KEY
        if request.path.endswith("/fixtures/active"):
            await answering.answer({"data": [fixture()], "page": 1, "total_pages": 1})
        elif request.path.endswith("/fixtures/odds"):
            await answering.answer({"data": [fixture(offer(-150), offer(130, "Los Angeles Lakers"))]})
        else:
            await answering.stream()
            await answering.event("connected", "ok go")
            for _ in range(100):
                await answering.event("ping", iso(now()))
                await asyncio.sleep(0.1)

    with served(serve) as url:
        odds = oe.fetch("optic", sports="basketball", books="DraftKings", url=url, key=KEY, **QUICK)
    assert sorted(odds["odds_american"].to_list()) == [-150.0, 130.0]


def test_the_exchange_is_read_from_its_first_image() -> None:
    async def check() -> tuple[Betfair, FetchedOdds]:
        async with betfair(Market("1.1")) as at:
            odds = await asyncio.to_thread(
                lambda: oe.fetch("betfair", sports="basketball", key=KEY, session="session", **at.urls, **QUICK)
            )
        return at, odds

    at, odds = asyncio.run(check())
    assert at.stream.logins[0]["appKey"] == KEY
    assert at.stream.logins[0]["session"] == "session"
    assert sorted(odds["odds_decimal"].to_list()) == [1.8, 2.2]


def test_files_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "event_id,sportsbook,market_type,selection,odds_decimal\ne,a,moneyline,home,2.0\ne,a,moneyline,away,\n"
    )
    odds = oe.fetch("table", path=path)
    assert (odds.height, odds.rejected["reason"].to_list()) == (1, ["no price given"])


# ---- several sources ----


def test_several_sources_have_common_events(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    start = game()["commence_time"]
    rows = [
        {
            "event_id": "own", "sportsbook": "corner_shop", "sport": "basketball", "league": "nba",
            "odds_decimal": odds, "home_team": "BOS Celtics", "away_team": "LA Lakers", "event_start_time": start,
            "market_type": "moneyline", "selection": pick,
        }
        for pick, odds in (("BOS Celtics", 2.0), ("LA Lakers", 1.8))
    ]  # fmt: skip
    path.write_text(json.dumps(rows))
    with served(Provider(well)) as url:
        odds = oe.fetch(
            {
                "american": {"kind": "the_odds_api", "sport": "nba", "key": KEY, "url": url, "markets": "h2h"},
                "mine": {"kind": "table", "path": path},
            }
        )
    assert odds["event_id"].n_unique() == 1
    assert set(odds["event_id"]) not in ({"own"}, {"g1"})
    assert odds["sportsbook"].n_unique() == 3
    assert {name: report.quotes for name, report in odds.sources.items()} == {"american": 4, "mine": 2}
    assert oe.find_arbitrage(odds, guards=[]).height == 1


def test_nothing_is_returned_if_one_of_several_fails(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("event_id,sportsbook,market_type,selection,odds_decimal\ne,a,moneyline,home,2.0\n")
    with served(failing(401)) as url, pytest.raises(oe.FetchError, match=r"^american: status 401") as caught:
        oe.fetch(
            {
                "mine": {"kind": "table", "path": path},
                "american": {"kind": "the_odds_api", "sport": "nba", "key": KEY, "url": url, "markets": "h2h"},
            }
        )
    assert (caught.value.source, caught.value.kind) == ("american", "refused")


# ---- failures ----


@pytest.mark.parametrize(
    ("provider", "kind", "text"),
    [
        (failing(401, f"not valid: {KEY}"), "refused", r"status 401: .*not valid: \*\*\*.*; check the key"),
        (failing(422, "unknown sport"), "refused", "status 422: .*unknown sport"),
        (failing(429, "slow down", **{"retry-after": "30"}), "rate_limited", "status 429: .*; it asks to wait 30 s"),
        (failing(500), "failed", "status 500"),
        (failing(200, b"<html>"), "failed", "invalid payload"),
    ],
    ids=["key", "request", "rate", "server", "nonsense"],
)  # fmt: skip
def test_a_failure_is_named(provider: Provider, kind: str, text: str) -> None:
    with pytest.raises(oe.FetchError, match=text) as caught:
        fetched(provider, timeout=0.7)
    assert caught.value.kind == kind
    assert KEY not in str(caught.value)
    assert "http://127.0.0.1:" in str(caught.value), "the place is named"


def test_an_unreachable_source_is_named() -> None:
    with pytest.raises(
        oe.FetchError, match=r"nowhere\.invalid cannot be reached: .*\(http://nowhere\.invalid\)"
    ) as one:
        oe.fetch("the_odds_api", sport="nba", key=KEY, url="http://nowhere.invalid", timeout=0.5)
    with pytest.raises(oe.FetchError, match=r"127\.0\.0\.1 cannot be reached") as other:
        oe.fetch("betfair", key=KEY, session="s", catalogue_url="http://127.0.0.1:9", timeout=0.5)
    assert {one.value.kind, other.value.kind} == {"unreachable"}


def test_a_silent_source_takes_no_longer_than_allowed() -> None:
    async def silent(_: Request, answering: Answering) -> None:
        await asyncio.sleep(30.0)

    with pytest.raises(oe.FetchError, match=r"not everything came within 0\.3 s") as caught:
        fetched(silent, timeout=0.3)
    assert caught.value.kind == "timeout"


def test_a_failed_request_is_repeated() -> None:
    async def odds(_: Request, answering: Answering, times: int) -> None:
        await answering.answer([game()] if times > 2 else "no", 200 if times > 2 else 503, HEADERS)

    provider = Provider(odds)
    assert fetched(provider).height == 4
    assert len(provider.asked) == 3


def test_no_request_is_sent_without_credits() -> None:
    provider = Provider(well, {**HEADERS, "x-requests-remaining": "3"})
    with pytest.raises(oe.FetchError, match="no credits to spend: 3 left, 3 of them kept"):
        fetched(provider, credits_kept=3)
    assert provider.asked == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"sport": "nba"}, "needs key=..., or the environment variable ODDS_API_KEY"),
        ({"sport": "nba", "key_env": "MINE"}, "needs key=..., or the environment variable MINE"),
        ({"sprot": "nba", "key": KEY}, r"the_odds_api\.sprot is not a setting; allowed: .*sports"),
        ({"key": KEY}, r"the_odds_api\.sports must be a list of at least one of its sport keys, got nothing"),
        ({"sport": "nba", "key": KEY, "interval": -1}, r"the_odds_api\.interval must be a number of seconds above 0"),
        ({"sport": "nba", "key": KEY, "kind": "odds_api"}, "'odds_api' is not a kind of source; allowed: the_odds_api"),
    ],
    ids=["key", "variable", "name", "sport", "value", "kind"],
)
def test_bad_settings_name_what_is_allowed(monkeypatch: pytest.MonkeyPatch, words: dict[str, Any], text: str) -> None:
    monkeypatch.delenv("ODDS_API_KEY", raising=False)
    with pytest.raises(SettingsError, match=text):
        oe.fetch("the_odds_api", **words)


def test_the_key_can_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODDS_API_KEY", KEY)
    provider = Provider(well)
    assert fetched(provider, key=None, markets="h2h").height == 4
    assert provider.asked[0].query["apiKey"] == [KEY]


def test_without_the_extra_it_is_named() -> None:
    code = "import sys; sys.modules['httpx2'] = None; import oddsengine as oe; oe.fetch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    assert "pip install 'oddsengine[feeds]'" in done.stderr.splitlines()[-1]


# ---- loops ----


def test_it_works_inside_a_running_loop() -> None:
    """As in a notebook."""

    async def notebook(url: str) -> int:
        return oe.fetch("the_odds_api", sport="nba", key=KEY, url=url, markets="h2h").height

    with served(Provider(well)) as url:
        assert asyncio.run(notebook(url)) == 4


def test_payloads_of_a_stream_as_they_arrive() -> None:
    connections = 0

    async def serve(_: Request, answering: Answering) -> None:
        nonlocal connections
        connections += 1
        await begin(answering, row("r1", 1.9 + connections / 10))
        if connections > 1:
            await beat(answering)

    async def check() -> list[float]:
        found: list[float] = []
        async with http(serve) as url, aclosing(oe.source("interface", url=url, **QUICK)) as payloads:
            async for payload in payloads:
                found += [quote["odds_decimal"] for quote in payload.quotes]
                if len(found) == 2:
                    return found
        return found

    assert asyncio.run(check()) == [2.0, 2.1]
    assert connections == 2, "a stream that ends is taken up again"


def test_what_ends_is_read_to_its_end(tmp_path: Path) -> None:
    for name in "ab":
        text = "event_id,sportsbook,market_type,selection,odds_decimal\n"
        (tmp_path / f"{name}.csv").write_text(f"{text}{name},book_{name},moneyline,home,2.0\n")

    async def check() -> list[str]:
        return [quote["event_id"] async for payload in oe.source("table", path=tmp_path) for quote in payload.quotes]

    assert asyncio.run(check()) == ["a", "b"]


def test_all_is_read_once_what_failed_meanwhile_is_back() -> None:
    """One part connects again while the last of the others is read; a source says once that all were."""
    reports = Reports(asyncio.Queue[Payload]().put)
    reports.failed("s", Failure("the stream ended"), "a")
    reports.caught_up("s")
    reports.changed.clear()
    reports.alive("s", "b")
    assert not reports.complete
    assert not reports.changed.is_set()
    reports.alive("s", "a")
    assert reports.complete
    assert reports.changed.is_set()


def test_a_refused_source_ends_with_an_error() -> None:
    async def check(url: str) -> None:
        async for _ in oe.source("the_odds_api", sport="nba", key=KEY, url=url):
            raise AssertionError("no payload")

    with served(failing(403)) as url, pytest.raises(oe.FetchError, match=r"403.*check the key"):
        asyncio.run(check(url))


def test_secrets_are_not_in_logs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        fetched(Provider(well), markets="h2h")
    assert "apiKey=***" in caplog.text
    assert KEY not in caplog.text


# ---- the command ----


def scanned(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["scan", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_scan_reads_sources_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The four lists over the games of several sources, and what each delivered."""
    mine, start = tmp_path / "mine.csv", iso(now() + timedelta(hours=3))
    mine.write_text(
        "sportsbook,event_id,sport,league,home_team,away_team,event_start_time,market_type,selection,odds_decimal\n"
        + "".join(
            f"corner shop,x,basketball,nba,Boston Celtics,Los Angeles Lakers,{start},moneyline,{team},2.6\n"
            for team in ("Boston Celtics", "Los Angeles Lakers")
        )
    )
    with served(Provider(well)) as url:
        words = ["--live", "the_odds_api", "--sport", "nba", "--set", f"the_odds_api.url={url}",
                 "--set", f"the_odds_api.key={KEY}", "--set", "the_odds_api.regions=us,eu", "--set",
                 "the_odds_api.timeout=5", "--format", "json"]  # fmt: skip
        status, out, err = scanned(capsys, *words)
        assert status == 0
        assert json.loads(out).keys() >= {"ev", "arbitrage", "low_hold", "middles"}
        assert "the_odds_api: 4 prices\n" in err
        assert json.loads(out)["rows_read"] == 4
    status, _, err = scanned(capsys, "--live", "table", "--set", f"table.path={mine}")
    assert (status, "table: 2 prices" in err) == (0, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--live", "nothing"], "'nothing' is not a kind of source; allowed: "),
        (["--live", "table", "--sample"], "give either --live or FILE, --sample and --columns, got both"),
        (["--live", "table", "--set", "other.path=x"], "SOURCE.NAME=VALUE with a source of --live, got 'other"),
        (["--live", "table", "--set", "path=x"], "--set takes SOURCE.NAME=VALUE"),
        (["--live", "table", "--odds-format", "american"], "--odds-format is of a FILE, got --live"),
        (["--sample", "--sport", "nfl"], "--sport is of sources, and needs --live"),
        (["--sample", "--set", "table.path=x"], "--set is of sources, and needs --live"),
        (["--live", "the_odds_api", "--sport", "nba", "--set", "the_odds_api.key=1", "--set",
          "the_odds_api.interval=a"],
         "interval must be a number of seconds above 0, got 'a'"),
        (["--live", "the_odds_api", "--sport", "nba", "--set", "the_odds_api.key=1", "--set",
          "the_odds_api.url=http://127.0.0.1:9", "--set", "the_odds_api.timeout=1"],
         "the_odds_api: 127.0.0.1 cannot be reached"),
    ],
)  # fmt: skip
def test_scan_says_what_is_wrong_with_sources(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = scanned(capsys, *words)
    assert status == 2
    assert why in err
