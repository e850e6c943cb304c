"""What each method of the benchmark says of the opening prices of a season, before the closes are known."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import polars as pl

from oddsengine import catalog
from oddsengine.backtesting import reference_methods
from oddsengine.backtesting.against import Observed, PriceObservations
from oddsengine.backtesting.audit_report import MOST_HOURS, MOST_ODDS
from oddsengine.backtesting.entered_methods import Answers, ask, markets
from oddsengine.backtesting.formats import quotes
from oddsengine.backtesting.reference_methods import PINNACLE
from oddsengine.backtesting.replay import engine_of, steps
from oddsengine.backtesting.season_prices import season_name
from oddsengine.fair_functions import Method
from oddsengine.feeds.football_data import MARKET_AVERAGE

OURS, WITHOUT, BESIDE = "ours", "ours, without Pinnacle", "ours, Pinnacle the only other book"
AVERAGE = "market average, power"
SINGLE, ENTERED = "single ", "entered "
"""Prefixes of the books of which the best is shown, and of methods that enter, whose names may be those of columns."""
_NOTHING_EV = 1000.0  # %: of a view that shows nothing
_KEPT = (
    "price", "event_id", "sportsbook", "sport", "league", "outcome", "ladder", "threshold_", "side", "outcomes",
    "slope", "reach",
)  # fmt: skip

Tick = Callable[[float, int, str], None]


class Answered(NamedTuple):
    """What one method said in one season: `event_id`, `outcome`, `prob`, and for some `sportsbook` or `error`."""

    method: str
    table: pl.DataFrame
    markets: int
    answered: int
    seconds: float


class PlayedSeason(NamedTuple):
    """A season before its closes are known."""

    season: int
    prices: pl.DataFrame
    observations: pl.DataFrame
    answers: list[Answered]


class SeasonRuns:
    """Asks all methods for their probabilities, season by season; only entered ones have a limit of time."""

    def __init__(
        self, table: catalog.FairTable, entered: Mapping[str, Method], progress: Tick | None, seasons: int
    ) -> None:
        self._table, self._progress = table, progress
        self._entered = {f"{ENTERED}{name}": method for name, method in entered.items()}
        self._methods = {**reference_methods.references(), **reference_methods.packages(), **self._entered}
        self._parts, self._done, self._count = seasons * (len(self._methods) + 4), 0, 0
        self._unused: dict[tuple[str, str], tuple[int, str]] = {}

    def play(self, season: int, openings: pl.DataFrame) -> PlayedSeason:
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
        singles = {f"{SINGLE}{book}": reference_methods.single(book) for book in books}
        for label, method in {**self._methods, **singles}.items():
            self._tell(f"{name} {label.removeprefix(ENTERED)}", 1 if label in self._methods else 0)
            answers.append(self._asked(label, method, openings))
        answers.append(self._asked(AVERAGE, reference_methods.average(), averages))
        self._tell(name, 1)
        return PlayedSeason(season, prices, observations, answers)

    def _variant(self, label: str, openings: pl.DataFrame, book: str = "") -> Answered:
        """Our fair price of another board, or of one book's prices there."""
        played, seconds = _observed(openings, self._table)
        if not played.observations.height:
            return Answered(label, pl.DataFrame(schema=_OWN), 0, 0, seconds)
        prices = played.prices.select("price", "event_id", "sportsbook", "outcome")
        if book:
            prices = prices.filter(sportsbook=book)
        return _own(label, played.observations.join(prices, on="price"), seconds)

    def _asked(self, label: str, method: Method, prices: pl.DataFrame) -> Answered:
        got: Answers = ask(method, markets(prices), limited=label in self._entered)
        for wrong, count in got.failures.items():
            before, example = self._unused.get((label, wrong), (0, got.examples[wrong]))
            self._unused[label, wrong] = before + count, example
        self._count += got.asked
        return Answered(label, got.table, got.asked, got.table["event_id"].n_unique(), got.seconds)

    def _tell(self, what: str, done: int) -> None:
        self._done += done
        if self._progress is not None:
            self._progress(self._done / self._parts, self._count, what)

    def failures(self) -> pl.DataFrame:
        """Return the answers that were not used."""
        rows = [
            (method.removeprefix(ENTERED), wrong, *counted)
            for (method, wrong), counted in self._unused.items()
            if not method.startswith(SINGLE)
        ]
        schema = {"method": pl.String, "wrong": pl.String, "count": pl.Int64, "example": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")


_OWN = {"event_id": pl.String, "sportsbook": pl.String, "outcome": pl.String, "prob": pl.Float64}


def _own(label: str, rows: pl.DataFrame, seconds: float) -> Answered:
    """Our answer, which is of a price and not of a market."""
    table = rows.select("event_id", "sportsbook", "outcome", prob=pl.col("ours").fill_nan(None))
    asked, known = table["event_id"].n_unique(), table.drop_nulls("prob")
    return Answered(label, known, asked, known["event_id"].n_unique(), seconds)


def _joined(parts: list[Answered]) -> Answered:
    """Join the answers about the prices of several books."""
    tables = pl.concat([part.table for part in parts]) if parts else pl.DataFrame(schema=_OWN)
    counts = (sum(column) for column in zip(*(part[2:] for part in parts), strict=True))
    return Answered(BESIDE, tables, *counts) if parts else Answered(BESIDE, tables, 0, 0, 0.0)


def _beside(openings: pl.DataFrame, book: str) -> tuple[pl.DataFrame, str]:
    """Return the board of a book and Pinnacle alone, of games that both quote, and the book."""
    sharp, own = openings.filter(sportsbook=PINNACLE), openings.filter(sportsbook=book)
    both = pl.col("event_id").is_in(set(sharp["event_id"]) & set(own["event_id"]))
    return openings.filter(pl.col("sportsbook").is_in((book, PINNACLE)) & both), book


def _observed(openings: pl.DataFrame, table: catalog.FairTable) -> tuple[Observed, float]:
    """Play opening prices through the live engine; also the processor time that this took."""
    began = time.process_time()
    history = quotes(openings, 1_000_000)
    engine = engine_of(history, fair=table)
    engine.view(kinds=("ev",), min_ev=_NOTHING_EV, keep=True)  # guards run for views only
    prices = PriceObservations(engine, MOST_HOURS, MOST_ODDS, unjudged=True)
    for step in steps(engine, history):
        prices.follow(step.now, step.update)
    return prices.observed(), time.process_time() - began
