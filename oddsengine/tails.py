"""Tails: P(X > h) of a margin or total at half points, read from the board.

Three sources, best first: the ladder of one reference book (its own de-vigged half lines), the median of the books'
ladders, a fitted shape. A ladder that is asked at several points must have them all from one book, so that noise
between books is not taken for probability. The moneyline is the spread ladder's point at one half; where a game cannot
end level it is the point at minus one half too.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog, middle
from oddsengine._jit import kernel
from oddsengine.detect import View, market_fair
from oddsengine.groups import Bytes, Floats, Longs

NOWHERE, LADDER, MEDIAN, SHAPE = 0, 1, 2, 3


class Tails(NamedTuple):
    """P(X > point) at the points asked for, and where it comes from."""

    tail: Floats  # (cases, 4)
    source: Bytes


@kernel
def _by_book(book, segment, trust, rows, books, own, trusted):
    """The fair probability of one book in a segment, nan if it has none there."""
    if segment >= 0:
        for i in range(rows[segment], rows[segment + 1]):
            if books[i] == book and not np.isnan(own[i]) and (not trust or trusted[i] != 0):
                return own[i]
    return np.nan


@kernel
def _at(book, point, trust, here, across, two, three, level, rows, books, own, trusted):
    """P(X > point) by one book, from its half line there, else (at plus and minus one half) from its moneyline.

    `here` and `across` are the over segments of the lines at the point and at its negative, `two` and `three` the home
    segments of the moneylines; -1 where there is none.
    """
    p = _by_book(book, here, trust, rows, books, own, trusted)
    if not np.isnan(p) or (abs(point) != 50):
        return p
    if not np.isnan(level):
        p = _by_book(book, two, trust, rows, books, own, trusted) * (1.0 - level)
        if np.isnan(p):
            p = _by_book(book, across, trust, rows, books, own, trusted)
            return p - level if point == 50 else p + level
        return p if point == 50 else p + level
    if three >= 0:
        if point == 50:
            return _by_book(book, three, trust, rows, books, own, trusted)
        return 1.0 - _by_book(book, three + 2, trust, rows, books, own, trusted)
    return np.nan


@kernel
def _gather(s, rows, books, own, ids, n):
    """Add the books of a segment to the sorted list of n; returns its new length."""
    for i in range(rows[s], rows[s + 1]):
        if np.isnan(own[i]):
            continue
        b = books[i]
        k = n
        while k > 0 and ids[k - 1] > b:
            k -= 1
        if k > 0 and ids[k - 1] == b:
            continue
        for j in range(n, k, -1):
            ids[j] = ids[j - 1]
        ids[k] = b
        n += 1
    return n


@kernel
def _read(
    ladder, points, markets, segments, rows, books, own, trusted, rank, counted, feed, threshold, two, three, level,
    tail, source, ids, order, held, here, across,
):  # fmt: skip
    """Tails of cases (ladder, four points) from the first reference that has them all, else the books' median."""
    for c in range(ladder.size):
        at = ladder[c]
        for j in range(4):
            here[j] = -1
            across[j] = -1
        for m in range(markets[at], markets[at + 1]):
            for j in range(4):
                if threshold[m] == points[c, j]:
                    here[j] = segments[m]
                elif threshold[m] == -points[c, j] and (threshold[m] == 50 or threshold[m] == -50):
                    across[j] = segments[m]
        s2 = segments[two[at]] if two[at] >= 0 else np.int64(-1)
        s3 = segments[three[at]] if three[at] >= 0 else np.int64(-1)
        n = np.int64(0)
        for j in range(4):
            s = here[0]
            if j > 0:
                if abs(points[c, 0]) != 50:
                    break
                s = across[0]
                if j == 2:
                    s = s2
                elif j == 3:
                    s = s3
            if s >= 0:
                n = _gather(s, rows, books, own, ids, n)
        source[c] = 0
        best = np.int32(2147483647)
        found = 0
        for median in range(2):
            for k in range(n):
                b = ids[k]
                if median == 0 and rank[b] >= best:
                    continue
                if median == 1 and counted[b] == 0:
                    continue
                twin = False
                for j in range(found):
                    twin = twin or (median == 1 and feed[order[j]] == feed[b])
                if twin:
                    continue
                last = 1.0
                p = 1.0
                for j in range(4):
                    if j > 0 and points[c, j] == points[c, j - 1]:
                        held[found, j] = p
                        continue
                    p = _at(
                        b, points[c, j], median == 0, here[j], across[j], s2, s3, level[at], rows, books, own, trusted
                    )
                    held[found, j] = p
                    if not (p <= last):
                        last = np.nan
                    else:
                        last = p
                if np.isnan(last):
                    continue
                if median == 0:
                    best = rank[b]
                    source[c] = 1
                    for j in range(4):
                        tail[c, j] = held[0, j]
                else:
                    spread = held[found, 0] - held[found, 3]
                    k2 = found
                    t0, t1, t2, t3 = held[found, 0], held[found, 1], held[found, 2], held[found, 3]
                    while k2 > 0 and held[k2 - 1, 0] - held[k2 - 1, 3] > spread:
                        for j in range(4):
                            held[k2, j] = held[k2 - 1, j]
                        order[k2] = order[k2 - 1]
                        k2 -= 1
                    held[k2, 0], held[k2, 1], held[k2, 2], held[k2, 3] = t0, t1, t2, t3
                    order[k2] = b
                    found += 1
            if source[c] == 1:
                break
        if source[c] == 0 and found > 0:
            source[c] = 2
            for j in range(4):
                tail[c, j] = 0.5 * (held[(found - 1) // 2, j] + held[found // 2, j])


class Curves(NamedTuple):
    """What is known of each ladder's X beside its own prices."""

    two: Longs  # the event's two-way moneyline market, -1 none
    three: Longs  # the three-way one
    level: Floats  # P(X = 0), nan where nothing is known of it
    totals: Longs  # the ladder of both sides' total, -1 none


def curves(view: View) -> Curves:
    """Link every spread ladder to the moneylines and the total of its event and period."""
    g, kinds = view.groups, view.identity.kinds
    n = g.event.size
    two, three, totals = (np.full(n, -1, np.int64) for _ in range(3))
    level = np.full(n, np.nan)
    main_spread = np.array([k.family == "spread" for k in kinds], bool)
    if not n or not main_spread.any():
        return Curves(two, three, level, totals)
    periods = {k.period: at for at, k in enumerate(kinds)}
    period = np.array([periods[k.period] for k in kinds], np.int64)
    place = (g.event.astype(np.int64) * 2 + g.live) * len(kinds) + period[g.kind]
    spreads = np.flatnonzero(main_spread[g.kind])
    for family, out in (("moneyline", two), ("moneyline_3way", three), ("total", totals)):
        wanted = np.array([k.family == family for k in kinds], bool)
        at = np.flatnonzero(wanted[g.kind])
        if not at.size:
            continue
        order = at[np.argsort(place[at], kind="stable")]
        hit = np.minimum(np.searchsorted(place[order], place[spreads]), order.size - 1)
        same = place[order[hit]] == place[spreads]
        out[spreads[same]] = order[hit[same]] if family == "total" else g.markets[order[hit[same]]]
    sports = view.identity.sports
    full = np.array([k.period == catalog.FULL_GAME for k in kinds], bool)[g.kind[spreads]]
    levels = np.array([np.nan if s.level is None else s.level for s, _ in sports], float)
    level[spreads] = np.where(full, levels[g.event[spreads]], np.nan)
    # Regulation's three ways say nothing of a margin that overtime decides, nor two ways of one that ends level.
    three[~np.isnan(level)] = -1
    two[np.isnan(level)] = -1
    return Curves(two, three, level, totals)


def read(view: View, links: Curves, ladder: Longs, points: Longs) -> Tails:
    """Tails at four half points a case (hundredths, rising), from ladders only; source 0 where no book has them."""
    g = view.groups
    tail = np.full((ladder.size, 4), np.nan)
    source = np.zeros(ladder.size, np.uint8)
    most = view.feed.size + 1
    _read(
        ladder, points, g.markets, g.segments, g.rows, g.book, view.own, view.trusted, view.rank, view.counted,
        view.feed, g.threshold, links.two, links.three, links.level, tail, source,
        np.empty(most, np.int32), np.empty(most, np.int32), np.empty((most, 4)), np.empty(4, np.int64),
        np.empty(4, np.int64),
    )  # fmt: skip
    return Tails(tail, source)


def fitted(view: View, links: Curves, ladder: Longs, points: Longs, anchors: Floats) -> Floats:
    """Tails by a shape fitted to each ladder's main line.

    `anchors` is the fair probability of over at the main line of each case's ladder. Where a game cannot end level,
    or three ways are quoted, the two sides of 0 are scaled to what the moneyline says of them; a window across 0 in a
    game that cannot end level has no answer without one.
    """
    g, kinds = view.groups, view.identity.kinds
    if not ladder.size:
        return np.empty((0, 4))
    unique, of_case = np.unique(ladder, return_inverse=True)
    anchor = np.empty(unique.size)
    anchor[of_case] = anchors
    lines = _main_line(view, unique)
    location, shapes = _locate(view, links, unique, lines, anchor)
    per_case = middle.Shapes(
        shapes.kind[of_case], shapes.scale[of_case], shapes.level[of_case], shapes.table[of_case], shapes.weights
    )
    tail = middle.tail(per_case, location[of_case], points)
    spread = np.array([k.family == "spread" for k in kinds], bool)[g.kind[ladder]]
    if spread.any():
        at_zero = read(view, links, ladder[spread], np.tile(np.array([-50, -50, 50, 50]), (int(spread.sum()), 1)))
        own = middle.tail(
            middle.Shapes(
                per_case.kind[spread],
                per_case.scale[spread],
                per_case.level[spread],
                per_case.table[spread],
                shapes.weights,
            ),
            location[of_case][spread],
            np.tile(np.array([-50, 50]), (int(spread.sum()), 1)),
        )
        low, high = at_zero.tail[:, :1], at_zero.tail[:, 3:]
        known = (at_zero.source > 0)[:, None]
        here, at = tail[spread], points[spread]
        with np.errstate(invalid="ignore", divide="ignore"):
            above = here * high / own[:, 1:]
            below = 1.0 - (1.0 - here) * (1.0 - low) / (1.0 - own[:, :1])
        scaled = np.where(at > 0, above, below)
        settled = ~np.isnan(links.level[ladder[spread]])
        across = (at[:, 0] < 0) & (at[:, 3] > 0)
        here = np.where(known, scaled, here)
        here[(settled & across & ~known[:, 0])] = np.nan
        tail[spread] = here
    return np.where(np.isfinite(tail), tail, np.nan)


def by_shape(view: View, links: Curves, ladder: Longs, points: Longs) -> Floats:
    """Tails by a shape fitted to what the reference, or else the best prices, say of each ladder's main line."""
    market = main_market(view, ladder)
    anchors = np.full(ladder.size, np.nan)
    offered = np.flatnonzero(market >= 0)
    unique, of_case = np.unique(market[offered], return_inverse=True)
    anchors[offered] = market_fair(view, unique)[of_case, 0]
    return fitted(view, links, ladder, points, anchors)


def best(view: View, ladder: Longs, points: Longs) -> Floats:
    """Tails from the best source there is, nan where there is none."""
    links = curves(view)
    known = read(view, links, ladder, points)
    rest = np.flatnonzero(known.source == NOWHERE)
    tail = known.tail
    if rest.size:
        tail[rest] = by_shape(view, links, ladder[rest], points[rest])
    return tail


def _main_line(view: View, ladders: npt.NDArray[np.int64]) -> Longs:
    """Threshold of the main line of each ladder."""
    g = view.groups
    main = np.flatnonzero(view.main)
    of_ladder = np.zeros(g.event.size, np.int64)
    of_ladder[g.ladder[main]] = g.threshold[main]
    return of_ladder[ladders]


def main_market(view: View, ladders: npt.NDArray[np.int64]) -> Longs:
    """The main market of each ladder, -1 where none is offered."""
    g = view.groups
    main = np.flatnonzero(view.main)
    of_ladder = np.full(g.event.size, -1, np.int64)
    of_ladder[g.ladder[main]] = main
    return of_ladder[ladders]


def _locate(
    view: View, links: Curves, ladders: npt.NDArray[np.int64], lines: Longs, anchor: Floats
) -> tuple[Floats, middle.Shapes]:
    """Fit each ladder's shape to its main line; nan where no shape is known."""
    g, kinds = view.groups, view.identity.kinds
    sports = view.identity.sports
    tables: dict[tuple[float, ...], int] = {(1.0,): 0}
    name, scale, ratio, table, fraction = [], [], [], [], []
    known: dict[tuple[str, str, str], tuple[catalog.Shape | None, tuple[float, ...]]] = {}
    for at in ladders.tolist():
        kind = kinds[g.kind[at]]
        sport, league = sports[g.event[at]]
        key = (kind.family, sport.id, league)
        if key not in known:
            found = catalog.shape(*key)
            weights = sport.scores_in(league).key_weights if found and found.name == "normal_key" else ()
            known[key] = found, (1.0, *weights)
        shape, weights = known[key]
        name.append(shape.name if shape and kind.fraction > 0 else "")
        scale.append(shape.sd if shape else 0.0)
        ratio.append(shape.variance_ratio if shape else 1.0)
        table.append(tables.setdefault(weights, len(tables)))
        fraction.append(kind.fraction)
    names, ratios = np.array(name, dtype=np.str_), np.array(ratio)
    scales = np.array(scale) * np.sqrt(np.array(fraction))
    kind_codes = np.array([_KINDS.get(n, middle.NORMAL) for n in name], np.int64)
    level = links.level[ladders]
    rows = np.ones((len(tables), max(map(len, tables))))
    for weights, at in tables.items():
        rows[at, : len(weights)] = weights
    skellam = names == "skellam"
    if skellam.any():
        scales[skellam] = _expected_total(view, links, ladders[skellam]) * ratios[skellam]
    scales = np.where((names == "negative_binomial") | (names == "poisson"), ratios, scales)
    shapes = middle.Shapes.of(kind_codes, scales, level, np.array(table, np.int64), rows)
    location = middle.fit(shapes, lines, anchor)
    location[names == ""] = np.nan
    return location, shapes


_KINDS = {
    "poisson": middle.POISSON,
    "skellam": middle.SKELLAM,
    "negative_binomial": middle.NEGATIVE_BINOMIAL,
    "normal": middle.NORMAL,
    "normal_key": middle.MARGIN,
}


def _expected_total(view: View, links: Curves, ladders: npt.NDArray[np.int64]) -> Floats:
    """Mean of both sides' total by the main line of the event's total, nan without one."""
    from_ladder = links.totals[ladders]
    mean = np.full(ladders.size, np.nan)
    has = np.flatnonzero(from_ladder >= 0)
    if has.size:
        totals = from_ladder[has]
        market = main_market(view, totals)
        anchor = np.full(has.size, np.nan)
        offered = market >= 0
        anchor[offered] = market_fair(view, market[offered])[:, 0]
        mean[has], _ = _locate(view, links, totals, _main_line(view, totals), anchor)
    return mean
