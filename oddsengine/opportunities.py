"""The public finders: a frame of prices in, a frame of opportunities out.

Every finder takes any polars frame of prices (see `ODDS_SCHEMA`) and these words:

- `books`: whose prices may be bet; None is all. Opportunities are computed over exactly these.
- `sharp`: whose prices say what is fair: a book, books in order of preference, or weights of a consensus
  (`{"pinnacle": 3, "circa": 1}`). None is the catalog's order. A reference may stand outside `books`.
- `method`: what +EV is measured against: "close" (see `oddsengine.estimator`), the default without `sharp`, which takes
  at least two other books, or the reference with its margin removed by one of `DEVIG_METHODS`.
- `commission`: rates on winnings that replace the catalog's, book by book.
- `guards`: which guards run; None is all of `GUARDS`, an empty list none, a mapping changes thresholds
  (`{"stale": 300}`) or switches single guards off (`{"flap": False}`). They look at all books.
- `now`: the moment at which ages are judged; None is the newest `last_seen_at` of the table.

Thresholds are in percent and give way by 1e-7 percent, so that a hold of exactly 2 % belongs to `max_hold=2`.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from numbers import Real
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.detect import Wants
from oddsengine.find import arbitrage, board, ev, low_hold, middles
from oddsengine.find import fair as fair_rows
from oddsengine.find.board import Prepared, Sharp, prepare
from oddsengine.frames import IntoFrame, to_polars
from oddsengine.guards import main_lines
from oddsengine.reasons import NAMES, Guards, sentence
from oddsengine.results import MARKETS_SCHEMA, REJECTED_SCHEMA
from oddsengine.schema import OddsError, OddsTable

_ROWS_FOR_THREADS = 100_000
Commission = Mapping[str, float] | None


class Opportunities(NamedTuple):
    """The four kinds over one board, and what was kept away: rows by guard, and results over their cap."""

    ev: pl.DataFrame
    arbitrage: pl.DataFrame
    low_hold: pl.DataFrame
    middles: pl.DataFrame
    set_aside: dict[str, int]


def _number(name: str, value: float | None, least: float = -np.inf) -> None:
    if value is not None and not (isinstance(value, Real) and least <= value < np.inf):
        floor = "" if least == -np.inf else f" of at least {least:g}"
        raise ValueError(f"{name} must be a finite number{floor}, got {value!r}")


def find_ev(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = None,
    min_ev: float = 0.0,
    max_ev: float | None = None,
    commission: Commission = None,
    guards: Guards = None,
    include: Iterable[str] = (),
    now: datetime | None = None,
) -> pl.DataFrame:
    """Prices that beat the fair probability.

    By default that is made from the other books: at least two of them, of different feeds, must quote the whole market.
    A table of two books therefore gives no rows unless `sharp` names one of them as the reference.

    Parameters
    ----------
    odds
        Prices, one a row; `ODDS_SCHEMA` has the columns.
    min_ev, max_ev
        Expected value in percent, from (0 by default) and to (None by default: no bound). Above 30 the guard `ev_cap`
        takes a price for an error.
    books
        Books whose prices may be bet, by id, name or alias; None, the default, is all. What is
        found is computed over exactly these.
    sharp
        Whose prices say what is fair: a book, books in order of preference, or weights of a consensus
        (``{"pinnacle": 3, "circa": 1}``); None, the default, is the catalog's order. It may stand outside `books`.
    method
        What +EV is measured against: "close", the fair price at the close estimated from all other books, or the
        reference with its margin removed by one of `DEVIG_METHODS`. None, the default, is "close", or "power" where
        `sharp` is given.
    commission
        Rates on winnings, fractions below 1 such as 0.02, that replace the catalog's, book by book; None,
        the default, keeps those.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    include
        ``"suspect"`` lists prices that `outlier` sets aside before the game too, flagged: generous, and often true.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    polars.DataFrame
        `EV_SCHEMA`, best first: one row for each book on each outcome.

    Raises
    ------
    OddsError
        If `odds` is no table of prices.
    ValueError
        If a number is out of its range, a method or guard does not exist, or a book is neither in the table nor in the
        catalog.
    TypeError
        If `sharp` or `now` is of another type.

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
    >>> found = find_ev(odds, sharp="pinnacle", min_ev=1.0)
    >>> found.select("sportsbook", "selection", pl.col("ev_percentage").round(2)).rows()
    [('fanduel', 'Over', 5.0)]
    """
    _number("min_ev", min_ev)
    _number("max_ev", max_ev)
    prepared = prepare(odds, guards, now)
    wants = Wants.of(min_ev=min_ev, max_profit=_cap())
    question = board.ask(prepared, books, sharp, method, commission, wants, include=include)
    return ev.rows(question, ev.found(question), max_ev)


def find_arbitrage(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = None,
    min_profit: float = 0.5,
    max_profit: float | None = 10.0,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Markets whose best prices, from two books or more, pay more than they cost.

    Parameters
    ----------
    odds
        Prices, one a row; `ODDS_SCHEMA` has the columns.
    min_profit, max_profit
        Profit in percent of the whole stake, from (0.5 by default) and to (10); a `max_profit` of None takes the cap
        off.
    books
        Books whose prices may be bet, by id, name or alias; None, the default, is all. What is
        found is computed over exactly these.
    sharp
        Whose prices say what is fair, for `ev_available` only: a book, books in order of preference, or weights of a
        consensus (``{"pinnacle": 3, "circa": 1}``); None, the default, is the catalog's order. It may stand outside
        `books`.
    method
        What +EV is measured against: "close", the fair price at the close estimated from all other books, or the
        reference with its margin removed by one of `DEVIG_METHODS`. None, the default, is "close", or "power" where
        `sharp` is given.
    commission
        Rates on winnings, fractions below 1 such as 0.02, that replace the catalog's, book by book; None,
        the default, keeps those.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    polars.DataFrame
        `ARBITRAGE_SCHEMA`, largest profit first: the best one of each market.

    Raises
    ------
    OddsError
        If `odds` is no table of prices.
    ValueError
        If a number is out of its range, a method or guard does not exist, or a book is neither in the table nor in the
        catalog.
    TypeError
        If `sharp` or `now` is of another type.

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
    _number("min_profit", min_profit, -99.0)
    _number("max_profit", max_profit)
    prepared = prepare(odds, guards, now)
    wants = Wants.of(min_profit=min_profit, max_profit=max_profit)
    question = board.ask(prepared, books, sharp, method, commission, wants)
    return arbitrage.rows(question, arbitrage.found(question))


def find_low_hold(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = None,
    max_hold: float = 2.0,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Markets whose best prices leave a hold from 0 to `max_hold` percent.

    Parameters
    ----------
    odds
        Prices, one a row; `ODDS_SCHEMA` has the columns.
    max_hold
        Largest hold in percent; 2 by default.
    books
        Books whose prices may be bet, by id, name or alias; None, the default, is all. What is
        found is computed over exactly these.
    sharp
        Whose prices say what is fair, for the sides' fair probabilities only: a book, books in order of preference, or
        weights of a consensus (``{"pinnacle": 3, "circa": 1}``); None, the default, is the catalog's order. It may
        stand outside `books`.
    method
        What +EV is measured against: "close", the fair price at the close estimated from all other books, or the
        reference with its margin removed by one of `DEVIG_METHODS`. None, the default, is "close", or "power" where
        `sharp` is given.
    commission
        Rates on winnings, fractions below 1 such as 0.02, that replace the catalog's, book by book; None,
        the default, keeps those.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    polars.DataFrame
        `LOW_HOLD_SCHEMA`, smallest hold first.

    Raises
    ------
    OddsError
        If `odds` is no table of prices.
    ValueError
        If a number is out of its range, a method or guard does not exist, or a book is neither in the table nor in the
        catalog.
    TypeError
        If `sharp` or `now` is of another type.

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
    _number("max_hold", max_hold, 0.0)
    prepared = prepare(odds, guards, now)
    question = board.ask(prepared, books, sharp, method, commission, Wants.of(max_hold=max_hold))
    return low_hold.rows(question, low_hold.found(question))


def find_middles(
    odds: IntoFrame,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = None,
    min_size: float = 0.0,
    min_ev: float | None = None,
    max_profit: float | None = 10.0,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Pairs of lines, at two books, that can both win.

    Parameters
    ----------
    odds
        Prices, one a row; `ODDS_SCHEMA` has the columns.
    min_size
        Least distance of the two lines, points; 0 by default.
    min_ev
        Least expected value, percent of the whole stake; None, the default, shows those that lose on average too.
    max_profit
        Largest worst case, percent, 10 by default; None takes the cap off.
    books
        Books whose prices may be bet, by id, name or alias; None, the default, is all. What is
        found is computed over exactly these.
    sharp
        Whose prices say what is fair: a book, books in order of preference, or weights of a consensus
        (``{"pinnacle": 3, "circa": 1}``); None, the default, is the catalog's order. It may stand outside `books`.
    method
        What +EV is measured against: "close", the fair price at the close estimated from all other books, or the
        reference with its margin removed by one of `DEVIG_METHODS`. None, the default, is "close", or "power" where
        `sharp` is given.
    commission
        Rates on winnings, fractions below 1 such as 0.02, that replace the catalog's, book by book; None,
        the default, keeps those.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    polars.DataFrame
        `MIDDLES_SCHEMA`, best quality first. A worst case below -20 % is left out.

    Raises
    ------
    OddsError
        If `odds` is no table of prices.
    ValueError
        If a number is out of its range, a method or guard does not exist, or a book is neither in the table nor in the
        catalog.
    TypeError
        If `sharp` or `now` is of another type.

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
    _number("min_size", min_size, 0.0)
    _number("min_ev", min_ev)
    prepared = prepare(odds, guards, now)
    least = -np.inf if min_ev is None else min_ev
    wants = Wants.of(min_middle_ev=least, min_size=min_size, max_profit=max_profit)
    question = board.ask(prepared, books, sharp, method, commission, wants)
    return middles.rows(question, middles.found(question))


def find_all(
    odds: IntoFrame | Prepared,
    *,
    books: Iterable[str] | None = None,
    sharp: Sharp = None,
    method: str | None = None,
    min_ev: float = 0.0,
    max_ev: float | None = None,
    min_profit: float = 0.5,
    max_hold: float = 2.0,
    min_size: float = 0.0,
    min_middle_ev: float | None = 0.0,
    max_profit: float | None = 10.0,
    commission: Commission = None,
    guards: Guards = None,
    include: Iterable[str] = (),
    now: datetime | None = None,
) -> Opportunities:
    """All four kinds over one reading of the board.

    Parameters
    ----------
    odds
        Prices, one a row; or what `prepare` made of them, and `guards` and `now` are then its own.
    min_ev, max_ev
        Expected value of +EV prices in percent, from (0 by default) and to (None by default: no bound).
    min_profit, max_profit
        Profit of arbitrages in percent, from (0.5 by default) and to (10); the latter bounds the worst case of middles
        too, and None takes it off.
    max_hold
        Largest hold of low-hold markets, percent; 2 by default.
    min_size
        Least distance of a middle's lines, points; 0 by default.
    min_middle_ev
        Least expected value of a middle in percent, 0 by default; None shows all.
    books
        Books whose prices may be bet, by id, name or alias; None, the default, is all. What is
        found is computed over exactly these.
    sharp
        Whose prices say what is fair: a book, books in order of preference, or weights of a consensus
        (``{"pinnacle": 3, "circa": 1}``); None, the default, is the catalog's order. It may stand outside `books`.
    method
        What +EV is measured against: "close", the fair price at the close estimated from all other books, or the
        reference with its margin removed by one of `DEVIG_METHODS`. None, the default, is "close", or "power" where
        `sharp` is given.
    commission
        Rates on winnings, fractions below 1 such as 0.02, that replace the catalog's, book by book; None,
        the default, keeps those.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    include
        ``"suspect"`` lists prices that `outlier` sets aside before the game too, flagged: generous, and often true.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    Opportunities
        The four frames, and how many rows each guard set aside.

    Raises
    ------
    OddsError
        If `odds` is no table of prices.
    ValueError
        If a number is out of its range, a method or guard does not exist, or a book is neither in the table nor in the
        catalog.
    TypeError
        If `sharp` or `now` is of another type.

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
    >>> found.ev.height, found.arbitrage.height, found.low_hold.height, found.middles.height, found.set_aside
    (1, 1, 0, 0, {})
    """
    _number("min_ev", min_ev)
    _number("max_ev", max_ev)
    _number("min_profit", min_profit, -99.0)
    _number("max_hold", max_hold, 0.0)
    _number("min_size", min_size, 0.0)
    _number("min_middle_ev", min_middle_ev)
    _number("max_profit", max_profit)
    prepared = odds if isinstance(odds, Prepared) else prepare(odds, guards, now)
    wants = Wants.of(
        min_ev=min_ev, min_profit=min_profit, max_profit=max_profit, max_hold=max_hold,
        min_middle_ev=-np.inf if min_middle_ev is None else min_middle_ev, min_size=min_size,
    )  # fmt: skip
    question = board.ask(prepared, books, sharp, method, commission, wants, include=include)
    counts = set_aside(prepared)
    hits = ev.found(question)
    arbs = arbitrage.found(question)
    pairs: list[middles.Found] = []

    def middle_rows() -> pl.DataFrame:
        pairs.append(middles.found(question))
        return middles.rows(question, pairs[0])

    asks: list[Callable[[], pl.DataFrame]] = [
        lambda: ev.rows(question, hits, max_ev),
        lambda: arbitrage.rows(question, arbs),
        lambda: low_hold.rows(question, low_hold.found(question)),
        middle_rows,
    ]
    if prepared.table.height < _ROWS_FOR_THREADS:
        frames = [look() for look in asks]
    else:
        # The kinds share nothing that changes, and leave the interpreter to each other most of the time.
        with ThreadPoolExecutor(2) as pool:
            frames = list(pool.map(lambda look: look(), asks))
    errors = int(ev.over_cap(question, hits).sum()) + int(middles.over_cap(question, pairs[0]).sum())
    for name, cut in (("ev_cap", errors), ("profit_cap", int(arbitrage.over_cap(question, arbs).sum()))):
        if cut:
            counts[name] = cut
    return Opportunities(frames[0], frames[1], frames[2], frames[3], counts)


def _cap() -> float:
    return catalog.thresholds().arbitrage_cap * 100.0


def set_aside(prepared: Prepared) -> dict[str, int]:
    """How many rows of a prepared board each guard, and identity, keeps from the detectors."""
    codes = np.concatenate((prepared.identity.verdict, prepared.guarded.aside))
    counts = np.bincount(codes, minlength=len(NAMES))
    found = {NAMES[at]: int(counts[at]) for at in range(1, len(NAMES)) if counts[at]}
    for name, n in prepared.table.rejected.group_by("guard").len().sort("guard").iter_rows():
        found[name] = found.get(name, 0) + n
    return found


def rejected(
    odds: IntoFrame,
    *,
    sharp: Sharp = None,
    method: str | None = None,
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Every row that is kept from the detectors, with the guard and the reason.

    Invalid rows come with the field and the value that do not read. A price that only `ev_cap`
    takes for an error is listed too; it still serves the other detectors.

    Parameters
    ----------
    odds
        Prices, one a row; `ODDS_SCHEMA` has the columns.
    sharp
        Whose prices say what is fair, for `ev_cap` only: a book, books in order of preference, or weights of a
        consensus (``{"pinnacle": 3, "circa": 1}``); None, the default, is the catalog's order. It may stand outside
        `books`.
    method
        What +EV is measured against: "close", the fair price at the close estimated from all other books, or the
        reference with its margin removed by one of `DEVIG_METHODS`. None, the default, is "close", or "power" where
        `sharp` is given.
    commission
        Rates on winnings, fractions below 1 such as 0.02, that replace the catalog's, book by book; None,
        the default, keeps those.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    polars.DataFrame
        `REJECTED_SCHEMA`, in the table's order; `row` counts from 1.

    Raises
    ------
    OddsError
        If `odds` is no table of prices.
    ValueError
        If a number is out of its range, a method or guard does not exist, or a book is neither in the table nor in the
        catalog.
    TypeError
        If `sharp` or `now` is of another type.

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
    [(2, 'no_line')]
    """
    prepared = prepare(odds, guards, now)
    identity, guarded, table = prepared.identity, prepared.guarded, prepared.table
    # What the close says nothing of may be beyond belief beside a sharp book.
    edge: dict[int, float] = {}
    for asked in (method, "power") if method is None and sharp is None else (method,):
        capped_of = board.ask(prepared, None, sharp, asked, commission, Wants.of(min_ev=0.0))
        hits = ev.found(capped_of)
        capped = hits.only(ev.over_cap(capped_of, hits))
        for row, of in zip(capped.row.tolist(), capped.edge.tolist(), strict=True):
            edge.setdefault(row, 100.0 * of)
    g = identity.groups
    rows = np.flatnonzero(identity.verdict)
    held = np.flatnonzero(guarded.aside)
    at = np.concatenate((rows, g.row[held], g.row[list(edge)]))
    names = [NAMES[c] for c in (*identity.verdict[rows].tolist(), *guarded.aside[held].tolist())]
    names += ["ev_cap"] * len(edge)
    measure = [np.nan] * rows.size + guarded.measure[held].tolist() + list(edge.values())
    kept = table[at]
    frame = pl.DataFrame(
        {
            "row": kept["row"],
            "guard": pl.Series(names, dtype=pl.String),
            "reason": pl.Series(
                [sentence(name, x) for name, x in zip(names, measure, strict=True)], dtype=pl.String
            ),
            **{
                name: kept[name]
                for name in (
                    "sportsbook", "event_id", "market_type", "selection", "line", "odds_decimal", "is_live",
                    "last_seen_at",
                )
            },
        }
    )  # fmt: skip
    known = ["row", "sportsbook", "event_id", "market_type", "selection", "line", "is_live", "last_seen_at"]
    bad = table.rejected.join(table.unpriced.select(known), on="row", how="left")
    everything = pl.concat(
        [board.frame(dict(frame.to_dict()), REJECTED_SCHEMA), board.frame(bad.to_dict(), REJECTED_SCHEMA)]
    )
    return everything.sort("row", "guard")


def fair(
    odds: IntoFrame | Prepared,
    *,
    sharp: Sharp = None,
    method: str | None = "power",
    commission: Commission = None,
    guards: Guards = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """The same rows in the same order, each with what is fair for it.

    Parameters
    ----------
    odds
        Prices, one a row; `ODDS_SCHEMA` has the columns. Columns named as in `FAIR_COLUMNS` are refused. A board from
        `prepare` will do, then without `guards` and `now`; of it the rows are those of its checked table, without the
        ones that are no price.
    sharp, method, commission, guards, now
        As in `find_ev`, but `method` is "power" by default, so that without `sharp` the catalog's sharp books are the
        reference; "close" estimates from all other books.

    Returns
    -------
    polars.DataFrame
        The columns that came, and after them `FAIR_COLUMNS`:

        - `fair_probability`: of winning, given no push, by the reference without the row's own book; a reference's own
          rows have their own probability, less the margin. Rows that a guard rejects have one too.
        - `fair_error`: its standard error. By the method "close" that of the close around it, by the others from how
          far the other books are apart; null with fewer than two of them.
        - `reference`: the book that says so, or ``consensus``.
        - `hold`: the margin of the row's book in this market, a fraction; null where it does not quote all of it.
        - `ev`: mean profit per unit staked, a fraction, after commission; null where nobody else says what is fair, and
          for prices that a guard rejects.
        - `net_odds`: the row's decimal odds after commission.
        - `guard`: which one rejects the row, null for none.

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
    >>> fair(odds).select("sportsbook", "fair_probability", pl.col("hold", "ev").round(4)).rows()
    [('fanduel', 0.5, None, 0.05), ('pinnacle', 0.5, 0.0256, None), ('pinnacle', 0.5, 0.0256, None)]
    """
    came = pl.DataFrame(odds.table) if isinstance(odds, Prepared) else to_polars(odds)
    taken = [name for name in fair_rows.FAIR_COLUMNS if name in came.columns]
    if taken:
        raise OddsError(f"odds must not have columns that fair adds, got {', '.join(taken)}: rename or drop them")
    if isinstance(odds, Prepared):
        prepared = odds
    else:
        # Numbers of its own: those that came may be null, or of several tables put together.
        place = pl.int_range(1, came.height + 1, dtype=pl.UInt32, eager=True).alias("row")
        checked = isinstance(odds, OddsTable) and odds.checked
        prepared = prepare(odds if checked else came.with_columns(place), guards, now)
    question = board.ask(prepared, None, sharp, method, commission, Wants.of(min_ev=-100.0))
    figures = fair_rows.columns(question)
    if figures.height == came.height:
        return came.with_columns(figures)
    # Rows that are no price stand in `rejected`; the others are numbered as they came.
    faults = prepared.table.rejected.select("row", "guard")
    numbered = pl.concat([figures.with_columns(prepared.table["row"]), faults], how="diagonal_relaxed")
    order = place.to_frame().join(numbered, on="row", how="left", maintain_order="left")
    return came.with_columns(order.drop("row"))


def markets(odds: IntoFrame, *, guards: Guards = None, now: datetime | None = None) -> pl.DataFrame:
    """Every canonical market of a table: its key, books, completeness, main line.

    Parameters
    ----------
    odds
        Prices.
    guards
        Names of the guards that run, or a mapping of what is different: ``{"stale": 300, "outlier_other": 0.3,
        "flap": False}``. None, the default, is all of `GUARDS`, an empty list none. They look at all books.
    now
        Moment at which ages are judged, UTC if it has no zone; None, the default, is the newest `last_seen_at`
        of the table.

    Returns
    -------
    polars.DataFrame
        One row a market. `books` have a surviving price in it, `complete_books` one for every outcome; `is_complete`
        says that every outcome has one somewhere. `line` is the total's, or the home handicap.
    """
    prepared = prepare(odds, guards, now)
    identity, table = prepared.identity, prepared.table
    g = identity.groups
    n = g.threshold.size
    question = board.ask(prepared, None, None, "multiplicative", None, Wants.of())
    main, _ = main_lines(g, g.odds, prepared.guarded.aside, len(identity.books))
    names = pl.Series(identity.books, dtype=pl.String)
    rows = pl.DataFrame(
        {
            "market": g.market,
            "outcome": g.side,
            "book": names.gather(g.book),
            "used": prepared.guarded.aside == 0,
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
        (~used).sum().alias("set_aside"),
        pl.col("type").unique().sort().alias("market_types"),
    )
    frame = sizes.join(facts, on="market", how="left").join(complete, on="market", how="left").sort("market")
    ladder = g.ladder
    kinds = identity.kinds
    kind = g.kind[ladder].tolist()
    empty = pl.lit([], dtype=pl.List(pl.String))
    columns = frame.select(
        "prices", "set_aside", "market_types", "books",
        pl.col("books").list.len().alias("book_count"),
        pl.col("complete_books").fill_null(empty),
        (pl.col("quoted") == pl.col("size")).alias("is_complete"),
    ).to_dict()  # fmt: skip
    whole = board.frame(
        {
            "event_id": table["event_id"].gather(g.row[g.rows[g.segments[:-1]]]),
            "is_live": g.live[ladder] != 0,
            "period": pl.Series([kinds[k].period for k in kind], dtype=pl.String),
            "family": pl.Series([kinds[k].family for k in kind], dtype=pl.String),
            "subject": pl.Series([board.subject(identity, s) for s in g.subject[ladder].tolist()], dtype=pl.String),
            "line": board.market_lines(question, np.arange(n)),
            "outcomes": pl.Series([list(kinds[k].outcomes) for k in kind], dtype=pl.List(pl.String)),
            "is_main_line": main != 0,
            **columns,
        },
        MARKETS_SCHEMA,
    )
    return whole.sort("event_id", "is_live", "period", "family", "subject", "line", nulls_last=False)
