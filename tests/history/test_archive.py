"""The archive: the same quotes as the tapes, read by polars, DuckDB and Dask."""

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import polars as pl
import pytest

from oddsengine import Backtest, Strategy, backtest, replay, scan_history
from oddsengine.history.archive import Archive, ArchiveError, archived, moves, rows_of, write
from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine.tape import Tape, TapeWriter
from oddsengine_cli import main
from oddsengine_service.history.archiving import NodeArchive
from oddsengine_service.server import build
from oddsengine_service.settings import ArchiveSettings, SettingsError, load

pytest.importorskip("deltalake", reason="pip install 'oddsengine[archive]'")


def recorded(folder: Path, seed: int, seconds: float = 60.0) -> Engine:
    """A tape of a made-up world."""
    engine = Engine()
    with TapeWriter(folder) as writer:
        writer.follow(engine)
        start = datetime(2026, 2, 7 + seed, 23, 59, 30, tzinfo=UTC)
        for batch in World(seed, events=6, live=0.4, tick=5.0, hazards=True, start=start).run(seconds):
            engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return engine


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two tapes, and the archive of them."""
    folder = tmp_path_factory.mktemp("archive")
    for seed in (1, 2):
        recorded(folder / "tapes" / f"tape{seed}", seed)
    assert main(["archive", str(folder / "tapes"), str(folder / "odds")]) == 0
    return folder / "tapes", folder / "odds"


def naive(tape: Path) -> list[tuple[Any, ...]]:
    """Every quote of a tape, one by one: when it came, what of, and the price."""
    out, words, books = [], list[Any](), list[str]()
    for step in Tape(tape):
        words += step.batch.raw_labels
        books += step.batch.books
        for key, odds, flags in zip(
            step.batch.quoted.key, step.batch.quoted.odds, step.batch.quoted.flags, strict=True
        ):
            raw_label = words[int(key) >> 16]
            price = None if flags & 16 else round(float(odds), 9)
            out.append(
                (step.batch.now, raw_label[0], raw_label[5], raw_label[7] or "", books[int(key) & 0xFFFF], price)
            )
    return sorted(out, key=repr)


def test_it_has_every_quote_once(made: tuple[Path, Path]) -> None:
    tapes, dest = made
    table = pl.read_delta(str(dest))
    names = ["event_id", "market_type", "selection", "sportsbook", "odds_decimal"]
    found = [
        (at, *texts[:2], texts[2] or "", texts[3], None if texts[4] is None else round(texts[4], 9))
        for at, *texts in table.select(pl.col("recorded_at").dt.epoch("us"), *names).iter_rows()
    ]
    assert sorted(found, key=repr) == sorted(naive(tapes / "tape1") + naive(tapes / "tape2"), key=repr)
    assert {path.name.split("=")[0] for path in dest.glob("*/*") if path.is_dir()} >= {"sport"}
    assert len(list(dest.glob("day=*"))) == 3  # both tapes run over midnight


def test_archiving_again_adds_only_what_is_new(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    tapes, dest = made
    before = pl.scan_delta(str(dest)).select(pl.len()).collect().item()
    assert main(["archive", str(tapes), str(dest), "--json"]) == 0
    assert '"quotes": 0' in capsys.readouterr().out
    assert pl.scan_delta(str(dest)).select(pl.len()).collect().item() == before
    assert archived(dest, "tape1") == Tape(tapes / "tape1").last
    assert Archive(dest).changes_of_event("nothing", 2**62).row.size == 0
    assert Archive(dest / "nowhere").changes_of_event("nothing", 2**62).row.size == 0


def test_pieces_are_the_whole(made: tuple[Path, Path]) -> None:
    tape = Tape(made[0] / "tape1")
    ((_, whole),) = rows_of(tape)
    parts = list(rows_of(tape, piece=500))
    assert len(parts) > 2
    assert pl.concat([rows for _, rows in parts]).equals(whole)
    (_, later), *_ = rows_of(tape, after=parts[0][0])
    assert later.equals(whole.filter(pl.col("step") > parts[0][0]))


BEST = """
SELECT event_id, selection, max(odds_decimal) AS best FROM odds
WHERE market_type = 'moneyline' AND is_active GROUP BY ALL ORDER BY ALL
"""


OFFERED = (pl.col("market_type") == "moneyline") & pl.col("is_active")


def best(quotes: pl.LazyFrame) -> pl.DataFrame:
    """The best moneylines of some quotes."""
    return quotes.filter(OFFERED).group_by("event_id", "selection").agg(pl.col("odds_decimal").max().alias("best"))\
        .sort("event_id", "selection").collect()  # fmt: skip


def test_duckdb_reads_it(made: tuple[Path, Path]) -> None:
    duckdb = pytest.importorskip("duckdb", reason="`make test-all` installs it")
    odds = duckdb.from_arrow(pl.read_delta(str(made[1])).to_arrow())
    assert odds.query("odds", BEST).fetchall() == best(pl.scan_delta(str(made[1]))).rows()
    odds = duckdb.sql(f"SELECT * FROM read_parquet('{made[1]}/*/*/*.parquet', hive_partitioning=true)")
    assert odds.query("odds", BEST).fetchall() == best(pl.scan_delta(str(made[1]))).rows()


@pytest.mark.exhaustive
def test_dask_workers_do_what_one_process_does(made: tuple[Path, Path]) -> None:
    """Tapes and partitions are tasks; what a task returns is a frame."""
    distributed = pytest.importorskip("distributed", reason="`make test-all` installs it")
    tapes, dest = made
    workers = 2
    every = [str(path) for path in sorted(tapes.iterdir())][:2]
    days = pl.scan_delta(str(dest)).select("day", "sport").unique().sort("day", "sport").collect().rows()
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = set(client.run(os.getpid).values())
        assert len(pids) == workers
        assert os.getpid() not in pids
        rebuilt, scanned, bought = (client.map(work, every, pure=False) for work in (replayed, scan_history, betting))
        parts = client.map(partition_best, *zip(*days, strict=True), table=str(dest), pure=False)
        for path, own, opportunities, backtested in zip(
            every, *(client.gather(some) for some in (rebuilt, scanned, bought)), strict=True
        ):
            assert own.equals(replayed(path))
            assert own["number"].last() == Tape(path).last
            assert opportunities.equals(scan_history(path))
            assert backtested.trades.equals(betting(path).trades)
            assert opportunities.height
            assert backtested.trades.height
        found = pl.concat(client.gather(parts)).group_by("event_id", "selection").agg(pl.col("best").max())
    assert found.sort("event_id", "selection").equals(best(pl.scan_delta(str(dest))))


def replayed(tape: str) -> pl.DataFrame:
    """What became of each step of a tape."""
    rows: list[tuple[int, int, int]] = []
    engine = replay(tape, on_update=lambda u: rows.append((u.number, u.changed.height, u.removed.height)))
    assert rows[-1][0] == engine.number
    return pl.DataFrame(rows, ["number", "changed", "removed"], orient="row")


def betting(tape: str) -> Backtest:
    """A simple strategy on a tape."""
    return backtest(tape, Strategy(min_ev=0.5, live=True))


def partition_best(day: date, sport: str, table: str) -> pl.DataFrame:
    """The best moneylines of one day and sport."""
    return best(pl.scan_delta(table).filter(day=day, sport=sport))


def test_of_two_jobs_at_once_one_adds_what_is_new(made: tuple[Path, Path], tmp_path: Path) -> None:
    dest, parts = tmp_path / "odds", list(rows_of(Tape(made[0] / "tape1"), piece=2000))
    after = archived(dest, "tape1")
    write(parts[0][1], dest, "tape1", parts[0][0], after=after)
    with pytest.raises(ArchiveError, match=f"has tape1 up to step {parts[0][0]}: another job archives it too"):
        write(parts[0][1], dest, "tape1", parts[0][0], after=after)
    assert pl.read_delta(str(dest)).height == parts[0][1].height


def test_many_files_become_one(made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dest = tmp_path / "odds"
    for last, rows in rows_of(Tape(made[0] / "tape1"), piece=2000):
        write(rows, dest, "tape1", last)
    before = pl.read_delta(str(dest))
    files = len(list(dest.rglob("part-*.parquet")))
    assert main(["compact", str(dest), "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["before"] > done["after"] == done["partitions"] > 1
    assert done["deleted"] == 0
    assert len(list(dest.rglob("part-*.parquet"))) == files + done["after"]
    after = pl.read_delta(str(dest))
    assert after.sort(pl.all()).equals(before.sort(pl.all()))
    assert scan_history(str(dest)).equals(scan_history(before))  # not the replaced files as well
    assert archived(dest, "tape1") == Tape(made[0] / "tape1").last
    event = before["event_id"][0]
    assert Archive(dest).changes_of_event(event, 2**62).row.size == moves(before.filter(event_id=event), 2**62).row.size
    assert main(["compact", str(dest), "--keep-hours", "0"]) == 0
    assert f"{done['before']} old files deleted" in capsys.readouterr().out
    assert pl.read_delta(str(dest)).sort(pl.all()).equals(after.sort(pl.all()))
    assert main(["compact", str(tmp_path / "nothing")]) == 2
    assert "is not an archive" in capsys.readouterr().err


def test_a_node_archives_what_it_takes(tmp_path: Path) -> None:
    engine, said = Engine(), list[str]()
    settings = ArchiveSettings(to=str(tmp_path / "odds"), interval=3600.0)
    archive = NodeArchive(engine, tmp_path, settings, lambda: "me", said.append)
    quotes = 0
    for at, batch in enumerate(World(3, events=4, tick=5.0).run(60.0)):
        engine.step(batch.quotes, batch.now, complete=batch.complete)
        quotes += len(batch.quotes)
        if at == 4:
            archive.write()
            assert pl.scan_delta(settings.to).select(pl.len()).collect().item() == quotes
    archive.close()
    assert set(said) == {""}
    assert pl.scan_delta(settings.to).select(pl.len()).collect().item() == quotes
    assert archived(settings.to, "me") == engine.number
    assert not list((tmp_path / "archive").iterdir())


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ("/dev/null/odds", "must be a folder that can be written, got '/dev/null/odds': "),
        ("/proc", "must be a folder that can be written, got '/proc': "),
        ("FILE", "must be a folder that can be written, got "),
        ("s4://bucket/odds", "must be a folder or a URL with one of s3, s3a, gs, az, "),
        ("http://host/odds", "must be a folder or a URL with one of s3, s3a, gs, az, "),
    ],
)
def test_an_archive_that_cannot_be_is_refused_at_start(tmp_path: Path, to: str, sentence: str) -> None:
    (tmp_path / "file").write_text("")
    to = to.replace("FILE", str(tmp_path / "file"))
    environ = {"ODDSENGINE_DATA_FOLDER": str(tmp_path), "ODDSENGINE_ARCHIVE_TO": to}
    with pytest.raises(SettingsError, match=r"^oddsengine.toml: archive.to: ") as error:
        build(load(None, environ), environ, demonstration=False).ends.close()
    assert sentence in str(error.value)


def test_an_archive_that_does_not_answer_is_reported_at_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = SimpleQueue[str]()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "test")
    archive = NodeArchive(Engine(), tmp_path, ArchiveSettings(to="s3://bucket/odds"), lambda: "me", said.put)
    assert "s3://bucket/odds" in said.get(timeout=60.0)
    archive.close()


def test_an_object_store(made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto.server", reason="`make test-all` installs it")
    boto3 = pytest.importorskip("boto3")

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="odds")
        assert main(["archive", str(made[0] / "tape1"), "s3://odds/prices"]) == 0
        assert archived("s3://odds/prices", "tape1") == Tape(made[0] / "tape1").last
    finally:
        server.stop()
