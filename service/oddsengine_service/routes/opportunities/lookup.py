"""One opportunity looked up again by its id: its row as of now, or why it ended.

It is looked for in the view that the list of the same query has. What is not there, but was a short while ago (see
`board.ended`), and whose prices stand, is looked for once more at a lower threshold: fair prices move too.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine import catalog
from oddsengine.detection.kinds import ARBITRAGE, BUILT_IN, EV, KINDS, LOW_HOLD, MIDDLES, Kind, bets_of
from oddsengine.maths.odds import format_american
from oddsengine_service import shared_params
from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Query
from oddsengine_service.routes.odds_routes import index_of
from oddsengine_service.routes.opportunities.lists import (
    TAG,
    DevigBook,
    DevigMethod,
    ev_reference,
    opened,
    rows_of,
    selected,
)
from oddsengine_service.wire.contract import Arbitrage, Ev, LowHold, Middle
from oddsengine_service.wire.encoded_columns import book_id
from oddsengine_service.wire.encodings import ENCODINGS
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.odds_response import Odds, odds

MIDDLE_ID = "[0-9a-f]{16}"
_ID = re.compile(f"(?:.*:)?{MIDDLE_ID}", re.DOTALL)


class LookupQuery(Query):
    """Parameters of one opportunity: those of the list that decide which there are."""

    sportsbook: shared_params.Sportsbook = None
    location: shared_params.Location = None
    location_unknown: shared_params.LocationUnknown = False
    add_sportsbook: shared_params.AddSportsbook = None
    stake: shared_params.Stake = None
    state: shared_params.State = None
    include: shared_params.Refs = None


class EvLookupQuery(LookupQuery):
    """Parameters of one +EV opportunity."""

    devig_book: DevigBook = None
    devig_method: DevigMethod = None
    include: shared_params.Include = None


class _Lookup(NamedTuple):
    """The parts of a lookup that differ by kind."""

    kind: Kind
    reference: Callable[[Context, dict[str, list[str]]], dict[str, Any] | None] = lambda *_: {}
    always: bool = False  # look for unknown ids at the lower threshold too
    pattern: re.Pattern[str] = _ID


class _Bet(NamedTuple):
    """One bet of an opportunity at one book."""

    book: str
    price: int  # id
    selection: str
    decimal: float
    american: float


class _End(NamedTuple):
    """Why an opportunity ended."""

    reason: str
    text: str


def _answer(own: _Lookup, context: Context) -> Any:
    ident = context.path["id"]
    if not own.pattern.fullmatch(ident):
        if own.pattern is not _ID:
            raise invalid(f"{own.kind.name} id must be 16 hexadecimal digits, got {quoted(ident)}")
        raise _unknown(ident)
    books, unknown = selected(context)
    reference = own.reference(context, unknown)
    if reference is None or (books is not None and not books):
        raise _unknown(ident)

    def row_at(threshold: float | None) -> Any:
        view = {**reference, own.kind.threshold.name: threshold}
        encoding = context.node.boards.encodings[own.kind.name]
        found = opened(context, own.kind, books, **view).one(own.kind.name, encoding, ident)
        return None if found is None else rows_of(context, own.kind, found[0], [found[1]])[0]

    row = row_at(own.kind.threshold.usual)
    return data(context, _unlisted(context, own, books, row_at) if row is None else row, unknown)


def _unlisted(
    context: Context, own: _Lookup, books: frozenset[str] | None, row_at: Callable[[float | None], Any]
) -> Any:
    """The row of an opportunity that is open below the list's usual threshold only.

    Raises `Problem` 404, with why it ended if that is known.
    """
    ident, kind = context.path["id"], own.kind
    last = _last(context, kind, ident, books)
    end = None if last is None else _end(context, last, books)
    if end is None and (last is not None or own.always):
        limit = kind.threshold
        row = row_at(limit.lower(limit.usual or 0.0 if last is None else last[kind.value]))
        if row is not None:
            return row
    if last is None:
        raise _unknown(ident)
    end = end or _End("below_threshold", _below(kind) if context.query.stake is None else _BELOW_OF_STAKE)
    raise Problem(404, "not_found", f"opportunity {quoted(ident)} has ended: {end.text}", reason=end.reason)


def _unknown(ident: str) -> Problem:
    return Problem(
        404, "not_found", f"no open opportunity {quoted(ident)}: unknown id, or ended more than ten minutes ago"
    )


# ---- why it ended ----


def _last(context: Context, kind: Kind, ident: str, books: frozenset[str] | None) -> Mapping[str, Any] | None:
    """The last row of an opportunity that ended, if all its bets are at books of the request.

    It may be of another view than that of the request. Its bets and their best levels are the same in all of them.
    """
    raw = context.node.boards.ended.find(context.board, kind.name, ident)
    if raw is None:
        return None
    row = kind.row(msgspec.json.decode(raw))
    return row if all(_visible(bets, books) for bets in _bets(row)) else None


def _bets(row: Mapping[str, Any]) -> Iterator[list[_Bet]]:
    """The bets of an opportunity; a side of a low hold may be bet at several books."""
    for bet in bets_of(row):
        ids = bet.get("odds_ids") or {bet["sportsbook"]: bet["odds_id"]}
        yield [
            _Bet(book_id(book), int(ident, 16), bet["selection"], bet["odds_decimal"], bet["odds_american"])
            for book, ident in ids.items()
            if ident is not None
        ]


def _visible(bets: list[_Bet], books: frozenset[str] | None) -> list[_Bet]:
    return [bet for bet in bets if books is None or bet.book in books]


def _end(context: Context, row: Mapping[str, Any], books: frozenset[str] | None) -> _End | None:
    """What happened to the prices of a row; None if all of them stand."""
    legs = [_visible(bets, books) for bets in _bets(row)]
    prices = _prices(context, [bet.price for bets in legs for bet in bets])
    now = context.board.now
    start = row["event_start_time"]
    begun = not row["is_live"] and (
        any(price.is_live for price in prices.values())
        or (start is not None and now is not None and datetime.fromisoformat(start) <= now)
    )
    if begun:
        return _End("event_started", "the event has started")
    for bets in legs:
        ends = [_end_of(bet, prices.get(bet.price)) for bet in bets]
        if None not in ends:
            return ends[0]
    return None


def _prices(context: Context, ids: list[int]) -> dict[int, Odds]:
    """Prices on the caller's board, by id."""
    with index_of(context).reader(judged=True) as reader:
        rows = odds(reader.take(reader.prices_of(np.array(ids, np.uint64))))
    return {int(row.id, 16): row for row in rows}


def _end_of(bet: _Bet, price: Odds | None) -> _End | None:
    """What happened to a price; None if it stands."""
    book = catalog.book(bet.book).display_name
    if price is None:
        return _End("price_gone", f"{book} does not offer {bet.selection} any more")
    if not price.is_active:
        return _End("price_suspended", f"{book} has suspended {bet.selection}")
    if abs(price.odds_decimal - bet.decimal) > 1e-6:
        old, new = format_american(bet.american), format_american(price.odds_american)
        if old == new:  # after rounding
            old, new = f"{bet.decimal:.8g}", f"{price.odds_decimal:.8g}"
        return _End("price_moved", f"{bet.selection} at {book} moved from {old} to {new}")
    if price.rejection is not None and price.rejection.guard == "stale":
        return _End("book_stale", f"{bet.selection} at {book} was not seen for too long")
    if price.rejection is not None:
        return _End("price_rejected", f"{bet.selection} at {book}: {price.rejection.reason}")
    return None


_BELOW_OF_EV = "its price stands, but the fair price has moved, and the EV is too low"
_BELOW = "its prices stand, but its {} is beyond the list's limit, or other prices are better"
_BELOW_OF_STAKE = (
    "its best levels are unchanged, but further levels, the fair price or other prices have changed what this stake "
    "earns"
)


def _below(kind: Kind) -> str:
    return _BELOW_OF_EV if kind is EV else _BELOW.format(kind.spelled or kind.measure)


# ---- endpoints ----


def _endpoint(path: str, own: _Lookup, one: str, returns: Any, query: type[Query] = LookupQuery) -> Endpoint:
    kinds = {} if own.pattern is _ID else {"id": {"pattern": f"^{own.pattern.pattern}$"}}
    return Endpoint(
        f"/opportunities/{path}/{{id}}", partial(_answer, own), f"One {one}", TAG, Data[returns], query,
        feature=own.kind.name, path_kinds=kinds, doc=_DOC,
    )  # fmt: skip


_DOC = (
    "Its row as of now, over the books of the request. One that was open and fell below the list's usual threshold is "
    "still answered, if it is not far below. For ten minutes a 404 says why it ended, if this process has sent it: "
    "`reason` is price_moved, price_gone, price_suspended, price_rejected, book_stale, event_started or "
    "below_threshold."
)
endpoints = (
    _endpoint("ev", _Lookup(EV, ev_reference), "+EV opportunity", Ev, EvLookupQuery),
    _endpoint("arbitrage", _Lookup(ARBITRAGE), "arbitrage", Arbitrage),
    _endpoint("middles", _Lookup(MIDDLES, always=True, pattern=re.compile(MIDDLE_ID)), "middle", Middle),
    _endpoint("low_hold", _Lookup(LOW_HOLD), "low hold", LowHold),
    *(
        _endpoint(kind.name, _Lookup(kind), kind.one.replace("_", " "), ENCODINGS[kind.name].struct)
        for kind in KINDS.values()
        if kind not in BUILT_IN
    ),
)
