"""The status of feeds.

A source has parts (for example its sports) that may fail independently. A part is

    starting   no data and no failure yet
    ok         data in time, no failure since
    degraded   the last attempts failed, or data is late
    down       so for `down_after` seconds, or rejected permanently

and a source is ok or down if all its parts are, else degraded. A book has the best status of its sources; a book
missing from payloads that list all books is degraded even if its source is ok. Nothing here removes a price: prices of
a stopped source age out, and the status says why.

`light` is the rule behind `/feeds` and `/health`: the status of a source as one colour, with a reason that anybody may
read.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec

from oddsengine import catalog
from oddsengine.sources.drift import Drift
from oddsengine.sources.failure import Failure
from oddsengine_service.wire.feeds_response import AMBER, GREEN, RED

STARTING, OK, DEGRADED, DOWN = "starting", "ok", "degraded", "down"
_LATE_S = 1.0  # tolerance
_MOSTLY = 0.5  # a source is amber from this share of stale prices on
_SILENT = "it reports a problem"  # in place of a reason that only the operator may read


class BookStatus(msgspec.Struct, frozen=True):
    """Status of a book over all feeds."""

    book: str
    status: str
    reason: str
    sources: tuple[str, ...]
    last_payload: datetime | None  # the last one with a price of it


class Assessment(NamedTuple):
    """Status of a source or part, the reason, and that without addresses, file names and texts of the source."""

    status: str
    reason: str = ""
    public: str = ""


class SourceStatus(msgspec.Struct, frozen=True):
    """Status of a feed."""

    name: str
    kind: str
    status: str
    reason: str
    last_payload: datetime | None
    last_seen: datetime | None  # heartbeats included
    payloads: int
    quotes: int
    events: int
    quarantined: int
    failures: int  # consecutive, of the worst part
    failures_total: int
    unmapped: int
    refused: int
    credits_left: int | None
    credits_used: int | None
    credits_an_hour: float | None
    books: tuple[str, ...]
    prices: int = 0  # on the board
    stale: int = 0  # of these: rejected as too old
    behind: int = 0  # games of its last payload that wait to be matched or applied
    shared: tuple[str, ...] = ()  # books that another source delivers too, unless both are configured to
    conflict: bool = False  # it is requested less often than the guards require
    public: str = ""  # the reason, in words that everybody may read
    caught_up: bool = False  # its first data is on the board
    written_at: datetime | None = None  # when the oldest of its files was written
    unknown_values: int = 0  # of its answers, which its contract does not have
    new_fields: int = 0  # the same

    @property
    def last_sign(self) -> datetime | None:
        return self.last_seen or self.last_payload

    @property
    def stale_share(self) -> float | None:
        """Share of its prices on the board that are rejected as stale; None without prices."""
        return self.stale / self.prices if self.prices else None


class Light(NamedTuple):
    """The status of a source as a colour, and the reason."""

    color: str
    reason: str


def light(source: SourceStatus) -> Light:
    """Red: down, or none of its prices can be used. Amber: impaired, or not seen yet. Green: works."""
    share, beside = source.stale_share, []
    if share is not None and share >= _MOSTLY:
        beside.append(f"{share:.0%} of its {source.prices:,} prices are rejected as stale")
    if source.quarantined and not source.events:
        beside.append(f"none of its {source.quarantined:,} games could be matched")
    if source.status == DOWN or share == 1.0:
        color = RED
    else:
        color = AMBER if source.status != OK or beside else GREEN
    usual = "data in time" if source.quotes else "answers in time, without a price so far"
    return Light(
        color, "; ".join(filter(None, (source.public, *beside))) or (usual if color == GREEN else source.status)
    )


class Feeds(Protocol):
    """What a node needs from its hub."""

    def statuses(self) -> list[SourceStatus]:
        """Each source, by name."""

    def books(self) -> list[BookStatus]:
        """All books that a source delivers or is configured for."""


@dataclass
class Part:
    """A part of a feed that can fail independently."""

    since: datetime
    within: float = 60.0  # expected seconds between two reports
    polled: bool = False
    seen_at: datetime | None = None
    failing: datetime | None = None  # since
    failures: int = 0
    reason: str = ""
    public: str = ""
    fatal: bool = False
    ended: bool = False
    books: dict[str, datetime] = field(default_factory=dict)

    def well(self, now: datetime) -> None:
        self.seen_at, self.failing, self.failures, self.fatal = now, None, 0, False
        self.reason = self.public = ""

    def failed(self, failure: Failure, now: datetime) -> None:
        self.failing = self.failing or now
        self.failures += 1
        self.reason, self.public, self.fatal = str(failure), failure.public, failure.fatal

    def assess(self, now: datetime, down_after: float) -> Assessment:
        if self.failing is not None:
            down = self.fatal or _age(self.failing, now) >= down_after
            return Assessment(DOWN if down else DEGRADED, self.reason, f"{self.public}, since {_clock(self.failing)}")
        status, why = self._in_time(now, down_after)
        return Assessment(status, why, why)

    def _in_time(self, now: datetime, down_after: float) -> tuple[str, str]:
        if self.ended:
            return OK, f"read to its end at {_clock(self.seen_at)}"
        late = _age(self.seen_at or self.since, now) - self.within
        if late > down_after:
            return DOWN, f"silent since {_clock(self.seen_at or self.since)}"
        if late > _LATE_S:
            return DEGRADED, f"late: silent since {_clock(self.seen_at or self.since)}"
        return (STARTING, "no data yet") if self.seen_at is None else (OK, "")


@dataclass
class Track:
    """State of a feed."""

    name: str
    kind: str
    since: datetime
    down_after: float
    parts: dict[str, Part] = field(default_factory=dict)
    declared: tuple[str, ...] = ()  # configured books
    last_payload: datetime | None = None
    payloads: int = 0
    quotes: int = 0
    requests: int = 0
    failures_total: int = 0
    events: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    unmapped: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)  # books that are not in the catalog
    carried: set[str] = field(default_factory=set)  # ids of books it has delivered
    shared: dict[str, None] = field(default_factory=dict)
    warning: str = ""
    public_warning: str = ""
    conflict: str = ""  # why its prices cannot be kept fresh
    prices: int = 0
    stale: int = 0
    written_at: datetime | None = None  # when the oldest of its files was written
    behind: int = 0  # games of the payload being delivered that wait to be matched or applied
    drift: Drift = field(default_factory=lambda: Drift(None))
    delivering: asyncio.Lock = field(default_factory=asyncio.Lock)  # one payload at a time
    credits: tuple[int | None, int | None, float | None] = (None, None, None)
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)  # its first data is on the board
    has_failed: asyncio.Event = field(default_factory=asyncio.Event)

    def part(self, name: str) -> Part:
        """One part of the source; created if new."""
        if name not in self.parts:
            self.parts[name] = Part(self.since)
        return self.parts[name]

    def unknown_books(self, books: set[str]) -> list[str]:
        """Books that are not in the catalog and were not reported yet."""
        new = {book for book in books - self.unknown if catalog.book(book).id not in catalog.books()}
        self.unknown |= new
        return sorted(new)

    @property
    def problem(self) -> str:
        """The problem of a feed that keeps running."""
        return self.lag or self.warning or self.conflict

    @property
    def lag(self) -> str:
        return f"behind: {self.behind:,} games of its last payload are waiting" if self.behind else ""

    @property
    def public_problem(self) -> str:
        return self.lag or (self.public_warning or _SILENT if self.warning else self.conflict)

    def assess(self, now: datetime) -> Assessment:
        parts = {name: part.assess(now, self.down_after) for name, part in self.parts.items()}
        kinds = {part.status for part in parts.values()}
        impaired = Assessment(DEGRADED, self.problem, self.public_problem)
        if not kinds:  # it has not reported anything
            silent = Part(self.since).assess(now, self.down_after)
            if silent.status != STARTING:
                return silent
            why = self.lag or silent.reason
            return impaired if self.warning else Assessment(STARTING, why, why)
        for status in (DOWN, DEGRADED, STARTING, OK):
            if kinds == {status}:
                if self.problem and status in (OK, STARTING):
                    return impaired
                return Assessment(status, *_named(parts))
        bad = {name: part for name, part in parts.items() if part.status in (DOWN, DEGRADED)}
        if not bad:
            return impaired if self.problem else Assessment(OK)
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        return Assessment(DEGRADED, *(why + more for why in _named(bad)))

    def book(self, book: str, now: datetime) -> tuple[str, str, datetime | None]:
        """Status and reason of one of its books, and when it was last quoted."""
        parts = {name: part for name, part in self.parts.items() if book in part.books}
        last = max((part.books[book] for part in parts.values()), default=None)
        own = Track(self.name, self.kind, self.since, self.down_after, parts or self.parts)
        status, reason, _ = own.assess(now)
        if status == OK and all(part.polled for part in own.parts.values()):
            patience = self.down_after + max(part.within for part in own.parts.values())
            if _age(last or self.since, now) > patience:
                return DEGRADED, f"{self.name} answers, without a price of it since {_clock(last or self.since)}", last
        return status, reason and f"{self.name}: {reason}", last

    def books(self) -> set[str]:
        """All books it has delivered or is configured for."""
        return {book for part in self.parts.values() for book in part.books} | set(self.declared)

    def status(self, now: datetime) -> SourceStatus:
        status, reason, public = self.assess(now)
        seen_at = [part.seen_at for part in self.parts.values() if part.seen_at]
        drift = self.drift.counts
        if status == OK and not reason and drift.values:
            what = "a value" if drift.values == 1 else f"{drift.values} values"
            public = f"its answers have {what} that its contract does not know"
            reason = f"{public}: {next(iter(self.drift.values()))}"
        return SourceStatus(
            name=self.name, kind=self.kind, status=status, reason=reason, last_payload=self.last_payload,
            last_seen=max(seen_at, default=None), payloads=self.payloads, quotes=self.quotes,
            events=len(self.events), quarantined=len(self.doubtful),
            failures=max((part.failures for part in self.parts.values()), default=0),
            failures_total=self.failures_total, unmapped=self.unmapped.total(), refused=self.refused.total(),
            credits_left=self.credits[0], credits_used=self.credits[1], credits_an_hour=self.credits[2],
            books=tuple(sorted(self.books())), prices=self.prices, stale=self.stale,
            behind=self.behind, shared=tuple(sorted(self.shared)), conflict=bool(self.conflict), public=public,
            caught_up=self.caught_up.is_set(), written_at=self.written_at, unknown_values=drift.values,
            new_fields=drift.fields,
        )  # fmt: skip


def books_of(tracks: list[Track], now: datetime) -> list[BookStatus]:
    """Return the status of every book: the best of its feeds."""
    order = (OK, STARTING, DEGRADED, DOWN)
    out = []
    for book in sorted(set().union(*(track.books() for track in tracks))):
        statuses = [(track.name, *track.book(book, now)) for track in tracks if book in track.books()]
        best = min(statuses, key=lambda one: order.index(one[1]))
        last = max((one[3] for one in statuses if one[3]), default=None)
        out.append(BookStatus(book, best[1], best[2], tuple(one[0] for one in statuses), last))
    return out


def shortened(names: Sequence[str], most: int = 5) -> str:
    """A list of names of which only the first are written out."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _age(then: datetime, now: datetime) -> float:
    return (now - then) / timedelta(seconds=1)


def _named(parts: Mapping[str, Assessment]) -> tuple[str, str]:
    """The reason of the first part that has one, and its public form."""
    name, part = next(((name, part) for name, part in parts.items() if part.reason), ("", Assessment(OK)))
    start = f"{name}: " if name else ""
    return start + part.reason, start + part.public


def _clock(moment: datetime | None) -> str:
    return "the start" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"
