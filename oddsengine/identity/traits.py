"""Properties of market kinds and books of a board, as arrays for kernels.

A kind is one period and family. Kinds and books are indices into the columns.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.columns import Bools, Bytes, Floats, Ints, Longs


class MarketKind(NamedTuple):
    """One period and family."""

    period: str
    family: str
    outcomes: tuple[str, ...]
    has_line: bool
    spread: bool
    prop: bool
    subject: str
    fraction: float  # of the game; 0 if scores do not scale
    stat: str


class BookFees(NamedTuple):
    """Commissions and fees of contracts, per book."""

    commission: Floats  # on winnings
    fee: Floats  # F of the fee F p (1 - p) per contract before the start
    live_fee: Floats  # and in play
    fee_step: Floats  # amount to whose multiples the fee of an order is rounded up

    def contract_fees(self, book: Ints | Longs, live: Bytes | Bools) -> Floats:
        """F of some prices."""
        return np.where(live, self.live_fee[book], self.fee[book])

    @property
    def charging(self) -> Bytes:
        """1: the book has a commission or a fee."""
        return np.asarray((self.commission != 0.0) | (self.fee != 0.0) | (self.live_fee != 0.0)).view(np.uint8)


class Traits(NamedTuple):
    """Columns by kind, then by book."""

    outcomes: Longs  # number by kind
    lined: Bytes  # has lines
    two_sided: Bytes  # has lines and two outcomes
    spread: Bytes  # lines are handicaps
    margin: Bytes  # the game's own margin: family `spread`
    prop: Bytes
    team: Bytes  # belongs to one team
    full_game: Bytes
    order: Ints  # place of the kind among all, by family and period: codes depend on what a board has seen first
    provider: Ints  # per book: the first book with the same odds provider
    exchange: Bytes
    mid: Bytes  # publishes mid prices
    parlay: Bytes  # accepts parlays only
    fees: BookFees
    consensus: Bytes  # sharp or an exchange: part of the catalog's consensus


def providers(books: Sequence[str]) -> Ints:
    """Return the provider of each book: the first book with the same odds provider."""
    first: dict[str, int] = {}
    entries = [catalog.book(b) for b in books]
    return np.array([first.setdefault(b.provider, at) for at, b in enumerate(entries)], np.int32)


def book_fees(books: Sequence[str]) -> BookFees:
    """The fees of books by the catalog."""
    entries = [catalog.book(b) for b in books]
    return BookFees(
        commission=np.array([b.commission for b in entries], np.float64),
        fee=np.array([b.fee for b in entries], np.float64),
        live_fee=np.array([b.contract_fee(live=True) for b in entries], np.float64),
        fee_step=np.array([b.fee_step for b in entries], np.float64),
    )


def traits(kinds: Sequence[MarketKind], books: Sequence[str]) -> Traits:
    """Look up the kinds and books of a board."""
    entries = [catalog.book(b) for b in books]
    in_order = sorted(range(len(kinds)), key=lambda at: (kinds[at].family, kinds[at].period))

    def flags(values: list[bool]) -> npt.NDArray[np.uint8]:
        return np.array(values, np.uint8)

    return Traits(
        outcomes=np.array([len(k.outcomes) for k in kinds], np.int64),
        lined=flags([k.has_line for k in kinds]),
        two_sided=flags([k.has_line and len(k.outcomes) == 2 for k in kinds]),
        spread=flags([k.spread for k in kinds]),
        margin=flags([k.family == "spread" for k in kinds]),
        prop=flags([k.prop for k in kinds]),
        team=flags([k.subject == "team" for k in kinds]),
        full_game=flags([k.period == catalog.FULL_GAME for k in kinds]),
        order=np.argsort(in_order).astype(np.int32),
        provider=providers(books),
        exchange=flags([b.exchange for b in entries]),
        mid=flags([b.mid_price for b in entries]),
        parlay=flags([b.parlay_only for b in entries]),
        fees=book_fees(books),
        consensus=flags([b.sharp or b.exchange for b in entries]),
    )
