"""The hub: turns updates into encoded events for groups of subscribers.

One thread receives every update in order, and encodes each group's events once. It posts them to the
event loop, where the subscribers are, so everything about a group happens in the order of these posts. Snapshots are
made in another thread: meanwhile a new subscriber queues its group's events, and gets those after the snapshot's
update. So nothing is missed and nothing arrives twice. Opportunities are read in a third thread, as often as their
number allows, so that prices do not wait for them.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from oddsengine.live.update import Update
from oddsengine.query import Index
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.stream.group_games import GameGroup, GameGroups
from oddsengine_service.stream.group_opportunities import OpportunityGroup
from oddsengine_service.stream.group_prices import BoardFrames, PriceGroup, nothing
from oddsengine_service.stream.jobs import Jobs
from oddsengine_service.stream.moves import UpdateMoves
from oddsengine_service.stream.opportunity_groups import OpportunityGroups
from oddsengine_service.stream.price_groups import NewSubscriber, PriceGroups
from oddsengine_service.stream.resuming import RecentUpdates, ResumeKeys
from oddsengine_service.stream.sending import Group, GroupEvents
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.subscribers import Subscribers
from oddsengine_service.stream.subscription import Subscription

_NEAR = 1 << 16  # updates; this node will not reach a number farther ahead
TOO_MANY = "too_many_streams"


class StreamHub:
    """All streams of a node, and the thread in which their groups change.

    It is created in the event loop that serves them.
    """

    def __init__(self, node: Node, index: Index, **settings: Any) -> None:
        self.subscribers = Subscribers(node, **settings)
        self._node, self._index = node, index
        self._updates = RecentUpdates(node.engine, index)
        self._resume_keys = ResumeKeys()
        self._jobs = Jobs(asyncio.get_running_loop(), self._updates)
        self._prices = PriceGroups(node.engine, index, self._jobs, self._updates, self._begin)
        self.opportunities = OpportunityGroups(node, self._jobs, self._updates, self._deliver, self._proceed)
        self._games = GameGroups()
        node.followers.append(self._on_update)
        for work in (self._run, lambda: self.opportunities.reads.run(self._reset)):
            threading.Thread(target=work, name="stream", daemon=True).start()

    # ---- from the event loop ----

    def remember(self, then: Callable[[], None]) -> None:
        """Remember updates without subscribers, for clients that resume from another gateway; then call `then`."""
        self._jobs.put(lambda: self._updates.begin_prices(always=True))
        self._jobs.put(then)

    async def serve(self, subscriber: Subscriber, wants: Subscription, listening: Awaitable[None]) -> None:
        """Send a snapshot of a subscription and then its changes, until `listening` ends as the client disconnects."""
        self._jobs.put(lambda: self._request(subscriber, wants, None))
        try:
            await listening
        except asyncio.CancelledError:
            subscriber.connection.end()
            if not subscriber.connection.gone:  # discard what is pending
                raise
        finally:
            self.leave(subscriber)

    def change(self, subscriber: Subscriber, wants: Subscription, first: list[bytes]) -> None:
        """Replace a subscription: send these frames, a new snapshot, and from then on its changes.

        If the new one would exceed a limit, an error is sent, and the old one continues.
        """
        self._jobs.put(lambda: self._request(subscriber, wants, first))

    def resumable(self, wants: Subscription, global_seq: int | None) -> Subscription:
        """The subscription with `since` if the missed events can be sent; thread-safe."""
        if global_seq is None:
            return wants
        number = self.subscribers.delivery.number_of(global_seq)
        covered = self._updates.covers(number, prices=wants.prices is not None)
        return wants._replace(since=number) if covered and self.opportunities.covers(wants, number) else wants

    def holds(self, account: str, wants: Subscription) -> bool:
        """Whether a client of the account has an equal subscription, or had one within the last two minutes."""
        return (account, wants.wire, wants.hash) in self._resume_keys

    async def reach(self, global_seq: int | None) -> bool:
        """Wait for an update that a client got from another gateway; False after five seconds."""
        until = self._updates.deadline()
        while global_seq is not None and (latest := self._updates.number) is not None:
            if not 0 < self.subscribers.delivery.number_of(global_seq) - latest < _NEAR:
                break
            if time.monotonic() > until:
                return False
            await asyncio.sleep(0.02)
        return True

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber immediately."""
        self.subscribers.leave(subscriber)
        self._resume_keys.release(subscriber)
        self._jobs.put(lambda: self._leave(subscriber, subscriber.requests.groups))

    async def close(self, within: float = 5.0) -> None:
        """End every stream cleanly. Closing again has no effect."""
        if self.subscribers.closed:
            return
        self._node.followers.remove(self._on_update)
        await self.subscribers.close(within)
        self._jobs.put(None)
        self.opportunities.reads.end()

    def games(self, states: Mapping[str, Any], removed: Iterable[str] = ()) -> None:
        """Publish game states, by event; thread-safe."""
        self._jobs.put(lambda: self._play(dict(states), tuple(removed)))

    def _on_update(self, update: Update) -> None:
        """Queue an update, with the main lines after it; in the thread that publishes."""
        self._updates.mark(update)
        self._jobs.put(lambda: self._update(update))

    # ---- in the hub's thread ----

    def _run(self) -> None:
        reads = self.opportunities.reads
        while True:
            try:
                job = self._jobs.get(reads.patience())
            except queue.Empty:
                job = reads.begin
            if job is None:
                self._prices.end()
                return
            try:
                job()
                if reads.patience() == 0.0:
                    reads.begin()
            except Exception as error:
                log.failure(b"-", "(stream)", error)
                self._reset()
            del job  # it may refer to a watch

    def _reset(self) -> None:
        """End every stream after an internal error: clients reconnect and get a fresh snapshot."""
        for part in (self.opportunities, self._prices, self._games, self._updates):
            part.reset()
        self._jobs.forget_waiting()
        self._jobs.post(self.subscribers.end_all)

    def _update(self, update: Update) -> None:
        marks, latest = self._updates.marks(update.number), self._updates.number
        if latest is None or update.number <= latest:
            return
        batches = self.opportunities.on_update(update)
        moves = UpdateMoves(update, self._index, marks)
        oldest = self._updates.add(moves, marks, prices=len(self._prices) > 0)
        if oldest is not None:
            self.opportunities.forget(oldest)
            self._games.forget(oldest)
        self._deliver(batches + self._prices.events(moves))
        self._jobs.updated(update.number)

    def _deliver(self, batches: list[GroupEvents]) -> None:
        latest = self._updates.number
        assert latest is not None
        self._jobs.post(self.subscribers.delivery.deliver, batches, latest)

    def _play(self, states: Mapping[str, Any], removed: tuple[str, ...]) -> None:
        batches = self._games.apply(states, removed, self._updates.number or 0)
        if batches:
            self._deliver([GroupEvents(group, 0, events) for group, events in batches])

    # ---- subscriptions ----

    def _request(self, subscriber: Subscriber, wants: Subscription, first: list[bytes] | None) -> None:
        """Process a subscription after the earlier ones of the same subscriber; `first` are the frames of a change."""
        requests = subscriber.requests
        requests.pending.append((wants, first))
        if len(requests.pending) == 1:
            self._proceed(subscriber)

    def _proceed(self, subscriber: Subscriber, reason: str = "") -> None:
        """Process requests of a subscriber up to one that has to wait; with a reason, the first one is refused."""
        if reason:
            self._refuse(subscriber, reason)
        requests = subscriber.requests
        while requests.pending and not subscriber.connection.gone:
            wants, first = requests.pending[0]
            self._updates.begin()
            if not self.opportunities.provide(subscriber, wants):
                return
            requests.pending.popleft()
            before, requests.groups, requests.current = requests.groups, [], wants
            if first is not None:
                self._jobs.post(self.subscribers.delivery.change, subscriber, first)
            self._join(subscriber, wants)
            self._leave(subscriber, before)  # after joining, so that shared groups are not recreated

    def _refuse(self, subscriber: Subscriber, reason: str) -> None:
        """Reject the first request; a subscriber without a subscription is closed."""
        _, first = subscriber.requests.pending.popleft()
        error = subscriber.wire.error(TOO_MANY, reason)
        if first is None:
            self._jobs.post(subscriber.connection.refuse, TOO_MANY, error)
        else:
            self._jobs.post(self.subscribers.delivery.send, error, subscriber)

    def _join(self, subscriber: Subscriber, wants: Subscription) -> None:
        """Send a snapshot of a subscription, and from then on its changes."""
        groups, register = subscriber.requests.groups, self.subscribers.delivery.register
        prices: PriceGroup | None = None
        if wants.prices is not None:
            prices = self._prices.enter(wants)
            groups.append(prices)
        if wants.opportunities is not None:
            groups.append(self.opportunities.enter(wants, subscriber.account))
        if wants.games is not None:
            groups.append(self._games.enter(wants.games, wants.wire))
        for group in groups:
            number = group.watch.number if isinstance(group, OpportunityGroup) else 0
            self._jobs.post(register, group, subscriber, number)
        if prices is None:
            taken = nothing(wants.wire, games=wants.opportunities is None, resumed=wants.since is not None)
            self._begin([(subscriber, wants)], taken)
        else:
            self._prices.prepare(prices, subscriber, wants)

    def _leave(self, subscriber: Subscriber, groups: list[Group]) -> None:
        for group in groups:
            if isinstance(group, OpportunityGroup):
                self.opportunities.leave(group, subscriber.account)
            elif isinstance(group, PriceGroup):
                self._prices.leave(group)
            else:
                self._games.leave(group)

    def _begin(self, subscribers: list[NewSubscriber], taken: BoardFrames) -> None:
        """Send new subscribers their snapshot: prices of one update, and other open items."""
        made: dict[Group, list[bytes]] = {}
        latest = self._updates.number or 0
        for subscriber, wants in subscribers:
            if subscriber.requests.current is not wants:
                continue
            frames: list[bytes] = []
            if wants.since is not None:
                made = {}
            for group in subscriber.requests.groups:
                if group not in made:
                    made[group] = self._beginning(group, wants.since)
                frames += made[group]
            self._jobs.post(self.subscribers.delivery.admit, subscriber, taken, frames, wants.since or 0, latest)
            self._jobs.post(self._resume_keys.hold, subscriber, wants.hash)

    def _beginning(self, group: Group, since: int | None) -> list[bytes]:
        """Frames of what is open in a group, but for prices."""
        if isinstance(group, OpportunityGroup):
            return group.beginning() if since is None or group.since is None else group.replay(since)
        return self._games.beginning(group, since) if isinstance(group, GameGroup) else []
