"""Arbitrages: the best admissible prices of all outcomes, from at least two books, sum to less than one.

The price of an outcome may be that of an equivalent one (see `identity.linked_outcomes`): a back of the home side in a
three-way market and the other side with half a goal, which is its lay, are both sides of the spread.
"""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.columns import Bools, Floats, Longs
from oddsengine.detection import opportunity_ids, settlement_differences
from oddsengine.detection import question as board
from oddsengine.detection.edges import edges
from oddsengine.detection.legs import unconfirmed
from oddsengine.detection.question import Question
from oddsengine.detection.result_columns import ARBITRAGE_SCHEMA, LEG
from oddsengine.detection.search import BestPrices, Cases, Located, Opened, Search, cases
from oddsengine.detection.search import opened as open_cases
from oddsengine.detection.sweep import most_implied
from oddsengine.identity.groups import distinct


def find_hits(search: Search) -> Cases:
    """Return the markets and legs at or above each user's minimum profit, including those above the cap."""
    return cases(search, "arb", most_implied(search.thresholds, search.epsilon), distinct=True)


def over_cap(search: Search, hits: Cases) -> Bools:
    """Flag arbitrages above the plausibility cap."""
    most = search.thresholds["max_profit"][hits.who] + search.epsilon
    return np.asarray(1.0 / hits.legs.total - 1.0 > most)


def opened(search: Search, hits: Cases, _: Bools) -> Opened:
    """What is open; figures as in `search.opened`."""
    return open_cases(search, hits.only(np.flatnonzero(~over_cap(search, hits))))


def located(question: Question, hits: Cases) -> Located:
    """Ids, markets and legs of what was found."""
    return Located(
        published_ids(question, hits).to_list(), hits.market[:, None], hits.legs.rows, hits.legs.cost
    )  # fmt: skip


def published_ids(question: Question, hits: Cases) -> pl.Series:
    """Return ids as published: event, market type and hash."""
    own = board.own_rows(question, hits.market, hits.legs.rows)
    tags = pl.Series(opportunity_ids.hexadecimal(hits.legs.id), dtype=pl.String)
    return question.facts(own)["event_id"] + ":" + board.market_types(question, own) + ":" + tags


def build_rows(question: Question, hits: Cases) -> pl.DataFrame:
    """Build result rows, ordered by descending profit."""
    v, schema = question.prices, board.extended(ARBITRAGE_SCHEMA, question.board.extra)
    limits = v.limits
    hits = hits.only(np.flatnonzero(~over_cap(question, hits)))
    if not hits.market.size:
        return board.empty(schema)
    ident, profit = published_ids(question, hits), 1.0 / hits.legs.total - 1.0
    order = np.lexsort((np.argsort(np.argsort(ident.to_list())), -100.0 * profit))
    hits, ident, profit = hits.only(order), ident[order], profit[order]
    _, market, legs = hits
    own = board.own_rows(question, market, legs.rows)
    base = question.facts(own)
    facts = board.market_facts(question, own, base)
    age = board.oldest(question, legs.rows)
    live, other = facts["is_live"], facts["is_alternate_line"]
    old, very = board.stale_flags(v, age, live)
    edge, best = _edge(question, legs)
    available = edge > 0.0
    doubt = unconfirmed(v, legs.rows)
    low = np.where(other | live, limits.arbitrage_low_implied, limits.arbitrage_low_implied_main)
    columns: dict[str, Any] = {
        "id": ident,
        "line": board.market_lines(question, market),
        "profit_percent": profit * 100.0,
        "implied_total": legs.total * 100.0,
        "possibly_stale": old,
        "oldest_odds_age_seconds": board.nullable(age),
        "warnings": board.warned(
            {
                "LIVE_GAME": live,
                "LIVE_HIGH_PROFIT_SUSPICIOUS": live & (profit > limits.arbitrage_live_suspicious),
                "LOW_IMPLIED_TOTAL": legs.total < low,
                "POTENTIALLY_STALE_ODDS": old,
                "VERY_STALE_ODDS": very,
                "UNCONFIRMED": doubt,
            }
        ),
        "unconfirmed": doubt,
        "ev_available": available,
        "ev_percentage": board.nullable(np.where(available, edge * 100.0, np.nan)),
        "sharp_book": question.labels.books[
            np.where(available, board.references(question, v.groups.market[best].astype(np.int64), best), board.NOBODY)
        ],
        "legs": _legs(question, legs),
        **settlement_differences.columns(question, legs),
        **facts,
    }
    return board.frame(columns, schema, base)


def _edge(question: Question, legs: BestPrices) -> tuple[Floats, Longs]:
    """Return the edge of the best leg over the reference, nan without a reference, and its row."""
    v = question.prices
    market = distinct(v.groups.market[legs.rows[legs.rows >= 0]]).astype(np.int64)
    hits = edges(v, np.zeros(market.size, np.int64), market, np.array([-1.0]))
    of_row = np.full(v.groups.row.size, -np.inf)
    of_row[hits.row] = hits.fair * v.columns.net[hits.row] - 1.0
    edge = np.where(legs.rows >= 0, of_row[np.maximum(legs.rows, 0)], -np.inf)
    at = np.arange(edge.shape[0]), edge.argmax(axis=1)
    return np.where(np.isfinite(edge[at]), edge[at], np.nan), legs.rows[at]


def _legs(question: Question, legs: BestPrices) -> pl.Series:
    """Build the legs of each arbitrage as a list of structs."""
    held = legs.rows >= 0
    row, share = legs.rows[held], legs.cost[held]
    case = np.nonzero(held)[0]
    base = question.facts(row)
    flat = board.structs(
        {
            "market_type": board.market_types(question, row),
            "selection_type": board.sides(question, row),
            "line": board.row_lines(question, row),
            "net_odds": legs.odds[held],
            "implied_probability": share,
            "stake_percent": 100.0 * share / legs.total[case],
            "last_seen_at": base["last_seen_at"],
            "odds_id": base["id"],
        },
        LEG,
        base,
    )
    return board.lists(case, flat, legs.total.size)
