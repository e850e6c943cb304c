"""Arbitrages: the best admissible prices of all outcomes, from at least two books, sum to less than one."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.detect import ages, best_legs, edges, most_implied, unconfirmed
from oddsengine.find import board, ids
from oddsengine.find.board import Bools, Question
from oddsengine.find.search import Cases, Chosen, Search
from oddsengine.groups import Floats, Longs
from oddsengine.results import ARBITRAGE_SCHEMA


def find(search: Search) -> Cases:
    """Return the markets and legs at or above each caller's minimum profit, including those above the cap."""
    v, swept = search.view, search.swept
    most = most_implied(search.wants, search.epsilon)
    near = np.flatnonzero(swept.total <= most[swept.sum_who])
    who, market = swept.sum_who[near], swept.sum_market[near]
    legs = best_legs(v, who, market, distinct=True)
    keep = np.flatnonzero(legs.total <= most[who])
    who, market, rows = who[keep], market[keep], legs.rows[keep]
    named = ids.of_markets("arb", v.groups, search.hashes, market, rows)
    return Cases(who, market, Chosen(rows, legs.total[keep], named))


def over_cap(search: Search, hits: Cases) -> Bools:
    """Flag arbitrages above the plausibility cap."""
    most = search.wants.most_profit[hits.who] + search.epsilon
    return np.asarray(1.0 / hits.legs.total - 1.0 > most)


def published_ids(question: Question, hits: Cases) -> list[str]:
    """Return ids as published: event, market type and hash."""
    events = question.facts(hits.legs.rows[:, 0])["event_id"].to_list()
    types = board.market_types(question, hits.market).to_list()
    tags = ids.hexadecimal(hits.legs.id)
    return [f"{event}:{name}:{tag}" for event, name, tag in zip(events, types, tags, strict=True)]


def rows(question: Question, hits: Cases) -> pl.DataFrame:
    """Build result rows, ordered by descending profit."""
    v = question.view
    g = v.groups
    limits = v.limits
    hits = hits.only(np.flatnonzero(~over_cap(question, hits)))
    _, market, legs = hits
    first = legs.rows[:, 0]
    base = question.facts(first)
    held = legs.rows >= 0
    seen = np.where(held, g.seen[np.maximum(legs.rows, 0)], np.iinfo(np.int64).max)
    age = ages(v.now, board.oldest(seen))
    live = v.live[market] != 0
    main = v.main[market] != 0
    profit = 1.0 / legs.total - 1.0
    old, very = board.stale_flags(v, age, live)
    edge, best = _edge(question, market, legs)
    available = edge > 0.0
    doubt = unconfirmed(v, legs.rows)
    low = np.where(main & ~live, limits.arbitrage_low_implied_main, limits.arbitrage_low_implied)
    columns: dict[str, Any] = {
        "id": published_ids(question, hits),
        "event_id": base["event_id"],
        "sport": base["sport"].str.to_lowercase(),
        "league": base["league"],
        "market_type": board.market_types(question, market),
        "line": board.market_lines(question, market),
        "profit_percent": profit * 100.0,
        "implied_total": legs.total * 100.0,
        "start_time": base["event_start_time"],
        "is_alternate_line": ~main,
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
        "devig_book": board.references(question, market, best).set(pl.Series(~available), None),
        "player_name": base["player_name"],
        "legs": _legs(question, legs),
        "detected_at": question.moments(market.size),
        "book_count": v.books[market],
        **board.market_facts(question, first, base),
    }
    return board.frame(columns, ARBITRAGE_SCHEMA).sort(["profit_percent", "id"], descending=[True, False])


def _edge(question: Question, market: Longs, legs: Chosen) -> tuple[Floats, Longs]:
    """Return the edge of the best leg over the reference, nan without a reference, and its row."""
    v = question.view
    hits = edges(v, np.zeros(market.size, np.int64), market, np.array([-1.0]))
    of_row = np.full(v.groups.row.size, -np.inf)
    of_row[hits.row] = hits.fair * v.net[hits.row] - 1.0
    edge = np.where(legs.rows >= 0, of_row[np.maximum(legs.rows, 0)], -np.inf)
    at = np.arange(market.size), edge.argmax(axis=1)
    return np.where(np.isfinite(edge[at]), edge[at], np.nan), legs.rows[at]


def _legs(question: Question, legs: Chosen) -> pl.Series:
    """Build the legs of each arbitrage as a list of structs."""
    v = question.view
    held = legs.rows >= 0
    row = legs.rows[held]
    share = 1.0 / v.net[row]
    case = np.nonzero(held)[0]
    table = question.facts(row)
    flat = pl.DataFrame(
        {
            "sportsbook": table["sportsbook"],
            "selection": table["selection"],
            "selection_type": board.sides(question, row),
            "line": board.row_lines(question, row),
            "odds_american": table["odds_american"],
            "odds_decimal": table["odds_decimal"],
            "net_odds": v.net[row],
            "implied_probability": share,
            "stake_percent": 100.0 * share / legs.total[case],
            "timestamp": table["last_seen_at"],
            "external_event_id": table["external_event_id"],
            "selection_id": table["selection_id"],
            "market_id": table["market_id"],
            "odds_id": table["id"],
        }
    )
    return board.lists(case, flat.to_struct("legs"), legs.total.size)
