"""What a view of the engine holds open, as it goes out, kept up to date.

What an update changes in the view is *stirred*, and what stands beside a price of it is too: rows name other books'
prices. Looks read what was stirred, while updates go on. So what is open is of one update only if nothing else was
stirred up to the one that was read; `Watch.number` says which, or 0.

An opportunity that is not what it was is told again. Ages alone, and what follows from them, are no reason to; nor is
the range of an EV, which narrows as the start comes nearer.
"""

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from oddsengine import View, catalog
from oddsengine.engine import Engine
from oddsengine.update import Update, hexadecimal
from oddsengine_service.wire.arbitrage import ARBITRAGE
from oddsengine_service.wire.columns import Encoding
from oddsengine_service.wire.ev import EV
from oddsengine_service.wire.low_hold import LOW_HOLD
from oddsengine_service.wire.middles import MIDDLE


class Kind(NamedTuple):
    """One kind of opportunities: its name in events, how it goes out, and what its columns are called."""

    event_name: str
    encoding: Encoding
    value: str | None
    event: str = "event_id"
    market: str = "market_type"


KINDS: Mapping[str, Kind] = {
    "ev": Kind("ev", EV, "ev_percentage", "game_id", "market"),
    "arbitrage": Kind("arb", ARBITRAGE, "profit_percent"),
    "low_hold": Kind("low_hold", LOW_HOLD, None),
    "middles": Kind("middles", MIDDLE, None),
}
"""By their names in the engine, which are those of features."""
OpportunityId = int  # id of an opportunity as the engine has it
Near = tuple[str, str]  # event and player: what stands beside each other


class Opportunity(NamedTuple):
    """One opportunity as it goes out."""

    id: str
    kind: str
    value: float  # percent; what thresholds are compared with
    event: str
    sport: str
    league: str
    market: str
    live: bool
    raw: msgspec.Raw
    steady: int  # a hash of all but ages; what is compared
    near: Near

    @property
    def row(self) -> Any:
        """As a struct."""
        return msgspec.json.decode(self.raw, type=KINDS[self.kind].encoding.struct)


class ViewSnapshot(NamedTuple):
    """What was open when somebody looked."""

    open: dict[OpportunityId, Opportunity]
    before: int  # number of the board's last update, and that when the look was over
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
        self._heard = 0
        self._stirred: dict[OpportunityId, int] = {}  # and by which update first
        self._looking = True  # until `fill`
        self._meanwhile: dict[Near, int] = {}  # what was touched since the look that is under way began

    @property
    def payer(self) -> Hashable:
        """Whose time it takes to read it: the only account that wants it, else its own."""
        return self.account or self

    @property
    def stirred(self) -> bool:
        """Whether there is something to look at, and nobody is looking."""
        return bool(self._stirred) and not self._looking

    def hear(self, update: Update, touched: Iterable[Near]) -> None:
        """Note what an update changed, and what stands beside a price of it."""
        change = update.views.get(self._view) if self._view is not None else None
        if change is not None:
            for word in (*change.hits.id.tolist(), *change.expired.tolist()):
                self._stirred.setdefault(word, update.number)
        self._heard = update.number
        for place in touched:
            if self._looking:  # it may stand beside what is only being found
                self._meanwhile.setdefault(place, update.number)
            else:
                self._stir(place, update.number)
        if not self._looking and not self._stirred:
            self.number = update.number

    def _stir(self, place: Near, number: int) -> None:
        for word in self._near.get(place, ()):
            self._stirred.setdefault(word, number)

    def fill(self, found: "ViewSnapshot") -> None:
        """Take what is open at the beginning."""
        for word, find in found.open.items():
            self._keep(word, find)
        if found.before == found.number:
            self._stirred = {word: first for word, first in self._stirred.items() if first > found.number}
        self._looked((), found)

    def look(self) -> set[OpportunityId]:
        """What is to be read; `settle` takes what came of it."""
        stirred, self._stirred, self._looking = set(self._stirred), {}, True
        return stirred

    def settle(self, stirred: set[OpportunityId], found: "ViewSnapshot") -> dict[OpportunityId, Opportunity | None]:
        """What is new or not what it was, and what is no more."""
        out: dict[OpportunityId, Opportunity | None] = {}
        for word in stirred:
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
        self._looked(stirred, found)
        return out

    def _looked(self, read: Container[OpportunityId], found: "ViewSnapshot") -> None:
        """Go on; what is open is of one update if nothing else was stirred up to it."""
        self._looking = False
        for place, first in self._meanwhile.items():
            self._stir(place, first)
        self._meanwhile = {}
        still = found.before == found.number
        missed = any(first <= found.number and not (still and word in read) for word, first in self._stirred.items())
        self.number = 0 if missed else found.number if self._stirred else max(self._heard, found.number)

    def _keep(self, word: OpportunityId, find: Opportunity) -> None:
        self.open[word] = find
        self._near.setdefault(find.near, set()).add(word)

    def close(self) -> None:
        """Let the view sleep."""
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
    value = [np.inf] * table.height if kind.value is None else table[kind.value].to_list()
    events = table[kind.event].to_list()
    places = map(near, events, table["player_name"].to_list())
    sport, league = (table[each].fill_null("").to_list() for each in ("sport", "league"))
    columns = (value, events, sport, league, table[kind.market].to_list(), table["is_live"].to_list())
    return map(Opportunity, table["id"].to_list(), repeat(name), *columns, raw, steady, places)


def near(event: str, player: str | None) -> Near:
    """Where a price or an opportunity stands."""
    return event, catalog.normalise(player) if player else ""
