"""Lenient casts of columns to the dtypes of a table: numbers, flags, texts and times.

Each cast returns null for values it cannot parse; `is_empty` tells which of those were missing.
"""

from collections.abc import Callable

import polars as pl

TIME = pl.Datetime("us", "UTC")
FRACTION = r"^(\d+)\s*/\s*([1-9]\d*)$"
"""A fractional price, as a regular expression."""
_DECIMAL_COMMA = r"^([+-]?(?:\d+,(?:\d{1,2}|\d{4,})|0,\d+))$"  # before three digits, it can group thousands
_EVEN = ("even", "evens", "ev")


def to_number(text: pl.Expr) -> pl.Expr:
    """Parse numbers with a decimal point or comma; null for others, such as 1,234. A typographic minus is one."""
    text = text.str.replace("^−", "-")
    return (
        pl.when(text.str.contains(_DECIMAL_COMMA))
        .then(text.str.replace(",", ".", literal=True))
        .otherwise(text)
        .cast(pl.Float64, strict=False)
    )


def all_priced(column: pl.Series) -> bool:
    """Whether all values of a column can be prices, and some are.

    Examples
    --------
    >>> [all_priced(pl.Series(values)) for values in ([1.9, None], ["+120", "5/2"], [3, 1], ["Lakers"], [None])]
    [True, True, False, False, False]
    """
    values = _prices(column, distinct=True)
    return values is not None and values.len() > 0 and bool(_can_be_prices(values).all())


def mostly_priced(column: pl.Series) -> bool:
    """Whether most values of a column can be prices: some may be missing or wrong, and are rejected by row.

    Whole numbers alone are scores.

    Examples
    --------
    >>> [mostly_priced(pl.Series(values)) for values in (["1.9", "N/A", "2.1"], [1.9, 0.0], [2, 1, 3], ["Lakers"])]
    [True, True, False, False]
    """
    if all_priced(column):
        return True
    values = None if column.dtype.is_integer() else _prices(column)
    if values is None:
        return False
    whole = ((values % 1.0 == 0.0) & (values.abs() < 100.0)).fill_null(value=True)
    return 2 * int(_can_be_prices(values).sum()) >= values.len() > 0 and not bool(whole.all())


def _prices(column: pl.Series, *, distinct: bool = False) -> pl.Series | None:
    """The values of a column as decimal or American prices, null where one is none; None if it has no such values."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        text = column.str.strip_chars().unique() if distinct else column.str.strip_chars()
        text = text.filter(~is_empty(text) & (text != "-"))
        return text.rename("t").to_frame().select(_unusual("odds_decimal")).to_series()
    return column.drop_nulls().cast(pl.Float64).drop_nans() if column.dtype.is_numeric() else None


def _can_be_prices(values: pl.Series) -> pl.Series:
    return ((values > 1.0) | (values <= -100.0)).fill_null(value=False)


def is_number(column: pl.Series) -> bool:
    """Whether all values of a column are numbers, and there are some."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        text = column.str.strip_chars().unique()
        text = text.filter(~is_empty(text) & (text != "-")).str.replace("\u2212", "-", literal=True)
        return text.len() > 0 and not text.cast(pl.Float64, strict=False).has_nulls()
    return column.dtype.is_numeric() and column.null_count() < column.len()


def _number(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Boolean:
        return pl.Series(column.name, [None] * column.len(), dtype=pl.Float64)
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        number = text.cast(pl.Float64, strict=False)
        distinct = text.filter(number.is_null()).unique().drop_nulls()
        if distinct.is_empty():
            return number
        read = distinct.rename("t").to_frame().select(_unusual(column.name)).to_series()
        return number.fill_null(text.replace_strict(distinct, read, default=None, return_dtype=pl.Float64))
    return column.cast(pl.Float64)


def _unusual(name: str) -> pl.Expr:
    """Parse texts `t` that are not plain numbers: with a decimal comma, and the words and fractions of prices."""
    text = pl.col("t")
    even, number = text.str.to_lowercase().is_in(_EVEN), to_number(text)
    if name == "odds_american":
        return pl.when(even).then(100.0).otherwise(number)
    if name != "odds_decimal":
        return number
    parts = (text.str.extract(FRACTION, group).cast(pl.Float64) for group in (1, 2))
    return pl.when(even).then(2.0).otherwise(pl.coalesce(number, 1.0 + next(parts) / next(parts)))


def _flag(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        text = column.str.strip_chars().str.to_lowercase()
        return text.replace_strict(
            {"true": True, "1": True, "false": False, "0": False}, default=None, return_dtype=pl.Boolean
        )
    return column.cast(pl.Float64).replace_strict({1.0: True, 0.0: False}, default=None, return_dtype=pl.Boolean)


def _text(column: pl.Series) -> pl.Series:
    if not column.dtype.is_float():
        return column.cast(pl.String)
    # pandas converts integers with missing values to floats.
    whole = column.is_finite() & (column == column.round()) & (column.abs() < 1e15)
    number = pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String))
    return pl.select(number.otherwise(column.fill_nan(None).cast(pl.String)).alias(column.name)).to_series()


_PLAIN = "%Y-%m-%dT%H:%M:%S%.fZ"
_ISO = (
    r"^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d(?:[.,]\d+)?))?)?"
    r"(?: ?(?:[Zz]|UTC|([+-])([01]\d|2[0-3]):?([0-5]\d)?))?$"
)
# The unit of Unix times follows from their size: all are between 1973 and 5138.
_UNIX = ((1e8, 1e11, 1e6), (1e11, 1e14, 1e3), (1e14, 1e17, 1.0), (1e17, 1e20, 1e-3))


def _unix(name: str) -> pl.Expr:
    """Convert a Unix time in any unit to microseconds."""
    value = pl.col(name)
    read = pl.lit(None, dtype=pl.Float64)
    for low, high, factor in _UNIX:
        read = pl.when((value >= low) & (value < high)).then(value * factor).otherwise(read)
    return read.round().cast(pl.Int64).cast(TIME)


def _iso(column: pl.Series) -> pl.Series:
    """Parse ISO 8601 in its usual forms."""
    part = column.rename("t").to_frame().select(pl.col("t").str.extract_groups(_ISO)).unnest("t")
    names = ("day", "minute", "second", "sign", "hours", "minutes")
    part = part.rename(dict(zip(part.columns, names, strict=True)))
    written = pl.format(
        "{}T{}:{}",
        "day",
        pl.col("minute").fill_null("00:00"),
        pl.col("second").fill_null("00").str.replace(",", ".", literal=True),
    )
    ahead = pl.duration(
        hours=pl.col("hours").cast(pl.Int64).fill_null(0),
        minutes=pl.col("minutes").cast(pl.Int64).fill_null(0),
    )
    local = written.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
    offset = pl.when(pl.col("sign") == "-").then(-ahead).otherwise(ahead)
    return part.select((local - offset).dt.replace_time_zone("UTC")).to_series()


_DMY = (
    r"^([0-9]{1,2})([./-])([0-9]{1,2})[./-]([0-9]{4}|[0-9]{2})"
    r"(?:[, ]+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]+)?) ?([AaPp][Mm])?)?$"
)


def ordered_days(column: pl.Series) -> pl.Series:
    """Write days such as 08.02.2026 and 2/13/2026, and times on them, as ISO 8601; other texts stay.

    With dots the day is first. With slashes or hyphens it is the part that exceeds 12 in some value.

    Raises
    ------
    ValueError
        If no value says which part is the day, or some say one and some the other.

    Examples
    --------
    >>> ordered_days(pl.Series(["08.02.2026 19:30", "2026-02-09"])).to_list()
    ['2026-02-08 19:30', '2026-02-09']
    >>> ordered_days(pl.Series(["2/8/2026 7:30 PM", "2/13/26"])).to_list()
    ['2026-02-08 19:30', '2026-02-13']
    """
    text = column.str.strip_chars()
    distinct = text.unique().drop_nulls()
    part = distinct.rename("t").to_frame().with_columns(pl.col("t").str.extract_groups(_DMY)).unnest("t")
    part.columns = ["first", "mark", "second", "year", "time", "half"]
    part = part.with_columns(pl.Series("text", distinct)).filter(pl.col("first").is_not_null())
    # In 26-02-13 the year may be the first.
    part = part.filter((pl.col("mark") != "-") | (pl.col("year").str.len_chars() == 4))
    if part.is_empty():
        return column
    part = part.with_columns(pl.col("first", "second").cast(pl.Int64))
    open_ = part.filter(pl.col("mark") != ".")
    days, months = bool((open_["first"] > 12).any()), bool((open_["second"] > 12).any())
    if open_.height and days == months:
        both = open_.filter(pl.col("second") > 12)["text"].head(1).to_list() if days else []
        first = next(text for text in column if text is not None and text.strip() in open_["text"].to_list())
        reason = f"has the day in another place than {both[0]!r}" if both else "can be two days"
        raise ValueError(f"{first!r} {reason}")
    day_first = (pl.col("mark") == ".") | days
    hour = pl.col("time").str.extract(r"^(\d+)").cast(pl.Int64)
    late = (
        pl.when(pl.col("half").is_null())
        .then(hour)
        .otherwise(hour % 12 + 12 * (pl.col("half").str.to_lowercase() == "pm"))
    )
    written = pl.format(
        "{}-{}-{}",
        pl.when(pl.col("year").str.len_chars() == 2).then("20" + pl.col("year")).otherwise("year"),
        pl.when(day_first).then("second").otherwise("first").cast(pl.String).str.zfill(2),
        pl.when(day_first).then("first").otherwise("second").cast(pl.String).str.zfill(2),
    )
    clock = pl.format("{} {}{}", written, late.cast(pl.String).str.zfill(2), pl.col("time").str.extract(r"^\d+(:.*)$"))
    made = part.select("text", iso=pl.when(pl.col("time").is_null()).then(written).otherwise(clock))
    return text.replace(made["text"], made["iso"])


_ZONED = r"(?:[Zz]|UTC|[+-]\d\d:?\d\d|[+-]\d\d)$"
_TIMED = r"\d[Tt ]\d\d:\d\d"


def mixed_zones(column: pl.Series) -> tuple[str, str] | None:
    """Return a time with a zone and one without if a column of text has both; None otherwise.

    Examples
    --------
    >>> mixed_zones(pl.Series(["2026-02-08T19:30:00Z", "2026-02-08 14:30", "2026-02-08"]))
    ('2026-02-08T19:30:00Z', '2026-02-08 14:30')
    """
    timed = column.filter(column.str.contains(_TIMED))
    zoned = timed.str.contains(_ZONED)
    if not zoned.any() or zoned.all():
        return None
    return timed.filter(zoned)[0], timed.filter(~zoned)[0]


def _time(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        plain = text.str.to_datetime(_PLAIN, time_unit="us", strict=False).dt.replace_time_zone("UTC")
        distinct = text.filter(plain.is_null()).unique().drop_nulls()
        if distinct.is_empty():
            return plain
        number = distinct.cast(pl.Float64, strict=False).rename("n").to_frame().select(_unix("n")).to_series()
        read = pl.select(pl.coalesce(number, _iso(distinct))).to_series()
        return plain.fill_null(text.replace_strict(distinct, read, default=None, return_dtype=TIME))
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if isinstance(column.dtype, pl.Datetime):
        if column.dtype.time_zone is None:
            return column.dt.replace_time_zone("UTC").cast(TIME)
        return column.dt.convert_time_zone("UTC").cast(TIME)
    return column.cast(pl.Float64).rename("n").to_frame().select(_unix("n")).to_series()


_EPOCH_DAYS = (-719_162, 2_932_896)  # of the first and last day of Python's calendar, years 1 to 9999
_UNITS = {"ms": 86_400_000, "us": 86_400_000_000}  # per day


def on_calendar(column: pl.Series) -> pl.Series:
    """Write a column of times as text if it has times outside the years 1 to 9999, which cannot be converted.

    Those become texts that are not times.
    """
    unit = column.dtype.time_unit if isinstance(column.dtype, pl.Datetime) else "days"
    if unit == "ns" or (unit == "days" and column.dtype != pl.Date):  # years 1677 to 2262; no times
        return column
    day, number = _UNITS.get(unit, 1), column.to_physical()
    valid = number.is_between(_EPOCH_DAYS[0] * day, (_EPOCH_DAYS[1] + 1) * day - 1)
    if valid.all():  # nulls aside
        return column
    near = _time(column.set(~valid.fill_null(value=True), None)).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    return near.fill_null(pl.select(pl.format(f"{{}} {unit} after 1970", number)).to_series()).alias(column.name)


CASTS: dict[type[pl.DataType], tuple[Callable[[pl.Series], pl.Series], str]] = {
    pl.String: (_text, "not text"),
    pl.Float64: (_number, "not a number: 6.5 and 6,5 are accepted"),
    pl.Boolean: (_flag, "not true or false"),
    pl.Datetime: (_time, "not a time: ISO 8601, such as 2026-11-26T18:00Z, and Unix times are accepted"),
}
"""By dtype: the cast, and why a value is rejected."""

PRICE_REASONS = {
    "odds_decimal": "not a price: 1.95, 1,95 and 10/11 are accepted",
    "odds_american": "not a price: +150 and -110 are accepted",
}
"""Why a value of a price column is rejected."""


def readable(given: pl.DataType, target: pl.DataType) -> bool:
    """Whether one dtype can be cast to another at all."""
    if given in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        return True
    if target == pl.String:
        return given.is_numeric() or given == pl.Boolean
    if isinstance(target, pl.Datetime):
        return given.is_numeric() or given == pl.Date or isinstance(given, pl.Datetime)
    return given.is_numeric() or given == pl.Boolean


def is_empty(column: pl.Series) -> pl.Series:
    """Flag missing values: null, empty text, NaN."""
    written = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return written.fill_null("").is_in(["", "nan", "null", "none"])
