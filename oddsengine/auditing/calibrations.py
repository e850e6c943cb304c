"""The fair-price constants in force at each time of a replay.

Constants fitted to a period must not be used within it. Dated constants are in force from their date to the next one; a
function is called once per day with the day's midnight (UTC) and may use data from before it.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time

from oddsengine import catalog
from oddsengine.catalog import FairTable
from oddsengine.engine import micros

Fair = FairTable | Mapping[date, FairTable] | Callable[[datetime], FairTable] | None
"""Fair-price constants: one table, tables by the date or time from which they are in force, or a function."""
_DAY = 86_400_000_000


class Calibrations:
    """Tables of constants by time.

    Parameters
    ----------
    fair
        One table for all times (None: the packaged one), tables by date or datetime, or a function of a midnight.

    Raises
    ------
    TypeError, ValueError
        If `fair` is none of these.

    Examples
    --------
    >>> old, new = catalog.fair_table(), catalog.amended_fair_table({"own": {"weight": 1.2}})
    >>> both = Calibrations({date(2026, 1, 1): old, date(2026, 2, 1): new})
    >>> [both.at(micros(datetime(2026, month, day))) is new for month, day in ((1, 31), (2, 1))]
    [False, True]
    """

    def __init__(self, fair: Fair = None) -> None:
        self._made: dict[int, FairTable] = {}  # by day; engines compare tables by identity
        self._function: Callable[[datetime], FairTable] | None = None
        self._since: list[int] = []
        self._tables: list[FairTable] = []
        if fair is None or isinstance(fair, FairTable):
            self._since, self._tables = [-(1 << 63)], [fair or catalog.fair_table()]
        elif isinstance(fair, Mapping):
            dated = sorted((_since(key), _table(table)) for key, table in fair.items())
            if not dated:
                raise ValueError("fair must have at least one table, got an empty mapping")
            self._since, self._tables = [since for since, _ in dated], [table for _, table in dated]
        elif callable(fair):
            self._function = fair
        else:
            raise TypeError(
                f"fair must be a FairTable, tables by date, or a function of a datetime, got {type(fair).__name__}"
            )

    def at(self, now: int) -> FairTable:
        """Return the table in force at a time in microseconds.

        Raises
        ------
        ValueError
            If the first table starts later.
        """
        if self._function is not None:
            day = now // _DAY
            if day not in self._made:
                self._made[day] = _table(self._function(datetime.fromtimestamp(day * 86_400, UTC)))
            return self._made[day]
        at = bisect_right(self._since, now) - 1
        if at < 0:
            first, time = (datetime.fromtimestamp(moment / 1e6, UTC) for moment in (self._since[0], now))
            raise ValueError(f"fair has no table for {time:%Y-%m-%d %H:%M}; the first one starts at {first:%Y-%m-%d}")
        return self._tables[at]


def _since(key: date) -> int:
    if not isinstance(key, date):
        raise TypeError(f"the keys of fair must be dates or datetimes, got {key!r}")
    return micros(key if isinstance(key, datetime) else datetime.combine(key, time(), UTC))


def _table(table: FairTable) -> FairTable:
    if not isinstance(table, FairTable):
        raise TypeError(f"fair must return a FairTable (see catalog.amended_fair_table), got {table!r:.80}")
    return table
