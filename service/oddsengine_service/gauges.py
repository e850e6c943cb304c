"""Metrics of a node, computed when they are read; docs/service.md lists every metric."""

from collections.abc import Callable, Iterable
from datetime import datetime
from operator import attrgetter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from oddsengine_service.feeds.status import DEGRADED, DOWN, OK, STARTING, SourceStatus
from oddsengine_service.node import Node
from oddsengine_service.stream.stream_hub import StreamHub

_STREAMS = (
    (GaugeMetricFamily, "oddsengine_streams", "Streams that are open", "streams"),
    (CounterMetricFamily, "oddsengine_stream_made", "Events that were encoded, each for a group", "delivery.made"),
    (CounterMetricFamily, "oddsengine_stream_events", "Events sent on streams", "delivery.events"),
    (CounterMetricFamily, "oddsengine_stream_cuts", "Streams cut off because their reader was slow", "checks.cuts"),
)
"""Metrics of streams, and the attributes of `Subscribers` that count them."""


class Gauges(Collector):
    """Gauges of a node, computed on request."""

    def __init__(self, node: Node, hub: Callable[[], StreamHub | None] = lambda: None) -> None:
        self._node, self._hub = node, hub

    def collect(self) -> Iterable[Metric]:
        node, hub = self._node, self._hub()
        failing = GaugeMetricFamily("oddsengine_failing", "1 for what /health calls failing", labels=["what"])
        for name in sorted(node.failures):
            failing.add_metric([name], 1.0)
        yield failing
        for family, name, doc, attribute in _STREAMS:  # zero before the first stream
            yield family(name, doc, 0 if hub is None else attrgetter(attribute)(hub.subscribers))
        if not node.ready:
            return
        engine = node.engine
        yield CounterMetricFamily("oddsengine_updates", "Steps of the engine", engine.number)
        yield GaugeMetricFamily("oddsengine_board_rows", "Prices on the board", engine.size)
        rejected = GaugeMetricFamily("oddsengine_set_aside", "Prices that each guard keeps away", labels=["guard"])
        for guard, n in engine.rejected_counts().items():
            rejected.add_metric([guard], n)
        yield rejected
        if engine.plugin_guards:
            seconds = CounterMetricFamily(
                "oddsengine_guard_seconds", "Time that guards of plugins took", labels=["guard"]
            )
            for each in engine.plugin_guards:
                seconds.add_metric([each.name], each.seconds)
            yield seconds
        opportunities = GaugeMetricFamily(
            "oddsengine_opportunities", "Open opportunities, each once however many views show it", labels=["kind"]
        )
        for kind, n in engine.open_counts().items():
            opportunities.add_metric([kind], n)
        yield opportunities
        yield GaugeMetricFamily("oddsengine_views", "Views that are kept up to date", len(engine.views))
        yield node.steps.family()
        node.clock.time()
        yield GaugeMetricFamily(
            "oddsengine_clock_ahead_seconds", "By how much the node's time is ahead of the wall clock", node.clock.ahead
        )
        yield from source_metrics(node.feeds.statuses() if node.feeds is not None else (), node.clock.now())


def source_metrics(sources: Iterable[SourceStatus], now: datetime) -> Iterable[Metric]:
    """Metrics of a node's sources; those that a source does not have are omitted."""
    status = GaugeMetricFamily("oddsengine_feed_status", "1 for the status of a source", labels=["feed", "status"])
    figures = [(kind(f"oddsengine_feed_{name}", doc, labels=["feed"]), field) for kind, name, doc, field in FIGURES]
    for source in sources:
        for each in (STARTING, OK, DEGRADED, DOWN):
            status.add_metric([source.name, each], float(source.status == each))
        for family, field in figures:
            value = getattr(source, field)
            if isinstance(value, datetime):
                value = (now - value).total_seconds()
            if value is not None:
                family.add_metric([source.name], value)
    yield from (status, *(family for family, _ in figures))


_Family = type[GaugeMetricFamily] | type[CounterMetricFamily]
FIGURES: tuple[tuple[_Family, str, str, str], ...] = (  # kind, name, documentation, attribute of a source's status
    (GaugeMetricFamily, "age_seconds", "Since a source last delivered data or a heartbeat", "last_sign"),
    (GaugeMetricFamily, "payload_age_seconds", "Since a source last sent data", "last_payload"),
    (GaugeMetricFamily, "credits_left", "Credits until they renew", "credits_left"),
    (CounterMetricFamily, "credits_used", "Credits used since they renewed", "credits_used"),
    (GaugeMetricFamily, "credits_per_hour", "Credits an hour as planned now", "credits_an_hour"),
    (GaugeMetricFamily, "prices", "Prices on the board that a source quotes", "prices"),
    (GaugeMetricFamily, "stale_ratio", "Share of these prices that are rejected as stale", "stale_share"),
    (CounterMetricFamily, "payloads", "Payloads applied", "payloads"),
    (CounterMetricFamily, "quotes", "Prices in those payloads", "quotes"),
    (CounterMetricFamily, "failures", "Failed tries", "failures_total"),
)
