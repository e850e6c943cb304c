"""What a strategy chooses on an engine, and what stands of these prices when orders for them would be answered.

After a step, a strategy chooses among what is open in the games in which something is new or has changed. Each outcome
of a market is chosen once at +EV, at one book, and each market once as an arbitrage and once as a low hold, at one set
of books.
Choices do not depend on money, and those of one game not on those of another: so the games of a history can be played
side by side, and stakes are decided afterwards, in order of time.

**Looks.** An order for what was chosen is answered by the first step at which it is due. The order for the next leg is
sent when it was due, whatever the stakes. So all prices are looked at when orders for them are due, also if an account
has no money for them, and the looks at a price are the same in a backtest and on paper.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.opportunity_legs import frame_of, legs_of
from oddsengine.backtesting.strategy import Strategy
from oddsengine.board.state import Board
from oddsengine.bounds import excerpt
from oddsengine.columns import Words
from oddsengine.execution.ladders import Ladders
from oddsengine.execution.paper import Latency, Look, Looks
from oddsengine.execution.venues import order_id
from oddsengine.execution.view_attempts import changed_prices
from oddsengine.identity.layout import BOOK_BITS
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.tables.levels import BET_DELAY
from oddsengine.tables.schema import OddsError

_MARKET = ("event_id", "market_type", "player_name", "team_side", "line", "is_live")
_OUTCOME = (*_MARKET, "market_segment", "selection_type")


class StepChoices(NamedTuple):
    """What was chosen in a step; None: nothing."""

    ev: pl.DataFrame | None  # +EV prices, by EV
    legs: pl.DataFrame | None  # of arbitrages, then of low holds, the best first; see `LEGS_SCHEMA`


class _Order(NamedTuple):
    """An order that may be sent."""

    id: str
    price: str
    delay_s: float | None  # of its venue in play
    is_live: bool


class Choices:
    """The choices of a strategy on an engine.

    `looks` has what stood of a price when an order for it was due, by the order's id; `latency` None: no looks.
    """

    def __init__(
        self, engine: Engine, strategy: Strategy, latency: Latency | None, rates: Mapping[str, float] | None = None
    ) -> None:  # fmt: skip
        self._engine, self._strategy, self._latency = engine, strategy, latency
        self.view = engine.view(
            strategy.books, strategy.sharp, strategy.method, commission=strategy.commission, kinds=strategy.kinds,
            model=strategy.model, keep=True, **strategy.view_thresholds(),
        )  # fmt: skip
        self.looks: dict[str, Look] = {}
        self._ladders = Ladders(self.view.wanted.commission, rates)
        self._board_looks, self._has_rates = Looks(self._ladders), rates is not None
        self._chosen: set[tuple[object, ...]] = set()  # outcomes and markets so far
        self._ids: set[int] = set()  # ids of their opportunities, which are others in play
        self._due: list[tuple[int, int, list[_Order]]] = []  # the first of the orders is due then
        self._number = 0

    def after(self, update: Update) -> StepChoices:
        """What is chosen for the first time after a step."""
        changed = changed_prices(update, self._board_looks.watched)
        if changed:
            with self._engine.still() as board:
                self._board_looks.follow(board, changed)
        self._look(update.now)
        hits = update.of(self.view).hits
        ids = self._in_games_of(hits.id) if hits.size else hits.id
        if not ids.size:
            return StepChoices(None, None)
        shown = self.view.opportunities(self._strategy.kinds, ids=ids)
        ev = self._choose_prices(shown.ev) if "ev" in self._strategy.kinds else None
        legs = [*self._choose_legs("arbitrage", shown.arbitrage), *self._choose_legs("low_hold", shown.low_hold)]
        if self._latency is not None:
            self._schedule(update.now, ev, legs)
            self._look(update.now)
        return StepChoices(ev, in_order(frame_of(legs)) if legs else None)

    def _choose_prices(self, shown: pl.DataFrame) -> pl.DataFrame | None:
        chosen = self._choose("ev", shown)
        fresh = []
        for at, (ident, *outcome) in enumerate(chosen.select("id", *_OUTCOME).iter_rows()):
            if self._is_fresh(ident, ("ev", *outcome)):
                fresh.append(at)
        if not fresh:
            return None
        return in_order(self._sized(chosen[fresh]))

    def _choose_legs(self, kind: str, shown: pl.DataFrame) -> list[dict[str, Any]]:
        if not shown.height:
            return []
        chosen, legs = self._choose(kind, shown), list[dict[str, Any]]()
        with self._engine.still() as board:
            for row in chosen.iter_rows(named=True):
                bets = legs_of(kind, row, board, self._ladders)
                if bets and self._is_fresh(row["id"], (kind, *(row[name] for name in _MARKET))):
                    legs += bets
        return legs

    def _choose(self, kind: str, shown: pl.DataFrame) -> pl.DataFrame:
        name = {"ev": "choose", "arbitrage": "choose_arbitrages", "low_hold": "choose_low_holds"}[kind]
        try:
            chosen: pl.DataFrame = getattr(self._strategy, name)(shown)
        except pl.exceptions.ColumnNotFoundError as error:
            what = {"ev": "+EV prices", "arbitrage": "arbitrages", "low_hold": "low holds"}[kind]
            raise OddsError(f"a strategy chose by a column that {what} lack: {error}") from None
        if not isinstance(chosen, pl.DataFrame) or not set(shown.columns) <= set(chosen.columns):
            raise OddsError(f"{name} must return rows of the polars frame that it gets, got {excerpt(chosen)}")
        return chosen

    def _is_fresh(self, ident: str, key: tuple[object, ...]) -> bool:
        """Whether something is chosen for the first time; from now on it is not."""
        is_fresh = key not in self._chosen
        self._chosen.add(key)
        self._ids.add(_number(ident))
        return is_fresh

    # ---- looks ----

    def _schedule(self, now: int, ev: pl.DataFrame | None, legs: list[dict[str, Any]]) -> None:
        """Look at what was chosen when orders for it are due."""
        for row in () if ev is None else ev.iter_rows(named=True):
            self._send(now, [_order(row, 0, now)])
        for _, some in groupby(legs, key=itemgetter("id")):
            self._send(now, [_order(leg, leg["leg"], now) for leg in some])

    def _send(self, sent: int, orders: list[_Order]) -> None:
        assert self._latency is not None
        due = self._latency.due(sent, orders[0].delay_s, live=orders[0].is_live)
        self._number += 1
        heappush(self._due, (due, self._number, orders))

    def _look(self, now: int) -> None:
        """Look at the prices of the orders that are due; the next legs are sent."""
        if not self._due or self._due[0][0] > now:
            return
        with self._engine.still() as board:
            while self._due and self._due[0][0] <= now:
                due, _, orders = heappop(self._due)
                self.looks[orders[0].id] = self._look_at(board, orders[0].price)
                if len(orders) > 1:
                    self._send(due, orders[1:])

    def _look_at(self, board: Board, price: str) -> Look:
        return self._board_looks.at(board, [_number(price)])[0]

    def _sized(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with `max_bet` of no more than their best levels take, in the money of stakes."""
        if not self._has_rates and not rows["max_bet"].null_count():
            return rows
        with self._engine.still() as board:
            sizes = self._board_looks.sizes(board, [*map(_number, rows["odds_id"].to_list())])
        return rows.with_columns(pl.min_horizontal("max_bet", pl.Series(sizes, dtype=pl.Float64)))

    def _in_games_of(self, changed: Words) -> Words:
        """Everything that is open in the games of some opportunities; nothing if all of it has been chosen."""
        with self._engine.reading(self.view) as state:
            held, at = state.opened, state.open(self.view.wanted).places()
            ids, terms = held.id[at], state.board.rows.key[held.legs[at, 0]] >> BOOK_BITS
            games = state.board.names.terms.event.values[terms]
        ids = ids[np.isin(games, games[np.isin(ids, changed)])]
        return ids[:0] if self._ids.issuperset(ids.tolist()) else ids


def in_order(rows: pl.DataFrame, *first: str) -> pl.DataFrame:
    """Sort what was chosen, by some columns first: +EV prices by EV; arbitrages by profit, then low holds by hold.

    Legs of one opportunity stay as they are.
    """
    if "ev_percentage" in rows.columns:
        return rows.sort(*first, -pl.col("ev_percentage"), "id")
    better = pl.when(pl.col("kind") == "arbitrage").then(-pl.col("shown")).otherwise("shown")
    return rows.sort(*first, "kind", better, "id", maintain_order=True)


def _order(row: Mapping[str, Any], leg: int, now: int) -> _Order:
    return _Order(order_id(row["id"], leg, now), row["odds_id"], row.get(BET_DELAY), row["is_live"])


def _number(ident: str) -> int:
    """The number of an id of opportunities or prices."""
    return int(ident[-16:], 16)
