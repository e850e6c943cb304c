"""Laws of the whole: what must hold for any board, and the published formulas and fields."""

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.boards import BOOKS, COLUMNS, MARKETS, build, frame, meant, unnumbered
from support.effort import less
from support.hazards import HAZARDS, NOW, SECOND, Row
from support.rows import (
    LA_LIGA,
    MOMENT,
    NHL,
    Rows,
    ask,
    legs,
    moneyline,
    nothing,
    prop,
    row,
    spread,
    table,
    total,
    whatever_is_found,
)  # fmt: skip

import oddsengine
from oddsengine import catalog, find_all, find_arbitrage, find_ev, find_low_hold, find_middles
from oddsengine.detection import arbitrages
from oddsengine.detection import question as board
from oddsengine.detection.kinds import thresholds
from oddsengine.identity.groups import mix
from oddsengine.live.engine import Engine
from oddsengine.maths import calculators

Find = Callable[..., pl.DataFrame]
FINDERS: tuple[Find, ...] = (find_ev, find_arbitrage, find_low_hold, find_middles)
OPEN: dict[str, Any] = dict(guards=[], max_profit=None, min_profit=0.0, min_middle_ev=None, min_ev=-5.0, max_hold=5.0)
# A row that names the teams the other way round is judged by the event's other rows, so it is the table's matter.
STRAIGHT = [name for name in HAZARDS if name != "turned_teams"]
KINDS = ("ev", "arbitrage", "low_hold", "middles")
few = settings(max_examples=less(20, 10), deadline=None)


Plan = tuple[int, int, int, list[str], list[str]]


def plans(hazards: Sequence[str] = tuple(HAZARDS)) -> st.SearchStrategy[Plan]:
    """What `build` makes a board of: seed, events, books, markets, hazards; short enough to be printed."""
    return st.tuples(
        st.integers(0, 2**32 - 1),
        st.integers(1, 3),
        st.integers(2, 7),
        st.lists(st.sampled_from(MARKETS), min_size=1, max_size=4, unique=True),
        st.lists(st.sampled_from(hazards), max_size=4),
    )


def everything(odds: pl.DataFrame, **words: Any) -> dict[str, pl.DataFrame]:
    """The four frames of one reading, over a sharp reference."""
    with whatever_is_found():
        found = find_all(odds, now=MOMENT, **{"method": "power", **words})
    return {kind: getattr(found, kind) for kind in KINDS}


def alike(first: dict[str, pl.DataFrame], second: dict[str, pl.DataFrame]) -> None:
    for kind in KINDS:
        left, right = (unnumbered(frames[kind]).sort("id") for frames in (first, second))
        assert left.equals(right), (kind, left, right)


# -- laws of any board -----------------------------------------------------------------------------


@few
@given(plan=plans(), seed=st.integers(0, 1000), guarded=st.booleans())
def test_the_order_of_rows_changes_nothing(plan: Plan, seed: int, guarded: bool) -> None:
    rows = build(*plan)
    assume(rows)
    mixed = list(rows)
    random.Random(seed).shuffle(mixed)
    words = {} if guarded else OPEN
    first, second = everything(frame(rows), **words), everything(frame(mixed), **words)
    for kind in KINDS:
        assert unnumbered(first[kind]).equals(unnumbered(second[kind])), kind


@few
@given(plan=plans(), guarded=st.booleans())
def test_a_table_split_by_event_and_rejoined(plan: Plan, guarded: bool) -> None:
    rows = build(*plan)
    assume(rows)
    words = {} if guarded else OPEN
    parts = [
        everything(frame([r for r in rows if r["event_id"] == event]), **words)
        for event in sorted({r["event_id"] for r in rows})
    ]
    joined = {kind: pl.concat([part[kind] for part in parts]) for kind in KINDS}
    alike(everything(frame(rows), **words), joined)


def behind() -> set[str]:
    """Books that may stand behind a consensus wherever they are."""
    return {name for name in BOOKS if catalog.book(name).sharp or catalog.book(name).exchange}


@few
@given(plan=plans(STRAIGHT), data=st.data())
def test_a_view_is_a_table_of_its_books_alone(plan: Plan, data: st.DataObject) -> None:
    """With the guards off, and a reference that is one of the books."""
    rows = build(*plan)
    assume(rows)
    every = meant(BOOKS, {r["sportsbook"] for r in rows})
    books = data.draw(st.sets(st.sampled_from(every), min_size=2, max_size=6))
    sharp = {data.draw(st.sampled_from(sorted(books))): 1.0}
    alone = frame([r for r in rows if r["sportsbook"] in books])
    alike(everything(frame(rows), books=sorted(books), sharp=sharp, **OPEN), everything(alone, sharp=sharp, **OPEN))
    whole = sorted(books | behind())
    alone = frame([r for r in rows if r["sportsbook"] in whole])
    alike(everything(frame(rows), books=whole, **OPEN), everything(alone, **OPEN))


@few
@given(plan=plans(STRAIGHT), data=st.data())
def test_a_view_with_its_reference_outside(plan: Plan, data: st.DataObject) -> None:
    """The reference's prices are not offered, only what follows from them is used."""
    rows = build(*plan)
    assume(rows)
    every = set(meant(BOOKS, {r["sportsbook"] for r in rows}))
    books = data.draw(st.sets(st.sampled_from(sorted(every - behind())), min_size=1, max_size=5))
    held = frame([r for r in rows if r["sportsbook"] in books | behind()])
    found = everything(frame(rows), books=sorted(books), **OPEN)
    alike(found, everything(held, books=sorted(books), **OPEN))
    assert set(found["ev"]["sportsbook"]) <= books
    offered = {leg["sportsbook"] for arb in found["arbitrage"]["legs"].to_list() for leg in arb}
    assert offered <= books
    for side in ("side1", "side2"):
        assert {m["sportsbook"] for m in found["middles"][side].to_list()} <= books


@few
@given(plan=plans(), data=st.data())
def test_one_book_has_no_arbitrage(plan: Plan, data: st.DataObject) -> None:
    rows = build(*plan)
    assume(rows)
    book = data.draw(st.sampled_from(sorted({r["sportsbook"] for r in rows})))
    words: dict[str, Any] = dict(guards=[], max_profit=None, now=MOMENT)
    alone = frame([r for r in rows if r["sportsbook"] == book])
    with whatever_is_found():
        assert find_arbitrage(alone, min_profit=-50.0, **words).is_empty()
        assert find_middles(alone, **words).is_empty()
        assert find_arbitrage(frame(rows), books=[book], min_profit=-50.0, **words).is_empty()


def best_sums(odds: pl.DataFrame) -> dict[int, float]:
    """The sum of the best arbitrage of every market, or what comes nearest to one."""
    question = board.ask(board.prepare(odds, [], MOMENT), None, None, "power", None, thresholds(min_profit=-60.0))
    _, markets, best = arbitrages.find_hits(question)
    g = question.prices.groups
    keys = mix(question.hashes.ladder[g.ladder[markets]], g.threshold[markets].astype("i8"))
    return dict(zip(keys.tolist(), best.total.tolist(), strict=True))


@few
@given(plan=plans(STRAIGHT), data=st.data())
def test_another_book_never_lowers_the_best_arbitrage(plan: Plan, data: st.DataObject) -> None:
    rows = build(*plan)
    assume(rows)
    book = data.draw(st.sampled_from(sorted({r["sportsbook"] for r in rows})))
    fewer, more = best_sums(frame([r for r in rows if r["sportsbook"] != book])), best_sums(frame(rows))
    for market, total_ in fewer.items():
        assert more[market] <= total_ + 1e-12


@few
@given(plan=plans(), method=st.sampled_from(sorted(oddsengine.DEVIG_METHODS)))
def test_fair_probabilities_of_a_market_sum_to_one(plan: Plan, method: str) -> None:
    rows = build(*plan)
    assume(rows)
    found = find_low_hold(frame(rows), guards=[], max_hold=30.0, method=method, now=MOMENT)
    for low in found.iter_rows(named=True):
        fair = [low[side]["fair_probability"] for side in ("side1", "side2", "side3") if low[side]]
        if method == "worst_case":
            assert None in fair or sum(fair) <= 1.0 + 1e-9
        else:
            assert None in fair or sum(fair) == pytest.approx(1.0)


@few
@given(
    prices=st.lists(st.sampled_from([2.02, 2.1, 2.3, 3.1, 3.4]), min_size=2, max_size=3),
    total=st.integers(10, 5_000).map(float),
    step=st.sampled_from([0.5, 1.0, 5.0]),
    power=st.integers(-6, 12),
)
def test_money_has_no_unit(prices: list[float], total: float, step: float, power: int) -> None:
    """The same stakes in another currency; a power of two makes it exact."""
    rate = 2.0**power
    hedge, dearer = calculators.hedge(total, *prices[:2]), calculators.hedge(rate * total, *prices[:2])
    assert dearer == tuple(rate * amount for amount in hedge)
    exact, larger = (oddsengine.arbitrage_stakes(prices, total * each) for each in (1.0, rate))
    assert (larger == rate * exact).all()
    whole, more = (oddsengine.round_stakes(prices, total * each, step * each) for each in (1.0, rate))
    assert (more.stakes == rate * whole.stakes).all()
    assert more.profit == rate * whole.profit
    board = table(moneyline("a", prices[0], None), moneyline("b", None, prices[1]))
    arbs = find_arbitrage(board, now=MOMENT, guards=[], max_profit=None)
    assert arbs.height == 1
    plan, richer = (oddsengine.arbitrage_plan(arbs, bankroll=total * each, step=step * each) for each in (1.0, rate))
    for name in ("stake", "payout", "worst_case"):
        assert (richer[name] == rate * plan[name]).all()


@few
@given(plan=plans(), commission=st.dictionaries(st.sampled_from(BOOKS), st.sampled_from([0.0, 0.02, 0.1]), max_size=4))
def test_stakes_equalise_the_payout(plan: Plan, commission: dict[str, float]) -> None:
    rows = build(*plan)
    assume(rows)
    rates = meant(commission, {r["sportsbook"] for r in rows})
    found = find_arbitrage(frame(rows), guards=[], max_profit=None, min_profit=-20.0, commission=rates, now=MOMENT)
    for arb in found.iter_rows(named=True):
        payouts = [leg["stake_percent"] * leg["net_odds"] for leg in arb["legs"]]
        assert payouts == pytest.approx([100.0 + arb["profit_percent"]] * len(payouts))
        assert sum(leg["stake_percent"] for leg in arb["legs"]) == pytest.approx(100.0)
        assert arb["implied_total"] == pytest.approx(100.0 * sum(leg["implied_probability"] for leg in arb["legs"]))
        assert arb["profit_percent"] == pytest.approx(100.0 / (arb["implied_total"] / 100.0) - 100.0)
        assert len({leg["sportsbook"] for leg in arb["legs"]}) > 1


@few
@given(plan=plans())
def test_every_result_says_what_it_is(plan: Plan) -> None:
    """EV rows by formula, middles within their limits, references never their own opportunity."""
    rows = build(*plan)
    assume(rows)
    found = everything(frame(rows), **OPEN)
    for e in found["ev"].iter_rows(named=True):
        p, d = e["fair_probability"], e["net_odds"]
        assert e["ev_percentage"] == pytest.approx((p * d - 1.0) * 100.0)
        assert e["kelly_percent"] == pytest.approx(max(0.0, (p * d - 1.0) / (d - 1.0)))
        assert oddsengine.american_to_decimal(e["no_vig_odds"]) == pytest.approx(1.0 / p)
        assert e["sharp_book"] != e["sportsbook"]
        assert 0.0 <= e["confidence_score"] <= 100.0
        push = e["push_probability"] or 0.0
        assert 0.0 <= push < 1.0
        assert e["ev_per_stake"] == pytest.approx(e["ev_percentage"] * (1.0 - push))
    for m in found["middles"].iter_rows(named=True):
        assert m["side1"]["sportsbook"] != m["side2"]["sportsbook"]
        assert m["middle_numbers"]
        assert m["middle_size"] > 0.0
        total_ = m["side1"]["implied_probability"] + m["side2"]["implied_probability"]
        assert m["worst_case_loss"] == pytest.approx((1.0 / total_ - 1.0) * 100.0)
        assert m["worst_case_loss"] >= -20.0 - 1e-6
        best = (2.0 / total_ - 1.0) * 100.0
        if all(abs(m[side]["line"]) % 1.0 == 0.5 for side in ("side1", "side2")):
            assert m["best_case_profit"] == pytest.approx(best)
        assert m["best_case_profit"] <= best + 1e-9
        assert m["side1"]["stake_percent"] + m["side2"]["stake_percent"] == pytest.approx(100.0)
        assert 0.0 <= m["middle_probability"] <= 1.0
        assert 0.0 <= m["quality_score"] <= 100.0
    for low in found["low_hold"].iter_rows(named=True):
        assert 0.0 <= low["hold_percentage"] <= 5.0 + 1e-6
        assert set(low["all_books"]) == {b for s in ("side1", "side2", "side3") if low[s] for b in low[s]["books"]}


# -- thresholds ------------------------------------------------------------------------------------


def test_a_hold_of_exactly_two_percent_belongs_to_two() -> None:
    odds = table(moneyline("a", 2.0, 4.0, 3.0, **LA_LIGA), moneyline("b", 1.9, 5.0, 3.125, **LA_LIGA))
    (low,) = ask(find_low_hold, odds, max_hold=2)
    assert low["hold_percentage"] == pytest.approx(2.0)
    assert [low[s]["books"] for s in ("side1", "side2", "side3")] == [["a"], ["b"], ["b"]]
    assert not ask(find_low_hold, odds, max_hold=1.999999)


def test_every_book_at_the_best_price_is_on_a_side() -> None:
    rows = [total(book, 220.5, 2.0, 1.8) for book in "dca"]
    (low,) = ask(find_low_hold, table(*rows, total("b", 220.5, 1.8, 2.0, deep_link=None)))
    assert low["hold_percentage"] == 0.0
    assert (low["side1"]["books"], low["side2"]["books"], low["all_books"]) == (
        ["a", "c", "d"],
        ["b"],
        ["a", "b", "c", "d"],
    )
    assert low["side3"] is None


def arb_of(percent: float) -> pl.DataFrame:
    """A two-way market whose best prices leave this profit."""
    odds = 2.0 * (1.0 + percent / 100.0)
    return table(total("a", 220.5, odds, 1.75), total("b", 220.5, 1.75, odds))


@pytest.mark.parametrize(
    ("over", "under", "kinds"),
    [
        (2.0, 2.0, {"low_hold"}), (2.0 + 1e-9, 2.0, {"low_hold"}), (2.0 + 1e-6, 2.0, {"arbitrage"}),
        (2.0 - 1e-6, 2.0, {"low_hold"}), (1.1, 11.0, {"low_hold"}), (3.0, 1.5, {"low_hold"}),
    ],
)  # fmt: skip
def test_prices_that_break_even_are_a_low_hold_and_no_arbitrage(over: float, under: float, kinds: set[str]) -> None:
    """Of a table, of a live view, and of two books or one."""
    rows = [*total("a", 220.5, over, None), *total("b", 220.5, None, under)]
    words: dict[str, Any] = dict(min_profit=0.0, max_hold=0.5)
    found = find_all(table(rows), guards=[], now=MOMENT, **words)
    assert {kind for kind in ("arbitrage", "low_hold") if getattr(found, kind).height} == kinds
    engine = oddsengine.Engine(guards=[])
    view = engine.view(keep=True, **words)
    engine.step(table(rows), MOMENT)
    live = view.opportunities()
    assert {kind for kind in ("arbitrage", "low_hold") if getattr(live, kind).height} == kinds
    assert find_arbitrage(table(rows), guards=[], min_profit=-1.0, now=MOMENT).height == 1  # as asked


def test_a_profit_over_ten_percent_is_counted_never_shown() -> None:
    for percent, shown in ((9.99, True), (10.0, True), (10.01, False)):
        found = find_all(arb_of(percent), guards=[], now=MOMENT)
        assert found.arbitrage.height == shown
        assert found.rejected_counts == ({} if shown else {"profit_cap": 1})
        assert (
            not any(e["arb_available"] for e in ask(find_ev, arb_of(percent), sharp="b", guards=[], min_ev=-50.0))
            or shown
        )
    assert ask(find_arbitrage, arb_of(12.0), guards=[], max_profit=None)[0]["profit_percent"] == pytest.approx(12.0)
    assert not ask(find_arbitrage, arb_of(3.0), max_profit=2.0)


def test_the_least_profit_is_within_its_threshold() -> None:
    assert ask(find_arbitrage, arb_of(0.5), min_profit=0.5)
    assert not ask(find_arbitrage, arb_of(0.499), min_profit=0.5)
    assert not ask(find_arbitrage, arb_of(0.499))
    assert ask(find_arbitrage, arb_of(0.499), min_profit=0.4)


def test_edges_are_within_their_thresholds() -> None:
    odds = table(total("pinnacle", 220.5, 1.95, 1.95), total("a", 220.5, 2.1, 1.8), total("b", 220.5, 2.06, 1.8))
    for words, books in (
        ({}, ["a", "b"]), ({"min_ev": 5.0}, ["a"]), ({"min_ev": 5.001}, []), ({"max_ev": 3.0}, ["b"]),
        ({"max_ev": 2.999}, []), ({"min_ev": 3.0, "max_ev": 5.0}, ["a", "b"]),
        ({"min_ev": -10.0}, ["a", "b", "a", "b"]),
    ):  # fmt: skip
        assert [e["sportsbook"] for e in ask(find_ev, odds, **{"method": "power", **words})] == books


# -- ties ------------------------------------------------------------------------------------------


def test_ties_go_to_the_smallest_tuple_of_books() -> None:
    odds = table(*(total(b, 220.5, 2.1, 1.75) for b in "cab"), *(total(b, 220.5, 1.75, 2.1) for b in "fed"))
    assert legs(ask(find_arbitrage, odds, guards=[])[0]) == [("a", 2.1), ("d", 2.1)]


def test_ties_where_one_book_is_best_at_all() -> None:
    """a is best on both sides; of the equal ways to bring another book in, the first tuple wins."""
    odds = table(total("b", 220.5, 2.1, 2.1), total("c", 220.5, 2.1, 2.1), total("a", 220.5, 1.9, 1.9))
    assert legs(ask(find_arbitrage, odds, guards=[])[0]) == [("b", 2.1), ("c", 2.1)]
    odds = table(total("b", 220.5, 2.2, 2.2), total("c", 220.5, 2.1, 2.1), total("a", 220.5, 2.1, 2.1))
    assert legs(ask(find_arbitrage, odds, guards=[], max_profit=None)[0]) == [("a", 2.1), ("b", 2.2)]


# -- +EV -------------------------------------------------------------------------------------------


def test_fields_of_an_edge() -> None:
    """Pinnacle at 1.95 / 1.95 is fair at one half: 2.10 is worth 5 %, Kelly 1/22."""
    start: dict[str, Any] = dict(event_start_time=NOW + 3600 * SECOND)
    odds = table(
        total("pinnacle", 220.5, 1.95, 1.95, age=90, **start),
        total("a", 220.5, 2.1, 1.8, age=30, external_event_id="x", **start), total("b", 220.5, 2.0, 1.9, **start),
    )  # fmt: skip
    value = ask(find_ev, odds, method="power")[0]
    expected = dict(
        event_id="e", ev_percentage=5.0, odds_american=110.0, odds_decimal=2.1, no_vig_odds=100.0, fair_probability=0.5,
        market_width=(2.0 / 1.95 - 1.0) * 100.0, devig_method="power", sharp_book="pinnacle", selection="Over",
        selection_type="over", market_type="total_points", line=220.5, sportsbook="a", sport="basketball", league="nba",
        event_name="Los Angeles Lakers @ Boston Celtics", is_live=False, kelly_percent=0.05 / 1.1, book_count=3,
        arb_available=True, arb_profit=(1.0 / (1.0 / 2.1 + 1.0 / 1.95) - 1.0) * 100.0, is_player_prop=False,
        possibly_stale=True, oldest_odds_age_seconds=90.0, warnings=["POTENTIALLY_STALE_ODDS"], push_probability=0.0,
        ev_per_stake=5.0, is_alternate_line=False, shared_feed=[], market_segment="full_game", net_odds=2.1,
    )  # fmt: skip
    for name, wanted in expected.items():
        assert value[name] == (pytest.approx(wanted) if isinstance(wanted, float) else wanted), name
    assert value["detected_at"] == MOMENT
    width = 1.0 - (value["market_width"] - 2.0) / 8.0
    # Fewer than two other books: b alone stands beside the reference and the judged book.
    assert value["confidence_score"] == pytest.approx(100.0 * width * 0.7 * math.exp(-90 / 300))


def test_the_first_reference_in_order_with_a_complete_market() -> None:
    odds = table(
        total("pinnacle", 220.5, 1.95, None), total("circa", 220.5, 1.93, 1.97), total("betonline", 220.5, 1.97, 1.93),
        total("a", 220.5, 2.1, 1.8),
    )  # fmt: skip
    assert ask(find_ev, odds, method="power")[0]["sharp_book"] == "circa"
    assert ask(find_ev, odds, sharp=["pinnacle", "betonline", "circa"])[0]["sharp_book"] == "betonline"
    assert ask(find_ev, odds, sharp="betonline")[0]["sharp_book"] == "betonline"
    absent: list[Any] = ["pinnacle", [], "bookmaker"]  # of the catalog, and not of this table
    for sharp in absent:
        with nothing("no usable price here is in a market that a sharp book quotes in full"):
            assert not ask(find_ev, odds, sharp=sharp)


def test_a_reference_is_never_its_own_opportunity() -> None:
    odds = table(total("pinnacle", 220.5, 2.3, 1.95), total("a", 220.5, 1.9, 1.9))
    for words in ({"min_ev": -90.0}, {"sharp": {"pinnacle": 1.0, "a": 2.0}, "min_ev": -90.0}):
        found = ask(find_ev, odds, guards=[], **{"method": "power", **words})
        assert all(e["sharp_book"] != e["sportsbook"] for e in found)
        if "sharp" not in words:
            assert {e["sportsbook"] for e in found} == {"a"}


def fair(*odds: float) -> float:
    return float(oddsengine.devig(list(odds))[0])


def test_a_wide_reference_gives_way_to_a_consensus() -> None:
    """Sharp books and exchanges, weighted by 1 / width, never below half a percent; the judged book left out."""
    quotes = {"pinnacle": (1.8, 1.95), "circa": (1.88, 2.0), "novig": (1.95, 2.045)}
    odds = table(
        *(total(b, 220.5, *two) for b, two in quotes.items()), total("a", 220.5, 2.2, 1.7), total("b", 220.5, 1.9, 1.9)
    )
    value = next(e for e in ask(find_ev, odds, method="power") if e["sportsbook"] == "a")
    widths = {b: 1.0 / x + 1.0 / y - 1.0 for b, (x, y) in quotes.items()}
    assert widths["pinnacle"] > 0.05
    assert widths["novig"] < 0.005
    weights = {b: 1.0 / max(w, 0.005) for b, w in widths.items()}
    mean = sum(weights[b] * fair(*quotes[b]) for b in quotes) / sum(weights.values())
    assert value["sharp_book"] == "consensus"
    assert value["fair_probability"] == pytest.approx(mean)
    assert value["market_width"] == pytest.approx(
        100.0 * sum(weights[b] * widths[b] for b in quotes) / sum(weights.values())
    )
    judged = next(
        e
        for e in ask(find_ev, odds, min_ev=-50.0, method="power")
        if e["sportsbook"] == "novig" and e["selection"] == "Over"
    )
    two = ("pinnacle", "circa")
    mean = sum(weights[b] * fair(*quotes[b]) for b in two) / sum(weights[b] for b in two)
    assert judged["fair_probability"] == pytest.approx(mean)


def test_a_reference_of_five_percent_is_trusted_alone() -> None:
    odds = table(
        total("pinnacle", 220.5, 2.0 / 1.05, 2.0 / 1.05), total("circa", 220.5, 1.9, 2.0), total("a", 220.5, 2.1, 1.75)
    )
    assert ask(find_ev, odds, method="power")[0]["sharp_book"] == "pinnacle"
    odds = table(total("pinnacle", 220.5, 2.0 / 1.0501, 2.0 / 1.0501), total("a", 220.5, 2.1, 1.75))
    with nothing("no fair price"):
        assert not ask(find_ev, odds, method="power")  # nobody to make a consensus with


def test_a_consensus_by_weights() -> None:
    quotes = {"pinnacle": (1.9, 2.0), "circa": (2.0, 1.9)}
    odds = table(*(total(b, 220.5, *two) for b, two in quotes.items()), total("a", 220.5, 2.2, 1.7))
    value = next(e for e in ask(find_ev, odds, sharp={"pinnacle": 3, "circa": 1}) if e["sportsbook"] == "a")
    assert value["fair_probability"] == pytest.approx((3.0 * fair(1.9, 2.0) + fair(2.0, 1.9)) / 4.0)
    assert value["sharp_book"] == "consensus"
    with pytest.raises(ValueError, match="weights"):
        find_ev(odds, sharp={"pinnacle": 0})


@pytest.mark.parametrize("method", sorted(oddsengine.DEVIG_METHODS))
def test_every_method_removes_the_margin(method: str) -> None:
    odds = table(moneyline("pinnacle", 1.6, 6.0, 4.2, **LA_LIGA), moneyline("a", 1.9, 4.0, 3.4, **LA_LIGA))
    value = ask(find_ev, odds, method=method)[0]
    assert value["devig_method"] == method
    assert value["fair_probability"] == pytest.approx(float(oddsengine.devig([1.6, 4.2, 6.0], method=method)[0]))


def test_sister_books_with_one_edge_say_so() -> None:
    odds = table(
        total("pinnacle", 220.5, 1.95, 1.95), *(total(b, 220.5, 2.1, 1.8) for b in ("unibet", "betrivers", "a"))
    )
    shared = {e["sportsbook"]: e["shared_feed"] for e in ask(find_ev, odds, method="power")}
    assert shared == {"unibet": ["betrivers"], "betrivers": ["unibet"], "a": []}
    flagged = {e["sportsbook"]: "SHARED_FEED" in e["warnings"] for e in ask(find_ev, odds, method="power")}
    assert flagged == {"unibet": True, "betrivers": True, "a": False}


def test_commission_is_what_detectors_see() -> None:
    odds = table(total("a", 220.5, 2.1, 1.75), total("b", 220.5, 1.75, 2.1), total("pinnacle", 220.5, 1.95, 1.95))
    (plain,) = ask(find_arbitrage, odds)
    (charged,) = ask(find_arbitrage, odds, commission={"a": 0.02})
    net = 1.0 + 1.1 * 0.98
    leg = charged["legs"][0]
    assert (leg["odds_decimal"], leg["odds_american"]) == (2.1, pytest.approx(110.0))
    assert leg["net_odds"] == pytest.approx(net)
    assert leg["implied_probability"] == pytest.approx(1.0 / net)
    assert charged["profit_percent"] == pytest.approx(100.0 / (1.0 / net + 1.0 / 2.1) - 100.0)
    assert charged["profit_percent"] < plain["profit_percent"]
    assert charged["id"] == plain["id"]
    value = next(e for e in ask(find_ev, odds, commission={"a": 0.02}, method="power") if e["sportsbook"] == "a")
    assert (value["odds_decimal"], value["ev_percentage"]) == (2.1, pytest.approx((0.5 * net - 1.0) * 100.0))
    with pytest.raises(ValueError, match="commission of a"):
        find_arbitrage(odds, commission={"a": 1.0})


def test_fees_of_event_contracts() -> None:
    """A fee of 0.07 p (1 - p) on a contract at 0.50 costs 1.75 cents."""
    odds = table(total("kalshi", 220.5, 2.0, 1.95), total("b", 220.5, 1.8, 2.2))
    (arb,) = ask(find_arbitrage, odds)
    assert arb["legs"][0]["net_odds"] == pytest.approx(1.0 / 0.5175)
    assert arb["legs"][0]["odds_decimal"] == 2.0
    (arb,) = ask(find_arbitrage, odds, commission={"kalshi": 0.0})
    assert arb["legs"][0]["net_odds"] == 2.0


# -- arbitrage -------------------------------------------------------------------------------------


def test_fields_and_warnings_of_an_arbitrage() -> None:
    odds = table(total("a", 220.5, 2.14, 1.75, age=70), total("b", 220.5, 1.75, 2.14))
    (arb,) = ask(find_arbitrage, odds)
    assert arb["id"].split(":")[:2] == ["e", "total_points"]
    assert (arb["event_name"], arb["line"], arb["is_alternate_line"]) == (
        "Los Angeles Lakers @ Boston Celtics",
        220.5,
        False,
    )
    assert arb["warnings"] == ["LOW_IMPLIED_TOTAL", "POTENTIALLY_STALE_ODDS"]
    live = table(
        total("a", 220.5, 2.14, 1.75, age=8.5, is_live=True), total("b", 220.5, 1.75, 2.14, age=4, is_live=True)
    )
    wanted = {
        "LIVE_GAME",
        "LIVE_HIGH_PROFIT_SUSPICIOUS",
        "LOW_IMPLIED_TOTAL",
        "POTENTIALLY_STALE_ODDS",
        "VERY_STALE_ODDS",
    }
    assert set(ask(find_arbitrage, live)[0]["warnings"]) == wanted
    at_95 = table(total("a", 220.5, 2.0, 1.5, is_live=True), total("b", 220.5, 1.5, 1.0 / 0.45, is_live=True))
    assert "LOW_IMPLIED_TOTAL" not in ask(find_arbitrage, at_95)[0]["warnings"]
    calm = table(total("a", 220.5, 2.02, 1.9), total("b", 220.5, 1.9, 2.02))
    assert ask(find_arbitrage, calm)[0]["warnings"] == []


def test_an_alternate_line_is_not_the_line_most_books_quote() -> None:
    rows = [total(b, 224.5, 1.9, 1.9) for b in "abc"]
    odds = table(*rows, total("a", 220.5, 2.02, 1.8), total("b", 220.5, 1.8, 2.02))
    found = ask(find_arbitrage, odds, guards=[])
    assert [(a["line"], a["is_alternate_line"]) for a in found] == [(220.5, True)]
    assert "LOW_IMPLIED_TOTAL" not in found[0]["warnings"]
    # Ties of books: the more balanced line is the main one.
    two = table(total("a", 220.5, 2.02, 1.8), total("b", 220.5, 1.8, 2.02), *(total(b, 224.5, 2.6, 1.5) for b in "ab"))
    assert [a["is_alternate_line"] for a in ask(find_arbitrage, two, guards=[])] == [False]


# -- middles ---------------------------------------------------------------------------------------


def between(odds: pl.DataFrame, **words: Any) -> list[dict[str, Any]]:
    """The middles of a's over, or home, and b's under, or away."""
    found = ask(find_middles, odds, guards=[], **words)
    return [m for m in found if (m["side1"]["sportsbook"], m["side2"]["sportsbook"]) == ("a", "b")]


def test_a_middle_needs_a_whole_number_between_and_two_books() -> None:
    for low, high, numbers in (
        (220.5, 221.5, [221]),
        (220.0, 222.0, [221]),
        (220.25, 221.0, []),
        (220.0, 221.0, []),
        (220.5, 224.0, [221, 222, 223]),
    ):
        odds = table(total("a", low, 2.0, None), total("b", high, None, 2.0), total("pinnacle", 220.5, 1.95, 1.95))
        assert [m["middle_numbers"] for m in between(odds)] == ([numbers] if numbers else [])
    assert not ask(find_middles, table(total("a", 220.5, 2.0, None), total("a", 223.5, None, 2.0)), guards=[])
    assert not ask(find_middles, table(total("a", 223.5, 2.0, None), total("b", 220.5, None, 2.0)), guards=[])


def test_middles_of_spreads_and_their_figures() -> None:
    """Celtics -2.5 and Lakers +7.5: a Celtics win by 3 to 7 wins both."""
    odds = table(spread("a", -2.5, 1.95, None), spread("b", -7.5, None, 1.9), spread("c", -4.5, 1.9, 1.9))
    m = between(odds)[0]
    assert (m["side1"]["line"], m["side2"]["line"], m["middle_size"]) == (-2.5, 7.5, 5.0)
    assert m["middle_numbers"] == [3, 4, 5, 6, 7]
    both = 1.0 / 1.95 + 1.0 / 1.9
    assert m["side1"]["stake_percent"] == pytest.approx(100.0 / 1.95 / both)
    assert m["expected_value"] == pytest.approx(((1.0 + m["middle_probability"]) / both - 1.0) * 100.0)
    assert not between(odds, min_size=5.01)
    assert between(odds, min_size=5.0)


@pytest.mark.parametrize(("odds", "shown"), [(2.2, True), (2.21, False), (1.6, True), (1.59, False)])
def test_worst_cases_of_middles(odds: float, shown: bool) -> None:
    """From -20 % to +10 % of the stake."""
    lines = table(total("a", 220.5, odds, None), total("b", 223.5, None, odds), total("c", 222.5, 1.9, 1.9))
    assert bool(between(lines)) == shown
    assert between(lines, max_profit=None) or odds < 1.6


@pytest.mark.parametrize(
    ("sport", "league", "level"),
    [("basketball", "nba", 0.0), ("baseball", "mlb", 0.0), ("hockey", "nhl", 0.0), ("football", "nfl", 0.003)],
)
def test_a_game_that_cannot_end_level(sport: str, league: str, level: float) -> None:
    """Home -0.5 .. +0.5 holds nothing but 0; a window of -1..1 is the moneyline's gap to the lines beside it."""
    game: dict[str, Any] = dict(event_id="g", sport=sport, league=league, home_team="H", away_team="A")
    around_zero = [spread("a", 0.5, 2.0, None, **game), spread("b", -0.5, None, 2.0, **game)]
    (m,) = between(table(*around_zero, moneyline("pinnacle", 1.95, 1.95, **game)))
    assert m["middle_numbers"] == [0]
    assert m["middle_probability"] == pytest.approx(level, abs=1e-9)
    wide = [
        spread("a", 1.5, 1.95, None, **game),
        spread("b", -1.5, None, 1.95, **game),
        spread("pinnacle", 1.5, 1.7, 2.25, **game),
    ]
    assert not between(table(*wide))  # no shape across 0 without the moneyline
    (m,) = between(table(*wide, moneyline("pinnacle", 1.95, 1.95, **game), total("pinnacle", 8.5, 1.95, 1.95, **game)))
    assert m["probability_source"] == "shape"
    assert m["middle_numbers"] == [-1, 0, 1]


def known(*extra: Rows, low: float = 220.5, high: float = 223.5, **fields: Any) -> dict[str, Any]:
    """The middle of a's over and b's under."""
    odds = table(total("a", low, 1.95, None, **fields), total("b", high, None, 1.95, **fields), *extra)
    return between(odds, method="power")[0]


def test_the_ladder_before_the_median_before_the_shape() -> None:
    ladder = [total("pinnacle", 220.5, 1.9, 2.0), total("pinnacle", 223.5, 2.15, 1.78)]
    books = [total(b, x, *odds) for b in "cd" for x, odds in ((220.5, (1.85, 1.95)), (223.5, (2.05, 1.78)))]
    main = total("e", 222.5, 1.9, 1.9)
    m = known(*ladder, *books, main)
    assert m["probability_source"] == "ladder"
    assert m["middle_probability"] == pytest.approx(fair(1.9, 2.0) - fair(2.15, 1.78))
    m = known(ladder[0], *books, main)
    assert m["probability_source"] == "median"
    assert m["middle_probability"] == pytest.approx(fair(1.85, 1.95) - fair(2.05, 1.78))
    m = known(main)
    assert m["probability_source"] == "shape"
    assert 0.03 < m["middle_probability"] < 0.09  # three points of 18 around the mean


def test_quality_of_a_middle() -> None:
    ladder = [total("pinnacle", 220.5, 1.9, 2.0), total("pinnacle", 223.5, 2.15, 1.78)]
    m = known(*ladder)
    ev, p = m["expected_value"], m["middle_probability"]
    source = {1.0: "agree", 0.4: "doubted"}
    scores = [45.0 * max(0.0, min(1.0, ev / 5.0)) + 25.0 * min(1.0, p / 0.25) + 20.0 * s + 10.0 for s in source]
    assert any(m["quality_score"] == pytest.approx(s) for s in scores)


def test_key_numbers_of_margins() -> None:
    def keys(low: float, high: float, fields: dict[str, Any]) -> list[list[int]]:
        sides = [spread("a", low, 1.95, None, **fields), spread("b", high, None, 1.95, **fields)]
        main = [spread("c", -4.5, 1.9, 1.9, **fields), total("c", 6.5, 1.9, 1.9, **fields)]
        return [m["key_numbers"] for m in between(table(*sides, *main))]

    nfl: dict[str, Any] = dict(event_id="n", sport="football", league="nfl", home_team="Chiefs", away_team="Bills")
    assert keys(-2.5, -7.5, nfl) == [[3, 7]]
    assert keys(-3.5, -6.5, nfl) == [[]]
    assert keys(10.5, 6.5, nfl) == [[-10, -7]]
    assert keys(-2.5, -7.5, {}) == [[]]
    assert keys(-0.5, -1.5, {**NHL}) == [[1]]
    totals = between(
        table(total("a", 2.5, 1.95, None, **nfl), total("b", 7.5, None, 1.95, **nfl), total("c", 4.5, 1.9, 1.9, **nfl))
    )
    assert [m["key_numbers"] for m in totals] == [[]]


# -- ids -------------------------------------------------------------------------------------------


def ids(rows: Sequence[Row | Rows], **words: Any) -> dict[str, list[str]]:
    found = everything(table(*rows), **words)
    return {kind: sorted(found[kind]["id"].to_list()) for kind in KINDS}


def a_bit_of_all(over: float = 2.04, book: str = "a") -> list[Row | Rows]:
    half = "1st_half_total_points"
    return [
        total(book, 220.5, over, 1.85),
        total("pinnacle", 220.5, 1.95, 1.99),
        total("b", 222.5, 1.85, 2.0),
        total(book, 210.5, 2.0, 1.8, market=half),
        total("b", 210.5, 1.8, 2.0, market=half),
    ]


def test_ids_stay_with_the_price_and_change_with_the_book() -> None:
    words: dict[str, Any] = dict(guards=[], min_ev=0.1, min_middle_ev=None)
    first, moved, other = (
        ids(a_bit_of_all(), **words),
        ids(a_bit_of_all(2.06), **words),
        ids(a_bit_of_all(book="z"), **words),
    )
    assert all(first.values())
    assert first == moved
    for kind in KINDS:
        assert set(first[kind]) != set(other[kind])
    every = [i for group in first.values() for i in group]
    assert len(set(every)) == len(every)


def test_ids_do_not_depend_on_the_rest_of_the_board() -> None:
    """A market of three outcomes beside one of two."""
    two = [total("a", 220.5, 2.03, 1.85), total("b", 220.5, 1.85, 2.03)]
    three = [moneyline("a", 3.1, 2.5, 3.3, **LA_LIGA), moneyline("b", 2.9, 2.6, 3.3, **LA_LIGA)]
    words: dict[str, Any] = dict(guards=[], min_profit=-5.0, max_hold=5.0)
    alone, beside = ids(two, **words), ids([*two, *three], **words)
    assert all(set(alone[kind]) <= set(beside[kind]) for kind in KINDS)
    assert beside["arbitrage"] != alone["arbitrage"]


def test_ids_name_line_event_period_and_live_flag() -> None:
    def arb(**fields: Any) -> str:
        line = fields.pop("line", 220.5)
        found = ask(find_arbitrage, table(total("a", line, 2.1, 1.75, **fields), total("b", line, 1.75, 2.1, **fields)))
        return str(found[0]["id"]).rsplit(":", 1)[-1]

    made = [arb(), arb(line=221.5), arb(event_id="f"), arb(is_live=True), arb(market="1st_half_total_points")]
    assert len(set(made)) == len(made)
    assert arb() == arb(age=3) == arb(market="totals")


_SCRIPT = """
import sys; sys.path.insert(0, "tests")
from detection import test_laws
found = test_laws.ids(test_laws.a_bit_of_all(), guards=[], min_ev=0.1, min_middle_ev=None)
print(sorted(i for group in found.values() for i in group))
"""


@pytest.mark.exhaustive
def test_ids_are_the_same_in_every_process() -> None:
    found = ids(a_bit_of_all(), guards=[], min_ev=0.1, min_middle_ev=None)
    here = sorted(i for group in found.values() for i in group)
    env = {**os.environ, "PYTHONHASHSEED": "12345", "POLARS_MAX_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    assert said.stdout.strip() == str(here)


# -- edges -----------------------------------------------------------------------------------------


def test_a_table_without_rows() -> None:
    empty = frame([])
    found = find_all(empty)
    assert not any(f.height for f in found.frames.values())
    assert found.rejected_counts == {}
    assert oddsengine.rejected(empty).is_empty()
    assert oddsengine.markets(empty).is_empty()


def test_one_row_and_one_book() -> None:
    with nothing("two other books"):
        assert not any(
            f.height for f in find_all(table(row("a", "total_points", "Over", 2.0, 220.5)), guards=[]).frames.values()
        )
    found = find_all(table(total("a", 220.5, 2.0, 1.97)), now=MOMENT)
    assert [low["hold_percentage"] for low in found.low_hold.to_dicts()] == [pytest.approx((0.5 + 1 / 1.97 - 1) * 100)]
    assert not found.ev.height
    assert not found.arbitrage.height


def test_nothing_but_bad_rows() -> None:
    odds = table(row("a", "total_points", "Over", math.nan, 220.5), row("a", "correct_score", "2-1", 9.0))
    with nothing("2 of 2 rows are rejected: unmapped 1, bad_price 1"):
        assert not any(f.height for f in find_all(odds).frames.values())
    assert oddsengine.rejected(odds)["guard"].to_list() == ["bad_price", "unmapped"]
    assert oddsengine.markets(odds).is_empty()  # no market is known


def test_very_long_prices() -> None:
    odds = table(moneyline("a", 1.0005, 1500.0), moneyline("b", 1.0001, 4001.0), moneyline("pinnacle", 1.0003, 1201.0))
    found = everything(odds, guards=[], min_profit=-50.0, max_profit=None)
    assert legs(found["arbitrage"].to_dicts()[0]) == [("a", 1.0005), ("b", 4001.0)]
    assert found["arbitrage"]["profit_percent"][0] == pytest.approx((1.0 / (1.0 / 1.0005 + 1.0 / 4001.0) - 1.0) * 100.0)
    assert found["ev"]["no_vig_odds"].is_finite().all()


def test_texts_for_numbers_are_read_and_wrong_types_named() -> None:
    odds = table(total("a", 220.5, 2.1, 1.75), total("b", 220.5, 1.75, 2.1))
    texts = odds.with_columns(pl.col("odds_decimal", "line").cast(pl.String))
    assert find_arbitrage(texts, now=MOMENT).equals(find_arbitrage(odds, now=MOMENT))
    with pytest.raises(oddsengine.OddsError, match="odds_decimal"):
        find_arbitrage(odds.with_columns(odds_decimal=pl.concat_list("odds_decimal")))
    with pytest.raises(oddsengine.OddsError, match="not an odds table"):
        find_arbitrage(pl.DataFrame({"x": [1]}))
    with pytest.raises(oddsengine.OddsError):
        find_arbitrage({"x": [1]})


@pytest.mark.parametrize("find", FINDERS)
def test_words_that_nobody_knows(find: Find) -> None:
    odds = table(total("a", 220.5, 1.9, 1.9))
    with pytest.raises(ValueError, match=r"guess.*stale"):
        find(odds, guards=["guess"])
    with pytest.raises(ValueError, match=r"method must be one of .*power.*got 'magic'"):
        find(odds, method="magic")
    with pytest.raises(ValueError, match="books must be a list"):
        find(odds, books="pinnacle")
    with pytest.raises(TypeError, match="now must be a datetime"):
        find(odds, now=12)
    with whatever_is_found():
        assert not find(odds, books=["fanduel"]).height  # the catalog knows it, the table has nothing of it
    for word, value, strange in (
        ("books", ["fandual"], "fandual"), ("sharp", "pinacle", "pinacle"), ("sharp", ["circa", "pinacle"], "pinacle"),
        ("sharp", {"a": 2, "cirka": 1}, "cirka"), ("commission", {"a": 0.01, "betfare": 0.02}, "betfare"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{word}: no prices of {strange}; the books are a$"):
            find(odds, **{word: value})
    with pytest.raises(ValueError, match=r"no prices of nobody; the books are none$"):
        find(odds.clear(), books=["nobody"])


@pytest.mark.parametrize(
    ("find", "word", "value"),
    [
        (find_ev, "min_ev", math.nan),
        (find_arbitrage, "min_profit", "1"),
        (find_low_hold, "max_hold", -1.0),
        (find_middles, "min_size", math.inf),
    ],
)
def test_thresholds_that_are_none(find: Find, word: str, value: Any) -> None:
    with pytest.raises(ValueError, match=word):
        find(table(total("a", 220.5, 1.9, 1.9)), **{word: value})


# -- what the frames are made of -------------------------------------------------------------------

_T, _F, _B, _I = pl.String, pl.Float64, pl.Boolean, pl.Int64
_TIME = pl.Datetime("us", "UTC")
_TEXTS = pl.List(pl.String)

EV: dict[str, Any] = dict(
    id=_T, event_id=_T, external_event_id=_T, selection_id=_T, ev_percentage=_F, odds_american=_F,
    odds_decimal=_F, no_vig_odds=_F, fair_probability=_F, market_width=_F, devig_method=_T, sharp_book=_T,
    selection=_T, market_type=_T, line=_F, sportsbook=_T, event_name=_T, sport=_T, league=_T, home_team=_T,
    away_team=_T, event_start_time=_TIME, is_live=_B, confidence_score=_F, kelly_percent=_F, book_count=_I,
    arb_available=_B, arb_profit=_F, is_player_prop=_B, player_name=_T, stat_category=_T, possibly_stale=_B,
    oldest_odds_age_seconds=_F, warnings=_TEXTS, detected_at=_TIME,
)  # fmt: skip
OUR_EV: dict[str, Any] = dict(
    row=pl.UInt32, team_side=_T, market_segment=_T, selection_type=_T, net_odds=_F,
    push_probability=_F, ev_per_stake=_F, tie_probability=_F, is_alternate_line=_B, shared_feed=_TEXTS, odds_id=_T,
    unconfirmed=_B,
    reference=_T, ev_vs_sharp=_F, ev_low=_F, ev_high=_F, ev_error=_F, prob_positive=_F, still_there=_F,
    flags=_TEXTS, kelly_shrunk=_F,
    independent_books=_I, agreeing_books=_I, max_bet=_F,
)  # fmt: skip
ARBITRAGE: dict[str, Any] = dict(
    id=_T, event_id=_T, event_name=_T, sport=_T, league=_T, market_type=_T, line=_F, profit_percent=_F,
    implied_total=_F, is_live=_B, event_start_time=_TIME, is_alternate_line=_B, possibly_stale=_B,
    oldest_odds_age_seconds=_F, warnings=_TEXTS, game_state=("period", "clock", "score_home", "score_away"),
    ev_available=_B, ev_percentage=_F, is_player_prop=_B, player_name=_T, stat_category=_T,
    legs=["sportsbook", "selection", "odds_american", "odds_decimal", "implied_probability", "stake_percent",
    "last_seen_at", "external_event_id", "selection_id", "market_id", "row"], detected_at=_TIME,
)  # fmt: skip
OUR_TERMS: dict[str, Any] = dict(
    terms_differ=_B, terms_worst_case=_F, terms=_TEXTS, terms_results=pl.List(_F),
)  # fmt: skip
OUR_ARBITRAGE: dict[str, Any] = dict(
    home_team=_T, away_team=_T, team_side=_T, market_segment=_T, book_count=_I,
    unconfirmed=_B, sharp_book=_T, **OUR_TERMS,
)  # fmt: skip
PRICE = ("odds_american", "odds_decimal", "implied_probability", "fair_probability", "row")
MIDDLE_SIDE = ("sportsbook", "selection", "line", *PRICE, "stake_percent", "odds_age_seconds", "deep_link")
MIDDLES: dict[str, Any] = dict(
    id=_T, event_id=_T, event_name=_T, sport=_T, league=_T, market_type=_T, side1=MIDDLE_SIDE,
    side2=MIDDLE_SIDE, middle_size=_F, middle_numbers=pl.List(_I), middle_probability=_F, expected_value=_F,
    quality_score=_F, detected_at=_TIME,
)  # fmt: skip
OUR_MIDDLES: dict[str, Any] = dict(
    home_team=_T, away_team=_T, event_start_time=_TIME, is_live=_B, worst_case_loss=_F, best_case_profit=_F,
    break_even_percent=_F, is_guaranteed_profit=_B, key_numbers=pl.List(_I), probability_source=_T,
    odds_age_seconds=_F, is_player_prop=_B, player_name=_T, stat_category=_T, team_side=_T,
    market_segment=_T, warnings=_TEXTS, unconfirmed=_B, **OUR_TERMS,
)  # fmt: skip
HOLD_SIDE = ("selection", "books", "line", *PRICE, "rows", "deep_links")
LOW_HOLD: dict[str, Any] = dict(
    id=_T, event_id=_T, event_name=_T, sport=_T, league=_T, market_type=_T, line=_F, home_team=_T,
    away_team=_T, event_start_time=_TIME, hold_percentage=_F, is_live=_B, all_books=_TEXTS, side1=HOLD_SIDE,
    side2=HOLD_SIDE, detected_at=_TIME,
)  # fmt: skip
OUR_LOW_HOLD: dict[str, Any] = dict(
    side3=HOLD_SIDE, is_alternate_line=_B, is_player_prop=_B, player_name=_T, stat_category=_T,
    team_side=_T, market_segment=_T, oldest_odds_age_seconds=_F, possibly_stale=_B, warnings=_TEXTS,
    unconfirmed=_B, **OUR_TERMS,
)  # fmt: skip
PUBLISHED = {
    "ev": (EV, OUR_EV),
    "arbitrage": (ARBITRAGE, OUR_ARBITRAGE),
    "middles": (MIDDLES, OUR_MIDDLES),
    "low_hold": (LOW_HOLD, OUR_LOW_HOLD),
}


def has_fields(dtype: Any, wanted: Any) -> None:
    """A dtype is the wanted one, or a struct, or a list of structs, with at least these fields."""
    if isinstance(wanted, list):
        assert isinstance(dtype, pl.List)
        dtype, wanted = dtype.inner, tuple(wanted)
    if isinstance(wanted, tuple):
        assert isinstance(dtype, pl.Struct)
        assert set(wanted) <= {field.name for field in dtype.fields}
    else:
        assert dtype == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [[], a_bit_of_all()])
def test_frames_have_the_published_fields_and_ours(kind: str, rows: list[Row | Rows]) -> None:
    found = everything(table(*rows), guards=[], min_middle_ev=None)[kind]
    assert bool(found.height) == bool(rows)
    published, ours = PUBLISHED[kind]
    assert set(found.columns) == {*published, *ours}
    for name, wanted in (published | ours).items():
        has_fields(found.schema[name], wanted)


@pytest.mark.parametrize("rows", [[], a_bit_of_all()])
def test_rows_legs_and_sides_join_back_and_keep_the_columns_of_the_input(rows: list[Row | Rows]) -> None:
    given = table(*rows)
    odds = given.with_columns(note=pl.int_range(pl.len()).cast(pl.String), id=pl.lit("own"), kelly_percent=1.0)
    odds = odds.with_columns(pl.Series("tags", [[at] for at in range(odds.height)], dtype=pl.List(pl.Int64)))
    found = everything(odds, guards=[], min_middle_ev=None)
    plain = everything(given, guards=[], min_middle_ev=None)
    ev = found["ev"]
    assert ev.columns[-6:] == ["note", "tags", "market_type", "odds_decimal", "ev_percentage", "row"]
    assert ev.drop("note", "tags", "odds_id").equals(plain["ev"].drop("odds_id"))  # a name that results have is theirs
    legs = [ev, found["arbitrage"].explode("legs").drop_nulls("legs")["legs"].struct.unnest()]
    for kind, sides in (("low_hold", ("side1", "side2", "side3")), ("middles", ("side1", "side2"))):
        legs += [found[kind][side].drop_nulls().struct.unnest() for side in sides]
    for each in legs:
        assert each.schema["note"] == pl.String
        joined = each.join(odds.with_row_index("row"), on="row", suffix="_given", maintain_order="left")
        assert joined.height == each.height
        for name in ("selection", "odds_decimal", "note", "tags"):
            assert joined[name].equals(joined[f"{name}_given"])
        assert "sportsbook" not in each.columns or joined["sportsbook"].equals(joined["sportsbook_given"])
    for side in found["low_hold"]["side1"].to_list():
        assert [odds["sportsbook"][at] for at in side["rows"]] == side["books"]


def test_an_id_does_not_depend_on_how_a_table_spells_the_books() -> None:
    plain = table(*a_bit_of_all()).with_columns(
        pl.col("sportsbook").replace({"a": "caesars", "b": "circa", "c": "corner shop"})
    )
    spelled = plain.with_columns(
        pl.col("sportsbook").replace({"caesars": "CAESARS", "circa": " Circa Sports ", "corner shop": "Corner Shop"})
    )
    words: dict[str, Any] = dict(guards=[], min_middle_ev=None)
    found, other = everything(plain, **words), everything(spelled, **words)
    for kind in KINDS:
        assert found[kind].height
        assert set(found[kind]["id"]) == set(other[kind]["id"]), kind
    engine = Engine(guards=[])
    engine.step(spelled, MOMENT)
    view = engine.view(method="power").opportunities()
    assert set(view.ev["id"]) == set(find_all(plain, method="power", guards=[], now=MOMENT).ev["id"])


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt32, pl.String])
def test_a_column_row_of_the_input_stays_as_it_is(dtype: type[pl.DataType]) -> None:
    given = table(*a_bit_of_all())
    odds = given.with_columns(row=pl.int_range(1000, 1000 - given.height, -1).cast(dtype))
    found = everything(odds, guards=[], min_middle_ev=None)
    assert found["ev"].columns[-1] == "odds_row"
    frames = [found["ev"], found["arbitrage"].explode("legs").drop_nulls("legs")["legs"].struct.unnest()]
    for kind, sides in (("low_hold", ("side1", "side2")), ("middles", ("side1", "side2"))):
        frames += [found[kind][side].drop_nulls().struct.unnest() for side in sides]
    with whatever_is_found():
        promos = oddsengine.find_promos(odds, "free_bet", 100, guards=[])
        checked, priced = oddsengine.check_odds(odds), oddsengine.fair(odds)
        bad = oddsengine.rejected(odds.with_columns(odds_decimal=pl.lit(0.5)))
    frames += [promos, promos.explode("hedges")["hedges"].struct.unnest()]
    for each in frames:
        assert each.height
        assert each.schema["row"] == dtype
        assert each["row"].equals(odds["row"][each["odds_row"]])
        assert each["odds_decimal"].equals(odds["odds_decimal"][each["odds_row"]])
    assert checked["row"].equals(odds["row"])
    assert priced["row"].equals(odds["row"])
    assert bad["odds_row"].to_list() == list(range(odds.height))
    assert "row" not in bad.columns


def test_a_column_row_of_objects_is_not_kept() -> None:
    given = table(*a_bit_of_all())
    odds = given.with_columns(row=pl.Series([object()] * given.height, dtype=pl.Object))
    legs = everything(odds, guards=[])["arbitrage"].explode("legs")["legs"].struct.unnest()
    assert legs["odds_decimal"].equals(odds["odds_decimal"][legs["row"]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_printed_result_says_what_to_bet(kind: str) -> None:
    with pl.Config(tbl_width_chars=400, tbl_cols=8):
        said = str(everything(table(*a_bit_of_all()), guards=[], min_middle_ev=None)[kind])
    figure = {"ev": "ev_percentage", "arbitrage": "profit_percent", "low_hold": "hold_percentage"}
    assert all(f" {name} " in said for name in ("event_name", "market_type", figure.get(kind, "expected_value")))


def test_props_carry_player_and_stat() -> None:
    odds = table(prop("a", "LeBron James", 25.5, 2.1, 1.75), prop("b", "LeBron James", 25.5, 1.75, 2.1))
    (arb,) = ask(find_arbitrage, odds)
    assert (arb["is_player_prop"], arb["player_name"], arb["stat_category"]) == (True, "LeBron James", "points")
    assert len(COLUMNS) > 20


@pytest.mark.parametrize("find", FINDERS)
def test_a_finder_alone_is_its_part_of_all(find: Find) -> None:
    odds = frame(build(7, 3, 8))
    whole = find_all(odds, now=MOMENT, min_middle_ev=None)
    kind = find.__name__.removeprefix("find_")
    assert find(odds, now=MOMENT).equals(getattr(whole, kind))


def test_the_moment_is_the_newest_price_unless_given() -> None:
    odds = table(total("a", 220.5, 2.1, 1.75, age=100), total("b", 220.5, 1.75, 2.1, age=20))
    (arb,) = find_arbitrage(odds).to_dicts()
    assert (arb["oldest_odds_age_seconds"], arb["detected_at"]) == (80.0, MOMENT - timedelta(seconds=20))
    (arb,) = ask(find_arbitrage, odds)
    assert arb["oldest_odds_age_seconds"] == 100.0
    assert not find_arbitrage(odds, now=MOMENT + timedelta(seconds=501)).height


@pytest.mark.parametrize(
    ("find", "falling", "rising"),
    [
        (find_ev, ["ev_percentage"], []), (find_arbitrage, ["profit_percent"], []),
        (find_low_hold, [], ["hold_percentage"]), (find_middles, ["quality_score", "expected_value"], []),
    ],
)  # fmt: skip
def test_results_are_in_order_and_ties_in_that_of_their_ids(find: Find, falling: list[str], rising: list[str]) -> None:
    games: list[Rows] = []
    for at in range(9):
        event, more = {"event_id": f"e{at}"}, 0.01 * (at % 3)
        games += [total("a", 220.5, 2.1 + more, 1.8, **event), total("b", 220.5, 1.8, 2.1, **event)]
        games += [total("pinnacle", 220.5, 1.95, 1.95, **event), total("b", 223.5, 1.7, 2.2, **event)]
        games += [spread("a", -3.5, 1.93 + more, 1.9, **event), spread("b", -3.5, 1.9, 1.93, **event)]
    words = {"sharp": "pinnacle", "min_ev": 0.0} if find is find_ev else {"max_hold": 9.0} if rising else {}
    found = ask(find, table(*games), guards=[], **words)
    keys = [(*(-row[name] for name in falling), *(row[name] for name in rising), row["id"]) for row in found]
    assert len(keys) >= 9
    assert len({key[:-1] for key in keys}) <= len(keys) // 3
    assert keys == sorted(keys)


def test_a_leg_of_a_middle_whose_other_side_nobody_quotes() -> None:
    """Its fair probability is the price's, less the hold of the pair."""
    odds = table(total("a", 220.5, 1.9, None), total("b", 223.5, None, 1.95), total("c", 221.5, 1.8, 1.8))
    (found,) = (
        each
        for each in ask(find_middles, odds, min_ev=None)
        if {each["side1"]["sportsbook"], each["side2"]["sportsbook"]} == {"a", "b"}
    )
    share = {1.9: 1.0 / 1.9, 1.95: 1.0 / 1.95}
    for side in (found["side1"], found["side2"]):
        d, fair = side["odds_decimal"], side["fair_probability"]
        assert fair == pytest.approx(share[d] / max(sum(share.values()), 1.0))
