"""The follower: applies messages of the log to a node, and takes snapshots from which another follower starts.

The node's writer thread applies one message after another. Everything that the writer's node accepted is applied here
in the same order, so that every process has the same board, games, futures, splits and numbers.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine.live.snapshot import FORM as ENGINE_FORM
from oddsengine.live.snapshot import SnapshotError, dump, restore
from oddsengine.matching import Decision
from oddsengine_service.board.boards import DELAYS
from oddsengine_service.feeds.status import BookStatus, SourceStatus
from oddsengine_service.node import Node
from oddsengine_service.scale.compression import compressed, decompressed
from oddsengine_service.scale.log_messages import (
    FORM,
    BatchStep,
    Begin,
    Entry,
    FuturesPrices,
    ScoreBatch,
    StateCheck,
    unpacked,
)
from oddsengine_service.scale.node_changes import Changes
from oddsengine_service.scale.shard_log import LogMessage
from oddsengine_service.tiers import TIERS, books_of

LEAST_AGE_S = float(max(DELAYS))  # of the snapshot that a process starts from, so that delayed boards are soon full
_SNAPSHOT = f"{FORM}.{ENGINE_FORM}"
_MOST = 1 << 32  # bytes, maximum size of an unpacked snapshot


Snapshot = tuple[Mapping[str, str], Mapping[str, Any]]
"""What a snapshot says of itself, and what `opened` made of it."""


class DivergedError(RuntimeError):
    """The state of this process differs from the writer's."""


class Follower:
    """Applies messages to a node; every method must be called in the node's writer thread."""

    def __init__(self, node: Node, changes: Changes) -> None:
        self.node = node
        self.sequence = self.epoch = 0
        self.decisions, self.feeds = changes.decisions, changes.feeds
        self._views: list[Any] = []

    def keep_views(self) -> None:
        """Keep the usual views of tiers without a delay active, so that `detected_at` is the same everywhere."""
        sets: set[frozenset[str] | None] = {books_of(tier.id) for tier in TIERS.values() if not tier.delay}
        view, method = self.node.engine.view, self.node.boards.method
        self._views = [view(books, method=method, keep=True) for books in sorted(sets, key=repr)]

    def drop_views(self) -> None:
        """Leave these views to the processes that serve callers."""
        for view in self._views:
            if view.wanted.books is not None:
                view.close()

    def apply(self, message: LogMessage) -> None:
        """Apply a message; one from a replaced writer is ignored.

        Raises `DivergedError` if the state here turns out to differ from the writer's; `FormError` if it cannot be
        read.
        """
        if message.sequence != self.sequence + 1:
            raise DivergedError(f"expected message {self.sequence + 1}, got {message.sequence}")
        entries = unpacked(message.body)
        self.sequence = message.sequence
        if message.epoch < self.epoch:
            return
        self.epoch = message.epoch
        for entry in entries:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        node, (kind, value) = self.node, entry
        if isinstance(value, BatchStep):
            if value.number != node.engine.number + 1:
                raise DivergedError(f"expected step {node.engine.number + 1}, got {value.number}")
            node.feed(value.batch)
        elif isinstance(value, ScoreBatch):
            node.games.put(value.readings, value.now, value.teams)
        elif isinstance(value, FuturesPrices):
            node.futures.apply(value.quotes, value.now, source=value.source, removed=value.removed)
        elif isinstance(value, StateCheck):
            state = node.engine.state_hash(views=False)
            if value.number != node.engine.number or value.state != state:
                raise DivergedError(f"state after step {value.number} is {state}, and the writer's is {value.state}")
        elif isinstance(value, Begin):
            self.epoch = value.epoch
        elif kind == "unscored":
            node.games.drop(*value)
        elif kind == "fields":
            node.futures.state(value)
        elif kind == "splits":
            node.splits.put(value.given, value.now)
        elif kind == "sources":
            self.feeds.replace(value.sources, value.books)
        elif kind == "match":
            self.decisions.update((one.key, one) for one in value)
        elif kind == "unmatch":
            for key in value:
                self.decisions.pop(tuple(key), None)

    # ---- snapshots ----

    def snapshot(self, created_at: int) -> tuple[dict[str, str], bytes]:
        """The full state, and the metadata to select it by; `closed` serialises it."""
        node = self.node
        state: dict[str, Any] = {
            "engine": dump(node.engine), "games": node.games.dump(), "futures": node.futures.dump(),
            "splits": node.splits.dump(), "sources": [self.feeds.statuses(), self.feeds.books()],
            "decisions": list(self.decisions.values()), "epoch": self.epoch,
        }  # fmt: skip
        about = {
            "form": _SNAPSHOT, "born": str(created_at), "sequence": str(self.sequence),
            "number": str(node.engine.number),
            "now": str(state["engine"]["now"]),
        }  # fmt: skip
        return about, msgspec.msgpack.encode(state | {"about": about})

    def restore(self, snapshot: Snapshot) -> None:
        """Start from a snapshot; the log continues from there.

        Raises `SnapshotError` if it is damaged; then nothing has changed.
        """
        about, state = snapshot
        node = self.node
        parts: list[tuple[str, Any]] = [("games", node.games), ("futures", node.futures), ("splits", node.splits)]
        before = [part.dump() for _, part in parts]
        try:
            if any(about.get(name) != value for name, value in state["about"].items()):
                raise SnapshotError("the snapshot is damaged: it is not the one that its description says")
            sequence, epoch = int(about["sequence"]), msgspec.convert(state["epoch"], int)
            sources = msgspec.convert(state["sources"], tuple[list[SourceStatus], list[BookStatus]])
            decisions = msgspec.convert(state["decisions"], list[Decision])
            for name, part in parts:
                part.restore(state[name])
            restore(node.engine, state["engine"])
        except Exception as error:
            for (_, part), content in zip(parts, before, strict=True):
                part.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(content)))
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(f"the snapshot cannot be used: {type(error).__name__}: {error}") from error
        self.feeds.replace(*sources)
        self.decisions.update((one.key, one) for one in decisions)
        self.resume(sequence, epoch)

    def resume(self, sequence: int, epoch: int) -> None:
        """Continue after a message of the log."""
        self.sequence, self.epoch = sequence, epoch


def closed(data: bytes) -> bytes:
    """Serialise the result of `snapshot`."""
    return compressed(data)


def opened(data: bytes) -> dict[str, Any]:
    """Parse a snapshot. Raises `ValueError` if it is damaged."""
    return msgspec.msgpack.decode(decompressed(data, _MOST), type=dict[str, Any])


def fits(about: Mapping[str, str], created_at: int, first: int, before: float = float("inf")) -> bool:
    """Whether a snapshot has this log and format, connects to the log's messages, and is not too new (microseconds)."""
    return (
        about.get("form") == _SNAPSHOT
        and about.get("born") == str(created_at)
        and int(about.get("sequence", -1)) >= first - 1
        and int(about.get("now", 0)) <= before
    )
