"""Odds-API.io's markets: free names, prices as texts, and the line of the home side."""

from datetime import timedelta
from typing import Any

import pytest
from feeds.test_samples import encoded
from hypothesis import given
from support.contract_payloads import UNHEARD_OF, lost_rows, mutated
from support.odds_api_io import START, event, listed, market

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.odds_api_io import OddsApiIo, read_events
from oddsengine.feeds.turns import Received
from oddsengine.feeds.venue_contracts import load

NOW = START - timedelta(hours=2)
CONTRACT = load("odds_api_io")


def read(*events: Any, reader: OddsApiIo | None = None, part: str = "basketball/usa-nba") -> Payload:
    return (reader or OddsApiIo()).read(part, [Received(encoded(list(events)), NOW)])


def meant(payload: Payload) -> list[tuple[Any, ...]]:
    names = ("market_type", "selection_type", "line", "odds_decimal")
    return [tuple(row[name] for name in names) for row in payload.quotes]


def test_prices_are_texts_and_the_line_is_that_of_home() -> None:
    payload = read(event())
    assert meant(payload) == [
        ("moneyline", "home", None, 1.8), ("moneyline", "away", None, 2.1),
        ("point_spread", "home", -2.5, 1.91), ("point_spread", "away", 2.5, 1.95),
        ("point_spread", "home", -3.5, 2.05), ("point_spread", "away", 3.5, 1.8),
        ("total_points", "over", 220.5, 1.9), ("total_points", "under", 220.5, 1.9),
    ]  # fmt: skip
    assert {row["sportsbook"] for row in payload.quotes} == {"bet365"}
    (game,) = payload.games
    assert game[:6] == ("1", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers", START)
    assert not payload.refused
    assert not payload.unmapped


@pytest.mark.parametrize(
    ("name", "entry", "part", "wanted"),
    [
        ("ML", {"home": 2, "draw": 3, "away": 4}, "football", "moneyline_3way"),
        ("ML", {"home": 2, "away": 4}, "football", "ML"),
        ("ML", {"home": 2, "draw": 3, "away": 4}, "ice-hockey", "moneyline_regulation"),
        ("ML", {"home": 2, "draw": 9, "away": 4}, "basketball", "ML"),
        ("ML HT", {"home": 2, "draw": 3, "away": 4}, "football", "1st_half_moneyline_3way"),
        ("Totals", {"hdp": 2.5, "over": 2, "under": 2}, "football", "total_goals"),
        ("Totals HT", {"hdp": 1.5, "over": 2, "under": 2}, "football", "1st_half_total_goals"),
        ("Spread HT", {"hdp": -1.5, "home": 2, "away": 2}, "basketball", "1st_half_point_spread"),
        ("Asian Handicap", {"hdp": -0.25, "home": 2, "away": 2}, "football", "asian_handicap"),
        ("Draw No Bet", {"home": 2, "away": 2}, "football", "draw_no_bet"),
        ("Both Teams To Score", {"yes": 2, "no": 2}, "football", "both_teams_to_score"),
        ("Team Total Home", {"hdp": 1.5, "over": 2, "under": 2}, "football", "home_team_total"),
        ("Corners Totals", {"hdp": 9.5, "over": 2, "under": 2}, "football", "Corners Totals"),
    ],
)  # fmt: skip
def test_names_of_markets(name: str, entry: Any, part: str, wanted: str) -> None:
    payload = read(event({"Bet365": [market(name, entry)]}), part=part)
    assert {row["market_type"] for row in payload.quotes} == {wanted}
    assert len(payload.quotes) == len(entry) - ("hdp" in entry)
    assert bool(payload.unmapped) == (wanted == name)


@pytest.mark.parametrize(
    ("name", "entry", "reason"),
    [
        ("ML", {"home": "1.0", "away": 2}, "an invalid price"), ("ML", {"home": "x", "away": 2}, "an invalid price"),
        ("ML", {"home": [2], "away": 2}, "an invalid price"), ("Spread", {"home": 2}, "a price without its line"),
        ("Totals", {"over": 2}, "a price without its line"),
        ("Totals", {"hdp": 2.5, "label": "Somebody", "over": 2}, "a price with a label in a market of games"),
    ],
)  # fmt: skip
def test_prices_that_are_not_clear_are_left_out(name: str, entry: Any, reason: str) -> None:
    payload = read(event({"Bet365": [market(name, entry)]}))
    assert len(payload.quotes) == ("away" in entry)
    assert payload.refused == {reason: 1}


def test_props_keep_their_name_and_label() -> None:
    entry = {"hdp": 20.5, "label": "A. Guard (Points)", "over": 1.9}
    payload = read(event({"Bet365": [market("Guard Specials", entry)]}))
    (row,) = payload.quotes
    assert (row["market_type"], row["selection"], row["line"]) == ("Guard Specials", "A. Guard (Points) Over", 20.5)
    assert payload.unmapped == {("bet365", "Guard Specials"): 1}


def test_events_that_are_over_or_far_are_not_asked_for() -> None:
    given = [
        listed(1), listed(2, status="settled"), listed(3, NOW + timedelta(days=3)), listed(4, status="live"),
        listed(5, status="Cancelled"),
    ]  # fmt: skip
    assert read_events(encoded(given), NOW, within=172_800.0) == ["1", "4"]


def test_a_game_that_is_over_has_no_prices_and_what_is_gone_is_removed() -> None:
    reader = OddsApiIo()
    assert len(read(event(), reader=reader).quotes) == 8
    less = event({"Bet365": [market("ML", {"home": 1.8, "away": 2.1})]})
    assert len(read(less, reader=reader).removed) == 6
    over = read(event(status="finished"), reader=reader)
    assert (len(over.quotes), len(over.removed), over.games[0].status) == (0, 2, "ended")


def test_live_prices() -> None:
    assert {row["is_live"] for row in read(event(status="live")).quotes} == {True}
    assert {row["is_live"] for row in read(event(start=NOW)).quotes} == {True}


def test_parts_that_are_not_valid_cost_only_themselves() -> None:
    given = event({"Bet365": [market("ML", {"home": 1.8, "away": 2.1}), {"name": 5}], "Stake": []})
    payload = read(given, {"id": None}, event(id=2, home=""))
    assert len(payload.quotes) == 2
    assert payload.refused == {
        "a market that is not valid": 1, "an event that is not valid": 1, "an event that is not a game of two": 1,
    }  # fmt: skip


NO_MARKETS = b'[{"id": 1, "home": "A", "away": "B", "bookmakers": {"x": 5}}]'


@pytest.mark.parametrize("body", [b"", b"{}", b"[5]", b'{"error": "x"}', NO_MARKETS])
def test_what_is_no_list_is_said(body: bytes) -> None:
    reader = OddsApiIo()
    read(event(), reader=reader)
    with pytest.raises(FeedError, match=r"not a payload of Odds-API\.io"):
        reader.read("basketball", [Received(body, NOW)])
    assert len(read(reader=reader).removed) == 8


@pytest.mark.parametrize("status", ["awaiting_result", "settled", "cancelled"])
def test_an_event_that_is_over_is_not_asked_for_and_has_no_price(status: str) -> None:
    assert read_events(encoded([listed(status=status)]), NOW) == []
    assert not read(event(status=status)).quotes


def test_a_side_that_the_winner_market_has_as_the_underdog_gets_the_points() -> None:
    """As in a public answer of 2026-03-06: home wins at 2.50, and at 1.44 with 1.5 points, which is `hdp`."""
    winner, spread = {"home": "2.50", "away": "1.50"}, {"hdp": 1.5, "home": "1.44", "away": "2.62"}
    rows = read(event({"Bet365": [market("ML", winner), market("Spread", spread)]})).quotes
    assert [(row["selection_type"], row["line"], row["odds_decimal"]) for row in rows[2:]] == [
        ("home", 1.5, 1.44), ("away", -1.5, 2.62),
    ]  # fmt: skip


# ---- payloads made from the contract ----


def test_our_aggregator_answers_as_the_contract_says() -> None:
    assert CONTRACT.unknown("odds", [event()]) == []
    assert CONTRACT.unknown("events", [listed()]) == []


def test_a_status_that_is_unheard_of_costs_the_prices_of_its_event_and_is_counted() -> None:
    places = lost_rows(CONTRACT, "odds", [event(), event(ident=2)], lambda changed: read(*changed))
    found = [(place, {row["event_id"] for row in lost}) for place, lost, _ in places]
    assert found == [("[0].status", {"1"}), ("[1].status", {"2"})]
    assert read_events(encoded([listed(status=UNHEARD_OF)]), NOW) == ["1"], "so that it is counted"


@given(mutated(CONTRACT, "odds", [event(), event(ident=99)], (0,)))
def test_whatever_comes_of_an_event_the_other_is_read(body: Any) -> None:
    rows = read(*body).quotes
    assert [row for row in rows if row["event_id"] == "99"] == read(event(ident=99)).quotes
    assert all(row["odds_decimal"] > 1.0 for row in rows)
