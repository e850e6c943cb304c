"""Checks of payloads whose parser is not ours: one that is not what `Payload` says is rejected as a whole.

Fields of a price are read, and listed as rejected where they are wrong, by the board; what is checked here is what is
read before that, and kept. `invalid_prices` lists invalid prices, so that the status of their feed can say so, and
`unknown_names` says why prices would never meet those of others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import inf
from numbers import Real
from typing import Any

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.tables.schema import MOST_CHARACTERS

_KEYS = ("event_id", "sportsbook", "market_type", "selection")  # texts of a price
_GAME_TEXTS = ("id", "sport", "league", "home", "away", "status")
_SCORE_TEXTS = ("event", "source", "period", "clock", "possession", "sport")
_FIRST, _LAST = 1970, 2100  # years


def check_payload(payload: Any) -> Payload:
    """Return a payload as it is. Raises `FeedError`, which names the first part of it that is not what it must be.

    Examples
    --------
    >>> check_payload(Payload(games=[Game("1", "basketball", "nba", "A", "B")])).games[0].home
    'A'
    >>> check_payload({"quotes": []})
    Traceback (most recent call last):
        ...
    oddsengine.feeds.payload.FeedError: a payload must be a Payload, got {'quotes': []}
    """
    if not isinstance(payload, Payload):
        raise _wrong("a payload", "a Payload", payload)
    for name in ("games", "quotes", "complete", "removed", "scores", "futures"):
        part = getattr(payload, name)
        if not isinstance(part, Sequence) or isinstance(part, str | bytes):
            raise _wrong(name, "a list", part)
    _each("games", payload.games, _check_game)
    _each("quotes", payload.quotes, _check_quote)
    _each("complete", payload.complete, _check_complete)
    _each("removed", payload.removed, lambda at, one: _text(at, "", one))
    _each("scores", payload.scores, _check_score)
    _each("futures", payload.futures, _check_row)
    for name in ("unmapped", "refused"):
        if not isinstance(counts := getattr(payload, name), Counter):
            raise _wrong(name, "a Counter", counts)
    if not all(_is_pair(key) for key in payload.unmapped):
        raise _wrong("unmapped", "counts by (book, market)", list(payload.unmapped))
    if not all(isinstance(key, str) for key in payload.refused):
        raise _wrong("refused", "counts by reason", list(payload.refused))
    _moment("moment", "", payload.moment)
    return payload


def invalid_prices(payload: Payload) -> list[dict[str, Any]]:
    """Return active quotes with an invalid price: not a finite number above 1, or not given at all.

    Examples
    --------
    >>> rows = [{"odds_decimal": 1.9}, {"odds_decimal": 0.9}, {"odds_american": -110}, {"is_active": False}, {}]
    >>> invalid_prices(Payload(quotes=rows))
    [{'odds_decimal': 0.9}, {}]
    """
    return [quote for quote in payload.quotes if quote.get("is_active", True) is not False and not _is_priced(quote)]


def unknown_names(games: Iterable[Game]) -> str:
    """Say what the catalog does not know of a game, if it knows none of them; empty if it does.

    Games of other sources are found by these names. Leagues without a list of teams are known by their name.

    Examples
    --------
    >>> unknown_names([Game("1", "basketball", "nba", "Celtics", "Lakers"), Game("2", "basketball", "", "A", "B")])
    ''
    >>> unknown_names([Game("1", "basketball", "nba", "A", "Los Angeles Lakers")])
    "the catalog does not know the team 'A' of nba"
    """
    unknown = [_unknown_name(game) for game in games]
    return "" if not all(unknown) or not unknown else f"the catalog does not know {unknown[0]}"


def _unknown_name(game: Game) -> str:
    """The first name of a game that the catalog does not know; empty if it knows all."""
    sport = catalog.sport(game.sport)
    if sport.id not in catalog.sports():
        return f"the sport {excerpt(game.sport)}"
    league = catalog.league(game.league, sport.id).id
    if league not in catalog.leagues():
        return f"the league {excerpt(game.league)} of {sport.id}"
    if any(team.league == league for team in catalog.teams()):
        for name in (game.home, game.away):
            if catalog.team(name, sport.id, league) is None:
                return f"the team {excerpt(name)} of {league}"
    return ""


def _is_priced(quote: Mapping[str, Any]) -> bool:
    price, american = quote.get("odds_decimal"), quote.get("odds_american")
    if price is None:
        return american is not None
    if isinstance(price, str):
        return True  # the board reads what texts can say
    return isinstance(price, Real) and not isinstance(price, bool) and bool(1.0 < price < inf)  # type: ignore[operator]


def _wrong(place: str, expected: str, value: object) -> FeedError:
    return FeedError(f"{place} must be {expected}, got {excerpt(value)}")


def _each(name: str, parts: Sequence[Any], check: Callable[[str, Any], None]) -> None:
    for at, part in enumerate(parts):
        check(f"{name}[{at}]", part)


def _text(at: str, name: str, value: Any, *, least: int = 1) -> None:
    if not (isinstance(value, str) and least <= len(value) <= MOST_CHARACTERS):
        expected = f"a text of {least or 'at most'} {'to ' if least else ''}{MOST_CHARACTERS:,} characters"
        raise _wrong(f"{at}.{name}".rstrip("."), expected, value)


def _moment(at: str, name: str, value: Any) -> None:
    if value is not None and not (
        isinstance(value, datetime) and value.utcoffset() is not None and _FIRST <= value.year <= _LAST
    ):
        raise _wrong(f"{at}.{name}".rstrip("."), f"a time with its zone, from {_FIRST} to {_LAST}", value)


def _check_game(at: str, game: Any) -> None:
    if not isinstance(game, Game):
        raise _wrong(at, "a Game", game)
    for name in _GAME_TEXTS:
        _text(at, name, getattr(game, name), least=int(name in ("id", "sport")))
    _moment(at, "start", game.start)


def _check_row(at: str, row: Any) -> None:
    if not (isinstance(row, dict) and all(isinstance(name, str) for name in row)):
        raise _wrong(at, "a dict with names of columns", row)
    if (ident := row.get("id")) is not None:
        _text(at, "id", ident)
    if (book := row.get("sportsbook")) is not None:
        _text(at, "sportsbook", book)


def _check_quote(at: str, quote: Any) -> None:
    _check_row(at, quote)
    for name in _KEYS:
        _text(at, name, quote.get(name))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _check_complete(at: str, pair: Any) -> None:
    if not (isinstance(pair, tuple) and len(pair) == 2 and (pair[1] is None or isinstance(pair[1], str))):
        raise _wrong(at, "(book, event id or None)", pair)
    _text(at, "", pair[0])


def _check_score(at: str, score: Any) -> None:
    if not isinstance(score, ScoreReading):
        raise _wrong(at, "a ScoreReading", score)
    for name in _SCORE_TEXTS:
        _text(at, name, getattr(score, name), least=int(name == "event"))
    for name in ("seen", "home", "away"):
        value = getattr(score, name)
        if not (isinstance(value, int) or (value is None and name != "seen")):
            raise _wrong(f"{at}.{name}", "a whole number", value)
