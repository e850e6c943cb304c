"""Queries of the odds endpoints: from the parameters to JSON, each request with different conditions.

    pytest benchmarks/bench_odds_queries.py -o python_files='bench_*.py' --benchmark-enable --benchmark-only

Times are processor time without HTTP. `encoding` is a lower bound for such a page: the same rows, already built, to
JSON. `update` is the cost of the first query after a step with new rows.
"""

import itertools
import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from synthetic import NOW
from synthetic import board as make_board

from oddsengine.live.engine import Engine
from oddsengine.query import Index, RowFilter
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.params import parse
from oddsengine_service.routes.odds_routes import endpoints
from oddsengine_service.tiers import TIERS, Caller
from oddsengine_service.wire.odds_response import odds as to_wire

SIZES = (10_000, 100_000, 1_000_000)
PATHS = {endpoint.path: endpoint for endpoint in endpoints}
SPORTS = ("basketball", "football", "hockey", "soccer")
BOOKS = ("pinnacle", "draftkings", "fanduel", "betmgm", "bet365")
KINDS = {
    "two texts": [f"sport={s}&market={m}" for s in SPORTS for m in ("moneyline", "spread", "total", "props")],
    "text and book": [f"sport={s}&sportsbook={b}" for s in SPORTS for b in BOOKS],
    "three, prices": [f"sport={s}&market=main&min_odds={o}" for s in SPORTS for o in (-150, -110, 100)],
    "sorted": [f"sport={s}&market={m}&sort=-odds_american" for s in SPORTS for m in ("spread", "total")],
    "nothing": [""],
}  # fmt: skip
encode = msgspec.json.Encoder().encode


@pytest.fixture(scope="module", params=SIZES, ids=lambda n: f"{n:,}")
def engine(request: pytest.FixtureRequest) -> Engine:
    made = Engine()
    made.step(make_board(request.param), NOW)
    return made


@pytest.fixture(scope="module")
def node(engine: Engine) -> Any:
    index = Index(engine)
    return SimpleNamespace(boards=SimpleNamespace(index=lambda _: index))


def ask(node: Any, engine: Engine, path: str, query: str) -> Context:
    tier = TIERS["sharp"]
    found, ignored = parse(query.encode(), PATHS[path].query)
    return Context(Caller("a", "k", tier, tier.rate, 0, tier.features), found, {}, None, engine, node, ignored)


def timed(benchmark: Any, node: Any, engine: Engine, path: str, queries: list[str]) -> None:
    """Run the queries in turn; cached conditions are cleared before each."""
    answer, index = PATHS[path].answer, node.boards.index(engine)
    encode(answer(ask(node, engine, path, queries[0])))
    turn = itertools.cycle([ask(node, engine, path, query) for query in queries])

    def setup() -> tuple[tuple[Context], dict[str, Any]]:
        index.terms.masks.clear()
        return (next(turn),), {}

    benchmark._timer = time.process_time
    benchmark.pedantic(lambda asked: encode(answer(asked)), setup=setup, rounds=300 if engine.size < 500_000 else 60)


@pytest.mark.benchmark(group="a page of 50")
@pytest.mark.parametrize("kind", KINDS)
def test_odds(benchmark: Any, node: Any, engine: Engine, kind: str) -> None:
    timed(benchmark, node, engine, "/odds", KINDS[kind])


@pytest.mark.benchmark(group="a page of 50")
@pytest.mark.parametrize("kind", ["two texts", "text and book"])
def test_best(benchmark: Any, node: Any, engine: Engine, kind: str) -> None:
    timed(benchmark, node, engine, "/odds/best", KINDS[kind])


@pytest.mark.benchmark(group="a page of 50")
def test_encoding(benchmark: Any, node: Any, engine: Engine) -> None:
    with node.boards.index(engine).reader() as reader:
        rows = to_wire(reader.take(reader.matching_rows(RowFilter(), {})[:50]))
    benchmark._timer = time.process_time
    benchmark.pedantic(lambda: encode(rows), rounds=300)


@pytest.mark.benchmark(group="update")
def test_update(benchmark: Any, node: Any, engine: Engine) -> None:
    index = node.boards.index(engine)
    first = engine.table().row(0, named=True)
    lines = itertools.count(300)

    def step() -> None:
        row = {name: first[name] for name in ("sportsbook", "event_id", "sport", "league", "home_team", "away_team")}
        line = next(lines) + 0.5
        quote = row | {"market_type": "total_points", "selection": "Over", "odds_decimal": 1.9, "line": line}
        engine.step([quote], engine.now)

    def read() -> None:
        with index.reader():
            pass

    benchmark._timer = time.process_time
    benchmark.pedantic(read, setup=step, rounds=20)
