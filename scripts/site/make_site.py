"""Build the site of the documentation in `build/site`: `make site`.

The pages are those that `docs/README.md` lists, the README, the notebooks as they are stored, the reference
(`reference.py`) and a gallery. They are copied to `build/pages`, where a folder's README.md is its index.md,
and read by Sphinx (`conf.py`). Warnings are errors. At last every link of the made pages is followed.
"""

import base64
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import reference

ROOT = Path(__file__).parents[2]
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_LISTED = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SLUG = re.compile(r"[^\w\- ]")


class Part(NamedTuple):
    """A section of the index of the docs: its title, and its pages with what the index says of them."""

    title: str
    pages: list[tuple[str, str]]


def parts() -> list[Part]:
    """Sections of `docs/README.md`; paths are from the root."""
    made = []
    for section in (ROOT / "docs/README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        rows = re.findall(r"^\| (\[.*?) \| (.*?) \|$", section, re.MULTILINE)
        pages = [(_path(ROOT / "docs" / link), said) for cell, said in rows for link in _LISTED.findall(cell)]
        made.append(Part(section.partition("\n")[0], pages))
    return made


def _path(path: Path) -> str:
    return path.resolve().relative_to(ROOT).as_posix()


def sources() -> list[str]:
    """All pages that are files of the project."""
    listed = [page for part in parts() for page, _ in part.pages]
    texts = ["README.md", "docs/README.md", *listed, "CHANGELOG.md"]
    return list(dict.fromkeys([*texts, *files("notebooks/*.ipynb"), *files("examples/*.py")]))


def files(pattern: str) -> list[str]:
    """Files of the project, in order."""
    return [_path(path) for path in sorted(ROOT.glob(pattern))]


def staged(path: str) -> str:
    """Path of a page below `build/pages`."""
    return re.sub(r"\.(ipynb|py)$", ".md", re.sub(r"(^|/)README\.md$", r"\1index.md", path))


def title(path: str) -> str:
    """First heading of a page."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".ipynb"):
        text = "".join(json.loads(text)["cells"][0]["source"])
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1]  # type: ignore[index]


# ---- pages ----


def linked(text: str, page: str, pages: list[str]) -> str:
    """A page with links to where others are on the site; files that are no pages are copied."""

    def link(match: re.Match[str]) -> str:
        words, name, anchor = match[1], match[2], match[3] or ""
        target = (ROOT / page).parent / unquote(name)
        if target.is_dir():
            name, target = f"{name.rstrip('/')}/README.md", target / "README.md"
        if "://" in name or not target.is_file():
            return match[0]
        path = _path(target)
        if path in pages:
            return f"[{'' if words == name else words}]({staged(name)}{anchor})"  # without words: the page's title
        (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, PAGES / path)
        return match[0]

    return _LINK.sub(link, text)


def notebook(path: str) -> tuple[str, list[tuple[str, str]]]:
    """A notebook with its stored outputs as Markdown, and its pictures with the headings above them."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    made: list[str] = []
    pictures: list[tuple[str, str]] = []
    heading = ""
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            made.append(text)
            heading = (re.findall(r"^#+ (.*)$", text, re.MULTILINE) or [heading])[-1]
            continue
        made.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{Path(path).stem}-{len(pictures) + 1}.png"
                (PAGES / "notebooks" / file).write_bytes(base64.b64decode(data["image/png"]))
                pictures.append((file, heading))
                made.append(f"![{heading}]({file})")
            elif "text/html" in data:
                made.append('```{raw} html\n<div class="output">' + "".join(data["text/html"]) + "</div>\n```")
            else:
                made.append("```text\n" + "".join(data.get("text/plain", output.get("text", ""))).rstrip() + "\n```")
    return "\n\n".join(made) + "\n", pictures


def gallery(pictures: dict[str, list[tuple[str, str]]]) -> str:
    """The page of all pictures."""
    made = ["# Gallery", "The pictures of the notebooks. Each leads to where it is made."]
    for path, found in pictures.items():
        made.append(f"## [{title(path)}]({staged(path)})")
        cards = [
            f"[![{heading}](notebooks/{file})]({staged(path)}#{slug(heading)})\n\n{heading.lstrip('0123456789. ')}"
            for file, heading in found
        ]
        boxes = [f"::::{{container}} card\n{card}\n::::" for card in cards]
        made.append("\n\n".join([":::::{container} gallery", *boxes, ":::::"]))
    return "\n\n".join(made) + "\n"


def slug(heading: str) -> str:
    """Anchor of a heading, as GitHub makes it."""
    return _SLUG.sub("", heading.replace("`", "").lower()).strip().replace(" ", "-")


def toctree(caption: str, pages: list[str]) -> str:
    """A part of the sidebar; nothing if it has no pages."""
    if not pages:
        return ""
    listed = "\n".join(staged(page).removesuffix(".md") for page in pages)
    return f"```{{toctree}}\n:hidden:\n:titlesonly:\n:caption: {caption}\n\n{listed}\n```\n"


def stage() -> None:
    """Write all pages to `build/pages`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages, pictures = sources(), {}
    for path in pages:
        (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".ipynb"):
            text, pictures[path] = notebook(path)
        elif path.endswith(".py"):
            text = f"# {Path(path).name}\n\n```python\n{text}```\n"
        (PAGES / staged(path)).write_text(linked(text, path, pages), encoding="utf-8")
    (PAGES / "gallery.md").write_text(gallery(pictures), encoding="utf-8")
    (PAGES / "reference").mkdir()
    for file, text in reference.pages().items():
        (PAGES / "reference" / file).write_text(text, encoding="utf-8")
    listed = {page for part in parts() for page, _ in part.pages}
    trees = [toctree("All pages", ["docs/README.md", "reference/index", "gallery.md", "CHANGELOG.md"])]
    trees += [toctree(part.title, [page for page, _ in part.pages]) for part in parts()]
    others = {"Notebooks": files("notebooks/*.ipynb"), "Examples": files("examples/*.py")}  # after the first part
    trees[2:2] = [toctree(name, [path for path in paths if path not in listed]) for name, paths in others.items()]
    landing = PAGES / "index.md"
    landing.write_text("\n".join([landing.read_text(encoding="utf-8"), *trees]), encoding="utf-8")


# ---- for programs that read ----


def texts() -> None:
    """Write `llms.txt`, which lists the pages, `llms-full.txt`, which has them, and the pages as they are."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["description"]
    lines = ["# oddsengine", "", f"> {said}.", "", "Each page is here as in the project, and as HTML beside that."]
    for part in parts():
        lines += ["", f"## {part.title}", ""]
        lines += [f"- [{title(page)}]({page}): {described}" for page, described in part.pages]
    lines += ["", "## Optional", "", "- [All pages and the API reference](llms-full.txt): one file", ""]
    (SITE / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    for page in sources():
        (SITE / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, SITE / page)
    shutil.copytree(ROOT / "docs/images", SITE / "docs/images", dirs_exist_ok=True)
    pages = [ROOT / page for page in sources() if page.endswith((".md", ".py")) and page != "CHANGELOG.md"]
    whole = [page.read_text(encoding="utf-8") for page in pages]
    (SITE / "llms-full.txt").write_text("\n\n".join([*whole, reference.plain()]), encoding="utf-8")


# ---- links ----


class Links(HTMLParser):
    """Ids of a page, and the links that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag has."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.ids.add(value)
            elif value and name in ("href", "src") and tag != "base":
                self.links.add(value)


def broken(site: Path) -> Iterator[str]:
    """Links of a made site that lead nowhere, or to another host without being a link in a text."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for page, found in pages.items():
        for link in sorted(found.links):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (page.parent / unquote(url.path)).resolve() if url.path else page
            anchors = pages[target].ids if target in pages else {unquote(url.fragment)}
            if not target.is_file() or (url.fragment and unquote(url.fragment) not in anchors):
                yield f"{page.relative_to(site)}: {link}"


def main() -> int:
    """Build and check the site; returns 0 if it is complete."""
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    options = ["-q", "-n", "-W", "--keep-going", "-E", "-j", "auto"]
    folders = ["-d", str(PAGES.parent / "doctrees"), "-c", str(Path(__file__).parent), str(PAGES), str(SITE)]
    if failed := subprocess.run([sys.executable, "-m", "sphinx", *options, *folders], check=False).returncode:
        return failed
    texts()
    wrong = list(broken(SITE))
    print(*wrong, f"{len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}", sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
