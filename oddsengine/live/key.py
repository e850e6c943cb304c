"""The parameters of a view."""

from collections.abc import Hashable, Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.board.open import KINDS
from oddsengine.detection.question import Sharp, chosen_method, included, some_of
from oddsengine.detection.sweep import Wants
from oddsengine.maths.devig import Method
from oddsengine.pricing.model import ModelPrices
from oddsengine.pricing.references import CLOSE, Reference, book_list, commission_rates, stake_of


class ViewKey(NamedTuple):
    """The parameters of a view; equal keys share one view. Thresholds are in percent."""

    books: tuple[str, ...] | None
    sharp: Any
    method: str
    commission: tuple[tuple[str, float], ...]
    min_ev: float
    min_profit: float
    max_hold: float
    min_size: float
    min_middle_ev: float | None
    max_profit: float | None
    kinds: tuple[str, ...] = KINDS
    include: tuple[str, ...] = ()
    model: ModelPrices | None = None  # of this process: neither recorded nor in snapshots
    stake: float | None = None  # for which prices with levels are made

    @classmethod
    def from_parameters(
        cls, books: Iterable[str] | None, sharp: Sharp, method: Method | None,
        commission: Mapping[str, float] | None, kinds: Iterable[str] = KINDS, include: Iterable[str] = (),
        model: ModelPrices | None = None, /, stake: float | None = None, **limits: float | None,
    ) -> "ViewKey":  # fmt: skip
        """Validate the parameters of `Engine.view`."""
        resolved = chosen_method(method, sharp, model)
        named, by_book = book_list(books), commission_rates(commission)
        some = kinds_of(kinds)
        Reference.parse(sharp)
        for name, value in limits.items():
            optional = name in ("min_middle_ev", "max_profit")
            if not (value is None and optional) and not (isinstance(value, Real) and abs(float(value)) < np.inf):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
            least = {"min_profit": -99.0, "max_hold": 0.0, "min_size": 0.0}.get(name, -1e6)
            if value is not None and not least <= float(value) <= 1e6:
                raise ValueError(f"{name} must be from {least:g} to 1000000, got {value!r}")
        fixed: Any = sharp
        if isinstance(sharp, Mapping):
            fixed = tuple((book, float(weight)) for book, weight in sharp.items())
        elif sharp is not None and not isinstance(sharp, str):
            fixed = tuple(sharp)
        chosen = None if named is None else tuple(sorted({catalog.book(book).id for book in named}))
        rates = tuple(sorted(by_book.items()))
        plain = {name: None if value is None else float(value) for name, value in limits.items()}
        amount, more = stake_of(stake), included(include)
        return cls(chosen, fixed, resolved, rates, kinds=some, include=more, model=model, stake=amount, **plain)  # type: ignore[arg-type]

    @property
    def content(self) -> dict[str, Any]:
        """Its parameters by name, for tapes and snapshots."""
        left_out = ("model",) if self.stake is not None else ("model", "stake")  # as before there was one
        return {name: value for name, value in self._asdict().items() if name not in left_out}

    @property
    def shared(self) -> tuple[Any, ...]:
        """The part of the key that views can share: all but books and thresholds."""
        return self.sharp, self.method, self.commission, self.referred, self.model, self.stake, self.one_sided

    @property
    def one_sided(self) -> bool:
        """Whether one-sided prices are judged too."""
        return "one_sided" in self.include and self.method == CLOSE

    @property
    def referred(self) -> bool:
        """Whether any of its kinds needs a reference; sums of prices do not."""
        return "ev" in self.kinds or "middles" in self.kinds

    def wants(self) -> Wants:
        """Its thresholds as fractions for a search."""
        least = -np.inf if self.min_middle_ev is None else self.min_middle_ev
        return Wants.from_thresholds(
            min_ev=self.min_ev if "ev" in self.kinds else None,
            min_profit=self.min_profit if "arbitrage" in self.kinds else None,
            max_profit=self.max_profit,
            max_hold=self.max_hold if "low_hold" in self.kinds else None,
            min_middle_ev=least if "middles" in self.kinds else None,
            min_size=self.min_size,
        )

    def conditions(self, kind: str) -> Hashable:
        """The part of the key that decides which opportunities of a kind are open."""
        own: dict[str, tuple[Any, ...]] = {
            "ev": (self.min_ev, "suspect" in self.include, self.one_sided), "arbitrage": (self.min_profit,),
            "low_hold": (self.max_hold,), "middles": (self.min_middle_ev, self.min_size),
        }  # fmt: skip
        return (
            self.books, self.sharp, self.method, self.commission, self.max_profit, self.model, self.stake, *own[kind]
        )  # fmt: skip

    @property
    def reference(self) -> Sharp:
        """`sharp` as given."""
        weighted = isinstance(self.sharp, tuple) and self.sharp and isinstance(self.sharp[0], tuple)
        return dict(self.sharp) if weighted else self.sharp


def kinds_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """Validate kinds of opportunities, and return them in their order."""
    some = some_of("kinds", kinds, KINDS)
    if not some:
        raise ValueError(f"kinds must be a list of {', '.join(KINDS)}, got {kinds!r}")
    return some
