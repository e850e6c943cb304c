"""Sources of plugins in a thread of their own: what they report arrives; one that blocks is named."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from service.feeds.test_fetched import GAME, quote
from service.feeds.test_gamestate import declared
from support.local_servers import new_hub, running, until

from oddsengine.feeds import Payload
from oddsengine.sources import Failure, Receiver
from oddsengine_service.feeds import own_thread
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.feeds.own_thread import ThreadedSource


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_thread, "BLOCKED_S", 0.05)
    monkeypatch.setattr(own_thread, "_LOOK_S", 0.01)
    monkeypatch.setattr(own_thread, "_GRACE_S", 0.1)


class Fetcher:
    """A fetcher that does what a test says."""

    def __init__(self, run: Callable[[Receiver], Awaitable[None]]) -> None:
        self.feed, self._run = declared("one"), run

    async def run(self, receiver: Receiver) -> None:
        await self._run(receiver)


def watched(run: Callable[[Receiver], Awaitable[None]], check: Callable[[Hub], Awaitable[None]]) -> None:
    async def watch() -> None:
        hub = new_hub()
        async with running(hub, ThreadedSource(Fetcher(run))):
            await check(hub)

    asyncio.run(watch())


def test_all_reports_arrive_in_order_from_another_thread() -> None:
    threads: list[Any] = []

    async def run(receiver: Receiver) -> None:
        threads.append(threading.current_thread())
        receiver.expect("one", "a", 60.0, polled=True)
        receiver.failed("one", Failure("not now"), "a")
        await receiver.deliver("one", Payload([GAME], [quote("q", 1.9)]), "a")
        receiver.warn("one", "mind this", "mind")
        receiver.conflict("one", "too slow")
        receiver.takes("one", 3.0)
        receiver.credits("one", 5, 6, 7.0)
        receiver.written("one", receiver.now())
        await receiver.received("one", "GET /x", b"{}")
        await receiver.unreadable("one", b"{", "no end")
        with pytest.raises(Failure, match="the board rejected a payload"):
            await receiver.deliver("one", Payload([GAME], [{"event_id": GAME.id, "sportsbook": "fanduel"}]))
        receiver.alive("one", "b")
        receiver.caught_up("one", ended=True)
        await asyncio.sleep(3600.0)

    async def check(hub: Hub) -> None:
        track = hub.tracks["one"]
        await until(track.caught_up.is_set)
        (status,) = hub.statuses()
        assert (status.status, status.reason, status.quotes, status.credits_left) == ("degraded", "mind this", 1, 5)
        assert (sorted(track.parts), track.parts["a"].polled, track.requests) == (["a", "b"], True, 1)
        assert (status.conflict, status.failures_total, bool(status.written_at)) == (True, 1, True)

    watched(run, check)
    assert threads[0] is not threading.main_thread()
    threads[0].join(5.0)
    assert not threads[0].is_alive()


def test_a_source_that_blocks_is_named_with_its_line_until_it_does_not() -> None:
    go_on = threading.Event()

    async def run(receiver: Receiver) -> None:
        receiver.warn("one", "its own warning")
        go_on.wait(60.0)
        await asyncio.sleep(3600.0)

    def reason(hub: Hub) -> str:
        return hub.statuses()[0].reason

    async def check(hub: Hub) -> None:
        await until(lambda: reason(hub).startswith("its plugin blocks its event loop in threading.py:"))
        go_on.set()
        await until(lambda: reason(hub) == "its own warning")

    watched(run, check)


def test_one_that_blocks_forever_does_not_delay_the_end() -> None:
    async def run(_: Receiver) -> None:
        time.sleep(30.0)

    async def check(_: Hub) -> None:
        await asyncio.sleep(0.02)

    began = time.monotonic()
    watched(run, check)
    assert time.monotonic() - began < 10.0


def test_what_it_raises_is_raised() -> None:
    async def run(_: Receiver) -> None:
        raise Failure("that is all")

    async def alone() -> None:
        await ThreadedSource(Fetcher(run)).run(new_hub())

    with pytest.raises(Failure, match="that is all"):
        asyncio.run(alone())


ERRORS = [SystemExit(3), asyncio.CancelledError(), KeyError("x")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_a_source_raises_is_a_failure_after_which_it_runs_again(error: BaseException) -> None:
    """Also one of ours, which has no thread of its own."""
    runs: list[None] = []

    async def run(receiver: Receiver) -> None:
        runs.append(None)
        if len(runs) == 1:
            raise error
        receiver.alive("one")
        await asyncio.sleep(3600.0)

    async def check() -> None:
        hub = new_hub()
        async with running(hub, Fetcher(run)):
            await until(lambda: hub.tracks["one"].failures_total)
            reason = hub.statuses()[0].reason
            assert reason.startswith(f"internal error: {type(error).__name__}")
            await until(lambda: hub.statuses()[0].status == "ok")

    asyncio.run(check())
