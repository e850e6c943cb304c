"""One-sided prices over HTTP: listed where a request includes them, and explained."""

import pytest
from support.handler_calls import answer, found, node
from support.one_sided import NOW, market, row, rows_of

import oddsengine_service.routes.opportunities as module
from oddsengine.live.engine import Engine
from oddsengine_service.node import Node

EV, ONE, EXPLAIN = (
    found(module.endpoints, f"/opportunities/{path}") for path in ("ev", "ev/{id}", "explain/{opportunityId}")
)
SOFT = ("fanduel", "draftkings", "caesars", "bovada")


@pytest.fixture(scope="module")
def here() -> Node:
    engine = Engine()
    quotes = [
        each
        for at, p in enumerate((0.34, 0.37, 0.40, 0.43))
        for book in SOFT
        for each in rows_of(book, f"Player {at}", market(p, 1.06))
    ]
    quotes += [row(book, "Yes Man", 0, 2.5) for book in SOFT]
    engine.step([*quotes, row("betmgm", "Yes Man", 0, 2.85)], NOW)
    return node(engine)


def test_they_are_listed_where_a_request_includes_them(here: Node) -> None:
    assert not answer(EV, here)["data"]
    listed = answer(EV, here, {"include": "one_sided"})
    (bet,) = listed["data"]
    assert (bet["sportsbook"], bet["player_name"], bet["independent_books"]) == ("betmgm", "Yes Man", 4)
    assert "one_sided" in bet["flags"]
    assert bet["ev_low"] < 0.0 < bet["ev_percentage"] < bet["ev_high"]
    assert listed["meta"]["filters"]["include"] == ["one_sided"]
    # The classical reference has no price for them.
    assert not answer(EV, here, {"include": "one_sided", "devig_method": "power"})["data"]


def test_one_is_looked_up_and_explained(here: Node) -> None:
    (bet,) = answer(EV, here, {"include": "one_sided"})["data"]
    path = {"id": bet["id"], "opportunityId": bet["id"]}
    assert answer(ONE, here, {"include": "one_sided"}, path=path)["data"]["flags"] == bet["flags"]
    told = answer(EXPLAIN, here, {"event_id": "e"}, path=path)["data"]
    assert told["kind"] == "ev"
    (fair,) = (each["fair_probability"] for each in told["fair"] if each["outcome"] == "over")
    assert fair == pytest.approx(bet["fair_probability"], abs=1e-6)
