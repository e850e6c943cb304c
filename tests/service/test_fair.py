"""A node's own fair-price table: where it comes from, when it is in force, and what health says of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from backtesting.test_audit import SNAPSHOTS, history
from support.handler_calls import NoKeys, ask, found
from support.logs import logged
from support.service_running import Running, running, until

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting.formats import read_history
from oddsengine.live.engine import Engine
from oddsengine_cli import main
from oddsengine_service import server
from oddsengine_service.history.past import Past
from oddsengine_service.http.endpoints import Answer
from oddsengine_service.node import Node
from oddsengine_service.node_constants import FairFile, table_file, table_in_force
from oddsengine_service.routes import health_routes as module
from oddsengine_service.settings import Settings, SettingsError, load

OWN = 'name = "mine"\ndate = "2026-09-01"\n[own]\nweight = 1.1\n[note]\ngames = 88\n'


def settings(folder: Path, **more: str) -> Settings:
    return load(
        None, {"ODDSENGINE_DATA_FOLDER": str(folder)} | {f"ODDSENGINE_FAIR_{k.upper()}": v for k, v in more.items()}
    )


def test_the_table_is_the_data_folder_s_or_the_named_one_or_the_package_s(tmp_path: Path) -> None:
    assert table_in_force(settings(tmp_path)) == catalog.fair_table()
    table_file(settings(tmp_path)).write_text(OWN)
    assert table_in_force(settings(tmp_path)).constants.own_weight == 1.1
    other = tmp_path / "other.toml"
    with pytest.raises(SettingsError, match=r"other\.toml: no such file"):
        table_in_force(settings(tmp_path, table=str(other)))
    other.write_text("[own]\nweight = 0.9\n")
    assert table_in_force(settings(tmp_path, table=str(other))).constants.own_weight == 0.9
    other.write_text("[own]\nheight = 0.9\n")
    with pytest.raises(SettingsError, match=r"has no key own\.height"):
        table_in_force(settings(tmp_path, table=str(other)))


@contextmanager
def following(folder: Path, monkeypatch: pytest.MonkeyPatch, **more: str) -> Iterator[tuple[Running, httpx2.Client]]:
    """A node that looks at its file often, and a client."""
    monkeypatch.setattr(server, "EVERY_S", 0.02)
    with (
        running(folder, events=2, demonstration=False, settings=more) as node,
        node.client(None) as client,
    ):
        yield node, client


def test_a_file_that_changes_is_in_force_within_a_running_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table_file(settings(tmp_path))
    with following(tmp_path, monkeypatch) as (node, client):

        def fair() -> Any:
            return client.get("/health").json()["fair"]

        assert fair()["table"] == catalog.fair_table().name
        file.write_text(OWN)
        until(lambda: fair()["table"] == "mine")
        assert (fair()["date"], fair()["games"]) == ("2026-09-01", 88)
        assert node.node.engine.fair.constants.own_weight == 1.1
        until(lambda: "fair-price table" in node.log_text())

        file.write_text(OWN + "[own]\nheight = 1\n")
        until(lambda: client.get("/health").json()["checks"]["data"]["status"] == "degraded")
        assert "fair table" in client.get("/health").json()["checks"]["data"]["message"]
        assert "fair.toml: " in node.node.failures["fair table"]
        assert fair()["table"] == "mine", "the old one stays in force"

        file.write_text(OWN.replace("1.1", "1.2"))
        until(lambda: node.node.engine.fair.constants.own_weight == 1.2)
        until(lambda: "fair table" not in node.node.failures)

        file.unlink()
        until(lambda: fair()["table"] == catalog.fair_table().name)
        until(lambda: node.log_text().count("fair-price table") == 3)  # it is logged after it is in force
        assert not node.node.failures


def test_a_named_file_that_is_gone_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    with following(tmp_path / "data", monkeypatch, ODDSENGINE_FAIR_TABLE=str(file)) as (node, _):
        file.rename(tmp_path / "away.toml")
        until(lambda: "fair table" in node.node.failures)
        assert node.node.failures["fair table"].endswith(f"fair.table: {file}: no such file")
        assert node.node.engine.fair.name == "mine"
        (tmp_path / "away.toml").rename(file)
        until(lambda: not node.node.failures)
        assert "fair-price table" not in node.log_text(), "nothing has changed"


def test_a_file_is_read_only_if_it_has_changed(tmp_path: Path) -> None:
    file = table_file(settings(tmp_path))
    file.write_text(OWN)
    node = Node(Engine(), NoKeys(), None, demo=True)  # type: ignore[arg-type]
    fair = FairFile(settings(tmp_path))
    assert fair.table.name == "mine"
    before = file.stat()
    file.write_text(OWN.replace("mine", "same"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same size, too
    with logged() as found:
        fair.check(node)
        assert fair.table.name == "mine"
        os.utime(file)
        fair.check(node)
    assert (fair.table.name, node.engine.fair.name) == ("same", "same")
    assert found.text.count("fair-price table") == 1
    node.close()


@pytest.mark.exhaustive
def test_the_command_fits_a_table_to_the_tapes_of_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tapes" / "one"
    folder.parent.mkdir()
    engine, writer = oe.resume(folder)
    view = engine.view(method="close", kinds=("ev",), keep=True)
    with writer:
        for snapshot in read_history(history(51, snapshots=SNAPSHOTS)).snapshots:
            engine.step(snapshot.quotes, snapshot.now)
    assert view.active
    with following(tmp_path, monkeypatch) as (node, _):
        assert main(["calibrate", "--data", str(tmp_path)]) == 0
        said = capsys.readouterr().out
        assert "games with a close" in said
        if table_file(settings(tmp_path)).exists():
            until(lambda: node.node.engine.fair.name == "calibrated")
            assert node.node.engine.fair.note["games"] == 51
        else:
            assert "the current ones stay in use" in said


def test_the_command_takes_the_tapes_of_a_data_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--data", str(tmp_path)]) == 2
    assert "has no tapes; set tape = true" in capsys.readouterr().err
    assert main(["calibrate"]) == 2
    assert "give a history, or --data" in capsys.readouterr().err
    assert main(["calibrate", "x.parquet", "--data", str(tmp_path)]) == 2
    assert "got both" in capsys.readouterr().err


def test_health_says_which_table_is_in_force_and_how_it_did(tmp_path: Path) -> None:
    file = table_file(settings(tmp_path))
    file.write_text(OWN)
    engine = Engine(fair=table_in_force(settings(tmp_path)))
    engine.step((), datetime(2026, 2, 8, tzinfo=UTC))
    past = Past(engine)
    node = Node(engine, NoKeys(), None, demo=True, past=past)  # type: ignore[arg-type]
    endpoint = found(module.endpoints, "/health")
    for _ in range(2):
        answer = endpoint.answer(ask(endpoint, node))
        assert isinstance(answer, Answer)
        said = msgspec.json.decode(answer.body)["fair"]
        past.settle()
    assert said == {
        "reference": "close", "table": "mine", "date": "2026-09-01", "games": 88, "graded": 0, "avg_ev": None,
        "avg_clv": None, "avg_clv_error": None,
    }  # fmt: skip
    past.close()
