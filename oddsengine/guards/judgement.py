"""What the guards' kernels share: what they are given beside `Groups`, and the verdicts that they write."""

import math
from functools import cache, lru_cache
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import SECOND, Bytes, Floats, Ints, Longs


class GuardCodes(NamedTuple):
    """The codes of a board's guards in the order they run; 0 for a disabled guard."""

    stale: int
    started_not_live: int
    mid_price_source: int
    parlay_only: int
    duplicate_outcome: int
    ladder: int
    internal_conflict: int
    book_sum: int
    one_team_lines: int
    ladder_cross: int
    bias: int
    outlier: int
    few_witnesses: int
    flap: int


class Limits(NamedTuple):
    """Thresholds of the guards, which are those of `catalog/guards.toml`; gaps are differences of logits.

    Those of places to look at are slightly wider, so that rounding in a logarithm cannot hide a place.
    """

    stale: int  # age above which a price is stale, microseconds: pre-match
    stale_live: int  # and in play
    full_weight: int  # age up to which a stale price counts with `weight` in medians
    full_weight_live: int
    witness: int  # age up to which it counts at all
    witness_live: int
    weight: float  # of a stale price in medians
    weight_old: float
    rise_ratio: float  # ratio of odds - 1 between two lines that has to be looked at
    spread_ratio: float  # and within a segment
    spread_ratio_prop: float
    bias_ratio: float  # ratio of odds - 1 above which a segment's gaps are computed
    exact_near: float  # distance from a sum of exactly 1
    exact_sum: float  # sum below which such a market is left to `book_sum`
    exact_share: float  # share of a book's markets above which all are rejected
    duplicate_gap: float
    ladder_gap: float
    conflict_gap: float
    conflict_others: int  # other providers that have to quote the outcome
    low_sum: float  # sum of a book's market that is too low: of a sportsbook
    low_sum_exchange: float  # and of an exchange
    high_sum: float  # too high
    one_team_lines: int  # lines from which one has to be for both teams
    cross_points: float  # difference in probability that is a contradiction
    bias_gap: float
    bias_subjects: int
    outlier_main: float  # gap on a main line
    outlier_other: float  # and on another one
    outlier_slope: float  # added for each 1 / (q (1 - q))
    outlier_others: int  # other providers that have to quote the outcome
    agreement: float  # gap up to which fewer of them agree


class GuardTraits(NamedTuple):
    """The properties of kinds and books, of `Traits`, that the guards read."""

    lined: Bytes  # per kind, as the next three
    prop: Bytes
    team: Bytes
    full_game: Bytes
    provider: Ints  # per book, as all that follow
    exchange: Bytes
    mid: Bytes
    parlay: Bytes


class PriceFacts(NamedTuple):
    """What the guards are given of every row beside its groups."""

    start: Longs  # start of the row's event: microseconds, or `NO_TIME`
    flap: Bytes  # 1 for a price that keeps leaving a value and returning to it
    confirmed: Bytes  # 1 for a price confirmed by a second observation


class RowVerdicts(NamedTuple):
    """Verdicts on the rows, which the guards read and write."""

    reason: Bytes  # code of the guard that rejected the row, or `ACCEPTED`
    measure: Floats  # what it measured, else nan; between two passes of a guard, a number marks a row to reject
    witness: Floats  # weight of a stale price in medians, else 0
    not_reference: Bytes  # 1: too low to be a reference
    doubt: Bytes  # 1: an opportunity that uses the price is unconfirmed


@cache
def guard_codes(off: frozenset[int]) -> GuardCodes:
    """The codes of the guards but those that are disabled."""
    return GuardCodes(*(0 if CODES[name] in off else CODES[name] for name in GuardCodes._fields))


@lru_cache(256)
def limits_of(given: catalog.Thresholds) -> Limits:
    """The guards' thresholds among those of a board."""
    slack = -given.epsilon
    apart = min(given.outlier_main, given.outlier_other) + 4.0 * given.outlier_slope
    return Limits(
        stale=round(given.stale_prematch_s * SECOND),
        stale_live=round(given.stale_live_s * SECOND),
        full_weight=round(2.0 * given.stale_prematch_s * SECOND),
        full_weight_live=round(2.0 * given.stale_live_s * SECOND),
        witness=round(given.witness_prematch_s * SECOND),
        witness_live=round(given.witness_live_s * SECOND),
        weight=given.witness_weight,
        weight_old=given.witness_weight_old,
        rise_ratio=math.exp(given.ladder_gap + slack),
        spread_ratio=math.exp(apart + slack),
        spread_ratio_prop=math.exp(min(apart, given.bias_gap) + slack),
        bias_ratio=math.exp(given.bias_gap + slack),
        exact_near=given.mid_price_near + given.epsilon,
        exact_sum=1.0 - given.epsilon,
        exact_share=given.mid_price_share,
        duplicate_gap=given.duplicate_gap,
        ladder_gap=given.ladder_gap,
        conflict_gap=given.conflict_gap,
        conflict_others=given.conflict_others,
        low_sum=given.book_sum_low - given.epsilon,
        low_sum_exchange=given.book_sum_low_exchange - given.epsilon,
        high_sum=given.book_sum_high + given.epsilon,
        one_team_lines=given.one_team_lines,
        cross_points=given.cross_points,
        bias_gap=given.bias_gap,
        bias_subjects=given.bias_subjects,
        outlier_main=given.outlier_main,
        outlier_other=given.outlier_other,
        outlier_slope=given.outlier_slope,
        outlier_others=given.outlier_others,
        agreement=given.few_witnesses_agree + given.epsilon,
    )
