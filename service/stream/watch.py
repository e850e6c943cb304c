"""What a view of the engine holds open, as it goes out, kept up to date.

What an update changes in the view is *stirred*, and what stands beside a price of it is too: rows name other books'
prices. Looks read what was stirred, while updates go on. So what is open is of one update only if nothing else was
stirred up to the one that was read; `Watch.number` says which, or 0.

An opportunity that is not what it was is told again. Ages alone, and what follows from them, are no reason to; nor is
the range of an EV, which narrows as the start comes nearer.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine import View, catalog
from oddsengine.engine import Engine
from oddsengine.update import Update
from oddsengine_service.wire.arbitrage import arbitrage
from oddsengine_service.wire.ev import ev
from oddsengine_service.wire.low_hold import low_hold
from oddsengine_service.wire.middles import middle

KINDS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {
    "ev": ("ev", ev),
    "arbitrage": ("arb", arbitrage),
    "low_hold": ("low_hold", low_hold),
    "middles": ("middles", middle),
}
"""By their names in the engine, which are those of features: name in events, and row as it goes out."""
AGES = frozenset(
    {
        "oldest_odds_age_seconds", "odds_age_seconds", "possibly_stale", "warnings", "confidence", "confidence_score",
        "quality_score", "timestamp", "ev_low", "ev_high", "ev_error", "prob_positive", "kelly_shrunk",
    }
)  # fmt: skip
_encode = msgspec.json.Encoder().encode
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
    row: Any
    raw: msgspec.Raw
    steady: bytes  # all but ages; what is compared
    near: Near


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
        out = {}
        for kind, (_, made) in KINDS.items():
            table = getattr(frames, kind)
            if words is not None:
                table = table[[at for at, id_ in enumerate(table["id"].to_list()) if int(id_[-16:], 16) in words]]
            for row in table.iter_rows(named=True):
                find = _find(kind, row, made(row))
                out[int(find.id[-16:], 16)] = find
        return ViewSnapshot(out, before, after)


def _find(kind: str, row: Mapping[str, Any], made: Any) -> Opportunity:
    value = row["ev_percentage"] if kind == "ev" else row["profit_percent"] if kind == "arbitrage" else np.inf
    event, market = ("game_id", "market") if kind == "ev" else ("event_id", "market_type")
    return Opportunity(
        made.id, kind, value, row[event], row["sport"] or "", row["league"] or "", row[market], made,
        msgspec.Raw(_encode(made)), _encode(steady(msgspec.to_builtins(made))), near(row[event], row["player_name"]),
    )  # fmt: skip


def near(event: str, player: str | None) -> Near:
    """Where a price or an opportunity stands."""
    return event, catalog.normalise(player) if player else ""


def steady(value: Any) -> Any:
    """An opportunity without its ages."""
    if isinstance(value, dict):
        return {name: steady(each) for name, each in value.items() if name not in AGES}
    return [steady(each) for each in value] if isinstance(value, list) else value
