"""References: which prices define what is fair, and the fair prices that follow.

`view_spec` resolves a user's parameters to columns by book. `fair_prices` computes every price after commission, each
book's own fair probabilities, and each market's reference: a book, or a consensus. It does not depend on the books that
may be bet, so users who differ only in these share the result. Everything here is local to an event.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import inlined, kernel
from oddsengine.bounds import excerpt, is_number
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import NO_TIME, NONE, Bytes, Floats, Int, Ints, Words
from oddsengine.guards.main_markets import main_lines
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import BookFees, Traits
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_table, votes
from oddsengine.pricing.commission import Fees, PriceDepth, after_commission, after_fees, offered
from oddsengine.pricing.model import MODEL, ModelPrices
from oddsengine.pricing.one_sided import with_one_sided
from oddsengine.pricing.votes import CONSENSUS, complete

UNRANKED = np.iinfo(np.int32).max
"""The rank of a book that is no reference."""


class Reference(NamedTuple):
    """The books whose prices define what is fair: in order of preference, or with weights as a consensus."""

    order: tuple[str, ...]
    weights: tuple[float, ...] | None

    @classmethod
    def parse(cls, sharp: Any) -> "Reference":
        """Read the `sharp` parameter: None, one book, books in order, or {book: weight}."""
        if sharp is None:
            return cls(tuple(b.id for b in catalog.books().values() if b.sharp), None)
        if isinstance(sharp, str):
            return cls((sharp,), None)
        books = tuple(sharp) if isinstance(sharp, Sequence | Mapping) else ()
        if not isinstance(sharp, Sequence | Mapping) or not all(isinstance(book, str) for book in books):
            raise TypeError(
                f"sharp must be a book, books in order of preference or {{book: weight}}, got {excerpt(sharp)}"
            )
        if not isinstance(sharp, Mapping):
            return cls(books, None)
        bad = {b: w for b, w in sharp.items() if not (is_number(w) and w > 0.0)}
        if bad:
            raise ValueError(f"sharp weights must be finite numbers above 0, got {excerpt(bad)}")
        return cls(books, tuple(float(w) for w in sharp.values()))


def book_list(books: Iterable[str] | None) -> list[str] | None:
    """Validate the `books` parameter."""
    if books is None:
        return None
    if isinstance(books, str) or not isinstance(books, Iterable):
        raise ValueError(f"books must be a list of book ids, got {excerpt(books)}")
    named = list(books)
    if wrong := [book for book in named if not isinstance(book, str)]:
        raise ValueError(f"books must be strings, got {excerpt(wrong[0])}")
    return named


def commission_rates(commission: Mapping[str, float] | None) -> dict[str, float]:
    """Validate the `commission` parameter."""
    if not isinstance(commission, Mapping | None):
        raise ValueError(
            f"commission must be a rate by book, such as {{'betfair_exchange': 0.02}}, got {excerpt(commission)}"
        )
    for book, rate in (commission or {}).items():
        if not isinstance(book, str):
            raise ValueError(f"the keys of commission must be book ids, got {excerpt(book)}")
        if not (is_number(rate) and 0.0 <= rate < 1.0):
            raise ValueError(f"commission of {book} must be a rate from 0 to below 1, got {excerpt(rate)}")
    return {book: float(rate) for book, rate in (commission or {}).items()}


def stake_of(stake: float | None) -> float | None:
    """Validate the `stake` parameter."""
    if stake is not None and not (is_number(stake) and stake > 0.0):
        raise ValueError(f"stake must be None or a finite amount above 0, got {excerpt(stake)}")
    return None if stake is None else float(stake)


CLOSE = "close"
"""The method that uses the estimator's fair price instead of a reference's."""


class ViewSpec(NamedTuple):
    """The parameters of one user, resolved to columns by book."""

    method: str
    model: ModelPrices | None  # what the method `MODEL` uses
    suspects: bool  # pre-match prices rejected by `outlier` are offers too
    one_sided: bool  # prices in markets that too few books quote whole are judged too
    wanted: Bytes  # its prices are offers
    rank: Ints  # rank among the references, else the largest integer
    weight: Floats  # weight in the user's consensus
    member: Bytes  # belongs to the consensus
    weighted: bool  # the user gave weights, so the reference is always a consensus
    counted: Bytes  # counts in medians: offered, or a reference of the user
    fees: BookFees
    standard: bool  # these are the catalog's
    replaced: Bytes  # 1: the commission of the book is the user's
    stake: float | None = None  # for which prices with levels are made; None is the best level


class Users(NamedTuple):
    """The books that some users may bet."""

    wanted: Bytes  # (users, books): its prices are offers
    counted: Bytes  # (users, books): it counts in medians
    suspects: Bytes  # per user: 1 if +EV includes pre-match prices rejected by `outlier`
    by_book: Floats  # (books, users): `wanted` as 1.0 or 0.0

    @classmethod
    def of(cls, specs: Sequence[ViewSpec]) -> "Users":
        """Combine users, in order."""
        wanted, counted = (np.stack([getattr(spec, name) for spec in specs]) for name in ("wanted", "counted"))
        return cls.from_books(wanted, counted, np.array([spec.suspects for spec in specs], np.uint8))

    @classmethod
    def from_books(cls, wanted: Bytes, counted: Bytes, suspects: Bytes) -> "Users":
        """Users of these books."""
        return cls(wanted, counted, suspects, wanted.T.astype(np.float64, order="C"))


class PricedColumns(NamedTuple):
    """The prices of a board under one choice of references, method and commission; per row unless noted."""

    reason: Bytes  # code of the guard that rejected the row, or 0
    net: Floats  # price after commission, for the user's stake
    own: Floats  # fair probability in the row's own book, nan if its market is incomplete
    width: Floats  # overround of that market, a fraction
    trusted: Bytes  # may be a reference
    doubt: Bytes  # an opportunity that uses it is unconfirmed
    reference: Ints  # per market: the book, `NONE` or `CONSENSUS`
    fair: Floats  # per segment: the reference's probability, nan if none or a consensus
    live: Bytes  # per market


class ReferenceBooks(NamedTuple):
    """Whose prices define what is fair, and when one book's do not alone."""

    rank: Ints  # per book, as in `ViewSpec`, like the next two
    weight: Floats
    member: Bytes
    weighted: bool  # the reference is always a consensus, with these weights
    floor: float  # the least overround by which a consensus without weights divides
    width_limit: float  # overround above which one book is not the reference, but a consensus


@dataclass(frozen=True, eq=False)
class FairPrices:
    """The prices of a board under one choice of references, method and commission, and what they follow from.

    Users who differ only in their books share them.
    """

    groups: Groups
    traits: Traits
    columns: PricedColumns
    references: ReferenceBooks
    now: int
    method: str
    timed: bool  # legs must be close in time, and fresh if live
    limits: catalog.Thresholds
    widest: int  # largest number of outcomes of any market
    fees: Fees
    board: fair_close.CloseInput | None  # input of the estimator
    close: fair_close.Fair | None  # its result, if the method is `CLOSE`; or the prices of a model
    users: Users  # by default the one whose parameters these are

    @cached_property
    def offer(self) -> npt.NDArray[np.bool_]:
        """Per row: may be a leg of the first user."""
        return np.asarray((self.columns.reason == 0) & (self.users.wanted[0][self.groups.book] != 0))

    @cached_property
    def _lines(self) -> tuple[Bytes, Ints]:
        return main_lines(self.groups, self.columns.net, (~self.offer).view(np.uint8), self.users.wanted.shape[1])

    @property
    def main(self) -> Bytes:
        """Per market: the main line of its ladder, for the first user."""
        return self._lines[0]

    @property
    def books(self) -> Ints:
        """Per market: how many of the first user's books offer it."""
        return self._lines[1]


@inlined
def consensus_weight(row: Int, book: Int, columns: PricedColumns, references: ReferenceBooks) -> float:
    """The weight of a price in a consensus: its book's, or the less the wider its own market is.

    `row` is the price, `book` its book.
    """
    return references.weight[book] if references.weighted else 1.0 / max(columns.width[row], references.floor)


@kernel
def _refer(
    needed: Bytes, g: Groups, entry_rows: Ints, entry_prob: Floats, references: ReferenceBooks, out: PricedColumns
) -> None:
    """Set each row's own fair probability and width, and each market's reference with its probabilities if one book.

    Entries are those of `complete`, grouped by market.

    - `needed` (per market): 1 if its reference is needed
    - `entry_rows`, `entry_prob`: rows of the entries and their fair probabilities
    """
    entry = 0
    for m in range(g.segments.size - 1):
        if needed[m] == 0:
            continue
        s0, s1 = g.segments[m], g.segments[m + 1]
        first, end = g.rows[s0], g.rows[s1]
        for i in range(first, end):
            out.own[i] = np.nan
            out.width[i] = np.nan
        while entry < entry_rows.size and entry_rows[entry] < end:
            n = s1 - s0
            total = 0.0
            for k in range(n):
                total += 1.0 / out.net[entry_rows[entry + n - 1 - k]]
            for k in range(entry, entry + n):
                out.own[entry_rows[k]] = entry_prob[k]
                out.width[entry_rows[k]] = total - 1.0
            entry += n
        best_rank = np.int32(UNRANKED)
        best_book = np.int32(NONE)
        is_wide = False
        for i in range(first, end):
            b = g.book[i]
            is_better = references.member[b] != 0 if references.weighted else references.rank[b] < best_rank
            if is_better and out.trusted[i] != 0 and not np.isnan(out.own[i]):
                if references.weighted:
                    best_book = np.int32(CONSENSUS)
                else:
                    best_rank = references.rank[b]
                    best_book = b
                    is_wide = out.width[i] > references.width_limit
        if is_wide:
            best_book = np.int32(CONSENSUS)
        out.reference[m] = best_book
        for s in range(s0, s1):
            out.fair[s] = np.nan
            if best_book >= 0:
                for i in range(g.rows[s], g.rows[s + 1]):
                    if g.book[i] == best_book and out.trusted[i] != 0 and not np.isnan(out.own[i]):
                        out.fair[s] = out.own[i]


def view_spec(
    names: Sequence[str], traits: Traits, books: Iterable[str] | None, sharp: Any, method: str,
    commission: Mapping[str, float] | None, *, include: Container[str] = (), model: ModelPrices | None = None,
    stake: float | None = None,
) -> ViewSpec:  # fmt: skip
    """Resolve the parameters of a user.

    Parameters
    ----------
    names, traits
        The books of a board, and their properties.
    books
        Books whose prices are offers; None means all. Last traded prices are none, whatever guards run.
    sharp, method, commission
        As in the public detectors; `commission` replaces the catalog's rates, book by book.
    include
        As in the public detectors.
    model
        Probabilities for the method `MODEL`.
    stake
        The stake for which prices with levels are made.
    """
    reference = Reference.parse(sharp)
    # Books are matched by their id in the catalog, however they are spelled.
    ids = [catalog.book(b).id for b in names]
    chosen = None if books is None else {catalog.book(b).id for b in books}
    offering = (chosen is None or b in chosen for b in ids)
    wanted = np.array([yes and not catalog.book(b).last_traded for b, yes in zip(ids, offering, strict=True)], np.uint8)
    rank = np.full(len(ids), UNRANKED, np.int32)
    weight = np.ones(len(ids))
    member = traits.consensus.copy()
    if reference.weights is not None:
        member[:] = 0
    for place, book in enumerate(reference.order):
        for at in np.flatnonzero([b == catalog.book(book).id for b in ids]):
            rank[at] = place
            member[at] = 1
            weight[at] = reference.weights[place] if reference.weights is not None else 1.0
    fees, replaced = BookFees(*(column.copy() for column in traits.fees)), np.zeros(len(ids), np.uint8)
    for book, given in commission_rates(commission).items():
        for at in np.flatnonzero([b == catalog.book(book).id for b in ids]):
            fees.commission[at], fees.fee[at], fees.live_fee[at], replaced[at] = given, 0.0, 0.0, 1
    return ViewSpec(
        method=method,
        model=model,
        suspects="suspect" in include,
        one_sided="one_sided" in include,
        wanted=wanted,
        rank=rank,
        weight=weight,
        member=member,
        weighted=reference.weights is not None,
        counted=wanted | (rank < UNRANKED),
        fees=fees,
        standard=all(map(np.array_equal, fees, traits.fees)),
        replaced=replaced,
        stake=stake,
    )


def fair_prices(
    groups: Groups,
    traits: Traits,
    guarded: Verdicts,
    spec: ViewSpec,
    off: frozenset[int],
    *,
    referred: bool = True,
    needed: Bytes | None = None,
    board: fair_close.CloseInput | None = None,
    ladder: Words | None = None,
    depth: PriceDepth | None = None,
    users: Users | None = None,
) -> FairPrices:
    """Compute fair prices for the references, method and commission of a user.

    Parameters
    ----------
    groups, traits, guarded
        A board, or a part of it with complete events; and the verdicts on its rows.
    spec
        The user's parameters. The books are not used: users whose other parameters are equal share the result.
    off
        Codes of disabled guards.
    referred
        False skips references, which sums of prices do not need; no price has an edge then.
    needed
        Markets whose references are needed; None means all. The results of the others are undefined.
    board
        Input of the estimator; required by the method `CLOSE`.
    ladder
        Hashes of the ladders; required by a model.
    depth
        Fees and levels of single prices.
    users
        The users who share the result; None means the one with these parameters.
    """
    g, limits = groups, guarded.limits
    n, markets, segments = g.row.size, g.threshold.size, g.rows.size - 1
    live = g.live_of(slice(None))
    net = after_fees(g.odds, g.book, live, spec.fees) if spec.fees.charging.any() else g.odds
    widest = int(traits.outcomes.max(initial=2))
    trusted = ((guarded.reason | guarded.not_reference) == 0).view(np.uint8)
    columns = PricedColumns(
        guarded.reason, net, np.full(n, np.nan), np.full(n, np.nan), trusted, guarded.doubt,
        np.full(markets, NONE, np.int32), np.full(segments, np.nan), g.live[g.ladder],
    )  # fmt: skip
    references = ReferenceBooks(
        spec.rank, spec.weight, spec.member, spec.weighted, float(limits.reference_floor),
        float(limits.reference_wide + limits.epsilon),
    )  # fmt: skip
    if referred:
        entry_rows, entry_odds = np.empty(n, np.int32), np.empty(n)
        entry_ends = np.zeros(n // 2 + 2, np.int64)
        some = np.ones(markets, np.uint8) if needed is None else needed
        entries = complete(
            some, g.segments, g.rows, g.book, net, guarded.reason, np.empty(widest, np.int64),
            np.empty(widest, np.int32), entry_rows, entry_odds, entry_ends,
        )  # fmt: skip
        entry_ends = entry_ends[: entries + 1]
        used = entry_ends[-1]
        _refer(
            some, g, entry_rows[:used], devig_groups(entry_odds[:used], entry_ends, devig_method(spec.method)),
            references, columns,
        )  # fmt: skip
    close = None
    if referred and spec.method == CLOSE and board is not None:
        logits = board.logits
        if not spec.standard:
            logits = votes.of_books(g, net, board.times.changed, guarded.reason, widest, board.of.table, board.voting)
        barred = fair_close.gross(traits, spec.fees)
        close = fair_close.estimate(
            board.of, g, traits, net, guarded.reason, barred, board.times, board.momentum, logits, board.needed,
            *((board.known,) if spec.standard else ()),
        )  # fmt: skip
        if spec.one_sided:
            close = with_one_sided(g, traits, net, guarded.reason, barred, logits, board, close)
    if referred and spec.model is not None and ladder is not None:
        close = spec.model.fair(g, ladder)
    fees = Fees(spec.fees, spec.replaced, depth)
    if depth is not None or spec.stake is not None:  # what is offered; the fair prices above are from the best levels
        columns = columns._replace(net=offered(g.odds, g.book, live, net, fees, spec.stake))
    return FairPrices(
        groups=g,
        traits=traits,
        columns=columns,
        references=references,
        now=guarded.now,
        method=spec.method,
        timed=CODES["stale"] not in off and guarded.now != NO_TIME,
        limits=limits,
        widest=widest,
        fees=fees,
        board=board,
        close=close,
        users=Users.of([spec]) if users is None else users,
    )


def devig_method(method: str) -> str:
    """The devig method of a view's method: `CLOSE` and `MODEL` use power, like the estimator's votes."""
    return "power" if method in (CLOSE, MODEL) else method


def close_input(
    of: close_table.Estimator, groups: Groups, traits: Traits, reason: Bytes, times: fair_close.Times,
    momentum: Callable[[votes.BookLogits], Floats | None], voting: Bytes | None = None,
) -> fair_close.CloseInput:  # fmt: skip
    """Collect the estimator's input from a board or some ladders of it; `momentum` is called with the votes."""
    net = after_commission(groups, traits)
    widest = int(traits.outcomes.max(initial=2))
    logits = votes.of_books(groups, net, times.changed, reason, widest, of.table, voting)
    return fair_close.CloseInput(of, times, momentum(logits), logits, voting)
