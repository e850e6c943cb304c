"""Masks secrets in logs, statuses and files."""

import logging
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MARK = "***"
_NAMES = r"api_?key|app_?key|key|access_?token|token|session(?:_?token)?|secret|password|ssoid"
_QUERY = re.compile(rf"(?i)([?&;](?:{_NAMES})=)[^&#\s'\"]+")
_FIELD = re.compile(rf"(?i)([\"'](?:x-)?(?:{_NAMES})[\"']\s*:\s*[\"'])[^\"']*")
_USER = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/@\s]+(?=@)")
_LOGGERS = ("oddsengine.feeds", "httpx2", "httpcore2", "httpcore2.connection", "httpcore2.http11", "httpcore2.proxy")
_CUT = "..."  # as `bounds.excerpt` writes it
_LEAST = 4  # shorter secrets would mask ordinary text


class Secrets:
    """Secrets to mask."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self.add(*values)

    def add(self, *values: str) -> None:
        self._values.update(value for value in values if len(value) >= _LEAST)

    def values(self) -> tuple[str, ...]:
        """The known secrets."""
        return tuple(sorted(self._values))

    def clean(self, text: str) -> str:
        """Mask secrets in a text: known ones, and values in places where secrets occur.

        Of a known one also the beginning, where a value was cut for a message.

        Examples
        --------
        >>> Secrets(["pass-word"]).clean("got 'pass-word' and 'pass-w...'")
        "got '***' and '***...'"
        """
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, MARK)
            for end in range(len(value) - 1, _LEAST - 1, -1) if _CUT in text else ():
                text = text.replace(value[:end] + _CUT, MARK + _CUT)
        for pattern in (_QUERY, _FIELD, _USER):
            text = pattern.sub(rf"\g<1>{MARK}", text)
        return text

    def clean_bytes(self, body: bytes) -> bytes:
        """Mask secrets in a body; all other bytes are unchanged."""
        return self.clean(body.decode("latin-1")).encode("latin-1", "replace")

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask secrets in a log record; the HTTP client logs whole URLs."""
        try:
            text = record.getMessage()
        except Exception:  # arguments that do not fit
            text = f"{record.msg} {record.args}"
        record.args, record.msg = None, self.clean(text)
        if record.exc_info:
            record.exc_text = self.clean("".join(traceback.format_exception(*record.exc_info)))
        return True

    @contextmanager
    def out_of_logs(self) -> Iterator[None]:
        """Mask secrets in our log and the HTTP client's within a with statement, and in what other loggers pass on.

        A record meets the filters of its own logger and of the handlers that it comes to, and no other ones. The
        handlers are those of the beginning.
        """
        filtered: list[logging.Filterer] = [logging.getLogger(name) for name in _LOGGERS]
        filtered += [*logging.getLogger().handlers, *logging.getLogger("oddsengine").handlers]
        filtered += [logging.lastResort] if logging.lastResort is not None else []
        for each in filtered:
            each.addFilter(self.filter)
        try:
            yield
        finally:
            for each in filtered:
                each.removeFilter(self.filter)
