"""Parts of a history, played side by side or one after the other.

Games do not depend on each other, only on time: a part has the games that start in a stretch of time, and its board
sees every snapshot of the history from its first quote until it is empty, so it shows what the board of all games
shows, to the last digit. Games that start one after the other are quoted at about the same time: so a part has few
snapshots in which only time passes. A tape is a part: each begins with an empty board.

**Memory.** A part of a table in files takes at most about `MOST` bytes, and each process holds one part, its board and
what was found in it. The process that cuts holds the list of games, the times of all snapshots and the results.
"""

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from oddsengine.backtesting.formats import Held, History, Stored
from oddsengine.backtesting.processes import check_processes, may_start, play_parts, unsent
from oddsengine.backtesting.replay import span
from oddsengine.backtesting.tasks import play_tasks
from oddsengine.columns import Longs
from oddsengine.progress import Played, Tick, playing, ticking
from oddsengine.tape import Tape

W = TypeVar("W", bound=NamedTuple)
R = TypeVar("R")
MOST = 180_000_000  # bytes of a part that is read from files
_ROW, _QUOTE = 350, 25  # bytes of a row, and of each time at which it was seen
_WORTH = 500_000  # quotes: fewer take less time than processes to start


class Part(NamedTuple):
    """Some games of a history."""

    table: Held | Stored
    events: list[str]
    starts: tuple[int, int] | None  # of these games: the first and last; None if it is unknown of a row
    moments: Longs  # the snapshots of the whole history, from the first of this part on
    books: list[str]  # all books of the history
    begins: Longs  # when its games start, in order
    share: float  # of the history's quotes

    def history(self) -> History:
        """These games alone, without their results."""
        held = self.table.only(self.events, self.starts, self.moments)
        return History(held.pieces(self.moments), _ends(self.moments), None, books=self.books)

    def alone(self) -> "Part":
        """The same without other games, for another process."""
        if isinstance(self.table, Stored):
            return self
        return self._replace(table=self.table.only(self.events))

    @property
    def ends(self) -> int:
        """Time of the last snapshot."""
        return int(self.moments[-1])

    @property
    def games(self) -> int:
        """How many games it has."""
        return self.begins.size

    def played(self, now: int) -> tuple[float, int]:
        """Fraction of the snapshots, and games that have begun, at a time."""
        upto = int(np.searchsorted(self.moments, now, side="right"))
        return upto / self.moments.size, int(np.searchsorted(self.begins, now, side="right"))


class Taped(NamedTuple):
    """A tape, which is not cut."""

    path: str
    since: int
    until: int
    share: float

    def history(self) -> Tape:
        """The tape."""
        return Tape(self.path)

    def alone(self) -> "Taped":
        """The same: a process reads it itself."""
        return self

    @property
    def ends(self) -> int:
        """Time of the last snapshot."""
        return self.until

    @property
    def games(self) -> int:
        """How many games it has, which are not counted."""
        return 0

    def played(self, now: int) -> tuple[float, int]:
        """Fraction and games that have been played at a time."""
        return (now - self.since) / max(self.until - self.since, 1), 0


class Plan(NamedTuple):
    """How histories are played."""

    processes: int
    parts: Sequence[Part | Taped]  # none: as a whole, in this process
    snapshots: int = 0  # of all histories, if there are parts
    client: Any = None  # of Dask, instead of processes


Play = Callable[[W, History | Tape, Tick], R]


def play(
    how: Play[W, R], wanted: W, histories: Sequence[History | Tape], plan: Plan, *,
    progress: bool | Callable[[int], None],
) -> list[R]:  # fmt: skip
    """Play histories whole or in parts, and return what each showed.

    Parameters
    ----------
    how
        A function of a module: it plays a history, and calls the last argument after each snapshot.
    wanted
        What it plays with.
    histories, plan
        The histories, and how they are played; see `planned`.
    progress
        True: a bar. A function: called with the number of snapshots, of parts with that of an average game.
    """
    parts, function = plan.parts, partial(_play_part, how, wanted)
    if not parts:
        found = []
        for history in histories:
            with ticking(span(history), progress=progress) as tick:
                found.append(how(wanted, history, tick))
        return found
    with playing(progress=progress) as show:
        so_far = _SoFar(plan, show)
        if plan.client is not None:
            return play_tasks(function, parts, plan.client, so_far.tick)
        if plan.processes > 1:
            return play_parts(function, parts, plan.processes, so_far.tick)
        # Copied as another process would send them: a few rows can hold the texts of a whole part.
        return [_copied(function(part, partial(so_far.tick, number))) for number, part in enumerate(parts)]


def _copied(found: R) -> R:
    return pickle.loads(pickle.dumps(found))  # type: ignore[no-any-return]


class _SoFar:
    """How far each part is."""

    def __init__(self, plan: Plan, show: Callable[[Played], None]) -> None:
        self._plan, self._show = plan, show
        self._played, self._prices = [(0.0, 0) for _ in plan.parts], [0 for _ in plan.parts]

    def tick(self, number: int, now: int, prices: int) -> None:
        parts = self._plan.parts
        self._played[number], self._prices[number] = parts[number].played(now), prices
        done = min(sum(part.share * of for part, (of, _) in zip(parts, self._played, strict=True)), 1.0)
        snapshots, games = round(done * self._plan.snapshots), sum(some for _, some in self._played)
        self._show(Played(done, snapshots, sum(self._prices), games, sum(part.games for part in parts)))


def _play_part(how: Play[W, R], wanted: W, part: Part | Taped, tick: Tick) -> R:
    prices = 0

    def counted(now: int, so_far: int) -> None:
        nonlocal prices
        prices = so_far
        tick(now, so_far)

    found = how(wanted, part.history(), counted)
    tick(part.ends, prices)  # its board may have been empty before
    return found


def planned(
    histories: Sequence[History | Tape], wanted: NamedTuple, processes: int | None, client: Any = None
) -> Plan:  # fmt: skip
    """How histories are played by so many processes, None being one per core where that is worth it.

    Raises
    ------
    ValueError
        If there is no history, `processes` is invalid, or more than 1 for a history that cannot be cut, or where
        processes cannot be started, or for something wanted that cannot be sent to another process.
    """
    if not histories:
        raise ValueError("there must be a history, got an empty list")
    count = check_processes(processes)
    if client is not None:
        if processes not in (None, 1):
            raise ValueError(f"with client, its workers play the history; processes must be None, got {processes}")
        why = _why_whole(histories) or _unsent(wanted)
        count = 1 if why else sum(client.nthreads().values())
        if not count:
            raise ValueError("the client of Dask has no workers")
    else:
        why = "" if count == 1 else _why_whole(histories) or may_start() or _unsent(wanted)
    if why and (client is not None or processes is not None):
        raise ValueError(f"{why}; {'client must be None' if client is not None else 'processes must be 1'}")
    if why:
        count = 1
    several, least = len(histories) > 1, 0 if processes is not None or client is not None else _WORTH
    plans = [_parts(each, 1 if several else count, least, whole=several or client is not None) for each in histories]
    quotes = sum(each for _, each, _ in plans)
    parts = [part._replace(share=part.share * each / max(quotes, 1)) for some, each, _ in plans for part in some]
    return Plan(count, parts, sum(snapshots for *_, snapshots in plans), client)


def _is_large(history: History | Tape) -> bool:
    """Whether it must be read in parts even by one process."""
    return isinstance(history, History) and isinstance(history.games, Stored) and not history.games.width


def _parts(
    history: History | Tape, count: int, least: int, *, whole: bool
) -> tuple[list[Part] | list[Taped], int, int]:  # fmt: skip
    """The parts of a history, and the numbers of its quotes and snapshots; no parts if it is played in one piece.

    That is so with fewer than `least` quotes; with `whole`, it is one part at least.
    """
    if isinstance(history, Tape):
        if not whole:
            return [], 0, 0
        return [Taped(os.fspath(history.path), *span(history), 1.0)], history.quotes, history.steps
    games, must = history.games, whole or _is_large(history)
    if games is None or (count == 1 and not must):
        return [], 0, 0
    listing = games.listing()
    quotes = int(listing["quotes"].sum())
    if quotes < least and not must:
        return [], 0, 0
    if isinstance(games, Stored):
        count = max(count, -(-(_ROW * int(listing["rows"].sum()) + _QUOTE * quotes) // MOST))
    parts = _cut(games, listing, count, quotes)
    if len(parts) == 1 and not must:
        return [], 0, 0
    return parts, quotes, max((part.moments.size for part in parts), default=0)


def _why_whole(histories: Sequence[History | Tape]) -> str:
    if len(histories) == 1 and isinstance(histories[0], Tape):
        return "a tape is played in one piece"
    tables = [each.games for each in histories if isinstance(each, History)]
    if any(each is None for each in tables):
        return "this history is played in one piece"
    queries = {f"{number}": each.query for number, each in enumerate(tables) if isinstance(each, Stored)}
    return "the query of the history cannot be sent to another process" if unsent(queries) else ""


def _unsent(wanted: NamedTuple) -> str:
    name = unsent(wanted._asdict())
    return f"{name} cannot be sent to another process" if name else ""


def sendable(some: Any) -> Any:
    """An argument as it can be sent to a process: iterators as lists, mappings as dicts; others as they are."""
    if isinstance(some, Mapping):
        return {**some}
    return list(some) if hasattr(some, "__iter__") and not isinstance(some, str) else some


def _cut(games: Held | Stored, listing: pl.DataFrame, count: int, quotes: int) -> list[Part]:
    """At most so many parts with about as many quotes each."""
    if not quotes:
        return []
    order = listing.with_columns(at=pl.coalesce("start", "first")).sort("at", "first", "event")
    upto = order["quotes"].cum_sum().to_numpy().astype(np.int64)
    order = order.with_columns(part=pl.Series((upto - 1) * count // quotes))
    moments, books = games.moments(), games.books()
    out = []
    for (_,), some in order.group_by("part", maintain_order=True):
        since = moments[np.searchsorted(moments, int(some["first"].min())) :]  # type: ignore[arg-type]
        begins = some["at"].to_numpy().astype(np.int64)
        starts = None if some["earliest"].null_count() else (some["earliest"].min(), some["start"].max())
        share = int(some["quotes"].sum()) / quotes
        out.append(Part(games, some["event"].to_list(), starts, since, books, begins, share))  # type: ignore[arg-type]
    return out


def _ends(moments: Longs) -> tuple[int, int]:
    return int(moments[0]), int(moments[-1])
