"""Arrays and batches as plain data, which msgpack can hold: for tapes, logs and snapshots.

Decoded arrays are copies, because kernels would be compiled once more for an array that cannot be written to.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddsengine.board.rows import CodedQuotes
from oddsengine.board.state import Batch
from oddsengine.columns import Words, dtype_of
from oddsengine.identity.raw_labels import RawLabel

_QUOTE_DTYPES = [np.dtype(dtype_of(column)).newbyteorder("<") for column in CodedQuotes.__annotations__.values()]
_ID = np.dtype(dtype_of(Words)).newbyteorder("<")


def no_quotes() -> CodedQuotes:
    """The columns of no quotes."""
    return CodedQuotes(*(np.empty(0, dtype) for dtype in _QUOTE_DTYPES))


def array_content(array: NDArray[Any]) -> list[Any]:
    """An array as dtype, shape and bytes."""
    return [array.dtype.str, list(array.shape), np.ascontiguousarray(array).tobytes()]


def array_of_content(content: Sequence[Any]) -> NDArray[Any]:
    """The array of `array_content`."""
    dtype, shape, data = content
    return np.frombuffer(data, dtype).reshape(shape).copy()


def batch_content(batch: Batch) -> list[Any]:
    """A batch as a list of its fields: columns as bytes, and links, which are few, by the index of their quote."""
    columns = [_bytes(column, dtype) for column, dtype in zip(batch.quoted, _QUOTE_DTYPES, strict=True)]
    links = {at: link for at, link in enumerate(batch.links) if link is not None}
    return [
        batch.now, batch.raw_labels, batch.books, columns, links, _bytes(batch.removed, _ID), batch.complete,
        batch.events, batch.rejected,
    ]  # fmt: skip


def batch_of_content(content: Sequence[Any]) -> Batch:
    """The batch of `batch_content`."""
    now, raw_labels, books, columns, few_links, removed, *rest = content
    quoted = CodedQuotes(*map(_column, columns, _QUOTE_DTYPES))
    links: list[str | None] = [None] * quoted.key.size
    for at, link in few_links.items():
        links[at] = link
    return batch_of_fields(now, map(tuple, raw_labels), books, quoted, links, _column(removed, _ID), *rest)


def batch_of_fields(
    now: int, raw_labels: Iterable[RawLabel], books: list[str], quoted: CodedQuotes, links: list[str | None],
    removed: Words, complete: Iterable[Sequence[Any]], events: Iterable[Sequence[Any]],
    rejected: Mapping[str, int],
) -> Batch:  # fmt: skip
    """A batch of fields that were decoded, in which tuples have become lists."""
    return Batch(
        now, list(raw_labels), books, quoted, links, removed, [(book, event) for book, event in complete],
        [(event, status, start) for event, status, start in events], dict(rejected),
    )  # fmt: skip


def _bytes(column: Any, dtype: np.dtype[Any]) -> bytes:
    return np.ascontiguousarray(column, dtype).tobytes()


def _column(data: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(data, dtype).copy()
