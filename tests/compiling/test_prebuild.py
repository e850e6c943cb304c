"""Kernels that come with the package."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oddsengine._cache import PREBUILT, Folders, KernelCache
from oddsengine._installation import describe, manifest_of, misfit, target, unsupported

USED = Path(__file__).parents[1] / "support" / "kernels_used.py"
pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1" or bool(unsupported()),
    reason="nothing is compiled, or not for this machine",
)


def third(x: float) -> float:
    return x / 3.0


def half(x: float) -> float:
    return x / 2.0


def compiler() -> Any:
    return pytest.importorskip("numba").njit


def build(folder: Path, function: Callable[[float], float] = third, numba: str = "", llvmlite: str = "") -> None:
    """Make a kernel of a package and its manifest, which may say that other versions were installed."""
    folders = Folders.to_make(folder, portable=True)
    dispatcher = compiler()(function)
    dispatcher._cache = KernelCache(function, "", folders)
    dispatcher(6.0)
    made_for = target(portable=True)
    made_for |= {name: version for name, version in (("numba", numba), ("llvmlite", llvmlite)) if version}
    folders.save(manifest_of(made_for), describe(made_for, folders.used))


def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[[float], float] = third) -> int:
    """How often a process without a cache compiles a kernel, given the kernels of a package."""
    monkeypatch.setenv("ODDSENGINE_CACHE", str(folder / "cache"))
    monkeypatch.setattr("oddsengine._cache.PREBUILT", folder)
    dispatcher = compiler()(function)
    dispatcher._cache = KernelCache(function, "", Folders(print))
    assert dispatcher(6.0) == function(6.0)
    return sum(dispatcher.stats.cache_misses.values())


@pytest.mark.exhaustive  # .ci/smoke runs the same beside the wheel
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
    assert misfit(str(tmp_path)) == "there are no prebuilt ones in this installation"
    (tmp_path / "cache").rename(tmp_path / "own")
    build(tmp_path)
    assert compiled(tmp_path, monkeypatch) == 0
    assert misfit(str(tmp_path)) == ""
    assert compiled(tmp_path, monkeypatch, half) == 1
    assert not [name for name in (tmp_path / "cache").iterdir() if "third" in name.name]


@pytest.mark.parametrize("what", ["Python", "numba", "llvmlite"])
def test_a_kernel_of_another_version_is_not_loaded(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        if what == "Python":
            other.setattr(sys, "version_info", (3, 99, 0, "final", 0))
        else:
            other.setattr(f"{what}.__version__", "99.0")
        build(tmp_path, numba="99.0" * (what == "numba"), llvmlite="99.0" * (what == "llvmlite"))
    assert compiled(tmp_path, monkeypatch) == 1
    assert f"the prebuilt ones are for {what} {'3.99' if what == 'Python' else '99.0'}, and this is {what} " in misfit(
        str(tmp_path)
    )


@pytest.mark.parametrize(("setting", "fits"), [("BOUNDSCHECK=1", False), ("OPT=1", False), ("OPT=3", True)])
def test_a_kernel_for_other_settings_is_not_loaded(
    setting: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path)
    name, _, value = setting.partition("=")
    monkeypatch.setenv(f"NUMBA_{name}", value)
    config = pytest.importorskip("numba").config
    monkeypatch.setattr(config, name, type(config.OPT)(value) if name == "OPT" else int(value))
    assert compiled(tmp_path, monkeypatch) == (not fits)
    assert misfit(str(tmp_path)) == ("" if fits else f"the prebuilt ones are not for NUMBA_{setting}")


def test_kernels_that_others_may_write_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path)
    for file in tmp_path.iterdir():
        file.chmod(0o666)
    assert compiled(tmp_path, monkeypatch) == 1
    assert misfit(str(tmp_path)) != ""


def test_own_kernels_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    build(tmp_path)
    (file,) = tmp_path.glob("*.nbc")
    file.write_bytes(b"not read")
    assert compiled(tmp_path, monkeypatch) == 0
