"""Bets of one event that are one bet in several forms: the same side at several lines, in several markets or at books.

Arsenal +0.5, +0.75 and +1, or Arsenal to win at two books, win and lose nearly together: whoever stakes each of them as
if it were alone stakes the same opinion several times. Together they get the stakes that `kelly_portfolio` finds from
the joint distribution of their results, most of it on the form that pays best.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.staking.stakes import kelly_portfolio

_RESULT = ("moneyline", "moneyline_3way", "moneyline_regulation", "spread", "draw_no_bet")
"""Families whose sides are the teams, by the score: an advantage for one of them has a form in each."""

GROUPED_BY = (
    "event_id", "is_live", "market_segment", "market_type", "sport", "stat_category", "player_name", "team_side",
    "selection_type",
)  # fmt: skip
"""Columns that say which rows are one bet."""


class SameBet(NamedTuple):
    """Some rows of +EV prices that are one bet."""

    rows: tuple[int, ...]  # positions in the frame, in order
    stakes: tuple[float, ...]  # growth-optimal stakes on them together, as fractions of the bankroll
    apart: float  # the sum of their Kelly stakes, each as if it were alone

    @property
    def kelly(self) -> float:
        """The stake on all of them."""
        return sum(self.stakes)


def same_bets(ev: pl.DataFrame, first: int | None = None) -> list[SameBet]:
    """Group rows of `find_ev` that are one bet, and compute the stake on each group; in order of the first row.

    Groups without any of the `first` rows are left out; None is all.

    Examples
    --------
    >>> import oddsengine as oe
    >>> rows = [(book, "Lakers", 1.9) for book in ("pinnacle", "betmgm")] + [("fanduel", "Lakers", 2.1)]
    >>> rows += [(book, "Celtics", 1.9) for book in ("pinnacle", "betmgm")] + [("caesars", "Lakers", 2.05)]
    >>> odds = pl.DataFrame(rows, ["sportsbook", "selection", "odds_decimal"], orient="row")
    >>> event = {"event_id": "e", "home_team": "Lakers", "away_team": "Celtics", "market_type": "moneyline"}
    >>> ev = oe.find_ev(odds.with_columns(pl.lit(text).alias(name) for name, text in event.items()))
    >>> [(one.rows, round(one.kelly, 3), round(one.apart, 3)) for one in same_bets(ev)]
    [((0, 1), 0.045, 0.069)]
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    keys = ev.select(GROUPED_BY).iter_rows()
    for at, (event, live, period, market, sport, stat, player, team, side) in enumerate(keys):
        kind = catalog.market_type(market, sport or "", stat or "")
        family = "result" if kind.family in _RESULT else kind.family or market
        if side is not None:
            groups.setdefault((event, live, period, family, player, team, side), []).append(at)
    least = ev.height if first is None else first
    return [_staked(ev, rows) for rows in groups.values() if len(rows) > 1 and rows[0] < least]


def _staked(ev: pl.DataFrame, rows: list[int]) -> SameBet:
    part = ev[rows]
    alone = part["kelly_percent"].fill_null(0.0).to_numpy()
    try:
        stakes = kelly_portfolio(part).bets["stake"].to_numpy()
    except ValueError:  # probabilities that contradict each other: the largest of the stakes
        stakes = np.where(np.arange(alone.size) == alone.argmax(), alone, 0.0)
    return SameBet(tuple(rows), tuple(stakes.tolist()), float(alone.sum()))
