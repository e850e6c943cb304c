"""Novig on this machine: pages of events and markets and order books in its shape, with invented ids and prices."""

from datetime import datetime, timedelta
from typing import Any

from oddsengine.testing.local_servers import Request, now
from oddsengine.testing.source_server import Json, SourceServer, paged

START = (now() + timedelta(hours=2)).replace(microsecond=0)


def event(
    ident: str = "e1", name: str = "Dallas Cowboys @ New York Giants", start: datetime = START, **more: Any
) -> Json:
    return {
        "eventId": ident, "sport": "FOOTBALL", "league": "NFL", "status": "OPEN_PREGAME", "description": name,
        "startsTs": int(start.timestamp() * 1000),
    } | more  # fmt: skip


def market(ident: str, kind: str, *names: str, of: str = "e1", strike: str | None = None, **more: Any) -> Json:
    """A market; the ids of its outcomes are the market's with a number."""
    outcomes = [{"outcomeId": f"{ident}/{at}", "name": name, "status": "TBD"} for at, name in enumerate(names)]
    return {
        "marketId": ident, "eventId": of, "marketType": kind, "status": "OPEN", "voids": "PUSH", "description": "x",
        "startsTs": int(START.timestamp() * 1000), "outcomes": outcomes,
        "fee": {"coefficient": "0.03", "makerCredit": "0.5", "charged": "WHEN_LIVE"},
    } | ({} if strike is None else {"strike": strike}) | more  # fmt: skip


def winner(ident: str = "w", **more: Any) -> Json:
    return market(ident, "MONEY", "NYG", "DAL", **more)


def spread(ident: str = "s", line: float = 3.5, **more: Any) -> Json:
    """The home side has the line."""
    return market(ident, "SPREAD", f"DAL {-line:+g}", f"NYG {line:+g}", strike=f"{line:g}", **more)


def total(ident: str = "t", line: float = 45.5, **more: Any) -> Json:
    return market(ident, "TOTAL", f"Over {line:g}", f"Under {line:g}", strike=f"{line:g}", **more)


Bids = list[tuple[str, int]]  # price and contracts of a cent


def book(ident: str, first: Bids, second: Bids) -> Json:
    orders = {
        f"{ident}/{at}": [
            {"orderId": f"{at}{number}", "price": price, "qty": size} for number, (price, size) in enumerate(bids)
        ]
        for at, bids in enumerate((first, second))
    }
    return {"marketId": ident, "seq": 41, "orders": orders}


def page(*items: Json, after: int | None = None) -> Json:
    return {"items": list(items)} | ({} if after is None else {"next": str(after)})


class Novig(SourceServer):
    """The exchange: `books` by market; a market without one is not found."""

    venue = "novig"

    def __init__(self, *markets: Json) -> None:
        super().__init__()
        self.events = [event()]
        self.markets = list(markets) or [winner(), spread(), total()]
        self.books = {
            one["marketId"]: book(one["marketId"], [("0.48", 25_000)], [("0.5", 10_000)]) for one in self.markets
        }
        self.size = 500

    def reply(self, request: Request) -> Any:
        path, query = request.path.removeprefix("/v3/public/catalog/"), request.query
        if path in ("events", "markets"):
            leagues = {one["eventId"]: one["league"] for one in self.events}
            rows = [one for one in self.events if one["league"] == query["league"][0]]
            if path == "events":
                rows = [one for one in rows if one["status"] in query["status"][0].split(",")]
            else:
                rows = [one for one in self.markets if leagues.get(one["eventId"]) == query["league"][0]]
                rows = [one for one in rows if one["marketType"] == query["marketType"][0]]
            most = min(self.size, int(query["limit"][0]))
            found, end = paged(rows, int(query.get("after", ["0"])[0]), most)
            return page(*found, after=end)
        ident = path.removeprefix("markets/").removesuffix("/book")
        if ident in self.books:
            return self.books[ident]
        return {"code": "MARKET_NOT_FOUND", "message": "no"}, 404
