"""Every example runs as its docstring says, and prints what is shown there; those of sources, from local servers."""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support import kalshi, polymarket
from support.forking import ran
from support.shown import assert_shown

import oddsengine as oe
from oddsengine.testing.local_servers import Answering, Request, served

ROOT = Path(__file__).parents[1]
EXAMPLES = {path.name: path for path in sorted((ROOT / "examples").glob("*.py"))}
_RUN = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
_SHOWN = re.compile(r"^    \$ python (\w+\.py)(.*)\n((?:    .*\n)+)", re.MULTILINE)
MOST_LINES = 50


@contextmanager
def one_exchange() -> Iterator[list[str]]:
    """Kalshi, by its address."""
    with served(kalshi.Exchange()) as url:
        yield ["--url", f"{url}/trade-api/v2"]


@contextmanager
def two_exchanges() -> Iterator[list[str]]:
    """Kalshi and Polymarket with an arbitrage, in a file of settings."""
    game = polymarket.event(
        polymarket.offer("moneyline", ("Cowboys", "Seahawks"), gameStartTime=f"{kalshi.START:%Y-%m-%d %H:%M:%S}+00"),
        teams=[polymarket.team("Seattle Seahawks", "home"), polymarket.team("Dallas Cowboys", "away")],
    )
    other = polymarket.Exchange(game)
    other.books["t1"] = dict(bids=[(0.48, 40)], asks=[(0.50, 100)])
    other.books["t2"] = dict(bids=[(0.50, 100)], asks=[(0.52, 40)])
    with served(kalshi.Exchange()) as first, served(other) as second:
        sources: dict[str, dict[str, Any]] = {
            "kalshi": {"kind": "kalshi", "sports": ["nfl"], "url": f"{first}/trade-api/v2"},
            "polymarket": {
                "kind": "polymarket", "sports": ["nfl"], "url": second, "books_url": second, "stream": False
            },
        }  # fmt: skip
        Path("feeds.toml").write_text(settings(sources), encoding="utf-8")
        yield ["feeds.toml"]


SERVERS = {"kalshi_arbitrage.py": two_exchanges, "record_day.py": one_exchange}


def settings(sources: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections `[feeds.NAME]` of a file of settings."""
    sections = (
        [f"[feeds.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in given.items())]
        for name, given in sources.items()
    )
    return "\n".join(line for section in sections for line in section)


def runs(name: str, *commands: str) -> list[str]:
    """Run an example once for each line of arguments, in the present folder; what it printed."""
    with SERVERS.get(name, lambda: nullcontext([]))() as more:
        done = [ran(_RUN, str(EXAMPLES[name]), *shlex.split(command), *more) for command in commands]
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * len(done)
    return [each.stdout for each in done]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_its_docstring_shows(name: str) -> None:
    text = EXAMPLES[name].read_text(encoding="utf-8")
    (found,) = _SHOWN.findall(text)
    assert found[0] == name
    (came,) = runs(name, found[1])
    assert_shown(re.sub("^    ", "", found[2], flags=re.MULTILINE), came, name)
    assert len(text.splitlines()) <= MOST_LINES


def test_all_examples_are_listed() -> None:
    assert len(EXAMPLES) == 6
    index = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.py)\)", index)) == set(EXAMPLES)


def test_an_arbitrage_is_reported_once() -> None:
    (came,) = runs("kalshi_arbitrage.py", "--rounds 3 --interval 0.05")
    assert came.count(" %  Dallas Cowboys @ Seattle Seahawks") == 1


def test_arbitrages_of_other_books_are_left_out() -> None:
    assert runs("kalshi_arbitrage.py", "--rounds 1 --books kalshi,fanduel") == [""]


def test_a_source_that_refuses_the_key_is_asked_again() -> None:
    async def refuse(_: Request, answering: Answering) -> None:
        await answering.answer({"message": "no such key"}, 401)

    with served(refuse) as url:
        source = {"kind": "the_odds_api", "sports": ["nba"], "key_env": "KEY", "url": url}
        Path("mine.toml").write_text(settings({"mine": source}), encoding="utf-8")
        words = ("mine.toml", "--rounds", "2", "--interval", "0")
        done = ran(_RUN, str(EXAMPLES["kalshi_arbitrage.py"]), *words, env={**os.environ, "KEY": "wrong"})
    assert (done.returncode, done.stdout, done.stderr.count("check the key")) == (0, "", 2), done


def test_a_tape_is_continued() -> None:
    first, second = runs("record_day.py", "--hours 0", "--hours 0")
    assert [text.splitlines()[-1] for text in (first, second)] == [
        "day.tape: 1 steps, 2 prices", "day.tape: 2 steps, 4 prices",
    ]  # fmt: skip
    assert oe.Tape("day.tape").frame()["selection"].unique().sort().to_list() == ["Dallas", "Seattle"]


def test_spreadsheets_of_both_kinds_have_the_same_numbers() -> None:
    runs("spreadsheet.py", "")
    points = pl.read_csv("ev.csv")
    runs("spreadsheet.py", "--comma")
    commas = pl.read_csv("ev.csv", separator=";", decimal_comma=True)
    assert points["odds_decimal"].to_list() == commas["odds_decimal"].to_list()
    assert Path("ev.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert pl.read_csv("arbitrage.csv", separator=";", decimal_comma=True)["leg"].to_list()[:2] == [1, 2]


def test_files_of_ones_own_are_read() -> None:
    sides = (("Boston Celtics", 1.75), ("Los Angeles Lakers", 2.1))
    rows = [
        {"sportsbook": book, "event_id": "g", "sport": "basketball", "home_team": "Boston Celtics",
         "away_team": "Los Angeles Lakers", "market_type": "moneyline", "selection": side, "odds_decimal": odds}
        for book in ("fanduel", "betmgm", "caesars") for side, odds in sides
    ]  # fmt: skip
    pl.DataFrame(rows).write_csv("mine.csv")
    (came,) = runs("own_model.py", "mine.csv")
    assert "Boston Celtics at caesars, 1.750" in came
    (came,) = runs("spreadsheet.py", "mine.csv")
    assert "arbitrage.csv: 0 rows" in came
