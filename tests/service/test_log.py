"""What a node logs: the loggers, their levels, and the lines that `oddsengine serve` writes."""

import io
import json
import logging
import threading
from datetime import datetime
from logging.handlers import QueueHandler, SocketHandler
from queue import SimpleQueue
from typing import Any

import pytest

from oddsengine_service.monitoring import log
from oddsengine_service.monitoring.log import JsonFormatter, written
from oddsengine_service.tiers import Account

KEY = "oe_5c0d21be9f47.Jx3oAbCdEfGh"
CALLER = Account("ann", "pro").caller()._replace(key="oe_5c0d21be9f47")


def ask(status: int = 200, path: str = "/odds") -> None:
    log.request(b"req_1", "GET", "/odds", path, status, 0.0012345, CALLER, "192.0.2.1")


def lines_of(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_lines_have_these_keys_in_this_order() -> None:
    out = io.StringIO()
    with written(out):
        log.event("ready", seconds=1.25)
        ask(path=f"/account/keys/{KEY}")
        log.refused(431, "too long", "192.0.2.2")
        try:
            raise ValueError(KEY)
        except ValueError as error:
            log.failure(b"req_2", "/odds", error)
        logging.getLogger("uvicorn.error").info("not written")
        logging.getLogger("uvicorn.error").warning("bad %s", KEY, extra={"address": "192.0.2.3"})
        logging.getLogger("oddsengine.feeds").info("feeds.a costs %d credits", 3)
    lines = lines_of(out)
    assert all(datetime.fromisoformat(line["at"]).microsecond % 1000 == 0 for line in lines)
    assert all(len(line["at"]) == len("2026-02-07T18:00:00.000+00:00") for line in lines)
    assert [list(line) for line in lines] == [
        ["at", "event", "seconds"],
        ["at", "event", "id", "method", "route", "path", "status", "ms", "key", "account", "address"],
        ["at", "event", "status", "error", "address"],
        ["at", "event", "id", "path", "error", "trace"],
        ["at", "event", "level", "error", "address"],
        ["at", "event", "level", "message"],
    ]
    assert [line["event"] for line in lines] == ["ready", "request", "refused", "failure", "server", "feeds"]
    assert (lines[1]["path"], lines[1]["ms"]) == ("/account/keys/oe_5c0d21be9f47.****", 1.234)
    assert lines[3]["trace"].endswith("ValueError: oe_5c0d21be9f47.****\n")
    assert lines[4]["error"] == "bad oe_5c0d21be9f47.****"


def test_a_record_of_somebody_else_is_formatted() -> None:
    record = logging.makeLogRecord(
        {"name": "app", "levelname": "INFO", "levelno": 20, "msg": "hello", "event": "own", "facts": None}
    )
    line = json.loads(JsonFormatter().format(record))
    assert {**line, "at": ""} == {"at": "", "event": "app", "level": "info", "message": "hello"}


def test_quiet_omits_requests_without_a_server_error() -> None:
    out, loggers = io.StringIO(), [logging.getLogger(name) for name in ("oddsengine", "oddsengine.requests")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    with written(out, quiet=True):
        ask()
        ask(503)
        log.refused(431, "too long", "192.0.2.2")
        log.event("ready")
    assert [line.get("status") for line in lines_of(out)] == [503, None]
    assert [(logger.level, logger.handlers) for logger in loggers] == before


def test_what_was_logged_is_written_after_a_flush_and_at_the_end() -> None:
    """Many threads log at once, and no line is lost."""
    out = io.StringIO()

    def many() -> None:
        for _ in range(2000):
            ask()

    with written(out):
        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        log.event("ready")
        log.flush()
        assert '"event":"ready"' in out.getvalue()
        for thread in threads:
            thread.join()
    assert len(lines_of(out)) == 8001


def test_a_stream_that_cannot_be_written_ends_nothing() -> None:
    class Full(io.StringIO):
        full = True

        def write(self, text: str) -> int:
            if self.full:
                raise OSError(28, "no space left on device")
            return super().write(text)

    out = Full()
    with written(out):
        log.event("lost")
        log.flush()
        out.full = False
        log.event("kept")
    assert [line["event"] for line in lines_of(out)] == ["kept"]


# ---- handlers of others ----


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def logger() -> Any:
    logger = logging.getLogger("oddsengine")
    level, handlers = logger.level, list(logger.handlers)
    logger.setLevel(logging.INFO)
    yield logger
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.mark.parametrize(
    ("style", "form"),
    [
        ("%", "%(levelname)s %(name)s %(message)s %(threadName)s %(process)d %(funcName)s %(asctime)s %(event)s"),
        ("{", "{levelname} {name} {message} {threadName} {process} {funcName} {asctime} {event}"),
        ("$", "$levelname $name $message $threadName $process $funcName $asctime $event"),
    ],
)
def test_a_request_has_what_any_format_asks_for(logger: logging.Logger, style: Any, form: str) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter(form, style=style))
    logger.addHandler(handler)
    ask(path=f"/{KEY}")
    words = out.getvalue().split()
    assert words[:5] == ["INFO", "oddsengine.requests", "GET", "/oe_5c0d21be9f47.****", "200"]
    assert (words[5], words[-1]) == (threading.current_thread().name, "request")


def test_a_request_passes_through_queues_and_sockets(logger: logging.Logger) -> None:
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    logger.addHandler(QueueHandler(records))
    ask(500)
    record = records.get(timeout=1.0)
    assert (record.levelname, record.getMessage()) == ("ERROR", "GET /odds 500")
    assert json.loads(JsonFormatter().format(record))["key"] == CALLER.key
    kept = Kept()
    logger.addHandler(kept)
    ask()
    sent = SocketHandler("localhost", 1).makePickle(kept.records[0])
    assert b"/odds" in sent
    assert b"oddsengine_service" not in sent.replace(log.__file__.encode(), b""), "it can be read without the package"
    assert json.loads(JsonFormatter().format(kept.records[0]))["account"] == "ann"
    assert kept.records[0].name == "oddsengine.requests"
    with pytest.raises(AttributeError):
        kept.records[0].nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_traceback_has_no_key_in_any_handler(logger: logging.Logger) -> None:
    out = io.StringIO()
    logger.addHandler(logging.StreamHandler(out))
    try:
        raise ValueError(KEY)
    except ValueError as error:
        log.failure(b"req_2", f"/{KEY}", error)
    log.event("failing", logging.WARNING, what=KEY)
    assert "ValueError: oe_5c0d21be9f47.****" in out.getvalue()
    assert KEY not in out.getvalue()


def test_nothing_is_made_for_nobody(logger: logging.Logger) -> None:
    kept = Kept()
    logger.addHandler(kept)
    logger.setLevel(logging.WARNING)
    ask()
    log.event("ready")
    assert not kept.records
    ask(500)
    log.event("failing", logging.WARNING, what="bets", error="locked")
    assert [record.getMessage() for record in kept.records] == ["GET /odds 500", "failing: what=bets error=locked"]
    assert kept.records[1].funcName == "test_nothing_is_made_for_nobody"
