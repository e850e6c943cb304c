"""The four kinds of opportunities by enumeration, over the quotes that the guards left.

The slow twin of the engine's detectors: every combination of legs, every pair of lines, every (book,
outcome) is looked at. It imports nothing of the package.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import median

from naive.devig import devig
from naive.guards import ALL_GUARDS
from naive.quotes import EPSILON, SECOND, Book, Market, Quote, World, logit, main_lines

LEG_AGE, LEG_SPREAD, PREMATCH_SPREAD = 10.0, 5.0, 300.0
PROFIT_CAP, EV_CAP = 0.10, 0.30
WIDE, LEAST_WIDTH = 5.0, 0.5


@dataclass(frozen=True)
class Settings:
    """What the user asks for; the thresholds are in percent, as in the public functions."""

    sharp: tuple[str, ...] | Mapping[str, float]
    books: frozenset[str] | None = None
    method: str = "power"
    min_ev: float = 0.0
    max_ev: float = 100.0
    min_profit: float = 0.0
    max_hold: float = 2.0
    min_size: float = 0.0
    commission: Mapping[str, float] = field(default_factory=dict)
    guards: frozenset[str] = frozenset(ALL_GUARDS)


@dataclass(frozen=True)
class Leg:
    """A surviving quote at its price after commission."""

    quote: Quote
    price: float

    @property
    def book(self) -> str:
        return self.quote.book

    @property
    def cost(self) -> float:
        return 1.0 / self.price


@dataclass
class View:
    """What one user looks at.

    `offers` are the legs of the user's books, `everything` is all there is. `universe` has the offers and the
    references' too: the `members` are behind a consensus, the `speakers` (the user's and the named references) in a
    median. A book may not be the reference where it is `stingy`.
    """

    offers: list[Leg]
    everything: list[Leg]
    universe: list[Leg]
    members: frozenset[str]
    speakers: frozenset[str]
    stingy: set[tuple[str, Market]]
    doubtful: set[tuple[str, Market]]
    world: World
    settings: Settings

    def admissible(self, legs: Iterable[Leg]) -> bool:
        """Legs have to be close in time, live ones fresh too, as long as the guard `stale` is on."""
        legs = list(legs)
        if "stale" not in self.settings.guards:
            return True
        seen = [leg.quote.seen for leg in legs if leg.quote.seen is not None]
        if not legs[0].quote.live:
            return not seen or (max(seen) - min(seen)) / SECOND <= PREMATCH_SPREAD
        oldest = max(self.world.age(leg.quote) or 0.0 for leg in legs)
        return oldest <= LEG_AGE and (max(seen) - min(seen)) / SECOND <= LEG_SPREAD

    def unconfirmed(self, legs: Iterable[Leg]) -> bool:
        """Whether one of some legs is in doubt."""
        return any((leg.book, leg.quote.market) in self.doubtful for leg in legs)


def fee_of(book: Book, quote: Quote) -> float:
    """F of the fee per contract, which may be another one in play."""
    return book.live_fee if quote.live and book.live_fee is not None else book.fee


def after_commission(quote: Quote, world: World, commission: Mapping[str, float]) -> float:
    """The price a winning bet really pays."""
    odds, book = quote.odds, quote.book
    if book in commission:
        return 1.0 + (odds - 1.0) * (1.0 - commission[book])
    known = world.book(book)
    if fee := fee_of(known, quote):
        p = 1.0 / odds
        return 1.0 / (p + fee * p * (1.0 - p))
    return 1.0 + (odds - 1.0) * (1.0 - known.commission)


def view(
    survivors: Iterable[Quote], stingy: set[tuple[str, Market]], doubtful: set[tuple[str, Market]], world: World,
    settings: Settings,
) -> View:  # fmt: skip
    legs = [Leg(quote, after_commission(quote, world, settings.commission)) for quote in survivors]
    everyone = frozenset(leg.book for leg in legs)
    offered = everyone if settings.books is None else settings.books
    professional = {name for name, book in world.books.items() if book.sharp or book.exchange}
    named = frozenset(settings.sharp)
    members = named if isinstance(settings.sharp, Mapping) else named | professional
    return View(
        offers=[leg for leg in legs if leg.book in offered],
        everything=legs,
        universe=[leg for leg in legs if leg.book in offered | members],
        members=members,
        speakers=offered | named,
        stingy=stingy,
        doubtful=doubtful,
        world=world,
        settings=settings,
    )


def complete(legs: Iterable[Leg]) -> list[list[Leg]] | None:
    """The legs of one market by outcome, in catalog order; None if an outcome has no leg."""
    legs = list(legs)
    sides = [[leg for leg in legs if leg.quote.side == side] for side in legs[0].quote.family.outcomes]
    return sides if len(sides) > 1 and all(sides) else None


def own_market(legs: Iterable[Leg], book: str) -> list[Leg] | None:
    """A book's own complete market as a reference: of two names the lower price."""
    own = [leg for leg in legs if leg.book == book]
    sides = complete(own) if own else None
    return None if sides is None else [min(side, key=lambda leg: leg.price) for side in sides]


def width(legs: Iterable[Leg]) -> float:
    """The overround in percent."""
    return (sum(leg.cost for leg in legs) - 1.0) * 100.0


def markets(legs: Iterable[Leg]) -> dict[Market, list[Leg]]:
    by_market: dict[Market, list[Leg]] = {}
    for leg in legs:
        by_market.setdefault(leg.quote.market, []).append(leg)
    return by_market


# -- arbitrage and low hold ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Combination:
    """One leg per outcome, the cheapest way to own the whole market."""

    market: Market
    legs: tuple[Leg, ...]
    costs: tuple[float, ...]
    alternate: bool

    @property
    def total(self) -> float:
        return sum(self.costs)

    @property
    def profit(self) -> float:
        return 1.0 / self.total - 1.0

    @property
    def shares(self) -> list[float]:
        return [cost / self.total for cost in self.costs]


def best_combinations(board: View, least_books: int) -> Iterator[Combination]:
    """Of every market the cheapest admissible set of legs; ties: the smallest tuple of books."""
    main = main_lines((leg.quote, leg.price) for leg in board.offers)
    offers = markets(board.offers)
    for key, legs in offers.items():
        sides = [[*side_legs(legs, side), *twins_of(offers, legs[0].quote, side)] for side in outcomes(legs)]
        if len(sides) < 2 or not all(sides):
            continue
        found = [
            chosen
            for chosen in product(*sides)
            if len({leg.book for leg in chosen}) >= least_books and board.admissible(chosen)
        ]
        if found:
            own = legs[0].quote
            best = min(
                found,
                key=lambda chosen: (
                    sum(leg.cost for leg in chosen),
                    [leg.book for leg in chosen],
                    [leg.quote.market != key for leg in chosen],
                ),
            )
            if all(leg.quote.market != key for leg in best) or is_repeated(best, own):
                continue  # it is one of another market
            alternate = own.family.has_line and main[own.ladder] != own.line
            yield Combination(key, best, costs(board, best), alternate)


def costs(board: View, legs: Sequence[Leg]) -> tuple[float, ...]:
    """Money on each leg for one unit whichever wins; commission is on the net winnings at a book in a market."""
    found = [leg.cost for leg in legs]
    for book, market in {(leg.book, leg.quote.market) for leg in legs}:
        places = [at for at, leg in enumerate(legs) if (leg.book, leg.quote.market) == (book, market)]
        known = board.world.book(book)
        rate = board.settings.commission.get(book, 0.0 if fee_of(known, legs[places[0]].quote) else known.commission)
        if not 1 < len(places) < len(legs) or not rate:
            continue
        staked = sum(found[at] for at in places)
        for _ in range(300):  # until the stakes suit their own sum
            for at in places:
                odds = legs[at].quote.odds
                wins = 1.0 / odds
                found[at] = wins if wins * odds <= staked else (1.0 - rate * staked) / (odds * (1.0 - rate))
            staked = sum(found[at] for at in places)
    return tuple(found)


def outcomes(legs: Sequence[Leg]) -> tuple[str, ...]:
    return legs[0].quote.family.outcomes


def side_legs(legs: Iterable[Leg], side: str) -> list[Leg]:
    return [leg for leg in legs if leg.quote.side == side]


def twins_of(offers: Mapping[Market, list[Leg]], own: Quote, side: str) -> list[Leg]:
    """The prices of an outcome in other markets in which it is the same bet."""
    wanted = fact(replace(own, side=side))
    if wanted is None:
        return []
    return [leg for key, legs in offers.items() if key != own.market for leg in legs if fact(leg.quote) == wanted]


def is_repeated(best: Sequence[Leg], own: Quote) -> bool:
    """Whether the same bets are found in a market before this one, all of whose outcomes are twins of this one's."""
    facts = {fact(replace(own, side=side)) for side in own.family.outcomes}
    others = [leg.quote for leg in best if leg.quote.market != own.market]
    return any(
        None not in facts
        and facts == {fact(replace(other, side=side)) for side in other.family.outcomes}
        and other.family.name < own.family.name
        for other in others
    )


def find_arbitrage(board: View) -> list[Combination]:
    """Combinations with a profit, unless losing ones are asked for."""
    least = board.settings.min_profit / 100.0
    least = least - EPSILON if least < 0.0 else max(least - EPSILON, EPSILON)
    return [best for best in best_combinations(board, least_books=2) if least <= best.profit <= PROFIT_CAP + EPSILON]


def find_low_hold(board: View) -> list[Combination]:
    most = board.settings.max_hold / 100.0 + EPSILON
    return [
        best for best in best_combinations(board, least_books=1) if best.profit < EPSILON and best.total - 1.0 <= most
    ]


def books_at_best(board: View, best: Combination) -> list[list[str]]:
    """Per outcome every book that offers the price of the chosen leg, in time for all chosen legs."""
    offers = markets(board.offers)
    return [
        sorted(
            {
                leg.book
                for leg in offers[chosen.quote.market]
                if leg.quote.side == chosen.quote.side
                and leg.price == chosen.price
                and board.admissible((leg, *best.legs))
            }
        )
        for chosen in best.legs
    ]


# -- positive expected value --------------------------------------------------------------------------


@dataclass(frozen=True)
class Fair:
    """What a price is compared with: probabilities by outcome, whose they are, and how wide that is."""

    book: str
    probs: Mapping[str, float]
    width: float
    legs: tuple[Leg, ...]


@dataclass(frozen=True)
class Value:
    """One price that is better than fair."""

    leg: Leg
    fair: Fair
    book_count: int
    confidence: float

    @property
    def prob(self) -> float:
        return self.fair.probs[self.leg.quote.side]

    @property
    def ev(self) -> float:
        return self.prob * self.leg.price - 1.0

    @property
    def kelly(self) -> float:
        return max(0.0, self.ev / (self.leg.price - 1.0))


def _fair(book: str, own: Sequence[Leg], method: str) -> Fair | None:
    probs = devig([leg.price for leg in own], method)
    if any(math.isnan(p) for p in probs):
        return None
    named = {leg.quote.side: p for leg, p in zip(own, probs, strict=True)}
    return Fair(book, named, width(own), tuple(own))


def fair_of(board: View, legs: Iterable[Leg], book: str) -> Fair | None:
    """A book's own fair probabilities, where it quotes the whole market and the method has an answer."""
    own = own_market(legs, book)
    return None if own is None else _fair(book, own, board.settings.method)


def trusted(board: View, legs: Iterable[Leg]) -> list[Leg]:
    """Legs of one market whose books may be references there."""
    return [leg for leg in legs if leg.book in board.members and (leg.book, leg.quote.market) not in board.stingy]


def consensus(board: View, legs: list[Leg], judged: Leg, weights: Mapping[str, float] | None) -> Fair | None:
    """The weighted mean of the members' fair probabilities: given weights, or one over the width."""
    members = []
    for book in sorted({leg.book for leg in legs} - {judged.book}):
        fair = fair_of(board, legs, book)
        if fair is None or not board.admissible((judged, *fair.legs)):
            continue
        weight = 1.0 / max(fair.width, LEAST_WIDTH) if weights is None else weights[book]
        members.append((weight, fair))
    wide = [fair.width > WIDE + 100.0 * EPSILON for _, fair in members]
    if not members or (len(members) == 1 and (weights is None or wide[0])):
        return None  # a wide reference is not trusted alone
    total = sum(weight for weight, _ in members)
    probs = {
        side: sum(weight * fair.probs[side] for weight, fair in members) / total
        for side in judged.quote.family.outcomes
    }
    mean_width = sum(weight * fair.width for weight, fair in members) / total
    return Fair("consensus", probs, mean_width, tuple(leg for _, fair in members for leg in fair.legs))


def reference(board: View, legs: list[Leg], judged: Leg) -> Fair | None:
    """The fair probabilities a price is held against: the first sharp book, or a consensus."""
    legs, sharp = trusted(board, legs), board.settings.sharp
    if isinstance(sharp, Mapping):
        return consensus(board, legs, judged, sharp)
    for book in sharp:
        fair = fair_of(board, legs, book)
        if fair is None:
            continue
        if fair.width > WIDE + 100.0 * EPSILON:
            return consensus(board, legs, judged, None)
        alone = book != judged.book and board.admissible((judged, *fair.legs))
        return fair if alone else None
    return None


FACTS = {
    ("first_team_to_score", "", 0, "none"): "no goal",
    ("total", "", 50, "under"): "no goal",
    ("moneyline_3way", "", 0, "home"): "home wins",
    ("spread", "", -50, "home"): "home wins",
    ("moneyline_3way", "", 0, "draw"): "draw",
    ("draw", "", 0, "yes"): "draw",
    ("moneyline_3way", "", 0, "away"): "away wins",
    ("spread", "", 50, "away"): "away wins",
    ("clean_sheet", "home", 0, "yes"): "away scores none",
    ("team_total", "away", 50, "under"): "away scores none",
    ("clean_sheet", "home", 0, "no"): "away scores",
    ("team_total", "away", 50, "over"): "away scores",
}


def fact(quote: Quote) -> tuple[str, bool, str, str] | None:
    """What a quote settles on, where another family settles on it too."""
    name = FACTS.get((quote.family.name, quote.subject, quote.line, quote.side))
    return None if name is None or quote.sport != "soccer" else (quote.event, quote.live, quote.period, name)


def by_twins(board: View, judged: Leg, fair: Fair) -> Fair:
    """The same with the smallest of the fair probabilities that the references of the twins give the outcome."""
    side, wanted = judged.quote.side, fact(judged.quote)
    probs = dict(fair.probs)
    if wanted is None:
        return fair
    for key, legs in markets(board.universe).items():
        twins = {leg.quote.side for leg in legs if fact(leg.quote) == wanted} if key != judged.quote.market else set()
        for other in twins:
            stand_in = Leg(replace(legs[0].quote, book=judged.book, live=False), judged.price)
            found = reference(board, legs, stand_in)
            if found is not None:
                probs[side] = min(probs[side], found.probs[other])
    return replace(fair, probs=probs)


def find_ev(board: View) -> list[Value]:
    """Every (book, outcome) against its reference; of two names of a book the better admissible price."""
    found = []
    offers = markets(board.offers)
    for key, legs in markets(board.universe).items():
        offered = offers.get(key, [])
        books = len({leg.book for leg in offered})
        for segment in by(offered, lambda leg: (leg.book, leg.quote.side)):
            for leg in sorted(segment, key=lambda leg: -leg.price):
                fair = reference(board, legs, leg)
                if fair is not None:
                    fair = by_twins(board, leg, fair)
                    found.append(Value(leg, fair, books, _confidence(board, legs, leg, fair)))
                    break
    settings = board.settings
    most = min(settings.max_ev / 100.0, EV_CAP if "ev_cap" in settings.guards else math.inf) + EPSILON
    return [value for value in found if settings.min_ev / 100.0 - EPSILON <= value.ev <= most]


def by(legs: Iterable[Leg], key: object) -> list[list[Leg]]:
    groups: dict[object, list[Leg]] = {}
    for leg in legs:
        groups.setdefault(key(leg), []).append(leg)  # type: ignore[operator]
    return list(groups.values())


def _confidence(board: View, everyone: list[Leg], judged: Leg, fair: Fair) -> float:
    """100 W B F L E of a price against its reference."""
    side, world = judged.quote.side, board.world
    p = fair.probs[side]
    others: dict[str, float] = {}
    for book in sorted({leg.book for leg in everyone} & board.speakers):
        own = fair_of(board, everyone, book)
        provider = world.provider(book)
        if fair.book == "consensus":
            part = book in board.members
        else:
            part = provider == world.provider(fair.book)
        if own is not None and not part and provider != world.provider(judged.book):
            others.setdefault(provider, own.probs[side])
    agreement = 0.7
    if len(others) >= 2:
        agreement = math.exp(-abs(logit(p) - logit(median(others.values()))) / 0.15)
    ages = [world.age(leg.quote) or 0.0 for leg in (judged, *fair.legs)]
    ev = (p * judged.price - 1.0) * 100.0
    return (
        100.0
        * min(1.0, max(0.2, 1.0 - (fair.width - 2.0) / 8.0))
        * agreement
        * math.exp(-max(ages) / (15.0 if judged.quote.live else 300.0))
        * math.sqrt(min(1.0, p / 0.10))
        * min(1.0, max(0.0, 1.0 - (ev - 5.0) / 25.0))
    )
