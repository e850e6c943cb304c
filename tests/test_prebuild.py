"""Kernels that come with the package."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oddsengine._cache import PREBUILT, Folders, KernelCache, runs_portable

USED = Path(__file__).parent / "kernels_used.py"
pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1" or not runs_portable(),
    reason="nothing is compiled, or not for this machine",
)


def third(x: float) -> float:
    return x / 3.0


def half(x: float) -> float:
    return x / 2.0


def compiler() -> Any:
    return pytest.importorskip("numba").njit


def build(folder: Path, function: Callable[[float], float] = third) -> None:
    dispatcher = compiler()(function)
    dispatcher._cache = KernelCache(function, "", Folders.of_build(folder))
    dispatcher(6.0)


def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[[float], float] = third) -> int:
    """How often a process without a cache compiles a kernel, given the kernels of a package."""
    monkeypatch.setenv("ODDSENGINE_CACHE", str(folder / "cache"))
    monkeypatch.setattr("oddsengine._cache.PREBUILT", folder)
    dispatcher = compiler()(function)
    dispatcher._cache = KernelCache(function, "", Folders(print))
    assert dispatcher(6.0) == function(6.0)
    return sum(dispatcher.stats.cache_misses.values())


def test_nothing_is_compiled() -> None:
    """Finders, views, backtests, audits, futures and the start of a node, without any cache."""
    if not any(PREBUILT.glob("*.nbc")):
        pytest.skip("ODDSENGINE_BUILD_KERNELS=0")
    missing = Path(os.devnull) / "none"
    env = {**os.environ, "ODDSENGINE_CACHE": str(missing), "NUMBA_CACHE_DIR": str(missing)}
    done = subprocess.run([sys.executable, USED], env=env, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_kernel_of_the_package_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    (tmp_path / "cache").rename(tmp_path / "own")
    build(tmp_path)
    assert compiled(tmp_path, monkeypatch) == 0
    assert compiled(tmp_path, monkeypatch, half) == 1
    assert not [name for name in (tmp_path / "cache").iterdir() if "third" in name.name]


@pytest.mark.parametrize("what", ["Python", "numba", "llvmlite"])
def test_a_kernel_of_another_version_is_not_loaded(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        if what == "Python":
            other.setattr(sys, "version_info", (3, 99, 0, "final", 0))
        else:
            other.setattr(f"{what}.__version__", "99.0")
        build(tmp_path)
    assert compiled(tmp_path, monkeypatch) == 1


def test_kernels_that_others_may_write_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path)
    (file,) = tmp_path.glob("*.nbc")
    file.chmod(0o666)
    assert compiled(tmp_path, monkeypatch) == 1


def test_own_kernels_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    build(tmp_path)
    (file,) = tmp_path.glob("*.nbc")
    file.write_bytes(b"not read")
    assert compiled(tmp_path, monkeypatch) == 0
