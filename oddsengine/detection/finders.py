"""The public finders: a frame of prices in, a frame of opportunities out.

Every finder takes a frame of prices (see `ODDS_SCHEMA`) and these parameters:

- `books`: books that can be bet at; None is all. Opportunities are computed over exactly these.
- `sharp`: the reference: a book, books in order of preference, or weights of a consensus
  (`{"pinnacle": 3, "circa": 1}`). None is the catalog's order. References need not be in `books`.
- `method`: what +EV is measured against: "close" (see `oddsengine.pricing.close`), the default without `sharp`, which
  needs two other books, or Pinnacle where it was measured alone; or one of `DEVIG_METHODS`, with which the reference is
  de-vigged.
- `commission`: rates on winnings by book, replacing the catalog's.
- `guards`: which guards run; None is all of `GUARDS`, an empty list none; a mapping changes thresholds
  (`{"stale": 300}`) or disables single guards (`{"flap": False}`). Guards see all books.
- `now`: the time at which ages are evaluated; None is the newest `last_seen_at` of the table.

Thresholds are in percent, with a tolerance of 1e-7, so that a hold of exactly 2 % is within `max_hold=2`.

A finder that returns nothing because the input is unusable, or because there is no fair price to compare with, says so
in an `OddsWarning`, and so does one that does not see a game whole (`oddsengine.detection.missed`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import check_number
from oddsengine.catalog.reasons import NAMES, Guards, sentence
from oddsengine.detection import arbitrages, empty, ev, kinds, low_hold, middles, missed
from oddsengine.detection import fair as fair_rows
from oddsengine.detection import question as board
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine.detection.model_input import IntoModel, modelled
from oddsengine.detection.question import PreparedTable, Question, Sharp, prepare, rejected_counts
from oddsengine.detection.result_columns import MARKETS_SCHEMA, REJECTED_SCHEMA
from oddsengine.guards.main_markets import main_lines
from oddsengine.maths.devig import Method
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import OddsError, OddsTable, check_rows, row_column, warn

_ROWS_FOR_THREADS = 100_000
Commission = Mapping[str, float] | None


class Opportunities:
    """Opportunities of all kinds: a frame of each, with counts of rejected rows and of results above their cap."""

    def __init__(self, frames: Mapping[str, pl.DataFrame], rejected_counts: dict[str, int]) -> None:
        self.frames = frames
        # Rejected rows by guard, and results above their cap by the name of the cap.
        self.rejected_counts = rejected_counts

    @property
    def ev(self) -> pl.DataFrame:
        """`EV_SCHEMA`."""
        return self.frames["ev"]

    @property
    def arbitrage(self) -> pl.DataFrame:
        """`ARBITRAGE_SCHEMA`."""
        return self.frames["arbitrage"]

    @property
    def low_hold(self) -> pl.DataFrame:
        """`LOW_HOLD_SCHEMA`."""
        return self.frames["low_hold"]

    @property
    def middles(self) -> pl.DataFrame:
        """`MIDDLES_SCHEMA`."""
        return self.frames["middles"]

    def __getitem__(self, kind: str) -> pl.DataFrame:
        """The frame of a kind."""
        return self.frames[kind]

    __iter__ = None  # not by number: there may be more kinds

    def __repr__(self) -> str:
        counts = ", ".join(f"{frame.height:,} {kind}" for kind, frame in self.frames.items())
        return f"<Opportunities: {counts}>"


def _warn(found: int, question: Question, sharp: Sharp = None, *, fair: bool = False) -> None:
    """Warn of a result without rows, if there is a reason, and of games that the search does not see whole.

    `fair` says whether rows need a fair price.
    """
    text = "" if found else empty.unusable(question)
    if not text:
        none = empty.no_fair_price(question, sharp) if fair and not found else ""
        text = "; ".join(([none] if none else []) + missed.notes(question.prepared))
    if text:
        warn(text)


def find_ev(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    min_ev: float = 0.0,
    max_ev: float | None = None,
    model: IntoModel | str | None = None,
    stake: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    include: Iterable[str] = (),
    now: datetime | None = None,
) -> pl.DataFrame:
    """Find +EV prices: those that pay more than the fair price, which by default is estimated from the other books.

    Two of them, from different providers, must quote the whole market, or Pinnacle where it was measured alone; a table
    of two other books needs `sharp`.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    min_ev, max_ev
        Range of the expected value in percent; above 30, the guard `ev_cap` rejects a price.
    books
        Books that can be bet at, by id, name or alias; None is all.
    sharp
        The reference: a book, books in order of preference, or weights of a consensus: ``{"pinnacle": 3, "circa": 1}``.
    method
        "close", the default without `sharp`, or one of `DEVIG_METHODS`, with which the reference is de-vigged.
    model
        Your probabilities: a column of `odds`, a registered price, a table, or matrices of scores (docs/model.md).
    stake
        Prices with `levels` are offered at what this stake gets (docs/depth.md); None is the best level.
    commission
        Rates on winnings by book, such as 0.02, instead of the catalog's.
    guards
        Names of the guards to run, or changes: ``{"stale": 300, "flap": False}``; an empty list is none.
    include
        ``"suspect"`` adds prices that are probably errors, ``"one_sided"`` those of one side only (docs/one_sided.md).
    now
        Time at which ages are evaluated; None is the newest `last_seen_at`.

    Returns
    -------
    polars.DataFrame
        `EV_SCHEMA` and the other columns of `odds`, best first; `row` is the position of the price in `odds`, from 0.

    Raises
    ------
    OddsError, ValueError, TypeError
        If `odds` or `model` cannot be read, or a parameter is invalid.

    Examples
    --------
    >>> quotes = [("pinnacle", "Over", 1.95), ("pinnacle", "Under", 1.95), ("fanduel", "Over", 2.1)]
    >>> odds = pl.DataFrame(quotes, ["sportsbook", "selection", "odds_decimal"], orient="row")
    >>> odds = odds.with_columns(event_id=pl.lit("e1"), market_type=pl.lit("total_points"), line=pl.lit(220.5))
    >>> find_ev(odds, sharp="pinnacle").select("row", "selection", pl.col("ev_percentage").round(2)).rows()
    [(2, 'Over', 5.0)]
    """
    kinds.check_thresholds({"min_ev": min_ev})
    check_number("max_ev", max_ev, optional=True)
    prepared = prepare(odds, guards, now)
    wants = kinds.thresholds(min_ev=min_ev, max_profit=100.0 * catalog.thresholds().arbitrage_cap)
    own = modelled(model, prepared)
    question = board.ask(prepared, books, sharp, method, commission, wants, include=include, model=own, stake=stake)
    found = ev.build_rows(question, ev.at_most(question, ev.find_hits(question), max_ev))
    _warn(found.height, question, sharp, fair=True)
    return found


def find_arbitrage(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    min_profit: float = 0.5,
    max_profit: float | None = 10.0,
    stake: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Find arbitrages: markets whose best prices, from at least two books, guarantee a profit.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    min_profit, max_profit
        Range of the profit in percent of the total stake; 0.5 and 10 by default. With a minimum of 0, prices that break
        even are not arbitrages but low holds; below 0, losing combinations are listed as well. None as `max_profit` is
        no limit.
    books, sharp, method, stake, commission, guards, now
        As in `find_ev`. `sharp` and `method` are for `ev_available` only.

    Returns
    -------
    polars.DataFrame
        `ARBITRAGE_SCHEMA`, largest profit first; the best arbitrage of each market. The profit is for a game that is
        played and has a winner; `terms_differ` flags legs that settle differently otherwise (docs/terms.md).

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["fanduel", "draftkings"],
    ...         "selection": ["Over", "Under"],
    ...         "line": 220.5,
    ...         "odds_decimal": [2.1, 2.05],
    ...     }
    ... )
    >>> find_arbitrage(odds).select("line", pl.col("profit_percent").round(2)).rows()
    [(220.5, 3.73)]
    """
    kinds.check_thresholds({"min_profit": min_profit, "max_profit": max_profit})
    prepared = prepare(odds, guards, now)
    wants = kinds.thresholds(min_profit=min_profit, max_profit=max_profit)
    question = board.ask(prepared, books, sharp, method, commission, wants, stake=stake)
    found = arbitrages.build_rows(question, arbitrages.find_hits(question))
    _warn(found.height, question)
    return found


def find_low_hold(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    max_hold: float = 2.0,
    stake: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Find low-hold markets, whose best prices have a hold from 0 to `max_hold` percent.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    max_hold
        Maximum hold in percent; 2 by default.
    books, sharp, method, stake, commission, guards, now
        As in `find_ev`. `sharp` and `method` are for the sides' fair probabilities only.

    Returns
    -------
    polars.DataFrame
        `LOW_HOLD_SCHEMA`, smallest hold first.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["fanduel", "draftkings"],
    ...         "selection": ["Over", "Under"],
    ...         "line": 220.5,
    ...         "odds_decimal": [2.0, 1.98],
    ...     }
    ... )
    >>> find_low_hold(odds).select("line", pl.col("hold_percentage").round(2)).rows()
    [(220.5, 0.51)]
    """
    kinds.check_thresholds({"max_hold": max_hold})
    prepared = prepare(odds, guards, now)
    wants = kinds.thresholds(max_hold=max_hold)
    question = board.ask(prepared, books, sharp, method, commission, wants, stake=stake)
    found = low_hold.build_rows(question, low_hold.find_hits(question))
    _warn(found.height, question)
    return found


def find_middles(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    min_size: float = 0.0,
    min_ev: float | None = None,
    max_profit: float | None = 10.0,
    stake: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Find middles: bets on two lines, at two books, that can both win.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    min_size
        Minimum distance of the two lines, in points; 0 by default.
    min_ev
        Minimum expected value in percent of the total stake; None, the default, is no limit.
    max_profit
        Maximum profit in the worst case in percent, 10 by default; None is no limit.
    books, sharp, method, stake, commission, guards, now
        As in `find_ev`.

    Returns
    -------
    polars.DataFrame
        `MIDDLES_SCHEMA`, best quality first. Middles with a worst case below -20 % are left out.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "sport": "football",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["fanduel", "fanduel", "draftkings", "draftkings"],
    ...         "selection": ["Over", "Under"] * 2,
    ...         "line": [44.5, 44.5, 47.5, 47.5],
    ...         "odds_decimal": [1.95, 1.87, 1.87, 1.95],
    ...     }
    ... )
    >>> find_middles(odds).select("middle_numbers", "is_guaranteed_profit").rows()
    [([45, 46, 47], False)]
    """
    check_number("min_ev", min_ev, optional=True)
    kinds.check_thresholds({"min_size": min_size, "max_profit": max_profit})
    prepared = prepare(odds, guards, now)
    wants = kinds.thresholds(min_middle_ev=min_ev, min_size=min_size, max_profit=max_profit)
    question = board.ask(prepared, books, sharp, method, commission, wants, stake=stake)
    found = middles.build_rows(question, middles.find_hits(question))
    _warn(found.height, question)
    return found


def find_all(
    odds: IntoFrame | PreparedTable,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    min_ev: float = 0.0,
    max_ev: float | None = None,
    min_profit: float = 0.5,
    max_hold: float = 2.0,
    min_size: float = 0.0,
    min_middle_ev: float | None = 0.0,
    max_profit: float | None = 10.0,
    model: IntoModel | str | None = None,
    stake: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    include: Iterable[str] = (),
    now: datetime | None = None,
    **thresholds: float | None,
) -> Opportunities:
    """Find opportunities of all kinds.

    Parameters
    ----------
    odds
        Prices, one per row; or the result of `prepare`, without `guards` and `now`.
    min_ev, max_ev
        Range of the expected value of +EV prices in percent; 0 and None (no limit) by default.
    min_profit, max_profit
        Range of the profit of arbitrages in percent; 0.5 and 10 by default. The maximum also applies to the worst case
        of middles; None is no limit.
    max_hold
        Maximum hold of low-hold markets in percent; 2 by default.
    min_size
        Minimum distance of a middle's lines, in points; 0 by default.
    min_middle_ev
        Minimum expected value of middles in percent, 0 by default; None is no limit.
    thresholds
        Those of kinds of your own (docs/kinds.md).
    books, sharp, method, model, stake, commission, guards, include, now
        As in `find_ev`.

    Returns
    -------
    Opportunities
        A frame of each kind, and the number of rows rejected by each guard.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["pinnacle", "pinnacle", "fanduel"],
    ...         "selection": ["Over", "Under", "Over"],
    ...         "line": 220.5,
    ...         "odds_decimal": [1.95, 1.95, 2.1],
    ...     }
    ... )
    >>> found = find_all(prepare(odds), books=["fanduel", "pinnacle"], sharp="pinnacle")
    >>> found.ev.height, found.arbitrage.height, found.low_hold.height, found.middles.height, found.rejected_counts
    (1, 1, 0, 0, {})
    """
    check_number("max_ev", max_ev, optional=True)
    given = dict(
        min_ev=min_ev, min_profit=min_profit, max_profit=max_profit, max_hold=max_hold, min_middle_ev=min_middle_ev,
        min_size=min_size,
    )  # fmt: skip
    given = kinds.usual(KINDS) | given | thresholds
    kinds.check_thresholds(given)
    prepared = odds if isinstance(odds, PreparedTable) else prepare(odds, guards, now)
    own = modelled(model, prepared)
    question = board.ask(
        prepared, books, sharp, method, commission, kinds.thresholds(**given), include=include, model=own, stake=stake
    )
    counts = rejected_counts(prepared)
    _ = question.swept  # the kinds share it

    def found(kind: Kind) -> tuple[pl.DataFrame, int]:
        hits = kind.find(question)
        cut = int(kind.over_cap(question, hits).sum())
        return kind.build(question, ev.at_most(question, hits, max_ev) if kind is kinds.EV else hits), cut

    if prepared.table.height < _ROWS_FOR_THREADS:
        results = [found(kind) for kind in KINDS.values()]
    else:
        # The kinds share no mutable state and mostly run without the GIL.
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(found, KINDS.values()))
    over_cap = Counter[str]()
    for kind, (_, cut) in zip(KINDS.values(), results, strict=True):
        if kind.cap:
            over_cap[kind.cap] += cut
    counts |= {name: cut for name in sorted(over_cap) if (cut := over_cap[name])}
    frames = {name: rows for name, (rows, _) in zip(KINDS, results, strict=True)}
    _warn(over_cap.total() + sum(frame.height for frame in frames.values()), question, sharp, fair=True)
    return Opportunities(frames, counts)


def why_no_ev(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: Method | None = None,
    model: IntoModel | str | None = None,
    commission: Commission = None,
    guards: Guards = None,
    include: Iterable[str] = (),
    now: datetime | None = None,
    option: str = "sharp",
) -> str:
    """Say in one sentence why no price can have an EV; empty if some can. `option` is the name of `sharp` in it."""
    prepared, wants = prepare(odds, guards, now), kinds.thresholds()
    own = modelled(model, prepared)
    question = board.ask(prepared, books, sharp, method, commission, wants, include=include, model=own)
    return empty.unusable(question) or empty.no_fair_price(question, sharp, option)


def games_missed(odds: IntoFrame, *, guards: Guards = None, now: datetime | None = None) -> list[str]:
    """Say which games of a table are split, and which are left out whole."""
    prepared = prepare(odds, guards, now)
    return missed.notes(prepared)


def why(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = None,
    model: IntoModel | str | None = None,
    commission: Commission = None,
    guards: Guards = None,
    include: Iterable[str] = (),
    now: datetime | None = None,
) -> str:
    """Say why a finder finds nothing, or little, in a table.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    books, sharp, method, model, commission, guards, include, now
        As given to the finder; see `find_ev`.

    Returns
    -------
    str
        The sentence of the finders' `OddsWarning`, if no row is valid, if guards reject nearly all, or if no price has
        a fair price to compare with. Otherwise how many rows are usable, and how good the best prices are. Games that
        are probably split, or left out whole, follow. `rejected` lists the rejected rows with their reasons.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["pinnacle", "pinnacle", "fanduel", "fanduel"],
    ...         "selection": ["Over", "Under", "Over", "Under"],
    ...         "line": 220.5,
    ...         "odds_decimal": [1.95, 1.95, 2.0, 1.9],
    ...     }
    ... )
    >>> why(odds, sharp="pinnacle").split("; ")[:2]
    ['4 of 4 rows are usable', 'the best price has an EV of 0.00 %']
    >>> why(odds.filter(sportsbook="fanduel")).partition(":")[0]
    'no fair price'
    """
    prepared, wants = prepare(odds, guards, now), kinds.thresholds()
    own = modelled(model, prepared)
    question = board.ask(prepared, books, sharp, method, commission, wants, include=include, model=own)
    if text := empty.unusable(question):
        return text
    return "; ".join(
        [empty.no_fair_price(question, sharp) or empty.best_found(question), *missed.notes(question.prepared)]
    )


def rejected(
    odds: IntoFrame,
    *,
    sharp: Sharp = None,
    method: Method | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """List every rejected row with its guard and reason.

    Invalid rows have the field and the invalid value. Prices rejected only by `ev_cap` are listed too; other detectors
    still use them. An `OddsWarning` names games that are probably split by a typo or a time zone.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    sharp, method, commission, guards, now
        As in `find_ev`; `sharp`, `method` and `commission` are for `ev_cap` only.

    Returns
    -------
    polars.DataFrame
        `REJECTED_SCHEMA`, in the table's order; `row` is the position, from 0.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["fanduel", "draftkings"],
    ...         "selection": ["Over", "Under"],
    ...         "line": [220.5, None],
    ...         "odds_decimal": [2.1, 2.05],
    ...     }
    ... )
    >>> rejected(odds).select("row", "guard").rows()
    [(1, 'no_line')]
    """
    prepared = prepare(odds, guards, now)
    identity, guarded, table = prepared.identity, prepared.guarded, prepared.table
    if split := missed.split_games(table):
        warn(split)
    # Prices without a fair price at the close may still be implausible compared with a sharp book.
    edge: dict[int, float] = {}
    for chosen in (method, "power") if method is None and sharp is None else (method,):
        capped_of = board.ask(prepared, None, sharp, chosen, commission, kinds.thresholds(min_ev=0.0))
        hits = ev.find_hits(capped_of)
        capped = hits.only(ev.over_cap(capped_of, hits))
        for row, of in zip(capped.row.tolist(), capped.edge.tolist(), strict=True):
            edge.setdefault(row, 100.0 * of)
    g = identity.groups
    rows = np.flatnonzero(identity.verdict)
    held = np.flatnonzero(guarded.reason)
    at = np.concatenate((rows, g.row[held], g.row[list(edge)]))
    names = [NAMES[c] for c in (*identity.verdict[rows].tolist(), *guarded.reason[held].tolist())]
    names += ["ev_cap"] * len(edge)
    measure = guarded.measure[held].tolist() + list(edge.values())
    reasons = board.reasons_of(prepared, rows)
    reasons += [sentence(name, x) for name, x in zip(names[rows.size :], measure, strict=True)]
    invalid = table[at]
    position = row_column(table.columns)
    frame = pl.DataFrame(
        {
            "row": invalid[position],
            "guard": pl.Series(names, dtype=pl.String),
            "reason": pl.Series(reasons, dtype=pl.String),
            **{
                name: invalid[name]
                for name in (
                    "sportsbook", "event_id", "market_type", "selection", "line", "odds_decimal", "is_live",
                    "last_seen_at",
                )
            },
        }
    )  # fmt: skip
    columns = [position, "sportsbook", "event_id", "market_type", "selection", "line", "is_live", "last_seen_at"]
    bad = table.rejected.join(table.unpriced.select(columns), on=position, how="left").rename({position: "row"})
    everything = pl.concat(
        [board.frame(dict(frame.to_dict()), REJECTED_SCHEMA), board.frame(bad.to_dict(), REJECTED_SCHEMA)]
    )
    return everything.sort("row", "guard").rename({"row": position})


def fair(
    odds: IntoFrame | PreparedTable,
    *,
    sharp: Sharp = None,
    method: Method | None = None,
    model: IntoModel | str | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
    constants: catalog.FairTable | None = None,
) -> pl.DataFrame:
    """Return the same rows in the same order, with fair-price columns.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`. Columns named as in `FAIR_COLUMNS` are not allowed. The result of
        `prepare` is accepted, without `guards` and `now`; the rows are then those of its checked table.
    sharp, method, model, commission, guards, now
        As in `find_ev`: by default the fair price at the close. With one of `DEVIG_METHODS` and without `sharp`, the
        catalog's sharp books are the reference.

    constants
        Constants of the fair price at the close, such as `FairPrice.table_`; None, the default, is the catalog's.

    Returns
    -------
    polars.DataFrame
        The given columns, followed by `FAIR_COLUMNS`:

        - `fair_probability`: of winning, given no push, by the reference without the row's own book; a reference's own
          rows have their own de-vigged probability. Rejected rows have one too.
        - `fair_error`: its standard error. With the method "close", that of the close; otherwise from the disagreement
          of the other books, null with fewer than two of them.
        - `reference`: the reference book, or ``consensus``.
        - `hold`: the margin of the row's book in this market, a fraction; null unless it quotes the whole market.
        - `ev`: mean profit per unit staked, a fraction, after commission; null without a fair price from other books,
          and for rejected prices.
        - `net_odds`: the row's decimal odds after commission.
        - `guard`: the guard that rejects the row, or null.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["fanduel", "pinnacle", "pinnacle"],
    ...         "selection": ["Over", "Over", "Under"],
    ...         "line": 220.5,
    ...         "odds_decimal": [2.1, 1.95, 1.95],
    ...     }
    ... )
    >>> fair(odds, sharp="pinnacle").select("sportsbook", "fair_probability", pl.col("hold", "ev").round(4)).rows()
    [('fanduel', 0.5, None, 0.05), ('pinnacle', 0.5, 0.0256, None), ('pinnacle', 0.5, 0.0256, None)]
    """
    came = pl.DataFrame(odds.table) if isinstance(odds, PreparedTable) else to_polars(odds)
    taken = [name for name in fair_rows.FAIR_COLUMNS if name in came.columns]
    if taken:
        raise OddsError(f"odds must not have columns that fair adds, got {', '.join(taken)}: rename or drop them")
    if isinstance(odds, PreparedTable):
        prepared = odds
    else:
        # Its own positions: those of the input may be null, or come from several tables.
        checked = isinstance(odds, OddsTable) and odds.checked
        prepared = prepare(odds if checked else check_rows(came.drop("row", "odds_row", strict=False)), guards, now)
    wants = kinds.thresholds(min_ev=-100.0)
    question = board.ask(
        prepared, None, sharp, method, commission, wants, model=modelled(model, prepared), fair=constants
    )
    figures = fair_rows.columns(question)
    _warn(figures["fair_probability"].count(), question, sharp, fair=True)
    if figures.height == came.height:
        return came.with_columns(figures)
    # Invalid rows are in `rejected`; the others are numbered as they came.
    faults = prepared.table.rejected.select("row", "guard")
    numbered = pl.concat([figures.with_columns(prepared.table["row"]), faults], how="diagonal_relaxed")
    place = pl.int_range(came.height, dtype=pl.UInt32, eager=True).alias("row")
    order = place.to_frame().join(numbered, on="row", how="left", maintain_order="left")
    return came.with_columns(order.drop("row"))


def markets(odds: IntoFrame, *, guards: Guards = None, now: datetime | None = None) -> pl.DataFrame:
    """List every market of a table: key, books, completeness, main line.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    guards, now
        As in `find_ev`.

    Returns
    -------
    polars.DataFrame
        One row per market. `books` counts books with a usable price, `complete_books` those with one for every outcome;
        `is_complete` means that every outcome has a price. `line` is the total, or the home handicap.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> import oddsengine as oe
    >>> found = markets(oe.read_odds(SAMPLE_BOARD))
    >>> found.select("event_id", "market_types", "line", "book_count", "is_complete").row(0)
    ('atp_lehecka_auger-aliassime_2026-10-25', ['moneyline'], None, 10, True)
    """
    prepared = prepare(odds, guards, now)
    identity, table = prepared.identity, prepared.table
    g = identity.groups
    n = g.threshold.size
    question = board.ask(prepared, None, None, "multiplicative", None, kinds.thresholds())
    main, _ = main_lines(g, question.prices.columns.net, prepared.guarded.reason, len(identity.books))
    names = pl.Series(identity.books, dtype=pl.String)
    rows = pl.DataFrame(
        {
            "market": g.market,
            "outcome": g.side,
            "book": names.gather(g.book),
            "used": prepared.guarded.reason == 0,
            "type": table["market_type"].gather(g.row),
        }
    )
    used = pl.col("used")
    by_book = rows.filter(used).group_by("market", "book").agg(pl.col("outcome").n_unique().alias("outcomes"))
    sizes = pl.DataFrame({"market": np.arange(n, dtype=np.int32), "size": g.outcomes})
    complete = (
        by_book.join(sizes, on="market")
        .filter(pl.col("outcomes") == pl.col("size"))
        .group_by("market")
        .agg(pl.col("book").sort().alias("complete_books"))
    )
    facts = rows.group_by("market").agg(
        pl.col("book").filter(used).unique().sort().alias("books"),
        pl.col("outcome").filter(used).n_unique().alias("quoted"),
        pl.len().alias("prices"),
        (~used).sum().alias("rejected"),
        pl.col("type").unique().sort().alias("market_types"),
    )
    frame = sizes.join(facts, on="market", how="left").join(complete, on="market", how="left").sort("market")
    ladder = g.ladder
    market_kinds = identity.kinds
    kind = g.kind[ladder].tolist()
    empty = pl.lit([], dtype=pl.List(pl.String))
    columns = frame.select(
        "market_types", "books",
        pl.col("prices", "rejected").cast(pl.Int64),
        pl.col("books").list.len().cast(pl.Int64).alias("book_count"),
        pl.col("complete_books").fill_null(empty),
        (pl.col("quoted") == pl.col("size")).alias("is_complete"),
    ).to_dict()  # fmt: skip
    whole = board.frame(
        {
            "event_id": table["event_id"].gather(g.row[g.rows[g.segments[:-1]]]),
            "is_live": g.live[ladder] != 0,
            "period": pl.Series([market_kinds[k].period for k in kind], dtype=pl.String),
            "family": pl.Series([market_kinds[k].family for k in kind], dtype=pl.String),
            "subject": pl.Series([board.subject(identity, s) for s in g.subject[ladder].tolist()], dtype=pl.String),
            "line": board.market_lines(question, np.arange(n)),
            "outcomes": pl.Series([list(market_kinds[k].outcomes) for k in kind], dtype=pl.List(pl.String)),
            "is_main_line": main != 0,
            **columns,
        },
        MARKETS_SCHEMA,
    )
    return whole.sort("event_id", "is_live", "period", "family", "subject", "line", nulls_last=False)
