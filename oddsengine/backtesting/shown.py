"""Prices when first shown as +EV, and closing boards: the input of an audit."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.replay import steps
from oddsengine.board.open import EV, NEW, Hits
from oddsengine.history.closing_consensus import located
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.tape import Tape


def collect_shown(
    history: History | Tape, engine: Engine, view: View, thresholds: tuple[float, ...], progress: Any = None
) -> tuple[pl.DataFrame, pl.DataFrame | None, int]:
    """Replay a history: when each price first reached each threshold, the closing boards, and the number of steps."""
    closes = Closes(engine)
    facts: list[pl.DataFrame] = []
    seen: dict[int, int] = {}  # id -> thresholds reached
    rows: list[tuple[Any, ...]] = []
    count = 0
    for now, update, _ in steps(engine, history):
        count += 1
        change = update.of(view)
        ev = change.hits.kind == EV
        hits, new = change.hits.take(ev), change.status[ev] == NEW
        if new.any():
            facts.append(_facts(engine, update, hits.take(new)))
        edge, fair, _, net, last = hits.figures.T
        odds = update.facts.odds[update.facts.places(hits.legs[:, 0])]
        columns = (hits.id, edge * 100.0, fair, net, odds, last.astype(np.int64) >> 1)
        for ident, percent, *figures in zip(*(column.tolist() for column in columns), strict=True):
            reached = seen.get(ident, 0)
            while reached < len(thresholds) and percent >= thresholds[reached] - 1e-7:
                rows.append((ident, now, thresholds[reached], percent, *figures))
                reached += 1
            seen[ident] = reached
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
    )  # fmt: skip
    if not facts:
        return frame, closes.take_closed(everything=True), count
    texts = pl.concat(facts).unique("ident", keep="first", maintain_order=True)
    frame = frame.join(texts, on="ident", how="left", maintain_order="left")
    return frame, closes.take_closed(everything=True), count


def _facts(engine: Engine, update: Update, hits: Hits) -> pl.DataFrame:
    """Return the texts of +EV prices that are new, and their positions on the ladders."""
    facts = update.facts.take(update.facts.places(hits.legs[:, 0])).frame()
    with engine.still() as board:
        # The step may have renumbered the units since it found the prices.
        gathered = board.gather(np.unique(board.rows.unit[hits.legs[:, 0]]).astype(np.int64))
        order = np.argsort(gathered.groups.row)
        at = order[np.searchsorted(gathered.groups.row[order], hits.legs[:, 0])]
        where = located(board, gathered, at, engine.fair)
    return facts.hstack(where).with_columns(ident=pl.Series(hits.id, dtype=pl.UInt64))
