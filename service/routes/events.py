"""Events: what is played, when, and which of the caller's books have prices of it.

An event is here as long as a price of it is on the caller's board, by one of the caller's books.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oddsengine.query import Census, values
from oddsengine.update import iso
from oddsengine_service import filters
from oddsengine_service.endpoints import Context, Endpoint, answer_meta, data, page
from oddsengine_service.params import flag
from oddsengine_service.problems import unknown
from oddsengine_service.routes.odds import ADD_SPORTSBOOK, LEAGUE, LIMIT, LIVE, OFFSET, SPORT, SPORTSBOOK, TEAM, Q
from oddsengine_service.routes.opportunities.games import states
from oddsengine_service.routes.opportunities.lists import asked
from oddsengine_service.routes.reference import own
from oddsengine_service.views import Bools
from oddsengine_service.wire.envelopes import Data, Page
from oddsengine_service.wire.games import Standing, state_of
from oddsengine_service.wire.reference import Event

_TAG = "Events"


def _event(census: Census, at: int, games: Mapping[str, Standing]) -> Event:
    game = census.games[at]
    books = census.books_of(at)
    return Event(
        id=game.id,
        external_ids=census.external_ids(at),
        sport=census.sports[at],
        league=census.leagues[at],
        home_team=game.home,
        away_team=game.away,
        start_time=iso(int(census.begins[at])),
        status=census.status_of(at),
        is_live=bool(census.live[at]),
        book_count=len(books),
        markets=census.markets_of(at),
        books=books,
        game_state=state_of(games.get(game.id)),
    )


def _kept(context: Context, census: Census) -> Bools:
    """The events that a request's filters let through."""
    query = context.query
    out = np.ones(len(census.games), bool)
    if query["sport"] is not None:
        out &= np.array(values.in_sports(query["sport"], census.sports), bool)
    if query["league"] is not None:
        places = zip(census.sports, census.leagues, strict=True)
        out &= np.array(values.in_leagues(query["league"], places), bool)
    if query["live"] is not None:
        out &= census.live == query["live"]
    if query["has_score"] is not None:
        scored = context.node.games.rows(context.caller.tier.delay)
        out &= np.array([(game.id in scored) == query["has_score"] for game in census.games], bool)
    if query["team"] is not None:
        games = ((game.sport, game.league, game.home, game.away) for game in census.games)
        out &= np.array(values.with_teams(query["team"], games), bool)
    if query["q"] is not None:
        names = (f"{game.away} @ {game.home}" for game in census.games)
        out &= np.array(values.containing(query["q"], names), bool)
    if query["date"] is not None and census.now is not None:
        begin, end = filters.span(query["date"], census.now)
        out &= (census.begins >= begin) & (census.begins < end)
    return out


def events(context: Context) -> Any:
    """The list of events, by start."""
    books, strange = asked(context)
    census = context.node.stats.at(context.board, books)
    order = census.order
    places = order[_kept(context, census)[order]] if order.size else order
    offset = context.query["offset"]
    games = states(context)
    rows = [_event(census, at, games) for at in places[offset : offset + context.query["limit"]].tolist()]
    return page(context, rows, len(rows), int(places.size), answer_meta(context, strange))


def _found(context: Context) -> tuple[Census, int]:
    census = own(context)
    at = census.place.get(context.path["eventId"])
    if at is None:
        raise unknown("event", context.path["eventId"])
    return census, at


def event(context: Context) -> Any:
    """One event."""
    return data(context, _event(*_found(context), states(context)))


def markets(context: Context) -> Any:
    """Market types of one event."""
    census, at = _found(context)
    return data(context, census.markets_of(at))


endpoints = (
    Endpoint(
        "/events", events, "Events", _TAG, Page[Event],
        (
            SPORT, LEAGUE, SPORTSBOOK, ADD_SPORTSBOOK, LIVE,
            flag("has_score", "true: only events with a game state; false: only events without."),
            TEAM, filters.DATE, Q, LIMIT, OFFSET,
        ),
        doc="By start. An event is listed while a book that the caller may see has prices of it.",
    ),
    Endpoint("/events/{eventId}", event, "One event", _TAG, Data[Event]),
    Endpoint("/events/{eventId}/markets", markets, "Market types of one event", _TAG, Data[list[str]]),
)  # fmt: skip
