"""How much the tests do, by the variable TESTS.

- `quick`, of `make test`: all but what is marked `slow`, by the record of times, or `exhaustive`
- `rest`, of `make test-slow`: what `quick` has left out or skipped, but nothing exhaustive
- `most`, unless another is named: everything but what is exhaustive
- `all`, of `make test-all`: everything, longer and with more examples
"""

import os
import time
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

LEVELS = ("quick", "rest", "most", "all")
LEVEL = os.environ.get("TESTS") or "most"
if LEVEL not in LEVELS:
    raise ValueError(f"TESTS must be one of {', '.join(LEVELS)}, got {LEVEL!r}")
ALL = LEVEL == "all"


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
