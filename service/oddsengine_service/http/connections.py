"""Limits on open connections, in total and per address, and on responses that are not read.

Without a limit, an address that opens idle connections could use up all file descriptors of the process. Each address
(for IPv6, each /64 network) gets a quarter of the node's capacity, or `[service] connections`. Proxies in `[service]
trusted` serve many clients and are only subject to the total.

A response stays in memory until its client has read it. A connection whose client reads nothing for `[service] stalled`
seconds is closed. An address, or an account, whose clients have not read `[service] unread_bytes` loses connections,
those that have read nothing for longest first; one always remains. Streams have limits of their own.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from oddsengine_service.accounts.limits import network
from oddsengine_service.errors import Problem
from oddsengine_service.monitoring import log
from oddsengine_service.stream.connection import unsent

STALLED_S, UNREAD_BYTES = 30.0, 32 << 20
CHECK_S = 0.5  # between two checks of responses
_RESERVED = 64  # file descriptors for everything else: databases, tapes, sources
_LOG_S = 10.0  # seconds between two log lines about refused connections


class ResponseWriter(Protocol):
    """A connection that responses are written to."""

    transport: Any
    left: int  # bytes that the client had not received at the last check; -1 after a response was written
    since: float  # when it last received something, or a response was written

    @property
    def payers(self) -> tuple[str, str]:
        """Address and account of the last response."""


class Connections:
    """Counts open connections and unread responses; used only in the event loop."""

    def __init__(
        self, each: int = 0, trusted: Iterable[str] = (), files: int = 0,
        clock: Callable[[], float] = time.monotonic, *, stalled: float = STALLED_S, unread: int = UNREAD_BYTES,
    ) -> None:  # fmt: skip
        files = files or _files()
        self.most = max(8, files - files // 8 - _RESERVED)
        self.each = min(each or max(4, self.most // 4), self.most)
        self._trusted, self._clock = frozenset(trusted), clock
        self._open: dict[str, int] = {}
        self._total = 0
        self._stalled, self._unread = stalled, unread
        self.written: dict[ResponseWriter, None] = {}  # connections that may not have read a response, oldest first
        self._logged: dict[str, tuple[int, float]] = {}  # by event: how often since it was logged, and when that was

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

    def check(self) -> None:
        """Close connections whose responses are not read; call it every `CHECK_S` seconds."""
        now, unread = self._clock(), list[tuple[float, int, ResponseWriter]]()
        for writer in tuple(self.written):
            size = writer.transport.get_write_buffer_size()
            if not size:
                self.written.pop(writer, None)
                continue
            left = unsent(writer.transport)
            if writer.left < 0 or left < writer.left:
                writer.since = now
            writer.left = left
            if now - writer.since > self._stalled:
                self._cut(writer, f"nothing read for {self._stalled:g} s")
            else:
                unread.append((writer.since, size, writer))
        if sum(size for _, size, _ in unread) > self._unread:
            self._shed(unread)

    def _shed(self, unread: list[tuple[float, int, ResponseWriter]]) -> None:
        """Close connections of those whose clients have too much left to read, the longest stalled first."""
        payers: dict[tuple[str, str], list[tuple[float, int, ResponseWriter]]] = {}
        for each in sorted(unread, key=lambda each: each[0]):
            address, account = each[2].payers
            if address not in self._trusted:
                payers.setdefault(("address", network(address)), []).append(each)
            if account:
                payers.setdefault(("account", account), []).append(each)
        for (kind, _), theirs in payers.items():
            theirs = [each for each in theirs if each[2] in self.written]  # noqa: PLW2901  not closed for another
            total = sum(size for _, size, _ in theirs)
            for _, size, writer in theirs[:-1]:
                if total <= self._unread:
                    break
                self._cut(writer, f"the {kind} has {total:,} bytes unread")
                total -= size

    def _cut(self, writer: ResponseWriter, reason: str) -> None:
        self.written.pop(writer, None)
        address, account = writer.payers
        self._report("unread response closed", address=address, account=account, reason=reason)
        writer.transport.abort()

    def _refuse(self, address: str, reason: str) -> None:
        self._report("connections refused", address=address, reason=reason)

    def _report(self, event: str, **fields: str) -> None:
        """Log an event, at most once in a while."""
        now = self._clock()
        count, at = self._logged.get(event, (0, -_LOG_S))
        if now - at >= _LOG_S:
            log.event(event, logging.WARNING, **fields, count=count + 1)
            count, at = -1, now
        self._logged[event] = count + 1, at


def _files() -> int:
    if sys.platform == "win32":
        return 8192
    import resource  # noqa: PLC0415  not on every platform

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
