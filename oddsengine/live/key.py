"""The parameters of a view."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.detection.kinds import KINDS, check_thresholds, thresholds, usual
from oddsengine.detection.question import Sharp, chosen_method, included
from oddsengine.detection.sweep import Thresholds
from oddsengine.maths.devig import Method
from oddsengine.pricing.model import ModelPrices
from oddsengine.pricing.references import CLOSE, Reference, book_list, commission_rates, stake_of


class ViewKey(NamedTuple):
    """The parameters of a view; equal keys share one view. Thresholds are in percent."""

    books: tuple[str, ...] | None
    sharp: Any
    method: str
    commission: tuple[tuple[str, float], ...]
    limits: tuple[tuple[str, float | None], ...]  # thresholds by name, in order
    kinds: tuple[str, ...]
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
        KINDS.use("an engine has a view")
        resolved = chosen_method(method, sharp, model)
        named, by_book = book_list(books), commission_rates(commission)
        some = KINDS.some(kinds)
        Reference.parse(sharp)
        check_thresholds(limits)
        fixed: Any = sharp
        if isinstance(sharp, Mapping):
            fixed = tuple((book, float(weight)) for book, weight in sharp.items())
        elif sharp is not None and not isinstance(sharp, str):
            fixed = tuple(sharp)
        chosen = None if named is None else tuple(sorted({catalog.book(book).id for book in named}))
        rates = tuple(sorted(by_book.items()))
        plain = _sorted(usual(KINDS) | limits)
        amount, more = stake_of(stake), included(include)
        return cls(chosen, fixed, resolved, rates, plain, some, more, model, amount)

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> "ViewKey":
        """The parameters of `content`, of a tape or snapshot, in which tuples have become lists.

        Kinds that are not registered here are left out, with their thresholds; those of kinds that were not registered
        there are the usual ones.
        """
        given = {name: value for name, value in content.items() if name in KINDS.thresholds}
        others = {name: _tuples(value) for name, value in content.items() if name in cls._fields}
        others["kinds"] = tuple(kind for kind in others["kinds"] if kind in KINDS)
        return cls(limits=_sorted(usual(KINDS) | given), **others)

    @property
    def content(self) -> dict[str, Any]:
        """Its parameters by name, for tapes and snapshots."""
        left_out = {"model", "limits"} | ({"stake"} if self.stake is None else set())
        content: dict[str, Any] = {}
        for name, value in self._asdict().items():
            content |= dict(self.limits) if name == "limits" else {name: value}
        return {name: value for name, value in content.items() if name not in left_out}

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
        return any(KINDS[kind].referred for kind in self.kinds)

    def thresholds(self) -> Thresholds:
        """Its thresholds for a search, of the kinds that it searches for."""
        names = {each.name for kind in self.kinds for each in KINDS[kind].thresholds}
        return thresholds(**{name: value for name, value in self.limits if name in names})

    def conditions(self, kind: str) -> Hashable:
        """The part of the key that decides which opportunities of a kind are open."""
        limits, form = dict(self.limits), KINDS[kind]
        return (
            self.books, self.sharp, self.method, self.commission, self.model, self.stake,
            *(limits[each.name] for each in form.thresholds), *(word in self.include for word in form.include),
        )  # fmt: skip

    @property
    def reference(self) -> Sharp:
        """`sharp` as given."""
        weighted = isinstance(self.sharp, tuple) and self.sharp and isinstance(self.sharp[0], tuple)
        return dict(self.sharp) if weighted else self.sharp


def _sorted(limits: Mapping[str, float | None]) -> tuple[tuple[str, float | None], ...]:
    """Thresholds in order, as floats."""
    return tuple((name, None if limits[name] is None else float(limits[name])) for name in KINDS.thresholds)  # type: ignore[arg-type]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
