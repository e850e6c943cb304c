"""Thresholds of guards and detectors as one frozen record; guards.toml has values, units and meanings.

`thresholds()` returns the packaged values with the changes of your own file (`catalog.own`); `changed` applies the
changes of one user.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from oddsengine.bounds import excerpt, is_number
from oddsengine.catalog import data_files


class Thresholds(NamedTuple):
    """The field `ladder_gap` is `gap` of the table `[ladder]` in guards.toml, which states its unit."""

    epsilon: float
    price_mismatch: float
    stale_prematch_s: float
    stale_live_s: float
    stale_live_leg_s: float
    stale_live_gap_s: float
    stale_prematch_gap_s: float
    stale_flag_prematch_s: float
    stale_flag_live_s: float
    stale_very_prematch_s: float
    stale_very_live_s: float
    witness_prematch_s: float
    witness_live_s: float
    witness_weight: float
    witness_weight_old: float
    mid_price_near: float
    mid_price_share: float
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
    few_witnesses_agree: float
    flap_away: float
    flap_back: float
    flap_window_s: float
    flap_observations: int
    flap_agree: int
    flap_returns_live: int
    event_unseen_s: float
    event_leave_s: float
    event_unseen_leave_s: float
    ev_cap: float
    arbitrage_cap: float
    arbitrage_live_suspicious: float
    arbitrage_low_implied: float
    arbitrage_low_implied_main: float
    middle_floor: float
    middle_disagree: float
    middle_high_probability: float
    middle_large_gap: float
    middle_stale_s: float
    reference_wide: float
    reference_floor: float
    confidence_age_s: float
    confidence_age_live_s: float
    quality_source_ladder: float
    quality_source_median: float
    quality_source_shape: float


# Maximum of thresholds without one of their own: rows store seconds and counts in few bits.
_MOST = {
    "flap_window_s": 32_767,
    "flap_observations": 120,
    "flap_agree": 120,
    "flap_returns_live": 8,
    "witness_weight": 0.99,
    "witness_weight_old": 0.99,
    "mid_price_share": 0.99,
}
_LEAST = {"flap_observations": 2, "flap_agree": 2, "flap_returns_live": 1, "outlier_others": 2, "conflict_others": 1}
_FIXED = ("epsilon",)


def fault(name: str, value: Any) -> str:
    """Return what a threshold may be; empty if the value is valid. The name must be a field of `Thresholds`."""
    if name not in Thresholds._fields or name in _FIXED:
        return f"one of {', '.join(field for field in Thresholds._fields if field not in _FIXED)}"
    whole = Thresholds.__annotations__[name] is int
    kind = "a whole number" if whole else "a number"
    least, most = _LEAST.get(name, 0), _MOST.get(name, 1e6)
    if name == "middle_floor":
        least, most = -1, 0
    if not is_number(value) or (whole and float(value) != int(value)) or not least <= float(value) <= most:
        return f"{kind} from {least:g} to {most:g}"
    return ""


def changed(limits: Thresholds, changes: Mapping[str, Any]) -> Thresholds:
    """Return thresholds with some values replaced.

    Raises `ValueError` if a name is not a threshold, or a value is not allowed for it.

    Examples
    --------
    >>> changed(thresholds(), {"stale_prematch_s": 300}).stale_prematch_s
    300.0
    """
    for name, value in changes.items():
        if allowed := fault(name, value):
            if name not in Thresholds._fields or name in _FIXED:
                raise ValueError(f"{excerpt(name)} is not a threshold; allowed: {allowed}")
            raise ValueError(f"threshold {name} must be {allowed}, got {excerpt(value)}")
    kinds = Thresholds.__annotations__
    return limits._replace(**{name: kinds[name](value) for name, value in changes.items()})


@cache
def shipped() -> Thresholds:
    """Read the thresholds the package ships with."""
    flat: dict[str, Any] = {}
    for name, value in data_files.toml("guards.toml").items():
        if isinstance(value, dict):
            flat |= {f"{name}_{key}": entry for key, entry in value.items()}
        else:
            flat[name] = value
    return Thresholds(**flat)


@cache
def thresholds() -> Thresholds:
    """Read the thresholds in force: those of the package, and what an operator's own file says instead.

    Examples
    --------
    >>> thresholds().arbitrage_cap
    0.1
    """
    data_files.own.used.add("thresholds")
    own = data_files.own.changes.get("thresholds", {})
    flat = {f"{table}_{key}": value for table, entries in own.items() for key, value in entries.items()}
    return changed(shipped(), flat)
