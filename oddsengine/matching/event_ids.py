"""Event ids: `{league}_{away}_{home}_{date}`, with the visitors first as in Celtics @ Lakers.

Teams in the catalog appear by nickname, others by name, players by surname. The date is the local day of the game, by
one rule per league: in leagues of the Americas a day ends at 08:00 UTC, so an evening game in Los Angeles has its local
date; elsewhere it is the UTC date.
"""

from collections.abc import Container, MutableMapping
from datetime import UTC, date, datetime, timedelta
from functools import cache

from oddsengine import catalog
from oddsengine.feeds.payload import Game
from oddsengine.matching import name_likeness, persons, words

_AMERICAS = frozenset(
    {"USA", "Canada", "Mexico", "Brazil", "Argentina", "Chile", "Colombia", "Uruguay", "Peru", "Ecuador"}
)
_NIGHT = timedelta(hours=8)


def day_of(league: str, start: datetime) -> date:
    """Return the date in an event's id.

    Examples
    --------
    >>> from datetime import UTC
    >>> day_of("nba", datetime(2026, 2, 9, 3, 30, tzinfo=UTC)).isoformat()
    '2026-02-08'
    """
    if start.tzinfo is not None:
        start = start.astimezone(UTC)
    american = catalog.league(league).country in _AMERICAS
    return (start - _NIGHT).date() if american else start.date()


@cache
def _nicknames() -> dict[tuple[str, str], str]:
    """Map teams of the catalog to the part of the name used in speech."""
    nicknames = {}
    for team in catalog.teams():
        short = next((alias for alias in team.aliases if team.name.endswith(f" {alias}")), team.name)
        nicknames[team.sport, team.name] = team.name if team.sport == "soccer" else short
    return nicknames


def slug(sport: str, league: str, text: str) -> str:
    """Convert the name of a team or player to the form used in ids.

    Examples
    --------
    >>> slug("basketball", "nba", "BOS Celtics"), slug("tennis", "atp", "Zverev, A."), slug("soccer", "", "Porto B")
    ('celtics', 'zverev', 'porto_b')
    """
    if sport in words.PERSONS:
        return "_".join(persons.surname(one) for one in persons.partners(text)) or "x"
    team = name_likeness.catalog_team(sport, league, text)
    plain = catalog.normalise(_nicknames().get((sport, team), team or text))
    marks = sorted(name_likeness.parse_team(sport, league, text).marks) if team else []
    return "_".join([*plain.split(), *"_".join(marks).split()]) or "x"


def event_id(game: Game, league: str, start: datetime) -> str:
    """Return the id of a new event."""
    teams = (slug(game.sport, league, text) for text in (game.away, game.home))
    return "_".join([catalog.normalise(league).replace(" ", "_"), *teams, day_of(league, start).isoformat()])


def free(stem: str, taken: Container[str], numbers: MutableMapping[str, int]) -> str:
    """Return an id that is not taken, with `_2` and so on appended; `numbers` has the last number of each."""
    ident, number = stem, numbers.get(stem, 1)
    while ident in taken:
        number += 1
        ident = f"{stem}_{number}"
    if number > 1:
        numbers[stem] = number
    return ident
