"""What a node logs, as lines, while a server of a test runs."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oddsengine_service.monitoring.log import REQUESTS, ROOT, SERVER, JsonFormatter

logging.getLogger(ROOT).setLevel(logging.INFO)


class Logged:
    """The lines of all nodes of the process, from now until the end; `quiet` is without successful requests."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._out = io.StringIO()
        self._handler = logging.StreamHandler(self._out)
        self._handler.setFormatter(JsonFormatter())
        if quiet:
            self._handler.addFilter(lambda record: record.name != REQUESTS or record.levelno >= logging.ERROR)
        self._begin()

    def _begin(self) -> None:
        for name in (ROOT, SERVER):
            logging.getLogger(name).addHandler(self._handler)

    @property
    def text(self) -> str:
        return self._out.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def end(self) -> None:
        for name in (ROOT, SERVER):
            logging.getLogger(name).removeHandler(self._handler)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without what is logged within a with statement, by another node."""
        self.end()
        try:
            yield
        finally:
            self._begin()


@contextmanager
def logged(*, quiet: bool = False) -> Iterator[Logged]:
    """What is logged within a with statement."""
    found = Logged(quiet=quiet)
    try:
        yield found
    finally:
        found.end()
