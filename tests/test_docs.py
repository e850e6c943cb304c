"""The documents tell the truth: examples answer as shown, commands run, requests are answered, links lead somewhere.

A page is read from top to bottom, in a folder of its own: Python blocks share their names; a console block shows a
command after `$` and what it prints, where `...` stands for anything; a block that begins with `# oddsengine.toml`
becomes that file. Requests go to a server on this machine. What is shown of a JSON answer is a part of it.
"""

import doctest
import importlib
import io
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from msgspec import NODEFAULT, structs
from support.anchors import FENCE, anchors
from support.shown import assert_shown

import oddsengine
import oddsengine_cli as cli
from oddsengine import catalog
from oddsengine.feeds import venue_contracts
from oddsengine.plugins import SOURCES, registered
from oddsengine.sources import KINDS, FeedSettings, source_kind
from oddsengine_cli import COMMANDS, parser
from oddsengine_service import demo, settings
from oddsengine_service.routing import ENDPOINTS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WIDTH = 100  # of the terminal that the examples show
STAYS = {"serve", "feeds", "mcp", "watch"}  # commands that wait or ask the network: their words are read, and no more
_LONG_AGO = "2026-02-07T18:00:00Z"
DEMO = "http://127.0.0.1:8000"  # where the documents say that the demo is
_BET = {"sportsbook": "fanduel", "selection": "x", "odds_decimal": 2.1, "stake": 50.0}
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int  # of its first line
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    name = _named(path)
    return [Block(name, text.count("\n", 0, m.start(2)) + 1, m[1], m[2]) for m in FENCE.finditer(text)]


# ---- a page from top to bottom ----


@pytest.mark.parametrize("path", PAGES, ids=_named)
def test_page(
    path: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if path.name == "duckdb.md":
        pytest.importorskip("duckdb", reason="`make test-all` installs it")
    if any("curl " in block.text for block in blocks(path)):
        request.getfixturevalue("service")  # before the page writes settings, which a server would read
    monkeypatch.setattr(demo, "run_world", partial(demo.run_world, events=12))
    monkeypatch.chdir(tmp_path)
    for name in ("cli", "show"):  # and with them all modules that print
        importlib.import_module(f"oddsengine.commands.{name}")
    for name, module in list(sys.modules.items()):
        if name.startswith("oddsengine.commands.") and hasattr(module, "terminal"):
            monkeypatch.setattr(module, "terminal", lambda: WIDTH)
    reader = Reader(request, capsys)
    for block in blocks(path):
        reader.read(block)


class Reader:
    """Does what a page says."""

    def __init__(self, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
        self._request, self._capsys = request, capsys
        self._names: dict[str, Any] = {}
        self._places: dict[str, str] = {}

    def read(self, block: Block) -> None:
        if block.language == "python":
            self._python(block)
        elif block.language == "toml" and block.text.startswith("# oddsengine.toml"):
            text = block.text.replace("/var/lib", str(Path.cwd()))  # no test writes outside its folder
            Path("oddsengine.toml").write_text(text, encoding="utf-8")
            settings.load("oddsengine.toml", {})
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language in ("sh", "bash", "console"):
            for command, shown in said(block):
                self._command(block, command, shown)

    def _python(self, block: Block) -> None:
        if ">>>" not in block.text:
            exec(compile("\n" * (block.line - 1) + block.text, block.page, "exec"), self._names)
            return
        test = doctest.DocTestParser().get_doctest(block.text, self._names, block.page, block.page, block.line - 1)
        told = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(test, out=told.write, clear_globs=False)
        self._names.update(test.globs)
        assert not told.getvalue(), told.getvalue()

    def _command(self, block: Block, command: str, shown: str) -> None:
        words = shlex.split(self._placed(command), comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words.pop(0)
        if not words:
            return
        if words[0] == "oddsengine":
            self._run(block, words[1:], shown)
        elif words[0] == "curl":
            self._ask(block, words[1:], shown)
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"{block}: {command}"

    def _run(self, block: Block, words: list[str], shown: str) -> None:
        if words[0] in STAYS:
            parser().parse_args(words)
            return
        if words[0] == "catalog":  # which is loaded before the first lookup, as in a process of its own
            catalog.forget()
            self._request.addfinalizer(catalog.forget)
        self._capsys.readouterr()
        status = cli.main(words)
        out, err = self._capsys.readouterr()
        assert status == (2 if shown.startswith("oddsengine ") else 0), f"{block}: {words} {err}"
        if shown:
            assert_shown(shown, out + err if status else out, f"{block}: {words}")

    # ---- requests ----

    def _ask(self, block: Block, words: list[str], shown: str) -> None:
        server = self._request.getfixturevalue("service")
        asked = Curl.of(words)
        assert asked.url.startswith(DEMO), f"{block}: {asked.url}"
        server.clock.pass_minute()
        url = asked.url.replace(DEMO, server.origin)
        sent = dict(headers=asked.headers, content=asked.body, timeout=30.0)
        with httpx2.stream(asked.method, url, **sent) as answer:  # type: ignore[arg-type]
            streams = answer.headers.get("content-type", "").startswith("text/event-stream")
            body = next(answer.iter_raw()) if streams else answer.read()
        if asked.output:
            Path(asked.output).write_bytes(body)
        wanted = re.match(r"HTTP/1\.1 (\d+)", shown)
        assert answer.status_code == (int(wanted[1]) if wanted else 200), f"{block}: {words} {body[:500]!r}"
        if wanted:
            head, _, shown = shown.partition("\n\n")
            for line in head.splitlines()[1:]:
                name, _, value = line.partition(":")
                if value.strip():
                    assert name in answer.headers, f"{block}: no header {name}"
        if shown.startswith(("{", "[")):
            assert_part(json.loads(self._placed(shown)), json.loads(body), str(block))
        elif shown.strip():
            assert_shown(shown, body.decode(), str(block))

    def _placed(self, text: str) -> str:
        """A text with what a reader would put in."""
        if not re.search(r"\b[A-Z]+_ID\b|\$[A-Z]+_TOKEN\b|\bETAG\b|\bSINCE\b", text):
            return text
        if not self._places:
            self._places = places(self._request.getfixturevalue("service"))
        for name, value in self._places.items():
            text = re.sub(rf"(?<![\w$]){re.escape(name)}(?!\w)" if name[0] != "$" else re.escape(name), value, text)
        return text


class Curl(NamedTuple):
    """A request as curl's words say it."""

    method: str
    url: str
    headers: dict[str, str]
    body: str | None
    output: str  # a file for the response

    @classmethod
    def of(cls, words: list[str]) -> "Curl":
        method, url, headers, body, output = "", "", {}, None, ""
        rest = iter(words)
        for word in rest:
            if word in ("-H", "--header"):
                name, _, value = next(rest).partition(":")
                headers[name] = value.strip()
            elif word in ("-d", "--data"):
                body = next(rest)
            elif word in ("-o", "--output"):
                output = next(rest)
            elif word in ("-X", "--request"):
                method = next(rest)
            elif not word.startswith("-"):
                url = word
            else:
                assert set(word[1:]) <= set("isSN"), f"curl {word}"
        if body is not None:
            headers.setdefault("content-type", "application/json")
        return cls(method or ("GET" if body is None else "POST"), url, headers, body, output)


def places(server: Any) -> dict[str, str]:
    """What stands for ids and tokens in the documents."""
    from support.service_running import METRICS_TOKEN, SPLITS_TOKEN

    with server.client() as client:

        def data(path: str, **query: Any) -> Any:
            return client.get(path, params=query).json()["data"]

        waiting = [row["id"] for row in data("/events", limit=200) if row["status"] == "upcoming"]
        event = next(id_ for id_ in waiting if id_ != "closed")  # another test's, which begins in a moment
        return {
            "EVENT_ID": event,
            "ODDS_ID": data("/odds", event=event, is_main_line="true")[0]["id"],
            "SPLIT_ID": data("/splits")[0]["event_id"],
            "MIDDLE_ID": data("/opportunities/middles", min_ev=-20)[0]["id"],
            "EV_ID": data("/opportunities/ev")[0]["id"],
            "BET_ID": client.post("/bets", json=_BET, headers={"X-API-Key": "demo_pro"}).json()["data"]["id"],
            "SINCE": client.get("/odds/delta", params={"since": _LONG_AGO}).json()["meta"]["server_time"],
            "ETAG": client.get("/sports").headers["etag"].strip('"'),
            "$METRICS_TOKEN": METRICS_TOKEN,
            "$SPLITS_TOKEN": SPLITS_TOKEN,
        }


# ---- what is shown ----


def said(block: Block) -> Iterator[tuple[str, str]]:
    """Commands of a block, and what it shows of their output."""
    text = block.text.replace("\\\n", " ")
    if block.language != "console":
        yield from ((line, "") for line in text.splitlines() if line.strip())
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.strip("\n")


def assert_part(shown: Any, came: Any, where: str) -> None:
    """Whether what is shown of an answer has fields that it has, of the same kinds."""
    if isinstance(shown, dict):
        assert isinstance(came, dict), f"{where}: an object is shown, {came!r} came"
        for name, value in shown.items():
            assert name in came, f"{where}: {name} is shown, and not among {sorted(came)}"
            assert_part(value, came[name], f"{where} {name}")
    elif isinstance(shown, list):
        assert isinstance(came, list), f"{where}: a list is shown, {came!r} came"
        assert came or not shown, f"{where}: the list is empty"
        for value in shown:
            assert_part(value, came[0], f"{where}[]")
    elif shown is not None and came is not None:
        kinds = {type(shown), type(came)}
        assert len(kinds) == 1 or kinds <= {int, float}, f"{where}: {shown!r} is shown, {came!r} came"


# ---- links, lists and tables ----


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=_named)
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if re.match(r"https?://|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(found), f"{path.name}: {target} is none of {sorted(anchors(found))}"


_PATH = re.compile(r"`((?:benchmarks|deploy|docs|examples|notebooks|oddsengine|scripts|service|tests)/[\w./-]*\w)")
_MADE = {"oddsengine/__pycache__", "oddsengine/kernels"}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=_named)
def test_files_that_are_named_exist(path: Path) -> None:
    told = set(_PATH.findall(path.read_text(encoding="utf-8"))) - _MADE
    assert not [name for name in told if not (ROOT / name).exists()]


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for path in PAGES[1:]:
        assert path.name == "README.md" or f"({path.name})" in index, path.name


def test_every_endpoint_is_in_a_page() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    told = {re.sub(r"\{\w+\}", "{}", path) for path in re.findall(r"(?<![\w/])(?:/v4|/[a-z_-]+|/\{\w+\})+", text)}
    told |= {path.removeprefix("/api/v1") for path in re.findall(r"/api/v1/[a-z/_-]*", text)}
    for endpoint in ENDPOINTS:
        assert re.sub(r"\{\w+\}", "{}", endpoint.path) in told, f"{endpoint.method} {endpoint.path}"


def test_every_setting_is_in_its_table() -> None:
    text = {name: (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("service", "feeds")}
    text["kinds"] = "".join(
        (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        for name in ("feed_kinds", "exchanges", "betfair", "novig")
    )

    def table(page: str, heading: str) -> dict[str, str]:
        part = text[page].partition(f"\n{heading}\n")[2].partition("\n#")[0]
        return dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", part, re.MULTILINE))

    for section, kind in settings.SECTIONS.items():
        assert table("service", f"### `[{section}]`") == _defaults(kind), section
    shared = _defaults(FeedSettings)
    assert table("feeds", "## Common settings") == {name: default for name, default in shared.items() if name != "name"}
    for name in [*KINDS, *(plugin.name for plugin in registered(SOURCES) if plugin.is_ours)]:
        kind_ = source_kind(name)
        own = {field: default for field, default in _defaults(kind_.settings).items() if shared.get(field) != default}
        assert table("kinds", f"## `{name}`") == own, name


def _defaults(kind: Any) -> dict[str, str]:
    return {field.name: _plain(field) for field in structs.fields(kind)}


def _plain(field: Any) -> str:
    """A default as TOML writes it."""
    if field.required:
        return "required"
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    found = list(default) if isinstance(default, tuple) else default
    return f"`{found:g}`" if isinstance(found, float) else f"`{json.dumps(found)}`"


def test_dependencies_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    section = (ROOT / "docs/install.md").read_text(encoding="utf-8").partition("\n## Dependencies\n")[2]
    listed = [name for cell in re.findall(r"^\| ([^|]*) \| \S", section, re.MULTILINE) for name in cell.split(", ")]
    names = {re.split(r"[<>=;\[ ]", one)[0] for one in needed} - {"oddsengine"}
    assert sorted(name for name in listed if name not in ("package", "---")) == sorted(names)


def test_every_guard_is_in_its_page() -> None:
    text = (ROOT / "docs/guards.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert [name for name in told if name in oddsengine.GUARDS] == list(oddsengine.GUARDS)


def test_every_extra_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = (ROOT / "docs/install.md").read_text(encoding="utf-8").partition("\n## Extras\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
    assert {*listed, "dev", "test-all", "docs", "bench"} == set(project["optional-dependencies"])


def test_every_public_name_is_in_the_page_of_the_api() -> None:
    cells = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE)
    told = [name for cell in cells for name in re.findall(r"`(\w+)", cell)]
    assert sorted(told) == sorted(set(oddsengine.__all__) - {"__version__"})


def test_every_command_is_in_its_page() -> None:
    cells = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs/cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)) == sorted(COMMANDS)


def test_the_figures_of_the_introduction(capsys: pytest.CaptureFixture[str]) -> None:
    """Arbitrages of the sample board, with guards and without, by the command that the README names."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    pattern = r"`(oddsengine scan --sample [^`]+)` lists (\d+) arbitrages; .*? lists (\d+), of which (\d+)"
    found = re.search(pattern, text)
    assert found is not None
    command, every, real, among = found.groups()
    ids = []
    for options in (shlex.split(command)[1:], shlex.split(command.replace("--guards none", ""))[1:]):
        assert cli.main([*options, "--format", "json", "--limit", "0"]) == 0
        ids.append({row["id"] for row in json.loads(capsys.readouterr().out)["arbitrage"]})
    assert (len(ids[0]), len(ids[1]), len(ids[0] & ids[1])) == (int(every), int(real), int(among))


def test_figures_of_the_claim_are_those_of_the_audits() -> None:
    """The rows of the README and of the page about how we know are rows of docs/truth.md."""

    def rows(name: str) -> dict[str, list[str]]:
        text = (ROOT / name).read_text(encoding="utf-8").replace("±", "+-")
        cells = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\|.*\| -?\d", line)]
        return {first.strip(): re.findall(r"(?:\+?-)?\d+\.\d\d", " ".join(rest)) for first, *rest in cells}

    truth = rows("docs/truth.md")
    for name, least in (("README.md", 3), ("docs/how_we_know.md", 6)):
        told = rows(name)
        assert len(told) >= least
        for label, figures in told.items():
            assert set(figures) <= set(truth[label]), f"{name}: {label}"


def test_the_benchmarks_that_are_named_exist() -> None:
    commands = re.findall(r"`python (benchmarks/[^`]+)`", " ".join((ROOT / "README.md").read_text("utf-8").split()))
    assert len(commands) >= 2
    for command in commands:
        script, *arguments = shlex.split(command)
        text = (ROOT / script).read_text(encoding="utf-8")
        assert all(f'"{word}"' in text for word in arguments if not word.isdigit()), command


@pytest.mark.parametrize("kind", venue_contracts.venues())
def test_a_kind_with_a_contract_says_when_it_was_checked_and_whether_it_was_tried(kind: str) -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    (found,) = [match for text in texts for match in re.findall(rf"(?ms)^##? `{kind}`$(.*?)(?=^## |\Z)", text)]
    words, table = " ".join(found.split()), venue_contracts.load(kind)
    assert table.checked.isoformat() in words
    assert ("never tried" in words) != table.tried


def test_pages_are_short() -> None:
    """Lines of tables and of code may be longer: they cannot be broken."""
    for path in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 200, path.name
        long = [line for line in FENCE.sub("", text).splitlines() if len(line) > 140 and line[0] != "|"]
        assert not long, f"{path.name}: {long}"
