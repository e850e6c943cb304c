"""Futures: markets over a season or a tournament, on a board of their own, with all books' prices.

Enterprise only. Derived values (fair probabilities, +EV, hold, arbitrage) are given only for complete markets, which
`oddsengine.futures` defines. A market's counts and best prices are over the requested books.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import compress
from typing import Annotated, Any, NamedTuple

import numpy as np

from oddsengine import catalog, decimal_to_american
from oddsengine.catalog.futures_catalog import TYPES
from oddsengine.columns import Bools
from oddsengine.futures import REASONS, Evaluation, FuturesBoard, Sheet, price_id
from oddsengine.maths.rounding import exact
from oddsengine.query import BoardIds, values
from oddsengine_service import shared_params
from oddsengine_service.board.futures_board import METHOD, NodeFutures
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.http.params import Param, Words
from oddsengine_service.routes.odds_routes import books_for
from oddsengine_service.shared_params import Pages, Places
from oddsengine_service.wire.envelopes import Page
from oddsengine_service.wire.futures_response import Future, FutureArbitrage, FutureLeg, FutureOdds
from oddsengine_service.wire.numbers import american, format_time, precise, rounded

_TAG = "Futures"


class _Selection(NamedTuple):
    """The markets that match a request, in order, and the prices that its key may see."""

    futures: NodeFutures
    board: FuturesBoard
    sheets: list[Sheet]
    books: frozenset[str] | None
    now: datetime | None
    strange: dict[str, list[str]]

    def judged(self, sheet: Sheet) -> Evaluation:
        return self.futures.judged(self.board, sheet.market.id, self.books, self.now)

    def visible(self, sheet: Sheet) -> Bools:
        """Which prices of a market are from the selected books."""
        own = np.array([self.books is None or book in self.books for book in sheet.books], np.bool_)
        return np.asarray((sheet.row >= 0) & own)


def _selected(context: Context, *, by_selection: bool) -> _Selection:
    """Apply the filters of a request. `q` may match the name of the market, or of a selection."""
    query: _FuturesQuery = context.query
    futures, board = context.node.futures, context.node.futures.board
    markets = list(board.markets.values())
    seen = BoardIds(
        {m.sport for m in markets}, {m.league for m in markets}, set(board.table["book"].unique().to_list()), ()
    )
    strange = shared_params.unknown_ids(query, lambda: seen, without="market")
    if query.market_id is not None:
        wrong = [word for word in query.market_id if word not in board.markets]
        strange |= {"market_id": wrong} if wrong else {}
        markets = [market for market in markets if market.id in query.market_id]
    if query.future_type is not None:
        markets = [market for market in markets if market.type == query.future_type]
    matching = which_match(query, [market.sport for market in markets], [market.league for market in markets])
    markets = list(compress(markets, matching))
    books = books_for(context, query.sportsbook)
    selection = _Selection(futures, board, [], books, context.board.now, strange)
    order = sorted(markets, key=lambda m: (m.sport, m.league, m.name, m.id))
    selection.sheets.extend(sheet for m in order if selection.visible(sheet := board.sheets[m.id]).any())
    if query.q is not None and not by_selection:
        texts = [" ".join((sheet.market.name, *sheet.names)) for sheet in selection.sheets]
        matching = values.containing(query.q, texts)
        selection.sheets[:] = [sheet for sheet, wanted in zip(selection.sheets, matching, strict=True) if wanted]
    return selection


# ---- markets ----


def markets(context: Context) -> Any:
    selection = _selected(context, by_selection=False)
    complete = context.query.is_complete
    sheets = [
        sheet for sheet in selection.sheets if complete is None or bool(selection.judged(sheet).complete) == complete
    ]
    first = context.query.offset
    rows = [_market(sheet, selection) for sheet in sheets[first : first + context.query.limit]]
    return page(context, rows, len(rows), len(sheets), answer_meta(context, selection.strange))


def _market(sheet: Sheet, selection: _Selection) -> Future:
    judged, visible, market, field = selection.judged(sheet), selection.visible(sheet), sheet.market, sheet.field
    books = np.flatnonzero(visible.any(axis=0)).tolist()
    rows = selection.board.table[sheet.row[visible].tolist()]
    return Future(
        market_id=market.id, display_name=market.name, sport=market.sport, league=market.league,
        future_type=market.type, selection_count=np.flatnonzero(visible.any(axis=1)).size,
        books_available=len(books), season=market.season or None, subject=market.subject or None,
        line=market.line, places=sheet.places or None, event_start_time=_time(rows["event_start_time"].min()),
        last_update=_time(rows["last_seen_at"].max()),
        books=[sheet.books[at] for at in books],
        field_size=None if field is None else len(field.contestants),
        field_source=None if field is None else field.source, is_complete=judged.complete,
        incomplete_reason=judged.why or None, hold_percentage=_percent(judged.hold),
        reference_book=judged.reference or None, reference_hold=_percent(judged.margin), devig_method=METHOD,
        arbitrage=_arbitrage(judged),
    )  # fmt: skip


def _arbitrage(judged: Evaluation) -> FutureArbitrage | None:
    arbitrage, sheet = judged.arbitrage, judged.sheet
    if arbitrage is None:
        return None
    legs = [
        FutureLeg(
            selection=sheet.names[place], sportsbook=sheet.books[book],
            odds_american=american(float(decimal_to_american(sheet.odds[place, book]))),
            odds_decimal=precise(float(sheet.odds[place, book])), implied_probability=precise(1.0 / odds),
            stake_percent=exact(100.0 * share),
        )
        for place, book, odds, share in zip(
            sheet.place.tolist(), arbitrage.book.tolist(), arbitrage.odds.tolist(), arbitrage.share.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return FutureArbitrage(
        id=arbitrage.id,
        profit_percent=exact(100.0 * arbitrage.profit),
        implied_total=exact(100.0 * arbitrage.implied),
        legs=legs,
    )


# ---- prices ----


def odds(context: Context) -> Any:
    selection = _selected(context, by_selection=True)
    masks = [_which_match(context, sheet, selection) for sheet in selection.sheets]
    counts = [int(mask.sum()) for mask in masks]
    first, last = context.query.offset, context.query.offset + context.query.limit
    rows: list[FutureOdds] = []
    before = 0
    for sheet, mask, count in zip(selection.sheets, masks, counts, strict=True):
        low, high = max(first - before, 0), min(last - before, count)
        if low < high:
            rows += _prices(sheet, selection, np.argwhere(mask)[low:high].tolist())
        before += count
    return page(context, rows, len(rows), before, answer_meta(context, selection.strange))


def _which_match(context: Context, sheet: Sheet, selection: _Selection) -> Bools:
    mask = selection.visible(sheet)
    query: FuturesOddsQuery = context.query
    if query.selection is not None:
        mask = mask & np.array(values.named(query.selection, sheet.names), np.bool_)[:, None]
    if query.q is not None and not values.containing(query.q, [sheet.market.name])[0]:
        mask = mask & np.array(values.containing(query.q, sheet.names), np.bool_)[:, None]
    return np.asarray(mask)


def _prices(sheet: Sheet, selection: _Selection, places: Sequence[Sequence[int]]) -> Iterator[FutureOdds]:
    judged, market = selection.judged(sheet), sheet.market
    rows = selection.board.table[[int(sheet.row[i, j]) for i, j in places]]
    columns = ("odds_american", "odds_decimal", "event_start_time", "last_seen_at", "odds_changed_at", "is_active",
               "deep_link")  # fmt: skip
    for (i, j), row in zip(places, rows.select(columns).iter_rows(), strict=True):
        price, decimal, start, last, changed, active, link = row
        fair = float(judged.fair[i])
        fair_probability = None if np.isnan(fair) else precise(fair)
        yield FutureOdds(
            id=price_id(market.id, sheet.names[i], sheet.books[j]), selection=sheet.names[i], sportsbook=sheet.books[j],
            odds_american=american(price), odds_decimal=precise(decimal), probability=precise(1.0 / decimal),
            line=market.line, future_market_id=market.id, future_market_name=market.name,
            event_start_time=_time(start), timestamp=_written(last), sport=market.sport, league=market.league,
            future_type=market.type, season=market.season or None, subject=market.subject or None,
            sportsbook_name=catalog.book(sheet.books[j]).display_name, is_active=active, last_seen_at=_written(last),
            odds_changed_at=_written(changed), deep_link=link, is_complete=judged.complete,
            is_best=bool(judged.best[i] == j), fair_probability=fair_probability,
            no_vig_odds=None if fair_probability is None else american(float(decimal_to_american(1.0 / fair))),
            ev_percentage=_percent(float(judged.edge[i, j])), set_aside=REASONS[judged.rejected[i, j]] or None,
        )  # fmt: skip


def _percent(value: float) -> float | None:
    return None if np.isnan(value) else rounded(100.0 * value)


def _time(value: Any) -> str | None:
    return format_time(value) if isinstance(value, datetime) else None


def _written(value: datetime) -> str:
    return format_time(value) or ""


class _FuturesQuery(Pages, Places):
    """Parameters of both lists."""

    market_id: Annotated[Words, Param("Ids of markets.", aliases=("market", "future_market_id"))] = None
    future_type: Annotated[str | None, Param("Type of futures market.", choices=TYPES)] = None
    sportsbook: shared_params.Sportsbook = None
    q: Annotated[str | None, Param("Part of a market or selection name.")] = None


class FuturesQuery(_FuturesQuery):
    """Parameters of `/futures`."""

    is_complete: Annotated[
        bool | None, Param("true: only markets with prices for the whole field; false: only the others.")
    ] = None


class FuturesOddsQuery(_FuturesQuery):
    """Parameters of `/futures/odds`."""

    selection: Annotated[Words, Param("Selections by name.")] = None


endpoints = (
    Endpoint(
        "/futures", markets, "Markets of futures", _TAG, Page[Future],
        FuturesQuery,
        feature="futures",
        doc="A market is complete if its contestants are known from the catalog, the operator or the market itself, no "
        "book quotes any other contestant, and each has at least one accepted price. Only complete markets have a "
        "hold, a reference or an arbitrage. Figures are over the requested books; guards and the reference use all.",
    ),
    Endpoint(
        "/futures/odds", odds, "Prices of futures", _TAG, Page[FutureOdds],
        FuturesOddsQuery,
        feature="futures",
        doc="`set_aside` says why a price is rejected: unusable (not offered, decimal and American prices that differ, "
        "a mid price, priced twice), stale, other_field (an `Any other` for different contestants), book_sum, outlier, "
        "ev_cap. Fair probabilities sum to the number of winning places, not to one.",
    ),
)  # fmt: skip
