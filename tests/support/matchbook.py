"""Matchbook on this machine: pages of events in its shape, with invented ids and prices."""

from datetime import datetime, timedelta
from typing import Any

from oddsengine.testing.local_servers import Request, iso, now
from oddsengine.testing.source_server import Json, SourceServer, paged

START = (now() + timedelta(hours=2)).replace(microsecond=0)
SPORTS = {1: "American Football", 4: "Basketball", 9: "Tennis", 15: "Soccer"}


def price(side: str, odds: float, amount: float) -> Json:
    return {
        "side": side, "odds": odds, "decimal-odds": odds, "available-amount": amount, "currency": "GBP",
        "odds-type": "DECIMAL", "exchange-type": "back-lay",
    }  # fmt: skip


def runner(
    ident: int, name: str, back: tuple[tuple[float, float], ...] = (), lay: tuple[tuple[float, float], ...] = (),
    **more: Any,
) -> Json:  # fmt: skip
    """A runner; the levels of both sides are mixed, the best ones last."""
    prices = [price("lay", *level) for level in sorted(lay, reverse=True)]
    prices += [price("back", *level) for level in sorted(back)]
    return {"id": ident, "name": name, "status": "open", "withdrawn": False, "prices": prices} | more


def market(kind: str, *runners: Json, ident: int = 500, name: str = "Match Odds", **more: Any) -> Json:
    return {
        "id": ident, "name": name, "market-type": kind, "grading-type": kind, "status": "open",
        "in-running-flag": False, "type": "multirunner", "volume": 1234.5, "runners": list(runners),
    } | more  # fmt: skip


RESULT = market(
    "one_x_two", runner(11, "Fulham", ((2.2, 100.0), (2.18, 50.0)), ((2.24, 30.0),)),
    runner(12, "Draw", ((3.4, 20.0),), ((3.6, 10.0),)), runner(13, "Chelsea", ((3.5, 10.0),)),
)  # fmt: skip
TOTAL = market(
    "total", runner(21, "OVER 2.5", ((1.9, 40.0),), ((1.92, 100.0),), handicap=2.5),
    runner(22, "UNDER 2.5", ((2.0, 15.0),), ((2.06, 10.0),), handicap=2.5), ident=501, name="Total",
)  # fmt: skip


def event(
    *markets: Json, ident: Any = 100, name: str = "Fulham vs Chelsea", sport: int = 15, start: datetime = START,
    competition: str = "English Premier League", **more: Any,
) -> Json:  # fmt: skip
    tags = [{"id": 1, "name": SPORTS[sport], "type": "SPORT"}, {"id": 2, "name": competition, "type": "COMPETITION"}]
    return {
        "id": ident, "name": name, "sport-id": sport, "start": iso(start), "status": "open", "in-running-flag": False,
        "meta-tags": tags, "markets": list(markets) or [RESULT, TOTAL],
    } | more  # fmt: skip


def sports_list() -> Json:
    return {"sports": [{"id": number, "name": name, "type": "SPORT"} for number, name in SPORTS.items()], "total": 4}


def page(*events: Json, offset: int = 0, total: int | None = None) -> Json:
    return {
        "total": offset + len(events) if total is None else total, "per-page": 100, "offset": offset,
        "events": list(events),
    }  # fmt: skip


class Matchbook(SourceServer):
    """The exchange."""

    venue = "matchbook"

    def __init__(self, *events: Json) -> None:
        super().__init__()
        self.events = list(events) or [event()]
        self.size = 100
        self.currencies: list[str] = []  # that were asked for

    def reply(self, request: Request) -> Any:
        query = request.query
        if request.path == "/lookups/sports":
            return sports_list()
        if request.path != "/events":
            return {"errors": [{"messages": ["not found"]}]}, 404
        assert (query["odds-type"], query["exchange-type"]) == (["DECIMAL"], ["back-lay"])
        self.currencies.append(*query["currency"])
        rows = [one for one in self.events if [str(one["sport-id"])] == query["sport-ids"]]
        offset = int(query["offset"][0])
        found, _ = paged(rows, offset, min(self.size, int(query["per-page"][0])))
        return page(*found, offset=offset, total=len(rows))
