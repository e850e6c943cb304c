"""Price history of an event from tapes.

Of a tape it is known, block by block, which events are in it, so that no other block is decompressed for an answer.
`Tapes` puts together what several of them say: one was begun at every start of the node.
"""

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl

from oddsengine.board.rows import LIVE, NO_PRICE, SUSPENDED
from oddsengine.columns import NO_TIME, Ints, Longs
from oddsengine.history import Moves, nothing
from oddsengine.identity import WORDING, Wording
from oddsengine.tape.blocks import HEADER, Block, head, whole

_SHOWN = LIVE | SUSPENDED
_BATCH = 64  # blocks whose terms are put together


class _Place(NamedTuple):
    """A block that was looked at: its file, and what its header says."""

    file: Path
    block: Block


class Taped:
    """Price changes in a tape.

    What was looked at is remembered: the terms of every block, and which blocks an event is in. A tape that is still
    written is read on from where its last whole block ended.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._lock = threading.Lock()
        self._places: list[_Place] = []
        self._segment, self._offset = 1, 0
        self._epochs: list[int] = [0]  # steps from which codes of terms count anew
        self._terms: list[pl.DataFrame] = []  # epoch, code, wording, line
        self._books: list[str] = []
        self._event_codes: dict[str, int] = {}
        self._term_event: dict[int, Ints] = {0: np.empty(0, np.int32)}  # by epoch: event of each term
        self._blocks_of: dict[int, list[int]] = {}

    def of(self, event_id: str, until: int) -> Moves:
        """Return the price changes of an event up to a time."""
        with self._lock:
            self._catch_up()
            event = self._event_codes.get(event_id)
            places = [self._places[at] for at in self._blocks_of.get(event, ())] if event is not None else []
            terms = self._terms_of(event_id)
            books = list(self._books)
            epochs = np.array(self._epochs, np.int64)
        frames = [_quotes(place, terms, epochs) for place in places if place.block.since <= until]
        frames = [frame for frame in frames if frame.height]
        return _moves(pl.concat(frames), terms, books, until) if frames else nothing()

    def _terms_of(self, event_id: str) -> pl.DataFrame:
        if len(self._terms) > _BATCH:
            self._terms = [pl.concat(self._terms)]
        return pl.concat([frame.filter(pl.col("event_id") == event_id) for frame in self._terms])

    def _catch_up(self) -> None:
        """Index the blocks written since the last call."""
        if not self._terms:
            self._terms.append(_no_terms())
        while True:
            path = self._folder / f"{self._segment:08}.tape"
            if not path.is_file():
                return
            with path.open("rb") as file:
                while self._next(file, path):
                    pass
            if not (self._folder / f"{self._segment + 1:08}.tape").is_file():
                return
            self._segment, self._offset = self._segment + 1, 0

    def _next(self, file: BinaryIO, path: Path) -> bool:
        """Look at one block; False if it is not whole, as it is while it is written."""
        file.seek(self._offset)
        block = head(file.read(HEADER.size), self._offset)
        if block is None:
            return False
        file.seek(self._offset)
        data = file.read(block.end - block.offset)
        if whole(data, self._offset) is None:
            return False
        parts, at = [], HEADER.size
        for size in block.sizes:
            parts.append(data[at : at + size])
            at += size
        self._learn(pl.read_ipc_stream(io.BytesIO(parts[1])))
        self._books += pl.read_ipc_stream(io.BytesIO(parts[2]), columns=["name"])["name"].to_list()
        if block.quotes:
            self._enter(pl.read_ipc_stream(io.BytesIO(parts[0]), columns=["step", "term"]))
            self._places.append(_Place(path, block))
        self._offset = block.end
        return True

    def _learn(self, terms: pl.DataFrame) -> None:
        """Learn terms that are new, or listed again because codes count anew."""
        if not terms.height:
            return
        again = terms.filter(~pl.col("new"))["step"].unique().sort().to_list()
        self._epochs += again
        epoch = np.searchsorted(self._epochs, terms["step"].to_numpy(), "right") - 1
        self._terms.append(terms.select(pl.Series("epoch", epoch), *_no_terms().columns[1:]))
        codes = self._event_codes
        event = np.array([codes.setdefault(id_, len(codes)) for id_ in terms["event_id"].to_list()], np.int32)
        for number in np.unique(epoch).tolist():
            mine = epoch == number
            code = terms["code"].to_numpy()[mine]
            known = self._term_event.get(number, np.empty(0, np.int32))
            grown = np.full(max(known.size, int(code.max()) + 1), -1, np.int32)
            grown[: known.size] = known
            grown[code] = event[mine]
            self._term_event[number] = grown

    def _enter(self, quotes: pl.DataFrame) -> None:
        """Note which events a block has prices of."""
        epoch = np.searchsorted(self._epochs, quotes["step"].to_numpy(), "right") - 1
        for number in np.unique(epoch).tolist():
            terms = np.unique(quotes["term"].to_numpy()[epoch == number])
            for event in np.unique(self._term_event[number][terms]).tolist():
                held = self._blocks_of.setdefault(event, [])
                if not held or held[-1] != len(self._places):
                    held.append(len(self._places))


def _no_terms() -> pl.DataFrame:
    texts = dict.fromkeys(WORDING, pl.String())
    return pl.DataFrame(schema={"epoch": pl.Int64(), "code": pl.UInt32(), **texts, "line": pl.Float64()})


def _quotes(place: _Place, terms: pl.DataFrame, epochs: Longs) -> pl.DataFrame:
    """The quotes of one block that are of some terms; `term` becomes their place."""
    with place.file.open("rb") as file:
        file.seek(place.block.offset + HEADER.size)
        quotes = pl.read_ipc_stream(io.BytesIO(file.read(place.block.sizes[0]))).drop("changed", "start", "link")
        file.seek(place.block.offset + HEADER.size + sum(place.block.sizes[:3]))
        steps = pl.read_ipc_stream(io.BytesIO(file.read(place.block.sizes[3])), columns=["number", "now"])
    wanted = terms.select("epoch", "code").with_row_index("place")
    epoch = pl.Series("epoch", np.searchsorted(epochs, quotes["step"].to_numpy(), "right") - 1)
    return (
        quotes.with_columns(epoch)
        .join(wanted, left_on=["epoch", "term"], right_on=["epoch", "code"], how="inner", maintain_order="left")
        .join(steps, left_on="step", right_on="number", how="left", maintain_order="left")
        .select("step", "place", "book", "odds", "american", "seen", "flags", "now")
    )


def _moves(quotes: pl.DataFrame, terms: pl.DataFrame, books: list[str], until: int) -> Moves:
    """Quotes as the board took them: late ones changed nothing, a repeated price is no move."""
    wordings: list[Wording] = list(terms.select(*WORDING, "line").iter_rows())
    distinct = {wording: at for at, wording in reversed(list(enumerate(wordings)))}  # listed again: the first place
    same = np.array([distinct[wording] for wording in wordings], np.int64)
    row_key = same[quotes["place"].to_numpy()] << 16 | quotes["book"].to_numpy().astype(np.int64)
    now = quotes["now"].to_numpy()
    seen = quotes["seen"].to_numpy()
    seen = np.where(seen == NO_TIME, now, np.minimum(seen, now))
    frame = quotes.with_columns(pl.Series("row", row_key), pl.Series("seen", seen)).filter(pl.col("now") <= until)
    bare, shown = pl.col("flags") & NO_PRICE != 0, (pl.col("flags") & _SHOWN).alias("shown")
    priced = [pl.when(bare).then(None).otherwise(pl.col(name)).alias(name) for name in ("odds", "american")]
    frame = (
        frame.filter(pl.col("seen") >= pl.col("seen").cum_max().over("row"))
        .with_columns(*priced, shown, bare.alias("bare"))
        .with_columns(pl.col("odds").forward_fill().over("row"))
        .filter(pl.col("odds").is_not_null())  # suspended before it ever had a price
        .with_columns(pl.when("bare").then(None).otherwise(pl.col("american").fill_nan(0.0)).alias("as"))
        .with_columns(pl.col("as").forward_fill().over("row"))
        .filter(pl.struct("row", "step").is_last_distinct())
    )
    moved = pl.any_horizontal(
        (pl.col(name) != pl.col(name).shift().over("row")).fill_null(value=True) for name in ("odds", "shown")
    )
    frame = frame.filter(moved)
    keys, row = np.unique(frame["row"].to_numpy(), return_inverse=True)
    american = frame["as"].to_numpy()
    return Moves(
        [wordings[key >> 16] for key in keys.tolist()], [books[key & 0xFFFF] for key in keys.tolist()],
        row.astype(np.int64), frame["now"].to_numpy(), frame["odds"].to_numpy(),
        np.where(american == 0.0, np.nan, american), frame["shown"].to_numpy().astype(np.uint8),
    )  # fmt: skip


class Tapes:
    """Price changes in the tapes of a folder, whose names sort by start time.

    Parameters
    ----------
    folder
        Where they are.
    write
        Called before they are read: what waits to be written is in the files when it returns.
    """

    def __init__(self, folder: str | Path, write: Callable[[], None] = lambda: None) -> None:
        self._folder, self._write = Path(folder), write
        self._known: dict[str, Taped] = {}

    def of(self, event_id: str, until: int) -> Moves:
        """Return the price changes of an event up to a time."""
        self._write()
        names = sorted(path.name for path in self._folder.iterdir() if path.is_dir()) if self._folder.is_dir() else []
        self._known = {name: self._known.get(name) or Taped(self._folder / name) for name in names}
        return together([taped.of(event_id, until) for taped in self._known.values()])


def together(parts: list[Moves]) -> Moves:
    """Concatenate moves of one event in order of time, without repeated prices."""
    parts = [part for part in parts if part.row.size]
    if len(parts) < 2:
        return parts[0] if parts else nothing()
    place: dict[tuple[Wording, str], int] = {}
    rows = []
    for part in parts:
        own = [place.setdefault(key, len(place)) for key in zip(part.wordings, part.books, strict=True)]
        rows.append(np.array(own, np.int64)[part.row])
    row = np.concatenate(rows)
    at, odds, american, flags = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("at", "odds", "american", "flags")
    )
    order = np.lexsort((np.arange(row.size), row))  # each row's moves one after the other, as they came
    moved = np.ones(row.size, bool)
    after, before = order[1:], order[:-1]
    moved[after] = (row[after] != row[before]) | (odds[after] != odds[before]) | (flags[after] != flags[before])
    keys = list(place)
    return Moves(
        [wording for wording, _ in keys], [book for _, book in keys], row[moved], at[moved], odds[moved],
        american[moved], flags[moved],
    )  # fmt: skip
