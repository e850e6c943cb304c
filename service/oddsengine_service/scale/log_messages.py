"""Contents of the log's messages: a list of entries, each with a change to one part of a node.

A body is one byte for its format, then zstd over msgpack of `[[kind, value], ...]`. The columns of a step are raw
bytes, which for one step is ten times faster than an Arrow stream.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from oddsengine.board.serialisation import batch_content, batch_of_content
from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.futures import FuturesField
from oddsengine.live.engine import Batch
from oddsengine.matching import Decision
from oddsengine_service.feeds.status import BookStatus, SourceStatus
from oddsengine_service.scale.compression import DamagedError, compressed, decompressed
from oddsengine_service.wire.games_response import Teams
from oddsengine_service.wire.splits_response import SplitsGiven

FORM = 1
_MOST = 256 << 20  # bytes, maximum size of an unpacked body


class FormError(ValueError):
    """A message cannot be read: it is damaged, or was written by a newer version; the text is shown to the operator."""


class Entry(NamedTuple):
    """One change; `KINDS` has the type of `value` by kind."""

    kind: str
    value: Any


class BatchStep(NamedTuple):
    """A batch, and the engine's number after it."""

    number: int
    batch: Batch


class Begin(NamedTuple):
    """A writer takes over."""

    epoch: int
    holder: str
    version: str


class StateCheck(NamedTuple):
    """State hash of the writer's board, without its views, after a step."""

    number: int
    state: str


class ScoreBatch(NamedTuple):
    """Score readings of sources, and the time."""

    readings: list[ScoreReading]
    now: datetime
    teams: dict[str, Teams]


class FuturesPrices(NamedTuple):
    """Futures prices of one source."""

    quotes: list[dict[str, Any]]
    now: datetime
    source: str
    removed: list[str]


class Sources(NamedTuple):
    """States of sources and books."""

    sources: list[SourceStatus]
    books: list[BookStatus]


class SplitsRecord(NamedTuple):
    """A record of betting splits, and its time of arrival."""

    given: SplitsGiven
    now: datetime


KINDS: dict[str, Any] = {
    "begin": Begin, "step": BatchStep, "check": StateCheck, "scores": ScoreBatch, "unscored": tuple[str, str],
    "futures": FuturesPrices, "fields": list[FuturesField], "splits": SplitsRecord, "sources": Sources,
    "match": list[Decision], "unmatch": list[tuple[str, str]],
}  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode


def packed(entries: Sequence[Entry]) -> bytes:
    content = [
        [kind, [value.number, *batch_content(value.batch)] if kind == "step" else value] for kind, value in entries
    ]
    return bytes([FORM]) + compressed(_encode(content))


def unpacked(body: bytes) -> list[Entry]:
    """Parse the entries of a body. Raises `FormError` if it is damaged, or was written by a newer version."""
    if body[:1] != bytes([FORM]):
        raise FormError(
            f"the log holds messages of form {body[0] if body else 'none'}, and this version reads form {FORM}; "
            "update gateways before writers"
        )
    try:
        return _entries(decompressed(body[1:], _MOST))
    except DamagedError as error:
        raise FormError(f"the log holds a message that cannot be read: {error}") from error
    except (TypeError, ValueError) as error:
        raise FormError(f"the log holds a message that cannot be read: {type(error).__name__}: {error}") from error


def _entries(raw: bytes) -> list[Entry]:
    out = []
    for kind, value in msgspec.msgpack.decode(raw, type=list[tuple[str, msgspec.Raw]]):
        if kind == "step":
            number, *content = msgspec.msgpack.decode(value)
            out.append(Entry(kind, BatchStep(number, batch_of_content(content))))
        elif kind in KINDS:
            out.append(Entry(kind, msgspec.msgpack.decode(value, type=KINDS[kind])))
    return out
