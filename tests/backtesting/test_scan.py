"""Scans of histories: against a slow twin that steps an engine snapshot by snapshot, and closes worked out by hand."""

import io
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from backtesting.test_audit import SIDES, close_of, history
from support.effort import less, some

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting import formats, replay
from oddsengine.backtesting.calibrations import fair_by_time
from oddsengine.history.archive import rows_of
from oddsengine.progress import Played, playing, ticking
from oddsengine.simulate.simulated_books import DEFAULT_BOOKS
from oddsengine.tables.timestamps import micros

FIGURES = {
    "ev": "ev_percentage",
    "arbitrage": "profit_percent",
    "low_hold": "hold_percentage",
    "middles": "expected_value",
}
BOOKS = some(DEFAULT_BOOKS, 10)
OLD = catalog.fair_table()
NEW = catalog.amended_fair_table({"name": "new", "own": {"weight": 0.2}, "momentum": {"far": 0.0, "near": 0.0}})


def quotes(seed: int, snapshots: int = less(24, 14), events: int = less(5, 3), hours: float = 2.0) -> pl.DataFrame:
    """Snapshots of a simulated board, the first event starting within the history."""
    world = oe.World(seed, events=events, live=0.0, tick=3600.0 * hours / snapshots, books=BOOKS)
    rows = [
        {**quote, "last_seen_at": snapshot.now} for snapshot in world.run(3600.0 * hours) for quote in snapshot.quotes
    ]  # fmt: skip
    first, last = rows[0]["last_seen_at"], rows[-1]["last_seen_at"]
    names = {name: at for at, name in enumerate(sorted({row["event_id"] for row in rows}))}
    for row in rows:
        row["event_start_time"] = first + (last - first) * 0.55 + timedelta(hours=names[row["event_id"]])
        row["is_live"] = False
        row.pop("odds_changed_at", None)
    keep = [row for row in rows if row["last_seen_at"] < row["event_start_time"]]
    return pl.DataFrame(keep, infer_schema_length=None)


def slow_scan(frame: pl.DataFrame, **options: Any) -> list[dict[str, Any]]:
    """Birth, death, first, best and last of everything, from what each step of an engine lists as open."""
    engine = oe.Engine()
    view = engine.view(method="close", keep=True, **options)
    live: dict[str, dict[str, Any]] = {}
    done = []
    for snapshot in frame.sort("last_seen_at", maintain_order=True).partition_by("last_seen_at", maintain_order=True):
        now = snapshot["last_seen_at"][0]
        engine.step(snapshot, now=now)
        there = {}
        for kind, found in view.opportunities().frames.items():
            for row in found.iter_rows(named=True):
                there[row["id"][-16:]] = (kind, row[FIGURES[kind]])
        for ident in [ident for ident in live if ident not in there]:
            done.append({**live.pop(ident), "died_at": now})
        for ident, (kind, value) in there.items():
            one = live.setdefault(
                ident, {"kind": kind, "id": ident, "born_at": now, "died_at": None, "first": value, "best": value}
            )
            one["last"] = value
            if (value < one["best"]) if kind == "low_hold" else (value > one["best"]):
                one["best"] = value
    return sorted(done + list(live.values()), key=lambda row: (row["born_at"], row["kind"], row["id"]))


def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (formats, replay):
        monkeypatch.setattr(module, "PIECE", 300)


@pytest.mark.parametrize("seed", some([1, 2], 1))
def test_a_scan_is_what_a_live_engine_lists(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = quotes(seed, snapshots=less(24, 16))
    small_pieces(monkeypatch)
    found = oe.scan_history(frame, min_ev=0.5)
    slow = slow_scan(frame, min_ev=0.5)
    assert found.height == len(slow) > 20
    columns = ["kind", "id", "born_at", "died_at"]
    assert found.select(columns).rows() == [tuple(row[name] for name in columns) for row in slow]
    for name in ("first", "best", "last"):
        np.testing.assert_allclose(found[name], [row[name] for row in slow], atol=1e-9)


def test_every_way_to_hand_a_history_in_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = quotes(3, snapshots=less(24, 8), events=less(5, 2))
    wanted = oe.scan_history(frame)
    assert wanted.height > 20
    assert wanted["clv"].drop_nulls().len() > 5
    small_pieces(monkeypatch)
    hour = frame.with_columns(
        date=pl.col("last_seen_at").dt.date().cast(pl.String), hour=pl.col("last_seen_at").dt.hour()
    )
    hour.write_parquet(tmp_path / "hive", partition_by=["date", "hour"])
    frame.write_parquet(tmp_path / "one.parquet")
    frame.write_ndjson(tmp_path / "one.ndjson")
    ways = (
        frame,
        frame.sort("last_seen_at", descending=True, maintain_order=True).lazy(),
        pl.scan_parquet(tmp_path / "hive", hive_partitioning=True),
        tmp_path / "hive",
        f"{tmp_path}/hive/**/*.parquet",
        (tmp_path / "hive").as_uri() + "/**/*.parquet",
        tmp_path / "one.parquet",
        tmp_path / "one.ndjson",
        frame.lazy().with_columns(pl.col("last_seen_at").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")),
        frame.lazy().with_columns(pl.col("last_seen_at").dt.epoch("us")).rename({"last_seen_at": "timestamp"}),
        frame.lazy().with_columns(pl.col("last_seen_at").dt.convert_time_zone("America/New_York")),
        frame.lazy().with_columns(pl.col("last_seen_at").dt.cast_time_unit("ns")),
        frame.with_columns(pl.col("sportsbook", "market_type", "selection").cast(pl.Categorical)).lazy(),
        frame.to_pandas(),
        frame.to_arrow(),
    )
    for given in some(ways, 4):
        assert oe.scan_history(given).equals(wanted), type(given)


def test_pieces_are_read_one_at_a_time_and_never_cut_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = quotes(3)
    small_pieces(monkeypatch)
    most = frame.group_by(pl.col("last_seen_at").dt.truncate("1m")).len()["len"].max()
    pieces = formats.read_history(frame.lazy()).pieces
    sizes, last = [], 0
    for piece in pieces:
        assert last < piece.now[0]
        last = piece.now[-1]
        sizes.append(piece.quotes.height)
    assert sum(sizes) == frame.height
    assert max(sizes) <= 300 + int(most)  # type: ignore[arg-type]
    assert len(sizes) > 5


def test_rows_without_a_time_are_refused() -> None:
    frame = quotes(3, snapshots=3).with_row_index("n")
    wrong = frame.with_columns(pl.when(pl.col("n") != 4).then("last_seen_at").alias("last_seen_at"))
    for given in (wrong, wrong.lazy()):
        with pytest.raises(ValueError, match="last_seen_at must be a time in every row"):
            oe.scan_history(given)
    with pytest.raises(ValueError, match=r"every must be a number of seconds above 0, .*, got 0"):
        oe.scan_history(frame, every=0)
    empty = oe.scan_history(frame.clear().lazy())
    assert empty.schema == oe.scan_history(frame.drop("n")).schema
    assert not empty.height


def test_quotes_of_one_interval_are_one_step() -> None:
    def quote(second: float, book: str, side: str, odds: float) -> dict[str, Any]:
        return {
            "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": book, "selection": side,
            "odds_decimal": odds, "last_seen_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second),
        }  # fmt: skip

    frame = pl.DataFrame(
        [quote(0.1, "fanduel", "Over", 2.1), quote(0.6, "draftkings", "Under", 2.02), quote(20, "fanduel", "Over", 1.9)]
    )
    found = oe.scan_history(frame, kinds=["arbitrage"])
    assert (found["born_at"] - frame["last_seen_at"][0]).dt.total_milliseconds().to_list() == [500]
    assert not oe.scan_history(frame, kinds=["arbitrage"], every=60).height


def test_an_archive_is_ordered_by_when_it_was_recorded(tmp_path: Path) -> None:
    frame = quotes(3, snapshots=8)
    late = frame.with_columns(recorded_at=pl.col("last_seen_at") + timedelta(seconds=40))
    wanted = oe.scan_history(frame, method="power")
    late.write_parquet(tmp_path / "late.parquet")
    for given in (late, tmp_path / "late.parquet"):
        found = oe.scan_history(given, method="power")
        assert found.select("id", "first").equals(wanted.select("id", "first"))
        assert (found["born_at"] - wanted["born_at"]).unique().to_list() == [timedelta(seconds=40)]


def test_tapes_and_their_archive_scan_alike(tmp_path: Path) -> None:
    engine, writer = oe.resume(tmp_path / "tapes" / "one")
    with writer:
        for snapshot in formats.read_history(quotes(3, snapshots=8)).snapshots:
            engine.step(snapshot.quotes, snapshot.now)
    table = pl.concat([rows for _, rows in rows_of(oe.Tape(tmp_path / "tapes" / "one"))])
    table.write_parquet(tmp_path / "archive", partition_by=["day", "sport"])
    wanted = oe.scan_history(tmp_path / "tapes" / "one")
    assert wanted.height
    assert oe.scan_history(tmp_path / "archive").drop("fair").equals(wanted.drop("fair"))


# ---- closes ----


def test_the_close_of_a_bet_is_that_of_the_other_books() -> None:
    table = history(3, snapshots=8)
    scan = oe.scan_history(table, kinds=["ev"])
    assert scan.height > 40
    markets = {"point_spread": "spread", "total_points": "total", "moneyline": "moneyline"}
    last = {
        (row["event"], row["book"], row["market"], row["selection"], row["line"]): row["odds"]
        for row in table.filter(pl.col("seen_to") == pl.col("last_look")).iter_rows(named=True)
    }
    closed = 0
    for row in scan.iter_rows(named=True):
        market = markets[row["market_type"]]
        side = row["selections"][0].lower()
        assert side in SIDES[market]
        bet = {
            "event": row["event_id"], "market": market, "book": row["sportsbooks"][0], "selection": side,
            "line": row["lines"][0], "odds": row["net_odds"][0],
        }  # fmt: skip
        assert row["clv"] == pytest.approx(close_of(table, bet), abs=1e-6)
        assert row["closing_probability"][0] == pytest.approx((row["clv"] / 100.0 + 1.0) / row["net_odds"][0])
        wanted = last.get((bet["event"], bet["book"], market, side, bet["line"]))
        assert row["closing_odds"][0] == (None if wanted is None else pytest.approx(wanted))
        closed += wanted is not None
    assert closed > 20


def test_the_clv_of_several_legs_is_that_of_stakes_that_pay_the_same() -> None:
    scan = oe.scan_history(history(3), kinds=["arbitrage", "low_hold", "middles"], max_hold=8.0, min_profit=0.0)
    graded = scan.drop_nulls("clv")
    assert set(graded["kind"]) >= {"low_hold"}
    for row in graded.iter_rows(named=True):
        stakes = [1.0 / odds for odds in row["net_odds"]]
        got = sum(
            stake * (odds * q - 1.0)
            for stake, odds, q in zip(stakes, row["net_odds"], row["closing_probability"], strict=True)
        )
        assert row["clv"] == pytest.approx(100.0 * got / sum(stakes))


def test_what_is_born_in_play_has_no_close() -> None:
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = [
        {
            "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": book, "selection": side,
            "odds_decimal": odds, "last_seen_at": start + timedelta(minutes=minutes), "event_start_time": start,
            "is_live": minutes > 0,
        }
        for minutes, best in ((-5, 1.9), (5, 2.1))
        for book, side, odds in (
            ("fanduel", "Over", best), ("fanduel", "Under", 1.75), ("draftkings", "Over", 1.75),
            ("draftkings", "Under", best),
        )
    ]  # fmt: skip
    scan = oe.scan_history(pl.DataFrame(rows), kinds=["arbitrage"])
    assert scan["is_live"].to_list() == [True]
    assert scan.select("closing_odds", "closing_probability", "clv").row(0) == (None, None, None)


# ---- constants of the day ----


def days() -> pl.DataFrame:
    """The same hours on two days."""
    one = quotes(4, snapshots=12, events=less(5, 3))
    two = one.with_columns(
        pl.col("last_seen_at", "event_start_time") + timedelta(days=1), event_id=pl.lit("next ") + pl.col("event_id")
    )
    return pl.concat([one, two])


def test_constants_are_in_force_from_their_day_and_never_before() -> None:
    frame = days()
    first = frame["last_seen_at"].min().date()  # type: ignore[union-attr]
    midnight = datetime.combine(first + timedelta(days=1), datetime.min.time(), UTC)
    columns = ["kind", "id", "born_at", "first", "fair"]

    def part(scan: pl.DataFrame, *, late: bool) -> pl.DataFrame:
        return scan.filter((pl.col("born_at") >= midnight) == late).select(columns)

    old, new = (oe.scan_history(frame, kinds=["ev"], fair=fair) for fair in (OLD, NEW))
    assert not part(old, late=False).drop("fair").equals(part(new, late=False).drop("fair"))
    calls: list[datetime] = []

    def of_day(day: datetime) -> catalog.FairTable:
        calls.append(day)
        return OLD if day < midnight else NEW

    ways: list[Any] = [{first: OLD, midnight.date(): NEW}, {midnight: NEW, datetime(2020, 1, 1): OLD}, of_day]
    for fair in ways:
        both = oe.scan_history(frame, kinds=["ev"], fair=fair)
        assert part(both, late=False).equals(part(old, late=False))
        assert part(both, late=True).equals(part(new, late=True))
        assert set(both["fair"]) == {OLD.name, "new"}
    assert calls == [datetime.combine(first, datetime.min.time(), UTC), midnight]


def test_what_comes_later_changes_nothing_before() -> None:
    frame = days()
    end = frame["last_seen_at"].unique().sort()[15]
    columns = ["kind", "id", "born_at", "first", "fair", "odds", "net_odds"]
    early, whole = (
        oe.scan_history(some, fair={date(2020, 1, 1): OLD, end.date(): NEW}).filter(pl.col("born_at") <= end)
        for some in (frame.filter(pl.col("last_seen_at") <= end), frame)
    )
    assert early.select(columns).equals(whole.select(columns))


def test_constants_that_are_none_are_refused() -> None:
    frame = quotes(4, snapshots=3)
    with pytest.raises(ValueError, match=r"fair has no table for .*; the first one starts at 2099-01-01"):
        oe.scan_history(frame, fair={date(2099, 1, 1): OLD})
    refused: list[tuple[Any, str]] = [
        (3, "fair must be a FairTable, tables by date, or a function"),
        ({"2026": OLD}, "keys of fair must be dates"),
        ({date(2026, 1, 1): 3}, "fair must return a FairTable"),
        (lambda _: None, "fair must return a FairTable"),
    ]
    for wrong, message in refused:
        with pytest.raises(TypeError, match=message):
            oe.scan_history(frame, fair=wrong)
    with pytest.raises(ValueError, match="fair must have at least one table, got an empty mapping"):
        fair_by_time({})


def test_a_backtest_uses_the_constants_of_the_day() -> None:
    frame = days()
    day = frame["last_seen_at"].max().date()  # type: ignore[union-attr]
    rule = oe.Strategy(method="close", min_ev=0.5)
    old, both = (
        oe.backtest(frame, rule, fair=fair).trades.filter(pl.col("placed_at").dt.date() < day)
        for fair in (OLD, {date(2020, 1, 1): OLD, day: NEW})
    )
    assert old.height
    same = ["placed_at", "status", "odds_id", "fair_probability", "stake"]
    assert old.select(same).equals(both.select(same))


# ---- progress ----


def test_progress_is_reported_of_every_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = quotes(4, snapshots=6)
    counts: list[int] = []
    oe.scan_history(frame, progress=counts.append)
    assert counts == list(range(1, frame["last_seen_at"].n_unique() + 1))

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("oddsengine.progress._EVERY", 0.0)
    moments = [micros(datetime(2026, 1, 1, hour, tzinfo=UTC)) for hour in range(4)]
    with ticking((moments[0], moments[-1]), progress=True) as tick:
        for number, moment in enumerate(moments, 1):
            tick(moment, 500 * number)
    with playing(progress=True) as show:
        show(Played(0.5, 10, 1234, 3, 8))
    text = shown.getvalue()
    assert " 33 % " in text
    assert "2026-01-01 03:00  2,000 prices" in text
    assert " 50 % " in text
    assert "3 of 8 games  1,234 prices" in text
    assert text.endswith("\r\x1b[K")


def test_an_interval_that_ends_where_the_next_begins_does_not_take_its_price_away() -> None:
    """Whatever the order of the rows."""
    common = {"event": "e", "market": "moneyline", "selection": "home", "start": 10_000}
    rows = [
        common | {"book": book, "odds": odds, "seen_from": begin, "seen_to": end}
        for book, odds, begin, end in (
            ("a", 2.0, 0, 60),
            ("a", 2.1, 60, 180),
            ("a", 2.5, 60, 60),
            ("a", 2.0, 0, 60),
            ("b", 2.0, 0, 60),
            ("b", 2.2, 120, 180),
            ("b", 2.2, 180, 180),
        )
    ]
    times = pl.from_epoch(pl.col("start", "seen_from", "seen_to")).dt.replace_time_zone("UTC")
    for listed in (rows, rows[::-1]):
        past = replay.source(pl.DataFrame(listed).with_columns(times))
        assert isinstance(past, formats.History)
        seen = [
            sorted(set(snapshot.quotes.select("sportsbook", "odds_decimal", "is_active").rows()))
            for snapshot in past.snapshots
        ]
        assert seen == [
            [("a", 2.0, True), ("b", 2.0, True)],
            [("a", 2.1, True), ("b", 2.0, True)],
            [("a", 2.1, True), ("b", 2.2, True)],
            [("a", 2.1, True), ("b", 2.2, True)],
        ]
