"""SX Bet's markets and books: who takes a maker's order bets on the other outcome."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from feeds.test_samples import encoded
from hypothesis import given
from support.contract_payloads import mutated, payloads, unheard_of
from support.sx_bet import START, book, league_list, market, page, soccer, sports_list, winner

import oddsengine as oe
from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.sx_bet import SxBetMarkets, SxListing, next_key, read_leagues, read_markets
from oddsengine.feeds.turns import Received
from oddsengine.feeds.venue_contracts import load
from oddsengine.maths.depth import fill

NOW = START - timedelta(hours=2)
SEEN = NOW - timedelta(seconds=1)
LEAGUES = read_leagues(encoded(sports_list()), encoded(league_list()))

CONTRACT = load("sx_bet")


def listing(*markets: Any, **more: Any) -> SxListing:
    return read_markets([encoded(page(*markets))], LEAGUES, NOW, **more)


def read(*markets: Any, books: Mapping[str, Any] | None = None, reader: SxBetMarkets | None = None) -> Payload:
    listed = listing(*markets)
    given = {one.hash: book([(0.5, 5.0)], [(0.48, 3.0)]) for one in listed.markets} if books is None else books
    received = {ident: Received(encoded(one), SEEN) for ident, one in given.items()}
    return (reader or SxBetMarkets()).read("nfl", listed, received)


def meant(payload: Payload) -> list[tuple[Any, ...]]:
    names = ("market_type", "selection", "selection_type", "line")
    return [tuple(row[name] for name in names) for row in payload.quotes]


def test_who_takes_an_order_bets_on_the_other_outcome() -> None:
    """The recorded book: 5 USDC on one at 0.5025, 3 USDC on two at 0.48, so that one is sold at 0.52 for 3.25."""
    one, two = read(winner(), books={"0xw": book([(0.5025, 5.0)], [(0.48, 3.0)])}).quotes
    assert (one["selection"], two["selection"]) == ("Dallas Cowboys", "Seattle Seahawks")
    assert one["odds_decimal"] == pytest.approx(1 / 0.52)
    assert one["max_bet"] == pytest.approx(3.25)
    assert two["odds_decimal"] == pytest.approx(1 / 0.498, abs=0.01)
    assert two["max_bet"] == pytest.approx(5.0 * 0.4975 / 0.5025, abs=0.02)
    assert one["last_seen_at"] == SEEN


def test_levels_come_in_any_order_and_are_served_best_first() -> None:
    given = [(0.4, 10.0), (0.48, 3.0), (0.45, 2.0)]
    for orders in (given, given[::-1]):
        (row,) = read(winner(), books={"0xw": book([], orders)}).quotes
        assert [round(level["odds_decimal"], 4) for level in row["levels"]] == [1.9231, 1.8182, 1.6667]
        assert [round(level["stake"], 2) for level in row["levels"]] == [3.25, 2.44, 15.0]
        assert row["max_bet"] == row["levels"][0]["stake"]


def test_the_levels_of_a_table_price_a_stake() -> None:
    """12 USDC on one: 3.25 at 1 / 0.52, the rest at 1 / 0.6."""
    table = oe.check_odds(read(winner(), books={"0xw": book([(0.62, 100.0)], [(0.48, 3.0), (0.4, 10.0)])}).quotes)
    assert table["levels"].list.len().to_list() == [2, None]
    ladder = [(level["odds_decimal"], level["stake"]) for level in table["levels"][0]]
    assert fill(ladder, 12.0).odds == pytest.approx((3.25 / 0.52 + 8.75 / 0.6) / 12.0)


def test_the_league_says_who_is_at_home() -> None:
    (american, *_) = read(winner()).games
    assert (american.home, american.away) == ("Seattle Seahawks", "Dallas Cowboys")
    assert (american.sport, american.league, american.start) == ("football", "nfl", START)
    (english, *_) = read(soccer("0x1", ("Fulham", "Not Fulham"), 1)).games
    assert (english.home, english.away) == ("Fulham", "Chelsea")
    assert (english.sport, english.league) == ("soccer", "england_premier_league")
    assert [row["selection_type"] for row in read(winner()).quotes] == ["away", "home"]


def test_a_three_way_result_is_three_markets_and_not_winning_is_half_a_goal() -> None:
    payload = read(
        soccer("0x1", ("Fulham", "Not Fulham"), 1), soccer("0x2", ("Tie", "Not Tie"), 1),
        soccer("0x3", ("Chelsea", "Not Chelsea"), 1),
    )  # fmt: skip
    assert meant(payload) == [
        ("moneyline_3way", "Fulham", "home", None), ("asian_handicap", "Chelsea", "away", 0.5),
        ("moneyline_3way", "Draw", "draw", None), ("draw", "No", "no", None),
        ("moneyline_3way", "Chelsea", "away", None), ("asian_handicap", "Fulham", "home", 0.5),
    ]  # fmt: skip
    assert payload.refused == {}


def test_lines_are_those_of_the_names() -> None:
    spread = market("0xs", ("Dallas Cowboys +3.5", "Seattle Seahawks -3.5"), 342, line=3.5, mainLine=True)
    total = market("0xt", ("Over 44.5", "Under 44.5"), 28, line=44.5, mainLine=False)
    payload = read(spread, total)
    assert meant(payload) == [
        ("point_spread", "Dallas Cowboys", "away", 3.5), ("point_spread", "Seattle Seahawks", "home", -3.5),
        ("total_points", "Over", "over", 44.5), ("total_points", "Under", "under", 44.5),
    ]  # fmt: skip
    assert [row["is_alternate_line"] for row in payload.quotes] == [False, False, True, True]


@pytest.mark.parametrize(
    "wrong",
    [
        market("0xs", ("Dallas Cowboys +3.5", "Seattle Seahawks +3.5"), 342, line=3.5),
        market("0xs", ("Dallas Cowboys +3.5", "Seattle Seahawks -3.5"), 342, line=7.5),
        market("0xs", ("Dallas Cowboys +3.5", "Denver Broncos -3.5"), 342, line=3.5),
        market("0xs", ("Dallas Cowboys", "Seattle Seahawks"), 342, line=3.5),
        market("0xt", ("Over 44.5", "Under 45.5"), 28, line=44.5),
        market("0xt", ("Over 44.5", "Over 44.5"), 28, line=44.5),
        market("0xw", ("Dallas Cowboys", "The Field"), 226),
        soccer("0x1", ("Arsenal", "Not Arsenal"), 1),
    ],
)
def test_outcomes_that_are_not_clear_are_left_out(wrong: Any) -> None:
    payload = read(wrong)
    assert not payload.quotes
    assert payload.refused == {"a market whose outcomes are not the two teams": 1}


TENNIS: dict[str, Any] = {"league": 1070, "teams": ("Alcaraz", "Sinner")}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (market("0x1", ("Alcaraz", "Sinner"), 52, **TENNIS), "moneyline"),
        (market("0x1", ("Alcaraz", "Sinner"), 202, **TENNIS), "1st_set_moneyline"),
        (market("0x1", ("Alcaraz -1.5", "Sinner +1.5"), 866, **TENNIS), "set_handicap"),
        (market("0x1", ("Over 22.5", "Under 22.5"), 166, **TENNIS), "total_games"),
        (market("0x1", ("Alcaraz", "Sinner"), 64, **TENNIS), "type 64"),
        (market("0x1", ("Over 36.5", "Under 36.5"), 2, **TENNIS), "type 2"),
        (market("0x1", ("Dallas Cowboys", "Seattle Seahawks"), 52), "type 52"),
        (market("0x1", ("Over 44.5", "Under 44.5"), 2), "type 2"),
        (market("0x1", ("Dallas Cowboys", "Seattle Seahawks"), 205), "4th_quarter_moneyline"),
        (market("0x1", ("Over 10.5", "Under 10.5"), 45), "2nd_quarter_total_points"),
        (market("0x1", ("Dallas Cowboys", "Seattle Seahawks"), 63), "1st_half_moneyline"),
        (soccer("0x1", ("Fulham", "Chelsea"), 63), "type 63"),
        (soccer("0x1", ("Fulham", "Chelsea"), 52), "draw_no_bet"),
        (soccer("0x1", ("Fulham -0.75", "Chelsea +0.75"), 3), "asian_handicap"),
        (soccer("0x1", ("Over 2.5", "Under 2.5"), 2), "total_goals"),
        (soccer("0x1", ("Yes", "No"), 17), "both_teams_to_score"),
        (soccer("0x1", ("x", "y"), 9999), "type 9999"),
    ],
)
def test_types_are_markets_of_the_same_rules_or_keep_their_number(given: Any, name: str) -> None:
    payload = read(given)
    assert [row["market_type"] for row in payload.quotes] == [name, name]
    assert dict(payload.unmapped) == ({("sx_bet", name): 2} if name.startswith("type") else {})


def test_parlays_outrights_and_markets_of_no_league_are_left_out() -> None:
    payload = read(
        winner("0x1", legs=[{"marketHash": "0x2"}]), market("0x2", ("Dallas", "The Field"), 274),
        winner("0x3") | {"leagueId": 7}, winner("0x4") | {"teamTwoName": ""}, winner("0x5") | {"status": "INACTIVE"},
    )  # fmt: skip
    assert not payload.quotes
    assert payload.refused == {"a parlay": 1, "an outright": 1, "a market without a league or teams": 2}


def test_games_beyond_the_horizon_are_not_listed() -> None:
    later = winner("0x2", gameTime=int((NOW + timedelta(days=8)).timestamp()))
    assert [one.hash for one in listing(winner(), later, within=7 * 86_400.0).markets] == ["0xw"]


def test_prices_are_live_from_the_start() -> None:
    begun = winner(gameTime=int(NOW.timestamp()))
    assert {row["is_live"] for row in read(begun).quotes} == {True}
    assert {game.status for game in read(begun).games} == {"live"}


@pytest.mark.parametrize(("enabled", "shown"), [(True, 2), (None, 2), (False, 0)])
def test_a_market_without_bets_in_play_has_no_price_in_play(enabled: bool | None, shown: int) -> None:
    reader = SxBetMarkets()
    before = read(winner(liveEnabled=enabled), reader=reader)
    assert len(before.quotes) == 2
    begun = winner(liveEnabled=enabled, gameTime=int(NOW.timestamp()))
    payload = read(begun, reader=reader)
    assert len(payload.quotes) == shown
    assert len(payload.removed) == 2 - shown
    assert bool(payload.refused) is (not shown)


def test_what_is_no_longer_offered_is_removed() -> None:
    reader = SxBetMarkets()
    read(winner(), reader=reader)
    one_side = read(winner(), books={"0xw": book([(0.5, 5.0)], [])}, reader=reader)
    assert (one_side.removed, [row["id"] for row in one_side.quotes]) == (["0xw/1"], ["0xw/2"])
    assert read(winner(), books={}, reader=reader).removed == ["0xw/2"]
    assert read(reader=reader).removed == []


@pytest.mark.parametrize(
    ("odds", "size"), [("0", "5000000"), ("1" + "0" * 20, "5"), ("x", "5"), ("5" * 60, "5"), ("48" + "0" * 18, "-1")]
)
def test_a_level_that_is_not_valid_costs_only_itself(odds: str, size: str) -> None:
    given = book([], [(0.48, 3.0)])
    given["data"]["outcomeTwo"].append({"percentageOdds": odds, "size": size})
    payload = read(winner(), books={"0xw": given})
    assert [row["max_bet"] for row in payload.quotes] == [pytest.approx(3.25)]
    assert payload.refused == {"a level of an order book that is not valid": 1}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"data": null}', b'{"data": {"markets": {}}}'])
def test_what_is_no_list_is_said(body: bytes) -> None:
    with pytest.raises(FeedError, match="not a payload of SX Bet"):
        read_markets([encoded(page(winner())), body], LEAGUES, NOW)


def test_a_book_without_both_sides_is_none_and_changes_nothing() -> None:
    reader = SxBetMarkets()
    read(winner(), reader=reader)
    with pytest.raises(FeedError, match="no list of orders"):
        read(winner(), books={"0xw": {"data": {"outcomeOne": []}}}, reader=reader)
    assert read(reader=reader).removed == ["0xw/1", "0xw/2"]


def test_pages_have_a_key() -> None:
    assert next_key(encoded(page(key="abc"))) == "abc"
    assert next_key(encoded(page())) == ""
    other = page()
    other["data"]["paginationKey"] = "def"
    assert next_key(encoded(other)) == "def"


# ---- payloads made from the contract ----


def test_our_exchange_answers_as_the_contract_says() -> None:
    given = {
        "sports": sports_list(),
        "leagues": league_list(),
        "markets": page(winner(), key="a"),
        "book": book([], []),
    }
    for name, document in given.items():
        assert CONTRACT.unknown(name, document) == []


def test_a_value_that_is_unheard_of_costs_its_market_and_is_counted() -> None:
    changes = list(unheard_of(CONTRACT, "markets", page(winner(), winner("0x2"))))
    assert [place for place, _ in changes] == ["data.markets[0].status", "data.markets[1].status"]
    for _, changed in changes:
        found = read_markets([encoded(changed)], LEAGUES, NOW)
        assert len(found.markets) == 1
        assert found.refused == {"a market whose status is not known": 1}


@given(
    payloads(CONTRACT, "markets") | mutated(CONTRACT, "markets", page(winner())),
    payloads(CONTRACT, "book") | mutated(CONTRACT, "book", book([(0.5, 5.0)], [(0.48, 3.0)])),
)
def test_whatever_comes_is_read_or_refused(listed: Any, orders: Any) -> None:
    try:
        found = read_markets([encoded(listed)], LEAGUES, NOW)
        given_ = {one.hash: Received(encoded(orders), SEEN) for one in found.markets}
        rows = SxBetMarkets().read("nfl", found, given_).quotes
    except FeedError:
        return
    assert all(row["odds_decimal"] > 1.0 for row in rows)
