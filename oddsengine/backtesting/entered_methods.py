"""Methods that enter the benchmark: where they are found, and what they are asked (`oddsengine.fair_functions`)."""

import importlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.columns import Floats
from oddsengine.fair_functions import Calls, MarketPrices, Method, registered_fair

_OF_A_FILE = "a file mine.py is mine:function, from its folder"
OUTCOMES = ("home", "draw", "away")


class Answers(NamedTuple):
    """What a method has answered."""

    table: pl.DataFrame  # event_id, outcome, prob, error: of the probability, null without one
    asked: int
    failures: Counter[str]  # by kind
    examples: dict[str, str]  # the first of each kind
    seconds: float  # of processor time


def load_method(name: str) -> Method:
    """Import ``module:function``, also from the present folder, or the fair price that a package registers by name.

    Raises `ValueError` if there is no such function.
    """
    module, colon, function = name.partition(":")
    if not colon and (fair := registered_fair(name)) is not None:
        return fair.method
    if not (module and colon and function):
        raise ValueError(
            f"a method must be module:function, or a fair price that a package registers, got {excerpt(name)}"
        )
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
    calls = Calls(method, limited=limited)
    events: list[str] = []
    answers: list[tuple[Floats, Floats]] = []
    for event, prices in of:
        answer = calls.ask(prices)
        if answer is not None:
            events.append(event)
            answers.append(answer)
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
    return Answers(table, calls.asked, calls.failures, calls.examples, calls.seconds)
