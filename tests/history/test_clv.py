"""Closing line value: formulas beside plain loops, a close worked out by hand, and a world whose truth is known."""

import json
import math
import sqlite3
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import less

from oddsengine import catalog
from oddsengine.board.open import NEW
from oddsengine.detection.kinds import KINDS
from oddsengine.history.closing import LAST_S, ClosingRecorder
from oddsengine.history.closing_consensus import Vote, close_logit
from oddsengine.history.clv import BETS_SCHEMA, REPORT_SCHEMA, clv, means, report
from oddsengine.live.engine import Engine
from oddsengine.live.update import hexadecimal
from oddsengine.maths.devig import devig
from oddsengine.simulate import World
from oddsengine.tables.timestamps import micros
from oddsengine.tape import TapeWriter
from oddsengine_cli import main
from oddsengine_service.accounts.database import DatabaseError
from oddsengine_service.history.closing_store import FILE, Closings, opened
from oddsengine_service.history.past import Past
from oddsengine_service.scale.closings import PendingClosings, store
from oddsengine_service.scale.shard_log import LogMessage

START = datetime(2026, 2, 8, 18, 0, tzinfo=UTC)
Row = dict[str, Any]

# ---- formulas ----


def naive_means(values: list[float], group: list[int], event: list[int], groups: int) -> list[tuple[float, float]]:
    """Mean and standard error of each group, as the docstring says them."""
    out = []
    for g in range(groups):
        mine = [(x, e) for x, k, e in zip(values, group, event, strict=True) if k == g and not math.isnan(x)]
        if not mine:
            out.append((float("nan"), float("nan")))
            continue
        n, mean = len(mine), sum(x for x, _ in mine) / len(mine)
        sums: dict[int, float] = {}
        for x, e in mine:
            sums[e] = sums.get(e, 0.0) + x - mean
        many = len(sums)
        error = (many / (many - 1) * sum(s * s for s in sums.values())) ** 0.5 / n if many > 1 else float("nan")
        out.append((mean, error))
    return out


VALUES = st.lists(
    st.tuples(st.one_of(st.floats(-1, 5), st.just(float("nan"))), st.integers(0, 3), st.integers(0, 5)), max_size=30
)


@given(VALUES)
def test_means_are_plain_loops(rows: list[tuple[float, int, int]]) -> None:
    values, group, event = [v for v, _, _ in rows], [g for _, g, _ in rows], [e for _, _, e in rows]
    found = means(values, group, event, 4)
    expected = naive_means(values, group, event, 4)
    np.testing.assert_allclose(found.mean, [m for m, _ in expected], atol=1e-12)
    np.testing.assert_allclose(found.error, [e for _, e in expected], atol=1e-9)
    assert found.size.tolist() == [sum(g == k and not math.isnan(v) for v, g, _ in rows) for k in range(4)]
    assert found.clusters.tolist() == [len({e for v, g, e in rows if g == k and not math.isnan(v)}) for k in range(4)]


def test_clustered_errors_are_those_of_the_events() -> None:
    """Each value five times is no more proof than once."""
    rng = np.random.default_rng(1)
    once = rng.normal(0.02, 0.1, 50)
    event = np.arange(50)
    alone = means(once, np.zeros(50, int), event, 1)
    five = means(np.repeat(once, 5), np.zeros(250, int), np.repeat(event, 5), 1)
    assert five.error[0] == pytest.approx(alone.error[0], rel=1e-9)
    assert alone.error[0] == pytest.approx(once.std(ddof=1) / 50**0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("price", "q"), [(1.0, 0.5), (0.5, 0.5), (np.inf, 0.5), (2.0, -0.1), (2.0, 1.0 + 1e-10), (2.0, np.nan)]
)
def test_no_value_without_a_price_and_a_close(price: float, q: float) -> None:
    assert np.isnan(clv(price, q))


def bet(**more: Any) -> Row:
    row = {
        "id": "0", "event_id": "e", "sportsbook": "x", "sport": "tennis", "league": "atp", "market": "moneyline",
        "day": "2026-02-08", "state": "graded", "ev": 0.03, "price": 2.0, "best_price": 2.1, "closing": 0.5,
    }  # fmt: skip
    return row | more


def test_a_price_that_equals_the_close_does_not_beat_it() -> None:
    bets = pl.DataFrame([bet(price=2.0, closing=0.5, others=0.5, gain=0.0)], BETS_SCHEMA)
    (row,) = report(bets).iter_rows(named=True)
    assert (row["graded"], row["avg_clv"], row["beat_close"]) == (1, 0.0, 0.0)
    assert (row["others_graded"], row["avg_others_clv"], row["others_beat_close"]) == (1, 0.0, 0.0)
    assert (row["won"], row["lost"], row["pushed"], row["avg_return"]) == (0, 0, 1, 0.0)


def test_report_counts_every_state_and_grades_only_what_closed() -> None:
    rows = [
        bet(event_id="a", price=2.1), bet(event_id="b", price=1.9, closing=0.5, ev=0.01),
        bet(state="without_close", closing=None, ev=0.5), bet(state="waiting", closing=None, ev=0.5),
        bet(state="in_play", closing=0.9, ev=0.5), bet(sportsbook="y", state="waiting", closing=None),
    ]  # fmt: skip
    bets = pl.DataFrame(rows, BETS_SCHEMA)
    x, y = report(bets, "sportsbook").iter_rows(named=True)
    assert (x["group"], x["count"], x["graded"], x["without_close"], x["waiting"], x["in_play"]) == ("x", 5, 2, 1, 1, 1)
    assert x["avg_ev"] == pytest.approx(2.0)  # not the 50 % of those that were not graded
    assert x["avg_clv"] == pytest.approx(0.0)
    assert x["avg_clv_error"] == pytest.approx(5.0)  # +5 % and -5 %
    assert (x["beat_close"], x["events"]) == (0.5, 2)
    assert x["avg_best_clv"] == pytest.approx(5.0)
    assert y["avg_clv"] is None
    assert y["count"] == 1
    (everything,) = report(bets).iter_rows(named=True)
    assert (everything["group"], everything["count"]) == ("all", 6)
    assert report(bets.clear(), "day").schema == pl.Schema(REPORT_SCHEMA)
    with pytest.raises(ValueError, match="by must be one of"):
        report(bets, "colour")


# ---- by hand ----


def quote(book: str, selection: str, odds: float, at: datetime, **more: Any) -> Row:
    row = {
        "sportsbook": book, "event_id": "e", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
        "away_team": "LA Lakers", "market_type": "moneyline", "selection": selection, "odds_decimal": odds,
        "event_start_time": START, "last_seen_at": at,
    }  # fmt: skip
    return row | more


HOME, AWAY = "Boston Celtics", "LA Lakers"


class Provider:
    """An engine, a recorder and a clock that counts seconds to the start."""

    def __init__(self, closings: Closings | None = None) -> None:
        self.engine, self.closings = Engine(), closings or Closings()
        self.recorder = ClosingRecorder(self.engine, self.closings, method="power")

    def step(
        self, before_s: float, *rows: tuple[str, str, float], events: Any = (), live: bool = False, **more: Any
    ) -> Any:
        at = START - timedelta(seconds=before_s)
        quotes = [quote(*row, at, is_live=live, **more) for row in rows]
        update = self.engine.step(quotes, at, events=events)
        self.recorder.follow(update)
        return update

    def bets(self) -> list[Row]:
        return self.closings.bets().to_dicts()

    def stored(self) -> list[Row]:
        base = self.closings.database.connection
        base.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in base.execute("SELECT * FROM bets ORDER BY id")]
        finally:
            base.row_factory = None


def pinnacle(home: float, away: float) -> tuple[tuple[str, str, float], ...]:
    return ("pinnacle", HOME, home), ("pinnacle", AWAY, away)


def test_a_close_by_hand() -> None:
    provider = Provider()
    provider.step(3600, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    (first,) = provider.bets()
    assert (first["state"], first["sportsbook"], first["sport"], first["league"]) == (
        "waiting", "draftkings", "basketball", "nba",
    )  # fmt: skip
    assert first["ev"] == pytest.approx(0.075)  # 2.15 / 2 - 1
    provider.step(3500, ("draftkings", HOME, 2.20))  # better
    provider.step(3400, ("draftkings", HOME, 2.05))  # worse
    provider.step(300, *pinnacle(1.80, 2.14), ("draftkings", HOME, 1.83), ("draftkings", AWAY, 2.00))
    provider.step(0.5)
    assert provider.closings.closing("e") is None
    provider.step(-1, *pinnacle(1.50, 2.90), live=True)
    fair = devig([1.80, 2.14], "power")
    (graded,) = [row for row in provider.bets() if row["id"] == first["id"]]
    assert graded["state"] == "graded"
    assert graded["price"] == 2.15
    assert graded["best_price"] == 2.20
    assert graded["closing"] == pytest.approx(fair[0], abs=1e-9)
    assert clv(graded["price"], graded["closing"]) == pytest.approx(2.15 * fair[0] - 1.0)
    close = provider.closings.closing("e")
    assert close is not None
    assert (close.start, close.captured_at) == (micros(START), micros(START))
    lines = {(row["sportsbook"], row["selection_type"]): row for row in close.lines.iter_rows(named=True)}
    assert {key: row["odds_decimal"] for key, row in lines.items()} == {
        ("pinnacle", "home"): 1.80, ("pinnacle", "away"): 2.14,
        ("draftkings", "home"): 1.83, ("draftkings", "away"): 2.0,
    }  # fmt: skip
    assert lines["draftkings", "away"]["fair_probability"] == pytest.approx(fair[1], abs=1e-9)
    assert lines["draftkings", "away"]["sharp_book"] == "pinnacle"


def test_a_price_that_only_was_seen_again_is_fresh_at_the_close() -> None:
    provider = Provider()
    for before in range(3600, 0, -300):
        provider.step(before, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    provider.step(-1)
    assert [row["state"] for row in provider.bets()] == ["graded"]
    close = provider.closings.closing("e")
    assert close is not None
    assert set(close.lines["last_seen_at"]) == {START - timedelta(seconds=300)}
    assert set(close.lines["odds_changed_at"]) == {START - timedelta(seconds=3600)}


def test_a_better_price_after_the_close_is_not_the_best_one() -> None:
    """A game that begins before its announced start, which one book notices late."""
    provider = Provider()
    provider.step(700, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.10), ("draftkings", AWAY, 1.75))
    provider.step(600, events=[{"event_id": "e", "status": "live"}])
    provider.step(590, ("draftkings", HOME, 2.20))
    (row,) = provider.stored()
    assert (row["price"], row["best_price"]) == (2.10, 2.10)
    assert row["closed_at"] == micros(START) - 600 * 10**6
    assert [row["state"] for row in provider.bets()] == ["graded"]


def test_without_a_reference_at_the_close_a_bet_is_counted_apart() -> None:
    provider = Provider()
    provider.step(3600, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    provider.step(1800, ("draftkings", HOME, 2.0), ("draftkings", AWAY, 1.85))  # pinnacle is not seen again
    provider.step(60, ("draftkings", HOME, 2.0), ("draftkings", AWAY, 1.85))
    provider.step(-1)
    assert [row["state"] for row in provider.bets()] == ["without_close"]
    close = provider.closings.closing("e")
    assert close is not None
    assert close.lines["fair_probability"].null_count() == close.lines.height == 4


def test_what_was_shown_after_the_close_is_never_graded() -> None:
    provider = Provider()
    provider.step(60, *pinnacle(1.95, 1.95), ("draftkings", HOME, 1.9), ("draftkings", AWAY, 1.9))
    provider.step(-1, *pinnacle(1.95, 1.95), live=True)
    provider.step(-2, *pinnacle(1.5, 2.8), ("draftkings", HOME, 1.75), ("draftkings", AWAY, 2.0), live=True)
    assert [row["state"] for row in provider.bets()] == ["in_play"]


def test_prices_that_left_long_before_are_no_closing_prices() -> None:
    provider = Provider()
    provider.step(
        3600, *pinnacle(1.95, 1.95), ("draftkings", HOME, 1.9), ("fanduel", HOME, 1.91), ("betmgm", HOME, 1.92)
    )
    gone = {row["sportsbook"]: row["row_id"] for row in provider.engine.table().to_dicts()}

    def leave(before_s: float, book: str) -> None:
        at = START - timedelta(seconds=before_s)
        provider.recorder.follow(provider.engine.step([], at, removed=[gone[book]]))

    leave(LAST_S + 1, "draftkings")
    leave(LAST_S - 1, "fanduel")
    provider.step(10, ("betmgm", HOME, 1.92), is_active=False)  # suspended just before
    provider.step(-1, ("pinnacle", HOME, 1.5), live=True)
    close = provider.closings.closing("e")
    assert close is not None
    assert sorted(close.lines["sportsbook"].unique()) == ["betmgm", "fanduel", "pinnacle"]


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize(("left_s", "state"), [(LAST_S - 1, "graded"), (-30, "graded"), (LAST_S + 1, "without_close")])
def test_a_game_whose_prices_all_leave_closes_at_its_last_start(left_s: int, state: str, *, renewed: bool) -> None:
    """A feed of pre-match prices drops the game before its start, or between two of its responses."""
    provider = Provider()
    provider.step(LAST_S + 60, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    at = START - timedelta(seconds=left_s)
    books = [(book, "e") for book in ("pinnacle", "draftkings")]
    provider.recorder.follow(provider.engine.step([], at, complete=books))
    assert provider.engine.size == 0
    if renewed:  # as by `Board.compact`
        with provider.engine.still() as board:
            board.names = board.names.renewed(np.arange(len(board.names.terms.raw_labels)))
            board.rebuild()
    provider.step(-31)
    assert [row["state"] for row in provider.bets()] == [state]
    close = provider.closings.closing("e")
    assert (close is not None) == (state == "graded")
    if close is not None:
        assert (close.captured_at, close.lines.height) == (micros(START), 4)
        assert provider.bets()[0]["closing"] == pytest.approx(0.5)


def test_a_recorder_that_only_sees_the_game_in_play_keeps_the_close(tmp_path: Path) -> None:
    file = tmp_path / FILE
    provider = Provider(Closings(file))
    provider.step(60, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    provider.step(-1, *pinnacle(1.5, 2.9), live=True)
    before = provider.stored()
    provider.closings.close()
    provider = Provider(Closings(file))
    provider.step(-60, *pinnacle(1.4, 3.2), live=True)
    assert provider.closings.closing("e") is not None
    assert provider.stored() == before


def test_a_bet_of_a_game_that_began_while_nobody_recorded_has_no_close(tmp_path: Path) -> None:
    file = tmp_path / FILE
    provider = Provider(Closings(file))
    provider.step(3600, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    provider.closings.close()
    provider = Provider(Closings(file))
    provider.step(-60, *pinnacle(1.4, 3.2), live=True)
    assert [row["state"] for row in provider.bets()] == ["without_close"]


def test_prices_seen_after_the_start_are_no_closing_prices() -> None:
    provider = Provider()
    provider.step(60, *pinnacle(1.95, 1.95))
    provider.step(-30, *pinnacle(1.2, 5.0))  # still marked pre-match, in one step with the start
    close = provider.closings.closing("e")
    assert close is not None
    assert sorted(close.lines["odds_decimal"]) == [1.95, 1.95]


def test_a_game_that_is_put_off_closes_again() -> None:
    provider = Provider()
    provider.step(3600, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    provider.step(60, *pinnacle(1.95, 1.95))
    provider.step(-1)
    (early,) = provider.bets()
    assert early["closing"] == pytest.approx(0.5)
    later = START + timedelta(hours=1)
    notice = {"event_id": "e", "status": "postponed", "event_start_time": later}
    provider.step(-5, events=[notice])
    assert provider.closings.closing("e") is None
    assert [row["state"] for row in provider.bets()] == ["waiting"]
    provider.step(-3000, *pinnacle(1.6, 2.6), event_start_time=later)
    provider.step(-3601)
    (late,) = provider.bets()
    assert late["closing"] == pytest.approx(devig([1.6, 2.6], "power")[0], abs=1e-9)
    close = provider.closings.closing("e")
    assert close is not None
    assert close.start == micros(later)


def test_the_first_price_stays_over_a_restart(tmp_path: Path) -> None:
    file = tmp_path / FILE
    provider = Provider(Closings(file))
    provider.step(3600, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15), ("draftkings", AWAY, 1.75))
    provider.closings.close()
    provider = Provider(Closings(file))
    provider.step(1800, *pinnacle(1.95, 1.95), ("draftkings", HOME, 2.30), ("draftkings", AWAY, 1.75))
    provider.step(-1)
    (row,) = provider.stored()
    assert (row["price"], row["best_price"]) == (2.15, 2.30)
    assert row["closing"] is None  # nobody saw pinnacle within the last ten minutes
    assert (row["first_at"], row["best_at"]) == (micros(START) - 3600 * 10**6, micros(START) - 1800 * 10**6)


def test_a_recorder_that_comes_later_takes_what_is_open() -> None:
    engine, closings = Engine(), Closings()
    at = START - timedelta(seconds=60)
    engine.step([quote(*row, at) for row in (*pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15))], at)
    recorder = ClosingRecorder(engine, closings, method="power")
    recorder.follow(engine.step([], at + timedelta(seconds=1)))
    recorder.follow(engine.step([], START))
    assert [row["state"] for row in closings.bets().to_dicts()] == ["graded"]


def test_both_kinds_are_bounded(tmp_path: Path) -> None:
    closings = Closings(tmp_path / FILE, closes=3, bets=5)
    provider = Provider(closings)
    for first in range(0, 70, 5):
        at = START + timedelta(minutes=first)
        rows = [
            quote(*row, at, event_id=f"e{n}", event_start_time=at + timedelta(seconds=20))
            for n in range(first, first + 5)
            for row in (*pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15))
        ]
        for moment, quotes in ((at, rows), (at + timedelta(seconds=30), [])):
            provider.recorder.follow(provider.engine.step(quotes, moment))
    base = sqlite3.connect(tmp_path / FILE)
    counts = [base.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("closes", "bets")]
    base.close()
    assert 3 <= counts[0] <= 3 + 64  # they are looked at every 64 closes
    assert 5 <= counts[1] <= 5 + 64
    assert closings.closing("e69") is not None
    assert closings.closing("e0") is None


def test_a_file_that_is_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is no database, only a long enough text to be looked at as one")
    with pytest.raises(DatabaseError, match=r"closing\.sqlite: file is not a database"):
        opened(tmp_path)


def test_a_write_that_fails_is_told_and_stops_nothing() -> None:
    told: list[Exception | None] = []
    past = Past(engine := Engine(), failed=told.append, method="power")
    past.closings.show = lambda _: 1 / 0  # type: ignore[assignment, method-assign]
    at = START - timedelta(seconds=60)
    past.follow(engine.step([quote(*row, at) for row in (*pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15))], at))
    past.follow(engine.step([], START))
    past.settle()
    assert [type(error) for error in told] == [ZeroDivisionError, type(None)]
    assert past.closings.closing("e") is not None
    past.close()


def test_what_a_full_disk_refused_is_written_once_there_is_room(tmp_path: Path) -> None:
    told: list[Exception | None] = []
    past = Past(engine := Engine(), tmp_path, failed=told.append, method="power")
    file = past.closings.database.connection
    (pages,) = file.execute("PRAGMA page_count").fetchone()
    (most,) = file.execute("PRAGMA max_page_count").fetchone()
    file.execute(f"PRAGMA max_page_count = {pages}")
    at = START - timedelta(seconds=60)
    rows = [
        quote(*row, at, event_id=f"e{n}")
        for n in range(40)
        for row in (*pinnacle(1.95, 1.95), ("draftkings", HOME, 2.15))
    ]
    past.follow(engine.step(rows, at))
    past.follow(engine.step([], START))
    past.settle()
    assert {str(error) for error in told} == {f"{tmp_path / FILE}: database or disk is full"}
    assert past.closings.closing("e0") is None
    file.execute(f"PRAGMA max_page_count = {most}")
    past.play({"e0": {"home_score": 1, "away_score": 0, "is_live": False}})
    past.settle()
    assert told[-1] is None
    assert all(past.closings.closing(f"e{n}") is not None for n in range(40))
    bets = past.closings.bets()
    assert (bets.height, set(bets["state"])) == (40, {"graded"})
    assert bets.filter(event_id="e0")["gain"].to_list() == [1.0]
    past.close()


# ---- a world whose truth is known ----


class Shown(NamedTuple):
    event: str
    price: float
    truth: float  # probability when it was first shown


class Season(NamedTuple):
    """A day of a world, and what was true of it."""

    world: World
    folder: Path
    closings: Closings
    shown: dict[str, Shown]  # +EV prices by id
    planted: list[tuple[str, str, float]]  # event, selection, true probability, of moneylines long before the start
    last: dict[tuple[str, str, str, str, float | None], float]  # last pre-match price that a feed sent in time
    truth: dict[tuple[str, str], float]  # of moneylines, at the last look before the start


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Season:
    folder = tmp_path_factory.mktemp("season")
    world = World(
        5, events=less(24, 16), tick=less(120, 360), live=0.0, books=["pinnacle", "circa", "draftkings", "fanduel"]
    )
    engine = Engine()
    past = Past(engine, folder)
    writer = TapeWriter(folder / "tape", sync="never")
    writer.follow(engine)
    view = engine.view(keep=True)
    out = Season(world, folder, past.closings, {}, [], {}, {})
    with writer:
        for number, batch in enumerate(world.run(8.2 * 3600)):
            update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
            past.follow(update)
            note(out, engine, view, update, batch, number)
    past.settle()
    return out


@pytest.fixture(scope="module")
def of_tape(season: Season) -> dict[str, Any]:
    """What the command says of the season's tape, which takes a second to replay."""
    out = StringIO()
    with redirect_stdout(out):
        assert main(["clv", "--tape", str(season.folder / "tape"), "--by", "league", "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def note(out: Season, engine: Engine, view: Any, update: Any, batch: Any, number: int) -> None:
    """Write down what is true now."""
    waiting = {f.id for f in out.world.fixtures if f.start > batch.now}
    live = {q["event_id"] for q in batch.quotes if q["is_live"]}
    begins = {f.id: f.start for f in out.world.fixtures}
    if batch.complete:  # what a whole screen does not list any more is no price
        whole = set(batch.complete)
        for key in [key for key in out.last if (key[0], key[1]) in whole and key[1] in waiting]:
            del out.last[key]
    for q in batch.quotes:
        if not q["is_live"] and q.get("is_active", True) and q["last_seen_at"] <= begins[q["event_id"]]:
            price = q["odds_decimal"] if "odds_decimal" in q else american(q["odds_american"])
            out.last[q["sportsbook"], q["event_id"], q["market_type"], q["selection"], q.get("line")] = price
    for q in batch.quotes:
        event, selection = q["event_id"], q["selection"]
        if event in waiting - live and q["sportsbook"] == "pinnacle" and moneyline(q["market_type"]):
            chance = out.world.chances(event, q["market_type"], selection).prob
            out.truth[event, selection] = chance
            if number == 0:
                out.planted.append((event, selection, chance))
    change = update.of(view)
    fresh = (change.hits.kind == KINDS.code("ev")) & (change.status == NEW)
    facts = update.facts
    at = facts.places(change.hits.legs[fresh, 0])
    texts = facts.take(at).texts
    prices = change.hits.figures[fresh, 3].tolist()
    for ident, text, price in zip(hexadecimal(change.hits.id[fresh]), texts, prices, strict=True):
        if ident not in out.shown:
            chance = out.world.chances(text[0], text[5], text[7], text[-1]).prob
            out.shown[ident] = Shown(text[0], price, chance)


def moneyline(market: str) -> bool:
    return catalog.market_type(market).family == "moneyline" and not catalog.market_type(market).period.startswith(
        "1st"
    )


def american(price: float) -> float:
    return 1.0 + (price / 100.0 if price > 0 else -100.0 / price)


def test_the_last_price_before_the_match_is_what_the_feeds_last_sent(season: Season) -> None:
    """Beside a dictionary of what every feed sent; a line may differ only by having just left."""
    met = wrong = 0
    for fixture in season.world.fixtures:
        close = season.closings.closing(fixture.id)
        assert close is not None, fixture.id
        for row in close.lines.iter_rows(named=True):
            key = (row["sportsbook"], fixture.id, row["market_type"], row["selection"], row["line"])
            if key in season.last:
                met += 1
                wrong += abs(season.last[key] - row["odds_decimal"]) > 1e-9
    assert met > 20 * len(season.world.fixtures)
    assert wrong == 0


def test_the_closing_probability_is_the_truth_but_for_the_reference_s_own_error(season: Season) -> None:
    """Pinnacle is sharp, not all-knowing: its error is a few tenths of a point."""
    errors, events = [], []
    for at, fixture in enumerate(season.world.fixtures):
        close = season.closings.closing(fixture.id)
        assert close is not None
        for row in close.lines.filter(sportsbook="pinnacle").iter_rows(named=True):
            true = season.truth.get((fixture.id, row["selection"]))
            if moneyline(row["market_type"]) and true is not None and row["fair_probability"] is not None:
                errors.append(row["fair_probability"] - true)
                events.append(at)
    assert len(errors) > 30
    assert np.sqrt(np.mean(np.square(errors))) < 0.005
    opening = {(event, selection): p for event, selection, p in season.planted}
    drift = [season.truth[key] - p for key, p in opening.items()]
    assert np.sqrt(np.mean(np.square(drift))) > 4 * np.sqrt(np.mean(np.square(errors)))  # the opening is another thing


@pytest.mark.parametrize("edge", [0.05, -0.05])
def test_a_price_beyond_the_true_chance_earns_its_edge_at_the_close(season: Season, edge: float) -> None:
    """Unbiased within its own error bars, and of the right sign beyond them."""
    values, events = [], []
    places = {fixture.id: at for at, fixture in enumerate(season.world.fixtures)}
    for event, selection, chance in season.planted:
        close = season.closings.closing(event)
        assert close is not None
        rows = close.lines.filter(sportsbook="pinnacle", selection=selection).to_dicts()
        fair = [row["fair_probability"] for row in rows if moneyline(row["market_type"])]
        if fair and fair[0] is not None:
            values.append(float(clv((1.0 + edge) / chance, fair[0])))
            events.append(places[event])
    found = means(values, [0] * len(values), events, 1)
    assert found.clusters[0] > 15
    assert abs(found.mean[0] - edge) < 3.0 * found.error[0]
    assert found.mean[0] / edge > 0.0
    assert abs(found.mean[0]) > 2.0 * found.error[0]


def test_grades_of_what_was_shown_are_its_true_edges(season: Season) -> None:
    """The mean CLV of graded bets is the mean of their true edges when they were first shown."""
    bets = season.closings.bets()
    graded = bets.filter(pl.col("state") == "graded").to_dicts()
    assert len(graded) > 100
    assert set(bets["id"]) == set(season.shown)
    gaps, events = [], []
    places = {fixture.id: at for at, fixture in enumerate(season.world.fixtures)}
    for row in graded:
        shown = season.shown[row["id"]]
        assert row["price"] == pytest.approx(shown.price)
        gaps.append(float(clv(row["price"], row["closing"])) - (shown.price * shown.truth - 1.0))
        events.append(places[shown.event])
    found = means(gaps, [0] * len(gaps), events, 1)
    assert abs(found.mean[0]) < 3.0 * found.error[0]
    assert found.error[0] < 0.01  # and that says something
    (total,) = report(bets).to_dicts()
    assert total["count"] == sum(total[name] for name in ("graded", "without_close", "waiting", "in_play"))


def test_the_command_reads_a_folder_and_a_tape_alike(
    season: Season, of_tape: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clv", "--data", str(season.folder), "--by", "league", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == of_tape
    assert found["total"]["graded"] > 100
    assert sum(group["count"] for group in found["groups"]) == found["total"]["count"]
    assert main(["clv", "--data", str(season.folder), "--min-ev", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Sportsbook")
    assert "draftkings" in text
    assert main(["clv", "--data", str(season.folder), "--by", "day", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == ",".join(REPORT_SCHEMA)
    assert main(["clv", "--data", str(season.folder / "tape")]) == 2
    assert "start a node to create it" in capsys.readouterr().err
    assert main(["clv", "--data", "a", "--tape", "b"]) == 2
    assert main(["clv", "--archive", "a", "--tape", "b"]) == 2


@pytest.mark.exhaustive
def test_the_command_reads_an_archive(
    season: Season, of_tape: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("deltalake")
    dest = str(tmp_path / "odds")
    assert main(["archive", str(season.folder / "tape"), dest]) == 0
    capsys.readouterr()
    assert main(["clv", "--archive", dest, "--by", "league", "--format", "json"]) == 0
    tape, archive = of_tape["total"], json.loads(capsys.readouterr().out)["total"]
    # What left a screen is not in an archive, so that its last price stands a little longer.
    assert (
        archive["events"] == tape["events"] == len(season.world.fixtures)
    )  # a close stays when the last price has left the board
    assert archive["waiting"] == 0
    assert abs(archive["graded"] - tape["graded"]) < 0.1 * tape["graded"]
    assert abs(archive["avg_clv"] - tape["avg_clv"]) < archive["avg_clv_error"]


# ---- the others' close, and results ----

SIX = ("draftkings", "fanduel", "betmgm", "caesars", "bovada", "betrivers")


def naive_others(prices: dict[str, float], judged: str) -> float:
    """Chance of home by the five others' home prices, each with a margin of 4 %: highest and lowest left out."""
    logits = []
    for book, odds in prices.items():
        if book != judged:
            p = devig([odds, 1.0 / (1.04 - 1.0 / odds)], "power")[0]
            logits.append(math.log(p / (1.0 - p)))
    logits.sort()
    return 1.0 / (1.0 + math.exp(-sum(logits[1:-1]) / (len(logits) - 2)))


def both(prices: dict[str, float]) -> list[tuple[str, str, float]]:
    away = {book: 1.0 / (1.04 - 1.0 / odds) for book, odds in prices.items()}
    return [row for book in prices for row in ((book, HOME, prices[book]), (book, AWAY, away[book]))]


def test_what_was_shown_is_graded_by_the_other_books_and_by_the_result() -> None:
    provider = Provider()
    provider.recorder = ClosingRecorder(provider.engine, provider.closings)
    early = dict(zip(SIX, (2.15, 1.95, 1.96, 1.97, 1.94, 1.95), strict=True))
    provider.step(3600, *both(early))
    (shown,) = provider.bets()
    assert shown["sportsbook"] == "draftkings"
    late = dict(zip(SIX, (1.90, 1.85, 1.86, 1.80, 1.84, 1.60), strict=True))
    provider.step(60, *both(late))
    provider.step(0)
    (graded,) = [row for row in provider.bets() if row["id"] == shown["id"]]
    assert graded["others"] == pytest.approx(naive_others(late, "draftkings"))
    assert graded["others"] != pytest.approx(graded["closing"], abs=1e-6)  # in which the bet's own book has a say
    assert graded["gain"] is None
    provider.closings.settle("e", 101, 99)
    (total,) = report(provider.closings.bets().filter(pl.col("id") == shown["id"])).to_dicts()
    assert (total["others_graded"], total["won"], total["lost"], total["pushed"]) == (1, 1, 0, 0)
    assert total["avg_others_clv"] == pytest.approx(100.0 * (2.15 * graded["others"] - 1.0))
    assert total["avg_return"] == pytest.approx(115.0)
    provider.closings.settle("e", 90, 99)
    (total,) = report(provider.closings.bets().filter(pl.col("id") == shown["id"])).to_dicts()
    assert (total["won"], total["lost"], total["avg_return"]) == (0, 1, -100.0)
    by_fanduel = provider.closings.by_book(provider.closings.bets(), "fanduel").filter(pl.col("id") == shown["id"])
    assert by_fanduel["closing"].to_list() == pytest.approx([devig([1.85, 1.0 / (1.04 - 1.0 / 1.85)], "power")[0]])
    assert set(provider.closings.by_book(provider.closings.bets(), "pinnacle")["state"]) == {"without_close"}
    provider.closings.discard("e")
    assert {row["others"] for row in provider.bets()} == {None}


def test_a_line_that_moved_is_graded_where_the_others_went() -> None:
    provider = Provider()
    provider.recorder = ClosingRecorder(provider.engine, provider.closings)

    def totals(line: float, over: dict[str, float]) -> None:
        rows = [(book, side, odds) for book, _, odds in both(over)[::2] for side in ("Over",)]
        rows += [(book, "Under", 1.0 / (1.04 - 1.0 / odds)) for book, odds in over.items()]
        provider.step(3600 if line == 220.5 else 60, *rows, market_type="total_points", line=line, league="WNBA")

    totals(220.5, dict(zip(SIX, (2.2, 1.92, 1.93, 1.92, 1.94, 1.92), strict=True)))
    (shown,) = [row for row in provider.stored() if row["ev"] > 0.03]
    provider.engine.step(
        removed=[row["row_id"] for row in provider.engine.table().to_dicts()], now=START - timedelta(seconds=120)
    )
    totals(222.5, dict.fromkeys(SIX, 1.92))
    provider.step(0)
    (graded,) = [row for row in provider.stored() if row["id"] == shown["id"]]
    p = devig([1.92, 1.0 / (1.04 - 1.0 / 1.92)], "power")[0]
    x = math.log(p / (1.0 - p)) + 1.6 / 16.0 * 2.0  # two points at 1.6 / sigma of the WNBA
    assert graded["closing"] is None
    assert graded["others"] == pytest.approx(1.0 / (1.0 + math.exp(-x)))


def vote(book: str, line: float, x: float, *, sharp: bool = False) -> Vote:
    return Vote(round(100 * line), [x, -x], book, sharp, book)


def test_a_book_has_one_vote_whatever_number_of_lines_it_quotes() -> None:
    """Over 8.5 at 0.2 a half run: lines at the same distance are averaged, and nothing counts twice."""

    def close(*votes: Vote, side: int = 0) -> float:
        return close_logit(list(votes), "judged", 850, side, 2, -0.4, 100)[0]

    ladder = [vote("a", line, x) for line, x in ((7.5, 0.5), (8.0, 0.3), (8.5, 0.1), (9.0, -0.2), (9.5, -0.3))]
    assert math.isnan(close(*ladder))  # one book is no consensus
    others = [vote(book, 8.5, x) for book, x in zip("bcde", (0.0, 0.04, 0.08, 0.2), strict=True)]
    assert close(*ladder, *others) == pytest.approx((0.04 + 0.08 + 0.1) / 3)
    assert close(*ladder, *others, side=1) == pytest.approx(-(0.04 + 0.08 + 0.1) / 3)
    off = [each for each in ladder if each.threshold != 850]  # its nearest lines: 0.3 - 0.2 and -0.2 + 0.2
    assert close(*off, *others) == pytest.approx((0.04 + 0.05 + 0.08) / 3)
    far = [vote("judged", 8.5, 3.0), vote("z", 6.5, 3.0)]
    assert close(*off, *others, *far) == pytest.approx((0.04 + 0.05 + 0.08) / 3)
    sharp = [vote("pinnacle", line, x, sharp=True) for line, x in ((8.0, 0.9), (8.5, 0.1))]
    assert close(*sharp) == pytest.approx(0.1)


def test_records_reach_another_process_whole() -> None:
    sent, here = PendingClosings(lambda: True), Closings()
    provider = Provider()
    provider.recorder = ClosingRecorder(provider.engine, sent)
    provider.step(3600, *both(dict(zip(SIX, (2.15, 1.95, 1.96, 1.97, 1.94, 1.95), strict=True))))
    provider.step(60, *both(dict(zip(SIX, (1.90, 1.85, 1.86, 1.80, 1.84, 1.60), strict=True))))
    provider.step(0)
    number = 0
    while (body := sent.first()) is not None:
        number += 1
        store(here, 1, LogMessage(number, 1, body))
        sent.stored()
    there = Provider()
    there.recorder = ClosingRecorder(there.engine, there.closings)
    there.step(3600, *both(dict(zip(SIX, (2.15, 1.95, 1.96, 1.97, 1.94, 1.95), strict=True))))
    there.step(60, *both(dict(zip(SIX, (1.90, 1.85, 1.86, 1.80, 1.84, 1.60), strict=True))))
    there.step(0)
    assert here.bets().equals(there.closings.bets())
    assert here.bets()["others"].null_count() == 0
