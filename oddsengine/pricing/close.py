"""Estimator: the fair price that equals, in expectation, the price at the close, from all other books in logits.

For the judged book j, on one line of a market, with x = ln(p / (1 - p)) of the first outcome after power de-vig of a
book's own prices (a market of three outcomes has one x per outcome):

    c     = median of the other providers on the line
    m     = mean of clip(x_i, c - clip, c + clip); providers on neighbouring lines have a smaller weight
    f     = sum w_i (x_i - m) / (1 + sum w_i),  w_i = weight_i exp(-age of i's last change / fade): fresh movers
    M     = momentum: the mean of the providers' moves, with a half-life of two hours
    fair  = m + share (sharp - m) + own clip(x_j - m) + kappa clip(M) + phi clip(f)
    own   = b_j weight / (base + number of other providers on the line that are not sharp)
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
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import inlined, kernel
from oddsengine.catalog.fair_constants import FLAGS, Constants
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NO_TIME, NONE, Bool, Bytes, Float, Floats, Int, Ints, Longs, Words
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import BookFees, Traits
from oddsengine.pricing.close_errors import errors_of
from oddsengine.pricing.close_table import BITS, PROP, Estimator, neighbours
from oddsengine.pricing.provider_votes import (
    TALLIED,
    BookColumns,
    Judged,
    ProviderVotes,
    VoteTimes,
    clip,
    collect_votes,
    insert,
    mean,
    mean_without,
    middle,
    middle_without,
    sharps_without,
    tally,
)
from oddsengine.pricing.votes import EVERY_ROW, MARKET, SKIP, BookLogits

_THIN, _NO_SHARP, _EARLY, _LONG, _, _UNMEASURED, SUSPECT, _LIVE, _ONE_REFERENCE, _ = BITS.values()
_LIVE_BIT = FLAGS.index("live")
_CENTRES = 4  # values that the median can have with at most one provider left out
_DIRECT = 4  # tally of a mean that is computed directly
_OUTLIER = CODES["outlier"]
_NOTHING: Floats = np.empty(0)
_NO_FLAG = np.uint16(0)


class Fair(NamedTuple):
    """Fair probabilities of the prices of a board; nan if there is no estimate."""

    row: Floats  # per row, of the row's outcome for the row's book; scaled by its flags
    flags: npt.NDArray[np.uint16]  # per row, `BITS`
    others: Ints  # per row: providers on the line that are not sharp, without the book's own
    width: Floats  # per row: overround of the votes, or of the sharp
    se: Floats  # per ladder, logits; nan in play and if the start is unknown. Of a model: per row
    segment: Floats  # per segment: the estimate in which all books vote
    momentum: Floats  # (ladders, widest)
    of_model: bool = False  # a user's own probabilities
    votes: BookLogits | None = None  # with those of one-sided prices, if these were estimated too
    own_se: Floats | None = None  # likewise, per row: the error of a one-sided estimate, nan for other prices

    @property
    def columns(self) -> "FairColumns":
        """Those that are per row or per segment, for kernels."""
        return FairColumns(self.row, self.flags, self.others, self.width, self.segment)

    def errors(self, groups: Groups, row: Ints | Longs) -> Floats:
        """Standard errors of some rows, in log-odds."""
        if self.of_model:
            return self.se[row]
        se = self.se[groups.ladder[groups.market[row]]]
        return se if self.own_se is None else np.where(np.isnan(self.own_se[row]), se, self.own_se[row])


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


class PriceInput(NamedTuple):
    """What is estimated, and from what prices."""

    needed: Bytes  # per market: SKIP, MARKET or EVERY_ROW
    known: Floats  # per slot: earlier estimates, which MARKET uses again; see `estimate`
    net: Floats  # per row: price after commission
    reason: Bytes  # per row: the guards' verdict


class LadderInput(NamedTuple):
    """What the estimator knows of each ladder."""

    slope: Floats  # as in `KindParameters`
    minute: Longs  # as in `Times`
    start: Longs  # as in `Times`
    momentum: Floats  # (ladders, components)
    flags: npt.NDArray[np.uint16]  # of its kind
    alone: Words  # as in `KindParameters`


class FairColumns(NamedTuple):
    """The columns of `Fair`, which describes them; those of prices that are not needed or judged are left unchanged."""

    row: Floats
    flags: npt.NDArray[np.uint16]
    others: Ints
    width: Floats
    segment: Floats


class CloseScratch(NamedTuple):
    """Scratch arrays of the estimator: of a market by component, and by book."""

    ordered: Floats  # sorted values
    sorted_x: Floats  # (components, votes): the sorted logits of providers that are not sharp
    tallies: Floats  # (components, medians and `_DIRECT`, `TALLIED`): sums by possible median
    centres: Floats  # (components, medians): these medians
    sharps: Floats  # (components, 4): what `sharps_without` returns
    post: Floats  # (books, outcomes and 4): probabilities, others, largest sharp weight, sharps, if one is enough
    stamp: Longs  # per book: the market that `post` is of
    own_vote: Longs  # per book: its vote on the market, `NONE` on entry


class MarketCase(NamedTuple):
    """One market that is estimated."""

    ladder: Int
    market: Int
    size: Int  # number of outcomes
    comps: Int  # number of components
    same: Int  # number of providers' votes on its own line
    n: Int  # number of providers' votes
    is_live: bool
    hours: Float  # before the start, nan if unknown
    kappa: Float  # weight of the momentum
    n_soft: Int  # number of providers on the line that are not sharp
    overround: Float  # of the votes, or of the sharps


@inlined
def _posterior(
    m: Float, f: Float, others: Int, sharp_x: Float, sharp_weight: Float, sharps: Int, one_may_do: Bool, own_x: Float,
    own: Float, least_weight: Float, push: Float, c: Constants,
) -> Float:  # fmt: skip
    """Combine the parts, in logits; nan if too few books vote.

    - `m`, `f`: the mean and the fresh movers' part
    - `others`: number of providers on the line that are not sharp
    - `sharp_x`, `sharp_weight`, `sharps`: the sharps' mean, their largest weight and their number
    - `one_may_do`: whether one sharp may be the only reference
    - `own_x`, `own`: logit of the judged book (nan: none) and its weight
    - `least_weight`: least weight of its own price
    - `push`: the momentum's part
    """
    only_sharps = np.isnan(m)
    if others + sharps < c.vote_others and not one_may_do:
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


@inlined
def _is_remembered(m: Int, g: Groups, known: Floats, segment: Floats) -> bool:
    """Whether the earlier estimates of a market's outcomes are all there; they are written to `segment`.

    `m` is the market, and `known` as in `estimate`.
    """
    is_remembered = True
    for s in range(g.segments[m], g.segments[m + 1]):
        segment[s] = known[g.row[g.rows[s]]] if g.rows[s] < g.rows[s + 1] else 0.0
        is_remembered &= segment[s] > 0.0
    return is_remembered


@inlined
def _sort_votes(same: Int, n: Int, comps: Int, votes: ProviderVotes, scratch: CloseScratch) -> tuple[Int, Float, Int]:
    """Sort a market's votes once: before a game none is too old for only some books.

    Returns the number of providers on the line that are not sharp, the overround, and when any was last seen.

    `same` and `n` are the numbers of votes on its own line and of all, of `comps` components.
    """
    n_soft, n_sharp, overround, last_seen = 0, 0, 0.0, np.int64(NO_TIME)
    for i in range(n):
        last_seen = max(last_seen, votes.seen[i])
        if i < same and votes.sharp[i] == 0.0:
            n_soft += 1
    for i in range(same):
        if votes.sharp[i] > 0.0:
            n_sharp += 1
    for i in range(same):
        if n_sharp == 0 or votes.sharp[i] > 0.0:
            overround += votes.total[i] - 1.0
    overround /= max(n_sharp if n_sharp > 0 else same, 1)
    for k in range(comps):
        count = 0
        for i in range(same):
            if votes.sharp[i] == 0.0:
                insert(scratch.sorted_x[k], count, votes.x[i, k])
                count += 1
        for j in range(_CENTRES):
            scratch.centres[k, j] = np.nan
    return n_soft, overround, last_seen


@inlined
def _estimate_market(
    case: MarketCase, earliest: Int, first: Int, ladders: LadderInput, alone: Words, c: Constants,
    votes: ProviderVotes, scratch: CloseScratch, segment: Floats,
) -> None:  # fmt: skip
    """The market itself, in which all books vote; its outcomes are written to `segment`, from `first` on.

    - `earliest`: as in `Judged`
    - `alone`: as in `BookColumns`
    """
    at = case.ladder
    judged = Judged(case.same, case.n, np.int64(NONE), earliest)
    sum_p: Float = 0.0
    for k in range(case.comps):
        m, f, others = mean(k, judged, c.vote_clip, votes, scratch.ordered, scratch.tallies[k, _DIRECT])
        x, sharp_weight, sharps, is_enough = sharps_without(k, judged, alone, ladders.alone[at], votes)
        scratch.sharps[k, 0], scratch.sharps[k, 1], scratch.sharps[k, 2] = x, sharp_weight, sharps
        scratch.sharps[k, 3] = is_enough
        push = case.kappa * clip(ladders.momentum[at, k], c.momentum_clip)
        y = _posterior(m, f, others, x, sharp_weight, sharps, is_enough, np.nan, 0.0, 0.0, push, c)
        p = 1.0 / (1.0 + np.exp(-y))
        segment[first + k] = p
        sum_p += p
    if case.comps == 1:
        segment[first + 1] = 1.0 - segment[first]
    else:
        for k in range(case.comps):
            segment[first + k] /= sum_p


@inlined
def _estimate_book(
    b: Int, case: MarketCase, judged: Judged, ladders: LadderInput, logits: BookLogits, books: BookColumns,
    c: Constants, votes: ProviderVotes, scratch: CloseScratch,
) -> None:  # fmt: skip
    """The probabilities of a market's outcomes for the prices of one book, written to `scratch.post`.

    `b` is the book.
    """
    at, vote, size = case.ladder, judged.left_out, case.size
    post, total = scratch.post[b], 0.0
    others: Int = 0
    sharps: Int = 0
    sharp_weight: Float = 0.0
    is_enough: Bool = False
    is_soft_voter = vote >= 0 and votes.sharp[vote] == 0.0
    for k in range(case.comps):
        others = case.n_soft
        if is_soft_voter and vote < case.same:
            others -= 1
        if not case.is_live and others >= 2:
            centre = middle(scratch.sorted_x[k], case.n_soft)
            if others < case.n_soft:
                centre = middle_without(scratch.sorted_x[k], case.n_soft, votes.x[vote, k])
            j = 0
            while j < _CENTRES - 1 and scratch.centres[k, j] != centre and not np.isnan(scratch.centres[k, j]):
                j += 1
            if scratch.centres[k, j] != centre:
                scratch.centres[k, j] = centre
                tally(centre, c.vote_clip, case.n, k, np.int64(NO_TIME), votes, scratch.tallies[k, j])
            m, f = mean_without(vote, k, centre, c.vote_clip, is_soft_voter, votes, scratch.tallies[k, j])
        else:
            m, f, others = mean(k, judged, c.vote_clip, votes, scratch.ordered, scratch.tallies[k, _DIRECT])
        if case.is_live or (vote >= 0 and votes.sharp[vote] > 0.0):
            x, sharp_weight, sharps, is_enough = sharps_without(k, judged, books.alone, ladders.alone[at], votes)
        else:
            of_market = scratch.sharps[k]
            x, sharp_weight, sharps, is_enough = of_market[0], of_market[1], int(of_market[2]), of_market[3] != 0.0
        own_logit = logits.x[scratch.own_vote[b], k] if scratch.own_vote[b] >= 0 else np.nan
        push = case.kappa * clip(ladders.momentum[at, k], c.momentum_clip)
        least_weight = 1.0 if books.exchange[b] != 0 else c.sharp_share * books.sharp[b]
        # Any sharp alone gives a price, which `_estimate_rows` marks as suspect unless it is enough.
        y = _posterior(
            m, f, others, x, sharp_weight, sharps, sharps > 0, own_logit, books.own[b], least_weight, push, c
        )
        post[k] = 1.0 / (1.0 + np.exp(-y))
        total += post[k]
    if case.comps > 1:
        for k in range(case.comps):
            post[k] /= total
    post[size], post[size + 1], post[size + 2], post[size + 3] = others, sharp_weight, sharps, is_enough


@inlined
def _flags(
    flag: np.uint16, case: MarketCase, net: Float, others: Int, sharp_weight: Float, sharps: Int, is_enough: Bool,
    is_suspect: Bool, c: Constants,
) -> np.uint16:  # fmt: skip
    """The flags of a price.

    - `flag`: those of its kind, without `PROP`
    - `net`: the price
    - `others`, `sharp_weight`, `sharps`, `is_enough`: as in `CloseScratch.post`
    - `is_suspect`: whether it is suspect
    """
    if others + sharps == 1:
        flag |= _ONE_REFERENCE
    elif others <= c.flags_thin_others and (sharp_weight == 0.0 or others == 0):
        flag |= _THIN
    if case.size > 2 and sharp_weight == 0.0:
        flag |= _NO_SHARP
    if case.hours > c.flags_early_h:
        flag |= _EARLY
    if net >= c.flags_long_odds:
        flag |= _LONG
    if case.is_live:
        flag |= _LIVE
    if is_suspect:
        flag |= SUSPECT
    return flag


@inlined
def _scaled(p: Float, net: Float, flag: np.uint16, scale: Floats, c: Constants) -> Float:
    """The probability `p` with its edge, if any, scaled by its flags.

    `net` is the price, `flag` its flags, and `scale` (float64 per flag) the factors.
    """
    edge = p * net - 1.0
    if edge > 0.0:
        for bit in range(scale.size):
            if (flag >> bit) & 1 and (bit != _LIVE_BIT or edge * 100.0 < c.flags_live_below):
                edge *= scale[bit]
        p = (1.0 + edge) / net
    return p


@inlined
def _estimate_rows(
    case: MarketCase, g: Groups, prices: PriceInput, ladders: LadderInput, logits: BookLogits, books: BookColumns,
    scale: Floats, behind: Int, c: Constants, votes: ProviderVotes, scratch: CloseScratch, out: FairColumns,
) -> None:  # fmt: skip
    """Fair probabilities of the prices of a market, each without the votes of its book's provider.

    - `scale` (float64 per flag): factor of an edge
    - `behind`: how far behind a price a vote may be in play, microseconds
    """
    first, size = g.segments[case.market], case.size
    no_time = np.int64(NO_TIME)
    for side in range(size):
        for i in range(g.rows[first + side], g.rows[first + side + 1]):
            b, net = g.book[i], prices.net[i]
            if (prices.reason[i] != ACCEPTED and prices.reason[i] != _OUTLIER) or books.barred[b] != 0:
                continue
            post = scratch.post[b]
            if case.is_live or scratch.stamp[b] != case.market:
                scratch.stamp[b] = case.market
                own_vote = scratch.own_vote[b]
                judged_seen = logits.latest[own_vote] if own_vote >= 0 else g.seen[i]
                earliest = judged_seen - behind if case.is_live and judged_seen != no_time else no_time
                judged = Judged(case.same, case.n, np.int64(votes.place[books.provider[b]]), earliest)
                _estimate_book(b, case, judged, ladders, logits, books, c, votes, scratch)
            p = post[0] if side == 0 else 1.0 - post[0]
            if case.comps > 1:
                p = post[side]
            if np.isnan(p):
                continue
            others, sharp_weight, sharps = int(post[size]), post[size + 1], int(post[size + 2])
            is_enough = post[size + 3] != 0.0
            flag = ladders.flags[case.ladder]
            is_prop = (flag & PROP) != 0
            flag &= ~PROP
            if is_prop and is_enough:
                flag &= ~_UNMEASURED
            is_far = is_prop and sharp_weight == 0.0 and others <= c.props_suspect_others
            is_suspect = (
                prices.reason[i] == _OUTLIER
                or (others + sharps < c.vote_others and not is_enough)
                or (is_far and (p * net - 1.0) * 100.0 > c.props_suspect_ev)
            )
            flag = _flags(flag, case, net, others, sharp_weight, sharps, is_enough, is_suspect, c)
            out.row[i] = _scaled(p, net, flag, scale, c)
            out.flags[i], out.others[i], out.width[i] = flag, others, case.overround


@kernel
def _estimate(
    g: Groups, prices: PriceInput, ladders: LadderInput, logits: BookLogits, books: BookColumns, scale: Floats,
    neighbour_distance: Int, c: Constants, votes: ProviderVotes, scratch: CloseScratch, out: FairColumns,
) -> None:  # fmt: skip
    """Fair probabilities of the needed prices; the module docstring has the formula.

    - `scale` (float64 per flag): factor of an edge
    - `neighbour_distance`: largest distance of a line that votes too, in hundredths
    """
    no_time = np.int64(NO_TIME)
    behind = np.int64(c.vote_live_behind_s * 1e6)
    fade = c.fresh_fade_s * 1e6
    for at in range(g.markets.size - 1):
        hours, minute = np.nan, ladders.minute[at]
        if ladders.start[at] != no_time:
            hours = (ladders.start[at] - minute) / 3.6e9
        is_live = g.live[at] != 0
        ramp = 1.0
        if not np.isnan(hours):
            ramp = min(max((hours - c.momentum_near_h) / (c.momentum_far_h - c.momentum_near_h), 0.0), 1.0)
        kappa = c.momentum_far * ramp + c.momentum_near * (1.0 - ramp)
        times = VoteTimes(minute, fade, no_time if is_live else minute - np.int64(c.vote_age_s * 1e6))
        has_votes = logits.start[g.markets[at]] != logits.start[g.markets[at + 1]]
        for m in range(g.markets[at], g.markets[at + 1]):
            first = g.segments[m]
            size = g.segments[m + 1] - first
            needed = prices.needed[m]
            if needed == SKIP or size < 2:
                continue
            if needed == MARKET and prices.known.size > 0 and _is_remembered(m, g, prices.known, out.segment):
                continue
            out.segment[first : first + size] = np.nan
            if not has_votes:
                continue
            comps = np.int64(1) if size == 2 else size
            same, n = collect_votes(
                at, m, g, ladders.slope[at], neighbour_distance, c.vote_neighbour_weight, times, comps, logits, books,
                votes,
            )  # fmt: skip
            if n == 0:
                continue
            n_soft, overround, last_seen = _sort_votes(same, n, comps, votes, scratch)
            case = MarketCase(at, m, size, comps, same, n, is_live, hours, kappa, n_soft, overround)
            earliest = last_seen - behind if is_live and last_seen != no_time else no_time
            _estimate_market(case, earliest, first, ladders, books.alone, c, votes, scratch, out.segment)
            if needed == EVERY_ROW:
                for v in range(logits.start[m], logits.start[m + 1]):
                    scratch.own_vote[logits.book[v]] = v
                _estimate_rows(case, g, prices, ladders, logits, books, scale, behind, c, votes, scratch, out)
                for v in range(logits.start[m], logits.start[m + 1]):
                    scratch.own_vote[logits.book[v]] = NONE
            for i in range(n):
                votes.place[votes.provider[i]] = NONE


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
    g, voters = groups, of.voters
    n, ladders = g.row.size, g.event.size
    widest, most = logits.x.shape[1], traits.provider.size + 1
    alone = np.zeros(most, np.uint64)
    np.bitwise_or.at(alone, traits.provider, voters.alone)
    sport = of.lines.sport[g.event]
    hours = np.where((times.start != NO_TIME) & (g.live == 0), (times.start - times.minute) / 3.6e9, np.nan)
    se = errors_of(hours, of.lines.sigma[sport], of.table)
    out = Fair(
        np.full(n, np.nan), np.zeros(n, np.uint16), np.zeros(n, np.int32), np.full(n, np.nan), se,
        np.full(g.rows.size - 1, np.nan), np.zeros((ladders, widest)) if momentum is None else momentum,
    )  # fmt: skip
    _estimate(
        g, PriceInput(needed, known, net, reason),
        LadderInput(
            of.lines.slope[g.kind, sport], times.minute, times.start, out.momentum,
            of.lines.flags[g.kind, sport] | flag, of.lines.alone[g.kind, sport],
        ),
        logits, BookColumns(traits.provider, voters.own, voters.sharp, traits.exchange, barred, alone),
        np.array(of.table.scale), neighbours(of.table), of.table.constants,
        ProviderVotes(
            np.full(most, NONE, np.int32), np.empty(most, np.int64), np.empty(most, np.int32),
            np.empty((most, widest)), np.empty(most), np.empty(most, np.int64), *np.empty((3, most)),
        ),
        CloseScratch(
            np.empty(most), np.empty((widest, most)), np.empty((widest, _CENTRES + 1, TALLIED)),
            np.empty((widest, _CENTRES)), np.empty((widest, 4)), np.empty((most, widest + 4)),
            np.full(most, NONE, np.int64), np.full(most, NONE, np.int64),
        ),
        FairColumns(*out[:4], out.segment),
    )  # fmt: skip
    return out


@kernel
def _remember(needed: Bytes, segments: Longs, rows: Longs, row: Ints, segment: Floats, estimates: Floats) -> None:
    """Store the estimates of markets at the first row of each outcome.

    - `needed` (per market): as in `estimate`
    - `segments`, `rows`, `row`: as in `Groups`
    - `segment` (float64 per segment), `estimates` (float64 per slot): from and to
    """
    for m in range(segments.size - 1):
        for s in range(segments[m], segments[m + 1] if needed[m] != SKIP else segments[m]):
            if rows[s] < rows[s + 1]:
                estimates[row[rows[s]]] = segment[s]


def remember(groups: Groups, needed: Bytes, fair: Fair, known: Floats) -> None:
    """Store the results of `estimate` in `known`, for the next call."""
    _remember(needed, groups.segments, groups.rows, groups.row, fair.segment, known)


@kernel
def _starts(
    needed: Bytes, markets: Longs, segments: Longs, rows: Longs, start: Longs, reason: Bytes, out: Longs
) -> None:
    """The earliest start among the accepted prices of each needed ladder.

    - `needed` (per ladder): 1 if it is needed
    - `markets`, `segments`, `rows`: as in `Groups`
    - `reason` (per row): the guards' verdict
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
