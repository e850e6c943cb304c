"""Which tests run, and what all of them share.

Hypothesis profiles have more and more examples; HYPOTHESIS_PROFILE chooses one. The first three draw the same examples
every time, so that a change is judged by what it changed; the others explore. `support/effort.py` says how much runs.
"""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from support import sharing, times
from support.effort import ALL, LEVEL

import oddsengine
from oddsengine._cache import PREBUILT
from oddsengine._compilers import USES, listed
from oddsengine._installation import VARIABLE
from oddsengine._jit import ENTRY

if sys.platform != "win32":
    import fcntl

gc.disable()  # until everything is imported and collected

# Without files of bytecode each worker, and each process that a test starts, compiles every module again: where an
# environment forbids them, collecting takes twice as long.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for name, examples in {"few": 10, "quick": 8, "dev": 50, "ci": 500, "nightly": 20_000}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=name in ("few", "quick", "dev"),
        deadline=None,  # the first example of a kernel compiles it
        suppress_health_check=[HealthCheck.too_slow],
        phases=[
            phase for phase in Phase if name != "few" or phase is not Phase.shrink
        ],  # mutation tests need no small example
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev" if ALL else "quick"))
if settings().derandomize:
    # Hypothesis also draws what is written in our modules, as far as they are loaded: the examples would depend on the
    # files that ran before, and reading the modules takes each worker seconds.
    assert callable(providers._get_local_constants)
    providers._get_local_constants = Constants


TIMES = times.read()
RECORDER = times.Recorder()
PASSED = "oddsengine/passed"  # in pytest's cache: the tests that passed in the last run of `make test`
DONE = "oddsengine/done"  # and the files that have no others


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="write the processor time of each test to a file")
    parser.addoption("--shuffle", metavar="SEED", help="run the files in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Measure each test, and give kernels that are compiled a folder of their own: none of the package may be in it."""
    config.pluginmanager.register(sharing)
    config.pluginmanager.register(RECORDER)
    if not hasattr(config, "workerinput") and _watches_kernels():
        folder = tempfile.mkdtemp(prefix="oddsengine-tests-")
        os.environ[VARIABLE] = folder
        config.stash[COMPILED] = folder


COMPILED = pytest.StashKey[str]()


def _watches_kernels() -> bool:
    plain = os.environ.get("NUMBA_DISABLE_JIT") or os.environ.get("KERNELS") == "lazy" or VARIABLE in os.environ
    return not plain and any(PREBUILT.glob("*.nbc"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Only the library has examples in docstrings; to look for them in the tests takes each worker seconds."""
    return [each for each in (yield) if type(each) is pytest.Module]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, and choose what runs."""
    for item in items:
        if times.slow(item.nodeid, TIMES.get(item.nodeid, 0.0)):
            item.add_marker("slow")
    passed = set(config.cache.get(PASSED, [])) if LEVEL == "rest" and config.cache is not None else set()
    marks = {"quick": ("exhaustive", "slow"), "all": ()}.get(LEVEL, ("exhaustive",))
    left_out = [item for item in items if item.nodeid in passed or any(map(item.get_closest_marker, marks))]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of which `make test` has run everything are not imported again by `make test-slow`."""
    return True if LEVEL == "rest" and os.path.relpath(collection_path, config.rootpath) in _done(config) else None


@cache
def _done(config: pytest.Config) -> frozenset[str]:
    return frozenset(config.cache.get(DONE, []) if config.cache is not None else ())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        RAN.append(report.nodeid)
    elif not report.passed:
        LEFT.add(report.nodeid.partition("::")[0])


RAN: list[str] = []
LEFT = {test.partition("::")[0] for test, seconds in TIMES.items() if times.slow(test, seconds)}
"""Files of which something is left: tests that are slow, were skipped or have failed."""


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what was measured, and fail if a kernel of the package was compiled."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    if path := config.getoption("--times"):
        times.write(RECORDER.times(), Path(path))
    if LEVEL == "quick" and config.cache is not None:
        config.cache.set(PASSED, sorted(RAN))
        chosen = config.option.keyword or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        done = set() if chosen or session.exitstatus else {test.partition("::")[0] for test in RAN} - LEFT
        config.cache.set(DONE, sorted(done))
    if folder := config.stash.get(COMPILED, ""):
        made = {path.name.partition("-")[0] for path in Path(folder).glob("oddsengine.*.nbc")}
        named = {each.kernel for each in listed(*USES)}  # those that Python calls in tests only are not
        compiled = sorted(name for name in made if name in named or not name.endswith(ENTRY))
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(VARIABLE, None)
        if compiled:
            print(f"\nkernels of the package were compiled, which `make setup` should have made: {', '.join(compiled)}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_finish() -> None:
    """What stays until the end is not looked at again by collections of garbage; these are few, as in a node."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load kernels before the first test, so that no test waits for it; one worker compiles for all of them.

    Mutation tests compile only those in use.
    """
    if os.environ.get("NUMBA_DISABLE_JIT") or os.environ.get("KERNELS") == "lazy":
        return
    with (tmp_path_factory.getbasetemp().parent / "compiling").open("w") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        oddsengine.load_kernels()


@pytest.fixture(scope="session", autouse=True)
def trusted(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Clients trust one certificate: reading all of them takes 20 ms per client, and no test leaves this machine."""
    try:
        import certifi
    except ImportError:  # the library alone is installed: there are no clients
        return
    first, end, _ = Path(certifi.where()).read_text(encoding="ascii").partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("trusted") / "one.pem"
    file.write_text(first + end, encoding="ascii")
    os.environ["SSL_CERT_FILE"] = str(file)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that answers on a socket, for one file of tests: what others did to it would depend on their order.

    Imported only where it is asked for.
    """
    from support.service_running import running

    with running(tmp_path_factory.mktemp("service")) as server:
        yield server


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A node with streams for the tests of a module, which may have settings of it in `SERVED`."""
    from support.stream_running import Served

    node = Served(tmp_path_factory.mktemp("served"), **getattr(request.module, "SERVED", {}))
    yield node
    node.stop()
    assert "failure" not in node.logged.text, node.logged.text
