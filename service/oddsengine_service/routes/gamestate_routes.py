"""Game states: scores, periods and clocks of games in progress or just finished, by sport and event."""

from itertools import compress
from typing import Any

from oddsengine import catalog
from oddsengine.query import BoardIds, values
from oddsengine_service import shared_params
from oddsengine_service.board.game_store import Rows
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.errors import unknown
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Query
from oddsengine_service.routes.odds_routes import index_of
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.games_response import Standing

_TAG = "Game State"
_FEATURE = "gamestate"
_DOC = (
    "Merged over all sources of a game: the score that most of them report, newer reports counting more; the most "
    "advanced clock. `stale`: no source has reported for a minute. A game is listed from its first score until ten "
    "minutes after its end."
)
Games = dict[str, dict[str, Standing]]


def _which_match(context: Context, rows: Rows) -> tuple[Games, dict[str, list[str]]]:
    """Games that match a request, by sport; and the unknown ids."""
    query: SportGamesQuery = context.query
    seen = BoardIds({row.sport for row in rows.values()}, {row.league for row in rows.values()}, (), ())
    unknown = shared_params.unknown_ids(query, lambda: seen)
    if query.event is not None:
        with index_of(context).reader() as reader:
            missing = [event for event in query.event if event not in rows and not reader.has_event(event)]
        if missing:
            unknown["event"] = missing
    games: Games = {}
    columns = ([row.sport for row in rows.values()], [row.league for row in rows.values()], list(rows))
    matching = which_match(query, *columns, [row.is_live for row in rows.values()])
    for event, row in sorted(compress(rows.items(), matching)):
        games.setdefault(row.sport, {})[event] = row
    return dict(sorted(games.items())), unknown


def _rows(context: Context) -> Rows:
    return context.node.games.states(context.caller.tier.delay)


def states(context: Context) -> Any:
    return data(context, *_which_match(context, _rows(context)))


def states_of_sport(context: Context) -> Any:
    rows, sport = _rows(context), values.sport_id(context.path["sport"])
    own = {event: row for event, row in rows.items() if row.sport == sport}
    if not own and sport not in catalog.sports():
        raise unknown("sport", context.path["sport"])
    games, unknown_ids = _which_match(context, own)
    return data(context, {sport: games.get(sport, {})}, unknown_ids)


class SportGamesQuery(Query):
    """Parameters of game states of one sport."""

    league: shared_params.League = None
    event: shared_params.Event = None
    live: shared_params.Live = None


class GamesQuery(SportGamesQuery):
    """Parameters of game states."""

    sport: shared_params.Sport = None


endpoints = (
    Endpoint(
        "/gamestate", states, "Game states", _TAG, Data[Games], GamesQuery,
        feature=_FEATURE, cache="never", doc=_DOC,
    ),
    Endpoint(
        "/gamestate/{sport}", states_of_sport, "Game states of one sport", _TAG, Data[Games],
        SportGamesQuery, feature=_FEATURE, cache="never", doc=_DOC,
    ),
)  # fmt: skip
