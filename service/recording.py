"""The tape of a node: every step of its engine in the data folder, a tape for each start, old ones thrown away.

A tape that cannot be written any more (a full disk) ends there, and the node says so and goes on: prices come first.
"""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from oddsengine.engine import Engine
from oddsengine.tape import TapeError, TapeWriter

FOLDER = "tapes"  # of the data folder
_NAME = "%Y%m%dT%H%M%S.%fZ"


class NodeTape(TapeWriter):
    """Writes what an engine does from its first step on.

    Parameters
    ----------
    engine
        One that made no step yet.
    folder
        Where tapes are; each has a folder named for its beginning.
    days
        Tapes that were begun longer ago are removed at the start.
    failed
        Told once why it ended, if it did so by itself.
    """

    def __init__(
        self, engine: Engine, folder: str | Path, days: float, now: datetime, failed: Callable[[Exception], None]
    ) -> None:
        self._failed, self._ended = failed, False
        sweep(Path(folder), now - timedelta(days=days))
        super().__init__(Path(folder) / now.astimezone(UTC).strftime(_NAME))
        self.follow(engine)

    def batch(self, *batch: Any) -> None:
        """Record a batch; what the disk refuses ends the tape, not the step."""
        if self._ended:
            return
        try:
            super().batch(*batch)
        except (OSError, TapeError) as error:
            self._end_with(error)

    def flush(self) -> None:
        """Write what waits."""
        try:
            super().flush()
        except (OSError, TapeError) as error:
            self._end_with(error)

    def _end_with(self, error: Exception) -> None:
        if not self._ended:
            self._ended = True
            self._failed(error)

    def note(self, *note: Any) -> None:
        """Record that a view woke or fell asleep."""
        if not self._ended:
            super().note(*note)

    def close(self) -> None:
        """Write what waits, and give the files up."""
        try:
            super().close()
        except (OSError, TapeError) as error:
            self._end_with(error)


def sweep(folder: Path, before: datetime) -> list[str]:
    """Remove tapes that were begun before a time; whatever else is in the folder stays."""
    gone = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            begun = datetime.strptime(path.name, _NAME).replace(tzinfo=UTC)
        except ValueError:
            continue
        if begun < before and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            gone.append(path.name)
    return gone
