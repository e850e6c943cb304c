"""What could be had of the opportunities of a history (`fills`): its scan, with `oddsengine.execution` beside it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.calibrations import Fair
from oddsengine.backtesting.fill_report import FILLS_SCHEMA, ORDERS_SCHEMA, Fills, result_columns
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.history_scan import ScanWanted, play_scan
from oddsengine.backtesting.parts import planned, play, sendable
from oddsengine.backtesting.replay import cadence, opened
from oddsengine.bounds import check_bool, check_number, excerpt, is_number
from oddsengine.catalog.reasons import Guards
from oddsengine.detection.arbitrage_sizes import currency_rates
from oddsengine.detection.book_names import by_book
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.execution.attempts import ANSWER_S, LEGS, Attempt, Legs, Order, Rules
from oddsengine.execution.view_attempts import ViewAttempts
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.progress import Tick
from oddsengine.tables.casts import TIME
from oddsengine.tape import Tape

STAKES = (10.0, 100.0, 1000.0)
_MOST_S = 3600.0  # of delays and of resting
_LEAST, _MOST, _MOST_STAKES = 0.01, 1e9, 20
_VIEW = (
    "books", "sharp", "method", "commission", "kinds", "include", "min_ev", "min_profit", "max_hold", "min_size",
    "min_middle_ev",
)  # fmt: skip


def fills(
    quotes: Any,
    *,
    stakes: Iterable[float] = STAKES,
    delays: float | Mapping[str, Any] | None = None,
    legs: Legs = "thinnest",
    all_or_nothing: bool = False,
    rest_s: float = 0.0,
    rates: Mapping[str, float] | None = None,
    guards: Guards = None,
    fair: Fair = None,
    orders: bool = False,
    every: float = 1.0,
    processes: int | None = 1,
    client: Any = None,
    progress: bool | Callable[[int], None] = False,
    storage_options: Mapping[str, Any] | None = None,
    **view: Any,
) -> Fills:
    """Say how much of the opportunities of a history could be had, and what it was worth.

    Parameters
    ----------
    quotes, guards, fair, every, processes, client, progress, storage_options
        As for `scan_history`. Prices with `levels` or `max_bet` have a size; others count as unlimited.
    stakes
        Amounts to take of each opportunity, in USD; each is played by itself.
    delays
        Seconds until an order arrives: a number, or by book a number or a range, the least and the most. None: 0.2 to 1
        at exchanges, 2 to 8 at other books. In play the `bet_delay` of the price is added.
    legs
        ``"thinnest"``: the leg with the least room first, the others for what it got. ``"together"``: all at once.
    all_or_nothing, rest_s
        Orders are fill or kill; or what is unfilled of one stays in the book so many seconds, at exchanges.
    rates, orders
        Worth of currencies in USD, as for `largest_arbitrages`; and whether to keep every order, in `Fills.orders`.
    **view
        ``books``, ``sharp``, ``method``, ``commission``, ``kinds``, ``include`` and thresholds, as for `scan_history`.

    Raises
    ------
    ValueError
        If the history or a parameter is invalid, a book is unknown, or a currency has no rate.

    Examples
    --------
    >>> columns, prices = ("at", "sportsbook", "selection", "odds_decimal", "max_bet"), [
    ...     (0, "novig", "Over", 2.1, 20.0), (0, "novig", "Under", 1.7, 50.0), (0, "fanduel", "Over", 1.9, 100.0),
    ...     (0, "fanduel", "Under", 2.0, 100.0), (2, "novig", "Over", 1.8, 20.0), (9, "fanduel", "Over", 1.9, 100.0)]
    >>> history = pl.DataFrame(prices, columns, orient="row").with_columns(
    ...     last_seen_at=pl.from_epoch("at"), event_id=pl.lit("e1"), market_type=pl.lit("total_points"), line=220.5)
    >>> print(fills(history, kinds=["arbitrage"], stakes=[30]))  # novig's price is worse 2 s later
    Arbitrage: 1 shown, average profit 2.44 %. In percent:
    stake  still there  in whole  in part  hedged  left open  worth
      $30     0 to 100  0 to 100        0       0          0  - to 2.44 %
    """
    histories = opened(quotes, every, storage_options)
    if unknown := [name for name in view if name not in _VIEW]:
        raise TypeError(f"fills has no parameter {excerpt(unknown[0])}; those of a view are {', '.join(_VIEW)}")
    amounts = _amounts(stakes)
    for name, value in (("all_or_nothing", all_or_nothing), ("orders", orders)):
        check_bool(name, value)
    if legs not in LEGS:
        raise ValueError(f"legs must be one of {', '.join(LEGS)}, got {excerpt(legs)}")
    check_number("rest_s", rest_s, 0.0, most=_MOST_S)
    by_book, other = _delays(delays)
    sparse = any(cadence(history) > ANSWER_S for history in histories)
    rules = Rules(amounts, by_book, other, legs, all_or_nothing, float(rest_s), sparse)
    if rates is not None and currency_rates(rates).get("USD") != 1.0:
        raise ValueError(f"rates must be USD per unit of each currency, with 1 for USD, got {excerpt(dict(rates))}")
    wanted = _Wanted(
        ScanWanted({name: sendable(value) for name, value in view.items()}, sendable(guards), fair), rules,
        None if rates is None else dict(rates), orders,
    )  # fmt: skip
    plan = planned(histories, wanted, processes, client)
    parts = play(_play, wanted, histories, plan, progress=progress)
    some = pl.concat([part.attempts for part in parts]).sort("born_at", "kind", "id", "stake", "bound")
    sent = pl.concat([part.orders for part in parts]).sort(
        "sent_at", "id", "stake", "bound", "leg", "is_hedge", "odds_id"
    )
    return Fills(some, sent if orders else None, rules)


class _Wanted(NamedTuple):
    """What `fills` plays a history with."""

    scan: ScanWanted
    rules: Rules
    rates: Mapping[str, float] | None
    orders: bool


class _Played(NamedTuple):
    """What became of a history or a part of it."""

    attempts: pl.DataFrame
    orders: pl.DataFrame


def _play(wanted: _Wanted, history: History | Tape, tick: Tick) -> _Played:
    attempts: ViewAttempts | None = None
    ended = _Ended()

    def follow(engine: Engine, view: View, update: Update, first: int) -> None:
        nonlocal attempts
        attempts = attempts or ViewAttempts(engine, view, wanted.rules, wanted.rates, log=wanted.orders)
        ended.add(attempts.follow(update, first))

    scanned = play_scan(wanted.scan, history, tick, follow).frame()
    if attempts is None:
        return _Played(pl.DataFrame(schema=FILLS_SCHEMA), pl.DataFrame(schema=ORDERS_SCHEMA))
    ended.add(attempts.finish())
    attempts.check_delays()
    of = scanned.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))
    made = ended.frame().join(of, "number", maintain_order="left")
    return _Played(result_columns(made), _log(attempts.orders, of))


class _Ended:
    """The attempts that have ended, as columns: the garbage collector looks through objects again and again."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in _ROW}
        self._legs: dict[str, list[float]] = {name: [] for name in _BY_LEG}
        self._sizes: list[int] = []

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Add some attempts."""
        columns, legs = [column.append for column in self._columns.values()], self._legs
        for attempt in attempts:
            for append, value in zip(columns, _row(attempt), strict=True):
                append(value)
            for column, values in zip(legs.values(), (attempt.filled, attempt.cost, attempt.hedged), strict=True):
                column.extend(values)
            self._sizes.append(len(attempt.legs))

    def frame(self) -> pl.DataFrame:
        """All attempts as a table."""
        of = np.repeat(np.arange(len(self._sizes)), self._sizes)
        legs = pl.DataFrame({"of": of, **self._legs}, {"of": pl.Int64, **dict.fromkeys(_BY_LEG, pl.Float64)})
        lists = legs.group_by("of", maintain_order=True).agg(pl.all())
        return pl.DataFrame(self._columns, _ROW).hstack(lists.drop("of"))


def _log(orders: Sequence[Order], of: pl.DataFrame) -> pl.DataFrame:
    """Orders in `ORDERS_SCHEMA`; `of` has the opportunities by number."""
    prices = hexadecimal(np.array([order.ladder.row for order in orders], np.uint64))
    sent = pl.DataFrame(map(_order_row, orders), _ORDER_ROW, orient="row").with_columns(
        pl.col("sent_at", "arrives_at", "rests_until").cast(TIME), odds_id=pl.Series(prices, dtype=pl.String)
    )
    known = of.select("number", "kind", "id", "event_id", "market_type", "market_segment", "player_name")
    legs = of.select("number", selection="selections", line="lines").explode("selection", "line")
    legs = legs.with_columns(leg=pl.int_range(pl.len()).over("number"))
    log = sent.join(known, "number", maintain_order="left").join(legs, ["number", "leg"], maintain_order="left")
    return log.select(*ORDERS_SCHEMA)


_BY_LEG = ("units", "costs", "hedge_units")
_ROW: dict[str, Any] = {
    "number": pl.Int64, "stake": pl.Float64, "bound": pl.String, "there": pl.Boolean, "reason": pl.String,
    "outcome": pl.String, "lot": pl.Float64, "known_size": pl.Boolean, "hedge_cost": pl.Float64,
}  # fmt: skip


def _row(attempt: Attempt) -> tuple[Any, ...]:
    bettor = attempt.bettor
    return (
        attempt.number, bettor.stake, bettor.bound, attempt.is_there, attempt.reason or None,
        attempt.outcome, attempt.plan.lot, all(leg.is_known for leg in attempt.legs), attempt.hedge_cost,
    )  # fmt: skip


_ORDER_ROW: dict[str, Any] = {
    "number": pl.Int64, "stake": pl.Float64, "bound": pl.String, "leg": pl.Int64, "is_hedge": pl.Boolean,
    "sportsbook": pl.String, "sent_at": pl.Int64, "arrives_at": pl.Int64, "rests_until": pl.Int64,
    "limit_odds": pl.Float64, "wanted": pl.Float64, "units": pl.Float64, "cost": pl.Float64, "reason": pl.String,
}  # fmt: skip


def _order_row(order: Order) -> tuple[Any, ...]:
    bettor, got = order.attempt.bettor, order.got
    return (
        order.attempt.number, bettor.stake, bettor.bound, order.leg, order.is_hedge, order.ladder.book.id, order.sent,
        order.arrives, order.until or None, order.limit.odds, order.units, got.units, got.cost, got.reason or None,
    )  # fmt: skip


def _amounts(stakes: Iterable[float]) -> tuple[float, ...]:
    if isinstance(stakes, str | bytes | Mapping) or not isinstance(stakes, Iterable):
        raise ValueError(f"stakes must be a list of amounts, got {excerpt(stakes)}")
    some = tuple(stakes)
    if not 1 <= len(some) <= _MOST_STAKES:
        raise ValueError(f"stakes must have 1 to {_MOST_STAKES} amounts, got {len(some)}")
    for stake in some:
        check_number("a stake", stake, _LEAST, most=_MOST)
    return tuple(dict.fromkeys(float(stake) for stake in some))


Range = tuple[float, float]


def _delays(delays: float | Mapping[str, Any] | None) -> tuple[dict[str, Range], Range | None]:
    """Delays by book, and that of the others."""
    if delays is None:
        return {}, None
    if not isinstance(delays, Mapping):
        return {}, _range("delays", delays)
    return {book: _range(f"the delay of {book}", given) for book, given in by_book("delays", delays).items()}, None


def _range(name: str, given: Any) -> Range:
    ends = (given, given) if is_number(given) else given
    if not (isinstance(ends, tuple | list) and len(ends) == 2 and all(map(is_number, ends))):
        raise ValueError(f"{name} must be seconds, or the least and the most of them, got {excerpt(given)}")
    least, most = (float(each) for each in ends)
    if not 0.0 <= least <= most <= _MOST_S:
        raise ValueError(f"{name} must be from 0 to {_MOST_S:g} seconds, the least first, got {excerpt(given)}")
    return least, most
