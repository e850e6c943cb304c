"""The lock of a data folder: one node at a time.

The operating system holds the lock for the process and releases it when the process ends in any way, so nothing has to
be cleaned up after a crash. The file is not deleted; its contents are informational.
"""

import os
import sys
from pathlib import Path
from typing import IO

from oddsengine_service.settings import Settings, SettingsError

FILE = "node.lock"
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


class FolderLock:
    """Locks a data folder for this process until closed.

    Raises `SettingsError` if another node holds the lock, or the folder is not writable.
    """

    def __init__(self, settings: Settings) -> None:
        folder = Path(settings.data.folder)
        try:
            self._file = (folder / FILE).open("a+b", buffering=0)
        except OSError as error:
            raise _unwritable(settings, error) from None
        try:
            _take(self._file)
        except (BlockingIOError, PermissionError):
            self._file.seek(0)
            owner = self._file.read(20).decode("ascii", "replace").strip()
            self._file.close()
            by = f"another node (process {owner})" if owner.isdecimal() else "another node"
            raise SettingsError(
                f"{settings.file}: data.folder {str(folder)!r} is in use by {by}; "
                "stop it, or give each node its own folder"
            ) from None
        try:
            self._file.truncate(0)
            self._file.write(b"%d\n" % os.getpid())
        except OSError as error:
            self._file.close()
            raise _unwritable(settings, error) from None

    def close(self) -> None:
        self._file.close()


def _unwritable(settings: Settings, error: OSError) -> SettingsError:
    return SettingsError(
        f"{settings.file}: a node must be able to write to data.folder, got {settings.data.folder!r}: "
        f"{(error.strerror or str(error)).lower()}"
    )
