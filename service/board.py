"""Queries: which rows of a board fit, in which order, and which of them are on a page.

An `Index` keeps, beside a board, what its terms say (as codes) and its rows in *the order*: start of the event, event,
market, line, side, book. Prices do not change it. An event's start counts as it was when first known, so that a
postponed event keeps its place and a walk by cursor meets every row once. Conditions on texts become a mask over
terms, those on events a list of events; what is left is one pass of a kernel over the rows of those.

All of it happens while the board is held still: an answer is of one update.
"""
# mypy: allow-untyped-calls

import base64
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.board.names import UNREAD, Names, Wording
from oddsengine.board.quotes import SEPARATOR
from oddsengine.board.rows import BOOK_BITS, GONE, ON
from oddsengine.board.state import Board
from oddsengine.catalog.names import plain
from oddsengine.engine import Engine
from oddsengine.groups import NO_TIME, Bytes, Floats, Ints, Longs, Words
from oddsengine.reasons import CODES
from service.problems import invalid
from service.scan import arrange, begins, best, between, came, mains, prices, scan, states

Bools = npt.NDArray[np.bool_]
Key = tuple[Any, ...]
_Found = tuple[Ints, dict[str, list[str]]]
LATEST = np.iinfo(np.int64).max
SORTS = (
    "odds_american", "odds_decimal", "probability", "timestamp", "event_start_time", "sportsbook", "sport", "league",
)  # fmt: skip
_UNSAID = SEPARATOR * 2  # neither main nor alternate
_BOOK = (1 << BOOK_BITS) - 1
_SUBJECT = (1 << 24) - 1
_CHUNK = 500  # terms that are read while a writer waits
_KEPT = 128  # masks
_MOST_FOUND = 2_000_000  # rows that are remembered as fitting
_QUICK = 250_000  # rows that are looked through in a fraction of a millisecond
_TYPES = frozenset({"home", "draw", "away", "over", "under", "yes", "no", "odd", "even", "none", "other"})


class Filter(NamedTuple):
    """What the rows of an answer have in common; None is no condition. American prices, times in microseconds."""

    books: frozenset[str] | None = None
    sport: tuple[str, ...] | None = None
    league: tuple[str, ...] | None = None
    market: tuple[str, ...] | None = None
    event: tuple[str, ...] | None = None
    team: tuple[str, ...] | None = None
    q: str | None = None
    player: str | None = None
    stat: tuple[str, ...] | None = None
    selection: tuple[str, ...] | None = None
    prop: bool | None = None
    main: bool | None = None
    live: bool | None = None
    low: float | None = None
    high: float | None = None
    day: tuple[int, int] | None = None
    after: int | None = None


class Cursor(NamedTuple):
    """Where a page ended: the sort and its value, and the last row's place in the order (or only its event's)."""

    sort: str
    value: int | float | str | None
    start: int
    event: str
    rest: tuple[str, str, str, str, int, int, str, str, int, str] | None  # of the term, then the book

    def text(self) -> str:
        """What a caller holds."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, sort: str, *, rows: bool = True) -> "Cursor":
        """Read it back.

        Raises
        ------
        Problem
            400 if it is none, or one of another order.
        """
        try:
            raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
            found = msgspec.json.decode(raw, type=cls)
        except (ValueError, msgspec.DecodeError, RecursionError):
            raise invalid("cursor is none of ours: send next_cursor of the page before, unchanged") from None
        textual = sort.lstrip("-") in ("sportsbook", "sport", "league")
        fits = isinstance(found.value, str) if textual else isinstance(found.value, float | int)
        beyond = not isinstance(found.value, str | None) and not abs(found.value) <= LATEST
        fits = fits if sort else found.value is None
        if beyond or not fits or found.sort != sort or (found.rest is not None) != rows:
            raise invalid("cursor belongs to a list in another order: keep sort and group_by as they were")
        return found


class Found(NamedTuple):
    """Rows as the board had them at one update, in the order of an answer."""

    term: list[int]
    book: list[int]
    id: Words
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs
    start: Longs
    moved: Longs
    flags: Bytes
    main: list[int]  # 1 main, 0 alternate, -1 not known
    links: list[str | None] | None
    texts: Sequence["Said"]  # by term; only grows
    books: Sequence[str]  # ids by book; only grows


class Said(NamedTuple):
    """What a term says on the wire."""

    event_id: str
    sport: str
    league: str
    home_team: str
    away_team: str
    market_type: str
    selection: str
    selection_type: str
    line: float | None
    player_name: str | None
    stat_category: str | None
    team_side: str | None
    market_segment: str


class _Codes:
    """A column of codes that grows by many at a time, and the texts that they stand for."""

    def __init__(self) -> None:
        self.texts: list[Any] = []
        self.of: dict[Any, int] = {}
        self._data = np.empty(1024, np.int32)
        self.size = 0
        self.new: list[int] = []

    def code(self, text: Any) -> int:
        """Code of a text; made when new."""
        found = self.of.get(text)
        if found is None:
            found = self.of[text] = len(self.texts)
            self.texts.append(text)
        return found

    def settle(self) -> None:
        """Put what was appended to `new` into the column."""
        end = self.size + len(self.new)
        if end > self._data.size:
            grown = np.empty(end + end // 2, np.int32)
            grown[: self.size] = self._data[: self.size]
            self._data = grown
        self._data[self.size : end] = self.new
        self.size, self.new = end, []

    @property
    def values(self) -> Ints:
        """The column."""
        return self._data[: self.size]

    def among(self, codes: Iterable[int]) -> Bools:
        """Which terms have one of some codes."""
        chosen = np.zeros(len(self.texts) + 1, bool)
        chosen[list(codes)] = True
        return np.take(chosen, self.values)

    def holding(self, part: str) -> Bools:
        """Which terms have a text with a part in it."""
        return self.among([at for at, text in enumerate(self.texts) if part in text])


_COLUMNS = (
    "sport", "league", "market", "home", "away", "player", "selection", "stat", "type", "prop", "straight", "drawn",
)  # fmt: skip


class Terms:
    """What the terms of a board say, in order of their codes, and the order they stand in."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.said: list[Said] = []
        self.keys: list[Key] = []  # place within the event
        self.columns = {name: _Codes() for name in _COLUMNS}
        self.ways = np.empty(0, np.uint8)
        self.turned = np.empty(0, np.uint8)
        self.sorted = np.empty(0, np.int32)  # terms, event by event
        self.block = np.zeros(1, np.int64)
        self.place = np.empty(0, np.int32)  # of each term in `sorted`
        self.teams: dict[str, set[int]] = {}  # as they compare -> events
        self.leagues: dict[tuple[Any, Any], tuple[str, str]] = {}
        self.masks: dict[Any, Any] = {}
        self._pairs = 0

    def learn(self, most: int) -> bool:
        """Read up to so many terms that are new; True when none is left."""
        names = self.names
        at, end = len(self.said), min(len(names.wordings), len(self.said) + most)
        if at == end:
            return True
        place, other, turned = names.place.values, names.other.values, names.turned.values
        own = np.where(turned[at:end, None] != 0, other[at:end], place[at:end]).tolist()
        event, tie = names.event.values[at:end].tolist(), names.tie.values[at:end].tolist()
        for term, parts, e, checksum in zip(range(at, end), own, event, tie, strict=True):
            self._read(names.wordings[term], parts, e, checksum)
        self._outcomes(at, end)
        for column in self.columns.values():
            column.settle()
        self.ways = ((place[:end, 3] >> 8) & 255).astype(np.uint8)
        self.turned = np.concatenate((self.turned, turned[at:end]))
        self._sort(at, end)
        self.masks.clear()
        return end == len(names.wordings)

    def _read(self, wording: Wording, own: list[int], event: int, tie: int) -> None:
        names, columns = self.names, self.columns
        high, low, with_draw, rest = own
        ways, side = rest >> 8 & 255, low & 15
        kind = names.kinds[(with_draw if ways else high) >> 44]
        line, subject, player = (low >> 4) - (1 << 30), high >> 20 & _SUBJECT, wording[9] or None
        sides = kind.outcomes
        owner = names.subjects[subject] if kind.subject == "team" else ""
        word = sides[side] if side != UNREAD and side < len(sides) else ""
        given = (wording[8] or "").strip().lower()
        if not given or not _TYPES.issuperset(given.split("_")):
            given = (f"{owner}_{word}" if owner and word else word) or "other"
        sport, league = self._league(wording, event)
        segment = wording[6] or kind.period or catalog.FULL_GAME
        shown = None if (kind.family and not kind.has_line) or wording[-1] != wording[-1] else wording[-1]
        market, selection = wording[5] or "", wording[7] or ""
        stat = wording[10] or kind.stat or None
        self.said.append(
            Said(
                wording[0], sport, league, wording[3] or "", wording[4] or "", market, selection, given, shown, player,
                stat, wording[11] or owner or None, segment,
            )
        )  # fmt: skip
        about = names.subjects[subject] if kind.subject == "player" else ""
        spoken = catalog.normalise(player or "") or about
        chosen, type_id = catalog.normalise(selection), _plain(market)
        columns["sport"].new.append(columns["sport"].code(sport))
        columns["league"].new.append(columns["league"].code((sport, league)))
        columns["market"].new.append(columns["market"].code((market, sport, stat or "")))
        columns["home"].new.append(columns["home"].code(catalog.normalise(wording[3] or "")))
        columns["away"].new.append(columns["away"].code(catalog.normalise(wording[4] or "")))
        columns["player"].new.append(columns["player"].code(spoken))
        columns["selection"].new.append(columns["selection"].code(chosen))
        columns["stat"].new.append(columns["stat"].code(_plain(stat or "")))
        columns["type"].new.append(columns["type"].code(given))
        columns["prop"].new.append(columns["prop"].code(kind.prop or type_id.startswith("player_")))
        self.keys.append((type_id, segment, stat or "", spoken, line, side, chosen, given, tie))
        for team in (columns["home"].texts[columns["home"].new[-1]], columns["away"].texts[columns["away"].new[-1]]):
            if team:
                name = catalog.team_aliases(sport).get(team, team)
                self.teams.setdefault(name, set()).add(event)

    def _league(self, wording: Wording, event: int) -> tuple[str, str]:
        """Ids of sport and league; where a row names none, those of the event."""
        given = wording[1] or "", wording[2] or ""
        if not all(given):
            most, league = self.names.sports[event]
            given = given[0] or most.id, given[1] or league
        found = self.leagues.get(given)
        if found is None:
            sport = catalog.sport(given[0]).id
            found = self.leagues[given] = sport, catalog.league(given[1], sport).id if given[1] else ""
        return found

    def _outcomes(self, at: int, end: int) -> None:
        """What is the same bet: by what the term means, or by its own texts where that is not known."""
        names, straight, drawn = self.names, self.columns["straight"], self.columns["drawn"]
        ids = names.id.values[at:end].tolist()
        events = names.event.values[at:end].tolist()
        for ident, e, (high, low, with_draw, rest) in zip(
            ids, events, names.place.values[at:end].tolist(), strict=True
        ):
            ways = rest >> 8 & 255
            mine: Key = (e, high, (low & -16) | (low & 15) >> 1 if ways else low)
            other: Key = (e, with_draw, low)
            if rest & 255:
                mine = other = (ident,)
            straight.new.append(straight.code(mine))
            drawn.new.append(straight.code(other))

    def turn(self) -> None:
        """Look again at what is the same bet, if an event was turned round."""
        now = self.names.turned.values[: self.turned.size]
        if not np.array_equal(now, self.turned):
            self.columns["straight"], self.columns["drawn"] = _Codes(), _Codes()
            self._outcomes(0, self.turned.size)
            self.columns["straight"].settle()
            self.columns["drawn"].settle()
            self.turned = now.copy()

    def _sort(self, at: int, end: int) -> None:
        """Put new terms into their places: each event's in order, events by code."""
        event = self.names.event.values[:end]
        new: dict[int, list[int]] = {}
        for term, e in zip(range(at, end), event[at:end].tolist(), strict=True):
            new.setdefault(e, []).append(term)
        block, pieces, done = self.block, [], 0
        for e in sorted(new):
            known = e < block.size - 1
            here = self.sorted[block[e] : block[e + 1]].tolist() if known else []
            if known:
                pieces.append(self.sorted[done : block[e]])
                done = int(block[e + 1])
            else:
                pieces.append(self.sorted[done:])
                done = self.sorted.size
            pieces.append(np.array(sorted(here + new[e], key=self.keys.__getitem__), np.int32))
        pieces.append(self.sorted[done:])
        self.sorted = np.concatenate(pieces)
        counts = np.bincount(event, minlength=len(self.names.events))
        self.block = np.concatenate(([0], np.cumsum(counts)))
        self.place = np.empty(end, np.int32)
        self.place[self.sorted] = np.arange(end, dtype=np.int32)

    # ---- conditions ----

    def kept(self, name: str, value: Any, make: Callable[[Any], Any]) -> Any:
        """What was made of a condition, or is made now; forgotten when terms come."""
        found = self.masks.get((name, value))
        if found is None:
            if len(self.masks) >= _KEPT:
                self.masks.clear()
            found = self.masks[name, value] = make(value)
        return found

    def by_sport(self, asked: tuple[str, ...]) -> tuple[Bools, list[str]]:
        """Terms of some sports, and the ids nobody knows."""
        column = self.columns["sport"]
        ids = {name: catalog.sport(name).id for name in asked}
        missing = [name for name, id_ in ids.items() if id_ not in column.of and id_ not in catalog.sports()]
        return column.among(column.of[id_] for id_ in set(ids.values()) if id_ in column.of), missing

    def by_league(self, asked: tuple[str, ...]) -> tuple[Bools, list[str]]:
        """Terms of some leagues, and the ids nobody knows."""
        column, codes, missing = self.columns["league"], set[int](), list[str]()
        for name in asked:
            hits = [at for at, (sport, id_) in enumerate(column.texts) if id_ and _league(name, sport) == id_]
            codes.update(hits)
            if not hits and not any(_league(name, sport) in catalog.leagues() for sport in ("", *catalog.sports())):
                missing.append(name)
        return column.among(codes), missing

    def by_market(self, asked: tuple[str, ...]) -> tuple[Bools, list[str]]:
        """Terms of some market types or categories of them, and the ids nobody knows."""
        column, codes, missing = self.columns["market"], set[int](), list[str]()
        found = np.zeros(len(self.said), bool)
        for name in asked:
            known = False
            for kind in catalog.categories().get(name.lower(), (name,)):
                if kind == "player_*":
                    found |= self.by_prop(wanted=True)
                    known = True
                    continue
                hits = [at for at, text in enumerate(column.texts) if same_market(kind, *text)]
                codes.update(hits)
                known |= bool(hits) or name.lower() in catalog.categories() or catalog.market_type(kind).usable
            if not known:
                missing.append(name)
        return found | column.among(codes), missing

    def by_prop(self, *, wanted: bool) -> Bools:
        """Terms that are player props, or that are none."""
        column = self.columns["prop"]
        return column.among([column.of[wanted]] if wanted in column.of else [])

    def by_text(self, part: str) -> Bools:
        """Terms in whose names a text is."""
        names = [self.columns[name] for name in ("home", "away", "player", "selection")]
        found: Bools = np.logical_or.reduce([column.holding(part) for column in names])
        return found

    def by_player(self, part: str) -> Bools:
        """Terms about a player with a text in the name."""
        column = self.columns["player"]
        return column.among([at for at, name in enumerate(column.texts) if name and part in name])

    def by_stat(self, asked: tuple[str, ...]) -> Bools:
        """Terms that count something."""
        column = self.columns["stat"]
        ids = {plain(name) for name in asked} - {""}
        return column.among(column.of[id_] for id_ in ids if id_ in column.of)

    def by_selection(self, asked: tuple[str, ...]) -> Bools:
        """Terms whose selection, or its type, is one of some."""
        texts, types = self.columns["selection"], self.columns["type"]
        named = {catalog.normalise(name) for name in asked}
        typed = {name.lower() for name in asked}
        return texts.among(texts.of[name] for name in named if name in texts.of) | types.among(
            types.of[name] for name in typed if name in types.of
        )

    def events_of(self, asked: tuple[str, ...]) -> tuple[set[int], list[str]]:
        """Events in which a team of some names plays, and the names that nobody has."""
        events, missing = set[int](), list[str]()
        places = {(sport, league) for sport, league in self.columns["league"].texts}
        for name in asked:
            text = catalog.normalise(name)
            known = {text}
            for sport, league in places:
                team = catalog.team(name, sport, league)
                known.add(catalog.normalise(team.name) if team else catalog.team_aliases(sport).get(text, text))
            hits = set[int]().union(*(self.teams.get(each, ()) for each in known))
            events |= hits
            if not hits:
                missing.append(name)
        return events, missing


_plain = lru_cache(maxsize=65536)(plain)


def _league(name: str, sport: str) -> str:
    return catalog.league(name, sport or None).id


@lru_cache(maxsize=65536)
def same_market(asked: str, market: str, sport: str, stat: str) -> bool:
    """Whether a row's market type is the one that is asked for, under this name or another one."""
    if plain(asked) == plain(market):
        return True
    wanted, found = catalog.market_type(asked, sport, stat), catalog.market_type(market, sport, stat)
    return wanted.usable and found.usable and (wanted.base, wanted.period) == (found.base, found.period)


class Index:
    """One board's terms and rows in order."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mutex = threading.RLock()
        self._known = np.empty(0, np.int64)  # key of every slot, as it stands in `slots`
        self._at = -1
        self._starts: dict[str, int] = {}
        self.books: list[str] = []  # ids, by code
        self._rename(Names())

    def _rename(self, names: Names) -> None:
        """Begin anew with other names."""
        self.terms = Terms(names)
        self._known = np.empty(0, np.int64)
        self.first = np.zeros(1, np.int64)
        self.slots, self.book = np.empty(0, np.int32), np.empty(0, np.int32)
        self.looked, self.marks = np.empty(0, np.uint8), np.empty(0, np.uint8)  # units, and main lines by slot
        self.room = _room(1, 1)
        self.encoded: dict[Any, msgspec.Raw] = {}  # rows as they were sent, by all that they say
        self._found: dict[Hashable, _Found] = {}  # of this update
        self._held = 0  # rows in it
        self.begin = np.empty(0, np.int64)
        self.events = np.empty(0, np.int32)  # in order
        self.event_keys: list[tuple[int, str]] = []
        self.spot = np.empty(0, np.int32)  # of each event in the order
        self.books, self.rank = [], np.empty(0, np.int32)
        self._ranks: dict[str, tuple[Ints, list[str]]] = {}

    @contextmanager
    def reading(self, *, judged: bool = False, wait: bool = True) -> Iterator["Reading"]:
        """Hold the board still, with everything here up to date with it.

        Raises
        ------
        BlockingIOError
            If it would have to wait, for another thread or for much work, and may not.
        """
        if not self._mutex.acquire(blocking=wait):
            raise BlockingIOError("another thread reads the board")
        try:
            if not wait:
                with self._engine.judged(wait=False) if judged else self._engine.still(wait=False) as board:
                    stale = self._engine.number != self._at or board.names is not self.terms.names
                    if stale or self.slots.size > _QUICK:
                        raise BlockingIOError("there is much to read")
                    yield Reading(self, board)
                return
            while True:  # many new terms are read a part at a time
                with self._engine.still() as board:
                    if board.names is not self.terms.names:
                        self._rename(board.names)
                    if len(board.names.wordings) - len(self.terms.said) <= _CHUNK:
                        break
                    self.terms.learn(_CHUNK)
            with self._engine.judged() if judged else self._engine.still() as board:
                if self._engine.number != self._at or board.names is not self.terms.names:
                    self._refresh(board)
                    self._at = self._engine.number
                yield Reading(self, board)
        finally:
            self._mutex.release()

    def _refresh(self, board: Board) -> None:
        names, rows = board.names, board.rows
        if names is not self.terms.names:
            self._rename(names)
        learnt = len(self.terms.said)
        while not self.terms.learn(LATEST):
            pass
        self.terms.turn()
        state, top = rows.state[: rows.top], rows.top
        new = len(names.books) > len(self.books) or len(self.terms.said) > learnt
        if new:
            self._books(names)
        if top > self._known.size:
            grown = np.full(max(rows.key.size, 1024), -1, np.int64)
            grown[: self._known.size] = self._known
            self._known = grown
        if came(rows.key, state, self._known) or new:
            self.first = np.zeros(len(self.terms.said) + 1, np.int64)
            self.slots, self.book = np.empty(top, np.int32), np.empty(top, np.int32)
            arrange(rows.key, state, self.terms.place, self.rank, self.first, self.slots, self.book)
        self._order(board)
        self._found, self._held = {}, 0
        self.looked, self.marks = np.zeros(names.unit_event.size, np.uint8), np.empty(top, np.uint8)
        self.room = _room(int(board.units.size.max()) + 1, len(names.books) // 64 + 1)

    def _books(self, names: Names) -> None:
        ids = [catalog.book(name).id for name in names.books]
        self.books.extend(ids[len(self.books) :])
        order = sorted(range(len(ids)), key=ids.__getitem__)
        self.rank = np.empty(len(ids), np.int32)
        self.rank[order] = np.arange(len(ids), dtype=np.int32)
        self._ranks.clear()

    def _order(self, board: Board) -> None:
        """Put events in order; only those move whose start was not known."""
        names, rows = board.names, board.rows
        ids = [event.id for event in names.events[self.begin.size :]]
        if ids:
            starts = [self._starts.get(id_, int(NO_TIME)) for id_ in ids]
            self.begin = np.concatenate((self.begin, np.array(starts, np.int64)))
        elif not (self.begin == NO_TIME).any():
            return
        found = np.full(self.begin.size, LATEST)
        begins(rows.key, rows.state[: rows.top], rows.start, names.event.values, self.begin, found)
        known = np.flatnonzero(found != LATEST)
        if not known.size and not ids:
            return
        self.begin[known] = found[known]
        for e in known.tolist():
            self._starts[names.events[e].id] = int(found[e])
        if len(self._starts) > 4 * self.begin.size + 1024:
            here = {event.id for event in names.events}
            self._starts = {id_: start for id_, start in self._starts.items() if id_ in here}
        starts = [LATEST if start == NO_TIME else start for start in self.begin.tolist()]
        keyed = sorted((start, event.id, e) for e, (start, event) in enumerate(zip(starts, names.events, strict=True)))
        self.events = np.array([e for _, _, e in keyed], np.int32)
        self.event_keys = [(start, id_) for start, id_, _ in keyed]
        self.spot = np.empty(self.events.size, np.int32)
        self.spot[self.events] = np.arange(self.events.size, dtype=np.int32)

    def kept(self, what: Hashable, make: Callable[[], _Found]) -> _Found:
        """Rows that fit, found once an update: the next page asks for the same ones."""
        found = self._found.get(what)
        if found is None:
            found = make()
            if self._held + found[0].size > _MOST_FOUND:
                self._found, self._held = {}, 0
            self._found[what] = found
            self._held += found[0].size
        return found

    def ranks(self, column: str) -> tuple[Ints, list[str]]:
        """Rank of each code of a column by its text, and the texts in order."""
        texts = {
            "sportsbook": lambda: self.books,
            "sport": lambda: self.terms.columns["sport"].texts,
            "league": lambda: [league for _, league in self.terms.columns["league"].texts],
        }[column]()
        known = self._ranks.get(column)
        if known is None or known[0].size != len(texts):
            order = sorted(set(texts))
            place = {text: at for at, text in enumerate(order)}
            known = self._ranks[column] = np.array([place[text] for text in texts], np.int32), order
        return known


class Reading:
    """A board held still, and what can be asked of it."""

    def __init__(self, index: Index, board: Board) -> None:
        self.index, self.board = index, board
        self.terms = index.terms

    @property
    def now(self) -> int:
        """The moment of the board's last step."""
        return self.board.now

    def known(self, event: str) -> bool:
        """Whether an event has a row on the board."""
        code = self.board.names.event_codes.get(event)
        if code is None:
            return False
        units = np.array(self.board.names.event_units[code], np.int64)
        return bool((self.board.rows.state[self.board.units.rows(units)] == ON).any())

    # ---- rows ----

    def rows(self, f: Filter, unknown: dict[str, list[str]], *, gone: bool = False) -> Ints:
        """Slots of the rows that fit, in order; or of those that left. Ids that nobody knows are added to `unknown`."""
        if f.low is not None or f.high is not None:
            some = f._replace(low=None, high=None)
            found = self.rows(some, unknown, gone=gone)
            price, _ = self.index.kept(("prices", some, gone), lambda: (self._prices(found), {}))
            out = np.empty(found.size + 1, np.int32)
            return out[: between(found, price, *_bounds(f.low, f.high), out)]
        found, missing = self.index.kept(("rows", f, gone), lambda: self._rows(f, gone=gone))
        unknown.update(missing)
        return found

    def _prices(self, found: Ints) -> Ints:
        out = np.empty(found.size, np.int32)
        prices(found, self.board.rows.odds, self.board.rows.american, out)
        return out

    def _rows(self, f: Filter, *, gone: bool) -> tuple[Ints, dict[str, list[str]]]:
        index, terms, rows = self.index, self.terms, self.board.rows
        unknown: dict[str, list[str]] = {}
        events = self._events(f, unknown)
        mask = self._mask(f, unknown)
        books = self._books(f.books)
        out = np.empty(index.slots.size, np.int32)
        day, end = f.day or (int(NO_TIME), 0)
        n = scan(
            events, terms.block, terms.sorted, index.first, index.slots, index.book, mask, rows.state, rows.flags,
            rows.start, rows.moved, index.begin, books, GONE if gone else ON, -1 if f.live is None else int(f.live),
            int(NO_TIME) if f.after is None else f.after, day, end, out,
        )  # fmt: skip
        found: Ints = out[:n].copy()
        if f.main is not None and n:
            found = found[self.main(found) == int(f.main)]
        return found, unknown

    def _events(self, f: Filter, unknown: dict[str, list[str]]) -> Ints:
        """Events in order, of those that are asked for."""
        chosen: set[int] | None = None
        if f.event is not None:
            codes = self.board.names.event_codes
            chosen = {codes[id_] for id_ in f.event if id_ in codes}
            if missing := [id_ for id_ in f.event if not self.known(id_)]:
                unknown["event"] = missing
        if f.team is not None:
            playing, missing = self.terms.kept("team", f.team, self.terms.events_of)
            chosen = playing if chosen is None else chosen & playing
            if missing:
                unknown["team"] = missing
        if chosen is None:
            return self.index.events
        spots = np.sort(self.index.spot[np.fromiter(chosen, np.int64, len(chosen))])
        return self.index.events[spots]

    def _mask(self, f: Filter, unknown: dict[str, list[str]]) -> Bytes:
        """1 for each term that fits."""
        terms = self.terms
        found: list[Bools] = []
        for name, value, make in (
            ("sport", f.sport, terms.by_sport),
            ("league", f.league, terms.by_league),
            ("market", f.market, terms.by_market),
        ):
            if value is not None:
                mask, missing = terms.kept(name, value, make)
                found.append(mask)
                if missing:
                    unknown[name] = missing
        every: tuple[tuple[str, Any, Callable[[Any], Bools]], ...] = (
            ("q", f.q, terms.by_text), ("player", f.player, terms.by_player), ("stat", f.stat, terms.by_stat),
            ("selection", f.selection, terms.by_selection), ("prop", f.prop, lambda is_: terms.by_prop(wanted=is_)),
        )  # fmt: skip
        found.extend(terms.kept(name, value, make) for name, value, make in every if value is not None)
        if not found:
            return np.ones(len(terms.said), np.uint8)
        mask = found[0]
        for more in found[1:]:
            mask = mask & more
        return np.ascontiguousarray(mask).view(np.uint8)

    def _books(self, books: frozenset[str] | None) -> Bytes:
        """1 for each book that is wanted, by code."""
        if books is None:
            return np.ones(len(self.index.books) + 1, np.uint8)
        return np.array([*(id_ in books for id_ in self.index.books), False], np.uint8)

    def missing_books(self, asked: Collection[str]) -> list[str]:
        """Books that are neither in the catalog nor on the board."""
        known = catalog.books()
        ids = {name: catalog.book(name).id for name in asked}
        return [name for name, id_ in ids.items() if id_ not in known and id_ not in self.index.books]

    def best(self, f: Filter, unknown: dict[str, list[str]]) -> Ints:
        """Of the rows that fit, the best price of each outcome; suspended prices and those set aside are none.

        Of equal prices it is the one seen last, for it is the likeliest to be there still; then the first book by id.
        """
        found = self.rows(f, unknown)
        chosen, _ = self.index.kept(("best", f), lambda: (self._best(found), {}))
        return chosen

    def _best(self, found: Ints) -> Ints:
        rows, names, units, terms = self.board.rows, self.board.names, self.board.units, self.terms
        count = len(names.unit_event.values)
        straight, drawn = terms.columns["straight"], terms.columns["drawn"]
        held = np.full(2 * len(straight.texts) + 2, -1, np.int32)
        groups, out = np.empty(found.size, np.int64), np.empty(found.size, np.int32)
        wide = len(names.books) // 64 + 1
        n = best(
            found, rows.key, rows.state, rows.flags, rows.odds, rows.seen, rows.aside, rows.unit, self.index.rank,
            terms.ways, straight.values, drawn.values, units.start, units.size, units.pool, names.place.values,
            CODES["unmapped"], CODES["ambiguous_moneyline"], np.zeros(count, np.uint8),
            np.empty((count, wide), np.uint64), held, groups, out,
        )  # fmt: skip
        return out[:n]

    def main(self, found: Ints) -> npt.NDArray[np.int8]:
        """1 for rows on the main line of their market, 0 for others, -1 if not known; the source's word first."""
        rows, names, units = self.board.rows, self.board.names, self.board.units
        term = rows.key[found] >> BOOK_BITS
        place = names.place.values
        rest = place[term, 3]
        kinds = names.kinds
        lined, last = self.terms.kept("kinds", len(kinds), lambda _: _kinds(kinds))
        out = np.where(rest & 255, -1, 1).astype(np.int8)
        asked = np.flatnonzero((out == 1) & (rest >> 8 & 255 == 0) & lined[place[term, 0] >> 44])
        if asked.size:
            some = np.unique(rows.unit[found[asked]]).astype(np.int64)
            looked, marks = self.index.looked, self.index.marks
            mains(
                some, units.start, units.size, units.pool, rows.key, rows.state, rows.flags, rows.odds, place, last,
                *self.index.room, looked, marks,
            )  # fmt: skip
            out[asked] = marks[found[asked]]
        if rows.links:
            self._told(found, out)
        return out

    def _told(self, found: Ints, out: npt.NDArray[np.int8]) -> None:
        """Put in what sources say of their own lines."""
        links, n = self.board.rows.links, len(self.board.rows.links)
        for at, slot in enumerate(found.tolist()):
            link = links[slot] if slot < n else None
            if link is None or link.endswith(_UNSAID):
                continue
            *_, is_main, alternate = link.split(SEPARATOR)
            out[at] = is_main == "True" if is_main else alternate == "False"

    def states(self, found: Ints) -> list[Any]:
        """All that each row says, as something to compare: equal here, equal on the wire."""
        index, rows, names, units = self.index, self.board.rows, self.board.names, self.board.units
        lined, last = self.terms.kept("kinds", len(names.kinds), lambda _: _kinds(names.kinds))
        out = np.empty((found.size, 7), np.int64)
        states(
            found, rows.key, rows.odds.view(np.int64), rows.american.view(np.int64), rows.seen, rows.changed,
            rows.start, rows.flags, rows.unit, names.event.values, index.begin, lined, units.start, units.size,
            units.pool, rows.state, rows.odds, names.place.values, last, *index.room, index.looked, index.marks, out,
        )  # fmt: skip
        raw, size = out.tobytes(), 7 * out.itemsize
        said: list[Any] = [raw[at : at + size] for at in range(0, len(raw), size)]
        links = rows.links
        if links:
            n = len(links)
            said = [(what, links[s] if s < n else None) for what, s in zip(said, found.tolist(), strict=True)]
        return said

    def take(self, found: Ints) -> Found:
        """What the board says of some rows."""
        rows = self.board.rows
        key, start = rows.key[found], rows.start[found]
        term = key >> BOOK_BITS
        if (start == NO_TIME).any():
            start = np.where(start == NO_TIME, self.index.begin[self.board.names.event.values[term]], start)
        links: list[str | None] | None = None
        if rows.links:
            n = len(rows.links)
            links = [rows.links[s] if s < n else None for s in found.tolist()]
        return Found(
            term.tolist(), (key & _BOOK).tolist(), rows.id[found], rows.odds[found], rows.american[found],
            rows.seen[found], rows.changed[found], start, rows.moved[found], rows.flags[found],
            self.main(found).tolist(), links, self.terms.said, self.index.books,
        )  # fmt: skip

    # ---- order and pages ----

    def values(self, found: Ints, sort: str) -> npt.NDArray[Any]:
        """What some rows are sorted by, smallest first; a start that is not known comes last."""
        rows, terms, index = self.board.rows, self.terms, self.index
        name = sort.removeprefix("-")
        values: npt.NDArray[Any]
        if name == "odds_american":
            odds, values = rows.odds[found], rows.american[found]
            made = np.where(odds >= 2.0, (odds - 1.0) * 100.0, -100.0 / (odds - 1.0))
            values = np.where(np.isnan(values), made, values)
        elif name in ("odds_decimal", "probability"):
            values = rows.odds[found] if name == "odds_decimal" else 1.0 / rows.odds[found]
        elif name in ("timestamp", "moved"):
            values = (rows.seen if name == "timestamp" else rows.moved)[found]
        elif name == "event_start_time":
            event = self.board.names.event.values[rows.key[found] >> BOOK_BITS]
            start = np.where(rows.start[found] == NO_TIME, index.begin[event], rows.start[found])
            return np.where(start == NO_TIME, LATEST, -start if sort[0] == "-" else start)
        elif name == "sportsbook":
            values = index.ranks(name)[0][rows.key[found] & _BOOK]
        else:
            values = index.ranks(name)[0][terms.columns[name].values[rows.key[found] >> BOOK_BITS]]
        return -values if sort[0] == "-" else values

    def _value(self, value: Any, sort: str) -> Any:
        """A sorted value as a cursor keeps it."""
        name = sort.removeprefix("-")
        if name in ("sportsbook", "sport", "league"):
            return self.index.ranks(name)[1][abs(int(value))]
        return value.item()

    def _before(self, cursor: Cursor) -> Any:
        """A cursor's value among the sorted ones of now."""
        name = cursor.sort.removeprefix("-")
        if name not in ("sportsbook", "sport", "league"):
            return cursor.value
        texts = self.index.ranks(name)[1]
        at: float = bisect_left(texts, str(cursor.value))
        if at == len(texts) or texts[int(at)] != cursor.value:
            at -= 0.5
        return -at if cursor.sort[0] == "-" else at

    def page(self, found: Ints, sort: str, limit: int, offset: int, cursor: Cursor | None) -> tuple[Ints, int]:
        """One page of some rows in order, and how many rows stand before it."""
        if not sort:
            before = offset if cursor is None else self._passed(found, cursor)
            return found[before : before + limit], before
        values = self.values(found, sort)
        before, chosen = offset, np.arange(found.size)
        if cursor is not None:
            last, passed = self._before(cursor), self._passed(found, cursor)
            chosen = np.flatnonzero((values > last) | ((values == last) & (chosen >= passed)))
            before, offset = found.size - chosen.size, 0
            values = values[chosen]
        return found[chosen[_smallest(values, offset, offset + limit)]], before

    def groups(
        self, found: Ints, sort: str, limit: int, offset: int, cursor: Cursor | None
    ) -> tuple[list[Ints], int, int, Ints]:
        """One page of events: the rows of each in order, events before, events in all, and the first row of each event.

        Events stand as their first rows do.
        """
        if sort:
            found = found[np.argsort(self.values(found, sort), kind="stable")]
        event = self.board.names.event.values[self.board.rows.key[found] >> BOOK_BITS]
        seen = np.full(len(self.board.names.events), found.size, np.int64)
        seen[event[::-1]] = np.arange(found.size - 1, -1, -1)  # the first one is written last
        codes = np.flatnonzero(seen < found.size)
        codes = codes[np.argsort(seen[codes])]
        first = seen[codes]
        before = offset
        if cursor is not None:
            spot = self.index.spot[codes]
            last = bisect_right(self.index.event_keys, (cursor.start, cursor.event))
            later = spot >= last
            if sort:
                values, at = self.values(found[first], sort), self._before(cursor)
                later = (values > at) | ((values == at) & later)
            before = int(codes.size - later.sum())
            chosen = np.flatnonzero(later)[:limit]
        else:
            chosen = np.arange(codes.size)[offset : offset + limit]
        shown = codes[chosen]
        at_event = np.full(len(self.board.names.events), -1, np.int64)
        at_event[shown] = np.arange(shown.size)
        mine = at_event[event]
        rows, mine = found[mine >= 0], mine[mine >= 0]
        parts: list[Ints] = []
        if shown.size:
            ends = np.cumsum(np.bincount(mine, minlength=shown.size))
            parts = np.split(rows[np.argsort(mine, kind="stable")], ends[:-1])
        return parts, before, int(codes.size), found[first[chosen]]

    def _key(self, slot: int) -> tuple[tuple[int, str], Key, str]:
        """A row's place in the order."""
        key = int(self.board.rows.key[slot])
        term = key >> BOOK_BITS
        event = self.index.event_keys[self.index.spot[self.board.names.event.values[term]]]
        return event, self.terms.keys[term], self.index.books[key & _BOOK]

    def _passed(self, found: Ints, cursor: Cursor) -> int:
        """How many of some rows in order stand at or before a cursor."""
        assert cursor.rest is not None
        last = (cursor.start, cursor.event), cursor.rest[:-1], cursor.rest[-1]
        return bisect_right(found, last, key=self._key)

    def cursor(self, slot: int, sort: str, *, event: bool = False) -> str:
        """Where a page ends that ends with a row, or with a row's event."""
        (start, id_), term, book = self._key(slot)
        value = self._value(self.values(np.array([slot], np.int32), sort)[0], sort) if sort else None
        return Cursor(sort, value, start, id_, None if event else (*term, book)).text()


def _kinds(kinds: Sequence[Any]) -> tuple[Bools, Longs]:
    """Whether each kind has lines, and its last outcome."""
    lined = np.array([kind.has_line for kind in kinds], bool)
    return lined, np.array([len(kind.outcomes) - 1 for kind in kinds], np.int64)


def _room(most: int, wide: int) -> tuple[Longs, Longs, Longs, Floats, Words]:
    """Room for the lines of the largest unit."""
    first, second, third = (np.empty(most, np.int64) for _ in range(3))
    return first, second, third, np.empty((most, 2)), np.empty((most, wide), np.uint64)


def _bounds(low: float | None, high: float | None) -> tuple[int, int]:
    """The hundredths between which American prices are shown; -100 is the price +100, also as a bound."""
    least, most = (None if price is None else 100.0 if price == -100.0 else price for price in (low, high))
    ends = np.iinfo(np.int32)
    return (
        ends.min if least is None else int(np.clip(np.ceil(round(least * 100.0, 6)), ends.min, ends.max)),
        ends.max if most is None else int(np.clip(np.floor(round(most * 100.0, 6)), ends.min, ends.max)),
    )


def _smallest(values: npt.NDArray[Any], first: int, last: int) -> Longs:
    """Places of the sorted values from `first` to `last`; equal ones in their order."""
    if last < values.size // 4:
        bound = np.partition(values, last)[last]
        some = np.flatnonzero(values <= bound)
    else:
        some = np.arange(values.size)
    if values.dtype == np.int32 and values.size and np.abs(values).max() < 1 << 15:
        values = values.astype(np.int16)  # few different ones sort by counting
    return some[np.argsort(values[some], kind="stable")[first:last]]


def warm() -> None:
    """Run every kernel once."""
    engine = Engine()
    rows = [
        {
            "sportsbook": book, "event_id": "e", "sport": "basketball", "home_team": "Home", "away_team": "Away",
            "market_type": market, "selection": side, "odds_decimal": 1.9, "line": line,
        }
        for book in ("a", "b")
        for market, line in (("moneyline", None), ("total_points", 200.5), ("total_points", 201.5))
        for side in (("Home", "Away") if line is None else ("Over", "Under"))
    ]  # fmt: skip
    engine.step(rows, datetime(2026, 1, 1, tzinfo=UTC))
    index = Index(engine)
    with index.reading(judged=True) as reading:
        found = reading.rows(Filter(main=True, low=-500.0), {})
        reading.take(reading.best(Filter(), {}))
        reading.states(found)
