"""The MCP server, built with the official SDK: lists the tools and executes calls.

A call passes the same checks, limits, caches and threads as a request to its endpoint.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent
from mcp.types import Tool as Described

from oddsengine_service.api import Api
from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.request import BASE
from oddsengine_service.mcp.tools import BY_NAME, TOOLS, Tool, answer, described, query, schema
from oddsengine_service.monitoring import log

_FORWARDED = (b"x-api-key", b"authorization", b"x-forwarded-for", b"host")


def endpoint_of(api: Api, tool: Tool) -> Endpoint:
    if isinstance(tool.endpoint, Endpoint):
        return tool.endpoint
    return api.routes[tool.endpoint].endpoints["GET"]


def build(api: Api, key: bytes | None = None) -> Server[Any]:
    """Build the MCP server over an API; the key of a call is that of its HTTP request, if there is one."""
    listed = [
        Described(
            name=tool.name, description=" ".join((tool.about, *tool.notes)),
            input_schema=schema(tool, endpoint_of(api, tool)), annotations={"readOnlyHint": True},  # type: ignore[arg-type]
        )
        for tool in TOOLS
    ]  # fmt: skip

    async def list_tools(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        scope = context.request.scope if context.request is not None else {"key": key}
        try:
            text, failed = await call(api, params.name, params.arguments or {}, scope), False
        except Problem as problem:
            text, failed = f"{problem.code}: {problem.message}", True
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    return Server("oddsengine", version="1", instructions=described(), on_list_tools=list_tools, on_call_tool=call_tool)


async def call(api: Api, name: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]) -> str:
    """Execute one call. Raises `Problem` if the endpoint rejects the call."""
    tool = BY_NAME.get(name)
    if tool is None:
        raise invalid(f"unknown tool {quoted(name)}; allowed: {', '.join(BY_NAME)}")
    endpoint = endpoint_of(api, tool)
    headers = [pair for pair in scope.get("headers", ()) if pair[0] in _FORWARDED]
    request = api.requests.begin(
        {
            "method": "GET", "path": f"{BASE}/mcp/{name}", "client": scope.get("client"), "headers": headers,
            "query_string": b"",
        }
    )  # fmt: skip
    if (outer := scope.get("state", {}).get("request")) is not None:
        request.signed_in = outer.signed_in
    if key := scope.get("key"):
        request.received[b"x-api-key"] = key
    try:
        api.access.admit(request, endpoint)
        words, row_range = query(tool, endpoint, arguments)
        request.query = urlencode(words).encode()
        response = await api.answer(request, _nothing)
        request.status = response.answer.status
        result = msgspec.json.decode(response.answer.body)
        tier = request.caller.tier
        now = api.node.boards.of(tier).now or api.node.clock.now()
        return answer(tool, result, row_range, now, tier.delay)
    except Problem as problem:
        request.status = problem.status
        raise
    except Exception as error:
        log.failure(request.ident, request.path, error)
        raise Problem(500, "internal_error", "internal error; the call itself is valid") from None
    finally:
        api.requests.end(request)


def manager(api: Api) -> StreamableHTTPSessionManager:
    """The protocol over HTTP: JSON responses, without sessions."""
    return StreamableHTTPSessionManager(build(api), json_response=True, stateless=True)


async def _nothing() -> Any:
    return {"type": "http.request", "body": b"", "more_body": False}
