"""The estimator's table (`catalog/fair.toml`), resolved for the kinds of market, sports and books of a board."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.catalog.fair_constants import FLAGS, OTHER, FairTable
from oddsengine.columns import NO_TIME, SECOND, Floats, Ints, Longs, Words
from oddsengine.identity.traits import MarketKind

BITS = {name: np.uint16(1 << at) for at, name in enumerate(FLAGS)}
"""The bits of a fair price's flags."""
PROP = np.uint16(1 << 15)
"""The bit of a kind of market on a player; not stored with prices."""
_TOTALS = frozenset({"total"})


class KindParameters(NamedTuple):
    """The table's values for the kinds of market in the leagues of a board."""

    sport: Ints  # per event: its sport and league, a column of the next three
    slope: Floats  # (kinds, sports): logits of the first outcome per point, nan where unknown
    reach: Longs  # (kinds, sports): largest move of a line that momentum follows, hundredths
    flags: npt.NDArray[np.uint16]  # (kinds, sports)
    alone: Words  # (kinds, sports): bit i is set if the table's `alone[i]` is for such markets
    sigma: Floats  # (sports, hours): as `sigma` of the table


class Voters(NamedTuple):
    """The table's values for the books of a board."""

    own: Floats  # b_j
    sharp: Floats  # weight as a sharp, else 0
    alone: Words  # bit i is set if the table's `alone[i]` is for the book


@lru_cache(maxsize=1 << 14)
def _line(table_id: int, kind: MarketKind, sport: str, league: str) -> tuple[float, int, int, int]:
    table = _TABLES[table_id]
    known = catalog.league(league, sport) if league else None
    measured = kind.period == catalog.FULL_GAME and not kind.prop
    measured = measured and kind.family in table.measured.get(sport, ())
    flags = 0 if measured else int(BITS["unmeasured"])
    if kind.family in _TOTALS:
        flags |= int(BITS["total"])
    if kind.prop:
        flags |= int(PROP)
    alone = 0
    for at, right in enumerate(table.alone if kind.period == catalog.FULL_GAME else ()):
        if sport in right.props if kind.prop else kind.family in right.families:
            alone |= 1 << at
    of = table.lines.get(known.id if known else "", {})
    if kind.period != catalog.FULL_GAME or kind.family not in ("spread", "total") or kind.family not in of:
        return np.nan, 0, flags, alone
    return -table.constants.lines_logit / of[kind.family], round(of.get("points", 0.0) * 100.0), flags, alone


_TABLES: dict[int, FairTable] = {}


def lines(kinds: Sequence[MarketKind], sports: Iterable[tuple[catalog.Sport, str]], table: FairTable) -> KindParameters:
    """Look up the kinds of a board in the sports and leagues of its events."""
    _TABLES[id(table)] = table
    columns: dict[tuple[str, str], int] = {}
    of_event = [columns.setdefault((sport.id, league), len(columns)) for sport, league in sports]
    size = len(kinds), max(len(columns), 1)
    slope, reach, flags = np.full(size, np.nan), np.zeros(size, np.int64), np.zeros(size, np.uint16)
    alone = np.zeros(size, np.uint64)
    for row, kind in enumerate(kinds):
        for (sport_id, league), column in columns.items():
            at = row, column
            slope[at], reach[at], flags[at], alone[at] = _line(id(table), kind, sport_id, league)
    sigma = np.array([league_sigma(table, *of) for of in columns] or [table.sigma[OTHER]])
    return KindParameters(np.array(of_event, np.int32), slope, reach, flags, alone, sigma)


def league_key(sport: str | None, league: str | None) -> str:
    """The key of a league in `sigma` of the table, by any spelling."""
    known = catalog.league(league, catalog.sport(sport or "").id) if league else None
    return known.id if known else OTHER


def league_sigma(table: FairTable, sport: str | None, league: str | None) -> tuple[float, ...]:
    """The errors of a league by hours left, as in `sigma` of the table."""
    return table.sigma.get(league_key(sport, league), table.sigma[OTHER])


def voters(books: Sequence[str], table: FairTable) -> Voters:
    """Look up the books of a board."""
    known = [catalog.book(book) for book in books]
    c = table.constants
    usual = [c.sharp_exchange if b.exchange else c.sharp_other if b.sharp else 0.0 for b in known]
    return Voters(
        own=np.array([table.own.get(b.id, 1.0) for b in known], np.float64),
        sharp=np.array([table.sharps.get(b.id, w) for b, w in zip(known, usual, strict=True)], np.float64),
        alone=np.array(
            [sum(1 << at for at, right in enumerate(table.alone) if right.book == b.id) for b in known], np.uint64
        ),
    )


class Estimator(NamedTuple):
    """The table, and its values for the kinds, sports and books of a board; the same for every search."""

    table: FairTable
    lines: KindParameters
    voters: Voters
    books: tuple[str, ...]


def estimator(
    kinds: Sequence[MarketKind], sports: Iterable[tuple[catalog.Sport, str]], books: Sequence[str], table: FairTable
) -> Estimator:
    """Resolve a table for the kinds, events and books of a board."""
    return Estimator(table, lines(kinds, sports, table), voters(books, table), tuple(books))


def neighbours(table: FairTable) -> int:
    """Largest distance of a neighbouring line whose votes count, hundredths."""
    return round(table.constants.vote_neighbour_points * 100.0)


def minutes(event: Words, now: int, table: FairTable) -> Longs:
    """The beginning of each event's own minute, microseconds; events are given by hashes of their ids."""
    if now == NO_TIME:
        return np.full(event.size, NO_TIME, np.int64)
    size = round(table.constants.momentum_sample_s * SECOND)
    phase = ((event >> np.uint64(32)) % np.uint64(size // SECOND)).astype(np.int64) * SECOND
    return (now - phase) // size * size + phase


def named(flags: int) -> list[str]:
    """Names of the flags that are set."""
    return [name for name, bit in BITS.items() if flags & int(bit)]
