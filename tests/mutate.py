"""Mutation tests: change the program at random places, one at a time, and run the tests that concern each.

    make mutate                                               # 200 places
    python tests/mutate.py --minutes 60 --seed "$(date +%j)"  # each night other places
    python tests/mutate.py --count 20 --only oddsengine/detection/tails.py
    python tests/mutate.py --again survivors.txt              # the changes of an earlier run that a file lists

A place is a comparison, an operator, a number, a condition or a statement in kernels, detectors, guards, the wire or
authentication. The test files that `TESTS` lists are imported once, and run without a change, which shows the functions
that each test calls. Then each change is made in a forked process, where the tests that call the changed function run,
the quickest first, until one fails. For changes of `oddsengine/`, kernels are interpreted; the changes of `service/`
are tested at the same time, in a process with compiled kernels. What only runs on import cannot be changed this way.
A change that no test detects survives: either a test is missing, or behavior is the same, and
`equivalent_mutants.txt` says why.

Exit status: 0 if no change survived, 1 if one did.
"""

import argparse
import ast
import contextlib
import copy
import gc
import multiprocessing
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import psutil
import pytest

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
_STILL_S = 120.0

AREAS: dict[str, tuple[float, tuple[str, ...]]] = {
    "kernels": (0.4, ("oddsengine/*/*.py",)),
    "detectors": (
        0.05,
        (
            "oddsengine/detection/*.py",
            "oddsengine/maths/kelly.py",
            "oddsengine/maths/value.py",
            "oddsengine/maths/arbitrage.py",
        ),
    ),
    "guards": (0.15, ("oddsengine/guards/*.py",)),
    "wire": (
        0.2,
        (
            "service/oddsengine_service/wire/*.py",
            "service/oddsengine_service/ws/wire.py",
            "service/oddsengine_service/stream/sse.py",
            "service/oddsengine_service/http/params.py",
        ),
    ),
    "auth": (
        0.2,
        (
            "service/oddsengine_service/accounts/keys.py",
            "service/oddsengine_service/accounts/limits.py",
            "service/oddsengine_service/tiers.py",
            "service/oddsengine_service/http/access.py",
            "service/oddsengine_service/http/cache.py",
            "service/oddsengine_service/http/middleware.py",
        ),
    ),
}
"""Share of the places, and files. Of the kernels' files only compiled functions, of the others all functions."""

_BOARD = "live/rows live/reading live/interruption live/views board/quotes live/engine"
_SERVICE = "service/oddsengine_service"
_WIRE = (
    "service/contract/wire service/make_examples service/routes/odds service/routes/opportunities service/stream/stream"
)
TESTS: dict[str, str] = {
    "oddsengine/maths/arbitrage.py": "maths/arbitrage detection/laws detection/units",
    "oddsengine/maths/kelly.py": "maths/kelly detection/laws staking/portfolio",
    "oddsengine/maths/value.py": "maths/value detection/laws",
    "oddsengine/pricing/commission.py": "pricing/commission detection/fair detection/laws",
    **{
        f"oddsengine/maths/{name}.py": "maths/devig detection/finders"
        for name in ("devig", "lanes", "margin_solvers", "closed_forms", "probit")
    },
    **{
        f"oddsengine/pricing/{name}.py": "pricing/close detection/fair live/engine"
        for name in ("close_errors", "close_table", "provider_votes", "votes")
    },
    "oddsengine/pricing/close.py": "pricing/close detection/fair live/engine",
    "oddsengine/pricing/momentum.py": "pricing/close simulate/simulated_books detection/fair live/engine",
    "oddsengine/tables/expressions.py": "tables/expressions",
    **{
        f"oddsengine/maths/{name}.py": "maths/middle detection/tails detection/finders"
        for name in ("middle", "distributions", "shape_fitting")
    },
    "oddsengine/staking/portfolio.py": "staking/portfolio",
    "oddsengine/tables/timestamps.py": "board/json_quotes tables/schema service/routes/odds service/contract/wire",
    "oddsengine/staking/outcomes.py": "staking/stakes backtesting/strategy",
    "oddsengine/identity/raw_labels.py": "identity/table identity/raw_labels identity/groups detection/finders",
    "oddsengine/identity/groups.py": "identity/groups detection/units detection/finders",
    "oddsengine/identity/table_identity.py": "detection/units detection/finders identity/groups public",
    "oddsengine/guards/*.py": "guards/units guards/verdicts detection/finders",
    "oddsengine/identity/linked_outcomes.py": "identity/linked_outcomes detection/finders guards/units guards/verdicts",
    "oddsengine/detection/sweep.py": (
        "detection/units identity/linked_outcomes detection/finders guards/verdicts board/open"
    ),
    "oddsengine/detection/legs.py": (
        "detection/units identity/linked_outcomes detection/finders guards/verdicts board/open"
    ),
    "oddsengine/detection/edges.py": (
        "detection/units identity/linked_outcomes detection/finders guards/verdicts board/open"
    ),
    "oddsengine/detection/market_fair.py": (
        "detection/units identity/linked_outcomes detection/finders guards/verdicts board/open"
    ),
    "oddsengine/detection/leg_times.py": (
        "detection/units identity/linked_outcomes detection/finders guards/verdicts board/open"
    ),
    "oddsengine/pricing/references.py": "detection/units detection/finders pricing/close",
    "oddsengine/detection/tails.py": "detection/tails detection/finders pricing/close",
    "oddsengine/detection/*.py": (
        "detection/units detection/finders pricing/close public detection/explain detection/laws identity/table "
        "guards/verdicts detection/fair maths/middle"
    ),
    "oddsengine/identity/layout.py": f"board/partitions detection/finders {_BOARD}",
    "oddsengine/query/row_kernels.py": "service/routes/odds service/routes/history service/contract/fuzz",
    "oddsengine/board/open.py": "live/engine board/open live/reading service/routes/opportunities",
    "oddsengine/board/quotes.py": f"board/json_quotes tables/schema {_BOARD}",
    "oddsengine/board/partitions.py": f"board/partitions {_BOARD}",
    "oddsengine/board/changed_markets.py": "live/engine board/open golden",
    "oddsengine/board/*.py": f"{_BOARD} board/open",
    f"{_SERVICE}/wire/catalog_response.py": f"service/routes/reference {_WIRE}",
    f"{_SERVICE}/wire/reference_objects.py": f"service/wire/references {_WIRE}",
    f"{_SERVICE}/wire/splits_response.py": f"service/routes/splits {_WIRE}",
    f"{_SERVICE}/wire/futures_response.py": f"service/routes/futures {_WIRE}",
    f"{_SERVICE}/wire/health_response.py": "service/node service/http",
    f"{_SERVICE}/wire/odds_response.py": f"service/routes/odds service/routes/deeplinks {_WIRE}",
    f"{_SERVICE}/wire/games_response.py": f"service/routes/gamestate {_WIRE}",
    f"{_SERVICE}/wire/*.py": f"service/wire/columns service/routes/opportunities {_WIRE}",
    f"{_SERVICE}/ws/wire.py": "service/ws/ws service/ws/fuzz",
    f"{_SERVICE}/stream/sse.py": (
        "service/stream/subscribers service/stream/stream service/stream/moves service/stream/slow"
    ),
    f"{_SERVICE}/http/params.py": (
        "service/params service/routes/odds service/routes/opportunities service/http service/contract/fuzz "
        "service/stream/stream"
    ),
    f"{_SERVICE}/accounts/keys.py": "service/keys commands/keys service/limits service/http",
    f"{_SERVICE}/accounts/limits.py": "service/limits service/keys service/http",
    f"{_SERVICE}/tiers.py": "service/limits service/keys service/routes/opportunities service/http",
    f"{_SERVICE}/http/cache.py": "service/cache service/http",
    f"{_SERVICE}/http/access.py": "service/limits service/cache service/keys service/http service/app",
    f"{_SERVICE}/http/middleware.py": "service/metrics service/app service/cors service/http",
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
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of `zip`: an assertion, too
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

Function = tuple[str, str]  # file and qualified name, without what is nested


class Ran(NamedTuple):
    """A test that passes without a change."""

    item: pytest.Item
    seconds: float
    functions: frozenset[Function]


def test_file(name: str) -> str:
    """Return the file of tests that is called so in `TESTS`."""
    path = Path("tests", name)
    return path.with_name(f"test_{path.name}.py").as_posix()


def concern(file: str) -> list[str]:
    """Return the test files of a file, its own doctests first."""
    names = next(names for pattern, names in TESTS.items() if fnmatch(file, pattern)).split()
    examples = file if file.startswith("oddsengine/") else "tests/service/test_examples.py"
    return [examples, *(test_file(name) for name in dict.fromkeys(names))]


def forked(work: Callable[[], Any], seconds: float) -> Any:
    """Return the result of a function in a forked process, or None if that dies or needs more processor time.

    One that stands still for two minutes is killed; if it did so at once, a thread of ours held a lock at that moment.
    """
    for _ in range(3):
        with tempfile.TemporaryFile() as file:
            pid = os.fork()
            if pid == 0:
                try:
                    os.setpgid(0, 0)
                    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
                    file.write(pickle.dumps(work()))
                    file.flush()
                finally:
                    os._exit(0)
            child, spent, since = psutil.Process(pid), 0.0, time.monotonic()
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if (now := sum(child.cpu_times()[:2])) > spent:
                    spent, since = now, time.monotonic()
                if time.monotonic() > since + _STILL_S:
                    child.kill()
                    child.wait()
                    break
                time.sleep(0.02)
            with contextlib.suppress(ProcessLookupError):  # servers that the tests started, too
                os.killpg(pid, signal.SIGKILL)
            file.seek(0)
            found = file.read()
        if found or spent > 1.0:
            return pickle.loads(found) if found else None
    return None


def of(code: CodeType) -> Function:
    """The function that some code belongs to."""
    file = os.path.relpath(os.path.realpath(code.co_filename), ROOT)
    return file, code.co_qualname.partition(".<locals>")[0]


def codes(code: CodeType) -> Iterator[CodeType]:
    """Some code, and all code inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def changes(source: bytes, function: FunctionType) -> tuple[CodeType, Any, Any]:
    """The code and the default arguments of a function as a changed file has them."""
    name, line = function.__code__.co_qualname, function.__code__.co_firstlineno
    tree = ast.parse(source)
    every = codes(compile(source, function.__code__.co_filename, "exec", dont_inherit=True))
    code = next(each for each in every if (each.co_qualname, each.co_firstlineno) == (name, line))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            if min(each.lineno for each in (node, *node.decorator_list)) != line:
                continue
            words = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            with contextlib.suppress(NameError):  # of a class
                defaults = tuple(_value(each, function) for each in node.args.defaults)
                return code, defaults, {arg.arg: _value(each, function) for arg, each in words if each is not None}
    return code, function.__defaults__, function.__kwdefaults__


def _value(node: ast.expr, function: FunctionType) -> Any:
    return eval(compile(ast.Expression(node), "", "eval"), function.__globals__)


class Forks:
    """A pytest plugin that runs the collected tests in forks, with a change each."""

    def __init__(self, places: list[tuple[Mutant, str]], report: Callable[[str], object], until: float) -> None:
        self._places, self._report, self._until = places, report, until
        self._failed = ""
        self._ran: dict[str, list[Ran]] = {}
        self._sources = {mutant.file: (ROOT / mutant.file).read_bytes() for mutant, _ in places}
        self.verdicts: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first failure."""
        if report.failed and not self._failed:
            self._failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Test each change."""
        self._items = session.items
        self._functions: dict[Function, list[FunctionType]] = {}
        gc.unfreeze()
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and (each.__module__ or "").startswith("oddsengine"):
                self._functions.setdefault(of(each.__code__), []).append(each)
        gc.freeze()
        for mutant, line in self._places:
            began, by = time.monotonic(), ""
            if began > self._until:
                said = "not run"
            else:
                by = self._judge(mutant)
                said = "caught" if by else "SURVIVED"
            self.verdicts.append((said, f"{mutant.file}:{mutant.line}\n{line}"))
            took = f"({time.monotonic() - began:.0f} s, line {mutant.line})"
            self._report(f"{said}{' by ' if by else ''}{by} {took}: {line}\n")
        return True

    def _judge(self, mutant: Mutant) -> str:
        """Return the first test that fails with a change, or an empty string."""
        source = mutant.apply(self._sources[mutant.file])
        functions = self._functions.get((mutant.file, mutant.function), ())
        changed = [(function, changes(source, function)) for function in functions]
        for file in concern(mutant.file):
            if file not in self._ran:
                self._ran[file] = self._without_a_change(file)
            ran = [each for each in self._ran[file] if (mutant.file, mutant.function) in each.functions]
            ran.sort(key=lambda each: each.seconds)
            if ran:
                seconds = 20.0 + 5.0 * sum(each.seconds for each in ran)
                failed = forked(partial(self._with, changed, [each.item for each in ran]), seconds)
                if failed != "":
                    return failed or f"the time limit of {file}"
        return ""

    def _without_a_change(self, file: str) -> list[Ran]:
        """The tests of a file that pass, with the functions that they call."""
        items = [item for item in self._items if item.nodeid.partition("::")[0] == file]

        def work() -> list[tuple[int, float, frozenset[Function]]]:
            called: dict[int, CodeType] = {}

            def note(frame: Any, event: str, _: Any) -> None:
                if event == "call":
                    called[id(frame.f_code)] = frame.f_code

            threading.setprofile(note)
            out = []
            for at, item in enumerate(items):
                called.clear()
                began = time.process_time()
                sys.setprofile(note)
                self._run(item, items[at + 1 : at + 2])
                sys.setprofile(None)
                if not self._failed:
                    every = map(of, list(called.values()))
                    functions = frozenset(each for each in every if each[0].startswith(("oddsengine/", "service/")))
                    out.append((at, time.process_time() - began, functions))
                elif self._failed:
                    self._failed = ""
            return out

        found = forked(work, 900.0)
        if found is None or len(found) < len(items):
            self._report(f"{len(items) - len(found or ())} tests of {file} fail without a change\n")
        return [Ran(items[at], seconds, functions) for at, seconds, functions in found or ()]

    def _with(self, changed: list[tuple[FunctionType, Any]], items: list[pytest.Item]) -> str:
        """Make a change, run tests, and return the first that fails, or an empty string."""
        for function, made in changed:
            function.__code__, function.__defaults__, function.__kwdefaults__ = made
        for at, item in enumerate(items):
            self._run(item, items[at + 1 : at + 2])
            if self._failed:
                return self._failed
        return ""

    def _run(self, item: pytest.Item, following: list[pytest.Item]) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following[0] if following else None)


def run(places: list[tuple[Mutant, str]], minutes: float, *, interpreted: bool) -> list[tuple[str, str]]:
    """Test changes in this process; return the verdicts."""
    os.environ |= {
        "HYPOTHESIS_PROFILE": "few", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "KERNELS": "lazy",
        "NUMBA_DISABLE_JIT": str(int(interpreted)),
    }  # fmt: skip
    os.chdir(ROOT)
    shown, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    forks = Forks(places, lambda text: os.write(shown, text.encode()), time.monotonic() + 60 * minutes)
    for output in (1, 2):
        os.dup2(nothing, output)
    files = dict.fromkeys(file for mutant, _ in places for file in concern(mutant.file))
    options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider", "--doctest-modules"]
    status = pytest.main([*options, *files], plugins=[forks])
    if len(forks.verdicts) < len(places):
        raise SystemExit(f"pytest ended with status {status}; run it over {' '.join(files)}")
    return forks.verdicts


def main() -> int:
    """Change, test, count."""
    parser = argparse.ArgumentParser(
        description="Mutation tests: change the program at random places, one at a time, and run the tests that "
        "concern each. Prints one line per place, and the survivors again at the end.",
        epilog="Exit status: 0 if no change survived, 1 if one did.",
    )
    parser.add_argument("--seed", default="1", help="of the random places (1)")
    parser.add_argument("--count", type=int, default=200, help="number of places (200)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="places in matching files only")
    parser.add_argument("--again", type=Path, metavar="FILE", help="the changes that a file lists, as printed, instead")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no place after so many minutes")
    parser.add_argument("--list", action="store_true", help="print the places and run nothing")
    options = parser.parse_args()
    again = set(options.again.read_text(encoding="utf-8").splitlines()) if options.again else None
    equivalent = {line.strip() for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()}
    places, same = list[tuple[Mutant, str]](), 0
    for mutant in chosen(ROOT, options.seed, options.count, options.only, again):
        line = mutant.describe((ROOT / mutant.file).read_bytes())
        same += line in equivalent
        if options.list:
            print(f"{mutant.file}:{mutant.line} {line}")
        elif line not in equivalent:
            places.append((mutant, line))
    if options.list:
        return 0
    engine = [place for place in places if place[0].file.startswith("oddsengine/")]
    service = [place for place in places if not place[0].file.startswith("oddsengine/")]
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        jobs = [
            pool.submit(run, some, options.minutes, interpreted=some is engine) for some in (engine, service) if some
        ]
        verdicts = [verdict for job in jobs for verdict in job.result()]
    counts = Counter(said for said, _ in verdicts)
    survivors = [where for said, where in verdicts if said == "SURVIVED"]
    print(f"{counts['caught']} caught, {len(survivors)} survived, {same} equivalent, {counts['not run']} not run")
    print("\n\n".join(survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
