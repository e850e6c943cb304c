"""Logging of a node, by the loggers of the standard library.

| logger | records |
| --- | --- |
| `oddsengine.node` | events and failures of the node |
| `oddsengine.requests` | each request, and those that are refused before they are parsed |
| `oddsengine.feeds` | messages of feeds |

Records of the first two have the attributes `event`, a name, and `facts`, a dict; their messages contain both. None
contains a query string, or more of a key than its id; a complete key in a path or traceback is masked.

Nothing here adds a handler by itself. `oddsengine serve` runs within `written`, which writes JSON lines.
"""

import contextlib
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Any, TextIO

import msgspec

from oddsengine_service.errors import masked
from oddsengine_service.tiers import Caller

ROOT, REQUESTS, SERVER = "oddsengine", "oddsengine.requests", "uvicorn.error"
_node, _requests = logging.getLogger("oddsengine.node"), logging.getLogger(REQUESTS)
_encode = msgspec.json.Encoder(enc_hook=str).encode
_EVENTS = {SERVER: "server", "oddsengine.feeds": "feeds"}  # names of the lines of other loggers
_EVERY = 0.2  # seconds between two writes
_MOST_LINES = 5000  # of one write
_FLUSH_S = 10.0


# ---- what a node logs ----


def event(name: str, level: int = logging.INFO, /, **facts: Any) -> None:
    _log(_node, level, name, facts)


def failure(ident: bytes, path: str, error: BaseException) -> None:
    """Log an internal error with its traceback."""
    facts = {"id": ident.decode(), "path": path[:200], "error": type(error).__name__}
    _log(_node, logging.ERROR, "failure", facts, error)


def refused(status: int, error: str, address: str) -> None:
    """Log a request that was refused before it was parsed."""
    _log(_requests, logging.WARNING, "refused", {"status": status, "error": error, "address": address})


def request(
    ident: bytes, method: str, route: str, path: str, status: int, spent: float, caller: Caller, address: str
) -> None:
    """Log a request, without the query string of its path; its level is ERROR after a server error, else INFO."""
    level = logging.ERROR if status >= 500 else logging.INFO
    if not _requests.isEnabledFor(level):
        return
    _requests.handle(_RequestRecord(level, (ident, method, route, path, status, spent, caller, address)))


class _RequestRecord(logging.LogRecord):
    """The record of a request; what `JsonFormatter` does not need is there once a handler asks for it.

    Made like this, and without a search for the caller, it takes a fifth of the time of `Logger.info`.
    """

    event, exc_text = "request", None

    def __init__(self, level: int, given: tuple[bytes, str, str, str, int, float, Caller, str]) -> None:
        self.created, self.levelno, self._given = time.time(), level, given

    @property
    def facts(self) -> dict[str, Any]:
        given = self.__dict__.get("_given")
        if given is None:
            return self.__dict__["facts"]  # type: ignore[no-any-return]
        ident, method, route, path, status, spent, caller, address = given
        return {
            "id": ident.decode(), "method": method[:20], "route": route,
            "path": masked(path[:200]) if "oe_" in path else path[:200], "status": status, "ms": int(spent * 1e6) / 1e3,
            "key": caller.key, "account": caller.account, "address": address,
        }  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        """Complete the record; formatters first ask for its message, which is not there before."""
        if name.startswith("_") or "msg" in self.__dict__:
            raise AttributeError(name)
        text = "%(method)s %(path)s %(status)d"
        record = logging.LogRecord(REQUESTS, self.levelno, __file__, 0, text, None, None, "request")
        record.relativeCreated -= (record.created - self.created) * 1e3
        record.created, record.msecs = self.created, self.created % 1.0 * 1e3
        facts = self.facts
        self.__dict__.update(record.__dict__, args=facts, facts=facts, event=self.event)
        self.__dict__.pop("_given", None)  # other processes may not have these types; another thread may be first
        return getattr(self, name)


def _log(
    logger: logging.Logger, level: int, name: str, facts: dict[str, Any], error: BaseException | None = None
) -> None:
    if not logger.isEnabledFor(level):
        return
    facts = {key: masked(value) if isinstance(value, str) else value for key, value in facts.items()}
    text = " ".join([f"{name}:", *(f"{key}={value}" for key, value in facts.items())]) if facts else name
    logger.log(level, text, exc_info=error, stacklevel=3, extra={"event": name, "facts": facts})


def _mask_trace(record: logging.LogRecord) -> bool:
    """Format the traceback of a record, without keys, for all handlers."""
    if record.exc_info:
        record.exc_text = masked("".join(traceback.format_exception(record.exc_info[1])))
    return True


_node.addFilter(_mask_trace)


# ---- how it is written ----


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line; records of any logger can be formatted."""

    def format(self, record: logging.LogRecord) -> str:
        at, trace = _millisecond(int(record.created * 1e3)), record.exc_text
        name: str = getattr(record, "event", "")
        facts: Any = getattr(record, "facts", None)
        ours = name and isinstance(facts, dict)  # without keys already
        if ours and trace is None:
            return _text({"at": at, "event": name, **facts})
        if trace is None and record.exc_info:
            trace = "".join(traceback.format_exception(record.exc_info[1]))
        if ours:
            line = {"at": at, "event": name, **facts}
        else:
            key = "error" if record.levelno >= logging.WARNING else "message"
            name = _EVENTS.get(record.name, record.name)
            line = {"at": at, "event": name, "level": record.levelname.lower(), key: record.getMessage()}
        if trace is not None:
            line["trace"] = trace
        if not ours and (address := getattr(record, "address", "")):
            line["address"] = address
        return masked(_text(line))


def _text(line: dict[str, Any]) -> str:
    return _encode(line).decode("utf-8", "replace")


@lru_cache(maxsize=4)
def _millisecond(time_: int) -> str:
    return datetime.fromtimestamp(time_ / 1e3, UTC).isoformat(timespec="milliseconds")


@contextmanager
def written(out: TextIO | None = None, *, quiet: bool = False) -> Iterator[None]:
    """Write the records of a node, and warnings of its server, as JSON lines within a with statement.

    They are written to standard error by a thread, so that no request waits for a disk. `quiet` omits requests without
    a server error.
    """
    handler = _Queue(sys.stderr if out is None else out)
    levels = {ROOT: logging.INFO, SERVER: logging.WARNING, REQUESTS: logging.ERROR if quiet else logging.NOTSET}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    for name in (ROOT, SERVER):
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name in (ROOT, SERVER):
            logging.getLogger(name).removeHandler(handler)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
        handler.close()


def flush() -> None:
    """Wait until what was logged is written."""
    for handler in logging.getLogger(ROOT).handlers:
        handler.flush()


class _Queue(QueueHandler):
    """Passes records to the thread that writes them; `logging` flushes it at the end of the process."""

    def __init__(self, out: TextIO) -> None:
        self._records: SimpleQueue[Any] = SimpleQueue()
        super().__init__(self._records)
        self._writer = _Writer(self._records, _Lines(out))
        self._writer.start()
        self._ended = False

    def handle(self, record: logging.LogRecord) -> bool:
        """Put a record into the queue, which has its own lock; filters see what others log, and no requests."""
        if self.filters and type(record) is logging.LogRecord:
            self.filter(record)
        self._records.put(record)
        return True

    def flush(self) -> None:
        if not self._ended:
            done = threading.Event()
            self._records.put(done)
            self._writer.wake.set()
            done.wait(_FLUSH_S)

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._writer.wake.set()
            self._writer.stop()
        super().close()


class _Writer(QueueListener):
    """The thread that formats records, and writes many lines at once."""

    def __init__(self, records: SimpleQueue[Any], lines: "_Lines") -> None:
        super().__init__(records, lines)
        self._records, self._lines = records, lines
        self.wake = threading.Event()

    def dequeue(self, block: bool) -> Any:  # noqa: FBT001  as in the standard library
        if self._records.empty():
            self._lines.flush()
            self.wake.wait(_EVERY)
            self.wake.clear()
        return self._records.get(block)

    def handle(self, record: Any) -> None:
        """Format a record, and those that wait behind it."""
        records, lines = self._records, self._lines
        while True:
            if isinstance(record, threading.Event):
                lines.flush()
                record.set()
            else:
                lines.emit(record)
            if records.empty():
                return
            if (record := records.get()) is None:  # the end
                records.put(None)
                return

    def stop(self) -> None:
        super().stop()
        self._lines.flush()


class _Lines(logging.StreamHandler[TextIO]):
    """Writes lines when it is flushed; used by one thread at a time."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self.setFormatter(JsonFormatter())
        self._waiting: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.append(self.format(record))
        except Exception:
            self.handleError(record)
        if len(self._waiting) >= _MOST_LINES:
            self.flush()

    def flush(self) -> None:
        lines, self._waiting = self._waiting, []
        if lines and not self.stream.closed:  # if a standard stream was replaced
            with contextlib.suppress(OSError, ValueError):  # nobody can be told
                self.stream.write("\n".join([*lines, ""]))
                self.stream.flush()
