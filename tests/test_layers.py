"""Who may import whom: arrows go one way, from the top of this list to its bottom."""

import ast
from pathlib import Path

import pytest

import oddsengine

ROOT = Path(oddsengine.__file__).parent

# Each layer may import from its own earlier siblings in the list and from the layers above it.
LAYERS: list[set[str]] = [
    {"_cache", "_jit", "columns", "games", "sample"},
    {"odds", "devig", "kelly", "arbitrage", "middle", "value", "clv", "backtest", "catalog"},
    {"casts", "expressions", "reasons", "results"},
    {"schema"},
    {"tables", "groups", "timestamps"},
    {"traits"},
    {"twins", "identity"},
    {"markets"},
    {"guards"},
    {"detect"},
    {"tails"},
    {"find"},
    {"opportunities"},
    {"board", "open"},
    {"update", "view", "engine"},
    {"query"},
    {"tape", "simulate", "warm", "feeds"},
    {"matching"},
    {"futures"},
    {"reading"},
    {"explain"},
    {"commands"},
    {"cli"},
]
MATHS_MAY_USE = {"_jit", "odds"}


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports, at any depth of the code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "oddsengine":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("oddsengine.")}
    return found


def modules() -> list[tuple[str, Path]]:
    files = [p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py"]
    return [(p.relative_to(ROOT).parts[0].removesuffix(".py"), p) for p in files]


def level(module: str) -> int:
    return next(at for at, layer in enumerate(LAYERS) if module in layer)


def test_every_module_has_a_layer() -> None:
    known = set().union(*LAYERS)
    assert {module for module, _ in modules()} - known == {"data"} & {module for module, _ in modules()}


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_arrows_point_down(module: str, path: Path) -> None:
    if module == "data":
        return
    for used in imports(path) - {module}:
        assert level(used) <= level(module), f"{path.name} of {module} imports {used}"
        if module in {"odds", "devig", "kelly", "arbitrage", "middle", "value"}:
            assert used in MATHS_MAY_USE, f"{module} is pure maths and imports {used}"


def test_nothing_below_the_door_reads_clock_network_or_environment() -> None:
    banned = {"os", "socket", "urllib", "http", "logging", "random", "time", "asyncio"}
    for module, path in modules():
        if module in {"_cache", "cli", "commands", "tables", "reading", "warm", "sample", "tape"}:
            continue
        used = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if name != "urllib.parse"
        }
        assert not used & banned, f"{path.name} imports {used & banned}"
