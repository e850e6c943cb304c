"""CSV files for spreadsheets."""

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from oddsengine_service.endpoints import Answer

_FORMULA = re.compile(r"[\t\r\n]|[\s\x00-\x1f\ufeff]*([=@＝＠＋－]|[+-](?!(\d+\.?\d*|\.\d+)\Z))")


def csv_file(name: str, rows: Iterable[Iterable[Any]]) -> Answer:
    """A download; a text that a spreadsheet would take for a formula is prefixed with '."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(map(_cell, row) for row in rows)
    headers = (("content-disposition", f'attachment; filename="{name}.csv"'),)
    return Answer(out.getvalue().encode(), type="text/csv; charset=utf-8", headers=headers)


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
