"""The thresholds of guards and detectors, one frozen record; guards.toml holds values, units and meanings."""

from functools import cache
from typing import Any, NamedTuple

from oddsengine.catalog import files


class Thresholds(NamedTuple):
    """A field `ladder_gap` is `gap` of the table `[ladder]` in guards.toml, which states its unit.

    `thresholds()._replace(stale_prematch_s=300)` makes another set.
    """

    epsilon: float
    price_mismatch: float
    stale_prematch_s: float
    stale_live_s: float
    stale_live_leg_s: float
    stale_live_gap_s: float
    stale_flag_prematch_s: float
    stale_flag_live_s: float
    stale_very_prematch_s: float
    stale_very_live_s: float
    duplicate_gap: float
    ladder_gap: float
    conflict_gap: float
    conflict_others: int
    book_sum_low: float
    book_sum_low_exchange: float
    book_sum_high: float
    one_team_lines: int
    cross_points: float
    bias_subjects: int
    bias_gap: float
    outlier_others: int
    outlier_main: float
    outlier_other: float
    outlier_slope: float
    flap_away: float
    flap_back: float
    flap_window_s: float
    flap_looks: int
    flap_agree: int
    event_unseen_s: float
    event_leave_s: float
    event_unseen_leave_s: float
    ev_cap: float
    arbitrage_min_profit: float
    arbitrage_cap: float
    arbitrage_live_suspicious: float
    arbitrage_low_implied: float
    arbitrage_low_implied_main: float
    low_hold_max_hold: float
    middle_cap: float
    middle_floor: float
    middle_disagree: float
    middle_high_probability: float
    middle_large_gap: float
    middle_stale_s: float
    reference_wide: float
    reference_floor: float
    confidence_width_free: float
    confidence_width_span: float
    confidence_width_floor: float
    confidence_gap_scale: float
    confidence_few_books: float
    confidence_age_s: float
    confidence_age_live_s: float
    confidence_long_shot: float
    confidence_ev_free: float
    confidence_ev_span: float
    quality_ev_points: float
    quality_ev_full: float
    quality_probability_points: float
    quality_probability_full: float
    quality_source_points: float
    quality_source_ladder: float
    quality_source_median: float
    quality_source_shape: float
    quality_age_points: float
    quality_age_full_s: float


@cache
def thresholds() -> Thresholds:
    """Read the thresholds the package ships with.

    Examples
    --------
    >>> thresholds().arbitrage_cap
    0.1
    """
    flat: dict[str, Any] = {}
    for name, value in files.toml("guards.toml").items():
        if isinstance(value, dict):
            flat |= {f"{name}_{key}": entry for key, entry in value.items()}
        else:
            flat[name] = value
    return Thresholds(**flat)
