"""The command `fills`: its table, its files, and what it refuses."""

import json
from pathlib import Path

import polars as pl
import pytest
from backtesting.test_fills import LAST, OPENING, history

import oddsengine_cli as cli


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fills") / "prices.parquet"
    history(*OPENING, LAST).write_parquet(path)
    return str(path)


def test_the_table_and_the_files(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempts, orders = str(tmp_path / "attempts.parquet"), str(tmp_path / "orders.ndjson")
    words = ["fills", table, "--kind", "arb", "--stakes", "100,900", "--delay", "0-2", "--legs", "together"]
    assert cli.main([*words, "--attempts", attempts, "--orders", orders]) == 0
    assert capsys.readouterr().out == (
        "Arbitrage: 1 shown, average profit 1.95 %. In percent:\n"
        "stake  still there  in whole  in part  hedged  left open  worth\n"
        " $100          100       100        0       0          0  1.95 %\n"
        " $900          100         0      100       0          0  1.42 %\n"
    )
    assert pl.read_parquet(attempts).height == 4
    assert pl.read_ndjson(orders)["sportsbook"].unique().sort().to_list() == ["draftkings", "novig"]
    assert cli.main([*words, "--by", "books", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by"] == ["kind", "stake", "books"]
    assert [group["books"] for group in found["groups"]] == ["draftkings, novig"] * 4
    assert cli.main([*words, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("arbitrage,100.0,least,1,1,100.0,100.0,")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--delay", "soon"], "--delay takes seconds, such as kalshi=0.5 or kalshi=0.2-1, got 'soon'"),
        (
            ["--delay", "kalshi=3-1"],
            "the delay of kalshi must be from 0 to 3600 seconds, the least first, got (3.0, 1.0)",
        ),
        (["--delay", "kalshi=1", "--delay", "kalshi=2"], "--delay is given twice for 'kalshi'"),
        (["--delay", "1", "--delay", "2"], "--delay is given twice"),
        (["--delay", "kalshi=1", "--delay", "Kalshi=2"], "delays: kalshi and Kalshi are one book, kalshi"),
        (
            ["--delay", "1", "--delay", "kalshi=2"],
            "--delay takes either the seconds of all books or those of some, got both",
        ),
        (["--by", "venue"], "by must be one of kind, stake, sport, league, market_type, is_live, books, got 'venue'"),
        (["--orders", "x.csv"], "--orders takes a .parquet, .ndjson or .jsonl file, got 'x.csv'"),
        (["--rates", "XXX=1.3"], "rates must be of USD, USDC, GBP, EUR, got 'XXX'"),
    ],
)
def test_what_is_refused(table: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fills", table, *words]) == 2
    assert message in capsys.readouterr().err


def test_without_anything_shown_it_says_where_to_look(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fills", table, "--min-profit", "50", "--kind", "arb"]) == 0
    out, err = capsys.readouterr()
    assert out == "nothing was shown\n"
    assert "scan FILE --rejected lists the prices that guards reject" in err


def test_files_that_cannot_be_written_are_refused_before_the_run(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is played or printed, and what is read is not written over."""
    content, twice = Path(table).read_bytes(), str(tmp_path / "a.ndjson")
    for words, message in (
        ([table, "--attempts", table], f"cannot write {table}: it would be among what is read, '{table}'"),
        ([str(tmp_path), "--orders", str(tmp_path / "new.parquet")], "it would be among what is read"),
        ([table, "--attempts", str(tmp_path / "no" / "a.parquet")], "a.parquet: no such file or directory"),
        ([table, "--attempts", twice, "--orders", twice], f"a.ndjson: it would be among what is read, '{twice}'"),
    ):
        assert cli.main(["fills", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, message in err) == ("", True), err
    assert Path(table).read_bytes() == content
