"""The fetcher of The Odds API against a local server, well and badly behaved."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from support.local_servers import game, new_hub, prices, running, until

import oddsengine as oe
from oddsengine.feeds import Game, Payload
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources.failure import Failure
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import TheOddsApiSettings
from oddsengine.sources.the_odds_api_client import TheOddsApiSource
from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.local_servers import Answering, Request, http, now
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.feeds.quarantine import PayloadQuarantine

KEY = "0123456789abcdefsecret"
HEADERS = {"x-requests-remaining": "1000000000", "x-requests-used": "7", "x-requests-last": "1"}
Odds = Callable[[Request, Answering, int], Awaitable[None]]


def declared(url: str, **more: Any) -> TheOddsApiSettings:
    given: dict[str, Any] = dict(
        name="main", kind="the_odds_api", key_env="KEY", sports=("basketball_nba",), markets=("h2h",), url=url,
        interval=0.02, timeout=0.3, backoff=0.01, backoff_cap=0.04, down_after=0.25,
    )  # fmt: skip
    return TheOddsApiSettings(**{**given, **more})


class Provider:
    """A local provider: lists of events are always well, what it answers about odds is for the test to say."""

    def __init__(self, odds: Odds, headers: Mapping[str, str] = HEADERS) -> None:
        self.odds, self.headers = odds, headers
        self.asked: list[Request] = []
        self.check = ContractCheck("the_odds_api")

    async def __call__(self, request: Request, answering: Answering) -> None:
        if refusal := self.check.refused(*request, asyncio.get_running_loop().time()):
            await answering.answer({"message": refusal.reason}, refusal.status)
            return
        if request.path.endswith("/events"):
            coming = [{"id": "g1", "commence_time": game()["commence_time"]}]
            await answering.answer(coming, headers=self.headers)
            return
        self.asked.append(request)
        await self.odds(request, answering, len(self.asked))


async def well(_: Request, answering: Answering, __: int) -> None:
    await answering.answer([game()], headers=HEADERS)


def source(feed: TheOddsApiSettings, secrets: Secrets | None = None) -> TheOddsApiSource:
    return TheOddsApiSource(feed, {"key_env": KEY}, secrets or Secrets([KEY]))


def status(hub: Hub) -> str:
    (found,) = hub.statuses()
    return found.status


def test_prices_arrive_and_leave() -> None:
    """What is listed is on the board, under our event id; what is listed no more is gone, and nothing else is."""

    listed = game()

    async def odds(_: Request, answering: Answering, __: int) -> None:
        await answering.answer([listed], headers=HEADERS)

    async def check() -> None:
        nonlocal listed
        provider, hub = Provider(odds), new_hub()
        async with http(provider) as url, running(hub, source(declared(url))):
            await until(lambda: len(prices(hub)) == 4, "four prices")
            assert hub.engine.table()["event_id"].unique().to_list() != ["g1"]
            listed = game(prices=(1.75, 2.2), books=("fanduel",))
            await until(lambda: len(prices(hub)) == 2, "two prices")
            assert prices(hub) == {("fanduel", "Boston Celtics"): 1.75, ("fanduel", "Los Angeles Lakers"): 2.2}
            (found,) = hub.statuses()
            assert (found.status, found.credits_left, found.credits_used) == ("ok", 1_000_000_000, 7)
            assert found.books == ("draftkings", "fanduel")
            query = provider.asked[0].query
            assert (query["markets"], query["regions"], query["oddsFormat"]) == (["h2h"], ["us"], ["american"])

    asyncio.run(check())


@pytest.mark.parametrize(
    ("of", "asked", "got"),
    [
        ({}, "american", {-20000.0, -105.0, 5000.0}),
        ({"regions": ("us", "us2", "us_dfs", "us_ex")}, "american", {-20000.0, -105.0, 5000.0}),
        ({"books": ("draftkings", "fanduel")}, "american", {-20000.0, -105.0, 5000.0}),
        ({"books": ("draftkings", "pinnacle")}, "decimal", {-105.26, 5000.0}),
        ({"regions": ("us", "uk")}, "decimal", {-105.26, 5000.0}),
        ({"regions": ("uk",), "odds_format": "american"}, "american", {-20000.0, -105.0, 5000.0}),
        ({"odds_format": "decimal"}, "decimal", {-105.26, 5000.0}),
    ],
    ids=str,
)
def test_american_prices_are_asked_for_where_books_have_them(of: dict[str, Any], asked: str, got: set[float]) -> None:
    """A source that rounds decimal odds to two places turns -20000 into 1, and -105 into -105.26."""

    async def odds(request: Request, answering: Answering, __: int) -> None:
        def rounded(american: float) -> float:
            if request.query["oddsFormat"] == ["american"]:
                return american
            return round(float(oe.american_to_decimal(american)), 2)

        listed = game(prices=(rounded(-20000), rounded(5000)), books=("fanduel",))
        more = game("g2", "Miami Heat", "Chicago Bulls", (rounded(-105), rounded(-105)), ("fanduel",))
        await answering.answer([listed, more], headers=HEADERS)

    async def check() -> None:
        provider, hub = Provider(odds), new_hub()
        async with http(provider) as url, running(hub, source(declared(url, **of))):
            await until(lambda: len(prices(hub)) >= 3, "prices")
            assert {round(price, 2) for price in hub.engine.table()["odds_american"]} == got
            assert provider.asked[0].query["oddsFormat"] == [asked]

    asyncio.run(check())


@pytest.mark.parametrize("details", [True, False])
def test_links_ids_and_limits_are_asked_for(details: bool) -> None:
    """A price leads to the closest page that the source gives, and has the limit of its bet."""
    at = "https://sportsbook.fanduel.com/"

    async def odds(_: Request, answering: Answering, __: int) -> None:
        listed = game(books=("fanduel",))
        (maker,) = listed["bookmakers"]
        (offer,) = maker["markets"]
        maker["link"], offer["link"] = f"{at}game", f"{at}market"
        offer["outcomes"][0] |= {"link": f"{at}bet", "sid": "7", "bet_limit": 250}
        await answering.answer([listed], headers=HEADERS)

    async def check() -> None:
        provider, hub = Provider(odds), new_hub()
        async with http(provider) as url, running(hub, source(declared(url, details=details))):
            await until(lambda: len(prices(hub)) == 2, "two prices")
            board = hub.engine.table().select("deep_link", "selection_id", "max_bet")
            assert set(board.rows()) == {(f"{at}bet", "7", 250.0), (f"{at}market", None, None)}
            query = next(request.query for request in provider.asked if request.path.endswith("/odds"))
            names = ("includeLinks", "includeSids", "includeBetLimits")
            assert [query.get(name) for name in names] == [["true"] if details else None] * 3

    asyncio.run(check())


async def _broken(_: Request, answering: Answering, __: int) -> None:
    await answering.answer({"message": "boom"}, 500)


async def _cut(_: Request, answering: Answering, __: int) -> None:
    await answering.answer([game()], cut=40)


async def _slow(_: Request, answering: Answering, __: int) -> None:
    await answering.answer([game()], cut=40)
    await asyncio.sleep(30)


async def _half_json(_: Request, answering: Answering, __: int) -> None:
    await answering.answer(b'[{"id": "g1", "sport_ke')


async def _changed(_: Request, answering: Answering, __: int) -> None:
    await answering.answer({"version": 5, "events": [game()]})


async def _refused(_: Request, answering: Answering, __: int) -> None:
    await answering.answer({"message": f"key {KEY} is not valid", "error_code": "INVALID_KEY"}, 401)


async def _hangs_up(_: Request, answering: Answering, __: int) -> None:
    answering.writer.close()


FAULTS: dict[str, tuple[Odds, str, bool]] = {  # what it does, what the status says, whether the body is kept
    "5xx": (_broken, "status 500", False),
    "cut": (_cut, "connection failed", False),
    "slow": (_slow, "no complete response within 0.3 s", False),
    "half": (_half_json, "invalid payload", True),
    "changed": (_changed, "invalid payload", True),
    "refused": (_refused, "status 401", False),
    "hangs_up": (_hangs_up, "connection failed", False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_failure_is_normal(fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A source that fails is degraded, then down, per book too; its prices stay; once it is well again it is ok."""
    bad, reason, is_kept = FAULTS[fault]
    caplog.set_level(logging.DEBUG)

    async def check() -> None:
        secrets = Secrets([KEY])
        kept = PayloadQuarantine(tmp_path / "kept", 3, 100_000, secrets)
        provider, clock = Provider(well), [now()]  # which stands still: a busy machine makes no source silent
        hub = Hub(Writer(Engine()), Matcher(), clock=lambda: clock[0], payloads=kept, ages=False)
        with secrets.out_of_logs():
            async with http(provider) as url, running(hub, source(declared(url), secrets)):
                await until(lambda: len(prices(hub)) == 4, "prices")
                provider.odds = bad
                await until(lambda: reason in hub.statuses()[0].reason, "failure")
                assert status(hub) == ("down" if fault == "refused" else "degraded")
                clock[0] += timedelta(seconds=1)
                (found,) = hub.statuses()
                assert (found.status, reason in found.reason, KEY in found.reason) == ("down", True, False)
                assert {one.status for one in hub.books()} == {"down"}
                assert [one.book for one in hub.books() if one.status != "ok"] == ["draftkings", "fanduel"]
                assert len(prices(hub)) == 4  # a failure removes nothing
                provider.odds = well
                await until(lambda: status(hub) == "ok", "recovery")
                assert {one.status for one in hub.books()} == {"ok"}

    asyncio.run(check())
    held = sorted((tmp_path / "kept").glob("*.payload"))
    assert bool(held) == is_kept
    assert len(held) <= 3
    assert "httpx2" in {record.name for record in caplog.records}
    assert KEY not in caplog.text


def test_too_many_requests_wait_as_they_are_told() -> None:
    times: list[float] = []

    async def odds(_: Request, answering: Answering, count: int) -> None:
        times.append(asyncio.get_running_loop().time())
        if count == 1:
            await answering.answer({"error_code": "EXCEEDED_FREQ_LIMIT"}, 429, {"retry-after": "0.4"})
        else:
            await answering.answer([game()], headers=HEADERS)

    async def check() -> None:
        hub = new_hub()
        async with http(Provider(odds)) as url, running(hub, source(declared(url))):
            await until(lambda: len(prices(hub)) == 4, "prices")

    asyncio.run(check())
    assert times[1] - times[0] >= 0.4


def test_a_silent_source_is_not_ok() -> None:
    """Nothing fails, yet nothing comes: late, then down."""

    async def check() -> None:
        hub = new_hub()
        feed = declared("http://127.0.0.1:1", down_after=2.0)
        hub.add(feed)
        hub.expect("main", "", 0.5)
        event = Game("x", "basketball", "nba", "A", "B", now() + timedelta(hours=1))
        await hub.deliver("main", Payload([event], [_quote(event)]))
        clock = now()
        track = hub.tracks["main"]
        found = [track.assess(clock + timedelta(seconds=late))[0] for late in (0, 1.6, 4)]
        assert found == ["ok", "degraded", "down"]
        assert track.book("a", clock + timedelta(seconds=4))[0] == "down"
        await hub.close()

    asyncio.run(check())


def _quote(event: Game, odds: float = 1.9, book: str = "a", pick: str = "A") -> dict[str, Any]:
    return {
        "id": f"{event.id}/{book}/{pick}", "sportsbook": book, "event_id": event.id, "sport": event.sport,
        "league": event.league, "home_team": event.home, "away_team": event.away, "market_type": "moneyline",
        "selection": pick, "odds_decimal": odds, "event_start_time": event.start,
    }  # fmt: skip


def test_a_payload_is_applied_whole_or_not_at_all() -> None:
    async def check() -> None:
        hub = new_hub()
        hub.add(declared("http://127.0.0.1:1"))
        event = Game("x", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers", now() + timedelta(hours=1))
        await hub.deliver("main", Payload([event], [_quote(event)]))
        before, number = hub.engine.state_hash(), hub.engine.number
        with pytest.raises(Failure, match="the board rejected a payload"):
            await hub.deliver("main", Payload([event], [_quote(event, 2.5)], complete=[(None, "x")]))  # type: ignore[list-item]
        assert (hub.engine.state_hash(), hub.engine.number) == (before, number)
        await hub.close()

    asyncio.run(check())


def test_removal_by_the_source_s_own_id() -> None:
    """A source names its prices; the board finds them, and an id that moved to another line stays."""

    async def check() -> None:
        hub = new_hub()
        hub.add(declared("http://127.0.0.1:1"))
        event = Game("x", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers", now() + timedelta(hours=1))
        both = [_quote(event, 1.9, pick="Boston Celtics"), _quote(event, 2.0, pick="Los Angeles Lakers")]
        await hub.deliver("main", Payload([event], both))
        await hub.deliver("main", Payload(removed=["x/a/Boston Celtics", "unheard of"]))
        assert list(prices(hub)) == [("a", "Los Angeles Lakers")]
        moved = {**both[1], "market_type": "point_spread", "line": 4.5}
        await hub.deliver("main", Payload(quotes=[moved], removed=[moved["id"]]))
        assert hub.engine.table().select("market_type", "line").rows() == [("point_spread", 4.5)]
        await hub.deliver("main", Payload(removed=[moved["id"]]))
        assert prices(hub) == {}
        await hub.close()

    asyncio.run(check())


def test_players_of_props_are_one_person_however_they_are_spelled() -> None:
    """Two books' sides of one player's points are one market; an initial that fits two brothers is nobody's."""

    async def check() -> None:
        hub = new_hub()
        hub.add(declared("http://127.0.0.1:1"))
        event = Game("x", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers", now() + timedelta(hours=1))
        line = {"market_type": "player_points", "line": 22.5, "odds_decimal": 2.1}
        quotes = [
            {**_quote(event, book=book, pick=pick), **line, "player_name": name}
            for book, pick, name in (
                ("a", "Over", "Jaylen Brown"), ("b", "Under", "J. Brown"), ("c", "Over", "Marcus Morris"),
                ("c", "Over", "Markieff Morris"), ("d", "Under", "M. Morris"),
            )
        ]  # fmt: skip
        await hub.deliver("main", Payload([event], quotes))
        names = dict(hub.engine.table().select("sportsbook", "player_name").filter(pl.col("sportsbook") != "c").rows())
        assert names == {"a": "Jaylen Brown", "b": "Jaylen Brown", "d": "M. Morris"}
        (arb,) = hub.engine.view().opportunities().arbitrage.iter_rows(named=True)
        assert [leg["sportsbook"] for leg in arb["legs"]] == ["a", "b"]
        await hub.close()

    asyncio.run(check())


def test_ids_of_prices_that_change_hands() -> None:
    """An id that a price no longer has says nothing of it; one that is quoted in the same payload is not gone."""

    async def check() -> None:
        hub = new_hub()
        hub.add(declared("http://127.0.0.1:1"))
        event = Game("x", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers", now() + timedelta(hours=1))
        quote = _quote(event, pick="Boston Celtics")
        await hub.deliver("main", Payload([event], [quote]))
        await hub.deliver("main", Payload([event], [quote | {"id": "another"}]))
        await hub.deliver("main", Payload(removed=[quote["id"]]))
        assert list(prices(hub)) == [("a", "Boston Celtics")]
        await hub.deliver("main", Payload(quotes=[quote | {"id": "another"}], removed=["another"]))
        assert list(prices(hub)) == [("a", "Boston Celtics")]
        assert hub.engine.removed().height == 0
        await hub.deliver("main", Payload(removed=["another"]))
        assert hub.engine.removed().height == 1
        await hub.close()

    asyncio.run(check())


def test_an_id_that_means_another_game_now() -> None:
    """What was quoted under the event that it was before leaves it."""

    async def check() -> None:
        hub = new_hub()
        hub.add(declared("http://127.0.0.1:1"))
        start = now() + timedelta(hours=1)
        for home, away in (("Boston Celtics", "Los Angeles Lakers"), ("Miami Heat", "Chicago Bulls")):
            event = Game("x", "basketball", "nba", home, away, start)
            await hub.deliver("main", Payload([event], [_quote(event, pick=home)]))
            assert list(prices(hub)) == [("a", home)]
        await hub.close()

    asyncio.run(check())


def test_credits_that_are_used_up_are_said_and_not_overdrawn() -> None:
    async def odds(_: Request, answering: Answering, count: int) -> None:
        await answering.answer([game()], headers={"x-requests-remaining": str(51 - count)})

    async def check() -> None:
        provider, hub = Provider(odds, {"x-requests-remaining": "51"}), new_hub()
        async with http(provider) as url:
            feed = declared(url, credits_kept=50, interval=0.01, props=("player_points",))
            async with running(hub, source(feed)):
                await until(lambda: status(hub) in ("degraded", "down"), "the end of the credits")
                await asyncio.sleep(0.1)
                (found,) = hub.statuses()
                assert "no credits to spend: 50 left" in found.reason
                assert len(provider.asked) == 1

    asyncio.run(check())


def test_cost_is_said_before_a_credit_is_spent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "oddsengine.feeds")
    said: list[str] = []

    async def odds(_: Request, answering: Answering, __: int) -> None:
        said.append(caplog.text)
        await answering.answer([game()], headers=HEADERS)

    async def check() -> None:
        hub = new_hub()
        async with http(Provider(odds)) as url, running(hub, source(declared(url, interval=30.0))):
            await until(lambda: said, "a request")

    asyncio.run(check())
    assert "120 credits an hour now" in said[0]


def test_props_are_asked_for_event_by_event() -> None:
    async def check() -> None:
        provider, hub = Provider(well), new_hub()
        feed = declared("", props=("player_points", "player_assists"), books=("draftkings",), interval=30.0)
        async with http(provider) as url, running(hub, source(msgspec.structs.replace(feed, url=url))):
            await until(lambda: len(provider.asked) == 2, "two requests")
        paths = {request.path: request.query for request in provider.asked}
        assert paths["/v4/sports/basketball_nba/events/g1/odds"]["markets"] == ["player_points,player_assists"]
        assert paths["/v4/sports/basketball_nba/odds"]["bookmakers"] == ["draftkings"]

    asyncio.run(check())


def test_a_person_s_override_counts_at_once(tmp_path: Path) -> None:
    """A game that is never to be used leaves the board without its source saying anything new."""
    decided = tmp_path / "overrides.toml"

    async def check() -> None:
        hub = Hub(Writer(Engine()), Matcher(), clock=now, overrides=decided)
        async with http(Provider(well)) as url:
            feed = declared(url, interval=3600.0)
            async with running(hub, source(feed), tick=0.01):
                await until(lambda: len(prices(hub)) == 4, "prices")
                decided.write_text('[main]\n"g1" = "never"\n')
                await until(lambda: prices(hub) == {}, "an empty board")
                decided.write_text("[main")  # no TOML: what was decided still counts
                await asyncio.sleep(0.05)
                assert prices(hub) == {}

    asyncio.run(check())
