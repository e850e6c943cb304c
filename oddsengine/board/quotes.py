"""The quote reader of the live board: parses and validates quotes into columns.

Quotes are a frame (anything `check_odds` takes), mappings with the fields of `ODDS_SCHEMA` and `DEPTH_SCHEMA`, or a
JSON list of such objects. Mappings and JSON become structs (`_plain`), whose fields are the columns. Rows that need
conversion (numbers as text, flags as 0 and 1) go through `check_odds` like a table. Both paths accept the same rows,
and reject the same rows for the same reasons.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, cast

import msgspec
import numpy as np
import polars as pl

from oddsengine.board.names import Names
from oddsengine.board.row_links import LINKS, joined
from oddsengine.board.rows import NO_PRICE, REJECTED
from oddsengine.columns import NO_TIME, SECOND, Bytes, Floats, Ints, Longs
from oddsengine.identity.layout import LIVE, MISMATCH, SUSPENDED
from oddsengine.identity.raw_labels import RAW_LABEL, RawLabel
from oddsengine.identity.table_identity import times
from oddsengine.maths.odds import even_money
from oddsengine.tables.casts import CASTS
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.levels import (
    DEPTH_SCHEMA,
    LEVELS,
    MOST_LEVELS,
    MOST_STAKE,
    levels_text,
    valid_numbers,
)
from oddsengine.tables.schema import (
    MOST_CHARACTERS,
    MOST_DECIMAL,
    NONE_REJECTED,
    ODDS_SCHEMA,
    OTHER_ROW,
    ROW,
    OddsError,
    OddsTable,
    check_rows,
    decimal_prices,
    named,
)
from oddsengine.tables.timestamps import aware, micros

_TEAMS = ("home_team", "away_team")


class Quotes(NamedTuple):
    """Validated quotes as columns, in the order received."""

    term: Ints  # codes of their terms, -1 if new
    book: Ints  # codes of their books, -1 if new
    new_terms: list[RawLabel]  # of the rows without a code, in order
    new_books: list[str]
    odds: Floats
    american: Floats  # as given, else nan
    seen: Longs
    changed: Longs
    start: Longs
    flags: Bytes  # bits defined in `rows`
    links: list[str | None]
    rejected: pl.DataFrame  # `BAD_ROW_SCHEMA`
    number: Longs | None = None  # position of each quote in the input; None if no row was rejected


_Text = Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)]


_Level: Any = msgspec.defstruct("_Level", [("odds_decimal", float), ("stake", float)], gc=False)
_KINDS: dict[type[pl.DataType], Any] = {
    pl.String: _Text | None, pl.Float64: float | None, pl.Boolean: bool | None, pl.Datetime: Any,
    pl.List: list[_Level] | None,
}  # fmt: skip
_MOMENTS = ("last_seen_at", "timestamp", "odds_changed_at", "event_start_time")
_FIELDS = (
    *RAW_LABEL, "line", "sportsbook", "odds_decimal", "odds_american", *_MOMENTS, "is_live", "is_active",
    "rejected_upstream", *LINKS,
)  # fmt: skip
_KNOWN = frozenset(_FIELDS)
_SCHEMA = {**ODDS_SCHEMA, **DEPTH_SCHEMA, "timestamp": ODDS_SCHEMA["last_seen_at"]}
_FLAGS = (("is_live", LIVE, True), ("is_active", SUSPENDED, False), ("rejected_upstream", REJECTED, True))
_NUMBERS = [name for name in LINKS if _KINDS[type(_SCHEMA[name])] == float | None]
_BLOCK = 64  # rows: their fields stay in the first cache while they are turned into columns

Columns = dict[str, Sequence[Any]]


@lru_cache(256)
def _plain(given: frozenset[str]) -> Any:
    """The type of a list of rows that need no conversion, with these fields; others are ignored."""
    fields = [(name, _KINDS[type(_SCHEMA[name])], None) for name in _FIELDS if name in given]
    row: Any = msgspec.defstruct("_Plain", fields, gc=False)
    return list[row]


_decoder = msgspec.json.Decoder(_plain(_KNOWN))


class QuoteReader:
    """Reads quotes."""

    def read_quotes(self, quotes: IntoFrame | Iterable[Mapping[str, Any]] | bytes | str, names: Names) -> Quotes:
        """Validate quotes and return them as columns, with the codes that `names` has; `names` is not changed.

        Raises
        ------
        OddsError
            If the input is not a list of quotes: text that is not a JSON list of objects, or a frame without the
            required columns.
        """
        if isinstance(quotes, pl.DataFrame | pl.LazyFrame) or hasattr(quotes, "__arrow_c_stream__"):
            return self._table(to_polars(cast("IntoFrame", quotes)), names)
        if isinstance(quotes, bytes | str):
            try:
                read = _columns(_decoder.decode(quotes), names)
            except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
                read = None
            if read is not None:
                return read
            try:
                rows = json.loads(quotes)  # accepts numbers of any size, so a huge one rejects its row, not the batch
            except (ValueError, RecursionError) as error:
                raise OddsError(f"quotes are not valid JSON: {error}; pass a JSON list of objects") from None
        else:
            if not isinstance(quotes, Iterable):
                raise OddsError(f"quotes must be a list of mappings, a frame or JSON text, got {quotes!r:.80}")
            rows = quotes if isinstance(quotes, Sequence) else list(quotes)
            try:
                read = _columns(msgspec.convert(rows, _plain(_KNOWN.intersection(frozenset().union(*rows)))), names)
            except (msgspec.ValidationError, ValueError, OverflowError, TypeError):
                read = None
            if read is not None:
                return read
        if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
            raise OddsError(f"quotes must be a list of mappings, got {_shape(rows)}")
        return self._table(_frame(rows), names)

    def codes(self, read: Quotes, names: Names) -> tuple[Ints, Ints]:
        """Codes of the terms and books of quotes; new ones are added to `names`."""
        if read.new_terms:
            read.term[read.term < 0] = names.learn(read.new_terms)
        if read.new_books:
            read.book[read.book < 0] = list(map(names.books.code, read.new_books))
        return read.term, read.book

    def _table(self, frame: pl.DataFrame, names: Names) -> Quotes:
        """Read quotes with `check_odds`; suspended quotes may omit the price."""
        c = checked(frame)
        texts = [c.table[name].to_list() for name in RAW_LABEL]
        raw_labels = list(zip(*texts, c.table["line"].to_list(), strict=True))
        return Quotes(
            *_coded(raw_labels, c.table["sportsbook"].to_list(), names), c.odds, c.american, c.seen, c.changed, c.start,
            c.flags, c.links(), c.table.rejected, c.number if c.table.rejected.height else None,
        )  # fmt: skip


class CheckedQuotes(NamedTuple):
    """A validated table of quotes, and its numbers as arrays."""

    table: OddsTable
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs
    start: Longs
    flags: Bytes
    number: Longs  # position in the input

    def links(self) -> list[str | None]:
        """The columns `LINKS` of each row joined to one text."""
        columns = {name: self.table[name].to_list() for name in LINKS if name in self.table.columns}
        if LEVELS in columns:
            columns[LEVELS] = [levels_text(levels) or None for levels in columns[LEVELS]]
        return joined(columns, self.table.height)


def checked(frame: pl.DataFrame) -> CheckedQuotes:
    """Validate a frame of quotes; suspended quotes may omit the price.

    Raises
    ------
    OddsError
        If a required column is missing.
    """
    frame = named(frame.drop(ROW, OTHER_ROW, strict=False))
    teams = [pl.lit(None, pl.String).alias(name) for name in _TEAMS if name not in frame.columns]  # none from names
    bare, frame = _without_price(frame.with_columns(teams))
    table = check_rows(frame, quotes=True)
    given = "odds_american" in frame.columns
    american = _given_american(frame, table) if given else np.full(table.height, np.nan)
    flags = table["is_live"].to_numpy().astype(np.uint8) * np.uint8(LIVE)
    flags |= (~table["is_active"]).to_numpy().astype(np.uint8) * np.uint8(SUSPENDED)
    flags |= table["price_mismatch"].to_numpy().astype(np.uint8) * np.uint8(MISMATCH)
    flags |= table["rejected_upstream"].to_numpy().astype(np.uint8) * np.uint8(REJECTED)
    odds = np.array(table["odds_decimal"])
    if bare is not None:
        missing = table["row"].is_in(bare.implode()).to_numpy()
        odds[missing] = np.nan
        american[missing] = np.nan
        flags[missing] |= np.uint8(NO_PRICE)
    return CheckedQuotes(
        table, odds, american, times(table, "last_seen_at"), times(table, "odds_changed_at"),
        times(table, "event_start_time"), flags, table["row"].to_numpy().astype(np.int64),
    )  # fmt: skip


def _by_column(rows: list[Any]) -> Columns:
    """The columns of rows, without those that are empty."""
    if not rows:
        return {}
    columns: dict[str, list[Any]] = {name: [] for name in rows[0].__struct_fields__}
    for first in range(0, len(rows), _BLOCK):
        block = zip(*map(msgspec.structs.astuple, rows[first : first + _BLOCK]), strict=True)
        for column, values in zip(columns.values(), block, strict=True):
            column.extend(values)
    return {name: column for name, column in columns.items() if column[0] is not None or column.count(None) < len(rows)}


def _columns(rows: list[Any], names: Names) -> Quotes | None:
    """Columns of plain rows; None if a row has to be rejected, so that `check_odds` says which and why."""
    n, columns = len(rows), _by_column(rows)
    nothing = [None] * n
    line, odds, american = (
        np.array(columns[name], np.float64) if name in columns else np.full(n, np.nan)
        for name in ("line", "odds_decimal", "odds_american")
    )
    if "line" in columns and np.isnan(line).sum() != columns["line"].count(None):  # nan is no line, and not itself
        columns["line"] = [None if np.isnan(value) else value for value in line.tolist()]
    flags = np.zeros(n, np.uint8)
    for name, bit, value in _FLAGS:
        column = columns.get(name, ())
        if value in column:
            flags |= np.uint8(bit) * np.array([each is value for each in column], np.uint8)
    american = even_money(american)
    unpriced = np.isnan(odds) & np.isnan(american) & ((flags & np.uint8(SUSPENDED)) != 0)
    odds, mismatch = decimal_prices(odds, american)
    if not (unpriced | ((odds > 1.0) & (odds <= MOST_DECIMAL))).all() or np.isinf(american).any():
        return None
    flags[mismatch] |= np.uint8(MISMATCH)
    flags[unpriced] |= np.uint8(NO_PRICE)
    texts = [columns.get(name, nothing) for name in RAW_LABEL]
    texts = [[text or None for text in column] if "" in column else column for column in texts]
    raw_labels = list(zip(*texts, columns.get("line", nothing), strict=True))
    term, book, new_terms, new_books = _coded(raw_labels, columns.get("sportsbook", nothing), names)
    if not all(map(_named, new_terms)) or not all(new_books) or not _unicode(new_books):
        return None
    links = _links(columns, n)
    if links is None:
        return None
    seen, stamp, changed, start = (_times(columns.get(name, nothing)) for name in _MOMENTS)
    if seen is None or stamp is None or changed is None or start is None:
        return None
    return Quotes(
        term, book, new_terms, new_books, odds, american, np.where(seen == NO_TIME, stamp, seen), changed, start, flags,
        links, NONE_REJECTED,
    )  # fmt: skip


def _coded(
    raw_labels: Sequence[RawLabel], books: Sequence[str], names: Names
) -> tuple[Ints, Ints, list[RawLabel], list[str]]:
    """Codes of terms and books, -1 for new ones, and the new ones."""
    term = np.array([names.terms.codes.get(raw_label, -1) for raw_label in raw_labels], np.int32)
    book = np.array([names.books.codes.get(name, -1) for name in books], np.int32)
    new_terms = [raw_labels[at] for at in np.flatnonzero(term < 0).tolist()]
    new_books = [books[at] for at in np.flatnonzero(book < 0).tolist()]
    return term, book, new_terms, new_books


_FINER = re.compile(r"\.\d{7}")  # than a microsecond
_NEAR = 1 << 52  # microseconds from 1970 in which a float of seconds has all of them


def _times(moments: Sequence[Any]) -> Longs | None:
    """Times in microseconds; None if one needs conversion. Most of a batch are equal."""
    different = [moment for moment in dict.fromkeys(moments) if moment is not None]
    if not different:
        return np.full(len(moments), NO_TIME)
    given = different
    if all(isinstance(moment, str) for moment in different):
        if _FINER.search("\n".join(different)):
            return None
        given = msgspec.convert(different, list[datetime])
    elif not all(isinstance(moment, datetime) for moment in different):
        return None
    found = np.rint(np.array([aware(time).timestamp() for time in given]) * SECOND).astype(np.int64)
    if np.abs(found).max() > _NEAR:
        found = np.array(list(map(micros, given)), np.int64)
    known = dict(zip(different, found.tolist(), strict=True)) | {None: NO_TIME}
    return np.array([known[moment] for moment in moments], np.int64)


def _links(columns: Columns, n: int) -> list[str | None] | None:
    """The own texts of plain rows; None if a row has to be rejected."""
    own = {name: columns[name] for name in LINKS if name in columns}
    if not own:
        return [None] * n
    for name in _NUMBERS:
        if name in own:
            numbers = np.array(own[name], np.float64)
            if np.isinf(numbers).any():
                return None
            if np.isnan(numbers).sum() != own[name].count(None):
                own[name] = [None if value is None or value != value else value for value in own[name]]  # noqa: PLR0124  nan
    if "max_bet" in own:
        own["max_bet"] = [None if most is None or most < 0.0 else most for most in own["max_bet"]]
    if any(name in own for name in DEPTH_SCHEMA):
        if not all(map(_valid_depth, *(own.get(name, [None] * n) for name in DEPTH_SCHEMA))):
            return None
        if LEVELS in own:
            own[LEVELS] = [
                None if not levels else levels_text((each.odds_decimal, each.stake) for each in levels)
                for levels in own[LEVELS]
            ]
    texts = joined(own, n)
    return texts if _unicode(text for text in texts if text) else None


def _named(raw_label: RawLabel) -> bool:
    """Whether a new raw label has the fields that are required of a price."""
    line = raw_label[-1]
    return (
        bool(raw_label[0] and raw_label[5] and raw_label[7])
        and (line is None or abs(line) < np.inf)
        and _unicode(text for text in raw_label[:-1] if text)
    )


def _unicode(texts: Iterable[str]) -> bool:
    """Whether texts can be encoded; an unpaired surrogate cannot."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _levels(value: Any) -> Any:
    """Levels as text; what is none stays, and is rejected later."""
    if isinstance(value, list | tuple) and all(isinstance(level, Mapping) for level in value):
        return levels_text(value)
    return value


def _shape(rows: Any) -> str:
    if not isinstance(rows, list | tuple):
        return type(rows).__name__
    odd = next(row for row in rows if not isinstance(row, Mapping))
    return f"a list that contains {type(odd).__name__} {odd!r:.80}"


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Convert rows to a frame; a field with values of several types becomes text."""
    names = dict.fromkeys(name for row in rows for name in row)
    names.setdefault("odds_decimal")
    columns = {}
    if "last_seen_at" in names and "timestamp" in names:
        rows = [row if row.get("last_seen_at") else {**row, "last_seen_at": row.get("timestamp")} for row in rows]
    for name in names:
        values = [row.get(name) for row in rows]
        if name == LEVELS:
            values = [_levels(value) for value in values]
        kinds = {type(value) for value in values if value is not None}
        if kinds <= {int, float}:
            values = [None if value is None else _float(value) for value in values]
        elif len(kinds) > 1 or not kinds <= {str, bool, datetime}:
            values = [None if value is None else _text(value) for value in values]
        if str in kinds:
            most = None if name == LEVELS else MOST_CHARACTERS + 1
            values = [readable(value[:most]) if isinstance(value, str) else value for value in values]
        columns[name] = pl.Series(name, values, dtype=pl.Null if not kinds else None)
    return pl.DataFrame(columns)


def readable(text: str) -> str:
    """The text with question marks in place of unpaired surrogates."""
    return text.encode("utf-8", "replace").decode()


def _float(value: float) -> float:
    """The number as a float; infinity, which is rejected later, if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if not isinstance(value, int) or abs(value) < 1 << 128 else "a number above 2^128"


def _without_price(frame: pl.DataFrame) -> tuple[pl.Series | None, pl.DataFrame]:
    """Positions of the suspended rows without a price, and the frame with a placeholder price in them."""
    prices = [name for name in ("odds_decimal", "odds_american") if name in frame.columns]
    if "is_active" not in frame.columns or not prices:
        return None, frame
    flag = frame["is_active"]
    active = CASTS[pl.Boolean][0](flag) if flag.dtype != pl.Boolean else flag
    bare = (active == False).fill_null(False)  # noqa: E712, FBT003  null is not false
    for name in prices:
        column = frame[name]
        empty = column.is_null()
        if column.dtype.is_float():
            empty |= column.is_nan().fill_null(False)  # noqa: FBT003
        bare &= empty
    if not bare.any():
        return None, frame
    kind = frame.schema[prices[0]]
    stand_in = pl.lit("2") if kind == pl.String else pl.lit(2.0)
    target = pl.when(bare).then(stand_in).otherwise(pl.col(prices[0]))
    return bare.arg_true(), frame.with_columns(target.alias(prices[0]))


def _given_american(frame: pl.DataFrame, table: pl.DataFrame) -> Floats:
    """American prices as given, for the rows that were not rejected."""
    given = CASTS[pl.Float64][0](frame["odds_american"]) if frame["odds_american"].dtype != pl.Float64 else None
    column = frame["odds_american"] if given is None else given
    american = even_money(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())
    if table.height == frame.height:
        return american
    return np.asarray(american[table[ROW].to_numpy()])


def _valid_depth(levels: Sequence[Any] | None, *numbers: float | None) -> bool:
    """Whether levels, fees and rules of stakes are as `check_odds` wants them."""
    few = levels is None or len(levels) <= MOST_LEVELS
    return (
        few
        and all(1.0 < each.odds_decimal < np.inf and 0.0 <= each.stake <= MOST_STAKE for each in levels or ())
        and valid_numbers(numbers)
    )
