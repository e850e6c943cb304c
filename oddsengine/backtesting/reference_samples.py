"""How good each book is as a reference: its own prices without their margin, against the close of the other books.

`HOURS` before a game, what every book says of each outcome is noted, beside our fair price from the other books alone.
Once the game has begun, both are compared with the others' close q: the log loss of a probability p is
-q ln p - (1 - q) ln(1 - p), its *distance* that less the log loss of q itself. A market of two outcomes counts by its
first one. What is kept is a row for each game, book and kind of market, with sums over these.
"""

from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.cells import weighted_mean
from oddsengine.backtesting.grading import ids_of
from oddsengine.board.facts import Facts
from oddsengine.columns import SECOND, Bools, Bytes, Floats, Longs
from oddsengine.history.closing_consensus import Position, closing_logits, votes_at
from oddsengine.identity.groups import Groups
from oddsengine.identity.layout import BOOK_BITS, LIVE, ON, SUSPENDED
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.identity.traits import Traits
from oddsengine.live.engine import Engine
from oddsengine.pricing import close as fair_close
from oddsengine.pricing.close_table import Estimator
from oddsengine.pricing.commission import after_commission
from oddsengine.pricing.votes import BookLogits

HOURS = (6.0, 1.0)  # before the start
PROPS = "player_props"
"""The kind of market of all player props of a sport."""
_BETWEEN = 60 * SECOND  # between two looks at which games are due
_EVENT = RAW_LABEL.index("event_id")
_PLAYER = 3  # `Position.subject`

SUMS: dict[str, pl.DataType | type[pl.DataType]] = {
    "event": pl.String,
    "start": pl.Int64,  # microseconds
    "book": pl.String,
    "market": pl.String,  # family of a full game, or `PROPS`
    "sport": pl.String,
    "n": pl.Int64,  # outcomes, at each of the `HOURS`
    "loss": pl.Float64,  # log loss of the book
    "distance": pl.Float64,  # and its distance
    "our_distance": pl.Float64,  # of our fair price
    "unit": pl.Float64,  # distance of an error of 1 in log-odds: q (1 - q) / 2
    "moved": pl.Float64,  # (x - m) (close - m), in logits: x of the book, m of our fair price
    "apart": pl.Float64,  # (x - m)^2
}
"""Columns of what is kept: sums by game, book and kind of market."""


class ReferenceSamples:
    """Notes what books say some hours before each game, while steps are played.

    `done` has the number of `HOURS` that were noted of an event before.
    """

    def __init__(self, engine: Engine, done: dict[str, int]) -> None:
        self._engine, self._done, self._looked_at = engine, done, -_BETWEEN
        self._parts: list[pl.DataFrame] = []

    def follow(self, now: int) -> None:
        """Process a step."""
        if now - self._looked_at < _BETWEEN:
            return
        self._looked_at = now
        with self._engine.still() as board:
            rows, names = board.rows, board.names
            left = rows.start[: rows.top] - now
            soon = (left > 0) & (left <= HOURS[0] * 3600 * SECOND) & (rows.state[: rows.top] == ON)
            slots = np.flatnonzero(soon & ((rows.flags[: rows.top] & (LIVE | SUSPENDED)) == 0))
            event, first, of = np.unique(
                names.terms.event.values[rows.key[slots] >> BOOK_BITS], return_index=True, return_inverse=True
            )
            labels = names.terms.raw_labels
            texts = [labels[term][_EVENT] or "" for term in (rows.key[slots[first]] >> BOOK_BITS).tolist()]
            hours = np.full(event.size, np.inf)
            np.minimum.at(hours, of, left[slots] / (3600.0 * SECOND))
            due = (hours[:, None] <= np.array(HOURS)).sum(axis=1)
            wanted = [self._done.get(text, 0) < n for text, n in zip(texts, due.tolist(), strict=True)]
            partitions = np.unique(rows.partition[slots[np.array(wanted, bool)[of]]]).astype(np.int64)
            self._done.update(zip(texts, due.tolist(), strict=True))
            if not partitions.size:
                return
            gathered = board.gather(partitions)
            g, traits = gathered.groups, names.tables.traits
            reason = rows.reason[g.row]
            read, _ = board.estimated(gathered, reason, g.row, self._engine.fair)
            own, ours = _own_logits(g, read.logits), _others_logits(g, traits, reason, read)
            usable = np.isfinite(own) & np.isfinite(ours) & (reason == 0) & (gathered.start > now)
            usable &= (rows.state[g.row] == ON) & ((rows.flags[g.row] & (LIVE | SUSPENDED)) == 0)
            usable &= (g.side == 0) | (g.outcomes[g.market] > 2)
            at = np.flatnonzero(usable & (traits.full_game[g.kind[g.ladder[g.market]]] != 0))
            if at.size:
                facts = board.facts(g.row[at])
                facts = facts.take(facts.places(g.row[at]))
                self._add(facts, Position.of(board, gathered, at, self._engine.fair), own[at], ours[at])

    def _add(self, facts: Facts, where: Position, own: Floats, ours: Floats) -> None:
        frame = facts.frame().select("event_id", "sport", "sportsbook", start=pl.col("event_start_time").to_physical())
        done = frame["event_id"].replace_strict(self._done, return_dtype=pl.Int64)
        self._parts.append(frame.hstack(where.frame()).with_columns(own=own, ours=ours, done=done))

    def take(self) -> list[pl.DataFrame]:
        """What was noted since the last call."""
        parts, self._parts = self._parts, []
        return parts


def _others_logits(g: Groups, traits: Traits, reason: Bytes, read: fair_close.CloseInput) -> Floats:
    """Our fair price of each row, in logits, in which the book of the row has no part."""
    constants = read.of.table.constants._replace(own_weight=0.0, own_sharp=0.0, own_sharp_alone=0.0)
    of = read.of._replace(table=read.of.table._replace(constants=constants))
    net, gross = after_commission(g, traits), fair_close.gross(traits, traits.fees)

    def fair(of: Estimator, traits: Traits) -> Floats:
        args = (net, reason, gross, read.times, read.momentum, read.logits)
        return fair_close.estimate(of, g, traits, *args).row

    row = fair(of, traits)
    for book in np.flatnonzero((of.voters.sharp > 0.0) | (traits.exchange != 0)).tolist():
        at = g.book == book
        if at.any():  # it has a part in its own fair price, as a sharp book
            sharp, exchange = of.voters.sharp.copy(), traits.exchange.copy()
            sharp[book] = exchange[book] = 0
            other = of._replace(voters=of.voters._replace(sharp=sharp))
            row[at] = fair(other, traits._replace(exchange=exchange))[at]
    with np.errstate(all="ignore"):
        return np.asarray(np.log(row / (1.0 - row)))


def _own_logits(g: Groups, logits: BookLogits) -> Floats:
    """What the book of each row says of its outcome, in logits; nan if it does not quote the whole market."""
    market = np.repeat(np.arange(g.threshold.size), np.diff(logits.start))
    width = np.int64(max(int(g.book.max(initial=0)), int(logits.book.max(initial=0))) + 1)
    votes: Longs = market * width + logits.book
    wanted = g.market.astype(np.int64) * width + g.book
    order = np.argsort(votes)
    at = order[np.minimum(np.searchsorted(votes[order], wanted), votes.size - 1)] if votes.size else None
    if at is None:
        return np.full(g.row.size, np.nan)
    there: Bools = votes[at] == wanted
    three = g.outcomes[g.market] > 2
    x = np.where(three, logits.x[at, np.where(three, g.side, 0)], np.where(g.side == 0, 1.0, -1.0) * logits.x[at, 0])
    return np.asarray(np.where(there, x, np.nan))


def sums_at_close(samples: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable) -> pl.DataFrame:
    """Compare samples with the other books' close; returns `SUMS`."""
    if not samples.height or closes is None:
        return pl.DataFrame(schema=SUMS)
    closing = closing_logits(samples, votes_at(closes, table))
    rows = samples.with_columns(close=closing["x"], who=closing["who"]).filter(pl.col("who") == "others")
    if not rows.height:
        return pl.DataFrame(schema=SUMS)
    x, m, q = (pl.col(name) for name in ("own", "ours", "close"))
    rows = rows.with_columns(
        book=ids_of(rows, "sportsbook", "sportsbook", lambda book, _: catalog.book(book).id),
        sport=ids_of(rows, "sport", "sport", lambda sport, _: catalog.sport(sport or "").id),
        market=pl.when(pl.col("subject") == _PLAYER).then(pl.lit(PROPS)).otherwise("family"),
        loss=_loss(x, q), distance=_loss(x, q) - _loss(q, q), our_distance=_loss(m, q) - _loss(q, q),
        unit=0.5 / ((1.0 + q.exp()) * (1.0 + (-q).exp())), moved=(x - m) * (q - m), apart=(x - m) ** 2,
    )  # fmt: skip
    sums = rows.group_by(event="event_id", book="book", market="market", sport="sport", maintain_order=True).agg(
        pl.col("start").max(),
        pl.len().alias("n"),
        pl.col("loss", "distance", "our_distance", "unit", "moved", "apart").sum(),
    )
    return sums.select(pl.col(name).cast(dtype) for name, dtype in SUMS.items())


def _loss(x: pl.Expr, q: pl.Expr) -> pl.Expr:
    """Log loss of a probability, the other one being the truth; both in logits."""
    share = 1.0 / (1.0 + (-q).exp())
    return share * (1.0 + (-x).exp()).log() + (1.0 - share) * (1.0 + x.exp()).log()


def mean_of(sums: pl.DataFrame, column: str) -> tuple[float, float]:
    """The mean of a column of `SUMS` per outcome, and its standard error by game."""
    n = sums["n"].to_numpy().astype(np.float64)
    return weighted_mean(sums[column].to_numpy() / n, n, sums["event"].rank("dense").to_numpy().astype(np.int64) - 1)


def kinds(sums: pl.DataFrame) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Sums by book and kind of market: props by sport, other markets of all sports together."""
    sport = pl.when(pl.col("market") == PROPS).then("sport")
    parts = sums.with_columns(sport=sport).partition_by("book", "market", "sport", as_dict=True)
    named = [(dict(zip(("book", "market", "sport"), key, strict=True)), part) for key, part in parts.items()]
    return sorted(named, key=lambda each: tuple(str(value or "") for value in each[0].values()))
