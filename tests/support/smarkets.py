"""Smarkets on this machine: events, markets, contracts and quotes in its shape, with invented ids and prices."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from oddsengine.testing.local_servers import Request, iso, now
from oddsengine.testing.source_server import Json, SourceServer

START = (now() + timedelta(hours=2)).replace(microsecond=0)
SLUG = "/sport/football/england-premier-league/2026/11/28/15-00/fulham-vs-chelsea/44"


def event(ident: str = "e1", name: str = "Fulham vs Chelsea", start: datetime = START, **more: Any) -> Json:
    return {
        "id": ident, "name": name, "slug": "x", "type": "football_match", "state": "upcoming", "full_slug": SLUG,
        "start_datetime": iso(start), "bettable": True, "parent_id": "p", "inplay_enabled": True,
    } | more  # fmt: skip


def market(
    ident: str = "m1", kind: str = "WINNER_3_WAY", param: str | float | None = None, of: str = "e1", **more: Any
) -> Json:  # fmt: skip
    type_ = {"name": kind} | ({} if param is None else {"param": param})
    return {"id": ident, "event_id": of, "name": "Full-time result", "state": "open", "market_type": type_} | more


def contract(ident: str, name: str, kind: str | None = None, of: str = "m1", **more: Any) -> Json:
    type_ = None if kind is None else {"name": kind}
    return {
        "id": ident,
        "market_id": of,
        "name": name,
        "slug": "x",
        "contract_type": type_,
        "state_or_outcome": "open",
    } | more


def quotes(offers: Sequence[tuple[int, float]], bids: Sequence[tuple[int, float]] = ()) -> Json:
    """Prices in hundredths of a percent, and payouts in pounds."""
    sides = {"offers": offers, "bids": bids}
    return {
        side: [{"price": price, "quantity": round(payout * 10_000)} for price, payout in levels]
        for side, levels in sides.items()
    }


RESULT = [contract("c1", "Fulham", "HOME"), contract("c2", "Draw", "DRAW"), contract("c3", "Chelsea", "AWAY")]
OVER_UNDER = [contract("c4", "Over 2.5", "OVER", "m2"), contract("c5", "Under 2.5", "UNDER", "m2")]


class Smarkets(SourceServer):
    """The exchange. Its pages of events begin anew after the last one."""

    venue = "smarkets"

    def __init__(self, *events: Json) -> None:
        super().__init__()
        self.events = list(events) or [event()]
        self.markets = [market(), market("m2", "OVER_UNDER", "2.5", name="Over/under 2.5")]
        self.contracts = [*RESULT, *OVER_UNDER]
        self.quotes = {
            "c1": quotes([(4500, 100.0)], [(4300, 50.0)]), "c2": quotes([(2800, 80.0)]), "c3": quotes([(3300, 60.0)]),
            "c4": quotes([(5200, 100.0)], [(5000, 30.0)]), "c5": quotes([(5100, 40.0)], [(4700, 10.0)]),
        }  # fmt: skip
        self.size = 20

    def reply(self, request: Request) -> Any:
        path, query = request.path, request.query
        if path == "/events/":
            assert query["state"] == ["upcoming", "live"]
            rows = [one for one in self.events if [one["type"]] == query["type"]]
            at = int(query.get("pagination_last_id", ["0"])[0])
            page = (rows + rows)[at : at + self.size]
            place = f"?type={query['type'][0]}&state=upcoming&state=live&with_new_type=False&include_hidden=False"
            place += f"&limit={query['limit'][0]}&pagination_last_id={at + self.size}"
            return {"events": page, "pagination": {"next_page": place if rows else None}}
        _, kind, ids, what, _ = path.split("/")
        given = ids.split(",")
        if (kind, what) == ("events", "markets"):
            return {"markets": [one for one in self.markets if one["event_id"] in given]}
        if (kind, what) == ("markets", "contracts"):
            return {"contracts": [one for one in self.contracts if one["market_id"] in given]}
        if (kind, what) == ("markets", "quotes"):
            own = {one["id"] for one in self.contracts if one["market_id"] in given}
            return {ident: self.quotes[ident] for ident in own if ident in self.quotes}
        return {"error_type": "NOT_FOUND"}, 404
