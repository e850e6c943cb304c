"""A node over a node: an hour of a real-format source, and both show the same prices, ages and opportunities."""

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.effort import less
from support.local_servers import running, until
from support.service_running import Running

from oddsengine.feeds import Payload
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import node_client as interface
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings
from oddsengine.sources.source_settings import TheOddsApiSettings as Source
from oddsengine.sources.web import Web
from oddsengine.testing.local_servers import Answering, Request, http, iso
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub

START = datetime(2026, 2, 8, 18, 0, tzinfo=UTC)
TICK_S = 60
TICKS = less(60, 16)  # an hour; everything that it is for happens in its first quarter
BOOKS = ("pinnacle", "draftkings", "fanduel", "betmgm", "betrivers", "williamhill_us", "bovada", "espnbet")
TEAMS = (
    ("Boston Celtics", "Los Angeles Lakers"), ("Miami Heat", "Chicago Bulls"), ("Denver Nuggets", "Phoenix Suns"),
    ("New York Knicks", "Milwaukee Bucks"),
)  # fmt: skip
MARKETS = ("h2h", "spreads", "totals")
KEY = ("sportsbook", "event_id", "market_type", "selection", "line")
AGES = ("odds_decimal", "is_live", "is_active", "last_seen_at", "odds_changed_at")


class Provider:
    """The Odds API, made up: prices walk; a book stands still, one leaves and comes back, one errs, one flaps."""

    def __init__(self) -> None:
        self.now, self.tick = START, 0
        self._rng = random.Random(5)
        self._fair = {(game, market): 0.0 for game in range(len(TEAMS)) for market in MARKETS}
        self._skew = {(game, market, book): 0.0 for game, market in self._fair for book in BOOKS}
        self._seen = dict.fromkeys(self._skew, START)

    def go_on(self) -> None:
        self.tick += 1
        self.now = START + timedelta(seconds=TICK_S * self.tick)
        rng = self._rng
        for key in self._fair:
            if rng.random() < 0.1:
                self._fair[key] += rng.gauss(0.0, 0.05)
        for game, market, book in self._skew:
            if rng.random() < 0.05:
                self._skew[game, market, book] = rng.gauss(0.0, 0.03)
            if not self._stands_still(book, game):
                lag = timedelta(seconds=rng.choice((0, 5, 20)))
                self._seen[game, market, book] = max(self._seen[game, market, book], self.now - lag)

    def _stands_still(self, book: str, game: int) -> bool:
        return (book == "betmgm" and 5 < self.tick < 40) or (book == "draftkings" and game == 1 and self.tick > 16)

    async def __call__(self, _: Request, answering: Answering) -> None:
        await answering.answer([self._game(at) for at in range(len(TEAMS))])

    def _game(self, at: int) -> dict[str, Any]:
        home, away = TEAMS[at]
        begins = START + timedelta(minutes=(-20, 30, 180, 60 * 26)[at])
        books = [book for book in BOOKS if not (book == "betrivers" and self.tick % 12 > 9)]
        return {
            "id": f"g{at}", "sport_key": "basketball_nba", "sport_title": "NBA", "home_team": home, "away_team": away,
            "commence_time": iso(begins),
            "bookmakers": [
                {"key": book, "title": book, "markets": [self._market(at, name, book) for name in MARKETS]}
                for book in books
            ],
        }  # fmt: skip

    def _market(self, game: int, market: str, book: str) -> dict[str, Any]:
        home, away = TEAMS[game]
        skew = self._skew[game, market, book] + (0.9 if book == "bovada" and 10 < self.tick < 16 and game == 2 else 0.0)
        if book == "fanduel" and game == 2:
            skew = 0.25 if self.tick % 7 == 3 else 0.0  # away and back again
        up = 0.5 + max(-0.3, min(0.3, (self._fair[game, market] + skew) / 4.0))
        margin = 1.02 if book == "pinnacle" else 1.005
        sides = {"h2h": (home, away, None), "spreads": (home, away, -3.5), "totals": ("Over", "Under", 220.5)}
        first, second, line = sides[market]
        outcomes: list[dict[str, Any]] = [
            {"name": first, "price": round(1.0 / (up * margin), 3)},
            {"name": second, "price": round(1.0 / ((1.0 - up) * margin), 3)},
        ]
        if line is not None:
            outcomes[0]["point"], outcomes[1]["point"] = line, line if market == "totals" else -line
        return {"key": market, "last_update": iso(self._seen[game, market, book]), "outcomes": outcomes}


class Upstream(Running):
    """A server whose board is fed by the test."""

    def start(self) -> "Upstream":
        self.service._run = lambda _: self.played.set()
        super().start()
        return self


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Upstream]:
    server = Upstream(tmp_path).start()
    yield server
    server.stop()


def rows(engine: Engine) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {row[: len(KEY)]: row[len(KEY) :] for row in engine.table().select(*KEY, *AGES).iter_rows()}


def rejected(engine: Engine) -> dict[str, str]:
    """Rows that are rejected, and by which guard, by what they are of."""
    with engine.still(judged=True) as board:
        slots = board.on()
        frame, verdicts = board.facts(slots).frame(), board.rows.reason[slots]
    named = zip(frame.select(*KEY).iter_rows(), verdicts.tolist(), strict=True)
    return {str(key): code for key, code in named if code}


def opportunities(engine: Engine, at: datetime) -> dict[str, list[dict[str, Any]]]:
    """All that is open once both boards have the same time."""
    view = engine.view(min_ev=0.0, min_profit=0.0, min_middle_ev=-20.0, keep=True)
    assert engine.now == at
    found = view.opportunities()
    out = {}
    for kind in ("ev", "arbitrage", "low_hold", "middles"):
        frame: pl.DataFrame = getattr(found, kind)
        out[kind] = [bare(row) for row in frame.sort("id").to_dicts()]
    return out


def bare(value: Any) -> Any:
    """An opportunity without links, ids of rows (each node has its own) and the moment it was found."""
    if isinstance(value, dict):
        left_out = ("detected_at", "deep_link", "deep_links", "odds_id", "odds_ids")
        return {name: bare(each) for name, each in value.items() if name not in left_out}
    if isinstance(value, float):
        return round(value, 2)  # the American form has two digits on the wire
    return [bare(each) for each in value] if isinstance(value, list) else value


def differences(found: list[dict[str, Any]], expected: list[dict[str, Any]], tick: int) -> str:
    here, there = ({row["id"]: row for row in rows} for rows in (found, expected))
    out = [f"tick {tick}: only below {here.keys() - there.keys()}, only above {there.keys() - here.keys()}"]
    for id_ in here.keys() & there.keys():
        out += [f"{name}: {value} {there[id_][name]}" for name, value in here[id_].items() if value != there[id_][name]]
    return "\n".join(out[:20])


@pytest.mark.parametrize("stream", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=["stream", "pages"])
def test_a_node_over_a_node_shows_the_same_for_an_hour(upstream: Upstream, stream: bool) -> None:
    """Ages, suspensions and rejections travel: nothing is younger downstream, and nothing found that is not above."""
    provider = Provider()
    seen: dict[str, int] = {}

    async def check() -> None:
        def clock() -> datetime:
            return provider.now

        def same() -> bool:
            one, other = above.engine, below.engine
            return one.now == other.now and rows(one) == rows(other) and rejected(one).keys() == rejected(other).keys()

        above = Hub(upstream.node, Matcher(), clock=clock)
        below = Hub(Writer(Engine()), Matcher(), clock=clock)
        declared = Source(name="main", kind="the_odds_api", key_env="KEY", sports=("basketball_nba",), timeout=20.0)
        above.add(declared)
        reader = TheOddsApi(markets=MARKETS)
        feed = InterfaceSettings(
            name="up", kind="interface", url=upstream.base, stream=stream, interval=0.02, backoff=0.05, timeout=20.0
        )
        fetcher = interface.source(feed, {"key_env": "demo_enterprise"}, Secrets())
        async with http(provider) as url, Web(declared, Secrets(), above) as web, running(below, fetcher, tick=0.02):
            for tick in range(TICKS):
                answer = await web.get(f"{url}/v4/sports/basketball_nba/odds")
                payload = reader.read(answer.body, RequestScope.of(MARKETS, sport="basketball_nba"))
                await above.deliver("main", payload)
                await until(same, f"the same rows at {tick}")
                if tick % 10 == 5:  # suspended until the next look
                    provider.now += timedelta(seconds=1)
                    some = [row for row in payload.quotes if row["sportsbook"] == "fanduel"][:4]
                    await above.deliver("main", Payload(quotes=[row | {"is_active": False} for row in some]))
                    await until(same, f"the same suspensions at {tick}")
                upstream.clock.pass_minute()
                found, expected = opportunities(below.engine, clock()), opportunities(above.engine, clock())
                for kind in expected:
                    assert found[kind] == expected[kind], differences(found[kind], expected[kind], tick)
                for name, n in above.engine.rejected_counts().items():
                    seen[name] = max(seen.get(name, 0), n)
                for kind, frames in found.items():
                    seen[kind] = seen.get(kind, 0) + len(frames)
                provider.go_on()
        assert below.statuses()[0].failures_total == 0, below.statuses()[0].reason
        await above.close()

    asyncio.run(check())
    for what in ("stale", "suspended", "outlier", "flap", "ev", "arbitrage", "low_hold"):
        assert seen.get(what), f"the hour had no {what}: {seen}"
