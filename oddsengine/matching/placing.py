"""Quotes of a source under the ids of matched events, with one name for each player of an event."""

from collections.abc import Iterable, Mapping
from typing import Any

from oddsengine.matching.persons import match_player

_MOST_PLAYERS = 200  # of an event, that a new name is compared with


class PlayerNames:
    """The name of each player of an event, from the names that sources give."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, str]] = {}  # event -> name as quoted -> canonical name

    def add(self, event: str, name: str) -> None:
        """Take a name as canonical."""
        self._names.setdefault(event, {})[name] = name

    def canonical(self, event: str, name: str) -> str:
        """The event's name of a player; his own if none, or more than one, matches.

        Only names without initials are merged: two brothers may share an initial.
        """
        names = self._names.setdefault(event, {})
        canonical = names.get(name)
        if canonical is None and len(names) >= _MOST_PLAYERS:
            return name
        if canonical is None:
            whole = {text for text in names.values() if all(len(word.strip(".")) > 1 for word in text.split())}
            canonical = names[name] = match_player(name, whole).name or name
        return canonical

    def forget(self, event: str) -> None:
        """Forget the players of an event."""
        self._names.pop(event, None)


def placed_quotes(
    quotes: Iterable[Mapping[str, Any]], events: Mapping[str, str], players: PlayerNames
) -> list[dict[str, Any]]:
    """Return the quotes of matched games; `events` has the id of the event by the source's id."""
    placed = []
    for quote in quotes:
        event = events.get(quote["event_id"])
        if event is not None:
            name = quote.get("player_name")
            named = {"player_name": players.canonical(event, str(name))} if name else {}
            placed.append({**quote, "event_id": event, **named})
    return placed
