"""Parts of a history that are played side by side.

Games do not depend on each other, only on time: a part has the games that start in a stretch of time, and its board
sees every snapshot of the history from its first quote until it is empty, so it shows what the board of all games
shows, to the last digit. Games that start one after the other are quoted at about the same time: so a part has few
snapshots in which only time passes.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.formats import Held, History
from oddsengine.backtesting.processes import check_processes
from oddsengine.columns import Longs
from oddsengine.tables.casts import TIME

_WORTH = 500_000  # quotes: fewer take less time than processes to start


class Part(NamedTuple):
    """Some games of a history."""

    held: Held
    moments: Longs  # the snapshots of the whole history, from the first of this part on
    books: list[str]  # all books of the history in order of appearance, so that they have the same codes in every part

    def history(self) -> History:
        """These games alone, without their results."""
        return History(self.held.pieces(self.moments), (int(self.held.when[0]), int(self.moments[-1])), None)


def parts_for(history: Any, processes: int | None) -> list[Part]:
    """The parts of a history for so many processes, None being one per core where that is worth it.

    There are none if one process plays it whole.

    Raises
    ------
    ValueError
        If `processes` is invalid, or more than 1 for a history that is not in memory.
    """
    count = check_processes(processes)
    if count == 1:
        return []
    if not isinstance(history, History) or history.held is None:
        if processes is None:
            return []
        what = "a history that is read in pieces" if isinstance(history, History) else "a tape"
        raise ValueError(f"{what} is played by one process; processes must be 1 or None, got {processes}")
    if processes is None and history.held.when.size < _WORTH:
        return []
    parts = _cut(history.held, count)
    return parts if len(parts) > 1 else []


def listed(some: Any) -> Any:
    """An iterator as a list, which can be sent to a process; others as they are."""
    return list(some) if isinstance(some, Iterator) else some


def _cut(held: Held, count: int) -> list[Part]:
    """At most so many parts with about as many quotes each."""
    table, first = held.table, held.first()
    quotes = np.ones(first.size, np.int64) if held.row is None else np.bincount(held.row, minlength=first.size)
    event = pl.col("event_id").cast(pl.String).fill_null("")
    known = table.select(event=event, start=_start(table)).with_columns(
        first=pl.Series(first), quotes=pl.Series(quotes)
    )
    games = known.group_by("event").agg(pl.col("start").last(), pl.col("first").min(), pl.col("quotes").sum())
    at = pl.coalesce("start", pl.Series(held.when)[games["first"]])
    games = games.with_columns(at=at).sort("at", "first")
    upto = games["quotes"].cum_sum().to_numpy()
    games = games.with_columns(part=pl.Series((upto - 1) * count // max(int(upto[-1]), 1)))
    part = known.join(games.select("event", "part"), on="event", how="left", maintain_order="left")
    of = part["part"].to_numpy()
    moments = np.unique(held.when)
    books = table["sportsbook"].gather(pl.Series(np.argsort(first, kind="stable"))).drop_nulls()
    names = books.cast(pl.String).unique(maintain_order=True).to_list()
    out = []
    for number in range(count):
        some = held.only(of == number)
        if some.when.size:
            since = moments[np.searchsorted(moments, some.when[0]) :]
            out.append(Part(some, since, names))
    return out


def _start(table: pl.DataFrame) -> pl.Expr:
    """The start of each row's game, microseconds."""
    if "event_start_time" not in table.columns:
        return pl.lit(None, pl.Int64)
    return pl.col("event_start_time").cast(TIME, strict=False).to_physical()
