"""Who may import whom: arrows go one way, from the top of this list to its bottom."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.affected import statements

import oddsengine

ROOT = Path(oddsengine.__file__).parent

# Each layer may import from its own earlier siblings in the list and from the layers above it.
LAYERS: list[set[str]] = [
    {"__main__", "_installation", "bounds", "catalog", "columns", "plugins", "progress"},
    {"_cache", "_compilers"},
    {"_jit"},
    {"compiling"},
    {"maths"},
    {"fair_functions", "tables"},
    {"feeds", "identity"},
    {"guards", "matching", "staking"},
    {"pricing", "sources"},
    {"detection", "simulate"},
    {"board", "futures"},
    {"live"},
    {"query", "tape"},
    {"execution", "history"},
    {"backtesting"},
    {"plot"},
    {"commands"},
    {"testing"},
]
MATHS_MAY_USE = {"_jit", "bounds", "columns", "maths", "odds"}


@cache
def tree(path: Path) -> ast.Module:
    """A file, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports, at any depth of the code."""
    found = set()
    for node in statements(tree(path).body):
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
        if module in {"maths", "odds", "devig", "kelly", "arbitrage", "middle", "portfolio", "value"}:
            assert used in MATHS_MAY_USE, f"{module} is pure maths and imports {used}"


def test_nothing_below_the_door_reads_clock_network_or_environment() -> None:
    banned = {"os", "socket", "urllib", "http", "logging", "random", "time", "asyncio"}
    files = {
        "_installation",
        "progress",
        "_cache",
        "_compilers",
        "compiling.compilation",
        "commands.cli",
        "fair_functions",  # the time of a call
        "guards.plugin_guards",  # likewise
        "commands",
        "tables.files",
        "feeds.price_files",
        "tables.sample",
        "tape",
        "backtesting",
        "history.archive",
        "sources",  # the only folder that opens a socket
        "testing",  # servers of tests
    }
    for _, path in modules():
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        if files & {name, *(name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1))}:
            continue
        used = {
            name.split(".")[0]
            for node in ast.walk(tree(path))
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


# ---- the service ----

SERVICE_ROOT = ROOT.parent / "service" / "oddsengine_service"
SERVICE = sorted(SERVICE_ROOT.rglob("*.py"))

# Each layer may import from those above it, and a folder from itself.
OF_SERVICE: list[set[str]] = [
    {"errors"},
    {"tiers", "clock", "settings", "healthcheck"},
    {"monitoring", "wire", "lock"},
    {"replication"},
    {"accounts"},
    {"board", "history"},
    {"feeds", "pool"},
    {"node"},
    {"stream", "node_constants", "demo"},
    {"http"},
    {"shared_params", "api"},
    {"bettors", "backup"},
    {"routes"},
    {"v4", "ws", "mcp"},
    {"routing"},
    {"site", "gauges", "mcp_stdio"},
    {"app"},
    {"live_markets"},
    {"scale"},
    {"server"},
    {"embedding"},
    {""},  # the package itself
]


def of_service(path: Path) -> set[str]:
    """Modules at the root of the service, and folders, that a file of it imports."""
    used = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "oddsengine_service":
            inner = node.module.split(".")[1:2]
            used |= {*inner} if inner else {alias.name for alias in node.names}
    return used


@pytest.mark.parametrize("path", SERVICE, ids=lambda path: str(path.relative_to(SERVICE_ROOT)))
def test_arrows_point_down_in_the_service(path: Path) -> None:
    own = path.relative_to(SERVICE_ROOT).with_suffix("").parts[0].replace("__init__", "")
    level = {module: at for at, layer in enumerate(OF_SERVICE) for module in layer}
    for used in of_service(path) - {own}:
        assert level[used] < level[own], f"{path.name} of {own or 'the package'} imports {used}"


PUBLIC = {
    "",
    "board.event_status",
    "bounds",
    "board.serialisation",
    "history.archive",
    "maths.calculators",
    "catalog",
    "catalog.futures_catalog",
    "catalog.links",
    "history.closing",
    "history.clv",
    "columns",
    "pricing.commission",
    "maths.devig",
    "live.delayed",
    "live.engine",
    "live.recorder",
    "detection.explain",
    "detection.kinds",
    "feeds",
    "futures",
    "guards.plugin_guards",
    "feeds.merged_scores",
    "history.movements",
    "plugins",
    "history.truth_file",
    "maths.kelly",
    "matching",
    "maths.odds",
    "maths.rounding",
    "staking.outcomes",
    "staking.same_bets",
    "query",
    "query.values",
    "catalog.reasons",
    "tables.levels",
    "tables.schema",
    "simulate",
    "simulate.simulated_futures",
    "simulate.simulated_splits",
    "sources",
    "live.snapshot",
    "tables.spreadsheets",
    "staking.stakes",
    "tape",
    "tables.timestamps",
    "live.update",
}
FETCHERS = {path.stem for path in (ROOT / "sources").glob("*.py")} - {"__init__"}
PARSERS = {path.stem for path in (ROOT / "feeds").glob("*.py")} - {"__init__"}


def of_library(path: Path) -> set[str]:
    """Modules of the library that a file imports, without their first name; "" is the package itself."""
    used = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "oddsengine":
            module = node.module.partition(".")[2]
            inner = {f"{module}.{alias.name}".lstrip(".") for alias in node.names}
            submodules = {name for name in inner if (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()}
            used |= submodules or {module}
        elif isinstance(node, ast.Import):
            used |= {a.name.partition(".")[2] for a in node.names if a.name.split(".")[0] == "oddsengine"}
    return used


@pytest.mark.parametrize(
    "path", SERVICE, ids=lambda path: str(path.relative_to(ROOT.parent / "service" / "oddsengine_service"))
)
def test_the_service_imports_public_modules(path: Path) -> None:
    allowed = PUBLIC | {f"feeds.{name}" for name in PARSERS} | {f"sources.{name}" for name in FETCHERS}
    assert not of_library(path) - allowed, f"{path.name} imports internals of the library"


@pytest.mark.parametrize(
    "path", SERVICE, ids=lambda path: str(path.relative_to(ROOT.parent / "service" / "oddsengine_service"))
)
def test_the_service_uses_no_private_name_of_the_library(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "oddsengine":
            assert not [alias.name for alias in node.names if alias.name.startswith("_")]
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            assert node.attr not in ("_board", "_views", "_awake")


# ---- the documentation ----


@pytest.mark.parametrize(
    "package", [ROOT, ROOT.parent / "service" / "oddsengine_service"], ids=lambda path: str(path.name)
)
def test_every_folder_and_module_is_on_the_page_of_modules(package: Path) -> None:
    text = (ROOT.parent / "docs" / "modules.md").read_text(encoding="utf-8")
    for path in package.rglob("*.py"):
        folder, *inner = path.relative_to(package).parts
        if inner:
            assert f"`{folder}/`" in text, path
        if package == ROOT and path.stem not in ("__init__", "__main__"):
            assert f"`{path.stem}`" in text, path


def test_the_page_of_modules_has_the_order_of_imports() -> None:
    text = (ROOT.parent / "docs" / "modules.md").read_text(encoding="utf-8")
    folders = re.findall(r"^\| `(\w+)/` \|", text.partition("\nThe service")[0], re.MULTILINE)
    assert [level(folder) for folder in folders] == sorted(level(folder) for folder in folders)
