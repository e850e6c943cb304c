"""Middles: over a line at one book, under a higher line at another, so that both bets win in between."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.columns import Bools, Bytes, Floats, Ints, Longs, Words, spans
from oddsengine.detection import opportunity_ids, settlement_differences, tails
from oddsengine.detection import question as board
from oddsengine.detection.leg_times import ages
from oddsengine.detection.legs import pair_legs, unconfirmed
from oddsengine.detection.market_fair import market_fair
from oddsengine.detection.question import Question
from oddsengine.detection.result_columns import MIDDLE_SIDE, MIDDLES_SCHEMA
from oddsengine.detection.search import BestPrices, Located, Opened, Search
from oddsengine.detection.sweep import break_even
from oddsengine.identity.groups import distinct
from oddsengine.maths import middle
from oddsengine.pricing.references import FairPrices

_SOURCES = pl.Series(["unknown", "ladder", "median", "shape"])


class Middles(NamedTuple):
    """Middles, as columns: user, markets of both lines, legs, worth, and the source of the probability."""

    who: Longs
    low: Longs
    high: Longs
    legs: BestPrices
    worth: middle.MiddleValue
    source: Bytes
    generous: Bools  # one leg alone pays far more than the fair price by the same tail

    @property
    def id(self) -> Words:
        """Their ids."""
        return self.legs.id

    def only(self, keep: Longs) -> "Middles":
        """Return a selection of the rows."""
        return Middles(
            self.who[keep],
            self.low[keep],
            self.high[keep],
            self.legs.only(keep),
            middle.MiddleValue(*(column[keep] for column in self.worth)),
            self.source[keep],
            self.generous[keep],
        )


def find_hits(search: Search) -> Middles:
    """Return admissible middles that meet their user's minimum gap and worth."""
    v, g, thresholds, swept = search.prices, search.prices.groups, search.thresholds, search.swept
    if not swept.low.size:
        return _none()
    who, low, high = swept.pair_who, swept.low, swept.high
    over, under = g.threshold[low].astype(np.int64), g.threshold[high].astype(np.int64)
    least = thresholds["min_middle_ev"] - search.epsilon
    # If the best prices are not worth it, no admissible ones are.
    tails_ = _tails(search, who, low, middle.points(over, under))
    near = middle.promising(over, under, swept.over, swept.under, tails_.tail, tails_.of, (least - search.epsilon)[who])
    who, low, high, of = who[near], low[near], high[near], tails_.of[near]
    tail, source = tails_.tail[of], tails_.source[of]
    legs = pair_legs(v, who, low, high)
    worth = _worth(v, low, high, v.columns.net[legs.rows[:, 0]], v.columns.net[legs.rows[:, 1]], tail)
    cap = 1.0 / (1.0 + thresholds["max_profit"] + search.epsilon)
    fits = (legs.total <= swept.bound) & (legs.total >= cap[who]) & (worth.ev >= least[who])
    keep = np.flatnonzero(fits)
    if not keep.size:
        return _none()
    who, low, high, rows, tail = who[keep], low[keep], high[keep], legs.rows[keep], tail[keep]
    named = opportunity_ids.of_pairs("middle", g, search.hashes, low, high, rows)
    generous = _generous(v, low, v.columns.net[rows[:, 0]], v.columns.net[rows[:, 1]], tail)
    worth = middle.MiddleValue(*(column[keep] for column in worth))
    best = BestPrices(rows, legs.odds[keep], legs.total[keep], named)
    return Middles(who, low, high, best, worth, source[keep], generous)


def _tails(search: Search, who: Longs, low: Longs, points: Longs) -> tails.Tails:
    """Return the tails of pairs of lines, nan where unknown, and their sources."""
    v = search.prices
    ladder = v.groups.ladder[low].astype(np.int64)
    tails_ = tails.ladder_tails(v, search.curves, who, ladder, points)
    # Ladders take precedence; shapes are fitted only where no ladder has the answer.
    bare = np.flatnonzero(tails_.source[tails_.of] == tails.NOWHERE)
    if not bare.size:
        return tails_
    shape = tails.by_shape(v, search.forms, search.curves, who[bare], ladder[bare], points[bare])
    of = tails_.of.copy()
    of[bare] = tails_.source.size + shape.of
    tail, source = np.concatenate((tails_.tail, shape.tail)), np.concatenate((tails_.source, shape.source))
    return tails.Tails(tail, source, of)


def _worth(v: FairPrices, low: Longs, high: Longs, over: Floats, under: Floats, tail: Floats) -> middle.MiddleValue:
    """Evaluate pairs of lines at two prices each."""
    g = v.groups
    worth = middle.evaluate_columns(
        g.threshold[low].astype(np.int64), g.threshold[high].astype(np.int64), over, under, tail
    )
    # A pair that cannot lose is shown even without a known probability, which then counts as 0.
    total = 1.0 / over + 1.0 / under
    sure = np.flatnonzero(np.isnan(worth.ev) & (total < 1.0))
    worth.prob[sure], worth.ev[sure] = 0.0, 1.0 / total[sure] - 1.0
    return worth


def over_cap(search: Search, hits: Middles) -> Bools:
    """Flag data errors by the edge of a single leg; all false if the guard `ev_cap` is disabled.

    A mislabelled ladder may contradict no price on its own lines, but form a wide middle with every honest one.
    """
    return hits.generous if search.cap else np.zeros(hits.low.size, bool)


def opened(search: Search, hits: Middles, _: Bools) -> Opened:
    """What is open; figures are the EV, the probability of winning both bets, both odds, and doubts."""
    v, hits = search.prices, hits.only(np.flatnonzero(~over_cap(search, hits)))
    over, under = v.columns.net[hits.legs.rows[:, 0]], v.columns.net[hits.legs.rows[:, 1]]
    doubt = unconfirmed(v, hits.legs.rows)
    figures = np.stack([hits.worth.ev, hits.worth.prob, over, under, doubt], axis=1)
    return Opened(hits.who, hits.legs.id, hits.low, hits.legs.rows, figures)


def located(_: Question, hits: Middles) -> Located:
    """Ids, markets and legs of what was found."""
    markets = np.stack([hits.low, hits.high], axis=1)
    return Located(opportunity_ids.hexadecimal(hits.legs.id), markets, hits.legs.rows, hits.legs.cost)


def _generous(v: FairPrices, market: Longs, over_odds: Floats, under_odds: Floats, tail: Floats) -> Bools:
    """Flag legs more generous than `outlier` allows, compared with the tail used to value the middle.

    Compares the probabilities that the leg wins or loses outright, ignoring pushes, where enough other providers quote
    the ladder.
    """
    limits, g = v.limits, v.groups
    out = np.zeros(over_odds.size, bool)
    ladder = g.ladder[market].astype(np.int64)
    kind = g.kind[ladder]
    settled = (v.columns.live[market] == 0) & (v.traits.prop[kind] == 0) & (v.traits.full_game[kind] != 0)
    base = np.where(settled, limits.outlier_main, limits.outlier_other)
    with np.errstate(all="ignore"):
        for odds, win, lose in (
            (over_odds, tail[:, 1], 1.0 - tail[:, 0]),
            (under_odds, 1.0 - tail[:, 3], tail[:, 2]),
        ):
            fair = win / (win + lose)
            gap = -np.log(odds - 1.0) - np.log(win / lose)
            out |= gap < -(base + limits.outlier_slope / (fair * (1.0 - fair)))
    return out & (tails.providers(v, ladder) > limits.outlier_others)


def _none() -> Middles:
    none = np.empty(0)
    legs = BestPrices(np.empty((0, 2), np.int32), np.empty((0, 2)), none, np.empty(0, np.uint64))
    market = np.empty(0, np.int64)
    nobody = np.empty(0, bool)
    return Middles(
        market, market, market, legs, middle.MiddleValue(none, none, none, none), np.empty(0, np.uint8), nobody
    )


def _lines(v: FairPrices, low: Longs, high: Longs, rows: Ints) -> tuple[Longs, Longs, Floats, Floats]:
    """Return over line, under line, and both prices."""
    g = v.groups
    return (
        g.threshold[low].astype(np.int64), g.threshold[high].astype(np.int64), v.columns.net[rows[:, 0]],
        v.columns.net[rows[:, 1]],
    )  # fmt: skip


def doubted(search: Search, hits: Middles) -> Bools:
    """Flag middles whose fitted shape disagrees with the ladder or median that is reported."""
    v = search.prices
    out = np.zeros(hits.low.size, bool)
    quoted = np.flatnonzero((hits.source == tails.LADDER) | (hits.source == tails.MEDIAN))
    if quoted.size:
        lines = _lines(v, hits.low[quoted], hits.high[quoted], hits.legs.rows[quoted])
        ladder = v.groups.ladder[hits.low[quoted]].astype(np.int64)
        shape = tails.by_shape(
            v, search.forms, search.curves, hits.who[quoted], ladder, middle.points(lines[0], lines[1])
        )
        shaped = middle.evaluate_columns(*lines, shape.tail[shape.of])
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.abs(shaped.prob / hits.worth.prob[quoted] - 1.0)
        out[quoted] = apart > v.limits.middle_disagree
    return out


def build_rows(question: Question, hit: Middles) -> pl.DataFrame:
    """Build result rows, best quality first."""
    hit = hit.only(np.flatnonzero(~over_cap(question, hit)))
    v, schema = question.prices, board.extended(MIDDLES_SCHEMA, question.board.extra)
    if not hit.low.size:
        return board.empty(schema)
    g = v.groups
    limits = v.limits
    trust = np.array([0.0, limits.quality_source_ladder, limits.quality_source_median, limits.quality_source_shape])
    score = middle.quality(
        hit.worth.ev,
        hit.worth.prob,
        np.where(doubted(question, hit), limits.quality_source_shape, trust[hit.source]),
        np.nan_to_num(board.oldest(question, hit.legs.rows)),
    )
    order = np.lexsort((hit.legs.id, -100.0 * hit.worth.ev, -score))
    hit = hit.only(order)
    age = board.oldest(question, hit.legs.rows)
    base = question.facts(hit.legs.rows[:, 0])
    facts = board.market_facts(question, hit.legs.rows[:, 0], base)
    doubt = unconfirmed(v, hit.legs.rows)
    sure = hit.legs.total <= break_even(limits.epsilon)
    over_line, under_line = g.threshold[hit.low].astype(np.int64), g.threshold[hit.high].astype(np.int64)
    gap = (under_line - over_line) / 100.0
    numbers = _numbers(question, hit.low, middle.window(over_line, under_line))
    sides = _sides(question, hit)
    columns: dict[str, Any] = {
        "id": opportunity_ids.hexadecimal(hit.legs.id),
        "side1": sides.head(gap.size),
        "side2": sides.tail(gap.size),
        "middle_size": gap,
        "middle_numbers": numbers["number"],
        "middle_probability": hit.worth.prob,
        "expected_value": hit.worth.ev * 100.0,
        "quality_score": score[order],
        "worst_case_loss": hit.worth.worst * 100.0,
        "best_case_profit": hit.worth.best * 100.0,
        "break_even_percent": np.maximum(hit.legs.total - 1.0, 0.0) * 100.0,
        "is_guaranteed_profit": sure,
        "key_numbers": numbers["key"],
        "probability_source": _SOURCES[hit.source],
        "odds_age_seconds": board.nullable(age),
        "warnings": board.warned(
            {
                "HIGH_PROBABILITY": hit.worth.prob > limits.middle_high_probability,
                "LARGE_GAP": gap > limits.middle_large_gap,
                "STALE_ODDS": age > limits.middle_stale_s,
                "LIVE_GAME": facts["is_live"],
                "GUARANTEED_PROFIT": sure,
                "UNCONFIRMED": doubt,
            }
        ),
        "unconfirmed": doubt,
        **settlement_differences.columns(question, hit.legs),
        **facts,
    }
    return board.frame(columns, schema, base)


def _sides(question: Question, hit: Middles) -> pl.Series:
    """Build the first leg of each middle, followed by the second of each."""
    v = question.prices
    row: Ints = hit.legs.rows.T.ravel()
    base = question.facts(row)
    fair: Floats = market_fair(v, np.concatenate((hit.low, hit.high)))[
        np.arange(row.size), np.repeat([0, 1], hit.low.size)
    ]
    total = np.tile(hit.legs.total, 2)
    share = 1.0 / v.columns.net[row]
    alone = np.isnan(fair)
    if alone.any():
        # Without the other side of this line, use the price less its share of the pair's hold.
        fair = np.where(alone, np.minimum(share / np.maximum(total, 1.0), share), fair)
    sides = {
        "line": board.row_lines(question, row),
        "implied_probability": share,
        "fair_probability": fair,
        "stake_percent": 100.0 * share / total,
        "odds_age_seconds": board.nullable(ages(v.now, v.groups.seen[row])),
        "odds_id": base["id"],
    }
    return board.structs(sides, MIDDLE_SIDE, base)


def _numbers(question: Question, market: Longs, window: middle.Window) -> pl.DataFrame:
    """List the numbers inside each window, and those of them that are key numbers; totals have none."""
    g, ladder = question.prices.groups, question.prices.groups.ladder[market]
    numbers = spans(window.first, window.first + window.size)
    case = np.repeat(np.arange(market.size), window.size)
    events = distinct(g.event[ladder])
    sports = [question.board.identity.sports[event][0] for event in events.tolist()]
    is_key = np.zeros((len(sports), int(np.abs(numbers).max(initial=0)) + 1), bool)
    for at, sport in enumerate(sports):
        is_key[at, [key for key in sport.key_numbers if key < is_key.shape[1]]] = True
    margin = question.prices.traits.margin[g.kind[ladder]] != 0
    key = is_key[np.searchsorted(events, g.event[ladder])[case], np.abs(numbers)] & margin[case]
    values = {"number": pl.Series(numbers), "key": pl.Series(key)}
    return board.grouped(case, values, market.size, "number", pl.col("number").filter("key").alias("key"))
