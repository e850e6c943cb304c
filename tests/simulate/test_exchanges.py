"""Exchanges with traders: ladders are those of the order books, and nothing else in the world changes."""

from collections import Counter
from datetime import timedelta
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pytest
from simulate.test_world import Board

import oddsengine as oe
from oddsengine.columns import SECOND
from oddsengine.simulate import FeedBatch, World
from oddsengine.simulate.order_books import CONTRACT, Action, MatchingEngine
from oddsengine.simulate.simulated_venues import VENUES, Venue
from oddsengine.simulate.traders import IN_PLAY, POSTERS, SHARPS, TAKERS, Traders
from oddsengine.simulate.world import START

Row = dict[str, Any]
BOOKS = ("kalshi", "novig", "betfair_exchange", "pinnacle", "fanduel", "draftkings", "betmgm")
PLACE = ("event_id", "market_type", "selection", "line")
SETTING: dict[str, Any] = {"events": 4, "live": 0.4, "tick": 3.0, "pace": 20.0, "books": BOOKS, "main_lines": True}


@cache
def both() -> tuple[list[FeedBatch], list[FeedBatch], World]:
    """One world without and with traders; its games go by fast, so that lines move and games begin and pause."""
    plain, traded = World(6, **SETTING), World(6, **SETTING, traders=True)
    return list(plain.run(60.0)), list(traded.run(60.0)), traded


def test_traders_change_nothing_at_other_books() -> None:
    late = 0
    for was, now in zip(*both()[:2], strict=True):
        others, same = ([row for row in batch.quotes if row["sportsbook"] not in VENUES] for batch in (was, now))
        assert same == others
        assert (now.now, now.events) == (was.now, was.events)
        assert [pair for pair in now.complete if pair[0] not in VENUES] == [
            pair for pair in was.complete if pair[0] not in VENUES
        ]
        assert set(was.complete) <= set(now.complete)
        late += sum(now.now - row["last_seen_at"] > timedelta(seconds=1) for row in same)
    assert late > 2
    assert list(World(6, **SETTING, traders=True).run(15.0)) == both()[1][:6]


def test_a_row_is_sent_when_its_ladder_has_changed_and_now_and_then() -> None:
    board, unchanged, sent = Board(), 0, 0
    for batch in both()[1]:
        rows = [row for row in batch.quotes if row["sportsbook"] in VENUES]
        names = [(row["sportsbook"], *(row.get(name) for name in PLACE)) for row in rows]
        assert len(set(names)) == len(names)
        for row in rows:
            assert "levels" in row or (row["sport"] == "soccer" and row["market_type"] in {"moneyline", "h2h"})
            old = board.screens[row["sportsbook"], row["event_id"]].get(
                (row["market_type"], row["selection"], row.get("line"))
            )
            unchanged += old is not None and not row["is_live"] and old.get("levels") == row.get("levels")
            sent += not row["is_live"]
        board.apply(batch)
    assert unchanged < 0.4 * sent


def ladders(world: World, row: Row) -> tuple[list[Row], Any]:
    """The levels of a row's outcome by its order book at the time of the row, and the market."""
    place = world.place(row["event_id"], row["market_type"], row["selection"], row.get("line"))
    market = world._exchanges.markets[world.books.index(row["sportsbook"]), *place[:2], place.quarters]  # type: ignore[union-attr]
    ticks, at = market.venue.ticks, (row["last_seen_at"] - START) // timedelta(microseconds=1)
    book = MatchingEngine(ticks)
    for intent in market.intents:
        if intent.at <= at:
            book.apply(intent)
    offers = book.offers(min(place.side, 1), 10)
    return [
        {"odds_decimal": ticks / price, "stake": price / ticks * size / CONTRACT} for price, size in offers
    ], market  # fmt: skip


def test_every_price_is_the_ladder_of_its_order_book_at_its_time() -> None:
    _, batches, world = both()
    rows = [row for batch in batches for row in batch.quotes if "levels" in row]
    assert len({row["event_id"] for row in rows}) == 4
    assert {row["is_live"] for row in rows} == {False, True}
    for row in rows[:: len(rows) // 60]:
        expected, market = ladders(world, row)
        assert [pytest.approx(level) for level in row["levels"]] == expected
        assert (row["odds_decimal"], row["max_bet"]) == tuple(row["levels"][0].values())
        assert row.get("bet_delay") == (market.bet_delay if row["is_live"] else None)
        whole = 1.0 / row["odds_decimal"] if row["sportsbook"] == "kalshi" else None
        assert (row.get("min_bet"), row.get("bet_step")) == (pytest.approx(whole), pytest.approx(whole))


def test_a_board_that_follows_the_batches_has_what_the_exchanges_show() -> None:
    """Prices without orders, of closed markets and of other lines have left it, and times never go back."""
    world, board, games = World(9, **SETTING | {"pace": 60.0, "live": 0.6}, traders=True), Board(), set()
    for number, batch in enumerate(chain(world.run(40.0, tick=0.4), world.run(60.0, tick=3.0))):
        for row in batch.quotes:
            old = board.screens[row["sportsbook"], row["event_id"]].get(
                (row["market_type"], row["selection"], row.get("line"))
            )
            assert old is None or "levels" not in row or row["last_seen_at"] >= old["last_seen_at"]
        board.apply(batch)
        if number % 3:
            continue
        up = {name for at, name in enumerate(BOOKS) if name in VENUES and world._back[at] <= world._time}
        shown, screens = world._exchanges.displayed(), world._screens  # type: ignore[union-attr]
        columns = (screens.book, screens.event, screens.ladder, screens.side, shown.quarters, shown.odds)
        expected = {
            (BOOKS[book], *place, odds)
            for book, *place, odds in zip(*(column[shown.shown].tolist() for column in columns), strict=True)
            if BOOKS[book] in up
        }
        assert expected == {
            (row["sportsbook"], *world.place(*(row.get(name) for name in PLACE)), row["odds_decimal"])  # type: ignore[arg-type]
            for (book, _), rows in board.screens.items()
            for row in rows.values()
            if book in up
        }
        games.add(len({event for _, event, *_ in expected}))
        on_offer = np.unique(screens.event[shown.shown & world._exchanges.traded])  # type: ignore[union-attr]
        assert (world._resume[on_offer] <= world._time).all()
    assert min(games) < 3 < max(games)  # some have ended, or are suspended
    for market in world._exchanges.markets.values():  # type: ignore[union-attr]
        turns = [intent.kind for intent in market.intents if intent.kind in {Action.OPEN, Action.CLOSE}]
        assert turns == [Action.OPEN, Action.CLOSE] * (len(turns) // 2) + [Action.OPEN] * (len(turns) % 2)


def test_rows_are_accepted_and_only_outliers_are_rejected() -> None:
    frame = pl.DataFrame(both()[1][0].quotes, infer_schema_length=None)
    assert oe.check_odds(frame).rejected.is_empty()
    assert frame.filter(pl.col("levels").is_not_null())["sportsbook"].unique().sort().to_list() == [
        "betfair_exchange", "kalshi", "novig",
    ]  # fmt: skip
    aside = oe.rejected(frame, now=both()[1][0].now).filter(pl.col("sportsbook").is_in([*VENUES]))
    assert aside["guard"].is_in(["outlier"]).all()  # long shots at an exchange
    assert aside.height < 0.1 * frame["levels"].count()


def test_some_prices_stand_out_and_are_gone_in_seconds() -> None:
    """By the true chances; the arbitrages of the world are those of the order books."""
    world, board = World(3, **SETTING | {"live": 0.0, "pace": 1.0, "tick": 2.0, "events": 3}, traders=True), Board()
    since: dict[Any, int] = {}
    lasted, arbitrages = [], []
    for number, batch in enumerate(world.run(120.0)):
        board.apply(batch)
        rows = [row for screen in board.screens.values() for row in screen.values() if "levels" in row]
        bets = {(row["sportsbook"], *(row.get(name) for name in PLACE)): row["odds_decimal"] for row in rows}
        good = {bet for bet, odds in bets.items() if world.chances(*bet[1:]).returns(odds) > 0.015}
        lasted += [2.0 * (number - since.pop(bet)) for bet in since.keys() - good]
        since |= dict.fromkeys(good - since.keys(), number)
        arbitrages += world.arbitrages()
    assert len(lasted) > 10
    assert 2.0 <= np.median(lasted) <= 15.0
    assert any(set(arbitrage.books) & set(world.delays) for arbitrage in arbitrages)


@pytest.mark.parametrize("live", [False, True])
def test_traders_arrive_at_their_rates(*, live: bool) -> None:
    venue, seconds, prob = Venue(100, whole=False, busy=2.0, delay=(0.0, 0.0)), 6000, 0.4
    traders = Traders(venue, np.random.default_rng(3))
    intents = [
        intent
        for begin in range(0, seconds, 10)
        for intent in traders.act(begin * SECOND, (begin + 10) * SECOND, prob, live=live)
    ]
    assert [intent.at for intent in intents] == sorted(intent.at for intent in intents)
    times = {kind: Counter(intent.at for intent in intents if intent.kind == kind) for kind in Action}
    takers = sum(number == 1 for number in times[Action.TAKE].values())
    sharps = sum(number == 2 for number in times[Action.TAKE].values())
    posters = sum(number == 1 for number in times[Action.LIMIT].values())
    for found, rate in ((takers, TAKERS), (sharps, SHARPS), (posters, POSTERS)):
        expected = 2.0 * rate * seconds * (IN_PLAY if live else 1.0)
        assert abs(found - expected) < 4.0 * expected**0.5
    dollars = [intent.size / CONTRACT * intent.price / 100 for intent in intents if intent.size]
    assert min(dollars) > 4.0
    assert max(dollars) < 501.0
    book = MatchingEngine()
    book.open()
    for intent in intents:
        book.apply(intent)
    assert len(book._resting) < 50  # makers cancel before they post anew
    known = {intent.number for intent in intents if intent.kind == Action.LIMIT}
    assert {intent.number for intent in intents if intent.kind == Action.CANCEL} <= known


def test_invented_levels_are_for_prices_without_an_order_book() -> None:
    plain, invented = (next(World(6, **SETTING, traders=True, levels=levels).run(0.0)) for levels in (False, True))
    pairs = [(was, now) for was, now in zip(plain.quotes, invented.quotes, strict=True) if was["sportsbook"] in VENUES]
    assert all(now == was for was, now in pairs if "levels" in was)
    assert [len(now["levels"]) for was, now in pairs if "levels" not in was] == [4] * 9  # three ways, three exchanges


def test_traders_and_feed_errors_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="traders must be False with hazards"):
        World(1, events=1, traders=True, hazards=True)
    assert World(1, events=1).delays == {}
    assert World(1, events=1, books=["fanduel", "polymarket_mid"], traders=True).delays == {}


def test_a_world_without_games_or_exchanges_has_no_books_of_orders() -> None:
    for world in (World(3, events=0, traders=True), World(3, events=2, traders=True, books=["pinnacle"])):
        for batch in world.run(120.0):
            assert all("levels" not in row for row in batch.quotes)
        assert all(found.profit > 0.0 for found in world.arbitrages())
