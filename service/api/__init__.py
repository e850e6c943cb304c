"""Every endpoint of the interface."""

from service.api import account, events, health, odds, opportunities, reference, splits
from service.endpoints import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *health.endpoints, *reference.endpoints, *events.endpoints, *odds.endpoints, *opportunities.endpoints,
    *splits.endpoints, *account.endpoints,
)  # fmt: skip
