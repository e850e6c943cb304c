"""The command `catalog`: checks catalog files of your own, and lists thresholds, or all that the files change."""

import argparse
import json
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

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
    if arguments.against and not arguments.diff:
        raise ValueError("--against needs --diff")
    if arguments.diff:
        _differences(arguments)
        return
    if arguments.files:
        _say_replaced(known.load(*arguments.files))
    usual, now, about = known.shipped(), known.thresholds(), meanings()
    rows = [
        {"threshold": name, "value": value, "shipped": was, "changed": value != was, "meaning": about.get(name, "")}
        for name, value, was in zip(now._fields, now, usual, strict=True)
        if value != was or not arguments.changed
    ]
    if _written(rows, ("threshold", "value", "shipped", "changed", "meaning"), arguments.format):
        return
    cells = [[[str(row["threshold"]), f"{row['value']:g}", f"{row['shipped']:g}", str(row["meaning"])]] for row in rows]
    titles = [
        Column("threshold"),
        Column("value", right=True),
        Column("shipped", right=True),
        Column("meaning", least=20),
    ]
    echo("\n".join([*table(titles, cells, terminal(), bold=bold()), ""]))


def _differences(arguments: argparse.Namespace) -> None:
    """Print what files change in the catalog of the package, or in that with other files."""
    if not arguments.files:
        raise ValueError("--diff needs a catalog file or a folder of them, such as oddsengine catalog own.toml --diff")
    before: known.OwnFiles | None = None
    if arguments.against:
        before = known.load(*arguments.against)
        known.forget()  # what was looked up to check them
    after = known.load(*arguments.files)
    _say_replaced(after)
    found = known.differences({} if before is None else before.changes, after.changes)
    rows = [
        {
            "entry": each.entry, "key": each.key, "before": each.before, "after": each.after,
            "files": [str(path) for path in after.said.get((each.section, each.id), ())],
        }
        for each in found
    ]  # fmt: skip
    texts = [{**row, **{name: _text(row[name]) for name in ("before", "after")}} for row in rows]
    if arguments.format == "csv":
        rows = [{**row, "files": ";".join(row["files"])} for row in texts]
    if _written(rows, ("entry", "key", "before", "after", "files"), arguments.format):
        return
    titles = [Column("Entry", shared=True), Column("Key"), Column("Before", least=12), Column("After", least=12),
              Column("Files", least=8, drop=1)]  # fmt: skip
    if before is None:
        titles[2] = Column("Built in", least=12)
    groups: dict[str, list[list[str]]] = {}
    for row in texts:
        cells = [row["entry"], row["key"], row["before"], row["after"], ", ".join(row["files"])]
        groups.setdefault(row["entry"], []).append(cells)
    lines = table(titles, [*groups.values()], terminal(), bold=bold()) if rows else ["no differences"]
    echo("\n".join([*lines, ""]))


def _text(value: Any) -> str:
    """A value as in TOML; nothing if there is none."""
    if value is None:
        return ""
    return str(value) if isinstance(value, date) else json.dumps(value, ensure_ascii=False, default=str)


def _say_replaced(own: known.OwnFiles) -> None:
    for one in own.replaced:
        print(
            f"{one.later}: {one.key} is {_text(one.value)}, in place of {_text(one.before)} in {one.earlier}",
            file=sys.stderr,
        )


def _written(rows: list[dict[str, Any]], columns: tuple[str, ...], form: str) -> bool:
    """Print rows as JSON or CSV; False for another format."""
    if form == "json":
        echo(json.dumps(rows, indent=2, ensure_ascii=False, default=str) + "\n")
    elif form == "csv":
        echo(csv_text(rows, columns))
    return form in ("json", "csv")
