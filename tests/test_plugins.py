"""What installed packages register: found by their metadata, and imported only by name."""

import json
import sys
from pathlib import Path

import pytest
from support.plugin_packages import install

import oddsengine as oe
from oddsengine.backtesting.entered_methods import load_method
from oddsengine.plugins import FAIR, SOURCES, AmbiguousNameError, Plugin, PluginError, find, load, registered
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine_cli import main

IMPORTED = "import pathlib; pathlib.Path(__file__).with_suffix('.imported').touch(); VALUE = 5"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def of(package: str) -> list[Plugin]:
    return [plugin for plugin in registered() if plugin.distribution == package]


def test_plugins_are_listed_without_an_import(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(
        folder, "my-odds", {"my_odds": IMPORTED}, "2.0", sources={"mine": "my_odds:VALUE"}, fair={"own": "my_odds:f"}
    )
    assert main(["plugins", "--format", "json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["package"] == "my-odds"]
    shared = {"package": "my-odds", "version": "2.0", "problem": None}
    assert rows == [
        {"group": "oddsengine.fair", "name": "own", "object": "my_odds:f", **shared},
        {"group": "oddsengine.sources", "name": "mine", "object": "my_odds:VALUE", **shared},
    ]
    assert main(["plugins"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if "my-odds" in line][1] == [
        "oddsengine.sources", "mine", "my-odds", "2.0", "my_odds:VALUE",
    ]  # fmt: skip
    assert not (folder / "my_odds.imported").exists()
    assert load(of("my-odds")[1]) == 5
    assert (folder / "my_odds.imported").exists()
    sys.modules.pop("my_odds")


def test_ours_are_registered_as_others_are() -> None:
    assert [(plugin.name, plugin.is_ours) for plugin in of("oddsengine")] == [("odds_api_io", True)]


def test_names_that_two_have_are_an_error_that_names_both(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "one", {}, sources={"same": "one:K", "kalshi": "one:K"}, targets={"mailto": "one:T"})
    install(folder, "two", {}, "0.1", sources={"same": "two:K"}, fair={"same": "two:f"})
    with pytest.raises(
        AmbiguousNameError, match=r"the kind of source 'same' is registered by one 1.0 and by two 0.1; un"
    ):
        find(SOURCES, "same")
    with pytest.raises(AmbiguousNameError, match=r"'kalshi' is registered by oddsengine and by one 1.0"):
        find(SOURCES, "kalshi", {"kalshi"})
    assert find(FAIR, "same") == of("two")[0]
    assert find(SOURCES, "other") is None
    assert main(["plugins", "--format", "json"]) == 0
    problems = {(row["package"], row["name"]): row["problem"] or "" for row in json.loads(capsys.readouterr().out)}
    assert "registered by oddsengine and by one" in problems["one", "kalshi"]
    assert "registered by oddsengine and by one" in problems["one", "mailto"]
    assert "by one 1.0 and by two 0.1" in problems["one", "same"]
    assert problems["oddsengine", "odds_api_io"] == ""


@pytest.mark.parametrize("name", ["power", "wpo", "close"])
def test_a_fair_price_cannot_have_a_name_of_ours(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    install(folder, "one", {}, fair={name: "one:f"})
    both = f"the fair price '{name}' is registered by oddsengine and by one 1.0; uninstall all but one"
    for use in (
        lambda: oe.find_ev(oe.read_odds(SAMPLE_BOARD), model=name),
        lambda: oe.audit(oe.read_odds(SAMPLE_BOARD), against=name),
        lambda: load_method(name),
    ):
        with pytest.raises(ValueError, match=both):
            use()
    assert main(["plugins", "--format", "json"]) == 0
    assert [row["problem"] for row in json.loads(capsys.readouterr().out) if row["package"] == "one"] == [both]


def test_a_name_that_no_address_can_begin_with_is_a_problem(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    install(folder, "one", {}, targets={"HTTP": "one:T", "ntfy": "one:T"})
    assert main(["plugins", "--format", "json"]) == 0
    problems = {row["name"]: row["problem"] for row in json.loads(capsys.readouterr().out) if row["package"] == "one"}
    assert problems == {
        "HTTP": "its name cannot begin an address: only lower-case letters, digits, +, . and -",
        "ntfy": None,
    }


def test_metadata_does_not_control_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "one", {}, "1\x1b[2J", sources={"mine": "one:K"})
    install(folder, "two", {}, "9" * 150, sources={"mine": "two:K"})
    with pytest.raises(AmbiguousNameError) as error:
        find(SOURCES, "mine")
    assert str(error.value) == (
        f"the kind of source 'mine' is registered by one 1?[2J and by two {'9' * 100}...; uninstall all but one"
    )
    assert main(["plugins"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_package_that_is_on_the_path_twice_counts_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(folder, "My.Odds", {}, "2.0", sources={"mine": "a:K"})
    install(folder / "older", "my-odds", {}, "1.0", sources={"mine": "a:K"})
    monkeypatch.syspath_prepend(str(folder / "older"))
    assert [plugin.package for plugin in registered(SOURCES) if plugin.name == "mine"] == ["my-odds 1.0"]


def test_broken_metadata_of_a_package_hides_only_that(folder: Path) -> None:
    broken = install(folder, "broken", {}) / "broken-1.0.dist-info/entry_points.txt"
    broken.write_text("[oddsengine.sources]\nno equals sign\n")
    install(folder, "fine", {}, sources={"fine": "a:K"})
    assert [plugin.name for plugin in of("fine")] == ["fine"]
    assert of("broken") == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no disk')", "importing faulty:K raises OSError: no disk"),
        ("raise SystemExit", "importing faulty:K raises SystemExit"),
        ("raise BaseException('panic')", "importing faulty:K raises BaseException: panic"),
        (
            "class E(Exception):\n  def __str__(self): raise OSError\nraise E",
            "importing faulty:K raises E: <a E without a text: OSError>",
        ),
        ("import not_installed", "importing faulty:K raises ModuleNotFoundError: No module named 'not_installed'"),
        ("(", "importing faulty:K raises SyntaxError: "),
        ("", "importing faulty:K raises AttributeError: module 'faulty' has no attribute 'K'"),
    ],
)
def test_whatever_an_import_raises_is_named(code: str, reason: str, folder: Path) -> None:
    install(folder, "faulty", {"faulty": code}, sources={"faulty": "faulty:K"})
    with pytest.raises(PluginError) as error:
        load(of("faulty")[0])
    assert str(error.value).startswith(f"the kind of source 'faulty' of faulty 1.0 cannot be used: {reason}")
    sys.modules.pop("faulty", None)
