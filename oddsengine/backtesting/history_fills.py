"""What could be had of the opportunities of a history (`fills`): its scan, with `oddsengine.execution` beside it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.calibrations import Fair
from oddsengine.backtesting.fill_report import FILLS_SCHEMA, ORDERS_SCHEMA, Fills, result_columns
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.history_scan import ScanWanted, hit_values, net_odds, play_scan
from oddsengine.backtesting.parts import planned, play, sendable
from oddsengine.backtesting.replay import cadence, opened
from oddsengine.board.facts import moments_of
from oddsengine.board.open import Hits
from oddsengine.bounds import check_number, excerpt, is_number
from oddsengine.catalog.reasons import Guards
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.execution.attempts import ANSWER_S, LEGS, Attempt, Attempts, Found, Legs, Order, Rules
from oddsengine.execution.ladders import Ladders
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.progress import Tick
from oddsengine.tape import Tape

STAKES = (10.0, 100.0, 1000.0)
_MOST_S = 3600.0  # of delays and of resting
_MOST_STAKES = 20


def fills(
    quotes: Any,
    *,
    stakes: Iterable[float] = STAKES,
    delays: float | Mapping[str, Any] | None = None,
    legs: Legs = "thinnest",
    whole: bool = False,
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
    whole
        Orders are all or nothing; otherwise they take what is there.
    rest_s
        Seconds for which what is left of an order rests, at exchanges, in markets of two outcomes.
    rates
        Worth of currencies in USD, as for `largest_arbitrages`.
    orders
        Keep every order, in `Fills.orders`.
    **view
        ``books``, ``sharp``, ``method``, ``commission``, ``kinds``, ``include`` and thresholds, as for `scan_history`.

    Returns
    -------
    Fills
        A row for each opportunity, stake and bound, and summaries.

    Raises
    ------
    ValueError
        If the history or a parameter is invalid, a book is unknown, or a currency has no rate.
    """
    histories = opened(quotes, every, storage_options)
    amounts = _amounts(stakes)
    if legs not in LEGS:
        raise ValueError(f"legs must be one of {', '.join(LEGS)}, got {excerpt(legs)}")
    check_number("rest_s", rest_s, 0.0, most=_MOST_S)
    by_book, other = _delays(delays)
    sparse = any(cadence(history) > ANSWER_S for history in histories)
    rules = Rules(amounts, by_book, other, legs, whole, float(rest_s), sparse)
    Ladders(rates=rates)  # raises if they are not valid
    wanted = _Wanted(
        ScanWanted({name: sendable(value) for name, value in view.items()}, sendable(guards), fair), rules,
        None if rates is None else dict(rates), orders,
    )  # fmt: skip
    plan = planned(histories, wanted, processes, client)
    parts = play(_play, wanted, histories, plan, progress=progress)
    some = pl.concat([part.attempts for part in parts]).sort("born_at", "kind", "id", "stake", "bound")
    sent = pl.concat([part.orders for part in parts]).sort("sent_at", "id", "stake", "bound", "leg")
    return Fills(some, sent if orders else None, rules, {**view})


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
    shadow = _Shadow(wanted)
    scan = play_scan(wanted.scan, history, tick, shadow.follow)
    return shadow.played(scan.frame())


class _Shadow:
    """The attempts that go along with a scan."""

    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted
        self._attempts: Attempts | None = None
        self._engine: Engine | None = None
        self._worth = 0.0  # of a unit of each leg of a low hold
        self._now = 0
        self._rows: list[tuple[Any, ...]] = []

    def follow(self, engine: Engine, view: View, update: Update, new: Hits, first: int) -> None:
        self._now = update.now
        if self._attempts is None:
            v = view.wanted
            self._worth = 1.0 + (dict(v.limits).get("max_hold") or 0.0) / 100.0
            ladders = Ladders(v.commission, self._wanted.rates)
            self._engine = engine
            self._attempts = Attempts(self._wanted.rules, ladders, v.books, log=self._wanted.orders)
        changed = self._changed(update)
        if new.size or changed or self._attempts.next_due <= update.now:
            with engine.still() as board:
                self._attempts.follow(board, update.now, changed, _found(new, first, self._worth))
            self._keep(self._attempts.take_done())

    def _changed(self, update: Update) -> list[int]:
        """Ids of prices that matter and have changed in a step."""
        assert self._attempts is not None
        watched = self._attempts.watched
        if not watched:
            return []
        ids = np.concatenate((update.facts.id[update.rows], update.removed_rows.id))
        return [row for row in ids.tolist() if row in watched]

    def _keep(self, done: Iterable[Attempt]) -> None:
        self._rows += map(_row, done)

    def played(self, scanned: pl.DataFrame) -> _Played:
        """What became of the opportunities of a scan, in the order in which they were found."""
        if self._attempts is None or self._engine is None:
            return _Played(pl.DataFrame(schema=FILLS_SCHEMA), pl.DataFrame(schema=ORDERS_SCHEMA))
        with self._engine.still() as board:
            self._attempts.finish(board, self._now)
        self._keep(self._attempts.take_done())
        rows = pl.DataFrame(self._rows, _ROW, orient="row")
        of = scanned.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))
        sent = pl.DataFrame(map(_order_row, self._attempts.orders or ()), _ORDER_ROW, orient="row")
        known = of.select("number", "kind", "id", "event_id", "market_type", "market_segment", "player_name")
        log = sent.join(known, "number", maintain_order="left")
        legs = of.select("number", selection="selections", line="lines").explode("selection", "line")
        legs = legs.with_columns(leg=pl.int_range(pl.len()).over("number"))
        log = log.join(legs, ["number", "leg"], maintain_order="left").select(*ORDERS_SCHEMA)
        return _Played(result_columns(rows.join(of, "number", maintain_order="left")), log)


def _found(new: Hits, first: int, hold: float) -> Iterator[Found]:
    """What is shown first, the best of each kind first."""
    if not new.size:
        return
    value, cost = hit_values(new), np.nansum(1.0 / net_odds(new), axis=1)
    kinds = list(KINDS.values())
    rises = np.array([kind.rises for kind in kinds])[new.kind]
    worth = np.where(rises, cost * (1.0 + value / 100.0), hold)
    for at in np.lexsort((new.id, np.where(rises, -value, value), new.kind)).tolist():
        slots = tuple(slot for slot in new.legs[at].tolist() if slot >= 0)
        yield Found(first + at, kinds[new.kind[at]].name, slots, float(worth[at]))


_ROW: dict[str, Any] = {
    "number": pl.Int64, "stake": pl.Float64, "bound": pl.String, "there": pl.Boolean, "reason": pl.String,
    "is_short": pl.Boolean, "known_size": pl.Boolean, "planned": pl.Float64, "units": pl.List(pl.Float64),
    "costs": pl.List(pl.Float64), "hedge_units": pl.List(pl.Float64), "hedge_cost": pl.Float64,
}  # fmt: skip


def _row(attempt: Attempt) -> tuple[Any, ...]:
    player = attempt.player
    return (
        attempt.found, player.stake, "least" if player.least else "most", attempt.is_there, attempt.reason or None,
        attempt.is_short, all(leg.is_known for leg in attempt.legs), attempt.units, attempt.filled, attempt.cost,
        attempt.hedged, attempt.hedge_cost,
    )  # fmt: skip


_ORDER_ROW: dict[str, Any] = {
    "number": pl.Int64, "stake": pl.Float64, "bound": pl.String, "leg": pl.Int64, "is_hedge": pl.Boolean,
    "sportsbook": pl.String, "odds_id": pl.String, "sent_at": pl.Datetime("us", "UTC"),
    "arrives_at": pl.Datetime("us", "UTC"), "rests_until": pl.Datetime("us", "UTC"), "limit_odds": pl.Float64,
    "wanted": pl.Float64, "units": pl.Float64, "cost": pl.Float64, "reason": pl.String,
}  # fmt: skip


def _order_row(order: Order) -> tuple[Any, ...]:
    player, got = order.attempt.player, order.got
    sent, arrives, until = moments_of(np.array([order.sent, order.arrives, order.until], np.int64)).to_list()
    return (
        order.attempt.found, player.stake, "least" if player.least else "most", order.leg, order.is_hedge,
        order.ladder.book.id, hexadecimal(np.array([order.ladder.row], np.uint64))[0], sent, arrives,
        until if order.until else None, order.limit.odds, order.units, got.units, got.cost, got.reason or None,
    )  # fmt: skip


def _amounts(stakes: Iterable[float]) -> tuple[float, ...]:
    if isinstance(stakes, str | Mapping) or not isinstance(stakes, Iterable):
        raise ValueError(f"stakes must be a list of amounts, got {excerpt(stakes)}")
    some = tuple(dict.fromkeys(stakes))
    if not 1 <= len(some) <= _MOST_STAKES:
        raise ValueError(f"stakes must have 1 to {_MOST_STAKES} amounts, got {len(some)}")
    for stake in some:
        check_number("a stake", stake, above=0.0, most=1e9)
    return tuple(float(stake) for stake in some)


Range = tuple[float, float]


def _delays(delays: float | Mapping[str, Any] | None) -> tuple[dict[str, Range], Range | None]:
    """Delays by book, and that of the others."""
    if delays is None:
        return {}, None
    if not isinstance(delays, Mapping):
        return {}, _range("delays", delays)
    for book in delays:
        if not isinstance(book, str):
            raise ValueError(f"the keys of delays must be book ids, got {excerpt(book)}")
    return {catalog.book(book).id: _range(f"the delay of {book}", given) for book, given in delays.items()}, None


def _range(name: str, given: Any) -> Range:
    ends = (given, given) if is_number(given) else given
    if not (isinstance(ends, tuple | list) and len(ends) == 2 and all(map(is_number, ends))):
        raise ValueError(f"{name} must be seconds, or the least and the most of them, got {excerpt(given)}")
    least, most = (float(each) for each in ends)
    if not 0.0 <= least <= most <= _MOST_S:
        raise ValueError(f"{name} must be from 0 to {_MOST_S:g} seconds, the least first, got {excerpt(given)}")
    return least, most
