"""Legs that settle differently: which cases, in words, and the worst result against a trial of every way to go."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.terms import worst

from oddsengine import catalog, find_all, find_arbitrage, find_ev, find_low_hold, find_middles
from oddsengine.catalog import Settlement, Terms
from oddsengine.detection.explain import explain
from oddsengine.detection.settlement_differences import LegTerms, _number, differing, results

PAYS = st.sampled_from(["void", "half", "fair"])
WITHIN = st.sampled_from(["day", "week", "ever", 24, 36, 48, 168, 336])
AFTER = st.sampled_from(["ball", "match", 1, 2, 3])
LIMITS = {"postponed": WITHIN, "retirement": AFTER}


def rule(case: str) -> st.SearchStrategy[Settlement]:
    return st.builds(Settlement, st.just(case), PAYS, LIMITS.get(case, st.none()))


@given(st.data(), st.sampled_from(["tie", "cancelled", "postponed", "retirement", "did_not_play"]), st.integers(2, 3))
def test_the_worst_result_is_that_of_a_trial_of_every_way(data: st.DataObject, case: str, legs: int) -> None:
    rules = [data.draw(rule(case)) for _ in range(legs)]
    odds = [data.draw(st.floats(1.01, 50.0)) for _ in range(legs)]
    found = differing(tuple(LegTerms(f"book {at}", Terms(**{case: each})) for at, each in enumerate(rules)))
    if len({each.rule for each in rules}) == 1:
        assert not found
        return
    (one,) = found
    (result,) = results(one, 1.0 / np.array([odds]))
    want = worst(case, rules, odds)
    assert np.isnan(result) if want is None else result == pytest.approx(want)


def cases(row: dict[str, Any]) -> dict[str, tuple[str, float | None]]:
    """The cases of a row by name: what the legs settle on, and the result."""
    named = zip(row["terms"], row["terms_results"], strict=True)
    return {text.partition(": ")[0]: (text, result) for text, result in named}


def game(league: str, sport: str, home: str, away: str, prices: dict[str, tuple[float, float]]) -> pl.DataFrame:
    return pl.DataFrame([
        {
            "sportsbook": book, "event_id": "g1", "sport": sport, "league": league, "market_type": "moneyline",
            "home_team": home, "away_team": away, "selection": name, "odds_decimal": odds,
        }
        for book, pair in prices.items()
        for name, odds in zip((home, away), pair, strict=True)
    ])  # fmt: skip


def bills(**prices: tuple[float, float]) -> pl.DataFrame:
    return game("nfl", "football", "Buffalo Bills", "Miami Dolphins", prices)


ARB = bills(kalshi=(1.75, 2.3), draftkings=(1.62, 2.5), fanduel=(1.64, 2.46))


def test_an_nfl_tie() -> None:
    (row,) = find_arbitrage(ARB).to_dicts()
    legs = {leg["sportsbook"]: leg for leg in row["legs"]}
    contract, bet = legs["kalshi"], legs["draftkings"]
    assert row["terms_differ"]
    tie, cancelled, postponed = row["terms"]
    assert tie == "tie: kalshi pays 0.50, draftkings returns the stake"
    back = 0.5 * contract["stake_percent"] * contract["net_odds"] + bet["stake_percent"]
    assert row["terms_results"] == [pytest.approx(back - 100.0), None, None]
    assert row["terms_worst_case"] == row["terms_results"][0] == pytest.approx(-8.9595, abs=1e-4)
    assert cancelled == "cancelled: kalshi pays a fair price, draftkings returns the stake"
    assert postponed == (
        "postponed: kalshi pays a fair price unless it starts within 48 hours, "
        "draftkings returns the stake unless it is played in the same league week"
    )


def test_books_of_equal_or_unknown_terms_do_not_differ() -> None:
    for second in ("fanduel", "corner_shop"):
        odds = bills(**{"draftkings": (1.55, 2.7), second: (1.64, 2.46), "betmgm": (1.6, 2.44)})
        found = find_arbitrage(odds)
        assert {leg["sportsbook"] for leg in found["legs"][0]} == {"draftkings", second}
        columns = found.select("terms_differ", "terms_worst_case", "terms", "terms_results")
        assert columns.row(0) == (False, None, [], [])


def test_a_game_that_is_postponed_to_the_next_day() -> None:
    """A sportsbook returns the stake, and the contract stands: the bet is open."""
    odds = game("mlb", "baseball", "Boston Red Sox", "New York Yankees",
                {"kalshi": (1.9, 2.1), "fanduel": (1.79, 2.25), "betmgm": (1.8, 2.2)})  # fmt: skip
    (row,) = find_arbitrage(odds, min_profit=-5.0).to_dicts()
    assert [leg["sportsbook"] for leg in row["legs"]] == ["kalshi", "fanduel"]
    of = cases(row)
    assert set(of) == {"cancelled", "postponed"}
    assert of["postponed"][1] == pytest.approx(-row["legs"][0]["stake_percent"])
    assert row["terms_worst_case"] == of["postponed"][1]


def test_a_fight_and_a_tennis_match() -> None:
    fight = game(
        "ufc", "mma", "Jon Jones", "Tom Aspinall", {"kalshi": (1.5, 2.8), "betmgm": (1.4, 3.3), "fanduel": (1.42, 3.2)}
    )
    (row,) = find_arbitrage(fight, min_profit=-5.0).to_dicts()
    assert list(cases(row)) == ["tie", "cancelled", "postponed"]
    match = game(
        "atp",
        "tennis",
        "Jannik Sinner",
        "Carlos Alcaraz",
        {"bodog": (1.9, 2.0), "pinnacle": (1.7, 2.3), "unibet": (1.72, 2.2)},
    )
    (row,) = find_arbitrage(match).to_dicts()
    of = cases(row)
    assert of["retirement"][0] == (
        "retirement: bodog returns the stake unless the match is completed, "
        "pinnacle returns the stake unless 1 set has been played"
    )
    stakes = {leg["sportsbook"]: leg["stake_percent"] for leg in row["legs"]}
    assert of["retirement"][1] == pytest.approx(-stakes["pinnacle"])


def test_three_ways_after_90_minutes_are_the_same_everywhere() -> None:
    rows = [
        {
            "sportsbook": book, "event_id": "g1", "sport": "soccer", "league": "epl", "market_type": "moneyline_3way",
            "home_team": "Arsenal", "away_team": "Chelsea", "selection": name, "odds_decimal": odds,
        }
        for book, prices in {"kalshi": (2.2, 3.4, 3.6), "betmgm": (2.1, 3.7, 3.3), "fanduel": (2.1, 3.6, 3.4)}.items()
        for name, odds in zip(("Arsenal", "Draw", "Chelsea"), prices, strict=True)
    ]  # fmt: skip
    found = find_low_hold(pl.DataFrame(rows), max_hold=20.0)
    assert found.height == 1
    assert not {"tie", "overtime"} & set(cases(found.to_dicts()[0]))


def lines(market: str, prices: dict[str, dict[float, tuple[float, float]]], **more: Any) -> pl.DataFrame:
    return pl.DataFrame([
        {
            "sportsbook": book, "event_id": "g1", "home_team": "Buffalo Bills", "away_team": "Miami Dolphins",
            "market_type": market, "selection": name, "line": sign * line, "odds_decimal": odds, **more,
        }
        for book, ladder in prices.items()
        for line, pair in ladder.items()
        for (name, sign), odds in zip((("Buffalo Bills", 1.0), ("Miami Dolphins", -1.0)), pair, strict=True)
    ])  # fmt: skip


def test_middles_and_low_holds() -> None:
    """A spread of zero is settled by the margin: a tie is a push, whatever a moneyline pays in one."""
    odds = lines(
        "point_spread",
        {
            "kalshi": {-2.5: (1.97, 1.95), 0.0: (1.7, 2.2)},
            "draftkings": {-2.5: (1.9, 1.9), -3.5: (2.0, 1.8), 0.0: (1.68, 2.15)},
            "pinnacle": {-2.5: (1.93, 1.93), -3.5: (2.02, 1.86), 0.0: (1.71, 2.16)},
        },
        sport="football", league="nfl",
    )  # fmt: skip
    found = find_all(odds, min_middle_ev=None, max_hold=10.0)
    for frame in (found.middles, found.low_hold):
        assert frame.height
        for row in frame.to_dicts():
            assert "tie" not in cases(row)
            sides = [row[side] for side in ("side1", "side2")]
            books = {book for side in sides for book in (side.get("books") or [side["sportsbook"]])}
            assert row["terms_differ"] == (
                len({catalog.terms(b, "football", "spread", "nfl").postponed for b in books}) > 1
            )
    middle = next(
        row for row in found.middles.to_dicts()
        if {row["side1"]["sportsbook"], row["side2"]["sportsbook"]} == {"pinnacle", "kalshi"}
    )  # fmt: skip
    share = {row["sportsbook"]: row["stake_percent"] for row in (middle["side1"], middle["side2"])}
    assert cases(middle)["postponed"][1] == pytest.approx(-share["kalshi"])


BOOKS = ("kalshi", "polymarket", "polymarket_us", "draftkings", "pinnacle", "caesars", "betmgm", "corner_shop", "bodog")


@given(st.permutations(BOOKS).map(lambda books: books[:2]), st.floats(1.2, 4.0), st.floats(0.0, 0.08))
def test_arbitrages_over_all_their_cases(books: list[str], price: float, profit: float) -> None:
    other = 1.0 / ((1.0 - profit / 2.0) - 1.0 / price)
    odds = bills(**{books[0]: (price, 1.0 / (1.02 - 1.0 / price)), books[1]: (1.0 / (1.02 - 1.0 / other), other)})
    for row in find_arbitrage(odds, min_profit=-20.0, max_profit=None, guards=[]).to_dicts():
        legs = row["legs"]
        known = [catalog.terms(leg["sportsbook"], "football", "moneyline", "nfl") for leg in legs]
        want = []
        for case in catalog.CASES:
            rules = [getattr(terms, case) for terms in known]
            if all(rules) and len({each.rule for each in rules}) > 1 and case not in ("overtime", "dead_heat"):
                want.append(worst(case, rules, [leg["net_odds"] for leg in legs]))
        assert row["terms_differ"] == bool(want)
        numbers = [each for each in want if each is not None]
        if numbers:
            assert row["terms_worst_case"] == pytest.approx(100.0 * min(numbers))
        else:
            assert row["terms_worst_case"] is None


def test_a_leg_of_unknown_terms_leaves_the_result_unknown() -> None:
    legs = [LegTerms("a", Terms(tie=Settlement("tie", "half"))), LegTerms("b", Terms(tie=Settlement("tie", "void")))]
    (case,) = differing((*legs, LegTerms("c", Terms())))
    assert case.text == "a pays 0.50, b returns the stake, c has unknown terms"
    assert np.isnan(results(case, np.array([[0.3, 0.3, 0.3]]))).all()
    assert not differing((legs[0], LegTerms("c", Terms())))


def test_bets_that_always_stand_are_equal() -> None:
    legs = [LegTerms(pays, Terms(postponed=Settlement("postponed", pays, "ever"))) for pays in ("void", "half")]
    assert not differing(tuple(legs))


def test_overtime_differs_without_a_result() -> None:
    legs = [LegTerms(pays, Terms(overtime=Settlement("overtime", pays))) for pays in ("counts", "excluded")]
    (case,) = differing(tuple(legs))
    assert case.text == "counts counts overtime, excluded does not count overtime"
    assert np.isnan(results(case, np.array([[0.5, 0.5]]))).all()


def test_the_ev_of_a_contract_counts_its_tie() -> None:
    """A favourite is worth less than without ties, an outsider more; sportsbooks return the stake."""
    rows = {
        (row["sportsbook"], row["selection"]): row
        for row in find_ev(ARB, sharp="fanduel", min_ev=-30.0).to_dicts()
    }  # fmt: skip
    level = catalog.sport("football").level
    for name in ("Buffalo Bills", "Miami Dolphins"):
        row = rows["kalshi", name]
        p, net = row["fair_probability"], row["net_odds"]
        assert row["tie_probability"] == level == 0.003
        exact = (1.0 - level) * p * net + level * 0.5 * net - 1.0
        assert row["ev_per_stake"] == pytest.approx(100.0 * exact)
        assert row["ev_percentage"] == pytest.approx(100.0 * (p * net - 1.0))
        assert (row["ev_per_stake"] < row["ev_percentage"]) == (name == "Buffalo Bills")
        bet = rows["draftkings", name]
        assert (bet["tie_probability"], bet["ev_per_stake"]) == (None, bet["ev_percentage"])


def test_explained_side_by_side() -> None:
    (row,) = find_arbitrage(ARB).to_dicts()
    told = explain(ARB, row["id"])
    cases = told.terms.select("case", "sportsbook", "terms", "differ").rows()
    assert cases[:2] == [("tie", "kalshi", "pays 0.50", True), ("tie", "draftkings", "returns the stake", True)]
    assert [case for case, *_ in cases][::2] == ["tie", "cancelled", "postponed", "overtime"]
    assert told.terms.filter(case="tie")["result_percent"].to_list() == [row["terms_worst_case"]] * 2
    assert told.terms.filter(case="overtime")["differ"].to_list() == [False, False]
    assert told.terms["source"].null_count() == told.terms["date"].null_count() == 0
    assert "What the bets settle on:" in str(told)
    assert "| tie       | pays 0.50 " in str(told)


def test_unknown_is_said_as_unknown() -> None:
    odds = bills(kalshi=(1.75, 2.3), corner_shop=(1.62, 2.5), fanduel=(1.64, 2.46))
    (row,) = find_arbitrage(odds).to_dicts()
    told = explain(odds, row["id"])
    assert not row["terms_differ"]
    assert told.terms.filter(case="tie").select("sportsbook", "terms").rows() == [
        ("kalshi", "pays 0.50"),
        ("corner_shop", None),
    ]
    assert "unknown" in str(told)
    neither = bills(corner_shop=(1.75, 2.3), zebra_bets=(1.62, 2.5), other=(1.64, 2.46))
    told = explain(neither, find_arbitrage(neither)["id"][0])
    assert told.terms.height == 0
    assert "What the bets settle on" not in str(told)


def test_nothing_found_has_the_columns() -> None:
    for find in (find_arbitrage, find_low_hold, find_middles):
        frame = find(bills(draftkings=(1.62, 2.3), fanduel=(1.62, 2.3)))
        assert frame.height == 0
        assert {"terms_differ", "terms_worst_case", "terms"} <= set(frame.columns)


def test_a_rule_keeps_its_number_however_many_there_are() -> None:
    first = _number(("void", 24.0, 2))
    assert len({_number(("void", float(hours), 2)) for hours in range(2000)}) == 2000
    assert _number(("void", 24.0, 2)) == first
