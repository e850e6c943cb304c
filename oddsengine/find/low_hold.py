"""Low holds: markets whose best prices sum to one or slightly more."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine.detect import ages, best_legs, market_fair, since, unconfirmed
from oddsengine.find import board, ids
from oddsengine.find.board import Question
from oddsengine.find.search import Cases, Chosen, Search
from oddsengine.groups import NO_TIME, Bytes, Floats, Ints, Longs
from oddsengine.results import LOW_HOLD_SCHEMA


def find(search: Search) -> Cases:
    """Return the markets and best prices with a hold between 0 and each caller's maximum."""
    v, swept = search.view, search.swept
    most = 1.0 + search.wants.hold + search.epsilon
    near = np.flatnonzero(swept.total <= most[swept.sum_who])
    who, market = swept.sum_who[near], swept.sum_market[near]
    legs = best_legs(v, who, market, distinct=False)
    keep = np.flatnonzero((legs.total <= most[who]) & (legs.total >= 1.0 - search.epsilon))
    who, market, rows = who[keep], market[keep], legs.rows[keep]
    named = ids.of_markets("low_hold", v.groups, search.hashes, market, rows)
    return Cases(who, market, Chosen(rows, legs.total[keep], named))


def rows(question: Question, hits: Cases) -> pl.DataFrame:
    """Build result rows, ordered by ascending hold."""
    v = question.view
    g = v.groups
    _, market, legs = hits
    widest = int((legs.rows >= 0).sum(axis=1).max(initial=2))
    base = question.facts(legs.rows[:, 0])
    held = legs.rows >= 0
    seen = np.where(held, g.seen[np.maximum(legs.rows, 0)], np.iinfo(np.int64).max)
    age = ages(v.now, board.oldest(seen))
    live = v.live[market] != 0
    old, very = board.stale_flags(v, age, live)
    doubt = unconfirmed(v, legs.rows)
    fair = market_fair(v, market)
    sharing = [_sharing(question, legs, k, v.live[market]) for k in range(widest)]
    sides = _sides(question, legs.rows[:, :widest], fair[:, :widest], sharing)
    columns: dict[str, Any] = {
        "id": ids.hexadecimal(legs.id),
        "event_id": base["event_id"],
        "sport": base["sport"].str.to_lowercase(),
        "league": base["league"],
        "market_type": board.market_types(question, market),
        "line": board.market_lines(question, market),
        "start_time": base["event_start_time"],
        "hold_percentage": np.maximum(legs.total - 1.0, 0.0) * 100.0,
        "all_books": _everyone(question, sharing, market.size),
        **{f"side{k + 1}": sides[k * market.size : (k + 1) * market.size] for k in range(widest)},
        "detected_at": question.moments(market.size),
        "is_alternate_line": v.main[market] == 0,
        "player_name": base["player_name"],
        "oldest_odds_age_seconds": board.nullable(age),
        "possibly_stale": old,
        "warnings": board.warned(
            {"LIVE_GAME": live, "POTENTIALLY_STALE_ODDS": old, "VERY_STALE_ODDS": very, "UNCONFIRMED": doubt}
        ),
        "unconfirmed": doubt,
        **board.market_facts(question, legs.rows[:, 0], base),
    }
    return board.frame(columns, LOW_HOLD_SCHEMA).sort(["hold_percentage", "id"])


def _everyone(question: Question, sharing: list[tuple[Longs, Longs]], cases: int) -> pl.Series:
    """List the books of all sides of each case, without duplicates, sorted."""
    books = question.prepared.identity.books
    case = np.concatenate([c for c, _ in sharing])
    book = question.view.groups.book[np.concatenate([r for _, r in sharing])]
    keys = np.unique(case * len(books) + book)
    names = pl.Series(books, dtype=pl.String)[keys % max(len(books), 1)]
    return board.lists(keys // max(len(books), 1), names, cases)


def _sides(question: Question, legs: Ints, fair: Floats, sharing: list[tuple[Longs, Longs]]) -> pl.Series:
    """Build the first side of each case, then the second and so on: its price and every book that offers it.

    A side is null beyond a market's outcomes.
    """
    v = question.view
    here = (legs >= 0).T.ravel()
    row = np.maximum(legs, 0).T.ravel()
    place = np.concatenate([k * len(legs) + case for k, (case, _) in enumerate(sharing)])
    table, shared = question.facts(row), question.facts(np.concatenate([rows for _, rows in sharing]))
    lists = board.tables_of_lists(
        place,
        {"sportsbook": shared["sportsbook"], "deep_link": shared["deep_link"], "id": shared["id"]},
        row.size,
        pl.col("sportsbook").alias("books"),
        pl.struct("sportsbook", "deep_link").filter(pl.col("deep_link").is_not_null()).alias("deep_links"),
        pl.col("id").alias("odds_ids"),
    )
    sides = pl.DataFrame(
        {
            "selection": table["selection"],
            "books": lists["books"],
            "line": board.row_lines(question, row),
            "odds": pl.DataFrame(
                {
                    "american": table["odds_american"],
                    "decimal": table["odds_decimal"],
                    "implied_probability": 1.0 / v.net[row],
                    "fair_probability": board.nullable(fair.T.ravel()),
                }
            ).to_struct(),
            "deep_links": lists["deep_links"],
            "odds_ids": lists["odds_ids"],
        }
    ).to_struct()
    return sides if here.all() else sides.to_frame("side").select(pl.when(pl.Series(here)).then("side")).to_series()


def _sharing(question: Question, legs: Chosen, k: int, live: Bytes) -> tuple[Longs, Longs]:
    """Return (case, row) of the rows with the best price of side k that pass the timing rules with the other legs."""
    v = question.view
    g = v.groups
    cases = np.flatnonzero(legs.rows[:, k] >= 0)
    row = legs.rows[cases, k]
    segment = np.searchsorted(g.rows, row, side="right") - 1
    start, size = g.rows[segment], g.rows[segment + 1] - g.rows[segment]
    of = np.repeat(np.arange(row.size), size)
    at = np.arange(of.size) - np.repeat(np.cumsum(size) - size, size) + start[of]
    same = (v.offer[at] != 0) & (v.net[at] == v.net[row][of])
    if v.timed:
        limits, playing = v.limits, live[cases][of] != 0
        times = g.seen[np.maximum(legs.rows[cases], 0)]
        timed = (legs.rows[cases] >= 0) & (times != NO_TIME)
        seen = g.seen[at]
        has_time = seen != NO_TIME
        # Without a time on any leg, the row's own time decides.
        first = np.where(timed, times, np.iinfo(np.int64).max).min(axis=1)[of]
        last = np.where(timed, times, np.iinfo(np.int64).min).max(axis=1)[of]
        first, last = np.minimum(seen, first, where=has_time, out=first), np.maximum(seen, last)
        gap = np.where(playing, round(limits.stale_live_gap_s * 1e6), round(limits.stale_prematch_gap_s * 1e6))
        near = (last <= first) | (last - np.minimum(first, last) <= gap)
        fresh = seen >= since(v, limits.stale_live_leg_s)
        same &= near & (fresh | ~playing)
    # A book with the same price under two market names counts once.
    of, at = of[same], at[same]
    once = np.ones(of.size, bool)
    once[1:] = (of[1:] != of[:-1]) | (g.book[at[1:]] != g.book[at[:-1]])
    return cases[of[once]], at[once]
