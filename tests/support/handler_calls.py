"""Requests without a socket: an endpoint's parameters read from a query string, and its answer as plain JSON."""

from typing import Any
from urllib.parse import urlencode

import msgspec

from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine_service.history.past import Past
from oddsengine_service.http.endpoints import Answer, Context, Endpoint
from oddsengine_service.http.params import parse
from oddsengine_service.node import Node
from oddsengine_service.tiers import TIERS, Caller


class NoKeys:
    """Nobody has a key."""

    def find(self, key: str) -> Caller | None:
        return None


def node(engine: Engine, *, demo: bool = True, reference: str = "close", past: Past | None = None) -> Node:
    return Node(engine, NoKeys(), None, demo=demo, reference=reference, past=past)  # type: ignore[arg-type]


def caller(tier: str) -> Caller:
    found = TIERS[tier]
    return Caller("a", "k", found, found.rate, found.streams, found.features)


def world(seed: int, seconds: int, **more: Any) -> Engine:
    """An engine fed by a world for some seconds."""
    engine = Engine()
    for batch in World(seed, **more).run(seconds):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return engine


def found(endpoints: tuple[Endpoint, ...], path: str, method: str = "GET") -> Endpoint:
    return next(each for each in endpoints if each.path == path and each.method == method)


def ask(
    endpoint: Endpoint, here: Node, query: dict[str, Any] | None = None, tier: str = "sharp", *,
    path: dict[str, str] | None = None, body: Any = None,
) -> Context:  # fmt: skip
    given = {
        name: str(value) if not isinstance(value, bool) else str(value).lower() for name, value in (query or {}).items()
    }
    read, ignored = parse(urlencode(given).encode(), endpoint.query)
    if body is not None:
        body = msgspec.json.decode(msgspec.json.encode(body), type=endpoint.body)
    return Context(caller(tier), read, path or {}, body, here.engine, here, ignored)


def answer(endpoint: Endpoint, here: Node, *args: Any, **words: Any) -> Any:
    """What comes back, read."""
    found = endpoint.answer(ask(endpoint, here, *args, **words))
    return found if isinstance(found, Answer) else msgspec.json.decode(msgspec.json.encode(found))
