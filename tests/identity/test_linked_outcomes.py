"""Equivalent outcomes: each is judged by all that settle on the same fact, in tables and on the live board."""

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from oddsengine import find_ev, prepare
from oddsengine.detection.finders import find_arbitrage
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import Question, ask
from oddsengine.live.engine import Engine

NOW = datetime(2026, 3, 1, 15, tzinfo=UTC)
Row = dict[str, Any]


def rows(book: str, market: str, line: float | None = None, **prices: float) -> list[Row]:
    return [
        {
            "sportsbook": book, "event_id": "g", "sport": "soccer", "league": "epl", "home_team": "Arsenal",
            "away_team": "Chelsea", "market_type": market, "selection": "No goals" if side == "none" else side.title(),
            "selection_type": side, "odds_decimal": odds, "line": -line if side == "away" and line else line,
            "last_seen_at": NOW, "event_start_time": datetime(2026, 3, 1, 18, tzinfo=UTC),
        }
        for side, odds in prices.items()
    ]  # fmt: skip


def edges(board: list[Row]) -> dict[tuple[str, str, str], float]:
    """Edges in percent by book, market type and side; the live board has the same."""
    engine = Engine()
    view = engine.view(method="power", min_ev=-90.0)
    view.opportunities()
    for at in range(0, len(board), 2):  # in steps, the twin last
        engine.step(board[at : at + 2], NOW)
    odds = pl.DataFrame(board, infer_schema_length=None)
    frames = find_ev(odds, method="power", min_ev=-90.0, now=NOW), view.opportunities().ev
    table, live = (
        {
            (row["sportsbook"], row["market_type"], row["selection_type"]): round(row["ev_percentage"], 6)
            for row in frame.iter_rows(named=True)
        }
        for frame in frames
    )
    assert table == live
    return table


FIRST = [
    *rows("pinnacle", "first_team_to_score", home=1.75, none=8.9, away=2.85),
    *rows("fanduel", "first_team_to_score", home=1.70, none=9.7, away=2.75),
]


def test_no_goals_is_judged_by_under_half_a_goal() -> None:
    """A three-way market says 9.67 is fair, so that 9.7 seemed an edge; under 0.5 goals has 11.1."""
    key = ("fanduel", "first_team_to_score", "none")
    assert edges(FIRST)[key] == pytest.approx(0.302, abs=1e-3)
    total = rows("pinnacle", "total_goals", 0.5, over=1.09, under=9.0)
    with_twin = edges([*FIRST, *total])
    assert with_twin[key] == pytest.approx(-12.617, abs=1e-3)
    assert {k: v for k, v in with_twin.items() if k != key} == {k: v for k, v in edges(FIRST).items() if k != key}
    assert edges([*FIRST, *rows("pinnacle", "total_goals", 1.5, over=1.09, under=9.0)]) == edges(FIRST)
    assert edges([*FIRST, *rows("fanduel", "total_goals", 0.5, over=1.09, under=9.0)]) == edges(FIRST)


def test_a_consensus_is_also_taken_of_the_twin() -> None:
    sharps = {"pinnacle": 1.0, "circa": 2.0}
    first = [*FIRST, *rows("circa", "first_team_to_score", home=1.75, none=8.9, away=2.85)]
    twin = [row for book in sharps for row in rows(book, "total_goals", 0.5, over=1.09, under=9.0)]
    found = []
    for board in (first, [*first, *twin]):
        odds = pl.DataFrame(board, infer_schema_length=None)
        frame = find_ev(odds, sharp=sharps, method="power", min_ev=-90.0, now=NOW)
        found += frame.filter(sportsbook="fanduel", selection_type="none")["ev_percentage"].to_list()
    assert found == pytest.approx([0.302, -12.617], abs=1e-3)


def test_half_a_goal_is_judged_by_the_result() -> None:
    spread = [
        *rows("pinnacle", "asian_handicap", -0.5, home=2.10, away=1.80),
        *rows("fanduel", "point_spread", -0.5, home=2.20, away=1.70),
    ]
    key = ("fanduel", "point_spread", "home")
    alone = edges(spread)[key]
    assert alone > 1.0
    assert edges([*spread, *rows("pinnacle", "moneyline", home=2.40, draw=3.60, away=3.00)])[key] < -5.0
    # Where the twin is likelier, the price's own market decides.
    assert edges([*spread, *rows("pinnacle", "moneyline", home=1.90, draw=3.90, away=4.60)])[key] == alone


def test_equivalent_outcomes_of_a_team_are_the_other_teams() -> None:
    sheet = [*rows("pinnacle", "home_clean_sheet", yes=2.5, no=1.55), *rows("fanduel", "home_clean_sheet", yes=2.7)]
    key = ("fanduel", "clean_sheet", "yes")
    alone = edges(sheet)[key]
    assert edges([*sheet, *rows("pinnacle", "home_team_total", 0.5, over=1.3, under=3.5)])[key] == alone
    assert edges([*sheet, *rows("pinnacle", "away_team_total", 0.5, over=1.36, under=3.3)])[key] < alone


def question(board: list[Row]) -> Question:
    return ask(
        prepare(pl.DataFrame(board, infer_schema_length=None), now=NOW),
        None,
        None,
        "power",
        None,
        thresholds(),
    )


def test_equivalent_outcomes_are_only_those_of_the_sport_and_event() -> None:
    """Of a game with overtime the regulation result and half a goal are two facts."""
    board = [*FIRST, *rows("pinnacle", "total_goals", 0.5, over=1.09, under=9.0)]

    def linked(board: list[Row]) -> int:
        twin = question(board).prices.groups.equivalent
        return int((twin != range(twin.size)).sum())

    assert linked(board) == 2
    assert linked([row | {"sport": "hockey"} for row in board]) == 0
    assert linked([row | {"is_live": row["line"] is None} for row in board]) == 0
    assert linked([row | {"event_id": row["market_type"]} for row in board]) == 0
    assert linked([row | {"market_segment": "1st_half"} for row in board]) == 2
    halves = [row | ({"market_segment": "1st_half"} if row["line"] else {}) for row in board]
    assert linked(halves) == 0
    assert find_arbitrage(pl.DataFrame(board, infer_schema_length=None), now=NOW).height == 0
