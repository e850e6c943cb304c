"""Guards of plugins: functions of columns that reject prices which our own guards accept.

They run after ours, in the order in which they are named, each on what those before it accepted. A guard gets all
accepted prices of some markets at once, and judges a market again when one of its prices changes, so its verdict on a
price may depend on the prices of the same market, period and event only, and not on the time. What it raises, or
returns that is not one boolean for each price, is counted, and then it rejects nothing of what it was given.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.catalog import reasons
from oddsengine.catalog.reasons import ACCEPTED, IDENTITY, Guards
from oddsengine.columns import Bools, Bytes, Longs
from oddsengine.identity.groups import Groups
from oddsengine.plugins import GUARDS, Plugin, described, find, load

MARKET, OUTCOME = "market", "outcome"
PRICE_COLUMNS = (
    "event_id", "sport", "league", "home_team", "away_team", "event_start_time", "is_live", "market_type",
    "market_segment", "player_name", "stat_category", "team_side", "selection", "selection_type", "line", "sportsbook",
    "odds_decimal",
)  # fmt: skip
"""Columns of prices that a guard may read: those of odds tables of which a change makes it judge again."""
GUARD_COLUMNS = (*PRICE_COLUMNS, MARKET, OUTCOME)
"""These, and numbers by which prices can be grouped: prices with the same `market` and `outcome` are on one bet."""

Table = Callable[[Longs, Sequence[str]], pl.DataFrame]
"""Makes some columns of prices, in their order, of some rows of `Groups`."""


class Guard(NamedTuple):
    """What a package registers as a guard.

    Parameters
    ----------
    rejects
        A function of a frame of prices that returns a boolean for each row: whether the price is rejected.
    reason
        Why, as people read it.
    columns
        The columns that it reads, of `GUARD_COLUMNS`; the frame has no others.

    Examples
    --------
    >>> guard = Guard(lambda prices: prices["odds_decimal"] > 100.0, "odds above 100", ("odds_decimal",))
    >>> guard.rejects(pl.DataFrame({"odds_decimal": [2.0, 101.0]})).to_list()
    [False, True]
    """

    rejects: Callable[[pl.DataFrame], Any]
    reason: str
    columns: tuple[str, ...] = GUARD_COLUMNS


class GuardError(Exception):
    """A verdict that cannot be used."""


class LoadedGuard:
    """A guard of a plugin: its calls one at a time, their failures, and how long they took."""

    def __init__(self, name: str, label: str, guard: Guard) -> None:
        self.name, self.label, self.guard = name, label, guard
        self.code = reasons.add(name, guard.reason)
        self.failures: Counter[str] = Counter()
        self.seconds = 0.0  # of all calls
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{self.label}: {self.failures.total():,} failures, {self.seconds:.3f} s>"

    def rejects(self, prices: pl.DataFrame) -> Bools:
        """Return which prices it rejects; none if its verdict cannot be used."""
        try:
            return verdict(self.guard, prices)
        except GuardError as error:
            self.failures[str(error)] += 1
            return np.zeros(prices.height, bool)

    def judge(self, groups: Groups, reason: Bytes, table: Table) -> None:
        """Reject rows of the groups that are accepted so far."""
        with self._lock:
            began = time.perf_counter()
            at = np.flatnonzero(reason == ACCEPTED)
            if at.size:
                reason[at[self.rejects(columns_of(groups, at, table, self.guard.columns))]] = self.code
            self.seconds += time.perf_counter() - began

    @property
    def problem(self) -> str:
        """What could not be used of its verdicts, in words; empty if all could."""
        if not self.failures:
            return ""
        (kind, n), count = self.failures.most_common(1)[0], self.failures.total()
        others = f" and {count - n:,} others" if count > n else ""
        return f"{self.label} fails, and rejects nothing then: {kind} ({n:,} {'time' if n == 1 else 'times'}{others})"


def verdict(guard: Guard, prices: pl.DataFrame) -> Bools:
    """Return which prices a guard rejects. Raises `GuardError` if that cannot be used."""
    try:
        came = guard.rejects(prices)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # panics of polars are no `Exception`
        raise GuardError(f"it raises {described(error)}") from error
    try:
        found = came.to_numpy() if isinstance(came, pl.Series) and not came.null_count() else np.asarray(came)
    except Exception:  # whatever an object does that is no array
        found = np.empty(0)
    if found.dtype != bool or found.shape != (prices.height,):
        what = f"an array of shape {found.shape} of {found.dtype}" if isinstance(came, np.ndarray) else excerpt(came)
        raise GuardError(f"it must return a boolean for each of {prices.height} prices, got {what}")
    return found


def columns_of(groups: Groups, at: Longs, table: Table, wanted: Sequence[str]) -> pl.DataFrame:
    """Return columns of some rows of the groups, as a guard gets them."""
    others = [name for name in wanted if name not in _OF_GROUPS]
    columns = {column.name: column for column in (table(at, others) if others else ())}
    columns |= {name: pl.Series(name, make(groups, at)) for name, make in _OF_GROUPS.items() if name in wanted}
    return pl.DataFrame([columns[name] for name in wanted])


_OF_GROUPS: dict[str, Callable[[Groups, Longs], Any]] = {
    MARKET: lambda groups, at: groups.market[at].astype(np.int64),
    OUTCOME: lambda groups, at: groups.side[at].astype(np.int64),
    "odds_decimal": lambda groups, at: groups.odds[at],
    "is_live": lambda groups, at: groups.live_of(at) != 0,
}


def judge(guards: Sequence[LoadedGuard], groups: Groups, reason: Bytes, table: Table) -> None:
    """Let guards of plugins judge what is accepted so far, one after the other."""
    for guard in guards:
        guard.judge(groups, reason, table)


def loaded(guards: Guards) -> tuple[LoadedGuard, ...]:
    """Load the guards of plugins among those that are named. Raises `PluginError` for one that cannot be used.

    Names that no package registers are left to `reasons.enabled`, which refuses them.
    """
    if guards is None or isinstance(guards, str):
        return ()
    names = [name for name in guards if isinstance(name, str) and name not in own_names()]
    switched = guards if isinstance(guards, Mapping) else dict.fromkeys(names, True)
    found = []
    for name in dict.fromkeys(names):
        plugin = find(GUARDS, name, own_names())
        if plugin is not None and switched[name] is not False:
            found.append(LoadedGuard(name, plugin.label, checked(plugin, load(plugin))))
        elif plugin is not None:
            reasons.add(name, "")
    return tuple(found)


def own_names() -> frozenset[str]:
    """Names of guards, thresholds and other reasons that are ours."""
    return frozenset((*reasons.GUARDS, *IDENTITY, *catalog.thresholds()._fields, "rejected_upstream"))


def checked(plugin: Plugin, guard: Any) -> Guard:
    """Return what a plugin has registered. Raises `PluginError` if it is no `Guard`."""
    if not isinstance(guard, Guard):
        raise plugin.error(f"{plugin.object} must be a Guard, got {excerpt(guard)}")
    if not callable(guard.rejects):
        raise plugin.error(f"its rejects must be a function of a frame, got {excerpt(guard.rejects)}")
    if not (isinstance(guard.reason, str) and guard.reason.strip()):
        raise plugin.error(f"its reason must be a text, got {excerpt(guard.reason)}")
    given = guard.columns
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise plugin.error(f"its columns must be a list of names, got {excerpt(given)}")
    if strange := [name for name in given if name not in GUARD_COLUMNS]:
        raise plugin.error(f"its columns must be among {', '.join(GUARD_COLUMNS)}, got {excerpt(strange[0])}")
    return guard
