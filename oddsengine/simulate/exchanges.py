"""The exchanges of a world: an order book for each of their markets of two outcomes, and the traders in it.

Traders know what their exchange believes at a tick of the world, and act at exact times until the next one. A market is
closed, and all its orders cancelled, when it is suspended, when the game starts or ends, and when the ladder of the
event moves to other lines. All intents of a market are kept, so that they can be played again beside orders of ours
(`order_fills`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oddsengine.columns import SECOND, Bools, Floats, Longs
from oddsengine.simulate.order_books import CONTRACT, Action, Intent, MatchingEngine
from oddsengine.simulate.screens import Displayed, Screens
from oddsengine.simulate.simulated_books import Opinions, SimulatedBook
from oddsengine.simulate.simulated_games import LIVE, SimulatedGames
from oddsengine.simulate.simulated_labels import Row
from oddsengine.simulate.simulated_venues import OTHER_VENUE, VENUES, Venue
from oddsengine.simulate.traders import Traders

_LEVELS = 10  # that are shown
_DELAY = (0.05, 0.6)  # s from the reading of a ladder to the batch
_BEFORE = 60.0  # s in which the books that are open at the opening fill
_ABOVE_ALL = 1 << 20  # more than any quarters, which can be negative

MarketKey = tuple[int, int, int, int]  # book, event, ladder, quarters
Ladder = list[tuple[int, int]]  # price and size of levels


class TradedMarket:
    """One market of an exchange: its traders, its order book, and all that has happened in it."""

    def __init__(self, venue: Venue, rng: np.random.Generator) -> None:
        self.venue = venue
        self.bet_delay = int(rng.integers(venue.bet_delay[0], venue.bet_delay[1] + 1))  # s, in play
        self.intents: list[Intent] = []
        self.traders = Traders(venue, rng)
        self._book = MatchingEngine(venue.ticks)
        self._next = 0  # of the intents: the first that the book has not seen

    def reading(self, at: int) -> list[Ladder]:
        """Return what is offered of each outcome at a time, which must not be before the last one asked for."""
        book = self._book
        while self._next < len(self.intents) and self.intents[self._next].at <= at:
            book.apply(self.intents[self._next])
            self._next += 1
        return [book.offers(0, _LEVELS), book.offers(1, _LEVELS)]

    def open(self, at: int) -> None:
        self.intents.append(Intent(at, Action.OPEN))

    def close(self, at: int) -> None:
        self.intents.append(Intent(at, Action.CLOSE))
        self.traders.leave()


class _View(NamedTuple):
    """What the exchanges believe at a tick, by market."""

    quarters: Longs
    live: Bools
    open: Bools
    prob: Floats  # of the first outcome


class Exchanges:
    """All order books of a world; `traded` says which rows of `Screens` they price."""

    def __init__(
        self, simulated_books: Sequence[SimulatedBook], screens: Screens, games: SimulatedGames,
        stream: np.random.SeedSequence,
    ) -> None:  # fmt: skip
        bettable = np.array([each.book.exchange and not each.book.mid_price for each in simulated_books])
        self._venues = [VENUES.get(each.book.id, OTHER_VENUE) for each in simulated_books]
        self.delays = {
            each.book.id: venue.delay
            for each, venue, is_bettable in zip(simulated_books, self._venues, bettable, strict=True)
            if is_bettable
        }
        first = screens.two_way()
        self._first = first[bettable[screens.book[first]]]
        self._rows = np.column_stack((self._first, self._first + 1)).ravel()
        self.traded = np.zeros(screens.book.size, bool)
        self.traded[self._rows] = True
        self._screens, self._games, self._stream = screens, games, stream
        self._rng = np.random.default_rng(stream)
        self.markets: dict[MarketKey, TradedMarket] = {}
        self.live_from: dict[int, int] = {}  # microseconds of world time, by event
        n = self._first.size
        closed = np.zeros(n, bool)
        self._view = _View(np.zeros(n, np.int64), closed, closed, np.full(n, 0.5))
        self._open: list[TradedMarket | None] = [None] * n
        self._time = 0
        self._ladders: list[Ladder] = [[] for _ in range(2 * n)]  # as last read, by row
        self._seen = np.full(n, -np.inf)
        self._changed_at = np.zeros(2 * n)
        self._changed = np.zeros(2 * n, bool)  # since the row was sent
        self._removed = np.zeros(n, bool)  # since the screen was sent in full

    # ---- time ----

    def begin(self, opinions: Opinions, barred: Bools) -> None:
        """Open the markets some time before the opening, so that their books are then full."""
        self._time = -round(_BEFORE * SECOND)
        self._turn(self._look(opinions, barred))
        self._trade(0)
        self._read(0.0)

    def step(self, now: float, opinions: Opinions, barred: Bools) -> None:
        """Let traders act until now, and then know what their exchange believes now.

        `barred` are the events that are suspended, or not quoted yet.
        """
        self._trade(round(now * SECOND))
        self._read(now)
        self._turn(self._look(opinions, barred))

    def _look(self, opinions: Opinions, barred: Bools) -> _View:
        quarters, prob, visible = self._screens.fair(self._rows, opinions)
        event = self._screens.event[self._first]
        return _View(quarters[::2], self._games.status[event] == LIVE, visible[::2] & ~barred[event], prob[::2])

    def _trade(self, until: int) -> None:
        view = self._view
        for market, prob, live in zip(self._open, view.prob.tolist(), view.live.tolist(), strict=True):
            if market is not None:
                market.intents += market.traders.act(self._time, until, prob, live=live)
        self._time = until

    def _read(self, now: float) -> None:
        delay = self._rng.uniform(*_DELAY, self._screens.offsets.size - 1)[self._screens.screen[self._first]]
        self._seen = np.maximum(self._seen, np.round(now - delay, 3))  # quotes have milliseconds
        for at, (market, seen) in enumerate(zip(self._open, self._seen.tolist(), strict=True)):
            if market is not None:
                self._show(at, market.reading(round(seen * SECOND)), now)

    def _turn(self, view: _View) -> None:
        """Open and close markets; what was displayed of those that close leaves the board."""
        was, self._view = self._view, view
        same = (was.quarters == view.quarters) & (was.live == view.live) & (was.open == view.open)
        turned = np.flatnonzero(~same).tolist()
        keys = {at: self._key(at) for at in turned if view.open[at]}
        for at in turned:
            market = self._open[at]
            if market is not None:
                market.close(self._time)
            if view.live[at]:
                self.live_from.setdefault(int(self._screens.event[self._first[at]]), self._time)
            self._open[at] = None
            self._show(at, [[], []], self._time / SECOND)
        for at, key in keys.items():
            if key not in self.markets:
                self.markets[key] = TradedMarket(self._venues[key[0]], self._random(key))
            self.markets[key].open(self._time)
            self._open[at] = self.markets[key]

    def _key(self, at: int) -> MarketKey:
        screens, row = self._screens, self._first[at]
        return int(screens.book[row]), int(screens.event[row]), int(screens.ladder[row]), int(self._view.quarters[at])

    def _random(self, key: MarketKey) -> np.random.Generator:
        """Random numbers of a market, which do not depend on other markets."""
        *places, quarters = key
        own = (*self._stream.spawn_key, *places, quarters + _ABOVE_ALL)
        return np.random.default_rng(np.random.SeedSequence(self._stream.entropy, spawn_key=own))

    def _show(self, at: int, ladders: list[Ladder], now: float) -> None:
        for row, ladder in enumerate(ladders, 2 * at):
            was = self._ladders[row]
            if ladder != was:
                self._ladders[row], self._changed[row] = ladder, True
                self._removed[at] |= not ladder
                if ladder[:1] != was[:1]:
                    self._changed_at[row] = now

    # ---- what is displayed ----

    def displayed(self) -> Displayed:
        """Return what all books show: the order books' prices in place of those that the screens have."""
        displayed = self._screens.displayed()
        rows, view = self._rows, self._view
        ticks = [self._venues[book].ticks for book in self._screens.book[rows].tolist()]
        displayed.shown[rows] = self._displayed()
        displayed.odds[rows] = [
            each / ladder[0][0] if ladder else np.nan for each, ladder in zip(ticks, self._ladders, strict=True)
        ]
        displayed.active[rows], displayed.changed_at[rows] = True, self._changed_at
        displayed.live[rows], displayed.quarters[rows] = np.repeat(view.live, 2), np.repeat(view.quarters, 2)
        displayed.seen[rows] = np.repeat(self._seen, 2)
        return displayed

    def _displayed(self) -> Bools:
        return np.array([bool(ladder) for ladder in self._ladders], bool)

    def send(self, renewed: Longs, whole: Longs, up: Bools) -> tuple[Longs, Longs]:
        """Return the rows to send, and the screens that must be sent in full because prices have left them.

        `renewed` and `whole` are screens that are sent anyway, and in full; `up` says which screens can be sent.
        """
        screen = self._screens.screen[self._first]
        left = np.setdiff1d(screen[self._removed & up[screen]], whole)
        full = np.isin(screen, np.concatenate((left, whole)))
        self._removed &= ~full
        sent = np.repeat(full | np.isin(screen, renewed), 2) | (self._changed & np.repeat(up[screen], 2))
        self._changed &= ~sent
        sent &= self._displayed()
        return self._rows[sent], left

    def add_depth(self, rows: Longs, quotes: Sequence[Row]) -> None:
        """Add the levels of some rows of order books to their quotes, and what the venue accepts."""
        for at, quote in zip(np.searchsorted(self._rows, rows).tolist(), quotes, strict=True):
            market = self._open[at // 2]
            if market is not None:
                quote.update(_depth(self._ladders[at], market, live=quote["is_live"]))


def _depth(ladder: Ladder, market: TradedMarket, *, live: bool) -> Row:
    ticks = market.venue.ticks
    levels = [
        {"odds_decimal": ticks / price, "stake": price * size / (ticks * CONTRACT)} for price, size in ladder
    ]  # fmt: skip
    more: Row = {"levels": levels, "max_bet": levels[0]["stake"]}
    if market.venue.whole:
        more["min_bet"] = more["bet_step"] = ladder[0][0] / ticks
    if live:
        more["bet_delay"] = float(market.bet_delay)
    return more
