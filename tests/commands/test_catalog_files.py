"""The command `catalog` with several files, and the lines of `feeds unmapped`."""

import csv
import io
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from oddsengine import catalog
from oddsengine.commands.market_lines import market_lines
from oddsengine_cli import main


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    catalog.forget()
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    Path("own/a.toml").write_text("[books.shop]\nname = 'Shop'\ncommission = 0.02\n")
    Path("b.toml").write_text("[books.shop]\ncommission = 0.03\n[places.shop]\nopen = ['GB']\ndate = 2026-11-01\n")
    yield
    catalog.forget()


def test_a_list_of_files_and_folders_is_checked_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "own", "b.toml", "--changed"]) == 0
    told = "b.toml: books.shop.commission is 0.03, in place of 0.02 in own/a.toml\n"
    assert told in capsys.readouterr().err  # beside what another test's thread may say of compilation
    assert catalog.book("shop").commission == 0.03
    catalog.forget()
    assert main(["catalog", "b.toml"]) == 2
    assert "b.toml: books.shop.name must be a string with letters or digits, got nothing" in capsys.readouterr().err


def test_diff_says_what_files_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "own", "b.toml", "--diff", "--format", "json"]) == 0
    both = ["own/a.toml", "b.toml"]
    assert json.loads(capsys.readouterr().out) == [
        {"entry": "books.shop", "key": "name", "before": None, "after": "Shop", "files": both},
        {"entry": "books.shop", "key": "commission", "before": None, "after": 0.03, "files": both},
        {"entry": "places.shop", "key": "open", "before": None, "after": ["GB"], "files": ["b.toml"]},
        {"entry": "places.shop", "key": "date", "before": None, "after": "2026-11-01", "files": ["b.toml"]},
    ]
    catalog.forget()
    assert main(["catalog", "own", "b.toml", "--diff", "--against", "own", "--format", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["entry", "key", "before", "after", "files"]
    assert rows[1] == ["books.shop", "commission", "0.02", "0.03", "own/a.toml;b.toml"]
    assert [row[0] for row in rows[2:]] == ["places.shop"] * 2
    catalog.forget()
    assert main(["catalog", "own", "--diff"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split() for line in shown] == [
        ["Entry", "Key", "Built", "in", "After", "Files"],
        ["books.shop", "name", '"Shop"', "own/a.toml"],
        ["books.shop", "commission", "0.02", "own/a.toml"],
    ]
    catalog.forget()
    assert main(["catalog", "own", "--diff", "--against", "own"]) == 0
    assert capsys.readouterr().out == "no differences\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--diff"], "--diff needs a catalog file"), (["own", "--against", "own"], "--against needs --diff")],
)
def test_what_diff_needs(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", *more]) == 2
    assert said in capsys.readouterr().err


class Unmapped(NamedTuple):
    source: str
    book: str
    market: str
    times: int


def test_lines_of_unmapped_markets_are_pasted_and_then_filled_in() -> None:
    odd = 'Total "Corners"\\ \x7f\n[books.evil]\n#😀'
    sent = [
        Unmapped("a", "fan\nduel", odd, 1200), Unmapped("b", "betmgm", odd.upper(), 1), Unmapped("b", "x", "???", 2),
        Unmapped("b", "x", "lay", 2), Unmapped("b", "x", "h2h", 2), Unmapped("b", "x", "gnip_gnop", 2),
    ]  # fmt: skip
    lines = market_lines(sent)
    assert tomllib.loads(lines) == {"markets": {odd: {"means": ""}, "gnip_gnop": {"means": ""}}}
    assert "# 1,201 times from fan\\nduel in feeds.a, betmgm in feeds.b; similar: total_corners, " in lines
    assert '# "lay" is in the catalog, and not used: a lay price is not an offer to back\n' in lines
    assert '# "???" has no letters or digits, and cannot be mapped\n# "lay"' in lines
    assert '# "h2h" is in your catalog already\n' in lines
    file = Path("own/a.toml")
    with file.open("a", encoding="utf-8") as out:
        out.write(lines)
    catalog.forget()
    assert main(["catalog", "own"]) == 0
    assert not catalog.market_type(odd).usable  # nothing changes before it is filled in
    again = market_lines(sent)
    assert "markets" not in tomllib.loads(again)  # pasting them as well would not be valid
    assert "is in your catalog already, without a meaning" in again
    catalog.forget()
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('means = ""', 'means = "total_corners"', 1), encoding="utf-8")
    assert main(["catalog", "own"]) == 0
    assert catalog.market_type(odd).family == catalog.market_type("total_corners").family != ""
    assert not catalog.market_type("gnip_gnop").usable
    assert market_lines([]) == ""
