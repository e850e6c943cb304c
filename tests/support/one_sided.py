"""Boards of one-sided prices: touchdown scorers of whom some books quote both sides, and others yes only."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from naive import one_sided as naive

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
BOOKS = (
    "fanduel", "draftkings", "betmgm", "caesars", "betonline", "lowvig", "bovada", "pinnacle", "corner_shop",
)  # fmt: skip
SIDES = ("Over", "Under")
Row = dict[str, Any]


def row(book: str, player: str, side: int, odds: float, **said: Any) -> Row:
    hours = said.get("hours", 8.0)
    return {
        "sportsbook": book, "event_id": said.get("event", "e"), "sport": "football", "league": "NFL",
        "home_team": "Chiefs", "away_team": "Bills", "market_type": "player_touchdowns", "player_name": player,
        "selection": SIDES[side], "line": 0.5, "odds_decimal": odds, "is_live": said.get("live", False),
        "last_seen_at": NOW, "event_start_time": None if hours is None else NOW + timedelta(hours=hours),
    }  # fmt: skip


def market(p: float, total: float) -> tuple[float, float]:
    """The odds of two outcomes whose power de-vig gives p, with a book sum."""
    low, high = 1e-3, 1.0
    for _ in range(200):  # of the exponent: the smaller, the larger the sum
        k = 0.5 * (low + high)
        low, high = (k, high) if p**k + (1.0 - p) ** k > total else (low, k)
    return p**-k, (1.0 - p) ** -k


def rows_of(book: str, player: str, odds: Sequence[float | None], **said: Any) -> list[Row]:
    return [row(book, player, side, d, **said) for side, d in enumerate(odds) if d is not None]


def quotes_of(rng: random.Random, *, large: bool = False) -> list[naive.Quote]:
    """A board of one kind: most books quote both sides of some players, and one side of others."""
    books = rng.sample(BOOKS, rng.randint(5 if large else 2, len(BOOKS)))
    usual = {book: rng.choice([1.03, 1.06, 1.09]) for book in books}
    shy = {book: rng.choice([0.1, 0.5, 1.0]) for book in books}
    out = []
    for player in range(rng.randint(8, 12) if large else rng.randint(2, 9)):
        x, side = rng.uniform(-1.2 if large else -2.5, 1.0), int(rng.random() < 0.2)
        for book in books:
            if rng.random() < 0.2:
                continue
            p = 1.0 / (1.0 + math.exp(-x - rng.gauss(0.0, 0.05)))
            odds: list[float | None] = list(market(p, usual[book] + rng.uniform(-0.01, 0.01)))
            if rng.random() < 0.05:
                odds = [2.0, 1.4] if rng.random() < 0.5 else [3.0, 3.0]  # adds up to too much or too little to vote
            if rng.random() < shy[book]:
                odds[1 - side] = None
            out.append(naive.Quote(f"Player {player}", book, (odds[0], odds[1]), rng.random() > 0.05))
    return out
