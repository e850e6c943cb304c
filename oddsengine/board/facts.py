"""Facts: what the board said of some rows at one moment, for whoever shows them later.

Taking facts copies a few numbers a row; the frame is made when it is asked for. The board may change meanwhile.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine.board.names import Names
from oddsengine.board.quotes import LINKS, SEPARATOR
from oddsengine.board.rows import BOOK_BITS, FLAP, LIVE, REJECTED, SUSPENDED, Rows
from oddsengine.casts import TIME
from oddsengine.groups import NO_TIME, Bytes, Floats, Ints, Longs, Words
from oddsengine.identity import WORDING, Wording
from oddsengine.odds import quoted_american
from oddsengine.schema import ODDS_SCHEMA

_TIMES = ("last_seen_at", "odds_changed_at", "event_start_time")
_FLAGS = {"True": True, "False": False}


class Facts(NamedTuple):
    """Rows, in order of slot."""

    slot: Ints
    key: Longs
    id: Words
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs
    start: Longs
    moved: Longs
    flags: Bytes
    rejected: Bytes
    confirmed: Bytes  # a second look agreed
    links: list[str | None]
    wordings: list[Wording]  # by term; only ever grows
    books: list[str]

    @classmethod
    def of(cls, rows: Rows, names: Names, slots: Ints, agree: int) -> "Facts":
        """Take the facts of some distinct slots; `agree` looks in a row at one price confirm it."""
        slots = np.sort(slots)
        links = rows.links
        own: list[str | None] = []
        if links:
            n = len(links)
            own = [links[s] if s < n else None for s in slots.tolist()]
        return cls(
            slots, rows.key[slots], rows.id[slots], rows.odds[slots], rows.american[slots], rows.seen[slots],
            rows.changed[slots], rows.start[slots], rows.moved[slots], rows.flags[slots], rows.rejected[slots],
            (rows.same[slots] >= agree).view(np.uint8), own, names.wordings, names.books,
        )  # fmt: skip

    def places(self, slots: Ints | Longs) -> Longs:
        """Where some slots stand in these columns."""
        return np.searchsorted(self.slot, slots)

    def take(self, at: Longs) -> "Facts":
        """Some of the rows, in any order (`places` then has no meaning)."""
        links = [self.links[i] for i in at.tolist()] if self.links else []
        return Facts._make((*(column[at] for column in self.columns), links, self.wordings, self.books))

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays, one value a row."""
        return cast(tuple[npt.NDArray[Any], ...], self[: self._fields.index("links")])

    @property
    def term(self) -> Longs:
        """The code of each row's wording, in `wordings`."""
        return self.key >> BOOK_BITS

    @property
    def book(self) -> Longs:
        """The code of each row's book, in `books`."""
        return self.key & ((1 << BOOK_BITS) - 1)

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Which rows are in play."""
        return np.asarray((self.flags & LIVE) != 0)

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """Which rows are not suspended."""
        return np.asarray((self.flags & SUSPENDED) == 0)

    @property
    def prices(self) -> Floats:
        """American prices: as given, else as they follow from the decimal."""
        return quoted_american(self.odds, self.american)

    @property
    def texts(self) -> list[Wording]:
        """The wording of each row."""
        wordings = self.wordings
        return [wordings[t] for t in (self.key >> BOOK_BITS).tolist()]

    @property
    def sportsbooks(self) -> list[str]:
        """The book of each row."""
        books = self.books
        return [books[b] for b in (self.key & ((1 << BOOK_BITS) - 1)).tolist()]

    def frame(self) -> pl.DataFrame:
        """The rows as an odds table (`ODDS_SCHEMA`), `id` being the source's own."""
        terms, of = np.unique(self.key >> BOOK_BITS, return_inverse=True)
        wordings = [self.wordings[t] for t in terms.tolist()]
        columns: dict[str, Any] = {
            name: pl.Series(name, [w[at] for w in wordings], dtype=ODDS_SCHEMA[name]).gather(of)
            for at, name in enumerate((*WORDING, "line"))
        }
        columns["sportsbook"] = pl.Series(self.books, dtype=pl.String).gather(self.key & ((1 << BOOK_BITS) - 1))
        columns["odds_decimal"] = self.odds
        columns["odds_american"] = self.prices
        columns["odds_probability"] = 1.0 / self.odds
        columns["is_live"] = (self.flags & LIVE) != 0
        columns["is_active"] = (self.flags & SUSPENDED) == 0
        columns["flap"] = (self.flags & FLAP) != 0
        columns["rejected_upstream"] = (self.flags & REJECTED) != 0
        columns["confirmed"] = self.confirmed != 0
        for name, moments in zip(_TIMES, (self.seen, self.changed, self.start), strict=True):
            columns[name] = moments_of(moments)
        columns.update(_links(self.links, self.slot.size))
        return pl.DataFrame(columns).select(pl.col(name).cast(dtype) for name, dtype in ODDS_SCHEMA.items())


def moments_of(micros: Longs) -> pl.Series:
    """Microseconds as times; null where there is none."""
    column = pl.Series(micros, dtype=pl.Int64)
    return pl.select(pl.when(column != int(NO_TIME)).then(column)).to_series().cast(TIME)


def _links(links: Sequence[str | None], n: int) -> dict[str, pl.Series]:
    """The columns of the rows' own texts."""
    whole = pl.Series("links", links, dtype=pl.String)
    if whole.null_count() == whole.len():
        return {name: pl.repeat(None, n, dtype=ODDS_SCHEMA[name], eager=True) for name in LINKS}
    split = whole.str.split(SEPARATOR).to_frame()
    parts = split.select(
        pl.col("links").list.get(at, null_on_oob=True).replace("", None).alias(name) for at, name in enumerate(LINKS)
    )
    return {
        name: parts[name].replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean)
        if ODDS_SCHEMA[name] == pl.Boolean
        else parts[name].cast(ODDS_SCHEMA[name])
        for name in LINKS
    }
