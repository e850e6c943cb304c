"""Reads every price once, rejects those that are wrong by themselves, and lists the few places to look at.

In all other places no other guard could reject anything. For that the lowest and highest prices of whole segments are
compared; rejecting prices only narrows these ranges, so no place is missed.
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NO_TIME, NONE, SECOND, Floats, Int, Longs
from oddsengine.guards.judgement import GuardCodes, GuardTraits, Limits, PriceFacts, RowVerdicts
from oddsengine.guards.single_prices import PriceCodes, Times, reason_alone, times_in_kernel
from oddsengine.identity.groups import Groups

PLACES = 10
"""Number of lists of places."""


class Places(NamedTuple):
    """Lists of the segments, markets and ladders that the other guards have to look at."""

    repeats: Longs  # segments with two prices of one book
    reversals: Longs  # ladders that may run the wrong way
    sums: Longs  # markets that may sum to too little or too much
    team_totals: Longs  # contests of them: their first ladders
    crossings: Longs  # ladders where books may contradict each other
    flaps: Longs  # markets with a price that flaps
    spreads: Longs  # segments with prices far apart
    props: Longs  # ladders of props that have such a segment
    plain: Longs  # pre-match full-game ladders other than props that have one
    exact: Longs  # two-way markets where a book may sum to exactly 1


class PlaceCounts(NamedTuple):
    """How many places each list of `Places` has."""

    repeats: Int
    reversals: Int
    sums: Int
    team_totals: Int
    crossings: Int
    flaps: Int
    spreads: Int
    props: Int
    plain: Int
    exact: Int


class PriceRange(NamedTuple):
    """What the prices of a segment are."""

    bottom: float  # lowest that is accepted; inf if none is
    top: float  # highest; 0 if none is
    lowest: float  # the same among witnesses
    highest: float
    repeats: bool  # one book has two prices
    flaps: bool  # a price flaps


@inlined
def _places(lists: Longs) -> Places:
    """Rows of an array as lists.

    - `lists` (int64, lists by places)
    """
    return Places(
        lists[0], lists[1], lists[2], lists[3], lists[4], lists[5], lists[6], lists[7], lists[8], lists[9]
    )  # fmt: skip


@inlined
def listed_places(lists: Longs, found: PlaceCounts) -> Places:
    """The places that `survey` has found, from the array that it wrote to.

    - `lists` (int64, lists by places)
    """
    room = _places(lists)
    return Places(
        room.repeats[: found.repeats], room.reversals[: found.reversals], room.sums[: found.sums],
        room.team_totals[: found.team_totals], room.crossings[: found.crossings], room.flaps[: found.flaps],
        room.spreads[: found.spreads], room.props[: found.props], room.plain[: found.plain],
        room.exact[: found.exact],
    )  # fmt: skip


@inlined
def _read_segment(
    s: Int, live: Int, now: Int, times: Times, codes: PriceCodes, limits: Limits, groups: Groups, traits: GuardTraits,
    facts: PriceFacts, verdicts: RowVerdicts,
) -> PriceRange:  # fmt: skip
    """Judge each price of a segment by itself, and return the range of those accepted.

    - `s`: the segment
    - `live` (uint8): whether it is in play
    - `now`: microseconds, or `NO_TIME`
    """
    bottom, top = np.inf, 0.0
    lowest, highest = np.inf, 0.0
    previous_book = NONE
    has_repeat = False
    has_flap = False
    for i in range(groups.rows[s], groups.rows[s + 1]):
        x = np.nan
        w = 0.0
        b, t, price = groups.book[i], groups.seen[i], groups.odds[i]
        reason = reason_alone(
            t, facts.start[i], live, traits.mid[b], traits.parlay[b], times.seen, times.start, codes
        )  # fmt: skip
        if reason == ACCEPTED:
            bottom = min(bottom, price)
            top = max(top, price)
        elif reason == codes.stale:
            x = np.inf if t == NO_TIME else (now - t) / SECOND
            if t >= times.witness and t != NO_TIME:
                other_reason = reason_alone(
                    t, facts.start[i], live, traits.mid[b], traits.parlay[b], NO_TIME, times.start, codes
                )  # fmt: skip
                if other_reason == ACCEPTED:
                    w = limits.weight if t >= times.full_weight else limits.weight_old
                    lowest = min(lowest, price)
                    highest = max(highest, price)
        elif reason == codes.started_not_live:
            x = (now - facts.start[i]) / SECOND
        verdicts.witness[i] = w
        verdicts.reason[i] = reason
        verdicts.measure[i] = x
        has_repeat |= b == previous_book
        previous_book = b
        has_flap |= facts.flap[i] != 0
    return PriceRange(bottom, top, lowest, highest, has_repeat, has_flap)


@kernel
def survey(
    groups: Groups, traits: GuardTraits, facts: PriceFacts, on: GuardCodes, now: Int, limits: Limits, low_sums: Floats,
    verdicts: RowVerdicts, contest: Longs, lists: Longs,
) -> PlaceCounts:  # fmt: skip
    """Judge every price by itself, and list the places that other guards have to look at; `listed_places` reads them.

    - `on`: the guards that are enabled
    - `now`: microseconds, or `NO_TIME`
    - `low_sums` (float64 per book): sums of a market that are too low
    - `contest` (int64 per ladder, out): the first ladder with its event, live flag and kind
    - `lists` (int64, lists by places): the places, to write
    """
    segments, event = groups.segments, groups.event
    places = _places(lists)
    n_repeats, n_reversals, n_sums, n_team_totals, n_crossings = 0, 0, 0, 0, 0
    n_flaps, n_spreads, n_props, n_plain, n_exact = 0, 0, 0, 0, 0
    codes = PriceCodes(on.stale, on.started_not_live, on.mid_price_source, on.parlay_only)
    times_prematch = times_in_kernel(now, limits.stale, limits.full_weight, limits.witness, codes)
    times_live = times_in_kernel(now, limits.stale_live, limits.full_weight_live, limits.witness_live, codes)
    least_sum = 0.0
    for k in range(low_sums.size):
        least_sum = max(least_sum, low_sums[k])
    for at in range(groups.markets.size - 1):
        live, kind = groups.live[at], groups.kind[at]
        is_prop, has_lines = traits.prop[kind] != 0, traits.lined[kind] != 0
        is_same_event = at > 0 and event[at] == event[at - 1] and live == groups.live[at - 1]
        is_continued = is_same_event and kind == groups.kind[at - 1]
        contest[at] = contest[at - 1] if is_continued else at
        if traits.team[kind] != 0 and not is_continued:
            places.team_totals[n_team_totals] = at
            n_team_totals += 1
        times = times_live if live != 0 else times_prematch
        ratio = limits.spread_ratio_prop if is_prop else limits.spread_ratio
        over_top, under_low = 0.0, np.inf  # highest over and lowest under price of the lines so far
        over_q, under_q = np.inf, 0.0  # lowest over and highest under probability of the lines so far
        is_reversed, is_crossed = False, False
        n_spreads_before = n_spreads
        for m in range(groups.markets[at], groups.markets[at + 1]):
            first, last = segments[m], segments[m + 1] - 1
            floor, ceiling = 0.0, 0.0  # bounds on the sum of any book's market
            is_complete = first <= last
            has_flap = False
            for s in range(first, last + 1):
                prices = _read_segment(s, live, now, times, codes, limits, groups, traits, facts, verdicts)
                has_flap |= prices.flaps
                if prices.repeats:
                    places.repeats[n_repeats] = s
                    n_repeats += 1
                if prices.top == 0.0:
                    is_complete = False
                    continue
                if max(prices.top, prices.highest) - 1.0 >= ratio * (min(prices.bottom, prices.lowest) - 1.0):
                    places.spreads[n_spreads] = s
                    n_spreads += 1
                q_low, q_high = 1.0 / prices.top, 1.0 / prices.bottom
                floor += q_low
                ceiling += q_high
                if s == first:
                    is_reversed |= over_top - 1.0 >= limits.rise_ratio * (prices.bottom - 1.0)
                    is_crossed |= q_high - over_q > limits.cross_points
                    over_top = max(over_top, prices.top)
                    over_q = min(over_q, q_low)
                if s == last:
                    is_reversed |= prices.top - 1.0 >= limits.rise_ratio * (under_low - 1.0)
                    is_crossed |= under_q - q_low > limits.cross_points
                    under_low = min(under_low, prices.bottom)
                    under_q = max(under_q, q_high)
            if is_complete and (floor < least_sum or ceiling > limits.high_sum):
                places.sums[n_sums] = m
                n_sums += 1
            tolerance = limits.exact_near
            if is_complete and last == first + 1 and floor <= 1.0 + tolerance <= ceiling + 2.0 * tolerance:
                places.exact[n_exact] = m
                n_exact += 1
            if has_flap:
                places.flaps[n_flaps] = m
                n_flaps += 1
        if has_lines and is_reversed:
            places.reversals[n_reversals] = at
            n_reversals += 1
        if has_lines and is_crossed:
            places.crossings[n_crossings] = at
            n_crossings += 1
        if n_spreads > n_spreads_before and is_prop:
            places.props[n_props] = at
            n_props += 1
        elif n_spreads > n_spreads_before and traits.full_game[kind] != 0 and live == 0:
            places.plain[n_plain] = at
            n_plain += 1
    return PlaceCounts(
        n_repeats, n_reversals, n_sums, n_team_totals, n_crossings, n_flaps, n_spreads, n_props, n_plain, n_exact
    )
