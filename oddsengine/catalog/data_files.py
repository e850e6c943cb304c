"""Read the data files of the catalog and your own file."""

import csv
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
# Lists that an own entry extends; other values replace those of the package.
_GROWING = ("aliases", "in_league")

Changes = Mapping[str, Mapping[str, Any]]  # section to id to entry


class CatalogError(ValueError):
    """An own catalog file that is invalid, or loaded too late; nothing of it was applied."""


class _OwnFile:
    """The own file, and the sections that have been read."""

    def __init__(self) -> None:
        self.changes: Changes = {}
        self.used: set[str] = set()


own = _OwnFile()


def toml(name: str) -> dict[str, Any]:
    """Load a TOML file."""
    with (_FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def read_csv(name: str) -> list[dict[str, str]]:
    """Load the lines of a CSV file as mappings."""
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    return [dict(zip(header, line, strict=True)) for line in lines]


def entries(name: str) -> dict[str, dict[str, Any]]:
    """Load a CSV file with an id in the first column; list columns become tuples."""
    table = {}
    for row in read_csv(name):
        entry: dict[str, Any] = {key: split_list(cell) if key in _GROWING else cell for key, cell in row.items()}
        table[entry.pop("id")] = entry
    return table


def split_list(text: str) -> tuple[str, ...]:
    """Split a cell with a list, `a;b;c`."""
    return tuple(text.split(";")) if text else ()


def amended(section: str, shipped: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Merge the own file's entries of a section into those of the package."""
    own.used.add(section)
    for id_, changed in own.changes.get(section, {}).items():
        entry = shipped.get(id_, {})
        grown = {key: (*entry.get(key, ()), *changed[key]) for key in _GROWING if key in changed}
        shipped[id_] = {**entry, **changed, **grown}
    return shipped


def claimed(table: dict[str, str], names: Iterable[str], owner: str, where: str) -> None:
    """Register the names of an item; a name of another item is an error."""
    for name in names:
        if table.setdefault(name, owner) != owner:
            raise CatalogError(f"{where}: {name!r} means {table[name]} already; it cannot also mean {owner} too")
