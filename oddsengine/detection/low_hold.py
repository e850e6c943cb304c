"""Low holds: markets whose best prices sum to one or slightly more, without a profit."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.columns import Bools, Floats, Ints, Longs, Words
from oddsengine.detection import opportunity_ids, settlement_differences
from oddsengine.detection import question as board
from oddsengine.detection.legs import on_main_lines, sharing, shown_hash, unconfirmed
from oddsengine.detection.market_fair import market_fair
from oddsengine.detection.question import Question
from oddsengine.detection.result_columns import HOLD_SIDE, LOW_HOLD_SCHEMA
from oddsengine.detection.search import Cases, Located, Opened, Search, cases
from oddsengine.detection.search import opened as open_cases
from oddsengine.detection.sweep import break_even


def find_hits(search: Search) -> Cases:
    """Return the markets and best prices with a hold between 0 and each user's maximum; arbitrages are none."""
    most = 1.0 + search.thresholds["max_hold"] + search.epsilon
    least = float(np.nextafter(break_even(search.epsilon), np.inf))
    return cases(search, "low_hold", most, least, distinct=False)


def over_cap(_: Search, hits: Cases) -> Bools:
    """No low hold is too good to be true."""
    return np.zeros(hits.market.size, bool)


def opened(search: Search, hits: Cases, moved: Bools) -> Opened:
    """What is open; figures as in `search.opened`."""
    return open_cases(search, hits, shown(search, hits, moved))


def located(_: Question, hits: Cases) -> Located:
    """Ids, markets and legs of what was found."""
    return Located(opportunity_ids.hexadecimal(hits.legs.id), hits.market[:, None], hits.legs.rows, hits.legs.cost)


def build_rows(question: Question, hits: Cases) -> pl.DataFrame:
    """Build result rows, ordered by ascending hold."""
    v, schema = question.prices, board.extended(LOW_HOLD_SCHEMA, question.board.extra)
    if not hits.market.size:
        return board.empty(schema)
    hold = np.maximum(hits.legs.total - 1.0, 0.0) * 100.0
    order = np.lexsort((hits.legs.id, hold))
    _, market, legs = hits.only(order)
    own = board.own_rows(question, market, legs.rows)
    base = question.facts(own)
    facts = board.market_facts(question, own, base)
    age = board.oldest(question, legs.rows)
    live = facts["is_live"]
    old, very = board.stale_flags(v, age, live)
    doubt = unconfirmed(v, legs.rows)
    # The legs: first sides of all cases, then second sides and so on.
    side, case = np.nonzero(legs.rows.T >= 0)
    row = legs.rows[case, side]
    ends, sharers = sharing(v, hits.who[order], market, legs.rows)
    leg = np.repeat(np.arange(row.size), np.diff(ends)[legs.rows.T.ravel() >= 0])
    sides = _sides(question, row, legs.cost[case, side], market_fair(v, market)[case, side], leg, sharers)
    columns: dict[str, Any] = {
        "id": opportunity_ids.hexadecimal(legs.id),
        "line": board.market_lines(question, market),
        "hold_percentage": hold[order],
        "all_books": board.books_of(question, case[leg], sharers, market.size),
        **{f"side{k + 1}": _placed(sides, case, side == k, market.size) for k in range(int(side.max()) + 1)},
        "oldest_odds_age_seconds": board.nullable(age),
        "possibly_stale": old,
        "warnings": board.warned(
            {"LIVE_GAME": live, "POTENTIALLY_STALE_ODDS": old, "VERY_STALE_ODDS": very, "UNCONFIRMED": doubt}
        ),
        "unconfirmed": doubt,
        **settlement_differences.columns(question, legs),
        **facts,
    }
    return board.frame(columns, schema, base)


def _placed(sides: pl.Series, case: Longs, here: Bools, cases: int) -> pl.Series:
    """One side of each case; null beyond a market's outcomes."""
    at = np.flatnonzero(here)
    if at.size == cases:
        return sides.slice(at[0], cases)
    place = np.full(cases, sides.len())
    place[case[at]] = at
    return pl.concat([sides, board.repeated(None, 1, sides.dtype)])[place]


def _sides(question: Question, row: Ints, cost: Floats, fair: Floats, leg: Longs, sharers: Ints) -> pl.Series:
    """Build each leg: its price and every book that offers it."""
    base, shared = question.facts(row), question.facts(sharers)
    position = board.row_name(shared.extra)
    texts = {name: shared[name] for name in ("sportsbook", "deep_link", "id", "max_bet", position)}
    links = pl.struct("sportsbook", "deep_link").filter(pl.col("deep_link").is_not_null())
    lists = board.grouped(leg, texts, row.size, "sportsbook", links.alias("deep_links"), "id", "max_bet", position)
    sides = {
        "books": lists["sportsbook"],
        "market_type": board.market_types(question, row),
        "line": board.row_lines(question, row),
        "implied_probability": cost,
        "fair_probability": board.nullable(fair),
        "deep_links": lists["deep_links"],
        "odds_ids": lists["id"],
        "max_bets": lists["max_bet"],
        "rows": lists[position],
    }
    return board.structs(sides, HOLD_SIDE, base)


def shown(search: Search, hits: Cases, moved: Bools) -> Words:
    """Hash what rows show apart from legs and hold: who shares each price, and fair probabilities to two digits.

    The lowest bit is 1 if a leg, or a row that shares its price, has `moved`.
    """
    v = search.prices
    return shown_hash(
        v, hits.legs.rows, market_fair(v, hits.market, hits.who), on_main_lines(v, hits.who, hits.market), moved,
        *sharing(v, hits.who, hits.market, hits.legs.rows),
    )  # fmt: skip
