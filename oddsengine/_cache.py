"""Disk cache of compiled kernels.

A file has one kernel for one signature, processor and Python version. It starts with a digest of its content, keyed by
everything the machine code depends on: the kernel, all kernels it calls, constants of their modules, and the compiler.
A file that is outdated, damaged or from another program has a different digest, and is recompiled and overwritten
instead of loaded. Since loading a file executes it, only files owned by this user, root or the owner of this package
are read.

Kernels are read from these folders and written to the first writable one:

1. `ODDSENGINE_CACHE`, or else `NUMBA_CACHE_DIR`;
2. `__pycache__` of this package;
3. the user's cache folder (`~/.cache/oddsengine` on Linux);
4. a private folder for temporary files.

With `ODDSENGINE_CACHE` or `NUMBA_CACHE_DIR`, 2 and 3 are skipped. If no folder is writable, each process compiles its
own.

Kernels that come with the package (`oddsengine/kernels`, from `commands.prebuild`) are read after these. They are for a
portable processor instead of this one, and fit one minor version of Python and one version of numba and of llvmlite.
"""

import hashlib
import os
import pickle
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

VARIABLE = "ODDSENGINE_CACHE"
PORTABLE = "x86-64-v3"
_NEEDS = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")  # of a processor that runs it
_PACKAGE = Path(__file__).parent
PREBUILT = _PACKAGE / "kernels"
_DIGEST = 32  # bytes
_CACHED_IN_TEMPORARY = (
    "compiled kernels are cached in the temporary folder {folder}, because no other cache folder is writable; set "
    "{variable} to a permanent folder"
)
_NOT_CACHED = (
    "compiled kernels cannot be cached ({reason}), so each process compiles them again; set {variable} to a writable "
    "folder"
)


# ---- folders ----


def _temporary() -> Path:
    """Create the private folder for temporary files.

    Raises
    ------
    OSError
        If it cannot be created, or others can access it.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"oddsengine-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid"):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o022:
            raise PermissionError(f"{folder} belongs to another user")
    return folder


def _lasting() -> list[Path]:
    """Return the folders that survive a restart of the machine."""
    given = os.environ.get(VARIABLE) or os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return [Path(given)]
    from numba.misc.appdirs import user_cache_dir  # noqa: PLC0415  the compiler is loaded late

    return [_PACKAGE / "__pycache__", Path(user_cache_dir("oddsengine", appauthor=False))]  # type: ignore[no-untyped-call]


class Folders:
    """The folders that kernels are read from and written to."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self.building = False  # kernels of the package
        self.used: set[str] = set()  # files of that folder
        self.read = _lasting()
        self.write: Path | None = None  # the first writable folder
        reasons = []
        for folder in self.read:
            try:
                _probe(folder)
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
            else:
                self.write = folder
                break
        self._notice = ""
        self.prebuilt = PREBUILT if runs_portable() else None
        if self.write is None:
            try:
                folder = _temporary()
                _probe(folder)
            except OSError as error:
                reasons.append(f"{error.strerror or error}")
                self._notice = _NOT_CACHED.format(reason="; ".join(reasons), variable=VARIABLE)
            else:
                self.write = folder
                self.read.append(folder)
                self._notice = _CACHED_IN_TEMPORARY.format(folder=folder, variable=VARIABLE)

    @classmethod
    def of_build(cls, folder: Path) -> "Folders":
        """The folder that kernels of the package are made in."""
        made = cls.__new__(cls)
        made.read, made.write, made.prebuilt, made.building, made._notice = [], None, folder, True, ""
        made.used = set()
        folder.mkdir(parents=True, exist_ok=True)
        return made

    def save(self, name: str, content: bytes) -> None:
        """Write a file atomically; a failure is reported once and otherwise ignored."""
        if self.write is not None:
            try:
                _replace(self.write / name, content)
            except OSError as error:
                reason = f"{self.write}: {error.strerror or error}"
                self.write, self._notice = None, _NOT_CACHED.format(reason=reason, variable=VARIABLE)
        if self._notice:
            self._report(self._notice)
            self._notice = ""


def _probe(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def _replace(file: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


@cache
def _trusted() -> frozenset[int]:
    """Return the users whose files are trusted."""
    mine = {os.geteuid()} if hasattr(os, "geteuid") else set()
    return frozenset({0, _PACKAGE.stat().st_uid, *mine})


def _content(file: Path) -> bytes:
    """Read a file; empty if it is missing, owned by another user, or writable by everybody."""
    try:
        with file.open("rb") as source:
            status = os.fstat(source.fileno())
            return source.read() if status.st_uid in _trusted() and not status.st_mode & stat.S_IWOTH else b""
    except OSError:
        return b""


@cache
def runs_portable() -> bool:
    """Whether this machine runs the kernels that come with the package."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    from llvmlite import binding  # noqa: PLC0415  the compiler is loaded late

    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in _NEEDS)


# ---- digests ----


def stamp(function: Any, options: str, *, portable: bool = False) -> bytes:
    """Return the digest of a kernel's code, of all kernels it calls, of their constants, and of the compiler.

    With `portable` any release of this minor version of Python and of numpy will do.
    """
    import llvmlite  # noqa: PLC0415  the compiler is loaded late
    import numba  # noqa: PLC0415

    digest = hashlib.blake2b(digest_size=_DIGEST)
    config: Any = numba.config
    settings = options, config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT  # of the environment, except options
    others = sys.version_info[:2] if portable else (np.__version__, sys.version)
    for part in (numba.__version__, llvmlite.__version__, *others, settings):
        digest.update(f"{part}\n".encode())
    for part in _parts(function, set()):
        digest.update(part)
    return digest.digest()


def _parts(function: FunctionType, seen: set[FunctionType]) -> Iterator[bytes]:
    if function in seen:
        return
    seen.add(function)
    yield f"{function.__module__}.{function.__qualname__} {function.__defaults__!r}\n".encode()
    yield from _code(function.__code__)
    packages = __package__, function.__module__.partition(".")[0]
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        ours = isinstance(value, ModuleType) and value.__name__.partition(".")[0] in packages
        values = [vars(value).get(each) for each in function.__code__.co_names] if ours else [value]
        for each in values:
            used = getattr(each, "__wrapped__", None)
            if isinstance(used, FunctionType):
                yield f"{name} {getattr(each, 'options', '')}\n".encode()
                yield from _parts(used, seen)
            elif isinstance(each, np.ndarray):
                yield f"{name} {each.dtype} {each.shape}\n".encode() + each.tobytes()
            elif isinstance(each, int | float | str | tuple | np.generic):
                yield f"{name} = {each!r}\n".encode()


def _code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant).encode()


# ---- numba interface ----


class KernelCache:
    """A numba cache, as used by dispatchers."""

    cache_path = None

    def __init__(self, function: Any, options: str, folders: Folders) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._stamp, self._portable = stamp(function, options), stamp(function, options, portable=True)
        self._folders = folders

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code of a signature, or return None."""
        from numba.core.compiler import CompileResult  # noqa: PLC0415

        target_context.refresh()
        target = target_context.codegen().magic_tuple()
        places = [(folder, self._file(sig, target), self._stamp) for folder in self._folders.read]
        if self._folders.prebuilt is not None:
            places.append((self._folders.prebuilt, self._file(sig, _portable(target)), self._portable))
        for folder, name, key in places:
            content = _content(folder / name)
            if len(content) > _DIGEST and content[:_DIGEST] == _digest(key, name, content[_DIGEST:]):
                try:
                    loaded = CompileResult._rebuild(target_context, *pickle.loads(content[_DIGEST:]))  # type: ignore[no-untyped-call]
                except Exception:  # any failure only means recompiling
                    continue
                self._folders.used.add(name)
                return loaded
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Store the machine code of a signature."""
        from numba.core.serialize import dumps  # noqa: PLC0415

        if compiled.lifted or compiled.library.has_dynamic_globals:  # contains addresses of this process
            return
        target, content = compiled.codegen.magic_tuple(), dumps(compiled._reduce())  # type: ignore[no-untyped-call]
        if self._folders.building and self._folders.prebuilt is not None:
            name = self._file(sig, _portable(target))
            _replace(self._folders.prebuilt / name, _digest(self._portable, name, content) + content)
            self._folders.used.add(name)
        else:
            name = self._file(sig, target)
            self._folders.save(name, _digest(self._stamp, name, content) + content)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: old files are overwritten."""

    def _file(self, sig: Any, target: tuple[Any, ...]) -> str:
        version = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
        key = f"{version} {sig!r} {target!r}"
        return f"{self._name}-{hashlib.blake2b(key.encode(), digest_size=10).hexdigest()}.nbc"


def _portable(target: tuple[Any, ...]) -> tuple[Any, ...]:
    """The target of a kernel of the package, given that of this machine: triple, processor, features."""
    return target[0], PORTABLE, ""


def _digest(key: bytes, name: str, content: bytes) -> bytes:
    hashed = hashlib.blake2b(name.encode() + b"\n", digest_size=_DIGEST, key=key)
    hashed.update(content)
    return hashed.digest()
