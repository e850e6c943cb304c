"""What every guard must do, as checks of a `GuardCase`; each raises `AssertionError`.

A node gives a guard the accepted prices of some sections of its board: of an event, in play or not, a market type and a
period. It chooses neither which, nor when. So a verdict may depend on the prices of the same section, and on nothing
else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from oddsengine.bounds import excerpt
from oddsengine.columns import Bools, Longs
from oddsengine.detection.question import prepare
from oddsengine.guards.plugin_guards import (
    GUARD_COLUMNS,
    MARKET,
    Guard,
    GuardError,
    checked,
    columns_of,
    sections,
    verdict,
)
from oddsengine.plugins import GUARDS, Plugin, PluginError, find, load
from oddsengine.simulate import World


class GuardCase(NamedTuple):
    """A guard, and what is known of it.

    Parameters
    ----------
    guard
        A `Guard`, or the name that it is registered under.
    twin
        The same in plain Python: a function of the rows of the prices, as mappings, that returns a list of booleans.
    prices
        More prices, as odds tables: those that it rejects, for example.
    """

    guard: Guard | str
    twin: Callable[[Sequence[Mapping[str, Any]]], Sequence[bool]] | None = None
    prices: tuple[pl.DataFrame, ...] = ()

    @property
    def loaded(self) -> Guard:
        """The guard; an `AssertionError` says why it cannot be used."""
        try:
            if isinstance(self.guard, str):
                plugin = find(GUARDS, self.guard)
                assert plugin is not None, f"no installed package registers the guard {excerpt(self.guard)}"
                return checked(plugin, load(plugin))
            return checked(Plugin(GUARDS, "guard", "it", "the case", ""), self.guard)
        except PluginError as error:
            raise AssertionError(str(error)) from None

    @property
    def boards(self) -> Iterator[pl.DataFrame]:
        """Prices as the guard gets them: of simulated boards of several sports, then its own."""
        wanted = self.loaded.columns
        for table in (*_simulated(), *self.prices):
            yield _accepted(table)[0].select(wanted)


@cache
def _simulated() -> tuple[pl.DataFrame, ...]:
    """Odds tables: of ten games, some in play; of one with halves, before and in play; of two books; with few texts."""
    batch = next(iter(World(7, events=10, live=0.3).run(1)))
    table = pl.DataFrame(batch.quotes, infer_schema_length=None).with_columns(last_seen_at=pl.lit(batch.now))
    one = table.filter(event_id=table["event_id"][0])
    half = one.with_columns(market_segment=pl.lit("1st_half"), odds_decimal=pl.col("odds_decimal") * 1.02)
    begun = one.with_columns(is_live=pl.lit(value=True), odds_decimal=pl.col("odds_decimal") * 1.04)
    books = table["sportsbook"].unique().sort()[:2]
    bare = table.with_columns(pl.lit(None, pl.String).alias(name) for name in ("league", "selection_type"))
    return (
        table,
        pl.concat([one, half, begun], how="diagonal_relaxed"),
        table.filter(pl.col("sportsbook").is_in(books.implode())),
        bare.with_columns(event_start_time=pl.lit(None, pl.Datetime("us", "UTC"))),
    )


def _accepted(table: pl.DataFrame) -> tuple[pl.DataFrame, Longs]:
    """What our own guards accept of an odds table, with all columns that guards may read; where its sections are."""
    prepared = prepare(table)
    groups = prepared.identity.groups
    at = np.flatnonzero(prepared.guarded.reason == 0)
    prices = columns_of(groups, at, lambda some, names: prepared.table.select(names)[groups.row[some]], GUARD_COLUMNS)
    return prices, sections(groups, at)


def _ask(guard: Guard, prices: pl.DataFrame) -> Bools:
    try:
        return verdict(guard, prices)
    except GuardError as error:
        raise AssertionError(f"{prices.height} prices: {error}") from error


def verdicts_are_booleans(case: GuardCase) -> None:
    """One boolean for each price; of usual prices, less than half are rejected."""
    guard = case.loaded
    for number, prices in enumerate(case.boards):
        rejected = _ask(guard, prices)
        if number < len(_simulated()) and rejected.sum() > 0.5 * prices.height:
            raise AssertionError(f"it rejects {rejected.sum()} of {prices.height} prices of a usual board")


def order_does_not_matter(case: GuardCase) -> None:
    """The order of the prices, and the numbers of their markets, change no verdict."""
    guard, rng = case.loaded, np.random.default_rng(7)
    for prices in case.boards:
        order = rng.permutation(prices.height)
        turned = prices[order]
        if MARKET in turned.columns:
            turned = turned.with_columns(pl.col(MARKET).max() - pl.col(MARKET) + 5)
        _same(prices, _ask(guard, prices)[order], _ask(guard, turned), "in another order")


def other_sections_do_not_matter(case: GuardCase) -> None:
    """A verdict is the same without other events, market types and periods, and prices in play or not; of one, too."""
    guard = case.loaded
    for table in (*_simulated()[:2], *case.prices):
        everything, ends = _accepted(table)
        prices = everything.select(guard.columns)
        whole = _ask(guard, prices)
        for a, b in [*pairwise(ends.tolist())][:60]:
            _same(prices[a:b], whole[a:b], _ask(guard, prices[a:b]), "without the other sections")
    for at in range(min(5, prices.height)):
        _ask(guard, prices[at : at + 1])


def it_is_pure(case: GuardCase) -> None:
    """It judges the same prices alike, whatever it was asked before, and does not change them."""
    guard = case.loaded
    boards = list(case.boards)
    copies = [prices.clone() for prices in boards]
    first = [_ask(guard, prices) for prices in boards]
    for prices in boards:
        if "odds_decimal" in prices.columns:
            _ask(guard, prices.with_columns(pl.col("odds_decimal") * 1.5))
    again = [_ask(guard, prices) for prices in reversed(boards)][::-1]
    for prices, copied, one, other in zip(boards, copies, first, again, strict=True):
        _same(prices, one, other, "a second time")
        try:
            assert_frame_equal(prices, copied)
        except AssertionError:
            raise AssertionError("it must not change the prices that it gets") from None


def it_agrees_with_its_twin(case: GuardCase) -> None:
    """It says what its twin in plain Python says; a case without a twin passes."""
    if case.twin is None:
        return
    rejected = 0
    for prices in case.boards:
        slow = np.array([*case.twin(prices.to_dicts())], bool)
        _same(prices, slow, _ask(case.loaded, prices), "as its twin sees them")
        rejected += int(slow.sum())
    assert rejected, "the prices of the case must have some that it rejects: give `prices`"


def _same(prices: pl.DataFrame, one: Bools, other: Bools, what: str) -> None:
    if one.shape != other.shape:
        raise AssertionError(f"it must have a verdict for each of {one.size} prices {what}, got {other.size}")
    if wrong := np.flatnonzero(one != other).tolist():
        row = {name: value for name, value in prices.row(wrong[0], named=True).items() if name != MARKET}
        raise AssertionError(
            f"{len(wrong)} of {one.size} prices have another verdict {what}, such as {excerpt(row)}: "
            f"{one[wrong[0]]} and {other[wrong[0]]}"
        )


GUARD_CHECKS: tuple[Callable[[GuardCase], None], ...] = (
    verdicts_are_booleans, order_does_not_matter, other_sections_do_not_matter, it_is_pure, it_agrees_with_its_twin,
)  # fmt: skip
"""All of them, for `pytest.mark.parametrize`."""
