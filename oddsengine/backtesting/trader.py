"""Trading: a strategy on a live engine, with paper money or at a venue."""

from collections.abc import Mapping

import polars as pl

from oddsengine.backtesting.accounts import BY_HAND, Account
from oddsengine.backtesting.choices import Choices
from oddsengine.backtesting.strategy import Strategy
from oddsengine.bounds import check_bool, check_number, excerpt
from oddsengine.execution.paper import Latency, PaperVenue
from oddsengine.execution.venues import BetVenue
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View


class Trader:
    """Trading: a strategy on an engine, whose orders are filled on paper, or by a venue.

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
    rates
        Worth of currencies in that of the bankroll, ``{"USD": 1, "GBP": 1.27}``. Sizes in another one are an error.
    venue
        Takes the orders and answers them; `latency_s` and `sparse` do not apply then. None: the board answers them.

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
        rates: Mapping[str, float] | None = None, venue: BetVenue | None = None,
    ) -> None:  # fmt: skip
        check_bool("sparse", sparse)
        strategy.check_books(engine.books)
        latency, self._is_paper = Latency.of(latency_s), venue is None
        self._choices = Choices(engine, strategy, latency if venue is None else None, rates)
        self._paper = PaperVenue(self._choices.looks, latency, sparse=sparse)
        self._account = Account(
            strategy, self._paper if venue is None else venue, bankroll=bankroll, tolerance=tolerance,
            settle_hours=settle_hours,
        )  # fmt: skip

    def __repr__(self) -> str:
        """Its money, and why it has halted."""
        return f"<Trader: {self._account!r}>"

    @property
    def view(self) -> View:
        """The view of the engine that it follows."""
        return self._choices.view

    @property
    def cash(self) -> float:
        """The bankroll less open stakes, and those of orders that are not answered."""
        return self._account.cash

    @property
    def halted(self) -> str | None:
        """Why no orders are placed; None: they are."""
        return self._account.halted

    def halt(self, reason: str = BY_HAND) -> None:
        """Place no more orders, and cancel those that are not answered, until `resume`; legs that wait are not sent."""
        self._account.halt(reason)

    def resume(self) -> None:
        """Place orders again; rejections and the loss of the day are counted anew."""
        self._account.resume()

    def follow(self, update: Update) -> int:
        """Process an update: fill due orders, then decide. Returns the number of new orders."""
        chosen = self._choices.after(update)
        if self._is_paper:
            self._paper.follow(update.now)
        placed = self._account.follow(update.now, *chosen)
        self._choices.looks.clear()
        return placed

    def trades(self) -> pl.DataFrame:
        """Return all orders in order of decision, in `TRADES_SCHEMA`."""
        return self._account.trades()

    def positions(self) -> pl.DataFrame:
        """Return all arbitrages and low holds in order of decision, in `POSITIONS_SCHEMA`."""
        return self._account.positions()

    def settle(self, event_id: str, home_score: float, away_score: float) -> None:
        """Record a final score; bets on the event are paid when they are due, or at the next update if they were."""
        if not isinstance(event_id, str):
            raise ValueError(f"event_id must be a text, got {excerpt(event_id)}")
        check_number("home_score", home_score, 0.0)
        check_number("away_score", away_score, 0.0)
        self._account.settle(event_id, home_score, away_score)

    def finish(self) -> None:
        """End a sparse history: orders that no update answered are filled, as `unobserved`."""
        if self._is_paper:
            self._paper.finish()
            self._account.receive()
