"""How simulated exchanges take orders: steps of prices, whole contracts, and how long an order is on its way."""

from typing import NamedTuple


class Venue(NamedTuple):
    """The rules of one exchange, rounded from what the real one publishes; the delays of its lines are invented."""

    ticks: int  # steps of a price between 0 and 1
    whole: bool  # contracts are sold whole
    busy: float  # multiplier of the rates of its traders
    delay: tuple[float, float]  # s: the least and the most that an order is on its way
    bet_delay: tuple[int, int] = (0, 0)  # s: the same, of a market's delay of bets in play


VENUES = {
    "betfair_exchange": Venue(200, whole=False, busy=1.3, delay=(0.1, 0.6), bet_delay=(5, 8)),
    "matchbook": Venue(200, whole=False, busy=0.6, delay=(0.1, 0.8), bet_delay=(3, 5)),
    "smarkets": Venue(200, whole=False, busy=0.8, delay=(0.1, 0.8), bet_delay=(3, 5)),
    "kalshi": Venue(100, whole=True, busy=1.2, delay=(0.05, 0.5)),
    "polymarket": Venue(100, whole=False, busy=1.0, delay=(0.2, 1.5), bet_delay=(3, 3)),
    "novig": Venue(200, whole=False, busy=0.8, delay=(0.1, 0.8)),
}
OTHER_VENUE = Venue(100, whole=False, busy=0.7, delay=(0.2, 1.2), bet_delay=(2, 5))
"""An exchange that is not in `VENUES`."""
