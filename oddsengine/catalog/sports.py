"""Sports: can they end level, and what shape do their scores have."""

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.catalog import files
from oddsengine.catalog.names import plain


class Shape(NamedTuple):
    """How a score spreads around its expectation: `sd` for normal shapes, `variance_ratio` for counts."""

    name: str
    sd: float = 0.0
    variance_ratio: float = 1.0


class Scores(NamedTuple):
    """The shapes of one sport, or of one league of it; None where nothing is known."""

    margin: Shape | None = None
    total: Shape | None = None
    team_total: Shape | None = None
    key_weights: tuple[float, ...] = ()


class Sport(NamedTuple):
    """One sport; sports.toml says what each field means. `level` None: a game may end level freely."""

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
    scores: Scores = Scores()
    leagues: Mapping[str, Scores] = MappingProxyType({})

    def can_draw(self, league: str) -> bool:
        """Whether a plain result in this league can be a draw."""
        return self.draws and plain(league) not in self.two_way_leagues

    def scores_in(self, league: str) -> Scores:
        """Give the shapes in a league: its own, or those of the sport."""
        return self.leagues.get(plain(league), self.scores)


_SHAPES = ("margin", "total", "team_total")


def _scores(entry: Mapping[str, Any], default: Scores) -> Scores:
    """Take the shapes out of an entry; those it does not give are the default's."""
    shapes: dict[str, Any] = {name: getattr(default, name) for name in _SHAPES}
    for name in _SHAPES:
        if name in entry:
            given = entry[name]
            shapes[name] = Shape(given["shape"], given.get("sd", 0.0), given.get("variance_ratio", 1.0))
    return Scores(**shapes, key_weights=tuple(entry.get("key_weights", default.key_weights)))


def _sport(id_: str, entry: Mapping[str, Any]) -> Sport:
    scores = _scores(entry, Scores())
    leagues = {league: _scores(given, scores) for league, given in entry.get("leagues", {}).items()}
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
    """Id to sport."""
    return MappingProxyType({id_: _sport(id_, entry) for id_, entry in files.toml("sports.toml").items()})


@cache
def _by_alias() -> Mapping[str, Sport]:
    table = {alias: sport for sport in sports().values() for alias in sport.aliases}
    return table | dict(sports())


@lru_cache(maxsize=4096)
def sport(id_: str) -> Sport:
    """Look a sport up by its id or an alias, however written; an unknown one has draws off and no shapes.

    Examples
    --------
    >>> sport("Ice Hockey").id, sport("soccer_epl").draws, sport("quidditch").draws
    ('hockey', True, False)
    """
    name = plain(id_)
    parts = name.split("_")
    # `soccer_epl` and the like: what stands before the league.
    words = ("_".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((found for word in words if (found := _by_alias().get(word))), None) or Sport(name, id_)
