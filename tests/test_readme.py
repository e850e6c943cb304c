"""The README tells the truth: its Python runs, its commands print what it shows, its list of modules is the tree."""

import json
import re
import shlex
from pathlib import Path

import pytest

import oddsengine
from oddsengine.commands.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WIDTH = 100  # of the terminal that the examples show


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def without_time(text: str) -> str:
    return re.sub(r"\d+\.\d\d s$", "0.00 s", text, flags=re.MULTILINE)


def test_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    said: dict[str, object] = {}
    for block in blocks("python"):  # each goes on with the names of those before it
        assert len(block.splitlines()) <= 15
        exec(compile(block, "README.md", "exec"), said)
    out = capsys.readouterr().out
    assert "WholeStakes" in out
    assert re.search(r"<Update 1: 1,9\d\d new, .* [1-9]\d* born, 0 changed, 0 expired> [1-9]", out)
    assert re.search(r"<Change: 0 born, 0 changed, [1-9]\d* expired> b'", out)


@pytest.mark.parametrize("block", blocks("console"))
def test_commands_print_what_is_shown(
    block: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("scan", "price", "output"):
        monkeypatch.setattr(f"oddsengine.commands.{module}.terminal", lambda: WIDTH)
    command, shown = block.split("\n", 1)
    assert command.startswith("$ oddsengine ")
    assert main(shlex.split(command)[2:]) == 0
    assert without_time(capsys.readouterr().out) == without_time(shown)


def test_the_figures_of_the_introduction(capsys: pytest.CaptureFixture[str]) -> None:
    """Arbitrages of the sample board, with guards and without, by the command that the text names."""
    text = " ".join(README.split())
    pattern = r"`(oddsengine scan --sample [^`]+)` lists (\d+) arbitrages; .*? lists (\d+), of which (\d+)"
    found = re.search(pattern, text)
    assert found is not None
    command, every, real, among = found.groups()
    ids = []
    for options in (shlex.split(command)[1:], shlex.split(command.replace("--guards none", ""))[1:]):
        assert main([*options, "--format", "json", "--limit", "0"]) == 0
        ids.append({row["id"] for row in json.loads(capsys.readouterr().out)["arbitrage"]})
    assert (len(ids[0]), len(ids[1]), len(ids[0] & ids[1])) == (int(every), int(real), int(among))


def test_the_benchmarks_that_are_named_exist() -> None:
    commands = re.findall(r"`python (benchmarks/[^`]+)`", " ".join(README.split()))
    assert len(commands) >= 2
    for command in commands:
        script, *arguments = shlex.split(command)
        text = (ROOT / script).read_text(encoding="utf-8")
        assert all(f'"{word}"' in text for word in arguments if not word.isdigit()), command


def test_every_public_function_exists() -> None:
    table = README.split("## The public API")[1].split("\n\n")[1]
    for row in table.splitlines()[2:]:
        for name in re.findall(r"`(\w+)", row.split("|")[1]):
            assert hasattr(oddsengine, name), name


def test_documents_exist() -> None:
    for name in re.findall(r"`((?:docs|benchmarks)/\w+\.md|[A-Z]+\.md)`", README):
        assert (ROOT / name).exists(), name
