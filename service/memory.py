"""Returns free memory to the operating system."""

import ctypes
import sys


def trim() -> None:
    """Release free memory of the C allocator, which otherwise retains it; no effect without `malloc_trim`."""
    if sys.platform == "linux":
        release = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if release is not None:
            release(0)
