"""Arbitrages as CSV.

The header has two legs, but an arbitrage may have more. Each row has two: an arbitrage of three takes two rows that are
equal except for the legs, with the third leg in the first leg's columns of the second row, and the others empty. So
every row has exactly the header's columns, no leg is lost, and the stakes of consecutive rows of one arbitrage sum to
100.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from oddsengine.maths.odds import round_american
from oddsengine_service.http.downloads import csv_file
from oddsengine_service.http.endpoints import Answer

_HEADER = ("event", "sport", "market", "line", "profit%", "implied_total", "book1", "selection1", "odds1", "stake1%",
           "book2", "selection2", "odds2", "stake2%", "is_live", "is_alternate_line", "possibly_stale", "warnings",
           "detected_at")  # fmt: skip
_HEAD = ("event_name", "sport", "market_type", "line", "profit_percent", "implied_total")


def download(rows: Iterable[Mapping[str, Any]], now: datetime | None) -> Answer:
    name = f"arbitrage_{'' if now is None else f'{now:%Y-%m-%d}'}"
    return csv_file(name, [_HEADER, *(line for row in rows for line in _lines(row))])


def _lines(row: Mapping[str, Any]) -> Iterator[list[Any]]:
    head = [row[name] for name in _HEAD]
    tail = [row["is_live"], row["is_alternate_line"], row["possibly_stale"], ";".join(row["warnings"])]
    for at in range(0, len(row["legs"]), 2):
        legs = [value for leg in row["legs"][at : at + 2] for value in _leg(leg)]
        legs += [None] * (8 - len(legs))
        yield [_short(value) for value in (*head, *legs, *tail, row["detected_at"])]


def _leg(leg: Mapping[str, Any]) -> list[Any]:
    price = float(round_american(leg["odds_american"], 0))
    return [leg["sportsbook"], leg["selection"], price, leg["stake_percent"]]


def _short(value: Any) -> Any:
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
