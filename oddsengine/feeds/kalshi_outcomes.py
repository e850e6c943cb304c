"""Which outcomes Yes and No of a market of Kalshi are bets on.

In a winner of two, No of one side is the other side; No of "A by over 3.5" is B +3.5, and No of an over is the under.
In soccer, No of one side of three is the other side with a handicap of half a goal, and No of the draw is No of
the market `draw`; in other sports with a draw they are left out.
"""

from collections import Counter
from typing import Any, NamedTuple

from oddsengine.feeds.kalshi_format import Market, is_draw, line_of
from oddsengine.feeds.kalshi_series import LISTED, PROP, SCORER, SPREAD, TEAM_TOTAL, UNKNOWN, WINNER, YES_NO

_NO_TEAM, _NO_PLAYER = "a market whose team is not one of the two", "a market whose player is not known"
_NO_LINE = "a market without a clear line"


class Offer(NamedTuple):
    """One side of a market: fields of the row of its outcome, and the row's id."""

    market: Market
    side: str  # yes or no
    outcome: dict[str, Any]
    id: str


def offers_of(
    market: Market,
    form: str,
    side: str,
    names: dict[str, str],
    player: str,
    fixed: float | None,
    refused: Counter[str],
    *,
    three: bool,
    opposite: dict[str, Any] | None = None,
) -> list[Offer]:
    """Return the outcomes that the sides of a market are bets on.

    Parameters
    ----------
    form
        What markets of its series are.
    side
        `home` or `away` if the market is about a team, else empty.
    names
        Names of the teams by side.
    player
        Whom a player prop is about.
    fixed
        The line that the market type implies.
    three
        Whether a draw is an outcome of its event.
    opposite
        With a draw, the bet against the side or the draw; None if it is left out.
    """
    if form in (UNKNOWN, LISTED):
        return [_offer(market, "yes", "", player or market.yes_sub_title or market.title or market.ticker)]
    if form == YES_NO:
        return [_offer(market, "yes", "yes", "Yes"), _offer(market, "no", "no", "No")]
    if form == SCORER:
        if market.floor_strike is not None and line_of(market) != fixed:
            refused[_NO_LINE] += 1
            return []
        if not player:
            refused[_NO_PLAYER] += 1
            return []
        sides = (("yes", "Yes"), ("no", "No"))
        return [_offer(market, side, side, text, player_name=player) for side, text in sides]
    is_drawn = form == WINNER and three and is_draw(market)
    other = "away" if side == "home" else "home"
    if form in (WINNER, SPREAD, TEAM_TOTAL) and not side and not is_drawn:
        refused[_NO_TEAM] += 1
        return []
    if form == WINNER:
        yes = _offer(market, "yes", "draw", "Draw") if is_drawn else _offer(market, "yes", side, names[side])
        if not three:
            return [yes, _offer(market, "no", other, names[other])]
        if opposite is None:
            return [yes]
        no = _offer(market, "no", opposite["selection_type"], opposite["selection"], opposite["line"])
        return [yes, no._replace(outcome=no.outcome | opposite)]
    line = line_of(market)
    if line is None:
        refused[_NO_LINE] += 1
        return []
    if form == SPREAD:
        return [_offer(market, "yes", side, names[side], -line), _offer(market, "no", other, names[other], line)]
    if form == PROP and not player:
        refused[_NO_PLAYER] += 1
        return []
    subject: dict[str, Any] = {}
    prefix = ""
    if form == TEAM_TOTAL:
        subject, prefix = {"team_side": side}, f"{names[side]} "
    if form == PROP:
        subject = {"player_name": player}
    return [
        _offer(market, "yes", "over", f"{prefix}Over", line, **subject),
        _offer(market, "no", "under", f"{prefix}Under", line, **subject),
    ]


def _offer(
    market: Market, side: str, outcome: str, selection: str, line: float | None = None, **subject: str
) -> Offer:  # fmt: skip
    at = "" if line is None else f"{line:g}"
    fields = {"selection": selection, "selection_type": outcome or None, "line": line, **subject}
    return Offer(market, side, fields, "/".join((market.event_ticker, outcome or market.ticker, at, *subject.values())))
