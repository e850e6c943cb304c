"""Quotes as the slow twins see them: one price with its market, and what is known of books and time."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

SECOND = 1_000_000
EPSILON = 1e-9


@dataclass(frozen=True)
class Book:
    """What the catalog knows about a book; the defaults are those of an unknown one."""

    name: str
    provider: str = ""
    sharp: bool = False
    exchange: bool = False
    mid_price: bool = False
    parlay_only: bool = False
    commission: float = 0.0
    fee: float = 0.0
    live_fee: float | None = None


@dataclass(frozen=True)
class Family:
    """One way of settling. `outcomes` in catalog order: over-like first, under-like last."""

    name: str
    outcomes: tuple[str, ...]
    has_line: bool = False
    is_spread: bool = False
    is_prop: bool = False
    is_team_total: bool = False


Ladder = tuple[str, bool, str, str, str]
Market = tuple[str, bool, str, str, str, int]
Segment = tuple[str, bool, str, str, str, int, str]


@dataclass(frozen=True)
class Quote:
    """One price whose identity is known. `row` is its place in the user's table."""

    row: int
    book: str
    event: str
    live: bool
    period: str
    family: Family
    subject: str
    line: int
    side: str
    odds: float
    name: str
    sport: str = ""
    seen: int | None = None
    start: int | None = None
    flap: bool = False
    rejected: bool = False
    confirmed: bool = False

    @property
    def prob(self) -> float:
        return 1.0 / self.odds

    @property
    def ladder(self) -> Ladder:
        return (self.event, self.live, self.period, self.family.name, self.subject)

    @property
    def market(self) -> Market:
        return (*self.ladder, self.line)

    @property
    def segment(self) -> Segment:
        return (*self.market, self.side)

    @property
    def threshold(self) -> int:
        """What the over-like side has to beat, in hundredths."""
        return -self.line if self.family.is_spread else self.line


@dataclass(frozen=True)
class World:
    """What a guard may know besides the quotes."""

    now: int
    books: Mapping[str, Book]
    witnesses: Mapping[Segment, list[tuple[Quote, float]]] = field(default_factory=dict)  # stale prices and weights

    def book(self, name: str) -> Book:
        return self.books.get(name, Book(name))

    def provider(self, name: str) -> str:
        """Books may share a provider; a book that does not is its own."""
        return self.book(name).provider or name

    def age(self, quote: Quote) -> float | None:
        """Seconds since the price was last seen; a time in the future counts as now."""
        return None if quote.seen is None else max(0.0, (self.now - quote.seen) / SECOND)


def logit(prob: float) -> float:
    return math.log(prob / (1.0 - prob))


def grouped(quotes: Iterable[Quote], key: Callable[[Quote], K]) -> dict[K, list[Quote]]:
    groups: dict[K, list[Quote]] = defaultdict(list)
    for quote in quotes:
        groups[key(quote)].append(quote)
    return dict(groups)


def rows(quotes: Iterable[Quote]) -> set[int]:
    return {quote.row for quote in quotes}


@dataclass(frozen=True)
class Voice:
    """What one provider says of an outcome, and how much that counts."""

    prob: float
    weight: float


def voices(segment: list[Quote], judged: str, world: World) -> list[Voice]:
    """One voice per provider other than the judged book's: its smallest book's lowest price, best a fresh one."""
    everybody = [(quote, 1.0) for quote in segment] + list(world.witnesses.get(segment[0].segment, ()))
    found: dict[str, tuple[tuple[bool, str, float, float], Voice]] = {}
    for quote, weight in everybody:
        rank = (weight < 1.0, quote.book, quote.odds, -weight)
        provider = world.provider(quote.book)
        if provider != world.provider(judged) and (provider not in found or rank < found[provider][0]):
            found[provider] = (rank, Voice(quote.prob, weight))
    return [voice for _, voice in found.values()]


def weighted_median(heard: list[Voice]) -> float:
    """The probability that half of the weight lies on either side of; the mean of two where both are it."""
    ordered = sorted(heard, key=lambda voice: -voice.prob)
    half = sum(voice.weight for voice in ordered) / 2.0
    before = 0.0
    for at, voice in enumerate(ordered):
        before += voice.weight
        if before > half:
            return voice.prob
        if before == half:
            return 0.5 * (voice.prob + ordered[at + 1].prob)
    raise ValueError("no voices")


def main_lines(prices: Iterable[tuple[Quote, float]]) -> dict[Ladder, int]:
    """Of every ladder the line most books quote; ties: the most balanced, then the lowest threshold."""
    markets: dict[Market, list[tuple[Quote, float]]] = defaultdict(list)
    for quote, price in prices:
        markets[quote.market].append((quote, price))
    ranked: dict[Ladder, list[tuple[int, float, int, int]]] = defaultdict(list)
    for market in markets.values():
        quote = market[0][0]
        first, last = (
            max((price for quote, price in market if quote.side == side), default=0.0)
            for side in (quote.family.outcomes[0], quote.family.outcomes[-1])
        )
        balance = abs(1.0 / first - 1.0 / last) if first and last else math.inf
        books = {quote.book for quote, _ in market}
        ranked[quote.ladder].append((-len(books), balance, quote.threshold, quote.line))
    return {ladder: min(lines)[-1] for ladder, lines in ranked.items()}
