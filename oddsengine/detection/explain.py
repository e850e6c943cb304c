"""Explanations of opportunities: every price of the market, the reference, and rejected prices with reasons."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.catalog import FairTable
from oddsengine.catalog.reasons import NAMES, Guards, sentence
from oddsengine.columns import Floats, Ints, Longs, spans
from oddsengine.detection import ev
from oddsengine.detection import question as board
from oddsengine.detection.finders import Commission
from oddsengine.detection.kinds import KINDS, Kind, loosest, thresholds
from oddsengine.detection.leg_times import ages
from oddsengine.detection.market_fair import market_fair
from oddsengine.detection.question import Question, Sharp, prepare
from oddsengine.detection.result_columns import accepted, outcome
from oddsengine.detection.settlement_differences import listed
from oddsengine.identity.linked_outcomes import with_equivalents
from oddsengine.maths.devig import Method
from oddsengine.pricing.references import devig_method
from oddsengine.pricing.votes import CONSENSUS
from oddsengine.tables.levels import BET_RULES
from oddsengine.tables.schema import OddsTable


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The explanation of one opportunity.

    Attributes
    ----------
    kind
        ``ev``, ``arbitrage``, ``low_hold`` or ``middle``, or the word for one of a kind of your own.
    opportunity
        The result row of the finder.
    reference, method
        The book, ``consensus`` or ``close`` behind the fair price, and the de-vig method; the reference is None if the
        best prices themselves were de-vigged.
    fair
        One row per outcome of the market (of both markets for a middle) with its fair probability.
    prices
        One row per price of the market: book, selection, line, quoted and net odds, the book's own fair probability,
        the fair probability and EV that `find_ev` has for it, age, role: ``leg``, ``reference``, ``offer``, ``other``
        (a book outside `books`) or ``rejected``, and, if there are several legs, the stake of each in percent of the
        total, for equal payouts; `min_bet`, `bet_step` and `bet_delay` if the odds have these columns.
    terms
        What each leg settles on where the game does not end in the usual way, one row per case and leg: what it does
        in words, null if that is unknown, with source and date; whether legs differ, and the worst known result in
        percent of the total stake. Without rows if nothing is known of any leg.
    rejected
        Prices that were not used and why: rejected by a guard or identity, or better than the leg but not admissible
        with the other legs.
    """

    kind: str
    opportunity: dict[str, Any]
    reference: str | None
    method: str
    fair: pl.DataFrame
    prices: pl.DataFrame
    terms: pl.DataFrame
    rejected: pl.DataFrame

    def __repr__(self) -> str:
        """Return the same text, for notebooks."""
        return str(self)

    def __str__(self) -> str:
        """Format the explanation as plain text."""
        row = self.opportunity
        event = row["event_name"]
        market = row["market_type"]
        others = "all other books" if self.kind == "ev" else "all books"
        who = {None: "the best prices themselves", "close": f"{others} at the close"}.get(
            self.reference, self.reference
        )
        if "one_sided" in (row.get("flags") or ()):
            who = f"{who}, some of which quote one side only"
        with pl.Config(
            tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True,
            tbl_width_chars=250, fmt_str_lengths=200, tbl_formatting="ASCII_MARKDOWN", float_precision=4,
        ):  # fmt: skip
            return "\n".join(
                [
                    f"{self.kind}  {row['id']}",
                    f"{event}, {market}: {KINDS.of_one(self.kind).headline(row)}",
                    *self._bets(),
                    "",
                    f"Fair probability from {who}, margin removed by the method {self.method}:",
                    str(self.fair),
                    "",
                    "Prices of the market:",
                    str(self.prices),
                    "",
                    *self._terms(),
                    "Passed over:" if self.rejected.height else "Passed over: nothing.",
                    *([str(self.rejected)] if self.rejected.height else []),
                ]
            )

    def _terms(self) -> list[str]:
        """The terms of the legs side by side; nothing if none are known."""
        if not self.terms.height:
            return []
        lines = [
            {"case": case, **dict(zip(books, texts, strict=True)), "result_percent": result}
            for case, books, texts, result in self.terms.group_by("case", maintain_order=True)
            .agg("sportsbook", pl.col("terms").fill_null("unknown"), pl.col("result_percent").first())
            .rows()
        ]
        return ["What the bets settle on:", str(pl.DataFrame(lines)), ""]

    def _bets(self) -> list[str]:
        """Describe each leg: outcome with its line, book, odds and stake, and which stakes are accepted when."""
        row = self.opportunity
        return [
            f"    {outcome(row, leg)} at {leg['sportsbook']}, odds {leg['odds_decimal']:.4g}"
            + ("" if leg["stake_percent"] is None else f", stake {leg['stake_percent']:.2f} %")
            + accepted(leg)
            for leg in self.prices.filter(role="leg").iter_rows(named=True)
        ]


def explain(
    odds: pl.DataFrame,
    opportunity_id: str,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    max_profit: float | None = 10.0,
    stake: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
    include: Iterable[str] = (),
    fair: FairTable | None = None,
) -> Explanation:
    """Explain one opportunity.

    Parameters
    ----------
    odds
        The prices in which it was found.
    opportunity_id
        Its `id`.
    books, sharp, method, max_profit, stake, commission, guards, now, include, fair
        The arguments with which it was found; see `oddsengine.detection.finders`.

    Raises
    ------
    ValueError
        If there is no opportunity with this id.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> import oddsengine as oe
    >>> odds = oe.read_odds(SAMPLE_BOARD)
    >>> found = explain(odds, oe.find_ev(odds)["id"][0])
    >>> found.kind, found.reference, found.prices.height
    ('ev', 'close', 24)
    """
    question = board.ask(
        prepare(odds, guards, now),
        books,
        sharp,
        method,
        commission,
        thresholds(**loosest() | {"min_profit": 0.0, "max_profit": max_profit}),
        include=include,
        fair=fair,
        stake=stake,
    )
    for kind in KINDS.values():
        hits = kind.find(question)
        found = kind.located(question, hits)
        if opportunity_id not in found.id:
            continue
        row = next(kind.build(question, hits).filter(id=opportunity_id).iter_rows(named=True), None)
        if row is not None:
            at = found.id.index(opportunity_id)
            return _explanation(question, kind, row, found.markets[at], found.rows[at], found.cost[at])
    raise ValueError(
        f"no opportunity with id {excerpt(opportunity_id)} for these prices, books, sharp, method, stake and guards"
    )


def _explanation(
    question: Question, kind: Kind, opportunity: dict[str, Any], markets: Longs, legs: Ints, cost: Floats
) -> Explanation:
    v, identity = question.prices, question.prepared.identity
    g = v.groups
    legs, cost = legs[legs >= 0], cost[legs >= 0]
    reference = int(v.columns.reference[markets[0]])
    name = "consensus" if reference == CONSENSUS else identity.books[reference] if reference >= 0 else None
    fair = market_fair(v, markets)
    if v.close is not None and (kind.name == "ev" or not np.isnan(v.close.segment[g.segments[markets[0]]])):
        reference, name = -1, "close"
    if v.close is not None and kind.name == "ev":
        # The fair price for this book: from all others, with its own price as supporting evidence.
        side, p = int(g.side[legs[0]]), float(opportunity["fair_probability"])
        first = g.segments[markets[0]]
        fair[0] = np.resize(v.close.segment[first : g.segments[markets[0] + 1]], fair.shape[1])
        if g.outcomes[markets[0]] == 2:
            fair[0, 1 - side] = 1.0 - p
        fair[0, side] = p
    outcomes = [identity.kinds[g.kind[g.ladder[m]]].outcomes for m in markets]
    lines = board.market_lines(question, markets).to_list()
    fair_ = pl.DataFrame(
        [
            {"line": line, "outcome": outcome, "fair_probability": float(p)}
            for line, names, probs in zip(lines, outcomes, fair, strict=True)
            for outcome, p in zip(names, probs, strict=False)
        ],
        schema={"line": pl.Float64, "outcome": pl.String, "fair_probability": pl.Float64},
    )
    rows, segment = _rows_of(question, markets, equivalents=legs.size > 1 and not kind.paired)
    return Explanation(
        kind.one,
        opportunity,
        name,
        devig_method(v.method),
        fair_,
        _prices(question, rows, segment, legs, cost, reference),
        listed(question, legs, cost),
        _passed_over(question, rows, segment, legs),
    )


def _rows_of(question: Question, markets: Longs, *, equivalents: bool) -> tuple[Longs, Longs]:
    """Return the rows of some markets and of equivalent outcomes of others, and the segment there of each."""
    g = question.prices.groups
    own = spans(g.segments[markets], g.segments[markets + 1])
    place, segment = with_equivalents(g, own) if equivalents else (np.arange(own.size), own)
    first, end = g.rows[segment], g.rows[segment + 1]
    return spans(first, end), np.repeat(own[place], end - first)


def _values(question: Question, rows: Longs) -> tuple[Floats, Floats]:
    """Return the fair probability and the EV in percent of each row, as `find_ev` has them; nan if it has none."""
    hits = ev.find_hits(question)
    fair, edge = np.full((2, question.prices.columns.net.size), np.nan)
    fair[hits.row], edge[hits.row] = hits.fair, hits.edge
    return fair[rows], 100.0 * edge[rows]


def _prices(
    question: Question, rows: Longs, segment: Longs, legs: Ints, cost: Floats, reference: int
) -> pl.DataFrame:  # fmt: skip
    """List the prices of the market with their roles, best first within an outcome.

    Prices of equivalent outcomes are under the outcome and line of the market; `market_type` says what their own is.
    """
    v, g = question.prices, question.prices.groups
    market = np.searchsorted(g.segments, segment, side="right") - 1
    side = segment - g.segments[market]
    labels = question.labels
    table = question.table[g.row[rows]]
    rejected = question.prepared.guarded.reason[rows] != 0
    member = (v.references.member[g.book[rows]] != 0) & (reference == CONSENSUS)
    is_reference = (g.book[rows] == reference) if reference >= 0 else member
    role = np.select(
        [np.isin(rows, legs), rejected, is_reference & (v.columns.trusted[rows] != 0), v.offer[rows] != 0],
        ["leg", "rejected", "reference", "offer"],
        "other",
    )
    share = np.full(rows.size, np.nan)
    if legs.size > 1:
        place = {row: at for at, row in enumerate(rows.tolist())}
        share[[place[leg] for leg in legs.tolist()]] = 100.0 * cost / cost.sum()
    fair, percent = _values(question, rows)
    facts = question.facts(rows.astype(np.int32))
    frame = pl.DataFrame(
        {
            "odds_id": facts["id"],
            "sportsbook": table["sportsbook"],
            "market_type": board.market_types(question, rows.astype(np.int32)),
            "outcome": labels.outcomes[labels.outcome[g.kind[g.ladder[market]], side]],
            "selection": table["selection"],
            "line": table["line"].zip_with(
                pl.Series(g.market[rows] == market), board.market_lines(question, market, side)
            ),
            "odds_decimal": table["odds_decimal"],
            "net_odds": v.columns.net[rows],
            "own_fair": board.nullable(
                np.where((v.users.counted[0] | v.references.member)[g.book[rows]] != 0, v.columns.own[rows], np.nan)
            ),
            "fair_probability": board.nullable(fair),
            "ev_percentage": board.nullable(percent),
            "age_seconds": board.nullable(ages(v.now, g.seen[rows])),
            "role": pl.Series(role, dtype=pl.String),
            "stake_percent": board.nullable(share),
            **{name: facts[name] for name in BET_RULES if name in facts.extra},
        }
    )
    return frame.sort("line", "outcome", "net_odds", descending=[False, False, True], nulls_last=True)


def _passed_over(question: Question, rows: Longs, segment: Longs, legs: Ints) -> pl.DataFrame:
    """List rejected prices of the market, and better ones that could not be used."""
    g, prepared = question.prices.groups, question.prepared
    table = question.table
    rejected = prepared.guarded.reason
    unused = rows[rejected[rows] != 0]
    why = [
        f"{NAMES[code]}: {sentence(NAMES[code], x)}"
        for code, x in zip(rejected[unused].tolist(), prepared.guarded.measure[unused].tolist(), strict=True)
    ]
    better, reasons = _better(question, rows, segment, legs)
    own = (g.segments[g.market[rows]] <= segment) & (segment < g.segments[g.market[rows] + 1])
    stray = _stray(prepared.identity.verdict, table, g.row[rows[own]])
    at = np.concatenate((g.row[unused], g.row[better], stray))
    codes = prepared.identity.verdict[stray].tolist()
    strays = zip(codes, board.reasons_of(prepared, stray), strict=True)
    why = [*why, *reasons, *(f"{NAMES[code]}: {text}" for code, text in strays)]
    rows_ = table[at]
    return pl.DataFrame(
        {
            "sportsbook": rows_["sportsbook"],
            "market_type": rows_["market_type"],
            "selection": rows_["selection"],
            "line": rows_["line"],
            "odds_decimal": rows_["odds_decimal"],
            "why": pl.Series(why, dtype=pl.String),
        }
    ).sort("selection", "odds_decimal", "sportsbook", descending=[False, True, False])


def _stray(verdict: Any, table: OddsTable, near: Ints) -> Longs:
    """List the rows of the same event and market type without a market."""
    kinds = table[near].select("event_id", "market_type").unique()
    same = (
        table.select("event_id", "market_type")
        .with_row_index("at")
        .join(kinds, on=["event_id", "market_type"], how="semi")
    )
    at = same["at"].to_numpy().astype(np.int64)
    return np.sort(at[verdict[at] != 0])


def _better(question: Question, rows: Longs, segment: Longs, legs: Ints) -> tuple[Longs, list[str]]:
    """List prices better than the leg of their outcome, and why they were not used."""
    v, g = question.prices, question.prices.groups
    held = set(legs.tolist())
    of_outcome = {at: row for row, at in zip(rows.tolist(), segment.tolist(), strict=True) if row in held}
    better, why = [], []
    for row, at in zip(rows.tolist(), segment.tolist(), strict=True):
        leg = of_outcome.get(at)
        if leg is None or v.columns.net[row] <= v.columns.net[leg] or question.prepared.guarded.reason[row]:
            continue
        better.append(row)
        if not v.offer[row]:
            why.append("not among the books asked for")
        elif g.book[row] in {g.book[other] for other in legs if other != leg}:
            why.append("its book already holds another leg")
        else:
            why.append("live legs must be fresh and close in time")
    return np.array(better, np.int64), why
