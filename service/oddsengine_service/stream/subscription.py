"""What a client subscribes to."""

from hashlib import blake2b
from typing import Any, NamedTuple

from oddsengine.query import RowFilter
from oddsengine_service.stream.group_opportunities import OpportunityFilter
from oddsengine_service.stream.moves import RowForm
from oddsengine_service.stream.stream_events import SSE, Wire


class Subscription(NamedTuple):
    """Contents of a subscription: prices, opportunities, games; None for those not included."""

    prices: RowFilter | None
    opportunities: OpportunityFilter | None
    games: RowFilter | None
    form: RowForm = RowForm()
    seen: bool = False  # for a node that passes prices on
    wire: Wire = SSE
    since: int | None = None  # send changes since this update instead of a snapshot

    @property
    def hash(self) -> str:
        """A hash of the filters, equal in every process."""
        filters = [_plain(value) for part in (self.prices, self.opportunities, self.games) for value in part or (None,)]
        return blake2b(repr((filters, self.form, self.seen)).encode(), digest_size=6).hexdigest()


def _plain(value: Any) -> Any:
    """A value of a filter with the same text in every process."""
    if isinstance(value, frozenset):
        return sorted(value)
    return True if callable(value) else value
