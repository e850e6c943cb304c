"""Sifting: which rows of a table of opportunities a request lets through, and in which order.

Conditions are masks over columns. What a word means is asked once for each distinct value of an update, and kept.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from oddsengine.columns import NO_TIME, Floats, Longs
from oddsengine.engine import micros
from oddsengine.query import values
from oddsengine_service import filters
from oddsengine_service.views import Bools, Table

EPSILON = 1e-7  # percent, by which thresholds give way


class Sort(NamedTuple):
    """What a table may be sorted by: a column of numbers, and whether the plain word means falling."""

    column: str
    falling: bool = False


class Shape(NamedTuple):
    """What differs between the kinds."""

    event: str
    market: str
    names: tuple[str, ...]  # texts in which a part of a name is looked for, beside the player
    age: str
    prices: Callable[[Table], tuple[Floats, Floats]]  # lowest and highest American price of a row
    alternate: str | None = "is_alternate_line"
    distinct_by: tuple[str, ...] = ("line", "team_side")  # what tells markets of one type apart


def keep(table: Table, query: Mapping[str, Any], shape: Shape, now: Any) -> Bools | None:
    """The rows that the common filters let through; None for all."""
    parts: list[Bools] = []
    if query.get("sport") is not None:
        parts.append(_where(table, ("sport",), values.in_sports, query["sport"]))
    if query.get("league") is not None:
        parts.append(_where(table, ("sport", "league"), values.in_leagues, query["league"]))
    if query.get("market") is not None:
        parts.append(_where(table, ("sport", shape.market, *shape.distinct_by), values.in_markets, query["market"]))
    if query.get("event") is not None:
        coded = table.coded(shape.event)
        parts.append(coded.where([value in query["event"] for value in coded.values]))
    if query.get("team") is not None:
        parts.append(_where(table, ("sport", "league", "home_team", "away_team"), values.with_teams, query["team"]))
    if query.get("q") is not None:
        names = [_where(table, (name,), values.containing, query["q"]) for name in (*shape.names, "player_name")]
        parts.append(np.logical_or.reduce(names))
    if query.get("player_name") is not None:
        parts.append(_where(table, ("player_name",), values.containing, query["player_name"]))
    if query.get("stat_category") is not None:
        parts.append(_where(table, ("stat_category",), values.named, query["stat_category"]))
    if query.get("selection") is not None:
        parts.append(_where(table, ("selection", "selection_type"), values.chosen, query["selection"]))
    for name, column in (("live", "is_live"), ("is_player_prop", "is_player_prop")):
        if query.get(name) is not None:
            parts.append(table.flags(column) == query[name])
    if query.get("is_main_line") is not None and shape.alternate is not None:
        parts.append(table.flags(shape.alternate) != query["is_main_line"])
    if query.get("max_odds_age") is not None:  # an unknown age cannot be shown to be young enough
        parts.append(table.numbers(shape.age) <= query["max_odds_age"])
    for name in ("date", "date_range"):
        if query.get(name) is not None:
            begin, end = filters.span(query[name], now)
            start = table.times("start_time")
            parts.append((start >= begin) & (start < end) & (start != NO_TIME))
    if query.get("starts_within") is not None:
        start = table.times("start_time")
        parts.append((start <= micros(now) + round(query["starts_within"] * 3_600_000_000)) & (start != NO_TIME))
    if query.get("min_odds") is not None:
        parts.append(_shown(shape.prices(table)[0]) >= _shown(query["min_odds"]))
    if query.get("max_odds") is not None:
        parts.append(_shown(shape.prices(table)[1]) <= _shown(query["max_odds"]))
    return every(parts)


def _shown(price: Any) -> Any:
    """American prices as they are shown; -100 is +100."""
    price = np.round(price, 2)
    return np.where(price == -100.0, 100.0, price)


def _where(table: Table, names: Sequence[str], meant: Callable[[Any, Any], list[bool]], words: Any) -> Bools:
    coded = table.coded(*names)
    return coded.where(table.kept((meant, names, words), lambda: meant(words, coded.values)))


def every(parts: Iterable[Bools | None]) -> Bools | None:
    """What all conditions let through; None is no condition."""
    found: Bools | None = None
    for part in parts:
        if part is not None:
            found = part if found is None else found & part
    return found


def within(table: Table, column: str, low: float | None, high: float | None) -> Bools | None:
    """The rows whose number lies between two limits; one that is not known lies nowhere."""
    if low is None and high is None:
        return None
    value = table.numbers(column)
    return every(
        [
            None if low is None else value >= low - EPSILON,
            None if high is None else value <= high + EPSILON,
        ]
    )


def arranged(table: Table, kept: Bools | None, sort: str, sorts: Mapping[str, Sort]) -> Longs:
    """Places of the rows that are kept, in the order asked for."""
    name = sort.removeprefix("-")
    column, falling = sorts[name]
    falling ^= sort.startswith("-")
    order = table.order(column, lambda: _key(table, column), falling=falling)
    return order if kept is None else order[kept[order]]


def _key(table: Table, column: str) -> Floats:
    """A column as numbers that sort alike; texts by their alphabet, unknown times as nan."""
    kind = str(table.column(column).dtype)
    if kind.startswith("Datetime"):
        times = table.times(column)
        return np.where(times == NO_TIME, np.nan, times.astype(np.float64))
    if kind == "String":
        coded = table.coded(column)
        rank = {value: at for at, value in enumerate(sorted(coded.values, key=lambda value: value or ""))}
        return np.array([rank[value] for value in coded.values], np.float64)[coded.codes]
    return table.numbers(column)
