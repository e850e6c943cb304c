"""Prices when first shown as +EV, and closing boards: the input of an audit."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.auditing.closes import Closes
from oddsengine.auditing.formats import History
from oddsengine.auditing.replay import steps
from oddsengine.closing_consensus import located
from oddsengine.engine import Engine
from oddsengine.groups import Floats
from oddsengine.open_opportunities import EV, NEW
from oddsengine.tape import Tape
from oddsengine.update import Update
from oddsengine.view import View


class ShownPrices(NamedTuple):
    """+EV prices of one step, as columns."""

    at: int
    id: Any
    status: Any
    edge: Floats
    fair: Floats
    net: Floats
    odds: Floats
    flags: Any
    facts: pl.DataFrame  # of new ones


def shown(engine: Engine, now: int, update: Update, view: View) -> ShownPrices | None:
    """Return the +EV prices of a step that are new or have new figures."""
    change = update.of(view)
    pick = change.hits.kind == EV
    if not pick.any():
        return None
    hits = change.hits.take(pick)
    status = change.status[pick]
    new = status == NEW
    places = update.facts.places(hits.legs[:, 0])
    facts = update.facts.take(places[new]).frame()
    if new.any():
        with engine.still() as board:
            gathered = board.gather(np.unique(hits.unit[new]).astype(np.int64))
            order = np.argsort(gathered.groups.row)
            at = order[np.searchsorted(gathered.groups.row[order], hits.legs[new, 0])]
            facts = facts.hstack(located(board, gathered, at, engine.fair))
    edge, fair, _, net, last = hits.figures.T
    odds, flags = update.facts.odds[places], last.astype(np.int64) >> 1
    return ShownPrices(now, hits.id, status, edge, fair, net, odds, flags, facts)


class AuditInput(NamedTuple):
    shown: pl.DataFrame  # one row each time a price first reached a threshold
    closes: pl.DataFrame | None
    looks: int


def collect_shown(
    history: History | Tape, engine: Engine, view: View, thresholds: tuple[float, ...], progress: Any = None
) -> AuditInput:
    """Replay a history, recording when each price first reached each threshold, and the closing boards."""
    closes = Closes(engine)
    facts: list[pl.DataFrame] = []
    ids: list[Any] = []
    seen: dict[int, int] = {}  # id -> thresholds reached
    rows: list[tuple[Any, ...]] = []
    count = 0
    for now, update, _ in steps(engine, history):
        count += 1
        part = shown(engine, now, update, view)
        if part is not None:
            new = part.status == NEW
            if part.facts.height:
                facts.append(part.facts)
                ids.append(part.id[new])
            ev = part.edge * 100.0
            for at, ident in enumerate(part.id.tolist()):
                reached = seen.get(ident, 0)
                while reached < len(thresholds) and ev[at] >= thresholds[reached] - 1e-7:
                    figures = (ev[at], part.fair[at], part.net[at], part.odds[at], int(part.flags[at]))
                    rows.append((ident, now, thresholds[reached], *figures))
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
        return AuditInput(frame, closes.take(everything=True), count)
    texts = pl.concat(facts).with_columns(ident=pl.Series(np.concatenate(ids), dtype=pl.UInt64))
    texts = texts.unique("ident", keep="first", maintain_order=True)
    frame = frame.join(texts, on="ident", how="left", maintain_order="left")
    return AuditInput(frame, closes.take(everything=True), count)
