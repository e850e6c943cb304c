"""The past over the wire: closing lines, movements from memory and from an archive beside plain loops, CLV groups."""

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.effort import less
from support.handler_calls import answer, found, node
from support.tables import assert_tables

from oddsengine import catalog
from oddsengine.board import ageing, state
from oddsengine.columns import NO_TIME
from oddsengine.history.movements import Ring
from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine.tables.timestamps import micros
from oddsengine.tape import Tape, TapeError
from oddsengine_service.board.views import Board
from oddsengine_service.errors import Problem
from oddsengine_service.history import archiving
from oddsengine_service.history.archiving import NodeArchive
from oddsengine_service.history.past import Past
from oddsengine_service.history.recording import NodeTape
from oddsengine_service.node import Node
from oddsengine_service.routes import history_routes as module
from oddsengine_service.settings import ArchiveSettings
from oddsengine_service.tiers import books_of
from oddsengine_service.wire import history_response

CLOSING = found(module.endpoints, "/odds/closing")
HISTORY = found(module.endpoints, "/odds/history")
DAY = found(module.endpoints, "/historical/odds/closing")
CLV = found(module.endpoints, "/historical/clv")
Body = dict[str, Any]
Key = tuple[str, str]  # row id, and the book it is of


class Point(NamedTuple):
    at: int
    odds: float
    live: bool
    active: bool


class Stage(NamedTuple):
    """A node that heard a world, the same past from an archive, and what plain loops say of its prices."""

    node: Node
    archived: Node
    moves: dict[Key, list[Point]]
    about: dict[str, dict[str, Any]]  # by row id
    world: World


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    folder = tmp_path_factory.mktemp("past")
    world = World(
        9, events=6, tick=30.0, live=0.4, pace=30.0, hazards=["flap"], books=["pinnacle", "fanduel", "betmgm"]
    )
    engine = Engine()
    past, archive = Past(engine), archive_of(engine, folder)
    moves: dict[Key, list[Point]] = {}
    about: dict[str, dict[str, Any]] = {}
    for batch in world.run(less(1800, 900)):
        past.follow(engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events))
        note(engine, moves, about)
        if engine.number == 20:
            archive.write()
    past.settle()
    here, there = node(engine, past=past), node(engine, past=Past(engine, archive=archive))
    return Stage(here, there, moves, about, world)


def note(engine: Engine, moves: dict[Key, list[Point]], about: dict[str, dict[str, Any]]) -> None:
    """Compare every row of the board with what it was: no change columns, no updates."""
    assert engine.now is not None
    now = micros(engine.now)
    for row in engine.table().iter_rows(named=True):
        about[row["row_id"]] = row
        held = moves.setdefault((row["row_id"], row["sportsbook"]), [])
        price = row["odds_decimal"], row["is_live"], row["is_active"]
        if not held or held[-1][1:] != price:
            held.append(Point(now, *price))


def walk(here: Node, query: Body, **more: Any) -> Iterator[Body]:
    query = {"limit": 200, **query}
    while True:
        page = answer(HISTORY, here, query, **more)
        yield from page["data"]
        if not page["pagination"]["has_more"]:
            return
        query["offset"] = page["pagination"]["next_offset"]


def points(entry: Body) -> list[Point]:
    columns = entry["points"]
    times = [micros(datetime.fromisoformat(at)) for at in columns["at"]]
    return [
        Point(*each)
        for each in zip(times, columns["odds_decimal"], columns["is_live"], columns["is_active"], strict=True)
    ]


def shown(moves: list[Point]) -> list[Point]:
    return [point._replace(odds=round(point.odds, 6)) for point in moves]


# ---- movement ----


def test_every_move_of_every_price_is_there(stage: Stage) -> None:
    met = 0
    for fixture in stage.world.fixtures:
        entries = {entry["id"]: entry for entry in walk(stage.node, {"event": fixture.id})}
        expected = {i: m for (i, _), m in stage.moves.items() if stage.about[i]["event_id"] == fixture.id}
        assert entries.keys() == expected.keys()
        for ident, moves in expected.items():
            entry, row = entries[ident], stage.about[ident]
            assert points(entry) == shown(moves)
            assert entry["opening"]["odds_decimal"] == round(moves[0].odds, 6)
            assert entry["opening"]["at"] == entry["points"]["at"][0]
            market = catalog.published_name(row["market_type"], row["sport"])
            assert (entry["market_type"], entry["line"]) == (market, row["line"])
            assert entry["sportsbook"] == catalog.book(row["sportsbook"]).id
            met += len(moves)
    assert met > 3000
    assert max(len(moves) for moves in stage.moves.values()) > 10


def test_an_archive_says_what_memory_says(stage: Stage) -> None:
    for fixture in stage.world.fixtures:
        assert list(walk(stage.archived, {"event": fixture.id})) == list(walk(stage.node, {"event": fixture.id}))


def test_an_archive_that_grows(tmp_path: Path) -> None:
    engine = Engine()
    ring, archive = Ring(engine), archive_of(engine, tmp_path)
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    assert archive.changes_of_event("e", 2**62).row.size == 0
    for n in range(12):
        at = begin + timedelta(seconds=n)
        rows = [price(1.9 + 0.01 * (n // 2), at, book=book) for book in ("fanduel", "betmgm")]
        rows.append(price(3.0, at - timedelta(seconds=20)))  # late: it changes nothing
        if n == 7:
            rows.append(price(None, at, is_active=False))
        ring.follow(engine.step(rows, at))
        if n % 4 == 2:
            archive.write()
        one, two = archive.changes_of_event("e", 2**62), ring.changes_of_event("e", 2**62)
        assert sorted(listed(one)) == sorted(listed(two))
        early = (begin + timedelta(seconds=n / 2)).timestamp() * 1e6
        assert sorted(listed(archive.changes_of_event("e", int(early)))) == sorted(
            row for row in listed(two) if row[1] <= early
        )
    before, after = (begin + timedelta(seconds=add) for add in (-1, 30))
    for history in (ring, archive):
        assert history.events(micros(before)) == []
        (known,) = history.events(micros(after))
        assert known == ("e", "tennis", "", NO_TIME)
    moves = [row for row in listed(two) if row[0] == "fanduel"]
    assert [odds for _, _, odds, _ in moves] == [pytest.approx(1.9 + 0.01 * k) for k in (0, 1, 2, 3, 3, 4, 5)]
    assert [flags for *_, flags in moves] == [0, 0, 0, 0, 2, 0, 0]
    archive.close()


def test_history_goes_back_over_starts(tmp_path: Path) -> None:
    """What a row said before a stop is no move when it is said again."""
    world = World(11, events=3, tick=20.0, live=0.5, pace=30.0, books=["pinnacle", "fanduel", "betmgm"])
    moves: dict[Key, list[Point]] = {}
    about: dict[str, dict[str, Any]] = {}
    batches = list(world.run(1200))
    for part in (batches[:20], batches[20:21], batches[21:]):
        engine = Engine()
        archive = archive_of(engine, tmp_path, str(part[0].now))
        for batch in part:
            engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
            note(engine, moves, about)
        archive.close()
    here = node(engine, past=Past(engine, archive=archive))
    for fixture in world.fixtures:
        entries = {entry["id"]: points(entry) for entry in walk(here, {"event": fixture.id})}
        expected = {i: shown(m) for (i, _), m in moves.items() if about[i]["event_id"] == fixture.id}
        assert entries == expected


def test_an_archive_that_cannot_be_read(tmp_path: Path) -> None:
    engine, failed = Engine(), list[str]()
    (tmp_path / "odds" / "_delta_log").mkdir(parents=True)
    (tmp_path / "odds" / "_delta_log" / f"{0:020}.json").write_text("damaged")
    archive = NodeArchive(engine, tmp_path, ArchiveSettings(to=str(tmp_path / "odds")), lambda: "me", failed.append)
    here = node(engine, past=Past(engine, archive=archive))
    at = datetime(2026, 2, 8, 18, tzinfo=UTC)
    engine.step([price(1.9, at)], at)
    with pytest.raises(Problem, match="archive cannot be read") as caught:
        answer(HISTORY, here, {"event": "e"})
    assert caught.value.status == 503
    assert failed
    archive.close()


def test_old_tapes_are_removed_and_nothing_else(tmp_path: Path) -> None:
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for days in (9, 6.9, 1):
        NodeTape(Engine(), tmp_path, 36_500.0, begin - timedelta(days=days), unexpected).close()
    (tmp_path / "mine").mkdir()
    (tmp_path / "20200101").write_text("")
    NodeTape(Engine(), tmp_path, 7.0, begin, unexpected).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "20200101", "20260201T202400.000000Z", "20260207T180000.000000Z", "20260208T180000.000000Z", "mine",
    ]  # fmt: skip


def test_a_tape_that_cannot_be_written_ends_and_prices_go_on(tmp_path: Path) -> None:
    engine, told = Engine(), list[Exception]()
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    tape = NodeTape(engine, tmp_path, 7.0, begin, told.append)
    for second in range(8):
        at = begin + timedelta(seconds=second)
        engine.step([price(1.9 + second / 10, at)], at)
        if second == 3:  # from here on the disk takes nothing: the file is open for reading only
            assert tape._file is not None
            with Path("/dev/null").open("rb") as nothing:
                os.dup2(nothing.fileno(), tape._file.fileno())
    tape.close()
    assert engine.number == 8
    assert engine.table()["odds_decimal"].to_list() == [pytest.approx(2.6)]
    (error,) = told
    assert isinstance(error, OSError | TapeError)
    assert 0 < Tape(tape.path).last < 8  # what was written before is whole


def unexpected(error: Exception) -> None:
    raise AssertionError("the tape ended") from error


def test_an_archive_of_terms_that_were_counted_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now and then an engine drops the names that no row has; codes then mean something else."""
    monkeypatch.setattr(state, "_FEW", 6)
    monkeypatch.setattr(ageing, "REMEMBERED_S", 30)
    engine = Engine()
    engine.state.board.tidy_at = 6
    ring, archive = Ring(engine), archive_of(engine, tmp_path)
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for n in range(40):
        at = begin + timedelta(seconds=10 * n)
        rows = [price(1.5 + n / 100, at), price(1.9, at, event_id=f"e{n}"), price(1.9, at, event_id=f"f{n}")]
        rows = [{**row, "event_start_time": begin + timedelta(hours=n)} for row in rows]
        gone = [row["row_id"] for row in engine.table().to_dicts() if row["event_id"] != "e"]
        ring.follow(engine.step(rows, at, removed=gone))
    assert len(engine.raw_labels) < 40  # of 81
    for event in ("e", "e0", "f7", "e20", "f39"):
        assert sorted(listed(archive.changes_of_event(event, 2**62))) == sorted(
            listed(ring.changes_of_event(event, 2**62))
        )
    assert archive.changes_of_event("e", 2**62).row.size == 40
    several = ("e", "e0", "f7", "nothing")
    both = [sorted(listed(history.changes_of_events(several, 2**62))) for history in (archive, ring)]
    assert both[0] == both[1]
    assert len(both[0]) == 42
    listed_events = {each.id: each.start for each in archive.events(micros(at))}
    assert listed_events.keys() == {each.id for each in ring.events(micros(at))}
    assert listed_events["e"] == listed_events["f39"] == micros(begin + timedelta(hours=39)), "as was said last"
    archive.close()


def test_a_file_that_is_committed_while_an_archive_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "_PART", 1)
    engine = Engine()
    archive = archive_of(engine, tmp_path)
    at = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for event in ("e", "f"):
        engine.step([price(1.9, at, event_id=event)], at)
    listed_only = tmp_path / archiving.FOLDER / "0.parquet"
    listed_only.symlink_to(tmp_path / "nothing")
    deletion = threading.Timer(0.3, listed_only.unlink)
    deletion.start()
    assert {each.id for each in archive.events(micros(at))} == {"e", "f"}
    deletion.join()
    assert archive.changes_of_event("e", 2**62).row.size == 1
    archive.close()


def archive_of(engine: Engine, folder: Path, origin: str = "me") -> NodeArchive:
    """An archive that is written when a test says so."""

    def failed(failure: str) -> None:
        assert not failure

    return NodeArchive(engine, folder, ArchiveSettings(to=str(folder / "odds")), lambda: origin, failed)


def price(odds: float | None, at: datetime, book: str = "fanduel", **more: Any) -> Body:
    row = {
        "sportsbook": book, "event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y", "last_seen_at": at,
        "market_type": "moneyline", "selection": "X", **({} if odds is None else {"odds_decimal": odds}),
    }  # fmt: skip
    return row | more


def listed(moves: Any) -> list[tuple[str, int, float, int]]:
    books = [moves.books[row] for row in moves.row.tolist()]
    return list(zip(books, moves.at.tolist(), moves.odds.tolist(), moves.flags.tolist(), strict=True))


def test_a_full_ring_keeps_openings_and_the_newest_moves() -> None:
    engine = Engine()
    ring = Ring(engine, most=10)
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for n in range(25):
        ring.follow(engine.step([price(1.5 + n / 100, begin + timedelta(seconds=n))], begin + timedelta(seconds=n)))
    assert len(ring) == 10
    found = ring.changes_of_event("e", 2**62)
    np.testing.assert_allclose(found.odds, [1.5, *(1.5 + n / 100 for n in range(15, 25))])
    assert (np.diff(found.at) > 0).all()


def test_a_ring_forgets_the_rows_that_moved_longest_ago() -> None:
    engine = Engine()
    ring = Ring(engine, most=1000, rows=8)
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for n in range(40):
        at = begin + timedelta(seconds=n)
        rows = [price(1.9, at, event_id=f"e{n}"), price(1.5 + n / 100, at, event_id="steady")]
        ring.follow(engine.step(rows, at))
        assert len(ring._raw_labels) <= 8 + 2
    assert ring.changes_of_event("e0", 2**62).row.size == 0
    assert ring.changes_of_event("e39", 2**62).odds.tolist() == [1.9]
    steady = ring.changes_of_event("steady", 2**62)
    assert steady.odds[-1] == pytest.approx(1.89)
    assert len(set(steady.row.tolist())) == 1


def test_filters_of_movement(stage: Stage) -> None:
    event = stage.world.fixtures[0].id
    every = list(walk(stage.node, {"event": event}))
    mine = list(walk(stage.node, {"event": event, "sportsbook": "fanduel", "market": "main"}))
    kinds = set(catalog.categories()["main"])
    expected = [
        entry["id"] for entry in every
        if entry["sportsbook"] == "fanduel" and any(same(kind, entry["market_type"]) for kind in kinds)
    ]  # fmt: skip
    assert [entry["id"] for entry in mine] == expected
    assert mine
    overs = list(walk(stage.node, {"event": event, "selection": "over"}))
    assert [e["id"] for e in overs] == [e["id"] for e in every if e["selection_type"].endswith("over")]
    pages = [answer(HISTORY, stage.node, {"event": event, "limit": 7, "offset": at})["data"] for at in range(0, 21, 7)]
    assert [e["id"] for page in pages for e in page] == [e["id"] for e in every[:21]]


def same(kind: str, market: str) -> bool:
    one, two = catalog.market_type(kind), catalog.market_type(market)
    return (one.family, one.period) == (two.family, two.period) != ("", "full_game")


def test_a_window_begins_with_the_price_that_stood(stage: Stage) -> None:
    now = stage.node.engine.now
    assert now is not None
    since, until = now - timedelta(seconds=900), now - timedelta(seconds=300)
    low, high = micros(since), micros(until)
    query = {"event": stage.world.fixtures[1].id, "since": since.isoformat(), "until": until.isoformat()}
    met = 0
    for entry in walk(stage.node, query):
        moves = next(m for (i, _), m in stage.moves.items() if i == entry["id"])
        before = [m for m in moves if m.at <= low][-1:]
        assert points(entry) == shown([*before, *(m for m in moves if low < m.at <= high)])
        assert entry["opening"]["odds_decimal"] == round(moves[0].odds, 6)
        met += len(before)
    assert met > 50


def test_the_number_of_points_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    long = 0
    for entry in walk(stage.node, {"event": stage.world.fixtures[0].id}):
        moves = next(m for (i, _), m in stage.moves.items() if i == entry["id"])
        assert points(entry) == shown(moves[-3:])
        assert entry["omitted"] == max(len(moves) - 3, 0)
        assert entry["opening"]["odds_decimal"] == round(moves[0].odds, 6)
        long += entry["omitted"] > 0
    assert long > 5


def test_a_tier_sees_its_books_and_its_delay(stage: Stage) -> None:
    event = stage.world.fixtures[2].id
    own = books_of("hobby")
    assert own is not None
    seen = {entry["sportsbook"] for entry in walk(stage.node, {"event": event}, tier="hobby")}
    assert seen == {"pinnacle", "fanduel", "betmgm"} & own
    with pytest.raises(Problem) as caught:
        answer(HISTORY, stage.node, {"event": event, "sportsbook": "pinnacle"}, tier="free")
    assert (caught.value.status, caught.value.code) == (403, "tier_restricted")


def test_a_late_board_shows_no_younger_moves() -> None:
    engine = Engine()
    past = Past(engine)
    late = engine.delayed(60)
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for n in range(0, 130, 10):
        past.follow(engine.step([price(1.5 + n / 100, begin + timedelta(seconds=n))], begin + timedelta(seconds=n)))
    past.settle()
    here = node(engine, past=past)
    found = HISTORY.answer(_ask(here, late, {"event": "e"}))["data"]
    assert found[0].points.odds_decimal[-1] == pytest.approx(1.5 + 0.6)
    assert HISTORY.answer(_ask(here, engine, {"event": "e"}))["data"][0].points.odds_decimal[-1] == pytest.approx(2.7)


def _ask(here: Node, board: Board, query: Body, endpoint: Any = HISTORY) -> Any:
    from support.handler_calls import ask

    return ask(endpoint, here, query)._replace(board=board)


def test_what_cannot_be_asked_of_movement(stage: Stage) -> None:
    missing = answer(HISTORY, stage.node, {"event": "nobody", "colour": 1})
    assert (missing["data"], missing["meta"]["total"]) == ([], 0)
    assert missing["meta"]["unknown"] == {"event": ["nobody"]}
    assert missing["meta"]["ignored"] == ["colour"]
    strange = answer(HISTORY, stage.node, {"event": stage.world.fixtures[0].id, "sportsbook": "zork", "market": "zork"})
    assert strange["meta"]["unknown"] == {"market": ["zork"], "sportsbook": ["zork"]}
    for query, text in (
        ({}, "event is required"),
        ({"event": "e", "since": "2026-02-08T18:00:00Z", "until": "2026-02-08T17:00:00Z"}, "until must not be before"),
        ({"event": "e", "since": "yesterday"}, "since must be a time"),
        ({"event": "e", "limit": 201}, "limit must be"),
    ):
        with pytest.raises(Problem, match=text) as caught:
            answer(HISTORY, stage.node, query)
        assert caught.value.status == 400
    with pytest.raises(Problem) as caught:
        answer(HISTORY, node(Engine()), {"event": "e"})
    assert caught.value.status == 503


# ---- closing lines ----


@pytest.fixture(scope="module")
def closed() -> tuple[Node, str]:
    """A game that closed, with a +EV price that was shown before."""
    engine = Engine()
    past = Past(engine, method="power")
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    about = {
        "event_id": "e", "sport": "basketball", "league": "NBA", "home_team": "Boston Celtics",
        "away_team": "LA Lakers", "event_start_time": begin,
    }  # fmt: skip
    for before, home in ((600, 1.95), (60, 1.90)):
        at = begin - timedelta(seconds=before)
        rows = [
            {**about, "sportsbook": book, "market_type": "moneyline", "selection": selection, "odds_decimal": odds,
             "last_seen_at": at}
            for book, selection, odds in (
                ("pinnacle", "Boston Celtics", home), ("pinnacle", "LA Lakers", 1.95),
                ("draftkings", "Boston Celtics", 2.1), ("caesars", "LA Lakers", 1.8),
            )
        ]  # fmt: skip
        rows.append(
            {**rows[0], "market_type": "total_points", "selection": "Over", "line": 220.5, "odds_american": -110}
        )
        del rows[-1]["odds_decimal"]
        past.follow(engine.step(rows, at))
    past.follow(engine.step([], begin + timedelta(seconds=1)))
    past.settle()
    here = node(engine, past=past)
    return here, "e"


def test_closing_lines_of_a_day(closed: tuple[Node, str]) -> None:
    here, event = closed
    one = answer(CLOSING, here, {"event_id": event})["data"]
    whole = answer(DAY, here, {"date": "2026-02-08"})
    assert whole["data"] == [one]
    assert answer(DAY, here)["data"] == [one]  # today
    some = answer(DAY, here, {"date": "2026-02-08", "sportsbook": "pinnacle", "market": "moneyline"})["data"]
    assert list(some[0]["books"]) == ["pinnacle"]
    for query in ({"date": "2026-02-07"}, {"sport": "tennis"}, {"league": "nhl"}, {"event": "f"}, {"offset": 1}):
        assert answer(DAY, here, query)["data"] == []


def test_the_fields_of_closing_lines(closed: tuple[Node, str]) -> None:
    here, event = closed
    found = answer(CLOSING, here, {"event_id": event})
    data = found["data"]
    assert list(data) == [
        "event_id", "sport", "league", "home_team", "away_team", "event_start_time", "captured_at", "books",
    ]  # fmt: skip
    assert (data["sport"], data["league"], data["home_team"]) == ("basketball", "nba", "Boston Celtics")
    assert data["captured_at"] == data["event_start_time"] == "2026-02-08T18:00:00.000000Z"
    assert list(data["books"]) == ["caesars", "draftkings", "pinnacle"]
    (line,) = data["books"]["draftkings"]
    assert list(line) == list(history_response.ClosingLine.__struct_fields__)
    row = next(r for r in here.engine.table().to_dicts() if r["sportsbook"] == "draftkings")
    assert line["id"] == row["row_id"]
    assert (line["odds_decimal"], line["odds_american"], line["selection_type"]) == (2.1, 110.0, "home")
    assert 0.5 < line["fair_probability"] < 0.515
    assert line["sharp_book"] == "pinnacle"
    over = next(row for row in data["books"]["pinnacle"] if row["line"] == 220.5)
    assert (over["odds_american"], over["fair_probability"], over["sharp_book"]) == (-110.0, None, None)


def test_closing_lines_of_some_books_and_markets(closed: tuple[Node, str]) -> None:
    here, event = closed
    assert list(answer(CLOSING, here, {"event_id": event, "sportsbook": "caesars"})["data"]["books"]) == ["caesars"]
    totals = answer(CLOSING, here, {"event_id": event, "market": "total,zork"})
    assert {b: [row["market_type"] for row in rows] for b, rows in totals["data"]["books"].items()} == {
        "pinnacle": ["total_points"]
    }
    assert totals["meta"]["unknown"] == {"market": ["zork"]}
    own = books_of("free")
    assert own is not None
    assert (
        set(answer(CLOSING, here, {"event_id": event}, "free")["data"]["books"])
        == {"caesars", "draftkings", "pinnacle"} & own
    )


def test_what_has_no_closing_lines(closed: tuple[Node, str], stage: Stage) -> None:
    here, event = closed
    for query, status in (({}, 400), ({"event_id": "nobody"}, 404)):
        with pytest.raises(Problem) as caught:
            answer(CLOSING, here, query)
        assert caught.value.status == status
    later = max(stage.world.fixtures, key=lambda f: f.start)
    found = answer(CLOSING, stage.node, {"event_id": later.id})
    assert found["success"] is True
    assert found["meta"] == {"reason": "it has not begun"}
    assert (found["data"]["books"], found["data"]["captured_at"]) == ({}, None)
    row = stage.node.engine.table().filter(event_id=later.id).row(0, named=True)
    for name in ("event_id", "home_team", "away_team"):
        assert found["data"][name] == row[name]
    assert found["data"]["sport"] == catalog.sport(row["sport"]).id
    assert datetime.fromisoformat(found["data"]["event_start_time"]) == row["event_start_time"]
    begin = datetime(2026, 2, 8, 18, tzinfo=UTC)
    for seen, why in ((60, "it was first seen after its start"), (-900, "none of its prices was on offer in the last")):
        engine = Engine()
        known = node(engine, past=(past := Past(engine)))
        at = begin + timedelta(seconds=seen)
        row = {"event_id": "e", "sport": "basketball", "sportsbook": "pinnacle", "market_type": "total_points",
               "selection": "Over", "line": 220.5, "odds_decimal": 1.9, "event_start_time": begin}  # fmt: skip
        past.follow(engine.step([{**row, "last_seen_at": at}], at))
        past.follow(engine.step([{**row, "last_seen_at": at, "is_active": False}], at + timedelta(seconds=1)))
        past.follow(engine.step([], begin + timedelta(seconds=120)))
        past.settle()
        found = answer(CLOSING, known, {"event_id": "e"})
        assert found["data"]["books"] == {}
        assert found["meta"]["reason"].startswith(why)
    late = Engine()
    late.step([], datetime(2026, 2, 8, 17, 59, tzinfo=UTC))
    with pytest.raises(Problem):
        CLOSING.answer(_ask(here, late, {"event_id": event}, CLOSING))


# ---- tables ----


def test_tables_have_a_row_for_each_point_and_each_line(stage: Stage, closed: tuple[Node, str]) -> None:
    query = {"event": stage.world.fixtures[0].id, "limit": 5}
    shown_ = answer(HISTORY, stage.node, query)["data"]
    rows = [
        {**{name: value for name, value in entry.items() if name != "points"},
         **{name: values[at] for name, values in entry["points"].items()}}
        for entry in shown_ for at in range(len(entry["points"]["at"]))
    ]  # fmt: skip
    frame = assert_tables(HISTORY, stage.node, query, rows)
    assert frame.height > 10
    here, event = closed
    one = answer(CLOSING, here, {"event_id": event})["data"]
    of_event = {name: value for name, value in one.items() if name != "books"}
    lines = [{**line, **of_event} for book in one["books"].values() for line in book]
    assert len(lines) > 3
    assert_tables(CLOSING, here, {"event_id": event}, lines)
    assert_tables(DAY, here, {"date": "2026-02-08"}, lines)
    assert_tables(CLV, here, {}, answer(CLV, here)["data"])


# ---- closing line value ----


def test_groups_of_bets(closed: tuple[Node, str]) -> None:
    here, event = closed
    found = answer(CLV, here, {"by": "sportsbook"})
    (group,) = found["data"]
    assert list(group) == list(history_response.ClvGroup.__struct_fields__)
    assert (group["group"], group["count"], group["graded"], group["events"]) == ("draftkings", 1, 1, 1)
    assert group["avg_ev"] == pytest.approx(5.0)  # 2.1 at one half
    fair = answer(CLOSING, here, {"event_id": event})["data"]["books"]["draftkings"][0]["fair_probability"]
    assert group["avg_clv"] == pytest.approx(100.0 * (2.1 * fair - 1.0), abs=1e-3)
    assert (group["avg_clv_error"], group["beat_close"]) == (None, 1.0)
    assert found["meta"]["total"] == {**group, "group": "all"}
    assert (found["meta"]["group_by"], found["meta"]["count"]) == ("sportsbook", 1)
    for by, name in (("sport", "basketball"), ("league", "nba"), ("market", "moneyline"), ("day", "2026-02-08")):
        assert [g["group"] for g in answer(CLV, here, {"by": by})["data"]] == [name]
    for query in (
        {"min_ev": 6}, {"sport": "tennis"}, {"league": "nhl"}, {"sportsbook": "caesars"}, {"event": "f"},
        {"since": "2026-02-09T12:00:00Z"}, {"until": "2026-02-07T12:00:00Z"},
    ):  # fmt: skip
        empty = answer(CLV, here, query)
        assert (empty["data"], empty["meta"]["total"]["count"], empty["meta"]["total"]["avg_clv"]) == ([], 0, None)
    named = answer(CLV, here, {"group_by": "sport", "from": "2026-02-08T12:00:00Z", "to": "2026-02-09T12:00:00Z"})
    assert [g["group"] for g in named["data"]] == ["basketball"]
    (by_pinnacle,) = answer(CLV, here, {"devig_book": "pinnacle"})["data"]
    assert by_pinnacle["avg_clv"] == pytest.approx(group["avg_clv"])
    assert answer(CLV, here, {"devig_book": "caesars"})["data"][0]["without_close"] == 1
    assert answer(CLV, here, {"devig_book": "nobody"})["meta"]["unknown"] == {"devig_book": ["nobody"]}
    assert CLV.feature == "ev"
    with pytest.raises(Problem, match="by must be one of"):
        answer(CLV, here, {"by": "colour"})


def test_bets_are_settled_when_a_game_is_over(closed: tuple[Node, str]) -> None:
    here, event = closed
    assert here.past is not None
    score = {"home_score": 101, "away_score": 99}
    here.past.play({event: score | {"is_live": True}, "f": {"home_score": None, "away_score": 1, "is_live": False}})
    here.past.settle()
    assert answer(CLV, here)["meta"]["total"]["won"] == 0
    here.past.play({event: score | {"is_live": False}})
    here.past.settle()
    total = answer(CLV, here)["meta"]["total"]
    assert (total["won"], total["lost"], total["avg_return"]) == (1, 0, 110.0)
