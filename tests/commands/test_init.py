"""A node of one's own begins with a settings file, a folder and a key, and nothing that exists is changed."""

import re
import tomllib
from pathlib import Path

import pytest

from oddsengine.sources import KINDS, read_feed
from oddsengine.sources.source_settings import SettingsTable
from oddsengine_cli import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_a_folder_and_a_key(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    said = capsys.readouterr().out
    (key,) = re.findall(r"^  (\S+)$", said, re.MULTILINE)[:1]
    assert said.endswith(f"http://127.0.0.1:8000/#key={key}\n")
    assert {path.name for path in here.iterdir()} == {"oddsengine.toml", "oddsengine-data"}
    assert main(["keys", "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert '"tier": "enterprise"' in listed
    assert '"streaming": true' in listed
    before = (here / "oddsengine.toml").read_bytes()
    assert main(["init"]) == 0
    assert capsys.readouterr().out == (
        "oddsengine.toml: exists already, and stays as it is\n"
        "oddsengine-data: has a key already; `oddsengine keys create` makes another\n"
    )
    assert (here / "oddsengine.toml").read_bytes() == before


def test_examples_of_the_file_are_settings(here: Path) -> None:
    """What is a comment only for now is valid too."""
    main(["init"])
    text = (here / "oddsengine.toml").read_text(encoding="utf-8")
    plain = re.sub(r"(?m)^# (?=\[feeds|[a-z_]+ = )", "", text)
    settings = tomllib.loads(plain)
    assert settings["service"] == {"host": "127.0.0.1", "port": 8000}
    assert settings["data"] == {"folder": "oddsengine-data", "tape": True}
    assert len(settings["feeds"]) == 4
    for name, table in settings["feeds"].items():
        feed = read_feed(SettingsTable("x", f"feeds.{name}", table, {}, set()), name)
        assert isinstance(feed, KINDS[table["kind"]].settings)


def test_an_own_file_and_account(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "own.toml").write_text('[service]\nport = 9000\nhost = "0.0.0.0"\n[data]\nfolder = "d"\n', encoding="utf-8")
    assert main(["init", "--config", "own.toml", "--account", "desk"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("own.toml: exists already, and stays as it is\nd: made, with a key of the highest tier")
    assert "  oddsengine serve --config own.toml\n" in said
    assert "http://127.0.0.1:9000/#key=" in said


def test_what_cannot_be_begun(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--config", "no/folder.toml"]) == 2
    assert "no/folder.toml cannot be written: No such file or directory" in capsys.readouterr().err
    assert main(["init", "--account", "a b"]) == 2
    assert "account" in capsys.readouterr().err
    (here / "c.toml").write_text('[scale]\nrole = "writer"\nurl = "nats://x:1"\n', encoding="utf-8")
    assert main(["init", "--config", "c.toml"]) == 2
