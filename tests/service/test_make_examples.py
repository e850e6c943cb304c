"""Examples of the API reference: every endpoint has one, they are current, and an endpoint without one is described."""

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oddsengine_service.http.endpoints import Context, Endpoint
from oddsengine_service.http.openapi import document
from oddsengine_service.http.request import BASE
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.site import EXAMPLES

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_examples.py"
STORED: dict[str, Any] = msgspec.json.decode(EXAMPLES.read_bytes())


def _fails(_: Context) -> Any:
    raise ZeroDivisionError("no answer")


def _names(value: Any) -> Any:
    """The fields of a response, without values."""
    if isinstance(value, dict):
        return {name: _names(each) for name, each in value.items()}
    return [_names(each) for each in value] if isinstance(value, list) else None


def test_every_endpoint_that_answers_json_has_an_example() -> None:
    missing = {
        f"{endpoint.method} {endpoint.path}"
        for endpoint in ENDPOINTS
        if endpoint.tag != "Streaming" and endpoint.method != "DELETE"
    } - set(STORED)
    assert missing == {"GET /deeplink/{id}"}, "which redirects"


def test_the_examples_are_current() -> None:
    spec = importlib.util.spec_from_file_location("make_examples", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fresh = module.examples()
    assert fresh.keys() == STORED.keys(), "run python scripts/make_examples.py"
    differ = {name for name in fresh if _names(fresh[name]) != _names(STORED[name])}
    assert differ <= {"GET /health"}, "run python scripts/make_examples.py"  # which has messages only about failures


def test_an_endpoint_without_an_example_is_described() -> None:
    unknown = Endpoint("/things", lambda _: {"success": True}, "A thing", "Things", dict)
    described = document([*ENDPOINTS, unknown], BASE, STORED)
    answer = described["paths"]["/things"]["get"]["responses"]["200"]
    assert answer["content"]["application/json"] == {"schema": {"type": "object"}}


def test_what_cannot_be_described_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="GET /strange"):
        document([Endpoint("/strange", _fails, "Strange", "Things", complex)], BASE)
