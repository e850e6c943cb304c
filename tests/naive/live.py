"""The rows of the live board, one dict at a time: what quotes, removals, snapshots, notices and time make of them.

A row is known by its book, its texts and its line; there are no ids, partitions or slots here. Times are integer
microseconds, as in the rows of `boards`. Prices are compared exactly, where the board keeps 65535ths.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SECOND = 1_000_000
NEEDED = ("sportsbook", "event_id", "market_type", "selection")
TEXTS = (
    "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "selection",
    "selection_type", "player_name", "stat_category", "team_side", "line",
)  # fmt: skip
OWN = (
    "id", "deep_link", "sportsbook_name", "is_main_line", "is_alternate_line", "external_event_id", "market_id",
    "selection_id", "max_bet", "volume", "volume_24h", "open_interest", "exchange_token_id",
)  # fmt: skip

REMEMBERED = 600 * SECOND  # a removal
AWAY, BACK, WINDOW_S, OBSERVATIONS, AGREE, RETURNS = 0.012, 0.003, 21_600, 16, 2, 3  # [flap]
LEVELS = 6
UNSEEN, LEAVE, UNSEEN_LEAVE = 900 * SECOND, 600 * SECOND, 21_600 * SECOND  # [event]
WATCH = 10 * SECOND  # how often rows of ended events are looked for

Quote = Mapping[str, Any]
Key = tuple[Any, ...]


def key(quote: Quote) -> Key:
    """What makes a row another row."""
    return (quote["sportsbook"].lower(), *(quote.get(name) for name in TEXTS))


def decimal(quote: Quote) -> float | None:
    """The price of a quote; the decimal one wins."""
    odds, american = quote.get("odds_decimal"), quote.get("odds_american")
    if odds is None and american is not None:
        odds = (100.0 + abs(american)) / (100.0 if american > 0 else abs(american))
    return odds


def refusal(quote: Quote) -> str | None:
    """Why a quote does not read."""
    odds = decimal(quote) if not isinstance(quote.get("odds_decimal"), str) else "text"
    if isinstance(odds, str):
        return "bad_value"
    if not all(quote.get(name) for name in NEEDED):
        return "missing_value"
    if odds is None:
        return None if quote.get("is_active") is False else "bad_price"
    return None if odds > 1.0 else "bad_price"


@dataclass
class Level:
    """A price that a row had, and when it was last observed."""

    prob: float
    second: int
    observation: int


@dataclass
class Memory:
    """What is remembered of the observations of one row."""

    levels: list[Level] = field(default_factory=list)
    observations: int = 0
    agreed: int = 0  # observations in a row that agree
    returns: list[int] = field(default_factory=list)  # observations in play at which the price was back
    flap: bool = False

    def begin_anew(self) -> None:
        self.levels = []
        self.returns = []

    def observe(self, prob: float, second: int, *, live: bool) -> None:
        self.observations += 1
        if not self.levels:
            self.agreed = 1
            self.levels = [Level(prob, second, self.observations)]
            return
        last = self.levels[-1]
        self.agreed = self.agreed + 1 if abs(prob - last.prob) <= BACK else 1
        if self.agreed >= AGREE:
            self.flap = False
        if prob == last.prob:
            last.second, last.observation = second, self.observations
            return
        if self._returned(prob, second):
            if live and self.agreed == 1:
                self.returns.append(self.observations)
            recent = [observation for observation in self.returns if self.observations - observation <= OBSERVATIONS]
            self.flap = self.flap or not live or len(recent) >= RETURNS
        self.levels = [*self.levels, Level(prob, second, self.observations)][-LEVELS:]

    def _returned(self, prob: float, second: int) -> bool:
        """Whether the price left a level by more than `AWAY` and is back at it, soon enough."""
        for at, level in enumerate(self.levels[:-1]):
            near = abs(prob - level.prob) <= BACK
            soon = second - level.second <= WINDOW_S and self.observations - level.observation <= OBSERVATIONS
            left = any(abs(later.prob - level.prob) > AWAY for later in self.levels[at + 1 :])
            if near and soon and left:
                return True
        return False


@dataclass
class Row:
    """One price."""

    quote: Quote  # the first that named it: its texts
    odds: float
    american: float | None
    live: bool
    suspended: bool
    seen: int
    changed: int
    start: int | None
    own: dict[str, Any]
    memory: Memory
    left: int | None = None  # when it was removed
    rejected: bool = False  # by the node it comes from


@dataclass
class Said:
    """What one step says: rows that are not what they were and how, rows that left, and counts.

    `status` is whatever moved that is neither price nor liveness: suspension, start, flap, the American form as it was
    given, texts of the row's own.
    """

    changed: dict[Key, set[str]]
    removed: set[Key]
    late: int = 0
    seen: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Notice:
    """What a source said last of an event; the start is the last it gave."""

    status: str
    when: int
    start: int | None


class NaiveLive:
    """The board."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}  # those whose removal is remembered too
        self.books: dict[str, str] = {}  # as they were first spelled
        self.events: list[str] = []
        self.said: dict[str, Notice] = {}
        self.refused: dict[str, int] = {}
        self.moment: int | None = None
        self.watched: int | None = None

    # ---- what is there ----

    def on(self) -> dict[Key, Row]:
        return {key: row for key, row in self.rows.items() if row.left is None}

    def removals(self) -> dict[Key, int]:
        return {key: row.left for key, row in self.rows.items() if row.left is not None}

    def table(self) -> dict[Key, dict[str, Any]]:
        return {key: self._shown(row) for key, row in self.on().items()}

    def _shown(self, row: Row) -> dict[str, Any]:
        win = row.odds - 1.0
        american = row.american if row.american is not None else win * 100.0 if row.odds >= 2.0 else -100.0 / win
        return {
            "sportsbook": self.books[row.quote["sportsbook"].lower()],
            **{name: row.quote.get(name) for name in TEXTS},
            **{name: row.own.get(name) for name in OWN},
            "odds_decimal": row.odds, "odds_american": american, "odds_probability": 1.0 / row.odds,
            "is_live": row.live, "is_active": not row.suspended, "flap": row.memory.flap,
            "rejected_upstream": row.rejected,
            "confirmed": row.memory.agreed >= AGREE,
            "last_seen_at": row.seen, "odds_changed_at": row.changed, "event_start_time": row.start,
        }  # fmt: skip

    def listing(self) -> dict[str, tuple[str, int | None, int, int, int]]:
        """Of every event with a price: status, start, prices, books, live prices."""
        out = {}
        for event in self.events:
            mine = self._of(event)
            if mine:
                status, begins, _ = self.standing(event)
                books = {key[0] for key in mine}
                live = sum(row.live for row in mine.values())
                out[event] = (status, begins, len(mine), len(books), live)
        return out

    def _of(self, event: str) -> dict[Key, Row]:
        return {key: row for key, row in self.on().items() if row.quote["event_id"] == event}

    # ---- what a step does ----

    def step(
        self,
        quotes: Sequence[Quote],
        now: int,
        removed: Iterable[Key] = (),
        complete: Iterable[tuple[str, str | None]] = (),
        events: Iterable[Mapping[str, Any]] = (),
    ) -> Said:
        said = Said({}, set())
        read = self._read(quotes, said)
        for at, quote in read:
            self._quote(at, quote, now, said)
        for named in removed:
            if named in self.on():
                said.removed.add(named)
        for book, event in complete:
            listed = {key(quote) for _, quote in read}
            for named, row in self.on().items():
                if named[0] == book.lower() and event in (None, row.quote["event_id"]) and named not in listed:
                    said.removed.add(named)
        self._leave(said.removed, now)
        for notice in events:
            event, before = notice["event_id"], self.said.get(notice["event_id"])
            start = notice.get("event_start_time")
            if start is None and before is not None:
                start = before.start
            self.said[event] = Notice(notice["status"], now, start)
        self._time(now, said)
        self._tell(said)
        return said

    def _read(self, quotes: Sequence[Quote], said: Said) -> list[tuple[int, Quote]]:
        """The quotes that read, with their numbers; the names in them are known from here on."""
        read = []
        for at, quote in enumerate(quotes, 1):
            why = refusal(quote)
            if why is None:
                read.append((at, quote))
                self.books.setdefault(quote["sportsbook"].lower(), quote["sportsbook"])
                if quote["event_id"] not in self.events:
                    self.events.append(quote["event_id"])
            else:
                self._refuse(at, why, said)
        return read

    def _refuse(self, at: int, why: str, said: Said) -> None:
        said.refused.append((at, why))
        self.refused[why] = self.refused.get(why, 0) + 1

    def _quote(self, at: int, quote: Quote, now: int, said: Said) -> None:
        known = self.rows.get(key(quote))
        given = quote.get("last_seen_at")
        time = now if given is None else min(given, now)
        if known is not None and (time < known.seen or (known.left is not None and time < known.left)):
            said.late += 1
            return
        odds = decimal(quote)
        if odds is None and (known is None or known.left is not None):
            self._refuse(at, "bad_price", said)
            return
        what = self._upsert(quote, known, odds, time, now)
        if what:
            said.changed.setdefault(key(quote), set()).update(what)
        else:
            said.seen += 1

    def _upsert(self, quote: Quote, known: Row | None, odds: float | None, time: int, now: int) -> set[str]:
        """Make a row what a quote says; what moved."""
        live, suspended = bool(quote.get("is_live")), quote.get("is_active") is False
        start, own_time = quote.get("event_start_time"), quote.get("odds_changed_at")
        row = known
        if row is None:
            row = Row(quote, odds or 0.0, None, live, suspended, time, time, None, {}, Memory())
            self.rows[key(quote)] = row
        what = set()
        if known is None or row.left is not None:
            what.add("new")
            row.left = None
        observed = known is None or time > row.seen or odds not in (None, row.odds) or not row.memory.observations
        if odds is not None:
            what |= {"price"} if odds != row.odds else set()
            what |= {"status"} if quote.get("odds_american") != row.american else set()
            row.odds, row.american = odds, quote.get("odds_american")
        if live != row.live:
            what.add("live")
            row.memory.begin_anew()
            row.memory.flap = False
        if suspended != row.suspended or (start is not None and start != row.start):
            what.add("status")
        if what & {"new", "price", "live"}:
            own_time = time if own_time is None else min(own_time, time)
            row.changed = own_time if known is None or own_time >= row.changed else time
        rejected = bool(quote.get("rejected_upstream"))
        what |= {"status"} if rejected != row.rejected else set()
        row.rejected = rejected
        own = {name: quote.get(name) for name in OWN}
        if own != row.own and any(value is not None for value in own.values()):
            what.add("status")
            row.own = own
        flap = row.memory.flap
        if observed and not suspended:
            if time - row.seen > WINDOW_S * SECOND:  # unseen for so long
                row.memory.begin_anew()
            row.memory.observe(1.0 / row.odds, time // SECOND, live=live)
        if row.memory.flap != flap:
            what.add("status")
        row.live, row.suspended, row.seen = live, suspended, time
        row.start = row.start if start is None else start
        return what

    def _leave(self, keys: Iterable[Key], now: int) -> None:
        for named in keys:
            self.rows[named].left = now

    # ---- what time does ----

    def _time(self, now: int, said: Said) -> None:
        """The first step of a second ends what is too old at it, and forgets old removals."""
        moment = now - now % SECOND
        if self.moment is not None and moment <= self.moment:
            return
        self.moment = moment
        forgotten = [named for named, left in self.removals().items() if left < moment - REMEMBERED]
        gone = {named for named, row in self.on().items() if row.seen < moment - UNSEEN_LEAVE}
        if self.watched is None or moment // WATCH != self.watched // WATCH:
            self.watched = moment
            for event in self.events:
                _, _, over = self.standing(event)
                if over is not None and over < moment - LEAVE:
                    gone |= {named for named, row in self._of(event).items() if row.seen <= over + LEAVE}
        self._leave(gone, now)
        said.removed |= gone
        for named in forgotten:
            del self.rows[named]

    def standing(self, event: str) -> tuple[str, int | None, int | None]:
        """Status, start and end of an event: by its prices, and by what a source said of it."""
        moment, notice = self.moment or 0, self.said.get(event)
        rows = list(self._of(event).values())
        starts = [(row.seen, row.start) for row in rows if row.start is not None]
        begins = max(starts)[1] if starts else None
        if notice is not None and notice.start is not None:
            begins = notice.start
        last = max((row.seen for row in rows), default=None)
        last_live = max((row.seen for row in rows if row.live), default=None)
        status, over = "upcoming", None
        if last_live is not None and last_live >= moment - UNSEEN:
            status = "live"
        elif begins is not None and begins < moment and last is not None and last < moment - UNSEEN:
            status, over = "ended", last + UNSEEN
        if notice is not None:
            if notice.status in ("ended", "cancelled"):
                status, over = notice.status, notice.when
            elif notice.status == "postponed":
                if last_live is None or last_live <= notice.when:
                    status, over = "postponed", None
            elif status != "ended":
                status = notice.status
        return status, begins, over

    # ---- what a step says ----

    def _tell(self, said: Said) -> None:
        """Only rows that are on the board changed; a new one may be one that left, at another line."""
        on = self.on()
        said.changed = {named: what for named, what in said.changed.items() if named in on}
        for named, what in said.changed.items():
            if "new" in what:
                line = any(gone[:-1] == named[:-1] and gone[-1] != named[-1] for gone in said.removed)
                what.intersection_update({"new"})
                what.update({"line"} if line else ())
