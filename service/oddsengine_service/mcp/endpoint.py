"""The endpoint `/mcp`: one message of the protocol per POST, limited in size and number before the SDK reads it.

A tool call counts as one request of its key. Other messages are only limited against floods.
"""

import asyncio
import contextlib
from typing import Any, Literal

import msgspec

from oddsengine_service.api import Api
from oddsengine_service.errors import Problem, quoted, wrong_method
from oddsengine_service.http.access import limited
from oddsengine_service.http.cors import Origins
from oddsengine_service.http.endpoints import Endpoint, no_answer
from oddsengine_service.http.request import BASE, Request, read_body

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
            from oddsengine_service.mcp.mcp_server import manager  # noqa: PLC0415  the SDK takes a second to load

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


# ---- messages, as the API's description has them; the SDK checks them ----


class RpcMessage(msgspec.Struct):
    """A message of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | None = None
    params: dict[str, Any] | None = None


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
