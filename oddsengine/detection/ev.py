"""+EV rows: one for each price above the reference's fair price."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.columns import NO_TIME, SECOND, Bools, Bytes, Floats, Ints, Longs, Words, spans
from oddsengine.detection import opportunity_ids, settlement_differences, tails
from oddsengine.detection import question as board
from oddsengine.detection.edges import edges, sharp_edges
from oddsengine.detection.leg_times import ages
from oddsengine.detection.legs import best_legs
from oddsengine.detection.question import Question
from oddsengine.detection.result_columns import EV_SCHEMA, TEXTS
from oddsengine.detection.search import PROMISED, Located, Opened, Search
from oddsengine.maths import value
from oddsengine.maths.kelly import kelly, shrunk_kelly
from oddsengine.maths.odds import decimal_to_american
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_errors, close_table, votes
from oddsengine.pricing.model import MODEL
from oddsengine.pricing.one_sided import ONE_SIDED
from oddsengine.pricing.references import CLOSE, FairPrices

_DEVIG = {CLOSE: "power", MODEL: None}  # the de-vig method behind those that are not one themselves


class EvPrices(NamedTuple):
    """+EV candidates, as columns: user, row, fair probability, width of the reference and so on."""

    who: Longs
    row: Ints
    fair: Floats
    width: Floats
    gap: Floats
    seen: Longs
    doubt: Bytes  # 1 if unconfirmed
    edge: Floats  # fraction
    id: Words  # hash of kind, market, book and side, not of the price

    def only(self, keep: Bools | Longs) -> "EvPrices":
        """Return a selection of the rows."""
        return EvPrices._make(column[keep] for column in self)


def find_hits(search: Search) -> EvPrices:
    """Return the offers at or above each user's minimum EV, including those above the cap."""
    v, swept = search.prices, search.swept
    hits = edges(v, swept.edge_who, swept.edge_market, search.thresholds["min_ev"] - search.epsilon)
    market = v.groups.market[hits.row].astype(np.int64)
    named = opportunity_ids.of_prices("ev", v.groups, search.hashes, market, hits.row)
    return EvPrices(*hits, hits.fair * v.columns.net[hits.row] - 1.0, named)


def over_cap(search: Search, hits: EvPrices) -> Bools:
    """Flag edges so large that they must be data errors; all false if the guard is disabled."""
    if not search.cap:
        return np.zeros(hits.edge.size, bool)
    return np.asarray(hits.edge > search.prices.limits.ev_cap + search.epsilon)


def opened(search: Search, hits: EvPrices, _: Bools) -> Opened:
    """What is open; figures are edge, fair probability, width of the reference, odds, and doubts and flags."""
    v, hits = search.prices, hits.only(~over_cap(search, hits))
    doubt: Any = hits.doubt
    if v.close is not None:
        doubt = hits.doubt + 2.0 * v.close.flags[hits.row]
    figures = np.stack([hits.edge, hits.fair, hits.width, v.columns.net[hits.row], doubt], axis=1)
    market = v.groups.market[hits.row].astype(np.int64)
    promised = np.stack(_promised(v, hits, market), axis=1) if search.promises else None
    return Opened(hits.who, hits.id, market, hits.row[:, None], figures, promised=promised)


def located(question: Question, hits: EvPrices) -> Located:
    """Ids, markets and legs of what was found."""
    row = hits.row[:, None]
    market = question.prices.groups.market[row].astype(np.int64)
    return Located(opportunity_ids.hexadecimal(hits.id), market, row, 1.0 / question.prices.columns.net[row])


def at_most(question: Question, hits: EvPrices, max_ev: float | None) -> EvPrices:
    """What is at most so many percent."""
    return hits if max_ev is None else hits.only(hits.edge <= max_ev / 100.0 + question.epsilon)


def build_rows(question: Question, hits: EvPrices) -> pl.DataFrame:
    """Build result rows, ordered by descending edge."""
    v, schema = question.prices, board.extended(EV_SCHEMA, question.board.extra)
    keep = ~over_cap(question, hits)
    order = np.lexsort((hits.id, -100.0 * hits.edge))
    hits = hits.only(order[keep[order]])
    if not hits.row.size:
        return board.empty(schema)
    edge, percent, net = hits.edge, hits.edge * 100.0, v.columns.net[hits.row]
    market = v.groups.market[hits.row].astype(np.int64)
    live = v.columns.live[market] != 0
    age = ages(v.now, hits.seen)
    old, _ = board.stale_flags(v, age, live)
    base = question.facts(hits.row)
    facts = board.market_facts(question, hits.row, base)
    shared, same_provider = _same_provider(question, hits.row, edge)
    push = _pushes(question, market)
    tie = settlement_differences.tie_probability(question, hits.row)
    arb = _arbs(question, market)
    close = _close(question, hits, market)
    sharp_book = question.labels.books[board.references(question, market, hits.row)]
    if close is None:
        chance = value.confidence(hits.width, hits.gap, board.known_age(v, age), live, hits.fair, edge)
        chance = np.clip(chance, 0.0, 100.0)
    else:
        chance = close.confidence
    columns: dict[str, Any] = {
        "id": opportunity_ids.hexadecimal(hits.id),
        "ev_percentage": percent,
        "no_vig_odds": board.nullable(decimal_to_american(1.0 / hits.fair)),
        "fair_probability": hits.fair,
        "market_width": board.nullable(hits.width * 100.0),
        "devig_method": board.repeated(_DEVIG.get(v.method, v.method), edge.size, pl.String),
        "sharp_book": sharp_book,
        "selection_type": board.sides(question, hits.row),
        "line": board.row_lines(question, hits.row),
        "confidence_score": chance,
        "kelly_percent": kelly(hits.fair, net),
        "arb_available": arb > 0.0,
        "arb_profit": board.nullable(np.where(arb > 0.0, arb * 100.0, np.nan)),
        "possibly_stale": old,
        "oldest_odds_age_seconds": board.nullable(age),
        "warnings": board.warned(
            {
                "POTENTIALLY_STALE_ODDS": old & ~live,
                "LIVE_STALE_ODDS": old & live,
                "SHARED_FEED": shared,
                "UNCONFIRMED": hits.doubt != 0,
            }
        ),
        "net_odds": net,
        "push_probability": board.nullable(push),
        "ev_per_stake": board.nullable(_per_stake(v, percent, net, push, tie)),
        "tie_probability": board.nullable(tie),
        "shared_feed": same_provider,
        "odds_id": base["id"],
        "unconfirmed": hits.doubt != 0,
        "reference": sharp_book if close is None else board.repeated(v.method, edge.size),
        "ev_vs_sharp": percent if close is None else board.nullable(close.sharp * 100.0),
        **({} if close is None else close.columns),
        **facts,
    }
    return board.frame(columns, schema, base)


def _per_stake(v: FairPrices, percent: Floats, net: Floats, push: Floats, tie: Floats) -> Floats:
    """EV per unit staked, in percent: a push returns the stake, and a tie of `tie` pays half of what a winner gets."""
    # The board's ladder knows nothing of a model's pushes; without one of its own the figure would be too large.
    played = percent * (1.0 - (push if v.method == MODEL else np.nan_to_num(push)))
    return np.where(np.isnan(tie), played, (1.0 - tie) * played + tie * 100.0 * (0.5 * net - 1.0))


class _Close(NamedTuple):
    """Figures at the close that accompany the fair probability."""

    sharp: Floats  # edge over the sharp reference, nan without one
    confidence: Floats
    columns: dict[str, Any]


def _close(question: Question, hits: EvPrices, market: Longs) -> _Close | None:
    """Compute the range at the close, the probability of a positive edge, flags and the shrunk Kelly stake."""
    v = question.prices
    if v.close is None:
        return None
    g, net = v.groups, v.columns.net[hits.row]
    se, flags = v.close.errors(g, hits.row), v.close.flags[hits.row]
    x = np.log(hits.fair / (1.0 - hits.fair))
    over = np.full(g.row.size, np.nan)
    some = np.unique(market)
    sharp = sharp_edges(v, np.zeros(some.size, np.int64), some, np.array([-1.0]), hits.row)
    over[sharp.row] = sharp.fair * v.columns.net[sharp.row] - 1.0
    table, voted = _table(v), dict[str, Any]()
    promised = {name: board.nullable(of) for name, of in zip(PROMISED, _promised(v, hits, market), strict=True)}
    if v.board is not None:
        others, agree = votes.agreeing(g, v.board.logits, v.traits, hits.row, v.columns.net)
        if v.close.votes is not None:
            one = np.flatnonzero(flags & ONE_SIDED)
            others[one], agree[one] = votes.agreeing(g, v.close.votes, v.traits, hits.row[one], v.columns.net)
        voted = {"independent_books": others, "agreeing_books": agree}
    return _Close(
        sharp=over[hits.row],
        confidence=close_errors.confidence(se, flags, table),
        columns={
            **promised,
            "prob_positive": board.nullable(close_errors.below((x + np.log(net - 1.0)) / se, _degrees(v))),
            "flags": board.flagged(close_table.BITS, flags),
            "kelly_shrunk": board.nullable(shrunk_kelly(hits.fair, net, se)),
            **voted,
        },
    )


def _promised(v: FairPrices, hits: EvPrices, market: Longs) -> tuple[Floats, Floats, Floats, Floats]:
    """The columns of `PROMISED`."""
    unknown = np.full(hits.row.size, np.nan)
    if v.close is None:
        return unknown, unknown, unknown, unknown
    net, se = v.columns.net[hits.row], v.close.errors(v.groups, hits.row)
    x, wide = np.log(hits.fair / (1.0 - hits.fair)), close_errors.central_errors(90, _degrees(v)) * se
    low, high = (100.0 * (net * close_errors.sigmoid(x + end) - 1.0) for end in (-wide, wide))
    still = unknown if v.board is None else _still_there(v, v.board, v.close, hits, market)
    return low, high, 100.0 * net * hits.fair * (1.0 - hits.fair) * se, still


def _degrees(v: FairPrices) -> float:
    """Degrees of freedom of the error at the close; 0 for that of a model, which is normal."""
    if v.close is not None and v.close.of_model:
        return 0.0
    return _table(v).constants.close_degrees


def _table(v: FairPrices) -> catalog.FairTable:
    """The constants of the estimator; the packaged ones for a model."""
    return catalog.fair_table() if v.board is None else v.board.of.table


def _still_there(
    v: FairPrices, known: fair_close.CloseInput, fair: fair_close.Fair, hits: EvPrices, market: Longs
) -> Floats:
    """Compute the probability that each price stands ten minutes on; nan in play and if the start is unknown."""
    g, times = v.groups, known.times
    ladder = g.ladder[market]
    minute, start, changed = times.minute[ladder], times.start[ladder], times.changed[hits.row]
    timed = (start != NO_TIME) & (v.columns.live[market] == 0)
    hours = np.where(timed, (start - minute) / 3.6e9, np.nan)
    stood = np.where(changed == NO_TIME, 0, np.maximum(minute - changed, 0)) / SECOND
    side, two = g.side[hits.row].astype(np.int64), g.outcomes[market] == 2
    moved = fair.momentum[ladder, np.where(two, 0, side)] * np.where(two & (side == 1), -1.0, 1.0)
    return close_errors.still_there(100.0 * hits.edge, stood, hours, moved, known.of.table)


def _same_provider(question: Question, row: Ints, edge: Floats) -> tuple[Bools, pl.Series]:
    """Find other books of the same provider with the same edge on the same outcome: whether there are any; which."""
    g = question.prices.groups
    segment = np.searchsorted(g.rows, row, side="right") - 1
    book = g.book[row]
    provider = question.prices.traits.provider[book]
    order = np.lexsort((edge, provider, segment))
    same = np.all([np.diff(key[order]) == 0 for key in (edge, provider, segment)], axis=0)
    shared = np.zeros(row.size, bool)
    if not same.any():
        return shared, board.repeated([], row.size, TEXTS)
    # Every row of a run beside every other of another book.
    run = np.concatenate(([0], np.cumsum(~same)))
    first, last = np.searchsorted(run, run), np.searchsorted(run, run, side="right")
    case, other = order[np.repeat(np.arange(row.size), last - first)], order[spans(first, last)]
    apart = book[case] != book[other]
    case, other = case[apart], other[apart]
    shared[case] = True
    return shared, board.books_of(question, case, row[other], row.size)


def _arbs(question: Question, market: Longs) -> Floats:
    """Return the profit of each market's best arbitrage as a fraction, 0 without one."""
    v = question.prices
    markets, at = np.unique(market, return_inverse=True)
    legs = best_legs(v, np.zeros(markets.size, np.int64), markets, distinct=True)
    profit = 1.0 / legs.total - 1.0
    valid = (profit > question.epsilon) & (profit <= question.thresholds["max_profit"][0] + question.epsilon)
    return np.where(valid, profit, 0.0)[at]


def _pushes(question: Question, market: Longs) -> Floats:
    """Return the probability of a push on each market's line times the share returned, nan if unknown."""
    v, g = question.prices, question.prices.groups
    line = g.threshold[market].astype(np.int64)
    part = line % 100
    out = np.where(v.traits.two_sided[g.kind[g.ladder[market]]] != 0, np.nan, 0.0)
    out[part == 50] = 0.0
    missing = np.flatnonzero(np.isnan(out))
    if not missing.size:
        return out
    whole = line - part + np.where(part == 75, 100, 0)
    points = np.stack([whole - 50, whole - 50, whole + 50, whole + 50], axis=1)[missing]
    ladder = g.ladder[market[missing]].astype(np.int64)
    tail = tails.best_tails(v, question.forms, ladder, points)
    out[missing] = (tail[:, 0] - tail[:, 3]) * np.where(part[missing] == 0, 1.0, 0.5)
    return out
