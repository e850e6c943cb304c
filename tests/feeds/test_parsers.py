"""What every source's payload says, and what its silence does."""

import io
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl
import pytest
from feeds.test_samples import (
    ASKED,
    DRAFTKINGS,
    FEATURED,
    FIXTURES,
    FRAMES,
    IMAGE,
    LINES,
    MARKETS,
    META_PAGE,
    PAGE,
    PAST,
    PROPS,
    ROWS,
    SEASON,
    STREAM,
    TABLE,
    definition,
    encoded,
    game,
    ladder,
    maker,
    mcm,
    odds,
    optic_frame,
    optic_row,
    outcome,
)

from oddsengine import Engine
from oddsengine.feeds import FeedError, Payload, football_data, table
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.betfair_format import SPORTS, event_types, market_types, meaning, read_catalogue
from oddsengine.feeds.node_api import InterfaceStream, read_page
from oddsengine.feeds.optic import FORMATS, OpticOdds
from oddsengine.feeds.sse_parser import EventParser, ServerSentEvent
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Turn

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
EVENT = FEATURED[0]["id"]
Row = dict[str, Any]


def by(payload: Payload, *fields: str) -> dict[Any, Row]:
    """Quotes by some of their fields."""
    return {tuple(row.get(name) for name in fields): row for row in payload.quotes}


def sides(payload: Payload) -> set[tuple[Any, ...]]:
    return {
        (row["sportsbook"], row["market_type"], row["selection"], row.get("line"), row.get("odds_decimal"))
        for row in payload.quotes
    }


# ---- The Odds API ----


def api(payload: Any, asked: RequestScope = ASKED, reader: TheOddsApi | None = None) -> Payload:
    return (reader or TheOddsApi()).read(encoded(payload), asked)


def test_odds_api_names_markets_and_lines() -> None:
    read = api(FEATURED)
    assert sides(read) == {
        ("draftkings", "moneyline", "Los Angeles Lakers", None, 2.6),
        ("draftkings", "moneyline", "Boston Celtics", None, 1.54),
        ("draftkings", "point_spread", "Boston Celtics", -4.5, 1.91),
        ("draftkings", "point_spread", "Los Angeles Lakers", 4.5, 1.91),
        ("draftkings", "total_points", "Over", 228.5, 1.87),
        ("draftkings", "total_points", "Under", 228.5, 1.95),
        ("betmgm", "moneyline", "Boston Celtics", None, 1.57),
        ("betmgm", "moneyline", "Los Angeles Lakers", None, 2.5),
    }
    (played,) = read.games
    assert played[:5] == (EVENT, "basketball", "nba", "Boston Celtics", "Los Angeles Lakers")
    assert played.start == datetime(2026, 2, 9, 0, 30, tzinfo=UTC)
    assert read.quotes[0]["last_seen_at"] == datetime(2026, 2, 8, 17, 59, 40, tzinfo=UTC)
    assert not read.unmapped
    assert not read.refused


def test_odds_api_outcome_order_means_nothing() -> None:
    turned = msgspec.json.decode(encoded(FEATURED))
    for each in turned[0]["bookmakers"]:
        for offer in each["markets"]:
            offer["outcomes"].reverse()
    assert sides(api(turned)) == sides(api(FEATURED))
    assert by(api(turned), "id").keys() == by(api(FEATURED), "id").keys()


def test_odds_api_props_know_player_team_and_links() -> None:
    read = by(api(PROPS), "market_type", "selection")
    over = read["player_points", "Over"]
    assert (over["player_name"], over["line"], over["selection_id"], over["max_bet"]) == (
        "Jayson Tatum",
        27.5,
        "a1",
        500.0,
    )
    assert read["player_points", "Under"]["deep_link"] == "https://fanduel.example/slip?1"
    team = read["team_total", "Boston Celtics Over"]
    assert team["team_side"] == "home"
    assert "player_name" not in team


def test_odds_api_american_prices() -> None:
    lakers = [game(maker("fanduel", h2h=[outcome("Los Angeles Lakers", 160), outcome("Boston Celtics", -190)]))]
    for reader in (TheOddsApi(american=True), TheOddsApi()):
        read = reader.read(encoded(lakers), ASKED)
        assert {row["odds_american"] for row in read.quotes} == {160.0, -190.0}
    with pytest.raises(FeedError, match=r"returned American odds \(-190\); expected decimal odds"):
        api(lakers, reader=TheOddsApi(american=False))
    even = [game(maker("fanduel", h2h=[outcome("Los Angeles Lakers", 1.91), outcome("Boston Celtics", 1.91)]))]
    with pytest.raises(FeedError, match=r"returned decimal odds \(1\.91\); expected American odds"):
        api(even, reader=TheOddsApi(american=True))
    assert api([game(maker("fanduel", h2h=[outcome("Boston Celtics", 1.0)]))]).refused == {"an invalid price": 1}


@pytest.mark.parametrize("field", ["home_team", "id"])
def test_odds_api_texts_have_a_bound(field: str) -> None:
    long = msgspec.json.decode(encoded(FEATURED))
    read = api([{**long[0], field: "A" * 1001}, {**long[0], "id": "other"}])
    assert [one.id for one in read.games] == ["other"]
    assert read.refused == {"an event that is not valid": 1}


def test_odds_api_past_has_its_moment() -> None:
    assert api(PAST).moment == NOW
    assert sides(api(PAST)) == sides(api(FEATURED))
    bare = msgspec.json.decode(encoded(PAST))
    for each in bare["data"][0]["bookmakers"]:
        del each["last_update"]
        for offer in each["markets"]:
            del offer["last_update"]
    assert {row["last_seen_at"] for row in api(bare).quotes} == {NOW}


def test_odds_api_updates_after_now_count_as_now() -> None:
    """So a game does not begin with a wrong stamp."""
    ahead = msgspec.json.decode(encoded(FEATURED))
    for each in ahead[0]["bookmakers"]:
        each["last_update"] = "2036-02-08T12:00:00Z"
        for offer in each["markets"]:
            offer["last_update"] = "2036-02-08T12:00:00Z"
    start = datetime.fromisoformat(ahead[0]["commence_time"])
    read = TheOddsApi().read(encoded(ahead), ASKED, start - timedelta(hours=1)).quotes
    assert {(row["last_seen_at"], row["is_live"]) for row in read} == {(start - timedelta(hours=1), False)}


def test_odds_api_live_is_what_is_updated_after_the_start() -> None:
    begun = [game(DRAFTKINGS, commence_time="2026-02-08T17:59:40Z")]
    assert all(row["is_live"] for row in api(begun).quotes)
    assert not any(row["is_live"] for row in api(FEATURED).quotes)
    assert all(row["is_live"] for row in api([game(DRAFTKINGS, commence_time=1770573000)]).quotes)


def test_odds_api_silence_is_gone_only_where_it_was_asked() -> None:
    reader = TheOddsApi()
    everything = {row["id"]: row for row in api(FEATURED, reader=reader).quotes}
    props = api(PROPS, RequestScope.of(["player_points", "team_totals"], events=[EVENT]), reader)
    assert props.removed == []
    only = [game(maker("draftkings", h2h=DRAFTKINGS["markets"][0]["outcomes"]))]
    # Moneylines were asked for: betmgm's are gone, draftkings' spreads and totals are not spoken of.
    gone = api(only, RequestScope.of(["h2h"], events=[EVENT]), reader).removed
    assert {(everything[i]["sportsbook"], everything[i]["market_type"]) for i in gone} == {("betmgm", "moneyline")}
    # One book was asked for.
    gone = api([game()], RequestScope.of(MARKETS, events=[EVENT], books=["fanduel"]), reader).removed
    assert gone == []
    # The whole sport was asked for, and the event is not there any more: all but the props are gone.
    gone = api([], ASKED, reader).removed
    assert {everything[i]["market_type"] for i in gone} == {"moneyline", "point_spread", "total_points"}
    assert len(gone) == 6
    assert api([], ASKED, reader).removed == []
    assert len(api(game(), RequestScope.of(["player_points", "team_totals"], events=[EVENT]), reader).removed) == 4


def test_odds_api_another_sport_says_nothing() -> None:
    reader = TheOddsApi()
    api(FEATURED, reader=reader)
    assert api([], RequestScope.of(MARKETS, sport="icehockey_nhl"), reader).removed == []
    assert api([], RequestScope.of(MARKETS), reader).removed == []


def test_odds_api_a_moved_line_is_another_price() -> None:
    reader = TheOddsApi()
    api(FEATURED, reader=reader)
    moved = msgspec.json.decode(encoded(FEATURED))
    for side in moved[0]["bookmakers"][0]["markets"][1]["outcomes"]:
        side["point"] = 5.5 if side["point"] > 0 else -5.5
    read = api(moved, reader=reader)
    assert len(read.removed) == 2
    assert all("/spreads/" in given for given in read.removed)
    assert not set(read.removed) & {row["id"] for row in read.quotes}


def test_odds_api_complete_only_when_all_markets_were_asked_for() -> None:
    reader = TheOddsApi(markets=[*MARKETS, "player_points"])
    assert api(FEATURED, reader=reader).complete == []
    whole = api(FEATURED, RequestScope.of([*MARKETS, "player_points"]), reader)
    assert sorted(whole.complete) == [("betmgm", EVENT), ("draftkings", EVENT)]
    assert api(FEATURED, RequestScope.of([*MARKETS, "player_points"])).complete == []


def test_odds_api_a_part_that_does_not_read_removes_nothing() -> None:
    reader = TheOddsApi(markets=MARKETS)
    api(FEATURED, reader=reader)
    broken = msgspec.json.decode(encoded(FEATURED))
    broken[0]["bookmakers"][0]["markets"][0]["outcomes"][0]["price"] = "soon"
    read = api(broken, reader=reader)
    assert read.refused == {"an outcome that is not valid": 1}
    assert len(read.quotes) == 7
    assert read.removed == []
    assert read.complete == []
    assert api(FEATURED, reader=reader).removed == []


def test_odds_api_regions_of_one_book_do_not_mix() -> None:
    both = [
        game(
            maker("unibet_uk", h2h=[outcome("Boston Celtics", 1.5)]),
            maker("unibet_eu", h2h=[outcome("Boston Celtics", 1.6)]),
        )
    ]
    read = api(both)
    assert [(row["sportsbook"], row["odds_decimal"]) for row in read.quotes] == [("unibet", 1.6)]
    both[0]["bookmakers"].reverse()
    assert sides(api(both)) == sides(read)
    assert read.refused == {"another region of a book": 1}


def test_odds_api_lays_of_two_outcomes_are_bets_on_the_other() -> None:
    back = [
        outcome("Boston Celtics", 1.5) | {"bet_limit": 90.0},
        outcome("Los Angeles Lakers", 2.9) | {"bet_limit": 80.0},
    ]
    lay = [outcome("Boston Celtics", 1.51), outcome("Los Angeles Lakers", 2.96)]
    read = api([game(maker("betfair_ex_uk", h2h=back, h2h_lay=lay, spreads=[]))])
    rows = {row["selection"]: row for row in read.quotes}
    assert {row["market_type"] for row in read.quotes} == {"moneyline"}
    assert (rows["Boston Celtics"]["odds_decimal"], rows["Boston Celtics"].get("max_bet")) == (
        pytest.approx(2.96 / 1.96), None,
    )  # fmt: skip
    assert rows["Los Angeles Lakers"]["odds_decimal"] == pytest.approx(max(2.9, 1.51 / 0.51))
    assert read.refused == {}
    # Three outcomes of basketball, or only one of two: lays stay what they are, of no market that is compared.
    three = [*back, outcome("Draw", 13.0)]
    for backs, lays in ((three, [*lay, outcome("Draw", 14.0)]), (back, lay[:1])):
        read = api([game(maker("betfair_ex_uk", h2h=backs, h2h_lay=lays))])
        assert {row["odds_decimal"] for row in read.quotes if row["market_type"] != "h2h_lay"} == {
            each["price"] for each in backs
        }


def test_odds_api_lays_of_lines_are_bets_on_the_other_side_of_the_line() -> None:
    def over(line: float, price: float) -> Row:
        return outcome("Over", price) | {"point": line}

    def under(line: float, price: float) -> Row:
        return outcome("Under", price) | {"point": line}

    home, away = "Boston Celtics", "Los Angeles Lakers"
    offered = maker(
        "betfair_ex_uk",
        alternate_totals=[over(2.5, 1.9), under(2.5, 2.0), over(3.5, 3.0), under(3.5, 1.4), over(1.5, 1.2)],
        alternate_totals_lay=[under(2.5, 2.02), over(2.5, 1.92), over(3.5, 3.3), under(1.5, 5.0), over(1.5, 1.3)],
        alternate_asian_handicap=[outcome(home, 1.9) | {"point": -0.5}, outcome(away, 2.0) | {"point": 0.5}],
        alternate_asian_handicap_lay=[outcome(home, 1.92) | {"point": -0.5}, outcome(away, 2.3) | {"point": 0.5}],
        btts_lay=[outcome("Yes", 1.9), outcome("No", 2.2)],
    )
    read = api([game(offered, sport_key="soccer_epl")])
    names = ("market_type", "selection", "line")
    found = {tuple(row.get(name) for name in names): row["odds_decimal"] for row in read.quotes}
    assert found == pytest.approx(
        {
            ("total_points", "Over", 2.5): 2.02 / 1.02, ("total_points", "Under", 2.5): 1.92 / 0.92,
            ("asian_handicap", home, -0.5): 1.9, ("asian_handicap", away, 0.5): 1.92 / 0.92,
            # Lines without all four prices stay what they are, and so do lays without backs.
            ("total_points", "Over", 3.5): 3.0, ("total_points", "Under", 3.5): 1.4, ("total_points", "Over", 1.5): 1.2,
            ("alternate_totals_lay", "Over", 3.5): 3.3, ("alternate_totals_lay", "Under", 1.5): 5.0,
            ("alternate_totals_lay", "Over", 1.5): 1.3, ("btts_lay", "Yes", None): 1.9, ("btts_lay", "No", None): 2.2,
        }
    )  # fmt: skip
    assert not read.unmapped
    # A market that is listed twice is none of lays.
    twice = {"key": "alternate_totals", "outcomes": [over(4.5, 5.0), under(4.5, 1.1)]}
    offered["markets"] = [twice, *offered["markets"][:1]]
    again = api([game(offered, sport_key="soccer_epl")]).quotes
    assert {row["line"] for row in again} == {1.5, 2.5, 3.5, 4.5}
    # The winner of a soccer match has a draw, also where nobody lays it: two of three are not opposites.
    two = [outcome(home, 2.0), outcome(away, 3.0)]
    rows = api([game(maker("betfair_ex_uk", h2h=two, h2h_lay=two), sport_key="soccer_epl")]).quotes
    assert [row["odds_decimal"] for row in rows if row["market_type"] == "moneyline"] == [2.0, 3.0]


def test_odds_api_lays_of_three_outcomes_of_soccer_are_bets_against_them() -> None:
    lay = [outcome("Boston Celtics", 2.5), outcome("Draw", 4.0), outcome("Los Angeles Lakers", 1.0)]
    reader = TheOddsApi()
    read = api([game(maker("betfair_ex_uk", h2h_lay=lay), sport_key="soccer_epl")], reader=reader)
    names = ("market_type", "selection", "selection_type", "line")
    found = {
        tuple(row[name] for name in names): row["odds_decimal"]
        for row in read.quotes
        if row["market_type"] != "h2h_lay"
    }
    assert found == pytest.approx(
        {("asian_handicap", "Los Angeles Lakers", "away", 0.5): 2.5 / 1.5, ("draw", "No", "no", None): 4.0 / 3.0}
    )
    assert len(read.quotes) == 4, "lay prices are served as they are, too"
    lay[1]["price"] = 1.0
    gone = api([game(maker("betfair_ex_uk", h2h_lay=lay), sport_key="soccer_epl")], reader=reader).removed
    assert sorted(ident.split("/", 2)[2] for ident in gone) == ["h2h_lay/Draw", "h2h_lay/Draw/against"]


@pytest.mark.parametrize("older", ["h2h", "h2h_lay"])
def test_odds_api_prices_of_two_times_are_as_old_as_the_older(older: str) -> None:
    both = [outcome("Boston Celtics", 1.5), outcome("Los Angeles Lakers", 2.9)]
    offered = maker("betfair_ex_uk", h2h=both, h2h_lay=both)
    for each in offered["markets"]:
        each["last_update"] = "2026-02-07T12:00:00Z" if each["key"] == older else "2026-02-08T12:00:00Z"
    read = api([game(offered)])
    assert {row["last_seen_at"] for row in read.quotes} == {datetime(2026, 2, 7, 12, tzinfo=UTC)}


def test_what_aggregators_publish_as_polymarket_are_mid_prices() -> None:
    listed = msgspec.json.decode(encoded(FEATURED))
    listed[0]["bookmakers"] = [{**listed[0]["bookmakers"][0], "key": "polymarket", "title": "Polymarket"}]
    rows = api(listed).quotes
    assert {(row["sportsbook"], row["sportsbook_name"]) for row in rows} == {("polymarket_mid", "Polymarket")}
    fixtures = msgspec.json.decode(encoded(FIXTURES))
    for row in fixtures["data"][0]["odds"]:
        row["sportsbook"] = "Polymarket"
    reader = OpticOdds()
    assert {row["sportsbook"] for row in reader.read(encoded(fixtures), ["Polymarket"]).quotes} == {"polymarket_mid"}
    fixtures["data"][0]["odds"] = []
    assert reader.read(encoded(fixtures), ["Polymarket"]).removed, "what is asked for as Polymarket is gone"


def test_odds_api_unknown_markets_keep_their_name() -> None:
    odd = [game(maker("draftkings", most_dunks=[outcome("Yes", 3.0)], h2h_lay=[outcome("Boston Celtics", 1.6)]))]
    read = api(odd)
    assert {row["market_type"] for row in read.quotes} == {"most_dunks", "h2h_lay"}
    assert read.unmapped == {("draftkings", "most_dunks"): 1}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"message":"API key is missing","error_code":"MISSING_KEY"}', "API key is missing"),
        (b"<html>502</html>", "malformed"),
        (b"[1,2]", "none of its 2 items"),
        (b'{"data": 3}', "no list of events"),
        (b"[" * 5000, "does not read|none of its|deeply|malformed|truncated"),
    ],
)
def test_odds_api_says_what_is_wrong(body: bytes, words: str) -> None:
    with pytest.raises(FeedError, match=words):
        TheOddsApi().read(body, ASKED)


def test_a_multiplier_is_kept_with_a_pick_and_is_no_price_of_a_single_bet() -> None:
    picks = [
        outcome("Over", 1.84, point=9.5 + at, description="A. Guard", multiplier=given)
        for at, given in enumerate((1.5, None, 1, "x", [2]))
    ]
    pick, single = (
        TheOddsApi().read(encoded([game(maker(book, player_points=picks))]), RequestScope.of(["player_points"]))
        for book in ("underdog", "draftkings")
    )
    assert [row.get("multiplier") for row in pick.quotes] == [1.5, None, 1.0, None, None]
    assert not pick.refused
    assert [row["line"] for row in single.quotes] == [10.5, 11.5, 12.5, 13.5]
    assert not any("multiplier" in row for row in single.quotes)
    assert single.refused == {"a price with a multiplier, of a book that takes single bets": 1}


# ---- the interface ----


def stream(
    events: Iterable[tuple[str, Any]], reader: InterfaceStream | None = None
) -> tuple[InterfaceStream, list[Payload]]:
    reader = reader or InterfaceStream()
    return reader, [reader.read(name, encoded(given)) for name, given in events]


def test_pages_in_both_envelopes() -> None:
    page = read_page(encoded(PAGE))
    assert (page.has_more, page.next_offset) == (True, 50)
    assert [row["id"] for row in page.payload.quotes] == ["r1", "r2", "r3"]
    assert page.payload.quotes[2]["line"] == -4.5
    assert "odds_probability" not in page.payload.quotes[0]
    other = read_page(encoded(META_PAGE))
    assert (other.has_more, other.next_offset, len(other.payload.quotes)) == (False, None, 1)
    assert not read_page(b'{"data":[],"pagination":{"has_more":true}}').has_more
    (played,) = page.payload.games
    assert played[:5] == ("nba_celtics_lakers_2026-02-09", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers")


def test_pages_of_changes_say_what_is_gone() -> None:
    assert read_page(encoded({"data": [], "removed": ["a", {"id": "b"}]})).payload.removed == ["a", "b"]
    assert read_page(encoded({"data": [], "meta": {"removed": ["c"]}})).payload.removed == ["c"]


def test_pages_of_a_newer_upstream() -> None:
    row = {name: value for name, value in ROWS[0].items() if name not in ("last_seen_at", "is_active")}
    (read,) = read_page(encoded([row | {"timestamp": "2026-02-08T18:00:00Z", "surprise": [1]}])).payload.quotes
    assert read["last_seen_at"] == NOW
    assert "timestamp" not in read
    assert "surprise" not in read


def test_pages_that_are_errors() -> None:
    with pytest.raises(FeedError, match="too many requests"):
        read_page(b'{"error":{"code":"rate_limited","message":"too many requests"}}')


def test_a_row_that_does_not_read_costs_only_itself() -> None:
    read = read_page(encoded({"data": [*ROWS, {**ROWS[0], "odds_decimal": "x"}, {"id": "r"}]})).payload
    assert len(read.quotes) == 3
    assert read.refused == {"a row that is not valid": 2}


def test_stream_merges_by_id() -> None:
    reader, read = stream(STREAM)
    update, locked = read[4].quotes[0], read[5].quotes[0]
    assert (update["selection"], update["odds_decimal"], update["odds_american"]) == ("Boston Celtics", 1.5263, -190.0)
    assert update["sportsbook"] == "draftkings"
    assert update["last_seen_at"] == max(
        read[1].quotes[0]["last_seen_at"], update.get("odds_changed_at") or NOW.min.replace(tzinfo=UTC)
    )
    assert (locked["selection"], locked["is_active"], locked["odds_decimal"]) == ("Los Angeles Lakers", False, 2.6)
    assert read[8].removed == ["r3"]
    assert reader.rows == 2
    assert reader.errors == {"upstream_error": 1}
    assert read[6].moment == datetime(2026, 2, 8, 18, 0, 30, tzinfo=UTC)


def test_stream_one_price_replaces_both_forms() -> None:
    _, read = stream([*STREAM[:4], ("odds:update", {"odds": [{"id": "r1", "odds_american": 120}]})])
    assert read[-1].quotes[0]["odds_decimal"] is None
    assert read[-1].quotes[0]["odds_american"] == 120


def test_stream_update_unlocks() -> None:
    reader, _ = stream(STREAM)
    assert reader.read("odds:update", b'{"odds":[{"id":"r2","odds_decimal":2.5}]}').quotes[0]["is_active"] is True


def test_stream_ignores_updates_of_unknown_rows_but_takes_whole_ones() -> None:
    reader, _ = stream(STREAM[:4])
    read = reader.read(
        "odds:update", encoded({"odds": [{"id": "zz", "odds_decimal": 2.0}, odds("r8", "Boston Celtics", 1.6)]})
    )
    assert read.refused == {"an update of a price that no snapshot listed": 1}
    assert [row["id"] for row in read.quotes] == ["r8"]
    assert reader.rows == 4


def test_stream_a_line_that_moves_is_one_gone_and_one_new() -> None:
    reader, _ = stream(STREAM[:4])
    read = reader.read("odds:update", b'{"odds":[{"id":"r3","odds_decimal":1.95,"line":-5.5}]}')
    assert (read.removed, read.quotes[0]["line"]) == (["r3"], -5.5)
    assert reader.read("odds:update", b'{"odds":[{"id":"r3","odds_decimal":1.9,"line":-5.5}]}').removed == []


def test_stream_reconnect_clears_and_removes_what_is_not_listed_again() -> None:
    reader, _ = stream(STREAM[:4])
    _, read = stream([STREAM[0], ("snapshot", {"odds": [ROWS[0], {**ROWS[2], "line": -6.5}]})], reader)
    assert reader.rows == 2
    assert not reader.ready
    assert read[1].removed == ["r3"]  # another line under its id
    assert reader.read("odds:update", b'{"odds":[{"id":"r2","odds_decimal":2.5}]}').quotes == []
    assert reader.read("snapshot:complete", b'{"status":"ready"}').removed == ["r2"]
    assert reader.ready


def test_stream_broken_off_within_a_snapshot_still_removes_at_the_end_of_the_next() -> None:
    reader, _ = stream(STREAM[:4])
    stream([STREAM[0], ("snapshot", {"odds": [odds("r7", "Boston Celtics", 1.5)]})], reader)
    _, read = stream([STREAM[0], ("snapshot", {"odds": ROWS[:1]}), STREAM[3]], reader)
    assert sorted(read[-1].removed) == ["r2", "r3", "r7"]


def test_stream_ages_are_the_upstream_s() -> None:
    """A row was last seen when the upstream saw it: by its own word, or when its price changed, never on arrival."""
    dead = odds("old", "Boston Celtics", 1.5, last_seen_at="2026-02-08T17:40:00Z")
    reader, read = stream([*STREAM[:4], ("snapshot", {"odds": [dead]})])

    def seen(payload: Payload) -> list[str]:
        return [f"{row['id']} {row['last_seen_at']:%H:%M:%S}" for row in payload.quotes]

    assert seen(read[-1]) == ["old 17:40:00"]
    moved = {"id": "old", "odds_decimal": 1.6, "odds_changed_at": "2026-02-08T17:41:00Z"}
    assert seen(reader.read("odds:update", encoded({"odds": [moved]}))) == ["old 17:41:00"]
    lagging = {"id": "old", "odds_decimal": 1.7, "odds_changed_at": "2026-02-08T17:00:00Z"}
    assert seen(reader.read("odds:update", encoded({"odds": [lagging]}))) == ["old 17:41:00"]
    again = [
        {"id": "old", "last_seen_at": "2026-02-08T17:50:00Z"},
        {"id": "none", "last_seen_at": "2026-02-08T17:50:00Z"},
    ]
    (row,) = reader.read("odds:seen", encoded({"odds": again})).quotes
    assert (row["odds_decimal"], f"{row['last_seen_at']:%H:%M}") == (1.7, "17:50")
    back = [{"id": "old", "last_seen_at": "2026-02-08T17:45:00Z"}]
    assert reader.read("odds:seen", encoded({"odds": back})) == Payload()
    assert reader.read("heartbeat", b'{"timestamp":"2026-02-08T19:00:00Z"}').quotes == ()


def test_stream_ages_after_now_count_as_now() -> None:
    """A time far ahead would otherwise be later than all that follow, and the price would never be seen again."""
    ahead = odds("r", "Boston Celtics", 1.5, last_seen_at="2036-02-08T17:40:00Z")
    reader = InterfaceStream()
    for event, data, minute, wanted in (
        ("snapshot", {"odds": [ahead]}, 0, 0),
        ("odds:seen", {"odds": [{"id": "r", "last_seen_at": "2026-02-08T18:01:00Z"}]}, 1, 1),
        ("odds:update", {"odds": [{"id": "r", "odds_decimal": 1.6, "odds_changed_at": "2036-02-08T18:00:00Z"}]}, 2, 2),
        ("odds:seen", {"odds": [{"id": "r", "last_seen_at": "2036-02-08T18:00:00Z"}]}, 3, 3),
    ):
        at = NOW + timedelta(minutes=minute)
        (row,) = reader.read(event, encoded(data), at).quotes
        assert row["last_seen_at"] == NOW + timedelta(minutes=wanted)


def test_stream_takes_ages_from_pages_where_the_price_is_the_same() -> None:
    reader, _ = stream(STREAM[:4])
    rows = [
        {**ROWS[0], "last_seen_at": "2026-02-08T18:30:00Z"},
        {**ROWS[1], "odds_decimal": 9.0, "last_seen_at": "2026-02-08T18:30:00Z"},
    ]
    (row,) = reader.renew(read_page(encoded({"data": rows})).payload.quotes).quotes
    assert (row["id"], f"{row['last_seen_at']:%H:%M}") == (ROWS[0]["id"], "18:30")


def test_rejections_of_the_upstream_are_marked() -> None:
    reject = {"guard": "flap", "reason": "the price has just left a value and come back"}
    rows = [
        {**ROWS[0], "rejection": reject},
        {**ROWS[1], "rejection": {"guard": "suspended"}},
        {**ROWS[2], "rejection": None},
    ]
    _, (read,) = stream([("snapshot", {"odds": rows})])
    for quotes in (read.quotes, read_page(encoded({"data": rows})).payload.quotes):
        assert [row.get("rejected_upstream") for row in quotes] == [True, None, None]
        assert not any("rejection" in row for row in quotes)


def test_stream_says_nothing_of_opportunities() -> None:
    reader = InterfaceStream()
    for name, data in (("ev:detected", b"[]"), ("snapshot", b'{"ev":[]}'), ("gamestate:update", b"x")):
        assert reader.read(name, data) == Payload()


# ---- OpticOdds ----


def test_optic_fixtures() -> None:
    reader = OpticOdds()
    read = reader.read(encoded(FIXTURES), ["DraftKings"])
    assert read.games[0][:5] == ("20260209F1", "basketball", "nba", "Boston Celtics", "Los Angeles Lakers")
    rows = by(read, "id")
    assert rows["o1",]["odds_american"] == -185
    assert (rows["o3",]["market_type"], rows["o3",]["line"]) == ("point_spread", -4.5)
    assert (rows["o4",]["selection"], rows["o4",]["line"], rows["o4",]["max_bet"]) == ("Over", 228.5, 750.0)
    assert (rows["o5",]["player_name"], rows["o5",]["selection"]) == ("Jayson Tatum", "Under")
    assert rows["o1",]["sportsbook"] == "draftkings"
    assert rows["o1",]["odds_changed_at"] == datetime(2026, 2, 8, 17, 59, 40, 250000, tzinfo=UTC)


def test_optic_not_listed_is_gone_for_the_books_that_were_asked() -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES), ["DraftKings"])
    fewer = msgspec.json.decode(encoded(FIXTURES))
    del fewer["data"][0]["odds"][0]
    assert reader.read(encoded(fewer), ["FanDuel"]).removed == []
    assert reader.read(encoded(fewer), ["DraftKings"], ["Point Spread"]).removed == []
    assert reader.read(encoded(fewer), ["DraftKings"]).removed == ["o1"]
    assert "o1" not in {row["id"] for row in reader.alive(NOW).quotes}


def test_optic_a_part_that_does_not_read_removes_nothing() -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES), ["DraftKings"])
    broken = msgspec.json.decode(encoded(FIXTURES))
    broken["data"][0]["odds"][0]["price"] = "soon"
    read = reader.read(encoded(broken), ["DraftKings"])
    assert (read.removed, read.refused) == ([], {"a price that is not valid": 1})
    assert reader.read(encoded(FIXTURES), ["DraftKings"]).removed == []


def test_optic_frames() -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES), ["DraftKings"])
    read = [reader.frame(name, encoded(given)) for name, given in FRAMES]
    assert (read[0].quotes[0]["odds_american"], read[0].quotes[0]["max_bet"]) == (-200, 400.0)
    assert read[1].quotes[0]["is_active"] is False
    assert read[2].games[0].status == "live"
    assert reader.last_entry == "1730079534821-0"
    assert reader.frame("ping", b"2026-02-08T18:00:00Z") == Payload()
    assert len(reader.alive(NOW).quotes) == 4


def changed(reader: OpticOdds, **change: Any) -> Payload:
    return reader.frame("fixture-status", encoded({"data": {"fixture_id": "20260209F1", **change}, "entry_id": "9"}))


def test_optic_a_change_of_the_start_alone_keeps_the_status() -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES))
    assert changed(reader, new_status="live").games[0].status == "live"
    (game,) = changed(reader, new_status=None, new_start_date="2026-02-09T01:00:00Z").games
    assert (game.status, game.start) == ("live", datetime(2026, 2, 9, 1, tzinfo=UTC))
    payload = changed(reader, new_status="abandoned?")
    assert (payload.games[0].status, payload.refused) == (
        "live", {"a status of a fixture that is not known: abandoned?": 1},
    )  # fmt: skip


@pytest.mark.parametrize("halted", ["suspended", "delayed"])
def test_optic_prices_of_a_halted_fixture_are_suspended(halted: str) -> None:
    reader = OpticOdds()
    count = len(reader.read(encoded(FIXTURES)).quotes)
    payload = changed(reader, new_status=halted)
    assert [quote["is_active"] for quote in payload.quotes] == [False] * count
    assert payload.games[0].status == "upcoming"
    assert reader.alive(datetime(2026, 2, 9, tzinfo=UTC)).quotes == ()  # they are not renewed
    again = [{**FIXTURES["data"][0], "status": halted}]
    assert not any(quote["is_active"] for quote in reader.read(encoded({"data": again})).quotes)
    assert reader.unknown == {}
    assert changed(reader, new_status="unplayed").quotes == []
    assert [*reader.unknown] == ["20260209F1"]  # to be requested again
    assert all(quote["is_active"] for quote in reader.read(encoded(FIXTURES)).quotes)
    assert reader.unknown == {}


def test_optic_frames_of_unknown_fixtures_wait() -> None:
    reader = OpticOdds()
    read = reader.frame(*FRAMES[0][:1], encoded(FRAMES[0][1]))
    assert read.quotes == []
    assert read.refused == {"a price of a fixture that no request has told of": 1}
    assert list(reader.unknown) == ["20260209F1"]
    reader.read(encoded(FIXTURES))
    assert not reader.unknown


def test_optic_a_frame_that_does_not_read_keeps_the_entry() -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES))
    reader.frame(*FRAMES[0][:1], encoded(FRAMES[0][1]))
    with pytest.raises(FeedError):
        reader.frame("odds", b'{"data":[{"id":3}],"entry_id":"later"}')
    assert reader.last_entry == "1730079534820-2"


@pytest.mark.parametrize(
    ("name", "price", "decimal"),
    [
        ("DECIMAL", 1.8, 1.8), ("PROBABILITY", 0.5, 2.0), ("HONG_KONG", 0.8, 1.8), ("MALAY", 0.8, 1.8),
        ("MALAY", -0.8, 2.25),
        ("INDONESIAN", 1.25, 2.25), ("INDONESIAN", -1.25, 1.8),
    ],
)  # fmt: skip
def test_optic_price_formats(name: str, price: float, decimal: float) -> None:
    reader = OpticOdds(name)
    fixture = msgspec.json.decode(encoded(FIXTURES))
    fixture["data"][0]["odds"] = [optic_row("o", "Moneyline", "Boston Celtics", price)]
    assert reader.read(encoded(fixture)).quotes[0]["odds_decimal"] == pytest.approx(decimal)


def test_optic_formats_are_named() -> None:
    assert set(FORMATS) == {"AMERICAN", "DECIMAL", "PROBABILITY", "MALAY", "HONG_KONG", "INDONESIAN"}
    with pytest.raises(ValueError, match="odds_format"):
        OpticOdds("FRACTIONAL")
    zero = OpticOdds("PROBABILITY")
    zero.read(encoded(FIXTURES))
    assert (
        zero.frame("odds", encoded(optic_frame("odds", optic_row("o", "Moneyline", "Boston Celtics", 0)))).quotes == []
    )


# ---- Betfair ----


def lines(*messages: Row) -> tuple[BetfairMarkets, list[Payload]]:
    reader = BetfairMarkets()
    return reader, [reader.read(encoded(message) + b"\r\n") for message in messages]


def one(market_type: str = "MATCH_ODDS", *rc: Row, market: str = "1.1", **more: Any) -> Row:
    return mcm({"id": market, "img": True, "marketDefinition": definition(market_type, **more), "rc": list(rc)})


def runners(*names: tuple[int, str, float]) -> list[Row]:
    return [{"id": given, "name": name, "hc": hc, "status": "ACTIVE"} for given, name, hc in names]


def test_betfair_back_prices_sizes_clocks() -> None:
    reader, read = lines(*LINES)
    assert sides(read[2]) == {
        ("betfair_exchange", "moneyline", "Boston Celtics", None, 1.56),
        ("betfair_exchange", "moneyline", "Los Angeles Lakers", None, 2.7),
    }
    assert {row["max_bet"] for row in read[2].quotes} == {210.0, 90.0}
    assert (reader.initial_clk, reader.clk) == ("IIII", "AAAC")
    assert [(row["selection"], row["odds_decimal"], row["max_bet"]) for row in read[3].quotes] == [
        ("Boston Celtics", 1.57, 20.0)
    ]
    assert read[4].moment == datetime(2026, 2, 8, 17, 59, 55, tzinfo=UTC)
    assert read[2].games[0][:5] == ("33", "basketball", "", "Boston Celtics", "Los Angeles Lakers")


def test_betfair_lays_of_one_runner_are_bets_on_the_other() -> None:
    two = runners((11, "Boston Celtics", 0.0), (12, "Los Angeles Lakers", 0.0))
    back = {"id": 11, "batb": [[0, 1.9, 50]]}, {"id": 12, "batb": [[0, 2.0, 40]], "batl": [[0, 2.05, 100], [1, 2.1, 9]]}
    reader, (image,) = lines(one("MATCH_ODDS", *back, runners=two))
    rows = {row["selection"]: row for row in image.quotes}
    assert (rows["Boston Celtics"]["odds_decimal"], rows["Boston Celtics"]["max_bet"]) == pytest.approx(
        (2.05 / 1.05, 105.0)
    )
    assert (rows["Los Angeles Lakers"]["odds_decimal"], rows["Los Angeles Lakers"]["max_bet"]) == (2.0, 40.0)
    # A change of the one is a change of the other's price; with another size of ladder the best lay is the lowest.
    worse = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 12, "batl": [[0, 2.3, 100]]}]})))
    assert {row["selection"]: row["odds_decimal"] for row in worse.quotes} == {
        "Boston Celtics": 1.9, "Los Angeles Lakers": 2.0,
    }  # fmt: skip
    full = {"id": 11, "atb": [[1.9, 5]]}, {"id": 12, "atb": [[2.0, 4]], "atl": [[2.2, 7], [2.05, 100], [2.1, 9]]}
    _, (image,) = lines(one("MATCH_ODDS", *full, runners=two))
    assert sorted(row["odds_decimal"] for row in image.quotes) == pytest.approx([2.05 / 1.05, 2.0])
    absurd = {"id": 12, "batl": [[0, 1e300, 1e300]]}
    assert not lines(one("MATCH_ODDS", absurd, runners=two))[1][0].quotes
    # Not with a third outcome, or a runner that is out.
    three = [*two, *runners((58805, "The Draw", 0.0))]
    for others in (three, [two[0], two[1] | {"status": "REMOVED"}]):
        _, (image,) = lines(one("MATCH_ODDS", *back, runners=others))
        assert [row["odds_decimal"] for row in image.quotes if row["selection"] == "Boston Celtics"] == [1.9]


def test_betfair_size_zero_deletes() -> None:
    reader, _ = lines(IMAGE)
    next_best = reader.read(encoded(mcm({"id": "1.2001", "rc": [{"id": 11, "batb": [[0, 1.56, 0]]}]})))
    assert [row["odds_decimal"] for row in next_best.quotes] == [1.55]
    nobody = reader.read(encoded(mcm({"id": "1.2001", "rc": [{"id": 11, "batb": [[1, 1.55, 0]]}]})))
    assert (nobody.quotes, nobody.removed) == ([], ["1.2001/11/0"])


def test_betfair_full_ladders_are_by_price() -> None:
    change = {"id": 11, "atb": [[1.5, 10.0], [1.56, 3.0], [1.52, 7.0]]}
    reader, read = lines(one("MATCH_ODDS", change))
    assert read[0].quotes[0]["odds_decimal"] == 1.56
    less = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "atb": [[1.56, 0.0]]}]})))
    assert (less.quotes[0]["odds_decimal"], less.quotes[0]["max_bet"]) == (1.52, 7.0)


def test_betfair_money_matched_on_a_runner() -> None:
    first = {"id": 11, "tv": 120.5, "atb": [[1.5, 10.0]]}
    reader, read = lines(one("MATCH_ODDS", first, {"id": 12, "atb": [[2.5, 4.0]]}))
    assert {row["selection_id"]: row["volume"] for row in read[0].quotes} == {"11": 120.5, "12": None}
    price = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "atb": [[1.52, 7.0]]}]})))
    assert [(row["odds_decimal"], row["volume"]) for row in price.quotes] == [(1.52, 120.5)]
    matched = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "tv": 200.0}]})))
    assert [(row["odds_decimal"], row["volume"]) for row in matched.quotes] == [(1.52, 200.0)]
    image = reader.read(encoded(one("MATCH_ODDS", {"id": 11, "atb": [[1.5, 10.0]]})))
    assert image.quotes[0]["volume"] is None


def test_betfair_definition_is_replaced_whole() -> None:
    reader, _ = lines(IMAGE)
    halted = reader.read(
        encoded(mcm({"id": "1.2001", "marketDefinition": definition(status="SUSPENDED", inPlay=True)}))
    )
    assert [(row["is_active"], row["is_live"]) for row in halted.quotes] == [(False, True), (False, True)]
    assert halted.games[0].status == "live"
    out = definition(
        runners=[*definition()["runners"][:1], {"id": 12, "name": "Los Angeles Lakers", "status": "REMOVED"}]
    )
    assert reader.read(encoded(mcm({"id": "1.2001", "marketDefinition": out}))).removed == ["1.2001/12/0"]
    closed = reader.read(encoded(mcm({"id": "1.2001", "marketDefinition": definition(status="CLOSED")})))
    assert (closed.removed, closed.games[0].status) == (["1.2001/11/0"], "ended")
    assert reader.alive(NOW).quotes == ()


def test_betfair_image_replaces_a_market_and_a_first_image_all_of_them() -> None:
    reader, _ = lines(IMAGE, one("MATCH_ODDS", ladder(11, (1.6, 5.0)), market="1.5"))
    replaced = reader.read(encoded(one("MATCH_ODDS", ladder(12, (2.5, 5.0)), market="1.2001")))
    assert replaced.removed == ["1.2001/11/0"]
    assert [row["odds_decimal"] for row in replaced.quotes] == [2.5]
    assert reader.read(encoded(IMAGE)).removed == ["1.5/11/0"]


def test_betfair_segments_count_when_the_last_is_there() -> None:
    reader = BetfairMarkets()
    parts = [one("MATCH_ODDS", ladder(11, (1.5 + at / 10, 5.0)), market=f"1.{at}") for at in range(3)]
    kinds = ("SEG_START", "SEG", "SEG_END")
    read = [
        reader.read(encoded(part | {"segmentType": kind, "ct": "SUB_IMAGE"}))
        for part, kind in zip(parts, kinds, strict=True)
    ]
    assert [len(payload.quotes) for payload in read] == [0, 0, 3]
    reader.read(encoded(parts[0] | {"segmentType": "SEG_START", "clk": "ZZZ"}))
    assert reader.clk == "AAAA"
    with pytest.raises(FeedError, match="is incomplete"):
        reader.read(encoded(parts[0]))
    reader.read(encoded({"op": "connection"}))
    assert len(reader.read(encoded(parts[0])).quotes) == 1
    with pytest.raises(FeedError, match="without its start"):
        reader.read(encoded(parts[0] | {"segmentType": "SEG"}))


@pytest.mark.parametrize(
    ("market_type", "betting", "listed", "wanted"),
    [
        ("MATCH_ODDS", "ODDS", [(11, "Boston Celtics", 0.0), (58805, "The Draw", 0.0)],
         {("moneyline_3way", "Boston Celtics", None), ("moneyline_3way", "The Draw", None)}),
        ("OVER_UNDER_25", "ODDS", [(1, "Under 2.5 Goals", 0.0), (2, "Over 2.5 Goals", 0.0)],
         {("total_goals", "Under 2.5 Goals", 2.5), ("total_goals", "Over 2.5 Goals", 2.5)}),
        ("FIRST_HALF_GOALS_05", "ODDS", [(2, "Over 0.5 Goals", 0.0)],
         {("1st_half_total_goals", "Over 0.5 Goals", 0.5)}),
        ("ASIAN_HANDICAP", "ASIAN_HANDICAP_DOUBLE_LINE",
         [(11, "Boston Celtics", -0.25), (12, "Los Angeles Lakers", 0.25)],
         {("asian_handicap", "Boston Celtics", -0.25), ("asian_handicap", "Los Angeles Lakers", 0.25)}),
        ("BOTH_TEAMS_TO_SCORE", "ODDS", [(1, "Yes", 0.0)], {("both_teams_to_score", "Yes", None)}),
        ("TEAM_A_1", "ODDS", [(11, "Boston Celtics -1", 0.0)], {("TEAM_A_1", "Boston Celtics -1", None)}),
        ("TOTAL_RUNS_LINE", "LINE", [(1, "Runs", 0.0)], {("TOTAL_RUNS_LINE", "Runs", 0.0)}),
    ],
)  # fmt: skip
def test_betfair_markets(market_type: str, betting: str, listed: list[Any], wanted: set[Any]) -> None:
    rc = [ladder(given, (2.0, 5.0), hc=hc) for given, _, hc in listed]
    _, read = lines(one(market_type, *rc, bettingType=betting, runners=runners(*listed), eventTypeId="1"))
    assert {(row["market_type"], row["selection"], row["line"]) for row in read[0].quotes} == wanted
    assert bool(read[0].unmapped) == (next(iter(wanted))[0] == market_type)


def test_betfair_waits_for_names() -> None:
    bare = definition(runners=[{"id": 11, "status": "ACTIVE"}, {"id": 12, "status": "ACTIVE"}])
    del bare["eventName"]
    reader, read = lines(mcm({"id": "1.7", "img": True, "marketDefinition": bare, "rc": [ladder(11, (1.5, 5.0))]}))
    assert read[0].quotes == []
    entry = {
        "marketId": "1.7", "marketName": "Moneyline",
        "event": {"id": "33", "name": "Los Angeles Lakers @ Boston Celtics"},
        "competition": {"id": "9", "name": "NBA"}, "runners": [{"selectionId": 11, "runnerName": "Boston Celtics"}],
    }  # fmt: skip
    answer = encoded([entry]), encoded({"jsonrpc": "2.0", "result": [entry], "id": 1})
    assert read_catalogue(answer[0]) == read_catalogue(answer[1])
    named = reader.name(read_catalogue(answer[0])[0])
    assert named.games[0][1:5] == ("basketball", "nba", "Boston Celtics", "Los Angeles Lakers")
    assert [(row["selection"], row["selection_type"]) for row in named.quotes] == [("Boston Celtics", "home")]
    assert not reader.name(read_catalogue(answer[0])[0]).quotes  # what is known says nothing new


def test_betfair_delay_in_play_and_main_line() -> None:
    three = [(11, "Boston Celtics", -2.0), (12, "Los Angeles Lakers", 2.0), (11, "Boston Celtics", -3.5)]
    rc = [ladder(given, (2.0, 5.0), hc=hc) for given, _, hc in three]
    kind: Row = {"bettingType": "ASIAN_HANDICAP_DOUBLE_LINE", "runners": runners(*three), "betDelay": 0}
    main: Row = {"keyLineDefinition": {"kl": [{"hc": -2, "id": 11}, {"hc": 2, "id": 12}]}}
    reader, (before,) = lines(one("HANDICAP", *rc, **kind, **main))
    assert [(row["line"], row["is_main_line"]) for row in before.quotes] == [(-2.0, True), (2.0, True), (-3.5, False)]
    assert all("bet_delay" not in row for row in before.quotes)
    _, (plain,) = lines(one("HANDICAP", *rc, **kind))
    assert all("is_main_line" not in row for row in plain.quotes)
    for delay, shown in ((5, 5.0), (0, 0.0), (-1, None), (99_999, None)):
        live = definition("HANDICAP", **kind | {"inPlay": True, "betDelay": delay})
        payload = reader.read(encoded(mcm({"id": "1.1", "marketDefinition": live})))
        assert {row.get("bet_delay") for row in payload.quotes} == {shown}


def test_betfair_last_trades_are_no_offers() -> None:
    traded = {"id": 11, "ltp": 1.5}, {"id": 12, "ltp": 2.4}
    reader, (image,) = lines(one("MATCH_ODDS", *traded))
    assert (image.quotes, reader.trades, reader.offers) == ([], 2, 0)
    reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "ltp": 1.6, "batb": [[0, 1.58, 5]]}]})))
    assert (reader.trades, reader.offers) == (3, 1)


def test_betfair_messages_of_a_subscription_that_was_replaced() -> None:
    """Its changes count until the next image, its clocks and its own image do not."""
    reader, _ = lines(IMAGE)
    reader.subscribe(3, ["1.2001"], anew=True)
    assert (reader.clk, reader.initial_clk) == ("", "")
    change = {"id": "1.2001", "rc": [{"id": 11, "batb": [[0, 1.57, 20.0]]}]}
    assert [row["odds_decimal"] for row in reader.read(encoded(mcm(change, clk="OLD"))).quotes] == [1.57]
    for more in ({"ct": "SUB_IMAGE"}, {"ct": "SUB_IMAGE", "segmentType": "SEG_START"}, {"segmentType": "SEG_END"}):
        assert reader.read(encoded(mcm(clk="OLD", **more))) == Payload()
    assert reader.clk == ""
    image = IMAGE | {"id": 3, "clk": "NEW"}
    assert reader.read(encoded(image)).removed == []
    assert reader.clk == "NEW"
    reader.subscribe(4, ["1.2001"], anew=False)
    assert (reader.clk, reader.initial_clk) == ("NEW", "IIII")


def test_betfair_types_that_are_asked_for_are_read() -> None:
    """Each of the default types of a sport is in the catalog."""
    for number, sport in SPORTS.items():
        for kind in market_types([number]):
            betting = "ASIAN_HANDICAP_DOUBLE_LINE" if kind in ("ASIAN_HANDICAP", "HANDICAP") else "ODDS"
            asian = kind in ("ALT_TOTAL_GOALS", "COMBINED_TOTAL", "TOTAL_POINTS")
            assert meaning(kind, "ASIAN_HANDICAP_SINGLE_LINE" if asian else betting, sport).market.in_catalog, (
                sport,
                kind,
            )
    assert {"DRAW_NO_BET", "BOTH_TEAMS_TO_SCORE", "OVER_UNDER_85", "FIRST_HALF_GOALS_15"} <= {*market_types(["1"])}
    assert {"HANDICAP", "COMBINED_TOTAL"} <= {*market_types(event_types(["baseball"]))}
    with pytest.raises(ValueError, match="got 'soker'"):
        event_types(["soker"])


def test_betfair_liveness_and_lateness() -> None:
    reader, _ = lines(IMAGE)
    assert len(reader.alive(NOW).quotes) == 2
    reader.read(encoded({"op": "mcm", "pt": 1770573600000, "ct": "HEARTBEAT", "status": 503}))
    assert reader.late
    assert reader.alive(NOW + timedelta(seconds=60)).quotes == ()


def test_betfair_refusals_are_told() -> None:
    with pytest.raises(FeedError, match="INVALID_CLOCK, clock is old"):
        BetfairMarkets().read(
            b'{"op":"status","statusCode":"FAILURE","errorCode":"INVALID_CLOCK","errorMessage":"clock is old"}'
        )


# ---- files ----


def test_season_prices_of_two_moments() -> None:
    season = football_data.read(SEASON)
    assert set(season.quotes["sportsbook"]) == {"bet365", "pinnacle"}
    start = datetime(2025, 8, 17, 15, 30, tzinfo=UTC)  # half past four in London's summer
    arsenal = season.quotes.filter(pl.col("home_team") == "Arsenal")
    assert set(arsenal["event_start_time"]) == {start}
    closing = arsenal.filter("closing")
    assert set(closing["last_seen_at"]) == {datetime(2025, 8, 17, 15, 29, tzinfo=UTC)}
    assert set(arsenal.filter(~pl.col("closing"))["last_seen_at"]) == {datetime(2025, 8, 15, 15, tzinfo=UTC)}
    found = {
        (b, m, s): (p, x)
        for b, m, s, p, x in closing.select(
            "sportsbook", "market_type", "selection_type", "odds_decimal", "line"
        ).iter_rows()
    }
    assert found["bet365", "moneyline_3way", "draw"] == (7.5, None)
    assert found["pinnacle", "asian_handicap", "home"] == (2.01, -2.25)
    assert found["pinnacle", "asian_handicap", "away"] == (1.9, 2.25)
    early = arsenal.filter(
        ~pl.col("closing"), pl.col("sportsbook") == "pinnacle", pl.col("market_type") == "total_goals"
    )
    assert early.select("selection", "odds_decimal", "line").rows() == [("Over", 1.53, 2.5), ("Under", 2.65, 2.5)]


def test_season_results_and_moments_in_order() -> None:
    season = football_data.read(SEASON)
    assert season.results.select("home_team", "home_goals", "away_goals", "half_home_goals").rows() == [
        ("Arsenal", 2, 0, 1), ("Fulham", 1, 2, None),
    ]  # fmt: skip
    assert season.results["event_start_time"].to_list()[1] is None
    moments = [seen for seen, _ in season.moments()]
    assert moments == sorted(moments)
    assert [len(payload.games) for payload in season.payloads()] == [1, 1, 1]
    assert season.games[0].league == season.games[1].league != ""


def test_season_of_an_extra_league_and_of_old_years() -> None:
    extra = (
        b"Country,League,Season,Date,Time,Home,Away,HG,AG,Res,PSCH,PSCD,PSCA,MaxCH,MaxCD,MaxCA\n"
        b"Argentina,Liga Profesional,2025,24/01/2025,00:00,Boca,Racing,1,1,D,2.2,3.1,3.9,2.3,3.2,4\n"
    )
    season = football_data.read(extra)
    assert set(season.quotes.select("sportsbook", "closing").rows()) == {("pinnacle", True)}
    old = (
        "Div,Date,HomeTeam,AwayTeam,FTHG,FTAG,FTR,GBH,GBD,GBA,VCH,VCD,VCA,Bb1X2,BbMxH,BbMxD,BbMxA,GB>2.5,GB<2.5,GBAHH,"
        "GBAHA,GBAH\nD1,06/08/04,K\xf6ln,Bremen,0,1,A,2,3,4,2.1,3.1,4.1,30,2.2,3.3,4.4,1.9,1.9,1.8,2.0,-0.5\n"
    )
    season = football_data.read(old.encode("cp1252"))
    assert set(season.quotes["sportsbook"]) == {"gamebookers", "betvictor"}
    assert not season.quotes["closing"].any()
    assert season.games[0].home == "Köln"
    assert season.quotes.filter(pl.col("market_type") == "asian_handicap")["line"].to_list() == [-0.5, 0.5]
    assert set(season.quotes["event_start_time"]) == {datetime(2004, 8, 6, 15, tzinfo=UTC)}  # files then had no time
    assert season.quotes["last_seen_at"].max() == datetime(2004, 8, 6, 12, tzinfo=UTC)


def test_table_forms_agree() -> None:
    csv = table.read(TABLE, ".CSV")
    header, *data = [line.split(",") for line in TABLE.decode().splitlines()]
    rows = [{name: value or None for name, value in zip(header, line, strict=True)} for line in data]
    parquet = io.BytesIO()
    pl.read_csv(TABLE).write_parquet(parquet)
    assert [row["odds_decimal"] for row in csv.quotes] == [1.0 + 100 / 180, 2.65]
    for body, suffix in (
        (encoded(rows), ".json"),
        (encoded({"data": rows}), ".json"),
        (b"\n".join(map(encoded, rows)), ".ndjson"),
        (parquet.getvalue(), ".parquet"),
    ):
        read = table.read(body, suffix)
        assert [row["odds_decimal"] for row in read.quotes] == [row["odds_decimal"] for row in csv.quotes]
        assert read.games == csv.games
        assert read.complete == [("pinnacle", None)]


def test_table_with_a_bad_line_completes_nothing() -> None:
    read = table.read(TABLE + b"pinnacle,e1,basketball,Boston Celtics,Los Ang", ".csv")
    assert len(read.quotes) == 2
    assert read.complete == []
    assert read.refused.total() == 1
    with pytest.raises(FeedError, match="not an odds table"):
        table.read(b"a,b\n1,2\n", ".csv")


# ---- server-sent events ----


WHOLE = (
    b'\xef\xbb\xbfretry: 3000\n: hello\nid: evt_1\nevent: odds\ndata: {"a":\ndata:1}\n\n'
    b"event: nothing\n\ndata\n\nid: evt_2\ndata: x\n\n"
)
SAID = [
    ServerSentEvent("odds", b'{"a":\n1}', "evt_1"),
    ServerSentEvent("message", b"", "evt_1"),
    ServerSentEvent("message", b"x", "evt_2"),
]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_however_they_are_cut(end: bytes, size: int) -> None:
    data = WHOLE.replace(b"\n", end)
    reader = EventParser()
    found = [event for at in range(0, len(data), size) for event in reader.feed(data[at : at + size])]
    assert found == SAID
    assert (reader.retry, reader.last_id, reader.comments) == (3000, "evt_2", 1)


def test_events_are_bounded() -> None:
    for chunk in (b"data: " + b"x" * 60, b"data: x\n" * 20, b"event: " + b"e" * 60 + b"\n"):
        reader = EventParser(most=50)
        with pytest.raises(FeedError, match="larger than 50 bytes"):
            reader.feed(chunk + chunk)
    calm = EventParser(most=50)
    for _ in range(100):
        calm.feed(b": still here\n")
        assert calm.feed(b"data: x\n\n")


def test_an_event_that_is_not_over_is_not_told() -> None:
    assert EventParser().feed(b"data: x\n") == []
    assert EventParser().feed(b"id: a\0b\nretry: soon\ndata: x\n\n") == [ServerSentEvent("message", b"x", "")]


def test_betfair_levels_and_the_commission_of_a_market() -> None:
    two = runners((11, "Boston Celtics", 0.0), (12, "Los Angeles Lakers", 0.0))
    books = {"id": 11, "batb": [[1, 1.88, 20], [0, 1.9, 50]]}, {"id": 12, "batl": [[0, 2.05, 100], [1, 2.1, 9]]}
    reader, (image,) = lines(one("MATCH_ODDS", *books, runners=two))
    (row,) = image.quotes  # nobody backs the second; the first is best as a lay of the second
    assert [(level["odds_decimal"], level["stake"]) for level in row["levels"]] == [
        pytest.approx((2.05 / 1.05, 105.0)), pytest.approx((2.1 / 1.1, 9.9)),
    ]  # fmt: skip
    assert "commission" not in row
    change = {"id": "1.1", "marketDefinition": definition("MATCH_ODDS", runners=two, marketBaseRate=10.0)}
    assert {quote["commission"] for quote in reader.read(encoded(mcm(change))).quotes} == {0.1}
    # A level that is better than the best one is a remnant.
    reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "batb": [[0, 1.5, 50], [1, 1.88, 0]]}]})))
    worse = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 12, "batl": [[0, 2.12, 100]]}]})))
    assert [(row["odds_decimal"], row.get("levels")) for row in worse.quotes] == [(pytest.approx(2.12 / 1.12), None)]


def test_betfair_lays_with_a_draw_are_the_other_side_with_half_a_goal() -> None:
    three = runners((11, "Arsenal", 0.0), (12, "Leeds", 0.0), (58805, "The Draw", 0.0))
    books = [{"id": 11, "batb": [[0, 1.5, 50]], "batl": [[0, 1.52, 100], [1, 1.54, 10]]},
             {"id": 58805, "batl": [[0, 4.6, 10]]}]  # fmt: skip
    named = {"eventTypeId": "1", "eventName": "Arsenal v Leeds", "eventId": "9"}
    reader, (image,) = lines(one("MATCH_ODDS", *books, runners=three, **named))
    rows = {row["id"].removeprefix("1.1/"): row for row in image.quotes}
    assert set(rows) == {"11/0", "11/0/lay", "58805/0/lay"}
    none = rows["58805/0/lay"]
    assert (none["market_type"], none["selection"], none["selection_type"], none["line"]) == ("draw", "No", "no", None)
    assert (none["odds_decimal"], none["max_bet"]) == pytest.approx((4.6 / 3.6, 36.0))
    laid = rows["11/0/lay"]
    assert (laid["market_type"], laid["selection"], laid["selection_type"], laid["line"]) == (
        "asian_handicap", "Leeds", "away", 0.5,
    )  # fmt: skip
    assert (laid["odds_decimal"], laid["max_bet"]) == pytest.approx((1.52 / 0.52, 52.0))
    assert len(laid["levels"]) == 2
    gone = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "batl": [[0, 1.52, 0], [1, 1.54, 0]]}]})))
    assert [ident.removeprefix("1.1/") for ident in gone.removed] == ["11/0/lay"]
    # In another sport a draw at the end of regular time is not what a handicap counts.
    _, (hockey,) = lines(one("MATCH_ODDS", *books, runners=three, **named | {"eventTypeId": "7524"}))
    assert all(row["line"] is None for row in hockey.quotes)


def test_betfair_stakes_of_lays_are_their_liability_also_the_smallest() -> None:
    two = runners((11, "Boston Celtics", 0.0), (12, "Los Angeles Lakers", 0.0))
    books = {"id": 11, "batb": [[0, 1.8, 50]], "batl": [[0, 1.9, 50]]}, {"id": 12, "batb": [[0, 2.05, 9]]}
    pair = encoded(one("MATCH_ODDS", *books, runners=two))
    assert all("min_bet" not in row for row in BetfairMarkets().read(pair).quotes)
    rows = {row["selection_id"]: row for row in BetfairMarkets(min_bet=2.0).read(pair).quotes}
    assert (rows["11"]["odds_decimal"], rows["11"]["min_bet"]) == (1.8, 2.0)
    assert (rows["12"]["odds_decimal"], rows["12"]["min_bet"]) == pytest.approx((1.9 / 0.9, 1.8))
    three = runners((11, "Arsenal", 0.0), (12, "Leeds", 0.0), (58805, "The Draw", 0.0))
    match = one("MATCH_ODDS", {"id": 58805, "batb": [[0, 4.4, 5]], "batl": [[0, 4.6, 10]]}, runners=three,
                eventTypeId="1", eventName="Arsenal v Leeds")  # fmt: skip
    drawn = {row["id"]: row["min_bet"] for row in BetfairMarkets(min_bet=2.0).read(encoded(match)).quotes}
    assert drawn == pytest.approx({"1.1/58805/0": 2.0, "1.1/58805/0/lay": 7.2})


def test_betfair_handicaps_of_a_match_take_the_place_of_lays() -> None:
    """Both are bets on Leeds +0.5; the last to come would be the price."""
    three = runners((11, "Arsenal", 0.0), (12, "Leeds", 0.0), (58805, "The Draw", 0.0))
    match = one("MATCH_ODDS", {"id": 11, "batl": [[0, 1.52, 100]]}, {"id": 58805, "batl": [[0, 4.6, 10]]},
                runners=three, eventTypeId="1", eventName="Arsenal v Leeds", eventId="9")  # fmt: skip
    two = runners((11, "Arsenal", -0.5), (12, "Leeds", 0.5))
    handicap = one("ASIAN_HANDICAP", {"id": 12, "hc": 0.5, "batb": [[0, 2.8, 5]]}, market="1.2", runners=two,
                   eventTypeId="1", eventName="Arsenal v Leeds", eventId="9",
                   bettingType="ASIAN_HANDICAP_DOUBLE_LINE")  # fmt: skip
    reader, (image,) = lines(match)
    assert [row["id"] for row in image.quotes] == ["1.1/11/0/lay", "1.1/58805/0/lay"]
    goals = one("ALT_TOTAL_GOALS", market="1.3", eventTypeId="1", eventName="Arsenal v Leeds", eventId="9",
                bettingType="ASIAN_HANDICAP_DOUBLE_LINE")  # fmt: skip
    reader.read(encoded(goals))
    still = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "batl": [[0, 1.51, 100]]}]})))
    assert [row["id"] for row in still.quotes] == ["1.1/11/0/lay"]
    reader.read(encoded(handicap))
    again = reader.read(encoded(mcm({"id": "1.1", "rc": [{"id": 11, "batl": [[0, 1.5, 100]]}]})))
    assert (again.quotes, again.removed) == ([], ["1.1/11/0/lay"])


def test_of_several_prices_of_a_book_for_one_bet_the_best_counts() -> None:
    bet = {"sportsbook": "a", "market_type": "asian_handicap", "selection": "Leeds", "line": 0.5}
    turn = Turn()
    turn.put(bet | {"id": "1", "odds_decimal": 1.8})
    turn.put(bet | {"id": "2", "odds_decimal": 1.9})
    turn.put(bet | {"id": "3", "odds_decimal": 2.5, "is_active": False})
    turn.put(bet | {"id": "4", "odds_decimal": 1.7, "line": 1.5})
    assert [row["id"] for row in turn.payload(ListedIds(), "epl").quotes] == ["2", "4"]


def test_a_table_has_levels_and_fees_of_its_prices() -> None:
    text = (
        b"sportsbook,event_id,market_type,selection,odds_decimal,levels,contract_fee\n"
        b"kalshi,e,moneyline,X,1.92,1.92:80 1.88:150,0.03\nfanduel,e,moneyline,Y,2.1,,\n"
    )
    first, second = table.read(text, ".csv").quotes
    assert first["levels"] == [{"odds_decimal": 1.92, "stake": 80.0}, {"odds_decimal": 1.88, "stake": 150.0}]
    assert (first["contract_fee"], second["levels"], second["contract_fee"]) == (0.03, None, None)
    engine = Engine()
    engine.step([first, second], datetime(2026, 2, 8, tzinfo=UTC))
    assert [len(each or ()) for each in engine.table()["levels"].to_list()] == [2, 0]
