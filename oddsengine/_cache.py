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
"""

import hashlib
import os
import pickle
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
_PACKAGE = Path(__file__).parent
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
    """Read a file; None if it is missing or owned by another user."""
    try:
        with file.open("rb") as source:
            return source.read() if os.fstat(source.fileno()).st_uid in _trusted() else b""
    except OSError:
        return b""


# ---- digests ----


def stamp(function: Any, options: str) -> bytes:
    """Return the digest of a kernel's code, of all kernels it calls, and of their constants."""
    import llvmlite  # type: ignore[import-untyped]  # noqa: PLC0415  the compiler is loaded late
    import numba  # noqa: PLC0415

    digest = hashlib.blake2b(digest_size=_DIGEST)
    config: Any = numba.config
    settings = options, config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT  # of the environment, except options
    for part in (numba.__version__, llvmlite.__version__, np.__version__, sys.version, settings):
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
        self._stamp = stamp(function, options)
        self._folders = folders

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code of a signature, or return None."""
        from numba.core.compiler import CompileResult  # noqa: PLC0415

        target_context.refresh()
        name = self._file(sig, target_context.codegen())
        for folder in self._folders.read:
            content = _content(folder / name)
            if len(content) > _DIGEST and content[:_DIGEST] == self._digest(name, content[_DIGEST:]):
                try:
                    return CompileResult._rebuild(target_context, *pickle.loads(content[_DIGEST:]))  # type: ignore[no-untyped-call]
                except Exception:  # any failure only means recompiling
                    continue
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Store the machine code of a signature."""
        from numba.core.serialize import dumps  # noqa: PLC0415

        if compiled.lifted or compiled.library.has_dynamic_globals:  # contains addresses of this process
            return
        name, content = self._file(sig, compiled.codegen), dumps(compiled._reduce())  # type: ignore[no-untyped-call]
        self._folders.save(name, self._digest(name, content) + content)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: old files are overwritten."""

    def _file(self, sig: Any, codegen: Any) -> str:
        version = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
        key = f"{version} {sig!r} {codegen.magic_tuple()!r}"
        return f"{self._name}-{hashlib.blake2b(key.encode(), digest_size=10).hexdigest()}.nbc"

    def _digest(self, name: str, content: bytes) -> bytes:
        hashed = hashlib.blake2b(name.encode() + b"\n", digest_size=_DIGEST, key=self._stamp)
        hashed.update(content)
        return hashed.digest()
