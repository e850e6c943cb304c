"""Health: whether the node is up, its data fresh, and its catalog consistent.

`down` (503) while the node starts, if the writer thread has ended, and if prices are so old that the guards reject all
of them; `degraded` if something is impaired but responses are still correct. With sources, `data` counts their states
and says what is wrong with those that are not green (`feeds.status.light`).
"""

import time
from collections import Counter
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.tables.schema import ODDS_SCHEMA
from oddsengine_service.feeds.status import STARTING, light, shortened
from oddsengine_service.http.endpoints import Answer, Context, Endpoint
from oddsengine_service.node import VERSION, Node
from oddsengine_service.wire.feeds_response import GREEN
from oddsengine_service.wire.health_response import Check, FairPrices, Health
from oddsengine_service.wire.numbers import format_time

_ORDER = ("ok", "degraded", "down")
_MOST_NAMED = 5  # sources
OLD_S = 60.0  # seconds without a price; older is degraded
_encode = msgspec.json.Encoder().encode


def _timed(check: Any, node: Node) -> Check:
    begun = time.perf_counter()
    try:
        status, message = check(node)
    except Exception as error:  # a failing check is part of the result, not an error
        status, message = "down", f"{type(error).__name__}"
    return Check(status, round((time.perf_counter() - begun) * 1000.0), message or None)


def _store(node: Node) -> tuple[str, str]:
    """The key store can be read."""
    node.keys.find("health")
    return "ok", ""


def data_check(node: Node) -> tuple[str, str]:
    """Prices arrive and are applied."""
    standing_by = node.replication.standing_by
    broken = [f"failing: {', '.join(sorted(node.failures))}"] if node.failures else []
    if not (node.ready or standing_by):
        return "down", "; ".join([node.waits_for or "starting", *broken])
    if standing_by and node.waits_for:
        return ("degraded" if broken else "ok"), "; ".join([node.waits_for, *broken])
    if node.closing.is_set():
        return "down", "stopping"
    if not node.writing:
        return "down", "the writer is gone"
    if not node.changed_at:
        waited = node.clock.time() - node.started
        status = "degraded" if waited < catalog.thresholds().stale_prematch_s else "down"
        return status, _with_sources("no price yet", node)
    age = node.clock.time() - node.changed_at
    if age > catalog.thresholds().stale_prematch_s:
        return "down", _with_sources(f"no price for {age:.0f} s", node)
    if age > OLD_S:
        return "degraded", _with_sources(f"no price for {age:.0f} s", node)
    if fault := node.clock.fault():
        broken.append(fault)
    return ("degraded", "; ".join(broken)) if broken else _sources(node)


def _with_sources(text: str, node: Node) -> str:
    """What is wrong, and what the sources say, one of which may be the cause."""
    return "; ".join(filter(None, (text, _sources(node)[1])))


def _sources(node: Node) -> tuple[str, str]:
    """Sources work, and their prices are fresh enough to be used."""
    hub = node.feeds
    sources = hub.statuses() if hub is not None else []
    if not sources:
        return "ok", ""
    counts = Counter(one.status for one in sources)
    lights = [(one, light(one)) for one in sources]
    bad = [(one, its) for one, its in lights if its.color != GREEN]
    parts = ["sources: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))]
    parts += [f"{one.name}: {its.reason}" for one, its in bad[:_MOST_NAMED]]
    if len(bad) > _MOST_NAMED:
        parts.append(f"and {len(bad) - _MOST_NAMED} more (see /feeds)")
    if shared := [one for one in sources if one.shared]:
        books = shortened(sorted({book for one in shared for book in one.shared}))
        parts.append(f"carried by more than one source: {books} ({', '.join(one.name for one in shared)})")
    starts = all(one.status == STARTING and not one.prices for one, _ in bad)
    return ("ok" if starts else "degraded"), "; ".join(parts)


def _schema(_: Node) -> tuple[str, str]:
    """The catalog's data files are valid, and the table has the columns of responses."""
    missing = {"odds_decimal", "last_seen_at", "event_id"} - set(ODDS_SCHEMA)
    return ("ok", "") if catalog.books() and catalog.listings() and not missing else ("down", "the catalog is empty")


def _fair(node: Node) -> FairPrices:
    """The table of constants in use, and its results."""
    table = node.engine.fair
    games = table.note.get("games")
    lately = node.past.lately() if node.past is not None else None
    figures = (None,) * 4 if lately is None else lately
    return FairPrices(
        "close" if node.boards.method == "close" else "classical", table.name, table.date,
        games if isinstance(games, int) else None, *figures,
    )  # fmt: skip


def health(context: Context) -> Any:
    node = context.node
    checks = {"cache": _timed(_store, node), "data": _timed(data_check, node), "schema": _timed(_schema, node)}
    worst = max((check.status for check in checks.values()), key=_ORDER.index)
    body = Health(worst, VERSION, format_time(node.clock.now()) or "", checks, _fair(node))
    return Answer(_encode(body), 503 if worst == "down" else 200)


endpoints = (
    Endpoint(
        "/health", health, "Health check", "Health", Health, key="none", cache="never",
        doc="503 with the same shape while the node starts, and when its data is too old to be used.",
    ),
)  # fmt: skip
