"""Prices when first shown as +EV, and closing boards: the input of an audit."""

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


def collect_shown(
    history: History | Tape, engine: Engine, view: View, thresholds: tuple[float, ...], delays: tuple[Delay, ...],
    observations: PriceObservations | None, tick: Tick,
) -> tuple[pl.DataFrame, pl.DataFrame | None, int]:  # fmt: skip
    """Replay a history: when each price first reached each threshold, the closing boards, and the number of steps.

    `view` is one of +EV bets only.
    """
    closes = Closes(engine)
    later = Later(engine, delays, every_step=isinstance(history, Tape))
    opened: list[_Opened] = []
    reached: dict[int, int] = {}  # id -> thresholds reached
    events: dict[int, str] = {}  # id -> event
    shown: dict[int, float] = {}  # id -> EV now
    rows: list[tuple[Any, ...]] = []
    count = 0
    engine.keep_promised()
    for now, update, prices, _ in steps(engine, history):
        count += 1
        change = update.of(view)
        for ident in change.expired.tolist():
            shown.pop(ident, None)
        hits = change.hits
        if hits.size:
            assert change.promised is not None
            first = [at for at in np.flatnonzero(change.status == NEW).tolist() if int(hits.id[at]) not in reached]
            if first:
                opened.append(_Opened.of(engine, update, hits.id[first], hits.legs[first, 0]))
                texts = (raw_label[_EVENT] or "" for raw_label in opened[-1].facts.texts)
                events.update(zip(hits.id[first].tolist(), texts, strict=True))
            edge, fair, _, net, last = hits.figures.T
            places = update.facts.places(hits.legs[:, 0])
            odds, flag = update.facts.odds[places], last.astype(np.int64) >> 1
            columns = (hits.id, update.facts.id[places], edge * 100.0, fair, net, odds, flag, change.promised)
            for ident, row, percent, *figures, promised in zip(*(c.tolist() for c in columns), strict=True):
                shown[ident] = percent
                upto = reached.get(ident, 0)
                while upto < len(thresholds) and percent >= thresholds[upto] - 1e-7:
                    if delays:
                        later.add(Taken(len(rows), now, events[ident], row, figures[2], ident, thresholds[upto]))
                    rows.append((ident, now, thresholds[upto], percent, *figures, *promised))
                    upto += 1
                reached[ident] = upto
        later.follow(now, update, shown)
        if observations is not None:
            observations.follow(now, update)
        closes.follow(now)
        tick(now, prices)
    frame = pl.DataFrame(rows, schema=_SHOWN | dict.fromkeys(PROMISED, pl.Float64), orient="row")
    frame = frame.with_columns(pl.col(PROMISED).fill_nan(None)).hstack(later.columns(len(rows)))
    if opened:
        facts = Facts.frame_of(each.facts for each in opened)
        where = Position.frame_of(each.position for each in opened)
        ident = pl.Series("ident", np.concatenate([each.ident for each in opened]))
        frame = frame.join(facts.hstack(where).with_columns(ident), on="ident", how="left", maintain_order="left")
    return frame, closes.take_closed(everything=True), count
