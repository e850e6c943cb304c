"""Odds-API.io on this machine: lists of events and their odds in its shape, with invented ids and prices."""

from datetime import datetime, timedelta
from typing import Any

from oddsengine.testing.local_servers import Request, iso, now
from oddsengine.testing.source_server import Json, SourceServer

START = (now() + timedelta(hours=2)).replace(microsecond=0)


def listed(ident: Any = 1, start: datetime = START, **more: Any) -> Json:
    return {
        "id": ident, "home": "Boston Celtics", "away": "Los Angeles Lakers", "date": iso(start), "status": "pending",
        "sport": {"name": "Basketball", "slug": "basketball"}, "league": {"name": "USA - NBA", "slug": "usa-nba"},
    } | more  # fmt: skip


def market(name: str, *entries: Json) -> Json:
    return {"name": name, "odds": list(entries), "updatedAt": iso(now())}


MAIN = [
    market("ML", {"home": "1.800", "away": "2.100"}),
    market("Spread", {"hdp": -2.5, "home": "1.91", "away": "1.95"}, {"hdp": -3.5, "home": 2.05, "away": 1.8}),
    market("Totals", {"hdp": 220.5, "over": "1.90", "under": "1.90"}),
]


def event(books: dict[str, list[Json]] | None = None, **more: Any) -> Json:
    return listed(**more) | {"bookmakers": {"Bet365": MAIN} if books is None else books}


class Aggregator(SourceServer):
    """The aggregator."""

    venue = "odds_api_io"

    def __init__(self, *events: Json) -> None:
        super().__init__()
        self.events = list(events) or [event()]

    def reply(self, request: Request) -> Any:
        query = request.query
        if query.get("apiKey") != ["0123456789abcdef"]:
            return {"error": "Invalid API key"}, 401
        if request.path == "/events":
            rows = [one for one in self.events if one["sport"]["slug"] == query["sport"][0]]
            rows = [one for one in rows if query.get("league", [one["league"]["slug"]]) == [one["league"]["slug"]]]
            return [{name: value for name, value in one.items() if name != "bookmakers"} for one in rows]
        if request.path != "/odds/multi":
            return {"error": "not found"}, 404
        ids, books = query["eventIds"][0].split(","), query["bookmakers"][0].split(",")
        if len(ids) > 10:
            return {"error": "at most 10 events"}, 400
        found = [one for one in self.events if str(one["id"]) in ids]
        return [
            one | {"bookmakers": {name: own for name, own in one["bookmakers"].items() if name in books}}
            for one in found
        ]
