"""How a node shares its state with other processes."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from prometheus_client.core import Metric

from oddsengine.history.closing import Store
from oddsengine.matching import Decision, Matcher
from oddsengine_service.wire.splits_response import SplitsGiven

AccountDay = tuple[str, int]  # account, UTC day since 1970


class RecordChange(msgspec.Struct, array_like=True, frozen=True):
    """The new value of a record; None as the body deletes it."""

    owner: str
    kind: str
    name: str
    body: bytes | None = None
    event: str | None = None


class Replication:
    """The replication of a node that is the only process: it decides everything itself and shares nothing.

    `scale.roles.Member` is that of a process of a cluster. A change is reported before it is made; an error rejects it.
    Its parts replicate keys, records, counts of requests and streams, and usage.
    """

    leads = True  # whether it may decide what the board, games, futures and splits are
    writes = True  # whether it does so now
    writes_records = True  # whether it changes records
    one_by_one = False  # whether a transaction can change only one record
    standing_by = False  # it writes the log, or may take over, and serves no API requests
    waits_for = ""  # what has to happen before the node is ready, besides loading the kernels
    began = 0.0  # start of the step count, the same for all processes; 0 is the start of the node
    origin = ""  # identifies the step numbers, for an archive; empty is the node itself
    closings: Store | None = None  # stores closing lines and bets; None is the node's database
    most_quotes: int | None = None  # of a step; None is any number
    decisions: Mapping[tuple[str, str], Decision] = {}  # on games, of the process that had the feeds before

    def __init__(self) -> None:
        self.keys: Replication = self
        self.records: Replication = self
        self.counts: Replication = self
        self.usage: Replication = self

    def run(self, service: Any, feed: Any) -> None:
        """Feed the board while this process decides; in a thread, until the node closes."""
        feed(service)

    def attach(self, node: Any) -> None:
        """Share the state of a node, which was created with this."""

    def close(self) -> None:
        """Disconnect; again without effect."""

    def collect(self) -> Iterable[Metric]:
        """Metrics of the replication."""
        return ()

    # ---- the board ----

    def changed(self, kind: str, *what: Any) -> None:
        """Report a change of games, futures or splits."""

    def decided(self, matcher: Matcher, games: Iterable[tuple[str, str]] | None = None) -> None:
        """Report new decisions on games, before a step uses them; None is all games."""

    def put_splits(self, splits: Collection[SplitsGiven]) -> int | None:
        """Have another process store betting splits. Returns how many were new; None if this process stores them."""
        return None

    # ---- accounts ----

    def key_changed(self, row: dict[str, Any]) -> None:
        """Report a key that was changed or created."""

    def record_changed(self, change: RecordChange) -> None:
        """Report a change of a record."""

    async def records_current(self) -> None:
        """Wait for all changes of records made by now."""

    async def forward(self, endpoint: Any, context: Any) -> Any:
        """Have another process execute a request that changes records; None if this process does."""
        return None

    def requests_left(self, who: str, minute: int, left: int, count: int = 0) -> int:
        """Requests left in a minute after those of other processes; `count` is of this process, for a new one."""
        return left

    def streams_elsewhere(self, who: str) -> int:
        """Open streams at other processes."""
        return 0

    def add_usage(self, batch: int, counts: Mapping[AccountDay, int]) -> Mapping[AccountDay, int] | None:
        """Add counts to those of all processes, once per batch number. Returns the totals; None if there are none."""
        return None


ALONE = Replication()
