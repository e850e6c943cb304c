"""The page of a benchmark run, of a file that pytest-benchmark really wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import report

CLOCK = """
seconds = 0.0

def clock():
    sleep(1e-9)  # its precision is looked for
    return seconds

def sleep(for_s):
    global seconds
    seconds += for_s
"""
SOURCE = """
import naps
import pytest

@pytest.mark.benchmark(group="naps")
@pytest.mark.parametrize("ms", [4, 1])
def test_nap(benchmark, ms):
    benchmark.extra_info["ms"] = ms
    benchmark.pedantic(naps.sleep, (ms / 1e3,), rounds=3)

def test_alone(benchmark):
    benchmark.pedantic(naps.sleep, (0.002,), rounds=3)
"""


def test_a_page_has_a_table_per_group_with_ratios(tmp_path: Path) -> None:
    (tmp_path / "naps.py").write_text(CLOCK)
    (tmp_path / "test_naps.py").write_text(SOURCE)
    words = ["-p", "no:cacheprovider", "--benchmark-only", "--benchmark-json=run.json", "test_naps.py"]
    words.append("--benchmark-timer=naps.clock")
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST")
    }  # of these tests' own run
    command = [sys.executable, "-m", "pytest", "-q", *words]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    run = json.loads((tmp_path / "run.json").read_text())
    lines = report.page(run).splitlines()
    assert lines[0] == "# Benchmarks"
    assert any("Python " in line for line in lines[:6])
    first, second = (line.split(" | ") for line in lines if line.startswith("| nap["))
    assert [first[0], second[0]] == ["| nap[1]", "| nap[4]"]
    assert [first[4], first[5]] == ["1", "ms 1 |"]
    assert float(second[4]) == 4.0
    (alone,) = (line for line in lines if line.startswith("| alone"))
    assert alone.split(" | ")[4] == ""
    assert lines.index("## naps") != lines.index("## test_naps")


@pytest.mark.parametrize(
    ("seconds", "said"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.56789e-6, "4.57 us"), (3e-10, "0.3 ns")]
)
def test_durations(seconds: float, said: str) -> None:
    assert report.duration(seconds) == said
