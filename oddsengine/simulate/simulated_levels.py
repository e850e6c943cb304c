"""Levels of simulated exchanges: how much can be staked at the best price, and at the next ones.

They depend on the seed, the row's names and its price only, so a price that is sent again has the same levels.
"""

from collections.abc import Collection, Iterable
from zlib import crc32

from oddsengine.simulate.simulated_labels import Row

_LEVELS = 4
_LEAST, _MOST = 20.0, 600.0  # stake of the best level
_STEP = 0.012  # between two levels, as a share of the winnings
_GROWTH = (1.2, 3.0)  # stake of a level relative to the one before


def add_levels(quotes: Iterable[Row], exchanges: Collection[str], seed: int) -> None:
    """Add `levels` and `max_bet` to the quotes of exchanges that have none.

    Examples
    --------
    >>> quote = {"sportsbook": "novig", "event_id": "e", "market_type": "moneyline", "selection": "A",
    ...          "odds_decimal": 2.5}
    >>> add_levels([quote], {"novig"}, 7)
    >>> [level["odds_decimal"] for level in quote["levels"]], quote["max_bet"] == quote["levels"][0]["stake"]
    ([2.5, 2.48, 2.46, 2.45], True)
    """
    for quote in quotes:
        odds = quote.get("odds_decimal")
        if odds is None or quote["sportsbook"] not in exchanges or "levels" in quote:
            continue
        names = "\n".join(str(quote.get(name)) for name in ("event_id", "market_type", "selection", "line"))
        drawn = crc32(f"{seed}\n{quote['sportsbook']}\n{names}\n{odds}".encode())
        stake = float(round(_LEAST * (_MOST / _LEAST) ** ((drawn & 0xFFFF) / 0xFFFF)))
        growth = _GROWTH[0] + (_GROWTH[1] - _GROWTH[0]) * (drawn >> 16) / 0xFFFF
        levels = []
        for number in range(_LEVELS):
            level = max(round(odds - number * max(_STEP * (odds - 1.0), 0.01), 2), 1.01)
            levels.append({"odds_decimal": level if number else odds, "stake": float(round(stake * growth**number))})
        quote["levels"], quote["max_bet"] = levels, levels[0]["stake"]
