"""The command `grade`: bets placed elsewhere, by the close and the result."""

import argparse
import json
import math

from oddsengine.backtesting.graded import grade
from oddsengine.commands.output import echo
from oddsengine.commands.tape import storage_options
from oddsengine.tables.files import check_target, write_table


def grade_command(arguments: argparse.Namespace) -> None:
    if arguments.output is not None:
        check_target(arguments.output, [arguments.bets, arguments.history])
    graded = grade(
        arguments.bets,
        arguments.history,
        columns=arguments.columns,
        closing_odds=arguments.closing_odds,
        processes=arguments.processes,
        progress=True,
        storage_options=storage_options(arguments) or None,
    )
    summary = graded.summary()
    if arguments.json:
        figures = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in summary._asdict().items()
        }
        echo(json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        echo(f"{summary}\n")
    if arguments.output is not None:
        write_table(graded.bets, arguments.output)
