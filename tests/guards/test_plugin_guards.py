"""Guards of plugins: on tables and live boards alike, after ours, and one that fails rejects nothing."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.plugin_packages import install

import oddsengine as oe
from oddsengine.catalog import reasons
from oddsengine.guards.plugin_guards import GUARD_COLUMNS, Guard, GuardError, loaded, own_names, verdict
from oddsengine.live import searcher
from oddsengine.live.snapshot import dump, restore
from oddsengine.plugins import GUARDS, AmbiguousNameError, PluginError, find
from oddsengine.simulate import World
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.tape import Tape, TapeError, reading, replay, resume

MODULE = """
import polars as pl
from oddsengine import Guard

seen = []

def long(prices):
    seen.append(prices)
    return prices["odds_decimal"] > 4.0

def far(prices):
    odds = pl.col("odds_decimal")
    return prices.select(odds > 1.08 * odds.median().over("market", "outcome")).to_series()

def wrong(prices):
    if prices["event_id"][0].startswith("nba"):
        raise KeyError("not of the NBA")
    return [1.0] * prices.height

def some_fail(prices):
    if prices["market_type"].is_in(["h2h", "moneyline"]).any():
        raise ValueError("a market of threes")
    return prices["odds_decimal"] > 2.5

def nba(prices):
    return prices["league"] == "nba"

class Panic(BaseException):
    pass

class Odd:
    def __array__(self, *_, **more):
        raise SystemExit(3)

def odd(prices):
    return Odd()

def panic(prices):
    raise Panic("all is lost")

LONG = Guard(long, "odds above 4 {x}")
FAR = Guard(far, "far above the median", ("market", "outcome", "odds_decimal"))
WRONG = Guard(wrong, "never", ("event_id",))
PANIC = Guard(panic, "never", ("line",))
ODD = Guard(odd, "never", ["line"])
SOME_FAIL = Guard(some_fail, "above 2.5", ("market_type", "odds_decimal"))
NBA = Guard(nba, "not the NBA", ("league",))
TWICE = Guard(long, "never", ("line", "line"))
LINES = Guard(long, "two" + chr(10) + "lines")
NO_COLUMN = Guard(long, "never", ("odds_decimal", "last_seen_at"))
NO_REASON = Guard(long, " ")
"""
BOTH = {"long_odds": True, "far_odds": True}


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    names = {
        "long_odds": "guardpack:LONG", "far_odds": "guardpack:FAR", "wrong_odds": "guardpack:WRONG",
        "panics": "guardpack:PANIC", "odd": "guardpack:ODD", "some_fail": "guardpack:SOME_FAIL", "nba": "guardpack:NBA",
        "twice": "guardpack:TWICE", "lines": "guardpack:LINES", "a b": "guardpack:LONG", "all": "guardpack:LONG",
        "no_column": "guardpack:NO_COLUMN", "no_reason": "guardpack:NO_REASON",
        "gone": "guardpack:GONE", "a_number": "guardpack:seen", "outlier": "guardpack:LONG",
    }  # fmt: skip
    folder = install(tmp_path_factory.mktemp("guards"), "guardpack", {"guardpack": MODULE}, "0.4", guards=names)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop("guardpack", None)


def played(guards: Any = BOTH, seconds: float = 40.0, **of: Any) -> tuple[oe.Engine, oe.View, list[str]]:
    """An engine with some guards that has followed a world, its view, and what it has said."""
    engine, said = oe.Engine(guards=guards, **of), []
    view = engine.view()
    for batch in World(3, events=12, live=0.3, tick=2.0).run(seconds):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        said.append(repr(update.of(view).hits.id.tolist()))
    return engine, view, said


def test_a_live_board_is_judged_as_a_table_is() -> None:
    """Whatever has changed since, as `far_odds` compares a price with the others of its bet."""
    engine, view, _ = played()
    table, live = engine.table(), view.opportunities()
    again = oe.find_all(table, guards=BOTH, now=engine.moment)
    for kind in ("ev", "arbitrage", "low_hold", "middles"):
        one, other = getattr(live, kind), getattr(again, kind)
        assert one["id"].sort().to_list() == other["id"].sort().to_list()
    without = oe.find_all(table, now=engine.moment)
    assert 0 < live.ev.height < without.ev.height
    counts = engine.rejected_counts()
    rejected = oe.rejected(table, guards=BOTH, now=engine.moment)
    assert counts["far_odds"] > 5
    assert {name: rejected.filter(guard=name).height for name in BOTH} == {name: counts[name] for name in BOTH}
    assert set(rejected.filter(guard="long_odds")["reason"]) == {"odds above 4 {x}"}
    assert rejected.filter(guard="long_odds")["odds_decimal"].min() > 4.0  # type: ignore[operator]
    assert live.ev["odds_decimal"].max() <= 4.0  # type: ignore[operator]


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where a guard fails on some of the markets that are judged together: it rejects in the others."""
    monkeypatch.setattr(searcher, "_LEAST_ROWS", 200)
    for guards in (BOTH, {"some_fail": True}):
        one, many = played(guards, 16.0), played(guards, 16.0, threads=3)
        assert one[2] == many[2]
        assert one[0].rejected_counts() == many[0].rejected_counts()
        assert one[0].rejected_counts()[next(iter(guards))] > 5
    (guard,) = many[0].plugin_guards
    assert guard.failures["it raises ValueError: a market of threes"] > 5
    with pytest.warns(oe.OddsWarning, match="a market of threes"):
        again = oe.rejected(many[0].table(), guards={"some_fail": True}, now=many[0].moment)
    assert again.filter(guard="some_fail").height == many[0].rejected_counts()["some_fail"]


def test_it_sees_what_ours_accept_with_the_columns_it_reads() -> None:
    import guardpack  # type: ignore[import-not-found]  # installed by this module

    guardpack.seen.clear()
    table = sample()
    ours = oe.rejected(table).filter(pl.col("guard") != "ev_cap")["row"]  # which runs after all others
    oe.find_ev(table, guards={"long_odds": True})
    (prices,) = guardpack.seen
    assert prices.columns == [*GUARD_COLUMNS]
    kept = table.filter(~pl.col("row").is_in(ours.implode()))
    key = ["sportsbook", "event_id", "market_type", "selection", "odds_decimal"]
    assert prices.select(key).sort(key).equals(kept.select(key).sort(key))
    bets = prices.group_by("market", "outcome").agg(pl.col("sportsbook").n_unique(), pl.len())
    assert bets["len"].max() > 3


def sample() -> pl.DataFrame:
    return oe.read_odds(SAMPLE_BOARD)


def test_one_that_fails_rejects_nothing_and_says_so() -> None:
    table = sample()
    bad = {"wrong_odds": True, "panics": True, "odd": True}
    with pytest.warns(oe.OddsWarning) as warned:
        found = oe.find_ev(table, guards=bad)
    assert found.equals(oe.find_ev(table))
    texts = [str(each.message) for each in warned]
    assert len(texts) == len(bad)
    assert re.match(
        r"the guard 'wrong_odds' of guardpack 0.4 fails, and rejects .*: it must return a boolean for", texts[0]
    )
    panics = (
        r"the guard 'panics' of guardpack 0.4 fails, and rejects nothing then: it raises Panic: all is lost \(\d+ times"
    )
    assert re.match(panics, texts[1])
    assert "it must return a boolean for each price, got <" in texts[2]
    history = table.with_columns(last_seen_at=pl.col("last_seen_at").fill_null(strategy="forward"))
    with pytest.warns(oe.OddsWarning, match=panics):
        oe.scan_history(history, guards={"panics": True})
    engine = oe.Engine(guards={"wrong_odds": True})
    _ = engine.view()
    for batch in World(3, events=4).run(3):
        engine.step(batch.quotes, batch.now)
    (guard,) = engine.plugin_guards
    assert guard.failures.total() >= 1
    assert guard.seconds > 0.0


def test_it_is_stopped_between_steps_and_on_a_tape(tmp_path: Path) -> None:
    """A replay stops it at the same step, and needs it."""
    engine, writer = resume(tmp_path / "tape", oe.Engine(guards=BOTH))
    view = engine.view(keep=True)
    with writer:
        for number, batch in enumerate(World(3, events=6).run(12)):
            if number == 6:
                engine.stop_guard("long_odds")
            engine.step(batch.quotes, batch.now)
            counts = engine.rejected_counts()
            assert ("long_odds" in counts) == (number < 6)
    left = oe.find_ev(engine.table(), guards={"far_odds": True}, now=engine.moment)
    assert view.opportunities().ev["id"].sort().to_list() == left["id"].sort().to_list()
    again = replay(tmp_path / "tape")
    assert [guard.name for guard in again.plugin_guards] == ["far_odds"]
    assert again.state_hash() == engine.state_hash()
    restored = oe.Engine(guards=BOTH)
    restore(restored, dump(engine))
    assert [guard.name for guard in restored.plugin_guards] == ["far_odds"]
    assert restored.rejected_counts() == engine.rejected_counts()
    assert replay(tmp_path / "tape", restored).number == engine.number
    assert Tape(tmp_path / "tape").without == ("long_odds=True", "far_odds=True")
    with pytest.raises(TapeError, match=r"was recorded with guards disabled: long_odds=True, far_odds=True, but"):
        replay(tmp_path / "tape", oe.Engine())
    with pytest.raises(ValueError, match="no guard of a plugin that runs has the name 'long_odds'"):
        engine.stop_guard("long_odds")


def test_what_a_stop_changes_is_in_the_next_update() -> None:
    """Whatever was read in between."""
    engine, view, _ = played()
    before = {*view.opportunities().ev["id"]}
    engine.stop_guard("long_odds")
    assert {*view.opportunities().ev["id"]} == before
    assert "long_odds" in engine.rejected_counts()
    update = engine.step([], engine.now)
    more = {*view.opportunities().ev["id"]} - before
    assert more
    assert more <= {f"{ident:016x}" for ident in update.of(view).hits.id.tolist()}
    assert engine.stopped_guards == ("long_odds",)


def test_an_engine_has_the_guards_of_a_tape_in_its_order(tmp_path: Path) -> None:
    engine, writer = resume(tmp_path / "tape", oe.Engine(guards=BOTH))
    with writer:
        held: dict[str, Any] = {}
        for number, batch in enumerate(World(3, events=3).run(6)):
            engine.step(batch.quotes, batch.now)
            held = dump(engine) if number == 3 else held
    for guards in ({}, {"far_odds": True}, dict(reversed(BOTH.items()))):
        with pytest.raises(TapeError, match="was recorded with guards disabled: long_odds=True, far_odds=True, but"):
            replay(tmp_path / "tape", oe.Engine(guards=guards))
        other = oe.Engine(guards=guards)
        restore(other, held)
        with pytest.raises(TapeError, match="was recorded with guards"):
            replay(tmp_path / "tape", other)
    later = oe.Engine(guards={**BOTH, "nba": True})
    restore(later, held)
    assert [guard.name for guard in later.plugin_guards] == ["long_odds", "far_odds", "nba"]


def test_a_tape_says_which_package_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, writer = resume(tmp_path / "tape", oe.Engine(guards={"nba": True}))
    with writer:
        for batch in World(3, events=2).run(2):
            engine.step(batch.quotes, batch.now)
    monkeypatch.setattr(reading, "find", lambda *_: None)
    with pytest.raises(TapeError, match="was recorded with the guard 'nba' of a package that is not installed"):
        replay(tmp_path / "tape")
    assert Tape(tmp_path / "tape").frame().height > 0  # its prices


@pytest.mark.filterwarnings("ignore:.*games are not used")
def test_names_are_read_once_of_iterators_and_a_null_rejects_nothing() -> None:
    table = sample()
    some = oe.find_ev(table, guards=["stale", "outlier", "nba"])
    assert oe.find_ev(table, guards=iter(["stale", "outlier", "nba"])).equals(some)
    assert oe.Engine(guards=(name for name in oe.GUARDS)).guards == {}
    one = pl.col("event_id") == table["event_id"][0]
    known = oe.rejected(table, guards={"nba": True}).filter(guard="nba")
    without = table.with_columns(league=pl.when(one).then(None).otherwise("league"))
    assert oe.rejected(without, guards={"nba": True}).filter(guard="nba").height == known.filter(~one).height > 0
    oe.Engine(guards={"nba": False})
    assert reasons.reason("nba") == "not the NBA"
    for wrong in (5, False, "stale"):
        with pytest.raises(ValueError, match="guards must be a list of guard names, or changes by name, got"):
            oe.Engine(guards=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown guard 'all'"):
        oe.Engine(guards=["stale", "all"])


def test_names_and_objects_that_cannot_be_used() -> None:
    for name, why in (
        ("no_column", r"its columns must be among event_id, .* got 'last_seen_at'"),
        ("no_reason", "its reason must be a line of at most 300 characters, got ' '"),
        ("lines", "its reason must be a line of at most 300 characters, got 'two"),
        ("twice", "its columns must be different, got"),
        ("a b", "its name must be of letters, digits, _, . and -"),
        ("gone", "importing guardpack:GONE raises AttributeError"),
        ("a_number", r"guardpack:seen must be a Guard, got \["),
    ):
        with pytest.raises(PluginError, match=rf"the guard '{name}' of guardpack 0.4 cannot be used: {why}"):
            oe.Engine(guards={name: True})
    with pytest.raises(ValueError, match=r"unknown guard 'no_such'; allowed: bad_price"):
        oe.Engine(guards=["no_such"])
    with pytest.raises(ValueError, match="'no_such' is neither a guard nor a threshold"):
        oe.find_ev(sample(), guards={"no_such": True})
    with pytest.raises(ValueError, match=r"guards: long_odds must be true or false, got 3.0"):
        oe.Engine(guards={"long_odds": 3.0})
    assert oe.Engine(guards={"long_odds": False}).guards == {}
    assert loaded({"outlier": False, "stale": 30.0}) == ()  # ours, whatever a package registers
    with pytest.raises(AmbiguousNameError, match=r"'outlier' is registered by oddsengine and by guardpack 0.4"):
        find(GUARDS, "outlier", own_names())


def test_a_list_of_names_is_all_that_runs() -> None:
    engine = oe.Engine(guards=["stale", "long_odds"])
    assert [guard.name for guard in engine.plugin_guards] == ["long_odds"]
    assert {reasons.NAMES[code] for code in engine.off} == set(oe.GUARDS) - {"stale"}


def test_verdicts_are_of_any_kind_of_booleans() -> None:
    prices = pl.DataFrame({"line": [1.0, 2.0]})
    answers: list[Any] = [
        [True, False], np.array([True, False]), pl.Series([True, False]), (True, False), pl.Series([True, None]),
    ]  # fmt: skip
    for answer in answers:
        assert verdict(Guard(lambda _, answer=answer: answer, "x"), prices).tolist() == [True, False]  # type: ignore[misc]
    for answer in (
        None,
        [True],
        [1, 0],
        True,
        pl.Series([None, None]),
        np.ma.array([True, False], mask=True),
        prices,
        "no",
        [[True, False]],
    ):
        with pytest.raises(GuardError, match=r"a boolean for each price, got .* for 2"):
            verdict(Guard(lambda _, answer=answer: answer, "x"), prices)  # type: ignore[misc]
