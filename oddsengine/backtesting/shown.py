"""Prices when first shown as +EV, and closing boards: the input of an audit."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.against import PriceObservations
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.delays import Delay, Later, Taken
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.replay import steps
from oddsengine.board.open import NEW, Hits
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.history.closing_consensus import located
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.tape import Tape

PROMISED = ("ev_low", "ev_high", "ev_error", "still_there")
"""What else a row promises of its EV."""


def collect_shown(
    history: History | Tape, engine: Engine, view: View, thresholds: tuple[float, ...], delays: tuple[Delay, ...] = (),
    observations: PriceObservations | None = None, progress: Any = None,
) -> tuple[pl.DataFrame, pl.DataFrame | None, int]:  # fmt: skip
    """Replay a history: when each price first reached each threshold, the closing boards, and the number of steps."""
    closes = Closes(engine)
    later = Later(engine, delays, every_step=isinstance(history, Tape))
    facts: list[pl.DataFrame] = []
    promises: list[pl.DataFrame] = []
    seen: dict[int, int] = {}  # id -> thresholds reached
    events: dict[int, str] = {}  # id -> event
    shown: dict[int, float] = {}  # id -> EV now
    rows: list[tuple[Any, ...]] = []
    count = 0
    for now, update, _ in steps(engine, history):
        count += 1
        change = update.of(view)
        ev = change.hits.kind == KINDS.code("ev")
        hits, new = change.hits.take(ev), change.status[ev] == NEW
        if new.any():
            facts.append(_facts(engine, update, hits.take(new)))
            if delays:
                events |= facts[-1].select("ident", "event_id").iter_rows()
        for ident in change.expired.tolist():
            shown.pop(ident, None)
        edge, fair, _, net, last = hits.figures.T
        places = update.facts.places(hits.legs[:, 0])
        odds = update.facts.odds[places]
        columns = (hits.id, update.facts.id[places], edge * 100.0, fair, net, odds, last.astype(np.int64) >> 1)
        reached_now = []
        for ident, row, percent, *figures in zip(*(column.tolist() for column in columns), strict=True):
            shown[ident] = percent
            reached = seen.get(ident, 0)
            while reached < len(thresholds) and percent >= thresholds[reached] - 1e-7:
                if delays:
                    later.add(Taken(len(rows), now, events[ident], row, figures[2], ident, thresholds[reached]))
                rows.append((ident, now, thresholds[reached], percent, *figures))
                reached_now.append(ident)
                reached += 1
            seen[ident] = reached
        if reached_now:
            promises.append(_promised(view, reached_now, now))
        later.follow(now, update, shown)
        if observations is not None:
            observations.follow(now, update)
        closes.follow(now)
        if progress is not None:
            progress(count)
    frame = pl.DataFrame(
        rows,
        schema={
            "ident": pl.UInt64, "t": pl.Int64, "threshold": pl.Float64, "ev": pl.Float64, "fair": pl.Float64,
            "net_odds": pl.Float64, "odds": pl.Float64, "flag": pl.Int64,
        },
        orient="row",
    ).hstack(later.columns(len(rows)))  # fmt: skip
    if not facts:
        return frame, closes.take_closed(everything=True), count
    texts = pl.concat(facts).unique("ident", keep="first", maintain_order=True)
    frame = frame.join(texts, on="ident", how="left", maintain_order="left")
    frame = frame.join(pl.concat(promises), on=("ident", "t"), how="left", maintain_order="left")
    return frame, closes.take_closed(everything=True), count


def _promised(view: View, idents: list[int], now: int) -> pl.DataFrame:
    """Return what rows promise, as a reader of the view gets it."""
    ids = np.unique(np.array(idents, np.uint64))
    rows = view.opportunities(["ev"], ids=ids).ev
    names = dict(zip(hexadecimal(ids), ids.tolist(), strict=True))
    ident = pl.Series("ident", [names[text[-16:]] for text in rows["id"].to_list()], dtype=pl.UInt64)
    return rows.select(PROMISED).with_columns(ident, t=pl.lit(now, pl.Int64))


def _facts(engine: Engine, update: Update, hits: Hits) -> pl.DataFrame:
    """Return the texts of +EV prices that are new, and their positions on the ladders."""
    facts = update.facts.take(update.facts.places(hits.legs[:, 0])).frame()
    with engine.still() as board:
        # The step may have renumbered the partitions since it found the prices.
        gathered = board.gather(np.unique(board.rows.partition[hits.legs[:, 0]]).astype(np.int64))
        order = np.argsort(gathered.groups.row)
        at = order[np.searchsorted(gathered.groups.row[order], hits.legs[:, 0])]
        where = located(board, gathered, at, engine.fair)
    return facts.hstack(where).with_columns(ident=pl.Series(hits.id, dtype=pl.UInt64))
