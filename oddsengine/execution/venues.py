"""Venues: who takes orders, behind a protocol of three methods.

Nothing here sends an order to a real venue: who wants that writes an adapter with these methods.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple, Protocol

from oddsengine.bounds import excerpt


class BetOrder(NamedTuple):
    """An order to bet, as it is sent to a venue."""

    id: str  # ours: a function of the opportunity, the leg and the moment of the decision, of at most 32 characters
    sportsbook: str  # id of its book
    odds_id: str  # of the price on the board
    odds: float  # decimal, as the venue showed them at the decision
    min_odds: float  # the lowest accepted
    net_odds: float  # of the decision, after fees
    stake: float  # the most that it may cost, with fees
    is_live: bool  # whether it was decided in play
    delay_s: float  # how long the venue holds a bet in play
    sent: int  # microseconds
    bet: Mapping[str, Any]  # what is bet on: `event_id`, `market_type`, `selection`, `line` and others


class BetAnswer(NamedTuple):
    """What has become of an order so far.

    Answers are cumulative: stake and payout are the totals filled so far.
    """

    order: str  # id
    stake: float  # filled, with fees
    payout: float  # of that, if the bet wins, after fees
    final: bool  # whether nothing more will be filled
    reason: str | None = None  # why it was not filled, or not in whole
    odds: float | None = None  # mean of the fills, as the venue shows odds; None: those of the order, if nothing moved
    at: int | None = None  # when it was answered, microseconds; None: when the answer is heard


def order_id(opportunity: str, leg: int, decided: int) -> str:
    """The id of an order: a function of the opportunity's id, the leg and the moment of the decision."""
    return f"{opportunity[-16:]}-{leg}-{decided:x}"


def read_answer(given: Any) -> BetAnswer:
    """Return what a venue gave as an answer, with plain numbers; raise `ValueError` if it is none."""
    if not isinstance(given, BetAnswer):
        raise ValueError(f"an answer that is no BetAnswer: {excerpt(given)}")
    valid = {
        "order": isinstance(given.order, str), "stake": _is_real(given.stake), "payout": _is_real(given.payout),
        "final": isinstance(given.final, bool), "reason": given.reason is None or isinstance(given.reason, str),
        "odds": given.odds is None or _is_real(given.odds),
        "at": given.at is None or (isinstance(given.at, int) and not isinstance(given.at, bool)),
    }  # fmt: skip
    for name in (name for name, is_valid in valid.items() if not is_valid):
        raise ValueError(f"a malformed answer: {name} {excerpt(getattr(given, name))}, to order {excerpt(given.order)}")
    odds = None if given.odds is None else float(given.odds)
    return given._replace(stake=float(given.stake), payout=float(given.payout), odds=odds)


def _is_real(value: Any) -> bool:
    """Whether a value is a number, also one that is not finite; booleans are not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except (OverflowError, ValueError, TypeError):
        return False
    return True


class BetVenue(Protocol):
    """What a `Trader` sends its orders to.

    If a method raises an `OSError`, such as `ConnectionError`, it is unknown whether the venue got the call: it may
    have the order.
    """

    def place(self, order: BetOrder) -> None:
        """Send an order. Idempotent: an order with an id that was sent before is not sent again."""

    def cancel(self, order_id: str) -> None:
        """Cancel what is unfilled. The order gets a final answer, even if the venue never had it, and no more fills."""

    def answers(self) -> list[BetAnswer]:
        """What became of orders since the last call that did not raise. An answer may be repeated."""
