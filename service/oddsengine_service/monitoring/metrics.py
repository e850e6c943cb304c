"""Metrics of a node in the Prometheus text format.

Requests are counted in plain numbers by the event loop, and converted when the metrics are read, because Prometheus
counters cost as much as a small response. docs/service.md lists every metric.
"""

import hmac
import socket
import threading
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_STREAM_SECONDS = (1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNAUTHORIZED = "metrics need their token: Authorization: Bearer TOKEN"
_READ_S = 10.0  # timeout of a request for metrics
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")  # that have a name in metrics, and that a node answers
_METHODS = frozenset({*METHODS, "OPTIONS"})


class Histogram:
    """Durations by label, in plain numbers; one thread observes."""

    def __init__(self, name: str, doc: str, label: str = "", edges: tuple[float, ...] = _SECONDS) -> None:
        self._name, self._doc, self._labels = name, doc, [label] if label else []
        self._edges, self._names = edges, [*(f"{edge}" for edge in edges), "+Inf"]
        self._counts: dict[str, list[float]] = {}  # by label: a count per bucket, then the sum of seconds

    def observe(self, seconds: float, label: str = "") -> None:
        counts = self._counts.get(label)
        if counts is None:
            counts = self._counts[label] = [0] * len(self._names) + [0.0]
        counts[bisect_left(self._edges, seconds)] += 1
        counts[-1] += seconds

    def family(self) -> Metric:
        family = HistogramMetricFamily(self._name, self._doc, labels=self._labels)
        for label, counts in tuple(self._counts.items()):
            buckets = [*zip(self._names, accumulate(counts[:-1]), strict=True)]
            family.add_metric([label] if self._labels else [], buckets, counts[-1])
        return family


class Metrics(Collector):
    """The metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counts: dict[tuple[str, str, int], int] = {}
        self._requests = Histogram("oddsengine_request_seconds", "Time from headers to answer", "route")
        self._streams = Histogram(
            "oddsengine_stream_seconds", "How long streams that ended were open", edges=_STREAM_SECONDS
        )
        self.lag = Histogram("oddsengine_event_loop_lag_seconds", "How late the event loop runs what is due")
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def answered(self, route: str, method: str, status: int, spent: float, *, stream: bool = False) -> None:
        """Count one request; the duration of a stream is not a response time."""
        key = route, method if method in _METHODS else "other", status
        self._counts[key] = self._counts.get(key, 0) + 1
        if stream:
            self._streams.observe(spent)
        else:
            self._requests.observe(spent, route)

    def collect(self) -> Iterable[Metric]:
        counts = CounterMetricFamily("oddsengine_requests", "Requests answered", labels=["route", "method", "status"])
        for (route, method, status), count in tuple(self._counts.items()):
            counts.add_metric([route, method, str(status)], count)
        yield counts
        for histogram in (self._requests, self._streams, self.lag):
            yield histogram.family()

    def add(self, collector: Collector) -> None:
        """Add a collector, which is called each time metrics are read."""
        self.registry.register(collector)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def allowed(authorization: str, token: str) -> bool:
    return hmac.compare_digest(authorization.encode("utf-8", "replace"), f"Bearer {token}".encode())


class Listener:
    """A separate port for metrics, served by threads, so that it responds even if the event loop does not.

    With a token, only requests with the token are accepted. Raises `OSError` if the port is not available.
    """

    def __init__(self, metrics: Metrics, host: str, port: int, token: str) -> None:
        self._metrics, self._token = metrics, token
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        server = type("Server", (_Server,), {"address_family": family})
        self._server: WSGIServer = server((host, port), _Handler)
        self._server.set_app(self._answer)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        if self._token and not allowed(environ.get("HTTP_AUTHORIZATION", ""), self._token):
            start("401 Unauthorized", [("content-type", "text/plain"), ("www-authenticate", "Bearer")])
            return [UNAUTHORIZED.encode() + b"\n"]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or environ["PATH_INFO"] not in ("/", "/metrics"):
            start("404 Not Found", [("content-type", "text/plain")])
            return [b"metrics are at /metrics\n"]
        start("200 OK", [("content-type", CONTENT_TYPE), ("cache-control", "no-store")])
        return [self._metrics.text()]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


class _Handler(WSGIRequestHandler):
    timeout = _READ_S

    def log_message(self, *_: Any) -> None:
        """Write nothing: the log is JSON."""
