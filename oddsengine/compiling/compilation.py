"""Makes all kernels: those that come with the package, or those of this machine.

Kernels of the package are for every x86-64 processor with AVX2. Those of a machine are for its own processor, in its
cache, and come before them. Both are compiled by several processes from the list of kernels (`_compilers`). A kernel
that is there and up to date is loaded instead of compiled; if all are, nothing is run.
"""

import time
from collections.abc import Callable
from pathlib import Path

from oddsengine import _installation, _jit
from oddsengine._cache import PREBUILT, _replace, first_writable
from oddsengine._compilers import SCAN, USES, compile_side_by_side, expected, with_called
from oddsengine._installation import VARIABLE, interpreted, lasting, unsupported

MADE_FOR = {"scan": (SCAN,), "all": USES}
"""What kernels are made for, and which."""


def make(folder: Path, report: Callable[[str], None], *, portable: bool, use: str = "all") -> None:
    """Make the kernels of a use in a folder, and report progress.

    Raises
    ------
    OSError
        If a kernel cannot be compiled or written.
    """
    made_for, at = _installation.target(portable=portable), str(folder)
    if _installation.up_to_date(at, made_for):
        report(f"all kernels in {folder} are up to date")
        return
    kernels = with_called(*MADE_FOR[use])
    which = f"all {len(kernels)} kernels" if use == "all" else f"the {len(kernels)} kernels of a {use}"
    report(f"compiling {which} into {folder}: {expected(kernels)} ...")
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    before = _files(folder)
    files = compile_side_by_side(kernels, folder, report, portable=portable)
    took = time.monotonic() - began
    if use != "all":
        made = [file.name for file in folder.glob("*.nbc")]
        _replace(folder / _installation.manifest_of(made_for), _installation.describe(made_for, made, use))
        report(f"kernels of a {use} compiled in {took:.0f} s")
        return
    if portable:
        for file in folder.glob("*.nbc"):
            if file.name not in files:
                file.unlink(missing_ok=True)
    _replace(folder / _installation.manifest_of(made_for), _installation.describe(made_for, files))
    manifest = _installation.read_manifest(at, _installation.manifest_of(made_for))
    if not manifest:  # as on file systems without owners and modes
        raise PermissionError(f"files in {folder} are not loaded, because everybody can write to them")
    size = sum((folder / name).stat().st_size for name in files)
    compiled = len(files & {name for name, _ in _files(folder) - before})
    report(f"{compiled} of {len(files)} kernels compiled in {took:.0f} s; all: {size / 1e6:.1f} MB in {folder}")


def _files(folder: Path) -> set[tuple[str, int]]:
    """Return kernels in a folder, with the times at which they were written."""
    return {(file.name, file.stat().st_mtime_ns) for file in folder.glob("*.nbc")}


# ---- where they are made ----


def prebuild(report: Callable[[str], None], folder: Path = PREBUILT, use: str = "all") -> None:
    """Make the kernels that come with the package, or those of one use.

    Raises
    ------
    OSError
        If this machine does not run them, or a kernel cannot be made.
    """
    if reason := unsupported():
        raise OSError(f"no kernels are made: {reason}")
    make(folder, report, portable=True, use=use)


def compile_kernels(report: Callable[[str], None] | None = None) -> Path:
    """Compile all kernels for the processor of this machine, into the cache on disk.

    Processes that start later load them instead of those that come with the package. Takes up to a minute, and no time
    if nothing has changed.

    Parameters
    ----------
    report
        Called with messages of progress; None prints them to standard error.

    Returns
    -------
    The folder.

    Raises
    ------
    OSError
        If no folder of the cache is writable, or a kernel cannot be compiled.

    Examples
    --------
    Once on each machine, for instance when an image is built::

        python -c 'import oddsengine; oddsengine.compile_kernels()'
    """
    if interpreted():
        raise OSError("kernels are not compiled, because NUMBA_DISABLE_JIT is set")
    folder, reasons = first_writable(lasting())
    if folder is None:
        raise OSError(f"no folder is writable ({'; '.join(reasons)}); set {VARIABLE} to one for compiled kernels")
    make(folder.absolute(), report or _jit.REPORTER.report, portable=False)
    return folder
