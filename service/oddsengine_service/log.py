"""Log of a node: one JSON object per line, written by its own thread, so that no request waits for a disk.

No line contains a query string, or more of a key than its id; a complete key in a path or traceback is masked.
"""

import atexit
import logging
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO

import msgspec

from oddsengine_service.problems import masked
from oddsengine_service.tiers import Caller

_encode = msgspec.json.Encoder().encode_lines
_EVERY = 0.2  # seconds


class _RequestLine(msgspec.Struct, gc=False, frozen=True):
    """The log line of a request."""

    at: str
    event: str
    id: str
    method: str
    route: str
    path: str
    status: int
    ms: float
    key: str
    account: str
    address: str


class Log:
    """Writes lines to a stream; `quiet` omits requests without a server error."""

    def __init__(self, out: TextIO | None = None, *, quiet: bool = False) -> None:
        self._out = sys.stderr if out is None else out
        self._quiet = quiet
        self._lines: deque[dict[str, Any] | tuple[Any, ...]] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def event(self, event: str, **facts: Any) -> None:
        self._lines.append({"at": time.time(), "event": event, **facts})

    def request(
        self, ident: bytes, method: str, route: str, path: str, status: int, spent: float, caller: Caller, address: str
    ) -> None:
        """Log a request, without the query string of its path."""
        if self._quiet and status < 500:
            return
        self._lines.append((time.time(), ident, method, route, path, status, spent, caller, address))

    def refused(self, status: int, error: str, address: str) -> None:
        """Log a request that was refused before it was parsed."""
        if not self._quiet:
            self.event("refused", status=status, error=error, address=address)

    def failure(self, ident: bytes, path: str, error: BaseException) -> None:
        trace = "".join(traceback.format_exception(error))
        self.event("failure", id=ident.decode(), path=path[:200], error=type(error).__name__, trace=trace)

    @contextmanager
    def forwarded(self, name: str, event: str = "server", level: int = logging.WARNING) -> Iterator[None]:
        """Forward records of a standard logger, from a level on, as lines of one event."""
        logger, handler = logging.getLogger(name), _Forwarder(self, event, level)
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(min(level, logger.getEffectiveLevel()))
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)

    def flush(self) -> None:
        with self._lock:
            lines: list[Any] = []
            text, waiting = "", self._lines
            while waiting:
                line = waiting.popleft()
                if isinstance(line, tuple):
                    lines.append(_request_line(*line))
                else:
                    line["at"] = _moment(line["at"])
                    text += _text(lines) + masked(_text([line]))
                    lines = []
            if (text := text + _text(lines)) and not self._out.closed:  # if a standard stream was replaced
                self._out.write(text)
                self._out.flush()

    def close(self) -> None:
        self._ended = True
        self._wake.set()
        self.flush()
        atexit.unregister(self.close)

    def _run(self) -> None:
        while not self._ended:
            self._wake.wait(_EVERY)
            self.flush()


def _request_line(
    at: float, ident: bytes, method: str, route: str, path: str, status: int, spent: float, caller: Caller, address: str
) -> _RequestLine:  # fmt: skip
    """Format the line of a request; only its path may contain a key."""
    shown = masked(path[:200]) if "oe_" in path else path[:200]
    return _RequestLine(
        _moment(at), "request", ident.decode(), method[:20], route, shown, status, int(spent * 1e6) / 1e3, caller.key,
        caller.account, address,
    )  # fmt: skip


def _text(lines: list[Any]) -> str:
    return _encode(lines).decode("utf-8", "replace")


def _moment(time_: float) -> str:
    return _millisecond(int(time_ * 1e3))


@lru_cache(maxsize=4)
def _millisecond(time_: int) -> str:
    return datetime.fromtimestamp(time_ / 1e3, UTC).isoformat(timespec="milliseconds")


class _Forwarder(logging.Handler):
    def __init__(self, log: Log, event: str, level: int) -> None:
        super().__init__(level)
        self._log, self._event = log, event

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record, with its traceback if there is one."""
        trace = record.exc_text  # set if a filter removed secrets
        if trace is None and record.exc_info:
            trace = "".join(traceback.format_exception(record.exc_info[1]))
        key = "error" if record.levelno >= logging.WARNING else "message"
        facts = {key: record.getMessage(), **({} if trace is None else {"trace": trace})}
        if address := getattr(record, "address", ""):
            facts["address"] = address
        self._log.event(self._event, level=record.levelname.lower(), **facts)
