"""The site of the documentation, as far as that takes a moment and no Sphinx: its pages, and what the reference has.

`make site` builds it, and follows its links.
"""

import inspect
import json
import re
from pathlib import Path

import make_site
import pytest
import reference

import oddsengine

ROOT = Path(__file__).parents[1]
_DIRECTIVE = re.compile(r"^\.\. \S+:: ([\w.]+)$(?:\n   :module: (\S+))?", re.MULTILINE)
CALLED = sorted(
    name
    for section in reference.sections()
    for name in section.names
    if name.startswith(("oddsengine.plot.", "oddsengine_service.")) or name.count(".") == 1
    if callable(reference.find(name))
)


def test_the_reference_has_every_public_name() -> None:
    names = [name for section in reference.sections() for name in section.names]
    assert len(set(names)) == len(names)
    wanted = {f"oddsengine.{name}" for name in oddsengine.__all__} - {"oddsengine.__version__"}
    assert {name for name in names if name.count(".") == 1 and name.startswith("oddsengine.")} == wanted
    text = "\n".join(reference.pages().values())
    told = {name if "." in name else f"{module}.{name}" for name, module in _DIRECTIVE.findall(text)}
    assert told >= set(names)


@pytest.mark.parametrize("name", CALLED)
def test_a_public_name_has_its_parameters_and_an_example(name: str) -> None:
    assert reference.gaps(reference.find(name)) == []


def test_types_are_written_as_in_the_source() -> None:
    assert reference.signature(oddsengine.kelly) == (
        "(prob: ArrayLike, odds: ArrayLike, fraction: ArrayLike=1.0)", "Floats",
    )  # fmt: skip
    assert reference.signature(oddsengine.Tape) == ("(path: str | os.PathLike[str])", "")
    assert reference.signature(oddsengine.Portfolio)[0].startswith("(bets: pl.DataFrame, growth: float,")
    assert reference.signature(oddsengine.tear_sheet) == ("(result: Backtest)", "Figure")
    assert reference.signature(oddsengine.View) == ("", "")  # made by an engine
    longest = max(CALLED, key=lambda name: len(reference.signature(reference.find(name))[0]))
    assert len(reference.signature(reference.find(longest))[0]) < 850, longest


def test_gaps_are_found() -> None:
    def without(first: int, second: int = 2) -> None:
        """Do nothing.

        Parameters
        ----------
        first
            A number.
        """

    assert reference.gaps(without) == ["second", "an example"]


def test_short_names_of_types_are_explained() -> None:
    _, aliases = reference.types()
    assert {"ArrayLike", "Floats", "Guards", "IntoFrame", "Method", "Sharp"} <= set(aliases)
    assert aliases["Guards"].startswith("``Iterable[str] | Mapping[str, float | bool] | None``. Names of the guards")


def test_the_sidebar_has_every_page_of_the_docs() -> None:
    listed = [page for part in make_site.parts() for page, _ in part.pages]
    assert len(set(listed)) == len(listed)
    assert {page for page in listed if page.startswith("docs/")} | {"docs/README.md"} == {
        f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")
    }


@pytest.mark.parametrize(("link", "made"), [
    ("[docs/ev.md](docs/ev.md)", "[](docs/ev.md)"),  # the title of the page
    ("[the index](docs/README.md#to-bet)", "[the index](docs/index.md#to-bet)"),
    ("[here](README.md)", "[here](index.md)"),
    ("[docs](docs/)", "[docs](docs/index.md)"),
    ("[stakes](notebooks/05_stakes.ipynb)", "[stakes](notebooks/05_stakes.md)"),
    ("[a program](examples/audit_csv.py)", "[a program](examples/audit_csv.md)"),
    ("![page](docs/images/page-light.png)", "![page](docs/images/page-light.png)"),
    ("[a host](https://example.com/README.md)", "[a host](https://example.com/README.md)"),
    ("[missing](docs/none.md)", "[missing](docs/none.md)"),  # which Sphinx reports
])  # fmt: skip
def test_links_lead_to_pages_of_the_site(link: str, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_site, "PAGES", tmp_path)
    assert make_site.linked(link, "README.md", make_site.sources()) == made
    assert (tmp_path / "docs/images/page-light.png").exists() == ("images" in link)


def test_a_notebook_keeps_its_stored_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_site, "PAGES", tmp_path)
    (tmp_path / "notebooks").mkdir()
    path = make_site.files("notebooks/*.ipynb")[0]
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    text, pictures = make_site.notebook(path)
    stored = [output for cell in cells for output in cell.get("outputs", [])]
    assert len(pictures) == sum("image/png" in output.get("data", {}) for output in stored) > 0
    assert all((tmp_path / "notebooks" / file).stat().st_size > 1000 and heading for file, heading in pictures)
    assert text.count("```python\n") == sum(cell["cell_type"] == "code" for cell in cells)
    assert all(f"](notebooks/{file})" in make_site.gallery({path: pictures}) for file, _ in pictures)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here"></a><a href="#gone"></a><a href="b.html#there"></a><a href="b.html#gone"></a>'
        '<a href="c.html"></a><img src="d.png"><a href="https://example.com/x"></a><a href="b.txt"></a>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="there">', encoding="utf-8")
    (tmp_path / "b.txt").touch()
    wrong = ["a.html: #gone", "a.html: b.html#gone", "a.html: c.html", "a.html: d.png"]
    assert list(make_site.broken(tmp_path)) == wrong


def test_programs_that_read_get_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_site, "SITE", tmp_path)
    make_site.texts()
    text = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# oddsengine\n\n> ")
    links = [link for line in text.splitlines() if line.startswith("- ") for link in make_site._LISTED.findall(line)]
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - {"docs/README.md"} <= set(links)
    assert all((tmp_path / link).is_file() for link in links)
    whole = (tmp_path / "llms-full.txt").read_text(encoding="utf-8")
    assert inspect.cleandoc(str(oddsengine.find_ev.__doc__)) in whole
