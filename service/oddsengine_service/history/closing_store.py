"""Closing lines, and +EV prices graded by them.

One SQLite file in the data folder, or a database in memory. The closing lines of an event are one row: its facts, and
all lines as a compressed Arrow table. A bet is a row of numbers: when an opportunity was first shown and at which
price, the best price while it was available, the fair probability of its outcome at the close by the reference and by
the other books, and the result for its stake. Bets are graded when the close of their event is stored. If the event is
postponed, its close is discarded together with the grades.

Both tables are bounded by age and by number of rows; the oldest rows are deleted first.
"""

import io
import sqlite3
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.columns import NO_TIME
from oddsengine.history.closing import PLACE, Bets, Close, gain, others_close
from oddsengine.history.clv import BETS_SCHEMA, means
from oddsengine.maths.rounding import exact
from oddsengine_service.accounts.database import Database
from oddsengine_service.wire.numbers import percent

FILE = "closing.sqlite"
CLOSES_KEPT_D, BETS_KEPT_D = 30, 400  # days after the close, and after a bet was first shown
MOST_CLOSES, MOST_BETS = 20_000, 1_000_000
_EASTERN = ZoneInfo("America/New_York")
_DAY = 86_400_000_000  # microseconds
_PRUNED_EVERY = 64  # closes between two deletions
_VERSION = 2
_WHERE = ("ladder", "threshold_", "side", "outcomes", "slope", "reach", "family", "period", "subject")
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS closes (
    event_id TEXT PRIMARY KEY, sport TEXT NOT NULL, league TEXT NOT NULL, home_team TEXT NOT NULL,
    away_team TEXT NOT NULL, start INTEGER, captured_at INTEGER NOT NULL, lines BLOB NOT NULL
) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS closes_time ON closes (captured_at)",
    """CREATE TABLE IF NOT EXISTS bets (
    id TEXT PRIMARY KEY, outcome INTEGER NOT NULL, event_id TEXT NOT NULL, sport TEXT NOT NULL, league TEXT NOT NULL,
    market TEXT NOT NULL, selection TEXT NOT NULL, line REAL, sportsbook TEXT NOT NULL, live INTEGER NOT NULL,
    start INTEGER, first_at INTEGER NOT NULL, odds REAL NOT NULL, price REAL NOT NULL, ev REAL NOT NULL,
    fair REAL NOT NULL, best_at INTEGER NOT NULL, best_odds REAL NOT NULL, best_price REAL NOT NULL,
    closed_at INTEGER, closing REAL, ladder INTEGER, threshold_ INTEGER, side INTEGER, outcomes INTEGER, slope REAL,
    reach INTEGER, family TEXT, period TEXT, subject INTEGER, others REAL, gain REAL
) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS bets_event ON bets (event_id)",
    "CREATE INDEX IF NOT EXISTS bets_time ON bets (first_at)",
    "CREATE TABLE IF NOT EXISTS log (born INTEGER NOT NULL, sequence INTEGER NOT NULL)",
)
_BET = (
    "id", "outcome", "event_id", "sport", "league", "market", "selection", "line", "sportsbook", "live", "start",
    "first_at", "odds", "price", "ev", "fair", "best_at", "best_odds", "best_price", *_WHERE,
)  # fmt: skip
_READ = (
    "id", "event_id", "sportsbook", "sport", "league", "market", "ev", "price", "best_price", "closing", "others",
    "gain", "live", "first_at", "closed_at", "start",
)  # fmt: skip
# A bet shown again may improve its best price until the event closes, but not its first price.
_SHOW = f"""
INSERT INTO bets ({", ".join(_BET)}, closed_at)
VALUES ({", ".join("?" * len(_BET))}, (SELECT captured_at FROM closes WHERE closes.event_id = ?))
ON CONFLICT (id) DO UPDATE SET best_at = excluded.best_at, best_odds = excluded.best_odds,
    best_price = excluded.best_price
WHERE excluded.best_price > bets.best_price AND bets.closed_at IS NULL
"""


class Closings:
    """The database of closing lines; thread-safe."""

    def __init__(self, file: Path | None = None, *, closes: int = MOST_CLOSES, bets: int = MOST_BETS) -> None:
        self._most_closes, self._most_bets = closes, bets
        self._puts = 0
        self.database = Database(file, _SCHEMA, _VERSION, durable=False, place="log")

    def close(self) -> None:
        self.database.close()

    # ---- writing ----

    @property
    def changes(self) -> int:
        """Number of rows that were written since the start."""
        return self.database.connection.total_changes

    def show(self, bets: Bets) -> None:
        n = len(bets.id)
        outcome = bets.outcome.view(np.int64).tolist()
        start = [None if s == NO_TIME else s for s in bets.start.tolist()]
        at, odds, price = bets.at.tolist(), bets.odds.tolist(), bets.price.tolist()
        where = bets.where.select(pl.col("ladder").reinterpret(signed=True), *_WHERE[1:])
        where = where.with_columns(pl.col("slope").fill_nan(None))
        rows = zip(
            bets.id, outcome, bets.event_id, bets.sport, bets.league, bets.market, bets.selection, bets.line,
            bets.sportsbook, map(int, bets.live), start, at, odds, price, bets.ev.tolist(), bets.fair.tolist(),
            at, odds, price, *(column.to_list() for column in where), bets.event_id, strict=True,
        )  # fmt: skip
        if n:
            with self.database.transaction() as base:
                base.executemany(_SHOW, rows)

    def put(self, close: Close) -> None:
        """Store an event's close and grade its bets; without lines, only end the wait of its bets."""
        if close.lines.is_empty():
            with self.database.transaction() as base:
                base.execute(
                    "UPDATE bets SET closed_at = ? WHERE event_id = ? AND closed_at IS NULL",
                    (close.captured_at, close.event_id),
                )
            return
        buffer = io.BytesIO()
        close.lines.clone().write_ipc_stream(buffer, compression="zstd")  # writing locks a frame
        start = None if close.start == NO_TIME else close.start
        fair = dict(zip(close.outcome.view(np.int64).tolist(), close.fair.tolist(), strict=True))
        with self.database.transaction() as base:
            base.execute(
                "INSERT OR REPLACE INTO closes VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*close[:5], start, close.captured_at, buffer.getvalue()),
            )
            bets = base.execute(
                f"SELECT id, outcome, sportsbook, {', '.join(PLACE)} FROM bets WHERE event_id = ?",
                (close.event_id,),
            ).fetchall()
            others = others_close([row[2:] for row in bets], close)
            base.executemany(
                "UPDATE bets SET closed_at = ?, closing = ?, others = ?, start = ? WHERE id = ?",
                [
                    (close.captured_at, fair.get(outcome), other, start, id_)
                    for (id_, outcome, *_), other in zip(bets, others, strict=True)
                ],
            )
            self._puts += 1
            if self._puts % _PRUNED_EVERY == 1:
                self._prune(base, close.captured_at)

    def discard(self, event_id: str) -> None:
        """Discard the close of an event that was postponed."""
        with self.database.transaction() as base:
            base.execute("DELETE FROM closes WHERE event_id = ?", (event_id,))
            base.execute(
                "UPDATE bets SET closed_at = NULL, closing = NULL, others = NULL WHERE event_id = ?", (event_id,)
            )

    def settle(self, event_id: str, home: int, away: int) -> None:
        """Settle the bets of an event by its final score."""
        with self.database.transaction() as base:
            bets = base.execute(
                "SELECT id, family, period, subject, threshold_, side, sport, league FROM bets "
                "WHERE event_id = ? AND family IS NOT NULL",
                (event_id,),
            ).fetchall()
            base.executemany(
                "UPDATE bets SET gain = ? WHERE id = ?", [(gain(row[1:], home, away), row[0]) for row in bets]
            )

    def _prune(self, base: sqlite3.Connection, now: int) -> None:
        base.execute("DELETE FROM closes WHERE captured_at < ?", (now - CLOSES_KEPT_D * _DAY,))
        base.execute("DELETE FROM bets WHERE first_at < ?", (now - BETS_KEPT_D * _DAY,))
        for table, name, time, most in (
            ("closes", "event_id", "captured_at", self._most_closes),
            ("bets", "id", "first_at", self._most_bets),
        ):
            base.execute(
                f"DELETE FROM {table} WHERE {name} IN "
                f"(SELECT {name} FROM {table} ORDER BY {time} DESC, {name} LIMIT -1 OFFSET ?)",
                (most,),
            )

    # ---- reading ----

    def closing(self, event_id: str) -> Close | None:
        """Return an event's close, without fair probabilities by outcome; None if it has none."""
        with self.database.reading() as base:
            row = base.execute("SELECT * FROM closes WHERE event_id = ?", (event_id,)).fetchone()
        if row is None:
            return None
        *about, start, captured, blob = row
        lines = pl.read_ipc_stream(io.BytesIO(blob))
        none = np.empty(0)
        start = int(NO_TIME) if start is None else start
        return Close._make((*about, start, captured, lines, none.view(np.uint64), none, {}))

    def closed_between(self, first: int, last: int) -> list[tuple[str, str, str]]:
        """Return id, sport and league of closed events that started in a half-open interval, by start."""
        with self.database.reading() as base:
            return base.execute(
                "SELECT event_id, sport, league FROM closes WHERE coalesce(start, captured_at) >= ? "
                "AND coalesce(start, captured_at) < ? ORDER BY coalesce(start, captured_at), event_id",
                (first, last),
            ).fetchall()

    def lately(self, days: float) -> tuple[int, float | None, float | None, float | None]:
        """Summarise recent bets graded by the other books' close: count, mean EV and CLV in percent, CLV's error."""
        with self.database.reading() as base:
            rows = base.execute(
                "SELECT event_id, ev, price * others - 1 FROM bets WHERE others IS NOT NULL AND live = 0 AND "
                "first_at >= (SELECT max(first_at) FROM bets) - ?",
                (round(days * _DAY),),
            ).fetchall()
        if not rows:
            return 0, None, None, None
        games, ev, worth = zip(*rows, strict=True)
        codes = {game: at for at, game in enumerate(dict.fromkeys(games))}
        stats = means(worth, [0] * len(rows), [codes[game] for game in games], 1)
        error = percent(float(stats.error[0]))
        return len(rows), exact(100.0 * float(np.mean(ev))), exact(100.0 * float(stats.mean[0])), error

    def by_book(self, bets: pl.DataFrame, book: str) -> pl.DataFrame:
        """Return bets graded by the de-vigged close of one book instead of the reference."""
        fair: dict[tuple[str, int], float] = {}
        for event_id in bets["event_id"].unique().to_list():
            close = self.closing(event_id)
            if close is not None and "outcome" in close.lines.columns:
                of = [catalog.book(name).id == book for name in close.lines["sportsbook"].to_list()]
                lines = close.lines.filter(pl.Series(of, dtype=pl.Boolean) & pl.col("own_probability").is_not_null())
                rows = lines.select("outcome", "own_probability").iter_rows()
                fair |= {(event_id, outcome): p for outcome, p in rows}
        with self.database.reading() as base:
            outcomes = dict(base.execute("SELECT id, outcome FROM bets").fetchall())
        mask = (1 << 64) - 1
        own = [fair.get((event, outcomes[id_] & mask)) for event, id_ in bets.select("event_id", "id").iter_rows()]
        closing = pl.Series("closing", own, dtype=pl.Float64)
        ended = pl.col("state").is_in(["graded", "without_close"])
        state = pl.when(~ended).then("state").when(closing.is_not_null()).then(pl.lit("graded"))
        return bets.with_columns(closing, state.otherwise(pl.lit("without_close")).alias("state"))

    def bets(self, until: int | None = None) -> pl.DataFrame:
        """Return bets first shown up to a time, as `clv.BETS_SCHEMA`; those that closed later count as open."""
        until = np.iinfo(np.int64).max if until is None else until
        with self.database.reading() as base:
            rows = base.execute(
                f"SELECT {', '.join(_READ)} FROM bets WHERE first_at <= ? ORDER BY first_at, id", (until,)
            ).fetchall()
        names = _READ
        texts, reals = dict.fromkeys(names[:6], pl.String), dict.fromkeys(names[6:12], pl.Float64)
        frame = pl.DataFrame(rows, texts | reals | dict.fromkeys(names[12:], pl.Int64), orient="row")
        closed = pl.col("closed_at") <= until
        state = (
            pl.when((pl.col("live") != 0) | (closed & (pl.col("first_at") > pl.col("closed_at"))))
            .then(pl.lit("in_play"))
            .when(closed & pl.col("closing").is_not_null())
            .then(pl.lit("graded"))
            .when(closed)
            .then(pl.lit("without_close"))
            .otherwise(pl.lit("waiting"))
        )
        day = pl.coalesce("start", "closed_at", "first_at").cast(pl.Datetime("us", "UTC"))
        eastern = day.dt.convert_time_zone(str(_EASTERN)).dt.strftime("%Y-%m-%d")
        return frame.with_columns(state.alias("state"), eastern.alias("day")).select(*BETS_SCHEMA)


def opened(folder: str | Path | None) -> Closings:
    """Open or create the closing lines of a data folder; None uses memory."""
    return Closings(None if folder is None else Path(folder) / FILE)
