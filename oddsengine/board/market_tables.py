"""What is resolved for the kinds of market, the sports of the events and the books of a board."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from oddsengine import catalog
from oddsengine.board.codes import Books, Codes, Copyable
from oddsengine.board.events import Events
from oddsengine.detection.tails import Forms, forms
from oddsengine.identity.linked_outcomes import Rules, rules
from oddsengine.identity.traits import MarketKind, Traits, traits
from oddsengine.pricing.close_table import Estimator, estimator

T = TypeVar("T")


class MarketTables(Copyable):
    """Tables by the codes of a board, made again once there are more codes or an event is of another sport."""

    def __init__(self, kinds: Codes[MarketKind], events: Events, books: Books) -> None:
        self._kinds, self._events, self._books = kinds, events, books
        self._made: dict[str, tuple[Hashable, Any]] = {}  # tables, and what they were made for

    @property
    def traits(self) -> Traits:
        """Traits of the kinds, and of the books in order of rank."""
        kinds, books = self._kinds.values, self._books
        now = len(kinds), len(books.values)
        return self._current("traits", now, lambda: traits(kinds, books.ranked()))

    @property
    def forms(self) -> Forms:
        """Distributions of the kinds in the sports of the events."""
        return self._current("forms", self._markets, lambda: forms(self._kinds.values, self._events.sports))

    @property
    def equivalents(self) -> Rules:
        """Outcomes of the kinds that settle on the same fact in the sports of the events."""
        return self._current("equivalents", self._markets, lambda: rules(self._kinds.values, self._events.sports))

    def estimator(self, table: catalog.FairTable) -> Estimator:
        """The estimator's table, resolved for the kinds, events and books."""
        return self._current(
            "estimator",
            (self._markets, len(self._books.values), id(table)),
            lambda: estimator(self._kinds.values, self._events.sports, self._books.ranked(), table),
        )

    @property
    def _markets(self) -> tuple[int, int, int]:
        return len(self._kinds.values), len(self._events.sports), self._events.moves

    def _current(self, name: str, now: Hashable, make: Callable[[], T]) -> T:
        made = self._made.get(name)
        if made is None or made[0] != now:
            made = self._made[name] = now, make()
        return cast(T, made[1])
