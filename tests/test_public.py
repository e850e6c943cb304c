"""The names that people import."""

import inspect
import re
import subprocess
import sys

import oddsengine


def test_all_is_exported() -> None:
    assert len(set(oddsengine.__all__)) == len(oddsengine.__all__)
    for name in oddsengine.__all__:
        assert getattr(oddsengine, name) is not None


def test_nothing_public_is_missing_from_all() -> None:
    for name in oddsengine.__all__:
        getattr(oddsengine, name)  # those that load late
    public = {name for name, value in vars(oddsengine).items() if not (name.startswith("_") or inspect.ismodule(value))}
    public -= {"Any"}
    assert dir(oddsengine) == sorted(oddsengine.__all__)
    late = {name for name in oddsengine.__all__ if name not in vars(oddsengine)}
    futures = {"FUTURES_SCHEMA", "Futures", "FuturesBoard", "FuturesField", "find_futures"}
    history = {"audit", "calibrate", "scan_history", "SCAN_SCHEMA", "Backtest", "Strategy", "TRADES_SCHEMA", "Trader"}
    history |= {"backtest", "tear_sheet", "write_tear_sheet"}
    assert late == {"compile_kernels", "World", "Tape", "TapeError", "replay", "resume"} | futures | history
    assert public | late == {name for name in oddsengine.__all__ if not name.startswith("_")}


def test_public_functions_say_what_they_do() -> None:
    for name in oddsengine.__all__:
        value = getattr(oddsengine, name)
        if callable(value):
            assert value.__doc__, name


def test_finders_say_what_each_word_is() -> None:
    """By themselves: whoever asks for help sees no other page."""
    for name in oddsengine.__all__:
        value = getattr(oddsengine, name)
        if name.startswith("find_"):
            text = inspect.getdoc(value) or ""
            given = re.findall(r"^([a-z_]+(?:, [a-z_]+)*)$", text, re.MULTILINE)
            assert {word for line in given for word in line.split(", ")} >= set(inspect.signature(value).parameters)
            assert "See the module" not in text
            assert {"Examples"} <= set(text.splitlines())


def test_importing_loads_no_compiler() -> None:
    code = "import sys, oddsengine; sys.exit(any(m in sys.modules for m in ('numba', 'llvmlite')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
