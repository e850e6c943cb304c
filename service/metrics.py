"""Metrics of a node in the Prometheus text format."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.registry import Collector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """What is counted, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "oddsengine_requests", "Requests answered", ["route", "method", "status"], registry=self.registry
        )
        self._spent = Histogram(
            "oddsengine_request_seconds",
            "Time from headers to answer",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def answered(self, route: str, method: str, status: int, spent: float) -> None:
        """Count one request."""
        key = (route, method, status)
        known = self._known.get(key)
        if known is None:
            method = method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS") else "other"
            known = self._requests.labels(route, method, str(status)), self._spent.labels(route)
            if len(self._known) < 10_000:
                self._known[key] = known
        known[0].inc()
        known[1].observe(spent)

    def add(self, collector: Collector) -> None:
        """Let something else be asked each time metrics are read."""
        self.registry.register(collector)

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self.registry)
