"""The simulated books: opinions, margins and price formats.

A book's opinion of a ladder is the true logit at each line plus one number,

    lag + noise + habit:   news that has not reached it yet, decaying at its own pace; a slowly wandering opinion of its
                           own (Ornstein-Uhlenbeck); its bias to home sides, overs and favourites

so its ladders are always consistent. Books of one provider share the number. The margin m is applied as a power: each
probability p of a market becomes p^k with sum p^k = 1 + m, which the method `power` inverts. A book's character depends
only on its name, not on the seed.

**Slow books.** In a world where books follow each other, half of the news that a book receives is the mean of all
opinions, and news arrives later the earlier it is before the game. A few books, different for each event, receive news
first and on their own. A price is kept until the opinion behind it has moved by a step, and own opinions are small for
most books and large for some; sharp books and exchanges have smaller ones, and move in smaller steps. The mean of the
market then continues in the direction of its last moves, held back by slow books, and an outlier is right about as
often as at US books. `tests/simulate/test_simulated_books.py` compares the figures.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.columns import Floats, Longs
from oddsengine.identity.traits import book_fees
from oddsengine.maths.odds import charged
from oddsengine.simulate.simulated_leagues import FIRST_PROP, HOME_TOTAL, LADDERS, MONEYLINE, SPREAD

DEFAULT_BOOKS = (
    "pinnacle", "circa", "bookmaker", "betonline", "betfair_exchange", "matchbook", "novig", "draftkings", "fanduel",
    "betmgm", "caesars", "bet365", "espnbet", "fanatics", "hardrock", "betrivers", "unibet", "bovada", "mybookie",
    "williamhill",
)  # fmt: skip
"""Sharp books, exchanges and soft books, two of which share a provider."""

_FULL_SHARP = "pinnacle"  # quotes everything; other sharp books only full-game markets
_NEWTON = 3
_SIDE_MARKETS = 1.35  # margin of team totals, parts and props, as a multiple of that of main markets
_LIVE = 1.25  # the same in play
_WANDER = 900.0  # s: time constant of a book's own opinion
_STRIDE = 10.0  # s: step of that process
_MOST_LAG = 0.6  # logit
_TINY = 1e-12
_TICKS = ((150.0, 1.0), (300.0, 5.0), (1000.0, 10.0), (np.inf, 50.0))  # rounding step up to this American price

# Where books follow each other.
_SLOW_NOISE, _LEAST_NOISE = 0.3, 0.03  # factor of a book's usual noise, and its minimum
_SLOW_LAG = 40.0  # s, times `slow`: lag of a book
_SLOW_WANDER = 21_600.0  # s: as `_WANDER`
_HERD = 0.5  # share of the news that is the mean of all books
_FIRST, _FIRST_PACE = 0.15, 10.0  # share of books that receive news of an event first, and how much faster
_USUAL_LEFT = 10_800.0  # s before the start with the usual lags; half of them later, up to twice before
_STEP = 0.04  # logit: as `SimulatedBook.step`
_EXACT_STEP = 0.01  # the same at sharp books and exchanges


class SimulatedBook(NamedTuple):
    """Parameters of one book; probabilities in logits, times in seconds."""

    book: catalog.Book
    margin: float
    noise: float
    lag: float
    live_lag: float
    home: float
    over: float
    favourite: float
    poll: float  # interval between updates of a game's screen
    live_poll: float
    digits: int  # digits of decimal odds; 0: American
    depth: tuple[int, ...]  # by ladder: lines on each side of the centre; -1: not quoted
    live: bool
    generic: bool  # uses generic market names and short selections
    links: bool
    dates: bool  # sends the time at which a price changed
    step: float = 0.0  # logit: before a game a price is kept until the opinion differs by more

    def straying(self, much: float, hold: float = 1.0, slow: float = 1.0) -> "SimulatedBook":
        """Return the book with scaled errors; for an exchange, with another margin."""
        noise, lag, step = self.noise, self.lag, 0.0
        if slow > 1.0:
            exact = catalog.fair_table().sharps.get(self.book.id, float(self.book.sharp or self.book.exchange)) > 0.0
            noise, lag = _SLOW_NOISE * (noise if exact else max(noise, _LEAST_NOISE)), slow * _SLOW_LAG
            step = _EXACT_STEP if exact else _STEP
        return self._replace(
            margin=self.margin * (hold if self.book.exchange else 1.0), step=step,
            noise=noise * much, lag=lag * much, live_lag=self.live_lag * much, home=self.home * much,
            over=self.over * much, favourite=self.favourite * much,
        )  # fmt: skip


def simulated_book(name: str) -> SimulatedBook:
    """Return the parameters of a book, drawn from its name or its provider's name."""
    book = catalog.book(name)
    rng = np.random.default_rng(crc32((book.feed or book.id).encode()))
    u = rng.random(17)
    depth = [2] * HOME_TOTAL + [0, 0, 1] + [0] * (LADDERS - FIRST_PROP)
    if book.sharp or book.exchange:
        if book.id != _FULL_SHARP:
            depth[HOME_TOTAL:] = [-1] * (LADDERS - HOME_TOTAL)
        margin, noise, lag = (0.006 + 0.006 * u[0], 0.006, 4.0) if book.exchange else (0.022 + 0.01 * u[0], 0.004, 1.5)
        tastes, digits = (0.0, 0.0, 0.0), 2 if book.exchange else 3 if u[4] < 0.5 else 0
        if book.id == _FULL_SHARP:
            digits = 3
        live_lag, poll, live = 1.0, 5.0, True
    else:
        depth[SPREAD:HOME_TOTAL] = [1 + int(u[8] < 0.5)] * (HOME_TOTAL - SPREAD)
        depth[HOME_TOTAL:FIRST_PROP] = int(u[15] < 0.4), int(u[15] < 0.4), int(u[9] < 0.7)
        margin, noise, lag = 0.036 + 0.016 * u[0], 0.03 + 0.03 * u[1], 15.0 + 75.0 * u[2] ** 2
        tastes = 0.024 * (u[5] - 0.4), 0.024 * (u[6] - 0.4), 0.03 * (u[7] - 0.4)
        live_lag, poll, live, digits = 1.5 + 3.0 * u[3], 15.0 + 30.0 * u[10], u[11] < 0.85, 0 if u[4] < 0.6 else 2
    depth[MONEYLINE] = 0
    return SimulatedBook(
        book, margin, noise, lag, live_lag, *tastes, poll, 1.0 + u[12], digits, tuple(depth), bool(live),
        bool(u[13] < 0.3), bool(u[14] < 0.4), bool(u[16] < 0.5),
    )  # fmt: skip


class Opinions:
    """Error of each book on each ladder of each event, in logits."""

    def __init__(
        self, simulated_books: Sequence[SimulatedBook], events: int, rng: np.random.Generator, *, follow: bool = False
    ) -> None:
        self._follow = follow
        providers: dict[str, int] = {}
        self._voice = np.array([providers.setdefault(d.book.provider, len(providers)) for d in simulated_books])
        first = [int(np.flatnonzero(self._voice == v)[0]) for v in range(len(providers))]
        self._simulated_books = [simulated_books[at] for at in first]
        self._rng = rng
        self._sd = np.array([d.noise for d in self._simulated_books])[:, None, None]
        self._noise = rng.standard_normal((len(providers), events, LADDERS)) * self._sd
        self._lag = np.zeros((len(providers), events, LADDERS))
        self._step = np.array([d.step for d in self._simulated_books])[:, None, None]
        self._first = rng.random((len(providers), events, 1)) < _FIRST if follow else np.zeros((1, 1, 1), bool)
        self._shown = self._opinion()
        self._wait = 0.0

    def _opinion(self) -> Floats:
        if not self._follow:
            return np.asarray(self._lag + self._noise)
        return np.asarray(self._lag + self._noise * np.abs(self._noise) / np.maximum(self._sd, _TINY))

    def pass_time(self, seconds: float, live: npt.NDArray[np.bool_], left: Floats) -> None:
        """Let news reach the books, and their own opinions wander.

        `live` and `left`, the seconds until the start, are per event.
        """
        decay = [[np.exp(-seconds / lag) for lag in (d.lag, d.live_lag)] for d in self._simulated_books]
        share, herd = np.array(decay)[:, live.astype(np.int64), None], np.float64(0.0)
        if self._follow:
            hurry = np.where(live, 1.0, np.clip(_USUAL_LEFT / np.maximum(left, 1.0), 0.5, 2.0))[:, None]
            share = share ** (hurry * np.where(self._first, _FIRST_PACE, 1.0))
            herd = np.where(self._first, 0.0, _HERD) * self._lag.mean(axis=0)
        self._lag = share * self._lag + (1.0 - share) * herd
        self._wait += seconds
        if self._wait >= _STRIDE:
            kept_noise = np.exp(-self._wait / (_SLOW_WANDER if self._follow else _WANDER))
            fresh = self._rng.standard_normal(self._noise.shape) * self._sd
            self._noise = kept_noise * self._noise + np.sqrt(1.0 - kept_noise**2) * fresh
            self._wait = 0.0
        opinion = self._opinion()
        if self._follow:
            stands = (np.abs(opinion - self._shown) <= self._step) & ~live[:, None]
            opinion[stands] = self._shown[stands]
        self._shown = opinion

    def react(self, events: Longs, moved: Floats) -> None:
        """Record that the truth moved; no book has the news yet."""
        self._lag[:, events] = np.clip(self._lag[:, events] - moved, -_MOST_LAG, _MOST_LAG)
        self._shown[:, events] -= moved

    def learn(self, events: Longs) -> None:
        """Deliver all news of some events to all books."""
        self._lag[:, events] = 0.0
        self._shown[:, events] = self._opinion()[:, events]

    def of(self, book: Longs, event: Longs, ladder: Longs) -> Floats:
        return np.asarray(self._shown[self._voice[book], event, ladder])


class Habits:
    """Parameters of `SimulatedBook` as columns by book."""

    def __init__(self, simulated_books: Sequence[SimulatedBook]) -> None:
        self.margin = np.array([d.margin for d in simulated_books])
        self.digits = np.array([d.digits for d in simulated_books])
        self.live = np.array([d.live for d in simulated_books])
        self.poll = np.array([[d.poll, d.live_poll] for d in simulated_books])
        self._home = np.array([d.home for d in simulated_books])
        self._over = np.array([d.over for d in simulated_books])
        self._favourite = np.array([d.favourite for d in simulated_books])
        self._fees = book_fees([d.book.id for d in simulated_books])

    def taste(self, book: Longs, ladder: Longs, balance: Floats) -> Floats:
        """Bias of a book to the over-like side of a ladder whose centre is at `balance`."""
        about_margin = ladder <= SPREAD
        lean = np.where(about_margin, self._home[book], self._over[book])
        return np.asarray(lean + np.where(about_margin, self._favourite[book] * np.sign(balance), 0.0))

    def margins(self, book: Longs, ladder: Longs, live: npt.NDArray[np.bool_]) -> Floats:
        side = np.where(ladder >= HOME_TOTAL, _SIDE_MARKETS, 1.0)
        return np.asarray(self.margin[book] * side * np.where(live, _LIVE, 1.0))

    def written(self, book: Longs, odds: Floats) -> Floats:
        """Round decimal odds as the book's format does."""
        digits = self.digits[book]
        scale = 10.0**digits
        american = np.where(odds >= 2.0, (odds - 1.0) * 100.0, -100.0 / (odds - 1.0))
        size = np.abs(american)
        step = np.select([size < top for top, _ in _TICKS], [np.full(size.shape, tick) for _, tick in _TICKS])
        stepped = np.rint(size / step) * step
        of_american = np.where(american > 0.0, 1.0 + stepped / 100.0, 1.0 + 100.0 / stepped)
        return np.where(digits == 0, of_american, np.rint(odds * scale) / scale)

    def net(self, book: Longs, odds: Floats, live: npt.NDArray[np.bool_]) -> Floats:
        """Return odds after the book's commission or fee."""
        return charged(odds, self._fees.commission[book], self._fees.contract_fees(book, live))


def quoted(prob: Floats, market: Longs, margin: Floats) -> Floats:
    """Convert fair probabilities to odds; `market` is the market index of each, `margin` is by market."""
    log = np.log(prob)
    k = np.ones(margin.size)
    for _ in range(_NEWTON):
        q = prob ** k[market]
        excess = np.bincount(market, q, margin.size) - 1.0 - margin
        k -= excess / np.bincount(market, q * log, margin.size)
    return np.asarray(prob ** -k[market])


def american(odds: float) -> float:
    """Convert one decimal price to American odds, rounded to an integer."""
    return float(round((odds - 1.0) * 100.0 if odds >= 2.0 else -100.0 / (odds - 1.0)))
