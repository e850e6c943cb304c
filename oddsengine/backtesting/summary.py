"""Summaries of bets, as figures and in words."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine.columns import Floats, Longs
from oddsengine.detection.kinds import KINDS
from oddsengine.execution.attempts import OUTCOMES
from oddsengine.maths import scoring


class PositionSummary(NamedTuple):
    """Summary of the arbitrages or low holds of a backtest."""

    kind: str  # arbitrage or low_hold
    decided: int
    outcomes: dict[str, int]  # whole, part, open, none and waiting
    staked: float
    locked: float  # the least that whole ones and parts win, or lose if negative
    worst: float  # the same of open ones
    settled: int  # with a result by the score of all bets
    profit: float  # of these


class BacktestSummary(NamedTuple):
    """Summary of a backtest's bets, with standard errors clustered by event.

    Bets are those on +EV prices and the legs of arbitrages and low holds; of EV and closes, those on +EV prices.
    """

    placed: int  # orders that were sent
    filled: int
    unobserved: int  # of the filled: there was no snapshot that tells whether the price was still available
    waiting: int  # not answered at the end of the history
    rejected: dict[str, int]  # by reason
    events: int
    staked: float  # on bets settled by a score
    profit: float  # of these
    rate: float  # profit per unit staked on these; nan without any
    rate_error: float
    ev: float  # mean, as shown, of bets on +EV prices
    closed: int  # of these, with a close
    closing_ev: float  # mean of these
    closing_ev_error: float
    by_score: int  # bets settled by a score
    by_close: int  # other bets with a close
    unsettled: float  # staked on these
    expected_profit: float  # of these, at the close
    expected_rate: float  # expected profit per unit staked on these; nan without any
    expected_error: float
    drawdown: float  # of the bankroll by results; nan without any
    no_close: dict[str, int]  # bets on +EV prices without a close, by reason
    no_result: dict[str, int]  # filled orders without a result, by reason
    cadence_s: float  # median time between two snapshots of an event; nan if unknown
    sparse: bool  # whether that is so long that prices not seen again count as accepted
    in_part: int = 0  # of the filled
    halted: str | None = None  # why no orders were placed any more at the end
    positions: tuple[PositionSummary, ...] = ()  # of arbitrages, and of low holds, if there are any

    def __str__(self) -> str:
        """The figures in words, one per line."""
        return aligned(lines(self))


def aligned(texts: list[tuple[str, str]]) -> str:
    """Write named texts, one per line."""
    width = max(len(name) for name, _ in texts)
    return "\n".join(f"{name:{width}}  {text}" for name, text in texts)


def percent(value: float, error: float = math.nan) -> str:
    """Write a fraction and its standard error in percent."""
    if math.isnan(value):
        return "unknown"
    return f"{value:.2%}" + ("" if math.isnan(error) else f" ± {error:.2%}")


def counts(reasons: pl.Series) -> dict[str, int]:
    """Count texts, most frequent first; null is none."""
    found = reasons.drop_nulls().value_counts(name="n").sort("n", reasons.name, descending=[True, False])
    return dict(found.iter_rows())


def event_codes(bets: pl.DataFrame) -> Longs:
    """Return the events of bets as codes from 0."""
    return np.unique(bets["event_id"].fill_null("").to_numpy(), return_inverse=True)[1]


def position_summaries(positions: pl.DataFrame) -> tuple[PositionSummary, ...]:
    """Summarise positions by kind."""
    return tuple(
        PositionSummary(
            str(kind), some.height, counts(some["outcome"]), float(some["stake"].sum()),
            float(some.filter(pl.col("outcome").is_in(["whole", "part"]))["locked"].sum()),
            float(some.filter(pl.col("outcome") == "open")["locked"].sum()),
            some["profit"].count(), float(some["profit"].sum()),
        )
        for (kind,), some in positions.sort("kind").group_by("kind", maintain_order=True)
    )  # fmt: skip


def returned(events: Longs, stakes: Floats, gains: Floats) -> scoring.Return:
    """Return the profit per unit staked, with errors clustered by event; `gains` are per unit staked."""
    n = int(events.max(initial=-1)) + 1
    # Sums within events suffice; a row per event and a column per bet would be mostly empty.
    won = np.bincount(events, stakes * gains, n) if n else np.empty(0)
    staked = np.bincount(events, stakes, n) if n else np.empty(0)
    return scoring.returns(staked[:, None], (won / np.maximum(staked, 1e-300))[:, None], seed=0)


def lines(summary: BacktestSummary) -> list[tuple[str, str]]:
    """Format the summary with errors."""
    s = summary

    others = {
        **s.rejected, "not answered": s.waiting, "filled in part": s.in_part, "filled, but unobserved": s.unobserved
    }  # fmt: skip
    apart = "unknown" if math.isnan(s.cadence_s) else _span(s.cadence_s)
    fills = "at the odds of the decision, unless the price is seen again" if s.sparse else "if the next snapshot agrees"
    return [
        ("time between snapshots of an event", apart),
        ("orders are filled", fills),
        ("orders, of them filled", f"{s.placed:,}, {s.filled:,} ({s.filled / max(s.placed, 1):.0%})"),
        *((f"orders: {name}", f"{count:,}") for name, count in others.items() if count),
        *([("halted", s.halted)] if s.halted else []),
        ("events", f"{s.events:,}"),
        *(line for each in s.positions for line in _of_positions(each)),
        *_results(s),
        ("EV shown", percent(s.ev)),
        ("EV at the close", percent(s.closing_ev, s.closing_ev_error)),
        *((f"bets without a close: {why}", f"{count:,}") for why, count in s.no_close.items()),
        ("graded by score, by close", f"{s.by_score:,}, {s.by_close:,}"),
        *((f"bets without a result: {why}", f"{count:,}") for why, count in s.no_result.items()),
        ("largest drawdown", percent(s.drawdown)),
    ]


def _of_positions(s: PositionSummary) -> Iterator[tuple[str, str]]:
    """Format what became of arbitrages or low holds."""
    name = KINDS[s.kind].plural
    names = [each for each in (*OUTCOMES, "waiting") if each in s.outcomes]
    yield name, f"{s.decided:,}: " + ", ".join(f"{s.outcomes[each]:,} {each}" for each in names)
    yield f"{name}: staked", f"{s.staked:,.2f}"
    yield f"{name}: locked (whole, part)", f"{s.locked:,.2f}"
    if "open" in s.outcomes:
        yield f"{name}: worst case (open)", f"{s.worst:,.2f}"
    if s.settled:
        yield f"{name}: profit of {s.settled:,} settled", f"{s.profit:,.2f}"


def _results(s: BacktestSummary) -> list[tuple[str, str]]:
    """Format the profit of bets that are settled, and the expected profit of others."""
    settled, others = (" of settled bets", " of other bets") if s.by_score and s.by_close else ("", "")
    made = [
        (f"stakes{settled}" if settled else "staked", f"{s.staked:,.2f}"),
        (f"profit{settled}", f"{s.profit:,.2f}"),
        (f"return on stakes{settled}", percent(s.rate, s.rate_error)),
    ]
    expected = [
        (f"stakes{others}" if others else "staked", f"{s.unsettled:,.2f}"),
        (f"expected profit at the close{others}", f"{s.expected_profit:,.2f}"),
        (f"EV at the close by stakes{others}", percent(s.expected_rate, s.expected_error)),
    ]
    none = [] if s.by_score or s.by_close else [("profit", "unknown")]
    return (made if s.by_score else []) + (expected if s.by_close else []) + none


def _span(seconds: float) -> str:
    """Write a number of seconds in its largest unit.

    Examples
    --------
    >>> _span(300.0), _span(84_000.0)
    ('5 min', '23.3 h')
    """
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
