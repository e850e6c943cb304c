"""The games of all sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from oddsengine.feeds import Game, Payload

MOST_GAMES = 50_000  # of a source


@dataclass
class SourceGame:
    """A game of a source, as of its last payload."""

    game: Game
    event: str | None = None  # our id; None if the game is quarantined or excluded
    books: set[str] = field(default_factory=set)  # with prices under that id


class SourceGames:
    """The games of all sources, as each was last mentioned; only for the writer's thread."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], SourceGame] = {}  # by source and its id
        self._mentioned: dict[str, dict[str, None]] = {}  # source -> its ids, the last mentioned at the end

    def adopt(self, key: tuple[str, str], game: Game, event: str) -> None:
        """Add a game that another hub has matched."""
        self.known[key] = SourceGame(game, event)
        self._mentioned.setdefault(key[0], {})[key[1]] = None

    def of(self, source: str, payload: Payload) -> dict[str, Game]:
        """Return the games that a payload lists or mentions. Quotes of games that are not known cannot be matched."""
        mentioned = {str(quote["event_id"]) for quote in payload.quotes}
        mentioned.update(event for _, event in payload.complete if event is not None)
        mentioned.update(reading.event for reading in payload.scores)
        known = {event: self.known[source, event].game for event in mentioned if (source, event) in self.known}
        return known | listed_games(payload)

    def remember(self, source: str, games: Mapping[str, Game], ours: Mapping[str, str], payload: Payload) -> None:
        """Remember the games of a payload, our ids of those that are matched, and which books quote them."""
        mentioned = self._mentioned.setdefault(source, {})
        for event, game in games.items():
            mentioned.pop(event, None)
            mentioned[event] = None
            known = self.known.setdefault((source, event), SourceGame(game))
            known.game = game
            if known.event != ours.get(event):
                known.event, known.books = ours.get(event), set()
        for quote in payload.quotes:
            if quote["event_id"] in ours:
                self.known[source, quote["event_id"]].books.add(quote["sportsbook"])

    def drop(self, source: str, event: str) -> SourceGame:
        """Drop a source's game."""
        del self._mentioned[source][event]
        return self.known.pop((source, event))

    def surplus(self, source: str, payload: Payload) -> list[str]:
        """The games that a source mentioned longest ago, of which it would have too many with a payload."""
        known, new = self._mentioned.get(source, {}), {game.id for game in payload.games}
        excess = len(known) + sum(event not in known for event in new) - MOST_GAMES
        return list(islice((event for event in known if event not in new), max(excess, 0)))


def listed_games(payload: Payload) -> dict[str, Game]:
    """The games that a payload lists."""
    return {game.id: game for game in payload.games[:MOST_GAMES]}


def refused_games(payload: Payload) -> dict[str, int]:
    """How many games of a payload are too many, by reason."""
    excess = len(payload.games) - MOST_GAMES
    return {f"more than {MOST_GAMES:,} games in a payload": excess} if excess > 0 else {}
