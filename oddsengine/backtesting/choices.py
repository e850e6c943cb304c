"""What a strategy chooses of the +EV prices of an engine.

After a step, a strategy chooses among the +EV prices of the games in which one is new or has changed. Each outcome of a
market is chosen once, at one book. Choices do not depend on money, and those of one game not on those of another: so
the games of a history can be played side by side, and stakes are decided afterwards, in order of time.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from oddsengine.backtesting.accounts import Offer
from oddsengine.backtesting.strategy import Strategy
from oddsengine.columns import Words
from oddsengine.identity.layout import BOOK_BITS, LIVE, ON, SUSPENDED
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.tables.schema import OddsError

_OUTCOME = (
    "event_id", "market_type", "market_segment", "player_name", "team_side", "selection_type", "line", "is_live",
)  # fmt: skip


class Choices:
    """The choices of a strategy on an engine."""

    def __init__(self, engine: Engine, strategy: Strategy) -> None:
        self._engine, self._strategy = engine, strategy
        self.view = engine.view(
            strategy.books, strategy.sharp, strategy.method, commission=strategy.commission, kinds=["ev"],
            min_ev=strategy.min_ev, model=strategy.model, keep=True,
        )  # fmt: skip
        self._outcomes: set[tuple[object, ...]] = set()  # those chosen so far
        self._prices: set[int] = set()  # ids of their opportunities, which are others in play

    def after(self, update: Update) -> pl.DataFrame | None:
        """What is chosen for the first time after a step, by EV; None if nothing is."""
        hits = update.of(self.view).hits
        ids = self._in_games_of(hits.id) if hits.size else hits.id
        if not ids.size:
            return None
        shown = self.view.opportunities(["ev"], ids=ids).ev
        try:
            chosen = self._strategy.choose(shown)
        except pl.exceptions.ColumnNotFoundError as error:
            raise OddsError(f"a strategy chose by a column that +EV prices lack: {error}") from None
        fresh = []
        for at, (ident, *outcome) in enumerate(chosen.select("id", *_OUTCOME).iter_rows()):
            key = tuple(outcome)
            if key not in self._outcomes:
                self._outcomes.add(key)
                fresh.append(at)
            self._prices.add(_number(ident))
        return chosen[fresh].sort("ev_percentage", "id", descending=[True, False]) if fresh else None

    def offers(self, prices: Sequence[str]) -> list[Offer | None]:
        """What stands of some prices; None: it is gone."""
        with self._engine.still() as board:
            rows = board.rows
            slots = rows.find_ids(np.array([_number(price) for price in prices], np.uint64))
            here, at = (slots >= 0) & (rows.state[slots] == ON), np.maximum(slots, 0)
            live, suspended = (rows.flags[at] & LIVE) != 0, (rows.flags[at] & SUSPENDED) != 0
            columns = [each.tolist() for each in (here, rows.odds[at], ~suspended, live, rows.seen[at])]
        return [Offer(*offer) if there else None for there, *offer in zip(*columns, strict=True)]

    def _in_games_of(self, changed: Words) -> Words:
        """Everything that is open in the games of some opportunities; nothing if all of it has been chosen."""
        with self._engine.reading(self.view) as state:
            held, at = state.opened, state.open(self.view.wanted).places()
            ids, terms = held.id[at], state.board.rows.key[held.legs[at, 0]] >> BOOK_BITS
            games = state.board.names.terms.event.values[terms]
        ids = ids[np.isin(games, games[np.isin(ids, changed)])]
        return ids[:0] if self._prices.issuperset(ids.tolist()) else ids


def _number(ident: str) -> int:
    """The number of an id of opportunities or prices."""
    return int(ident[-16:], 16)
