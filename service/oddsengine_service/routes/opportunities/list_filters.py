"""Filters and sort orders of opportunity lists.

Conditions are masks over columns. Text conditions are evaluated once per distinct value and update, and cached.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from oddsengine.columns import NO_TIME, Bools, Floats, Longs
from oddsengine.detection.kinds import Kind, tolerance
from oddsengine.query import values
from oddsengine.tables.timestamps import micros
from oddsengine_service import shared_params
from oddsengine_service.board.views import OpportunityTable
from oddsengine_service.wire.encodings import prices
from oddsengine_service.wire.numbers import american

_MEANINGS: tuple[tuple[str, tuple[str, ...], Callable[[Any, Any], list[bool]]], ...] = (
    ("sport", ("sport",), values.in_sports),
    ("league", ("sport", "league"), values.in_leagues),
    ("team", ("sport", "league", "home_team", "away_team"), values.with_teams),
    ("player_name", ("player_name",), values.containing),
    ("stat_category", ("stat_category",), values.named),
    ("selection", ("selection", "selection_type"), values.chosen),
)
"""Parameters, the columns that they apply to, and which values match."""


def matching(table: OpportunityTable, query: Any, kind: Kind, now: Any) -> Bools | None:
    """The rows that match the filters of a request; None for all."""
    parts: list[Bools | None] = [
        _where(table, columns, meant, query.get(name))
        for name, columns, meant in _MEANINGS
        if query.get(name) is not None
    ]
    if query.get("market") is not None:
        columns = ("sport", "market_type", *kind.distinct_by)
        parts.append(_where(table, columns, values.in_markets, query.market))
    if query.get("event") is not None:
        coded = table.coded("event_id")
        parts.append(coded.where([value in query.event for value in coded.values]))
    if query.get("q") is not None:
        names = [_where(table, (name,), values.containing, query.q) for name in (*kind.searched, "player_name")]
        parts.append(np.logical_or.reduce(names))
    for name, column in (("live", "is_live"), ("is_player_prop", "is_player_prop")):
        if query.get(name) is not None:
            parts.append(table.flags(column) == query.get(name))
    if query.get("terms") is not None:
        parts.append(~table.flags("terms_differ"))
    if query.get("is_main_line") is not None and kind.alternate is not None:
        parts.append(table.flags(kind.alternate) != query.is_main_line)
    if query.get("max_odds_age") is not None:  # an unknown age fails the condition
        parts.append(table.numbers(kind.age) <= query.max_odds_age)
    start = table.times("event_start_time")
    for name in ("date", "date_range"):
        if query.get(name) is not None:
            begin, end = shared_params.span(query.get(name), now)
            parts.append((start >= begin) & (start < end) & (start != NO_TIME))
    if query.get("starts_within") is not None:
        parts.append((start <= micros(now) + round(query.starts_within * 3_600_000_000)) & (start != NO_TIME))
    if query.get("min_odds") is not None:
        parts.append(table.computed(prices(kind).lowest) >= american(query.min_odds))
    if query.get("max_odds") is not None:
        parts.append(table.computed(prices(kind).highest) <= american(query.max_odds))
    parts += [_within(table, column, query.get(low), query.get(high)) for column, low, high in kind.bounds]
    return _every(parts)


def _where(table: OpportunityTable, names: Sequence[str], meant: Callable[[Any, Any], list[bool]], words: Any) -> Bools:
    coded = table.coded(*names)
    return coded.where(table.cached((meant, names, words), lambda: meant(words, coded.values)))


def _every(parts: Iterable[Bools | None]) -> Bools | None:
    """Rows that match all conditions; None is no condition."""
    rows: Bools | None = None
    for part in parts:
        if part is not None:
            rows = part if rows is None else rows & part
    return rows


def _within(table: OpportunityTable, column: str, low: float | None, high: float | None) -> Bools | None:
    """Rows with a number between two limits; an unknown number fails any limit."""
    parts: list[Bools] = []
    if low is not None:
        parts.append(table.numbers(column) >= low - tolerance())
    if high is not None:
        parts.append(table.numbers(column) <= high + tolerance())
    return _every(parts)


def ordered(table: OpportunityTable, matched: Bools | None, sort: str, kind: Kind) -> Longs:
    """Indices of the matching rows, in the order of `sort`."""
    column, descending = kind.orders[sort.removeprefix("-")]
    descending ^= sort.startswith("-")
    order = table.order(column, lambda: _key(table, column), falling=descending)
    return order if matched is None else order[matched[order]]


def _key(table: OpportunityTable, column: str) -> Floats:
    """A column as numbers with the same order: texts by rank, unknown times as nan."""
    kind = str(table.column(column).dtype)
    if kind.startswith("Datetime"):
        times = table.times(column)
        return np.where(times == NO_TIME, np.nan, times.astype(np.float64))
    if kind == "String":
        coded = table.coded(column)
        rank = {value: at for at, value in enumerate(sorted(coded.values, key=lambda value: value or ""))}
        return np.array([rank[value] for value in coded.values], np.float64)[coded.codes]
    return table.numbers(column)
