"""Texts of simulated prices, and the inverse.

`Fixture` writes the texts of one event; `place` parses them, so that the true chances of any row of a board can be
looked up.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.bounds import excerpt, is_number
from oddsengine.simulate.simulated_leagues import (
    AWAY_TOTAL,
    FIRST_PROP,
    HOME_TOTAL,
    MONEYLINE,
    PART_TOTAL,
    SPREAD,
    TOTAL,
    SimulatedLeague,
)

Row = dict[str, Any]
OVER, UNDER = 0, 1
HOME, DRAW, AWAY = 0, 1, 2


class Place(NamedTuple):
    """What a price refers to: a ladder of an event, a side of it, a threshold in quarters."""

    event: int
    ladder: int
    side: int
    quarters: int


class Fixture(NamedTuple):
    """One event: league, teams and players."""

    id: str
    league: SimulatedLeague
    home: str
    away: str
    players: tuple[str, ...]
    start: datetime

    def row(self, ladder: int, side: int, quarters: int, *, generic: bool) -> Row:
        """Return the texts of one outcome; `generic` books use short names."""
        market, selection, kind, line = self._text(ladder, side, quarters / 4.0, generic=generic)
        row: Row = {
            "event_id": self.id,
            "sport": self.league.sport,
            "league": self.league.id,
            "home_team": self.home,
            "away_team": self.away,
            "event_start_time": self.start,
            "market_type": market,
            "selection": selection,
            "selection_type": kind,
        }
        if line is not None:
            row["line"] = line
        if ladder >= FIRST_PROP:
            row["player_name"] = self.players[ladder - FIRST_PROP]
            row["stat_category"] = self.league.stat
        return row

    def _text(self, ladder: int, side: int, line: float, *, generic: bool) -> tuple[str, str, str, float | None]:
        """Return market type, selection, selection type, and the line from this side."""
        names = self.league.other_names if generic else self.league.names
        if ladder == MONEYLINE:
            selection = (self.home, "Draw", self.away)[side]
            return "h2h" if generic else "moneyline", selection, ("home", "draw", "away")[side], None
        if ladder == SPREAD:
            handicap = (-line if side == OVER else line) + 0.0
            team = (self.home, self.away)[side]
            text = team if generic else f"{team} {handicap:+g}"
            return names[0], text, ("home", "away")[side], handicap
        word = ("Over", "Under")[side]
        text = f"{word} {line:g}"
        if ladder in {TOTAL, PART_TOTAL}:
            return names[1 if ladder == TOTAL else 2], word if generic else text, word.lower(), line
        if ladder in {HOME_TOTAL, AWAY_TOTAL}:
            team = self.home if ladder == HOME_TOTAL else self.away
            return "team_total", f"{team} {text}", word.lower(), line
        return f"player_{self.league.stat}", f"{self.players[ladder - FIRST_PROP]} {text}", word.lower(), line

    def place(self, event: int, market_type: str, selection: str, line: float | None) -> Place:
        """Return what a price of this event refers to; `line` is from its own side.

        Raises `ValueError` if it is no price of this event.
        """
        period, family = meaning(market_type, self.league.sport)
        sides = {self.home: HOME, self.away: AWAY} | ({"Draw": DRAW} if family == "moneyline" else {})
        team = next((side for name, side in sides.items() if selection.startswith(name)), None)
        if family == "moneyline" and team is not None and line is None:
            return Place(event, MONEYLINE, team, 0)
        if not is_number(line) or (4.0 * line) % 1.0:
            raise ValueError(f"line must be a multiple of a quarter, or None of moneylines, got {excerpt(line)}")
        quarters = round(4.0 * line)
        if family == "spread" and team is not None:
            return Place(event, SPREAD, OVER if team == HOME else UNDER, -quarters if team == HOME else quarters)
        words = selection.split()
        side = UNDER if "Under" in words else OVER if "Over" in words else None
        player = next((at for at, name in enumerate(self.players) if selection.startswith(name)), None)
        ladder = None
        if family == "total":
            ladder = TOTAL if period == catalog.FULL_GAME else PART_TOTAL
        elif family == "team_total" and team is not None:
            ladder = HOME_TOTAL if team == HOME else AWAY_TOTAL
        elif player is not None:
            ladder = FIRST_PROP + player
        if side is None or ladder is None:
            raise ValueError(f"selection must be one of {market_type} of {self.id}, got {excerpt(selection)}")
        return Place(event, ladder, side, quarters)


@lru_cache(maxsize=1024)
def meaning(market_type: str, sport: str) -> tuple[str, str]:
    """Return period and family of a market type."""
    kind = catalog.market_type(market_type, sport)
    return kind.period, kind.family
