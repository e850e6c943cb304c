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
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any, NamedTuple

from oddsengine.live.update import Update
from oddsengine.query import Index, LastChanges, Marks, RowChanges, RowFilter, TermIndex
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.pool import Turns
from oddsengine_service.stream.events import SSE, Wire, forgotten
from oddsengine_service.stream.games import GameGroup
from oddsengine_service.stream.moves import RowForm, UpdateMoves
from oddsengine_service.stream.opportunities import OpportunityFilter, OpportunityGroup, ViewKey
from oddsengine_service.stream.prices import BoardFrames, MissedChanges, PriceGroup, nothing
from oddsengine_service.stream.sending import Group, Subscribers
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.watch import OpportunityId, ViewSnapshot, Watch

MOST_WATCHES = 64  # sets of books and thresholds with followed opportunities
REPLAY_S = 120.0  # period for which a client may resume
_SLACK_S = 15.0  # margin, for a client that connects at the last moment
_REACH_S = 5.0
_NEAR = 1 << 16  # updates; this node will not reach a number farther ahead
SHARE = 16  # of one account
MOST_ROWS = 50_000  # opportunities that one account's watches may hold for another to be added
TOO_MANY = "too_many_streams"
PART = 250  # opportunities read at once; other accounts get a turn in between
READ_EVERY_S = 0.05  # between two reads of what is open; longer where a read is slow


class Subscription(NamedTuple):
    """Contents of a subscription: prices, opportunities, games; None for those not included."""

    prices: RowFilter | None
    opportunities: OpportunityFilter | None
    games: RowFilter | None
    form: RowForm = RowForm()
    seen: bool = False  # for a node that passes prices on
    wire: Wire = SSE
    since: int | None = None  # send changes since this update instead of a snapshot

    @property
    def hash(self) -> str:
        """A hash of the filters, equal in every process."""
        filters = [_plain(value) for part in (self.prices, self.opportunities, self.games) for value in part or (None,)]
        return blake2b(repr((filters, self.form, self.seen)).encode(), digest_size=6).hexdigest()


class _PendingWatch:
    """A watch that is read for the first time, and the subscribers that wait for it."""

    def __init__(self, view: ViewKey, account: str, replaced: Watch | None) -> None:
        self.view, self.account = view, account
        self.replaced = replaced  # the watch that nobody needs once this one is there
        self.waiting: list[Subscriber] = []
        self.watch: Watch | None = None
        self.unread: list[OpportunityId] = []
        self.snapshot = ViewSnapshot({}, 0, 0)

    @property
    def abandoned(self) -> bool:
        """Whether everybody who waited for it has left."""
        return all(subscriber.gone for subscriber in tuple(self.waiting))


_ResumeKey = tuple[str, Wire, str]  # account, format and hash of a subscription whose snapshot was sent


class _PendingRead(NamedTuple):
    """The result of a read, to be published after its update."""

    number: int
    settle: Callable[[], None]


class StreamHub:
    """All streams of a node; created in the event loop that serves them."""

    def __init__(self, node: Node, index: Index, **settings: Any) -> None:
        self.lines = Subscribers(node, **settings)
        self._node, self._index = node, index
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._snapshots = ThreadPoolExecutor(1, thread_name_prefix="stream")
        self._reads = Turns()
        self._making: dict[ViewKey, _PendingWatch] = {}
        self._last: LastChanges | None = None  # once there is a subscriber
        self._prices: dict[Hashable, PriceGroup] = {}
        self._opportunities: dict[tuple[OpportunityFilter, Wire], OpportunityGroup] = {}
        self._watches: dict[ViewKey, Watch] = {}
        self._games: dict[tuple[RowFilter, Wire], GameGroup] = {}
        self._states: dict[str, Any] = {}
        self._coming: dict[PriceGroup, list[tuple[Subscriber, Subscription]]] = {}
        self._coming_lock = threading.Lock()
        self._pending_reads: list[_PendingRead] = []
        self._read_at = 0.0
        self._pauses: dict[Hashable, float] = {}  # until when reads are suspended for an account
        self._following = False  # while there are price subscribers, or clients that may resume
        self._always = False  # clients of other gateways may resume
        self._followed = 0.0  # when there last were price subscribers
        self._since: int | None = None  # all changes are remembered from this update on
        self._update_times: deque[tuple[float, int]] = deque()
        self._lost: deque[tuple[int, TermIndex, list[RowChanges]]] = deque()
        self._removed_games: deque[tuple[int, str]] = deque()
        self._marks: dict[int, Marks] = {}  # by number of the update
        self._resumable: Counter[_ResumeKey] = Counter()  # open, or ended while a client may resume
        node.followers.append(self._on_update)
        for work in (self._run, self._read_all):
            threading.Thread(target=work, name="stream", daemon=True).start()

    # ---- from the event loop ----

    def remember(self, then: Callable[[], None]) -> None:
        """Remember updates without subscribers, for clients that resume from another gateway; then call `then`."""
        self._always = True
        self._jobs.put(self._begin_following)
        self._jobs.put(then)

    async def serve(self, subscriber: Subscriber, wants: Subscription, listening: Awaitable[None]) -> None:
        """Send a snapshot of a subscription and then its changes, until `listening` ends as the client disconnects."""
        self._jobs.put(lambda: self._request(subscriber, wants, None))
        try:
            await listening
        except asyncio.CancelledError:
            subscriber.end()
            if not subscriber.gone:  # discard what is pending
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
        first, known = self._since, tuple(self._update_times)
        if global_seq is None or not known:
            return wants
        number, now = self.lines.number_of(global_seq), time.monotonic()
        oldest = next((heard for at, heard in known if at >= now - REPLAY_S), known[-1][1])
        if not oldest <= number <= known[-1][1] or (wants.prices is not None and (first is None or number < first)):
            return wants
        if wants.opportunities is not None and wants.wire.resumes:
            group = self._opportunities.get((wants.opportunities, wants.wire))
            if group is None or group.since is None or number < group.since:
                return wants
        return wants._replace(since=number)

    def holds(self, account: str, wants: Subscription) -> bool:
        """Whether a client of the account has an equal subscription, or had one within the last two minutes."""
        return (account, wants.wire, wants.hash) in self._resumable

    async def reach(self, global_seq: int | None) -> bool:
        """Wait for an update that a client got from another gateway; False after five seconds."""
        until = time.monotonic() + _REACH_S
        while global_seq is not None and self._update_times:
            if not 0 < self.lines.number_of(global_seq) - self._update_times[-1][1] < _NEAR:
                break
            if time.monotonic() > until:
                return False
            await asyncio.sleep(0.02)
        return True

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber immediately."""
        self.lines.leave(subscriber)
        self._release(subscriber)
        self._jobs.put(lambda: self._leave(subscriber, subscriber.groups))

    def _hold(self, subscriber: Subscriber, subscription: str) -> None:
        """Let clients resume a subscription whose snapshot was sent."""
        self._release(subscriber)
        if not subscriber.gone:
            subscriber.resume_key = (subscriber.account, subscriber.wire, subscription)
            self._resumable[subscriber.resume_key] += 1

    def _release(self, subscriber: Subscriber) -> None:
        held, subscriber.resume_key = subscriber.resume_key, None
        if held is not None:
            self._loop.call_later(REPLAY_S, self._forget, held)

    def _forget(self, held: _ResumeKey) -> None:
        self._resumable[held] -= 1
        if not self._resumable[held]:
            del self._resumable[held]

    async def close(self, within: float = 5.0) -> None:
        """End every stream cleanly. Closing again has no effect."""
        if self.lines.closed:
            return
        self._node.followers.remove(self._on_update)
        await self.lines.close(within)
        self._jobs.put(None)
        self._reads.end()

    def games(self, states: Mapping[str, Any], removed: Iterable[str] = ()) -> None:
        """Publish game states, by event; thread-safe."""
        self._jobs.put(lambda: self._play(dict(states), tuple(removed)))

    def _on_update(self, update: Update) -> None:
        """Queue an update, with the main lines after it; in the thread that publishes."""
        if self._following:
            self._marks[update.number] = self._index.follow(update)
        self._jobs.put(lambda: self._update(update))

    # ---- in the hub's thread ----

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._patience())
            except queue.Empty:
                job = self._begin_reads
            if job is None:
                self._snapshots.shutdown(wait=False)
                return
            try:
                job()
                if self._patience() == 0.0:
                    self._begin_reads()
            except Exception as error:
                log.failure(b"-", "(stream)", error)
                self._reset()
            del job  # it may refer to a watch

    def _reset(self) -> None:
        """End every stream after an internal error: clients reconnect and get a fresh snapshot."""
        for watch in self._watches.values():
            watch.close()
        self._last, self._following, self._since = None, False, None
        for remembered in (self._pending_reads, self._update_times, self._lost, self._removed_games):
            remembered.clear()
        for table in (self._prices, self._opportunities, self._watches, self._games, self._coming, self._making):
            table.clear()
        self._post(self.lines.end_all)

    def _patience(self) -> float | None:
        """How long to wait for a job before reading open opportunities."""
        due = [self._pauses.get(watch.payer, 0.0) for watch in self._watches.values() if watch.outdated]
        return max(0.0, max(self._read_at, min(due)) - time.monotonic()) if due else None

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed
            self._jobs.put(None)

    def _update(self, update: Update) -> None:
        marks = self._marks.pop(update.number, None)
        if self._last is None or update.number <= self._last.number:
            return
        for watch in self._watches.values():
            watch.on_update(update)
        batches: list[tuple[Group, int, list[bytes]]] = [
            (group, update.number, []) for group in self._opportunities.values() if group.watch.number == update.number
        ]
        moves = UpdateMoves(update, self._index, marks)
        self._last.note(update, marks)
        self._remember(moves)
        for group in self._prices.values():
            if (group.seen or not moves.empty) and (events := group.events(moves)):
                batches.append((group, update.number, events))
        self._deliver(batches)
        while self._pending_reads and self._pending_reads[0].number <= update.number:
            self._pending_reads.pop(0).settle()

    def _remember(self, moves: UpdateMoves) -> None:
        """Remember what resuming clients need, and drop what is too old."""
        now = time.monotonic()
        if moves.relabelled is not None and self._following:  # a replay cannot say which rows left a filter by it
            self._since = moves.number + 1
        self._update_times.append((now, moves.number))
        if any(rows.term.size for rows in moves.lost):
            self._lost.append((moves.number, moves.terms, moves.lost))
        if now - self._update_times[0][0] < REPLAY_S + 2 * _SLACK_S:
            return
        while self._update_times[0][0] < now - REPLAY_S - _SLACK_S:
            self._update_times.popleft()
        oldest = self._update_times[0][1]
        logs: tuple[deque[Any], ...] = (self._lost, self._removed_games)
        for each in logs:
            while each and each[0][0] < oldest:
                each.popleft()
        for group in [*self._opportunities.values()]:
            group.forget(oldest)
            if group.idle is not None and group.idle < now - REPLAY_S - _SLACK_S:
                self._close_opportunities(group)
        if self._prices or self._always:
            self._followed = now
        elif self._followed < now - REPLAY_S - _SLACK_S:
            self._following, self._since = False, None

    def _deliver(self, batches: list[tuple[Group, int, list[bytes]]]) -> None:
        assert self._last is not None
        self._post(self.lines.deliver, batches, self._last.number)

    def _begin_reads(self) -> None:
        """Have outdated opportunities read again."""
        now = time.monotonic()
        self._read_at = now + READ_EVERY_S
        self._pauses = {payer: until for payer, until in self._pauses.items() if until > now}
        due = [watch for watch in self._watches.values() if watch.outdated and watch.payer not in self._pauses]
        most = PART if len(due) > 1 or self._making else None  # alone, nobody waits for the end of a long read
        for watch in due:
            outdated = watch.begin_read(most)
            self._reads.put(watch.payer, lambda w=watch, s=outdated: self._read(w, s))  # type: ignore[misc]

    def _after_update(self, number: int, settle: Callable[[], None]) -> None:
        """Schedule a call for after an update and all before it have been processed."""
        if self._last is None:
            return
        if number <= self._last.number:
            settle()
        else:
            self._pending_reads.append(_PendingRead(number, settle))
            self._pending_reads.sort(key=lambda read: read.number)

    def _settle(self, watch: Watch, outdated: set[OpportunityId], found: ViewSnapshot, spent: float) -> None:
        """Publish new and expired opportunities."""
        self._pause(watch.payer, spent)
        changes = watch.settle(outdated, found)
        batches: list[tuple[Group, int, list[bytes]]] = [
            (group, watch.number, group.events(changes, self._last.number if self._last is not None else 0))
            for group in self._opportunities.values()
            if group.watch is watch
        ]
        if batches:
            self._deliver(batches)

    def _pause(self, payer: Hashable, spent: float) -> None:
        """Pause an account as long as its read took; where others wait too, three times as long, and pauses add up."""
        now = time.monotonic()
        if any(watch.payer != payer for watch in self._watches.values()):
            self._pauses[payer] = max(now, self._pauses.get(payer, 0.0)) + 3.0 * spent
        else:
            self._pauses[payer] = now + spent

    def _play(self, states: Mapping[str, Any], removed: tuple[str, ...]) -> None:
        self._states.update(states)
        for event in removed:
            self._states.pop(event, None)
            self._removed_games.append((self._last.number if self._last is not None else 0, event))
        batches: list[tuple[Group, int, list[bytes]]] = []
        for group in self._games.values():
            if events := group.events(states, removed):
                batches.append((group, 0, events))
        if batches:
            self._deliver(batches)

    def _request(self, subscriber: Subscriber, wants: Subscription, first: list[bytes] | None) -> None:
        """Process a subscription after the earlier ones of the same subscriber; `first` are the frames of a change."""
        subscriber.requests.append((wants, first))
        if len(subscriber.requests) == 1:
            self._advance(subscriber)

    def _advance(self, subscriber: Subscriber) -> None:
        """Process requests of a subscriber up to one that has to wait."""
        while subscriber.requests and not subscriber.gone:
            wants, first = subscriber.requests[0]
            self._begin_updates()
            if not self._follow(subscriber, wants):
                return
            subscriber.requests.popleft()
            before, subscriber.groups, subscriber.wants = subscriber.groups, [], wants
            if first is not None:
                self._post(self.lines.change, subscriber, first)
            self._join(subscriber, wants)
            self._leave(subscriber, before)  # after joining, so that shared groups are not recreated

    def _refuse(self, subscriber: Subscriber, reason: str) -> None:
        """Reject the subscription that is being processed; a subscriber without another one is closed."""
        _, first = subscriber.requests.popleft()
        if first is None:
            self._post(subscriber.refuse, TOO_MANY, reason)
        else:
            self._post(self.lines.send, subscriber.wire.error(TOO_MANY, reason), subscriber)
        self._advance(subscriber)

    def _join(self, subscriber: Subscriber, wants: Subscription) -> None:
        """Send a snapshot of a subscription, and from then on its changes."""
        groups = subscriber.groups
        prices: PriceGroup | None = None
        if wants.prices is not None:
            key = wants.prices, wants.form, wants.seen, wants.wire
            prices = self._prices.get(key)
            self._begin_following()
            if prices is None:
                prices = PriceGroup(wants.prices, wants.form, self._index, wants.wire, seen=wants.seen)
                self._prices[key] = prices
            groups.append(prices)
        if wants.opportunities is not None:
            groups.append(self._opportunities[wants.opportunities, wants.wire])
        if wants.games is not None:
            groups.append(self._games.setdefault((wants.games, wants.wire), GameGroup(wants.games, wants.wire)))
        for group in groups:
            group.members += 1
            if isinstance(group, OpportunityGroup):
                group.idle = None
                group.watch.enter(subscriber.account)
            number = group.watch.number if isinstance(group, OpportunityGroup) else 0
            self._post(self.lines.register, group, subscriber, number)
        if prices is None:
            taken = nothing(wants.wire, games=wants.opportunities is None, resumed=wants.since is not None)
            self._begin([(subscriber, wants)], taken)
            return
        if wants.since is not None:
            self._after_update(prices.number, lambda p=prices: self._resume(subscriber, wants, p))  # type: ignore[misc]
            return
        with self._coming_lock:
            known = self._coming.setdefault(prices, [])
            known.append((subscriber, wants))
        if len(known) == 1:
            self._snapshots.submit(self._take, prices, None)

    def _begin_updates(self) -> None:
        if self._last is None:
            engine = self._node.engine
            engine.keep_judged()
            with self._index.reader(judged=True) as reader:
                self._last = LastChanges(reader.number)
                self._update_times.append((time.monotonic(), reader.number))

    def _begin_following(self) -> None:
        """Remember price changes from now on."""
        self._begin_updates()
        if not self._following:
            self._following, self._followed = True, time.monotonic()
            self._since = self._node.engine.number  # earlier updates may have been missed in the writer

    def _resume(self, subscriber: Subscriber, wants: Subscription, prices: PriceGroup, until: float = 0.0) -> None:
        """Encode what a subscriber missed, while the board is not ahead of the updates processed here.

        Rows newer than the number given to the client would be followed by older ones. If streams stay behind the
        board, this never holds, so after five seconds it is done anyway.
        """
        if self._last is None or wants.since is None or subscriber.wants is not wants:
            return
        until = until or time.monotonic() + _REACH_S
        exact, number = time.monotonic() < until, self._node.engine.number
        if exact and number > self._last.number:
            self._after_update(number, lambda: self._resume(subscriber, wants, prices, until))
            return
        missed = MissedChanges(wants.since, self._last.number, self._last.by_slot.copy(), tuple(self._lost))

        def make() -> None:
            if not self._take(prices, [(subscriber, wants)], missed, exact=exact):
                self._jobs.put(lambda: self._resume(subscriber, wants, prices, until))

        self._snapshots.submit(make)

    def _follow(self, subscriber: Subscriber, wants: Subscription) -> bool:
        """Provide the group of opportunities; False if the subscriber has to wait for it, or may not have it."""
        if wants.opportunities is None or (wants.opportunities, wants.wire) in self._opportunities:
            return True
        view = wants.opportunities.view
        making, watch = self._making.get(view), self._watches.get(view)
        if making is not None:
            making.waiting.append(subscriber)
            return False
        if watch is None:
            account = subscriber.account
            reason = self._excess(subscriber, view)
            if reason:
                self._close_idle()
                reason = self._excess(subscriber, view)
            if reason:
                self._refuse(subscriber, reason)
            else:
                making = self._making[view] = _PendingWatch(view, account, self._only(subscriber))
                making.waiting.append(subscriber)
                self._reads.put(account, lambda: self._make(making))
            return False
        watch.members += 1
        group = self._opportunities[wants.opportunities, wants.wire] = OpportunityGroup(
            wants.opportunities, watch, wants.wire
        )
        if wants.wire.resumes and self._last is not None:
            group.since = self._last.number
        return True

    def _excess(self, subscriber: Subscriber, view: ViewKey) -> str:
        """The limit that would be exceeded if a subscriber had a view, empty if none.

        Watches that nobody needs after changes that are under way do not count.
        """
        account, only = subscriber.account, self._only(subscriber)
        replaced = {only, *(making.replaced for making in self._making.values())}
        owners = {key: watch.account for key, watch in self._watches.items() if watch not in replaced}
        owners |= {key: making.account for key, making in self._making.items()} | {view: account}
        if list(owners.values()).count(account) > SHARE:
            return f"limit of {SHARE} different sets of books per account reached; end other streams"
        if len(owners) > MOST_WATCHES:
            return f"limit of {MOST_WATCHES} different sets of books of all accounts reached; retry later"
        if self._rows_of(account, view, only) >= MOST_ROWS:
            return f"limit of {MOST_ROWS:,} opportunities in the streams of an account reached; end other streams"
        return ""

    @staticmethod
    def _only(subscriber: Subscriber) -> Watch | None:
        """The watch that nobody else needs."""
        for group in subscriber.groups:
            if isinstance(group, OpportunityGroup) and group.members == group.watch.members == 1:
                return group.watch
        return None

    def _register(self, making: _PendingWatch, watch: Watch) -> None:
        """Pass updates to a watch before it is read, so that none is missed."""
        if self._making.get(making.view) is making:
            self._watches[making.view] = watch
        else:
            watch.close()

    def _made(self, making: _PendingWatch, watch: Watch) -> None:
        """Admit the subscribers that waited for a watch, unless others still need the watch that it replaces."""
        if self._making.get(making.view) is not making:
            return
        watch.fill(making.snapshot)
        del self._making[making.view]
        refused: list[tuple[Subscriber, str]] = []
        for subscriber in making.waiting:
            if making.replaced is not None and (reason := self._excess(subscriber, making.view)):
                refused.append((subscriber, reason))
            else:
                self._advance(subscriber)
        self._close_unused(making)
        for subscriber, reason in refused:
            self._refuse(subscriber, reason)

    def _unmade(self, making: _PendingWatch) -> None:
        """Drop a watch that has no waiters or exceeds a limit of its account."""
        if self._making.get(making.view) is not making:
            return
        del self._making[making.view]
        self._close_unused(making)
        for subscriber in making.waiting:
            self._advance(subscriber)

    def _close_unused(self, making: _PendingWatch) -> None:
        if making.watch is not None and not making.watch.members:
            making.watch.close()
            self._watches.pop(making.view, None)

    def _leave(self, subscriber: Subscriber, groups: list[Group]) -> None:
        for group in groups:
            group.members -= 1
            if isinstance(group, OpportunityGroup):
                group.watch.exit(subscriber.account)
            if group.members:
                continue
            for table in (self._prices, self._games):
                _drop(table, group)
            if isinstance(group, OpportunityGroup):
                group.idle = time.monotonic()
                if group.since is None:
                    self._close_opportunities(group)

    def _close_opportunities(self, group: OpportunityGroup) -> None:
        _drop(self._opportunities, group)
        group.watch.members -= 1
        if not group.watch.members:
            group.watch.close()
            _drop(self._watches, group.watch)

    def _close_idle(self) -> None:
        """Close groups without subscribers, after the time in which clients may resume."""
        for group in [group for group in self._opportunities.values() if group.idle is not None]:
            self._close_opportunities(group)

    def _begin(self, subscribers: list[tuple[Subscriber, Subscription]], taken: BoardFrames) -> None:
        """Send new subscribers their snapshot: prices of one update, and other open items."""
        made: dict[Group, list[bytes]] = {}
        heard = self._last.number if self._last is not None else 0
        for subscriber, wants in subscribers:
            if subscriber.wants is not wants:
                continue
            frames: list[bytes] = []
            if wants.since is not None:
                made = {}
            for group in subscriber.groups:
                if group not in made:
                    made[group] = [] if isinstance(group, PriceGroup) else self._beginning(group, wants.since)
                frames += made[group]
            self._post(self.lines.admit, subscriber, taken, frames, wants.since or 0, heard)
            self._post(self._hold, subscriber, wants.hash)

    def _beginning(self, group: OpportunityGroup | GameGroup, since: int | None) -> list[bytes]:
        if isinstance(group, OpportunityGroup):
            return group.beginning() if since is None or group.since is None else group.replay(since)
        gone = [event for number, event in self._removed_games if since is not None and number >= since]
        return [
            *forgotten([event for event in gone if event not in self._states]),
            *group.beginning(self._states),
        ]

    # ---- read-only threads ----

    def _read_all(self) -> None:
        while (read := self._reads.next()) is not None:
            try:
                read()
            except Exception as error:
                log.failure(b"-", "(stream)", error)
                self._jobs.put(self._reset)
            del read  # it refers to a watch

    def _make(self, making: _PendingWatch) -> None:
        """Start watching a view, or read the next part of it."""
        watch, account = making.watch, making.account
        if making.abandoned or (
            watch is None and self._rows_of(account, making.view, making.replaced) >= MOST_ROWS  # held by now
        ):
            self._jobs.put(lambda: self._unmade(making))
            return
        if watch is None:
            node = self._node
            watch = making.watch = Watch(
                node.engine, node.method, *making.view, account=account, ended=node.ended, encodings=node.encodings
            )  # fmt: skip
            self._jobs.put(lambda: self._register(making, watch))
            making.snapshot = making.snapshot._replace(before=self._node.engine.number)
            making.unread = watch.ids()
        some, making.unread = making.unread[:PART], making.unread[PART:]
        part = watch.read_open(some)
        making.snapshot.open.update(part.open)
        making.snapshot = making.snapshot._replace(number=part.number)
        if making.unread:
            self._reads.put(account, lambda: self._make(making), first=True)
        else:
            self._jobs.put(lambda: self._after_update(part.number, lambda: self._made(making, watch)))

    def _rows_of(self, account: str, view: ViewKey, replaced: Watch | None) -> int:
        """Number of opportunities that the watches of an account hold, besides those of a view and of a watch."""
        watches = tuple(self._watches.items())
        return sum(
            len(watch.open)
            for key, watch in watches
            if watch.account == account and key != view and watch is not replaced
        )

    def _read(self, watch: Watch, outdated: set[OpportunityId]) -> None:
        began = time.monotonic()
        found = watch.read_open(outdated)
        spent = time.monotonic() - began
        self._jobs.put(lambda: self._after_update(found.number, lambda: self._settle(watch, outdated, found, spent)))

    def _take(
        self,
        prices: PriceGroup,
        resuming: list[tuple[Subscriber, Subscription]] | None,
        missed: MissedChanges | None = None,
        *,
        exact: bool = False,
    ) -> bool:
        """Make the snapshot for waiting subscribers, or one that resumes; False if the board has moved on."""
        with self._coming_lock:
            subscribers = self._coming.pop(prices, []) if resuming is None else resuming
        try:
            taken = prices.snapshot() if missed is None else prices.replay(missed, exact=exact)
        except Exception as error:
            log.failure(b"-", "(stream)", error)
            for subscriber, _ in subscribers:
                self._post(subscriber.end)
            return True
        if taken is None:
            return False
        # Not before its update was processed: an older number would let another gateway show older prices.
        self._jobs.put(lambda: self._after_update(taken.number, lambda: self._begin(subscribers, taken)))
        return True


def _plain(value: Any) -> Any:
    """A value of a filter with the same text in every process."""
    if isinstance(value, frozenset):
        return sorted(value)
    return True if callable(value) else value


def _drop(table: dict[Any, Any], value: Any) -> None:
    for key in [key for key, known in table.items() if known is value]:
        del table[key]
