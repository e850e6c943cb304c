"""How good books are as references, of a simulated market: one is sharp, and one errs on totals only."""

import math
import random
import shutil
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from naive.devig import power

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine import catalog
from oddsengine.backtesting.live_audit import follow_tapes, reference_sums
from oddsengine.backtesting.reference_rights import references, rights_text, with_rights
from oddsengine.backtesting.reference_samples import SUMS
from oddsengine.history.truth_file import Reference

START = datetime(2026, 7, 4, 18, tzinfo=UTC)
SOFT = ("fanduel", "draftkings", "betmgm", "caesars")
LOOKS = (300, 50, 5)  # minutes before the start
Row = dict[str, Any]


def market(games: Sequence[int], seed: int = 5) -> list[tuple[datetime, list[Row]]]:
    """Quotes of games that start together: what each book thinks of a truth that moves."""
    rng, truth = random.Random(seed), defaultdict[tuple[int, str], float](float)
    own = {
        (game, kind, book): rng.gauss(0.0, 0.04) for game in games for kind in ("moneyline", "total") for book in SOFT
    }
    batches = []
    for look in LOOKS:
        now, rows = START - timedelta(minutes=look), []
        for game in games:
            for kind, sides in (("moneyline", ("Home", "Away")), ("total", ("Over", "Under"))):
                truth[game, kind] += rng.gauss(0.0, 0.05)
                for book in (*SOFT, "pinnacle", "circa"):
                    x = truth[game, kind] + own.get((game, kind, book), 0.0)
                    if book == "circa":
                        x += rng.gauss(0.0, 0.1 if kind == "total" else 0.002)
                    p = 1.0 / (1.0 + math.exp(-x))
                    for side, share in zip(sides, (p, 1.0 - p), strict=True):
                        rows.append({
                            "sportsbook": book, "event_id": f"g{game}", "sport": "baseball", "league": "mlb",
                            "home_team": "Home", "away_team": "Away", "market_type": kind, "selection": side,
                            "line": 8.5 if kind == "total" else None, "odds_decimal": round(0.98 / share, 3),
                            "event_start_time": START, "last_seen_at": now,
                        })  # fmt: skip
        batches.append((now, rows))
    return batches


def record(folder: Path, games: Sequence[int], name: str = "start") -> Path:
    engine, writer = oe.resume(folder / "tapes" / name)
    with writer:
        for now, rows in market(games):
            engine.step(rows, now)
        engine.step([], START + timedelta(hours=7))
    return folder


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a node that has recorded 110 games."""
    folder = record(tmp_path_factory.mktemp("node"), range(110))
    follow_tapes(folder)
    return folder


def found(each: list[Reference]) -> dict[tuple[str, str], Reference]:
    return {(one.sportsbook, one.market): one for one in each}


def test_figures_tell_the_sharp_book_from_the_one_that_errs(node: Path) -> None:
    by = found(follow_tapes(node).references)
    assert {one.games for one in by.values()} == {110}
    assert by["pinnacle", "total"].prices == 220  # six hours and one hour before
    assert {name for name, one in by.items() if one.alone} >= {("pinnacle", "moneyline"), ("pinnacle", "total")}
    assert by["circa", "moneyline"].alone is True
    noisy = by["circa", "total"]
    assert noisy.alone is False
    assert noisy.excess is not None
    assert noisy.excess_error is not None
    assert noisy.excess > 4 * noisy.excess_error > 0.0
    assert noisy.excess == pytest.approx(0.5 * 0.25 * 0.1**2, rel=0.4)  # p (1 - p) / 2 times the variance of its errors
    (part,) = reference_sums(node).filter(book="circa", market="total").select(pl.sum("apart") / pl.sum("n")).row(0)
    assert part == pytest.approx(0.1**2, rel=0.4)  # it has no part in what it is compared with
    for one in by.values():
        assert one.log_loss is not None
        assert 0.6 < one.log_loss < 0.7


def test_sums_are_those_of_plain_loops(node: Path) -> None:
    """Of Pinnacle's moneyline of the first game: its own prices against the median or trimmed mean of the others."""
    batches = market(range(110))

    def logit(rows: list[Row], book: str) -> float:
        odds = [row["odds_decimal"] for row in rows if (row["sportsbook"], row["market_type"], row["event_id"]) == (
            book, "moneyline", "g0")]  # fmt: skip
        p = power(odds)[0]
        return math.log(p / (1.0 - p))

    others = sorted(logit(batches[-1][1], book) for book in (*SOFT, "circa"))
    q = 1.0 / (1.0 + math.exp(-sum(others[1:-1]) / 3))
    ps = [1.0 / (1.0 + math.exp(-logit(rows, "pinnacle"))) for _, rows in batches[:2]]
    losses = [-q * math.log(p) - (1.0 - q) * math.log(1.0 - p) for p in ps]
    entropy = -q * math.log(q) - (1.0 - q) * math.log(1.0 - q)
    (row,) = reference_sums(node).filter(event="g0", book="pinnacle", market="moneyline").to_dicts()
    assert row["n"] == 2
    assert row["start"] == int(START.timestamp() * 1e6)
    assert row["loss"] == pytest.approx(sum(losses), rel=1e-6)
    assert row["distance"] == pytest.approx(sum(losses) - 2.0 * entropy, abs=1e-7)


def test_nothing_is_noted_twice(node: Path, tmp_path: Path) -> None:
    """Also when the tape is read at every step."""
    engine, writer = oe.resume(tmp_path / "tapes" / "start")
    with writer:
        for now, rows in market(range(110)):
            two = [row for row in rows if row["event_id"] in ("g0", "g1")]
            for later in (0, 10):
                engine.step(two, now + timedelta(seconds=later))
                writer.flush()
                follow_tapes(tmp_path)
        engine.step([], START + timedelta(hours=7))
    follow_tapes(tmp_path)
    expected = reference_sums(node).filter(pl.col("event").is_in(["g0", "g1"]))
    assert reference_sums(tmp_path).select("event", "book", "market", "n").sort(pl.all()).equals(
        expected.select("event", "book", "market", "n").sort(pl.all())
    )  # fmt: skip


def test_without_a_close_of_four_other_books_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    """The close of Pinnacle alone grades prices, but not references."""
    engine, writer = oe.resume(tmp_path / "tapes" / "start")
    with writer:
        for now, rows in market([0]):
            engine.step([row for row in rows if row["sportsbook"] in ("pinnacle", "fanduel", "betmgm")], now)
        engine.step([], START + timedelta(hours=7))
    assert follow_tapes(tmp_path).references == []
    assert oe.audit(writer.path).shown.filter(close="sharp").height > 0


# ---- rights and weights ----


def sums(games: int, book: str, market_: str, sport: str = "baseball", *, distance: float = 0.001) -> pl.DataFrame:
    """A record in which our fair price is 0.001 off, and x is right by half."""
    off = [2.0 * distance * (0.9 + 0.2 * (at % 2)) for at in range(games)]
    return pl.DataFrame(
        {"event": [f"{sport}{at}" for at in range(games)], "start": 0, "book": book, "market": market_, "sport": sport,
         "n": 2, "loss": 1.4, "distance": off, "our_distance": 0.002, "unit": 0.25, "moved": 0.01, "apart": 0.02},
        schema=SUMS,
    )  # fmt: skip


def test_rights_stand_instead_of_the_list_where_there_are_a_hundred_games() -> None:
    usual = catalog.fair_table()
    few = pl.concat([sums(99, "kalshi", "total"), sums(99, "pinnacle", "spread", distance=0.1)])
    assert with_rights(usual, few) == usual
    assert {one.games_missing for one in references(few)} == {1}
    assert {one.log_loss for one in references(few)} == {None}
    assert rights_text(references(few)) == "  no book has 100 games; kalshi, total has 99, 1 missing"
    enough = pl.concat([
        sums(100, "kalshi", "total"), sums(100, "pinnacle", "spread", distance=0.1),
        sums(100, "kalshi", "player_props", "baseball", distance=0.1), sums(100, "kalshi", "player_props", "hockey"),
        sums(100, "pinnacle", "player_props", "hockey", distance=0.00111), sums(100, "fanduel", "total", distance=0.1),
    ])  # fmt: skip
    table = with_rights(usual, enough)
    assert [(right.book, right.families, right.props) for right in table.alone] == [
        ("pinnacle", ("moneyline", "moneyline_3way", "total"), ()), ("kalshi", ("total",), ("hockey",)),
    ]  # fmt: skip
    assert table.alone[0].measured == usual.alone[0].measured
    assert "total: 100 games, log loss +0.000000" in table.alone[1].measured
    assert catalog.amended_fair_table(catalog.fair_changes(table)) == table
    # The slope is 0.5 of 0.75, without an error.
    assert {name: table.sharps[name] for name in ("kalshi", "pinnacle")} == {"kalshi": 0.67, "pinnacle": 0.67}
    assert "fanduel" not in table.sharps
    assert catalog.fair_table() == usual


def test_calibrate_lets_the_first_stand_alone_and_not_the_second(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["calibrate", "--data", str(node)]) == 0
    said = capsys.readouterr().out
    assert "circa, total: 110 games" in said
    assert "circa, moneyline: 110 games" in said
    table = catalog.amended_fair_table(tomllib.loads((node / "fair.toml").read_text()))
    assert table.sharps["pinnacle"] > 0.9
    now = START - timedelta(minutes=30)

    def shown(reference: str, kind: str, fair: catalog.FairTable) -> int:
        rows = [row for row in market([0])[0][1] if row["market_type"] == kind and row["sportsbook"] == reference]
        better = {"Home": 1.06, "Over": 1.06}  # times the price of the reference, which has a margin of 2 %
        other = [
            row | {"sportsbook": "fanduel", "odds_decimal": row["odds_decimal"] * better.get(row["selection"], 0.94)}
            for row in rows
        ]
        rows = [row | {"last_seen_at": now} for row in (*rows, *other)]
        engine = oe.Engine(fair=fair)
        view = engine.view(kinds=("ev",), keep=True)
        engine.step(rows, now)
        return view.opportunities().ev.filter(pl.col("sportsbook") == "fanduel").height

    assert shown("circa", "moneyline", catalog.fair_table()) == 0  # the package's list trusts Pinnacle only
    assert shown("circa", "moneyline", table) > 0
    assert shown("circa", "total", table) == 0
    assert shown("pinnacle", "total", table) > 0


def test_with_fewer_games_rights_stay_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, usual = record(tmp_path, range(60)), catalog.fair_table()
    follow_tapes(folder)
    assert cli.main(["calibrate", "--data", str(folder), "--output", str(tmp_path / "new.toml")]) == 0
    assert "no book has 100 games; betmgm, moneyline has 60, 40 missing" in capsys.readouterr().out
    file = tmp_path / "new.toml"
    table = catalog.amended_fair_table(tomllib.loads(file.read_text())) if file.exists() else usual
    assert (table.alone, table.sharps) == (usual.alone, usual.sharps)


def test_rights_are_written_also_if_the_tapes_are_too_short_for_a_fit(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = record(tmp_path, range(200, 203))
    assert cli.main(["calibrate", "--data", str(folder)]) == 2
    assert "requires at least 50 games with a close, got 3" in capsys.readouterr().err
    shutil.copytree(node / "truth", folder / "truth")
    assert cli.main(["calibrate", "--data", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "The constants stay in use: calibrate requires at least 50 games with a close, got 3.\n" in said
    assert "The rights and weights were written to" in said
    table = catalog.amended_fair_table(tomllib.loads((folder / "fair.toml").read_text()))
    assert table.constants == catalog.fair_table().constants
    assert {right.book for right in table.alone} == {"circa", "pinnacle"}
    assert cli.main(["calibrate", "--data", str(folder)]) == 0
    assert "were written" not in capsys.readouterr().out
