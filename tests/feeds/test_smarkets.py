"""Smarkets' events, contracts and quotes: offers are backed, bids laid, and quantities are payouts."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from feeds.test_samples import encoded
from hypothesis import given
from hypothesis import strategies as st
from support.contract_payloads import UNHEARD_OF, lost_rows, mutated
from support.smarkets import OVER_UNDER, RESULT, START, Smarkets, contract, event, market, quotes

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.smarkets import SmarketsPrices, next_page, read_events, read_markets
from oddsengine.feeds.turns import Received
from oddsengine.feeds.venue_contracts import load
from oddsengine.sources.source_settings import SmarketsSettings

NOW = START - timedelta(hours=2)
SEEN = NOW - timedelta(seconds=1)
CONTRACT = load("smarkets")
KINDS = SmarketsSettings(name="s", kind="smarkets", sports=("soccer",)).markets


def read(
    markets: list[Any], contracts: list[Any], books: dict[str, Any], *events: Any,
    reader: SmarketsPrices | None = None, kinds: tuple[str, ...] = KINDS,
) -> Payload:  # fmt: skip
    listed = read_events([encoded({"events": list(events) or [event()]})], NOW)
    own = read_markets([encoded({"markets": markets})], listed, kinds)
    given = [encoded({"contracts": contracts})]
    reader = reader or SmarketsPrices()
    priced = reader.read("x", listed.games, own, given, [Received(encoded(books), SEEN)])
    return priced._replace(refused=priced.refused + reader.end("x", listed).refused)


def total(over: Any, under: Any) -> Payload:
    return read([market("m2", "OVER_UNDER", "2.5")], OVER_UNDER, {"c4": over, "c5": under})


def meant(payload: Payload) -> list[tuple[Any, ...]]:
    names = ("market_type", "selection", "selection_type", "line")
    return [tuple(row[name] for name in names) for row in payload.quotes]


def test_an_offer_is_what_can_be_backed() -> None:
    """2041 is 20.41 %: 4.90. A payout of 100 costs 20.41."""
    (row,) = read([market()], RESULT, {"c1": quotes([(2041, 100.0)])}).quotes
    assert round(row["odds_decimal"], 2) == 4.9
    assert row["max_bet"] == pytest.approx(20.41)
    assert (row["market_type"], row["selection"], row["selection_type"]) == ("moneyline_3way", "Fulham", "home")
    assert row["last_seen_at"] == SEEN


def test_levels_come_in_any_order() -> None:
    levels = [(4700, 10.0), (4500, 100.0), (4600, 20.0)]
    for ordered in (levels, levels[::-1]):
        (row,) = read([market()], RESULT, {"c1": quotes(ordered)}).quotes
        assert [round(10_000 / level["odds_decimal"]) for level in row["levels"]] == [4500, 4600, 4700]
        assert [round(level["stake"], 2) for level in row["levels"]] == [45.0, 9.2, 4.7]


def test_to_lay_one_of_two_is_to_back_the_other() -> None:
    """A bid of 0.50 for over, paying 30, is laid for 15: under at 2.0, better than its own offer at 0.51."""
    over, under = total(quotes([(5200, 100.0)], [(5000, 30.0)]), quotes([(5100, 40.0)], [(4700, 10.0)])).quotes
    assert (over["selection_type"], round(over["odds_decimal"], 4), over["max_bet"]) == ("over", 1.9231, 52.0)
    assert (under["odds_decimal"], under["max_bet"]) == (2.0, 15.0)
    assert "levels" not in under, "the same orders may be shown twice, so they are not added"


def test_a_lay_alone_is_a_price() -> None:
    (over,) = total(quotes([]), quotes([], [(4000, 10.0)])).quotes
    assert (over["selection_type"], round(over["odds_decimal"], 4)) == ("over", 1.6667)
    assert over["max_bet"] == pytest.approx(6.0)


def test_a_lay_of_a_side_of_three_is_the_other_one_with_half_a_goal() -> None:
    """A bid of 0.43 for Fulham, paying 50, is laid for 28.50."""
    books = {"c1": quotes([], [(4300, 50.0)]), "c2": quotes([], [(2500, 9.0)]), "c3": quotes([])}
    payload = read([market()], RESULT, books)
    assert meant(payload) == [("asian_handicap", "Chelsea", "away", 0.5), ("draw", "No", "no", None)]
    row, none = payload.quotes
    assert (none["odds_decimal"], none["max_bet"]) == pytest.approx((1 / 0.75, 0.75 * 9.0))
    assert (row["id"], row["odds_decimal"], row["max_bet"]) == ("c1/lay", pytest.approx(1 / 0.57), pytest.approx(28.5))


def test_lines_and_teams() -> None:
    spread = market("m3", "ASIAN_HANDICAP", name="Asian Handicap Fulham -0.5 / Chelsea +0.5")
    named = [contract("c6", "Fulham -0.5", "HOME", "m3"), contract("c7", "Chelsea +0.5", "AWAY", "m3")]
    bare = [contract("c6", "Fulham", "HOME", "m3"), contract("c7", "Chelsea", "AWAY", "m3")]
    books = {"c6": quotes([(5200, 1.0)]), "c7": quotes([(5100, 1.0)])}
    wanted = [("asian_handicap", "Fulham", "home", -0.5), ("asian_handicap", "Chelsea", "away", 0.5)]
    for contracts in (named, bare):
        assert meant(read([spread], contracts, books)) == wanted
    assert meant(total(quotes([(5200, 1.0)]), quotes([(5100, 1.0)]))) == [
        ("total_goals", "Over", "over", 2.5), ("total_goals", "Under", "under", 2.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("of", "contracts"),
    [
        (market("m2", "OVER_UNDER", "3.5"), OVER_UNDER),
        (market("m2", "OVER_UNDER"), [contract("c4", "Over", "OVER", "m2"), contract("c5", "Under", "UNDER", "m2")]),
        (market("m2", "OVER_UNDER", "2.5"), [contract("c4", "Many", None, "m2")]),
        (market("m2", "ASIAN_HANDICAP"), [contract("c4", "Fulham", "HOME", "m2")]),
        (market("m2", "ASIAN_HANDICAP"), [contract("c4", "Arsenal -0.5", None, "m2")]),
        (market("m2"), [contract("c4", "Arsenal", None, "m2")]),
    ],
)
def test_contracts_that_are_not_clear_are_left_out(of: Any, contracts: Any) -> None:
    payload = read([of], contracts, {"c4": quotes([(5000, 1.0)]), "c5": quotes([(5000, 1.0)])})
    assert not payload.quotes
    assert payload.refused == {"a contract that is not understood": len(contracts)}


def test_names_of_contracts_count_where_types_are_missing() -> None:
    plain = [one | {"contract_type": None} for one in RESULT]
    books = {one["id"]: quotes([(3000, 1.0)]) for one in plain}
    assert [row["selection_type"] for row in read([market()], plain, books).quotes] == ["home", "draw", "away"]


def test_only_open_markets_of_the_wanted_types_are_read() -> None:
    listed = read_events([encoded({"events": [event()]})], NOW)
    given = [
        market("m1"), market("m2", "CORRECT_SCORE"), market("m3", state="halted"), market("m4", of="other"),
        market("m5", state="live"),
    ]  # fmt: skip
    assert [one.id for one in read_markets([encoded({"markets": given})], listed, KINDS)] == ["m1", "m5"]


def test_a_type_without_a_meaning_keeps_its_name() -> None:
    payload = read([market(kind="TO_KICK_OFF")], RESULT[:1], {"c1": quotes([(5000, 1.0)])}, kinds=("TO_KICK_OFF",))
    assert meant(payload) == [("TO_KICK_OFF", "Fulham", "home", None)]
    assert payload.unmapped == {("smarkets", "TO_KICK_OFF"): 1}


def test_games() -> None:
    american = event(
        "e2", "Dallas Cowboys at Seattle Seahawks", type="american_football_match",
        full_slug="/sport/american-football/nfl/2026/11/29/18-00/x/45",
    )  # fmt: skip
    far = event("e4", start=NOW + timedelta(days=8))
    given = [event(), american, event("e3", "Premier League 2026"), far, event("e5", state="live")]
    found = read_events([encoded({"events": given})], NOW, within=7 * 86_400.0)
    assert [(game.id, game.sport, game.league, game.home, game.status) for game in found.games.values()] == [
        ("e1", "soccer", "england_premier_league", "Fulham", "upcoming"),
        ("e2", "football", "nfl", "Seattle Seahawks", "upcoming"),
        ("e5", "soccer", "england_premier_league", "Fulham", "live"),
    ]  # fmt: skip
    assert found.refused == {"an event that is not a game of two": 1}
    assert list(read_events([encoded({"events": given})], NOW, league="nfl").games) == ["e2"]


def test_pages_end_when_they_have_nothing_new() -> None:
    body = encoded({"events": [event()], "pagination": {"next_page": "?x=1&with_new_type=False&pagination_last_id=7"}})
    seen: set[str] = set()
    assert next_page(body, seen) == [("pagination_last_id", "7")]
    assert next_page(body, seen) == []
    assert next_page(encoded({"events": [event("e9")], "pagination": {"next_page": None}}), seen) == []


def test_what_is_no_longer_offered_is_removed() -> None:
    reader = SmarketsPrices()
    books = {"c1": quotes([(4500, 1.0)]), "c2": quotes([(2800, 1.0)])}
    read([market()], RESULT, books, reader=reader)
    assert read([market()], RESULT, {"c2": quotes([(2800, 1.0)])}, reader=reader).removed == ["c1"]
    assert read([], [], {}, reader=reader).removed == ["c2"]
    read([market()], RESULT, books, reader=reader)
    none = read_events([encoded({"events": []})], NOW)
    assert reader.end("x", none).removed == ["c1", "c2"]


@pytest.mark.parametrize("level", [(0, 1.0), (10_000, 1.0), (-5, 1.0), (5000, -1.0)])
def test_a_level_that_is_not_valid_costs_only_itself(level: tuple[int, float]) -> None:
    payload = read([market()], RESULT, {"c1": quotes([level, (4500, 1.0)])})
    assert [("levels" in row, row["max_bet"]) for row in payload.quotes] == [(False, pytest.approx(0.45))]
    assert payload.refused == {"a level of an order book that is not valid": 1}


def test_quotes_that_are_not_valid_cost_only_themselves() -> None:
    payload = read([market()], RESULT, {"c1": quotes([(4500, 1.0)]), "c2": {"bids": []}, "c3": 5})
    assert len(payload.quotes) == 1
    assert payload.refused == Counter({"quotes that are not valid": 2})


@pytest.mark.parametrize("body", [b"", b"[]", b'{"c1": 5}', b"7"])
def test_what_are_no_quotes_is_said(body: bytes) -> None:
    reader = SmarketsPrices()
    read([market()], RESULT, {"c1": quotes([(4500, 1.0)])}, reader=reader)
    listed = read_events([encoded({"events": [event()]})], NOW)
    own = read_markets([encoded({"markets": [market()]})], listed, KINDS)
    with pytest.raises(FeedError, match="not a payload of Smarkets"):
        reader.read("x", listed.games, own, [encoded({"contracts": RESULT})], [Received(body, SEEN)])
    assert read([], [], {}, reader=reader).removed == ["c1"]


NFL = "/sport/american-football/nfl/2026/11/29/18-00/x/45"


def test_the_winner_of_an_american_game_has_overtime_and_of_soccer_no_draw() -> None:
    """The exchange calls both WINNER_DNB, and the teams by their nicknames."""
    nicknames = [contract("c1", "Cowboys", "AWAY"), contract("c2", "Seahawks", "HOME")]
    books = {"c1": quotes([(4500, 1.0)]), "c2": quotes([(5700, 1.0)])}
    american = event(name="Dallas Cowboys at Seattle Seahawks", type="american_football_match", full_slug=NFL)
    assert meant(read([market(kind="WINNER_DNB", name="Winner")], nicknames, books, american)) == [
        ("moneyline", "Dallas Cowboys", "away", None), ("moneyline", "Seattle Seahawks", "home", None),
    ]  # fmt: skip
    sides = [RESULT[0], RESULT[2]]
    books = {"c1": quotes([(5500, 1.0)]), "c3": quotes([(4700, 1.0)])}
    assert meant(read([market(kind="WINNER_DNB")], sides, books)) == [
        ("draw_no_bet", "Fulham", "home", None), ("draw_no_bet", "Chelsea", "away", None),
    ]  # fmt: skip
    hockey = event(type="ice_hockey_match", full_slug="/sport/ice-hockey/nhl/2026/x")
    assert meant(read([market(kind="WINNER_DNB")], sides, books, hockey))[0][0] == "WINNER_DNB", "its rule is not known"
    both = [contract("c1", "Yes", "YES"), contract("c2", "No", "NO")]
    books = {"c1": quotes([(5500, 1.0)]), "c2": quotes([(4700, 1.0)])}
    assert meant(read([market(kind="BTTS")], both, books)) == [
        ("both_teams_to_score", "Yes", "yes", None), ("both_teams_to_score", "No", "no", None),
    ]  # fmt: skip


def test_the_parameter_of_a_handicap_is_the_line_of_the_home_side() -> None:
    game = event(name="Houston Astros at Tampa Bay Rays", type="baseball_match", full_slug="/sport/baseball/mlb/2026/x")
    sides = [contract("c1", "Astros", "AWAY", "m3"), contract("c2", "Rays", "HOME", "m3")]
    books = {"c1": quotes([(5200, 1.0)]), "c2": quotes([(5100, 1.0)])}
    for param in ("-3.5", -3.5):
        spread = market("m3", "HANDICAP", param, name="Astros +3.5 / Rays -3.5")
        assert meant(read([spread], sides, books, game)) == [
            ("point_spread", "Houston Astros", "away", 3.5), ("point_spread", "Tampa Bay Rays", "home", -3.5),
        ]  # fmt: skip
    other = [one | {"name": name} for one, name in zip(sides, ("Astros +3.5", "Rays +3.5"), strict=True)]
    payload = read([market("m3", "HANDICAP", "-3.5", name="Handicap")], other, books, game)
    assert meant(payload) == [("point_spread", "Houston Astros", "away", 3.5)], "two lines for one side are no line"
    assert payload.refused == {"a contract that is not understood": 1}


@pytest.mark.parametrize(
    ("kind", "sport"),
    [
        ({"domain": "football", "scope": "single_event"}, "soccer"), ("tennis_match", "tennis"),
        ({"domain": "american_football", "scope": "single_event"}, "football"), ({"domain": "chess"}, ""),
    ],
)  # fmt: skip
def test_the_type_of_an_event_is_a_text_or_an_object(kind: Any, sport: str) -> None:
    found = read_events([encoded({"events": [event(type=kind)]})], NOW)
    assert [game.sport for game in found.games.values()] == [sport]


def test_players_have_sides_too() -> None:
    players = [contract("c1", "Ana Sol", "PLAYER_A"), contract("c2", "Eva Mar", "PLAYER_B")]
    books = {"c1": quotes([(4500, 1.0)]), "c2": quotes([(5700, 1.0)])}
    match = event(name="A. Sol vs E. Mar", type="tennis_match", full_slug="/sport/tennis/x/2026")
    found = read([market(kind="WINNER_2_WAY")], players, books, match)
    assert meant(found) == [("moneyline", "A. Sol", "home", None), ("moneyline", "E. Mar", "away", None)]


@pytest.mark.parametrize(("state", "waits", "delay"), [
    ("live", 8, 8.0), ("live", 0, 0.0), ("live", 8000, None), ("live", None, None), ("upcoming", 0, None),
])  # fmt: skip
def test_a_delay_is_that_of_bets_in_play(state: str, waits: Any, delay: float | None) -> None:
    payload = read([market(bet_delay=waits)], RESULT, {"c1": quotes([(4500, 1.0)])}, event(state=state))
    assert [row["bet_delay"] for row in payload.quotes] == [delay]


@pytest.mark.parametrize("state", ["winner", "loser", "voided", "suspended"])
def test_a_contract_that_is_closed_has_no_price(state: str) -> None:
    closed = [RESULT[0], *({**one, "state_or_outcome": state} for one in RESULT[1:])]
    books = {one["id"]: quotes([(3000, 1.0)]) for one in closed}
    payload = read([market()], closed, books)
    assert [row["selection_type"] for row in payload.quotes] == ["home"]
    assert not payload.refused


# ---- payloads made from the contract ----


def documents(exchange: Smarkets) -> dict[str, Any]:
    return {
        "events": {"events": exchange.events}, "markets": {"markets": exchange.markets},
        "contracts": {"contracts": exchange.contracts}, "quotes": exchange.quotes,
    }  # fmt: skip


def whole(given: dict[str, Any]) -> Payload:
    """All that a turn reads."""
    listed = read_events([encoded(given["events"])], NOW)
    markets = read_markets([encoded(given["markets"])], listed, KINDS)
    reader, books = SmarketsPrices(), [Received(encoded(given["quotes"]), SEEN)]
    priced = reader.read("x", listed.games, markets, [encoded(given["contracts"])], books)
    return priced._replace(refused=priced.refused + reader.end("x", listed).refused)


def test_our_exchange_answers_as_the_contract_says() -> None:
    for name, document in documents(Smarkets()).items():
        assert CONTRACT.unknown(name, document) == []


def test_a_value_that_is_unheard_of_costs_its_row_and_is_counted() -> None:
    usual = documents(Smarkets())
    places = set()
    for name, document in usual.items():

        def read_with(changed: Any, name: str = name) -> Payload:
            return whole(usual | {name: changed})

        for place, lost, payload in lost_rows(CONTRACT, name, document, read_with):
            places.add(place.split(".", 1)[1])
            item = json_place(document, place)
            assert all(item["id"] in (row["selection_id"], row["market_id"], row["event_id"]) for row in lost), place
            assert (name == "events") == (not payload.games), "only the state of the event is about all of it"
    assert places == {"state", "contract_type.name", "state_or_outcome"}


def json_place(document: Any, place: str) -> Any:
    """The item of a list that a place such as `markets[1].state` is in."""
    name, _, rest = place.partition("[")
    return document[name][int(rest.partition("]")[0])]


def two_games() -> Smarkets:
    exchange = Smarkets(event(), event("e2", "Arsenal vs Everton"))
    exchange.markets += [one | {"id": f"{one['id']}b", "event_id": "e2"} for one in exchange.markets]
    exchange.contracts += [
        one
        | {"id": f"{one['id']}b", "market_id": f"{one['market_id']}b", "name": one["name"].replace("Fulham", "Arsenal")}
        for one in exchange.contracts
    ]
    exchange.quotes |= {f"{ident}b": book for ident, book in exchange.quotes.items()}
    return exchange


GAMES = documents(two_games())
OTHER = {row["id"]: row for row in whole(GAMES).quotes if row["event_id"] == "e2"}


@pytest.mark.parametrize(
    ("name", "within"),
    [("events", ("events", 0)), *(("markets", ("markets", n)) for n in (0, 1)), ("contracts", ("contracts", 0)),
     ("contracts", ("contracts", 3)), ("quotes", ("c1",)), ("quotes", ("c4",))],
)  # fmt: skip
@given(data=st.data())
def test_whatever_comes_of_a_game_the_other_is_read(name: str, within: Any, data: st.DataObject) -> None:
    changed = data.draw(mutated(CONTRACT, name, GAMES[name], within))
    rows = whole(GAMES | {name: changed}).quotes
    assert {row["id"]: row for row in rows if row["event_id"] == "e2"} == OTHER
    assert all(row["odds_decimal"] > 1.0 for row in rows)
    assert UNHEARD_OF not in {row["selection_type"] for row in rows}
