"""The fair-price constants of a node.

They are in `fair.toml` in the data folder, or in the file that `table` of `[fair]` names; the default is the package's
table. `oddsengine calibrate --data FOLDER` writes the file. A file that changes is in force within a minute, and
recorded on the tape.
"""

import tomllib
from pathlib import Path

from oddsengine import catalog
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.settings import Settings, SettingsError

FILE = "fair.toml"
EVERY_S = 60.0  # seconds between two checks of the file
_FAILURE = "fair table"


def table_file(settings: Settings) -> Path:
    return Path(settings.fair.table) if settings.fair.table else Path(settings.data.folder) / FILE


def table_in_force(settings: Settings) -> catalog.FairTable:
    """Load the constants that the settings specify. Raises `SettingsError` if the file cannot be used."""
    file = table_file(settings)
    try:
        return catalog.amended_fair_table(tomllib.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        if settings.fair.table:
            raise SettingsError(f"{settings.file}: fair.table: {file}: no such file") from None
        return catalog.fair_table()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise SettingsError(f"{settings.file}: fair.table: {file}: {error}") from None


class FairFile:
    """The file of a node's constants; `table` is what it had when it was last read."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._file = settings, table_file(settings)
        self._seen: object = self._stamp()
        self.table = table_in_force(settings)

    def check(self, node: Node) -> None:
        """Read the file again if it has changed, and put its table in force; one that cannot be used is a failure."""
        stamp = self._stamp()
        if stamp == self._seen and _FAILURE not in node.failures:
            return
        self._seen = stamp
        try:
            table = table_in_force(self._settings)
            if table != self.table:
                node.write(setattr, node.engine, "fair", table).result()
                self.table = table
                log.event("fair-price table", name=table.name, date=table.date)
        except Exception as error:  # tried again at the next check
            node.report(_FAILURE, str(error) or type(error).__name__)
        else:
            node.report(_FAILURE, "")

    def _stamp(self) -> tuple[int, int]:
        """The time of modification and the size of the file; zeros if it does not exist."""
        try:
            found = self._file.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size
