"""Covers: arbitrages and low holds whose legs are of several families, since an outcome has the prices of its twins."""

import random
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from detection.test_finders import check_arbitrage, check_low_hold
from hypothesis import given, settings
from hypothesis import strategies as st
from live.test_engine import ids_of, same_frames
from naive.detection import Settings
from naive.finders import scan
from support.boards import frame
from support.hazards import NOW
from support.rows import LA_LIGA, MOMENT, row, whatever_is_found
from support.twin_boards import twin_board

import oddsengine as oe
from oddsengine.live.engine import Engine

SEEDS = st.integers(0, 2**32 - 1)
RARELY_WRONG = frozenset({"stale", "duplicate_outcome"})  # the guards that matter here


def board(*prices: tuple[str, str, str, float | None, float]) -> pl.DataFrame:
    """Prices of a match by book, market, selection, line and odds."""
    made: list[dict[str, Any]] = []
    for book, market, selection, line, odds in prices:
        more: dict[str, Any] = LA_LIGA | ({"team_side": "away"} if market == "team_total" else {})
        made.append(row(book, market, selection, odds, line, **more))
    return pl.DataFrame(made, infer_schema_length=None)


HOME, AWAY = LA_LIGA["home_team"], LA_LIGA["away_team"]
RESULT = (("fanduel", "moneyline_3way", HOME, None, 2.6), ("fanduel", "moneyline_3way", "Draw", None, 3.5),
          ("fanduel", "moneyline_3way", AWAY, None, 2.9))  # fmt: skip
LAID = ("novig", "point_spread", AWAY, 0.5, 1.75)


def legs(arb: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(leg["sportsbook"], leg["market_type"], leg["selection_type"], leg["line"]) for leg in arb["legs"]]


def found(find: Any, odds: pl.DataFrame, **words: Any) -> list[dict[str, Any]]:
    with whatever_is_found():
        return list(find(odds, now=MOMENT, guards=[], **words).iter_rows(named=True))


def test_a_back_and_a_lay_of_one_side_of_three_are_an_arbitrage() -> None:
    (arb,) = found(oe.find_arbitrage, board(*RESULT, LAID))
    assert (arb["market_type"], arb["line"]) == ("point_spread", -0.5)
    assert legs(arb) == [("fanduel", "moneyline", "home", None), ("novig", "point_spread", "away", 0.5)]
    net = arb["legs"][1]["net_odds"]
    assert arb["profit_percent"] == pytest.approx(100.0 / (1.0 / 2.6 + 1.0 / net) - 100.0)
    assert [leg["stake_percent"] for leg in arb["legs"]] == pytest.approx(
        [100.0 / 2.6 / (1.0 / 2.6 + 1.0 / net), 100.0 / net / (1.0 / 2.6 + 1.0 / net)]
    )


def test_a_draw_and_its_lay_are_an_arbitrage() -> None:
    (arb,) = found(oe.find_arbitrage, board(*RESULT, ("kalshi", "draw", "No", None, 1.5)))
    assert (arb["market_type"], arb["line"]) == ("draw", None)
    assert legs(arb) == [("fanduel", "moneyline", "draw", None), ("kalshi", "draw", "no", None)]


def test_all_three_outcomes_may_be_of_three_families() -> None:
    (arb,) = found(
        oe.find_arbitrage,
        board(("fanduel", "moneyline_3way", "Draw", None, 3.9), ("betmgm", "point_spread", HOME, -0.5, 2.8),
              ("draftkings", "point_spread", AWAY, -0.5, 2.9)),
    )  # fmt: skip
    assert legs(arb) == [
        ("betmgm", "point_spread", "home", -0.5), ("fanduel", "moneyline", "draw", None),
        ("draftkings", "point_spread", "away", -0.5),
    ]  # fmt: skip
    assert arb["market_type"] == "moneyline"


def test_what_loses_little_is_a_low_hold_and_says_the_market_of_each_side() -> None:
    (hold,) = found(oe.find_low_hold, board(RESULT[0], (*LAID[:4], 1.62)), max_hold=3.0)
    assert (hold["market_type"], hold["line"]) == ("point_spread", -0.5)
    assert [(hold[side]["market_type"], hold[side]["books"]) for side in ("side1", "side2")] == [
        ("moneyline", ["fanduel"]), ("point_spread", ["novig"]),
    ]  # fmt: skip
    fair = [hold[side]["fair_probability"] for side in ("side1", "side2")]
    assert sum(fair) == pytest.approx(1.0), "of the best prices, also those of twins"


TWO_AT_AN_EXCHANGE = (
    ("betfair_exchange", "moneyline_3way", HOME, None, 2.8), ("betfair_exchange", "moneyline_3way", "Draw", None, 3.9),
    ("fanduel", "moneyline_3way", AWAY, None, 2.7),
)  # fmt: skip


def test_two_bets_in_one_market_of_an_exchange_pay_commission_on_what_they_win_together() -> None:
    """Alone each would pay 5 % of its own winnings, and there would be no profit."""
    odds = board(*TWO_AT_AN_EXCHANGE)
    alone = sum(1.0 / price for price in (1.0 + 1.8 * 0.95, 1.0 + 2.9 * 0.95, 2.7))
    assert alone > 1.0
    (arb,) = found(oe.find_arbitrage, odds, min_profit=0.0)
    stakes = [leg["stake_percent"] for leg in arb["legs"]]
    for winner in range(3):
        exchange = sum(stakes[at] * (TWO_AT_AN_EXCHANGE[at][4] - 1.0) if at == winner else -stakes[at] for at in (0, 1))
        rest = stakes[2] * 1.7 if winner == 2 else -stakes[2]
        assert exchange - 0.05 * max(0.0, exchange) + rest == pytest.approx(arb["profit_percent"])
    assert [leg["net_odds"] * leg["stake_percent"] for leg in arb["legs"]] == pytest.approx(
        [100.0 + arb["profit_percent"]] * 3
    )
    said = oe.explain(odds, arb["id"], now=MOMENT, guards=[])
    assert sorted(said.prices["stake_percent"]) == pytest.approx(sorted(stakes))
    assert not found(oe.find_arbitrage, odds, commission={"betfair_exchange": 0.2}, min_profit=0.0)
    engine = Engine()
    view = engine.view(method="power", min_profit=0.0)
    engine.step(odds.to_dicts(), MOMENT)
    (live,) = view.opportunities().arbitrage["profit_percent"]
    assert live == pytest.approx(arb["profit_percent"])


def test_elsewhere_home_and_half_a_goal_are_not_the_same_bet() -> None:
    """In hockey the spread counts overtime."""
    odds = board(*RESULT, LAID).with_columns(sport=pl.lit("hockey"), league=pl.lit("nhl"))
    assert not found(oe.find_arbitrage, odds)


def test_of_two_prices_of_a_book_for_one_bet_the_market_itself_has_the_leg() -> None:
    own = ("fanduel", "point_spread", HOME, -0.5, 2.6)
    (arb,) = found(oe.find_arbitrage, board(*RESULT, LAID, own))
    assert legs(arb)[0] == ("fanduel", "point_spread", "home", -0.5)


YES, NO = ("a", "home_clean_sheet", "Yes", None, 3.0), ("b", "home_clean_sheet", "No", None, 1.6)
UNDER, OVER = ("a", "team_total", "Under", 0.5, 3.0), ("b", "team_total", "Over", 0.5, 1.6)


@pytest.mark.parametrize(
    ("prices", "markets"),
    [
        ((YES, OVER), ["clean_sheet"]), ((UNDER, NO), ["clean_sheet"]), ((NO, UNDER, YES), ["clean_sheet"]),
        ((YES, (*NO[:4], 1.5), OVER, (*UNDER[:4], 2.9)), ["clean_sheet"]),
        ((YES, OVER, UNDER), ["clean_sheet", "team_total"]), ((YES, NO, UNDER, OVER), ["clean_sheet", "team_total"]),
    ],
)  # fmt: skip
def test_what_two_families_offer_alike_is_found_once(prices: Any, markets: list[str]) -> None:
    """A clean sheet of the home side is no goal of the away side; a market with its own prices has them itself."""
    assert sorted(arb["market_type"] for arb in found(oe.find_arbitrage, board(*prices))) == markets


def test_why_shows_the_prices_of_equivalent_outcomes() -> None:
    odds = board(*RESULT, ("betmgm", "moneyline_3way", HOME, None, 2.7), LAID)
    (arb,) = found(oe.find_arbitrage, odds)
    said = oe.explain(odds, arb["id"], now=MOMENT, guards=[])
    rows = said.prices.select("sportsbook", "market_type", "outcome", "line", "role").rows()
    assert rows == [
        ("betmgm", "moneyline", "home", -0.5, "leg"), ("fanduel", "moneyline", "home", -0.5, "offer"),
        ("novig", "point_spread", "away", 0.5, "leg"),
    ]  # fmt: skip
    assert said.prices["stake_percent"].sum() == pytest.approx(100.0)
    narrower = found(oe.find_arbitrage, odds, books=["fanduel", "novig"])[0]["id"]
    passed = oe.explain(odds, narrower, now=MOMENT, guards=[], books=["fanduel", "novig"]).rejected
    assert passed.select("sportsbook", "market_type", "why").rows() == [
        ("betmgm", "moneyline_3way", "not among the books asked for")
    ]


def test_a_free_bet_is_hedged_where_most_is_kept() -> None:
    odds = board(*RESULT, LAID, ("betmgm", "moneyline_3way", "Draw", None, 3.0),
                 ("betmgm", "moneyline_3way", AWAY, None, 2.5))  # fmt: skip
    with whatever_is_found():
        promos = oe.find_promos(odds, "free_bet", 100.0, books=["fanduel"], now=MOMENT, guards=[])
    (home,) = promos.filter(selection=HOME).iter_rows(named=True)
    assert [(hedge["sportsbook"], hedge["market_type"]) for hedge in home["hedges"]] == [("novig", "point_spread")]
    assert home["kept"] == pytest.approx(160.0 * (1.0 - 1.0 / home["hedges"][0]["net_odds"]))
    assert promos["row"].is_unique().all()


@given(SEEDS, st.booleans())
def test_covers_are_those_of_enumeration(seed: int, live: bool) -> None:
    rows = twin_board(random.Random(seed), live=live)
    user = Settings(sharp=("pinnacle",), min_profit=-4.0, max_hold=6.0, guards=RARELY_WRONG)
    if len({each["sportsbook"] for each in rows}) < 2:
        return
    twin = scan(rows, user, NOW)
    check_arbitrage(rows, user, twin)
    check_low_hold(rows, user, twin)


WIDE: dict[str, Any] = {
    "min_profit": -5.0, "max_hold": 8.0, "min_ev": -5.0, "min_middle_ev": None, "method": "power", "max_profit": None,
}  # fmt: skip


@settings(max_examples=max(1, settings().max_examples // 4))
@given(SEEDS, st.booleans())
def test_the_live_board_has_the_same_covers(seed: int, live: bool) -> None:
    """Whichever price moves, leaves or is suspended, and whatever the board has seen first."""
    rng, now, engine = random.Random(seed), MOMENT, Engine()
    view = engine.view(**WIDE, keep=True)
    rows = twin_board(rng, live=live)
    rng.shuffle(rows)
    for at in range(0, len(rows), 9):
        engine.step(rows[at : at + 9], now)
    for _ in range(12):
        now += timedelta(seconds=rng.choice((0, 1, 1, 4)))
        some = rng.sample(rows, min(len(rows), rng.choice((1, 1, 1, 2))))
        for each in some:
            each["odds_decimal"] = max(1.02, round(each["odds_decimal"] * rng.choice((0.9, 0.97, 1.03, 1.1)), 2))
            each["is_active"], each["last_seen_at"] = rng.random() < 0.9, now
        gone = [ident for ident in engine.table()["row_id"].to_list() if rng.random() < 0.02]
        engine.step(some, now, removed=gone)
        with whatever_is_found():
            whole = oe.find_all(engine.table(), **WIDE, now=now)
        same_frames(view.opportunities(), whole)
        assert view.ids() == ids_of(whole)


def test_a_price_that_is_linked_through_a_third_market_changes_nothing() -> None:
    """The draw has an arbitrage with the three-way market, and that shares another outcome with the spread."""
    engine = Engine()
    view = engine.view(**WIDE, keep=True)
    for prices in ([("kalshi", "draw", "No", None, 1.5)], RESULT, [("betmgm", "point_spread", HOME, -0.5, 2.0)]):
        engine.step(board(*prices).to_dicts(), MOMENT)
    (arb,) = view.ids()["arbitrage"]
    update = engine.step(board(("betmgm", "point_spread", HOME, -0.5, 2.1)).to_dicts(), MOMENT)
    assert not update.of(view).expired.size
    assert view.ids()["arbitrage"] == [arb]


def test_boards_of_equivalent_outcomes_have_what_they_are_for() -> None:
    """Enough arbitrages with legs of several markets."""
    boards = [frame(twin_board(random.Random(seed), live=False)) for seed in range(12)]
    arbs = [arb for odds in boards for arb in found(oe.find_arbitrage, odds, min_profit=-4.0)]
    assert sum(len({leg[1] for leg in legs(arb)}) > 1 for arb in arbs) > 20
