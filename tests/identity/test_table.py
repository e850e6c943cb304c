"""Which market and side a row belongs to: every trap in names, lines, sides and periods that real boards hold."""

from typing import Any

import polars as pl
import pytest
from detection.test_parameters import arbs
from support.rows import (
    AWAY,
    HOME,
    LA_LIGA,
    MOMENT,
    NHL,
    Rows,
    aside,
    ask,
    legs,
    market_of,
    moneyline,
    nothing,
    prop,
    reason,
    row,
    spread,
    table,
    team_total,
    total,
)

import oddsengine as oe
from oddsengine import find_all, find_arbitrage, find_ev, find_low_hold, find_middles

SCHALKE: dict[str, Any] = dict(
    event_id="g", sport="soccer", league="germany_bundesliga", home_team="Schalke 04", away_team="Mainz 05"
)
ST_JOHNS: dict[str, Any] = dict(
    event_id="c", sport="basketball", league="ncaab", home_team="St. John's", away_team="Iowa Hawkeyes"
)
COLLEGE: dict[str, Any] = dict(
    event_id="b", sport="basketball", league="ncaab", home_team="Iowa Hawkeyes", away_team="Ohio State Buckeyes"
)


def meet(*parts: Rows | dict[str, Any]) -> dict[str, Any]:
    """All rows are used and make one complete market; it is returned."""
    board = table(*parts)
    assert not aside(board)
    (market,) = market_of(board)
    assert market["is_complete"]
    return market


def apart(*parts: Rows | dict[str, Any]) -> list[tuple[str, str, float | None]]:
    """All rows are used, in several markets; period, family and line of each."""
    board = table(*parts)
    assert not aside(board)
    found = [(m["period"], m["family"], m["line"]) for m in market_of(board)]
    assert len(found) == len(parts)
    return sorted(found, key=repr)


# -- lines -----------------------------------------------------------------------------------------


def test_home_minus_and_away_plus_are_one_market() -> None:
    market = meet(row("a", "point_spread", HOME, 2.0, -2.5), row("b", "point_spread", AWAY, 2.0, 2.5))
    assert (market["family"], market["line"], market["outcomes"]) == ("spread", -2.5, ["home", "away"])


def test_home_minus_and_away_minus_are_two_markets() -> None:
    board = table(row("a", "point_spread", HOME, 2.3, -2.5), row("b", "point_spread", AWAY, 2.3, -2.5))
    assert {m["line"] for m in market_of(board)} == {2.5, -2.5}
    assert not ask(find_arbitrage, board, guards=[])


@pytest.mark.parametrize("line", [2.25, 2.75, 0.25, -0.25, 2.0, 2.5])
def test_quarter_whole_and_half_lines_are_lines_of_their_own(line: float) -> None:
    near = [
        total(book, x, 2.1, 2.1, **LA_LIGA)
        for book, x in zip("abcd", (line, line, line + 0.25, line - 0.25), strict=True)
    ]
    markets = market_of(table(*near), guards=[])
    assert [(m["line"], m["books"]) for m in markets] == [
        (line - 0.25, ["d"]),
        (line, ["a", "b"]),
        (line + 0.25, ["c"]),
    ]


def test_a_line_is_never_a_float_in_a_key() -> None:
    meet(total("a", 0.1 + 0.2, 2.0, None), total("b", 0.3, None, 2.0))


def test_no_key_has_minus_zero() -> None:
    market = meet(spread("a", 0.0, 2.0, None), spread("b", -0.0, None, 2.0))
    assert str(market["line"]) == "0.0"


# -- moneylines ------------------------------------------------------------------------------------


def test_two_ways_and_three_ways_never_meet() -> None:
    """In hockey the 3-way settles after regulation: its prices are longer, and no arb with the 2-way."""
    two = moneyline("a", 1.9, 1.95, **NHL)
    three = moneyline("b", 2.5, 2.6, 4.2, **NHL)
    board = table(two, three)
    assert sorted(m["family"] for m in market_of(board)) == ["moneyline", "moneyline_3way"]
    assert not ask(find_arbitrage, board, guards=[])
    assert not aside(board)
    meet(two, moneyline("c", 1.9, 1.95, **NHL))
    meet(three, moneyline("c", 2.5, 2.6, 4.2, **NHL))


def test_three_ways_with_a_missing_draw_are_no_two_ways() -> None:
    """The draw's own price is unusable, and the book still plays three ways."""
    draw = row("b", "moneyline", "Draw", 1.0, **NHL)
    board = table(moneyline("a", 1.9, 1.95, **NHL), moneyline("b", 2.5, 2.6, **NHL), draw)
    assert aside(board) == {4: "bad_price"}
    assert not ask(find_arbitrage, board, guards=[])
    suspended = row("b", "moneyline", "Draw", 4.0, **NHL, is_active=False)
    board = table(moneyline("a", 1.9, 1.95, **NHL), moneyline("b", 2.5, 2.6, **NHL), suspended)
    assert not ask(find_arbitrage, board, guards=[])
    assert {(m["family"], m["is_complete"]) for m in market_of(board)} == {
        ("moneyline", True),
        ("moneyline_3way", False),
    }


def test_three_ways_without_any_draw_make_nothing() -> None:
    board = table(moneyline("a", 3.1, 3.4, market="1x2", **LA_LIGA), moneyline("b", 3.1, 3.4, market="1x2", **LA_LIGA))
    assert [m["is_complete"] for m in market_of(board)] == [False]
    with nothing("two other books"):
        assert not any(f.height for f in find_all(board, guards=[]).frames.values())


def test_ways_are_judged_for_each_book_event_and_period() -> None:
    first = moneyline("b", 2.9, 2.9, 3.2, "1st_half_moneyline", **NHL)
    board = table(first, moneyline("b", 1.9, 1.95, **NHL), moneyline("a", 1.95, 1.9, **NHL))
    found = [(m["period"], m["family"], m["books"]) for m in market_of(board)]
    assert sorted(found) == [("1st_half", "moneyline_3way", ["b"]), ("full_game", "moneyline", ["a", "b"])]


def test_two_ways_where_a_draw_is_possible_are_shown_never_used() -> None:
    board = table(moneyline("a", 2.2, 2.2, **LA_LIGA), moneyline("b", 2.2, 2.2, **LA_LIGA))
    assert set(aside(board, guards=[]).values()) == {"ambiguous_moneyline"}
    assert "in a sport with draws" in reason(board, 0)
    with nothing("4 of 4 rows are rejected: ambiguous_moneyline 4"):
        assert not any(f.height for f in find_all(board, guards=[]).frames.values())
    assert not any(m["is_complete"] for m in market_of(board, guards=[]))


def test_moneyline_and_regulation_apart() -> None:
    """Three ways of football may settle after overtime; in hockey a draw is one of regulation in any case."""
    nfl: dict[str, Any] = dict(event_id="n", sport="football", league="nfl", home_team="Chiefs", away_team="Bills")
    regulation = [moneyline("b", 1.9, 2.1, 17.0, "moneyline_regulation", **nfl)]
    found = apart(moneyline("a", 1.9, 2.1, 17.0, **nfl), *regulation, moneyline("c", 1.9, 1.9, **nfl))
    assert [f for _, f, _ in found] == ["moneyline", "moneyline_3way", "moneyline_regulation"]
    hockey = moneyline("b", 2.5, 2.6, 4.2, "moneyline_regulation", **NHL)
    meet(moneyline("a", 2.5, 2.6, 4.2, **NHL), hockey)
    apart(moneyline("a", 1.9, 1.95, **NHL), hockey)


@pytest.mark.parametrize("text", ["Draw", "draw", "Tie", "X", "The Draw", "DRAW"])
def test_words_for_a_draw(text: str) -> None:
    market = meet(moneyline("a", 2.5, 3.1, 3.2, **LA_LIGA), row("b", "match_result", text, 3.3, **LA_LIGA))
    assert market["books"] == ["a", "b"]


def test_a_lay_price_is_no_offer() -> None:
    board = table(row("betfair_exchange", "moneyline_lay", HOME, 2.4), moneyline("b", 1.75, 1.95))
    assert aside(board, guards=[]) == {0: "unmapped"}
    assert not ask(find_arbitrage, board, guards=[])


# -- families --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["asian_handicap", "run_line", "puck_line", "spread", "handicap", "alternate_point_spread"]
)
def test_spreads_by_other_names(name: str) -> None:
    assert meet(spread("a", -1.5, 2.0, None), spread("b", -1.5, None, 1.95, name))["family"] == "spread"


@pytest.mark.parametrize("name", ["total_goals", "total_runs", "asian_total_goals", "totals", "over_under"])
def test_totals_by_other_names(name: str) -> None:
    assert meet(total("a", 2.5, 2.0, None), total("b", 2.5, None, 1.95, name))["family"] == "total"


def test_draw_no_bet_is_the_spread_at_zero() -> None:
    dnb = moneyline("a", 2.0, None, market="draw_no_bet", **LA_LIGA)
    market = meet(dnb, spread("b", 0.0, None, 1.95, "asian_handicap", **LA_LIGA))
    assert (market["family"], market["line"]) == ("spread", 0.0)


@pytest.mark.parametrize(
    ("text", "kind"), [("Lionel Messi", "yes"), ("Lionel Messi", None), ("Yes", "yes"), ("Lionel Messi Yes", None)]
)
def test_an_anytime_scorer_is_over_half_a_goal(text: str, kind: str | None) -> None:
    named = None if text.startswith("Lionel") else "Lionel Messi"
    scorer = row("a", "anytime_goal_scorer", text, 2.1, player_name=named, selection_type=kind, **LA_LIGA)
    market = meet(scorer, prop("b", "Lionel Messi", 0.5, None, 2.0, "player_goals", **LA_LIGA))
    assert (market["subject"], market["line"]) == ("lionel messi", 0.5)


def test_goals_corners_and_cards_are_three_totals() -> None:
    names = ["total_goals", "total_corners", "total_cards", "total_shots"]
    found = apart(*(row("a", name, "Over", 2.0, 9.5, **LA_LIGA) for name in names))
    assert [f for _, f, _ in found] == ["cards_total", "corners_total", "shots_total", "total"]
    spreads = ["asian_handicap", "corners_handicap"]
    assert len(apart(*(row("a", name, LA_LIGA["home_team"], 2.0, -1.5, **LA_LIGA) for name in spreads))) == 2


def test_periods_never_mix() -> None:
    names = ["total_points", "1st_half_total_points", "2nd_half_total_points", "1st_quarter_total_points", "2q_totals"]
    found = apart(*(row("a", name, "Over", 2.0, 55.5) for name in names))
    assert [p for p, _, _ in found] == ["1st_half", "1st_quarter", "2nd_half", "2nd_quarter", "full_game"]
    segment = row("a", "total_points", "Over", 2.0, 55.5, market_segment="1st_half")
    meet(segment, row("b", "1st_half_total_points", "Under", 2.0, 55.5))


def test_live_and_pre_match_never_meet() -> None:
    board = table(total("a", 220.5, 2.2, 1.7), total("b", 220.5, 1.7, 2.2, is_live=True))
    assert [m["is_live"] for m in market_of(board)] == [False, True]
    with nothing("two other books"):
        assert not any(f.height for f in find_all(board, guards=[]).frames.values())


def test_double_chance_is_never_arbitraged_or_devigged() -> None:
    """Its prices sum to two, and any pair of them to more than one."""
    texts = ["Atlético Madrid or Draw", "Draw or Torino", "Atlético Madrid or Torino"]
    rows = [row(b, "double_chance", t, 1.7, **LA_LIGA) for b in ("pinnacle", "b") for t in texts]
    board = table(rows)
    assert set(aside(board, guards=[]).values()) == {"unmapped"}
    with nothing("6 of 6 rows are rejected: unmapped 6"):
        assert not any(f.height for f in find_all(board, guards=[], min_ev=-99.0).frames.values())


@pytest.mark.parametrize(
    "name",
    ["correct_score", "outrights", "winning_margin", "half_time_full_time", "first_goal_scorer", "player_prop",
     "same_game_parlay", "european_handicap", "race_to_10", "something_nobody_has_heard_of"],
)  # fmt: skip
def test_families_that_are_shown_and_never_used(name: str) -> None:
    board = table(row("a", name, HOME, 3.0, player_name="Somebody"), row("b", name, AWAY, 3.0, player_name="Somebody"))
    assert aside(board, guards=[]) == {0: "unmapped", 1: "unmapped"}
    with nothing("2 of 2 rows are rejected: unmapped 2"):
        assert not any(f.height for f in find_all(board, guards=[]).frames.values())


def test_suspended_rows_are_listed_and_never_used() -> None:
    board = table(total("a", 220.5, 2.3, 1.7, is_active=False), total("b", 220.5, 1.8, 2.0))
    assert aside(board, guards=[]) == {0: "suspended", 1: "suspended"}
    assert reason(board, 0) == "the price is suspended"
    found = find_all(board, guards=[], max_hold=50.0)
    assert not found.ev.height
    assert not found.arbitrage.height


# -- teams of team totals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        row("b", "team_total", "Under", 1.95, 110.5, team_side="home"),
        row("b", "home_team_total", "Under", 1.95, 110.5),
        row("b", "team_total_home", "Under 110.5", 1.95, 110.5),
        row("b", "team_total", "Boston Celtics Under 110.5", 1.95, 110.5),
        row("b", "team_total", "Celtics Under", 1.95, 110.5, selection_type="under"),
        row("b", "team_total", "Under", 1.95, 110.5, selection_type="home_under"),
        row("b", "team_total", "Boston Celtics", 1.95, 110.5, selection_type="under"),
    ],
)
def test_whose_team_total_it_is(other: dict[str, Any]) -> None:
    market = meet(team_total("a", "home", 110.5, 2.0, None), other)
    assert (market["family"], market["subject"]) == ("team_total", "home")


def test_a_team_total_whose_team_is_lost_is_no_market() -> None:
    board = table(total("a", 110.5, 2.3, None, "team_total"), total("b", 110.5, None, 2.0, "team_total"))
    assert aside(board) == {0: "unknown_outcome", 1: "unknown_outcome"}
    with nothing("2 of 2 rows are rejected: unknown_outcome 2"):
        assert not ask(find_arbitrage, board, guards=[])


def test_a_team_total_of_two_teams_is_a_conflict() -> None:
    board = table(row("a", "home_team_total", f"{AWAY} Over 110.5", 2.0, 110.5))
    assert aside(board) == {0: "side_conflict"}


def test_home_and_away_team_totals_are_two_markets() -> None:
    board = table(team_total("a", "home", 110.5, 2.3, None), team_total("b", "away", 110.5, None, 2.3))
    assert {m["subject"] for m in market_of(board)} == {"home", "away"}
    assert not ask(find_arbitrage, board, guards=[])


def test_a_team_on_a_game_total_is_no_game_total() -> None:
    assert aside(table(row("a", "total_points", "Celtics Over 110.5", 2.0, 110.5))) == {0: "unknown_outcome"}


# -- sides -----------------------------------------------------------------------------------------


def test_a_selection_may_be_the_word_for_a_team() -> None:
    """With or without the names of the teams, beside books that name them, and from the row's own point of view."""
    bare, swapped = {"home_team": None, "away_team": None}, {"home_team": AWAY, "away_team": HOME}
    rows = [
        row("a", "moneyline", HOME, 2.0), row("a", "moneyline", AWAY, 1.7),
        row("b", "moneyline", "Home", 2.1), row("b", "moneyline", "away", 1.8),
        row("c", "moneyline", "HOME", 2.2) | bare, row("c", "moneyline", "Away ", 1.75) | bare,
        row("d", "moneyline", "Home", 1.9) | swapped,
        row("e", "point_spread", "Home -2.5", 1.9, -2.5), row("e", "point_spread", "Away +2.5", 1.95, 2.5),
    ]  # fmt: skip
    board = table(*rows)
    assert not aside(board)
    found = {m["family"]: m for m in oe.markets(board).to_dicts()}
    assert found["moneyline"]["books"] == ["a", "b", "c", "d"]
    assert found["spread"]["books"] == ["e"]
    (best,) = ask(find_arbitrage, board, guards=[], max_profit=None)
    assert [(leg["sportsbook"], leg["odds_decimal"]) for leg in best["legs"]] == [("c", 2.2), ("d", 1.9)]


def test_a_team_of_that_name_is_meant() -> None:
    odd = {"home_team": "Away", "away_team": "Home"}
    board = table(
        row("a", "moneyline", "Home", 2.2) | odd, row("a", "moneyline", "Away", 1.7) | odd,
        row("b", "moneyline", "Home", 1.7) | odd, row("b", "moneyline", "Away", 2.2, selection_type="home") | odd,
    )  # fmt: skip
    assert not aside(board)  # else the last one is a conflict
    assert len(ask(find_arbitrage, board, guards=[], max_profit=None)) == 1


def test_a_contract_that_says_yes_typed_home_on_a_moneyline() -> None:
    """Yes to what? Not the home side's win merely because of its type."""
    board = table(
        row("kalshi", "moneyline", "Yes", 2.4, selection_type="home"),
        row("kalshi", "moneyline", "No", 2.4, selection_type="away"),
        moneyline("b", 1.9, 1.9),
    )  # fmt: skip
    assert aside(board) == {0: "unknown_outcome", 1: "unknown_outcome"}
    assert not ask(find_arbitrage, board, guards=[])


def test_yes_typed_home_in_a_yes_no_market_is_a_yes() -> None:
    first = row("a", "both_teams_to_score", "Yes", 2.0, selection_type="home", **LA_LIGA)
    second = row("b", "btts", "No", 1.95, selection_type="away", **LA_LIGA)
    assert meet(first, second)["outcomes"] == ["yes", "no"]


@pytest.mark.parametrize(
    ("fields", "text", "outcome"),
    [
        (COLLEGE, "Iowa Hawkeyes", "home"), (COLLEGE, "Ohio State Buckeyes", "away"),
        (COLLEGE, "IOWA HAWKEYES", "home"),
        (LA_LIGA, "Torino", "away"), (LA_LIGA, "Torino FC", "away"), (LA_LIGA, "Atletico Madrid", "home"),
        (LA_LIGA, "ATLÉTICO DE MADRID", "home"), (SCHALKE, "Schalke 04", "home"), (SCHALKE, "FC Schalke 04", "home"),
        (SCHALKE, "Schalke", "home"), (SCHALKE, "Mainz 05", "away"), (ST_JOHNS, "St. John's", "home"),
        (ST_JOHNS, "St Johns", "home"), (ST_JOHNS, "St. John’s", "home"),
    ],
)  # fmt: skip
def test_names_of_teams(fields: dict[str, Any], text: str, outcome: str) -> None:
    """A name that ends in yes, no or a number is a name; accents, capitals and punctuation do not matter."""
    market = "draw_no_bet" if fields["sport"] == "soccer" else "moneyline"
    board = table(row("a", market, text, 2.2, **fields), moneyline("b", 2.1, 2.1, market=market, **fields))
    assert not aside(board, guards=[])
    (arb,) = ask(find_arbitrage, board, guards=[], max_profit=None)
    assert ("a", 2.2) in legs(arb)
    assert [leg["selection_type"] for leg in arb["legs"] if leg["sportsbook"] == "a"] == [outcome]


@pytest.mark.parametrize(
    "text", ["76ers", "Philadelphia 76ers", "PHI 76ers", "Sixers", "76ers -2.5", "Philadelphia 76ers (-2.5)"]
)
def test_a_name_that_is_a_number(text: str) -> None:
    sixers: dict[str, Any] = dict(home_team="Philadelphia 76ers", away_team="Boston Celtics")
    meet(row("a", "point_spread", text, 2.0, -2.5, **sixers), row("b", "point_spread", "Celtics", 1.95, 2.5, **sixers))


@pytest.mark.parametrize(
    ("text", "outcome"), [("Boston", "home"), ("BOSTON -2.5", "home"), ("Oklahoma City", "away"), ("Oklahoma", "away")]
)
def test_a_city_alone_is_the_team_that_begins_with_it(text: str, outcome: str) -> None:
    teams: dict[str, Any] = dict(home_team="Boston Celtics", away_team="Oklahoma City Thunder")
    line = -2.5 if outcome == "home" else 2.5
    full = "Thunder" if outcome == "home" else "Boston Celtics"
    market = meet(
        row("a", "point_spread", text, 2.0, line, **teams), row("b", "point_spread", full, 1.95, -line, **teams)
    )
    assert market["line"] == -2.5


def test_a_city_that_both_teams_have_is_neither() -> None:
    teams: dict[str, Any] = dict(home_team="Los Angeles Lakers", away_team="Los Angeles Clippers")
    assert aside(table(row("a", "moneyline", "Los Angeles", 2.0, **teams))) == {0: "unknown_outcome"}
    assert aside(table(row("a", "moneyline", "Los", 2.0, home_team="Lost Boys", away_team="B"))) == {
        0: "unknown_outcome"
    }


def test_a_city_on_a_game_total_is_no_game_total() -> None:
    board = table(row("a", "total_points", "Boston Over 110.5", 2.0, 110.5))
    assert aside(board) == {0: "unknown_outcome"}
    total = table(row("a", "team_total", "Boston Over 110.5", 2.0, 110.5))
    assert not aside(total)


def test_a_team_whose_name_ends_in_yes() -> None:
    names: dict[str, Any] = dict(sport="esports", home_team="Team Yes", away_team="Game Over")
    market = meet(row("a", "moneyline", "Team Yes", 2.0, **names), row("b", "moneyline", "game over", 1.9, **names))
    assert market["outcomes"] == ["home", "away"]


def test_two_sources_name_the_teams_differently() -> None:
    short = moneyline("a", 2.2, None, home_team="Celtics", away_team="LA Lakers")
    meet(short, moneyline("b", None, 1.95), row("c", "moneyline", "LAL", 1.9))
    accents = moneyline("a", 2.2, 3.2, 3.2, **{**LA_LIGA, "home_team": "ATLETICO MADRID", "away_team": "Torino F.C."})
    meet(accents, moneyline("b", 2.1, 3.1, 3.3, **LA_LIGA))


@pytest.mark.parametrize(
    ("market", "line", "first", "second"),
    [
        ("point_spread", -2.5, "Celtics -2.5", "Los Angeles Lakers +2.5"),
        ("point_spread", -2.5, "Boston Celtics (-2.5)", "LA Lakers (+2.5)"),
        ("total_points", 220.5, "Over 220.5", "Under 220.5"),
        ("total_points", 220.5, "O 220.5", "u220.5"),
        ("total_points", 220.5, "OVER", "under (220.5)"),
        ("player_points", 25.5, "LeBron James Over 25.5", "LeBron James Under"),
        ("player_points", 25.5, "Over LeBron James 25.5", "lebron james under 25.5 points"),
    ],
)
def test_texts_with_a_line(market: str, line: float, first: str, second: str) -> None:
    lower = -line if market == "point_spread" else line
    meet(row("a", market, first, 2.0, line), row("b", market, second, 1.95, lower))


def test_a_player_by_text_and_by_column() -> None:
    market = meet(
        row("a", "player_points", "Luka Dončić Over 28.5", 2.0, 28.5), prop("b", "LUKA DONCIC", 28.5, None, 1.95)
    )
    assert market["subject"] == "luka doncic"
    board = table(prop("a", "Luka Dončić", 28.5, 2.3, None), prop("b", "LeBron James", 28.5, None, 2.3))
    assert not ask(find_arbitrage, board, guards=[])


def test_a_prop_without_a_player_is_no_market() -> None:
    assert aside(table(row("a", "player_points", "Over", 2.0, 25.5))) == {0: "unknown_outcome"}


def test_a_type_decides_where_the_text_is_silent() -> None:
    meet(
        row("a", "moneyline", "1", 2.0, selection_type="home"), row("b", "moneyline", "2", 1.95, selection_type="away")
    )


# -- home and away ---------------------------------------------------------------------------------


def test_a_book_that_swaps_home_and_away() -> None:
    """Its rows are swapped, their handicap with them."""
    swapped: dict[str, Any] = dict(home_team=AWAY, away_team=HOME)
    straight = [spread(b, -2.5, 1.9, 1.9) for b in "bc"]
    market = meet(*straight, spread("a", 2.5, 1.9, 1.9, **swapped))
    assert (market["line"], market["books"]) == (-2.5, ["a", "b", "c"])
    one = table(moneyline("a", 3.0, 1.5, **swapped), moneyline("b", 1.5, 3.0), moneyline("c", 1.5, 3.0))
    assert len(market_of(one)) == 1
    assert not ask(find_arbitrage, one, guards=[])
    typed = [
        row("a", "moneyline", "?", odds, selection_type=kind, **swapped)
        for odds, kind in ((3.0, "home"), (1.5, "away"))
    ]
    assert not ask(find_arbitrage, table(typed, moneyline("b", 1.5, 3.0), moneyline("c", 1.5, 3.0)), guards=[])


def test_a_swapped_team_total() -> None:
    swapped: dict[str, Any] = dict(home_team=AWAY, away_team=HOME)
    rows = [team_total(b, "home", 110.5, 1.9, 1.9) for b in "bc"]
    assert meet(*rows, team_total("a", "away", 110.5, 1.9, 1.9, **swapped))["subject"] == "home"


# -- what settles how ------------------------------------------------------------------------------


def test_a_push_makes_the_edge_of_a_stake_smaller() -> None:
    """EV is conditional on no push; a whole line pushes where the ladder jumps, a quarter line half as often."""
    ladder = [total("pinnacle", 219.5, 1.87, 2.02), total("pinnacle", 220.5, 1.95, 1.95)]
    board = table(*ladder, total("pinnacle", 220.0, 1.91, 1.98), total("a", 220.0, 2.1, 1.75))
    value = next(e for e in ask(find_ev, board) if e["sportsbook"] == "a")
    over = {
        e["line"]: e["fair_probability"]
        for e in ask(find_ev, table(*ladder, *(total("z", x, 1.9, 1.9) for x in (219.5, 220.5))), min_ev=-90.0)
        if e["selection"] == "Over"
    }
    push = over[219.5] - over[220.5]
    assert value["push_probability"] == pytest.approx(push)
    assert value["ev_per_stake"] == pytest.approx(value["ev_percentage"] * (1.0 - push))
    quarter = table(*ladder, total("pinnacle", 220.25, 1.93, 1.965), total("a", 220.25, 2.1, 1.75))
    value = next(e for e in ask(find_ev, quarter) if e["sportsbook"] == "a")
    assert value["push_probability"] == pytest.approx(push / 2.0)
    half = table(*ladder, total("a", 220.5, 2.1, 1.75))
    value = next(e for e in ask(find_ev, half) if e["sportsbook"] == "a")
    assert value["push_probability"] == 0.0
    assert value["ev_per_stake"] == value["ev_percentage"]


def test_quarter_lines_and_pushes_in_middles() -> None:
    """Over 2 and under 3.25: two pushes the over, three wins both but for half the under."""
    fields = {**LA_LIGA, "market": "total_goals"}
    board = table(total("a", 2.0, 1.6, None, **fields), total("b", 3.25, None, 1.6, **fields),
                  total("pinnacle", 2.5, 1.95, 1.95, **fields))  # fmt: skip
    (middle,) = [m for m in ask(find_middles, board) if m["side1"]["sportsbook"] == "a"]
    assert middle["middle_numbers"] == [3]
    assert middle["middle_size"] == 1.25


def test_books_nobody_knows_work() -> None:
    board = table(total("my_corner_shop", 220.5, 2.1, 1.8), total("yours", 220.5, 1.8, 2.1))
    assert legs(ask(find_arbitrage, board)[0]) == [("my_corner_shop", 2.1), ("yours", 2.1)]
    (value, *_) = ask(
        find_ev, table(total("yours", 220.5, 1.95, 1.95), total("my_corner_shop", 220.5, 2.1, 1.8)), sharp="yours"
    )
    assert (value["sportsbook"], value["sharp_book"]) == ("my_corner_shop", "yours")


def test_sports_nobody_knows_work() -> None:
    fields: dict[str, Any] = dict(
        event_id="q", sport="quidditch", league="hogwarts", home_team="Gryffindor", away_team="Slytherin"
    )
    board = table(moneyline("a", 2.1, 1.8, **fields), moneyline("b", 1.8, 2.1, **fields))
    assert len(ask(find_arbitrage, board)) == 1
    assert len(ask(find_low_hold, table(moneyline("a", 2.0, 1.8, **fields), moneyline("b", 1.8, 2.0, **fields)))) == 1


def test_events_without_sport_teams_or_times_work() -> None:
    bare: dict[str, Any] = dict.fromkeys(("sport", "league", "home_team", "away_team", "last_seen_at"))
    rows = [
        row(b, "moneyline", kind, odds, selection_type=kind, **bare)
        for b, kind, odds in (("a", "home", 2.1), ("b", "away", 2.1))
    ]
    assert legs(ask(find_arbitrage, table(rows))[0]) == [("a", 2.1), ("b", 2.1)]


def test_a_table_has_as_many_books_as_a_key_can_hold() -> None:
    books = pl.DataFrame({"sportsbook": [f"book {at}" for at in range(65_537)]})
    one = pl.DataFrame(table(row("a", "point_spread", HOME, 2.0, -2.5))).drop("sportsbook")
    with pytest.raises(OverflowError, match=r"too many books: .* is number 65,537, a board takes up to 65,536"):
        find_ev(books.join(one, how="cross"))


UTAH: dict[str, Any] = dict(sport="hockey", league="nhl", home_team="Utah Mammoth", away_team="Boston Bruins")
SOCCER: dict[str, Any] = dict(event_id="x", league="b", home_team="FC Schalke 04", away_team="Hannover 96")


@pytest.mark.parametrize("sport", ["soccer", "Soccer", " SOCCER", "association football", "soccer_epl"])
def test_a_sport_is_found_however_it_is_written(sport: str) -> None:
    words: dict[str, Any] = dict(SOCCER, sport=sport)
    board = table(
        row("betmgm", "moneyline", "FC Schalke 04", 2.2, **words),
        row("betmgm", "moneyline", "Hannover 96", 1.8, **words),
        row("caesars", "moneyline", "FC Schalke 04", 1.8, **words),
        row("caesars", "moneyline", "Hannover 96", 2.2, **words),
    )
    with nothing("4 of 4 rows are rejected: ambiguous_moneyline 4"):
        assert arbs(board).height == 0
    assert set(oe.rejected(board, now=MOMENT)["guard"]) == {"ambiguous_moneyline"}


def test_a_moneyline_with_a_misspelt_team_names_the_selection_that_was_not_recognised() -> None:
    board = table(
        row("betmgm", "moneyline", "Los Angeles Lakers", 2.2),
        row("betmgm", "moneyline", "Bostn Celtcs", 1.8),
        row("caesars", "moneyline", "Los Angeles Lakers", 2.1),
    )
    reasons = {(book, text): (guard, why) for book, text, guard, why in oe.rejected(board, now=MOMENT).select(
        "sportsbook", "selection", "guard", "reason").rows()}  # fmt: skip
    assert reasons == {
        ("betmgm", "Los Angeles Lakers"): (
            "ambiguous_moneyline", "the book's other selection is neither team, and may be the draw: 'Bostn Celtcs'",
        ),
        ("betmgm", "Bostn Celtcs"): ("unknown_outcome", "the selection is not an outcome of the market"),
    }  # fmt: skip


@pytest.mark.parametrize("spelling", ["DraftKings", "dk", "draftkings "])
def test_two_spellings_of_a_book_are_one_book(spelling: str) -> None:
    with nothing("4 of 4 rows are rejected: duplicate_outcome 4"):
        assert arbs(table(moneyline("draftkings", 2.1, 1.8), moneyline(spelling, 1.8, 2.1))).height == 0


@pytest.mark.parametrize(
    "draw", [dict(selection="Unentschieden"), dict(selection="Draw", is_live="maybe"), dict(selection="Draw", odds=0.5)]
)
def test_a_draw_that_does_not_read_makes_no_two_way_moneyline(draw: dict[str, Any]) -> None:
    home, away = UTAH["home_team"], UTAH["away_team"]
    words: dict[str, Any] = {**UTAH, **draw}
    rows = [
        row("betmgm", "moneyline", home, 2.5, **UTAH),
        row("betmgm", "moneyline", words.pop("selection"), words.pop("odds", 4.2), **words),
        row("caesars", "moneyline", away, 1.8, **UTAH),
        row("caesars", "moneyline", home, 2.0, **UTAH),
    ]
    frame = pl.DataFrame([r | {"is_live": str(r["is_live"]).lower()} for r in rows], infer_schema_length=None)
    assert arbs(frame).height == 0


def test_a_number_in_a_name_is_not_its_line() -> None:
    words: dict[str, Any] = dict(SOCCER, sport="soccer")
    board = table(
        row("a1", "asian_handicap", "FC Schalke 04 -0.5", 2.1, -0.5, selection_type="away", **words),
        row("b1", "asian_handicap", "Hannover 96 +0.5", 2.1, 0.5, selection_type="home", **words),
    )
    with nothing("2 of 2 rows are rejected: side_conflict 2"):
        assert arbs(board).height == 0
    assert set(oe.rejected(board, now=MOMENT)["guard"]) == {"side_conflict"}


@pytest.mark.parametrize("first", [0.5, 1.9])
def test_markets_where_the_teams_are_named_best_by_a_row_without_a_price(first: float) -> None:
    board = table(
        row("betmgm", "point_spread", HOME, first, -3.5, home_team=" "),
        row("betmgm", "total_points", "Over", 1.9, 220.5, home_team="Boston Basketball"),
        row("caesars", "point_spread", HOME, 0.5, -3.5),
        row("caesars", "point_spread", "Los Angeles Lakers", 0.5, 3.5),
    )
    assert oe.markets(board, now=MOMENT)["event_id"].to_list() == ["e"]
