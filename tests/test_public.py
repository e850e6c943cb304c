"""The names that people import."""

import ast
import doctest
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import oddsengine


def test_all_is_exported() -> None:
    assert len(set(oddsengine.__all__)) == len(oddsengine.__all__)
    for name in oddsengine.__all__:
        assert getattr(oddsengine, name) is not None


def test_nothing_public_is_missing_from_all() -> None:
    for name in oddsengine.__all__:
        getattr(oddsengine, name)  # those that load late
    public = {name for name, value in vars(oddsengine).items() if not (name.startswith("_") or inspect.ismodule(value))}
    public -= {"Any", "TYPE_CHECKING"}
    assert dir(oddsengine) == sorted(oddsengine.__all__)
    assert public == {name for name in oddsengine.__all__ if not name.startswith("_")} - {"plot"}


def test_type_checkers_see_what_is_imported_on_first_use() -> None:
    """The same names, from the same modules."""
    tree = ast.parse(Path(str(oddsengine.__file__)).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    seen = {
        alias.name: str(node.module).removeprefix("oddsengine.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen.pop("plot") == "oddsengine"  # a folder
    assert seen == oddsengine._LATER
    # A module of the same name would take the place of what is exported, once something imports it.
    folder = Path(str(oddsengine.__file__)).parent
    assert not set(oddsengine._LATER) & {path.stem for path in folder.iterdir()}


def test_importing_loads_neither_finders_nor_the_live_board() -> None:
    code = "import sys, oddsengine; print(*sorted(name for name in sys.modules if name.count('.') == 1))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "oddsengine.tables" in loaded
    assert not loaded & {
        f"oddsengine.{name}" for name in ("board", "detection", "live", "plot", "query", "staking", "pricing")
    }


def test_public_functions_say_what_they_do() -> None:
    for name in oddsengine.__all__:
        value = getattr(oddsengine, name)
        if callable(value):
            assert value.__doc__, name


def test_finders_say_what_each_word_is() -> None:
    """By themselves: whoever asks for help sees no other page."""
    for name in oddsengine.__all__:
        value = getattr(oddsengine, name)
        if name.startswith("find_"):
            text = inspect.getdoc(value) or ""
            given = re.findall(r"^([a-z_]+(?:, [a-z_]+)*)$", text, re.MULTILINE)
            assert {word for line in given for word in line.split(", ")} >= set(inspect.signature(value).parameters)
            assert "See the module" not in text
            assert {"Examples"} <= set(text.splitlines())


def test_importing_loads_no_compiler() -> None:
    code = "import sys, oddsengine; sys.exit(any(m in sys.modules for m in ('numba', 'llvmlite')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_plots_does_not_import_matplotlib() -> None:
    code = "import sys, oddsengine; oddsengine.plot.movement; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_fits_a_terminal() -> None:
    for name in oddsengine.__all__:
        value = getattr(oddsengine, name)
        if inspect.isfunction(value):
            assert len(pydoc.render_doc(value).splitlines()) <= 50, name


def test_twelve_tasks_take_a_few_lines_each() -> None:
    """That they run is seen with all other pages."""
    page = (Path(__file__).parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")
    tasks = re.findall(r"^\*\*(\d+)\. .*?```python\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    assert [int(number) for number, _ in tasks] == list(range(1, 13))
    for number, text in tasks:
        assert len(doctest.DocTestParser().get_examples(text)) in range(1, 6), number
