"""Names of the columns of a table of odds, in the words of its author: which column is which of `ODDS_SCHEMA`.

In order of precedence:

1. a name of the schema, exactly;
2. the caller's mapping of the table's names to those of the schema;
3. a name of the schema, or one of `SYNONYMS`, whatever its case, spaces, dots, hyphens and underscores: `Home Team` is
   `home_team`, `Bookmaker` is `sportsbook`. Two such columns for one name are an error, unless the table also has the
   name itself; then all others stay as they are.

**The format of a price.** `odds_decimal` and `odds_american` are what they say. A column named `odds` or `price`, or
mapped to `odds`, is read by its values:

    American      any price with a sign: +150, -110
    decimal       any price from 1 to 100 without one, or a fraction: 1.91, 10/11

Whole prices of 100 or more alone can be either, and a table with both is two tables: both are errors that name rows.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches

import polars as pl

from oddsengine.bounds import excerpt, shortened
from oddsengine.tables.casts import FRACTION, to_number

ANY_FORMAT = "odds"
"""The name of a price column whose format follows from its values."""

DECIMAL, AMERICAN = "odds_decimal", "odds_american"
SYNONYMS: dict[str, tuple[str, ...]] = {
    "sportsbook": ("book", "bookmaker", "bookie", "bookmaker_name"),
    "event_id": ("event", "game", "match", "fixture", "game_id", "match_id", "fixture_id"),
    "home_team": ("home",),
    "away_team": ("away",),
    "market_type": ("market", "bet_type", "market_name", "market_key"),
    "selection": ("outcome", "team", "runner", "pick", "bet_name", "outcome_name", "selection_name"),
    "line": ("handicap", "point", "points", "bet_points", "selection_points"),
    "event_start_time": ("start", "start_time", "kickoff", "commence_time", "start_date", "starts", "game_time"),
    "last_seen_at": ("timestamp", "last_update", "updated", "updated_at"),
    "player_name": ("player",),
    "odds_probability": ("probability",),
    DECIMAL: ("decimal_odds",),
    AMERICAN: ("american_odds",),
    ANY_FORMAT: ("price",),
    # Of models: see `oddsengine.detection.model_input`.
    "probability": ("prob",),
    # Of bets: see `oddsengine.backtesting.placed_bets`.
    "placed_at": ("placed", "date_placed", "time_placed", "bet_placed", "bet_date"),
    "event_date": ("date", "game_date", "match_date", "day"),
    "event_name": ("matchup",),
    "stake": ("wager", "risk", "bet_amount", "stake_amount"),
    "closing_odds": ("closing_line", "closing_price", "close_odds", "closing"),
    "result": ("bet_result", "settlement"),
}
"""Common names of columns, by the name in the schema."""

WIDE = (
    "home_odds", "draw_odds", "away_odds", "over_odds", "under_odds", "home_spread_odds", "away_spread_odds",
    "home_line", "away_line", "total_line",
)  # fmt: skip
"""What columns of a table with a column per outcome can be called, besides names of the schema."""

_SEPARATORS = re.compile(r"[\s_.\-]+")
Columns = Mapping[str, str | pl.Expr]
"""Names of a table's columns by what they are called there, and columns to add, such as `pl.lit("moneyline")`."""

_BETWEEN = ((r"(?i)\s+(?:@|at)\s+", -1), (r"(?i)\s+(?:vs?\.?|-|–)\s+", 1))
"""What stands between the teams in the name of a game, and whether the home team is before it (1) or after it (-1)."""
_UNIT = "\x1f"  # the separator of ASCII
_SHOWN = 40  # names of columns in an error
_SAME_GAME = timedelta(hours=12)  # between the starts of one game in time zones


def renames(
    names: Collection[str],
    schema: Collection[str],
    columns: Columns | None = None,
    kind: str = "an odds table",
) -> dict[str, str]:
    """Return the new names of the columns that are not named as in the schema.

    Parameters
    ----------
    names
        The columns of the table.
    schema
        The names to find.
    columns
        The caller's mapping of names of the table to names of the schema, or to `ANY_FORMAT`. Columns to add, which are
        named as in the schema, are among `names`.
    kind
        What the schema is of, for errors.

    Raises
    ------
    ValueError
        If the mapping has a name that the table or the schema does not have, or two columns would have one name.

    Examples
    --------
    >>> renames(["Bookmaker", "Bet", "Price"], ["sportsbook", "selection", "odds_decimal"], {"Bet": "selection"})
    {'Bet': 'selection', 'Bookmaker': 'sportsbook', 'Price': 'odds'}
    """
    made = renamed(columns)
    check_columns(columns or {}, schema, kind)
    for name in made:
        if name not in names:
            raise ValueError(f"the table has no column {name!r}{_near(name, names)} ({_listed(names)})")
    own = {name for name in names if name in schema and name not in made}
    for name, target in made.items():
        if target in own or (target == ANY_FORMAT and own & {DECIMAL, AMERICAN}):
            raise ValueError(f"column {name!r} cannot be {target}, which the table has already")
    taken = own | set(made.values())
    if taken & {DECIMAL, AMERICAN}:
        taken.add(ANY_FORMAT)
    found: dict[str, list[str]] = {}
    words = _words(schema)
    for name in names:
        target = words.get(_folded(name), name)
        if target not in taken and target != name and name not in made:
            found.setdefault(target, []).append(name)
    if ANY_FORMAT in found and ANY_FORMAT in names and ANY_FORMAT not in made:
        found[ANY_FORMAT].insert(0, ANY_FORMAT)
    if {DECIMAL, AMERICAN, ANY_FORMAT} & {*made.values()} or {DECIMAL, AMERICAN} & found.keys():
        found.pop(ANY_FORMAT, None)  # the format of the price is known
    for target, several in found.items():
        exact = [name for name in several if _folded(name) == _folded(target) and target != ANY_FORMAT]
        if len(several) > 1 and len(exact) != 1:
            raise ValueError(
                f"the columns {' and '.join(map(repr, several))} can each be {target}: choose one with "
                f"columns={{{several[0]!r}: {target!r}}}"
            )
        made[(exact or several)[0]] = target
    return made


def is_common(name: str) -> bool:
    """Whether a name is a common one of a column, such as `Stake`, which is also a book."""
    return _folded(name) in _words(SYNONYMS)


def renamed(columns: Columns | None) -> dict[str, str]:
    """Return the part of a mapping that renames columns."""
    return {name: target for name, target in _items(columns) if not isinstance(target, pl.Expr)}


def added(columns: Columns | None) -> dict[str, pl.Expr]:
    """Return the part of a mapping that adds columns."""
    return {name: expr for name, expr in _items(columns) if isinstance(expr, pl.Expr)}


def _items(columns: Columns | None) -> Iterable[tuple[str, str | pl.Expr]]:
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f"columns must map names of the table to names of the schema, got {excerpt(columns)}")
    return (columns or {}).items()


def check_columns(columns: Columns, schema: Collection[str], kind: str = "an odds table") -> None:
    """Raise `ValueError` if a mapping has names that are not in the schema, or one of them twice."""
    known = (*schema, ANY_FORMAT, *(WIDE if DECIMAL in schema else ()))
    owner: dict[str, str] = {}
    for name in added(columns):
        if name not in schema:
            near = _near(name, schema) or f"; allowed: {', '.join(schema)}"
            raise ValueError(f"a column {name!r} cannot be added: it is no column of {kind}{near}")
        owner[name] = name
    for name, target in renamed(columns).items():
        if not isinstance(name, str) or not isinstance(target, str):
            raise ValueError(
                f"columns must map names of the table to names of the schema, got {excerpt(name)}: {target!r}"
            )
        if target not in known:
            near = _near(target, known) or f"; allowed: {', '.join((*schema, ANY_FORMAT))}"
            raise ValueError(f"column {name!r} cannot be {target!r}, which is no column of {kind}{near}")
        if target in owner:
            raise ValueError(f"columns {owner[target]!r} and {name!r} cannot both be {target}")
        owner[target] = name


def price_format(
    prices: pl.LazyFrame,
    name: str,
    position: pl.Series | None = None,
    first_line: int | None = None,
    called: Sequence[str] = (),
) -> str:
    """Return `DECIMAL` or `AMERICAN` by the values of a price column.

    Parameters
    ----------
    prices
        The table.
    name
        The column.
    position
        That of each row in the input; None is in order, from 0.
    first_line
        The line of position 0 in a file; None if there are no lines.
    called
        The columns of the author's table whose prices these are; none: the column itself.

    Raises
    ------
    ValueError
        If the values are in both formats, could be in either, or are probabilities; the error names their lines, or
        rows from 0.

    Examples
    --------
    >>> [price_format(pl.LazyFrame({"Odds": prices}), "Odds") for prices in (["-110", "150"], [1.91, 2.0])]
    ['odds_american', 'odds_decimal']
    """
    of = list(called) or [name]
    which = f"column {of[0]!r}" if len(of) == 1 else f"the columns {', '.join(map(repr, of))}"
    dtype = prices.collect_schema()[name]
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Categorical, pl.Enum)):
        return DECIMAL  # the check refuses it
    row = pl.int_range(pl.len()) if position is None else pl.lit(position)
    rows = prices.select(value=pl.col(name), row=row)
    number = pl.col("value").cast(pl.Float64)
    plus, fraction, percent = pl.lit(False), pl.lit(False), pl.lit(False)  # noqa: FBT003
    if not dtype.is_numeric():  # prices repeat
        rows = rows.with_columns(pl.col("value").cast(pl.String).str.strip_chars())
        rows = rows.unique("value", keep="first", maintain_order=True)
        number = to_number(pl.col("value"))
        plus, fraction, percent = (
            pl.col("value").str.starts_with("+"),
            pl.col("value").str.contains(FRACTION),
            pl.col("value").str.ends_with("%"),
        )
    number = pl.when(number.is_finite()).then(number)
    signed = plus | (number <= -100.0)
    kinds = {
        "signed": signed,
        "decimal": (~signed & number.is_between(1.0, 100.0, closed="none")) | fraction,
        "either": ~signed & (number >= 100.0),
        "share": ((number > 0.0) & (number < 1.0)) | percent,
    }
    first = rows.select(pl.struct("value", "row").filter(kind).first().alias(key) for key, kind in kinds.items())
    found = first.collect()
    has = {key: found[key].item() for key in kinds}

    def example(key: str) -> str:
        return f"{has[key]['value']} in {place(has[key]['row'], first_line)}"

    if has["signed"] and has["decimal"]:
        raise ValueError(
            f"{which}: there are American odds ({example('signed')}) and decimal or fractional ones "
            f"({example('decimal')}): give them as two columns, {AMERICAN} and {DECIMAL}"
        )
    if has["either"] and not has["signed"] and not has["decimal"]:
        raise ValueError(
            f"{which} can have decimal or American odds, such as {example('either')}: say which with {_formatted(of)}"
        )
    if has["share"] and not has["signed"]:
        shown = str(has["share"]["value"])
        if has["decimal"] and "%" not in shown:
            raise ValueError(
                f"{which}: there are prices ({example('decimal')}) and numbers below 1 ({example('share')})"
            )
        raise ValueError(
            f"{which}: there are probabilities, such as {example('share')}, and decimal odds are their inverses: "
            f"{_inverse(of, shown)}"
        )
    return AMERICAN if has["signed"] else DECIMAL


def _formatted(names: Sequence[str]) -> str:
    """Code that says the format of prices."""
    if len(names) == 1:
        return f"columns={{{names[0]!r}: {AMERICAN!r}}} or {DECIMAL!r}"
    return f"frame.rename({{name: name + ' american' for name in {names}}}), or ' decimal'"


def _inverse(names: Sequence[str], example: str) -> str:
    """Code that makes decimal odds of probabilities."""
    number = (
        "100 / pl.col({}).str.strip_suffix('%').cast(float)" if example.endswith("%") else "1 / pl.col({}).cast(float)"
    )
    if len(names) == 1:
        return f"columns={{{DECIMAL!r}: {number.format(repr(names[0]))}}}"
    return f"frame.with_columns(({number.format('name')}).alias(name) for name in {names})"


def place(position: int, first_line: int | None = None) -> str:
    """Name a row of a frame by its position, from 0, or of a file by its line.

    Examples
    --------
    >>> place(3), place(3, first_line=2)
    ('row 3', 'line 5')
    """
    return f"row {position}" if first_line is None else f"line {first_line + position}"


def teams_of(text: str) -> tuple[str, str] | None:
    """Return home and away of the name of a game; None if it is not one of two teams.

    Examples
    --------
    >>> teams_of("Celtics @ Lakers"), teams_of("Arsenal v Chelsea"), teams_of("e1")
    (('Lakers', 'Celtics'), ('Arsenal', 'Chelsea'), None)
    """
    for pattern, order in _BETWEEN:
        parts = [part.strip() for part in re.split(pattern, text)]
        if len(parts) == 2 and all(parts):
            home, away = parts[::order]
            return home, away
    return None


def teams_of_names(names: Collection[str]) -> tuple[pl.Expr, pl.Expr] | None:
    """Return expressions for home and away of a table without columns of teams, from the names of its games.

    Those are in `event_name`, in a column with a common name of it or of `event_id`, such as `fixture`, or else in
    `event_id`, and are read as by `teams_of`; null if they are not of two teams. None if there is nothing to read, or a
    column of teams.
    """
    if {"home_team", "away_team"} & set(names):
        return None
    if not (texts := game_names(names)):
        return None
    home, away = zip(*(_teams_of(pl.col(name).cast(pl.String)) for name in texts), strict=True)
    return pl.coalesce(home).alias("home_team"), pl.coalesce(away).alias("away_team")


def game_names(names: Iterable[str]) -> list[str]:
    """Return the columns that can have names of games, best first."""
    names = list(names)
    folded = {_folded(name) for name in ("event_name", *SYNONYMS["event_name"], *SYNONYMS["event_id"])}
    return [*(name for name in names if _folded(name) in folded), *(["event_id"] if "event_id" in names else [])]


def _teams_of(text: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Expressions of `teams_of`."""
    home: pl.Expr = pl.lit(None, pl.String)
    away: pl.Expr = home
    for pattern, order in reversed(_BETWEEN):
        parts = text.str.replace_all(pattern, _UNIT).str.split(_UNIT)
        first, second = (parts.list.get(at, null_on_oob=True).str.strip_chars() for at in (0, 1)[::order])
        whole = (parts.list.len() == 2) & (first != "") & (second != "")
        home, away = pl.when(whole).then(first).otherwise(home), pl.when(whole).then(second).otherwise(away)
    return home, away


_SIDES = {"h": "home", "d": "draw", "x": "draw", "a": "away", "home": "home", "draw": "draw", "away": "away"}
_SIDE = "|".join(sorted(_SIDES, key=len, reverse=True))
_BOOK_AND_SIDE = re.compile(rf"^(.*?[^_ .-])[_ .-]?({_SIDE})$", re.IGNORECASE)
_OF_TEAMS = {"team", "name", "score", "goals", "points"}  # what a column of a side has that is no price
_SIDE_AND_PRICE = re.compile(
    r"^(home|draw|away)[_ .-]?(?:\w*(?:odds|price|decimal|american|ml|moneyline))$", re.IGNORECASE
)


def unpivot(names: Collection[str]) -> str:
    """Say how a wide table becomes one with a row per price; empty if it is none.

    It has a column for each outcome, and perhaps for each book: `b365h`, `b365d` and `b365a`, or `home_odds` and
    `away_odds`.

    Examples
    --------
    >>> unpivot(["home", "away", "line"])
    ''
    """
    books: dict[str, dict[str, str]] = {}
    words = _words(SYNONYMS)
    has = {words.get(_folded(name)) for name in names}
    if has & {DECIMAL, AMERICAN, ANY_FORMAT}:
        return ""
    for name in names:
        match = _BOOK_AND_SIDE.match(name)
        if match and match[1].casefold() not in _OF_TEAMS:
            books.setdefault(match[1].casefold(), {})[_SIDES[match[2].casefold()]] = name
    by_book = [name for sides in books.values() if {"home", "away"} <= set(sides) for name in sides.values()]
    columns = by_book or [name for name in names if _SIDE_AND_PRICE.match(name)]
    if len(columns) < 2:
        return ""
    side = rf"(?i)({_SIDE})$" if by_book else r"(?i)^(home|draw|away)"
    draws = any(_SIDES.get(re.search(side, name)[0].casefold()) == "draw" for name in columns)  # type: ignore[index]
    letters = {letter: word for letter, word in _SIDES.items() if len(letter) == 1}
    made = {
        "sportsbook": f'pl.col("column").str.replace("(?i)[_ .-]?({_SIDE})$", "")' if by_book else 'pl.lit("BOOK")',
        "selection": f'pl.col("column").str.extract({side!r}).str.to_lowercase().replace({letters})',
        "market_type": f'pl.lit("{"1x2" if draws else "moneyline"}")',
    }
    index = [name for name in names if name not in columns]
    return (
        f"; it is wide, with a column for each outcome, and long as frame.unpivot({columns}, index={index}, "
        f'variable_name="column", value_name="odds").with_columns('
        f"{', '.join(f'{name}={expr}' for name, expr in made.items() if name not in has)})"
    )


_NAMED = 3  # names of columns that a header has at least
_FIRST_ROWS = 20  # in which a header is looked for


def is_header(texts: Iterable[object]) -> bool:
    """Whether the cells of a row are names of columns: they are distinct texts, and several are known.

    Examples
    --------
    >>> is_header(["Book", "Match", "Odds", "Note"]), is_header(["Prices of today", None, None])
    (True, False)
    """
    given = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
    words = _words((*SYNONYMS, "league", "sport"))
    known = {words.get(_folded(text)) for text in given} - {None}
    return len({*given}) == len(given) and len(known) >= _NAMED


def header_row(frame: pl.DataFrame) -> int | None:
    """Return the first row of a frame that has names of columns, if its own names are none; else None."""
    if is_header(frame.columns):
        return None
    return next((at for at, row in enumerate(frame.head(_FIRST_ROWS).iter_rows()) if is_header(row)), None)


def days(names: Iterable[str]) -> list[str]:
    """Return the columns with the days of games."""
    return [name for name in names if _folded(name) in map(_folded, SYNONYMS["event_date"])]


def game_name(names: Iterable[str], called: Mapping[str, str]) -> str | None:
    """Return the column with the names of games, of a table with those of teams; `called` has the names as given."""
    folded = {_folded(name) for name in ("event_name", *SYNONYMS["event_name"], *SYNONYMS["event_id"])}
    return next((name for name in names if _folded(called.get(name, name)) in folded), None)


def event_ids(names: Iterable[str]) -> pl.Expr | None:
    """Return an expression for the event ids of a table without any: day, home and away team.

    The day is that of the start, or the text of a column `Date`; without both it is left out. None if the table does
    not have both teams.
    """
    names = list(names)
    if not {"home_team", "away_team"} <= set(names):
        return None
    dates = days(names)
    parts = [pl.col("home_team").cast(pl.String), pl.col("away_team").cast(pl.String)]
    if "event_start_time" in names:
        parts.insert(0, pl.col("event_start_time").dt.date().cast(pl.String))
    elif dates:
        parts.insert(0, pl.col(dates[0]).cast(pl.String))
    whole = pl.col("home_team").is_not_null() & pl.col("away_team").is_not_null()
    return pl.when(whole).then(pl.concat_str(parts, separator="/", ignore_nulls=True)).alias("event_id")


def ids_by_day(names: Collection[str]) -> pl.Expr | None:
    """Return an expression for the event ids of a table whose `event_id` is the name of a game, `Celtics @ Lakers`.

    Teams meet again: if the starts of one name lie more than `_SAME_GAME` apart, or its days differ where there is no
    start, each row has the id of its day and teams. Otherwise the name stays. None if the table does not say when.
    """
    made, dates = event_ids(names), days(names)
    if made is None or not (dates or "event_start_time" in names):
        return None
    when = pl.col("event_start_time" if "event_start_time" in names else dates[0])
    again = when.max() - when.min() > _SAME_GAME if "event_start_time" in names else when.n_unique() > 1
    event = pl.col("event_id").cast(pl.String)
    named = _teams_of(event)[0].is_not_null()
    return (
        pl.when(again.over("event_id") & when.is_not_null() & named).then(pl.coalesce(made, event)).otherwise(event)
    ).alias("event_id")


def _words(schema: Collection[str]) -> dict[str, str]:
    """Return the names of the schema and their synonyms, folded."""
    targets = (*schema, ANY_FORMAT)
    words = {_folded(name): target for target in targets for name in SYNONYMS.get(target, ())}
    return words | {_folded(target): target for target in targets}


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


def _near(name: str, names: Collection[str]) -> str:
    by_fold = {_folded(each): each for each in names}
    close = get_close_matches(_folded(name), by_fold, n=3)
    return f", did you mean {' or '.join(by_fold[each] for each in close)}?" if close else ""


def _listed(names: Collection[str]) -> str:
    return f"its columns: {', '.join([shortened(name) for name in names if name != 'row'][:_SHOWN]) or 'none'}"
