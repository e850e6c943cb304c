"""The quote reader of the live board: parses and validates quotes into columns.

Quotes are a frame (anything `check_odds` takes), mappings with the fields of `ODDS_SCHEMA` and `DEPTH_SCHEMA`, or a
JSON list of such objects. Mappings and JSON become the same structs (`_Plain`), whose fields are the columns. Rows that
need conversion (numbers as text, flags as 0 and 1) go through `check_odds` like a table. Both paths accept the same
rows, and reject the same rows for the same reasons.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple, cast

import msgspec
import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.board.names import Names
from oddsengine.board.row_links import LEVELS_AT, LIMIT, LINKS, joined
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
_SCHEMA = {**ODDS_SCHEMA, **DEPTH_SCHEMA, "timestamp": ODDS_SCHEMA["last_seen_at"]}
_Plain: Any = msgspec.defstruct("_Plain", [(name, _KINDS[type(_SCHEMA[name])], None) for name in _FIELDS], gc=False)
"""A row that needs no conversion."""
_decoder = msgspec.json.Decoder(list[_Plain])
_FLAGS = (("is_live", LIVE, True), ("is_active", SUSPENDED, False), ("rejected_upstream", REJECTED, True))
_PLACE = {name: at for at, name in enumerate(_FIELDS)}
_NUMBERS = [at for at, name in enumerate(LINKS) if _KINDS[type(_SCHEMA[name])] == float | None]  # of `LINKS`


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
                read = _columns(msgspec.convert(rows, list[_Plain]), names)
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
        n, held = self.table.height, self.table.columns
        columns = [self.table[name].to_list() if name in held else [None] * n for name in LINKS]
        if LEVELS in held:
            columns[LEVELS_AT] = [levels_text(levels) or None for levels in columns[LEVELS_AT]]
        return joined(columns, n)


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


@kernel
def _prices(odds, american, flags, is_bad, mismatch):
    """Derive missing decimal prices from American ones as `check_odds` does; mark missing prices and mismatches.

    - `odds`, `american` (float64 per row): prices, nan if missing; `odds` is completed
    - `flags` (uint8 per row, in and out): flags of quotes
    - `is_bad` (uint8 per row, out): 1 if the row has no valid price
    - `mismatch`: relative difference of the two prices that is a mismatch
    """
    for i in range(odds.size):
        d, a = odds[i], american[i]
        if np.isnan(d) and np.isnan(a):
            if flags[i] & SUSPENDED:
                flags[i] |= np.uint8(NO_PRICE)
            else:
                is_bad[i] = 1
            continue
        decimal = np.nan
        if not np.isnan(a):
            if np.isinf(a):
                is_bad[i] = 1
                continue
            if abs(a) < 100.0:
                flags[i] |= np.uint8(MISMATCH)
            if a != 0.0:
                decimal = (100.0 + abs(a)) / (
                    100.0 if a > 0.0 else -a
                )  # as `maths.odds.american_to_decimal`, to the bit
        if np.isnan(d):
            if abs(a) < 100.0:
                is_bad[i] = 1
                continue
            d = decimal
            odds[i] = d
        elif abs(decimal / d - 1.0) > mismatch:
            flags[i] |= np.uint8(MISMATCH)
        if not (d > 1.0 and d <= MOST_DECIMAL):
            is_bad[i] = 1


def _columns(rows: list[Any], names: Names) -> Quotes | None:
    """Columns of plain rows; None if a row has to be rejected, so that `check_odds` says which and why."""
    columns: list[Any] = list(zip(*map(msgspec.structs.astuple, rows), strict=True)) or [()] * len(_FIELDS)
    line, odds, american = (
        np.array(columns[_PLACE[name]], np.float64) for name in ("line", "odds_decimal", "odds_american")
    )
    if np.isnan(line).sum() != columns[_PLACE["line"]].count(None):  # nan is no line, and not equal to itself
        columns[_PLACE["line"]] = tuple(None if np.isnan(value) else value for value in line.tolist())
    flags = np.zeros(len(rows), np.uint8)
    for name, bit, value in _FLAGS:
        column = columns[_PLACE[name]]
        if value in column:
            flags |= np.uint8(bit) * np.array([each is value for each in column], np.uint8)
    american, bad = even_money(american), np.zeros(len(rows), np.uint8)
    limits = catalog.thresholds()
    _prices(odds, american, flags, bad, limits.price_mismatch + limits.epsilon)
    if bad.any():
        return None
    texts = [tuple(text or None for text in column) if "" in column else column for column in columns[: len(RAW_LABEL)]]
    raw_labels = list(zip(*texts, columns[_PLACE["line"]], strict=True))
    term, book, new_terms, new_books = _coded(raw_labels, columns[_PLACE["sportsbook"]], names)
    if not all(map(_named, new_terms)) or not all(new_books) or not _unicode(new_books):
        return None
    links = _links(columns, len(rows))
    if links is None:
        return None
    seen, stamp, changed, start = (_times(columns[_PLACE[name]]) for name in _MOMENTS)
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


def _links(columns: Sequence[Sequence[Any]], n: int) -> list[str | None] | None:
    """The own texts of plain rows; None if a row has to be rejected."""
    first = _PLACE[LINKS[0]]
    own: list[Sequence[Any]] = list(columns[first:])
    absent = [column.count(None) == n for column in own]
    if all(absent):
        return [None] * n
    for at in _NUMBERS:
        if not absent[at]:
            numbers = np.array(own[at], np.float64)
            if np.isinf(numbers).any():
                return None
            if np.isnan(numbers).sum() != own[at].count(None):
                own[at] = [None if value is None or value != value else value for value in own[at]]  # noqa: PLR0124  nan
    own[LIMIT] = [None if most is None or most < 0.0 else most for most in own[LIMIT]]
    if not all(absent[LEVELS_AT:]):
        if not all(map(_valid_depth, *own[LEVELS_AT:])):
            return None
        own[LEVELS_AT] = [
            None if not levels else levels_text((each.odds_decimal, each.stake) for each in levels)
            for levels in own[LEVELS_AT]
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
