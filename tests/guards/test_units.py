"""The guards on arrays alone: parts of a board judged by themselves, and each place where a guard could fire found."""

import math
import os
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from detection.test_finders import check_rejected
from hypothesis import given
from hypothesis import strategies as st
from naive.finders import Settings, scan
from support.boards import boards, build, frame, random_board
from support.effort import ALL
from support.hazards import HAZARDS, NOW, SECOND, Row
from support.rows import prop, row, spread, table, team_total, total

from oddsengine import catalog
from oddsengine._jit import is_kernel
from oddsengine.catalog.reasons import CODES, GUARDS
from oddsengine.columns import NO_TIME, Bytes, Longs
from oddsengine.guards import main_markets, other_providers, own_prices, single_prices, survey
from oddsengine.guards import verdicts as verdicts_module
from oddsengine.guards.main_markets import main_lines
from oddsengine.guards.verdicts import Verdicts, guard, judge
from oddsengine.identity.groups import Groups
from oddsengine.identity.table_identity import Identity, identify, times
from oddsengine.tables.schema import check_odds

Bools = npt.NDArray[np.bool_]
EVERY_GUARD = Settings(sharp=("pinnacle",))
NONE_OFF: frozenset[int] = frozenset()
LIMITS = catalog.thresholds()
BOARD_GUARDS = GUARDS[GUARDS.index("stale") : GUARDS.index("flap") + 1]


class Rows(NamedTuple):
    """What the guards are given of every row beside its groups."""

    start: Longs
    flap: Bytes
    confirmed: Bytes

    def of(self, rows: Bools) -> "Rows":
        return Rows._make(column[rows] for column in self)


def read(odds: pl.DataFrame, off: frozenset[int] = NONE_OFF) -> tuple[Identity, Rows]:
    """What the guards are given of a table."""
    checked = check_odds(odds)
    identity = identify(checked, off)
    row = identity.groups.row
    flap, confirmed = (checked[name].to_numpy()[row].astype(np.uint8) for name in ("flap", "confirmed"))
    return identity, Rows(times(checked, "event_start_time")[row], flap, confirmed)


def contests(groups: Groups) -> npt.NDArray[np.int64]:
    """Per ladder: a number for its event, live flag and kind."""
    key = np.stack([groups.event, groups.live, groups.kind])
    return np.asarray(np.unique(key, axis=1, return_inverse=True)[1]).ravel()


def part(groups: Groups, ladders: Bools) -> tuple[Groups, Bools]:
    """The groups of some ladders, written anew, and the rows they have."""
    g = groups
    markets = ladders[g.ladder]
    segments = np.repeat(markets, np.diff(g.segments))
    rows = markets[g.market]

    def ends(offsets: Longs, kept: Bools) -> Longs:
        return np.concatenate([[0], np.cumsum(np.diff(offsets)[kept])]).astype(np.int64)

    def places(kept: Bools) -> npt.NDArray[np.int32]:
        return (np.cumsum(kept) - 1).astype(np.int32)

    per_row = {name: getattr(g, name)[rows] for name in ("row", "book", "name", "odds", "seen", "side")}
    per_ladder = {name: getattr(g, name)[ladders] for name in ("event", "live", "kind", "subject")}
    cut = Groups(
        **per_row,
        **per_ladder,
        market=places(markets)[g.market[rows]],
        ladder=places(ladders)[g.ladder[markets]],
        threshold=g.threshold[markets],
        rows=ends(g.rows, segments),
        segments=ends(g.segments, markets),
        markets=ends(g.markets, ladders),
    )
    return cut, rows


def assert_same(some: Verdicts, every: Verdicts, rows: Bools | slice = slice(None)) -> None:
    assert some.reason.tolist() == every.reason[rows].tolist()
    assert some.not_reference.tolist() == every.not_reference[rows].tolist()
    assert some.doubt.tolist() == every.doubt[rows].tolist()
    np.testing.assert_array_equal(some.measure, every.measure[rows])


def alone(odds: pl.DataFrame, off: frozenset[int], now: int, chosen: random.Random) -> Verdicts:
    """Judge a board, and again without some of its contests: nothing changes for the others."""
    identity, facts = read(odds, off)
    every = judge(identity.groups, identity.traits, *facts, off, now, LIMITS)
    contest = contests(identity.groups)
    wanted = np.array([chosen.random() < 0.5 for _ in range(contest.max(initial=-1) + 1)], bool)
    cut, rows = part(identity.groups, wanted[contest])
    assert_same(judge(cut, identity.traits, *facts.of(rows), off, now, LIMITS), every, rows)
    return every


@given(boards(), st.sets(st.sampled_from(BOARD_GUARDS)), st.sampled_from([NOW, NO_TIME]), st.randoms())
def test_a_contest_is_judged_alone(rows: list[Row], off: set[str], now: int, chosen: random.Random) -> None:
    alone(frame(rows), frozenset(CODES[name] for name in off), now, chosen)


def biased(seed: int) -> list[Row]:
    """Props of one game, one book generous on one side of many of them, lines missing here and there."""
    rng = random.Random(seed)
    rows = []
    for player in range(rng.randint(7, 11)):
        for line in rng.sample((18.5, 19.5, 20.5), rng.randint(1, 3)):
            for book in ("a", "b", "betrivers", "unibet", "c", "d", "e"):
                if rng.random() < 0.7:
                    odds = rng.choice((1.8, 1.9, 1.95, 2.0)) + rng.choice((0.0, 0.25, 0.25, 0.3, 0.4)) * (book == "a")
                    sides = odds, 1.0 / (1.04 - 1.0 / odds)
                    rows += prop(book, f"Player {player}", line, *(reversed(sides) if seed % 2 else sides))
    return rows


@pytest.mark.parametrize("seed", [6, 7, 9, 10])
def test_a_book_that_is_generous_with_one_side_of_its_props(seed: int) -> None:
    rows = biased(seed)
    assert CODES["bias"] in alone(frame(rows), NONE_OFF, NOW, random.Random(seed)).reason
    check_rejected(rows, EVERY_GUARD, scan(rows, EVERY_GUARD, NOW))


@pytest.mark.parametrize("generous", ["a", "c", "z"])
@pytest.mark.parametrize("most", [-1e-4, 1e-4])
def test_half_of_a_book_s_props_are_far_off_and_half_are_near(generous: str, most: float) -> None:
    """The median is between the two halves, also for the book that comes first or last."""
    near, far = 0.2 * LIMITS.bias_gap, 1.8 * LIMITS.bias_gap + most
    rows = []
    for n in range(2 * math.ceil(LIMITS.bias_subjects / 2)):
        gap = far if n % 2 else near
        rows += prop(generous, f"Player {n}", 20.5, 1.0 + 0.9 * math.exp(gap), None)
        rows += [each for book in "bde" for each in prop(book, f"Player {n}", 20.5, 1.9, None)]
    off = frozenset(CODES[name] for name in GUARDS if name != "bias")
    found = set(verdicts(table(*rows), off=off).values())
    assert found == ({(CODES["bias"], round(-LIMITS.bias_gap - most / 2.0, 6))} if most > 0.0 else set())


def test_contests_are_judged_alone_and_as_their_twin_on_boards_where_every_guard_fires() -> None:
    fired: set[int] = set()
    not_reference = doubt = False
    for seed in range(30):
        rows = random_board(seed, 3) + biased(seed)
        every = alone(frame(rows), NONE_OFF, NOW, random.Random(seed))
        before = {*fired}, not_reference, doubt
        fired |= set(every.reason.tolist())
        not_reference |= bool(every.not_reference.any())
        doubt |= bool(every.doubt.any())
        if ALL or before != (fired, not_reference, doubt):  # the twin is slow: boards that show something new
            check_rejected(rows, EVERY_GUARD, scan(rows, EVERY_GUARD, NOW))
    assert fired == {0, *(CODES[name] for name in BOARD_GUARDS if name != "few_witnesses")}
    assert not_reference
    assert doubt


def one_far(books: Sequence[str], odds: float = 3.4, **more: Any) -> list[Row]:
    """A total at even prices, and at the first book at another."""
    return [each for b in books for each in total(b, 220.5, odds if b == books[0] else 2.0, None, **more)]


CASES = (
    one_far("ab"), one_far("abc"), one_far("abc", confirmed=True), one_far("abcd"), one_far("abcdef"),
    one_far("abcdef", 1.4), one_far("abc", 2.1), one_far(["a", "betrivers", "unibet", "leovegas"]),
    total("a", 220.5, 2.0, 2.0), total("a", 220.5, 2.1, 2.1), total("a", 220.5, 1.5, 1.5),
    total("a", 220.5, 1.9, 1.9) + total("a", 224.5, 1.6, 2.3),
    [*total("a", 220.5, 1.5, None), *total("b", 219.5, 2.5, None), *total("c", 218.5, 2.6, None)],
    total("a", 220.5, 1.9, 1.9) + total("a", 220.5, 1.92, 1.9) + total("a", 220.5, 1.95, 1.85, "totals"),
    total("a", 220.5, 1.9, 1.9) + total("a", 220.5, 2.5, 1.5, "totals") + total("b", 220.5, 1.9, 1.9),
    [each for x in (108.5, 109.5, 110.5) for each in team_total("a", "home", x, 1.9, 1.9)],
    team_total("a", "home", 108.5, 1.9, 1.9), biased(6), biased(7),
    prop("a", "Player 1", 20.5, 2.6, None) + prop("b", "Player 1", 20.5, 1.9, None),
)  # fmt: skip


@pytest.mark.parametrize("shift", range(len(CASES)))
def test_what_precedes_or_follows_a_case_does_not_matter(shift: int) -> None:
    """What a guard has no say in, or says nothing of, does not end its rounds."""
    rows = [{**each, "event_id": f"e{(n + shift) % len(CASES):02}"} for n, case in enumerate(CASES) for each in case]
    rows.sort(key=lambda each: str(each["event_id"]))
    every = alone(table(*rows), NONE_OFF, NOW, random.Random(shift))
    assert every.doubt.any()
    assert every.not_reference.any()
    silent = {"stale", "started_not_live", "parlay_only", "few_witnesses", "flap"}
    assert set(every.reason.tolist()) == {0, *(CODES[name] for name in BOARD_GUARDS if name not in silent)}


LINED = ("spread", "total", "team_total", "props")
OWN = ("duplicate_outcome", "ladder", "book_sum", "one_team_lines", "mid_price_source")


def hazardous(seed: int) -> list[Row]:
    """A board of ladders with every hazard within one game, without the rows that are invalid."""
    rows = build(seed, 4, 8, LINED, [name for name in HAZARDS if name != "other_game"])
    invalid = set(check_odds(frame(rows)).rejected["row"].to_list())
    return [each for at, each in enumerate(rows) if at not in invalid]


@pytest.mark.parametrize("seed", range(8))
def test_guards_of_a_book_s_own_prices_judge_it_as_if_there_were_no_other(seed: int) -> None:
    rows = hazardous(seed)
    off = frozenset(CODES[name] for name in GUARDS if name not in OWN)
    whole = verdicts(frame(rows), off=off)
    alone = dict[int, tuple[int, float]]()
    for book in {each["sportsbook"] for each in rows}:
        places = [at for at, each in enumerate(rows) if each["sportsbook"] == book]
        found = verdicts(frame([rows[at] for at in places]), off=off)
        alone |= {places[at]: said for at, said in found.items()}
    assert repr(sorted(whole.items())) == repr(sorted(alone.items()))  # a measure may be nan
    assert whole


@pytest.mark.parametrize("silent", ["aaa", "zzz"])
@pytest.mark.parametrize("seed", range(6))
def test_a_book_too_old_to_testify_changes_no_verdict(seed: int, silent: str) -> None:
    """It quotes all that another does, and stands before or after all others."""
    rows = hazardous(seed) + biased(seed)
    old = NOW - 30 * 86400 * SECOND
    beside = [each | {"sportsbook": silent, "last_seen_at": old, "confirmed": False} for each in rows]
    found = [(at, said) for at, said in sorted(verdicts(frame(rows + beside)).items()) if at < len(rows)]
    assert repr(found) == repr(sorted(verdicts(frame(rows)).items()))  # a measure may be nan


@pytest.mark.parametrize("exact", ["a", "e", "z"])
def test_a_mid_price_is_seen_whatever_stands_beside_it(exact: str) -> None:
    """Books with one side, with a margin, or with hardly less than one, before it and after it."""
    less = 1.0 / (0.5 - 0.5 * LIMITS.mid_price_near)
    sides = {"b": (1.9, None), "c": (2.0, less), "d": (1.9, 1.9), "f": (None, 1.9), "g": (2.0, less), "h": (1.9, 1.9)}
    rows = [each for book, odds in {exact: (2.0, 2.0), **sides}.items() for each in total(book, 220.5, *odds)]
    off = frozenset(CODES[name] for name in GUARDS if name != "mid_price_source")
    expected = [at for at, each in enumerate(rows) if each["sportsbook"] in (exact, "c", "g")]
    assert verdicts(table(*rows), off=off) == dict.fromkeys(expected, (CODES["mid_price_source"], 1.0))


@pytest.mark.parametrize("generous", ["a", "c", "z"])
@pytest.mark.parametrize("more", [-1, 0])
def test_a_book_is_biased_over_enough_of_its_own_subjects(generous: str, more: int) -> None:
    """Those that only others quote do not count, also for the book that comes first or last."""
    own = LIMITS.bias_subjects + more
    rows = [
        each
        for n in range(2 * LIMITS.bias_subjects)
        for book in ("b", "d", "e", *([generous] if n < own else []))
        for each in prop(book, f"Player {n}", 20.5, 2.6 if book == generous else 1.9, None)
    ]
    off = frozenset(CODES[name] for name in GUARDS if name != "bias")
    assert len(verdicts(table(*rows), off=off)) == (own if more >= 0 else 0)


@pytest.mark.parametrize("names", [("total_points", "totals"), ("totals", "total_points")])
def test_of_two_stale_prices_of_a_book_that_are_equal_the_fresher_one_speaks(names: tuple[str, str]) -> None:
    """Whichever comes first. A witness beyond the median weighs as much as the older of the two."""
    young, old = 1.5 * LIMITS.stale_prematch_s, 2.5 * LIMITS.stale_prematch_s
    others = [total("f", 220.5, 1.5, None, age=old)]
    others += [total(book, 220.5, odds, None) for book, odds in (("b", 1.8), ("c", 1.9), ("d", 3.6))]

    def measured(**ages: float) -> set[tuple[int, float]]:
        rows = [total("a", 220.5, 2.4, None, name, age=age) for name, age in ages.items()]
        return {said for said in verdicts(table(*rows, *others)).values() if said[0] == CODES["outlier"]}

    assert measured(**dict(zip(names, (young, old), strict=True))) == measured(totals=young) != measured(totals=old)


@given(boards(), st.sets(st.sampled_from(BOARD_GUARDS)))
def test_a_table_is_judged_as_its_arrays(rows: list[Row], off: set[str]) -> None:
    codes = frozenset(CODES[name] for name in off)
    checked = check_odds(frame(rows))
    identity, facts = read(frame(rows), codes)
    by_table = guard(checked, identity, codes, NOW)
    assert_same(judge(identity.groups, identity.traits, *facts, codes, NOW, LIMITS), by_table)
    assert by_table.now == NOW
    assert not set(by_table.reason.tolist()) & codes


def test_what_is_given_stays_as_it_was() -> None:
    identity, facts = read(frame(random_board(3, 3)))
    given_ = [*identity.groups, *identity.traits, *facts]
    before = [np.array(column) for column in given_]
    judge(identity.groups, identity.traits, *facts, NONE_OFF, NOW, LIMITS)
    for column, was in zip(given_, before, strict=True):
        np.testing.assert_array_equal(column, was)


def test_nothing_to_judge() -> None:
    identity, facts = read(table(row("c", "total_points", "Over", 1.0, 220.5)))
    found = judge(identity.groups, identity.traits, *facts, NONE_OFF, NO_TIME, LIMITS)
    assert found.reason.size == found.measure.size == found.not_reference.size == 0


def verdicts(odds: pl.DataFrame, **changes: Any) -> dict[int, tuple[int, float]]:
    """Code and measure of each rejected row, by its place in the table."""
    identity, facts = read(odds)
    given_: dict[str, Any] = {"off": NONE_OFF, "now": NOW, "limits": LIMITS, **facts._asdict()} | changes
    found = judge(identity.groups, identity.traits, **given_)
    row = identity.groups.row
    return {
        int(row[at]): (int(found.reason[at]), round(float(found.measure[at]), 6)) for at in np.flatnonzero(found.reason)
    }


def test_measures_of_age_and_start() -> None:
    odds = table(
        total("a", 220.5, 1.9, 1.9, age=700.5), total("b", 220.5, 1.9, 1.9, last_seen_at=None, is_live=True),
        total("c", 220.5, 1.9, None),
    )  # fmt: skip
    stale, late = CODES["stale"], CODES["started_not_live"]
    infinite = (stale, float("inf"))
    assert verdicts(odds) == {0: (stale, 700.5), 1: (stale, 700.5), 2: infinite, 3: infinite}
    assert not verdicts(odds, now=NO_TIME)
    start = np.full(5, NOW - 90 * SECOND)
    later = {0: (stale, 700.5), 1: (stale, 700.5), 2: infinite, 3: infinite, 4: (late, 90.0)}
    assert verdicts(odds, start=start) == later
    off = frozenset([stale])
    assert verdicts(odds, start=start, off=off) == dict.fromkeys((0, 1, 4), (late, 90.0))
    assert not verdicts(odds, start=start, off=off, now=NO_TIME)


@pytest.mark.parametrize("q", [0.04, 0.2, 0.5, 0.8, 0.96])
@pytest.mark.parametrize("more", [{}, {"is_live": True}, {"market_segment": "1st_half"}])
@pytest.mark.parametrize("books", ["abc", "abcdef"])
def test_how_far_a_price_may_be_from_the_others(books: str, more: dict[str, Any], q: float) -> None:
    """Few other books are compared by `few_witnesses`, several by `outlier`; main lines are pre-match and full-game."""
    base = LIMITS.outlier_other if more else LIMITS.outlier_main
    bound = base + LIMITS.outlier_slope / (q * (1.0 - q))
    for gap in (bound + 1e-6, bound - 1e-6, -bound + 1e-6, -bound - 1e-6):
        judged = 1.0 + (1.0 / q - 1.0) * math.exp(gap)
        odds = table(*(total(book, 220.5, judged if book == "a" else 1.0 / q, None, **more) for book in books))
        identity, facts = read(odds)
        found = judge(identity.groups, identity.traits, *facts, NONE_OFF, NOW, LIMITS)
        rejected, doubtful, low = gap > bound and len(books) > 3, gap > bound and len(books) == 3, gap < -bound
        assert found.reason.tolist() == [CODES["outlier"] * rejected, *[0] * (len(books) - 1)]
        assert found.doubt.tolist() == [doubtful, *[0] * (len(books) - 1)]
        assert found.not_reference.tolist() == [low and len(books) > 3, *[0] * (len(books) - 1)]


@pytest.mark.parametrize("books", ["abc", "abcde"])
def test_a_price_exactly_at_a_bound_is_within_it(books: str) -> None:
    """Few other books are compared by `few_witnesses`, several by `outlier`."""
    identity, facts = read(table(*(total(book, 220.5, 2.0, None) for book in books)))
    limits = LIMITS._replace(outlier_main=0.0, outlier_other=0.0, outlier_slope=0.0)
    found = judge(identity.groups, identity.traits, *facts, NONE_OFF, NOW, limits)
    assert not any([*found.reason, *found.not_reference, *found.doubt])


def test_a_market_of_nothing_but_prices_that_flap() -> None:
    odds = table(total("a", 220.5, 1.9, 1.9), total("a", 221.5, 2.0, 1.8))
    flap = np.array([1, 1, 0, 0], np.uint8)
    assert verdicts(odds, flap=flap) == dict.fromkeys((0, 1), (CODES["flap"], 1.0))


def test_a_dear_market_in_a_ladder_that_goes_for_a_cheap_one() -> None:
    """The ladder's reason is the cheap market, and the largest of the cheap sums is what is told."""
    odds = table(
        total("a", 218.5, 1.5, 1.6), total("a", 220.5, 2.1, 2.0), total("a", 222.5, 2.2, 2.0),
        total("b", 218.5, 1.5, 1.6), total("b", 220.5, 1.9, 1.9),
    )  # fmt: skip
    code = CODES["book_sum"]
    cheap, dear = (code, round(1 / 2.1 + 1 / 2.0, 6)), (code, round(1 / 1.5 + 1 / 1.6, 6))
    off = frozenset(CODES[name] for name in GUARDS if name != "book_sum")
    assert verdicts(odds, off=off) == {**dict.fromkeys(range(6), cheap), 6: dear, 7: dear}


def test_two_ladders_of_a_book_do_not_share_their_sums() -> None:
    """One side of a total and the other side of a spread are no market."""
    assert not verdicts(table(total("a", 220.5, 2.6, None), spread("a", -3.5, 2.6, None), total("a", 221.5, None, 2.6)))


def test_team_totals_of_two_books_and_periods_count_apart() -> None:
    lines = [team_total("a", "home", x, 1.9, 1.9) for x in (108.5, 110.5)]
    other = [team_total("b", "away", 104.5, 1.9, 1.9)]
    first_half = [team_total("a", "away", 52.5, 1.9, 1.9, market_segment="1st_half")]
    off = frozenset(CODES[name] for name in GUARDS if name != "one_team_lines")
    assert not verdicts(table(*lines, *other, *first_half), off=off)
    third = team_total("a", "away", 104.5, 1.9, 1.9)
    found = verdicts(table(*lines, *other, *first_half, third), off=off)
    assert found == dict.fromkeys((0, 1, 2, 3, 8, 9), (CODES["one_team_lines"], 3.0))


@pytest.mark.parametrize("other", [dict(event_id="other"), dict(is_live=True)])
def test_contests_of_one_kind_that_stand_side_by_side(other: dict[str, Any]) -> None:
    """Two events with nothing but team totals, or nothing but props: neither makes a case against the other."""
    lines = [team_total("a", "home", x, 1.9, 1.9) for x in (108.5, 110.5)]
    assert not verdicts(table(*lines, team_total("a", "away", 104.5, 1.9, 1.9, **other)))
    players = [
        prop(book, f"Player {n}", 20.5, odds, 1.75, **(other if n % 2 else {}))
        for n in range(8)
        for book, odds in (("a", 2.2), ("b", 1.9))
    ]
    assert not verdicts(table(*players))


def test_main_lines_of_all_ladders() -> None:
    odds = table(
        total("a", 220.5, 1.9, 1.9), total("b", 220.5, 1.9, 1.9), total("a", 221.5, 2.0, 1.8),
        spread("a", -3.5, 1.95, 1.9), spread("a", -2.5, 2.2, 1.7),
    )  # fmt: skip
    identity, _ = read(odds)
    g = identity.groups
    main, offered = main_lines(g, g.odds, np.zeros(g.odds.size, np.uint8), len(identity.books))
    lines = dict(zip(g.threshold.tolist(), zip(main.tolist(), offered.tolist(), strict=True), strict=True))
    assert lines == {22050: (1, 2), 22150: (0, 1), 250: (0, 1), 350: (1, 1)}


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_every_kernel_has_one_signature() -> None:
    """A second one would be compiled while prices wait."""
    identity, facts = read(frame(random_board(3, 6) + biased(1)))
    reason = judge(identity.groups, identity.traits, *facts, NONE_OFF, NOW, LIMITS).reason
    main_lines(identity.groups, identity.groups.odds, reason, len(identity.books))
    modules = (main_markets, other_providers, own_prices, single_prices, survey, verdicts_module)
    kernels = [value for module in modules for value in vars(module).values() if is_kernel(value)]
    found = [each.entry().dispatcher() for each in kernels if "inline" not in each.options]
    assert len(found) > 10
    assert max(len(one.signatures) for one in found) == 1
