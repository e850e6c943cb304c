"""Matchbook's pages: levels of both sides in any order, with the backer's stake."""

from datetime import timedelta
from typing import Any

import pytest
from feeds.test_samples import encoded
from hypothesis import given
from support.contract_payloads import mutated, payloads, unheard_of
from support.matchbook import RESULT, START, TOTAL, event, market, page, runner, sports_list

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.matchbook import MatchbookPrices, next_offset, read_sports
from oddsengine.feeds.turns import Received
from oddsengine.feeds.venue_contracts import load

NOW = START - timedelta(hours=2)
SEEN = NOW - timedelta(seconds=1)
SPORTS = read_sports(encoded(sports_list()))

CONTRACT = load("matchbook")


def read(*events: Any, reader: MatchbookPrices | None = None, only: str = "") -> Payload:
    return (reader or MatchbookPrices()).read("x", [Received(encoded(page(*events)), SEEN)], SPORTS, NOW, only)


def meant(payload: Payload) -> list[tuple[Any, ...]]:
    names = ("market_type", "selection", "selection_type", "line")
    return [tuple(row[name] for name in names) for row in payload.quotes]


def test_back_prices_are_sorted_here() -> None:
    lay, home, _, draw, away = read(event(RESULT)).quotes
    assert (lay["id"], lay["market_type"], lay["selection_type"], lay["line"]) == (
        "500/11/lay",
        "asian_handicap",
        "away",
        0.5,
    )
    assert (lay["odds_decimal"], lay["max_bet"]) == pytest.approx((2.24 / 1.24, 37.2))
    assert (home["odds_decimal"], home["max_bet"]) == (2.2, 100.0)
    assert home["levels"] == [{"odds_decimal": 2.2, "stake": 100.0}, {"odds_decimal": 2.18, "stake": 50.0}]
    assert (draw["selection_type"], draw["odds_decimal"], away["selection_type"]) == ("draw", 3.4, "away")
    assert (home["volume"], home["is_active"], home["last_seen_at"]) == (1234.5, True, SEEN)


def test_to_lay_one_of_two_is_to_back_the_other() -> None:
    """Over laid at 1.92 for a backer's 100 is under at 1.92 / 0.92 for 92."""
    over, under = read(event(TOTAL)).quotes
    assert (over["odds_decimal"], over["max_bet"]) == pytest.approx((2.06 / 1.06, 10.6))
    assert (under["odds_decimal"], under["max_bet"]) == pytest.approx((1.92 / 0.92, 92.0))
    assert "levels" not in under


def test_a_lay_of_a_draw_is_that_it_is_none() -> None:
    lone = market("one_x_two", runner(11, "Fulham"), runner(12, "Draw", (), ((3.6, 10.0),)), runner(13, "Chelsea"))
    payload = read(event(lone))
    assert meant(payload) == [("draw", "No", "no", None)]
    assert [(row["odds_decimal"], row["max_bet"]) for row in payload.quotes] == [pytest.approx((3.6 / 2.6, 26.0))]


def test_win_and_lose_are_back_and_lay() -> None:
    binary = market("money_line", runner(1, "Fulham", ((1.9, 5.0),)), runner(2, "Chelsea", (), ((1.5, 8.0),)))
    for one in binary["runners"]:
        for level in one["prices"]:
            level["side"] = {"back": "win", "lay": "lose"}[level["side"]]
    (home,) = read(event(binary)).quotes
    assert (home["odds_decimal"], home["max_bet"]) == pytest.approx((3.0, 4.0))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (TOTAL, [("total_goals", "Over", "over", 2.5), ("total_goals", "Under", "under", 2.5)]),
        (
            market("handicap", runner(1, "Fulham -0.5", ((1.9, 5.0),)), runner(2, "Chelsea +0.5", ((1.9, 5.0),)),
                   name="Asian Handicap"),
            [("asian_handicap", "Fulham", "home", -0.5), ("asian_handicap", "Chelsea", "away", 0.5)],
        ),
        (
            market("handicap", runner(1, "Fulham", ((1.9, 5.0),), handicap=-0.5),
                   runner(2, "Chelsea", ((1.9, 5.0),), handicap="0.5"), name="Handicap"),
            [("asian_handicap", "Fulham", "home", -0.5), ("asian_handicap", "Chelsea", "away", 0.5)],
        ),
        (
            market("both_to_score", runner(1, "Yes", ((1.9, 5.0),)), runner(2, "No", ((1.9, 5.0),)), name="BTTS"),
            [("both_teams_to_score", "Yes", "yes", None), ("both_teams_to_score", "No", "no", None)],
        ),
        (
            market("total", runner(1, "OVER", ((1.9, 5.0),)), runner(2, "UNDER", ((1.9, 5.0),)), name="Total",
                   handicap=3.5),
            [("total_goals", "Over", "over", 3.5), ("total_goals", "Under", "under", 3.5)],
        ),
    ],
)  # fmt: skip
def test_markets(given: Any, wanted: list[Any]) -> None:
    assert meant(read(event(given))) == wanted


@pytest.mark.parametrize(
    "one",
    [
        runner(1, "OVER 2.5", ((1.9, 5.0),), handicap=3.5), runner(1, "OVER", ((1.9, 5.0),)),
        runner(1, "Fulham 2.5", ((1.9, 5.0),)),
    ],
)  # fmt: skip
def test_runners_that_are_not_clear_are_left_out(one: Any) -> None:
    payload = read(event(market("total", one, name="Total")))
    assert not payload.quotes
    assert payload.refused == {"a runner that is not understood": 1}


@pytest.mark.parametrize(
    ("kind", "name"), [("total", "Total Corners"), ("one_x_two", "Half Time Result"), ("correct_score", "Score")]
)
def test_markets_about_something_else_keep_their_name(kind: str, name: str) -> None:
    payload = read(event(market(kind, runner(1, "Fulham", ((2.0, 1.0),)), name=name)))
    assert [row["market_type"] for row in payload.quotes] == [name]
    assert payload.unmapped == {("matchbook", name): 1}


@pytest.mark.parametrize(
    ("sport", "name", "is_game"),
    [
        (1, "Colston Loveland - Total Receiving Yards", False), (1, "Saquon Barkley - Total", False),
        (1, "Receptions", False), (1, "Winning Margin", False), (1, "Total Points - Chicago", False), (1, "", False),
        (1, "Total Goals", False), (9, "Total", False),
        (1, "Total", True), (1, "Total Points", True), (1, "Total 32.5", True), (4, "Over/Under 32.5", True),
        (15, "Total Goals", True), (15, "Total Points", False),
    ],
)  # fmt: skip
def test_a_total_is_one_of_the_game_only_by_a_known_name(sport: int, name: str, is_game: bool) -> None:
    """What a player does has the type of a total, too."""
    both = runner(1, "OVER 32.5", ((1.9, 5.0),), handicap=32.5), runner(2, "UNDER 32.5", ((1.9, 5.0),), handicap=32.5)
    payload = read(event(market("total", *both, name=name), name="Eagles vs Bears", sport=sport))
    kinds = {row["market_type"] for row in payload.quotes}
    assert ((kinds <= {"total_points", "total_goals"}) and not payload.unmapped) is is_game
    if not is_game:
        assert kinds == {name or "total"}
        assert payload.unmapped


@pytest.mark.parametrize("where", ["event", "market", "runner"])
def test_a_suspended_price_is_one(where: str) -> None:
    paused: dict[str, Any] = {"status": "suspended"}
    one = runner(1, "Fulham", ((1.9, 5.0),), **(paused if where == "runner" else {}))
    given = market("money_line", one, runner(2, "Chelsea", ((1.9, 5.0),)), **(paused if where == "market" else {}))
    home = read(event(given) | (paused if where == "event" else {})).quotes[0]
    assert (home["odds_decimal"], home["is_active"]) == (1.9, False)


def test_games() -> None:
    american = event(ident=2, name="Dallas Cowboys @ Seattle Seahawks", sport=1, competition="NFL")
    live = event(ident=4) | {"in-running-flag": True}
    given = [event(), american, event(ident=3, name="Premier League Winner"), live]
    payload = read(*given)
    assert [(game.id, game.sport, game.league, game.home, game.status) for game in payload.games] == [
        ("100", "soccer", "england_premier_league", "Fulham", "upcoming"),
        ("2", "football", "nfl", "Seattle Seahawks", "upcoming"),
        ("4", "soccer", "england_premier_league", "Fulham", "live"),
    ]  # fmt: skip
    assert [game.id for game in read(*given, only="nfl").games] == ["2"]


def test_what_is_no_longer_offered_is_removed() -> None:
    reader = MatchbookPrices()
    read(event(RESULT), reader=reader)
    less = market("one_x_two", runner(11, "Fulham", ((2.2, 1.0),)), runner(12, "Draw"), runner(13, "Chelsea"))
    assert read(event(less), reader=reader).removed == ["500/11/lay", "500/12", "500/12/lay", "500/13"]
    assert read(reader=reader).removed == ["500/11"]


@pytest.mark.parametrize(("odds", "amount"), [(1.0, 5.0), (0.5, 5.0), (2.0, -1.0), (None, 5.0)])
def test_a_level_that_is_not_valid_costs_only_itself(odds: Any, amount: float) -> None:
    given = market("money_line", runner(1, "Fulham", ((1.9, 5.0),)))
    given["runners"][0]["prices"].append({"side": "back", "odds": odds, "available-amount": amount})
    payload = read(event(given))
    assert [("levels" in row, row["max_bet"]) for row in payload.quotes] == [(False, 5.0)]
    assert payload.refused == {"a level of an order book that is not valid": 1}


def test_a_part_that_is_not_valid_costs_only_itself() -> None:
    payload = read(event(RESULT, market("total", {"id": 1})), event(ident=[1]))
    assert len(payload.quotes) == 5
    assert payload.refused == {"an event that is not valid": 1, "a runner that is not valid": 1}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"events": null}', b'{"events": [5]}'])
def test_what_is_no_page_is_said(body: bytes) -> None:
    reader = MatchbookPrices()
    read(event(RESULT), reader=reader)
    with pytest.raises(FeedError, match="not a payload of Matchbook"):
        reader.read("x", [Received(body, SEEN)], SPORTS, NOW)
    assert len(read(reader=reader).removed) == 5


def test_pages_have_an_offset() -> None:
    assert next_offset(encoded(page(event(), offset=20, total=30))) == 21
    assert next_offset(encoded(page(event(), offset=29, total=30))) == 0
    assert next_offset(encoded(page(offset=20, total=30))) == 0
    with pytest.raises(FeedError, match="no list of events"):
        next_offset(b'{"total": 5}')


# ---- payloads made from the contract ----


def test_our_exchange_answers_as_the_contract_says() -> None:
    assert CONTRACT.unknown("sports", sports_list()) == []
    assert CONTRACT.unknown("events", page(event())) == []


def test_a_value_that_is_unheard_of_costs_its_row_and_is_counted() -> None:
    document = page(event(RESULT, TOTAL))
    before = {row["id"] for row in read_page(document).quotes}
    places = set()
    for place, changed in unheard_of(CONTRACT, "events", document):
        places.add(place.rpartition(".")[2])
        payload = read_page(changed)
        assert sum(payload.refused.values()) == 1, place
        if not place.endswith(".side"):  # of a level that may not count
            assert payload.quotes != read_page(document).quotes, place
        assert {row["id"] for row in payload.quotes} <= before, place
        assert all(row["is_active"] for row in payload.quotes), place
    assert places == {"status", "side"}


def read_page(document: Any) -> Payload:
    return MatchbookPrices().read("x", [Received(encoded(document), SEEN)], SPORTS, NOW)


@given(payloads(CONTRACT, "events") | mutated(CONTRACT, "events", page(event(RESULT, TOTAL))))
def test_whatever_comes_is_read_or_refused(document: Any) -> None:
    try:
        rows = read_page(document).quotes
    except FeedError:
        return
    assert all(row["odds_decimal"] > 1.0 for row in rows)
