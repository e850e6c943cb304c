"""The command `plugins`: lists what installed packages register, without importing any of it."""

import argparse
import json
from collections.abc import Collection
from contextlib import suppress

from oddsengine.commands.output import echo, terminal
from oddsengine.commands.text_tables import Column, table
from oddsengine.fair_functions import OWN_NAMES
from oddsengine.guards.plugin_guards import own_names, problem_of
from oddsengine.plugins import FAIR, GROUPS, GUARDS, SOURCES, TARGETS, AmbiguousNameError, Plugin, find, registered

_COLUMNS = (
    Column("Group"), Column("Name"), Column("Package"), Column("Version"), Column("Object", drop=1),
    Column("Problem", least=20),
)  # fmt: skip

_NO_SCHEME = "its name cannot begin an address: only lower-case letters, digits, +, . and -"


def plugins_command(arguments: argparse.Namespace) -> None:
    taken = {group: _taken(group) for group in GROUPS}
    rows = [_row(plugin, taken[plugin.group]) for plugin in registered()]
    if arguments.format == "json":
        echo(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        return
    columns = _COLUMNS if any(row["problem"] for row in rows) else _COLUMNS[:-1]
    cells = [[[value or "" for value in row.values()][: len(columns)]] for row in rows]
    echo("\n".join([*table(columns, cells, terminal()), ""]) if rows else "none\n")


def _row(plugin: Plugin, taken: Collection[str]) -> dict[str, str | None]:
    """What is shown of a plugin; `problem` is why its name cannot be used."""
    problem = None if plugin.group != TARGETS or _is_scheme(plugin.name) else _NO_SCHEME
    if plugin.group == GUARDS:
        problem = problem_of(plugin.name) or None
    try:
        find(plugin.group, plugin.name, taken)
    except AmbiguousNameError as error:
        problem = str(error)
    return {
        "group": plugin.group, "name": plugin.name, "package": plugin.distribution, "version": plugin.version,
        "object": plugin.object, "problem": problem,
    }  # fmt: skip


def _taken(group: str) -> Collection[str]:
    """The names of a group that are ours without an entry point, where what they need is installed."""
    if group == GUARDS:
        return own_names()
    with suppress(ModuleNotFoundError):
        if group == SOURCES:
            from oddsengine.sources import KINDS  # noqa: PLC0415  needs the extra `feeds`

            return KINDS
        if group == TARGETS:
            from oddsengine_service.bettors.targets import SCHEMES  # noqa: PLC0415  needs the extra `service`

            return SCHEMES
    return OWN_NAMES if group == FAIR else ()


def _is_scheme(name: str) -> bool:
    """Whether addresses of alerts can begin with a name; true where the service is not installed."""
    with suppress(ModuleNotFoundError):
        from oddsengine_service.bettors.targets import SCHEME  # noqa: PLC0415  needs the extra `service`

        return SCHEME.fullmatch(name) is not None
    return True
