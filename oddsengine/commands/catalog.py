"""The command `catalog`: lists thresholds, their meanings, and the changes of your own catalog file."""

import argparse
import json
import re
from pathlib import Path

import oddsengine.catalog as known
from oddsengine.commands.output import bold, echo, terminal
from oddsengine.commands.report import csv_text
from oddsengine.commands.text_tables import Column, table

_ENTRY = re.compile(r"(?P<key>\w+) = [^#]+#\s*(?P<meaning>.*)")


def meanings() -> dict[str, str]:
    """Return unit and meaning of every threshold, from guards.toml."""
    lines, section = {}, ""
    for line in Path(known.__file__).with_name("guards.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line[1 : line.index("]")] + "_"
        elif entry := _ENTRY.fullmatch(line):
            lines[section + entry["key"]] = entry["meaning"]
    return lines


def catalog_command(arguments: argparse.Namespace) -> None:
    if arguments.file is not None:
        known.load(arguments.file)
    usual, now, about = known.shipped(), known.thresholds(), meanings()
    rows = [
        {"threshold": name, "value": value, "shipped": was, "changed": value != was, "meaning": about.get(name, "")}
        for name, value, was in zip(now._fields, now, usual, strict=True)
        if value != was or not arguments.changed
    ]
    if arguments.format == "json":
        echo(json.dumps(rows, indent=2) + "\n")
    elif arguments.format == "csv":
        echo(csv_text(rows, ("threshold", "value", "shipped", "changed", "meaning")))
    else:
        cells = [
            [[str(row["threshold"]), f"{row['value']:g}", f"{row['shipped']:g}", str(row["meaning"])]] for row in rows
        ]
        titles = [
            Column("threshold"),
            Column("value", right=True),
            Column("shipped", right=True),
            Column("meaning", least=20),
        ]
        echo("\n".join([*table(titles, cells, terminal(), bold=bold()), ""]))
