"""References on rows: what an id means, with its numerical id, where a request asks for them."""

from typing import Any

import pytest
from support.service_running import Running
from support.socket_running import SocketClient
from support.stream_running import PATIENCE_S, Client, Served, full_board, lasting, moment

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


KINDS = {"ev": "ev", "arbitrage": "arb", "middles": "middles", "low_hold": "low_hold"}


def legs(row: Any) -> list[Any]:
    """The legs of an opportunity; the row itself where it is one price."""
    return row.get("legs") or [row[name] for name in ("side1", "side2", "side3") if row.get(name)] or [row]


def without(row: Any) -> Any:
    """A row and its legs without references."""
    if isinstance(row, list):
        return [without(each) for each in row]
    return {n: without(v) for n, v in row.items() if n not in NAMES} if isinstance(row, dict) else row


@pytest.mark.parametrize("kind", KINDS)
def test_legs_of_opportunities_have_references(service: Running, kind: str) -> None:
    path = f"/opportunities/{kind}?limit=5"
    plain, told = rows(service, path), rows(service, f"{path}&include=refs")
    assert [without(row) for row in told] == plain
    for row in told:
        for leg in legs(row):
            assert set(leg) >= NAMES
            assert leg["sportsbook_ref"]["id"] in (leg.get("sportsbook"), leg.get("book"), *leg.get("books", ()))
            assert leg["market_ref"]["id"] == row.get("market_type", row.get("market"))
            assert leg["home"]["name"] == row["home_team"]


@pytest.mark.parametrize("state", [None, "nj"])
@pytest.mark.parametrize("socket", [False, True])
def test_streams_have_references(served: Served, *, socket: bool, state: str | None) -> None:
    """Rows of the beginning, rows that come later, and opportunities."""
    served.step(full_board("references"), moment())
    more: dict[str, Any] = {"state": state} if state else {}
    client: Any = (
        SocketClient(served, "enterprise", include="refs", min_ev=0, event_id="references", **more)
        if socket
        else Client(
            served.port, "/stream", served.key("enterprise"), channel="all", include="refs", min_ev="0",
            event="references", **more,
        )
    )  # fmt: skip
    assert client.ready.wait(PATIENCE_S)
    try:
        listed = served.rows("/odds", "enterprise", {"event": "references", "include": "refs", **more})
        assert client.held() == {id_: lasting(row) for id_, row in listed.items() if row["is_active"]}
        assert all(set(row) >= NAMES for row in client.odds.values())
        finds = [row for found in client.finds.values() for row in found.values()]
        assert len(finds) > 1
        assert all(set(leg) >= NAMES for row in finds for leg in legs(row))
    finally:
        client.close()
