"""Whether events are upcoming, live or over: by their prices, and by notices of sources.

Columns of the kernel:

- `key`, `seen`, `start`, `state`, `flags` (per slot): as in `Rows`
"""

from collections.abc import Iterable
from typing import NamedTuple, cast

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.board.names import Names
from oddsengine.board.rows import Rows
from oddsengine.columns import NO_TIME, SECOND, Bytes, Ints, Longs
from oddsengine.detection.opportunity_ids import hash_text
from oddsengine.identity.layout import BOOK_BITS, LIVE, ON

STATUSES = ("upcoming", "live", "ended", "postponed", "cancelled")
UPCOMING, IN_PLAY, ENDED, POSTPONED, CANCELLED = range(5)
_KEPT_S = 86_400  # how long a notice about an event without prices is retained
_EVERY = 10 * SECOND  # interval between two checks of events


class EventNotice(NamedTuple):
    """The last notice of a source about an event."""

    status: int
    when: int
    begins: int  # its start, NO_TIME if unknown


class EventStatuses(NamedTuple):
    """Status of events, by code."""

    status: Bytes
    begins: Longs
    over: Longs  # when each ended, NO_TIME if it has not
    last: Longs  # when any of its prices was last seen


@kernel
def _watch(
    key: Longs, seen: Longs, start: Longs, state: Bytes, flags: Bytes, t_event: Ints, last_seen: Longs,
    last_live_seen: Longs, begins: Longs, start_seen: Longs,
) -> None:  # fmt: skip
    """For every event: when any of its prices, and any live one, was last seen; and the start by its newest price.

    - `t_event` (int32 per term): its event
    - `last_seen`, `last_live_seen`, `begins` (per event): to write
    - `start_seen` (int64 per event): when the price that `begins` comes from was seen
    """
    for i in range(seen.size):
        if state[i] != ON:
            continue
        e = t_event[key[i] >> BOOK_BITS]
        last_seen[e] = max(last_seen[e], seen[i])
        if start[i] != NO_TIME and (seen[i] > start_seen[e] or (seen[i] == start_seen[e] and start[i] > begins[e])):
            start_seen[e] = seen[i]
            begins[e] = start[i]
        if flags[i] & LIVE and seen[i] > last_live_seen[e]:
            last_live_seen[e] = seen[i]


class EventNotices:
    """The last notice about each event; a shallow copy stays as it is."""

    def __init__(self) -> None:
        self.latest: dict[str, EventNotice] = {}  # by event id, including events without a price; never written to
        self.checked = int(NO_TIME)  # when it was last checked which events have ended

    def take(self, events: Iterable[tuple[str, str, int]], now: int) -> None:
        """Take notices of event, status, and start or NO_TIME."""
        latest = dict(self.latest)
        for event, status, start in events:
            before = latest.get(event)
            begins = before.begins if start == NO_TIME and before is not None else start
            latest[event] = EventNotice(STATUSES.index(status), now, begins)
        self.latest = latest

    def forget(self, names: Names, now: int) -> None:
        """Forget old notices about events without prices."""
        old, codes = now - _KEPT_S * SECOND, names.events.codes
        self.latest = {id_: notice for id_, notice in self.latest.items() if id_ in codes or notice.when > old}

    def digest(self) -> int:
        """Hash of the notices."""
        notices = sorted((id_, *notice) for id_, notice in self.latest.items())
        return hash_text(repr(notices)) if notices else 0

    def statuses(self, rows: Rows, names: Names, moment: int, limits: catalog.Thresholds) -> EventStatuses:
        """Status of every event, from its prices and from notices of sources."""
        last, last_live, begins, start_seen = (np.full(len(names.events.values), NO_TIME) for _ in range(4))
        _watch(
            rows.key[: rows.top], rows.seen[: rows.top], rows.start, rows.state, rows.flags, names.terms.event.values,
            last, last_live, begins, start_seen,
        )  # fmt: skip
        codes = names.events.codes
        notices = [(codes[id_], notice) for id_, notice in self.latest.items() if id_ in codes]
        for event, notice in notices:
            if notice.begins != NO_TIME:
                begins[event] = notice.begins
        unseen = moment - round(limits.event_unseen_s * SECOND)
        started = (begins != NO_TIME) & (begins < moment)
        status = np.where(last_live >= unseen, IN_PLAY, np.where(started & (last < unseen), ENDED, UPCOMING))
        over = np.where(status == ENDED, last + round(limits.event_unseen_s * SECOND), NO_TIME)
        for event, notice in notices:
            if notice.status in (UPCOMING, IN_PLAY):
                if status[event] != ENDED:
                    status[event] = notice.status
                continue
            if notice.status == POSTPONED and last_live[event] > notice.when:
                continue
            status[event] = notice.status
            over[event] = NO_TIME if notice.status == POSTPONED else notice.when
        return EventStatuses(status.astype(np.uint8), begins, over, last)

    def ended(self, rows: Rows, names: Names, moment: int, limits: catalog.Thresholds) -> Ints:
        """Rows of events that ended a while ago and have not been quoted since; none if it is too early to check."""
        if moment // _EVERY == self.checked // _EVERY:
            return np.empty(0, np.int32)
        self.checked = moment
        _, _, over, last = self.statuses(rows, names, moment, limits)
        leave = (over != NO_TIME) & (over < moment - round(limits.event_leave_s * SECOND)) & (last != NO_TIME)
        if not leave.any():
            return np.empty(0, np.int32)
        on = np.flatnonzero(rows.state[: rows.top] == ON).astype(np.int32)
        event = names.terms.event.values[rows.key[on] >> BOOK_BITS]
        # A price still quoted this long after the end stays: it would come back at once.
        quoted = rows.seen[on] > over[event] + round(limits.event_leave_s * SECOND)
        return cast(Ints, on[leave[event] & ~quoted])
