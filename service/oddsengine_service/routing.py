"""The table of all endpoints of the API, and how paths lead to them."""

from collections.abc import Mapping
from urllib.parse import unquote

from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.request import Request
from oddsengine_service.mcp.endpoint import ENDPOINT as MCP
from oddsengine_service.routes import (
    account,
    alert_routes,
    backup_routes,
    bet_routes,
    calculator_routes,
    catalog_routes,
    deeplinks,
    event_routes,
    feed_routes,
    filter_routes,
    futures_routes,
    gamestate_routes,
    health_routes,
    history_routes,
    marks,
    mover_routes,
    odds_routes,
    opportunities,
    root_route,
    screen_routes,
    split_routes,
    stream,
    truth_routes,
)
from oddsengine_service.v4 import v4_endpoints as v4
from oddsengine_service.ws import session

ENDPOINTS: tuple[Endpoint, ...] = (
    *root_route.endpoints, *health_routes.endpoints, *feed_routes.endpoints, *catalog_routes.endpoints,
    *event_routes.endpoints, *odds_routes.endpoints,
    *screen_routes.endpoints,
    *mover_routes.endpoints, *opportunities.endpoints, *split_routes.endpoints, *account.endpoints,
    *backup_routes.endpoints,
    *alert_routes.endpoints, *bet_routes.endpoints, *calculator_routes.endpoints, *filter_routes.endpoints,
    *marks.endpoints,
    *history_routes.endpoints, *truth_routes.endpoints, *deeplinks.endpoints, *futures_routes.endpoints,
    *gamestate_routes.endpoints,
    *stream.endpoints,
    *session.endpoints, MCP, *v4.endpoints,
)  # fmt: skip

_SLASH = "\ufdd0"  # replaces an escaped / while a path is routed; never part of a text


class ExactRoutes(BaseRoute):
    """Applications by path; one look-up instead of a pattern for each."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = dict(apps)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is for one of the paths."""
        app = self._apps.get(_routed(scope["state"]["request"])) if scope["type"] == "http" else None
        return (Match.NONE, {}) if app is None else (Match.FULL, {"endpoint": app, "path_params": {}})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that matches."""
        await scope["endpoint"](scope, receive, send)


class PathRoute(Route):
    """A route with names in its path, in which an escaped slash is part of a name."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is for this path."""
        if scope["type"] != "http":
            return Match.NONE, {}
        request: Request = scope["state"]["request"]
        match, child = super().matches({"type": "http", "method": request.method, "path": _routed(request)})
        if match is Match.FULL:
            child["path_params"] = {name: each.replace(_SLASH, "/") for name, each in child["path_params"].items()}
        return match, child


def _routed(request: Request) -> str:
    """The path, in which an escaped slash does not count as one."""
    if b"%2" not in request.raw:
        return request.whole
    return unquote(request.raw.decode("latin-1").replace("%2F", _SLASH).replace("%2f", _SLASH))
