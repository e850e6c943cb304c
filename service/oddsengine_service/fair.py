"""The fair-price constants of a node, and refitting them to its own tapes.

The constants are in `fair.toml` in the data folder, or in the file that `table` of `[fair]` names; the default is the
package's table. `oddsengine calibrate --data FOLDER` writes the file, and so does the node every `calibrate_days`; the
time of the last run is stored in the file `calibrated`, so restarts do not matter. A changed table is applied within a
minute, and recorded on the tape.
"""

import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from oddsengine import catalog
from oddsengine_service.log import Log
from oddsengine_service.settings import Settings, SettingsError

FILE, STAMP = "fair.toml", "calibrated"
EVERY_S = 60.0  # seconds between two checks of the file
_DAY_S = 86_400.0
_MOST_S = 6 * 3600.0  # timeout of a calibration


def table_file(settings: Settings) -> Path:
    return Path(settings.fair.table) if settings.fair.table else Path(settings.data.folder) / FILE


def table_in_force(settings: Settings) -> catalog.FairTable:
    """Load the constants that the settings specify. Raises `SettingsError` if the file cannot be used."""
    file = table_file(settings)
    if not file.is_file():
        if settings.fair.table:
            raise SettingsError(f"{settings.file}: fair.table: {file}: no such file")
        return catalog.fair_table()
    try:
        return catalog.amended_fair_table(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise SettingsError(f"{settings.file}: fair.table: {file}: {error}") from None


class Calibrator:
    """A thread that reloads a node's constants and, if configured, refits them; `adopt` gets each new table."""

    def __init__(self, settings: Settings, adopt: Callable[[catalog.FairTable], object], log: Log) -> None:
        self._settings, self._adopt, self._log = settings, adopt, log
        self._file = table_file(settings)
        self._seen = self._changed()
        self._ended = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="calibrator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._child is not None:
            self._child.terminate()

    def reload(self) -> bool:
        """Reload the file if it changed; returns whether it did."""
        changed = self._changed()
        if changed == self._seen:
            return False
        self._seen = changed
        try:
            table = table_in_force(self._settings)
        except SettingsError as error:
            self._log.event("fair-price table not usable", error=str(error))
            return False
        self._adopt(table)
        self._log.event("fair-price table", name=table.name, date=table.date)
        return True

    def fit(self) -> int:
        """Refit to the tapes of the data folder in a separate process; returns its exit status."""
        command = [sys.executable, "-m", "oddsengine", "calibrate", "--data", self._settings.data.folder]
        command += ["--output", str(self._file)]
        if self._file.is_file():
            command += ["--fair", str(self._file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
            self._child = child
            os.setpriority(os.PRIO_PROCESS, child.pid, 10)  # lower the priority
            try:
                output, _ = child.communicate(timeout=_MOST_S)
            except subprocess.TimeoutExpired:
                child.kill()
                output, _ = child.communicate()
        self._child = None
        self._log.event("calibration", status=child.returncode, output=output.decode("utf-8", "replace").strip()[-400:])
        return child.returncode

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            try:
                if self.due(time.time()):
                    self.fit()
                self.reload()
            except OSError as error:
                self._log.event("calibration failed", error=str(error))

    def due(self, now: float) -> bool:
        """Whether a refit is due; if so, or on the first call, the current time is stored as the last run."""
        days = self._settings.fair.calibrate_days
        if not days or not self._settings.data.folder:
            return False
        stamp = Path(self._settings.data.folder) / STAMP
        last = stamp.stat().st_mtime if stamp.exists() else None
        if last is not None and now - last < days * _DAY_S:
            return False
        stamp.touch()
        os.utime(stamp, (now, now))
        return last is not None

    def _changed(self) -> int:
        """Return the modification time of the file; 0 if it does not exist."""
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return 0
