"""The one way a function becomes a compiled kernel.

Importing this module loads no compiler. A kernel is compiled when it is first called, and the machine
code is kept on disk (`_cache`), so that only the first run on a machine pays for it.

Kernels call each other by their module names. numba has to see its own dispatcher objects there, so the
first call of a kernel replaces, in that module, each name the kernel refers to.

Options, the same for every kernel: the GIL released; numpy's error model, because Python's (an
exception on a division by zero) keeps the compiler from vectorising. `fused` also lets a multiplication and
an addition become one instruction, and `inlined` puts a body where it is called. None permits reassociation
or assumes that there is no NaN: NaN means "no answer" here.
"""

import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from oddsengine._cache import Folders, KernelCache

F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.RLock()
_COMPILING = "compiling kernels, once per machine (about half a minute) ..."


class _Kernel:
    """A function that turns into a numba dispatcher when it is first called."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str], inline: str = "never") -> None:
        self._function = function
        self._fastmath = fastmath
        self._inline = inline
        self.options = " ".join([*sorted(fastmath), *(["inline"] if inline == "always" else [])])
        self._dispatcher: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *args: Any) -> Any:
        compiled = self._dispatcher
        return self.dispatcher()(*args) if compiled is None else compiled(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """The numba dispatcher; made on the first call, with those of the kernels it refers to."""
        with _lock:
            if self._dispatcher is None:
                numba = _numba()
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    used = names.get(name)
                    if isinstance(used, _Kernel) and used is not self:
                        names[name] = used.dispatcher()
                compiler = numba.njit(
                    nogil=True, error_model="numpy", fastmath=self._fastmath, inline=self._inline, no_cfunc_wrapper=True
                )
                made = compiler(self._function)
                if made is not self._function:  # numba compiles: NUMBA_DISABLE_JIT is not set
                    made._cache = KernelCache(self._function, self.options, _folders())
                    made.options = self.options
                else:  # wrapping around and dividing by zero say nothing there either
                    made = np.errstate(all="ignore")(self._function)
                self._dispatcher = cast(Callable[..., Any], made)
            return self._dispatcher


def kernel(function: F) -> F:
    """Compile `function` on its first call."""
    return cast(F, _Kernel(function, fastmath=set()))


def fused(function: F) -> F:
    """Compile `function` on its first call, multiply-add fused into one rounding."""
    return cast(F, _Kernel(function, fastmath={"contract"}))


def inlined(function: F) -> F:
    """Compile `function` into each kernel that calls it: handing many arrays on costs more than a small body."""
    return cast(F, _Kernel(function, fastmath=set(), inline="always"))


class Reporter:
    """Says what the compiler does: on standard error, unless somebody else is to be told."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] | None = None
        self.compiled = 0  # kernels, in this process

    def say(self, text: str) -> None:
        """Say one sentence."""
        if self.tell is not None:
            self.tell(text)
        else:
            print(f"oddsengine: {text}", file=sys.stderr, flush=True)


REPORTER = Reporter()


@cache
def _folders() -> Folders:
    """Where kernels are kept; looked for once, when the first one is needed."""
    return Folders(REPORTER.say)


def keeps() -> bool:
    """Whether what this process compiles is kept on disk."""
    _numba()
    return _folders().write is not None


@cache
def _numba() -> Any:
    """Import numba once, and let the first compilation of the process say what it is doing."""
    import numba  # noqa: PLC0415  the compiler loads when the first kernel is called
    from numba.core import event  # noqa: PLC0415

    class Announce(event.Listener):
        def on_start(self, event: Any) -> None:
            if not REPORTER.compiled:
                REPORTER.say(_COMPILING)
            REPORTER.compiled += 1

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announce())  # type: ignore[no-untyped-call]
    return numba
