"""The world: games, books, feeds and what goes wrong, one batch of quotes after another."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.games import Reading
from oddsengine.groups import Longs
from oddsengine.simulate.calendar import fixtures, schedule
from oddsengine.simulate.desks import DEFAULT_BOOKS, Habits, Opinions, american, desk
from oddsengine.simulate.games import ENDED, LIVE, UPCOMING, Chances, Games, News
from oddsengine.simulate.hazards import HAZARDS, Key, Phantom, Trouble, key_of
from oddsengine.simulate.leagues import LEAGUES
from oddsengine.simulate.scoreboards import Scoreboards
from oddsengine.simulate.screens import Screens
from oddsengine.simulate.surebets import Board, TrueArbitrage, best
from oddsengine.simulate.wording import Place, Row

START = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RESEND = np.array([45.0, 2.0])  # s after which a feed sends a screen again though nothing changed; live
_COMPLETE = 3  # every so many such times it says that this is all
_DELAY = (0.05, 0.6)  # s from a feed's look to the batch
_SUSPENDED = (6.0, 12.0)  # s after a score
_OUTAGE_EVERY = 2700.0  # s between two outages of a book
_OUTAGE = (120.0, 480.0)  # s
_POSTPONED = 0.04  # postponements an hour of an event
_POSTPONED_BY = (20.0, 90.0)  # minutes
_POSTPONE_BEFORE = 7200.0  # s: events later than this are not postponed yet
_SLOW_NEWS = News(drift=0.052, every=18_000.0)  # where books follow each other
_LATE = 0.004  # share of rows that come a second time, later
_LATE_BY = (0.5, 20.0)  # s


class Batch(NamedTuple):
    """What the feeds bring in one tick."""

    now: datetime
    quotes: list[Row]
    complete: list[tuple[str, str | None]]  # book and event of which the quotes here are all there are
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
        Games; those beyond the first round of each league are on later days.
    books
        Ids of the catalog; None is `DEFAULT_BOOKS`.
    start
        UTC.
    tick
        Seconds between batches.
    live
        Share of the first day's games that are in play at the opening.
    pace
        How many times faster than in life a game runs.
    dissent
        How far books stray from the truth, as a multiple of the usual: their own opinions, tastes and lateness. Below 1
        there are fewer arbitrages and smaller edges.
    slow
        How many times later than usual books hear of news before a game. Above 1 no book is sharp and they follow each
        other: news is rare and large, a few books of each game hear it first, prices stand until they are wrong by a
        few cents, and books quote their main lines only. At 10 they move about as US books do.
    exchange_hold
        The margin of exchanges, as a multiple of the usual.
    hazards
        Errors of feeds to make, by their names in `HAZARDS`; True is all, False none. Except for the books' prices that
        they touch nothing changes with them.

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
        books: Sequence[str] | None = None,
        start: datetime = START,
        tick: float = 1.0,
        live: float = 0.2,
        pace: float = 1.0,
        dissent: float = 1.0,
        slow: float = 1.0,
        exchange_hold: float = 1.0,
        hazards: Collection[str] | bool = False,
    ) -> None:
        streams = [np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(6)]
        setting, playing, thinking, self._feed, troubling, telling = streams
        self._start, self._tick, self._time = start, tick, 0.0
        named = HAZARDS if hazards is True else tuple(hazards or ())
        self.books = tuple(books or DEFAULT_BOOKS)
        if books is None and "mid_price" in named:
            self.books += ("polymarket",)
        desks = [desk(name).straying(dissent, exchange_hold, slow) for name in self.books]
        self._desks = desks
        league, begins = schedule(events, live, pace, setting)
        self._games = Games(league, begins, playing, pace, _SLOW_NEWS if slow > 1.0 else None)
        self._games.advance(0.0, max(0.0, -float(begins.min(initial=0.0))))
        self.fixtures = fixtures(league, begins, start, setting)
        self._place = {fixture.id: at for at, fixture in enumerate(self.fixtures)}
        self._opinions = Opinions(desks, events, thinking, follow=slow > 1.0)
        self._habits = Habits(desks)
        self._screens = Screens(desks, self._games, thinking)
        screens = len(desks) * events
        poll = self._habits.poll[:, :1]
        self._next = (poll * self._feed.random((len(desks), events))).ravel()
        self._sent = np.full(screens, -np.inf)
        self._sends = self._feed.integers(0, _COMPLETE, screens)
        self._resume = np.full(events, -np.inf)  # when a suspension ends
        self._back = np.full(len(desks), -np.inf)  # when an outage ends
        self._out = self._feed.exponential(_OUTAGE_EVERY, len(desks))
        self._texts: list[dict[int, Row]] = [{} for _ in range(2 * events)]
        self._late: list[tuple[float, int, Row]] = []
        self._open = False
        self._trouble = Trouble(named, troubling, self._games, self.fixtures, desks)
        self._boards = Scoreboards(desks, self._games, self.fixtures, telling, troubled=bool(named))
        self.scores: Sequence[Reading] = ()  # what books said of scores with the last batch; see `oddsengine.games`

    def __repr__(self) -> str:
        return f"<World of {len(self.fixtures)} events, {len(self.books)} books, {self.now:%Y-%m-%d %H:%M:%S}>"

    # ---- batches ----

    @property
    def now(self) -> datetime:
        """The time of the last batch."""
        return self._at(self._time)

    def run(self, seconds: float) -> Iterator[Batch]:
        """Let the world run: at first the opening board, then one batch a tick.

        Parameters
        ----------
        seconds
            Of the world's time. Another call goes on where this one ended.
        """
        if not self._open:
            self._open = True
            yield self._opening()
        for _ in range(round(seconds / self._tick)):
            yield self._step()

    def _opening(self) -> Batch:
        quotes, complete = self._look(np.arange(self._next.size), everything=True)
        status = ("upcoming", "live", "ended")
        events = [self._notice(at, status[s]) for at, s in enumerate(self._games.status)]
        self._tell()
        return Batch(self.now, quotes, complete, events)

    def _step(self) -> Batch:
        self._time += self._tick
        notices = self._postpone()
        change = self._games.advance(self._time, self._tick)
        notices += [self._notice(at, "live") for at in change.started.tolist()]
        notices += [self._notice(at, "ended") for at in change.ended.tolist()]
        self._opinions.hear(change.refreshed, change.moved)
        self._opinions.pass_time(self._tick, self._games.status == LIVE, self._games.start - self._time)
        urgent = [change.started, change.ended, self._suspend(change.scored)]
        self._hurry(np.concatenate(urgent))
        self._fail()
        self._next[self._trouble.strike(self._time)] = self._time
        due = np.flatnonzero((self._next <= self._time) & np.repeat(self._back <= self._time, self._screens.events))
        quotes, complete = self._look(due, everything=False)
        self._tell()
        return Batch(self.now, self._belated() + quotes, complete, notices)

    def _tell(self) -> None:
        self.scores = self._boards.look(self._time, (self.now - _EPOCH) // timedelta(microseconds=1))

    def _suspend(self, scored: Longs) -> Longs:
        """Suspend games after a score; gives those and the ones that open again."""
        pauses = np.array([league.pauses for league in LEAGUES])[self._games.league[scored]]
        reopened = np.flatnonzero((self._resume <= self._time) & (self._resume > self._time - self._tick))
        self._resume[scored[pauses]] = self._time + self._feed.uniform(*_SUSPENDED, int(pauses.sum()))
        self._opinions.learn(np.flatnonzero(self._resume > self._time - self._tick))
        return np.concatenate([scored[pauses], reopened])

    def _hurry(self, events: Longs) -> None:
        """Have every book look at some events at once."""
        self._next.reshape(-1, self._screens.events)[:, events] = self._time

    def _fail(self) -> None:
        """Let books fall silent."""
        out = np.flatnonzero(self._out <= self._time)
        self._back[out] = self._time + self._feed.uniform(*_OUTAGE, out.size)
        self._out[out] = self._back[out] + self._feed.exponential(_OUTAGE_EVERY, out.size)

    def _postpone(self) -> list[Row]:
        games = self._games
        near = (games.status == UPCOMING) & (games.start < self._time + _POSTPONE_BEFORE)
        struck = np.flatnonzero(near & (self._feed.random(near.size) < _POSTPONED * self._tick / 3600.0))
        games.start[struck] += np.rint(self._feed.uniform(*_POSTPONED_BY, struck.size)) * 60.0
        for at in struck.tolist():
            self.fixtures[at] = self.fixtures[at]._replace(start=self._at(games.start[at]))
            self._texts[2 * at].clear()
            self._texts[2 * at + 1].clear()
        self._hurry(struck)
        self._sent.reshape(-1, games.start.size)[:, struck] = -np.inf
        return [self._notice(at, "postponed") for at in struck.tolist()]

    def _notice(self, event: int, status: str) -> Row:
        fixture = self.fixtures[event]
        return {"event_id": fixture.id, "status": status, "event_start_time": fixture.start}

    def _at(self, seconds: float) -> datetime:
        return self._start + timedelta(milliseconds=round(seconds * 1000.0))

    # ---- quotes ----

    def _look(self, due: Longs, *, everything: bool) -> tuple[list[Row], list[tuple[str, str | None]]]:
        """Look at some screens; gives the rows to send, and the screens that are sent whole."""
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
        complete: list[tuple[str, str | None]] = [
            self._names(screen) for screen in np.concatenate([over, due[whole]]).tolist()
        ]
        return self._trouble.rewrite(self._quotes(rows), screens.screen[rows], due), complete

    def _names(self, screen: int) -> tuple[str, str]:
        book, event = divmod(screen, self._screens.events)
        return self.books[book], self.fixtures[event].id

    def _quotes(self, rows: Longs) -> list[Row]:
        """Rows as a feed sends them."""
        screens = self._screens
        quotes = []
        columns = (
            screens.book, screens.event, screens.ladder, screens.side, screens.quarters, screens.odds, screens.seen,
            screens.live, screens.active, screens.changed_at,
        )  # fmt: skip
        for book, event, ladder, side, quarters, odds, seen, live, active, changed in zip(
            *(column[rows].tolist() for column in columns), strict=True
        ):
            habits = self._desks[book]
            quote = dict(self._text(event, ladder, side, quarters, generic=habits.generic))
            quote["sportsbook"] = self.books[book]
            if habits.digits:
                quote["odds_decimal"] = odds
            else:
                quote["odds_american"] = american(odds)
            quote["is_live"] = live
            quote["last_seen_at"] = self._at(seen)
            if habits.dates:
                quote["odds_changed_at"] = self._at(changed)
            if habits.links:
                quote["deep_link"] = f"https://{self.books[book]}.example/event/{event}"
            quote["external_event_id"] = f"{self.books[book]}-{event}"
            if not active:
                quote["is_active"] = False
            quotes.append(quote)
        self._remember(rows, quotes)
        return quotes

    def _text(self, event: int, ladder: int, side: int, quarters: int, *, generic: bool) -> Row:
        """The part of a row that all books of one style share, written once."""
        texts = self._texts[2 * event + generic]
        key = (quarters * 16 + ladder) * 4 + side
        if key not in texts:
            texts[key] = self.fixtures[event].row(ladder, side, quarters, generic=generic)
        return texts[key]

    def _remember(self, rows: Longs, quotes: list[Row]) -> None:
        """Choose rows that will come a second time."""
        chosen = np.flatnonzero(self._feed.random(rows.size) < _LATE)
        due = self._time + self._feed.uniform(*_LATE_BY, chosen.size)
        self._late += [
            (when, int(rows[at]), dict(quotes[at])) for when, at in zip(due.tolist(), chosen.tolist(), strict=True)
        ]

    def _belated(self) -> list[Row]:
        """Rows that come a second time, with the time at which they were seen; what has left does not come back."""
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
        """Give what a price of the board stands on; `line` is the one of its own side."""
        event = self._place[event_id]
        return self.fixtures[event].place(event, market_type, selection, line)

    def chances(self, event_id: str, market_type: str, selection: str, line: float | None = None) -> Chances:
        """Give the true shares of a stake that win and lose, as of now; of an ended event, those that did."""
        return self._games.chances(*self.place(event_id, market_type, selection, line))

    def settle(self, odds: float, event_id: str, market_type: str, selection: str, line: float | None = None) -> float:
        """Profit that a stake of 1 at decimal odds made; nan while the event is not over."""
        if self._games.status[self._place[event_id]] != ENDED:
            return float("nan")
        return self.chances(event_id, market_type, selection, line).returns(odds)

    def finish(self) -> None:
        """Play every game to its end at once, so that everything can be settled; the world runs no further."""
        self._games.finish()

    def phantom(
        self, sportsbook: str, event_id: str, market_type: str, selection: str, line: float | None = None
    ) -> Phantom | None:
        """What is wrong with a row that is on the board now; None for an honest one."""
        row = {
            "sportsbook": sportsbook, "event_id": event_id, "market_type": market_type, "selection": selection,
            "sport": self.fixtures[self._place[event_id]].league.sport, "line": line,
        }  # fmt: skip
        return self._trouble.phantom(key_of(row))

    def phantoms(self) -> dict[Key, Phantom]:
        """Every row on the board that is not what it seems."""
        return self._trouble.phantoms()

    def arbitrages(self, min_profit: float = 0.5, max_profit: float = 10.0) -> list[TrueArbitrage]:
        """Arbitrages among the honest, fresh prices that the books show now.

        Parameters
        ----------
        min_profit, max_profit
            Percent, from and to.
        """
        screens, limits = self._screens, catalog.thresholds()
        begun = self._games.start[screens.event] < self._time
        oldest = np.where(screens.live, limits.stale_live_leg_s, limits.stale_prematch_s)
        usable = screens.shown & screens.active & (screens.live | ~begun)
        usable &= (screens.seen >= self._time - oldest) & ~self._trouble.on(screens.screen)
        usable &= self._games.status[screens.event] != ENDED
        rows = np.flatnonzero(usable)
        event, book = screens.event[rows], screens.book[rows]
        board = Board(
            event, screens.ladder[rows], screens.quarters[rows], screens.live[rows], screens.side[rows],
            self._habits.net(book, screens.odds[rows]), screens.seen[rows],
        )  # fmt: skip
        draws = np.array([league.draws for league in LEAGUES])[self._games.league[event]]
        found = []
        for at, total, legs in best(board, draws):
            profit = 100.0 / total - 100.0
            if min_profit <= profit <= max_profit:
                books = tuple(self.books[book[leg]] for leg in legs)
                place = Place(int(event[at]), int(board.ladder[at]), 0, int(board.quarters[at]))
                name = self.fixtures[place.event].id
                found.append(TrueArbitrage(name, place, bool(board.live[at]), profit, books))
        return found
