"""Groups of opportunities, and the watches that they need."""

import math
import threading
import time
from collections.abc import Callable

from oddsengine.live.update import Update
from oddsengine_service.node import Node
from oddsengine_service.stream.group_opportunities import OpportunityFilter, OpportunityGroup
from oddsengine_service.stream.jobs import Jobs
from oddsengine_service.stream.reads import Reads
from oddsengine_service.stream.resuming import REPLAY_S, SLACK_S, RecentUpdates
from oddsengine_service.stream.sending import GroupEvents
from oddsengine_service.stream.stream_events import Wire
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.subscription import Subscription
from oddsengine_service.stream.watched_view import OpportunityId, PendingWatch, ViewKey, ViewSnapshot, Watch
from oddsengine_service.stream.watches import Watches, only_of


class OpportunityGroups:
    """Groups of opportunities by filter; for the hub's thread, but for `covers` and `_make`.

    `deliver` is called with events, and `proceed` with a subscriber that waited for a watch, and with the limit that
    denies it one, if any.
    """

    def __init__(
        self, node: Node, jobs: Jobs, updates: RecentUpdates, deliver: Callable[[list[GroupEvents]], None],
        proceed: Callable[[Subscriber, str], None],
    ) -> None:  # fmt: skip
        self._node, self._jobs, self._updates, self._deliver, self._proceed = node, jobs, updates, deliver, proceed
        self._lock = threading.Lock()
        self.groups: dict[tuple[OpportunityFilter, Wire], OpportunityGroup] = {}
        self.watches = Watches()
        self.reads = Reads(self.watches, jobs, self._settle)

    def covers(self, wants: Subscription, number: int) -> bool:
        """Whether what changed since an update can be sent; from any thread."""
        if wants.opportunities is None or not wants.wire.resumes:
            return True
        with self._lock:
            group = self.groups.get((wants.opportunities, wants.wire))
        return group is not None and group.since is not None and number >= group.since

    # ---- subscribers ----

    def provide(self, subscriber: Subscriber, wants: Subscription) -> bool:
        """Provide the group of a subscription; False if the subscriber has to wait for it, or may not have it."""
        if wants.opportunities is None or (wants.opportunities, wants.wire) in self.groups:
            return True
        view = wants.opportunities.view
        pending, watch = self.watches.pending.get(view), self.watches.open.get(view)
        if pending is not None:
            pending.waiting.append(subscriber)
            return False
        if watch is None:
            self._begin_watch(subscriber, view)
            return False
        watch.members += 1
        group = OpportunityGroup(wants.opportunities, watch, wants.wire)
        if wants.wire.resumes:
            group.since = self._updates.number
        with self._lock:
            self.groups[wants.opportunities, wants.wire] = group
        return True

    def enter(self, wants: Subscription, account: str) -> OpportunityGroup:
        """Add a member to the group that was provided."""
        assert wants.opportunities is not None
        group = self.groups[wants.opportunities, wants.wire]
        group.members += 1
        group.idle = None
        group.watch.enter(account)
        return group

    def leave(self, group: OpportunityGroup, account: str) -> None:
        """Remove a member of a group; without any, it is kept as long as clients may resume."""
        group.members -= 1
        group.watch.exit(account)
        if not group.members:
            group.idle = time.monotonic()
            if group.since is None:
                self._close(group)

    def _close(self, group: OpportunityGroup) -> None:
        key = group.filter, group.wire
        with self._lock:
            if self.groups.get(key) is group:
                del self.groups[key]
        group.watch.members -= 1
        if not group.watch.members:
            self.watches.remove(group.watch)

    def _close_idle(self, before: float) -> None:
        """Close groups whose last member left before a time."""
        for group in tuple(self.groups.values()):
            if group.idle is not None and group.idle < before:
                self._close(group)

    # ---- updates ----

    def on_update(self, update: Update) -> list[GroupEvents]:
        """Pass an update to the watches. Returns which groups have reached it without events."""
        for watch in self.watches.open.values():
            watch.on_update(update)
        return [
            GroupEvents(group, update.number, [])
            for group in self.groups.values()
            if group.watch.number == update.number
        ]

    def forget(self, oldest: int) -> None:
        """Drop what no client can resume from an update."""
        for group in self.groups.values():
            group.forget(oldest)
        self._close_idle(time.monotonic() - REPLAY_S - SLACK_S)

    def _settle(self, watch: Watch, outdated: set[OpportunityId], found: ViewSnapshot) -> None:
        """Publish new and expired opportunities."""
        changes, latest = watch.settle(outdated, found), self._updates.number or 0
        batches = [
            GroupEvents(group, watch.number, group.events(changes, latest))
            for group in self.groups.values()
            if group.watch is watch
        ]
        if batches:
            self._deliver(batches)

    # ---- watches ----

    def _begin_watch(self, subscriber: Subscriber, view: ViewKey) -> None:
        """Read a view for a subscriber, unless a limit would be exceeded."""
        reason = self.watches.exceeded(subscriber, view)
        if reason:
            self._close_idle(math.inf)
            reason = self.watches.exceeded(subscriber, view)
        if reason:
            self._proceed(subscriber, reason)
            return
        pending = self.watches.pending[view] = PendingWatch(view, subscriber.account, only_of(subscriber))
        pending.waiting.append(subscriber)
        self.reads.put(subscriber.account, lambda: self._make(pending))

    def _make(self, pending: PendingWatch) -> None:
        """Start watching a view, or read the next part of it; in the thread of reads."""
        watch, account = pending.watch, pending.account
        if pending.abandoned or (watch is None and self.watches.full(account, pending.view, pending.replaced)):
            self._jobs.put(lambda: self._give_up(pending))
            return
        if watch is None:
            engine, boards = self._node.engine, self._node.boards
            watch = pending.watch = Watch(
                engine, boards.method, *pending.view, account=account, ended=boards.ended, encodings=boards.encodings
            )  # fmt: skip
            self._jobs.put(lambda: self._register(pending, watch))
            pending.snapshot = pending.snapshot._replace(before=engine.number)
            pending.unread = watch.ids()
        pending.read_part(watch)
        if pending.unread:
            self.reads.put(account, lambda: self._make(pending), first=True)
        else:
            number = pending.snapshot.number
            self._jobs.put(lambda: self._jobs.after_update(number, lambda: self._complete(pending, watch)))

    def _register(self, pending: PendingWatch, watch: Watch) -> None:
        """Pass updates to a watch before it is read, so that none is missed."""
        if self.watches.pending.get(pending.view) is pending:
            self.watches.add(watch)
        else:
            watch.close()

    def _complete(self, pending: PendingWatch, watch: Watch) -> None:
        """Admit the subscribers that waited for a watch, unless others still need the watch that it replaces."""
        if self.watches.pending.get(pending.view) is not pending:
            return
        watch.fill(pending.snapshot)
        del self.watches.pending[pending.view]
        refused: list[tuple[Subscriber, str]] = []
        for subscriber in pending.waiting:
            if pending.replaced is not None and (reason := self.watches.exceeded(subscriber, pending.view)):
                refused.append((subscriber, reason))
            else:
                self._proceed(subscriber, "")
        self._close_unused(pending)
        for subscriber, reason in refused:
            self._proceed(subscriber, reason)

    def _give_up(self, pending: PendingWatch) -> None:
        """Drop a watch that has no waiters or exceeds a limit of its account."""
        if self.watches.pending.get(pending.view) is not pending:
            return
        del self.watches.pending[pending.view]
        self._close_unused(pending)
        for subscriber in pending.waiting:
            self._proceed(subscriber, "")

    def _close_unused(self, pending: PendingWatch) -> None:
        if pending.watch is not None and not pending.watch.members:
            self.watches.remove(pending.watch)

    def reset(self) -> None:
        """Remove all groups and watches."""
        with self._lock:
            self.groups.clear()
        self.watches.reset()
