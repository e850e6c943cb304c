"""Which kernels run, as `oddsengine --version` says; whether that is true is tested in `test_prebuild.py`."""

import grp
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import oddsengine
from oddsengine._installation import (
    PREBUILT_MANIFEST,
    content,
    describe,
    kernels,
    lasting,
    manifest_of,
    sources,
    target,
    unsupported,
)  # fmt: skip

COMPILES = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
PACKAGE = Path(oddsengine.__file__).parent
NEEDS = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")  # as LLVM calls them


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="Linux on x86-64")
def test_a_processor_has_the_flags_that_llvm_says() -> None:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    assert (unsupported() == "") == all(features.get(name) for name in NEEDS)


def test_versions_are_those_that_are_imported() -> None:
    import llvmlite
    import numba
    import numpy as np

    here = target(portable=False)
    assert (here["numba"], here["llvmlite"]) == (numba.__version__, llvmlite.__version__)
    assert here["numpy"] == np.__version__


@pytest.mark.parametrize("home", [{}, {"XDG_CACHE_HOME": "/somewhere"}])
def test_the_folders_of_the_cache(home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.misc.appdirs import user_cache_dir

    for name in ("ODDSENGINE_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    users = user_cache_dir("oddsengine", appauthor=False)  # type: ignore[no-untyped-call]
    assert lasting() == [str(PACKAGE / "__pycache__"), users]
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/numba")
    assert lasting() == ["/numba"]
    monkeypatch.setenv("ODDSENGINE_CACHE", "/ours")
    assert lasting() == ["/ours"]


# ---- what is said ----


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ODDSENGINE_CACHE", str(tmp_path))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    return tmp_path


def test_kernels_of_this_machine_are_named(cache: Path) -> None:
    others = kernels()
    made_for = target(portable=False)
    manifest = cache / manifest_of(made_for)
    manifest.write_bytes(describe(made_for, []))
    assert kernels() == f"for this machine ({cache})"
    manifest.write_bytes(describe(made_for, ["missing.nbc"]))
    assert kernels() == f"for this machine ({cache}), incomplete, else {others.partition(' (there')[0]}"
    for other in ({"numba": "99.0"}, {"processor": "another"}, {"settings": "NUMBA_OPT=1"}):
        manifest.write_bytes(describe({**made_for, **other}, []))
        assert kernels() == others
    manifest.write_text("{", encoding="utf-8")
    assert kernels() == others


@pytest.mark.parametrize("lie", [
    [], 5, {"made_for": None}, {"files": None}, {"files": 5}, {"files": [5]}, {"sources": 1},
    {"made_for": {"numba": 1}},
])  # fmt: skip
def test_a_manifest_that_is_none_is_not_one(cache: Path, lie: Any) -> None:
    others, made_for = kernels(), target(portable=False)
    told: Any = {**json.loads(describe(made_for, [])), **lie} if isinstance(lie, dict) else lie
    (cache / manifest_of(made_for)).write_text(json.dumps(told), encoding="utf-8")
    assert kernels() == others
    (cache / manifest_of(made_for)).write_text("[" * 100_000, encoding="utf-8")
    assert kernels() == others


def test_kernels_of_one_use_are_said_to_be_that(cache: Path) -> None:
    made_for = target(portable=False)
    (cache / manifest_of(made_for)).write_bytes(describe(made_for, [], "scan"))
    assert kernels().startswith(f"for this machine ({cache}), only those of a scan, else ")


@pytest.mark.skipif(sys.platform == "win32", reason="no modes, groups and pipes")
def test_files_that_others_may_have_written_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "kernel.nbc"
    file.write_bytes(b"code")
    assert content(file) == b"code"
    file.chmod(0o646)
    assert content(file) == b""
    mine = pwd.getpwuid(os.getuid()).pw_name
    file.chmod(0o664)
    assert content(file) == (b"code" if grp.getgrgid(file.stat().st_gid).gr_name == mine else b"")
    if os.getuid() == 0:
        os.chown(file, -1, next(group.gr_gid for group in grp.getgrall() if group.gr_name != mine))
        assert content(file) == b""
    pipe = tmp_path / "pipe.nbc"
    os.mkfifo(pipe)
    assert content(pipe) == b""


def test_plain_python_is_said(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert kernels() == "plain Python (NUMBA_DISABLE_JIT is set)"


# ---- a copy of the package ----


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without kernels."""
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, place / "oddsengine", ignore=shutil.ignore_patterns("__pycache__", "kernels"))
    shutil.copy(PACKAGE.parent / "oddsengine_cli.py", place)
    (place / "oddsengine" / "kernels").mkdir()
    return place


def python(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(installed), "ODDSENGINE_CACHE": str(installed / "cache")}
    return subprocess.run(
        [sys.executable, "-P", *words], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def version(installed: Path) -> str:
    """What the copy says about its kernels."""
    done = python(installed, "-m", "oddsengine_cli", "--version")
    first, second = done.stdout.splitlines()
    assert (done.returncode, first, done.stderr) == (0, f"oddsengine {oddsengine.__version__}", "")
    return second.removeprefix("kernels: ")


def manifest(installed: Path, files: list[str], **made_for: str) -> None:
    text: dict[str, Any] = json.loads(describe({**target(portable=True), **made_for}, files))
    (installed / "oddsengine" / "kernels" / PREBUILT_MANIFEST).write_text(json.dumps(text), encoding="utf-8")


@COMPILES
@pytest.mark.skipif(bool(unsupported()), reason="kernels of the package are not for this machine")
def test_a_copy_says_which_kernels_it_runs(installed: Path) -> None:
    assert version(installed) == "compiled on first use (there are no prebuilt ones in this installation)"
    here = target(portable=True)
    fits = f"prebuilt (Python {here['python']}, numba {here['numba']}, llvmlite {here['llvmlite']}, x86-64-v3)"
    manifest(installed, [])
    assert version(installed) == fits
    manifest(installed, ["some.nbc"])
    assert version(installed) == f"{fits}, incomplete, else compiled on first use"
    manifest(installed, [])
    module = installed / "oddsengine" / "maths" / "devig.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(f"{text}\n", encoding="utf-8")
    assert version(installed) == f"{fits}, made from other sources, else compiled on first use"
    module.write_text(text, encoding="utf-8")
    manifest(installed, [], llvmlite="0.1")
    reason = f"the prebuilt ones are for llvmlite 0.1, and this is llvmlite {here['llvmlite']}; "
    reason += "`pip install 'oddsengine[kernels]'` installs theirs"
    assert version(installed) == f"compiled on first use ({reason})"
    # The first compilation of a process says the same.
    done = python(installed, "-c", "import oddsengine; oddsengine.devig([1.9, 2.1], 'multiplicative')")
    before, after = done.stderr.splitlines()
    assert (done.returncode, before) == (
        0,
        f"oddsengine: compiling kernels, once on this machine ({reason}) ...",
    )
    assert re.fullmatch(rf"oddsengine: compiled \d+ kernels? in \d+ s; they are kept in {installed}/\S+", after)


def test_sources_count_by_their_names_and_content(installed: Path) -> None:
    assert (
        python(installed, "-c", "from oddsengine import _installation as i; print(i.sources())").stdout.strip()
        == sources()
    )
