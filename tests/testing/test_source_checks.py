"""The checks of sources: our own sources pass them, and each fault that is planted in one of ours is caught."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pytest
from support.odds_api_io import Aggregator, event

from oddsengine.feeds import FeedError, Payload, venue_contracts
from oddsengine.feeds.venue_contracts import read as read_contract
from oddsengine.sources import Failure, Receiver, Secrets, SourceKind, odds_api_io_client
from oddsengine.sources.odds_api_io_client import OddsApiIoSettings
from oddsengine.sources.polling import PolledSource
from oddsengine.testing import SOURCE_CHECKS, Request, SourceCase, SourceServer, served, source_case
from oddsengine.testing import source_checks as checks

KEY = "0123456789abcdef"
KIND = odds_api_io_client.KIND
Rows = list[dict[str, Any]]


def _change(server: Aggregator) -> None:
    server.events = json.loads(json.dumps(server.events).replace("2.100", "2.200"))


def _remove(server: Aggregator) -> None:
    (one,) = server.events
    server.events = [one | {"bookmakers": {"Bet365": one["bookmakers"]["Bet365"][1:]}}]


def case_of(kind: SourceKind | str, events: int = 1) -> SourceCase:
    settings = {"sport": "nba", "key": KEY, "books": ["Bet365"]}
    serve = lambda: Aggregator(*(event(ident=number) for number in range(events)))  # noqa: E731
    return SourceCase(kind, serve, _change, _remove, settings, priced="/odds/multi")


@pytest.mark.parametrize("check", SOURCE_CHECKS)
def test_one_of_ours_passes(check: Callable[[SourceCase], None]) -> None:
    check(case_of("odds_api_io"))


# ---- planted faults ----


class Through:
    """A receiver of which a fault changes some reports."""

    def __init__(self, receiver: Receiver, instead: Mapping[str, Callable[..., Any]]) -> None:
        self._receiver, self._instead = receiver, instead

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._receiver, name)
        instead = self._instead.get(name)
        return own if instead is None else lambda *words, **named: instead(own, *words, **named)


def reporting(**instead: Callable[..., Any]) -> SourceKind:
    """The source with other reports; each gets the good one, and what that is called with."""
    return running(lambda run, receiver: run(Through(receiver, instead)))


def running(instead: Callable[[Any, Receiver], Any]) -> SourceKind:
    """The source with another `run`, which gets the good one."""

    def fetcher(feed: OddsApiIoSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
        source = odds_api_io_client.source(feed, env, secrets)
        good = source.run
        source.run = lambda receiver: instead(good, receiver)  # type: ignore[method-assign]
        return source

    return KIND._replace(fetcher=fetcher)


def delivering(change: Callable[[Payload], Payload]) -> SourceKind:
    return reporting(deliver=lambda good, name, payload, part="": good(name, change(payload), part))


def quoting(change: Callable[[dict[str, Any]], dict[str, Any]]) -> SourceKind:
    return delivering(lambda payload: payload._replace(quotes=[row | change(row) for row in payload.quotes]))


def described(**fields: Any) -> SourceKind:
    """The source with other fields of its games."""

    def change(payload: Payload) -> Payload:
        games = [game._replace(**fields) for game in payload.games]
        by_id = {game.id: game.fields for game in games}
        return payload._replace(games=games, quotes=[row | by_id[row["event_id"]] for row in payload.quotes])

    return delivering(change)


def set_to(**settings: Any) -> SourceKind:
    """The source with other settings than its feed has."""
    return KIND._replace(
        fetcher=lambda feed, env, secrets: odds_api_io_client.source(
            msgspec.structs.replace(feed, **settings), env, secrets
        )
    )


def reading(change: Callable[[Any], None]) -> SourceKind:
    """The source with a change of what reads an answer."""

    def fetcher(feed: OddsApiIoSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
        aggregator = odds_api_io_client._Aggregator(feed, env["key_env"])
        change(aggregator)
        return PolledSource(feed, secrets, aggregator.read)

    return KIND._replace(fetcher=fetcher)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What blocks is found soon, and goes on at the end."""
    monkeypatch.setattr(source_case, "STANDS_S", 1.0)
    yield
    _go_on.set()
    for thread in threading.enumerate():
        if thread.name == "source":
            thread.join(10.0)
    _go_on.clear()


def _on_error(answer: Callable[[Any, str], Payload]) -> SourceKind:
    """The source with a reader that does something else where a body is not valid."""

    def change(aggregator: Any) -> None:
        good = aggregator._reader.read

        def read(part: str, bodies: Any) -> Payload:
            try:
                return good(part, bodies)  # type: ignore[no-any-return]
            except FeedError:
                return answer(good, part)

        aggregator._reader.read = read

    return reading(change)


def _key_error(_: Any, part: str) -> Payload:
    raise KeyError(part)


def _impatient(aggregator: Any) -> None:
    aggregator._window.pause = lambda _: None


def _first_only() -> Callable[[Payload], Payload]:
    seen: list[Payload] = []

    def change(payload: Payload) -> Payload:
        seen.append(payload)
        fresh = {row["id"]: row["last_seen_at"] for row in payload.quotes}
        return seen[0]._replace(quotes=[row | {"last_seen_at": fresh[row["id"]]} for row in seen[0].quotes])

    return change


async def _beating(run: Any, receiver: Receiver) -> None:
    async def beat() -> None:
        while True:
            receiver.alive("mine", "basketball/usa-nba")
            await asyncio.sleep(100.0)

    async with asyncio.TaskGroup() as group:
        group.create_task(beat())
        await run(receiver)


async def _slow_to_stop(run: Any, receiver: Receiver) -> None:
    try:
        await run(receiver)
    finally:
        await asyncio.sleep(60.0)


async def _leaves_a_task(run: Any, receiver: Receiver) -> None:
    _left.append(asyncio.create_task(asyncio.sleep(1e5)))
    await run(receiver)


class Panic(BaseException):
    """As polars raises one."""


async def _panics(_: Any, __: Receiver) -> None:
    raise Panic("no memory")


async def _exits(_: Any, __: Receiver) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(lambda: None))
        group.create_task(_exit())


async def _exit() -> None:
    raise SystemExit(3)


_go_on = threading.Event()


async def _blocks(_: Any, __: Receiver) -> None:
    _go_on.wait(60.0)


async def _works_in_a_thread(_: Any, __: Receiver) -> None:
    await asyncio.to_thread(_go_on.wait, 60.0)


_left: list[Any] = []  # tasks that nobody refers to may be gone


def _prints(good: Callable[..., Any], name: str, place: str, body: bytes) -> Any:
    print(f"got {place} with the key {KEY}")
    return good(name, place, body)


class Fault(NamedTuple):
    """What is wrong with the source, the check that has to find it, and what that says."""

    kind: Callable[[], SourceKind]
    check: Callable[[SourceCase], None]
    says: str
    events: int = 1


def _counted() -> SourceKind:
    numbers = count()
    return quoting(lambda _: {"id": f"price-{next(numbers)}"})


def _moving() -> SourceKind:
    lines = count(-100, -1)
    return quoting(lambda row: {"line": float(next(lines))} if row["line"] == -3.5 else {})


FAULTS = {
    "a price of 0.9": Fault(
        lambda: quoting(lambda _: {"odds_decimal": 0.9}), checks.prices_are_valid, "a finite number above 1, got 0.9"
    ),
    "one id for all prices": Fault(
        lambda: quoting(lambda _: {"id": "p"}), checks.prices_are_valid, "7 ids are those of two prices"
    ),
    "prices of games that it does not describe": Fault(
        lambda: delivering(lambda payload: payload._replace(games=[])), checks.prices_are_valid, "among the games"
    ),
    "games of 1970": Fault(
        lambda: described(start=datetime(1970, 1, 2, tzinfo=UTC)), checks.prices_are_accepted,
        "must accept its prices, of 8 it rejects 8 started_not_live (marked pre-match after the event's start)",
    ),
    "markets that the catalog does not have": Fault(
        lambda: quoting(lambda _: {"market_type": "winner of it"}), checks.prices_are_accepted,
        "8 unmapped (the market type does not settle in the same way everywhere); its markets are winner of it",
    ),
    "games without a start": Fault(
        lambda: described(start=None), checks.prices_are_accepted, "1 of 1 games are kept apart: "
    ),
    "a league of its own": Fault(
        lambda: described(league="NBA (mine)"), checks.prices_are_accepted,
        "the catalog does not know the league 'NBA (mine)' of basketball: prices of other sources would never meet",
    ),
    "a sport of its own": Fault(
        lambda: described(sport="hoops"), checks.prices_are_accepted, "the catalog does not know the sport 'hoops'"
    ),
    "teams of its own": Fault(
        lambda: described(home="BOS-1"), checks.prices_are_accepted, "the catalog does not know the team 'BOS-1' of nba"
    ),
    "times without a zone": Fault(
        lambda: quoting(lambda row: {"last_seen_at": row["last_seen_at"].replace(tzinfo=None)}),
        checks.times_are_valid, "last_seen_at must be a time with its zone",
    ),
    "a time of the future": Fault(
        lambda: quoting(lambda _: {"odds_changed_at": datetime(2090, 1, 1, tzinfo=UTC)}),
        checks.times_are_valid, "odds_changed_at must not be in the future",
    ),
    "prices that are never seen again": Fault(
        lambda: quoting(lambda _: {"last_seen_at": datetime(2026, 1, 1, tzinfo=UTC)}),
        checks.times_are_valid, "last_seen_at must move on",
    ),
    "ids that are counted": Fault(_counted, checks.ids_are_stable, "the id of a price must stay, 'price-0' becomes"),
    "an id that moves to another line": Fault(
        _moving, checks.ids_are_stable, "an id that moves to another price must be removed too"
    ),
    "odds of the first turn": Fault(
        lambda: delivering(_first_only()), checks.changed_prices_are_delivered, "it must deliver a changed price"
    ),
    "no removal": Fault(
        lambda: delivering(lambda payload: payload._replace(removed=[])),
        checks.removed_prices_are_removed, "must be among `removed`",
    ),
    "no promise": Fault(
        lambda: reporting(expect=lambda *_, **__: None), checks.silence_is_reported, "no expect() of part"
    ),
    "a promise that is not kept": Fault(
        lambda: reporting(expect=lambda good, name, part, _, **__: good(name, part, 10.0)),
        checks.silence_is_reported, "promised to report within 10 s",
    ),
    "a heartbeat of its own": Fault(
        lambda: running(_beating), checks.silence_is_reported, "must not report alive() or deliver"
    ),
    "more than its rate": Fault(
        lambda: set_to(rate=1000.0), checks.limits_are_kept, "the rate is 1 a second", 25
    ),
    "more than its plan": Fault(
        lambda: set_to(requests_an_hour=10_000), checks.limits_are_kept, "more than 100 requests in 3600 s"
    ),
    "no regard to Retry-After": Fault(
        lambda: reading(_impatient), checks.waits_are_kept, "asked to wait 40 s, but a request came after"
    ),
    "a key that is printed": Fault(
        lambda: reporting(received=_prints), checks.secrets_are_masked, "reported: got GET /events with the key ***"
    ),
    "an error of its own for a bad body": Fault(
        lambda: _on_error(_key_error), checks.bad_bodies_are_refused,
        "the reader must raise FeedError, got: the kind of source 'mine'"
    ),
    "a bad body as an empty one": Fault(
        lambda: _on_error(lambda good, part: good(part, [])), checks.bad_bodies_are_refused,
        "HTML: it must be refused, it was delivered as if it were good",
    ),
    "a bad body that is not saved": Fault(
        lambda: reporting(unreadable=lambda good, name, *_: good(name, b"", "")),
        checks.bad_bodies_are_refused, "HTML: the body must be saved",
    ),
    "a failure without a reason": Fault(
        lambda: reporting(failed=lambda good, name, _, part="": good(name, Failure("bad"), part)),
        checks.bad_bodies_are_refused, "HTML: the failure must say what is wrong, got: 'bad'",
    ),
    "a panic": Fault(lambda: running(_panics), checks.prices_are_valid, "its run() raises Panic: no memory"),
    "an exit": Fault(lambda: running(_exits), checks.prices_are_valid, "it must not end its thread: SystemExit: 3"),
    "a minute until it stops": Fault(
        lambda: running(_slow_to_stop), checks.it_stops_when_cancelled, "goes on for over 5 s"
    ),
    "a task that is left": Fault(
        lambda: running(_leaves_a_task), checks.it_stops_when_cancelled,
        "must cancel its tasks when it is cancelled, sleep runs on"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    fault = FAULTS[name]
    with pytest.raises(AssertionError) as error:
        fault.check(case_of(fault.kind(), fault.events))
    assert fault.says in str(error.value)


@pytest.mark.parametrize(
    ("run", "where"), [(_blocks, "in threading.py:"), (_works_in_a_thread, "for a thread of its own")]
)
def test_a_source_that_blocks_fails_within_a_bound(run: Any, where: str, impatient: None) -> None:
    """A second: shorter pauses are those of a busy machine."""
    with pytest.raises(AssertionError) as error:
        checks.prices_are_valid(case_of(running(run)))
    assert str(error.value).startswith(f"it must await what it waits for: its event loop stands still, {where}")


@pytest.mark.parametrize("body", [b'{"name": "\xff"}', b"[" * 50_000])
def test_a_contract_refuses_a_body_that_is_no_json(body: bytes) -> None:
    contract = read_contract("mine", CONTRACT)
    (refusal,) = contract.check_request(venue_contracts.Request("POST", "/bets", body=body))
    assert refusal.reason.endswith("allowed: JSON")


CONTRACT = """
name = "mine"
checked = 2026-11-30
tried = false
needs = []
not_read = []
[[sources]]
url = "https://example.com"
date = 2026-11-30
[send.bets]
method = "POST"
path = "/bets"
body = "bet"
[type]
bet = { name = "text" }
"""


class Bytes(SourceServer):
    def reply(self, request: Request) -> bytes:
        return b"\xff"


def test_a_request_may_have_bytes_that_are_no_text() -> None:
    server = Bytes()
    with served(server) as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10.0) as line:
        line.sendall(b"POST /v3/events HTTP/1.1\r\nx-name: Jos\xe9\r\ncontent-length: 2\r\n\r\n\xff\xfe")
        assert line.recv(100).endswith(b"\xff")
    assert [(request.headers["x-name"], request.body) for _, request in server.asked] == [("Jos\xe9", b"\xff\xfe")]
