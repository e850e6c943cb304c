"""Rounding and formatting of numbers and times; nothing is rounded elsewhere.

`oddsengine.maths.rounding` has the digits. Times are RFC 3339 in UTC. Where people read American prices (messages, CSV
files, the page) they are whole, as books show them, as in `/v4`. Fields of rows that are encoded by columns say their
format by their type: `American`, `Precise`, `Time` or `BookId`.
"""
# mypy: allow-untyped-calls

import math
from datetime import datetime
from typing import Annotated

import numpy as np
from msgspec import Meta

from oddsengine.columns import Floats
from oddsengine.maths.odds import quoted_american, round_american
from oddsengine.maths.rounding import MONEY_DIGITS, PRECISE_DIGITS, USUAL_DIGITS, exact

Number = float | None
AMERICAN, PRECISE, TIME, BOOK = "american", "precise", "time", "book"
American = Annotated[float, Meta(extra={"format": AMERICAN})]
Precise = Annotated[float, Meta(extra={"format": PRECISE})]
Time = Annotated[str, Meta(extra={"format": TIME})]
BookId = Annotated[str, Meta(extra={"format": BOOK})]


def format_time(time: datetime | None) -> str | None:
    """Format a UTC time for a response.

    Examples
    --------
    >>> from datetime import UTC
    >>> format_time(datetime(2026, 2, 8, 18, 30, tzinfo=UTC))
    '2026-02-08T18:30:00.000000Z'
    """
    return None if time is None else time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def rounded(value: Number, digits: int = USUAL_DIGITS) -> Number:
    """Round a number, or None; never returns -0.0."""
    return None if value is None else exact(value, digits)


def known(value: float, digits: int = USUAL_DIGITS) -> Number:
    """Round a number; None for nan."""
    return None if math.isnan(value) else exact(value, digits)


def percent(share: float) -> Number:
    """A fraction in percent; None for nan."""
    return known(100.0 * share)


def precise(value: float) -> float:
    """Round a decimal price or a probability."""
    return exact(value, PRECISE_DIGITS)


def money(value: float) -> float:
    """Round an amount."""
    return round(value, MONEY_DIGITS)


def rounded_array(column: Floats, form: str = "") -> Floats:
    """Round the numbers of a column by their format."""
    if form == AMERICAN:
        return round_american(column)
    return np.asarray(np.round(column, PRECISE_DIGITS if form == PRECISE else USUAL_DIGITS) + 0.0)


def rounded_column(column: Floats, form: str = "") -> list[float]:
    """`rounded_array` as a list."""
    out: list[float] = rounded_array(column, form).tolist()
    return out


def american(value: float) -> float:
    """Round an American price; -100 becomes +100."""
    return float(round_american(value))


def americans(odds: Floats, american: Floats) -> list[float]:
    """American prices: as given, else converted from the decimal price."""
    prices: list[float] = round_american(quoted_american(odds, american)).tolist()
    return prices


def whole_americans(odds: Floats, american: Floats) -> list[int]:
    """American prices as books show them.

    Examples
    --------
    >>> import numpy as np
    >>> whole_americans(np.array([1.46, 2.125, 1.996, 2.0]), np.array([np.nan, np.nan, np.nan, 104.5]))
    [-217, 112, 100, 104]
    """
    prices: list[int] = round_american(quoted_american(odds, american), 0).astype(int).tolist()
    return prices
