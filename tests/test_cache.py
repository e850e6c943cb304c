"""Where compiled kernels are kept, and that nothing on a disk makes an answer wrong."""

import builtins
import dis
import importlib
import json
import os
import pickle
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, cast

import numba
import numpy as np
import pytest
from support.forking import ran

import oddsengine
from oddsengine._cache import Folders, KernelCache, described, stamp

CODE = """
import json
from oddsengine import devig
from oddsengine._jit import REPORTER
print(json.dumps([list(devig([1.9, 2.1], "multiplicative")), REPORTER.compiled]))
"""
BOARD = """
import json
from oddsengine.live.engine import Engine
from oddsengine.simulate import World
engine = Engine()
view = engine.view(min_ev=-2.0, min_profit=-3.0, max_hold=9.0, min_middle_ev=None, keep=True)
books = ["pinnacle", "circa", "fanduel", "betmgm", "draftkings"]
for batch in World(3, events=2, books=books, live=0.5, hazards=True).run(6.0):
    engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
print(json.dumps([engine.state_hash(views=False), view.ids()]))
"""
FAIR = [0.525, 0.475]  # about
TIMEOUT_S = 300


class Ran(NamedTuple):
    """What a process said."""

    answer: list[float]
    compiled: int
    said: list[str]


def run(environ: Mapping[str, str]) -> Ran:
    """De-vig one market in a process of its own."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if name not in ("ODDSENGINE_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE], env={**plain, "PYTHONDONTWRITEBYTECODE": "1", **environ}, capture_output=True,
        text=True, timeout=TIMEOUT_S, check=False, cwd=sys.prefix,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer, compiled = json.loads(done.stdout)
    assert answer == pytest.approx(FAIR, abs=0.01)
    return Ran(answer, compiled, done.stderr.splitlines())


COMPILES = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


@COMPILES
@pytest.mark.exhaustive
def test_kernels_do_the_same_as_plain_python() -> None:
    """Without numba's compiler, as coverage is measured: numbers of numpy overflow there that wrap in machine code."""
    compiled, plain = ran(BOARD), ran(BOARD, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, forked=False)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout == compiled.stdout
    assert all(json.loads(plain.stdout)[1].values())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which nothing can be written: `__pycache__` is a file."""
    place = tmp_path_factory.mktemp("installed")
    package = Path(oddsengine.__file__).parent
    shutil.copytree(package, place / "oddsengine", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [place / "oddsengine", *(place / "oddsengine").rglob("*/")]:
        (folder / "__pycache__").touch()
    return place


def without_a_home(installed: Path, temporary: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(installed), "HOME": "/dev/null", "TMPDIR": str(temporary)}


@COMPILES
@pytest.mark.exhaustive
def test_without_a_folder_that_lasts_kernels_are_kept_among_temporary_files(installed: Path, tmp_path: Path) -> None:
    first = run(without_a_home(installed, tmp_path))
    assert first.compiled
    (notice,) = [line for line in first.said if "cached" in line]
    (folder,) = tmp_path.glob("oddsengine-*")
    assert notice.startswith(f"oddsengine: compiled kernels are cached in the temporary folder {folder}")
    assert "ODDSENGINE_CACHE" in notice
    assert folder.stat().st_mode & 0o077 == 0
    assert run(without_a_home(installed, tmp_path)) == (first.answer, 0, [])


# ---- files, with a kernel that compiles quickly ----


def third(x: float) -> float:
    return x / 3.0


class Compiled(NamedTuple):
    """What came of a call with one argument."""

    answer: float
    compiled: int
    said: list[str]


def call(function: Callable[[float], float] = third) -> Compiled:
    """Call a kernel that this process has not called, with the folders of the environment."""
    numba = pytest.importorskip("numba")
    said: list[str] = []
    dispatcher = numba.njit(function)
    dispatcher._cache = KernelCache(function, "", Folders(said.append))
    return Compiled(dispatcher(6.0), sum(dispatcher.stats.cache_misses.values()), said)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache."""
    folder = tmp_path / "deep" / "cache"
    monkeypatch.setenv("ODDSENGINE_CACHE", str(folder))
    return folder


@COMPILES
@pytest.mark.parametrize("variable", ["ODDSENGINE_CACHE", "NUMBA_CACHE_DIR"])
def test_a_folder_that_is_named_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.delenv("ODDSENGINE_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    assert call() == (2.0, 1, [])
    (file,) = (tmp_path / "cache").glob("*.third-*.nbc")
    assert file.stat().st_mode & 0o777 == 0o644, "others trust files of root and of the package's owner"
    assert call() == (2.0, 0, [])


@COMPILES
def test_a_named_folder_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ODDSENGINE_CACHE", "/dev/null/cache")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer, compiled, (notice,) = call()
    assert (answer, compiled) == (2.0, 1)
    assert f"cached in the temporary folder {tmp_path}" in notice


@COMPILES
@pytest.mark.parametrize("taken", ["file", "folder of all"])
def test_a_temporary_folder_of_somebody_else_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taken: str
) -> None:
    monkeypatch.setenv("ODDSENGINE_CACHE", "/dev/null/cache")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = tmp_path / f"oddsengine-{os.getuid()}"
    if taken == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    answer, compiled, (notice,) = call()
    assert (answer, compiled) == (2.0, 1)
    assert notice.startswith("compiled kernels cannot be cached")
    assert "ODDSENGINE_CACHE" in notice
    assert place.is_file() or not [*place.iterdir()]


class Bomb:
    """What a pickle may do when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


def _flipped(content: bytes) -> bytes:
    at = len(content) * 2 // 3
    return content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :]


DAMAGES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda _, __: b"", "short": lambda content, _: content[:20],
    "half": lambda content, _: content[: len(content) // 2], "flipped": lambda content, _: _flipped(content),
    "bomb": lambda _, bomb: bomb, "a bomb with a digest": lambda content, bomb: content[:32] + bomb,
}  # fmt: skip


@COMPILES
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_damaged_is_compiled_again(folder: Path, tmp_path: Path, damage: str) -> None:
    assert call() == (2.0, 1, [])
    (file,) = folder.iterdir()
    file.write_bytes(DAMAGES[damage](file.read_bytes(), pickle.dumps(Bomb(tmp_path / "exploded"))))
    assert call() == (2.0, 1, [])
    assert call() == (2.0, 0, [])
    assert [*folder.iterdir()] == [file]
    assert not (tmp_path / "exploded").exists()


@COMPILES
def test_a_file_of_another_kernel_is_compiled_again(folder: Path) -> None:
    def half(x: float) -> float:
        return x / 2.0

    assert [call()[:2], call(half)[:2]] == [(2.0, 1), (3.0, 1)]
    one, two = folder.iterdir()
    mixed = one.read_bytes(), two.read_bytes()
    two.write_bytes(mixed[0])
    one.write_bytes(mixed[1])
    assert [call()[:2], call(half)[:2]] == [(2.0, 1), (3.0, 1)]


@COMPILES
def test_a_folder_in_the_place_of_a_file_is_said_once(folder: Path) -> None:
    call()
    (file,) = folder.iterdir()
    file.unlink()
    file.mkdir()
    answer, compiled, (notice,) = call()
    assert (answer, compiled) == (2.0, 1)
    assert "cannot be cached" in notice
    assert [*folder.iterdir()] == [file]


@COMPILES
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files to others")
def test_a_file_of_another_user_is_not_loaded(folder: Path) -> None:
    call()
    (file,) = folder.iterdir()
    os.chown(file, 54321, -1)
    assert call() == (2.0, 1, [])
    assert call() == (2.0, 0, [])


# ---- what machine code came from ----

SOURCE = """
LIMIT = 3

class Marked:
    options = {options!r}
    def __init__(self, function):
        self.__wrapped__ = function

@Marked
def inner(x):
    return x + {added}

def outer(x):
    return inner(x) if x < LIMIT else {{x for x in (1, 2)}}
"""


def outer(*, added: int = 1, options: str = "", before: str = "", limit: int = 3) -> FunctionType:
    names: dict[str, Any] = {"__name__": "some.kernels"}
    exec(before + SOURCE.format(added=added, options=options).replace("LIMIT = 3", f"LIMIT = {limit}"), names)
    found = names["outer"]
    assert isinstance(found, FunctionType)
    return found


def test_the_stamp_changes_with_everything_that_a_kernel_is_compiled_from(monkeypatch: pytest.MonkeyPatch) -> None:
    same = stamp(outer(), "")
    assert stamp(outer(), "") == same
    assert stamp(outer(before="# moved\n\n"), "") == same, "but not with where it stands"
    changed = [
        stamp(outer(), "contract"), stamp(outer(added=2), ""), stamp(outer(options="contract"), ""),
        stamp(outer(limit=4), ""),
    ]  # fmt: skip
    assert len({same, *changed}) == 5
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert stamp(outer(), "") not in {same, *changed}, "NUMBA_BOUNDSCHECK=1 finds kernels without such checks"


def test_the_stamp_is_the_same_in_every_process() -> None:
    code = (
        "import sys, oddsengine; from oddsengine._cache import stamp; "
        "d = sys.modules['oddsengine.maths.margin_solvers']; "
        "print([stamp(k.__wrapped__, k.options).hex() for k in vars(d).values() if hasattr(k, 'dispatcher')])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert len(said.pop()) > 64


class Level(IntEnum):
    """A global of a kernel."""

    LOW = 1


def pair(*fields: str) -> Any:
    """A class of named tuples whose name says nothing of its fields."""
    return namedtuple("Pair", fields)


Pair, Swapped = pair("a", "b"), pair("b", "a")
Raised: Any = IntEnum("Raised", {"LOW": 2})
Raised.__name__ = Raised.__qualname__ = "Level"
LONG = np.zeros(2000)
CHANGED = np.where(np.arange(2000) == 1000, 1.0, 0.0)  # in the middle, which repr does not show


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (Level.LOW, Raised["LOW"]), (Level, Raised), (Pair, Swapped), (Pair(1.0, 2.0), Swapped(1.0, 2.0)), (1, True),
        (LONG, CHANGED), ((LONG, 1), (CHANGED, 1)), (np.float64, np.float32), (None, 1), (1.0, np.float32(1.0)),
        (np.zeros(2, [("x", "i4"), ("y", "i4")]), np.zeros(2, [("y", "i4"), ("x", "i4")])),
        (np.dtype([("x", "i4"), ("y", "i4")]), np.dtype([("y", "i4"), ("x", "i4")])),
        (np.zeros((2, 2), order="C"), np.zeros((2, 2), order="F")),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("place", ["global", "inside", "module"])
def test_the_stamp_changes_with_a_global(was: Any, now: Any, place: str) -> None:
    bodies = {
        "global": "def f(x):\n    return USED",
        "inside": "def f(x):\n    return [USED for _ in x]",
        "module": "def f(x):\n    return constants.USED",
    }

    def stamped(value: Any) -> bytes:
        module = ModuleType("oddsengine.constants")
        vars(module)["USED"] = value
        names: dict[str, Any] = {"__name__": "oddsengine.some", "USED": value, "constants": module}
        exec(bodies[place], names)
        return stamp(names["f"], "")

    assert stamped(was) == stamped(was)
    assert stamped(was) != stamped(now)


def test_the_stamp_changes_with_defaults_and_closures() -> None:
    def made(*, inner: int = 1, default: int = 1) -> FunctionType:
        def f(x: int, *, y: int = default) -> int:
            return x + y + inner

        return cast(FunctionType, f)

    assert stamp(made(), "") == stamp(made(), "")
    assert len({stamp(each, "") for each in (made(), made(inner=2), made(default=2))}) == 3


def difference(pair: Any) -> Any:
    return pair.a - pair.b


@COMPILES
@pytest.mark.parametrize("wrap", [lambda pair: pair, lambda pair: (pair,)], ids=["alone", "in a tuple"])
def test_a_named_tuple_with_its_fields_in_another_order_is_compiled_again(
    folder: Path, wrap: Callable[..., Any]
) -> None:
    function = difference if wrap(0) == 0 else lambda pairs: pairs[0].a - pairs[0].b
    for pair in (Pair(a=3.0, b=1.0), Swapped(a=3.0, b=1.0)):
        dispatcher: Any = numba.njit(function)
        dispatcher._cache = KernelCache(cast(FunctionType, function), "", Folders(print))
        assert dispatcher(wrap(pair)) == 2.0
    assert len([*folder.iterdir()]) == 2


def test_the_stamp_sees_every_global_of_every_kernel() -> None:
    """What `described` does not know, machine code could depend on without a change of its stamp."""
    for module in pkgutil.walk_packages(oddsengine.__path__, "oddsengine."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    modules = [each for name, each in [*sys.modules.items()] if name.partition(".")[0] == "oddsengine"]
    kernels = {
        each.__wrapped__ for module in modules for each in vars(module).values()
        if isinstance(getattr(each, "__wrapped__", None), FunctionType) and hasattr(each, "options")
    }  # fmt: skip
    unseen = [
        f"{kernel.__module__}.{kernel.__name__}: {step.argval}"
        for kernel in kernels
        for step in dis.get_instructions(kernel)
        if step.opname == "LOAD_GLOBAL" and not _seen(kernel, step.argval)
    ]
    assert len(kernels) > 150
    assert unseen == []


def _seen(kernel: FunctionType, name: str) -> bool:
    if name not in kernel.__globals__:
        return hasattr(builtins, name)
    value = kernel.__globals__[name]
    return described(value) is not None or hasattr(value, "__wrapped__") or isinstance(value, ModuleType)
