"""Write an imported history: prices in any order in, one Parquet file in order of time out.

Prices are collected, sorted, and written to files beside the output, at most `RUN` in each. At the end these are read
for stretches of time with about `STRETCH` prices, sorted, and joined to one file, which takes its name when it is
whole: memory has one run or one stretch, and an interrupted import leaves nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import polars as pl

from oddsengine.history.import_files import HistoryFileError
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.maths.odds import american_to_decimal
from oddsengine.tables.files import reason_of
from oddsengine.tables.levels import COMMISSION, DEPTH_SCHEMA
from oddsengine.tables.schema import ODDS_SCHEMA

Row = Mapping[str, Any]
RUN, STRETCH = 500_000, 250_000
_BATCH = 25_000  # prices that are Python objects
_COLUMNS = (
    *RAW_LABEL, "line", "sportsbook", "odds_decimal", "odds_american", "is_live", "is_active", "event_start_time",
    "last_seen_at", "max_bet", COMMISSION,
)  # fmt: skip
_DTYPES = {name: ODDS_SCHEMA.get(name) or DEPTH_SCHEMA[name] for name in _COLUMNS}
HISTORY_SCHEMA: dict[str, pl.DataType] = {"recorded_at": ODDS_SCHEMA["last_seen_at"], **_DTYPES}
"""Columns of an imported history; with results, `home_goals` and `away_goals` follow."""
_FILLED = {"is_live": False, "is_active": True}


class Written(NamedTuple):
    """What was written."""

    prices: int
    games: int
    books: tuple[str, ...]
    results: int  # games with a result
    since: datetime
    until: datetime


class HistoryWriter(AbstractContextManager["HistoryWriter"]):
    """Collects prices and results, and writes them to a file when all are there."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._rows: list[Row] = []
        self._at: list[datetime] = []
        self._frames: list[pl.DataFrame] = []
        self._runs: list[Path] = []
        self._minutes: Counter[datetime] = Counter()
        self._games: set[str] = set()
        self._books: set[str] = set()
        self._results: dict[str, tuple[int, int] | None] = {}  # None: two that differ
        self.prices = 0
        self._first, self._last = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)

    def __enter__(self) -> Self:
        try:
            self._folder = TemporaryDirectory(prefix=f".{self._output.name}.", dir=self._output.parent)
        except OSError as error:
            raise HistoryFileError(f"{self._output} cannot be written: {reason_of(error)}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, rows: Sequence[Row], at: datetime) -> None:
        """Add quotes that were known at a time, in their order."""
        if not rows:
            return
        self._rows += rows
        self._at += [at] * len(rows)
        self._minutes[at.replace(second=0, microsecond=0)] += len(rows)
        self._first, self._last = min(self._first, at), max(self._last, at)
        self.prices += len(rows)
        if len(self._rows) >= _BATCH:
            self._batch()

    def result(self, event: str, home: int, away: int) -> bool:
        """Add the final score of a game; False if it had another one, so that it has none now."""
        if self._results.setdefault(event, (home, away)) != (home, away):
            self._results[event] = None
            return False
        return True

    def finish(self, progress: Callable[[float | None, int], None] = lambda *_: None) -> Written:
        """Write the file. Raises `HistoryFileError` if it cannot be written."""
        self._batch()
        self._run()
        try:
            parts = []
            for number, (stretch, done) in enumerate(self._stretches()):
                parts.append(self._path(f"part{number}"))
                stretch.write_parquet(parts[-1], compression="zstd", statistics=True)
                progress(done, self.prices)
            whole = self._path("whole")
            pl.scan_parquet(parts).sink_parquet(whole, compression="zstd", row_group_size=STRETCH, statistics=True)
            whole.replace(self._output)
        except OSError as error:
            raise HistoryFileError(f"{self._output} cannot be written: {reason_of(error)}") from None
        known = sum(self._results.get(game) is not None for game in self._games)
        return Written(self.prices, len(self._games), tuple(sorted(self._books)), known, self._first, self._last)

    def _path(self, name: str) -> Path:
        return Path(self._folder.name, f"{name}.parquet")

    def _batch(self) -> None:
        """Turn collected rows into a frame."""
        if not self._rows:
            return
        columns: dict[str, pl.Series] = {"recorded_at": pl.Series(self._at, dtype=HISTORY_SCHEMA["recorded_at"])}
        for name, dtype in _DTYPES.items():
            columns[name] = pl.Series([row.get(name) for row in self._rows], dtype=dtype, strict=False)
        frame = pl.DataFrame(columns).with_columns(pl.col(name).fill_null(value) for name, value in _FILLED.items())
        american = pl.Series(american_to_decimal(frame["odds_american"].fill_null(float("nan"))), nan_to_null=True)
        frame = frame.with_columns(odds_decimal=pl.col("odds_decimal").fill_null(american))
        self._games.update(frame["event_id"].unique())
        self._books.update(frame["sportsbook"].unique())
        self._frames.append(frame)
        self._rows, self._at = [], []
        if sum(each.height for each in self._frames) >= RUN:
            self._run()

    def _run(self) -> None:
        """Write the frames so far as a sorted file."""
        if not self._frames:
            return
        self._runs.append(self._path(f"run{len(self._runs)}"))
        run = pl.concat(self._frames).sort("recorded_at", maintain_order=True)
        run.write_parquet(self._runs[-1], compression="zstd", row_group_size=1 << 15, statistics=True)
        self._frames = []

    def _stretches(self) -> Iterator[tuple[pl.DataFrame, float]]:
        """All prices in order of time, in frames of about `STRETCH`, with the fraction that is done."""
        runs, results = pl.scan_parquet(self._runs), self._known_results()
        minutes, count, done = sorted(self._minutes), 0, 0
        since = minutes[0]
        for minute in minutes:
            count += self._minutes[minute]
            if count < STRETCH and minute != minutes[-1]:
                continue
            until, done = minute + timedelta(minutes=1), done + count
            time = pl.col("recorded_at")
            frame = runs.filter(time >= since, time < until).collect().sort("recorded_at", maintain_order=True)
            if results is not None:
                frame = frame.join(results, on="event_id", how="left", maintain_order="left")
            yield frame, done / self.prices
            since, count = until, 0

    def _known_results(self) -> pl.DataFrame | None:
        rows = [(event, *score) for event, score in self._results.items() if score is not None]
        if not rows:
            return None
        schema = {"event_id": pl.String, "home_goals": pl.Int64, "away_goals": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")
