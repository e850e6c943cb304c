"""The node's record over a socket: a file that another process writes, replaces and may damage."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.service_running import Running, running

from oddsengine.history.truth_file import TruthReport, encoded_report, report_file
from oddsengine_service.history.truth import NOTHING, TruthFile
from oddsengine_service.settings import load
from oddsengine_service.site import description


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("truth")
    settings = {"ODDSENGINE_DATA_TRUTH": str(folder / "report.json"), "ODDSENGINE_SERVICE_STRICT": "true"}
    with running(folder / "data", events=2, settings=settings) as server:
        yield server, folder / "report.json"


def sample(**more: object) -> TruthReport:
    example = description()["paths"]["/truth"]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    return msgspec.convert({**example["data"], **more}, TruthReport)


def test_the_report_is_served_as_it_is_now(server: tuple[Running, Path]) -> None:
    node, file = server
    with node.client("free") as client:
        file.unlink(missing_ok=True)
        assert client.get("/truth").json() == {"success": True, "data": None, "meta": {"message": NOTHING}}
        for name in ("mine", "another"):
            report = sample(fair=name)
            file.write_bytes(encoded_report(report))
            found = client.get("/truth")
            assert found.status_code == 200
            assert found.json() == {"success": True, "data": msgspec.to_builtins(report)}
        assert client.get("/truth", headers={"If-None-Match": found.headers["ETag"]}).status_code == 304
        for content in (b"", b'{"format": 1, "report": {}}', b'{"format": 2}', encoded_report(report)[:-40]):
            file.write_bytes(content)
            damaged = client.get("/truth")
            assert (damaged.status_code, damaged.json()["data"]) == (200, None)
            assert damaged.json()["meta"]["message"].startswith("The report cannot be used: it ")
            assert "Run oddsengine audit --live" in damaged.json()["meta"]["message"]
        file.unlink()
        file.mkdir()
        assert client.get("/truth").json()["meta"]["message"].startswith("The report cannot be read: ")
        file.rmdir()
        assert client.get("/truth?week=1").status_code == 400
    with node.client(None) as client:
        assert client.get("/truth").status_code == 401


def test_it_is_that_of_the_data_folder_unless_the_settings_name_another(tmp_path: Path) -> None:
    path = report_file(tmp_path)
    path.parent.mkdir()
    path.write_bytes(encoded_report(sample()))
    assert TruthFile.of_settings(load(None, {"ODDSENGINE_DATA_FOLDER": str(tmp_path)})).report() == sample()
    named = load(None, {"ODDSENGINE_DATA_TRUTH": str(path)})
    assert TruthFile.of_settings(named).report() == sample()
