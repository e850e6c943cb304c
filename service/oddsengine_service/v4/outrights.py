"""Futures as outrights: each kind of a league is a sport, with an event for each season.

For over and under, or yes and no, `description` is the name of the team or player.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET

from oddsengine import catalog
from oddsengine.catalog import futures_catalog
from oddsengine.feeds.the_odds_api_names import book_key, outright_key
from oddsengine.futures import FuturesBoard, FuturesMarket
from oddsengine.tables.timestamps import micros
from oddsengine_service.errors import quoted
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.v4_errors import refused
from oddsengine_service.tiers import feature_above
from oddsengine_service.v4.bookmakers import OUTRIGHTS, books
from oddsengine_service.v4.sports_and_events import group, v4_id, written
from oddsengine_service.v4.v4_response import V4Bookmaker, V4Event, V4EventOdds, V4Market, V4Outcome, V4Sport
from oddsengine_service.wire.numbers import precise, whole_americans

_FEATURE = "futures"
_SIDES = ("OVER_UNDER", "YES_NO")


class Outright(NamedTuple):
    """A sport of outrights, on the board that a request has taken."""

    key: str
    board: FuturesBoard
    markets: Sequence[FuturesMarket]


def listed(context: Context) -> list[V4Sport]:
    """The sports of outrights that the caller may see."""
    if _FEATURE not in context.caller.features:
        return []
    return [
        V4Sport(key, group(markets[0].sport), title(markets[0]), title(markets[0]), True, True)  # noqa: FBT003
        for key, markets in _by_key(context.node.futures.board).items()
    ]


def _by_key(board: FuturesBoard) -> Mapping[str, list[FuturesMarket]]:
    out: dict[str, list[FuturesMarket]] = {}
    for _, market in sorted(board.markets.items()):
        out.setdefault(outright_key(market.sport, market.league, market.kind), []).append(market)
    return dict(sorted(out.items()))


def title(market: FuturesMarket) -> str:
    """The name of a kind of futures, without season, subject and line."""
    league = catalog.leagues().get(market.league)
    return f"{league.name if league is not None else market.league} {catalog_kind(market.kind)}".strip()


def catalog_kind(kind: str) -> str:
    """The name of a kind.

    Examples
    --------
    >>> catalog_kind("championship"), catalog_kind("coach_of_the_year")
    ('Champion', 'coach of the year')
    """
    return futures_catalog.kind(kind).name.replace("_", " ")


def outright_of(context: Context, key: str) -> Outright | None:
    """The sport of outrights with a key; None if it is not one. Raises `Problem` 403."""
    board = context.node.futures.board
    markets = _by_key(board).get(key)
    if markets is None:
        return None
    if _FEATURE not in context.caller.features:
        raise feature_above(_FEATURE, context.caller.tier)
    return Outright(key, board, markets)


def events(context: Context, outright: Outright) -> list[V4Event]:
    """The seasons of a sport of outrights."""
    return [event for event, _ in _seasons(context, outright)]


def with_prices(context: Context, outright: Outright) -> list[V4EventOdds]:
    """The seasons of a sport of outrights with the prices of the requested bookmakers. Raises `Problem` 422."""
    query = context.query
    for word in query.markets or ():
        if word not in OUTRIGHTS:
            raise refused("INVALID_MARKET_COMBO", f"{outright.key} has the market outrights only, got {quoted(word)}")
    chosen, regions = books(context)
    priced = "outrights" in (query.markets or ("outrights",))
    out = []
    for event, table in _seasons(context, outright):
        if not query.get("event_ids") or event.id in query.event_ids:
            makers = _makers(query, outright, table, chosen, regions) if priced else []
            out.append(V4EventOdds(**msgspec.structs.asdict(event), bookmakers=makers))
    return out


def _seasons(context: Context, outright: Outright) -> Iterator[tuple[V4Event, pl.DataFrame]]:
    """The seasons of a sport of outrights, each with its prices."""
    seasons: dict[str, list[FuturesMarket]] = {}
    for market in outright.markets:
        seasons.setdefault(market.season, []).append(market)
    for season, own in sorted(seasons.items()):
        table = outright.board.table.filter(pl.col("market_id").is_in([market.id for market in own]))
        start: Any = table["event_start_time"].min()
        when = None if start is None else written(micros(start), context.query.date_format)
        yield V4Event(v4_id(f"{outright.key} {season}"), outright.key, title(own[0]), when, None, None), table


def _makers(
    query: Any, outright: Outright, table: pl.DataFrame, chosen: frozenset[str] | None, regions: tuple[str, ...]
) -> list[V4Bookmaker]:
    table = table.filter(pl.col("is_active").fill_null(value=True) & pl.col("odds_decimal").is_not_null())
    columns = ("book", "market_id", "pick", "odds_decimal", "odds_american", "deep_link", "last_seen_at")
    makers: dict[str, list[tuple[V4Outcome, datetime]]] = {}
    for book, market_id, *price, seen in table.select(columns).sort(columns[:3]).iter_rows():
        if chosen is None or book in chosen:
            makers.setdefault(book, []).append((_outcome(query, outright.board.markets[market_id], *price), seen))
    out = []
    for book, prices in makers.items():
        updated = written(micros(max(seen for _, seen in prices)), query.date_format)
        market = V4Market("outrights", updated, [outcome for outcome, _ in prices])
        out.append(V4Bookmaker(book_key(book, regions), catalog.book(book).name, updated, [market]))
    return out


def _outcome(
    query: Any, market: FuturesMarket, pick: str, decimal: float, american: float | None, link: str | None
) -> V4Outcome:
    price: float = precise(decimal)
    if query.odds_format == "american":
        (price,) = whole_americans(np.array([decimal]), np.array([np.nan if american is None else american]))
    sided = market.type in _SIDES
    return V4Outcome(
        pick.split(" ", 1)[0] if sided else pick, price, UNSET if market.line is None else market.line,
        market.subject if sided else UNSET, link if query.links else UNSET, None if query.sids else UNSET,
        None if query.limits else UNSET,
    )  # fmt: skip
