"""Tails: P(X > h) of a margin or total at half points, read from the board.

Three sources, best first: the ladder of one reference book (its own de-vigged half lines), the median of the books'
ladders, and a fitted shape. All points of one case must come from the same book, so that differences between books are
not mistaken for probability. The moneyline is the spread ladder's point at one half; if a game cannot end level, it is
also the point at minus one half.

With the method `close`, a ladder only gives the shape: its logits are shifted by one constant, so that their mean
matches the estimator's.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine._jit import inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Float, Floats, Int, Ints, Longs, Words
from oddsengine.detection.market_fair import market_fair
from oddsengine.guards.main_markets import main_markets
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import MarketKind
from oddsengine.maths import distributions
from oddsengine.maths.shape_fitting import fit_columns
from oddsengine.pricing.references import UNRANKED, FairPrices, PricedColumns

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
    full_game: Bytes  # per kind
    sport: Ints  # per event: the sport and league, a column of the tables below
    level: Floats  # per sport: P(margin = 0) of the full game, nan if a tie is an ordinary result
    shape: Longs  # (kinds, sports): as in `distributions.KINDS`
    scale: Floats  # (kinds, sports): nan without a shape; relative to the expected total for a Skellam margin
    table: Longs  # (kinds, sports): a row of `weights`
    weights: Floats  # (tables, numbers): as in `distributions.Shapes`


_SHAPES = {
    "poisson": distributions.POISSON,
    "skellam": distributions.SKELLAM,
    "negative_binomial": distributions.NEGATIVE_BINOMIAL,
    "normal": distributions.NORMAL,
    "normal_key": distributions.MARGIN,
}


@lru_cache(maxsize=1 << 14)
def form(family: str, sport: str, league: str, fraction: float) -> tuple[int, float, tuple[float, ...]]:
    """Shape, scale and weights for the number that a family's line divides; the scale is nan without a shape."""
    shape = catalog.shape(family, sport, league)
    if shape is None or not fraction > 0:
        return distributions.NORMAL, np.nan, ()
    if shape.name == "normal_key":
        return distributions.MARGIN, shape.sd * np.sqrt(fraction), catalog.sport(sport).scores_in(league).key_weights
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
        full_game=np.array([k.period == catalog.FULL_GAME for k in kinds], np.uint8),
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
def _link(g: Groups, forms: Forms, links: Curves) -> None:
    """For each ladder of a game's margin, find the moneylines and total of its event and period; ladders by event.

    They are written to `links`.
    """
    first, n = 0, g.event.size
    while first < n:
        end = first + 1
        while end < n and g.event[end] == g.event[first] and g.live[end] == g.live[first]:
            end += 1
        for at in range(first, end):
            links.two[at] = links.three[at] = links.totals[at] = NONE
            links.level[at] = np.nan
            if forms.role[g.kind[at]] != _MARGIN:
                continue
            if forms.full_game[g.kind[at]] != 0:
                links.level[at] = forms.level[forms.sport[g.event[at]]]
            # Regulation's three ways say nothing of a margin that overtime decides, nor two ways of one that may be 0.
            has_level = not np.isnan(links.level[at])
            is_skellam = forms.shape[g.kind[at], forms.sport[g.event[at]]] == distributions.SKELLAM
            for other_ladder in range(first, end):
                other_role = forms.role[g.kind[other_ladder]]
                if other_role < _TWO_WAY or forms.period[g.kind[other_ladder]] != forms.period[g.kind[at]]:
                    continue
                if other_role == _TWO_WAY and has_level and links.two[at] < 0:
                    links.two[at] = g.markets[other_ladder]
                elif other_role == _THREE_WAY and not has_level and links.three[at] < 0:
                    links.three[at] = g.markets[other_ladder]
                elif other_role == _TOTAL and is_skellam and links.totals[at] < 0:
                    links.totals[at] = other_ladder
        first = end


def curves(g: Groups, forms: Forms) -> Curves:
    """Link every ladder of a game's margin to the moneylines and the total that its tails depend on."""
    n = g.event.size
    links = Curves(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64))
    _link(g, forms, links)
    return links


class TailCases(NamedTuple):
    """What tails are asked for; equal cases of several users should be adjacent."""

    who: Longs
    ladder: Longs
    points: Longs  # (cases, 4): hundredths, ascending


class TailRows(NamedTuple):
    """The tails found, to write; cases with the same inputs share a row."""

    tail: Floats  # (rows, 4)
    source: Bytes  # per row
    first_case: Longs  # per row
    of: Longs  # per case: its row


class BookTails(NamedTuple):
    """Scratch arrays: each book's tails of a ladder at four points."""

    tails: Floats  # (2, 4, books): by `_ANY` price and by `_TRUSTED` ones; nan if unknown, as all are on entry
    ids: Ints  # books with a tail at the first point, sorted
    column: Longs  # per point: the first point that is equal, whose tail is stored


class TailSpeakers(NamedTuple):
    """Scratch arrays: the books of a ladder that have all four tails."""

    of_row: Words  # per row: bits of those that count for its users
    books: Ints
    order: Ints  # one book per provider, by the difference of its outer tails
    spread: Floats  # that difference


@kernel
def _fill(
    j: Int, segment: Int, scale: Float, shift: Float, rows: Longs, book: Ints, own: Floats, trusted: Bytes,
    book_tails: BookTails, n: Int,
) -> Int:  # fmt: skip
    """Store `scale` p + `shift` at point `j` for the books of a segment (fair probability p) without a tail there yet.

    The first point determines the books; other points are stored only for these. Returns the number of books.

    - `segment`: `NONE` if there is none
    - `rows`, `book`: as in `Groups`; `own`, `trusted`: as in `PricedColumns`
    - `n`: number of books so far
    """
    if segment < 0:
        return n
    for i in range(rows[segment], rows[segment + 1]):
        if np.isnan(own[i]):
            continue
        b = book[i]
        if np.isnan(book_tails.tails[_ANY, 0, b]):
            if j > 0:
                continue
            k = n
            while k > 0 and book_tails.ids[k - 1] > b:
                book_tails.ids[k] = book_tails.ids[k - 1]
                k -= 1
            book_tails.ids[k] = b
            n += 1
        p = own[i] * scale + shift
        if np.isnan(book_tails.tails[_ANY, j, b]):
            book_tails.tails[_ANY, j, b] = p
        if trusted[i] != 0 and np.isnan(book_tails.tails[_TRUSTED, j, b]):
            book_tails.tails[_TRUSTED, j, b] = p
    return n


@inlined
def _median_tails(
    row: Int,
    n_speakers: Int,
    counted: Bytes,
    provider: Ints,
    book_tails: BookTails,
    speakers: TailSpeakers,
    out: TailRows,
) -> None:
    """Write the median of the books' tails, one book per provider, to a row.

    - `row`: the row; `n_speakers` books have all four tails
    - `counted` (per book): those that count for the user; `provider`: as in `Traits`
    """
    order, spread, tails, column = speakers.order, speakers.spread, book_tails.tails, book_tails.column
    n_providers = 0
    for k in range(n_speakers):
        b = speakers.books[k]
        is_skipped = counted[b] == 0
        for x in range(n_providers):
            is_skipped = is_skipped or provider[order[x]] == provider[b]
        if is_skipped:
            continue
        gap = tails[_ANY, column[0], b] - tails[_ANY, column[3], b]
        x = n_providers
        while x > 0 and spread[x - 1] > gap:
            spread[x] = spread[x - 1]
            order[x] = order[x - 1]
            x -= 1
        spread[x] = gap
        order[x] = b
        n_providers += 1
    for j in range(4):
        out.tail[row, j] = np.nan
    if n_providers > 0:
        out.source[row] = MEDIAN
        low, high = order[(n_providers - 1) // 2], order[n_providers // 2]
        for j in range(4):
            out.tail[row, j] = 0.5 * (tails[_ANY, column[j], low] + tails[_ANY, column[j], high])


@kernel
def _read(
    cases: TailCases, g: Groups, columns: PricedColumns, rank: Ints, counted: Bytes, provider: Ints, links: Curves,
    book_tails: BookTails, speakers: TailSpeakers, out: TailRows,
) -> Int:  # fmt: skip
    """Tails of cases (ladder, four points) from the first reference that has all four, else the books' median.

    A book's tail at a point is its half line there; at plus or minus one half of a margin also its moneyline, or its
    half line on the other side of 0. Cases of several users share a row if the same books contribute. Returns the
    number of rows.

    - `rank`: as in `ReferenceBooks`
    - `counted` (users, books): as in `Users`; `provider`: as in `Traits`
    """
    ladder, points = cases.ladder, cases.points
    n: Int = np.int64(0)
    n_speakers: Int = np.int64(0)
    n_rows, begin = np.int64(0), np.int64(0)
    for c in range(ladder.size):
        at = ladder[c]
        is_repeat = c > 0 and at == ladder[c - 1]
        for j in range(4):
            is_repeat = is_repeat and points[c, j] == points[c - 1, j]
        if not is_repeat:
            for k in range(n):
                for j in range(4):
                    book_tails.tails[_ANY, j, book_tails.ids[k]] = book_tails.tails[_TRUSTED, j, book_tails.ids[k]] = (
                        np.nan
                    )
            n = _hold(at, points[c], g, columns.own, columns.trusted, links, book_tails)
            begin = n_rows
            best_rank, best_book, n_speakers = np.int32(UNRANKED), np.int32(NONE), 0
            for k in range(n):
                b = book_tails.ids[k]
                if _falls(book_tails.tails, _ANY, book_tails.column, b):
                    speakers.books[n_speakers] = b
                    n_speakers += 1
                if rank[b] < best_rank and _falls(book_tails.tails, _TRUSTED, book_tails.column, b):
                    best_rank, best_book = rank[b], b
            if best_book >= 0:
                out.source[n_rows], out.first_case[n_rows] = LADDER, c
                for j in range(4):
                    out.tail[n_rows, j] = book_tails.tails[_TRUSTED, book_tails.column[j], best_book]
                n_rows += 1
        if n_rows > begin and out.source[begin] == LADDER:  # the same for all users
            out.of[c] = begin
            continue
        bits, bit = np.uint64(0), np.uint64(1)
        for k in range(n_speakers):
            bits |= bit if counted[cases.who[c], speakers.books[k]] != 0 else np.uint64(0)
            bit <<= np.uint64(1)
        row = begin if n_speakers <= _WORD_BITS else n_rows
        while row < n_rows and speakers.of_row[row] != bits:
            row += 1
        out.of[c] = row
        if row < n_rows:
            continue
        n_rows += 1
        speakers.of_row[row], out.source[row], out.first_case[row] = bits, NOWHERE, c
        _median_tails(row, n_speakers, counted[cases.who[c]], provider, book_tails, speakers, out)
    return n_rows


@kernel
def _segment(point: Int, low: Int, end: Int, segments: Longs, threshold: Ints) -> Int:
    """First segment of the market of a ladder (low to end) at a point, `NONE` if there is none.

    `low` and `end` are markets, `point` is in hundredths; `segments` and `threshold` are as in `Groups`.
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
def _hold(at: Int, points: Longs, g: Groups, own: Floats, trusted: Bytes, links: Curves, book_tails: BookTails) -> Int:
    """Collect each book's tails of a ladder at four points. Returns the number of books.

    - `at`, `points`: the ladder and the points
    - `own`, `trusted`: as in `PricedColumns`
    """
    two, three, level, first = links.two[at], links.three[at], links.level[at], g.markets[at]
    end = np.int64(g.markets[at + 1])
    has_level = not np.isnan(level)
    n: Int = np.int64(0)
    for j in range(4):
        point = points[j]
        book_tails.column[j] = j
        if j > 0 and point == points[j - 1]:
            book_tails.column[j] = book_tails.column[j - 1]
            continue
        segment = _segment(point, first, end, g.segments, g.threshold)
        mirror_segment = _segment(-point, first, end, g.segments, g.threshold)
        n = _fill(j, segment, 1.0, 0.0, g.rows, g.book, own, trusted, book_tails, n)
        if abs(point) == _HALF and has_level:
            shift = 0.0 if point == _HALF else level
            if two >= 0:
                n = _fill(j, g.segments[two], 1.0 - level, shift, g.rows, g.book, own, trusted, book_tails, n)
            shift = -level if point == _HALF else level
            n = _fill(j, mirror_segment, 1.0, shift, g.rows, g.book, own, trusted, book_tails, n)
        elif abs(point) == _HALF and three >= 0:
            s = g.segments[three]
            if point == _HALF:
                n = _fill(j, s, 1.0, 0.0, g.rows, g.book, own, trusted, book_tails, n)
            else:
                n = _fill(j, s + 2, -1.0, 1.0, g.rows, g.book, own, trusted, book_tails, n)
        if n == 0:
            break
    return n


@kernel
def _falls(tails: Floats, origin: Int, column: Longs, b: Int) -> bool:
    """Whether a book has all four tails and they do not increase.

    `tails` and `column` are those of `BookTails`, `origin` is `_ANY` or `_TRUSTED`, and `b` the book.
    """
    last = 1.0
    for j in range(4):
        p = tails[origin, column[j], b]
        if not (p <= last):
            return False
        last = p
    return True


@kernel
def _centre(
    ladder: Longs, points: Longs, markets: Longs, segments: Longs, threshold: Ints, two: Longs, three: Longs,
    level: Floats, close: Floats, source: Bytes, tail: Floats,
) -> None:  # fmt: skip
    """Shift the logits of each case's tails so that their mean matches the estimated closing probabilities.

    - `ladder`, `points`: as in `TailCases`
    - `markets`, `segments`, `threshold`: as in `Groups`; `two`, `three`, `level`: as in `Curves`
    - `close` (per segment): the estimator's probabilities
    - `source`, `tail`: as in `Tails`, per case
    """
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
    speakers, order = np.empty((2, books), np.int32)
    made = int(_read(
        TailCases(who, ladder, points), g, prices.columns, prices.references.rank, prices.users.counted,
        prices.traits.provider, links,
        BookTails(np.full((2, 4, books), np.nan), np.empty(books, np.int32), np.empty(4, np.int64)),
        TailSpeakers(np.empty(n, np.uint64), speakers, order, np.empty(books)),
        TailRows(tail, source, first, of),
    ))  # fmt: skip
    tail, source, first = tail[:made], source[:made], first[:made]
    if prices.close is not None:
        _centre(
            ladder[first], points[first], g.markets, g.segments, g.threshold, links.two, links.three, links.level,
            prices.close.segment, source, tail,
        )  # fmt: skip
    return Tails(tail, source, of)


@kernel
def _providers(
    ladder: Longs, markets: Longs, segments: Longs, rows: Longs, book: Ints, provider: Ints, reason: Bytes,
    stamp: Longs, out: Longs,
) -> None:  # fmt: skip
    """Number of providers that quote each ladder.

    - `ladder` (per case): the ladders
    - `markets`, `segments`, `rows`, `book`: as in `Groups`
    - `provider`: as in `Traits`; `reason`: as in `PricedColumns`
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
        ladder, g.markets, g.segments, g.rows, g.book, provider, prices.columns.reason,
        np.full(provider.size + 1, NONE), out,
    )  # fmt: skip
    return out


class BaseRows(NamedTuple):
    """The fits that cases need, to write; one row per ladder and main line, then the totals that scale margins."""

    user: Longs
    market: Longs  # the main market, or `NONE`
    line: Longs  # its line
    shape: Longs
    scale: Floats
    level: Floats
    table: Longs
    total_of: Longs  # row of the ladder's total, or `NONE`


class MainRoom(NamedTuple):
    """Scratch arrays of the main lines of a ladder and of its total, by user."""

    stamp: Longs  # as in `main_markets`, like the next
    work: Floats
    mains: Longs
    total_mains: Longs
    no_counts: Ints
    row_of: Longs  # the row of each user's ladder; `NONE` on entry


@kernel
def _bases(
    who: Longs, ladder: Longs, g: Groups, columns: PricedColumns, by_book: Floats, reference: Ints, links: Curves,
    forms: Forms, room: MainRoom, out: BaseRows, row_of_case: Longs,
) -> tuple[Int, Int]:  # fmt: skip
    """List the fits that some users' cases need; the cases of a ladder are adjacent.

    Users share a row if a reference or the estimator prices the main line; else each has its own, since best prices
    differ. Returns the numbers of ladder rows and of all rows.

    - `who`, `ladder` (per case): the user and the ladder
    - `by_book`: as in `Users`
    - `reference`: as in `PricedColumns`, but not `NONE` either where the estimator prices the market
    - `row_of_case`: the row of each case, to write
    """
    n_ladders, begin = 0, 0
    tick: Int = np.int64(0)
    net, reason = columns.net, columns.reason
    for c in range(ladder.size):
        at, v = ladder[c], who[c]
        if c == 0 or at != ladder[c - 1]:
            begin = n_ladders
            tick = main_markets(
                np.int64(at), g.markets, g.segments, g.rows, g.book, net, reason, by_book, room.stamp, tick, room.work,
                room.mains, room.no_counts,
            )  # fmt: skip
            if links.totals[at] >= 0:
                tick = main_markets(
                    np.int64(links.totals[at]), g.markets, g.segments, g.rows, g.book, net, reason, by_book,
                    room.stamp, tick, room.work, room.total_mains, room.no_counts,
                )  # fmt: skip
            else:
                room.total_mains[:] = NONE
        if room.row_of[v] < begin:
            main, total_market = room.mains[v], room.total_mains[v]
            is_shared = main >= 0 and reference[main] != NONE and (total_market < 0 or reference[total_market] != NONE)
            row = begin
            while row < n_ladders and not (is_shared and out.market[row] == main and out.line[row] == total_market):
                row += 1
            if row == n_ladders:
                out.total_of[row], out.user[row], out.market[row], out.line[row] = at, v, main, total_market
                n_ladders += 1
            room.row_of[v] = row
        row_of_case[c] = room.row_of[v]
    n, n_all = 0, n_ladders
    while n < n_all:
        at = out.total_of[n]
        form_at = g.kind[at], forms.sport[g.event[at]]
        total_market = out.line[n]
        out.line[n] = g.threshold[out.market[n]] if out.market[n] >= 0 else 0
        out.shape[n], out.scale[n], out.table[n] = forms.shape[form_at], forms.scale[form_at], forms.table[form_at]
        out.level[n] = links.level[at]
        out.total_of[n] = NONE
        if out.shape[n] == distributions.SKELLAM and n < n_ladders:
            if links.totals[at] >= 0:
                out.total_of[n] = n_all
                out.total_of[n_all] = links.totals[at]
                out.user[n_all] = out.user[n]
                out.market[n_all] = total_market
                n_all += 1
            else:
                out.scale[n] = np.nan
        n += 1
    return n_ladders, n_all


@kernel
def _scale(points: Longs, level: Floats, zero: Floats, zero_source: Bytes, shape_tails: Floats, tail: Floats) -> None:
    """Scale both sides of 0 of a fitted margin to the ladders' tails at plus and minus one half, `zero` (cases, 4).

    `shape_tails` (cases, 2) are the shape's tails there. In a game that cannot end level, a window across 0 is nan
    without the ladders' tails.

    `zero_source` (per case) is the source of `zero`, and `level` that of the case's ladder; `points` and `tail` (cases,
    4) are the points and the tails.
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
def _share(ladder: Longs, points: Longs, base: Longs, zero: Longs, first_case: Longs, row_of_case: Longs) -> Int:
    """Number the distinct (ladder, points, base, zero) of cases; equal ladders and points are adjacent.

    Returns their number.

    - `ladder`, `points`, `base`, `zero`: per case
    - `first_case` (per row), `row_of_case` (per case): to write
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
    tail = distributions.tail_columns(_take(shapes, base), location[base], points)
    at = np.flatnonzero(zero >= 0)
    if at.size:
        own = distributions.tail_columns(_take(shapes, base[at]), location[base[at]], around[: at.size, 1:3])
        scaled = tail[at]
        _scale(points[at], links.level[ladder[first[at]]], known.tail[zero[at]], known.source[zero[at]], own, scaled)
        tail[at] = scaled
    tail[~np.isfinite(tail)] = np.nan
    return Tails(tail, np.where(np.isnan(tail).any(axis=1), np.uint8(NOWHERE), np.uint8(SHAPE)), of)


def _take(shapes: distributions.Shapes, at: Longs | slice) -> distributions.Shapes:
    return distributions.Shapes(shapes.kind[at], shapes.scale[at], shapes.level[at], shapes.table[at], shapes.weights)


def _locate(
    prices: FairPrices, forms: Forms, links: Curves, who: Longs, ladder: Longs
) -> tuple[Floats, distributions.Shapes, Longs]:
    """Fit a shape to each ladder's main line. Returns locations, shapes, and the index of each case's fit.

    The location is nan without a shape or a main line.
    """
    g, n = prices.groups, 2 * ladder.size
    user, market, line, shape, table, total_of, of_case = np.empty((7, n), np.int64)
    scale, level = np.empty((2, n))
    reference = prices.columns.reference
    if prices.close is not None:  # the estimate is the same for all users, too
        reference = np.where(np.isnan(prices.close.segment[g.segments[:-1]]), reference, np.int32(0))
    users, books = prices.users.wanted.shape
    mains, total_mains = np.empty((2, users), np.int64)
    room = MainRoom(
        np.full(books, NONE, np.int64), np.empty((5, users)), mains, total_mains, np.empty(0, np.int32),
        np.full(users, NONE, np.int64),
    )  # fmt: skip
    bases = BaseRows(user, market, line, shape, scale, level, table, total_of)
    n, rows = map(int, _bases(
        who, ladder, g, prices.columns, prices.users.by_book, reference, links, forms, room, bases, of_case
    ))  # fmt: skip
    shapes = distributions.Shapes(shape, scale, level, table, forms.weights)
    anchor = market_fair(prices, market[:rows], user[:rows])[:, 0].copy()
    if rows > n:
        mean = fit_columns(_take(shapes, slice(n, rows)), line[n:rows], anchor[n:])
        margins = np.flatnonzero(total_of[:n] >= 0)
        scale[margins] *= mean[total_of[margins] - n]
    shapes = _take(shapes, slice(0, n))
    return fit_columns(shapes, line[:n], anchor[:n]), shapes, of_case[: ladder.size]


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
