"""Which tests run: the record of times, what is slow, and what a change reaches."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import affected, sharing, times
from support.forking import ran

ROOT = Path(__file__).parents[1]
# What a pytest of its own needs: other plugins take a second in each of its processes.
ALONE = {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
FILE = """
import time
import pytest

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    work(0.4)

@pytest.fixture
def own():
    work(0.2)

def test_one(shared, own):
    pass

def test_two(shared):
    work(0.1)

def test_three():
    pass
"""


def test_a_test_has_its_own_seconds_and_its_part_of_what_it_shares(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FILE)
    (tmp_path / "conftest.py").write_text(
        "from support import times\nfrom pathlib import Path\nRECORDER = times.Recorder()\n"
        "def pytest_configure(config): config.pluginmanager.register(RECORDER)\n"
        "def pytest_sessionfinish(): times.write(RECORDER.times(), Path('times.tsv'))\n"
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path,
        env={**os.environ, **ALONE}, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    found = times.read(tmp_path / "times.tsv")
    assert found.keys() == {"test_it.py::test_one", "test_it.py::test_two"}, "what takes no time has no line"
    assert found["test_it.py::test_one"] >= 0.4
    assert found["test_it.py::test_two"] >= 0.3
    assert sum(found.values()) >= 0.7


def test_what_a_forked_process_takes_is_counted_when_it_has_ended() -> None:
    before = times.processor_s()
    assert ran("import time\nwhile time.process_time() < 0.3: pass").returncode == 0
    assert times.processor_s() >= before + 0.3


def test_a_comparison_knows_that_one_run_was_slower() -> None:
    old = {"a/x::1": 1.0, "a/x::2": 2.0, "b/y::3": 3.0, "b/y::4": 0.5}
    new = {"a/x::1": 2.0, "a/x::2": 4.0, "b/y::3": 6.0, "b/y::5": 0.9}
    lines = times.moved(old, new)
    assert lines[0] == "13 s in all; 2.00 times as long as in the record, in the median"
    assert lines[1:3] == ["  -1.0 s  1.0 -> 0.0  b/y::4", "  +0.9 s  0.0 -> 0.9  b/y::5"]
    assert lines[-2:] == ["    6.9 s  b", "    6.0 s  a"]


def test_each_file_is_imported_in_one_worker(tmp_path: Path) -> None:
    imported = tmp_path / "imported"
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(
            f"from pathlib import Path\nPath({str(imported)!r}).open('a').write('{name}')\n"
            "def test_one(): pass\ndef test_two(): pass\n"
        )
    (tmp_path / "conftest.py").write_text(
        "from support import sharing\n"
        "def pytest_addoption(parser): parser.addoption('--shuffle')\n"
        "def pytest_configure(config): config.pluginmanager.register(sharing)\n"
    )
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", "-n", "3", "--shuffle", "1",
         "test_a.py", "test_b.py::test_two", "test_c.py", "test_d.py"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, **ALONE}, check=True,
    ).stdout  # fmt: skip
    assert sorted(imported.read_text()) == ["a", "b", "c", "d"]
    assert "[100%]" in said
    assert " 7 passed" in said


def test_workers_have_about_the_same_to_do() -> None:
    seconds = {Path(name): took for name, took in {"a": 5.0, "b": 4.0, "c": 3.0, "d": 1.0, "e": 0.5}.items()}
    parts = sharing.divide(seconds, seconds, 2)
    assert [[path.name for path in part] for part in parts] == [["a", "d", "e"], ["b", "c"]]
    assert sharing.divide(seconds, seconds, 7)[5:] == [[], []]


def test_what_a_file_takes_is_what_this_run_does_of_it() -> None:
    recorded = {"tests/x.py::slow": 2.0, "tests/x.py::quick": 0.2, "tests/x.py": 0.7, "tests/test_golden.py::a": 3.0}
    assert times.by_file(recorded, "quick") == {"tests/x.py": pytest.approx(0.9), "tests/test_golden.py": 3.0}
    assert times.by_file(recorded, "rest") == {"tests/x.py": 2.0}
    assert times.by_file(recorded, "most") == {"tests/x.py": pytest.approx(2.9), "tests/test_golden.py": 3.0}


def test_small_tests_of_a_file_are_recorded_together(tmp_path: Path) -> None:
    times.write({"a.py::1": 0.06, "a.py::2": 0.06, "a.py::3": 0.3, "b.py::1": 0.01}, tmp_path / "times")
    assert times.read(tmp_path / "times") == {"a.py": 0.1, "a.py::3": 0.3}


def test_the_record_is_of_files_that_there_are() -> None:
    files = {test.partition("::")[0] for test in times.read()}
    assert files
    missing = sorted(file for file in files if not (ROOT / file).is_file())
    assert missing == [], "run `make times`"


def test_a_change_reaches_its_importers_its_folder_and_its_examples() -> None:
    chosen = affected.select(["oddsengine/maths/calculators.py"], unchanged("oddsengine/maths/calculators.py"))
    assert {"oddsengine/maths/calculators.py", "tests/maths", affected.GOLDEN} <= {*chosen}
    assert "tests/maths/test_calculators.py" in chosen, "it uses the public names only"
    assert "tests/feeds/test_kalshi.py" not in chosen


def unchanged(name: str) -> dict[str, bytes]:
    return {name: (ROOT / name).read_bytes()}


@pytest.mark.parametrize(
    "changed", ["oddsengine/catalog/fair.toml", "tests/conftest.py", "oddsengine/_jit.py", "pyproject.toml"]
)
def test_what_everything_depends_on_reaches_everything(changed: str) -> None:
    assert affected.select([changed], {}) == affected.EVERYTHING


def test_a_changed_kernel_reaches_everything_and_one_that_has_moved_does_not() -> None:
    name = "oddsengine/maths/closed_forms.py"
    now = (ROOT / name).read_bytes()
    assert affected.select([name], {name: b"\n\n" + now}) != affected.EVERYTHING
    assert affected.select([name], {name: now.replace(b"@fused", b"@kernel", 1)}) == affected.EVERYTHING


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("docs/ev.md", "tests/test_docs.py"), ("deploy/alerts.yaml", "tests/deploy"), (".ci/run", "tests/test_ci.py"),
        ("conda/recipe.yaml", "tests/test_packaging.py"),
        ("service/oddsengine_service/page/lists.js", "tests/service"),
        ("tests/maths/test_odds.py", "tests/maths/test_odds.py"),
        ("tests/naive/close.py", "tests/pricing/test_close.py"), ("setup.py", "tests"),
    ],
)  # fmt: skip
def test_what_is_no_module_reaches_the_tests_that_read_it(changed: str, reached: str) -> None:
    before = unchanged(changed) if changed.endswith(".py") else {}
    assert reached in affected.select([changed], before)


def test_a_module_that_is_gone_reaches_its_folder() -> None:
    assert "tests/maths" in affected.select(["oddsengine/maths/gone.py"], {"oddsengine/maths/gone.py": b"x = 1\n"})
