"""+EV rows: one for each price above the reference's fair price."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import fair_close, tails, value
from oddsengine.detect import ages, best_legs, edges, sharp_edges
from oddsengine.find import board, ids
from oddsengine.find.board import Bools, Question
from oddsengine.find.search import Search
from oddsengine.groups import Bytes, Floats, Ints, Longs, Words
from oddsengine.kelly import kelly, shrunk_kelly
from oddsengine.odds import decimal_to_american
from oddsengine.results import EV_SCHEMA


class EvPrices(NamedTuple):
    """+EV candidates, as columns: caller, row, fair probability, width of the reference and so on."""

    who: Longs
    row: Ints
    fair: Floats
    width: Floats
    gap: Floats
    seen: Longs
    doubt: Bytes  # 1 if unconfirmed
    edge: Floats  # fraction
    id: Words  # hash of kind, market, book and side, not of the price

    def only(self, keep: Bools) -> "EvPrices":
        """Return a selection of the rows."""
        return EvPrices._make(column[keep] for column in self)


def find(search: Search) -> EvPrices:
    """Return the offers at or above each caller's minimum EV, including those above the cap."""
    v, swept = search.view, search.swept
    hits = edges(v, swept.edge_who, swept.edge_market, search.wants.edge - search.epsilon)
    market = v.groups.market[hits.row].astype(np.int64)
    named = ids.of_prices("ev", v.groups, search.hashes, market, hits.row)
    return EvPrices(*hits, hits.fair * v.net[hits.row] - 1.0, named)


def over_cap(search: Search, hits: EvPrices) -> Bools:
    """Flag edges so large that they must be data errors; all false if the guard is disabled."""
    if not search.cap:
        return np.zeros(hits.edge.size, bool)
    return np.asarray(hits.edge > search.view.limits.ev_cap + search.epsilon)


def rows(question: Question, hits: EvPrices, max_ev: float | None) -> pl.DataFrame:
    """Build result rows, ordered by descending edge."""
    v = question.view
    g = v.groups
    keep = ~over_cap(question, hits)
    if max_ev is not None:
        keep &= hits.edge <= max_ev / 100.0 + question.epsilon
    hits = hits.only(keep)
    edge = hits.edge
    market = g.market[hits.row].astype(np.int64)
    live = v.live[market] != 0
    age = ages(v.now, hits.seen)
    old, _ = board.stale_flags(v, age, live)
    base = question.facts(hits.row)
    sister = _sisters(question, hits.row, edge)
    push = _pushes(question, market)
    arb = _arbs(question, market)
    close = _close(question, hits, market)
    sharp_book = board.references(question, market, hits.row)
    percent = edge * 100.0
    if close is None:
        chance = value.confidence(hits.width, hits.gap, board.known_age(v, age), live, hits.fair, edge)
        chance = np.clip(chance, 0.0, 100.0)
    else:
        chance = close.confidence
    facts = board.market_facts(question, hits.row, base)
    columns: dict[str, Any] = {
        "game": facts["event_name"],
        "id": ids.hexadecimal(hits.id),
        "game_id": base["event_id"],
        "external_event_id": base["external_event_id"],
        "selection_id": base["selection_id"],
        "ev_percentage": percent,
        "ev_percent": percent,
        "odds_american": base["odds_american"],
        "odds_decimal": base["odds_decimal"],
        "no_vig_odds": board.nullable(decimal_to_american(1.0 / hits.fair)),
        "fair_probability": hits.fair,
        "market_width": hits.width * 100.0,
        "devig_method": board.repeated("power" if close else v.method, edge.size, pl.String),
        "sharp_book": sharp_book,
        "devig_book": sharp_book,
        "selection": base["selection"],
        "selection_type": board.sides(question, hits.row),
        "market": board.market_types(question, market),
        "line": board.row_lines(question, hits.row),
        "sportsbook": base["sportsbook"],
        "sport": base["sport"].str.to_lowercase(),
        "league": base["league"],
        "start_time": base["event_start_time"],
        "confidence_score": chance,
        "kelly_percent": kelly(hits.fair, v.net[hits.row]),
        "book_count": v.books[market],
        "arb_available": arb > 0.0,
        "arb_profit": board.nullable(np.where(arb > 0.0, arb * 100.0, np.nan)),
        "player_name": base["player_name"],
        "possibly_stale": old,
        "oldest_odds_age_seconds": board.nullable(age),
        "warnings": board.warned(
            {
                "POTENTIALLY_STALE_ODDS": old & ~live,
                "LIVE_STALE_ODDS": old & live,
                "SHARED_FEED": sister.list.len().to_numpy() > 0,
                "UNCONFIRMED": hits.doubt != 0,
            }
        ),
        "detected_at": question.moments(edge.size),
        "net_odds": v.net[hits.row],
        "push_probability": board.nullable(push),
        "ev_per_stake": percent * (1.0 - np.nan_to_num(push)),
        "is_alternate_line": v.main[market] == 0,
        "shared_feed": sister,
        "odds_id": base["id"],
        "unconfirmed": hits.doubt != 0,
        "reference": sharp_book if close is None else board.repeated("close", edge.size),
        "ev_vs_sharp": percent if close is None else board.nullable(close.sharp * 100.0),
        **({} if close is None else close.columns),
        **facts,
    }
    return board.frame(columns, EV_SCHEMA).sort(["ev_percentage", "id"], descending=[True, False])


class _Close(NamedTuple):
    """Figures at the close that accompany the fair probability."""

    sharp: Floats  # edge over the sharp reference, nan without one
    confidence: Floats
    columns: dict[str, Any]


def _close(question: Question, hits: EvPrices, market: Longs) -> _Close | None:
    """Compute the range at the close, the probability of a positive edge, flags and the shrunk Kelly stake."""
    v = question.view
    if v.close is None or v.board is None:
        return None
    g, net = v.groups, v.net[hits.row]
    se, flags = v.close.se[g.ladder[market]], v.close.flags[hits.row]
    x = np.log(hits.fair / (1.0 - hits.fair))
    low, high = (100.0 * (net * fair_close.sigmoid(x + sign * fair_close.RANGE * se) - 1.0) for sign in (-1.0, 1.0))
    over = np.full(g.row.size, np.nan)
    some = np.unique(market)
    sharp = sharp_edges(v, np.zeros(some.size, np.int64), some, np.array([-1.0]))
    over[sharp.row] = sharp.fair * v.net[sharp.row] - 1.0
    others, agree = fair_close.agreeing(g, v.board.ballot, v.traits, hits.row, v.net)
    return _Close(
        sharp=over[hits.row],
        confidence=fair_close.confidence(se, flags, v.board.of.table),
        columns={
            "ev_low": board.nullable(low),
            "ev_high": board.nullable(high),
            "ev_error": board.nullable(100.0 * net * hits.fair * (1.0 - hits.fair) * se),
            "prob_positive": board.nullable(fair_close.normal((x + np.log(net - 1.0)) / se)),
            "flags": pl.Series([fair_close.named(int(f)) for f in flags], dtype=pl.List(pl.String)),
            "kelly_shrunk": board.nullable(shrunk_kelly(hits.fair, net, se)),
            "independent_books": others,
            "agreeing_books": agree,
        },
    )


def _sisters(question: Question, row: Ints, edge: Floats) -> pl.Series:
    """List, for each row, the books of the same feed with the same edge on the same outcome."""
    v, books = question.view, question.prepared.identity.books
    segment = np.searchsorted(v.groups.rows, row, side="right") - 1
    book = v.groups.book[row]
    feed = v.traits.feed[book]
    order = np.lexsort((edge, feed, segment))
    if not np.all([np.diff(key[order]) == 0 for key in (edge, feed, segment)], axis=0).any():
        return board.repeated([], row.size, pl.List(pl.String))
    frame = pl.DataFrame(
        {
            "segment": segment,
            "feed": feed,
            "edge": edge,
            "book": pl.Series(books, dtype=pl.String)[book],
        }
    )
    lists = frame.group_by("segment", "feed", "edge").agg(pl.col("book").sort().alias("books"))
    joined = frame.join(lists, on=["segment", "feed", "edge"], how="left", maintain_order="left")
    return joined.select(
        pl.when(pl.col("books").list.len() > 1)
        .then(pl.col("books").list.set_difference(pl.concat_list("book")).list.sort())
        .otherwise(pl.lit([], dtype=pl.List(pl.String)))
        .alias("shared")
    ).to_series()


def _arbs(question: Question, market: Longs) -> Floats:
    """Return the profit of each market's best arbitrage as a fraction, 0 without one."""
    v = question.view
    markets, at = np.unique(market, return_inverse=True)
    legs = best_legs(v, np.zeros(markets.size, np.int64), markets, distinct=True)
    profit = 1.0 / legs.total - 1.0
    valid = (profit > question.epsilon) & (profit <= question.wants.most_profit[0] + question.epsilon)
    return np.where(valid, profit, 0.0)[at]


def _pushes(question: Question, market: Longs) -> Floats:
    """Return the probability of a push on each market's line times the share returned, nan if unknown."""
    v, g = question.view, question.view.groups
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
    tail = tails.best(v, question.forms, ladder, points)
    out[missing] = (tail[:, 0] - tail[:, 3]) * np.where(part[missing] == 0, 1.0, 0.5)
    return out
