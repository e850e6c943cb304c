"""Tasks of Dask that play parts of a history side by side."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from oddsengine.backtesting.processes import Sent, Settings
from oddsengine.progress import Tick

R = TypeVar("R")


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
    import distributed  # noqa: PLC0415  not a dependency of the library

    settings = Settings.of_this_process()
    sent = [client.scatter(part.alone(), hash=False) for part in parts]
    futures = [client.submit(_task, play, part, settings, pure=False) for part in sent]
    number = {future.key: at for at, future in enumerate(futures)}
    results = dict[int, R]()
    try:
        for future in distributed.as_completed(futures):  # type: ignore[no-untyped-call]
            at = number[future.key]
            now, prices, results[at] = future.result()
            progress(at, now, prices)
    finally:
        client.cancel(futures)  # those that are done are no longer needed
    return [results[at] for at in range(len(parts))]


def _task(play: Callable[[Any, Tick], R], part: Any, settings: Settings) -> tuple[int, int, R]:
    settings.take()
    last = (0, 0)

    def tick(now: int, prices: int) -> None:
        nonlocal last
        last = (now, prices)

    found = play(part, tick)
    return *last, found
