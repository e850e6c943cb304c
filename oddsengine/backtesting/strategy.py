"""Strategies: which +EV prices, arbitrages and low holds to bet on, and the stakes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import check_bool, check_number, excerpt
from oddsengine.columns import Floats
from oddsengine.detection.book_names import absent, by_book, refused
from oddsengine.detection.kinds import check_thresholds
from oddsengine.detection.model_input import IntoModel
from oddsengine.detection.question import Sharp
from oddsengine.maths.devig import Method
from oddsengine.staking.stakes import kelly_portfolio

_OPTIONAL = {
    "max_ev": -np.inf, "max_odds": 1.0, "max_hours": 0.0, "max_bet": 0.0, "max_event": 0.0, "max_daily_stake": 0.0,
    "max_rejections": 1.0, "max_daily_loss": 0.0,
}  # fmt: skip
"""Limits of a `Strategy` that may be None, and their minimum."""

_THRESHOLDS = {"ev": "min_ev", "arbitrage": "min_profit", "low_hold": "max_hold"}
"""The kinds that can be bet on, and the threshold of each."""
_PER_BOOK = "max_daily_stake_per_book"

Staking = Literal["flat", "kelly", "portfolio"]
PerBook = float | Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A betting rule: which +EV prices, arbitrages and low holds to bet on, and the stakes.

    Subclasses can override `choose` and `stakes`, and for arbitrages and low holds `choose_arbitrages`,
    `choose_low_holds` and `total_stake`.

    Parameters
    ----------
    books, sharp, method, commission, model
        As for `Engine.view`: EV is measured against the fair price at the close unless `sharp`, another `method` or a
        `model` is given.
    kinds
        What to bet on: some of ev, arbitrage, low_hold.
    min_ev, max_ev
        Of +EV prices: expected value in percent.
    min_odds, max_odds
        Of +EV prices: decimal odds.
    min_profit
        Of arbitrages: profit in percent.
    max_hold
        Of low holds: hold in percent.
    different_terms
        Whether to take arbitrages and low holds whose legs are known to settle differently (docs/terms.md), also if
        that may lose.
    sports, markets
        Ids of sports and market types; None is all.
    live
        Whether to bet on live prices.
    max_hours
        Maximum hours before the start.
    staking
        "flat": `size` of the initial bankroll on each. "kelly": `size` of the Kelly stake. "portfolio": `size` of the
        growth-optimal stakes on simultaneous bets (`kelly_portfolio`). All legs of an arbitrage or low hold together:
        `size` of the initial bankroll with "flat", else of the current one.
    size
        See `staking`.
    max_bet, max_event
        Maximum stake on a bet, which a leg is too, and on an event; the maximum bet of a price applies as well.
    max_daily_stake, max_daily_stake_per_book
        Maximum of all stakes of a UTC day, and of those at one book, which can be a mapping by book. Orders that are
        not answered count in whole.
    max_rejections, max_daily_loss
        Halt after this many orders in a row were rejected or could not be sent, and when the bets that are settled on a
        UTC day have lost so much.
    step
        Stakes are whole multiples of this.

    Examples
    --------
    >>> Strategy(min_ev=3.0, books=("fanduel", "betmgm"), staking="flat", size=0.01).books
    ('fanduel', 'betmgm')
    >>> class Favourites(Strategy):
    ...     def choose(self, rows):
    ...         return rows.filter(pl.col("odds_decimal") < 2.0)
    >>> Favourites(min_ev=3.0).choose(pl.DataFrame({"odds_decimal": [1.8, 2.4]})).height
    1
    """

    books: tuple[str, ...] | None = None
    sharp: Sharp = None
    method: Method | None = None
    commission: Mapping[str, float] | None = None
    model: IntoModel | None = field(default=None, compare=False)
    kinds: tuple[str, ...] = ("ev",)
    min_ev: float = 2.0
    max_ev: float | None = None
    min_odds: float = 1.0
    max_odds: float | None = None
    min_profit: float = 0.5
    max_hold: float = 2.0
    different_terms: bool = False
    sports: tuple[str, ...] | None = None
    markets: tuple[str, ...] | None = None
    live: bool = False
    max_hours: float | None = None
    staking: Staking = "kelly"
    size: float = 0.25
    max_bet: float | None = None
    max_event: float | None = None
    max_daily_stake: float | None = None
    max_daily_stake_per_book: PerBook | None = None
    max_rejections: float | None = None
    max_daily_loss: float | None = None
    step: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.staking, str) or self.staking not in get_args(Staking):
            raise ValueError(f"staking must be flat, kelly or portfolio, got {excerpt(self.staking)}")
        check_number("size", self.size, above=0.0, most=1.0)
        check_number("step", self.step, above=0.0)
        check_number("min_odds", self.min_odds)
        _check_names("kinds", self.kinds)
        if not self.kinds or not set(self.kinds) <= set(_THRESHOLDS):
            raise ValueError(f"kinds must be a list of {', '.join(_THRESHOLDS)}, got {excerpt(self.kinds)}")
        for name in _THRESHOLDS.values():
            check_number(name, getattr(self, name))
        check_thresholds(self.view_thresholds())
        for name, least in _OPTIONAL.items():
            check_number(name, getattr(self, name), least, optional=True)
        for name, limit in self._venue_limits().items():
            check_number(f"{_PER_BOOK} of {name}" if name else _PER_BOOK, limit, 0.0, optional=not name)
        check_bool("live", self.live)
        check_bool("different_terms", self.different_terms)
        for name in ("books", "sports", "markets"):
            _check_names(name, getattr(self, name))
        for name in self.sports or ():
            if name not in catalog.sports():
                raise ValueError(f"sports must be among {', '.join(catalog.sports())}, got {excerpt(name)}")

    def choose(self, ev: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a frame of +EV prices (`EV_SCHEMA`) to bet on.

        These are all +EV prices of the games in which one is new or has changed. Bets of one moment are staked by EV,
        whatever the order of the rows.
        """
        keep = self._is_eligible() & (pl.col("net_odds") >= self.min_odds)
        if self.max_ev is not None:
            keep &= pl.col("ev_percentage") <= self.max_ev
        if self.max_odds is not None:
            keep &= pl.col("net_odds") <= self.max_odds
        return ev.filter(keep)

    def choose_arbitrages(self, arbitrages: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a frame of arbitrages (`ARBITRAGE_SCHEMA`) to bet on.

        These are all arbitrages of the games in which something is new or has changed. Those of one moment are placed
        by profit, before +EV prices.
        """
        return arbitrages.filter(self._is_eligible() & self._settles_alike())

    def choose_low_holds(self, low_holds: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a frame of low holds (`LOW_HOLD_SCHEMA`) to bet on; they are placed after +EV prices."""
        return low_holds.filter(self._is_eligible() & self._settles_alike())

    def _settles_alike(self) -> pl.Expr:
        """Whether legs are not known to settle differently with a loss, or one that nobody knows."""
        if self.different_terms:
            return pl.lit(value=True)
        return ~pl.col("terms_differ") | (pl.col("terms_worst_case") >= 0.0).fill_null(value=False)

    def _is_eligible(self) -> pl.Expr:
        """Whether an opportunity of any kind is one of those that the strategy looks at."""
        keep = ~pl.col("unconfirmed")
        if not self.live:
            keep &= ~pl.col("is_live")
        if self.sports is not None:
            keep &= pl.col("sport").is_in(self.sports)
        if self.markets is not None:
            keep &= pl.col("market_type").is_in(self.markets)
        if self.max_hours is not None:
            keep &= (pl.col("event_start_time") - pl.col("detected_at")).dt.total_seconds() <= self.max_hours * 3600.0
        return keep

    def view_thresholds(self) -> dict[str, Any]:
        """Return the thresholds of its view, those of its kinds."""
        return {name: getattr(self, name) for kind, name in _THRESHOLDS.items() if kind in self.kinds}

    def most_cost(self, kind: str) -> float:
        """Return the most that a unit of payout of all legs of an opportunity may cost, after rounding."""
        if kind == "low_hold":
            return 1.0 + self.max_hold / 100.0
        return 1.0 / (1.0 + min(self.min_profit, 0.0) / 100.0)

    def venue_limit(self, book: str) -> float | None:
        """Return the most that may be staked at a book on a UTC day."""
        limits = self._venue_limits()
        return limits.get("") if "" in limits else limits.get(catalog.book(book).id)

    def check_books(self, books: Iterable[str]) -> None:
        """Raise `ValueError` if a limit is of a book that is neither among some books nor in the catalog."""
        limits = [book for book in self._venue_limits() if book]
        if strange := absent(limits, [*books, *catalog.books()]):
            raise refused(_PER_BOOK, strange, books)

    def _venue_limits(self) -> dict[str, float | None]:
        """Limits of a day by id of the book; that of all by an empty text."""
        given = self.max_daily_stake_per_book
        if not isinstance(given, Mapping):
            return {"": given}
        return {**by_book(_PER_BOOK, given)}

    def stakes(self, chosen: pl.DataFrame, bankroll: float, start: float) -> Floats:
        """Return the stake on each chosen row, before limits and steps, given the current and initial bankroll.

        Parameters
        ----------
        chosen
            The rows that `choose` returned.
        bankroll
            What the bankroll is now.
        start
            What it was at first.
        """
        if self.staking == "flat":
            return np.full(chosen.height, self.size * start)
        if self.staking == "portfolio":
            portfolio = kelly_portfolio(chosen, bankroll=bankroll, fraction=self.size, max_event=self.max_event)
            return portfolio.bets["stake"].to_numpy()
        return chosen["kelly_percent"].to_numpy() * (self.size * bankroll)

    def total_stake(self, bankroll: float, start: float) -> float:
        """Return the stake on all legs of an arbitrage or low hold, before limits and steps; see `stakes`."""
        return self.size * (start if self.staking == "flat" else bankroll)


def _check_names(name: str, given: Any) -> None:
    """Raise if a parameter is neither None nor a list of texts."""
    if given is None:
        return
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list of names, got {excerpt(given)}")
    for one in given:
        if not isinstance(one, str):
            raise ValueError(f"{name} must be a list of names, got {excerpt(one)} in it")
