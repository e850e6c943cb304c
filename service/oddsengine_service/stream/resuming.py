"""What clients that resume within two minutes need: the updates they missed, and who may resume."""

import asyncio
import threading
import time
from collections import Counter, deque

from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.query import Index, LastChanges, Marks, RowChanges, TermIndex
from oddsengine_service.stream.group_prices import MissedChanges
from oddsengine_service.stream.moves import UpdateMoves
from oddsengine_service.stream.stream_events import Wire
from oddsengine_service.stream.subscriber import Subscriber

REPLAY_S = 120.0  # period for which a client may resume
SLACK_S = 15.0  # margin, for a client that connects at the last moment
REACH_S = 5.0  # how long to wait until streams have reached the board, or another gateway

_ResumeKey = tuple[str, Wire, str]  # account, format and hash of a subscription whose snapshot was sent


class ResumeKeys:
    """Subscriptions that clients have, or had while they may resume them; in the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._counts: Counter[_ResumeKey] = Counter()

    def __contains__(self, key: _ResumeKey) -> bool:
        return key in self._counts

    def hold(self, subscriber: Subscriber, subscription: str) -> None:
        """Let clients resume a subscription whose snapshot was sent."""
        self.release(subscriber)
        if not subscriber.connection.gone:
            subscriber.resume_key = (subscriber.account, subscriber.wire, subscription)
            self._counts[subscriber.resume_key] += 1

    def release(self, subscriber: Subscriber) -> None:
        """Let clients resume the subscription that a subscriber had until now for a while."""
        held, subscriber.resume_key = subscriber.resume_key, None
        if held is not None:
            self._loop.call_later(REPLAY_S, self._forget, held)

    def _forget(self, held: _ResumeKey) -> None:
        self._counts[held] -= 1
        if not self._counts[held]:
            del self._counts[held]


class RecentUpdates:
    """The updates that streams have processed, and what of the last two minutes clients may have missed.

    The hub's thread adds to it. Under its lock, the event loop asks what can be sent to a client, and the thread that
    publishes adds the main lines after an update.
    """

    def __init__(self, engine: Engine, index: Index) -> None:
        self._engine, self._index = engine, index
        self._lock = threading.Lock()
        self._last: LastChanges | None = None  # once there is a subscriber
        self._times: deque[tuple[float, int]] = deque()
        self._lost: deque[tuple[int, TermIndex, list[RowChanges]]] = deque()
        self._marks: dict[int, Marks] = {}  # by number of the update
        # All price changes are remembered from this update on; while there are price subscribers, or clients that may
        # resume.
        self._since: int | None = None
        self._always = False  # clients of other gateways may resume
        self._followed = 0.0  # when there last were price subscribers

    # ---- any thread ----

    @property
    def number(self) -> int | None:
        """The latest update; None while no subscriber has come."""
        with self._lock:
            return self._last.number if self._last is not None else None

    def covers(self, number: int, *, prices: bool) -> bool:
        """Whether the changes since an update can be sent, those of prices too if they are needed."""
        with self._lock:
            if self._last is None:
                return False
            latest, earliest = self._last.number, time.monotonic() - REPLAY_S
            oldest = next((number for at, number in self._times if at >= earliest), latest)
            if prices and (self._since is None or number < self._since):
                return False
            return oldest <= number <= latest

    @staticmethod
    def deadline() -> float:
        """Until when to wait for an update that was made elsewhere; of `time.monotonic`."""
        return time.monotonic() + REACH_S

    def mark(self, update: Update) -> None:
        """Keep the main lines after an update until it is processed; in the thread that publishes."""
        with self._lock:
            if self._since is None:
                return
        marks = self._index.follow(update)
        with self._lock:
            self._marks[update.number] = marks

    # ---- the hub's thread ----

    def begin(self) -> None:
        """Process updates from now on."""
        if self._last is not None:
            return
        self._engine.keep_judged()
        with self._index.reader(judged=True) as reader, self._lock:
            self._last = LastChanges(reader.number)
            self._times.append((time.monotonic(), reader.number))

    def begin_prices(self, *, always: bool = False) -> None:
        """Remember price changes from now on; `always` without subscribers too."""
        self.begin()
        with self._lock:
            self._always |= always
            if self._since is None:
                self._followed = time.monotonic()
                self._since = self._engine.number  # earlier updates may have been missed in the writer

    def marks(self, number: int) -> Marks | None:
        """The main lines after an update, once."""
        with self._lock:
            return self._marks.pop(number, None)

    def add(self, moves: UpdateMoves, marks: Marks | None, *, prices: bool) -> int | None:
        """Add an update; `prices` while there are price subscribers.

        Returns the oldest that a client may resume from, if what is too old was dropped.
        """
        assert self._last is not None
        now = time.monotonic()
        with self._lock:
            self._last.note(moves.update, marks)
            if moves.relabelled is not None and self._since is not None:
                self._since = moves.number + 1  # a replay cannot say which rows left a filter by it
            self._times.append((now, moves.number))
            if any(rows.term.size for rows in moves.lost):
                self._lost.append((moves.number, moves.terms, moves.lost))
            if now - self._times[0][0] < REPLAY_S + 2 * SLACK_S:
                return None
            while self._times[0][0] < now - REPLAY_S - SLACK_S:
                self._times.popleft()
            oldest = self._times[0][1]
            while self._lost and self._lost[0][0] < oldest:
                self._lost.popleft()
            if prices or self._always:
                self._followed = now
            elif self._followed < now - REPLAY_S - SLACK_S:
                self._since = None
            return oldest

    def missed(self, since: int) -> MissedChanges:
        """Price changes since an update."""
        assert self._last is not None
        return MissedChanges(since, self._last.number, self._last.by_slot.copy(), tuple(self._lost))

    def reset(self) -> None:
        """Process no updates until there is a subscriber, and forget all."""
        with self._lock:
            self._last = self._since = None
            self._times.clear()
            self._lost.clear()
