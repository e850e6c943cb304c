"""The fair-price constants in force at each time of a replay.

Constants fitted to a period must not be used within it. Dated constants are in force from their date to the next one; a
function is called once per day with the day's midnight (UTC) and may use data from before it.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from functools import cache

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.catalog import FairTable
from oddsengine.tables.timestamps import micros

Fair = FairTable | Mapping[date, FairTable] | Callable[[datetime], FairTable] | None
"""Fair-price constants: one table, tables by the date or time from which they are in force, or a function."""
_DAY = 86_400_000_000


def fair_by_time(fair: Fair = None) -> Callable[[int], FairTable]:
    """Return a function of a time in microseconds that returns the table in force; None is the packaged table.

    The function raises `ValueError` for a time before the first table.

    Examples
    --------
    >>> old, new = catalog.fair_table(), catalog.amended_fair_table({"own": {"weight": 1.2}})
    >>> in_force = fair_by_time({date(2026, 1, 1): old, date(2026, 2, 1): new})
    >>> [in_force(micros(datetime(2026, month, day))) is new for month, day in ((1, 31), (2, 1))]
    [False, True]
    """
    if fair is None or isinstance(fair, FairTable):
        table = fair or catalog.fair_table()
        return lambda _: table
    if isinstance(fair, Mapping):
        return _by_date(fair)
    if not callable(fair):
        raise TypeError(
            f"fair must be a FairTable, tables by date, or a function of a datetime, got {type(fair).__name__}"
        )
    of_day = cache(lambda day: _table(fair(datetime.fromtimestamp(day * 86_400, UTC))))  # engines compare by identity
    return lambda now: of_day(now // _DAY)


def _by_date(tables: Mapping[date, FairTable]) -> Callable[[int], FairTable]:
    dated = sorted((_since(key), _table(table)) for key, table in tables.items())
    if not dated:
        raise ValueError("fair must have at least one table, got an empty mapping")

    def at(now: int) -> FairTable:
        place = bisect_right(dated, now, key=lambda entry: entry[0]) - 1
        if place < 0:
            first, time = (datetime.fromtimestamp(moment / 1e6, UTC) for moment in (dated[0][0], now))
            raise ValueError(f"fair has no table for {time:%Y-%m-%d %H:%M}; the first one starts at {first:%Y-%m-%d}")
        return dated[place][1]

    return at


def _since(key: date) -> int:
    if not isinstance(key, date):
        raise TypeError(f"the keys of fair must be dates or datetimes, got {excerpt(key)}")
    return micros(key if isinstance(key, datetime) else datetime.combine(key, time(), UTC))


def _table(table: FairTable) -> FairTable:
    if not isinstance(table, FairTable):
        raise TypeError(f"fair must return a FairTable (see catalog.amended_fair_table), got {table!r:.80}")
    return table
