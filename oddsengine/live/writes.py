"""What an engine writes to its state, and copies repeat."""

from oddsengine.board.open import Difference, Hits
from oddsengine.board.state import Batch
from oddsengine.catalog import FairTable
from oddsengine.columns import Bytes, Ints, Longs
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.live.key import ViewKey
from oddsengine.live.replica import ReadState, Write
from oddsengine.pricing.momentum import LadderSamples, Memory


def applied(batch: Batch) -> Write:
    """A batch was applied."""

    def write(shown: ReadState) -> None:
        if shown.board.repeat(batch).regrouped:
            shown.opened.rehome(shown.board.rows.partition)

    return write


def judged(slots: Ints, guarded: Verdicts, verdicts: Bytes, rejected: Bytes) -> Write:
    """Rows were judged."""
    return lambda shown: shown.board.judge(slots, guarded, verdicts, rejected)


def searched(rows: Longs, partitions: Longs, hits: Hits, difference: Difference, now: int) -> Write:
    """Views were searched."""
    return lambda shown: shown.opened.commit(rows, partitions, hits, difference, now)


def sampled(found: LadderSamples, memory: Memory) -> Write:
    """Momentum changed."""
    books = memory.books()

    def write(shown: ReadState) -> None:
        shown.board.momentum.rename(dict(books))
        shown.board.momentum.commit(found)

    return write


def sampling(shown: ReadState) -> None:
    """Momentum is sampled from now on."""
    shown.samples, shown.board.momentum = True, Memory()


def refitted(fair: FairTable) -> Write:
    """The constants of the fair price are others."""

    def write(shown: ReadState) -> None:
        shown.fair = fair

    return write


def added(row: int) -> Write:
    """A view got a row of the open table."""

    def write(shown: ReadState) -> None:
        made = shown.opened.add().row
        assert made == row, f"the replica gave row {made} to a view, the engine {row}"

    return write


def resumed(view: ViewKey, row: int, places: Ints, detected_at: Longs) -> Write:
    """A view became active."""

    def write(shown: ReadState) -> None:
        shown.opened.detected_at[places] = detected_at
        shown.rows[view] = row

    return write


def suspended(view: ViewKey, row: int) -> Write:
    """A view was suspended."""

    def write(shown: ReadState) -> None:
        shown.rows.pop(view, None)
        shown.opened.drop(row)

    return write


def completed(number: int, numbering: list[RawLabel], *, renumbered: bool) -> Write:
    """A step was completed; `numbering` identifies its codes of terms, see `Names`."""

    def write(shown: ReadState) -> None:
        board = shown.board
        board.keep()
        board.number = number
        if renumbered:
            board.renumber()
            shown.opened.rehome(board.rows.partition)
        board.names.numbering = numbering

    return write
