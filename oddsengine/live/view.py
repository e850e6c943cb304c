"""Views: the opportunities of the live board for one set of books, references and thresholds.

The engine keeps a view's open set up to date while the view is active. A view reads from it the state of exactly one
update. The frames are made by the same finders as those of `find_all`, over the partitions with open opportunities.
"""

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl

from oddsengine.board.facts import moments_of
from oddsengine.board.names import Names
from oddsengine.board.open import OpenSet
from oddsengine.bounds import excerpt
from oddsengine.columns import Words
from oddsengine.detection.finders import Opportunities
from oddsengine.detection.kinds import BUILT_IN, KINDS, Kind
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.detection.question import Question, empty
from oddsengine.detection.sweep import Thresholds
from oddsengine.live.key import ViewKey
from oddsengine.live.part import BoardPart
from oddsengine.live.replica import ReadState
from oddsengine.pricing.references import Users, ViewSpec, view_spec

IDLE_S = 300  # a view that is not read for this long is suspended


class Host(Protocol):
    """The parts of an engine that a view uses."""

    @property
    def off(self) -> frozenset[int]:
        """Codes of disabled guards."""

    def reading(self, view: "View") -> AbstractContextManager[ReadState]:
        """The state after the last step, in which a view is active; it does not change meanwhile."""

    def shown(self) -> AbstractContextManager[ReadState]:
        """The same, whether or not the view is active."""

    def rejected_counts(self) -> dict[str, int]:
        """Number of rejected rows, by reason."""

    def release(self, view: "View") -> None:
        """Undo one `keep`."""

    def close(self, view: "View") -> None:
        """Suspend a view."""


class Together(NamedTuple):
    """The books and thresholds of views that are searched together."""

    specs: list[ViewSpec]  # of each view
    users: Users
    thresholds: Thresholds


class View:
    """One view; created by `Engine.view`."""

    def __init__(self, engine: Host, wanted: ViewKey) -> None:
        self._engine = engine
        self.wanted = wanted
        self.thresholds = wanted.thresholds()
        self.open = OpenSet()
        self.active = False
        self.kept = 0  # how many users keep it active
        self.restored = False  # kept by a snapshot until somebody keeps it
        self.read_at = 0
        self.resumed_at = 0  # board time
        self.needed: dict[Hashable, int] = {}  # by delayed board that shows it: board time until which it does
        self._spec: tuple[int, ViewSpec] | None = None  # for how many books
        self.together: Together | None = None  # with the views that it was last searched with, as the first of them

    def __repr__(self) -> str:
        books = "all books" if self.wanted.books is None else ", ".join(self.wanted.books)
        return f"<View over {books}; {'active' if self.active else 'suspended'}>"

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
            raise ValueError(f"ids must be an array of uint64, such as `ViewChange.affected`, got {excerpt(ids)}")
        codes = [KINDS.code(kind) for kind in KINDS.some(kinds) if kind in self.wanted.kinds]
        with self._engine.reading(self) as shown:
            held, at = shown.opened, shown.open(self.wanted).places()
            at = at[np.isin(held.kind[at], codes)]
            open_ids = {code: held.id[at[held.kind[at] == code]] for code in codes}
            if ids is not None:
                at = at[np.isin(held.id[at], ids)]
            read = set(held.kind[at].tolist())
            detected_at = dict(zip(hexadecimal(held.id[at]), held.detected_at[at].tolist(), strict=True))
            spec = self.spec(shown.board.names)
            part = BoardPart.copied(shown, at, self.wanted, spec, beside=ids is not None)
            counts = self._engine.rejected_counts() if ids is None and counted else {}
        question = part.question(spec, self.thresholds, self._engine.off)
        frames = {
            name: _since(_rows(kind, question, open_ids[code], ids), detected_at)
            if code in read
            else empty(kind.schema)
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
    segment = np.searchsorted(question.prices.groups.rows, kind.located(question, hits).rows[:, 0], side="right")
    rows = kind.build(question, hits.only(np.flatnonzero(np.isin(segment, segment[wanted]))))
    return rows[np.flatnonzero(np.isin(rows["id"].str.tail(16).to_list(), hexadecimal(ids)))]


def _since(frame: pl.DataFrame, detected_at: dict[str, int]) -> pl.DataFrame:
    """Add the time of first detection."""
    if not frame.height:
        return frame
    times = [detected_at[ident[-16:]] for ident in frame["id"].to_list()]
    column = moments_of(np.array(times, np.int64)).alias("detected_at")
    return frame.replace_column(frame.get_column_index(column.name), column)
