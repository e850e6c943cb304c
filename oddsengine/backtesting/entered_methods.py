"""Methods that enter the benchmark: what they get, and how their answers are checked.

A method is a function of one `MarketPrices`. It returns the probabilities of the outcomes, or these and their standard
errors, or None where it has no answer. Whatever else it does is counted by name, and the run goes on.
"""

import importlib
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.columns import Floats

LIMIT_S = 1.0  # of one call
MOST_SLOW = 20  # calls over the limit, after which a method is not called any more
_ROUNDING = 1e-6  # tolerance of probabilities that sum to 1
_LONGEST = 120  # characters of an example
_OF_A_FILE = "a file mine.py is mine:function, from its folder"
OUTCOMES = ("home", "draw", "away")

Method = Callable[["MarketPrices"], Any]


class MarketPrices(NamedTuple):
    """The prices of one market at one moment, before the start: what a method of `benchmark` gets.

    Teams are not among them, since their results are known today.

    Parameters
    ----------
    market, outcomes
        ``moneyline_3way``, and its outcomes: ``home``, ``draw`` and ``away``.
    league
        The league's id.
    at, start
        The time of the snapshot, and the start of the game.
    odds
        Decimal odds by book, in the order of `outcomes`; of books that quote all of them.
    seen
        When the prices of each book were seen.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> at, start = datetime(2020, 9, 11, 15, tzinfo=UTC), datetime(2020, 9, 12, 14, tzinfo=UTC)
    >>> odds, seen = {"pinnacle": (2.7, 3.3, 2.8)}, {"pinnacle": at}
    >>> prices = MarketPrices("moneyline_3way", OUTCOMES, "england_premier_league", at, start, odds, seen)
    >>> dict(zip(prices.outcomes, prices.odds["pinnacle"]))
    {'home': 2.7, 'draw': 3.3, 'away': 2.8}
    """

    market: str
    outcomes: tuple[str, ...]
    league: str
    at: datetime
    start: datetime
    odds: Mapping[str, tuple[float, ...]]
    seen: Mapping[str, datetime]


class Answers(NamedTuple):
    """What a method has answered."""

    table: pl.DataFrame  # event_id, outcome, prob, error: of the probability, null without one
    asked: int
    failures: Counter[str]  # by kind
    examples: dict[str, str]  # the first of each kind
    seconds: float  # of processor time


class _Unusable(Exception):  # noqa: N818  it is expected, and not a bug
    """An answer that is not used: its kind and an example."""

    def __init__(self, kind: str, example: str) -> None:
        super().__init__(f"{kind}: {example}")
        self.kind, self.example = kind, example


class _TooLong(BaseException):
    """A call has reached the limit; no `except Exception` of a method catches it."""


def load_method(name: str) -> Method:
    """Import ``module:function``, also from the present folder.

    Raises `ValueError` if there is no such function.
    """
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ValueError(f"a method must be module:function, got {excerpt(name)}")
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(f"the method {name}: a module has no path; {_OF_A_FILE}")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        method = getattr(importlib.import_module(module), function, None)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        if isinstance(error, ModuleNotFoundError) and error.name and module.startswith(error.name):
            raise ValueError(
                f"the method {name}: there is no module {module} here or installed; {_OF_A_FILE}"
            ) from None
        raise ValueError(f"the method {name}: {type(error).__name__}: {error}") from None
    if not callable(method):
        raise ValueError(f"the method {name}: {module} has no function {function}")
    return method  # type: ignore[no-any-return]


def markets(prices: pl.DataFrame) -> Iterator[tuple[str, MarketPrices]]:
    """Yield the event and the prices of each market of an odds table, in order of time.

    Only books that quote all outcomes are listed.
    """
    books = prices.pivot(
        "selection_type", index=["event_id", "sportsbook", "league", "event_start_time", "last_seen_at"],
        values="odds_decimal", aggregate_function="first", maintain_order=True,
    )  # fmt: skip
    missing = [side for side in OUTCOMES if side not in books.columns]
    whole = books.clear() if missing else books.drop_nulls(OUTCOMES)
    if missing or not whole.height:
        return
    whole = whole.with_columns(odds=pl.concat_list(OUTCOMES))
    by_game = whole.group_by("event_id", maintain_order=True).agg(
        pl.col("league", "event_start_time").first(), pl.col("sportsbook", "odds", "last_seen_at"),
        at=pl.col("last_seen_at").max(),
    )  # fmt: skip
    for event, league, start, names, odds, seen, at in by_game.sort("at", maintain_order=True).iter_rows():
        quoted = MappingProxyType(dict(zip(names, map(tuple, odds), strict=True)))
        times = MappingProxyType(dict(zip(names, seen, strict=True)))
        yield event, MarketPrices("moneyline_3way", OUTCOMES, league, at, start, quoted, times)


def ask(method: Method, of: Iterable[tuple[str, MarketPrices]], *, limited: bool = True) -> Answers:
    """Call a method for each market; if it is `limited`, no call may take longer than `LIMIT_S`."""
    events: list[str] = []
    answers: list[tuple[Floats, Floats]] = []
    failures: Counter[str] = Counter()
    examples: dict[str, str] = {}
    asked, slow, seconds = 0, 0, 0.0
    for event, prices in of:
        asked += 1
        began = time.process_time()
        try:
            if slow >= MOST_SLOW:
                raise _Unusable(f"not called after {MOST_SLOW} calls over {LIMIT_S:g} s", "")
            answer = _called(method, prices, LIMIT_S if limited else math.inf)
        except _Unusable as unusable:
            failures[unusable.kind] += 1
            examples.setdefault(unusable.kind, unusable.example)
            slow += unusable.kind == _slow()
        else:
            if answer is not None:
                events.append(event)
                answers.append(answer)
        finally:
            seconds += time.process_time() - began
    shape = (len(answers), len(OUTCOMES))
    prob, error = (np.array([answer[k] for answer in answers], np.float64).reshape(shape) for k in (0, 1))
    table = pl.DataFrame(
        {
            "event_id": pl.Series(np.repeat(np.array(events, object), len(OUTCOMES)), dtype=pl.String),
            "outcome": pl.Series(OUTCOMES * len(events), dtype=pl.String),
            "prob": prob.ravel(),
            "error": pl.Series(error.ravel(), nan_to_null=True),
        }
    )
    return Answers(table, asked, failures, examples, seconds)


def _slow() -> str:
    return f"a call over {LIMIT_S:g} s"


def _called(method: Method, prices: MarketPrices, limit: float) -> tuple[Floats, Floats] | None:
    """Call a method, and return its probabilities and their errors (nan without); None if it has no answer."""
    began = time.monotonic()
    try:
        with _limited(limit):
            answer = method(prices)
    except _TooLong:
        raise _Unusable(_slow(), "it was stopped") from None
    except (Exception, SystemExit) as error:
        kind = "an exception"
        raise _Unusable(kind, f"{type(error).__name__}: {error}"[:_LONGEST].rstrip(": ")) from None
    if (took := time.monotonic() - began) > limit:
        raise _Unusable(_slow(), f"{took:.1f} s")
    return None if answer is None else checked(answer, len(prices.outcomes))


def checked(answer: Any, outcomes: int) -> tuple[Floats, Floats]:
    """Return the probabilities of an answer and their errors, nan without; raises for one that cannot be used."""
    error: Any = math.nan
    if isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) == 1:
        answer, error = answer
    prob = _floats(answer, "probabilities")
    if prob.shape != (outcomes,):
        came = f"{prob.size} probabilities" if prob.ndim == 1 else f"an array of shape {prob.shape}"
        raise _Unusable("a wrong length", f"{came} for {outcomes} outcomes")
    if np.isnan(prob).any():
        raise _Unusable("NaN", f"{prob.tolist()}")
    if not ((prob > 0.0) & (prob < 1.0)).all():
        raise _Unusable("a probability outside 0 and 1", f"{prob.tolist()}")
    if abs(float(prob.sum()) - 1.0) > _ROUNDING:
        raise _Unusable("a sum other than 1", f"{float(prob.sum()):.6f}")
    se = _floats(error, "an error")
    if se.shape not in ((), (outcomes,)):
        raise _Unusable("a wrong length", f"{se.size} errors for {outcomes} outcomes")
    if (se <= 0.0).any():
        raise _Unusable("an error that is not above 0", f"{se.tolist()}")
    return prob, np.broadcast_to(se, (outcomes,))


def _floats(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise _Unusable("no numbers", f"{type(values).__name__} for {what}") from None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` in the body after so long, where signals are there: in the main thread, not on Windows."""
    if (
        math.isinf(seconds)
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
