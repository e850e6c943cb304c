"""Seasons of football for the benchmark, each read twice: opening prices first, closing prices and results later.

Between the two, methods answer. So while one runs, neither a close nor a result is in memory.
"""

import hashlib
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from oddsengine.backtesting.formats import (
    OPENINGS,
    is_own_format,
    opening_prices,
    opening_results,
    scan_files,
)
from oddsengine.bounds import excerpt
from oddsengine.feeds import FeedError, football_data
from oddsengine.feeds.football_data import MARKET_AVERAGE, is_season
from oddsengine.feeds.price_files import files_of
from oddsengine.tables.frames import to_polars
from oddsengine.tables.schema import OddsError

_MARKET = "moneyline_3way"
_NEW_SEASON = 7  # month in which a season can begin
_GAME = ("division", "season", "date", "home", "away", "book")


class Outcomes(NamedTuple):
    """What became known after the opening prices."""

    closes: pl.DataFrame  # an odds table with `snapshot_at`, microseconds
    results: pl.DataFrame  # event_id, home_goals, away_goals


class SeasonPrices(Protocol):
    """Prices of seasons, by the year in which each begins."""

    files: dict[str, str]  # SHA-256 by name
    seasons: tuple[int, ...]

    def openings(self, season: int) -> pl.DataFrame:
        """Return the opening prices of the result as an odds table, those of the market average among them."""

    def outcomes(self, season: int) -> Outcomes:
        """Return the closing prices of the result, and the final scores."""


def season_prices(data: Any) -> SeasonPrices:
    """Open seasons: a frame or file of openings, or files of football-data.co.uk, a list, a folder or a pattern.

    Raises `ValueError` for anything else.
    """
    if isinstance(data, list | tuple):
        return _Files([Path(path) for path in data])
    if not isinstance(data, str | os.PathLike):
        return _Openings(to_polars(data).lazy(), {})
    path = os.fspath(data)
    if Path(path).is_dir() and (inner := sorted(Path(path).rglob("*.csv"))):
        return _Files(inner)
    try:
        files = files_of(path)
        if all(file.suffix.lower() == ".csv" and is_season(_head(file)) for file in files):
            return _Files(files)
    except OddsError as error:
        raise ValueError(str(error)) from None
    try:
        return _Openings(scan_files(path), {file.name: _digest(file.read_bytes()) for file in files})
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file or directory") from None
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as a table: {str(error).splitlines()[0]}") from None


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(16_384)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def season_name(season: int) -> str:
    """Return the name of the season that begins in a year.

    >>> season_name(1999), season_name(2012)
    ('1999/00', '2012/13')
    """
    return f"{season}/{(season + 1) % 100:02}"


class _Openings:
    """A table of openings, of which only the needed columns are read."""

    def __init__(self, table: pl.LazyFrame, files: dict[str, str]) -> None:
        names = table.collect_schema().names()
        if not is_own_format(names) or not set(OPENINGS) <= set(names):
            raise ValueError(
                "the benchmark reads files of football-data.co.uk, or a table of opening and closing prices with the "
                f"columns {', '.join(OPENINGS)}, close_home, close_draw, close_away, home_goals and away_goals, got "
                f"{excerpt(', '.join(names))}"
            )
        self.files = files
        day = pl.col("date").cast(pl.Date)
        begins = day.dt.year() - (day.dt.month() < _NEW_SEASON).cast(pl.Int32)
        if "season" in names:  # 1213, or 2012/13
            digits = pl.col("season").cast(pl.String).str.extract(r"^(?:19|20)?(\d\d)\D?\d\d$").cast(pl.Int32)
            begins = pl.coalesce(digits + pl.when(digits < 70).then(2000).otherwise(1900), begins)
        self._table = table.with_columns(begins=begins)
        self.seasons = tuple(self._table.select(pl.col("begins").unique().sort()).collect()["begins"].to_list())

    def _read(self, season: int, *columns: str) -> pl.DataFrame:
        names = self._table.collect_schema().names()
        kept = [name for name in (*_GAME, *columns) if name in names]
        return self._table.filter(pl.col("begins") == season).select(kept).collect()

    def openings(self, season: int) -> pl.DataFrame:
        table = self._read(season, "open_home", "open_draw", "open_away")
        prices = opening_prices(table.filter(pl.col("book") != "market_best"), "open")
        assert prices is not None
        return prices

    def outcomes(self, season: int) -> Outcomes:
        table = self._read(season, "close_home", "close_draw", "close_away", "home_goals", "away_goals")
        table = table.filter(~pl.col("book").is_in((MARKET_AVERAGE, "market_best")))
        closes, results = opening_prices(table, "close"), opening_results(table)
        if closes is None or results is None:
            raise ValueError(
                "the benchmark needs the columns close_home, close_draw, close_away, home_goals, away_goals"
            )
        return Outcomes(_at_the_close(closes), results)


class _Files:
    """Files of football-data.co.uk, one for each division and season."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.files: dict[str, str] = {}
        self._paths: dict[int, list[Path]] = {}
        for path in paths:
            content = path.read_bytes()
            self.files["/".join(path.parts[-2:])] = _digest(content)
            first = _read(path, content).results["date"].min()
            if not isinstance(first, date):
                raise ValueError(f"{path} has no game with a result")
            self._paths.setdefault(first.year - (first.month < _NEW_SEASON), []).append(path)
        self.seasons = tuple(sorted(self._paths))

    def openings(self, season: int) -> pl.DataFrame:
        return pl.concat(
            _of_result(_read(path).quotes.filter(~pl.col("closing"))) for path in self._paths[season]
        )  # fmt: skip

    def outcomes(self, season: int) -> Outcomes:
        files = [_read(path) for path in self._paths[season]]
        closes = pl.concat(_of_result(file.quotes.filter("closing")) for file in files)
        closes = closes.filter(pl.col("sportsbook") != MARKET_AVERAGE)
        results = pl.concat(file.results.select("event_id", "home_goals", "away_goals") for file in files)
        return Outcomes(_at_the_close(closes), results)


def _read(path: Path, content: bytes | None = None) -> football_data.SeasonFile:
    try:
        return football_data.read(path.read_bytes() if content is None else content, average=True)
    except FeedError as error:
        raise ValueError(f"{path}: {error}") from None


def _of_result(quotes: pl.DataFrame) -> pl.DataFrame:
    """Return the prices of the result; no other market has a close of four books."""
    return quotes.filter(market_type=_MARKET).drop("id", "closing")


def _at_the_close(prices: pl.DataFrame) -> pl.DataFrame:
    return prices.with_columns(snapshot_at=pl.col("last_seen_at").to_physical())
