"""A kind of opportunity that the engine does not have: prices well above the next best book's.

Importing it registers it, so that only processes of their own do.
"""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.detection import kinds, opportunity_ids
from oddsengine.detection import question as board
from oddsengine.detection.kinds import Bound, Figure, Kind, Order, Threshold
from oddsengine.detection.leg_times import ages
from oddsengine.detection.question import Question
from oddsengine.detection.search import FIGURES, Located, Opened, Search
from oddsengine.maths.odds import decimal_to_american

_TIME = pl.Datetime("us", "UTC")
SCHEMA = {
    "event_name": pl.String, "selection": pl.String, "line": pl.Float64, "sportsbook": pl.String,
    "odds_american": pl.Float64, "odds_decimal": pl.Float64, "lead_percent": pl.Float64, "next_odds": pl.Float64,
    "player_name": pl.String, "stat_category": pl.String, "is_player_prop": pl.Boolean,
    "is_alternate_line": pl.Boolean, "is_live": pl.Boolean, "event_start_time": _TIME,
    "oldest_odds_age_seconds": pl.Float64, "warnings": pl.List(pl.String), "unconfirmed": pl.Boolean,
    "sport": pl.String, "league": pl.String, "home_team": pl.String, "away_team": pl.String,
    "team_side": pl.String, "market_segment": pl.String, "market_type": pl.String, "detected_at": _TIME,
    "id": pl.String, "event_id": pl.String, "odds_id": pl.String,
}  # fmt: skip


class Standouts(NamedTuple):
    """Users, rows of the groups, the next best odds, leads as fractions, and ids."""

    who: Any
    row: Any
    beaten: Any
    lead: Any
    id: Any

    def only(self, keep: Any) -> "Standouts":
        return Standouts._make(column[keep] for column in self)


def find(search: Search) -> Standouts:
    v, g = search.prices, search.prices.groups
    who, row, beaten = list[int](), list[int](), list[float]()
    segment = g.segments[g.market] + g.side
    for user, least in enumerate(search.thresholds["min_lead"].tolist()):
        if not np.isfinite(least):
            continue
        books = v.users.wanted[user][g.book] != 0
        rows = np.flatnonzero((v.columns.reason == 0) & books & (search.scope.markets[g.market] != 0))
        rows = rows[np.lexsort((g.book[rows], -v.columns.net[rows], segment[rows]))]
        for same in np.split(rows, np.flatnonzero(np.diff(segment[rows])) + 1):
            others = [at for at in same.tolist() if g.book[at] != g.book[same[0]]]
            if others and v.columns.net[same[0]] / v.columns.net[others[0]] - 1.0 >= least - search.epsilon:
                who.append(user)
                row.append(int(same[0]))
                beaten.append(float(v.columns.net[others[0]]))
    at = np.array(row, np.int32)
    named = opportunity_ids.of_prices("standout", g, search.hashes, g.market[at].astype(np.int64), at)
    return Standouts(np.array(who, np.int64), at, np.array(beaten), v.columns.net[at] / np.array(beaten) - 1.0, named)


def opened(search: Search, found: Standouts, _: Any) -> Opened:
    v = search.prices
    figures = np.full((found.row.size, FIGURES), np.nan)
    figures[:, 0], figures[:, 1], figures[:, 2] = found.lead, v.columns.net[found.row], found.beaten
    figures[:, -1] = v.columns.doubt[found.row]
    return Opened(found.who, found.id, v.groups.market[found.row].astype(np.int64), found.row[:, None], figures)


def located(question: Question, found: Standouts) -> Located:
    row = found.row[:, None]
    market = question.prices.groups.market[row].astype(np.int64)
    return Located(opportunity_ids.hexadecimal(found.id), market, row, 1.0 / question.prices.columns.net[row])


def build(question: Question, found: Standouts) -> pl.DataFrame:
    v = question.prices
    found = found.only(np.lexsort((found.id, -found.lead)))
    base = question.facts(found.row)
    return board.frame(
        {
            **board.market_facts(question, found.row, base),
            "id": opportunity_ids.hexadecimal(found.id),
            "line": board.row_lines(question, found.row),
            "lead_percent": 100.0 * found.lead,
            "next_odds": found.beaten,
            "odds_american": decimal_to_american(v.groups.odds[found.row]),
            "oldest_odds_age_seconds": board.nullable(ages(v.now, v.groups.seen[found.row])),
            "warnings": board.warned({"UNCONFIRMED": v.columns.doubt[found.row] != 0}),
            "unconfirmed": v.columns.doubt[found.row] != 0,
            "odds_id": base["id"],
        },
        SCHEMA,
        base,
    )


STANDOUT = Kind(
    "standout", SCHEMA, find, build, opened, located, lambda _, found: np.zeros(found.row.size, bool), "",
    thresholds=(Threshold("min_lead", 2.0, np.inf, least=0.0, steps=(2.0, 1.0, 0.0), fallback=1.0),),
    value="lead_percent",
    figures=(
        Figure("lead_percent", lambda figures: figures[0] * 100.0), Figure("next_odds", lambda figures: figures[2]),
    ),
    odds=(1,), one="standout", title="Standouts", about="Prices well above those of every other book.", measure="lead",
    none="No price stands out at the moment.",
    formula="lead_percent = (odds_decimal / next_odds - 1) x 100",
    american=("odds_american",),
    orders={"lead": Order("lead_percent"), "start_time": Order("event_start_time")},
    bounds=(Bound("lead_percent", "min_lead", "max_lead"),),
    explained={"lead_percent": "lead_percent", "next_odds": "next_odds"},
)  # fmt: skip
kinds.register(STANDOUT)
