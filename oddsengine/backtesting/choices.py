"""What a strategy chooses of the +EV prices of an engine.

After a step, a strategy chooses among the +EV prices of the games in which one is new or has changed. Each outcome of a
market is chosen once, at one book. Choices do not depend on money, and those of one game not on those of another: so
the games of a history can be played side by side, and stakes are decided afterwards, in order of time.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from oddsengine.backtesting.strategy import Strategy
from oddsengine.columns import Words
from oddsengine.execution.ladders import Ladders
from oddsengine.execution.paper import Look, Looks
from oddsengine.execution.view_attempts import changed_prices
from oddsengine.identity.layout import BOOK_BITS
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.tables.schema import OddsError

_OUTCOME = (
    "event_id", "market_type", "market_segment", "player_name", "team_side", "selection_type", "line", "is_live",
)  # fmt: skip


class Choices:
    """The choices of a strategy on an engine."""

    def __init__(self, engine: Engine, strategy: Strategy, rates: Mapping[str, float] | None = None) -> None:
        self._engine, self._strategy = engine, strategy
        self.view = engine.view(
            strategy.books, strategy.sharp, strategy.method, commission=strategy.commission, kinds=["ev"],
            min_ev=strategy.min_ev, model=strategy.model, keep=True,
        )  # fmt: skip
        self._looks, self._has_rates = Looks(Ladders(self.view.wanted.commission, rates)), rates is not None
        self._outcomes: set[tuple[object, ...]] = set()  # those chosen so far
        self._prices: set[int] = set()  # ids of their opportunities, which are others in play

    def after(self, update: Update) -> pl.DataFrame | None:
        """What is chosen for the first time after a step, by EV; None if nothing is."""
        changed = changed_prices(update, self._looks.watched)
        if changed:
            with self._engine.still() as board:
                self._looks.follow(board, changed)
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
        if not fresh:
            return None
        return self._sized(chosen[fresh]).sort("ev_percentage", "id", descending=[True, False])

    def looks(self, prices: Iterable[str]) -> list[Look]:
        """What stands of some prices, for which orders are due."""
        with self._engine.still() as board:
            return self._looks.at(board, np.array([_number(price) for price in prices], np.uint64))

    def _sized(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with `max_bet` of no more than their best levels take, in the money of stakes."""
        if not self._has_rates and not rows["max_bet"].null_count():
            return rows
        with self._engine.still() as board:
            sizes = [self._looks.size(board, _number(price)) for price in rows["odds_id"].to_list()]
        return rows.with_columns(pl.min_horizontal("max_bet", pl.Series(sizes, dtype=pl.Float64)))

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
