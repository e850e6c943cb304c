"""The endpoint `/mcp`: one message of the protocol per POST, checked and limited before the SDK reads it.

A tool call counts as one request of its key. Other messages are only limited against floods.
"""

import asyncio
import contextlib
from typing import Any, Literal

import msgspec

from oddsengine_service.api import Api
from oddsengine_service.cors import Origins
from oddsengine_service.endpoints import Endpoint, no_answer
from oddsengine_service.middleware.access import limited
from oddsengine_service.mismatch import mismatch
from oddsengine_service.problems import Problem, quoted, wrong_method
from oddsengine_service.request import BASE, Request, read_body
from oddsengine_service.responses import EncodedResponse, json_response

PATHS = (f"{BASE}/mcp", "/mcp")
MOST_BODY = 64 << 10
MESSAGES = 600  # per minute and account, tool calls and others


class Mcp:
    """The endpoint `/mcp` as an ASGI application; it runs from the first request until `stop`."""

    def __init__(self, api: Api, origins: Origins) -> None:
        self._api, self._origins = api, origins
        self._manager: Any = None
        self._running: asyncio.Task[None] | None = None
        self._ready, self._stopping = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one message."""
        request: Request = scope["state"]["request"]
        request.endpoint = ENDPOINT
        body = await self._admitted(request, scope, receive)
        if invalid := rejection(body):
            await invalid(scope, receive, send)
            return
        await self._run()
        key = request.credential(in_query=True)
        await self._manager.handle_request({**scope, "key": key}, _replay(body, receive), send)

    async def _admitted(self, request: Request, scope: Any, receive: Any) -> bytes:
        if not self._origins.allow(scope["headers"], request.host):
            raise Problem(
                403,
                "origin_not_allowed",
                "requests from web pages of this origin are not allowed; see [service] origins",
            )
        if request.method != "POST":
            raise wrong_method(PATHS[0], request.method, ["POST"])
        caller = self._api.access.caller(ENDPOINT, request)
        room = self._api.node.limits.count_request(f"mcp {caller.account}", max(MESSAGES, 2 * caller.rate))
        if not room.allowed:
            raise limited(room, "messages")
        if not self._api.node.ready:
            raise Problem(503, "not_ready", "the node is starting; retry in a few seconds")
        body = await read_body(receive, MOST_BODY, "a message")
        kind = request.received.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            got = quoted(kind.decode("latin-1"))
            raise Problem(415, "validation_error", f"content-type must be application/json, got {got}")
        return body

    async def _run(self) -> None:
        if self._running is None:
            from oddsengine_service.mcp.server import manager  # noqa: PLC0415  the SDK takes a second to load

            self._manager = manager(self._api)
            self._running = asyncio.create_task(self._serve())
        await self._ready.wait()

    async def _serve(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._stopping.wait()

    async def stop(self) -> None:
        self._stopping.set()
        if self._running is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._running


def _replay(body: bytes, receive: Any) -> Any:
    """Receive a body that was already read, then the rest."""
    first = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return first.pop() if first else await receive()

    return again


# ---- messages ----


class RpcMessage(msgspec.Struct):
    """A message of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | None = None
    params: dict[str, Any] | None = None


class _Client(msgspec.Struct):
    name: str
    version: str


class _Initialize(msgspec.Struct):
    protocolVersion: str  # noqa: N815  as clients send it
    capabilities: dict[str, Any]
    clientInfo: _Client  # noqa: N815


class _ListRequest(msgspec.Struct):
    cursor: str | None = None


class _Call(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | None = None


_PARAMS = {"initialize": _Initialize, "tools/list": _ListRequest, "tools/call": _Call}
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602


def rejection(body: bytes) -> EncodedResponse | None:
    """The response to a message that is not valid, else None: the SDK would report errors of its own classes."""
    ident, status = None, 400
    try:
        message = msgspec.json.decode(body)
        if isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message):
            return None  # a client's response
        ident = msgspec.convert(message, RpcMessage).id
        params = _PARAMS.get(message["method"])
        if params is None or ident is None:
            return None
        status = 200
        msgspec.convert(message.get("params") or {}, params)
    except msgspec.ValidationError as error:
        code, text = INVALID_REQUEST, mismatch(str(error), message, RpcMessage, "JSON-RPC 2.0 message")
        if status == 200:
            code, method = INVALID_PARAMS, message["method"]
            text = mismatch(str(error), message.get("params") or {}, _PARAMS[method], f"params of {method}")
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        code, text = PARSE_ERROR, f"message is not valid JSON: {error}"
    else:
        return None
    return json_response(status, {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": text}})


class RpcReply(msgspec.Struct):
    """The response to a message."""

    jsonrpc: str
    id: int | str | None
    result: dict[str, Any] | None = None


ENDPOINT = Endpoint(
    "/mcp", no_answer, "Call tools (Model Context Protocol)", "MCP", RpcReply, method="POST", query_key=True,
    body=RpcMessage, cache="never", errors=(406,),
    doc="Streamable HTTP: one JSON-RPC message per POST, a JSON response, no sessions. Each tool call counts as one "
    "request.",
)  # fmt: skip
