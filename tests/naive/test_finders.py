"""The slow twin itself, on boards small enough to be worked by hand."""

import math
from typing import Any

import pytest
from naive.finders import ALL_GUARDS, Settings, expected_return, identify, scan
from naive.guards import GUARDS
from naive.middles import settle
from support.boards import frame, random_board
from support.hazards import NOW, SECOND, Row

PINNACLE = Settings(sharp=("pinnacle",), method="multiplicative", min_profit=0.0, max_hold=2.0)
UNGUARDED = Settings(sharp=("pinnacle",), guards=frozenset())


def row(book: str, selection: str, odds: float, **fields: Any) -> Row:
    base = dict(
        sportsbook=book, event_id="e1", sport="basketball", league="nba", home_team="Boston Celtics",
        away_team="New York Knicks", market_type="moneyline", selection=selection, selection_type=None,
        odds_american=None, odds_decimal=odds, line=None, event_start_time=NOW + 3600 * SECOND, is_live=False,
        last_seen_at=NOW - 5 * SECOND, is_active=True, player_name=None, team_side=None, market_segment=None,
        flap=False,
    )  # fmt: skip
    return {**base, **fields}


def pair(book: str, first: float, second: float, **fields: Any) -> list[Row]:
    """A two-way moneyline of one book."""
    return [row(book, "Boston Celtics", first, **fields), row(book, "New York Knicks", second, **fields)]


def total(book: str, line: float, over: float, under: float, **fields: Any) -> list[Row]:
    given = {"market_type": "total_points", "line": line, **fields}
    return [row(book, "Over", over, **given), row(book, "Under", under, **given)]


def rejected(rows: list[Row], *guards: str) -> dict[int, str]:
    return scan(rows, Settings(sharp=("pinnacle",), guards=frozenset(guards or ALL_GUARDS)), NOW).rejected


# -- identity -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "side", "line"),
    [
        (dict(selection="Boston Celtics -2.5", line=-2.5), "home", -250),
        (dict(selection="NEW YORK KNICKS +2.5", line=2.5), "away", -250),
        (dict(selection="New York Knicks", line=-2.5), "away", 250),
        (dict(selection="unsaid", selection_type="away", line=-2.5), "away", 250),
        (dict(home_team="New York Knicks", away_team="Boston Celtics", selection="Knicks?",
              selection_type="home", line=2.5), "away", -250),
    ],
)  # fmt: skip
def test_a_spread_belongs_to_the_home_handicap(fields: dict[str, Any], side: str, line: int) -> None:
    board = [*pair("a", 1.9, 1.9), row("b", **{"odds": 1.9, "market_type": "point_spread", **fields})]
    quote = identify(board, ALL_GUARDS)[0][-1]
    assert (quote.side, quote.line) == (side, line)


def test_ways_are_counted_per_book() -> None:
    soccer = dict(sport="soccer")
    board = [*pair("a", 2.5, 2.9, **soccer), row("a", "Draw", 3.3, **soccer), *pair("b", 1.8, 2.0, **soccer)]
    quotes, reasons = identify(board, ALL_GUARDS)
    assert {quote.family.name for quote in quotes} == {"moneyline_3way"}
    assert reasons == {3: "ambiguous_moneyline", 4: "ambiguous_moneyline"}


def test_a_draw_without_a_price_still_makes_it_three_way() -> None:
    board = [*pair("a", 2.5, 2.9), row("a", "Tie", 1.0), *pair("b", 1.8, 2.0)]
    quotes, reasons = identify(board, ALL_GUARDS)
    assert [quote.family.name for quote in quotes] == ["moneyline_3way"] * 2 + ["moneyline"] * 2
    assert reasons == {2: "bad_price"}


def test_reasons() -> None:
    board = [
        row("a", "Boston Celtics", math.nan),
        row("a", "Boston Celtics", 1.5, odds_american=150.0),
        row("a", "Boston Celtics", 1.5, is_active=False),
        row("a", "Boston Celtics", 1.5, market_type="double_chance"),
        row("a", "Boston Celtics", 1.5, selection_type="away"),
        row("a", "Nobody", 1.5),
        row("a", "Over", 1.5, market_type="total_points", line=2.333),
        row("a", "Over", 1.5, market_type="team_total", line=2.5),
    ]
    assert list(identify(board, ALL_GUARDS)[1].values()) == [
        "bad_price", "price_mismatch", "suspended", "unmapped", "side_conflict", "unknown_outcome", "no_line",
        "unknown_outcome",
    ]  # fmt: skip


# -- guards -------------------------------------------------------------------------------------------


def test_stale_and_started() -> None:
    board = [
        row("a", "Boston Celtics", 1.9, last_seen_at=NOW - 600 * SECOND),
        row("b", "Boston Celtics", 1.9, last_seen_at=NOW - 601 * SECOND),
        row("c", "Boston Celtics", 1.9, last_seen_at=None),
        row("d", "Boston Celtics", 1.9, last_seen_at=None, is_live=True),
        row("e", "Boston Celtics", 1.9, last_seen_at=NOW - 31 * SECOND, is_live=True),
        row("f", "Boston Celtics", 1.9, event_start_time=NOW - SECOND),
        row("polymarket_mid", "Boston Celtics", 1.9),
    ]
    assert rejected(board) == {
        1: "stale", 3: "stale", 4: "stale", 5: "started_not_live", 6: "mid_price_source"
    }  # fmt: skip


def test_duplicates_keep_the_lower_price_if_close() -> None:
    close = [row("a", "Boston Celtics", 1.90), row("a", "Boston Celtics", 1.95)]
    far = [row("a", "Boston Celtics", 1.90), row("a", "Boston Celtics", 2.20)]
    assert rejected(close) == {1: "duplicate_outcome"}
    assert rejected(far) == {0: "duplicate_outcome", 1: "duplicate_outcome"}


def test_a_ladder_that_runs_the_wrong_way_goes_whole() -> None:
    # logit(1/1.6) - logit(1/2.0) = log(1/0.6) = 0.51, two lines apart
    board = [*total("a", 210.5, 2.0, 1.8), *total("a", 211.5, 1.85, 1.95), *total("a", 212.5, 1.6, 2.3)]
    assert rejected(board, "ladder") == dict.fromkeys(range(6), "ladder")
    assert rejected([*total("a", 210.5, 2.0, 1.8), *total("b", 212.5, 1.6, 2.3)], "ladder") == {}


def test_two_names_keep_the_one_nearer_the_others() -> None:
    board = [
        row("a", "Over", 1.9, market_type="total_points", line=210.5),
        row("a", "Over", 2.6, market_type="total_goals", line=210.5),
        row("b", "Over", 1.95, market_type="total_points", line=210.5),
        row("c", "Over", 1.9, market_type="total_points", line=210.5),
    ]
    assert rejected(board, "internal_conflict") == {1: "internal_conflict"}
    assert rejected(board[:3], "internal_conflict") == {0: "internal_conflict", 1: "internal_conflict"}
    # sister books are one voice
    same_provider = [*board[:2], {**board[2], "sportsbook": "unibet"}, {**board[3], "sportsbook": "betrivers"}]
    assert rejected(same_provider, "internal_conflict") == {0: "internal_conflict", 1: "internal_conflict"}


def test_a_books_own_sum() -> None:
    board = [*total("a", 210.5, 2.1, 2.1), *total("a", 220.5, 2.8, 1.4), *total("b", 210.5, 1.5, 1.6)]
    assert rejected(board, "book_sum") == dict.fromkeys((0, 1, 2, 3, 4, 5), "book_sum")
    # 1/2.008 + 1/2.008 = 0.99602: an exchange may do that
    assert rejected(total("novig", 210.5, 2.008, 2.008), "book_sum") == {}
    assert len(rejected(total("a", 210.5, 2.008, 2.008), "book_sum")) == 2


def test_team_lines_without_a_common_one() -> None:
    def team(side: str, line: float) -> Row:
        return row("a", "Over", 1.9, market_type="team_total", team_side=side, line=line)

    lost = [team("home", 100.5), team("home", 101.5), team("away", 110.5)]
    assert rejected(lost) == dict.fromkeys(range(3), "one_team_lines")
    assert rejected([*lost, team("away", 100.5)]) == {}


def test_the_book_that_contradicts_most_goes() -> None:
    board = [
        *total("a", 220.5, 1.30, 3.6), *total("b", 210.5, 1.6, 2.35), *total("c", 211.5, 1.65, 2.25),
        *total("d", 221.5, 2.2, 1.7),
    ]  # fmt: skip
    # over 220.5 at 0.769 against over 210.5 at 0.625 and over 211.5 at 0.606: two providers, b and c one each
    assert rejected(board, "ladder_cross") == {0: "ladder_cross", 1: "ladder_cross"}


def test_bias_over_five_players() -> None:
    def over(book: str, player: str, odds: float) -> Row:
        return row(book, "Over", odds, market_type="player_points", line=20.5, player_name=player)

    names = ["p1", "p2", "p3", "p4", "p5"]
    board = [over("a", name, 2.3) for name in names] + [over("b", name, 1.87) for name in names]
    # log(0.87/1.3) = -0.40
    assert rejected(board, "bias") == dict.fromkeys(range(5), "bias")
    assert rejected([*board[:4], *board[5:]], "bias") == {}


def test_outlier_and_the_price_that_is_only_no_reference() -> None:
    # m = 0.5: bound 0.24 + 0.06 = 0.30; logit of 1/2.4 is -0.336, of 1/2.3 is -0.262
    others = [quote for book in "bcd" for quote in pair(book, 2.0, 1.95)]
    assert rejected([*pair("a", 2.4, 1.75), *others], "outlier") == {0: "outlier", 1: "outlier"}
    assert rejected([*pair("a", 2.3, 1.75), *others], "outlier") == {}
    assert rejected([*pair("a", 2.4, 1.75), *others[:4]], "outlier") == {}
    found = scan([*pair("pinnacle", 2.2, 1.72), *others, *pair("e", 2.2, 1.8)], PINNACLE, NOW)
    assert found.rejected == {}
    assert {value.leg.book for value in found.ev} == {"b", "c", "d", "e"}  # away: 0.561 at 1.95 and 1.8
    stingy = scan([*pair("pinnacle", 2.3, 1.65), *others], PINNACLE, NOW)  # 0.43 against 0.05
    assert stingy.rejected == {}
    assert stingy.ev == []
    assert scan([*pair("pinnacle", 2.3, 1.65), *others[:4]], PINNACLE, NOW).ev != []


def test_guards_off_set_nothing_aside() -> None:
    board = random_board(5, 3)
    assert set(rejected(board, "flap").values()) <= {
        "flap", "bad_price", "suspended", "unmapped", "ambiguous_moneyline", "unknown_outcome", "no_line"
    }  # fmt: skip


# -- opportunities ------------------------------------------------------------------------------------


def test_arbitrage_between_two_books() -> None:
    board = [*pair("a", 2.10, 1.75), *pair("b", 1.80, 2.05)]
    (arb,) = scan(board, PINNACLE, NOW).arbitrage
    assert [leg.book for leg in arb.legs] == ["a", "b"]
    assert arb.profit == pytest.approx(1.0 / (1.0 / 2.10 + 1.0 / 2.05) - 1.0)
    assert arb.shares == pytest.approx([0.4940, 0.5060], abs=1e-4)


def test_ties_are_the_smallest_tuple_and_one_book_is_no_arb() -> None:
    board = [*pair("b", 2.10, 1.75), *pair("a", 2.10, 1.75), *pair("c", 1.80, 2.05), *pair("d", 1.80, 2.05)]
    (arb,) = scan(board, UNGUARDED, NOW).arbitrage
    assert [leg.book for leg in arb.legs] == ["a", "c"]
    assert scan(pair("a", 2.1, 2.1), UNGUARDED, NOW).arbitrage == []


def test_a_hold_of_exactly_two_percent_belongs() -> None:
    soccer = dict(sport="soccer")
    board = [
        row("a", "Boston Celtics", 2.00, **soccer), row("b", "Draw", 3.125, **soccer),
        row("c", "New York Knicks", 5.00, **soccer), row("a", "Draw", 1.5, **soccer),
        *pair("b", 1.5, 1.5, **soccer), row("c", "Draw", 1.5, **soccer),
    ]  # fmt: skip
    (low,) = scan(board, UNGUARDED, NOW).low_hold
    assert low.total - 1.0 == pytest.approx(0.02)


def test_live_legs_have_to_be_close_in_time() -> None:
    live = dict(is_live=True)
    board = [
        *pair("a", 2.10, 1.75, last_seen_at=NOW - 9 * SECOND, **live),
        *pair("b", 1.80, 2.05, last_seen_at=NOW - 3 * SECOND, **live),
        *pair("c", 1.82, 2.00, last_seen_at=NOW - 5 * SECOND, **live),
        *pair("d", 1.80, 2.06, last_seen_at=NOW - 11 * SECOND, **live),
    ]
    (arb,) = scan(board, PINNACLE, NOW).arbitrage
    assert [leg.book for leg in arb.legs] == ["a", "c"]  # not b (6 s apart), not d (11 s old)


def test_expected_value_against_the_sharp_book() -> None:
    board = [*pair("pinnacle", 1.95, 1.95), *pair("a", 2.10, 1.75)]
    (value,) = scan(board, PINNACLE, NOW).ev
    assert value.leg.book == "a"
    assert [value.prob, value.ev, value.kelly] == pytest.approx([0.5, 0.05, 0.05 / 1.10])
    # width 2.5641 %, fewer than two others, 5 s old
    expected = 100.0 * (1.0 - 0.5641025641 / 8.0) * 0.7 * math.exp(-5.0 / 300.0)
    assert value.confidence == pytest.approx(expected)


def test_a_wide_reference_becomes_a_consensus_of_two() -> None:
    wide = [*pair("pinnacle", 1.88, 1.88), *pair("a", 2.12, 1.75)]  # 6.4 %
    assert scan(wide, PINNACLE, NOW).ev == []
    board = [*wide, *pair("circa", 1.94, 1.94)]
    (value,) = scan(board, PINNACLE, NOW).ev
    assert (value.fair.book, value.leg.book) == ("consensus", "a")
    assert value.prob == pytest.approx(0.5)


def test_commission_belongs_to_the_price() -> None:
    board = [*pair("a", 2.10, 1.75), *pair("b", 1.80, 2.05)]
    settings = Settings(sharp=("pinnacle",), commission={"a": 0.05}, min_profit=0.0)
    (arb,) = scan(board, settings, NOW).arbitrage
    assert arb.profit == pytest.approx(1.0 / (1.0 / (1.0 + 1.10 * 0.95) + 1.0 / 2.05) - 1.0)


def test_a_middle_and_its_settlement() -> None:
    board = [*total("a", 210.5, 1.95, 1.85), *total("b", 212.5, 1.85, 1.95)]
    (middle,) = scan(board, PINNACLE, NOW).middles
    assert middle.numbers == [211, 212]
    assert middle.worst == pytest.approx(1.95 / 2.0 - 1.0)
    # P(211 or 212) = 0.55 - 0.45: (1 + P) / S - 1
    assert expected_return(middle, {21050: 0.55, 21250: 0.45}) == pytest.approx(1.1 * 0.975)


def test_quarter_lines_settle_half_and_half() -> None:
    assert settle(2, 225, 1.9, under=False) == pytest.approx(0.5)
    assert settle(2, 225, 1.9, under=True) == pytest.approx(0.5 * (1.0 + 1.9))
    assert settle(3, 275, 1.9, under=False) == pytest.approx(0.5 * (1.0 + 1.9))
    assert [settle(3, 300, 1.9, under=under) for under in (False, True)] == [1.0, 1.0]


# -- boards -------------------------------------------------------------------------------------------


def test_boards_meet_every_guard_and_find_every_kind() -> None:
    every = {*GUARDS} - {"few_witnesses", "upstream"}
    every |= {"bad_price", "price_mismatch", "side_conflict", "unknown_outcome", "no_line", "other_game"}
    seen: set[str] = set()
    found = [0, 0, 0, 0]
    across = [0, 0]
    for seed in (0, 1, 2, 3, 5, 23, 59, 72, 111):
        board = random_board(seed, 2, 9)
        result = scan(board, Settings(sharp=("pinnacle", "circa")), NOW)
        seen |= set(result.rejected.values())
        both = (result.arbitrage, result.low_hold)
        counts = (*map(len, both), len(result.ev), len(result.middles))
        found = [n + count for n, count in zip(found, counts, strict=True)]
        mixed = [sum(len({leg.quote.market for leg in each.legs}) > 1 for each in some) for some in both]
        across = [n + count for n, count in zip(across, mixed, strict=True)]
    assert seen >= every, every - seen
    assert min(found) > 20, found
    assert min(across) > 2, "legs of several markets"


def test_a_seed_gives_one_board() -> None:
    assert repr(random_board(7, 2)) == repr(random_board(7, 2))
    assert frame(random_board(7, 2)).height == len(random_board(7, 2))
