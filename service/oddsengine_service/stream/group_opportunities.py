"""Opportunities for subscribers: which of a watch's open opportunities are open for a group.

Each group has its own filters and thresholds: what falls below those of a group expires there, but not for others.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from oddsengine.detection.kinds import KINDS, tolerance
from oddsengine.query import values
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.stream.moves import RowForm
from oddsengine_service.stream.stream_events import SSE, Wire
from oddsengine_service.stream.watched_view import Opportunity, OpportunityId, ViewKey, Watch
from oddsengine_service.wire.contract import decorated, stateless
from oddsengine_service.wire.encodings import WITH_GAME_STATE
from oddsengine_service.wire.envelopes import GameState
from oddsengine_service.wire.numbers import american

_encode = msgspec.json.Encoder().encode


class OpportunityFilter(NamedTuple):
    """The filter of a group; subscribers with equal filters share one."""

    books: frozenset[str] | None
    sport: tuple[str, ...] | None
    league: tuple[str, ...] | None
    market: tuple[str, ...] | None
    event: tuple[str, ...] | None
    live: bool | None
    kinds: frozenset[str]
    min_ev: float
    min_profit: float
    form: RowForm
    game: Callable[[str], GameState | None] | None = None  # state of a game, for tiers with game states
    low: float | None = None  # American prices of all legs
    high: float | None = None
    include: tuple[str, ...] = ()  # as in `Engine.view`
    stake: float | None = None  # for which prices with levels are made
    same_terms: bool = False  # without those whose legs settle differently

    @property
    def least(self) -> Mapping[str, float]:
        """The minimum of the main figure by kind, of those that have one here."""
        return {"ev": self.min_ev, "arbitrage": self.min_profit}

    @property
    def view(self) -> ViewKey:
        """Books, thresholds, `include` and stake of the view to use; few threshold steps limit the number of views."""
        min_ev, min_profit = (KINDS[kind].threshold.step(value) for kind, value in self.least.items())
        assert min_ev is not None
        assert min_profit is not None
        return self.books, min_ev, min_profit, self.include, self.stake


class OpportunityGroup:
    """One group: filters, kinds and thresholds over a watch."""

    def __init__(self, filter_: OpportunityFilter, watch: Watch, wire: Wire = SSE) -> None:
        self.filter, self.watch, self.wire = filter_, watch, wire
        self.members = 0
        self.reached = 0  # number of the last update delivered; only in the event loop
        self._places: dict[tuple[str, str, str], bool] = {}
        self._least = {kind: value - tolerance() for kind, value in filter_.least.items()}
        self._open = {word: find for word, find in watch.open.items() if self._matches(find)}
        self.since: int | None = None  # events are complete from this update on
        self.idle: float | None = None  # when the last member left, while a client may resume
        self._changed: dict[OpportunityId, int] = {}
        self._expired: dict[tuple[str, str], int] = {}

    def events(self, changes: Mapping[OpportunityId, Opportunity | None], number: int) -> list[bytes]:
        """Events for changes of a watch, after an update."""
        here: dict[str, list[Opportunity]] = {}
        expired: dict[str, list[str]] = {}
        for word, find in changes.items():
            if find is not None and self._matches(find):
                here.setdefault(find.kind, []).append(find)
                self._open[word], self._changed[word] = find, number
                self._expired.pop((find.kind, find.id), None)
            elif word in self._open:
                lost = self._open.pop(word)
                expired.setdefault(lost.kind, []).append(lost.id)
                self._changed.pop(word, None)
                if self.wire.resumes:
                    self._expired[lost.kind, lost.id] = number
        out: list[bytes] = []
        for kind, form in KINDS.items():
            out += self.wire.expired(form.event_name, expired.get(kind, []))
        return out + self._detections(here)

    def beginning(self) -> list[bytes]:
        """Frames of the open opportunities."""
        here: dict[str, list[Opportunity]] = {kind: [] for kind in KINDS if kind in self.filter.kinds}
        for word, find in self._open.items():
            here[find.kind].append(self.watch.open.get(word, find))  # as it is now
        out = list[bytes]()
        for kind, finds in here.items():
            out += self.wire.opened(KINDS[kind].event_name, [self._row(find) for find in finds])
        return out

    def replay(self, since: int) -> list[bytes]:
        """Frames of opportunities that changed since an update."""
        here: dict[str, list[Opportunity]] = {}
        for word, number in self._changed.items():
            if number >= since:
                here.setdefault(self._open[word].kind, []).append(self._open[word])
        out: list[bytes] = []
        for kind, form in KINDS.items():
            expired = [id_ for (of, id_), number in self._expired.items() if of == kind and number >= since]
            out += self.wire.expired(form.event_name, expired)
        return out + self._detections(here)

    def forget(self, before: int) -> None:
        """Drop opportunities that expired before an update."""
        self._expired = {each: number for each, number in self._expired.items() if number >= before}

    def _detections(self, here: Mapping[str, list[Opportunity]]) -> list[bytes]:
        out = list[bytes]()
        for kind, form in KINDS.items():
            out += self.wire.detected(form.event_name, [self._row(find) for find in here.get(kind, [])])
        return out

    def _row(self, find: Opportunity) -> msgspec.Raw:
        wanted = self.filter
        game = None
        if wanted.game is not None and find.kind in WITH_GAME_STATE:
            game = wanted.game(find.event)
        if game is None and not wanted.form.state and not wanted.form.refs and not stateless(find.raw):
            return find.raw
        return msgspec.Raw(_encode(decorated(find.raw, game, wanted.form.state, refs=wanted.form.refs)))

    def _matches(self, find: Opportunity) -> bool:
        wanted = self.filter
        if find.kind not in wanted.kinds or find.value < self._least.get(find.kind, -np.inf):
            return False
        if wanted.event is not None and find.event not in wanted.event:
            return False
        if wanted.live is not None and find.live != wanted.live:
            return False
        if wanted.same_terms and find.terms_differ:
            return False
        if wanted.low is not None and find.low < american(wanted.low):
            return False
        if wanted.high is not None and find.high > american(wanted.high):
            return False
        place = find.sport, find.league, find.market
        matches = self._places.get(place)
        if matches is None:
            (matches,) = which_match(wanted, [find.sport], [find.league])
            if matches and wanted.market is not None:
                matches = values.in_markets(wanted.market, [(find.sport, find.market)])[0]
            self._places[place] = matches
        return matches
