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

Kernels that come with the package (`oddsengine/kernels`, from `compilation`) are read after these. They are for a
portable processor instead of this one, and fit one minor version of Python and one version of numba and of llvmlite.
"""

import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from oddsengine import _installation
from oddsengine._installation import VARIABLE, content, lasting, least_processor, platform, unsupported

PREBUILT = Path(_installation.PREBUILT)
_DIGEST = 32  # bytes
_MISSING = object()  # the value of a name that is no global: of an attribute, or built in
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


def first_writable(folders: Iterable[str]) -> tuple[Path | None, list[str]]:
    """Return the first folder that files can be written to, and why those before it cannot."""
    reasons = []
    for folder in folders:
        try:
            _probe(Path(folder))
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
        else:
            return Path(folder), reasons
    return None, reasons


class Folders:
    """The folders that kernels are read from and written to."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._notice = ""
        self.making = False
        self.used: set[str] = set()  # names of the files that were read, or written while making kernels
        self.read = [Path(folder) for folder in lasting()]
        self.prebuilt = None if unsupported() else PREBUILT
        self.write, reasons = first_writable(lasting())
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
    def to_make(cls, folder: Path, *, portable: bool) -> "Folders":
        """One folder that all kernels are made in, for every processor of this platform or for this one."""
        made = cls.__new__(cls)
        made.read, made.write, made.prebuilt = ([], None, folder) if portable else ([folder], folder, None)
        made.making, made.used = True, set()
        folder.mkdir(parents=True, exist_ok=True)
        return made

    def save(self, name: str, content: bytes) -> None:
        """Write a file atomically; a failure is reported once and otherwise ignored, unless kernels are made."""
        if self.making:
            _replace((self.prebuilt or self.write or Path()) / name, content)
            self.used.add(name)
            return
        if self.write is not None:
            try:
                _replace(self.write / name, content)
            except OSError as error:
                reason = f"{self.write}: {error.strerror or error}"
                self.write, self._notice = None, _NOT_CACHED.format(reason=reason, variable=VARIABLE)
        self.warn()

    def warn(self) -> None:
        """Report once that kernels are not kept, or not for long."""
        if self._notice:
            self._report(self._notice)
            self._notice = ""

    def kernels(self) -> set[str]:
        """The names of kernels that have files, as far as those of the package fit; not all of the files may fit."""
        places = [*self.read, *([self.prebuilt] if self.prebuilt is not None and not _installation.misfit() else [])]
        return {file.name.rpartition("-")[0] for place in places for file in place.glob("*.nbc")}


def _probe(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def _replace(file: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        Path(name).chmod(0o644)  # for other users too, who trust files of root and of the package's owner
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


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
    defaults = function.__defaults__, function.__kwdefaults__
    yield f"{function.__module__}.{function.__qualname__} {defaults!r}\n".encode()
    yield from _code(function.__code__)
    packages = __package__, function.__module__.partition(".")[0]
    used = sorted(set(_names(function.__code__)))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    variables = [(name, cell.cell_contents) for name, cell in cells]
    for name in used:
        value = function.__globals__.get(name, _MISSING)
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in packages:
            variables += [(f"{name}.{each}", vars(value)[each]) for each in used if each in vars(value)]
        else:
            variables.append((name, value))
    for name, value in variables:
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, FunctionType):
            yield f"{name} {getattr(value, 'options', '')}\n".encode()
            yield from _parts(wrapped, seen)
        elif (constant := described(value)) is not None:
            yield f"{name} = {constant}\n".encode()


def _code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant).encode()


def _names(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that a function refers to, those of functions inside it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def described(value: object) -> str | None:
    """Return what machine code takes from a global that is no kernel; None if a kernel cannot depend on it.

    Machine code has the values of constants and of the members of an enumeration, and reads the fields of named tuples
    and of records by their place.
    """
    if isinstance(value, np.ndarray):
        content = hashlib.blake2b(value.tobytes(), digest_size=_DIGEST).hexdigest()
        return f"{_described_dtype(value.dtype)} {value.shape} {value.strides} {content}"
    if isinstance(value, np.dtype):
        return _described_dtype(value)
    if isinstance(value, Enum):
        return f"{value!r} = {value.value!r}"
    if isinstance(value, tuple):
        parts = [f"{described(each) or type(each)}" for each in value]
        return f"{type(value).__name__}{getattr(value, '_fields', '')} {parts}"
    if value is None or isinstance(value, int | float | complex | str | bytes | np.generic):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, type) and issubclass(value, Enum):
        return f"{value!r} {[(name, member.value) for name, member in value.__members__.items()]}"
    if isinstance(value, type) and issubclass(value, tuple):
        return f"{value!r} {getattr(value, '_fields', '')} {getattr(value, '_field_defaults', '')}"
    return repr(value) if isinstance(value, type) else None


def _described_dtype(dtype: "np.dtype[Any]") -> str:
    return f"{dtype!r} {dtype.fields!r} {dtype.itemsize}"


def described_type(of: Any) -> str:
    """Return the type of an argument as machine code sees it.

    A type's own name has neither the names of the fields of a named tuple nor the values of an enumeration.
    """
    inner = (*getattr(of, "types", ()), getattr(of, "type", None), getattr(of, "dtype", None))
    parts = [described_type(each) for each in inner if each is not None and each is not of]
    members = described(getattr(of, "instance_class", None))
    return f"{of!r} {getattr(of, 'fields', ())} {members} {parts}"


# ---- numba interface ----


class KernelCache:
    """A numba cache, as used by dispatchers."""

    cache_path = None

    def __init__(
        self, function: Any, options: str, folders: Folders, with_others: Callable[[str], bool] = lambda _: False
    ) -> None:  # fmt: skip
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._stamp, self._portable = stamp(function, options), stamp(function, options, portable=True)
        self._folders, self._with_others = folders, with_others

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code of a signature, which may be compiled with that of others first, or return None."""
        found = self._load(sig, target_context)
        return self._load(sig, target_context) if found is None and self._with_others(self._name) else found

    def _load(self, sig: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult  # noqa: PLC0415

        target_context.refresh()
        target = target_context.codegen().magic_tuple()
        places = [(folder, self._file(sig, target), self._stamp) for folder in self._folders.read]
        if self._folders.prebuilt is not None:
            places.append((self._folders.prebuilt, self._file(sig, _package()), self._portable))
        for folder, name, key in places:
            stored = content(folder / name)
            if len(stored) > _DIGEST and stored[:_DIGEST] == _digest(key, name, stored[_DIGEST:]):
                try:
                    loaded = CompileResult._rebuild(target_context, *pickle.loads(stored[_DIGEST:]))  # type: ignore[no-untyped-call]
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
        target, code = compiled.codegen.magic_tuple(), dumps(compiled._reduce())  # type: ignore[no-untyped-call]
        portable = self._folders.making and self._folders.prebuilt is not None
        name = self._file(sig, _package() if portable else target)
        key = self._portable if portable else self._stamp
        self._folders.save(name, _digest(key, name, code) + code)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: old files are overwritten."""

    def _file(self, sig: Any, target: tuple[Any, ...]) -> str:
        version = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
        key = f"{version} {[described_type(each) for each in sig]} {target!r}"
        return f"{self._name}-{hashlib.blake2b(key.encode(), digest_size=10).hexdigest()}.nbc"


def _package() -> tuple[str, ...]:
    """The target of a kernel that comes with the package."""
    return *platform(), least_processor()


def _digest(key: bytes, name: str, content: bytes) -> bytes:
    hashed = hashlib.blake2b(name.encode() + b"\n", digest_size=_DIGEST, key=key)
    hashed.update(content)
    return hashed.digest()
