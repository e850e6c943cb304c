"""All kernels for one's own machine: `compile_kernels` and `oddsengine compile`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oddsengine as oe
from oddsengine._installation import describe, manifest_of, target, unsupported
from oddsengine_cli import main

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

# Makes one kernel as `compile_kernels` makes all of them.
MAKE = """
import sys
from pathlib import Path
from oddsengine import _jit, devig
from oddsengine._cache import Folders
_jit.making.append(Folders.to_make(Path(sys.argv[1]), portable=False))
devig([1.9, 2.1], "multiplicative")
"""
USE = """
import json
from oddsengine import _jit, devig
devig([1.9, 2.1], "multiplicative")
print(json.dumps([_jit.REPORTER.compiled, sorted(_jit.folders().used)]))
"""


def python(cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, "ODDSENGINE_CACHE": str(cache)}, capture_output=True, text=True,
        timeout=900, check=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of one kernel."""
    folder = tmp_path_factory.mktemp("made")
    python(folder, "-c", MAKE, str(folder))
    return folder


def test_kernels_of_this_machine_are_read_before_those_of_the_package(made: Path) -> None:
    names = sorted(file.name for file in made.iterdir())
    assert names
    assert json.loads(python(made, "-c", USE).stdout) == [0, names]


def test_nothing_is_run_if_nothing_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODDSENGINE_CACHE", str(tmp_path))
    made_for = target(portable=False)
    (tmp_path / manifest_of(made_for)).write_bytes(describe(made_for, []))
    said: list[str] = []
    assert oe.compile_kernels(said.append) == tmp_path
    assert said == [f"all kernels in {tmp_path} are up to date"]


def test_no_folder_is_writable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ODDSENGINE_CACHE", "/dev/null/cache")
    assert main(["compile"]) == 2
    assert capsys.readouterr().err == (
        "oddsengine compile: no folder is writable (/dev/null/cache: Not a directory); "
        "set ODDSENGINE_CACHE to one for compiled kernels\n"
    )


def test_kernels_run_as_plain_python(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert main(["compile"]) == 2
    assert "NUMBA_DISABLE_JIT is set" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt" or (os.geteuid() == 0 and not Path("/dev/full").exists()), reason="no full device")
def test_a_process_that_fails_says_why(made: Path, tmp_path: Path) -> None:
    """A folder stands where a kernel is written."""
    for file in made.glob("*.nbc"):
        (tmp_path / file.name).mkdir()
    with pytest.raises(subprocess.CalledProcessError) as failure:
        python(tmp_path, "-c", MAKE, str(tmp_path))
    assert "Is a directory" in failure.value.stderr


@pytest.mark.exhaustive
def test_all_kernels(tmp_path: Path) -> None:
    """Compiled into an empty cache, then read from it, and nothing else is compiled."""
    said = python(tmp_path, "-m", "oddsengine_cli", "compile").stdout.splitlines()
    assert re.fullmatch(
        rf"oddsengine: compiling all \d+ kernels into {tmp_path}: about \d+ s in \d+ process(es)? ...", said[0]
    )
    assert said[-1].endswith(f"MB in {tmp_path}")
    version = python(tmp_path, "-m", "oddsengine_cli", "--version").stdout
    assert f"\nkernels: for this machine ({tmp_path})" in version
    compiled, used = json.loads(python(tmp_path, "-c", USE).stdout)
    assert compiled == 0
    assert {*used} <= {file.name for file in tmp_path.iterdir()}
    again = python(tmp_path, "-m", "oddsengine_cli", "compile").stdout
    assert again == f"oddsengine: all kernels in {tmp_path} are up to date\n"
    if not unsupported():
        assert python(tmp_path, "tests/support/kernels_used.py").stdout == ""
