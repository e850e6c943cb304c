"""Examples of the description: every endpoint has one, and one without does not break the description."""

from typing import Any

import pytest

from oddsengine_service.app import BASE
from oddsengine_service.endpoints import Context, Endpoint
from oddsengine_service.openapi import document
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.samples import samples


def _fails(_: Context) -> Any:
    raise ZeroDivisionError("no answer")


# A path parameter that no sample has a value for; an endpoint that fails.
UNKNOWN = Endpoint("/things/{thingId}", lambda _: {"success": True}, "A thing", "Things", dict)
FAILING = Endpoint("/failing", _fails, "Fails", "Things", dict)


@pytest.fixture(scope="module")
def answers() -> tuple[dict[str, Any], dict[str, Exception]]:
    failures: dict[str, Exception] = {}
    return samples([*ENDPOINTS, UNKNOWN, FAILING], failures.__setitem__), failures


def test_an_endpoint_without_a_sample_is_described(answers: tuple[dict[str, Any], dict[str, Exception]]) -> None:
    made, failures = answers
    assert {name: type(error) for name, error in failures.items()} == {
        "GET /things/{thingId}": KeyError, "GET /failing": ZeroDivisionError,
    }  # fmt: skip
    described = document([*ENDPOINTS, UNKNOWN, FAILING], BASE, made)
    for endpoint in (UNKNOWN, FAILING):
        answer = described["paths"][endpoint.path]["get"]["responses"]["200"]
        assert answer["content"]["application/json"] == {"schema": {"type": "object"}}


def test_every_endpoint_that_answers_json_has_a_sample(answers: tuple[dict[str, Any], dict[str, Exception]]) -> None:
    made, _ = answers
    missing = {
        f"{endpoint.method} {endpoint.path}"
        for endpoint in ENDPOINTS
        if endpoint.tag != "Streaming" and endpoint.method != "DELETE"
    } - set(made)
    assert missing == {"GET /deeplink/{id}"}, "which redirects"


def test_what_cannot_be_described_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="GET /strange"):
        document([Endpoint("/strange", _fails, "Strange", "Things", complex)], BASE)
