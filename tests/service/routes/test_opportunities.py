"""Opportunities over the wire: against plain loops over the finders' rows, and the interface's tables of fields."""

import csv
import io
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any
from weakref import ref
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.effort import less
from support.handler_calls import answer, found, node, world

import oddsengine as oe
import oddsengine_service.routes.opportunities as module
from oddsengine import catalog
from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine_service.board.views import Views
from oddsengine_service.errors import Problem
from oddsengine_service.node import Node
from oddsengine_service.routes import event_routes, odds_routes
from oddsengine_service.settings import SettingsError, load
from oddsengine_service.tiers import books_of
from oddsengine_service.wire.encodings import ENCODINGS

EV = found(module.endpoints, "/opportunities/ev")
ARB = found(module.endpoints, "/opportunities/arbitrage")
MIDDLES = found(module.endpoints, "/opportunities/middles")
MIDDLE = found(module.endpoints, "/opportunities/middles/{id}")
SUMMARY = found(module.endpoints, "/opportunities/middles/summary")
HOLD = found(module.endpoints, "/opportunities/low_hold")
EASTERN = ZoneInfo("America/New_York")
EPSILON = 1e-7


@cache
def here() -> Node:
    """A node over a world with games in play, today and tomorrow."""
    return node(world(11, 2, events=20, hazards=True, live=0.3))


@cache
def truth(books: frozenset[str] | None, sharp: str | None = None, method: str | None = None) -> oe.Opportunities:
    """Everything there is over some books, by the finders over the whole table."""
    engine = here().engine
    return oe.find_all(
        engine.table(), books=books, sharp=sharp, method=method, now=engine.moment, min_ev=-4.0, min_profit=-6.0,
        max_hold=8.0, min_middle_ev=None,
    )  # fmt: skip


_ROWS: dict[int, tuple[pl.DataFrame, list[dict[str, Any]]]] = {}


def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    if id(frame) not in _ROWS:
        _ROWS[id(frame)] = frame, frame.to_dicts()
    return _ROWS[id(frame)][1]


# ---- the same in plain loops ----


def means(asked: list[str], sport: str, market: str) -> bool:
    for word in asked:
        for kind in catalog.categories().get(word, (word,)):
            if kind == "player_*":
                if catalog.market_type(market, sport).is_prop:
                    return True
                continue
            one, two = catalog.market_type(kind, sport), catalog.market_type(market, sport)
            alike = one.family == two.family or (
                catalog.sport(sport).draws and {one.family, two.family} == {"moneyline", "moneyline_3way"}
            )
            if kind == market or (one.usable and two.usable and alike and one.period == two.period):
                return True
    return False


def plays(asked: list[str], row: dict[str, Any]) -> bool:
    names = [row["home_team"], row["away_team"]]
    for word in asked:
        known = catalog.team(word, row["sport"], row["league"])
        for name in names:
            team = catalog.team(name, row["sport"], row["league"])
            if (known is not None and known == team) or catalog.normalise(word) == catalog.normalise(name):
                return True
    return False


def day_of(when: datetime) -> Any:
    return when.astimezone(EASTERN).date()


def fits(row: dict[str, Any], q: dict[str, Any], age: str, prices: list[float]) -> bool:
    now = here().engine.now
    assert now is not None
    today = day_of(now)
    days = {"today": (0, 1), "tomorrow": (1, 2), "week": (0, 7)}
    start = row["event_start_time"]
    dated = q.get("date_range")
    first, last = days[dated or "today"]
    tests = [
        "sport" not in q or row["sport"] in [catalog.sport(word).id for word in q["sport"].split(",")],
        "league" not in q
        or row["league"] in [catalog.league(word, row["sport"]).id for word in q["league"].split(",")],
        "market" not in q or means(q["market"].split(","), row["sport"], row["market_type"]),
        "event" not in q or row["event_id"] in q["event"].split(","),
        "live" not in q or row["is_live"] == q["live"],
        "is_player_prop" not in q or row["is_player_prop"] == q["is_player_prop"],
        "is_main_line" not in q or row.get("is_alternate_line") != q["is_main_line"],
        "terms" not in q or not row["terms_differ"],
        "team" not in q or plays(q["team"].split(","), row),
        "max_odds_age" not in q or (row[age] is not None and row[age] <= q["max_odds_age"]),
        "min_odds" not in q or min(prices) >= q["min_odds"],
        "max_odds" not in q or max(prices) <= q["max_odds"],
        dated is None
        or (start is not None and first <= (day_of(start) - today).days < last),
        "q" not in q or catalog.normalise(q["q"]) in catalog.normalise(row["event_name"])
        or catalog.normalise(q["q"]) in catalog.normalise(row["player_name"] or "")
        or ("selection" in row and catalog.normalise(q["q"]) in catalog.normalise(row["selection"])),
    ]  # fmt: skip
    return all(tests)


def between(value: float | None, q: dict[str, Any], low: str, high: str) -> bool:
    if low not in q and high not in q:
        return True
    if value is None:
        return False
    least, most = float(q.get(low, -1e18)), float(q.get(high, 1e18))
    return least - EPSILON <= value <= most + EPSILON


def ordered(kept: list[dict[str, Any]], sort: str, columns: dict[str, tuple[str, bool]]) -> list[dict[str, Any]]:
    column, falls = columns[sort.removeprefix("-")]
    falls ^= sort.startswith("-")
    known = [row for row in kept if row[column] is not None]
    known.sort(key=lambda row: row[column], reverse=False)
    if falls:  # a stable sort, largest first
        values = sorted({row[column] for row in known}, reverse=True)
        known = [row for value in values for row in known if row[column] == value]
    return known + [row for row in kept if row[column] is None]


def cut(kept: list[dict[str, Any]], q: dict[str, Any]) -> list[str]:
    offset = q.get("offset", 0)
    return [row["id"] for row in kept[offset : offset + q.get("limit", 50)]]


def books_asked(q: dict[str, Any], tier: str) -> frozenset[str] | None:
    own = books_of(tier)
    if "sportsbook" not in q:
        return own
    asked = frozenset(q["sportsbook"].split(","))
    assume(own is None or asked <= own)  # else the request is refused
    return asked


COLUMNS = {
    "ev": ("ev_percentage", False), "odds": ("odds_decimal", False), "confidence": ("confidence_score", False),
    "kelly": ("kelly_percent", False), "start_time": ("event_start_time", False), "book_count": ("book_count", False),
    "time": ("event_start_time", False), "books": ("book_count", False), "still_there": ("still_there", False),
}  # fmt: skip
ARB_COLUMNS = {"profit": ("profit_percent", True), "start_time": ("event_start_time", False), "sport": ("sport", False)}
MIDDLE_COLUMNS = {
    "quality": ("quality_score", True), "ev": ("expected_value", True), "probability": ("middle_probability", True),
    "middle_size": ("middle_size", True),
}  # fmt: skip
HOLD_COLUMNS = {
    "hold": ("hold_percentage", False),
    "start_time": ("event_start_time", False),
    "sport": ("sport", False),
}

SHARED = {
    "sport": st.sampled_from(["football", "basketball,soccer", "hockey,baseball", "nfl", "ice hockey", "tennis"]),
    "league": st.sampled_from(["nfl", "nba,mlb", "soccer_epl", "premier league", "bundesliga"]),
    "market": st.sampled_from(
        ["main", "spread", "total", "props", "moneyline", "h2h,team_total", "point_spread,props", "1st_half_totals"]
    ),
    "sportsbook": st.sampled_from(["draftkings,fanduel", "fanduel,betmgm,caesars", "draftkings,betrivers,espnbet"]),
    "live": st.booleans(),
    "is_player_prop": st.booleans(),
    "team": st.sampled_from(["Lakers", "Boston Celtics,chiefs", "liverpool", "nobody at all", "new_york_jets"]),
    "max_odds_age": st.sampled_from([0.5, 2.0, 3.4, 3.5, 60.0]),
    "min_odds": st.sampled_from([-150.0, -110.0, 100.0, 105.5]),
    "max_odds": st.sampled_from([-105.0, 100.0, 130.0, 400.0]),
    "date_range": st.sampled_from(["today", "tomorrow", "week"]),
    "q": st.sampled_from(["ak", "SAN", "é", "united", "over"]),
    "limit": st.integers(1, 200),
    "offset": st.integers(0, 60),
}
MAIN = {"is_main_line": st.booleans()}
LEGS = {"terms": st.just("same")}


def queries(more: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Up to six parameters of all there are."""
    every = {**SHARED, **more}
    names = st.lists(st.sampled_from(sorted(every)), unique=True, max_size=6)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: every[name] for name in chosen}))


@given(
    queries(
        MAIN
        | {
            "min_ev": st.sampled_from([-3.5, -3.0, -0.5, 0.0, 0.8, 2.0]),
            "max_ev": st.sampled_from([-1.0, 0.5, 1.5, 40.0]),
            "min_market_width": st.sampled_from([1.0, 2.5, 4.0]),
            "max_market_width": st.sampled_from([1.0, 2.5, 4.0]),
            "max_hold": st.sampled_from([2.0, 3.0]),
            "min_kelly": st.sampled_from([0.0, 0.005, 0.02]),
            "max_kelly": st.sampled_from([0.0, 0.005, 0.02]),
            "min_confidence": st.sampled_from([10.0, 80.0, 95.0]),
            "max_confidence": st.sampled_from([10.0, 80.0, 95.0]),
            "min_still_there": st.sampled_from([0.0, 0.3, 0.5, 0.6, 1.0]),
            "sort": st.sampled_from([f"{sign}{name}" for name in COLUMNS for sign in ("", "-")]),
        }
    ),
    st.sampled_from(["pro", "sharp"]),
)
@example(q={"min_still_there": 0.0}, tier="pro")
@example(q={"min_still_there": 0.5, "sort": "-still_there"}, tier="pro")
@example(q={"sort": "still_there", "limit": 200}, tier="pro")
def test_ev_is_what_plain_loops_find(q: dict[str, Any], tier: str) -> None:
    kept = []
    for row in rows(truth(books_asked(q, tier)).ev):
        if (
            fits(row, q, "oldest_odds_age_seconds", [row["odds_american"]])
            and between(row["ev_percentage"], {"min_ev": 0.0} | q, "min_ev", "max_ev")
            and between(row["market_width"], q, "min_market_width", "max_market_width")
            and between(row["market_width"], q, "-", "max_hold")
            and between(row["kelly_percent"], q, "min_kelly", "max_kelly")
            and between(row["confidence_score"], q, "min_confidence", "max_confidence")
            and between(row["still_there"], q, "min_still_there", "-")
        ):
            kept.append(row)
    kept = ordered(kept, q.get("sort", "-ev"), COLUMNS)
    got = answer(EV, here(), q, tier)
    assert [row["id"] for row in got["data"]] == cut(kept, q)
    assert got["meta"]["total"] == len(kept) == got["meta"]["summary"]["count"]
    counts: dict[str, int] = {}
    for row in kept:
        counts[row["sportsbook"]] = counts.get(row["sportsbook"], 0) + 1
    assert got["meta"]["summary"]["by_sportsbook"] == counts
    if kept:
        assert got["meta"]["summary"]["max_ev"] == round(max(row["ev_percentage"] for row in kept), 4)
        mean = sum(row["ev_percentage"] for row in kept) / len(kept)
        assert got["meta"]["summary"]["avg_ev"] == pytest.approx(mean, abs=1e-4)


@given(
    queries(
        MAIN
        | LEGS
        | {
            "min_profit": st.sampled_from([-5.0, -1.0, 0.0, 0.5, 1.0]),
            "group": st.just("best"),
            "sort": st.sampled_from([f"{sign}{name}" for name in ARB_COLUMNS for sign in ("", "-")]),
        }
    ),
    st.sampled_from(["hobby", "pro", "sharp"]),
)
@example(q={"min_profit": 0.0}, tier="pro")
def test_arbitrage_is_what_plain_loops_find(q: dict[str, Any], tier: str) -> None:
    kept, events = [], set()
    for row in rows(truth(books_asked(q, tier)).arbitrage):
        prices = [leg["odds_american"] for leg in row["legs"]]
        if not fits(row, q, "oldest_odds_age_seconds", prices):
            continue
        least = q.get("min_profit", 0.5)
        if row["profit_percent"] < least - 1e-7 or (least >= 0.0 and row["profit_percent"] <= 1e-7):
            continue  # what breaks even is a low hold
        if "group" in q and row["event_id"] in events:
            continue
        events.add(row["event_id"])
        kept.append(row)
    kept = ordered(kept, q.get("sort", "profit"), ARB_COLUMNS)
    got = answer(ARB, here(), q, tier)
    assert [row["id"] for row in got["data"]] == cut(kept, q)
    assert got["meta"]["total"] == len(kept) == got["meta"]["summary"]["count"]


@given(
    queries(
        LEGS
        | {
            "min_ev": st.sampled_from([-50.0, -1.0, 0.0, 0.7]),
            "max_ev": st.sampled_from([-1.0, 0.5]),
            "min_size": st.sampled_from([0.0, 1.5, 2.0, 4.0]),
            "sort": st.sampled_from([f"{sign}{name}" for name in MIDDLE_COLUMNS for sign in ("", "-")]),
        }
    ),
    st.sampled_from(["pro", "sharp"]),
)
def test_middles_are_what_plain_loops_find(q: dict[str, Any], tier: str) -> None:
    kept = []
    for row in rows(truth(books_asked(q, tier)).middles):
        prices = [row[side]["odds_american"] for side in ("side1", "side2")]
        if (
            fits(row, q, "odds_age_seconds", prices)
            and between(row["expected_value"], {"min_ev": 0.0} | q, "min_ev", "max_ev")
            and between(row["middle_size"], q, "min_size", "-")
        ):
            kept.append(row)
    kept = ordered(kept, q.get("sort", "quality"), MIDDLE_COLUMNS)
    got = answer(MIDDLES, here(), q, tier)
    assert [row["id"] for row in got["data"]] == cut(kept, q)
    summary = answer(SUMMARY, here(), q, tier)["data"]
    assert summary["total"] == len(kept) == got["meta"]["total"]
    assert summary["positive_ev_count"] == sum(row["expected_value"] > 0.0 for row in kept)
    assert summary["guaranteed_profit_count"] == sum(row["is_guaranteed_profit"] for row in kept)
    assert summary["has_key_numbers_count"] == sum(bool(row["key_numbers"]) for row in kept)
    assert sum(summary["by_sportsbook"].values()) == 2 * len(kept)
    if kept:
        assert summary["best_ev"]["ev"] == round(max(row["expected_value"] for row in kept), 4)


@given(
    queries(
        MAIN
        | LEGS
        | {
            "max_hold": st.sampled_from([0.0, 0.5, 2.0, 3.3, 7.0]),
            "min_hold": st.sampled_from([0.5, 1.0]),
            "sort": st.sampled_from([f"{sign}{name}" for name in HOLD_COLUMNS for sign in ("", "-")]),
        }
    ),
    st.sampled_from(["hobby", "sharp"]),
)
def test_low_holds_are_what_plain_loops_find(q: dict[str, Any], tier: str) -> None:
    kept = []
    for row in rows(truth(books_asked(q, tier)).low_hold):
        sides = [row[side] for side in ("side1", "side2", "side3") if row[side] is not None]
        prices = [side["odds_american"] for side in sides]
        if fits(row, q, "oldest_odds_age_seconds", prices) and between(
            row["hold_percentage"], {"max_hold": 2.0} | q, "min_hold", "max_hold"
        ):
            kept.append(row)
    kept = ordered(kept, q.get("sort", "hold"), HOLD_COLUMNS)
    got = answer(HOLD, here(), q, tier)
    assert [row["id"] for row in got["data"]] == cut(kept, q)
    assert got["meta"]["total"] == len(kept)


# ---- fields ----

EV_FIELDS = """
    id game_id external_event_id selection_id ev_percentage odds_american odds_decimal no_vig_odds
    fair_probability market_width devig_method sharp_book selection market line sportsbook game sport league
    home_team away_team start_time is_live confidence_score kelly_percent book_count arb_available arb_profit
    is_player_prop player_name player_id stat_category possibly_stale oldest_odds_age_seconds warnings detected_at
    ev_percent devig_book team_side market_segment selection_type push_probability ev_per_stake
    is_alternate_line shared_feed odds_id unconfirmed odds_decimal_net reference ev_vs_sharp ev_low ev_high ev_error
    prob_positive flags kelly_shrunk independent_books agreeing_books max_bet still_there tie_probability
    min_bet bet_step bet_delay
"""
ARB_FIELDS = """
    id event_id event_name sport league market_type line profit_percent implied_total is_live start_time
    is_alternate_line possibly_stale oldest_odds_age_seconds warnings game_state ev_available ev_percentage
    is_player_prop player_name player_id stat_category legs detected_at ev_percent devig_book team_side market_segment
    home_team away_team book_count unconfirmed largest_stakes largest_payout largest_profit largest_currency
    terms_differ terms_worst_case terms terms_results
"""
LEG_FIELDS = """
    sportsbook selection odds_american odds_decimal implied_probability stake_percent timestamp
    external_event_id selection_id market_id selection_type line odds_id max_bet market_type
    min_bet bet_step bet_delay
"""
MIDDLE_FIELDS = """
    id event_id event_name sport league market_type side1 side2 middle_size middle_numbers middle_probability
    expected_value quality_score detected_at home_team away_team start_time roi_percentage worst_case_loss
    best_case_profit break_even_percent odds_age_seconds is_guaranteed_profit guaranteed_roi key_numbers
    key_number_probability market_overround is_live is_player_prop player_name player_id stat_category is_team_total
    team_name warnings team_side market_segment probability_source unconfirmed terms_differ terms_worst_case terms
    terms_results
"""
SIDE_FIELDS = """
    book selection line odds stake_percent odds_age_seconds deep_link odds_id max_bet min_bet bet_step bet_delay
"""
HOLD_FIELDS = """
    id event_id event_name sport league market_type line home_team away_team start_time hold_percentage is_live
    all_books side1 side2 detected_at side3 is_alternate_line is_player_prop player_name player_id stat_category
    confidence odds_age_seconds possibly_stale warnings team_side market_segment unconfirmed game_state
    terms_differ terms_worst_case terms terms_results
"""


def test_fields_are_the_published_ones() -> None:
    ev = answer(EV, here())
    arb = answer(ARB, here())
    middle = answer(MIDDLES, here())
    hold = answer(HOLD, here(), {"max_hold": 8})
    for got, fields in ((ev, EV_FIELDS), (arb, ARB_FIELDS), (middle, MIDDLE_FIELDS), (hold, HOLD_FIELDS)):
        assert got["success"] is True
        assert set(got["pagination"]) == {"limit", "offset", "has_more", "next_offset"}
        assert len(got["data"]) > 5
        assert all(sorted(row) == sorted(fields.split()) for row in got["data"])
    assert set(ev["meta"]) == {"count", "total", "source", "last_update", "summary", "filters"}
    assert set(ev["meta"]["summary"]) == {"count", "avg_ev", "max_ev", "by_sportsbook", "by_sport", "by_market"}
    names = ["sport", "league", "sportsbook", "market", "min_ev", "max_ev", "live", "sort", "include"]
    assert list(ev["meta"]["filters"]) == names
    assert ev["meta"]["filters"]["include"] is None
    assert set(arb["meta"]) == {"count", "total", "source", "summary", "filters", "books_analyzed"}
    assert set(arb["meta"]["summary"]) == {"count", "avg_profit", "max_profit", "by_market", "by_sport"}
    assert list(arb["meta"]["filters"]) == ["sport", "league", "sportsbook", "market", "live", "min_profit"]
    books = {catalog.book(name).id for name in here().engine.table()["sportsbook"].unique()}
    assert arb["meta"]["books_analyzed"] == len(books)
    for row in arb["data"]:
        assert all(sorted(leg) == sorted(LEG_FIELDS.split()) for leg in row["legs"])
        assert sum(leg["stake_percent"] for leg in row["legs"]) == pytest.approx(100.0, abs=1e-9)
    for row in middle["data"]:
        for side in (row["side1"], row["side2"]):
            assert list(side) == SIDE_FIELDS.split()
            assert list(side["odds"]) == ["american", "decimal", "probability", "fair_probability"]
    sides = [row[name] for row in hold["data"] for name in ("side1", "side2", "side3") if row[name] is not None]
    assert {tuple(side) for side in sides} == {
        ("selection", "books", "line", "odds", "deep_links", "odds_ids", "max_bets", "market_type",
         "min_bet", "bet_step", "bet_delay")
    }  # fmt: skip
    assert {tuple(side["odds"]) for side in sides} == {
        ("american", "decimal", "implied_probability", "fair_probability", "probability")
    }


def test_figures_follow_the_published_formulas() -> None:
    for row in answer(EV, here(), {"limit": 200, "sportsbook": "draftkings,fanduel,bet365"})["data"]:
        price, fair = row["odds_decimal"], row["fair_probability"]
        assert row["ev_percentage"] == row["ev_percent"] == pytest.approx((fair * price - 1.0) * 100.0, abs=1e-3)
        assert row["kelly_percent"] == pytest.approx(max(fair * price - 1.0, 0.0) / (price - 1.0), abs=1e-5)
        assert row["sharp_book"] == row["devig_book"]
        assert datetime.fromisoformat(row["detected_at"]).tzinfo == UTC
        assert row["detected_at"].endswith("Z")
    for row in answer(ARB, here())["data"]:
        assert row["profit_percent"] == pytest.approx(100.0 / (row["implied_total"] / 100.0) - 100.0, abs=1e-3)
        total = sum(leg["implied_probability"] for leg in row["legs"])
        assert total * 100.0 == pytest.approx(row["implied_total"], abs=1e-3)
        for leg in row["legs"]:
            assert leg["stake_percent"] == pytest.approx(100.0 * leg["implied_probability"] / total, abs=1e-3)
    for row in answer(MIDDLES, here())["data"]:
        assert row["roi_percentage"] == row["expected_value"]
        assert row["is_guaranteed_profit"] == (row["guaranteed_roi"] is not None)
        stakes = row["side1"]["stake_percent"] + row["side2"]["stake_percent"]
        assert stakes == pytest.approx(100.0, abs=1e-9)


def test_every_row_is_rounded_once() -> None:
    truths = {row["id"]: row for row in rows(truth(None).ev)}
    for row in answer(EV, here(), {"limit": 200})["data"]:
        whole = truths[row["id"]]
        assert row["ev_percentage"] == round(whole["ev_percentage"], 4)
        assert row["odds_decimal"] == round(whole["odds_decimal"], 6)
        assert row["no_vig_odds"] == round(whole["no_vig_odds"], 2)
        assert row["line"] == whole["line"]
        assert str(row["line"]) != "-0.0"


# ---- who sees what ----


def test_views_are_over_the_books_asked_for_and_not_filtered_afterwards() -> None:
    whole = {row["id"]: row for row in answer(ARB, here(), {"limit": 200, "min_profit": -1})["data"]}
    books = "draftkings,fanduel,betmgm,caesars"
    some = answer(ARB, here(), {"limit": 200, "min_profit": -1, "sportsbook": books})["data"]
    assert some
    assert {leg["sportsbook"] for row in some for leg in row["legs"]} <= set(books.split(","))
    assert {row["id"] for row in some} - set(whole)  # found among these, though others have better prices


def test_a_location_is_a_view_over_the_books_that_take_bets_there() -> None:
    query = {"limit": 200, "min_profit": -20}
    books = ",".join(catalog.books_in("US-PA"))
    some = answer(ARB, here(), {**query, "sportsbook": books})
    assert some["data"]
    assert answer(ARB, here(), {**query, "location": "US-PA"})["data"] == some["data"]
    more = answer(ARB, here(), {**query, "location": "US-PA", "location_unknown": "true"})
    assert more["meta"]["total"] > some["meta"]["total"]


def test_tiers_limit_books() -> None:
    got = answer(ARB, here(), {"limit": 200, "min_profit": -5}, "hobby")
    hobby = books_of("hobby")
    assert hobby is not None
    assert {leg["sportsbook"] for row in got["data"] for leg in row["legs"]} <= hobby
    assert got["meta"]["books_analyzed"] == len(hobby)
    with pytest.raises(Problem) as problem:
        answer(ARB, here(), {"sportsbook": "draftkings,pinnacle"}, "hobby")
    assert (problem.value.status, problem.value.code) == (403, "tier_restricted")
    with pytest.raises(Problem):
        answer(ARB, here(), {"add_sportsbook": "pinnacle"}, "hobby")
    with pytest.raises(Problem):
        answer(EV, here(), {"devig_book": "smarkets"}, "pro")
    assert answer(EV, here(), {"devig_book": "bookmaker"}, "pro")["data"]  # sharp: everybody's reference


def test_features_are_declared() -> None:
    needed = {each.path: each.feature for each in module.endpoints}
    assert needed == {
        "/opportunities/ev": "ev",
        "/opportunities/arbitrage": "arbitrage",
        "/opportunities/middles": "middles",
        "/opportunities/middles/summary": "middles",
        "/opportunities/middles/{id}": "middles",
        "/opportunities/ev/{id}": "ev",
        "/opportunities/arbitrage/{id}": "arbitrage",
        "/opportunities/low_hold/{id}": "low_hold",
        "/opportunities/low_hold": "low_hold",
        "/opportunities/low-hold": "low_hold",
        "/opportunities/explain/{opportunityId}": "",
    }


@pytest.mark.parametrize(("sharp", "method"), [("circa", "power"), ("pinnacle", "shin"), ("circa", "multiplicative")])
def test_another_reference_is_another_view(sharp: str, method: str) -> None:
    expected = [row for row in rows(truth(None, sharp, method).ev) if row["ev_percentage"] >= 1.0 - EPSILON]
    got = answer(EV, here(), {"devig_book": sharp, "devig_method": method, "min_ev": 1, "limit": 200})
    assert [row["id"] for row in got["data"]] == [row["id"] for row in expected][:200]
    assert got["meta"]["total"] == len(expected)
    assert {row["devig_method"] for row in got["data"]} == {method}
    assert {row["sharp_book"] for row in got["data"]} <= {sharp, "consensus"}


def test_what_nobody_knows_is_named_and_matches_nothing() -> None:
    asked = {"sport": "quidditch", "league": "nba,moon league", "market": "main,zzz", "sportsbook": "nowhere"}
    got = answer(EV, here(), asked)
    assert got["data"] == []
    assert got["meta"]["unknown"] == {
        "sport": ["quidditch"], "league": ["moon league"], "market": ["zzz"], "sportsbook": ["nowhere"],
    }  # fmt: skip
    one = answer(EV, here(), {"sportsbook": "nowhere,draftkings", "limit": 200})
    assert {row["sportsbook"] for row in one["data"]} == {"draftkings"}
    assert one["meta"]["unknown"] == {"sportsbook": ["nowhere"]}
    assert answer(EV, here(), {"devig_book": "nowhere"})["meta"]["unknown"] == {"devig_book": ["nowhere"]}
    assert answer(ARB, here(), {"event": "no such game"})["meta"]["unknown"] == {"event": ["no such game"]}
    assert "unknown" not in answer(EV, here(), {"sport": "football", "market": "1st_half_totals"})["meta"]
    assert answer(EV, here(), {"colour": "red"})["meta"]["ignored"] == ["colour"]


@pytest.mark.parametrize(
    "query",
    [{"sort": "luck"}, {"date_range": "year"}, {"limit": 0}, {"limit": 201}, {"offset": 5001}, {"min_ev": "nan"},
     {"devig_method": "magic"}, {"date": "2026-02-31"}, {"live": "maybe"}],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(query: dict[str, Any]) -> None:
    with pytest.raises(Problem) as problem:
        answer(EV, here(), query)
    assert (problem.value.status, problem.value.code) == (400, "validation_error")


def test_pages_end() -> None:
    total = answer(EV, here(), {"limit": 1})["meta"]["total"]
    last = answer(EV, here(), {"limit": 10, "offset": total - 3})
    assert len(last["data"]) == 3
    assert last["pagination"] == {"limit": 10, "offset": total - 3, "has_more": False, "next_offset": None}
    assert answer(EV, here(), {"offset": total})["data"] == []


def starting_at(now: datetime, starts: dict[str, datetime | None]) -> Node:
    """A node with one arbitrage for each event."""
    engine = Engine(guards=[])
    engine.step(
        [
            {
                "event_id": event, "sport": "tennis", "league": "atp", "home_team": f"A{event}", "away_team": "B",
                "sportsbook": book, "market_type": "moneyline", "selection": side, "odds_decimal": odds,
                "event_start_time": start, "last_seen_at": now,
            }
            for event, start in starts.items()
            for book, one, two in (("draftkings", 2.2, 1.7), ("fanduel", 1.7, 2.2))
            for side, odds in ((f"A{event}", one), ("B", two))
        ],
        now,
    )  # fmt: skip
    return node(engine)


def test_days_are_those_of_us_eastern_time() -> None:
    """Around the night in which clocks go forward: the 8th of March begins at 5:00 UTC and ends at 4:00."""
    now = datetime(2026, 3, 8, 4, 30, tzinfo=UTC)  # the evening of the 7th
    day = datetime(2026, 3, 8, tzinfo=UTC)
    starts = {
        "a": day.replace(hour=4, minute=59), "b": day.replace(hour=5), "c": day + timedelta(hours=27, minutes=59),
        "d": day + timedelta(hours=28), "e": day + timedelta(days=6, hours=3, minutes=59),
        "f": day + timedelta(days=6, hours=4), "g": None,
    }  # fmt: skip
    node_ = starting_at(now, starts)

    def ids(**q: Any) -> str:
        return "".join(sorted(row["event_id"] for row in answer(ARB, node_, q)["data"]))

    assert ids() == "abcdefg"
    assert ids(date_range="today") == ids(date="today") == ids(date="2026-03-07") == "a"
    assert ids(date_range="tomorrow") == ids(date="tomorrow") == ids(date="2026-03-08") == "bc"
    assert ids(date_range="week") == "abcde"
    assert ids(date="2026-03-09") == "d"
    assert ids(date="9999-12-31") == ""
    for sort, first in (("start_time", "abcdefg"), ("-start_time", "fedcbag")):  # unknown starts come last
        assert "".join(row["event_id"] for row in answer(ARB, node_, {"sort": sort})["data"]) == first


# ---- CSV ----

HEADER = (
    "event,sport,market,line,profit%,implied_total,book1,selection1,odds1,stake1%,book2,selection2,odds2,stake2%,is_live,"
    "is_alternate_line,possibly_stale,warnings,detected_at"
)


def three_ways(name: str = "Real Betis") -> Node:
    """A soccer game with a three-way arbitrage, and a two-way one."""
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    game = {
        "event_id": "e", "sport": "soccer", "league": "spain_la_liga", "home_team": name, "away_team": "Getafe",
        "event_start_time": now + timedelta(hours=3), "last_seen_at": now,
    }  # fmt: skip
    prices = [
        ("draftkings", 3.2, 3.1, 2.2),
        ("fanduel", 2.2, 3.6, 2.9),
        ("betmgm", 2.5, 3.2, 2.85),
        ("caesars", 2.6, 3.1, 2.8),
    ]
    quotes = [
        {**game, "sportsbook": book, "market_type": "moneyline", "selection": side, "odds_decimal": odds}
        for book, *row in prices
        for side, odds in zip((name, "Draw", "Getafe"), row, strict=True)
    ]
    quotes += [
        {**game, "sportsbook": book, "market_type": "total_goals", "line": 2.5, "selection": side, "odds_decimal": odds}
        for book, over, under in (("draftkings", 2.08, 1.8), ("fanduel", 1.9, 1.96))
        for side, odds in (("Over", over), ("Under", under))
    ]
    engine = Engine(guards=[])
    engine.step(quotes, now)
    return node(engine)


def table(got: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(got.body.decode())))


def test_csv_has_every_leg_in_the_published_columns() -> None:
    node_ = three_ways()
    got = answer(ARB, node_, {"format": "csv", "min_profit": -20})
    assert got.type == "text/csv; charset=utf-8"
    assert dict(got.headers)["content-disposition"] == 'attachment; filename="arbitrage_2026-02-08.csv"'
    lines = got.body.decode().split("\r\n")
    assert lines[0] == HEADER
    assert all(len(row) == 19 for row in csv.reader(lines) if row)
    data = answer(ARB, node_, {"min_profit": -20})["data"]
    assert sorted(len(row["legs"]) for row in data) == [2, 3]
    told = table(got)
    assert len(told) == 3
    for row in data:
        mine = [line for line in told if line["market"] == row["market_type"]]
        legs = [
            (line[f"book{k}"], line[f"selection{k}"], float(line[f"odds{k}"]), float(line[f"stake{k}%"]))
            for line in mine
            for k in (1, 2)
            if line[f"book{k}"]
        ]
        assert legs == [
            (leg["sportsbook"], leg["selection"], round(leg["odds_american"]), leg["stake_percent"])
            for leg in row["legs"]
        ]
        assert sum(leg[3] for leg in legs) == pytest.approx(100.0, abs=1e-6)
        assert {float(line["profit%"]) for line in mine} == {row["profit_percent"]}
        assert {line["detected_at"] for line in mine} == {row["detected_at"]}
        assert {line["is_live"] for line in mine} == {"false"}
        assert {line["line"] for line in mine} == {"" if row["line"] is None else f"{row['line']:g}"}


def test_csv_has_the_rows_of_the_page() -> None:
    query = {"limit": 4, "offset": 2, "market": "main,spread,total"}
    data = answer(ARB, here(), query)["data"]
    told = table(answer(ARB, here(), {**query, "format": "csv"}))
    two = [row for row in data if len(row["legs"]) == 2]
    assert [row["event_name"] for row in two] == [line["event"] for line in told][: len(two)]
    assert answer(ARB, here(), {"format": "csv", "sport": "quidditch"}).body.decode().strip() == HEADER


@pytest.mark.parametrize(
    "name",
    ["=1+1", "@cmd", "+cmd|x", "-cmd", "\tx", "+1+cmd|x", "-.5;x", "x;=1+1", "x\t=1+1", 'x; "=1+1', "x|@cmd"],
)
def test_csv_holds_no_formula(name: str) -> None:
    told = table(answer(ARB, three_ways(name), {"format": "csv", "min_profit": -20}))
    cells = [cell for line in told for cell in line.values()]
    assert any(cell.startswith("'") and name in cell for cell in cells)
    assert not any(cell.startswith(("=", "@", "+c", "-c", "\t", "+1+", "-.5;")) for cell in cells)


# ---- middles one by one, links ----


def test_one_middle() -> None:
    row = answer(MIDDLES, here(), {"limit": 1})["data"][0]
    assert answer(MIDDLE, here(), path={"id": row["id"]})["data"] == row
    losing = answer(MIDDLES, here(), {"limit": 1, "min_ev": -100, "max_ev": -5})["data"][0]
    assert answer(MIDDLE, here(), path={"id": losing["id"]})["data"] == losing
    for ident, status in (("zz", 400), ("ABCDEF0123456789", 400), ("0" * 16, 404)):
        with pytest.raises(Problem) as problem:
            answer(MIDDLE, here(), path={"id": ident})
        assert problem.value.status == status


def test_links_lead_to_a_state() -> None:
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    link = "https://sports.nj.betmgm.com/en/sports/events/7"
    engine = Engine(guards=[])
    engine.step(
        [
            {
                "event_id": "e", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
                "away_team": "Los Angeles Lakers", "market_type": "total_points", "line": 220.5, "sportsbook": book,
                "selection": side, "odds_decimal": 2.0, "last_seen_at": now, "deep_link": link,
            }
            for book in ("betmgm", "fanduel")
            for side in ("Over", "Under")
        ],
        now,
    )  # fmt: skip
    (row,) = answer(HOLD, node(engine), {"state": "pa"})["data"]
    assert row["side1"]["deep_links"]["betmgm"] == "https://sports.pa.betmgm.com/en/sports/events/7"
    (row,) = answer(HOLD, node(engine))["data"]
    assert row["side1"]["deep_links"]["betmgm"] == link


def test_limits_of_the_prices_go_out_with_them() -> None:
    """Also after a change of the limit alone."""
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    teams = {"home_team": "Boston Celtics", "away_team": "Los Angeles Lakers"}
    base = {"event_id": "e", "sport": "basketball", "league": "nba", **teams, "market_type": "total_points"}
    prices: list[dict[str, Any]] = [
        {**base, "line": line, "sportsbook": book, "selection": side, "odds_decimal": odds, "max_bet": most}
        for book, side, line, odds, most in (
            ("betmgm", "Over", 220.5, 2.2, 20.0), ("fanduel", "Under", 220.5, 2.2, 30.0),
            ("fanduel", "Under", 222.5, 2.1, None), ("betmgm", "Over", 210.5, 2.0, 7.0),
            ("fanduel", "Under", 210.5, 2.0, None),
            *((book, side, 220.5, 1.95, None) for book in ("bovada", "caesars") for side in ("Over", "Under")),
        )
    ]  # fmt: skip
    engine = Engine(guards=[])
    here_ = node(engine)
    for more in (0.0, 5.0):
        engine.step([{**row, "max_bet": row["max_bet"] and row["max_bet"] + more} for row in prices], now)
        legs = answer(ARB, here_)["data"][0]["legs"]
        assert {leg["sportsbook"]: leg["max_bet"] for leg in legs} == {"betmgm": 20.0 + more, "fanduel": 30.0 + more}
        ev = answer(EV, here_, {"market": "total_points", "min_ev": 1})["data"]
        limits = {row["sportsbook"]: row["max_bet"] for row in ev if row["line"] == 220.5}
        assert limits == {"betmgm": 20.0 + more, "fanduel": 30.0 + more}
        middle = next(row for row in answer(MIDDLES, here_)["data"] if row["middle_size"] == 2.0)
        assert [middle[side]["max_bet"] for side in ("side1", "side2")] == [20.0 + more, None]
        (hold,) = answer(HOLD, here_)["data"]
        assert [hold[side]["max_bets"] for side in ("side1", "side2")] == [{"betmgm": 7.0 + more}, {}]


def test_rules_of_stakes_go_out_with_the_prices() -> None:
    rules = {"min_bet": 2.0, "bet_step": 0.01, "bet_delay": 5.0}
    base = {"event_id": "e", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
            "away_team": "Los Angeles Lakers", "market_type": "total_points", "line": 220.5}  # fmt: skip
    offers: tuple[Any, ...] = (("betfair_exchange", "Over", 220.5, 2.3, rules), ("fanduel", "Under", 222.5, 2.1, {}),
              ("fanduel", "Under", 220.5, 2.1, {}))  # fmt: skip
    rows = [{**base, "line": line, "sportsbook": book, "selection": side, "odds_decimal": odds, **own}
            for book, side, line, odds, own in offers]  # fmt: skip
    rows += [{**base, "sportsbook": book, "selection": side, "odds_decimal": 1.95}
             for book in ("bovada", "caesars") for side in ("Over", "Under")]  # fmt: skip
    engine = Engine(guards=[])
    here_ = node(engine)
    engine.step(rows, datetime(2026, 2, 8, 12, tzinfo=UTC))
    none = dict.fromkeys(rules)

    def of(row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in rules}

    legs = answer(ARB, here_)["data"][0]["legs"]
    assert {leg["sportsbook"]: of(leg) for leg in legs} == {"betfair_exchange": rules, "fanduel": none}
    assert {row["sportsbook"]: of(row) for row in answer(EV, here_, {"min_ev": 1})["data"]}["betfair_exchange"] == rules
    middle = next(row for row in answer(MIDDLES, here_)["data"] if row["middle_size"] == 2.0)
    assert [of(middle[side]) for side in ("side1", "side2")] == [rules, none]
    # Of books that share the best price of a low hold, those of the first one.
    for holder in ("bovada", "novig"):
        engine = Engine(guards=[])
        price = {**base, "selection": "Over", "odds_decimal": 1.99}
        best = [price | {"sportsbook": book} | (rules if book == holder else {}) for book in ("bovada", "novig")]
        rest = {**base, "sportsbook": "fanduel", "selection": "Under", "odds_decimal": 2.0}
        engine.step([*best, rest], datetime(2026, 2, 8, 12, tzinfo=UTC))
        (hold,) = answer(HOLD, node(engine))["data"]
        first, *others = hold["side1"]["books"]
        assert {first, *others} == {"bovada", "novig"}
        assert [of(hold[side]) for side in ("side1", "side2")] == [rules if first == holder else none, none]


def test_break_even_is_a_low_hold_and_no_arbitrage() -> None:
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    base = {"event_id": "e", "sport": "basketball", "market_type": "total_points", "line": 220.5, "odds_decimal": 2.0}
    engine = Engine(guards=[])
    engine.step([base | {"sportsbook": "betmgm", "selection": "Over"},
                 base | {"sportsbook": "fanduel", "selection": "Under"}], now)  # fmt: skip
    assert answer(ARB, node(engine), {"min_profit": 0})["data"] == []
    assert len(answer(HOLD, node(engine))["data"]) == 1


def test_an_event_has_one_name() -> None:
    """Whichever book a price is of, in lists of opportunities, prices and events, and from a table."""
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    base = {"event_id": "g", "sport": "basketball", "league": "NBA", "market_type": "moneyline"}
    said = {"betmgm": ("Nuggets", "Suns"), "fanduel": ("Denver Nuggets", "Phoenix Suns"),
            "bovada": ("Denver Nuggets", "Suns"), "caesars": ("DEN Nuggets", "PHX Suns")}  # fmt: skip
    prices = [
        base | {"sportsbook": book, "home_team": teams[0], "away_team": teams[1], "selection": name, "odds_decimal": x}
        for at, (book, teams) in enumerate(said.items())
        for name, x in zip(teams, ((2.2, 1.8), (1.8, 2.2), (1.95, 1.95), (1.9, 2.0))[at], strict=True)
    ]
    engine = Engine(guards=[])
    engine.step(prices, now)
    here_ = node(engine)
    names = {row["game"] for row in answer(EV, here_, {"min_ev": -20})["data"]}
    names |= {row["event_name"] for row in answer(ARB, here_)["data"]}
    names |= {row["event_name"] for row in answer(HOLD, here_, {"sportsbook": "bovada,caesars", "max_hold": 9})["data"]}
    odds = answer(found(odds_routes.endpoints, "/odds"), here_)["data"]
    assert len(odds) == len(prices)
    names |= {f"{row['away_team']} @ {row['home_team']}" for row in odds}
    (event,) = answer(found(event_routes.endpoints, "/events"), here_)["data"]
    names |= {f"{event['away_team']} @ {event['home_team']}"}
    table = oe.find_all(pl.DataFrame(prices), guards=[], min_ev=-20.0, now=now)
    names |= {*table.ev["event_name"], *table.arbitrage["event_name"]}
    assert names == {"Phoenix Suns @ Denver Nuggets"}


# ---- views that are kept ----


def test_views_are_found_again_and_few() -> None:
    node_ = node(world(3, 1, events=6))
    views = node_.boards.views = Views(3)
    first = views.at(node_.engine, frozenset({"draftkings", "fanduel"}))
    assert views.at(node_.engine, frozenset({"fanduel", "draftkings"})) is first
    for book in ("betmgm", "caesars", "bet365", "pinnacle"):
        views.at(node_.engine, frozenset({book, "draftkings"}))
    assert len(views) == 3
    assert len(node_.engine.views) == 3
    assert views.at(node_.engine, frozenset({"draftkings", "fanduel"})) is not first


def test_a_delayed_view_is_late_and_never_falsely_empty() -> None:
    """Refused until what was asked for is old enough; then as it was, and never younger."""
    made, engine, views = World(3, events=6, tick=less(1, 4)), Engine(), Views()
    late, books = engine.delayed(60), frozenset({"draftkings", "fanduel", "betmgm"})
    asked, refused, seen = datetime.max.replace(tzinfo=UTC), 0, list[tuple[datetime, list[str]]]()
    for at, batch in enumerate(made.run(180)):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        if at == 3:
            asked = batch.now
        if at < 3:
            continue
        left = (asked + timedelta(seconds=60) - batch.now).total_seconds()
        if left > 0:
            with pytest.raises(Problem) as caught:
                views.at(late, books, min_ev=-2.0)
            assert (caught.value.status, caught.value.code) == (503, "not_ready")
            assert abs(caught.value.extra["retry_after"] - max(left, 1.0)) <= 1.0
            refused += 1
        else:
            table = views.at(late, books, min_ev=-2.0).table("ev", ENCODINGS["ev"])
            then = max(found for found in seen if found[0] <= batch.now - timedelta(seconds=60))
            assert sorted(table.frame["id"].to_list()) == then[1]
        found = engine.view(books, min_ev=-2.0, kinds=["ev", "arbitrage", "low_hold", "middles"]).opportunities()
        seen.append((batch.now, sorted(found.ev["id"].to_list())))
    assert refused > 3
    assert len({tuple(ids) for _, ids in seen}) > 3
    assert seen[0][1]


def test_views_of_a_delayed_board_are_limited_too() -> None:
    """The engine searches for them only as long as somebody reads them."""
    engine, views = Engine(), Views(4, share=2)
    late = engine.delayed(60.0)
    now = datetime(2026, 2, 8, tzinfo=UTC)
    for second in range(200):
        engine.step([], now + timedelta(seconds=second))
        with suppress(Problem):
            views.at(late, None, "account", kinds=("arbitrage",), min_profit=second / 100.0)
    assert len(views) == 2
    assert len(engine.views) <= 35  # those of half a minute


def test_an_account_closes_its_own_views_first() -> None:
    engine = world(3, 1, events=6)
    views = Views(10, share=2)
    other = views.at(engine, frozenset({"pinnacle"}), "other")
    both = views.at(engine, frozenset({"caesars"}), "hog")
    assert views.at(engine, frozenset({"caesars"}), "other") is both  # two read it: nobody's own
    for book in ("betmgm", "bet365", "fanduel", "draftkings"):
        views.at(engine, frozenset({book}), "hog")
    assert len(views) == 4
    assert views.at(engine, frozenset({"pinnacle"}), "other") is other
    assert views.at(engine, frozenset({"caesars"}), "other") is both


def test_a_view_that_nobody_reads_gives_its_memory_back() -> None:
    engine = world(3, 1, events=6)
    views = Views(10, idle=0.0)
    views.at(engine, frozenset({"pinnacle"}), "mia")
    (view,) = engine.views
    gone = ref(view)
    del view
    assert views.sweep() == 1
    assert (len(views), engine.views, gone()) == (0, (), None)
    assert Views(10, idle=60.0).sweep() == 0


def test_a_view_that_somebody_keeps_is_not_closed() -> None:
    engine = world(3, 1, events=6)
    views = Views(1)
    stream = engine.view({"draftkings", "fanduel"}, keep=True)
    views.at(engine, frozenset({"draftkings", "fanduel"}))
    views.at(engine, frozenset({"draftkings", "caesars"}))
    assert stream.active
    assert stream in engine.views


def test_answers_follow_the_board() -> None:
    node_ = three_ways()
    before = answer(ARB, node_, {"min_profit": -20})["data"]
    now = node_.engine.now
    assert now is not None
    node_.engine.step(
        [
            {
                "event_id": "e", "sport": "soccer", "league": "spain_la_liga", "home_team": "Real Betis",
                "away_team": "Getafe", "sportsbook": "draftkings", "market_type": "total_goals", "line": 2.5,
                "selection": "Over", "odds_decimal": 2.01, "last_seen_at": now,
            }
        ],
        now + timedelta(seconds=1),
    )  # fmt: skip
    after = answer(ARB, node_, {"min_profit": -20})["data"]
    assert after != before
    assert {row["detected_at"] for row in after if len(row["legs"]) == 2} == {
        row["detected_at"] for row in before if len(row["legs"]) == 2
    }  # a change of price keeps the id and the first detection


def test_every_time_is_utc() -> None:
    offset = timezone(timedelta(hours=5))
    engine = Engine(guards=[])
    now = datetime(2026, 2, 8, 17, tzinfo=offset)
    engine.step(
        [
            {
                "event_id": "e", "sport": "tennis", "home_team": "A", "away_team": "B", "sportsbook": book,
                "market_type": "moneyline", "selection": side, "odds_decimal": odds, "event_start_time": now,
            }
            for book, one, two in (("draftkings", 2.2, 1.7), ("fanduel", 1.7, 2.2))
            for side, odds in (("A", one), ("B", two))
        ],
        now,
    )  # fmt: skip
    (row,) = answer(ARB, node(engine))["data"]
    assert row["start_time"] == "2026-02-08T12:00:00.000000Z"
    assert row["legs"][0]["timestamp"] == "2026-02-08T12:00:00.000000Z"


def test_an_age_that_is_just_allowed() -> None:
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    node_ = starting_at(now, {"a": now + timedelta(hours=3)})
    node_.engine.step([], now + timedelta(seconds=7))
    assert [len(answer(ARB, node_, {"max_odds_age": age})["data"]) for age in (6.9, 7, 8)] == [0, 1, 1]


def test_shown_stakes_sum_to_a_hundred() -> None:
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    engine = Engine(guards=[])
    engine.step(
        [
            {
                "event_id": "e", "sport": "soccer", "league": "spain_la_liga", "home_team": "A", "away_team": "B",
                "sportsbook": book, "market_type": "moneyline", "selection": side, "last_seen_at": now,
                "odds_decimal": 3.1 if (at + place) % 3 == 0 else 2.6,
            }
            for at, book in enumerate(("draftkings", "fanduel", "betmgm"))
            for place, side in enumerate(("A", "Draw", "B"))
        ],
        now,
    )  # fmt: skip
    (row,) = answer(ARB, node(engine))["data"]
    stakes = [leg["stake_percent"] for leg in row["legs"]]
    assert stakes == [33.3333, 33.3333, 33.3334]


# ---- what a price is measured against ----


def test_the_close_is_the_default_and_the_operator_may_make_it_the_classical_reference() -> None:
    engine = world(11, 2, events=20, hazards=True, live=0.3)
    query = {"min_ev": 1, "limit": 200}
    for reference, method in (("close", "close"), ("classical", "power")):
        node_ = node(engine, reference=reference)
        expected = rows(oe.find_all(engine.table(), method=method, now=engine.moment, min_ev=1.0).ev)
        got = answer(EV, node_, query)["data"]
        assert [row["id"] for row in got] == [row["id"] for row in expected][:200]
        assert {row["reference"] == "close" for row in got} == {reference == "close"}
        for row, whole in zip(got, expected, strict=False):
            assert row["flags"] == (whole["flags"] or [])
            assert (row["ev_low"] is None) == (reference == "classical")
        named = answer(EV, node_, {**query, "devig_method": "power"})["data"]
        assert {row["reference"] for row in named} == {row["sharp_book"] for row in named}
    settings = load(None, {"ODDSENGINE_FAIR_REFERENCE": "classical"})
    assert settings.fair.reference == "classical"
    with pytest.raises(SettingsError, match="must be close or classical, got 'sharp'"):
        load(None, {"ODDSENGINE_FAIR_REFERENCE": "sharp"})


def test_suspects_are_listed_where_a_request_includes_them() -> None:
    now = datetime(2026, 2, 8, 18, tzinfo=UTC)
    prices = {"betmgm": (2.0, 1.9), "caesars": (1.98, 1.92), "draftkings": (1.96, 1.94), "fanduel": (2.9, 1.5)}
    quotes = [
        {
            "sportsbook": book, "event_id": "e", "sport": "basketball", "league": "NBA", "home_team": "Boston Celtics",
            "away_team": "Miami Heat", "market_type": "moneyline", "selection": side, "odds_decimal": price,
            "event_start_time": now + timedelta(hours=5), "last_seen_at": now,
        }
        for book, pair in prices.items()
        for side, price in zip(("Boston Celtics", "Miami Heat"), pair, strict=True)
    ]  # fmt: skip
    engine = Engine(guards={"ev_cap": False})
    engine.step(quotes, now)
    here_ = node(engine)
    assert not answer(EV, here_, {"min_ev": 20})["data"]
    found_ = answer(EV, here_, {"min_ev": 20, "include": "suspect"})
    assert [(row["sportsbook"], row["flags"]) for row in found_["data"]] == [("fanduel", ["suspect"])]
    assert found_["meta"]["filters"]["include"] == ["suspect"]
