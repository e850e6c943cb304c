"""Every guard against the hazard it exists for, and beside an honest neighbour that it must leave alone."""

import itertools
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import polars as pl
import pytest
from support.hazards import NOW, SECOND
from support.rows import (
    AWAY,
    HOME,
    LA_LIGA,
    MOMENT,
    Rows,
    aside,
    ask,
    legs,
    moneyline,
    nothing,
    prop,
    reason,
    row,
    spread,
    table,
    team_total,
    total,
    whatever_is_found,
)

from oddsengine import fair, find_all, find_arbitrage, find_ev, find_low_hold, find_middles
from oddsengine.catalog.reasons import GUARDS

Find = Callable[..., pl.DataFrame]


def odds_at(logit: float) -> float:
    """The price whose implied probability has this logit."""
    return 1.0 + math.exp(-logit)


def keeps_away(guard: str, odds: pl.DataFrame, places: Iterable[int], find: Find = find_arbitrage) -> None:
    """A guard, alone or with the others, removes a phantom that is there without it, and names its rows."""
    # A middle that is too good to be true is kept away by its worth alone: look without that.
    rest = [name for name in GUARDS if name not in (guard, "ev_cap" if find is find_middles else guard)]
    assert ask(find, odds, guards=[])
    assert ask(find, odds, guards=rest)
    assert not ask(find, odds, guards=[guard])
    assert not ask(find, odds)
    expected = dict.fromkeys(places, guard)
    assert aside(odds) == expected
    assert aside(odds, guards=[guard]) == expected
    assert not aside(odds, guards=rest)


def leaves_alone(odds: pl.DataFrame, find: Find = find_arbitrage) -> None:
    """Nothing is rejected, and what is found without guards is found with them."""
    assert not aside(odds)
    found = find(odds, now=MOMENT)
    assert found.height
    assert found.equals(find(odds, guards=[], now=MOMENT))


# -- one row at a time -----------------------------------------------------------------------------


@pytest.mark.parametrize("odds", [1.0, 0.5, 0.0, -2.0, math.nan, math.inf, None])
def test_what_is_no_price_never_enters(odds: float | None) -> None:
    board = table(
        total("a", 220.5, 2.1, 1.8), total("b", 220.5, 1.8, 2.1), row("c", "total_points", "Over", odds, 220.5)
    )
    assert aside(board) == {4: "bad_price"}
    assert "price" in reason(board, 4)
    assert legs(ask(find_arbitrage, board)[0]) == [("a", 2.1), ("b", 2.1)]


def test_a_bad_price_has_no_switch() -> None:
    board = table(row("c", "total_points", "Over", 1.0, 220.5))
    assert aside(board, guards=[]) == {0: "bad_price"}


def test_two_forms_of_a_price_that_differ() -> None:
    wrong = row("a", "total_points", "Over", 2.3, 220.5, odds_american=110.0)
    board = table(wrong, total("b", 220.5, 1.95, 1.85))
    keeps_away("price_mismatch", board, [0])
    assert "1 %" in reason(board, 0)


@pytest.mark.parametrize(
    ("american", "mismatch"),
    [(150.0, False), (152.5, False), (152.6, True), (147.5, False), (147.4, True), (50.0, True)],
)
def test_forms_of_a_price_may_differ_by_one_percent(american: float, mismatch: bool) -> None:
    board = table(row("a", "total_points", "Over", 2.5, 220.5, odds_american=american))
    assert aside(board) == ({0: "price_mismatch"} if mismatch else {})


def test_a_text_that_its_type_contradicts() -> None:
    turned = row("a", "total_points", "Over", 2.2, 220.5, selection_type="under")
    board = table(turned, total("b", 220.5, 1.85, 1.95))
    keeps_away("side_conflict", board, [0])
    assert "name different outcomes" in reason(board, 0)
    straight = row("a", "total_points", "Over", 2.2, 220.5, selection_type="over")
    leaves_alone(table(straight, total("b", 220.5, 1.85, 1.95)))


def test_a_selection_that_is_no_outcome() -> None:
    board = table(moneyline("a", 2.2, 1.7), moneyline("b", 1.8, 2.1), row("c", "moneyline", "Nonsense United", 9.0))
    assert aside(board) == {4: "unknown_outcome"}
    assert "not an outcome of the market" in reason(board, 4)
    assert legs(ask(find_arbitrage, board)[0]) == [("a", 2.2), ("b", 2.1)]
    assert not aside(board.head(4))


def test_a_line_on_a_market_that_has_none() -> None:
    """A home win by more than 5.5 is no home win."""
    board = table(row("a", "moneyline", HOME, 2.4, -5.5), moneyline("b", 1.75, 1.95))
    keeps_away("no_line", board, [0])
    assert "line" in reason(board, 0)
    leaves_alone(table(row("a", "moneyline", HOME, 2.2, 0.0), moneyline("b", 1.75, 1.95)))


@pytest.mark.parametrize(
    ("line", "kept"), [(220.5, True), (220.25, True), (220.01, True), (220.125, False), (None, False)]
)
def test_lines_are_whole_hundredths(line: float | None, kept: bool) -> None:
    board = table(row("a", "total_points", "Over", 2.0, line))
    assert aside(board) == ({} if kept else {0: "no_line"})
    if not kept:
        assert aside(board, guards=[]) == {0: "no_line"}  # no market without a line


# -- time ------------------------------------------------------------------------------------------


def test_a_price_not_seen_for_long() -> None:
    board = table(total("a", 220.5, 2.2, None, age=601), total("b", 220.5, 1.8, 1.95))
    keeps_away("stale", board, [0])
    assert reason(board, 0) == "last seen 601 s before now"


@pytest.mark.parametrize(
    ("live", "age", "stale"),
    [
        (False, 600, False),
        (False, 600.001, True),
        (True, 30, False),
        (True, 30.001, True),
        (False, -5, False),
        (True, -5, False),
    ],
)
def test_ages_at_the_limit(live: bool, age: float, stale: bool) -> None:
    board = table(total("a", 220.5, 1.9, 1.9, age=age, is_live=live), total("b", 220.5, 1.9, 1.9, is_live=live))
    assert aside(board) == (dict.fromkeys((0, 1), "stale") if stale else {})


def test_a_price_without_a_time() -> None:
    rows = total("a", 220.5, 1.9, 1.9, last_seen_at=None), total("b", 220.5, 1.9, 1.9, last_seen_at=None, is_live=True)
    assert aside(table(*rows)) == {2: "stale", 3: "stale"}
    assert not aside(table(*rows), guards=[g for g in GUARDS if g != "stale"])


def live_total(book: str, over: float | None, under: float | None, age: float) -> Rows:
    return total(book, 220.5, over, under, is_live=True, age=age)


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [(0, 5, True), (0, 5.001, False), (5, 10, True), (6, 10.001, False), (10, 10, True), (29, 29, False)],
)
@pytest.mark.parametrize("find", [find_arbitrage, find_low_hold, find_middles, find_ev])
def test_live_legs_are_fresh_and_close_in_time(find: Find, first: float, second: float, found: bool) -> None:
    board = {
        "find_arbitrage": [live_total("a", 2.1, 1.75, first), live_total("b", 1.75, 2.1, second)],
        "find_low_hold": [live_total("a", 2.0, 1.8, first), live_total("b", 1.8, 2.0, second)],
        "find_middles": [live_total("a", 2.0, 1.8, first), total("b", 223.5, 1.8, 2.0, is_live=True, age=second)],
        "find_ev": [live_total("pinnacle", 1.95, 1.95, first), live_total("b", 1.7, 2.15, second)],
    }[find.__name__]
    odds = table(*board)
    with whatever_is_found():
        assert bool(ask(find, odds)) == found
        assert bool(ask(find, odds, guards=["stale"])) == found
    assert ask(find, odds, guards=[g for g in GUARDS if g != "stale"])
    assert not aside(odds)  # they are served


def test_the_best_admissible_live_legs_are_not_the_best_prices() -> None:
    """The best over is 6 s from the best under; two pairs remain, and the better one counts."""
    board = table(
        live_total("a", 2.2, 1.8, 9), live_total("b", 2.06, 1.8, 4), live_total("c", 1.85, 2.12, 3),
        live_total("d", 1.85, 2.08, 5),
    )  # fmt: skip
    (arb,) = ask(find_arbitrage, board)
    assert legs(arb) == [("a", 2.2), ("d", 2.08)]
    board = table(live_total("a", 2.2, 1.8, 9), live_total("b", 2.06, 1.8, 4), live_total("c", 1.85, 2.12, 3))
    assert legs(ask(find_arbitrage, board)[0]) == [("b", 2.06), ("c", 2.12)]


@pytest.mark.parametrize(("age", "found"), [(300, True), (301, False), (599, False)])
def test_pre_match_legs_are_close_in_time(age: float, found: bool) -> None:
    board = table(total("a", 220.5, 2.1, 1.75), total("b", 220.5, 1.75, 2.1, age=age))
    assert not aside(board)
    assert bool(ask(find_arbitrage, board)) == found
    assert ask(find_arbitrage, board, guards=[g for g in GUARDS if g != "stale"])
    low = table(total("a", 220.5, 2.0, 1.75), total("b", 220.5, 1.75, 1.99, age=age))
    assert bool(ask(find_low_hold, low)) == found
    middle = table(total("a", 220.5, 2.0, 1.8), total("b", 223.5, 1.8, 2.0, age=age))
    assert bool(ask(find_middles, middle)) == found
    edge = table(total("fanduel", 220.5, 2.1, 1.75), total("pinnacle", 220.5, 1.95, 1.95, age=age))
    with whatever_is_found():
        assert bool(ask(find_ev, edge)) == found


def test_old_pre_match_legs_carry_warnings() -> None:
    (arb,) = ask(find_arbitrage, table(total("a", 220.5, 2.1, 1.75, age=301), total("b", 220.5, 1.75, 2.1, age=599)),
                 now=MOMENT)  # fmt: skip
    assert arb["possibly_stale"]
    assert {"POTENTIALLY_STALE_ODDS", "VERY_STALE_ODDS"} < set(arb["warnings"])
    for age, warnings in ((59, []), (60, ["POTENTIALLY_STALE_ODDS"])):
        board = table(total("fanduel", 220.5, 2.1, 1.75), total("pinnacle", 220.5, 1.95, 1.95, age=age))
        for guards in (None, ["outlier"]):  # also if age rejects nothing
            (edge,) = ask(find_ev, board, guards=guards)
            assert (edge["warnings"], edge["oldest_odds_age_seconds"]) == (warnings, age)


def test_the_best_admissible_pre_match_legs_are_not_the_best_prices() -> None:
    board = table(
        total("a", 220.5, 2.2, 1.75), total("b", 220.5, 1.75, 2.12, age=581), total("d", 220.5, 2.1, 1.75, age=300)
    )
    (arb,) = ask(find_arbitrage, board)
    assert legs(arb) == [("d", 2.1), ("b", 2.12)]


def test_a_leg_without_a_time_is_near_any_other() -> None:
    board = table(
        total("a", 220.5, 2.1, 1.75), total("b", 220.5, 1.75, 2.1, age=400),
        total("c", 220.5, 1.75, 2.05, last_seen_at=None),
    )  # fmt: skip
    (arb,) = ask(find_arbitrage, board)
    assert legs(arb) == [("a", 2.1), ("c", 2.05)]
    for age, near in ((300, True), (301, False)):
        ways = table(
            moneyline("a", 3.4, 2.0, 2.0, **LA_LIGA), moneyline("b", 2.0, 3.4, 2.0, age=age, **LA_LIGA),
            moneyline("c", 2.0, 2.0, 3.4, last_seen_at=None, **LA_LIGA),
        )  # fmt: skip
        assert bool(ask(find_arbitrage, ways, guards=["stale"], max_profit=50.0)) == near


# -- witnesses --


IN_PLAY = (("a", 1.22, 38), ("b", 1.24, 41), ("c", 1.25, 47), ("d", 1.26, 52), ("e", 1.27, 55))


def test_prices_too_old_to_bet_still_testify() -> None:
    """Five books were at 1.22 to 1.27 when they were last seen; two fresh prices make an arbitrage of 7.7 %."""
    old = [live_total(book, over, 3.9, age) for book, over, age in IN_PLAY]
    board = table(live_total("f", 1.488, 2.5, 7), live_total("g", 1.2, 3.9, 5), *old)
    assert not ask(find_arbitrage, board)
    assert aside(board) == {0: "outlier", 1: "outlier", **dict.fromkeys(range(4, 14), "stale")}
    quiet = table(live_total("f", 1.488, 2.5, 7), live_total("g", 1.2, 3.9, 5))
    assert ask(find_arbitrage, quiet)  # nobody else ever spoke


@pytest.mark.parametrize(("live", "age", "speaks"), [(True, 120, True), (True, 121, False),
                                                     (False, 3600, True), (False, 3601, False)])  # fmt: skip
def test_how_long_a_price_testifies(live: bool, age: float, speaks: bool) -> None:
    others = [total(book, 220.5, 1.8, 2.0, age=age, is_live=live) for book in "bcd"]
    board = table(total("a", 220.5, 2.6, 1.5, is_live=live), *others)
    assert (aside(board).get(0) == "outlier") == speaks


def test_older_witnesses_count_less() -> None:
    """Three fresh books agree with the price, six old ones do not; an old one counts an eighth."""
    fresh = [total(book, 220.5, 2.55, 1.5) for book in "bcd"]
    old = [total(book, 220.5, 1.8, 2.0, age=1201) for book in "efghij"]
    board = table(total("a", 220.5, 2.6, 1.5), *fresh, *old)
    assert set(aside(board).values()) == {"stale"}


def test_a_witness_is_never_a_leg_or_a_reference() -> None:
    board = table(total("a", 220.5, 2.1, 1.75), total("pinnacle", 220.5, 1.75, 2.1, age=601))
    assert not ask(find_arbitrage, board)
    with nothing("no fair price"):
        assert not ask(find_ev, board)


# -- few witnesses --


def two_agree(over: float, other: float = 2.1, **fields: Any) -> pl.DataFrame:
    return table(
        total("a", 220.5, over, 1.5, **fields), total("b", 220.5, 2.1, 1.755), total("c", 220.5, other, 1.75),
    )  # fmt: skip


def test_two_books_that_agree_cast_doubt_on_a_third() -> None:
    board = two_agree(2.6, 2.11)
    assert not aside(board)
    (arb,) = ask(find_arbitrage, board)
    assert arb["unconfirmed"]
    assert "UNCONFIRMED" in arb["warnings"]
    (edge,) = ask(find_ev, board, sharp="b")
    assert (edge["unconfirmed"], edge["sportsbook"]) == (True, "a")


@pytest.mark.parametrize(("over", "other", "fields", "doubt"), [
    (2.45, 2.1, {}, False),  # within the bound of `outlier`
    (2.45, 2.01, {}, False),  # within it of the more generous of the two
    (2.6, 2.4, {}, False),  # the others do not agree
    (2.9, 1.0 + 1.1 * math.exp(0.1), {}, True),  # by just as much as they may
    (2.9, 1.0 + 1.1 * math.exp(0.1001), {}, False),
    (2.6, 2.1, {"confirmed": True}, False),
    (2.6, 2.1, {}, True),
])  # fmt: skip
def test_when_a_price_is_in_doubt(over: float, other: float, fields: dict[str, Any], doubt: bool) -> None:
    board = two_agree(over, other, **fields)
    (arb,) = ask(find_arbitrage, board, min_profit=-5.0, max_profit=50.0)
    assert arb["unconfirmed"] == doubt
    assert ("UNCONFIRMED" in arb["warnings"]) == doubt
    rest = [name for name in GUARDS if name != "few_witnesses"]
    assert not ask(find_arbitrage, board, min_profit=-5.0, max_profit=50.0, guards=rest)[0]["unconfirmed"]


@pytest.mark.parametrize(("gap", "shown"), [(0.36, True), (0.45, False)])
def test_a_leg_of_a_middle_may_be_as_generous_as_its_kind_of_market(gap: float, shown: bool) -> None:
    """Of a prop by 0.41, where a main line allows 0.30."""
    ladder = [prop(book, "A", 20.5, 1.9, 1.9) + prop(book, "A", 23.5, 2.5, 1.54) for book in "bcde"]
    board = table(prop("a", "A", 20.5, odds_at(-gap), None), *ladder)
    assert [row["side1"]["sportsbook"] for row in ask(find_middles, board, min_ev=None, guards=["ev_cap"])] == [
        "a"
    ] * shown


def test_what_rests_on_a_doubtful_reference_is_unconfirmed() -> None:
    board = table(total("pinnacle", 220.5, 2.6, 1.55), total("b", 220.5, 2.1, 1.76), total("c", 220.5, 2.1, 1.75))
    found = ask(find_ev, board)
    assert found
    assert all(row["unconfirmed"] for row in found)


# -- ages of live and pre-match prices --


def test_pre_match_after_the_start() -> None:
    late: dict[str, Any] = dict(event_start_time=NOW - 60 * SECOND)
    board = table(total("a", 220.5, 2.2, None, **late), total("b", 220.5, 1.8, 1.95))
    keeps_away("started_not_live", board, [0])
    assert reason(board, 0) == "marked pre-match 60 s after the event's start"
    leaves_alone(table(total("a", 220.5, 2.2, None, event_start_time=NOW), total("b", 220.5, 1.8, 1.95)))
    leaves_alone(table(total("a", 220.5, 2.2, None, is_live=True, **late), total("b", 220.5, 1.8, 1.95, is_live=True)))


# -- one book --------------------------------------------------------------------------------------


def test_a_mid_price_is_no_offer() -> None:
    board = table(total("polymarket_mid", 220.5, 2.2, None), total("b", 220.5, 1.8, 1.95))
    keeps_away("mid_price_source", board, [0])
    assert "mid prices" in reason(board, 0)
    leaves_alone(table(total("novig", 220.5, 2.2, None), total("b", 220.5, 1.8, 1.95)))


def test_a_last_traded_price_is_no_offer_whatever_guards_run() -> None:
    """The best price of both sides. Its guard rejects it; without the guard it can be a reference, and still no leg."""
    book = "betfair_last_traded"
    others = [*total("b", 220.5, 1.8, 1.95), *total("c", 220.5, 1.82, 1.96), *total("d", 222.5, 1.97, 1.8)]
    board = table(total(book, 220.5, 2.1, 2.2), others)
    rest = [name for name in GUARDS if name != "mid_price_source"]
    anything: dict[str, Any] = {"min_ev": -90.0, "min_profit": -90.0, "max_hold": 90.0, "min_middle_ev": -90.0}
    with whatever_is_found():
        for guards, sharp in itertools.product((None, [], rest), (None, book, "b")):
            found = find_all(board, now=MOMENT, sharp=sharp, guards=guards, **anything)
            assert found.arbitrage.height
            for frame in found.frames.values():
                assert f"'sportsbook': '{book}'" not in str(frame.to_dicts())
        assert set(find_ev(board, now=MOMENT, sharp=book, guards=[], min_ev=-90)["reference"]) == {book}
        assert fair(board, now=MOMENT, guards=[], sharp="b").filter(sportsbook=book)["ev"].to_list() == [None, None]
    assert aside(board) == {0: "mid_price_source", 1: "mid_price_source"}
    assert reason(board, 0) == "the source publishes mid prices or last trades, not offers"


@pytest.mark.parametrize("book", ["Underdog", "prizepicks", "sleeper", "betr_us_dfs", "DraftKings Pick6", "dabble"])
def test_a_pick_that_cannot_be_bet_alone_is_neither_a_leg_nor_a_reference(book: str) -> None:
    """Underdog's multipliers: an arbitrage of 6 % that nobody can bet, and a fair price that nobody quotes."""
    board = table(total(book, 220.5, 2.2, 1.75), total("b", 220.5, 1.8, 2.05))
    keeps_away("parlay_only", board, [0, 1])
    assert reason(board, 0) == "the operator accepts picks only in combination, not as single bets"
    with nothing("no fair price"):
        assert all(frame.height == 0 for frame in find_all(board, sharp=book).frames.values())
    assert find_all(board, guards=[g for g in GUARDS if g != "parlay_only"]).arbitrage.height == 1


def test_two_prices_of_one_outcome_far_apart() -> None:
    twice = [*total("a", 220.5, 1.9, 1.9), *total("a", 220.5, 2.3, None)]
    board = table(twice, total("b", 220.5, 1.8, 1.95))
    keeps_away("duplicate_outcome", board, [0, 2])
    assert reason(board, 0) == f"one book has two prices for one outcome, with a logit gap of {math.log(1.3 / 0.9):.2f}"


@pytest.mark.parametrize(("gap", "kept"), [(0.0999, True), (0.1001, False)])
def test_of_two_close_prices_the_lower_stays(gap: float, kept: bool) -> None:
    twice = [*total("a", 220.5, odds_at(-gap), None), *total("a", 220.5, 2.0, 1.9)]
    board = table(twice, total("b", 220.5, 1.8, 1.98))
    assert aside(board) == ({0: "duplicate_outcome"} if kept else dict.fromkeys((0, 1), "duplicate_outcome"))
    found = ask(find_low_hold, board, max_hold=10.0)
    assert found[0]["side1"]["odds_decimal"] == (2.0 if kept else 1.8)


def test_one_price_of_each_of_two_books_is_no_duplicate() -> None:
    leaves_alone(table(total("a", 220.5, 2.3, 1.7), total("b", 220.5, 1.9, 1.95)))


def test_three_prices_of_one_outcome_are_as_far_apart_as_the_furthest() -> None:
    prices = [total("a", 220.5, odds_at(x), None) for x in (0.0, 0.06, 0.12)]
    assert aside(table(*prices)) == dict.fromkeys((0, 1, 2), "duplicate_outcome")
    assert aside(table(*prices[:2])) == {0: "duplicate_outcome"}


def over_ladder(book: str, prices: dict[float, tuple[float, float]], **fields: Any) -> Rows:
    return [r for line, (over, under) in prices.items() for r in total(book, line, over, under, **fields)]


def test_a_ladder_that_runs_the_wrong_way() -> None:
    """Over 3.5 cannot be likelier than over 2.5: the book's lines have been swapped."""
    wrong = over_ladder("a", {2.5: (2.3, 1.6), 3.5: (1.75, 2.0)}, market="total_goals")
    board = table(wrong, total("b", 2.5, 1.7, 1.85, "total_goals"))
    keeps_away("ladder", board, [0, 1, 2, 3])
    worst = math.log(1.3 / 0.75)
    assert reason(board, 0) == f"the book's prices are out of order across lines by a logit gap of {worst:.2f}"


@pytest.mark.parametrize(("gap", "wrong"), [(0.249, False), (0.25 + 5e-10, True)])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("side", ["over", "under", "home", "away"])
def test_how_far_a_ladder_may_run_the_wrong_way(side: str, far: bool, gap: float, wrong: bool) -> None:
    """Also between lines that are not next to each other, and seen from one side only."""
    easy, hard = odds_at(0.0), odds_at(gap)
    over_like = side in ("over", "home")
    prices = (
        [(1.0, easy), (2.0, odds_at(0.10)), (3.0, hard)]
        if over_like
        else [(1.0, hard), (2.0, odds_at(0.10)), (3.0, easy)]
    )
    if not far:
        prices = [prices[0], prices[2]]
    rows = []
    for point, odds in prices:
        if side in ("home", "away"):
            rows += spread("a", -(point + 0.5), odds if side == "home" else None, odds if side == "away" else None)
        else:
            rows += total("a", point + 0.5, odds if side == "over" else None, odds if side == "under" else None)
    neighbour = total("b", 1.5, 1.9, 1.9)
    assert aside(table(rows, neighbour)) == (dict.fromkeys(range(len(rows)), "ladder") if wrong else {})


def test_ladders_of_other_periods_books_and_players_are_others() -> None:
    up = [total("a", 1.5, 2.4, 1.55), total("a", 2.5, 1.7, 2.05, "1st_half_total_points"), total("b", 2.5, 1.7, 2.05)]
    players = [prop("a", "One Player", 1.5, 2.4, 1.55), prop("a", "Another Player", 2.5, 1.7, 2.05)]
    assert not aside(table(*up[:2], *players))
    assert "ladder" not in aside(table(*up)).values()


def test_two_market_names_of_one_book() -> None:
    """The one near the two other books stays; without two others both go."""
    names = [*total("a", 220.5, 1.9, 1.9), *total("a", 220.5, 2.3, 1.65, "asian_total_points")]
    others = [total(book, 220.5, 1.88, 1.92) for book in "bc"]
    board = table(names, *others)
    keeps_away("internal_conflict", board, [2, 3])
    assert "two market names" in reason(board, 2)
    board = table(names, others[0])
    keeps_away("internal_conflict", board, [0, 1, 2, 3])


def test_the_median_that_decides_between_two_market_names_is_of_sorted_prices() -> None:
    others = [total(book, 220.5, over, None) for book, over in (("b", 2.05), ("c", 1.7), ("d", 2.0))]
    names = [total("x", 220.5, 1.72, None), total("x", 220.5, 2.1, None, "asian_total_points")]
    assert aside(table(*others, *names)) == {3: "internal_conflict"}


def test_a_truncated_ladder_goes_whole() -> None:
    """Quarter lines cut to the half below: one line contradicts the book's own total, another makes an arbitrage."""
    cut = [*total("a", 2.5, 2.14, 1.725, "asian_total_goals"), *total("a", 2.0, 1.676, 2.2, "asian_total_goals")]
    own = total("a", 2.5, 1.893, 1.926, "total_goals")
    others = [*total("b", 2.5, 1.9, 1.92), *total("c", 2.5, 1.89, 1.93), *total("d", 2.0, 1.35, 2.9)]
    board = table(cut, own, others)
    assert aside(board) == dict.fromkeys(range(4), "internal_conflict")
    assert not ask(find_arbitrage, board)
    other_ladder = table(cut, own, others, total("a", 2.0, 1.676, 2.2, "asian_total_goals", event_id="another"))
    assert aside(other_ladder) == dict.fromkeys(range(4), "internal_conflict")


def test_books_of_one_provider_are_one_witness() -> None:
    names = [*total("a", 220.5, 1.9, 1.9), *total("a", 220.5, 2.3, 1.65, "asian_total_points")]
    same_provider = [total(book, 220.5, 1.88, 1.92) for book in ("betrivers", "unibet", "leovegas")]
    assert aside(table(names, *same_provider)) == dict.fromkeys(range(4), "internal_conflict")
    apart = [*same_provider, total("fanduel", 220.5, 1.88, 1.92)]
    assert aside(table(names, *apart)) == dict.fromkeys((2, 3), "internal_conflict")


@pytest.mark.parametrize(("gap", "conflict"), [(0.199, False), (0.201, True)])
def test_how_far_two_market_names_may_differ(gap: float, conflict: bool) -> None:
    board = table(total("a", 220.5, 2.0, None), total("a", 220.5, odds_at(-gap), None, "asian_total_points"))
    assert aside(board) == (dict.fromkeys((0, 1), "internal_conflict") if conflict else {})


def test_a_book_that_can_be_beaten_alone() -> None:
    """Its whole ladder goes, its other markets stay."""
    rows = [*total("a", 220.5, 2.1, 1.98), *total("a", 224.5, 2.5, 1.55), *spread("a", -3.5, 1.9, 1.9)]
    board = table(rows, total("b", 220.5, 1.9, 2.0))
    keeps_away("book_sum", board, range(4))
    assert reason(board, 3) == f"the book's own market sums to {1 / 2.1 + 1 / 1.98:.3f}"


@pytest.mark.parametrize(
    ("book", "sum_", "wrong"),
    [
        ("a", 1.001, False), ("a", 0.9999, True), ("a", 0.999, True),
        ("novig", 0.996, False), ("novig", 0.995, False), ("novig", 0.9949, True),
        ("a", 1.25, False), ("a", 1.2501, True), ("novig", 1.2501, True),
    ],
)  # fmt: skip
def test_what_a_book_may_sum_to(book: str, sum_: float, wrong: bool) -> None:
    board = table(total(book, 220.5, 2.0, 1.0 / (sum_ - 0.5)), total(book, 224.5, 2.4, 1.4))
    low = sum_ < 1.0
    assert aside(board) == (dict.fromkeys(range(4 if low else 2), "book_sum") if wrong else {})


def test_two_sides_that_sum_to_exactly_one_are_mid_prices() -> None:
    """A low hold of 0 % that nobody can bet."""
    board = table(total("a", 220.5, 1.6, 1.0 / (1.0 - 1.0 / 1.6)), total("b", 220.5, 1.55, 2.3))
    assert [row["all_books"] for row in ask(find_low_hold, board, guards=[])] == [["a"]]
    assert not ask(find_low_hold, board)
    assert aside(board) == dict.fromkeys((0, 1), "mid_price_source")
    assert reason(board, 0) == "the book's two sides sum to exactly 1: mid prices, not offers"
    # American prices are rounded, a mid price is not less one for that
    assert set(aside(table(moneyline("a", 2.5, 1.6667)))) == {0, 1}
    assert not aside(table(moneyline("a", 2.5, 1.663)))


@pytest.mark.parametrize(("beyond", "exact"), [(0.0005, True), (0.00051, False)])
def test_how_far_from_one_mid_prices_may_sum(beyond: float, exact: bool) -> None:
    board = table(total("a", 220.5, 2.0, 1.0 / (0.5 + beyond)), total("b", 220.5, 1.8, 1.95))
    assert (aside(board).get(0) == "mid_price_source") == exact


def test_a_book_whose_markets_mostly_sum_to_one_publishes_mid_prices() -> None:
    mid = [total("a", line, odds, odds / (odds - 1.0)) for line, odds in ((218.5, 1.8), (219.5, 1.9), (220.5, 2.0))]
    other, half = total("a", 221.5, 2.02, 1.88), total("a", 222.5, 2.2, None)
    assert aside(table(*mid, other, half)) == dict.fromkeys(range(9), "mid_price_source")
    assert aside(table(mid[0], other, half)) == dict.fromkeys((0, 1), "mid_price_source")  # one of two is not most
    assert not aside(table(*mid, other, half), guards=[g for g in GUARDS if g != "mid_price_source"])


def test_an_incomplete_market_has_no_sum() -> None:
    assert not aside(table(moneyline("a", 4.0, 4.0, 4.0, **LA_LIGA)[:2], total("b", 220.5, 3.0, None)))


def test_a_dear_market_takes_no_other_with_it() -> None:
    """1.25 concerns that market only; prices of three ways are summed over three."""
    board = table(
        moneyline("a", 2.0, 3.0, 2.38, **LA_LIGA),
        moneyline("b", 2.6, 2.9, 3.2, **LA_LIGA),
        total("a", 2.5, 1.9, 1.9, **LA_LIGA),
    )
    assert aside(board) == dict.fromkeys(range(3), "book_sum")


def test_team_totals_whose_team_is_not_to_be_trusted() -> None:
    """Three lines, and none quoted for both teams: the label says nothing."""
    lines = [
        team_total("a", "home", 108.5, 2.3, 1.62),
        team_total("a", "home", 110.5, 2.5, 1.52),
        team_total("a", "away", 104.5, 1.9, 1.9),
    ]
    board = table(*lines, team_total("b", "home", 108.5, 1.75, 1.95))
    keeps_away("one_team_lines", board, range(6))
    assert "3 team-total lines" in reason(board, 0)


def test_team_totals_with_a_line_for_both_or_few_lines() -> None:
    lines = [team_total("a", "home", 108.5, 2.3, 1.62), team_total("a", "home", 110.5, 2.5, 1.52)]
    other = team_total("b", "home", 108.5, 1.75, 1.95)
    leaves_alone(table(*lines, other))
    leaves_alone(table(*lines, team_total("a", "away", 108.5, 1.9, 1.9), other))
    half = team_total("a", "away", 52.5, 1.9, 1.9, market_segment="1st_half")
    leaves_alone(table(*lines, half, other))


# -- books against each other ----------------------------------------------------------------------


def test_books_that_contradict_across_lines() -> None:
    """Over 222.5 at 57 % beside over 220.5 at 45 % twice: one book has another number."""
    honest = [total(book, 220.5, 2.2, 1.7) for book in "bc"]
    board = table(total("a", 222.5, 1.65, 2.2), *honest)
    assert not ask(find_arbitrage, board, guards=[])
    keeps_away("ladder_cross", board, (0, 1), find_middles)
    assert reason(board, 0) == "contradicts 2 other feeds across lines"


@pytest.mark.parametrize(("points", "crossed"), [(0.0999, False), (0.1001, True)])
@pytest.mark.parametrize("side", ["over", "home"])
def test_how_far_two_books_may_contradict(side: str, points: float, crossed: bool) -> None:
    hard, easy = 1.0 / (0.45 + points), 1.0 / 0.45

    def write(book: str, line: float, odds: float) -> Rows:
        return total(book, line, odds, None) if side == "over" else spread(book, -line, odds, None)

    rows = [write("a", 6.5, hard), write("b", 3.5, easy), write("c", 3.5, easy)]
    assert aside(table(*rows)) == ({0: "ladder_cross"} if crossed else {})


def test_of_two_books_that_contradict_both_go() -> None:
    assert aside(table(total("a", 222.5, 1.65, 2.2), total("b", 220.5, 2.2, 1.7))) == dict.fromkeys(
        range(4), "ladder_cross"
    )


def test_the_worst_book_goes_first_and_the_rest_is_judged_again() -> None:
    """b's contradiction is with a only; when a has gone, b stays."""
    a = total("a", 230.5, 1.55, None)
    others = [total(book, 220.5, 2.0, None) for book in "bcd"]
    assert aside(table(a, *others)) == {0: "ladder_cross"}
    # Two brands of one odds provider are one voice: here it is two against it.
    same_provider = [total(book, 220.5, 2.0, None) for book in ("betrivers", "unibet")]
    assert aside(table(a, total("b", 230.5, 1.55, None), *same_provider)) == dict.fromkeys((2, 3), "ladder_cross")


PLAYERS = ("A Ayton", "B Barnes", "C Curry", "D Davis", "E Edwards", "F Fox")


def biased(subjects: int, over: float, rest: tuple[float, float] = (1.9, 1.9)) -> Rows:
    under = 1.0 / (1.02 - 1.0 / over)
    rows = [r for p in PLAYERS[:subjects] for r in prop("a", p, 20.5, over, under)]
    return rows + [r for p in PLAYERS[:subjects] for r in prop("b", p, 20.5, *rest)]


def test_a_book_generous_on_one_side_of_all_props() -> None:
    board = table(biased(5, 2.2, (1.95, 1.9)))
    keeps_away("bias", board, range(0, 10, 2))
    assert reason(board, 0).endswith(f"a median logit gap of {math.log(0.95 / 1.2):.2f}")
    keeps_away("bias", board, range(0, 10, 2), lambda odds, **words: find_ev(odds, sharp="b", **words))


def test_bias_takes_the_side_also_where_nobody_else_quotes_it() -> None:
    board = table(biased(5, 2.2), prop("a", "Z Zubac", 20.5, 2.2, 1.7))
    assert aside(board) == dict.fromkeys((*range(0, 10, 2), 20), "bias")


@pytest.mark.parametrize(
    ("subjects", "gap", "found"), [(5, -0.199, False), (5, -0.2 - 5e-10, True), (4, -0.5, False), (6, -0.201, True)]
)
def test_when_a_book_is_biased(subjects: int, gap: float, found: bool) -> None:
    board = table(biased(subjects, odds_at(gap), (2.0, 1.8)))
    assert aside(board) == (dict.fromkeys(range(0, 2 * subjects, 2), "bias") if found else {})


@pytest.mark.parametrize("order", list(itertools.permutations((-0.31, -0.3, -0.02, -0.05, -0.32)))[::7])
def test_bias_is_the_median_gap(order: tuple[float, ...]) -> None:
    rows = [r for p, gap in zip(PLAYERS, order, strict=False)
            for r in prop("a", p, 20.5, odds_at(gap), 1.0 / (1.02 - 1.0 / odds_at(gap)))]  # fmt: skip
    board = table(rows, [r for p in PLAYERS[:5] for r in prop("b", p, 20.5, 2.0, 1.8)])
    assert aside(board) == dict.fromkeys(range(0, 10, 2), "bias")
    assert reason(board, 0).endswith("a median logit gap of -0.30")


def test_bias_asks_for_subjects_not_lines() -> None:
    lines = [20.5, 21.5, 22.5, 23.5, 24.5]
    rows = [r for x in lines for r in (*prop("a", "A Ayton", x, 2.2, 1.7), *prop("b", "A Ayton", x, 1.9, 1.9))]
    assert not aside(table(rows))
    games = [r for x in lines for r in (*total("a", x, 2.2, 1.7), *total("b", x, 1.9, 1.9))]
    assert not aside(table(games))  # props only


def around(over: float, make: Callable[..., Rows] = total, books: Iterable[str] = "bcd", **fields: Any) -> pl.DataFrame:
    """A book's price of over among others at 2.0: the bound at one half is 0.06 wider."""
    honest = max(1.01, 1.0 / (1.02 - 1.0 / over))
    return table(make("a", 220.5, over, honest, **fields), *(make(b, 220.5, 2.0, 1.85, **fields) for b in books))


def test_a_price_too_generous_to_be_true() -> None:
    board = around(2.36)
    keeps_away("outlier", board, (0, 1))
    assert (
        reason(board, 1)
        == f"too generous by a logit gap of {-math.log(1.36):.2f} compared with the median of the other books"
    )


def half(book: str, line: float, over: float, under: float, **fields: Any) -> Rows:
    return total(book, line, over, under, "1st_half_total_points", **fields)


def a_prop(book: str, line: float, over: float, under: float, **fields: Any) -> Rows:
    return prop(book, "A Ayton", line, over, under, **fields)


def alternate(book: str, line: float, over: float, under: float, **fields: Any) -> Rows:
    """With another line that more books quote."""
    main = total(book, 215.5, 1.8, 1.8, **fields) if book != "a" else []
    extra = total("e", 215.5, 1.8, 1.8, **fields) if book == "b" else []
    return [*total(book, line, over, under, **fields), *main, *extra]


@pytest.mark.parametrize(
    ("make", "live", "bound"),
    [(total, False, 0.30), (total, True, 0.41), (half, False, 0.41), (a_prop, False, 0.41), (alternate, False, 0.41)],
)
def test_how_generous_a_price_may_be(make: Callable[..., Rows], live: bool, bound: float) -> None:
    assert not aside(around(odds_at(-bound + 0.001), make, is_live=live))
    assert aside(around(odds_at(-bound - 0.001), make, is_live=live)) == {0: "outlier", 1: "outlier"}


@pytest.mark.parametrize("median", [0.1, 0.25, 0.8])
def test_the_bound_is_wider_for_long_shots(median: float) -> None:
    bound = 0.24 + 0.015 / (median * (1.0 - median))
    middle = math.log(median / (1.0 - median))
    others = [total(b, 220.5, 1.0 / median, None) for b in "bcd"]
    assert not aside(table(total("a", 220.5, odds_at(middle - bound + 0.001), None), *others))
    assert aside(table(total("a", 220.5, odds_at(middle - bound - 0.001), None), *others)) == {0: "outlier"}


def test_an_outlier_needs_three_others_and_books_of_one_provider_are_one() -> None:
    for books in ("bc", ("b", "betrivers", "unibet", "leovegas")):
        assert not aside(around(2.36, books=books))
        assert ask(find_arbitrage, around(2.36, books=books))
    assert set(aside(around(2.36, books=("b", "c", "betrivers", "unibet"))).values()) == {"outlier"}


def test_a_book_is_no_witness_against_one_of_its_provider() -> None:
    """Two sisters at the same generous number, three others: both are judged by the three alone."""
    same_provider = [total(book, 220.5, 2.36, 1.7) for book in ("betrivers", "unibet")]
    board = table(*same_provider, *(total(b, 220.5, 2.0, 1.85) for b in "bcd"))
    assert aside(board) == dict.fromkeys(range(4), "outlier")
    board = table(*same_provider, *(total(b, 220.5, 2.0, 1.85) for b in "bc"))
    assert not aside(board)


def test_a_stingy_price_stays_but_is_no_reference() -> None:
    odds = odds_at(0.31)  # 0.31 above the others' median
    books = [total(b, 220.5, 2.0, 1.9) for b in ("circa", "c")]
    target = total("d", 220.5, 2.15, 1.75)
    board = table(total("pinnacle", 220.5, odds, 2.15), *books, target)
    assert not aside(board)
    assert {e["sharp_book"] for e in ask(find_ev, board, min_ev=-50.0)} == {"circa"}
    assert legs(ask(find_arbitrage, board)[0]) == [("d", 2.15), ("pinnacle", 2.15)]
    fair = table(total("pinnacle", 220.5, odds_at(0.29), 2.15), *books, total("d", 220.5, 2.0, 1.75))
    assert "pinnacle" in {e["sharp_book"] for e in ask(find_ev, fair, min_ev=-50.0)}
    off = ask(find_ev, board, min_ev=-50.0, guards=[g for g in GUARDS if g != "outlier"])
    assert {e["sharp_book"] for e in off} == {"pinnacle"}


def test_what_the_node_upstream_rejects_is_rejected() -> None:
    """That price alone, whatever the guards here make of it; its market's other prices stand."""
    board = table(total("a", 220.5, 2.2, 1.75), total("b", 220.5, 1.8, 1.95))
    marked = board.with_columns(rejected_upstream=pl.Series([True, False, False, False]))
    assert aside(marked) == {0: "upstream"}
    assert "rejected by the node that the price comes from" in reason(marked, 0)
    assert aside(marked, guards=[name for name in GUARDS if name != "upstream"]) == {}
    old = marked.with_columns(last_seen_at=pl.col("last_seen_at") - pl.duration(hours=1))
    assert set(aside(old).values()) == {"stale"}  # a guard of our own has the first word


def test_a_price_that_jumps_to_and_fro() -> None:
    board = table(total("a", 220.5, 2.2, 1.75, flap=True), total("b", 220.5, 1.8, 1.95))
    keeps_away("flap", board, (0, 1))
    one = table(
        total("a", 220.5, 2.2, None, flap=True),
        total("a", 220.5, None, 1.7),
        total("a", 221.5, 2.25, 1.65),
        total("b", 220.5, 1.8, 1.95),
    )
    assert aside(one) == {0: "flap", 1: "flap"}  # that market, not the ladder
    assert "come back" in reason(one, 1)


def test_an_edge_too_large_to_be_true() -> None:
    classical = partial(find_ev, method="power")
    board = table(total("pinnacle", 220.5, 1.95, 1.95), total("a", 220.5, 2.61, None))
    keeps_away("ev_cap", board, [2], classical)
    assert reason(board, 2) == "an edge of 30.5 % is a data error"
    assert find_all(board, now=MOMENT, method="power").rejected_counts == {"ev_cap": 1, "profit_cap": 1}
    edge = table(total("pinnacle", 220.5, 1.95, 1.95), total("a", 220.5, 2.6, None))
    leaves_alone(edge, classical)
    assert ask(classical, edge)[0]["ev_percentage"] == pytest.approx(30.0)


# -- all of them -----------------------------------------------------------------------------------


def test_guards_look_at_all_books_whatever_books_are_asked_for() -> None:
    board = around(2.36)
    assert not ask(find_arbitrage, board, books=["a", "b"])
    assert ask(find_arbitrage, board, books=["a", "b"], guards=[])


def test_guards_look_at_quoted_prices() -> None:
    """A commission moves no verdict: the sum is taken before it."""
    board = table(total("novig", 220.5, 2.1, 1.97), total("b", 220.5, 1.9, 1.9))
    assert aside(board) == aside(board, commission={"novig": 0.2}) == {0: "book_sum", 1: "book_sum"}
    board = around(2.34)
    assert not aside(board, commission={"b": 0.3, "c": 0.3})


def test_one_event_is_no_business_of_another() -> None:
    other = [r | dict(event_id="other") for b in "bcd" for r in total(b, 220.5, 2.0, 1.85)]
    assert not aside(table(total("a", 220.5, 2.36, 1.7), other))


def test_each_guard_sees_what_those_before_it_left() -> None:
    """Of three other prices one is too old even to testify: the rest are too few for an outlier."""
    fresh = [total(b, 220.5, 2.0, 1.85) for b in "bcd"]
    board = table(total("a", 220.5, 2.36, 1.7), *fresh[:2], total("d", 220.5, 2.0, 1.85, age=3700))
    assert aside(board) == {6: "stale", 7: "stale"}
    assert set(aside(table(total("a", 220.5, 2.36, 1.7), *fresh))) == {0, 1}


def test_counts_of_all_guards() -> None:
    board = table(
        total("a", 220.5, 2.36, 1.7), *(total(b, 220.5, 2.0, 1.85) for b in "bcd"), total("e", 220.5, 1.9, 1.9, age=700)
    )
    assert find_all(board, now=MOMENT).rejected_counts == {"outlier": 2, "stale": 2}
    assert not find_all(board, now=MOMENT, guards=[]).rejected_counts


def test_a_guard_nobody_knows() -> None:
    board = table(total("a", 220.5, 1.9, 1.9))
    with pytest.raises(ValueError, match="unknown guard 'outliers'; allowed: bad_price, price_mismatch"):
        find_arbitrage(board, guards=["outliers"])
    with pytest.raises(ValueError, match="list of guard names"):
        find_arbitrage(board, guards="outlier")


@pytest.mark.parametrize("live", [False, True])
def test_away_side_of_a_spread_is_judged_too(live: bool) -> None:
    others = [spread(b, -2.5, 1.85, 2.0, is_live=live) for b in "bcd"]
    board = table(spread("a", -2.5, 1.55, 2.6, is_live=live), *others)
    assert aside(board) == {0: "outlier", 1: "outlier"}
    assert AWAY in board["selection"].to_list()
