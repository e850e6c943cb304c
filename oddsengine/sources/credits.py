"""Budgeting the credits of a feed that charges per request.

A target (a sport's featured markets, one game's props) has a class, that of its nearest game: on or within an hour,
within 6 h, 24 h, 72 h, or beyond. Each class has one interval between two requests. Its weight is the sum, over its
targets, of cost times the seconds they spend in the class in the next 24 hours: an interval g costs weight / g credits
a day.

Guards reject prices older than `stale_prematch_s`; requests are *fresh* if they are `FRESH` times that age apart. The
day's share of the remaining credits is granted in this order, until it is spent; the last grant may be partial:

1. fresh within an hour, then 6 h, then 24 h
2. hourly for the rest, so that no sport is missing
3. the feed's own interval within an hour, then six times that within 6 h
4. fresh within 72 h, then beyond

No class has a longer interval than one that is farther from its games.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import NamedTuple

from oddsengine import catalog

HOUR = 3600.0
FRESH = 0.8  # of the age at which a price is stale; the rest allows for the source's own delay
CLASSES = (1.0 * HOUR, 6.0 * HOUR, 24.0 * HOUR, 72.0 * HOUR, inf)  # until the start of the nearest game
_NEAR, _SOON, _TODAY, _DAYS, _BEYOND = range(len(CLASSES))
_DAY = 24.0 * HOUR
_LIVE_S = 4.0 * HOUR  # games are assumed to end this long after the start
_SOON_LOOKS = 6.0  # intervals between two requests within 6 h


class Target(NamedTuple):
    """A target of requests."""

    name: str
    cost: int  # credits per request
    starts: tuple[float, ...]  # starts of its games, seconds from now
    live: bool = False  # useful only while a game is on


class Plan(NamedTuple):
    """Request intervals and their cost."""

    every: Mapping[str, float]  # seconds; targets that are not requested now are missing
    an_hour: float  # credits, at the current rate
    a_day: float  # credits, in the 24 hours from now
    intervals: tuple[float, ...]  # seconds, by class; inf means never
    stale: tuple[int, ...]  # classes with games in the 24 hours from now whose prices do not stay fresh


def nearness(starts: Sequence[float], *, live: bool = False) -> int | None:
    """Class of the nearest game (an index of `CLASSES`), None if there is no game to request.

    With `live` only games that have begun count.

    Examples
    --------
    >>> nearness([600.0]), nearness([7200.0]), nearness([-20000.0])
    (0, 1, None)
    """
    least = 0.0 if live else inf
    near = [start for start in starts if -_LIVE_S < start <= least]
    return next(at for at, until in enumerate(CLASSES) if min(near) <= until) if near else None


def _within(starts: Sequence[float], until: float) -> float:
    """Seconds of the next 24 hours in which a game is on or starts within the given seconds."""
    total, covered = 0.0, 0.0
    for start in sorted(starts):
        begin, end = max(start - until, covered), min(start + _LIVE_S, _DAY)
        if end > begin:
            total += end - begin
            covered = end
    return total


def _weights(targets: Sequence[Target]) -> list[float]:
    weights = [0.0] * len(CLASSES)
    for target in targets:
        if target.live:
            weights[_NEAR] += target.cost * _within(target.starts, 0.0)
            continue
        before = 0.0
        for at, until in enumerate(CLASSES):
            seconds = _within(target.starts, until)
            weights[at] += target.cost * max(0.0, seconds - before)
            before = seconds
    return weights


def plan(targets: Sequence[Target], interval: float, left: int | None, seconds: float) -> Plan:
    """Distribute credits over targets.

    Parameters
    ----------
    targets
        What can be requested.
    interval
        Minimum seconds between two requests for one target.
    left
        Credits that may be spent; None if unknown, which is taken as enough.
    seconds
        Until the credits are renewed.

    Examples
    --------
    >>> plan([Target("nba", 3, (0.0,))], 30.0, 100_000, 86_400.0)[:3]
    ({'nba': 30.0}, 360.0, 1440.0)
    """
    stale = catalog.thresholds().stale_prematch_s
    fresh = max(FRESH * stale, interval)
    hourly = max(HOUR, fresh)
    wanted = (
        (_NEAR, fresh), (_SOON, fresh), (_TODAY, fresh), (_DAYS, hourly), (_BEYOND, hourly), (_NEAR, interval),
        (_SOON, min(fresh, _SOON_LOOKS * interval)), (_DAYS, fresh), (_BEYOND, fresh),
    )  # fmt: skip
    weights = _weights(targets)
    share = inf if left is None else max(0.0, float(left)) * min(1.0, _DAY / max(seconds, 1.0))
    rates, room = [0.0] * len(CLASSES), share
    for at, wish in wanted:
        more = weights[at] * (1.0 / wish - rates[at])
        if more > room:
            rates[at] += room / weights[at]
            room = 0.0
        else:
            rates[at] = 1.0 / wish
            room -= more
        if room <= 0.0:
            break
    intervals = tuple(1.0 / rate if rate > 0.0 else inf for rate in rates)
    classes = {target.name: nearness(target.starts, live=target.live) for target in targets}
    every = {name: intervals[at] for name, at in classes.items() if at is not None and intervals[at] < inf}
    an_hour = sum(target.cost * HOUR / every[target.name] for target in targets if target.name in every)
    a_day = sum(weight * rate for weight, rate in zip(weights, rates, strict=True))
    late = tuple(at for at, weight in enumerate(weights) if weight > 0.0 and intervals[at] > max(stale, interval))
    return Plan(every, an_hour, a_day, intervals, late)


def until_renewal(now: datetime, day: int) -> float:
    """Return the seconds until a day of the month.

    Examples
    --------
    >>> from datetime import UTC
    >>> until_renewal(datetime(2026, 12, 31, 12, tzinfo=UTC), 1) / HOUR
    12.0
    """
    then = now.replace(day=day, hour=0, minute=0, second=0, microsecond=0)
    if then <= now:
        then = (then.replace(day=1) + timedelta(days=32)).replace(day=day)
    return (then - now).total_seconds()
