"""Updates: the immutable result of one step. Frames and JSON are made on demand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine.board.facts import Before, Facts, moments_of
from oddsengine.board.open import NEW as OPENED
from oddsengine.board.open import SAME, Hits, OpenTable
from oddsengine.board.quotes import Quotes
from oddsengine.board.rows import LIVENESS, MOVED, NEW, PRICE, SEEN, STATUS, UNKNOWN
from oddsengine.board.state import AppliedBatch, Batch, Board
from oddsengine.board.undo import Past
from oddsengine.columns import Bytes, Floats, Ints, Longs, Words
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.identity.groups import distinct
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE, ON, SUSPENDED
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.live.replica import ReadState
from oddsengine.live.searcher import Findings, SearchResult
from oddsengine.live.view import View
from oddsengine.tables.schema import BAD_ROW_SCHEMA, NONE_REJECTED
from oddsengine.tables.timestamps import timestamp, timestamps

_MOVES = (("price", PRICE), ("live", LIVENESS), ("status", STATUS))
_encoder = msgspec.json.Encoder()
_SELECTION, _LINE = itemgetter(7), itemgetter(-1)


class RowDelta(msgspec.Struct, gc=False):
    """A row's id and all fields that can change."""

    id: str
    odds_american: float
    odds_decimal: float
    odds_probability: float
    line: float | None
    is_live: bool
    is_active: bool
    odds_changed_at: str | None
    event_start_time: str | msgspec.UnsetType | None = msgspec.UNSET


@dataclass(frozen=True, eq=False)
class ViewChange:
    """The effect of one step on one view: new, changed and expired opportunities."""

    found: Hits  # new or changed, of all views that were searched together
    span: slice  # those of this view
    status: Bytes  # of each: `board.open.NEW` or `board.open.CHANGED`
    detected_at: Longs  # when each was first found
    expired: Words
    expired_kind: Bytes
    affected: Words  # unchanged figures, but the row may show something else: other prices, another book with the price
    promised: Floats | None = None  # (hits, PROMISED): after `Engine.keep_promised`, where there is a +EV bet

    @classmethod
    def joined(cls, parts: Sequence["ViewChange"]) -> "ViewChange":
        """The changes of one view that were found in parts of the board, in order of partition."""
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("status", "detected_at", "expired", "expired_kind", "affected")
        }
        hits = Hits._make(map(np.concatenate, zip(*(part.hits for part in parts), strict=True)))
        promised = [part.promised for part in parts if part.promised is not None]
        if promised:
            columns["promised"] = np.concatenate(promised)
        return cls(hits, slice(None), **columns)

    @cached_property
    def hits(self) -> Hits:
        """New or changed opportunities."""
        return self.found.take(self.span)

    def __repr__(self) -> str:
        new = int((self.status == OPENED).sum())
        return f"<ViewChange: {new:,} new, {self.hits.size - new:,} changed, {self.expired.size:,} expired>"

    def ids(self, kind: str, *, new: bool) -> list[str]:
        """Ids of one kind that are new or have changed."""
        which = (self.hits.kind == KINDS.code(kind)) & ((self.status == OPENED) == new)
        return hexadecimal(self.hits.id[which])

    def expired_ids(self, kind: str) -> list[str]:
        """Ids of one kind that have expired."""
        return hexadecimal(self.expired[self.expired_kind == KINDS.code(kind)])


@dataclass(frozen=True, eq=False)
class Update:
    """The result of one step.

    `number` counts the steps of an engine; `moment` is the whole second at which ages were judged.
    """

    number: int
    now: int
    moment: int
    facts: Facts  # of the rows below and of the legs of opportunities
    rows: Longs  # indices in `facts` of rows on the board that changed
    what: Bytes  # effects per row; see `board.rows`
    judged: Longs  # indices in `facts` of rows on the board whose rejection changed
    past: Past  # what rows were before the step
    line_moved: Mapping[int, int]  # index in `rows` of a new row -> index in `removed_rows` of the one it replaces
    removed_rows: Facts
    views: Mapping[View, ViewChange]
    rejected: pl.DataFrame  # `BAD_ROW_SCHEMA`, including suspended quotes without a price for unknown rows
    late: int
    again: Words  # ids of rows that were only seen again
    again_key: Longs  # their terms and books
    again_seen: Longs  # and times

    @cached_property
    def before(self) -> Before:
        """The rows of `rows` and `judged`, in order of index, before the step."""
        return self.past.before(self.facts.take(distinct(np.concatenate((self.rows, self.judged)))))

    @property
    def removed_shown(self) -> npt.NDArray[np.bool_]:
        """Which of the removed rows were shown before the step."""
        return self.past.before(self.removed_rows).shown

    @property
    def new(self) -> Facts:
        """Rows that were not on the board before."""
        return self.facts.take(self.rows[(self.what & NEW) != 0])

    @property
    def seen(self) -> int:
        """Number of rows that were only seen again."""
        return int(self.again.size)

    @property
    def renewed(self) -> list[str]:
        """Ids of rows that were only seen again, without any other change."""
        return hexadecimal(self.again)

    def of(self, view: View) -> ViewChange:
        """The effect on one view; empty if there is none."""
        change = self.views.get(view)
        if change is None:
            none = np.empty(0, np.int64)
            ids, kinds = none.view(np.uint64), np.empty(0, np.uint8)
            change = ViewChange(Hits.none(), slice(0), kinds, none, ids, kinds, ids)
        return change

    def __repr__(self) -> str:
        new = int(((self.what & NEW) != 0).sum())
        parts = [f"{new:,} new, {self.what.size - new:,} changed, {self.removed_rows.slot.size:,} removed"]
        for view, change in self.views.items():
            new = int((change.status == OPENED).sum())
            counts = f"{new:,} new, {change.hits.size - new:,} changed, {change.expired.size:,} expired"
            parts.append(f"{view!r}: {counts}")
        return f"<Update {self.number:,}: {'; '.join(parts)}>"

    @cached_property
    def changed(self) -> pl.DataFrame:
        """Rows that are new or have changed: id, what changed, and current values."""
        facts = self.facts.take(self.rows)
        moved = {name: (self.what & bit) != 0 for name, bit in _MOVES}
        new = (self.what & NEW) != 0
        line = np.zeros(new.size, bool)
        line[list(self.line_moved)] = True
        return facts.frame().select(
            pl.Series("id", hexadecimal(facts.id), dtype=pl.String),
            pl.Series("new", new),
            pl.Series("price_moved", moved["price"] & ~new),
            pl.Series("line_moved", line),
            pl.Series("liveness_moved", moved["live"] & ~new),
            pl.Series("status_moved", moved["status"] & ~new),
            pl.exclude("id"),
        )

    @cached_property
    def removed(self) -> pl.DataFrame:
        """Removed rows: id, book, event and time."""
        frame = self.removed_rows.frame().select("sportsbook", "event_id", "market_type", "selection", "line")
        return frame.with_columns(
            pl.Series("id", hexadecimal(self.removed_rows.id), dtype=pl.String),
            moments_of(self.removed_rows.moved).alias("removed_at"),
        ).select("id", "sportsbook", "event_id", "market_type", "selection", "line", "removed_at")

    def json(self, view: View | None = None) -> bytes:
        """The update as JSON: changed rows, removals, and the changes of one view."""
        return _encoder.encode(self._contents(self._encoded, view))

    def plain(self, view: View | None = None) -> dict[str, Any]:
        """The update as plain lists and mappings: full rows if new, else the fields that can change."""
        found: dict[str, Any] = msgspec.to_builtins(self._contents(self._rows, view))
        return found

    @cached_property
    def _rows(self) -> dict[str, Any]:
        """Changes of the board's rows, the same for every view."""
        new = (self.what & NEW) != 0
        return {
            "new": _full(self.facts.take(self.rows[new])),
            "changed": self._moves(~new),
            "removed": hexadecimal(self.removed_rows.id),
        }

    @cached_property
    def _encoded(self) -> dict[str, Any]:
        """`_rows` as JSON, encoded once for all views."""
        return {name: msgspec.Raw(_encoder.encode(rows)) for name, rows in self._rows.items()}

    def _contents(self, rows: dict[str, Any], view: View | None) -> dict[str, Any]:
        out: dict[str, Any] = {"number": self.number, "now": timestamp(self.now), **rows}
        if view is not None and view in self.views:
            change = self.views[view]
            out["detected"] = _opportunities(change, self.facts)
            out["expired"] = hexadecimal(change.expired)
        return out

    def _moves(self, which: npt.NDArray[np.bool_]) -> list[RowDelta]:
        """The changeable fields of some rows; the start only if the row's status changed."""
        facts = self.facts.take(self.rows[which])
        deltas = list(map(RowDelta, *_figures_of(facts)))
        for at in np.flatnonzero(self.what[which] & STATUS).tolist():
            deltas[at].event_start_time = timestamp(int(facts.start[at]))
        return deltas


def _figures_of(facts: Facts) -> tuple[list[Any], ...]:
    """The columns of `RowDelta`."""
    raw_labels = facts.raw_labels
    return (
        hexadecimal(facts.id), facts.prices.tolist(), facts.odds.tolist(), (1.0 / facts.odds).tolist(),
        [raw_labels[term][-1] for term in facts.term.tolist()], ((facts.flags & LIVE) != 0).tolist(),
        ((facts.flags & SUSPENDED) == 0).tolist(), timestamps(facts.changed),
    )  # fmt: skip


def _full(facts: Facts) -> list[dict[str, Any]]:
    """Rows by id with all fields."""
    if not facts.key.size:
        return []
    columns = (*_figures_of(facts), facts.sportsbooks, timestamps(facts.seen), timestamps(facts.start))
    names = (*RowDelta.__struct_fields__[:8], "sportsbook", "last_seen_at", "event_start_time")
    return [
        dict(zip(names, fields, strict=True), **dict(zip(RAW_LABEL, raw_label, strict=False)))
        for fields, raw_label in zip(zip(*columns, strict=True), facts.texts, strict=True)
    ]


class Leg(msgspec.Struct, gc=False):
    """A price of an opportunity."""

    id: str
    sportsbook: str
    market_type: str
    selection: str
    line: float | None
    odds_decimal: float


@cache
def _row_of(kind: Kind) -> Any:
    """The class of the opportunities of one kind, with its figures."""
    first = ("id", "kind", "event_id", "market_type", "player_name")
    figures = (figure.name for figure in kind.figures)
    return msgspec.defstruct(kind.name, [*first, *figures, "unconfirmed", "legs", "detected_at"], gc=False)


def _opportunities(change: ViewChange, facts: Facts) -> list[Any]:
    """Opportunities by id with their figures and legs."""
    hits = change.hits
    if not hits.size:
        return []
    held = hits.legs >= 0
    places = facts.places(hits.legs[held])
    used = distinct(places)
    some = facts.take(used)
    texts = some.texts
    markets = [(raw_label[0], _published(raw_label), raw_label[9]) for raw_label in texts]
    types = [market_type for _, market_type, _ in markets]
    columns = (some.sportsbooks, types, map(_SELECTION, texts), map(_LINE, texts), some.odds.tolist())
    legs = list(map(Leg, hexadecimal(some.id), *columns))
    spots = np.zeros(held.shape, np.int64)
    spots[held] = np.searchsorted(used, places)
    sizes: list[int] = held.sum(axis=1).tolist()
    places_of: Any = spots.tolist()
    own = [[legs[place] for place in row[:n]] for row, n in zip(places_of, sizes, strict=True)]
    names, births = hexadecimal(hits.id), change.detected_at.tolist()
    detected_at = {birth: timestamp(birth) for birth in set(births)}
    leads = hits.own.tolist()
    unconfirmed = ((hits.figures[:, -1].astype(np.int64) & 1) != 0).tolist()
    out: list[Any] = [None] * hits.size
    for code, kind in enumerate(KINDS.values()):
        here = np.flatnonzero(hits.kind == code)
        if not here.size:
            continue
        held_of, row = hits.figures[here].T, _row_of(kind)
        figures = zip(*[figure.of(held_of).tolist() for figure in kind.figures], strict=True)
        for i, values in zip(here.tolist(), figures, strict=True):
            market = markets[places_of[i][leads[i]]]
            out[i] = row(names[i], kind.name, *market, *values, unconfirmed[i], own[i], detected_at[births[i]])
    return out


def _published(raw_label: Any) -> str:
    """The market type under which opportunities of a raw label are published."""
    return catalog.published_name(raw_label[5] or "", raw_label[1] or "", raw_label[10] or "", raw_label[6] or "")


def update_of(
    state: ReadState, batch: Batch, applied: AppliedBatch, search: Sequence[Findings], read: Quotes | None
) -> Update:
    """The update of a step, before what its search found is applied."""
    board = state.board
    rows = board.rows
    moved = np.flatnonzero((applied.what & MOVED) != 0)
    moved = moved[rows.state[applied.slots[moved]] == ON]
    slots = distinct(applied.slots[moved])
    of = np.searchsorted(slots, applied.slots[moved])
    what = np.zeros(slots.size, np.uint8)
    np.bitwise_or.at(what, of, applied.what[moved])
    parts: dict[View, list[ViewChange]] = {}
    rejudged = board.rejudged()
    legs = [slots, rejudged]
    for searched in (each for findings in search for each in findings.searched):
        made, hits = _changes(state.opened, searched, batch.now)
        for view, change in made.items():
            parts.setdefault(view, []).append(change)
        legs.append(hits.legs[hits.legs >= 0])
    changes = {view: found[0] if len(found) == 1 else ViewChange.joined(found) for view, found in parts.items()}
    every = distinct(np.concatenate(legs))
    facts = board.facts(every)
    again = applied.slots[applied.what == SEEN]
    removed = board.facts(distinct(applied.removed))
    return Update(
        number=board.number + 1,
        now=batch.now,
        moment=board.moment,
        facts=facts,
        rows=facts.places(slots),
        what=what,
        judged=facts.places(rejudged),
        past=board.past(),
        line_moved=_line_moved(board, slots, what, removed),
        removed_rows=removed,
        views=changes,
        rejected=_refused(applied, read),
        late=applied.late,
        again=rows.id[again],
        again_key=rows.key[again],
        again_seen=rows.seen[again],
    )


def _changes(table: OpenTable, searched: SearchResult, now: int) -> tuple[dict[View, ViewChange], Hits]:
    """The changes of each active view, and everything in them that is new or has changed."""
    difference = searched.difference
    fresh = np.flatnonzero(difference.status != SAME)
    hits, status, old = searched.hits.take(fresh), difference.status[fresh], difference.old[fresh]
    detected_at = np.where(old < 0, now, table.detected_at[np.maximum(old, 0)])
    ids, kinds = table.id[difference.expired], table.kind[difference.expired]
    size = (difference.ends.size - 1) // len(searched.views)
    at = np.searchsorted(fresh, difference.ends[::size]).tolist()
    out, around = difference.expired_ends.tolist(), difference.affected_ends.tolist()
    affected = table.id[difference.affected]
    promised = None if searched.promised is None else searched.promised[fresh]
    changes = {
        view: ViewChange(hits, slice(at[k], at[k + 1]), status[at[k] : at[k + 1]], detected_at[at[k] : at[k + 1]],
                     ids[out[k] : out[k + 1]], kinds[out[k] : out[k + 1]], affected[around[k] : around[k + 1]],
                     None if promised is None else promised[at[k] : at[k + 1]])
        for k, view in enumerate(searched.views) if view.active
    }  # fmt: skip
    if len(changes) < len(searched.views):
        active = np.repeat([view.active for view in searched.views], np.diff(at))
        hits = hits.take(active)
    return changes, hits


def _line_moved(board: Board, slots: Ints, what: Any, removed: Facts) -> dict[int, int]:
    """New rows that replace removed rows with another line: index of the new row -> index of the removed one."""
    if not removed.slot.size or not (what & NEW).any():
        return {}
    stem, key = board.names.terms.stem.values, board.rows.key
    lost = {
        (int(s), b): at
        for at, (s, b) in enumerate(zip(stem[removed.key >> BOOK_BITS], removed.key & BOOK_MASK, strict=True))
    }
    new = np.flatnonzero(what & NEW)
    named = zip(
        new.tolist(),
        stem[key[slots[new]] >> BOOK_BITS].tolist(),
        (key[slots[new]] & BOOK_MASK).tolist(),
        strict=True,
    )
    moves = {at: lost[s, b] for at, s, b in named if (s, b) in lost}
    words = board.names.terms.raw_labels
    lines = {at: words[int(key[slots[at]]) >> BOOK_BITS][-1] for at in moves}
    return {at: to for at, to in moves.items() if words[int(removed.key[to]) >> BOOK_BITS][-1] != lines[at]}


def _refused(applied: AppliedBatch, read: Quotes | None) -> pl.DataFrame:
    refused = NONE_REJECTED if read is None else read.rejected
    if not applied.unknown:
        return refused
    at = np.flatnonzero(applied.what == UNKNOWN)
    rows = at if read is None or read.number is None else read.number[at]
    more = pl.DataFrame({"row": rows}).with_columns(
        field=pl.lit("odds_decimal"), value=pl.lit(""), reason=pl.lit("no price given"), guard=pl.lit("bad_price")
    )
    return pl.concat([refused, more.cast(BAD_ROW_SCHEMA)]).sort("row")  # type: ignore[arg-type]


__all__ = ["BOOK_BITS", "SAME", "Update", "ViewChange", "hexadecimal"]
