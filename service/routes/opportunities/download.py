"""Arbitrages as CSV.

The header has two legs, but an arbitrage may have more. Each row has two: an arbitrage of three takes two rows that are
equal except for the legs, with the third leg in the first leg's columns of the second row, and the others empty. So
every row has exactly the header's columns, no leg is lost, and the stakes of consecutive rows of one arbitrage sum to
100. A text that a spreadsheet would take for a formula is prefixed with '.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from oddsengine_service.endpoints import Answer

_HEADER = ("event", "sport", "market", "line", "profit%", "implied_total", "book1", "selection1", "odds1", "stake1%",
           "book2", "selection2", "odds2", "stake2%", "is_live", "is_alternate_line", "possibly_stale", "warnings",
           "detected_at")  # fmt: skip
_HEAD = ("event_name", "sport", "market_type", "line", "profit_percent", "implied_total")
_LEG = ("sportsbook", "selection", "odds_american", "stake_percent")
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.])")


def download(rows: Iterable[Mapping[str, Any]], now: datetime | None) -> Answer:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_HEADER)
    for row in rows:
        head = [row[name] for name in _HEAD]
        tail = [row["is_live"], row["is_alternate_line"], row["possibly_stale"], ";".join(row["warnings"])]
        for at in range(0, len(row["legs"]), 2):
            legs = [leg[name] for leg in row["legs"][at : at + 2] for name in _LEG]
            legs += [None] * (8 - len(legs))
            writer.writerow([_cell(value) for value in (*head, *legs, *tail, row["detected_at"])])
    name = f'attachment; filename="arbitrage_{"" if now is None else f"{now:%Y-%m-%d}"}.csv"'
    return Answer(out.getvalue().encode(), type="text/csv; charset=utf-8", headers=(("content-disposition", name),))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    name = str(value)
    return f"'{name}" if _FORMULA.match(name) else name
