"""The commands on feeds: `feeds check`, `feeds replay`, `feeds unmapped`.

The service is imported only when one of them runs.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddsengine.commands.market_lines import market_lines
from oddsengine.commands.output import echo, service_needed, terminal, wrapped
from oddsengine.commands.text_tables import Column, table

_CHECK = (
    Column("Feed"), Column("Kind", drop=2), Column("Status"), Column("Events", right=True),
    Column("Quotes", right=True), Column("Books", right=True), Column("Unmapped", right=True), Column("What", least=20),
)  # fmt: skip
_ROWS = ["home_team", "away_team", "sportsbook", "market_type", "selection", "line", "odds_decimal", "is_active"]
_ROW_COLUMNS = (
    Column("Home"), Column("Away"), Column("Book"), Column("Market"), Column("Selection", least=10),
    Column("Line", right=True), Column("Odds", right=True), Column("Active", drop=1),
)  # fmt: skip
_MOST_ROWS = 60
_UNMAPPED = (Column("Count", right=True), Column("Feed"), Column("Book"), Column("Market"))


def feeds_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        from oddsengine_service.feeds import check  # noqa: PLC0415  see the module's docstring
        from oddsengine_service.settings import learn, load  # noqa: PLC0415
    if arguments.action == "replay":
        _replay(arguments)
        return
    settings = load(arguments.config, os.environ)
    learn(settings)
    if arguments.action == "unmapped":
        if arguments.check:
            check.store(settings, check.check(settings, os.environ, arguments.seconds)[0])
        _unmapped(check.unmapped_of(settings), arguments)
        return
    if not settings.feeds:
        file = settings.file if Path(settings.file).exists() else f"{settings.file} (which does not exist)"
        raise ValueError(f"no feeds are configured; add a [feeds.NAME] table with a kind to {file}")
    folder = Path(arguments.record) if arguments.record else None
    if folder is not None:
        for path in (_file(folder, name) for name in settings.feeds):
            if path.exists():
                raise ValueError(f"{path} exists already; --record overwrites nothing")
    checked, recorded = check.check(settings, os.environ, arguments.seconds, record=folder is not None)
    check.store(settings, checked)
    _checked(checked, arguments)
    if folder is not None:
        _write(recorded, folder, yes=arguments.yes)
    if any(one.status != "ok" for one in checked):
        raise SystemExit(1)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def _write(recorded: Mapping[str, Any], folder: Path, *, yes: bool) -> None:
    """Say what was removed from recordings, and write them."""
    for name, one in recorded.items():
        removed = ", ".join(f"{what} {times:,} times" for what, times in sorted(one.removed.items())) or "nothing"
        size = sum(map(len, one.lines))
        _tell(f"{_file(folder, name)}: {len(one.lines) - 2:,} entries, {size:,} bytes; removed: {removed}")
        if one.left_out:
            _tell(f"{_file(folder, name)}: {one.left_out:,} further entries did not fit, and are left out")
    if not yes and sys.stdin.isatty():
        print("Write these files? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
            _tell("nothing was written")
            return
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in recorded.items():
        with _file(folder, name).open("xb") as file:
            file.writelines(line + b"\n" for line in one.lines)


def _replay(arguments: argparse.Namespace) -> None:
    from oddsengine_service.feeds.recorded_source import replay  # noqa: PLC0415

    place = Path(arguments.recording)
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not files:
        raise ValueError(f"{place} has no recordings (*.jsonl)")
    found = [replay(file) for file in files]
    checks = [one.check for one in found]
    if arguments.format == "json":
        rows = [each.rows.select(_ROWS).rows(named=True) for each in found]
        plain = [one.plain() | {"rows": own} for one, own in zip(checks, rows, strict=True)]
        echo(json.dumps(plain, indent=2, ensure_ascii=False, default=str) + "\n")
    else:
        for one in found:
            shown = one.rows.select(_ROWS).sort(_ROWS, nulls_last=True)
            cells = [[["" if cell is None else str(cell) for cell in row]] for row in shown.head(_MOST_ROWS).rows()]
            echo("\n".join(table(_ROW_COLUMNS, cells, terminal())) + "\n")
            if shown.height > _MOST_ROWS:
                echo(f"... and {shown.height - _MOST_ROWS:,} more rows; all with --format json\n")
            for unmapped in one.check.unmapped:
                echo(f"not mapped: {unmapped.book}, {unmapped.market} ({unmapped.times:,} times)\n")
        _checked(checks, arguments)
    if any(one.status == "down" or one.unknown for one in checks):
        raise SystemExit(1)


def _checked(checked: list[Any], arguments: argparse.Namespace) -> None:
    if arguments.format == "json":
        echo(json.dumps([one.plain() for one in checked], indent=2, ensure_ascii=False) + "\n")
        return
    groups = [[[*one.cells()]] for one in checked]
    lines = table(_CHECK, groups, terminal())
    lines += [wrapped([f"{one.name}: {note}"]) for one in checked for note in one.notes]
    echo("\n".join(lines) + "\n")


def _unmapped(unmapped: list[Any], arguments: argparse.Namespace) -> None:
    if arguments.format == "json":
        echo(json.dumps([one._asdict() for one in unmapped], indent=2, ensure_ascii=False) + "\n")
        return
    lines = market_lines(unmapped)
    if arguments.format == "toml":
        echo(lines)
        return
    groups = [[[f"{one.times:,}", one.source, one.book, one.market]] for one in unmapped]
    echo("\n".join([*table(_UNMAPPED, groups, terminal()), "", lines]) if unmapped else "none\n")
