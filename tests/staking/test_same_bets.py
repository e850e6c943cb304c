"""Rows that are one bet in several forms, and what to stake on them in all."""

from typing import Any

import polars as pl
import pytest
from support.handler_calls import answer, found, node

import oddsengine as oe
import oddsengine_service.routes.opportunities as module
from oddsengine.live.engine import Engine
from oddsengine.staking.same_bets import same_bets

GAME = {
    "event_id": "e", "sport": "soccer", "league": "england_premier_league", "home_team": "Arsenal",
    "away_team": "Chelsea", "market_type": "asian_handicap", "is_live": False,
}  # fmt: skip
LINES = {0.5: ((1.80, 2.10), (2.05, 1.80)), 0.75: ((1.60, 2.44), (1.85, 2.00)), 1.0: ((1.42, 2.95), (1.63, 2.30))}


def board(*generous: str) -> pl.DataFrame:
    """Arsenal +0.5, +0.75 and +1, of which the last books' prices are too high."""
    rows = [
        {**GAME, "sportsbook": book, "selection": team, "line": line * sign, "odds_decimal": odds}
        for line, (fair, high) in LINES.items()
        for book, prices in [
            *((each, fair) for each in ("pinnacle", "betmgm", "draftkings")),
            *((b, high) for b in generous),
        ]
        for team, sign, odds in zip(("Arsenal", "Chelsea"), (1, -1), prices, strict=True)
    ]
    return pl.DataFrame(rows)


def test_three_lines_of_one_side_are_one_bet() -> None:
    ev = oe.find_ev(board("fanduel"), min_ev=1, guards=[])
    (one,) = same_bets(ev)
    assert sorted(one.rows) == [0, 1, 2]
    assert one.apart == pytest.approx(ev["kelly_percent"].sum())
    assert one.stakes == tuple(oe.kelly_portfolio(ev).bets["stake"])
    assert max(ev["kelly_percent"]) < one.kelly < 0.6 * one.apart


def test_other_sides_markets_and_events_are_other_bets() -> None:
    ev = oe.find_ev(board("fanduel"), min_ev=1, guards=[])
    moneyline = ev.head(1).with_columns(market_type=pl.lit("moneyline"), line=pl.lit(None, pl.Float64))
    assert [one.rows for one in same_bets(pl.concat([ev.head(1), moneyline]))] == [(0, 1)]
    for column, value in (
        ("event_id", "f"), ("is_live", True), ("market_segment", "1st_half"), ("selection_type", "away"),
        ("market_type", "corners_spread"), ("market_type", "total_goals"), ("selection_type", None),
    ):  # fmt: skip
        other = ev.head(1).with_columns(pl.lit(value, ev.schema[column]).alias(column))
        assert same_bets(pl.concat([ev.head(1), other])) == [], column


def test_show_says_what_to_stake_in_all() -> None:
    text = str(oe.show(oe.find_ev(board("fanduel"), min_ev=1, guards=[])))
    assert text.count("bet A") == 4
    assert "the 3 rows on Arsenal (bet A) are one bet: Kelly stakes 20.66 % in all, not 41.79 %" in text
    assert text.splitlines()[-1] in str(
        oe.show(oe.find_ev(board("fanduel"), min_ev=1, guards=[]), rows=1)
    )  # of all rows
    single = oe.find_ev(board("fanduel"), min_ev=1, guards=[]).head(1)
    assert "one bet" not in str(oe.show(single))
    assert "(bet A) are one bet" in oe.show(oe.find_ev(board("fanduel"), guards=[]))._repr_html_()


def test_a_list_says_it_for_its_page() -> None:
    engine = Engine(guards=[])
    moment = oe.World(1).now
    engine.step(board("fanduel").to_dicts(), moment)
    here, endpoint = node(engine), found(module.endpoints, "/opportunities/ev")
    query: dict[str, Any] = {"min_ev": 1, "same_bets": True}
    page = answer(endpoint, here, query)
    (one,) = page["meta"]["same_bets"]
    assert sorted(one["ids"]) == sorted(row["id"] for row in page["data"])
    assert one["kelly_percent"] == pytest.approx(sum(one["stakes"])) == pytest.approx(0.2066, abs=1e-4)
    assert one["apart"] == pytest.approx(sum(row["kelly_percent"] for row in page["data"]), abs=1e-5)
    assert answer(endpoint, here, query | {"limit": 1})["meta"]["same_bets"] == []
    assert "same_bets" not in answer(endpoint, here, {"min_ev": 1})["meta"]
