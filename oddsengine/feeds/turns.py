"""What polled sources have in common: a turn reads all prices of a part of the source, such as a league.

Prices of an earlier turn that are no longer listed are removed.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from oddsengine.feeds.payload import Game, Payload
from oddsengine.feeds.tracking import ListedIds

_LAST = datetime.max.replace(tzinfo=UTC)
_BET = (
    "sportsbook", "event_id", "market_type", "selection", "line", "player_name", "stat_category", "team_side",
    "market_segment", "is_live",
)  # fmt: skip


def _worth(row: dict[str, Any]) -> tuple[bool, float]:
    return row.get("is_active", True) is not False, row.get("odds_decimal") or 0.0


class Received(NamedTuple):
    """A body, and when it arrived."""

    body: bytes
    at: datetime


class Turn:
    """The games and prices of one turn.

    Examples
    --------
    >>> turn = Turn()
    >>> turn.put({"id": "1", "sportsbook": "a", "market_type": "moneyline"})
    >>> len(turn.payload(ListedIds(), "nba").quotes)
    1
    """

    def __init__(self) -> None:
        self.games: dict[str, Game] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.unmapped: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()

    def put(self, row: dict[str, Any], *, in_catalog: bool = True) -> None:
        """Add a price of a market that the catalog has or not; one with the id of another is left out."""
        if not in_catalog:
            self.unmapped[row["sportsbook"], row["market_type"]] += 1
        if row["id"] in self.rows:
            self.refused["a price given twice"] += 1
        else:
            self.rows[row["id"]] = row

    def _best(self) -> dict[str, dict[str, Any]]:
        """The rows by id; of several prices of a book for one bet, such as a lay and a handicap, the best."""
        best: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self.rows.values():
            bet = tuple(row.get(name) for name in _BET)
            known = best.setdefault(bet, row)
            if _worth(row) > _worth(known):
                best[bet] = row
        return {row["id"]: row for row in best.values()}

    def payload(self, listed: ListedIds, part: str, events: frozenset[str] | None = None) -> Payload:
        """Return all of it, and the ids of earlier prices of this part that are gone.

        A turn that is delivered event by event names those that it has now, for all of its payloads.
        """
        rows = self._best()
        within = "market_type" if events is None else "event_id"
        now = {id_: (row["sportsbook"], row[within]) for id_, row in rows.items()}
        removed = listed.removed(part, now, events, None)
        listed.replace(part, now, events, None)
        return Payload(
            list(self.games.values()), list(rows.values()), (), removed, self.unmapped, +self.refused
        )  # fmt: skip


class ListedGames(NamedTuple):
    """The games of some pages that are to be read, and what was left out of the pages."""

    games: Mapping[str, Game]
    refused: Counter[str]

    def by_start(self) -> list[Game]:
        """The games, the next start first."""
        return sorted(self.games.values(), key=lambda game: game.start or _LAST)


class GamePieces:
    """What was listed before, by part, of a source whose turns are delivered some games at a time."""

    def __init__(self) -> None:
        self._listed = ListedIds()
        self._events: dict[str, set[str]] = {}  # by part

    def piece(self, part: str, games: Mapping[str, Game], turn: Turn) -> Payload:
        """Return all prices of some games, and the ids of their earlier prices that are gone."""
        turn.games.update(games)
        self._events.setdefault(part, set()).update(games)
        return turn.payload(self._listed, part, frozenset(games))

    def end(self, part: str, listed: ListedGames) -> Payload:
        """Return what a turn ends with: its games, what was left out of its lists, and the prices of other games."""
        turn = Turn()
        turn.refused.update(listed.refused)
        turn.games.update(listed.games)
        unlisted = self._events.get(part, set()) - set(listed.games)
        self._events[part] = set(listed.games)
        return turn.payload(self._listed, part, frozenset(unlisted))
