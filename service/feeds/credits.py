"""Credits of a source that is paid by the request: where to spend what is left.

A target (a sport's featured markets, one game's props) is wanted every `interval` seconds while its nearest game is on
or within an hour, and less often the farther away that is. The coming day's wishes are added up; if they cost more than
the day's share of what is left until the credits renew, every wait is stretched by the same factor. So credits go where
games are near, and nights without games pay for evenings with many.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

HOUR = 3600.0
_DAY = 24.0 * HOUR
_LIVE_S = 4.0 * HOUR  # after its start a game is over
_STEP_S = 0.5 * HOUR
# Until the start, and how many intervals between two looks.
_LOOKS = ((1.0 * HOUR, 1.0), (6.0 * HOUR, 6.0), (24.0 * HOUR, 30.0), (72.0 * HOUR, 120.0), (float("inf"), 480.0))


class Target(NamedTuple):
    """Something that can be asked for."""

    name: str
    cost: int  # credits
    starts: tuple[float, ...]  # of its games, seconds from now
    live: bool = False  # of use only while a game is on


class Plan(NamedTuple):
    """How often each target is asked for, and what that costs."""

    every: Mapping[str, float]  # seconds; a target without a game is not there
    an_hour: float  # credits, as things stand now
    a_day: float  # credits, in the 24 hours from now
    stretch: float  # 1 where the credits are enough for all wishes


def wish(starts: Sequence[float], interval: float, at: float = 0.0, *, live: bool = False) -> float | None:
    """Seconds between two looks at games, `at` seconds from now; None if there is no game to look at.

    With `live` only games that have begun are looked at.

    Examples
    --------
    >>> wish([600.0], 30.0), wish([7200.0], 30.0), wish([-20000.0], 30.0)
    (30.0, 180.0, None)
    """
    least = 0.0 if live else float("inf")
    near = [start - at for start in starts if -_LIVE_S < start - at <= least]
    looks = [next(looks for until, looks in _LOOKS if wait <= until) for wait in near]
    return interval * min(looks) if looks else None


def plan(targets: Sequence[Target], interval: float, left: int | None, seconds: float) -> Plan:
    """Spread credits.

    Parameters
    ----------
    targets
        What can be asked for.
    interval
        Least seconds between two looks.
    left
        Credits that may be spent; None if nobody knows yet, which is taken for enough.
    seconds
        Until there are new ones.

    Examples
    --------
    >>> plan([Target("nba", 3, (0.0,))], 30.0, 100_000, 86_400.0)[1:]
    (360.0, 1440.0, 1.0)
    """
    wanted = sum(
        target.cost * _STEP_S / seconds_between
        for target in targets
        for step in range(int(_DAY / _STEP_S))
        if (seconds_between := wish(target.starts, interval, step * _STEP_S, live=target.live)) is not None
    )
    share = float("inf") if left is None else max(0.0, float(left)) * min(1.0, _DAY / max(seconds, 1.0))
    stretch = 1.0 if wanted <= share else wanted / share if share > 0.0 else float("inf")
    every = {
        one.name: found * stretch for one in targets if (found := wish(one.starts, interval, live=one.live)) is not None
    }
    an_hour = sum(target.cost * HOUR / every[target.name] for target in targets if target.name in every)
    return Plan(every, an_hour, wanted / stretch, stretch)


def until_renewal(now: datetime, day: int) -> float:
    """Seconds until a day of the month begins.

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
