"""The slow twin of `oddsengine.feeds.merged_scores`: every state worked out again from all readings, rule by rule."""

from fractions import Fraction
from typing import Any, NamedTuple

SECOND = 1_000_000


class Said(NamedTuple):
    """A reading in plain words."""

    source: str
    at: int
    score: tuple[int, int] | None
    far: Any  # how far on the game is
    period: str
    over: bool


def newest_of_each(said: list[Said], until: int) -> list[Said]:
    found = {}
    for one in sorted(said, key=lambda one: (one.at, one.over, one.score or (-1, -1), one.period)):
        if one.at <= until:
            found[one.source] = one
    return [found[source] for source in sorted(found)]


def recent(said: list[Said], seconds: int) -> list[Said]:
    last = max(one.at for one in said)
    return [one for one in said if last - one.at < seconds * SECOND]


def score(
    said: list[Said], before: tuple[int, int] | None, since: int, seconds: int, late: int
) -> tuple[int, int] | None:
    last = max(one.at for one in said)
    voters = [one for one in said if one.score is not None]
    if not voters:
        return before
    pairs = {one.score for one in voters if one.score is not None}

    def weight(pair: tuple[int, int]) -> Fraction:
        total = Fraction(0)
        for one in voters:
            if one.score == pair:
                total += 1 - Fraction(last - one.at, seconds * SECOND)
        return total

    def newest(pair: tuple[int, int]) -> int:
        return max(one.at for one in voters if one.score == pair)

    def falls(pair: tuple[int, int]) -> bool:
        return before is not None and (pair[0] < before[0] or pair[1] < before[1])

    def best(among: set[tuple[int, int]]) -> tuple[int, int]:
        return sorted(among, key=lambda pair: (weight(pair), newest(pair), pair[0] + pair[1], pair))[-1]

    winner = best(pairs)
    if not falls(winner):
        return winner
    holding = {pair for pair in pairs if not falls(pair)}
    agreeing = len([one for one in voters if one.score == winner])
    if not holding:
        return winner
    if agreeing > len(voters) / 2 and last - since >= late * SECOND:
        return winner
    return best(holding)


class Stands(NamedTuple):
    score: tuple[int, int] | None
    period: str
    over: bool
    primary: str
    sources: int


def stands(said: list[Said], seconds: int, late: int) -> Stands:
    """How a game stands after all that was said of it, told anew moment by moment."""
    before: tuple[int, int] | None = None
    since, now = 0, None
    for moment in sorted({one.at for one in said}):
        those = recent(newest_of_each(said, moment), seconds)
        final = [one for one in those if one.over]
        over = len(final) >= len(those) / 2
        some = final if over else [one for one in those if not one.over]
        lead = some[0]
        for one in some[1:]:
            if one.at > lead.at if over else (one.far, one.at) > (lead.far, lead.at):
                lead = one
        found = score(those, before, since, seconds, late)
        now = Stands(found, "FT" if over else lead.period, over, lead.source, len(those))
        if found != before:
            before, since = found, moment
    assert now is not None
    return now
