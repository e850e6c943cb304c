"""Kalshi and Polymarket on this machine, with one NFL game at both, in a thread of their own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from support import kalshi, polymarket

from oddsengine.testing.local_servers import Answering, Request, iso

_PATIENCE_S = 30.0
TEAMS = [
    polymarket.team("Seattle Seahawks", "home", "Seahawks", "sea"),
    polymarket.team("Dallas Cowboys", "away", "Cowboys", "dal"),
]


class Exchanges:
    """Both servers; `environ` leads the feeds of a node to them.

    Seattle costs 0.60 at Kalshi, and Dallas 0.36 at Polymarket, which is an arbitrage.
    """

    def __init__(self) -> None:
        self.kalshi = kalshi.Exchange()
        start = f"{kalshi.START:%Y-%m-%d %H:%M:%S}+00"
        winner = polymarket.offer("moneyline", ("Cowboys", "Seahawks"), gameStartTime=start)
        game = polymarket.event(winner, teams=TEAMS, startTime=iso(kalshi.START), title="Cowboys vs. Seahawks")
        self.polymarket = polymarket.Exchange(game | {"slug": f"nfl-dal-sea-{kalshi.START:%Y-%m-%d}"})
        self.polymarket.books = {
            "t1": dict(bids=[(0.34, 400)], asks=[(0.36, 500)]), "t2": dict(bids=[(0.64, 500)], asks=[(0.66, 400)]),
        }  # fmt: skip
        self.environ: dict[str, str] = {}

    @property
    def requests(self) -> int:
        """Requests so far."""
        return len(self.kalshi.asked) + len(self.polymarket.requests)

    @contextmanager
    def refusing(self, status: int) -> Iterator[None]:
        """Let both answer every request with an error for a while."""

        async def refuse(_: Request, answering: Answering) -> bool:
            await answering.answer({"error": "no"}, status)
            return True

        self.kalshi.answers["/events"], self.polymarket.status = refuse, status
        try:
            yield
        finally:
            del self.kalshi.answers["/events"]
            self.polymarket.status = 0


def led_to(kind: str, settings: dict[str, str]) -> dict[str, str]:
    """The environment that leads a kind of feed to other addresses."""
    start = f"ODDSENGINE_FEEDS_{kind.upper()}_"
    named = {start + name.upper(): value for name, value in settings.items()}
    return {f"{start}KIND": kind, f"{start}SPORTS": "nfl", **named}


async def _ended() -> None:
    """End what goes on in a loop, as `asyncio.run` does; connections are closed in its next turns."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    for _ in range(5):
        await asyncio.sleep(0)


@contextmanager
def exchanges() -> Iterator[Exchanges]:
    """Run both servers for a while."""
    loop, both = asyncio.new_event_loop(), Exchanges()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def of_loop(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(_PATIENCE_S)

    served = {"kalshi": kalshi.exchange(both.kalshi), "polymarket": polymarket.served(both.polymarket)}
    try:
        for kind, server in served.items():
            both.environ |= led_to(kind, of_loop(server.__aenter__()))
        yield both
    finally:
        for server in served.values():
            of_loop(server.__aexit__(None, None, None))
        of_loop(_ended())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE_S)
        loop.close()
