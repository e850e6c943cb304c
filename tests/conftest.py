"""Hypothesis profiles, of more and more examples; HYPOTHESIS_PROFILE chooses one.

The default draws the same examples every time, so that a change is judged by what it changed; the others explore.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import oddsengine

for name, examples in {"dev": 50, "ci": 500, "nightly": 20_000}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=name == "dev",
        deadline=None,  # the first example of a kernel compiles it
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile before anything is judged, so that no test waits for it in its middle."""
    oddsengine.compile_kernels()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that answers on a socket; imported only where it is asked for."""
    from service_running import running

    with running(tmp_path_factory.mktemp("service")) as server:
        yield server
