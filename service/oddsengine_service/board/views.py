"""Views of callers, by books and thresholds, retained for later requests.

A view costs the engine a little in every step, and memory. So a node keeps a limited number, of which one account has a
share, and closes those that nobody reads. A view is read once per update, and then filtered, sorted and encoded without
the engine.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import polars as pl

from oddsengine import View, catalog
from oddsengine.columns import NO_TIME, Bools, Floats, Longs
from oddsengine.live.delayed import DelayedBoard, NotYetError
from oddsengine.live.engine import Engine
from oddsengine.query.values import league_id, sport_id
from oddsengine_service.board.ended import EndedRows
from oddsengine_service.errors import Problem
from oddsengine_service.wire.contract import stateless
from oddsengine_service.wire.encoded_columns import RowEncoding

_MOST_SELECTIONS = 16  # of a table
MOST_VIEWS = 32  # of a node
SHARE = 8  # for views that only one account reads
IDLE_S = 30.0  # after this time without a reader, a view is closed
Board = Engine | DelayedBoard
Value = TypeVar("Value")
_IdRow = tuple[str, msgspec.Raw]


class CodedColumn(NamedTuple):
    """A column as distinct values and their codes."""

    values: list[Any]  # sorted
    codes: Longs

    def where(self, meant: Sequence[bool]) -> Bools:
        """Whether each row has one of the values."""
        return np.array(meant, bool)[self.codes] if self.values else np.zeros(0, bool)

    def counts(self, at: Longs) -> dict[str, int]:
        """The number of rows per value, most frequent first."""
        found = np.bincount(self.codes[at], minlength=len(self.values))
        order = np.argsort(-found, kind="stable")[: np.count_nonzero(found)]
        return dict(zip([self.values[code] or "" for code in order.tolist()], found[order].tolist(), strict=True))


class RowSelection(NamedTuple):
    """Rows of a table in an order, and what was computed from them."""

    places: Longs
    made: dict[str, Any]


class OpportunityTable:
    """Opportunities of one kind: columns for filters and sort orders, and rows encoded on first use.

    `sent` is called with every row that is encoded, and its id.
    """

    def __init__(
        self, frame: pl.DataFrame, encoding: RowEncoding, sent: Callable[[list[_IdRow]], None] = lambda _: None
    ) -> None:
        self.frame, self._sent = frame, sent
        self.size = frame.height
        self._encoding = encoding
        self._made: dict[Hashable, Any] = {}
        self._encoded: dict[int, msgspec.Raw] = {}
        self._stateless: set[int] = set()  # of these: `stateless` rows
        self._selections: dict[Hashable, RowSelection] = {}

    def selection(self, matched: Bools | None, sort: str, order: Callable[[], Longs]) -> "RowSelection":
        """The rows that match, in an order; requests with other limits often have the same rows."""
        key = None if matched is None else matched.tobytes(), sort
        selection = self._selections.get(key)
        if selection is None:
            if len(self._selections) >= _MOST_SELECTIONS:
                self._selections = {}
            selection = self._selections[key] = RowSelection(order(), {})
        return selection

    def cached(self, name: Hashable, make: Callable[[], Value]) -> Value:
        """Compute a value once."""
        found: Value | None = self._made.get(name)
        if found is None:
            found = self._made[name] = make()
        return found

    def column(self, name: str) -> pl.Series:
        """A column; `a.b` is a field of one."""
        outer, _, inner = name.partition(".")
        found = self.frame[outer]
        for part in inner.split(".") if inner else ():
            found = found.struct.field(part)
        return found

    def coded(self, *names: str) -> CodedColumn:
        """One column, or several combined."""
        return self.cached(names, lambda: _coded([self.column(name).to_list() for name in names]))

    def numbers(self, name: str) -> Floats:
        """A column of numbers, nan if missing."""
        return self.cached(("#", name), lambda: self.column(name).cast(pl.Float64).fill_null(np.nan).to_numpy())

    def flags(self, name: str) -> Bools:
        """A column of flags."""
        return self.cached(("?", name), lambda: self.column(name).fill_null(False).to_numpy())  # noqa: FBT003

    def times(self, name: str) -> Longs:
        """A column of times in microseconds, NO_TIME if missing."""
        return self.cached(("@", name), lambda: self.column(name).dt.epoch("us").fill_null(int(NO_TIME)).to_numpy())

    def order(self, name: str, key: Callable[[], Floats], *, falling: bool = False) -> Longs:
        """Indices in order of a key; the sort is stable, with nan last."""

        def sort() -> Longs:
            by = key()
            return np.argsort(-by if falling else by, kind="stable")

        return self.cached(("order", name, falling), sort)

    def encoded_rows(self, at: Sequence[int]) -> list[msgspec.Raw]:
        """Encoded rows."""
        encoded = self._encoded
        missing = [row for row in at if row not in encoded]
        if missing:
            rows = self._encoding.raw(self.frame[missing])
            self._stateless.update(place for place, row in zip(missing, rows, strict=True) if stateless(row))
            encoded.update(zip(missing, rows, strict=True))
            self._sent(list(zip(self.frame["id"][missing].to_list(), rows, strict=True)))
        return [encoded[row] for row in at]

    def stateless(self, at: Sequence[int]) -> set[int]:
        """Which of some encoded rows are `stateless`."""
        return self._stateless.intersection(at)

    def place_of(self, ident: str) -> int | None:
        """The index of the row with an id."""
        places = self.cached("places", lambda: {each: at for at, each in enumerate(self.frame["id"].to_list())})
        return places.get(ident)

    def computed(self, expression: pl.Expr) -> Floats:
        """Numbers computed by an expression over the columns."""
        return self.cached(id(expression), lambda: self.frame.select(expression).to_series().to_numpy())


def _coded(columns: list[list[Any]]) -> CodedColumn:
    rows = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
    index: dict[Any, int] = {}
    codes = np.array([index.setdefault(value, len(index)) for value in rows], np.int64)
    values = sorted(
        index,
        key=lambda value: [(part is not None, part) for part in (value if isinstance(value, tuple) else (value,))],
    )
    place = np.empty(len(values), np.int64)
    place[[index[value] for value in values]] = np.arange(len(values))
    return CodedColumn(values, place[codes] if values else codes)


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    """Sports, leagues and books with the ids used for prices."""
    places = _coded([frame["sport"].to_list(), frame["league"].to_list()])
    sports = [sport_id(sport) for sport, _ in places.values]
    leagues = [league_id(league, sport) if league else "" for sport, league in places.values]
    books = {}
    if "sportsbook" in frame.columns:
        named = _coded([frame["sportsbook"].to_list()])
        ids = pl.Series([catalog.book(book).id for book in named.values], dtype=pl.String)
        books["sportsbook"] = ids.gather(named.codes)
    return frame.with_columns(
        **books,
        sport=pl.Series(sports, dtype=pl.String).gather(places.codes),
        league=pl.Series(leagues, dtype=pl.String).gather(places.codes),
    )


@contextmanager
def _not_ready() -> Iterator[None]:
    """A board of the past that does not have a view yet is not ready."""
    try:
        yield
    except NotYetError as error:
        raise Problem(503, "not_ready", str(error), retry_after=error.seconds) from None


class _SentRows:
    """The last rows that lists of a view sent, of opportunities that were open when it was last listed."""

    def __init__(self, board: Board, ended: EndedRows) -> None:
        self._board, self._ended = board, ended
        self._rows: dict[str, dict[str, msgspec.Raw]] = {}  # by kind and id

    def _of(self, kind: str) -> dict[str, msgspec.Raw]:
        return self._rows.setdefault(kind, {})

    def row(self, board: object, kind: str, ident: str) -> msgspec.Raw | None:
        return self._of(kind).get(ident) if board is self._board else None

    def add(self, kind: str, rows: Sequence[_IdRow]) -> None:
        """Take rows that a list sends."""
        self._of(kind).update(rows)
        self._ended.forget(self._board, kind, [ident for ident, _ in rows])

    def remember(self, kind: str, rows: Sequence[_IdRow]) -> None:
        """Remember rows that were sent by themselves as if they had ended: no list will see when they do."""
        self._ended.add(self._board, kind, rows)

    def end(self, kind: str, still: pl.Series | None = None) -> None:
        """Remember as ended what is not among some ids that are open still."""
        rows = self._of(kind)
        if expired := set(rows).difference(() if still is None or not rows else still.to_list()):
            last = [(ident, raw) for ident in expired if (raw := rows.pop(ident, None)) is not None]
            self._ended.add(self._board, kind, last)

    def close(self) -> None:
        """Remember everything: nobody sees when it ends."""
        for kind in tuple(self._rows):
            self.end(kind)


class OpenRows:
    """The open opportunities of a view at one update."""

    def __init__(self, number: int, now: datetime, view: View, sent: "_SentRows") -> None:
        self.number, self.now, self._view, self._sent = number, now, view, sent
        self._lock = threading.Lock()
        self.tables: dict[str, OpportunityTable] = {}

    def table(self, kind: str, encoding: RowEncoding) -> OpportunityTable:
        """The opportunities of a kind."""
        table = self.tables.get(kind)
        if table is None:
            with self._lock:  # one thread makes the frame, the others wait for it
                table = self.tables.get(kind)
                if table is None:
                    with _not_ready():
                        frame = self._view.opportunities([kind], counted=False)[kind]
                    self._sent.end(kind, frame["id"])
                    table = self.tables[kind] = OpportunityTable(_named(frame), encoding, partial(self._sent.add, kind))
        return table

    def one(self, kind: str, encoding: RowEncoding, ident: str) -> tuple[OpportunityTable, int] | None:
        """A table with an opportunity, and its index there; None if it is not open."""
        table = self.tables.get(kind)
        if table is None:  # one row costs less than all
            word = np.array([int(ident[-16:], 16)], np.uint64)
            with _not_ready():
                frame = self._view.opportunities([kind], ids=word)[kind]
            table = OpportunityTable(_named(frame), encoding, partial(self._sent.remember, kind))
        place = table.place_of(ident)
        return None if place is None else (table, place)


class _ReadView:
    """A view of a caller, and the last result read from it."""

    def __init__(self, account: str, sent: _SentRows) -> None:
        self.account, self.sent = account, sent  # the account that reads it; empty for several
        self.read_at = time.monotonic()
        self.lock = threading.Lock()
        self.view: View | None = None
        self.opened: OpenRows | None = None
        self.closed = False


class Views:
    """The views of a node's callers: a limited number in total and per account."""

    def __init__(
        self, most: int = MOST_VIEWS, share: int = SHARE, idle: float = IDLE_S, *, method: str = "close",
        ended: EndedRows | None = None,
    ) -> None:  # fmt: skip
        self._most, self._share, self._idle, self._method = most, share, idle, method
        self.ended = EndedRows() if ended is None else ended
        self.ended.enter(self)
        self.closed = 0  # how many were closed so far
        self._lock = threading.Lock()
        self._places: OrderedDict[Hashable, _ReadView] = OrderedDict()  # least recently read first

    def __len__(self) -> int:
        return len(self._places)

    def at(self, board: Board, books: frozenset[str] | None, account: str = "", **wanted: Any) -> OpenRows:
        """The open opportunities of the view over some books; `wanted` as for `Engine.view`.

        The default method is that of the node, or power if a reference is given.
        """
        if wanted.get("method") is None:
            wanted["method"] = self._method if wanted.get("sharp") is None else "power"
        key = id(board), books, tuple(sorted(wanted.items()))
        while True:
            with self._lock:
                place = self._places.get(key)
                late = [] if place is not None else self._surplus(account)
                if place is None:
                    place = self._places[key] = _ReadView(account, _SentRows(board, self.ended))
                elif place.account != account:
                    place.account = ""
                place.read_at = time.monotonic()
                self._places.move_to_end(key)
            for old in late:
                self._close(old)
            opened = place.opened
            if opened is not None and opened.number == board.number:
                return opened
            with place.lock:
                if not place.closed:
                    return self._read(place, board, books, wanted)

    def _surplus(self, account: str) -> list[_ReadView]:
        """Close a view of an account that has reached its share, else the oldest of all, to make room for another."""
        mine = [key for key, place in self._places.items() if account and place.account == account]
        surplus = mine[: max(0, len(mine) + 1 - self._share)]
        others = [key for key in self._places if key not in surplus]
        surplus += others[: max(0, len(others) + 1 - self._most)]
        return [self._places.pop(key) for key in surplus]

    def sent_row(self, board: object, kind: str, ident: str) -> msgspec.Raw | None:
        """The last row of an opportunity that was sent, and open when its view was last read."""
        with self._lock:
            places = tuple(self._places.values())
        rows = (place.sent.row(board, kind, ident) for place in reversed(places))  # the last read first
        return next((row for row in rows if row is not None), None)

    def sweep(self) -> int:
        """Close views without recent readers. Returns how many."""
        since = time.monotonic() - self._idle
        with self._lock:
            idle = [key for key, place in self._places.items() if place.read_at < since]
            places = [self._places.pop(key) for key in idle]
        for place in places:
            self._close(place)
        return len(places)

    def _read(
        self, place: _ReadView, board: Board, books: frozenset[str] | None, wanted: Mapping[str, Any]
    ) -> OpenRows:
        opened = place.opened
        if opened is not None and opened.number == board.number:  # another thread read it meanwhile
            return opened
        if place.view is None:
            place.view = board.view(books, **wanted, wider=True)
        with _not_ready(), board.reading(place.view) as shown:
            place.opened = OpenRows(shown.number, shown.now or datetime.fromtimestamp(0, UTC), place.view, place.sent)
        return place.opened

    def _close(self, place: _ReadView) -> None:
        self.closed += 1
        with place.lock:
            place.closed = True
            place.sent.close()
            if place.view is not None and not place.view.kept:
                place.view.close()
            place.opened = place.view = None
