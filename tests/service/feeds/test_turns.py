"""Sources take turns: one with many new games does not hold up the others, says so, and is bounded."""

import asyncio
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from service.feeds.test_gamestate import declared, quote
from support.effort import less

from oddsengine.feeds import Game, Payload
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds import applying, source_games
from oddsengine_service.feeds.hub import Hub

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
MANY = less(4_000, 2_000)  # new games of a payload
COLUMNS = ["event_id", "sportsbook", "odds_decimal"]


def games(number: int, first: int = 0) -> list[Game]:
    start = NOW + timedelta(hours=3)
    return [Game(f"g{at}", "soccer", "x", f"Home {at}", f"Away {at}", start) for at in range(first, first + number)]


def new_hub(*names: str) -> Hub:
    hub = Hub(Writer(Engine()), Matcher(), clock=lambda: NOW)
    for name in names:
        hub.add(declared(name))
    return hub


def payload(listed: list[Game], book: str = "draftkings") -> Payload:
    return Payload(listed, [quote(game, book) for game in listed])


def test_prices_of_a_source_do_not_wait_for_the_new_games_of_another() -> None:
    async def check() -> None:
        hub = new_hub("good", "new")
        few, many = games(3), games(MANY)
        await hub.deliver("new", payload(few, "fanduel"))
        delivery = asyncio.create_task(hub.deliver("new", payload(many, "fanduel")))
        between, behind = 0, set[tuple[int, str, str]]()
        while not delivery.done():
            await hub.deliver("good", payload(few))
            between += 1
            status = {one.name: one for one in hub.statuses()}["new"]
            behind.add((status.behind, status.status, status.reason))
        await delivery
        assert between >= 5
        assert len([left for left, _, _ in behind if left]) >= 5
        left = max(behind)[0]
        assert 0 < left <= MANY
        assert (left, "degraded", f"behind: {left:,} games of its last payload are waiting") in behind
        assert [(one.name, one.behind, one.status) for one in hub.statuses()] == [("good", 0, "ok"), ("new", 0, "ok")]
        assert hub.engine.table()["event_id"].n_unique() == MANY
        await hub.close()

    asyncio.run(check())


def test_closing_does_not_wait_for_the_rest_of_a_payload() -> None:
    async def check() -> int:
        hub = new_hub("new")
        delivery = asyncio.create_task(hub.deliver("new", payload(games(4_000))))
        while not hub.statuses()[0].behind:
            await asyncio.sleep(0.001)
        delivery.cancel()
        await asyncio.wait([delivery])
        await hub.close()
        return hub.engine.table().height

    assert asyncio.run(check()) == 0


@pytest.mark.parametrize("whole", [False, True], ids=["events", "books"])
def test_a_payload_in_turns_gives_the_board_of_one(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def board(work: int, quotes: int) -> tuple[pl.DataFrame, list[tuple[str, str | None]]]:
        monkeypatch.setattr(applying, "_WORK", work)
        monkeypatch.setattr(applying, "MOST_QUOTES", quotes)
        hub = new_hub("one", "two")
        await hub.deliver("two", payload(games(30, 10), "draftkings"))
        await hub.deliver("one", payload(games(30), "fanduel"))
        again = [game._replace(id=f"again {game.id}") for game in games(5)]  # the same games under other ids
        listed = [*games(20), *again]
        complete: list[tuple[str, str | None]] = (
            [("fanduel", None), ("draftkings", None)] if whole else [("fanduel", game.id) for game in games(25)]
        )
        rest = Payload(listed, [quote(game, "fanduel") for game in listed], complete)
        await hub.deliver("one", rest)
        await hub.close()
        return hub.engine.table().select(COLUMNS).sort(COLUMNS), [
            (game.id, hub.applier.games.known["one", game.id].event) for game in listed
        ]

    at_once = asyncio.run(board(10**9, 10**9))
    in_turns = asyncio.run(board(30, 7))
    assert at_once[0].equals(in_turns[0])
    assert at_once[1] == in_turns[1]
    books = dict(at_once[0]["sportsbook"].value_counts().iter_rows())
    assert books == ({"fanduel": 20} if whole else {"fanduel": 25, "draftkings": 30})


@pytest.mark.parametrize("whole", [False, True], ids=["events", "books"])
def test_an_event_with_many_prices_is_divided_by_book(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    books = [f"book {at}" for at in range(9)]

    async def board(quotes: int) -> tuple[pl.DataFrame, int]:
        monkeypatch.setattr(applying, "MOST_QUOTES", quotes)
        hub, (first, second) = new_hub("one"), games(2)
        everything = [quote(game, book) for game in (first, second) for book in books]
        await hub.deliver("one", Payload([first, second], everything))
        draw = {"selection": "Draw", "selection_type": "draw", "id": None}
        rest = [quote(first, book) | more for book in books[:7] for more in ({}, draw)]
        complete: list[tuple[str, str | None]] = [(book, None if whole else first.id) for book in books]
        before = hub.engine.number
        await hub.deliver("one", Payload([first, second], rest, complete))
        await hub.close()
        return hub.engine.table().select(COLUMNS).sort(COLUMNS), hub.engine.number - before

    at_once, steps = asyncio.run(board(10**9))
    divided, more_steps = asyncio.run(board(4))
    assert at_once.equals(divided)
    assert (steps, more_steps) == (1, 4)
    assert at_once.height == 14 + (0 if whole else 9)


@pytest.mark.parametrize("same", [False, True], ids=["new ids", "same ids"])
def test_prices_that_a_large_payload_quotes_again_are_not_removed(same: bool) -> None:
    async def check() -> None:
        clock = [NOW]
        hub = Hub(Writer(Engine()), Matcher(), clock=lambda: clock[0])
        hub.add(declared("one"))
        listed = games(750)
        quotes = [quote(game, f"book {at}") for game in listed for at in range(4)]
        await hub.deliver("one", Payload(listed, quotes))
        before = hub.engine.table().sort("event_id", "sportsbook")
        assert before.height == 3_000
        clock[0] += timedelta(minutes=1)
        again = [quoted | {"id": quoted["id"] if same else f"new {quoted['id']}"} for quoted in quotes]
        left = hub.engine.number
        await hub.deliver("one", Payload(listed, again, removed=[str(quoted["id"]) for quoted in quotes]))
        after = hub.engine.table().sort("event_id", "sportsbook")
        assert hub.engine.number - left == 2
        assert after.height == 3_000
        assert after["odds_changed_at"].equals(before["odds_changed_at"])
        # One that is not quoted again is removed.
        await hub.deliver("one", Payload(listed, again[:-1], removed=[str(again[-1]["id"])]))
        assert hub.engine.table().height == 2_999
        await hub.close()

    asyncio.run(check())


def test_a_source_has_a_bounded_number_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_games, "MOST_GAMES", 10)

    async def check() -> None:
        hub = new_hub("one", "two")
        await hub.deliver("two", payload(games(4)))
        await hub.deliver("one", payload(games(8)))
        await hub.deliver("one", payload(games(3)))
        await hub.deliver("one", payload(games(4, 8)))
        kept = [event for source, event in hub.applier.games.known if source == "one"]
        assert sorted(kept) == sorted(["g0", "g1", "g2", *(f"g{at}" for at in range(5, 12))])  # g3, g4: longest ago
        assert len([event for source, event in hub.applier.games.known if source == "two"]) == 4
        assert hub.applier._matcher.decision("one", "g3") is None
        assert hub.applier._matcher.decision("two", "g3") is not None
        await hub.deliver("one", payload(games(14, 100)))
        assert len([event for source, event in hub.applier.games.known if source == "one"]) == 10
        assert hub.tracks["one"].refused == {"more than 10 games in a payload": 4}
        await hub.close()

    asyncio.run(check())


@pytest.mark.parametrize("configured", [(), ("good",), ("good", "new")])
def test_feeds_that_carry_one_book_are_named_once(
    configured: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> list[tuple[str, ...]]:
        hub = Hub(Writer(Engine()), Matcher(), clock=lambda: NOW)
        for name in ("good", "new"):
            hub.add(declared(name, books=("fanduel", "draftkings") if name in configured else ()))
        for _ in range(2):
            await hub.deliver("new", payload(games(2), "fanduel"))
            await hub.deliver("good", payload(games(2), "FanDuel"))
            await hub.deliver("good", payload(games(2), "betmgm"))
        await hub.close()
        return [one.shared for one in hub.statuses()]

    shared = asyncio.run(check())
    texts = [text for text in caplog.messages if "both carry" in text]
    if len(configured) == 2:
        assert (texts, shared) == ([], [(), ()])
    else:
        assert texts == [
            "feeds.good and feeds.new both carry fanduel: their prices replace each other; set `books` for both"
        ]
        assert shared == [("fanduel",), ("fanduel",)]


def test_prices_of_games_without_a_start_are_set_aside_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """A file without start times gave an empty board without a word."""

    async def check() -> None:
        hub = new_hub("file")
        listed = [game._replace(start=None) for game in games(3)]
        for _ in range(2):
            await hub.deliver("file", payload(listed))
        assert hub.engine.table().is_empty()
        assert hub.tracks["file"].refused == {"no start time": 6}
        await hub.close()

    asyncio.run(check())
    said = "feeds.file: 3 prices are set aside: their games have no start time (event_start_time)"
    assert [record.getMessage() for record in caplog.records] == [said]
