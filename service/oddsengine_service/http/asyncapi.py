"""The AsyncAPI 3 document of the streams, generated from the same declarations that encode their messages."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.openapi import SECURITY, VERSION, parameters, path_parameters

_HOST = {"default": "127.0.0.1:8000", "description": "Host and port of the node, or of the proxy before it."}
_TYPE = "application/json"
_WAYS = ("header", "bearer", "query")  # ways to send a key


def document(endpoints: Iterable[Endpoint], base: str, samples: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Build the document of the endpoints that send messages.

    `samples` are example messages by endpoint kind and name, such as `sse odds:update` and `ws odds:update`.
    """
    streams = [endpoint for endpoint in endpoints if endpoint.sends]
    payloads = {
        (protocol(endpoint), name): kind
        for endpoint in streams
        for name, kind in (*endpoint.sends.items(), *endpoint.takes.items())
    }
    envelopes = {protocol(endpoint): endpoint.envelope for endpoint in streams if endpoint.envelope is not None}
    types = [*payloads.values(), *envelopes.values()]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    of = dict(zip([*payloads, *envelopes], schemas, strict=True))
    taken = {(protocol(endpoint), name) for endpoint in streams for name in endpoint.takes}
    messages = {
        _key(*key): _message(key, of, components, samples or {}, enveloped=key not in taken) for key in payloads
    }
    channels, operations = dict[str, Any](), dict[str, Any]()
    for endpoint in streams:
        stem = re.sub(r"[^\w-]+", "_", endpoint.path.strip("/")).strip("_")
        channels[stem] = _channel(endpoint)
        operations[f"send_{stem}"] = _operation(endpoint, stem, "send", endpoint.sends)
        if endpoint.takes:
            operations[f"receive_{stem}"] = _operation(endpoint, stem, "receive", endpoint.takes)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "oddsengine: streams",
            "version": VERSION,
            "description": "Prices, opportunities and game states as they change: Server-Sent Events and WebSockets.",
        },
        "defaultContentType": _TYPE,
        "servers": {
            "sse": _server("http", base, "https behind a proxy"),
            "ws": _server("ws", base, "wss behind a proxy"),
        },
        "channels": channels,
        "operations": operations,
        "components": {
            "schemas": components,
            "messages": messages,
            "securitySchemes": {name: _security(SECURITY[name]) for name in _WAYS},
        },
    }


def protocol(endpoint: Endpoint) -> str:
    """`ws` for WebSockets, `sse` for Server-Sent Events."""
    return "ws" if endpoint.envelope is not None else "sse"


def _server(kind: str, base: str, note: str) -> dict[str, Any]:
    return {
        "host": "{host}", "pathname": base, "protocol": kind, "description": f"A node; {note}.",
        "variables": {"host": _HOST}, "security": [{"$ref": f"#/components/securitySchemes/{name}"} for name in _WAYS],
    }  # fmt: skip


def _security(scheme: Mapping[str, str]) -> dict[str, str]:
    """A security scheme of OpenAPI, in AsyncAPI's terms."""
    return {**scheme, "type": "httpApiKey"} if scheme["type"] == "apiKey" else dict(scheme)


def _key(protocol: str, name: str) -> str:
    return f"{protocol}_{name.replace(':', '_')}"


def _message(
    key: tuple[str, str], of: Mapping[Any, Any], components: Mapping[str, Any], samples: Mapping[str, Any], *,
    enveloped: bool,
) -> dict[str, Any]:  # fmt: skip
    protocol, name = key
    payload = of[key]
    described = components.get(payload.get("$ref", "").rpartition("/")[2], payload)
    if enveloped and protocol in of:
        payload = {"allOf": [of[protocol], payload]}
    out = {"name": name, "title": name, "contentType": _TYPE, "payload": payload}
    if "description" in described:
        out["summary"] = described["description"]
    if (sample := f"{protocol} {name}") in samples:
        out["examples"] = [{"name": name.replace(":", "_"), "payload": samples[sample]}]
    return out


def _channel(endpoint: Endpoint) -> dict[str, Any]:
    kind = protocol(endpoint)
    named = {
        parameter["name"]: {"description": parameter.get("description", f"The {parameter['name']}.")}
        for parameter in path_parameters(endpoint)
    }
    names = (*endpoint.sends, *endpoint.takes)
    out: dict[str, Any] = {
        "address": endpoint.path,
        "title": endpoint.summary,
        "servers": [{"$ref": f"#/servers/{kind}"}],
        "messages": {_key(kind, name): {"$ref": f"#/components/messages/{_key(kind, name)}"} for name in names},
    }
    if named:
        out["parameters"] = named
    if kind == "ws":
        out["bindings"] = {"ws": {"method": "GET", "query": _query(endpoint), "bindingVersion": "0.1.0"}}
    return out


def _operation(endpoint: Endpoint, stem: str, action: str, names: Iterable[str]) -> dict[str, Any]:
    kind = protocol(endpoint)
    out: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": f"#/channels/{stem}"},
        "summary": endpoint.summary if action == "send" else "Messages that a client may send",
        "messages": [{"$ref": f"#/channels/{stem}/messages/{_key(kind, name)}"} for name in names],
    }
    if kind == "sse":
        out["bindings"] = {"http": {"method": "GET", "query": _query(endpoint), "bindingVersion": "0.3.0"}}
    return out


def _query(endpoint: Endpoint) -> dict[str, Any]:
    """The query parameters as a schema."""
    declared = parameters(endpoint.query)
    return {
        "type": "object",
        "properties": {each["name"]: {**each["schema"], "description": each["description"]} for each in declared},
        "required": [each["name"] for each in declared if each["required"]],
    }
