"""The Odds API's answers as its contract has them, and otherwise."""

from datetime import UTC, datetime
from typing import Any

from feeds.test_samples import encoded
from hypothesis import given
from support.contract_payloads import mutated
from support.local_servers import game

from oddsengine.feeds import Payload
from oddsengine.feeds.the_odds_api import RequestScope, ScoresParser, TheOddsApi
from oddsengine.feeds.venue_contracts import load

CONTRACT = load("the_odds_api")
NOW = datetime(2026, 11, 29, 18, tzinfo=UTC)


def test_our_provider_answers_as_the_contract_says() -> None:
    assert CONTRACT.unknown("odds", [game()]) == []


PLAYED = {
    "id": "g1", "sport_key": "basketball_nba", "sport_title": "NBA", "commence_time": "2026-11-29T17:00:00Z",
    "completed": False, "home_team": "Boston Celtics", "away_team": "Los Angeles Lakers",
    "scores": [{"name": "Boston Celtics", "score": "50"}, {"name": "Los Angeles Lakers", "score": "48"}],
    "last_update": "2026-11-29T17:59:00Z",
}  # fmt: skip


def read(*events: Any) -> Payload:
    return TheOddsApi(american=False).read(encoded(list(events)), RequestScope.of(()), NOW)


@given(mutated(CONTRACT, "odds", [game(), game("g2")], (0,)))
def test_whatever_comes_of_an_event_the_other_is_read(body: Any) -> None:
    rows = read(*body).quotes
    assert [row for row in rows if row["event_id"] == "g2"] == read(body[1]).quotes != []
    assert all(row["odds_decimal"] > 1.0 for row in rows)


@given(mutated(CONTRACT, "scores", [PLAYED, PLAYED | {"id": "g2"}], (0,)))
def test_whatever_score_comes_the_other_is_read(body: Any) -> None:
    scores = ScoresParser().read(encoded(body), "basketball_nba").scores
    assert [(one.home, one.away) for one in scores if one.event == "g2"] == [(50, 48)]
