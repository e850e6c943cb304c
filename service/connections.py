"""Limits on open connections, in total and per address.

Without a limit, an address that opens idle connections could use up all file descriptors of the process. Each address
(for IPv6, each /64 network) gets a quarter of the node's capacity, or `[service] connections`. Proxies in `[service]
trusted` serve many clients and are only subject to the total.
"""

import sys
import time
from collections.abc import Callable, Iterable

from oddsengine_service.limits import network
from oddsengine_service.log import Log
from oddsengine_service.problems import Problem

_RESERVED = 64  # file descriptors for everything else: databases, tapes, sources
_LOG_S = 10.0  # seconds between two log lines about refused connections


class Connections:
    """Counts open connections; used only in the event loop."""

    def __init__(
        self, log: Log, each: int = 0, trusted: Iterable[str] = (), files: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        files = files or _files()
        self.most = max(8, files - files // 8 - _RESERVED)
        self.each = min(each or max(4, self.most // 4), self.most)
        self._log, self._trusted, self._clock = log, frozenset(trusted), clock
        self._open: dict[str, int] = {}
        self._total = 0
        self._refused, self._logged_at = 0, -_LOG_S

    def enter(self, address: str) -> None:
        """Count a connection; call `leave` when it closes.

        Raises `Problem` 429 if the address has reached its limit; 503 if the node has.
        """
        who = network(address)
        taken = self._open.get(who, 0)
        if address not in self._trusted and taken >= self.each:
            self._refuse(address, f"the address has {taken} connections open")
            raise Problem(429, "rate_limited", f"limit of {taken} connections for this address reached")
        if self._total >= self.most:
            self._refuse(address, f"the node has {self._total} connections open")
            raise Problem(503, "unavailable", "connection limit of the node reached; retry later")
        self._open[who] = taken + 1
        self._total += 1

    def leave(self, address: str) -> None:
        who = network(address)
        self._total -= 1
        if self._open[who] == 1:
            del self._open[who]
        else:
            self._open[who] -= 1

    def _refuse(self, address: str, reason: str) -> None:
        self._refused += 1
        now = self._clock()
        if now - self._logged_at >= _LOG_S:
            self._log.event("connections refused", address=address, reason=reason, count=self._refused)
            self._refused, self._logged_at = 0, now


def _files() -> int:
    if sys.platform == "win32":
        return 8192
    import resource  # noqa: PLC0415  not on every platform

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
