"""A node's application without feeds, pages and jobs, and the configuration of its server, for benchmarks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from oddsengine_service.api import Api
from oddsengine_service.app import application
from oddsengine_service.http.connections import Connections
from oddsengine_service.http.protocol import connecting_to
from oddsengine_service.http.request import BASE
from oddsengine_service.monitoring.metrics import Metrics
from oddsengine_service.node import Node
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.ws.session import PATHS
from oddsengine_service.ws.ws_protocol import SocketProtocol


class Host:
    """What connections know of the node."""

    origin = ""
    socket_paths: tuple[str, ...] = PATHS
    stream_paths: tuple[str, ...] = (f"{BASE}/stream",)

    def __init__(self) -> None:
        self.connections = Connections(1 << 20)


def api_of(node: Node) -> Api:
    """The API of a node, without a log."""
    return Api(node, ENDPOINTS, Metrics())


def configured(api: Api) -> uvicorn.Config:
    """The configuration of a server on a free port."""
    app = application(api, {}, lifespan=_nothing)
    return uvicorn.Config(
        app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off", backlog=8192,
        http=connecting_to(Host()), ws=SocketProtocol, ws_ping_interval=None, ws_per_message_deflate=False,
    )  # fmt: skip


@asynccontextmanager
async def _nothing(_: Any) -> AsyncIterator[None]:
    yield
