"""CSV files for spreadsheets."""

import csv
import io
from collections.abc import Iterable
from typing import Any

from oddsengine.tables.spreadsheets import safe_text
from oddsengine_service.http.endpoints import Answer


def csv_file(name: str, rows: Iterable[Iterable[Any]]) -> Answer:
    """A download; a text that a spreadsheet would take for a formula is prefixed with '."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(map(_cell, row) for row in rows)
    headers = (("content-disposition", f'attachment; filename="{name}.csv"'),)
    return Answer(out.getvalue().encode(), type="text/csv; charset=utf-8", headers=headers)


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return safe_text(value) if isinstance(value, str) else value
