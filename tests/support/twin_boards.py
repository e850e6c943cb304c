"""Boards of equivalent outcomes: matches with mostly bets that several families offer, and many equal prices."""

import random
from typing import Any

from support.hazards import NOW, SECOND, Row

BOOKS = ("betmgm", "draftkings", "fanduel", "kalshi", "pinnacle")
_TEAMS = {"home": "Arsenal", "away": "Chelsea"}
_MARKETS: tuple[tuple[str, dict[str, float], float | None], ...] = (
    ("moneyline_3way", {"home": 0.4, "draw": 0.26, "away": 0.34}, None),
    ("asian_handicap", {"home": 0.4, "away": 0.6}, -0.5),
    ("asian_handicap", {"home": 0.66, "away": 0.34}, 0.5),
    ("asian_handicap", {"home": 0.24, "away": 0.76}, -1.5),
    ("draw", {"yes": 0.26, "no": 0.74}, None),
    ("total_goals", {"over": 0.92, "under": 0.08}, 0.5),
    ("first_team_to_score", {"home": 0.5, "none": 0.08, "away": 0.42}, None),
    ("home_clean_sheet", {"yes": 0.3, "no": 0.7}, None),
    ("team_total", {"over": 0.7, "under": 0.3}, 0.5),
)


def twin_board(rng: random.Random, *, live: bool, event: str = "match") -> list[Row]:
    """Prices of some books on all of the markets, without the outcomes that a book leaves out."""
    books = rng.sample(BOOKS, rng.randint(2, 4))
    return [
        row
        for book in books
        for name, probs, line in _MARKETS
        if rng.random() < 0.7
        for row in _rows(rng, book, name, probs, line, live=live, event=event)
    ]


def _rows(
    rng: random.Random, book: str, name: str, probs: dict[str, float], line: float | None, *, live: bool, event: str
) -> list[Row]:
    lone = rng.choice((None, None, *probs))  # exchanges often have one side only
    seen = NOW - rng.choice((0, 1, 2, 3, 4, 7, 9) if live else (0, 60, 200, 320)) * SECOND
    out = []
    for side, p in probs.items():
        if lone not in (None, side):
            continue
        odds = 1.0 / (p * rng.choice((0.97, 1.0, 1.02, 1.05)))
        row: dict[str, Any] = {
            "sportsbook": book, "event_id": event, "sport": "soccer", "league": "epl", "home_team": _TEAMS["home"],
            "away_team": _TEAMS["away"], "market_type": name, "market_segment": None,
            "selection": _TEAMS.get(side, "No goal" if side == "none" else side.title()), "selection_type": side,
            "odds_american": None, "odds_decimal": max(1.02, round(odds, 2 if odds < 4 else 1)),
            "line": -line if side == "away" and line is not None else line,
            "event_start_time": NOW + (-3600 if live else 7200) * SECOND, "is_live": live, "last_seen_at": seen,
            "odds_changed_at": None, "is_active": True, "player_name": None,
            "team_side": "away" if name == "team_total" else None, "flap": False, "confirmed": False,
        }  # fmt: skip
        out.append(row)
    return out
