"""What a message of the log holds: entries in order, each what one part of a node took in.

A body is one byte for its form, then zstd over msgpack of `[[kind, value], ...]`. A step's columns are raw bytes: for
one step that is ten times faster than an Arrow stream.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
import zstandard

from oddsengine.engine import Batch, Quoted
from oddsengine.futures import FuturesField
from oddsengine.games import Reading
from oddsengine.matching import Decision
from oddsengine_service.feeds.status import BookStatus, SourceStatus
from oddsengine_service.wire.games import Teams
from oddsengine_service.wire.splits import SplitsGiven

FORM = 1
_DTYPES = ("<i8", "<f8", "<f8", "<i8", "<i8", "<i8", "u1")  # of the columns of `Quoted`
_MOST = 256 << 20  # bytes that a body may unpack to


class FormError(ValueError):
    """A message or snapshot of a newer version of the program; the message is one sentence."""


class Entry(NamedTuple):
    """One thing that was taken in: `value` is what `KINDS` says of its kind."""

    kind: str
    value: Any


class Step(NamedTuple):
    """A batch, and the number that it makes of an engine."""

    number: int
    batch: Batch


class Begin(NamedTuple):
    """A writer takes over."""

    epoch: int
    holder: str
    version: str


class Check(NamedTuple):
    """The state of the writer's board, without its views, after a number of steps."""

    number: int
    state: str


class Scores(NamedTuple):
    """What sources say of scores, and the time."""

    readings: list[Reading]
    now: datetime
    teams: dict[str, Teams]


class FuturesPrices(NamedTuple):
    """Prices of futures of one source."""

    quotes: list[dict[str, Any]]
    now: datetime
    source: str
    removed: list[str]


class Sources(NamedTuple):
    """How sources and books are."""

    sources: list[SourceStatus]
    books: list[BookStatus]


class SplitsRecord(NamedTuple):
    """A record of betting splits, and when it came."""

    given: SplitsGiven
    now: datetime


KINDS: dict[str, Any] = {
    "begin": Begin, "step": Step, "check": Check, "scores": Scores, "unscored": tuple[str, str],
    "futures": FuturesPrices, "fields": list[FuturesField], "splits": SplitsRecord, "sources": Sources,
    "match": list[Decision], "unmatch": list[tuple[str, str]],
}  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode


def packed(entries: Sequence[Entry]) -> bytes:
    """A body."""
    plain = [[kind, _plain(value) if kind == "step" else value] for kind, value in entries]
    return bytes([FORM]) + zstandard.ZstdCompressor(3).compress(_encode(plain))


def unpacked(body: bytes) -> list[Entry]:
    """The entries of a body.

    Raises
    ------
    FormError
        If a newer version of the program wrote it.
    """
    if body[0] != FORM:
        raise FormError(
            f"the log holds messages of form {body[0]}, and this version reads form {FORM}; "
            "update gateways before writers"
        )
    raw = zstandard.ZstdDecompressor().decompress(body[1:], max_output_size=_MOST)
    out = []
    for kind, value in msgspec.msgpack.decode(raw, type=list[tuple[str, msgspec.Raw]]):
        if kind == "step":
            out.append(Entry(kind, _step(msgspec.msgpack.decode(value))))
        elif kind in KINDS:
            out.append(Entry(kind, msgspec.msgpack.decode(value, type=KINDS[kind])))
    return out


def _plain(step: Step) -> list[Any]:
    batch = step.batch
    columns = [np.ascontiguousarray(c, dtype).tobytes() for c, dtype in zip(batch.quoted, _DTYPES, strict=True)]
    links = {at: link for at, link in enumerate(batch.links) if link is not None}
    return [
        step.number, batch.now, batch.wordings, batch.books, columns, links, batch.removed.tobytes(), batch.complete,
        batch.events, batch.rejected,
    ]  # fmt: skip


def _step(plain: list[Any]) -> Step:
    number, now, wordings, books, columns, links, removed, complete, events, rejected = plain
    quoted = Quoted(*(np.frombuffer(c, dtype) for c, dtype in zip(columns, _DTYPES, strict=True)))
    given: list[str | None] = [None] * quoted.key.size
    for at, link in links.items():
        given[at] = link
    return Step(
        number,
        Batch(
            now, [tuple(wording) for wording in wordings], books, quoted, given, np.frombuffer(removed, "<u8"),
            [tuple(pair) for pair in complete], [tuple(event) for event in events], rejected,
        ),
    )  # fmt: skip


def utc(micros: int) -> datetime:
    """A moment of microseconds."""
    return datetime.fromtimestamp(micros / 1e6, UTC)
