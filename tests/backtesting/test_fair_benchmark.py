"""The fair-price benchmark on simulated seasons: its figures by hand, what methods see, what they may do wrong."""

import csv
import gc
import hashlib
import io
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from naive.devig import power

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine import fair_functions
from oddsengine.backtesting import fair_benchmark, reference_methods
from oddsengine.backtesting.fair_benchmark import BENCHMARK_SCHEMA, read_seasons
from oddsengine.backtesting.formats import opening_prices
from oddsengine.simulate.football_seasons import seasons
from oddsengine.sources import season_files
from oddsengine.testing.local_servers import Answering, Request, served

SIDES = ("home", "draw", "away")
CODES = {"B365": "bet365", "BW": "bwin", "IW": "interwetten", "PS": "pinnacle", "VC": "betvictor", "WH": "williamhill"}
GAMES, FEW = 60, 20  # of each season


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of two seasons, in the folders of the site."""
    root = tmp_path_factory.mktemp("seasons")
    for code, season in zip(("1819", "1920"), seasons(7, 2, first=2018), strict=True):
        write(root / code, season.data, GAMES)
    return root


@pytest.fixture(scope="module")
def small(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with fewer games."""
    root = tmp_path_factory.mktemp("small")
    for path in folder.rglob("*.csv"):
        write(root / path.parent.name, path.read_bytes(), FEW)
    return root


def write(folder: Path, data: bytes, games: int) -> None:
    folder.mkdir()
    (folder / "E0.csv").write_bytes(b"".join(data.splitlines(keepends=True)[: games + 1]))


@pytest.fixture(scope="module", autouse=True)
def without_packages() -> Iterator[None]:
    """Other packages are not installed everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference_methods, "_PACKAGES", ())
        yield


def mean(prices: oe.MarketPrices) -> tuple[list[float], float]:
    """A method: the mean of all books, proportional to 1 / odds, and a standard error."""
    totals = [sum(1.0 / odds[at] / sum(1.0 / o for o in odds) for odds in prices.odds.values()) for at in range(3)]
    return [total / len(prices.odds) for total in totals], 0.02


@pytest.fixture(scope="module")
def result(folder: Path) -> oe.Benchmark:
    return oe.benchmark(folder, seasons="2018-2019", methods={"mean": mean})


# ---- figures ----


class Price(NamedTuple):
    game: str
    book: str
    odds: float
    fair: float  # by the method
    sharp: bool  # whether Pinnacle quotes the game
    close: float
    won: bool


def by_hand(folder: Path, method: Callable[[dict[str, list[float]]], list[float]]) -> list[Price]:
    """Each price below 4 with a close of the others, in plain Python: the mean without the highest and the lowest."""
    found = []
    for path in sorted(folder.rglob("*.csv")):
        for number, row in enumerate(csv.DictReader(io.StringIO(path.read_text()))):
            early, late = (
                {
                    book: [float(row[f"{code}{mark}{side}"]) for side in "HDA"]
                    for code, book in CODES.items()
                    if row[f"{code}{mark}H"]
                }
                for mark in ("", "C")
            )
            fair = method(early)
            logits = {book: [math.log(p / (1.0 - p)) for p in power(odds)] for book, odds in late.items()}
            for book, odds in early.items():
                for at, price in enumerate(odds):
                    others = sorted(x[at] for other, x in logits.items() if other != book)
                    if len(others) < 4 or price >= 4.0:
                        continue
                    x = statistics.fmean(others[1:-1]) if len(others) > 4 else statistics.median(others)
                    won = row["FTR"] == "HDA"[at]
                    name = f"{path.parent.name} {number}"
                    found.append(
                        Price(name, book, price, fair[at], "pinnacle" in early, 1.0 / (1.0 + math.exp(-x)), won)
                    )
    return found


def test_a_methods_figures_are_those_of_plain_python(folder: Path, result: oe.Benchmark) -> None:
    def proportional(books: dict[str, list[float]]) -> list[float]:
        shares = [[1.0 / o / sum(1.0 / each for each in odds) for o in odds] for odds in books.values()]
        return [statistics.fmean(column) for column in zip(*shares, strict=True)]

    prices = by_hand(folder, proportional)
    evs = [100.0 * (each.odds * each.fair - 1.0) for each in prices]
    bets = [(each, ev) for each, ev in zip(prices, evs, strict=True) if 1.0 <= ev <= 30.0]
    worth = [100.0 * (each.odds * each.close - 1.0) for each, _ in bets]
    row = result.table.row(by_predicate=pl.col("method") == "mean", named=True)
    assert len(bets) > 20
    assert (row["markets"], row["answered"], row["graded"]) == (2 * GAMES, 2 * GAMES, len(bets))
    assert row["shown"] == pytest.approx(statistics.fmean(ev for _, ev in bets))
    assert row["worth"] == pytest.approx(statistics.fmean(worth))
    games: dict[str, float] = {}
    for (each, _), value in zip(bets, worth, strict=True):
        games[each.game] = games.get(each.game, 0.0) + value - row["worth"]
    spread = math.sqrt(len(games) / (len(games) - 1) * sum(total**2 for total in games.values())) / len(bets)
    assert row["worth_se"] == pytest.approx(spread)
    # The prices of the log losses: not those at Pinnacle or without it, which not all of the other methods judge.
    others = [each for each in prices if each.book != "pinnacle" and each.sharp]
    assert row["loss_prices"] == len(others)
    for name, truth in (("close", lambda each: each.close), ("result", lambda each: float(each.won))):
        losses = [-truth(each) * math.log(each.fair) - (1 - truth(each)) * math.log1p(-each.fair) for each in others]
        assert row[f"{name}_loss"] == pytest.approx(statistics.fmean(losses))
        ours = result.table.row(by_predicate=pl.col("method") == "ours", named=True)
        assert row[f"{name}_excess"] == pytest.approx(row[f"{name}_loss"] - ours[f"{name}_loss"])


def openings(folder: Path, *, close_of: tuple[str, ...]) -> pl.DataFrame:
    """The same games as a table of openings."""
    rows = []
    for path in sorted(folder.rglob("*.csv")):
        for row in csv.DictReader(io.StringIO(path.read_text())):
            day = "-".join(reversed(row["Date"].split("/")))
            game = {
                "division": "E0", "season": path.parent.name, "date": day, "home": row["HomeTeam"],
                "away": row["AwayTeam"], "home_goals": int(row["FTHG"]), "away_goals": int(row["FTAG"]),
            }  # fmt: skip
            for code, book in {**CODES, "Avg": "market_average", "Max": "market_best"}.items():
                prices = {
                    f"{name}_{side}": float(row[f"{code}{mark}{letter}"] or "nan")
                    for name, mark in (("open", ""), ("close", "C"))
                    for side, letter in zip(SIDES, "HDA", strict=True)
                    if name == "open" or book in close_of
                }
                rows.append({**game, "book": book, **prices})
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("date").str.to_date()).fill_nan(None)


def test_ours_is_what_an_audit_of_the_same_prices_says(small: Path) -> None:
    table = openings(small, close_of=("pinnacle",))  # of the others an audit also sees the closing prices as offers
    # Some games have a price at bwin that no book makes, which the guards reject.
    rest = 1.0 / pl.col("open_draw") + 1.0 / pl.col("open_away")
    wrong = (pl.col("book") == "bwin") & (pl.col("home").rank("dense") % 3 == 0)
    table = table.with_columns(open_home=pl.when(wrong).then(1.0 / (0.99 - rest)).otherwise("open_home"))
    early = opening_prices(table, "open")
    assert early is not None
    assert oe.rejected(early, guards=["book_sum"]).height > 5
    found = oe.benchmark(table, seasons=[2018, 2019]).table
    audited = oe.audit(table).table.row(0, named=True)
    ours = found.row(by_predicate=pl.col("method") == "ours", named=True)
    assert audited["graded"] > 5
    for figure in ("graded", "events", "shown", "worth", "worth_se", "bias", "bias_se", "ratio", "inside_90"):
        assert ours[figure] == pytest.approx(audited[figure]), figure


def test_the_market_average_is_a_reference_and_never_a_book(small: Path) -> None:
    table = openings(small, close_of=tuple(CODES.values()))
    plain = oe.benchmark(table, seasons=[2018]).table
    without = oe.benchmark(table.filter(~pl.col("book").str.starts_with("market_")), seasons=[2018]).table
    average = pl.col("method") == fair_benchmark.AVERAGE
    assert plain.filter(average)["graded"].item() > 0
    assert without.filter(average)["answered"].item() == 0
    figures = ("method", "graded", "shown", "worth")
    assert plain.filter(~average).select(figures).equals(without.filter(~average).select(figures))


def test_what_is_printed(result: oe.Benchmark) -> None:
    text = re.sub(r"(?m)(?<=\S) +\d+\.\d$", "", str(result))  # processor times
    stored = Path(__file__).with_name("fair_benchmark.txt")
    assert text + "\n" == stored.read_text(encoding="utf-8")
    assert list(result.table.columns) == list(BENCHMARK_SCHEMA)
    assert result.fitted == (2018,)
    assert min(result.table["seconds"].to_list()) >= 0.0


def test_a_method_can_have_any_other_name(small: Path) -> None:
    """Its answers are its own, not a column of prices or results."""
    names = ["mine", "result", "close", "odds", "event_id", "single mine", "ours mine"]
    table = oe.benchmark(small, seasons="2019", methods=dict.fromkeys(names, mean)).table.tail(len(names))
    assert table["method"].to_list() == names
    assert table["answered"].to_list() == [FEW] * len(names)
    assert table.drop("method", "seconds").n_unique() == 1
    nobody = oe.benchmark(small, seasons="2019", methods={"result": lambda _: None}).table
    assert nobody.select("method", "answered", "graded").row(-1) == ("result", 0, 0)


def test_seasons_that_are_left_out_are_said(folder: Path) -> None:
    result = oe.benchmark(folder)
    assert result.seasons == (2019,)
    assert str(result).endswith("left out: 2018/19, which are asked for with seasons (2018-2018)")


def test_the_best_single_book_is_the_one_with_the_least_loss(folder: Path, result: oe.Benchmark) -> None:
    losses = {}
    for book in set(CODES.values()) - {"pinnacle"}:

        def alone(books: dict[str, list[float]], book: str = book) -> list[float]:
            return power(books[book]) if book in books else [math.nan] * 3

        prices = by_hand(folder, alone)
        some = [each for each in prices if each.book != "pinnacle" and each.sharp and not math.isnan(each.fair)]
        losses[book] = statistics.fmean(
            -each.close * math.log(each.fair) - (1 - each.close) * math.log1p(-each.fair) for each in some
        )
    (name,) = result.table.filter(pl.col("method").str.starts_with("best single book"))["method"]
    assert name == f"best single book, power: {min(losses, key=losses.__getitem__)}"


def test_a_smaller_cap_leaves_larger_evs_out(small: Path) -> None:
    below = oe.benchmark(small, seasons="2018", max_ev=2.0).table
    assert below["graded"].sum() > 0
    assert max(below["shown"].drop_nulls().to_list()) < 2.0
    for wrong in (1.0, 50.0, "2"):
        with pytest.raises(
            ValueError, match=f"max_ev must be a number of percent above 1, at most 30, .*, got '?{wrong}"
        ):
            oe.benchmark(small, seasons="2018", max_ev=wrong)  # type: ignore[arg-type]
    for nothing in ((), 2018.5, [None]):
        with pytest.raises(ValueError, match="seasons must be years in which they begin, such as 2019"):
            oe.benchmark(small, seasons=nothing)  # type: ignore[arg-type]


# ---- what a method gets ----


def reachable(start: list[Any], most: int = 200_000) -> Iterator[Any]:
    """Everything that objects refer to, but no modules, classes and their dictionaries."""
    seen: set[int] = set()
    left = list(start)
    while left and len(seen) < most:
        each = left.pop()
        if id(each) in seen or isinstance(each, type | type(sys)):
            continue
        seen.add(id(each))
        yield each
        left += [other for other in gc.get_referents(each) if not (isinstance(other, dict) and "__name__" in other)]


FUTURE = {"home_goals", "away_goals", "close", "closing", "snapshot_at", "result", "close_home"}


def test_a_method_that_looks_finds_neither_closes_nor_results(small: Path) -> None:
    """In what it is given, and in all that the functions refer to that have called it."""
    found: set[str] = set()
    seen = calls = 0

    def looks(prices: oe.MarketPrices) -> list[float]:
        nonlocal seen, calls
        calls += 1
        if calls > 2:
            return [0.4, 0.3, 0.3]
        held: list[Any] = [prices]
        frame: Any = sys._getframe(1)
        while frame.f_code.co_name != "test_a_method_that_looks_finds_neither_closes_nor_results":
            held.append({**frame.f_locals})
            frame = frame.f_back
        for each in reachable(held):
            if isinstance(each, pl.DataFrame):
                seen += each.height
                found.update(FUTURE & {*each.columns})
                if each.height and {"last_seen_at", "event_start_time"} <= {*each.columns}:
                    times = each.select("event_start_time", "last_seen_at")
                    times = times.explode("last_seen_at") if isinstance(times.dtypes[1], pl.List) else times
                    left = times.select((pl.col("event_start_time") - pl.col("last_seen_at")).min()).item()
                    found.update(["a closing price"] if left.total_seconds() < 3600 else [])
        return [0.4, 0.3, 0.3]

    result = oe.benchmark(small, seasons="2018", methods={"looks": looks})
    assert result.failures.rows() == []
    assert calls == FEW
    assert seen > 6 * FEW, "it reaches the opening prices"
    assert found == set()


def test_what_it_is_given_cannot_be_changed_and_has_no_teams(small: Path) -> None:
    given: list[oe.MarketPrices] = []

    def keeps(prices: oe.MarketPrices) -> None:
        given.append(prices)
        with pytest.raises(TypeError):
            prices.odds["pinnacle"] = (9.0, 9.0, 9.0)  # type: ignore[index]
        with pytest.raises(AttributeError):
            prices.market = "x"  # type: ignore[misc]

    oe.benchmark(small, seasons="2018", methods={"keeps": keeps})
    moments = [prices.at for prices in given if prices.at is not None]
    assert len(moments) == len(given)
    assert moments == sorted(moments)
    one = given[0]
    assert one.at is not None
    assert one.start is not None
    assert (one.market, one.outcomes, one.league) == ("moneyline_3way", SIDES, "england_premier_league")
    assert set(one.odds) <= set(CODES.values())
    assert set(one.odds) == set(one.seen)
    assert all(seen == one.at < one.start for seen in one.seen.values())
    assert not any(team in repr(one) for team in ("West Ham", "Chelsea", "Arsenal"))


# ---- what a method may do wrong ----


def test_wrong_answers_are_counted_by_name_and_end_nothing(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_functions, "LIMIT_S", 0.02)
    monkeypatch.setattr(fair_functions, "MOST_SLOW", 2)
    answers: list[Any] = [
        [0.5, 0.3, math.nan], [0.5, 0.5], [0.5, 0.3, 0.3], [1.0, 0.0, 0.0], "abc", [[0.4, 0.3, 0.3]],
        ([0.4, 0.3, 0.3], -1.0), ([0.4, 0.3, 0.3], [0.1, 0.1]), None, ([0.4, 0.3, 0.3], 0.01),
        np.array([0.4, 0.3, 0.3]),
    ]  # fmt: skip
    calls = 0

    def wrong(_: oe.MarketPrices) -> Any:
        nonlocal calls
        calls += 1
        if calls <= len(answers):
            return answers[calls - 1]
        if calls == len(answers) + 1:
            raise ZeroDivisionError("no books")
        if calls == len(answers) + 2:
            sys.exit(3)
        time.sleep(5.0)
        raise AssertionError

    found = oe.benchmark(small, seasons="2018", methods={"wrong": wrong})
    assert dict(found.failures.select("wrong", "count").rows()) == {
        "NaN": 1, "a wrong length": 3, "a sum other than 1": 1, "a probability outside 0 and 1": 1, "no numbers": 1,
        "an error that is not above 0": 1, "an exception": 2, "a call over 0.02 s": 2,
        "not called after 2 calls over 0.02 s": FEW - len(answers) - 4,
    }  # fmt: skip
    assert found.table.row(by_predicate=pl.col("method") == "wrong", named=True)["answered"] == 2
    said = str(found)
    assert f"wrong: a wrong length, 3 of {FEW}; first: 2 probabilities for 3 outcomes" in said
    assert f"wrong: an exception, 2 of {FEW}; first: ZeroDivisionError: no books" in said


def test_an_error_gives_a_range(result: oe.Benchmark) -> None:
    held = dict(result.table.select("method", "inside_90").rows())
    assert 80.0 < held["mean"] <= 100.0
    assert 80.0 < held["ours"] <= 100.0
    assert held["Pinnacle, power"] is None


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("math", r"a method must be module:function, or a .* that a package registers, got 'math'"),
        ("math:nothing", r"the method math:nothing: math has no function nothing"),
        ("./mine.py:fair", r"the method ./mine.py:fair: a module has no path; a file mine.py is mine:function"),
        ("no_such_module:fair", r"the method no_such_module:fair: there is no module no_such_module here or installed"),
        ({"ours": mean}, r"a method cannot be named 'ours', which is one of the benchmark"),
        ({"Pinnacle, power": mean}, r"a method cannot be named 'Pinnacle, power', which is one of the benchmark"),
        ([3], r"a method must be a function or module:function, got 3"),
        ([mean, mean], r"two methods have one name"),
        (3, r"a method must be a function or module:function, got 3"),
    ],
)
def test_a_method_that_is_none(small: Path, methods: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        oe.benchmark(small, seasons="2018", methods=methods)


def test_data_and_seasons_that_are_none(small: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the data has 2018/19 to 2019/20, and no season of 2011/12; choose"):
        oe.benchmark(small, seasons=[2011])
    with pytest.raises(ValueError, match=r"the benchmark reads files of football-data\.co\.uk, or a table of opening"):
        oe.benchmark(pl.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="gone: no such file or directory"):
        oe.benchmark(tmp_path / "gone")
    for text in ("20x", "2019-2012", "", "12-18"):
        with pytest.raises(ValueError, match="seasons must be years in which they begin, such as 2012-2018"):
            read_seasons(text)


# ---- the files of the site ----


class Site:
    """football-data.co.uk on this machine: two divisions of two seasons."""

    def __init__(self, folder: Path) -> None:
        files = {code: (folder / code / "E0.csv").read_bytes() for code in ("1819", "1920")}
        self.files = {
            f"/{code}/{division}.csv": content.replace(b"\nE0,", f"\n{division},".encode())
            for code, content in files.items()
            for division in ("E0", "D1")
        }
        self.asked: list[str] = []

    async def __call__(self, request: Request, answering: Answering) -> None:
        self.asked.append(request.path)
        content = self.files.get(request.path)
        await answering.answer({"message": "none"} if content is None else content, 404 if content is None else 200)


def test_files_are_fetched_once_with_their_checksums(small: Path, tmp_path: Path) -> None:
    site, cache = Site(small), tmp_path / "cache"
    ticks: list[tuple[float, int, str]] = []

    def fetched(**more: Any) -> season_files.SeasonFiles:
        return season_files.fetch_seasons([2018, 2019], cache, url=url, divisions=["D1", "E0", "T1"], **more)

    with served(site) as url:
        first = fetched(progress=lambda *each: ticks.append(each))
        assert [str(path.relative_to(cache)) for path in first.paths] == [
            "1819/D1.csv", "1819/E0.csv", "1920/D1.csv", "1920/E0.csv",
        ]  # fmt: skip
        assert (first.fetched, first.remarks) == (4, ("football-data.co.uk does not have 1819/T1.csv, 1920/T1.csv",))
        assert ticks[3] == (0.5, 3, "1920/D1.csv")
        sums = dict(line.split("  ")[::-1] for line in (cache / "SHA256SUMS").read_text().splitlines())
        assert sums == {name[1:]: hashlib.sha256(content).hexdigest() for name, content in site.files.items()}
        site.asked.clear()
        assert fetched() == first._replace(fetched=0)
        assert site.asked == [], "seasons that are over get no new files"
        site.files["/1920/E0.csv"] += b"\n"
        again = fetched(refresh=True)
        assert again.fetched == 4
        assert "/1920/T1.csv" in site.asked
        assert "1920/E0.csv has changed at football-data.co.uk since it was last fetched" in again.remarks
        (cache / "1819" / "D1.csv").write_bytes(site.files["/1819/E0.csv"])
        assert any("1819/D1.csv is not the file that was fetched" in remark for remark in fetched().remarks)


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["benchmark", "fair", "--cache", str(tmp_path), "--url", "http://127.0.0.1:9"]
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert said.startswith("oddsengine benchmark: football-data.co.uk: 127.0.0.1 cannot be reached: ")
    assert said.endswith("with files of your own, name their folder (--data FOLDER, or data)\n")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("content", "said"), [(b"<html>", "what came is not a file of football-data"), (None, "none of")]
)
def test_a_site_without_files(tmp_path: Path, content: bytes | None, said: str) -> None:
    async def other(_: Request, answering: Answering) -> None:
        await answering.answer(content or b"", 200 if content else 404)

    with served(other) as url, pytest.raises(oe.FetchError, match=said):
        season_files.fetch_seasons([2019], tmp_path, url=url, divisions=["E0"])


def test_the_command_fetches_and_reads_what_it_has(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("def fair(prices):\n    print('asked')\n    return [1 / 3, 1 / 3, 1 / 3]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["benchmark", "fair", "--seasons", "2019", "--method", "mine:fair"]
    with served(Site(small)) as url:
        assert cli.main([*words, "--cache", "kept", "--url", url, "--json", "--output", "table.csv"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["seasons"], document["games"], document["fitted"]) == ([2019], 2 * FEW, [])
    assert [row["method"] for row in document["methods"]][-1] == "mine:fair"
    assert pl.read_csv("table.csv")["method"].to_list() == [row["method"] for row in document["methods"]]
    assert set(document["files"]) == {"1920/D1.csv", "1920/E0.csv"}
    assert cli.main([*words, "--data", "kept"]) == 0
    said = capsys.readouterr().out
    assert document["checksum"][:16] in said
    assert "* constants us-2026-11; those of football were fitted to 2012/13 to 2018/19: none of them is here" in said
