"""Betting splits: what is taken, kept, forgotten and shown."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handler_calls import answer, found, node, world

import oddsengine_service.routes.split_routes as module
from oddsengine.live.engine import Engine
from oddsengine.simulate.simulated_splits import SOURCES
from oddsengine_service.board.split_store import EVERY_S, KEPT_S, Splits
from oddsengine_service.demo import add_splits
from oddsengine_service.errors import Problem
from oddsengine_service.node import Node
from oddsengine_service.wire.splits_response import SplitsGiven

SPLITS, HISTORY = found(module.endpoints, "/splits"), found(module.endpoints, "/splits/history")
POST = found(module.endpoints, "/splits", "POST")
NOW = datetime(2026, 2, 8, 12, tzinfo=UTC)


def record(event: str = "e", book: str = "draftkings", **more: Any) -> dict[str, Any]:
    return {
        "event_id": event, "sportsbook": book, "sport": "football", "league": "nfl", "home_team": "Bills",
        "away_team": "Jets",
        "spread": {
            "away_odds": 3.5, "home_odds": -3.5, "handle_pct": {"away": 0.41, "home": 0.59},
            "bets_pct": {"away": 0.3712, "home": 0.6288},
        },
        "total": {"line": 44.5, "handle_pct": {"over": 0.7, "under": 0.3}, "bets_pct": {"over": 0.66, "under": 0.34}},
        "moneyline": {
            "away_odds": 150, "home_odds": -175, "handle_pct": {"away": 0.2, "home": 0.8},
            "bets_pct": {"away": 0.25, "home": 0.75},
        },
        **more,
    }  # fmt: skip


def given_at(time: datetime, **more: Any) -> SplitsGiven:
    return msgspec.convert(record(**more) | {"fetched_at": time.isoformat()}, SplitsGiven)


def here() -> Node:
    node_ = node(Engine())
    return node_


def post(node_: Node, *records: dict[str, Any]) -> Any:
    return answer(POST, node_, body={"splits": list(records)})["data"]


def test_what_is_posted_is_shown() -> None:
    node_ = here()
    assert post(node_, record(), record(book="Circa Sports", total=None)) == {"accepted": 2, "ignored": 0}
    got = answer(SPLITS, node_, tier="hobby")
    assert set(got) == {"data", "pagination", "updated_at", "meta"}
    one, two = sorted(got["data"], key=lambda row: row["sportsbook"], reverse=True)
    expected = record()
    assert list(one) == [
        "event_id", "sport", "league", "sportsbook", "home_team", "away_team", "fetched_at", "spread", "total",
        "moneyline",
    ]  # fmt: skip
    assert {name: one[name] for name in expected} == expected
    assert (two["sportsbook"], two["total"]) == ("circa", None)
    assert got["updated_at"] == max(one["fetched_at"], two["fetched_at"])
    assert got["pagination"] == {"limit": 50, "offset": 0, "has_more": False, "next_offset": None}


def test_filters() -> None:
    node_ = here()
    post(node_, record("a"), record("b", league="nba", sport="basketball"), record("c", spread=None, moneyline=None))

    def ids(**query: Any) -> list[str]:
        return [row["event_id"] for row in answer(SPLITS, node_, query)["data"]]

    assert ids() == ["a", "b", "c"]
    assert ids(sport="nfl") == ["a", "c"]
    assert ids(league="nba") == ["b"]
    assert ids(event="b,c") == ids(event_id="b,c") == ["b", "c"]
    assert ids(market="spread") == ["a", "b"]
    assert ids(market="spread,total") == ["a", "b", "c"]
    assert ids(sportsbook="fanduel") == []
    assert ids(limit=1, offset=1) == ["b"]
    got = answer(SPLITS, node_, {"sport": "quidditch", "market": "corners", "sportsbook": "nowhere"})
    assert got["data"] == []
    assert got["meta"]["unknown"] == {"sport": ["quidditch"], "market": ["corners"], "sportsbook": ["nowhere"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": ""}, {"sportsbook": ""}, {"colour": "red"}, {"fetched_at": "yesterday"},
        {"total": {"line": 1, "handle_pct": {"over": 63, "under": 37}, "bets_pct": {"over": 0.5, "under": 0.5}}},
        {"fetched_at": "2999-01-01T00:00:00Z"},
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((Problem, msgspec.ValidationError)):
        post(here(), record() | wrong)


def test_a_late_record_changes_nothing() -> None:
    node_ = here()
    then = datetime.now(UTC) - timedelta(seconds=100)
    post(node_, record(fetched_at=then.isoformat()))
    late = record(fetched_at=(then - timedelta(seconds=1)).isoformat(), total=None)
    old = record("old", fetched_at=(then - timedelta(hours=49)).isoformat())
    assert post(node_, late, old) == {"accepted": 0, "ignored": 2}
    (row,) = answer(SPLITS, node_)["data"]
    assert row["total"] is not None


# ---- history ----


@given(st.lists(st.integers(1, 900), min_size=1, max_size=60))
def test_snapshots_are_minutes_apart_and_the_last_is_the_newest(gaps: list[int]) -> None:
    """Against a plain list: every snapshot but the last two keeps its distance, nothing is invented."""
    splits, times, now = Splits(), [], NOW
    for gap in gaps:
        now += timedelta(seconds=gap)
        times.append(now)
        assert splits.put(given_at(now), now)
    entries = splits.history("e", None, None, now)
    kept = [datetime.fromisoformat(entry.ts) for entry in entries]
    assert kept == sorted(set(kept) & set(times))
    assert kept[-1] == times[-1]
    assert kept[0] == times[0]
    apart = [(two - one).total_seconds() for one, two in zip(kept, kept[2:], strict=False)]
    assert all(gap >= EVERY_S - 30 for gap in apart)
    busy = [(two - one).total_seconds() for one, two in pairwise(kept)]
    assert all(gap <= EVERY_S + max(gaps) for gap in busy)


def test_snapshots_leave_after_two_days() -> None:
    splits = Splits()
    start = NOW - timedelta(seconds=KEPT_S)
    for minutes in range(0, 60 * 60, 5):
        then = start + timedelta(minutes=minutes)
        splits.put(given_at(then), then)
    end = start + timedelta(minutes=60 * 60 - 5)
    entries = splits.history("e", None, None, end)
    assert len(entries) == KEPT_S // EVERY_S + 1
    assert entries[0].timestamp == int(end.timestamp()) - KEPT_S
    assert splits.latest(end + timedelta(hours=49)) == []
    assert len(splits) == 0


def test_the_store_is_bounded() -> None:
    splits = Splits(3)
    for at in range(5):
        splits.put(given_at(NOW + timedelta(seconds=at), event=f"e{at}"), NOW + timedelta(seconds=at))
    assert [row.event_id for row in splits.latest(NOW + timedelta(seconds=9))] == ["e2", "e3", "e4"]


def moved() -> tuple[Node, datetime]:
    """A node with eleven hours of splits of two books."""
    node_ = here()
    splits = node_.splits
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    for at in range(132, -1, -1):
        then = now - timedelta(minutes=5 * at)
        for book in ("draftkings", "circa"):
            splits.put(given_at(then, book=book, total=None if at % 2 else record()["total"]), now)
    return node_, now


def test_history() -> None:
    node_, now = moved()
    got = answer(HISTORY, node_, {"event_id": "e"})
    assert got["success"] is True
    assert set(got["meta"]) == {"event_id", "total", "books", "oldest", "newest", "updated_at"}
    assert (got["meta"]["total"], got["meta"]["books"]) == (266, ["circa", "draftkings"])
    rows = got["data"]
    assert len(rows) == 100
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    assert rows[-1]["timestamp"] == int(now.timestamp())
    assert datetime.fromisoformat(rows[0]["ts"]).timestamp() == rows[0]["timestamp"]
    assert (got["meta"]["oldest"], got["meta"]["newest"]) == (rows[0]["ts"], rows[-1]["ts"])
    assert list(rows[-1]) == ["book", "ts", "timestamp", "spread", "total", "moneyline"]
    assert rows[-1]["spread"] == {
        "away_line": 3.5, "home_line": -3.5, "handle_pct": {"away": 0.41, "home": 0.59},
        "bets_pct": {"away": 0.3712, "home": 0.6288},
    }  # fmt: skip
    assert {row["total"] is None for row in rows} == {True, False}


@pytest.mark.parametrize("limit", [1, 3, 200])
def test_history_never_exceeds_its_limit(limit: int) -> None:
    node_, _ = moved()
    for query in ({}, {"sportsbook": "circa"}, {"sportsbook": "circa,draftkings"}):
        whole = answer(HISTORY, node_, {"event_id": "e", "limit": 200, **query})
        got = answer(HISTORY, node_, {"event_id": "e", "limit": limit, **query})
        assert got["data"] == whole["data"][-limit:]
        assert got["meta"]["total"] == whole["meta"]["total"] > 3
        assert got["meta"]["books"] == sorted({row["book"] for row in got["data"]})
    circa = answer(HISTORY, node_, {"event_id": "e", "limit": limit, "sportsbook": "circa"})
    assert circa["meta"]["books"] == ["circa"]
    assert len(circa["data"]) == min(limit, 133) == min(limit, circa["meta"]["total"])


def test_times_as_rfc_3339_or_unix_seconds() -> None:
    node_, now = moved()
    begin, end = now - timedelta(hours=2), now - timedelta(hours=1)
    texts = {"start_time": begin.isoformat().replace("+00:00", "Z"), "end_time": end.isoformat().replace("+00:00", "Z")}
    numbers = {"start_time": int(begin.timestamp()), "end_time": int(end.timestamp())}
    one, two = (answer(HISTORY, node_, {"event_id": "e", **times})["data"] for times in (texts, numbers))
    assert one == two
    assert len(one) == 26
    with pytest.raises(Problem):
        answer(HISTORY, node_, {"event_id": "e", "start_time": texts["end_time"], "end_time": texts["start_time"]})
    with pytest.raises(Problem) as problem:
        answer(HISTORY, node_, {"event_id": "e", "start_time": "noon"})
    assert problem.value.code == "validation_error"


def test_history_without_an_event() -> None:
    with pytest.raises(Problem) as problem:
        answer(HISTORY, here())
    assert (problem.value.status, problem.value.code) == (400, "invalid_request")
    got = answer(HISTORY, here(), {"event_id": "nobody"})
    assert (got["data"], got["meta"]["oldest"], got["meta"]["total"]) == ([], None, 0)


def test_the_free_tier_is_late() -> None:
    node_ = here()
    post(node_, record(fetched_at=(datetime.now(UTC) - timedelta(seconds=5)).isoformat()))
    assert len(answer(SPLITS, node_)["data"]) == 1
    assert answer(SPLITS, node_, tier="free")["data"] == []
    assert answer(HISTORY, node_, {"event_id": "e"}, "free")["data"] == []


# ---- the demo's ----


def test_made_up_splits() -> None:
    engine = world(3, 1, events=6)
    first, again, other = Splits(), Splits(), Splits()
    taken = add_splits(first, engine, NOW, hours=1)
    add_splits(again, engine, NOW, hours=1)
    add_splits(other, engine, NOW, seed=8, hours=1)
    rows = first.latest(NOW)
    assert taken == 6 * len(SOURCES) * 13
    assert rows == again.latest(NOW) != other.latest(NOW)
    assert len(rows) == 12
    for row in rows:
        assert row.spread is not None and row.total is not None and row.moneyline is not None  # noqa: PT018
        for split in (row.spread, row.moneyline):
            for part in (split.handle_pct, split.bets_pct):
                assert part.away + part.home == pytest.approx(1.0)
                assert 0.0 <= part.away <= 1.0
        assert row.spread.away_odds == -row.spread.home_odds  # type: ignore[operator]
    history = first.history(rows[0].event_id, ["circa"], None, NOW)
    assert len(history) == 13
    assert len({entry.spread.bets_pct.away for entry in history if entry.spread}) > 5  # they move
