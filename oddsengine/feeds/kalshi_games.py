"""The games of Kalshi: milestones, the events that belong to each, and the names of teams and players.

A milestone is one game: its start, teams and events. Tickers are ids and never read: their dates are those of New York,
and their teams run together. An event that belongs to several games is left out. Where a milestone does not say who is
home (tennis, fights), the sides are the two of the winner event, in the order of the title.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.feeds.decoding import moment
from oddsengine.feeds.kalshi_format import Market, Milestone, is_draw
from oddsengine.feeds.kalshi_series import league_of, sport_of
from oddsengine.feeds.payload import Game

_STATUSES = {
    "scheduled": "upcoming", "created": "upcoming", "time-tbd": "upcoming", "inprogress": "live", "live": "live",
    "complete": "ended", "closed": "ended", "postponed": "postponed", "cancelled": "cancelled",
}  # fmt: skip


class _OpenGame(NamedTuple):
    """A game with an open winner event."""

    milestone: Milestone
    winners: str  # series of winners
    sport: str


class KalshiGames:
    """The games of one feed, by milestone.

    Examples
    --------
    >>> games = KalshiGames()
    >>> games.need(["a"]), games.unnamed
    (True, {'a': None})
    """

    def __init__(self) -> None:
        self.of_event: dict[str, str] = {}  # event -> its game
        self.names: dict[str, str] = {}  # of targets; empty if the source has none
        self.unnamed: dict[str, None] = {}  # targets whose names are needed
        self._games: dict[str, _OpenGame] = {}

    def replace(
        self, winners: str, events: set[str], milestones: Iterable[Milestone], refused: Counter[str]
    ) -> list[str]:  # fmt: skip
        """Take the milestones of the open events of a series of winners; games that have none are dropped.

        Returns the games.
        """
        games = {one.id: one for one in milestones if events & {*one.events}}
        refused["a game without a milestone"] += len(events - {event for one in games.values() for event in one.events})
        before = {ident for ident, game in self._games.items() if game.winners == winners}
        for ident in before - games.keys():
            del self._games[ident]
        for ident, one in games.items():
            self._games[ident] = _OpenGame(one, winners, sport_of(one.type))
        owners: dict[str, list[str]] = {}
        for ident, game in self._games.items():
            for event in game.milestone.events:
                owners.setdefault(event, []).append(ident)
        self.of_event = {event: idents[0] for event, idents in owners.items() if len(idents) == 1}
        refused["an event of several games"] += sum(
            1 for idents in owners.values() if len(idents) > 1 and games.keys() & {*idents}
        )
        return list(games)

    def winners(self, ident: str) -> str:
        """Return the series of winners of a game."""
        return self._games[ident].winners

    def events(self, ident: str) -> list[str]:
        """Return the events that belong to a game only."""
        return [event for event in self._games[ident].milestone.events if self.of_event.get(event) == ident]

    def game(self, ident: str, markets: Sequence[Market], now: datetime | None) -> Game | None:
        """Return a game, of whose winner the markets are; None if its teams are not known."""
        game = self._games[ident]
        sides = self.sides(ident, markets)
        if len(sides) != 2:
            return None
        league = league_of(game.winners)
        home, away = (self._team(game, side, league, markets) for side in sides)
        if not (home and away):
            return None
        start = moment(game.milestone.start_date)
        status = _STATUSES.get(game.milestone.details.status, "")
        if status in ("", "upcoming") and now is not None and start is not None and now >= start:
            status = "live"
        return Game(ident, game.sport, league, home, away, start, status)

    def sides(self, ident: str, markets: Sequence[Market]) -> list[str]:
        """Return the targets of the home and the away side; empty if they are not known."""
        game = self._games[ident]
        details = game.milestone.details
        if details.home_team_id and details.away_team_id:
            return [details.home_team_id, details.away_team_id]
        targets = {
            one: market.yes_sub_title or "" for market in markets if not is_draw(market) for one in market.targets
        }
        if len(targets) != 2:
            return []
        title = catalog.normalise(game.milestone.title)

        def place(one: str) -> tuple[int, str]:
            words = catalog.normalise(self.names.get(one) or targets[one]).split()
            return title.find(words[-1]) if words else -1, one

        return sorted(targets, key=place)

    def need(self, targets: Iterable[str]) -> bool:
        """Ask for names that were never asked for; return whether there are any."""
        wanted = [one for one in targets if one not in self.names]
        self.unnamed |= dict.fromkeys(wanted)
        return bool(wanted)

    def learn(self, names: Mapping[str, str]) -> None:
        """Take names of targets."""
        self.names |= names
        self.unnamed = {ident: None for ident in self.unnamed if ident not in names}

    def _team(self, game: _OpenGame, target: str, league: str, markets: Sequence[Market]) -> str:
        texts = (one.yes_sub_title for one in markets if target in one.targets)
        name = self.names.get(target) or next((text for text in texts if text), "")
        return _full_name(name, game.sport, league)


def _full_name(name: str, sport: str, league: str) -> str:
    """Complete a name such as "New York J", a city and the first letter of the team."""
    words = name.split()
    if len(words) < 2 or len(words[-1]) != 1 or not league:
        return name
    fitting = [
        team.name for team in catalog.teams()
        if (team.sport, team.league) == (sport, league) and team.name.startswith(name)
    ]  # fmt: skip
    return fitting[0] if len(fitting) == 1 else name
