"""Prices from files, folders, patterns and standard input; JSON of The Odds API and of the interface."""

import io
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
import uvicorn
from feeds.test_samples import FEATURED, PAST, PROPS, ROWS
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from oddsengine import OddsError, find_all, find_ev, flatten, read_odds
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine_cli import main

HEADER = "sportsbook,event_id,market_type,selection,odds_decimal,line,deep_link"
OVER = "a,e,total_points,Over,1.95,210.5,"
UNDER = "b,e,total_points,Under,2.05,210.5,"


def save(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document.encode() if isinstance(document, str) else msgspec.json.encode(document))
    return path


def american(document: Any) -> Any:
    """The Odds API's document with American prices."""
    events = msgspec.json.decode(msgspec.json.encode(document))
    for event in events:
        for maker in event["bookmakers"]:
            for offer in maker["markets"]:
                for outcome in offer["outcomes"]:
                    d = outcome["price"]
                    outcome["price"] = round((d - 1) * 100) if d >= 2 else round(-100 / (d - 1))
    return events


@pytest.mark.parametrize("document", [FEATURED, PAST], ids=["odds", "historical"])
def test_the_odds_api(tmp_path: Path, document: Any) -> None:
    table = read_odds(save(tmp_path / "dump.json", document))
    assert table.height == 8
    assert set(table["sportsbook"]) == {"draftkings", "betmgm"}
    assert set(table["market_type"]) == {"moneyline", "point_spread", "total_points"}
    assert not table.rejected.height


def test_one_event_of_the_odds_api(tmp_path: Path) -> None:
    assert "Jayson Tatum" in read_odds(save(tmp_path / "event.json", PROPS))["player_name"].to_list()


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "odds.csv"
    path.write_bytes(SAMPLE_BOARD.read_bytes())
    read = Path.read_bytes

    def slowly(self: Path) -> bytes:
        data = read(self)
        with self.open("ab") as file:  # by another program
            file.write(b"\n")
        return data

    assert read_odds(path).height
    monkeypatch.setattr(Path, "read_bytes", slowly)
    with pytest.raises(OddsError, match=r"odds.csv was changed while it was read; read it again"):
        read_odds(path)


@pytest.mark.parametrize("written", ["NBA", "nba", " Basketball", "basketball_nba"])
def test_a_league_for_a_sport_is_understood(written: str) -> None:
    odds = pl.DataFrame(read_odds(SAMPLE_BOARD)).filter(pl.col("league") == "nba").with_columns(league=None)
    found, same = (find_ev(odds.with_columns(sport=pl.lit(sport))) for sport in (written, "basketball"))
    assert found.height
    assert found.equals(same)
    assert set(found["sport"]) == {"basketball"}


def test_american_odds_are_recognised(tmp_path: Path) -> None:
    decimal = read_odds(save(tmp_path / "decimal.json", FEATURED))
    path = save(tmp_path / "american.json", american(FEATURED))
    for table in (read_odds(path), read_odds(path, odds_format="american")):
        gap = (table["odds_decimal"] / decimal["odds_decimal"] - 1.0).abs().max()
        assert isinstance(gap, float)
        assert gap < 0.01
    with pytest.raises(
        OddsError, match=r"american.json: The Odds API returned American odds \(-\d+\); expected decimal"
    ):
        read_odds(path, odds_format="decimal")


def test_odds_of_both_formats_in_one_payload(tmp_path: Path) -> None:
    with pytest.raises(OddsError, match=r"has both American \(-\d+\) and decimal"):
        read_odds(save(tmp_path / "both.json", [*american(FEATURED), *FEATURED]))


def test_positive_american_odds_are_no_long_shots(tmp_path: Path) -> None:
    events = american(FEATURED)
    for event in events:
        for maker in event["bookmakers"]:
            maker["markets"] = [
                {**offer, "outcomes": [one for one in offer["outcomes"] if one["price"] > 0]}
                for offer in maker["markets"]
                if offer["key"] == "h2h"
            ]
    assert set(read_odds(save(tmp_path / "a.json", events))["odds_decimal"]) == {2.6, 2.5}


def test_what_is_refused_is_listed(tmp_path: Path) -> None:
    events = msgspec.json.decode(msgspec.json.encode(FEATURED))
    events[0]["bookmakers"][0]["markets"][0]["outcomes"][0]["price"] = 1.0
    table = read_odds(save(tmp_path / "dump.json", events))
    assert table.height == 7
    assert table.rejected.select("row", "reason").rows() == [(7, "an invalid price")]


ENVELOPES = {
    "list": ROWS,
    "pagination beside": {"success": True, "data": ROWS, "pagination": {"has_more": False}},
    "pagination in meta": {"data": ROWS, "meta": {"pagination": {"has_more": False}}},
    "stream": {"odds": ROWS, "count": len(ROWS)},
}


@pytest.mark.parametrize("document", ENVELOPES.values(), ids=ENVELOPES)
def test_the_interface(tmp_path: Path, document: Any) -> None:
    table = read_odds(save(tmp_path / "odds.json", document))
    assert table.equals(read_odds(save(tmp_path / "odds.ndjson", "\n".join(map(json.dumps, ROWS)))))
    assert table.height


@pytest.mark.parametrize("document", [[], {"data": []}])
def test_no_events(tmp_path: Path, document: Any) -> None:
    assert read_odds(save(tmp_path / "none.json", document)).height == 0


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"message": "Invalid key", "error_code": "INVALID_KEY"}, "this is an error response: Invalid key"),
        ({"success": False, "error": {"code": "x", "message": "no"}}, "this is an error response: no"),
        ("{", "not valid JSON: "),
        ("[" * 100_000, "not a JSON table: it is nested too deeply"),
        ("null", "not an odds table: the JSON has no list of rows"),
        ({"data": 3}, "not an odds table: the JSON has no list of rows"),
        ({"name": "x"}, "not an odds table: it has no sportsbook, no event_id,"),
        (
            [{"id": "x", "sport_key": "y", "bookmakers": 3}],
            "not a payload of The Odds API: none of its 1 items",
        ),
        ([1, 2], "not NDJSON: no line is a JSON object"),
    ],
)
def test_what_is_neither(tmp_path: Path, document: Any, sentence: str) -> None:
    with pytest.raises(OddsError) as caught:
        read_odds(save(tmp_path / "odds.json", document))
    assert str(caught.value).startswith(f"odds.json: {sentence}")


def test_a_folder_and_a_pattern(tmp_path: Path) -> None:
    save(tmp_path / "a.csv", f"{HEADER}\n{OVER}\na,e,total_points,Over,soon,1,\n")
    save(tmp_path / "deep" / "b.json", FEATURED)
    save(tmp_path / "deep" / "c.csv", f"{HEADER}\n{UNDER}\n")
    save(tmp_path / "notes.txt", "not read")
    table = read_odds(f"{tmp_path}/**/*.[cj]s*")
    assert table["row"].to_list() == [0, *range(2, 11)]
    assert table.rejected["row"].to_list() == [1]
    assert find_all(table).rejected_counts["bad_value"] == 1
    assert read_odds(tmp_path).height == 1
    assert read_odds(tmp_path / "deep").height == 9
    (tmp_path / "empty").mkdir()
    with pytest.raises(OddsError, match=r"empty has no files that end in \.csv, "):
        read_odds(tmp_path / "empty")
    with pytest.raises(OddsError, match=r"^no file matches .*\*\.csv$"):
        read_odds(tmp_path / "*.csv" / "*.csv")
    save(tmp_path / "bad.csv", "x,y\n1,2\n")
    with pytest.raises(OddsError, match=r"^bad\.csv: not an odds table"):
        read_odds(tmp_path)


def test_a_name_with_brackets_is_a_file(tmp_path: Path) -> None:
    assert read_odds(save(tmp_path / "odds [1].csv", f"{HEADER}\n{OVER}\n")).height == 1


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "ndjson"])
def test_standard_input(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = f"{HEADER}\n{OVER}\n{UNDER}\n".encode()
    if form == "json":
        content = msgspec.json.encode(FEATURED)
    elif form == "ndjson":
        content = b"\n".join(map(msgspec.json.encode, ROWS))
    elif form == "parquet":
        read_odds(save(tmp_path / "a.csv", content.decode())).drop("row").write_parquet(tmp_path / "a.parquet")
        content = (tmp_path / "a.parquet").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["scan", "-", "--kind", "arb"]) == 0
    assert "rows read" in capsys.readouterr().out


def test_standard_input_that_is_empty(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["scan", "-"]) == 2
    assert capsys.readouterr().err == "oddsengine scan: standard input is empty\n"


def test_an_odds_format_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(OddsError, match="odds_format must be one of decimal, american, got 'malay'"):
        read_odds(save(tmp_path / "dump.json", FEATURED), odds_format="malay")


# ---- through polars' readers ----

BOARD = pl.read_csv(SAMPLE_BOARD, infer_schema=False)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The sample board in hive partitions by date and sport."""
    dated = BOARD.with_columns(date=pl.col("event_start_time").str.slice(0, 10))
    dated.lazy().sink_parquet(pl.PartitionBy(tmp_path / "odds", key=["date", "sport"], include_key=False))
    return tmp_path / "odds"


def test_hive_partitions(archive: Path) -> None:
    wanted = find_all(BOARD)
    for source in (archive, f"{archive}/date=*/**/*.parquet", f"{archive.as_uri()}/"):
        table = read_odds(source)
        assert table["date"].dtype == pl.Date
        assert table.height == read_odds(SAMPLE_BOARD).height
        assert set(find_all(table).ev["id"]) == set(wanted.ev["id"])
    assert set(read_odds(f"{archive}/date=2026-10-24/sport=hockey/*.parquet")["sport"]) == {"hockey"}


def test_a_part_of_an_archive_as_a_query(archive: Path) -> None:
    query = pl.scan_parquet(archive, hive_partitioning=True).filter(sport="hockey")
    found = flatten(find_all(query).arbitrage)  # with the column that names the partition
    assert found.drop("leg_row", "leg_date").equals(
        flatten(find_all(BOARD.filter(sport="hockey")).arbitrage).drop("leg_row")
    )


def test_addresses(tmp_path: Path) -> None:
    BOARD.write_parquet(tmp_path / "a.parquet")
    BOARD.write_csv(tmp_path / "a.csv")
    BOARD.write_ndjson(tmp_path / "a.ndjson")
    app = Starlette(routes=[Mount("/", StaticFiles(directory=tmp_path))])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + 20.0
        while not server.started and time.monotonic() < end:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        for base in (tmp_path.as_uri(), f"http://127.0.0.1:{port}"):
            for suffix in ("parquet", "csv", "ndjson"):
                table = read_odds(f"{base}/a.{suffix}")
                assert table.height == read_odds(SAMPLE_BOARD).height, suffix
                assert table.rejected.height == read_odds(SAMPLE_BOARD).rejected.height
        with pytest.raises(OddsError, match=r"^cannot read http://127\.0\.0\.1:\d+/b\.parquet: .*not found"):
            read_odds(f"http://127.0.0.1:{port}/b.parquet")
    finally:
        server.should_exit = True
        thread.join(20.0)


def test_addresses_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OddsError, match=r"^cannot read s3://odds/a\.json: a URL must end in \.parquet"):
        read_odds("s3://odds/a.json")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(OddsError, match=r"a\.csv: not an odds table: it has no sportsbook"):
        read_odds((tmp_path / "a.csv").as_uri())
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(OddsError, match=r"^cannot read file:"):
        read_odds((tmp_path / "a.parquet").as_uri())
