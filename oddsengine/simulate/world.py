"""The simulated world: games, books, feeds and feed errors, in batches of quotes."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.bounds import check_bool, check_number, excerpt
from oddsengine.columns import Bools, Longs
from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.simulate.calendar import fixtures, schedule
from oddsengine.simulate.exchanges import Exchanges
from oddsengine.simulate.hazards import HAZARDS, Key, Phantom, Trouble, key_of
from oddsengine.simulate.order_fills import SimulatedFill, SimulatedOrder, Truth, fill
from oddsengine.simulate.scoreboards import Scoreboards
from oddsengine.simulate.screens import Displayed, Screens
from oddsengine.simulate.simulated_books import DEFAULT_BOOKS, Habits, Opinions, american, simulated_book
from oddsengine.simulate.simulated_games import ENDED, LIVE, UPCOMING, Chances, News, SimulatedGames
from oddsengine.simulate.simulated_labels import Place, Row
from oddsengine.simulate.simulated_leagues import LEAGUES
from oddsengine.simulate.simulated_levels import add_levels
from oddsengine.simulate.surebets import HonestPrices, TrueArbitrage, best

START = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RESEND = np.array([45.0, 2.0])  # s after which a feed resends an unchanged screen, pre-match and live
_LEAST = 1e-9  # of parameters that are above 0
_COMPLETE = 3  # every so many resends are marked complete
_DELAY = (0.05, 0.6)  # s from a feed's reading to the batch
_SUSPENDED = (6.0, 12.0)  # s after a score
_OUTAGE_EVERY = 2700.0  # s between outages of a book
_OUTAGE = (120.0, 480.0)  # s
_AHEAD = 57_600.0  # s before the start at which books begin to quote a game, in a world of several days
_BEFORE, _STEPS = 7200.0, 24  # s and steps of a market of several days before the opening
_POSTPONED = 0.04  # postponements per hour and event
_POSTPONED_BY = (20.0, 90.0)  # minutes
_POSTPONE_BEFORE = 7200.0  # s: only events that start sooner are postponed
_DRIFT, _EVERY = 0.052, 18_000.0  # as `News`, where books follow each other
_LATE = 0.004  # share of rows that are repeated later
_LATE_BY = (0.5, 20.0)  # s


class FeedBatch(NamedTuple):
    """What the feeds deliver in one tick."""

    now: datetime
    quotes: list[Row]
    complete: list[tuple[str, str | None]]  # (book, event) pairs whose quotes are complete
    events: list[Row]

    def __repr__(self) -> str:
        return f"<Batch {self.now:%Y-%m-%d %H:%M:%S}: {len(self.quotes):,} quotes>"


class World:
    """A world of sportsbooks, its games and its feeds, all from one seed.

    Parameters
    ----------
    seed
        The same seed gives the same batches.
    events
        Number of games; those beyond the first round of each league are on later days. With `days`, games per day.
    days
        Number of days on which games start at all hours. Books then quote a game from 16 hours before it. 0: most games
        start in the first 8 hours, and all are quoted from the opening on.
    books
        Catalog ids; None is `DEFAULT_BOOKS`.
    start
        UTC.
    tick
        Seconds between batches.
    live
        Share of the first day's games that are in play at the opening.
    pace
        Speed of games relative to real time.
    dissent
        Multiplier of the books' errors: own opinions, biases and lags. Below 1 there are fewer arbitrages and smaller
        edges.
    slow
        Multiplier of the delay with which news reaches books before a game. Above 1, books follow each other: a few
        books of each game receive news first, and prices are kept until they are off by a few cents. At 10 they move
        about as US books do.
    news
        With `slow`, the multiplier of how far news moves probabilities; below 1 there is more of it, and it is smaller.
    main_lines
        Whether books quote main lines only.
    exchange_hold
        Multiplier of the margin of exchanges.
    levels
        Whether exchanges have prices with levels.
    traders
        Whether markets of two outcomes at exchanges are order books in which traders post, cancel and take. `filled`
        then says what orders would have been filled. Prices of other books do not depend on it. Without `hazards` only.
    hazards
        Feed errors by their names in `HAZARDS`; True is all, False none. Other prices do not depend on them.

    Examples
    --------
    >>> world = World(7, events=2, books=["pinnacle", "fanduel"])
    >>> opening = next(world.run(60))
    >>> len(opening.complete), sorted({quote["sportsbook"] for quote in opening.quotes})
    (4, ['fanduel', 'pinnacle'])
    """

    def __init__(
        self,
        seed: int,
        *,
        events: int = 40,
        days: int = 0,
        books: Sequence[str] | None = None,
        start: datetime = START,
        tick: float = 1.0,
        live: float = 0.2,
        pace: float = 1.0,
        dissent: float = 1.0,
        slow: float = 1.0,
        news: float = 1.0,
        main_lines: bool = False,
        exchange_hold: float = 1.0,
        levels: bool = False,
        traders: bool = False,
        hazards: Collection[str] | bool = False,
    ) -> None:
        for name, value in (
            ("events", events), ("days", days), ("live", live), ("dissent", dissent), ("exchange_hold", exchange_hold)
        ):  # fmt: skip
            check_number(name, value, 0.0)
        check_number("live", live, most=1.0)
        for name, value in (("tick", tick), ("pace", pace), ("slow", slow), ("news", news)):
            _check_positive(name, value)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {excerpt(seed)}")
        *seeds, trading = np.random.SeedSequence(seed).spawn(7)
        setting, playing, thinking, self._feed, troubling, telling = map(np.random.default_rng, seeds)
        check_bool("traders", traders)
        self._start, self._tick, self._time = start, tick, 0.0
        named = HAZARDS if hazards is True else tuple(hazards or ())
        if traders and named:
            raise ValueError("traders must be False with hazards: the prices of order books have no feed errors")
        self.books = tuple(books or DEFAULT_BOOKS)
        if books is None and "mid_price" in named:
            self.books += ("polymarket_mid",)
        simulated_books = [simulated_book(name).straying(dissent, exchange_hold, slow) for name in self.books]
        if main_lines:
            simulated_books = [
                each._replace(depth=tuple(min(lines, 0) for lines in each.depth)) for each in simulated_books
            ]
        self._simulated_books = simulated_books
        league, begins = schedule(events, days, start, live, pace, setting)
        events = begins.size
        slow_news = News(_DRIFT * news, _EVERY * news**2, not main_lines) if slow > 1.0 else None
        self._games = SimulatedGames(league, begins, playing, pace, slow_news)
        if not days:
            self._games.advance(0.0, max(0.0, -float(begins.min(initial=0.0))))
        self.fixtures = fixtures(league, begins, start, setting)
        self._place = {fixture.id: at for at, fixture in enumerate(self.fixtures)}
        self._opinions = Opinions(simulated_books, events, thinking, follow=slow > 1.0)
        if days:
            self._begin(max(_BEFORE, -float(begins.min(initial=0.0))))
        self._habits = Habits(simulated_books)
        self._seed, self._deep = seed, {each.book.id for each in simulated_books if each.book.exchange and levels}
        self._screens = Screens(simulated_books, self._games, thinking)
        self._exchanges = Exchanges(simulated_books, self._screens, self._games, trading) if traders else None
        self._untraded = ~self._exchanges.traded if self._exchanges is not None else np.ones_like(self._screens.shown)
        screens = len(simulated_books) * events
        poll = self._habits.poll[:, :1]
        self._next = (poll * self._feed.random((len(simulated_books), events))).ravel()
        self._opens = begins - _AHEAD if days else np.full(events, -np.inf)  # when books begin to quote a game
        self._sent = np.full(screens, -np.inf)
        self._sends = self._feed.integers(0, _COMPLETE, screens)
        self._resume = np.full(events, -np.inf)  # end of a suspension
        self._back = np.full(len(simulated_books), -np.inf)  # end of an outage
        self._out = self._feed.exponential(_OUTAGE_EVERY, len(simulated_books))
        self._texts: list[dict[int, Row]] = [{} for _ in range(2 * events)]
        self._late: list[tuple[float, int, Row]] = []
        self._open = False
        self._trouble = Trouble(named, troubling, self._games, self.fixtures, simulated_books)
        self._boards = Scoreboards(simulated_books, self._games, self.fixtures, telling, troubled=bool(named))
        # Reported with the last batch; see `oddsengine.feeds.merged_scores`.
        self.scores: Sequence[ScoreReading] = ()

    def _begin(self, seconds: float) -> None:
        """Let the market run before the opening, so that books are then behind as they are later."""
        games, step = self._games, seconds / _STEPS
        for time in np.linspace(step - seconds, 0.0, _STEPS).tolist():
            change = games.advance(time, step)
            self._opinions.react(change.refreshed, change.moved)
            self._opinions.pass_time(step, games.status == LIVE, games.start - time)
        self._opinions.learn(np.flatnonzero(games.status == LIVE))

    def __repr__(self) -> str:
        return f"<World of {len(self.fixtures)} events, {len(self.books)} books, {self.now:%Y-%m-%d %H:%M:%S}>"

    # ---- batches ----

    @property
    def now(self) -> datetime:
        """Time of the last batch."""
        return self._at(self._time)

    def run(self, seconds: float, *, tick: float | None = None) -> Iterator[FeedBatch]:
        """Generate batches for some world time: first the opening board, then one per tick. Further calls continue.

        `tick` replaces the seconds between batches of the world, from here on.
        """
        if not self._open:
            self._open = True
            yield self._opening()
        check_number("seconds", seconds, 0.0)
        if tick is not None:
            _check_positive("tick", tick)
            self._tick = tick
        for _ in range(round(seconds / self._tick)):
            yield self._step()

    def _opening(self) -> FeedBatch:
        if self._exchanges is not None:
            self._exchanges.begin(self._opinions, self._barred())
        quotes, complete = self._look(np.flatnonzero(self._quoted()), everything=True)
        add_levels(quotes, self._deep, self._seed)
        status = ("upcoming", "live", "ended")
        events = [
            self._notice(at, status[self._games.status[at]]) for at in np.flatnonzero(self._opens <= 0.0).tolist()
        ]
        self._report_scores()
        return FeedBatch(self.now, quotes, complete, events)

    def _step(self) -> FeedBatch:
        self._time += self._tick
        notices = self._postpone()
        change = self._games.advance(self._time, self._tick)
        notices += [self._notice(at, "live") for at in change.started.tolist()]
        notices += [self._notice(at, "ended") for at in change.ended.tolist()]
        self._opinions.react(change.refreshed, change.moved)
        self._opinions.pass_time(self._tick, self._games.status == LIVE, self._games.start - self._time)
        urgent = [change.started, change.ended, self._suspend(change.scored)]
        self._hurry(np.concatenate(urgent))
        self._fail()
        self._next[self._trouble.strike(self._time)] = self._time
        if self._exchanges is not None:
            self._exchanges.step(self._time, self._opinions, self._barred())
        due = np.flatnonzero((self._next <= self._time) & self._up() & self._quoted())
        quotes, complete = self._look(due, everything=False)
        self._report_scores()
        quotes = self._belated() + quotes
        add_levels(quotes, self._deep, self._seed)
        return FeedBatch(self.now, quotes, complete, notices)

    def _quoted(self) -> Bools:
        """Return the screens of events that books quote by now."""
        return np.tile(self._opens <= self._time, len(self._simulated_books))

    def _up(self) -> Bools:
        """Return the screens of books without an outage."""
        return np.repeat(self._back <= self._time, self._screens.events)

    def _barred(self) -> Bools:
        """Return the events that are suspended, or not quoted yet."""
        return np.asarray((self._resume > self._time) | (self._opens > self._time))

    def _report_scores(self) -> None:
        self.scores = self._boards.look(self._time, (self.now - _EPOCH) // timedelta(microseconds=1))

    def _suspend(self, scored: Longs) -> Longs:
        """Suspend games after a score; returns those, and the games that resume."""
        pauses = np.array([league.pauses for league in LEAGUES])[self._games.league[scored]]
        reopened = np.flatnonzero((self._resume <= self._time) & (self._resume > self._time - self._tick))
        self._resume[scored[pauses]] = self._time + self._feed.uniform(*_SUSPENDED, int(pauses.sum()))
        self._opinions.learn(np.flatnonzero(self._resume > self._time - self._tick))
        return np.concatenate([scored[pauses], reopened])

    def _hurry(self, events: Longs) -> None:
        """Make every book update some events now."""
        self._next.reshape(len(self.books), -1)[:, events] = self._time

    def _fail(self) -> None:
        out = np.flatnonzero(self._out <= self._time)
        self._back[out] = self._time + self._feed.uniform(*_OUTAGE, out.size)
        self._out[out] = self._back[out] + self._feed.exponential(_OUTAGE_EVERY, out.size)

    def _postpone(self) -> list[Row]:
        games = self._games
        near = (games.status == UPCOMING) & (games.start < self._time + _POSTPONE_BEFORE)
        struck = np.flatnonzero(near & (self._feed.random(near.size) < _POSTPONED * self._tick / 3600.0))
        by = np.rint(self._feed.uniform(*_POSTPONED_BY, struck.size))
        games.start[struck] += by * 60.0
        for at, minutes in zip(struck.tolist(), by.tolist(), strict=True):
            fixture = self.fixtures[at]
            self.fixtures[at] = fixture._replace(start=fixture.start + timedelta(minutes=minutes))
            self._texts[2 * at].clear()
            self._texts[2 * at + 1].clear()
        self._hurry(struck)
        self._sent.reshape(len(self.books), -1)[:, struck] = -np.inf
        return [self._notice(at, "postponed") for at in struck.tolist()]

    def _notice(self, event: int, status: str) -> Row:
        fixture = self.fixtures[event]
        return {"event_id": fixture.id, "status": status, "event_start_time": fixture.start}

    def _at(self, seconds: float) -> datetime:
        return self._start + timedelta(milliseconds=round(seconds * 1000.0))

    # ---- quotes ----

    def _look(self, due: Longs, *, everything: bool) -> tuple[list[Row], list[tuple[str, str | None]]]:
        """Update some screens; returns the rows to send, and the screens sent in full."""
        screens, n = self._screens, self._screens.events
        status = self._games.status[due % n]
        over = due[status == ENDED]
        screens.clear(over)
        self._next[over] = np.inf
        due, live = due[status != ENDED], (status[status != ENDED] == LIVE).astype(np.int64)
        looked = screens.look(due, self._opinions, self._resume > self._time, self._time)
        self._next[due] = self._time + self._habits.poll[due // n, live] * self._feed.uniform(0.8, 1.2, due.size)
        resend = (self._sent[due] <= self._time - _RESEND[live]) | np.isin(due, looked.moved) | everything
        resend |= self._trouble.on(due)
        self._sent[due[resend]] = self._time
        self._sends[due] += resend
        whole = (resend & (self._sends[due] % _COMPLETE == 0)) | np.isin(due, looked.moved) | everything
        whole |= self._trouble.on(due)
        counts = screens.offsets[due + 1] - screens.offsets[due]
        sent = looked.shown & (looked.changed | np.repeat(resend, counts))
        delay = self._feed.uniform(*_DELAY, due.size)
        rows = looked.rows[sent]
        screens.seen[rows] = self._time - np.repeat(delay, counts)[sent]
        own = self._untraded[rows]
        quotes = self._quotes(rows[own], screens.displayed())
        self._remember(rows, own, quotes)
        quotes = self._trouble.rewrite(quotes, screens.screen[rows[own]], due)
        full = np.concatenate([over, due[whole]])
        if self._exchanges is not None:
            traded, more = self._of_order_books(self._exchanges, rows, due[resend], full)
            quotes, full = quotes + traded, np.concatenate([full, more])
        return quotes, [self._names(screen) for screen in full.tolist()]

    def _of_order_books(
        self, exchanges: Exchanges, rows: Longs, renewed: Longs, full: Longs
    ) -> tuple[list[Row], Longs]:
        """Return the prices of order books to send, and the further screens that are then sent in full.

        `rows` are those that are sent anyway, on screens that are `renewed`, and of them all on those in `full`.
        """
        screens, displayed = self._screens, exchanges.displayed()
        sent, more = exchanges.send(renewed, full, self._up())
        quotes = self._quotes(sent, displayed)
        exchanges.add_depth(sent, quotes)
        others = np.flatnonzero(displayed.shown & self._untraded & np.isin(screens.screen, more))
        return quotes + self._quotes(np.setdiff1d(others, rows), displayed), more

    def _names(self, screen: int) -> tuple[str, str]:
        book, event = divmod(screen, self._screens.events)
        return self.books[book], self.fixtures[event].id

    def _quotes(self, rows: Longs, displayed: Displayed) -> list[Row]:
        """Build quotes as a feed sends them."""
        screens, quotes = self._screens, []
        times = cache(self._at)  # most rows of a screen have the same
        columns = (
            screens.book, screens.event, screens.ladder, screens.side, displayed.quarters, displayed.odds,
            displayed.seen, displayed.live, displayed.active, displayed.changed_at,
        )  # fmt: skip
        for book, event, ladder, side, quarters, odds, seen, live, active, changed in zip(
            *(column[rows].tolist() for column in columns), strict=True
        ):
            habits = self._simulated_books[book]
            texts = self._texts[2 * event + habits.generic]
            key = (quarters * 16 + ladder) * 4 + side
            text = texts.get(key)
            if text is None:
                text = texts[key] = self.fixtures[event].row(ladder, side, quarters, generic=habits.generic)
            name = self.books[book]
            quote = text.copy()
            quote["sportsbook"] = name
            if habits.digits:
                quote["odds_decimal"] = odds
            else:
                quote["odds_american"] = american(odds)
            quote["is_live"] = live
            quote["last_seen_at"] = times(seen)
            if habits.dates:
                quote["odds_changed_at"] = times(changed)
            if habits.links:
                quote["deep_link"] = f"https://{name}.example/event/{event}"
            quote["external_event_id"] = f"{name}-{event}"
            if not active:
                quote["is_active"] = False
            quotes.append(quote)
        return quotes

    def _remember(self, rows: Longs, own: Bools, quotes: list[Row]) -> None:
        """Choose rows to repeat later; `quotes` are those of `own` rows, others are not repeated."""
        chosen = np.flatnonzero(self._feed.random(rows.size) < _LATE)
        due = self._time + self._feed.uniform(*_LATE_BY, chosen.size)
        place = np.cumsum(own) - 1
        self._late += [
            (when, int(rows[at]), dict(quotes[place[at]]))
            for when, at in zip(due.tolist(), chosen.tolist(), strict=True)
            if own[at]
        ]

    def _belated(self) -> list[Row]:
        """Return repeated rows with their original times; rows that were removed are not repeated."""
        due = [(row, quote) for when, row, quote in self._late if when <= self._time]
        self._late = [item for item in self._late if item[0] > self._time]
        screens = self._screens
        current = []
        for row, quote in due:
            place = self.place(quote["event_id"], quote["market_type"], quote["selection"], quote.get("line"))
            same = place.quarters == screens.quarters[row] and quote["is_live"] == bool(screens.live[row])
            if screens.shown[row] and same and not self._trouble.on(screens.screen[[row]])[0]:
                current.append(quote)
        return current

    # ---- truth ----

    def place(self, event_id: str, market_type: str, selection: str, line: float | None = None) -> Place:
        """Return what a price of the board refers to; `line` is from its own side."""
        event = self._event(event_id)
        return self.fixtures[event].place(event, market_type, selection, line)

    def _event(self, event_id: str) -> int:
        if not isinstance(event_id, str) or event_id not in self._place:
            raise ValueError(f"event_id must be that of an event of this world, got {excerpt(event_id)}")
        return self._place[event_id]

    def chances(self, event_id: str, market_type: str, selection: str, line: float | None = None) -> Chances:
        """Return the true chances of a price as of now, or its result if the event has ended."""
        return self._games.chances(*self.place(event_id, market_type, selection, line))

    def settle(self, odds: float, event_id: str, market_type: str, selection: str, line: float | None = None) -> float:
        """Return the profit on a stake of 1 at decimal odds; nan while the event is not over."""
        if self._games.status[self._event(event_id)] != ENDED:
            return float("nan")
        return self.chances(event_id, market_type, selection, line).returns(odds)

    def finish(self) -> None:
        """Play every game to its end so that everything can be settled. The world cannot run any further."""
        self._games.finish()

    @property
    def delays(self) -> dict[str, tuple[float, float]]:
        """Seconds, at least and at most, that orders are on their way to each book with order books.

        In play the price's `bet_delay` is added. The delay of an order is known to the venue only.
        """
        return {} if self._exchanges is None else dict(self._exchanges.delays)

    def filled(self, orders: Iterable[SimulatedOrder]) -> list[SimulatedFill]:
        """Return what would have been filled of some orders at exchanges of a world with `traders`, in their order.

        All of them together: what one takes, another cannot have. A price that has been taken once is gone for all
        traders, too. An order that arrives when its market is closed is not filled.
        """
        if self._exchanges is None:
            raise ValueError("filled needs a world with traders=True")
        return fill(orders, Truth(self._exchanges, self.books, self.place, self._seed, self._start, self.now))

    def phantom(
        self, sportsbook: str, event_id: str, market_type: str, selection: str, line: float | None = None
    ) -> Phantom | None:
        """Return the feed error of a row on the board; None for an honest row."""
        row = {
            "sportsbook": sportsbook, "event_id": event_id, "market_type": market_type, "selection": selection,
            "sport": self.fixtures[self._event(event_id)].league.sport, "line": line,
        }  # fmt: skip
        return self._trouble.phantom(key_of(row))

    def phantoms(self) -> dict[Key, Phantom]:
        """Return every corrupted row on the board."""
        return self._trouble.phantoms()

    def arbitrages(self, min_profit: float = 0.5, max_profit: float = 10.0) -> list[TrueArbitrage]:
        """Return the arbitrages among honest, fresh prices with a profit in a range, in percent."""
        screens, limits = self._screens, catalog.thresholds()
        shown = screens.displayed() if self._exchanges is None else self._exchanges.displayed()
        begun = self._games.start[screens.event] < self._time
        oldest = np.where(shown.live, limits.stale_live_leg_s, limits.stale_prematch_s)
        usable = shown.shown & shown.active & (shown.live | ~begun)
        usable &= (shown.seen >= self._time - oldest) & ~self._trouble.on(screens.screen)
        usable &= self._games.status[screens.event] != ENDED
        rows = np.flatnonzero(usable)
        event, book = screens.event[rows], screens.book[rows]
        board = HonestPrices(
            event, screens.ladder[rows], shown.quarters[rows], shown.live[rows], screens.side[rows],
            self._habits.net(book, shown.odds[rows], shown.live[rows]), shown.seen[rows],
        )  # fmt: skip
        draws = np.array([league.draws for league in LEAGUES])[self._games.league[event]]
        arbs = []
        for at, total, legs in best(board, draws):
            profit = 100.0 / total - 100.0
            if min_profit <= profit <= max_profit:
                books = tuple(self.books[book[leg]] for leg in legs)
                place = Place(int(event[at]), int(board.ladder[at]), 0, int(board.quarters[at]))
                name = self.fixtures[place.event].id
                arbs.append(TrueArbitrage(name, place, bool(board.live[at]), profit, books))
        return arbs


def _check_positive(name: str, value: float) -> None:
    check_number(name, value, above=0.0)
    check_number(name, value, _LEAST)
