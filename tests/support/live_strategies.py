"""Tapes for the live board: what a feed says step by step, from a seed.

A `Feed` holds the rows of a board (`boards`) and lets things happen to them: prices move and come back, rows leave and
return, are suspended, go live, are named the other way round; books come late; time passes, sometimes alone. Its steps
are plain values, so that one tape can be given to several engines.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl
from support.boards import MARKETS, build
from support.hazards import HAZARDS, NOW, SECOND, Row

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = (
    "sportsbook", "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "selection",
    "selection_type", "player_name", "stat_category", "team_side", "line",
)  # fmt: skip
PAUSES = (0.0, 0.4, 0.4, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 10.0, 10.0, 30.0, 30.0, 300.0, 601.0)
GAMES = (("Chicago Bulls", "Miami Heat"), ("Los Angeles Lakers", "Miami Heat"), ("Chicago Cubs", "Seattle Mariners"))
TURNED = {"home": "away", "away": "home"}
Ids = Mapping[tuple[Any, ...], str]


class Step(NamedTuple):
    """The arguments of one `Engine.step`."""

    quotes: list[Row]
    now: datetime
    removed: Sequence[str] = ()
    complete: Sequence[tuple[str, str | None]] = ()
    events: Sequence[dict[str, Any]] = ()


def moment(micros: int) -> datetime:
    """Microseconds as a time."""
    return EPOCH + timedelta(microseconds=micros)


def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes a row another row of the board: its book, texts and line."""
    return tuple(row.get(name) for name in TEXTS)


def row_ids(table: pl.DataFrame) -> dict[tuple[Any, ...], str]:
    """Ids of the rows of a live table, by their keys."""
    return dict(zip(table.select(TEXTS).iter_rows(), table["row_id"].to_list(), strict=True))


class Feed:
    """A feed over some rows."""

    def __init__(self, seed: int, rows: Sequence[Row], pauses: Sequence[float] = PAUSES) -> None:
        self.rng = random.Random(seed)
        self.now = NOW
        self.pauses = pauses
        self.happenings = EVENTS
        books = sorted({row["sportsbook"] for row in rows})
        late = set(self.rng.sample(books, min(1, len(books))))
        self.quoted = [dict(row) for row in rows if row["sportsbook"] not in late]
        self.waiting = [dict(row) for row in rows if row["sportsbook"] in late]
        self.jumped: list[tuple[Row, float | None, float | None]] = []
        self.quotes: list[Row] = []
        self.removed: list[str] = []
        self.complete: list[tuple[str, str | None]] = []
        self.events: list[dict[str, Any]] = []
        self.ids: Ids = {}

    def first(self) -> Step:
        """Everything that is there at the beginning, as it was seen."""
        return Step([dict(row) for row in self.quoted], moment(self.now))

    def step(self, ids: Ids) -> Step:
        """Let time pass and a few things happen; `ids` are those of the rows on the board."""
        rng = self.rng
        self.quotes, self.removed, self.complete, self.events, self.ids = [], [], [], [], ids
        pause = rng.choice(self.pauses)
        self.now += round(pause * SECOND)
        if pause >= 10.0 and rng.random() < 0.7:
            self._seen(self.quoted)
        for happens in rng.choices(self.happenings, k=rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
            if self.quoted:
                happens(self)
        return Step(self.quotes, moment(self.now), self.removed, self.complete, self.events)

    # ---- saying things ----

    def say(self, row: Row, **fields: Any) -> None:
        """Quote a row as it is."""
        age = self.rng.choice((0.0, 0.0, 0.0, 0.0, 0.2, 1.0, 3.0, 4.0, 8.0, 20.0, -3.0, None))
        seen = None if age is None else self.now - round(age * SECOND)
        own = self.rng.choice((None, None, 0.0, 5.0, 60.0))
        changed = None if own is None else self.now - round(own * SECOND)
        self.quotes.append({**row, "last_seen_at": seen, "odds_changed_at": changed, **fields})

    def some(self, most: int = 5) -> list[Row]:
        """A few of the rows."""
        return self.rng.sample(self.quoted, min(len(self.quoted), self.rng.randint(1, most)))

    def mates(self, *fields: str) -> list[Row]:
        """Rows that share some fields with one of them."""
        row = self.rng.choice(self.quoted)
        return [other for other in self.quoted if all(other[name] == row[name] for name in fields)]

    def leave(self, rows: Iterable[Row]) -> None:
        """Take rows off the board by their ids."""
        for row in list(rows):
            if row in self.quoted:
                self.quoted.remove(row)
            if (ident := self.ids.get(key(row))) is not None:
                self.removed.append(ident)

    # ---- what happens ----

    def _seen(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.say(row)

    def _prices(self) -> None:
        for row in self.some(8):
            reprice(row, self.rng.choice((-0.5, -0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.3)))
            self.say(row)

    def _jump(self) -> None:
        """Prices that come back in a later step."""
        if self.jumped and self.rng.random() < 0.7:
            for row, decimal, american in self.jumped:
                row["odds_decimal"], row["odds_american"] = decimal, american
                self.say(row)
            self.jumped = []
            return
        for row in self.some(3):
            self.jumped.append((row, row["odds_decimal"], row["odds_american"]))
            reprice(row, self.rng.choice((-0.2, 0.2)))
            self.say(row)

    def _again(self) -> None:
        self._seen(self.mates(*self.rng.choice((("sportsbook",), ("event_id",), ("sportsbook", "event_id"), ()))))

    def _suspend(self) -> None:
        for row in self.some(4):
            row["is_active"] = not row["is_active"]
            bare = not row["is_active"] and self.rng.random() < 0.4
            self.say(row, **(dict(odds_decimal=None, odds_american=None) if bare else {}))

    def _liveness(self) -> None:
        fields = self.rng.choice((("event_id",), ("event_id", "sportsbook"), ("event_id", "sportsbook", "market_type")))
        for row in self.mates(*fields):
            row["is_live"] = not row["is_live"]
            self.say(row)

    def _draw(self) -> None:
        """A book begins or ceases to quote a draw."""
        mine = [row for row in self.mates("event_id", "sportsbook") if row["market_type"] == "moneyline"]
        drawn = [row for row in mine if row["selection_type"] == "draw" or row["selection"] in ("Draw", "X", "Tie")]
        if drawn:
            self.leave(drawn)
        elif mine:
            row = {**mine[0], "selection": "Draw", "selection_type": "draw", "odds_decimal": 3.6, "odds_american": None}
            self.quoted.append(row)
            self.say(row)

    def _turn(self) -> None:
        """A book names the teams the other way round from now on."""
        for row in self.mates("event_id", "sportsbook"):
            self.leave([row] if self.rng.random() < 0.8 else [])
            kind = [TURNED.get(part, part) for part in (row["selection_type"] or "").split("_")]
            turned = {
                **row,
                "home_team": row["away_team"],
                "away_team": row["home_team"],
                "selection_type": "_".join(kind) or None,
                "team_side": TURNED.get(row["team_side"] or ""),
            }
            self.quoted.append(turned)
            self.say(turned)

    def _remove(self) -> None:
        gone = self.some(4)
        self.leave(gone)
        self.waiting.extend(gone)

    def _lost(self) -> None:
        """Rows leave by an id of the board, or by one that nobody has."""
        known = sorted(self.ids.values())
        self.removed.extend(self.rng.sample(known, min(len(known), 2)))
        self.removed.append(f"{self.rng.getrandbits(64):016x}")

    def _snapshot(self) -> None:
        """All that a book has, or has on one event; less than it had."""
        fields = self.rng.choice((("sportsbook",), ("sportsbook", "event_id")))
        rows = self.mates(*fields)
        book, event = rows[0]["sportsbook"], rows[0]["event_id"] if len(fields) > 1 else None
        for row in rows:
            if self.rng.random() < 0.8:
                self.say(row)
            elif self.rng.random() < 0.5:
                self.quoted.remove(row)
                self.waiting.append(row)
        self.complete.append((book, event))

    def _back(self) -> None:
        """Rows come, or come back."""
        for row in self.rng.sample(self.waiting, min(len(self.waiting), self.rng.choice((1, 4, 20)))):
            self.waiting.remove(row)
            self.quoted.append(row)
            self.say(row)

    def _late(self) -> None:
        """A quote that is older than what is known."""
        for row in self.some(3):
            self.say({**row, "odds_decimal": 1.5, "odds_american": None}, last_seen_at=self.now - 200 * SECOND)

    def _old(self) -> None:
        """A quote that is old, yet newer than what is known if that was long ago."""
        for row in self.some(3):
            self.say(row, last_seen_at=self.now - self.rng.choice((9, 29, 31, 599, 605)) * SECOND)

    def _start(self) -> None:
        begins = self.now + self.rng.choice((-7200, -60, 0, 1, 4, 300, 7200)) * SECOND
        for row in self.mates(*self.rng.choice((("event_id",), ("event_id", "sportsbook")))):
            row["event_start_time"] = begins
            self.say(row)

    def _line(self) -> None:
        """A line moves: one row leaves, one comes."""
        for row in self.some(2):
            if row["line"] is not None and not any(c.isdigit() for c in row["selection"]):
                self.leave([row])
                moved = {**row, "line": row["line"] + self.rng.choice((-1.0, 0.5, 1.0))}
                self.quoted.append(moved)
                self.say(moved)

    def _spelling(self) -> None:
        """The same bet in other words, beside the first, at nearly its price."""
        for row in self.some(2):
            other = {**row, "selection": row["selection"].upper()}
            if other["selection"] != row["selection"]:
                reprice(other, self.rng.choice((-0.03, 0.03, 0.2)))
                self.quoted.append(other)
                self.say(other)

    def _league(self) -> None:
        """A book that names no league, or another."""
        for row in self.mates("event_id", "sportsbook"):
            self.leave([row])
            other = {**row, "league": self.rng.choice((None, "nba", "mlb", "serie_a", "preseason"))}
            self.quoted.append(other)
            self.say(other)

    def _game(self) -> None:
        """A book that names other teams than the other books, or the same ones again."""
        rows = self.mates("event_id")
        book, same = self.rng.choice(rows)["sportsbook"], self.rng.choice(rows)
        home, away = self.rng.choice((*GAMES, (same["home_team"], same["away_team"])))
        for mate in rows:
            if mate["sportsbook"] == book and self.rng.random() < 0.9:
                self.leave([mate] if self.rng.random() < 0.8 else [])
                other = {**mate, "home_team": home, "away_team": away}
                self.quoted.append(other)
                self.say(other)

    def _sport(self) -> None:
        """A book that names no sport, or another."""
        sport = self.rng.choice((None, "basketball", "baseball", "soccer", "hockey", "Ice Hockey"))
        for row in self.mates("event_id", "sportsbook"):
            self.leave([row] if self.rng.random() < 0.8 else [])
            other = {**row, "sport": sport}
            self.quoted.append(other)
            self.say(other)

    def _twice(self) -> None:
        for row in self.some(3):
            self.say({**row, "odds_decimal": 1.9, "odds_american": None}, last_seen_at=self.now)
            self.say(row, last_seen_at=self.now)

    def _american(self) -> None:
        """The same price with its American form, or with a wrong one."""
        for row in self.some(3):
            decimal = row["odds_decimal"]
            if decimal is not None and 1.0 < decimal < 1e6:
                exact = (decimal - 1.0) * 100.0 if decimal >= 2.0 else -100.0 / (decimal - 1.0)
                row["odds_american"] = self.rng.choice((round(exact) * 1.0, 150.0, None))
                self.say(row)

    def _notice(self) -> None:
        event = self.rng.choice(self.quoted)["event_id"]
        status = self.rng.choice(("upcoming", "live", "ended", "postponed", "cancelled"))
        self.events.append({"event_id": event, "status": status})


EVENTS: tuple[Callable[[Feed], None], ...] = (
    Feed._prices, Feed._prices, Feed._prices, Feed._jump, Feed._jump, Feed._again, Feed._suspend, Feed._liveness,
    Feed._draw, Feed._turn, Feed._remove, Feed._lost, Feed._snapshot, Feed._back, Feed._back, Feed._late, Feed._old,
    Feed._start, Feed._line, Feed._spelling, Feed._twice, Feed._american, Feed._notice,
    Feed._league, Feed._sport, Feed._game,
)  # fmt: skip


# Books disagree about the teams, the sport and the league of an event, and most change their minds.
DISAGREEMENTS: tuple[Callable[[Feed], None], ...] = (
    Feed._sport, Feed._sport, Feed._game, Feed._game, Feed._league, Feed._remove, Feed._back, Feed._prices,
    Feed._liveness,
)  # fmt: skip


def reprice(row: Row, logits: float) -> None:
    """Move a price by so much in logits; negative is generous."""
    decimal = row["odds_decimal"]
    if decimal is None or not 1.0 < decimal < 1e6:
        decimal = 1.95
    row["odds_american"], row["odds_decimal"] = None, max(1.01, round(1.0 + (decimal - 1.0) * 2.718281828**-logits, 3))


def feed(seed: int, events: int = 2, books: int = 6, pauses: Sequence[float] = PAUSES) -> Feed:
    """A feed over a board with all hazards."""
    rng = random.Random(seed)
    markets = rng.sample(MARKETS, rng.randint(1, 4))
    hazards = rng.sample(sorted(HAZARDS), rng.randint(0, 8))
    return Feed(seed, build(seed, events, books, markets, hazards), pauses)
