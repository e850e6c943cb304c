"""Parts of a history, played side by side or one after the other.

Games do not depend on each other, only on time: a part has the games that start in a stretch of time, and its board
sees every snapshot of the history from its first quote until it is empty, so it shows what the board of all games
shows, to the last digit. Games that start one after the other are quoted at about the same time: so a part has few
snapshots in which only time passes.

**Memory.** A part of a table in files has at most about `MOST` rows, and each process holds one part, its board and
what was found in it. The process that cuts holds the list of games, the times of all snapshots and the results.
"""

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
MOST = 400_000  # rows of a part that is read from files
_WORTH = 500_000  # rows: fewer take less time than processes to start


class Part(NamedTuple):
    """Some games of a history."""

    games: Held | Stored
    events: list[str]
    starts: tuple[int, int] | None  # of these games: the first and last; None if it is unknown of one
    moments: Longs  # the snapshots of the whole history, from the first of this part on
    books: list[str]  # all books of the history
    begins: Longs  # when its games start, in order
    share: float  # of the history's rows

    def history(self) -> History:
        """These games alone, without their results."""
        held = self.games.only(self.events, self.starts, self.moments)
        return History(held.pieces(self.moments), _ends(self.moments), None, books=self.books)

    def alone(self) -> "Part":
        """The same without other games, for another process."""
        if isinstance(self.games, Stored):
            return self
        return self._replace(games=self.games.only(self.events))


class Plan(NamedTuple):
    """How a history is played."""

    processes: int
    parts: list[Part]  # none: as a whole, in this process
    client: Any = None  # of Dask, instead of processes


Play = Callable[[W, History | Tape, Tick], R]


def play(
    how: Play[W, R], wanted: W, history: History | Tape, plan: Plan, *, progress: bool | Callable[[int], None]
) -> list[R]:  # fmt: skip
    """Play a history whole or in parts, and return what each showed.

    Parameters
    ----------
    how
        A function of a module: it plays a history, and calls the last argument after each snapshot.
    wanted
        What it plays with.
    history, plan
        The history, and how it is played; see `planned`.
    progress
        True: a bar. A function: called with the number of snapshots, of parts with that of an average game.
    """
    parts, function = plan.parts, partial(_play_part, how, wanted)
    if not parts:
        with ticking(span(history), progress=progress) as tick:
            return [how(wanted, history, tick)]
    with playing(progress=progress) as show:
        so_far = _SoFar(parts, show)
        if plan.client is not None:
            return play_tasks(function, parts, plan.client, so_far.tick)
        if plan.processes > 1:
            return play_parts(function, parts, plan.processes, so_far.tick)
        return [function(part, partial(so_far.tick, number)) for number, part in enumerate(parts)]


class _SoFar:
    """How far each part is."""

    def __init__(self, parts: Sequence[Part], show: Callable[[Played], None]) -> None:
        self._parts, self._show = parts, show
        self._done, self._prices, self._games = [0.0] * len(parts), [0] * len(parts), [0] * len(parts)
        self._snapshots = max(part.moments.size for part in parts)

    def tick(self, number: int, now: int, prices: int) -> None:
        part = self._parts[number]
        upto = int(np.searchsorted(part.moments, now, side="right"))
        self._done[number], self._prices[number] = part.share * upto / part.moments.size, prices
        self._games[number] = int(np.searchsorted(part.begins, now, side="right"))
        done = min(sum(self._done), 1.0)
        games = sum(each.begins.size for each in self._parts)
        self._show(Played(done, round(done * self._snapshots), sum(self._prices), sum(self._games), games))


def _play_part(how: Play[W, R], wanted: W, part: Part, tick: Tick) -> R:
    prices = 0

    def counted(now: int, so_far: int) -> None:
        nonlocal prices
        prices = so_far
        tick(now, so_far)

    found = how(wanted, part.history(), counted)
    tick(int(part.moments[-1]), prices)  # its board was empty before
    return found


def planned(history: History | Tape, wanted: NamedTuple, processes: int | None, client: Any = None) -> Plan:
    """How a history is played by so many processes, None being one per core where that is worth it.

    Raises
    ------
    ValueError
        If `processes` is invalid, or more than 1 for a history that cannot be cut, or where processes cannot be
        started, or for something wanted that cannot be sent to another process.
    """
    count = check_processes(processes)
    if client is not None:
        if processes not in (None, 1):
            raise ValueError(f"with client, its workers play the history; processes must be None, got {processes}")
        why = _why_whole(history) or _unsent(wanted)
        count = 1 if why else sum(client.nthreads().values())
    else:
        why = "" if count == 1 else _why_whole(history) or may_start() or _unsent(wanted)
    if why and (client is not None or processes is not None):
        raise ValueError(f"{why}; {'client must be None' if client is not None else 'processes must be 1'}")
    if why:
        count = 1
    games = None if isinstance(history, Tape) else history.games
    in_memory = isinstance(games, Held)
    if games is None or (count == 1 and not (isinstance(games, Stored) and not games.width)):
        return Plan(1, [])
    listing = games.listing()
    rows = int(listing["quotes"].sum())
    if processes is None and client is None and rows < _WORTH:
        return Plan(1, [])
    parts = _cut(games, listing, count if in_memory else max(count, -(-rows // MOST)), rows)
    return Plan(count, parts if len(parts) > 1 or not in_memory else [], client)


def _why_whole(history: History | Tape) -> str:
    if isinstance(history, Tape):
        return "a tape is played in one piece"
    return "" if history.games is not None else "this history is played in one piece"


def _unsent(wanted: NamedTuple) -> str:
    name = unsent(wanted._asdict())
    return f"{name} cannot be sent to another process" if name else ""


def sendable(some: Any) -> Any:
    """An argument as it can be sent to a process: iterators as lists, mappings as dicts; others as they are."""
    if isinstance(some, Mapping):
        return {**some}
    return list(some) if hasattr(some, "__iter__") and not isinstance(some, str) else some


def _cut(games: Held | Stored, listing: pl.DataFrame, count: int, rows: int) -> list[Part]:
    """At most so many parts with about as many rows each."""
    if not rows:
        return []
    order = listing.with_columns(at=pl.coalesce("start", "first")).sort("at", "first", "event")
    upto = order["quotes"].cum_sum().to_numpy().astype(np.int64)
    order = order.with_columns(part=pl.Series((upto - 1) * count // rows))
    moments, books = games.moments(), games.books()
    out = []
    for (_,), some in order.group_by("part", maintain_order=True):
        since = moments[np.searchsorted(moments, int(some["first"].min())) :]  # type: ignore[arg-type]
        start = some["start"]
        begins = some["at"].to_numpy().astype(np.int64)
        starts = None if start.null_count() else (start.min(), start.max())
        share = int(some["quotes"].sum()) / rows
        out.append(Part(games, some["event"].to_list(), starts, since, books, begins, share))  # type: ignore[arg-type]
    return out


def _ends(moments: Longs) -> tuple[int, int]:
    return int(moments[0]), int(moments[-1])
