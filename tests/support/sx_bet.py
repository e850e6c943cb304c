"""SX Bet on this machine: lists of markets and order books in its shape, with invented hashes and prices."""

from datetime import datetime, timedelta
from typing import Any

from oddsengine.testing.local_servers import Request, now
from oddsengine.testing.source_server import Json, SourceServer, paged

START = (now() + timedelta(hours=2)).replace(microsecond=0)
SPORTS = {1: "Basketball", 2: "Hockey", 5: "Soccer", 6: "Tennis", 8: "Football"}
LEAGUES = {243: ("NFL", 8, False), 29: ("English Premier League", 5, True), 1070: ("ATP French Open", 6, True)}


def market(
    ident: str, outcomes: tuple[str, str], kind: int, league: int = 243,
    teams: tuple[str, str] = ("Dallas Cowboys", "Seattle Seahawks"), **more: Any,
) -> Json:  # fmt: skip
    label, sport, _ = LEAGUES[league]
    return {
        "status": "ACTIVE", "marketHash": ident, "outcomeOneName": outcomes[0], "outcomeTwoName": outcomes[1],
        "outcomeVoidName": "NO_CONTEST", "teamOneName": teams[0], "teamTwoName": teams[1], "type": kind,
        "gameTime": int(START.timestamp()), "sportXeventId": "L100", "liveEnabled": True,
        "sportLabel": SPORTS[sport], "sportId": sport, "leagueId": league, "leagueLabel": label, "group1": label,
        "chainVersion": "SXR",
    } | more  # fmt: skip


def winner(ident: str = "0xw", **more: Any) -> Json:
    return market(ident, ("Dallas Cowboys", "Seattle Seahawks"), 226, **more)


def soccer(ident: str, outcomes: tuple[str, str], kind: int, **more: Any) -> Json:
    given: dict[str, Any] = {"teams": ("Fulham", "Chelsea"), "sportXeventId": "L200"}
    return market(ident, outcomes, kind, 29, **given | more)


def order(probability: float, size: float) -> Json:
    """What a maker has bet, in USDC."""
    return {"percentageOdds": str(round(probability * 1000) * 10**17), "size": str(round(size * 1_000_000))}


def book(one: list[tuple[float, float]], two: list[tuple[float, float]], ident: str = "0xw") -> Json:
    """An order book: the makers' bets on each outcome."""
    levels = ([order(*level) for level in side] for side in (one, two))
    given = dict(zip(("outcomeOne", "outcomeTwo"), levels, strict=True))
    return {"status": "success", "data": {"marketHash": ident, "version": "00000060000000012"} | given}


def sports_list() -> Json:
    return {"status": "success", "data": [{"sportId": number, "label": name} for number, name in SPORTS.items()]}


def league_list() -> Json:
    rows = [
        {"leagueId": number, "label": label, "sportId": sport, "homeTeamFirst": first, "active": True}
        for number, (label, sport, first) in LEAGUES.items()
    ]
    return {"status": "success", "data": rows}


def page(*markets: Json, key: str | None = None) -> Json:
    return {"status": "success", "data": {"markets": list(markets)} | ({} if key is None else {"nextKey": key})}


class SxBet(SourceServer):
    """The exchange: `books` by market; a market without one is not found."""

    venue = "sx_bet"

    def __init__(self, *markets: Json, start: datetime = START) -> None:
        super().__init__()
        self.markets = list(markets) or [winner(gameTime=int(start.timestamp()))]
        self.books: dict[str, Json] = {
            one["marketHash"]: book([(0.5, 5.0)], [(0.48, 3.0)], one["marketHash"]) for one in self.markets
        }
        self.size = 50

    def reply(self, request: Request) -> Any:
        query = request.query
        if request.path == "/sports":
            return sports_list()
        if request.path == "/leagues/active":
            return league_list()
        if request.path == "/markets/active":
            if int(query["pageSize"][0]) > 50:
                return {"status": "failure", "errorCode": "BAD_PAGE_SIZE"}, 400
            name, field = next((n, f) for n, f in (("sportIds", "sportId"), ("leagueId", "leagueId")) if n in query)
            rows = [one for one in self.markets if one[field] == int(query[name][0])]
            if query.get("onlyMainLine") == ["true"]:
                rows = [one for one in rows if one.get("mainLine", True)]
            found, end = paged(rows, int(query.get("paginationKey", ["0"])[0]), self.size)
            return page(*found, key=None if end is None else str(end))
        ident = query["marketHash"][0]
        if request.path == "/orderbook-v3/snapshot" and ident in self.books:
            return self.books[ident]
        return {"status": "failure", "errorCode": "MARKET_NOT_FOUND"}, 404
