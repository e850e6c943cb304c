"""The engine against its slow twin: the same rows rejected, the same opportunities, the same figures.

Findings are compared by what they consist of (event, lines, books, quoted prices), so a tie between two rows
of one book does not matter, and then figure by figure.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.devig import METHODS
from naive.finders import (
    ALL_GUARDS,
    Leg,
    Scan,
    Settings,
    books_at_best,
    expected_return,
    generous,
    known_tail,
    probability,
    scan,
)
from support.boards import COLUMNS, boards, frame, meant, random_board
from support.effort import some
from support.hazards import NOW, Row
from support.rows import whatever_is_found

import oddsengine

MOMENT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=NOW)
BOOKS = ("pinnacle", "circa", "betonline", "betfair_exchange", "kalshi", "betrivers", "unibet", "draftkings",
         "fanduel", "betmgm", "caesars", "bet365", "corner_shop", "zebra_bets")  # fmt: skip

Found = dict[Hashable, list[tuple[float, ...]]]


@st.composite
def users(draw: st.DrawFn) -> Settings:
    """What a user may ask: books, references, method, thresholds, commission, guards."""
    order = st.lists(st.sampled_from(BOOKS), min_size=1, max_size=4, unique=True).map(tuple)
    weights = st.dictionaries(st.sampled_from(BOOKS), st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=3)
    some = st.sets(st.sampled_from(BOOKS), min_size=1).map(frozenset)
    guards = st.sets(st.sampled_from(ALL_GUARDS)).map(frozenset)
    return Settings(
        sharp=draw(st.one_of(st.just(("pinnacle", "circa", "betonline")), order, weights)),
        books=draw(st.one_of(st.none(), some)),
        method=draw(st.sampled_from(sorted(METHODS))),
        min_ev=draw(st.sampled_from([0.0, 1.0, -3.0])),
        max_ev=draw(st.sampled_from([100.0, 8.0])),
        min_profit=draw(st.sampled_from([0.0, 0.5, 2.0])),
        max_hold=draw(st.sampled_from([2.0, 0.5, 5.0])),
        min_size=draw(st.sampled_from([0.0, 1.0, 2.0])),
        commission=draw(st.dictionaries(st.sampled_from(BOOKS), st.sampled_from([0.0, 0.02, 0.05]), max_size=3)),
        guards=draw(st.one_of(st.just(frozenset(ALL_GUARDS)), guards)),
    )


def some_user(seed: int) -> Settings:
    """A user from a seed, for the larger boards."""
    rng = random.Random(seed)
    orders: list[tuple[str, ...] | dict[str, float]] = [
        ("pinnacle", "circa", "betonline"), ("circa",), {"pinnacle": 3.0, "fanduel": 1.0},
        ("bet365", "betfair_exchange"),  # one of them is the first book of most boards
    ]  # fmt: skip
    return Settings(
        sharp=rng.choice(orders),
        books=rng.choice([None, frozenset(rng.sample(BOOKS, 8))]),
        method=rng.choice(["power", "shin"]),
        max_ev=100.0,
        commission=rng.choice([{}, {"fanduel": 0.02}]),
    )


def tabulate(pairs: Iterable[tuple[Hashable, tuple[float, ...]]]) -> Found:
    """Figures by key; several findings with one key in order of their figures."""
    found: Found = defaultdict(list)
    for key, figures in pairs:
        found[key].append(figures)
    return {key: sorted(rows) for key, rows in found.items()}


def alike(engine: Found, twin: Found) -> None:
    assert set(engine) == set(twin)
    for key, figures in twin.items():
        assert len(engine[key]) == len(figures), key
        for ours, theirs in zip(engine[key], figures, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True), key


def ask(find: Callable[..., Any], rows: Sequence[Row], user: Settings, *names: str) -> list[dict[str, Any]]:
    """Rows of one public finder."""
    given = {name: getattr(user, name) for name in names}
    here = {row["sportsbook"] for row in rows}
    books, sharp, commission = (meant(word, here) for word in (user.books, user.sharp, user.commission))
    with whatever_is_found():
        found = find(
            frame(rows),
            books=books,
            sharp=sharp,
            commission=commission,
            guards=sorted(user.guards),
            now=MOMENT,
            **given,
        )
    return list(found.iter_rows(named=True))


def offered(leg: Leg) -> tuple[str, float]:
    return leg.book, round(leg.quote.odds, 9)


def size_of(line: float | None) -> float:
    """A line without its sign, which differs between the sides of a spread."""
    return abs(line or 0.0)


# -- one comparison a question ------------------------------------------------------------------------


def check_rejected(rows: Sequence[Row], user: Settings, twin: Scan) -> None:
    said = oddsengine.rejected(frame(rows), guards=sorted(user.guards), now=MOMENT)
    engine = {row: guard for row, guard in said.select("row", "guard").iter_rows() if guard != "ev_cap"}
    assert told(rows, engine) == told(rows, twin.rejected)


def told(rows: Sequence[Row], guards: Mapping[int, str]) -> Counter[Hashable]:
    """Guards by row; of two equal prices either may be the one that stays, so there a duplicate is its price."""
    price = ("sportsbook", "event_id", "is_live", "market_type", "line")
    return Counter(
        (guard, *(rows[row][name] for name in price)) if guard == "duplicate_outcome" else (guard, row)
        for row, guard in guards.items()
    )


def check_arbitrage(rows: Sequence[Row], user: Settings, twin: Scan) -> None:
    found = ask(oddsengine.find_arbitrage, rows, user, "min_profit")
    engine = tabulate(
        (
            (row["event_id"], row["is_live"], size_of(row["line"]),
             tuple((leg["sportsbook"], round(leg["odds_decimal"], 9)) for leg in row["legs"])),
            (row["profit_percent"], row["implied_total"], float(row["is_alternate_line"]),
             *(leg["stake_percent"] for leg in row["legs"])),
        )
        for row in found
    )  # fmt: skip
    slow = tabulate(
        (
            (
                arb.market[0],
                arb.market[1],
                abs(arb.market[5] / 100.0),
                tuple(offered(leg) for leg in arb.legs),
            ),
            (arb.profit * 100.0, arb.total * 100.0, float(arb.alternate), *(s * 100.0 for s in arb.shares)),
        )
        for arb in twin.arbitrage
    )
    alike(engine, slow)


def check_low_hold(rows: Sequence[Row], user: Settings, twin: Scan) -> None:
    found = ask(oddsengine.find_low_hold, rows, user, "max_hold")
    engine = tabulate(
        (
            (row["event_id"], row["is_live"], size_of(row["line"]),
             order((tuple(sorted(row[side]["books"])), round(row[side]["odds_decimal"], 9))
                   for side in ("side1", "side2", "side3") if row[side] is not None)),
            (row["hold_percentage"],),
        )
        for row in found
    )  # fmt: skip
    slow = []
    for low in twin.low_hold:
        books = books_at_best(twin.board, low)
        sides = zip(books, low.legs, strict=True)
        key = tuple((tuple(names), round(leg.quote.odds, 9)) for names, leg in sides)
        slow.append(((*low.market[:2], abs(low.market[5] / 100.0), order(key)), ((low.total - 1.0) * 100.0,)))
    alike(engine, tabulate(slow))


def order(sides: Iterable[Any]) -> tuple[Any, ...]:
    """Sides without their order."""
    return tuple(sorted(sides, key=repr))


def check_ev(rows: Sequence[Row], user: Settings, twin: Scan) -> None:
    found = ask(oddsengine.find_ev, rows, user, "method", "min_ev", "max_ev")
    keys = [
        (v.leg.quote.event, v.leg.quote.live, size_of(rows[v.leg.quote.row]["line"]), v.leg.book, v.fair.book,
         round(v.leg.quote.odds, 9))
        for v in twin.ev
    ]  # fmt: skip
    # How much to trust a price without a time is left open.
    untimed = {
        key
        for key, value in zip(keys, twin.ev, strict=True)
        if any(leg.quote.seen is None for leg in (value.leg, *value.fair.legs))
    }
    slow = []
    for key, value in zip(keys, twin.ev, strict=True):
        fair = value.fair
        confidence = 0.0 if key in untimed else value.confidence
        figures = (value.ev * 100.0, value.prob, fair.width, value.kelly, float(value.book_count), confidence)
        slow.append((key, figures))
    engine = []
    for row in found:
        key = (row["event_id"], row["is_live"], size_of(row["line"]), row["sportsbook"], row["sharp_book"],
               round(row["odds_decimal"], 9))  # fmt: skip
        confidence = 0.0 if key in untimed else row["confidence_score"]
        engine.append(
            (key, (row["ev_percentage"], row["fair_probability"], row["market_width"], row["kelly_percent"],
                   float(row["book_count"]), confidence))
        )  # fmt: skip
    alike(tabulate(engine), tabulate(slow))


def check_middles(rows: Sequence[Row], user: Settings, twin: Scan) -> None:
    found = ask(oddsengine.find_middles, rows, user, "method", "min_size")
    engine: dict[Hashable, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        sides = (row["side1"], row["side2"])
        legs = [(side["sportsbook"], round(side["odds_decimal"], 9), side["line"]) for side in sides]
        engine[row["event_id"], order(legs)].append(row)
    slow: dict[Hashable, list[Any]] = defaultdict(list)
    for middle in twin.middles:
        legs = [(*offered(leg), rows[leg.quote.row]["line"] or 0.0) for leg in (middle.over, middle.under)]
        slow[middle.over.quote.event, order(legs)].append(middle)
    # A shape may know what no ladder knows, and nobody knows some windows: those may be missing.
    assert set(engine) <= set(slow)
    for key, middles in slow.items():
        tails = [known_tail(twin.board, middle) for middle in middles]
        worths = [
            None if tail is None else expected_return(middle, tail.at) - 1.0
            for middle, tail in zip(middles, tails, strict=True)
        ]
        errors = [
            worth is not None and tail is not None and generous(twin.board, middle, tail.at)
            for worth, tail, middle in zip(worths, tails, middles, strict=True)
        ]
        if "ev_cap" in user.guards and any(errors):
            assert len(middles) > 1 or key not in engine, key
            continue
        if None not in tails:
            assert len(engine.get(key, [])) == len(middles), key
        if len(middles) > 1 or key not in engine:
            continue
        (row,), (middle,), (tail,) = engine[key], middles, tails
        assert row["middle_numbers"] == middle.numbers
        assert row["worst_case_loss"] == pytest.approx(middle.worst * 100.0, rel=1e-9, abs=1e-9)
        if tail is not None:
            assert row["probability_source"] == tail.source
            assert row["middle_probability"] == pytest.approx(probability(middle, tail), rel=1e-9, abs=1e-9)
            worth = (expected_return(middle, tail.at) - 1.0) * 100.0
            assert row["expected_value"] == pytest.approx(worth, rel=1e-9, abs=1e-9)


CHECKS = (check_rejected, check_arbitrage, check_low_hold, check_ev, check_middles)

# -- the comparisons ----------------------------------------------------------------------------------


@given(boards(), users())
def test_small_boards(rows: list[Row], user: Settings) -> None:
    twin = scan(rows, user, NOW)
    for check in CHECKS:
        check(rows, user, twin)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("seed", some(range(4), 1))
def test_large_boards(check: Callable[[Sequence[Row], Settings, Scan], None], seed: int) -> None:
    check(*scanned(seed))


@cache
def scanned(seed: int) -> tuple[Sequence[Row], Settings, Scan]:
    """A large board and what the slow twin finds there, which takes longest."""
    rows, user = random_board(seed, 5), some_user(seed)
    return rows, user, scan(rows, user, NOW)


# -- boards on which they once differed ---------------------------------------------------------------


def same(rows: Sequence[Row], **fields: Any) -> None:
    user = Settings(sharp=("pinnacle",), **fields)
    twin = scan(rows, user, NOW)
    for check in CHECKS:
        check(rows, user, twin)


def price(book: str, selection: str, odds: float | None, **fields: Any) -> Row:
    row = dict.fromkeys(COLUMNS) | dict(
        sportsbook=book, event_id="e", sport="hockey", league="nhl", home_team="Utah Mammoth",
        away_team="Toronto Maple Leafs", market_type="moneyline", selection=selection, odds_decimal=odds,
        is_live=False, last_seen_at=NOW, is_active=True, flap=False,
    )  # fmt: skip
    return {**row, **fields}


def test_a_book_with_two_names_at_one_price_is_named_once() -> None:
    names = [{"market_type": name, "line": 5.5} for name in ("total_goals", "asian_total_goals")]
    over = [price("a", "Over", 2.0, **name) for name in names]
    same([*over, price("b", "Under", 2.0, **names[0])])


def test_a_draw_without_a_usable_price_still_makes_three_ways() -> None:
    three = [price("a", "Utah Mammoth", 2.6), price("a", "Draw", 1.0), price("a", "Toronto Maple Leafs", 2.7)]
    same([*three, price("b", "Utah Mammoth", 1.9), price("b", "Toronto Maple Leafs", 2.0)])


def test_american_and_decimal_forms_of_one_price_tie() -> None:
    first = [price("b", "Utah Mammoth", None, odds_american=111.0), price("a", "Utah Mammoth", 2.11)]
    same([*first, *(price(book, "Toronto Maple Leafs", 2.0) for book in "cd")])


def test_a_three_way_arbitrage_beside_a_two_way_low_hold() -> None:
    ways = (("Utah Mammoth", 3.1), ("Draw", 3.1), ("Toronto Maple Leafs", 3.1))
    three = [price(book, team, odds, sport="soccer") for book in "ab" for team, odds in ways]
    total = {"market_type": "total_goals", "line": 2.5}
    same([*three, price("a", "Over", 2.0, **total), price("b", "Under", 1.99, **total)], guards=frozenset())
