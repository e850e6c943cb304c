"""What stakes a venue accepts: at least `min_bet`, in whole multiples of `bet_step` (`oddsengine.tables.levels`).

Both are before fees. The stakes of plans include the fee of a contract, so with a price p and a fee f, the rules of
a bet on contracts are (p + f) / p times as large; a commission is taken from winnings, and leaves them as they are.
"""

from collections.abc import Mapping
from math import inf, isnan
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.tables.levels import BET_STEP, FEE, MIN_BET
from oddsengine.tables.schema import OddsError


class StakeRules(NamedTuple):
    """The smallest stake on a bet, 0 for none, and the step of stakes, None for none."""

    least: float
    step: float | None

    def whole(self, stake: float) -> float:
        """The stake rounded down to whole steps."""
        return stake if self.step is None else (stake / self.step + 1e-9) // 1.0 * self.step

    def allows(self, stake: float) -> bool:
        """Whether a stake is not too small."""
        return stake >= self.least * (1.0 - 1e-9)


def stake_rules(bet: Mapping[str, Any], step: float | None = None, name: str = "a bet") -> StakeRules:
    """Return the rules of a bet, which is a leg or a row of a result.

    With a `step` of the caller, the bet's is the nearest multiple of its venue's. `name` is for errors: an `OddsError`
    if a number is not valid.

    Examples
    --------
    >>> stake_rules({"sportsbook": "betfair_exchange", "min_bet": 2.0, "bet_step": 0.01}, 5.0)
    StakeRules(least=2.0, step=5.0)
    >>> stake_rules({"sportsbook": "matchbook", "bet_step": 0.4}, 1.0)
    StakeRules(least=0.0, step=0.8)
    """
    least, own = (_number(bet.get(field), field, name) for field in (MIN_BET, BET_STEP))
    if least is None and own is None:
        return StakeRules(0.0, step)
    if own == 0.0:
        raise OddsError(f"{name}: {BET_STEP} must be above 0, got 0")
    cost = _cost(bet)
    if own is not None:
        own *= cost
        own *= 1.0 if step is None else max(1.0, float(round(step / own)))
    return StakeRules((least or 0.0) * cost, step if own is None else own)


def _cost(bet: Mapping[str, Any]) -> float:
    """What a stake of 1 costs with the fee of its contracts."""
    net, fee, book = bet.get("net_odds"), bet.get(FEE), catalog.book(bet["sportsbook"])
    most = max(book.contract_fee(live=live) for live in (False, True)) if fee is None else fee
    if net is None or most <= 0.0:
        return 1.0
    return max(float(bet["odds_decimal"] / net), 1.0)


def _number(value: Any, field: str, name: str) -> float | None:
    if value is None or isnan(value):
        return None
    if not 0.0 <= value < inf:
        raise OddsError(f"{name}: {field} must be 0 or more, got {value:g}")
    return float(value)
