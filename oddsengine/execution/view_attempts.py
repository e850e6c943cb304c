"""Attempts at what is new in a view of an engine, step by step."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from oddsengine import catalog
from oddsengine.board.open import NEW, Hits
from oddsengine.detection.book_names import absent, refused
from oddsengine.detection.kinds import KINDS
from oddsengine.execution.attempts import Attempt, Attempts, NewOpportunity, Order, Rules
from oddsengine.execution.ladders import Ladders
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View


def changed_prices(update: Update, watched: Collection[int]) -> list[int]:
    """Ids of the watched prices that have changed in a step."""
    if not watched:
        return []
    ids = np.concatenate((update.facts.id[update.rows], update.removed_rows.id))
    return [row for row in ids.tolist() if row in watched]


class ViewAttempts:
    """The attempts at everything that a view shows.

    Parameters
    ----------
    engine, view
        The engine, and one of its views; prices are those of the best levels, so the view must not have a stake.
    rules, rates
        As for `Attempts` and `Ladders`.
    log
        Whether to keep all orders.
    strict
        Whether sizes in a currency without a rate are an error; otherwise opportunities with them are not attempted.
    """

    def __init__(
        self, engine: Engine, view: View, rules: Rules, rates: Mapping[str, float] | None = None, *, log: bool = False,
        strict: bool = True,
    ) -> None:  # fmt: skip
        self._engine, self._view, self._rules = engine, view, rules
        ladders = Ladders(view.wanted.commission, rates, strict=strict)
        self._attempts = Attempts(rules, ladders, view.wanted.books, log=log)
        self._hold = 1.0 + (dict(view.wanted.limits).get("max_hold") or 0.0) / 100.0
        self._now = 0

    @property
    def orders(self) -> list[Order]:
        """All orders, if they are kept."""
        return self._attempts.orders or []

    def follow(self, update: Update, first: int) -> list[Attempt]:
        """Process a step, and return the attempts that have ended.

        `first` is the number of the first opportunity that is new in this step; the others follow, in the order of the
        view's hits.
        """
        self._now = update.now
        change, attempts = update.of(self._view), self._attempts
        new = change.hits.take(change.status == NEW)
        changed = changed_prices(update, self._attempts.watched)
        if not (new.size or changed or attempts.next_due <= update.now):
            return []
        with self._engine.still() as board:
            attempts.follow(board, update.now, changed, self._new(new, first))
        return attempts.take_done()

    def finish(self) -> list[Attempt]:
        """End all attempts, and return them."""
        with self._engine.still() as board:
            self._attempts.finish(board, self._now)
        return self._attempts.take_done()

    def check_delays(self) -> None:
        """Raise `ValueError` if a delay is of a book that neither the board nor the catalog has."""
        books = self._engine.books
        if strange := absent(self._rules.delays, [*books, *catalog.books()]):
            raise refused("delays", strange, books)

    def _new(self, new: Hits, first: int) -> Iterator[NewOpportunity]:
        """What is first shown, the best of each kind first."""
        if not new.size:
            return
        value, cost, kinds = new.values(), np.nansum(1.0 / new.net_odds(), axis=1), list(KINDS.values())
        rises = np.array([kind.rises for kind in kinds])[new.kind]
        worth = np.where(rises, cost * (1.0 + value / 100.0), self._hold)
        for at in np.lexsort((new.id, np.where(rises, -value, value), new.kind)).tolist():
            slots = tuple(slot for slot in new.legs[at].tolist() if slot >= 0)
            yield NewOpportunity(first + at, kinds[new.kind[at]].name, slots, float(worth[at]))
