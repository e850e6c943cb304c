"""Samples: what endpoints answer about a small made-up board, for the description of the interface."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from oddsengine.engine import Engine
from oddsengine.simulate import World
from service.endpoints import Answer, Ask, Caller, Endpoint
from service.node import Node
from service.params import parse
from service.problems import Problem
from service.splits import Splits, demonstrate
from service.tiers import TIERS

SEED, EVENTS, SECONDS = 7, 6, 20
_OF_A_NODE = ("account", "Streaming")  # tags of what a board alone cannot answer
_BATCH = "/odds/batch"
_SHOWN = 2  # entries of a list or an object
_ASKED = {"limit": "1", "fields": "", "since": "2026-02-07T18:00:00Z"}


def samples(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Answers by operation, such as `GET /odds`; none of endpoints whose answers hang on an account."""
    # Nobody asks for a key here, nor listens.
    node = Node(_board(), None, None, None, demo=True)  # type: ignore[arg-type]
    node.ready = True
    node.parts["splits"] = splits = Splits()
    demonstrate(splits, node.engine, datetime.now(UTC), hours=1)
    endpoints = tuple(endpoints)
    words = _words(endpoints, node)
    found = {}
    for endpoint in endpoints:
        of_a_node = endpoint.key == "none" or endpoint.tag in _OF_A_NODE
        if of_a_node or (endpoint.body is not None and endpoint.path != _BATCH):
            continue
        try:
            answer = _asked(endpoint, node, words)
        except Problem:
            continue  # this board has nothing to show for it
        if not isinstance(answer, Answer):
            found[f"{endpoint.method} {endpoint.path}"] = _cut(answer)
    return found


def _board() -> Engine:
    engine = Engine()
    for batch in World(SEED, events=EVENTS, live=0.5, tick=5.0, hazards=True).run(SECONDS):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return engine


def _words(endpoints: Iterable[Endpoint], node: Node) -> dict[str, str]:
    """Ids for paths and parameters, as the board has them."""
    by_path = {endpoint.path: endpoint for endpoint in endpoints if endpoint.method == "GET"}
    event = _asked(by_path["/events"], node, {})["data"][0]
    middles = _asked(by_path["/opportunities/middles"], node, {})["data"]
    words = {
        "event": event["id"], "event_id": event["id"], "eventId": event["id"], "sportId": event["sport"],
        "leagueId": event["league"], "bookId": event["books"][0],
    }  # fmt: skip
    return words | {"id": middles[0]["id"] if middles else "0" * 16}


def _asked(endpoint: Endpoint, node: Node, words: dict[str, str]) -> Any:
    """One answer as a client reads it."""
    given = {name: _ASKED.get(name) or words[name] for name, p in endpoint.by_name.items() if p.required}
    if "limit" in endpoint.by_name:
        given["limit"] = _ASKED["limit"]
    query, _ = parse("&".join(f"{name}={value}" for name, value in given.items()).encode(), endpoint.by_name)
    path = {name[1:-1]: words[name[1:-1]] for name in endpoint.path.split("/") if name.startswith("{")}
    body = None if endpoint.body is None else msgspec.convert({"event_ids": [words["event_id"]]}, endpoint.body)
    tier = TIERS["enterprise"]
    caller = Caller("sample", "sample", tier, tier.rate, tier.streams, tier.features)
    answer = endpoint.answer(Ask(caller, query, path, body, node.engine, node, ()))
    return answer if isinstance(answer, Answer) else msgspec.json.decode(msgspec.json.encode(answer))


def _cut(answer: Any) -> Any:
    """An answer whose data has a few entries."""
    data = answer.get("data")
    if isinstance(data, dict):
        short = {name: value[:_SHOWN] if isinstance(value, list) else value for name, value in data.items()}
        lists = all(isinstance(value, list) for value in data.values())  # prices by market type
        return {**answer, "data": dict([*short.items()][:_SHOWN]) if lists else short}
    return {**answer, "data": data[:_SHOWN]} if isinstance(data, list) else answer
