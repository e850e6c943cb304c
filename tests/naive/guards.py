"""The guards, one plain function each: from the quotes that are left to the rows to reject.

The slow twin of the engine's guards. It imports nothing of the package and reads like the rules: every
function looks at all quotes that survived the guards before it, judges all of them, and only then names
the rows that go. Guards look at quoted prices, before commission.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from statistics import median

from naive.quotes import (
    EPSILON,
    Ladder,
    Market,
    Quote,
    Segment,
    World,
    grouped,
    logit,
    main_lines,
    rows,
    voices,
    weighted_median,
)

STALE_PREMATCH = 600.0
STALE_LIVE = 30.0
WITNESS_PREMATCH, WITNESS_LIVE = 3600.0, 120.0
WITNESS_WEIGHT, WITNESS_WEIGHT_OLD = 0.25, 0.125
EXACT, EXACT_SHARE = 0.0005, 0.5
FEW_AGREE = 0.10
LADDER_GAP = 0.25
DUPLICATE_GAP = 0.10
CONFLICT_GAP = 0.20
SUM_LOW, SUM_LOW_EXCHANGE, SUM_HIGH = 1.00, 0.995, 1.25
TEAM_LINES = 3
CROSS_GAP = 0.10
BIAS_SUBJECTS, BIAS_GAP = 5, -0.20
OUTLIER_FEEDS, OUTLIER_MAIN, OUTLIER_OTHER, OUTLIER_SLOPE = 3, 0.24, 0.35, 0.015


@dataclass
class Verdict:
    """What the guards leave: the quotes, why each other row went, and who may not be a reference."""

    survivors: list[Quote]
    aside: dict[int, str] = field(default_factory=dict)
    stingy: set[tuple[str, Market]] = field(default_factory=set)
    doubtful: set[tuple[str, Market]] = field(default_factory=set)


def stale(quotes: list[Quote], world: World) -> set[int]:
    aside = set()
    for quote in quotes:
        age = world.age(quote)
        if quote.live and (age is None or age > STALE_LIVE):
            aside.add(quote.row)
        if not quote.live and age is not None and age > STALE_PREMATCH:
            aside.add(quote.row)
    return aside


def started_not_live(quotes: list[Quote], world: World) -> set[int]:
    return {quote.row for quote in quotes if not quote.live and quote.start is not None and quote.start < world.now}


def witness_weight(quote: Quote, world: World) -> float:
    """What a price that is rejected as stale counts for in a median."""
    age = world.age(quote)
    if age is None:
        return 0.0
    fresh, last = (STALE_LIVE, WITNESS_LIVE) if quote.live else (STALE_PREMATCH, WITNESS_PREMATCH)
    if age > last:
        return 0.0
    return WITNESS_WEIGHT if age <= 2.0 * fresh else WITNESS_WEIGHT_OLD


def mid_price_source(quotes: list[Quote], world: World) -> set[int]:
    """Sources that the catalog says publish mid prices, and books whose two sides sum to exactly 1."""
    aside = {quote.row for quote in quotes if world.book(quote.book).mid_price}
    offers = [quote for quote in quotes if quote.row not in aside]
    kinds = grouped(offers, lambda quote: (quote.book, quote.event, quote.live, quote.period, quote.family.name))
    for group in kinds.values():
        exact, complete = [], 0
        for market in grouped(group, lambda quote: quote.market).values():
            sides = grouped(market, lambda quote: quote.side)
            if len(market[0].family.outcomes) == 2 and len(sides) == 2:
                complete += 1
                if abs(_total(market) - 1.0) <= EXACT + EPSILON:
                    exact.append(market)
        if len(exact) > EXACT_SHARE * complete:
            aside |= rows(group)
        for market in exact:
            aside |= rows(market) if _total(market) >= 1.0 - EPSILON else set()
    return aside


def _total(market: list[Quote]) -> float:
    sides = grouped(market, lambda quote: quote.side)
    return sum(max(quote.prob for quote in side) for side in sides.values())


def parlay_only(quotes: list[Quote], world: World) -> set[int]:
    return {quote.row for quote in quotes if world.book(quote.book).parlay_only}


def duplicate_outcome(quotes: list[Quote], world: World) -> set[int]:
    """One book, one outcome, one market name, several prices: if all are close the lowest stays."""
    aside = set()
    for group in grouped(quotes, lambda quote: (quote.book, quote.segment, quote.name)).values():
        ordered = sorted(group, key=lambda quote: (quote.odds, -(quote.seen or 0), quote.row))
        gap = logit(ordered[0].prob) - logit(ordered[-1].prob)
        aside |= rows(ordered[1:] if gap <= DUPLICATE_GAP else ordered if len(ordered) > 1 else [])
    return aside


def ladder(quotes: list[Quote], world: World) -> set[int]:
    """Over a harder line a book's price must not get more likely, whichever two lines are compared."""
    aside = set()
    for group in grouped(quotes, lambda quote: (quote.book, quote.ladder)).values():
        if any(_wrong_way(a, b) for a in group for b in group):
            aside |= rows(group)
    return aside


def _wrong_way(a: Quote, b: Quote) -> bool:
    if a.side != b.side or a.threshold >= b.threshold or len(a.family.outcomes) < 2:
        return False
    rise = logit(b.prob) - logit(a.prob)
    if a.side == a.family.outcomes[0]:
        return rise > LADDER_GAP
    if a.side == a.family.outcomes[-1]:
        return -rise > LADDER_GAP
    return False


def internal_conflict(quotes: list[Quote], world: World) -> set[int]:
    """Two market names of one book disagree about one outcome: the one nearer the others' median stays.

    Whatever else the other name says of that ladder goes with it.
    """
    wrong = set()
    for segment in grouped(quotes, lambda quote: quote.segment).values():
        for book, own in grouped(segment, lambda quote: quote.book).items():
            logits = [logit(quote.prob) for quote in own]
            if len({quote.name for quote in own}) < 2 or max(logits) - min(logits) <= CONFLICT_GAP:
                continue
            others = voices(segment, book, world)
            losers = own
            if len(others) >= 2:
                middle = logit(weighted_median(others))
                nearest = min(abs(value - middle) for value in logits)
                losers = [quote for quote in own if abs(logit(quote.prob) - middle) > nearest]
            wrong |= {(book, quote.name, quote.ladder) for quote in losers}
    return {quote.row for quote in quotes if (quote.book, quote.name, quote.ladder) in wrong}


def book_sum(quotes: list[Quote], world: World) -> set[int]:
    """A book's own complete market pays too much (its ladder goes) or far too little (that market goes)."""
    aside = set()
    for (book, _), group in grouped(quotes, lambda quote: (quote.book, quote.ladder)).items():
        low = SUM_LOW_EXCHANGE if world.book(book).exchange else SUM_LOW
        for market in grouped(group, lambda quote: quote.market).values():
            sides = grouped(market, lambda quote: quote.side)
            if set(sides) != set(market[0].family.outcomes):
                continue
            total = _total(market)
            if total < low - EPSILON:
                aside |= rows(group)
            if total > SUM_HIGH + EPSILON:
                aside |= rows(market)
    return aside


def one_team_lines(quotes: list[Quote], world: World) -> set[int]:
    """Three or more lines of team totals and none for both teams: the team label is not to be trusted."""
    aside = set()
    totals = [quote for quote in quotes if quote.family.is_team_total]
    keys = grouped(totals, lambda quote: (quote.event, quote.live, quote.period, quote.family.name, quote.book))
    for group in keys.values():
        home = {quote.line for quote in group if quote.subject == "home"}
        away = {quote.line for quote in group if quote.subject == "away"}
        if len(home | away) >= TEAM_LINES and not home & away:
            aside |= rows(group)
    return aside


def ladder_cross(quotes: list[Quote], world: World) -> set[int]:
    """Two books contradict across lines: the one with most contradictions goes, until there are none."""
    aside: set[int] = set()
    for group in grouped(quotes, lambda quote: quote.ladder).values():
        left = list(group)
        while True:
            crossed = [(a, b) for a in left for b in left if _crosses(a, b, world)]
            pairs = [pair for a, b in crossed for pair in ((a.book, b), (b.book, a))]
            if not pairs:
                break
            counts = {
                book: (
                    len({world.provider(other.book) for judged, other in pairs if judged == book}),
                    sum(judged == book and _speaks(other, left, world) for judged, other in pairs),
                )
                for book, _ in pairs
            }
            worst = max(counts.values())
            gone = {book for book, count in counts.items() if count == worst}
            aside |= rows(quote for quote in left if quote.book in gone)
            left = [quote for quote in left if quote.book not in gone]
    return aside


def _speaks(quote: Quote, left: list[Quote], world: World) -> bool:
    """Whether no sister of the quote's book stands before it at the same outcome."""
    return not any(
        other.book < quote.book
        and world.provider(other.book) == world.provider(quote.book)
        and (other.threshold, other.side) == (quote.threshold, quote.side)
        for other in left
    )


def _crosses(a: Quote, b: Quote, world: World) -> bool:
    """Whether `a`, on the harder line for its side, is more likely than `b` on the easier one."""
    if a.side != b.side or world.provider(a.book) == world.provider(b.book) or len(a.family.outcomes) < 2:
        return False
    if a.side == a.family.outcomes[0]:
        harder = a.threshold > b.threshold
    elif a.side == a.family.outcomes[-1]:
        harder = a.threshold < b.threshold
    else:
        return False
    return harder and a.prob > b.prob + CROSS_GAP + EPSILON


def bias(quotes: list[Quote], world: World) -> set[int]:
    """Props of one side: a book that is more generous than the others on subject after subject."""
    aside = set()
    segments = grouped(quotes, lambda quote: quote.segment)
    props = [quote for quote in quotes if quote.family.is_prop]
    for group in grouped(
        props,
        lambda quote: (quote.event, quote.live, quote.period, quote.family.name, quote.side, quote.book),
    ).values():
        gaps, subjects = [], set()
        for quote in group:
            others = voices(segments[quote.segment], quote.book, world)
            if others:
                gaps.append(logit(quote.prob) - logit(weighted_median(others)))
                subjects.add(quote.subject)
        if len(subjects) >= BIAS_SUBJECTS and median(gaps) < BIAS_GAP:
            aside |= rows(group)
    return aside


def outlier(quotes: list[Quote], world: World) -> set[int]:
    """A price too generous beside three or more other providers: that book's market."""
    aside = set()
    bounds = _outlier_gaps(quotes, world)
    for group in grouped(quotes, lambda quote: (quote.book, quote.market)).values():
        if any(quote.row in bounds and bounds[quote.row][0] < -bounds[quote.row][1] for quote in group):
            aside |= rows(group)
    return aside


def too_stingy(quotes: list[Quote], world: World) -> set[tuple[str, Market]]:
    """The same bound on the other side: the price stays, but its market may not be a reference."""
    bounds = _outlier_gaps(quotes, world)
    return {
        (quote.book, quote.market)
        for quote in quotes
        if quote.row in bounds and bounds[quote.row][0] > bounds[quote.row][1]
    }


def _outlier_gaps(quotes: list[Quote], world: World) -> dict[int, tuple[float, float]]:
    """Per row with enough other providers: the logit gap to their median, and the bound on it."""
    main = main_lines((quote, quote.odds) for quote in quotes)
    gaps = {}
    for segment in grouped(quotes, lambda quote: quote.segment).values():
        for quote in segment:
            others = voices(segment, quote.book, world)
            if len(others) < OUTLIER_FEEDS:
                continue
            m = weighted_median(others)
            gaps[quote.row] = (logit(quote.prob) - logit(m), _bound(quote, m, main))
    return gaps


def _bound(quote: Quote, m: float, main: dict[Ladder, int]) -> float:
    is_main = not quote.family.has_line or main[quote.ladder] == quote.line
    plain = not quote.live and quote.period == "full_game" and not quote.family.is_prop and is_main
    return (OUTLIER_MAIN if plain else OUTLIER_OTHER) + OUTLIER_SLOPE / (m * (1.0 - m))


def few_witnesses(quotes: list[Quote], world: World) -> set[tuple[str, Market]]:
    """A price too generous beside the only other providers, two of them, that agree: that book's market is in doubt."""
    main = main_lines((quote, quote.odds) for quote in quotes)
    doubtful = set()
    for segment in grouped(quotes, lambda quote: quote.segment).values():
        for quote in segment:
            others = voices(segment, quote.book, world)
            if quote.confirmed or not 2 <= len(others) < OUTLIER_FEEDS:
                continue
            logits = [logit(voice.prob) for voice in others]
            if max(logits) - min(logits) > FEW_AGREE + EPSILON:
                continue
            if min(logits) - logit(quote.prob) > _bound(quote, weighted_median(others), main):
                doubtful.add((quote.book, quote.market))
    return doubtful


def flap(quotes: list[Quote], world: World) -> set[int]:
    """A price that keeps leaving a value and coming back: that book's market."""
    flapping = {(quote.book, quote.market) for quote in quotes if quote.flap}
    return {quote.row for quote in quotes if (quote.book, quote.market) in flapping}


def upstream(quotes: list[Quote], world: World) -> set[int]:
    """What the node it comes from rejects is rejected here."""
    return rows(quote for quote in quotes if quote.rejected)


GUARDS: dict[str, Callable[[list[Quote], World], set[int]]] = {
    "stale": stale,
    "started_not_live": started_not_live,
    "parlay_only": parlay_only,
    "mid_price_source": mid_price_source,
    "duplicate_outcome": duplicate_outcome,
    "ladder": ladder,
    "internal_conflict": internal_conflict,
    "book_sum": book_sum,
    "one_team_lines": one_team_lines,
    "ladder_cross": ladder_cross,
    "bias": bias,
    "outlier": outlier,
    "few_witnesses": lambda quotes, world: set(),
    "flap": flap,
    "upstream": upstream,
}


ROW_GUARDS = ("bad_price", "price_mismatch", "other_game", "side_conflict", "unknown_outcome", "no_line")
ALL_GUARDS = (*ROW_GUARDS, *GUARDS, "ev_cap")


def _witnesses(gone: list[Quote], world: World, wanted: set[str]) -> dict[Segment, list[tuple[Quote, float]]]:
    """Stale prices that still testify, unless another reason speaks against them, with their weights."""
    others = [name for name in ("started_not_live", "parlay_only", "mid_price_source") if name in wanted]
    found: dict[Segment, list[tuple[Quote, float]]] = {}
    for quote in gone:
        weight = witness_weight(quote, world)
        late = "started_not_live" in others and bool(started_not_live([quote], world))
        book = world.book(quote.book)
        barred = late or ("mid_price_source" in others and book.mid_price)
        barred = barred or ("parlay_only" in others and book.parlay_only)
        if weight and not barred:
            found.setdefault(quote.segment, []).append((quote, weight))
    return found


def judge(quotes: Iterable[Quote], world: World, enabled: Iterable[str]) -> Verdict:
    """Run the enabled guards in their published order."""
    wanted = set(enabled)
    everyone = list(quotes)
    verdict = Verdict(survivors=list(everyone))
    for name, guard in GUARDS.items():
        if name not in wanted:
            continue
        if name == "few_witnesses":
            verdict.doubtful = few_witnesses(verdict.survivors, world)
        if name == "outlier":
            verdict.stingy = too_stingy(verdict.survivors, world)
        # The memory of a flap belongs to the book's market, whichever of its prices came with it.
        gone = guard(everyone if name == "flap" else verdict.survivors, world) - set(verdict.aside)
        verdict.aside |= dict.fromkeys(gone, name)
        verdict.survivors = [quote for quote in verdict.survivors if quote.row not in gone]
        if name == "stale":
            world = replace(
                world, witnesses=_witnesses([quote for quote in everyone if quote.row in gone], world, wanted)
            )
    return verdict
