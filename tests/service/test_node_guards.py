"""Guards of plugins on a node: named by its settings, seen in what it answers, and stopped if they fail or are slow."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from support.plugin_packages import install
from support.service_running import METRICS_TOKEN, running, until

from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine_service.board.node_guards import STEPS, GuardWatch, guards_of
from oddsengine_service.node import Failures
from oddsengine_service.settings import SettingsError, load

MODULE = """
import time
from oddsengine import Guard

FAULTS = set()

def long_(prices):
    if "raise" in FAULTS:
        raise KeyError("a secret of mine")
    if "wait" in FAULTS:
        time.sleep(0.02)
    return prices["odds_decimal"] > 3.0

LONG = Guard(long_, "odds above 3 are not for us", ("odds_decimal",))
"""


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    names = {"long_odds": "nodeguards:LONG", "broken": "nodeguards:NONE", "stale": "nodeguards:LONG"}
    folder = install(tmp_path_factory.mktemp("guards"), "nodeguards", {"nodeguards": MODULE}, "0.5", guards=names)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop("nodeguards", None)


@pytest.fixture
def faults() -> Iterator[set[str]]:
    import nodeguards  # type: ignore[import-not-found]

    yield nodeguards.FAULTS
    nodeguards.FAULTS.clear()


def named(*names: str, **more: str) -> tuple[dict[str, bool], dict[str, str]]:
    """What a node's engine gets of settings with some names, and what cannot be used."""
    failed: dict[str, str] = {}
    environ = {"ODDSENGINE_DATA_GUARDS": ",".join(names), **more}
    return guards_of(load(None, environ), failed.__setitem__), failed


def test_names_of_settings() -> None:
    assert named() == ({}, {})
    assert named("long_odds") == ({"long_odds": True}, {})
    usable, failed = named("broken", "long_odds")
    assert usable == {"long_odds": True}
    assert failed["guard broken"].startswith(
        "the guard 'broken' of nodeguards 0.5 cannot be used: importing nodeguards:NONE raises AttributeError"
    )
    for name, sentence in (
        ("missing", "data.guards must be names of guards that packages register (broken, long_odds, stale), got"),
        ("outlier", "got 'outlier'; outlier is one of ours and always runs"),
        ("stale", "data.guards is ambiguous: the guard 'stale' is registered by oddsengine and by nodeguards 0.5"),
    ):
        with pytest.raises(SettingsError) as error:
            named(name)
        assert sentence in str(error.value)
    with pytest.raises(SettingsError, match=r"data.guards cannot be combined with \[scale\]"):
        named("long_odds", ODDSENGINE_SCALE_ROLE="writer", ODDSENGINE_SCALE_SERVERS="nats://127.0.0.1:4222")


def test_what_it_rejects_is_shown_with_its_name_and_reason(tmp_path: Path, faults: set[str]) -> None:
    """In prices, explanations and metrics; when it fails, /health names it, and its prices are accepted again."""
    settings = {"ODDSENGINE_DATA_GUARDS": "long_odds"}
    with running(tmp_path, events=2, settings=settings) as server, server.client() as client:
        prices = client.get("/odds?limit=200").json()["data"]
        shown = {(each["odds_decimal"] > 3.0, (each["rejection"] or {}).get("guard")) for each in prices}
        assert (True, "long_odds") in shown
        assert (True, None) not in shown
        assert (False, "long_odds") not in shown
        one = next(each for each in prices if each["rejection"] and each["rejection"]["guard"] == "long_odds")
        assert one["rejection"]["reason"] == "odds above 3 are not for us"
        ev = client.get("/opportunities/ev?min_ev=-5&limit=200").json()["data"]
        assert ev
        assert max(each["odds_decimal"] for each in ev) <= 3.0
        metrics = _metrics(server.origin)
        assert 'oddsengine_set_aside{guard="long_odds"}' in metrics
        assert 'oddsengine_guard_seconds_total{guard="long_odds"}' in metrics

        faults.add("raise")
        server.advance()
        health = client.get("/health").text
        assert "failing: guard long_odds" in health, health
        assert "a secret of mine" not in health
        server.advance(STEPS)
        until(lambda: "guard stopped" in server.log_text(), "the guard's stop")
        assert "works again" not in server.log_text()
        faults.clear()
        server.advance()
        assert 'guard="long_odds"' not in _metrics(server.origin)


def _metrics(origin: str) -> str:
    answer = httpx2.get(f"{origin}/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}, verify=False)
    return answer.text


def test_one_that_takes_too_much_of_steps_is_stopped(faults: set[str]) -> None:
    """Twenty times more than it does not; a single slow step does nothing."""
    engine, reported = Engine(guards={"long_odds": True}), list[tuple[str, str]]()
    _ = engine.view(keep=True)
    watch = GuardWatch(engine, lambda *what: reported.append(what))
    batches = World(3, events=1).run(200)

    def step(seconds: float) -> None:
        batch = next(batches)
        engine.step(batch.quotes, batch.now)
        watch.after(seconds)

    step(0.1)
    for at in range(3 * STEPS):
        (faults.discard if at % 2 else faults.add)("wait")
        step(0.1)
    assert engine.plugin_guards
    faults.add("wait")
    for _ in range(STEPS):
        step(1.0)  # a tenth of it is more
    assert engine.plugin_guards
    steps = 0
    while engine.plugin_guards:
        step(0.1)
        steps += 1
    assert STEPS <= steps < 3 * STEPS  # in some, nothing is judged
    said = [(what, text) for what, text in reported if text]
    assert [what for what, _ in said] == ["guard long_odds"]
    assert "the guard 'long_odds' of nodeguards 0.5 takes over a tenth of each step: 0.0" in said[0][1]
    watch.after(0.1)


def test_a_failure_that_has_passed_is_not_reported_any_more(faults: set[str]) -> None:
    engine, failing = Engine(guards={"long_odds": True}), Failures()
    _ = engine.view(keep=True)
    watch = GuardWatch(engine, failing.report)
    for number, batch in enumerate(World(3, events=12).run(6)):
        (faults.add if number == 2 else faults.discard)("raise")
        engine.step(batch.quotes, batch.now)
        watch.after(0.1)
        assert ("guard long_odds" in failing) == (number == 2)
