"""Offers on a board: the bets that keep most of a free bet, or lose least of a bet that an offer requires.

A bet of the promotion at one book is hedged by the best prices of all other outcomes at other books, so that the same
is kept whichever wins. A bet that has equivalent outcomes (see `identity.linked_outcomes`) is hedged in the market that
keeps most: a back of the home side by the draw and the away side, or by the away side with half a goal. With net odds d
of the bet and h of the others,

    free bet F, stake not returned   kept = F (d - 1) (1 - sum of 1 / h)
    free bet F, stake returned       kept = F d (1 - sum of 1 / h)
    qualifying bet B                 kept = B d (1 - sum of 1 / h) - B
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import check_number, excerpt
from oddsengine.catalog.reasons import ACCEPTED, Guards
from oddsengine.columns import Floats, Ints
from oddsengine.detection import book_names as naming
from oddsengine.detection import question as board
from oddsengine.detection.finders import Commission
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import Question, ask, prepare
from oddsengine.identity.linked_outcomes import with_equivalents
from oddsengine.pricing.references import book_list
from oddsengine.tables.casts import TIME
from oddsengine.tables.frames import IntoFrame

PromoKind = Literal["free_bet", "free_bet_returned", "qualifying"]
KINDS: tuple[PromoKind, ...] = ("free_bet", "free_bet_returned", "qualifying")

_HEDGE = pl.Struct(
    {
        "sportsbook": pl.String, "market_type": pl.String, "selection": pl.String, "line": pl.Float64,
        "odds_american": pl.Float64, "odds_decimal": pl.Float64, "net_odds": pl.Float64, "stake": pl.Float64,
        "max_bet": pl.Float64, "row": pl.UInt32,
    }
)  # fmt: skip
PROMO_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_name": pl.String,
    "market_type": pl.String,
    "selection": pl.String,
    "line": pl.Float64,
    "player_name": pl.String,
    "sportsbook": pl.String,
    "odds_american": pl.Float64,
    "odds_decimal": pl.Float64,
    "net_odds": pl.Float64,
    "kept": pl.Float64,  # money, whichever outcome wins
    "conversion": pl.Float64,  # of the amount
    "hedges": pl.List(_HEDGE),
    "limited": pl.Boolean,  # a stake is larger than the maximum bet that is known
    "event_start_time": TIME,
    "sport": pl.String,
    "league": pl.String,
    "event_id": pl.String,
    "row": pl.UInt32,
}
"""Columns of the result of `find_promos`."""


def find_promos(
    odds: IntoFrame,
    kind: PromoKind,
    amount: float,
    *,
    books: Iterable[str] | None = None,
    hedge_books: Iterable[str] | None = None,
    min_odds: float = 1.0,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Find the bets of a promotion that keep most: each hedged at other books, the same kept whichever outcome wins.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`. Live prices are left out.
    kind
        "free_bet", whose stake is not returned; "free_bet_returned", whose stake is; or "qualifying", a bet that an
        offer requires.
    amount
        The free bet, or the stake.
    books, hedge_books
        Where the promotion is, and where hedges can be placed; None is all.
    min_odds
        Minimum decimal odds of the bet, as offers require.
    commission, guards, now
        As in `find_ev`.

    Returns
    -------
    polars.DataFrame
        `PROMO_SCHEMA` and the other columns of `odds`, most kept first: one row for each price of a market whose other
        outcomes can be hedged.

    Raises
    ------
    OddsError, ValueError
        If `odds` cannot be read, or a parameter is invalid.

    Examples
    --------
    >>> rows = [("a", "Over", 5.0), ("a", "Under", 1.2), ("b", "Over", 4.6), ("b", "Under", 1.25)]
    >>> odds = pl.DataFrame(rows, ["sportsbook", "selection", "odds_decimal"], orient="row")
    >>> odds = odds.with_columns(event_id=pl.lit("e1"), market_type=pl.lit("total_points"), line=pl.lit(220.5))
    >>> found = find_promos(odds, "free_bet", 100)
    >>> found.select("sportsbook", "selection", pl.col("kept").round(2)).row(0)
    ('a', 'Over', 80.0)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {excerpt(kind)}")
    check_number("amount", amount, 0.0)
    check_number("min_odds", min_odds, 1.0)
    if amount == 0.0:
        raise ValueError("amount must be above 0")
    prepared = prepare(odds, guards, now)
    question = ask(prepared, None, None, None, commission, thresholds())
    return _rows(question, kind, float(amount), books, hedge_books, min_odds)


def _is_wanted(question: Question, names: Iterable[str] | None) -> Any:
    """Whether each book of a board is meant, and publishes offers."""
    wanted, books = book_list(names), question.board.identity.books
    naming.check(books, wanted, None, None)
    ids = None if wanted is None else {catalog.book(name).id for name in wanted}
    entries = [catalog.book(name) for name in books]
    return np.array([(ids is None or book.id in ids) and not book.last_traded for book in entries], bool)


def _rows(
    question: Question, kind: PromoKind, amount: float, books: Iterable[str] | None, hedge_books: Iterable[str] | None,
    min_odds: float,
) -> pl.DataFrame:  # fmt: skip
    v, g, schema = question.prices, question.prices.groups, board.extended(PROMO_SCHEMA, question.board.extra)
    at = np.flatnonzero((v.columns.reason == ACCEPTED) & (v.columns.live[g.market] == 0)).astype(np.int32)
    if not at.size:
        return board.empty(schema)
    place, segment = with_equivalents(g, g.segments[g.market[at]] + g.side[at])
    at, market = at[place], np.searchsorted(g.segments, segment, side="right") - 1
    prices = pl.DataFrame(
        {"at": at, "market": market, "side": segment - g.segments[market], "book": g.book[at], "net": v.columns.net[at]}
    )
    where = ["market", "side"]
    hedging = prices.filter(pl.Series(_is_wanted(question, hedge_books)[g.book[at]]))
    best = hedging.sort("net", "at", descending=[True, False]).unique(
        [*where, "book"], keep="first", maintain_order=True
    )
    top = best.group_by(where, maintain_order=True).head(2).with_columns(place=pl.int_range(pl.len()).over(where))
    offers = prices.filter(pl.Series(_is_wanted(question, books)[g.book[at]] & (g.odds[at] >= min_odds)))
    offers = offers.sort("net", "at", descending=[True, False]).unique(
        [*where, "book"], keep="first", maintain_order=True
    )
    n = int(g.outcomes[market].max())
    outcomes = g.outcomes[offers["market"].to_numpy()]
    hedge, cost, ok = np.full((offers.height, n), -1, np.int32), np.zeros(offers.height), np.ones(offers.height, bool)
    for k in range(n):
        others = offers.with_row_index("offer").filter(pl.col("side") != k)
        pairs = others.join(top.filter(side=k), on="market", how="inner", suffix="_hedge", maintain_order="left")
        pairs = pairs.filter(pl.col("book") != pl.col("book_hedge")).sort("offer", "place")
        first = pairs.unique("offer", keep="first", maintain_order=True)
        place = first["offer"].to_numpy()
        hedge[place, k] = first["at_hedge"].to_numpy()
        cost[place] += 1.0 / first["net_hedge"].to_numpy()
        needed = (offers["side"].to_numpy() != k) & (k < outcomes)
        ok &= ~needed | (hedge[:, k] >= 0)
    net = offers["net"].to_numpy()
    paid = amount * (net - 1.0 if kind == "free_bet" else net)
    kept = paid * (1.0 - cost) - (amount if kind == "qualifying" else 0.0)
    order = np.flatnonzero(ok)
    order = order[np.argsort(-kept[order], kind="stable")]
    _, once = np.unique(offers["at"].to_numpy()[order], return_index=True)
    order = order[np.sort(once)]
    if not order.size:
        return board.empty(schema)
    return _frame(question, offers["at"].to_numpy()[order], hedge[order], paid[order], kept[order], amount)


def _frame(question: Question, at: Ints, hedge: Ints, paid: Floats, kept: Floats, amount: float) -> pl.DataFrame:
    v = question.prices
    base = question.facts(at)
    case, _ = np.nonzero(hedge >= 0)
    row = hedge[hedge >= 0]
    facts = question.facts(row)
    stake = paid[case] / v.columns.net[row]
    limits = facts["max_bet"].fill_null(np.inf).to_numpy()
    hedges = board.structs(
        {
            "market_type": board.market_types(question, row),
            "line": board.row_lines(question, row),
            "net_odds": v.columns.net[row],
            "stake": stake,
        },
        _HEDGE,
        facts,
    )
    of_bet = base["max_bet"].fill_null(np.inf).to_numpy()
    limited = np.bincount(case, stake > limits, minlength=at.size) > 0
    columns = {
        "net_odds": v.columns.net[at],
        "kept": kept,
        "conversion": kept / amount,
        "hedges": board.lists(case, hedges, at.size),
        "limited": limited | (amount > of_bet),
        "line": board.row_lines(question, at),
        **board.market_facts(question, at, base),
    }
    return board.frame(columns, board.extended(PROMO_SCHEMA, base.extra), base)
