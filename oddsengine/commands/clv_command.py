"""The command `clv`: how +EV prices compared with the close.

The service, which stores grades, is imported only when the command runs.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import polars as pl

from oddsengine.backtesting.formats import History
from oddsengine.backtesting.replay import engine_of, source, span, steps
from oddsengine.commands.output import bold, echo, service_needed, terminal, wrapped
from oddsengine.commands.report import csv_text, records
from oddsengine.commands.tape import storage_options
from oddsengine.commands.text_tables import Column, table
from oddsengine.history.closing import ClosingRecorder
from oddsengine.history.clv import STATES, report
from oddsengine.progress import ticking
from oddsengine.tape import Tape

_WAIT = ("graded", "no close", "waiting", "in play")
_NOTE = (
    "EV and CLV are means over the graded bets in percent of the stake, +- standard errors by event. Beat: share that "
    "beat the close. Best: CLV at the best price. Others: CLV at the close of all other books. Return: by results. No "
    "close: no reference quoted the outcome at the start."
)


def clv_command(arguments: argparse.Namespace) -> None:
    sources = [name for name in ("data", "tape", "archive") if getattr(arguments, name) is not None]
    if len(sources) > 1:
        raise ValueError(f"give one of --data, --tape and --archive, got --{' and --'.join(sources)}")
    if arguments.tape is not None:
        bets = _replayed(Tape(arguments.tape))
    elif arguments.archive is not None:
        bets = _replayed(source(arguments.archive, storage_options=storage_options(arguments) or None))
    else:
        bets = _graded(arguments)
    bets = bets.filter(pl.col("ev") >= arguments.min_ev / 100.0 - 1e-9)
    groups, total = report(bets, arguments.by), report(bets)
    if arguments.format == "json":
        document = {"by": arguments.by, "groups": records(groups), "total": records(total)[0]}
        echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    elif arguments.format == "csv":
        echo(csv_text(records(groups), groups.columns))
    else:
        echo(_text(groups, total, arguments.by))


def _service() -> Any:
    with service_needed():
        from oddsengine_service.history import closing_store  # noqa: PLC0415  see the module's docstring
    return closing_store


def _graded(arguments: argparse.Namespace) -> pl.DataFrame:
    closing = _service()
    folder = arguments.data
    if folder is None:
        from oddsengine_service.settings import load  # noqa: PLC0415

        folder = load(arguments.config, os.environ).data.folder
    file = Path(folder) / closing.FILE
    if not file.is_file():
        raise ValueError(f"{file} does not exist: start a node to create it, or use --tape")
    closings = closing.opened(folder)
    try:
        bets: pl.DataFrame = closings.bets()
    finally:
        closings.close()
    return bets


def _replayed(history: History | Tape) -> pl.DataFrame:
    closing = _service()
    engine = engine_of(history)
    closings = closing.opened(None)
    recorder = ClosingRecorder(engine, closings)
    with ticking(span(history), progress=True) as tick:
        for step in steps(engine, history):
            recorder.follow(step.update)
            tick(step.now, step.prices)
    bets: pl.DataFrame = closings.bets()
    closings.close()
    return bets


def _text(groups: pl.DataFrame, total: pl.DataFrame, by: str) -> str:
    columns = (
        Column(by.capitalize(), least=8), Column("Bets", right=True),
        *(Column(name.capitalize(), right=True, drop=4 - at) for at, name in enumerate(_WAIT)),
        Column("EV", right=True), Column("CLV", right=True), Column("Beat", right=True),
        Column("Best", right=True, drop=5), Column("Others", right=True), Column("Return", right=True, drop=6),
    )  # fmt: skip
    if not groups.height:
        return "no bets\n"
    rows = [[_cells(row)] for row in (*groups.iter_rows(named=True), *total.iter_rows(named=True))]
    return "\n".join([*table(columns, rows, terminal(), bold=bold()), "", wrapped([_NOTE])]) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["group"] or "(none)", f"{row['count']:,}", *(f"{row[name]:,}" for name in STATES),
        _with_error(row["avg_ev"], row["avg_ev_error"]), _with_error(row["avg_clv"], row["avg_clv_error"]),
        _with_error(row["beat_close"], row["beat_close_error"], 100.0, 0),
        _with_error(row["avg_best_clv"], row["avg_best_clv_error"]),
        _with_error(row["avg_others_clv"], row["avg_others_clv_error"]),
        _with_error(row["avg_return"], row["avg_return_error"]),
    ]  # fmt: skip


def _with_error(value: float | None, error: float | None, scale: float = 1.0, digits: int = 2) -> str:
    if value is None:
        return ""
    end = "" if error is None else f" +-{error * scale:.{digits}f}"
    return f"{value * scale + 0.0:.{digits}f}{end}"
