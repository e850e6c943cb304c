"""Tables of other shapes, reshaped into one with a row per price.

A table whose columns do not have a book, a market, a selection and a price for each row may be

    sides         a row per game, book and line, with a column of prices per outcome: `home_odds`, `over_odds`, `X`
    markets       a row per team, with a column of prices per market: `ML`, `spread_odds` beside `spread`
    books         a row per outcome, with a column of prices per book
    rotation      two rows per game, visitor and home, with rotation numbers and a moneyline
    nested        a row per game, with a list of books and their prices per market, as OddsHarvester writes it
    picks         a row per price whose selection also says the market: `Lakers ML`, `Celtics +2.5`, `O 220.5`

Each is reshaped only if its columns leave one reading; otherwise the error names the columns in the table's own words,
and what to do. Reshaped rows have `source_row`, their row in the table from 0, and `source_column`.
"""

import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.tables.casts import all_priced, mostly_priced
from oddsengine.tables.column_names import ANY_FORMAT, is_common
from oddsengine.tables.nested import nested
from oddsengine.tables.shapes import (
    PRICES,
    SOURCE_COLUMN,
    SOURCE_ROW,
    SPREADS,
    TEXTS,
    Long,
    Words,
    as_given,
    line_number,
    numbered,
    plain,
    stacked,
)
from oddsengine.tables.sides import sides
from oddsengine.tables.wide_names import is_book

_NAMES = ("sportsbook", "market_type", "selection")
_TEAMS = ("home_team", "away_team")

_ELSEWHERE = (
    (
        {"menu_hint", "selection_name", "bsp"},
        "Betfair's starting prices of races, which have no market that is compared: oe.devig takes the prices of one",
    ),
    (
        {"full_description", "selection", "odds", "latest_taken"},
        "prices matched at Betfair: as an odds table without times, since their zone is not said, they are "
        "frame.select(sportsbook=pl.lit('betfair_exchange'), event_name=pl.col('FULL_DESCRIPTION').str.extract("
        "'([^/]+)$'), date='SCHEDULED_OFF', market_type='EVENT', selection='SELECTION', odds_decimal='ODDS')",
    ),
)
"""Formats that are recognised, and not read: some of their columns, and what to do."""


def long_form(frame: pl.DataFrame, words: Words) -> Long | None:
    """Turn a table whose columns have been named as far as possible; None if it has no shape that is known.

    Raises `ValueError` if it can be read in several ways.
    """
    given = {words(name).casefold() for name in frame.columns}
    for some, text in _ELSEWHERE:
        if some <= given:
            raise ValueError(f"the table has {text}")
    reshaped = None
    if own := [name for name in (SOURCE_ROW, SOURCE_COLUMN) if name in frame.columns]:
        raise ValueError(
            f"the column {own[0]!r} has the name of one that says where a price is from: rename it with "
            f"frame.rename({{{own[0]!r}: 'own_{own[0]}'}})"
        )
    for shape in (nested, _rotation, sides, _markets, _books):
        if (reshaped := shape(frame, words)) is not None:
            break
    if reshaped is None:
        return _picks(frame, words)
    more = _picks(reshaped.frame, words)
    return reshaped if more is None else Long(more.frame, reshaped.taken | more.taken, rows=False)


# ---- markets of a team ----


_MARKET_PRICES = {"moneyline": ("ml", "moneyline", "money line"), "spread": ("spread odds", "spread price")}


def _markets(frame: pl.DataFrame, words: Words) -> Long | None:
    if "selection" not in frame.columns or {"market_type", *PRICES} & set(frame.columns):
        return None
    by_plain = {plain(words(name)): name for name in frame.columns}
    found = {
        market: by_plain[name]
        for market, names in _MARKET_PRICES.items()
        for name in names
        if name in by_plain and mostly_priced(frame[by_plain[name]])
    }
    if not found:
        return None
    base, used = numbered(frame), set(found.values())
    line = next((by_plain[name] for name in SPREADS if name in by_plain and by_plain[name] not in used), None)
    if "spread" in found and line is None:
        raise ValueError(f"{words(found['spread'])!r} has odds of a spread, and no column has its line")
    used |= {line} if line is not None and "spread" in found else set()
    kept = [name for name in base.columns if name not in used and name != "line"]
    parts = [
        base.select(
            *kept,
            pl.lit(words(name)).alias(SOURCE_COLUMN),
            as_given(base, name).alias(ANY_FORMAT),
            market_type=pl.lit(market),
            line=line_number(line) if market == "spread" and line is not None else pl.lit(None, pl.Float64),
        )
        for market, name in found.items()
    ]
    taken = {words(name): f"odds of the {market}" for market, name in found.items()}
    if "spread" in found and line is not None:
        taken[words(line)] = "line of the spread"
    return Long(stacked(parts), taken, rows=False)


# ---- books ----


def _books(frame: pl.DataFrame, words: Words) -> Long | None:
    if "selection" not in frame.columns or {"sportsbook", *PRICES} & set(frame.columns):
        return None
    books = [
        name
        for name in frame.columns
        if is_book(words(name)) and not is_common(words(name)) and mostly_priced(frame[name])
    ]
    if not books:
        return None
    used = {*books, *_NAMES, *_TEAMS, "event_id", "line", "date", "event_start_time", "last_seen_at"}
    others = [name for name in frame.columns if name not in used and all_priced(frame[name])]
    derived = [name for name in others if plain(words(name)) in ("best", "max", "avg", "average", "mean", "consensus")]
    if unknown := [name for name in others if name not in derived and plain(words(name)) not in ("date", "time")]:
        raise ValueError(
            f"{words.listed(unknown)} can be odds of a book, which is not known from the name, or no odds: rename it "
            f"to one, such as BetMGM, or leave it out with frame.drop({[words(name) for name in unknown]})"
        )
    base = numbered(frame)
    kept = [name for name in base.columns if name not in books]
    parts = [
        base.select(
            *kept,
            pl.lit(words(name)).alias(SOURCE_COLUMN),
            as_given(base, name).alias(ANY_FORMAT),
            sportsbook=pl.lit(words(name)),
        )
        for name in books
    ]
    taken = {words(name): f"odds of {words(name)}" for name in books}
    taken |= {words(name): "not used: of several books" for name in derived}
    return Long(stacked(parts), taken, rows=False)


# ---- two rows a game ----


def _rotation(frame: pl.DataFrame, words: Words) -> Long | None:
    by_plain = {plain(words(name)): name for name in frame.columns}
    side, ml = by_plain.get("vh"), by_plain.get("ml")
    if side is None or ml is None or "rot" not in by_plain or "selection" not in frame.columns:
        return None
    if not {frame.schema[side], frame.schema["selection"]} <= {*TEXTS} or frame.schema[ml].is_nested():
        return None
    text = frame[side].cast(pl.String).str.strip_chars().str.to_uppercase()
    first, second = text.gather_every(2), text.gather_every(2, 1)
    neutral = text == "N"
    pairs = frame.height % 2 == 0 and bool((first.is_in(["V", "N"]) & second.is_in(["H", "N"])).all())
    if not pairs:
        at = int((~first.head(second.len()).is_in(["V", "N"]) | ~second.is_in(["H", "N"])).arg_max() or 0) * 2
        raise ValueError(f"two rows a game, V and then H, are expected, got {excerpt(text[at])} in {words.place(at)}")
    rot = frame[by_plain["rot"]].cast(pl.Float64, strict=False)
    apart = rot.gather_every(2, 1) - rot.gather_every(2)
    if (wrong := (apart != 1.0).fill_null(value=True)).any():
        at = int(wrong.arg_max() or 0) * 2
        raise ValueError(
            f"the two rows of a game have numbers that follow each other, and those from {words.place(at)} do not"
        )
    base = numbered(frame)
    of_game = pl.int_range(pl.len()) // 2
    away, home = pl.col("selection").first().over(of_game), pl.col("selection").last().over(of_game)
    long = base.with_columns(
        pl.lit(words(ml)).alias(SOURCE_COLUMN),
        pl.col(ml).alias(ANY_FORMAT),
        home_team=home,
        away_team=away,
        market_type=pl.lit("moneyline"),
        selection_type=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("away")).otherwise(pl.lit("home")),
    ).drop(ml)
    if neutral.any():
        long = long.with_columns(neutral_ground=neutral)
    taken = {words(ml): "odds of the moneyline", words(side): "visitor, then home, of a game"}
    taken |= {words(name): "not used: no odds" for key, name in by_plain.items() if key in ("open", "close", "2h")}
    return Long(stacked([long]), taken, rows=False)


# ---- picks ----


_ML = r"(?i)^(.*\S)\s+(?:ml|moneyline|money line)$"
ENDS_IN_LINE = r"^(?i:(over|under|o|u)\s*([0-9]+(?:\.[0-9]+)?)|(.*\S)\s+\(?([+-][0-9]+(?:\.[0-9]+)?)\)?)$"
"""A selection that ends in its line: a total in groups 1 and 2, the side and line of a spread in 3 and 4."""


_MOST_SPREAD = 100.0


def _picks(frame: pl.DataFrame, words: Words) -> Long | None:
    """Read markets from selections, if all of them say theirs."""
    if "market_type" in frame.columns or not {*PRICES} & set(frame.columns):
        return None
    if frame.schema.get("selection") not in TEXTS:
        return None
    distinct = frame.select(pl.col("selection").cast(pl.String).str.strip_chars()).unique().drop_nulls()
    pick = pl.col("selection")
    total, spread, side = (pick.str.extract(ENDS_IN_LINE, group) for group in (2, 4, 3))
    spread = pl.when(spread.cast(pl.Float64).abs() < _MOST_SPREAD).then(spread)  # -150 is a price
    team = pick.str.extract(_ML, 1)
    market = (
        pl.when(team.is_not_null()).then(pl.lit("moneyline"))
        .when(total.is_not_null()).then(pl.lit("total"))
        .when(spread.is_not_null()).then(pl.lit("spread"))
    )  # fmt: skip
    name = pl.when(spread.is_not_null()).then(side).otherwise(pl.coalesce(team, pick))
    read = distinct.select(pick, market_type=market, line=pl.coalesce(total, spread).cast(pl.Float64), name=name)
    sides = set(distinct["selection"].str.to_lowercase())
    if {"1", "x", "2"} <= sides | {"x"} and sides <= {"1", "x", "2"} and "x" in sides:
        return Long(frame.with_columns(market_type=pl.lit("1x2")), {words("selection"): "selection and 1x2"}, rows=True)
    if read.is_empty() or read["market_type"].null_count() == read.height:
        return None
    if read["market_type"].null_count():
        other = read.filter(pl.col("market_type").is_null())["selection"][0]
        raise ValueError(
            f"column {words('selection')!r} says the market of some selections, and not of {other!r}: add a column "
            "market_type"
        )
    if "line" in frame.columns and frame["line"].null_count() < frame.height:
        return None
    made = frame.drop("line", strict=False).with_columns(pl.col("selection").cast(pl.String).str.strip_chars())
    made = made.join(read, on="selection", how="left", maintain_order="left")
    made = made.with_columns(selection=pl.col("name")).drop("name")
    return Long(made, {words("selection"): "selection, market and line"}, rows=True)


def with_lines(frame: pl.DataFrame) -> pl.DataFrame:
    """Take lines from the ends of selections, such as `Over 220.5` and `Lakers -2.5`, of rows without a line."""
    if "selection" not in frame.columns or frame.schema["selection"] not in (pl.String, pl.Categorical, pl.Enum):
        return frame
    if "line" in frame.columns and not frame["line"].null_count():
        return frame
    distinct = frame.select(pl.col("selection").cast(pl.String)).unique().drop_nulls()
    total, spread = (pl.col("selection").str.strip_chars().str.extract(ENDS_IN_LINE, group) for group in (2, 4))
    number = spread.cast(pl.Float64)
    near = pl.when(number.abs() < _MOST_SPREAD).then(number)  # +120 is a price
    found = distinct.with_columns(made=pl.coalesce(total.cast(pl.Float64), near)).drop_nulls("made")
    if found.is_empty():
        return frame
    text = pl.col("selection").cast(pl.String)
    made = text.replace_strict(found["selection"], found["made"], default=None, return_dtype=pl.Float64)
    if "line" not in frame.columns:
        return frame.with_columns(line=made)
    line = pl.col("line").cast(pl.String).str.strip_chars().replace("", None)
    return frame.with_columns(line=pl.coalesce(line, made.cast(pl.String)))
