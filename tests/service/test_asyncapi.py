"""The AsyncAPI document: valid, whole, and true of every message of real streams.

`asyncapi-3.0.0.json.gz` is the JSON Schema of AsyncAPI 3.0.0 by the AsyncAPI Initiative (Apache License 2.0), as it is
in version 6.11.1 of its package `@asyncapi/specs`.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from support.effort import less
from support.service_running import PATIENCE_S, Running, running
from support.stream_samples import PING, SUBSCRIBE, Messages, collected, declared

from oddsengine_service.http import asyncapi
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.request import BASE
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.site import STREAM_EXAMPLES

SCHEMA = Path(__file__).with_name("asyncapi-3.0.0.json.gz")
STREAMS = [endpoint for endpoint in ENDPOINTS if endpoint.tag == "Streaming"]
STORED: dict[str, Any] = json.loads(STREAM_EXAMPLES.read_bytes())


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Messages:
    return collected(tmp_path_factory.mktemp("streams"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("node"), waits=True) as server:
        yield server


@pytest.fixture(scope="module")
def document(server: Running) -> dict[str, Any]:
    """As a node serves it."""
    return dict(fetched(server, "/asyncapi.json").json())


def fetched(server: Running, path: str) -> httpx2.Response:
    answer = httpx2.get(f"{server.origin}{path}", timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    return answer


def key(name: str) -> str:
    """Where the document has the message of a sample."""
    return name.replace(" ", "_").replace(":", "_")


def validator(document: dict[str, Any], name: str) -> Any:
    payload = document["components"]["messages"][key(name)]["payload"]
    return jsonschema_rs.Draft7Validator({**payload, "components": document["components"]})


def best_match(errors: Any) -> Any:
    """The first fault, if there is one."""
    return next(iter(errors), None)


def names(value: Any) -> Any:
    """Names of the fields of a message; those of a row only once."""
    if isinstance(value, dict):
        return {name: names(each) for name, each in value.items()}
    return [names(value[0])] if isinstance(value, list) and value else None


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    schema = json.loads(gzip.decompress(SCHEMA.read_bytes()))
    error = best_match(jsonschema_rs.Draft7Validator(schema).iter_errors(document))
    assert error is None, f"{list(error.instance_path)}: {error.message[:500]}"


def test_it_has_every_stream_with_its_messages(document: dict[str, Any]) -> None:
    channels = {channel["address"]: channel for channel in document["channels"].values()}
    assert set(channels) == {endpoint.path for endpoint in STREAMS}
    for endpoint in STREAMS:
        kind = asyncapi.protocol(endpoint)
        sent = {key(f"{kind} {name}") for name in (*endpoint.sends, *endpoint.takes)}
        assert set(channels[endpoint.path]["messages"]) == sent
    for operation in document["operations"].values():
        channel = document["channels"][operation["channel"]["$ref"].rpartition("/")[2]]
        start = operation["channel"]["$ref"] + "/messages/"
        assert all(message["$ref"].removeprefix(start) in channel["messages"] for message in operation["messages"])
    received = document["operations"]["receive_ws"]["messages"]
    assert [message["$ref"].rpartition("/")[2] for message in received] == ["ws_subscribe", "ws_ping"]


def test_parameters_are_those_of_the_endpoints(document: dict[str, Any]) -> None:
    for stem, channel in document["channels"].items():
        endpoint = next(one for one in STREAMS if one.path == channel["address"])
        if endpoint.takes:
            query = channel["bindings"]["ws"]["query"]
        else:
            query = document["operations"][f"send_{stem}"]["bindings"]["http"]["query"]
        assert set(query["properties"]) == {field.name for field in endpoint.query.declared.all}
        assert set(channel.get("parameters", {})) == ({"eventId"} if "{eventId}" in endpoint.path else set())


def test_every_message_of_real_streams_is_as_described(document: dict[str, Any], seen: Messages) -> None:
    assert set(seen) == declared() == {f"{k.partition('_')[0]} {m['name']}" for k, m in messages(document).items()}
    for name, sent in seen.items():
        check = validator(document, name)
        for message in [*sent[: less(20, 4)], *sent[-less(5, 2) :]]:
            error = best_match(check.iter_errors(cut(message)))
            assert error is None, f"{name}: {list(error.instance_path)}: {error.message[:300]}"


def cut(value: Any) -> Any:
    """A message with so many rows that checking it does not take long."""
    if isinstance(value, dict):
        return {name: cut(each) for name, each in value.items()}
    return list(map(cut, value[:10])) if isinstance(value, list) else value


def messages(document: dict[str, Any]) -> dict[str, Any]:
    return dict(document["components"]["messages"])


def test_every_message_has_an_example_with_the_fields_of_real_ones(document: dict[str, Any], seen: Messages) -> None:
    for name, sent in seen.items():
        (example,) = messages(document)[key(name)]["examples"]
        payload = example["payload"]
        assert payload == STORED[name]
        validator(document, name).validate(payload)
        row = _first(payload)
        real = [names(_first(message)) for message in sent]
        if name.split(" ")[1].startswith(("gamestate", "ev:", "arb:", "middles:", "low_hold:", "odds:", "initial")):
            assert any(set(names(row) or ()) == set(one or ()) for one in real), (
                f"{name}: run python tests/support/stream_samples.py"
            )


def _first(message: Any) -> Any:
    """The first row of a message, or the message if it has no rows."""
    rows = message
    if isinstance(message, dict):
        rows = next((value for key, value in message.items() if key in ("data", "odds")), message)
    if isinstance(rows, list):
        return rows[0] if rows else None
    return next(iter(rows.values())) if rows and all(isinstance(each, dict) for each in rows.values()) else rows


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sse odds:update", lambda message: message["odds"][0].pop("odds_decimal")),
        ("sse snapshot", lambda message: message.pop("has_more")),
        ("sse gamestate:update", lambda message: next(iter(message.values())).update(stale="no")),
        ("ws initial", lambda message: message.pop("seq")),
        ("ws odds:removed", lambda message: message.update(type="odds:update")),
        ("ws odds:locked", lambda message: message["data"][0].pop("is_active")),
        ("ws ev:detected", lambda message: message["data"][0].pop("ev_percentage")),
        ("ws subscribe", lambda message: message.update(channels=["dance"])),
        ("ws ping", lambda message: message.update(type="pong")),
    ],
)
def test_other_messages_are_not(document: dict[str, Any], name: str, change: Any) -> None:
    message = json.loads(json.dumps(STORED[name]))
    check = validator(document, name)
    assert check.is_valid(message)
    change(message)
    assert not check.is_valid(message)


def test_a_path_before_the_api_is_in_it() -> None:
    described = asyncapi.document(ENDPOINTS, f"/odds{BASE}", {})
    assert {server["pathname"] for server in described["servers"].values()} == {"/odds/api/v1"}
    assert all("examples" not in message for message in messages(described).values())


def test_it_is_linked(server: Running) -> None:
    assert 'href="asyncapi.json"' in fetched(server, "/docs").text
    answer = fetched(server, "/asyncapi.json")
    assert answer.headers["content-type"] == "application/json"
    again = {"If-None-Match": answer.headers["etag"]}
    assert httpx2.get(f"{server.origin}/asyncapi.json", headers=again, timeout=PATIENCE_S).status_code == 304


def test_what_clients_send_is_what_the_samples_say() -> None:
    (socket,) = (endpoint for endpoint in STREAMS if endpoint.takes)
    assert isinstance(socket, Endpoint)
    assert [STORED[f"ws {name}"] for name in socket.takes] == [SUBSCRIBE, PING]
