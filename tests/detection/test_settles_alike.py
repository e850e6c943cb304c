"""Two bets compared by their terms: what is known of both, what is unknown, and the worst case in money."""

import json
from typing import Any

import pytest

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine import catalog

NFL = {"sport": "football", "league": "nfl", "market_type": "moneyline"}


def leg(book: str, odds: float | None = None, **more: Any) -> dict[str, Any]:
    return {**NFL, "sportsbook": book, "odds_decimal": odds, **more}


def test_the_worst_case_is_that_of_an_arbitrage_of_the_same_legs() -> None:
    rows = [leg(book, odds, selection=side, event_id="g", home_team="Buffalo Bills", away_team="Miami Dolphins")
            for book, side, odds in (("kalshi", "Bills", 1.75), ("draftkings", "Dolphins", 2.5),
                                     ("kalshi", "Dolphins", 2.2), ("draftkings", "Bills", 1.6))]  # fmt: skip
    (arb,) = oe.find_arbitrage(rows).iter_rows(named=True)
    found = oe.settles_alike(*(NFL | one for one in arb["legs"]), stake=200.0)
    assert arb["terms_differ"] is True
    assert found.alike is False
    assert found.worst_case == pytest.approx(2.0 * arb["terms_worst_case"])
    assert [each.case for each in found.cases if each.alike is False] == [text.split(":")[0] for text in arb["terms"]]
    assert any("kalshi" in source.lower() for each in found.cases for source in each.sources)


def test_equal_is_only_what_is_known_to_be_equal() -> None:
    both = oe.settles_alike(leg("draftkings"), leg("fanduel"))
    assert both.alike is None
    assert both.unknown == ("overtime",)
    assert both.worst_case is None
    same = oe.settles_alike(leg("draftkings"), leg("draftkings"))
    assert same.alike is True
    assert same.unknown == ()
    half = leg("draftkings", market_segment="1st_half")
    assert oe.settles_alike(half, half | {"market_type": "h2h"}).alike is True


def test_cases_are_those_of_which_a_rule_is_known_at_any_book() -> None:
    assert catalog.cases_of("football", "moneyline", "nfl") == ("tie", "cancelled", "postponed", "overtime")
    assert "retirement" in catalog.cases_of("tennis", "moneyline", "atp")
    assert "retirement" not in catalog.cases_of("football", "moneyline", "nfl")
    for sport, family in (("football", "moneyline"), ("tennis", "moneyline"), ("baseball", "total")):
        cases = catalog.cases_of(sport, family)
        for book in catalog.books_with_terms():
            terms = catalog.terms(book, sport, family)
            assert {case for case in catalog.CASES if getattr(terms, case) is not None} <= {*cases}


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (
            leg("corner_shop"),
            "no settlement rules for 'corner_shop'; it has them for pinnacle, .*kalshi",
        ),
        ({"sportsbook": "kalshi", "sport": "football"}, "the first leg must have a market_type, got None"),
        (leg("kalshi", market_type="widgets"), "the first leg has a market_type that is not known, got 'widgets'"),
        (
            leg("kalshi", market_segment="1st_half"),
            r"of one sport, market, league and period, got \('football', 'moneyline', 'nfl', '1st_half'\) and",
        ),
        (leg("kalshi", sport="quidditch"), "the first leg must have a sport of .*, got 'quidditch'"),
        (leg("kalshi", league=5), "the first leg must have the league as text, got 5"),
        (leg("kalshi", 0.9), "the first leg must have odds above 1 and at most 1,000,000, got 0.9"),
        (leg("kalshi", 1e308), r"the first leg must have odds above 1 and at most 1,000,000, got 1e\+308"),
        (None, "the first leg must be a mapping with sportsbook, sport and market_type, got None"),
        ("kalshi", "the first leg must be a mapping .*, got 'kalshi'"),
    ],
)
def test_what_is_refused(first: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        oe.settles_alike(first, leg("draftkings"))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["terms", "kalshi", "draftkings", "--league", "nfl", "--odds", "1.7,2.5", "--stake", "50"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("kalshi and draftkings do not settle alike; at worst -4.46 of 50 staked\n")
    assert "  overtime     =                counts overtime | counts overtime\n" in text
    american = ["--league", "nfl", "--odds", "-143,+150", "--stake", "50"]
    assert cli.main(["terms", "kalshi", "draftkings", *american]) == 0
    assert "at worst -4.4" in capsys.readouterr().out
    assert cli.main(["terms", "kalshi", "draftkings", "--league", "nfl", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["alike"], found["worst_case"], found["books"]) == (False, None, ["kalshi", "draftkings"])
    for words, message in (
        (["--league", "nfl", "--odds", "120,2.5"], "120 may be decimal or American: write 120.0 or +120"),
        (["--league", "nfl", "--odds", "2"], "--odds takes two prices, such as 1.72,2.45, got 1"),
        (["--league", "nfl", "--sport", "tennis"], "--league 'nfl' is of football, got --sport tennis"),
        (["--league", "none"], "--league 'none' is not known; give its --sport too"),
    ):
        assert cli.main(["terms", "kalshi", "draftkings", *words]) == 2
        assert message in capsys.readouterr().err
