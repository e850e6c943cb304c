"""References on rows: what an id means, with its numerical id, where a request asks for them."""

from typing import Any

import pytest
from service_running import Running

from oddsengine import catalog

NAMES = {"home", "away", "sport_ref", "league_ref", "market_ref", "sportsbook_ref"}


def rows(service: Running, path: str) -> list[Any]:
    with service.client("enterprise") as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()["data"]
    assert found
    return found


@pytest.mark.parametrize("path", ["/odds?limit=50", "/odds/best?limit=50", "/odds?limit=20&state=nj"])
def test_references_stand_beside_the_row_as_it_was(service: Running, path: str) -> None:
    plain, told = rows(service, path), rows(service, f"{path}&include=refs")
    assert not NAMES & set(plain[0])
    assert [{name: value for name, value in row.items() if name not in NAMES} for row in told] == plain
    for row in told:
        assert set(row) >= NAMES
        assert row["sportsbook_ref"]["id"] == row["sportsbook"]
        assert row["sportsbook_ref"]["numerical_id"] == catalog.numerical_id("sportsbook", row["sportsbook"])
        assert row["sport_ref"]["id"] == row["sport"]
        assert row["league_ref"]["id"] == row["league"]
        assert row["market_ref"]["label"]
        assert row["home"]["name"] == row["home_team"]
        assert set(row["away"]) == {
            "id", "numerical_id", "name", "abbreviation", "logo", "city", "mascot", "conference", "division",
        }  # fmt: skip
    assert any(row["home"]["numerical_id"] for row in told)


def test_references_go_with_fields_and_groups(service: Running) -> None:
    (row, *_) = rows(service, "/odds?limit=5&include=refs&fields=id,odds_decimal")
    assert set(row) == {"id", "odds_decimal"} | NAMES
    (event, *_) = rows(service, "/odds?limit=2&include=refs&group_by=event")
    assert set(event["odds"][0]) >= NAMES
