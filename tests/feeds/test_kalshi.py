"""Kalshi's lists, books and messages: which outcome each side of a market is, what it costs, and when nobody knows."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from support.kalshi import (
    DALLAS,
    EVENT,
    KUPP,
    SEATTLE,
    START,
    Json,
    delta,
    error,
    event,
    event_page,
    lifecycle,
    market,
    markets_page,
    milestone,
    order_book,
    over,
    snapshot,
    subscription,
    targets_page,
    winners,
)

import oddsengine as oe
from oddsengine import catalog
from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.kalshi import KalshiMarkets
from oddsengine.feeds.kalshi_format import next_cursor
from oddsengine.feeds.kalshi_series import SERIES, league_of, meaning

NOW = START - timedelta(hours=1)
SEA, DAL = f"{EVENT}-SEA", f"{EVENT}-DAL"
Row = dict[str, Any]


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def reader(*series: str, milestones: tuple[Json, ...] = (), main: str = "KXNFLGAME") -> KalshiMarkets:
    """A reader that knows a game, its teams and its players."""
    made = KalshiMarkets()
    listed = milestones or (milestone(events=(EVENT, *map(event, series))),)
    made.add_events(main, [encoded(event_page(*listed))], NOW)
    named(made)
    return made


def named(made: KalshiMarkets) -> Payload:
    return made.add_targets(encoded(targets_page()), list(made.unnamed), NOW)


def listed(made: KalshiMarkets, series: str, *markets: Json) -> Payload:
    """Markets of a series, with the names that they need."""
    first = made.read_markets(series, [encoded(markets_page(*markets))], NOW)
    more = named(made)
    refused = first.refused + more.refused
    return more._replace(refused=refused, removed=first.removed) if more.quotes else first._replace(refused=refused)


def of(series: str, *markets: Json) -> Payload:
    made = reader(series)
    made.read_markets("KXNFLGAME", [encoded(markets_page(*winners()))], NOW)
    return listed(made, series, *markets)


def prices(payload: Payload) -> dict[tuple[Any, ...], float]:
    """Market, outcome and line: 1 / odds."""
    return {
        (row["market_type"], row["selection_type"], row["line"]): round(1 / row["odds_decimal"], 9)
        for row in payload.quotes
    }  # fmt: skip


# ---- winners ----


def test_of_two_markets_with_one_bet_the_better_price_counts() -> None:
    """Seattle: Yes at 0.61, or No of Dallas at 1 - 0.40. Dallas: Yes at 0.42, or No of Seattle at 1 - 0.59."""
    quotes = listed(reader(), "KXNFLGAME", *winners()).quotes
    by_side = {row["selection_type"]: row for row in quotes}
    assert {side: row["odds_decimal"] for side, row in by_side.items()} == {"home": 1 / 0.6, "away": 1 / 0.41}
    assert by_side["home"]["max_bet"] == float(Decimal("0.6") * Decimal("300.00"))
    assert by_side["away"]["max_bet"] == float(Decimal("0.41") * Decimal("200.25"))
    assert (by_side["home"]["market_id"], by_side["home"]["selection_id"]) == (DAL, f"{DAL}/no")
    assert (by_side["home"]["selection"], by_side["away"]["selection"]) == ("Seattle", "Dallas")


def test_the_game_is_the_milestone() -> None:
    """Its start is not `occurrence_datetime`, three hours later, and its teams are ids, not letters of a ticker."""
    payload = listed(reader(), "KXNFLGAME", *winners())
    (game,) = payload.games
    assert game == ("m1", "football", "nfl", "Seattle", "Dallas", START, "upcoming")
    assert {row["event_start_time"] for row in payload.quotes} == {START}


def test_no_is_never_named_by_its_sub_title() -> None:
    """Both sub-titles are "Seattle"; one market alone has prices of both teams."""
    (sea, _) = winners()
    assert sea["yes_sub_title"] == sea["no_sub_title"]
    quotes = listed(reader(), "KXNFLGAME", sea).quotes
    assert {(row["selection"], row["selection_type"]) for row in quotes} == {("Seattle", "home"), ("Dallas", "away")}


def test_two_games_of_one_pair_are_two_events() -> None:
    """A doubleheader: only the milestones tell them apart."""
    events = "KXMLBGAME-26AUG292205AZSFG1", "KXMLBGAME-26AUG292205AZSFG2"
    later = START + timedelta(hours=4)
    games = (milestone("m1", events[:1]), milestone("m2", events[1:], later))
    made = reader(milestones=games, main="KXMLBGAME")
    page = [*winners(events[0]), market(f"{events[1]}-SEA", "0.3000", "0.2500")]
    payload = listed(made, "KXMLBGAME", *page)
    assert {(game.id, game.start) for game in payload.games} == {("m1", START), ("m2", later)}
    assert {(row["event_id"], row["selection_type"], round(1 / row["odds_decimal"], 9)) for row in payload.quotes} == {
        ("m1", "home", 0.6), ("m1", "away", 0.41), ("m2", "home", 0.3), ("m2", "away", 0.75),
    }  # fmt: skip


def test_an_event_of_several_games_is_no_market_of_one() -> None:
    both = "KXNFLTEAMS-26"
    games = milestone("m1", (EVENT, both)), milestone("m2", ("KXNFLGAME-26AUG16NYJBUF", both))
    made = KalshiMarkets()
    assert made.add_events("KXNFLGAME", [encoded(event_page(*games))], NOW).refused == {"an event of several games": 1}
    assert made.series("KXNFLGAME") == ["KXNFLGAME"]


def test_a_game_without_a_milestone_has_no_start_and_is_left_out() -> None:
    made = KalshiMarkets()
    body = {"events": [{"event_ticker": EVENT}], "cursor": ""}
    assert made.add_events("KXNFLGAME", [encoded(body)], NOW).refused == {"a game without a milestone": 1}
    assert listed(made, "KXNFLGAME", *winners()).refused == {"a market of no listed game": 2}


def test_tennis_has_sides_without_a_home() -> None:
    """The order of the title; both players are those of the two markets."""
    match = "KXATPMATCH-26JUL13SANDAN"
    given = milestone("m1", (match,), type="tennis_tournament_singles", title="Sanchez Jover vs Daniel",
                      details={"main_game_event_ticker": match, "status": "scheduled"})  # fmt: skip
    made = KalshiMarkets()
    made.add_events("KXATPMATCH", [encoded(event_page(given))], NOW)
    players = {"p2": "Taro Daniel", "p1": "Carlos Sanchez Jover"}
    page = [
        market(f"{match}-DAN", "0.3000", "0.2900", name="Taro Daniel", custom_strike={"tennis_competitor": "p2"}),
        market(f"{match}-SAN", "0.7200", "0.7000", name="C. Sanchez", custom_strike={"tennis_competitor": "p1"}),
    ]
    made.read_markets("KXATPMATCH", [encoded(markets_page(*page))], NOW)
    body = {"structured_targets": [{"id": ident, "name": name} for ident, name in players.items()]}
    payload = made.add_targets(encoded(body), list(made.unnamed), NOW)
    (game,) = payload.games
    assert game[:5] == ("m1", "tennis", "atp", "Carlos Sanchez Jover", "Taro Daniel")
    assert prices(payload) == {("moneyline", "away", None): 0.3, ("moneyline", "home", None): 0.71}


def test_no_of_a_three_way_outcome_is_half_a_goal_or_no_draw() -> None:
    """Who bets No of Arsenal wins if Leeds win or draw, as with Leeds +0.5; No of the draw is a market of its own."""
    match = "KXEPLGAME-26OCT10ARSLEE"
    made = reader(milestones=(milestone("m1", (match,), type="soccer_tournament_multi_leg"),), main="KXEPLGAME")
    tie = market(f"{match}-TIE", "0.2600", "0.2500", name="Tie", custom_strike={"soccer_team": "x"})
    payload = listed(made, "KXEPLGAME", *winners(match), tie)
    assert prices(payload) == {
        ("moneyline_3way", "home", None): 0.61, ("moneyline_3way", "away", None): 0.42,
        ("moneyline_3way", "draw", None): 0.26, ("point_spread", "away", 0.5): 0.41, ("point_spread", "home", 0.5): 0.6,
        ("draw", "no", None): 0.75,
    }  # fmt: skip
    assert payload.refused == {}
    assert {game.league for game in payload.games} == {"england_premier_league"}


def test_no_of_a_side_against_a_handicap_is_an_arbitrage() -> None:
    match = "KXEPLGAME-26OCT10ARSLEE"
    made = reader(milestones=(milestone("m1", (match,), type="soccer_tournament_multi_leg"),), main="KXEPLGAME")
    rows = [row | {"last_seen_at": NOW} for row in listed(made, "KXEPLGAME", *winners(match)).quotes]
    (against,) = (row for row in rows if (row["selection_type"], row["line"]) == ("away", 0.5))
    other = {**against, "id": "x", "sportsbook": "fanduel", "selection": against["home_team"], "line": -0.5,
             "selection_type": "home", "market_type": "asian_handicap", "odds_decimal": 2.0}  # fmt: skip
    found = oe.find_arbitrage([*rows, other], now=NOW)
    assert {leg["sportsbook"] for leg in found["legs"][0]} == {"kalshi", "fanduel"}
    net = {leg["sportsbook"]: leg["net_odds"] for leg in found["legs"][0]}
    assert found["profit_percent"][0] == pytest.approx(100.0 * (1.0 / sum(1.0 / odds for odds in net.values()) - 1.0))
    assert net["kalshi"] == pytest.approx(1.0 / (0.41 + 0.07 * 0.41 * 0.59))


def test_cities_with_a_letter_are_the_one_team_that_fits() -> None:
    made = KalshiMarkets()
    made.add_events("KXNFLGAME", [encoded(event_page(milestone()))], NOW)
    made.read_markets("KXNFLGAME", [encoded(markets_page(*winners()))], NOW)
    body = {"structured_targets": [{"id": SEATTLE, "name": "New York J"}, {"id": DALLAS, "name": "Los Angeles X"}]}
    (game,) = made.add_targets(encoded(body), list(made.unnamed), NOW).games
    assert (game.home, game.away) == ("New York Jets", "Los Angeles X")


def test_names_that_are_missing_are_those_of_the_markets() -> None:
    made = KalshiMarkets()
    made.add_events("KXNFLGAME", [encoded(event_page(milestone()))], NOW)
    waiting = made.read_markets("KXNFLGAME", [encoded(markets_page(*winners()))], NOW)
    assert (waiting.quotes, waiting.refused) == ([], {"a market whose teams are not known yet": 2})
    assert set(made.unnamed) == {SEATTLE, DALLAS}
    (game,) = made.add_targets(encoded({"structured_targets": []}), list(made.unnamed), NOW).games
    assert (game.home, game.away) == ("Seattle", "Dallas")
    assert not made.unnamed


# ---- other markets ----


def test_no_of_a_spread_is_the_other_side() -> None:
    wins: Json = {"strike_type": "greater", "floor_strike": 3.5, "yes_sub_title": "Seattle wins by over 3.5 points"}
    ticker = f"{event('KXNFLSPREAD')}-SEA4"  # the number in a ticker is rounded up
    assert prices(of("KXNFLSPREAD", market(ticker, "0.4500", "0.4400", **wins))) == {
        ("point_spread", "home", -3.5): 0.45, ("point_spread", "away", 3.5): 0.56,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("series", "name"), [("KXNFLTOTAL", "total_points"), ("KXNFL1HTOTAL", "1st_half_total_points")]
)
def test_no_of_a_total_is_the_under(series: str, name: str) -> None:
    assert prices(of(series, over(series, 44.5, ask="0.5200", bid="0.5000"))) == {
        (name, "over", 44.5): 0.52, (name, "under", 44.5): 0.5,
    }  # fmt: skip


def test_team_totals_have_a_side() -> None:
    team = over("KXNFLTEAMTOTAL", 20.5, custom_strike={"football_team": DALLAS})
    rows = of("KXNFLTEAMTOTAL", team).quotes
    assert {(row["market_type"], row["team_side"], row["selection"], row["line"]) for row in rows} == {
        ("team_total", "away", "Dallas Over", 20.5), ("team_total", "away", "Dallas Under", 20.5),
    }  # fmt: skip


def test_periods_have_winners() -> None:
    page = winners(event("KXNFL1HWINNER"))
    assert prices(of("KXNFL1HWINNER", *page)) == {
        ("1st_half_moneyline", "home", None): 0.6, ("1st_half_moneyline", "away", None): 0.41,
    }  # fmt: skip
    tie = market(f"{event('KXNFL1HWINNER')}-TIE", "0.1000", "0.0900", name="Tie", custom_strike=None)
    with_tie = prices(of("KXNFL1HWINNER", *page, tie))
    assert with_tie == {
        ("1st_half_moneyline_3way", "home", None): 0.61, ("1st_half_moneyline_3way", "away", None): 0.42,
        ("1st_half_moneyline_3way", "draw", None): 0.1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("strike", "floor", "text", "line"),
    [
        ("greater", 99.5, "Cooper Kupp: 100+ receiving yards", 99.5),
        ("greater_or_equal", 100, "Cooper Kupp: 100+ receiving yards", 99.5),
        ("structured", None, "Cooper Kupp: 100+ receiving yards", 99.5),
        ("greater", 100, "Cooper Kupp: 100+ receiving yards", 99.5),
        ("greater_or_equal", "100", "Cooper Kupp", 99.5),
        ("greater", 100, "Cooper Kupp", 100.5),
        ("greater", 100, "Cooper Kupp: 90+ receiving yards", None),
        ("less", 99.5, "Cooper Kupp", None),
        ("between", 99.5, "Cooper Kupp", None),
        ("structured", None, "Cooper Kupp", None),
        ("structured", 100, "Cooper Kupp", None),
    ],
)  # fmt: skip
def test_at_least_n_is_over_the_half_below(strike: str, floor: Any, text: str, line: float | None) -> None:
    given = market(f"{event('KXNFLRECYDS')}-KUPP100", of=event("KXNFLRECYDS"), name=text, title=text,
                   custom_strike={"football_player": KUPP, "football_team": SEATTLE}, strike_type=strike,
                   floor_strike=floor)  # fmt: skip
    payload = of("KXNFLRECYDS", given)
    rows = {(row["market_type"], row["player_name"], row["selection"], row["line"]) for row in payload.quotes}
    if line is None:
        assert (rows, payload.refused) == (set(), {"a market without a clear line": 1})
    else:
        named = ("player_receiving_yards", "Cooper Kupp")
        assert rows == {(*named, "Over", line), (*named, "Under", line)}


def test_yes_and_no_markets_keep_both() -> None:
    match = "KXEPLGAME-26OCT10ARSLEE"
    score = match.replace("GAME", "BTTS")
    made = reader(milestones=(milestone("m1", (match, score), type="soccer_game"),), main="KXEPLGAME")
    listed(made, "KXEPLGAME", *winners(match))
    assert prices(listed(made, "KXEPLBTTS", market(score, of=score, custom_strike=None))) == {
        ("both_teams_to_score", "yes", None): 0.6, ("both_teams_to_score", "no", None): 0.41,
    }  # fmt: skip


def test_an_unknown_series_keeps_its_name_and_is_counted() -> None:
    first = market(f"{event('KXNFLMOSTTD')}-X", name="Cooper Kupp")
    payload = of("KXNFLMOSTTD", first)
    assert [(row["market_type"], row["selection"]) for row in payload.quotes] == [("KXNFLMOSTTD", "Cooper Kupp")]
    assert payload.unmapped == {("kalshi", "KXNFLMOSTTD"): 1}


def scorer(series: str, name: str = "Cooper Kupp", **more: Any) -> Json:
    given = {"custom_strike": {"football_player": KUPP, "football_team": SEATTLE}, "strike_type": "structured"} | more
    return market(f"{event(series)}-KUPP", of=event(series), name=name, **given)


@pytest.mark.parametrize(
    ("series", "name", "same"),
    [
        ("KXNFLANYTD", "anytime_touchdown", ("player_touchdowns", 0.5)),
        ("KXNFL2TD", "to_score_2_or_more_touchdowns", ("player_touchdowns", 1.5)),
    ],
)
def test_who_scores_is_a_bet_of_the_player(series: str, name: str, same: tuple[str, float]) -> None:
    payload = of(series, scorer(series))
    assert [(row["market_type"], row["selection"], row["player_name"]) for row in payload.quotes] == [
        (name, "Yes", "Cooper Kupp"), (name, "No", "Cooper Kupp"),
    ]  # fmt: skip
    assert not payload.unmapped
    kind = catalog.market_type(name, "football")
    assert (kind.family, kind.fixed_line) == same


def test_a_scorer_with_another_strike_or_without_a_player_is_left_out() -> None:
    two = of("KXNFLANYTD", scorer("KXNFLANYTD", floor_strike=1.5, strike_type="greater"))
    assert (list(two.quotes), two.refused) == ([], {"a market without a clear line": 1})
    one = of("KXNFLANYTD", scorer("KXNFLANYTD", floor_strike=1, strike_type="greater_or_equal"))
    assert len(one.quotes) == 2
    nobody = of("KXNFLANYTD", scorer("KXNFLANYTD", "Seattle defense", custom_strike={"football_team": SEATTLE}))
    assert (list(nobody.quotes), nobody.refused) == ([], {"a market whose player is not known": 1})


def test_who_scores_first_is_known_and_used_by_no_finder() -> None:
    payload = of("KXNFLFIRSTTD", scorer("KXNFLFIRSTTD"))
    assert [(row["market_type"], row["selection"]) for row in payload.quotes] == [("first_touchdown", "Cooper Kupp")]
    assert not payload.unmapped
    assert not catalog.market_type("first_touchdown", "football").usable


@pytest.mark.parametrize(
    ("series", "stat"),
    [
        ("KXNFLPASSCOMP", "passing_completions"), ("KXNFLPASSATT", "passing_attempts"),
        ("KXNFLPASSINT", "passing_interceptions"), ("KXNFLRSHATT", "rushing_attempts"),
        ("KXNFLRRYDS", "rushing_receiving_yards"),
    ],
)  # fmt: skip
def test_props_of_football(series: str, stat: str) -> None:
    payload = of(series, scorer(series, "Cooper Kupp: 5+"))
    assert {(row["market_type"], row["line"]) for row in payload.quotes} == {(f"player_{stat}", 4.5)}


def test_every_known_series_is_a_market_of_the_catalog() -> None:
    for league, series in SERIES.items():
        assert catalog.league(league_of(series)).id == league
    for series, main, sport, name in (
        ("KXMLBF5TOTAL", "KXMLBGAME", "baseball", "1st_5_innings_total_points"),
        ("KXATPGTOTAL", "KXATPMATCH", "tennis", "total_games"),
        ("KXUFCDISTANCE", "KXUFCFIGHT", "mma", "goes_the_distance"),
        ("KXEPL1H", "KXEPLGAME", "soccer", "1st_half_moneyline"),
        ("KXNBA3PT", "KXNBAGAME", "basketball", "player_threes"),
        ("KXNFLTOTALTD", "KXNFLGAME", "football", "total_touchdowns"),
        ("KXEPLGOAL", "KXEPLGAME", "soccer", "player_goals"),
        ("KXBRASILEIROBTOTAL", "KXBRASILEIROBGAME", "soccer", "total_points"),
        ("KXVALORANTSPREAD", "KXVALORANTGAME", "esports", "map_handicap"),
        ("KXVALORANTTOTALMAPS", "KXVALORANTGAME", "esports", "total_maps"),
    ):
        meant = meaning(series, main, sport)
        assert meant.market.in_catalog
        assert catalog.market_type(meant.market.name, sport).family == catalog.market_type(name, sport).family
        assert catalog.market_type(meant.market.name, sport).period == catalog.market_type(name, sport).period


def test_matches_of_an_esport_are_those_of_its_league() -> None:
    match, handicap = "KXVALORANTGAME-26OCT10ARSLEE", "KXVALORANTSPREAD-26OCT10ARSLEE"
    played = milestone("m1", (match, handicap), type="esports_game")
    made = reader(milestones=(played,), main="KXVALORANTGAME")
    won = listed(made, "KXVALORANTGAME", *winners(match))
    assert {(game.sport, game.league) for game in won.games} == {("esports", "valorant")}
    maps = market(
        f"{handicap}-SEA1", of=handicap, name="Seattle wins by over 1.5 maps", strike_type="greater", floor_strike=1.5,
        custom_strike={"esports_team": SEATTLE},
    )  # fmt: skip
    assert prices(listed(made, "KXVALORANTSPREAD", maps)) == {
        ("map_handicap", "home", -1.5): 0.6, ("map_handicap", "away", 1.5): 0.41,
    }  # fmt: skip


@pytest.mark.parametrize("more", [{"mve_collection_ticker": "KXMVE-1"}, {"event_ticker": "KXSB-27"}])
def test_parlays_and_markets_of_no_game_are_left_out(more: Json) -> None:
    payload = listed(reader(), "KXNFLGAME", market(SEA, of=EVENT) | more)
    assert payload.quotes == []
    assert sum(payload.refused.values()) == 1


def test_nested_markets_of_events_are_not_read() -> None:
    """They may be 1 of 22."""
    made = KalshiMarkets()
    made.add_events("KXNFLGAME", [encoded(event_page(milestone(), nested=winners()[:1]))], NOW)
    assert not named(made).quotes
    assert made.open_markets() == []


# ---- prices ----


def test_the_best_bid_is_the_highest_whatever_the_order() -> None:
    levels = [("0.3700", "809.25"), ("0.4000", "11392.59"), ("0.3900", "10214.24")]
    made = reader()
    sea = winners()[0]
    listed(made, "KXNFLGAME", sea)
    for given in (levels, levels[::-1], sorted(levels)):
        book = {"orderbook_fp": order_book([("0.5900", "152.00")], given)}
        payload = made.read_order_books(encoded(book), NOW, SEA)
        assert prices(payload) == {("moneyline", "home", None): 0.6, ("moneyline", "away", None): 0.41}
        assert {row["selection_type"]: row["max_bet"] for row in payload.quotes} == {"home": 6835.554, "away": 62.32}


def test_books_of_several_markets_and_in_cents() -> None:
    made = reader()
    listed(made, "KXNFLGAME", winners()[0])
    batch = {"orderbooks": [{"ticker": SEA, "orderbook_fp": order_book([], [("0.4500", "1")])}, {"ticker": "KXOTHER"}]}
    payload = made.read_order_books(encoded(batch), NOW)
    assert prices(payload) == {("moneyline", "home", None): 0.55}
    assert payload.removed == [f"{EVENT}/away/"], "no bid for Yes is no offer of No"
    assert payload.refused == {"a book of an unknown market": 1}
    cents = {"orderbook": {"yes": [[59, 152]], "no": None}}
    assert prices(made.read_order_books(encoded(cents), NOW, SEA)) == {("moneyline", "away", None): 0.41}


def test_an_empty_side_is_no_offer() -> None:
    quotes = listed(reader(), "KXNFLGAME", market(SEA, "1.0000", "0.0000", ("0.00", "0.00"))).quotes
    assert quotes == []


@pytest.mark.parametrize("ask", ["1.5", "-0.2", "NaN", "x", None])
def test_a_price_that_is_none_is_no_offer(ask: Any) -> None:
    assert prices(listed(reader(), "KXNFLGAME", market(SEA, ask))) == {("moneyline", "away", None): 0.41}


@pytest.mark.parametrize("status", ["inactive", "closed"])
def test_a_paused_market_suspends_its_prices(status: str) -> None:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    payload = listed(made, "KXNFLGAME", *[one | {"status": status} for one in winners()])
    assert [(row["selection_type"], row["is_active"]) for row in payload.quotes] == [("home", False), ("away", False)]
    again = listed(made, "KXNFLGAME", *winners())
    assert {row["is_active"] for row in again.quotes} == {True}


def test_a_market_that_is_no_longer_listed_is_suspended() -> None:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    assert {row["is_active"] for row in listed(made, "KXNFLGAME").quotes} == {False}
    back = listed(made, "KXNFLGAME", winners()[0])
    assert prices(back) == {("moneyline", "home", None): 0.61, ("moneyline", "away", None): 0.41}


@pytest.mark.parametrize(
    "decided",
    [*({"status": status} for status in ("determined", "finalized", "disputed", "amended")), {"result": "scalar"}],
)
def test_a_market_that_is_decided_has_no_prices(decided: Json) -> None:
    made = reader()
    before = listed(made, "KXNFLGAME", *winners())
    payload = listed(made, "KXNFLGAME", *[one | decided for one in winners()])
    assert (payload.quotes, set(payload.removed)) == ([], {row["id"] for row in before.quotes})


def test_prices_after_the_start_are_live_and_go_when_the_game_is_over() -> None:
    made = reader()
    page = [encoded(markets_page(*winners()))]
    payload = made.read_markets("KXNFLGAME", page, START + timedelta(seconds=1))
    assert {row["is_live"] for row in payload.quotes} == {True}
    assert {game.status for game in payload.games} == {"live"}
    over_now = milestone() | {"details": milestone()["details"] | {"status": "closed"}}
    made.add_events("KXNFLGAME", [encoded(event_page(over_now))], NOW)
    ended = made.read_markets("KXNFLGAME", page, START + timedelta(hours=4))
    assert ({game.status for game in ended.games}, ended.quotes, len(ended.removed)) == ({"ended"}, [], 2)


def test_a_game_that_is_no_longer_listed_is_removed() -> None:
    made = reader("KXNFLTOTAL")
    listed(made, "KXNFLGAME", *winners())
    listed(made, "KXNFLTOTAL", over("KXNFLTOTAL", 44.5))
    gone = made.add_events("KXNFLGAME", [encoded(event_page(cursor=""))], NOW)
    assert len(gone.removed) == 4
    assert made.open_markets() == []


def test_an_entry_that_is_not_valid_costs_only_itself() -> None:
    payload = listed(reader(), "KXNFLGAME", winners()[0], {"ticker": 5})
    assert len(payload.quotes) == 2
    assert payload.refused == {"an entry of markets that is not valid": 1}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"error":{"code":"x"}}', b'{"markets":null}', b'{"markets":{}}'])
def test_what_is_no_list_is_said(body: bytes) -> None:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    with pytest.raises(FeedError, match="not a payload of Kalshi"):
        made.read_markets("KXNFLGAME", [encoded(markets_page()), body], NOW)
    assert made.open_markets() == [SEA, DAL]


def test_a_page_without_one_valid_entry_is_not_a_page() -> None:
    """Another schema must not look like a page of no markets, which would suspend them all."""
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    with pytest.raises(FeedError, match="none of its 2 markets is valid"):
        made.read_markets("KXNFLGAME", [encoded({"markets": [{"ticker": 5}, {}]})], NOW)
    assert made.open_markets() == [SEA, DAL]


@pytest.mark.parametrize("price", ["1e999999999999", "-1e999999999999", "1" * 400, "NaN", "inf"])
def test_numbers_beyond_all_limits_are_not_valid(price: str) -> None:
    page = listed(reader(), "KXNFLGAME", winners()[0] | {"yes_ask_dollars": price, "volume_fp": price})
    assert len(page.quotes) == 1, "the other side has its price"
    made = streaming()
    assert not told(made, delta(SEA, 3, price, "1")).removed
    assert set(made.doubtful) == {SEA}


def test_a_market_that_moves_to_another_event_leaves_its_first() -> None:
    other = "KXNFLGAME-26AUG16NYJBUF"
    made = reader(milestones=(milestone(), milestone("m2", (other,))))
    listed(made, "KXNFLGAME", *winners())
    listed(made, "KXNFLGAME", winners()[0] | {"event_ticker": other}, winners()[1])
    made.add_events("KXNFLGAME", [encoded(event_page(milestone("m2", (other,))))], NOW)
    assert made.open_markets() == [SEA]
    made.add_events("KXNFLGAME", [encoded(event_page())], NOW)
    assert made.open_markets() == []


def test_pages_have_a_cursor() -> None:
    assert next_cursor(encoded(markets_page(cursor="abc"))) == "abc"
    assert next_cursor(b'{"markets": []}') == ""


# ---- the stream ----


def streaming() -> KalshiMarkets:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    for ticker, seq, yes, no in ((SEA, 1, "0.5900", "0.3900"), (DAL, 2, "0.4000", "0.5800")):
        made.read(encoded(snapshot(ticker, seq, [(yes, "100.00")], [(no, "200.00"), ("0.0100", "5")])), NOW)
    return made


def told(made: KalshiMarkets, message: Json) -> Payload:
    return made.read(encoded(message), NOW)


def test_changes_add_to_levels_and_only_what_changed_is_quoted() -> None:
    made = streaming()
    better = told(made, delta(SEA, 3, "0.4050", "10.00"))  # a bid of 0.405 for No sells Yes at 0.595
    assert prices(better) == {("moneyline", "home", None): 0.595}
    more = told(made, delta(SEA, 4, "0.4050", "5.50"))
    assert [row["max_bet"] for row in more.quotes] == [float(Decimal("0.595") * Decimal("15.5"))]
    back = told(made, delta(SEA, 5, "0.4050", "-15.50"))
    assert prices(back) == {("moneyline", "home", None): 0.6}
    assert not told(made, delta(SEA, 6, "0.0200", "1.00")).quotes, "below the best level nothing changes"
    assert {row["is_live"] for row in back.quotes} == {False}
    on = made.read(encoded(delta(SEA, 7, "0.4050", "1.00")), START + timedelta(seconds=1))
    assert {row["is_live"] for row in on.quotes} == {True}


@pytest.mark.parametrize("seq", [5, 2, 1])
def test_a_gap_suspends_every_book_of_the_subscription_until_its_snapshot(seq: int) -> None:
    made = streaming()
    payload = told(made, delta(SEA, seq, "0.4100", "10.00"))
    assert {row["is_active"] for row in payload.quotes} == {False}
    assert set(made.doubtful) == {SEA, DAL}
    assert payload.refused == {"a gap in the changes of order books": 1}
    assert not told(made, delta(SEA, seq + 1, "0.4200", "10.00")).quotes, "a change of an unknown book says nothing"
    again = told(made, snapshot(SEA, seq + 2, [("0.5900", "1")], [("0.3500", "1")]))
    assert prices(again) == {("moneyline", "home", None): 0.65, ("moneyline", "away", None): 0.41}
    assert {row["is_active"] for row in again.quotes} == {True}
    assert set(made.doubtful) == {DAL}


def test_other_subscriptions_have_their_own_numbers() -> None:
    made = streaming()
    assert not told(made, lifecycle("KXOTHER", 90, "created")).refused
    assert not made.doubtful
    told(made, lifecycle("KXOTHER", 95, "created"))
    assert made.statuses_lost
    assert not made.doubtful


def test_a_change_that_is_not_valid_makes_its_book_doubtful() -> None:
    for change in (delta(SEA, 3, "x", "1"), delta(SEA, 3, "1.7000", "1"), delta(SEA, 3, "0.4", "1", side="maybe")):
        made = streaming()
        told(made, change)
        assert set(made.doubtful) == {SEA}


def test_a_change_before_the_first_snapshot_says_nothing() -> None:
    made = reader()
    listed(made, "KXNFLGAME", winners()[0])
    assert not told(made, delta(SEA, 1, "0.9000", "10.00")).quotes
    assert prices(listed(made, "KXNFLGAME", winners()[0]))["moneyline", "home", None] == 0.61


def test_statuses_come_over_the_stream() -> None:
    made = streaming()
    told(made, lifecycle(SEA, 1, "deactivated"))
    paused = told(made, lifecycle(DAL, 2, "deactivated"))
    assert {row["is_active"] for row in paused.quotes} == {False}
    told(made, lifecycle(SEA, 3, "activated"))
    assert set(made.doubtful) == {SEA}, "all its orders were cancelled"
    told(made, lifecycle(SEA, 4, "determined"))
    gone = told(made, lifecycle(DAL, 5, "settled"))
    assert len(gone.removed) == 2


def test_lists_do_not_replace_streamed_books() -> None:
    made = streaming()
    payload = listed(made, "KXNFLGAME", *[one | {"yes_ask_dollars": "0.3000"} for one in winners()])
    assert prices(payload) == {("moneyline", "home", None): 0.6, ("moneyline", "away", None): 0.41}


def test_an_older_list_does_not_open_what_the_stream_closed() -> None:
    made = streaming()
    for seq, ticker in enumerate((SEA, DAL), 1):
        told(made, lifecycle(ticker, seq, "deactivated"))
    assert {row["is_active"] for row in listed(made, "KXNFLGAME", *winners()).quotes} == {False}


def test_statuses_that_ended_follow_lists_until_none_can_be_older() -> None:
    made = streaming()

    def open_by_list(seconds: float, status: str) -> list[str]:
        page = encoded(markets_page(*winners(status=status)))
        made.read_markets("KXNFLGAME", [page], NOW + timedelta(seconds=seconds))
        return made.open_markets()

    for seq, ticker in enumerate((SEA, DAL), 1):
        told(made, lifecycle(ticker, seq, "deactivated"))
    told(made, error(25, "overflow", 1, 3))
    assert open_by_list(1.0, "inactive") == [], "it may have been under way"
    assert open_by_list(2.0, "active") == [SEA, DAL]
    told(made, lifecycle(SEA, 1, "deactivated", sid=3))
    assert open_by_list(3.0, "active") == [DAL], "of the other the stream has spoken since"
    assert open_by_list(60.0, "inactive") == []
    assert open_by_list(61.0, "active") == [], "the list before was the last that counts"


def test_statuses_that_ended_before_any_came_follow_lists_too() -> None:
    made = streaming()
    told(made, subscription(1, "market_lifecycle_v2", 7))
    told(made, subscription(2, "orderbook_delta", 2))
    told(made, error(25, "overflow", 7, 1))
    assert not listed(made, "KXNFLGAME", *winners(status="inactive")).refused
    assert made.open_markets() == []
    listed(made, "KXNFLGAME", *winners())
    assert made.open_markets() == [SEA, DAL]


def test_a_streamed_book_counts_again_after_its_next_snapshot_where_a_list_opens_it() -> None:
    made = streaming()
    told(made, lifecycle(SEA, 1, "deactivated"))
    told(made, error(25, "overflow", 1, 2))
    assert not made.doubtful
    listed(made, "KXNFLGAME", *winners())
    assert (made.open_markets(), made.doubtful) == ([SEA, DAL], [SEA]), "its orders were cancelled"


def test_a_list_that_is_older_than_the_opening_of_a_market_does_not_close_it() -> None:
    made = streaming()
    told(made, lifecycle(SEA, 1, "deactivated"))
    listed(made, "KXNFLGAME", winners()[1])
    assert not made.reopened
    told(made, lifecycle(SEA, 2, "activated"))
    assert made.reopened, "its book was no longer followed"
    told(made, snapshot(SEA, 3, [("0.5900", "1")], [("0.3500", "1")]))

    def open_by_list(seconds: float) -> list[str]:
        made.read_markets("KXNFLGAME", [encoded(markets_page(winners()[1]))], NOW + timedelta(seconds=seconds))
        return made.open_markets()

    assert open_by_list(1.0) == [SEA, DAL]
    assert made.is_streamed(SEA)
    assert open_by_list(60.0) == [DAL]
    assert not made.is_streamed(SEA)


def test_a_market_that_opened_before_statuses_were_lost_follows_lists() -> None:
    made = streaming()
    told(made, lifecycle(SEA, 1, "deactivated"))
    told(made, lifecycle(SEA, 2, "activated"))
    told(made, error(25, "overflow", 1, 3))
    listed(made, "KXNFLGAME", winners()[1])
    assert made.open_markets() == [DAL], "it may have closed since"


def test_a_lost_stream_suspends_until_lists_or_snapshots() -> None:
    made = streaming()
    lost = made.disconnected(NOW)
    assert [row["is_active"] for row in lost.quotes] == [False, False]
    page = [one | {"yes_bid_dollars": "0.2000", "yes_ask_dollars": "0.3000"} for one in winners()]
    assert prices(listed(made, "KXNFLGAME", *page)) == {
        ("moneyline", "home", None): 0.3, ("moneyline", "away", None): 0.3,
    }  # fmt: skip
    assert not made.alive(NOW).quotes, "a list is not renewed by a stream"
    assert not told(made, snapshot(SEA, 1, [], [("0.8000", "1")])).refused, "another connection has its own numbers"


@pytest.mark.parametrize("message", [lifecycle(SEA, 1, "activated"), None])
def test_books_of_a_lost_stream_do_not_come_back_to_life(message: Json | None) -> None:
    made = streaming()
    made.disconnected(NOW)
    more = made.add_targets(encoded(targets_page()), [SEATTLE], NOW) if message is None else told(made, message)
    assert not [row for row in more.quotes if row["is_active"]]
    again = listed(made, "KXNFLGAME", *winners())
    assert [row["is_active"] for row in again.quotes] == [True, True]


def one_streamed() -> KalshiMarkets:
    """The winner market of one side, whose book is that of the stream."""
    made = reader()
    listed(made, "KXNFLGAME", winners()[0])
    told(made, snapshot(SEA, 1, [("0.5900", "100.00")], [("0.3900", "200.00")]))
    return made


@pytest.mark.parametrize("level", [("1.2000", "1"), ("0.1000", "x")])
def test_a_snapshot_that_is_not_valid_is_not_taken(level: tuple[str, str]) -> None:
    made, whole = one_streamed(), [("0.5900", "100.00")]
    wrong = told(made, snapshot(SEA, 2, [*whole, level], [("0.3900", "200.00")]))
    assert [row["is_active"] for row in wrong.quotes] == [False, False]
    assert sum(wrong.refused.values()) == 1
    assert not told(made, delta(SEA, 3, "0.4000", "10.00")).quotes, "a change of an unknown book says nothing"
    again = told(made, snapshot(SEA, 4, whole, [("0.3900", "200.00")]))
    assert [row["is_active"] for row in again.quotes] == [True, True]


@pytest.mark.parametrize("no_bid", ["0.4100", "0.9000"])
def test_a_change_that_crosses_the_book_suspends_it_until_its_snapshot(no_bid: str) -> None:
    made = one_streamed()
    crossed = told(made, delta(SEA, 2, no_bid, "5.00"))
    assert [row["is_active"] for row in crossed.quotes] == [False, False]
    assert (crossed.refused, list(made.doubtful)) == ({"a book whose prices cross": 1}, [SEA])
    again = told(made, snapshot(SEA, 3, [("0.5900", "1")], [("0.3900", "1")]))
    assert ([row["is_active"] for row in again.quotes], made.doubtful) == ([True, True], [])


def test_a_crossed_snapshot_is_refused_and_requested_again_with_the_next_list() -> None:
    made = one_streamed()
    crossed = told(made, snapshot(SEA, 2, [("0.5900", "1")], [("0.4100", "1")]))
    assert ([row["is_active"] for row in crossed.quotes], made.doubtful) == ([False, False], [])
    assert crossed.refused == {"a book whose prices cross": 1}
    listed(made, "KXNFLGAME", winners()[0])
    assert list(made.doubtful) == [SEA]


def test_crossed_lists_and_order_books_are_no_prices() -> None:
    made = reader()
    crossed = listed(made, "KXNFLGAME", winners()[0] | {"yes_bid_dollars": "0.6200"}, winners()[1])
    assert crossed.refused == {"a book whose prices cross": 1}
    assert {row["market_id"] for row in crossed.quotes} == {DAL}
    made = reader()
    listed(made, "KXNFLGAME", winners()[0])
    read = made.read_order_books(encoded({"orderbook_fp": order_book([("0.6000", "1")], [("0.4000", "1")])}), NOW, SEA)
    assert ({row["is_active"] for row in read.quotes}, read.refused["a book whose prices cross"]) == ({False}, 1)


def test_a_market_that_leaves_the_lists_and_comes_back_has_no_old_book() -> None:
    """The stream does not follow it meanwhile."""
    made = streaming()
    listed(made, "KXNFLGAME")
    assert not made.is_streamed(SEA)
    back = listed(made, "KXNFLGAME", market(SEA, "0.7000", "0.6500"))
    assert prices(back) == {("moneyline", "home", None): 0.7, ("moneyline", "away", None): 0.35}


def test_what_the_stream_has_is_renewed_while_it_is_alive() -> None:
    made = streaming()
    assert {row["selection_type"] for row in made.alive(NOW).quotes} == {"home", "away"}
    assert not made.alive(NOW + timedelta(seconds=1)).quotes
    told(made, delta(SEA, 9, "0.4100", "10.00"))
    assert not made.alive(NOW + timedelta(seconds=60)).quotes, "not while it is in doubt"


def test_a_streamed_book_that_is_what_the_list_said_is_renewed_too() -> None:
    made = reader()
    listed(made, "KXNFLGAME", market(SEA, "0.6000", "0.5900"))
    first = told(made, snapshot(SEA, 1, [("0.5900", "200.25")], [("0.4000", "1000.50")]))
    renewed = {row["id"]: row for row in made.alive(NOW).quotes}
    assert not first.quotes, "nothing has changed"
    assert len(renewed) == 2


def test_a_gap_of_statuses_is_counted_as_one() -> None:
    made = streaming()
    told(made, lifecycle(SEA, 1, "activated"))
    assert told(made, lifecycle(SEA, 3, "activated")).refused == {"a gap in the statuses of markets": 1}


# ---- with other books ----


def test_prices_meet_those_of_a_sportsbook() -> None:
    """An arbitrage after the fee: Seattle costs 0.60 and 0.0168 there, Dallas pays 2.75 here."""
    rows = [
        {"sportsbook": "draftkings", "event_id": "m1", "market_type": "moneyline", "selection": pick,
         "home_team": "Seattle Seahawks", "away_team": "Dallas Cowboys", "sport": "football", "league": "nfl",
         "odds_decimal": odds, "event_start_time": START, "last_seen_at": NOW}
        for pick, odds in (("Seattle Seahawks", 1.5), ("Dallas Cowboys", 2.75))
    ]  # fmt: skip
    kalshi = [row | {"last_seen_at": NOW} for row in listed(reader(), "KXNFLGAME", *winners()).quotes]
    found = oe.find_all(oe.check_odds([*kalshi, *rows]), now=NOW)
    (arbitrage,) = found.arbitrage.to_dicts()
    assert {(leg["sportsbook"], leg["selection_type"]) for leg in arbitrage["legs"]} == {
        ("kalshi", "home"), ("draftkings", "away"),
    }  # fmt: skip
    assert arbitrage["implied_total"] == pytest.approx(100 * (0.6 + 0.07 * 0.6 * 0.4 + 1 / 2.75), abs=0.01)


# ---- depth and fees ----


def test_a_price_has_the_levels_of_the_market_that_it_comes_from() -> None:
    """Dallas's No bids are the cheapest way to back Seattle; the levels of Seattle's own market are not among them."""
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    book = [
        {
            "ticker": DAL,
            "orderbook_fp": order_book([("0.4000", "100"), ("0.3900", "50"), ("0.2000", "9")], [("0.5500", "8")]),
        }
    ]
    rows = made.read_order_books(encoded({"orderbooks": book}), NOW).quotes
    (home,) = (row for row in rows if row["selection_type"] == "home")
    got = [(level["odds_decimal"], level["stake"]) for level in home["levels"]]
    assert got == [pytest.approx(each) for each in [(1 / 0.6, 60.0), (1 / 0.61, 30.5), (1 / 0.8, 7.2)]]
    assert (home["odds_decimal"], home["max_bet"]) == got[0]
    (away,) = (row for row in rows if row["selection_type"] == "away")
    assert "levels" not in away


def fees(series: Json | None, override: Json | None = None) -> set[float | None] | Payload:
    """The own fees of the quotes of a game's winners, or what is said without quotes."""
    made = KalshiMarkets()
    page = event_page(milestone())
    page["events"] = [one | (override or {}) for one in page["events"]]
    made.add_events("KXNFLGAME", [encoded(page)], NOW)
    named(made)
    assert not made.has_fee("KXNFLGAME")
    if series is not None:
        made.add_series("KXNFLGAME", encoded({"series": series}), NOW)
        assert made.has_fee("KXNFLGAME")
    payload = listed(made, "KXNFLGAME", *winners())
    return {row.get("contract_fee") for row in payload.quotes} or payload


@pytest.mark.parametrize(
    ("series", "override", "fee"),
    [
        (None, None, None),
        ({"fee_type": "quadratic", "fee_multiplier": 1}, None, None),
        ({}, None, None),
        ({"fee_type": "quadratic_with_maker_fees", "fee_multiplier": "0.5"}, None, 0.035),
        ({"fee_type": "quadratic", "fee_multiplier": 0}, None, 0.0),
        ({}, {"fee_type_override": "quadratic", "fee_multiplier_override": 2}, 0.14),
    ],
)
def test_fees_are_those_of_the_series_or_of_the_event(series: Any, override: Any, fee: float | None) -> None:
    assert fees(series, override) == {fee}


@pytest.mark.parametrize("series", [{"fee_type": "flat"}, {"fee_type": "quadratic", "fee_multiplier": -1}])
def test_markets_whose_fee_cannot_be_calculated_are_left_out(series: Json) -> None:
    payload = fees(series)
    assert isinstance(payload, Payload)
    assert payload.refused["a market whose fee is of another form"] == 2


def test_a_fee_that_becomes_known_is_in_the_next_prices() -> None:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    series = encoded({"series": {"fee_type": "quadratic", "fee_multiplier": 0.5}})
    assert {row["contract_fee"] for row in made.add_series("KXNFLGAME", series, NOW).quotes} == {0.035}
    with pytest.raises(FeedError, match="not a payload of Kalshi"):
        made.add_series("KXNFLGAME", b"{}", NOW)


@pytest.mark.parametrize(("fractional", "contracts"), [(None, 1.0), (False, 1.0), (True, 0.01)])
def test_orders_are_of_whole_contracts_or_of_hundredths(fractional: bool | None, contracts: float) -> None:
    more = {} if fractional is None else {"fractional_trading_enabled": fractional}
    payload = listed(reader(), "KXNFLGAME", *[one | more for one in winners()])
    for row in payload.quotes:
        step = contracts / row["odds_decimal"]
        assert (row["min_bet"], row["bet_step"]) == (pytest.approx(step), pytest.approx(step))
