"""Odds: lists of prices, best prices, one event's prices side by side, several events at once, and changes.

A list is in the order of the board (start, event, market, line, side, book) unless `sort` is given; `cursor` pages
through it without gaps while prices move. If a list is sorted by a value that changes, a row that changes meanwhile may
be returned twice or not at all; all other rows are returned once.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.columns import NO_TIME, SECOND, Ints
from oddsengine.live.engine import REMEMBERED_S
from oddsengine.query import SORTS, BoardReader, Cursor, Index, OddsRows, RowFilter
from oddsengine.tables.timestamps import micros, timestamps
from oddsengine_service import shared_params
from oddsengine_service.errors import invalid, unknown
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, data, page
from oddsengine_service.http.params import Param, Query, Words
from oddsengine_service.http.tables import Table, with_tables
from oddsengine_service.shared_params import Pages, Prices
from oddsengine_service.tiers import book_above, books_of
from oddsengine_service.wire.envelopes import Page
from oddsengine_service.wire.odds_response import (
    BEST,
    ODDS,
    Batch,
    BestOdds,
    BestPage,
    Delta,
    EventOdds,
    Odds,
    OddsByEvent,
    OddsLists,
    OddsPage,
    RowEncoder,
    fields_of,
    odds,
    removed,
)
from oddsengine_service.wire.reference_objects import with_references
from oddsengine_service.wire.texts import MOST_TEXT

_EVENT = ("event_id", "event_name", "sport", "league", "start_time")


# ---- filters ----


def index_of(context: Context) -> Index:
    return context.node.boards.index(context.board)


def reading(context: Context) -> AbstractContextManager[BoardReader]:
    """A reader of the board of the caller's tier; main lines are those of the tier's books."""
    return index_of(context).reader(judged=True, lines=books_of(context.caller.tier.id))


def books_for(
    context: Context, requested: Sequence[str] | None, added: Sequence[str] | None = None
) -> frozenset[str] | None:
    """Ids of the books of a response: the requested ones, else those of the tier, plus those added; None for all.

    With a `location`, those of them that take bets there. A book outside the catalog requires a tier that may see all.
    Raises `Problem` 403 `tier_restricted` if the tier does not include one of the books.
    """
    tier = context.caller.tier
    own, books = books_of(tier.id), [catalog.book(name).id for name in (*(requested or ()), *(added or ()))]
    if own is not None:
        for book in books:
            if book not in own and (book in catalog.books() or book in index_of(context).books):
                raise book_above(book, tier)
    if requested is not None:
        own = frozenset(books) if own is None else own.intersection(books)
    place = context.query.get("location")
    if place is None:
        return own
    unknown = context.query.get("location_unknown")
    everywhere = {*catalog.books(), *(index_of(context).books if unknown else ())} if own is None else own
    return frozenset(book for book in everywhere if catalog.takes_bets(book, place, unknown=unknown))


def filter_of(context: Context, now: int, **more: Any) -> RowFilter:
    q = vars(context.query)  # what was given; the defaults of filters are None
    part = q.get("q")
    player = q.get("player_name")
    fields: dict[str, Any] = {
        "books": books_for(context, q.get("sportsbook") or None, q.get("add_sportsbook")),
        **{name: q.get(name) or None for name in ("sport", "league", "market", "event", "team", "selection")},
        "live": q.get("live"), "low": q.get("min_odds"), "high": q.get("max_odds"),
        "q": None if part is None else catalog.normalise(part) or "\x00",  # a text without letters matches no name
        "player": None if player is None else catalog.normalise(player) or "\x00",
        "stat": q.get("stat_category") or None, "prop": q.get("is_player_prop"),
        "main": q.get("is_main_line"), "day": None if q.get("date") is None else shared_params.span(q["date"],
        _moment(now)),
    }  # fmt: skip
    return RowFilter(**fields | more)


def _moment(now: int) -> datetime:
    """The board's time; the clock's if it has none yet."""
    return datetime.now(UTC) if now == NO_TIME else datetime.fromtimestamp(now / SECOND, UTC)


def _add_books(
    context: Context, reader: BoardReader, strange: dict[str, list[str]], more_books: Iterable[str] = ()
) -> None:
    """Add the unknown books of a request to its unknown ids."""
    q = vars(context.query)
    if books := reader.missing_books([*(q.get("sportsbook") or ()), *(q.get("add_sportsbook") or ()), *more_books]):
        strange["sportsbook"] = books


def _meta(context: Context, reader: BoardReader, strange: dict[str, list[str]], **more: Any) -> dict[str, Any]:
    """The `meta` of a response, with its unknown books."""
    _add_books(context, reader, strange)
    return answer_meta(context, strange, **more)


class _PageRequest(NamedTuple):
    """Sort order and page of a list."""

    sort: str
    limit: int
    offset: int
    cursor: Cursor | None

    @classmethod
    def parse(cls, context: Context, sort: str = "") -> "_PageRequest":
        q = context.query
        cursor: Cursor | None = q.get("cursor")
        return cls(sort if cursor is None else cursor.sort, q.limit, q.offset, cursor)


# ---- responses ----


def listing(context: Context) -> dict[str, Any]:
    q: OddsQuery = context.query
    grouped = q.group_by is not None
    if grouped and q.format != "json":
        raise invalid(f"format must be json with group_by, got {q.format!r}")
    names, cut = q.fields or None, _PageRequest.parse(context, q.sort or "")
    if grouped:
        return _grouped(context, cut, names)
    return _listed(context, cut, [name for name in names or () if name in ODDS] or None)


def _rows(
    reader: BoardReader, slots: Ints, names: Sequence[str] | None, query: Query, *, best: bool = False
) -> Callable[[], Sequence[Any]]:
    """A function that encodes the rows of a response, to be called after the lock of the board is released."""
    state, refs = query.get("state"), bool(query.get("include"))
    if names is None and not state and not refs:
        return RowEncoder(reader, slots, best=best).encode
    prices, net, every = reader.take(slots), reader.net(slots) if best else None, BEST if best else ODDS
    if refs:
        return lambda: with_references(fields_of(every, state or "")(prices, net), names)
    return partial(fields_of(names or every, state or ""), prices, net)


def _listed(
    context: Context, cut: _PageRequest, names: Sequence[str] | None, *, best: bool = False, **more: Any
) -> dict[str, Any]:
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        slots, before, total = reader.listed(filter_of(context, reader.now, **more), missing, *cut, best=best)
        page_of = _rows(reader, slots, names, context.query, best=best)
        on = before + slots.size < total
        cursor = reader.cursor(slots[-1], cut.sort) if on and slots.size and not best else None
        meta = _meta(context, reader, missing)
    shown_rows = page_of()
    return page(context, shown_rows, len(shown_rows), total, meta, cursor, before=before)


def _grouped(context: Context, cut: _PageRequest, names: Sequence[str] | None) -> dict[str, Any]:
    """A page of events with their prices."""
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        rows = reader.matching_rows(filter_of(context, reader.now), missing)
        parts, before, total, firsts = reader.groups(rows, cut.sort, cut.limit, cut.offset, cut.cursor)
        prices = [reader.take(part) for part in parts]
        on = before + len(parts) < total
        cursor = reader.cursor(firsts[-1], cut.sort, event=True) if on and parts else None
        meta = _meta(context, reader, missing)
    refs = bool(context.query.include)
    events = [_event(part_prices, names, context.query.state or "", refs=refs) for part_prices in prices]
    return page(context, events, len(events), total, meta, cursor, before=before)


def _event(prices: OddsRows, names: Sequence[str] | None, state: str, *, refs: bool) -> Any:
    first = odds(prices._replace(**{name: getattr(prices, name)[:1] for name in _SLICED}, links=None))[0]
    away, home = first.away_team, first.home_team
    facts = (
        first.event_id, f"{away} @ {home}" if away and home else away or home, first.sport, first.league,
        first.event_start_time,
    )  # fmt: skip
    if names is None and not state and not refs:
        return EventOdds(*facts, odds(prices))
    fields = [name for name in names or () if name in ODDS] or None
    if refs:
        rows = with_references(fields_of(ODDS, state)(prices), fields)
    else:
        rows = fields_of(fields or ODDS, state)(prices)
    return {**dict(zip(_EVENT, facts, strict=True)), "odds": rows}


_SLICED = ("term", "book", "id", "odds", "american", "seen", "changed", "start", "moved", "flags", "rejected", "main")


def best(context: Context) -> dict[str, Any]:
    query: BestQuery = context.query
    return _listed(context, _PageRequest.parse(context, query.sort or ""), query.fields or None, best=True)


def comparison(context: Context) -> dict[str, Any]:
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        rows = reader.matching_rows(filter_of(context, reader.now, event=(context.query.event,)), missing)
        prices = reader.take(slots := reader.first_rows(rows))
        more: dict[str, Any] = {"truncated": True} if slots.size < rows.size else {}
        _add_books(context, reader, missing)
    out: dict[str, list[Odds]] = {}
    for row in odds(prices):
        out.setdefault(row.market_type, []).append(row)
    return data(context, out, missing, **more)


def batch(context: Context) -> dict[str, Any]:
    body: Batch = context.body
    most = context.caller.tier.batch
    ids = tuple(dict.fromkeys(body.event_ids))
    if not 1 <= len(ids) <= most:
        raise invalid(
            f"event_ids must have from 1 to {most} ids on the {context.caller.tier.id} tier, got {len(ids):,}"
        )
    if long := next((id_ for id_ in ids if len(id_) > MOST_TEXT), None):
        raise invalid(f"ids in event_ids must have at most {MOST_TEXT} characters, got {len(long):,}")
    requested, markets = (
        value and Prices.declared[name].read(name, value)
        for name, value in (("sportsbook", body.sportsbook), ("market", body.market))
    )
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        f = RowFilter(books=books_for(context, requested or None), event=ids, market=markets or None)
        rows = reader.matching_rows(f, missing)
        parts, *_ = reader.groups(rows, "", len(ids), 0, None)
        whole = np.concatenate(parts) if parts else rows
        prices = reader.take(slots := reader.first_rows(whole))
        more: dict[str, Any] = {"missing": missing["event"]} if "event" in missing else {}
        rest = reader.events_of(np.setdiff1d(rows, whole))
        if rest:
            more["remaining"] = [id_ for id_ in ids if id_ in rest]
        if slots.size < whole.size:
            more["truncated"] = True
        _add_books(context, reader, missing, requested or ())
    out: dict[str, list[Odds]] = {id_: [] for id_ in ids if id_ not in rest}
    for row in odds(prices):
        out[row.event_id].append(row)
    return data(context, out, missing, **more)


def delta(context: Context) -> dict[str, Any]:
    seen = bool(context.query.seen)
    cut = _PageRequest.parse(context, "renewed" if seen else "moved")
    missing: dict[str, list[str]] = {}
    since = micros(context.query.since)
    with reading(context) as reader:
        now = reader.now
        oldest = now - REMEMBERED_S * SECOND if now != NO_TIME else NO_TIME
        after = max(since, int(oldest))
        f = filter_of(context, now, after=after, seen=seen)
        rows = reader.matching_rows(f, missing)
        slots, before = reader.page(rows, cut.sort, cut.limit, cut.offset, cut.cursor)
        encoder = RowEncoder(reader, slots)
        removed_rows = reader.take(reader.matching_rows(f, {}, removed=True))
        on = before + slots.size < rows.size
        cursor = reader.cursor(slots[-1], cut.sort) if on and slots.size else None
        meta = _meta(context, reader, missing, server_time=timestamps(np.array([since if now == NO_TIME else now]))[0])
    if after > since:
        meta["since_clamped"] = True
    if seen:
        meta["seen"] = True
    shown_rows = encoder.encode()
    answer = page(context, shown_rows, len(shown_rows), rows.size, meta, cursor, before=before)
    return {**answer, "removed": removed(removed_rows)}


_COSTLY = ("sort", "group_by", "fields", "state", "include", "cursor")
_ANY = dict.fromkeys(("min_odds", "max_odds", "offset"))  # any value of these costs the same


def _job_kind(context: Context) -> Hashable:
    """Lists in the order of the board that differ in price limits and offset only; None while the board is busy."""
    query: OddsQuery | BestQuery = context.query
    if any(map(vars(query).get, _COSTLY)) or query.format != "json" or index_of(context).busy:
        return None
    return query.values(_ANY)


def of_event(context: Context) -> dict[str, Any]:
    id_ = context.path["eventId"]
    with reading(context) as reader:
        if not reader.has_rows(id_):
            raise unknown("event", id_)
    return _listed(context, _PageRequest.parse(context), None, event=(id_,))


# ---- declarations ----

_Sort = Annotated[str | None, Param("Sort order; prefix with - to reverse.", choices=SORTS, signed=True)]
_GROUP_BY = (
    "event: one entry per event, with its prices. A page has at most 5,000 prices, so it may have fewer events than "
    "`limit`."
)
_FIELDS = "Fields of the rows; event_name, start_time and odds are of the events of `group_by`."


class _ListQuery(Pages, Prices):
    """Parameters of lists of prices."""

    add_sportsbook: shared_params.AddSportsbook = None
    team: shared_params.Team = None
    min_odds: shared_params.MinOdds = None
    max_odds: shared_params.MaxOdds = None
    state: shared_params.State = None
    sort: _Sort = None
    include: shared_params.Refs = None
    format: shared_params.Format = "json"


class OddsQuery(_ListQuery):
    """Parameters of `/odds`."""

    date: shared_params.Date = None
    q: shared_params.Search = None
    is_main_line: shared_params.IsMainLine = None
    is_player_prop: shared_params.IsPlayerProp = None
    player_name: Annotated[str | None, Param("Part of a player's name, ignoring case and accents.")] = None
    stat_category: Annotated[Words, Param("Statistics of player props: points, rebounds ...")] = None
    selection: Annotated[Words, Param("Selections as written, or selection types: home, over ...")] = None
    fields: Annotated[Words, Param(_FIELDS, choices=tuple(dict.fromkeys((*ODDS, *_EVENT, "odds"))))] = None
    group_by: Annotated[str | None, Param(_GROUP_BY, choices=("event",))] = None
    cursor: shared_params.NextCursor = None


class BestQuery(_ListQuery):
    """Parameters of `/odds/best`."""

    fields: Annotated[Words, Param("Fields of the rows.", choices=BEST)] = None


class ComparisonQuery(Query):
    """Parameters of `/odds/comparison`."""

    event: shared_params.OneEvent
    market: shared_params.Market = None
    sportsbook: shared_params.Sportsbook = None


class DeltaQuery(Pages, Prices):
    """Parameters of `/odds/delta`."""

    since: Annotated[datetime, Param("A time of the board, such as the `server_time` of the previous delta.")]
    cursor: shared_params.NextCursor = None
    seen: shared_params.Seen = None


class EventOddsQuery(Pages):
    """Parameters of `/events/{eventId}/odds`."""

    sportsbook: shared_params.Sportsbook = None
    market: shared_params.Market = None
    cursor: shared_params.NextCursor = None
    format: shared_params.Format = "json"


endpoints = (
    Endpoint(
        "/odds", with_tables(listing, Table("odds", Odds)), "Prices", "Odds", OddsPage,
        OddsQuery, doc=__doc__.partition("\n\n")[2], job_kind=_job_kind,
    ),
    Endpoint(
        "/odds/best", with_tables(best, Table("best_odds", BestOdds)), "Best price of each selection", "Odds", BestPage,
        BestQuery,
        doc="The best accepted price of each selection: suspended prices and those with a `rejection` (stale, too good "
        "to be true ...) are ignored, and selections without any other price are omitted. Prices are compared after "
        "the commission or fee of their book (`odds_decimal_net`); the other fields are as quoted. Ties go to the "
        "price seen last, then to the first book by id. `min_odds` and `max_odds` filter the best prices, and do not "
        "affect which price is best.", job_kind=_job_kind,
    ),
    Endpoint(
        "/odds/comparison", comparison, "Prices of one event by market type", "Odds", OddsLists,
        ComparisonQuery,
        doc="At most 5,000 prices; `truncated` in `meta` is true if there are more: filter by `market` or "
        "`sportsbook`, or page through `/events/{eventId}/odds`.",
    ),
    Endpoint(
        "/odds/batch", batch, "Prices of many events", "Odds", OddsByEvent, method="POST", body=Batch,
        doc="At most 5,000 prices. `remaining` in `meta` lists the events that did not fit, to be requested next; an "
        "event that alone has more is `truncated`.",
    ),
    Endpoint(
        "/odds/delta", delta, "Prices that changed since a time", "Odds", Delta,
        DeltaQuery,
        doc="Prices that changed or whose `rejection` changed after `since`, and prices removed since then. Removals "
        "are available for 600 s; an earlier `since` is replaced by that limit (`since_clamped`).",
    ),
    Endpoint(
        "/events/{eventId}/odds", with_tables(of_event, Table("odds", Odds)), "Prices of one event", "Events",
        Page[Odds], EventOddsQuery,
    ),
)  # fmt: skip
