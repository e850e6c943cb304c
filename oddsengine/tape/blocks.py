"""Encoding and decoding of blocks of steps."""

import io
import json
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from oddsengine.board.rows import CodedQuotes
from oddsengine.board.serialisation import batch_of_fields, no_quotes
from oddsengine.board.state import Batch
from oddsengine.columns import NO_TIME
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK
from oddsengine.identity.raw_labels import RAW_LABEL, RawLabel
from oddsengine.live.key import ViewKey

MAGIC, VERSION = b"tape", 1
# Magic, version, number of tables; checksum; steps, quotes, terms and books up to the end, first step number, times
# of the first and last step, size of each table.
HEADER = struct.Struct("<4sHHIIIIIQqq4I")
_CHECKED = 12  # where the checksummed part begins
_OLD = pl.CompatLevel.oldest()

Note = tuple[str, Any]


class TapeError(ValueError):
    """A tape cannot be used; the message is a sentence for the user."""


class TapeStep(NamedTuple):
    """One step: its number, its batch, and notes on views since the previous step."""

    number: int
    batch: Batch
    notes: list[Note]


class Block(NamedTuple):
    """The header of a block."""

    offset: int
    steps: int
    quotes: int
    terms: int
    books: int
    first: int
    since: int
    until: int
    sizes: tuple[int, ...]

    @property
    def end(self) -> int:
        """Offset of the next block."""
        return self.offset + HEADER.size + sum(self.sizes)


def _packed(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_ipc_stream(out, compression="zstd", compat_level=_OLD)
    return out.getvalue()


class BufferedStep(NamedTuple):
    """A buffered step, or notes after the last one, with running totals."""

    batch: Batch | None
    texts: tuple[str | None, ...]  # columns of `_JSON`
    notes: list[list[Any]]  # before the step
    listed: Sequence[RawLabel] | None  # terms renumbered before it
    before: int  # count of terms before it
    terms: int
    books: int
    quotes: int  # count of buffered quotes


_JSON = ("removed", "complete", "events", "rejected", "notes")


def encoded(first: int, buffered: Sequence[BufferedStep]) -> bytes:
    batches = [step.batch for step in buffered if step.batch is not None]
    n = len(batches)
    terms, books = buffered[-1].terms, buffered[-1].books
    counts = np.array([len(batch.links) for batch in batches], np.int64)
    numbers = np.arange(first, first + n)
    columns = [np.concatenate(column) for column in zip(*(batch.quoted for batch in batches), strict=True)]
    key, *rest = columns or no_quotes()
    quotes = pl.DataFrame(
        {
            "step": np.repeat(numbers, counts),
            "term": (key >> BOOK_BITS).astype(np.uint32),
            "book": (key & BOOK_MASK).astype(np.uint16),
            **dict(zip(CodedQuotes._fields[1:], rest, strict=True)),
            "link": _texts([batch.links for batch in batches], key.size),
        }
    )
    beyond = [None] * (len(buffered) - n)
    steps = pl.DataFrame(
        {
            "number": pl.Series(numbers.tolist() + beyond, dtype=pl.Int64),
            "now": pl.Series([batch.now for batch in batches] + beyond, dtype=pl.Int64),
            "quotes": pl.Series(counts.tolist() + beyond, dtype=pl.Int64),
            **dict(zip(_JSON, _columns([step.texts for step in buffered]), strict=True)),
        }
    )
    tables = (_packed(quotes), _terms(first, buffered), _books(first, buffered), _packed(steps))
    since, until = (batches[0].now, batches[-1].now) if batches else (int(NO_TIME), int(NO_TIME))
    header = HEADER.pack(
        MAGIC, VERSION, len(tables), 0, n, key.size, terms, books, first, since, until,
        *(len(table) for table in tables),
    )  # fmt: skip
    block = bytearray().join((header, *tables))
    struct.pack_into("<I", block, _CHECKED - 4, zlib.crc32(memoryview(block)[_CHECKED:]))
    return bytes(block)


def _texts(parts: Sequence[list[str | None]], size: int) -> pl.Series:
    """Build a text column that is mostly null."""
    if sum(part.count(None) for part in parts) == size:
        return pl.repeat(None, size, dtype=pl.String, eager=True)
    return pl.Series(list(chain.from_iterable(parts)), dtype=pl.String)


def _columns(rows: Sequence[tuple[str | None, ...]]) -> list[pl.Series]:
    return [_texts([list(column)], len(rows)) for column in zip(*rows, strict=True)]


def _books(first: int, steps: Sequence[BufferedStep]) -> bytes:
    listed = [(number, step.batch.books) for number, step in enumerate(steps, first) if step.batch and step.batch.books]
    names = [name for _, books in listed for name in books]
    end = steps[-1].books
    frame = pl.DataFrame(
        {
            "step": pl.Series([number for number, books in listed for _ in books], dtype=pl.Int64),
            "code": np.arange(end - len(names), end, dtype=np.uint32),
            "name": pl.Series(names, dtype=pl.String),
        }
    )
    return _packed(frame)


def _terms(first: int, steps: Sequence[BufferedStep]) -> bytes:
    """Collect terms that are new in these steps or listed again."""
    rows: list[RawLabel] = []
    numbers: list[int] = []
    codes: list[int] = []
    new: list[bool] = []
    for number, (batch, _, _, listed, before, *_) in enumerate(steps, first):
        if batch is None or not (batch.raw_labels or listed):
            continue
        for raw_labels, start in ((listed or (), 0), (batch.raw_labels, before if listed is None else len(listed))):
            rows.extend(raw_labels)
            numbers += [number] * len(raw_labels)
            codes += range(start, start + len(raw_labels))
            new += [raw_labels is batch.raw_labels] * len(raw_labels)
    parts = list(zip(*rows, strict=True)) or [()] * (len(RAW_LABEL) + 1)
    frame = pl.DataFrame(
        {
            "step": pl.Series(numbers, dtype=pl.Int64),
            "code": pl.Series(codes, dtype=pl.UInt32),
            "new": pl.Series(new, dtype=pl.Boolean),
            **{name: pl.Series(part, dtype=pl.String) for name, part in zip(RAW_LABEL, parts, strict=False)},
            "line": pl.Series(parts[-1], dtype=pl.Float64, strict=False),
        }
    )
    return _packed(frame)


def head(data: bytes | memoryview, offset: int) -> Block | None:
    """Parse a header; None if it is not valid."""
    if len(data) < HEADER.size:
        return None
    magic, version, tables, _, steps, quotes, terms, books, first, since, until, *sizes = HEADER.unpack_from(data)
    if magic != MAGIC:
        return None
    if version != VERSION and not offset:
        raise TapeError(f"the tape has format version {version}; this version of oddsengine reads version {VERSION}")
    if version != VERSION or tables != len(sizes):
        return None
    return Block(offset, steps, quotes, terms, books, first, since, until, tuple(sizes))


def whole(data: bytes | memoryview, offset: int) -> Block | None:
    """Return the block at the start of the data; None unless it is complete and its checksum is right."""
    block = head(data, offset)
    if block is None or len(data) < block.end - offset:
        return None
    (checksum,) = struct.unpack_from("<I", data, _CHECKED - 4)
    return block if zlib.crc32(data[_CHECKED : block.end - offset]) == checksum else None


def decoded(block: Block, data: bytes | memoryview) -> Iterator[TapeStep | list[Note]]:
    """Decode the steps of a block and the notes after them."""
    frames, at = [], HEADER.size
    for size in block.sizes:
        frames.append(pl.read_ipc_stream(io.BytesIO(data[at : at + size])))
        at += size
    quotes, terms, books, steps = frames
    key = (quotes["term"].to_numpy().astype(np.int64) << BOOK_BITS) | quotes["book"].to_numpy()
    columns = [key, *(quotes[name].to_numpy(writable=True) for name in CodedQuotes._fields[1:])]
    links = quotes["link"].to_list()
    raw_labels: dict[int, list[RawLabel]] = {}
    for number, _, new, *texts, line in terms.iter_rows():
        if not new:
            continue
        raw_labels.setdefault(number, []).append(
            (*(None if text is None else sys.intern(text) for text in texts), line)
        )
    new_books: dict[int, list[str]] = {}
    for number, _, name in books.iter_rows():
        new_books.setdefault(number, []).append(name)
    a = 0
    for number, now, count, removed, complete, events, rejected, notes in steps.iter_rows():
        decoded_notes = [_note(kind, content) for kind, content in json.loads(notes)] if notes else []
        if number is None:
            yield decoded_notes
            continue
        b = a + count
        batch = batch_of_fields(
            now, raw_labels.get(number, []), new_books.get(number, []),
            CodedQuotes(*(column[a:b] for column in columns)),
            links[a:b], np.array([int(text, 16) for text in json.loads(removed or "[]")], np.uint64),
            json.loads(complete or "[]"), json.loads(events or "[]"), json.loads(rejected or "{}"),
        )  # fmt: skip
        yield TapeStep(number, batch, decoded_notes)
        a = b


def _note(kind: str, content: Any) -> Note:
    """Restore a note from its JSON form."""
    if kind in ("without", "fair"):
        return kind, tuple(content) if kind == "without" else content
    return kind, ViewKey.of_content(content)


def json_columns(batch: Batch | None, notes: Sequence[Any]) -> tuple[str | None, ...]:
    """The columns `_JSON` of a step, None where empty; raises if a text is not valid Unicode."""
    contents: Sequence[Any] = [None] * (len(_JSON) - 1)
    if batch is not None:
        contents = hexadecimal(batch.removed), batch.complete, batch.events, batch.rejected
    texts = [msgspec.json.encode(content).decode() if content else None for content in contents]
    return *texts, json.dumps(notes, separators=(",", ":")) if notes else None
