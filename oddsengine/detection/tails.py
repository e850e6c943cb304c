"""Tails: P(X > h) of a margin or total at half points, read from the board.

Three sources, best first: the ladder of one reference book (its own de-vigged half lines), the median of the books'
ladders, and a fitted shape. All points of one case must come from the same book, so that differences between books are
not mistaken for probability. The moneyline is the spread ladder's point at one half; if a game cannot end level, it is
also the point at minus one half.

With the method `close`, a ladder only gives the shape: its logits are shifted by one constant, so that their mean
matches the estimator's.

Columns of the kernels:

- `markets`, `segments`, `rows`, `book`, `threshold`, `event`, `live`, `kind`: as in `Groups`
- `net`, `reason`, `own`, `trusted`, `rank`, `reference`, `wanted`, `counted`: as in `FairPrices`, but `wanted` is
  (books, users), 1.0 or 0.0
- `provider`: as in `Traits`
- `role`, `period`, `full`, `sport`, `shapes`, `scales`, `tables`: as in `Forms`; the plurals are its tables by kind and
  sport
- `two`, `three`, `level`, `totals`: as in `Curves`
- `who`, `ladder` (int64 per case), `points` (int64, cases by 4): user, ladder and points of a case, hundredths,
  ascending
- `tail` (float64, rows by 4), `source` (uint8 per row): as in `Tails`
- `row_of_case` (int64 per case), `first_case` (int64 per row): the row of a case, and the first case of a row
- `book_tails` (float64, 2 by 4 by books): each book's tails of a ladder at the points, nan if unknown; by `_ANY`
  price and by `_TRUSTED` ones
- `column` (int64 by point): the first point that is equal, whose tail is stored
- `ids` (int32): books with a tail at the first point, sorted
- `close` (float64 per segment): the estimator's probabilities
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Floats, Ints, Longs
from oddsengine.detection.sweep import market_fair
from oddsengine.guards.main_markets import main_markets
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import MarketKind
from oddsengine.maths import middle
from oddsengine.pricing.references import UNRANKED, FairPrices

NOWHERE, LADDER, MEDIAN, SHAPE = 0, 1, 2, 3
_ANY, _TRUSTED = 0, 1  # first index of the tails of books
_HALF = 50  # one half, hundredths
_WORD_BITS = 64

_MARGIN, _TWO_WAY, _THREE_WAY, _TOTAL = 1, 2, 3, 4  # values of `Forms.role`
_ROLES = {"spread": _MARGIN, "moneyline": _TWO_WAY, "moneyline_3way": _THREE_WAY, "total": _TOTAL}


class Tails(NamedTuple):
    """P(X > point) at the requested points, and its source; cases with the same inputs share a row."""

    tail: Floats  # (rows, 4)
    source: Bytes  # per row
    of: Longs  # per case: its row


class Forms(NamedTuple):
    """Prior knowledge of X: the catalog's values for the kinds of market, sports and leagues of a board."""

    role: Bytes  # per kind: its role in the tails of a game's margin
    period: Ints  # per kind
    full: Bytes  # per kind: of the full game
    sport: Ints  # per event: the sport and league, a column of the tables below
    level: Floats  # per sport: P(margin = 0) of the full game, nan if a tie is an ordinary result
    shape: Longs  # (kinds, sports): as in `middle.KINDS`
    scale: Floats  # (kinds, sports): nan without a shape; relative to the expected total for a Skellam margin
    table: Longs  # (kinds, sports): a row of `weights`
    weights: Floats  # (tables, numbers): as in `middle.Shapes`


_SHAPES = {
    "poisson": middle.POISSON,
    "skellam": middle.SKELLAM,
    "negative_binomial": middle.NEGATIVE_BINOMIAL,
    "normal": middle.NORMAL,
    "normal_key": middle.MARGIN,
}


@lru_cache(maxsize=1 << 14)
def form(family: str, sport: str, league: str, fraction: float) -> tuple[int, float, tuple[float, ...]]:
    """Shape, scale and weights for the number that a family's line divides; the scale is nan without a shape."""
    shape = catalog.shape(family, sport, league)
    if shape is None or not fraction > 0:
        return middle.NORMAL, np.nan, ()
    if shape.name == "normal_key":
        return middle.MARGIN, shape.sd * np.sqrt(fraction), catalog.sport(sport).scores_in(league).key_weights
    counts = shape.name in ("poisson", "negative_binomial", "skellam")
    return _SHAPES[shape.name], shape.variance_ratio if counts else shape.sd * np.sqrt(fraction), ()


def forms(kinds: Sequence[MarketKind], sports: Iterable[tuple[catalog.Sport, str]]) -> Forms:
    """Look up the shapes of a board's kinds in the sports and leagues of its events."""
    columns: dict[tuple[str, str], int] = {}
    level: list[float] = []
    of_event: list[int] = []
    for sport, league in sports:
        column = columns.setdefault((sport.id, league), len(columns))
        if column == len(level):
            level.append(np.nan if sport.level is None else sport.level)
        of_event.append(column)
    size = len(kinds), len(columns)
    shape, scale, table = np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64)
    tables: dict[tuple[float, ...], int] = {(): 0}
    for row, kind in enumerate(kinds):
        for (sport_id, league), column in columns.items():
            shape[row, column], scale[row, column], weights = form(kind.family, sport_id, league, kind.fraction)
            table[row, column] = tables.setdefault(weights, len(tables))
    weight = np.full((len(tables), 1 + max(map(len, tables))), np.nan)
    weight[:, 0] = 1.0
    for weights, row in tables.items():
        weight[row, 1 : 1 + len(weights)] = weights
    periods: dict[str, int] = {}
    return Forms(
        role=np.array([_ROLES.get(k.family, 0) for k in kinds], np.uint8),
        period=np.array([periods.setdefault(k.period, len(periods)) for k in kinds], np.int32),
        full=np.array([k.period == catalog.FULL_GAME for k in kinds], np.uint8),
        sport=np.array(of_event, np.int32),
        level=np.array(level, np.float64),
        shape=shape,
        scale=scale,
        table=table,
        weights=weight,
    )


class Curves(NamedTuple):
    """Other markets that say something about each ladder's X."""

    two: Longs  # the event's two-way moneyline market, or -1
    three: Longs  # the event's three-way moneyline market, or -1
    level: Floats  # P(X = 0), nan if unknown
    totals: Longs  # the ladder of the game's total, which scales a Skellam margin, or -1


@kernel
def _link(event, live, kind, markets, role, period, full, sport, sport_level, shapes, two, three, level, totals):
    """For each ladder of a game's margin, find the moneylines and total of its event and period; ladders by event.

    - `sport_level` (float64 per sport): as `level` of `Forms`
    - `shapes` (int64, kinds by sports): as `shape` of `Forms`
    """
    first, n = 0, event.size
    while first < n:
        end = first + 1
        while end < n and event[end] == event[first] and live[end] == live[first]:
            end += 1
        for at in range(first, end):
            two[at] = three[at] = totals[at] = NONE
            level[at] = np.nan
            if role[kind[at]] != _MARGIN:
                continue
            if full[kind[at]] != 0:
                level[at] = sport_level[sport[event[at]]]
            # Regulation's three ways say nothing of a margin that overtime decides, nor two ways of one that may be 0.
            has_level = not np.isnan(level[at])
            is_skellam = shapes[kind[at], sport[event[at]]] == middle.SKELLAM
            for other_ladder in range(first, end):
                other_role = role[kind[other_ladder]]
                if other_role < _TWO_WAY or period[kind[other_ladder]] != period[kind[at]]:
                    continue
                if other_role == _TWO_WAY and has_level and two[at] < 0:
                    two[at] = markets[other_ladder]
                elif other_role == _THREE_WAY and not has_level and three[at] < 0:
                    three[at] = markets[other_ladder]
                elif other_role == _TOTAL and is_skellam and totals[at] < 0:
                    totals[at] = other_ladder
        first = end


def curves(g: Groups, forms: Forms) -> Curves:
    """Link every ladder of a game's margin to the moneylines and the total that its tails depend on."""
    n = g.event.size
    links = Curves(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64))
    _link(
        g.event, g.live, g.kind, g.markets, forms.role, forms.period, forms.full, forms.sport, forms.level, forms.shape,
        links.two, links.three, links.level, links.totals,
    )  # fmt: skip
    return links


@kernel
def _fill(book_tails, j, segment, scale, shift, rows, book, own, trusted, ids, n):
    """Store `scale` p + `shift` at point `j` for the books of a segment (fair probability p) without a tail there yet.

    `book_tails` is (2, 4, books): from any price, and from trusted ones. The first point determines the books, sorted
    in `ids`; other points are stored only for these. Returns the number of books.

    `segment` is `NONE` if there is none; `n` is the number of books so far.
    """
    if segment < 0:
        return n
    for i in range(rows[segment], rows[segment + 1]):
        if np.isnan(own[i]):
            continue
        b = book[i]
        if np.isnan(book_tails[_ANY, 0, b]):
            if j > 0:
                continue
            k = n
            while k > 0 and ids[k - 1] > b:
                ids[k] = ids[k - 1]
                k -= 1
            ids[k] = b
            n += 1
        p = own[i] * scale + shift
        if np.isnan(book_tails[_ANY, j, b]):
            book_tails[_ANY, j, b] = p
        if trusted[i] != 0 and np.isnan(book_tails[_TRUSTED, j, b]):
            book_tails[_TRUSTED, j, b] = p
    return n


@kernel
def _read(
    who, ladder, points, markets, segments, rows, book, own, trusted, rank, counted, provider, threshold, two, three,
    level, tail, source, first_case, row_of_case, row_speakers, book_tails, ids, speakers, order, spread, column,
):  # fmt: skip
    """Tails of cases (ladder, four points) from the first reference that has all four, else the books' median.

    A book's tail at a point is its half line there; at plus or minus one half of a margin also its moneyline, or its
    half line on the other side of 0. `book_tails` must be nan on entry. Equal cases of several users should be
    adjacent: they share a row if the same books contribute, which `row_speakers` records. Returns the number of rows.

    Scratch arrays: `speakers` are the books of a ladder with all four tails, `row_speakers` (bits per row) those that
    count for its users, and `order` one book per provider, by the difference of its outer tails (`spread`).
    """
    n, n_rows, begin, n_speakers = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for c in range(ladder.size):
        at = ladder[c]
        is_repeat = c > 0 and at == ladder[c - 1]
        for j in range(4):
            is_repeat = is_repeat and points[c, j] == points[c - 1, j]
        if not is_repeat:
            for k in range(n):
                for j in range(4):
                    book_tails[_ANY, j, ids[k]] = book_tails[_TRUSTED, j, ids[k]] = np.nan
            n = _hold(
                at, points[c], markets, segments, rows, book, own, trusted, threshold, two[at], three[at], level[at],
                book_tails, ids, column,
            )  # fmt: skip
            begin = n_rows
            best_rank, best_book, n_speakers = np.int32(UNRANKED), np.int32(NONE), 0
            for k in range(n):
                b = ids[k]
                if _falls(book_tails, _ANY, column, b):
                    speakers[n_speakers] = b
                    n_speakers += 1
                if rank[b] < best_rank and _falls(book_tails, _TRUSTED, column, b):
                    best_rank, best_book = rank[b], b
            if best_book >= 0:
                source[n_rows], first_case[n_rows] = LADDER, c
                for j in range(4):
                    tail[n_rows, j] = book_tails[_TRUSTED, column[j], best_book]
                n_rows += 1
        if n_rows > begin and source[begin] == LADDER:  # the same for all users
            row_of_case[c] = begin
            continue
        bits, bit = np.uint64(0), np.uint64(1)
        for k in range(n_speakers):
            bits |= bit if counted[who[c], speakers[k]] != 0 else np.uint64(0)
            bit <<= np.uint64(1)
        row = begin if n_speakers <= _WORD_BITS else n_rows
        while row < n_rows and row_speakers[row] != bits:
            row += 1
        row_of_case[c] = row
        if row < n_rows:
            continue
        n_rows += 1
        row_speakers[row], source[row], first_case[row] = bits, NOWHERE, c
        n_providers = 0
        for k in range(n_speakers):
            b = speakers[k]
            is_skipped = counted[who[c], b] == 0
            for x in range(n_providers):
                is_skipped = is_skipped or provider[order[x]] == provider[b]
            if is_skipped:
                continue
            gap = book_tails[_ANY, column[0], b] - book_tails[_ANY, column[3], b]
            x = n_providers
            while x > 0 and spread[x - 1] > gap:
                spread[x] = spread[x - 1]
                order[x] = order[x - 1]
                x -= 1
            spread[x] = gap
            order[x] = b
            n_providers += 1
        for j in range(4):
            tail[row, j] = np.nan
        if n_providers > 0:
            source[row] = MEDIAN
            low, high = order[(n_providers - 1) // 2], order[n_providers // 2]
            for j in range(4):
                tail[row, j] = 0.5 * (book_tails[_ANY, column[j], low] + book_tails[_ANY, column[j], high])
    return n_rows


@kernel
def _segment(point, low, end, segments, threshold):
    """First segment of the market of a ladder (low to end) at a point, `NONE` if there is none.

    `low` and `end` are markets, `point` is in hundredths.
    """
    high = end
    while low < high:
        m = (low + high) // 2
        if threshold[m] < point:
            low = m + 1
        else:
            high = m
    return segments[low] if low < end and threshold[low] == point else np.int64(NONE)


@kernel
def _hold(
    at, points, markets, segments, rows, book, own, trusted, threshold, two, three, level, book_tails, ids, column
):
    """Collect each book's tails of a ladder at four points in `book_tails`. Returns the number of books.

    `at` is the ladder, and `two`, `three` and `level` are its own.
    """
    has_level = not np.isnan(level)
    n = np.int64(0)
    for j in range(4):
        point = points[j]
        column[j] = j
        if j > 0 and point == points[j - 1]:
            column[j] = column[j - 1]
            continue
        segment = _segment(point, markets[at], markets[at + 1], segments, threshold)
        mirror_segment = _segment(-point, markets[at], markets[at + 1], segments, threshold)
        n = _fill(book_tails, j, segment, 1.0, 0.0, rows, book, own, trusted, ids, n)
        if abs(point) == _HALF and has_level:
            shift = 0.0 if point == _HALF else level
            if two >= 0:
                n = _fill(book_tails, j, segments[two], 1.0 - level, shift, rows, book, own, trusted, ids, n)
            shift = -level if point == _HALF else level
            n = _fill(book_tails, j, mirror_segment, 1.0, shift, rows, book, own, trusted, ids, n)
        elif abs(point) == _HALF and three >= 0:
            s = segments[three]
            if point == _HALF:
                n = _fill(book_tails, j, s, 1.0, 0.0, rows, book, own, trusted, ids, n)
            else:
                n = _fill(book_tails, j, s + 2, -1.0, 1.0, rows, book, own, trusted, ids, n)
        if n == 0:
            break
    return n


@kernel
def _falls(book_tails, origin, column, b):
    """Whether a book has all four tails and they do not increase.

    `origin` is `_ANY` or `_TRUSTED`, and `b` the book.
    """
    last = 1.0
    for j in range(4):
        p = book_tails[origin, column[j], b]
        if not (p <= last):
            return False
        last = p
    return True


@kernel
def _centre(ladder, points, markets, segments, threshold, two, three, level, close, source, tail):
    """Shift the logits of each case's tails so that their mean matches the estimated closing probabilities."""
    for c in range(ladder.size):
        if source[c] == NOWHERE:
            continue
        at, total, n = ladder[c], 0.0, 0
        for j in range(4):
            p = np.nan
            for m in range(markets[at], markets[at + 1]):
                if threshold[m] == points[c, j]:
                    p = close[segments[m]]
            if np.isnan(p) and abs(points[c, j]) == _HALF:
                if two[at] >= 0:
                    p = close[segments[two[at]]] * (1.0 - level[at]) + (0.0 if points[c, j] == _HALF else level[at])
                elif three[at] >= 0:
                    s = segments[three[at]]
                    p = close[s] if points[c, j] == _HALF else 1.0 - close[s + 2]
            q = tail[c, j]
            if 0.0 < p < 1.0 and 0.0 < q < 1.0:
                total += np.log(p / (1.0 - p)) - np.log(q / (1.0 - q))
                n += 1
        for j in range(4 if n > 0 else 0):
            q = tail[c, j]
            if 0.0 < q < 1.0:
                tail[c, j] = 1.0 / (1.0 + (1.0 - q) / q * np.exp(-total / n))


def ladder_tails(prices: FairPrices, links: Curves, who: Longs, ladder: Longs, points: Longs) -> Tails:
    """Tails at four half points per case (hundredths, ascending), from ladders only; source 0 if no book has them."""
    g, books, n = prices.groups, prices.traits.provider.size, ladder.size
    tail, source = np.empty((n, 4)), np.empty(n, np.uint8)
    first, of = np.empty((2, n), np.int64)
    made = _read(
        who, ladder, points, g.markets, g.segments, g.rows, g.book, prices.own, prices.trusted, prices.rank,
        prices.counted, prices.traits.provider, g.threshold, links.two, links.three, links.level, tail, source, first,
        of, np.empty(n, np.uint64), np.full((2, 4, books), np.nan), np.empty(books, np.int32),
        np.empty(books, np.int32), np.empty(books, np.int32), np.empty(books), np.empty(4, np.int64),
    )  # fmt: skip
    tail, source, first = tail[:made], source[:made], first[:made]
    if prices.close is not None:
        _centre(
            ladder[first], points[first], g.markets, g.segments, g.threshold, links.two, links.three, links.level,
            prices.close.segment, source, tail,
        )  # fmt: skip
    return Tails(tail, source, of)


@kernel
def _providers(ladder, markets, segments, rows, book, provider, reason, stamp, out):
    """Number of providers that quote each ladder.

    - `stamp` (int64 per provider): scratch array, `NONE` on entry
    - `out` (int64 per case): the numbers
    """
    for c in range(ladder.size):
        if c > 0 and ladder[c] == ladder[c - 1]:
            out[c] = out[c - 1]
            continue
        n = 0
        for i in range(rows[segments[markets[ladder[c]]]], rows[segments[markets[ladder[c] + 1]]]):
            f = provider[book[i]]
            if reason[i] == ACCEPTED and stamp[f] != c:
                stamp[f] = c
                n += 1
        out[c] = n


def providers(prices: FairPrices, ladder: Longs) -> Longs:
    """Number of providers that quote some ladders with accepted prices."""
    g, provider = prices.groups, prices.traits.provider
    out = np.empty(ladder.size, np.int64)
    _providers(
        ladder, g.markets, g.segments, g.rows, g.book, provider, prices.reason, np.full(provider.size + 1, -1), out
    )
    return out


@kernel
def _bases(
    who, ladder, markets, segments, rows, book, net, reason, wanted, reference, threshold, event, kind, totals,
    ladder_level, sport, shapes, scales, tables, stamp, work, mains, total_mains, row_of, no_counts, user, market,
    line, shape, scale, level, table, total_of, row_of_case,
):  # fmt: skip
    """List the fits that some users' cases need; the cases of a ladder are adjacent.

    One row per ladder and main line: the main market or `NONE`, its line, and the shape without the location. Users
    share it if a reference or the estimator prices the main line; else each has its own, since best prices differ.
    Then follow the totals that scale Skellam margins; `total_of` is the row of a ladder's total, or `NONE`. Returns the
    numbers of ladder rows and of all rows. `row_of` must be `NONE` for every user on entry.

    - `stamp`, `work`, `mains`, `total_mains`, `no_counts`: scratch arrays for `main_markets`; `total_mains` are the
      main lines of the total
    - `ladder_level` (float64 per ladder): as `level` of `Curves`
    - `user`, `market`, `line`, `shape`, `scale`, `level`, `table`, `total_of`: columns by row to write
    - `row_of` (int64 per user), `row_of_case`: the row of each user's, and each case's, ladder
    """
    n_ladders, begin, tick = 0, 0, np.int64(0)
    for c in range(ladder.size):
        at, v = ladder[c], who[c]
        if c == 0 or at != ladder[c - 1]:
            begin = n_ladders
            tick = main_markets(
                np.int64(at), markets, segments, rows, book, net, reason, wanted, stamp, tick, work, mains, no_counts
            )
            if totals[at] >= 0:
                tick = main_markets(
                    np.int64(totals[at]), markets, segments, rows, book, net, reason, wanted, stamp, tick, work,
                    total_mains, no_counts,
                )  # fmt: skip
            else:
                total_mains[:] = NONE
        if row_of[v] < begin:
            main, total_market = mains[v], total_mains[v]
            is_shared = main >= 0 and reference[main] != NONE and (total_market < 0 or reference[total_market] != NONE)
            row = begin
            while row < n_ladders and not (is_shared and market[row] == main and line[row] == total_market):
                row += 1
            if row == n_ladders:
                total_of[row], user[row], market[row], line[row] = at, v, main, total_market
                n_ladders += 1
            row_of[v] = row
        row_of_case[c] = row_of[v]
    n, n_all = 0, n_ladders
    while n < n_all:
        at = total_of[n]
        row = kind[at], sport[event[at]]
        total_market = line[n]
        line[n] = threshold[market[n]] if market[n] >= 0 else 0
        shape[n], scale[n], table[n], level[n] = shapes[row], scales[row], tables[row], ladder_level[at]
        total_of[n] = NONE
        if shape[n] == middle.SKELLAM and n < n_ladders:
            if totals[at] >= 0:
                total_of[n] = n_all
                total_of[n_all] = totals[at]
                user[n_all] = user[n]
                market[n_all] = total_market
                n_all += 1
            else:
                scale[n] = np.nan
        n += 1
    return n_ladders, n_all


@kernel
def _scale(points, level, zero, zero_source, shape_tails, tail):
    """Scale both sides of 0 of a fitted margin to the ladders' tails at plus and minus one half, `zero` (cases, 4).

    `shape_tails` (cases, 2) are the shape's tails there. In a game that cannot end level, a window across 0 is nan
    without the ladders' tails.

    `zero_source` (per case) is the source of `zero`, and `level` that of the case's ladder.
    """
    for c in range(points.shape[0]):
        spans_zero = points[c, 0] < 0 and points[c, 3] > 0
        for j in range(4):
            if zero_source[c] == NOWHERE:
                if spans_zero and not np.isnan(level[c]):
                    tail[c, j] = np.nan
            elif points[c, j] > 0:
                tail[c, j] = tail[c, j] * zero[c, 3] / shape_tails[c, 1]
            else:
                tail[c, j] = 1.0 - (1.0 - tail[c, j]) * (1.0 - zero[c, 0]) / (1.0 - shape_tails[c, 0])


@kernel
def _share(ladder, points, base, zero, first_case, row_of_case):
    """Number the distinct (ladder, points, base, zero) of cases; equal ladders and points are adjacent.

    Returns their number. `base` and `zero` are per case.
    """
    n_rows, begin = 0, 0
    for c in range(ladder.size):
        is_repeat = c > 0 and ladder[c] == ladder[c - 1]
        for j in range(4):
            is_repeat = is_repeat and points[c, j] == points[c - 1, j]
        if not is_repeat:
            begin = n_rows
        row = begin
        while row < n_rows and not (base[first_case[row]] == base[c] and zero[first_case[row]] == zero[c]):
            row += 1
        row_of_case[c] = row
        if row == n_rows:
            first_case[row] = c
            n_rows += 1
    return n_rows


def by_shape(prices: FairPrices, forms: Forms, links: Curves, who: Longs, ladder: Longs, points: Longs) -> Tails:
    """Tails from a shape fitted to the fair probability (`market_fair`) of each ladder's main line; else source 0.

    If a game cannot end level, or a three-way moneyline is quoted, both sides of 0 are scaled to the moneyline. In a
    game that cannot end level, a window across 0 is nan without a moneyline.
    """
    if not ladder.size:
        return Tails(np.empty((0, 4)), np.empty(0, np.uint8), np.empty(0, np.int64))
    g = prices.groups
    location, shapes, base = _locate(prices, forms, links, who, ladder)
    margin = np.flatnonzero(forms.role[g.kind[ladder]] == _MARGIN)
    around = np.empty((margin.size, 4), np.int64)
    around[:, :2], around[:, 2:] = -50, 50
    known = ladder_tails(prices, links, who[margin], ladder[margin], around)
    zero = np.full(ladder.size, -1, np.int64)
    zero[margin] = known.of
    first, of = np.empty((2, ladder.size), np.int64)
    first = first[: _share(ladder, points, base, zero, first, of)]
    base, zero, points = base[first], zero[first], points[first]
    tail = middle.tail_columns(_take(shapes, base), location[base], points)
    at = np.flatnonzero(zero >= 0)
    if at.size:
        own = middle.tail_columns(_take(shapes, base[at]), location[base[at]], around[: at.size, 1:3])
        scaled = tail[at]
        _scale(points[at], links.level[ladder[first[at]]], known.tail[zero[at]], known.source[zero[at]], own, scaled)
        tail[at] = scaled
    tail[~np.isfinite(tail)] = np.nan
    return Tails(tail, np.where(np.isnan(tail).any(axis=1), np.uint8(NOWHERE), np.uint8(SHAPE)), of)


def _take(shapes: middle.Shapes, at: Longs | slice) -> middle.Shapes:
    return middle.Shapes(shapes.kind[at], shapes.scale[at], shapes.level[at], shapes.table[at], shapes.weights)


def _locate(
    prices: FairPrices, forms: Forms, links: Curves, who: Longs, ladder: Longs
) -> tuple[Floats, middle.Shapes, Longs]:
    """Fit a shape to each ladder's main line. Returns locations, shapes, and the index of each case's fit.

    The location is nan without a shape or a main line.
    """
    g, n = prices.groups, 2 * ladder.size
    user, market, line, shape, table, total_of, of_case = np.empty((7, n), np.int64)
    scale, level = np.empty((2, n))
    reference = prices.reference
    if prices.close is not None:  # the estimate is the same for all users, too
        reference = np.where(np.isnan(prices.close.segment[g.segments[:-1]]), reference, np.int32(0))
    users, books = prices.wanted.shape
    n, rows = _bases(
        who, ladder, g.markets, g.segments, g.rows, g.book, prices.net, prices.reason,
        prices.by_book, reference, g.threshold, g.event, g.kind, links.totals, links.level,
        forms.sport, forms.shape, forms.scale, forms.table, np.full(books, -1, np.int64), np.empty((5, users)),
        np.empty(users, np.int64), np.empty(users, np.int64), np.full(users, -1, np.int64), np.empty(0, np.int32),
        user, market, line, shape, scale, level, table, total_of, of_case,
    )  # fmt: skip
    shapes = middle.Shapes(shape, scale, level, table, forms.weights)
    anchor = market_fair(prices, market[:rows], user[:rows])[:, 0].copy()
    if rows > n:
        mean = middle.fit_columns(_take(shapes, slice(n, rows)), line[n:rows], anchor[n:])
        margins = np.flatnonzero(total_of[:n] >= 0)
        scale[margins] *= mean[total_of[margins] - n]
    shapes = _take(shapes, slice(0, n))
    return middle.fit_columns(shapes, line[:n], anchor[:n]), shapes, of_case[: ladder.size]


def best_tails(prices: FairPrices, forms: Forms, ladder: Longs, points: Longs) -> Floats:
    """Tails from the best available source for the first user, nan without one."""
    who = np.zeros(ladder.size, np.int64)
    links = curves(prices.groups, forms)
    known = ladder_tails(prices, links, who, ladder, points)
    tail, rest = known.tail[known.of], np.flatnonzero(known.source[known.of] == NOWHERE)
    if rest.size:
        shape = by_shape(prices, forms, links, who[rest], ladder[rest], points[rest])
        tail[rest] = shape.tail[shape.of]
    return tail
