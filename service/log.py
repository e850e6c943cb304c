"""Logs of a node: one JSON object a line, written from a thread of its own, so that no request waits for a disk.

No line holds a query string, or of a key more than its id: a whole one may stand in a path or in a trace.
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

_encode = msgspec.json.Encoder().encode
_EVERY = 0.2  # seconds


class Log:
    """Lines to a stream; `quiet` leaves out those of requests that went well."""

    def __init__(self, out: TextIO | None = None, *, quiet: bool = False) -> None:
        self._out = sys.stderr if out is None else out
        self._quiet = quiet
        self._lines: deque[dict[str, Any]] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def say(self, event: str, **facts: Any) -> None:
        """Log something."""
        self._lines.append({"at": time.time(), "event": event, **facts})

    def answered(
        self, ident: bytes, method: str, route: str, path: str, status: int, spent: float, caller: Caller, address: str
    ) -> None:
        """Log a request; its path without the query."""
        if self._quiet and status < 500:
            return
        self._lines.append(
            {
                "at": time.time(), "event": "request", "id": ident.decode(), "method": method[:20], "route": route,
                "path": path[:200], "status": status, "ms": round(spent * 1000.0, 3), "key": caller.key,
                "account": caller.account, "address": address,
            }
        )  # fmt: skip

    def failure(self, ident: bytes, path: str, error: BaseException) -> None:
        """Log a failure of ours with its trace."""
        trace = "".join(traceback.format_exception(error))
        self.say("failure", id=ident.decode(), path=path[:200], error=type(error).__name__, trace=trace)

    @contextmanager
    def handed(self, name: str, event: str = "server", level: int = logging.WARNING) -> Iterator[None]:
        """Take over what is logged by the standard module, from some level on, as lines of one event."""
        logger, handler = logging.getLogger(name), _Handed(self, event, level)
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(min(level, logger.getEffectiveLevel()))
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            lines = []
            while self._lines:
                line = self._lines.popleft()
                line["at"] = _moment(line["at"])
                lines.append(_encode(line))
            if lines:
                lines.append(b"")
                self._out.write(masked(b"\n".join(lines).decode("utf-8", "replace")))
                self._out.flush()

    def close(self) -> None:
        """Write what waits, and end."""
        self._ended = True
        self._wake.set()
        self.flush()

    def _run(self) -> None:
        while not self._ended:
            self._wake.wait(_EVERY)
            self.flush()


def _moment(time_: float) -> str:
    second = int(time_)
    return f"{_second(second)}.{int((time_ - second) * 1e3):03d}+00:00"


@lru_cache(maxsize=4)
def _second(time_: int) -> str:
    return datetime.fromtimestamp(time_, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class _Handed(logging.Handler):
    """What the standard module logs, as lines of ours."""

    def __init__(self, log: Log, event: str, level: int) -> None:
        super().__init__(level)
        self._log, self._event = log, event

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record; its trace too, if it has one."""
        trace = record.exc_text  # where a filter of secrets made it
        if trace is None and record.exc_info:
            trace = "".join(traceback.format_exception(record.exc_info[1]))
        said = "error" if record.levelno >= logging.WARNING else "said"
        facts = {said: record.getMessage(), **({} if trace is None else {"trace": trace})}
        self._log.say(self._event, level=record.levelname.lower(), **facts)
