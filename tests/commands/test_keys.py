"""The commands over keys: real files, and a process that notices what another one did."""

import json
import re
import resource
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.forking import CLI, PIPE, python, ran

from oddsengine_cli import main
from oddsengine_service.accounts.keys import KeyStore, KeyTerms

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, in settings that the environment names."""
    monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit status, standard output, standard error."""
    assert not folder.exists()

    def command(*words: str) -> tuple[int, str, str]:
        status = main(["keys", *words])
        out, err = capsys.readouterr()
        return status, out, err

    return command


def process(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own."""
    return ran(CLI, "keys", *words)


def found(folder: Path, key: str) -> Any:
    store = KeyStore(folder / "keys.sqlite", folder / "keys.pepper")
    try:
        return store.find(key)
    finally:
        store.close()


def created(run: Run, *words: str) -> dict[str, Any]:
    status, out, err = run("create", "--account", "acme", "--json", *words)
    assert (status, err) == (0, "")
    made: dict[str, Any] = json.loads(out)
    return made


# ---- in processes of their own ----


def test_from_creation_to_revocation(folder: Path) -> None:
    made = process("create", "--account", "acme", "--tier", "pro", "--name", "web")
    key = made.stdout.removesuffix("\n")  # nothing else, so that KEY=$(oddsengine keys create ...) has the key
    assert made.returncode == 0
    new = f"oddsengine: {folder / 'keys.sqlite'} is new; a node accepts the keys of its own data folder only\n"
    once = "of acme: tier pro. Store the key now: it cannot be shown again.\n"
    assert made.stderr == f"{new}{key.partition('.')[0]} {once}"
    second = process("create", "--account", "acme", "--tier", "pro")
    assert second.stderr == f"{second.stdout.partition('.')[0]} {once}"
    assert re.fullmatch(r"oe_[0-9a-f]{12}\.[\w-]{43}", key)
    assert found(folder, key).tier.id == "pro"
    ident = key.partition(".")[0]
    graced = process("rotate", ident, "--grace", "600").stdout.strip()
    assert found(folder, key) == found(folder, graced)._replace(reads_only=True)
    rotated = process("rotate", ident)
    assert found(folder, graced) is None
    assert re.fullmatch(r"oe_[0-9a-f]{12}\.[\w-]{43}\n", rotated.stdout)
    key = rotated.stdout.strip()
    gone = process("revoke", ident)
    assert (gone.returncode, gone.stderr) == (0, "")
    assert ident in gone.stdout
    assert found(folder, key) is None


WATCH = """
import sys, time
from pathlib import Path
from oddsengine_service.accounts.keys import KeyStore
folder, key = Path(sys.argv[1]), sys.argv[2]
store = KeyStore(folder / "keys.sqlite", folder / "keys.pepper")
last = store.find(key).tier.id
print(last, time.time(), flush=True)
while last:
    found = store.find(key)
    now = found.tier.id if found else ""
    if now != last:
        last = now
        print(now or "gone", time.time(), flush=True)
    time.sleep(0.001)
"""


def test_another_process_sees_a_change_within_a_second(folder: Path, run: Run) -> None:
    made = created(run, "--tier", "pro")
    with python(WATCH, str(folder), made["key"], stdout=PIPE) as watcher:
        assert watcher.stdout is not None
        patience = threading.Timer(30.0, watcher.kill)
        patience.start()
        try:
            assert watcher.stdout.readline().startswith("pro ")
            for words, seen in ((("tier", made["id"], "hobby"), "hobby"), (("revoke", made["id"]), "gone")):
                assert run(*words)[0] == 0
                changed = time.time()
                what, at = watcher.stdout.readline().split()
                assert what == seen
                assert float(at) - changed < 1.0
            assert watcher.wait(10) == 0
        finally:
            patience.cancel()
            watcher.kill()


# ---- what is printed ----


def test_a_key_is_shown_once(run: Run, folder: Path) -> None:
    made = created(run, "--tier", "sharp", "--name", "web")
    secret = made["key"].partition(".")[2]
    for words in (("list",), ("list", "--json"), ("tier", made["id"], "pro"), ("revoke", made["id"], "--json")):
        status, out, err = run(*words)
        assert status == 0
        assert made["id"] in out
        assert secret not in out + err
    assert all(secret.encode() not in path.read_bytes() for path in folder.iterdir())


def test_the_list(run: Run) -> None:
    one = created(run, "--tier", "pro", "--name", "web")
    two = created(run, "--tier", "enterprise", "--rate", "9000")
    run("create", "--account", "other", "--tier", "free")
    run("revoke", one["id"])
    _, out, _ = run("list", "--json")
    assert [entry["account"] for entry in json.loads(out)] == ["acme", "other"]
    _, out, _ = run("list", "--account", "acme", "--all", "--json")
    listed = json.loads(out)
    assert [(entry["id"], entry["is_active"]) for entry in listed] == [(one["id"], False), (two["id"], True)]
    assert (listed[1]["rate"], listed[1]["streams"], listed[1]["last_used"]) == (9000, 100, None)
    assert "key" not in listed[0]
    _, out, _ = run("list", "--all")
    title, *lines = out.splitlines()
    assert title.split()[:3] == ["Id", "Account", "Name"]
    assert [line.split()[0] for line in lines if " acme " in line] == [one["id"], two["id"]]
    assert "revoked" in next(line for line in lines if one["id"] in line)
    assert "9,000" in next(line for line in lines if two["id"] in line)


def test_a_list_of_nothing_makes_nothing(run: Run, folder: Path) -> None:
    assert run("list") == (0, "none\n", "")
    assert run("list", "--json") == (0, "[]\n", "")
    assert not folder.exists()


def test_what_a_key_may_do(run: Run, folder: Path) -> None:
    made = created(run, "--tier", "pro", "--streaming", "--streams", "4", "--rate", "50", "--features", "odds,ev")
    asked = found(folder, made["key"])
    assert (asked.account, asked.tier.id, asked.rate, asked.streams) == ("acme", "pro", 50, 4)
    assert asked.features == {"odds", "ev"}
    words = ("--rate", "tier", "--streams", "tier", "--features", "tier")
    status, out, _ = run("tier", made["id"], "sharp", *words, "--json")
    assert status == 0
    asked = found(folder, made["key"])
    assert (asked.tier.id, asked.rate, asked.streams, "ev" in asked.features) == ("sharp", 1000, 10, True)
    assert json.loads(out)["streaming"] is True
    assert run("tier", made["id"], "hobby", "--no-streaming")[0] == 0
    asked = found(folder, made["key"])
    assert (asked.tier.id, asked.rate, asked.streams) == ("hobby", 120, 0)


def test_an_export_that_does_not_fit_leaves_the_last_one(run: Run, folder: Path, tmp_path: Path) -> None:
    assert created(run, "--tier", "pro")
    file = tmp_path / "keys.jsonl"
    assert run("export", str(file))[0] == 0
    before = file.read_text()
    store = KeyStore(folder / "keys.sqlite", folder / "keys.pepper")
    for number in range(400):
        store.create(f"account{number}", KeyTerms("pro"))
    store.close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) * 200, limits[1]))
    try:
        refused = run("export", str(file))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused == (2, "", f"oddsengine keys: {file} cannot be written: file too large\n")
    assert file.read_text() == before
    assert sorted(tmp_path.iterdir()) == [folder, file]


def test_rotation(run: Run, folder: Path) -> None:
    made = created(run, "--tier", "pro")
    status, out, _ = run("rotate", made["key"], "--json")  # the whole key will do
    again = json.loads(out)
    assert (status, again["id"]) == (0, made["id"])
    assert again["key"] != made["key"]
    assert found(folder, made["key"]) is None
    assert found(folder, again["key"]) is not None


def test_settings_of_a_file(run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ODDSENGINE_DATA_FOLDER")
    apart = tmp_path / "apart"
    (tmp_path / "own.toml").write_text(f'[data]\nfolder = "{apart}"\n[keys]\nfile = "who.sqlite"\n', encoding="utf-8")
    created(run, "--tier", "pro", "--config", str(tmp_path / "own.toml"))
    assert {path.name for path in apart.iterdir()} >= {"who.sqlite", "keys.pepper"}
    assert not folder.exists()


# ---- what cannot be done ----


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("create", "--account", "acme", "--tier", "gold"), "tier must be one of free, hobby, pro, sharp, enterprise"),
        (("create", "--account", "two words", "--tier", "pro"), "account must be"),
        (("create", "--account", "demo_pro", "--tier", "pro"), "account must be"),
        (("create", "--account", "acme", "--tier", "free", "--streaming"), "does not support streaming"),
        (("create", "--account", "acme", "--tier", "pro", "--rate", "-5"), "--rate"),
        (("create", "--account", "acme", "--tier", "pro", "--rate", "0"), "rate must be"),
        (("create", "--account", "acme", "--tier", "pro", "--features", "gossip"), "features must be a list of"),
        (("create", "--tier", "pro"), "--account"),
        (("revoke", "oe_000000000000"), "unknown key 'oe_000000000000'"),
        (("rotate", "oe_000000000000"), "unknown key"),
        (("tier", "oe_000000000000", "pro"), "unknown key"),
        (("tier", "oe_000000000000", "pro", "--rate", "much"), "--rate"),
        ((), "ACTION"),
        (("list", "--config", "none.toml"), "no such file"),
    ],
    ids=str,
)
def test_complaints_are_one_sentence(run: Run, words: tuple[str, ...], sentence: str) -> None:
    created(run, "--tier", "pro")
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1, err


@pytest.mark.parametrize("words", [("revoke", "oe_0"), ("rotate", "oe_0"), ("tier", "oe_0", "pro")], ids=str)
def test_no_file_is_made_to_look_into(run: Run, folder: Path, words: tuple[str, ...]) -> None:
    status, _, err = run(*words)
    assert (status, err.count("\n")) == (2, 1)
    assert "does not exist" in err
    assert not folder.exists()


def test_a_file_that_is_no_database(run: Run, folder: Path) -> None:
    folder.mkdir()
    (folder / "keys.sqlite").write_text("something else " * 100, encoding="utf-8")
    status, _, err = run("list")
    assert (status, err.count("\n")) == (2, 1)
    assert "not a database" in err


def test_a_secret_is_in_no_complaint(run: Run) -> None:
    made = created(run, "--tier", "pro")
    run("revoke", made["key"])
    status, out, err = run("rotate", made["key"])
    assert status == 2
    assert "revoked" in err
    assert made["key"].partition(".")[2] not in out + err
