"""The quotes of steps as rows with their texts, for `Tape.frame` and the archive."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from oddsengine.board.facts import moments_of
from oddsengine.board.row_links import link_columns
from oddsengine.board.rows import NO_PRICE, REJECTED
from oddsengine.board.state import Batch
from oddsengine.columns import NO_TIME
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE, SUSPENDED
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.maths.odds import quoted_american
from oddsengine.tables.schema import ODDS_SCHEMA
from oddsengine.tape.blocks import TapeStep

COLUMNS = (
    "day", *RAW_LABEL, "line", "sportsbook", "odds_decimal", "odds_american", "is_live", "is_active",
    "event_start_time", "last_seen_at", "odds_changed_at", "rejected_upstream", "recorded_at",
)  # fmt: skip
SCHEMA = {name: pl.Date() if name == "day" else ODDS_SCHEMA.get(name, ODDS_SCHEMA["last_seen_at"]) for name in COLUMNS}
PIECE = 2_000_000  # quotes collected at a time
FRAME_PIECE = 1 << 18  # the same, for frames of which only some rows are held
FRAME_SCHEMA: dict[str, pl.DataType] = {
    "recorded_at": SCHEMA["recorded_at"],
    **{name: dtype for name, dtype in ODDS_SCHEMA.items() if name in COLUMNS or name == "max_bet"},
}
"""Columns of `Tape.frame`."""


class QuoteBuffer:
    """Quotes of batches as codes, until their texts are looked up.

    An engine occasionally renumbers the codes of terms; collected quotes are resolved before that. `limits` adds the
    column `max_bet`.
    """

    def __init__(self, engine: Engine, *, limits: bool = False) -> None:
        self._engine, self._limits = engine, limits
        self._words, self._books = list(engine.raw_labels), list(engine.books)
        self._batches: list[tuple[int, Batch]] = []
        self._frames: list[pl.DataFrame] = []
        self.quotes = 0
        self.last = engine.number  # step number

    def add(self, batch: Batch) -> None:
        """Add a batch that is about to be applied."""
        if self._batches and self.last > self._engine.number:  # the step was rolled back because of another failure
            self.quotes -= len(self._batches.pop()[1].links)
            self._words = list(self._engine.raw_labels[: self._engine.published[0]])
        if len(self._words) != self._engine.published[0]:  # codes were renumbered
            self._resolve()
            self._words = list(self._engine.raw_labels[: self._engine.published[0]])
        self._words += batch.raw_labels
        self._books = [*self._engine.books[: self._engine.published[1]], *batch.books]
        self.last = self._engine.number + 1
        self._batches.append((self.last, batch))
        self.quotes += len(batch.links)

    def rows(self) -> pl.DataFrame:
        """Return all collected quotes as rows, with the number of their `step`."""
        self._resolve()
        self._frames = [pl.concat(self._frames)] if self._frames else []
        schema = SCHEMA | ({"max_bet": FRAME_SCHEMA["max_bet"]} if self._limits else {}) | {"step": pl.Int64()}
        return self._frames[0] if self._frames else pl.DataFrame(schema=schema)

    def drain(self) -> pl.DataFrame:
        """Return all collected quotes and clear them."""
        rows = self.rows()
        self._frames, self.quotes = [], 0
        return rows

    def _resolve(self) -> None:
        batches, self._batches = self._batches, []
        if sum(len(batch.links) for _, batch in batches):
            steps = np.repeat([n for n, _ in batches], [len(batch.links) for _, batch in batches])
            rows = _rows([batch for _, batch in batches], self._words, self._books)
            if self._limits:
                links = [link for _, batch in batches for link in batch.links]
                rows = rows.with_columns(link_columns(links, ["max_bet"]))
            self._frames.append(rows.with_columns(step=pl.Series(steps, dtype=pl.Int64)))


def _rows(batches: Sequence[Batch], words: Sequence[Any], books: Sequence[str]) -> pl.DataFrame:
    """Return the quotes of batches with their texts."""
    key, odds, american, seen, changed, start, flags = (
        np.concatenate(column) for column in zip(*(batch.quoted for batch in batches), strict=True)
    )
    now = np.repeat([batch.now for batch in batches], [len(batch.links) for batch in batches])
    seen = np.where(seen == NO_TIME, now, np.minimum(seen, now))
    terms, of = np.unique(key >> BOOK_BITS, return_inverse=True)
    raw_labels = [words[term] for term in terms.tolist()]
    texts = {
        name: pl.Series(name, [raw_label[at] for raw_label in raw_labels], dtype=ODDS_SCHEMA[name]).gather(of)
        for at, name in enumerate((*RAW_LABEL, "line"))
    }
    bare = (flags & NO_PRICE) != 0
    priced = {"odds_decimal": odds, "odds_american": quoted_american(np.where(bare, 2.0, odds), american)}
    frame = pl.DataFrame(
        {
            **texts, "sportsbook": pl.Series(books, dtype=pl.String).gather(key & BOOK_MASK), **priced,
            "is_live": (flags & LIVE) != 0, "is_active": (flags & SUSPENDED) == 0,
            "rejected_upstream": (flags & REJECTED) != 0, "event_start_time": moments_of(start),
            "last_seen_at": moments_of(seen), "odds_changed_at": moments_of(changed), "recorded_at": moments_of(now),
            "bare": bare,
        }
    )  # fmt: skip
    prices = [pl.when(pl.col("bare")).then(None).otherwise(pl.col(name)).alias(name) for name in priced]
    return frame.with_columns(
        *prices, day=pl.col("recorded_at").dt.date(), sport=pl.col("sport").fill_null("")
    ).select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())  # fmt: skip


def quote_rows(
    steps: Iterable[TapeStep], engine: Engine, *, after: int = 0, piece: int = PIECE
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the quotes of steps after a number in pieces, each with its last step; the engine is at their beginning."""
    buffer: QuoteBuffer | None = None
    for step in steps:
        if step.number > after:
            buffer = buffer or QuoteBuffer(engine)
            buffer.add(step.batch)
        engine.feed(step.batch)
        if buffer is not None and buffer.quotes >= piece:
            yield step.number, buffer.drain()
    if buffer is not None and buffer.quotes:
        yield buffer.last, buffer.drain()


def price_rows(
    steps: Iterable[TapeStep], engine: Engine, *, since: int = NO_TIME, piece: int = FRAME_PIECE
) -> Iterator[pl.DataFrame]:
    """Yield the quotes of steps since a time, and rows that left the board as suspended quotes, in `FRAME_SCHEMA`."""
    buffer: QuoteBuffer | None = None
    removed: list[pl.DataFrame] = []

    def rows(buffer: QuoteBuffer) -> pl.DataFrame:
        quoted = buffer.drain().with_columns(pl.col("sport").replace("", None)).select(*FRAME_SCHEMA, "step")
        whole = pl.concat([quoted, *removed]).sort("step", maintain_order=True).drop("step")
        removed.clear()
        return whole

    for step in steps:
        if buffer is None and step.batch.now >= since:
            buffer = QuoteBuffer(engine, limits=True)
        if buffer is not None:
            buffer.add(step.batch)
        update = engine.feed(step.batch)
        if buffer is not None:
            if update.removed_rows.slot.size:
                removed.append(_removed(update))
            if buffer.quotes >= piece:
                yield rows(buffer)
    if buffer is not None and (buffer.quotes or removed):
        yield rows(buffer)


def _removed(update: Update) -> pl.DataFrame:
    """Return the rows that a step removed as suspended quotes, last seen when they were."""
    now = moments_of(np.array([update.now])).new_from_index(0, update.removed_rows.slot.size)
    return update.removed_rows.frame().select(
        now.alias("recorded_at"),
        *(
            pl.lit(value=False).alias(name) if name == "is_active" else name
            for name in FRAME_SCHEMA
            if name in ODDS_SCHEMA
        ),
        step=pl.lit(update.number, pl.Int64),
    )
