"""The Starlette application of a node: its routes, its middleware and its lifespan."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as AnyRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import ASGIApp

from oddsengine_service.api import Api
from oddsengine_service.errors import no_such_path
from oddsengine_service.http.cors import Cors, Origins
from oddsengine_service.http.middleware import Errors, Requests, ResponseCache
from oddsengine_service.http.request import BASE, V4, Request
from oddsengine_service.routing import ExactRoutes, PathRoute
from oddsengine_service.ws.session import PATHS, Sockets

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def application(
    api: Api, others: Mapping[str, ASGIApp], *, lifespan: Lifespan, origins: tuple[str, ...] = (), address: str = ""
) -> Starlette:
    """Build the application.

    Parameters
    ----------
    api
        The node's API.
    others
        What is served besides, by path: pages and tools.
    lifespan
        Runs the node.
    origins
        Origins of the web pages that may call the API from a browser.
    address
        The node's address for its clients, if it is known.
    """
    app = Starlette(
        routes=routes(api, others, Origins(origins, address)),
        middleware=[
            Middleware(Requests, api.requests, api.authenticate),
            *([Middleware(Cors, origins, address)] if origins else []),
            Middleware(Errors, address),
            Middleware(ResponseCache, api.cache),
        ],
        exception_handlers={404: _no_such_path},
        lifespan=lifespan,
    )
    app.state.api = api
    app.router.redirect_slashes = False  # redirects would use the Host header of the request
    return app


def routes(api: Api, others: Mapping[str, ASGIApp], origins: Origins) -> list[BaseRoute]:
    """The routes: one for all exact paths, one for each path with names in it, and the WebSocket."""
    every = {path if path.startswith(f"{V4}/") else BASE + path: methods for path, methods in api.routes.items()}
    exact = {path: methods for path, methods in every.items() if "{" not in path}
    without_upgrade = dict.fromkeys(PATHS, api.routes["/ws"])
    return [
        ExactRoutes({**exact, **without_upgrade, **others}),
        *(PathRoute(path, methods) for path, methods in every.items() if "{" in path),
        *(WebSocketRoute(path, Sockets(api, origins)) for path in PATHS),
    ]


async def _no_such_path(any_request: AnyRequest, _: Exception) -> Response:
    request: Request = any_request.scope["state"]["request"]
    if request.is_api:
        any_request.app.state.api.access.unrouted(request)
    raise no_such_path(request.whole, "/openapi.json" if request.is_api else "/docs")
