"""Column names and dtypes of odds tables, and their validation.

`check_odds` takes any frame of prices (`oddsengine.tables.frames`), casts it to `ODDS_SCHEMA`, derives the missing
format of each price, and moves invalid rows to `OddsTable.rejected`. All other code trusts the table.

- Required: `sportsbook`, `event_id`, `market_type`, `selection`, and `odds_decimal` or `odds_american`. Other columns
  can be missing or null; `is_live`, `flap`, `confirmed` and `rejected_upstream` are then false and `is_active` true.
- Columns can have other names: a mapping of them, or common ones (`oddsengine.tables.column_names`). A table with both
  teams needs no `event_id`: the day and the teams identify the event, and books have to spell the teams alike.
- Numbers, flags and times can be text: `+150`, `10/11` (`odds_decimal`), `1,95`, `true` or `1`, ISO 8601 with or
  without an offset (none: UTC), Unix seconds, milliseconds, microseconds or nanoseconds by their size. `1,950` is
  rejected, as the comma may group thousands, and so is `5/11/2026`, which may be in May. NaN in a number is null.
- `odds_probability` of a source is ignored.
- A table may also have columns of prices of exchanges, such as `levels`, `commission` and `min_bet`
  (`oddsengine.tables.levels`); unlike the others they are not added to a table that has none.
- A text has at most `MOST_CHARACTERS`; rows with longer ones are rejected, and the report shows the beginning.
- Decimal odds have no plus sign: `+120` in `odds_decimal` is rejected. A price of -100 or less there is American, and
  then so are whole prices of 100 or more: of the same book, or of all books if none has a price between 1 and 100.
- The decimal price takes precedence over the American; other formats are derived from it. `price_mismatch` marks rows
  whose two prices differ by more than the catalog's tolerance, or whose American price is invalid.
- `row` is the position of the row in the input, from 0; of a file, that of its data line. A table that was checked
  before keeps it. If the input has a column `row` of its own, that stays, and the position is `odds_row`.
- Columns that are not in the schema are kept.
"""

import math
import re
import sys
import warnings
from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar, cast

import numpy as np
import polars as pl

from oddsengine.bounds import shortened
from oddsengine.catalog import thresholds
from oddsengine.columns import Bools, Floats
from oddsengine.maths.odds import american_to_decimal, decimal_to_american, even_money
from oddsengine.tables.casts import (
    CASTS,
    PRICE_REASONS,
    TIME,
    is_empty,
    mixed_zones,
    on_calendar,
    ordered_days,
    readable,
)
from oddsengine.tables.column_names import (
    ANY_FORMAT,
    Columns,
    added,
    days,
    event_ids,
    game_name,
    game_names,
    header_row,
    ids_by_day,
    place,
    price_format,
    renamed,
    renames,
    teams_of,
    teams_of_names,
    unpivot,
)
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.levels import BAD_LEVELS, BAD_NUMBERS, DEPTH_SCHEMA, LEVELS, bad_numbers, read_levels
from oddsengine.tables.reshape import long_form, with_lines
from oddsengine.tables.shapes import SOURCE_COLUMN, SOURCE_ROW, Long, Words, plain

ODDS_SCHEMA: dict[str, pl.DataType] = {
    "id": pl.String(),
    "sportsbook": pl.String(),
    "event_id": pl.String(),
    "sport": pl.String(),
    "league": pl.String(),
    "home_team": pl.String(),
    "away_team": pl.String(),
    "market_type": pl.String(),
    "selection": pl.String(),
    "selection_type": pl.String(),
    "odds_american": pl.Float64(),
    "odds_decimal": pl.Float64(),
    "odds_probability": pl.Float64(),
    "line": pl.Float64(),
    "event_start_time": TIME,
    "is_live": pl.Boolean(),
    "last_seen_at": TIME,
    "odds_changed_at": TIME,
    "deep_link": pl.String(),
    "sportsbook_name": pl.String(),
    "is_active": pl.Boolean(),
    "is_main_line": pl.Boolean(),
    "is_alternate_line": pl.Boolean(),
    "player_name": pl.String(),
    "stat_category": pl.String(),
    "team_side": pl.String(),
    "market_segment": pl.String(),
    "external_event_id": pl.String(),
    "market_id": pl.String(),
    "selection_id": pl.String(),
    "max_bet": pl.Float64(),
    "volume": pl.Float64(),
    "volume_24h": pl.Float64(),
    "open_interest": pl.Float64(),
    "exchange_token_id": pl.String(),
    "flap": pl.Boolean(),
    "rejected_upstream": pl.Boolean(),
    "confirmed": pl.Boolean(),
}
"""Columns of an odds table, in order.

`flap` and `confirmed` are set by the live board: the price has jumped back and forth, or was confirmed by a second
observation. `rejected_upstream` means that the node which the price was read from rejects it.
"""

BAD_ROW_SCHEMA: dict[str, pl.DataType] = {
    "row": pl.UInt32(),
    "field": pl.String(),
    "value": pl.String(),
    "reason": pl.String(),
    "guard": pl.String(),
}
"""Columns of `OddsTable.rejected`: one row per invalid row, with its first invalid field."""

_REQUIRED = ("sportsbook", "event_id", "market_type", "selection")
_PRICES = ("odds_decimal", "odds_american")
ROW, OTHER_ROW = "row", "odds_row"
_OWN = (ROW, OTHER_ROW, "price_mismatch")  # columns added by the check
_PACKAGE = __name__.partition(".")[0]
_FINITE = sys.float_info.max
MOST_DECIMAL = 1e300  # decimal; larger odds have no finite American form
MOST_CHARACTERS = 1000
"""Maximum length of a text."""
_SHOWN = 200  # characters of a bad value in the report
_LONG = f"longer than {MOST_CHARACTERS:,} characters"
_AMERICAN = "an American price: give it as odds_american"
_NO_AMERICAN = "not a finite price of 100 or more, or -100 or less"
_DEFAULTS = {"is_live": False, "is_active": True, "flap": False, "rejected_upstream": False, "confirmed": False}
_MISSING = {name: pl.Series(name, [_DEFAULTS.get(name)], dtype=dtype) for name, dtype in ODDS_SCHEMA.items()}
_TIMES = tuple(name for name, dtype in ODDS_SCHEMA.items() if isinstance(dtype, pl.Datetime))
_TEXTS = (pl.String, pl.Categorical, pl.Enum)
_TEAMS = {"home_team", "away_team"}
_GIVEN = "start as given"
_SEGMENTS = ("period", "half", "segment", "quarter", "game period")
_Frame = TypeVar("_Frame", bound=pl.DataFrame | pl.LazyFrame)


class OddsError(ValueError):
    """The input is not an odds table; the message is for the user."""


class OddsWarning(UserWarning):
    """The input needs attention: why a result is empty, or how the input was read; the message says which."""


class OddsTable(pl.DataFrame):
    """A frame in `ODDS_SCHEMA` returned by `check_odds`; do not modify it in place."""

    first_line: int | None = None  # of the file that it was read from: the line of position 0

    def __init__(self, frame: pl.DataFrame, rejected: pl.DataFrame, unpriced: pl.DataFrame | None = None) -> None:
        super().__init__(frame)
        self._rejected = rejected
        self._unpriced = frame.clear() if unpriced is None else unpriced

    @property
    def rejected(self) -> pl.DataFrame:
        """Invalid rows, in `BAD_ROW_SCHEMA`."""
        return self._rejected if self.checked else NONE_REJECTED

    @property
    def unpriced(self) -> pl.DataFrame:
        """Rows with valid names but without a price: not offers, but evidence of what the book quotes."""
        return self._unpriced if self.checked else self.clear()

    @property
    def checked(self) -> bool:
        """Whether this table is the result of `check_odds`; a slice of it is not."""
        return "_rejected" in self.__dict__


NONE_REJECTED = pl.DataFrame(schema=BAD_ROW_SCHEMA)


def row_column(names: Collection[str]) -> str:
    """Return the column of a checked table, or of its rejected rows, that has positions in the input.

    Examples
    --------
    >>> row_column(["sportsbook", "row"]), row_column(["row", "odds_row"])
    ('row', 'odds_row')
    """
    return OTHER_ROW if OTHER_ROW in names else ROW


def check_odds(frame: IntoFrame, *, columns: Columns | None = None) -> OddsTable:
    """Validate a frame of odds and cast it to `ODDS_SCHEMA`.

    Parameters
    ----------
    frame
        One row per price: a polars, pandas or pyarrow frame, anything with the Arrow PyCapsule interface, a list of
        rows as dicts, or a dict of columns; the module docstring describes the columns.
    columns
        Names of the frame's columns, and what they are in `ODDS_SCHEMA`: ``{"Bookie": "sportsbook"}``. Common names
        such as ``Book``, ``Home``, ``Market`` and ``Price`` need none. A price of any format is ``odds``: American if
        any has a sign, else decimal or fractional. An expression adds a column, such as one that all rows have in
        common: ``{"market_type": pl.lit("moneyline")}``.

    Returns
    -------
    OddsTable
        The valid rows in order, with every column of `ODDS_SCHEMA`, `row` and `price_mismatch`. The others are in
        `.rejected`, with position, field, value, reason and guard (`bad_value`, `missing_value`, `bad_price`). An
        `OddsTable` is returned unchanged.

    Raises
    ------
    OddsError
        If a required column is missing or has an unsupported dtype, a name of `columns` is wrong, or the format of the
        prices is unclear.

    Examples
    --------
    >>> rows = [
    ...     {"Book": "a", "event_id": "e", "Market": "moneyline", "Bet": "home", "Odds": "+150"},
    ...     {"Book": "b", "event_id": "e", "Market": "moneyline", "Bet": "away", "Odds": "soon"},
    ... ]
    >>> table = check_odds(rows, columns={"Bet": "selection"})
    >>> table["odds_decimal"].to_list(), table.rejected["reason"].to_list()
    ([2.5], ['not a price: +150 and -110 are accepted'])
    """
    if isinstance(frame, OddsTable) and frame.checked and not columns:
        return frame
    try:
        frame = to_polars(frame)
    except (TypeError, ValueError) as error:
        raise OddsError(f"not an odds table: {error}") from None
    warn_of_names(frame, columns)
    return check_rows(frame, columns)


def warn(text: str) -> None:
    """Issue an `OddsWarning` at the line that called this package, however deep in it the reason was found."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, OddsWarning, stacklevel=level)


def warn_of_names(frame: pl.DataFrame, columns: Columns | None) -> None:
    """Warn of columns of the input that results name otherwise, unless they are mapped to others."""
    frame = frame.drop(renamed(columns), strict=False)
    if ROW in frame.columns and "price_mismatch" not in frame.columns:
        warn(f"the column {ROW!r} of the input stays as it is; the position of each row, from 0, is {OTHER_ROW!r}")
    if frame.schema.get("id", pl.String) not in (*_TEXTS, pl.Null):
        warn("the column 'id' of the input is 'odds_id' in results, as text; their 'id' is that of the opportunity")


def check_rows(
    frame: pl.DataFrame,
    columns: Columns | None = None,
    position: pl.Series | None = None,
    first_line: int | None = None,
    *,
    quotes: bool = False,
) -> OddsTable:
    """Validate a polars frame as `check_odds` does.

    `position` is that of each row in the input, where it is not in order; `first_line` the line of position 0 in a
    file, for errors. `quotes` are a batch for a live board, whose other rows are wanted even if one can be read in two
    ways: that one is rejected, and times without a zone are UTC.
    """
    given = frame.columns
    read = read_columns(frame, columns, position, first_line)
    words, position = read.words, read.position
    by_name = _by_name(given, read)
    frame = _positioned(_complete(read.frame, frame), position)
    if not quotes:
        _refuse_merged(frame, words, by_name=by_name)
        _refuse_swapped(frame, words)
        _refuse_segments(frame, words)
    frame = frame.with_columns(on_calendar(frame[name]) for name in frame.columns if name in _TIMES)
    faults = _Faults(frame, words)
    frame = _bounded(frame, faults)
    frame = _cast(frame, faults, quotes=quotes)
    if (ids := _game_ids(frame.columns, by_name=by_name)) is not None:
        frame = frame.with_columns(ids)
    table = _filled(frame)
    faults.add_missing(table)
    faults.add_prices(table)
    if not faults.found:
        return OddsTable(_priced(table), faults.table())
    return OddsTable(
        _priced(table.filter(~faults.bad)), faults.table(), _priced(table.filter(faults.unpriced).drop_nulls(_REQUIRED))
    )


class Reading(NamedTuple):
    """A table with the names of `ODDS_SCHEMA`, and how its columns were read."""

    frame: pl.DataFrame
    words: Words
    position: pl.Series | None  # of each row in the input; None: in order, or rows are prices
    taken: Mapping[str, str]  # what columns of another shape were taken for, by their names as given
    games: Collection[str]  # columns as given that have the teams of games


def read_columns(
    frame: pl.DataFrame,
    columns: Columns | None = None,
    position: pl.Series | None = None,
    first_line: int | None = None,
) -> Reading:
    """Name the columns of a table, turn one of another shape, and read what names of games and selections say.

    The parameters are those of `check_rows`.

    Raises
    ------
    OddsError
        If the table can be read in several ways.
    """
    given = frame.columns
    frame = named(frame, columns, first_line=first_line, position=position)
    shown = frame.get_column("sportsbook_name", default=None)
    if "sportsbook" not in frame.columns and shown is not None and shown.null_count() < frame.height:
        frame = frame.rename({"sportsbook_name": "sportsbook"})
    words = Words(dict(zip(frame.columns, [*given, *added(columns)], strict=True)), first_line, position)
    _refuse_copies(words)
    reshaped = None if is_long(frame.columns) else _reshaped(frame, words)
    if reshaped is not None:
        frame, position = reshaped.frame, position if reshaped.rows else None
    before = {*frame.columns}
    frame = with_lines(with_teams(frame))
    games = [] if before >= _TEAMS else game_names(before)
    if reshaped is not None and not reshaped.rows:
        frame = _with_selected_teams(frame)
    return Reading(frame, words, position, {} if reshaped is None else reshaped.taken, [words(name) for name in games])


def _reshaped(frame: pl.DataFrame, words: Words) -> Long | None:
    """Turn a table of another shape into one with a row per price; None if it has one, or no shape that is known."""
    try:
        reshaped = long_form(frame, words)
        if reshaped is None:
            return None
        long, called, rows = reshaped.frame, [words(ANY_FORMAT)], words.position
        if SOURCE_ROW in long.columns:
            if words.position is not None:
                long = long.with_columns(words.position.gather(long[SOURCE_ROW]).alias(SOURCE_ROW))
            called = long[SOURCE_COLUMN].unique(maintain_order=True).to_list()
            rows = long[SOURCE_ROW]
        if ANY_FORMAT in long.columns:
            long = long.rename({ANY_FORMAT: price_format(long.lazy(), ANY_FORMAT, rows, words.first_line, called)})
    except ValueError as error:
        raise OddsError(str(error)) from None
    return reshaped._replace(frame=long)


_COPY = re.compile(r"^(.+?)(?:_duplicated_\d+|\.\d+)$")


def _refuse_copies(words: Words) -> None:
    """Raise if two columns had one name, which polars and pandas have numbered as they read a file."""
    used = {theirs: name for name, theirs in words.names.items()}
    for theirs in used:
        match = _COPY.match(theirs)
        if match and (used.get(match[1], "") in (*ODDS_SCHEMA, ANY_FORMAT)):
            raise OddsError(
                f"{theirs!r} is a second column {match[1]!r}, and only one can be {used[match[1]]}: leave one out with "
                f"frame.drop({[theirs]})"
            )


def _with_selected_teams(frame: pl.DataFrame) -> pl.DataFrame:
    """Name the teams of outcomes, instead of home and away, in a table that had a column for each."""
    if not {*_TEAMS, "selection_type"} <= {*frame.columns}:
        return frame
    made = pl.col("selection")
    for side in ("home", "away"):
        team = pl.col(f"{side}_team").cast(pl.String)
        made = pl.when(pl.col("selection_type") == side, team.is_not_null()).then(team).otherwise(made)
    return frame.with_columns(selection=made)


def is_long(names: Collection[str]) -> bool:
    """Whether a table has a column for each part of a price: book, market, selection, and the price itself."""
    return {"sportsbook", "market_type", "selection"} <= {*names} and not {*_PRICES}.isdisjoint(names)


def _refuse_merged(frame: pl.DataFrame, words: Words, *, by_name: bool) -> None:
    """Raise if a column that tells games apart has a value in the first row of each group only.

    If the table has ids of its own, they alone do.
    """
    others = ("home_team", "event_start_time", *days(frame.columns))
    for name in ("event_id", *(others if by_name else ())):
        if name not in frame.columns or frame.height < 2:
            continue
        if name == "home_team" and ("away_team" not in frame.columns or frame["away_team"][0] is None):
            continue
        empty = frame[name].null_count()
        if empty and 2 * empty >= frame.height > empty and frame[name][0] is not None:
            both = frame.select("home_team", "away_team").null_count().row(0) if name == "home_team" else (0, 0)
            if both[0] != both[1]:
                continue
            at = int(frame[name].is_null().arg_max() or 0)
            raise OddsError(
                f"column {words(name)!r} is empty in {words.place(at)} and in half of the rows or more: if its cells "
                f"are those of groups, fill them with frame.with_columns(pl.col({words(name)!r}).forward_fill())"
            )


def _refuse_segments(frame: pl.DataFrame, words: Words) -> None:
    """Raise if a column may say which part of the game a price is for."""
    for name in frame.columns:
        if "market_segment" not in frame.columns and plain(name) in _SEGMENTS and frame[name].n_unique() > 1:
            called = words(name)
            raise OddsError(
                f"column {called!r} can be the part of the game that a price is for: say so with "
                f"columns={{{called!r}: 'market_segment'}}, or leave it out with frame.drop({[called]})"
            )


def _refuse_swapped(frame: pl.DataFrame, words: Words) -> None:
    """Raise if the name of a game and the columns of teams disagree about who is at home."""
    name = game_name(frame.columns, words.names)
    if name is None or not {*_TEAMS} <= {*frame.columns} or name not in words.names or frame.schema[name] not in _TEXTS:
        return
    if not {*_TEAMS} <= {*words.names}:
        return  # the teams are from the name
    games = frame.select(name, "home_team", "away_team").unique(maintain_order=True).drop_nulls().cast(pl.String)
    games = games.filter(pl.col(name).str.contains("@", literal=True))
    for text, home, away in games.iter_rows():
        if teams_of(text) == (away, home):
            raise OddsError(
                f"{text!r} in column {words(name)!r} has {away!r} at home, and column {words('home_team')!r} has "
                f"{home!r}: leave one out with frame.drop({[words(name)]})"
            )


def named(
    frame: _Frame,
    columns: Columns | None = None,
    schema: Collection[str] = ODDS_SCHEMA,
    kind: str = "an odds table",
    *,
    position: pl.Series | None = None,
    first_line: int | None = None,
) -> _Frame:
    """Rename the columns of a table to those of a schema, as far as their names or the mapping say what they are.

    `position` and `first_line` are as in `check_rows`.

    Raises
    ------
    OddsError
        If a name of the mapping is wrong, or the format of the prices is unclear.
    """
    names: list[str] = frame.collect_schema().names()
    if not columns and all(name in schema or name in _OWN for name in names):
        return frame
    try:
        if more := added(columns):
            if twice := [name for name in more if name in names]:
                raise ValueError(f"the table has a column {twice[0]!r} already: it cannot be added")
            names = [*names, *more]
        new: dict[str, str] = renames(names, schema, columns, kind)
        if more:
            frame = _extended(frame, more)
        odds = [*(name for name, target in new.items() if target == ANY_FORMAT), *({ANY_FORMAT} & {*names} - {*new})]
        if odds and not {*_PRICES} & {*names, *new.values()}:
            price = odds[0]
            new[price] = price_format(frame.lazy(), price, position, first_line)
    except ValueError as error:
        raise OddsError(str(error)) from None
    return cast(_Frame, frame.rename(new))


def _extended(frame: _Frame, columns: Mapping[str, pl.Expr]) -> _Frame:
    try:
        frame = cast(_Frame, frame.with_columns(**columns))
        frame.collect_schema()  # of a query, too
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"columns cannot be added: {str(error).partition(chr(10))[0]}") from None
    return frame


def with_teams(frame: _Frame) -> _Frame:
    """Add the teams of games that a table names, such as `Celtics @ Lakers`, if it has no columns for them."""
    schema = frame.collect_schema()
    teams = teams_of_names([name for name, dtype in schema.items() if dtype in _TEXTS or name in _TEAMS])
    return frame if teams is None else cast(_Frame, frame.with_columns(teams))


def _by_name(given: Collection[str], read: Reading) -> bool:
    """Whether the ids of events may be names of games: the table has no teams, or no `event_id` as it was given."""
    return bool(read.games) or "event_id" not in given or not _TEAMS & set(read.frame.columns)


def _game_ids(names: Collection[str], *, by_name: bool) -> pl.Expr | None:
    """Return an expression for the ids of events that have none, or that are names of games; None if ids stay."""
    if "event_id" not in names:
        return event_ids(names)
    return ids_by_day(names) if by_name else None


def with_games(given: _Frame, columns: Columns | None = None, *, reshape: bool = True) -> _Frame:
    """Rename columns as `named`, add teams, and give games ids that have none, or one name where teams meet again.

    `check_rows` does the same. `reshape`: tables of another shape are reshaped into one with a row per price.
    """
    frame = named(given, columns)
    names = frame.collect_schema().names()
    by_name = not _TEAMS & set(names) or "event_id" not in given.collect_schema().names()
    if is_long(names) or not reshape:
        frame = with_teams(frame)
    else:
        long = read_columns(given.lazy().collect(), columns).frame
        frame = cast(_Frame, long.lazy() if isinstance(given, pl.LazyFrame) else long)
    schema, start = frame.collect_schema(), "event_start_time"
    if (ids := _game_ids(schema.names(), by_name=by_name)) is None:
        return frame
    if schema.get(start, TIME) == TIME:
        return cast(_Frame, frame.with_columns(ids))

    def read(given: pl.Series) -> pl.Series:
        given = on_calendar(given)
        return CASTS[pl.Datetime][0](given.cast(pl.String) if given.dtype in _TEXTS else given)

    as_given, time = pl.col(start).alias(_GIVEN), pl.col(start).map_batches(read, return_dtype=TIME)
    return cast(
        _Frame,
        frame.with_columns(as_given, time).with_columns(ids).with_columns(pl.col(_GIVEN).alias(start)).drop(_GIVEN),
    )


def _positioned(frame: pl.DataFrame, position: pl.Series | None) -> pl.DataFrame:
    """Add the position of each row, unless the frame has it from an earlier check."""
    came = frame.columns
    name = row_column(came)
    if "price_mismatch" in came and name in came:
        if position is None and frame.schema[name] == pl.UInt32:
            column = frame[name]
            if not column.null_count() and not column.is_duplicated().any():
                return frame
    else:
        name = ROW
        if ROW in came:
            name = OTHER_ROW
    if position is None:
        position = pl.Series(np.arange(frame.height, dtype=np.uint32))
    return frame.drop(name, OTHER_ROW, strict=False).hstack([position.alias(name)])


def _complete(frame: pl.DataFrame, as_given: pl.DataFrame) -> pl.DataFrame:
    """Raise if a required column is missing."""
    if "odds_probability" in frame.columns:
        frame = frame.drop("odds_probability")  # rounded by its source; derived again from the price
    missing = missing_of(frame.columns)
    if missing:
        given = as_given.columns
        here = ", ".join([shortened(name) for name in given if name not in _OWN][:40]) or "none"
        raise OddsError(
            f"not an odds table: it has no {', no '.join(missing)} (its columns: {here}); {_cure(as_given, missing)}"
            f"{unpivot(given)}"
        )
    return frame


def missing_of(names: Collection[str]) -> list[str]:
    """Return the required columns that a table does not have."""
    missing = [name for name in _REQUIRED if name not in names]
    if "event_id" in missing and event_ids(names) is not None:
        missing.remove("event_id")
    return [*missing, *([] if {*_PRICES} & {*names} else [" or ".join(_PRICES)])]


def _cure(frame: pl.DataFrame, missing: list[str]) -> str:
    """Say what makes a table one of odds."""
    at = header_row(frame)
    if at is not None:
        return f"its row {at} is a header: frame.rename(dict(zip(frame.columns, map(str, frame.row({at})))))[{at + 1}:]"
    first = missing[0].partition(" ")[0]
    advice = f"a column of another name is given as columns={{its name: {first!r}}}"
    if len(missing) == 1 and first in _IN_COMMON:
        advice += f", and what all rows have in common as columns={{{first!r}: pl.lit({_IN_COMMON[first]!r})}}"
    return advice


_IN_COMMON = {"sportsbook": "BOOK", "market_type": "moneyline"}


def _bounded(frame: pl.DataFrame, faults: "_Faults") -> pl.DataFrame:
    """Remove texts that are too long before they are parsed."""
    cut = []
    schema = frame.schema
    texts = [name for name in ODDS_SCHEMA if name in schema and schema[name] in _TEXTS]
    longest = frame.select(pl.col(texts).cast(pl.String).str.len_bytes().max()).row(0) if texts else ()
    for name, most in zip(texts, longest, strict=True):
        if (most or 0) > MOST_CHARACTERS:
            given = frame[name].cast(pl.String)
            long = (given.str.len_chars() > MOST_CHARACTERS).fill_null(False)  # noqa: FBT003
            if long.any():
                faults.add(long, name, _LONG, "bad_value", named=False)
                cut.append(pl.when(~long).then(given).alias(name))
    return frame.with_columns(cut) if cut else frame


def _cast(frame: pl.DataFrame, faults: "_Faults", *, quotes: bool) -> pl.DataFrame:
    """Cast columns with another dtype, recording invalid values."""
    read = []
    came = frame.schema
    if came.get("odds_decimal") == pl.String:
        faults.add(frame["odds_decimal"].str.contains(r"^\s*\+"), "odds_decimal", _AMERICAN, "bad_price")
    for name, dtype in ODDS_SCHEMA.items():
        if name not in came or came[name] == dtype:
            continue
        given = frame[name]
        if not readable(given.dtype, dtype):
            raise OddsError(f"not an odds table: column {name} has the type {given.dtype}, expected {dtype}")
        if given.dtype in _TEXTS:
            given = given.cast(pl.String)
        cast, reason = CASTS[type(dtype)]
        made = cast(given).alias(name)
        if name in _TIMES and given.dtype == pl.String:
            made = made if quotes else _with_days(given, made, faults.words(name))
        lost = made.is_null() & given.is_not_null()
        if lost.any():
            faults.add(lost & ~is_empty(given), name, PRICE_REASONS.get(name, reason), "bad_value")
        read.append(made)
    frame = frame.with_columns(read) if read else frame
    own = [name for name in DEPTH_SCHEMA if name in came]
    return frame.with_columns(_own_terms(frame[name], faults) for name in own) if own else frame


def _with_days(given: pl.Series, made: pl.Series, called: str) -> pl.Series:
    """Read texts that are no times as days of other orders, such as 08.02.2026.

    Raises if the order, or the zone of some times, is not clear.
    """
    if not given.str.ends_with("Z").all() and (two := mixed_zones(given)) is not None:
        raise OddsError(
            f"column {called!r} has times with a zone, such as {two[0]!r}, and without, such as {two[1]!r}: write all "
            "of them with their zones"
        )
    lost = given.filter(made.is_null() & given.is_not_null()).unique(maintain_order=True)
    if lost.is_empty():
        return made
    try:
        read = ordered_days(lost)
    except ValueError as error:
        how = "%d/%m/%Y %H:%M" if ":" in str(error) else "%d/%m/%Y"
        raise OddsError(
            f"column {called!r}: {error}; say which part is the day with frame.with_columns(pl.col({called!r})."
            f"str.to_datetime({how!r})), or '%m/%d/%Y' for the month first"
        ) from None
    times = CASTS[pl.Datetime][0](read)
    return made.fill_null(given.replace_strict(lost, times, default=None, return_dtype=TIME))


def _own_terms(given: pl.Series, faults: "_Faults") -> pl.Series:
    """Cast one of the columns `DEPTH_SCHEMA`, recording invalid values."""
    name = given.name
    if name == LEVELS:
        levels, bad = read_levels(given)
        faults.add(bad, name, BAD_LEVELS, "bad_value")
        return levels
    if not readable(given.dtype, DEPTH_SCHEMA[name]):
        raise OddsError(f"not an odds table: column {name} has the type {given.dtype}, expected Float64")
    made = CASTS[pl.Float64][0](given).fill_nan(None).alias(name)
    lost = made.is_null() & given.is_not_null() & ~is_empty(given)
    faults.add(lost | bad_numbers(name, made), name, BAD_NUMBERS[name], "bad_value")
    return made


def _american(table: pl.DataFrame) -> pl.Series:
    """Flag decimal prices that are American: a negative price implies it for its book's whole prices, too."""
    decimal, book = pl.col("odds_decimal"), pl.col("sportsbook")
    negative = (decimal <= -100.0) & decimal.is_finite()
    whole = (decimal >= 100.0) & decimal.is_finite() & (decimal == decimal.round())
    same = negative.any().over(book) | ~((decimal > 1.0) & (decimal < 100.0)).any()
    return table.select(negative | (whole & same)).to_series()


def _filled(frame: pl.DataFrame) -> pl.DataFrame:
    """Add missing columns, fill in defaults, and order the columns."""
    came = set(frame.columns)
    position = row_column(came)
    extra = [name for name in frame.columns if name not in ODDS_SCHEMA and name not in (position, "price_mismatch")]
    columns = []
    for name in ODDS_SCHEMA:
        if name not in came:
            columns.append(_MISSING[name].new_from_index(0, frame.height))
            continue
        column = frame.get_column(name)
        if name in _DEFAULTS and column.null_count():
            column = column.fill_null(_DEFAULTS[name])
        elif column.dtype == pl.Float64 and math.isnan(column.sum()):
            column = column.fill_nan(None)
        if name == "max_bet" and (column < 0.0).any():  # some sources mean "unknown" by -1
            column = column.set(column < 0.0, None)
        columns.append(column)
    return pl.DataFrame([*columns, *(frame.get_column(name) for name in (*extra, position))])


def _numbers(column: pl.Series) -> Floats:
    """A column of numbers; nan for null."""
    return cast("Floats", column.to_numpy())


def decimal_prices(decimal: Floats, american: Floats) -> tuple[Floats, Bools]:
    """Decimal prices, derived from the American ones where missing, and where the two are different prices."""
    if np.isnan(american).all():
        return decimal, np.zeros(decimal.size, bool)
    with np.errstate(all="ignore"):
        made = american_to_decimal(american)
        far = np.abs(made / decimal - 1.0) > thresholds().price_mismatch + thresholds().epsilon
        return np.where(np.isnan(decimal), made, decimal), far | (np.abs(american) < 100.0)


def _priced(table: pl.DataFrame) -> pl.DataFrame:
    """Derive missing formats of the price and the probability; flag prices that differ."""
    american = even_money(_numbers(table["odds_american"]))
    decimal, mismatch = decimal_prices(_numbers(table["odds_decimal"]), american)
    with np.errstate(all="ignore"):
        if table["odds_american"].null_count():
            signed = (decimal <= -100.0).any()  # an unpriced row; then whole prices may be American, too
            valid = (decimal > 1.0) & ~(signed & (decimal >= 100.0) & (decimal == np.round(decimal)))
            american = np.where(np.isnan(american), decimal_to_american(np.where(valid, decimal, np.nan)), american)
        prices = {"odds_decimal": decimal, "odds_american": american, "odds_probability": 1.0 / decimal}
    made_ = {name: pl.Series(name, column, nan_to_null=True) for name, column in prices.items()}
    columns = [made_.get(column.name, column) for column in table.get_columns()]
    return pl.DataFrame([*columns, pl.Series("price_mismatch", mismatch)])


def _beyond(column: pl.Series, least: float, most: float = math.inf) -> bool:
    """Whether any number is outside a range."""
    low, high = cast(float | None, column.min()), cast(float, column.max())
    return low is not None and not (least <= low and high <= most)


def _shown(values: pl.Series) -> pl.Series:
    """Values as text for the report."""
    if values.dtype.is_nested():
        return pl.Series(values.name, [str(value) for value in values.to_list()], dtype=pl.String)
    return values.cast(pl.String, strict=False)


class _Faults:
    """The invalid rows of a frame; the first fault of a row counts."""

    def __init__(self, frame: pl.DataFrame, words: Words) -> None:
        self.words = words
        self._frame = frame
        self._row = row_column(frame.columns)
        self._parts: list[pl.DataFrame] = []
        self.bad = pl.Series([False]).new_from_index(0, frame.height)
        self.unpriced = self.bad  # invalid, but with all required names

    @property
    def found(self) -> bool:
        """Whether any row is invalid."""
        return bool(self._parts)

    def add(self, mask: pl.Series, field: str, reason: str, guard: str, *, named: bool = True) -> None:
        """Record a fault where the mask is true; `named`: the required names are valid."""
        mask = mask.fill_null(False) & ~self.bad  # noqa: FBT003
        if not mask.any():
            return
        rows = self._frame.filter(mask)
        value = _shown(rows[field]) if field in rows.columns else None
        self._parts.append(
            pl.DataFrame({ROW: rows[self._row]})
            .with_columns(
                field=pl.lit(field),
                value=pl.lit("") if value is None else value.str.slice(0, _SHOWN).fill_null(""),
                reason=pl.lit(reason),
                guard=pl.lit(guard),
            )
            .cast(BAD_ROW_SCHEMA)  # type: ignore[arg-type]
        )
        self.bad = self.bad | mask
        if named and guard != "missing_value":
            self.unpriced = self.unpriced | mask

    def add_missing(self, table: pl.DataFrame) -> None:
        """Record rows without a required name, and lines that are not numbers."""
        for name in _REQUIRED:
            column = table.get_column(name)
            empty = column == ""
            if column.null_count() or empty.any():
                self.add(column.is_null() | empty, name, "nothing given", "missing_value")
        line = table["line"]
        if _beyond(line, -_FINITE, _FINITE):
            self.add(line.is_infinite(), "line", "not a finite number", "bad_value")

    def add_prices(self, table: pl.DataFrame) -> None:
        """Record rows without a finite price above 1."""
        decimal = table["odds_decimal"]
        if _beyond(decimal, np.nextafter(-100.0, 0.0)):
            self.add(_american(table), "odds_decimal", _AMERICAN, "bad_price")
        if _beyond(decimal, np.nextafter(1.0, 2.0), MOST_DECIMAL):
            low = (decimal <= 1.0) | (decimal > MOST_DECIMAL)
            self.add(low, "odds_decimal", "not a finite price above 1", "bad_price")
        american = table["odds_american"]
        if _beyond(american, -_FINITE, _FINITE):
            self.add(american.is_infinite(), "odds_american", _NO_AMERICAN, "bad_price")
        if not decimal.null_count():
            return
        none = decimal.is_null() & american.is_null()
        field = "odds_decimal" if "odds_decimal" in self._frame.columns else "odds_american"
        self.add(none, field, "no price given", "bad_price")
        made = pl.Series(american_to_decimal(_numbers(american)), nan_to_null=True)
        near = decimal.is_null() & ((made <= 1.0) | (made > MOST_DECIMAL) | made.is_null())
        self.add(near, "odds_american", _NO_AMERICAN, "bad_price")

    def table(self) -> pl.DataFrame:
        """Return the faults as a table."""
        faults = pl.concat(self._parts).sort(ROW) if self._parts else NONE_REJECTED
        if self._parts and SOURCE_ROW in self._frame.columns:
            faults = self._of_source(faults)
        elif self._parts:
            faults = faults.with_columns(pl.col("field").replace(self.words.names))
        return faults if self._row == ROW else faults.rename({ROW: self._row})

    def _of_source(self, faults: pl.DataFrame) -> pl.DataFrame:
        """Name the column and the row of the table from which an invalid price is."""
        of = self._frame.select(pl.col(self._row).alias(ROW), SOURCE_ROW, SOURCE_COLUMN)
        faults = faults.join(of, on=ROW, how="left", maintain_order="left")
        places = [place(row, self.words.first_line) for row in faults[SOURCE_ROW]]
        return faults.with_columns(
            field=pl.when(pl.col("field").is_in(_PRICES))
            .then(SOURCE_COLUMN)
            .otherwise(pl.col("field").replace(self.words.names)),
            reason=pl.col("reason") + "; " + pl.Series(places, dtype=pl.String),
        ).select(*BAD_ROW_SCHEMA)
