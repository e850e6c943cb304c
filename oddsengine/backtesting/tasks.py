"""Tasks of Dask that play parts of a history side by side."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from oddsengine.backtesting.processes import Sent, Settings
from oddsengine.progress import Tick

R = TypeVar("R")
_AHEAD = 2  # parts that are sent, for each thread


def play_tasks(
    play: Callable[[Any, Tick], R], parts: Sequence[Sent], client: Any, progress: Callable[[int, int, int], None]
) -> list[R]:
    """Play each part in a task, and return the results in order.

    Parameters
    ----------
    play, parts
        As for `processes.play_parts`.
    client
        A `distributed.Client`.
    progress
        Called with the number of a part, and its last time and its prices, when it is done.

    Raises
    ------
    Exception
        What a task raises; the others are cancelled.
    """
    distributed: Any = import_module("distributed")  # not a dependency of the library

    settings = Settings.of_this_process()
    waiting, number, results = list(range(len(parts)))[::-1], dict[str, int](), dict[int, R]()
    running = distributed.as_completed([])

    def submit() -> None:
        at = waiting.pop()
        future = client.submit(_task, play, client.scatter(parts[at].alone(), hash=False), settings, pure=False)
        number[future.key] = at
        running.add(future)

    try:
        while waiting and len(number) < _AHEAD * sum(client.nthreads().values()):
            submit()
        for future in running:
            at = number[future.key]
            now, prices, results[at] = future.result()
            progress(at, now, prices)
            if waiting:
                submit()
    finally:
        client.cancel(list(running.futures))  # none, unless one has failed
    return [results[at] for at in range(len(parts))]


def _task(play: Callable[[Any, Tick], R], part: Any, settings: Settings) -> tuple[int, int, R]:
    settings.take()
    last = (0, 0)

    def tick(now: int, prices: int) -> None:
        nonlocal last
        last = (now, prices)

    found = play(part, tick)
    return *last, found
