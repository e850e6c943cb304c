"""The votes on one market, one per odds provider, and what they say together: means of logits without one of them.

A market of two outcomes has one logit, a wider one has a logit per outcome: its components, counted by `k`.
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import inlined, kernel
from oddsengine.columns import NO_TIME, NONE, Bool, Bytes, Float, Floats, Int, Ints, Longs, Words
from oddsengine.identity.groups import Groups
from oddsengine.pricing.votes import BookLogits

TALLIED = 4
"""Numbers of a tally, see `tally`."""


class ProviderVotes(NamedTuple):
    """The votes on a market, to write; those on its own line come first."""

    place: Ints  # per provider: index of its vote, or `NONE`, which all are on entry
    market: Longs  # that the vote is from
    provider: Ints
    x: Floats  # (votes, components)
    total: Floats  # sum of 1/odds
    seen: Longs  # last seen
    weight: Floats
    fresh: Floats  # weight as a fresh mover
    sharp: Floats  # weight as a sharp


class BookColumns(NamedTuple):
    """What the estimator knows of each book."""

    provider: Ints
    own: Floats  # as in `Voters`
    sharp: Floats  # as in `Voters`
    exchange: Bytes
    barred: Bytes  # 1 if its prices are not judged
    alone: Words  # per provider, the bits of `Voters`: one that shares a bit with a ladder may be the only reference


class VoteTimes(NamedTuple):
    """The times by which votes count, microseconds."""

    since: Int  # the event's minute
    fade: Float  # time in which a change loses its freshness
    oldest: Int  # time before which votes are too old


class Judged(NamedTuple):
    """Which votes count for a price."""

    same: Int  # number of votes on the market's own line
    n: Int  # number of all
    left_out: Int  # the vote of the price's own provider, or `NONE`
    earliest: Int  # time before which votes do not count


@inlined
def middle(values: Floats, n: Int) -> Float:
    """Median of the first `n` values, which are sorted.

    `values` has at least one.
    """
    return values[n // 2] if n % 2 == 1 else 0.5 * (values[n // 2 - 1] + values[n // 2])


@inlined
def middle_without(values: Floats, n: Int, left_out: Float) -> Float:
    """Median of the first `n` (at least 3) of sorted `values`, leaving out one that equals `left_out`."""
    i = (n - 1) // 2
    upper = values[i] if values[i + 1] <= left_out else values[i + 1]
    if (n - 1) % 2 == 1:
        return upper
    return 0.5 * ((values[i - 1] if values[i] <= left_out else values[i]) + upper)


@inlined
def insert(values: Floats, n: Int, value: Float) -> None:
    """Insert a value into the first `n`, which are sorted.

    `values` has room for n + 1; `value` is inserted.
    """
    k = n
    while k > 0 and values[k - 1] > value:
        values[k] = values[k - 1]
        k -= 1
    values[k] = value


@inlined
def clip(x: Float, limit: Float) -> Float:
    """Limit a number to [-limit, limit].

    `x` is the number, `limit` is not negative.
    """
    return min(max(x, -limit), limit)


@inlined
def _add(
    at: Int, shift: Float, weight: Float, times: VoteTimes, mark: Int, n: Int, comps: Int, logits: BookLogits,
    provider: Ints, sharp: Floats, votes: ProviderVotes,
) -> Int:  # fmt: skip
    """Add the votes of one line to those on the market, one per provider. Returns their number.

    Votes from `mark` on come from a line at the same distance; `mark` is `NONE` for the market's own line.

    - `at`: market of the line; `shift` moves its logits to the market in question
    - `weight`: of its votes
    - `n`: number of votes so far, of `comps` components
    - `provider`, `sharp`: as in `BookColumns`
    """
    for v in range(logits.start[at], logits.start[at + 1]):
        f, s = provider[logits.book[v]], sharp[logits.book[v]]
        if (mark >= 0 and s > 0.0) or (logits.seen[v] < times.oldest and logits.seen[v] != NO_TIME):
            continue
        i = votes.place[f]
        if i >= 0 and not (mark >= 0 and i >= mark and votes.market[i] != at):
            continue
        e = 0.0
        if logits.changed[v] != NO_TIME:
            e = np.exp(-max(times.since - logits.changed[v], np.int64(0)) / times.fade)
        if i < 0:
            votes.place[f] = n
            votes.market[n], votes.provider[n] = at, f
            votes.total[n], votes.seen[n] = logits.total[v], logits.seen[v]
            votes.weight[n], votes.fresh[n], votes.sharp[n] = weight, weight * e, s
            for k in range(comps):
                votes.x[n, k] = logits.x[v, k] + shift
            n += 1
        else:  # two lines at the same distance: the mean of the provider's votes there
            votes.market[i], votes.seen[i] = at, min(votes.seen[i], logits.seen[v])
            votes.fresh[i] = 0.5 * (votes.fresh[i] + weight * e)
            for k in range(comps):
                votes.x[i, k] = 0.5 * (votes.x[i, k] + logits.x[v, k] + shift)
    return n


@inlined
def collect_votes(
    at: Int, m: Int, g: Groups, slope: Float, neighbour_distance: Int, weight: Float, times: VoteTimes, comps: Int,
    logits: BookLogits, books: BookColumns, votes: ProviderVotes,
) -> tuple[Int, Int]:  # fmt: skip
    """The votes on a market, one per provider: on its own line, else on its nearest line.

    Returns the number on the market's own line and the total.

    - `at`, `m`: the ladder and the market, of `comps` components
    - `slope`: logits per point of the line, nan if unknown
    - `neighbour_distance`: largest distance of a neighbouring line, hundredths
    - `weight`: of a neighbouring line
    """
    first, last = g.markets[at], g.markets[at + 1]
    left_line, right_line, line = m, m, m
    mark: Int = NONE
    shift: Float = 0.0
    share: Float = 1.0
    n: Int = 0
    same: Int = 0
    distance: Int = 0
    z: Int = 0
    while True:
        n = _add(line, shift, share, times, mark, n, comps, logits, books.provider, books.sharp, votes)
        if line == m:
            same = n
        if np.isnan(slope):
            break
        if line < m and z == distance:  # the line at the same distance on the other side
            right_line += 1
            line, shift = right_line, -slope * distance / 100.0
            continue
        a = g.threshold[m] - g.threshold[left_line - 1] if left_line > first else neighbour_distance + 1
        z = g.threshold[right_line + 1] - g.threshold[m] if right_line + 1 < last else neighbour_distance + 1
        distance, mark, share = min(a, z), n, weight
        if distance > neighbour_distance:
            break
        if a == distance:
            left_line -= 1
            line, shift = left_line, slope * distance / 100.0
        else:
            right_line += 1
            line, shift = right_line, -slope * distance / 100.0
    return same, n


@kernel
def tally(centre: Float, limit: Float, n: Int, k: Int, earliest: Int, votes: ProviderVotes, out: Floats) -> None:
    """Sums of weight, weighted clipped logit, freshness and fresh logit over the providers that are not sharp.

    - `centre`: the median, from which logits are clipped by `limit`
    - `n`, `k`: number of votes, and the component
    - `earliest`: as in `Judged`
    - `out` (float64, `TALLIED`): the sums to write
    """
    out[0], out[1], out[2], out[3] = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        if votes.sharp[i] > 0.0 or votes.seen[i] < earliest:
            continue
        y = min(max(votes.x[i, k], centre - limit), centre + limit)
        out[0] += votes.weight[i]
        out[1] += votes.weight[i] * y
        out[2] += votes.fresh[i]
        out[3] += votes.fresh[i] * y


@inlined
def mean_without(
    v: Int, k: Int, centre: Float, limit: Float, counts: Bool, votes: ProviderVotes, sums: Floats
) -> tuple[Float, Float]:
    """The mean and the fresh movers' part from a tally, without a vote.

    - `v`, `k`: the vote, and the component
    - `counts`: whether it is in the tally
    - `centre`, `limit`, `sums`: as in `tally`, which wrote `sums`
    """
    w, s, e, g = sums[0], sums[1], sums[2], sums[3]
    if counts:
        y = min(max(votes.x[v, k], centre - limit), centre + limit)
        w, s, e, g = w - votes.weight[v], s - votes.weight[v] * y, e - votes.fresh[v], g - votes.fresh[v] * y
    m = s / w
    return m, (g - m * e) / (1.0 + e)


@inlined
def _centre(n: Int, k: Int, judged: Judged, votes: ProviderVotes, ordered: Floats) -> tuple[Float, Int]:
    """Median logit of the first `n` providers that are not sharp, leaving out one; and the number it is of.

    - `k`: the component
    - `ordered`: scratch array for sorted values
    """
    count = 0
    for i in range(n):
        if i != judged.left_out and votes.sharp[i] == 0.0 and votes.seen[i] >= judged.earliest:
            insert(ordered, count, votes.x[i, k])
            count += 1
    return middle(ordered, count) if count > 0 else np.nan, count


@kernel
def mean(
    k: Int, judged: Judged, limit: Float, votes: ProviderVotes, ordered: Floats, sums: Floats
) -> tuple[Float, Float, Int]:
    """The mean without a vote, computed directly, the fresh movers' part, and providers on the line that are not sharp.

    - `k`: the component
    - `limit`, `sums`: as in `tally`; `sums` and `ordered` are scratch arrays
    """
    v, earliest = judged.left_out, judged.earliest
    centre, others = _centre(judged.same, k, judged, votes, ordered)
    if others < 2:
        centre, _ = _centre(judged.n, k, judged, votes, ordered)
    if np.isnan(centre):
        return np.nan, 0.0, others
    tally(centre, limit, judged.n, k, earliest, votes, sums)
    counts = v >= 0 and votes.sharp[v] == 0.0 and votes.seen[v] >= earliest
    m, f = mean_without(v, k, centre, limit, counts, votes, sums)
    return m, f, others


@kernel
def sharps_without(
    k: Int, judged: Judged, alone: Words, ladder_alone: Int, votes: ProviderVotes
) -> tuple[Float, Float, Int, bool]:
    """Mean logit of the sharps without a vote (nan if there is none), their largest weight, and their number.

    Also returns whether one of them is enough as the only reference: its provider shares a bit of `alone` with the
    market's ladder, whose bits are `ladder_alone`. `k` is the component.
    """
    weight, x, most, count, is_enough = 0.0, 0.0, 0.0, 0, False
    for i in range(judged.same):
        if i != judged.left_out and votes.sharp[i] > 0.0 and votes.seen[i] >= judged.earliest:
            weight += votes.sharp[i]
            x += votes.sharp[i] * votes.x[i, k]
            most = max(most, votes.sharp[i])
            count += 1
            is_enough |= (alone[votes.provider[i]] & ladder_alone) != 0
    return (x / weight if weight > 0.0 else np.nan), most, count, is_enough
