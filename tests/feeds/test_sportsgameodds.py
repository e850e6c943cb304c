"""SportsGameOdds' odds: a line per book, numbers as texts, and sides that cover several outcomes."""

from datetime import timedelta
from typing import Any

import pytest
from feeds.test_samples import encoded
from hypothesis import given
from support.contract_payloads import UNHEARD_OF, lost_rows, mutated
from support.sportsgameodds import START, event, odd, page, price

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.sportsgameodds import SportsGameOdds, next_cursor
from oddsengine.feeds.turns import Received
from oddsengine.feeds.venue_contracts import load

NOW = START - timedelta(hours=2)
CONTRACT = load("sportsgameodds")


def read(*events: Any, reader: SportsGameOdds | None = None) -> Payload:
    return (reader or SportsGameOdds()).read("NFL", [Received(encoded(page(*events)), NOW)])


def meant(payload: Payload) -> list[tuple[Any, ...]]:
    names = ("sportsbook", "market_type", "selection_type", "line", "odds_american")
    return [tuple(row[name] for name in names) for row in payload.quotes]


def soccer(*given: Any) -> Any:
    return event(*given, sportID="SOCCER", leagueID="EPL")


def test_every_book_has_its_own_line() -> None:
    payload = read(event())
    assert meant(payload) == [
        ("draftkings", "moneyline", "home", None, -112.0), ("fanduel", "moneyline", "home", None, -110.0),
        ("draftkings", "moneyline", "away", None, 105.0), ("fanduel", "moneyline", "away", None, 102.0),
        ("draftkings", "point_spread", "home", -1.5, -108.0), ("fanduel", "point_spread", "home", -2.5, -115.0),
        ("draftkings", "point_spread", "away", 1.5, -112.0), ("fanduel", "point_spread", "away", 2.5, -105.0),
        ("draftkings", "total_points", "over", 44.5, -110.0), ("draftkings", "total_points", "under", 44.5, -110.0),
    ]  # fmt: skip
    assert [row["is_active"] for row in payload.quotes] == [True] * 3 + [False] + [True] * 6
    (game,) = payload.games
    assert game[:6] == ("ev1", "football", "nfl", "Seattle Seahawks", "Dallas Cowboys", START)
    assert not payload.refused
    assert not payload.unmapped
    assert payload.quotes[0]["last_seen_at"] == NOW


def test_a_result_of_three_is_that_of_regular_time() -> None:
    given = [
        odd(f"points-{side}-reg-ml3way-{side}", bet365=price("+150")) for side in ("home", "away", "not_draw")
    ]  # fmt: skip
    given[2]["statEntityID"] = "all"
    given.append(odd("points-all-reg-ml3way-draw", bet365=price("+230")))
    payload = read(soccer(*given))
    assert [row[1:3] for row in meant(payload)] == [
        ("moneyline_3way", "home"), ("moneyline_3way", "away"), ("moneyline_3way", "draw"),
    ]  # fmt: skip
    assert payload.refused == {"a side that covers several outcomes": 1}
    assert payload.games[0].league == "england_premier_league"


@pytest.mark.parametrize(
    ("name", "sport", "wanted"),
    [
        ("points-home-reg-ml-home", "FOOTBALL", "points reg ml"),
        ("points-home-game-ml-home", "SOCCER", "points game ml"),
        ("points-all-reg-ou-over", "SOCCER", "total_points"),
        ("points-home-reg-ml3way-home", "HOCKEY", "moneyline_regulation"),
        ("points-home-reg-ml3way-home", "BASKETBALL", "points reg ml3way"),
        ("points-home-1h-ml-home", "FOOTBALL", "1st_half_moneyline"),
        ("points-all-1q-ou-over", "BASKETBALL", "1st_quarter_total_points"),
        ("points-home-1ix5-sp-home", "BASEBALL", "1st_5_innings_point_spread"),
        ("points-home-game-ou-over", "FOOTBALL", "team_total"),
        ("points-all-game-eo-even", "FOOTBALL", "points game eo"),
        ("corners-all-reg-ou-over", "SOCCER", "corners reg ou"),
        ("passing_yards-DAK_PRESCOTT_1_NFL-game-ou-over", "FOOTBALL", "player_passing_yards"),
        ("touchdowns-DAK_PRESCOTT_1_NFL-game-yn-yes", "FOOTBALL", "anytime_touchdown"),
        ("points-DAK_PRESCOTT_1_NFL-game-ou-over", "HOCKEY", "points game ou"),
        ("passing_yards-DAK_PRESCOTT_1_NFL-1h-ou-over", "FOOTBALL", "passing_yards 1h ou"),
    ],
)
def test_odds_are_markets_of_the_same_meaning_or_keep_a_name(name: str, sport: str, wanted: str) -> None:
    payload = read(event(odd(name, draftkings=price("-110", spread="-1.5", overUnder="20.5")), sportID=sport))
    assert [row["market_type"] for row in payload.quotes] == [wanted]
    assert dict(payload.unmapped) == ({("draftkings", wanted): 1} if " " in wanted else {})


def test_teams_and_players() -> None:
    team, player = read(
        event(
            odd("points-home-game-ou-over", draftkings=price("-110", overUnder="20.5")),
            odd("passing_yards-DAK_PRESCOTT_1_NFL-game-ou-under", draftkings=price("-110", overUnder="250.5")),
        )
    ).quotes
    assert (team["team_side"], team["selection"]) == ("home", "Seattle Seahawks Over")
    assert (player["player_name"], player["selection"], player["line"]) == ("Dak Prescott", "Under", 250.5)
    nobody = read(event(odd("passing_yards-SOMEBODY-game-ou-under", draftkings=price("-110", overUnder="1.5"))))
    assert nobody.refused == {"a prop whose player is not known": 1}


def test_alternate_lines() -> None:
    lines = [
        {"odds": "+150", "spread": "-7.5", "available": True},
        {"odds": "-108", "spread": "-1.5"},
        {"odds": "-110"},
    ]
    given = event(odd("points-home-game-sp-home", draftkings=price("-108", spread="-1.5", altLines=lines)))
    payload = read(given)
    assert [(row["line"], row["is_alternate_line"]) for row in payload.quotes] == [(-1.5, False), (-7.5, True)]
    assert payload.refused == {"a price without its line": 1}
    side = event(odd("points-home-game-sp-home", draftkings=price("-108", spread="-1.5", isMainLine=False)))
    assert [row["is_alternate_line"] for row in read(side).quotes] == [True]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (price("-50"), "an invalid price"), (price("x"), "an invalid price"), (price("NaN"), "an invalid price"),
        ({"available": True}, "an invalid price"), (5, "a price that is not valid"),
    ],
)  # fmt: skip
def test_a_price_that_is_none_costs_only_itself(given: Any, reason: str) -> None:
    payload = read(event(odd("points-home-game-ml-home", draftkings=given, fanduel=price("-110"))))
    assert [row["sportsbook"] for row in payload.quotes] == ["fanduel"]
    assert payload.refused == {reason: 1}


def test_a_line_that_a_book_leaves_is_removed() -> None:
    reader = SportsGameOdds()
    for spread, gone in (("-1.5", 0), ("-2.5", 1)):
        payload = read(event(odd("points-home-game-sp-home", draftkings=price("-108", spread=spread))), reader=reader)
        assert [row["line"] for row in payload.quotes] == [float(spread)]
        assert len(payload.removed) == gone


def test_a_handicap_without_a_line_is_left_out() -> None:
    payload = read(event(odd("points-home-game-sp-home", draftkings=price("-110"))))
    assert payload.refused == {"a price without its line": 1}


@pytest.mark.parametrize("flag", ["ended", "finalized", "cancelled"])
def test_a_game_that_is_over_has_no_prices(flag: str) -> None:
    reader = SportsGameOdds()
    read(event(), reader=reader)
    given = event()
    given["status"][flag] = True
    payload = read(given, reader=reader)
    assert (len(payload.quotes), len(payload.removed)) == (0, 10)
    assert payload.games[0].status == ("cancelled" if flag == "cancelled" else "ended")


def test_prices_in_play_are_live_and_completed_says_nothing() -> None:
    given = event()
    given["status"] |= {"live": True, "completed": True}
    assert {row["is_live"] for row in read(given).quotes} == {True}


def test_parts_that_are_not_valid_cost_only_themselves() -> None:
    given = event()
    given["odds"]["x"] = {"statID": 5}
    payload = read(given, {"eventID": 5}, event(ident="ev2", teams={}))
    assert len(payload.quotes) == 10
    assert payload.refused == {
        "an odd that is not valid": 1, "an event that is not valid": 1, "an event that is not a game of two": 1,
    }  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"[]", b'{"success": false, "error": "x"}', b'{"data": [5]}'])
def test_what_is_no_page_is_said(body: bytes) -> None:
    reader = SportsGameOdds()
    read(event(), reader=reader)
    with pytest.raises(FeedError, match="not a payload of SportsGameOdds"):
        reader.read("NFL", [Received(body, NOW)])
    assert len(read(reader=reader).removed) == 10


def test_pages_have_a_cursor() -> None:
    assert next_cursor(encoded(page(cursor="abc"))) == "abc"
    assert next_cursor(encoded(page())) == ""


@pytest.mark.parametrize("field", ["ended", "cancelled"])
def test_an_odd_that_ended_has_no_price_though_a_book_says_it_is_available(field: str) -> None:
    first, second = (odd(f"points-{side}-game-ml-{side}", draftkings=price("-112")) for side in ("home", "away"))
    payload = read(event(first | {field: True, "started": True}, second | {"started": True, "ended": None}))
    assert [row["selection_type"] for row in payload.quotes] == ["away"]
    assert not payload.refused


# ---- payloads made from the contract ----


def test_our_aggregator_answers_as_the_contract_says() -> None:
    assert CONTRACT.unknown("events", page(event(), cursor="2")) == []


def test_a_side_or_a_bet_that_is_unheard_of_costs_its_odd_and_is_counted() -> None:
    touchdown = odd("touchdowns-DAK_PRESCOTT_1_NFL-game-yn-yes", draftkings=price("+150"))
    document = page(event(odd("points-home-game-ml-home", draftkings=price("-112")), touchdown))
    places = lost_rows(CONTRACT, "events", document, lambda changed: read(*changed["data"]))
    assert [(place.rsplit(".", 1)[1], len(lost)) for place, lost, _ in places] == [
        ("betTypeID", 1), ("sideID", 1), ("betTypeID", 1), ("sideID", 1),
    ]  # fmt: skip


@given(mutated(CONTRACT, "events", page(event(), event(ident="ev2")), ("data", 0)))
def test_whatever_comes_of_an_event_the_other_is_read(body: Any) -> None:
    rows = SportsGameOdds().read("NFL", [Received(encoded(body), NOW)]).quotes
    assert [row for row in rows if row["event_id"] == "ev2"] == read(event(ident="ev2")).quotes
    assert all(abs(row["odds_american"]) >= 100.0 for row in rows)
    assert UNHEARD_OF not in {row["selection_type"] for row in rows}
