"""Match filter values to the values of a column.

A sport, league, market or team can be given by any name in the catalog; other names must equal the row's own. Each
function takes distinct values and returns one flag for each.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from oddsengine import catalog
from oddsengine.catalog import spelling

Text = str | None
slug = spelling.slug


@lru_cache(maxsize=16384)
def sport_id(word: Text) -> str:
    """Return the id of a sport by any name; an unknown word is returned unchanged."""
    return catalog.sport(word or "").id


@lru_cache(maxsize=16384)
def league_id(word: Text, sport: Text) -> str:
    return catalog.league(word or "", sport_id(sport)).id


@lru_cache(maxsize=65536)
def _team_id(name: str, sport: str, league: str) -> str:
    team = catalog.team(name, sport, league)
    return team.id if team is not None else slug(name)


def team_id(name: Text, sport: Text, league: Text) -> str:
    """Return the id of a team; for teams outside the catalog, the slug of the name."""
    return _team_id(name or "", sport_id(sport), league_id(league, sport)) if name else ""


def team_names(home: Text, away: Text, sport: Text, league: Text) -> tuple[str, str]:
    """Return the full names of an event's teams (`catalog.team_name`); empty for none."""
    place = sport_id(sport), league_id(league, sport) if league else ""
    return catalog.team_name(home, *place) if home else "", catalog.team_name(away, *place) if away else ""


@lru_cache(maxsize=65536)
def player_id(name: Text) -> str | None:
    """Return the id of a player: the slug of the name, the same for all books.

    Examples
    --------
    >>> player_id("Nikola Jokić"), player_id("")
    ('nikola_jokic', None)
    """
    return slug(name) or None if name else None


# ---- matching ----


def in_sports(words: Sequence[str], sports: Iterable[Text]) -> list[bool]:
    ids = {sport_id(word) for word in words}
    return [sport_id(sport) in ids for sport in sports]


def in_leagues(words: Sequence[str], places: Iterable[tuple[Text, Text]]) -> list[bool]:
    """Match (sport, league) pairs."""
    return [in_league(words, sport, league) for sport, league in places]


def in_league(words: Sequence[str], sport: Text, league: Text) -> bool:
    """Whether a league is one of the requested ones; an empty league is not."""
    return bool(league) and any(league_id(league, sport) == league_id(word, sport) for word in words)


def in_markets(words: Sequence[str], places: Iterable[tuple[Any, ...]]) -> list[bool]:
    """Match (sport, market type) pairs, optionally with line and side, by name or category.

    Examples
    --------
    >>> in_markets(["main"], [("football", "h2h"), ("football", "1st_half_totals"), ("football", "player_points")])
    [True, False, False]
    >>> in_markets(["props", "1st_half_total_points"], [("football", "1st_half_totals"), ("nba", "player_points")])
    [True, True]
    """
    types = {kind for word in words for kind in catalog.categories().get(word.lower(), (word,))}
    props = "player_*" in types
    out = []
    for sport, market, *rest in places:
        line, side = rest or (None, None)
        within = sport_id(sport)
        meant = catalog.market_type(market or "", within)
        name = catalog.published_name(market or "", within)
        prop = props and (meant.is_prop or (not meant.usable and name.startswith("player_")))
        out.append(prop or any(catalog.is_market(kind, name, within, "", line, side or "") for kind in types))
    return out


def with_teams(words: Sequence[str], games: Iterable[tuple[Text, Text, Text, Text]]) -> list[bool]:
    """Match (sport, league, home, away) tuples."""
    out = []
    for sport, league, *teams in games:
        ids = {team_id(word, sport, league) for word in words}
        out.append(any(team and team_id(team, sport, league) in ids for team in teams))
    return out


@lru_cache(maxsize=65536)
def folded(name: str) -> str:
    """Normalise a text for comparison: without case, accents and punctuation."""
    return catalog.normalise(name)


def containing(part: str, texts: Iterable[Text]) -> list[bool]:
    """Flag the texts that contain a substring; a substring of punctuation only matches none."""
    key = folded(part)
    return [bool(key) and key in folded(name or "") for name in texts]


def named(words: Sequence[str], texts: Iterable[Text]) -> list[bool]:
    """Flag the texts equal to a requested one, ignoring case and accents."""
    keys = {folded(word) for word in words} - {""}
    return [folded(name or "") in keys for name in texts]


def chosen(words: Sequence[str], selections: Iterable[tuple[Text, Text]]) -> list[bool]:
    """Match (selection, selection type) pairs."""
    texts, types = {folded(word) for word in words} - {""}, {word.lower() for word in words}
    return [folded(text or "") in texts or kind in types for text, kind in selections]


# ---- catalog lookups ----


def is_book(word: str) -> bool:
    """Whether the catalog has a book."""
    return catalog.book(word).id in catalog.books()


@lru_cache(maxsize=4096)
def is_league(word: str) -> bool:
    """Whether the catalog has a league, in any sport."""
    return any(catalog.league(word, sport).id in catalog.leagues() for sport in ("", *catalog.sports()))


def is_market(word: str) -> bool:
    """Whether the catalog has a market type or a category."""
    return word.lower() in catalog.categories() or word in catalog.listings() or catalog.market_type(word).usable
