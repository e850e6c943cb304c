"""A node that refuses what it would otherwise ignore."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.service_running import Running, running
from websockets.sync.client import connect

KEY = "demo_enterprise"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("strict"), events=2, strict="true") as server:
        yield server


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "/opportunities/ev?min_evv=2",
            "'min_evv' is not a parameter of this request; did you mean min_ev? (allowed: ",
        ),
        ("/odds?colour=red", "'colour' is not a parameter of this request (allowed: "),
        ("/stream/opportunities?min_evv=2", "'min_evv' is not a parameter of this request; did you mean min_ev? ("),
        ("/stream/odds?sprot=soccer", "'sprot' is not a parameter of this request; did you mean sport? ("),
    ],
)
def test_unknown_parameters_are_errors(strict: Running, path: str, said: str) -> None:
    with strict.client() as client:
        answer = client.get(path)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "validation_error"
    assert error["message"].startswith(said)


def test_what_is_known_and_the_format_of_another_are_as_ever(strict: Running) -> None:
    with strict.client() as client:
        assert client.get("/opportunities/ev?min_ev=2").status_code == 200
        assert client.get(f"{strict.origin}/v4/sports?apiKey={KEY}&colour=red").status_code == 200


def test_messages_too(strict: Running) -> None:
    with connect(f"{strict.origin.replace('http', 'ws')}/ws?api_key={KEY}") as socket:

        def answer(**filters: list[str]) -> str:
            """What is said of a subscription, after what was under way."""
            socket.send(json.dumps({"type": "subscribe", "channels": ["ev"], "filters": filters}))
            while True:
                said = json.loads(socket.recv(timeout=10))
                if said["type"] == "error" or said.get("channels") == ["ev"]:
                    return json.dumps(said)

        assert "'filters.sprots' is not a parameter of this request; did you mean filters.sports?" in answer(
            sprots=["x"]
        )
        assert "error" not in answer(sports=["soccer"])


def test_it_is_off_by_default(tmp_path: Path) -> None:
    with running(tmp_path, events=2) as server, server.client() as client:
        answer = client.get("/odds?colour=red")
        assert answer.json()["meta"]["ignored"] == ["colour"]
