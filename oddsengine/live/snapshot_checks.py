"""Checks of a snapshot before anything of it is used: its checksum, then the structure of its arrays.

Kernels trust the columns of a board: an array of another length, or an index out of range, would have them read memory
that is not theirs. The checksum finds what was damaged; the structure is checked as well, for content whose checksum
was made of something wrong.
"""

import zlib
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from oddsengine.board.event_status import STATUSES
from oddsengine.board.flap import EARLIER, RETURNS, Levels
from oddsengine.board.rows import COLUMNS
from oddsengine.board.state import Board, BoardContent
from oddsengine.catalog.reasons import NAMES
from oddsengine.columns import SECOND
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, FREE, REMOVED
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.live.key import ViewKey
from oddsengine.pricing.momentum import Memory

_WITH_ARRAYS = {"rows", "spare", "levels", "momentum", "views"}
_VERDICTS = ("reason", "rejected")  # columns of codes of verdicts
_LADDERS = ("_of", "_base", "_value", "_sampled", "_latest", "_start", "_size", "_room")
_ENTRIES = ("_book", "_line", "_x")
_encode = msgspec.msgpack.Encoder().encode


class SnapshotError(ValueError):
    """A snapshot is damaged; the message says what is wrong with it."""


def checksum(snapshot: Mapping[str, Any]) -> int:
    """CRC-32 of everything in a snapshot but itself; the same before and after msgpack."""
    total = 0
    for name, value in snapshot.items():
        if name != "checksum":
            content = _encode([name, _summed(value) if name in _WITH_ARRAYS else value])
            total = zlib.crc32(content, total)
    return total


def _summed(value: Any) -> Any:
    """The value with CRC-32s in place of bytes, which are not copied then."""
    if isinstance(value, bytes):
        return zlib.crc32(value)
    if isinstance(value, dict):
        return {name: _summed(part) for name, part in value.items()}
    return [_summed(part) for part in value] if isinstance(value, list | tuple) else value


def check_checksum(snapshot: Mapping[str, Any]) -> None:
    """Raise `SnapshotError` if the content is not what the checksum was made of."""
    try:
        actual = checksum(snapshot)
    except (TypeError, ValueError, RecursionError) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
    if snapshot.get("checksum") != actual:
        raise SnapshotError("the snapshot is damaged: its content does not match its checksum")


def check_board(content: BoardContent) -> None:
    """Raise `SnapshotError` if a board could not work with this content."""
    whole = (content.now, content.moment, content.checked, content.tidy_at, content.top)
    if any(type(number) is not int for number in whole) or content.top < 0:
        _fail("its times and sizes are not whole numbers")
    if content.moment != content.now - content.now % SECOND and content.moment != content.now:
        _fail("its time in whole seconds is not that of its time")
    if any(len(label) != len(RAW_LABEL) + 1 for label in content.raw_labels):
        _fail(f"it has raw labels of other than {len(RAW_LABEL) + 1} parts")
    if not all(isinstance(book, str) for book in content.books):
        _fail("it has books that are not text")
    if not _distinct(content.books) or not _distinct(content.raw_labels):
        _fail("it has a book or a raw label twice")
    for event, notice in content.notices.items():
        if not (isinstance(notice.status, int) and 0 <= notice.status < len(STATUSES)):
            _fail(f"the notice about event {event!r} has no status of {', '.join(STATUSES)}")
    _check_rows(content)
    _check_levels(content)
    if any(not 0 <= slot < content.top or not isinstance(text, str) for slot, text in content.links.items()):
        _fail("it has texts of rows that it does not have")


def _check_rows(content: BoardContent) -> None:
    top, columns = content.top, content.columns
    if wrong := set(columns) ^ set(Board().content().columns):
        _fail(f"it lacks columns or has others: {', '.join(sorted(map(str, wrong)))}")
    for name, column in columns.items():
        _expect(f"column {name}", column, np.dtype(COLUMNS[name]), (top,))
    state = columns["state"]
    _within("column state", state, REMOVED)
    taken = state != FREE
    keys = columns["key"][taken]
    _within("terms of column key", keys >> BOOK_BITS, len(content.raw_labels) - 1)
    _within("books of column key", keys & BOOK_MASK, len(content.books) - 1)
    for name in _VERDICTS:
        _within(f"column {name}", columns[name], len(NAMES) - 1)
    _within("column depth", columns["depth"][taken], EARLIER + 1)
    spare = content.spare
    _expect("the free rows", spare, np.dtype(np.int32), (int((~taken).sum()),))
    _places("the free rows", spare, top)
    if taken[spare].any():
        _fail("rows with a price are among the free rows")


def _check_levels(content: BoardContent) -> None:
    levels, like = content.levels, Levels.none(1)
    room = int(levels.spare.size)
    for name in Levels._fields:
        column, wanted = getattr(levels, name), getattr(like, name)
        shape = wanted.shape if name == "used" else (room, *wanted.shape[1:])
        _expect(f"levels {name}", column, wanted.dtype, shape)
    used, spare = map(int, levels.used)
    if not (0 <= spare <= used <= room):
        _fail(f"{spare} of {used} used records of levels are free, and there is room for {room}")
    _within("levels returns", levels.returns[:used], RETURNS)
    records = content.columns["record"][content.columns["state"] != FREE]
    deep = content.columns["depth"][content.columns["state"] != FREE] > 1
    if (records[deep] < 0).any():
        _fail("rows with earlier prices have no record of them")
    _places("the records of levels", np.concatenate((records[records != -1], levels.spare[:spare])), used)


def check_memory(memory: Memory) -> None:
    """Raise `SnapshotError` if the arrays of a memory of momentum do not fit one another."""
    new, held = vars(Memory()), vars(memory)
    sizes = dict.fromkeys(_LADDERS, held["_of"].shape[0]) | dict.fromkeys(_ENTRIES, held["_book"].shape[0])
    for name, value in new.items():
        if isinstance(value, np.ndarray) and name not in ("_seen", "_begun"):
            size = sizes.get(name, held["_keys"].shape[0])
            _expect(f"momentum {name}", held[name], value.dtype, (size, *value.shape[1:]))
    ladders, entries, table = sizes["_of"], sizes["_book"], held["_keys"]
    used, end = memory.used, memory.end
    if type(used) is not int or type(end) is not int or not (0 <= used <= ladders and 0 <= end <= entries):
        _fail(f"{used} ladders and {end} entries of momentum are used of {ladders} and {entries}")
    books = held["_books"]
    if sorted(books.values()) != list(range(len(books))):
        _fail("the books of momentum are not numbered from 0")
    filled = table != 0
    if table.size & (table.size - 1) or int(filled.sum()) != used or used >= table.size:
        _fail("the table of ladders of momentum does not have one place for each")
    _places("the ladders of momentum", held["_slot"][filled], used)
    first, size, room = (held[name][:used].astype(np.int64) for name in ("_start", "_size", "_room"))
    if ((first < 0) | (first > end) | (size < 0) | (size > room) | (first + room > end)).any():
        _fail("entries of momentum are out of range")
    _within("books of momentum", held["_book"][:end], max(len(books) - 1, 0))


def check_view(key: ViewKey, kinds: int, ids: Any, codes: Any, detected_at: Any) -> None:
    """Raise `SnapshotError` if these are not the parameters and the open opportunities of a view."""
    for name, column, dtype in (("ids", ids, np.uint64), ("kinds", codes, np.uint8), ("times", detected_at, np.int64)):
        _expect(f"the {name} of opportunities", column, np.dtype(dtype), (ids.size,))
    _within("the kinds of opportunities", codes, kinds - 1)
    if key.kinds:
        ViewKey.from_parameters(
            key.books, key.reference, key.method, dict(key.commission), key.kinds, key.include, stake=key.stake,
            **dict(key.limits),
        )  # fmt: skip


def _fail(what: str) -> NoReturn:
    raise SnapshotError(f"the snapshot cannot be used: {what}")


def _expect(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape:
        _fail(f"{name} should be {dtype} of shape {shape}, but is {array.dtype} of shape {array.shape}")


def _within(name: str, array: npt.NDArray[Any], most: int) -> None:
    if array.size and (array.min() < 0 or array.max() > most):
        _fail(f"{name} should be within 0 and {most}, but is within {array.min()} and {array.max()}")


def _places(name: str, array: npt.NDArray[Any], size: int) -> None:
    """Every value is a place among so many, and none is there twice."""
    _within(name, array, size - 1)
    if array.size and np.bincount(array, minlength=1).max() > 1:
        _fail(f"{name} are not distinct")


def _distinct(values: list[Any]) -> bool:
    return len(set(values)) == len(values)
