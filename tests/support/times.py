"""Processor time of tests: measured in every run, and a record of it that says which tests are slow.

`tests/times.tsv` has a line for each test that takes a tenth of a second or more: processor seconds of the test, its
fixtures and the processes that it ended, and its id. What a fixture of a file, a folder or a run takes is divided among
the tests that use it. A file's other tests have one line together. `make times` writes the record; nobody edits it.

    PYTHONPATH=tests python -m support.times OLD NEW ...      the ten tests that moved most, and the seconds of folders
"""

import os
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from support.forking import forked_s

RECORD = Path(__file__).parents[1] / "times.tsv"
SLOW_S = 0.5
GOLDEN = "tests/test_golden.py"
_LEAST_S = 0.1  # of a line of the record
_MOVED = 10  # lines of a comparison
Times = Mapping[str, float]


def processor_s() -> float:
    """Processor seconds of this process and those that it has waited for, forked ones too."""
    return sum(os.times()[:4]) + forked_s()


def read(path: Path = RECORD) -> dict[str, float]:
    """Read a record: processor seconds by the id of a test; empty if there is none."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {test: float(seconds) for seconds, _, test in (line.partition("\t") for line in lines)}


def write(times: Times, path: Path = RECORD) -> None:
    """Write a record, in order of the ids."""
    kept: defaultdict[str, float] = defaultdict(float)
    for test, seconds in times.items():
        kept[test if seconds >= _LEAST_S else test.partition("::")[0]] += seconds
    lines = [f"{seconds:.1f}\t{test}\n" for test, seconds in sorted(kept.items()) if seconds >= _LEAST_S / 2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def slow(test: str, seconds: float) -> bool:
    """Whether a test is left to `.ci/run` and `make test-slow`; golden tapes never are."""
    return "::" in test and seconds >= SLOW_S and not test.startswith(GOLDEN)


def by_file(times: Times, level: str) -> dict[str, float]:
    """Seconds of the tests of a file that a level of effort runs."""
    total: defaultdict[str, float] = defaultdict(float)
    for test, seconds in times.items():
        if level not in ("quick", "rest") or slow(test, seconds) == (level == "rest"):
            total[test.partition("::")[0]] += seconds
    return dict(total)


def by_folder(times: Times) -> dict[str, float]:
    """Seconds by folder, the largest first; doctests are those of the package's folders."""
    total: defaultdict[str, float] = defaultdict(float)
    for test, seconds in times.items():
        total[test.partition("::")[0].rpartition("/")[0]] += seconds
    return dict(sorted(total.items(), key=lambda each: -each[1]))


class Recorder:
    """A plugin that measures tests; `times()` has what has been reported so far."""

    def __init__(self) -> None:
        self._inside = 0.0  # of shared fixtures, while a test is set up
        self._shared: dict[str, float] = {}  # fixtures that this test was the first to need
        self._own: defaultdict[str, float] = defaultdict(float)  # by test
        self._fixtures: defaultdict[str, float] = defaultdict(float)  # by fixture
        self._users: defaultdict[str, set[str]] = defaultdict(set)

    # ---- in the process of the test ----

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        """Set aside what a shared fixture takes, without the fixtures that it needs."""
        if fixturedef.scope == "function":
            return (yield)
        before, inside = processor_s(), self._inside
        try:
            return (yield)
        finally:
            took = processor_s() - before
            self._shared[_name(fixturedef, request.node)] = took - (self._inside - inside)
            self._inside = inside + took

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._before = processor_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Give the report of a phase its seconds."""
        report = yield
        now = processor_s()
        report.processor_s = now - self._before - self._inside
        report.shared, self._shared = self._shared, {}
        report.uses = [*_uses(item)] if report.when == "setup" else []
        self._before, self._inside = now, 0.0
        return report

    # ---- where reports arrive ----

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._own[report.nodeid] += report.processor_s
        for name, seconds in report.shared.items():
            self._fixtures[name] += seconds
        for name in report.uses:
            self._users[name].add(report.nodeid)

    def times(self) -> dict[str, float]:
        """Seconds of each test, with its part of the fixtures that it shares."""
        out = dict(self._own)
        for name, seconds in self._fixtures.items():
            for test in self._users[name]:
                out[test] += seconds / len(self._users[name])
        return out


def _name(fixture: Any, node: Any) -> str:
    """A shared fixture, as far as it is the same for other tests."""
    place = "" if fixture.scope == "session" else node.nodeid.partition("::")[0]
    return f"{fixture.baseid}::{fixture.argname} {place}"


def _uses(item: Any) -> Iterable[str]:
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for of in definitions.values():
        if of[-1].scope != "function":
            yield _name(of[-1], item)


def moved(old: Times, new: Times) -> list[str]:
    """What takes longer or less long than before, given the speed of both runs, and the folders."""
    both = [test for test in new if old.get(test, 0.0) >= _LEAST_S]
    speed = median(new[test] / old[test] for test in both) if both else 1.0
    by = {test: new.get(test, 0.0) - speed * old.get(test, 0.0) for test in (old.keys() | new.keys())}
    most = sorted(by, key=lambda test: -abs(by[test]))[:_MOVED]
    lines = [f"{sum(new.values()):.0f} s in all; {speed:.2f} times as long as in the record, in the median"]
    lines += [
        f"{by[test]:+6.1f} s  {speed * old.get(test, 0.0):.1f} -> {new.get(test, 0.0):.1f}  {test}" for test in most
    ]
    return lines + [f"{seconds:7.1f} s  {folder or '.'}" for folder, seconds in by_folder(new).items()]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"{__doc__}")
    before, *after = (read(Path(path)) for path in sys.argv[1:])
    print(*moved(before, {test: seconds for times in after for test, seconds in times.items()}), sep="\n")
