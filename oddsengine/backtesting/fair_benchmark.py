"""The fair-price benchmark: what the EV of a method is worth at the other books' close, on seasons of football.

Each season is played once: opening prices through the live engine for our fair price, and market by market to every
other method (`entered_methods`). Closing prices and results are read when all methods have answered. Then all are
judged alike, as by an audit:

- The prices are those of the result at the opening, of books, with odds below 4, up to 72 hours before the start;
  accepted by the guards or suspect. An EV above the cap for +EV bets is taken for an error, whoever shows it.
- A bet is a price that a method gives an EV of 1 or more. Its worth is odds times the fair probability at the close of
  the other books, less 1 (`closing_consensus`); prices without a close are left out.
- Log losses are over the prices that all methods of the benchmark itself judge: of each price alone, won or not, the
  probability at the close, or the result, being the truth. Those of an entered method are over the ones it judges too.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from oddsengine import catalog
from oddsengine._installation import lasting
from oddsengine.backtesting import reference_methods
from oddsengine.backtesting.benchmark_figures import (
    BENCHMARK_SCHEMA,
    BEST,
    LEAST_EV,
    LOSSES,
    compared,
    judged_prices,
)
from oddsengine.backtesting.benchmark_runs import AVERAGE, BESIDE, OURS, WITHOUT, SeasonRuns, Tick
from oddsengine.backtesting.cells import with_error
from oddsengine.backtesting.entered_methods import load_method
from oddsengine.backtesting.season_prices import season_name, season_prices
from oddsengine.bounds import excerpt, is_number
from oddsengine.catalog.fair_constants import chosen_fair_table
from oddsengine.fair_functions import Method

__all__ = ["AVERAGE", "BENCHMARK_SCHEMA", "FITTED", "JUDGED", "Benchmark", "benchmark", "read_seasons"]

FITTED = range(2012, 2019)
"""Seasons that the constants of football were fitted to, by the year in which each begins."""
JUDGED = range(2019, 2026)
_MARK = "*"  # of methods whose constants are explained below the table


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What each method's EV was worth.

    Attributes
    ----------
    table
        `BENCHMARK_SCHEMA`: a row for each method.
    seasons
        The seasons, by the year in which each begins.
    games
        Number of games with prices.
    fair
        Name of the table of constants.
    fitted
        Those of the seasons that our constants of football were fitted to; None if the constants are a caller's.
    files
        SHA-256 of each file by name.
    failures
        Answers that were not used: method, what was wrong, how often, and the first case.
    remarks
        Files that have changed since they were fetched, or that the site does not have.
    """

    table: pl.DataFrame
    seasons: tuple[int, ...]
    games: int
    fair: str
    fitted: tuple[int, ...] | None
    files: Mapping[str, str]
    failures: pl.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def checksum(self) -> str:
        """SHA-256 of all files: of the lines `checksum  name` in order of names."""
        lines = "".join(f"{self.files[name]}  {name}\n" for name in sorted(self.files))
        return hashlib.sha256(lines.encode()).hexdigest()

    def __str__(self) -> str:
        """Format the table as plain text."""
        what = "opening prices of the result; EV in percent of the stake, +- one standard error by game"
        head = [f"{_spans(self.seasons)}: {self.games:,} games, {what}"]
        if self.files:
            count = len(self.files)
            head.append(f"{count} {'file' if count == 1 else 'files'}, SHA-256 of all {self.checksum[:16]}")
        return "\n".join([*head, "", *_lines(self.table), "", *self._notes()])

    def _notes(self) -> list[str]:
        said = f"{_MARK} constants {self.fair}; "
        if self.fitted is None:
            said += "what they were fitted to is not known here"
        else:
            part = f"{_spans(self.fitted)} took part in the fit" if self.fitted else "none of them is here"
            said += f"those of football were fitted to {_spans(FITTED)}: {part}"
        notes = [said, "log losses: of ours; of the others less ours, +- one standard error by game"]
        asked = dict(self.table.select("method", "markets").iter_rows())
        for method, wrong, count, example in self.failures.iter_rows():
            notes.append(
                f"{method}: {wrong}, {count:,} of {asked[method]:,}" + (f"; first: {example}" if example else "")
            )
        return [*notes, *self.remarks]


def benchmark(
    data: Any = None, *, seasons: str | int | Iterable[int] | None = None, methods: Any = (),
    fair: catalog.FairTable | None = None, cache: str | os.PathLike[str] | None = None, refresh: bool = False,
    url: str | None = None, max_ev: float | None = None, progress: Tick | None = None,
) -> Benchmark:  # fmt: skip
    """Compare fair prices on seasons of football: what their EV was worth at the other books' close.

    Parameters
    ----------
    data
        Files of football-data.co.uk: a folder with folders, a pattern, or a list of paths. Or a file or frame of
        openings, as for `audit`. None fetches them, which needs the extra `[feeds]`.
    seasons
        The years in which the seasons begin: 2020, ``"2012-2018"``, ``"2019,2021"``, or numbers; None is 2019 to 2025.
    methods
        Methods to compare besides those of the benchmark: by name, several, or one; a function of `MarketPrices`, or
        ``"module:function"``. See docs/benchmark.md.
    fair
        Constants of the estimator, as for `Engine`.
    cache, refresh, url
        The folder that keeps files that were fetched (None: the user's cache), whether they are fetched again, and the
        address of another copy of them.
    max_ev
        Larger EVs are taken for errors, percent; None is the cap of +EV bets, 30.
    progress
        Called with the share that is done, the number of markets so far, and what is done.

    Returns
    -------
    Benchmark
        A row for each method; `print` shows it.

    Raises
    ------
    ValueError
        If there are no games of these seasons, the data cannot be read, or there is no such method.
    FetchError
        If files cannot be fetched.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oddsengine.simulate.football_seasons import seasons
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "E0.csv").write_bytes(b"".join(next(seasons(7)).data.splitlines(keepends=True)[:81]))
    ...     result = benchmark(folder, seasons="2020")
    >>> result.table.filter(method="ours").select("graded", "shown", "worth").to_numpy().round(2).tolist()
    [[26.0, 2.59, 2.18]]
    """
    entered = _entered(methods)
    table = chosen_fair_table(fair)
    wanted = _wanted(seasons)
    remarks: tuple[str, ...] = ()
    if data is None:
        data, remarks = _fetched(wanted, cache, url, progress, refresh=refresh)
    prices = season_prices(data)
    chosen = _chosen(wanted, prices.seasons)
    left_out = tuple(season for season in prices.seasons if season not in chosen)
    if seasons is None and left_out:
        remarks += (f"left out: {_spans(left_out)}, which are asked for with seasons ({left_out[0]}-{left_out[-1]})",)
    cap = _cap(max_ev)
    run = SeasonRuns(table, entered, progress, len(chosen))
    played = [run.play(season, prices.openings(season)) for season in chosen]
    rows = pl.concat([judged_prices(each, prices.outcomes(each.season), table) for each in played], how="diagonal")
    answers = [answer for each in played for answer in each.answers]
    games = sum(each.prices["event_id"].n_unique() for each in played)
    fitted = tuple(season for season in chosen if season in FITTED) if fair is None else None
    return Benchmark(
        compared(rows, answers, games, cap), chosen, games, table.name, fitted, prices.files,
        run.failures(), remarks,
    )  # fmt: skip


def _fetched(
    seasons: tuple[int, ...], cache: str | os.PathLike[str] | None, url: str | None, progress: Tick | None, *,
    refresh: bool,
) -> tuple[Any, tuple[str, ...]]:  # fmt: skip
    """Fetch what the cache does not have; the paths, and what is to be said of them."""
    try:
        from oddsengine.sources.season_files import URL, fetch_seasons  # noqa: PLC0415  needs the extra `feeds`
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    folder = Path(cache) if cache is not None else Path(lasting()[-1]) / "football-data"
    found = fetch_seasons(seasons, folder, url=url or URL, refresh=refresh, progress=progress)
    return list(found.paths), found.remarks


def _entered(methods: Any) -> dict[str, Method]:
    """Return methods by name; raises `ValueError` for what is none."""
    if isinstance(methods, Mapping):
        named = dict(methods)
    else:
        several = list(methods) if isinstance(methods, list | tuple) else [methods]
        named = {method if isinstance(method, str) else _name(method): method for method in several}
        if len(named) < len(several):
            raise ValueError("two methods have one name; give them by name, as in {'mine': method}")
    found = {}
    for name, method in named.items():
        taken = {OURS, WITHOUT, BESIDE, AVERAGE, *reference_methods.references(), *reference_methods.packages()}
        if str(name) in taken or str(name).startswith(f"{BEST}, "):
            raise ValueError(f"a method cannot be named {excerpt(name)}, which is one of the benchmark")
        found[str(name)] = load_method(method) if isinstance(method, str) else method
        if not callable(found[str(name)]):
            raise ValueError(f"a method must be a function or module:function, got {excerpt(method)}")
    return found


def _name(method: Any) -> str:
    return str(getattr(method, "__qualname__", type(method).__name__))


def read_seasons(text: str) -> tuple[int, ...]:
    """Parse years and ranges of years.

    >>> read_seasons("2012-2014, 2019")
    (2012, 2013, 2014, 2019)
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{4})\s*(?:-\s*(\d{4})\s*)?", part)
        if match is None or not int(match[1]) <= int(match[2] or match[1]):
            raise ValueError(
                f"seasons must be years in which they begin, such as 2012-2018 or 2019,2021, got {excerpt(text)}"
            )
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(dict.fromkeys(found))


def _wanted(seasons: str | int | Iterable[int] | None) -> tuple[int, ...]:
    if seasons is None:
        return tuple(JUDGED)
    if isinstance(seasons, str):
        return read_seasons(seasons)
    years = tuple(seasons) if isinstance(seasons, Iterable) else (seasons,)
    if not years or not all(isinstance(year, int) for year in years):
        raise ValueError(
            f"seasons must be years in which they begin, such as 2019 or '2012-2018', got {excerpt(seasons)}"
        )
    return years


def _chosen(wanted: tuple[int, ...], present: tuple[int, ...]) -> tuple[int, ...]:
    chosen = tuple(season for season in present if season in wanted)
    if not chosen:
        has = f"has {_spans(present)}" if present else "has none"
        raise ValueError(f"the data {has}, and no season of {_spans(wanted)}; choose with seasons, such as 2012-2018")
    return chosen


def _spans(seasons: Iterable[int]) -> str:
    """Name seasons: runs of consecutive ones by the first and the last.

    >>> _spans([2012, 2013, 2014, 2019])
    '2012/13 to 2014/15, 2019/20'
    """
    runs: list[list[int]] = []
    for season in sorted(seasons):
        if runs and season == runs[-1][-1] + 1:
            runs[-1].append(season)
        else:
            runs.append([season])
    return ", ".join(" to ".join(season_name(year) for year in dict.fromkeys((run[0], run[-1]))) for run in runs)


def _cap(max_ev: float | None) -> float:
    """Return the largest EV of a bet, in percent."""
    limits = catalog.thresholds()
    cap = 100.0 * (limits.ev_cap + limits.epsilon)
    if max_ev is not None and not (is_number(max_ev) and LEAST_EV < max_ev <= cap):
        raise ValueError(
            f"max_ev must be a number of percent above {LEAST_EV:g}, at most {100.0 * limits.ev_cap:g}, the cap of +EV "
            f"bets, got {excerpt(max_ev)}"
        )
    return cap if max_ev is None else max_ev


def _lines(table: pl.DataFrame) -> list[str]:
    """Format the table as columns of text."""
    head = ("", "prices", "shown", "worth", "bias", "log loss at the close", "log loss of results", "CPU s")
    lines = [head]
    for row in table.iter_rows(named=True):
        few = row["shown"] is None
        label = row["method"] + (f" {_MARK}" if row["method"] in (OURS, WITHOUT, BESIDE) else "")
        lines.append(
            (
                label, f"{row['graded']:,}", "-" if few else f"{row['shown']:.2f}", with_error(row, "worth"),
                with_error(row, "bias", sign="+"), *(_loss(row, truth) for truth in LOSSES), f"{row['seconds']:.1f}",
            )
        )  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    out = []
    for line in lines:
        first, *others = (f"{text:<{width}}" if k == 0 else f"{text:>{width}}" for k, (text, width) in
                          enumerate(zip(line, widths, strict=True)))  # fmt: skip
        out.append("  ".join((first, *others)).rstrip())
    return out


def _loss(row: Mapping[str, Any], truth: str) -> str:
    if row["method"] == OURS:
        return "-" if row[f"{truth}_loss"] is None else f"{row[f'{truth}_loss']:.6f}"
    return with_error(row, f"{truth}_excess", 6, "+")
