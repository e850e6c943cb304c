"""Files that others have recorded: plain, as .gz or .bz2, or members of a tar archive; and what a file looks like."""

import bz2
import codecs
import gzip
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from oddsengine.feeds.football_data import is_season

HEAD = 16_384  # bytes of a file that say what it is
_MAGIC: tuple[tuple[bytes, Callable[[BinaryIO], Any]], ...] = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open))
_TAR = ".tar"
_ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".zip", ".7z", ".rar")
_DAMAGED = (OSError, EOFError, tarfile.TarError, zlib.error)

# What the beginning of a file looks like, by what it must have; the first that fits.
SOURCES = {
    "betfair": "Betfair's historical files",
    "the_odds_api": "The Odds API",
    "oddsharvester": "OddsHarvester",
}
"""Sources that are imported, and what they are called."""
_LOOKS = (
    ("betfair", (rb'"op"\s*:\s*"mcm"',)),
    ("oddsharvester", (rb'_market\b"?', rb'\b(scraped_date|match_link)\b', rb'\bhome_team\b')),
    ("the_odds_api", (rb'"sport_key"\s*:',)),
    ("the_odds_api", (rb'"timestamp"\s*:', rb'"data"\s*:')),
    ("the_odds_api", (rb'"error_code"\s*:',)),
)  # fmt: skip
_HISTORIES = {
    "a tape": "audit, backtest and scan_history take a tape as it is, and `oddsengine archive` writes it as Parquet",
    "an archive": "audit, backtest and scan_history take an archive as it is",
    "a Parquet table": "audit, backtest and scan_history take a table of prices as it is (docs/truth.md)",
    "a season of football-data.co.uk": "audit, backtest and benchmark take it as it is",
}


class HistoryFileError(ValueError):
    """Files that cannot be imported; the message is for the user."""


class RecordedFile(NamedTuple):
    """A file, or a member of a tar archive."""

    path: Path
    member: tarfile.TarInfo | None = None
    archive: tarfile.TarFile | None = None
    given: bool = True  # named by the user, and not found in a folder or an archive

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.path.name if self.member is None else f"{self.path.name}/{self.member.name}"

    @property
    def size(self) -> int:
        """Bytes as they are stored."""
        return self.path.stat().st_size if self.member is None else self.member.size

    @property
    def suffix(self) -> str:
        """Its suffix without that of a compression."""
        path = Path(self.name.lower())
        return Path(path.stem).suffix if path.suffix in (".gz", ".bz2") else path.suffix

    def open(self) -> "OpenFile":
        """Open it; raises `HistoryFileError` if it cannot be read."""
        try:
            if self.member is not None and self.archive is not None:
                return OpenFile(self, cast("BinaryIO", self.archive.extractfile(self.member)))
            return OpenFile(self, self.path.open("rb"))
        except _DAMAGED as error:
            raise HistoryFileError(f"{self.name} cannot be read: {error}") from None

    def head(self) -> bytes:
        """Its first bytes, decompressed."""
        with self.open() as file:
            return file.read(HEAD)


class OpenFile(AbstractContextManager["OpenFile"]):
    """A file that is being read, decompressed; damage raises `HistoryFileError`."""

    def __init__(self, of: RecordedFile, stored: BinaryIO) -> None:
        self.of, self._stored = of, stored
        magic = stored.read(3)
        stored.seek(0)
        opener = next((opener for start, opener in _MAGIC if magic.startswith(start)), None)
        self._data: BinaryIO = stored if opener is None else opener(stored)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._data.close()
        self._stored.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._stored.closed

    @property
    def done(self) -> int:
        """Bytes read so far, as they are stored."""
        return self._stored.tell()

    def read(self, size: int = -1) -> bytes:
        """Read the first bytes, or all."""
        try:
            return self._data.read(size).removeprefix(codecs.BOM_UTF8)
        except _DAMAGED as error:
            raise self._damaged(error) from None

    def lines(self) -> Iterator[bytes]:
        """Its lines."""
        try:
            for number, line in enumerate(self._data):
                yield line if number else line.removeprefix(codecs.BOM_UTF8)
        except _DAMAGED as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> HistoryFileError:
        return HistoryFileError(f"{self.of.name} is damaged, or not complete: {error}")


def recorded_files(paths: Iterable[Path], source: str, stack: ExitStack) -> list[RecordedFile]:
    """List the files of some paths: files, folders with all that is in them, and tar archives, which `stack` closes.

    Raises `HistoryFileError` if a path does not exist, or is a history that needs no import.
    """
    found: list[RecordedFile] = []
    for path in paths:
        if not path.exists():
            raise HistoryFileError(f"{path} does not exist")
        if what := _history_folder(path):
            raise HistoryFileError(_not_of(str(path), what, source))
        inside = sorted(each for each in path.rglob("*") if _is_visible(each, path)) if path.is_dir() else [path]
        for file in inside:
            found += _members(file, stack, given=file == path)
    if not found:
        raise HistoryFileError("there is no file to import")
    return found


def _is_visible(path: Path, root: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)


def _members(path: Path, stack: ExitStack, *, given: bool) -> list[RecordedFile]:
    name = path.name.lower()
    if name.endswith(_ARCHIVES):
        raise HistoryFileError(f"{path} is a compressed archive: unpack it, and give the folder or the .tar file")
    if not name.endswith(_TAR):
        return [RecordedFile(path, given=given)]
    try:
        archive = stack.enter_context(tarfile.open(path, "r:"))  # noqa: SIM115  the stack closes it
        return [
            RecordedFile(path, member, archive, given=False)
            for member in sorted(archive.getmembers(), key=lambda member: member.name)
            if member.isfile() and not Path(member.name).name.startswith(".")
        ]
    except _DAMAGED as error:
        raise HistoryFileError(f"{path} is damaged, or no tar archive: {error}") from None


def looks_like(head: bytes) -> str:
    """What the beginning of a file looks like: a source, or a history as it is; empty if neither is recognised.

    Examples
    --------
    >>> looks_like(b'{"op": "mcm", "clk": "1"}'), looks_like(b"PAR1"), looks_like(b"a,b")
    ('betfair', 'a Parquet table', '')
    """
    if head.startswith(b"PAR1"):
        return "a Parquet table"
    for source, patterns in _LOOKS:
        if all(re.search(pattern, head) for pattern in patterns):
            return source
    return "a season of football-data.co.uk" if is_season(head) else ""


def check_source(name: str, head: bytes, source: str) -> None:
    """Raise `HistoryFileError` for a file of another source, or of none that is known."""
    what = looks_like(head)
    if what == source or (not what and head.strip() in (b"[]", b"{}", b"")):
        return
    if what:
        raise HistoryFileError(_not_of(name, what, source))
    start = head.decode("utf-8", "replace").strip()[:60]
    raise HistoryFileError(
        f"{name} is not of {SOURCES[source]}, and of no other source that is known; it begins {start!r}"
    )


def _history_folder(path: Path) -> str:
    """Say which history of a node a path is; empty for another one."""
    if path.is_dir() and any(path.glob("*.tape")):
        return "a tape"
    if path.is_dir() and (path / "_delta_log").is_dir():
        return "an archive"
    return "a tape" if path.suffix == ".tape" else ""


def _not_of(name: str, what: str, source: str) -> str:
    if what in SOURCES:
        return f"{name} is not of {SOURCES[source]}: it looks like {SOURCES[what]} (source {what})"
    return f"{name} is {what}, which is a history already: {_HISTORIES[what]}"
