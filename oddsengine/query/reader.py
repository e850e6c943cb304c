"""Answers queries on a consistent state of a board: matching rows, best prices, columns and pages.

Conditions on texts become a mask over terms and conditions on events a list of events. A kernel then scans the rows of
those events once. Everything is of one update.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.board.event_status import STATUSES
from oddsengine.board.facts import Facts
from oddsengine.board.row_links import SEPARATOR
from oddsengine.columns import NO_TIME, Bools, Bytes, Floats, Ints, Longs, Words
from oddsengine.guards.main_markets import main_lines
from oddsengine.identity.groups import mix
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, FREE, LIVE, ON, REMOVED, SUSPENDED
from oddsengine.identity.packed_terms import unpack
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.live.replica import ReadState
from oddsengine.live.update import Update
from oddsengine.maths.odds import even_money, quoted_american, round_american
from oddsengine.pricing.commission import Fees, after_fees, offered
from oddsengine.query.board_terms import TermIndex, TermTexts
from oddsengine.query.filter import LATEST, TEXTUAL, Cursor, Key, RowFilter
from oddsengine.query.main_lines import NOT_COMPUTED, MainLines, partitions_of
from oddsengine.query.row_kernels import (
    QuotedDraws,
    RowConditions,
    RowOrder,
    TermOutcomes,
    best_prices,
    between,
    page_between,
    row_states,
    scan,
)
from oddsengine.query.row_values import RowFair, fair_of_rows
from oddsengine.query.values import team_names
from oddsengine.tables.levels import levels_of_text

if TYPE_CHECKING:
    from oddsengine.query.index import Index

MOST_ROWS = 5_000  # maximum rows of a response, about as many kilobytes
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1  # hundredths


class OwnTexts(NamedTuple):
    """Fields that a source gives for a single price; empty if missing."""

    id: str
    deep_link: str
    sportsbook_name: str
    external_event_id: str
    market_id: str
    selection_id: str
    max_bet: str
    is_main_line: str
    is_alternate_line: str
    volume: str = ""
    volume_24h: str = ""
    open_interest: str = ""
    exchange_token_id: str = ""
    levels: str = ""
    commission: str = ""
    contract_fee: str = ""
    min_bet: str = ""
    bet_step: str = ""
    bet_delay: str = ""

    @classmethod
    def split(cls, link: str) -> "OwnTexts":
        """Split the joined texts stored on the board."""
        return cls(*link.split(SEPARATOR))

    @property
    def ladder(self) -> list[tuple[float, float]]:
        """Odds and stakes of its levels."""
        return levels_of_text(self.levels)


_MAIN = OwnTexts._fields.index("is_main_line")


class LegPrice(NamedTuple):
    """One price of an id."""

    book: str  # id
    raw_label: RawLabel
    own: OwnTexts | None


class BoardEvent(NamedTuple):
    """Status of an event and the texts of its rows."""

    status: str
    start: int  # microseconds, NO_TIME if unknown
    sport: str
    league: str
    home_team: str
    away_team: str


class OddsRows(NamedTuple):
    """Columns of rows at one update, in response order."""

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
    rejected: Bytes  # codes of rejection reasons
    main: list[int]  # 1 main, 0 alternate, -1 unknown
    links: list[str | None] | None
    texts: Sequence["TermTexts"]  # by term; append-only
    books: Sequence[str]  # ids by book; append-only

    @property
    def live(self) -> Bools:
        return np.asarray((self.flags & LIVE) != 0)

    @property
    def active(self) -> Bools:
        return np.asarray((self.flags & SUSPENDED) == 0)


class LineMarks(NamedTuple):
    """Main lines among the prices of some books after an update, as `BoardReader.main`."""

    main: npt.NDArray[np.int8]  # per row of `Update.rows` and `Update.judged`, in order
    others: npt.NDArray[np.int8]  # per row of `Marks.others`
    changed: Bools  # of these: whether the main line among these books, the event's start or its sport changed


class Marks(NamedTuple):
    """Rows changed by main lines after an update, and the main lines by set of books."""

    changed: Bools  # per row of `Update.rows` and `Update.judged`: whether a main line, start or sport changed
    others: Facts  # rows outside the update for which one of these changed
    lines: dict[frozenset[str] | None, LineMarks]
    relabelled: TermIndex | None = None  # the terms before this update if it changed the sport of an event


class BoardReader:
    """Queries on a board that does not change meanwhile."""

    def __init__(self, index: "Index", shown: ReadState, lines: MainLines, *, judged: bool) -> None:
        self.index, self.board, self._shown, self.lines, self._judged = index, shown.board, shown, lines, judged
        self.terms = index.terms

    @property
    def number(self) -> int:
        """Number of the board's last step."""
        return self.board.number

    @property
    def now(self) -> int:
        """Time of the board's last step."""
        return self.board.now

    @property
    def moment(self) -> int:
        """The whole second at which ages are evaluated."""
        return self.board.moment

    def has_event(self, event: str) -> bool:
        """Whether the board has ever had a row of an event."""
        return event in self.board.names.events.codes

    def has_rows(self, event: str) -> bool:
        code = self.board.names.events.codes.get(event)
        if code is None:
            return False
        partitions = np.array(self.board.names.partitions.of_event[code], np.int64)
        return bool((self.board.rows.state[self.board.partitions.slots_of(partitions)] == ON).any())

    def event(self, event: str) -> BoardEvent | None:
        names = self.board.names
        code = names.events.codes.get(event)
        if code is None:
            return None
        status, start = (int(column[code]) for column in self.board.statuses())
        terms = np.flatnonzero(names.terms.event.values[: len(names.terms.raw_labels)] == code)
        teams, place = (
            names.terms.raw_labels[terms[np.argmax(votes.by_term.values[terms] == votes.lead.values[code])]]
            for votes in (names.events.pairs, names.events.leagues)
        )
        sport, league = place[1] or "", place[2] or ""
        return BoardEvent(STATUSES[status], start, sport, league, *team_names(teams[3], teams[4], sport, league))

    # ---- rows ----

    def books_of(self, slots: Ints) -> list[str]:
        codes = np.unique(self.board.rows.key[slots] & BOOK_MASK)
        return sorted({catalog.book(self.board.names.books.values[code]).id for code in codes.tolist()})

    def events_of(self, slots: Ints) -> set[str]:
        codes = np.unique(self.board.names.terms.event.values[self.board.rows.key[slots] >> BOOK_BITS])
        return {self.board.names.events.values[code] for code in codes.tolist()}

    def first_rows(self, slots: Ints) -> Ints:
        """Return the first rows, at most as many as one response may have."""
        return slots[:MOST_ROWS]

    def rejected(self, rows: Ints) -> Ints:
        slots: Ints = rows[self.board.rows.rejected[rows] != 0]
        return slots

    def active(self, slots: Ints) -> Ints:
        suspended = (self.board.rows.flags[slots] & SUSPENDED) != 0
        active: Ints = slots[~suspended]
        return active

    def prices_of(self, ids: Words) -> Ints:
        """Return the rows on the board with some ids, without those of unknown ids."""
        slots = self.board.rows.find_ids(ids)
        slots = slots[slots >= 0]
        on_board: Ints = slots[self.board.rows.state[slots] == ON]
        return on_board

    def legs(self, ident: int, book: str | None = None, *, price: bool = True) -> list[LegPrice]:
        """Return the prices of an id of a price or of an open opportunity; empty if the id is unknown.

        With `book`, only prices of that book, or else the same selections at that book. With `price=False`, the id is
        that of an opportunity.
        """
        board, number = self.board, np.array([ident], np.uint64)
        slots = board.rows.find_ids(number) if price else np.empty(0, np.int32)
        slots = slots[slots >= 0]
        if not slots.size:
            slots = self._opportunity(number)
        slots = slots[board.rows.state[slots] != FREE]
        if book is not None:
            slots = self._at_book(slots, book)
        return [self._leg(slot) for slot in slots.tolist()]

    def _opportunity(self, number: Words) -> Ints:
        table = self._shown.opened
        for row in self._shown.rows.values():
            at = table.places(row)
            at = at[table.id[at] == number[0]]
            if at.size:
                slots = table.legs[at[0]]
                legs: Ints = slots[slots >= 0]
                return legs
        return np.empty(0, np.int32)

    def _at_book(self, slots: Ints, book: str) -> Ints:
        names, rows = self.board.names, self.board.rows
        code = names.books.find(book)
        if code is None:
            return np.empty(0, np.int32)
        own: Ints = slots[(rows.key[slots] & BOOK_MASK) == code]
        if own.size:
            return own
        same = rows.find((rows.key[slots] >> BOOK_BITS << BOOK_BITS) | code)
        same_outcome: Ints = same[same >= 0]
        return same_outcome

    def _leg(self, slot: int) -> LegPrice:
        key, links, names = int(self.board.rows.key[slot]), self.board.rows.links, self.board.names
        link = links[slot] if slot < len(links) else None
        book = catalog.book(names.books.values[key & BOOK_MASK]).id
        return LegPrice(book, names.terms.raw_labels[key >> BOOK_BITS], None if link is None else OwnTexts.split(link))

    def matching_rows(self, f: RowFilter, unknown: dict[str, list[str]], *, removed: bool = False) -> Ints:
        """Return the slots of matching rows in order, or of removed rows. Unknown ids are added to `unknown`."""
        every = f.unlimited()
        key = "rows", every, removed, self.lines.books
        slots, missing = self.index.cached(key, lambda: self._rows(every, removed=removed))
        unknown.update(missing)
        return slots if every is f else _between(slots, self._prices(slots, key), f)

    def _prices(self, slots: Ints, key: Hashable) -> Ints:
        """Return the prices of cached rows, in hundredths."""

        def make() -> tuple[Ints, dict[str, list[str]]]:
            rows = self.board.rows
            american = round_american(quoted_american(rows.odds[slots], rows.american[slots]))
            return np.clip(np.rint(american * 100.0), _LEAST, _MOST).astype(np.int32), {}

        return self.index.cached(("prices", key), make)[0]

    def listed(
        self, f: RowFilter, unknown: dict[str, list[str]], sort: str, limit: int, offset: int,
        cursor: Cursor | None = None, *, best: bool = False,
    ) -> tuple[Ints, int, int]:  # fmt: skip
        """Return a page of matching rows or best prices: its slots, and the numbers of rows before it and in all."""
        select = self.best if best else self.matching_rows
        every = f.unlimited()
        if every is f or sort or cursor is not None:
            slots = select(f, unknown)
            return *self.page(slots, sort, limit, offset, cursor), slots.size
        slots = select(every, unknown)
        price = self._prices(slots, ("best" if best else "rows", every, False, self.lines.books))
        out = np.empty(limit, np.int32)
        total, written = page_between(slots, price, *_bounds(f.low, f.high), offset, out)
        return out[:written], offset, total

    def _rows(self, f: RowFilter, *, removed: bool) -> tuple[Ints, dict[str, list[str]]]:
        index, terms, rows = self.index, self.terms, self.board.rows
        unknown: dict[str, list[str]] = {}
        marked = index.marked
        if f.after is not None and not removed:
            self._mark([self.lines])
            marked = self._marked()
        events = self._events(f, unknown)
        mask = self._mask(f, unknown)
        books = self._books(f.books)
        out = np.empty(index.slots.size, np.int32)
        day, end = f.day or (int(NO_TIME), 0)
        judged = np.maximum(rows.judged, rows.renewed) if f.seen else rows.judged
        order = RowOrder(events, terms.block, terms.sorted, index.first, index.slots, index.book, index.begin)
        wanted = RowConditions(
            mask, books, REMOVED if removed else ON, -1 if f.live is None else int(f.live),
            int(NO_TIME) if f.after is None else f.after, day, end,
        )  # fmt: skip
        n = scan(order, rows.prices, rows.moved, judged, marked, wanted, out)
        slots: Ints = out[:n].copy()
        if f.main is not None and n:
            slots = slots[self.main(slots) == int(f.main)]
        return slots, unknown

    def _events(self, f: RowFilter, unknown: dict[str, list[str]]) -> Ints:
        chosen: set[int] | None = None
        if f.event is not None:
            codes = self.board.names.events.codes
            chosen = {codes[id_] for id_ in f.event if id_ in codes}
            if missing := [id_ for id_ in f.event if not self.has_rows(id_)]:
                unknown["event"] = missing
        if f.team is not None:
            playing, missing = self.terms.cached("team", f.team, self.terms.events_of)
            chosen = playing if chosen is None else chosen & playing
            if missing:
                unknown["team"] = missing
        if chosen is None:
            return self.index.events
        spots = np.sort(self.index.spot[np.fromiter(chosen, np.int64, len(chosen))])
        return self.index.events[spots]

    def _mask(self, f: RowFilter, unknown: dict[str, list[str]]) -> Bytes:
        """Return 1 for each matching term."""
        terms = self.terms
        slots: list[Bools] = []
        for name, value, make in (
            ("sport", f.sport, terms.by_sport),
            ("league", f.league, terms.by_league),
            ("market", f.market, terms.by_market),
        ):
            if value is not None:
                mask, missing = terms.cached(name, value, make)
                slots.append(mask)
                if missing:
                    unknown[name] = missing
        every: tuple[tuple[str, Any, Callable[[Any], Bools]], ...] = (
            ("q", f.q, terms.by_text), ("player", f.player, terms.by_player), ("stat", f.stat, terms.by_stat),
            ("selection", f.selection, terms.by_selection), ("prop", f.prop, lambda is_: terms.by_prop(is_prop=is_)),
        )  # fmt: skip
        slots.extend(terms.cached(name, value, make) for name, value, make in every if value is not None)
        if not slots:
            return np.ones(len(terms.texts), np.uint8)
        mask = slots[0]
        for more in slots[1:]:
            mask = mask & more
        return np.ascontiguousarray(mask).view(np.uint8)

    def _books(self, books: frozenset[str] | None) -> Bytes:
        """Return 1 for each selected book, by code."""
        if books is None:
            return np.ones(len(self.index.books) + 1, np.uint8)
        return np.array([*(id_ in books for id_ in self.index.books), False], np.uint8)

    def missing_books(self, names: Collection[str]) -> list[str]:
        """Return the books that are neither in the catalog nor on the board."""
        listed = catalog.books()
        ids = {name: catalog.book(name).id for name in names}
        return [name for name, id_ in ids.items() if id_ not in listed and id_ not in self.index.books]

    def best(self, f: RowFilter, unknown: dict[str, list[str]]) -> Ints:
        """Return the best price of each outcome after commission, among matching rows.

        Suspended and rejected prices are ignored. Among equal prices the last seen is preferred, as the likeliest to be
        available, then the first book by id. Limits on the price are applied to the best prices.
        """
        every = f.unlimited()
        slots = self.matching_rows(every, unknown)
        key = "best", every, False, self.lines.books
        chosen, _ = self.index.cached(key, lambda: (self._best(slots), {}))
        return chosen if every is f else _between(chosen, self._prices(chosen, key), f)

    def _best(self, slots: Ints) -> Ints:
        rows, names, terms = self.board.rows, self.board.names, self.terms
        count = len(names.partitions.event.values)
        straight, drawn = terms.columns["straight"], terms.columns["drawn"]
        best_rows = np.full(2 * len(straight.texts) + 2, -1, np.int32)
        groups, out = np.empty(slots.size, np.int64), np.empty(slots.size, np.int32)
        wide = len(names.books.values) // 64 + 1
        n = best_prices(
            slots, self.net(slots), rows.prices, rows.rejected, rows.partition, self.index.rank,
            TermOutcomes(terms.ways, straight.values, drawn.values, names.terms.place.values), self.board.lists,
            QuotedDraws(np.zeros(count, np.uint8), np.empty((count, wide), np.uint64)), best_rows, groups, out,
        )  # fmt: skip
        return out[:n]

    def net(self, slots: Ints) -> Floats:
        """Return decimal odds net of their own commission or fee, or else of the book's."""
        rows, fees = self.board.rows, self.index.fees
        odds, book, live = rows.odds[slots], rows.key[slots] & BOOK_MASK, (rows.flags[slots] & LIVE).astype(np.uint8)
        out = after_fees(odds, book, live, fees)
        depth = rows.price_depth(slots, levels=False)
        if depth is None:
            return out
        return offered(odds, book, live, out, Fees(fees, np.zeros(fees.fee.size, np.uint8), depth))

    def fair(self, slots: Ints, books: frozenset[str] | None, method: str) -> RowFair:
        """Return what rows are worth; see `fair_of_rows`."""
        return fair_of_rows(self._shown, slots, books, method)

    def quoted(self, slots: Ints) -> tuple[Words, Floats, Bools]:
        """Return ids, decimal odds as quoted, and whether each row can be bet."""
        rows = self.board.rows
        usable = (rows.rejected[slots] == 0) & ((rows.flags[slots] & SUSPENDED) == 0)
        return rows.id[slots], rows.odds[slots], usable

    def beside(self, slots: Ints, some: Bools) -> Bools:
        """Return whether each row is of a partition, and so a market, in which one of `some` is."""
        partition = self.board.rows.partition[slots]
        return np.isin(partition, partition[some])

    def main(self, slots: Ints, lines: MainLines | None = None) -> npt.NDArray[np.int8]:
        """Return 1 for rows on their market's main line, 0 for others, -1 if unknown; flags of the source win."""
        rows, place, lines = self.board.rows, self.board.names.terms.place.values, lines or self.lines
        term = rows.key[slots] >> BOOK_BITS
        parts = unpack(place[term, 0], 0, 0, place[term, 3])  # a column that is not asked for costs time
        out = np.where(parts.verdict, -1, 1).astype(np.int8)
        lined_rows = np.flatnonzero((out == 1) & (parts.two_way == 0) & self._has_line()[parts.kind])
        if lined_rows.size:
            self._mark([lines], np.unique(rows.partition[slots[lined_rows]]).astype(np.int64))
            out[lined_rows] = lines.marks[slots[lined_rows]]
        if rows.links:
            self._own_fields(slots, out)
        return out

    def _mark(self, chosen: Sequence[MainLines], partitions: Longs | None = None) -> None:
        """Compute the main lines of some sets of books in some partitions, or in all, where they are outdated."""
        board, rows = self.board, self.board.rows
        self.index.lines.outdate(board, judged=self._judged)
        outdated = np.logical_or.reduce([lines.outdated[: board.names.partitions.size] for lines in chosen])
        partitions = np.flatnonzero(outdated) if partitions is None else partitions[outdated[partitions]]
        partitions = partitions[board.partitions.size[partitions] > 0]
        if not partitions.size:
            return
        gathered = board.gather(partitions)
        g, out = gathered.groups, gathered.out[rows.state[gathered.out] == ON]
        net, book, reason = self.net(g.row), rows.key[g.row] & BOOK_MASK, rows.reason[g.row]
        slots, line = np.concatenate((g.row, out)), self._line_hashes(out)
        first = self._line_hashes(g.row[g.rows[g.segments[:-1]]]) if out.size else line  # by market
        for lines in chosen:
            refused = (reason != 0) | (self._books(lines.books)[book] == 0)
            main, _ = main_lines(g, net, refused.view(np.uint8), len(board.names.books.values))
            # Rows that are not compared, such as suspended ones, are on the main line if it is theirs.
            others = np.isin(line, first[main == 1]).view(np.uint8) if out.size else np.empty(0, np.uint8)
            before, after = lines.marks[slots], np.concatenate((main[g.market], others))
            lines.changed[slots[(before != after) & (before != NOT_COMPUTED)]] = self.now
            lines.marks[slots] = after
            lines.outdated[partitions] = False

    def _line_hashes(self, slots: Ints) -> Words:
        """A hash of partition, ladder and line of some rows."""
        rows, place = self.board.rows, self.board.names.terms.place.values[self.board.rows.key[slots] >> BOOK_BITS]
        return mix(rows.partition[slots], place[:, 0], unpack(0, place[:, 1], 0, 0).threshold)

    def _marked(self) -> Longs:
        """When the main line of each row, or the start or sport of its event, last changed, by slot."""
        self.index.lines.outdate(self.board, judged=self._judged)
        top = self.board.rows.top
        return np.maximum(self.index.marked[:top], self.lines.changed[:top])

    def follow(self, update: Update) -> Marks:
        """Compute main lines after an update; see `Index.follow`."""
        rows, index = self.board.rows, self.index
        slots = update.facts.slot[np.union1d(update.rows, update.judged)]
        every = list(index.lines)
        self._mark(every, partitions_of(self.board, np.concatenate((slots, update.removed_rows.slot))))
        on = rows.state[: rows.top] == ON
        started = index.marked[: rows.top] == self.now
        moved = [started | (each.changed[: rows.top] == self.now) for each in every]
        marked = [np.flatnonzero(each & on).astype(np.int32) for each in moved]
        changed = np.unique(np.concatenate(marked))
        others = np.setdiff1d(changed, slots)
        since, before = index.relabelled or (None, None)
        return Marks(
            np.isin(slots, changed), self.board.facts(others),
            {
                each.books: LineMarks(self.main(slots, each), self.main(others, each), np.isin(others, own))
                for each, own in zip(every, marked, strict=True)
            },
            before if since == self.now else None,
        )  # fmt: skip

    def _has_line(self) -> Bools:
        """Return whether each kind has lines."""
        kinds = self.board.names.kinds.values
        cached: Bools = self.terms.cached(
            "has_line", len(kinds), lambda _: np.array([kind.has_line for kind in kinds], bool)
        )
        return cached

    def _own_fields(self, slots: Ints, out: npt.NDArray[np.int8]) -> None:
        """Apply the main-line flags given by sources."""
        for at, link in enumerate(self.board.rows.links_of(slots)):
            if link is None:
                continue
            main, alternate = link.split(SEPARATOR, _MAIN + 2)[_MAIN : _MAIN + 2]
            if main or alternate:
                out[at] = main == "True" if main else alternate == "False"

    def states(self, slots: Ints) -> list[Any]:
        """Return a comparable state of each row; equal states encode to equal bytes."""
        index, rows = self.index, self.board.rows
        out = np.empty((slots.size, 7), np.int64)
        row_states(
            slots, rows.key, rows.odds.view(np.int64), rows.american.view(np.int64), rows.seen, rows.changed,
            rows.start, rows.flags, rows.rejected, self.board.names.terms.event.values, index.begin, self.main(slots),
            out,
        )  # fmt: skip
        raw, size = out.tobytes(), 7 * out.itemsize
        content: list[Any] = [raw[at : at + size] for at in range(0, len(raw), size)]
        return list(zip(content, rows.links_of(slots), strict=True)) if rows.links else content

    def take(self, slots: Ints) -> OddsRows:
        rows = self.board.rows
        key, start = rows.key[slots], rows.start[slots]
        term = key >> BOOK_BITS
        if (start == NO_TIME).any():
            start = np.where(start == NO_TIME, self.index.begin[self.board.names.terms.event.values[term]], start)
        return OddsRows(
            term.tolist(), (key & BOOK_MASK).tolist(), rows.id[slots], rows.odds[slots], rows.american[slots],
            rows.seen[slots], rows.changed[slots], start, rows.moved[slots], rows.flags[slots],
            rows.rejected[slots], self.main(slots).tolist(), rows.links_of(slots) or None, self.terms.texts,
            self.index.books,
        )  # fmt: skip

    # ---- order and pages ----

    def values(self, slots: Ints, sort: str) -> npt.NDArray[Any]:
        """Return sort values, ascending; an unknown start comes last."""
        rows, terms, index = self.board.rows, self.terms, self.index
        name = sort.removeprefix("-")
        values: npt.NDArray[Any]
        if name == "odds_american":
            values = quoted_american(rows.odds[slots], rows.american[slots])
        elif name in ("odds_decimal", "probability"):
            values = rows.odds[slots] if name == "odds_decimal" else 1.0 / rows.odds[slots]
        elif name == "timestamp":
            values = rows.seen[slots]
        elif name in ("moved", "renewed"):
            values = np.maximum(np.maximum(rows.moved[slots], rows.judged[slots]), self._marked()[slots])
            values = values if name == "moved" else np.maximum(values, rows.renewed[slots])
        elif name == "event_start_time":
            event = self.board.names.terms.event.values[rows.key[slots] >> BOOK_BITS]
            start = np.where(rows.start[slots] == NO_TIME, index.begin[event], rows.start[slots])
            return np.where(start == NO_TIME, LATEST, -start if sort[0] == "-" else start)
        elif name == "sportsbook":
            values = index.ranks(name)[0][rows.key[slots] & BOOK_MASK]
        else:
            values = index.ranks(name)[0][terms.columns[name].values[rows.key[slots] >> BOOK_BITS]]
        return -values if sort[0] == "-" else values

    def _value(self, value: Any, sort: str) -> Any:
        name = sort.removeprefix("-")
        if name in TEXTUAL:
            return self.index.ranks(name)[1][abs(int(value))]
        return value.item()

    def _before(self, cursor: Cursor) -> Any:
        name = cursor.sort.removeprefix("-")
        if name not in TEXTUAL:
            return cursor.value
        texts = self.index.ranks(name)[1]
        at: float = bisect_left(texts, str(cursor.value))
        if at == len(texts) or texts[int(at)] != cursor.value:
            at -= 0.5
        return -at if cursor.sort[0] == "-" else at

    def page(self, slots: Ints, sort: str, limit: int, offset: int, cursor: Cursor | None) -> tuple[Ints, int]:
        """Return one page of rows in order, and the number of rows before it."""
        if not sort:
            before = offset if cursor is None else self._passed(slots, cursor)
            return slots[before : before + limit], before
        values = self.values(slots, sort)
        before, chosen = offset, np.arange(slots.size)
        if cursor is not None:
            last, passed = self._before(cursor), self._passed(slots, cursor)
            chosen = np.flatnonzero((values > last) | ((values == last) & (chosen >= passed)))
            before, offset = slots.size - chosen.size, 0
            values = values[chosen]
        return slots[chosen[_smallest(values, offset, offset + limit)]], before

    def groups(
        self, slots: Ints, sort: str, limit: int, offset: int, cursor: Cursor | None
    ) -> tuple[list[Ints], int, int, Ints]:
        """Return one page of events: the rows of each, the count of events before, the total, and each first row.

        Events are ordered by their first rows. A page has at most `MOST_ROWS` rows, but at least one event.
        """
        if sort:
            slots = slots[np.argsort(self.values(slots, sort), kind="stable")]
        event = self.board.names.terms.event.values[self.board.rows.key[slots] >> BOOK_BITS]
        seen = np.full(len(self.board.names.events.values), slots.size, np.int64)
        seen[event[::-1]] = np.arange(slots.size - 1, -1, -1)  # in reverse, so the first position is written last
        codes = np.flatnonzero(seen < slots.size)
        codes = codes[np.argsort(seen[codes])]
        first = seen[codes]
        before = offset
        if cursor is not None:
            spot = self.index.spot[codes]
            last = bisect_right(self.index.event_keys, (cursor.start, cursor.event))
            later = spot >= last
            if sort:
                values, at = self.values(slots[first], sort), self._before(cursor)
                later = (values > at) | ((values == at) & later)
            before = int(codes.size - later.sum())
            chosen = np.flatnonzero(later)[:limit]
        else:
            chosen = np.arange(codes.size)[offset : offset + limit]
        sizes = np.bincount(event, minlength=len(self.board.names.events.values))[codes[chosen]]
        chosen = chosen[: max(1, int(np.searchsorted(np.cumsum(sizes), MOST_ROWS, "right")))]
        page_codes = codes[chosen]
        at_event = np.full(len(self.board.names.events.values), -1, np.int64)
        at_event[page_codes] = np.arange(page_codes.size)
        page_event = at_event[event]
        rows, page_event = slots[page_event >= 0], page_event[page_event >= 0]
        parts: list[Ints] = []
        if page_codes.size:
            ends = np.cumsum(np.bincount(page_event, minlength=page_codes.size))
            parts = np.split(rows[np.argsort(page_event, kind="stable")], ends[:-1])
        return parts, before, int(codes.size), slots[first[chosen]]

    def _key(self, slot: int) -> tuple[tuple[int, str], Key, str]:
        key = int(self.board.rows.key[slot])
        term = key >> BOOK_BITS
        event = self.index.event_keys[self.index.spot[self.board.names.terms.event.values[term]]]
        return event, self.terms.keys[term], self.index.books[key & BOOK_MASK]

    def _passed(self, slots: Ints, cursor: Cursor) -> int:
        """Count the rows at or before a cursor."""
        if cursor.rest is None:
            return bisect_right(slots, (cursor.start, cursor.event), key=lambda slot: self._key(slot)[0])
        last = (cursor.start, cursor.event), cursor.rest[:-1], cursor.rest[-1]
        return bisect_right(slots, last, key=self._key)

    def cursor(self, slot: int, sort: str, *, event: bool = False) -> str:
        """Return the cursor of a page that ends with a row, or with a row's event."""
        (start, id_), term, book = self._key(slot)
        value = self._value(self.values(np.array([slot], np.int32), sort)[0], sort) if sort else None
        return Cursor(sort, value, start, id_, None if event else (*term, book)).text()


def _between(slots: Ints, price: Ints, f: RowFilter) -> Ints:
    out = np.empty(slots.size + 1, np.int32)
    return out[: between(slots, price, *_bounds(f.low, f.high), out)]


def _bounds(low: float | None, high: float | None) -> tuple[int, int]:
    """Convert limits on American odds to hundredths; -100 is +100, also as a limit."""
    least, most = (None if price is None else float(even_money(price)) for price in (low, high))
    return (
        _LEAST if least is None else max(_LEAST, min(math.ceil(round(least * 100.0, 6)), _MOST)),
        _MOST if most is None else max(_LEAST, min(math.floor(round(most * 100.0, 6)), _MOST)),
    )


def _smallest(values: npt.NDArray[Any], first: int, last: int) -> Longs:
    """Return the positions of the sorted values from `first` to `last`; the sort is stable."""
    if last < values.size // 4:
        bound = np.partition(values, last)[last]
        candidates = np.flatnonzero(values <= bound)
    else:
        candidates = np.arange(values.size)
    if values.dtype == np.int32 and values.size and np.abs(values).max() < 1 << 15:
        values = values.astype(np.int16)  # small integers sort faster, by radix
    return candidates[np.argsort(values[candidates], kind="stable")[first:last]]
