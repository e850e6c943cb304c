"""`price_history`: what it selects by name, and that its changes are those of the board."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting.past_prices import PRICE_HISTORY_SCHEMA, described, rows_of, with_ends

_BOOKS = ["pinnacle", "betonline", "draftkings", "fanduel"]
KEY = ("event_id", "sportsbook", "market_type", "selection", "line", "selection_type")
_NOON = datetime(2026, 2, 8, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> oe.Tape:
    """Half an hour of a world with live games, suspensions and removed prices."""
    folder = tmp_path_factory.mktemp("prices") / "tape"
    engine, writer = oe.resume(folder)
    with writer:
        for batch in oe.World(3, events=4, live=0.5, tick=60.0, hazards=True, books=_BOOKS).run(1800):
            engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return oe.Tape(folder)


@pytest.fixture(scope="module")
def frame(tape: oe.Tape) -> pl.DataFrame:
    return tape.frame()


def naive(tape: oe.Tape) -> dict[str, set[tuple[Any, ...]]]:
    """Changes of every event's rows, by comparing the whole board before and after every step."""
    engine = oe.Engine()
    last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    out: dict[str, set[tuple[Any, ...]]] = {}
    for step in tape:
        engine.feed(step.batch)
        board = {
            tuple(row[name] for name in KEY): (row["odds_decimal"], row["is_live"], row["is_active"])
            for row in engine.table().iter_rows(named=True)
        }
        board |= {key: (*was[:2], False) for key, was in last.items() if key not in board}
        for (event, *key), now in board.items():
            if last.get((event, *key)) != now:
                out.setdefault(event, set()).add((step.batch.now, *key, *now))
        last = board
    return out


def test_the_changes_of_a_tape_are_those_of_the_board(tape: oe.Tape, frame: pl.DataFrame) -> None:
    expected = naive(tape)
    assert set(expected) == set(frame["event_id"])
    for event in expected:
        found = oe.price_history(tape, event=event)
        rows = found.select(
            pl.col("recorded_at").dt.epoch("us"), "sportsbook", "market_type", "selection", "line",
            "odds_decimal", "is_live", "is_active",
        ).rows()  # fmt: skip
        sport = frame.filter(event_id=event)["sport"][0]
        wanted = {
            (now, book, catalog.published_name(kind, sport), selection, line, *price)
            for now, book, kind, selection, line, _, *price in expected[event]
        }
        stated = {(*row[:4], *row[5:]) for row in rows}  # lines of some raw labels stand in their selections
        assert len(rows) > 100
        assert stated == {(*row[:4], *row[5:]) for row in wanted}


def test_all_forms_of_a_history_have_the_same_changes(tape: oe.Tape, frame: pl.DataFrame, tmp_path: Path) -> None:
    event = frame["event_id"][0]
    wanted = oe.price_history(tape, event=event, market="moneyline")
    assert wanted.schema == pl.Schema(PRICE_HISTORY_SCHEMA)
    assert wanted["recorded_at"].is_sorted()
    frame.write_parquet(tmp_path / "history.parquet")
    for history in (tape.path, frame, frame.lazy(), tmp_path / "history.parquet", wanted):
        assert oe.price_history(history, event=event, market="moneyline").equals(wanted)


def selected(frame: pl.DataFrame, **words: Any) -> pl.DataFrame:
    return oe.price_history(frame, event=frame["event_id"][0], **words)


def test_it_selects_by_market_outcome_line_and_book(frame: pl.DataFrame) -> None:
    whole = selected(frame)
    home = whole["home_team"][0]
    one = selected(frame, market="ML", selection=home)
    assert one.height
    assert set(one["selection_type"]) == {"home"}
    assert set(one["market_type"]) == {"moneyline"}
    assert one.equals(selected(frame, market="h2h", selection="home"))
    kinds = whole.filter(pl.col("market_type").str.starts_with("total_"))["market_type"].unique().to_list()
    total = selected(frame, market="totals")
    assert total["market_type"].unique().to_list() == kinds
    line = total["line"][0]
    over = selected(frame, market="totals", selection="over", line=line)
    assert over.equals(total.filter(selection_type="over", line=line))
    assert over.equals(selected(frame, market="totals", selection=f"Over {line:g}"))
    for given in ("FanDuel", ["fanduel"]):
        assert selected(frame, sportsbook=given).equals(whole.filter(sportsbook="fanduel"))
    assert selected(frame, sportsbook=("fanduel", "Pinnacle"))["sportsbook"].n_unique() == 2


def test_an_event_is_named_by_words_of_its_name(frame: pl.DataFrame) -> None:
    whole = selected(frame)
    home, away = whole["home_team"][0], whole["away_team"][0]
    for name in (f"{away} @ {home}", f"{home} vs {away}", home.lower(), f"{away} at {home}"):
        assert oe.price_history(frame, event=name).equals(whole), name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"event": "nobody"}, r"the prices have no event 'nobody'; they have .+ @ .+ \(.+\), "),
        ({"event": "at"}, "no event 'at'"),
        ({"market": "corners"}, "the prices have no market 'corners'; they have .*moneyline"),
        ({"selection": "nobody"}, "the prices have no selection 'nobody'; they have .*over"),
        ({"line": 999.0}, r"the prices have no line '999'; they have -?\d"),
        ({"sportsbook": "Corner Shop"}, "the prices have no sportsbook 'Corner Shop'; they have .*pinnacle"),
    ],
)  # fmt: skip
def test_a_name_that_nothing_has_lists_what_there_is(frame: pl.DataFrame, words: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        oe.price_history(frame, **words)


def quote(minutes: float, selection: str = "Lakers", odds: float | None = 1.9, **more: Any) -> dict[str, Any]:
    return {
        "event_id": "e1", "sport": "basketball", "league": "nba", "home_team": "Los Angeles Lakers",
        "away_team": "Boston Celtics", "market_type": "moneyline", "sportsbook": "fanduel", "selection": selection,
        "line": None, "odds_decimal": odds, "is_active": True, "last_seen_at": _NOON + timedelta(minutes=minutes),
        **more,
    }  # fmt: skip


def test_a_name_of_several_events_lists_them() -> None:
    rows = [quote(0), quote(0, event_id="e2", away_team="Miami Heat")]
    with pytest.raises(ValueError, match=r"event 'lakers' can be several: Boston Celtics @ .* \(e1\), Miami Heat @ "):
        oe.price_history(pl.DataFrame(rows), event="lakers")
    assert oe.price_history(pl.DataFrame(rows), event="heat lakers")["event_id"].to_list() == ["e2"]
    ids = [quote(0, event_id="heat"), quote(0, event_id="e2", away_team="Miami Heat")]
    assert oe.price_history(pl.DataFrame(ids), event="heat")["event_id"].to_list() == ["heat"]  # an id comes first


def test_repeated_and_late_prices_are_no_changes_and_suspensions_are() -> None:
    rows = [
        quote(0),
        quote(1),
        quote(2, odds=2.0),
        quote(1.5, odds=1.8),  # late
        quote(3, odds=None, is_active=False),
        quote(4, odds=2.0),
        quote(5, odds=None, is_active=False, is_live=True),
    ]
    seen = [0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0]
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        recorded_at=pl.Series([_NOON + timedelta(minutes=at) for at in seen])
    )
    found = oe.price_history(frame)
    assert [(row[0] - _NOON) / timedelta(minutes=1) for row in found.select("recorded_at").rows()] == [0, 2, 3, 4, 5]
    assert found.select("odds_decimal", "is_active", "is_live").rows() == [
        (1.9, True, False), (2.0, True, False), (2.0, False, False), (2.0, True, False), (2.0, False, True),
    ]  # fmt: skip


def test_an_empty_history_has_no_changes() -> None:
    assert oe.price_history(pl.DataFrame([quote(0)]).clear()).schema == pl.Schema(PRICE_HISTORY_SCHEMA)


def spread(minutes: float, line: float) -> dict[str, Any]:
    return quote(minutes, market_type="point_spread", line=line)


@pytest.mark.parametrize(
    ("quotes", "ends"),
    [
        # The line moves at 12 and is never listed again: it ended there.
        (lambda: [spread(0, -3.5), *(spread(at, -4.5) for at in (12, 24))], [(12, -3.5)]),
        # It is listed again.
        (lambda: [spread(0, -3.5), spread(5, -4.5), spread(8, -3.5)], []),
        (lambda: [spread(0, -3.5), spread(12, -4.5), spread(24, -3.5)], [(12, -3.5), (24, -4.5)]),
        # Nothing of the book was seen meanwhile.
        (lambda: [spread(0, -3.5), spread(60, -3.5)], []),
    ],
)  # fmt: skip
def test_a_price_ends_when_its_book_quotes_others(
    quotes: Callable[[], list[dict[str, Any]]], ends: list[tuple[float, float]]
) -> None:
    rows = described(rows_of(pl.DataFrame(quotes(), infer_schema_length=None)))
    found = with_ends(rows).filter(~pl.col("is_active"))
    assert [
        ((at - _NOON) / timedelta(minutes=1), line) for at, line in found.select("recorded_at", "line").rows()
    ] == ends


def test_raw_labels_are_named_alike(frame: pl.DataFrame) -> None:
    found = described(frame)
    assert found.height == frame.height
    assert found.select("recorded_at", "sportsbook", "odds_decimal").equals(
        frame.select("recorded_at", "sportsbook", "odds_decimal")
    )
    kinds = found.filter(pl.col("market_type") == "moneyline")
    assert set(frame.filter(market_type="h2h")["sportsbook"]) <= set(kinds["sportsbook"])
    spread_ = found.filter(pl.col("market_type") == "point_spread").drop_nulls("selection_type")
    named = spread_.filter(pl.col("selection_type") == "home").select("selection", "home_team").unique()
    assert all(team.split()[-1] in selection for selection, team in named.iter_rows())
