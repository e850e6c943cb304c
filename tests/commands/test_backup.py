"""A backup of a data folder, restored as an operator would."""

import io
import os
import re
import signal
import stat
import tarfile
import threading
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from support.forking import CLI, PIPE, python, ran
from support.service_running import PATIENCE_S, until

from oddsengine_cli import main
from oddsengine_service.accounts.database import Database, DatabaseError
from oddsengine_service.backup import back_up
from oddsengine_service.settings import Settings, load


def settings_of(folder: Path, **more: str) -> Settings:
    return load(None, {"ODDSENGINE_DATA_FOLDER": str(folder), **more})


def restored(archive: bytes, to: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(to, filter="data")
    return to


def test_a_backup_of_a_running_node_restores_its_keys(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("[service]\nport = 0\n")

    def account(folder: Path, key: str = "") -> tuple[str, int]:
        """Run a node; create a key and back the folder up, or ask with a key."""
        env = {**os.environ, "ODDSENGINE_DATA_FOLDER": str(folder)}
        with python(CLI, "serve", "--config", "node.toml", cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE) as node:
            try:
                assert node.stdout is not None
                origin = re.search(r"http://127\.0\.0\.1:\d+", node.stdout.readline())
                assert origin is not None
                if not key:
                    made = ran(CLI, "keys", "create", "--account", "mia", "--tier", "pro", env=env)
                    key = made.stdout.strip()
                    done = ran(CLI, "backup", "backup.tar", cwd=tmp_path, env=env)
                    assert (done.returncode, done.stdout) == (0, "")
                    assert done.stderr == (
                        "backed up closing.sqlite, keys.sqlite, records.sqlite; "
                        f"back up {folder / 'keys.pepper'} elsewhere, keys cannot be used without it\n"
                    )
                asked = f"{origin[0]}/api/v1/account"
                until(lambda: httpx2.get(asked, headers={"X-API-Key": key}).status_code != 503, "ready")
                return key, httpx2.get(asked, headers={"X-API-Key": key}).status_code
            finally:
                node.send_signal(signal.SIGTERM)
                node.communicate(timeout=PATIENCE_S)

    key, status = account(tmp_path / "data")
    assert status == 200
    file = tmp_path / "backup.tar"
    assert file.stat().st_mode & 0o777 == 0o600
    again = restored(file.read_bytes(), tmp_path / "again")
    (again / "keys.pepper").write_bytes((tmp_path / "data" / "keys.pepper").read_bytes())
    assert account(again, key) == (key, 200)


def test_what_is_committed_is_in_the_copy_and_what_is_not_is_not(tmp_path: Path) -> None:
    folder, out = tmp_path / "data", io.BytesIO()
    with closing(Database(folder / "own.sqlite", ["CREATE TABLE facts (n)"])) as base:
        with base.transaction() as open_:
            open_.execute("INSERT INTO facts VALUES (1)")
        assert (folder / "own.sqlite-wal").stat().st_size  # where it still is
        with base.transaction() as open_:
            open_.execute("INSERT INTO facts VALUES (2)")
            assert back_up(settings_of(folder), out) == ["own.sqlite"]
    again = restored(out.getvalue(), tmp_path / "again")
    with closing(Database(again / "own.sqlite")) as base, base.reading() as open_:
        assert open_.execute("SELECT n FROM facts").fetchall() == [(1,)]
    assert [each.name for each in again.iterdir()] == ["own.sqlite"]


def test_what_is_in_a_backup(tmp_path: Path) -> None:
    """Not secrets, not what is large, not what another node would trip over; keys that are elsewhere, too."""
    folder, out = tmp_path / "data", io.BytesIO()
    (folder / "tapes").mkdir(parents=True)
    for name in ("fair.toml", "feeds.json", "keys.pepper", "node.lock", "a.sqlite-wal", ".part", "tapes/one"):
        (folder / name).write_text(name)
    Database(tmp_path / "elsewhere.db", ["CREATE TABLE facts (n)"]).close()
    settings = settings_of(folder, ODDSENGINE_KEYS_FILE=str(tmp_path / "elsewhere.db"))
    assert back_up(settings, out) == ["elsewhere.db", "fair.toml", "feeds.json"]
    again = restored(out.getvalue(), tmp_path / "again")
    assert (again / "fair.toml").read_text() == "fair.toml"
    assert sorted(each.name for each in folder.iterdir() if each.name[:7] == ".backup") == []


def test_what_cannot_be_backed_up_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has nothing to back up; is it the folder of the node"):
        back_up(settings_of(tmp_path / "data"), io.BytesIO())
    (tmp_path / "keys.sqlite").write_text("no database, but long enough to be read as one")
    with pytest.raises(DatabaseError, match=r"keys\.sqlite cannot be copied: file is not a database"):
        back_up(settings_of(tmp_path), io.BytesIO())


def test_a_backup_that_fails_leaves_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "backup.tar"
    file.write_text("the last one")
    assert main(["backup", str(file)]) == 2
    assert "has nothing to back up" in capsys.readouterr().err
    assert file.read_text() == "the last one"
    assert list(tmp_path.iterdir()) == [file]
    assert main(["backup", str(tmp_path / "no" / "backup.tar")]) == 2
    assert "backup.tar cannot be written: no such file or directory" in capsys.readouterr().err


def test_a_pipe_and_a_link_stay_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is replaced; what is no file is written to, and a link leads to the file that is replaced."""
    monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "note").write_text("x")
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert main(["backup", str(pipe)]) == 0
    reader.join(PATIENCE_S)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    target.write_bytes(b"old")
    link.symlink_to(target)
    assert main(["backup", str(link)]) == 0
    assert link.is_symlink()
    for archive in (got[0], target.read_bytes()):
        assert (restored(archive, tmp_path / "to") / "note").read_text() == "x"
