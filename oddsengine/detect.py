"""Detection: which surviving prices, of the books asked for, make an opportunity.

`view` fixes what a caller looks at: the books offered, the references, the price after commission. `scan` is the fast
pass over all of it: best price per outcome, their sum per market, the best edge against the reference, the best pair
of lines. It only ever errs by naming too much. The functions after it look closely at what it named:

- `best_legs`: the best admissible prices, one an outcome (arbitrage, low hold, middles)
- `edges`: each book's edge over the fair probability (+EV)
- `pairs`: pairs of lines (middles)

Prices are after commission; a market with an outcome that nobody offers has the sum infinity.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import fused, kernel
from oddsengine.devig import devig_groups
from oddsengine.groups import NO_TIME, Bytes, Floats, Groups, Ints, Longs
from oddsengine.guards import Guarded, main_lines
from oddsengine.markets import Identity
from oddsengine.reasons import CODES

_UNRANKED = np.iinfo(np.int32).max


class Reference(NamedTuple):
    """Whose prices say what is fair: books in order of preference, or weights of a consensus."""

    order: tuple[str, ...]
    weights: tuple[float, ...] | None

    @classmethod
    def of(cls, sharp: Any) -> "Reference":
        """Read the `sharp` parameter: None, one book, books in order, or {book: weight}."""
        if sharp is None:
            return cls(tuple(b.id for b in catalog.books().values() if b.sharp), None)
        if isinstance(sharp, str):
            return cls((sharp,), None)
        books = tuple(sharp) if isinstance(sharp, Sequence | Mapping) else ()
        if not isinstance(sharp, Sequence | Mapping) or not all(isinstance(book, str) for book in books):
            raise TypeError(f"sharp takes a book, books in order of preference or {{book: weight}}, got {sharp!r}")
        if not isinstance(sharp, Mapping):
            return cls(books, None)
        bad = {b: w for b, w in sharp.items() if not (isinstance(w, Real) and 0.0 < float(w) < np.inf)}
        if bad:
            raise ValueError(f"sharp weights must be finite numbers above 0, got {bad}")
        return cls(books, tuple(float(w) for w in sharp.values()))


class View(NamedTuple):
    """The prices one caller looks at, aligned with the rows and markets of `groups`."""

    groups: Groups
    identity: Identity
    now: int
    method: str
    timed: bool  # live legs must be fresh and close in time
    offer: Bytes  # per row: may be a leg
    net: Floats  # per row: price after commission
    own: Floats  # per row: fair probability from the row's own book's market, nan if incomplete
    width: Floats  # per row: that market's overround, a fraction
    trusted: Bytes  # per row: may be a reference
    rank: Ints  # per book: place among the references, else the largest integer
    weight: Floats  # per book: in a consensus; nan says 1 / width
    member: Bytes  # per book: belongs to the consensus
    weighted: bool  # the caller gave weights: always a consensus
    counted: Bytes  # per book: speaks in medians, being offered or a reference by the caller's word
    feed: Ints  # per book
    main: Bytes  # per market
    books: Ints  # per market: how many books offer it
    reference: Ints  # per market: the book, -1 none, -2 a consensus
    fair: Floats  # per segment: the reference's probability, nan if none or a consensus
    reference_odds: Floats  # prices of the single references, market after market
    reference_ends: Longs  # where each such market begins among them, and the end
    live: Bytes  # per market
    price: Floats  # offers in slots of four, 0 where empty
    slots: Longs  # segment -> slots


class Legs(NamedTuple):
    """The chosen rows of some markets: (n, outcomes), -1 beyond a market's outcomes, and sum of 1/odds."""

    rows: Ints
    total: Floats


@kernel
def _complete(segments, rows, book, net, used, place, pick, entry_rows, entry_ends):
    """The lowest price of every outcome, for each book that has them all: one entry a book and market."""
    at = np.int64(0)
    entries = 0
    for m in range(segments.size - 1):
        s0 = segments[m]
        n = segments[m + 1] - s0
        if n < 2:
            continue
        for k in range(n):
            place[k] = rows[s0 + k]
        i = rows[s0]
        while i < rows[s0 + 1]:
            b = book[i]
            whole = True
            for k in range(n):
                pick[k] = -1
                j = place[k]
                end = rows[s0 + k + 1]
                while j < end and book[j] < b:
                    j += 1
                while j < end and book[j] == b:
                    if used[j] != 0 and (pick[k] < 0 or net[j] < net[pick[k]]):
                        pick[k] = j
                    j += 1
                place[k] = j
                if pick[k] < 0:
                    whole = False
            if whole:
                for k in range(n):
                    entry_rows[at] = pick[k]
                    at += 1
                entries += 1
                entry_ends[entries] = at
            i = place[0]
    return entries


@kernel
def _choose(segments, rows, book, net, own, width, trusted, rank, member, weighted, wide, reference, fair, odds, ends):
    """Each market's reference book, and its fair probabilities where that book is trusted alone."""
    at = 0
    found = 0
    for m in range(segments.size - 1):
        s0, s1 = segments[m], segments[m + 1]
        best = np.int32(2147483647)
        chosen = np.int32(-1)
        wider = False
        for i in range(rows[s0], rows[s0 + 1]):
            if trusted[i] != 0 and not np.isnan(own[i]):
                if weighted and member[book[i]] != 0:
                    chosen = -2
                elif not weighted and rank[book[i]] < best:
                    best = rank[book[i]]
                    chosen = book[i]
                    wider = width[i] > wide
        if wider:
            chosen = -2
        reference[m] = chosen
        for s in range(s0, s1):
            fair[s] = np.nan
            if chosen >= 0:
                for i in range(rows[s], rows[s + 1]):
                    if book[i] == chosen and trusted[i] != 0 and not np.isnan(own[i]):
                        fair[s] = own[i]
                        odds[at] = net[i]
                at += 1
        if chosen >= 0:
            found += 1
            ends[found] = at
    return found


@kernel
def _cut(rows, net, offer, slots, price):
    """Offers segment by segment, padded to a multiple of four slots. Returns the number of slots."""
    at = np.int64(0)
    for s in range(rows.size - 1):
        slots[s] = at
        for i in range(rows[s], rows[s + 1]):
            if offer[i] != 0:
                price[at] = net[i]
                at += 1
        while at & 3:
            price[at] = 0.0
            at += 1
    slots[rows.size - 1] = at
    return at


@fused
def _scan(price, slots, segments, markets, fair, reference, lined, least, bound, best, total, hot, paired):
    """One pass: best price a segment; sum a market; markets with an edge; markets that close a pair of lines."""
    zero = np.uint64(0)
    for s in range(slots.size - 1):
        top = 0.0
        for i in range(np.uint64(slots[s]), np.uint64(slots[s + 1]), np.uint64(4)):
            a = max(price[i], price[i + np.uint64(1)])
            b = max(price[i + np.uint64(2)], price[i + np.uint64(3)])
            a = max(a, b)
            top = max(top, a)
        best[s] = top
    for at in range(markets.size - 1):
        over = np.inf
        line = lined[at] != 0
        for m in range(markets[at], markets[at + 1]):
            s0, s1 = segments[m], segments[m + 1]
            edge = reference[m] == -2
            if s1 - s0 == 2:
                x, y = best[s0], best[s0 + 1]
                ix, iy = 1.0 / x, 1.0 / y
                total[m] = ix + iy
                edge = edge or x * fair[s0] >= least or y * fair[s0 + 1] >= least
                if line:
                    paired[m] = over + iy <= bound
                    over = min(over, ix)
                else:
                    paired[m] = zero
            else:
                t = 0.0
                for s in range(s0, s1):
                    t += 1.0 / best[s]
                    edge = edge or best[s] * fair[s] >= least
                total[m] = t
                paired[m] = zero
            hot[m] = edge


class Scan(NamedTuple):
    """What the fast pass names."""

    best: Floats  # per segment; 0 where nothing is offered
    total: Floats  # per market
    hot: Bytes  # per market: some price may have the least edge
    paired: Bytes  # per market: its under may pair with an over at a lower line


def scan(view: View, min_edge: float, max_sum: float) -> Scan:
    """Pass once over all offers.

    Parameters
    ----------
    view
        The prices looked at.
    min_edge
        Fraction; markets whose best edge is below are not hot.
    max_sum
        Largest sum of 1/odds of a pair of lines.
    """
    g = view.groups
    best = np.empty(g.rows.size - 1)
    total = np.empty(g.threshold.size)
    hot = np.empty(g.threshold.size, np.uint8)
    paired = np.empty(g.threshold.size, np.uint8)
    _scan(
        view.price, view.slots, g.segments, g.markets, view.fair, view.reference, _two_sided(view), 1.0 + min_edge,
        max_sum, best, total, hot, paired,
    )  # fmt: skip
    return Scan(best, total, hot, paired)


def _two_sided(view: View) -> Bytes:
    kinds = np.array([k.has_line and len(k.outcomes) == 2 for k in view.identity.kinds], np.uint8)
    return kinds[view.groups.kind] if kinds.size else np.zeros(0, np.uint8)


@kernel
def _best_of(from_, to, n, book, net, offer, seen, early, late, distinct, out):
    """Best row of each of n row ranges, seen within [early, late]; not all of one book if distinct. Returns the sum."""
    total = 0.0
    same = True
    for k in range(n):
        out[k] = -1
        for i in range(from_[k], to[k]):
            if offer[i] != 0 and early <= seen[i] <= late and (out[k] < 0 or net[i] > net[out[k]]):
                out[k] = i
        if out[k] < 0:
            return np.inf
        total += 1.0 / net[out[k]]
        if book[out[k]] != book[out[0]]:
            same = False
    if not distinct or not same:
        return total
    # All from one book: the best replacement of one leg. Among equals the last leg, whose tuple sorts first
    # if the new book is the larger; else the earlier leg's does.
    alone = book[out[0]]
    least = np.inf
    place, row = -1, -1
    for k in range(n):
        other = -1
        for i in range(from_[k], to[k]):
            usable = offer[i] != 0 and early <= seen[i] <= late and book[i] != alone
            if usable and (other < 0 or net[i] > net[other]):
                other = i
        if other < 0:
            continue
        t = 0.0
        for j in range(n):
            t += 1.0 / net[other if j == k else out[j]]
        smaller = t < least
        if t == least:
            if book[other] > alone:
                smaller = book[row] > alone or book[other] < alone
            else:
                smaller = False
        if smaller:
            least, place, row = t, k, other
    if place < 0:
        return np.inf
    out[place] = row
    return least


@kernel
def _legs(starts, ends, count, live, book, net, offer, seen, oldest, gap, distinct, out, totals, trial):
    """Best admissible legs of each case, row ranges (cases, n); live ones seen from `oldest` on, within `gap`."""
    far = np.int64(1) << np.int64(62)
    most = starts.shape[1]
    for c in range(starts.shape[0]):
        n = count[c]
        for k in range(most):
            out[c, k] = -1
        if live[c] == 0:
            totals[c] = _best_of(starts[c], ends[c], n, book, net, offer, seen, -far - far, far, distinct, trial)
            for k in range(n):
                out[c, k] = trial[k]
            continue
        totals[c] = np.inf
        for first in range(n):
            for i in range(starts[c, first], ends[c, first]):
                if offer[i] == 0 or seen[i] < oldest:
                    continue
                t = _best_of(starts[c], ends[c], n, book, net, offer, seen, seen[i], seen[i] + gap, distinct, trial)
                better = t < totals[c]
                if t == totals[c] and t < np.inf:
                    for k in range(n):
                        if book[trial[k]] != book[out[c, k]]:
                            better = book[trial[k]] < book[out[c, k]]
                            break
                if better:
                    totals[c] = t
                    for k in range(n):
                        out[c, k] = trial[k]


def best_legs(view: View, segments: Longs, live: Bytes, *, distinct: bool) -> Legs:
    """Best admissible prices of cases, each a row of segments (-1 beyond its outcomes).

    Ties go to the smallest tuple of books. `distinct` asks for at least two books.
    """
    g = view.groups
    held = segments >= 0
    starts = np.where(held, g.rows[np.maximum(segments, 0)], 0)
    ends = np.where(held, g.rows[np.maximum(segments, 0) + 1], 0)
    rows = np.empty(segments.shape, np.int32)
    totals = np.empty(segments.shape[0])
    limits = catalog.thresholds()
    timed = live if view.timed else np.zeros_like(live)
    _legs(
        starts, ends, held.sum(axis=1), timed, g.book, view.net, view.offer, g.seen,
        since(view, limits.stale_live_leg_s), round(limits.stale_live_gap_s * 1e6), distinct, rows, totals,
        np.empty(segments.shape[1], np.int32),
    )  # fmt: skip
    return Legs(rows, totals)


def market_segments(view: View, markets: Longs) -> Longs:
    """Segments of markets as rows of one array, -1 beyond a market's outcomes."""
    g = view.groups
    n = g.outcomes[markets]
    most = int(n.max(initial=2))
    place = np.arange(most)
    return np.where(place < n[:, None], g.segments[markets][:, None] + place, -1)


@kernel
def _edges(
    chosen, segments, rows, book, feed, net, offer, seen, own, width, trusted, reference, weight, member, counted,
    weighted, live, timed, oldest, gap_us, floor, too_wide, least,
    out_row, out_fair, out_width, out_gap, out_seen, ids, fairs,
):  # fmt: skip
    """Offers with an edge of at least `least` - 1 in chosen markets: row, fair probability, width, gap, oldest time."""
    found = 0
    for c in range(chosen.size):
        m = chosen[c]
        ref = reference[m]
        if ref == -1:
            continue
        s0, s1 = segments[m], segments[m + 1]
        check = timed and live[m] != 0
        for s in range(s0, s1):
            for r in range(rows[s], rows[s + 1]):
                if offer[r] == 0 or book[r] == ref:
                    continue
                if check and seen[r] < oldest:
                    continue
                p, total, wide, members = 0.0, 0.0, 0.0, 0
                first = seen[r]
                for i in range(rows[s], rows[s + 1]):
                    b = book[i]
                    if trusted[i] == 0 or np.isnan(own[i]) or b == book[r]:
                        continue
                    if ref >= 0:
                        if b != ref:
                            continue
                    elif member[b] == 0:
                        continue
                    low, high = seen[i], seen[i]
                    for z in range(s0, s1):
                        for j in range(rows[z], rows[z + 1]):
                            if book[j] == b and trusted[j] != 0 and not np.isnan(own[j]):
                                low = min(low, seen[j])
                                high = max(high, seen[j])
                    if check and (low < oldest or max(high, seen[r]) - min(low, seen[r]) > gap_us):
                        continue
                    w = 1.0
                    if ref < 0:
                        w = weight[b] if weighted else 1.0 / max(width[i], floor)
                    p += w * own[i]
                    wide += w * width[i]
                    total += w
                    members += 1
                    first = min(first, low)
                # A wide reference is not trusted alone, neither in the catalog's consensus nor in the caller's.
                alone = ref < 0 and members < 2 and (not weighted or wide > too_wide * total)
                if members == 0 or alone:
                    continue
                p /= total
                if not (p * net[r] >= least):
                    continue
                n = 0
                for i in range(rows[s], rows[s + 1]):
                    b = book[i]
                    f = feed[b]
                    if np.isnan(own[i]) or counted[b] == 0 or f == feed[book[r]]:
                        continue
                    if (ref >= 0 and f == feed[ref]) or (ref < 0 and member[b] != 0):
                        continue
                    k = 0
                    while k < n and ids[k] != f:
                        k += 1
                    if k < n:
                        continue
                    k = n
                    while k > 0 and fairs[k - 1] > own[i]:
                        fairs[k] = fairs[k - 1]
                        ids[k] = ids[k - 1]
                        k -= 1
                    fairs[k] = own[i]
                    ids[k] = f
                    n += 1
                gap = np.nan
                if n >= 2:
                    q = 0.5 * (fairs[(n - 1) // 2] + fairs[n // 2])
                    gap = abs(np.log(p / (1.0 - p)) - np.log(q / (1.0 - q)))
                # One row a book: the better of its admissible prices, which stand side by side.
                if found > 0 and out_row[found - 1] >= rows[s] and book[out_row[found - 1]] == book[r]:
                    if net[out_row[found - 1]] >= net[r]:
                        continue
                    found -= 1
                out_row[found] = r
                out_fair[found] = p
                out_width[found] = wide / total
                out_gap[found] = gap
                out_seen[found] = first
                found += 1
    return found


class Edges(NamedTuple):
    """Offers with an edge: row, fair probability, width of the reference, gap to the others, oldest time."""

    row: Ints
    fair: Floats
    width: Floats
    gap: Floats
    seen: Longs


def edges(view: View, markets: Longs, min_edge: float) -> Edges:
    """Every offer in some markets whose edge is at least `min_edge` (a fraction)."""
    g = view.groups
    limits = catalog.thresholds()
    size = int((g.rows[g.segments[markets + 1]] - g.rows[g.segments[markets]]).sum())
    row = np.empty(size, np.int32)
    fair, width, gap, seen = np.empty(size), np.empty(size), np.empty(size), np.empty(size, np.int64)
    n = _edges(
        markets, g.segments, g.rows, g.book, view.feed, view.net, view.offer, g.seen, view.own, view.width,
        view.trusted, view.reference, view.weight, view.member, view.counted, view.weighted, view.live, view.timed,
        since(view, limits.stale_live_leg_s), round(limits.stale_live_gap_s * 1e6), limits.reference_floor,
        limits.reference_wide + limits.epsilon, 1.0 + min_edge, row, fair, width, gap, seen,
        np.empty(view.feed.size + 1, np.int32), np.empty(view.feed.size + 1),
    )  # fmt: skip
    return Edges(row[:n], fair[:n], width[:n], gap[:n], seen[:n])


@kernel
def _fairest(
    markets,
    segments,
    rows,
    book,
    net,
    offer,
    own,
    width,
    trusted,
    reference,
    fair,
    weight,
    member,
    weighted,
    floor,
    out,
    best,
):
    """Fair probability (the reference's, nobody left out) and best offer of each outcome of some markets."""
    for c in range(markets.size):
        m = markets[c]
        for k in range(out.shape[1]):
            out[c, k] = np.nan
            best[c, k] = np.nan
            s = segments[m] + k
            if s >= segments[m + 1]:
                continue
            sum_p, sum_w, top = 0.0, 0.0, 0.0
            for i in range(rows[s], rows[s + 1]):
                if offer[i] != 0:
                    top = max(top, net[i])
                if member[book[i]] != 0 and trusted[i] != 0 and not np.isnan(own[i]):
                    w = weight[book[i]] if weighted else 1.0 / max(width[i], floor)
                    sum_p += w * own[i]
                    sum_w += w
            if reference[m] >= 0:
                out[c, k] = fair[s]
            elif reference[m] == -2 and sum_w > 0.0:
                out[c, k] = sum_p / sum_w
            if top > 0.0:
                best[c, k] = top


def market_fair(view: View, markets: Longs) -> Floats:
    """Fair probabilities of some markets, (n, outcomes): the reference's, else those of the best prices."""
    g = view.groups
    n = g.outcomes[markets]
    shape = (markets.size, int(n.max(initial=2)))
    fair, best = np.empty(shape), np.empty(shape)
    _fairest(
        markets, g.segments, g.rows, g.book, view.net, view.offer, view.own, view.width, view.trusted, view.reference,
        view.fair, view.weight, view.member, view.weighted, catalog.thresholds().reference_floor, fair, best,
    )  # fmt: skip
    held = np.arange(shape[1]) < n[:, None]
    bare = np.asarray((np.isnan(fair) & held).any(axis=1) & ~(np.isnan(best) & held).any(axis=1))
    if bare.any():
        inside = held & bare[:, None]
        ends = np.concatenate(([0], np.cumsum(n[bare])))
        fair[inside] = devig_groups(best[inside], ends, view.method)
    return fair


@kernel
def _pairs(markets, segments, threshold, best, paired, bound, count_only, low_market, high_market):
    """Pairs of markets of one ladder with a whole number strictly between their lines and a small enough sum."""
    found = np.int64(0)
    for at in range(markets.size - 1):
        for high in range(markets[at], markets[at + 1]):
            if paired[high] == 0:
                continue
            under = 1.0 / best[segments[high + 1] - 1]
            for low in range(markets[at], high):
                if 1.0 / best[segments[low]] + under > bound:
                    continue
                if threshold[low] // 100 + 1 > -(-threshold[high] // 100) - 1:
                    continue
                if count_only == 0:
                    low_market[found] = low
                    high_market[found] = high
                found += 1
    return found


def pairs(view: View, found: Scan, max_sum: float) -> tuple[Longs, Longs]:
    """Markets (lower line, higher line) whose over and under may make a middle."""
    g = view.groups
    none = np.empty(0, np.int64)
    args = (g.markets, g.segments, g.threshold, found.best, found.paired, max_sum)
    n = _pairs(*args, 1, none, none)
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)
    _pairs(*args, 0, low, high)
    return low, high


def after_commission(identity: Identity, commission: dict[str, float] | None) -> Floats:
    """Price of every row after the book's commission on winnings, or its fee F p (1 - p) a contract.

    `commission` replaces the catalog's rates, book by book.
    """
    given = dict(commission or {})
    for book, rate in given.items():
        if not (isinstance(rate, Real) and 0.0 <= rate < 1.0):
            raise ValueError(f"commission of {book} must be a rate from 0 to below 1, got {rate!r}")
    given = {catalog.book(book).id: rate for book, rate in given.items()}
    books = [catalog.book(b) for b in identity.books]
    rates = np.array([given.get(b.id, b.commission) for b in books], float)
    fee = np.array([0.0 if b.id in given else b.fee for b in books], float)
    g = identity.groups
    if not rates.any() and not fee.any():
        return g.odds
    charged = fee > 0
    net = np.asarray(1.0 + (g.odds - 1.0) * (1.0 - rates[g.book]))
    if charged.any():
        rows = charged[g.book]
        p = 1.0 / net[rows]
        net[rows] = 1.0 / (p + fee[g.book[rows]] * p * (1.0 - p))
    exact = (rates == 0) & (fee == 0)
    return np.where(exact[g.book], g.odds, net)


def view(
    identity: Identity,
    guarded: Guarded,
    off: frozenset[int],
    books: list[str] | None,
    sharp: Any,
    method: str,
    commission: dict[str, float] | None,
) -> View:
    """Fix what a caller looks at.

    Parameters
    ----------
    identity, guarded
        The board and its verdicts, which know nothing of the caller.
    off
        Codes of the guards that are off.
    books
        Books whose prices are offers; None means all.
    sharp, method, commission
        As in the public detectors.
    """
    g, names, limits = identity.groups, identity.books, catalog.thresholds()
    reference = Reference.of(sharp)
    # However a book is spelled here or there: its id in the catalog decides.
    ids = [catalog.book(b).id for b in names]
    chosen = None if books is None else {catalog.book(b).id for b in books}
    wanted = np.array([chosen is None or b in chosen for b in ids], bool)
    rank = np.full(len(names), _UNRANKED, np.int32)
    weight = np.ones(len(names))
    member = np.array([catalog.book(b).sharp or catalog.book(b).exchange for b in names], bool)
    if reference.weights is not None:
        member[:] = False
    for place, book in enumerate(reference.order):
        for at in np.flatnonzero([b == catalog.book(book).id for b in ids]):
            rank[at] = place
            member[at] = True
            weight[at] = reference.weights[place] if reference.weights is not None else 1.0
    survives = guarded.aside == 0
    offer = survives & wanted[g.book] if g.row.size else survives
    universe = survives & (wanted | member | (rank < _UNRANKED))[g.book] if g.row.size else survives

    net = after_commission(identity, commission)
    used = universe.astype(np.uint8)
    entry_rows = np.empty(g.row.size, np.int32)
    entry_ends = np.zeros(g.row.size // 2 + 2, np.int64)
    most = int(g.outcomes.max(initial=2))
    room = np.empty(most, np.int64), np.empty(most, np.int32)
    entries = _complete(g.segments, g.rows, g.book, net, used, *room, entry_rows, entry_ends)
    entry_ends = entry_ends[: entries + 1]
    entry_rows = entry_rows[: entry_ends[-1]]
    odds = net[entry_rows]
    own = np.full(g.row.size, np.nan)
    width = np.full(g.row.size, np.nan)
    if entries:
        own[entry_rows] = devig_groups(odds, entry_ends, method)
        sums = np.add.reduceat(1.0 / odds, entry_ends[:-1]) - 1.0
        width[entry_rows] = np.repeat(sums, np.diff(entry_ends))

    trusted = (universe & (guarded.stingy == 0)).astype(np.uint8)
    market_reference = np.empty(g.threshold.size, np.int32)
    fair = np.empty(g.rows.size - 1)
    reference_odds, ends = np.empty(g.rows.size - 1), np.zeros(g.threshold.size + 1, np.int64)
    singles = _choose(
        g.segments, g.rows, g.book, net, own, width, trusted, rank, member.astype(np.uint8),
        reference.weights is not None, limits.reference_wide + limits.epsilon, market_reference, fair, reference_odds,
        ends,
    )  # fmt: skip
    offered = offer.astype(np.uint8)
    capacity = g.row.size + 3 * (g.rows.size - 1) + 4
    price = np.empty(capacity)
    slots = np.empty(g.rows.size, np.int64)
    size = _cut(g.rows, net, offered, slots, price)
    main, books_offered = main_lines(g, net, 1 - offered, len(names))
    return View(
        groups=g,
        identity=identity,
        now=guarded.now,
        method=method,
        timed=CODES["stale"] not in off and guarded.now != NO_TIME,
        offer=offered,
        net=net,
        own=own,
        width=width,
        trusted=trusted,
        rank=rank,
        weight=weight,
        member=member.astype(np.uint8),
        weighted=reference.weights is not None,
        counted=(wanted | (rank < _UNRANKED)).astype(np.uint8),
        feed=identity.traits.feed,
        main=main,
        books=books_offered,
        reference=market_reference,
        fair=fair,
        reference_odds=reference_odds[: ends[singles]],
        reference_ends=ends[: singles + 1],
        live=g.live[g.ladder],
        price=price[:size],
        slots=slots,
    )


def since(view: View, seconds: float) -> int:
    """Give the moment some seconds before now, microseconds; the earliest there is where there is no now."""
    return int(NO_TIME) if view.now == NO_TIME else view.now - round(seconds * 1e6)


def ages(now: int, seen: npt.NDArray[np.int64]) -> Floats:
    """Seconds since each time, never below 0; nan where there is none."""
    if now == NO_TIME:
        return np.full(seen.shape, np.nan)
    return np.where(seen == NO_TIME, np.nan, np.maximum(0, now - np.where(seen == NO_TIME, now, seen)) / 1e6)
