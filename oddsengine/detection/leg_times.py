"""How old the legs of an opportunity may be, and how far apart in time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine.columns import NO_TIME, Floats
from oddsengine.pricing.references import FairPrices


class LegTimes(NamedTuple):
    """The times that the legs of an opportunity may have."""

    on: bool  # legs must be close in time
    live_limit: int  # the time since which a live leg must have been seen
    gap_live: int  # allowed between live legs, microseconds
    gap_prematch: int  # likewise before the start


def leg_times(prices: FairPrices) -> LegTimes:
    """The times that legs may have on a board."""
    limits = prices.limits
    return LegTimes(
        bool(prices.timed), oldest_live(prices), round(limits.stale_live_gap_s * 1e6),
        round(limits.stale_prematch_gap_s * 1e6),
    )  # fmt: skip


def oldest_live(prices: FairPrices) -> int:
    """The time since which a live leg must have been seen; the earliest possible time if now is unknown."""
    return int(NO_TIME) if prices.now == NO_TIME else prices.now - round(prices.limits.stale_live_leg_s * 1e6)


def ages(now: int, seen: npt.NDArray[np.int64]) -> Floats:
    """Seconds since each time, at least 0; nan if the time is unknown."""
    if now == NO_TIME:
        return np.full(seen.shape, np.nan)
    return np.where(seen == NO_TIME, np.nan, np.maximum(0, now - np.where(seen == NO_TIME, now, seen)) / 1e6)
