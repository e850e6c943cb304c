"""Views of the live board: their arguments, how long they live, and single cases of what they show."""

import json
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from live.test_interruption import ARB, NOW, quote
from support.boards import unnumbered

import oddsengine as oe
from oddsengine.simulate import World


def test_a_negative_limit_is_unknown() -> None:
    """Some sources mean that by -1."""
    unknown = quote(max_bet=-1.0)
    for quotes in ([unknown], json.dumps([unknown], default=str), pl.DataFrame([unknown])):
        engine = oe.Engine()
        engine.step(quotes, NOW)
        assert engine.table()["max_bet"].to_list() == [None]


def test_a_view_that_two_hold_and_one_closes() -> None:
    engine = oe.Engine()
    engine.step(ARB, NOW)
    first, second = engine.view(), engine.view()
    engine.close(first)
    third = engine.view()
    assert second is third
    assert engine.views == (second,)
    engine.step([quote("X", 1.8, "fanduel")], NOW + timedelta(seconds=1))
    assert second.ids() == {kind: [] for kind in ("ev", "arbitrage", "low_hold", "middles")} | {
        "ev": [i[-16:] for i in oe.find_all(engine.table(), now=engine.moment).ev["id"]],
        "arbitrage": [i[-16:] for i in oe.find_all(engine.table(), now=engine.moment).arbitrage["id"]],
        "low_hold": [i[-16:] for i in oe.find_all(engine.table(), now=engine.moment).low_hold["id"]],
    }


@pytest.mark.parametrize("guard", ["side_conflict", "no_line", "price_mismatch"])
def test_guards_of_identity_can_be_off(guard: str) -> None:
    rows = [
        quote("X", 2.2, "fanduel", odds_american=300.0), quote("Y", 2.2, "draftkings", selection_type="home"),
        quote("X", 2.3, "bet365", line=3.5), quote("X", 1.9), quote("Y", 1.9),
    ]  # fmt: skip
    guards = [name for name in oe.GUARDS if name != guard]
    engine = oe.Engine(guards=guards)
    engine.step(rows, NOW)
    whole = oe.find_all(engine.table(), now=NOW, guards=guards)
    shown = {kind: sorted(i[-16:] for i in getattr(whole, kind)["id"]) for kind in ("ev", "arbitrage", "low_hold")}
    assert {kind: ids for kind, ids in engine.view().ids().items() if kind != "middles"} == shown
    assert any(shown.values())


def test_a_duplicate_that_is_seen_again_may_be_the_one_shown() -> None:
    line: dict[str, Any] = dict(sport="basketball", market_type="total_points", line=220.5)
    engine = oe.Engine()
    view = engine.view()
    twins = [quote(text, 2.1, "fanduel", **line) for text in ("Over 220.5", "OVER 220.5")]
    others = [quote("Under", 2.1, "draftkings", **line)]
    engine.step([*twins, *others], NOW)
    later = NOW + timedelta(seconds=70)
    for twin in twins:
        engine.step([twin, *others], later)
        shown, whole = view.opportunities().arbitrage, oe.find_all(engine.table(), now=engine.moment).arbitrage
        assert unnumbered(shown.drop("detected_at")).equals(unnumbered(whole.drop("detected_at")))
        later += timedelta(seconds=70)


def test_three_way_markets_of_two_names_meet() -> None:
    teams: dict[str, Any] = dict(sport="soccer", league="epl", home_team="Arsenal", away_team="Chelsea")
    prices = {("fanduel", "moneyline"): (2.9, 3.2, 2.9), ("pinnacle", "1x2"): (2.7, 3.0, 3.3)}
    rows = [
        quote(side, odds, book, **teams, market_type=market)
        for (book, market), offers in prices.items()
        for side, odds in zip(("Arsenal", "Draw", "Chelsea"), offers, strict=True)
    ]
    engine = oe.Engine()
    view = engine.view(method="power")
    engine.step(rows, NOW)
    whole = oe.find_all(engine.table(), now=NOW, method="power")
    assert view.ids()["arbitrage"] == [i[-16:] for i in whole.arbitrage["id"]] != []
    assert view.ids()["ev"] == sorted(i[-16:] for i in whole.ev["id"]) != []


def test_a_price_suspended_for_most_of_a_day_does_not_flap() -> None:
    engine = oe.Engine()
    engine.step([quote(odds=2.0)], NOW)
    engine.step([quote(odds=2.2)], NOW + timedelta(seconds=1))
    for step in range(1, 110):
        engine.step([quote(odds=2.2, is_active=False)], NOW + timedelta(minutes=10 * step))
    engine.step([quote(odds=2.0)], NOW + timedelta(seconds=65_636))
    assert engine.table()["flap"].to_list() == [False]


@pytest.mark.parametrize(
    "words", [{"min_size": 1e308}, {"min_size": -1.0}, {"min_profit": -200.0}, {"commission": {5: 0.1}}]
)
def test_what_a_view_cannot_want(words: dict[str, Any]) -> None:
    engine = oe.Engine()
    with pytest.raises(ValueError, match=f"{next(iter(words))}"):
        engine.view(**words)
    engine.step(ARB, NOW)
    assert engine.number == 1


def test_kinds_that_a_view_does_not_know() -> None:
    view = oe.Engine().view(keep=True)
    for wrong in (["arbs"], [], "arb"):
        with pytest.raises(ValueError, match="kinds must be a list of ev, arbitrage, low_hold, middles, got"):
            view.opportunities(wrong)
    assert view.opportunities("arbitrage").arbitrage.height == 0


def test_states_that_differ_have_other_hashes() -> None:
    def state(**words: Any) -> str:
        engine = oe.Engine()
        engine.step([quote(**words.pop("fields", {}))], NOW)
        engine.step([], NOW, **words)
        return engine.state_hash()

    same = state()
    assert same == state()
    assert same != state(events=[{"event_id": "e", "status": "postponed"}])
    assert same != state(fields={"odds_american": -105.0})


def test_prices_of_an_event_that_is_said_to_have_ended_but_is_quoted_stay() -> None:
    engine = oe.Engine()
    engine.step(ARB, NOW, events=[{"event_id": "e", "status": "ended"}])
    for step in range(1, 80):
        update = engine.step(ARB[:2], NOW + timedelta(seconds=10 * step))
        assert step == 61 or not update.removed.height
    assert engine.size == 2


def test_a_low_hold_shows_one_row_of_a_book_that_quotes_a_price_twice() -> None:
    """Its American price, link and id; the row is the one that is close enough in time to the other leg."""

    def price(book: str, selection: str, odds: float, american: int, seconds: int, **more: str) -> dict[str, Any]:
        return {
            "sportsbook": book, "event_id": "e", "sport": "tennis", "home_team": "Ann", "away_team": "Bea",
            "market_type": "moneyline", "selection": selection, "odds_decimal": odds, "odds_american": american,
            "last_seen_at": NOW + timedelta(seconds=seconds), **more,
        }  # fmt: skip

    engine = oe.Engine()
    engine.step(
        [
            price("a", "Ann", 1.9, -111, 0),
            price("b", "Ann", 2.0, 100, -10, market_type="h2h", deep_link="https://first"),
            price("b", "Ann", 2.0, 101, 20, deep_link="https://second"),
            price("c", "Bea", 2.0, 100, 30),
            price("d", "Bea", 2.02, 102, -400),
        ],
        NOW + timedelta(seconds=40),
    )  # fmt: skip
    second = engine.table().filter(deep_link="https://second")["row_id"].item()
    for found in (engine.view(max_hold=5.0).opportunities().low_hold, oe.find_low_hold(engine.table(), max_hold=5.0)):
        side = found["side1"][0]
        assert side["books"] == ["b"]
        assert side["odds_american"] == 101.0
        assert side["deep_links"] == [{"sportsbook": "b", "deep_link": "https://second"}]
        assert side["odds_ids"] == [second]


def test_a_view_may_be_kept_by_any_truth_value() -> None:
    nothing: Any = None
    assert oe.Engine().view(keep=nothing).kept == 0


def test_an_update_and_the_rows_name_one_market_also_where_the_first_leg_is_of_another() -> None:
    engine, elsewhere = oe.Engine(), 0
    view = engine.view(keep=True, min_profit=-5.0, max_hold=10.0)
    for _, batch in zip(range(6), World(11, events=40, live=0.3).run(60.0), strict=False):
        update = engine.step(batch.quotes, batch.now, events=batch.events)
        rows = view.opportunities()
        named = {
            ident[-16:]: market for rows_ in rows.frames.values() for ident, market in rows_["id", "market_type"].rows()
        }
        for found in update.plain(view).get("detected", ()):
            assert found["market_type"] == named[found["id"]]
            elsewhere += found["legs"][0]["market_type"] != found["market_type"]
    assert elsewhere > 3
