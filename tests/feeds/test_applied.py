"""From bytes to opportunities: prices of several sources land in the right market of one board."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from feeds.test_samples import (
    ASKED,
    DRAFTKINGS,
    FIXTURES,
    IMAGE,
    PROPS,
    ROWS,
    SEASON,
    STREAM,
    encoded,
    game,
    ladder,
    maker,
    mcm,
    outcome,
)

from oddsengine.feeds import Payload, football_data
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.node_api import InterfaceStream
from oddsengine.feeds.optic import OpticOdds
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.live.engine import Engine

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
ID = "nba_celtics_lakers_2026-02-09"


def as_one(*read: Payload) -> list[dict[str, Any]]:
    """The quotes of payloads that are all about one game, under one event id, as a matcher would have it."""
    assert {(game.home, game.away) for payload in read for game in payload.games} == {
        ("Boston Celtics", "Los Angeles Lakers")
    }
    return [row | {"event_id": ID} for payload in read for row in payload.quotes]


def row_ids(engine: Engine, payload: Payload, event: str = ID) -> dict[str, str]:
    """Our ids of the rows that a source's ids mean, by what they quote."""
    names = ("sportsbook", "event_id", "market_type", "selection", "line", "player_name")
    ours = {tuple(row[:-1]): row[-1] for row in engine.table().select(*names, "row_id").iter_rows()}
    quoted: list[Mapping[str, Any]] = [row | {"event_id": event} for row in payload.quotes]
    return {row["id"]: ours[tuple(row.get(name) for name in names)] for row in quoted}


def test_an_arbitrage_between_a_book_and_an_exchange() -> None:
    book = TheOddsApi().read(
        encoded([game(maker("draftkings", h2h=[outcome("Los Angeles Lakers", 2.4), outcome("Boston Celtics", 1.65)]))]),
        ASKED,
    )
    exchange = BetfairMarkets().read(encoded(IMAGE))
    engine = Engine()
    view = engine.view(commission={"betfair_exchange": 0.0}, keep=True)
    engine.step(as_one(book, exchange), NOW)
    (found,) = view.opportunities().arbitrage.to_dicts()
    legs = {(leg["sportsbook"], leg["selection"]) for leg in found["legs"]}
    assert legs == {("draftkings", "Boston Celtics"), ("betfair_exchange", "Los Angeles Lakers")}
    assert found["implied_total"] == pytest.approx(100 * (1 / 1.65 + 1 / 2.7))
    # With what the exchange keeps of a win, as its definition says, the same prices are none.
    dear = engine.view(commission={"betfair_exchange": 0.05})
    assert dear.opportunities().arbitrage["implied_total"].to_list() == [
        pytest.approx(100 * (1 / 1.65 + 1 / (1 + 1.7 * 0.95)))
    ]


def test_a_suspended_exchange_is_no_leg() -> None:
    reader = BetfairMarkets()
    book = TheOddsApi().read(
        encoded([game(maker("draftkings", h2h=[outcome("Los Angeles Lakers", 2.4), outcome("Boston Celtics", 1.65)]))]),
        ASKED,
    )
    engine = Engine()
    view = engine.view(commission={"betfair_exchange": 0.0}, keep=True)
    engine.step(as_one(book, reader.read(encoded(IMAGE))), NOW)
    assert view.opportunities().arbitrage.height == 1
    halted = IMAGE["mc"][0]["marketDefinition"] | {"status": "SUSPENDED"}
    message = mcm({"id": "1.2001", "marketDefinition": halted}, pt=1770573605000)
    engine.step(as_one(reader.read(encoded(message))), NOW + timedelta(seconds=5))
    assert view.opportunities().arbitrage.height == 0


def test_all_sources_meet_in_the_same_markets() -> None:
    reader = TheOddsApi()
    featured = reader.read(encoded([game(DRAFTKINGS)]), ASKED)
    props = reader.read(encoded(PROPS), RequestScope.of(["player_points"], events=[game()["id"]]))
    optic = OpticOdds().read(encoded(FIXTURES))
    exchange = BetfairMarkets().read(encoded(IMAGE))
    ours = InterfaceStream().read("snapshot", encoded({"odds": ROWS}))
    renamed = [row | {"sportsbook": "circa"} for row in as_one(ours)]
    hers = [row | {"sportsbook": "caesars"} for row in as_one(optic)]
    engine = Engine()
    view = engine.view(keep=True, max_hold=50.0, min_profit=-90.0, max_profit=None)
    engine.step(as_one(featured, props, exchange) + renamed + hers, NOW)
    assert not {"unknown_outcome", "side_conflict", "unmapped", "no_line", "bad_price"} & set(engine.rejected_counts())
    held = view.opportunities().low_hold
    kinds = {(row["market_type"], row["line"]) for row in held.select("market_type", "line").to_dicts()}
    assert {("moneyline", None), ("point_spread", -4.5), ("total_points", 228.5), ("player_points", 27.5)} <= kinds
    best = held.filter(pl.col("market_type") == "moneyline").to_dicts()
    assert len(best) == 1


def test_removals_find_their_rows() -> None:
    reader, engine = TheOddsApi(), Engine()
    first = reader.read(encoded([game(DRAFTKINGS)]), ASKED)
    engine.step(as_one(first), NOW)
    ours = row_ids(engine, first)
    only = reader.read(encoded([game(maker("draftkings", h2h=DRAFTKINGS["markets"][0]["outcomes"]))]), ASKED)
    engine.step(as_one(only), NOW + timedelta(seconds=1), removed=[ours[given] for given in only.removed])
    assert set(engine.table()["market_type"]) == {"moneyline"}


def test_a_stream_keeps_a_board_fresh_while_the_upstream_sees_its_prices() -> None:
    reader, engine = InterfaceStream(), Engine()
    view = engine.view(keep=True, max_hold=50.0)
    now = NOW
    for name, given in STREAM[:4]:
        engine.step(reader.read(name, encoded(given)).quotes, now)
    ids = engine.table()["id"].to_list()
    assert view.opportunities().low_hold.height == 1
    for _ in range(60):
        now += timedelta(seconds=25)
        seen = {"odds": [{"id": given, "last_seen_at": now.isoformat()} for given in ids]}
        engine.step(reader.read("odds:seen", encoded(seen)).quotes, now)
    assert view.opportunities().low_hold.height == 1
    for _ in range(28):  # a stream that is alive says nothing of its rows
        now += timedelta(seconds=25)
        engine.step(reader.read("heartbeat", encoded({"timestamp": now.isoformat()})).quotes, now)
    assert view.opportunities().low_hold.height == 0


def test_a_season_replays_to_its_closing_prices() -> None:
    engine = Engine()
    for payload in football_data.read(SEASON).payloads():
        engine.step(payload.quotes, payload.moment)
    table = engine.table().filter(pl.col("home_team") == "Fulham")
    assert sorted(table["odds_decimal"].to_list()) == [2.25, 3.1, 3.5]


def test_the_exchange_moves_a_price_in_place() -> None:
    reader, engine = BetfairMarkets(), Engine()
    engine.step(as_one(reader.read(encoded(IMAGE))), NOW)
    before = engine.table()
    change = mcm({"id": "1.2001", "rc": [ladder(11, (1.6, 50.0))]}, pt=1770573600500)
    update = engine.step(as_one(reader.read(encoded(change))), NOW + timedelta(seconds=1))
    assert update.changed["price_moved"].to_list() == [True]
    assert engine.table().height == before.height
    assert engine.table().filter(pl.col("selection") == "Boston Celtics")["max_bet"].to_list() == [50.0]
