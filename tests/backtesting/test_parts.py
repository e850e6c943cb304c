"""Parts of a history, played side by side, are the history: to the last digit, wherever it is cut."""

import multiprocessing
import os
import signal
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from backtesting.test_scan import NEW, OLD, quotes
from hypothesis import given
from hypothesis import strategies as st
from live.test_engine import few

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting import formats, parts, replay
from oddsengine.backtesting.fitting import collect
from oddsengine.backtesting.processes import play_parts
from oddsengine.backtesting.replay import source
from oddsengine.detection.kinds import KINDS
from oddsengine.progress import Tick

SHARP = ("pinnacle", "circa", "betonline", "draftkings", "fanduel")
SOFT = ("betmgm", "caesars", "bet365", "betrivers", "draftkings", "fanduel")


TEAMS = ("Mets", "Cubs", "Reds", "Padres", "Astros", "Rays", "Twins", "Royals", "Angels", "Braves", "Tigers", "Yankees",
         "Dodgers", "Giants", "Rockies", "Marlins", "Phillies", "Brewers", "Pirates", "Cardinals")  # fmt: skip


def spells(seed: int, games: int = 7, books: tuple[str, ...] = SHARP) -> pl.DataFrame:
    """Games one after the other, each quoted by five books from some hours before its start."""
    rng = np.random.default_rng(seed)
    rows = []
    for game in range(games):
        start = 1_760_000_000 + 9_000 * game + int(rng.integers(600))
        looks = start - np.arange(20_000, 0, -1_500 + int(rng.integers(300)))
        for book in books:
            for market, sides, line in (("moneyline", ("home", "away"), None), ("total", ("over", "under"), 8.5)):
                chance = 0.5
                for at, until in zip(looks[:-1].tolist(), looks[1:].tolist(), strict=True):
                    chance = float(np.clip(chance + rng.normal(0.0, 0.012), 0.2, 0.8))
                    rows += [
                        {"event": f"g{game}", "sport": "baseball", "league": "mlb", "home": TEAMS[game], "book": book,
                         "away": TEAMS[~game], "market": market, "selection": side, "line": line, "odds": 0.96 / part,
                         "seen_from": at, "seen_to": until, "start": start}
                        for side, part in zip(sides, (chance, 1.0 - chance), strict=True)
                    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def test_quotes_that_repeat_a_row_are_read_as_if_each_were_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are rejected, and those that are only suspended."""
    monkeypatch.setattr(formats, "_HELD", 300)
    row = pl.int_range(pl.len())
    odds = pl.when(row % 7 == 0).then(0.5).when(row % 5 < 3).then(None).otherwise("odds")
    one, other, rejected, unpriced, pieces = oe.Engine(), oe.Engine(), 0, 0, 0
    gaps = spells(5, games=4).with_columns(odds=odds).filter(row % 11 > 1).with_columns(pl.col("start") - 6_000)
    for piece in source(gaps).pieces:  # type: ignore[union-attr]
        assert piece.table.height < max(piece.now.size, 1)
        whole = formats.Piece(piece.quotes, piece.now, piece.moments)
        for batch, wanted in zip(replay.batches(one, piece), replay.batches(other, whole), strict=True):
            for name, column in batch.quoted._asdict().items():
                assert np.array_equal(column, getattr(wanted.quoted, name), equal_nan=column.dtype == np.float64), name
            assert batch._replace(quoted=None, removed=None) == wanted._replace(quoted=None, removed=None)  # type: ignore[arg-type]
            rejected, unpriced = rejected + sum(batch.rejected.values()), unpriced + np.isnan(batch.quoted.odds).sum()
            one.feed(batch)
            other.feed(wanted)
        pieces += 1
    assert min(rejected, unpriced, pieces) > 3


@pytest.fixture(scope="module")
def small() -> Any:
    """Files are read game by game from fifty spells on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "WHOLE", 50)
        yield patch


def stored(frame: pl.DataFrame, folder: Path) -> pl.LazyFrame:
    """The same in files."""
    folder.mkdir(exist_ok=True)
    for number, some in enumerate(frame.iter_slices(max(frame.height // 3, 1))):
        some.write_parquet(folder / f"{number}.parquet")
    return pl.scan_parquet(folder / "*.parquet")


def in_parts(frame: pl.DataFrame, count: int) -> int:
    """The bytes of a part, of so many: these prices are seen twice each."""
    return frame.height * 400 // count + 1


def times_of_games(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Games that are moved, starts that are not known at first, and times finer than a microsecond."""
    early = pl.col("seen_from") < pl.col("start") - 9_000
    moved = pl.when(early & pl.col("event").is_in(["g1", "g3"])).then(pl.col("start") - 3_600).otherwise("start")
    unknown = pl.when(~(early & (pl.col("event") == "g2"))).then("start")
    frame = frame.with_columns(start=(moved, unknown, pl.col("start"))[seed % 3])
    times = ("start", "seen_from", "seen_to")
    nanoseconds = (pl.col(times) * 1_000_000_000 + 700).cast(pl.Datetime("ns", "UTC"))
    return frame.with_columns(nanoseconds if seed % 2 else pl.from_epoch(pl.col(times)).dt.replace_time_zone("UTC"))


def new_from(seconds: int, new: catalog.FairTable = NEW) -> dict[date, Any]:
    """Other constants after so many seconds."""
    return {datetime.fromtimestamp(at, UTC): table for at, table in ((0, OLD), (1_760_000_000 + seconds, new))}


def same(one: Any, other: Any) -> None:
    for name in ("shown", "table", "later", "against", "reliability"):
        assert getattr(one, name).equals(getattr(other, name)), name
    assert (one.observations, one.waiting) == (other.observations, other.waiting)


@few(4)
@given(st.integers(0, 1000), st.integers(2, 12))
def test_the_cut_changes_nothing(small: Any, tmp_path_factory: Any, seed: int, count: int) -> None:
    """Also not that games are read from files one after the other."""
    frame = times_of_games(spells(seed), seed)
    lazy = stored(frame, tmp_path_factory.mktemp("spells"))
    small.setattr(parts, "MOST", in_parts(frame, count))
    dated: dict[date, Any] = {
        datetime.fromtimestamp(0, UTC): OLD,
        datetime.fromtimestamp(1_760_000_000 + 20_000, UTC): NEW,
    }
    whole = oe.scan_history(frame, fair=dated)
    assert whole.height > 5
    assert oe.scan_history(lazy, fair=dated).equals(whole)
    audits = [oe.audit(some, delays=["10m", "1h"], include=["one_sided"]) for some in (frame, lazy)]
    assert audits[0].shown.height > 3
    same(*audits)


def test_constants_are_fitted_to_the_same_rows(small: Any, tmp_path: Path) -> None:
    frame = spells(4, games=5, books=SOFT)
    small.setattr(parts, "MOST", in_parts(frame, 3))
    one, other = (collect(some, catalog.fair_table(), 72.0) for some in (frame, stored(frame, tmp_path)))
    assert one.height > 20
    assert other.equals(one)


def test_models_are_compared_over_all_parts(small: Any, tmp_path: Path) -> None:
    frame = spells(3, games=4)
    small.setattr(parts, "MOST", in_parts(frame, 4))
    model = frame.select("event", "market", "selection", "line").unique().with_columns(probability=0.5)
    one, other = (oe.audit(some, against={"coin": model}) for some in (frame, stored(frame, tmp_path)))
    assert one.against["observations"][0] > 100
    same(one, other)


def test_a_part_has_whole_games_and_all_snapshots_from_its_first_on(small: Any, tmp_path: Path) -> None:
    small.setattr(parts, "MOST", 1 << 40)
    frame = spells(1)
    whole = source(frame)
    assert isinstance(whole, formats.History)
    moments = np.unique(np.concatenate([piece.now for piece in whole.pieces]))
    lazy = formats.Stored(stored(frame, tmp_path), "event", "book", "start", "seen_from", "seen_to", 0)
    for history in (source(frame), whole._replace(games=lazy)):
        plan = parts.planned([history], Nothing(), 3)
        some = [part for part in plan.parts if isinstance(part, parts.Part)]
        assert len(some) == len(plan.parts) == plan.processes == 3
        assert plan.snapshots == moments.size
        games = [set(part.events) for part in some]
        assert sum(map(len, games)) == len(set.union(*games)) == 7
        assert sum(part.share for part in some) == pytest.approx(1.0)
        for part in some:
            rows = next(part.history().pieces)
            assert set(rows.quotes["event_id"]) <= set(part.events)
            assert part.moments.tolist() == moments[moments >= rows.now[0]].tolist()
            assert part.books == list(SHARP)


class Nothing(NamedTuple):
    """What is wanted of a history that is only cut."""

    fair: Any = None


def test_what_cannot_be_played_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = quotes(1)
    engine, writer = oe.resume(tmp_path / "tape")
    with writer:
        engine.step(frame.head(20), now=frame["last_seen_at"][19])
    with pytest.raises(ValueError, match=r"^a tape is played in one piece; processes must be 1$"):
        oe.audit(tmp_path / "tape", processes=2)
    with pytest.raises(ValueError, match=r"^a tape is played in one piece; client must be None$"):
        oe.audit(tmp_path / "tape", client=object())
    with pytest.raises(ValueError, match=r"^there must be a history, got an empty list$"):
        oe.audit([])
    with pytest.raises(ValueError, match=r"^fair cannot be sent to another process; processes must be 1$"):
        oe.scan_history(frame, fair=lambda _: OLD, processes=2)
    with pytest.raises(ValueError, match=r"^with client, its workers play the history; processes must be None, got 2$"):
        oe.audit(frame, processes=2, client=object())
    for wrong in (0, 62, 2.0, True, "2"):
        with pytest.raises(ValueError, match=r"^processes must be from 1 to 61, or None for one per core, got "):
            oe.audit(frame, processes=wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(parts, "_WORTH", 1)
    assert parts.planned([source(tmp_path / "tape")], Nothing(), None).parts == []
    assert parts.planned([source(frame)], Nothing(lambda: 0), None).parts == []
    assert len(parts.planned([source(frame)], Nothing(), None).parts) == os.cpu_count() or os.cpu_count() == 1
    for way, value in (("frozen", True), ("executable", "")):
        with monkeypatch.context() as patch:
            patch.setattr(f"sys.{way}", value, raising=False)
            assert parts.planned([source(frame)], Nothing(), None).parts == []
            with pytest.raises(ValueError, match=r"^this process cannot start others \(.*\); processes must be 1$"):
                oe.audit(frame, processes=2)
    empty = frame.clear()
    assert oe.audit(empty, processes=2).observations == oe.scan_history(empty, processes=3).height == 0
    assert oe.scan_history([empty, empty]).height == 0


def test_the_close_of_a_game_is_by_the_constants_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by those of the time when it was graded, which depends on how much else there was to read."""
    frame = spells(5, games=3, books=SOFT)
    nobody = catalog.amended_fair_table({"vote": {"sum_low": 1.2}})
    dated = new_from(13_500, nobody)  # after the second of three games
    late = oe.scan_history(frame, fair=dated)
    has = pl.col("closing_probability").list.first().is_not_null().any()
    assert late.group_by("event_id").agg(has).sort("event_id")["closing_probability"].to_list() == [True, True, False]
    monkeypatch.setattr(replay, "PIECE", 1)
    assert oe.scan_history(frame, fair=dated).equals(late)


def test_a_scan_is_the_same_however_often_it_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after days without a price."""
    frame, times = spells(2), ("start", "seen_from", "seen_to")
    later = frame.with_columns(pl.col(times) + 400_000, event=pl.col("event") + " later")
    whole = pl.concat([frame, later])
    late = oe.scan_history(whole)
    assert late["clv"].count() > 500
    monkeypatch.setattr(replay, "PIECE", 1)
    assert oe.scan_history(whole).equals(late)


def test_a_damaged_file(small: Any, tmp_path: Path) -> None:
    small.setattr(parts, "MOST", 40_000)
    lazy = stored(spells(2, games=3), tmp_path)
    file = tmp_path / "1.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:4000] + bytes(4000) + whole[8000:])
    with pytest.raises(ValueError, match=r"^the history cannot be read: "):
        oe.audit(lazy)


# ---- several histories ----


def two_tapes(folder: Path) -> list[Path]:
    """A node that starts again in the middle of some games."""
    frame = spells(6, games=4)
    snapshots = list(source(frame).snapshots)  # type: ignore[union-attr]
    tapes = [folder / "first", folder / "second"]
    for path, some in zip(tapes, (snapshots[:25], snapshots[25:]), strict=True):
        engine, writer = oe.resume(path)
        with writer:
            for snapshot in some:
                engine.step(snapshot.quotes, snapshot.now)
    return tapes


def test_a_price_of_several_tapes_counts_once(tmp_path: Path) -> None:
    tapes, said = two_tapes(tmp_path), list[int]()
    each = [oe.audit(path) for path in tapes]
    both = oe.audit(tapes, progress=said.append)
    assert both.observations == sum(one.observations for one in each) == said[-1]
    assert said == sorted(said)
    key = ["event", "market", "selection", "line", "book", "threshold"]
    assert both.shown.select(key).is_unique().all()
    assert {*each[1].shown.select(key).rows()} <= {*both.shown.select(key).rows()}
    assert both.shown.height > each[0].shown.height + each[1].shown.height  # games wait for the second one
    assert both.shown["worth"].count() > 3
    assert oe.scan_history(tapes).height == sum(oe.scan_history(path).height for path in tapes)


# ---- processes ----


def test_processes(tmp_path: Path) -> None:
    """Four seconds: twice, two processes start and load their kernels."""
    frame, said = spells(2, games=4), list[int]()
    whole = oe.audit(frame, progress=said.append)
    assert said == list(range(1, whole.observations + 1))
    said.clear()
    same(
        oe.audit(frame, processes=2, guards=iter(["outlier"]), progress=said.append),
        oe.audit(frame, guards=["outlier"]),
    )
    assert said[-1] == whole.observations
    assert said == sorted(said)
    some = quotes(1).sort("sportsbook", maintain_order=True)
    wanted = oe.scan_history(some, books=["draftkings", "fanduel"])
    assert wanted.height > 3
    lazy = stored(some, tmp_path)
    assert oe.scan_history(lazy, processes=2, books={"draftkings": 1, "fanduel": 2}.keys()).equals(wanted)


class Some(NamedTuple):
    """A part of something else."""

    number: int

    def alone(self) -> "Some":
        return self


class Ending(Some):
    """A part that ends the process that reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (3,), None


def answer(what: str, part: Some, tick: Tick) -> Any:
    """What a process does with its part."""
    tick(part.number, 7)
    if what == "die" and part.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise" and part.number == 1:
        raise ValueError("the price is wrong")
    if what == "wait":
        os.read(os.pipe()[0], 1)
    return (lambda: 0) if what == "unsent" else 10 * part.number


def test_a_process_that_ends_or_fails() -> None:
    """Six seconds: eight processes."""
    said = list[tuple[int, ...]]()
    three = [Some(3), Some(1), Some(2)]
    assert play_parts(partial(answer, ""), three, 2, lambda *words: said.append(words)) == [30, 10, 20]
    assert set(said) == {(0, 3, 7), (1, 1, 7), (2, 2, 7)}
    with pytest.raises(ChildProcessError, match=r"ended \(signal 9\), perhaps for lack of memory; nothing was kept"):
        play_parts(partial(answer, "die"), [Some(0), Some(1)], 2, print)
    with pytest.raises(ValueError, match=r"^the price is wrong$"):
        play_parts(partial(answer, "raise"), [Some(1)], 2, print)
    with pytest.raises(ChildProcessError, match=r"ended \(exit status 3\)"):
        play_parts(partial(answer, ""), [Ending(1)], 2, print)
    with pytest.raises(Exception, match=r"pickle"):
        play_parts(partial(answer, "unsent"), [Some(1)], 2, print)
    assert not multiprocessing.active_children()


def test_an_interruption_ends_them() -> None:
    """As Ctrl+C: the processes wait for ever, and none is left."""

    class StopError(Exception):
        pass

    def stop(*_: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        play_parts(partial(answer, "wait"), [Some(0), Some(1)], 2, stop)
    assert not multiprocessing.active_children()


def test_kinds_of_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine.backtesting.processes.KINDS", {**dict.fromkeys(KINDS), "parlays": None})
    with pytest.raises(ValueError, match=r"^other processes do not have the same kinds of opportunities \(parlays\): "):
        play_parts(partial(answer, ""), [Some(0)], 1, print)


# ---- Dask ----


def test_a_client_of_dask(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="`make test-all` installs it")
    frame, said = spells(4, games=5), list[int]()
    whole = oe.audit(frame)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        same(oe.audit(frame, client=client, progress=said.append), whole)
        assert said[-1] == whole.observations
        lazy = stored(spells(4, games=5, books=SOFT), tmp_path)
        assert collect(lazy, catalog.fair_table(), 72.0, client=client).equals(
            collect(lazy, catalog.fair_table(), 72.0)
        )
        tapes = two_tapes(tmp_path / "tapes")
        same(oe.audit(tapes, client=client), oe.audit(tapes))
        with pytest.raises(ValueError, match=r"^unknown sportsbook|parlaypete"):
            oe.audit(frame, books=["parlaypete"], client=client)


class Best(oe.Strategy):
    """The best price of each game that a step changes."""

    def choose(self, ev: pl.DataFrame) -> pl.DataFrame:
        return super().choose(ev).unique("event_id", keep="first", maintain_order=True)


@pytest.mark.parametrize(
    "rule", [oe.Strategy(min_ev=1.0, size=0.5), Best(min_ev=0.5, staking="portfolio", max_bet=9.0)]
)
def test_bets_are_chosen_in_parts_and_staked_in_order_of_time(small: Any, tmp_path: Path, rule: oe.Strategy) -> None:
    frame = spells(6)
    small.setattr(parts, "MOST", in_parts(frame, 5))
    scores = pl.DataFrame({"event_id": ["g0", "g3"], "home_score": [5, 2], "away_score": [3, 4]})
    # Money is short, so that stakes depend on what became of earlier bets, also in other games.
    asked: dict[str, Any] = {"results": scores, "bankroll": 60.0, "latency_s": 1_200.0, "settle_hours": 0.5}
    one, other = (oe.backtest(some, rule, **asked) for some in (frame, stored(frame, tmp_path)))
    assert one.trades["event_id"].n_unique() > 4
    assert one.trades["status"].n_unique() > 1
    assert one.trades["graded_by"].drop_nulls().n_unique() == 2
    assert one.trades.sort("placed_at", "ev", descending=[False, True], maintain_order=True).equals(one.trades)
    assert isinstance(rule, Best) or one.trades["placed_at"].n_unique() < one.trades.height
    assert other.trades.equals(one.trades)
    assert other.cadence_s == one.cadence_s


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_all_units_are_cut_alike(small: Any, tmp_path: Path, unit: Any) -> None:
    frame = times_of_games(spells(6), 0).with_columns(pl.col("start").dt.cast_time_unit(unit))
    small.setattr(parts, "MOST", in_parts(frame, 5))
    one, other = (oe.scan_history(some) for some in (frame, stored(frame, tmp_path)))
    assert one["event_id"].n_unique() == 7
    assert other.equals(one)


def test_bets_are_graded_in_parts(small: Any, tmp_path: Path) -> None:
    frame = spells(8)
    small.setattr(parts, "MOST", in_parts(frame, 4))
    bets = [
        {"event_id": f"g{game}", "market": "moneyline", "selection": TEAMS[game], "sportsbook": "fanduel",
         "odds": 2.05, "stake": 10, "placed_at": datetime.fromtimestamp(1_760_000_000 + 9_000 * game - 9_000, UTC)}
        for game in (0, 2, 3, 6, 9)
    ]  # fmt: skip
    one, other = (oe.grade(bets, some) for some in (frame, stored(frame, tmp_path)))
    assert one.bets["no_clv"][-1] == "event not in the history"
    assert one.bets["closing_odds"].null_count() == one.bets["ev_at_close"].null_count() == 2  # and one that is old
    assert other.bets.equals(one.bets)


def test_the_prices_of_a_game_are_read_alone(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spells(9, games=4)
    read: list[int] = []
    only = formats.Stored.only

    def counted(*arguments: Any) -> formats.Held:
        held = only(*arguments)
        read.append(held.table.height)
        return held

    monkeypatch.setattr(formats.Stored, "only", counted)
    one, other = (oe.price_history(some, event=TEAMS[2].lower()) for some in (frame, stored(frame, tmp_path)))
    assert set(one["event_id"]) == {"g2"}
    assert other.equals(one)
    assert read == [frame.filter(event="g2").height]
    with pytest.raises(ValueError, match=rf"no event 'nobody'.*{TEAMS[1]}"):
        oe.price_history(stored(frame, tmp_path), event="nobody")
