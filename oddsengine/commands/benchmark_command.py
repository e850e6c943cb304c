"""The command `benchmark fair`: what the EV of fair prices is worth at the close, on seasons of football."""

import argparse
import json

from oddsengine.backtesting.fair_benchmark import benchmark
from oddsengine.commands.audit import fair_file
from oddsengine.commands.output import echo
from oddsengine.progress import Progress
from oddsengine.tables.files import write_table


def benchmark_command(arguments: argparse.Namespace) -> None:
    with Progress("done") as progress:
        result = benchmark(
            arguments.data, seasons=arguments.seasons, methods=arguments.method, fair=fair_file(arguments.fair),
            cache=arguments.cache, refresh=arguments.refresh, url=arguments.url,
            progress=progress,
        )  # fmt: skip
    if arguments.output is not None:
        write_table(result.table, arguments.output)
    if arguments.json:
        facts = {
            "seasons": list(result.seasons), "games": result.games, "fair": result.fair, "fitted": result.fitted,
            "files": dict(result.files), "checksum": result.checksum, "remarks": list(result.remarks),
        }  # fmt: skip
        document = {**facts, "methods": result.table.to_dicts(), "failures": result.failures.to_dicts()}
        echo(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        echo(f"{result}\n")
