"""What time alone changes: prices that get too old, removals to forget, and when each partition is next looked at.

Columns of the kernel:

- `seen`, `start`, `state`, `flags`, `moved`, `pending` (per slot): as in `Rows`
"""

import numpy as np

from oddsengine import catalog
from oddsengine._jit import allocating, kernel
from oddsengine.board.changed_markets import TIMED
from oddsengine.board.partitions import DIRTY, Partitions
from oddsengine.board.rows import MOVED, SEEN, Rows
from oddsengine.columns import LATEST, NO_TIME, SECOND, Bytes, Ints
from oddsengine.identity.layout import LIVE, REMOVED

REMEMBERED_S = 600  # seconds for which removals are remembered


@kernel
@allocating
def _age(
    last_moment, moment, p_start, p_size, pool, due_at, seen, start, state, flags, moved, pending, prematch_age,
    live_age, leg_age, witness_age, witness_age_live, leave_age, memory, dirty, left_slots, freed_slots,
):  # fmt: skip
    """Mark rows and partitions that time alone changed; list rows to remove and rows to forget. Returns both counts.

    A limit was passed if it lies in [last_moment, moment). `due_at` is set to a partition's next limit, before which it
    is skipped.

    - `last_moment`, `moment`: the time of the last call, and of this one
    - `p_start`, `p_size`, `pool`, `due_at`, `dirty`: the columns of `Partitions`
    - `prematch_age`, `live_age`, `leg_age`: ages at which a pre-match price, a live one and a live leg are too old;
      microseconds, like the next ones
    - `witness_age`, `witness_age_live`: ages at which a price is no longer a witness
    - `leave_age`: age at which a price leaves the board
    - `memory`: how long a removal is remembered
    - `left_slots`, `freed_slots`: the lists to write
    """
    n_left, n_freed = 0, 0
    limits = np.empty(4, np.int64)
    for u in range(dirty.size):
        if due_at[u] >= moment:
            continue
        next_limit = np.int64(LATEST)
        for k in range(p_start[u], p_start[u] + p_size[u]):
            i = pool[k]
            if state[i] == REMOVED:
                if moved[i] + memory < moment:
                    freed_slots[n_freed] = i
                    n_freed += 1
                else:
                    next_limit = min(next_limit, moved[i] + memory)
                continue
            t = seen[i]
            if t + leave_age < moment:
                left_slots[n_left] = i
                n_left += 1
            if flags[i] & LIVE:
                limits[0], limits[1], limits[2], limits[3] = (
                    t + live_age,
                    t + leg_age,
                    t + 2 * live_age,
                    t + witness_age_live,
                )
            else:
                limits[0], limits[1], limits[2], limits[3] = (
                    t + prematch_age,
                    start[i],
                    t + 2 * prematch_age,
                    t + witness_age,
                )
            for limit in limits:
                if last_moment <= limit < moment:
                    pending[i] |= np.uint8(TIMED)
                    dirty[u] |= np.uint8(DIRTY)
                elif limit >= moment:
                    next_limit = min(next_limit, limit)
            if t + leave_age >= moment:
                next_limit = min(next_limit, t + leave_age)
        due_at[u] = next_limit
    return n_left, n_freed


def age(
    rows: Rows, partitions: Partitions, count: int, since: int, moment: int, limits: catalog.Thresholds
) -> tuple[Ints, Ints]:
    """Mark rows and partitions that limits passed since a moment change; return rows to remove, and rows to forget.

    `count` is the number of partitions.
    """
    left, freed = np.empty(rows.top, np.int32), np.empty(rows.top, np.int32)
    n_left, n_freed = _age(
        since, moment, partitions.start, partitions.size, partitions.pool, partitions.due_at, rows.seen, rows.start,
        rows.state, rows.flags, rows.moved, rows.pending,
        round(limits.stale_prematch_s * SECOND), round(limits.stale_live_s * SECOND),
        round(limits.stale_live_leg_s * SECOND), round(limits.witness_prematch_s * SECOND),
        round(limits.witness_live_s * SECOND), round(limits.event_unseen_leave_s * SECOND),
        REMEMBERED_S * SECOND, partitions.dirty[:count], left, freed,
    )  # fmt: skip
    return left[:n_left], np.sort(freed[:n_freed])


def schedule(rows: Rows, partitions: Partitions, slots: Ints, what: Bytes, limits: catalog.Thresholds) -> None:
    """Schedule partitions for the first limit that their new prices may pass; `what` are the effects of quotes."""
    due_at = partitions.due_at
    seen = slots[what == SEEN]
    live = (rows.flags[seen] & LIVE) != 0
    soonest = np.where(live, min(limits.stale_live_s, limits.stale_live_leg_s, limits.witness_live_s),
                       min(limits.stale_prematch_s, limits.witness_prematch_s))  # fmt: skip
    np.minimum.at(due_at, rows.partition[seen], rows.seen[seen] + np.round(soonest * SECOND).astype(np.int64))
    due_at[rows.partition[slots[(what & MOVED) != 0]]] = NO_TIME
