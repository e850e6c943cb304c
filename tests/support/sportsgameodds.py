"""SportsGameOdds on this machine: pages of events in its shape, with invented ids and prices."""

from datetime import datetime, timedelta
from typing import Any

from oddsengine.testing.local_servers import Request, iso, now
from oddsengine.testing.source_server import Json, SourceServer, paged

START = (now() + timedelta(hours=2)).replace(microsecond=0)


def price(odds: str, **more: Any) -> Json:
    return {"odds": odds, "available": True, "lastUpdatedAt": iso(now()), "bookmakerID": "x"} | more


def odd(name: str, **books: Json) -> Json:
    """An odd from its id: stat, whom it counts, period, type of bet and side."""
    stat, who, period, bet, side = name.rsplit("-", 4)
    return {
        "oddID": name, "statID": stat, "statEntityID": who, "periodID": period, "betTypeID": bet, "sideID": side,
        "opposingOddID": "x", "fairOdds": "+101", "bookOdds": "-105", "fairOddsAvailable": True,
        "byBookmaker": dict(books),
    }  # fmt: skip


def odds(*given: Json) -> Json:
    return {one["oddID"]: one for one in given}


MAIN = [
    odd("points-home-game-ml-home", draftkings=price("-112"), fanduel=price("-110")),
    odd("points-away-game-ml-away", draftkings=price("+105"), fanduel=price("+102", available=False)),
    odd("points-home-game-sp-home", draftkings=price("-108", spread="-1.5"), fanduel=price("-115", spread="-2.5")),
    odd("points-away-game-sp-away", draftkings=price("-112", spread="+1.5"), fanduel=price("-105", spread="+2.5")),
    odd("points-all-game-ou-over", draftkings=price("-110", overUnder="44.5")),
    odd("points-all-game-ou-under", draftkings=price("-110", overUnder="44.5")),
]


def event(*given: Json, ident: str = "ev1", start: datetime = START, **more: Any) -> Json:
    status = {
        "startsAt": iso(start), "started": False, "live": False, "ended": False, "finalized": False,
        "cancelled": False, "completed": False, "oddsAvailable": True,
    }  # fmt: skip
    teams = {
        side: {"teamID": side.upper(), "names": {"long": name, "medium": name.split()[-1], "short": "X"}}
        for side, name in (("home", "Seattle Seahawks"), ("away", "Dallas Cowboys"))
    }
    return {
        "eventID": ident, "sportID": "FOOTBALL", "leagueID": "NFL", "type": "match", "status": status, "teams": teams,
        "players": {"DAK_PRESCOTT_1_NFL": {"playerID": "DAK_PRESCOTT_1_NFL", "name": "Dak Prescott", "teamID": "AWAY"}},
        "odds": odds(*(given or MAIN)),
    } | more  # fmt: skip


def page(*events: Json, cursor: str | None = None) -> Json:
    return {"success": True, "data": list(events)} | ({} if cursor is None else {"nextCursor": cursor})


class Aggregator(SourceServer):
    """The aggregator; it wants a key."""

    venue = "sportsgameodds"

    def __init__(self, *events: Json) -> None:
        super().__init__()
        self.events = list(events) or [event()]
        self.size = 50

    def reply(self, request: Request) -> Any:
        if not request.headers.get("x-api-key"):
            return {"success": False, "error": "Missing API key"}, 401
        query = request.query
        rows = [one for one in self.events if [one["leagueID"]] == query["leagueID"]]
        found, end = paged(rows, int(query.get("cursor", ["0"])[0]), min(self.size, int(query["limit"][0])))
        return page(*found, cursor=None if end is None else str(end))
