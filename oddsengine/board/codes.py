"""Codes for texts and other values, and columns by code.

Codes are assigned in order of appearance, and columns only grow, so a reference to a list or to the values of a column
stays valid.
"""

import copy
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.columns import Ints, grown
from oddsengine.detection.opportunity_ids import hash_books, hash_text
from oddsengine.identity.layout import BOOK_BITS, too_many
from oddsengine.identity.packed_terms import MOST_SUBJECTS
from oddsengine.identity.traits import MarketKind

T = TypeVar("T")
_OWNERS = ("", "home", "away")  # subjects that are not players


class Copyable:
    """A deep copy shares texts and read-only objects, and has a copy of what can change."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = type(self).__new__(type(self))
        for name, value in vars(self).items():
            changes = isinstance(value, Copyable)
            setattr(fresh, name, copy.deepcopy(value, memo) if changes else copy.copy(value))
        return fresh


class GrowingColumn(Copyable):
    """A numpy column with `append`; growing it leaves earlier `values` unchanged."""

    def __init__(self, dtype: npt.DTypeLike, width: int = 1) -> None:
        self._data: npt.NDArray[Any] = np.zeros(256 if width == 1 else (256, width), dtype)
        self.size = 0

    def append(self, value: Any) -> None:
        """Add one value (or row of values)."""
        self._data = grown(self._data, self.size + 1)
        self._data[self.size] = value
        self.size += 1

    @property
    def values(self) -> npt.NDArray[Any]:
        """The current values, writable in place by the owner."""
        return self._data[: self.size]


class Codes(Copyable, Generic[T]):
    """Distinct values; the code of each is its index in `values`."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.codes: dict[T, int] = {}

    def code(self, value: T) -> int:
        """Code of a value; a new one is added."""
        code = self.codes.get(value)
        return self._add(value) if code is None else code

    def _add(self, value: T) -> int:
        code = self.codes[value] = len(self.values)
        self.values.append(value)
        return code


class HashedCodes(Codes[T]):
    """Values, and for each the hash of a text that it stands for."""

    def __init__(self, text: Callable[[T], str]) -> None:
        super().__init__()
        self._text = text
        self.hash = GrowingColumn(np.uint64)

    def _add(self, value: T) -> int:
        self.hash.append(hash_text(self._text(value)))
        return super()._add(value)


class RankedCodes(Codes[str]):
    """Texts, and the rank of each in their order."""

    def __init__(self) -> None:
        super().__init__()
        self._rank: Ints = np.empty(0, np.int32)

    @property
    def rank(self) -> Ints:
        """Ranks of the texts, by code."""
        if self._rank.size < len(self.values):
            order = sorted(range(len(self.values)), key=self.values.__getitem__)
            rank = np.empty(len(order), np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            self._rank = rank
        return self._rank


class Books(RankedCodes):
    """Books in the spelling that came first; all spellings of a book have its code."""

    def __init__(self) -> None:
        super().__init__()
        self._by_id: dict[str, int] = {}  # codes by id in the catalog
        self.hash = GrowingColumn(np.uint64)  # of row ids
        self.id_hash = GrowingColumn(np.uint64)  # of ids of opportunities
        self.whole = True  # False while they change, and after a change that was interrupted

    def find(self, name: str) -> int | None:
        """Code of a book in any spelling, or None if it was never quoted."""
        return self.codes.get(name, self._by_id.get(catalog.book(name).id))

    def ranked(self) -> tuple[str, ...]:
        """The books in order of rank."""
        return tuple(sorted(self.values))

    def _add(self, value: str) -> int:
        id_ = catalog.book(value).id
        code = self._by_id.get(id_)
        if code is None:
            if len(self.values) >= 1 << BOOK_BITS:
                raise too_many("books", value, 1 << BOOK_BITS)
            self.whole = False
            self.hash.append(hash_text(value))
            self.id_hash.append(hash_books([value])[0])
            code = self._by_id[id_] = super()._add(value)
            self.whole = True
        self.codes[value] = code
        return code


class Subjects(HashedCodes[str]):
    """What markets are about: nothing, the home team, the away team, or a player."""

    def __init__(self) -> None:
        super().__init__(str)
        for owner in _OWNERS:
            self._add(owner)
        del self.codes["home"], self.codes["away"]  # players may be called so

    def of_kind(self, name: str, kind: MarketKind) -> int:
        """Code of the subject of a market; a new player is added."""
        return self.code(name) if kind.subject == "player" else _OWNERS.index(name)

    def _add(self, value: str) -> int:
        if len(self.values) == MOST_SUBJECTS:
            raise too_many("players", value, MOST_SUBJECTS)
        return super()._add(value)
