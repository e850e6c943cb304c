"""Movers, beside plain Python over the moves of each event and the rows of the board."""

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.columns import Floats
from oddsengine.history.movements import Ring, described
from oddsengine.live.engine import Engine
from oddsengine.query import Index, RowFilter
from oddsengine.query.movers import LEAST_BOOKS, find_movers, ordered
from oddsengine.query.row_values import RowFair
from oddsengine.simulate import World
from oddsengine.tables.timestamps import micros
from oddsengine_service.board.boards import Boards
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.params import parse
from oddsengine_service.routes.mover_routes import endpoints
from oddsengine_service.tiers import TIERS, Caller

NOW = datetime(2026, 2, 7, 18, tzinfo=UTC)


@st.composite
def boards(draw: st.DrawFn) -> tuple[RowFair, Floats, Floats, Floats, Any]:
    """Rows of a few markets, of which some are not comparable, have no earlier price or cannot be bet."""
    n = draw(st.integers(0, 40))
    prices = st.lists(st.sampled_from((1.5, 1.8, 1.9, 2.0, 2.1, 3.0)), min_size=n, max_size=n)
    gaps = st.lists(st.sampled_from((False, False, False, True)), min_size=n, max_size=n)
    outcome = np.array(draw(st.lists(st.integers(-1, 5), min_size=n, max_size=n)), np.int64)
    odds, earlier, own = (np.array(draw(prices)) for _ in range(3))
    earlier[np.array(draw(gaps), bool)] = np.nan
    own = 1.0 / own
    own[np.array(draw(gaps), bool)] = np.nan
    nothing = np.full(n, np.nan)
    fair = RowFair(nothing, nothing, nothing, own, outcome, np.where(outcome < 0, -1, outcome // 3))
    return fair, odds, np.round(odds * 0.99, 6), earlier, ~np.array(draw(gaps), bool)


@given(boards())
def test_movers_are_those_of_plain_python(board: tuple[RowFair, Floats, Floats, Floats, Any]) -> None:
    fair, odds, net, earlier, usable = board
    rows: dict[int, list[int]] = {}
    for at, outcome in enumerate(fair.outcome.tolist()):
        if usable[at] and outcome >= 0 and not math.isnan(earlier[at]):
            rows.setdefault(outcome, []).append(at)
    best: dict[int, tuple[Any, ...]] = {}
    for outcome, places in sorted(rows.items()):
        then = sum(1.0 / earlier[at] for at in places) / len(places)
        now = sum(1.0 / odds[at] for at in places) / len(places)
        own = [fair.own[at] for at in places if not math.isnan(fair.own[at])]
        found = (
            round(then, 9), round(now, 9), sum(odds[at] < earlier[at] for at in places),
            sum(odds[at] > earlier[at] for at in places), len(places),
            round(max(own) - min(own), 9) if len(own) >= LEAST_BOOKS else None,
            max(net[at] for at in places),
        )  # fmt: skip
        held = best.get(outcome // 3)
        if held is None or (found[4], round(now - then, 9)) > (held[4], round(held[1] - held[0], 9)):
            best[outcome // 3] = found
    twin = sorted(each for each in best.values() if each[4] >= LEAST_BOOKS)
    seen = find_movers(fair, odds, net, earlier, usable)
    made = zip(*(column.tolist() for column in seen), strict=True)
    as_rows = sorted(
        (round(b, 9), round(a, 9), s, lo, n, None if math.isnan(w) else round(w, 9), net[at])
        for b, a, s, lo, n, w, at in made
    )
    assert [each[2:5] for each in as_rows] == [each[2:5] for each in twin]
    for one, other in zip(as_rows, twin, strict=True):
        assert one == pytest.approx(other, abs=2e-9)
    by_move = (seen.now - seen.before)[ordered(seen, "move")].tolist()
    assert by_move == sorted(by_move, reverse=True)


@pytest.fixture(scope="module")
def played() -> tuple[Engine, Ring]:
    engine = Engine()
    ring = Ring(engine)
    for batch in World(5, events=8).run(60.0):
        ring.follow(engine.step(batch.quotes, batch.now))
    return engine, ring


@pytest.mark.parametrize("seconds", [0, 7, 30, 59, 90])
def test_odds_at_a_time_are_those_of_the_moves(played: tuple[Engine, Ring], seconds: int) -> None:
    engine, ring = played
    assert engine.now is not None
    at = micros(engine.now - timedelta(seconds=seconds))
    with Index(engine).reader() as reader:
        slots = reader.matching_rows(RowFilter(), {})
        ids, _, _ = reader.quoted(slots)
        events = reader.events_of(slots)
    twin: dict[int, float] = {}
    moves_now: dict[int, float] = {}
    for event in events:
        moves = ring.changes_of_event(event, micros(engine.now))
        _, _, _, named = described(moves)
        for row, ident in enumerate(named.tolist()):
            mine = np.flatnonzero(moves.row == row)
            moves_now[ident] = moves.odds[mine[-1]]
            earlier = mine[moves.at[mine] <= at]
            last = earlier[-1] if earlier.size else mine[0]
            twin[ident] = moves.odds[last] if moves.active[last] else math.nan
    at_slot = dict(zip(ids.tolist(), slots.tolist(), strict=True))
    some = np.array([ident for ident in ids.tolist() if ident in twin], np.uint64)
    where = np.array([at_slot[ident] for ident in some.tolist()], np.int32)
    assert some.size > 50
    expected = np.array([twin[ident] for ident in some.tolist()])
    np.testing.assert_array_equal(ring.odds_at(where, some, at), expected)
    elsewhere = np.roll(where, 1)  # others have taken their slots
    np.testing.assert_array_equal(ring.odds_at(elsewhere, some, at), expected)
    beyond = np.array([0, 1 << 30], np.int32)
    assert np.isnan(ring.odds_at(beyond, np.array([1, 2], np.uint64), at)).all()
    assert (expected != np.array([moves_now[ident] for ident in some.tolist()])).any() == (seconds > 0)


def test_a_row_whose_moves_were_displaced_is_not_known(played: tuple[Engine, Ring]) -> None:
    engine = Engine()
    small, whole = Ring(engine, most=200), Ring(engine)
    for batch in World(5, events=4).run(60.0):
        update = engine.step(batch.quotes, batch.now)
        small.follow(update)
        whole.follow(update)
    assert engine.now is not None
    with Index(engine).reader() as reader:
        slots = reader.matching_rows(RowFilter(), {})
        ids, odds, _ = reader.quoted(slots)
    for seconds in (0, 5, 30):
        at = micros(engine.now - timedelta(seconds=seconds))
        few, every = small.odds_at(slots, ids, at), whole.odds_at(slots, ids, at)
        known = ~np.isnan(few)
        assert known.any()
        np.testing.assert_array_equal(few[known], every[known])
        assert known.all() == (not seconds) or np.isnan(every).any()
    assert odds.size


def call(engine: Engine, ring: Ring | None, tier: str = "enterprise", **query: Any) -> dict[str, Any]:
    past = None if ring is None else SimpleNamespace(recent=ring)
    node = SimpleNamespace(engine=engine, boards=Boards(engine, "close", {}), past=past)
    (endpoint,) = endpoints
    read, ignored = parse(urlencode(query).encode(), endpoint.query)
    rights = TIERS[tier]
    caller = Caller("account", "key", rights, rights.rate, 0, rights.features)
    answer = endpoint.answer(Context(caller, read, {}, None, engine, node, ignored))  # type: ignore[arg-type]
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer))
    return found


def quotes(odds: dict[str, tuple[float, float]], now: datetime, event: str = "e") -> list[dict[str, Any]]:
    teams = ("Boston Celtics", "Miami Heat")
    return [
        {
            "sportsbook": book, "event_id": event, "sport": "basketball", "league": "nba", "home_team": teams[0],
            "away_team": teams[1], "market_type": "moneyline", "selection": team, "odds_decimal": price,
            "event_start_time": NOW + timedelta(hours=5), "last_seen_at": now, "is_live": False,
        }
        for book, both in odds.items()
        for team, price in zip(teams, both, strict=True)
    ]  # fmt: skip


def test_what_got_shorter_is_listed_with_the_price_that_is_left() -> None:
    engine = Engine()
    ring = Ring(engine)
    books = ("pinnacle", "fanduel", "draftkings", "betmgm")
    ring.follow(engine.step(quotes(dict.fromkeys(books, (2.0, 1.85)), NOW), NOW))
    later = NOW + timedelta(minutes=5)
    moved = dict.fromkeys(books[:3], (1.9, 1.95)) | {"betmgm": (2.0, 1.85)}
    ring.follow(engine.step(quotes(moved, later), later))
    (row,) = call(engine, ring)["data"]
    assert call(engine, ring, minutes=4)["data"] == [row]  # from when they were first seen
    since = [call(engine, ring, minutes=minutes)["meta"]["since"] for minutes in (4, 20)]
    assert since == ["2026-02-07T18:01:00.000000Z", "2026-02-07T18:00:00.000000Z"], "there are no older prices"
    assert (row["odds"]["selection"], row["odds"]["sportsbook"], row["odds"]["odds_decimal"]) == (
        "Boston Celtics", "betmgm", 2.0)  # fmt: skip
    assert (row["books"], row["shorter"], row["longer"]) == (4, 3, 0)
    assert row["probability_before"] == 0.5
    assert row["probability_now"] == pytest.approx((3 / 1.9 + 0.5) / 4, abs=1e-4)
    assert row["move_points"] == pytest.approx(100 * (3 / 1.9 + 0.5) / 4 - 50.0, abs=1e-3)
    assert row["spread_points"] > 2.0
    assert row["ev_percentage"] > 0.0
    ring.follow(engine.step([], later + timedelta(minutes=3)))
    assert call(engine, ring, minutes=2)["data"] == []
    assert call(engine, ring, minutes=2, sort="spread")["meta"]["total"] == 1
    assert call(engine, ring, sportsbook="fanduel,betmgm")["data"] == []  # too few


def test_bad_questions_are_refused(played: tuple[Engine, Ring]) -> None:
    engine, ring = played
    for query in ({"minutes": 0}, {"minutes": 181}, {"sort": "size"}):
        with pytest.raises(Problem):
            call(engine, ring, **query)
    with pytest.raises(Problem, match="no price history"):
        call(engine, None)
    assert call(Engine(), ring)["data"] == []
