"""Prices with levels and fees of their own on a live board: what a view shows is what the table gives."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from live.test_engine import WIDE, same_frames
from live.test_exact import anew, equal
from support.effort import less
from support.rows import whatever_is_found

import oddsengine as oe
from oddsengine.live.engine import Engine
from oddsengine.live.recorder import Recorder
from oddsengine.maths.depth import fill
from oddsengine.maths.odds import charged
from oddsengine.simulate import World
from oddsengine.tape import resume

NOW = datetime(2026, 2, 8, tzinfo=UTC)
OVER, UNDER = [(2.20, 100.0), (2.16, 200.0), (2.10, 500.0)], [(1.90, 80.0), (1.88, 150.0), (1.85, 400.0)]
ASKED: tuple[dict[str, Any], ...] = (
    WIDE,
    WIDE | dict(stake=50.0),
    WIDE | dict(stake=2000.0, commission={"novig": 0.01}),
    WIDE | dict(stake=300.0, books=["novig", "matchbook", "draftkings", "fanduel"], method="multiplicative"),
)


def price(book: str, side: str, odds: float, ladder: list[tuple[float, float]] | None = None, **own: Any) -> Any:
    if ladder is not None:
        own["levels"] = [{"odds_decimal": d, "stake": s} for d, s in ladder]
    return {"sportsbook": book, "event_id": "e1", "sport": "basketball", "home_team": "A", "away_team": "B",
           "market_type": "total_points", "selection": side, "line": 220.5, "odds_decimal": odds,
            "last_seen_at": NOW.isoformat(), **own}  # fmt: skip


def batches(steps: int) -> Iterator[Any]:
    """A world in which a few exchange prices have fees of their own."""
    for batch in World(11, events=3, live=0.4, tick=3.0, pace=20.0, hazards=True, levels=True).run(steps):
        for at, quote in enumerate(batch.quotes):
            if quote["sportsbook"] == "matchbook" and at % 3 == 0:
                quote["commission"] = 0.04
            if quote["sportsbook"] == "novig" and at % 4 == 0:
                quote["contract_fee"] = 0.03
        yield batch


def test_views_for_a_stake_are_the_table_for_a_stake() -> None:
    engine = Engine()
    views = [engine.view(**words, keep=True) for words in ASKED]
    seen = 0
    for number, batch in enumerate(batches(less(300, 60))):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        if number % less(5, 15):
            continue
        equal(engine)
        prepared = oe.prepare(engine.table(), now=engine.moment)
        for view, words in zip(views, ASKED, strict=True):
            with whatever_is_found():
                whole = oe.find_all(prepared, **words)
            same_frames(view.opportunities(), whole)
            seen += whole.arbitrage.height
    assert seen > 50


def test_a_stake_changes_what_is_found() -> None:
    engine = Engine()
    views = [engine.view(**words, keep=True) for words in ASKED[:3]]
    for batch in batches(30):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    best, small, large = (view.opportunities().low_hold for view in views)
    holds = [dict(frame.select("id", "hold_percentage").rows()) for frame in (best, small, large)]
    both = set(holds[0]) & set(holds[1])
    assert any(holds[1][one] > holds[0][one] + 1e-9 for one in both)
    assert all(holds[1][one] >= holds[0][one] - 1e-9 for one in both)
    assert any(large_hold > holds[0][one] + 1e-9 for one, large_hold in holds[2].items() if one in holds[0])


@pytest.mark.parametrize("written", [list, json.dumps], ids=["mappings", "json"])
def test_a_view_prices_legs_for_its_stake(written: Callable[[Any], Any]) -> None:
    engine = Engine()
    best, staked = engine.view(keep=True), engine.view(stake=200, keep=True)
    quotes = [price("fanduel", "Over", 2.2, OVER), price("draftkings", "Under", 1.9, UNDER, max_bet=80)]
    engine.step(written(quotes), NOW)
    implied = sum(1.0 / fill(side, 200.0).odds for side in (OVER, UNDER))
    row = staked.opportunities().arbitrage.row(0, named=True)
    assert row["profit_percent"] == pytest.approx(100.0 * (1.0 / implied - 1.0))
    assert [leg["max_bet"] for leg in row["legs"]] == [800.0, 630.0]
    assert [leg["odds_decimal"] for leg in row["legs"]] == [2.2, 1.9]
    found = best.opportunities().arbitrage
    assert [leg["max_bet"] for leg in found.row(0, named=True)["legs"]] == [None, 80.0]
    sizes = oe.largest_arbitrages(found).row(0, named=True)
    assert (sizes["largest_payout"], round(sizes["largest_profit"], 6)) == (pytest.approx(434.0), 4.925926)
    # A deeper book, whose best price is the same: only the view for a stake changes.
    update = engine.step(written([price("fanduel", "Over", 2.2, [(2.2, 1000.0)])]), NOW + timedelta(seconds=1))
    assert {view for view, change in update.views.items() if change.status.size} == {staked}
    implied = 1.0 / 2.2 + 1.0 / fill(UNDER, 200.0).odds
    assert staked.opportunities().arbitrage["profit_percent"][0] == pytest.approx(100.0 * (1.0 / implied - 1.0))


def test_fees_of_a_price_come_before_those_of_its_book() -> None:
    engine = Engine()
    view, mine = engine.view(min_ev=-50, keep=True), engine.view(min_ev=-50, commission={"kalshi": 0.1}, keep=True)
    quotes = [price("kalshi", "Over", 2.0, contract_fee=0.035), price("kalshi", "Under", 1.96),
              price("betfair_exchange", "Over", 2.0, commission=0.1), price("pinnacle", "Over", 1.95),
              price("pinnacle", "Under", 1.95)]  # fmt: skip
    engine.step(quotes, NOW)

    def net(frame: Any) -> dict[tuple[str, str], float]:
        rows = frame.select("sportsbook", "selection", "net_odds").rows()
        return {(book, side): odds for book, side, odds in rows}

    found = net(view.opportunities().ev)
    assert found["kalshi", "Over"] == pytest.approx(float(charged(2.0, 0.0, 0.035)))
    assert found["kalshi", "Under"] == pytest.approx(float(charged(1.96, 0.0, 0.07)))
    assert found["betfair_exchange", "Over"] == pytest.approx(1.9)
    assert net(mine.opportunities().ev)["kalshi", "Over"] == pytest.approx(1.9)
    table = engine.table()
    assert table["contract_fee"].to_list().count(0.035) == 1
    assert net(oe.find_ev(table, min_ev=-50)) == pytest.approx(found)


def test_levels_outlive_snapshots_and_tapes(tmp_path: Path) -> None:
    engine, writer = resume(tmp_path / "tape")
    with writer:
        view = engine.view(stake=200, keep=True)
        engine.step([price("fanduel", "Over", 2.2, OVER), price("draftkings", "Under", 1.9, UNDER)], NOW)
    expected = view.opportunities().arbitrage
    assert expected.height == 1
    for other in (anew(engine), oe.replay(tmp_path / "tape")):
        assert [each.wanted.stake for each in other.views] == [200.0]
        assert other.views[0].opportunities().arbitrage.equals(expected)
        assert other.table()["levels"].to_list() == engine.table()["levels"].to_list()


@pytest.mark.parametrize("more", [{}, {"levels": []}], ids=["none", "empty"])
def test_levels_and_fees_are_those_of_the_last_price(more: dict[str, Any]) -> None:
    """Other texts stay if a quote has none."""
    engine = Engine()
    view = engine.view(stake=200, min_profit=-50, keep=True)
    first = price("fanduel", "Over", 2.2, OVER, commission=0.1, deep_link="https://fanduel.example/1")
    engine.step([first, price("draftkings", "Under", 1.9)], NOW)
    suspended = {**price("fanduel", "Over", 2.0), "odds_decimal": None, "is_active": False}
    engine.step([suspended], NOW + timedelta(seconds=1))
    assert len(engine.table().filter(sportsbook="fanduel")["levels"][0]) == 3  # it says nothing of the price
    engine.step([price("fanduel", "Over", 2.0, **more)], NOW + timedelta(seconds=2))
    assert {"levels", "commission"}.isdisjoint(engine.table().columns)
    assert "https://fanduel.example/1" in engine.table()["deep_link"].to_list()
    legs = view.opportunities().arbitrage["legs"][0].to_list()
    assert {leg["net_odds"] for leg in legs} == {2.0, 1.9}
    equal(engine)


def test_a_batch_that_is_undone_leaves_the_levels() -> None:
    engine = Engine()
    view = engine.view(stake=200, keep=True)
    engine.step([price("fanduel", "Over", 2.2, OVER), price("draftkings", "Under", 1.9, UNDER)], NOW)
    before, held = view.opportunities().arbitrage, engine.table()["levels"].to_list()

    class Full(Recorder):
        """A recorder whose disk is full."""

        def batch(self, *_: Any) -> None:
            raise OSError("no space left")

    engine.record(Full())
    quotes = [price("fanduel", "Over", 2.2, [(2.2, 1.0)]), price("betmgm", "Over", 2.0, UNDER, contract_fee=0.02)]
    with pytest.raises(OSError, match="no space"):
        engine.step(quotes, NOW + timedelta(seconds=1))
    assert engine.table()["levels"].to_list() == held
    assert "contract_fee" not in engine.table().columns
    assert view.opportunities().arbitrage.equals(before)
    equal(engine)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"levels": [{"odds_decimal": 1.0, "stake": 5.0}]}, "not up to 100 levels"),
        ({"levels": [{"odds_decimal": 2.0, "stake": -5.0}]}, "not up to 100 levels"),
        ({"levels": [{"odds_decimal": 2.0, "stake": 1.0}] * 101}, "not up to 100 levels"),
        ({"levels": [{"odds_decimal": 2.0}]}, "not up to 100 levels"),
        ({"levels": [[2.0, 5.0]]}, "not up to 100 levels"),
        ({"levels": "2.0"}, "not up to 100 levels"),
        ({"commission": 1.0}, "not from 0 to below 1"),
        ({"commission": "much"}, "not from 0 to below 1"),
        ({"contract_fee": -0.01}, "not from 0 to 1"),
    ],
)
@pytest.mark.parametrize("written", [list, json.dumps], ids=["mappings", "json"])
def test_levels_and_fees_that_are_none(own: dict[str, Any], reason: str, written: Callable[[Any], Any]) -> None:
    engine = Engine()
    good = price("draftkings", "Under", 1.9)
    update = engine.step(written([price("fanduel", "Over", 2.2, **own), good]), NOW)
    (row,) = update.rejected.to_dicts()
    assert (row["row"], row["field"]) == (0, next(iter(own)))
    assert row["reason"].startswith(reason)
    assert engine.table()["sportsbook"].to_list() == ["draftkings"]
