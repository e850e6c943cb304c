"""What stands behind one opportunity: every price and its role, the reference, what was passed over and why."""

from typing import Any

import polars as pl
import pytest
from support.rows import MOMENT, ask, moneyline, spread, table, total

from oddsengine import find_arbitrage, find_ev, find_low_hold, find_middles
from oddsengine.detection.explain import Explanation, explain
from oddsengine.maths.depth import fill


def only(find: Any, odds: pl.DataFrame, **words: Any) -> tuple[dict[str, Any], Explanation]:
    """The first result of a finder and its explanation, asked with the same words."""
    row = ask(find, odds, **words)[0]
    names = ("books", "sharp", "method", "commission", "guards", "now", "stake")
    shared = {name: value for name, value in words.items() if name in names}
    return row, explain(odds, row["id"], **{"now": MOMENT, **shared})


def roles(told: Explanation) -> dict[tuple[str, str], str]:
    return {(book, outcome): role for book, outcome, role in told.prices.select("sportsbook", "outcome", "role").rows()}


def stakes(told: Explanation) -> dict[str, float]:
    return dict(told.prices.drop_nulls("stake_percent").select("sportsbook", "stake_percent").iter_rows())


BOARD = [
    total("pinnacle", 220.5, 1.95, 1.95),
    total("a", 220.5, 2.1, 1.8),
    total("b", 220.5, 1.85, 2.02),
    total("c", 220.5, 2.3, 1.8, age=700),
    total("d", 221.5, 1.9, 1.9),
]


def test_an_edge_explained() -> None:
    row, told = only(find_ev, table(*BOARD), method="power")
    assert (told.kind, told.reference, told.method) == ("ev", "pinnacle", "power")
    assert told.opportunity == row
    assert told.fair["fair_probability"].to_list() == pytest.approx([0.5, 0.5])
    assert told.fair["outcome"].to_list() == ["over", "under"]
    said = roles(told)
    assert said["a", "over"] == "leg"
    assert said["pinnacle", "over"] == said["pinnacle", "under"] == "reference"
    assert said["b", "under"] == "offer"
    assert said["c", "over"] == "rejected"
    assert {book for book, _ in said} == {"pinnacle", "a", "b", "c"}


def test_an_edge_over_the_close_explained() -> None:
    row, told = only(find_ev, table(*BOARD), method="close")
    assert (told.kind, told.reference, told.method) == ("ev", "close", "power")
    assert told.fair["fair_probability"].to_list() == pytest.approx(
        [row["fair_probability"], 1.0 - row["fair_probability"]]
    )
    assert "all other books at the close" in str(told)


def test_what_was_passed_over_and_why() -> None:
    _, told = only(find_ev, table(*BOARD), method="power")
    passed = told.rejected.select("sportsbook", "odds_decimal", "why").rows()
    assert ("c", 2.3, "stale: last seen 700 s before now") in passed


def test_a_stake_is_explained_at_the_prices_that_it_gets() -> None:
    """For more than its best level takes, another book is the better leg, and there is another opportunity."""
    odds = table(total("a", 220.5, 2.2, 1.7), total("b", 220.5, 1.8, 2.02), total("d", 220.5, 2.1, 1.8))
    ladders = {2.2: "2.20:50 2.00:500", 2.02: "2.02:500 2.00:500"}
    odds = odds.with_columns(levels=pl.col("odds_decimal").replace_strict(ladders, default=None))
    best, _ = only(find_arbitrage, odds)
    row, told = only(find_arbitrage, odds, stake=600.0)
    assert row["id"] != best["id"]
    assert told.opportunity == row
    assert {pair for pair, role in roles(told).items() if role == "leg"} == {("d", "over"), ("b", "under")}
    (net,) = told.prices.filter(sportsbook="b", outcome="under")["net_odds"]
    assert net == pytest.approx(fill([(2.02, 500.0), (2.0, 500.0)], 600.0).odds)
    with pytest.raises(ValueError, match="for these prices, books, sharp, method, stake and guards"):
        explain(odds, row["id"], now=MOMENT)


def test_an_arbitrage_explained() -> None:
    row, told = only(find_arbitrage, table(*BOARD))
    assert told.kind == "arbitrage"
    assert told.opportunity == row
    said = roles(told)
    assert {book for (book, _), role in said.items() if role == "leg"} == {leg["sportsbook"] for leg in row["legs"]}
    assert stakes(told) == pytest.approx({leg["sportsbook"]: leg["stake_percent"] for leg in row["legs"]})
    over, under = row["legs"]
    assert f"Over 220.5 at a, odds 2.1, stake {over['stake_percent']:.2f} %" in str(told)
    assert f"Under 220.5 at b, odds 2.02, stake {under['stake_percent']:.2f} %" in str(told)


@pytest.mark.parametrize("method", ["close", "power"])
def test_every_price_has_the_ev_of_the_ev_list(method: str) -> None:
    odds = table(*BOARD, total("e", 220.5, 2.05, 1.85))
    listed = find_ev(odds, method=method, min_ev=-100.0, now=MOMENT)
    names = ("sportsbook", "selection", "line", "fair_probability", "ev_percentage")
    wanted = {*listed.select(names).rows()}
    for find in (find_ev, find_arbitrage):
        _, told = only(find, odds, method=method)
        rejected = told.prices.filter(role="rejected")
        assert rejected["ev_percentage"].to_list() == [None] * rejected.height
        offers = {*told.prices.drop_nulls("ev_percentage").select(names).rows()}
        assert {"a", "b", "e"} <= {book for book, *_ in offers}
        assert offers <= wanted


def test_better_live_prices_that_were_not_admissible() -> None:
    live = [
        total("a", 220.5, 2.2, 1.8, is_live=True, age=9),
        total("b", 220.5, 2.06, 1.8, is_live=True, age=4),
        total("c", 220.5, 1.85, 2.12, is_live=True, age=3),
    ]
    _, told = only(find_arbitrage, table(*live))
    assert roles(told)["b", "over"] == "leg"
    passed = {(book, odds): why for book, odds, why in told.rejected.select("sportsbook", "odds_decimal", "why").rows()}
    assert "close in time" in passed["a", 2.2]


def test_prices_of_books_that_were_not_asked_for() -> None:
    _, told = only(find_arbitrage, table(*BOARD, total("e", 220.5, 2.11, 1.8)), books=["a", "b"])
    assert roles(told)["e", "over"] == "other"
    passed = {(book, odds): why for book, odds, why in told.rejected.select("sportsbook", "odds_decimal", "why").rows()}
    assert passed["e", 2.11] == "not among the books asked for"


def test_a_low_hold_explained() -> None:
    odds = table(moneyline("a", 2.0, 1.85), moneyline("b", 1.85, 1.98))
    row, told = only(find_low_hold, odds)
    assert (told.kind, told.reference) == ("low_hold", "close")
    _, plain = only(find_low_hold, odds, method="power")
    assert plain.reference is None, "the best prices themselves"
    assert told.opportunity == row
    assert told.fair["fair_probability"].sum() == pytest.approx(1.0)
    assert stakes(told) == pytest.approx({"a": 100.0 * 1.98 / 3.98, "b": 100.0 * 2.0 / 3.98})
    assert f"{row['home_team']} at a, odds 2, stake 49.75 %" in str(told)


def test_a_middle_explained() -> None:
    odds = table(spread("a", -3.5, 1.9, None), spread("b", -6.5, None, 1.85), spread("pinnacle", -4.5, 1.9, 2.0))
    row = next(m for m in ask(find_middles, odds) if (m["side1"]["sportsbook"], m["side2"]["sportsbook"]) == ("a", "b"))
    told = explain(odds, row["id"], now=MOMENT)
    assert told.kind == "middle"
    assert {(book, role) for (book, _), role in roles(told).items()} == {("a", "leg"), ("b", "leg")}
    assert told.opportunity["middle_numbers"] == [4, 5, 6]
    assert stakes(told) == pytest.approx(
        {side["sportsbook"]: side["stake_percent"] for side in (row["side1"], row["side2"])}
    )
    assert "-3.5 at a, odds 1.9, stake" in str(told)
    assert "+6.5 at b, odds 1.85, stake" in str(told)


def test_a_consensus_is_named() -> None:
    odds = table(*BOARD, total("circa", 220.5, 1.93, 1.97))
    row, told = only(find_ev, odds, sharp={"pinnacle": 3, "circa": 1})
    assert told.reference == row["sharp_book"] == "consensus"
    assert {book for (book, _), role in roles(told).items() if role == "reference"} == {"pinnacle", "circa"}


def test_the_text_says_it_all() -> None:
    row, told = only(find_ev, table(*BOARD), method="power")
    text = str(told)
    for part in (row["id"], "EV 5.00 %", "Over 220.5 at a, odds 2.1", "pinnacle", "power", "Passed over", "stale"):
        assert part in text


def test_an_id_nobody_has() -> None:
    with pytest.raises(ValueError, match="no opportunity with id 'nothing'"):
        explain(table(*BOARD), "nothing", now=MOMENT)
