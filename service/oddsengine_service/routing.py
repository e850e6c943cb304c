"""The table of all endpoints of the API."""

from oddsengine_service.endpoints import Endpoint
from oddsengine_service.mcp.endpoint import ENDPOINT as MCP
from oddsengine_service.routes import (
    account,
    alerts,
    bets,
    calculators,
    deeplinks,
    events,
    filters,
    futures,
    gamestate,
    health,
    history,
    marks,
    odds,
    opportunities,
    reference,
    splits,
    stream,
)
from oddsengine_service.ws import session

ENDPOINTS: tuple[Endpoint, ...] = (
    *health.endpoints, *reference.endpoints, *events.endpoints, *odds.endpoints, *opportunities.endpoints,
    *splits.endpoints, *account.endpoints, *alerts.endpoints, *bets.endpoints, *calculators.endpoints,
    *filters.endpoints, *marks.endpoints, *history.endpoints, *deeplinks.endpoints, *futures.endpoints,
    *gamestate.endpoints, *stream.endpoints, *session.endpoints, MCP,
)  # fmt: skip
