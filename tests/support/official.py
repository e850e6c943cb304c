"""Clients that others wrote for the venues, in an environment of their own: they want other packages than we do.

Each is installed once, into `build/official`. OFFICIAL_CLIENTS names another folder with a virtual environment. Some
want Python 3.13.
"""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGES = {
    "betfair_parser": "betfair_parser==0.21.1", "betfairlightweight": "betfairlightweight==2.24.0",
    "kalshi_python_sync": "kalshi_python_sync==3.34.0", "matchbook": "matchbook-sdk==0.1.2",
    "odds_api": "odds-api-io==1.1.0", "polymarket": "polymarket-client==0.14.0",
    "py_clob_client_v2": "py_clob_client_v2==1.2.1", "sports_odds_api": "sports-odds-api==1.3.0",
}  # fmt: skip
_FOLDER = Path(os.environ.get("OFFICIAL_CLIENTS") or Path(__file__).parents[2] / "build" / "official")
_CI_PYTHON = Path(__file__).parents[2] / ".ci" / "python"
_INSTALL_S = 600.0
_RUN_S = 60.0


def ran(module: str, code: str, *words: object) -> Any:
    """What a script prints as JSON that imports a client; the test is skipped if that cannot be installed."""
    done = subprocess.run(
        [_python(module), "-c", code, *map(str, words)], capture_output=True, text=True, timeout=_RUN_S, check=False,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def _python(module: str) -> str:
    """The interpreter of the environment, with a client in it."""
    python = _FOLDER / "bin" / "python"
    _FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with (_FOLDER.parent / "official.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not python.exists():
            newest = subprocess.run([_CI_PYTHON, "3.13"], capture_output=True, text=True, check=False).stdout.strip()
            subprocess.run([newest or sys.executable, "-m", "venv", _FOLDER], check=True, timeout=_INSTALL_S)
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False, timeout=_RUN_S)
        if found.returncode:
            made = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", PACKAGES[module]],
                capture_output=True, text=True, check=False, timeout=_INSTALL_S,
            )  # fmt: skip
            if made.returncode:
                pytest.skip(f"{PACKAGES[module]} cannot be installed: {made.stderr.strip().splitlines()[-1:]}")
    return str(python)
