"""The tests that a change can reach: `make affected` runs them before all others.

These are the tests that import a changed module, or a module that does; the tests in its folder below `tests`; those
that `mutate.py` names for it; its examples; and the golden tapes. A public name of the package is followed to the
module that defines it, instead of to all that `oddsengine/__init__.py` imports. Everything is run if a kernel changed,
or a data file of the package, or what all tests share.

    PYTHONPATH=tests python -m support.affected [BASE]    print them; BASE is a commit, and otherwise the last one that
                                                          is shared with the upstream branch, or else HEAD
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path, PurePath

import mutate

ROOT = Path(__file__).parents[2]
EVERYTHING = ["tests", "oddsengine"]
GOLDEN = "tests/test_golden.py"
_PACKAGES = {"oddsengine": ROOT, "oddsengine_service": ROOT / "service", "oddsengine_cli": ROOT}
_MARKS = {"kernel", "fused", "inlined"}
_SHARED = {
    "tests/conftest.py",
    "pyproject.toml",
    "constraints.txt",
    "setup.py",
    "oddsengine/_jit.py",
    "oddsengine/_cache.py",
}
_OTHERS = {  # what is no module: by folder or name, the tests that read it
    ".ci": ["tests/test_ci.py"], "Makefile": ["tests/test_ci.py"], "docs": ["tests/test_docs.py"],
    "README.md": ["tests/test_docs.py"], "CONTRIBUTING.md": ["tests/test_docs.py"],
    "CHANGELOG.md": ["tests/test_docs.py"],
    "examples": ["tests/test_examples.py"], "notebooks": ["tests/test_notebooks.py"], "deploy": ["tests/deploy"],
    "conda": ["tests/test_packaging.py"],
    "benchmarks": ["tests/test_bench_report.py"], "scripts": ["tests/test_site.py", "tests/compiling"],
    "MANIFEST.in": ["tests/test_packaging.py"], "service": ["tests/service"],
}  # fmt: skip


def tree(path: Path) -> ast.Module:
    """A file, parsed."""
    return ast.parse(path.read_bytes())


def module(name: str) -> Path | None:
    """The file of a module of ours, or of one below `tests`."""
    base = _PACKAGES.get(name.partition(".")[0], ROOT / "tests").joinpath(*name.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def exports() -> dict[str, Path]:
    """The modules of the public names of the package."""
    names: dict[str, Path] = {}
    for node in ast.walk(tree(ROOT / "oddsengine" / "__init__.py")):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                path = module(f"{node.module}.{alias.name}") or module(node.module)
                if path is not None:
                    names[alias.asname or alias.name] = path
    return names


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements at any depth: without expressions, in which nothing is imported, a third as many nodes."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, name, None) or ())


@cache
def imports(path: Path) -> frozenset[Path]:
    """The files of ours that a file imports, at any depth of its code."""
    out: set[Path | None] = set()
    facade = set()
    for node in statements(tree(path).body):
        if isinstance(node, ast.Import):
            facade |= {alias.asname or alias.name for alias in node.names if alias.name == "oddsengine"}
            out |= {module(alias.name) for alias in node.names if alias.name != "oddsengine"}
        elif isinstance(node, ast.ImportFrom) and node.module == "oddsengine":
            out |= {module(f"oddsengine.{alias.name}") or exports().get(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            out |= {module(f"{node.module}.{alias.name}") or module(node.module) for alias in node.names}
    if facade:  # by its text, which also has the code that a test runs in another process
        text = path.read_text(encoding="utf-8")
        for name in set(re.findall(rf"\b(?:{'|'.join(facade)})\.(\w+)", text)):
            out.add(module(f"oddsengine.{name}") or exports().get(name))
    return frozenset(each for each in out if each is not None and each != ROOT / "oddsengine" / "__init__.py")


def importers(changed: Iterable[Path]) -> set[Path]:
    """The test files that import some modules, or modules that do, directly or through helpers of tests.

    What is farther away is left to `make test`: most tests reach most modules in some way.
    """
    files = [*(ROOT / "oddsengine").rglob("*.py"), *(ROOT / "service").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    users: dict[Path, list[Path]] = {}
    for path in files:
        for used in imports(path):
            users.setdefault(used, []).append(path)
    steps = dict.fromkeys(changed, 0)
    new = [*steps]
    while new:
        path = new.pop(0)
        for user in users.get(path, []):
            far = steps[path] + (ROOT / "tests" not in user.parents)
            if far <= 1 and far < steps.get(user, 2):
                steps[user] = far
                new.append(user)
    return {path for path in steps if path.name.startswith("test_")}


def kernels(source: bytes) -> list[str]:
    """The kernels of a file, without their positions."""
    return [
        ast.dump(node)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and _MARKS & {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
    ]


def select(changed: Sequence[str], before: dict[str, bytes]) -> list[str]:
    """What pytest has to run for some changed files; `before` has the modules as they were, if they were."""
    modules, out = [], {GOLDEN}
    for name in changed:
        path, top = ROOT / name, PurePath(name).parts[0]
        of_package = top in ("oddsengine", "service", "tests") and name.endswith(".py")
        if name in _SHARED or (top == "oddsengine" and not of_package):
            return EVERYTHING
        if name.startswith("tests/tapes/") or name == "tests/times.tsv":
            continue
        if not of_package:
            out.update(_OTHERS.get(top, ["tests/test_packaging.py"]))
            continue
        now = path.read_bytes() if path.is_file() else b""
        if kernels(now) != kernels(before.get(name, b"")):
            return EVERYTHING
        if path.is_file():
            modules.append(path)
            out.update([name] if top == "oddsengine" or path.name.startswith("test_") else [])
        out.update(_mirrored(name))
    reached = {path.relative_to(ROOT).as_posix() for path in importers(modules)}
    return sorted(each for each in out | reached if (ROOT / each).exists())


def _mirrored(name: str) -> Iterator[str]:
    """The tests in the folder that a module has below `tests`, and those that find changes of it."""
    parts = PurePath(name).parts
    if parts[0] == "oddsengine":
        yield PurePath("tests", *parts[1:-1]).as_posix() if parts[1:-1] else f"tests/test_{parts[-1].lstrip('_')}"
    elif parts[:2] == ("service", "oddsengine_service"):
        stem = PurePath(name).stem
        yield from (
            PurePath("tests/service", *parts[2:-1], f"test_{stem}.py").as_posix(),
            f"tests/service/test_{stem}.py",
        )
    try:
        yield from mutate.concern(name)
    except StopIteration:
        return


def _git(*words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ).stdout


def changes(base: str = "") -> tuple[list[str], dict[str, bytes]]:
    """The files that differ from a commit, and the modules among them as they were."""
    if not base:
        try:
            base = _git("merge-base", "HEAD", "@{upstream}").decode().strip()
        except subprocess.CalledProcessError:
            base = "HEAD"
    names = _git("diff", "--name-only", "-z", "--no-renames", base).split(b"\0") + _git(
        "ls-files", "--others", "--exclude-standard", "-z"
    ).split(b"\0")
    changed = sorted({name.decode() for name in names if name})
    before = {}
    for name in changed:
        try:
            before[name] = _git("show", f"{base}:{name}") if name.endswith(".py") else b""
        except subprocess.CalledProcessError:
            continue
    return changed, before


if __name__ == "__main__":
    print(*select(*changes(*sys.argv[1:2])), sep="\n")
