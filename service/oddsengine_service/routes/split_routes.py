"""Betting splits: how the public bets, by money and by number of bets, as posted by sources.

One record per event and book, the newest. Every five minutes one is stored as a snapshot, for 48 hours. An operator's
source posts them with the token of the settings; the demo makes its own (`service.splits`).
"""

from datetime import datetime, timedelta
from itertools import compress
from typing import Annotated, Any

from oddsengine import catalog
from oddsengine.columns import SECOND
from oddsengine.query import BoardIds
from oddsengine.tables.timestamps import micros
from oddsengine_service import shared_params
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.board.split_store import KEPT_S
from oddsengine_service.errors import invalid
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.http.params import Param, Query, Words
from oddsengine_service.shared_params import Pages, Places
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.numbers import format_time
from oddsengine_service.wire.splits_response import SplitsHistory, SplitsPage, SplitsPosted, SplitsStored

_TAG = "Betting Splits"
_MARKETS = ("spread", "total", "moneyline")


def _late(context: Context) -> datetime:
    """The time of a response: splits are delayed like everything else."""
    return context.node.clock.now() - timedelta(seconds=context.caller.tier.delay)


def splits(context: Context) -> Any:
    query: SplitsQuery = context.query
    rows = context.node.splits.latest(_late(context))
    seen = BoardIds([r.sport for r in rows], [r.league for r in rows], [r.sportsbook for r in rows], ())
    unknown = shared_params.unknown_ids(query, lambda: seen, without="market")
    if query.market is not None:
        unknown_markets = [word for word in query.market if word not in _MARKETS]
        if unknown_markets:
            unknown["market"] = unknown_markets
        rows = [row for row in rows if any(getattr(row, name) for name in query.market if name in _MARKETS)]
    columns = zip(*((row.sport, row.league, row.event_id) for row in rows), strict=True)
    rows = list(compress(rows, which_match(query, *columns))) if rows else []
    if query.sportsbook is not None:
        books = {catalog.book(word).id for word in query.sportsbook}
        rows = [row for row in rows if row.sportsbook in books]
    shown = rows[query.offset : query.offset + query.limit]
    whole = page(context, shown, len(shown), len(rows), answer_meta(context, unknown))
    updated_at = max((row.fetched_at for row in rows), default=None)
    return {"data": whole["data"], "pagination": whole["pagination"], "updated_at": updated_at, "meta": whole["meta"]}


def history(context: Context) -> Any:
    """Snapshots of one event, oldest first."""
    query: SplitsHistoryQuery = context.query
    books = None if query.sportsbook is None else {catalog.book(word).id for word in query.sportsbook}
    begin, end, now = query.start_time, query.end_time, _late(context)
    if begin is not None and end is not None and end < begin:
        raise invalid(f"end_time must not be before start_time, got {format_time(end)} and {format_time(begin)}")
    oldest = micros(now) - KEPT_S * SECOND
    entries = context.node.splits.history(
        query.event_id, books, oldest if begin is None else max(oldest, micros(begin)), min(now, end) if end else now
    )  # fmt: skip
    total = len(entries)
    entries = entries[-query.limit :]
    meta = {
        "event_id": query.event_id,
        "total": total,
        "books": sorted({entry.book for entry in entries}),
        "oldest": entries[0].ts if entries else None,
        "newest": entries[-1].ts if entries else None,
        "updated_at": format_time(now),
    }
    return {"success": True, "data": entries, "meta": answer_meta(context, None, **meta)}


def post(context: Context) -> Any:
    body: SplitsPosted = context.body
    now = context.node.clock.now()
    for at, record in enumerate(body.splits):
        if record.fetched_at is not None and (record.fetched_at - now).total_seconds() > 60.0:
            raise invalid(f"splits[{at}].fetched_at must not be in the future, got {format_time(record.fetched_at)}")
    accepted = context.node.put_splits(body.splits, now)
    return {"success": True, "data": SplitsStored(accepted, len(body.splits) - accepted)}


class SplitsQuery(Pages, Places):
    """Parameters of `/splits`."""

    sportsbook: shared_params.Sportsbook = None
    event: shared_params.Event = None
    market: Annotated[Words, Param("spread, total or moneyline: only events with splits for one of them.")] = None


class SplitsHistoryQuery(Query):
    """Parameters of `/splits/history`."""

    event_id: Annotated[str, Param("The id of an event, from /events.", missing="invalid_request")]
    sportsbook: shared_params.Sportsbook = None
    start_time: Annotated[datetime | None, Param("Start of the period: RFC 3339 or Unix seconds.", unix=True)] = None
    end_time: Annotated[
        datetime | None, Param("End of the period, not before `start_time`: RFC 3339 or Unix seconds.", unix=True)
    ] = None
    limit: Annotated[int, Param("Maximum number of snapshots; the newest are returned.", low=1, high=200)] = 100


endpoints = (
    Endpoint(
        "/splits", splits, "Betting splits", _TAG, SplitsPage,
        SplitsQuery,
        feature="splits", cache="never",
    ),
    Endpoint(
        "/splits/history", history, "History of betting splits", _TAG, SplitsHistory,
        SplitsHistoryQuery,
        feature="splits", cache="never",
        doc=f"Snapshots are five minutes apart and available for {KEPT_S // 3600} hours. The response has the newest "
        "`limit` matches, oldest first; `meta.total` counts all matches.",
    ),
    Endpoint(
        "/splits", post, "Post betting splits", _TAG, Data[SplitsStored], method="POST", key="operator",
        body=SplitsPosted, cache="never",
        doc="For an operator's source: `Authorization: Bearer` with the token of the settings.",
    ),
)  # fmt: skip
