"""One update for subscribers: rows that changed, are new, or were removed, each encoded on first use."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine.live.update import Update, hexadecimal
from oddsengine.query import Index, Marks, OddsRows, RowChanges, UpdateChanges
from oddsengine.tables.timestamps import timestamps
from oddsengine_service.stream.sse import OddsDelta, raw
from oddsengine_service.wire.numbers import PRECISE, americans, rounded_column
from oddsengine_service.wire.odds_response import ODDS, fields_of
from oddsengine_service.wire.reference_objects import with_references


class RowForm(NamedTuple):
    """How rows are encoded: with links for a US state; with references."""

    state: str = ""
    refs: bool = False


class UpdateMoves(UpdateChanges):
    """One update as groups need it."""

    def __init__(self, update: Update, index: Index, marks: Marks | None) -> None:
        super().__init__(update, index, marks)
        self._deltas: list[msgspec.Raw] | None = None
        self._fulls: dict[tuple[int, RowForm, frozenset[str] | None], dict[int, msgspec.Raw]] = {}
        self._ids: dict[int, list[str]] = {}

    def renewed(self) -> tuple[RowChanges, list[str], list[str]] | None:
        """Rows that were only seen again, with their ids and times."""
        rows = self.seen_again()
        return None if rows is None else (rows, self.update.renewed, timestamps(self.update.again_seen))

    def ids(self, rows: RowChanges) -> list[str]:
        """Ids of the rows of one part."""
        found = self._ids.get(id(rows))
        if found is None:
            found = self._ids[id(rows)] = hexadecimal(rows.facts.id)
        return found

    def deltas(self) -> list[msgspec.Raw]:
        """The rows that changed."""
        if self._deltas is None:
            self._deltas = self._delta(self.moved)
        return self._deltas

    def locks(self) -> list[msgspec.Raw]:
        """The rows that were suspended."""
        return self._delta(self.hidden)

    def _delta(self, rows: RowChanges) -> list[msgspec.Raw]:
        facts, texts = rows.facts, self.terms.texts
        return raw(
            map(
                OddsDelta, self.ids(rows), americans(facts.odds, facts.american),
                rounded_column(facts.odds, PRECISE), rounded_column(1.0 / facts.odds, PRECISE),
                [texts[t].line for t in rows.term.tolist()], facts.live.tolist(),
                timestamps(facts.changed),
            )
        )  # fmt: skip

    def fulls(
        self, part: RowChanges, form: RowForm, places: Sequence[int], lines: frozenset[str] | None
    ) -> list[msgspec.Raw]:
        """Complete rows of some that are new or have changed, with the main lines among the prices of some books."""
        made = self._fulls.setdefault((id(part), form, lines), {})
        missing = [place for place in places if place not in made]
        if missing:
            made.update(zip(missing, raw(rows_in(form)(self.rows_of(part, np.array(missing), lines))), strict=True))
        return [made[place] for place in places]


@lru_cache(maxsize=64)
def rows_in(form: RowForm) -> Callable[[OddsRows], list[dict[str, Any]]]:
    """The encoder of rows."""
    rows = fields_of(ODDS, form.state)
    return (lambda found: with_references(rows(found), None)) if form.refs else rows
