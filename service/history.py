"""History: how each price of an event moved, from a tape where one is written, else from a bounded memory of changes.

A *move* is a price that differs from what the same row was before: in its decimal price, in being live, in being
suspended. Both sources give the same moves of the same batches, as columns (`Moves`): `Ring` hears updates and keeps
the newest moves of the whole board, with the opening of each row apart so that no wrap-around loses it; `Taped` reads a
tape, of which it knows, block by block, which events are in it, so that no other block is decompressed for an answer.
"""

import io
import threading
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine.board.names import Names, Wording
from oddsengine.board.rows import LIVE, NO_PRICE, SUSPENDED
from oddsengine.engine import Engine
from oddsengine.groups import NO_TIME, Bytes, Floats, Ints, Longs, Words, mix
from oddsengine.markets import WORDING
from oddsengine.tape.blocks import HEADER, Block, head, whole
from oddsengine.update import Update

MOST_MOVES, MOST_ROWS = 1 << 20, 1 << 18  # of a ring
_SHOWN = LIVE | SUSPENDED
_BATCH = 64  # blocks whose terms are put together


class Moves(NamedTuple):
    """Moves of one event's rows, each row's in order of time; the first one of a row is its opening."""

    wordings: list[Wording]  # of each row
    books: list[str]
    row: Longs
    at: Longs  # when the board took it
    odds: Floats
    american: Floats  # nan where it follows from `odds`
    flags: Bytes


def nothing() -> Moves:
    """No moves."""
    none = np.empty(0)
    return Moves([], [], none.astype(np.int64), none.astype(np.int64), none, none, none.astype(np.uint8))


# ---- in memory ----


class Ring:
    """The newest moves of a board, and the opening of every row it still knows.

    `most` moves are kept and up to `rows` rows; beyond those the half that moved longest ago is forgotten.
    """

    _ROWS = (
        ("last_at", np.int64), ("last_odds", np.float64), ("last_flags", np.uint8), ("first", np.int64),
        ("first_at", np.int64), ("first_odds", np.float64), ("first_american", np.float64), ("first_flags", np.uint8),
    )  # fmt: skip

    def __init__(self, engine: Engine, most: int = MOST_MOVES, rows: int = MOST_ROWS) -> None:
        self._engine, self._most, self._most_rows = engine, most, rows
        self._lock = threading.Lock()
        self._row = np.full(most, -1, np.int32)
        self._at, self._odds, self._american = np.zeros(most, np.int64), np.zeros(most), np.zeros(most)
        self._flags = np.zeros(most, np.uint8)
        self._end = 0  # moves ever
        self._wordings: list[Wording] = []
        self._books: list[str] = []
        self._codes: dict[int, int] = {}  # row by its id
        self._events: dict[str, list[int]] = {}
        self._rows: dict[str, npt.NDArray[Any]] = {name: np.zeros(1024, dtype) for name, dtype in self._ROWS}
        self._slot_row, self._slot_id = np.empty(0, np.int32), np.empty(0, np.uint64)
        self._begun = False

    def __len__(self) -> int:
        return min(self._end, self._most)

    def heard(self, update: Update) -> None:
        """Take in what a step did."""
        if self._begun:
            facts, at = update.facts, update.rows
            id_, slot, key = facts.id[at], facts.slot[at], facts.key[at]
            odds, american, flags = facts.odds[at], facts.american[at], facts.flags[at]
        else:
            with self._engine.still() as board:
                facts = board.facts(board.on())
            id_, slot, key, odds, american, flags = (
                facts.id, facts.slot, facts.key, facts.odds, facts.american, facts.flags,
            )  # fmt: skip
            self._begun = True
        if id_.size:
            with self._lock:
                row = self._known(id_, slot, key, facts.wordings, facts.books)
                self._take(row, update.now, odds, american, flags & np.uint8(_SHOWN))

    def _known(self, id_: Words, slot: Ints, key: Longs, wordings: list[Wording], books: list[str]) -> Longs:
        """Codes of rows; new ones are learnt."""
        most = int(slot.max()) + 1
        if most > self._slot_row.size:
            more = most + most // 4 - self._slot_row.size
            self._slot_row = np.concatenate((self._slot_row, np.full(more, -1, np.int32)))
            self._slot_id = np.concatenate((self._slot_id, np.zeros(more, np.uint64)))
        new = np.flatnonzero((self._slot_id[slot] != id_) | (self._slot_row[slot] < 0))
        if len(self._wordings) + new.size > self._most_rows:
            self._forget(new.size)
            new = np.flatnonzero((self._slot_id[slot] != id_) | (self._slot_row[slot] < 0))
        for at, ident, term in zip(new.tolist(), id_[new].tolist(), key[new].tolist(), strict=True):
            code = self._codes.get(ident)
            if code is None:
                code = self._codes[ident] = len(self._wordings)
                self._wordings.append(wordings[term >> 16])
                self._books.append(books[term & 0xFFFF])
                self._events.setdefault(wordings[term >> 16][0], []).append(code)
            self._slot_row[slot[at]], self._slot_id[slot[at]] = code, ident
        n, have = len(self._wordings), self._rows["first"].size
        if n > have:
            for name, old in self._rows.items():
                self._rows[name] = np.concatenate((old, np.zeros(max(n, 2 * have) - have, old.dtype)))
        return self._slot_row[slot].astype(np.int64)

    def _take(self, row: Longs, now: int, odds: Floats, american: Floats, flags: Bytes) -> None:
        """Append what moved."""
        rows = self._rows
        fresh = rows["last_at"][row] == 0
        moved = np.flatnonzero(fresh | (rows["last_odds"][row] != odds) | (rows["last_flags"][row] != flags))
        row, odds, american, flags, fresh = row[moved], odds[moved], american[moved], flags[moved], fresh[moved]
        rows["last_at"][row], rows["last_odds"][row], rows["last_flags"][row] = now, odds, flags
        number = self._end + np.arange(row.size)
        first = row[fresh]
        rows["first"][first], rows["first_at"][first] = number[fresh], now
        for name, column in (("odds", odds), ("american", american), ("flags", flags)):
            rows[f"first_{name}"][first] = column[fresh]
        place = (number % self._most)[-self._most :]
        kept = slice(max(row.size - self._most, 0), None)
        self._row[place], self._at[place] = row[kept], now
        self._odds[place], self._american[place], self._flags[place] = odds[kept], american[kept], flags[kept]
        self._end += row.size

    def _forget(self, more: int) -> None:
        """Forget the rows that moved longest ago, so that half are left and there is room for some more."""
        n = len(self._wordings)
        kept = max(0, min(n // 2, self._most_rows - more))
        stay = np.sort(np.argsort(self._rows["last_at"][:n], kind="stable")[n - kept :])
        code = np.full(n + 1, -1, np.int32)
        code[stay] = np.arange(kept, dtype=np.int32)
        for name, column in self._rows.items():
            fresh = np.zeros_like(column)
            fresh[:kept] = column[stay]
            self._rows[name] = fresh
        self._row, self._slot_row = code[self._row], code[self._slot_row]  # -1 stays -1
        self._wordings = [self._wordings[at] for at in stay.tolist()]
        self._books = [self._books[at] for at in stay.tolist()]
        self._codes = {ident: int(code[at]) for ident, at in self._codes.items() if code[at] >= 0}
        self._events = {}
        for at, wording in enumerate(self._wordings):
            self._events.setdefault(wording[0], []).append(at)

    def of(self, event_id: str, until: int) -> Moves:
        """Moves of an event up to a time."""
        with self._lock:
            codes = np.array(self._events.get(event_id, ()), np.int64)
            if not codes.size:
                return nothing()
            place = np.full(len(self._wordings) + 1, -1, np.int64)  # the last one is for moves of forgotten rows
            place[codes] = np.arange(codes.size)
            held = min(self._end, self._most)
            some = np.flatnonzero(place[self._row[:held]] >= 0)
            number = self._end - 1 - (self._end - 1 - some) % self._most
            rows = self._rows
            later = number > rows["first"][self._row[some]]
            some, number = some[later], number[later]
            order = np.lexsort((np.concatenate((rows["first"][codes], number)),))
            columns = [
                np.concatenate((rows[f"first_{name}"][codes], ring[some]))[order]
                for name, ring in (
                    ("at", self._at), ("odds", self._odds), ("american", self._american), ("flags", self._flags),
                )
            ]  # fmt: skip
            row = np.concatenate((np.arange(codes.size), place[self._row[some]]))[order]
            wordings = [self._wordings[code] for code in codes.tolist()]
            books = [self._books[code] for code in codes.tolist()]
        early = columns[0] <= until
        return Moves(wordings, books, row[early], *(column[early] for column in columns))


# ---- from a tape ----


class _Place(NamedTuple):
    """A block that was looked at: its file, and what its header says."""

    file: Path
    block: Block


class Taped:
    """Moves as a tape tells them.

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
        """Moves of an event up to a time."""
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
        """Look at the blocks that were written since."""
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


def ids(names: Names, terms: Longs, books: Longs) -> Words:
    """Ids of rows by the codes of their term and book."""
    return mix(names.id.values[terms], names.book_hash[books])
