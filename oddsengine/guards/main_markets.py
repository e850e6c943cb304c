"""The main line of a ladder: the line that most books quote, then the best balanced, then the lowest."""

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Floats, Int, Ints, Longs
from oddsengine.identity.groups import Groups


@kernel
def main_markets(
    at: Int, markets: Longs, segments: Longs, rows: Longs, book: Ints, odds: Floats, reason: Bytes, wanted: Floats,
    stamp: Longs, tick: Int, work: Floats, main_line: Longs, book_counts: Ints,
) -> Int:  # fmt: skip
    """The main line of a ladder for each user, among the accepted prices of the user's books.

    The line with the most books, then the best balanced, then the lowest; `main_line` is set to it, or to `NONE`.
    `wanted` (books, users) is 1.0 or 0.0; `work` is (5, users). `book_counts`, unless empty, is set to the number
    of the first user's books per market. `stamp` must be below `tick` on entry; returns the next tick.

    - `at`: the ladder
    - `markets`, `segments`, `rows`, `book`, `odds`: as in `Groups`; `reason`: as in `RowVerdicts`
    - `tick`: mark of the market in `stamp`
    """
    most, least, count, first, top = work[0], work[1], work[2], work[3], work[4]
    users = main_line.size
    for v in range(users):
        main_line[v], most[v], least[v] = NONE, 0.0, np.inf
    for m in range(markets[at], markets[at + 1]):
        for v in range(users):
            count[v] = first[v] = 0.0
        for s in range(segments[m], segments[m + 1]):
            for v in range(users):
                top[v] = 0.0
            for i in range(rows[s], rows[s + 1]):
                if reason[i] != ACCEPTED:
                    continue
                by_user, x = wanted[book[i]], odds[i]
                for v in range(users):
                    y = x * by_user[v]
                    top[v] = y if y > top[v] else top[v]
                if stamp[book[i]] != tick:
                    stamp[book[i]] = tick
                    for v in range(users):
                        count[v] += by_user[v]
            if s == segments[m]:
                for v in range(users):
                    first[v] = top[v]
        tick += 1
        if book_counts.size:
            book_counts[m] = count[0]
        for v in range(users):
            imbalance = abs(1.0 / first[v] - 1.0 / top[v]) if first[v] > 0.0 and top[v] > 0.0 else np.inf
            if count[v] > most[v] or (count[v] == most[v] and count[v] > 0.0 and imbalance < least[v]):
                most[v], least[v], main_line[v] = count[v], imbalance, m
    return tick


@kernel
def mark_main_lines(
    ladders: Longs, groups: Groups, odds: Floats, reason: Bytes, wanted: Floats, stamp: Longs, work: Floats,
    main_line: Longs, main: Bytes, book_counts: Ints,
) -> None:  # fmt: skip
    """Mark the main line of each ladder, and count the books of each market.

    `odds`, `reason`, `wanted`, `stamp`, `work`, `main_line` and `book_counts` are those of `main_markets`; each `stamp`
    is below 0.

    - `ladders`: those to look at
    - `main` (uint8 per market): set to 1 for a main line
    """
    tick: Int = np.int64(0)
    for at in ladders:
        tick = main_markets(
            at, groups.markets, groups.segments, groups.rows, groups.book, odds, reason, wanted, stamp, tick, work,
            main_line, book_counts,
        )  # fmt: skip
        if main_line[0] >= 0:
            main[main_line[0]] = 1


def main_lines(
    groups: Groups, odds: Floats, reason: Bytes, books: int, ladders: Longs | None = None
) -> tuple[Bytes, Ints]:
    """1 for the main line of each ladder among the accepted prices, and the number of books of each market.

    With `ladders`, only these are looked at.
    """
    ladders = np.arange(groups.event.size) if ladders is None else ladders
    main, offered = np.zeros(groups.threshold.size, np.uint8), np.zeros(groups.threshold.size, np.int32)
    mark_main_lines(
        ladders, groups, odds, reason, np.ones((books, 1)), np.full(books, -1, np.int64), np.empty((5, 1)),
        np.empty(1, np.int64), main, offered,
    )  # fmt: skip
    return main, offered
