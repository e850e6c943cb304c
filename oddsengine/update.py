"""Updates: the immutable result of one step. Frames and JSON are made on demand."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine.board.facts import Facts, moments_of
from oddsengine.board.rows import LIVENESS, NEW, PRICE, STATUS
from oddsengine.find.ids import hexadecimal
from oddsengine.groups import NO_TIME, Bytes, Longs, Words
from oddsengine.identity import WORDING
from oddsengine.layout import BOOK_BITS, LIVE, SUSPENDED
from oddsengine.open_opportunities import ARBITRAGE, EV, KINDS, LOW_HOLD, SAME, Hits
from oddsengine.open_opportunities import NEW as BORN
from oddsengine.view import View

_MOVES = (("price", PRICE), ("live", LIVENESS), ("status", STATUS))
_encoder = msgspec.json.Encoder()
_LINE = itemgetter(-1)


def iso(micros: int) -> str | None:
    """Format a time for JSON."""
    return None if micros == NO_TIME else f"{np.datetime64(micros, 'us')}Z"


class Delta(msgspec.Struct, gc=False):
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
class Change:
    """The effect of one step on one view: new, changed and expired opportunities."""

    hits: Hits  # new or changed
    status: Bytes  # of each: `open_opportunities.NEW` or `open_opportunities.CHANGED`
    born: Longs  # when each was first found
    expired: Words
    expired_kind: Bytes
    touched: Words  # unchanged figures, but prices of the ladder moved: the row may show other prices

    def __repr__(self) -> str:
        born = int((self.status == BORN).sum())
        return f"<Change: {born:,} born, {self.hits.size - born:,} changed, {self.expired.size:,} expired>"

    def ids(self, kind: str, *, new: bool) -> list[str]:
        """Ids of one kind that are new or have changed."""
        which = (self.hits.kind == KINDS.index(kind)) & ((self.status == BORN) == new)
        return hexadecimal(self.hits.id[which])

    def gone(self, kind: str) -> list[str]:
        """Ids of one kind that have expired."""
        return hexadecimal(self.expired[self.expired_kind == KINDS.index(kind)])


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
    relined: Mapping[int, int]  # index in `rows` of a new row -> index in `gone` of the row whose line moved to it
    gone: Facts
    views: Mapping[View, Change]
    rejected: pl.DataFrame  # `BAD_ROW_SCHEMA`, including suspended quotes without a price for unknown rows
    late: int
    again: Words  # ids of rows that were only seen again
    again_key: Longs  # their terms and books
    again_seen: Longs  # and times

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

    def of(self, view: View) -> Change:
        """The effect on one view; empty if there is none."""
        change = self.views.get(view)
        if change is None:
            none = np.empty(0, np.int64)
            ids, kinds = none.view(np.uint64), np.empty(0, np.uint8)
            change = Change(Hits.none(), kinds, none, ids, kinds, ids)
        return change

    def __repr__(self) -> str:
        new = int(((self.what & NEW) != 0).sum())
        parts = [f"{new:,} new, {self.what.size - new:,} changed, {self.gone.slot.size:,} removed"]
        for view, change in self.views.items():
            born = int((change.status == BORN).sum())
            told = f"{born:,} born, {change.hits.size - born:,} changed, {change.expired.size:,} expired"
            parts.append(f"{view!r}: {told}")
        return f"<Update {self.number:,}: {'; '.join(parts)}>"

    @cached_property
    def changed(self) -> pl.DataFrame:
        """Rows that are new or have changed: id, what changed, and current values."""
        facts = self.facts.take(self.rows)
        moved = {name: (self.what & bit) != 0 for name, bit in _MOVES}
        new = (self.what & NEW) != 0
        line = np.zeros(new.size, bool)
        line[list(self.relined)] = True
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
        frame = self.gone.frame().select("sportsbook", "event_id", "market_type", "selection", "line")
        return frame.with_columns(
            pl.Series("id", hexadecimal(self.gone.id), dtype=pl.String), moments_of(self.gone.moved).alias("removed_at")
        ).select("id", "sportsbook", "event_id", "market_type", "selection", "line", "removed_at")

    def json(self, view: View | None = None) -> bytes:
        """The update as JSON: changed rows, removals, and the changes of one view."""
        return _encoder.encode(self._told(self._encoded, view))

    def plain(self, view: View | None = None) -> dict[str, Any]:
        """The update as plain lists and mappings: full rows if new, else the fields that can change."""
        found: dict[str, Any] = msgspec.to_builtins(self._told(self._rows, view))
        return found

    @cached_property
    def _rows(self) -> dict[str, Any]:
        """Changes of the board's rows, the same for every view."""
        new = (self.what & NEW) != 0
        return {
            "new": _full(self.facts.take(self.rows[new])),
            "changed": self._moves(~new),
            "removed": hexadecimal(self.gone.id),
        }

    @cached_property
    def _encoded(self) -> dict[str, Any]:
        """`_rows` as JSON, encoded once for all views."""
        return {name: msgspec.Raw(_encoder.encode(rows)) for name, rows in self._rows.items()}

    def _told(self, rows: dict[str, Any], view: View | None) -> dict[str, Any]:
        out: dict[str, Any] = {"number": self.number, "now": iso(self.now), **rows}
        if view is not None and view in self.views:
            change = self.views[view]
            out["detected"] = _opportunities(change, self.facts)
            out["expired"] = hexadecimal(change.expired)
        return out

    def _moves(self, which: npt.NDArray[np.bool_]) -> list[Delta]:
        """The changeable fields of some rows; the start only if the row's status changed."""
        facts = self.facts.take(self.rows[which])
        deltas = list(map(Delta, *_figures_of(facts)))
        for at in np.flatnonzero(self.what[which] & STATUS).tolist():
            deltas[at].event_start_time = iso(int(facts.start[at]))
        return deltas


def _figures_of(facts: Facts) -> tuple[list[Any], ...]:
    """The columns of `Delta`."""
    return (
        hexadecimal(facts.id), facts.prices.tolist(), facts.odds.tolist(), (1.0 / facts.odds).tolist(),
        list(map(_LINE, facts.texts)), ((facts.flags & LIVE) != 0).tolist(),
        ((facts.flags & SUSPENDED) == 0).tolist(), _isos(facts.changed),
    )  # fmt: skip


def _full(facts: Facts) -> list[dict[str, Any]]:
    """Rows by id with all fields."""
    if not facts.key.size:
        return []
    columns = (*_figures_of(facts), facts.sportsbooks, _isos(facts.seen), _isos(facts.start))
    names = (*Delta.__struct_fields__[:8], "sportsbook", "last_seen_at", "event_start_time")
    return [
        dict(zip(names, fields, strict=True), **dict(zip(WORDING, wording, strict=False)))
        for fields, wording in zip(zip(*columns, strict=True), facts.texts, strict=True)
    ]


def _isos(micros: Longs) -> list[str | None]:
    known, of = np.unique(micros, return_inverse=True)
    texts = [None if m == NO_TIME else f"{t}Z" for t, m in zip(known.view("M8[us]").astype(str), known, strict=True)]
    return [texts[at] for at in of.tolist()]


def _opportunities(change: Change, facts: Facts) -> list[dict[str, Any]]:
    """Opportunities by id with their figures and legs."""
    hits = change.hits
    held = hits.legs >= 0
    at = facts.places(np.maximum(hits.legs, 0).ravel())
    places = np.minimum(at, max(facts.slot.size - 1, 0))
    rows = hexadecimal(facts.id)
    books, texts, odds = facts.sportsbooks, facts.texts, facts.odds.tolist()
    legs: Any = places.reshape(hits.legs.shape).tolist()
    out = []
    sizes: list[int] = held.sum(axis=1).tolist()
    figured: list[list[float]] = hits.figures.tolist()
    kinds: list[int] = hits.kind.tolist()
    births: list[int] = change.born.tolist()
    born: dict[int, str | None] = {}
    fields = zip(hexadecimal(hits.id), kinds, figured, legs, strict=True)
    for (ident, kind, figures, spots), n, first in zip(fields, sizes, births, strict=True):
        if first not in born:
            born[first] = iso(first)
        wording = texts[spots[0]]
        out.append(
            {
                "id": ident, "kind": KINDS[kind], "event_id": wording[0], "market_type": _published(wording),
                "player_name": wording[9], **_figures(kind, figures), "unconfirmed": int(figures[-1]) & 1 != 0,
                "legs": [
                    {
                        "id": rows[p], "sportsbook": books[p], "selection": texts[p][7], "line": texts[p][-1],
                        "odds_decimal": odds[p],
                    }
                    for p in spots[:n]
                ],
                "detected_at": born[first],
            }
        )  # fmt: skip
    return out


def _published(wording: Any) -> str:
    """The market type under which opportunities of a wording are published."""
    return catalog.published_name(wording[5] or "", wording[1] or "", wording[10] or "", wording[6] or "")


def _figures(kind: int, figures: list[float]) -> dict[str, float]:
    """The named figures of an opportunity; see `find`."""
    if kind == EV:
        return {"ev_percentage": figures[0] * 100.0, "fair_probability": figures[1], "market_width": figures[2] * 100.0}
    if kind == ARBITRAGE:
        return {"profit_percent": 100.0 / figures[0] - 100.0, "implied_total": figures[0] * 100.0}
    if kind == LOW_HOLD:
        return {"hold_percentage": max(figures[0] - 1.0, 0.0) * 100.0}
    return {"expected_value": figures[0] * 100.0, "middle_probability": figures[1]}


__all__ = ["BOOK_BITS", "SAME", "Change", "Update", "hexadecimal", "iso"]
