"""The pages of the API reference, in reStructuredText: which names they have, and signatures as the source has them.

The names are those of `docs/api.md` by its headings, which are `oddsengine.__all__`, then those of the modules that the
docs name. Types are written as in the source: `ArrayLike`, not what numpy makes of it. Sphinx reads the docstrings.
"""

import ast
import functools
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
MODULES = {
    "Plots": "oddsengine.plot",
    "Catalog": "oddsengine.catalog",
    "A node in an application": "oddsengine_service",
}
ELSEWHERE = {
    "ArrayLike": "What numpy makes an array of: a number, a list of numbers, an array, a column of a frame.",
    "IntoExpr": "The name of a column, an expression of polars, or a value.",
}  # types that other packages define
INNER = ("oddsengine.board", "oddsengine.live.key", "oddsengine.pricing.references")  # what no user makes or reads
_IMPORT = re.compile(r"^(?:>>> )?from (oddsengine[\w.]*\.[\w.]+) import (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^((?:\*{0,2}\w+)(?:, \*{0,2}\w+)*)(?: : .*)?$", re.MULTILINE)


class Section(NamedTuple):
    """A page of the reference: its title, and its names with their modules."""

    title: str
    names: tuple[str, ...]

    @property
    def file(self) -> str:
        """Name of the page."""
        return re.sub(r"\W+", "_", self.title.lower())


def find(name: str) -> Any:
    """Return what a dotted name stands for."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


@functools.cache
def sections() -> tuple[Section, ...]:
    """Sections of the reference without the types, in order."""
    parts = (ROOT / "docs/api.md").read_text(encoding="utf-8").split("\n## ")[1:]
    cells = [(part.partition("\n")[0], re.findall(r"^\| (`[^|]*) \|", part, re.MULTILINE)) for part in parts]
    made = [
        Section(title, tuple(f"oddsengine.{name}" for cell in rows for name in re.findall(r"`(\w+)", cell)))
        for title, rows in cells
    ]
    made += [
        Section(title, tuple(f"{module}.{name}" for name in importlib.import_module(module).__all__))
        for title, module in MODULES.items()
    ]
    known = {id(find(name)) for section in made for name in section.names}
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    others = {f"{module}.{name}" for module, names in _IMPORT.findall(text) for name in re.findall(r"\w+", names)}
    others = {name for name in others if not inspect.ismodule(find(name)) and id(find(name)) not in known}
    return (*made, Section("Other modules", tuple(sorted(others))))


# ---- signatures ----


@functools.cache
def source(value: Any) -> str:
    """Source of a function or of a class; finding one takes milliseconds."""
    return textwrap.dedent(inspect.getsource(value))


def tree(value: Any) -> Any:
    """Syntax tree of a function or of a class."""
    return ast.parse(source(value)).body[0]


def comment(field: str, text: str) -> str:
    """The comment beside a field of a class or a key of a mapping; nothing without one."""
    said = re.search(rf'^    "?{field}"?: .*?  # (.*)$', text, re.MULTILINE)
    return said[1] if said else ""


def fields(value: type) -> list[ast.AnnAssign]:
    """Public fields of a class that writes no `__init__`."""
    own = [base for base in reversed(value.__mro__) if base.__module__.startswith("oddsengine")]
    return [
        node for base in own for node in tree(base).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_"
    ]  # fmt: skip


def _init(value: type) -> Any:
    own = inspect.getattr_static(value, "__init__", None)
    return own if inspect.isfunction(own) and own.__module__.startswith("oddsengine") and _written(own) else None


def _written(function: Any) -> bool:
    return Path(function.__code__.co_filename).is_file()


def signature(value: Any) -> tuple[str, str]:
    """Parameters and result of a function or a class, as the source has them; nothing for classes of results."""
    if inspect.isclass(value) and not (issubclass(value, tuple) or "Parameters\n" in (inspect.getdoc(value) or "")):
        return "", ""
    if inspect.isclass(value) and _init(value) is None:
        made = [
            f"{node.target.id}: {ast.unparse(node.annotation)}" + (f" = {_default(node.value)}" if node.value else "")
            for node in fields(value)
            if isinstance(node.target, ast.Name)
        ]
        return (f"({', '.join(made)})" if made else "", "")
    node = tree(_init(value) if inspect.isclass(value) else inspect.unwrap(value))
    every = node.args.posonlyargs or node.args.args
    if every and every[0].arg in ("self", "cls"):
        every.pop(0)
    result = ast.unparse(node.returns).strip("'") if node.returns and not inspect.isclass(value) else ""
    return f"({ast.unparse(node.args)})", "" if result == "None" else result


def _default(node: ast.expr) -> str:
    return "..." if isinstance(node, ast.Call) else ast.unparse(node)


def parameters(value: Any) -> list[str]:
    """Names of the parameters of a function or of a class that is called."""
    args = ast.parse(f"def f{signature(value)[0] or '()'}: ...").body[0].args  # type: ignore[attr-defined]
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [each.arg for each in every if each is not None]


def gaps(value: Any) -> list[str]:
    """What a docstring leaves out: parameters, and an example unless it is a result. Fields have comments."""
    text = inspect.getdoc(value) or ""
    given = {word.strip("* ") for found in _ENTRY.findall(text) for word in found.split(",")}
    if inspect.isclass(value) and issubclass(value, tuple):
        given |= {name for name in parameters(value) if comment(name, source(value))}
    elif signature(value) != ("", "") and "Examples" not in text.splitlines():
        return [*(name for name in parameters(value) if name not in given), "an example"]
    return [name for name in parameters(value) if name not in given]


# ---- types ----


def types() -> tuple[dict[str, type], dict[str, str]]:
    """Classes that signatures name and no section has, by full name; what the other names in them stand for."""
    public = {id(find(name)) for section in sections() for name in section.names}
    classes: dict[str, type] = {}
    aliases: dict[str, str] = {}
    for function in _functions():
        args = tree(function)
        for name in {node.id for part in _annotations(args) for node in ast.walk(part) if isinstance(node, ast.Name)}:
            value = function.__globals__.get(name)
            if inspect.isclass(value) and value.__module__.startswith("oddsengine"):
                inner = value.__module__.startswith(INNER) or getattr(value, "_is_protocol", False)
                if id(value) not in public and not inner and not name.startswith("_"):
                    classes[f"{value.__module__}.{value.__qualname__}"] = value
            elif value is not None and (name in ELSEWHERE or not inspect.isclass(value)):
                aliases[name] = _definition(name, value)
    said = {name: text for name, text in sorted(aliases.items()) if text}
    return dict(sorted(classes.items(), key=lambda item: item[1].__name__)), said


def _functions() -> Iterator[Any]:
    """Public functions, and public methods of public classes."""
    for section in sections():
        for value in map(find, section.names):
            if inspect.isclass(value):
                for member in (v for k, v in vars(value).items() if k == "__init__" or k[0] != "_"):
                    inner = getattr(member, "__func__", getattr(member, "fget", getattr(member, "func", member)))
                    if inspect.isfunction(inner) and _written(inner):
                        yield inner
            elif inspect.isfunction(inspect.unwrap(value)):
                yield inspect.unwrap(value)


def _annotations(node: Any) -> Iterable[ast.expr]:
    args = node.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [each for each in (*(arg.annotation for arg in every if arg), node.returns) if each is not None]


@functools.cache
def _source(module: str) -> str:
    return inspect.getsource(sys.modules[module])


def assigned(name: str, value: Any) -> tuple[str, ast.expr, str] | None:
    """Where a constant or an alias is assigned: the module, the expression, and the docstring below it."""
    for module in [each for each in sys.modules if each.startswith("oddsengine")]:
        there = vars(sys.modules[module]).get(name) is value
        if not there or not re.search(rf"^{name}\b[^=\n]*= ", _source(module), re.MULTILINE):
            continue
        body = ast.parse(_source(module)).body
        for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                doc = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
                return module, node.value, inspect.cleandoc(str(doc))  # type: ignore[attr-defined]
    return None


def _definition(name: str, value: Any) -> str:
    found = assigned(name, value)
    if name in ELSEWHERE or not found:
        return ELSEWHERE.get(name, "")
    return f"``{ast.unparse(found[1])}``" + (f". {found[2]}" if found[2] else "")


# ---- pages ----


def entry(name: str) -> str:
    """The directive of a name."""
    value = find(name)
    if inspect.ismodule(value):
        return f".. py:data:: {name}\n   :no-index:\n\n   See :doc:`plots`."
    if inspect.isclass(value) and issubclass(value, Exception):
        return f".. autoexception:: {name}"
    if inspect.isclass(value):
        others = [base.__name__ for base in value.__mro__ if not base.__module__.startswith("oddsengine")]
        return f".. autoclass:: {name}\n   :members:\n   :inherited-members: {', '.join(others)}"
    return f".. autofunction:: {name}" if callable(value) else _data(name, value)


def _data(name: str, value: Any) -> str:
    """A constant: what it says of itself, and what is in it."""
    module, _, last = name.rpartition(".")
    found = assigned(last, value)
    lines = [f".. py:data:: {last}", f"   :module: {module}", ""]
    if found and found[2]:
        lines += [textwrap.indent(found[2], "   "), ""]
    if isinstance(value, dict):
        text = _source(found[0]) if found else ""
        lines += ["   .. list-table::", "      :widths: auto", ""]
        said = [comment(key, text) for key in value]
        for (key, item), words in zip(value.items(), said, strict=True):
            lines += [f"      * - ``{key}``", f"        - ``{item}``", *[f"        - {words}"] * any(said)]
    else:
        values = value if isinstance(value, tuple) else [value]
        lines.append("   " + ", ".join(f"``{each}``" for each in values))
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Each page of the reference by its file."""
    made = {
        section.file + ".rst": "\n\n".join([_title(section.title), *map(entry, section.names), ""])
        for section in sections()
    }
    classes, aliases = types()
    short = [f".. py:type:: {name}\n\n   {text}" for name, text in aliases.items()]
    made["types.rst"] = "\n\n".join([
        _title("Types"), "Results and arguments of the other pages.", _title("Short names in signatures", "-"), *short,
        _title("Classes", "-"), *map(entry, classes), "",
    ])  # fmt: skip
    listed = "\n   ".join([*(section.file for section in sections()), "types"])
    made["index.rst"] = (
        f"{_title('API reference')}\n\nEvery public name, its parameters and an example. "
        f":doc:`/docs/api` has them in one table.\n\n.. toctree::\n   :maxdepth: 2\n\n   {listed}\n"
    )
    return made


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}"


def plain() -> str:
    """The reference as plain text, for programs that read."""
    parts = ["# API reference"]
    for section in sections():
        for name in section.names:
            value = find(name)
            if callable(value):
                arguments, result = signature(value)
                head = f"## {name}{arguments}" + (f" -> {result}" if result else "")
                parts.append(f"{head}\n\n{inspect.getdoc(value)}")
    return "\n\n".join(parts) + "\n"
