"""Futures: identity, fields, margin removal with several winners, guards, and the laws of what comes out."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import futures as naive
from support.forking import ran

import oddsengine as oe
from oddsengine import catalog
from oddsengine.catalog import futures_catalog as kinds
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.futures import (
    FUTURES_SCHEMA,
    FieldsError,
    Futures,
    FuturesBoard,
    FuturesField,
    find_futures,
    parse_fields,
)
from oddsengine.futures.identity import FuturesLabel, UnreadableError, identify_price
from oddsengine.futures.winners import fair
from oddsengine.maths.devig import DEVIG_METHODS, devig
from oddsengine.simulate.simulated_futures import FuturesSeason
from oddsengine.tables.schema import OddsError

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SEVERAL = [method for method in DEVIG_METHODS if method != "shin"]
prices = st.floats(1.02, 400.0)


# ---- margin removal with several winners ----


@given(st.lists(prices, min_size=3, max_size=30), st.integers(2, 4), st.sampled_from(SEVERAL))
def test_fair_probabilities_sum_to_the_places(odds: list[float], places: int, method: str) -> None:
    found = fair(odds, places, method)
    if np.isnan(found).any():
        assert np.isnan(found).all()
        assert len(odds) <= places or method in ("multiplicative", "additive", "goto", "worst_case") or min(odds) < 1.1
        return
    assert ((found > 0.0) & (found < 1.0)).all()
    assert found.sum() <= places + 1e-6
    if method != "worst_case":
        assert found.sum() == pytest.approx(places, abs=1e-6)
    order = np.argsort(odds, kind="stable")
    assert (np.diff(found[order]) <= 1e-12).all()


@given(st.lists(st.floats(1.05, 60.0), min_size=3, max_size=12), st.integers(1, 3))
def test_power_is_the_slow_twins(odds: list[float], places: int) -> None:
    assume(len(odds) > places)
    found = fair(odds, places, "power")
    assume(not np.isnan(found).any())
    assert found.tolist() == pytest.approx(naive.power(odds, places), abs=1e-7)


@given(st.lists(st.floats(0.02, 0.9), min_size=3, max_size=9), st.sampled_from(SEVERAL))
def test_prices_without_a_margin_come_back(shares: list[float], method: str) -> None:
    chances = np.array(shares) * (2.0 / sum(shares))
    assume(chances.max() < 0.95)
    assert fair(1.0 / chances, 2, method).tolist() == pytest.approx(chances.tolist(), abs=1e-6)


@pytest.mark.parametrize("method", DEVIG_METHODS)
def test_one_winner_is_the_plain_case(method: str) -> None:
    odds = [4.5, 6.0, 7.0, 9.0, 12.0, 15.0, 17.0, 21.0]
    assert np.array_equal(fair(odds, 1, method), devig(odds, method), equal_nan=True)


@given(st.lists(st.floats(1.5, 60.0), min_size=4, max_size=12), st.integers(1, 3))
def test_a_blend_is_the_weighted_mean_of_its_methods(odds: list[float], places: int) -> None:
    parts = [fair(odds, places, method) for method in ("power", "probit")]
    found = fair(odds, places, {"power": 1.0, "probit": 3.0})
    np.testing.assert_allclose(found, 0.25 * parts[0] + 0.75 * parts[1], rtol=0, atol=1e-12)
    assert np.isnan(fair(odds, 2, {"shin": 1.0, "power": 1.0})).all()  # Shin has one winner
    np.testing.assert_array_equal(fair(odds, places, "wpo"), fair(odds, places, "additive"))


@given(st.lists(st.floats(1.2, 60.0), min_size=4, max_size=12), st.integers(2, 3))
def test_goto_and_probit_follow_their_laws_with_several_winners(odds: list[float], places: int) -> None:
    q = 1.0 / np.array(odds)
    normal = NormalDist()
    for method, law in (
        ("goto", lambda p: (q - p) / np.sqrt(1.0 - q)),
        ("probit", lambda p: np.array([normal.inv_cdf(a) - normal.inv_cdf(b) for a, b in zip(q, p, strict=True)])),
    ):
        found = fair(odds, places, method)
        if not np.isnan(found).any():
            assert law(found) == pytest.approx(law(found)[0], abs=1e-6)


def test_where_there_is_no_answer() -> None:
    assert np.isnan(fair([1.5, 2.0], 2)).all()  # all win
    assert np.isnan(fair([1.5, 2.0, np.nan], 2)).all()
    assert np.isnan(fair([1.5, 2.0, 3.0], 2, "shin")).all()
    assert np.isnan(fair([1.01, 30.0, 30.0, 30.0], 2, "multiplicative")).all()  # it would be above 1
    assert not np.isnan(fair([1.01, 30.0, 30.0, 30.0], 2, "power")).any()
    with pytest.raises(ValueError, match="method must be one of"):
        fair([2.0, 2.0], 1, "guess")
    with pytest.raises(ValueError, match="places must be at least 1"):
        fair([2.0, 2.0], 0)
    with pytest.raises(ValueError, match="1-D"):
        fair([[2.0, 2.0]])


# ---- identity ----

TITLE = FuturesLabel("basketball", "nba", "Championship Winner", "2026-27", "", "", "Boston Celtics")
SAME = [
    TITLE._replace(market="NBA Championship Winner 2026/27", season=""),
    TITLE._replace(sport="", league="NBA", market="outrights", selection="BOS Celtics"),
    TITLE._replace(market="To win the title", season="2026/2027", type="TEAM"),
    TITLE._replace(season="", start=datetime(2027, 6, 20, tzinfo=UTC)),
    TITLE._replace(season="", start=datetime(2026, 10, 20, tzinfo=UTC), places=1),
]
OTHERS = [
    TITLE._replace(season="2025-26"), TITLE._replace(season="2026"), TITLE._replace(season=""),
    TITLE._replace(market="Eastern Conference Winner"), TITLE._replace(market="Cup winner"),
    TITLE._replace(league="nba_cup", market="Winner"), TITLE._replace(league="wnba"), TITLE._replace(places=2),
    TITLE._replace(market="Top 2 finish"), TITLE._replace(market="Season Wins", selection="over 50.5", line=50.5),
]  # fmt: skip


@pytest.mark.parametrize("raw_label", SAME)
def test_other_words_for_one_market(raw_label: FuturesLabel) -> None:
    assert identify_price(raw_label) == identify_price(TITLE)


@pytest.mark.parametrize("raw_label", OTHERS)
def test_other_markets(raw_label: FuturesLabel) -> None:
    assert identify_price(raw_label)[0].id != identify_price(TITLE)[0].id


def test_an_id_is_the_same_for_ever() -> None:
    parts = ("future", "basketball", "nba", "championship", "2026-27", "TEAM", "", 0, 0, 1)
    assert identify_price(TITLE)[0].id == f"nba:championship:{naive.hashed(*parts)}"


def test_two_sides_about_a_subject() -> None:
    wins = FuturesLabel("basketball", "nba", "Win Totals", "2026-27", "", "Celtics", "Over", 52.5)
    market, pick = identify_price(wins)
    assert (market.name, market.type, market.subject, pick) == (
        "NBA regular season wins 2026-27: Boston Celtics 52.5", "OVER_UNDER", "Boston Celtics", "Over 52.5",
    )  # fmt: skip
    assert identify_price(wins._replace(subject="", selection="Boston Celtics Under 52.5")) == (market, "Under 52.5")
    assert identify_price(wins._replace(line=53.5))[0].id != market.id
    playoffs = FuturesLabel("basketball", "nba", "Make the playoffs", "2026-27", "", "Celtics", "No")
    assert identify_price(playoffs)[1] == "No"
    assert identify_price(playoffs._replace(subject="", selection="Celtics")) == (identify_price(playoffs)[0], "Yes")
    assert identify_price(playoffs._replace(subject="", selection="Celtics - No"))[1] == "No"


def test_yes_or_no_at_two_lines_are_two_markets() -> None:
    """Between 44.5 and 46.5 wins both sides lose: no arbitrage, and neither is fair for the other."""
    asked = FuturesLabel("basketball", "nba", "To win more games", "2026-27", "YES_NO", "Spurs", "Yes", 44.5)
    assert identify_price(asked._replace(line=46.5))[0].id != identify_price(asked)[0].id
    assert (identify_price(asked)[0].line, identify_price(asked)[1]) == (44.5, "Yes")
    base = {"league": "nba", "market": "To win more games", "future_type": "YES_NO", "season": "2026-27"}
    prices_ = {("pinnacle", 44.5): (1.7, 2.2), ("fanduel", 46.5): (1.93, 1.9)}
    rows = [
        {**base, "subject": "Spurs", "sportsbook": book, "line": line, "selection": side, "odds_decimal": odds}
        for (book, line), pair in prices_.items()
        for side, odds in zip(("Yes", "No"), pair, strict=True)
    ]
    result = find_futures(pl.DataFrame(rows))
    assert result.arbitrage.height == 0
    assert sorted(result.markets["line"].to_list()) == [44.5, 46.5]
    assert result.odds["ev_percentage"].to_list() == [None] * 4


@pytest.mark.parametrize(
    ("raw_label", "reason"),
    [
        (FuturesLabel("", "nba", "Season wins", "", "", "Celtics", "Over"), "needs a whole or half line"),
        (
            FuturesLabel("", "nba", "Season wins", "", "", "Celtics", "Over 50.25", 50.25),
            "needs a whole or half line",
        ),
        (FuturesLabel("", "nba", "Season wins", "", "", "Celtics", "Celtics", 50.5), "neither over nor under"),
        (FuturesLabel("", "nba", "Season wins", "", "", "Celtics", "Over", 1e300), "the line is not a number"),
        (
            FuturesLabel("", "nba", "To make the playoffs", "", "", "Celtics", "Yes", -1e300),
            "the line is not a number",
        ),
        (FuturesLabel("", "nba", "To make the playoffs", "", "", "Celtics", "Maybe"), "neither yes nor no"),
        (TITLE._replace(selection=" - "), "has no name"),
        (TITLE._replace(places=0), "number of places"),
    ],
)
def test_what_is_a_price_of_nothing(raw_label: FuturesLabel, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        identify_price(raw_label)


def test_every_name_of_a_kind_is_written_as_it_is_looked_up() -> None:
    for name in kinds._kinds():
        assert kinds.kind(name.replace("_", " ").title()).id == kinds._kinds()[name].id
    assert kinds.kind("Top 5 Finish").places == 5


# ---- tables ----


def rows_of(book: str, odds: dict[str, float], **more: Any) -> list[dict[str, Any]]:
    base = {"sportsbook": book, "league": "", "market": "Baking contest", "last_seen_at": NOW, "places": 1}
    return [{**base, "selection": name, "odds_decimal": price, **more} for name, price in odds.items()]


BAKERS = ("Ada", "Ben", "Cem")
BAKING = FuturesField("", "Baking contest", BAKERS)
PIN = {"Ada": 1.95, "Ben": 3.8, "Cem": 3.8}


def found(*books: Sequence[dict[str, Any]], fields: Sequence[FuturesField] = (BAKING,), **more: Any) -> Futures:
    rows = [row for book in books for row in book]
    return find_futures(pl.DataFrame(rows, infer_schema_length=None), fields=fields, now=NOW, **more)


def only(result: Futures) -> dict[str, Any]:
    assert result.markets.height == 1
    return result.markets.row(0, named=True)


def aside(result: Futures) -> dict[tuple[str, str], str]:
    kept = result.odds.filter(pl.col("rejected_because").is_not_null())
    return {(a, b): c for a, b, c in kept.select("selection", "sportsbook", "rejected_because").iter_rows()}


def test_a_whole_field() -> None:
    result = found(rows_of("pinnacle", PIN), rows_of("fanduel", {"Ada": 2.2, "Ben": 3.5}))
    market = only(result)
    assert (market["is_complete"], market["field_source"], market["field_size"]) == (True, "operator", 3)
    assert (market["selection_count"], market["books_available"], market["reference_book"]) == (3, 2, "pinnacle")
    chances = naive.power(list(PIN.values()), 1)
    shown = dict(result.odds.filter(sportsbook="pinnacle").select("selection", "fair_probability").iter_rows())
    assert shown == pytest.approx(dict(zip(PIN, chances, strict=True)), abs=1e-9)
    ada = result.odds.filter(sportsbook="fanduel", selection="Ada").row(0, named=True)
    assert ada["ev_percentage"] == pytest.approx(100 * (2.2 * chances[0] - 1))
    assert ada["is_best"]
    assert market["hold_percentage"] == pytest.approx(100 * (1 / 2.2 + 2 / 3.8 - 1))
    assert result.odds.filter(sportsbook="pinnacle")["ev_percentage"].null_count() == 3  # never its own


def test_an_arbitrage_over_a_whole_field() -> None:
    result = found(rows_of("fanduel", {"Ada": 2.2, "Ben": 3.5}), rows_of("betmgm", {"Cem": 4.5, "Ben": 3.9}))
    (row,) = result.arbitrage.iter_rows(named=True)
    implied = 1 / 2.2 + 1 / 3.9 + 1 / 4.5
    assert row["profit_percent"] == pytest.approx(100 * (1 / implied - 1))
    assert row["implied_total"] == pytest.approx(100 * implied)
    assert {leg["selection"]: leg["sportsbook"] for leg in row["legs"]} == {
        "Ada": "fanduel", "Ben": "betmgm", "Cem": "betmgm",
    }  # fmt: skip
    assert sum(leg["stake_percent"] for leg in row["legs"]) == pytest.approx(100)
    returned = [leg["stake_percent"] * leg["odds_decimal"] for leg in row["legs"]]
    assert returned == pytest.approx([100 / implied] * 3)
    assert row["id"].startswith(only(result)["market_id"] + ":")


FAN, MGM = {"Ada": 2.2, "Ben": 3.5}, {"Cem": 4.5, "Ben": 3.9}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"fields": ()}, "the contestants are unknown"),
        ({"fields": (BAKING._replace(contestants=(*BAKERS, "Dee")),)}, "Dee has no usable price"),
        ({"fields": (BAKING._replace(contestants=("Ada", "Cem")),)}, "Ben is quoted but not in the field"),
        ({"fields": (BAKING._replace(places=2),)}, "the contestants are unknown"),
        ({"fields": (BAKING._replace(season="2026"),)}, "the contestants are unknown"),
    ],
)
def test_nothing_without_the_whole_field(more: dict[str, Any], reason: str) -> None:
    result = found(rows_of("fanduel", FAN), rows_of("betmgm", MGM), rows_of("pinnacle", PIN), **more)
    market = only(result)
    assert reason in market["incomplete_reason"]
    assert market["is_complete"] is not True
    assert (market["hold_percentage"], market["reference_book"], result.arbitrage.height) == (None, None, 0)
    assert (
        result.odds["fair_probability"].null_count() == result.odds["ev_percentage"].null_count() == result.odds.height
    )


def test_old_prices_hold_nothing_together() -> None:
    old = NOW - timedelta(seconds=3601)
    result = found(rows_of("fanduel", FAN), rows_of("betmgm", MGM, last_seen_at=old))
    assert only(result)["incomplete_reason"] == "Cem has no usable price"
    assert aside(result) == {("Cem", "betmgm"): "stale", ("Ben", "betmgm"): "stale"}
    tired = found(rows_of("fanduel", FAN), rows_of("betmgm", MGM, last_seen_at=NOW - timedelta(seconds=601)))
    assert only(tired)["hold_percentage"] < 0.0
    assert tired.arbitrage.height == 0  # shown, but no arbitrage: its legs are not as fresh as those of games


def test_two_brands_of_one_provider_are_no_arbitrage() -> None:
    assert catalog.book("betrivers").feed == catalog.book("unibet").feed != ""
    assert found(rows_of("betrivers", FAN), rows_of("unibet", MGM)).arbitrage.height == 0
    assert found(rows_of("betrivers", FAN), rows_of("betmgm", MGM)).arbitrage.height == 1


def test_above_the_cap_it_is_an_error() -> None:
    assert found(rows_of("fanduel", FAN), rows_of("betmgm", {"Cem": 9.0, "Ben": 9.0})).arbitrage.height == 0


def test_a_book_that_cannot_lose_its_own_market_is_rejected() -> None:
    wrong = {"Ada": 2.4, "Ben": 4.2, "Cem": 4.2}
    result = found(rows_of("betmgm", wrong), rows_of("pinnacle", PIN))
    assert set(aside(result).values()) == {"book_sum"}
    assert result.arbitrage.height == 0


def test_other_guards() -> None:
    others = [rows_of(book, PIN) for book in ("pinnacle", "circa", "betonline", "bet365")]
    assert aside(found(*others, rows_of("betmgm", {"Ada": 3.4}))) == {("Ada", "betmgm"): "outlier"}
    assert aside(found(*others, rows_of("betmgm", {"Ada": 3.4}), outliers=False)) == {("Ada", "betmgm"): "ev_cap"}
    assert aside(found(*others, rows_of("betmgm", {"Ada": 2.1}))) == {}
    assert aside(found(rows_of("betmgm", FAN, is_active=False))) == {(name, "betmgm"): "unusable" for name in FAN}
    mismatch = rows_of("betmgm", {"Ada": 2.2}, odds_american=150.0)
    assert aside(found(mismatch)) == {("Ada", "betmgm"): "unusable"}
    assert catalog.book("polymarket_mid").mid_price
    assert aside(found(rows_of("polymarket_mid", FAN))) == {(name, "polymarket_mid"): "unusable" for name in FAN}
    assert aside(found(rows_of("underdog", FAN))) == {(name, "underdog"): "unusable" for name in FAN}
    low = rows_of("pinnacle", {"Ada": 1.45, "Ben": 5.0, "Cem": 5.0})
    assert only(found(low, rows_of("circa", PIN)))["reference_book"] == "pinnacle"
    stingy = found(low, *others[1:], rows_of("betmgm", PIN))
    assert aside(stingy) == {}
    assert only(stingy)["reference_book"] == "circa"


def test_a_wide_book_is_no_reference() -> None:
    wide = {"Ada": 1.6, "Ben": 3.0, "Cem": 3.0}
    assert only(found(rows_of("pinnacle", wide)))["reference_book"] is None
    assert only(found(rows_of("pinnacle", wide), rows_of("circa", PIN)))["reference_book"] == "circa"
    assert (
        only(found(rows_of("pinnacle", PIN), rows_of("circa", PIN), sharp=["Circa Sports"]))["reference_book"]
        == "circa"
    )


def test_commission_is_part_of_a_price() -> None:
    exchange = catalog.book("betfair_exchange")
    assert exchange.commission > 0.0
    result = found(rows_of("pinnacle", PIN), rows_of("betfair_exchange", {"Ada": 2.1}))
    row = result.odds.filter(sportsbook="betfair_exchange").row(0, named=True)
    net = 1 + (2.1 - 1) * (1 - exchange.commission)
    assert row["odds_decimal"] == 2.1
    assert row["ev_percentage"] == pytest.approx(100 * (net * row["fair_probability"] - 1))


def test_books_that_may_be_bet() -> None:
    books = [rows_of("fanduel", FAN), rows_of("betmgm", MGM), rows_of("pinnacle", PIN)]
    some = found(*books, books=["FanDuel", "pinnacle"])
    alone = found(books[0], books[2])
    assert only(some)["hold_percentage"] == only(alone)["hold_percentage"]
    assert only(found(*books, books=["fanduel"]))["hold_percentage"] is None
    assert only(found(*books, books=["fanduel"]))["is_complete"]  # which all books say
    assert only(found(*books, books=["fanduel"]))["reference_book"] == "pinnacle"


# ---- any other ----

MORE = FuturesField("", "Baking contest", ("Ada", "Ben", "Any other"))


def test_any_other_is_those_that_the_field_does_not_name() -> None:
    whole = {"Ada": 1.95, "Ben": 3.8, "The Field": 3.8}
    market = only(found(rows_of("pinnacle", whole), fields=(MORE,)))
    assert (market["is_complete"], market["reference_book"]) == (True, "pinnacle")
    less = found(rows_of("fanduel", {"Ada": 2.2, "Any Other": 5.0}), rows_of("pinnacle", whole), fields=(MORE,))
    assert aside(less) == {("Any other", "fanduel"): "other_field"}  # there it may be Ben too
    assert only(less)["is_complete"]
    stranger = found(rows_of("fanduel", {**whole, "Dee": 30.0}), rows_of("pinnacle", whole), fields=(MORE,))
    assert only(stranger)["incomplete_reason"] == "Dee is quoted but not in the field"
    closed = found(rows_of("fanduel", {"Ada": 2.0, "Other": 2.0}), rows_of("pinnacle", PIN))
    assert aside(closed) == {("Any other", "fanduel"): "other_field"}
    assert only(closed)["is_complete"]


# ---- names ----


def award(book: str, odds: dict[str, float]) -> list[dict[str, Any]]:
    return [{**row, "league": "nba", "market": "MVP", "season": "2026-27"} for row in rows_of(book, odds)]


def selections(*books: Sequence[dict[str, Any]], fields: Sequence[FuturesField] = ()) -> set[str]:
    return set(found(*books, fields=fields).odds["selection"])


def test_players_of_several_books_are_one() -> None:
    books = [award("pinnacle", {"Luka Dončić": 5.0, "Nikola Jokić": 4.0}), award("fanduel", {"Luka Doncic": 5.5}),
             award("betmgm", {"L. Doncic": 5.4, "Jokic, Nikola": 4.1})]  # fmt: skip
    for order in (books, books[::-1]):
        assert selections(*order) == {"Luka Dončić", "Nikola Jokić"}
    stated = FuturesField("nba", "MVP", ("Luka Doncic", "Nikola Jokic"), "2026-27")
    assert selections(*books, fields=(stated,)) == {"Luka Doncic", "Nikola Jokic"}


def test_brothers_are_two() -> None:
    books = [award("pinnacle", {"Marcus Morris": 5.0, "Markieff Morris": 4.0}), award("fanduel", {"M. Morris": 5.5})]
    assert selections(*books) == {"Marcus Morris", "Markieff Morris", "M. Morris"}


def test_a_name_between_two_others_is_neither() -> None:
    three = {"Juan Soto": 5.0, "Juan Jose Soto": 6.0, "Jose Soto": 7.0}
    assert selections(award("pinnacle", three)) == set(three)
    assert selections(award("pinnacle", {"Juan Soto": 5.0}), award("fanduel", {"Juan Jose Soto": 6.0})) == {
        "Juan Jose Soto"
    }


def test_one_book_with_two_prices_for_a_player() -> None:
    near = found(award("pinnacle", {"Luka Doncic": 5.0, "Luka Dončić": 5.1, "Nikola Jokic": 2.0}))
    assert near.odds.filter(pl.col("selection").str.starts_with("Luka"))["odds_decimal"].to_list() == [5.1]  # one name
    two = found(award("betmgm", {"Luka Doncic": 5.0, "L. Doncic": 5.2}))
    assert two.odds.select("selection", "odds_decimal", "rejected_because").rows() == [("Luka Doncic", 5.0, None)]
    far = found(award("betmgm", {"Luka Doncic": 5.0, "L. Doncic": 9.0}))
    assert far.odds.select("odds_decimal", "rejected_because").rows() == [(5.0, "unusable")]


def test_a_league_whose_teams_are_known() -> None:
    odds = dict.fromkeys(kinds.contestants("nba"), 27.0)
    assert len(odds) == 30

    def title(book: str, odds: dict[str, float]) -> list[dict[str, Any]]:
        return [{**row, "league": "nba", "market": "Champion", "season": "2026-27"} for row in rows_of(book, odds)]

    market = only(found(title("pinnacle", odds), fields=()))
    assert (market["is_complete"], market["field_source"], market["reference_book"]) == (True, "catalog", "pinnacle")
    short = {name: price for name, price in odds.items() if name != "Utah Jazz"}
    assert only(found(title("pinnacle", short), fields=()))["incomplete_reason"] == "Utah Jazz has no usable price"
    twice = only(found(title("pinnacle", short | {"Jazz": 27.0}), fields=()))
    assert twice["is_complete"]
    english = [{**row, "league": "epl"} for row in title("pinnacle", {"Arsenal": 2.0, "Chelsea": 2.0})]
    assert only(found(english, fields=()))["is_complete"] is None  # nobody keeps a list of its clubs


# ---- laws ----

BOOKS = ("pinnacle", "circa", "betfair_exchange", "fanduel", "betmgm", "betrivers", "unibet", "bet365")
NAMES = ("Ada", "Ben", "Cem", "Dee", "Eva")
FACTS = {
    name: naive.Facts(catalog.book(name).feed or name, catalog.book(name).commission, catalog.book(name).exchange)
    for name in BOOKS
}
SHARP = [book.id for book in catalog.books().values() if book.sharp]


@st.composite
def boards(draw: st.DrawFn) -> tuple[list[naive.Price], tuple[str, ...], int]:
    """Prices near a truth, some old, some suspended, some missing, now and then of a stranger."""
    field = NAMES[: draw(st.integers(2, 4))]
    places = draw(st.integers(1, max(1, min(2, len(field) - 1))))
    weights = [draw(st.floats(0.2, 1.0)) for _ in field]
    chances = [min(0.9, places * w / sum(weights)) for w in weights]
    every = []
    for book in draw(st.lists(st.sampled_from(BOOKS), min_size=1, max_size=6, unique=True)):
        margin = draw(st.sampled_from([0.96, 1.0, 1.04, 1.12]))
        missing = draw(st.sampled_from([(), (), (), (field[0],), (field[-1],)]))
        for name, chance in zip(field, chances, strict=True):
            if name in missing:
                continue
            off = draw(st.sampled_from([1.0, 1.0, 0.97, 1.05, 0.7]))
            odds = max(1.02, round(1.0 / (chance * margin * off), 3))
            age = draw(st.sampled_from([0.0, 0.0, 0.0, 700.0, 5000.0]))
            every.append(naive.Price(name, book, odds, age, draw(st.integers(0, 9)) > 0))
    if draw(st.integers(0, 9)) == 0:
        every.append(naive.Price(NAMES[-1], every[0].book if every else "fanduel", 30.0, 0.0, True))
    assume(every)
    return every, field, places


def table_of(board: Sequence[naive.Price], places: int) -> list[dict[str, Any]]:
    return [
        {
            "sportsbook": p.book, "league": "", "market": "Baking contest", "selection": p.selection, "places": places,
            "odds_decimal": p.odds, "last_seen_at": NOW - timedelta(seconds=p.age), "is_active": p.offered,
        }
        for p in board
    ]  # fmt: skip


def look(board: Sequence[naive.Price], field: tuple[str, ...], places: int, **more: Any) -> Futures:
    fields = (FuturesField("", "Baking contest", field, places=places),)
    return found(table_of(board, places), fields=fields, **more)


@given(boards(), st.sets(st.sampled_from(BOOKS), min_size=1, max_size=8) | st.none())
def test_it_is_the_slow_twins(
    drawn: tuple[list[naive.Price], tuple[str, ...], int], mine: set[str] | None
) -> None:  # fmt: skip
    board, field, places = drawn
    wanted = naive.judge(board, field, places, FACTS, SHARP, naive.Rules(), None if mine is None else sorted(mine))
    result = look(board, field, places, books=mine)
    market = only(result)
    assert market["is_complete"] == wanted.complete
    assert (market["reference_book"] or "") == wanted.reference
    assert aside(result) == wanted.aside
    chances = dict(result.odds.select("selection", "fair_probability").iter_rows())
    assert {name: p for name, p in chances.items() if p is not None} == pytest.approx(
        {name: p for name, p in wanted.fair.items() if name in chances}, abs=1e-7
    )
    edges = result.odds.filter(pl.col("ev_percentage").is_not_null())
    assert {
        (a, b): e for a, b, e in edges.select("selection", "sportsbook", "ev_percentage").iter_rows()
    } == pytest.approx({key: 100 * e for key, e in wanted.edge.items()}, abs=1e-4)
    assert market["hold_percentage"] == (None if wanted.hold is None else pytest.approx(100 * wanted.hold, abs=1e-9))
    assert result.arbitrage.height == (wanted.profit is not None)
    for row in result.arbitrage.iter_rows(named=True):
        assert row["profit_percent"] == pytest.approx(100 * (wanted.profit or 0.0), abs=1e-9)
        assert {leg["selection"]: leg["sportsbook"] for leg in row["legs"]} == wanted.legs


@given(boards(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_batches_does_not_matter(
    drawn: tuple[list[naive.Price], tuple[str, ...], int], random: Any
) -> None:
    board, field, places = drawn
    mixed = list(board)
    random.shuffle(mixed)
    one, other = look(board, field, places), look(mixed, field, places)
    for a, b in zip(one, other, strict=True):
        assert a.equals(b)
    fields = (FuturesField("", "Baking contest", field, places=places),)
    whole = FuturesBoard(fields).apply(table_of(board, places), NOW)
    piece = FuturesBoard(fields)
    cut = random.randint(0, len(mixed))
    for part in (mixed[:cut], mixed[cut:]):
        piece = piece.apply(table_of(part, places), NOW)
    assert piece.table.equals(whole.table)


@given(boards(), st.floats(1.01, 1.5))
def test_a_worse_price_changes_nothing(
    drawn: tuple[list[naive.Price], tuple[str, ...], int], worse: float
) -> None:  # fmt: skip
    board, field, places = drawn
    assume(all(p.book != "bet365" for p in board))
    before = look(board, field, places, outliers=False)
    name = field[0]
    young = (pl.col("last_seen_at") >= NOW - timedelta(seconds=600)) & pl.col("rejected_because").is_null()
    there = before.odds.filter(young & (pl.col("selection") == name))["odds_decimal"].to_list()
    assume(there and min(there) / worse > 1.01)
    more = [*board, naive.Price(name, "bet365", min(there) / worse, 0.0, True)]
    after = look(more, field, places, outliers=False)
    kept = ("is_complete", "hold_percentage", "reference_book", "reference_hold")
    assert [only(before)[one] for one in kept] == [only(after)[one] for one in kept]
    assert before.arbitrage.equals(after.arbitrage)
    assert before.odds.equals(after.odds.filter(pl.col("sportsbook") != "bet365"))


@given(boards())
def test_an_incomplete_field_gives_nothing(drawn: tuple[list[naive.Price], tuple[str, ...], int]) -> None:
    board, field, places = drawn
    gone = look([p for p in board if p.selection != field[0]] or board, field, places)
    result = look(board, (*field, "Nobody"), places)
    for each in (gone, result):
        if only(each)["is_complete"] is not True:
            assert each.arbitrage.height == 0
            assert each.odds["fair_probability"].null_count() == each.odds.height
            assert only(each)["hold_percentage"] is None
    assert only(result)["is_complete"] is False


# ---- the board ----


def test_a_price_moves_and_stays() -> None:
    later = NOW + timedelta(seconds=60)
    board = FuturesBoard().apply(rows_of("fanduel", {"Ada": 2.2}), NOW)
    same = board.apply(rows_of("fanduel", {"Ada": 2.2}, last_seen_at=later), later)
    assert same.table.select("odds_changed_at", "last_seen_at").rows() == [(NOW, later)]
    moved = same.apply(rows_of("fanduel", {"Ada": 2.3}, last_seen_at=later), later)
    assert moved.table.select("odds_changed_at", "odds_decimal").rows() == [(later, 2.3)]
    for own, expected in ((later, later), (NOW, later + timedelta(seconds=1))):  # the second is from before `later`
        now = later + timedelta(seconds=1)
        again = moved.apply(rows_of("fanduel", {"Ada": 2.4}, last_seen_at=now, odds_changed_at=own), now)
        assert again.table["odds_changed_at"].to_list() == [expected]
    late = moved.apply(rows_of("fanduel", {"Ada": 9.0}), later)
    assert late.table.equals(moved.table)
    early = moved.apply(rows_of("fanduel", {"Ada": 2.4}, last_seen_at=later + timedelta(hours=9)), later)
    assert early.table["last_seen_at"].to_list() == [later]  # from the future: seen now
    assert board.table["odds_decimal"].to_list() == [2.2]  # what somebody holds does not change


def test_prices_leave() -> None:
    ids = rows_of("fanduel", {"Ada": 2.2, "Ben": 3.5})
    rows = [{**row, "id": row["selection"]} for row in ids]
    board = FuturesBoard().apply(rows, NOW, source="a")
    assert board.ids == {("a", "Ada"), ("a", "Ben")}
    assert len(board.apply((), NOW, source="b", removed=["Ada"])) == 2  # another source's id
    assert board.apply((), NOW, source="a", removed=["Ada"]).table["pick"].to_list() == ["Ben"]
    assert len(board.apply((), NOW + timedelta(seconds=kinds.thresholds().forget_s))) == 2
    gone = board.apply((), NOW + timedelta(seconds=kinds.thresholds().forget_s + 1.0))
    assert (len(gone), gone.markets, gone.sheets) == (0, {}, {})


def test_what_is_no_price_is_said() -> None:
    rows = [*rows_of("fanduel", {"Ada": 0.5}), *rows_of("betmgm", {" ": 2.0}), *rows_of("bet365", {"Ada": 2.0})]
    board = FuturesBoard().apply(rows, NOW)
    assert len(board) == 1
    assert sorted(board.rejected["guard"].to_list()) == ["bad_price", "unreadable"]
    with pytest.raises(OddsError, match="no selection"):
        FuturesBoard().apply([{"sportsbook": "a", "market": "b", "odds_decimal": 2.0}], NOW)
    texts = pl.DataFrame({name: ["7"] if name in ("odds_decimal", "places") else ["x"] for name in
                          ("sportsbook", "market", "selection", "odds_decimal", "places")})  # fmt: skip
    assert FuturesBoard().apply(texts, NOW).table.select("odds_decimal", "places").rows() == [(7.0, 7)]
    assert set(FUTURES_SCHEMA) <= set(FuturesBoard().table.columns)


def test_an_empty_table() -> None:
    empty = pl.DataFrame(
        schema={name: FUTURES_SCHEMA[name] for name in ("sportsbook", "market", "selection", "odds_decimal")}
    )
    result = find_futures(empty)
    assert (result.markets.height, result.odds.height, result.arbitrage.height) == (0, 0, 0)
    with pytest.raises(ValueError, match="method must be one of"):
        find_futures(empty, method="guess")


def test_parameters_that_are_no_such_thing() -> None:
    rows = [*rows_of("pinnacle", PIN), *rows_of("circa", PIN), *rows_of("fanduel", {"Ada": 2.2})]
    assert only(found(rows, sharp="circa"))["reference_book"] == "circa"  # one name is not a list of letters
    for wrong in ({"sharp": {"circa": 1.0}}, {"books": "fanduel"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            found(rows, **wrong)
    with pytest.raises(OddsError, match="it has no sportsbook"):
        find_futures(pl.DataFrame({"market": ["Winner"]}))
    with pytest.raises(TypeError, match="expected a frame"):
        find_futures(7)  # type: ignore[arg-type]


# ---- statements ----


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[field", "not valid TOML"),
        ("[other]\na = 1", "must contain only"),
        ('[[field]]\nmarket = "MVP"', "needs market and contestants"),
        ('[[field]]\nmarket = "MVP"\ncontestants = ["a", "b"]\ncolour = "red"', "needs market and contestants"),
        ('[[field]]\nmarket = "MVP"\ncontestants = ["a", 3]', "contestants is"),
        ('[[field]]\nmarket = "MVP"\nplaces = true\ncontestants = ["a", "b"]', "places is True"),
        ('[[field]]\nmarket = "MVP"\ncontestants = ["a"]', "1 contestants, which is too few for 1 places"),
        ('[[field]]\nmarket = "MVP"\ncontestants = ["Ada", "ADA", "Ben"]', "twice"),
        ('[[field]]\nleague = "nba"\nmarket = "Champion"\ncontestants = ["Celtics", "BOS Celtics"]', "twice"),
        ('[[field]]\nleague = "nba"\nmarket = "Season wins"\ncontestants = ["Over", "Under"]', "cannot be used"),
    ],
)
def test_fields_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(FieldsError, match=reason):
        parse_fields(text)


def test_a_statement_says_how_many_win() -> None:
    rows = [{**row, "places": None} for row in rows_of("pinnacle", {"Ada": 1.4, "Ben": 1.6, "Cem": 2.0, "Dee": 3.1})]
    alone = only(found(rows, fields=()))
    assert (alone["places"], alone["incomplete_reason"]) == (None, "the number of winners is unknown")
    stated = BAKING._replace(contestants=NAMES[:4], places=2)
    result = found(rows, fields=(stated,))
    assert (only(result)["places"], only(result)["is_complete"]) == (2, True)
    assert result.odds["fair_probability"].sum() == pytest.approx(2.0)


# ---- the simulator ----


@pytest.mark.parametrize("league", ["nba", "nfl", "mlb", "nhl"])
def test_a_made_up_season(league: str) -> None:
    season = FuturesSeason(11, league, 2026)
    fields = [FuturesField(**dict(field)) for field in season.fields()]
    then = NOW + timedelta(minutes=20)
    assert season.quotes(NOW) == FuturesSeason(11, league, 2026).quotes(NOW)
    assert season.quotes(NOW) != FuturesSeason(12, league, 2026).quotes(NOW)
    moved = [
        a["odds_decimal"] != b["odds_decimal"] for a, b in zip(season.quotes(NOW), season.quotes(then), strict=False)
    ]
    assert 0.02 < np.mean(moved) < 1.0
    races = season.races(NOW)
    for race in races:
        assert race.chances.sum() == pytest.approx(race.places)
        assert ((race.chances > 0.0) & (race.chances < 1.0)).all()
    title, final = races[0].chances, races[1].chances
    assert (final >= title).all()
    assert (np.argsort(title) == np.argsort(final)).all()
    result = found(season.quotes(NOW), fields=fields)
    assert result.rejected.height == 0
    assert result.markets["is_complete"].to_list() == [True] * len(races)
    assert {row["future_type"] for row in result.markets.iter_rows(named=True)} == set(kinds.TYPES)
    true = {
        (race.type, race.places, race.subject, f"{name} {race.line:g}" if race.line else name): chance
        for race in races
        for name, chance in zip(race.selections, race.chances.tolist(), strict=True)
    }
    joined = result.odds.filter(sportsbook="pinnacle").join(result.markets, on="market_id")
    off = [
        abs(p - true[kind, places, subject or "", name])
        for kind, places, subject, name, p in joined.select(
            "future_type", "places", "subject", "selection", "fair_probability"
        ).iter_rows()
    ]
    assert max(off) < 0.02


# ---- a source ----


def outright(**more: Any) -> dict[str, Any]:
    outcomes = [{"name": "Boston Celtics", "price": 5.5}, {"name": "Denver Nuggets", "price": 8.0}]
    event = {
        "id": "e1", "sport_key": "basketball_nba_championship_winner", "sport_title": "NBA Championship Winner",
        "commence_time": "2027-06-01T00:00:00Z", "home_team": None, "away_team": None,
        "bookmakers": [
            {
                "key": "draftkings", "title": "DraftKings", "last_update": "2026-11-01T11:59:00Z",
                "markets": [{"key": "outrights", "last_update": "2026-11-01T11:59:30Z", "outcomes": outcomes}],
            }
        ],
    }  # fmt: skip
    return {**event, **more}


def body(*events: dict[str, Any]) -> bytes:
    import json

    return json.dumps(list(events)).encode()


def test_outrights_of_the_odds_api() -> None:
    asked = RequestScope.of(["outrights"], sport="basketball_nba_championship_winner")
    reader = TheOddsApi(markets=["outrights"])
    first = reader.read(body(outright()), asked)
    assert (list(first.games), list(first.quotes), first.unmapped, first.refused) == ([], [], {}, {})
    board = FuturesBoard().apply(first.futures, NOW, source="main")
    (market,) = board.markets.values()
    assert (market.name, market.kind) == ("NBA Champion 2026-27", "championship")
    assert board.table.select("pick", "book", "odds_decimal").rows() == [
        ("Boston Celtics", "draftkings", 5.5), ("Denver Nuggets", "draftkings", 8.0),
    ]  # fmt: skip
    assert board.table["last_seen_at"].to_list() == [datetime(2026, 11, 1, 11, 59, 30, tzinfo=UTC)] * 2
    event = outright()
    event["bookmakers"][0]["markets"][0]["outcomes"].pop()
    second = reader.read(body(event), asked)
    after = board.apply(second.futures, NOW, source="main", removed=second.removed)
    assert after.table["pick"].to_list() == ["Boston Celtics"]
    none = reader.read(body(), asked)
    assert len(after.apply(none.futures, NOW, source="main", removed=none.removed)) == 0


def test_outrights_that_are_no_offers() -> None:
    event = outright()
    market = event["bookmakers"][0]["markets"][0]
    market["outcomes"] += [{"name": "Utah Jazz", "price": 1.0}, {"name": "Denver Nuggets", "price": 9.0}]
    event["bookmakers"][0]["markets"].append({**market, "key": "outrights_lay"})
    payload = TheOddsApi().read(body(event), RequestScope.of(["outrights"]))
    assert [row["selection"] for row in payload.futures] == ["Boston Celtics", "Denver Nuggets"]
    assert payload.refused == {"a lay price": 4, "an invalid price": 1, "a price given twice": 1}
    american = outright()
    american["bookmakers"][0]["markets"][0]["outcomes"] = [{"name": "Utah Jazz", "price": 900}]
    (row,) = TheOddsApi(american=True).read(body(american), RequestScope.of(["outrights"])).futures
    assert (row["odds_american"], "odds_decimal" in row) == (900, False)


def test_a_board_that_is_written_can_be_read_meanwhile() -> None:
    code = """
import threading
from datetime import UTC, datetime
from oddsengine.futures import FuturesBoard
from oddsengine.simulate.simulated_futures import FuturesSeason

now = datetime(2026, 11, 1, 12, tzinfo=UTC)
board, written = FuturesBoard().apply(FuturesSeason(7, "nba", 2026).quotes(now), now), threading.Event()
def read():
    while not written.is_set():
        board.table.lazy()
for _ in range(2):
    threading.Thread(target=read, daemon=True).start()
for _ in range(100):
    board.dump()
written.set()
"""
    assert ran(code).returncode == 0  # a deadlock of the GIL ends only by the time that this may take


def test_futures_know_no_stranger_either() -> None:
    odds = pl.DataFrame(
        {"sportsbook": "corner_shop", "league": "nba", "market": "To make the playoffs 2026-27", "subject": "Spurs",
         "selection": ["Yes", "No"], "odds_decimal": [1.5, 2.7]}
    )  # fmt: skip
    assert oe.find_futures(odds, books=["corner_shop"], sharp=["pinnacle"]).odds.height == 2
    with pytest.raises(ValueError, match=r"^sharp: no prices of pinacle; the books are corner_shop$"):
        oe.find_futures(odds, sharp=["pinacle"])
