"""The hub: updates in, bytes out, and who gets which.

One thread hears every update in order, keeps what is shown, and makes each group's events once. It posts them to the
event loop, where subscribers are; whatever happens to a group happens in the order in which that thread posts it. A
beginning is made in another thread: meanwhile a newcomer keeps what its group gets, and of that it is sent what came
after the beginning's update. So nothing is missed and nothing comes twice.
"""

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from oddsengine.board.rows import BOOK_BITS
from oddsengine.update import Update
from service import filters
from service.board import Filter, Index
from service.log import Log
from service.node import Node
from service.stream.finds import Asked, Finds, Watch
from service.stream.moves import Mirror, Moves
from service.stream.prices import Prices, Taken, nothing
from service.stream.sse import RETRY, Failure, GamesRemoved, Heartbeat, clock, frame, numbered
from service.stream.subscriber import LIMIT, Subscriber

HEARTBEAT_S = 30.0
PARTS = 30  # of the subscribers, that get their heartbeats one after the other
CHECK_S = 0.5  # between two looks at keys, stalled readers and failures
PAUSE_S = 0.02  # between two rounds of writing, at least; what comes meanwhile is joined
MOST_WATCHES = 64  # sets of books and thresholds whose opportunities are followed
LEAST_LOOK_S = 0.05  # between two looks at what is open; longer where a look is slow
UPSTREAM = "upstream_error"


class Wants(NamedTuple):
    """What a subscriber gets: prices, opportunities, games; None is not wanted."""

    prices: Filter | None
    finds: Asked | None
    games: Filter | None
    state: str


class Games:
    """Games of a filter."""

    def __init__(self, wanted: Filter) -> None:
        self.wanted = wanted
        self.members = 0
        self._shown: set[str] = set()

    def fits(self, event: str, state: Mapping[str, Any]) -> bool:
        """Whether a game is of this group."""
        w, sport, league = self.wanted, state.get("sport") or "", state.get("league") or ""
        return (
            (w.event is None or event in w.event)
            and (w.sport is None or filters.in_sports(w.sport, [sport])[0])
            and (w.league is None or filters.in_leagues(w.league, [(sport, league)])[0])
        )

    def frames(self, states: Mapping[str, Any], removed: Iterable[str]) -> list[bytes]:
        """What changes mean here."""
        mine = {event: state for event, state in states.items() if self.fits(event, state)}
        self._shown.update(mine)
        lost = [event for event in removed if event in self._shown]
        self._shown.difference_update(lost)
        out = [frame("gamestate:update", mine)] if mine else []
        return out + ([frame("gamestate:removed", GamesRemoved(lost))] if lost else [])

    def beginning(self, states: Mapping[str, Any]) -> list[bytes]:
        """How games stand."""
        mine = {event: state for event, state in states.items() if self.fits(event, state)}
        self._shown.update(mine)
        return [frame("gamestate:snapshot", mine)]


Group = Prices | Finds | Games


class _Members:
    """A group as the event loop has it."""

    __slots__ = ("prices", "subscribers")

    def __init__(self, *, prices: bool) -> None:
        self.prices = prices  # their events are kept for those who are still waiting
        self.subscribers: dict[Subscriber, None] = {}


class Stream:
    """All streams of a node; made in the event loop that serves them."""

    def __init__(
        self, node: Node, index: Index, log: Log, *, heartbeat: float = HEARTBEAT_S, limit: int = LIMIT
    ) -> None:
        self._node, self._index, self._log = node, index, log
        self._heartbeat, self._limit = heartbeat, limit
        self._loop = asyncio.get_running_loop()
        self._sequence, self._turns = itertools.count(1), itertools.count()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._beginnings: queue.SimpleQueue[Prices | None] = queue.SimpleQueue()
        # Of the event loop
        self._subscribers: dict[Subscriber, None] = {}
        self._groups: dict[Group, _Members] = {}
        self._due: list[Subscriber] = []
        self._flushing, self._flush_at = False, 0.0
        self._failures: frozenset[str] = frozenset()
        self._turn = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.closed = False
        # Of the hub's thread
        self._mirror: Mirror | None = None
        self._prices: dict[Hashable, Prices] = {}
        self._finds: dict[Asked, Finds] = {}
        self._watches: dict[Hashable, Watch] = {}
        self._games: dict[Filter, Games] = {}
        self._states: dict[str, Any] = {}
        self._coming: dict[Prices, list[Subscriber]] = {}
        self._coming_lock = threading.Lock()
        self._look_at = 0.0
        # Counts
        self.events = self.sent = self.cuts = 0

        self._forget = node.bus.listen(self._heard)
        for work in (self._run, self._begin_all):
            threading.Thread(target=work, name="stream", daemon=True).start()
        self._tick()
        self._beat()

    # ---- in the event loop: who listens ----

    def subscriber(self, send: Any, account: str, key: str, check: Callable[[], bool], connected: bytes) -> Subscriber:
        """Somebody new, who gets `connected` at once and all else after `join`."""
        made = Subscriber(send, account, key, check, self._cut, self._limit)
        made.turn = next(self._turns)
        self._subscribers[made] = None
        made.begin([RETRY, *numbered([connected], self._sequence)])
        made.flush()
        return made

    def join(self, subscriber: Subscriber, wants: Wants) -> None:
        """Send the beginning of what is wanted, and from then on all of it."""
        self._jobs.put(lambda: self._join(subscriber, wants))

    def leave(self, subscriber: Subscriber) -> None:
        """Forget somebody; at once."""
        subscriber.gone = True
        subscriber.drop()
        del self._subscribers[subscriber]
        for members in self._groups.values():
            members.subscribers.pop(subscriber, None)
        self._jobs.put(lambda: self._leave(subscriber))

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._subscribers)

    def games(self, states: Mapping[str, Any], removed: Iterable[str] = ()) -> None:
        """Tell how games stand, by event; from any thread."""
        self._jobs.put(lambda: self._play(dict(states), tuple(removed)))

    async def close(self, within: float = 5.0) -> None:
        """End every stream cleanly."""
        self.closed = True
        self._forget()
        for timer in self._timers.values():
            timer.cancel()
        for subscriber in tuple(self._subscribers):
            subscriber.end()
        until = time.monotonic() + within
        while self._subscribers and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for subscriber in tuple(self._subscribers):
            subscriber.cut("the server stops")
        self._jobs.put(None)
        self._beginnings.put(None)

    # ---- in the event loop: what goes out ----

    def _deliver(self, batches: list[tuple[Group, int, list[bytes]]]) -> None:
        for group, number, frames in batches:
            members = self._groups.get(group)
            if members is None or not members.subscribers:
                continue
            joined = b"".join(numbered(frames, self._sequence))
            count = 0
            for subscriber in members.subscribers:
                if subscriber.waiting is None:
                    subscriber.take(joined)
                    self._due.append(subscriber)
                    count += 1
                elif members.prices:
                    subscriber.waiting.append((number, frames))
            self.events += count * len(frames)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing and self._due:
            self._flushing = True
            wait = self._flush_at - self._loop.time()
            if wait > 0.0:
                self._loop.call_later(wait, self._flush)
            else:
                self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what waits; then let as much time pass as that took, so that more is joined and others run too."""
        began = time.perf_counter()
        self._flushing = False
        due, self._due = self._due, []
        for subscriber in due:
            if subscriber.size:
                subscriber.flush()
        spent = time.perf_counter() - began
        self._flush_at = self._loop.time() + spent + max(PAUSE_S, spent)

    def _register(self, group: Group, subscriber: Subscriber) -> None:
        if subscriber in self._subscribers:
            members = self._groups.get(group)
            if members is None:
                members = self._groups[group] = _Members(prices=isinstance(group, Prices))
            members.subscribers[subscriber] = None

    def _admit(self, subscriber: Subscriber, taken: Taken, frames: list[bytes]) -> None:
        if subscriber.gone or subscriber.waiting is None:
            return
        later = [body for number, bodies in subscriber.waiting if number > taken.number for body in bodies]
        subscriber.waiting = None
        every = [*taken.frames[:-1], *frames, taken.frames[-1], *later]
        subscriber.begin(numbered(every, self._sequence))
        self.events += len(every)
        subscriber.flush()

    def _close(self, group: Group) -> None:
        self._groups.pop(group, None)

    def _refuse(self, subscriber: Subscriber) -> None:
        message = f"{MOST_WATCHES} sets of books are followed already; ask for a usual one, or later"
        subscriber.take(frame("error", Failure(UPSTREAM, message)))
        subscriber.end()

    def _tell_all(self, told: bytes, some: Iterable[Subscriber]) -> None:
        for subscriber in some:
            subscriber.take(told)
            self._due.append(subscriber)
        self._flush_soon()

    # ---- in the event loop: what time does ----

    def _beat(self) -> None:
        """Send heartbeats, to a part of the subscribers at a time."""
        parts = PARTS if self._heartbeat >= 3.0 else 1
        self._turn = (self._turn + 1) % parts
        told = frame("heartbeat", Heartbeat(clock()))
        self._tell_all(told, [s for s in self._subscribers if s.turn % parts == self._turn and s.waiting is None])
        if not self.closed:
            self._timers["beat"] = self._loop.call_later(self._heartbeat / parts, self._beat)

    def _tick(self) -> None:
        """Look after keys, readers and sources."""
        if self.closed:
            return
        self._timers["tick"] = self._loop.call_later(CHECK_S, self._tick)
        now = time.monotonic()
        valid: dict[str, bool] = {}
        for subscriber in tuple(self._subscribers):
            if subscriber.key not in valid:
                valid[subscriber.key] = _holds(subscriber.check)
            if not valid[subscriber.key]:
                subscriber.end()
            if subscriber.overdue(now):
                subscriber.cut("it reads nothing")
        failures = frozenset(self._failing())
        for name in sorted(failures - self._failures):
            message = f"the source {name} does not answer; its prices age out until it does"
            self._tell_all(frame("error", Failure(UPSTREAM, message)), tuple(self._subscribers))
        self._failures = failures

    def _failing(self) -> Iterable[str]:
        yield from self._node.failures
        feeds = self._node.parts.get("hub")
        for source in feeds.statuses() if feeds is not None else ():
            if source.status == "down":
                yield source.name

    def _cut(self, subscriber: Subscriber, reason: str) -> None:
        self.cuts += 1
        self._log.say(
            "stream cut off", account=subscriber.account, key=subscriber.key, reason=reason, waiting=subscriber.size
        )

    def _heard(self, update: Update) -> None:
        self._jobs.put(lambda: self._update(update))

    # ---- in the hub's thread ----

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._patience())
            except queue.Empty:
                job = self._look
            if job is None:
                return
            try:
                job()
                if any(watch.stirred for watch in self._watches.values()) and time.monotonic() >= self._look_at:
                    self._look()
            except Exception as error:
                self._log.failure(b"-", "(stream)", error)
                self._begin_anew()

    def _begin_anew(self) -> None:
        """End every stream after a failure of ours: clients come back to a fresh snapshot."""
        for watch in self._watches.values():
            watch.close()
        self._mirror = None
        for table in (self._prices, self._finds, self._watches, self._games, self._coming):
            table.clear()
        self._post(self._end_all)

    def _patience(self) -> float | None:
        """How long to wait for a job before looking at what is open."""
        if not any(watch.stirred for watch in self._watches.values()):
            return None
        return max(0.0, self._look_at - time.monotonic())

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop has ended
            self._jobs.put(None)

    def _end_all(self) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber.end()

    def _update(self, update: Update) -> None:
        if self._mirror is None or update.number <= self._mirror.number:
            return
        if self._watches:
            events = _touched(update)
            for watch in self._watches.values():
                watch.hear(update.views, events)
        moves = Moves(update, self._mirror, self._index)
        if moves.empty:
            return
        batches: list[tuple[Group, int, list[bytes]]] = []
        for group in self._prices.values():
            frames = group.frames(moves)
            if frames:
                batches.append((group, moves.number, frames))
        if batches:
            self._post(self._deliver, batches)

    def _look(self) -> None:
        """Tell what opened and expired."""
        began = time.monotonic()
        batches: list[tuple[Group, int, list[bytes]]] = []
        for watch in self._watches.values():
            if not watch.stirred:
                continue
            looked = watch.look()
            for group in self._finds.values() if looked else ():
                if group.watch is watch and (frames := group.frames(looked)):
                    batches.append((group, 0, frames))
        now = time.monotonic()
        self._look_at = now + max(LEAST_LOOK_S, 3.0 * (now - began))
        if batches:
            self._post(self._deliver, batches)

    def _play(self, states: Mapping[str, Any], removed: tuple[str, ...]) -> None:
        self._states.update(states)
        for event in removed:
            self._states.pop(event, None)
        batches: list[tuple[Group, int, list[bytes]]] = []
        for group in self._games.values():
            if frames := group.frames(states, removed):
                batches.append((group, 0, frames))
        if batches:
            self._post(self._deliver, batches)

    def _join(self, subscriber: Subscriber, wants: Wants) -> None:
        engine = self._node.engine
        if self._mirror is None:
            with self._index.reading() as reading:
                self._mirror = Mirror(reading.board, engine.number)
        if wants.finds is not None and wants.finds not in self._finds and not self._follow(wants.finds):
            self._post(self._refuse, subscriber)
            return
        subscriber.wants, groups = wants, subscriber.groups
        prices: Prices | None = None
        if wants.prices is not None:
            key = wants.prices, wants.state
            prices = self._prices.get(key)
            if prices is None:
                prices = self._prices[key] = Prices(wants.prices, wants.state, self._index, engine)
            groups.append(prices)
        if wants.finds is not None:
            groups.append(self._finds[wants.finds])
        if wants.games is not None:
            groups.append(self._games.setdefault(wants.games, Games(wants.games)))
        for group in groups:
            group.members += 1
            self._post(self._register, group, subscriber)
        if prices is None:
            self._begin([subscriber], nothing(games=wants.finds is None))
            return
        with self._coming_lock:
            known = self._coming.setdefault(prices, [])
            known.append(subscriber)
        if len(known) == 1:
            self._beginnings.put(prices)

    def _follow(self, asked: Asked) -> bool:
        """Make a group; False if its books would be one set too many."""
        watch = self._watches.get(asked.view)
        if watch is None:
            if len(self._watches) >= MOST_WATCHES:
                return False
            watch = self._watches[asked.view] = Watch(self._node.engine, *asked.view)
        watch.members += 1
        self._finds[asked] = Finds(asked, watch)
        return True

    def _leave(self, subscriber: Subscriber) -> None:
        for group in subscriber.groups:
            group.members -= 1
            if group.members:
                continue
            self._post(self._close, group)
            for table in (self._prices, self._finds, self._games):
                _drop(table, group)
            if isinstance(group, Finds):
                group.watch.members -= 1
                if not group.watch.members:
                    group.watch.close()
                    _drop(self._watches, group.watch)

    def _begin(self, subscribers: list[Subscriber], taken: Taken) -> None:
        """Send newcomers their beginning: prices of one update, and what else is open now."""
        made: dict[Group, list[bytes]] = {}
        for subscriber in subscribers:
            frames: list[bytes] = []
            for group in subscriber.groups:
                if group not in made:
                    made[group] = [] if isinstance(group, Prices) else self._beginning(group)
                frames += made[group]
            self._post(self._admit, subscriber, taken, frames)

    def _beginning(self, group: Finds | Games) -> list[bytes]:
        return group.beginning(self._states) if isinstance(group, Games) else group.beginning()

    # ---- in the thread of beginnings ----

    def _begin_all(self) -> None:
        while (prices := self._beginnings.get()) is not None:
            with self._coming_lock:
                subscribers = self._coming.pop(prices, [])
            try:
                taken = prices.take()
            except Exception as error:
                self._log.failure(b"-", "(stream)", error)
                for subscriber in subscribers:
                    self._post(subscriber.end)
                continue
            self._jobs.put(lambda some=subscribers, t=taken: self._begin(some, t))  # type: ignore[misc]


def _touched(update: Update) -> set[str]:
    """Events of the prices that changed or left."""
    facts = update.facts
    terms = np.concatenate((facts.key[update.rows], update.gone.key)) >> BOOK_BITS
    return {facts.wordings[term][0] for term in np.unique(terms).tolist()}


def _drop(table: dict[Any, Any], value: Any) -> None:
    for key in [key for key, known in table.items() if known is value]:
        del table[key]


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:
        return False


class StreamMetrics(Collector):
    """Streams, counted when somebody looks."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def collect(self) -> Iterable[Metric]:
        """Every figure."""
        stream = self._stream
        yield GaugeMetricFamily("oddsengine_streams", "Streams that are open", stream.streams)
        yield CounterMetricFamily("oddsengine_stream_events", "Events sent on streams", stream.events)
        yield CounterMetricFamily(
            "oddsengine_stream_cuts", "Streams cut off because their reader was slow", stream.cuts
        )


__all__ = ["HEARTBEAT_S", "Stream", "StreamMetrics", "Wants"]
