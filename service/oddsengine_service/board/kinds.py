"""The kinds of opportunities: one definition of each, for lists, streams, alerts and tools."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from oddsengine_service.wire.columns import RowEncoding, american_of
from oddsengine_service.wire.opportunities import ARBITRAGE, EV, LOW_HOLD, MIDDLE, arbitrage_rows


class Sort(NamedTuple):
    """A column that a list can be sorted by, and whether its name alone means descending."""

    column: str
    descending: bool = False


class OpportunityKind(NamedTuple):
    """One kind of opportunity; the name is the same in the engine and in features."""

    name: str
    event_name: str  # in stream event names
    encoding: RowEncoding
    value: str  # column, in percent
    low: pl.Expr  # lowest and highest American price of a row
    high: pl.Expr
    sorts: Mapping[str, Sort]
    bounds: Sequence[tuple[str, str, str]]  # columns with the parameters for their lower and upper limits
    names: tuple[str, ...] = ("event_name",)  # columns that `q` searches in addition to the player
    age: str = "oldest_odds_age_seconds"
    alternate: str | None = "is_alternate_line"
    distinct_by: tuple[str, ...] = ("line", "team_side")  # columns that distinguish markets of one type


def _sides(*sides: str) -> tuple[pl.Expr, pl.Expr]:
    prices = [american_of(pl.col(side).struct.field("odds_american")) for side in sides]
    return pl.min_horizontal(prices), pl.max_horizontal(prices)


_LEGS = pl.col("legs").list.eval(american_of(pl.element().struct.field("odds_american"))).list
_PRICE = american_of(pl.col("odds_american"))
_START = Sort("event_start_time")
_PLACE = {"sport": Sort("sport"), "market": Sort("market_type")}
_CONFIDENCE, _KELLY, _BOOKS = Sort("confidence_score"), Sort("kelly_percent"), Sort("book_count")

KINDS: Mapping[str, OpportunityKind] = {
    kind.name: kind
    for kind in (
        OpportunityKind(
            "ev", "ev", EV, "ev_percentage", _PRICE, _PRICE,
            {
                "ev": Sort("ev_percentage"), "odds": Sort("odds_decimal"), "confidence": _CONFIDENCE,
                "confidence_score": _CONFIDENCE, "kelly": _KELLY, "kelly_percent": _KELLY,
                "start_time": _START, "time": _START,
                "book_count": _BOOKS, "books": _BOOKS, "still_there": Sort("still_there"),
            },
            (
                ("ev_percentage", "min_ev", "max_ev"), ("market_width", "min_market_width", "max_market_width"),
                ("market_width", "", "max_hold"), ("kelly_percent", "min_kelly", "max_kelly"),
                ("confidence_score", "min_confidence", "max_confidence"), ("still_there", "min_still_there", ""),
            ),
            names=("event_name", "selection"),
        ),
        OpportunityKind(
            "arbitrage", "arb", ARBITRAGE, "profit_percent", _LEGS.min(), _LEGS.max(),
            {
                "profit": Sort("profit_percent", descending=True), "start_time": _START, "time": _START, **_PLACE,
            },
            (("profit_percent", "min_profit", ""),),
        ),
        OpportunityKind(
            "low_hold", "low_hold", LOW_HOLD, "hold_percentage", *_sides("side1", "side2", "side3"),
            {"hold": Sort("hold_percentage"), "start_time": _START, **_PLACE},
            (("hold_percentage", "min_hold", "max_hold"),),
        ),
        OpportunityKind(
            "middles", "middles", MIDDLE, "expected_value", *_sides("side1", "side2"),
            {
                "quality": Sort("quality_score", descending=True), "ev": Sort("expected_value", descending=True),
                "probability": Sort("middle_probability", descending=True),
                "middle_size": Sort("middle_size", descending=True),
            },
            (("expected_value", "min_ev", "max_ev"), ("middle_size", "min_size", "")),
            age="odds_age_seconds", alternate=None, distinct_by=("side1.line", "team_side"),
        ),
    )
}  # fmt: skip


def encodings(rates: Mapping[str, float]) -> dict[str, RowEncoding]:
    """The encoding of each kind; `rates` are the operator's, for the largest sizes of arbitrages."""
    return {name: kind.encoding for name, kind in KINDS.items()} | (
        {"arbitrage": arbitrage_rows(rates)} if rates else {}
    )


EPSILON = 1e-7  # tolerance of thresholds, percent
EV_STEPS = (0.0, -2.0, -5.0, -10.0, -100.0)
PROFIT_STEPS = (0.5, 0.0, -2.0, -10.0, -99.0)


def step(value: float, steps: Sequence[float]) -> float:
    """The view threshold for a request: the first of the descending steps that is not above a value, else the last."""
    return next((each for each in steps if each <= value + EPSILON), steps[-1])
