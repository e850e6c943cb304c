"""Guards that reject a price whatever the others are: for its age, the start of its event, or its book."""

from typing import NamedTuple

from oddsengine._jit import in_python, inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NO_TIME, Bytes, Int, Longs


class PriceCodes(NamedTuple):
    """Codes of the guards of single prices; 0 for a disabled guard."""

    stale: int
    started_not_live: int
    mid_price_source: int
    parlay_only: int


class Times(NamedTuple):
    """Times by which prices before the start, or in play, are judged: microseconds, or `NO_TIME`."""

    seen: Int  # a price last seen before it is stale
    full_weight: Int  # one last seen since then has the full weight in medians
    witness: Int  # since then, any weight
    start: Int  # an event has started before it


@inlined
def times_in_kernel(now: Int, stale: Int, full_weight: Int, witness: Int, codes: PriceCodes) -> Times:
    """Times from ages.

    - `now`: microseconds, or `NO_TIME`
    - `stale`, `full_weight`, `witness`: as in `Limits`
    """
    has_ages = codes.stale != ACCEPTED and now != NO_TIME
    return Times(
        now - stale if has_ages else NO_TIME,
        now - full_weight if has_ages else NO_TIME,
        now - witness if has_ages else NO_TIME,
        now if codes.started_not_live != ACCEPTED else NO_TIME,
    )


times_of = in_python(times_in_kernel)


@kernel
def reason_alone(
    seen: Int, start: Int, live: Int, mid: Int, parlay: Int, seen_limit: Int, start_limit: Int, codes: PriceCodes
) -> int:
    """Code of the guard that rejects a price regardless of all others; 0 if none does.

    `seen` and `start` are times; `live`, `mid` and `parlay` are those of the price and its book. A price is stale if
    seen before `seen_limit`, and an event has started before `start_limit`; `NO_TIME` if there is no such time.
    """
    if seen < seen_limit and (live != 0 or seen != NO_TIME):
        return codes.stale
    if live == 0 and start < start_limit and start != NO_TIME:
        return codes.started_not_live
    if codes.parlay_only != ACCEPTED and parlay != 0:
        return codes.parlay_only
    if codes.mid_price_source != ACCEPTED and mid != 0:
        return codes.mid_price_source
    return ACCEPTED


@kernel
def reasons_alone(
    seen: Longs, start: Longs, live: Bytes, mid: Bytes, parlay: Bytes, seen_limit: Int, seen_limit_live: Int,
    start_limit: Int, codes: PriceCodes, out: Bytes,
) -> None:  # fmt: skip
    """`reason_alone` for many prices.

    - `seen`, `start`, `live`, `mid`, `parlay`: of each price
    - `seen_limit`, `seen_limit_live`, `start_limit`: as there, before the start and in play
    - `out` (uint8 per price): the codes
    """
    for i in range(seen.size):
        limit = seen_limit_live if live[i] != 0 else seen_limit
        out[i] = reason_alone(seen[i], start[i], live[i], mid[i], parlay[i], limit, start_limit, codes)
