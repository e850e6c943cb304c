"""Historical prices, from the recorded price movements.

A price holds until its next movement, or until its game counts as over: some hours after the start. The caller sees
the books of its tier, and nothing newer than its delay, as in the present.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oddsengine.columns import NO_TIME, SECOND
from oddsengine.history.movements import EventMoves, described
from oddsengine.query import OddsRows, book_ids, values
from oddsengine.tables.timestamps import micros
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.v4_errors import refused
from oddsengine_service.routes.history_routes import caller_now, past_of
from oddsengine_service.routes.odds_routes import books_for, index_of
from oddsengine_service.v4.bookmakers import Offers, bodies, books, markets
from oddsengine_service.v4.sports_and_events import Game, event, one, places_of, selected, written
from oddsengine_service.v4.v4_response import V4EventOdds, V4PastEventOdds, V4PastEvents, V4PastOdds

STEP = 300 * SECOND  # to the previous and next timestamp
_LASTS = 6 * 3600 * SECOND  # a game takes at most
_QUIET = 900 * SECOND  # a game in play without a movement for this long is over


class _Moment:
    """A time of the past: the requested one, or the latest that the caller may see."""

    def __init__(self, context: Context) -> None:
        now = caller_now(context)
        if now is None:
            raise Problem(503, "not_ready", "this node has no history yet; retry in a few seconds", retry_after=5)
        at = min(micros(context.query.date), now)
        if at < 0:
            raise refused("INVALID_HISTORICAL_TIMESTAMP", "date must not be before 1970")
        self.at = at // SECOND * SECOND
        before, after = max(self.at - STEP, 0), self.at + STEP
        self.times = str(written(self.at)), str(written(before)), str(written(after)) if after <= now else None


def _games(context: Context, moment: _Moment, key: str) -> list[Game]:
    """The events of a sport that had prices then and were not over, by start; one without a start is not listed."""
    past = past_of(context)
    found = past.history.events(moment.at)
    priced = [(each, (values.sport_id(each.sport), values.league_id(each.league, each.sport))) for each in found]
    wanted = places_of(key, {place for _, place in priced})
    out = []
    with index_of(context).reader() as reader:
        for each, place in priced:
            if wanted is not None and place not in wanted:
                continue
            about, start = reader.event(each.id), each.start
            home = away = ""
            if about is not None:
                home, away = about.home_team, about.away_team
                start = about.start if start == NO_TIME else start
            if start == NO_TIME or not about:
                close = past.closings.closing(each.id)
                if close is not None:
                    home, away = home or close.home_team, away or close.away_team
                    start = close.start if start == NO_TIME else start
            if start != NO_TIME and moment.at < start + _LASTS:
                out.append(Game(each.id, *place, home, away, start, live=start <= moment.at))
    return sorted(out, key=lambda game: (game.start, game.event))


def _priced(context: Context, moment: _Moment, games: Sequence[Game]) -> tuple[list[Game], EventMoves]:
    """The games that were not over, with teams, and their movements until then."""
    moves = past_of(context).history.changes_of_events([game.event for game in games], moment.at)
    own = books_for(context, None)
    visible = [own is None or book in own for book in book_ids(moves.books)]
    last = np.zeros(len(moves.raw_labels), np.int64)
    np.maximum.at(last, moves.row, moves.at)
    rows, first = np.unique(moves.row, return_index=True)
    newest: dict[str, int] = {}
    teams: dict[str, tuple[str, str]] = {}
    for row in rows[np.argsort(first)].tolist():
        if not visible[row]:
            continue
        ident, sport, league, home, away, *_ = moves.raw_labels[row]
        newest[ident] = max(int(last[row]), newest.get(ident, 0))
        if ident not in teams and home and away:
            teams[ident] = values.team_names(home, away, sport, league)
    out = []
    for game in games:
        if game.event not in newest or (game.live and newest[game.event] < moment.at - _QUIET):
            continue
        home, away = teams.get(game.event, ("", ""))
        out.append(game._replace(home=game.home or home, away=game.away or away))
    return out, moves


def _offers(moves: EventMoves, words: Sequence[str], chosen: frozenset[str] | None) -> list[Offers]:
    """The prices that held at the end of some movements."""
    terms, term, book, ids = described(moves)
    last = np.full(term.size, -1, np.int64)
    last[moves.row] = np.arange(moves.row.size)  # movements are in order of time
    names = book_ids(terms.names.books.values)
    allowed = np.array([chosen is None or name in chosen for name in names], bool)
    held = np.flatnonzero(last >= 0)
    held = held[moves.active[last[held]] & allowed[book[held]]]
    out = []
    for word in words:
        mask, _ = terms.by_market((word,))
        rows = held[mask[term[held]]]
        at = last[rows]
        none = np.zeros(rows.size, np.int64)
        out.append(
            Offers(
                word,
                OddsRows(
                    term[rows].tolist(), book[rows].tolist(), ids[rows], moves.odds[at], moves.american[at],
                    moves.at[at], moves.at[at], none, moves.at[at], moves.flags[at], none.astype(np.uint8),
                    [-1] * rows.size, None, terms.texts, names,
                ),
                terms.swapped,
            )
        )  # fmt: skip
    return out


def _with_prices(context: Context, moment: _Moment, games: Sequence[Game], words: Sequence[str]) -> list[V4EventOdds]:
    chosen, regions = books(context)
    found, moves = _priced(context, moment, games)
    offered = _offers(moves, words, chosen) if moves.row.size else []
    return bodies(context.query, found, offered, regions, latest=True)


def odds(context: Context) -> Any:
    moment, key = _Moment(context), context.path["sportKey"]
    games = _games(context, moment, key)
    words = markets(context.query.markets, games[0].sport if games else "", whole=True)
    found = selected(games, key, context.query)
    return V4PastOdds(*moment.times, _with_prices(context, moment, found, words))


def events(context: Context) -> Any:
    moment, key = _Moment(context), context.path["sportKey"]
    found, _ = _priced(context, moment, selected(_games(context, moment, key), key, context.query))
    return V4PastEvents(*moment.times, [event(game, context.query.date_format) for game in found])


def event_odds(context: Context) -> Any:
    moment = _Moment(context)
    game = one(_games(context, moment, context.path["sportKey"]), context.path["eventId"])
    words = markets(context.query.markets, game.sport, whole=False)
    found = _with_prices(context, moment, [game], words)
    if not found:
        raise refused("EVENT_NOT_FOUND", "this event had no prices at that time", 404)
    return V4PastEventOdds(*moment.times, found[0])
