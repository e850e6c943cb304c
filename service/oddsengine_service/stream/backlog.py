"""Changes that a slow reader missed, merged by row: only the last of several changes to a row is sent.

A reader that does not keep up gets no further events; they are merged here. Once it has received everything pending, it
is sent the merged rows and is up to date. Two facts matter about a row: whether the reader has it, and its current
value. The first change tells the former: a row that changed or was removed was there, and a complete row says whether
it is new. The last change tells the latter. A delta has every field that can change, so a later one replaces an earlier
one; merged into a complete row, it replaces fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from oddsengine_service.stream.events import (
    GAMES,
    ODDS,
    SEEN,
    SSE,
    StreamEvent,
    Wire,
    bodies,
    forgotten,
    played,
)  # fmt: skip

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode
ENTRY = 250  # overhead of a row, bytes


class _BacklogRow:
    """One row: its current value, and whether the reader has an older version."""

    __slots__ = ("book", "delta", "held", "size", "whole")

    def __init__(self, *, held: bool) -> None:
        self.held = held
        self.book = ""
        self.whole: Any = None
        self.delta: Any = None
        self.size = 0

    @property
    def now(self) -> Any:
        """The complete row."""
        if self.delta is None:
            return self.whole
        row = _decode(self.whole) | _decode(self.delta)
        if "odds_probability" in row:
            row["probability"] = row["odds_probability"]
        return msgspec.Raw(_encode(row))


class Backlog:
    """Changes that one reader has not received yet."""

    __slots__ = ("_rows", "_total", "_wire", "events", "size")

    def __init__(self, wire: Wire = SSE) -> None:
        self._wire = wire
        self._rows: dict[str, dict[str, _BacklogRow]] = {}
        self._total = 0
        self.events = 0  # number of merged events
        self.size = 0  # approximate size, bytes

    def __bool__(self) -> bool:
        return bool(self._rows)

    def merge(self, some: Iterable[StreamEvent]) -> None:
        """Merge events."""
        for event in some:
            if event.family == SEEN:
                continue
            self.events += 1
            family = self._rows.setdefault(event.family, {})
            if event.family == ODDS:
                self._total = event.total
            if event.rows is None:
                for id_ in event.ids:
                    self._leave(family, id_, event.book)
            else:
                self._change(family, event)

    def _change(self, family: dict[str, _BacklogRow], event: StreamEvent) -> None:
        assert event.rows is not None
        size = len(event.body) // len(event.ids) + ENTRY
        for at, (id_, value) in enumerate(zip(event.ids, event.rows, strict=True)):
            row = family.get(id_)
            if row is None:
                row = family[id_] = _BacklogRow(held=event.partly or not event.fresh[at])
            if event.partly:
                row.delta, row.book = value, event.book
            else:
                row.whole, row.delta, row.book = value, None, event.book
            self.size += size - row.size
            row.size = size

    def _leave(self, family: dict[str, _BacklogRow], id_: str, book: str) -> None:
        row = family.get(id_)
        if row is None:
            row = family[id_] = _BacklogRow(held=True)
        self.size -= row.size
        if not row.held:  # added and removed in the meantime
            del family[id_]
            return
        row.whole = row.delta = None
        row.book, row.size = book, ENTRY
        self.size += ENTRY

    def frames(self) -> list[bytes]:
        """Events with all merged rows."""
        out: list[StreamEvent] = []
        for family, rows in self._rows.items():
            if family == ODDS:
                out += self._prices(rows)
                continue
            gone = [id_ for id_, row in rows.items() if row.whole is None]
            here = {id_: row for id_, row in rows.items() if row.whole is not None}
            fresh = [not row.held for row in here.values()]
            if family == GAMES:
                out += [*played({id_: row.whole for id_, row in here.items()}, fresh), *forgotten(gone)]
            else:
                wire = self._wire
                out += [*wire.expired(family, gone), *wire.detected(family, list(here), _wholes(here), fresh)]
        return bodies(out)

    def _prices(self, rows: Mapping[str, _BacklogRow]) -> list[StreamEvent]:
        gone: dict[str, list[str]] = {}
        deltas: dict[str, list[str]] = {}
        whole: dict[str, _BacklogRow] = {}
        for id_, row in rows.items():
            if row.whole is not None:
                whole[id_] = row
            elif row.delta is not None:
                deltas.setdefault(row.book, []).append(id_)
            else:
                gone.setdefault(row.book, []).append(id_)
        out: list[StreamEvent] = []
        for book in sorted(gone):
            out += self._wire.removed(book, gone[book], self._total)
        fresh = [not row.held for row in whole.values()]
        out += self._wire.added(list(whole), _wholes(whole), fresh, self._total, [row.book for row in whole.values()])
        for book in sorted(deltas):
            out += self._wire.moved(book, deltas[book], [rows[id_].delta for id_ in deltas[book]], self._total)
        return out


def _wholes(rows: Mapping[str, _BacklogRow]) -> Sequence[Any]:
    return [row.now for row in rows.values()]
