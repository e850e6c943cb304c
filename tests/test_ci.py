"""The scripts of `.ci`, as far as that takes a moment: which interpreters they need, and what they list as skipped."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CI = ROOT / ".ci"
CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
VERSIONS = [each.rpartition(" ")[2] for each in CLASSIFIERS if each.startswith("Programming Language :: Python :: 3.")]
MISSING = "9.9"


def run(script: str, *words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CI / script, *words], env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("script", sorted(CI.iterdir()), ids=lambda path: path.name)
def test_a_script_is_one(script: Path) -> None:
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


def test_the_versions_are_those_of_the_package() -> None:
    assert run("python").stdout.split() == VERSIONS


def test_an_interpreter_has_the_version_that_was_asked_for() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    done = run("python", version)
    assert done.returncode == 0, done.stderr
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    assert subprocess.check_output([done.stdout.strip(), "-c", code], text=True) == f"{version}\n"


@pytest.mark.parametrize("given", [MISSING, f"{VERSIONS[0]} {MISSING}"])
def test_a_run_fails_where_an_interpreter_is_missing(given: str) -> None:
    """At once; it ends after a while if it does not."""
    done = run("run", SMOKE_PYTHONS=given, CI_TIMEOUT="20", CI_BOUNDED="")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no Python {MISSING}" in done.stderr
    assert "SMOKE_PYTHONS" in done.stderr


def test_the_wheel_is_not_passed_on_a_missing_interpreter(tmp_path: Path) -> None:
    done = run("smoke", tmp_path, MISSING)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no Python {MISSING}" in done.stderr


OUTPUTS = {
    "test": "SKIPPED [1] tests/deploy/test_deploy.py:9: promtool is not installed\n"
    "SKIPPED [29] tests/support/chromium.py:24: it takes a minute of Chromium: `make page` runs it\n"
    "2409 passed, 30 skipped in 170.00s\n",
    "page": "SKIPPED [1] tests/service/page/test_page.py:52: no Chromium: neither this nor that\n"
    "SKIPPED [28] tests/service/page/test_page.py:99: no Chromium: neither this nor that\n"
    "FAILED tests/service/page/test_page.py::test_it\n",
    "smoke": "skipped: Python 3.12: kernels ran as plain Python\nsmoke: the wheel works on Python 3.12, uncompiled\n",
}


@pytest.mark.parametrize("kernels", [True, False])
def test_what_was_skipped_is_listed(kernels: bool, tmp_path: Path) -> None:
    for name, text in OUTPUTS.items():
        (tmp_path / name).write_text(text)
    if kernels:
        with (tmp_path / "smoke").open("a") as file:
            file.write("smoke: the wheel works on Python 3.11, with its kernels\n")
    done = run("skipped", tmp_path, *[version for version in VERSIONS if version != "3.13"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "exhaustive tests: make test-all",
        "Python 3.13: not in SMOKE_PYTHONS",
        "Python 3.12: kernels ran as plain Python",
        *([] if kernels else ["kernels: those of the wheel were not tried"]),
        "no Chromium: neither this nor that (tests: 29)",
        "promtool is not installed (tests: 1)",
    ]
