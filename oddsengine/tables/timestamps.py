"""Conversion of microseconds to RFC 3339 timestamps, many at once, and to and from datetimes; all in UTC."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from datetime import UTC, datetime
from typing import Any

import numpy as np

from oddsengine._jit import kernel
from oddsengine.columns import NO_TIME, SECOND, Longs

_MINUS, _COLON, _POINT, _ZERO, _T, _Z = b"-:.0TZ"


@kernel
def _write(micros, out):
    """Write times as 27 characters: 2026-02-08T18:00:00.000000Z.

    `micros` are microseconds since 1970; `out` (uint8, n by 27) is written.
    """
    for i in range(micros.size):
        days, micros_of_day = micros[i] // 86_400_000_000, micros[i] % 86_400_000_000
        # Days to a date by eras of 400 years that begin in March: H. Hinnant, "chrono-Compatible Low-Level Date
        # Algorithms", 2013, https://howardhinnant.github.io/date_algorithms.html
        z = days + 719_468
        era = z // 146_097
        day_of_era = z - era * 146_097
        year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
        day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
        month_from_march = (5 * day_of_year + 2) // 153
        month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
        parts = (
            year_of_era + era * 400 + (1 if month <= 2 else 0),
            month,
            day_of_year - (153 * month_from_march + 2) // 5 + 1,
        )
        ends, marks = (4, 7, 10), (_MINUS, _MINUS, _T)
        for k in range(3):
            _digits(out, i, ends[k], 4 if k == 0 else 2, parts[k])
            out[i, ends[k]] = marks[k]
        second = micros_of_day // SECOND
        _digits(out, i, 13, 2, second // 3600)
        _digits(out, i, 16, 2, second // 60 % 60)
        _digits(out, i, 19, 2, second % 60)
        _digits(out, i, 26, 6, micros_of_day % SECOND)
        out[i, 13] = _COLON
        out[i, 16] = _COLON
        out[i, 19] = _POINT
        out[i, 26] = _Z


@kernel
def _digits(out, row, end, count, number):
    """Write the digits of a number so that they end before a position.

    `row` of `out` is written; `count` is the number of digits, `end` the position and `number` the number.
    """
    for k in range(count):
        out[row, end - 1 - k] = _ZERO + number % 10
        number //= 10


def timestamps(micros: Longs) -> list[Any]:
    """Format times in microseconds; None for a missing time.

    Examples
    --------
    >>> timestamps(np.array([1_770_575_400_000_000, NO_TIME]))
    ['2026-02-08T18:30:00.000000Z', None]
    """
    texts = np.empty((micros.size, 27), np.uint32)
    _write(np.array(micros), texts)  # columns of frames are read-only, which would be another type
    text_list: list[Any] = texts.view("U27").ravel().tolist()
    if (micros == NO_TIME).any():
        text_list = [None if time == NO_TIME else text for text, time in zip(text_list, micros.tolist(), strict=True)]
    return text_list


def timestamp(micro: int) -> str | None:
    """Format one time, as `timestamps`."""
    return None if micro == NO_TIME else f"{np.datetime64(micro, 'us')}Z"


def time_of(micro: int) -> datetime | None:
    """Convert a time in microseconds to a datetime; None for a missing time."""
    if micro == NO_TIME:
        return None
    return datetime.fromtimestamp(micro // SECOND, UTC).replace(microsecond=micro % SECOND)


def aware(moment: datetime) -> datetime:
    """A time with its zone; one without is taken as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def micros(moment: datetime) -> int:
    """A time as integer microseconds UTC; one without a zone is taken as UTC."""
    delta = aware(moment) - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
