"""Import what others have recorded into a history: one Parquet file of prices in order of time, with final scores.

Each source has an importer, which parses with the parser of its feed. `import_files` opens files, `import_writer`
sorts and writes, and `import_report` counts what was left out.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from oddsengine.bounds import excerpt
from oddsengine.feeds.price_files import ODDS_FORMATS
from oddsengine.history import import_betfair, import_oddsharvester, import_the_odds_api
from oddsengine.history.import_files import SOURCES, HistoryFileError, RecordedFile, recorded_files
from oddsengine.history.import_report import ImportedHistory
from oddsengine.history.import_step import ImportStep
from oddsengine.history.import_writer import HistoryWriter
from oddsengine.progress import Progress

__all__ = ["ImportedHistory", "import_history"]

_NODE = {
    "tape": "a tape is a history as it is: audit, backtest and scan_history take its folder; `oddsengine archive` "
    "writes tapes as Parquet",
    "archive": "an archive is a history as it is: audit, backtest and scan_history take its folder or URL",
}
File = str | Path


def import_history(
    source: str, files: File | Iterable[File], output: File, *, odds_format: str | None = None,
    timezone: str | None = None, progress: bool = False,
) -> ImportedHistory:  # fmt: skip
    """Read what others have recorded, and write it as a history for `audit`, `backtest` and `scan_history`.

    Parameters
    ----------
    source
        ``the_odds_api`` (responses of odds, historical odds and scores), ``oddsharvester``, or ``betfair`` (BASIC,
        ADVANCED and PRO files; docs/import.md has what each is read as).
    files
        Files, folders with all that is in them, .tar archives; .gz and .bz2 are decompressed.
    output
        The .parquet file to write. It appears when all is read, and replaces an earlier one.
    odds_format
        Odds format of The Odds API, ``decimal`` or ``american``; None detects it for each response.
    timezone
        Time zone of the browser that collected OddsHarvester's odds histories, such as ``Europe/Paris``; without it
        they are left out.
    progress
        Show a bar.

    Returns
    -------
    ImportedHistory
        What was written, and what was left out and why.

    Raises
    ------
    HistoryFileError
        If a file is of another source, damaged or without prices. Nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> outcomes = '[{"name": "Boston Celtics", "price": 2.1}, {"name": "Miami Heat", "price": 1.8}]'
    >>> book = '{"key": "fanduel", "markets": [{"key": "h2h", "outcomes": %s}]}' % outcomes
    >>> game = '"id": "g1", "sport_key": "basketball_nba", "home_team": "Boston Celtics", "away_team": "Miami Heat"'
    >>> text = '{"timestamp": "2026-02-08T18:00:00Z", "data": [{%s, "bookmakers": [%s]}]}' % (game, book)
    >>> written = (folder / "snapshot.json").write_text(text)
    >>> found = import_history("the_odds_api", folder / "snapshot.json", folder / "season.parquet")
    >>> found.prices, found.games, found.left_out.height
    (2, 1, 0)
    """
    source = _source(source)
    path = Path(output)
    if path.suffix.lower() != ".parquet":
        raise HistoryFileError(f"the output must be a .parquet file, got {excerpt(str(output))}")
    if odds_format not in (None, *ODDS_FORMATS):
        raise HistoryFileError(f"odds_format must be one of {', '.join(ODDS_FORMATS)}, got {excerpt(odds_format)}")
    given = [files] if isinstance(files, str | Path) else list(files)
    read: dict[str, Callable[[list[RecordedFile], ImportStep], None]] = {
        "the_odds_api": lambda some, step: import_the_odds_api.read(some, step, odds_format),
        "oddsharvester": lambda some, step: import_oddsharvester.read(some, step, timezone),
        "betfair": import_betfair.read,
    }
    with ExitStack() as stack, HistoryWriter(path) as writer, Progress("prices") as bar:
        found = recorded_files(map(Path, given), source, stack)
        step = ImportStep(source, writer, found, bar if progress else lambda *_: None)
        read[source](found, step)
        if not writer.prices:
            reasons = "; ".join(f"{reason} ({example})" for reason, _, example in step.left_out.table().head(3).rows())
            count = "1 file" if len(found) == 1 else f"{len(found):,} files"
            raise HistoryFileError(f"there is no price in {count}: {reasons or 'nothing is in there'}")
        written = writer.finish(lambda done, prices: bar(done, prices, "writing") if progress else None)
    return ImportedHistory.of(str(output), source, step.files, written, step.left_out, tuple(step.remarks))


def _source(name: str) -> str:
    if name in SOURCES:
        return name
    if name in _NODE:
        raise HistoryFileError(_NODE[name])
    raise HistoryFileError(f"source must be one of {', '.join(SOURCES)}, got {excerpt(name)}")
