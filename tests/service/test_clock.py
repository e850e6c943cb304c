"""A node's time, with a wall clock that tests set and a steady one that they let go on."""

import contextlib
import json
import sqlite3
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.service_running import Running, running, until

from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.simulate.world import START
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.board.writer import Writer
from oddsengine_service.clock import LASTING_S, OFF_S, SENSIBLE_S, Clock
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.server import demonstrate

SECOND = 1_000_000_000
HOUR = 3600.0
BEGIN = START + timedelta(minutes=10)  # after what `Running` puts on its board


class Driven:
    """Both sources of a clock."""

    def __init__(self, begin: datetime = BEGIN) -> None:
        self.at, self.since = round(begin.timestamp()) * SECOND, 12_345 * SECOND
        self.said: list[str] = []
        self.clock = Clock(lambda: self.at, lambda: self.since, self.said.append)

    def go_on(self, seconds: float) -> None:
        self.at += round(seconds * SECOND)
        self.since += round(seconds * SECOND)

    def set(self, seconds: float) -> None:
        """Set the wall clock."""
        self.at += round(seconds * SECOND)

    def now(self) -> float:
        return self.clock.time() - BEGIN.timestamp()


def test_both_clocks_agree() -> None:
    driven = Driven()
    for _ in range(100):
        driven.go_on(0.25)
    assert abs(driven.now() - 25.0) < 1e-6
    assert driven.clock.now() == BEGIN + timedelta(seconds=25)
    assert (driven.clock.fault(), driven.clock.ahead, driven.said) == ("", 0.0, [])


def test_a_step_back_of_an_hour_and_home() -> None:
    driven = Driven()
    driven.set(-HOUR)
    assert driven.now() == 0.0
    assert driven.clock.fault() == "the wall clock is 3600 s behind the node's clock"
    for _ in range(60):
        driven.go_on(1.0)
        driven.now()
    assert abs(driven.now() - 59.4) < 1e-6, "it goes on, 1 % slower"
    assert len(driven.said) == 1
    assert driven.said[0].startswith("the wall clock is 3600 s behind")
    driven.set(HOUR)
    assert abs(driven.now() - 60.0) < 1e-6
    assert driven.clock.fault() == ""
    assert driven.said[1:] == ["the wall clock and the node's clock agree again"]


def test_a_wall_clock_that_stays_behind_is_met() -> None:
    driven = Driven()
    driven.set(-10.0)
    for _ in range(1001):
        driven.go_on(1.0)
        driven.now()
    assert driven.clock.ahead == 0.0
    assert abs(driven.now() - 991.0) < 1e-6
    assert [line.partition(" s ")[0] for line in driven.said] == [
        "the wall clock is 10", "the wall clock and the node's clock agree again",
    ]  # fmt: skip


def test_a_fault_lasts_until_both_clocks_are_level() -> None:
    driven = Driven()
    driven.set(-OFF_S)
    assert driven.clock.fault() == ""
    driven.set(-0.01)
    assert driven.clock.fault()
    driven.go_on(150.0)
    assert driven.clock.fault(), "half a second is left"
    driven.go_on(50.0)
    assert driven.clock.fault() == ""
    assert len(driven.said) == 2


def test_a_step_forward_and_back_is_said() -> None:
    driven = Driven()
    driven.set(SENSIBLE_S)
    assert driven.now() == SENSIBLE_S, "prices at most look older"
    assert driven.said == ["the wall clock jumped forward by 300 s; prices are now older by as much"]
    assert driven.clock.fault() == ""
    driven.clock.now()  # a step is dated after the jump
    driven.go_on(60.0)
    driven.set(-SENSIBLE_S)
    assert abs(driven.now() - SENSIBLE_S - 59.4) < 1e-6
    assert driven.clock.fault() == "the wall clock is 299 s behind the node's clock"
    assert len(driven.said) == 2


def test_a_jump_that_is_taken_back_before_anything_was_dated_is_left_at_once() -> None:
    driven = Driven()
    before = driven.clock.now()
    driven.go_on(1.0)
    driven.set(SENSIBLE_S)
    assert driven.now() == SENSIBLE_S + 1.0
    driven.go_on(1.0)
    driven.set(-SENSIBLE_S)
    assert driven.clock.now() == before + timedelta(seconds=2)
    assert (driven.clock.fault(), driven.clock.ahead) == ("", 0.0)
    for _ in range(2):
        driven.set(SENSIBLE_S)
        driven.now()
    driven.set(-2.0 * SENSIBLE_S)
    assert driven.now() == 2.0, "two jumps"
    driven.set(HOUR)
    driven.now()
    driven.go_on(LASTING_S)
    assert driven.now() == HOUR + LASTING_S + 2.0, "followed after a minute"
    driven.set(-HOUR - 10.0)  # further back than it was
    assert abs(driven.now() - LASTING_S - 2.0) < 1e-6
    assert driven.clock.fault() == "the wall clock is 10 s behind the node's clock"


@pytest.mark.parametrize("seconds", [HOUR, 30 * 86_400.0])
def test_a_resume_from_suspend_is_followed_at_once(seconds: float) -> None:
    """The steady clock has counted the time, too."""
    driven = Driven()
    driven.go_on(seconds)
    assert driven.now() == seconds
    assert (driven.clock.fault(), driven.said) == ("", [])


@pytest.mark.parametrize("jump", [SENSIBLE_S + 1.0, 23 * HOUR, 365 * 86_400.0])
def test_a_large_step_forward_is_followed_if_it_lasts(jump: float) -> None:
    driven = Driven()
    driven.set(jump)
    assert driven.now() == 0.0
    assert "ahead of the node's clock" in driven.clock.fault()
    driven.go_on(LASTING_S / 2.0)
    assert driven.now() == LASTING_S / 2.0
    driven.set(-jump)  # it was an error
    assert (driven.now(), driven.clock.fault()) == (LASTING_S / 2.0, "")
    driven.set(jump)
    driven.now()
    driven.go_on(LASTING_S - 1.0)
    assert driven.now() < 2.0 * LASTING_S
    driven.go_on(1.0)
    assert driven.now() > jump
    assert driven.clock.fault() == ""


_steps = st.lists(
    st.tuples(st.floats(0.0, 1e4), st.one_of(st.just(0.0), st.floats(-5.0, 5.0), st.floats(-1e8, 1e8))), max_size=40
)


@given(_steps)
def test_time_rises_and_never_much_slower_than_it_passes(steps: list[tuple[float, float]]) -> None:
    driven, passed = Driven(datetime(2100, 1, 1, tzinfo=UTC)), 0
    first = last = driven.clock.now()
    for seconds, jump in steps:
        before = driven.since
        driven.go_on(seconds)
        driven.set(jump)
        passed += driven.since - before
        now = driven.clock.now()
        assert now > last
        assert now >= first + timedelta(microseconds=passed * 0.99 / 1000 - 1)
        assert bool(driven.clock.fault()) or abs(driven.clock.ahead) <= OFF_S
        last = now


def test_threads_are_told_different_times() -> None:
    driven = Driven()
    found: list[list[datetime]] = [[] for _ in range(4)]

    def ask(times: list[datetime]) -> None:
        times.extend(driven.clock.now() for _ in range(2000))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=ask, args=(times,)) for times in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert all(times == sorted(times) for times in found)
    assert len({time for times in found for time in times}) == 8000


def test_the_machine_s_own_clocks() -> None:
    clock = Clock()
    assert abs((clock.now() - datetime.now(UTC)).total_seconds()) < OFF_S
    assert clock.fault() == ""


# ---- in a node ----


def test_a_hub_lets_prices_age() -> None:
    driven = Driven()
    hub = Hub(Writer(Engine()), Matcher(), clock=driven.clock.now)
    hub.applier.pass_time()
    driven.set(-HOUR)
    times = []
    for _ in range(5):
        driven.go_on(1.0)
        hub.applier.pass_time()
        times.append(hub.engine.now)
    assert all(one < other for one, other in pairwise(times))  # type: ignore[operator]
    assert times[-1] >= BEGIN + timedelta(seconds=4.9)  # type: ignore[operator]


def _price(odds: float) -> dict[str, Any]:
    return {
        "sportsbook": "draftkings", "event_id": "set", "sport": "basketball", "league": "nba",
        "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline",
        "selection": "Boston Celtics", "selection_type": "home", "odds_decimal": odds, "is_live": False,
        "event_start_time": BEGIN + timedelta(hours=5),
    }  # fmt: skip


def _stepped(server: Running, odds: float | None = None) -> None:
    quotes = () if odds is None else [_price(odds)]
    server.node.write(server.node.step, quotes).result(60.0)


def _data(client: Any) -> tuple[str, str]:
    found = client.get("/health").json()
    return found["status"], found["checks"]["data"].get("message", "")


def _clock_lines(server: Running) -> list[str]:
    lines = [json.loads(line) for line in server.log_text().splitlines()]
    return [line["message"] for line in lines if line["event"] == "clock"]


def test_a_node_whose_wall_clock_is_set_back_an_hour(tmp_path: Path) -> None:
    """Prices age, changes are listed, limits hold, and /health says what is wrong until it is not."""
    driven = Driven()
    with running(tmp_path, driven=driven.clock, events=2) as server, server.client("enterprise") as client:
        _stepped(server, 1.9)
        assert _data(client) == ("ok", "")
        driven.set(-HOUR)
        driven.go_on(1.0)
        assert _data(client) == ("degraded", "the wall clock is 3600 s behind the node's clock")
        _stepped(server, 2.0)
        since = client.get("/odds/delta", params={"since": BEGIN.isoformat()}).json()["meta"]["server_time"]
        _stepped(server, 2.1)
        changed = client.get("/odds/delta", params={"since": since, "event": "set"}).json()["data"]
        assert [row["odds_decimal"] for row in changed] == [2.1]
        for _ in range(62):
            driven.go_on(10.0)
            _stepped(server)
        (row,) = client.get("/odds", params={"event": "set"}).json()["data"]
        assert row["rejection"]["guard"] == "stale", "ten minutes passed"
        assert client.get("/health").status_code == 503
        _stepped(server, 2.2)
        assert _data(client)[0] == "degraded"
        driven.set(HOUR)
        _stepped(server)
        assert _data(client) == ("ok", "")
        assert [line.partition(" s ")[0] for line in _clock_lines(server)] == [
            "the wall clock is 3600", "the wall clock and the node's clock agree again",
        ]  # fmt: skip


@pytest.mark.exhaustive
def test_the_demo_goes_on_when_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    """Over the machine's own steady clock; `Date`, which the page's ages go by, stays with the board."""
    behind = [0]
    clock = Clock(lambda: time.time_ns() - behind[0])
    server = Running(tmp_path, driven=clock)
    server.service._run = demonstrate
    server.played.set()
    with contextlib.closing(contextlib.ExitStack()) as ends:
        ends.callback(server.stop)
        client = ends.enter_context(server.start().client("enterprise"))
        until(lambda: _data(client)[0] == "ok", "the first prices")
        behind[0] = round(HOUR) * SECOND
        number, before = server.node.engine.number, server.node.engine.now
        until(lambda: server.node.engine.number > number + 2, "more steps")
        assert server.node.engine.now > before  # type: ignore[operator]
        assert _data(client)[0] == "degraded"

        def apart() -> float:
            date = parsedate_to_datetime(client.get("/health").headers["date"])
            return abs((server.node.clock.now() - date).total_seconds())

        until(lambda: apart() < 60.0, "the node's time as Date")
        behind[0] = 0
        until(lambda: _data(client) == ("ok", ""), "getting well")


def test_limits_hold_when_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    """A minute is neither counted twice nor begun anew, and what callers wait for is in their time."""
    driven = Driven()
    with running(tmp_path, driven=driven.clock, events=2) as server, server.client("free") as client:
        before = client.get("/sports").headers
        driven.set(-HOUR)
        driven.go_on(0.05)
        after = client.get("/sports").headers
        assert int(after["x-ratelimit-remaining"]) == int(before["x-ratelimit-remaining"]) - 1
        assert int(after["x-ratelimit-reset"]) == int(before["x-ratelimit-reset"]) - 3600
        driven.go_on(61.0)
        fresh = client.get("/sports").headers
        assert fresh["x-ratelimit-remaining"] == before["x-ratelimit-remaining"]
        assert 0 < int(fresh["x-ratelimit-reset"]) - driven.at / SECOND <= 61


def test_health_says_that_usage_is_not_written(tmp_path: Path) -> None:
    with running(tmp_path, driven=Driven().clock, events=2) as server, server.client("enterprise") as client:
        _stepped(server, 1.9)
        limits: Any = server.node.limits
        path = limits.usage._file.connection.execute("PRAGMA database_list").fetchone()[2]
        with contextlib.closing(sqlite3.connect(path)) as file:
            for name, other, expected in (
                ("usage", "gone", ("degraded", "failing: usage")),
                ("gone", "usage", ("ok", "")),
            ):  # fmt: skip
                file.execute(f"ALTER TABLE {name} RENAME TO {other}")
                file.commit()
                client.get("/sports")
                limits.usage.flush()
                assert _data(client) == expected
        said = [json.loads(line) for line in server.log_text().splitlines()]
        assert [(line["event"], line["what"]) for line in said if line["event"] in ("failing", "works again")] == [
            ("failing", "usage"), ("works again", "usage"),
        ]  # fmt: skip


def test_minutes_of_an_hour_ago_do_not_come_again() -> None:
    driven = Driven()
    limits = Limits(clock=driven.clock.time, ahead=lambda: driven.clock.ahead)
    assert [limits.count_request("acme", 2).allowed for _ in range(3)] == [True, True, False]
    driven.go_on(HOUR)
    assert limits.count_request("acme", 2).allowed
    driven.set(-HOUR)
    assert limits.count_request("acme", 2).allowed, "the minute of an hour ago was full"
