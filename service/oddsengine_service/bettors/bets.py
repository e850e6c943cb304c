"""Placed bets: their closing prices, results and profits.

Settlement is `oddsengine.staking.outcomes.settled`, as in backtests: a share of the stake from -1 (lost) to 1 (won),
with 0 for a push. Bets that a final score does not settle (props, periods) get their result by hand.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, UnsetType

from oddsengine import OddsError, catalog
from oddsengine.detection.kinds import KINDS
from oddsengine.history.clv import clv
from oddsengine.maths.odds import charged
from oddsengine.maths.rounding import exact
from oddsengine.staking.outcomes import settled
from oddsengine.staking.stakes import bet_table
from oddsengine_service.accounts.records import Records
from oddsengine_service.errors import invalid
from oddsengine_service.node import Node
from oddsengine_service.wire.envelopes import Body
from oddsengine_service.wire.numbers import format_time, money, precise

Result = Literal["won", "half_won", "push", "half_lost", "lost", "void"]
SHARES: dict[Result, float] = {"won": 1.0, "half_won": 0.5, "push": 0.0, "half_lost": -0.5, "lost": -1.0, "void": 0.0}
MOST_IMPORTED = 1000  # in one request
Odds = Annotated[float, Meta(gt=1.0, le=100_000.0)]
Stake = Annotated[float, Meta(gt=0.0, le=1e12)]
Text = Annotated[str, Meta(max_length=200)]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
Note = Annotated[str, Meta(max_length=1000)]
Probability = Annotated[float, Meta(gt=0.0, lt=1.0)]
Score = Annotated[int, Meta(ge=0, le=1000)]
_AHEAD = timedelta(minutes=5)  # how far ahead a client's clock may be
_Finite = Annotated[float, Meta(ge=-1e6, le=1e6)]


class NewBet(Body, kw_only=True):
    """A bet as placed; it is identified by the same fields as rows of `/odds`."""

    sportsbook: _Name
    selection: _Name
    odds_decimal: Annotated[Odds, Meta(description="The price taken.")]
    stake: Stake
    event_id: Text | None = None
    odds_id: Annotated[Text | None, Meta(description="`odds_id` of the +EV row, for the book's own closing price.")] = (
        None
    )
    kind: Literal[*KINDS, "other"] = "other"  # type: ignore[valid-type]
    group: Annotated[Text | None, Meta(description="Bets of one opportunity share it.")] = None
    sport: Text = ""
    league: Text = ""
    home_team: Text = ""
    away_team: Text = ""
    event_start_time: datetime | None = None
    market_type: Text = ""
    market_segment: Text | None = None
    selection_type: Text | None = None
    line: _Finite | None = None
    player_name: Text | None = None
    stat_category: Text | None = None
    team_side: Text | None = None
    is_live: bool = False
    fair_probability: Annotated[Probability | None, Meta(description="When it was placed.")] = None
    note: Note = ""
    placed_at: Annotated[datetime | None, Meta(description="Default: now.")] = None


class BetChanges(Body, kw_only=True):
    """The fields to change; null for `result` or for the scores reopens the bet."""

    stake: Stake | UnsetType = UNSET
    odds_decimal: Odds | UnsetType = UNSET
    note: Note | UnsetType = UNSET
    sportsbook: _Name | UnsetType = UNSET
    selection: _Name | UnsetType = UNSET
    placed_at: datetime | UnsetType = UNSET
    fair_probability: Probability | UnsetType | None = UNSET
    result: Result | UnsetType | None = UNSET
    home_score: Score | UnsetType | None = UNSET
    away_score: Score | UnsetType | None = UNSET
    closing_probability: Probability | UnsetType | None = UNSET


class Bet(NewBet, kw_only=True, forbid_unknown_fields=False):
    """A bet with its close, result and profit."""

    sportsbook: Text  # older bets may have none
    selection: Text
    id: str
    placed_at: datetime
    result: Annotated[Result | None, Meta(description="Null while it is open.")] = None
    graded_by: Literal["score", "hand"] | None = None
    home_score: int | None = None
    away_score: int | None = None
    closing_odds: Annotated[float | None, Meta(description="The book's last price before the start, decimal.")] = None
    closing_probability: Annotated[float | None, Meta(description="Fair probability at the close.")] = None
    no_close: Annotated[str | None, Meta(description="Why it will have no closing line.")] = None
    ev_percent: float | None = None
    clv_percent: Annotated[float | None, Meta(description="Expected value at the close, in percent.")] = None
    profit: Annotated[float | None, Meta(description="In money, after the book's commission.")] = None


class ImportedBet(NewBet, kw_only=True):
    """A bet recorded elsewhere; it may have a result and a close."""

    result: Result | None = None
    closing_odds: Odds | None = None
    closing_probability: Probability | None = None


class BetImport(Body):
    """Bets to record in one request."""

    bets: Annotated[list[ImportedBet], Meta(min_length=1, max_length=MOST_IMPORTED)]


class Imported(msgspec.Struct):
    """How many bets were recorded, and how many were already present."""

    imported: int
    present: int


class BetSummary(msgspec.Struct):
    """Totals of bets; `staked`, `profit`, `roi_percent` and `expected` are of the settled ones, without void bets."""

    count: int
    settled: int
    open: int
    staked: float
    profit: float
    roi_percent: float | None
    expected: Annotated[float, Meta(description="Profit expected by the fair probabilities when bets were placed.")]
    open_staked: float
    open_expected: float
    avg_clv_percent: Annotated[float | None, Meta(description="Mean, weighted by stake, of the bets with a close.")]
    beat_close: Annotated[float | None, Meta(description="Share of the bets with a close that have a CLV above 0.")]
    with_close: int
    with_fair: Annotated[int, Meta(description="Settled bets with a fair probability: those of `expected`.")]
    profit_with_fair: Annotated[float, Meta(description="What these earned, to compare with `expected`.")]


def bet_of_import(new: ImportedBet, placed_at: datetime) -> Bet:
    """The bet to record; its id is a hash of its fields but `note`, so the same bet is recorded once."""
    fields = msgspec.structs.asdict(new) | {"placed_at": placed_at}
    given = {name: value for name, value in fields.items() if name != "note" and getattr(new, name) is not None}
    encoded = msgspec.json.encode(given, order="sorted")
    by: Any = None if new.result is None else "hand"
    return figures(Bet(**fields | {"id": hashlib.blake2b(encoded, digest_size=8).hexdigest(), "graded_by": by}))


def figures(bet: Bet) -> Bet:
    """A bet with the figures computed from its price, stake, close and result."""
    book = catalog.book(bet.sportsbook)
    net = float(charged(bet.odds_decimal, book.commission, book.contract_fee(live=bet.is_live)))

    def value(p: float | None) -> float | None:
        return None if p is None else exact(100.0 * float(clv(net, p)))

    profit = None
    if bet.result is not None:
        share = SHARES[bet.result]
        profit = money(bet.stake * share * (net - 1.0 if share > 0.0 else 1.0))
    return msgspec.structs.replace(
        bet, ev_percent=value(bet.fair_probability), clv_percent=value(bet.closing_probability), profit=profit
    )


def result_of(bet: NewBet, home: float, away: float) -> Result | None:
    """The result of a bet by the final score; None if the score does not decide it."""
    row = {name: getattr(bet, name) for name in bet.__struct_fields__}
    row.pop("event_start_time")
    start = _start(bet)
    frame = pl.DataFrame({name: [value] for name, value in row.items() if value not in (None, "")}).with_columns(
        event_start_time=pl.lit(start, pl.Datetime("us", "UTC"))
    )
    try:
        share = float(settled(bet_table(frame), np.array([home]), np.array([away]))[0])
    except OddsError:
        return None
    if math.isnan(share):
        return None
    near: list[Result] = [name for name in SHARES if name != "void"]
    return min(near, key=lambda name: abs(SHARES[name] - share))


def _start(bet: NewBet) -> datetime | None:
    """Start of the event in UTC."""
    return bet.event_start_time and in_utc(bet.event_start_time)


def in_utc(time: datetime) -> datetime | None:
    """A time in UTC; one without an offset is taken as UTC. None in the years 1 and 9999."""
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        return None


def placing_time(time: datetime | None) -> datetime:
    """When a bet was placed, in UTC; None is now. Raises `Problem` 400 if that is in the future."""
    now = datetime.now(UTC)
    placed = now if time is None else in_utc(time)
    if placed is None or placed > now + _AHEAD:
        raise invalid(f"placed_at must not be in the future, got {format_time(time)}")
    return placed


def graded(bet: Bet, home: int, away: int) -> Bet:
    result = result_of(bet, home, away)
    by: Any = None if result is None else "score"
    return figures(msgspec.structs.replace(bet, result=result, graded_by=by, home_score=home, away_score=away))


def with_close(bet: Bet, lines: pl.DataFrame) -> Bet:
    """A bet with its book's closing price and the fair probability at the close."""
    own = lines.filter(pl.col("id") == bet.odds_id) if bet.odds_id else lines.clear()
    same = lines.filter(
        *(
            pl.col(name).eq_missing(pl.lit(getattr(bet, name), lines.schema[name]))
            for name in ("market_type", "selection_type", "line", "player_name", "team_side")
        )
    )
    fair = pl.concat([own, same])["fair_probability"].drop_nulls()
    price = own["odds_decimal"] if own.height else same.filter(pl.col("sportsbook") == bet.sportsbook)["odds_decimal"]
    return figures(
        msgspec.structs.replace(
            bet,
            closing_probability=precise(fair[0]) if fair.len() else None,
            closing_odds=precise(price[0]) if price.len() else None,
            no_close=None if fair.len() or price.len() else "no price of it was on the board when the game began",
        )
    )


def summary(bets: Iterable[Bet]) -> BetSummary:
    bets = list(bets)
    done = [bet for bet in bets if bet.result is not None and bet.result != "void"]
    still_open = [bet for bet in bets if bet.result is None]
    closed = [bet for bet in bets if bet.clv_percent is not None]
    fair = [bet for bet in done if bet.ev_percent is not None]
    staked, weight = _staked(done), sum(bet.stake for bet in closed)
    profit = sum(bet.profit or 0.0 for bet in done)
    return BetSummary(
        len(bets),
        len(done),
        len(still_open),
        staked,
        money(profit),
        exact(100.0 * profit / staked) if staked else None,
        _expected(done),
        _staked(still_open),
        _expected(still_open),
        exact(sum(bet.stake * (bet.clv_percent or 0.0) for bet in closed) / weight) if weight else None,
        exact(sum((bet.clv_percent or 0.0) > 0.0 for bet in closed) / len(closed)) if closed else None,
        len(closed),
        len(fair),
        money(sum(bet.profit or 0.0 for bet in fair)),
    )


def _staked(bets: Iterable[Bet]) -> float:
    return money(sum(bet.stake for bet in bets))


def _expected(bets: Iterable[Bet]) -> float:
    return money(sum(bet.stake * (bet.ev_percent or 0.0) / 100.0 for bet in bets))


class _Score(NamedTuple):
    home: int
    away: int


def settle(node: Node, records: Records) -> int:
    """Give open bets their closing lines and, if their games are over, their results. Returns how many changed."""
    scores: Mapping[str, _Score] = {
        event: _Score(game.home_score, game.away_score)
        for event, game in node.games.states().items()
        if not game.is_live and game.home_score is not None and game.away_score is not None
    }
    closes: dict[str, pl.DataFrame | None] = {}  # read once per event

    def close_of(event: str) -> pl.DataFrame | None:
        if event not in closes:
            close = node.past.closings.closing(event) if node.past is not None else None
            closes[event] = None if close is None else close.lines
        return closes[event]

    changed, failure = 0, None
    for owner, bet in records.waiting("bet", Bet):
        try:
            settled_bet = _settled(bet, close_of, scores)
            if settled_bet != bet or _late(bet):
                with records.alone:  # it may have been changed or deleted meanwhile
                    if records.find(owner, "bet", bet.id, Bet) == bet:
                        changed += 1
                        keep(records, owner, settled_bet)
        except Exception as error:  # one bet must not stop the others
            failure = error
    if failure is not None:
        raise failure
    return changed


def _settled(bet: Bet, close_of: Callable[[str], pl.DataFrame | None], scores: Mapping[str, _Score]) -> Bet:
    """A bet with everything that is available now."""
    event = bet.event_id
    if not event:
        return bet
    if bet.closing_odds is None and bet.closing_probability is None and not bet.is_live:
        lines = close_of(event)
        if lines is not None:
            bet = with_close(bet, lines)
    if event in scores and bet.result is None and bet.home_score is None:
        bet = graded(bet, *scores[event])
    return bet


def _late(bet: Bet) -> bool:
    """Whether it is too late for a close and a result: 30 days after the start, which is at most a year away."""
    since = min(max(bet.placed_at, _start(bet) or bet.placed_at), bet.placed_at + timedelta(days=366))
    return (datetime.now(UTC) - since).days >= 30


def keep(records: Records, owner: str, bet: Bet) -> None:
    """Store a bet."""
    records.put(owner, "bet", bet.id, bet, waiting_event(bet))


def waiting_event(bet: Bet) -> str | None:
    """The event whose close or result a bet waits for."""
    closed = bet.is_live or bet.closing_probability is not None
    open_ = bet.result is None and bet.home_score is None
    return bet.event_id if (open_ or not closed) and not _late(bet) else None
