"""The command `history import`: what others have recorded, as a history."""

import argparse
import json

from oddsengine.commands.output import echo, wrapped
from oddsengine.commands.report import format_time
from oddsengine.history.importing import import_history


def history_command(arguments: argparse.Namespace) -> None:
    found = import_history(
        arguments.source, arguments.files, arguments.output, odds_format=arguments.odds_format,
        timezone=arguments.timezone, progress=True,
    )  # fmt: skip
    if not arguments.json:
        echo(wrapped(str(found).split("\n")) + "\n")
        return
    facts = {name: getattr(found, name) for name in ("output", "source", "files", "prices", "games", "results")}
    facts |= {"books": list(found.books), "since": format_time(found.since), "until": format_time(found.until)}
    facts |= {"left_out": found.left_out.to_dicts(), "remarks": list(found.remarks)}
    echo(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
