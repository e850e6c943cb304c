"""The command `fills`: how much of what a history shows could be had."""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from oddsengine.backtesting.fill_report import checked_by
from oddsengine.backtesting.history_fills import fills
from oddsengine.bounds import excerpt
from oddsengine.commands.audit import fair_file
from oddsengine.commands.output import echo
from oddsengine.commands.report import csv_text, records, some_kinds
from oddsengine.feeds.price_files import read_odds
from oddsengine.tables.files import check_target, write_table

_TABLES = (".csv", ".parquet", ".ndjson", ".jsonl")


def fills_command(arguments: argparse.Namespace) -> None:
    _check_targets(arguments)
    by = checked_by([*dict.fromkeys(("kind", "stake", *arguments.by))])
    history = arguments.history
    if arguments.columns:
        history = [read_odds(path, columns=arguments.columns) for path in history]
    rates = None if arguments.rates is None else {"USD": 1.0, **arguments.rates}
    result = fills(
        history, stakes=arguments.stakes, delays=_delays(arguments.delay), legs=arguments.legs,
        all_or_nothing=arguments.all_or_nothing, rest_s=arguments.rest, rates=rates, fair=fair_file(arguments.fair),
        orders=arguments.orders is not None, processes=arguments.processes, progress=True,
        kinds=[kind.name for kind in some_kinds(arguments.kind)], books=arguments.books, sharp=arguments.sharp,
        method=arguments.method, commission=arguments.commission, include=arguments.include,
        min_ev=arguments.min_ev, min_profit=arguments.min_profit, max_hold=arguments.max_hold,
        min_size=arguments.min_size, min_middle_ev=arguments.min_middle_ev,
    )  # fmt: skip
    if arguments.format == "table" and len(by) == 2:
        echo(f"{result}\n")
    else:
        groups = result.table(by)
        if arguments.format == "json":
            document = {"by": by, "groups": records(groups)}
            echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            echo(csv_text(records(groups), groups.columns))
    if result.attempts.is_empty():
        print("oddsengine scan FILE --rejected lists the prices that guards reject", file=sys.stderr)
    for table, path in ((result.attempts, arguments.attempts), (result.orders, arguments.orders)):
        if table is not None and path is not None:
            write_table(table, path)


def _check_targets(arguments: argparse.Namespace) -> None:
    """Raise before the run, which takes long, if a table cannot be written or would replace what is read."""
    read = [*arguments.history]
    for option in ("attempts", "orders"):
        path = getattr(arguments, option)
        if path is not None:
            if not path.endswith(_TABLES[1:]):
                raise ValueError(f"--{option} takes a .parquet, .ndjson or .jsonl file, got {excerpt(path)}")
            check_target(path, read)
            read.append(path)


def _delays(given: Iterable[str]) -> Any:
    """Delays by book of texts such as ``kalshi=0.2-1``; one without a book is that of all books."""
    delays: dict[str, Any] = {}
    for text in given:
        book, equals, value = text.rpartition("=")
        ends = value.split("-")
        try:
            seconds = tuple(map(float, ends))
        except ValueError:
            seconds = ()
        if len(seconds) not in (1, 2) or (equals and not book):
            raise ValueError(f"--delay takes seconds, such as kalshi=0.5 or kalshi=0.2-1, got {excerpt(text)}")
        if book in delays:
            raise ValueError(f"--delay is given twice{f' for {excerpt(book)}' if book else ''}")
        delays[book] = seconds[0] if len(seconds) == 1 else seconds
    if "" not in delays:
        return delays or None
    if len(delays) > 1:
        raise ValueError("--delay takes either the seconds of all books or those of some, got both")
    return delays[""]
