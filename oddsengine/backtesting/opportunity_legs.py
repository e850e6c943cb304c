"""The legs of arbitrages and low holds as bets: what each is on, its price after fees, and what it takes.

**Thinnest first.** Legs are in the order in which they are sent: by the payout that their best level has, at most that
of `max_bet`; then those of unknown size, sportsbooks before exchanges, as a bet slip fails more often than an order
over an interface; equal ones as in the opportunity.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.trades import BET_FACTS
from oddsengine.board.state import Board
from oddsengine.detection.kinds import SIDES
from oddsengine.execution.ladders import Ladder, Ladders
from oddsengine.tables.casts import TIME
from oddsengine.tables.levels import BET_DELAY, BET_STEP, FEE, MIN_BET

_SHOWN = {"arbitrage": "profit_percent", "low_hold": "hold_percentage"}
_NOT_OF_PRICE = ("fair_probability", "push_probability")
_TEXTS = ("external_event_id", "selection_id", "deep_link")
LEGS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,  # of the opportunity
    "kind": pl.String,
    "shown": pl.Float64,  # percent: the profit, or the hold
    "leg": pl.Int64,  # its place in the opportunity
    **dict.fromkeys(BET_FACTS, pl.String),
    "event_start_time": TIME,
    "line": pl.Float64,
    **dict.fromkeys(_NOT_OF_PRICE, pl.Float64),  # null
    **dict.fromkeys(_TEXTS, pl.String),
    "sportsbook": pl.String,
    "odds_id": pl.String,
    "odds_decimal": pl.Float64,
    "net_odds": pl.Float64,
    "is_live": pl.Boolean,
    "max_bet": pl.Float64,  # this and the next two in the money of stakes
    MIN_BET: pl.Float64,
    BET_STEP: pl.Float64,
    FEE: pl.Float64,
    BET_DELAY: pl.Float64,
}
"""Columns of legs; a row is to an account what a +EV price is."""


def legs_of(kind: str, row: Mapping[str, Any], board: Board, ladders: Ladders) -> list[dict[str, Any]]:
    """Return the legs of a row of a view (`ARBITRAGE_SCHEMA`, `LOW_HOLD_SCHEMA`); none if a price is gone."""
    sides = row["legs"] if "legs" in row else [side for name in SIDES if (side := row[name])]
    prices = [_price(side) for side in sides]
    slots = board.rows.find_ids(np.array([int(price[-16:], 16) for price in prices], np.uint64))
    found = ladders.of_slots(board, slots)
    some = [ladder for ladder in found if ladder is not None and ladder.is_active and ladder.levels]
    if len(some) < len(prices):
        return []
    facts = board.facts(slots)
    bets = facts.frame()[facts.places(slots).tolist()].rows(named=True)
    legs = [
        _leg(bet, ladder)
        | {"id": row["id"], "kind": kind, "shown": row[_SHOWN[kind]], "leg": at, "odds_id": price}
        | {name: side[name] for name in ("market_type", "line")}  # in the names of results
        for at, (bet, ladder, price, side) in enumerate(zip(bets, some, prices, sides, strict=True))
    ]
    return sorted(legs, key=_thinnest)


def frame_of(legs: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return legs in `LEGS_SCHEMA`."""
    return pl.DataFrame(legs, schema=LEGS_SCHEMA)


def _price(side: Mapping[str, Any]) -> str:
    """The id of the price of a leg; of equal prices of a low hold, that which the side describes."""
    found: str = side["odds_id"] if "odds_id" in side else side["odds_ids"][side["rows"].index(side["row"])]
    return found


def _leg(bet: Mapping[str, Any], ladder: Ladder) -> dict[str, Any]:
    best = ladder.levels[0]
    size = best.units * best.cost if ladder.is_known else None
    limits = [limit for limit in (bet["max_bet"], size) if limit is not None]
    return {
        **{name: bet.get(name) for name in (*BET_FACTS, *_TEXTS, "sportsbook", "is_live", FEE)},
        **dict.fromkeys(_NOT_OF_PRICE),
        "odds_decimal": best.odds,
        "net_odds": 1.0 / best.cost,
        "max_bet": min(limits, default=None),
        MIN_BET: ladder.min_stake or None,
        BET_STEP: ladder.step or ladder.lot * best.price or None,
        BET_DELAY: ladder.delay / 1e6,
    }


def _thinnest(leg: Mapping[str, Any]) -> tuple[float, bool, int]:
    size = inf if leg["max_bet"] is None else leg["max_bet"] * leg["net_odds"]
    return size, size == inf and catalog.book(leg["sportsbook"]).exchange, leg["leg"]
