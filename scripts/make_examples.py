"""Generate the example responses of the API reference: `python scripts/make_examples.py`.

They are about a small fictional board. Ids and times of what a request creates are new each time; everything else stays
the same, and `tests/service/test_make_examples.py` compares it.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import msgspec
import polars as pl

from oddsengine.feeds.the_odds_api_names import sport_key
from oddsengine.history.truth_file import Figures, Group, Reference, TruthReport, Week, encoded_report, report_file
from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine.sources.failure import Failure
from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.bettors.alerts import Alerts, StoredAlert
from oddsengine_service.bettors.bets import Bet
from oddsengine_service.bettors.targets import Sender
from oddsengine_service.demo import add_futures, add_splits, teams_of
from oddsengine_service.errors import Problem
from oddsengine_service.feeds.status import BookStatus, SourceStatus, Track
from oddsengine_service.history.past import Past
from oddsengine_service.history.truth import TruthFile
from oddsengine_service.http.endpoints import Context, Endpoint
from oddsengine_service.http.openapi import is_v4
from oddsengine_service.http.params import parse
from oddsengine_service.mcp import local
from oddsengine_service.mcp.tools import BY_NAME, answer, query
from oddsengine_service.node import Node
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.site import EXAMPLES
from oddsengine_service.v4.sports_and_events import v4_id
from oddsengine_service.wire.saved_filters import Filter

SEED, EVENTS, SECONDS = 7, 6, 20
_SHOWN = 2  # entries of a list or object
_QUERY = {
    "odds": "2.1",
    "against": "2.05",
    "probabilities": "0.5",
    "limit": "1",
    "fields": "",
    "since": "2026-02-07T18:00:00Z",
}
_MORE: Mapping[str, Mapping[str, str]] = {  # of endpoints that need one of two optional parameters, or would send much
    "/odds/screen": {"market": "moneyline", "sportsbook": "draftkings,pinnacle"},
    **{
        f"/v4{past}/sports/{{sportKey}}{path}": {"regions": "us"}
        for past in ("", "/historical")
        for path in ("/odds", "/odds-history", "/events/{eventId}/odds", "/events/{eventId}/markets")
    },
    "/calculators/free-bet": {"against": _QUERY["against"]},
    "/calculators/qualifying": {"lay": "2.15"},
}
_BODIES: Mapping[str, Any] = {
    "/odds/batch": {"event_ids": ["{event}"]},
    "/deeplinks/batch": {"ids": ["{price}"]},
    "/mcp": {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "devig", "arguments": {"odds": "-120,+100", "format": "american"}},
    },
    "/bets": {"sportsbook": "fanduel", "selection": "Boston Celtics", "odds_decimal": 2.1, "stake": 50.0},
    "/bets/import": {
        "bets": [{
            "sportsbook": "fanduel", "selection": "Miami Heat", "odds_decimal": 1.95, "stake": 20.0, "result": "lost",
            "placed_at": "2026-02-01T18:00:00Z",
        }],
    },
    "/bets/{betId}": {"result": "won"},
    "/alerts": {"filter": "soccer", "quiet_from": "23:00", "quiet_to": "07:00"},
    "/alerts/{alertId}": {"improve": 0.5},
    "/alerts/{alertId}/confirm": {"code": "1f0c93ab"},
    "/filters/{filterName}": {"list": "ev", "query": "sport=soccer&min_ev=2"},
    "/marks/{id}": {"note": "a friend has this already"},
    "/account/keys": {"name": "of the office", "tier": "pro"},
    "/account/restore": {"format": 1, "marks": [{"id": "9626750f914c1600", "note": "a friend has this already"}]},
    "/splits": {
        "splits": [
            {
                "event_id": "of a source", "sportsbook": "circa", "sport": "football", "league": "nfl",
                "home_team": "Kansas City Chiefs", "away_team": "New York Jets",
                "total": {
                    "line": 44.5, "handle_pct": {"over": 0.6, "under": 0.4}, "bets_pct": {"over": 0.7, "under": 0.3},
                },
            }
        ]
    },
}  # fmt: skip
_TARGET = "https://hooks.example.com/odds"
_SECRET = re.compile(rb"(?<=oe_[0-9a-f]{12}\.)[\w-]{43}")  # of a key


def examples(endpoints: Iterable[Endpoint] = ENDPOINTS) -> dict[str, Any]:
    """Example responses by operation, such as `GET /odds`, except streams and responses without a body."""
    endpoints = tuple(endpoints)
    with (
        TemporaryDirectory() as folder,
        closing(KeyStore(Path(folder) / "keys", Path(folder) / "pepper")) as keys,
        closing(Past(engine := Engine())) as past,
    ):
        node = Node(engine, keys, Limits(), past=past, truth=_truth(Path(folder)))
        closed = _play(node, past)
        add_splits(node.splits, node.engine, node.clock.now(), hours=1)
        node.use_feeds(_Feeds(node.clock.now()))
        node.wait_for("")
        node.changed_at = node.clock.time()
        return _answers(endpoints, node, keys, closed)


def _truth(folder: Path) -> TruthFile:
    """The report of one week."""
    figures: dict[str, Any] = {
        "prices": 212, "graded": 188, "games": 61, "avg_ev": 1.94, "avg_worth": 1.72, "worth_error": 0.41, "bias": 0.22,
        "bias_error": 0.4,
    }  # fmt: skip
    reference = Reference(
        sportsbook="pinnacle", market="total", sport=None, games=131, games_missing=0, prices=802, log_loss=0.691402,
        log_loss_error=0.000214, excess=0.000041, excess_error=0.000037, alone=True,
    )  # fmt: skip
    report = TruthReport(
        read_until="2026-02-07T18:00:00.000000Z", fair="us-2026-11", games_missing=0, games_waiting=9,
        summary="shown at 1.94 %, worth 1.72 +-0.41 %: no difference beyond the error", total=Figures(**figures),
        weeks=[Week(week="2026-W05", begins="2026-01-26", **figures)],
        groups=[Group(by="league", value="nba", biased=False, **figures)], left_out=[],
        references=[reference],
    )  # fmt: skip
    path = report_file(folder)
    path.parent.mkdir()
    path.write_bytes(encoded_report(report))
    return TruthFile(path)


class _Feeds:
    """Two sources, of which one fails."""

    def __init__(self, now: datetime) -> None:
        good, bad = Track("american", "the_odds_api", now, 120.0), Track("mine", "table", now, 120.0)
        good.part("basketball_nba").well(now)
        good.part("basketball_nba").books["fanduel"] = now
        good.last_payload, good.payloads, good.quotes, good.events = now, 12, 3_400, {"a", "b"}
        good.prices, good.stale = 280, 7
        bad.part("").failed(Failure("prices.csv: no such file"), now)
        self._states = [good.status(now), bad.status(now)]

    def statuses(self) -> list[SourceStatus]:
        return self._states

    def books(self) -> list[BookStatus]:
        return []


def _play(node: Node, past: Past) -> str:
    """Fill a board. Returns the id of an event that begins at the end."""
    engine, world = node.engine, World(SEED, events=EVENTS, live=0.5, tick=5.0, hazards=True)
    for batch in world.run(SECONDS):
        node.games.put(world.scores, batch.now, teams_of(world))
        past.follow(engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events))
    assert engine.now is not None
    board, now = engine.table(), engine.now
    waiting = board.filter((pl.col("event_start_time") > now) & ~pl.col("is_live").any().over("event_id"))
    event = str(waiting.sort("event_start_time", "event_id")["event_id"][0])
    again, begins = f"{event}_2", now + timedelta(seconds=5)  # the same teams again
    rows = board.filter(pl.col("event_id") == event).drop("row_id")
    past.follow(engine.step(rows.with_columns(event_id=pl.lit(again), event_start_time=pl.lit(begins)), now))
    past.follow(engine.step((), begins))
    past.settle()
    add_futures(node.futures, begins)
    return again


def _answers(endpoints: tuple[Endpoint, ...], node: Node, keys: KeyStore, event: str) -> dict[str, Any]:
    made, other, gone = (keys.create("sample", KeyTerms("enterprise"), name) for name in ("of the desk", "old", "gone"))
    by_path = {endpoint.path: endpoint for endpoint in endpoints if endpoint.method == "GET"}
    caller = made.record.caller
    words = {"event": event, "event_id": event, "eventId": event}
    alerts = Alerts(node, node.records, Sender(), {})
    plain = Context(caller, {}, {}, None, node.engine, node, (), targets=alerts)
    bet = Bet(
        id="0" * 16, placed_at=node.clock.now(), sportsbook="fanduel", selection="Boston Celtics", odds_decimal=2.1,
        stake=50.0,
    )  # fmt: skip
    node.records.put(caller.key, "bet", bet.id, bet)
    node.records.put(caller.key, "filter", "soccer", Filter(list="ev", name="soccer"))
    node.records.put(
        caller.key,
        "alert",
        bet.id,
        StoredAlert(filter="soccer", id=bet.id, targets=[_TARGET], codes={_TARGET: "1f0c93ab"}),
    )
    (price,) = _answer(by_path["/events/{eventId}/odds"], plain, words)["data"]
    lists = [path for path in by_path if f"{path}/{{id}}" in by_path and path.startswith("/opportunities/")]
    first = {f"{path}/{{id}}": next(iter(_answer(by_path[path], plain, words)["data"]), None) for path in lists}
    ev: dict[str, Any] = first["/opportunities/ev/{id}"] or {}
    of_ev = {"opportunityId": ev["id"], "event_id": ev["game_id"]}
    words |= {
        "price": price["id"], "sportId": price["sport"], "leagueId": price["league"], "bookId": price["sportsbook"],
        "betId": bet.id, "alertId": bet.id, "filterName": "soccer",
        "sport": next(game.sport for game in node.games.states().values()),
        "sportKey": sport_key(price["sport"], price["league"]), "date": node.engine.now.isoformat(),  # type: ignore[union-attr]
    }  # fmt: skip
    out = {}
    for endpoint in endpoints:
        undescribed = endpoint.body is not None and endpoint.path not in _BODIES
        if endpoint.tag == "Streaming" or undescribed:
            continue
        key = gone if endpoint.method == "DELETE" else other
        opportunity = first.get(endpoint.path)
        ident = key.record.id if endpoint.tag == "Account" else opportunity["id"] if opportunity else "0" * 16
        try:
            more = of_ev if "{opportunityId}" in endpoint.path else {"id": ident}
            more |= {"eventId": v4_id(event)} if is_v4(endpoint) else {}
            answer = _tool_result(plain) if endpoint.path == "/mcp" else _answer(endpoint, plain, words | more)
        except Problem:
            continue  # no example on this board
        if answer is not None:
            out[f"{endpoint.method} {endpoint.path}"] = _short(answer)
    return out


def _answer(endpoint: Endpoint, context: Context, words: Mapping[str, str]) -> Any:
    """One response as a client reads it; None if it is not JSON."""
    fields = endpoint.query.declared
    required = {name: _QUERY.get(name) or words[name] for name, field in fields.items() if field.required}
    required |= _MORE.get(endpoint.path, {})
    if "limit" in fields:
        required["limit"] = _QUERY["limit"]
    query, _ = parse("&".join(f"{name}={value}" for name, value in required.items()).encode(), endpoint.query)
    path = {name[1:-1]: words[name[1:-1]] for name in endpoint.path.split("/") if name.startswith("{")}
    body = None
    if endpoint.body is not None:
        body = msgspec.convert(_filled(_BODIES[endpoint.path], words), endpoint.body)
    answer = endpoint.response(context._replace(query=query, path=path, body=body))
    return msgspec.json.decode(answer.body) if answer.body and answer.type == "application/json" else None


def _tool_result(context: Context) -> Any:
    """The response to a call of a tool, without the server of the protocol."""
    call = _BODIES["/mcp"]
    words, shown = query(BY_NAME["devig"], local.DEVIG, call["params"]["arguments"])
    values, _ = parse(urlencode(words).encode(), local.DEVIG.query)
    result = local.DEVIG.answer(context._replace(query=values))
    text = answer(BY_NAME["devig"], result, shown, context.board.now or context.node.clock.now(), 0)
    return {
        "jsonrpc": "2.0",
        "id": call["id"],
        "result": {"content": [{"type": "text", "text": text}], "isError": False},
    }


def _filled(body: Any, words: Mapping[str, str]) -> Any:
    """A body with ids of the board."""
    return {
        name: [each.format(**words) if isinstance(each, str) else each for each in value]
        if isinstance(value, list)
        else value
        for name, value in body.items()
    }


def _short(value: Any) -> Any:
    """A response with the first entries of its lists of objects, and of its objects of such lists by id."""
    if _rows(value):
        return [_short(each) for each in value[:_SHOWN]]
    if not isinstance(value, dict):
        return value
    items = [*value.items()]
    return {name: _short(each) for name, each in (items[:_SHOWN] if all(map(_rows, value.values())) else items)}


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


if __name__ == "__main__":
    text = msgspec.json.format(msgspec.json.encode(examples()), indent=1)
    EXAMPLES.write_bytes(_SECRET.sub(b"SECRET", text) + b"\n")
