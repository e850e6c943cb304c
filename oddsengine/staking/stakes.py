"""Stakes on related bets: portfolios of +EV bets, and arbitrages within the limits of books.

`kelly_portfolio` computes growth-optimal stakes on many open bets (`portfolio`), with joint outcomes derived from the
margins and totals of their games (`outcomes`). `arbitrage_plan` divides a bankroll between arbitrages, and `cover`
hedges when a leg was rejected.
"""

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from oddsengine import catalog
from oddsengine.bounds import check_number, excerpt
from oddsengine.columns import Floats, Longs
from oddsengine.maths.arbitrage import joint_stakes
from oddsengine.maths.kelly import kelly
from oddsengine.staking.outcomes import factors, profits
from oddsengine.staking.portfolio import GameColumns, StakeLimits, best_stakes, growth, shrink, whole_steps
from oddsengine.staking.rules import StakeRules, stake_rules
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.levels import BET_DELAY, BET_STEP, FEE, MIN_BET
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, OddsTable, check_rows

_ADDED = ("stake", "stake_fraction", "kelly_fraction", "left_out")
_RULED = ("sportsbook", "odds_decimal", "net_odds")
_MONEYLINE = catalog.family_name("moneyline_3way", catalog.FULL_GAME, "soccer")


class Portfolio(NamedTuple):
    """Stakes on open bets and their expected result."""

    bets: pl.DataFrame  # the given bets with `stake`, `stake_fraction`, `kelly_fraction` and `left_out`
    growth: float  # mean log growth of the bankroll, by the probabilities used
    profit: float  # mean profit in money, by the same
    deviation: float  # standard deviation of the profit, in money


def kelly_portfolio(
    bets: IntoFrame,
    *,
    bankroll: float | None = None,
    fraction: float = 1.0,
    max_bet: float | None = None,
    max_book: float | Mapping[str, float] | None = None,
    max_event: float | None = None,
    step: float | None = None,
    uncertain: bool = True,
) -> Portfolio:
    """Compute growth-optimal stakes on simultaneous bets, whose outcomes are exclusive, correlated or independent.

    The stakes maximise the mean log growth of the bankroll (docs/stakes.md). They shrink with the standard error of a
    probability, the column `fair_error` (Baker and McHale 2013, https://doi.org/10.1287/deca.2013.0271).

    Parameters
    ----------
    bets
        One bet per row, as returned by `find_ev` and `fair`: `event_id`, `sportsbook`, `market_type`, `selection`,
        `odds_decimal` and `fair_probability`, and where they apply `line`, teams, `sport`, `league` and `player_name`;
        optionally `net_odds`, `fair_error`, `max_bet`, `min_bet` and `bet_step`.
    bankroll
        The bankroll in money. By default it is 1, so that stakes are fractions, which have no `min_bet` and `bet_step`.
    fraction
        Fraction of the full stakes, above 0 and at most 1. Limits apply to the reduced stakes.
    max_bet, max_book, max_event
        Maximum stake on a bet, besides the column `max_bet`; at a book, for all or by book; on an event.
    step
        Stakes are whole multiples of this; of a bet with a `bet_step`, of the nearest multiple of that. Without it,
        stakes on such bets are rounded down to a `bet_step`. A bet whose stake would be below its `min_bet` gets none.
    uncertain
        Whether `fair_error` reduces stakes.

    Returns
    -------
    Portfolio
        The bets in order, with `stake`, `stake_fraction` of the bankroll, `kelly_fraction` of the bet alone, and
        `left_out`: why a row cannot be bet, such as ``no_fair_probability`` or the guard that rejects it. `growth`,
        `profit` and `deviation` are by the probabilities used.

    Raises
    ------
    OddsError, ValueError
        If a row is not a valid bet, probabilities of a market contradict each other, or a number is out of range.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> import oddsengine as oe
    >>> bets = oe.find_ev(oe.read_odds(SAMPLE_BOARD), min_ev=2.5)
    >>> staked = oe.kelly_portfolio(bets, bankroll=1000, fraction=0.25).bets
    >>> staked.select("selection", pl.col("stake").round(1)).rows()[:2]
    [('Jiří Lehečka', 3.3), ('Jiří Lehečka', 3.3)]
    """
    all_bets = to_polars(bets)
    money = bankroll is not None
    bankroll = 1.0 if bankroll is None else bankroll
    for name, value in (("bankroll", bankroll), ("max_bet", max_bet), ("max_event", max_event), ("step", step)):
        if value is not None:
            check_number(name, value, above=0.0)
    check_number("fraction", fraction, above=0.0, most=1.0)
    taken = [name for name in _ADDED if name in all_bets.columns]
    if taken:
        raise OddsError(f"bets must not have columns that kelly_portfolio adds, got {', '.join(taken)}")
    left_out = why_left_out(all_bets)
    frame = all_bets.filter(left_out.is_null())
    at = np.flatnonzero(left_out.is_null().to_numpy())
    table, prob, error, odds = bet_columns(frame, at)
    if not uncertain:
        error = np.full(prob.size, np.nan)
    parts = factors(table, prob, error, odds)
    order = np.concatenate([np.empty(0, np.int64), *(part.bets for part in parts)]).astype(np.int64)
    games = GameColumns.from_pairs([(part.prob, profits(part.share, odds[part.bets])) for part in parts])
    scale = bankroll * fraction
    limits = _limits(frame, table, max_bet, max_book, max_event, scale, order)
    ruled = money and not {MIN_BET, BET_STEP}.isdisjoint(frame.columns)
    rules = _rules(frame, at, step)[order].tolist() if ruled else [StakeRules(0.0, step)] * order.size
    # Limits and steps apply to actual stakes; the optimum is of full stakes, which `fraction` reduces.
    stakes = _allowed_stakes(games, limits, rules, scale, whole=step is not None)
    out, alone = np.zeros(all_bets.height), np.full(all_bets.height, np.nan)
    out[at[order]] = stakes * fraction
    nothing = np.full(prob.size, np.nan)
    sure = shrink(*(np.stack(pair, axis=-1) for pair in ((prob, 1.0 - prob), (odds, nothing), (error, nothing))))[
        ..., 0
    ]
    alone[at] = kelly(sure.clip(0.0, 1.0), odds) * fraction
    staked = out * bankroll
    if ruled or step is not None:  # via text, so that three steps of 0.1 are 0.3 and not 0.30000000000000004
        staked = np.array([float(f"{x:.12g}") for x in staked.tolist()])
    mean, variance = _spread(games, stakes * fraction)
    return Portfolio(
        all_bets.with_columns(
            stake=pl.Series(staked, dtype=pl.Float64),
            stake_fraction=pl.Series(out),
            kelly_fraction=pl.Series(alone, nan_to_null=True),
            left_out=left_out,
        ),
        growth(games, stakes * fraction) if order.size else 0.0,
        mean * bankroll,
        float(np.sqrt(variance)) * bankroll,
    )


def _rules(frame: pl.DataFrame, at: Longs, step: float | None) -> NDArray[np.object_]:
    """The rules of stakes of each bet; `at` numbers them in messages, from 0."""
    names = [name for name in (*_RULED, MIN_BET, BET_STEP, FEE) if name in frame.columns]
    bets = frame.select(names).iter_rows(named=True)
    out = np.empty(frame.height, object)
    for place, (number, one) in enumerate(zip(at.tolist(), bets, strict=True)):
        out[place] = stake_rules(one, step, f"bet {number + 1}")
    return out


def _allowed_stakes(
    games: GameColumns, limits: StakeLimits, rules: list[StakeRules], scale: float, *, whole: bool
) -> Floats:
    """Return the best stakes of which none breaks a rule; bets that would be too small are left out.

    `whole`: all have steps, and whole steps are chosen for growth; else stakes are rounded down.
    """
    while True:
        stakes = best_stakes(games, limits)
        if np.isnan(stakes).any():
            raise ValueError("no solution: the probabilities contradict each other")
        if all(rule == (0.0, None) for rule in rules):
            return stakes
        if whole:
            steps = np.array([rule.step for rule in rules], np.float64)
            stakes = whole_steps(games, stakes, steps / scale, limits)
        else:
            stakes = np.array([rule.whole(stake) for rule, stake in zip(rules, stakes * scale, strict=True)]) / scale
        fine = [rule.allows(stake) for rule, stake in zip(rules, stakes * scale, strict=True)]
        small = ~np.array(fine, bool) & (stakes > 0.0)
        if not small.any():
            return stakes
        limits = limits._replace(bet=np.where(small, 0.0, limits.bet))


def why_left_out(frame: pl.DataFrame) -> pl.Series:
    """Return why each row cannot be bet, or null."""
    if "fair_probability" not in frame.columns:
        raise OddsError(f"bets must have the column fair_probability, got {', '.join(frame.columns) or 'none'}")
    for name in ("fair_probability", "fair_error", "net_odds"):
        if name in frame.columns:
            given = frame[name]
            wrong = (given.is_not_null() & given.cast(pl.Float64, strict=False).is_null()).arg_true()
            if wrong.len():
                raise OddsError(f"bet {wrong[0] + 1}: {name} must be a number, got {excerpt(given[wrong[0]])}")
    reason = pl.when(pl.col("fair_probability").cast(pl.Float64).fill_nan(None).is_null()).then(
        pl.lit("no_fair_probability")
    )
    whys: list[pl.Expr] = [reason]
    if "is_active" in frame.columns:
        active = pl.col("is_active").cast(pl.String).str.strip_chars().str.to_lowercase()
        whys.insert(0, pl.when(active.is_in(["false", "0", "0.0"])).then(pl.lit("suspended")))
    if "guard" in frame.columns:
        whys.insert(0, pl.col("guard").cast(pl.String))
    return frame.select(pl.coalesce(whys).alias("left_out").cast(pl.String)).to_series()


def bet_table(frame: pl.DataFrame, at: Longs | None = None) -> OddsTable:
    """Convert bets, one per row, to an odds table; raise if one is invalid. `at` numbers them in messages, from 0."""
    columns = [name for name in frame.columns if name in ODDS_SCHEMA]
    try:
        table = check_rows(frame.select(columns))
    except OddsError as error:
        raise OddsError(f"{error}") from None
    # Assume that the book of a three-way bet quotes the draw, even if there is no bet on it.
    names = table.select(pl.col("sport", "league").fill_null("")).iter_rows()
    with_draw = pl.Series([catalog.sport(sport).can_draw(league) for sport, league in names], dtype=pl.Boolean)
    draws = table.filter(with_draw & (table["market_type"] == _MONEYLINE)).with_columns(
        selection=pl.lit("Draw"), selection_type=pl.lit("draw")
    )
    if table.rejected.height:
        row, field, value, reason = table.rejected.select("row", "field", "value", "reason").row(0)
        number = 1 + (row if at is None else at[row])
        raise OddsError(f"bet {number}: {field} {excerpt(value)} is {reason}")
    return OddsTable(table, table.rejected, draws)


def bet_columns(frame: pl.DataFrame, at: Longs | None = None) -> tuple[OddsTable, Floats, Floats, Floats]:
    """Convert bets to an odds table, their probabilities, standard errors (nan: none) and prices after commission.

    `at` has the row numbers of the bets in the input, for messages.
    """
    places = np.arange(frame.height) if at is None else at
    table = bet_table(frame, places)

    def column(name: str, expected: str, low: float, high: float) -> Floats:
        """Return numbers above `low` and below `high`, nan for null."""
        if name not in frame.columns:
            return np.full(frame.height, np.nan)
        x = frame[name].cast(pl.Float64).fill_nan(None).fill_null(np.nan).to_numpy()
        wrong = np.flatnonzero((x <= low) | (x >= high))
        if wrong.size:
            raise OddsError(f"bet {places[wrong[0]] + 1}: {name} must be {expected}, got {x[wrong[0]]}")
        return x

    below = -np.finfo(np.float64).tiny
    prob = column("fair_probability", "above 0 and below 1", 0.0, 1.0)
    net = column("net_odds", "finite and above 1", 1.0, np.inf)
    error = column("fair_error", "0 or more and below 1", below, 1.0)
    column("max_bet", "0 or more", below, np.nan)
    return table, prob, error, np.where(np.isnan(net), table["odds_decimal"].to_numpy(), net)


def _by_book(
    name_of_limit: str, limit: float | Mapping[str, float] | None, books: Iterable[str], *, above: bool = False
) -> Callable[[str, float], float]:
    """Look up a number by book, else a default; negative values, or values not `above` 0, raise."""
    allowed = catalog.books().keys() | set(books)
    each: dict[str | None, float] = {}
    for name, value in limit.items() if isinstance(limit, Mapping) else ((None, limit),):
        if value is None:
            continue
        of = name_of_limit if name is None else f"{name_of_limit} of {name}"
        if above:
            check_number(of, value, above=0.0)
        elif not isinstance(value, Real) or not value >= 0.0:
            raise ValueError(f"{of} must be 0 or more, got {excerpt(value)}")
        book = None if name is None else catalog.book(name).id
        if book is not None and book not in allowed:
            raise ValueError(f"{name_of_limit} must be for books in the catalog or in the bets, got {excerpt(name)}")
        each[book] = min(float(value), each.get(book, np.inf))
    return lambda book, otherwise: each.get(book, each.get(None, otherwise))


def _limits(
    frame: pl.DataFrame, table: pl.DataFrame, max_bet: float | None, max_book: float | Mapping[str, float] | None,
    max_event: float | None, scale: float, order: Longs,
) -> StakeLimits:  # fmt: skip
    """Return the limits of bets in a given order, as fractions of `scale`."""
    n = table.height
    most = np.full(n, np.inf if max_bet is None else max_bet)
    if "max_bet" in frame.columns:
        most = np.fmin(most, frame["max_bet"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    names = [catalog.book(name).id for name in table["sportsbook"].to_list()]
    books = np.array(names, object)
    of_book = _by_book("max_book", max_book, names)
    members, ends = [], []
    for book in dict.fromkeys(names):
        end = of_book(book, np.inf)
        if end < np.inf:
            members.append((books == book)[order])
            ends.append(end)
    if max_event is not None:
        for event in table["event_id"].unique(maintain_order=True).to_list():
            members.append((table["event_id"] == event).to_numpy()[order])
            ends.append(max_event)
    return StakeLimits(
        most[order] / scale, np.array(members, bool).reshape(len(members), n), np.array(ends, np.float64) / scale
    )


def _spread(games: GameColumns, stakes: Floats) -> tuple[float, float]:
    """Return mean and variance of the profit, as fractions of the bankroll."""
    mean = variance = 0.0
    for g in range(games.scenario.size - 1):
        p = games.prob[games.scenario[g] : games.scenario[g + 1]]
        table = games.gains[games.gain_at[g] : games.gain_at[g + 1]].reshape(p.size, -1)
        x = table @ stakes[games.bet[g] : games.bet[g + 1]]
        at = float(p @ x)
        mean += at
        variance += float(p @ (x - at) ** 2)
    return mean, variance


PLAN_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "rank": pl.Int64,
    "id": pl.String,
    "event_name": pl.String,
    "market_type": pl.String,
    "line": pl.Float64,
    "sportsbook": pl.String,
    "selection": pl.String,
    "net_odds": pl.Float64,
    "stake": pl.Float64,
    "payout": pl.Float64,
    "worst_case": pl.Float64,
    "bet_delay": pl.Float64,
}
"""Columns of `arbitrage_plan`, one row per leg; `worst_case` is the profit of the whole arbitrage in the worst case,
`bet_delay` the seconds after which the venue accepts the bet in play, if they are known."""


_MARKET = ("market_segment", "player_name", "team_side", "is_live")
"""Columns that tell markets of one type in one event apart."""


def arbitrage_plan(
    arbs: IntoFrame,
    *,
    bankroll: float,
    max_bet: float | Mapping[str, float] | None = None,
    max_book: float | Mapping[str, float] | None = None,
    step: float | Mapping[str, float] = 1.0,
    min_profit: float = 0.0,
) -> pl.DataFrame:
    """Divide a bankroll between arbitrages.

    Repeatedly takes the arbitrage with the largest profit in the worst case, with the best stakes that whole steps, the
    remaining bankroll and the limits allow (`round_stakes`). Another order can be better if several arbitrages compete
    for a limit at one book.

    Parameters
    ----------
    arbs
        Result of `find_arbitrage`; its `net_odds` are after commission. `max_bet` of the legs limits their stakes, and
        where legs have `min_bet` and `bet_step`, no stake is below the one, and all are multiples of the other.
    bankroll
        Total money for all stakes.
    max_bet
        Maximum stake on one bet, or a mapping by book; the smaller of this and the leg's own `max_bet` applies. A bet
        shared by several arbitrages counts once.
    max_book
        Maximum stake at one book over all arbitrages, or a mapping by book. Books can have any name in the catalog; a
        book that is neither in the catalog nor among the legs raises.
    step
        Stakes are whole multiples of this, or a mapping by book; books missing from it have steps of 1. Of a leg with a
        `bet_step` it is the nearest multiple of that. `bankroll` is at most ten million steps.
    min_profit
        Minimum profit in the worst case, in money; arbitrages without a profit are always left out.

    Returns
    -------
    polars.DataFrame
        `PLAN_SCHEMA`, best arbitrage first.

    Examples
    --------
    >>> import oddsengine as oe
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> arbs = oe.find_arbitrage(oe.read_odds(SAMPLE_BOARD))
    >>> plan = arbitrage_plan(arbs, bankroll=1000, max_bet=200, max_book={"fanduel": 150}, step=5)
    >>> plan.select("rank", "sportsbook", "stake", pl.col("worst_case").round(2)).rows()[:2]
    [(1, 'bet365', 165.0, 2.95), (1, 'caesars', 200.0, 2.95)]
    """
    check_number("bankroll", bankroll, above=0.0)
    check_number("min_profit", min_profit)
    arbs = to_polars(arbs)
    if {"legs", "market_type"} - set(arbs.columns):
        raise OddsError(
            "arbs must be a result of find_arbitrage, with the columns legs and market_type, "
            f"got {', '.join(arbs.columns) or 'no columns'}"
        )
    waiting: dict[int, list[dict[str, Any]]] = {row: legs or [] for row, legs in enumerate(arbs["legs"].to_list())}
    books = {row: [catalog.book(leg["sportsbook"]).id for leg in legs] for row, legs in waiting.items()}
    books_ = {book for of in books.values() for book in of}
    bet_limit, book_limit = _by_book("max_bet", max_bet, books_), _by_book("max_book", max_book, books_)
    unit = _by_book("step", step, books_, above=True)
    games = arbs.select(pl.coalesce([c for c in ("event_id", "event_name") if c in arbs.columns])).to_series().to_list()
    # The selection may be only "Over": the player, the team and the period are columns of the arbitrage.
    apart = [name for name in _MARKET if name in arbs.columns]
    markets = arbs.select("market_type", *apart).rows()
    bets = {
        row: [
            (games[row], leg.get("market_type") or markets[row][0], *markets[row][1:], *_raw_label(leg), book)
            for leg, book in zip(legs, books[row], strict=True)
        ]
        for row, legs in waiting.items()
    }
    rules = {
        row: [
            stake_rules(leg, unit(book, 1.0), f"arbitrage {row + 1}")
            for leg, book in zip(legs, books[row], strict=True)
        ]
        for row, legs in waiting.items()
    }
    left_book: dict[str, float] = {}
    left_bet: dict[tuple[Any, ...], float] = {}
    for row, legs in waiting.items():
        for bet, leg in zip(bets[row], legs, strict=True):
            most = leg.get("max_bet")
            if most is not None and not np.isnan(most):
                if most < 0.0:
                    raise OddsError(f"arbitrage {row + 1}: max_bet must be 0 or more, got {most:g}")
                left_bet[bet] = min(most, left_bet.get(bet, bet_limit(bet[-1], np.inf)))
    staked: dict[int, tuple[Floats, float]] = {}
    taken: list[tuple[int, Floats, float]] = []
    stale = set(waiting)
    money = float(bankroll)
    while waiting:
        for row in stale:
            own_books = books[row]
            most = [left_bet.get(bet, bet_limit(bet[-1], np.inf)) for bet in bets[row]]
            ends = {book: left_book.get(book, book_limit(book, np.inf)) for book in own_books}
            members = [[book == one for one in own_books] for book in ends]
            odds, steps = [leg["net_odds"] for leg in waiting[row]], [rule.step or 1.0 for rule in rules[row]]
            low = [rule.least for rule in rules[row]]
            staked[row] = joint_stakes(odds, money, steps, most, members, list(ends.values()), low)
        best = max(waiting, key=lambda row: (staked[row][1], -row))
        stakes, profit = staked[best]
        if profit <= max(min_profit - 1e-9, 0.0):
            break
        taken.append((best, stakes, profit))
        money = max(money - float(stakes.sum()), 0.0)
        del waiting[best]
        used = set()
        for bet, stake in zip(bets[best], stakes.tolist(), strict=True):
            book = bet[-1]
            used |= {book, bet}
            left_book[book] = max(left_book.get(book, book_limit(book, np.inf)) - stake, 0.0)
            left_bet[bet] = max(left_bet.get(bet, bet_limit(book, np.inf)) - stake, 0.0)
        # Results for other books are unaffected, unless limited by the bankroll.
        stale = {
            row
            for row in waiting
            if float(staked[row][0].sum()) > money or not used.isdisjoint((*books[row], *bets[row]))
        }
    rows = []
    for rank, (row, stakes, profit) in enumerate(taken, 1):
        arb = arbs.row(row, named=True)
        for leg, stake in zip(arb["legs"], stakes.tolist(), strict=True):
            facts = {name: arb[name] for name in ("id", "event_name", "market_type", "line")}
            facts |= {name: leg.get(name) for name in ("sportsbook", "selection", "net_odds", BET_DELAY)}
            rows.append(
                {**facts, "rank": rank, "stake": stake, "payout": stake * leg["net_odds"], "worst_case": profit}
            )
    return pl.DataFrame(rows, schema=PLAN_SCHEMA) if rows else pl.DataFrame(schema=PLAN_SCHEMA)


def _raw_label(leg: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells the outcomes of one market apart."""
    return leg.get("line"), leg["selection"], leg.get("selection_type")


COVER_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "choice": pl.String,
    "stakes": pl.List(pl.Float64),
    "worst_case": pl.Float64,
    "best_case": pl.Float64,
    "mean": pl.Float64,
    "growth": pl.Float64,
}
"""Columns of `cover`: additional stakes on each outcome, and the resulting profit."""


def cover(
    placed: ArrayLike,
    odds: ArrayLike,
    available: ArrayLike,
    probs: ArrayLike | None = None,
    *,
    bankroll: float | None = None,
    limits: ArrayLike = np.inf,
) -> pl.DataFrame:
    """Compare ways to hedge when some bets of an arbitrage were rejected or reduced.

    There are three choices: ``stand`` adds nothing; ``level`` adds the stakes at current prices that maximise the worst
    case; ``growth`` adds those that maximise the mean log growth of the bankroll, if probabilities and a bankroll are
    given. Levelling at bad prices is insurance; `growth` shows what it is worth to this bankroll.

    Parameters
    ----------
    placed : array_like of float
        Money placed on each outcome of the market, 0 if rejected.
    odds : array_like of float
        Decimal odds of the placed bets, after commission; any number for other outcomes.
    available : array_like of float
        Best current decimal odds of each outcome, after commission; `nan` for none.
    probs : array_like of float
        Fair probabilities of the outcomes.
    bankroll : float
        Bankroll before the bets were placed.
    limits : array_like of float
        Maximum additional stake on each outcome, 0 or more.

    Raises
    ------
    ValueError
        If a number is out of range, or if current prices are an arbitrage and neither `bankroll` nor `limits` bounds
        the stakes.

    Returns
    -------
    polars.DataFrame
        `COVER_SCHEMA`, the best choice first: by `growth`, or else by `worst_case`. Profits are in money.

    Examples
    --------
    100 was placed at 2.10; the other side was at 2.05 and is now at 1.90:

    >>> choices = cover([100.0, 0.0], [2.10, 2.05], [2.05, 1.90], [0.49, 0.51], bankroll=500.0)
    >>> choices.select("choice", pl.col("worst_case", "mean").round(2)).rows()
    [('growth', -16.01, 0.01), ('level', -0.53, -0.53), ('stand', -100.0, 2.9)]
    """
    staked, d, now = (np.asarray(x, dtype=np.float64) for x in (placed, odds, available))
    if staked.ndim != 1 or staked.shape != d.shape or staked.shape != now.shape or staked.size < 2:
        raise ValueError(
            f"placed, odds and available must have one number per outcome, got {staked.shape}, {d.shape}, {now.shape}"
        )
    if not ((staked >= 0.0) & np.isfinite(staked)).all() or not (d[staked > 0.0] > 1.0).all():
        raise ValueError("placed must be finite and at least 0, at odds above 1")
    unavailable = np.isnan(now)
    if not (unavailable | ((now > 1.0) & (now < np.inf))).all():
        raise ValueError(f"available must be finite decimal odds above 1, or nan if not available, got {now.tolist()}")
    if not (np.broadcast_to(np.asarray(limits, dtype=np.float64), staked.shape) >= 0.0).all():
        raise ValueError(f"limits must be 0 or more, got {np.asarray(limits).tolist()}")
    most = np.where(~unavailable, np.broadcast_to(np.asarray(limits, dtype=np.float64), staked.shape), 0.0)
    now = np.where(unavailable, 2.0, now)
    pays = staked * np.where(staked > 0.0, d, 0.0)
    if bankroll is not None and not staked.sum() < bankroll < np.inf:
        raise ValueError(f"bankroll must be finite and more than was placed, {staked.sum():g}, got {excerpt(bankroll)}")
    cash = np.inf if bankroll is None else float(bankroll - staked.sum())
    choices = {"stand": np.zeros(staked.size), "level": _level(pays, now, most, cash)}
    p = None
    if probs is not None:
        p = np.asarray(probs, dtype=np.float64)
        if p.shape != staked.shape or not (p >= 0.0).all() or abs(p.sum() - 1.0) > 1e-6:
            raise ValueError(f"probs must be the probabilities of all outcomes, got {p.tolist()}")
        p = p / p.sum()
        if bankroll is not None:
            choices["growth"] = _growing(pays, cash, now, most, p)
    rows = []
    for name, added in choices.items():
        ends = pays + added * now - staked.sum() - added.sum()
        wealth = 1.0 + ends / bankroll if bankroll is not None else ends
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = None if p is None or bankroll is None else float(p @ np.log(np.maximum(wealth, 0.0)))
        mean = None if p is None else float(p @ ends)
        rows.append((name, added.tolist(), float(ends.min()), float(ends.max()), mean, grown))
    frame = pl.DataFrame(rows, schema=COVER_SCHEMA, orient="row")
    return frame.sort("worst_case" if p is None or bankroll is None else "growth", descending=True, maintain_order=True)


def _level(pays: Floats, odds: Floats, most: Floats, cash: float) -> Floats:
    """Return the additional stakes that maximise the least payout minus their cost."""
    # For a least payout t, each outcome below it gets (t - pays) / odds. The profit is piecewise linear in t, so the
    # optimum is a corner: an existing payout, one at which a limit is reached, or where the cash ends.
    end = float((pays + odds * most).min())
    corners = np.concatenate([pays, [end]])
    corners = np.sort(corners[(corners <= end) & np.isfinite(corners)])
    cost = (np.maximum(corners[:, None] - pays, 0.0) / odds).sum(axis=1)
    if end < np.inf or cash <= cost[-1]:
        last = float(np.interp(cash, cost, corners))
    elif cash < np.inf:
        last = float(corners[-1] + (cash - cost[-1]) / (1.0 / odds).sum())
    elif (1.0 / odds).sum() < 1.0:
        raise ValueError("the available prices are an arbitrage with unbounded stakes; set bankroll or limits")
    else:
        last = float(corners[-1])
    corners = np.append(corners[cost <= cash], last)
    added = np.maximum(corners[:, None] - pays, 0.0) / odds
    return np.asarray(added[int(np.argmax(corners - added.sum(axis=1)))])


def _growing(pays: Floats, cash: float, odds: Floats, most: Floats, probs: Floats) -> Floats:
    """Return the additional stakes that maximise growth, given current payouts and remaining cash."""
    # Wealth cash + pays_s + sum f r_is is (cash + pays_s) (1 + sum (f / cash) r_is cash / (cash + pays_s)).
    gains = np.where(np.eye(odds.size) > 0.0, odds - 1.0, -1.0) * (cash / (cash + pays))[:, None]
    free = StakeLimits.none(odds.size)._replace(bet=most / cash)
    return best_stakes(GameColumns.from_pairs([(probs, gains)]), free) * cash
