"""Tables with levels: prices for a stake against the walk of each ladder, and the largest size of arbitrages."""

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine import catalog
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import ask
from oddsengine.maths.depth import contract_odds, fill, largest_arbitrage, walk
from oddsengine.maths.odds import charged

BOOKS = ("fanduel", "betfair_exchange", "kalshi", "corner_shop")
ladders = st.lists(st.tuples(st.floats(1.05, 20.0), st.floats(1.0, 2000.0)), max_size=5)
Levels = list[tuple[float, float]]


def table(sides: dict[tuple[str, str], Levels | None], **more: Any) -> pl.DataFrame:
    """Rows of a total, by book and selection."""
    level = pl.List(pl.Struct({"odds_decimal": pl.Float64, "stake": pl.Float64}))
    rows = [
        {"event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": book, "selection": side,
         "odds_decimal": max([d for d, _ in levels or []], default=2.0), "max_bet": 7.0,
         "levels": None if levels is None else [{"odds_decimal": d, "stake": s} for d, s in levels]} | more
        for (book, side), levels in sides.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"levels": level})


def with_cents(levels: Levels, stake: float, commission: float, fee: float) -> float:
    """Odds of an order whose fee is rounded up to cents, level by level."""
    left, units, due, spent = stake, 0.0, 0.0, 0.0
    for odds, size in sorted(levels, key=lambda level: -float(charged(level[0], commission, fee))):
        p = 1.0 / (1.0 + (odds - 1.0) * (1.0 - commission))
        each = fee * p * (1.0 - p)
        some = min(left / (p + each), size * odds if fee else size / p)
        left, units, due, spent = left - some * (p + each), units + some, due + some * each, spent + some * (p + each)
    return units / (spent + math.ceil(due * 100.0 - 1e-9) / 100.0 - due)


@given(st.dictionaries(st.tuples(st.sampled_from(BOOKS), st.sampled_from(["Over", "Under"])), st.none() | ladders,
                       min_size=1), st.floats(0.5, 5000.0))  # fmt: skip
def test_a_price_for_a_stake_is_what_its_ladder_pays(sides: dict[tuple[str, str], Levels | None], stake: float) -> None:
    odds = table(sides)
    question = ask(oe.prepare(odds, guards=[]), None, None, None, None, thresholds(), stake=stake)
    g, facts = question.prices.groups, question.prepared.shown
    for net, row in zip(question.prices.columns.net.tolist(), g.row.tolist(), strict=True):
        before = odds.row(row, named=True)
        levels, book = sides[before["sportsbook"], before["selection"]], catalog.book(before["sportsbook"])
        best = float(charged(before["odds_decimal"], book.commission, book.fee))
        if not levels:
            alone = with_cents([(before["odds_decimal"], 1e9)], stake, book.commission, book.fee)
            assert (net, facts["max_bet"][row]) == (pytest.approx(alone, rel=1e-9), 7.0)
            assert net <= best * (1.0 + 1e-12)
            continue
        assert net == pytest.approx(with_cents(levels, stake, book.commission, book.fee), rel=1e-9)
        assert net <= best
        assert facts["max_bet"][row] == pytest.approx(sum(size for _, size in levels))


def test_a_price_for_a_stake_is_no_better_than_the_price() -> None:
    """A level that is better than the price is a contradiction; what is shown cannot be beaten."""
    odds = table({("x1", "Over"): [(2.0, 100.0)]}).with_columns(levels=pl.lit("3.0:100"))
    question = ask(oe.prepare(odds, guards=[]), None, None, None, None, thresholds(), stake=50.0)
    assert question.prices.columns.net.tolist() == [2.0]


def test_finders_take_a_stake() -> None:
    over, under = [(2.20, 100.0), (2.16, 200.0), (2.10, 500.0)], [(1.90, 80.0), (1.88, 150.0), (1.85, 400.0)]
    odds = table({("x1", "Over"): over, ("x2", "Under"): under}).with_columns(odds_american=pl.lit(None, pl.Float64))
    best = oe.find_arbitrage(odds)
    assert best["profit_percent"].to_list() == pytest.approx([100.0 * (1.0 / (1 / 2.2 + 1 / 1.9) - 1.0)])
    for stake in (80.0, 150.0, 300.0):
        implied = sum(1.0 / fill(side, stake).odds for side in (over, under))
        found = oe.find_all(odds, stake=stake, min_profit=-5.0).arbitrage
        assert found["profit_percent"].to_list() == pytest.approx([100.0 * (1.0 / implied - 1.0)])
    assert oe.find_arbitrage(odds, stake=None).equals(best)
    assert oe.find_low_hold(odds, stake=2000.0, max_hold=5.0).height == 1
    assert oe.find_all(oe.prepare(odds), stake=80.0).arbitrage.equals(oe.find_all(odds, stake=80.0).arbitrage)


@pytest.mark.parametrize("own", [{}, {"commission": 0.1}, {"contract_fee": 0.05}, {"commission": None}])
@pytest.mark.parametrize("mine", [None, {"FanDuel": 0.05}])
def test_fees_are_the_users_or_those_of_the_price_or_those_of_the_book(own: Any, mine: Any) -> None:
    side = [(2.0, 100.0), (1.9, 100.0)]
    odds = table({("fanduel", "Over"): side}, **own)
    question = ask(oe.prepare(odds, guards=[]), None, None, None, mine, thresholds(), stake=150.0)
    commission, fee = (0.05, 0.0) if mine else (own.get("commission") or 0.0, own.get("contract_fee") or 0.0)
    assert question.prices.columns.net.tolist() == pytest.approx([with_cents(side, 150.0, commission, fee)])


@pytest.mark.parametrize("levels", [None, "2.0:1000"])
def test_the_fee_of_an_order_is_rounded_up_to_cents(levels: str | None) -> None:
    """Of 0.07 p (1 - p) at 0.50, one contract costs 0.52 and a hundred 51.75."""
    odds = table({("kalshi", "Over"): None}).drop("levels")
    if levels is not None:
        odds = odds.with_columns(levels=pl.lit(levels))
    for contracts, unrounded, price in ((1, 0.5175, 0.52), (100, 51.75, 51.75), (7, 3.6225, 3.63)):
        question = ask(oe.prepare(odds, guards=[]), None, None, None, None, thresholds(), stake=unrounded)
        assert question.prices.columns.net.tolist() == pytest.approx([contracts / price])
        assert question.prices.columns.net.tolist() == pytest.approx([contract_odds(contracts, 0.5, 0.07)])
    at_best = ask(oe.prepare(odds, guards=[]), None, None, None, None, thresholds())
    assert at_best.prices.columns.net.tolist() == pytest.approx([1.0 / 0.5175]), "without a stake, no order is known"


def test_a_board_prices_a_stake_with_the_same_rounded_fee() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    odds = table({("kalshi", "Over"): [(2.3, 9.0)], ("fanduel", "Under"): None}, last_seen_at=now)
    engine = oe.Engine()
    engine.step(odds, now)
    row = engine.view(stake=3.0, min_profit=-50.0).opportunities().arbitrage.row(0, named=True)
    (leg,) = (leg for leg in row["legs"] if leg["sportsbook"] == "kalshi")
    assert leg["net_odds"] == pytest.approx(with_cents([(2.3, 9.0)], 3.0, 0.0, 0.07))
    assert leg["net_odds"] < fill([(2.3, 9.0)], 3.0, fee=0.07).odds


def test_fair_prices_are_those_of_the_best_level() -> None:
    """What a stake gets at a thin exchange says nothing about what is fair."""
    thin = [(1.98, 10.0), (1.5, 1000.0)]
    odds = table({("betfair_exchange", "Over"): thin, ("betfair_exchange", "Under"): thin, ("fanduel", "Over"): None})
    odds = odds.with_columns(odds_decimal=pl.when(sportsbook="fanduel").then(2.2).otherwise("odds_decimal"))
    best, staked = (
        oe.find_ev(odds, sharp="betfair_exchange", stake=stake).filter(sportsbook="fanduel") for stake in (None, 500.0)
    )
    assert best.height == 1
    assert best["fair_probability"].to_list() == staked["fair_probability"].to_list()
    assert best["ev_percentage"].to_list() == staked["ev_percentage"].to_list()


def test_the_largest_size_in_play_is_after_the_fee_in_play() -> None:
    odds = table({("novig", "Over"): [(2.1, 100.0)], ("fanduel", "Under"): [(2.1, 100.0)]})
    before, live = (
        oe.largest_arbitrages(oe.find_arbitrage(odds.with_columns(is_live=flag), guards=[]))["largest_profit"][0]
        for flag in (False, True)
    )
    assert before == pytest.approx(10.0)
    assert live == pytest.approx(largest_arbitrage([[(2.1, 100.0)]] * 2, fees=[0.03, 0.0]).profit)
    assert live < before


@pytest.mark.parametrize("stake", [0, -1.0, float("nan"), float("inf"), True, "10", 10**400])
def test_a_stake_that_is_none(stake: Any) -> None:
    with pytest.raises(ValueError, match="stake must be None or a finite amount above 0"):
        oe.find_ev(table({("fanduel", "Over"): [(2.0, 1.0)]}), stake=stake)


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ("2.0:5 1.0:5", "not up to 100 levels"),
        ("2.0:-1", "not up to 100 levels"),
        ("2.0:1:1", "not up to 100 levels"),
        ("nan:1", "not up to 100 levels"),
        ("2.0:1e13", "not up to 100 levels"),
        (" ".join(["2.0:1"] * 101), "not up to 100 levels"),
    ],
)
def test_levels_that_are_none(levels: str, reason: str) -> None:
    odds = pl.DataFrame({"event_id": "e1", "market_type": "moneyline", "selection": ["Over", "Under"],
                         "sportsbook": "fanduel", "odds_decimal": 2.0, "levels": [levels, "2.0:5"]})  # fmt: skip
    checked = oe.check_odds(odds)
    assert checked["levels"].to_list() == [[{"odds_decimal": 2.0, "stake": 5.0}]]
    (row,) = checked.rejected.to_dicts()
    assert (row["row"], row["field"], row["value"]) == (0, "levels", levels[:200])
    assert row["reason"].startswith(reason)


def test_levels_of_another_shape() -> None:
    good = table({("fanduel", "Over"): [(2.0, 1.0)]})
    numbers = good.with_columns(levels=pl.Series([[2.0]]))
    fields = good.with_columns(pl.col("levels").list.eval(pl.element().struct.rename_fields(["odds_decimal", "size"])))
    for frame in (numbers, fields):
        assert oe.check_odds(frame).rejected["field"].to_list() == ["levels"]
    none = good.with_columns(levels=pl.lit(None))
    assert oe.check_odds(none)["levels"].to_list() == [None]
    assert "levels" not in oe.check_odds(good.drop("levels")).columns
    with pytest.raises(oe.OddsError, match="column contract_fee has the type List"):
        oe.check_odds(good.with_columns(contract_fee=pl.Series([[2.0]])))


def test_the_largest_size_is_that_of_the_ladders() -> None:
    over, under = [(2.20, 100.0), (2.16, 200.0), (2.10, 500.0)], [(1.90, 80.0), (1.88, 150.0), (1.85, 400.0)]
    odds = table({("betfair_exchange", "Over"): over, ("fanduel", "Under"): under})
    row = oe.largest_arbitrages(oe.find_arbitrage(odds)).row(0, named=True)
    rates = [catalog.book("betfair_exchange").commission, 0.0]
    if [leg["selection"] for leg in row["legs"]] != ["Over", "Under"]:
        rates.reverse()
    best = largest_arbitrage([over, under] if rates[0] else [under, over], commissions=rates)
    assert row["largest_stakes"] == pytest.approx(list(best.stakes))
    assert (row["largest_payout"], row["largest_profit"]) == pytest.approx((best.payout, best.profit))
    # Without levels the maximum bet is the only level; without either the size is unknown.
    single = odds.drop("levels")
    row = oe.largest_arbitrages(oe.find_arbitrage(single)).row(0, named=True)
    assert max(row["largest_stakes"]) == pytest.approx(7.0)
    unknown = single.drop("max_bet")
    row = oe.largest_arbitrages(oe.find_arbitrage(unknown)).row(0, named=True)
    assert (row["largest_stakes"], row["largest_profit"]) == (None, None)
    none = oe.find_arbitrage(odds, min_profit=50.0, max_profit=None)
    assert oe.largest_arbitrages(none).height == 0


@pytest.mark.parametrize("huge", [1e12, 1e18])
def test_ladders_do_not_see_each_other(huge: float) -> None:
    found = walk(np.array([0, 0, 1, 1]), np.array([2.0, 1.9, 2.2, 2.0]), np.array([huge, huge, 10.0, 1e3]), 100.0)
    assert found.stake.tolist() == [100.0, 100.0]
    assert found.payout.tolist() == pytest.approx([200.0, 202.0])


def test_levels_that_are_better_than_the_price_are_not_counted() -> None:
    odds = table({("x1", "Over"): [(2.2, 100.0)], ("x2", "Under"): [(1.9, 80.0)]})
    odds = odds.with_columns(
        levels=pl.when(sportsbook="x1").then(pl.lit("3.0:500 2.2:100")).otherwise(pl.lit("1.9:80"))
    )
    row = oe.largest_arbitrages(oe.find_arbitrage(odds)).row(0, named=True)
    assert row["largest_profit"] == pytest.approx(largest_arbitrage([[(2.2, 100.0)], [(1.9, 80.0)]]).profit)


def legs(*books: str) -> pl.DataFrame:
    """Two levels at one book against two at another."""
    over, under = [(2.2, 100.0), (2.16, 200.0)], [(2.0, 80.0), (1.95, 150.0)]
    odds = table({(books[0], "Over"): over, (books[1], "Under"): under}, commission=0.0, contract_fee=0.0)
    return oe.find_arbitrage(odds, guards=[], max_profit=None)


def test_sizes_of_two_currencies_need_rates() -> None:
    found = legs("betfair_exchange", "kalshi")
    unknown = oe.largest_arbitrages(found).row(0, named=True)
    assert [unknown[name] for name in unknown if name.startswith("largest")] == [None] * 4
    row = oe.largest_arbitrages(found, rates={"USD": 1, "GBP": 1.25}).row(0, named=True)
    sides = {"betfair_exchange": [(2.2, 125.0), (2.16, 250.0)], "kalshi": [(2.0, 80.0), (1.95, 150.0)]}
    best = largest_arbitrage([sides[leg["sportsbook"]] for leg in row["legs"]])
    assert row["largest_profit"] == pytest.approx(best.profit)
    assert row["largest_stakes"] == pytest.approx(list(best.stakes))
    assert row["largest_currency"] == "USD"
    pounds = oe.largest_arbitrages(found, rates={"GBP": 1.0, "USD": 0.8}).row(0, named=True)
    assert pounds["largest_profit"] == pytest.approx(best.profit / 1.25)
    assert pounds["largest_currency"] == "GBP"


@pytest.mark.parametrize(
    ("books", "currency"),
    [(("betfair_exchange", "fanduel"), "GBP"), (("polymarket", "kalshi"), "USD"), (("fanduel", "betmgm"), None)],
)
def test_a_currency_that_is_not_known_is_that_of_the_other_leg(books: tuple[str, str], currency: str | None) -> None:
    row = oe.largest_arbitrages(legs(*books)).row(0, named=True)
    best = largest_arbitrage([[(2.2, 100.0), (2.16, 200.0)], [(2.0, 80.0), (1.95, 150.0)]])
    assert (row["largest_profit"], row["largest_currency"]) == (pytest.approx(best.profit), currency)


@pytest.mark.parametrize(
    "rates", [{"GBP": 1.2}, {"USD": 1, "GBP": 0}, {"USD": 1, "CHF": 1.1}, {"USD": 1, "GBP": "x"}, [("USD", 1)]]
)
def test_rates_that_are_none(rates: Any) -> None:
    with pytest.raises(ValueError, match="rate"):
        oe.largest_arbitrages(legs("betfair_exchange", "kalshi"), rates=rates)


# ---- offers ----


def offers(rng: np.random.Generator, three: bool) -> pl.DataFrame:
    """Prices of a market of two or three outcomes at five books, one of them an exchange."""
    sides = ("Home", "Draw", "Away") if three else ("Over", "Under")
    books = [book for book in (*BOOKS[:2], "betmgm", "bovada", "caesars") if rng.random() < 0.8]
    rows = [
        {"event_id": "e1", "sport": "soccer", "league": "Serie A", "home_team": "Home", "away_team": "Away",
         "market_type": "moneyline" if three else "total_goals", "line": None if three else 2.5, "sportsbook": book,
         "selection": side, "odds_decimal": round(float(rng.uniform(1.5, 4.0)), 2),
         "max_bet": float(rng.uniform(5, 90))}
        for book in books for side in sides
        if three or rng.random() < 0.85  # a book without a draw would have a market of two outcomes
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"line": pl.Float64})


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["free_bet", "free_bet_returned", "qualifying"]))
def test_promos_are_what_plain_loops_find(seed: int, three: bool, kind: Any) -> None:
    odds = offers(np.random.default_rng(seed), three)
    if not odds.height:
        return
    sides = ("Home", "Draw", "Away") if three else ("Over", "Under")
    rows = odds.to_dicts()
    for row in rows:
        row["net"] = float(charged(row["odds_decimal"], catalog.book(row["sportsbook"]).commission))
    expected = {}
    for row in rows:
        others = [
            max((r["net"] for r in rows if r["selection"] == side and r["sportsbook"] != row["sportsbook"]),
                default=None)
            for side in sides if side != row["selection"]
        ]  # fmt: skip
        if None in others:
            continue
        paid = 50.0 * (row["net"] - (kind == "free_bet"))
        kept = paid - sum(paid / h for h in others if h) - (50.0 if kind == "qualifying" else 0.0)
        expected[row["sportsbook"], row["selection"]] = kept
    found = oe.find_promos(odds, kind, 50, guards=[])
    assert dict(zip(found.select("sportsbook", "selection").rows(), found["kept"].to_list(), strict=True)) == (
        pytest.approx(expected)
    )
    assert found["kept"].to_list() == sorted(found["kept"].to_list(), reverse=True)
    for row in found.iter_rows(named=True):
        # Whichever outcome wins, the same is kept.
        staked = sum(leg["stake"] for leg in row["hedges"])
        lost = 50.0 if kind == "qualifying" else 0.0
        first = 50.0 * (row["net_odds"] - (kind == "free_bet")) - staked - lost
        assert [first, *(leg["stake"] * leg["net_odds"] - staked - lost for leg in row["hedges"])] == pytest.approx(
            [row["kept"]] * (len(row["hedges"]) + 1)
        )
        assert row["sportsbook"] not in [leg["sportsbook"] for leg in row["hedges"]]
        known = next(r for r in rows if (r["sportsbook"], r["selection"]) == (row["sportsbook"], row["selection"]))
        assert row["limited"] == (
            known["max_bet"] < 50.0 or any(leg["stake"] > leg["max_bet"] for leg in row["hedges"])
        )


def test_promos_at_chosen_books() -> None:
    rngs = map(np.random.default_rng, range(100))
    odds = next(
        some for rng in rngs if (some := offers(rng, three=False)).height and some["sportsbook"].n_unique() == 5
    )
    found = oe.find_promos(odds, "free_bet", 10, books=["FanDuel"], hedge_books=["betmgm"], min_odds=2.0, guards=[])
    assert set(found["sportsbook"]) <= {"fanduel"}
    assert {leg["sportsbook"] for legs in found["hedges"].to_list() for leg in legs} <= {"betmgm"}
    assert (found["odds_decimal"] >= 2.0).all()
    live = odds.with_columns(is_live=pl.lit(value=True))
    assert oe.find_promos(live, "free_bet", 10, guards=[]).height == 0
    for words, why in (
        ({"kind": "boost", "amount": 1}, "kind must be one of free_bet, free_bet_returned, qualifying, got 'boost'"),
        ({"kind": "free_bet", "amount": 0}, "amount must be above 0"),
        ({"kind": "free_bet", "amount": -1}, "amount must be a finite number of at least 0, got -1"),
        ({"kind": "free_bet", "amount": 1, "min_odds": 0.5}, "min_odds must be a finite number of at least 1"),
        ({"kind": "free_bet", "amount": 1, "books": ["fandule"]}, "no prices of fandule; the books are "),
    ):
        with pytest.raises(ValueError, match=why):
            oe.find_promos(odds, **words)  # type: ignore[arg-type]
