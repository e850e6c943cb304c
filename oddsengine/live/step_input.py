"""The input of a step: what its caller passes, checked and converted to the codes of the board."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from oddsengine.board.event_status import STATUSES
from oddsengine.board.quotes import Quotes, readable
from oddsengine.bounds import excerpt, shortened
from oddsengine.columns import NO_TIME, Words
from oddsengine.tables.timestamps import micros, time_of

_ID = re.compile("[0-9a-f]{16}")
_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def read_now(now: datetime | None, quotes: Quotes, last: int) -> int:
    """The time of a step; `last` is that of the step before."""
    if now is None:
        newest = int(quotes.seen.max()) if quotes.seen.size else int(NO_TIME)
        moment = max(last, newest)
        if moment == NO_TIME:
            raise ValueError("step needs `now`: neither the quotes nor an earlier step have a time")
        return _possible(moment)
    if not isinstance(now, datetime):
        raise ValueError(f"now must be a datetime, got {type(now).__name__} {excerpt(now)}")
    moment = micros(now)
    if moment < last:
        raise ValueError(f"now must not go back: got {now.isoformat()}, the last step was at {_text(last)}")
    return _possible(moment)


def read_removed(removed: Iterable[str]) -> Words:
    """The ids of removed rows."""
    ids = list(_listed("removed", removed))
    for given in ids:
        if not (isinstance(given, str) and _ID.fullmatch(given)):
            raise ValueError(f"removed must be row ids of 16 hexadecimal digits, got {excerpt(given)}")
    return np.array([int(given, 16) for given in ids], np.uint64)


def read_complete(complete: Iterable[str | tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Books and events whose quotes are complete."""
    return [_book_and_event(given) for given in _listed("complete", complete)]


def read_events(events: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, int]]:
    """Notices about events: id, status, start."""
    return [_notice(given) for given in _listed("events", events)]


def _possible(moment: int) -> int:
    if not micros(_FIRST) <= moment <= micros(_LAST):
        raise ValueError(f"now must be from 1900 to 2199, got the year {np.datetime64(moment, 'us').astype('M8[Y]')}")
    return moment


def _text(micro: int) -> str:
    moment = time_of(micro)
    return "the beginning" if moment is None else moment.isoformat()


def _listed(name: str, given: Any) -> Iterable[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list, got {excerpt(given)}")
    return given


def _book_and_event(given: Any) -> tuple[str, str | None]:
    if isinstance(given, str):
        return readable(given), None
    if isinstance(given, Sequence) and len(given) == 2 and isinstance(given[0], str):
        return readable(given[0]), None if given[1] is None else readable(str(given[1]))
    raise ValueError(f"complete must be books or (book, event) pairs, got {excerpt(given)}")


def _notice(given: Mapping[str, Any]) -> tuple[str, str, int]:
    if not isinstance(given, Mapping):
        raise ValueError(f"events must be mappings with event_id and status, got {excerpt(given)}")
    event, status, start = given.get("event_id"), given.get("status"), given.get("event_start_time")
    if not isinstance(event, str) or not event:
        raise ValueError(f"events must have an event_id, got {excerpt(dict(given))}")
    if status not in STATUSES:
        raise ValueError(f"status of {shortened(event)} must be one of {', '.join(STATUSES)}, got {excerpt(status)}")
    if isinstance(start, str):
        start = datetime.fromisoformat(start)
    if not isinstance(start, datetime | None):
        raise ValueError(f"event_start_time of {shortened(event)} must be a datetime, got {excerpt(start)}")
    event = readable(event)
    return event, str(status), int(NO_TIME) if start is None else micros(start)
