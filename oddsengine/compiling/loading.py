"""Load kernels ahead of time, so that no request or measurement includes loading or compilation."""

import gc
from collections.abc import Callable

from oddsengine import _jit
from oddsengine._compilers import REST, SCAN, listed, signature_of
from oddsengine._installation import interpreted

_done: list[bool] = []  # set once this process has all kernels


def load_kernels(report: Callable[[str], None] | None = None) -> None:
    """Load the kernels that Python calls; compile those that are neither prebuilt nor cached.

    Parameters
    ----------
    report
        Called with messages when compilation starts, while it goes on, when it ends, and if its result cannot be
        cached; None prints them to standard error.

    Examples
    --------
    In a process that answers requests, before the first of them:

    >>> load_kernels()
    """
    _jit.REPORTER.send = report
    if _done or interpreted():
        return
    collects = gc.isenabled()
    gc.disable()  # compilation creates many objects and little garbage
    _jit.REPORTER.begin()
    _jit.wanted[:] = SCAN, REST
    try:
        for each in listed(SCAN, REST):
            load(each.kernel, each.signature)
    finally:
        _jit.wanted.clear()
        _jit.REPORTER.end()
        if collects:
            gc.enable()
    _done.append(True)
    _jit.REPORTER.say()


def load(kernel: str, signature: str) -> None:
    """Load the machine code of a kernel of the list, or compile it."""
    _jit.dispatcher_named(kernel).compile(signature_of(signature))
