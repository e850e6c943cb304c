"""What a view of the engine holds open, as it goes out, kept up to date.

An opportunity is *outdated* once an update changes it, or a price beside it: rows name other books' prices. Outdated
ones are read again while updates go on. So what is open is of one update only if nothing else was outdated up to the
one that was read; `Watch.number` says which, or 0.

An opportunity that is not what it was is told again. Ages alone, and what follows from them, are no reason to; nor is
the range of an EV, which narrows as the start comes nearer.
"""

from collections.abc import Container, Hashable, Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from oddsengine import View, catalog
from oddsengine.engine import Engine
from oddsengine.update import Update, hexadecimal
from oddsengine_service.kinds import KINDS

OpportunityId = int  # id of an opportunity as the engine has it
Near = tuple[str, str]  # event and player: what stands beside each other


class Opportunity(NamedTuple):
    """One opportunity as it goes out."""

    id: str
    kind: str
    value: float  # percent; what thresholds are compared with
    low: float  # American prices: the lowest and the highest
    high: float
    event: str
    sport: str
    league: str
    market: str
    live: bool
    raw: msgspec.Raw
    steady: int  # a hash of all but ages; what is compared
    near: Near


class ViewSnapshot(NamedTuple):
    """What was open when it was read."""

    open: dict[OpportunityId, Opportunity]
    before: int  # number of the board's last update, and that when the read was over
    number: int


class Watch:
    """What a view holds open."""

    def __init__(
        self, engine: Engine, method: str, books: frozenset[str] | None, min_ev: float, min_profit: float,
        include: tuple[str, ...] = (), account: str = "",
    ) -> None:  # fmt: skip
        self._engine, self.account, self.view = engine, account, (books, min_ev, min_profit, include)
        self._view: View | None = None
        if books is None or books:
            self._view = engine.view(
                books, method=method, min_ev=min_ev, min_profit=min_profit, include=include, keep=True
            )  # fmt: skip
        self.members = 0
        self.open: dict[OpportunityId, Opportunity] = {}
        self.number = 0  # of the update that `open` is of; 0 while it is of no single one
        self._near: dict[Near, set[OpportunityId]] = {}
        self._last_update = 0
        self._outdated: dict[OpportunityId, int] = {}  # and by which update first
        self._reading = True  # until `fill`
        self._meanwhile: dict[Near, int] = {}  # what was touched since the read under way began

    @property
    def payer(self) -> Hashable:
        """The account that pays for its reads; a watch of several accounts pays itself."""
        return self.account or self

    @property
    def outdated(self) -> bool:
        """Whether there is something to read, and nobody is reading."""
        return bool(self._outdated) and not self._reading

    def on_update(self, update: Update, touched: Iterable[Near]) -> None:
        """Mark opportunities that an update changed, and those beside its prices."""
        change = update.views.get(self._view) if self._view is not None else None
        if change is not None:
            for word in (*change.hits.id.tolist(), *change.expired.tolist()):
                self._outdated.setdefault(word, update.number)
        self._last_update = update.number
        for place in touched:
            if self._reading:  # it may stand beside what is only being found
                self._meanwhile.setdefault(place, update.number)
            else:
                self._mark(place, update.number)
        if not self._reading and not self._outdated:
            self.number = update.number

    def _mark(self, place: Near, number: int) -> None:
        for word in self._near.get(place, ()):
            self._outdated.setdefault(word, number)

    def fill(self, found: "ViewSnapshot") -> None:
        """Take what is open at first."""
        for word, find in found.open.items():
            self._keep(word, find)
        if found.before == found.number:
            self._outdated = {word: first for word, first in self._outdated.items() if first > found.number}
        self._end_read((), found)

    def begin_read(self) -> set[OpportunityId]:
        """Opportunities to read; pass the result to `settle`."""
        outdated, self._outdated, self._reading = set(self._outdated), {}, True
        return outdated

    def settle(self, outdated: set[OpportunityId], found: "ViewSnapshot") -> dict[OpportunityId, Opportunity | None]:
        """Opportunities that are new or changed, and None for expired ones."""
        out: dict[OpportunityId, Opportunity | None] = {}
        for word in outdated:
            find, before = found.open.get(word), self.open.get(word)
            if find is not None:
                if before is None or find.steady != before.steady:
                    out[word] = find
                    self._keep(word, find)
            elif before is not None:
                out[word] = None
                del self.open[word]
                self._near[before.near].discard(word)
                if not self._near[before.near]:
                    del self._near[before.near]
        self._end_read(outdated, found)
        return out

    def _end_read(self, read: Container[OpportunityId], found: "ViewSnapshot") -> None:
        """Go on; what is open is of one update if nothing else was outdated up to it."""
        self._reading = False
        for place, first in self._meanwhile.items():
            self._mark(place, first)
        self._meanwhile = {}
        still = found.before == found.number
        missed = any(first <= found.number and not (still and word in read) for word, first in self._outdated.items())
        self.number = 0 if missed else found.number if self._outdated else max(self._last_update, found.number)

    def _keep(self, word: OpportunityId, find: Opportunity) -> None:
        self.open[word] = find
        self._near.setdefault(find.near, set()).add(word)

    def close(self) -> None:
        """Release the view."""
        if self._view is not None:
            self._view.kept = False

    def read(self, words: set[OpportunityId] | None) -> "ViewSnapshot":
        """What is open now of some opportunities, or of all; from any thread."""
        before = self._engine.number
        if self._view is None:
            return ViewSnapshot({}, before, before)
        near = None if words is None else np.fromiter(words, np.uint64, len(words))
        frames = self._view.opportunities(near=near)
        after = self._engine.number
        hexes = None if near is None else hexadecimal(near)
        out = {}
        for kind in KINDS:
            table = getattr(frames, kind)
            if hexes is not None:
                table = table.filter(pl.col("id").str.tail(16).is_in(hexes))
            for find in _opportunities(kind, table):
                out[int(find.id[-16:], 16)] = find
        return ViewSnapshot(out, before, after)


def _opportunities(name: str, table: pl.DataFrame) -> Iterator[Opportunity]:
    kind = KINDS[name]
    raw, steady = kind.encoding.with_prints(table)
    about = table.select(
        pl.col(kind.value).alias("value"), kind.low.alias("low"), kind.high.alias("high"),
        pl.col(kind.event).alias("event"), pl.col("sport", "league").fill_null(""),
        pl.col(kind.market).alias("market"), "is_live",
    )  # fmt: skip
    columns = [column.to_list() for column in about]
    places = map(near, columns[3], table["player_name"].to_list())
    return map(Opportunity, table["id"].to_list(), repeat(name), *columns, raw, steady, places)


def near(event: str, player: str | None) -> Near:
    """The event and player of a price or an opportunity."""
    return event, catalog.normalise(player) if player else ""
