"""The list of kernels, and the processes that compile it."""

import importlib
import os
import pkgutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import oddsengine
from oddsengine import _compilers
from oddsengine._compilers import INNER, REST, SCAN, Listed, compile_side_by_side, listed, signature_of, text_of
from oddsengine._jit import ENTRY, dispatcher_named, is_kernel

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

LIST = listed(SCAN, REST, INNER)
AGAIN = "run python scripts/record_kernels.py"
TWICE = {"oddsengine.identity.layout.enrol"}  # for a table, and for a live board


def declared() -> set[str]:
    """The kernels of the package that are compiled by themselves."""
    found = set()
    for module in pkgutil.walk_packages(oddsengine.__path__, "oddsengine."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if is_kernel(value) and "inline" not in value.options:
                    found.add(f"{value.py_func.__module__}.{value.py_func.__qualname__}")
    return found


def test_the_list_has_every_kernel() -> None:
    assert {each.kernel.removesuffix(ENTRY) for each in LIST} == declared(), AGAIN


def test_a_kernel_has_one_signature() -> None:
    """A second one would be compiled while somebody waits."""
    assert {kernel for kernel, count in Counter(each.kernel for each in LIST).items() if count > 1} == TWICE


def test_the_kernels_that_one_calls_are_in_the_list() -> None:
    names = {each.kernel for each in LIST}
    for each in LIST:
        assert names.issuperset(each.calls), f"{each.kernel}: {AGAIN}"


def test_types_are_read_as_they_were_written() -> None:
    for each in LIST:
        assert text_of(signature_of(each.signature)) == each.signature


def test_the_types_are_those_of_calls() -> None:
    """What this process has called by now has no other types."""
    oddsengine.load_kernels()
    seen = 0
    by_kernel: dict[str, set[tuple[object, ...]]] = {}
    for each in LIST:
        by_kernel.setdefault(each.kernel, set()).add(signature_of(each.signature))
    for name, types in by_kernel.items():
        made = set(dispatcher_named(name).overloads)
        assert made <= types, f"{name}: {AGAIN}"
        seen += len(made)
    assert seen >= len(listed(SCAN, REST))


def kernel(name: str, *calls: str, seconds: float = 1.0) -> Listed:
    return Listed(seconds, REST, name, calls, "")


def test_a_kernel_waits_for_those_that_it_calls() -> None:
    kernels = [kernel("outer", "inner"), kernel("large", seconds=5.0), kernel("inner"), kernel("small", seconds=0.1)]
    queue = _compilers._Queue(kernels)
    first, second, third = (queue.take() for _ in range(3))
    assert first is not None
    assert [each.kernel for each in (first, second, third) if each] == ["large", "inner", "small"]
    later: list[Listed | None] = []
    waiting = threading.Thread(target=lambda: later.append(queue.take()))
    waiting.start()
    queue.put(first, ["large.nbc"])
    assert not later
    assert second is not None
    queue.put(second, ["inner.nbc"])
    waiting.join(10)
    assert [each.kernel for each in later if each] == ["outer"]
    assert queue.take() is None
    assert queue.files == {"large.nbc", "inner.nbc"}


def test_what_waits_ends_when_it_is_stopped() -> None:
    queue = _compilers._Queue([kernel("outer", "inner"), kernel("inner")])
    assert queue.take() is not None
    later: list[Listed | None] = []
    waiting = threading.Thread(target=lambda: later.append(queue.take()))
    waiting.start()
    queue.stop()
    waiting.join(10)
    assert later == [None]


def test_a_few_kernels_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process prints meanwhile is no answer."""
    monkeypatch.setenv("NUMBA_DUMP_BYTECODE", "1")
    few = [each for each in LIST if each.kernel.startswith("oddsengine.tables.timestamps.")]
    assert {name for each in few for name in each.calls} <= {each.kernel for each in few}
    said: list[str] = []
    files = compile_side_by_side(few, tmp_path, said.append, portable=False)
    assert {name.rpartition("-")[0] for name in files} == {each.kernel for each in few}
    assert len(files) == len(few)
    assert files == {file.name for file in tmp_path.iterdir()}


def test_a_kernel_that_cannot_be_compiled_ends_all(tmp_path: Path) -> None:
    wrong = Listed(1.0, REST, "oddsengine.tables.timestamps._digits", (), "float64; float64")
    later = [kernel(f"later{at}", wrong.kernel) for at in range(9)]
    with pytest.raises(
        OSError, match=r"^kernels cannot be compiled: oddsengine\.tables\.timestamps\._digits: TypeError: Signature"
    ):
        compile_side_by_side([wrong, *later], tmp_path, print, portable=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("why", ["frozen", "compiler"])
def test_some_processes_start_no_others(why: str, tmp_path: Path) -> None:
    """An application that is one file would start itself; a compiler would start compilers."""
    code = (
        f"import sys; sys.frozen = {why == 'frozen'}; from oddsengine import _compilers; print(_compilers.may_start())"
    )
    env = {**os.environ, **({"ODDSENGINE_COMPILER": "1"} if why == "compiler" else {})}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


@pytest.mark.exhaustive  # 50 s of processor time: it compiles the kernels of a scan
def test_the_first_call_compiles_side_by_side(tmp_path: Path) -> None:
    code = "import oddsengine as oe, oddsengine.tables.sample as s; oe.find_ev(oe.read_odds(s.SAMPLE_BOARD))"
    env = {**os.environ, "ODDSENGINE_CACHE": str(tmp_path), "NUMBA_OPT": "2"}
    first, again = (
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=900, check=True)
        for _ in range(2)
    )
    lines = first.stderr.splitlines()
    assert lines[0].startswith("oddsengine: compiling ")
    assert " kernels, once on this machine: about " in lines[0]
    assert lines[0].endswith("(the prebuilt ones are not for NUMBA_OPT=2) ...")
    assert all(line.endswith("s left ...") for line in lines[1:-1])
    assert lines[-1].endswith(f"s; they are kept in {tmp_path}")
    assert again.stderr == ""
