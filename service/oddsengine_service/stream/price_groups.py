"""Groups of prices, and the snapshots of those who join them."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor

from oddsengine.live.engine import Engine
from oddsengine.query import Index
from oddsengine_service.monitoring import log
from oddsengine_service.stream.group_prices import BoardFrames, MissedChanges, PriceGroup
from oddsengine_service.stream.jobs import Jobs
from oddsengine_service.stream.moves import UpdateMoves
from oddsengine_service.stream.resuming import RecentUpdates
from oddsengine_service.stream.sending import GroupEvents
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.subscription import Subscription

NewSubscriber = tuple[Subscriber, Subscription]


class PriceGroups:
    """Groups of prices by filter; the hub's thread creates and removes them.

    Snapshots are made in another thread, one for all who came before it begins; the two share the list of these under
    the lock. `begin` is called in the hub's thread with those whose snapshot is made.
    """

    def __init__(
        self, engine: Engine, index: Index, jobs: Jobs, updates: RecentUpdates,
        begin: Callable[[list[NewSubscriber], BoardFrames], None],
    ) -> None:  # fmt: skip
        self._engine, self._index, self._jobs, self._updates, self._begin = engine, index, jobs, updates, begin
        self._groups: dict[Hashable, PriceGroup] = {}
        self._new: dict[PriceGroup, list[NewSubscriber]] = {}
        self._lock = threading.Lock()
        self._snapshots = ThreadPoolExecutor(1, thread_name_prefix="stream")

    # ---- the hub's thread ----

    def __len__(self) -> int:
        return len(self._groups)

    def enter(self, wants: Subscription) -> PriceGroup:
        """Add a member to the group of a subscription to prices."""
        assert wants.prices is not None
        self._updates.begin_prices()
        key = wants.prices, wants.form, wants.seen, wants.wire
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = PriceGroup(wants.prices, wants.form, self._index, wants.wire, seen=wants.seen)
        group.members += 1
        return group

    def leave(self, group: PriceGroup) -> None:
        """Remove a member of a group; without any, it ends."""
        group.members -= 1
        if not group.members:
            self._groups = {key: each for key, each in self._groups.items() if each is not group}

    def events(self, moves: UpdateMoves) -> list[GroupEvents]:
        """Events of an update."""
        batches = []
        for group in self._groups.values():
            if (group.seen or not moves.empty) and (events := group.events(moves)):
                batches.append(GroupEvents(group, moves.number, events))
        return batches

    def prepare(self, group: PriceGroup, subscriber: Subscriber, wants: Subscription) -> None:
        """Have the snapshot of a new subscriber made, or what it missed."""
        if wants.since is not None:
            self._jobs.after_update(group.number, lambda: self._resume(subscriber, wants, group))
            return
        with self._lock:
            new = self._new.setdefault(group, [])
            new.append((subscriber, wants))
        if len(new) == 1:
            self._snapshots.submit(self._take, group, None)

    def _resume(self, subscriber: Subscriber, wants: Subscription, group: PriceGroup, until: float = 0.0) -> None:
        """Encode what a subscriber missed, while the board is not ahead of the updates processed here.

        Rows newer than the number given to the client would be followed by older ones. If streams stay behind the
        board, this never holds, so after a few seconds it is done anyway.
        """
        if wants.since is None or subscriber.requests.current is not wants:
            return
        latest = self._updates.number
        if latest is None:
            return
        until = until or self._updates.deadline()
        exact, number = time.monotonic() < until, self._engine.number
        if exact and number > latest:
            self._jobs.after_update(number, lambda: self._resume(subscriber, wants, group, until))
            return
        missed = self._updates.missed(wants.since)

        def make() -> None:
            if not self._take(group, [(subscriber, wants)], missed, exact=exact):
                self._jobs.put(lambda: self._resume(subscriber, wants, group, until))

        self._snapshots.submit(make)

    def reset(self) -> None:
        """Remove all groups, and those who wait for a snapshot."""
        self._groups.clear()
        with self._lock:
            self._new.clear()

    def end(self) -> None:
        """End the thread of snapshots."""
        self._snapshots.shutdown(wait=False)

    # ---- the thread of snapshots ----

    def _take(
        self, group: PriceGroup, resuming: list[NewSubscriber] | None, missed: MissedChanges | None = None, *,
        exact: bool = False,
    ) -> bool:  # fmt: skip
        """Make the snapshot for waiting subscribers, or one that resumes; False if the board has moved on."""
        with self._lock:
            subscribers = self._new.pop(group, []) if resuming is None else resuming
        try:
            taken = group.snapshot() if missed is None else group.replay(missed, exact=exact)
        except Exception as error:
            log.failure(b"-", "(stream)", error)
            for subscriber, _ in subscribers:
                self._jobs.post(subscriber.connection.end)
            return True
        if taken is None:
            return False
        # Not before its update was processed: an older number would let another gateway show older prices.
        self._jobs.put(lambda: self._jobs.after_update(taken.number, lambda: self._begin(subscribers, taken)))
        return True
