"""What time alone changes: prices that get too old, removals to forget, and when each partition is next looked at."""

from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.board.changed_markets import TIMED
from oddsengine.board.partitions import DIRTY, Partitions
from oddsengine.board.rows import Rows
from oddsengine.columns import LATEST, NO_TIME, SECOND, Bytes, Int, Ints, Longs
from oddsengine.identity.layout import LIVE, REMOVED

REMEMBERED_S = 600  # seconds for which removals are remembered


class AgeingColumns(NamedTuple):
    """The columns of `Rows` that say how old a price is, by slot."""

    seen: Longs
    start: Longs
    state: Bytes
    flags: Bytes
    moved: Longs
    pending: Bytes  # written


class AgeLimits(NamedTuple):
    """Ages at which something changes, microseconds."""

    prematch: int  # a pre-match price is too old
    live: int  # a live one is
    leg: int  # a live leg is
    witness: int  # a pre-match price is no longer a witness
    witness_live: int  # a live one is not
    leave: int  # a price leaves the board
    memory: int  # a removal is forgotten


@kernel
def _age(
    last_moment: Int, moment: Int, p_start: Longs, p_size: Ints, pool: Ints, due_at: Longs, dirty: Bytes,
    rows: AgeingColumns, ages: AgeLimits, left_slots: Ints, freed_slots: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Mark rows and partitions that time alone changed; list rows to remove and rows to forget. Returns both counts.

    A limit was passed if it lies in [last_moment, moment). `due_at` is set to a partition's next limit, before which it
    is skipped.

    - `last_moment`, `moment`: the time of the last call, and of this one
    - `p_start`, `p_size`, `pool`, `due_at`, `dirty`: the columns of `Partitions`
    - `left_slots`, `freed_slots`: the lists to write
    """
    n_left, n_freed = 0, 0
    for u in range(dirty.size):
        if due_at[u] >= moment:
            continue
        next_limit = np.int64(LATEST)
        for k in range(p_start[u], p_start[u] + p_size[u]):
            i = pool[k]
            if rows.state[i] == REMOVED:
                if rows.moved[i] + ages.memory < moment:
                    freed_slots[n_freed] = i
                    n_freed += 1
                else:
                    next_limit = min(next_limit, rows.moved[i] + ages.memory)
                continue
            t = rows.seen[i]
            if t + ages.leave < moment:
                left_slots[n_left] = i
                n_left += 1
            if rows.flags[i] & LIVE:
                limits = t + ages.live, t + ages.leg, t + 2 * ages.live, t + ages.witness_live
            else:
                limits = t + ages.prematch, rows.start[i], t + 2 * ages.prematch, t + ages.witness
            for limit in limits:
                if last_moment <= limit < moment:
                    rows.pending[i] |= np.uint8(TIMED)
                    dirty[u] |= np.uint8(DIRTY)
                elif limit >= moment:
                    next_limit = min(next_limit, limit)
            if t + ages.leave >= moment:
                next_limit = min(next_limit, t + ages.leave)
        due_at[u] = next_limit
    return n_left, n_freed


def age(
    rows: Rows, partitions: Partitions, count: int, since: int, moment: int, limits: catalog.Thresholds
) -> tuple[Ints, Ints]:
    """Mark rows and partitions that limits passed since a moment change; return rows to remove, and rows to forget.

    `count` is the number of partitions.
    """
    left, freed = np.empty(rows.top, np.int32), np.empty(rows.top, np.int32)
    ages = AgeLimits(
        prematch=round(limits.stale_prematch_s * SECOND),
        live=round(limits.stale_live_s * SECOND),
        leg=round(limits.stale_live_leg_s * SECOND),
        witness=round(limits.witness_prematch_s * SECOND),
        witness_live=round(limits.witness_live_s * SECOND),
        leave=round(limits.event_unseen_leave_s * SECOND),
        memory=REMEMBERED_S * SECOND,
    )
    n_left, n_freed = _age(
        since, moment, partitions.start, partitions.size, partitions.pool, partitions.due_at, partitions.dirty[:count],
        AgeingColumns(rows.seen, rows.start, rows.state, rows.flags, rows.moved, rows.pending), ages, left, freed,
    )  # fmt: skip
    return left[:n_left], np.sort(freed[:n_freed])


def schedule(rows: Rows, partitions: Partitions, seen: Longs, moved: Longs, limits: catalog.Thresholds) -> None:
    """Schedule partitions for the first limit that rows may pass that were seen again, or that changed."""
    due_at = partitions.due_at
    live = round(min(limits.stale_live_s, limits.stale_live_leg_s, limits.witness_live_s) * SECOND)
    prematch = round(min(limits.stale_prematch_s, limits.witness_prematch_s) * SECOND)
    soonest = np.where((rows.flags[seen] & LIVE) != 0, live, prematch)
    np.minimum.at(due_at, rows.partition[seen], rows.seen[seen] + soonest)
    due_at[rows.partition[moved]] = NO_TIME
