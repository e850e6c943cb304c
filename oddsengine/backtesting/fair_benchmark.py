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
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine._installation import lasting
from oddsengine.backtesting import reference_methods
from oddsengine.backtesting.against import PriceObservations, bets, losses
from oddsengine.backtesting.audit_report import MOST_HOURS, MOST_ODDS
from oddsengine.backtesting.cells import CELLS, cell, weighted_mean, with_error
from oddsengine.backtesting.entered_methods import Answers, Method, ask, load_method, markets
from oddsengine.backtesting.formats import quotes
from oddsengine.backtesting.reference_methods import PINNACLE
from oddsengine.backtesting.replay import engine_of, steps
from oddsengine.backtesting.season_prices import Outcomes, season_name, season_prices
from oddsengine.bounds import excerpt
from oddsengine.catalog.fair_constants import chosen_fair_table
from oddsengine.feeds.football_data import MARKET_AVERAGE
from oddsengine.history.closing_consensus import closing_logits, votes_at
from oddsengine.pricing import close_errors

OURS, WITHOUT, BESIDE = "ours", "ours, without Pinnacle", "ours, Pinnacle the only other book"
BEST, AVERAGE = "best single book", "market average, power"
FITTED = range(2012, 2019)
"""Seasons that the constants of football were fitted to, by the year in which each begins."""
JUDGED = range(2019, 2026)
_LEAST_EV = 1.0  # %
_MARK = "*"  # of methods whose constants are explained below the table
_NOTHING_EV = 1000.0  # %: of a view that shows nothing
_SINGLE = "single "  # prefix of the books of which the best is shown
_LEAST_SHARE = 0.5  # of the games that a single book must quote
_KEPT = ("price", "event_id", "sportsbook", "sport", "league", "outcome", "ladder", "threshold_", "side", "outcomes",
         "slope", "reach")  # fmt: skip
_FIGURES = ("graded", "events", "shown", "worth", "worth_se", "bias", "bias_se", "ratio", "ratio_se", "inside_90")
_LOSSES = ("close", "result")

BENCHMARK_SCHEMA: dict[str, type[pl.DataType]] = {
    "method": pl.String,
    "markets": pl.Int64,  # that it was asked for
    "answered": pl.Int64,
    **{name: CELLS[name] for name in _FIGURES},
    "loss_prices": pl.Int64,  # prices of the log losses
    **{
        name: pl.Float64
        for truth in _LOSSES
        for name in (f"{truth}_loss", f"{truth}_excess", f"{truth}_excess_se")  # over ours
    },
    "seconds": pl.Float64,  # of processor time
}
"""Columns of `Benchmark.table`; `inside_90`: percent of closes in the 90 % range, of methods that say an error."""

Tick = Callable[[float, int, str], None]


class _Answered(NamedTuple):
    """What one method said in one season: `event_id`, `outcome`, `prob`, and for some `sportsbook` or `error`."""

    method: str
    table: pl.DataFrame
    markets: int
    answered: int
    seconds: float


class _Played(NamedTuple):
    """A season before its closes are known."""

    season: int
    prices: pl.DataFrame
    observations: pl.DataFrame
    answers: list[_Answered]


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
    data: Any = None, *, seasons: str | Iterable[int] | None = None, methods: Any = (),
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
        The years in which the seasons begin: ``"2012-2018"``, ``"2019,2021"``, or numbers; None is 2019 to 2025.
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
    >>> result.table.filter(method="ours").select("graded", "shown", "worth").round(2).rows()
    []
    """
    entered = _entered(methods)
    table = chosen_fair_table(fair)
    wanted = _wanted(seasons)
    remarks: tuple[str, ...] = ()
    if data is None:
        data, remarks = _fetched(wanted, cache, url, progress, refresh=refresh)
    prices = season_prices(data)
    chosen = _chosen(wanted, prices.seasons)
    cap = _cap(max_ev)
    run = _Run(table, entered, progress, len(chosen))
    played = [run.play(season, prices.openings(season)) for season in chosen]
    rows = pl.concat([_judged(each, prices.outcomes(each.season), table) for each in played], how="diagonal")
    answers = [answer for each in played for answer in each.answers]
    games = sum(each.prices["event_id"].n_unique() for each in played)
    fitted = tuple(season for season in chosen if season in FITTED) if fair is None else None
    return Benchmark(
        _compared(rows, answers, [*entered], games, cap), chosen, games, table.name, fitted, prices.files,
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
        several = [methods] if callable(methods) or isinstance(methods, str) else list(methods)
        named = {method if isinstance(method, str) else _name(method): method for method in several}
        if len(named) < len(several):
            raise ValueError("two methods have one name; give them by name, as in {'mine': method}")
    found = {}
    for name, method in named.items():
        taken = OURS, _SINGLE, BEST, AVERAGE, *reference_methods.references(), *reference_methods.packages()
        if str(name).startswith(taken):
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


def _wanted(seasons: str | Iterable[int] | None) -> tuple[int, ...]:
    if seasons is None:
        return tuple(JUDGED)
    return read_seasons(seasons) if isinstance(seasons, str) else tuple(seasons)


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


# ---- before the close: methods answer ----


class _Run:
    """Asks all methods for their probabilities, season by season; only entered ones have a limit of time."""

    def __init__(
        self, table: catalog.FairTable, entered: Mapping[str, Method], progress: Tick | None, seasons: int
    ) -> None:
        self._table, self._entered, self._progress = table, entered, progress
        self._methods = {**reference_methods.references(), **reference_methods.packages(), **entered}
        self._parts, self._done, self._count = seasons * (len(self._methods) + 4), 0, 0
        self._unused: dict[tuple[str, str], tuple[int, str]] = {}

    def play(self, season: int, openings: pl.DataFrame) -> _Played:
        """Return what each method says of the opening prices of a season."""
        averages = openings.filter(sportsbook=MARKET_AVERAGE)
        openings = openings.filter(pl.col("sportsbook") != MARKET_AVERAGE)
        name = season_name(season)
        if not openings.height:
            raise ValueError(f"{name} has no opening prices of the result")
        self._tell(f"{name} {OURS}", 0)
        if not self._done:  # loads kernels, which is no part of the time of a method
            _observed(openings.filter(pl.col("event_id") == openings["event_id"][0]), self._table)
        ours, seconds = _observed(openings, self._table)
        if not ours.observations.height:
            raise ValueError(f"{name} has no opening price below {MOST_ODDS:g} that the guards accept")
        prices, observations = ours.prices.select(_KEPT), ours.observations
        by_price = observations.join(prices.select("price", "event_id", "sportsbook", "outcome"), on="price")
        answers = [_own(OURS, by_price, seconds)]
        self._tell(f"{name} {WITHOUT}", 1)
        answers.append(self._variant(WITHOUT, openings.filter(pl.col("sportsbook") != PINNACLE)))
        self._tell(f"{name} {BESIDE}", 1)
        books = sorted(set(openings["sportsbook"]) - {PINNACLE})
        answers.append(_joined([self._variant(BESIDE, *_beside(openings, book)) for book in books]))
        singles = {f"{_SINGLE}{book}": reference_methods.single(book) for book in books}
        for label, method in {**self._methods, **singles}.items():
            self._tell(f"{name} {label}", 1 if label in self._methods else 0)
            answers.append(self._asked(label, method, openings))
        answers.append(self._asked(AVERAGE, reference_methods.average(), averages))
        self._tell(name, 1)
        return _Played(season, prices, observations, answers)

    def _variant(self, label: str, openings: pl.DataFrame, book: str = "") -> _Answered:
        """Our fair price of another board, or of one book's prices there."""
        played, seconds = _observed(openings, self._table)
        if not played.observations.height:
            return _Answered(label, pl.DataFrame(schema=_OWN), 0, 0, seconds)
        prices = played.prices.select("price", "event_id", "sportsbook", "outcome")
        if book:
            prices = prices.filter(sportsbook=book)
        return _own(label, played.observations.join(prices, on="price"), seconds)

    def _asked(self, label: str, method: Method, prices: pl.DataFrame) -> _Answered:
        got: Answers = ask(method, markets(prices), limited=label in self._entered)
        for wrong, count in got.failures.items():
            before, example = self._unused.get((label, wrong), (0, got.examples[wrong]))
            self._unused[label, wrong] = before + count, example
        self._count += got.asked
        return _Answered(label, got.table, got.asked, got.table["event_id"].n_unique(), got.seconds)

    def _tell(self, what: str, done: int) -> None:
        self._done += done
        if self._progress is not None:
            self._progress(self._done / self._parts, self._count, what)

    def failures(self) -> pl.DataFrame:
        """Return the answers that were not used."""
        rows = [(method, wrong, *counted) for (method, wrong), counted in self._unused.items()]
        schema = {"method": pl.String, "wrong": pl.String, "count": pl.Int64, "example": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row").filter(~pl.col("method").str.starts_with(_SINGLE))


_OWN = {"event_id": pl.String, "sportsbook": pl.String, "outcome": pl.String, "prob": pl.Float64}


def _own(label: str, rows: pl.DataFrame, seconds: float) -> _Answered:
    """Our answer, which is of a price and not of a market."""
    table = rows.select("event_id", "sportsbook", "outcome", prob=pl.col("ours").fill_nan(None))
    asked, known = table["event_id"].n_unique(), table.drop_nulls("prob")
    return _Answered(label, known, asked, known["event_id"].n_unique(), seconds)


def _joined(parts: list[_Answered]) -> _Answered:
    """Join the answers about the prices of several books."""
    tables = pl.concat([part.table for part in parts]) if parts else pl.DataFrame(schema=_OWN)
    counts = (sum(column) for column in zip(*(part[2:] for part in parts), strict=True))
    return _Answered(BESIDE, tables, *counts) if parts else _Answered(BESIDE, tables, 0, 0, 0.0)


def _beside(openings: pl.DataFrame, book: str) -> tuple[pl.DataFrame, str]:
    """Return the board of a book and Pinnacle alone, of games that both quote, and the book."""
    sharp, own = openings.filter(sportsbook=PINNACLE), openings.filter(sportsbook=book)
    both = pl.col("event_id").is_in(set(sharp["event_id"]) & set(own["event_id"]))
    return openings.filter(pl.col("sportsbook").is_in((book, PINNACLE)) & both), book


def _observed(openings: pl.DataFrame, table: catalog.FairTable) -> tuple[PriceObservations, float]:
    """Play opening prices through the live engine; also the processor time that this took."""
    began = time.process_time()
    history = quotes(openings, 1_000_000)
    engine = engine_of(history, fair=table)
    engine.view(kinds=("ev",), min_ev=_NOTHING_EV, keep=True)  # guards run for views only
    prices = PriceObservations(engine, MOST_HOURS, MOST_ODDS, unjudged=True)
    for now, update, _ in steps(engine, history):
        prices.follow(now, update)
    return prices, time.process_time() - began


# ---- after the close: what the answers were worth ----


def _judged(played: _Played, after: Outcomes, table: catalog.FairTable) -> pl.DataFrame:
    """Return the prices that have a close, with a column of probabilities for each method, null without an answer."""
    closing = closing_logits(played.prices, votes_at(after.closes, table))
    prices = played.prices.with_columns(close=closing["x"].fill_nan(None)).drop_nulls("close")
    rows = played.observations.drop("ours").join(prices, on="price", how="inner", maintain_order="left")
    by = pl.col("home_goals").cast(pl.Int64) - pl.col("away_goals")
    won = pl.when(by > 0).then(pl.lit("home")).when(by < 0).then(pl.lit("away")).when(by == 0).then(pl.lit("draw"))
    results = after.results.select("event_id", won=won)
    rows = rows.join(results, on="event_id", how="left", maintain_order="left")
    rows = rows.with_columns(result=(pl.col("outcome") == pl.col("won")).cast(pl.Float64)).drop("won")
    hours = rows["hours"].to_numpy()
    ours = close_errors.standard_errors(rows["sport"], rows["league"], hours, table)
    rows = rows.with_columns(pl.Series(f"error {OURS}", ours))
    for answer in played.answers:
        on = ["event_id", "outcome", *(["sportsbook"] if "sportsbook" in answer.table.columns else [])]
        said = answer.table
        if "error" in said.columns:  # in logits from here on
            said = said.with_columns(pl.col("error") / (pl.col("prob") * (1.0 - pl.col("prob"))))
        said = said.rename({"prob": answer.method, "error": f"error {answer.method}"}, strict=False)
        rows = rows.join(said, on=on, how="left", maintain_order="left")
    return rows


def _cap(max_ev: float | None) -> float:
    """Return the largest EV of a bet, in percent."""
    limits = catalog.thresholds()
    cap = 100.0 * (limits.ev_cap + limits.epsilon)
    if max_ev is not None and not max_ev > _LEAST_EV:
        raise ValueError(f"max_ev must be a number of percent above {_LEAST_EV:g}, got {excerpt(max_ev)}")
    return cap if max_ev is None else min(cap, max_ev)


def _compared(
    rows: pl.DataFrame, answers: list[_Answered], entered: list[str], games: int, cap: float
) -> pl.DataFrame:  # fmt: skip
    """Return `BENCHMARK_SCHEMA`."""
    names = [name for name in dict.fromkeys(answer.method for answer in answers) if name not in entered]
    own = {OURS, WITHOUT, BESIDE, AVERAGE, *reference_methods.references()}
    singles = {name for name in names if name.startswith(_SINGLE)}
    quoted = {
        name: sum(answer.answered for answer in answers if answer.method == name) for name in singles
    }  # fmt: skip
    common = rows.drop_nulls([name for name in names if name in own and rows[name].null_count() < rows.height])
    often = [name for name in singles if quoted[name] >= _LEAST_SHARE * games]
    best = min(often, key=lambda name: (_excess(common, name, "close")[0], name), default=None)
    shown = [name for name in names if name not in singles or name == best]
    place = shown.index(AVERAGE)
    order = [*(name for name in shown[:place] if name != best), *([best] if best else []), *shown[place:], *entered]
    made = []
    for name in order:
        of = [answer for answer in answers if answer.method == name]
        counts = {
            "markets": sum(answer.markets for answer in of), "answered": sum(answer.answered for answer in of),
            "seconds": sum(answer.seconds for answer in of),
        }  # fmt: skip
        book = name.removeprefix(_SINGLE)
        label = f"{BEST}, power: {book}" if name == best else name
        made.append({"method": label, **counts, **_figures(rows, common, name, cap)})
    return pl.DataFrame(made, schema=BENCHMARK_SCHEMA).fill_nan(None)


def _figures(rows: pl.DataFrame, common: pl.DataFrame, name: str, cap: float) -> dict[str, Any]:
    """Return the figures of one method: bets of all prices that it judges, and losses on the common ones."""
    own = rows.filter(100.0 * (pl.col(name) * pl.col("net") - 1.0) <= cap)
    figures = cell(bets(own, name, _LEAST_EV))
    out = {figure: figures[figure] for figure in _FIGURES}
    part = common.drop_nulls(name)
    out["loss_prices"] = part.height
    for truth in _LOSSES if part.height else ():
        out[f"{truth}_excess"], out[f"{truth}_excess_se"], out[f"{truth}_loss"] = _excess(part, name, truth)
    if name == OURS:
        out |= {f"{truth}_{of}": None for truth in _LOSSES for of in ("excess", "excess_se")}
    return out


def _excess(common: pl.DataFrame, name: str, truth: str) -> tuple[float, float, float]:
    """Return a method's log loss less ours, its error by game, and the log loss itself, on the prices it judges."""
    part = common.drop_nulls([name, truth])
    if not part.height:
        return np.nan, np.nan, np.nan
    theirs, ours = losses(part, name, truth), losses(part, OURS, truth)
    game = part["event_id"].rank("dense").to_numpy().astype(np.int64) - 1
    weight = np.ones(part.height)
    return *weighted_mean(theirs - ours, weight, game), float(theirs.mean())


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
                with_error(row, "bias", sign="+"), *(_loss(row, truth) for truth in _LOSSES), f"{row['seconds']:.1f}",
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
