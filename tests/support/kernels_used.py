"""What a user calls first, and what a node does at its start; prints each kernel that is compiled meanwhile.

    python tests/support/kernels_used.py

Imports nothing of the tests, so that it can be run beside an installed wheel. Prints nothing if every kernel came with
the package or from a cache.
"""

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryFile
from typing import Any

import polars as pl
from numba.core import event

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD

COMPILED: list[str] = []
ROUNDS, SECONDS = 4, 60  # of requests to a demo that all were answered, and how long at most
KINDS = [f"opportunities/{kind}" for kind in ("ev?min_ev=-5", "arbitrage?min_profit=-1", "low_hold", "middles")]


class Compilations(event.Listener):
    def on_start(self, event: Any) -> None:
        COMPILED.append(
            f"{event.data['dispatcher'].py_func.__module__}.{event.data['dispatcher'].py_func.__qualname__}"
        )

    def on_end(self, event: Any) -> None:
        pass


def tables() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    books = ["draftkings", "fanduel", "betmgm", "bovada", "bet365"]
    ev = oe.find_ev(odds)
    for method in ("close", *oe.DEVIG_METHODS):
        oe.find_ev(odds, method=method, sharp=None if method == "close" else {"pinnacle": 3, "circa": 1})
    arbs = oe.find_arbitrage(odds, books=books)
    own = odds.with_columns(p=pl.col("true_probability").cast(pl.Float64))
    outcomes = own.filter(sportsbook="pinnacle", market_type="moneyline", is_live=False).drop_nulls("p")
    oe.find_ev(own, model="p")
    oe.fair(odds, model=outcomes.select("event_id", "market_type", "selection", "line", probability="p"))
    oe.find_low_hold(odds), oe.find_middles(odds, guards=["stale"]), oe.fair(odds)
    found = oe.find_all(odds, commission={"bet365": 0.02}, guards=[])
    oe.rejected(odds), oe.markets(odds), oe.explain(odds, ev["id"][0]), oe.flatten(found.arbitrage)
    oe.middle_probability("nfl", "spread", -2.5, 3.5), oe.why(odds), oe.FairPrice().predict(odds)
    oe.devig([1.87, 2.05]), oe.devig([[1.9, 2.1], [1.5, 3.0]], method="shin")
    oe.devig([1.87, 2.05], {"goto": 1.0, "probit": 1.0})
    oe.devig_groups([1.9, 2.1, 2.0, 3.0, 9.0], [0, 2, 5], method="power")
    frame = pl.DataFrame({"event": ["a", "a", "b", "b"], "odds": [1.9, 2.0, 1.8, 2.2]})
    frame.select(pl.col("odds").odds.devig(by="event"))  # type: ignore[attr-defined]
    oe.kelly(0.55, 2.0), oe.kelly_exclusive([0.5, 0.4], [2.1, 2.6]), oe.round_stakes([2.1, 2.05], 100.0, 5.0)
    oe.kelly_portfolio(ev, bankroll=1000), oe.arbitrage_plan(arbs, bankroll=1000)
    oe.cover([100, 0], [2.10, 2.05], available=[2.05, 1.90], probs=[0.49, 0.51], bankroll=500)


def live() -> None:
    engine = oe.Engine()
    views = [
        engine.view(keep=True),
        engine.view(books=["draftkings", "fanduel"], keep=True),
        engine.view(method="shin"),
    ]
    for batch in oe.World(11, events=4, live=0.5, hazards=True).run(20.0):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        [(view.opportunities(), update.json(view)) for view in views]
    assert engine.now is not None
    engine.step([], now=engine.now + timedelta(minutes=11))


def histories() -> None:
    soft = ("draftkings", "fanduel", "betmgm", "caesars")
    world = oe.World(7, events=8, live=0.0, tick=900.0, books=["pinnacle", "betfair_exchange", *soft])
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(4 * 3600) for quote in batch.quotes]
    history = pl.DataFrame(rows, infer_schema_length=None)
    oe.backtest(history, oe.Strategy(min_ev=1.0, books=soft, staking="portfolio"), bankroll=1000).summary()
    oe.scan_history(history, books=soft)
    oe.audit(history)


def futures() -> None:
    row = {"league": "nba", "market": "Winner", "last_seen_at": datetime(2026, 2, 1, tzinfo=UTC)}
    picks = {"Boston Celtics": 3.0, "Los Angeles Lakers": 6.0, "Miami Heat": 9.0}
    quotes = [{**row, "sportsbook": book, "selection": pick, "odds_decimal": odds}
              for book in ("fanduel", "draftkings") for pick, odds in picks.items()]  # fmt: skip
    oe.find_futures(pl.DataFrame(quotes))


def node() -> None:
    try:
        from oddsengine_service.node import Node
    except ImportError:
        return
    Node(oe.Engine(), None, None).warm()  # type: ignore[arg-type]
    serve = "from oddsengine_cli import main; raise SystemExit(main(['serve', '--demo', '--port', '0']))"
    python = [sys.executable, *(["-I"] if sys.flags.isolated else [])]  # the package that this process has
    with (
        TemporaryFile("w+") as log,
        subprocess.Popen([*python, "-c", serve], stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stdout)))
            end, rounds = time.monotonic() + SECONDS, 0
            while rounds < ROUNDS and time.monotonic() < end:
                rounds += 1
                for path in ("odds", "odds/delta?since=2026-01-01T00:00:00Z", *KINDS, "events", "sportsbooks"):
                    ask = urllib.request.Request(f"{found[0]}/api/v1/{path}", headers={"X-API-Key": "demo_enterprise"})
                    try:
                        with urllib.request.urlopen(ask, timeout=60) as answer:
                            answer.read()
                    except urllib.error.HTTPError as error:  # 503 at first
                        error.close()
                        rounds = 0
                time.sleep(1.0)
        finally:
            server.terminate()
            server.wait(60)
        log.seek(0)
        COMPILED.extend(line.strip() for line in log if '"event":"kernels"' in line)


if __name__ == "__main__":
    event.register("numba:compile", Compilations())  # type: ignore[no-untyped-call]
    for part in (tables, live, histories, futures, node):
        part()
    print("\n".join(COMPILED), end="")
