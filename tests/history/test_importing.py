"""Imported histories: they play as the same prices fed directly, and what is left out is counted."""

import bz2
import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backtesting.test_scan import FIGURES, quotes
from support.betfair import back, definition

import oddsengine as oe
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.matching import PriceIds, price_of

KEYS = {
    "moneyline": "h2h", "h2h": "h2h", "moneyline_3way": "h2h", "point_spread": "spreads", "spreads": "spreads",
    "total_points": "totals", "total_goals": "totals", "totals": "totals",
}  # fmt: skip
Json = dict[str, Any]


def events(snapshot: pl.DataFrame) -> list[Json]:
    """A snapshot of prices as The Odds API lists it: main lines of each book."""
    games = []
    for (ident,), game in snapshot.group_by("event_id", maintain_order=True):
        first = game.row(0, named=True)
        makers = []
        for (book,), prices in game.group_by("sportsbook", maintain_order=True):
            offers = []
            for (key,), market in prices.group_by("market_type", maintain_order=True):
                outcomes = [
                    {"name": first.get(f"{side}_team") or side.title(), "price": odds}
                    | ({} if line is None else {"point": line})
                    for side, odds, line in market.select("selection_type", "odds_decimal", "line").rows()
                ]
                offers.append({"key": key, "last_update": iso(first["last_seen_at"]), "outcomes": outcomes})
            makers.append({"key": book, "title": book, "last_update": iso(first["last_seen_at"]), "markets": offers})
        games.append(
            {
                "id": ident, "sport_key": f"{first['sport']}_{first['league']}", "home_team": first["home_team"],
                "away_team": first["away_team"], "commence_time": iso(first["event_start_time"]), "bookmakers": makers,
            }
        )  # fmt: skip
    return games


def iso(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


def season(seed: int) -> Iterator[tuple[datetime, list[Json]]]:
    """Snapshots of a simulated board, as The Odds API would have listed them."""
    wanted = pl.col("market_type").replace_strict(KEYS, default=None).alias("market_type")
    frame = quotes(seed).with_columns(wanted).drop_nulls(["market_type", "selection_type"])
    american = pl.Series(oe.american_to_decimal(frame["odds_american"].fill_null(float("nan"))))
    frame = frame.with_columns(odds_decimal=pl.col("odds_decimal").fill_null(american).round(4))
    price = ["event_id", "sportsbook", "market_type", "selection_type", "line", "last_seen_at"]
    frame = frame.unique(price, keep="first", maintain_order=True)
    screens: dict[Any, pl.DataFrame] = {}  # the prices of a game at a book, when it sent them last
    for (at,), sent in frame.group_by("last_seen_at", maintain_order=True):
        screens |= dict(sent.group_by("event_id", "sportsbook", maintain_order=True))
        board = pl.concat(screens[key] for key in sorted(screens))
        yield at.replace(microsecond=0), events(board.filter(pl.col("event_start_time") > at))


def fed_directly(snapshots: list[tuple[datetime, list[Json]]]) -> set[tuple[Any, ...]]:
    """Kind, id, birth and first figure of everything that an engine shows which is fed with the responses."""
    engine, parser, ids = oe.Engine(), TheOddsApi(), PriceIds()
    view = engine.view(keep=True, min_ev=0.0)
    found: set[tuple[Any, ...]] = set()
    before: set[str] = set()
    for at, listed in snapshots:
        scope = RequestScope.of(["h2h", "spreads", "totals"], events=[event["id"] for event in listed])
        payload = parser.read(json.dumps(listed).encode(), scope, at)
        rows = {price_of(row): row["row_id"] for row in engine.table().to_dicts()}
        engine.step(payload.quotes, now=at, removed=[rows[one] for one in ids.removed(payload.removed, payload.quotes)])
        ids.learn(payload.quotes)
        now = {
            ident: (kind, ident[-16:], at, round(figure, 9))
            for kind, frame in view.opportunities().frames.items()
            for ident, figure in frame.select("id", FIGURES[kind]).rows()
        }
        found |= {shown for ident, shown in now.items() if ident not in before}
        before = set(now)
    return found
