"""Views: the opportunities of the live board for one set of books, references and thresholds.

The engine keeps a view's open set up to date while the view is active. A view reads from it the state of exactly one
update. The frames are made by the same finders as those of `find_all`, over the units with open opportunities.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_not
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine.board.changes import ladders_with, loosen, scope
from oddsengine.board.facts import Columns, Facts, moments_of
from oddsengine.board.names import Names
from oddsengine.board.open import Hits, OpenSet, OpenTable
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import Bytes, Ints, Longs, Words, spans
from oddsengine.detection.finders import Opportunities
from oddsengine.detection.ids import Hashes, hexadecimal
from oddsengine.detection.kinds import BUILT_IN, KINDS, Kind
from oddsengine.detection.question import Question, empty, repeated
from oddsengine.detection.search import FIGURES, LEGS, Opened, Search, own_legs
from oddsengine.detection.sweep import Candidates, Scope, Thresholds
from oddsengine.detection.tails import Forms, curves
from oddsengine.identity.groups import Groups, distinct
from oddsengine.identity.layout import BOOK_BITS, UnitColumns
from oddsengine.identity.table import Identity
from oddsengine.live.key import ViewKey
from oddsengine.live.replica import ReadState
from oddsengine.pricing.close import EVERY_ROW
from oddsengine.pricing.references import CLOSE, Callers, FairPrices, ViewSpec, fair_prices, view_spec
from oddsengine.tables.levels import DEPTH_SCHEMA, LEVELS, most_of_levels

IDLE_S = 300  # a view that is not read for this long is suspended


@dataclass(frozen=True)
class BoardRows:
    """Some rows of the board, column by column."""

    columns: Columns
    at: Longs
    staked: bool  # for a stake: the maximum is that of all levels
    extra: Mapping[str, Any]  # columns of prices of exchanges, if there are any

    def __getitem__(self, name: str) -> pl.Series:
        if name == "row":  # of no table
            return repeated(None, self.at.size, pl.UInt32)
        if name == "max_bet" and self.staked and LEVELS in self.extra:
            both = [self.columns.column(each, self.at).alias(each) for each in (name, LEVELS)]
            return most_of_levels(pl.DataFrame(both)).alias(name)
        return self.columns.column(name, self.at)


@dataclass(frozen=True, eq=False)
class LiveBoard:
    """A part of the live board as results show it."""

    identity: Identity
    extra: Mapping[str, Any]  # columns of prices of exchanges
    known: Facts
    slots: Ints  # per row of the groups, whose `row` is its place
    staked: bool

    def facts(self, rows: Ints | Longs) -> BoardRows:
        """What the board says about some rows."""
        return BoardRows(self._columns, self.known.places(self.slots[rows]), self.staked, self.extra)

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self.known)


class Found(NamedTuple):
    """What a view has open in some units: kinds and legs, as rows of their groups."""

    kind: Bytes
    legs: Ints  # (n, LEGS), -1 beyond

    @classmethod
    def at(cls, held: OpenTable, places: Ints, slots: Ints) -> "Found":
        """Some places of the open table; `slots` are the rows of the groups."""
        legs = held.legs[places]
        order = np.argsort(slots)
        row = order[np.minimum(np.searchsorted(slots, legs, sorter=order), max(slots.size - 1, 0))]
        return cls(held.kind[places], np.where(legs >= 0, row, -1).astype(np.int32))

    def of(self, which: Callable[[Kind], bool]) -> Ints:
        """The legs of what is of some kinds."""
        legs: Ints = self.legs[np.array([which(kind) for kind in KINDS.values()])[self.kind]]
        return legs

    def scope(self, some: UnitColumns, shapes: Forms, *, one_sided: bool) -> Scope:
        """The markets and ladders that they are in, and those whose fair probabilities their rows show."""
        g, changed = some.groups, np.zeros(some.groups.threshold.size, np.uint8)
        changed[g.market[self.legs[self.legs >= 0]]] = 1
        return scope(some, loosen(some, changed) if one_sided else changed, curves(g, shapes))

    def shown(self, g: Groups, *, whole: bool) -> Longs:
        """The rows of which their rows say something: the legs, and prices beside those of kinds that are hashed.

        With `whole`, prices beside single bets too, whose rows name the books of one feed.
        """
        beside = self.of(lambda kind: kind.hashed or (whole and kind.single)).ravel()
        beside = beside[beside >= 0]
        segment = distinct(g.segments[g.market[beside]] + g.side[beside])
        return np.concatenate((self.legs[self.legs >= 0], spans(g.rows[segment], g.rows[segment + 1])))

    def candidates(self, g: Groups, where: Scope) -> Candidates:
        """The same as candidates of the finders that share a sweep, within their scope."""
        markets = g.threshold.size
        pairs = g.market[self.legs[self.kind == KINDS.code("middles"), :2]].astype(np.int64)
        low, high = np.divmod(distinct(pairs[:, 0] * markets + pairs[:, 1]), max(markets, 1))
        sums = np.flatnonzero(where.markets)
        edges = distinct(g.market[self.legs[self.kind == KINDS.code("ev"), 0]]).astype(np.int64)
        best = np.full(low.size, np.inf)
        return Candidates(
            np.zeros(sums.size, np.int64), sums, np.zeros(sums.size), np.zeros(edges.size, np.int64), edges,
            np.zeros(low.size, np.int64), low, high, best, best, np.inf,
        )  # fmt: skip


class Host(Protocol):
    """The parts of an engine that a view uses."""

    @property
    def off(self) -> frozenset[int]:
        """Codes of disabled guards."""

    def reading(self, view: "View") -> AbstractContextManager[ReadState]:
        """The state after the last step, in which a view is active; it does not change meanwhile."""

    def shown(self) -> AbstractContextManager[ReadState]:
        """The same, whether or not the view is active."""

    def set_aside(self) -> dict[str, int]:
        """Number of rejected rows, by reason."""

    def release(self, view: "View") -> None:
        """Undo one `keep`."""

    def close(self, view: "View") -> None:
        """Suspend a view."""


class Together(NamedTuple):
    """The books and thresholds of views that are searched together."""

    specs: list[ViewSpec]  # of each view
    callers: Callers
    thresholds: Thresholds


class View:
    """One view; created by `Engine.view`."""

    def __init__(self, engine: Host, wanted: ViewKey) -> None:
        self._engine = engine
        self.wanted = wanted
        self.thresholds = wanted.thresholds()
        self.open = OpenSet()
        self.awake = False
        self.kept = 0  # how many callers keep it awake
        self.restored = False  # kept by a snapshot until somebody keeps it
        self.read_at = 0
        self.woken_at = 0  # board time
        self.needed: dict[Hashable, int] = {}  # by delayed board that shows it: board time until which it does
        self._spec: tuple[int, ViewSpec] | None = None  # for how many books
        self.together: Together | None = None  # with the views that it was last searched with, as the first of them

    def __repr__(self) -> str:
        books = "all books" if self.wanted.books is None else ", ".join(self.wanted.books)
        return f"<View over {books}; {'awake' if self.awake else 'asleep'}>"

    # ---- for the engine ----

    def sleep(self) -> None:
        """Drop the open set and stop taking part in steps."""
        self.awake = False
        self.open.drop()

    def spec(self, names: Names) -> ViewSpec:
        """Its parameters resolved to the codes of the current books."""
        known, w = self._spec, self.wanted  # readers and steps may have different numbers of books
        if known is None or known[0] != len(names.books.values):
            books = names.books.ranked()
            made = view_spec(
                books, names.tables.traits, w.books, w.reference, w.method, dict(w.commission),
                include=w.include, model=w.model, stake=w.stake,
            )  # fmt: skip
            known = self._spec = len(books), made
        return known[1]

    # ---- reading ----

    def opportunities(
        self, kinds: Iterable[str] = KINDS, *, ids: Words | None = None, counted: bool = True
    ) -> Opportunities:
        """All open opportunities in the frames of `find_all`; `detected_at` is when each was first found.

        Active views of equal books, reference and threshold agree on it.

        Parameters
        ----------
        kinds
            The kinds of opportunity to return; the frames of the others are empty.
        ids
            Return only these, at a cost that depends on their number.
        counted
            Whether to count rejected prices; with `ids` they are not.
        """
        if ids is not None and getattr(ids, "dtype", None) != np.uint64:
            raise ValueError(f"ids must be an array of uint64, such as `ViewChange.touched`, got {ids!r}")
        engine, w = self._engine, self.wanted
        asked_for = [KINDS.code(kind) for kind in KINDS.some(kinds) if kind in w.kinds]
        with engine.reading(self) as shown:
            board, held, at = shown.board, shown.opened, shown.open(self.wanted).places()
            at = at[np.isin(held.kind[at], asked_for)]
            open_ids = {code: held.id[at[held.kind[at] == code]] for code in asked_for}
            if ids is not None:
                at = at[np.isin(held.id[at], ids)]
            asked_for = np.unique(held.kind[at]).tolist()
            born = dict(zip(hexadecimal(held.id[at]), held.born[at].tolist(), strict=True))
            units = np.unique(held.unit[at]).astype(np.int64)
            some = board.gather(units)
            rows, names = board.rows, board.names
            slots = some.groups.row
            some = some._replace(groups=some.groups._replace(row=np.arange(slots.size, dtype=np.int32)))
            g, mine, off, traits = some.groups, self.spec(names), engine.off, names.tables.traits
            found = Found.at(held, at, slots)
            where = found.scope(some, names.tables.forms, one_sided=w.one_sided)
            known = board.facts(distinct(slots[found.shown(g, whole=ids is not None)]))
            guarded = board.verdicts(slots)
            turned = names.terms.turned.values[rows.key[slots] >> BOOK_BITS] != 0
            identity = Identity(
                g, tuple(names.kinds.values),
                names.books.ranked(), np.empty(0, np.uint8), turned, tuple(names.events.sports),
                pl.Series(dtype=pl.String), traits,
            )  # fmt: skip
            counts = engine.set_aside() if ids is None and counted else {}
            estimated = None
            if w.method == CLOSE:
                voting = ladders_with(g, where.fair)
                estimated, _ = board.estimated(some, guarded.reason, slots, shown.fair, voting)
                estimated = estimated._replace(needed=np.where(where.markets != 0, np.uint8(EVERY_ROW), where.fair))
            hashes, shapes = names.hashes(g), names.tables.forms
            depth = rows.price_depth(slots, levels=w.stake is not None)
            extra = {name: DEPTH_SCHEMA[name] for name in rows.own_columns()}
            ladder = None if w.model is None else names.ladders_of(g, w.model)
        # All that the board says is copied: steps go on.
        seen = fair_prices(
            g, traits, guarded, mine, off, needed=where.fair, board=estimated, ladder=ladder, depth=depth
        )
        common = _common(seen, self.thresholds, where, hashes, shapes, off)
        part = LiveBoard(identity, extra, known, slots, w.stake is not None)
        question = Question(**common, board=part, found=found.candidates(g, where))
        frames = {
            name: _since(_rows(kind, question, open_ids[code], ids), born) if code in asked_for else empty(kind.schema)
            for code, (name, kind) in enumerate(KINDS.items())
        }
        return Opportunities(frames, counts)

    def counts(self) -> dict[str, int]:
        """Number of open opportunities by kind; reading it does not keep the view active."""
        with self._engine.shown() as shown:
            counts = np.bincount(shown.opened.kind[shown.open(self.wanted).places()], minlength=len(KINDS))
        return dict(zip(KINDS, counts.tolist(), strict=True))

    def ids(self) -> dict[str, list[str]]:
        """Ids of all open opportunities by kind, as in `Update`."""
        with self._engine.reading(self) as shown:
            held, at = shown.opened, shown.open(self.wanted).places()
            kind, ident = held.kind[at], held.id[at]
        return {name: sorted(hexadecimal(ident[kind == code])) for code, name in enumerate(KINDS)}

    def release(self) -> None:
        """Undo one `keep`; a view that nobody else keeps is suspended unless it is read within half a minute."""
        self._engine.release(self)

    def close(self) -> None:
        """Close the view."""
        self._engine.close(self)


def search(
    some: UnitColumns, prices: FairPrices, views: Sequence["View"], scope: Scope, names: Names, off: frozenset[int],
    moved: npt.NDArray[np.bool_],
) -> tuple[Longs, Hits]:  # fmt: skip
    """Find what views that share fair prices hold open within a scope of some units; the view of each hit first.

    `moved` says which rows of the groups have changed since the last search.
    """
    together = _together(views, names)
    seen = replace(prices, callers=together.callers)
    shared = Search(**_common(seen, together.thresholds, scope, names.hashes(some.groups), names.tables.forms, off))
    # Rows show the fair prices of a reference even if the search has none.
    moved = moved if views[0].wanted.referred else np.ones_like(moved)
    parts = [
        (code, kind.opened(shared, kind.find(shared), moved))
        for code, kind in enumerate(KINDS.values())
        if any(kind.name in view.wanted.kinds for view in views)
    ]
    return _hits(some, [(code, part) for code, part in parts if part.id.size])


def _together(views: Sequence["View"], names: Names) -> Together:
    """The books and thresholds of some views; the same views as in the last call have the same."""
    specs = [view.spec(names) for view in views]
    found = views[0].together
    if found is None or len(found.specs) != len(specs) or any(map(is_not, found.specs, specs)):
        found = Together(specs, Callers.of(specs), Thresholds.stack([view.thresholds for view in views]))
        views[0].together = found
    return found


def _common(
    seen: FairPrices, thresholds: Thresholds, scope: Scope, hashes: Hashes, shapes: Forms, off: frozenset[int]
) -> dict[str, Any]:
    """The fields of a search."""
    cap = CODES["ev_cap"] not in off
    return {"view": seen, "thresholds": thresholds, "scope": scope, "hashes": hashes, "forms": shapes, "cap": cap}


def _hits(some: UnitColumns, parts: list[tuple[int, Opened]]) -> tuple[Longs, Hits]:
    """All kinds together, by code, sorted by view and unit."""
    if not parts:
        return np.empty(0, np.int64), Hits.none()
    g = some.groups
    sizes = [part.id.size for _, part in parts]
    n = sum(sizes)
    kind = np.repeat(np.array([code for code, _ in parts], np.uint8), sizes)
    who = np.concatenate([part.who for _, part in parts])
    unit = some.units[some.ladder_unit[g.ladder[np.concatenate([part.market for _, part in parts])]]]
    legs, shown, own = np.full((n, LEGS), -1, np.int32), np.zeros(n, np.uint64), np.zeros(n, np.uint8)
    for code, part in parts:
        if part.figures.shape[1] != FIGURES:
            name = list(KINDS)[code]
            raise ValueError(f"the figures of {name} must be {FIGURES} columns, got {part.figures.shape[1]}")
    figures = np.concatenate([part.figures for _, part in parts])
    start = 0
    for size, (_, part) in zip(sizes, parts, strict=True):
        rows = part.rows[:, :LEGS]
        legs[start : start + size, : rows.shape[1]] = np.where(rows >= 0, g.row[np.maximum(rows, 0)], -1)
        own[start : start + size] = own_legs(g, part.market, rows)
        if part.shown is not None:
            shown[start : start + size] = part.shown
        start += size
    ident = np.concatenate([part.id for _, part in parts])
    hits = Hits(ident, kind, unit.astype(np.int32), legs, figures, shown, own)
    order = np.argsort(who << 32 | unit, kind="stable")
    return who[order], hits.take(order)


def _rows(kind: Kind, question: Question, open_ids: Words, ids: Words | None) -> pl.DataFrame:
    """The rows of what is open of a kind, or those of some ids."""
    hits = kind.find(question if kind in BUILT_IN else replace(question, found=None))
    hits = hits.only(np.flatnonzero(np.isin(hits.id, open_ids)))
    if ids is None:
        return kind.build(question, hits)
    wanted = np.isin(hits.id, ids)
    if not kind.single:
        return kind.build(question, hits.only(np.flatnonzero(wanted)))
    # With those on the same outcome, which rows name.
    segment = np.searchsorted(question.view.groups.rows, kind.located(question, hits).rows[:, 0], side="right")
    rows = kind.build(question, hits.only(np.flatnonzero(np.isin(segment, segment[wanted]))))
    return rows[np.flatnonzero(np.isin(rows["id"].str.tail(16).to_list(), hexadecimal(ids)))]


def _since(frame: pl.DataFrame, born: dict[str, int]) -> pl.DataFrame:
    """Add the time of first detection."""
    if not frame.height:
        return frame
    times = [born[ident[-16:]] for ident in frame["id"].to_list()]
    column = moments_of(np.array(times, np.int64)).alias("detected_at")
    return frame.replace_column(frame.get_column_index(column.name), column)
