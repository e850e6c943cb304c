"""The game on the board that a bet is about, if it names no event, and why a bet will have no closing line."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from oddsengine.columns import NO_TIME, SECOND
from oddsengine.live.update import hexadecimal
from oddsengine.query import BoardStats, RowFilter, TermTexts, values
from oddsengine.tables.timestamps import micros, timestamps
from oddsengine_service.bettors.bets import Bet
from oddsengine_service.http.endpoints import Context
from oddsengine_service.routes.odds_routes import reading

_WITH_LINE = re.compile(r"(.*?)\s*([+-]?\d+(?:\.\d+)?)")
_SIDES = ("over", "under", "draw", "yes", "no")
_NEAR = 12 * 3600 * SECOND  # between the start that a bet names and that of its game, microseconds
_SURE = timedelta(hours=2)  # a game that began since is still on the board; after it, the next one may be another


def located(context: Context, bets: Sequence[Bet]) -> list[Bet]:
    """The bets with the event, market and outcome of the price that each is about, or with `no_close`."""
    stats = context.node.boards.stats.at(context.board, None)
    return [_located(context, stats, bet) for bet in bets]


def _located(context: Context, stats: BoardStats, bet: Bet) -> Bet:
    def without(why: str) -> Bet:
        return msgspec.structs.replace(bet, no_close=why)

    if bet.closing_odds is not None or bet.closing_probability is not None:
        return bet
    if bet.is_live:
        return without("placed in play")
    if bet.event_id:
        return bet if bet.event_id in stats.place else without(f"event {bet.event_id} is not on the board")
    if bet.result is not None:
        return without("recorded with its result")
    if bet.player_name or bet.team_side or bet.stat_category or bet.market_segment not in (None, "", "full_game"):
        return without("a bet on a prop or a period needs an event_id")
    if bet.event_start_time is None and datetime.now(UTC) - bet.placed_at > _SURE:
        return without("it was placed hours ago, and needs an event_start_time")
    names = [name for name in (bet.home_team, bet.away_team) if name]
    readings = [who for who, _ in _readings(bet)]
    named = names or ([] if values.folded(readings[0]) in _SIDES else readings)
    if not named:
        return without("it names no team")
    places = _games(stats, names) if names else {at for name in named for at in _games(stats, [name])}
    placed = micros(bet.placed_at if stats.now is None else min(bet.placed_at, stats.now))
    games = [at for at in places if _may_be(stats, at, bet, placed)]
    if not games:
        return without(f"no game of {' and '.join(names or named[:1])} to come is on the board")
    begins = [int(stats.begins[at]) for at in games]
    at = games[int(np.argmin([np.iinfo(np.int64).max if begin == NO_TIME else begin for begin in begins]))]
    return _priced(context, stats, at, bet) or without(
        f"no price of it in {stats.games[at].away} @ {stats.games[at].home} is on the board"
    )


def _may_be(stats: BoardStats, at: int, bet: Bet, placed: int) -> bool:
    """Whether a bet, by what it says of its game besides teams, may be on one of the board."""
    sport, league = stats.sports[at], stats.leagues[at]
    if bet.sport and not values.in_sports((bet.sport,), (sport,))[0]:
        return False
    if bet.league and not values.in_league((bet.league,), sport, league):
        return False
    begins = int(stats.begins[at])
    if begins == NO_TIME:
        return True
    near = bet.event_start_time is None or abs(begins - micros(bet.event_start_time)) <= _NEAR
    return begins > placed and near


def _games(stats: BoardStats, names: Sequence[str]) -> set[int]:
    """Positions of the games of all of these teams, by any of their names."""
    places = set(zip(stats.sports, stats.leagues, strict=True))
    found = [
        {
            at
            for sport, league in places
            for at in stats.teams.get((sport, values.team_id(name, sport, league)), ())
            if stats.leagues[at] == league
        }
        for name in names
    ]
    return set.intersection(*found)


def _readings(bet: Bet) -> Iterator[tuple[str, float | None]]:
    """What a selection may say: a side and its line."""
    text = bet.selection.replace("−", "-").strip()
    with_line = _WITH_LINE.fullmatch(text)
    if with_line and with_line[1]:
        yield with_line[1], float(with_line[2])
    yield text, bet.line


def _priced(context: Context, stats: BoardStats, at: int, bet: Bet) -> Bet | None:
    """A bet with what identifies its price among those of a game; None if there is none."""
    game, sport, league = stats.games[at], stats.sports[at], stats.leagues[at]
    home, away = (values.team_id(name, sport, league) for name in (game.home, game.away))
    with reading(context) as reader:
        rows = reader.take(reader.matching_rows(RowFilter(event=(game.id,)), {}))
    terms = list(dict.fromkeys(rows.term))
    markets = [(sport, rows.texts[term].market_type) for term in terms]
    wanted = values.in_markets((bet.market_type,) if bet.market_type else ("main",), markets)
    for who, line in _readings(bet):
        ident = values.team_id(who, sport, league)
        side = {home: "home", away: "away"}.get(ident, values.folded(who))

        def fits(text: TermTexts, side: str = side, line: float | None = line) -> bool:
            plain = text.player_name is None and text.market_segment == "full_game" and text.team_side is None
            return plain and text.selection_type == side and text.line == line

        found = [term for term, is_wanted in zip(terms, wanted, strict=True) if is_wanted and fits(rows.texts[term])]
        offers = [row for row, term in enumerate(rows.term) if term in found]
        own = [row for row in offers if rows.books[rows.book[row]] == bet.sportsbook]
        if offers:
            text, start = rows.texts[rows.term[(own or offers)[0]]], rows.start[offers[0]]
            begins = timestamps(np.array([start]))[0] if start != NO_TIME else None
            copied = {name: getattr(text, name) for name in _COPIED}
            found_bet = {**msgspec.to_builtins(bet), **copied, "event_start_time": begins}
            if own:
                found_bet["odds_id"] = hexadecimal(rows.id[own[:1]])[0]
            return msgspec.convert(found_bet, Bet)
    return None


_COPIED = (
    "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "selection_type", "line",
)  # fmt: skip
