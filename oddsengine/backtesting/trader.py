"""Paper trading: a strategy on a live engine."""

import polars as pl

from oddsengine.backtesting.accounts import Account, Latency, Offer, Order
from oddsengine.backtesting.choices import Choices
from oddsengine.backtesting.strategy import Strategy
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View


class Trader:
    """Paper trading: a strategy on an engine.

    Parameters
    ----------
    engine
        The engine; call `follow` with every update.
    strategy
        The betting rule.
    bankroll
        Initial bankroll.
    latency_s
        Seconds from a decision to the book's response. In play the price's `bet_delay` is added.
    tolerance
        Fraction by which the odds may fall in the meantime: with 0.01, 1.98 is accepted for 2.00.
    settle_hours
        Hours after the start at which the stake is released, with its profit if `settle` was called with the score.
    sparse
        Whether snapshots of an event are more than half an hour apart: orders whose price is not seen again are filled
        at the odds of the decision.

    Examples
    --------
    >>> from oddsengine import Engine, World
    >>> world, engine = World(7, events=6), Engine()
    >>> trader = Trader(engine, Strategy(min_ev=1.0, live=True), bankroll=1000.0, latency_s=2.0)
    >>> for batch in world.run(10):
    ...     _ = trader.follow(engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events))
    >>> "filled" in set(trader.trades()["status"])
    True
    """

    def __init__(
        self, engine: Engine, strategy: Strategy, *, bankroll: float = 1000.0, latency_s: float = 5.0,
        tolerance: float = 0.0, settle_hours: float = 3.0, sparse: bool = False,
    ) -> None:  # fmt: skip
        self._account = Account(
            strategy, bankroll=bankroll, latency=Latency.of(latency_s), tolerance=tolerance, settle_hours=settle_hours,
            sparse=sparse,
        )  # fmt: skip
        self._choices = Choices(engine, strategy)

    @property
    def view(self) -> View:
        """The view of the engine that it follows."""
        return self._choices.view

    @property
    def cash(self) -> float:
        """The bankroll less open stakes."""
        return self._account.cash

    def follow(self, update: Update) -> int:
        """Process an update: fill due orders, then decide. Returns the number of new orders."""
        return self._account.follow(update.now, self._choices.after(update), self._offers)

    def trades(self) -> pl.DataFrame:
        """Return all orders in order of decision, in `TRADES_SCHEMA`."""
        return self._account.trades()

    def settle(self, event_id: str, home_score: float, away_score: float) -> None:
        """Record a final score; bets on the event are paid when they are due."""
        self._account.settle(event_id, home_score, away_score)

    def finish(self) -> None:
        """End a sparse history: orders that no update answered are filled, as `unobserved`."""
        self._account.finish()

    def _offers(self, due: list[Order]) -> list[Offer | None]:
        return self._choices.offers([order.row["odds_id"] for order in due])
