"""Sports: whether games can end level, and the distributions of scores."""

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.spelling import plain


class Shape(NamedTuple):
    """Spread of a score around its expectation: `sd` for normal shapes, `variance_ratio` for counts."""

    name: str
    sd: float = 0.0
    variance_ratio: float = 1.0


class ScoreShapes(NamedTuple):
    """Score distributions of a sport or league; None if unknown."""

    margin: Shape | None = None
    total: Shape | None = None
    team_total: Shape | None = None
    key_weights: tuple[float, ...] = ()


class Sport(NamedTuple):
    """A sport; sports.toml documents the fields. `level` None: a game can end level."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    draws: bool = False
    two_way_leagues: frozenset[str] = frozenset()
    tie_after_overtime: bool = False
    regulation_only: bool = False
    level: float | None = None
    key_numbers: tuple[int, ...] = ()
    names: Mapping[str, str] = MappingProxyType({})
    scores: ScoreShapes = ScoreShapes()
    leagues: Mapping[str, ScoreShapes] = MappingProxyType({})

    def can_draw(self, league: str) -> bool:
        """Whether the result of a game in this league can be a draw."""
        return self.draws and plain(league) not in self.two_way_leagues

    def scores_in(self, league: str) -> ScoreShapes:
        """Return the score distributions of a league, or else of the sport."""
        return self.leagues.get(plain(league), self.scores)


_SHAPES = ("margin", "total", "team_total")


def _scores(entry: Mapping[str, Any], default: ScoreShapes) -> ScoreShapes:
    """Parse the distributions of an entry; missing ones are those of `default`."""
    shapes: dict[str, Any] = {name: getattr(default, name) for name in _SHAPES}
    for name in _SHAPES:
        if name in entry:
            shape = entry[name]
            shapes[name] = Shape(shape["shape"], shape.get("sd", 0.0), shape.get("variance_ratio", 1.0))
    return ScoreShapes(**shapes, key_weights=tuple(entry.get("key_weights", default.key_weights)))


def _sport(id_: str, entry: Mapping[str, Any]) -> Sport:
    scores = _scores(entry, ScoreShapes())
    leagues = {
        league: _scores(scores_of_league, scores) for league, scores_of_league in entry.get("leagues", {}).items()
    }
    return Sport(
        id=id_,
        name=entry["name"],
        aliases=tuple(entry.get("aliases", ())),
        draws=entry.get("draws", False),
        two_way_leagues=frozenset(entry.get("two_way_leagues", ())),
        tie_after_overtime=entry.get("tie_after_overtime", False),
        regulation_only=entry.get("regulation_only", False),
        level=entry.get("level"),
        key_numbers=tuple(entry.get("key_numbers", ())),
        names=MappingProxyType(entry.get("names", {})),
        scores=scores,
        leagues=MappingProxyType(leagues),
    )


@cache
def sports() -> Mapping[str, Sport]:
    """Return sports by id."""
    return MappingProxyType({id_: _sport(id_, entry) for id_, entry in data_files.toml("sports.toml").items()})


@cache
def _by_alias() -> Mapping[str, Sport]:
    table = {alias: sport for sport in sports().values() for alias in sport.aliases}
    return table | dict(sports())


@cache
def _by_league() -> Mapping[str, Sport | None]:
    """Map ids and aliases of leagues to their sports; None if two sports share one."""
    table: dict[str, Sport | None] = {}
    for id_, entry in data_files.amended("leagues", data_files.entries("leagues.csv")).items():
        within = sports()[entry["sport"]]
        for name in (id_, *entry.get("aliases", ())):
            table[plain(name)] = within if table.get(plain(name), within) is within else None
    return table


@lru_cache(maxsize=4096)
def sport(id_: str) -> Sport:
    """Return a sport by id or alias, or by one of its leagues, ignoring case and spaces.

    An unknown sport has no draws and no distributions.

    Examples
    --------
    >>> sport("Ice Hockey").id, sport("soccer_epl").draws, sport("NBA").id, sport("quidditch").draws
    ('hockey', True, 'basketball', False)
    """
    name = plain(id_)
    parts = name.split("_")
    # The part before the league, as in `soccer_epl`.
    words = ("_".join(parts[:n]) for n in range(len(parts), 0, -1))
    match = next((match for word in words if (match := _by_alias().get(word))), None)
    return match or _by_league().get(name) or Sport(name, id_)
