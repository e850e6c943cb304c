"""Identity of futures: the market and selection that a price refers to.

A market is everything that settles together: sport, league, what is decided (a kind of the catalog, or the source's own
words), season, type, subject (such as the team of a win total), line, and number of winners. Its id is
`{league}:{kind}:{hash}` with a stable hash of all of these, computed like ids of opportunities. Everything here depends
on the texts of one price only, so other prices cannot change an id; only names of players are compared with others
(`sheets`).

Teams have catalog names, resolved as for games. Teams outside the catalog, and players, are identified by their
normalised names. "Any other" and its synonyms are one selection, whose meaning depends on the contestants listed; see
`sheets`.
"""

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.catalog import futures_catalog as kinds
from oddsengine.detection.opportunity_ids import hash_text, hexadecimal
from oddsengine.identity.groups import mix
from oddsengine.matching import name_likeness, words

ANY_OTHER = "Any other"
_OTHERS = frozenset({
    "any other", "any other team", "any other player", "any other contestant", "any other driver", "any other club",
    "any other outcome", "field", "the field", "other", "others", "all others", "none of the above", "the rest",
    "rest of the field", "any other golfer", "any other nation", "any other winner",
})  # fmt: skip
_SIDES = {"OVER_UNDER": ("Over", "Under"), "YES_NO": ("Yes", "No")}
_MOST_PLACES = 99
_MOST_LINE = 1e9


class FuturesMarket(NamedTuple):
    """A market. `places` is 0 if the number of winners is unknown."""

    id: str
    name: str
    sport: str
    league: str
    kind: str
    season: str
    type: str
    subject: str
    line: float | None
    places: int


class FuturesLabel(NamedTuple):
    """The texts of a price, as given by its source."""

    sport: str = ""
    league: str = ""
    market: str = ""
    season: str = ""
    type: str = ""
    subject: str = ""
    selection: str = ""
    line: float | None = None
    places: int | None = None
    start: datetime | None = None


class UnreadableError(ValueError):
    """A price that is not a valid future; the message is a short reason."""


def contestant(sport: str, league: str, text: str) -> str:
    """Return the name of a contestant, as far as its own text determines it."""
    if catalog.normalise(text) in _OTHERS:
        return ANY_OTHER
    if sport in words.PERSONS:
        return " ".join(text.split())
    return name_likeness.catalog_team(sport, league, text) or " ".join(text.split())


@lru_cache(maxsize=1 << 16)
def identify_price(raw_label: FuturesLabel) -> tuple[FuturesMarket, str]:
    """Identify the market and selection of a price.

    Raises `UnreadableError` if the texts are not a future.

    Examples
    --------
    >>> title = FuturesLabel("nba", "nba", "Championship Winner", "2026/27", selection="BOS Celtics")
    >>> market, selection = identify_price(title)
    >>> market.name, market.type, market.places, selection
    ('NBA Champion 2026-27', 'TEAM', 1, 'Boston Celtics')
    >>> wins = FuturesLabel("nba", "nba", "Season Wins", "2026/27", "", "Celtics", "over 52.5", 52.5)
    >>> market, selection = identify_price(wins)
    >>> market.name, selection
    ('NBA regular season wins 2026-27: Boston Celtics 52.5', 'Over 52.5')
    """
    sport = catalog.sport(raw_label.sport).id if raw_label.sport else ""
    named, rest = kinds.competition(raw_label.league, sport)
    league = catalog.leagues().get(named) or catalog.League(named, raw_label.league)
    sport = sport or league.sport
    text = f"{rest} {_without(kinds.without_season(raw_label.market), league)}".strip()
    kind = kinds.kind(text or "championship")
    season = kinds.season(raw_label.season, league.id) or kinds.season(raw_label.market, league.id, raw_label.start)
    type_ = _type(raw_label, kind, sport)
    subject, selection, line = _sides(raw_label, type_, sport, league.id)
    places = 1 if type_ in _SIDES else _places(raw_label.places, kind)
    market = FuturesMarket(
        _id(sport, league.id, kind.id, season, type_, subject, line, places),
        _name(league, kind, season, subject, line), sport, league.id, kind.id, season, type_, subject, line, places,
    )  # fmt: skip
    return market, selection


def _without(text: str, league: catalog.League) -> str:
    """Remove a leading league name from a market name."""
    for name in sorted((league.name, league.id, *league.aliases), key=len):
        plain, own = catalog.normalise(text).split(), catalog.normalise(name).split()
        if own and plain[: len(own)] == own and len(plain) > len(own):
            return " ".join(plain[len(own) :])
    return text


def _type(raw_label: FuturesLabel, kind: kinds.FutureKind, sport: str) -> str:
    """Determine the kind of selections of a market."""
    source_type = raw_label.type.strip().upper()
    first = catalog.normalise(raw_label.selection).split(" ", 1)[0]
    if kind.type in _SIDES or (kind.type == "PLAYER"):
        type_ = kind.type
    elif source_type in kinds.TYPES:
        type_ = source_type
    elif not kind.type and first in ("over", "under") and raw_label.line is not None:
        type_ = "OVER_UNDER"
    elif not kind.type and catalog.normalise(raw_label.selection) in ("yes", "no"):
        type_ = "YES_NO"
    else:
        type_ = "PLAYER" if sport in words.PERSONS else kind.type or "TEAM"
    return "PLAYER" if type_ == "TEAM" and sport in words.PERSONS else type_


def _sides(raw_label: FuturesLabel, type_: str, sport: str, league: str) -> tuple[str, str, float | None]:
    if not catalog.normalise(raw_label.selection):
        raise UnreadableError("the selection has no name")
    if type_ not in _SIDES:
        if type_ == "PLAYER" and catalog.normalise(raw_label.selection) not in _OTHERS:
            return "", " ".join(raw_label.selection.split()), None
        return "", contestant(sport, league, raw_label.selection), None
    line = raw_label.line  # a yes or no may have a line too: to win 45 games, to win 50
    text = catalog.normalise(raw_label.selection).split()
    numbers = set() if line is None else set(catalog.normalise(f"{line:g}").split())
    side = next((name for name in _SIDES[type_] if name.lower() in text), "")
    rest = [one for one in text if one != side.lower() and one not in numbers]
    subject = raw_label.subject.strip() or " ".join(rest)
    if not side and type_ == "YES_NO" and not raw_label.subject:
        side = "Yes"  # a plain list of teams under "to make the playoffs"
    if not side:
        raise UnreadableError(f"the selection is neither {' nor '.join(_SIDES[type_]).lower()}")
    if line is not None and not abs(line) < _MOST_LINE:
        raise UnreadableError("the line is not a number")
    if type_ == "OVER_UNDER" and (line is None or round(100.0 * line) % 50):
        raise UnreadableError("over/under needs a whole or half line")
    team = catalog.team(subject, sport, league) if subject else None  # it may be a player, so nothing is guessed
    subject_name = team.name if team is not None else " ".join(subject.split())
    return subject_name, side if type_ == "YES_NO" else f"{side} {line:g}", line


def _places(places: int | None, kind: kinds.FutureKind) -> int:
    if places is None:
        return kind.places
    if not 1 <= places <= _MOST_PLACES:
        raise UnreadableError("the number of places is not a positive integer")
    return places


def _id(
    sport: str, league: str, kind: str, season: str, type_: str, subject: str, line: float | None, places: int
) -> str:
    texts = [hash_text(text) for text in ("future", sport, league, kind, season, type_, catalog.normalise(subject))]
    threshold = 0 if line is None else round(100.0 * line)
    code = hexadecimal(mix(*texts, int(line is not None), threshold, places))[0]
    return f"{league or sport or 'any'}:{kind}:{code}"


def _name(league: catalog.League, kind: kinds.FutureKind, season: str, subject: str, line: float | None) -> str:
    head = " ".join(part for part in (league.name, kind.name, season) if part)
    tail = " ".join(part for part in (subject, "" if line is None else f"{line:g}") if part)
    return f"{head}: {tail}" if tail else head


def price_id(market: str, selection: str, book: str) -> str:
    """Return the id of one book's price of a selection; it does not depend on the price."""
    return hexadecimal(mix(hash_text(market), hash_text(catalog.normalise(selection)), hash_text(book)))[0]
