"""Memory that nobody needs goes back to the system."""

import ctypes
import sys


def trim() -> None:
    """Return free memory of the C allocator, which otherwise keeps what was once in use; nothing where it cannot."""
    if sys.platform == "linux":
        release = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if release is not None:
            release(0)
