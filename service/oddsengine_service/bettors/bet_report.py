"""The report on bets: cumulative profit, and figures by book, market and month with the error of the CLV."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from oddsengine import catalog
from oddsengine.maths.rounding import exact
from oddsengine_service.bettors.bets import Bet
from oddsengine_service.wire.numbers import money

MOST_POINTS = 500
_Z = 1.645  # 90 % of a normal distribution lie within


class CoursePoint(msgspec.Struct):
    """Running totals of settled bets: profit, and expected profit when placed and at closing prices.

    All three are of the same bets: one without a fair probability counts with its profit in `expected`, one without a
    close in `closing`. By the closing probabilities, 90 % of results lie within `closing` +- `error`.
    """

    at: datetime
    profit: float
    expected: float | None
    closing: float | None
    error: float | None


class Breakdown(msgspec.Struct):
    """Figures of a group of bets.

    `open` and `open_staked` are of the bets without a result, all others of the settled ones: `ev_percent` of the
    `with_fair` that have a fair probability, `clv_percent` and its 90 % error, `clv_error`, of the `with_close`.
    """

    group: str
    count: int
    settled: int
    open: int
    staked: float
    open_staked: float
    profit: float
    roi_percent: float | None
    ev_percent: float | None
    clv_percent: float | None
    clv_error: float | None
    with_close: int
    with_fair: int


class BetReport(msgspec.Struct):
    """Cumulative profit, and figures by group; `count` leaves out void bets."""

    count: int
    course: list[CoursePoint]
    sportsbooks: list[Breakdown]
    markets: list[Breakdown]
    months: list[Breakdown]


def report(bets: Sequence[Bet]) -> BetReport:
    """Report on some bets; void bets are left out."""
    counted = [bet for bet in bets if bet.result != "void"]
    return BetReport(
        len(counted),
        _course(counted),
        _grouped(counted, lambda bet: catalog.book(bet.sportsbook).id),
        _grouped(counted, lambda bet: bet.market_type or "other"),
        sorted(_grouped(counted, lambda bet: f"{bet.placed_at:%Y-%m}"), key=lambda each: each.group),
    )


def _course(bets: Iterable[Bet]) -> list[CoursePoint]:
    """The profit curve: a point per settled bet, or evenly spaced points that include the last."""
    settled = sorted((bet for bet in bets if bet.result is not None), key=lambda bet: (bet.placed_at, bet.id))
    points = []
    profit = expected = closing = variance = 0.0
    known = closed = False
    for bet in settled:
        earned = bet.profit or 0.0
        profit += earned
        known, closed = known or bet.ev_percent is not None, closed or bet.clv_percent is not None
        expected += earned if bet.ev_percent is None else bet.stake * bet.ev_percent / 100.0
        closing += earned if bet.clv_percent is None else bet.stake * bet.clv_percent / 100.0
        if bet.clv_percent is not None and bet.closing_probability is not None:
            p = bet.closing_probability
            payout = bet.stake * (1.0 + bet.clv_percent / 100.0) / p
            variance += payout * payout * p * (1.0 - p)
        points.append(
            CoursePoint(
                bet.placed_at, money(profit), money(expected) if known else None,
                money(closing) if closed else None, money(_Z * math.sqrt(variance)) if closed else None,
            )
        )  # fmt: skip
    step = max(1, math.ceil(len(points) / MOST_POINTS))
    return points[(len(points) - 1) % step :: step] if points else []


def _grouped(bets: Iterable[Bet], group_of: Callable[[Bet], str]) -> list[Breakdown]:
    """One breakdown per group, most bets first."""
    groups: dict[str, list[Bet]] = {}
    for bet in bets:
        groups.setdefault(group_of(bet), []).append(bet)
    return sorted((_breakdown(*each) for each in groups.items()), key=lambda each: (-each.count, each.group))


def _breakdown(group: str, bets: Sequence[Bet]) -> Breakdown:
    settled = [bet for bet in bets if bet.result is not None]
    waiting = [bet for bet in bets if bet.result is None]
    staked, profit = sum(bet.stake for bet in settled), sum(bet.profit or 0.0 for bet in settled)
    ev, _ = _mean([(bet.stake, bet.ev_percent) for bet in settled])
    clv, error = _mean([(bet.stake, bet.clv_percent) for bet in settled])
    return Breakdown(
        group, len(bets), len(settled), len(waiting), money(staked), money(sum(bet.stake for bet in waiting)),
        money(profit),
        exact(100.0 * profit / staked) if staked else None, ev, clv, error,
        sum(bet.clv_percent is not None for bet in settled), sum(bet.ev_percent is not None for bet in settled),
    )  # fmt: skip


def _mean(weighted: Iterable[tuple[float, float | None]]) -> tuple[float | None, float | None]:
    """The stake-weighted mean, None without a value, and its 90 % error, None with fewer than two values."""
    known = [(stake, value) for stake, value in weighted if value is not None]
    total = sum(stake for stake, _ in known)
    if not known:
        return None, None
    mean = sum(stake * value for stake, value in known) / total
    n = len(known)
    if n < 2:
        return exact(mean), None
    squares = sum((stake * (value - mean)) ** 2 for stake, value in known)
    return exact(mean), exact(_Z * math.sqrt(squares * n / (n - 1)) / total)
