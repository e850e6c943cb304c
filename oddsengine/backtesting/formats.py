"""Histories of prices as sequences of snapshots.

Four kinds of table are recognised by their columns:

- *spells*: one row per outcome and interval of an unchanged price, with `seen_from` and `seen_to`. `update_from` and
  `update_to` are the source's own times at both ends. Player props have a `player`.
- *props*: one row per player, line, book and `look`, with the odds `over` and `under`; `actual` is the player's number
  after the game.
- *openings*: football results with opening and closing odds, one row per game and book (`open_home`, `close_home`,
...).
- *quotes*: odds tables (`ODDS_SCHEMA`, or common names for its columns), one row per observation of a price, ordered by
  `recorded_at`, as in an `archive`, or else by `last_seen_at`. Columns `home_score` and `away_score`, or `home_goals`
  and `away_goals`, are final scores.

Times can have any form accepted by `check_odds`. Rows must have the time that orders them.

Quotes within `every` seconds are one snapshot, at the time of the last one. Lazy odds tables and archives are read in
pieces in order of time: a first query counts the quotes per minute, then each piece is a query for some minutes, for
which Parquet reads only the needed row groups. Lazy tables of more than a million spells are read game by game
(`parts`). Other tables are read at once.

Tapes are replayed by the engine itself; see `replay`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.board.row_links import LINKS
from oddsengine.bounds import excerpt
from oddsengine.columns import Bools, Longs, Words, spans
from oddsengine.feeds.football_data import CLOSE_M, MARKET_AVERAGE, START_H
from oddsengine.identity.groups import intern
from oddsengine.tables.casts import CASTS, TIME, on_calendar
from oddsengine.tables.column_names import Columns
from oddsengine.tables.files import scan_table
from oddsengine.tables.levels import DEPTH_SCHEMA
from oddsengine.tables.schema import ODDS_SCHEMA, with_games

SPELLS = ("event", "book", "market", "selection", "odds", "seen_from", "seen_to", "start")
OPENINGS = ("division", "date", "home", "away", "book", "open_home", "open_draw", "open_away")
PROPS = ("event", "player", "market", "line", "book", "look", "over", "under", "start")
MARKETS = {"spread": "point_spread", "total": "total_points"}
"""Market types of price intervals, by their names there."""
_SHOWN = 40  # columns, and characters of each, in an error
_CLOCKS = ("recorded_at", "last_seen_at")  # time at which a row was known; the first that exists
_GAMES = ("event_id", "sportsbook", "event_start_time")
_NO_BOOKS = (MARKET_AVERAGE, "market_best")
OPENING_TIMES = {"open": 24 * 60, "close": CLOSE_M}
"""Minutes before the start at which both prices of openings count as seen."""
_SIDES = {"home": "Home", "draw": "Draw", "away": "Away"}


PIECE = 1 << 18  # approximate quotes read at a time
WHOLE = 1_000_000  # spells of a lazy table that are read at once
_HELD = 1 << 16  # the same of a table in memory, of which more pieces cost nothing
_MINUTE = 60_000_000
_MOST_EVERY = 31_536_000


class Snapshot(NamedTuple):
    """One snapshot: prices as quotes, and removed prices as suspended quotes."""

    now: datetime
    quotes: pl.DataFrame


class Repeated(NamedTuple):
    """Quotes of rows that differ only in these columns from one time to the next."""

    row: Longs  # per quote: its row
    seen: Longs  # the time of the source
    live: Bools


class Piece(NamedTuple):
    """Quotes of many snapshots in order of time, with their snapshots' times."""

    table: pl.DataFrame  # their rows, in order of their first quote
    now: Longs
    moments: Longs | None = None  # all snapshots, also those without quotes; None: those of the quotes
    repeated: Repeated | None = None  # None: each row is one quote

    @property
    def quotes(self) -> pl.DataFrame:
        """The quotes as a table."""
        if self.repeated is None:
            return self.table
        row, seen, live = self.repeated
        return self.table[row].with_columns(
            pl.Series("last_seen_at", seen).cast(TIME), pl.Series("is_live", live)
        )  # fmt: skip


class Seen(NamedTuple):
    """How rows of a table are quoted."""

    row: Longs  # per quote: the row
    seen: Longs  # per quote: the time of the source
    active: Bools  # per quote
    start: Longs  # per row

    def only(self, rows: Bools, quotes: Bools) -> "Seen":
        """Some rows and their quotes."""
        place = np.cumsum(rows) - 1
        return Seen(place[self.row[quotes]], self.seen[quotes], self.active[quotes], self.start[rows])


class Held(NamedTuple):
    """Quotes in memory, in order of time: rows of a table, which may be quoted more than once."""

    table: pl.DataFrame
    when: Longs  # per quote: its snapshot
    seen: Seen | None = None  # None: each row is one quote

    def pieces(self, moments: Longs | None = None) -> Iterator[Piece]:
        """Pieces of whole snapshots; `moments` are those of a longer history, from the first of these on."""
        begin, at, end = 0, 0, 0
        while begin < self.when.size:
            end = min(begin + _HELD, self.when.size)
            if end < self.when.size:
                end = int(np.searchsorted(self.when, self.when[end], side="right"))
            some = None
            if moments is not None:
                upto = int(np.searchsorted(moments, self.when[end - 1], side="right"))
                some, at = moments[at:upto], upto
            yield self._piece(slice(begin, end), some)
            begin = end
        if moments is not None:
            yield self._piece(slice(0, 0), moments[at:])

    def _piece(self, cut: slice, moments: Longs | None) -> Piece:
        when = self.when[cut]
        if self.seen is None:
            return Piece(self.table[cut], when, moments)
        row, seen, active, start = self.seen
        of, first = intern((row[cut] << 1 | active[cut]).view(np.uint64))  # a suspended price is a row of its own
        rows = row[cut][first]
        table = self.table[rows].with_columns(pl.Series("is_active", active[cut][first]))
        return Piece(table, when, moments, Repeated(of.astype(np.int64), seen[cut], start[row[cut]] <= when))

    def listing(self) -> pl.DataFrame:
        """Its games: `event`, `start`, `earliest` and `first`, and the number of `quotes`.

        The times are microseconds: its last and first start, null if a row has none, and its first quote.
        """
        first = self._first()
        quotes = (
            np.ones(first.size, np.int64) if self.seen is None else np.bincount(self.seen.row, minlength=first.size)
        )
        rows = self.table.select(event=_event_of("event_id"), start=_start_of(self.table.columns)).with_columns(
            first=pl.Series(self.when[first]), quotes=pl.Series(quotes)
        )
        return rows.group_by("event").agg(*_GAME, pl.col("quotes").sum())

    def moments(self) -> Longs:
        """All snapshots."""
        return np.unique(self.when)

    def books(self) -> list[str]:
        """Its books in order of appearance, so that they have the same codes in every part of it."""
        dtype = self.table.schema.get("sportsbook")
        if dtype not in (pl.String, pl.Categorical, pl.Enum):  # what is wrong is said when its rows are checked
            return []
        books = self.table["sportsbook"]
        if self.seen is not None:
            books = books.gather(pl.Series(np.argsort(self._first(), kind="stable")))
        return books.drop_nulls().cast(pl.String).unique(maintain_order=True).to_list()

    def only(self, events: list[str], starts: tuple[int, int] | None = None, moments: Longs | None = None) -> "Held":
        """The quotes of some games."""
        rows = self.table.select(_event_of("event_id").is_in(events)).to_series().to_numpy()
        quotes = rows if self.seen is None else rows[self.seen.row]
        seen = None if self.seen is None else self.seen.only(rows, quotes)
        return Held(self.table.filter(rows), self.when[quotes], seen)

    def _first(self) -> Longs:
        """Per row: its first quote."""
        if self.seen is None:
            return np.arange(self.when.size)
        first = np.full(self.table.height, self.when.size, np.int64)
        np.minimum.at(first, self.seen.row, np.arange(self.when.size))
        return first


class Stored(NamedTuple):
    """Spells or an odds table in files, of which some games at a time are read."""

    query: pl.LazyFrame
    event: str
    book: str
    start: str
    first: str  # time of a row
    last: str  # and, of spells, that of its end
    width: int  # microseconds that are one snapshot of an odds table; 0: spells

    def listing(self) -> pl.DataFrame:
        """As `Held.listing`, and the number of `rows`; the `quotes` of price intervals are estimated.

        They are so many as if prices were seen at all snapshots of their games alike, of which each begins or ends one.
        """
        first, last = pl.col("first"), pl.col("last")
        quotes = pl.len()
        if not self.width:
            span = (last.max() - first.min()).clip(1)
            looks = pl.max_horizontal(first.n_unique(), last.n_unique())
            quotes += ((last - first).sum() / span * looks).cast(pl.Int64)
        start = self.time(self.start) if self.start in self.query.collect_schema() else pl.lit(None, pl.Int64)
        times = {"first": self.time(self.first), "last": self.time(self.last)}
        return _collected(
            self.query.select(event=_event_of(self.event), start=start, **times)
            .group_by("event")
            .agg(*_GAME, quotes=quotes, rows=pl.len())
        )

    def moments(self) -> Longs:
        """All snapshots."""
        if self.width:
            time = self.query.select(time=self.time(self.first))
            last = _collected(time.group_by(pl.col("time") // self.width).agg(pl.col("time").max().alias("last")))
            return np.sort(last["last"].to_numpy())
        seen = [_collected(self.query.select(self.time(name)).unique()).to_series() for name in (self.first, self.last)]
        return np.unique(np.concatenate([times.to_numpy() for times in seen]))

    def books(self) -> list[str]:
        """As `Held.books`."""
        rows = self.query.select(book=pl.col(self.book).cast(pl.String), first=self.time(self.first))
        begun = _collected(rows.group_by("book").agg(pl.col("first").min()))
        early = self.query.filter(self.time(self.first).is_in(begun["first"].unique().implode()))  # few rows
        found = _collected(
            early.select(
                book=pl.col(self.book).cast(pl.String), first=self.time(self.first), event=_event_of(self.event)
            )
        ).with_row_index("row")
        order = ("first", "row") if self.width else ("first", "event", "row")
        found = found.join(begun, on=["book", "first"], how="semi").drop_nulls("book").sort(order)
        return found["book"].unique(maintain_order=True).to_list()

    def only(
        self, events: list[str], starts: tuple[int, int] | None = None, moments: Longs | None = None
    ) -> Held:  # fmt: skip
        """The quotes of some games, which start between two times; `moments` are all snapshots of an odds table."""
        rows = self.query.filter(_event_of(self.event).is_in(events))
        dtype = self.query.collect_schema().get(self.start)
        if starts is not None and isinstance(dtype, pl.Datetime):  # which row groups of Parquet have statistics of
            low, after = (pl.lit(each).cast(dtype) for each in _in_unit(*starts, dtype.time_unit))
            rows = rows.filter(pl.col(self.start) >= low, pl.col(self.start) < after)
        table = _collected(rows)
        if not self.width:
            return _held_spells(table)
        return Held(*_ordered(table, self.width, moments))

    def about(self) -> pl.DataFrame:
        """What games of price intervals are called: `event_id`, `sport`, `league`, `home_team`, `away_team`."""
        known = self.query.collect_schema()
        names = {"sport": "sport", "league": "league", "home_team": "home", "away_team": "away"}
        texts = {to: pl.col(name) if name in known else pl.lit(None, pl.String) for to, name in names.items()}
        return _collected(self.query.select(event_id=_event_of(self.event), **texts).unique())

    def time(self, name: str) -> pl.Expr:
        """A time in microseconds."""
        return _lazy_time(name, self.query.collect_schema()[name])[0].dt.epoch("us").alias(name)


def _in_unit(first: int, last: int, unit: str) -> tuple[int, int]:
    """The first and after the last of some microseconds, in another unit."""
    if unit == "ns":
        return first * 1000, (last + 1) * 1000
    return (first // 1000, last // 1000 + 1) if unit == "ms" else (first, last + 1)


_GAME = (
    pl.col("start").max(), pl.when(pl.col("start").is_not_null().all()).then(pl.col("start").min()).alias("earliest"),
    pl.col("first").min(),
)  # fmt: skip


def _collected(query: pl.LazyFrame) -> pl.DataFrame:
    try:
        return query.collect(engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"the history cannot be read: {str(error).splitlines()[0]}") from None


def _event_of(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).fill_null("")


def _start_of(columns: Iterable[str]) -> pl.Expr:
    """The start of each row's game, microseconds."""
    if "event_start_time" not in columns:
        return pl.lit(None, pl.Int64)
    return pl.col("event_start_time").cast(TIME, strict=False).to_physical()


class History(NamedTuple):
    """A history in order of time, with the results of its games."""

    pieces: Iterator[Piece]
    span: tuple[int, int]  # first and last snapshot
    results: pl.DataFrame | None  # event_id, home_goals, away_goals
    stats: pl.DataFrame | None = None  # event_id, player_name, market_type, actual: players' numbers after the games
    games: Held | Stored | None = None  # of which parts are made
    books: Sequence[str] = ()  # those that are numbered first

    @classmethod
    def of(cls, held: Held) -> "History":
        """A history in memory."""
        return cls(held.pieces(), _span(held.when), None, games=held, books=held.books())

    @property
    def snapshots(self) -> Iterator[Snapshot]:
        """The snapshots, one after the other."""
        for piece in self.pieces:
            quotes = piece.quotes
            for moment, a, b in cuts(piece.now):
                yield Snapshot(_moment(moment), quotes[a:b])


def cuts(now: Longs, moments: Longs | None = None) -> Iterator[tuple[int, int, int]]:
    """Return the snapshots of a piece: their times, or those given, and row ranges."""
    moments = np.unique(now) if moments is None else moments
    first, end = np.searchsorted(now, moments), np.searchsorted(now, moments, side="right")
    return zip(moments.tolist(), first.tolist(), end.tolist(), strict=True)


def is_own_format(names: Iterable[str]) -> bool:
    """Whether a history is of price intervals, props or openings, and not an odds table."""
    return any({*names} >= {*some} for some in (SPELLS, PROPS, OPENINGS))


def read_history(table: pl.DataFrame | pl.LazyFrame, every: float = 1.0, columns: Columns | None = None) -> History:
    """Detect the format of a history by its columns; `columns` as for `check_odds`.

    Raises `ValueError` if the columns match no format, or `every` is not a number above 0.
    """
    if not 0.0 < every <= _MOST_EVERY:
        raise ValueError(
            f"every must be a number of seconds above 0, at most {_MOST_EVERY:,} (a year), got {excerpt(every)}"
        )
    given = set(table.collect_schema().names())
    if not columns and given >= set(SPELLS):
        return lazy_spells(table) if isinstance(table, pl.LazyFrame) else spells(table)
    if not columns and given >= set(PROPS):
        return props(table.lazy().collect())
    if not columns and given >= set(OPENINGS):
        return openings(table.lazy().collect())
    table = with_games(table, columns)
    own_names = set(table.collect_schema().names())
    if own_names >= {"sportsbook", "event_id", "market_type", "selection"} and own_names & set(_CLOCKS):
        width = max(round(every * 1e6), 1)
        history = quotes(table, width) if isinstance(table, pl.DataFrame) else lazy_quotes(table, width)
        return history._replace(results=_results(table))
    came = ", ".join(name[:_SHOWN] for name in sorted(given)[:_SHOWN])
    raise ValueError(
        f"a history must have the columns of price intervals ({', '.join(SPELLS)}), of player props "
        f"({', '.join(PROPS)}), of opening and closing odds ({', '.join(OPENINGS)}) or of an odds table with "
        f"last_seen_at, got {came or 'none'}; for an odds table with other names, read it with "
        "read_odds(path, columns={its name: 'last_seen_at', ...}); backtest takes columns itself"
    )


def scan_files(path: str, storage_options: Mapping[str, Any] | None = None) -> pl.LazyFrame:
    """Return a lazy query over a file, a folder of Parquet files, a glob pattern or a URL, with polars' readers.

    Raises `ValueError` if the suffix is unknown.
    """
    table = scan_table(path, storage_options, infer_schema_length=None, try_parse_dates=True)
    if table is not None:
        return table
    raise ValueError(
        "a history must be a tape, a folder of Parquet files, or a .parquet, .ndjson, .jsonl or .csv file, "
        f"got {excerpt(path)}"
    )


def _micros(column: pl.Series) -> Longs:
    return column.cast(TIME).to_physical().to_numpy().astype(np.int64)


def _timed(table: pl.DataFrame, needed: tuple[str, ...], others: tuple[str, ...]) -> pl.DataFrame:
    """Parse the times of a table; every row must have the required ones."""
    cast, _ = CASTS[pl.Datetime]
    made = []
    for name in (name for name in (*needed, *others) if name in table.columns):
        column = on_calendar(table[name])
        if column.dtype in (pl.Categorical, pl.Enum, pl.Null):
            column = column.cast(pl.String)
        read = column if column.dtype == TIME else cast(column).alias(name)
        if name in needed and read.null_count():
            row = int(read.is_null().arg_max() or 0)
            raise ValueError(
                f"{name} must be a time in every row, "
                f"got {excerpt(column[row])} in row {row} ({read.null_count()} in all)"
            )
        made.append(read)
    return table.with_columns(made)


def lazy_spells(table: pl.LazyFrame) -> History:
    """Read spells, many of them game by game."""
    stored = Stored(table, "event", "book", "start", "seen_from", "seen_to", 0)
    begin, end = pl.col("seen_from"), pl.col("seen_to")
    known = table.select(stored.time("seen_from"), stored.time("seen_to")).select(
        pl.len(), begin.min(), end.max(), missing=begin.is_null().any() | end.is_null().any()
    )
    count, first, last, missing = _collected(known).row(0)
    if count <= WHOLE or missing:
        return spells(_collected(table))

    def pieces() -> Iterator[Piece]:  # for what needs them in order of time
        yield from _held_spells(_collected(table)).pieces()

    return History(pieces(), (first, last), None, games=stored)


def spells(table: pl.DataFrame) -> History:
    """Read spells; snapshots are the times at which any price of an event was first or last seen."""
    return History.of(_held_spells(table))


def _held_spells(table: pl.DataFrame) -> Held:
    table = _timed(table, ("seen_from", "seen_to"), ("update_from", "update_to", "start"))
    d = table.with_columns(
        pl.col("line").cast(pl.Float64) if "line" in table.columns else pl.lit(None, pl.Float64).alias("line"),
        *(
            pl.col(name) if name in table.columns else pl.col(name.replace("update", "seen")).alias(name)
            for name in ("update_from", "update_to")
        ),
        *(
            pl.lit(None, pl.String).alias(n)
            for n in ("sport", "league", "home", "away", "player")
            if n not in table.columns
        ),
    )
    begin, end, up, last, start = (
        _micros(d[name]) for name in ("seen_from", "seen_to", "update_from", "update_to", "start")
    )
    code = d["event"].rank("dense").to_numpy().astype(np.int64) - 1
    key = d.select(pl.struct("event", "book", "market", "player", "selection", "line").hash()).to_series().to_numpy()
    until = end - _replaced(key, begin, end)
    spell, moment = _seen(code, begin, end, until)
    removed, left = _removed(code, key, begin, end, until)
    width = np.maximum(end - begin, 1)
    # In between, the source's own time is interpolated, up to the time seen.
    seen = np.minimum(moment, up[spell] + (moment - begin[spell]) * ((last - up)[spell] / width[spell])).astype(
        np.int64
    )
    row = np.concatenate((spell, removed))
    when = np.concatenate((moment, left))
    seen = np.concatenate((seen, left))
    active = np.concatenate((np.ones(spell.size, bool), np.zeros(removed.size, bool)))
    order = np.argsort(when, kind="stable")
    row, when, seen, active = row[order], when[order], seen[order], active[order]
    side = pl.col("selection")
    home, away = (pl.col(name).fill_null(_SIDES[name]) for name in ("home", "away"))
    facts = d.select(
        sportsbook="book",
        event_id="event",
        sport="sport",
        league="league",
        home_team=home,
        away_team=away,
        market_type=pl.col("market").replace(MARKETS),
        selection=team_or(side, home, away, side.str.to_titlecase()),
        selection_type=side,
        player_name="player",
        line="line",
        odds_decimal="odds",
        event_start_time=pl.col("start").cast(TIME),
        odds_changed_at=pl.Series(begin).cast(TIME),
    )
    return Held(facts, when, Seen(row, seen, active, start))


def props(table: pl.DataFrame) -> History:
    """Read snapshots of player props as spells of one observation each."""
    sides = [
        table.filter(pl.col(side) > 1.0).with_columns(selection=pl.lit(side), odds=pl.col(side), at=pl.col("look"))
        for side in ("over", "under")
    ]
    keep = [name for name in ("event", "sport", "league", "home", "away", "player", "market", "line", "book", "start")
            if name in table.columns]  # fmt: skip
    rows = pl.concat(sides).select(*keep, "selection", "odds", seen_from="at", seen_to="at")
    stats = None
    if "actual" in table.columns:
        known = table.select(event_id="event", player_name="player", market_type="market", actual="actual")
        stats = known.drop_nulls().unique(["event_id", "player_name", "market_type"], keep="first", maintain_order=True)
    return spells(rows)._replace(stats=stats)


def team_or(side: pl.Expr, home: pl.Expr, away: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Return the team of a side; `other` if it is not one's."""
    return pl.when(side == "home").then(home).when(side == "away").then(away).otherwise(other)


def _span(when: Longs) -> tuple[int, int]:
    return (int(when[0]), int(when[-1])) if when.size else (0, 0)


def _moment(micros: int) -> datetime:
    return pl.Series([micros]).cast(TIME).to_list()[0]  # type: ignore[no-any-return]


def _by_event(event: Longs, begin: Longs, end: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Yield the spells of each event, and the times of its snapshots."""
    order = np.argsort(event, kind="stable")
    for of in np.split(order, np.flatnonzero(np.diff(event[order])) + 1):
        yield of, np.unique(np.concatenate((begin[of], end[of])))


def _replaced(key: Words, begin: Longs, end: Longs) -> Bools:
    """Which spells end at the very time at which another of the same price begins: then it counts.

    Of those that only have this time, one that goes on counts.
    """
    spell = pl.DataFrame({"key": key, "begin": begin, "end": end}).with_columns(long=pl.col("begin") < pl.col("end"))
    following = spell.group_by("key", end="begin").agg(goes_on=pl.col("long").any())
    found = spell.join(following, on=["key", "end"], how="left", maintain_order="left")["goes_on"]
    return (found.is_not_null() & (spell["long"] | found.fill_null(value=False))).to_numpy()


def _seen(event: Longs, begin: Longs, end: Longs, until: Longs) -> tuple[Longs, Longs]:
    """Expand spells to every snapshot of their event up to a time each: spell, time."""
    spells_, moments = [], []
    for of, snapshots in _by_event(event, begin, end):
        first, last = np.searchsorted(snapshots, begin[of]), np.searchsorted(snapshots, until[of], side="right")
        spells_.append(np.repeat(of, last - first))
        moments.append(snapshots[spans(first, last)])
    return np.concatenate(spells_), np.concatenate(moments)


def _removed(event: Longs, key: Words, begin: Longs, end: Longs, until: Longs) -> tuple[Longs, Longs]:
    """Find spells without a successor of the same price, and the event's next snapshot."""
    spells_, moments = [], []
    for of, snapshots in _by_event(event, begin, end):
        after = np.searchsorted(snapshots, until[of], side="right")
        early = after < snapshots.size
        ending, then = of[early], snapshots[after[early]]
        begins = set(zip(key[of].tolist(), begin[of].tolist(), strict=True))
        last = np.array([pair not in begins for pair in zip(key[ending].tolist(), then.tolist(), strict=True)], bool)
        spells_.append(ending[last])
        moments.append(then[last])
    return np.concatenate(spells_), np.concatenate(moments)


def openings(table: pl.DataFrame) -> History:
    """Read openings as two snapshots per game: a day before the start, and just before it, as in `football_data`."""
    books = table.filter(~pl.col("book").is_in(_NO_BOOKS))
    quoted = pl.concat([part for name in OPENING_TIMES if (part := opening_prices(books, name)) is not None])
    return quotes(quoted, 1_000_000)._replace(results=opening_results(books))


def opening_prices(table: pl.DataFrame, name: str) -> pl.DataFrame | None:
    """Return the prices of openings at one time, of `OPENING_TIMES`, as an odds table; None without their columns."""
    columns = [f"{name}_{side}" for side in _SIDES]
    if not set(columns) <= set(table.columns):
        return None
    part = _keyed(table).drop_nulls(columns)
    now = pl.col("start") - pl.duration(minutes=OPENING_TIMES[name])
    long = part.with_columns(now=now).unpivot(
        columns, index=["event_id", "division", "home", "away", "book", "start", "now"], variable_name="side",
        value_name="odds_decimal",
    )  # fmt: skip
    side = pl.col("side").str.strip_prefix(f"{name}_")
    return long.filter(pl.col("odds_decimal") > 1.0).select(
        sportsbook="book",
        event_id="event_id",
        sport=pl.lit("soccer"),
        league="division",
        home_team="home",
        away_team="away",
        market_type=pl.lit("moneyline"),
        selection=team_or(side, pl.col("home"), pl.col("away"), pl.lit("Draw")),
        selection_type=side,
        line=pl.lit(None, pl.Float64),
        odds_decimal="odds_decimal",
        event_start_time="start",
        last_seen_at="now",
        is_active=pl.lit(value=True),
        is_live=pl.lit(value=False),
    )


def opening_results(table: pl.DataFrame) -> pl.DataFrame | None:
    """Return the final scores of openings; None without their columns."""
    if not {"home_goals", "away_goals"} <= set(table.columns):
        return None
    return _keyed(table).group_by("event_id").agg(pl.col("home_goals").first(), pl.col("away_goals").first())


def _keyed(table: pl.DataFrame) -> pl.DataFrame:
    """Add the id and the start of each game."""
    return table.with_columns(
        event_id=pl.format("{} {} {} {}", "division", "date", "home", "away"),
        start=pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone("UTC") + pl.duration(hours=START_H),
    )


def quotes(table: pl.DataFrame, width: int) -> History:
    """Read an odds table; quotes within `width` microseconds are one snapshot."""
    return History.of(Held(*_ordered(table, width)))


def _results(table: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame | None:
    """Return the final scores in an odds table; None without such columns. An event with two scores has none."""
    scores = ("home_goals", "away_goals")
    names = set(table.collect_schema().names())
    came = next((pair for pair in (scores, ("home_score", "away_score")) if set(pair) <= names), None)
    if came is None:
        return None
    distinct = table.lazy().select("event_id", *came).rename(dict(zip(came, scores, strict=True))).drop_nulls().unique()
    return _collected(distinct.filter(pl.len().over("event_id") == 1).sort("event_id"))


def _ordered(table: pl.DataFrame, width: int, moments: Longs | None = None) -> tuple[pl.DataFrame, Longs]:
    """Sort an odds table by time, and return the time of each quote's snapshot, of all or of those given."""
    clock = _clock(table.columns)
    d = _timed(table, (clock,), (*({"last_seen_at"} - {clock}), "event_start_time"))
    if not d[clock].is_sorted():
        d = d.sort(clock, maintain_order=True)
    when = _micros(d[clock])
    if moments is not None:
        return d, moments[np.searchsorted(moments // width, when // width)]
    last = np.flatnonzero(np.diff(when // width, append=-1))  # last quote of each snapshot
    return d, np.repeat(when[last], np.diff(last, prepend=-1))


def _clock(columns: Iterable[str]) -> str:
    """Return the name of the column with the time at which rows were known."""
    return next(name for name in _CLOCKS if name in columns)


def lazy_quotes(table: pl.LazyFrame, width: int) -> History:
    """Read an odds table in pieces."""
    schema = table.collect_schema()
    clock = _clock(schema)
    used = {clock, *ODDS_SCHEMA} - set(LINKS) | {"max_bet", *DEPTH_SCHEMA}
    table = table.select(name for name in schema if name in used)
    time, dtype = _lazy_time(clock, schema[clock])
    minute = width * max(_MINUTE // width, 1)  # whole snapshots
    bucket = time.dt.epoch("us") // minute
    counts = _collected(table.select(at=bucket).group_by("at").len()).sort("at")
    if counts["at"].null_count():
        missing = counts.filter(pl.col("at").is_null())["len"][0]
        raise ValueError(f"{clock} must be a time in every row; {missing} rows have none")
    at, total = counts["at"].to_numpy(), np.cumsum(counts["len"].to_numpy())
    piece = (total - 1) // PIECE
    begins = at[np.flatnonzero(np.diff(piece, prepend=-1))]
    bounds = [*begins.tolist(), *(at[-1:] + 1).tolist()]

    def moment(number: int) -> pl.Expr:
        return pl.lit(pl.Series([number * minute]).cast(TIME).item(), TIME).cast(dtype)

    def pieces() -> Iterator[Piece]:
        for low, high in pairwise(bounds):
            part = _collected(table.filter(time >= moment(low), time < moment(high)))
            yield Piece(*_ordered(part, width))

    span = (bounds[0] * minute, bounds[-1] * minute) if at.size else (0, 0)
    return History(pieces(), span, None, games=Stored(table, *_GAMES, clock, clock, width))


def _lazy_time(name: str, dtype: pl.DataType) -> tuple[pl.Expr, pl.Datetime]:
    """A column of times as such, and its type."""
    if isinstance(dtype, pl.Datetime):
        return pl.col(name), dtype
    read, _ = CASTS[pl.Datetime]

    def cast(given: pl.Series) -> pl.Series:
        return read(given.cast(pl.String) if given.dtype in (pl.Categorical, pl.Enum) else on_calendar(given))

    return pl.col(name).map_batches(cast, return_dtype=TIME, is_elementwise=True), TIME
