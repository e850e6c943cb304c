"""The commands on feeds: `feeds check`, `feeds unmapped`.

The service is imported only when one of them runs.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from oddsengine.commands.layout import Column, table
from oddsengine.commands.output import echo, service_needed, terminal, wrapped

_CHECK = (
    Column("Feed"), Column("Kind", drop=2), Column("Status"), Column("Events", right=True),
    Column("Quotes", right=True), Column("Books", right=True), Column("Unmapped", right=True), Column("What", least=20),
)  # fmt: skip
_UNMAPPED = (Column("Count", right=True), Column("Feed"), Column("Book"), Column("Market"))


def feeds_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        from oddsengine_service.feeds import check  # noqa: PLC0415  see the module's docstring
        from oddsengine_service.settings import learn, load  # noqa: PLC0415
    settings = load(arguments.config, os.environ)
    learn(settings)
    if arguments.action == "unmapped":
        if arguments.check:
            check.store(settings, check.check(settings, os.environ, arguments.seconds))
        _unmapped(check.unmapped_of(settings), arguments)
        return
    if not settings.feeds:
        file = settings.file if Path(settings.file).exists() else f"{settings.file} (which does not exist)"
        raise ValueError(f"no feeds are configured; add a [feeds.NAME] table with a kind to {file}")
    checked = check.check(settings, os.environ, arguments.seconds)
    check.store(settings, checked)
    _checked(checked, arguments)
    if any(one.status != "ok" for one in checked):
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
    groups = [[[f"{one.times:,}", one.source, one.book, one.market]] for one in unmapped]
    echo("\n".join(table(_UNMAPPED, groups, terminal())) + "\n" if unmapped else "none\n")
