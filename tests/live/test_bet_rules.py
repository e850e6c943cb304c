"""Minimum, step and delay of bets on a live board: rows, legs and what the service shows."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from live.test_depth import OVER, price
from live.test_exact import anew, equal

import oddsengine as oe
from oddsengine.detection.explain import explain
from oddsengine.live.engine import Engine
from oddsengine.tape import resume

NOW = datetime(2026, 2, 8, tzinfo=UTC)
RULES: dict[str, Any] = {"min_bet": 2.0, "bet_step": 0.01, "bet_delay": 5.0}
PRICES = [price("betfair_exchange", "Over", 2.2, max_bet=90.0, **RULES), price("draftkings", "Under", 1.95)]


def legs_of(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Rules of each leg of an arbitrage, by book."""
    return {leg["sportsbook"]: {name: leg.get(name) for name in RULES} for leg in frame["legs"][0].to_list()}


@pytest.mark.parametrize("written", [list, json.dumps], ids=["mappings", "json"])
def test_rules_of_a_price_are_on_its_legs(tmp_path: Path, written: Callable[[Any], Any]) -> None:
    engine, writer = resume(tmp_path / "tape")
    with writer:
        view = engine.view(keep=True)
        engine.step(written(PRICES), NOW)
    expected = {"betfair_exchange": RULES, "draftkings": dict.fromkeys(RULES)}
    for board in (engine, anew(engine), oe.replay(tmp_path / "tape")):
        assert legs_of(board.views[0].opportunities().arbitrage) == expected
        assert board.table().filter(sportsbook="betfair_exchange").select(list(RULES)).to_dicts() == [RULES]
    found = oe.find_arbitrage(engine.table(), now=engine.moment)
    assert legs_of(found) == legs_of(view.opportunities().arbitrage)
    equal(engine)


def test_rules_are_those_of_the_last_price() -> None:
    engine = Engine()
    engine.step([price("kalshi", "Over", 2.2, OVER, **RULES)], NOW)
    assert engine.table().select("levels", *RULES).width == 4
    engine.step([price("kalshi", "Over", 2.0, bet_step=0.5)], NOW + timedelta(seconds=1))
    assert engine.table().select(list(RULES)).row(0) == (None, 0.5, None)
    engine.step([price("kalshi", "Over", 1.9)], NOW + timedelta(seconds=2))
    assert set(RULES).isdisjoint(engine.table().columns)
    equal(engine)


def test_an_explanation_says_minimum_step_and_delay() -> None:
    odds = pl.DataFrame(PRICES, infer_schema_length=None).with_columns(last_seen_at=NOW)
    found = oe.find_arbitrage(odds, now=NOW)
    text = str(explain(odds, found["id"][0], now=NOW))
    assert "at betfair_exchange, odds 2.2, stake 47.68 %; minimum 2, in steps of 0.01, accepted after 5 s" in text
    assert "at draftkings, odds 1.95, stake 52.32 %\n" in text
    shown = str(oe.show(found)).splitlines()
    assert ["accepted after 5 s" in line for line in shown if "220.5" in line] == [True, False]
    plan = oe.arbitrage_plan(found, bankroll=100)
    assert dict(plan.select("sportsbook", "bet_delay").rows()) == {"betfair_exchange": 5.0, "draftkings": None}


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"min_bet": -1.0}, "not from 0 to 1e+12"),
        ({"bet_step": 0.0}, "not above 0, up to 1e+12"),
        ({"bet_step": "some"}, "not above 0, up to 1e+12"),
        ({"bet_delay": 3601.0}, "not from 0 to 3600 seconds"),
    ],
)
@pytest.mark.parametrize("written", [list, json.dumps], ids=["mappings", "json"])
def test_rules_that_are_none(own: dict[str, Any], reason: str, written: Callable[[Any], Any]) -> None:
    engine = Engine()
    update = engine.step(written([price("fanduel", "Over", 2.2, **own), price("betmgm", "Over", 2.0, **RULES)]), NOW)
    (row,) = update.rejected.to_dicts()
    assert (row["row"], row["field"], row["reason"]) == (0, next(iter(own)), reason)
    assert engine.table().select(list(RULES)).to_dicts() == [RULES]
