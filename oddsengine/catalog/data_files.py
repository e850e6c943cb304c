"""Read the data files of the catalog, and merge your own files into them."""

import csv
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
# Lists that an own entry extends; other values replace those of the package.
GROWING = ("aliases", "in_league")

Changes = Mapping[str, Mapping[str, Any]]  # section to id to entry


class CatalogError(ValueError):
    """Own catalog files that are invalid, or loaded too late; nothing of them was applied."""

    def __init__(self, message: str, entries: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.entries = entries  # section and id of those that are wrong, so that the files which have them are named


class _OwnFiles:
    """What the own files say, and the sections that have been read."""

    def __init__(self) -> None:
        self.changes: Changes = {}
        self.used: set[str] = set()


own = _OwnFiles()


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
        entry: dict[str, Any] = {key: split_list(cell) if key in GROWING else cell for key, cell in row.items()}
        table[entry.pop("id")] = entry
    return table


def split_list(text: str) -> tuple[str, ...]:
    """Split a cell with a list, `a;b;c`."""
    return tuple(text.split(";")) if text else ()


def amended(section: str, shipped: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Merge the own files' entries of a section into those of the package."""
    own.used.add(section)
    for id_, changed in own.changes.get(section, {}).items():
        shipped[id_] = laid_over(shipped.get(id_, {}), changed)
    return shipped


def laid_over(entry: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the keys of another in place of its own; lists in `GROWING` are extended."""
    grown = {key: tuple(dict.fromkeys((*entry.get(key, ()), *changed[key]))) for key in GROWING if key in changed}
    return {**entry, **changed, **grown}


def claimed(table: dict[str, str], names: Iterable[str], owner: str, where: str) -> None:
    """Register the names of an item; a name of another item is an error. `where` begins with the section."""
    for name in names:
        if (other := table.setdefault(name, owner)) != owner:
            section = where.partition(" ")[0]
            raise CatalogError(
                f"{where}: {name!r} means {other} already; it cannot also mean {owner} too",
                [(section, other), (section, owner)],
            )
