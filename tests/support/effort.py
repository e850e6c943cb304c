"""How much the tests do: `make test` a part of what is exhaustive, `make test-all` all of it."""

import os
import time
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

ALL = os.environ.get("TESTS") == "all"


def some(values: Iterable[T], most: int) -> list[T]:
    """Values spread over all of them, at most so many; all in `make test-all`."""
    every = list(values)
    if ALL or len(every) <= most:
        return every
    return [every[round(at * (len(every) - 1) / max(most - 1, 1))] for at in range(most)]


def less(number: int, instead: int) -> int:
    """How long or how often: the number in `make test-all`, else what stands instead."""
    return number if ALL else instead


def pause(look: float, least: float) -> float:
    """Seconds until the next look at a condition, given when the last one began, so that waiting is not all looking."""
    return max(least, min(4.0 * (time.monotonic() - look), 0.2))
