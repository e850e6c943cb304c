"""Whether the tests notice a changed program: small changes at random places, and the tests that concern each.

    make mutate                                              # 200 places, about an hour on one core
    python tests/mutate.py --count 20 --only oddsengine/tails.py

A place is a comparison, an operator, a number, a condition or a statement in one of four areas: kernels, guards, the
wire and authentication. Each is changed in a copy of the checkout, and the test files in `TESTS` are run there; at
first without a change, when they have to pass. Kernels are compiled in a folder of the copy, which begins with those of
ODDSENGINE_CACHE. A change that no test notices is printed as a diff: either a test is missing, or the program does the
same as before, which is said, with the reason, in `equivalent_mutants.txt`. Exit status 1 if less than 95 % of the
others were caught, 2 if tests fail without a change.
"""

import argparse
import ast
import copy
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
CAUGHT = 0.95
LIMIT_S = 240  # of processor time; a change that makes a test run forever is caught
FOLDERS = ("oddsengine", "service", "tests", "docs", "notebooks", "scripts")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile", "setup.py", "MANIFEST.in", "constraints.txt")

AREAS: dict[str, tuple[float, tuple[str, ...]]] = {
    "kernels": (0.45, ("oddsengine/*.py", "oddsengine/find/*.py", "oddsengine/board/*.py", "oddsengine/query/scan.py")),
    "guards": (0.15, ("oddsengine/guards.py",)),
    "wire": (0.2, ("service/wire/*.py", "service/ws/wire.py", "service/stream/sse.py", "service/params.py")),
    "auth": (0.2, ("service/keys.py", "service/limits.py", "service/tiers.py", "service/middleware/*.py")),
}
"""Share of the places, and files. Of the kernels' files only compiled functions, of others every function."""

_LIVE = "test_golden.py test_open_sets.py test_engine.py test_live_rows.py test_live_reading.py"
_SERVICE = "test_service_wire.py test_service_odds.py test_service_opportunities.py"
TESTS: dict[str, str] = {
    "oddsengine/devig.py": "test_devig.py",
    "oddsengine/estimator.py": "test_estimator.py test_fair.py",
    "oddsengine/expressions.py": "test_expressions.py",
    "oddsengine/middle.py": "test_middle.py",
    "oddsengine/momentum.py": "test_estimator.py",
    "oddsengine/portfolio.py": "test_portfolio.py",
    "oddsengine/timestamps.py": "test_service_wire.py test_service_odds.py",
    "oddsengine/outcomes.py": "test_stakes.py test_strategy.py",
    "oddsengine/identity.py": "test_identity.py test_identity_terms.py test_groups.py",
    "oddsengine/groups.py": "test_groups.py test_detect_units.py test_laws.py",
    "oddsengine/markets.py": "test_laws.py test_naive.py test_public.py test_detect_units.py",
    "oddsengine/guards.py": "test_guard_units.py test_guards.py test_naive.py test_laws.py",
    "oddsengine/twins.py": "test_twins.py test_guard_units.py",
    "oddsengine/detect.py": "test_detect_units.py test_naive.py test_laws.py test_open_sets.py",
    "oddsengine/references.py": "test_detect_units.py test_naive.py test_laws.py test_open_sets.py",
    "oddsengine/tails.py": "test_tails.py test_naive.py test_laws.py test_open_sets.py test_estimator.py",
    "oddsengine/find/*.py": "test_detect_units.py test_naive.py test_laws.py test_golden.py test_open_sets.py",
    "oddsengine/query/scan.py": "test_service_odds.py",
    "oddsengine/open.py": _LIVE,
    "oddsengine/board/scan.py": f"test_json_quotes.py {_LIVE}",
    "oddsengine/board/quotes.py": f"test_json_quotes.py test_schema.py {_LIVE}",
    "oddsengine/board/*.py": _LIVE,
    "service/wire/reference.py": "test_service_reference.py test_service_wire.py test_service_samples.py",
    "service/wire/references.py": "test_service_references.py test_service_samples.py",
    "service/wire/splits.py": "test_service_splits.py",
    "service/wire/futures.py": "test_service_futures.py",
    "service/wire/health.py": "test_service_node.py test_service_http.py",
    "service/wire/*.py": f"{_SERVICE} test_service_samples.py test_stream.py test_service_gamestate.py",
    "service/ws/wire.py": "test_ws.py",
    "service/stream/sse.py": "test_stream.py test_stream_moves.py",
    "service/params.py": "test_service_odds.py test_service_opportunities.py test_service_http.py test_stream.py",
    "service/keys.py": "test_service_keys.py test_keys_cli.py test_service_limits.py",
    "service/limits.py": "test_service_limits.py test_service_keys.py",
    "service/tiers.py": "test_service_limits.py test_service_keys.py test_service_opportunities.py",
    "service/middleware/cache.py": "test_service_cache.py test_service_http.py",
    "service/middleware/*.py": "test_service_http.py test_service_keys.py test_service_limits.py",
}
"""Files of tests that concern a file, the quick ones first; the first pattern that fits counts."""


class Mutant(NamedTuple):
    """One change: a span of a file and what stands there instead."""

    file: str
    function: str
    start: int  # offsets in the file's bytes
    stop: int
    text: str
    line: int

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]

    def describe(self, source: bytes) -> str:
        """One line that stays what it is while other lines of the file change."""
        return f"{self.file} {self.function}: `{source[self.start : self.stop].decode()}` -> `{self.text}`"


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

    yield from functions(ast.parse(source), "")


def chosen(tree: Path, seed: int, count: int, only: str) -> list[Mutant]:
    """Some places, shared between the areas."""
    draw, out = random.Random(seed), list[Mutant]()
    for area, (share, patterns) in AREAS.items():
        files = sorted({path.relative_to(tree).as_posix() for each in patterns for path in tree.glob(each)})
        files = [file for file in files if area == "guards" or file != "oddsengine/guards.py"]
        every = [
            mutant
            for file in files
            if not only or fnmatch(file, only)
            for mutant in mutants(file, (tree / file).read_bytes(), compiled=area == "kernels")
        ]
        out += draw.sample(every, min(len(every), count if only else round(count * share)))
    return out


# ---- running ----


def concern(file: str) -> list[str]:
    """Test files of a file, after its own examples."""
    tests = next(tests for each, tests in TESTS.items() if fnmatch(file, each)).split()
    return [*(["--doctest-modules", file] if file.startswith("oddsengine/") else []), *(f"tests/{t}" for t in tests)]


def passes(tree: Path, tests: list[str], kernels: Path) -> bool:
    """Whether the tests pass; `kernels` is where compiled ones are."""
    paths = os.pathsep.join([str(tree), str(tree / "typings")])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {
        "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "few",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "ODDSENGINE_CACHE": str(kernels),
    }  # fmt: skip
    done = subprocess.run(
        command, cwd=tree, env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S)),
    )  # fmt: skip
    return done.returncode == 0


def main() -> int:
    """Change, test, count."""
    parser = argparse.ArgumentParser(description="Change the program at random places and see whether the tests notice")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="", help="places in files that fit this pattern")
    parser.add_argument("--skip", type=int, default=0, help="begin after so many places")
    parser.add_argument("--stop", type=int, default=None, help="end after so many, those skipped among them")
    words = parser.parse_args()
    same = EQUIVALENT.read_text(encoding="utf-8") if EQUIVALENT.exists() else ""
    caught = survived = 0
    passed = set[tuple[str, ...]]()  # tests that pass without a change
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in FILES:
            shutil.copy(ROOT / name, tree / name)
        kernels, of_change = tree / "kernels", tree / "kernels_of_change"
        if known := os.environ.get("ODDSENGINE_CACHE"):
            shutil.copytree(known, kernels)
        (tree / "typings").mkdir()
        (tree / "typings" / "oddsengine_service").symlink_to(tree / "service")
        places = chosen(tree, words.seed, words.count, words.only)[: words.stop]
        for at, mutant in enumerate(places[words.skip :], words.skip):
            source = (tree / mutant.file).read_bytes()
            line = mutant.describe(source)
            if line in same:
                print(f"{at} equivalent {line}", flush=True)
                continue
            tests = concern(mutant.file)
            if tuple(tests) not in passed and not passes(tree, tests, kernels):
                print(f"without a change these tests fail: {' '.join(tests)}")
                return 2
            passed.add(tuple(tests))
            (tree / mutant.file).write_bytes(mutant.apply(source))
            shutil.rmtree(of_change, ignore_errors=True)
            shutil.copytree(kernels, of_change)
            began = time.monotonic()
            survives = passes(tree, tests, of_change)
            (tree / mutant.file).write_bytes(source)
            survived, caught = survived + survives, caught + (not survives)
            said = "SURVIVED" if survives else "caught"
            print(f"{at} {said} {time.monotonic() - began:.0f} s, line {mutant.line}: {line}", flush=True)
    share = caught / max(caught + survived, 1)
    print(f"{caught} of {caught + survived} changes caught: {share:.1%}")
    return 0 if share >= CAUGHT else 1


if __name__ == "__main__":
    sys.exit(main())
