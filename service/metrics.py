"""Metrics of a node in the Prometheus text format.

Requests are counted in plain numbers, by the event loop alone, and put into the form of Prometheus when somebody looks:
its own counters cost as much as a small answer.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_EDGES = [*(f"{edge}" for edge in _SECONDS), "+Inf"]
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class Metrics(Collector):
    """What is counted, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counts: dict[tuple[str, str, int], int] = {}
        self._spent: dict[str, list[float]] = {}  # by route: a count for each edge, then the sum of seconds
        self.registry.register(self)

    def answered(self, route: str, method: str, status: int, spent: float) -> None:
        """Count one request."""
        key = route, method if method in _METHODS else "other", status
        self._counts[key] = self._counts.get(key, 0) + 1
        found = self._spent.get(route)
        if found is None:
            found = self._spent[route] = [0] * len(_EDGES) + [0.0]
        found[bisect_left(_SECONDS, spent)] += 1
        found[-1] += spent

    def collect(self) -> Iterable[Metric]:
        """What was counted."""
        counts = CounterMetricFamily("oddsengine_requests", "Requests answered", labels=["route", "method", "status"])
        for (route, method, status), count in tuple(self._counts.items()):
            counts.add_metric([route, method, str(status)], count)
        yield counts
        spent = HistogramMetricFamily("oddsengine_request_seconds", "Time from headers to answer", labels=["route"])
        for route, found in tuple(self._spent.items()):
            spent.add_metric([route], [*zip(_EDGES, accumulate(found[:-1]), strict=True)], found[-1])
        yield spent

    def add(self, collector: Collector) -> None:
        """Let something else be asked each time metrics are read."""
        self.registry.register(collector)

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self.registry)
