"""The record of a node's fills: how many of the opportunities that it showed could be had.

Each is attempted for `STAKE` when it is first shown, by the rules of `fills`, and kept with its outcome by week.
"""

from collections.abc import Iterable

import numpy as np
import polars as pl

from oddsengine.board.open import NEW
from oddsengine.columns import SECOND
from oddsengine.detection.kinds import KINDS
from oddsengine.execution.attempts import Attempt, Rules
from oddsengine.execution.view_attempts import ViewAttempts
from oddsengine.history.truth_file import FillShare
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update

STAKE = 100.0
_FORGET_S = 3600  # of opportunities with sizes in a currency that is not known, which are not attempted
LEAST = 50  # opportunities of which a share is said
KEY = ["kind", "id", "at", "bound"]
_SCHEMA = {
    "kind": pl.String, "id": pl.UInt64, "at": pl.Int64, "bound": pl.String, "event": pl.String, "books": pl.String,
    "live": pl.Boolean, "outcome": pl.String,
}  # fmt: skip


class FillRecord:
    """The attempts at everything that an engine shows by the usual thresholds."""

    def __init__(self, engine: Engine) -> None:
        self._view = engine.view(min_ev=1.0, keep=True)
        self._attempts = ViewAttempts(engine, self._view, Rules((STAKE,)), strict=False)
        self._shown: dict[int, tuple[str, int, int, str, str, bool]] = {}  # of which the outcome is not known yet
        self._half: dict[int, Attempt] = {}  # of which one bound is known
        self._size = self._now = 0
        self._rows: list[tuple[object, ...]] = []

    def follow(self, update: Update) -> None:
        """Process a step."""
        change, first, self._now = update.of(self._view), self._size, update.now
        new = change.hits.take(change.status == NEW)
        if new.size:
            self._size += new.size
            held = new.legs >= 0
            facts = update.facts.take(update.facts.places(new.legs[held]))
            books, kinds = np.array(facts.sportsbooks, object), list(KINDS)
            events, live = [text[0] or "" for text in facts.texts], facts.live
            ends = np.cumsum(held.sum(axis=1)).tolist()
            for at, end in enumerate(ends):
                a = ends[at - 1] if at else 0
                named = ", ".join(sorted(set(books[a:end].tolist())))
                kind, ident = kinds[new.kind[at]], int(new.id[at])
                self._shown[first + at] = kind, ident, update.now, events[a], named, bool(live[a])
        self._keep(self._attempts.follow(update, first))

    def _keep(self, done: Iterable[Attempt]) -> None:
        """Keep the outcomes of opportunities of which both bounds are known."""
        for attempt in done:
            other = self._half.pop(attempt.number, None)
            if other is None:
                self._half[attempt.number] = attempt
                continue
            if shown := self._shown.pop(attempt.number, None):
                kind, ident, at, *of = shown
                for each in (other, attempt):
                    self._rows.append((kind, ident, at, each.bettor.bound, *of, each.outcome))

    def take(self) -> pl.DataFrame:
        """The outcomes that are known since the last call."""
        rows, self._rows = self._rows, []
        since = self._now - _FORGET_S * SECOND
        self._shown = {number: of for number, of in self._shown.items() if of[2] > since}
        self._half = {number: attempt for number, attempt in self._half.items() if number in self._shown}
        return pl.DataFrame(rows, _SCHEMA, orient="row")


def start_seconds() -> pl.Expr:
    """When an opportunity was shown, in unix seconds."""
    return pl.col("at") // SECOND


def fill_shares(rows: pl.DataFrame) -> list[FillShare]:
    """Shares by kind, and by kind and books, of those of which enough have been shown before a game."""
    if rows.is_empty():
        return []
    early = rows.filter(~pl.col("live")).with_columns(whole=pl.col("outcome") == "whole")
    out = []
    for by in (["kind"], ["kind", "books"]):
        counts = early.group_by(by).agg(
            *((100.0 * pl.col("whole").filter(bound=name).mean()).alias(name) for name in ("least", "most")),
            shown=pl.col("bound").eq("least").sum(),
        )
        for row in counts.filter(pl.col("shown") >= LEAST).sort(by).iter_rows(named=True):
            books = row["books"].split(", ") if "books" in row else None
            ends = {f"whole_{name}": round(row[name], 1) for name in ("least", "most")}
            out.append(FillShare(kind=row["kind"], sportsbooks=books, stake=STAKE, shown=row["shown"], **ends))
    return out
