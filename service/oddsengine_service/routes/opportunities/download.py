"""Arbitrages as a table.

The columns have two legs, but an arbitrage may have more. Each row has two: an arbitrage of three takes two rows that
are equal except for the legs, with the third leg in the first leg's columns of the second row, and the others empty. So
every row has exactly these columns, no leg is lost, and the stakes of consecutive rows of one arbitrage sum to 100.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from oddsengine.maths.odds import round_american
from oddsengine_service.http.tables import Table
from oddsengine_service.wire.numbers import Number, Time


class ArbitrageRow(msgspec.Struct):
    """The published columns; prices are whole American prices."""

    event: str
    sport: str
    market: str
    line: Number
    profit: float = msgspec.field(name="profit%")
    implied_total: float
    book1: str
    selection1: str
    odds1: float
    stake1: float = msgspec.field(name="stake1%")
    book2: str | None
    selection2: str | None
    odds2: Number
    stake2: Number = msgspec.field(name="stake2%")
    is_live: bool
    is_alternate_line: bool
    possibly_stale: bool
    warnings: list[str]
    detected_at: Time


_NAMES = tuple(field.encode_name for field in msgspec.structs.fields(ArbitrageRow))
_HEAD = ("event_name", "sport", "market_type", "line", "profit_percent", "implied_total")
_TAIL = ("is_live", "is_alternate_line", "possibly_stale", "warnings", "detected_at")


def _rows(arbitrages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [line for row in arbitrages for line in _lines(row)]


def _lines(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    head, tail = ([row[name] for name in names] for names in (_HEAD, _TAIL))
    for at in range(0, len(row["legs"]), 2):
        legs = [value for leg in row["legs"][at : at + 2] for value in _leg(leg)]
        legs += [None] * (8 - len(legs))
        yield dict(zip(_NAMES, (*head, *legs, *tail), strict=True))


def _leg(leg: Mapping[str, Any]) -> list[Any]:
    price = float(round_american(leg["odds_american"], 0))
    return [leg["sportsbook"], leg["selection"], price, leg["stake_percent"]]


TABLE = Table("arbitrage", ArbitrageRow, _rows)
