"""Low hold: markets whose best prices sum to one, or a little more."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.detect import Legs, ages, best_legs, market_fair, market_segments, scan
from oddsengine.find import board
from oddsengine.find.board import Question
from oddsengine.groups import Bytes, Floats, Ints, Longs
from oddsengine.results import LOW_HOLD_SCHEMA


def found(question: Question, max_hold: float) -> tuple[Longs, Legs]:
    """Markets and best prices with a hold from 0 to `max_hold` percent."""
    v = question.view
    most = 1.0 + max_hold / 100.0 + question.epsilon
    candidates = np.flatnonzero(scan(v, np.inf, 0.0).total <= most)
    legs = best_legs(v, market_segments(v, candidates), v.live[candidates], distinct=False)
    keep = (legs.total <= most) & (legs.total >= 1.0 - question.epsilon)
    return candidates[keep], Legs(legs.rows[keep], legs.total[keep])


def rows(question: Question, max_hold: float) -> pl.DataFrame:
    """Result rows in order of hold, smallest first."""
    v = question.view
    g = v.groups
    market, legs = found(question, max_hold)
    base = question.table[g.row[legs.rows[:, 0]]]
    held = legs.rows >= 0
    seen = np.where(held, g.seen[np.maximum(legs.rows, 0)], np.iinfo(np.int64).max)
    age = ages(v.now, board.oldest(seen))
    live = v.live[market] != 0
    old, very = board.stale_flags(age, live)
    fair = market_fair(v, market)
    sides = [_side(question, market, legs, fair, k) for k in range(legs.rows.shape[1])]
    everyone = pl.DataFrame({f"s{k}": s.struct.field("books") for k, s in enumerate(sides)})
    columns: dict[str, Any] = {
        "id": board.hex_ids(
            board.mix_ids("low_hold", board.market_hash(question, market), *board.leg_hash(question, legs.rows).T)
        ),
        "event_id": base["event_id"],
        "event_name": board.game_names(base),
        "sport": base["sport"].str.to_lowercase(),
        "league": base["league"],
        "market_type": base["market_type"],
        "line": board.market_lines(question, market),
        "home_team": base["home_team"],
        "away_team": base["away_team"],
        "start_time": base["event_start_time"],
        "hold_percentage": np.maximum(legs.total - 1.0, 0.0) * 100.0,
        "all_books": everyone.select(
            pl.concat_list(pl.all().fill_null(pl.lit([], dtype=pl.List(pl.String)))).list.unique().list.sort()
        ).to_series(),
        **{f"side{k + 1}": side for k, side in enumerate(sides)},
        "detected_at": pl.Series([question.moment()] * market.size, dtype=pl.Datetime("us", "UTC")),
        "is_alternate_line": v.main[market] == 0,
        "player_name": base["player_name"],
        "oldest_odds_age_seconds": board.nullable(age),
        "possibly_stale": old,
        "warnings": board.warned({"LIVE_GAME": live, "POTENTIALLY_STALE_ODDS": old, "VERY_STALE_ODDS": very}),
        **board.market_facts(question, market),
    }
    return board.frame(columns, LOW_HOLD_SCHEMA).sort(["hold_percentage", "id"])


def _side(question: Question, market: Longs, legs: Legs, fair: Floats, k: int) -> pl.Series:
    """One side of every case: its price and all the books that have it; null beyond a market's outcomes."""
    v = question.view
    g = v.groups
    here = legs.rows[:, k] >= 0
    row = legs.rows[here, k]
    table = question.table[g.row[row]]
    case, sharing = _sharing(question, market[here], legs.rows[here], row, v.live[market[here]])
    shared = question.table[g.row[sharing]].select("sportsbook", "deep_link")
    books = board.lists(case, shared["sportsbook"], row.size)
    links = board.lists(
        case[shared["deep_link"].is_not_null().to_numpy()],
        shared.filter(pl.col("deep_link").is_not_null()).to_struct("links"),
        row.size,
    )
    side = pl.DataFrame(
        {
            "selection": table["selection"],
            "books": books,
            "line": table["line"],
            "odds": pl.DataFrame(
                {
                    "american": table["odds_american"],
                    "decimal": table["odds_decimal"],
                    "implied_probability": 1.0 / v.net[row],
                    "fair_probability": board.nullable(fair[here, k]),
                }
            ).to_struct("odds"),
            "deep_links": links,
        }
    ).to_struct(f"side{k + 1}")
    if here.all():
        return side
    place = np.where(here, np.cumsum(here) - 1, -1)
    index = pl.Series(place).cast(pl.Int64)
    return side.gather(pl.select(pl.when(index >= 0).then(index)).to_series().cast(pl.UInt32))


def _sharing(question: Question, market: Longs, legs: Ints, row: Ints, live: Bytes) -> tuple[Longs, Longs]:
    """Rows that offer a side's price as well, where timing matters together with the other legs: case, row."""
    v = question.view
    g = v.groups
    segment = np.searchsorted(g.rows, row, side="right") - 1
    start, end = g.rows[segment], g.rows[segment + 1]
    case = np.repeat(np.arange(row.size), end - start)
    at = np.arange(case.size) - np.repeat(np.cumsum(end - start) - (end - start), end - start) + start[case]
    same = (v.offer[at] != 0) & (v.net[at] == v.net[row][case])
    if v.timed and live.any():
        limits = catalog.thresholds()
        gap = round(limits.stale_live_gap_s * 1e6)
        chosen = legs >= 0
        times = g.seen[np.maximum(legs, 0)]
        first = np.where(chosen, times, np.iinfo(np.int64).max).min(axis=1)[case]
        last = np.where(chosen, times, np.iinfo(np.int64).min).max(axis=1)[case]
        seen = g.seen[at]
        near = (np.maximum(seen, last) - np.minimum(seen, first) <= gap) & (
            seen >= v.now - round(limits.stale_live_leg_s * 1e6)
        )
        same &= near | (live[case] == 0)
    return case[same], at[same]
