"""The tools for one user over standard input and output, from a table of prices or a remote node."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from oddsengine.live.engine import Engine
from oddsengine_service.accounts.keys import KeyStore
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.api import Api
from oddsengine_service.http.request import BASE
from oddsengine_service.mcp.mcp_server import build
from oddsengine_service.monitoring import log
from oddsengine_service.monitoring.metrics import Metrics
from oddsengine_service.node import Node
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.tiers import DEMO

_PATIENCE_S = 30.0


def serve_file(read: Callable[[], Any]) -> None:
    """Serve a table of prices until the client disconnects; `read` returns the table."""
    with ExitStack() as stack:
        stack.enter_context(log.written(quiet=True))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="oddsengine-mcp-", ignore_cleanup_errors=True)))
        keys = KeyStore(folder / "keys.sqlite", folder / "pepper", demo=True)
        stack.callback(keys.close)
        node = Node(Engine(), keys, Limits(), demo=True)
        stack.callback(node.close)
        table = read()
        node.warm()
        node.write(node.step, table, table["last_seen_at"].max()).result()
        interface = Api(node, ENDPOINTS, Metrics())
        asyncio.run(_serve(build(interface, key=f"{DEMO}enterprise".encode())))


def serve_node(address: str, key: str) -> None:
    """Forward calls to a node until the client disconnects."""
    asyncio.run(_forward(address.rstrip("/"), key))


async def _forward(address: str, key: str) -> None:
    address = address if address.endswith("/mcp") else f"{address.removesuffix(BASE)}{BASE}/mcp"
    headers = {"X-API-Key": key} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_PATIENCE_S) as http,
        Client(streamable_http_client(address, http_client=http)) as node,
    ):

        async def list_tools(_: Any, __: Any) -> Any:
            return await node.list_tools()

        async def call_tool(_: Any, params: Any) -> Any:
            return await node.call_tool(params.name, params.arguments or {})

        await _serve(
            Server(
                "oddsengine", version="1", instructions=node.instructions, on_list_tools=list_tools,
                on_call_tool=call_tool,
            )
        )  # fmt: skip


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
