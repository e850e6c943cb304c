"""Read the data files that lie beside this module."""

import csv
import tomllib
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def toml(name: str) -> dict[str, Any]:
    """Read the tables of a TOML file."""
    with (_FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def rows(name: str) -> list[dict[str, str]]:
    """Read the lines of a CSV file, each as column to text."""
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    return [dict(zip(header, line, strict=True)) for line in lines]


def words(text: str) -> tuple[str, ...]:
    """Split a cell that holds a list, `a;b;c`."""
    return tuple(text.split(";")) if text else ()
