"""The lists of opportunities, with one declaration per kind."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from types import new_class
from typing import Annotated, Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.columns import Bools, Floats, Longs
from oddsengine.detection.kinds import ARBITRAGE, BUILT_IN, EV, KINDS, LOW_HOLD, MIDDLES, Kind
from oddsengine.maths.devig import DEVIG_ALIASES, DEVIG_METHODS
from oddsengine.maths.rounding import exact
from oddsengine.query import BoardIds, values
from oddsengine.staking.same_bets import same_bets
from oddsengine_service import shared_params
from oddsengine_service.board.views import OpenRows, OpportunityTable
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.http.params import Param, Query, Words
from oddsengine_service.http.tables import Table, with_tables
from oddsengine_service.routes.odds_routes import books_for, index_of
from oddsengine_service.routes.opportunities import download
from oddsengine_service.routes.opportunities.list_filters import matching, ordered
from oddsengine_service.shared_params import Pages, Prices
from oddsengine_service.tiers import book_above, books_of
from oddsengine_service.wire.contract import ArbitragePage, EvPage, LowHoldPage, MiddlePage, SameBet, decorated
from oddsengine_service.wire.encodings import ENCODINGS, WITH_GAME_STATE
from oddsengine_service.wire.envelopes import ListMeta, PageWith
from oddsengine_service.wire.games_response import Standing, state_of
from oddsengine_service.wire.numbers import format_time

TAG = "Opportunities"


class _CommonQuery(Pages, Prices):
    """Parameters of every list."""

    add_sportsbook: shared_params.AddSportsbook = None
    team: shared_params.Team = None
    date: shared_params.Date = None
    date_range: Annotated[str | None, Param("Start of the event in US Eastern time.", choices=shared_params.DAYS)] = (
        None
    )
    q: shared_params.Search = None
    is_player_prop: shared_params.IsPlayerProp = None
    starts_within: Annotated[
        float | None, Param("Maximum hours until the start; live events have started.", low=0.0, high=10_000.0)
    ] = None
    player_name: Annotated[str | None, Param("Part of a player's name.")] = None
    stat_category: Annotated[Words, Param("Statistics of player props, such as points.")] = None
    max_odds_age: Annotated[float | None, Param("Maximum age of the oldest price in seconds.", low=0.0)] = None
    min_odds: shared_params.MinOdds = None
    max_odds: shared_params.MaxOdds = None
    stake: shared_params.Stake = None
    format: shared_params.Format = "json"


class _LegsQuery(_CommonQuery):
    """Parameters of lists of bets that belong together."""

    terms: shared_params.Terms = None


class MatchingRows(NamedTuple):
    """Opportunities that match a request: their indices in a table, in order."""

    table: OpportunityTable | None  # None if the request has no books
    places: Longs
    now: datetime | None  # time of the board they come from
    unknown: dict[str, list[str]]  # ids of the request, by parameter
    books: frozenset[str] | None
    made: dict[str, Any]

    def summary(self, name: str, column: str, **counted: str) -> dict[str, Any]:
        """The number of rows, mean and maximum of a column, and counts by other columns."""
        summary: dict[str, Any] | None = self.made.get(name)
        if summary is None:
            summary = self.made[name] = self._summary(name, column, counted)
        return summary

    def _summary(self, name: str, column: str, counted: Mapping[str, str]) -> dict[str, Any]:
        table, places = self.table, self.places
        numbers = np.empty(0) if table is None else table.numbers(column)[places]
        counts = {by: {} if table is None else table.coded(of).counts(places) for by, of in counted.items()}
        return {"count": int(places.size), f"avg_{name}": mean(numbers), f"max_{name}": largest(numbers), **counts}


class _List(NamedTuple):
    """A list: its kind, and what other lists do not have."""

    kind: Kind
    echoed: str  # parameters repeated in `meta.filters`, in addition to the common ones
    meta: Callable[[Context, MatchingRows], Mapping[str, Any]]
    reference: Callable[[Context, dict[str, list[str]]], dict[str, Any] | None] = lambda *_: {}  # None: no match

    def view(self, context: Context, unknown: dict[str, list[str]]) -> dict[str, Any] | None:
        """Parameters of the view of a request; None if its reference does not exist."""
        reference, least = self.reference(context, unknown), self.kind.threshold
        return None if reference is None else reference | {least.name: least.step(context.query.get(least.listed))}


def _sort(kind: Kind, doc: str) -> Param:
    return Param(doc, choices=tuple(kind.orders), signed=True)


# ---- books and views of a request ----


class RequestedBooks(NamedTuple):
    """A request's books, and its unknown ids."""

    books: frozenset[str] | None
    unknown: dict[str, list[str]]


def selected(context: Context) -> RequestedBooks:
    """The requested books, or those of the tier, that exist. Raises `Problem` 403 if a book is above the tier."""
    query = context.query
    unknown = shared_params.unknown_ids(query, lambda: _seen(context))
    if query.get("event") is not None:
        with index_of(context).reader() as reader:
            missing = [event for event in query.event if not reader.has_event(event)]
        if missing:
            unknown["event"] = missing
    books = books_for(context, query.sportsbook, query.get("add_sportsbook"))
    if books is not None:
        names = [word for name in ("sportsbook", "add_sportsbook") for word in unknown.get(name, ())]
        books -= {catalog.book(word).id for word in names}
    return RequestedBooks(books, unknown)


def _seen(context: Context) -> BoardIds:
    return context.node.boards.stats.at(context.board, None).ids


def reference(context: Context, unknown: dict[str, list[str]]) -> tuple[bool, str | None]:
    """The id of a request's reference, and whether it exists.

    A sharp book may be the reference for every tier; other books only for tiers that may see them.
    """
    word = context.query.get("devig_book")
    if word is None:
        return True, None
    book = catalog.book(word)
    if not values.is_book(word) and book.id not in _seen(context).books:
        unknown["devig_book"] = [word]
        return False, None
    own = books_of(context.caller.tier.id)
    if own is not None and not book.sharp and book.id not in own:
        raise book_above(book.id, context.caller.tier, "devig_book")
    return True, book.id


def opened(context: Context, kind: Kind, books: frozenset[str] | None, **view: Any) -> OpenRows:
    """The open opportunities of a kind in the view of a request."""
    wanted = {"kinds": (kind.name,), "stake": context.query.get("stake"), **view}
    return context.node.boards.views.at(context.board, books, context.caller.account, **wanted)


def listed(context: Context, own: _List) -> MatchingRows:
    query, kind = context.query, own.kind
    books, unknown = selected(context)
    view = own.view(context, unknown)
    if view is None or (books is not None and not books):
        return MatchingRows(None, np.empty(0, np.int64), context.board.now, unknown, books, {})
    snapshot = opened(context, kind, books, **view)
    table = snapshot.table(kind.name, context.node.boards.encodings[kind.name])
    matched = matching(table, query, kind, snapshot.now)
    if query.get("group") == "best":
        matched = _best(table, matched)
    sort = query.sort
    places, made = table.selection(matched, sort, lambda: ordered(table, matched, sort, kind))
    return MatchingRows(table, places, snapshot.now, unknown, books, made)


def _best(table: OpportunityTable, matched: Bools | None) -> Bools:
    """The first row of each event; the frame is sorted by profit."""
    at = np.arange(table.size) if matched is None else np.flatnonzero(matched)
    _, first = np.unique(table.coded("event_id").codes[at], return_index=True)
    out = np.zeros(table.size, bool)
    out[at[first]] = True
    return out


_COSTLY = ("event", "devig_book", "state", "include", "same_bets")


def _job_kind(own: _List) -> Callable[[Context], Hashable]:
    """Lists of one view that differ in limits on numbers and the offset, as long as no view was closed."""
    any_value = dict.fromkeys(("offset", *(name for _, *names in own.kind.bounds for name in names)))

    def kind(context: Context) -> Hashable:
        query = context.query
        if any(query.get(name) for name in _COSTLY) or query.format != "json":
            return None
        view = own.view(context, {}) or {}
        return context.node.boards.views.closed, *view.values(), *query.values(any_value)

    return kind


# ---- responses ----


def states(context: Context) -> Mapping[str, Standing]:
    """Game states by event; empty for tiers without game states."""
    return context.node.games.states(context.caller.tier.delay) if "gamestate" in context.caller.features else {}


def rows_of(context: Context, kind: Kind, table: OpportunityTable, places: Sequence[int]) -> list[Any]:
    rows: list[Any] = table.encoded_rows(places)
    query = context.query
    state, refs = query.get("state") or "", "refs" in (query.get("include") or ())
    games = states(context) if kind.name in WITH_GAME_STATE else {}
    stateless = table.stateless(places)
    if not (state or refs or games or stateless):
        return rows
    events = table.coded("event_id")
    for at, place in enumerate(places):
        game = state_of(games.get(events.values[events.codes[place]]))
        if state or refs or game is not None or place in stateless:
            rows[at] = decorated(rows[at], game, state, refs=refs)
    return rows


def _answers(own: _List) -> Callable[[Context], Any]:
    def answer(context: Context) -> Any:
        query, listing = context.query, listed(context, own)
        table, offset = listing.table, query.offset
        places: list[int] = listing.places[offset : offset + query.limit].tolist()
        echoed = {name: query.get(name) for name in ("sport", "league", "sportsbook", "market", *own.echoed.split())}
        source = "simulator" if context.node.simulated else "live"
        meta = {"source": source, **own.meta(context, listing), "filters": echoed}
        rows = [] if table is None else rows_of(context, own.kind, table, places)
        if query.get("same_bets"):
            meta["same_bets"] = [] if table is None else _same_bets(table, places)
        return page(context, rows, len(places), int(listing.places.size), answer_meta(context, listing.unknown, **meta))

    return answer


def _same_bets(table: OpportunityTable, places: list[int]) -> list[SameBet]:
    """Rows of a page of +EV rows that are one bet."""
    frame = table.frame[places]
    ids = frame["id"].to_list()
    return [
        SameBet([ids[row] for row in one.rows], list(map(exact, one.stakes)), exact(one.kelly), exact(one.apart))
        for one in same_bets(frame)
    ]


def mean(numbers: Floats) -> float:
    """The rounded mean; 0 without rows."""
    return exact(float(numbers.mean())) if numbers.size else 0.0


def largest(numbers: Floats) -> float:
    """The rounded maximum; 0 without rows."""
    return exact(float(numbers.max())) if numbers.size else 0.0


# ---- +EV ----


def ev_reference(context: Context, unknown: dict[str, list[str]]) -> dict[str, Any] | None:
    """Parameters of the view of a +EV request except for the threshold; None if its reference does not exist."""
    query = context.query
    exists, sharp = reference(context, unknown)
    include = tuple(name for name in query.include or () if name != "refs")
    return {"sharp": sharp, "method": query.devig_method, "include": include} if exists else None


def _ev_meta(_: Context, listing: MatchingRows) -> dict[str, Any]:
    counted = {"by_sportsbook": "sportsbook", "by_sport": "sport", "by_market": "market_type"}
    return {"last_update": format_time(listing.now), "summary": listing.summary("ev", "ev_percentage", **counted)}


_EV = _List(EV, "min_ev max_ev live sort include", _ev_meta, ev_reference)
_METHOD = "De-vig method; without `devig_book` it is that of the first sharp book's prices."
DevigBook = Annotated[str | None, Param("Reference book for fair prices; default: all other books, at the close.")]
DevigMethod = Annotated[str | None, Param(_METHOD, choices=(*DEVIG_METHODS, *DEVIG_ALIASES))]


class EvQuery(_CommonQuery):
    """Parameters of lists of +EV opportunities."""

    is_main_line: shared_params.IsMainLine = None
    min_ev: Annotated[float, Param("Minimum expected value in percent.", low=-100.0, high=1000.0)] = 0.0
    max_ev: Annotated[float | None, Param("Maximum expected value in percent.", low=-100.0, high=1000.0)] = None
    min_market_width: Annotated[float | None, Param("Minimum hold of the reference market in percent.")] = None
    max_market_width: Annotated[float | None, Param("Maximum hold of the reference market in percent.")] = None
    max_hold: Annotated[float | None, Param("Alias of max_market_width.")] = None
    min_kelly: Annotated[float | None, Param("Minimum Kelly fraction, 0 to 1.")] = None
    max_kelly: Annotated[float | None, Param("Maximum Kelly fraction, 0 to 1.")] = None
    min_confidence: Annotated[float | None, Param("Minimum confidence score, 0 to 100.")] = None
    max_confidence: Annotated[float | None, Param("Maximum confidence score, 0 to 100.")] = None
    min_still_there: Annotated[
        float | None,
        Param(
            "Minimum `still_there`: the probability that the price stands ten minutes on, 0 to 1. It is null in play, "
            "which no minimum lets through.",
            low=0.0,
            high=1.0,
        ),
    ] = None
    selection: Annotated[Words, Param("Selections as written in the rows.")] = None
    devig_book: DevigBook = None
    devig_method: DevigMethod = None
    include: shared_params.Include = None
    same_bets: Annotated[
        bool,
        Param("Also say which rows of the page are one bet, and what to stake on them in all: `same_bets` in `meta`."),
    ] = False
    sort: Annotated[str, _sort(EV, "Sort order; prefix with - for descending. Rows without a value are last.")] = "-ev"


# ---- arbitrages ----


def _arbitrage_meta(context: Context, listing: MatchingRows) -> dict[str, Any]:
    books = {catalog.book(name).id for name in context.board.books}
    return {
        "summary": listing.summary("profit", "profit_percent", by_market="market_type", by_sport="sport"),
        "books_analyzed": len(books if listing.books is None else books & listing.books),
        **({"rates": dict(context.node.rates)} if context.node.rates else {}),
    }


_ARBITRAGE = _List(ARBITRAGE, "live min_profit", _arbitrage_meta)


class ArbitrageQuery(_LegsQuery):
    """Parameters of lists of arbitrages."""

    is_main_line: shared_params.IsMainLine = None
    include: shared_params.Refs = None
    min_profit: Annotated[float, Param("Minimum profit in percent.", low=-99.0, high=1000.0)] = 0.5
    group: Annotated[
        str | None, Param("best: only the most profitable arbitrage of each event.", choices=("best",))
    ] = None
    sort: Annotated[
        str, _sort(ARBITRAGE, "Sort order: profit descending, others ascending; prefix with - to reverse.")
    ] = "profit"


# ---- low holds and middles ----


def _last_update(context: Context, _: MatchingRows) -> dict[str, Any]:
    return {"last_update": format_time(context.board.now)}


_HOLD = _List(LOW_HOLD, "live max_hold sort", _last_update)
MIDDLES_LIST = _List(MIDDLES, "live min_ev min_size sort", _last_update)


class LowHoldQuery(_LegsQuery):
    """Parameters of lists of low-hold opportunities."""

    is_main_line: shared_params.IsMainLine = None
    include: shared_params.Refs = None
    max_hold: Annotated[float, Param("Maximum hold in percent.", low=0.0, high=100.0)] = 2.0
    min_hold: Annotated[float | None, Param("Minimum hold in percent.", low=0.0, high=100.0)] = None
    state: shared_params.State = None
    sort: Annotated[str, _sort(LOW_HOLD, "Sort order, ascending; prefix with - to reverse.")] = "hold"


class MiddlesQuery(_LegsQuery):
    """Parameters of lists of middles."""

    include: shared_params.Refs = None
    min_ev: Annotated[float, Param("Minimum expected value in percent.", low=-100.0, high=1000.0)] = 0.0
    max_ev: Annotated[float | None, Param("Maximum expected value in percent.", low=-100.0, high=1000.0)] = None
    min_size: Annotated[float | None, Param("Minimum distance between the two lines.", low=0.0)] = None
    state: shared_params.State = None
    sort: Annotated[str, _sort(MIDDLES, "Descending; prefix with - to reverse.")] = "quality"


# ---- registered kinds ----


def _registered(kind: Kind) -> Endpoint:
    """The list of a kind that was registered, whose parameters are its thresholds, bounds and orders."""
    title = "".join(word.title() for word in kind.name.split("_"))
    least, fields = kind.threshold, dict[str, tuple[Any, Any]]()
    for column, low, high in kind.bounds:
        for name, word in ((low, "Minimum"), (high, "Maximum")):
            if name:
                fields[name] = Annotated[float | None, Param(f"{word} of {column}.")], None
    word = "Maximum" if least.is_most else "Minimum"
    fields[least.listed] = Annotated[float, Param(f"{word} {kind.measure} in percent.")], least.usual
    if kind.alternate is not None:
        fields["is_main_line"] = shared_params.IsMainLine, None
    fields["sort"] = Annotated[str, _sort(kind, "Sort order; prefix with - for the other direction.")], kind.best_first
    base = _LegsQuery if "terms_differ" in kind.schema else _CommonQuery
    query = new_class(f"{title}Query", (base,), exec_body=_with(fields))
    query.__doc__ = f"Parameters of lists of the kind {kind.name}."
    page_of = new_class(f"{title}Page", (PageWith[ENCODINGS[kind.name].struct, ListMeta],), {"kw_only": True})  # type: ignore[misc]
    page_of.__doc__ = f"A page of the list of the kind {kind.name}."
    own = _List(kind, f"live {least.listed} sort", _last_update)
    return _endpoint(kind.name, own, kind.title, page_of, query, kind.about)


def _with(fields: Mapping[str, tuple[Any, Any]]) -> Callable[[dict[str, Any]], None]:
    """The body of a class with some annotated fields and their defaults."""

    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {name: hint for name, (hint, _) in fields.items()}
        namespace |= {name: default for name, (_, default) in fields.items()}

    return body


def _endpoint(path: str, own: _List, summary: str, returns: Any, query: type[Query], doc: str = "") -> Endpoint:
    feature = own.kind.name
    table = download.TABLE if own.kind is ARBITRAGE else Table(feature, ENCODINGS[feature].struct)
    return Endpoint(
        f"/opportunities/{path}", with_tables(_answers(own), table), summary, TAG, returns, query,
        feature=feature, doc=doc, job_kind=_job_kind(own),
    )  # fmt: skip


endpoints = (
    _endpoint(
        "ev", _EV, "+EV opportunities", EvPage, EvQuery,
        "One row per book, best first. `still_there` is the probability that the price stands ten minutes on; null in "
        "play.",
    ),
    _endpoint(
        "arbitrage", _ARBITRAGE, "Arbitrage opportunities", ArbitragePage, ArbitrageQuery,
        "Arbitrages above 10 % are not listed. In tables each row has two legs; an arbitrage of three takes two rows.",
    ),
    _endpoint("middles", MIDDLES_LIST, "Middle opportunities", MiddlePage, MiddlesQuery),
    _endpoint("low_hold", _HOLD, "Low-hold opportunities", LowHoldPage, LowHoldQuery),
    _endpoint("low-hold", _HOLD, "Low-hold opportunities", LowHoldPage, LowHoldQuery),
    *(_registered(kind) for kind in KINDS.values() if kind not in BUILT_IN),
)  # fmt: skip
