"""Fair prices that packages register: `model=`, `audit --against` and `benchmark --method` take them by name."""

import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.plugin_packages import install

import oddsengine as oe
from oddsengine import fair_functions
from oddsengine.fair_functions import Calls
from oddsengine.plugins import PluginError
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.tables.schema import OddsError, OddsWarning
from oddsengine.testing import FAIR_MARKETS

MODULE = '''
import math

import oddsengine as oe

seen = []


def sharp(prices):
    """Pinnacle's prices without their margin."""
    seen.append(prices)
    own = prices.odds.get("pinnacle")
    return None if own is None else oe.devig(own, "power")


def one_book(prices):
    seen.append(prices)
    own = prices.odds.get("fanduel")
    return None if own is None or prices.market != "moneyline" else (oe.devig(own, "power"), 0.02)


def nonsense(prices):
    if prices.market == "spread":
        raise LookupError("no spread")
    return {"moneyline": [math.nan, 1.0], "total": [0.7, 0.7]}.get(prices.market)
'''


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(10.0)


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    names = {name: f"fair_prices:{name}" for name in ("sharp", "one_book", "nonsense", "gone")}
    names |= {"five": "fair_prices:seen", "p": "fair_prices:sharp"}
    folder = install(tmp_path_factory.mktemp("fair"), "fair-prices", {"fair_prices": MODULE}, fair=names)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop("fair_prices", None)


@pytest.fixture(scope="module")
def odds() -> pl.DataFrame:
    return oe.read_odds(SAMPLE_BOARD)


def seen() -> list[oe.MarketPrices]:
    import fair_prices  # type: ignore[import-not-found]

    found: list[oe.MarketPrices] = fair_prices.seen
    return found


def test_a_registered_price_finds_what_the_same_reference_finds(odds: pl.DataFrame) -> None:
    columns = ["sportsbook", "event_id", "market_type", "selection", "line", "ev_percentage"]
    mine = oe.find_ev(odds, model="sharp", min_ev=0.5)
    ours = oe.find_ev(odds, sharp=["pinnacle"], method="power", min_ev=0.5)
    assert mine.height > 10
    assert mine.select(columns).sort(columns).equals(ours.select(columns).sort(columns))
    assert mine["reference"].unique().to_list() == ["model"]


def test_it_gets_each_market_with_the_accepted_prices_of_whole_books(odds: pl.DataFrame) -> None:
    seen().clear()
    oe.find_ev(odds, model="sharp")
    markets = {(one.event, one.market, one.period, one.line, one.subject, one.live): one for one in seen()}
    assert len(markets) == len(seen())
    total = markets["nba_celtics_lakers_2026-10-24", "total", "full_game", 224.5, "", False]
    assert (total.outcomes, total.sport, total.league) == (("over", "under"), "basketball", "nba")
    teams = odds.filter(pl.col("event_id") == total.event).select("home_team", "away_team").row(0)
    assert (total.home, total.away) == teams
    spreads = {one.line for one in seen() if one.market == "spread" and one.event == total.event and not one.subject}
    assert {-2.5} <= spreads, "of the home team"
    rejected = oe.rejected(odds)
    for one in seen():
        assert all(len(prices) == len(one.outcomes) for prices in one.odds.values())
        assert set(one.seen) <= set(one.odds)
    assert {"event_id", "sportsbook"} <= set(rejected.columns)
    mids = set(rejected.filter(pl.col("guard") == "mid_price_source")["sportsbook"])
    assert mids
    assert not mids & {book for one in seen() for book in one.odds}


def test_its_teams_are_in_the_order_of_most_books() -> None:
    shared = {"event_id": "e", "sport": "basketball", "league": "nba", "market_type": "moneyline"}
    rows = [
        {**shared, "sportsbook": book, "home_team": home, "away_team": away, "selection": team, "odds_decimal": 1.9}
        for book, home, away in (
            ("fanduel", "Boston Celtics", "Miami Heat"), ("betmgm", "Miami Heat", "Boston Celtics"),
            ("caesars", "Miami Heat", "Boston Celtics"), ("pinnacle", "Miami Heat", "Boston Celtics"),
        )
        for team in (home, away)
    ]  # fmt: skip
    seen().clear()
    oe.find_ev(pl.DataFrame(rows), model="sharp")
    (one,) = seen()
    assert (one.home, one.away, one.outcomes) == ("Miami Heat", "Boston Celtics", ("home", "away"))


def test_its_error_is_that_of_the_bets(odds: pl.DataFrame) -> None:
    found = oe.find_ev(odds, model="one_book", min_ev=-5).filter(sportsbook="draftkings")
    assert found["market_type"].unique().to_list() == ["moneyline"]
    price = found["odds_decimal"] * 0.02 * 100.0
    assert (found["ev_error"] - price).abs().max() < 1e-6  # type: ignore[operator]


def test_what_it_has_no_usable_answer_for_is_said_and_left_out(odds: pl.DataFrame) -> None:
    with pytest.warns(OddsWarning) as warned:
        assert oe.find_ev(odds, model="nonsense").is_empty()
    text = str(warned[0].message)
    assert text.startswith("the fair price 'nonsense' of fair-prices 1.0: it has no usable answer for ")
    assert "an exception" in text
    assert "times, first LookupError: no spread)" in text
    assert "NaN" in text
    assert "a sum other than 1" in text


class Panic(BaseException):
    """As polars raises one."""


def test_a_panic_is_an_answer_that_cannot_be_used() -> None:
    def panics(_: oe.MarketPrices) -> None:
        raise Panic("no memory")

    calls = Calls(panics)
    assert calls.ask(FAIR_MARKETS[0]) is None
    assert calls.said() == "it has no usable answer for 1 of 1 markets: an exception (1 time, first Panic: no memory)"


def test_an_answer_that_raises_when_it_is_read_cannot_be_used() -> None:
    class Answer:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise LookupError("no numbers yet")

    calls = Calls(lambda _: Answer())
    assert calls.ask(FAIR_MARKETS[0]) is None
    assert calls.examples == {"an exception": "LookupError: no numbers yet"}


@pytest.mark.parametrize("run", [lambda work: work(), in_thread], ids=["the main thread", "another thread"])
def test_a_call_that_does_not_return_is_stopped(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(prices: oe.MarketPrices) -> Any:
        while prices.market == "moneyline":
            pass
        return [0.5, 0.5]

    monkeypatch.setattr(fair_functions, "LIMIT_S", 0.5)  # a busy machine may take long for the others
    calls = Calls(hangs)
    moneyline, spread = FAIR_MARKETS[0], FAIR_MARKETS[6]
    answers = run(lambda: [calls.ask(prices) for prices in (spread, moneyline, spread)])
    assert [answer is not None for answer in answers] == [True, False, True]
    assert calls.failures == {"a call over 0.5 s": 1}


def test_calls_that_end_at_the_limit_raise_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that end just before and just after it: an exception that comes too late would end the loop.

    A second of them, or as long as a busy machine lets none end before it.
    """
    monkeypatch.setattr(fair_functions, "LIMIT_S", 0.0005)
    monkeypatch.setattr(fair_functions, "MOST_SLOW", 10**6)

    def ends(prices: oe.MarketPrices) -> list[float]:
        end = time.perf_counter() + fair_functions.LIMIT_S * random.uniform(0.5, 1.5)
        while time.perf_counter() < end:
            pass
        return [0.5, 0.5]

    def often() -> int:
        calls = Calls(ends)
        began = time.monotonic()
        while time.monotonic() < began + (1.0 if calls.failures.total() < calls.asked else 20.0):
            calls.ask(FAIR_MARKETS[0])
        return calls.asked - calls.failures.total()

    assert in_thread(often) > 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "gone",
            "the fair price 'gone' of fair-prices 1.0 cannot be used: importing fair_prices:gone raises Attr",
        ),
        ("five", "the fair price 'five' of fair-prices 1.0 cannot be used: fair_prices:seen must be a function of the"),
        (
            "other",
            "no package registers a fair price of that name (registered: five, gone, nonsense, one_book, p,",
        ),
    ],
)
def test_a_name_that_is_none_is_an_error(name: str, reason: str, odds: pl.DataFrame) -> None:
    with pytest.raises(OddsError) as error:
        oe.find_ev(odds, model=name)
    assert reason in str(error.value)


def test_a_column_of_the_same_name_is_an_error(odds: pl.DataFrame) -> None:
    with pytest.raises(OddsError, match=r"'p' is a column of the prices and the fair price 'p' of fair-prices 1.0; re"):
        oe.find_ev(odds.with_columns(p=pl.lit(0.5)), model="p")


def test_an_audit_grades_it_as_a_table_of_the_same_probabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = oe.World(7, events=3, live=0.0, tick=900.0)
    quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(5 * 3600) for quote in batch.quotes]
    history = pl.DataFrame(quotes, infer_schema_length=None)
    begin = history["last_seen_at"].min()
    history = history.filter((pl.col("sportsbook") != "betmgm") | (pl.col("last_seen_at") == begin))
    own = history.filter(sportsbook="fanduel", market_type="moneyline").sort("last_seen_at")
    rows: list[dict[str, Any]] = []
    for (event, at), pair in own.group_by("event_id", "last_seen_at", maintain_order=True):
        if pair.height == 2:
            for side, probability in zip(pair["selection"], oe.devig(pair["odds_decimal"], "power"), strict=True):
                more = {"market_type": "moneyline", "selection": side, "probability": probability, "at": at}
                rows.append({"event_id": event, **more})
    seen().clear()
    found = oe.audit(history, against={"by name": "one_book", "by table": pl.DataFrame(rows)})
    table = {row["model"]: row for row in found.against.to_dicts()}
    assert table["by name"]["observations"] > 50
    assert table["by name"]["log_loss"] == pytest.approx(table["by table"]["log_loss"], abs=1e-9)
    assert table["by name"]["log_loss"] != pytest.approx(table["ours"]["log_loss"], abs=1e-6)
    ages = [one.at - one.seen["betmgm"] for one in seen() if one.at is not None and "betmgm" in one.odds]
    assert 0 < len(ages) < len(seen()) / 2, "only at first: later its prices are stale, and not among the accepted ones"
    assert max(ages) <= timedelta(minutes=10)
    monkeypatch.chdir(tmp_path)
    Path("one_book").touch()
    with pytest.raises(ValueError, match=r"'one_book' is a file here, and the fair price 'one_book' of fair-pri"):
        oe.audit(history, against="one_book")
    with pytest.raises(PluginError, match="must be a function of the prices of a market"):
        oe.audit(history, against="five")


def test_the_benchmark_takes_it_by_name(tmp_path: Path) -> None:
    from oddsengine.simulate.football_seasons import seasons

    (tmp_path / "E0.csv").write_bytes(b"".join(next(seasons(7)).data.splitlines(keepends=True)[:41]))
    table = oe.benchmark(tmp_path / "E0.csv", methods=["sharp"]).table
    figures = {row["method"]: (row["answered"], row["graded"], row["shown"]) for row in table.to_dicts()}
    assert figures["sharp"][1:] == figures["Pinnacle, power"][1:]
    with pytest.raises(ValueError, match="must be module:function, or a fair price that a package regi"):
        oe.benchmark(tmp_path / "E0.csv", methods=["other"])
