"""What a source may have shown: links to the books' own sites, and texts without invisible characters.

A link is kept if it is https and its host is one of the book's (`catalog.links`); anything else is dropped and counted.
Format characters, which have no width or turn the direction of what follows, are removed from texts.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from oddsengine.catalog.links import leads_to
from oddsengine.feeds.payload import Game, Payload

DROPPED = "a link that does not lead to the book's site"
_TEXTS = (
    "sportsbook", "sportsbook_name", "league", "home_team", "away_team", "market_type", "selection", "player_name",
    "stat_category", "team_name", "market_name",
)  # fmt: skip


@lru_cache(maxsize=1 << 14)
def visible(text: str) -> str:
    r"""Remove format characters: zero-width spaces and joiners, marks and overrides of direction, soft hyphens.

    Examples
    --------
    >>> visible("Ars\u200benal"), visible("\u202eArsenal\u202c"), visible("Málaga")
    ('Arsenal', 'Arsenal', 'Málaga')
    """
    return text if text.isascii() else "".join([c for c in text if unicodedata.category(c) != "Cf"])


def displayable(payload: Payload) -> Payload:
    """Return a payload whose links and texts may be shown; dropped links are added to `refused`."""
    dropped: Counter[str] = Counter()
    quotes, futures = (_rows(rows, dropped) for rows in (payload.quotes, payload.futures))
    games = [_game(game) for game in payload.games]
    return payload._replace(quotes=quotes, futures=futures, games=games, refused=payload.refused + dropped)


def _game(game: Game) -> Game:
    texts = game.league, game.home, game.away
    if all(map(str.isascii, texts)):
        return game
    league, home, away = map(visible, texts)
    return game._replace(league=league, home=home, away=away)


def _rows(rows: Sequence[dict[str, Any]], dropped: Counter[str]) -> Sequence[dict[str, Any]]:
    """Rows that may be shown; column by column, because most texts are those of many rows and need no change."""
    changed: dict[int, dict[str, Any]] = {}
    for name in _TEXTS:
        texts = [row.get(name) for row in rows]
        shown = {text: visible(text) for text in _texts(texts) if not text.isascii()}
        if any(shown[text] != text for text in shown):
            for at, text in enumerate(texts):
                if isinstance(text, str) and shown.get(text, text) != text:
                    changed.setdefault(at, {})[name] = shown[text]
    for at, link in enumerate([row.get("deep_link") for row in rows]):
        if link is not None and not (isinstance(link, str) and leads_to(str(rows[at].get("sportsbook")), link)):
            changed.setdefault(at, {})["deep_link"] = None
            dropped[DROPPED] += bool(link)
    if not changed:
        return rows
    return [{**row, **changed[at]} if at in changed else row for at, row in enumerate(rows)]


def _texts(values: list[Any]) -> set[str]:
    """The distinct texts among some values, which may be anything."""
    try:
        distinct = set(values)
    except TypeError:  # a list or a mapping is among them
        distinct = {value for value in values if isinstance(value, str)}
    return {value for value in distinct if isinstance(value, str)}
