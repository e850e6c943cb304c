"""Where the credits of a metered source go: laws of the plan, and a day of a node on a simulated clock."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import less
from support.local_servers import running

from oddsengine import catalog
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources.credits import CLASSES, FRESH, HOUR, Target, nearness, plan
from oddsengine.sources.polling_checks import too_slow
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings, TableSettings, TheOddsApiSettings
from oddsengine.sources.the_odds_api_client import TheOddsApiSource
from oddsengine.testing.local_servers import Answering, Request, http, iso
from oddsengine.testing.simulated_clock import SimulatedLoop
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.feeds.status import SourceStatus
from oddsengine_service.routes.health_routes import _sources

DAY = 24.0 * HOUR
STALE = catalog.thresholds().stale_prematch_s
STARTS = st.lists(st.floats(-6.0 * HOUR, 100.0 * HOUR), min_size=1, max_size=4).map(tuple)
TARGETS = st.lists(
    st.builds(Target, st.uuids().map(str), st.integers(1, 30), STARTS, st.booleans()), max_size=5,
    unique_by=lambda target: target.name,
)  # fmt: skip
LEFT = st.one_of(st.none(), st.integers(0, 50), st.integers(0, 1_000_000))


def spent(targets: list[Target], intervals: tuple[float, ...], step: float = 60.0) -> float:
    """What a day costs, added up minute by minute."""
    total = 0.0
    for minute in range(int(DAY / step)):
        at = (minute + 0.5) * step
        for target in targets:
            near = nearness([start - at for start in target.starts], live=target.live)
            if near is not None:
                total += target.cost * step / intervals[near]
    return total


@given(TARGETS, st.floats(1.0, 1200.0), LEFT, st.floats(1.0, 31 * DAY))
def test_a_plan_keeps_its_budget_and_its_order(
    targets: list[Target], interval: float, left: int | None, seconds: float
) -> None:
    """No plan costs more than the day's share, and no class has a longer interval than a farther one."""
    found = plan(targets, interval, left, seconds)
    assert list(found.intervals) == sorted(found.intervals)
    assert found.intervals[0] >= interval * (1.0 - 1e-12)
    if left is not None:
        assert found.a_day <= left * min(1.0, DAY / seconds) * (1.0 + 1e-9)
    for target in targets:
        near = nearness(target.starts, live=target.live)
        assert found.every.get(target.name, float("inf")) == (float("inf") if near is None else found.intervals[near])


@pytest.mark.parametrize("left", [None, 200_000, 90_000, 5_000, 300])
def test_what_a_plan_costs(left: int | None) -> None:
    """The cost of a plan is what its requests add up to."""
    targets = [
        Target("nba", 6, tuple(h * HOUR for h in (-1.0, 3.0, 20.0, 27.5))),
        Target("nfl", 3, (60.0 * HOUR, 80.0 * HOUR)),
        Target("nba/scores", 1, (-1.0 * HOUR, 3.0 * HOUR), live=True),
        Target("over", 3, (-5.0 * HOUR,)),
    ]
    found = plan(targets, 30.0, left, 30 * DAY)
    assert spent(targets, found.intervals) == pytest.approx(found.a_day, rel=1e-9)


def test_the_order_of_grants() -> None:
    """Fresh up to 24 h, then hourly looks at the rest, then what is near more often, then fresh beyond."""
    targets = [Target(str(at), 1, ((hours + 1.0) * HOUR,)) for at, hours in enumerate((0.5, 4.0, 20.0, 60.0, 200.0))]
    fresh = FRESH * STALE
    budgets = range(0, 20_000, 20)
    plans = [plan(targets, 30.0, budget, DAY) for budget in budgets]
    stages: list[str] = []
    for found in plans:
        near, soon, today, days, beyond = found.intervals
        stage = (
            "near fresh" if near > fresh
            else "soon fresh" if soon > fresh
            else "today fresh" if today > fresh
            else "days hourly" if days > HOUR
            else "beyond hourly" if beyond > HOUR
            else "near often" if near > 30.0
            else "soon often" if soon > 180.0
            else "days fresh" if days > fresh
            else "beyond fresh" if beyond > fresh
            else "all"
        )  # fmt: skip
        if stage not in stages:
            stages.append(stage)
    assert stages == [
        "near fresh", "soon fresh", "today fresh", "days hourly", "beyond hourly", "near often", "soon often",
        "days fresh", "beyond fresh", "all",
    ]  # fmt: skip
    assert plans[0].every == {}
    assert set(plans[0].stale) == set(range(len(CLASSES)))
    assert plans[-1].stale == ()


def test_a_larger_threshold_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh is what the thresholds in force say."""
    target = Target("nba", 3, (20.0 * HOUR,))
    wider = catalog.thresholds()._replace(stale_prematch_s=2.0 * STALE)
    before = plan([target], 30.0, None, DAY).every["nba"]
    monkeypatch.setattr(catalog, "thresholds", lambda: wider)
    assert plan([target], 30.0, None, DAY).every["nba"] == 2.0 * before


@pytest.mark.parametrize(
    ("feed", "seen", "reason"),
    [
        (TableSettings(name="a", kind="table", path="x", interval=900.0), True, ""),
        (
            InterfaceSettings(name="a", kind="interface", url="u", stream=False, interval=700.0),
            True,
            "interval is 700 s",
        ),
        (InterfaceSettings(name="a", kind="interface", url="u", interval=700.0), True, ""),
        (InterfaceSettings(name="a", kind="interface", url="u", freshen=3600.0), True, ""),
        (InterfaceSettings(name="a", kind="interface", url="u", freshen=3600.0), False, "freshen is 3600 s"),
    ],
)  # fmt: skip
def test_intervals_that_the_guards_do_not_allow(
    feed: TableSettings | InterfaceSettings, seen: bool, reason: str
) -> None:
    found = too_slow(feed, seen=seen)
    assert found == (f"{reason}, but prices older than 600 s are rejected as stale" if reason else "")


def test_a_conflict_in_the_settings_is_logged_and_degrades(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> tuple[SourceStatus, ...]:
        hub = Hub(Writer(Engine()), Matcher(), clock=lambda: datetime.now(UTC))
        hub.add(InterfaceSettings(name="slow", kind="interface", url="u", stream=False, interval=900.0))
        hub.add(TableSettings(name="quick", kind="table", path="x", interval=60.0))
        for name in ("slow", "quick"):
            hub.alive(name)
        try:
            return tuple(hub.statuses())
        finally:
            await hub.close()

    quick, slow = asyncio.run(check())
    assert (slow.status, slow.conflict, quick.status, quick.conflict) == ("degraded", True, "ok", False)
    assert slow.reason == "interval is 900 s, but prices older than 600 s are rejected as stale"
    assert "feeds.slow: interval is 900 s, but prices older than 600 s" in caplog.text
    assert "feeds.quick: interval is 60 s, but prices in play older than 30 s" in caplog.text


# ---- hours of a node on a simulated clock ----


class _Provider:
    """Lists games and their prices as seen now, and counts credits."""

    BEGIN = datetime(2026, 3, 1, tzinfo=UTC)  # credits renewed a moment ago
    TEAMS = ("Boston Celtics", "Los Angeles Lakers", "Miami Heat", "Chicago Bulls", "Denver Nuggets", "Utah Jazz")

    def __init__(self, loop: SimulatedLoop, credits: int, hours: tuple[float, ...]) -> None:
        self._loop, self.left, self.requests = loop, credits, 0
        self._games: list[dict[str, Any]] = [
            {
                "id": f"g{at}", "sport_key": "basketball_nba", "sport_title": "NBA",
                "commence_time": iso(self.BEGIN + timedelta(hours=hour)),
                "home_team": self.TEAMS[2 * at], "away_team": self.TEAMS[2 * at + 1],
            }
            for at, hour in enumerate(hours)
        ]  # fmt: skip

    def now(self) -> datetime:
        return self.BEGIN + timedelta(seconds=self._loop.time())

    async def __call__(self, request: Request, answering: Answering) -> None:
        listed = self._games
        if request.path.endswith("/odds"):
            self.left -= 3
            self.requests += 1
            listed = [{**game, "bookmakers": [self._maker(game)]} for game in self._games]
        await answering.answer(listed, headers={"x-requests-remaining": str(self.left)})

    def _maker(self, game: dict[str, Any]) -> dict[str, Any]:
        seen = iso(self.now())
        outcomes = [{"name": game["home_team"], "price": 1.8}, {"name": game["away_team"], "price": 2.1}]
        offer = {"key": "h2h", "last_update": seen, "outcomes": outcomes}
        return {"key": "fanduel", "title": "F", "last_update": seen, "markets": [offer]}


def hours_of(
    credits: int, hours: tuple[float, ...], until: float
) -> tuple[list[float | None], SourceStatus, _Provider]:
    """Run a node for so many hours: the stale share every ten minutes, its status at the end, and the provider."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SimulatedLoop)
        provider = _Provider(loop, credits, hours)
        shares: list[float | None] = []

        async def run() -> SourceStatus:
            hub = Hub(Writer(Engine()), Matcher(), clock=provider.now)
            async with http(provider) as url:
                feed = TheOddsApiSettings(
                    name="metered", kind="the_odds_api", key_env="KEY", sports=("basketball_nba",), url=url
                )
                source = TheOddsApiSource(feed, {"key_env": "key"}, Secrets(["key"]))
                async with running(hub, source, tick=less(20, 60)):
                    while loop.time() < until * HOUR:
                        await asyncio.sleep(600.0)
                        (found,) = hub.statuses()
                        shares.append(found.stale_share)
                    (found,) = hub.statuses()
            return found

        return shares, runner.run(run()), provider


def test_games_of_a_day_stay_fresh() -> None:
    """With 90,000 credits a month none of a day's prices is rejected as stale, and the day's share is not exceeded."""
    shares, status, provider = hours_of(90_000, (13.0, 16.0, 20.0), less(11, 5))
    known = [share for share in shares if share is not None]
    assert len(known) >= less(60, 25)
    assert max(known) == 0.0
    assert (status.status, status.conflict) == ("ok", False), status.reason
    assert 90_000 - provider.left <= 90_000 / 31


def test_too_few_credits_are_said() -> None:
    """With too few, the status says which games are affected, and the share that is stale shows it."""
    shares, status, provider = hours_of(600, (13.0, 16.0, 20.0), less(8, 5))
    assert max(share for share in shares if share is not None) == 1.0
    assert (status.status, status.conflict) == ("degraded", True)
    assert status.reason.startswith("too few credits to keep prices fresh (600 s before the game): requests for games")
    assert 600 - provider.left <= 600 / 31 + 3


# ---- what health says ----


class _Sources:
    def __init__(self, *sources: SourceStatus) -> None:
        self.feeds = self
        self.statuses = lambda: list(sources)


def _source(name: str, **more: Any) -> SourceStatus:
    given: dict[str, Any] = dict(
        name=name, kind="table", status="ok", reason="", last_payload=None, last_seen=None, payloads=0, quotes=0,
        events=0, quarantined=0, failures=0, failures_total=0, unmapped=0, refused=0, credits_left=None,
        credits_used=None, credits_an_hour=None, books=(),
    )  # fmt: skip
    return SourceStatus(**{**given, **more})


@pytest.mark.parametrize(
    ("sources", "status", "message"),
    [
        ((), "ok", ""),
        ((_source("secret"),), "ok", "sources: 1 ok"),
        ((_source("secret", prices=100, stale=10),), "ok", "sources: 1 ok"),
        ((_source("a", prices=100, stale=75), _source("b", prices=10)), "degraded",
         "sources: 2 ok; a: 75% of its 100 prices are rejected as stale"),
        ((_source("a", status="degraded", conflict=True, reason="secret", public="too slow"), _source("b")),
         "degraded", "sources: 1 degraded, 1 ok; a: too slow"),
        ((_source("a", status="starting", public="no data yet"), _source("b")), "ok",
         "sources: 1 ok, 1 starting; a: no data yet"),
        (tuple(_source(name, status="down", public="silent") for name in "abcdefg"), "degraded",
         "sources: 7 down; a: silent; b: silent; c: silent; d: silent; e: silent; and 2 more (see /feeds)"),
        ((_source("one", shared=("pinnacle",)), _source("secret"), _source("two", shared=("pinnacle",))), "ok",
         "sources: 3 ok; carried by more than one source: pinnacle (one, two)"),
        ((_source("new", status="degraded", behind=39_000, public="behind: 39,000 games wait"), _source("secret")),
         "degraded", "sources: 1 degraded, 1 ok; new: behind: 39,000 games wait"),
    ],
)  # fmt: skip
def test_health_counts_sources(sources: tuple[SourceStatus, ...], status: str, message: str) -> None:
    node: Any = _Sources(*sources)
    assert _sources(node) == (status, message)
