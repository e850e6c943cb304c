"""Your own catalog files: more books, leagues, teams, market names, places and terms, or changes to existing ones.

    [books.corner_shop]
    name = "Corner Shop"
    regions = ["UK"]
    requires_tier = "pro"
    [links.corner_shop]
    home = "https://www.corner-shop.example/"
    hosts = ["go.corner-shop.example"]  # more hosts that links of its prices may lead to
    [places.corner_shop]
    open = ["GB"]
    [leagues.sunday_league]
    name = "Sunday League"
    sport = "soccer"
    [teams.sunday_league.dog_and_duck]
    name = "Dog & Duck"
    aliases = ["The Ducks"]
    [markets."Winner (90 min)"]
    means = "moneyline_3way"
    [terms.corner_shop_nfl]
    books = ["corner_shop"]
    leagues = ["nfl"]
    tie = "void"
    postponed = { within = 24, pays = "void" }
    [thresholds.stale]
    prematch_s = 300

Thresholds have the tables and keys of guards.toml, terms those of terms.toml. A key replaces the catalog's value under
that id; `aliases` and `in_league` extend it. New entries of terms come last. A market name whose `means` is "" is not
decided yet, and changes nothing.

There may be several files, and folders of them, whose files `*.toml` are read in the order of their names. Entries are
merged key by key:

- of two files (or folders) that say the same key, the later one in the list wins, as every file wins over the catalog;
- two files of one folder have no order: that they give a key different values is an error, which names both;
- `aliases` and `in_league` are joined; a name that then means two things is an error, which names both files, and so
  is a team that is in two leagues;
- what one file adds, others may refer to and change, whichever comes first.

The files are validated and applied together, or not at all. They must be loaded before the first lookup.
"""

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.catalog.books import book
from oddsengine.catalog.data_files import GROWING, CatalogError
from oddsengine.catalog.leagues import league
from oddsengine.catalog.links import allowed
from oddsengine.catalog.markets import market_type
from oddsengine.catalog.own_fields import check_together, checked, path_of
from oddsengine.catalog.places import places
from oddsengine.catalog.settlement_rules import terms
from oddsengine.catalog.teams import team


class _File(NamedTuple):
    """A file, and the folder that it was found in; None if it was named itself."""

    path: Path
    folder: Path | None = None


class Replaced(NamedTuple):
    """A key that two files say: the later one's value is in force."""

    key: str  # such as `books.corner_shop.commission`
    earlier: Path
    before: Any
    later: Path
    value: Any


class OwnFiles(NamedTuple):
    """What your files say together."""

    paths: tuple[Path, ...]
    changes: data_files.Changes
    said: Mapping[tuple[str, str], Sequence[Path]]  # the files that have an entry, by section and id
    replaced: Sequence[Replaced]

    def error(self, error: CatalogError) -> CatalogError:
        """An error that names the files of its entries; all of them if it has none."""
        files = list(dict.fromkeys(path for entry in error.entries for path in self.said.get(entry, ())))
        return CatalogError(f"{_listed(files or self.paths)}: {error}")


def _listed(paths: Iterable[Path]) -> str:
    *most, last = map(str, paths)
    return f"{', '.join(most)} and {last}" if most else last


def _files(paths: Iterable[str | Path]) -> list[_File]:
    """The files of a list of files and folders, in order."""
    found = dict[Path, _File]()
    for given in paths:
        if not str(given):
            raise CatalogError("a catalog file must have a name, got an empty text")
        place = Path(given)
        files = [_File(place)]
        if place.is_dir():
            files = [_File(path, place) for path in sorted(place.glob("*.toml")) if not path.name.startswith(".")]
            if not files:
                raise CatalogError(f"{place}: a folder of catalog files must have some *.toml, got none")
        for file in files:
            try:
                real = file.path.resolve()
            except (RuntimeError, OSError):  # a loop of links, which cannot be opened either
                real = file.path
            if real in found:
                raise CatalogError(f"{file.path}: must be listed once, got it twice")
            found[real] = file
    return list(found.values())


def _content(path: Path) -> data_files.Changes:
    """What one file says."""
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise CatalogError("must be a file, got a device or a pipe")  # which may have no end
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{path}: not valid TOML: {error}") from error
    try:
        return checked(content)
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from None


class _Merging:
    """Entries of the files so far, with the file that each key is from."""

    def __init__(self) -> None:
        self.changes: dict[str, dict[str, dict[str, Any]]] = {}
        self.said: dict[tuple[str, str], list[Path]] = {}
        self.replaced: list[Replaced] = []
        self._from: dict[tuple[str, str, str], _File] = {}

    def add(self, file: _File, changes: data_files.Changes) -> None:
        for section, entries in changes.items():
            for id_, entry in entries.items():
                self.said.setdefault((section, id_), []).append(file.path)
                own = self.changes.setdefault(section, {}).setdefault(id_, {})
                taken = {key: value for key, value in entry.items() if self._wins(file, section, id_, key, value)}
                own.update(data_files.laid_over(own, taken))

    def _wins(self, file: _File, section: str, id_: str, key: str, value: Any) -> bool:
        """Whether the value of a key is to be taken: not if it is not decided, or was said before."""
        own, place = self.changes[section][id_], (section, id_, key)
        before = own.get(key, "")  # "" of a market name is not decided
        if key in GROWING:
            return True
        if before == "":
            self._from[place] = file
            return True
        if value in ("", before):
            return False
        earlier = self._from[place]
        name = f"{path_of(section, id_, own)}.{key}"
        if section == "teams" and key == "league":
            raise CatalogError(
                f"{earlier.path} and {file.path}: teams.{value}.{id_} must be the only entry with its id, "
                f"got teams.{before}.{id_} too"
            )
        if file.folder is not None and file.folder == earlier.folder:
            raise CatalogError(
                f"{earlier.path} and {file.path}: {name} must have one value in the files of a folder, "
                f"got {excerpt(before)} and {excerpt(value)}"
            )
        self.replaced.append(Replaced(name, earlier.path, before, file.path, value))
        self._from[place] = file
        return True


def read(*paths: str | Path) -> OwnFiles:
    """Read and merge your own files, without applying them; names that mean two things are found by `load` only.

    Raises
    ------
    CatalogError
        If a file cannot be read or is invalid, or two contradict each other.
    """
    merging, files = _Merging(), _files(paths)
    for file in files:
        merging.add(file, _content(file.path))
    changes = {section: entries for section, entries in merging.changes.items() if entries}
    own = OwnFiles(tuple(file.path for file in files), changes, merging.said, merging.replaced)
    try:
        check_together(changes)
    except CatalogError as error:
        raise own.error(error) from None
    return own


def _read_all() -> None:
    """Build every table to detect names that are used twice."""
    book(""), league(""), team("", ""), allowed(""), market_type("none"), terms("", "", ""), places("")


def load(path: str | Path, *more: str | Path) -> OwnFiles:
    """Load your own catalog files, before the first lookup.

    Parameters
    ----------
    path, *more
        TOML files in the format shown by this module, and folders of such files. Loading the same content again has
        no effect.

    Returns
    -------
    OwnFiles
        What they say together, and which keys of a file are replaced by a later one's.

    Raises
    ------
    CatalogError
        If a file cannot be read or is invalid, if two contradict each other, or if they change sections that are
        already in use. The catalog is unchanged.
    """
    own = read(path, *more)
    before, used = data_files.own.changes, set(data_files.own.used)
    if own.changes == before:
        return own
    if late := sorted(used & {*own.changes, *before}):
        names = _listed(own.paths)
        raise CatalogError(f"{names}: cannot be loaded any more: {', '.join(late)} of the catalog are already in use")
    data_files.own.changes = own.changes
    try:
        _read_all()
    except CatalogError as error:
        forget()
        data_files.own.changes, data_files.own.used = before, used
        raise own.error(error) from None
    return own


def forget() -> None:
    """Clear all cached data, including the own files: for tests, and to check two sets of files in one process."""
    for name, module in list(sys.modules.items()):
        if name.startswith("oddsengine."):
            for entry in vars(module).values():
                if hasattr(entry, "cache_clear"):
                    entry.cache_clear()
    data_files.own.changes, data_files.own.used = {}, set()
