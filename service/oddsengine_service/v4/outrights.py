"""Futures as outrights: each kind of a league is a sport, with an event for each season.

For over and under, or yes and no, `description` is the name of the team or player.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import polars as pl
from msgspec import UNSET

from oddsengine import catalog
from oddsengine.catalog import futures
from oddsengine.feeds.the_odds_api_names import book_key, outright_key
from oddsengine.futures import FuturesBoard, Sheet
from oddsengine.maths.odds import decimal_to_american
from oddsengine.tables.timestamps import micros
from oddsengine_service.accounts.tiers import feature_above
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.problems import quoted
from oddsengine_service.v4.bodies import V4Bookmaker, V4Event, V4EventOdds, V4Market, V4Outcome, V4Sport
from oddsengine_service.v4.errors import refused
from oddsengine_service.v4.games import group, v4_id, written
from oddsengine_service.v4.prices import OUTRIGHTS, books

_FEATURE = "futures"
_SIDES = ("OVER_UNDER", "YES_NO")


def listed(context: Context) -> list[V4Sport]:
    """The sports of outrights that the caller may see."""
    if _FEATURE not in context.caller.features:
        return []
    return [
        V4Sport(key, group(sheets[0].market.sport), title(sheets[0]), title(sheets[0]), True, True)  # noqa: FBT003
        for key, sheets in _by_key(context.node.futures.board).items()
    ]


def _by_key(board: FuturesBoard) -> Mapping[str, list[Sheet]]:
    out: dict[str, list[Sheet]] = {}
    for sheet in board.sheets.values():
        market = sheet.market
        out.setdefault(outright_key(market.sport, market.league, market.kind), []).append(sheet)
    return dict(sorted(out.items()))


def title(sheet: Sheet) -> str:
    """The name of a kind of futures, without season, subject and line."""
    league = catalog.leagues().get(sheet.market.league)
    kind = catalog_kind(sheet.market.kind)
    return f"{league.name if league is not None else sheet.market.league} {kind}".strip()


def catalog_kind(kind: str) -> str:
    """The name of a kind.

    Examples
    --------
    >>> catalog_kind("championship"), catalog_kind("coach_of_the_year")
    ('Champion', 'coach of the year')
    """
    return futures.kind(kind).name.replace("_", " ")


def sheets_of(context: Context, key: str) -> list[Sheet] | None:
    """The markets of a sport of outrights; None if it is not one. Raises `Problem` 403."""
    found = _by_key(context.node.futures.board).get(key)
    if found is not None and _FEATURE not in context.caller.features:
        raise feature_above(_FEATURE, context.caller.tier)
    return found


def event_of(sheets: Sequence[Sheet], key: str, season: str, start: datetime | None, dates: str) -> V4Event:
    when = None if start is None else written(micros(start), dates)
    return V4Event(v4_id(f"{key} {season}"), key, title(sheets[0]), when, None, None)


def events(context: Context, key: str, sheets: Sequence[Sheet]) -> list[V4Event]:
    """The seasons of a sport of outrights."""
    board, dates = context.node.futures.board, context.query.date_format
    return [event_of(own, key, season, _table(board, own)["event_start_time"].min(), dates)  # type: ignore[arg-type]
            for season, own in _seasons(sheets).items()]  # fmt: skip


def with_prices(context: Context, key: str, sheets: Sequence[Sheet]) -> list[V4EventOdds]:
    """The seasons of a sport of outrights with the prices of the requested bookmakers. Raises `Problem` 422."""
    query = context.query
    for word in query.markets or ():
        if word not in OUTRIGHTS:
            raise refused("INVALID_MARKET_COMBO", f"{key} has the market outrights only, got {quoted(word)}")
    chosen, regions = books(context)
    ids = {event.id: event for event in events(context, key, sheets)}
    out = []
    for (ident, event), own in zip(ids.items(), _seasons(sheets).values(), strict=True):
        if not query.get("event_ids") or ident in query.event_ids:
            makers = _makers(context, own, chosen, regions) if "outrights" in (query.markets or ("outrights",)) else []
            out.append(V4EventOdds(**msgspec.structs.asdict(event), bookmakers=makers))
    return out


def _seasons(sheets: Sequence[Sheet]) -> dict[str, list[Sheet]]:
    out: dict[str, list[Sheet]] = {}
    for sheet in sheets:
        out.setdefault(sheet.market.season, []).append(sheet)
    return dict(sorted(out.items()))


def _table(board: FuturesBoard, sheets: Sequence[Sheet]) -> pl.DataFrame:
    return board.table.filter(pl.col("market_id").is_in([sheet.market.id for sheet in sheets]))


def _makers(
    context: Context, sheets: Sequence[Sheet], chosen: frozenset[str] | None, regions: tuple[str, ...]
) -> list[V4Bookmaker]:
    query = context.query
    markets = {sheet.market.id: sheet.market for sheet in sheets}
    table = _table(context.node.futures.board, sheets).filter(
        pl.col("is_active").fill_null(value=True) & pl.col("odds_decimal").is_not_null()
    )
    columns = ("book", "market_id", "pick", "odds_decimal", "odds_american", "deep_link", "last_seen_at")
    makers: dict[str, list[tuple[V4Outcome, datetime]]] = {}
    for book, market_id, *price, seen in table.select(columns).sort(columns[:3]).iter_rows():
        if chosen is None or book in chosen:
            makers.setdefault(book, []).append((_outcome(query, markets[market_id], *price), seen))
    out = []
    for book, prices in makers.items():
        updated = written(micros(max(seen for _, seen in prices)), query.date_format)
        market = V4Market("outrights", updated, [outcome for outcome, _ in prices])
        out.append(V4Bookmaker(book_key(book, regions), catalog.book(book).name, updated, [market]))
    return out


def _outcome(query: Any, market: Any, pick: str, decimal: float, american: float | None, link: str | None) -> V4Outcome:
    price: float = round(decimal, 6)
    if query.odds_format == "american":
        price = round(float(decimal_to_american(decimal)) if american is None else american)
    sided = market.type in _SIDES
    return V4Outcome(
        pick.split(" ", 1)[0] if sided else pick, price, UNSET if market.line is None else market.line,
        market.subject if sided else UNSET, link if query.links else UNSET, None if query.sids else UNSET,
        None if query.limits else UNSET,
    )  # fmt: skip
