"""The tape of a node: every step of its engine in the data folder, one tape per start; old ones are deleted.

If a tape cannot be written (a full disk), it ends there and the node reports it and continues without one.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from oddsengine.catalog import FairTable
from oddsengine.live.engine import Engine, ViewKey
from oddsengine.tape import TapeError, TapeWriter

FOLDER = "tapes"  # subfolder of the data folder
_NAME = "%Y%m%dT%H%M%S.%fZ"


class NodeTape(TapeWriter):
    """Records an engine from its first step on, in a folder of `folder` named after its start.

    Tapes that are older than `days` are deleted at the start; `failed` is called if this one ends early.
    """

    def __init__(
        self, engine: Engine, folder: str | Path, days: float, now: datetime, failed: Callable[[Exception], None]
    ) -> None:
        self._failed, self._ended = failed, False
        sweep(Path(folder), now - timedelta(days=days))
        super().__init__(Path(folder) / now.astimezone(UTC).strftime(_NAME))
        self.follow(engine)

    def batch(self, *batch: Any) -> None:
        """Record a batch; a disk error ends the tape, not the step."""
        if not self._ended:
            with self._ending():
                super().batch(*batch)

    def flush(self) -> None:
        with self._ending():
            super().flush()

    def view_resumed(self, view: ViewKey) -> None:
        if not self._ended:
            super().view_resumed(view)

    def view_suspended(self, view: ViewKey) -> None:
        if not self._ended:
            super().view_suspended(view)

    def fair_changed(self, table: FairTable) -> None:
        if not self._ended:
            super().fair_changed(table)

    def guards_changed(self, guards: Mapping[str, float | bool]) -> None:
        if not self._ended:
            super().guards_changed(guards)

    def close(self) -> None:
        with self._ending():
            super().close()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the tape at a disk error."""
        try:
            yield
        except (OSError, TapeError) as error:
            if not self._ended:
                self._ended = True
                self._failed(error)


def sweep(folder: Path, before: datetime) -> list[str]:
    """Delete tapes that were started before a time; other files in the folder are left alone."""
    removed = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            begun = datetime.strptime(path.name, _NAME).replace(tzinfo=UTC)
        except ValueError:
            continue
        if begun < before and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path.name)
    return removed
