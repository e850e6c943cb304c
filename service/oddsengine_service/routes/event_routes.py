"""Events: teams, start, and which of the caller's books have prices.

An event is listed as long as one of the caller's books has a price for it on the caller's board.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oddsengine.columns import Bools
from oddsengine.query import BoardStats, values
from oddsengine.tables.timestamps import timestamp
from oddsengine_service import shared_params
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.errors import unknown
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, data, page
from oddsengine_service.http.params import Param
from oddsengine_service.routes.catalog_routes import own
from oddsengine_service.routes.opportunities.lists import selected, states
from oddsengine_service.shared_params import Pages, Places
from oddsengine_service.wire.catalog_response import Event
from oddsengine_service.wire.envelopes import Data, Page
from oddsengine_service.wire.games_response import Standing, state_of

_TAG = "Events"


def _event(stats: BoardStats, at: int, games: Mapping[str, Standing]) -> Event:
    game = stats.games[at]
    books = stats.books_of(at)
    return Event(
        id=game.id,
        external_ids=stats.external_ids(at),
        sport=stats.sports[at],
        league=stats.leagues[at],
        home_team=game.home,
        away_team=game.away,
        start_time=timestamp(int(stats.begins[at])),
        status=stats.status_of(at),
        is_live=bool(stats.live[at]),
        book_count=len(books),
        markets=stats.markets_of(at),
        books=books,
        game_state=state_of(games.get(game.id)),
    )


def _which_match(context: Context, stats: BoardStats) -> Bools:
    query: EventsQuery = context.query
    out = np.array(which_match(query, stats.sports, stats.leagues, live=stats.live.tolist()), bool)
    if query.has_score is not None:
        scored = context.node.games.states(context.caller.tier.delay)
        out &= np.array([(game.id in scored) == query.has_score for game in stats.games], bool)
    if query.team is not None:
        games = ((game.sport, game.league, game.home, game.away) for game in stats.games)
        out &= np.array(values.with_teams(query.team, games), bool)
    if query.q is not None:
        names = (f"{game.away} @ {game.home}" for game in stats.games)
        out &= np.array(values.containing(query.q, names), bool)
    if query.date is not None and stats.now is not None:
        begin, end = shared_params.span(query.date, stats.now)
        out &= (stats.begins >= begin) & (stats.begins < end)
    return out


def events(context: Context) -> Any:
    books, strange = selected(context)
    stats = context.node.boards.stats.at(context.board, books)
    order = stats.order
    places = order[_which_match(context, stats)[order]] if order.size else order
    offset = context.query.offset
    games = states(context)
    rows = [_event(stats, at, games) for at in places[offset : offset + context.query.limit].tolist()]
    return page(context, rows, len(rows), int(places.size), answer_meta(context, strange))


def _own_event(context: Context) -> tuple[BoardStats, int]:
    stats = own(context)
    at = stats.place.get(context.path["eventId"])
    if at is None:
        raise unknown("event", context.path["eventId"])
    return stats, at


def event(context: Context) -> Any:
    return data(context, _event(*_own_event(context), states(context)))


def markets(context: Context) -> Any:
    stats, at = _own_event(context)
    return data(context, stats.markets_of(at))


class EventsQuery(Pages, Places):
    """Parameters of `/events`."""

    sportsbook: shared_params.Sportsbook = None
    add_sportsbook: shared_params.AddSportsbook = None
    live: shared_params.Live = None
    has_score: Annotated[bool | None, Param("true: only events with a game state; false: only events without.")] = None
    team: shared_params.Team = None
    date: shared_params.Date = None
    q: shared_params.Search = None


endpoints = (
    Endpoint(
        "/events", events, "Events", _TAG, Page[Event],
        EventsQuery,
        doc="Sorted by start. An event is listed while a book that the caller may see has prices for it.",
    ),
    Endpoint("/events/{eventId}", event, "One event", _TAG, Data[Event]),
    Endpoint("/events/{eventId}/markets", markets, "Market types of one event", _TAG, Data[list[str]]),
)  # fmt: skip
