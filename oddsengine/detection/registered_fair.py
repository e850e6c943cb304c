"""Fair prices of plugins, asked for the markets of a table: each gets the accepted prices of one, and judges all."""

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine.columns import NO_TIME, Bools, Floats
from oddsengine.detection.question import PreparedTable
from oddsengine.fair_functions import Calls, MarketPrices
from oddsengine.identity.groups import Groups
from oddsengine.tables.casts import TIME

_FIRST_PLAYER = 3  # of `Groups.subject`


class RowProbabilities(NamedTuple):
    """Probabilities and their standard errors, by row of the groups; nan where there is none."""

    prob: Floats
    error: Floats


def asked(calls: Calls, prepared: PreparedTable) -> RowProbabilities:
    """Ask a fair price for each market of a table of which a book quotes all outcomes."""
    g = prepared.identity.groups
    prob, error = np.full((2, g.row.size), np.nan)
    for first, last, prices in markets(prepared):
        if (answer := calls.ask(prices)) is not None:
            side = g.side[first:last]
            prob[first:last], error[first:last] = answer[0][side], answer[1][side]
    return RowProbabilities(prob, error)


def markets(prepared: PreparedTable) -> Iterator[tuple[int, int, MarketPrices]]:
    """Yield the rows and the prices of each market; only accepted prices, of books that quote all outcomes."""
    identity, g = prepared.identity, prepared.identity.groups
    usable = prepared.guarded.reason == 0
    moments = pl.Series(g.seen).set(pl.Series(g.seen == NO_TIME), None).cast(TIME).to_list()
    now = None if prepared.guarded.now == NO_TIME else pl.Series([prepared.guarded.now]).cast(TIME)[0]
    names = ["event_id", "home_team", "away_team", "event_start_time"]
    texts = prepared.table.select(name for name in names if name in prepared.table.columns)
    event = g.event[g.ladder[g.market]]
    teams_of = np.full(int(event.max(initial=-1)) + 1, prepared.table.height)  # the first row of each event
    np.minimum.at(teams_of, event, g.row)
    for market, (first, last) in enumerate(_bounds(g)):
        ladder = g.ladder[market]
        kind = identity.kinds[g.kind[ladder]]
        odds, seen = _quoted(g, slice(first, last), usable, len(kind.outcomes), identity.books, moments)
        if not odds:
            continue
        sport, league = identity.sports[g.event[ladder]]
        row = int(teams_of[g.event[ladder]])
        about = texts.row(row, named=True)
        home, away = about.get("home_team") or "", about.get("away_team") or ""
        if identity.swapped[row]:
            home, away = away, home
        line = float(g.threshold[market]) / 100.0 * (-1.0 if kind.spread else 1.0) if kind.has_line else None
        yield first, last, MarketPrices(
            kind.family, kind.outcomes, league, now, about.get("event_start_time"), odds, seen, sport.id, kind.period,
            line, _subject(prepared, int(g.subject[ladder]), kind.stat if kind.prop else ""), about["event_id"], home,
            away, bool(g.live[ladder]),
        )  # fmt: skip


def _bounds(g: Groups) -> list[tuple[int, int]]:
    """The first and the last row of each market."""
    return list(pairwise(g.rows[g.segments].tolist()))


def _quoted(
    g: Groups, rows: slice, usable: Bools, outcomes: int, books: tuple[str, ...], moments: list[datetime | None]
) -> tuple[MappingProxyType[str, tuple[float, ...]], MappingProxyType[str, datetime]]:
    """The best accepted prices of books that quote all outcomes, and when they were seen."""
    best: dict[int, dict[int, float]] = {}
    times: dict[int, list[datetime]] = {}
    for at in range(rows.start, rows.stop):
        if usable[at]:
            book, side = int(g.book[at]), int(g.side[at])
            own = best.setdefault(book, {})
            own[side] = max(own.get(side, 0.0), float(g.odds[at]))
            if (moment := moments[at]) is not None:
                times.setdefault(book, []).append(moment)
    whole = {book: own for book, own in best.items() if len(own) == outcomes}
    odds = {books[book]: tuple(own[side] for side in range(outcomes)) for book, own in whole.items()}
    return MappingProxyType(odds), MappingProxyType({books[book]: max(times[book]) for book in whole if book in times})


def _subject(prepared: PreparedTable, subject: int, stat: str) -> str:
    if subject < _FIRST_PLAYER:
        return ("", "home", "away")[subject]
    return f"{prepared.identity.names[subject - _FIRST_PLAYER]} {stat}".strip()
