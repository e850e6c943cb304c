"""The board in the format of The Odds API, version 4, for clients written for it.

The caller's tier sets books and delay, as in the rest of the API. A request costs one credit.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET

from oddsengine import catalog
from oddsengine.columns import NO_TIME
from oddsengine.feeds.the_odds_api_names import market_key
from oddsengine.query import values
from oddsengine.tables.timestamps import micros
from oddsengine_service.board.game_store import Rows
from oddsengine_service.http.endpoints import Context, Endpoint
from oddsengine_service.http.params import Query
from oddsengine_service.routes.catalog_routes import own
from oddsengine_service.routes.odds_routes import index_of
from oddsengine_service.v4 import historical, outrights
from oddsengine_service.v4.bookmakers import markets, with_prices
from oddsengine_service.v4.sports_and_events import (
    NEXT,
    UPCOMING,
    Game,
    event,
    facts,
    games,
    one,
    places,
    places_of,
    selected,
    sport_of,
    written,
)
from oddsengine_service.v4.v4_params import (
    BooksQuery,
    EventOddsQuery,
    EventsQuery,
    OddsQuery,
    PastEventOddsQuery,
    PastEventsQuery,
    PastOddsQuery,
    ScoresQuery,
    SportsQuery,
)
from oddsengine_service.v4.v4_response import (
    V4Event,
    V4EventOdds,
    V4EventScore,
    V4Participant,
    V4PastEventOdds,
    V4PastEvents,
    V4PastOdds,
    V4Sport,
    V4TeamScore,
)

_TAG = "The Odds API"


# ---- sports and events ----


def sports(context: Context) -> Any:
    active = places(own(context))
    every = dict.fromkeys(active, True)
    if context.query.every:
        every = {**{(each.sport, each.id): False for each in catalog.leagues().values()}, **every}
    found = [sport_of(place, active=is_active) for place, is_active in every.items()]
    return sorted([*found, *outrights.listed(context)], key=lambda sport: sport.key)


def events(context: Context) -> Any:
    key = context.path["sportKey"]
    if (outright := outrights.outright_of(context, key)) is not None:
        ids = context.query.event_ids
        return [each for each in outrights.events(context, outright) if not ids or each.id in ids]
    return [event(game, context.query.date_format) for game in selected(games(context, key), key, context.query)]


def participants(context: Context) -> Any:
    key, stats = context.path["sportKey"], own(context)
    wanted = places_of(key, places(stats))
    names = {
        (team.id, team.name): team.name for team in catalog.teams()
        if wanted is not None and (team.sport, team.league) in wanted
    }  # fmt: skip
    for at, place in enumerate(zip(stats.sports, stats.leagues, strict=True)):
        if wanted is None or place in wanted:
            for name in {stats.games[at].home, stats.games[at].away} - {""}:
                names.setdefault((values.team_id(name, *place), name), name)
    return sorted((V4Participant(ident, name) for ident, name in names), key=lambda each: (each.full_name, each.id))


# ---- prices ----


def odds(context: Context) -> Any:
    key, query = context.path["sportKey"], context.query
    if (outright := outrights.outright_of(context, key)) is not None:
        return outrights.with_prices(context, outright)
    found = games(context, key)
    words = markets(query.markets, found[0].sport if found else "", whole=True)
    return with_prices(context, selected(found, key, query), words)


def event_odds(context: Context) -> Any:
    key, ident = context.path["sportKey"], context.path["eventId"]
    if (outright := outrights.outright_of(context, key)) is not None:
        return one(outrights.with_prices(context, outright), ident)
    game = one(games(context, key), ident)
    words = markets(context.query.markets, game.sport, whole=False, others=own(context).market_names)
    return with_prices(context, [game], words)[0]


def event_markets(context: Context) -> Any:
    game = one(games(context, context.path["sportKey"]), context.path["eventId"])
    stats = own(context)
    at = stats.place.get(game.event)
    names = [] if at is None else stats.markets_of(at)
    words = [market_key(name, game.sport, alternate=other) for name in names for other in (False, True)]
    context = context._replace(query=_without_prices(context.query))
    (found,) = with_prices(context, [game], tuple(dict.fromkeys(words)))
    for maker in found.bookmakers:
        for market in maker.markets:
            market.outcomes = UNSET
    return found


def _without_prices(query: BooksQuery) -> EventOddsQuery:
    full = EventOddsQuery()
    vars(full).update(vars(query))
    return full


# ---- scores ----


def scores(context: Context) -> Any:
    key, query = context.path["sportKey"], context.query
    states = context.node.games.states(context.caller.tier.delay)
    found = games(context, key)
    on = {game.event for game in found}
    found += _ended(context, key, {event: row for event, row in states.items() if event not in on})
    out = []
    for game in selected(sorted(found, key=lambda each: (each.start, each.event)), key, query):
        row = states.get(game.event)
        if row is None or row.is_live or query.days is not None:
            out.append(_score(game, row, query.date_format))
    return out


def _ended(context: Context, key: str, rows: Rows) -> list[Game]:
    """Games with a score that no longer have prices on the board."""
    wanted = places_of(key, places(own(context)))
    out = []
    with index_of(context).reader() as reader:
        for ident, row in rows.items():
            place = values.sport_id(row.sport), values.league_id(row.league, row.sport)
            about = reader.event(ident)
            if about is None or about.start == NO_TIME or (wanted is not None and place not in wanted):
                continue
            out.append(Game(ident, *place, about.home_team, about.away_team, about.start, live=row.is_live))
    return out


def _score(game: Game, row: Any, dates: str) -> V4EventScore:
    listed = updated = None
    if row is not None:
        pairs = ((game.home, row.home_score), (game.away, row.away_score))
        listed = [V4TeamScore(name, str(score)) for name, score in pairs if score is not None] or None
        updated = written(micros(datetime.fromisoformat(row.updated_at)), dates)
    ident, sport, title, start, home, away = facts(game, dates)
    return V4EventScore(
        ident, sport, title, start, row is not None and not row.is_live, home, away, listed, updated,
    )  # fmt: skip


# ---- declarations ----

_DOC = "The path is not below the base path. The key may be sent as `apiKey` in the query. "
_AT = "The state at `date`, from the price history."


def _endpoint(
    path: str, answer: Any, summary: str, returns: Any, query: type[Query], doc: str = "", **more: Any
) -> Endpoint:  # fmt: skip
    doc = f"{_DOC}{doc}".rstrip()
    return Endpoint(f"/v4{path}", answer, summary, _TAG, returns, query, query_key=True, errors=(422,), doc=doc, **more)


_SPORT, _EVENT = "/sports/{sportKey}", "/sports/{sportKey}/events/{eventId}"
endpoints: Sequence[Endpoint] = (
    _endpoint("/sports", sports, "Sports", list[V4Sport], SportsQuery, "Leagues, and the kinds of their futures."),
    _endpoint(
        f"{_SPORT}/odds", odds, "Prices of a sport", list[V4EventOdds], OddsQuery,
        f"Markets h2h, spreads and totals. `{UPCOMING}` as the sport: games in play and the next {NEXT} of all sports.",
    ),
    _endpoint(f"{_SPORT}/events", events, "Events of a sport", list[V4Event], EventsQuery),
    _endpoint(f"{_EVENT}/odds", event_odds, "Prices of an event", V4EventOdds, EventOddsQuery, "In any market."),
    _endpoint(f"{_EVENT}/markets", event_markets, "Markets of an event", V4EventOdds, BooksQuery),
    _endpoint(f"{_SPORT}/participants", participants, "Teams of a sport", list[V4Participant], Query),
    _endpoint(
        f"{_SPORT}/scores", scores, "Scores of a sport", list[V4EventScore], ScoresQuery,
        "Live and upcoming games; with `daysFrom` also those that have ended.", feature="gamestate", cache="never",
    ),
    _endpoint(
        f"/historical{_SPORT}/odds", historical.odds, "Past prices of a sport", V4PastOdds, PastOddsQuery, _AT,
        cache="never"
    ),
    _endpoint(
        f"{_SPORT}/odds-history", historical.odds, "Past prices of a sport, at an older path", V4PastOdds,
        PastOddsQuery, _AT,
        cache="never",
    ),
    _endpoint(
        f"/historical{_SPORT}/events", historical.events, "Past events of a sport", V4PastEvents, PastEventsQuery, _AT,
        cache="never",
    ),
    _endpoint(
        f"/historical{_EVENT}/odds", historical.event_odds, "Past prices of an event", V4PastEventOdds,
        PastEventOddsQuery,
        _AT, cache="never",
    ),
)  # fmt: skip
