"""Services that speak the format of The Odds API at another address: less in their answers, and refusals in words."""

import json
from typing import Any

import pytest
from support.local_servers import game

import oddsengine as oe
from oddsengine.sources.failure import FetchError
from oddsengine.testing.local_servers import Answering, Request, served

KEY = "0123456789abcdefsecret"
QUICK: dict[str, Any] = {"timeout": 5.0, "backoff": 0.01, "backoff_cap": 0.05}


class Elsewhere:
    """Such a service: no headers about credits, no times or titles of books, and fields that nobody knows."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.refusal: tuple[Any, int] | None = None

    async def __call__(self, request: Request, answering: Answering) -> None:
        self.asked.append(request)
        listed = json.loads(json.dumps(game(books=("draftkings", "prizepicks"))))
        if self.refusal is not None:
            await answering.answer(*self.refusal)
        elif request.path == "/v4/sports/basketball_nba/events":
            await answering.answer([{"id": "g1", "commence_time": listed["commence_time"], "venue": {"id": 5}}])
        elif request.path == "/v4/sports/basketball_nba/odds":
            del listed["sport_title"]
            for maker in listed["bookmakers"]:
                del maker["last_update"], maker["title"]
                (offer,) = maker["markets"]
                del offer["last_update"]
                offer["outcomes"][0] |= {"source": "x", "link": None, "multiplier": None, "point": None}
            await answering.answer([listed | {"ev": [1], "bookmakers": [*listed["bookmakers"], {"key": "new_book"}]}])
        else:
            await answering.answer({"detail": "Not Found"}, 404)


def fetched(service: Elsewhere, **settings: Any) -> Any:
    with served(service) as url:
        given = {"sport": "nba", "key": KEY, "url": url, "markets": ["h2h"]}
        return oe.fetch("the_odds_api", **given | QUICK | settings)


def test_what_is_absent_is_not_needed() -> None:
    odds = fetched(Elsewhere())
    assert sorted(odds.select("sportsbook", "odds_decimal").rows()) == [
        ("draftkings", 1.8), ("draftkings", 2.1), ("prizepicks", 1.8), ("prizepicks", 2.1),
    ]  # fmt: skip
    assert odds["last_seen_at"].null_count() == 0, "prices without a time are seen on arrival"
    report = odds.sources["the_odds_api"]
    assert (report.credits_left, report.warnings, report.refused) == (None, [], {})


@pytest.mark.parametrize(
    "text", [{"detail": "You are out of credits"}, {"message": "Usage quota has been reached"}, b"Daily LIMIT reached"]
)
def test_a_plan_that_is_used_up_is_not_a_wrong_key(text: Any) -> None:
    service = Elsewhere()
    service.refusal = (text, 401)
    with pytest.raises(FetchError, match="the plan is used up: status 401") as error:
        fetched(service)
    assert error.value.kind == "rate_limited"
    assert "check the key" not in str(error.value)
    assert len(service.asked) == 1


def test_a_wrong_key_is_one() -> None:
    service = Elsewhere()
    service.refusal = ({"detail": f"{KEY} is not valid"}, 401)
    with pytest.raises(FetchError, match="check the key") as error:
        fetched(service)
    assert error.value.kind == "refused"
    assert KEY not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, False), ({"regions": ["us", "us_dfs"]}, True), ({"books": ["draftkings"]}, False),
        ({"books": ["draftkings", "underdog"]}, True), ({"regions": ["us_dfs"], "details": False}, False),
        ({"regions": ["us_dfs"], "books": ["draftkings"]}, False),
    ],
)  # fmt: skip
def test_multipliers_are_asked_for_where_books_take_picks(settings: dict[str, Any], asked: bool) -> None:
    service = Elsewhere()
    fetched(service, **settings)
    (query,) = [request.query for request in service.asked if request.path.endswith("/odds")]
    assert query.get("includeMultipliers") == (["true"] if asked else None)
