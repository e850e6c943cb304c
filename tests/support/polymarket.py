"""Events, books and messages in the shape of Polymarket's, with invented teams, tokens and prices."""

import json
from typing import Any

START = "2026-08-07 20:00:00+00"
Json = dict[str, Any]


def offer(
    kind: str, outcomes: tuple[str, str] = ("Panthers", "Cardinals"), ident: str = "0xm1",
    tokens: tuple[str, str] = ("t1", "t2"), **more: Any,
) -> Json:  # fmt: skip
    """A market, with what is listed of one that can be traded."""
    return {
        "id": "1", "conditionId": ident, "question": "", "outcomes": json.dumps(outcomes),
        "outcomePrices": '["0.5", "0.5"]', "clobTokenIds": json.dumps(tokens), "sportsMarketType": kind,
        "gameStartTime": START, "active": True, "closed": False, "acceptingOrders": True, "enableOrderBook": True,
        "feesEnabled": True, "feeSchedule": {"exponent": 1, "rate": 0.03, "rebateRate": 0.25, "takerOnly": True},
        "clearBookOnStart": True, "negRisk": False, "orderMinSize": 5, "volumeNum": 1.5, "volume": "1.5",
    } | more  # fmt: skip


def team(name: str, side: str, alias: str = "", abbreviation: str = "") -> Json:
    return {"name": name, "ordering": side, "alias": alias or None, "abbreviation": abbreviation or None}


NFL = [
    team("Arizona Cardinals", "home", "Cardinals", "ari"),
    team("Carolina Panthers", "away", "Panthers", "car"),
]
SOCCER = [team("Fulham FC", "home"), team("Chelsea FC", "away")]


def event(*markets: Json, ident: str = "100", **more: Any) -> Json:
    """An event of an NFL game, unless told otherwise."""
    return {
        "id": ident, "slug": "nfl-car-ari-2026-08-07", "title": "Panthers vs. Cardinals", "gameId": 77,
        "startTime": "2026-08-07T20:00:00Z", "startDate": "2026-07-01T09:00:00Z", "teams": NFL, "negRisk": False,
        "negRiskAugmented": False, "live": False, "ended": False, "markets": list(markets),
    } | more  # fmt: skip


def match(*markets: Json, ident: str = "200", **more: Any) -> Json:
    """An event of a soccer match."""
    given = {"slug": "epl-ful-che-2026-08-24", "title": "Fulham FC vs. Chelsea FC", "teams": SOCCER, "gameId": "88"}
    return event(*markets, ident=ident, **given | more)


def three_way() -> list[Json]:
    """The three markets of a soccer result."""
    names = (
        ("Chelsea FC", "Will Chelsea FC win on 2026-08-24?"),
        ("Draw (Fulham FC vs. Chelsea FC)", "Will Fulham FC vs. Chelsea FC end in a draw?"),
        ("Fulham FC", "Will Fulham FC win on 2026-08-24?"),
    )
    return [
        offer(
            "moneyline", ("Yes", "No"), f"0xr{at}", (f"y{at}", f"n{at}"), groupItemTitle=title, question=question,
            negRisk=True,
        )
        for at, (title, question) in enumerate(names)
    ]  # fmt: skip


def levels(*pairs: tuple[Any, Any]) -> list[Json]:
    return [{"price": str(price), "size": str(size)} for price, size in pairs]


def book(token: str, bids: Any = (), asks: Any = (), stamp: int = 1_000, **more: Any) -> Json:
    """A complete book."""
    return {
        "event_type": "book", "asset_id": token, "market": "0xm1", "bids": levels(*bids), "asks": levels(*asks),
        "timestamp": str(stamp), "hash": "0xwhatever",
    } | more  # fmt: skip


def change(
    token: str, side: str, price: Any, size: Any, best: tuple[Any, Any] | None = None, stamp: int = 2_000
) -> Json:
    """A change of one level, as since 2025-09."""
    given: Json = {"asset_id": token, "price": price, "size": size, "side": side, "hash": "0xwrong"}
    if best is not None:
        given |= {"best_bid": best[0], "best_ask": best[1]}
    return {"event_type": "price_change", "market": "0xm1", "price_changes": [given], "timestamp": str(stamp)}
