"""A part of the live board, copied while no step runs: all that the rows of open opportunities say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.board.changed_markets import ladders_with, loosen, scope
from oddsengine.board.facts import Columns, Facts
from oddsengine.board.open import OpenTable
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import Bytes, Ints, Longs, Words, spans
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine.detection.opportunity_ids import Hashes
from oddsengine.detection.question import Question, repeated
from oddsengine.detection.sweep import Candidates, Scope, Thresholds
from oddsengine.detection.tails import Forms, curves
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import Groups, distinct
from oddsengine.identity.layout import BOOK_BITS, PartitionColumns
from oddsengine.identity.table_identity import Identity
from oddsengine.live.key import ViewKey
from oddsengine.live.replica import ReadState
from oddsengine.pricing.close import CloseInput
from oddsengine.pricing.commission import PriceDepth
from oddsengine.pricing.references import CLOSE, FairPrices, ViewSpec, fair_prices
from oddsengine.pricing.votes import EVERY_ROW
from oddsengine.tables.levels import DEPTH_SCHEMA, LEVELS, most_of_levels


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


class Found(NamedTuple):
    """What a view has open in some partitions: kinds and legs, as rows of their groups."""

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

    def scope(self, some: PartitionColumns, shapes: Forms, *, one_sided: bool) -> Scope:
        """The markets and ladders that they are in, and those whose fair probabilities their rows show."""
        g, changed = some.groups, np.zeros(some.groups.threshold.size, np.uint8)
        changed[g.market[self.legs[self.legs >= 0]]] = 1
        return scope(some, loosen(some, changed) if one_sided else changed, curves(g, shapes))

    def shown(self, g: Groups, *, whole: bool) -> Longs:
        """The rows of which their rows say something: the legs, and prices beside those of kinds that are hashed.

        With `whole`, prices beside single bets too, whose rows name the books of one provider.
        """
        beside = self.of(lambda kind: kind.hashed or (whole and kind.single)).ravel()
        beside = beside[beside >= 0]
        segment = distinct(g.segments[g.market[beside]] + g.side[beside])
        return np.concatenate((self.legs[self.legs >= 0], spans(g.rows[segment], g.rows[segment + 1])))

    def candidates(self, g: Groups, where: Scope) -> Candidates:
        """The same as candidates of the finders that share a sweep, within their scope."""
        markets = g.threshold.size
        legs = self.legs[self.kind == KINDS.code("middles"), :2]
        pairs = g.market[legs].astype(np.int64)
        low, high = np.divmod(distinct(pairs[:, 0] * markets + pairs[:, 1]), max(markets, 1))
        sums = np.flatnonzero(where.markets)
        edges = distinct(g.market[self.legs[self.kind == KINDS.code("ev"), 0]]).astype(np.int64)
        best = np.full(low.size, np.inf)
        return Candidates(
            np.zeros(sums.size, np.int64), sums, np.zeros(sums.size), np.zeros(edges.size, np.int64), edges,
            np.zeros(low.size, np.int64), low, high, best, best, np.inf,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BoardPart:
    """The partitions of some open opportunities."""

    identity: Identity
    extra: Mapping[str, Any]  # columns of prices of exchanges
    staked: bool
    _known: Facts
    _slots: Ints  # per row of the groups, whose `row` is its place
    _guarded: Verdicts
    _scope: Scope  # of the opportunities
    _found: Candidates
    _estimated: CloseInput | None  # if closing prices are asked for
    _depth: PriceDepth | None
    _ladder: Words | None  # of a model
    _hashes: Hashes
    _forms: Forms

    @classmethod
    def copied(cls, shown: ReadState, places: Ints, wanted: ViewKey, spec: ViewSpec, *, beside: bool) -> "BoardPart":
        """What the board says of some places of its open table; `beside`: and of prices beside single bets."""
        board, held = shown.board, shown.opened
        names, rows = board.names, board.rows
        some = board.gather(np.unique(held.partition[places]).astype(np.int64))
        slots = some.groups.row
        some = some._replace(groups=some.groups._replace(row=np.arange(slots.size, dtype=np.int32)))
        g, found = some.groups, Found.at(held, places, slots)
        where = found.scope(some, names.tables.forms, one_sided=wanted.one_sided)
        guarded, estimated = board.verdicts(slots), None
        if wanted.method == CLOSE:
            estimated, _ = board.estimated(some, guarded.reason, slots, shown.fair, ladders_with(g, where.fair))
            estimated = estimated._replace(needed=np.where(where.markets != 0, np.uint8(EVERY_ROW), where.fair))
        swapped = names.terms.swapped.values[rows.key[slots] >> BOOK_BITS] != 0
        identity = Identity(
            g, tuple(names.kinds.values), names.books.ranked(), np.empty(0, np.uint8), swapped,
            tuple(names.events.sports), pl.Series(dtype=pl.String), names.tables.traits,
        )  # fmt: skip
        return cls(
            identity, {name: DEPTH_SCHEMA[name] for name in rows.own_columns()}, spec.stake is not None,
            board.facts(distinct(slots[found.shown(g, whole=beside)])), slots, guarded, where,
            found.candidates(g, where), estimated, rows.price_depth(slots, levels=spec.stake is not None),
            None if spec.model is None else names.ladders_of(g, spec.model), names.hashes(g), names.tables.forms,
        )  # fmt: skip

    def facts(self, rows: Ints | Longs) -> BoardRows:
        """What the board says about some rows."""
        return BoardRows(self._columns, self._known.places(self._slots[rows]), self.staked, self.extra)

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self._known)

    def question(self, spec: ViewSpec, thresholds: Thresholds, off: frozenset[int]) -> Question:
        """The search for the opportunities, which makes their rows."""
        seen = fair_prices(
            self.identity.groups, self.identity.traits, self._guarded, spec, off, needed=self._scope.fair,
            board=self._estimated, ladder=self._ladder, depth=self._depth,
        )  # fmt: skip
        search = common(seen, thresholds, self._scope, self._hashes, self._forms, off)
        return Question(**search, board=self, found=self._found)


def common(
    seen: FairPrices, thresholds: Thresholds, scope: Scope, hashes: Hashes, shapes: Forms, off: frozenset[int]
) -> dict[str, Any]:
    """The fields of a search."""
    cap = CODES["ev_cap"] not in off
    return {"prices": seen, "thresholds": thresholds, "scope": scope, "hashes": hashes, "forms": shapes, "cap": cap}
