"""What `/v4` answers, read by our own adapter of The Odds API, is the board again."""

from typing import Any

import pytest
from support.service_running import Running

from oddsengine import query
from oddsengine.feeds.feed_names import aggregated_book
from oddsengine.feeds.the_odds_api import RequestScope, ScoresParser, TheOddsApi
from oddsengine.live.engine import Engine
from oddsengine.maths.odds import american_to_decimal
from oddsengine_service.v4.sports_and_events import v4_id
from oddsengine_service.wire.odds_response import odds

Row = dict[str, Any]


def get(server: Running, path: str, tier: str = "enterprise", **params: Any) -> Any:
    with server.client(None) as client:
        answer = client.get(f"{server.origin}/v4{path}", params={"apiKey": f"demo_{tier}", **params})
    assert answer.status_code == 200, answer.text
    return answer


def board(server: Running, tier: str = "enterprise") -> list[Row]:
    """All prices of our own list that are not suspended."""
    rows: list[Row] = []
    with server.client(tier) as client:
        page: Any = {}
        while not page or page["pagination"]["has_more"]:
            cursor = {"cursor": page["pagination"]["next_cursor"]} if page else {}
            page = client.get("/odds", params={"limit": 200, **cursor}).json()
            rows += page["data"]
    return [row for row in rows if row["is_active"]]


def key(row: Row, book: str, event: str) -> tuple[Any, ...]:
    names = ("sport", "league", "home_team", "away_team", "market_type", "selection_type", "line", "player_name",
             "team_side", "event_start_time")  # fmt: skip
    return book, event, *(row[name] for name in names), row["selection"] if row["selection_type"] == "other" else ""


def read(payloads: list[Any]) -> list[Row]:
    """The board that the adapter's quotes make."""
    engine = Engine()
    quotes = [quote for payload in payloads for quote in payload.quotes]
    assert not any(payload.refused or payload.unmapped for payload in payloads)
    engine.step(quotes, max(quote["last_seen_at"] for quote in quotes))
    with query.Index(engine).reader(judged=True) as reader:
        every = reader.take(reader.matching_rows(query.RowFilter(), {}))
    return [{name: getattr(row, name) for name in row.__struct_fields__} for row in odds(every)]


@pytest.mark.parametrize("american", [False, True])
def test_every_price_of_a_world_comes_back(service: Running, american: bool) -> None:
    rows = board(service)
    books = ",".join(sorted({row["sportsbook"] for row in rows}))
    more = {"oddsFormat": "american"} if american else {}
    payloads, seen = [], set()
    adapter = TheOddsApi(american=american)
    for sport in get(service, "/sports").json():
        if sport["has_outrights"]:
            continue
        for event in get(service, f"/sports/{sport['key']}/events").json():
            at = f"/sports/{sport['key']}/events/{event['id']}"
            listed = get(service, f"{at}/markets", bookmakers=books).json()
            words = list(dict.fromkeys(m["key"] for maker in listed["bookmakers"] for m in maker["markets"]))
            seen |= set(words)
            answer = get(service, f"{at}/odds", bookmakers=books, markets=",".join(words), **more)
            payloads.append(adapter.read(answer.content, RequestScope.of(words)))
            offered = {(maker["key"], m["key"]) for maker in answer.json()["bookmakers"] for m in maker["markets"]}
            assert offered == {(maker["key"], m["key"]) for maker in listed["bookmakers"] for m in maker["markets"]}
    assert {"h2h", "spreads", "totals", "alternate_spreads", "team_totals", "player_points", "totals_h1"} <= seen
    ours: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["event_start_time"] is None:  # of another test; events without a start are not listed
            continue
        ours.setdefault(key(row, aggregated_book(row["sportsbook"]), v4_id(row["event_id"])), []).append(row)
    theirs = {key(row, row["sportsbook"], row["event_id"]): row for row in read(payloads)}
    assert theirs.keys() == ours.keys()
    assert len(theirs) > 5_000
    for one, same in ours.items():  # several if a book has an outcome under several raw labels: the last seen is shown
        newest = max(row["last_seen_at"] for row in same)
        prices = [row for row in same if row["last_seen_at"] == newest]
        off = 0.0051 if american else 2e-6  # whole American prices
        quoted = [
            float(american_to_decimal(row["odds_american"])) if american else row["odds_decimal"] for row in prices
        ]
        assert any(abs(theirs[one]["odds_decimal"] - price) <= off for price in quoted), same


def test_scores_come_back(service: Running) -> None:
    with service.client() as client:
        states = client.get("/gamestate").json()["data"]
    scores = {v4_id(event): row for events in states.values() for event, row in events.items()}
    assert scores
    found: dict[str, Any] = {}
    for sport in get(service, "/sports").json():
        if not sport["has_outrights"]:
            body = get(service, f"/sports/{sport['key']}/scores", daysFrom=1).content
            found |= {reading.event: reading for reading in ScoresParser().read(body, sport["key"]).scores}
    assert found.keys() == scores.keys()
    for event, reading in found.items():
        row = scores[event]
        assert (reading.home, reading.away, reading.over) == (row["home_score"], row["away_score"], not row["is_live"])
