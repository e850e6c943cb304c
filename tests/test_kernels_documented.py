"""A person can review the kernels: each says what it computes and what each of its parameters is."""

import ast
import re
from pathlib import Path

import pytest

import oddsengine

ROOT = Path(oddsengine.__file__).parent
DECORATORS = {"kernel", "fused", "inlined"}

WORDS = """
again alike allowed alone bad bare begun beside both chosen crossed done doubled drawn each easy entered every
expired far flapping found freed fresh given gone hard held here indexed judged kept known later linked listed looked
made many mine missing mixed near new none offered old open other passed plain possible promising rejected renewed
repeated settled several small some spoken such summed taken that there these this those told touched trusted
twice unsure upto wanted when where which whole why wide wider written wrong
"""
"""Adjectives, participles and pronouns: they say which value a variable has, not what it is."""


def kernels() -> list[tuple[str, str, ast.FunctionDef]]:
    """Every kernel: its module, the docstring of the module, and its definition."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(f"@{mark}" in text for mark in DECORATORS):
            continue
        tree = ast.parse(text)
        module = str(path.relative_to(ROOT))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                if marks & DECORATORS:
                    found.append((module, ast.get_docstring(tree) or "", node))
    return found


def columns() -> set[str]:
    """The columns of the package: annotated fields of its classes, whose names kernels share."""
    classes = (
        node
        for path in ROOT.rglob("*.py")
        if "\nclass " in (text := path.read_text(encoding="utf-8"))
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    )
    fields = (field.target for node in classes for field in node.body if isinstance(field, ast.AnnAssign))
    return {field.id for field in fields if isinstance(field, ast.Name)}


def documented_tuples() -> set[str]:
    """The named tuples of the package that say what they are, and what each of their columns is."""
    classes = (
        node
        for path in ROOT.rglob("*.py")
        if "(NamedTuple)" in (text := path.read_text(encoding="utf-8"))
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in node.bases)
    )
    return {node.name for node in classes if ast.get_docstring(node)}


KERNELS, COLUMNS, TUPLES = kernels(), columns(), documented_tuples()
NAMES = [f"{module}:{function.name}" for module, _, function in KERNELS]


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def described_by_class(function: ast.FunctionDef) -> set[str]:
    """The parameters that are named tuples, whose classes say what they are."""
    typed = ((each.arg, ast.unparse(each.annotation)) for each in function.args.args if each.annotation)
    return {name for name, annotation in typed if annotation.rpartition(".")[2] in TUPLES}


def listed(module: str) -> set[str]:
    """The names that a module's docstring lists: those before the colon of an item, in backticks."""
    items = re.findall(r"^- (.*?): ", module, re.MULTILINE | re.DOTALL)
    return {name for item in items for name in re.findall(r"`(\w+)`", item)}


def test_there_are_kernels() -> None:
    assert len(KERNELS) > 150


@pytest.mark.parametrize(("module", "function"), [(text, node) for _, text, node in KERNELS], ids=NAMES)
def test_every_parameter_is_documented(module: str, function: ast.FunctionDef) -> None:
    own = ast.get_docstring(function)
    assert own
    documented = set(re.findall(r"`(\w+)`", own)) | listed(module) | described_by_class(function)
    assert [name for name in parameters(function) if name not in documented] == []


@pytest.mark.parametrize("function", [node for _, _, node in KERNELS], ids=NAMES)
def test_variables_are_nouns(function: ast.FunctionDef) -> None:
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    assert sorted(({*parameters(function), *stored} & set(WORDS.split())) - COLUMNS) == []
