"""Opportunities for subscribers: which of what a watch has open is open for a group.

Groups have filters and thresholds of their own: what falls below those of a group is expired there, though it lives on
for others.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine.query import values
from oddsengine_service.stream.events import RESUMABLE, SSE, StreamEvent, Wire, bodies
from oddsengine_service.stream.moves import Form
from oddsengine_service.stream.watch import KINDS, Opportunity, OpportunityId, Watch
from oddsengine_service.wire.numbers import american
from oddsengine_service.wire.references import with_leg_references
from oddsengine_service.wire.sides import with_links_in

EV_STEPS = (0.0, -2.0, -5.0, -10.0, -100.0)
PROFIT_STEPS = (0.5, 0.0, -2.0, -10.0, -99.0)
ViewKey = tuple[frozenset[str] | None, float, float, tuple[str, ...]]
_EPSILON = 1e-7  # percent, by which thresholds give way
_encode = msgspec.json.Encoder().encode


class OpportunityFilter(NamedTuple):
    """What a group wants; equal groups are one."""

    books: frozenset[str] | None
    sport: tuple[str, ...] | None
    league: tuple[str, ...] | None
    market: tuple[str, ...] | None
    event: tuple[str, ...] | None
    live: bool | None
    kinds: frozenset[str]
    min_ev: float
    min_profit: float
    form: Form
    add_game: Callable[[Any], Any] | None = None  # adds how a game stands, for who may know
    low: float | None = None  # American prices of all legs
    high: float | None = None
    include: tuple[str, ...] = ()  # as of `Engine.view`

    @property
    def view(self) -> ViewKey:
        """Books, thresholds and `include` of the view it needs: lowest steps, so that there are few views."""
        return self.books, _step(self.min_ev, EV_STEPS), _step(self.min_profit, PROFIT_STEPS), self.include


def _step(value: float, steps: Iterable[float]) -> float:
    found = 0.0
    for found in steps:
        if found <= value + _EPSILON:
            break
    return found


class OpportunityGroup:
    """One group: filters, kinds and thresholds over a watch."""

    def __init__(self, asked: OpportunityFilter, watch: Watch, wire: Wire = SSE) -> None:
        self.asked, self.watch, self.wire = asked, watch, wire
        self.members = 0
        self._places: dict[tuple[str, str, str], bool] = {}
        self._open = {word: find for word, find in watch.open.items() if self._fits(find)}
        self.since: int | None = None  # the update from which on what follows is complete
        self.idle: float | None = None  # when the last member left, while a client may resume
        self._changed: dict[OpportunityId, int] = {}
        self._gone: dict[tuple[str, str], int] = {}

    def events(self, looked: Mapping[OpportunityId, Opportunity | None], heard: int) -> list[StreamEvent]:
        """What a look means here, which is told after an update was heard."""
        here: dict[str, list[Opportunity]] = {}
        gone: dict[str, list[str]] = {}
        fresh: set[str] = set()
        for word, find in looked.items():
            if find is not None and self._fits(find):
                here.setdefault(find.kind, []).append(find)
                if word not in self._open:
                    fresh.add(find.id)
                self._open[word], self._changed[word] = find, heard
                self._gone.pop((find.kind, find.id), None)
            elif word in self._open:
                lost = self._open.pop(word)
                gone.setdefault(lost.kind, []).append(lost.id)
                self._changed.pop(word, None)
                if self.wire is RESUMABLE:
                    self._gone[lost.kind, lost.id] = heard
        out: list[StreamEvent] = []
        for kind, form in KINDS.items():
            out += self.wire.expired(form.event_name, gone.get(kind, []))
        return out + self._detections(here, fresh)

    def beginning(self) -> list[bytes]:
        """Frames of what is open now."""
        here: dict[str, list[Opportunity]] = {kind: [] for kind in KINDS if kind in self.asked.kinds}
        for find in self._open.values():
            here[find.kind].append(find)
        out = list[bytes]()
        for kind, finds in here.items():
            out += self.wire.opened(
                KINDS[kind].event_name, [find.id for find in finds], [self._row(find) for find in finds]
            )
        return out

    def replay(self, since: int) -> list[bytes]:
        """Frames of what became of opportunities from an update on."""
        here: dict[str, list[Opportunity]] = {}
        for word, number in self._changed.items():
            if number >= since:
                here.setdefault(self._open[word].kind, []).append(self._open[word])
        out: list[StreamEvent] = []
        for kind, form in KINDS.items():
            gone = [id_ for (of, id_), number in self._gone.items() if of == kind and number >= since]
            out += self.wire.expired(form.event_name, gone)
        return bodies(out + self._detections(here, ()))

    def forget(self, before: int) -> None:
        """Forget what expired before an update."""
        self._gone = {each: number for each, number in self._gone.items() if number >= before}

    def _detections(self, here: Mapping[str, list[Opportunity]], fresh: Container[str]) -> list[StreamEvent]:
        out = list[StreamEvent]()
        for kind, form in KINDS.items():
            finds = here.get(kind, [])
            rows = [self._row(find) for find in finds]
            out += self.wire.detected(
                form.event_name, [find.id for find in finds], rows, [find.id in fresh for find in finds]
            )
        return out

    def _row(self, find: Opportunity) -> msgspec.Raw:
        asked = self.asked
        if asked.add_game is None and not asked.form.state and not asked.form.refs:
            return find.raw
        row = find.row
        if asked.add_game is not None and find.kind in ("arbitrage", "low_hold"):
            row = asked.add_game(row)
        if asked.form.state:
            row = with_links_in(row, asked.form.state)
        if asked.form.refs:
            row = with_leg_references(row)
        return msgspec.Raw(_encode(row))

    def _fits(self, find: Opportunity) -> bool:
        asked = self.asked
        least = asked.min_ev if find.kind == "ev" else asked.min_profit if find.kind == "arbitrage" else -np.inf
        if find.kind not in asked.kinds or find.value < least - _EPSILON:
            return False
        if asked.event is not None and find.event not in asked.event:
            return False
        if asked.live is not None and find.live != asked.live:
            return False
        if asked.low is not None or asked.high is not None:
            prices = _prices(find.row)
            if asked.low is not None and min(prices) < american(asked.low):
                return False
            if asked.high is not None and max(prices) > american(asked.high):
                return False
        place = find.sport, find.league, find.market
        fits = self._places.get(place)
        if fits is None:
            fits = self._places[place] = self._chosen(*place)
        return fits

    def _chosen(self, sport: str, league: str, market: str) -> bool:
        asked = self.asked
        return (
            (asked.sport is None or values.in_sports(asked.sport, [sport])[0])
            and (asked.league is None or values.in_leagues(asked.league, [(sport, league)])[0])
            and (asked.market is None or values.in_markets(asked.market, [(sport, market)])[0])
        )


def _prices(row: Any) -> list[float]:
    """American prices of all legs of an opportunity."""
    if hasattr(row, "legs"):
        return [american(leg.odds_american) for leg in row.legs]
    sides = [side for name in ("side1", "side2", "side3") if (side := getattr(row, name, None))]
    return [american(side.odds.american) for side in sides] or [american(row.odds_american)]
