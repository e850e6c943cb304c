"""Polymarket: what its markets are bets on, what their books offer, and when a book is in doubt."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from support.contract_payloads import UNHEARD_OF, payloads
from support.polymarket import NFL, book, change, event, levels, match, offer, team, three_way

import oddsengine as oe
from oddsengine import catalog
from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.contract_types import NEW_FIELD
from oddsengine.feeds.decoding import number
from oddsengine.feeds.polymarket import PolymarketMarkets
from oddsengine.feeds.polymarket_events import League, read_events, read_leagues, read_page
from oddsengine.feeds.price_files import quotes_table
from oddsengine.feeds.venue_contracts import load, values_of
from oddsengine.live.engine import Engine
from oddsengine.tables.schema import OddsTable, OddsWarning

START = datetime(2026, 8, 7, 20, tzinfo=UTC)
NOW = START - timedelta(hours=3)
NFL_LEAGUE, EPL = League("nfl", "10187", "away"), League("epl", "1", "home")
CONTRACT = load("polymarket")
Row = dict[str, Any]


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def listed(
    *events: Any, league: League = NFL_LEAGUE, reader: PolymarketMarkets | None = None, now: datetime = NOW, **more: Any
) -> tuple[PolymarketMarkets, Payload]:
    reader = reader or PolymarketMarkets()
    return reader, reader.list_events([read_page(encoded(list(events)))], league, now, **more)


def bets(*events: Any, league: League = NFL_LEAGUE) -> list[tuple[Any, ...]]:
    """What is bet on by token, in the order of the events."""
    listing = read_events([read_page(encoded(list(events)))], league)
    return [
        (token, row["market_type"], row["selection"], row.get("selection_type"), row.get("line"))
        for one in listing.markets.values()
        for token, row in one.rows.items()
    ]


def quoted(payload: Payload) -> dict[str, tuple[float, float]]:
    return {row["id"]: (round(1 / row["odds_decimal"], 6), round(row["max_bet"], 6)) for row in payload.quotes}


def suspended(payload: Payload) -> set[str]:
    return {row["id"] for row in payload.quotes if row["is_active"] is False}


def table(payload: Payload) -> OddsTable:
    return quotes_table(payload.quotes, Counter(), 0)


def moneyline() -> PolymarketMarkets:
    """A moneyline with both books: 0.55 at 100 and 0.47 at 40."""
    reader, _ = listed(event(offer("moneyline")))
    read = reader.read(encoded([book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)])]), NOW)
    assert quoted(read) == {"t1": (0.55, 55.0), "t2": (0.47, 18.8)}
    return reader


# ---- events ----


def test_a_two_way_moneyline_has_the_sides_of_its_teams() -> None:
    reader, read = listed(event(offer("moneyline")))
    assert read.games[0] == ("77", "football", "nfl", "Arizona Cardinals", "Carolina Panthers", START, "upcoming")
    assert bets(event(offer("moneyline"))) == [
        ("t1", "moneyline", "Carolina Panthers", "away", None), ("t2", "moneyline", "Arizona Cardinals", "home", None),
    ]  # fmt: skip
    read = reader.read(encoded([book("t1", [], [(0.5, 10)]), book("t2")]), NOW)
    row = read.quotes[0]
    assert (row["sportsbook"], row["event_id"], row["external_event_id"]) == (
        "polymarket", "77", "nfl-car-ari-2026-08-07",
    )  # fmt: skip
    assert (row["odds_decimal"], row["market_id"], row["exchange_token_id"]) == (2.0, "0xm1", "t1")
    assert (row["event_start_time"], row["is_live"], row["last_seen_at"]) == (START, False, NOW)


def test_the_line_belongs_to_the_first_outcome() -> None:
    assert bets(event(offer("spreads", line="-2.5")))[0][2:] == ("Carolina Panthers", "away", -2.5)
    assert bets(event(offer("spreads", line="-2.5")))[1][2:] == ("Arizona Cardinals", "home", 2.5)
    turned = bets(event(offer("first_half_spreads", ("Cardinals", "Panthers"), line=1.5)))
    assert [(name, kind, line) for _, name, _, kind, line in turned] == [
        ("1st_half_point_spread", "home", 1.5), ("1st_half_point_spread", "away", -1.5),
    ]  # fmt: skip


def test_the_spread_of_a_soccer_match_may_be_a_question() -> None:
    given = offer("spreads", ("Yes", "No"), line=-1.5, question="Spread: Chelsea FC (-1.5)")
    main = match(*three_way())
    more = match(given, ident="201", slug="epl-ful-che-2026-08-24-more-markets", teams=None, gameId=88)
    assert bets(main, more, league=EPL)[-2:] == [
        ("t1", "point_spread", "Chelsea FC", "away", -1.5), ("t2", "point_spread", "Fulham FC", "home", 1.5),
    ]  # fmt: skip


def test_totals_team_totals_and_yes_no_markets() -> None:
    over = ("Over", "Under")
    main, slug = match(*three_way()), "epl-ful-che-2026-08-24-more-markets"
    hull = "Fulham FC vs. Chelsea FC: Chelsea FC O/U 1.5"
    more = match(
        offer("totals", over, "0x1", ("a", "b"), line=2.5),
        offer("soccer_team_totals", over, "0x2", ("c", "d"), line=1.5, question=hull),
        offer("both_teams_to_score", ("Yes", "No"), "0x3", ("e", "f")),
        offer("first_half_totals", ("Under", "Over"), "0x4", ("g", "h"), line="1.5"),
        ident="201", slug=slug, gameId=None,
    )  # fmt: skip
    assert bets(main, more, league=EPL)[6:] == [
        ("a", "total_points", "Over", "over", 2.5), ("b", "total_points", "Under", "under", 2.5),
        ("c", "team_total", "Chelsea FC Over", "over", 1.5), ("d", "team_total", "Chelsea FC Under", "under", 1.5),
        ("e", "both_teams_to_score", "Yes", "yes", None), ("f", "both_teams_to_score", "No", "no", None),
        ("g", "1st_half_total_points", "Under", "under", 1.5), ("h", "1st_half_total_points", "Over", "over", 1.5),
    ]  # fmt: skip
    (rows,) = [
        one.rows for one in read_events([read_page(encoded([main, more]))], EPL).markets.values() if "c" in one.rows
    ]
    assert rows["c"]["team_side"] == "away"
    assert {one.game.id for one in read_events([read_page(encoded([main, more]))], EPL).markets.values()} == {"88"}


@pytest.mark.parametrize(
    ("kind", "title", "line", "wanted"),
    [
        ("points", "Jalen Brunson: Points O/U 25.5", "25.5", ("player_points", "over", 25.5)),
        ("rebounds", "Jalen Brunson: Rebounds O/U 3.5", 3.5, ("player_rebounds", "over", 3.5)),
        ("receiving_yards", "Jalen Brunson: Receiving Yards O/U 60.5", 60.5, ("player_receiving_yards", "over", 60.5)),
        ("soccer_player_goals", "Jalen Brunson: 2+ goals", 2, ("player_goals", "over", 1.5)),
        ("anytime_touchdowns", "Jalen Brunson: Anytime Touchdown", None, ("anytime_touchdown", "yes", None)),
        ("points", "Jalen Brunson: Points under 25.5", 25.5, ("points", None, 25.5)),
        ("points", "Jalen Brunson: Points", None, ("points", None, None)),
    ],
)
def test_props_of_players(kind: str, title: str, line: Any, wanted: tuple[Any, ...]) -> None:
    given = event(offer(kind, ("Yes", "No"), groupItemTitle=title, line=line))
    listing = read_events([read_page(encoded([given]))], NFL_LEAGUE)
    (one,) = listing.markets.values()
    row = one.rows["t1"]
    assert (row["market_type"], row.get("selection_type"), row.get("line")) == wanted
    assert row.get("player_name") == (None if wanted[1] is None else "Jalen Brunson")


def test_three_questions_are_the_three_way_result() -> None:
    """A No token of a team is the other one with half a goal; that of the draw is no draw."""
    assert bets(match(*three_way()), league=EPL) == [
        ("y0", "moneyline_3way", "Chelsea FC", "away", None), ("n0", "point_spread", "Fulham FC", "home", 0.5),
        ("y1", "moneyline_3way", "Draw", "draw", None), ("n1", "draw", "No", "no", None),
        ("y2", "moneyline_3way", "Fulham FC", "home", None), ("n2", "point_spread", "Chelsea FC", "away", 0.5),
    ]  # fmt: skip
    reader, _ = listed(match(*three_way()), league=EPL)
    books = [book(f"y{at}", [], [(0.5, 10)]) for at in range(3)] + [book("n0", [(0.55, 30)]), book("n1"), book("n2")]
    assert quoted(reader.read(encoded(books), NOW)) == {
        "y0": (0.45, 13.5), "y1": (0.5, 5.0), "y2": (0.5, 5.0),
    }  # fmt: skip
    books = [book("y0", [(0.4, 30)], [(0.45, 10)]), book("n0")]
    assert quoted(reader.read(encoded(books), NOW))["n0"] == (0.6, 18.0)


@pytest.mark.parametrize("other", [False, True])
def test_three_outcomes_of_more_are_never_all_of_them(other: bool) -> None:
    """Asks that sum to less than 1 are an arbitrage only if nothing else can happen."""
    given = match(*three_way(), negRiskAugmented=not other)
    if other:
        given["markets"].append(
            offer("moneyline", ("Yes", "No"), "0xo", ("yo", "no"), groupItemTitle="Other", negRiskOther=True)
        )
    asks = [book(f"y{at}", [], [(ask, 10)]) for at, ask in enumerate((0.31, 0.31, 0.42))] + [
        book(f"n{at}") for at in range(3)
    ]

    def found(event: Any) -> int:
        reader, _ = listed(event, league=EPL)
        rows = reader.read(encoded(asks), NOW).quotes
        second = [{**row, "id": row["id"] + "x", "sportsbook": "draftkings", "odds_decimal": 2.9} for row in rows]
        return oe.find_arbitrage(table(Payload(quotes=[*rows, *second])), now=NOW).height

    assert found(match(*three_way())) == 1
    with pytest.warns(OddsWarning):
        assert found(given) == 0
    reader, read = listed(given, league=EPL)
    assert read.unmapped == {("polymarket", "moneyline_with_other"): 3}
    assert read.refused == ({'an outcome named "Other"': 1} if other else {})
    assert len(reader.read(encoded(asks), NOW).quotes) == 3, "they are served"


def test_tennis_and_fights() -> None:
    names = ("Carlos Alcaraz", "Jannik Sinner")
    tennis = event(
        offer("moneyline", names, "0x1", ("a", "b")),
        offer("tennis_set_handicap", names, "0x2", ("c", "d"), line=-1.5),
        offer("tennis_match_totals", ("Over", "Under"), "0x3", ("e", "f"), line=22.5),
        offer("tennis_first_set_winner", names, "0x4", ("g", "h")),
        offer("totals", ("Over", "Under"), "0x5", ("i", "j"), line=22.5),
        teams=[], title="US Open: Alcaraz vs Sinner", slug="atp-x",
    )  # fmt: skip
    assert [(token, *bet) for token, *bet in bets(tennis, league=League("atp", "", "home"))][::2] == [
        ("a", "moneyline", "Carlos Alcaraz", "home", None), ("c", "set_handicap", "Carlos Alcaraz", "home", -1.5),
        ("e", "total_games", "Over", "over", 22.5), ("g", "1st_set_moneyline", "Carlos Alcaraz", "home", None),
        ("i", "polymarket_totals", "Over", None, 22.5),
    ]  # fmt: skip
    fight = event(
        offer("ufc_go_the_distance", ("Yes", "No"), "0x1", ("a", "b")),
        offer("totals", ("Over", "Under"), "0x2", ("c", "d"), line=2.5),
        teams=None, title="UFC 329: Max Holloway vs. Conor McGregor (Welterweight, Main Card)", slug="ufc-x",
    )  # fmt: skip
    listing = read_events([read_page(encoded([fight]))], League("ufc", "", ""))
    assert listing.games["77"][1:5] == ("mma", "ufc", "Max Holloway", "Conor McGregor")
    assert [one[1] for one in bets(fight, league=League("ufc"))] == ["goes_the_distance"] * 2 + ["total_rounds"] * 2


def test_without_teams_the_order_of_the_title_is_the_league_s() -> None:
    given = event(offer("moneyline"), teams=[])
    for ordering, home in (("away", "Cardinals"), ("home", "Panthers")):
        listing = read_events([read_page(encoded([given]))], League("nfl", "", ordering))
        assert listing.games["77"].home == home


def test_without_teams_the_names_of_the_event_come_before_its_title() -> None:
    given = event(offer("moneyline"), teams=None, homeTeamName="Arizona Cardinals", awayTeamName="Carolina Panthers")
    for ordering in ("away", "home"):
        listing = read_events([read_page(encoded([given]))], League("nfl", "", ordering))
        assert (listing.games["77"].home, listing.games["77"].away) == ("Arizona Cardinals", "Carolina Panthers")
    assert [one[2:4] for one in bets(given)] == [("Carolina Panthers", "away"), ("Arizona Cardinals", "home")]


def test_unknown_types_keep_their_names() -> None:
    """`nrfi` is a name of the catalog, where Yes is no run; what it is here is not known."""
    reader, read = listed(
        event(
            offer("moneyline"), offer("first_punt", ("Yes", "No"), "0x2", ("a", "b")),
            offer("nrfi", ("Yes Run", "No Run"), "0x3", ("c", "d")),
            {**offer("x", ident="0x4"), "sportsMarketType": None},
        )
    )  # fmt: skip
    assert read.unmapped == {("polymarket", "first_punt"): 1, ("polymarket", "polymarket_nrfi"): 1}
    assert set(reader.tokens) == {"0xm1", "0x2", "0x3"}


def test_every_type_of_market_is_read_or_left_out_by_decision() -> None:
    """In some sport and wording: 0.7 s for 120 types in six sports and five wordings."""
    read, left = values_of("polymarket", "market_type_read"), values_of("polymarket", "market_type_left_out")
    sides, half = ("Panthers", "Cardinals"), ("Over", "Under")
    ways = (
        (sides, "Map 1 Winner", 1.5), (half, "Cardinals O/U 20.5", 20.5), (half, "Ann Bee: O/U 20.5", 20.5),
        (("Yes", "No"), "Ann Bee: 2+", None), (("Yes", "No"), "Cardinals", None),
    )  # fmt: skip
    found = set()
    for code in ("nfl", "nba", "mlb", "epl", "atp", "ufc"):
        offers = [
            offer(kind, words, f"{kind}/{at}", ("a", "b"), groupItemTitle=title, line=line)
            for kind in sorted(read | left)
            for at, (words, title, line) in enumerate(ways)
        ]
        page = read_page(encoded([event(*offers, slug=f"{code}-car-ari-2026-08-07")]))
        for ident, one in read_events([page], League(code, "1", "home")).markets.items():
            if any(catalog.market_type(row["market_type"], row["sport"]).usable for row in one.rows.values()):
                found.add(ident.partition("/")[0])
    assert not read & left
    assert found == read


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (offer("moneyline", ("Giants", "Jets")), "an outcome that is neither team"),
        (offer("spreads", line=None), "a market without its line"),
        (offer("totals", ("Over", "Under"), line="many"), "a market without its line"),
        (offer("moneyline", clobTokenIds='["t1"]'), "a market without two outcomes and two tokens"),
        (offer("moneyline", clobTokenIds="[1, 2"), "a market without two outcomes and two tokens"),
        (offer("moneyline", conditionId=17), "a market that is not valid"),
    ],
)
def test_what_cannot_be_read_is_counted(given: Any, reason: str) -> None:
    _, read = listed(event(offer("moneyline", ident="0xok", tokens=("a", "b")), given))
    assert read.refused == {reason: 1}


def test_an_event_that_is_no_game_is_none() -> None:
    futures = event(
        {**offer("x"), "sportsMarketType": None}, slug="nfl-winner", title="Who wins?", gameId=None, ident="3"
    )
    _, read = listed(event(offer("moneyline")), futures)
    assert read.refused == {"an event that is not a game of two": 1}
    assert len(read.games) == 1
    with pytest.raises(FeedError, match="not a list of events"):
        read_page(b'{"error":"x"}')
    with pytest.raises(FeedError, match="Polymarket"):
        read_page(b"<html>")


def test_an_event_without_a_number_joins_a_game_only_if_there_is_one() -> None:
    two = [event(offer("moneyline", ident=f"0x{n}", tokens=(f"a{n}", f"b{n}")), gameId=n, ident=str(n)) for n in (1, 2)]
    more = event(
        offer("totals", ("Over", "Under"), line=41.5), gameId=None, ident="3", slug=two[0]["slug"] + "-more-markets"
    )
    _, read = listed(*two, more)
    assert read.refused == {"an event of one of several games": 1}


def test_pages_with_a_cursor() -> None:
    given = {"events": [event(offer("moneyline"))], "next_cursor": "abc"}
    assert read_page(encoded(given)).cursor == "abc"
    page = read_page(encoded({**given, "events": [*given["events"], {"slug": "x"}]}))
    assert (list(page.events), page.cursor, page.refused) == (["100"], "abc", {"an event that is not valid": 1})
    assert read_page(encoded({"events": [], "next_cursor": None})).cursor == ""


def test_leagues() -> None:
    leagues = read_leagues(b'[{"sport":"NFL","tags":"1,450","series":"10187","ordering":"away"},{"sport":"x"}]')
    assert leagues["nfl"] == ("nfl", "10187", "away")
    with pytest.raises(FeedError):
        read_leagues(b'{"sport":1}')


def test_games_that_are_far_and_types_that_are_not_wanted_are_left_out() -> None:
    given = event(offer("moneyline"), offer("spreads", ident="0x2", tokens=("a", "b"), line=-1))
    assert listed(given, within=3 * 3600.0 - 1)[0].tokens == {}
    assert set(listed(given, within=3 * 3600.0)[0].tokens) == {"0xm1", "0x2"}
    assert set(listed(given, kinds=frozenset({"spreads"}))[0].tokens) == {"0x2"}


# ---- books ----


@pytest.mark.parametrize("asks", [[(".55", "10"), ("0.6", 5), (0.7, "1.5")], [(0.7, 1.5), (0.6, 5), (0.55, 10)]])
def test_levels_come_in_any_order_as_numbers_or_texts(asks: Sequence[tuple[Any, Any]]) -> None:
    reader, _ = listed(event(offer("moneyline")))
    given = book("t1", [(0.4, 1), (0.5, 7), (0.3, 9)], asks)
    assert quoted(reader.read(encoded([given, book("t2")]), NOW)) == {"t1": (0.55, 5.5), "t2": (0.5, 3.5)}
    assert number(".48") == 0.48


def test_mirrored_books_are_one_offer() -> None:
    """A bid of 0.45 for one is an ask of 0.55 for the other: the same shares, which count once."""
    reader, _ = listed(event(offer("moneyline")))
    both = [book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)])]
    assert quoted(reader.read(encoded(both), NOW))["t1"] == (0.55, 55.0)
    read = reader.read(encoded(change("t2", "BUY", "0.46", "5", ("0.46", "0.47"))), NOW)
    assert quoted(read)["t1"] == (0.54, 2.7)


def test_one_book_is_not_enough() -> None:
    reader, _ = listed(event(offer("moneyline")))
    assert reader.unread == ["t1", "t2"]
    assert reader.read(encoded(book("t1", [], [(0.55, 100)])), NOW).quotes == ()
    assert (reader.unread, list(reader.doubtful)) == (["t2"], ["t2"])
    assert quoted(reader.read_books(b"[]", ["t2"], NOW)) == {"t1": (0.55, 55.0)}, "a token without a book has none"


def test_the_size_of_a_change_is_the_new_total() -> None:
    reader = moneyline()
    read = reader.read(encoded(change("t1", "SELL", "0.55", "30", ("0.53", "0.55"))), NOW)
    assert quoted(read) == {}, "the mirrored book still has 100"
    read = reader.read(encoded(change("t2", "BUY", "0.45", "30", ("0.45", "0.47"))), NOW)
    assert quoted(read) == {"t1": (0.55, 16.5)}
    gone = [change("t1", "SELL", ".55", 0, ("0.53", "1")), change("t2", "BUY", "0.45", "0", ("0", "0.47"))]
    assert reader.read(encoded(gone), NOW).removed == ["t1"]
    assert reader.doubtful == {}


def test_messages_may_have_other_names_and_any_case() -> None:
    reader = moneyline()
    renamed = change("t1", "sell", ".54", "7")
    (level,) = renamed["price_changes"]
    level["token_id"] = level.pop("asset_id")
    assert quoted(reader.read(encoded(renamed), NOW)) == {"t1": (0.54, 3.78)}
    again = book("t1", [(".53", 40)], [(".55", 100)], 3_000)
    again["token_id"], again["type"] = again.pop("asset_id"), again.pop("event_type")
    assert quoted(reader.read(encoded([again]), NOW)) == {"t1": (0.55, 55.0)}


@pytest.mark.parametrize(
    ("levels", "is_ghost"),
    [
        (([(0.01, 9000)], [(0.99, 9000)]), True),
        (([], []), True),
        (([(0.01, 9000)], [(0.55, 9000)]), False),
    ],
)
def test_a_book_without_prices_of_a_liquid_market_is_not_believed(levels: Any, is_ghost: bool) -> None:
    reader, _ = listed(event(offer("moneyline", bestBid=0.53, bestAsk="0.55")))
    both = [book("t1", *levels), book("t2", [(0.45, 100)], [(0.47, 40)])]
    read = reader.read_books(encoded(both), ["t1", "t2"], NOW)
    assert bool(read.quotes) is not is_ghost
    assert list(reader.doubtful) == (["t1"] if is_ghost else [])
    assert read.refused == ({"an empty book of a liquid market": 1} if is_ghost else {})


def test_a_book_without_prices_is_believed_where_the_list_has_none_either() -> None:
    reader, _ = listed(event(offer("moneyline", bestBid=0.01, bestAsk=0.99)))
    both = [book("t1", [(0.01, 9)], [(0.99, 9)]), book("t2", [(0.01, 9)], [(0.99, 9)])]
    assert quoted(reader.read_books(encoded(both), ["t1", "t2"], NOW)) == {"t1": (0.99, 8.91), "t2": (0.99, 8.91)}


def test_the_fewest_shares_and_the_delay_in_play_go_with_the_price() -> None:
    reader, _ = listed(event(offer("moneyline", orderMinSize="5", secondsDelay=3)))
    reader.read(encoded([book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)])]), NOW)
    rows = {row["id"]: row for row in reader.alive(NOW).quotes}
    assert {key: (row["min_bet"], row["bet_delay"]) for key, row in rows.items()} == {
        "t1": (pytest.approx(2.75), 3.0), "t2": (pytest.approx(2.35), 3.0),
    }  # fmt: skip
    table(reader.alive(NOW + timedelta(seconds=60)))
    unknown, _ = listed(event(offer("moneyline", orderMinSize=None, secondsDelay="soon")))
    unknown.read(encoded([book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)])]), NOW)
    assert not [row for row in unknown.alive(NOW).quotes if "min_bet" in row or "bet_delay" in row]


def test_the_earlier_form_of_changes() -> None:
    reader = moneyline()
    old = {
        "event_type": "price_change", "asset_id": "t1", "market": "0xm1", "timestamp": "2000", "hash": "0x",
        "changes": [{"price": "0.54", "side": "SELL", "size": "10"}],
    }  # fmt: skip
    assert quoted(reader.read(encoded(old), NOW)) == {"t1": (0.54, 5.4)}


def test_a_best_price_that_is_not_ours_suspends_until_a_book_arrives() -> None:
    for message in (
        change("t1", "BUY", "0.52", "10", ("0.53", "0.54")),
        {"event_type": "best_bid_ask", "asset_id": "t1", "best_bid": "0.53", "best_ask": "0.54", "timestamp": "2000"},
    ):
        reader = moneyline()
        read = reader.read(encoded(message), NOW)
        assert suspended(read) == {"t1", "t2"}, "both outcomes"
        assert list(reader.doubtful) == ["t1"]
        older = book("t1", [(0.53, 40)], [(0.55, 100)], stamp=1_999)
        assert reader.read_books(encoded([older]), ["t1"], NOW).quotes == ()
        assert list(reader.doubtful) == ["t1"], "a book from before the message is no answer"
        newer = book("t1", [(0.53, 40)], [(0.54, 20)], stamp=2_000)
        read = reader.read_books(encoded([newer]), ["t1"], NOW)
        assert quoted(read) == {"t1": (0.54, 10.8), "t2": (0.47, 18.8)}
        assert suspended(read) == set()


def test_an_older_book_with_the_best_prices_of_the_message_is_taken() -> None:
    reader = moneyline()
    reader.read(encoded(change("t1", "BUY", "0.52", "10", ("0.53", "0.54"))), NOW)
    read = reader.read_books(encoded([book("t1", [(0.53, 40)], [(0.54, 20)], stamp=1_990)]), ["t1"], NOW)
    assert quoted(read)["t1"] == (0.54, 10.8)


def test_messages_older_than_the_book_change_nothing() -> None:
    reader = moneyline()
    assert reader.read(encoded(change("t1", "SELL", "0.54", "10", ("0.53", "0.54"), stamp=999)), NOW).quotes == ()
    assert reader.read(encoded(book("t1", [], [(0.3, 1)], stamp=999)), NOW).quotes == ()
    assert reader.doubtful == {}


def milliseconds(ahead: float) -> int:
    """A stamp so many seconds ahead of our clock."""
    return int((NOW + timedelta(seconds=ahead)).timestamp() * 1000)


@pytest.mark.parametrize("ahead", [3.0, 20.0, 10 * 365 * 86_400.0])
@pytest.mark.parametrize("rest", [False, True])
def test_a_stamp_ahead_of_our_clock_orders_nothing(ahead: float, rest: bool) -> None:
    reader = moneyline()

    def take(message: Any) -> Payload:
        return reader.read_books(encoded([message]), ["t1"], NOW) if rest else reader.read(encoded(message), NOW)

    assert quoted(take(book("t1", [(0.53, 40)], [(0.54, 10)], milliseconds(ahead))))["t1"] == (0.54, 5.4)
    change_ahead = change("t1", "SELL", "0.54", "0", ("0.53", "1"), milliseconds(ahead))
    assert quoted(reader.read(encoded(change_ahead), NOW))["t1"] == (0.55, 55.0), "the mirrored bid"
    assert quoted(take(book("t1", [(0.53, 40)], [(0.545, 10)], milliseconds(-1.0))))["t1"] == (0.545, 5.45)
    assert take(book("t1", [], [(0.3, 1)], milliseconds(-2.0))).quotes == (), "true stamps order again"


def test_while_our_clock_is_behind_messages_count_as_they_arrive() -> None:
    reader = moneyline()
    for second, ask in enumerate((0.54, 0.545, 0.54)):
        given = book("t1", [(0.53, 40)], [(ask, 10)], milliseconds(3600.0 - second))
        assert quoted(reader.read(encoded(given), NOW))["t1"][0] == ask


def test_two_books_that_cross_each_other_are_no_price_until_they_do_not() -> None:
    """Each for itself could stand, but who buys both pays less than the dollar that one of them is worth."""
    reader, _ = listed(event(offer("moneyline")))
    halves = [book("t1", [(0.2, 40)], [(0.3, 100)]), book("t2", [(0.2, 40)], [(0.3, 100)])]
    assert reader.read(encoded(halves), NOW).quotes == ()
    assert (set(reader.crossed), reader.doubtful) == ({"t1", "t2"}, {})
    assert reader.read_books(encoded(halves), ["t1", "t2"], NOW).refused == {
        "a market whose two books cross each other": 1
    }
    reader.read(encoded(book("t2", [(0.69, 40)], [(0.8, 100)], 2_000)), NOW)
    assert (reader.crossed, len(reader.alive(NOW).quotes)) == ({}, 2)
    crossed = reader.read(encoded(book("t2", [(0.81, 40)], [(0.9, 100)], 3_000)), NOW)
    assert suspended(crossed) == {"t1", "t2"}, "bids of 0.20 and 0.81"
    reader.read(encoded({"event_type": "market_resolved", "market": "0xm1"}), NOW)
    assert reader.crossed == {}


def test_a_book_that_changes_between_two_responses_without_a_message_is_missed() -> None:
    reader = moneyline()
    assert reader.read_at("t1") is None
    both = [book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)])]
    reader.read_books(encoded(both[:1]), ["t1"], NOW)
    assert reader.read_at("t1") is None, "the price is that of both books"
    reader.read_books(encoded(both), ["t1", "t2"], NOW + timedelta(seconds=1))
    assert (reader.read_at("t1"), reader.missed) == (NOW + timedelta(seconds=1), {})
    reader.read(encoded(change("t1", "BUY", "0.53", "41")), NOW)
    assert reader.read_at("t1") is None, "a message has changed it"
    reader.read_books(encoded([book("t1", [(0.53, 41)], [(0.55, 100)], 1_500)]), ["t1"], NOW)
    assert reader.read_at("t1") == NOW, "the same levels with an earlier stamp"
    reader.read_books(encoded([book("t1", [(0.53, 42)], [(0.55, 100)], 3_000)]), ["t1"], NOW)
    assert list(reader.missed) == ["t1"]
    reader.missed.clear()
    told = {"event_type": "best_bid_ask", "asset_id": "t1", "best_bid": "0.50", "best_ask": "0.56", "timestamp": "3001"}
    reader.read(encoded(told), NOW)
    reader.read_books(encoded([book("t1", [(0.50, 42)], [(0.56, 100)], 3_002)]), ["t1"], NOW)
    assert (reader.missed, reader.doubtful) == ({}, {}), "a message has said that it changed"


@pytest.mark.parametrize(
    "message",
    [
        book("t1", [(0.56, 1)], [(0.55, 1)], stamp=3_000),  # bid above ask
        book("t1", [], [("x", 1)], stamp=3_000),
        book("t1", [], [(0.5, "-1")], stamp=3_000),
        change("t1", "BUY", "1.2", "5"),
        change("t1", "HOLD", "0.5", "5"),
        change("t1", "BUY", "0.55", "5"),  # meets our ask
        {"event_type": "price_change", "price_changes": [{"asset_id": "t1", "price": []}], "timestamp": "2"},
        {"event_type": "price_change", "market": "0xm1", "price_changes": 3},
        {"event_type": "book", "asset_id": "t1", "bids": "none"},
        {"event_type": "tick_size_change", "asset_id": "t1", "old_tick_size": "0.001", "new_tick_size": "0.01"},
    ],
)
def test_what_makes_no_sense_puts_the_book_in_doubt(message: Any) -> None:
    reader = moneyline()
    assert suspended(reader.read(encoded([message]), NOW)) == {"t1", "t2"}
    assert "t1" in reader.doubtful


@pytest.mark.parametrize("name", ["timestamp", "best_bid"])
def test_numbers_beyond_all_limits_are_none(name: str) -> None:
    reader = moneyline()
    text = b'{"event_type":"best_bid_ask","asset_id":"t1","best_ask":"0.55","%s":1%s}' % (name.encode(), b"0" * 400)
    assert reader.read(text, NOW).removed == []


def test_a_token_belongs_to_one_market() -> None:
    """A second one that names it, closed or not, neither takes its book away nor its price."""
    reader = moneyline()
    first = offer("moneyline")
    for more in ({}, {"closed": True}):
        _, again = listed(event(first, offer("moneyline", ident="0xm2") | more), reader=reader)
        assert again.refused == {"a market with the tokens of another": 1}
        assert reader.tokens == {"0xm1": ("t1", "t2")}
    read = reader.read(encoded([change("t1", "SELL", "0.54", "5", ("0.53", "0.54"))]), NOW)
    assert quoted(read) == {"t1": (0.54, 2.7)}


def test_a_finer_grid_and_other_messages_change_nothing() -> None:
    reader = moneyline()
    finer = {"event_type": "tick_size_change", "asset_id": "t1", "old_tick_size": "0.01", "new_tick_size": "0.001"}
    trade = {"event_type": "last_trade_price", "asset_id": "t1", "price": "0.1", "size": "3", "side": "BUY"}
    assert reader.read(encoded([finer, trade, change("unknown", "BUY", "0.1", "1"), book("unknown")]), NOW).quotes == ()
    assert reader.doubtful == {}
    assert not reader.unlisted
    new = {
        "event_type": "new_market",
        "assets_ids": ["9"],
        "sports_market_type": "spreads",
        "line": "",
        "active": False,
    }
    reader.read(encoded({**new, "sports_market_type": ""}), NOW)
    assert not reader.unlisted
    reader.read(encoded(new), NOW)
    assert reader.unlisted


@pytest.mark.parametrize("data", [b"PONG?", b"[1]", b'"x"', b'{"event_type":', b"\xff"])
def test_what_is_no_message_is_told_and_changes_nothing(data: bytes) -> None:
    reader = moneyline()
    with pytest.raises(FeedError, match="Polymarket"):
        reader.read(data, NOW)
    assert reader.doubtful == {}


def test_a_resolved_market_is_gone() -> None:
    reader = moneyline()
    resolved = {"event_type": "market_resolved", "market": "0xm1", "assets_ids": ["t1", "t2"], "winning_asset_id": "t1"}
    assert reader.read(encoded(resolved), NOW).removed == ["t1", "t2"]
    assert reader.tokens == {}


# ---- status ----


@pytest.mark.parametrize(
    "status", [{"active": False}, {"acceptingOrders": False}, {"enableOrderBook": False}, {"acceptingOrders": None}]
)
def test_a_market_that_takes_no_orders_is_suspended(status: Row) -> None:
    reader = moneyline()
    _, read = listed(event(offer("moneyline", **status)), reader=reader)
    assert suspended(read) == {"t1", "t2"}
    assert (reader.tokens, reader.doubtful) == ({}, {})
    assert reader.read(encoded(book("t1", [], [(0.2, 5)], stamp=9_000)), NOW).quotes == ()
    _, read = listed(event(offer("moneyline")), reader=reader)
    assert list(reader.doubtful) == ["t1", "t2"], "it was not followed meanwhile"


def test_a_game_that_has_ended_is_suspended() -> None:
    """Its markets stay open until somebody says who has won."""
    reader = moneyline()
    _, read = listed(event(offer("moneyline"), ended=True), reader=reader)
    assert suspended(read) == {"t1", "t2"}
    assert (read.games[0].status, reader.tokens) == ("ended", {})


def test_a_closed_market_is_gone_although_it_accepts_orders() -> None:
    reader = moneyline()
    _, read = listed(event(offer("moneyline", closed=True, acceptingOrders=True)), reader=reader)
    assert read.removed == ["t1", "t2"]
    assert reader.tokens == {}


def test_what_is_not_listed_any_more_is_gone() -> None:
    reader = moneyline()
    assert listed(league=EPL, reader=reader)[1].removed == [], "another league"
    assert listed(event(), reader=reader)[1].removed == ["t1", "t2"]


def test_the_start_suspends_books_that_are_cleared_then() -> None:
    reader = moneyline()
    assert suspended(reader.alive(START - timedelta(seconds=1))) == set()
    read = reader.alive(START)
    assert suspended(read) == {"t1", "t2"}
    assert {row["is_live"] for row in read.quotes} == {True}
    later = START + timedelta(seconds=5)
    fresh = [book("t1", [], [(0.6, 1)], 5_000), book("t2", [(0.4, 1)], [], 5_000)]
    read = reader.read_books(encoded(fresh), ["t1", "t2"], later)
    assert [(row["id"], row["is_live"], row["is_active"]) for row in read.quotes] == [("t1", True, True)]
    assert read.removed == ["t2"]
    assert suspended(reader.alive(later + timedelta(minutes=1))) == set(), "only once"


def test_the_start_of_a_market_that_keeps_its_orders_makes_it_live() -> None:
    reader, _ = listed(event(offer("moneyline", clearBookOnStart=False)))
    reader.read(encoded([book("t1", [], [(0.55, 1)]), book("t2")]), NOW)
    (row,) = reader.alive(START).quotes
    assert (row["is_live"], row["is_active"]) == (True, True)


def test_a_start_that_moves_is_followed() -> None:
    reader = moneyline()
    listed(event(offer("moneyline", gameStartTime="2026-08-07 21:00:00+00")), reader=reader)
    assert suspended(reader.alive(START)) == set()
    assert suspended(reader.alive(START + timedelta(hours=1))) == {"t1", "t2"}


def test_a_connection_that_fails_suspends_and_the_next_begins_anew() -> None:
    reader = moneyline()
    reader.read(encoded(change("t1", "BUY", "0.54", "10", ("0.54", "0.55"), stamp=8_000)), NOW)
    assert suspended(reader.doubt(["t1", "t2", "unknown"], NOW)) == {"t1", "t2"}
    both = [book("t1", [(0.53, 40)], [(0.55, 100)], 7_000), book("t2", [(0.45, 100)], [(0.47, 40)], 7_000)]
    assert quoted(reader.read(encoded(both), NOW)) == {"t1": (0.55, 55.0), "t2": (0.47, 18.8)}


def test_prices_are_renewed_while_the_stream_is_alive() -> None:
    reader = moneyline()
    assert {row["id"] for row in reader.alive(NOW).quotes} == {"t1", "t2"}
    assert reader.alive(NOW + timedelta(seconds=1)).quotes == ()


@pytest.mark.parametrize(
    ("said", "fee"),
    [
        ({"feeSchedule": {"rate": "0.05", "exponent": 1}}, 0.05),
        ({"feeSchedule": {"rate": 0.05}, "feesEnabled": False}, 0.0),
        ({"feeSchedule": None}, None),
        ({"feeSchedule": None, "feesEnabled": None}, None),
        ({"feeSchedule": None, "feesEnabled": False}, 0.0),
        ({"feeSchedule": {"rate": 0.03}}, None),
    ],
)
def test_a_fee_other_than_the_catalog_s_is_that_of_the_market(said: Row, fee: float | None) -> None:
    listing = read_events([read_page(encoded([event(offer("moneyline", **said))]))], NFL_LEAGUE)
    (market,) = listing.markets.values()
    assert {row.get("contract_fee") for row in market.rows.values()} == {fee}


@pytest.mark.parametrize("schedule", [{"rate": 0.05, "exponent": 2}, {"rate": "x"}, {"rate": 1.5}, {}])
def test_a_market_whose_fee_cannot_be_calculated_is_left_out(schedule: Row) -> None:
    listing = read_events([read_page(encoded([event(offer("moneyline", feeSchedule=schedule))]))], NFL_LEAGUE)
    assert (listing.markets, listing.refused) == ({}, {"a market whose fee is of another form": 1})


def test_levels_are_those_of_both_books_but_not_their_sum() -> None:
    """The mirrored book has the same orders."""
    reader, _ = listed(event(offer("moneyline")))
    both = [book("t1", [(0.53, 40)], [(0.55, 100), (0.57, 30)]), book("t2", [(0.45, 100), (0.42, 9)], [(0.47, 40)])]
    rows = {row["id"]: row for row in reader.read(encoded(both), NOW).quotes}
    got = [(1.0 / level["odds_decimal"], level["stake"]) for level in rows["t1"]["levels"]]
    assert got == [pytest.approx(each) for each in [(0.55, 55.0), (0.57, 17.1), (0.58, 5.22)]]
    assert "levels" not in rows["t2"]


def test_asks_are_offers_and_no_mid_prices() -> None:
    """Two mirrored books whose best prices leave a gap of two cents; the catalog has the fee."""
    reader, _ = listed(event(offer("moneyline")))
    both = [book("t1", [(0.53, 40)], [(0.55, 100)]), book("t2", [(0.45, 100)], [(0.47, 40)])]
    rows = reader.read(encoded(both), NOW).quotes
    second = [{**row, "id": row["id"] + "x", "sportsbook": "draftkings", "odds_decimal": 1.9} for row in rows]
    odds = table(Payload(quotes=[*rows, *second]))
    assert odds.rejected.height == 0
    engine = Engine()
    engine.step(quotes=[*rows, *second], now=NOW)
    assert engine.rejected_counts() == {}


def test_the_teams_of_an_event_have_several_names() -> None:
    for names in (("CAR", "ARI"), ("Carolina Panthers", "Arizona Cardinals"), ("Panthers", "Arizona Cardinals")):
        assert [bet[3] for bet in bets(event(offer("moneyline", names)))] == ["away", "home"]
    alike = [team("New York Giants", "home", "New York"), team("New York Jets", "away", "New York")]
    _, read = listed(event(offer("moneyline", ("New York", "Jets")), teams=alike))
    assert read.refused == {"an outcome that is neither team": 1}
    assert NFL[0]["ordering"] == "home"
    assert levels((1, 2)) == [{"price": "1", "size": "2"}]


# ---- payloads made from the contract ----


def test_our_exchange_answers_as_the_contract_says() -> None:
    page = {"events": [event(offer("moneyline"), *three_way())], "next_cursor": "x"}
    messages = [
        book("t1", [(0.53, 40)], [("0.55", 100)]), change("t1", "BUY", "0.5", "1", ("0.5", "0.55")),
        [{"event_type": "best_bid_ask", "asset_id": "t1", "best_bid": "0.5", "best_ask": "0.6", "timestamp": "3"}],
    ]  # fmt: skip
    for name, document in (("events_by_cursor", page), *(("frame", message) for message in messages)):
        assert [one for one in CONTRACT.unknown(name, document) if one.kind != NEW_FIELD] == []


def test_every_side_of_the_contract_is_read_and_no_other() -> None:
    for side in values_of("polymarket", "side"):
        assert not moneyline().read(encoded(change("t1", side, "0.50", "5")), NOW).refused
    assert moneyline().read(encoded(change("t1", UNHEARD_OF, "0.50", "5")), NOW).refused.total() == 1


@given(payloads(CONTRACT, "events_by_cursor"), payloads(CONTRACT, "books"), payloads(CONTRACT, "frame"))
def test_payloads_of_the_contract_are_read(page: Any, books: Any, frame: Any) -> None:
    reader = moneyline()
    with suppress(FeedError):
        reader.list_events([read_page(encoded(page))], NFL_LEAGUE, NOW)
        read = reader.read_books(encoded(books), ["t1", "t2"], NOW)
        for row in (*read.quotes, *reader.read(encoded(frame), NOW).quotes):
            assert row["odds_decimal"] > 1.0


@pytest.mark.parametrize("name", ["asset_id", "token_id"])
def test_an_invalid_change_doubts_its_book_whatever_its_token_is_called(name: str) -> None:
    reader = moneyline()
    strange = {"event_type": "price_change", "price_changes": [{name: "t1", "price": "0.5", "size": [], "side": "BUY"}]}
    payload = reader.read(encoded(strange), NOW)
    assert (suspended(payload), list(reader.doubtful)) == ({"t1", "t2"}, ["t1"])
