"""Parts of sources that list by sport: one of our sports, or a league of it, whose other leagues are left out."""

from collections.abc import Mapping
from typing import TypeVar

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.sources.failure import REFUSED, Failure

T = TypeVar("T")


def sport_and_league(part: str, sports: Mapping[str, T]) -> tuple[T, str]:
    """Return what the source calls the sport of a part, and our league, empty for all.

    Parameters
    ----------
    sports
        The source's sports by ours.

    Raises `Failure` if the part is not one of our sports or leagues, or the source does not have its sport.

    Examples
    --------
    >>> sport_and_league("nfl", {"football": 8}), sport_and_league("football", {"football": 8})
    ((8, 'nfl'), (8, ''))
    """
    league = catalog.leagues().get(part)
    sport = league.sport if league else part
    if sport not in sports:
        known = ", ".join(sorted(sports)) or "none"
        raise Failure(
            f"{excerpt(part)} is not a league or sport that it has; sports are {known}", fatal=True, kind=REFUSED
        )  # fmt: skip
    return sports[sport], part if league else ""
