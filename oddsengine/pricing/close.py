"""Estimator: the fair price that equals, in expectation, the price at the close, from all other books in logits.

For the judged book j, on one line of a market, with x = ln(p / (1 - p)) of the first outcome after power de-vig of a
book's own prices (a market of three outcomes has one x per outcome):

    c     = median of the other providers on the line
    m     = mean of clip(x_i, c - clip, c + clip); providers on neighbouring lines have a smaller weight
    f     = sum w_i (x_i - m) / (1 + sum w_i),  w_i = weight_i exp(-age of i's last change / fade): fresh movers
    M     = momentum: the mean of the providers' moves, with a half-life of two hours
    fair  = m + share (sharp - m) + own clip(x_j - m) + kappa clip(M) + phi clip(f)
    own   = b_j weight / (base + number of other providers on the line)
    kappa = between `far` and `near`, by the hours left
    se    = scale sigma hours^(1/3): of fair as an estimate of the close, whose error has Student's t distribution with
            four degrees of freedom; sigma depends on the league and the hours left

`m` is the mean of the books that are not sharp; if only sharp books quote the line, it is theirs. Beside a sharp kappa
and phi shrink by its weight. Books of one provider share one vote, and the provider of the judged book has none. At
least two providers are needed on the line, or a sharp that was measured alone on that kind of market. Any other sharp
alone makes a price `suspect`, and no fair price of the market. The constants are in `catalog/fair.toml`.

**Updates.** Prices take effect at once, time once a minute: M, the ages of votes and changes and the hours left are
evaluated at the event's own minute, whose offset within the minute is derived from its id. So each second only a
sixtieth of the events has to be re-estimated.

**State.** Everything is a function of the current board except M, which is stored in `oddsengine.pricing.momentum`.

Columns of the kernels:

- `markets`, `segments`, `rows`, `row`, `market`, `threshold`, `live`, `book`, `side`, `outcomes`: as in `Groups`
- `row_book`, `row_seen`: as `book` and `seen` of `Groups`
- `provider`, `exchange`: as in `Traits`
- `net`, `reason` (per row): price after commission, and the guards' verdict
- `needed` (uint8): per market, as in `estimate`; in `complete`, 1 for a market whose entries are needed; in
  `_starts`, per ladder
- `start`, `minute` (int64 per ladder): as in `Times`
- `own`, `sharp` (float64 per book): as in `Voters`
- `c`: the constants of `catalog/fair.toml`
- `v_start`, `v_book`, `v_x`, `v_total`, `v_seen`, `v_latest`, `v_changed`: the votes of a board, the columns of
  `BookLogits`
- `b_from`, `b_provider`, `b_x`, `b_total`, `b_seen`, `b_weight`, `b_fresh`, `b_sharp`: the votes on one market, one per
  provider: the market the vote is from, the provider, its logits, the sum of 1/odds, when it was last seen, its weight,
  its weight as a fresh mover, and its weight as a sharp
- `place` (int32 per provider): index of the provider's vote, or `NONE`
- `k`: component of the logits: 0 if there are two outcomes, else the outcome
- `comps`: number of components
- `same`, `n`: number of providers' votes from the market's own line, which come first, and of all
- `v`, `left_out`: the provider's vote to leave out, or `NONE`
- `earliest`: time before which providers' votes do not count
- `oldest`: time before which votes are too old
- `neighbour_distance`: largest distance of a neighbouring line, hundredths
- `weight`: weight of a neighbouring line
- `since`: the event's minute
- `fade`: time in which a change loses its freshness, microseconds
- `slope`: logits per point of the line, nan if unknown
- `ordered` (float64): scratch array for sorted values
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import inlined, kernel
from oddsengine.catalog.fair_constants import FLAGS, OTHER, FairTable
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NO_TIME, NONE, Bytes, Floats, Ints, Longs, Words
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import BookFees, MarketKind, Traits
from oddsengine.maths.devig import devig_groups

SECOND = 1_000_000
CONSENSUS = -2
"""The reference of a market that is a consensus, instead of a book."""
_ROUNDING = 1e-9  # equal prices give no edge
_CENTRAL = {  # standard errors on each side of a central range: normal, Student's t with 4 degrees of freedom
    90: (1.6448536269514722, 2.1318467863266500),
    50: (0.6744897501960817, 0.7406970841126829),
}
BITS = {name: np.uint16(1 << at) for at, name in enumerate(FLAGS)}
_THIN, _NO_SHARP, _EARLY, _LONG, _, _UNMEASURED, SUSPECT, _LIVE, _ONE_REFERENCE, _ = BITS.values()
_PROP = np.uint16(1 << 15)  # of a kind of market; not stored with prices
_LIVE_BIT = FLAGS.index("live")
SKIP, MARKET, EVERY_ROW = 0, 1, 2  # what is needed of a market, see `estimate`
_CENTRES = 4  # values that the median can have with at most one provider left out
_DIRECT = 4  # tally of a mean that is computed directly
_TOTALS = frozenset({"total"})
_OUTLIER, _STALE = CODES["outlier"], CODES["stale"]
_NOTHING: Floats = np.empty(0)
_NO_FLAG = np.uint16(0)


class KindParameters(NamedTuple):
    """The table's values for the kinds of market in the leagues of a board."""

    sport: Ints  # per event: its sport and league, a column of the next three
    slope: Floats  # (kinds, sports): logits of the first outcome per point, nan where unknown
    reach: Longs  # (kinds, sports): largest move of a line that momentum follows, hundredths
    flags: npt.NDArray[np.uint16]  # (kinds, sports)
    alone: Words  # (kinds, sports): bit i is set if the table's `alone[i]` is for such markets
    sigma: Floats  # (sports, hours): as `sigma` of the table


class Voters(NamedTuple):
    """The table's values for the books of a board."""

    own: Floats  # b_j
    sharp: Floats  # weight as a sharp, else 0
    alone: Words  # bit i is set if the table's `alone[i]` is for the book


class BookLogits(NamedTuple):
    """Each book's own complete prices of a market, as logits."""

    start: Longs  # market -> votes
    book: Ints
    x: Floats  # (votes, widest); a market of two outcomes uses the first column
    total: Floats  # sum of 1/odds
    seen: Longs  # last seen, of its older price
    latest: Longs  # last seen, of its newer price
    changed: Longs  # last change of any of its prices, NO_TIME if unknown


class Fair(NamedTuple):
    """Fair probabilities of the prices of a board; nan if there is no estimate."""

    row: Floats  # per row, of the row's outcome for the row's book; scaled by its flags
    flags: npt.NDArray[np.uint16]  # per row, `BITS`
    others: Ints  # per row: providers on the line other than the book's own
    width: Floats  # per row: overround of the votes, or of the sharp
    se: Floats  # per ladder, logits; nan in play and if the start is unknown. Of a model: per row
    segment: Floats  # per segment: the estimate in which all books vote
    momentum: Floats  # (ladders, widest)
    of_model: bool = False  # a user's own probabilities
    votes: BookLogits | None = None  # with those of one-sided prices, if these were estimated too
    own_se: Floats | None = None  # likewise, per row: the error of a one-sided estimate, nan for other prices

    def errors(self, groups: Groups, row: Ints | Longs) -> Floats:
        """Standard errors of some rows, in log-odds."""
        if self.of_model:
            return self.se[row]
        se = self.se[groups.ladder[groups.market[row]]]
        return se if self.own_se is None else np.where(np.isnan(self.own_se[row]), se, self.own_se[row])


@lru_cache(maxsize=1 << 14)
def _line(table_id: int, kind: MarketKind, sport: str, league: str) -> tuple[float, int, int, int]:
    table = _TABLES[table_id]
    known = catalog.league(league, sport) if league else None
    measured = kind.period == catalog.FULL_GAME and not kind.prop
    measured = measured and kind.family in table.measured.get(sport, ())
    flags = 0 if measured else int(BITS["unmeasured"])
    if kind.family in _TOTALS:
        flags |= int(BITS["total"])
    if kind.prop:
        flags |= int(_PROP)
    alone = 0
    for at, right in enumerate(table.alone if kind.period == catalog.FULL_GAME else ()):
        if sport in right.props if kind.prop else kind.family in right.families:
            alone |= 1 << at
    of = table.lines.get(known.id if known else "", {})
    if kind.period != catalog.FULL_GAME or kind.family not in ("spread", "total") or kind.family not in of:
        return np.nan, 0, flags, alone
    return -table.constants.lines_logit / of[kind.family], round(of.get("points", 0.0) * 100.0), flags, alone


_TABLES: dict[int, FairTable] = {}


def lines(kinds: Sequence[MarketKind], sports: Iterable[tuple[catalog.Sport, str]], table: FairTable) -> KindParameters:
    """Look up the kinds of a board in the sports and leagues of its events."""
    _TABLES[id(table)] = table
    columns: dict[tuple[str, str], int] = {}
    of_event = [columns.setdefault((sport.id, league), len(columns)) for sport, league in sports]
    size = len(kinds), max(len(columns), 1)
    slope, reach, flags = np.full(size, np.nan), np.zeros(size, np.int64), np.zeros(size, np.uint16)
    alone = np.zeros(size, np.uint64)
    for row, kind in enumerate(kinds):
        for (sport_id, league), column in columns.items():
            at = row, column
            slope[at], reach[at], flags[at], alone[at] = _line(id(table), kind, sport_id, league)
    sigma = np.array([league_sigma(table, *of) for of in columns] or [table.sigma[OTHER]])
    return KindParameters(np.array(of_event, np.int32), slope, reach, flags, alone, sigma)


def league_key(sport: str | None, league: str | None) -> str:
    """The key of a league in `sigma` of the table, by any spelling."""
    known = catalog.league(league, catalog.sport(sport or "").id) if league else None
    return known.id if known else OTHER


def league_sigma(table: FairTable, sport: str | None, league: str | None) -> tuple[float, ...]:
    """The errors of a league by hours left, as in `sigma` of the table."""
    return table.sigma.get(league_key(sport, league), table.sigma[OTHER])


def voters(books: Sequence[str], table: FairTable) -> Voters:
    """Look up the books of a board."""
    known = [catalog.book(book) for book in books]
    c = table.constants
    usual = [c.sharp_exchange if b.exchange else c.sharp_other if b.sharp else 0.0 for b in known]
    return Voters(
        own=np.array([table.own.get(b.id, 1.0) for b in known], np.float64),
        sharp=np.array([table.sharps.get(b.id, w) for b, w in zip(known, usual, strict=True)], np.float64),
        alone=np.array(
            [sum(1 << at for at, right in enumerate(table.alone) if right.book == b.id) for b in known], np.uint64
        ),
    )


@kernel
def complete(needed, segments, rows, book, net, reason, place, pick, entry_rows, entry_odds, entry_ends):
    """The lowest price of every outcome, one entry per needed market and book that quotes all of its outcomes.

    - `place`, `pick`: scratch arrays by outcome: the next row, and the lowest price's row
    - `entry_rows`, `entry_odds`: rows and prices of the entries, to write
    - `entry_ends`: end of each entry in these, after a 0, to write
    Returns the number of entries.
    """
    at = np.int64(0)
    entries = 0
    for m in range(segments.size - 1):
        s0 = segments[m]
        n = segments[m + 1] - s0
        if n < 2 or needed[m] == SKIP:
            continue
        for k in range(n):
            place[k] = rows[s0 + k]
        i = rows[s0]
        while i < rows[s0 + 1]:
            b = book[i]
            is_complete = True
            for k in range(n):
                pick[k] = NONE
                j = place[k]
                end = rows[s0 + k + 1]
                while j < end and book[j] < b:
                    j += 1
                while j < end and book[j] == b:
                    if reason[j] == ACCEPTED and (pick[k] < 0 or net[j] < net[pick[k]]):
                        pick[k] = j
                    j += 1
                place[k] = j
                if pick[k] < 0:
                    is_complete = False
            if is_complete:
                for k in range(n):
                    entry_rows[at] = pick[k]
                    entry_odds[at] = net[pick[k]]
                    at += 1
                entries += 1
                entry_ends[entries] = at
            i = place[0]
    return entries


@kernel
def _votes(
    market, book, seen, changed, rows, odds, prob, ends, low, high, start, voter, x, total, oldest_seen, latest_seen,
    latest_change,
):  # fmt: skip
    """Logits of the entries of `complete` whose sum of probabilities qualifies for a vote. Returns their number.

    - `seen`, `changed` (int64 per row): when a price was last seen, and when it changed
    - `odds`, `prob`, `ends`: prices of the entries, their fair probabilities, and the offsets of the entries; here
      `rows` are their rows, and `market` and `book` are per row
    - `low`, `high`: limits on the sum of 1/odds
    - `voter`, `x`, `total`, `oldest_seen`, `latest_seen`, `latest_change`: with `start`, the columns of `BookLogits`
      to write
    """
    n = 0
    m = 0
    for e in range(ends.size - 1):
        a, size = ends[e], ends[e + 1] - ends[e]
        entry_market = market[rows[a]]
        while m <= entry_market:
            start[m] = n
            m += 1
        t = 0.0
        first_seen, last_seen, last_change = seen[rows[a]], seen[rows[a]], changed[rows[a]]
        for k in range(size):
            t += 1.0 / odds[a + k]
            first_seen = min(first_seen, seen[rows[a + k]])
            last_seen = max(last_seen, seen[rows[a + k]])
            last_change = max(last_change, changed[rows[a + k]])
        if not (low <= t <= high) or np.isnan(prob[a]):
            continue
        for k in range(1 if size == 2 else size):
            x[n, k] = np.log(prob[a + k] / (1.0 - prob[a + k]))
        if size == 2:
            x[n, 0] = np.log(prob[a] / prob[a + 1])
        voter[n], total[n], oldest_seen[n], latest_seen[n], latest_change[n] = (
            book[rows[a]],
            t,
            first_seen,
            last_seen,
            last_change,
        )
        n += 1
    while m < start.size:
        start[m] = n
        m += 1
    return n


def votes(
    groups: Groups, net: Floats, changed: Longs, reason: Bytes, widest: int, table: FairTable,
    needed: Bytes | None = None,
) -> BookLogits:  # fmt: skip
    """Collect the complete markets of each book as votes, including prices rejected only by `stale` or `outlier`.

    `needed` selects ladders (None: all); the others get no votes.
    """
    needed = np.ones(groups.event.size, np.uint8) if needed is None else needed
    g, n = groups, groups.row.size
    barred = ((reason != 0) & (reason != _OUTLIER) & (reason != _STALE)).view(np.uint8)
    entry_rows, entry_odds = np.empty(n, np.int32), np.empty(n)
    ends = np.zeros(n // 2 + 2, np.int64)
    count = complete(
        needed[g.ladder], g.segments, g.rows, g.book, net, barred, np.empty(widest, np.int64),
        np.empty(widest, np.int32), entry_rows, entry_odds, ends,
    )  # fmt: skip
    ends = ends[: count + 1]
    used = ends[-1]
    prob = devig_groups(entry_odds[:used], ends, "power")
    out = BookLogits(
        np.zeros(g.threshold.size + 1, np.int64), np.empty(count, np.int32), np.zeros((count, widest)),
        np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64),
    )  # fmt: skip
    c = table.constants
    fit = _votes(
        g.market, g.book, g.seen, changed, entry_rows[:used], entry_odds[:used], prob, ends, c.vote_sum_low - 1e-9,
        c.vote_sum_high + 1e-9, *out,
    )  # fmt: skip
    return BookLogits._make((out.start, *(column[:fit] for column in out[1:])))


@inlined
def middle(values, n):
    """Median of the first n values, which are sorted.

    `values` has at least one.
    """
    return values[n // 2] if n % 2 == 1 else 0.5 * (values[n // 2 - 1] + values[n // 2])


@inlined
def _middle_without(values, n, left_out):
    """Median of the first n (at least 3) of sorted `values`, leaving out one that equals `left_out`."""
    i = (n - 1) // 2
    upper = values[i] if values[i + 1] <= left_out else values[i + 1]
    if (n - 1) % 2 == 1:
        return upper
    return 0.5 * ((values[i - 1] if values[i] <= left_out else values[i]) + upper)


@inlined
def insert(values, n, value):
    """Insert a value into the first n, which are sorted.

    `values` has room for n + 1; `value` is inserted.
    """
    k = n
    while k > 0 and values[k - 1] > value:
        values[k] = values[k - 1]
        k -= 1
    values[k] = value


@inlined
def _add(
    at, shift, weight, since, fade, oldest, mark, n, comps, v_start, v_book, v_x, v_total, v_seen, v_changed, provider,
    sharp, place, b_from, b_provider, b_x, b_total, b_seen, b_weight, b_fresh, b_sharp,
):  # fmt: skip
    """Add the votes of one line to those on the market, one per provider.

    Votes from `mark` on come from a line at the same distance; `mark` is `NONE` for the market's own line.

    `at` is the market; `shift` moves its logits to the market in question.
    """
    for v in range(v_start[at], v_start[at + 1]):
        f, s = provider[v_book[v]], sharp[v_book[v]]
        if (mark >= 0 and s > 0.0) or (v_seen[v] < oldest and v_seen[v] != NO_TIME):
            continue
        i = place[f]
        if i >= 0 and not (mark >= 0 and i >= mark and b_from[i] != at):
            continue
        e = 0.0
        if v_changed[v] != NO_TIME:
            e = np.exp(-max(since - v_changed[v], np.int64(0)) / fade)
        if i < 0:
            place[f] = n
            b_from[n], b_provider[n], b_total[n], b_seen[n] = at, f, v_total[v], v_seen[v]
            b_weight[n], b_fresh[n], b_sharp[n] = weight, weight * e, s
            for k in range(comps):
                b_x[n, k] = v_x[v, k] + shift
            n += 1
        else:  # two lines at the same distance: the mean of the provider's votes there
            b_from[i], b_seen[i] = at, min(b_seen[i], v_seen[v])
            b_fresh[i] = 0.5 * (b_fresh[i] + weight * e)
            for k in range(comps):
                b_x[i, k] = 0.5 * (b_x[i, k] + v_x[v, k] + shift)
    return n


@inlined
def _provider_votes(
    m, first, last, threshold, slope, neighbour_distance, weight, since, fade, oldest, comps, v_start, v_book, v_x,
    v_total, v_seen, v_changed, provider, sharp, place, b_from, b_provider, b_x, b_total, b_seen, b_weight, b_fresh,
    b_sharp,
):  # fmt: skip
    """The votes on a market, one per provider: on its own line, else on its nearest line.

    Returns the number on the market's own line and the total.

    `m` is the market; its ladder has those from `first` to `last`. `threshold` is in hundredths.
    """
    left_line, right_line, at, shift, share, mark = m, m, m, 0.0, 1.0, NONE
    n, same, distance, z = 0, 0, 0, 0
    while True:
        n = _add(
            at, shift, share, since, fade, oldest, mark, n, comps, v_start, v_book, v_x, v_total, v_seen, v_changed,
            provider, sharp, place, b_from, b_provider, b_x, b_total, b_seen, b_weight, b_fresh, b_sharp,
        )  # fmt: skip
        if at == m:
            same = n
        if np.isnan(slope):
            break
        if at < m and z == distance:  # the line at the same distance on the other side
            right_line += 1
            at, shift = right_line, -slope * distance / 100.0
            continue
        a = threshold[m] - threshold[left_line - 1] if left_line > first else neighbour_distance + 1
        z = threshold[right_line + 1] - threshold[m] if right_line + 1 < last else neighbour_distance + 1
        distance, mark, share = min(a, z), n, weight
        if distance > neighbour_distance:
            break
        if a == distance:
            left_line -= 1
            at, shift = left_line, slope * distance / 100.0
        else:
            right_line += 1
            at, shift = right_line, -slope * distance / 100.0
    return same, n


@inlined
def clip(x, limit):
    """Limit a number to [-limit, limit].

    `x` is the number, `limit` is not negative.
    """
    return min(max(x, -limit), limit)


@kernel
def _tally(centre, limit, n, k, b_x, b_weight, b_fresh, b_sharp, earliest, b_seen, out):
    """Sums of weight, weighted clipped logit, freshness and fresh logit over the providers that are not sharp.

    `centre` is the median, from which logits are clipped by `limit`; the sums are written to `out`.
    """
    out[0], out[1], out[2], out[3] = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        if b_sharp[i] > 0.0 or b_seen[i] < earliest:
            continue
        y = min(max(b_x[i, k], centre - limit), centre + limit)
        out[0] += b_weight[i]
        out[1] += b_weight[i] * y
        out[2] += b_fresh[i]
        out[3] += b_fresh[i] * y


@inlined
def _centre(n, k, left_out, earliest, b_x, b_sharp, b_seen, ordered):
    """Median logit of the first n providers that are not sharp, leaving out one; and the number it is of."""
    count = 0
    for i in range(n):
        if i != left_out and b_sharp[i] == 0.0 and b_seen[i] >= earliest:
            insert(ordered, count, b_x[i, k])
            count += 1
    return middle(ordered, count) if count > 0 else np.nan, count


@kernel
def _mean(same, n, k, v, earliest, c, b_x, b_weight, b_fresh, b_sharp, b_seen, ordered, sums):
    """The mean without vote v, computed directly. Returns the mean, the fresh movers' part, and providers on the line.

    `sums` is a scratch array for `_tally`.
    """
    centre, others = _centre(same, k, v, earliest, b_x, b_sharp, b_seen, ordered)
    if others < 2:
        centre, _ = _centre(n, k, v, earliest, b_x, b_sharp, b_seen, ordered)
    if np.isnan(centre):
        return np.nan, 0.0, others
    _tally(centre, c.vote_clip, n, k, b_x, b_weight, b_fresh, b_sharp, earliest, b_seen, sums)
    w, s, e, g = sums[0], sums[1], sums[2], sums[3]
    if v >= 0 and b_sharp[v] == 0.0 and b_seen[v] >= earliest:
        y = min(max(b_x[v, k], centre - c.vote_clip), centre + c.vote_clip)
        w, s, e, g = w - b_weight[v], s - b_weight[v] * y, e - b_fresh[v], g - b_fresh[v] * y
    m = s / w
    return m, (g - m * e) / (1.0 + e), others


@kernel
def _sharps(same, k, v, earliest, b_x, b_sharp, b_seen, b_provider, alone, market_alone):
    """Mean logit of the sharps without vote v (nan if there is none), their largest weight, and their number.

    Also returns whether one of them is enough as the only reference: its provider shares a bit of `alone` with the
    market's ladder, whose bits are `market_alone`.
    """
    weight, x, most, count, is_enough = 0.0, 0.0, 0.0, 0, False
    for i in range(same):
        if i != v and b_sharp[i] > 0.0 and b_seen[i] >= earliest:
            weight += b_sharp[i]
            x += b_sharp[i] * b_x[i, k]
            most = max(most, b_sharp[i])
            count += 1
            is_enough |= (alone[b_provider[i]] & market_alone) != 0
    return (x / weight if weight > 0.0 else np.nan), most, count, is_enough


@inlined
def _posterior(m, f, others, sharp_x, sharp_weight, sharps, is_enough, own_x, own, least_weight, push, c):
    """Combine the parts, in logits; nan if too few books vote.

    - `m`, `f`: the mean and the fresh movers' part
    - `others`: number of providers on the line
    - `sharp_x`, `sharp_weight`, `sharps`: the sharps' mean, their largest weight and their number
    - `is_enough`: whether one book may be the only reference
    - `own_x`, `own`: logit of the judged book (nan: none) and its weight
    - `least_weight`: least weight of its own price
    - `push`: the momentum's part
    """
    only_sharps = np.isnan(m)
    if others + sharps < c.vote_others and not is_enough:
        return np.nan
    if only_sharps:
        m = sharp_x
    weight = own * c.own_weight / (c.own_base + others)
    if sharp_weight > 0.0:
        weight = (1.0 - sharp_weight) * weight + sharp_weight * (c.own_sharp_alone if only_sharps else c.own_sharp)
    push *= 1.0 - sharp_weight * (1.0 - c.momentum_beside_sharp)
    f = c.fresh_weight * clip(f, c.fresh_clip) * (1.0 - sharp_weight * (1.0 - c.fresh_beside_sharp))
    fair = m + push + f
    if not only_sharps and sharp_weight > 0.0:
        fair += c.sharp_share * sharp_weight * (sharp_x - m)
    if not np.isnan(own_x):
        fair += min(max(weight, least_weight), 1.0) * clip(own_x - m, c.own_clip)
    return fair


def _standard_errors(hours: Floats, sigma: Floats, table: FairTable) -> Floats:
    """Standard errors so many hours before the start; `sigma` has a row for each, its errors at the table's hours."""
    c, knots = table.constants, np.log(table.hours)
    x = np.clip(np.log(np.maximum(hours, table.hours[0])), knots[0], knots[-1])
    k = np.clip(np.searchsorted(knots, x, side="right"), 1, max(knots.size - 1, 1))
    low, high = k - 1, np.minimum(k, knots.size - 1)
    share = (x - knots[low]) / np.where(low == high, 1.0, knots[high] - knots[low])
    row = np.arange(hours.size)
    s = sigma[row, low] + share * (sigma[row, high] - sigma[row, low])
    return np.asarray(c.close_scale * s * np.cbrt(np.maximum(hours, c.close_least_h)))


def standard_errors(
    sports: Iterable[str | None], leagues: Iterable[str | None], hours: Floats, table: FairTable
) -> Floats:
    """Standard errors of fair prices in logits, by the sport, league and hours left of each; nan where unknown."""
    columns: dict[tuple[str | None, str | None], int] = {}
    pairs = zip(sports, leagues, strict=True)
    league = np.array([columns.setdefault(pair, len(columns)) for pair in pairs], np.int64)
    sigma = np.array([league_sigma(table, *pair) for pair in columns] or [table.sigma[OTHER]])
    return _standard_errors(hours, sigma[league], table)


@kernel
def _estimate(
    needed, estimates, row, segments, rows, markets, row_book, row_seen, net, reason, live, threshold, slope,
    neighbour_distance, minute, start, momentum, base_flags, ladder_alone, v_start, v_book, v_x, v_total, v_seen,
    v_latest, v_changed, provider, own, sharp, alone, exchange, barred, scale, c, outlier, place, b_from, b_provider,
    b_x, b_total, b_seen, b_weight, b_fresh, b_sharp, ordered, sorted_x, tallies, centres, sharp_parts, post, stamp,
    own_vote, fair, flags, counts, width, segment,
):  # fmt: skip
    """Fair probabilities of the needed prices; the module docstring has the formula.

    Scratch arrays come before the results; results of prices that are not needed are left unchanged.

    - `estimates` (float64 per slot): as `known` in `estimate`
    - `slope` (float64 per ladder): as in `KindParameters`
    - `momentum` (float64, ladders by components), `base_flags` (uint16 per ladder): momentum, and flags of the
      ladder's kind
    - `ladder_alone` (uint64 per ladder), `alone` (uint64 per provider): as in `KindParameters` and `Voters`; a provider
      that shares a bit with a ladder is enough as the only reference
    - `barred` (uint8 per book): 1 if its prices are not judged
    - `scale` (float64 per flag): factor of an edge
    - `outlier`: code of the guard whose prices are judged too
    - `sorted_x`, `tallies`, `centres`, `sharp_parts`, `post`, `stamp`, `own_vote`: scratch arrays: by component, the
      sorted logits, sums per possible median, these medians, and what `_sharps` returns; by book, its probabilities,
      number of others, largest sharp weight, number of sharps and whether one is enough, the market these are of, and
      its vote
    - `fair`, `flags`, `counts`, `width` (per row), `segment` (per segment): the columns of `Fair` to write
    """
    no_time, no_vote = np.int64(NO_TIME), NONE
    behind = np.int64(c.vote_live_behind_s * 1e6)
    fade = c.fresh_fade_s * 1e6
    for at in range(markets.size - 1):
        hours = np.nan
        if start[at] != no_time:
            hours = (start[at] - minute[at]) / 3.6e9
        is_live = live[at] != 0
        ramp = 1.0
        if not np.isnan(hours):
            ramp = min(max((hours - c.momentum_near_h) / (c.momentum_far_h - c.momentum_near_h), 0.0), 1.0)
        kappa = c.momentum_far * ramp + c.momentum_near * (1.0 - ramp)
        oldest = no_time if is_live else minute[at] - np.int64(c.vote_age_s * 1e6)
        for m in range(markets[at], markets[at + 1]):
            s0 = segments[m]
            size = segments[m + 1] - s0
            if needed[m] == SKIP or size < 2:
                continue
            is_remembered = needed[m] == MARKET and estimates.size > 0
            for s in range(s0, s0 + size if is_remembered else s0):
                segment[s] = estimates[row[rows[s]]] if rows[s] < rows[s + 1] else 0.0
                is_remembered &= segment[s] > 0.0
            if is_remembered:
                continue
            segment[s0 : s0 + size] = np.nan
            if v_start[markets[at]] == v_start[markets[at + 1]]:
                continue
            comps = 1 if size == 2 else size
            same, n = _provider_votes(
                m, markets[at], markets[at + 1], threshold, slope[at], neighbour_distance, c.vote_neighbour_weight,
                minute[at], fade, oldest, comps, v_start, v_book, v_x, v_total, v_seen, v_changed, provider, sharp,
                place, b_from, b_provider, b_x, b_total, b_seen, b_weight, b_fresh, b_sharp,
            )  # fmt: skip
            if n == 0:
                continue
            # Pre-match no vote is too old for only some books: sort once, and tally once per possible median.
            n_soft = 0
            overround, n_sharp, last_seen = 0.0, 0, no_time
            for i in range(n):
                last_seen = max(last_seen, b_seen[i])
                if i < same and b_sharp[i] == 0.0:
                    n_soft += 1
            for i in range(same):
                if b_sharp[i] > 0.0:
                    n_sharp += 1
            for i in range(same):
                if n_sharp == 0 or b_sharp[i] > 0.0:
                    overround += b_total[i] - 1.0
            overround /= max(n_sharp if n_sharp > 0 else same, 1)
            for k in range(comps):
                count = 0
                for i in range(same):
                    if b_sharp[i] == 0.0:
                        insert(sorted_x[k], count, b_x[i, k])
                        count += 1
                for j in range(_CENTRES):
                    centres[k, j] = np.nan
            # The market itself, in which all books vote.
            sum_p = 0.0
            earliest = last_seen - behind if is_live and last_seen != no_time else no_time
            for k in range(comps):
                mean, f, others = _mean(
                    same, n, k, no_vote, earliest, c, b_x, b_weight, b_fresh, b_sharp, b_seen, ordered,
                    tallies[k, _DIRECT],
                )  # fmt: skip
                x, sharp_weight, sharps, is_enough = _sharps(
                    same, k, no_vote, earliest, b_x, b_sharp, b_seen, b_provider, alone, ladder_alone[at]
                )
                sharp_parts[k, 0], sharp_parts[k, 1], sharp_parts[k, 2] = x, sharp_weight, sharps
                sharp_parts[k, 3] = is_enough
                push = kappa * clip(momentum[at, k], c.momentum_clip)
                y = _posterior(mean, f, others, x, sharp_weight, sharps, is_enough, np.nan, 0.0, 0.0, push, c)
                segment[s0 + k] = 1.0 / (1.0 + np.exp(-y))
                sum_p += segment[s0 + k]
            if comps == 1:
                segment[s0 + 1] = 1.0 - segment[s0]
            else:
                for k in range(comps):
                    segment[s0 + k] /= sum_p
            for v in range(v_start[m], v_start[m + 1]):
                own_vote[v_book[v]] = v
            for side in range(size if needed[m] == EVERY_ROW else 0):
                for i in range(rows[s0 + side], rows[s0 + side + 1]):
                    b = row_book[i]
                    if (reason[i] != ACCEPTED and reason[i] != outlier) or barred[b] != 0:
                        continue
                    vote = np.int64(place[provider[b]])
                    if is_live or stamp[b] != m:
                        stamp[b] = m
                        judged_seen = v_latest[own_vote[b]] if own_vote[b] >= 0 else row_seen[i]
                        earliest = judged_seen - behind if is_live and judged_seen != no_time else no_time
                        total = 0.0
                        for k in range(comps):
                            others = n_soft
                            if vote >= 0 and vote < same and b_sharp[vote] == 0.0:
                                others -= 1
                            if not is_live and others >= 2:
                                centre = middle(sorted_x[k], n_soft)
                                if others < n_soft:
                                    centre = _middle_without(sorted_x[k], n_soft, b_x[vote, k])
                                j = 0
                                while j < _CENTRES - 1 and centres[k, j] != centre and not np.isnan(centres[k, j]):
                                    j += 1
                                if centres[k, j] != centre:
                                    centres[k, j] = centre
                                    _tally(
                                        centre, c.vote_clip, n, k, b_x, b_weight, b_fresh, b_sharp, no_time, b_seen,
                                        tallies[k, j],
                                    )  # fmt: skip
                                w, s = tallies[k, j, 0], tallies[k, j, 1]
                                e, g = tallies[k, j, 2], tallies[k, j, 3]
                                if vote >= 0 and b_sharp[vote] == 0.0:
                                    y = min(max(b_x[vote, k], centre - c.vote_clip), centre + c.vote_clip)
                                    w, s = w - b_weight[vote], s - b_weight[vote] * y
                                    e, g = e - b_fresh[vote], g - b_fresh[vote] * y
                                mean = s / w
                                f = (g - mean * e) / (1.0 + e)
                            else:
                                mean, f, others = _mean(
                                    same, n, k, vote, earliest, c, b_x, b_weight, b_fresh, b_sharp, b_seen, ordered,
                                    tallies[k, _DIRECT],
                                )  # fmt: skip
                            if is_live or (vote >= 0 and b_sharp[vote] > 0.0):
                                x, sharp_weight, sharps, is_enough = _sharps(
                                    same, k, vote, earliest, b_x, b_sharp, b_seen, b_provider, alone, ladder_alone[at]
                                )
                            else:
                                x, sharp_weight, sharps = sharp_parts[k, 0], sharp_parts[k, 1], sharp_parts[k, 2]
                                is_enough = sharp_parts[k, 3] != 0.0
                            own_logit = v_x[own_vote[b], k] if own_vote[b] >= 0 else np.nan
                            push = kappa * clip(momentum[at, k], c.momentum_clip)
                            least_weight = 1.0 if exchange[b] != 0 else c.sharp_share * sharp[b]
                            y = _posterior(
                                mean, f, others, x, sharp_weight, sharps, sharps > 0, own_logit, own[b], least_weight,
                                push, c,
                            )  # fmt: skip
                            post[b, k] = 1.0 / (1.0 + np.exp(-y))
                            total += post[b, k]
                        if comps > 1:
                            for k in range(comps):
                                post[b, k] /= total
                        post[b, size] = others
                        post[b, size + 1] = sharp_weight
                        post[b, size + 2] = sharps
                        post[b, size + 3] = is_enough
                    p = post[b, 0] if comps > 1 or side == 0 else 1.0 - post[b, 0]
                    if comps > 1:
                        p = post[b, side]
                    if np.isnan(p):
                        continue
                    others, sharp_weight, sharps = int(post[b, size]), post[b, size + 1], int(post[b, size + 2])
                    is_enough = post[b, size + 3] != 0.0
                    flag = base_flags[at]
                    is_prop = (flag & _PROP) != 0
                    flag &= ~_PROP
                    if is_prop and is_enough:
                        flag &= ~_UNMEASURED
                    if others + sharps == 1:
                        flag |= _ONE_REFERENCE
                    elif others <= c.flags_thin_others and (sharp_weight == 0.0 or others == 0):
                        flag |= _THIN
                    if size > 2 and sharp_weight == 0.0:
                        flag |= _NO_SHARP
                    if hours > c.flags_early_h:
                        flag |= _EARLY
                    if net[i] >= c.flags_long_odds:
                        flag |= _LONG
                    if is_live:
                        flag |= _LIVE
                    edge = p * net[i] - 1.0
                    is_far = is_prop and sharp_weight == 0.0 and others <= c.props_suspect_others
                    is_unproven = others + sharps < c.vote_others and not is_enough
                    if reason[i] == outlier or is_unproven or (is_far and edge * 100.0 > c.props_suspect_ev):
                        flag |= SUSPECT
                    if edge > 0.0:
                        for bit in range(scale.size):
                            if (flag >> bit) & 1 and (bit != _LIVE_BIT or edge * 100.0 < c.flags_live_below):
                                edge *= scale[bit]
                        p = (1.0 + edge) / net[i]
                    fair[i], flags[i], counts[i], width[i] = p, flag, others, overround
            for v in range(v_start[m], v_start[m + 1]):
                own_vote[v_book[v]] = NONE
            for i in range(n):
                place[b_provider[i]] = NONE


def minutes(event: Words, now: int, table: FairTable) -> Longs:
    """The beginning of each event's own minute, microseconds; events are given by hashes of their ids."""
    if now == NO_TIME:
        return np.full(event.size, NO_TIME, np.int64)
    size = round(table.constants.momentum_sample_s * SECOND)
    phase = ((event >> np.uint64(32)) % np.uint64(size // SECOND)).astype(np.int64) * SECOND
    return (now - phase) // size * size + phase


class Estimator(NamedTuple):
    """The table, and its values for the kinds, sports and books of a board; the same for every search."""

    table: FairTable
    lines: KindParameters
    voters: Voters
    books: tuple[str, ...]


def estimator(
    kinds: Sequence[MarketKind], sports: Iterable[tuple[catalog.Sport, str]], books: Sequence[str], table: FairTable
) -> Estimator:
    """Resolve a table for the kinds, events and books of a board."""
    return Estimator(table, lines(kinds, sports, table), voters(books, table), tuple(books))


class Times(NamedTuple):
    """The times of a board that the estimator uses in addition to those of `Groups`."""

    changed: Longs  # per row: when the price last changed, microseconds or NO_TIME
    start: Longs  # per ladder: the start of its event, microseconds or NO_TIME; see `starts`
    minute: Longs  # per ladder; see `minutes`


class CloseInput(NamedTuple):
    """Input of the estimator from a board or a part of it, with the catalog's commissions; the same for all users."""

    of: Estimator
    times: Times
    momentum: Floats | None  # (ladders, outcomes); None means 0
    logits: BookLogits
    voting: Bytes | None = None  # per ladder: 1 if its votes were collected; None means all
    needed: Bytes | None = None  # per market, see `estimate`
    known: Floats = _NOTHING  # per slot, see `estimate`


def gross(traits: Traits, fees: BookFees) -> Bytes:
    """Exchanges whose commission is unknown, so that their prices cannot be judged."""
    return np.asarray((traits.exchange != 0) & (fees.charging == 0)).view(np.uint8)


def estimate(
    of: Estimator, groups: Groups, traits: Traits, net: Floats, reason: Bytes, barred: Bytes, times: Times,
    momentum: Floats | None, logits: BookLogits, needed: Bytes | None = None, known: Floats = _NOTHING,
    flag: np.uint16 = _NO_FLAG,
) -> Fair:  # fmt: skip
    """Estimate the fair probability of every price at the close.

    Parameters
    ----------
    of
        The table, resolved for a board.
    groups, traits, logits
        A board or a part of it with complete ladders, and its votes.
    net, reason
        Per row: the price after commission, and the guards' verdict.
    barred
        Per book: 1 if its prices are not judged; see `gross`.
    momentum
        (ladders, outcomes); None means 0.
    needed
        Per market: 2 to judge every row, 1 to estimate only the market itself (all books vote), 0 to skip it. None
        means 2.
    known
        Per slot (`identity.groups.row`): the earlier estimate of an outcome, stored at its first row. It is reused for
        markets that need 1; 0 or nan: none. Empty: no earlier estimates.
    flag
        A flag of all prices, of `BITS`.
    """
    needed = np.full(groups.threshold.size, EVERY_ROW, np.uint8) if needed is None else needed
    g, c = groups, of.table.constants
    n, ladders = g.row.size, g.event.size
    widest, most = logits.x.shape[1], traits.provider.size + 1
    alone = np.zeros(most, np.uint64)
    np.bitwise_or.at(alone, traits.provider, of.voters.alone)
    sport = of.lines.sport[g.event]
    hours = np.where((times.start != NO_TIME) & (g.live == 0), (times.start - times.minute) / 3.6e9, np.nan)
    se = _standard_errors(hours, of.lines.sigma[sport], of.table)
    out = Fair(
        np.full(n, np.nan), np.zeros(n, np.uint16), np.zeros(n, np.int32), np.full(n, np.nan), se,
        np.full(g.rows.size - 1, np.nan), np.zeros((ladders, widest)) if momentum is None else momentum,
    )  # fmt: skip
    _estimate(
        needed, known, g.row, g.segments, g.rows, g.markets, g.book, g.seen, net, reason, g.live, g.threshold,
        of.lines.slope[g.kind, sport], neighbours(of.table), times.minute, times.start, out.momentum,
        of.lines.flags[g.kind, sport] | flag, of.lines.alone[g.kind, sport], logits.start, logits.book, logits.x,
        logits.total, logits.seen, logits.latest, logits.changed, traits.provider, of.voters.own, of.voters.sharp,
        alone, traits.exchange, barred, np.array(of.table.scale), c, _OUTLIER, np.full(most, -1, np.int32),
        np.empty(most, np.int64), np.empty(most, np.int32), np.empty((most, widest)), np.empty(most),
        np.empty(most, np.int64), np.empty(most), np.empty(most), np.empty(most), np.empty(most),
        np.empty((widest, most)), np.empty((widest, 5, 4)), np.empty((widest, 4)), np.empty((widest, 4)),
        np.empty((most, widest + 4)), np.full(most, -1, np.int64), np.full(most, -1, np.int64), *out[:4], out.segment,
    )  # fmt: skip
    return out


@kernel
def _remember(needed, segments, rows, row, segment, estimates):
    """Store the estimates of markets at the first row of each outcome.

    - `segment` (float64 per segment), `estimates` (float64 per slot): from and to
    """
    for m in range(segments.size - 1):
        for s in range(segments[m], segments[m + 1] if needed[m] != SKIP else segments[m]):
            if rows[s] < rows[s + 1]:
                estimates[row[rows[s]]] = segment[s]


def remember(groups: Groups, needed: Bytes, fair: Fair, known: Floats) -> None:
    """Store the results of `estimate` in `known`, for the next call."""
    _remember(needed, groups.segments, groups.rows, groups.row, fair.segment, known)


def neighbours(table: FairTable) -> int:
    """Largest distance of a neighbouring line whose votes count, hundredths."""
    return round(table.constants.vote_neighbour_points * 100.0)


@kernel
def _starts(needed, markets, segments, rows, start, reason, out):
    """The earliest start among the accepted prices of each needed ladder.

    - `start`, `out` (int64 per row, per ladder): the starts
    """
    for at in range(markets.size - 1):
        out[at] = NO_TIME
        for i in range(rows[segments[markets[at]]], rows[segments[markets[at + 1]]] if needed[at] else 0):
            if reason[i] == ACCEPTED and start[i] != NO_TIME and (out[at] == NO_TIME or start[i] < out[at]):
                out[at] = start[i]


def starts(groups: Groups, start: Longs, reason: Bytes, voting: Bytes | None = None) -> Longs:
    """Start of each ladder's event: the earliest among its accepted prices. `voting` selects ladders (None: all)."""
    g = groups
    out = np.empty(g.event.size, np.int64)
    some = np.ones(g.event.size, np.uint8) if voting is None else voting
    _starts(some, g.markets, g.segments, g.rows, start, reason, out)
    return out


@kernel
def _sharpest(market, book, start, voter, provider, sharp, out):
    """The sharp with the largest weight among the votes on markets, without the judged book's provider.

    - `market`, `book` (per price): the judged prices' markets and books
    - `start`, `voter`: votes, as `v_start` and `v_book`
    - `out` (int32 per price): the sharps' books, or `CONSENSUS`
    """
    for i in range(market.size):
        out[i] = CONSENSUS
        largest_weight = 0.0
        for v in range(start[market[i]], start[market[i] + 1]):
            b = voter[v]
            if sharp[b] > largest_weight and provider[b] != provider[book[i]]:
                out[i], largest_weight = b, sharp[b]


def sharpest(of: Estimator, logits: BookLogits, traits: Traits, market: Longs, book: Ints) -> Ints:
    """The sharp with the most influence on a fair probability: a book's code, or -2 for a consensus without one."""
    out = np.empty(market.size, np.int32)
    _sharpest(market, book, logits.start, logits.book, traits.provider, of.voters.sharp, out)
    return out


@inlined
def is_independent(v, begin, own, voter, provider):
    """Whether vote `v` is not of the provider `own`, and the first of its provider on a market.

    The market's votes start at `begin`.

    `voter` has the book of each vote, `provider` the provider of each book.
    """
    f = provider[voter[v]]
    is_new = f != own
    for u in range(begin, v):
        is_new = is_new and provider[voter[u]] != f
    return is_new


@kernel
def _agreeing(market, book, side, net, outcomes, start, voter, x, provider, others, agree):
    """Count the providers other than the judged book's that vote on markets, and those at which the price has an edge.

    - `market`, `book`, `side`, `net` (per price): the judged prices
    - `start`, `voter`, `x`: votes, as `v_start`, `v_book` and `v_x`
    - `others`, `agree` (int64 per price): the counts to write
    """
    for i in range(market.size):
        m, others[i], agree[i] = market[i], 0, 0
        for v in range(start[m], start[m + 1]):
            if is_independent(v, start[m], provider[book[i]], voter, provider):
                logit = x[v, side[i]] if outcomes[m] > 2 else x[v, 0] if side[i] == 0 else -x[v, 0]
                others[i] += 1
                agree[i] += net[i] > (1.0 + np.exp(-logit)) * (1.0 + _ROUNDING)


def agreeing(groups: Groups, logits: BookLogits, traits: Traits, row: Ints, net: Floats) -> tuple[Longs, Longs]:
    """Count the independent books on the line of some prices, and those whose own prices imply a positive EV.

    Books of one provider count once, and a price's own provider does not count.
    """
    g = groups
    others, agree = np.empty(row.size, np.int64), np.empty(row.size, np.int64)
    _agreeing(
        g.market[row], g.book[row], g.side[row], net[row], g.outcomes, logits.start, logits.book, logits.x,
        traits.provider, others, agree,
    )  # fmt: skip
    return others, agree


def named(flags: int) -> list[str]:
    """Names of the flags that are set."""
    return [name for name, bit in BITS.items() if flags & int(bit)]


def confidence(se: Floats, flags: npt.NDArray[np.uint16], table: FairTable) -> Floats:
    """Score from 0 to 100 that falls with the standard error and with every flag.

    Examples
    --------
    >>> table = catalog.fair_table()
    >>> confidence(np.array([0.0, 0.15]), np.array([0, 1], np.uint16), table).round(1).tolist()
    [100.0, 25.8]
    """
    c = table.constants
    score = 100.0 * np.exp(-np.where(np.isnan(se), c.confidence_unknown_se, se) / c.confidence_scale)
    for factor, bit in zip(table.factor, BITS.values(), strict=True):
        score = np.where(flags & bit, score * factor, score)
    return score


def sigmoid(x: Floats) -> Floats:
    """The probability of a logit."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


_ERF = np.frompyfunc(math.erf, 1, 1)


def central_errors(percent: int, degrees: float) -> float:
    """Standard errors on each side of a central range of 50 or 90 %; `degrees` as in `below`."""
    return _CENTRAL[percent][degrees > 0.0]


def below(z: Floats, degrees: float) -> Floats:
    """Distribution function of Student's t with 4 degrees of freedom, or of a normal distribution (0).

    Examples
    --------
    >>> below(np.array([0.0, central_errors(90, 4.0)]), 4.0).round(6).tolist()
    [0.5, 0.95]
    """
    if degrees > 0.0:
        s = z / np.sqrt(z * z + 4.0)
        return np.asarray(0.5 + 0.25 * s * (3.0 - s * s))
    return 0.5 * (1.0 + np.asarray(_ERF(z / math.sqrt(2.0)), np.float64))


def still_there(ev: Floats, stood_s: Floats, hours: Floats, momentum: Floats, table: FairTable) -> Floats:
    """The probability that a price stands ten minutes on; nan if the start is unknown.

    Parameters
    ----------
    ev
        Percent.
    stood_s
        Seconds since the price changed.
    hours
        Before the start.
    momentum
        Of the market towards the bet, in logits.
    table
        The constants.
    """
    c = table.constants
    v = (
        c.stands_base
        + c.stands_stood * np.log1p(stood_s / c.stands_stood_s)
        + c.stands_hours * np.log(np.maximum(hours, c.stands_least_h))
        + c.stands_ev * (np.clip(ev, 0.0, c.stands_ev_most) - 1.0)
        + c.stands_momentum * np.clip(momentum, -c.stands_momentum_clip, c.stands_momentum_clip)
    )
    return sigmoid(v)
