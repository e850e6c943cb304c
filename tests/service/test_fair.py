"""A node's own fair-price table: where it comes from, when it is in force, and what health says of it."""

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from backtesting.test_audit import LOOKS, history
from support.handler_calls import NoKeys, ask, found

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting.formats import read_history
from oddsengine.live.engine import Engine
from oddsengine_cli import main
from oddsengine_service.endpoints import Answer
from oddsengine_service.fair import Calibrator, table_file, table_in_force
from oddsengine_service.log import Log
from oddsengine_service.node import Node
from oddsengine_service.past import Past
from oddsengine_service.routes import health as module
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
    with pytest.raises(SettingsError, match="FAIR_CALIBRATE_DAYS must be a number of days, 0 for never"):
        settings(tmp_path, calibrate_days="-1")


def test_a_file_that_changes_is_in_force_and_one_that_cannot_be_used_is_not(tmp_path: Path) -> None:
    adopted: list[catalog.FairTable] = []
    out = StringIO()
    log = Log(out)
    calibrator = Calibrator(settings(tmp_path), adopted.append, log)
    assert not calibrator.reload()
    file = table_file(settings(tmp_path))
    file.write_text("[own]\nheight = 1\n")
    assert not calibrator.reload()
    assert not adopted
    file.unlink()
    assert calibrator.reload()
    file.write_text(OWN)
    assert calibrator.reload()
    assert not calibrator.reload()
    assert [table.name for table in adopted] == ["us-2026-08", "mine"]
    assert calibrator.fit() == 2
    log.flush()
    assert "has no tapes" in out.getvalue()
    assert file.read_text() == OWN
    calibrator.close()


@pytest.mark.exhaustive
def test_a_node_fits_its_table_to_its_own_tapes(tmp_path: Path) -> None:
    folder = tmp_path / "tapes" / "one"
    folder.parent.mkdir()
    engine, writer = oe.resume(folder)
    view = engine.view(method="close", kinds=("ev",), keep=True)
    with writer:
        for look in read_history(history(51, looks=LOOKS)).looks:
            engine.step(look.quotes, look.now)
    assert view.awake
    out, adopted = StringIO(), list[catalog.FairTable]()
    log = Log(out)
    calibrator = Calibrator(settings(tmp_path), adopted.append, log)
    status = calibrator.fit()
    log.flush()
    assert status == 0, out.getvalue()
    assert "games with a close" in out.getvalue()
    if calibrator.reload():
        assert (adopted[0].name, adopted[0].note["games"]) == ("calibrated", 51)
    else:
        assert "the current ones stay in use" in out.getvalue()


def test_days_between_two_fits_are_counted_over_restarts(tmp_path: Path) -> None:
    def node(days: str = "7") -> Calibrator:
        return Calibrator(settings(tmp_path, calibrate_days=days), lambda _: None, Log(StringIO()))

    now, day = datetime(2026, 9, 1, tzinfo=UTC).timestamp(), 86_400.0
    assert not node("0").due(now)
    assert not node().due(now)  # the first one is a week later
    assert not node().due(now + 6.9 * day)
    assert node().due(now + 7.1 * day)
    assert not node().due(now + 7.2 * day)
    assert node().due(now + 14.2 * day)


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
    node = Node(engine, NoKeys(), None, demo=True)  # type: ignore[arg-type]
    node.past = Past(engine)
    endpoint = found(module.endpoints, "/health")
    for _ in range(2):
        answer = endpoint.answer(ask(endpoint, node))
        assert isinstance(answer, Answer)
        said = msgspec.json.decode(answer.body)["fair"]
        node.past.settle()
    assert said == {
        "reference": "close", "table": "mine", "date": "2026-09-01", "games": 88, "graded": 0, "avg_ev": None,
        "avg_clv": None, "avg_clv_error": None,
    }  # fmt: skip
    node.past.close()
