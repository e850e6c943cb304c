"""Read the data files that lie beside this module, and what an operator's own file says about the same things."""

import csv
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
# Lists that an own entry adds to; whatever else it gives replaces what the package says.
_GROWING = ("aliases", "in_league")

Changes = Mapping[str, Mapping[str, Any]]  # section to id to entry


class CatalogError(ValueError):
    """An own file that cannot be used, or that comes too late; nothing of it was taken."""


class _Own:
    """What the own file says, and which sections of it have been asked for."""

    def __init__(self) -> None:
        self.changes: Changes = {}
        self.asked: set[str] = set()


own = _Own()


def toml(name: str) -> dict[str, Any]:
    """Read the tables of a TOML file."""
    with (_FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def rows(name: str) -> list[dict[str, str]]:
    """Read the lines of a CSV file, each as column to text."""
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    return [dict(zip(header, line, strict=True)) for line in lines]


def entries(name: str) -> dict[str, dict[str, Any]]:
    """Read the lines of a CSV file whose first column is an id; its columns of lists become tuples."""
    table = {}
    for row in rows(name):
        entry: dict[str, Any] = {key: words(cell) if key in _GROWING else cell for key, cell in row.items()}
        table[entry.pop("id")] = entry
    return table


def words(text: str) -> tuple[str, ...]:
    """Split a cell that holds a list, `a;b;c`."""
    return tuple(text.split(";")) if text else ()


def amended(section: str, shipped: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add the own file's entries of a section to those of the package, or lay them over."""
    own.asked.add(section)
    for id_, given in own.changes.get(section, {}).items():
        entry = shipped.get(id_, {})
        grown = {key: (*entry.get(key, ()), *given[key]) for key in _GROWING if key in given}
        shipped[id_] = {**entry, **given, **grown}
    return shipped


def claimed(table: dict[str, str], names: Iterable[str], owner: str, where: str) -> None:
    """Note whose names these are; one that is another's already is an error."""
    for name in names:
        if table.setdefault(name, owner) != owner:
            raise CatalogError(f"{where}: {name!r} means {table[name]} already; it cannot also mean {owner} too")
