"""Opportunities for subscribers: what is open over some books, and which of it is open for a group.

A `Watch` keeps what one view of the engine holds open, as it goes out. Groups have filters and thresholds of their
own: what falls below those of a group is expired there, though it lives on for others. An opportunity that is not what
it was is sent again under its id; ages alone, and what follows from them, are no reason to.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine import catalog
from oddsengine.engine import Engine
from oddsengine.update import Change
from oddsengine.view import View
from service import filters
from service.stream.sse import CHUNK, Expired, clock, frame
from service.wire.arbitrage import arbitrage
from service.wire.ev import ev
from service.wire.low_hold import low_hold
from service.wire.middles import middle

KINDS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {
    "ev": ("ev", ev),
    "arbitrage": ("arb", arbitrage),
    "low_hold": ("low_hold", low_hold),
    "middles": ("middles", middle),
}
"""By their names in the engine, which are those of features: name in events, and row as it goes out."""
EV_STEPS = (0.0, -2.0, -5.0, -10.0, -100.0)
PROFIT_STEPS = (0.5, 0.0, -2.0, -10.0, -99.0)
AGES = frozenset(
    {
        "oldest_odds_age_seconds", "odds_age_seconds", "possibly_stale", "warnings", "confidence", "confidence_score",
        "quality_score", "timestamp",
    }
)  # fmt: skip
_EPSILON = 1e-7  # percent, by which thresholds give way
_encode = msgspec.json.Encoder().encode
Word = int  # id of an opportunity as the engine has it
Near = tuple[str, str]  # event and player: what stands beside each other


class Find(NamedTuple):
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


class Asked(NamedTuple):
    """What a group wants; equal groups are one."""

    books: frozenset[str] | None
    sport: tuple[str, ...] | None
    league: tuple[str, ...] | None
    market: tuple[str, ...] | None
    event: tuple[str, ...] | None
    kinds: frozenset[str]
    min_ev: float
    min_profit: float
    state: str

    @property
    def view(self) -> tuple[frozenset[str] | None, float, float]:
        """Books and thresholds of the view it needs: lowest steps, so that there are few views."""
        return self.books, _step(self.min_ev, EV_STEPS), _step(self.min_profit, PROFIT_STEPS)


def _step(value: float, steps: Iterable[float]) -> float:
    found = 0.0
    for found in steps:
        if found <= value + _EPSILON:
            break
    return found


class Watch:
    """What a view holds open."""

    def __init__(self, engine: Engine, books: frozenset[str] | None, min_ev: float, min_profit: float) -> None:
        self._view: View | None = None
        if books is None or books:
            self._view = engine.view(books, min_ev=min_ev, min_profit=min_profit, keep=True)
        self.members = 0
        self.open: dict[Word, Find] = {}
        self._near: dict[Near, set[Word]] = {}
        self._stirred: set[Word] = set()
        self._looking = True  # until `fill`
        self._meanwhile: set[Near] = set()  # what was touched since the look that is under way began

    @property
    def stirred(self) -> bool:
        """Whether there is something to look at, and nobody is looking."""
        return bool(self._stirred) and not self._looking

    def hear(self, views: Mapping[View, Change], touched: Iterable[Near]) -> None:
        """Note what an update changed, and what stands beside a price of it."""
        change = views.get(self._view) if self._view is not None else None
        if change is not None:
            self._stirred.update(change.hits.id.tolist(), change.expired.tolist())
        if self._looking:  # it may stand beside what is only being found
            self._meanwhile.update(touched)
        else:
            self._stir(touched)

    def _stir(self, touched: Iterable[Near]) -> None:
        for place in touched if self._near else ():
            self._stirred.update(self._near.get(place, ()))

    def fill(self, found: Mapping[Word, Find]) -> None:
        """Take what is open at the beginning."""
        for word, find in found.items():
            self._keep(word, find)
        self._looked()

    def look(self) -> set[Word]:
        """What is to be read; `settle` takes what came of it."""
        stirred, self._stirred, self._looking = self._stirred, set(), True
        return stirred

    def settle(self, stirred: set[Word], found: Mapping[Word, Find]) -> dict[Word, Find | None]:
        """What is new or not what it was, and what is no more."""
        out: dict[Word, Find | None] = {}
        for word in stirred:
            find, before = found.get(word), self.open.get(word)
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
        self._looked()
        return out

    def _looked(self) -> None:
        self._looking = False
        self._stir(self._meanwhile)
        self._meanwhile = set()

    def _keep(self, word: Word, find: Find) -> None:
        self.open[word] = find
        self._near.setdefault(find.near, set()).add(word)

    def close(self) -> None:
        """Let the view sleep."""
        if self._view is not None:
            self._view.kept = False

    def read(self, words: set[Word] | None) -> dict[Word, Find]:
        """What is open now of some opportunities, or of all; from any thread."""
        if self._view is None:
            return {}
        near = None if words is None else np.fromiter(words, np.uint64, len(words))
        frames = self._view.opportunities(near=near)
        out = {}
        for kind, (_, made) in KINDS.items():
            table = getattr(frames, kind)
            if words is not None:
                table = table[[at for at, id_ in enumerate(table["id"].to_list()) if int(id_[-16:], 16) in words]]
            for row in table.iter_rows(named=True):
                find = _find(kind, row, made(row))
                out[int(find.id[-16:], 16)] = find
        return out


def _find(kind: str, row: Mapping[str, Any], made: Any) -> Find:
    value = row["ev_percentage"] if kind == "ev" else row["profit_percent"] if kind == "arbitrage" else np.inf
    event, market = ("game_id", "market") if kind == "ev" else ("event_id", "market_type")
    return Find(
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


class Finds:
    """One group: filters, kinds and thresholds over a watch."""

    def __init__(self, asked: Asked, watch: Watch) -> None:
        self.asked, self.watch = asked, watch
        self.members = 0
        self._places: dict[tuple[str, str, str], bool] = {}
        self._open = {word: find for word, find in watch.open.items() if self._fits(find)}

    def frames(self, looked: Mapping[Word, Find | None]) -> list[bytes]:
        """What a look means here."""
        detected: dict[str, list[Find]] = {}
        expired: dict[str, list[str]] = {}
        for word, find in looked.items():
            if find is not None and self._fits(find):
                detected.setdefault(find.kind, []).append(find)
                self._open[word] = find
            elif word in self._open:
                gone = self._open.pop(word)
                expired.setdefault(gone.kind, []).append(gone.id)
        return [*self._expiries(expired), *self._detections(detected)]

    def beginning(self) -> list[bytes]:
        """What is open now."""
        detected: dict[str, list[Find]] = {}
        for find in self._open.values():
            detected.setdefault(find.kind, []).append(find)
        return self._detections(detected)

    def _detections(self, detected: Mapping[str, list[Find]]) -> list[bytes]:
        out, state = [], self.asked.state
        for kind, (name, _) in KINDS.items():
            finds = detected.get(kind, [])
            for first in range(0, len(finds), CHUNK):
                some = finds[first : first + CHUNK]
                out.append(
                    frame(f"{name}:detected", [_localised(find.row, state) if state else find.raw for find in some])
                )
        return out

    def _expiries(self, expired: Mapping[str, list[str]]) -> list[bytes]:
        out = []
        for kind, (name, _) in KINDS.items():
            if kind in expired:
                told = Expired(expired[kind], clock()) if name in ("ev", "arb") else Expired(expired[kind])
                out.append(frame(f"{name}:expired", told))
        return out

    def _fits(self, find: Find) -> bool:
        asked = self.asked
        least = asked.min_ev if find.kind == "ev" else asked.min_profit if find.kind == "arbitrage" else -np.inf
        if find.kind not in asked.kinds or find.value < least - _EPSILON:
            return False
        if asked.event is not None and find.event not in asked.event:
            return False
        place = find.sport, find.league, find.market
        fits = self._places.get(place)
        if fits is None:
            fits = self._places[place] = self._chosen(*place)
        return fits

    def _chosen(self, sport: str, league: str, market: str) -> bool:
        asked = self.asked
        return (
            (asked.sport is None or filters.in_sports(asked.sport, [sport])[0])
            and (asked.league is None or filters.in_leagues(asked.league, [(sport, league)])[0])
            and (asked.market is None or filters.in_markets(asked.market, [(sport, market)])[0])
        )


def _localised(row: Any, state: str) -> Any:
    """A row whose links lead to the books' sites in a state."""
    changed: dict[str, Any] = {}
    for name in ("side1", "side2", "side3"):
        side: Any = getattr(row, name, None)
        links = getattr(side, "deep_links", None)
        if links is not None:
            links = {book: catalog.localised(link, state) for book, link in links.items()}
            changed[name] = msgspec.structs.replace(side, deep_links={book: url for book, url in links.items() if url})
        elif getattr(side, "deep_link", None):
            changed[name] = msgspec.structs.replace(side, deep_link=catalog.localised(side.deep_link, state) or None)
    return msgspec.structs.replace(row, **changed) if changed else row
