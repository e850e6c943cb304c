"""What all sources that are read in turns have in common, against a local server of each."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from support import odds_api_io, sportsgameodds
from support.local_servers import new_hub, prices, running, until
from support.matchbook import Matchbook
from support.novig import Novig, book
from support.novig import winner as novig_winner
from support.smarkets import Smarkets, quotes
from support.sx_bet import SxBet, winner

import oddsengine as oe
from oddsengine.plugins import SOURCES, registered
from oddsengine.sources import KINDS, create, read_feed, source_kind
from oddsengine.sources.failure import FetchError
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import PolledSettings, SettingsTable
from oddsengine.testing import SOURCE_CHECKS, SourceCase
from oddsengine.testing.local_servers import Answering, http, served
from oddsengine.testing.source_checks import bad_bodies_are_refused
from oddsengine.testing.source_server import SourceServer
from oddsengine_cli import main

KEY = "0123456789abcdef"
QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0, interval=0.05)


class Kind(NamedTuple):
    """A kind of source: its server, its settings, and the paths of its first list and of its prices."""

    serve: Callable[[], SourceServer]
    settings: dict[str, Any]
    first: str
    priced: str
    empty: Callable[[Any], None]  # ends all games of its server
    fresh: Callable[[Any], None]  # changes a price


def _closed(exchange: SxBet) -> None:
    exchange.markets = []


def _no_events(server: Any) -> None:
    server.events = []


def _quoted(exchange: Smarkets) -> None:
    exchange.quotes["c1"] |= {"offers": quotes([(4000, 10.0)])["offers"]}


def _priced(server: Any) -> None:
    text = json.dumps(server.events)
    for before, after in (("2.2,", "2.3,"), ('"-112"', '"-120"'), ("2.05,", "2.15,")):
        text = text.replace(before, after)
    server.events = json.loads(text)


def _moved(exchange: SxBet) -> None:
    exchange.books["0xw"]["data"]["outcomeTwo"][0]["percentageOdds"] = "50000000000000000000"


def _bid(exchange: Novig) -> None:
    exchange.books["w"] = book("w", [("0.45", 100)], [("0.5", 100)])


POLLED = {
    "sx_bet": Kind(
        lambda: SxBet(winner()), {"sport": "nfl"}, "/markets/active", "/orderbook-v3/snapshot", _closed,
        _moved,
    ),
    "smarkets": Kind(
        Smarkets, {"sport": "england_premier_league", "quotes_a_minute": 100_000}, "/events/", "/quotes/",
        _no_events, _quoted,
    ),
    "matchbook": Kind(
        Matchbook, {"sport": "england_premier_league"}, "/lookups/sports", "/events", _no_events, _priced
    ),
    "sportsgameodds": Kind(
        sportsgameodds.Aggregator, {"sport": "nfl", "key": KEY, "requests_a_minute": 100_000}, "/events/", "/events/",
        _no_events, _priced,
    ),
    "odds_api_io": Kind(
        odds_api_io.Aggregator,
        {"sport": "nba", "key": KEY, "books": ["Bet365"], "requests_an_hour": 1_000_000}, "/events", "/odds/multi",
        _no_events, _priced,
    ),
    "novig": Kind(
        lambda: Novig(novig_winner()), {"sport": "nfl"}, "/catalog/events", "/book", _no_events, _bid
    ),
}  # fmt: skip
every = pytest.mark.parametrize("name", POLLED)


def fetched(name: str, server: SourceServer, **more: Any) -> Any:
    with served(server) as url:
        return oe.fetch(name, **{"url": url, **QUICK} | POLLED[name].settings | more)


def source(name: str, url: str, **more: Any) -> Any:
    """The fetcher of a node."""
    given = {"kind": name, "url": url, **QUICK} | POLLED[name].settings | more
    given["sports"] = [given.pop("sport")] if "sport" in given else given["sports"]
    given["sports"] = [source_kind(name).leagues.get(sport, sport) for sport in given["sports"]]
    env = {"key_env": given.pop("key", "")}
    if env["key_env"]:
        given["key_env"] = "KEY"
    feed = read_feed(SettingsTable("test", f"feeds.{name}", given, {}, set()), name)
    return create(feed, env, Secrets())


def test_all_polled_kinds_are_here() -> None:
    names = [*KINDS, *(plugin.name for plugin in registered(SOURCES) if plugin.is_ours)]
    assert set(POLLED) == {name for name in names if issubclass(source_kind(name).settings, PolledSettings)}


def case(name: str, *, bad: str = "") -> SourceCase:
    """A kind with the settings of a usual feed; answers to paths that end like this are bad."""
    kind = POLLED[name]
    usual = {key: value for key, value in kind.settings.items() if key in ("sport", "key", "books")}
    return SourceCase(name, kind.serve, kind.fresh, kind.empty, usual, priced=bad or kind.priced)


@every
@pytest.mark.parametrize("check", SOURCE_CHECKS)
def test_it_passes_the_checks_of_sources(name: str, check: Callable[[SourceCase], None]) -> None:
    check(case(name))


@every
def test_a_list_that_cannot_be_read_is_refused(name: str) -> None:
    bad_bodies_are_refused(case(name, bad=POLLED[name].first))


async def busy(answering: Answering) -> None:
    await answering.answer({"error": "too many requests"}, 429)


async def cut(answering: Answering) -> None:
    await answering.answer({"events": [{"id": "1", "name": "a longer body than this"}]}, cut=20)


def answering_with(body: Any, status: int = 200) -> Callable[[Answering], Any]:
    async def answer(answering: Answering) -> None:
        await answering.answer(body, status)

    return answer


@every
@pytest.mark.parametrize("which", ["first", "priced"])
def test_too_many_requests_are_repeated_later_and_nothing_is_read_twice(name: str, which: str) -> None:
    server = POLLED[name].serve()
    path = getattr(POLLED[name], which)
    spoiled = server.spoil(path, busy, busy, busy)
    assert fetched(name, server).height >= 2
    assert len(spoiled) == 3
    others = [f"{one.path} {one.query}" for _, one in server.asked if not one.path.endswith(path)]
    assert len(others) == len(set(others))


@every
@pytest.mark.parametrize("which", ["first", "priced"])
def test_a_truncated_answer_is_read_again(name: str, which: str) -> None:
    server = POLLED[name].serve()
    spoiled = server.spoil(getattr(POLLED[name], which), cut)
    assert fetched(name, server).height >= 2
    assert spoiled


@every
@pytest.mark.parametrize(("status", "kind"), [(401, "refused"), (403, "refused"), (500, "failed")])
def test_an_error_of_the_server_is_said(name: str, status: int, kind: str) -> None:
    server = POLLED[name].serve()
    server.spoil(POLLED[name].first, *[answering_with({"error": "no"}, status)] * 1000)
    with pytest.raises(FetchError, match=f"status {status}") as error, served(server) as url:
        # A refusal ends it at once; a failure is tried again until then.
        oe.fetch(name, **{"url": url, **QUICK} | POLLED[name].settings | {"timeout": 1.0 if status == 500 else 10.0})
    assert error.value.kind == kind
    advice = "check the key" if "key_env" in source_kind(name).settings.__struct_fields__ else "needs"
    assert (advice in str(error.value)) == (status != 500)


@every
def test_polled_prices_follow_the_source(name: str) -> None:
    kind = POLLED[name]
    server = kind.serve()

    async def check() -> None:
        hub = new_hub()
        async with http(server) as url, running(hub, source(name, url)):
            await until(lambda: prices(hub), "prices")
            before = prices(hub)
            kind.fresh(server)
            await until(lambda: prices(hub) not in ({}, before), "another price")
            kind.empty(server)
            await until(lambda: not prices(hub), "the end of the game")
            assert hub.statuses()[0].status == "ok"

    asyncio.run(check())


def test_a_turn_that_takes_long_is_not_late() -> None:
    """Where one takes longer than the interval, the next one has as long."""
    server = POLLED["sx_bet"].serve()
    found: set[str] = set()

    async def check() -> None:
        hub = new_hub()
        given = {"rate": 2.0, "timeout": 0.2, "interval": 0.01}  # four requests a turn, the first two at once
        async with http(server) as url, running(hub, source("sx_bet", url, **given)):
            await until(lambda: hub.statuses()[0].status == "ok", "a first turn")
            first = len(server.asked)

            def passed() -> bool:
                found.add(hub.statuses()[0].status)
                return len(server.asked) >= first + 5

            await until(passed, "a second turn")

    asyncio.run(check())
    assert found == {"ok"}


@every
def test_a_failure_removes_nothing(name: str) -> None:
    kind = POLLED[name]
    server = kind.serve()

    async def check() -> None:
        hub = new_hub()
        async with http(server) as url, running(hub, source(name, url)):
            await until(lambda: prices(hub), "prices")
            before = prices(hub)
            server.spoil(kind.priced, *[answering_with({"error": "no"}, 500)] * 1000)
            await until(lambda: "status 500" in hub.statuses()[0].reason, "the reason")
            assert prices(hub) == before
            server.special = None
            await until(lambda: hub.statuses()[0].status == "ok", "the end of the failure")

    asyncio.run(check())


@every
def test_the_command_scans_it(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = POLLED[name].settings | QUICK
    for variable, secret in (("key_env", settings.pop("key", "")),):
        if secret:
            monkeypatch.setenv(source_kind(name).variables[variable], secret)
    sport = settings.pop("sport")
    with served(POLLED[name].serve()) as url:
        texts = {key: ",".join(value) if isinstance(value, list) else value for key, value in settings.items()}
        given = [f"--set={name}.{key}={text}" for key, text in (texts | {"url": url}).items()]
        assert main(["scan", "--live", name, "--sport", sport, *given]) == 0
    assert name in capsys.readouterr().err
