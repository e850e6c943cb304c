"""The OpenAPI 3.1 document, generated from the declarations that also parse requests and encode responses."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.params import Query
from oddsengine_service.http.request import V4
from oddsengine_service.http.tables import ARROW, ARROW_TYPE, CSV
from oddsengine_service.http.v4_errors import V4Error
from oddsengine_service.tiers import required

VERSION = "2.0.0"  # of the API
_MODULE = re.compile(rb"oddsengine_service(\.\w+)*\.")
_ERRORS = {
    400: "Invalid parameter or body; the message says what was wrong, what was given and what is allowed.",
    401: "The API key is missing or invalid.",
    403: "The tier of the key does not allow this.",
    404: "Not found.",
    405: "Method not allowed for this path.",
    406: "The `Accept` header does not allow JSON.",
    408: "The request body did not arrive in time.",
    413: "The request body is too large.",
    415: "Unsupported content encoding.",
    422: "Invalid parameter; `error_code` says which, the message what was given and what is allowed.",
    426: "The endpoint is for WebSocket clients only.",
    429: "Too many requests; `Retry-After` says when to retry.",
    500: "Internal error; the request id identifies it in the logs.",
    503: "The node is starting, or something the request needs is unavailable.",
    507: "Storage is full; nothing was stored.",
}
_LIMITS = {
    "X-RateLimit-Limit": "Requests per minute.",
    "X-RateLimit-Remaining": "Requests left in this window.",
    "X-RateLimit-Reset": "Unix time at which the window ends.",
    "X-Tier": "The tier of the key; `free` without one.",
    "X-Data-Delay": "Delay of the data in seconds.",
    "X-Request-Id": "Identifies this request in the logs.",
}
_CREDITS = {
    "X-Requests-Remaining": "Requests that the rate limit allows until the end of the month.",
    "X-Requests-Used": "Requests of the account in this month.",
    "X-Requests-Last": "The cost of this request: 1, or 0 if it was refused by the rate limit.",
}
_OF_TABLES = {
    "X-Total-Count": "Number of rows on all pages; of a response that is a table.",
    "X-Next-Offset": "`next_offset` of the page, if there is one; of a response that is a table.",
    "X-Next-Cursor": "`next_cursor` of the page, if there is one; of a response that is a table.",
}
SECURITY: Mapping[str, Mapping[str, str]] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "v4": {"type": "apiKey", "in": "query", "name": "apiKey"},
}
"""The ways to send a key."""
_LAST = ("limit", "offset", "cursor")  # parameters of every list


class ErrorDetail(msgspec.Struct):
    """What went wrong."""

    code: str
    message: str
    docs: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    retry_after: int | UnsetType = UNSET
    required_tier: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET  # why something that was there is not any more


class ErrorBody(msgspec.Struct):
    """The body of every error. `retry_after` and `required_tier` are given both inside `error` and beside it."""

    error: ErrorDetail
    retry_after: int | UnsetType = UNSET
    required_tier: str | UnsetType = UNSET


def document(endpoints: Iterable[Endpoint], base: str, samples: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Build the document; `samples` are example responses by operation, such as `GET /odds`.

    Raises `TypeError` if a body or response has a type without a schema; the message names the operation.
    """
    every = [endpoint for endpoint in endpoints if not endpoint.path.startswith("/_")]
    types = [ErrorBody, V4Error, *(t for endpoint in every for t in (endpoint.returns, endpoint.body) if t is not None)]
    try:
        described = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    except TypeError:
        for endpoint in every:
            _check_types(endpoint)  # says which
        raise
    # Components are named after classes alone, so that moving a module renames nothing in generated clients.
    schemas, components = msgspec.json.decode(_MODULE.sub(b"", msgspec.json.encode(described)))
    of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in every:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, of, samples or {})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "oddsengine",
            "version": VERSION,
            "description": "Prices of many sportsbooks, and what they are worth: +EV, arbitrage, middles, low hold.",
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": SECURITY,
        },
    }


def _check_types(endpoint: Endpoint) -> None:
    try:
        msgspec.json.schema_components([kind for kind in (endpoint.returns, endpoint.body) if kind is not None])
    except TypeError as error:
        raise TypeError(f"{endpoint.method} {endpoint.path} cannot be described: {error}") from error


def _operation(endpoint: Endpoint, of: Mapping[int, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
    stem = re.sub(r"[^\w-]+", "_", endpoint.path.strip("/")).strip("_")
    out: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{stem}",
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [*path_parameters(endpoint), *parameters(endpoint.query)],
        "responses": _responses(endpoint, of, samples),
        "security": _security(endpoint),
    }
    needs = [f"For the tier {required(endpoint.feature).id} and above."] if endpoint.feature else []
    if endpoint.doc or needs:
        out["description"] = " ".join([*needs, *([endpoint.doc] if endpoint.doc else ())])
    if is_v4(endpoint):
        out["servers"] = [{"url": "."}]  # beside this document, not below the base path
    if endpoint.body is not None:
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": of[id(endpoint.body)]}}}
    return out


def is_v4(endpoint: Endpoint) -> bool:
    """Whether an endpoint has the format of The Odds API."""
    return endpoint.path.startswith(f"{V4}/")


def path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    """The parameters in the path of an endpoint."""
    text = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": {**text, **endpoint.path_kinds.get(name, {})}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def parameters(query: type[Query]) -> list[dict[str, Any]]:
    """The parameters of a query."""
    out = []
    for field in sorted(query.declared.all, key=lambda each: (not each.required, each.name in _LAST)):
        aliases = field.param.aliases
        also = f" Also accepted as {' or '.join(f'`{name}`' for name in aliases)}." if aliases else ""
        out.append(
            {
                "name": field.name, "in": "query", "description": field.doc + also, "schema": field.with_default(),
                "required": field.required,
                **({"allowEmptyValue": True} if field.blank and not field.required else {}),
            }
        )  # fmt: skip
    return out


def _responses(endpoint: Endpoint, of: Mapping[int, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
    media: dict[str, Any] = {"schema": of.get(id(endpoint.returns), {})}
    name = f"{endpoint.method} {endpoint.path}"
    if name in samples:
        media["example"] = samples[name]
    limits = _LIMITS | _CREDITS if is_v4(endpoint) else _LIMITS
    headers = {name: {"description": doc, "schema": {"type": "string"}} for name, doc in limits.items()}
    good: dict[str, Any] = {"description": endpoint.summary, "headers": headers}
    if endpoint.returns is not None:
        good["content"] = {"text/event-stream" if endpoint.tag == "Streaming" else "application/json": media}
        choices = {choice for field in endpoint.query.declared.all for choice in field.choices}
        if CSV in choices:
            good["content"]["text/csv"] = {"schema": {"type": "string"}}
        if ARROW in choices:
            good["content"][ARROW_TYPE] = {"schema": {"type": "string", "format": "binary"}}
            good["headers"] = headers | {
                name: {"description": doc, "schema": {"type": "string"}} for name, doc in _OF_TABLES.items()
            }
    codes = {
        400,
        405,
        429,
        500,
        503,
        *((401,) if endpoint.key != "none" else ()),
        *((403,) if endpoint.key == "needed" else ()),
    }
    codes |= {404} if "{" in endpoint.path else set()
    codes |= set(endpoint.errors)
    codes |= {408, 413, 415} if endpoint.body is not None else set()
    codes |= {507} if endpoint.writes else set()
    codes -= {400, 403} if is_v4(endpoint) else set()
    problem = {"application/json": {"schema": of[id(V4Error if is_v4(endpoint) else ErrorBody)]}}
    bad: dict[str, Any] = {str(code): {"description": _ERRORS[code], "content": problem} for code in sorted(codes)}
    bad["429"]["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    if endpoint.path == "/health":
        bad = {"503": {"description": "The service is down.", "content": {"application/json": media}}}
    if endpoint.path == "/mcp":
        bad["202"] = {"description": "The message was a notification, which has no response."}
    if endpoint.method == "GET" and endpoint.cacheable:
        bad["304"] = {"description": "Not modified."}
    return {str(endpoint.status): good, **bad}


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    if endpoint.key == "none":
        return []
    if endpoint.key == "operator":
        return [{"bearer": []}]
    ways: list[dict[str, list[str]]] = [{"header": []}, {"bearer": []}]
    if endpoint.query_key:
        ways.append({"v4" if is_v4(endpoint) else "query": []})
    if endpoint.key == "optional":
        ways.append({})
    return ways
