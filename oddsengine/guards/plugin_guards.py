"""Guards of plugins: functions of columns that reject prices which our own guards accept.

They run after ours, in the order in which they are named, each on what those before it accepted. A guard gets all
accepted prices of some *sections* at once: of one event, in play or not, with one market type and period. It judges a
section again when one of its prices changes, so its verdict on a price may depend on the prices of the same section
only, and not on the time. When it raises, or returns anything but a boolean for each price, it is asked for each
section alone; what fails then is counted, and it rejects nothing there. So a failure is the same whatever was judged
together.
"""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.catalog import reasons
from oddsengine.catalog.reasons import ACCEPTED, IDENTITY, Guards
from oddsengine.columns import Bools, Bytes, Longs
from oddsengine.identity.groups import Groups
from oddsengine.plugins import GUARDS, MOST_SAID, Plugin, described, find, load

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
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_RESERVED = ("all", "none", "profit_cap", "rejected_upstream")  # they mean something else where guards are named
_MOST_KINDS, _OTHERS = 8, "other failures"


class Guard(NamedTuple):
    """What a package registers as a guard.

    Parameters
    ----------
    rejects
        A function of a frame of prices that returns a boolean for each row: whether the price is rejected. Null is no.
    reason
        Why, as people read it: one line.
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
    """A verdict that cannot be used: why, and what came."""

    def __init__(self, why: str, came: str = "") -> None:
        super().__init__(f"{why}, got {came}" if came else why)
        self.why = why


class LoadedGuard:
    """A guard of a plugin: its calls one at a time, their failures, and how long they took."""

    def __init__(self, name: str, label: str, guard: Guard) -> None:
        self.name, self.label, self.guard = name, label, guard
        self.code = reasons.add(name, guard.reason)
        self.failures: Counter[str] = Counter()  # sections of prices, by what was wrong
        self._first: dict[str, str] = {}  # of each, in full
        self.calls, self.seconds = 0, 0.0  # of its function
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{self.label}: {self.failures.total():,} failures, {self.seconds:.3f} s>"

    def judge(self, groups: Groups, reason: Bytes, table: Table) -> None:
        """Reject rows of the groups that are accepted so far."""
        at = np.flatnonzero(reason == ACCEPTED)
        if at.size:
            prices = columns_of(groups, at, table, self.guard.columns)
            with self._lock:
                reason[at[self._rejects(prices, groups, at)]] = self.code

    def _rejects(self, prices: pl.DataFrame, groups: Groups, at: Longs) -> Bools:
        """Which prices it rejects; of a section for which its verdict cannot be used, none."""
        try:
            return self._ask(prices)
        except GuardError as error:
            ends = sections(groups, at)
            if ends.size == 2:
                self._failed(error)
                return np.zeros(at.size, bool)
        out = np.zeros(at.size, bool)
        for a, b in pairwise(ends.tolist()):
            try:
                out[a:b] = self._ask(prices[a:b])
            except GuardError as error:
                self._failed(error)
        return out

    def _ask(self, prices: pl.DataFrame) -> Bools:
        began = time.perf_counter()
        try:
            return verdict(self.guard, prices)
        finally:
            self.calls += 1
            self.seconds += time.perf_counter() - began

    def _failed(self, error: GuardError) -> None:
        why = error.why if error.why in self.failures or len(self.failures) < _MOST_KINDS else _OTHERS
        self.failures[why] += 1
        self._first.setdefault(why, str(error))

    @property
    def problem(self) -> str:
        """What could not be used of its verdicts, in words; empty if all could."""
        if not self.failures:
            return ""
        (why, n), count = self.failures.most_common(1)[0], self.failures.total()
        others = f" and {count - n:,} others" if count > n else ""
        times = f"{n:,} {'time' if n == 1 else 'times'}{others}"
        return f"{self.label} fails, and rejects nothing then: {self._first[why]} ({times})"


def sections(groups: Groups, at: Longs) -> Longs:
    """Where the sections of some rows of the groups begin, and the end of the last; the rows are in order."""
    ladder = groups.ladder[groups.market[at]]
    place = np.stack((groups.event[ladder], groups.live[ladder], groups.kind[ladder]))
    return np.concatenate(([0], np.flatnonzero((place[:, 1:] != place[:, :-1]).any(axis=0)) + 1, [at.size]))


def verdict(guard: Guard, prices: pl.DataFrame) -> Bools:
    """Return which prices a guard rejects. Raises `GuardError` if that cannot be used."""
    try:
        came = guard.rejects(prices)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # panics of polars are no `Exception`
        raise GuardError(f"it raises {described(error)}") from error
    try:
        is_boolean = isinstance(came, pl.Series) and came.dtype == pl.Boolean
        found = came.fill_null(value=False).to_numpy() if is_boolean else np.asarray(came)
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever an object does that is no array
        found = np.empty(0)
    if found.dtype != bool or found.shape != (prices.height,) or isinstance(came, np.ma.MaskedArray):
        raise GuardError("it must return a boolean for each price", f"{excerpt(came)} for {prices.height}")
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
    """Load the guards of plugins among those that are named, a list or a mapping.

    Names that no package registers are left to `reasons.enabled`, which refuses them. Raises `PluginError` for a guard
    that cannot be used.
    """
    if not isinstance(guards, Sequence | Mapping) or isinstance(guards, str):
        return ()
    names = [name for name in guards if isinstance(name, str) and name not in own_names()]
    found = []
    for name in dict.fromkeys(names):
        plugin = find(GUARDS, name, own_names())
        if plugin is None:
            continue
        try:
            if isinstance(guards, Mapping) and guards[name] is False:
                reasons.add(name)
            else:
                found.append(LoadedGuard(name, plugin.label, checked(plugin, load(plugin))))
        except reasons.TooManyGuardsError as error:
            raise plugin.error(str(error)) from None
    return tuple(found)


def own_names() -> frozenset[str]:
    """Names of guards, thresholds and other reasons that are ours."""
    return frozenset((*reasons.GUARDS, *IDENTITY, *catalog.thresholds()._fields, *_RESERVED))


def problem_of(name: str) -> str:
    """Why no guard can have a name, in words; empty if one can."""
    return "" if _NAME.fullmatch(name) else "its name must be of letters, digits, _, . and -"


def checked(plugin: Plugin, guard: Any) -> Guard:
    """Return what a plugin has registered. Raises `PluginError` if it is no `Guard`."""
    if problem := problem_of(plugin.name):
        raise plugin.error(problem)
    if not isinstance(guard, Guard):
        raise plugin.error(f"{plugin.object} must be a Guard, got {excerpt(guard)}")
    if not callable(guard.rejects):
        raise plugin.error(f"its rejects must be a function of a frame, got {excerpt(guard.rejects)}")
    text = guard.reason
    if not (isinstance(text, str) and text.strip() and text.isprintable() and len(text) <= MOST_SAID):
        raise plugin.error(f"its reason must be a line of at most {MOST_SAID} characters, got {excerpt(text)}")
    given = guard.columns
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise plugin.error(f"its columns must be a list of names, got {excerpt(given)}")
    if len({*map(str, given)}) < len(given):
        raise plugin.error(f"its columns must be different, got {excerpt(given)}")
    if strange := [name for name in given if name not in GUARD_COLUMNS]:
        raise plugin.error(f"its columns must be among {', '.join(GUARD_COLUMNS)}, got {excerpt(strange[0])}")
    return guard
