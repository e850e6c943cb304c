"""Memory of a process that serves one node: settings of the C allocator and of Python's garbage collector.

A node in somebody else's process leaves both alone.
"""

import ctypes
import gc
import sys

_ARENA_MAX = -8  # `M_ARENA_MAX` of mallopt(3)


def share_arenas() -> None:
    """Let all threads allocate from two arenas instead of eight per core, each of which retains free memory."""
    _call("mallopt", _ARENA_MAX, 2)


def trim() -> None:
    """Return free memory to the operating system."""
    _call("malloc_trim", 0)


def collect_rarely() -> None:
    """Make full garbage collections rare: each walks all texts of the board, 0.1 s for 100,000 prices."""
    gc.unfreeze()  # what an earlier node of this process has left
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _call(name: str, *args: int) -> None:
    """Call a function of the C library, if it has it."""
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*args)
