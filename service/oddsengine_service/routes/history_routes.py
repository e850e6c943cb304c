"""History: closing lines, price movements, and how the +EV prices that were shown compare with the close.

A caller sees of the past what it may see of the present: the books of its tier, and nothing younger than its delay.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import compress
from typing import Annotated, Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.columns import NO_TIME, Ints, Longs
from oddsengine.history.closing import LAST_S, Close
from oddsengine.history.clv import GROUPINGS, report
from oddsengine.history.movements import EventMoves, described
from oddsengine.live.update import hexadecimal
from oddsengine.maths.odds import round_american
from oddsengine.maths.rounding import PRECISE_DIGITS, USUAL_DIGITS
from oddsengine.query import LATEST, BoardEvent, BoardIds, book_ids, values
from oddsengine.tables.timestamps import micros, timestamps
from oddsengine_service import shared_params
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.errors import Problem, invalid, unknown
from oddsengine_service.history.past import Past
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, data, page
from oddsengine_service.http.params import Param, Query, Words
from oddsengine_service.http.tables import with_tables
from oddsengine_service.routes import history_tables
from oddsengine_service.routes.odds_routes import books_for, index_of
from oddsengine_service.routes.opportunities.lists import reference
from oddsengine_service.shared_params import Pages, Places
from oddsengine_service.wire.envelopes import Page
from oddsengine_service.wire.history_response import (
    Closing,
    ClosingAnswer,
    ClosingLine,
    ClvGroup,
    ClvPage,
    Movement,
    Opening,
    Points,
)
from oddsengine_service.wire.numbers import PRECISE, rounded_column
from oddsengine_service.wire.numbers import americans as american

MOST_POINTS = 500  # of one price
MOST_LINES = 5_000  # per page of closing lines; one event may have more
_TAG, _HISTORICAL = "Odds", "Historical"


def past_of(context: Context) -> Past:
    if context.node.past is None:
        raise Problem(503, "not_ready", "this node does not record history")
    return context.node.past


def caller_now(context: Context) -> int | None:
    """The latest time that the caller may see; None if there is none yet."""
    return None if context.board.now is None else micros(context.board.now)


# ---- closing lines ----


def closing(context: Context) -> Any:
    id_ = context.query.event_id
    books = books_for(context, context.query.sportsbook)
    missing: dict[str, list[str]] = {}
    shown = _shown(context, id_, books, missing)
    if shown is None:
        event, reason = _without_lines(context, id_)
        return data(context, event, reason=reason)
    return data(context, shown, missing)


def _shown(context: Context, id_: str, books: frozenset[str] | None, missing: dict[str, list[str]]) -> Closing | None:
    """The lines of an event that match a request; None if it has not closed yet."""
    close, now, markets = past_of(context).closings.closing(id_), caller_now(context), context.query.market
    if close is None or now is None or close.captured_at > now:
        return None
    lines = _published(close.lines, close.sport)
    if markets is not None:
        lines = _in_markets(lines, close, markets, missing)
    return _closing(close, lines, books)


def _without_lines(context: Context, id_: str) -> tuple[Closing, str]:
    """An event on the board without closing lines, and the reason.

    Raises `Problem` 404 if the board does not have the event.
    """
    with index_of(context).reader() as reader:
        event, moment = reader.event(id_), reader.moment
    if event is None:
        raise unknown("event", id_)
    sport_id = values.sport_id(event.sport)
    league_id = values.league_id(event.league, event.sport) if event.league else ""
    (start,) = timestamps(np.array([event.start]))
    closing = Closing(id_, sport_id, league_id, event.home_team, event.away_team, start, None, {})
    return closing, _reason(context, id_, event, moment)


def _reason(context: Context, id_: str, event: BoardEvent, moment: int) -> str:
    begun = event.start != NO_TIME and event.start <= moment
    if event.status == "cancelled":
        return "it was cancelled"
    if event.status == "postponed" or (event.status == "upcoming" and not begun):
        return "it has not begun"
    first = past_of(context).history.changes_of_event(id_, LATEST).at
    if first.size and begun and int(first.min()) < event.start:
        return f"none of its prices was on offer in the last {LAST_S // 60} minutes before its start"
    return "it was first seen after its start"


def _published(lines: pl.DataFrame, sport: str) -> pl.DataFrame:
    """Lines under published market types."""
    columns = lines.select("market_type", "stat_category", "market_segment").iter_rows()
    names = [catalog.published_name(market, sport, stat or "", segment or "") for market, stat, segment in columns]
    return lines.with_columns(market_type=pl.Series(names, dtype=pl.String))


def _in_markets(lines: pl.DataFrame, close: Close, names: Sequence[str], missing: dict[str, list[str]]) -> pl.DataFrame:
    """Lines of some market types or categories."""
    columns = ["market_type", "stat_category", "line", "team_side"]
    types = lines.select(columns).unique()
    wanted: set[tuple[Any, ...]] = set()
    for name in names:
        hits = set()
        for kind in catalog.categories().get(name.lower(), (name,)):
            for market, stat, line, side in types.iter_rows():
                prop = kind == "player_*" and catalog.market_type(market, close.sport, stat or "").is_prop
                if prop or catalog.is_market(kind, market, close.sport, stat or "", line, side or ""):
                    hits.add((market, stat, line, side))
        if not hits and name.lower() not in catalog.categories() and not catalog.market_type(name).usable:
            missing.setdefault("market", []).append(name)
        wanted |= hits
    chosen = pl.DataFrame(sorted(wanted, key=str), types.schema, orient="row")
    return lines.join(chosen, on=columns, how="semi", nulls_equal=True, maintain_order="left")


def _closing(close: Close, lines: pl.DataFrame, books: frozenset[str] | None) -> Closing:
    times = {name: timestamps(lines[name].dt.epoch("us").to_numpy()) for name in ("last_seen_at", "odds_changed_at")}
    decimal = lines["odds_decimal"].to_numpy()
    shown: dict[str, list[Any]] = {
        "sportsbook": [catalog.book(name).id for name in lines["sportsbook"].to_list()],
        "market_segment": [
            segment or catalog.market_type(market, close.sport, stat or "").period or catalog.FULL_GAME
            for segment, market, stat in lines.select("market_segment", "market_type", "stat_category").iter_rows()
        ],
        "odds_american": american(decimal, lines["odds_american"].to_numpy()),
        "odds_decimal": rounded_column(decimal, PRECISE),
        "odds_probability": rounded_column(1.0 / decimal, PRECISE),
        "fair_probability": lines["fair_probability"].round(PRECISE_DIGITS).to_list(),
        "no_vig_odds": pl.Series(round_american(lines["no_vig_odds"].to_numpy()), nan_to_null=True).to_list(),
        **times,
    }
    columns = [shown[name] if name in shown else lines[name].to_list() for name in ClosingLine.__struct_fields__]
    out: dict[str, list[ClosingLine]] = {}
    for line in map(ClosingLine, *columns):
        if books is None or line.sportsbook in books:
            out.setdefault(line.sportsbook, []).append(line)
    begins, captured = timestamps(np.array([close.start, close.captured_at]))
    sport, league = values.sport_id(close.sport), values.league_id(close.league, close.sport)
    return Closing(
        close.event_id, sport, league, close.home_team, close.away_team, begins, captured, dict(sorted(out.items()))
    )


def closings(context: Context) -> Any:
    query: ClosingsQuery = context.query
    now, past = caller_now(context), past_of(context)
    books = books_for(context, query.sportsbook)
    missing: dict[str, list[str]] = {}
    listed = []
    if now is not None and context.board.now is not None:
        first, last = shared_params.span(query.date, context.board.now)
        listed = past.closings.closed_between(first, min(last, now + 1))
    events, sports, leagues = zip(*listed, strict=True) if listed else ((), (), ())
    ids = list(compress(events, which_match(query, sports, leagues, events)))
    rows: list[Closing] = []
    left = MOST_LINES
    for id_ in ids[query.offset : query.offset + query.limit]:
        row = _shown(context, id_, books, missing)
        if row is None:
            continue
        left -= sum(map(len, row.books.values()))
        if rows and left < 0:
            break
        rows.append(row)
    return page(context, rows, len(rows), len(ids), answer_meta(context, missing))


# ---- movements ----


def history(context: Context) -> Any:
    query: HistoryQuery = context.query
    id_, past = query.event, past_of(context)
    books, now = books_for(context, query.sportsbook), caller_now(context)
    since, until = _window(query)
    missing: dict[str, list[str]] = {}
    if now is None:
        return page(context, [], 0, 0, answer_meta(context, {"event": [id_]}))
    moves = past.history.changes_of_event(id_, min(now, until))
    if not moves.raw_labels:
        missing["event"] = [id_]
    terms, term, book, ids = described(moves)
    mask = np.ones(len(terms.texts), bool)
    if query.market is not None and moves.raw_labels:
        mask, unknown_words = terms.by_market(query.market)
        if unknown_words:
            missing["market"] = unknown_words
    if query.selection is not None:
        mask = mask & terms.by_selection(query.selection)
    books_named = book_ids(terms.names.books.values)
    wanted = np.array([books is None or name in books for name in books_named], bool)
    if unknown_words := [w for w in query.sportsbook or () if not values.is_book(w) and w not in books_named]:
        missing["sportsbook"] = unknown_words
    begins = np.searchsorted(np.sort(moves.row, kind="stable"), np.arange(term.size + 1))
    order = np.argsort(moves.row, kind="stable")
    chosen = np.flatnonzero(mask[term] & wanted[book] & (np.diff(begins) > 0)) if term.size else np.empty(0, np.int64)
    terms_of, books_of = term.tolist(), book.tolist()
    rows = sorted(chosen.tolist(), key=lambda at: (terms.keys[terms_of[at]], books_named[books_of[at]]))
    limit, offset = query.limit, query.offset
    shown = rows[offset : offset + limit]
    row_ids = hexadecimal(ids[shown])
    parts = [order[begins[at] : begins[at + 1]] for at in shown]
    movements = [
        _movement(ident, terms.texts[term[at]], books_named[book[at]], moves, part, since)
        for ident, at, part in zip(row_ids, shown, parts, strict=True)
    ]
    return page(context, movements, len(movements), len(rows), answer_meta(context, missing))


def _window(query: "ClvQuery | HistoryQuery", first: str = "since", last: str = "until") -> tuple[int, int]:
    """The period between two parameters, in microseconds."""
    begin, end = query.since, query.until
    if begin is not None and end is not None and end < begin:
        raise invalid(f"{last} must not be before {first}, got {end.isoformat()} and {begin.isoformat()}")
    return 0 if begin is None else micros(begin), LATEST if end is None else micros(end)


def _movement(ident: str, texts: Any, book: str, moves: EventMoves, at: Longs | Ints, since: int) -> Movement:
    """One row's moves from the price in effect at `since`, limited to the newest."""
    first = max(int(np.searchsorted(moves.at[at], since, "right")) - 1, 0)
    omitted = max(at.size - first - MOST_POINTS, 0)
    shown = np.concatenate((at[:1], at[first + omitted :]))
    price = american(moves.odds[shown], moves.american[shown])
    odds = rounded_column(moves.odds[shown], PRECISE)
    times = timestamps(moves.at[shown])
    points = Points(times[1:], price[1:], odds[1:], moves.live[shown[1:]].tolist(), moves.active[shown[1:]].tolist())
    return Movement(
        ident, texts.event_id, book, texts.market_type, texts.market_segment, texts.selection, texts.selection_type,
        texts.line, texts.player_name, Opening(times[0], price[0], odds[0]), points, omitted,
    )  # fmt: skip


# ---- closing line value ----


def clv(context: Context) -> Any:
    query: ClvQuery = context.query
    now, past = caller_now(context), past_of(context)
    missing = shared_params.unknown_ids(query, lambda: BoardIds((), (), (), ()), without="market")
    there, book = reference(context, missing)
    bets = past.closings.bets(-1 if now is None else now)[: None if there else 0]
    books = books_for(context, query.sportsbook)
    if books is not None:
        bets = bets.filter([catalog.book(name).id in books for name in bets["sportsbook"].to_list()])
    bets = bets.filter(which_match(query, *(bets[name].to_list() for name in ("sport", "league", "event_id"))))
    bets = bets.filter(pl.col("ev") >= query.min_ev / 100.0 - 1e-9)
    since, until = _window(query, "from", "to")
    if since or until != LATEST:
        first, last = _day(query.since) or "", _day(query.until) or "9"
        bets = bets.filter((pl.col("day") >= first) & (pl.col("day") <= last))
    if book is not None:
        bets = past.closings.by_book(bets, book)
    groups = _groups(report(bets, query.group_by))
    (total,) = _groups(report(bets))
    return {
        "success": True,
        "data": groups,
        "meta": answer_meta(context, missing, group_by=query.group_by, count=len(groups), total=total),
    }


def _day(time: datetime | None) -> str | None:
    """The day of a time in US Eastern time; in UTC at the ends of the calendar, where conversion would overflow."""
    if time is None:
        return None
    try:
        return str(time.astimezone(shared_params.EASTERN).date())
    except OverflowError:
        return str(time.date())


def _groups(frame: pl.DataFrame) -> list[ClvGroup]:
    shown = frame.with_columns(pl.col(pl.Float64).round(USUAL_DIGITS) + 0.0)
    return [ClvGroup(**row) for row in shown.iter_rows(named=True)]


class ClosingQuery(Query):
    """Parameters of `/odds/closing`."""

    event_id: Annotated[str, Param("The id of an event, from /events.", aliases=("event",))]
    sportsbook: shared_params.Sportsbook = None
    market: shared_params.Market = None
    format: shared_params.Format = "json"


class HistoryQuery(Pages):
    """Parameters of `/odds/history`."""

    event: shared_params.OneEvent
    market: shared_params.Market = None
    sportsbook: shared_params.Sportsbook = None
    selection: Annotated[Words, Param("Selections as written, or selection types.")] = None
    since: Annotated[datetime | None, Param("Start time; the price in effect at that time is included.")] = None
    until: Annotated[datetime | None, Param("End time, not before `since`.")] = None
    format: shared_params.Format = "json"


class ClosingsQuery(Pages, Places):
    """Parameters of `/historical/odds/closing`."""

    date: Annotated[str, shared_params.DATE] = "today"
    sportsbook: shared_params.Sportsbook = None
    market: shared_params.Market = None
    event: shared_params.Event = None
    format: shared_params.Format = "json"


class ClvQuery(Places):
    """Parameters of `/historical/clv`."""

    group_by: Annotated[str, Param("Column to group by.", choices=GROUPINGS, aliases=("by",))] = "sportsbook"
    sportsbook: shared_params.Sportsbook = None
    event: shared_params.Event = None
    min_ev: Annotated[float, Param("Minimum EV in percent when first shown.")] = 0.0
    since: Annotated[datetime | None, Param("First start date, US Eastern time.", name="from", aliases=("since",))] = (
        None
    )
    until: Annotated[datetime | None, Param("Last start date, not before `from`.", name="to", aliases=("until",))] = (
        None
    )
    devig_book: Annotated[
        str | None,
        Param("Grade by this book's own prices at the close, margin removed, instead of the node's reference."),
    ] = None
    format: shared_params.Format = "json"


endpoints = (
    Endpoint(
        "/odds/closing", with_tables(closing, history_tables.CLOSING),
        "Closing lines of one event", _TAG, ClosingAnswer, ClosingQuery,
        cache="never", errors=(404,),
        doc="The last price of every book before the event began: at its start, or when it first went live. Prices "
        "removed more than five minutes before are not included. `fair_probability` is that of the sharp reference at "
        "that time. An event without closing lines has empty `books`, a null `captured_at`, and the reason in "
        "`meta.reason`; an unknown event is a 404.",
    ),
    Endpoint(
        "/odds/history", with_tables(history, history_tables.MOVEMENTS),
        "Price history of one event", _TAG, Page[Movement],
        HistoryQuery, cache="never",
        doc=f"One entry for each book, selection and line, in the order of the board; each has its opening price and "
        f"the newest {MOST_POINTS} points of the requested period. Times are when the board changed.",
    ),
    Endpoint(
        "/historical/odds/closing", with_tables(closings, history_tables.CLOSING),
        "Closing lines of a day", _HISTORICAL, Page[Closing],
        ClosingsQuery, cache="never",
        doc="The closing lines of the events that started on a day, US Eastern time, sorted by start; each as in "
        f"`/odds/closing`. A page has at most {MOST_LINES:,} lines, so it may have fewer events than `limit`. They are "
        "available for 30 days.",
    ),
    Endpoint(
        "/historical/clv", with_tables(clv, history_tables.CLV),
        "Closing line value of +EV opportunities", _HISTORICAL, ClvPage,
        ClvQuery, feature="ev", cache="never",
        doc="CLV is the price, after commission, times the fair probability at the close, minus 1, in percent. "
        "Standard errors are clustered by event. Bets whose close has no reference are counted but not graded. "
        "`avg_others_clv` is by the close of all books except the bet's own and those that share its feed, because a "
        "reference graded by itself looks too good. Results are of full-time markets with a known final score.",
    ),
)  # fmt: skip
