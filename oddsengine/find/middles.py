"""Middles: over one line at one book and under a higher one at another, and what is between."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog, middle, tails
from oddsengine.detect import Legs, Scan, ages, best_legs, market_fair, pairs, scan
from oddsengine.find import board
from oddsengine.find.board import Question
from oddsengine.groups import Bytes, Floats, Ints, Longs
from oddsengine.results import MIDDLES_SCHEMA

_SOURCES = ("unknown", "ladder", "median", "shape")


class Found(NamedTuple):
    """Middles: markets of the lower and higher line, legs, and the worth of each."""

    low: Longs
    high: Longs
    legs: Legs
    worth: middle.Middle
    source: Bytes
    doubted: Any  # bool: the shape says something else than the ladder


def found(question: Question, min_size: float, min_ev: float | None) -> Found:
    """Admissible middles whose lines are at least `min_size` apart."""
    v = question.view
    g = v.groups
    limits = catalog.thresholds()
    epsilon = question.epsilon
    most = 1.0 / (1.0 + limits.middle_floor - epsilon)
    swept = scan(v, np.inf, most)
    low, high = pairs(v, swept, most)
    apart = (g.threshold[high] - g.threshold[low]) >= round(min_size * 100.0)
    low, high = low[apart], high[apart]
    if min_ev is not None:
        hopeful = _hopeful(question, swept, low, high, min_ev / 100.0 - epsilon)
        low, high = low[hopeful], high[hopeful]
    segments = np.stack([g.segments[low], g.segments[high + 1] - 1], axis=1)
    legs = best_legs(v, segments, v.live[low], distinct=True)
    least = 1.0 / (1.0 + question.max_profit + epsilon)
    keep = (legs.total <= most) & (legs.total >= least)
    low, high, legs = low[keep], high[keep], Legs(legs.rows[keep], legs.total[keep])
    over_line, under_line = g.threshold[low].astype(np.int64), g.threshold[high].astype(np.int64)
    over, under = v.net[legs.rows[:, 0]], v.net[legs.rows[:, 1]]
    points = middle.window(over_line, under_line).points
    ladder = g.ladder[low].astype(np.int64)
    links = tails.curves(v)
    tail, source = _tails(question, links, low, high, points)
    worth = middle.evaluate(over_line, under_line, over, under, tail)
    if min_ev is not None:
        # A ladder's word stands; only what no ladder knows waits for a shape.
        keep = (source == 0) | ~(worth.ev < min_ev / 100.0 - epsilon)
        low, high, legs = low[keep], high[keep], Legs(legs.rows[keep], legs.total[keep])
        over_line, under_line, over, under = over_line[keep], under_line[keep], over[keep], under[keep]
        ladder, points, tail, source = ladder[keep], points[keep], tail[keep], source[keep]
        worth = middle.Middle(*(column[keep] for column in worth))
    shape = tails.by_shape(v, links, ladder, points)
    shaped = middle.evaluate(over_line, under_line, over, under, shape)
    bare = np.isnan(worth.ev)
    source = np.where(bare, np.where(np.isnan(shaped.ev), tails.NOWHERE, tails.SHAPE), source).astype(np.uint8)
    with np.errstate(invalid="ignore", divide="ignore"):
        doubted = ~bare & (np.abs(shaped.prob / worth.prob - 1.0) > limits.middle_disagree)
    worth = middle.Middle(*(np.where(bare, s, w) for s, w in zip(shaped, worth, strict=True)))
    # A pair that cannot lose is worth showing though nobody knows the window: it then counts as nothing.
    sure = np.isnan(worth.ev) & (legs.total < 1.0)
    worth = worth._replace(prob=np.where(sure, 0.0, worth.prob), ev=np.where(sure, 1.0 / legs.total - 1.0, worth.ev))
    keep = ~np.isnan(worth.ev)
    if min_ev is not None:
        keep &= worth.ev >= min_ev / 100.0 - epsilon
    return Found(
        low[keep],
        high[keep],
        Legs(legs.rows[keep], legs.total[keep]),
        middle.Middle(*(column[keep] for column in worth)),
        source[keep],
        doubted[keep],
    )


def _hopeful(question: Question, swept: Scan, low: Longs, high: Longs, least: float) -> npt.NDArray[np.bool_]:
    """Which pairs could be worth `least` at the best prices; all whose window no one reference knows."""
    v = question.view
    g = v.groups
    tail, known = _known(question, low, high)
    total = 1.0 / swept.best[g.segments[low]] + 1.0 / swept.best[g.segments[high + 1] - 1]
    return np.asarray(~known | ((1.0 + tail[:, 0] - tail[:, 3]) / total - 1.0 >= least - question.epsilon))


def _tails(question: Question, links: tails.Curves, low: Longs, high: Longs, points: Longs) -> tails.Tails:
    """Tails from ladders."""
    v = question.view
    g = v.groups
    tail, known = _known(question, low, high)
    source = np.full(low.size, tails.LADDER, np.uint8)
    rest = np.flatnonzero(~known)
    read = tails.read(v, links, g.ladder[low[rest]].astype(np.int64), points[rest])
    tail[rest], source[rest] = read.tail, read.source
    return tails.Tails(tail, source)


def _known(question: Question, low: Longs, high: Longs) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Tails of the pairs where one reference has both half lines: its fair probabilities there. And which those are."""
    v = question.view
    g = v.groups
    book = v.reference[low]
    over, under = v.fair[g.segments[low]], v.fair[g.segments[high]]
    known = (book >= 0) & (book == v.reference[high]) & (over >= under)
    known &= (g.threshold[low] % 100 == 50) & (g.threshold[high] % 100 == 50)
    return np.stack([over, over, under, under], axis=1), known


def ids(question: Question, hit: Found) -> list[str]:
    """An id for each middle: kind, both markets, books and sides."""
    parts = board.market_hash(question, hit.low), board.market_hash(question, hit.high)
    return board.hex_ids(board.mix_ids("middle", *parts, *board.leg_hash(question, hit.legs.rows).T))


def rows(question: Question, min_size: float, min_ev: float | None) -> pl.DataFrame:
    """Result rows in order of quality, best first."""
    v = question.view
    g = v.groups
    limits = catalog.thresholds()
    hit = found(question, min_size, min_ev)
    base = question.facts(hit.legs.rows[:, 0])
    age = ages(v.now, g.seen[hit.legs.rows]).max(axis=1, initial=0.0)
    live = v.live[hit.low] != 0
    gap = (g.threshold[hit.high] - g.threshold[hit.low]) / 100.0
    over_line, under_line = g.threshold[hit.low].astype(np.int64), g.threshold[hit.high].astype(np.int64)
    inside = middle.window(over_line, under_line)
    trust = np.array([0.0, limits.quality_source_ladder, limits.quality_source_median, limits.quality_source_shape])
    score = middle.quality(
        hit.worth.ev,
        hit.worth.prob,
        np.where(hit.doubted, limits.quality_source_shape, trust[hit.source]),
        np.nan_to_num(age),
    )
    columns: dict[str, Any] = {
        "id": ids(question, hit),
        "event_id": base["event_id"],
        "sport": base["sport"].str.to_lowercase(),
        "league": base["league"],
        "market_type": base["market_type"],
        "side1": _side(question, hit, hit.low, 0),
        "side2": _side(question, hit, hit.high, 1),
        "middle_size": gap,
        "middle_numbers": board.ranges(inside.first, inside.last),
        "middle_probability": hit.worth.prob,
        "expected_value": hit.worth.ev * 100.0,
        "quality_score": score,
        "detected_at": question.moments(gap.size),
        "start_time": base["event_start_time"],
        "worst_case_loss": hit.worth.worst * 100.0,
        "best_case_profit": hit.worth.best * 100.0,
        "break_even_percent": np.maximum(hit.legs.total - 1.0, 0.0) * 100.0,
        "is_guaranteed_profit": hit.legs.total < 1.0,
        "key_numbers": _key_numbers(question, hit),
        "probability_source": pl.Series(_SOURCES, dtype=pl.String).gather(hit.source),
        "odds_age_seconds": board.nullable(age),
        "player_name": base["player_name"],
        "warnings": board.warned(
            {
                "HIGH_PROBABILITY": hit.worth.prob > limits.middle_high_probability,
                "LARGE_GAP": gap > limits.middle_large_gap,
                "STALE_ODDS": age > limits.middle_stale_s,
                "LIVE_GAME": live,
                "GUARANTEED_PROFIT": hit.legs.total < 1.0,
            }
        ),
        **board.market_facts(question, hit.legs.rows[:, 0]),
    }
    order = ["quality_score", "expected_value", "id"]
    return board.frame(columns, MIDDLES_SCHEMA).sort(order, descending=[True, True, False])


def _side(question: Question, hit: Found, market: Longs, k: int) -> pl.Series:
    """One leg of every middle."""
    v = question.view
    row: Ints = hit.legs.rows[:, k]
    table = question.facts(row)
    fair: Floats = market_fair(v, market)[:, k]
    share = 1.0 / v.net[row]
    alone = np.isnan(fair)
    if alone.any():
        # Nobody offers this line's other side: the price itself, less its share of the pair's hold, is all there is.
        fair = np.where(alone, np.minimum(share / np.maximum(hit.legs.total, 1.0), share), fair)
    return pl.DataFrame(
        {
            "book": table["sportsbook"],
            "selection": table["selection"],
            "line": board.row_lines(question, row),
            "odds": pl.DataFrame(
                {
                    "american": table["odds_american"],
                    "decimal": table["odds_decimal"],
                    "probability": share,
                    "fair_probability": fair,
                }
            ).to_struct("odds"),
            "stake_percent": 100.0 * share / hit.legs.total,
            "odds_age_seconds": board.nullable(ages(v.now, v.groups.seen[row])),
            "deep_link": table["deep_link"],
        }
    ).to_struct(f"side{k + 1}")


def _key_numbers(question: Question, hit: Found) -> pl.Series:
    """Key numbers inside each window of a margin; none for totals."""
    g, kinds, sports = question.view.groups, question.view.identity.kinds, question.view.identity.sports
    spread = np.array([k.family == "spread" for k in kinds], bool)
    most = max((len(s.key_numbers) for s, _ in sports), default=0)
    table = np.full((len(sports), 2 * most), np.iinfo(np.int32).max, np.int64)
    for at, (sport, _) in enumerate(sports):
        numbers = sorted(n for key in sport.key_numbers for n in (-key, key))
        table[at, : len(numbers)] = numbers
    ladder = g.ladder[hit.low]
    keys = table[g.event[ladder]]
    low, high = g.threshold[hit.low][:, None], g.threshold[hit.high][:, None]
    inside = (low < 100 * keys) & (100 * keys < high) & spread[g.kind[ladder]][:, None]
    case, place = np.nonzero(inside)
    return board.lists(case, pl.Series(keys[case, place]), ladder.size)
