"""The lock of a data folder: one node at a time.

The operating system holds the lock for the process and releases it when the process ends in any way, so nothing has to
be cleaned up after a crash. The file is not deleted. It has the number of the process and, once the node listens, the
URL of its health, which `healthcheck` reads.
"""

import os
import sys
from pathlib import Path
from typing import IO

from oddsengine_service.healthcheck import FILE
from oddsengine_service.settings import Settings, SettingsError

_FAR = 1 << 30  # the byte locked on Windows, where locked bytes cannot be read

if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[bytes]) -> None:
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_folder(settings: Settings) -> IO[bytes]:
    """Lock a data folder for this process until the file is closed.

    Raises `SettingsError` if another node holds the lock, or the folder is not writable.
    """
    folder = Path(settings.data.folder)
    try:
        file = (folder / FILE).open("a+b", buffering=0)
    except OSError as error:
        raise _unwritable(settings, error) from None
    try:
        _take(file)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        owner = file.read(20).decode("ascii", "replace").partition("\n")[0]
        file.close()
        by = f"another node (process {owner})" if owner.isdecimal() else "another node"
        raise SettingsError(
            f"{settings.file}: data.folder {str(folder)!r} is in use by {by}; stop it, or give each node its own folder"
        ) from None
    try:
        file.truncate(0)
        file.write(b"%d\n" % os.getpid())
    except OSError as error:
        file.close()
        raise _unwritable(settings, error) from None
    return file


def note_address(settings: Settings, url: str) -> None:
    """Add the URL of the health of the node that holds the lock. Raises `OSError` if the file cannot be written."""
    with (Path(settings.data.folder) / FILE).open("a", encoding="utf-8") as file:
        file.write(f"{url}\n")


def _unwritable(settings: Settings, error: OSError) -> SettingsError:
    return SettingsError(
        f"{settings.file}: a node must be able to write to data.folder, got {settings.data.folder!r}: "
        f"{(error.strerror or str(error)).lower()}"
    )
