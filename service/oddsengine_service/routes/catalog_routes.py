"""Reference data: sports, leagues, books, market types and teams, with counts of what the caller can see.

Counts are over the caller's own books on the caller's board; only `/sportsbooks` counts every book, so that a caller
sees which books a higher tier would add. They come from the statistics of the board (`stats`), computed once per
update.
"""

from itertools import compress
from typing import Annotated, Any

import numpy as np

from oddsengine import catalog
from oddsengine.columns import NO_TIME
from oddsengine.query import BoardStats, values
from oddsengine.tables.timestamps import micros, timestamp
from oddsengine_service import shared_params
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.errors import unknown
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Param, Query
from oddsengine_service.tiers import TIERS, books_of
from oddsengine_service.wire.catalog_response import League, Market, Places, Sport, Sportsbook, Team
from oddsengine_service.wire.envelopes import Data

_TAG = "Reference Data"
_ORDER = ("", "active", "degraded", "down")
DEGRADED_S = 60.0  # seconds without any news of a book; sources poll more often


def own(context: Context) -> BoardStats:
    return context.node.boards.stats.at(context.board, books_of(context.caller.tier.id))


def unknown_ids(context: Context) -> dict[str, list[str]]:
    return shared_params.unknown_ids(context.query, lambda: context.node.boards.stats.at(context.board, None).ids)


# ---- sports and leagues ----


def _sport(ident: str, at: list[int], stats: BoardStats) -> Sport:
    entry = catalog.sport(ident)
    return Sport(
        id=ident,
        name=entry.name if entry.id in catalog.sports() else _titled(ident),
        event_count=len(at),
        live_count=int(stats.live[at].sum()),
        leagues=sorted({stats.leagues[place] for place in at} - {""}),
        slug=ident,
        active=bool(at),
        numerical_id=catalog.numerical_id("sport", ident),
    )


def _titled(ident: str) -> str:
    return ident.replace("_", " ").title()


def _grouped(keys: list[Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for at, key in enumerate(keys):
        groups.setdefault(key, []).append(at)
    return groups


def sports(context: Context) -> Any:
    stats = own(context)
    groups = _grouped(stats.sports)
    if context.query.include_empty:
        groups = {**{ident: [] for ident in catalog.sports()}, **groups}
    return data(context, [_sport(ident, groups[ident], stats) for ident in sorted(groups)])


def sport(context: Context) -> Any:
    stats = own(context)
    ident = values.sport_id(context.path["sportId"])
    at = _grouped(stats.sports).get(ident, [])
    if not at and ident not in catalog.sports():
        raise unknown("sport", context.path["sportId"])
    return data(context, _sport(ident, at, stats))


def _league(ident: str, within: str, at: list[int], stats: BoardStats) -> League:
    entry = catalog.leagues().get(ident)
    if entry is None or entry.sport != within:
        names = [stats.games[place].league for place in at]
        entry = catalog.League(ident, next((name for name in names if name != ident), _titled(ident)), within)
    return League(
        id=ident,
        name=entry.name,
        sport=within,
        event_count=len(at),
        live_count=int(stats.live[at].sum()),
        slug=ident,
        active=bool(at),
        sport_id=within,
        country=entry.country or None,
        numerical_id=catalog.numerical_id("league", ident),
    )


def _leagues(stats: BoardStats) -> dict[tuple[str, str], list[int]]:
    places = list(zip(stats.sports, stats.leagues, strict=True))
    return {key: at for key, at in _grouped(places).items() if key[1]}


def leagues(context: Context) -> Any:
    stats, strange = own(context), unknown_ids(context)
    groups = _leagues(stats)
    if context.query.include_empty:
        groups = {**{(each.sport, each.id): [] for each in catalog.leagues().values()}, **groups}
    keys = sorted(groups)
    matching = which_match(context.query, [within for within, _ in keys], [ident for _, ident in keys])
    rows = [_league(ident, within, groups[within, ident], stats) for within, ident in compress(keys, matching)]
    return data(context, rows, strange)


def league(context: Context) -> Any:
    """One league; if two sports have a league of that name, the one with more events."""
    stats, word = own(context), context.path["leagueId"]
    here = [(key, at) for key, at in _leagues(stats).items() if values.league_id(word, key[0]) == key[1]]
    if here:
        (within, ident), at = max(here, key=lambda item: len(item[1]))
        return data(context, _league(ident, within, at, stats))
    entry = catalog.league(word)
    if entry.id not in catalog.leagues():
        raise unknown("league", word)
    return data(context, _league(entry.id, entry.sport, [], stats))


# ---- books ----


def _books(stats: BoardStats) -> dict[str, tuple[int, int]]:
    """The events of each book, and when it was last updated, microseconds."""
    counts = zip(stats.present.sum(axis=0).tolist(), stats.seen.tolist(), strict=True)
    return dict(zip(stats.book_names, counts, strict=True))


def _book(ident: str, count: int, seen: int, stats: BoardStats, reported: dict[str, str]) -> Sportsbook:
    entry, where = catalog.book(ident), catalog.places(ident)
    status = max(_status(seen, stats), reported.get(ident, ""), key=_ORDER.index) if count else "inactive"
    return Sportsbook(
        id=ident,
        name=entry.name,
        display_name=entry.display_name,
        is_sharp=entry.sharp,
        has_live_odds=entry.live,
        has_player_props=entry.props,
        regions=list(entry.regions),
        requires_tier=entry.requires_tier,
        status=status,
        event_count=count,
        last_update=None if seen == NO_TIME else timestamp(seen),
        unlisted=ident not in catalog.books(),
        slug=ident,
        active=status != "inactive",
        places=Places(
            open=sorted(where.open),
            closed=sorted(where.closed),
            unknown=sorted(where.unknown),
            source=where.source,
            date=where.dated.isoformat() if where.dated else None,
        ),
        numerical_id=catalog.numerical_id("sportsbook", ident),
    )


def _status(seen: int, stats: BoardStats) -> str:
    if stats.now is None:
        return "active"
    age = (micros(stats.now) - seen) / 1e6
    if age > catalog.thresholds().stale_prematch_s:
        return "down"
    return "degraded" if age > DEGRADED_S else "active"


def _source_statuses(context: Context) -> dict[str, str]:
    """Statuses that the sources report for books that are not ok."""
    hub = context.node.feeds
    return {} if hub is None else {each.book: each.status for each in hub.books() if each.status in _ORDER}


def books(context: Context) -> Any:
    query: SportsbooksQuery = context.query
    stats = context.node.boards.stats.at(context.board, None)
    by_book, reported = _books(stats), _source_statuses(context)
    if query.catalog or query.include_inactive:
        by_book = {**{ident: (0, int(NO_TIME)) for ident in catalog.books()}, **by_book}
    rows = []
    for ident, (count, seen) in by_book.items():
        row = _book(ident, count, seen, stats, reported)
        if row.unlisted and not query.include_unlisted:
            continue
        if row.status == "inactive" and not (query.include_inactive or query.catalog):
            continue
        if query.sharp is not None and row.is_sharp != query.sharp:
            continue
        if query.region is not None and query.region not in row.regions:
            continue
        if query.location is None or catalog.takes_bets(ident, query.location, unknown=query.location_unknown):
            rows.append(row)
    order = {ident: at for at, ident in enumerate(catalog.books())}
    rows.sort(key=lambda row: (order.get(row.id, len(order)), row.id))
    return data(context, rows)


def book(context: Context) -> Any:
    ident = catalog.book(context.path["bookId"]).id
    stats = context.node.boards.stats.at(context.board, None)
    count, seen = _books(stats).get(ident, (0, int(NO_TIME)))
    if not count and ident not in catalog.books():
        raise unknown("sportsbook", context.path["bookId"])
    return data(context, _book(ident, count, seen, stats, _source_statuses(context)))


# ---- market types and teams ----


def markets(context: Context) -> Any:
    stats = own(context)
    counts = stats.markets.sum(axis=0)
    rows = []
    for at in np.flatnonzero(counts).tolist():
        where = sorted({stats.sports[event] for event in np.flatnonzero(stats.markets[:, at]).tolist()})
        text = catalog.listing(stats.market_names[at], where[0] if len(where) == 1 else "")
        rows.append(
            Market(
                id=stats.market_names[at],
                name=text.name,
                description=text.description,
                has_line=text.has_line,
                examples=list(text.examples),
                event_count=int(counts[at]),
                selection_count=int(stats.selections[at]),
                sports=where,
                numerical_id=catalog.numerical_id("market", stats.market_names[at]),
            )
        )
    rows.sort(key=lambda row: (-row.event_count, row.id))
    return data(context, rows)


def teams(context: Context) -> Any:
    query: TeamsQuery = context.query
    stats, strange = own(context), unknown_ids(context)
    entries = {(each.sport, each.id): each for each in catalog.teams()}
    rows = []
    for (within, ident), at in stats.teams.items():
        ids = sorted({stats.leagues[place] for place in at} - {""})
        if not any(which_match(query, [within] * max(len(ids), 1), ids or [""])):
            continue
        entry = entries.get((within, ident))
        name = entry.name if entry is not None else _spelled(stats, ident, at)
        aliases = list(entry.aliases) if entry is not None else []
        if query.q is not None and not any(values.containing(query.q, [name, *aliases])):
            continue
        rows.append(
            Team(
                id=ident, name=name, sport=within, leagues=ids, aliases=aliases, event_count=len(at),
                live_count=int(stats.live[at].sum()), numerical_id=catalog.numerical_id("team", f"{within}/{ident}"),
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (row.sport, row.name, row.id))
    return data(context, rows, strange)


def _spelled(stats: BoardStats, ident: str, at: list[int]) -> str:
    """The name of a team as rows spell it."""
    for place in at:
        game = stats.games[place]
        for name in (game.home, game.away):
            if values.team_id(name, game.sport, game.league) == ident:
                return name
    return ident


# ---- the endpoints ----


class SportsQuery(Query):
    """Parameters of `/sports`."""

    include_empty: Annotated[bool, Param("Include entries without events.")] = False


class LeaguesQuery(SportsQuery):
    """Parameters of `/leagues`."""

    sport: shared_params.Sport = None


class TeamsQuery(shared_params.Places):
    """Parameters of `/teams`."""

    q: shared_params.Search = None


class SportsbooksQuery(Query):
    """Parameters of `/sportsbooks`."""

    region: Annotated[str | None, Param("Region of the sportsbook.", choices=catalog.REGIONS)] = None
    location: shared_params.Location = None
    location_unknown: shared_params.LocationUnknown = False
    sharp: Annotated[bool | None, Param("true: sharp books only; false: other books only.")] = None
    catalog: Annotated[bool, Param("Include every book of the catalog.")] = False
    include_unlisted: Annotated[bool, Param("Include books that are not in the catalog.")] = False
    include_inactive: Annotated[bool, Param("Include books without events.")] = False


endpoints = (
    Endpoint("/sports", sports, "Sports", _TAG, Data[list[Sport]], SportsQuery, key="optional", query_key=True),
    Endpoint("/sports/{sportId}", sport, "One sport", _TAG, Data[Sport], query_key=True),
    Endpoint(
        "/leagues", leagues, "Leagues", _TAG, Data[list[League]], LeaguesQuery, key="optional", query_key=True
    ),
    Endpoint("/leagues/{leagueId}", league, "One league", _TAG, Data[League], query_key=True),
    Endpoint(
        "/sportsbooks", books, "Sportsbooks", _TAG, Data[list[Sportsbook]],
        SportsbooksQuery, query_key=True,
        doc=f"Statuses: active; degraded (no update for {DEGRADED_S:g} s); down (no update for so long that its prices "
        "are rejected as stale); inactive (no events). "
        f"`requires_tier` is the lowest of {', '.join(TIERS)} that may see its prices.",
    ),
    Endpoint("/sportsbooks/{bookId}", book, "One sportsbook", _TAG, Data[Sportsbook], query_key=True),
    Endpoint("/markets", markets, "Market types", _TAG, Data[list[Market]], query_key=True),
    Endpoint(
        "/teams", teams, "Teams with events", _TAG, Data[list[Team]], TeamsQuery,
        query_key=True,
    ),
)  # fmt: skip
