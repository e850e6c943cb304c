"""Mutation tests: change the program at random places, one at a time, and run the tests that concern each.

    make mutate                                               # 200 places, half an hour on two cores
    python tests/mutate.py --minutes 60 --seed "$(date +%j)"  # each night other places
    python tests/mutate.py --count 20 --only oddsengine/tails.py
    python tests/mutate.py --again survivors.txt              # the changes of an earlier run that a file lists

A place is a comparison, an operator, a number, a condition or a statement in kernels, detectors, guards, the wire or
authentication. Each is changed in a copy of the checkout, one copy per worker, where the test files that `TESTS` lists
run one after the other until a test fails; that test must pass without the change. Kernels are interpreted, not
compiled, for changes of `oddsengine/`. A change that no test detects survives: either a test is
missing, or behavior is the same, and `equivalent_mutants.txt` says why.

Exit status: 0 if no change survived, 1 if one did, 2 if a test fails without a change.
"""

import argparse
import ast
import contextlib
import copy
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
CPU_S, WALL_S = 150, 900  # per test file; tests that never end have detected the change
FOLDERS = ("oddsengine", "service", "tests", "docs", "notebooks", "scripts")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile", "setup.py", "MANIFEST.in", "constraints.txt")

AREAS: dict[str, tuple[float, tuple[str, ...]]] = {
    "kernels": (0.4, ("oddsengine/*.py", "oddsengine/board/*.py", "oddsengine/query/scan.py")),
    "detectors": (
        0.05,
        ("oddsengine/find/*.py", "oddsengine/kelly.py", "oddsengine/value.py", "oddsengine/arbitrage.py"),
    ),
    "guards": (0.15, ("oddsengine/guards.py",)),
    "wire": (0.2, ("service/wire/*.py", "service/ws/wire.py", "service/stream/sse.py", "service/params.py")),
    "auth": (0.2, ("service/keys.py", "service/limits.py", "service/tiers.py", "service/middleware/*.py")),
}
"""Share of the places, and files. Of the kernels' files only compiled functions, of the others all functions."""

_BOARD = "live_rows live_reading live_review engine"
_WIRE = "service_wire service_samples service_odds service_opportunities stream"
TESTS: dict[str, str] = {
    "oddsengine/arbitrage.py": "arbitrage laws detect_units",
    "oddsengine/kelly.py": "kelly laws portfolio",
    "oddsengine/value.py": "value laws",
    "oddsengine/commission.py": "commission fair laws",
    "oddsengine/devig.py": "devig twin",
    "oddsengine/fair_close.py": "estimator fair engine",
    "oddsengine/momentum.py": "estimator simulate_slow fair engine",
    "oddsengine/expressions.py": "expressions",
    "oddsengine/middle.py": "middle tails twin",
    "oddsengine/portfolio.py": "portfolio",
    "oddsengine/timestamps.py": "json_quotes schema service_odds service_wire",
    "oddsengine/outcomes.py": "stakes strategy",
    "oddsengine/identity.py": "identity identity_terms groups twin",
    "oddsengine/groups.py": "groups detect_units twin",
    "oddsengine/markets.py": "detect_units twin groups public",
    "oddsengine/guards.py": "guard_units guards twin",
    "oddsengine/twins.py": "twins twin guard_units guards",
    "oddsengine/detect.py": "detect_units twin",
    "oddsengine/references.py": "detect_units twin estimator",
    "oddsengine/tails.py": "tails twin estimator",
    "oddsengine/find/*.py": "detect_units twin estimator public explain laws",
    "oddsengine/query/scan.py": "service_odds service_history service_fuzz",
    "oddsengine/open_opportunities.py": "engine open_sets live_reading service_opportunities",
    "oddsengine/board/scan.py": "json_quotes schema feeds_samples live_reading",
    "oddsengine/board/quotes.py": f"json_quotes schema {_BOARD}",
    "oddsengine/board/units.py": f"units {_BOARD}",
    "oddsengine/board/changes.py": "engine open_sets golden",
    "oddsengine/board/*.py": f"{_BOARD} open_sets",
    "service/wire/reference.py": f"service_reference {_WIRE}",
    "service/wire/references.py": f"service_references {_WIRE}",
    "service/wire/splits.py": f"service_splits {_WIRE}",
    "service/wire/futures.py": f"service_futures {_WIRE}",
    "service/wire/health.py": "service_node service_http",
    "service/wire/odds.py": f"service_odds service_deeplinks {_WIRE}",
    "service/wire/games.py": f"service_gamestate {_WIRE}",
    "service/wire/*.py": f"wire_columns service_opportunities {_WIRE}",
    "service/ws/wire.py": "ws ws_fuzz",
    "service/stream/sse.py": "stream stream_moves stream_slow",
    "service/params.py": "params service_odds service_opportunities service_http service_fuzz stream",
    "service/keys.py": "service_keys keys_cli service_limits service_http",
    "service/limits.py": "service_limits service_keys service_http",
    "service/tiers.py": "service_limits service_keys service_opportunities",
    "service/middleware/cache.py": "service_cache service_http",
    "service/middleware/*.py": "service_limits service_cache service_metrics service_keys service_http",
}
"""Test files of a file, the one most likely to fail first; the first matching pattern counts."""


class Mutant(NamedTuple):
    """One change: a span of a file and what stands there instead."""

    file: str
    function: str
    start: int  # offsets in the file's bytes
    stop: int
    text: str
    line: int
    copy: int = 1  # of equal changes in the function

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]

    def describe(self, source: bytes) -> str:
        """One line that stays what it is while other lines of the file change."""
        again = f" (place {self.copy})" if self.copy > 1 else ""
        said = f"{self.file} {self.function}: `{source[self.start : self.stop].decode()}` -> `{self.text}`{again}"
        return " ".join(said.split())


# ---- places ----

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitXor: ast.BitOr,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """The same node with one small change, or nothing where there is none that makes sense."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[one]):
            new.ops = [_COMPARED[type(one)]()]
        case ast.BinOp(op=op) if type(op) in _OPERATED and not _text(node):
            new.op = _OPERATED[type(op)]()
        case ast.AugAssign(op=op) if type(op) in _OPERATED:
            new.op = _OPERATED[type(op)]()
        case ast.BoolOp(op=op):
            new.op = ast.And() if isinstance(op, ast.Or) else ast.Or()
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.Constant(value=float(value)):
            new.value = value * 2 if value else 1.0
        case ast.IfExp(test=test, body=body, orelse=orelse) if ast.dump(body) != ast.dump(orelse):
            new.test = ast.UnaryOp(ast.Not(), test)
        case ast.Continue():
            return ast.Break()
        case ast.Expr(value=ast.Call() | ast.Await()):
            return ast.Pass()
        case _:
            return None
    return new


def _text(node: ast.AST) -> bool:
    """Whether an operation is on texts or types."""
    return any(
        (isinstance(each, ast.Constant) and (each.value is None or isinstance(each.value, str | bytes)))
        or isinstance(each, ast.JoinedStr)
        for each in ast.walk(node)
    )


def mutants(file: str, source: bytes, *, compiled: bool) -> Iterator[Mutant]:
    """Every change of a file's functions, or of the compiled ones alone."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def span(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def walk(node: Any, name: str) -> Iterator[Mutant]:
        new = changed(node)
        if new is not None:
            text = ast.unparse(new)
            yield Mutant(file, name, *span(node), f"({text})" if isinstance(node, ast.expr) else text, node.lineno)
        if isinstance(node, ast.If | ast.While):
            test = node.test
            if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
                yield Mutant(file, name, *span(test), f"(not ({ast.unparse(test)}))", test.lineno)
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
            return
        skipped = {"annotation", "returns", "decorator_list", "type_comment"}
        for field, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST) and field not in skipped:
                    yield from walk(each, name)

    def functions(node: ast.AST, outer: str) -> Iterator[Mutant]:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.ClassDef):
                yield from functions(each, f"{outer}{each.name}.")
            elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = {ast.unparse(mark) for mark in each.decorator_list}
                if not compiled or marks & {"kernel", "fused", "inlined"}:
                    yield from walk(each, outer + each.name)

    seen = Counter[str]()
    for mutant in functions(ast.parse(source), ""):
        change = mutant.describe(source)
        seen[change] += 1
        yield mutant._replace(copy=seen[change])


def chosen(tree: Path, seed: str, count: int, only: str, again: set[str] | None) -> list[Mutant]:
    """Draw places from every area, or take those described in `again`."""
    out = list[Mutant]()
    for area, (share, patterns) in AREAS.items():
        files = sorted({path.relative_to(tree).as_posix() for each in patterns for path in tree.glob(each)})
        if area == "kernels":
            files = [file for file in files if not any(fnmatch(file, each) for each in AREAS["guards"][1])]
        every = [
            mutant
            for file in files
            if fnmatch(file, only)
            for mutant in mutants(file, (tree / file).read_bytes(), compiled=area == "kernels")
        ]
        if again is not None:
            out += [mutant for mutant in every if mutant.describe((tree / mutant.file).read_bytes()) in again]
        else:
            drawn = round(count * share) if only == "*" else count
            out += random.Random(f"{seed} {area}").sample(every, min(len(every), drawn))
    return out


# ---- running ----


def concern(file: str) -> list[list[str]]:
    """Return the test files of a file, its doctests with the first one."""
    names = next(names for pattern, names in TESTS.items() if fnmatch(file, pattern))
    first, *others = [[f"tests/test_{name}.py"] for name in dict.fromkeys(names.split())]
    return [[*([file] if file.startswith("oddsengine/") else []), *first], *others]


def failure(tree: Path, tests: list[str], *, interpreted: bool) -> str:
    """Run tests, with kernels interpreted or compiled; return the first that fails, or an empty string."""
    options = ["-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--doctest-modules"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "typings")]), "HYPOTHESIS_PROFILE": "few",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "KERNELS": "lazy", "NUMBA_DISABLE_JIT": str(int(interpreted)),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", *options, *tests]
    with (tree / "output").open("w+b") as output:
        process = subprocess.Popen(command, cwd=tree, env=environment, stdout=output, stderr=output, process_group=0)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (CPU_S, CPU_S))
        try:
            status = process.wait(WALL_S)
        except subprocess.TimeoutExpired:
            status = -signal.SIGXCPU
        finally:
            with contextlib.suppress(ProcessLookupError):  # servers that the tests started, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", text, re.MULTILINE)
    return "" if status == 0 else failed[1] if failed else f"status {status}"


class Runner:
    """Copies of the checkout, each used by one worker at a time."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._idle = SimpleQueue[Path]()
        self._passed = set[str]()  # tests that pass without a change
        self._times = itertools.count(1)
        for worker in range(workers):
            self._idle.put(_copied(folder / str(worker)))

    def judge(self, mutant: Mutant) -> tuple[str, str]:
        """Return the verdict on a change, and the first test that fails with it."""
        tree = self._idle.get()
        file, failed, interpreted = tree / mutant.file, "", mutant.file.startswith("oddsengine/")
        source = file.read_bytes()
        try:
            self._write(file, mutant.apply(source))
            for tests in concern(mutant.file):
                if failed := failure(tree, tests, interpreted=interpreted):
                    break
            self._write(file, source)
            if not failed:
                return "SURVIVED", ""
            again = [failed.partition("[")[0]] if "::" in failed else tests
            if not self._passed.issuperset(again):
                if failure(tree, again, interpreted=interpreted):
                    return "FAILS WITHOUT A CHANGE", failed
                self._passed.update(again)
            return "caught", failed
        finally:
            self._idle.put(tree)

    def _write(self, file: Path, source: bytes) -> None:
        """Write a file with a time of its own, which Python recognizes outdated bytecode by."""
        file.write_bytes(source)
        os.utime(file, (at := next(self._times), at))


def _copied(tree: Path) -> Path:
    """Copy the checkout."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, tree / name)
    (tree / "typings").mkdir()
    (tree / "typings" / "oddsengine_service").symlink_to(tree / "service")
    return tree


def main() -> int:
    """Change, test, count."""
    parser = argparse.ArgumentParser(
        description="Mutation tests: change the program at random places, one at a time, and run the tests that "
        "concern each. Prints one line per place, and the survivors again at the end.",
        epilog="Exit status: 0 if no change survived, 1 if one did, 2 if a test fails without a change.",
    )
    parser.add_argument("--seed", default="1", help="of the random places (1)")
    parser.add_argument("--count", type=int, default=200, help="number of places (200)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="places in matching files only")
    parser.add_argument("--again", type=Path, metavar="FILE", help="the changes that a file lists, as printed, instead")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no place after so many minutes")
    parser.add_argument("--workers", type=int, default=2, help="number of places tested at a time (2)")
    parser.add_argument("--list", action="store_true", help="print the places and run nothing")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    again = set(options.again.read_text(encoding="utf-8").splitlines()) if options.again else None
    places = chosen(ROOT, options.seed, options.count, options.only, again)
    if options.list:
        for mutant in places:
            print(f"{mutant.file}:{mutant.line} {mutant.describe((ROOT / mutant.file).read_bytes())}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder), options.workers)
        return run(runner, places, time.monotonic() + 60 * options.minutes, options.workers)


def run(runner: Runner, places: list[Mutant], until: float, workers: int) -> int:
    """Test each change, and return the exit status."""
    equivalent = {line.strip() for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()}
    survivors, counts = list[str](), Counter[str]()

    lines = [mutant.describe((ROOT / mutant.file).read_bytes()) for mutant in places]  # files may change meanwhile

    def judge(mutant: Mutant, line: str) -> None:
        began = time.monotonic()
        if line in equivalent or began > until:
            said, failed = "equivalent" if line in equivalent else "not run", ""
        else:
            said, failed = runner.judge(mutant)
        counts[said] += 1
        if said == "SURVIVED":
            survivors.append(f"{mutant.file}:{mutant.line}\n{line}")
        by = f" by {failed}" if failed else ""
        print(f"{said}{by} ({time.monotonic() - began:.0f} s, line {mutant.line}): {line}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(judge, places, lines))
    counts.setdefault("caught", 0)
    print(", ".join(f"{count} {said}" for said, count in counts.items()), *survivors, sep="\n\n")
    return 2 if counts["FAILS WITHOUT A CHANGE"] else 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
