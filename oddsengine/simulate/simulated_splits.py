"""Simulated betting splits: the shares of money and of bets on each side of a game, at two books."""

import hashlib
from datetime import datetime
from typing import Any

SOURCES = ("draftkings", "circa")  # a recreational book and one that sharp players like
EVERY_S = 300  # seconds between two snapshots
_SIZES = {
    "soccer": (1.5, 2.5), "hockey": (1.5, 6.0), "baseball": (1.5, 8.5), "basketball": (9.0, 225.0),
    "football": (7.0, 44.0),
}  # fmt: skip  # widest spread, usual total


def splits(seed: int, event_id: str, sport: str, book: str, now: datetime) -> dict[str, Any]:
    """Return the splits of a game's spread, total and moneyline: a preference per game, which drifts by the hour.

    The result depends only on the arguments, the time in intervals of `EVERY_S`.
    """
    step = int(now.timestamp()) // EVERY_S
    taste = _draw(seed, event_id)
    drift = _draw(seed, event_id, book, step // 12)
    noise = _draw(seed, event_id, book, step)
    sharp = 0.35 if book == SOURCES[1] else 0.0  # sharp money is on the side that the public avoids

    def shares(at: int, first: str, second: str) -> dict[str, dict[str, float]]:
        bets = 0.5 + 0.3 * (taste[at] - 0.5) + 0.15 * (drift[at] - 0.5) + 0.02 * (noise[at] - 0.5)
        money = bets + sharp * (0.5 - bets) + 0.1 * (drift[at + 4] - 0.5)
        one, other = (round(min(max(share, 0.02), 0.98), 4) for share in (money, bets))
        return {
            "handle_pct": {first: one, second: round(1.0 - one, 4)},
            "bets_pct": {first: other, second: round(1.0 - other, 4)},
        }

    apart, total = _SIZES.get(sport, (4.0, 40.0))
    line = round(2.0 * apart * (2.0 * taste[4] - 1.0)) / 2.0
    favourite = -110.0 - round(140.0 * taste[6])
    away, home = (favourite, -favourite - 20.0) if line < 0.0 else (-favourite - 20.0, favourite)
    return {
        "spread": {"away_odds": line, "home_odds": -line + 0.0, **shares(0, "away", "home")},
        "total": {"line": round(2.0 * total * (0.9 + 0.2 * taste[5])) / 2.0, **shares(1, "over", "under")},
        "moneyline": {"away_odds": away, "home_odds": home, **shares(2, "away", "home")},
    }


def _draw(*of: Any) -> list[float]:
    """Eight numbers in [0, 1) that depend only on the arguments."""
    digest = hashlib.blake2b("\x1f".join(map(str, of)).encode(), digest_size=32).digest()
    return [int.from_bytes(digest[at : at + 4], "little") / 2.0**32 for at in range(0, 32, 4)]
