"""What an import read, and what it left out: by reason, with an example of each."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from oddsengine.history.import_writer import Written

LEFT_OUT = {"reason": pl.String(), "count": pl.Int64(), "example": pl.String()}
"""Columns of `ImportedHistory.left_out`."""
_LONGEST = 100  # characters of a reason or an example


class LeftOut:
    """Counts what was left out, and keeps the first example of each reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, reason: str, example: str, n: int = 1) -> None:
        """Count something that was left out."""
        self._counts[reason] += n
        self._examples.setdefault(reason, example)

    def add_all(self, reasons: Counter[str], example: str) -> None:
        """Count what a parser refused."""
        for reason, n in reasons.items():
            self.add(reason, example, n)

    def table(self) -> pl.DataFrame:
        """The reasons, most frequent first."""
        rows = [(reason[:_LONGEST], n, self._examples[reason][:_LONGEST]) for reason, n in self._counts.most_common()]
        return pl.DataFrame(rows, schema=LEFT_OUT, orient="row")


@dataclass(frozen=True)
class ImportedHistory:
    """What `import_history` wrote; `print` shows it.

    Attributes
    ----------
    output
        The file, which `audit`, `backtest`, `scan_history` and `calibrate` take.
    source
        The source.
    files
        Number of files read.
    prices
        Rows of the file.
    games
        Number of games.
    books
        Their books.
    results
        Number of games with a final score.
    since
        The first time.
    until
        The last time.
    left_out
        `LEFT_OUT`: what was left out, by reason, with an example.
    remarks
        What else is to be known of the file.
    """

    output: str
    source: str
    files: int
    prices: int
    games: int
    books: tuple[str, ...]
    results: int
    since: datetime
    until: datetime
    left_out: pl.DataFrame = field(repr=False)
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, output: str, source: str, files: int, written: Written, left_out: LeftOut, remarks: tuple[str, ...]
    ) -> "ImportedHistory":  # fmt: skip
        """Combine what was written with what was left out."""
        return cls(output, source, files, *written, left_out.table(), remarks)

    def __str__(self) -> str:
        """Format it as plain text."""
        when = f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M} UTC"
        books = ", ".join(self.books[:_SHOWN]) + (f" and {len(self.books) - _SHOWN} more" * (len(self.books) > _SHOWN))
        lines = [
            f"{self.output}: {self.prices:,} prices of {_counted(self.games, 'game')} at {books}, {when}",
            f"from {_counted(self.files, 'file')}; final scores of {_counted(self.results, 'game')}",
            *self.remarks,
        ]
        if self.left_out.height:
            width = max(len(f"{n:,}") for n in self.left_out["count"])
            lines += ["left out:"]
            lines += [f"{n:>{width + 2},}  {reason}; {example}" for reason, n, example in self.left_out.iter_rows()]
        return "\n".join(lines)


_SHOWN = 6  # books in the text


def _counted(n: int, one: str) -> str:
    return f"{n:,} {one}{'s' * (n != 1)}"
