"""Settings of the C allocator: how much free memory it retains."""

import ctypes
import sys

_ARENA_MAX = -8  # `M_ARENA_MAX` of mallopt(3)


def share_arenas() -> None:
    """Let all threads allocate from two arenas instead of eight per core, each of which retains free memory."""
    _call("mallopt", _ARENA_MAX, 2)


def trim() -> None:
    """Return free memory to the operating system."""
    _call("malloc_trim", 0)


def _call(name: str, *args: int) -> None:
    """Call a function of the C library, if it has it."""
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*args)
