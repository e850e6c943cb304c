"""Workers divide the files before they collect: each file is imported in one of them, instead of in all.

pytest -n 2                     each has about the same seconds to do, by the record of times
pytest -n 2 --shuffle SEED      the same in a random order, with random neighbours
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from support import times
from support.effort import LEVEL
from xdist.scheduler import EachScheduling  # type: ignore[import-untyped]

TESTS = Path(__file__).parents[1]


class Scheduling(EachScheduling):  # type: ignore[misc]  # xdist has no types
    """Every worker runs all that it has collected."""

    def schedule(self) -> None:
        """Say how many tests there are in all before the first one runs."""
        session = self.config.pluginmanager.getplugin("session")
        assert isinstance(session, pytest.Session)
        session.testscollected = sum(map(len, self.node2collection.values()))
        super().schedule()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    """Whatever `--dist` says: another scheduler would want the same tests in all workers."""
    return Scheduling(config)


def pytest_configure(config: pytest.Config) -> None:
    """Ask a worker for its files only."""
    seed = config.getoption("--shuffle")
    worker = getattr(config, "workerinput", {"workercount": 1, "workerid": "gw0"})
    if config.getoption("numprocesses") or (worker["workercount"] == 1 and not seed):
        return
    arguments = of_files(config.args, config.invocation_params.dir)
    recorded = times.by_file(times.read(), LEVEL)
    seconds = {path: recorded.get(path.relative_to(config.rootpath).as_posix(), 0.05) for path in arguments}
    order = sorted(seconds, key=lambda path: (-seconds[path], path))
    if seed:
        random.Random(seed).shuffle(order)
    mine = divide(order, seconds, worker["workercount"])[int(worker["workerid"].removeprefix("gw"))]
    config.args[:] = [argument for path in mine for argument in arguments[path]]


def of_files(arguments: Iterable[str], start: Path) -> dict[Path, list[str]]:
    """The files that arguments of pytest name, each with those that are about it."""
    out: defaultdict[Path, list[str]] = defaultdict(list)
    for argument in arguments:
        path = start / argument.partition("::")[0]
        if path.is_file():
            out[path].append(argument)
        for below in path.rglob("*.py"):
            if below.name.startswith("test_") or (TESTS not in below.parents and below.name != "__main__.py"):
                out[below] = [str(below)]  # modules of the package have examples in docstrings
    return dict(out)


def divide(order: Iterable[Path], seconds: Mapping[Path, float], workers: int) -> Sequence[list[Path]]:
    """Give each file in turn to the worker that has least to do."""
    parts: list[list[Path]] = [[] for _ in range(workers)]
    load = [0.0] * workers
    for path in order:
        least = load.index(min(load))
        parts[least].append(path)
        load[least] += seconds[path]
    return parts
