"""The command `benchmark fair`: what the EV of fair prices is worth at the close, on seasons of football."""

import argparse
import json
import sys
from contextlib import redirect_stdout

from oddsengine.backtesting.fair_benchmark import Benchmark, benchmark
from oddsengine.commands.audit import fair_file
from oddsengine.commands.output import echo
from oddsengine.progress import Progress
from oddsengine.tables.files import check_target, write_table


def benchmark_command(arguments: argparse.Namespace) -> None:
    if arguments.output is not None:
        check_target(arguments.output)
    try:
        result = _run(arguments)
    except RuntimeError as error:
        failure = sys.modules.get("oddsengine.sources.failure")  # not there without the extra `feeds`
        if not isinstance(error, getattr(failure, "FetchError", ())):
            raise
        raise ValueError(str(error)) from None
    if arguments.json:
        facts = {
            "seasons": list(result.seasons), "games": result.games, "fair": result.fair, "fitted": result.fitted,
            "files": dict(result.files), "checksum": result.checksum, "remarks": list(result.remarks),
        }  # fmt: skip
        document = {**facts, "methods": result.table.to_dicts(), "failures": result.failures.to_dicts()}
        echo(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        echo(f"{result}\n")
    if arguments.output is not None:
        write_table(result.table, arguments.output)


def _run(arguments: argparse.Namespace) -> Benchmark:
    # What a method prints does not go between the figures.
    with Progress("markets") as progress, redirect_stdout(sys.stderr):
        return benchmark(
            arguments.data, seasons=arguments.seasons, methods=arguments.method, fair=fair_file(arguments.fair),
            cache=arguments.cache, refresh=arguments.refresh, url=arguments.url, max_ev=arguments.max_ev,
            progress=progress,
        )  # fmt: skip
