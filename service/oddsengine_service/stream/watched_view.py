"""The open opportunities of a view, encoded and kept up to date.

An opportunity is *outdated* once an update changes it or prices around it, because rows list other books' prices.
Outdated ones are read again while updates continue, so the open set belongs to a single update only if nothing else
became outdated up to the update that was read; `Watch.number` is that update, or 0.

An opportunity is sent again if its row differs. Ages, and what follows from them, are ignored; so is the range of an
EV, which narrows as the start approaches.
"""

import sys
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterator, Mapping
from itertools import islice, repeat
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from oddsengine import View
from oddsengine.detection.kinds import KINDS
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine_service.board.ended import EndedRows
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.wire.encoded_columns import RowEncoding
from oddsengine_service.wire.encodings import ENCODINGS, prices

PART = 250  # opportunities read at once; other accounts get a turn in between

OpportunityId = int  # id of an opportunity as the engine has it
ViewKey = tuple[frozenset[str] | None, float, float, tuple[str, ...], float | None]
"""Books, thresholds, `include` and stake."""


class Opportunity(msgspec.Struct, frozen=True, gc=False):
    """One encoded opportunity."""

    id: str
    kind: str
    value: float  # percent; compared with thresholds
    low: float  # lowest and highest American price
    high: float
    event: str
    sport: str
    league: str
    market: str
    live: bool
    terms_differ: bool
    raw: msgspec.Raw
    steady: int  # a hash of all but ages; what is compared


class ViewSnapshot(NamedTuple):
    """The open opportunities at a time."""

    open: dict[OpportunityId, Opportunity]
    before: int  # numbers of the board's last update, before and after the read
    number: int


class Watch:
    """The open opportunities of a view."""

    def __init__(
        self, engine: Engine, method: str, books: frozenset[str] | None, min_ev: float, min_profit: float,
        include: tuple[str, ...] = (), stake: float | None = None, account: str = "", ended: EndedRows | None = None,
        encodings: Mapping[str, RowEncoding] | None = None,
    ) -> None:  # fmt: skip
        self._encodings = ENCODINGS if encodings is None else encodings
        self._ended = EndedRows() if ended is None else ended
        self._engine, self.account, self.view = engine, account, (books, min_ev, min_profit, include, stake)
        self._view: View | None = None
        if books is None or books:
            self._view = engine.view(
                books, method=method, min_ev=min_ev, min_profit=min_profit, include=include, stake=stake, keep=True
            )  # fmt: skip
            self._ended.enter(self)
        self.members = 0
        self._accounts: Counter[str] = Counter()  # of its subscribers
        self._closed = False
        self.open: dict[OpportunityId, Opportunity] = {}
        self.number = 0  # of the update that `open` is of; 0 while it is of no single one
        self._last_update = 0
        self._outdated: dict[OpportunityId, int] = {}  # with the update by which each became outdated first
        self._reading = True  # until `fill`

    def enter(self, account: str) -> None:
        """Add a subscriber of an account."""
        self._accounts[account] += 1
        self.account = account if len(self._accounts) == 1 else ""

    def exit(self, account: str) -> None:
        """Remove a subscriber of an account; without any, it belongs to the last one."""
        self._accounts[account] -= 1
        if not self._accounts[account]:
            del self._accounts[account]
        if len(self._accounts) == 1:
            (self.account,) = self._accounts

    @property
    def payer(self) -> Hashable:
        """The account charged for its reads; a watch of several accounts is charged by itself."""
        return self.account or self.view

    @property
    def outdated(self) -> bool:
        """Whether there is something to read, and no read under way."""
        return bool(self._outdated) and not self._reading

    def on_update(self, update: Update) -> None:
        """Mark the opportunities that an update changed, and those around which prices moved."""
        change = update.views.get(self._view) if self._view is not None else None
        if change is not None:
            for word in (*change.hits.id.tolist(), *change.affected.tolist(), *change.expired.tolist()):
                self._outdated.setdefault(word, update.number)
        self._last_update = update.number
        if not self._reading and not self._outdated:
            self.number = update.number

    def fill(self, found: "ViewSnapshot") -> None:
        """Take what is open at first."""
        self.open.update(found.open)
        if found.before == found.number:
            self._outdated = {word: first for word, first in self._outdated.items() if first > found.number}
        self._end_read((), found)

    def begin_read(self, *, whole: bool) -> set[OpportunityId]:
        """The opportunities to read, all or those outdated longest; pass the result to `settle`."""
        outdated, self._reading = set(islice(self._outdated, None if whole else PART)), True
        for word in outdated:
            del self._outdated[word]
        return outdated

    def settle(self, outdated: set[OpportunityId], found: "ViewSnapshot") -> dict[OpportunityId, Opportunity | None]:
        """Apply a read. Returns new and changed opportunities, and None for expired ones."""
        out: dict[OpportunityId, Opportunity | None] = {}
        expired: list[Opportunity] = []
        for word in outdated:
            find, before = found.open.get(word), self.open.get(word)
            if find is not None:
                self.open[word] = find
                if before is None or find.steady != before.steady:
                    out[word] = find
            elif before is not None:
                out[word] = None
                del self.open[word]
                expired.append(before)
        self._remember(expired)
        self._end_read(outdated, found)
        return out

    def _end_read(self, read: Container[OpportunityId], found: "ViewSnapshot") -> None:
        """Finish a read; the set is the state of one update if nothing else was outdated up to it."""
        self._reading = False
        still = found.before == found.number
        missed = any(first <= found.number and not (still and word in read) for word, first in self._outdated.items())
        self.number = 0 if missed else found.number if self._outdated else max(self._last_update, found.number)

    def sent_row(self, board: object, kind: str, ident: str) -> msgspec.Raw | None:
        """The row of an open opportunity."""
        find = self.open.get(int(ident[-16:], 16)) if board is self._engine else None
        return None if find is None or (find.kind, find.id) != (kind, ident) else find.raw

    def _remember(self, expired: Collection[Opportunity]) -> None:
        """Remember the rows of opportunities that ended, or whose end nobody sees."""
        for kind in KINDS:
            if rows := [(find.id, find.raw) for find in expired if find.kind == kind]:
                self._ended.add(self._engine, kind, rows)

    def close(self) -> None:
        """Release the view. Closing again has no effect."""
        if self._view is not None and not self._closed:
            self._closed = True
            self._view.release()
            self._ended.leave(self)
            self._remember(tuple(self.open.values()))

    def ids(self) -> list[OpportunityId]:
        """The ids of all open opportunities; thread-safe."""
        by_kind = self._view.ids() if self._view is not None else {}
        return [int(id_, 16) for ids in by_kind.values() for id_ in ids]

    def read_open(self, words: Collection[OpportunityId]) -> "ViewSnapshot":
        """Read some open opportunities; none once the watch is closed. Thread-safe."""
        before = self._engine.number
        if self._view is None or self._closed:
            return ViewSnapshot({}, before, before)
        ids = np.fromiter(words, np.uint64, len(words))
        frames = self._view.opportunities(ids=ids)
        after = self._engine.number
        found = (
            find
            for kind, table in frames.frames.items()
            if table.height
            for find in _opportunities(kind, table, self._encodings[kind])
        )
        return ViewSnapshot({int(find.id[-16:], 16): find for find in found}, before, after)


class PendingWatch:
    """A watch that is read for the first time, and the subscribers that wait for it.

    The thread of reads makes and reads it; `waiting` is for the hub's thread, which gets the rest once all is read.
    """

    def __init__(self, view: ViewKey, account: str, replaced: Watch | None) -> None:
        self.view, self.account = view, account
        self.replaced = replaced  # the watch that nobody needs once this one is there
        self.waiting: list[Subscriber] = []
        self.watch: Watch | None = None
        self.unread: list[OpportunityId] = []
        self.snapshot = ViewSnapshot({}, 0, 0)

    @property
    def abandoned(self) -> bool:
        """Whether everybody who waited for it has left."""
        return all(subscriber.connection.gone for subscriber in tuple(self.waiting))

    def read_part(self, watch: Watch) -> None:
        """Read the next opportunities."""
        some, self.unread = self.unread[:PART], self.unread[PART:]
        part = watch.read_open(some)
        self.snapshot.open.update(part.open)
        self.snapshot = self.snapshot._replace(number=part.number)


def _opportunities(name: str, table: pl.DataFrame, encoding: RowEncoding) -> Iterator[Opportunity]:
    kind = KINDS[name]
    raw, steady = encoding.with_prints(table)
    low, high = prices(kind)
    about = table.select(
        pl.col(kind.value).alias("value"), low.alias("low"), high.alias("high"),
        pl.col("event_id").alias("event"), pl.col("sport", "league").fill_null(""),
        pl.col("market_type").alias("market"), "is_live",
        pl.col("terms_differ") if "terms_differ" in table.columns else pl.lit(value=False).alias("terms_differ"),
    )  # fmt: skip
    columns = [
        map(sys.intern, column) if column.dtype == pl.String else column.to_list() for column in about
    ]  # a text is stored once, however many rows and watches have it
    return map(Opportunity, table["id"].to_list(), repeat(name), *columns, raw, steady)
