"""Every notebook runs from its first cell to its last, and shows what is stored in it.

After a change that is meant: `python tests/test_notebooks.py` runs the notebooks and stores what they show now; with
parts of their names, such as `03 node`, only those.
"""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401  makes the list of fonts now, where it was not made before
import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from support.anchors import anchors

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 1_500_000
MOST_S = 180  # a cell
COURSE = (
    "01_board", "02_opportunity", "03_real", "04_worth", "05_stakes", "06_season", "07_model", "08_node",
)  # fmt: skip
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MACHINE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|var|private|usr|opt|mnt|Users)/|\b[A-Z]:\\")
_FIRST_RUN = "oddsengine: compiling kernels"  # what the first run on a machine says is no part of a notebook
_OWN = ("NUMBA_DISABLE_JIT", "PYTHONWARNINGS", "MPLBACKEND")  # what a run of the tests may set for itself


class _Kernels(KernelSpecManager):
    """Knows of one kernel, whatever is installed: this interpreter."""

    def _find_spec_directory(self, kernel_name: str) -> str | None:
        """Leave out the folders in which kernels are installed."""
        self.kernel_dirs = []
        return super()._find_spec_directory(kernel_name)


def execute(notebook: Any) -> Any:
    """Run a copy of a notebook in a fresh kernel, in an empty folder; gives the copy with its outputs."""
    fresh = nbformat.from_dict(notebook)  # type: ignore[no-untyped-call]
    for cell in fresh.cells:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    with tempfile.TemporaryDirectory() as folder:
        own = {"IPYTHONDIR": f"{folder}/ipython", "JUPYTER_RUNTIME_DIR": folder}
        env = {name: value for name, value in os.environ.items() if name not in _OWN} | own
        # Sockets in the folder, not ports.
        kernel = AsyncKernelManager(kernel_spec_manager=_Kernels(), transport="ipc", ip=f"{folder}/k")
        client = NotebookClient(
            fresh, km=kernel, timeout=MOST_S, record_timing=False, resources={"metadata": {"path": folder}}
        )
        client.execute(env=env, cleanup_kc=True)
    for cell in fresh.cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = [shown for shown in cell["outputs"] if not shown.get("text", "").startswith(_FIRST_RUN)]
    return fresh


def texts(cell: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a cell shows as text, by its kind; of a picture only that it is one."""
    shown: list[tuple[str, str]] = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            shown.append((output["name"], output["text"]))
        elif output["output_type"] == "error":
            shown.append(("error", output["evalue"]))
        else:
            shown += [
                (kind, "" if kind.startswith("image/") else str(value))
                for kind, value in sorted(output["data"].items())
            ]
    return shown


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def test_the_course_is_complete() -> None:
    assert tuple(path.stem for path in NOTEBOOKS) == COURSE


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_begins_with_a_question_and_ends_with_limits(path: Path) -> None:
    """The title has the number of the file; the end has the next notebook and a page of the documentation."""
    cells = read(path).cells
    first, last = cells[0], cells[-1]
    assert (first["cell_type"], last["cell_type"]) == ("markdown", "markdown")
    assert re.match(rf"# {int(path.stem[:2])}\. [^\n.]+\n\n[A-Z][^.?!]+\?", first["source"]), first["source"]
    assert re.match(r"## What this does not know\n\n(- .+\n(  .+\n)*){3,}\n", last["source"]), last["source"]
    links = LINK.findall(last["source"])
    assert [link for link in links if link.startswith("../docs/")]
    at = COURSE.index(path.stem) + 1
    if at < len(COURSE):
        assert re.search(rf"^Next: \[{at + 1}\. [^\]]+\]\({COURSE[at]}\.ipynb\)", last["source"], re.MULTILINE)
    else:
        assert "Next:" not in last["source"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_pictures_are_made_by_the_package(path: Path) -> None:
    """What a notebook needs, others need too: it belongs into `oddsengine.plot`."""
    code = "\n".join(cell["source"] for cell in read(path).cells if cell["cell_type"] == "code")
    assert not re.findall(r"\b(?:matplotlib|pyplot|plt|seaborn|plotly|altair)\b", code)
    assert "oe.plot." in code


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    text = "\n".join(cell["source"] for cell in read(path).cells if cell["cell_type"] == "markdown")
    for link in LINK.findall(text):
        if link.startswith("https://"):
            continue
        name, _, part = link.partition("#")
        page = (path.parent / name).resolve()
        assert page.is_file(), link
        assert not part or part in anchors(page), link


@pytest.mark.parametrize(
    "path",
    [*NOTEBOOKS[:1], *(pytest.param(path, marks=pytest.mark.exhaustive) for path in NOTEBOOKS[1:])],
    ids=lambda path: path.name,
)
def test_shows_what_is_stored(path: Path) -> None:
    stored = read(path)
    fresh = execute(stored)
    for number, (was, now) in enumerate(zip(stored.cells, fresh.cells, strict=True)):
        assert texts(now) == texts(was), f"cell {number} shows something else:\n{was['source']}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_it_imports_exists(path: Path) -> None:
    """Also for notebooks that only `make test-all` runs."""
    code = "\n".join(cell["source"] for cell in read(path).cells if cell["cell_type"] == "code")
    imports = re.findall(r"^(?:from|import) oddsengine.*$", code, re.MULTILINE)
    assert imports
    exec("\n".join(imports), {})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_is_fit_to_be_stored(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell["cell_type"] == "code"]
    shown = [text for cell in code for text in texts(cell)]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run from first to last"
    assert {kind for kind, _ in shown} <= {"stdout", "text/plain", "text/html", "image/png"}
    assert "image/png" in {kind for kind, _ in shown}
    assert path.stat().st_size <= MOST_BYTES
    said = "\n".join(
        [cell["source"] for cell in notebook.cells] + [text for _, text in shown] + [str(notebook.metadata)]
    )
    assert not MACHINE.search(said)
    assert not [place for place in (ROOT, Path.home(), sys.prefix, tempfile.gettempdir()) if f"{place}/" in said]


def store(path: Path) -> None:
    """Run a notebook and put in what it shows."""
    fresh = execute(read(path))
    fresh.metadata["language_info"] = {"name": "python"}
    for cell in fresh.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(fresh, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    for notebook_path in NOTEBOOKS:
        if not sys.argv[1:] or any(name in notebook_path.stem for name in sys.argv[1:]):
            store(notebook_path)
