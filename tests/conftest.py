"""Hypothesis profiles, of more and more examples; HYPOTHESIS_PROFILE chooses one.

The first three draw the same examples every time, so that a change is judged by what it changed; the others explore.
`make test` uses `quick` and leaves out what is marked `exhaustive`; `make test-all` uses `dev` and leaves out nothing.
"""

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from support.effort import ALL

import oddsengine
from oddsengine import query

if sys.platform != "win32":
    import fcntl

gc.disable()  # until everything is imported and collected

# Without files of bytecode each worker, and each process that a test starts, compiles every module again: where an
# environment forbids them, collecting takes twice as long.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for name, examples in {"few": 10, "quick": 12, "dev": 50, "ci": 500, "nightly": 20_000}.items():
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


TESTS = Path(__file__).parent
LONGEST = (
    "test_golden", "service/stream/test_slow", "service/test_alerts", "service/scale/test_scale", "commands/test_cli",
    "backtesting/test_audit", "service/contract/test_fuzz", "test_docs", "tape/test_tape", "pricing/test_close",
    "backtesting/test_strategy", "service/test_asyncapi", "service/test_http", "live/test_engine",
    "simulate/test_world", "history/test_clv", "service/v4/test_v4", "board/test_open", "plot/test_labels",
    "guards/test_units", "feeds/test_fuzz", "service/routes/test_opportunities", "service/routes/test_odds",
    "compiling/test_compilation", "guards/test_verdicts", "compiling/test_prebuild", "backtesting/test_prices",
    "sources/test_polling", "guards/test_other_games", "test_packaging", "backtesting/test_scan",
    "detection/test_model_input", "detection/test_laws", "service/routes/test_history", "simulate/test_scoreboards",
    "live/test_exact", "backtesting/test_graded", "service/scale/test_contract", "service/test_strangers",
    "live/test_reading", "futures/test_futures", "live/test_interruption", "service/stream/test_stream",
    "service/contract/test_conformance", "deploy/test_deploy", "matching/test_index", "service/test_app",
    "service/stream/test_replay", "live/test_rows",
)  # fmt: skip
"""Files that take longest: they begin first, so that no worker is left with one of them at the end."""


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Only the library has examples in docstrings; to look for them in the tests takes each worker seconds."""
    return [each for each in (yield) if type(each) is pytest.Module]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first; without what is exhaustive, unless it is asked for."""
    order = {TESTS / f"{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))
    if not ALL:
        left_out = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


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
        query.warm()


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


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that answers on a socket; imported only where it is asked for."""
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
