"""A backup of a data folder: a tar archive of its files, made while the node runs or not.

A database is copied with SQLite's own backup, so the copy is whole even while the node writes to it. The other files
are small and are always replaced whole. Left out are the pepper, which belongs elsewhere, the lock, and the
subfolders: tapes, payloads that failed to parse, compiled kernels.
"""

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from oddsengine_service.accounts.database import DatabaseError
from oddsengine_service.healthcheck import FILE as LOCK
from oddsengine_service.settings import Settings, SettingsError

_DATABASE = b"SQLite format 3\0"
_OF_DATABASES = ("-wal", "-shm", "-journal")  # their contents are in the copy


def back_up(settings: Settings, out: IO[bytes]) -> list[str]:
    """Write the archive of a data folder, and return the names of its files.

    Raises `SettingsError` if there is nothing to back up, and `DatabaseError` if a database cannot be copied.
    """
    folder = Path(settings.data.folder)
    pepper, keys = folder / settings.keys.pepper, folder / settings.keys.file
    files = {keys.name: keys} if keys.exists() else {}  # it may be elsewhere
    if folder.is_dir():
        left_out = pepper.name, LOCK
        files |= {
            each.name: each
            for each in folder.iterdir()
            if each.is_file()
            and each.name not in left_out
            and each.name[0] != "."
            and not each.name.endswith(_OF_DATABASES)
        }
    if not files:
        raise SettingsError(
            f"{settings.file}: data.folder {str(folder)!r} has nothing to back up; is it the folder of the node?"
        )
    with (
        TemporaryDirectory(prefix=".backup-", dir=folder if folder.is_dir() else keys.parent) as temporary,
        tarfile.open(fileobj=out, mode="w|") as archive,
    ):
        for name, file in sorted(files.items()):
            copy = Path(temporary, name)
            archive.add(_copied(file, copy) if _is_database(file) else file, name)
            copy.unlink(missing_ok=True)
    return sorted(files)


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return file.suffix == ".sqlite" or opened.read(len(_DATABASE)) == _DATABASE
    except OSError as error:
        raise DatabaseError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _copied(file: Path, to: Path) -> Path:
    to.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(to)) as copy:
            source.backup(copy)
    except sqlite3.Error as error:
        raise DatabaseError(f"{file} cannot be copied: {error}") from None
    return to
