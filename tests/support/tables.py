"""Tables of responses beside their JSON: every cell of CSV and Arrow is compared with the field that it is of."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl
from support.handler_calls import answer

from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.node import Node

_MAPPINGS = {"deep_links", "odds_ids", "max_bets"}


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A row of JSON with a field for each of an object's; mappings by book are pairs."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if name in _MAPPINGS:
            out[prefix + name] = [{"key": key, "value": each} for key, each in value.items()]
        elif isinstance(value, dict):
            out |= flat(value, f"{prefix}{name}_")
        elif value is not None:
            out[prefix + name] = value
    return out


def assert_tables(
    endpoint: Endpoint, here: Node, query: dict[str, Any], rows: Sequence[dict[str, Any]], **more: Any
) -> pl.DataFrame:
    """Both formats of a request have these rows, with every field; the frame of Arrow is returned."""
    arrow, text = (answer(endpoint, here, {**query, "format": form}, **more) for form in ("arrow", "csv"))
    assert (arrow.type, text.type) == ("application/vnd.apache.arrow.stream", "text/csv; charset=utf-8")
    frame = pl.read_ipc_stream(arrow.body)
    header, *lines = csv.reader(io.StringIO(text.body.decode(), newline=""))
    assert header == frame.columns
    for came, line, row in zip(frame.iter_rows(named=True), lines, map(flat, rows), strict=True):
        assert {name: _json(value) for name, value in came.items() if value is not None} == row
        for name, cell in zip(header, line, strict=True):
            value = row.get(name)
            if value is not None and name.endswith(tuple(_MAPPINGS)):
                assert json.loads(cell) == {pair["key"]: pair["value"] for pair in value}
                continue
            assert _same(cell, value), f"{name}: {cell!r} is not {value!r}"
    return frame


def _json(value: Any) -> Any:
    """A value of a frame as it is in JSON."""
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value


def _same(cell: str, value: Any) -> bool:
    """Whether a cell of CSV says a value; a text that would be a formula has a quote before it."""
    if isinstance(value, bool) or value is None:
        return cell == {True: "true", False: "false", None: ""}[value]
    if isinstance(value, (int, float)):
        return float(cell) == value
    if isinstance(value, list) and not any(isinstance(each, dict) for each in value):
        return cell == ";".join(str(each) for each in value)
    if isinstance(value, (list, dict)):
        return bool(json.loads(cell) == value)
    return bool(cell.removeprefix("'") == value)
