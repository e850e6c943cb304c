"""An audit that follows the tapes of a node: the same figures as an audit of all of them, however often it reads."""

import fcntl
import io
import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from backtesting.test_audit import history
from polars.testing import assert_frame_equal

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine import catalog
from oddsengine.backtesting.fill_record import fill_shares
from oddsengine.backtesting.grading import SHOWN_SCHEMA
from oddsengine.backtesting.live_audit import follow_tapes
from oddsengine.backtesting.replay import source
from oddsengine.backtesting.truth_report import report_text, truth_report
from oddsengine.history.truth_file import Figures, encoded_report, read_report, report_file

CUTS = (0, 9, 20)  # snapshots at which the node starts
OVER = timedelta(hours=7)
NO_SUMS = pl.DataFrame()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The data folder of a node that has started three times, read every few steps; and the same, not read yet."""
    folder, unread = tmp_path_factory.mktemp("read"), tmp_path_factory.mktemp("unread")
    snapshots = list(source(history(6, snapshots=6)).snapshots)  # type: ignore[union-attr]
    kept: dict[Path, bytes] = {}
    for number, first in enumerate(CUTS):
        last = CUTS[number + 1] if number + 1 < len(CUTS) else len(snapshots)
        engine, writer = oe.resume(folder / "tapes" / f"start {number}", segment_bytes=20_000)
        with writer:
            for at, snapshot in enumerate(snapshots[first:last]):
                if first == CUTS[-1] and at == 6:  # the node follows a new table
                    engine.fair = catalog.amended_fair_table({"own": {"weight": 4.0}})
                engine.step(snapshot.quotes, snapshot.now)
                if at % 4 == 3:
                    writer.flush()
                    assert follow_tapes(folder).left_out == []
                    for path in sorted(writer.path.glob("*.tape"))[1:-1]:  # nobody reads these again
                        kept[path] = kept.get(path) or path.read_bytes()
                        path.write_bytes(bytes(len(kept[path])))
            if last == len(snapshots):
                engine.step([], snapshot.now + OVER)
    for path, content in kept.items():
        path.write_bytes(content)
    assert len(kept) > 3
    shutil.copytree(folder / "tapes", unread / "tapes")
    follow_tapes(folder)
    return folder, unread


WHERE = ["event", "market", "selection", "line", "book"]


def graded(folder: Path) -> pl.DataFrame:
    parts = sorted(folder.glob("truth/weeks/*.parquet"))
    return pl.concat(map(pl.read_parquet, parts)).drop("ident").sort("t", *WHERE, "threshold")


def test_what_is_read_in_parts_is_what_an_audit_of_all_tapes_grades(recorded: tuple[Path, Path]) -> None:
    folder, unread = recorded
    shown = oe.audit(sorted(unread.glob("tapes/*"))).shown.sort("t", *WHERE, "threshold")
    suspect = shown.filter(pl.col("flags").list.contains("suspect"))  # a node does not list these
    expected = shown.join(suspect, on=WHERE, how="anti", nulls_equal=True, maintain_order="left")
    assert expected["worth"].count() > 20
    found = graded(folder)
    assert_frame_equal(found.join(suspect, on=WHERE, how="anti", nulls_equal=True, maintain_order="left"), expected)
    report = read_report(report_file(folder).read_bytes())
    counted = found.filter(pl.col("threshold") == 1.0, pl.col("odds") < 4.0)
    assert (report.total.prices, report.total.graded) == (counted.height, counted["worth"].count())
    assert report.games_waiting == 0
    assert report.read_until == f"{oe.Tape(folder / 'tapes' / 'start 2').until:%Y-%m-%dT%H:%M:%S.%fZ}"


def test_nothing_is_read_or_graded_twice(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(recorded[0], tmp_path / "node")
    before = graded(folder)
    (week, *_) = folder.glob("truth/weeks/*.parquet")
    stamp = week.stat().st_mtime_ns
    again = follow_tapes(folder)
    assert week.stat().st_mtime_ns == stamp
    for tape in ("start 0", "start 1"):  # the node deletes old ones
        shutil.rmtree(folder / "tapes" / tape)
    assert follow_tapes(folder) == again
    (folder / "truth" / "state").write_bytes(b"damaged")
    assert follow_tapes(folder).total == again.total  # the last tape is read again
    assert_frame_equal(graded(folder), before)


def test_a_tape_that_is_damaged_is_left_out_from_there_with_the_reason(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:  # fmt: skip
    folder = shutil.copytree(recorded[1], tmp_path / "node")
    file = folder / "tapes" / "start 0" / "00000002.tape"
    file.write_bytes(bytes(file.stat().st_size))
    report = follow_tapes(folder)
    (reason,) = report.left_out
    assert reason.startswith("start 0: ")
    assert "is damaged at byte" in reason
    assert f"left out: {reason}" in report_text(report)
    whole, some = graded(recorded[0]), graded(folder)
    assert {*whole["event"]} == {*some["event"]}  # also of the first game, which is in the part before the damage
    assert some.height < whole.height
    week = next(folder.glob("truth/weeks/*.parquet"))
    pl.DataFrame({"other": [1]}).write_parquet(buffer := io.BytesIO())
    for content in (b"damaged", buffer.getvalue()):
        week.write_bytes(content)
        with pytest.raises(ValueError, match=r"parquet cannot be read: .*; delete it to go on without its games"):
            follow_tapes(folder)


def test_one_process_at_a_time(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no tapes; set tape = true in \[data\]"):
        follow_tapes(tmp_path)
    home = os.open(recorded[0] / "truth", os.O_RDONLY)
    fcntl.flock(home, fcntl.LOCK_EX)
    try:
        with pytest.raises(ValueError, match="is written by another process"):
            follow_tapes(recorded[0])
    finally:
        os.close(home)


def prices_of(start: datetime, now: datetime, home: float, generous: float, *, live: bool) -> list[dict[str, Any]]:
    """Moneylines of one game at six books, of which the last one pays more for the home team."""
    books = dict.fromkeys(("fanduel", "draftkings", "betmgm", "caesars", "betrivers"), home) | {"bovada": generous}
    return [
        {"sportsbook": book, "event_id": "g", "sport": "baseball", "league": "mlb", "home_team": "Home",
         "away_team": "Away", "market_type": "moneyline", "selection": team, "odds_decimal": price, "is_live": live,
         "event_start_time": start, "last_seen_at": now}
        for book, odds in books.items()
        for team, price in (("Home", odds), ("Away", 1.9))
    ]  # fmt: skip


def test_a_game_that_is_put_off_is_graded_once_by_its_last_close(tmp_path: Path) -> None:
    start, minute = datetime(2026, 7, 4, 18, tzinfo=UTC), timedelta(minutes=1)
    engine, writer = oe.resume(tmp_path / "tapes" / "node")
    reports = []
    with writer:

        def step(at: int, home: float, generous: float, begins: int, *, live: bool = False) -> None:
            now = start + at * minute
            engine.step(prices_of(start + begins * minute, now, home, generous, live=live), now)
            writer.flush()
            reports.append(follow_tapes(tmp_path))

        step(-20, 1.9, 2.04, 0)
        step(-5, 1.9, 1.9, 0)
        step(2, 1.9, 1.9, 40)  # put off by 40 minutes
        step(35, 1.85, 1.85, 40)
        step(45, 1.9, 2.04, 40, live=True)
        step(8 * 60, 1.9, 1.9, 40, live=True)
        shown = graded(tmp_path)
        expected = oe.audit(writer.path).shown
        days = 11 * 24 * 60  # and by days, after it was graded
        step(9 * 60, 1.9, 2.04, days)
        step(days - 5, 1.9, 1.9, days)
        step(days + 8 * 60, 1.9, 1.9, days, live=True)
    assert [report.total.graded for report in reports[:6]] == [0, 0, 0, 0, 0, 1]
    assert shown["worth"].count() == shown.height > 1
    assert_frame_equal(shown, expected.sort(*WHERE, "threshold"), check_row_order=False)
    assert_frame_equal(graded(tmp_path), shown)


# ---- the report ----


def prices(games: int, bias: float = 0.0) -> pl.DataFrame:
    """Three prices of each game at an EV of 1 or more, and what is not counted; a game every five hours."""
    rng, rows = np.random.default_rng(5), []
    for game in range(games):
        luck = rng.normal(0.0, 2.0)
        for book in ("fanduel", "bovada", "betmgm"):
            shown = {"t": 1_767_000_000 + 18_000 * game, "event": f"g{game}", "league": "nba", "market": "moneyline",
                     "book": book, "odds": 2.1, "ev": 2.0 + game / 1e6, "threshold": 1.0, "hours": 3.0, "flags": [],
                     "worth": 2.0 + luck + rng.normal(0.0, 0.5) - (bias if book == "bovada" else 0.0)}  # fmt: skip
            rows += [shown, shown | {"threshold": 2.0, "worth": 90.0}, shown | {"odds": 9.0, "worth": 90.0}]
    rows.append(rows[0] | {"worth": None})
    return pl.DataFrame(rows, schema=SHOWN_SCHEMA)


def test_figures_are_those_of_plain_loops() -> None:
    table = prices(60, bias=4.0)
    report = truth_report(table, NO_SUMS, [], 1_770_000_000_000_000, "mine", 2, [])
    rows = [row for row in table.filter(threshold=1.0, odds=2.1).to_dicts() if row["worth"] is not None]

    def expected(some: list[dict[str, Any]]) -> tuple[float, float]:
        mean = sum(row["worth"] for row in some) / len(some)
        by_game: dict[str, float] = {}
        for row in some:
            by_game[row["event"]] = by_game.get(row["event"], 0.0) + row["worth"] - mean
        n = len(by_game)
        return mean, (n / (n - 1) * sum(each**2 for each in by_game.values())) ** 0.5 / len(some)

    assert (report.total.prices, report.total.graded, report.total.games, report.games_missing) == (181, 180, 60, 0)
    assert (report.total.avg_worth, report.total.worth_error) == pytest.approx(expected(rows), abs=1e-4)
    assert [week.begins for week in report.weeks] == ["2025-12-29", "2026-01-05"]
    assert sum(week.games for week in report.weeks) == 60
    first = [row for row in rows if row["t"] + 3 * 3600 < 1_767_571_200]  # Monday 2026-01-05
    assert report.weeks[0].avg_worth == pytest.approx(expected(first)[0], abs=1e-4)
    assert report.weeks[0].week == "2026-W01"
    groups = {(group.by, group.value): group for group in report.groups}
    assert {name for name, group in groups.items() if group.biased} == {("book", "bovada"), *(
        name for name in (("league", "nba"), ("market", "moneyline")) if groups[name].biased)}  # fmt: skip
    assert groups["book", "bovada"].bias == pytest.approx(2.0 - groups["book", "bovada"].avg_worth, abs=1e-3)  # type: ignore[operator]
    assert read_report(encoded_report(report)) == report
    assert "oddsengine calibrate would help" in report_text(report)
    assert "book bovada" in report_text(report)


def test_figures_of_too_few_games_are_withheld() -> None:
    report = truth_report(prices(49), NO_SUMS, [], None, "mine", 0, [])
    assert report.summary.startswith("1 of 50 games is missing: 49 have been graded")
    assert report.games_missing == 1
    figures = Figures(prices=148, graded=147, games=49)
    assert report.total == figures
    assert not any(each.avg_ev or each.avg_worth or each.bias for each in (*report.weeks, *report.groups))
    assert truth_report(prices(50), NO_SUMS, [], None, "mine", 0, []).total.avg_ev == pytest.approx(2.0, abs=1e-3)
    assert truth_report(prices(1).clear(), NO_SUMS, [], None, "mine", 0, []).games_missing == 50


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"format": 1}', b'{"format": 9}', b'{"format": 1, "report": 3}']
)
def test_a_file_that_is_no_report_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"it is damaged|it has format"):
        read_report(content)


# ---- the command ----


@pytest.fixture
def nice(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By how much the command lowers its priority, which these tests keep."""
    found: list[int] = []
    monkeypatch.setattr(os, "nice", found.append)
    return found


def test_the_command(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], nice: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = recorded[0]
    assert cli.main(["audit", "--live", str(folder)]) == 0
    assert "games are missing" in capsys.readouterr().out
    assert nice == [10]
    settings = tmp_path / "oddsengine.toml"
    settings.write_text(f'[data]\nfolder = "{folder}"\n')
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    assert cli.main(["audit", "--live", str(settings), "--every", "15m", "--json"]) == 130
    first, second = capsys.readouterr().out.split("}\n{")
    assert json.loads(first + "}") == json.loads("{" + second)
    assert all(890.0 < wait <= 900.0 for wait in waits)
    for words, said in (
        (["--live", str(tmp_path)], "has no tapes"),
        (["--live", str(folder), "x.parquet"], "give either a history or --live, got both"),
        (["--live", str(folder), "--sharp", "pinnacle"], "takes --every and --json; got --sharp too"),
        (["--live", str(folder), "--hours", "24"], "got --hours too"),
        (["--every", "1h", "x.parquet"], "give --live too"),
        (["--live", str(folder), "--every", "soon"], "such as 15m or 1h, got 'soon'"),
        (["--live", str(folder), "--every", "30s"], "--every must be a time from 1 minute to 7 days"),
        ([], "give a history, or --live"),
    ):
        assert cli.main(["audit", *words]) == 2
        assert said in capsys.readouterr().err


def test_how_many_could_be_had_is_what_fills_says_of_the_tapes(recorded: tuple[Path, Path]) -> None:
    folder, unread = recorded
    found = oe.fills(
        sorted(unread.glob("tapes/*")), min_ev=1.0, stakes=[100], rates={"USD": 1, "GBP": 1.3, "EUR": 1.1}
    ).attempts  # fmt: skip
    rows = pl.concat(map(pl.read_parquet, folder.glob("truth/fills/*.parquet")))
    ids = rows["id"].map_elements(lambda ident: f"{ident:016x}", pl.String)
    of = {(*key, str(outcome)) for *key, outcome in rows.select("kind", ids, "bound", "outcome").iter_rows()}
    other = {(*key, str(outcome)) for *key, outcome in found.select("kind", "id", "bound", "outcome").iter_rows()}
    # The node was read every few steps; an order on its way at the end of a read is left out.
    assert len(of) > 100
    assert of <= other
    assert len(of) > 0.6 * len(other)


def test_shares_are_said_of_fifty_or_more() -> None:
    names = ("kind", "id", "at", "bound", "event", "books", "live", "outcome")
    rows = [
        ("arbitrage", at, at, bound, "e", "kalshi, novig" if at < 50 else "a, b", False, outcome)
        for at in range(99)
        for bound, outcome in (("least", "whole" if at < 20 else "none"), ("most", "whole" if at < 30 else "part"))
    ]
    rows += [("ev", at, at, bound, "e", "kalshi", True, "whole") for at in range(60) for bound in ("least", "most")]
    every, pair = fill_shares(pl.DataFrame(rows, names, orient="row"))  # nothing of those in play
    assert (every.kind, every.sportsbooks, every.shown, every.whole_least) == ("arbitrage", None, 99, 20.2)
    assert (pair.sportsbooks, pair.shown, pair.whole_least, pair.whole_most) == (["kalshi", "novig"], 50, 40.0, 60.0)
    report = truth_report(prices(1), NO_SUMS, [every, pair], None, "mine", 0, [])
    assert read_report(encoded_report(report)) == report
    assert "arbitrage                    n    99  for $100: 20 to 30" in report_text(report)
    assert fill_shares(pl.DataFrame()) == []
