"""The node's record of what its EV was worth: a file that `oddsengine audit --live` writes in a process of its own."""

from pathlib import Path

from oddsengine.history.truth_file import TruthReport, read_report, report_file
from oddsengine_service.settings import Settings

NOTHING = (
    "Nothing is recorded yet: set tape = true in [data], and run oddsengine audit --live on the data folder, such as "
    "with --every 1h."
)
_AGAIN = "Run oddsengine audit --live on the data folder of the node."


class TruthFile:
    """The report of a node; read again when the file changes. Thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._read: tuple[tuple[int, int] | None, TruthReport | str] = None, NOTHING

    @classmethod
    def of_settings(cls, settings: Settings) -> "TruthFile":
        """The file that the settings name."""
        return cls(Path(settings.data.truth) if settings.data.truth else report_file(settings.data.folder))

    def report(self) -> TruthReport | str:
        """The report; or a sentence if there is none that can be used."""
        if self._path is None:
            return NOTHING
        try:
            found = self._path.stat()
            stamp, (known, report) = (found.st_mtime_ns, found.st_size), self._read
            if stamp != known:
                report = self._parsed()
                self._read = stamp, report
        except FileNotFoundError:
            return NOTHING
        except OSError as error:
            return f"The report cannot be read: {error.strerror or error}."
        return report

    def _parsed(self) -> TruthReport | str:
        assert self._path is not None
        try:
            return read_report(self._path.read_bytes())
        except ValueError as error:
            return f"The report cannot be used: {error}. {_AGAIN}"
