"""Statistics of a board: its events, books and markets, computed in one pass and cached until the next update.

Statistics are for a selection of books. Texts are assembled only for the rows of a page.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.board.event_status import IN_PLAY, STATUSES
from oddsengine.board.events import Votes
from oddsengine.board.names import Names
from oddsengine.board.row_links import LINKS, SEPARATOR
from oddsengine.columns import NO_TIME, Longs
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.live.readable import Readable
from oddsengine.query.values import league_id, sport_id, team_id, team_names

_MOST_CACHED = 24  # cached statistics of a node
_EXTERNAL = LINKS.index("external_event_id")


class BoardIds(NamedTuple):
    sports: Collection[str]
    leagues: Collection[str]
    books: Collection[str]
    markets: Collection[str]


class EventTexts(NamedTuple):
    id: str
    sport: str
    league: str
    home: str
    away: str


class BoardStats:
    """Events, books and market types on a board at one update, for a selection of books."""

    def __init__(self, engine: Readable, books: frozenset[str] | None) -> None:
        with engine.shown(judged=False) as shown:
            board, self.number, self.now = shown.board, shown.number, shown.now
            names, rows = board.names, board.rows
            on = board.on()
            key = rows.key[on]
            self.book_names = [catalog.book(name).id for name in names.books.values]
            if books is not None:
                selected = np.array([name in books for name in self.book_names], bool)
                on = on[selected[key & BOOK_MASK]] if selected.size else on
                key = rows.key[on]
            term, book = key >> BOOK_BITS, key & BOOK_MASK
            event = names.terms.event.values[term].astype(np.int64)
            seen, live = rows.seen[on], (rows.flags[on] & LIVE) != 0
            status, begins = board.statuses()
            self.market_names = list(names.published_names.values)
            present = np.zeros(len(names.terms.raw_labels), bool)
            present[term] = True
            used = np.flatnonzero(present)
            self.term_event = names.terms.event.values[used].astype(np.int64)
            self.term_market = names.terms.published.values[used].astype(np.int64)
            self._selection = names.terms.id.values[used]
            self.events = np.unique(self.term_event)
            place = np.zeros(len(names.events.values) + 1, np.int64)
            place[self.events] = np.arange(self.events.size)
            self.term_event = place[self.term_event]
            self.status, self.begins = status[self.events], begins[self.events]
            self.games = self._games(names, used)
            self._links = self._linked(rows.links, place[event], book, on)
        n, most = self.events.size, len(self.book_names)
        self.present = np.zeros((n, most), bool)  # event, book
        self.present[place[event], book] = True
        self.markets = np.zeros((n, len(self.market_names)), bool)  # event, market type
        self.markets[self.term_event, self.term_market] = True
        self.seen = np.full(most, NO_TIME)  # by book
        np.maximum.at(self.seen, book, seen)
        self.live_books = np.zeros(most, bool)
        self.live_books[book[live]] = True
        self.live = self.status == IN_PLAY

    @staticmethod
    def _games(names: Names, used: Longs) -> list[EventTexts]:
        """Return the texts of each event: teams, sport and league as in a row that names them as most rows do."""
        event = names.terms.event.values[used]

        def raw_labels(votes: Votes) -> list[RawLabel]:
            order = np.argsort(votes.by_term.values[used] != votes.lead.values[event], kind="stable")
            _, first = np.unique(event[order], return_index=True)
            return [names.terms.raw_labels[term] for term in used[order[first]].tolist()]

        return [
            EventTexts(
                league[0] or "", league[1] or "", league[2] or "", *team_names(teams[3], teams[4], league[1], league[2])
            )
            for league, teams in zip(raw_labels(names.events.leagues), raw_labels(names.events.pairs), strict=True)
        ]

    @staticmethod
    def _linked(links: list[str | None], event: Longs, book: Longs, slots: Any) -> dict[tuple[int, int], str]:
        """Return the source fields of one row per (event, book) that has an event id of its own."""
        if not links or not slots.size:
            return {}
        wide = int(book.max()) + 1
        pair = event * wide + book
        first = np.full(int(pair.max()) + 1, -1, np.int64)
        first[pair[::-1]] = slots[::-1]
        texts = _own_fields(links, np.flatnonzero(first >= 0), first[first >= 0])
        missing = np.ones(first.size, bool)
        missing[list(texts)] = False
        among = missing[pair]
        texts |= _own_fields(links, pair[among], slots[among])
        return {divmod(p, wide): link for p, link in texts.items()}

    # ---- for pages ----

    @cached_property
    def sports(self) -> list[str]:
        return [sport_id(game.sport) for game in self.games]

    @cached_property
    def leagues(self) -> list[str]:
        return [league_id(game.league, game.sport) if game.league else "" for game in self.games]

    @cached_property
    def place(self) -> dict[str, int]:
        return {game.id: at for at, game in enumerate(self.games)}

    @cached_property
    def order(self) -> Longs:
        """Return the order of events by start, then id; those without a start come last."""
        start = np.where(self.begins == NO_TIME, np.iinfo(np.int64).max, self.begins)
        rank = np.empty(len(self.games), np.int64)
        rank[sorted(range(len(self.games)), key=lambda at: self.games[at].id)] = np.arange(len(self.games))
        return np.lexsort((rank, start))

    @cached_property
    def selections(self) -> Longs:
        """Count the selections of each market type over all books."""
        _, first = np.unique(self._selection, return_index=True)  # codes include the market type
        return np.bincount(self.term_market[first], minlength=len(self.market_names))

    @cached_property
    def teams(self) -> dict[tuple[str, str], list[int]]:
        """Positions of events by (sport, team id)."""
        places: dict[tuple[str, str], list[int]] = {}
        for at, game in enumerate(self.games):
            for name in {game.home, game.away} - {""}:
                places.setdefault((self.sports[at], team_id(name, game.sport, game.league)), []).append(at)
        return places

    @cached_property
    def ids(self) -> BoardIds:
        books = [self.book_names[b] for b in np.flatnonzero(self.present.any(axis=0)).tolist()]
        markets = [self.market_names[m] for m in np.flatnonzero(self.markets.any(axis=0)).tolist()]
        raw = {game.sport for game in self.games}
        return BoardIds({*self.sports, *raw}, {*self.leagues, *(game.league for game in self.games)}, books, markets)

    def status_of(self, at: int) -> str:
        return STATUSES[self.status[at]]

    def books_of(self, at: int) -> list[str]:
        """Return the ids of the books with prices of an event, sorted."""
        return sorted({self.book_names[b] for b in np.flatnonzero(self.present[at]).tolist()})

    def markets_of(self, at: int) -> list[str]:
        """Return the market types of an event, sorted."""
        return sorted(self.market_names[m] for m in np.flatnonzero(self.markets[at]).tolist())

    def external_ids(self, at: int) -> dict[str, str]:
        """Return each book's own id of an event, if known."""
        ids = {}
        for b in np.flatnonzero(self.present[at]).tolist():
            link = self._links.get((at, b))
            if link is not None:
                ids[self.book_names[b]] = _external(link)
        return dict(sorted(ids.items()))


def _own_fields(links: list[str | None], pairs: Longs, slots: Longs) -> dict[int, str]:
    """Map pairs to a row's source fields, for rows with an event id of their own."""
    n = len(links)
    places = zip(pairs.tolist(), slots.tolist(), strict=True)
    return {p: link for p, s in places if s < n and (link := links[s]) is not None and _external(link)}


def _external(link: str) -> str:
    parts = link.split(SEPARATOR, _EXTERNAL + 1)
    return parts[_EXTERNAL] if len(parts) > _EXTERNAL else ""


class StatsCache:
    """Cache of statistics by board and books, recomputed after each update."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: OrderedDict[tuple[int, frozenset[str] | None], BoardStats] = OrderedDict()

    def at(self, board: Readable, books: Iterable[str] | None) -> BoardStats:
        key = id(board), None if books is None else frozenset(books)
        stats = self._cached.get(key)
        if stats is None or stats.number != board.number:
            stats = BoardStats(board, key[1])
            with self._lock:
                self._cached[key] = stats
                self._cached.move_to_end(key)
                while len(self._cached) > _MOST_CACHED:
                    self._cached.popitem(last=False)
        return stats
