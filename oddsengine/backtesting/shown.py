"""Prices when first shown as +EV, and closing boards: the input of an audit."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.against import PriceObservations
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.delays import Delay, Later, Taken
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.replay import steps
from oddsengine.board.facts import Facts
from oddsengine.board.open import NEW
from oddsengine.columns import Ints, Words
from oddsengine.detection.search import PROMISED
from oddsengine.history.closing_consensus import Position
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.progress import Tick
from oddsengine.tape import Tape

_EVENT = RAW_LABEL.index("event_id")
_SHOWN = {
    "ident": pl.UInt64, "t": pl.Int64, "threshold": pl.Float64, "ev": pl.Float64, "fair": pl.Float64,
    "net_odds": pl.Float64, "odds": pl.Float64, "flag": pl.Int64,
}  # fmt: skip
SHOWN_COLUMNS = (*_SHOWN, *PROMISED)
"""Columns of what was shown; those besides are what the board said of the price."""


class _Opened(NamedTuple):
    """+EV prices that a step found first."""

    ident: Words
    facts: Facts
    position: Position

    @classmethod
    def of(cls, engine: Engine, update: Update, ident: Words, slot: Ints) -> "_Opened":
        """What the board says of them."""
        with engine.still() as board:
            # The step may have renumbered the partitions since it found the prices.
            gathered = board.gather(np.unique(board.rows.partition[slot]).astype(np.int64))
            order = np.argsort(gathered.groups.row)
            at = order[np.searchsorted(gathered.groups.row[order], slot)]
            position = Position.of(board, gathered, at, engine.fair)
        return cls(ident, update.facts.take(update.facts.places(slot)), position)


class ShownPrices:
    """Collects when each +EV price first reaches each threshold, while steps are played.

    `view` is one of +EV bets only; `reached` has the number of thresholds that prices reached before, by their ids.
    """

    def __init__(
        self, engine: Engine, view: View, thresholds: tuple[float, ...], later: Later, reached: Mapping[int, int]
    ) -> None:  # fmt: skip
        self._engine, self._view, self._thresholds, self._later = engine, view, thresholds, later
        self._opened: list[_Opened] = []
        self._reached = dict(reached)
        self._events: dict[int, str] = {}  # by id
        self._shown: dict[int, float] = {}  # id -> EV now
        self._rows: list[tuple[Any, ...]] = []
        engine.keep_promised()

    def follow(self, now: int, update: Update) -> None:
        """Process a step."""
        change = update.of(self._view)
        for ident in change.expired.tolist():
            self._shown.pop(ident, None)
        hits = change.hits
        if hits.size:
            assert change.promised is not None
            reached = self._reached
            first = [at for at in np.flatnonzero(change.status == NEW).tolist() if int(hits.id[at]) not in reached]
            if first:
                opened = _Opened.of(self._engine, update, hits.id[first], hits.legs[first, 0])
                self._opened.append(opened)
                texts = (raw_label[_EVENT] or "" for raw_label in opened.facts.texts)
                self._events.update(zip(hits.id[first].tolist(), texts, strict=True))
            edge, fair, _, net, last = hits.figures.T
            places = update.facts.places(hits.legs[:, 0])
            odds, flag = update.facts.odds[places], last.astype(np.int64) >> 1
            columns = (hits.id, update.facts.id[places], edge * 100.0, fair, net, odds, flag, change.promised)
            for ident, row, percent, *figures, promised in zip(*(c.tolist() for c in columns), strict=True):
                self._reach(now, ident, row, percent, figures, promised)
        self._later.follow(now, update, self._shown)

    def _reach(
        self, now: int, ident: int, row: int, percent: float, figures: list[float], promised: list[float]
    ) -> None:  # fmt: skip
        """Note the thresholds that a price has reached for the first time."""
        self._shown[ident] = percent
        upto, thresholds = self._reached.get(ident, 0), self._thresholds
        while upto < len(thresholds) and percent >= thresholds[upto] - 1e-7:
            event = self._events.get(ident, "")  # unknown of those that were reached before
            self._later.add(Taken(len(self._rows), now, event, row, figures[2], ident, thresholds[upto]))
            self._rows.append((ident, now, thresholds[upto], percent, *figures, *promised))
            upto += 1
        self._reached[ident] = upto

    def take(self) -> pl.DataFrame:
        """Return what was collected since the last call, with what the board said of each price when it was new.

        That is missing of prices that were new before; and all of it is, if none was new.
        """
        rows, opened, self._rows, self._opened = self._rows, self._opened, [], []
        frame = pl.DataFrame(rows, schema=_SHOWN | dict.fromkeys(PROMISED, pl.Float64), orient="row")
        frame = frame.with_columns(pl.col(PROMISED).fill_nan(None)).hstack(self._later.columns(len(rows)))
        if not opened:
            return frame
        facts = Facts.frame_of(each.facts for each in opened)
        where = Position.frame_of(each.position for each in opened)
        ident = pl.Series("ident", np.concatenate([each.ident for each in opened]))
        return frame.join(facts.hstack(where).with_columns(ident), on="ident", how="left", maintain_order="left")


def collect_shown(
    history: History | Tape, engine: Engine, view: View, thresholds: tuple[float, ...], delays: tuple[Delay, ...],
    observations: PriceObservations | None, tick: Tick,
) -> tuple[pl.DataFrame, pl.DataFrame | None, int]:  # fmt: skip
    """Replay a history: when each price first reached each threshold, the closing boards, and the number of steps.

    `view` is one of +EV bets only.
    """
    closes = Closes(engine)
    shown = ShownPrices(engine, view, thresholds, Later(engine, delays, every_step=isinstance(history, Tape)), {})
    count = 0
    for now, update, prices, _ in steps(engine, history):
        count += 1
        shown.follow(now, update)
        if observations is not None:
            observations.follow(now, update)
        closes.follow(now)
        tick(now, prices)
    return shown.take(), closes.take_closed(everything=True), count
