"""The slow twin of the engine: rows in, verdicts and opportunities out, by enumeration.

It imports nothing of the package. Read `quotes` (what a price is), `identity` (a row to its
market), `guards` (what is rejected), `detection` and `middles` (what is found).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from naive.detection import (
    Combination,
    Leg,
    Settings,
    Value,
    View,
    books_at_best,
    find_arbitrage,
    find_ev,
    find_low_hold,
    view,
)
from naive.guards import ALL_GUARDS, GUARDS, Verdict, judge
from naive.identity import Row, identify, load_books
from naive.middles import Middle, Tail, expected_return, find_middles, generous, known_tail, probability
from naive.quotes import Book, Family, Quote, World


@dataclass
class Scan:
    """Everything that the twin says of one table under one set of settings."""

    rejected: dict[int, str]
    board: View

    @property
    def arbitrage(self) -> list[Combination]:
        return find_arbitrage(self.board)

    @property
    def low_hold(self) -> list[Combination]:
        return find_low_hold(self.board)

    @property
    def ev(self) -> list[Value]:
        return find_ev(self.board)

    @property
    def middles(self) -> list[Middle]:
        return find_middles(self.board)


def scan(rows: Sequence[Row], settings: Settings, now: int) -> Scan:
    """Identity, guards and the user's view of a table."""
    world = World(now, load_books())
    quotes, reasons = identify(rows, settings.guards)
    verdict = judge(quotes, world, settings.guards)
    return Scan(reasons | verdict.aside, view(verdict.survivors, verdict.stingy, verdict.doubtful, world, settings))


__all__ = [
    "ALL_GUARDS",
    "GUARDS",
    "Book",
    "Combination",
    "Family",
    "Leg",
    "Middle",
    "Quote",
    "Row",
    "Scan",
    "Settings",
    "Tail",
    "Value",
    "Verdict",
    "View",
    "World",
    "books_at_best",
    "expected_return",
    "find_arbitrage",
    "find_ev",
    "find_low_hold",
    "find_middles",
    "generous",
    "identify",
    "judge",
    "known_tail",
    "load_books",
    "probability",
    "scan",
    "view",
]
