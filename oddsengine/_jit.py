"""Decorators that compile functions with numba.

Importing this module does not import numba. A kernel is compiled on its first call, and the machine code is
cached on disk (`_cache`), so only the first run on a machine waits for the compiler.

Kernels call each other through module globals, whose types numba asks a kernel for.

Python passes the fields of named tuples, not the tuples, to an entry that is compiled for this: it puts them together
again and contains the kernel. numba looks at the types of all arguments at each call, and for named tuples that takes
several times as long. The kernel itself is compiled for other kernels only, and cannot be called from Python.

Every kernel releases the GIL and uses numpy's error model, because Python's (an exception on division by
zero) prevents vectorisation. `fused` also contracts a multiplication and an addition into one instruction,
and `inlined` inlines the body into its callers. No option allows reassociation or assumes the absence of
NaN, which means "no answer" here.

Kernels do not count references to the arrays that they are given: numba does so atomically, for every array of every
call, which takes longer than many a kernel. One that makes arrays has to count, to free them, and so has one that
calls it. They are marked `allocating`; one that makes arrays without the mark is refused, by name where it is
declared, and by numba where the name does not show it.
"""

import gc
import threading
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast, get_type_hints

import numpy as np

from oddsengine import _compilers
from oddsengine._cache import Folders, KernelCache
from oddsengine._installation import misfit, why_compiled
from oddsengine.progress import Reporter

F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.RLock()
dispatchers: dict[str, Any] = {}
"""The numba dispatchers that this process has, by the names of kernels and entries."""
_FEW_S = 5.0  # seconds of compilation for which no processes are started
_SMALL = ("maths", "tables")  # packages whose kernels are few and called by themselves


_MAKES_ARRAYS = frozenset(
    {
        "arange", "argsort", "array", "astype", "concatenate", "copy", "cumsum", "empty", "empty_like", "flatten",
        "full", "full_like", "nonzero", "ones", "ones_like", "ravel", "repeat", "sort", "unique", "where", "zeros",
        "zeros_like",
    }
)  # fmt: skip


class _Kernel:
    """A function that is compiled on its first call."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str], inline: str = "never") -> None:
        self._fastmath = fastmath
        self._takes_tuples = any(map(_is_named, function.__annotations__.values()))
        self.counts: bool = getattr(function, "makes_arrays", False)
        flags = {"inline": inline == "always", "uncounted": not self.counts, "inner": self._takes_tuples}
        self.options = " ".join([*sorted(fastmath), *(name for name, on in flags.items() if on)])
        self.targetoptions = {"inline": inline}  # numba looks here, and at `py_func`, where a kernel is called
        self.py_func = self.__wrapped__ = function
        self._dispatcher: Callable[..., Any] | None = None
        self._entry: _Kernel | None = None
        self._call: Callable[..., Any] | None = None  # from Python
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        if quoted := [of for of in function.__annotations__.values() if isinstance(of, str)]:
            raise TypeError(f"{self._title()} has the types {', '.join(quoted)} as text, which hides named tuples")
        makes = _MAKES_ARRAYS.intersection(function.__code__.co_names)
        if makes and not self.counts:
            raise TypeError(f"{self._title()} makes arrays ({', '.join(sorted(makes))}); mark it as allocating")
        self._check_called()

    def _title(self) -> str:
        return f"the kernel {self.__module__}.{self.__name__}"

    def _check_called(self) -> None:
        """Refuse calls of kernels that make arrays: nobody would free what they return.

        Raises
        ------
        TypeError
            If one is called, and this kernel is not marked.
        """
        for name in self.py_func.__code__.co_names if not self.counts else ():
            called = self.py_func.__globals__.get(name)
            if isinstance(called, _Kernel) and called.counts:
                raise TypeError(f"{self._title()} calls {name}, which makes arrays; mark it as allocating, too")

    def __call__(self, *args: Any) -> Any:
        return (self._call or self._callable())(*args)

    @property
    def _numba_type_(self) -> Any:
        """The type of this global for numba, which compiles a kernel that calls this one."""
        return _numba().types.Dispatcher(self.dispatcher())

    def _callable(self) -> Callable[..., Any]:
        """What Python calls; made on the first call."""
        with _lock:
            entry = self.entry()
            made = entry.dispatcher()
            self._call = made if entry is self else _passing_fields(self.py_func, made)
            return self._call

    def entry(self) -> "_Kernel":
        """The kernel that Python calls: this one, or one that takes the fields of its tuples."""
        if self._takes_tuples and self._entry is None and not _numba().config.DISABLE_JIT:
            body = _Kernel(self.py_func, self._fastmath, inline="always")
            self._entry = _Kernel(_from_fields(self.py_func, body), self._fastmath)
        return self._entry or self

    def dispatcher(self) -> Callable[..., Any]:
        """The numba dispatcher; created on the first call."""
        with _lock:
            if self._dispatcher is None:
                numba = _numba()
                self._check_called()  # those declared later
                compiler = numba.njit(
                    nogil=True, error_model="numpy", fastmath=self._fastmath, no_cfunc_wrapper=True,
                    no_cpython_wrapper=self._takes_tuples, **self.targetoptions,
                    **({} if self.counts else without_counts()),
                )  # fmt: skip
                made = compiler(self.py_func)
                if made is not self.py_func:  # numba compiles: NUMBA_DISABLE_JIT is not set
                    made._cache = KernelCache(self.py_func, self.options, folders(), _with_others)
                    made.options, made.counts = self.options, self.counts
                    _without_literals(numba, made)
                    if self.targetoptions["inline"] == "never":
                        dispatchers[f"{self.py_func.__module__}.{self.py_func.__qualname__}"] = made
                else:  # compiled code does not warn about overflow or division by zero
                    made = np.errstate(all="ignore")(self.py_func)
                self._dispatcher = cast(Callable[..., Any], made)
            return self._dispatcher


# ---- named tuples ----

ENTRY = "@python"
"""What the name of a kernel's entry ends with."""


def _is_named(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, tuple) and hasattr(of, "_fields")


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The parameters of a function with their types, or None."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return [(name, function.__annotations__.get(name)) for name in names]


def _passing_fields(function: Callable[..., Any], made: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the parameters of a kernel that passes the fields of its tuples on."""

    def fields(value: str, of: Any) -> str:
        if not _is_named(of):
            return value
        parts = [*get_type_hints(of).values()]
        if not any(map(_is_named, parts)):
            return f"*{value}"
        return ", ".join(fields(f"{value}[{at}]", part) for at, part in enumerate(parts))

    parameters = _parameters(function)
    names, passed = (", ".join(each) for each in zip(*((n, fields(n, of)) for n, of in parameters), strict=True))
    return cast(Callable[..., Any], eval(f"lambda {names}: made({passed})", {"made": made}))


def _from_fields(function: Callable[..., Any], body: "_Kernel") -> Callable[..., Any]:
    """Return a function that takes the fields of a kernel's tuples, and calls it with the tuples."""
    names: dict[str, Any] = {"body": body}  # and the tuples, numbered: two may have one name
    fields: list[str] = []

    def value(of: Any) -> str:
        if not _is_named(of):
            fields.append(f"x{len(fields)}")
            return fields[-1]
        name = f"tuple_{len(names)}"
        names[name] = of
        return f"{name}({', '.join(map(value, get_type_hints(of).values()))})"

    given = ", ".join(value(of) for _, of in _parameters(function))
    exec(f"def entry({', '.join(fields)}): return body({given})", names)
    entry = names["entry"]
    entry.__name__ = entry.__qualname__ = f"{function.__name__}{ENTRY}"
    entry.__module__, entry.__doc__ = function.__module__, function.__doc__
    entry.makes_arrays = body.counts
    return cast(Callable[..., Any], entry)


def allocating(function: F) -> F:
    """Mark a function that makes arrays, or calls a kernel that does, before it is made a kernel."""
    function.makes_arrays = True  # type: ignore[attr-defined]
    return function


def is_kernel(value: Any) -> bool:
    """Whether a global is a kernel."""
    return isinstance(value, _Kernel)


def dispatcher_named(name: str) -> Any:
    """The numba dispatcher of a kernel by its module and name, or of its entry if the name says so."""
    module, _, inner = name.removesuffix(ENTRY).rpartition(".")
    kernel = vars(import_module(module))[inner]
    return (kernel.entry() if name.endswith(ENTRY) else kernel).dispatcher()


def in_python(kernel: F) -> F:
    """Return the function that a kernel is compiled from, which also takes whole columns."""
    return cast(F, kernel.__wrapped__)  # type: ignore[attr-defined]


def kernel(function: F) -> F:
    """Compile `function` on its first call."""
    return cast(F, _Kernel(function, fastmath=set()))


def fused(function: F) -> F:
    """Compile `function` on its first call, with fused multiply-add."""
    return cast(F, _Kernel(function, fastmath={"contract"}))


def inlined(function: F) -> F:
    """Compile `function` into each kernel that calls it: passing many arrays costs more than a small body."""
    return cast(F, _Kernel(function, fastmath=set(), inline="always"))


@cache
def without_counts() -> dict[str, Any]:
    """The options for kernels that do not count references; none where numba has lost its own, which is private."""
    options: dict[str, Any] = {"_nrt": False}
    try:
        _numba().njit(**options)(lambda: None)
    except (KeyError, TypeError):
        return {}
    return options


def _without_literals(numba: Any, dispatcher: Any) -> None:
    """Let calls with a constant share the code for numbers; numba would compile a kernel again for each constant."""
    template = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template([numba.types.unliteral(arg) for arg in args], kws)

    dispatcher.get_call_template = get_call_template


REPORTER = Reporter(why_compiled, lambda: _kept())  # noqa: PLW0108  defined below


making: list[Folders] = []  # the folder of a process that makes all kernels


@cache
def folders() -> Folders:
    """Cache folders; looked up once, when the first kernel is called."""
    return making[0] if making else Folders(REPORTER.report)


wanted: list[str] = []  # uses of the list of kernels that this process is going to have, beside that of a call
_tried: set[str] = set()


def _with_others(kernel: str) -> bool:
    """Compile the kernels of the use of one that is missing side by side; True if they are there now.

    Once, and only where most of that takes long: a single function, such as one that removes margins, waits for its own
    kernels only, and so does a process that was started to do a part of some work beside others.
    """
    place = folders()
    if making or place.write is None or (not wanted and kernel.split(".")[1] in _SMALL) or not _compilers.may_start():
        return False
    try:
        use = _compilers.use_of(kernel)
        if use is None or use == _compilers.INNER or use in _tried:
            return False
        uses = {use, *wanted}
        _tried.update(uses)
        kernels = _compilers.with_called(*uses)
        there = place.kernels()
        if kernel in there and misfit():  # made by an earlier version, as most of the others are then
            there = set()
        if sum(each.seconds for each in kernels if each.kernel not in there) < _FEW_S:
            return False
        REPORTER.begin()
        try:
            place.warn()
            expected = _compilers.expected(kernels)
            REPORTER.compiling(f"compiling {len(kernels)} kernels, once on this machine: {expected}", 0)
            files = _compilers.compile_side_by_side(kernels, place.write, REPORTER.report, portable=False)
            REPORTER.compiled += len(files)
        finally:
            REPORTER.end()
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started, as while a process ends
        REPORTER.report(f"{error}; kernels are compiled one after the other")
        return False
    return True


def _kept() -> str:
    return str(folders().write or "")


@cache
def _numba() -> Any:
    """Import numba once; report its first compilation, and make all of them faster.

    While numba compiles, the garbage collector is paused, because compilation creates many objects and little garbage.
    An operation on the same types is resolved once for all kernels with the same options: numba does it for every
    occurrence, which took a fifth of all compilation. A function that is inlined keeps its list of variables: numba
    copies it twice with every block, which took two thirds of the largest kernel's compilation. Functions that are not
    kernels are compiled as always.
    """
    import numba  # noqa: PLC0415  the compiler loads when the first kernel is called
    from numba.core import event, ir, types  # noqa: PLC0415

    resolve: Any = getattr(types.Function, "get_call_type", None)
    by_options: dict[str, dict[Any, Any]] = {}  # signatures of operations by types
    resolved: list[dict[Any, Any] | None] = []  # those of each function being compiled; None: not for a kernel

    class Compilations(event.Listener):
        collects = False

        def on_start(self, event: Any) -> None:
            if not resolved:
                self.collects = gc.isenabled()
                gc.disable()
            options = getattr(event.data["dispatcher"], "options", None)  # None: not a kernel, but perhaps part of one
            REPORTER.begin()
            if options is None:
                resolved.append(resolved[-1] if resolved else None)
            else:
                resolved.append(by_options.setdefault(options, {}))
                REPORTER.compiling()

        def on_end(self, event: Any) -> None:
            resolved.pop()
            REPORTER.end()
            if self.collects and not resolved:
                gc.enable()

    def resolve_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
        signatures = resolved[-1] if resolved else None
        if kws or signatures is None:
            return resolve(function, context, args, kws)
        key = function, args
        if key not in signatures:
            signatures[key] = resolve(function, context, args, kws)
        return signatures[key]

    def copied(scope: Any, memo: dict[int, Any]) -> Any:
        if resolved and resolved[-1] is not None:
            return scope
        made = memo[id(scope)] = object.__new__(type(scope))
        vars(made).update(deepcopy(vars(scope), memo))
        return made

    event.register("numba:compile", Compilations())  # type: ignore[no-untyped-call]
    if resolve is not None:  # methods of numba that are not documented
        setattr(types.Function, "get_call_type", resolve_once)  # noqa: B010
    if hasattr(ir, "Scope"):
        setattr(ir.Scope, "__deepcopy__", copied)  # noqa: B010
    return numba
