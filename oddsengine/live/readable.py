"""What can be read of a live board, by any thread; each result is of the state after one step."""

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager
from datetime import datetime

import numpy as np
import polars as pl

from oddsengine.board.event_status import STATUSES
from oddsengine.board.facts import moments_of
from oddsengine.catalog.reasons import ACCEPTED, CODES, NAMES
from oddsengine.columns import Floats, Ints
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.identity.groups import mix
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, FREE, LIVE, REMOVED
from oddsengine.live.key import ViewKey
from oddsengine.live.replica import ReadState
from oddsengine.live.view import View
from oddsengine.tables.timestamps import time_of


class Readable(ABC):
    """A live board that can be read: an engine, or its board of some time ago."""

    @abstractmethod
    def shown(self, *, judged: bool = True) -> AbstractContextManager[ReadState]:
        """The state after the last step, for readers; it does not change until the end of the with statement.

        With `judged` false, verdicts may be those of an earlier step.
        """

    @property
    @abstractmethod
    def number(self) -> int:
        """Number of completed steps."""

    @property
    @abstractmethod
    def now(self) -> datetime | None:
        """Time of the last step."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a reader would wait for another thread."""

    @abstractmethod
    def _view(self, wanted: ViewKey) -> View | None:
        """The view with some parameters, if there is one."""

    def __repr__(self) -> str:
        at = "no time yet" if self.now is None else f"{self.now:%Y-%m-%d %H:%M:%S}"
        return f"<{type(self).__name__}: {self.number:,} steps, {self.size:,} prices, {at}>"

    @property
    def size(self) -> int:
        """Number of prices on the board."""
        with self.shown(judged=False) as shown:
            return int(shown.board.on().size)

    @property
    def accepted(self) -> int:
        """Number of prices on the board that are not rejected."""
        with self.shown() as shown:
            board = shown.board
            return int(np.count_nonzero(board.rows.reason[board.on()] == ACCEPTED))

    @property
    def views(self) -> tuple[View, ...]:
        """The active views."""
        with self.shown(judged=False) as shown:
            return tuple(view for wanted in shown.rows if (view := self._view(wanted)) is not None)

    @property
    def moment(self) -> datetime | None:
        """The whole second at which ages are judged."""
        with self.shown(judged=False) as shown:
            return time_of(shown.board.moment)

    def table(self) -> pl.DataFrame:
        """Every price on the board as an odds table, with our own `row_id`.

        Where prices at the close are asked for, `momentum` is what the board remembers: `find_all` over the table then
        finds what a view does.
        """
        with self.shown() as shown:
            facts = shown.board.facts(shown.board.on())
            momentum = _momentum(shown, facts.slot) if shown.samples else None
        frame = facts.frame().with_columns(row_id=pl.Series(hexadecimal(facts.id), dtype=pl.String))
        return frame if momentum is None else frame.with_columns(momentum=pl.Series(momentum))

    def removed(self) -> pl.DataFrame:
        """Rows removed within the last ten minutes: id, book, event, time."""
        with self.shown(judged=False) as shown:
            rows = shown.board.rows
            removed = np.flatnonzero(rows.state[: rows.top] == REMOVED).astype(np.int32)
            facts = shown.board.facts(removed)
        frame = facts.frame().select("sportsbook", "event_id")
        return frame.with_columns(
            id=pl.Series(hexadecimal(facts.id), dtype=pl.String), removed_at=moments_of(facts.moved)
        )

    def rejected_counts(self) -> dict[str, int]:
        """Number of rows rejected by each guard and by identity, and of invalid rows so far."""
        with self.shown() as shown:
            board = shown.board
            counts = np.bincount(board.rows.reason[board.on()], minlength=len(NAMES))
            rejected = {NAMES[at]: int(counts[at]) for at in range(1, len(NAMES)) if counts[at]}
            for name, n in sorted(board.rejected.items()):
                rejected[name] = rejected.get(name, 0) + n
            return rejected

    def rejected_by(self, guard: str) -> pl.DataFrame:
        """Number of prices per book and event, and how many of them a guard rejects."""
        with self.shown() as shown:
            board = shown.board
            on = board.on()
            key, reason = board.rows.key[on], board.rows.reason[on]
            events, books = list(board.names.events.values), tuple(board.names.books.values)
            event = board.names.terms.event.values[key >> BOOK_BITS].astype(np.int64)
        width = max(1, len(books))
        # Most books have no price on most events, so pairs without prices are not counted.
        some, place, prices = np.unique(
            event * width + (key & BOOK_MASK), return_inverse=True, return_counts=True
        )  # fmt: skip
        rejected = np.bincount(place[reason == CODES[guard]], minlength=some.size)
        return pl.DataFrame(
            {
                "event_id": pl.Series(events, dtype=pl.String).gather(some // width),
                "sportsbook": pl.Series(books, dtype=pl.String).gather(some % width),
                "prices": prices,
                "rejected": rejected,
            }
        )

    def open_counts(self) -> dict[str, int]:
        """Numbers of open opportunities, by kind; one that several views show counts once."""
        with self.shown(judged=False) as shown:
            table = shown.opened
            some = {
                pair
                for row in shown.rows.values()
                for at in [table.places(row)]
                for pair in zip(table.kind[at].tolist(), table.id[at].tolist(), strict=True)
            }
        counts = Counter(kind for kind, _ in some)
        return {name: counts[code] for code, name in enumerate(KINDS)}

    def events(self) -> pl.DataFrame:
        """Every event with a price on the board: status, start, prices, books."""
        with self.shown(judged=False) as shown:
            board = shown.board
            on = board.on()
            key = board.rows.key[on]
            event, live = board.names.terms.event.values[key >> BOOK_BITS], (board.rows.flags[on] & LIVE) != 0
            ids = list(board.names.events.values)
            status, begins = board.statuses()
        frame = pl.DataFrame({"event": event, "book": key & BOOK_MASK, "live": live})
        facts = frame.group_by("event").agg(
            prices=pl.len(), book_count=pl.col("book").n_unique(), live_prices=pl.col("live").sum()
        )
        at = facts["event"]
        return facts.select(
            pl.Series("event_id", ids, dtype=pl.String).gather(at),
            pl.Series("status", STATUSES, dtype=pl.String).gather(status[at.to_numpy()]),
            moments_of(begins[at.to_numpy()]).alias("event_start_time"),
            "prices", "book_count", "live_prices",
        ).sort("event_id")  # fmt: skip

    def state_hash(self, *, views: bool = True) -> str:
        """Hash of the board and the open opportunities, 16 hexadecimal digits; equal states have equal hashes.

        With `views` false, it covers only the board, without views and their momentum.
        """
        with self.shown(judged=False) as shown:
            board, table = shown.board, shown.opened
            rows = board.rows
            held = np.flatnonzero(rows.state[: rows.top] != FREE)
            depth = rows.depth[held]
            levels = rows.levels.total(rows.record[held], depth) + np.where(depth, rows.level[held], 0)
            parts = mix(
                rows.id[held], rows.odds[held].view(np.int64), rows.seen[held], rows.changed[held], rows.start[held],
                rows.state[held], rows.flags[held], rows.moved[held], rows.observations[held], depth,
                np.nan_to_num(rows.american[held]).view(np.int64), levels,
            )  # fmt: skip
            total = int(parts.sum(dtype=np.uint64)) ^ board.notices.digest()
            if views:
                total ^= board.momentum.digest()
            for wanted in sorted(shown.rows, key=repr) if views else ():
                at = shown.open(wanted).places()
                figures = table.figures[at].view(np.int64)
                found = mix(table.id[at], table.kind[at], *figures.T, table.detected_at[at])
                total = (total * 31 + int(found.sum(dtype=np.uint64))) & ((1 << 64) - 1)
            return f"{(total * 31 + board.number) & ((1 << 64) - 1):016x}"


def _momentum(shown: ReadState, slots: Ints) -> Floats:
    """Momentum of some rows' outcomes, 0 if unknown."""
    board = shown.board
    some = board.gather(np.flatnonzero(board.partitions.size[: board.names.partitions.size]))
    g = some.groups
    read, _ = board.estimated(some, board.rows.reason[g.row], g.row, shown.fair)
    out = np.zeros(board.rows.top)
    if read.momentum is not None:
        two = g.outcomes[g.market] == 2
        moved = read.momentum[g.ladder[g.market], np.where(two, 0, g.side)]
        out[g.row] = np.where(two & (g.side == 1), -moved, moved)
    return np.asarray(out[slots])
