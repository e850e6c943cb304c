"""Replay histories through an engine: quotes are validated and encoded in bulk, then applied snapshot by snapshot."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.formats import PIECE, History, Piece, cuts, read_history, scan_files
from oddsengine.board.quotes import checked
from oddsengine.board.rows import CodedQuotes
from oddsengine.board.state import Batch
from oddsengine.bounds import excerpt
from oddsengine.catalog import FairTable
from oddsengine.catalog.reasons import Guards
from oddsengine.columns import NONE, SECOND, Longs, Words
from oddsengine.detection import book_names as naming
from oddsengine.feeds.football_data import is_season
from oddsengine.feeds.price_files import files_of, read_odds
from oddsengine.identity.groups import intern
from oddsengine.identity.layout import BOOK_BITS, LIVE
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.tables.column_names import Columns
from oddsengine.tables.frames import to_polars
from oddsengine.tables.schema import OddsError, warn
from oddsengine.tables.timestamps import micros
from oddsengine.tape import Tape, engine_for
from oddsengine.tape import play as steps_of

_KEY = (*RAW_LABEL, "line")
_HEADER = 16_384  # bytes with the header of a CSV file
_SOME_GAMES = 64  # whose snapshots are counted
_NO_IDS: Words = np.empty(0, np.uint64)


class ReplayStep(NamedTuple):
    now: int
    update: Update
    prices: int  # so far
    settles: bool = False  # many quotes have come since the last time: results so far can be processed


def source(
    history: Any,
    every: float = 1.0,
    storage_options: Mapping[str, Any] | None = None,
    columns: Columns | None = None,
) -> History | Tape:
    """Open a history: a frame, a lazy query, the path of a table, of files or of seasons, or a tape.

    `columns` are those of an odds table, as for `check_odds`.

    Raises `ValueError` if the format is unknown or a row has no time, `TypeError` for another type, and
    `FileNotFoundError` if the path does not exist.
    """
    if isinstance(history, History | Tape):
        return history
    if isinstance(history, pl.LazyFrame):
        return read_history(history, every, columns)
    if isinstance(history, pl.DataFrame) or hasattr(history, "__arrow_c_stream__"):
        return read_history(to_polars(history), every, columns)
    if not isinstance(history, str | os.PathLike):
        raise TypeError(f"a history must be a frame, a path or a tape, got {type(history).__name__}")
    path = os.fspath(history)
    if _is_delta(path, storage_options):  # files that a compaction replaced are still in the folder
        return read_history(pl.scan_delta(path, storage_options=dict(storage_options or {}) or None), every, columns)
    if not columns and _are_seasons(path):
        return read_history(read_odds(path), every)
    if os.path.isdir(path) and next(Path(path).rglob("*.parquet"), None) is None:
        if columns:
            raise ValueError(f"a tape has no columns to name, columns must be None: {path}")
        return Tape(path)
    try:
        return read_history(scan_files(path, storage_options), every, columns)
    except pl.exceptions.PolarsError as error:  # empty, damaged, or of another format than its suffix says
        raise ValueError(f"{path} cannot be read as a history: {str(error).splitlines()[0]}") from None


def _is_delta(path: str, storage_options: Mapping[str, Any] | None) -> bool:
    if "://" not in path:
        return os.path.isdir(os.path.join(path, "_delta_log"))
    try:
        from deltalake import DeltaTable  # noqa: PLC0415  only for an object store
    except ImportError:
        return False
    return bool(DeltaTable.is_deltatable(path, dict(storage_options or {}) or None))


def _are_seasons(path: str) -> bool:
    """Whether a path has files of football-data.co.uk; the first file decides."""
    if "://" in path or not (path.lower().endswith(".csv") or os.path.isdir(path)):
        return False
    try:
        files = files_of(path)
    except OddsError:
        return False
    if not all(file.suffix.lower() == ".csv" and file.is_file() for file in files):
        return False
    with files[0].open("rb") as file:
        return is_season(file.read(_HEADER))


def opened(
    history: Any, every: float = 1.0, storage_options: Mapping[str, Any] | None = None
) -> list[History | Tape]:  # fmt: skip
    """Open a history or a list of them, none of them twice; see `source`."""
    several = history if isinstance(history, list | tuple) else [history]
    paths = [os.path.realpath(each) for each in several if isinstance(each, str | os.PathLike)]
    if twice := next((path for path, n in Counter(paths).items() if n > 1), None):
        raise ValueError(f"a history must be given once, got {excerpt(twice)} twice")
    return [source(one, every, storage_options) for one in several]


def recorded_fair(histories: Sequence[History | Tape]) -> FairTable | None:
    """The constants that the last of some tapes was recorded with."""
    return next((one.fair for one in reversed(histories) if isinstance(one, Tape) and one.fair is not None), None)


def known_results(histories: Sequence[History | Tape]) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """The final scores and the players' numbers that histories have; None if none has."""
    known = [one for one in histories if isinstance(one, History)]
    columns = ([one.results for one in known], [one.stats for one in known])
    results, stats = ([each for each in some if each is not None] for some in columns)
    return (pl.concat(results) if results else None), (pl.concat(stats) if stats else None)


def cadence(history: History | Tape) -> float:
    """The median number of seconds between two snapshots of an event, of some events that are quoted first.

    That is nan for a tape, and if no event has two.
    """
    if isinstance(history, Tape) or history.games is None:
        return float("nan")
    games = history.games
    first = games.listing().sort("first", "event").head(_SOME_GAMES)["event"].to_list()
    seen = [_looks(piece) for piece in games.only(first, None, games.moments()).pieces()]
    if not seen:
        return float("nan")
    looks = pl.concat(seen).unique().sort("event", "now")
    gap = looks.select(pl.col("now").diff().over("event")).to_series().median()
    return float("nan") if gap is None else float(gap) / SECOND  # type: ignore[arg-type]


def _looks(piece: Piece) -> pl.DataFrame:
    """The times at which each event of a piece was quoted."""
    events = piece.table["event_id"].cast(pl.String)
    of = events if piece.repeated is None else events[piece.repeated.row]
    return pl.DataFrame({"event": of, "now": piece.now}).unique()


def span(history: History | Tape) -> tuple[int, int]:
    """Return the first and last time of a history."""
    if isinstance(history, History):
        return history.span
    since, until = history.since, history.until
    return (0, 0) if since is None or until is None else (micros(since), micros(until))


def engine_of(history: History | Tape, guards: Guards = None, fair: FairTable | None = None) -> Engine:
    """Create an engine for a history; for a tape, with the recorded guards.

    Raises `ValueError` if guards are given for a tape.
    """
    if not isinstance(history, Tape):
        engine = Engine(guards=guards, fair=fair)
        engine.codes([], history.books)
        return engine
    if guards is not None:
        raise ValueError("a tape is replayed with the guards it was recorded with; guards must be None")
    return engine_for(history, fair=fair)


def check_books(engine: Engine, view: View) -> None:
    """Raise if a view names a book that neither the history nor the catalog has.

    The books of a history are known only at its end; without this, a typing error would give an empty result.
    """
    w = view.wanted
    naming.check(engine.books, w.books, w.reference, dict(w.commission))


def steps(
    engine: Engine, history: History | Tape, fair_at: Callable[[int], FairTable] | None = None
) -> Iterator[ReplayStep]:
    """Replay a history through an engine, with each day's constants if they change."""
    quotes = prices = 0
    for batch, update in _fed(engine, history, fair_at):
        prices += batch.quoted.key.size
        yield ReplayStep(update.now, update, prices, quotes >= PIECE)
        quotes = (quotes if quotes < PIECE else 0) + batch.quoted.key.size
    for guard in engine.plugin_guards:
        if guard.problem:
            warn(guard.problem)


def _fed(
    engine: Engine, history: History | Tape, fair_at: Callable[[int], FairTable] | None
) -> Iterator[tuple[Batch, Update]]:
    """The batches of a history with their updates."""
    if isinstance(history, Tape):
        if fair_at is not None:
            engine.fair = fair_at(span(history)[0])
        for taped, update in steps_of(history, engine):
            yield taped.batch, update
            if fair_at is not None:
                engine.fair = fair_at(update.now)
        return
    for piece in history.pieces:
        for batch in batches(engine, piece):
            if not (piece.now.size or engine.state.board.partitions.size.any()):
                return  # nothing can happen any more
            if fair_at is not None:
                engine.fair = fair_at(batch.now)
            yield batch, engine.feed(batch)


def batches(engine: Engine, piece: Piece) -> Iterator[Batch]:
    """Yield the snapshots of a piece as batches; apply each before requesting the next."""
    moments = np.unique(piece.now) if piece.moments is None else piece.moments
    if not piece.now.size:
        yield from (_nothing(moment) for moment in moments.tolist())
        return
    now, code, raw_labels, book, books, columns, links, refused = _read(piece)
    engine.expect(raw_labels)
    known_raw_labels: Any = None
    for moment, a, b in cuts(now, moments):
        if a == b:
            yield _nothing(moment, refused)
            refused = {}
            continue
        if engine.raw_labels is not known_raw_labels:  # the first snapshot, or the engine has renumbered its codes
            known_raw_labels, terms, names = engine.raw_labels, _none, _none
        terms, names = _more(engine, terms, raw_labels, code[a:b], names, books, book[a:b])
        key = terms[code[a:b]] << BOOK_BITS | names[book[a:b]]
        learnt, met = engine.published
        quoted = CodedQuotes(key, *(column[a:b] for column in columns))
        yield Batch(
            moment, list(engine.raw_labels[learnt:]), list(engine.books[met:]), quoted, links[a:b], _NO_IDS, [], [],
            refused,
        )  # fmt: skip
        refused = {}


class _PieceQuotes(NamedTuple):
    """The valid quotes of a piece, with codes by first appearance."""

    now: Longs
    code: Longs
    raw_labels: list[Any]
    book: Longs
    books: list[str]
    columns: list[Any]  # those of `CodedQuotes` after the first
    links: list[str | None]
    rejected: dict[str, int]  # quotes by reason


def _read(piece: Piece) -> _PieceQuotes:
    """Validate and code the rows of a piece, each once."""
    again, height = piece.repeated, piece.table.height
    row = np.arange(height) if again is None else again.row
    c = checked(piece.table)
    code, raw_labels = _raw_labels(c.table)
    book, books = _coded(c.table["sportsbook"])
    place = np.full(height, NONE)
    place[c.number] = np.arange(c.number.size)
    valid = place[row] != NONE
    of = place[row[valid]]
    seen, flags = c.seen[of], c.flags[of]
    if again is not None:
        seen, flags = again.seen[valid], flags | again.live[valid] * np.uint8(LIVE)
    columns = [c.odds[of], c.american[of], seen, c.changed[of], c.start[of], flags]
    texts, refused = c.links(), c.table.rejected
    links = [None] * of.size if texts.count(None) == len(texts) else [texts[at] for at in of.tolist()]
    quotes = np.bincount(row, minlength=height)[refused["row"].to_numpy()]
    counts = refused.select("guard", quotes=pl.Series(quotes)).group_by("guard").agg(pl.col("quotes").sum())
    return _PieceQuotes(
        piece.now[valid], code[of], raw_labels, book[of], books, columns, links, dict(counts.iter_rows())
    )  # fmt: skip


_none: Longs = np.empty(0, np.int64)
_NO_QUOTES = CodedQuotes(_none, np.empty(0), np.empty(0), _none, _none, _none, np.empty(0, np.uint8))


def _nothing(moment: int, refused: Mapping[str, int] = MappingProxyType({})) -> Batch:
    """A batch in which only time passes."""
    return Batch(moment, [], [], _NO_QUOTES, [], _NO_IDS, [], [], dict(refused))


def _more(
    engine: Engine, terms: Longs, raw_labels: list[Any], code: Longs, names: Longs, books: list[str], book: Longs
) -> tuple[Longs, Longs]:
    """Return the engine's codes of raw labels and books, adding those that are new."""
    upto, last = int(code.max()) + 1, int(book.max()) + 1
    if upto > terms.size or last > names.size:
        new, met = engine.codes(raw_labels[terms.size : upto], books[names.size : last])
        terms, names = np.concatenate((terms, new)), np.concatenate((names, met))
    return terms, names


def _raw_labels(table: pl.DataFrame) -> tuple[Longs, list[Any]]:
    """Code the raw label of each row by first appearance, and return the raw labels."""
    words = table.select(_KEY)
    code, first = intern(words.hash_rows().to_numpy(), expected=1 << 14)
    distinct = words[first]
    if not distinct[code].equals(words):  # two raw labels have the same hash
        ranks = words.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()
        code, first = intern(ranks.astype(np.uint64))
        distinct = words[first]
    texts = [[None if text is None else sys.intern(text) for text in distinct[name]] for name in RAW_LABEL]
    return code.astype(np.int64), list(zip(*texts, distinct["line"].to_list(), strict=True))


def _coded(texts: pl.Series) -> tuple[Longs, list[str]]:
    """Code texts by first appearance, and return the texts."""
    distinct = texts.unique(maintain_order=True)
    codes = pl.Series(range(distinct.len()), dtype=pl.Int64)
    return texts.replace_strict(distinct, codes).to_numpy(), distinct.to_list()
