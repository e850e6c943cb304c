"""Low holds: markets whose best prices sum to one or slightly more."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.columns import spans
from oddsengine.detect import market_fair, since, unconfirmed
from oddsengine.find import board, ids
from oddsengine.find.board import Bools, Question
from oddsengine.find.search import Cases, Search, cases
from oddsengine.groups import NO_TIME, Floats, Ints, Longs
from oddsengine.results import HOLD_ODDS, HOLD_SIDE, LOW_HOLD_SCHEMA


def find(search: Search) -> Cases:
    """Return the markets and best prices with a hold between 0 and each caller's maximum."""
    most = 1.0 + search.wants.hold + search.epsilon
    return cases(search, "low_hold", most, 1.0 - search.epsilon, distinct=False)


def rows(question: Question, hits: Cases) -> pl.DataFrame:
    """Build result rows, ordered by ascending hold."""
    if not hits.market.size:
        return board.empty(LOW_HOLD_SCHEMA)
    v = question.view
    hold = np.maximum(hits.legs.total - 1.0, 0.0) * 100.0
    order = np.lexsort((hits.legs.id, hold))
    _, market, legs = hits.only(order)
    base = question.facts(legs.rows[:, 0])
    facts = board.market_facts(question, legs.rows[:, 0], base)
    age = board.oldest(question, legs.rows)
    live = facts["is_live"]
    old, very = board.stale_flags(v, age, live)
    doubt = unconfirmed(v, legs.rows)
    # The legs: first sides of all cases, then second sides and so on.
    side, case = np.nonzero(legs.rows.T >= 0)
    row = legs.rows[case, side]
    leg, sharing = _sharing(question, legs.rows, case, row)
    sides = _sides(question, row, market_fair(v, market)[case, side], leg, sharing)
    columns: dict[str, Any] = {
        "id": ids.hexadecimal(legs.id),
        "line": board.market_lines(question, market),
        "hold_percentage": hold[order],
        "all_books": board.books_of(question, case[leg], sharing, market.size),
        **{f"side{k + 1}": _placed(sides, case, side == k, market.size) for k in range(int(side.max()) + 1)},
        "oldest_odds_age_seconds": board.nullable(age),
        "possibly_stale": old,
        "warnings": board.warned(
            {"LIVE_GAME": live, "POTENTIALLY_STALE_ODDS": old, "VERY_STALE_ODDS": very, "UNCONFIRMED": doubt}
        ),
        "unconfirmed": doubt,
        **facts,
    }
    return board.frame(columns, LOW_HOLD_SCHEMA, base)


def _placed(sides: pl.Series, case: Longs, here: Bools, cases: int) -> pl.Series:
    """One side of each case; null beyond a market's outcomes."""
    at = np.flatnonzero(here)
    if at.size == cases:
        return sides.slice(at[0], cases)
    place = np.full(cases, sides.len())
    place[case[at]] = at
    return pl.concat([sides, board.repeated(None, 1, HOLD_SIDE)])[place]


def _sides(question: Question, row: Ints, fair: Floats, leg: Longs, sharing: Longs) -> pl.Series:
    """Build each leg: its price and every book that offers it."""
    base, shared = question.facts(row), question.facts(sharing)
    texts = {name: shared[name] for name in ("sportsbook", "deep_link", "id")}
    links = pl.struct("sportsbook", "deep_link").filter(pl.col("deep_link").is_not_null())
    lists = board.grouped(leg, texts, row.size, "sportsbook", links.alias("deep_links"), "id")
    odds = {
        "american": base["odds_american"],
        "decimal": base["odds_decimal"],
        "implied_probability": 1.0 / question.view.net[row],
        "fair_probability": board.nullable(fair),
    }
    sides = {
        "books": lists["sportsbook"],
        "line": board.row_lines(question, row),
        "odds": board.structs(odds, HOLD_ODDS),
        "deep_links": lists["deep_links"],
        "odds_ids": lists["id"],
    }
    return board.structs(sides, HOLD_SIDE, base)


def _sharing(question: Question, legs: Ints, case: Longs, row: Ints) -> tuple[Longs, Longs]:
    """Return (leg, row) of the rows with the price of a leg that pass the timing rules with the others of its case."""
    v = question.view
    g = v.groups
    segment = np.searchsorted(g.rows, row, side="right") - 1
    start, stop = g.rows[segment].astype(np.int64), g.rows[segment + 1].astype(np.int64)
    of, at = np.repeat(np.arange(row.size), stop - start), spans(start, stop)
    same = (v.offer[at] != 0) & (v.net[at] == v.net[row][of])
    if v.timed:
        limits, playing = v.limits, (v.live[g.market[row]] != 0)[of]
        times = g.seen[np.maximum(legs, 0)]
        timed = (legs >= 0) & (times != NO_TIME)
        seen = g.seen[at]
        has_time = seen != NO_TIME
        # Without a time on any leg, the row's own time decides.
        first = np.where(timed, times, np.iinfo(np.int64).max).min(axis=1)[case][of]
        last = np.where(timed, times, np.iinfo(np.int64).min).max(axis=1)[case][of]
        first, last = np.minimum(seen, first, where=has_time, out=first), np.maximum(seen, last)
        gap = np.where(playing, round(limits.stale_live_gap_s * 1e6), round(limits.stale_prematch_gap_s * 1e6))
        near = (last <= first) | (last - np.minimum(first, last) <= gap)
        fresh = seen >= since(v, limits.stale_live_leg_s)
        same &= near & (fresh | ~playing)
    # A book with the same price under two market names counts once.
    of, at = of[same], at[same]
    once = np.ones(of.size, bool)
    once[1:] = (of[1:] != of[:-1]) | (g.book[at[1:]] != g.book[at[:-1]])
    return of[once], at[once]
