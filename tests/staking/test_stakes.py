"""Portfolios of bets: what is tied together, what is not, limits, steps and uncertainty."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine.maths.arbitrage import joint_stakes
from oddsengine.staking.outcomes import Factor, factors, tilt
from oddsengine.staking.stakes import bet_columns
from oddsengine.tables.sample import SAMPLE_BOARD

TEAMS = {"home_team": "Lakers", "away_team": "Celtics"}


def bets(*rows: tuple[str, str, float | None, float, float], sport: str = "basketball", **columns: Any) -> pl.DataFrame:
    """Bets on one game: market, selection, line, odds, fair probability; a book for each."""
    frame = pl.DataFrame(
        [(f"book{at}", *row) for at, row in enumerate(rows)],
        schema=["sportsbook", "market_type", "selection", "line", "odds_decimal", "fair_probability"],
        orient="row",
        schema_overrides={"line": pl.Float64},
    )
    return frame.with_columns(
        event_id=pl.lit("e1"), sport=pl.lit(sport), **{k: pl.lit(v) for k, v in TEAMS.items()}
    ).with_columns(**columns)


def taken_apart(frame: pl.DataFrame) -> list[Factor]:
    return factors(*bet_columns(frame))


def chance(factor: Factor, column: int) -> float:
    """Probability of a bet given that its stake does not come back."""
    won, lost = np.maximum(factor.share[:, column], 0.0), np.maximum(-factor.share[:, column], 0.0)
    return float(factor.prob @ won / (factor.prob @ (won + lost)))


def together(factor: Factor, a: int, b: int) -> float:
    """Probability that both of two bets win."""
    return float(factor.prob @ ((factor.share[:, a] > 0.0) & (factor.share[:, b] > 0.0)))


MANY = partial(
    bets,
    ("moneyline", "Lakers", None, 1.7, 0.62),
    ("point_spread", "Lakers", -4.5, 2.0, 0.51),
    ("point_spread", "Lakers", -5.0, 2.1, 0.49),
    ("point_spread", "Celtics", 6.5, 1.9, 0.56),
    ("total_points", "Over", 221.5, 2.0, 0.52),
    ("total_points", "Under", 224.0, 1.9, 0.56),
)
SOCCER = partial(
    bets,
    ("moneyline", "Lakers", None, 2.2, 0.48),
    ("moneyline", "Draw", None, 3.9, 0.27),
    ("total_goals", "Under", 2.5, 2.0, 0.53),
    ("asian_handicap", "Lakers", -0.25, 2.0, 0.48 / (0.48 + 0.25 + 0.135)),
    ("both_teams_to_score", "No", None, 2.1, 0.5),
    ("team_total", "Over", 1.5, 2.2, 0.45),
    sport="soccer",
    team_side=pl.Series([None] * 5 + ["home"]),
)  # made by each test: importing this module starts no threads, so that mutation tests may fork


@pytest.mark.parametrize("make", [MANY, SOCCER], ids=["points", "counts"])
def test_every_bet_has_its_own_probability(make: Callable[[], pl.DataFrame]) -> None:
    frame = make()
    (factor,) = taken_apart(frame)
    assert sorted(factor.bets.tolist()) == list(range(frame.height))
    assert factor.prob.sum() == pytest.approx(1.0)
    for column, bet in enumerate(factor.bets.tolist()):
        assert chance(factor, column) == pytest.approx(frame["fair_probability"][bet], abs=1e-7), bet


def test_a_spread_is_won_only_with_the_game() -> None:
    (factor,) = taken_apart(MANY())
    assert together(factor, 0, 1) == pytest.approx(chance(factor, 1))
    assert together(factor, 1, 4) == pytest.approx(0.51 * 0.52, abs=0.01)  # margin and total are nearly independent


def test_a_draw_in_soccer_has_few_goals() -> None:
    (factor,) = taken_apart(SOCCER())
    assert together(factor, 0, 1) == 0.0
    assert together(factor, 1, 2) > 0.27 * 0.53 * 1.15
    assert together(factor, 2, 4) > 0.53 * 0.5 * 1.15  # few goals, and not both teams


def test_overtime_ends_by_one() -> None:
    frame = bets(
        ("moneyline", "Lakers", None, 2.0, 0.55), ("puck_line", "Celtics", 1.5, 1.5, 0.7),
        ("total_goals", "Over", 6.5, 2.0, 0.48), ("puck_line", "Lakers", -0.5, 1.9, 0.55), sport="hockey",
    )  # fmt: skip
    (factor,) = taken_apart(frame)
    assert together(factor, 0, 3) == pytest.approx(0.55)
    assert together(factor, 0, 1) == pytest.approx(0.55 - 0.3)
    assert chance(factor, 2) == pytest.approx(0.48)


def test_what_is_no_function_of_the_score_is_apart() -> None:
    props = bets(
        ("moneyline", "Lakers", None, 1.7, 0.62),
        ("player_points", "LeBron James Over 25.5", 25.5, 2.0, 0.52),
        ("player_points", "LeBron James Under 29.5", 29.5, 1.9, 0.7),
        ("player_assists", "LeBron James Over 7.5", 7.5, 2.0, 0.52),
        ("what_is_this", "One", None, 2.0, 0.52),
        ("what_is_this", "Two", None, 4.0, 0.3),
        player_name=pl.Series([None, "LeBron James", "LeBron James", "LeBron James", None, None]),
    )
    found = taken_apart(props)
    assert sorted(sorted(f.bets.tolist()) for f in found) == [[0, 4, 5], [1, 2], [3]]
    for factor in found:
        for column, bet in enumerate(factor.bets.tolist()):
            assert chance(factor, column) == pytest.approx(props["fair_probability"][bet], abs=1e-7)
    ladder = next(f for f in found if 1 in f.bets)
    assert together(ladder, 0, 1) == pytest.approx(0.52 + 0.7 - 1.0)
    texts = next(f for f in found if 4 in f.bets)
    places = [texts.bets.tolist().index(bet) for bet in (4, 5)]
    assert together(texts, *places) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("market", "first", "second"),
    [
        ("top_10_finish", "Rory", "Scottie"),
        ("double_chance", "Lakers or Draw", "Celtics or Draw"),
        ("hits", "2+", "1+"),
    ],
)
def test_what_is_not_identified_hedges_nothing(market: str, first: str, second: str) -> None:
    pair = bets((market, first, None, 2.1, 0.52), (market, second, None, 2.1, 0.52))
    alone = float(oe.kelly(0.52, 2.1))
    assert oe.kelly_portfolio(pair).bets["stake"].sum() == pytest.approx(alone, abs=1e-5)
    spelled = bets((market, first, None, 2.1, 0.5), (market, f" {first.upper()} ", None, 2.1, 0.54))
    assert oe.kelly_portfolio(spelled).bets["stake"].sum() == pytest.approx(alone, abs=1e-5)


def test_spreads_without_a_line_hedge_nothing() -> None:
    pair = bets(("point_spread", "Lakers", None, 2.1, 0.5), ("point_spread", "Celtics", None, 2.1, 0.5))
    assert oe.kelly_portfolio(pair).bets["stake"].sum() == pytest.approx(float(oe.kelly(0.5, 2.1)), abs=1e-5)


def test_a_game_without_a_sport_is_one_bet() -> None:
    rows = [("moneyline", "Lakers", None, 2.0, 0.55), ("total_points", "Over", 220.5, 2.0, 0.55)]
    unknown = bets(*rows, ("point_spread", "Lakers", -1.5, 2.0, 0.55)).with_columns(sport=pl.lit(None, pl.String))
    assert oe.kelly_portfolio(unknown).bets["stake"].sum() == pytest.approx(0.1, abs=1e-5)
    arb = bets(("moneyline", "Lakers", None, 2.1, 0.5), ("moneyline", "Celtics", None, 2.1, 0.5))
    arb = arb.with_columns(sport=pl.lit(None, pl.String))
    assert oe.kelly_portfolio(arb).bets["stake"].to_list() == pytest.approx([0.5, 0.5], abs=1e-3)
    (factor,) = taken_apart(unknown)
    for column, bet in enumerate(factor.bets.tolist()):
        assert chance(factor, column) == pytest.approx(unknown["fair_probability"][bet], abs=1e-7)


def test_two_of_three_outcomes_are_not_certain() -> None:
    pair = bets(("moneyline", "Lakers", None, 2.2, 0.5), ("moneyline", "Draw", None, 2.2, 0.52), sport="soccer")
    with pytest.raises(
        oe.OddsError, match=r"2 of the 3 outcomes of a market must sum to less than 1, got 0\.5 \+ 0\.52"
    ):
        oe.kelly_portfolio(pair)


def test_contradictions_end_in_between() -> None:
    wrong = bets(("total_points", "Over", 220.5, 2.1, 0.49), ("total_points", "Over", 222.5, 2.1, 0.52))
    (factor,) = taken_apart(wrong)
    assert 0.48 < chance(factor, 0) < 0.53
    assert 0.48 < chance(factor, 1) < 0.53
    assert oe.kelly_portfolio(wrong).growth > 0.0


@given(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=12), st.floats(0.05, 0.95))
def test_tilting_is_the_nearest_law(weights: list[float], p: float) -> None:
    w = np.array(weights) / sum(weights)
    inside = np.arange(w.size) < 2
    got = tilt(w, np.where(inside, 1.0 - p, -p)[None, :])
    # One condition has a closed form: each side keeps its proportions.
    assert got == pytest.approx(np.where(inside, w / w[inside].sum() * p, w / w[~inside].sum() * (1.0 - p)), abs=1e-7)


# ---- stakes ----


def test_bets_of_one_outcome_share_what_it_is_worth() -> None:
    one = oe.kelly_portfolio(bets(("moneyline", "Lakers", None, 1.8, 0.6)))
    assert one.bets["stake"].item() == pytest.approx(float(oe.kelly(0.6, 1.8)), abs=1e-6)
    pair = bets(("moneyline", "Lakers", None, 1.8, 0.6), ("moneyline", "Lakers", None, 1.75, 0.6))
    two = oe.kelly_portfolio(pair)
    assert two.bets["stake"].to_list() == pytest.approx([float(oe.kelly(0.6, 1.8)), 0.0], abs=1e-6)
    capped = oe.kelly_portfolio(pair, max_book={"book0": 0.02})
    assert capped.bets["stake"][0] == pytest.approx(0.02, abs=1e-6)
    assert 0.0 < capped.bets["stake"][1] < float(oe.kelly(0.6, 1.75)) - 0.015


def test_correlated_bets_get_less_together_than_alone() -> None:
    pair = bets(("moneyline", "Lakers", None, 1.8, 0.58), ("point_spread", "Lakers", -2.5, 2.1, 0.5))
    found = oe.kelly_portfolio(pair)
    alone = found.bets["kelly_fraction"].to_list()
    assert found.bets["stake"].min() > 0.01  # type: ignore[operator]
    assert found.bets["stake"].sum() < sum(alone) * 0.75
    other = pair.with_columns(event_id=pl.Series(["e1", "e2"]))
    apart = oe.kelly_portfolio(other).bets["stake"].to_list()
    assert apart == pytest.approx(alone, rel=0.05)


def test_an_arbitrage_is_staked_whole() -> None:
    arb = bets(
        ("moneyline", "Lakers", None, 2.1, 0.5), ("moneyline", "Celtics", None, 2.1, 0.5), fair_error=pl.lit(0.05)
    )
    found = oe.kelly_portfolio(arb, bankroll=100.0)
    assert found.bets["stake"].to_list() == pytest.approx([50.0, 50.0], abs=1e-3)
    assert found.profit == pytest.approx(5.0, abs=1e-3)
    assert found.deviation == pytest.approx(0.0, abs=1e-2)
    assert found.growth == pytest.approx(np.log(1.05), abs=1e-6)


def test_money_limits_steps_and_fraction() -> None:
    frame = MANY().with_columns(max_bet=pl.Series([None, 30.0, None, None, 0.0, None]))
    full = oe.kelly_portfolio(frame, bankroll=2000.0).bets["stake"]
    assert full[1] <= 30.0 + 1e-9
    assert full[4] == 0.0
    half = oe.kelly_portfolio(MANY(), bankroll=2000.0, fraction=0.5).bets["stake"]
    assert half.to_list() == pytest.approx(
        (oe.kelly_portfolio(MANY(), bankroll=2000.0).bets["stake"] * 0.5).to_list(), abs=1e-4
    )
    limited = oe.kelly_portfolio(MANY(), bankroll=2000.0, fraction=0.5, max_bet=25.0, max_event=60.0, step=5.0)
    stakes = limited.bets["stake"]
    assert (stakes % 5.0).round(6).is_in([0.0, 5.0]).all()
    assert stakes.max() <= 25.0 + 1e-9  # type: ignore[operator]
    assert stakes.sum() <= 60.0 + 1e-9
    assert stakes.sum() >= 50.0


def test_whole_steps_are_written_as_such() -> None:
    stakes = oe.kelly_portfolio(MANY(), bankroll=7.0, step=0.1).bets["stake"].to_list()
    assert any(stakes)
    assert stakes == [round(stake, 1) for stake in stakes]


def test_uncertain_probabilities_are_bet_smaller() -> None:
    sure = bets(("moneyline", "Lakers", None, 2.0, 0.55))
    unsure = sure.with_columns(fair_error=0.03)
    x, de = 0.1, 0.06
    assert oe.kelly_portfolio(unsure).bets["stake"].item() == pytest.approx(0.1 * x * x / (x * x + de * de), abs=1e-6)
    assert oe.kelly_portfolio(unsure, uncertain=False).bets["stake"].item() == pytest.approx(0.1, abs=1e-6)
    assert (
        oe.kelly_portfolio(unsure.with_columns(fair_error=pl.lit(None, pl.Float64))).growth
        == oe.kelly_portfolio(sure).growth
    )


def test_what_the_finders_return_can_be_staked() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    found = oe.kelly_portfolio(oe.find_ev(odds, min_ev=0.5), bankroll=1000.0, fraction=0.25, max_book=50.0)
    by_book = found.bets.group_by("sportsbook").agg(pl.col("stake").sum())
    assert by_book["stake"].max() <= 50.0 + 1e-6  # type: ignore[operator]
    assert found.profit > 0.0
    assert found.growth > 0.0
    rows = oe.fair(odds).filter(pl.col("ev") > 0.005)
    assert oe.kelly_portfolio(rows.to_pandas(), fraction=0.25).bets["stake"].sum() > 0.0
    assert oe.kelly_portfolio(rows.clear()).bets.height == 0


def test_what_is_no_bet_is_refused() -> None:
    good = bets(("moneyline", "Lakers", None, 2.0, 0.55))
    with pytest.raises(oe.OddsError, match="bets must have the column fair_probability"):
        oe.kelly_portfolio(good.drop("fair_probability"))
    with pytest.raises(oe.OddsError, match=r"bet 1: fair_probability must be above 0 and below 1, got 1\.2"):
        oe.kelly_portfolio(good.with_columns(fair_probability=1.2))
    with pytest.raises(oe.OddsError, match=r"bet 1: odds_decimal '0\.5' is not a finite price above 1"):
        oe.kelly_portfolio(good.with_columns(odds_decimal=0.5))
    for wrong in ({"bankroll": 0.0}, {"step": -1.0}, {"fraction": 2.0}, {"max_bet": float("nan")}, {"max_book": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            oe.kelly_portfolio(good, **wrong)  # type: ignore[arg-type]

    for name, each in (("max_bet", 1.0), ("max_book", float("nan")), ("max_book", -1.0)):
        with pytest.raises(ValueError, match=f"{name}.* must be"):
            oe.kelly_portfolio(good, **{name: {"book0": each}})  # type: ignore[arg-type]
    for name, value in (("net_odds", 1.0), ("net_odds", np.inf), ("fair_error", -0.01), ("max_bet", -5.0)):
        with pytest.raises(oe.OddsError, match=f"bet 1: {name} (must be|'-5.0' is)"):
            oe.kelly_portfolio(good.with_columns(pl.lit(value).alias(name)))
    with pytest.raises(oe.OddsError, match="must not have columns that kelly_portfolio adds, got stake"):
        oe.kelly_portfolio(good.with_columns(stake=1.0))


def test_rows_that_cannot_be_bet_get_nothing() -> None:
    frame = bets(*[("moneyline", "Lakers", None, 2.1, 0.52)] * 5).with_columns(
        event_id=pl.Series(list("abcde")),
        fair_probability=pl.Series([0.52, None, 0.52, 0.52, 0.52]),
        guard=pl.Series([None, None, "stale", None, None]),
        is_active=pl.Series([True, True, True, False, None]),
    )
    found = oe.kelly_portfolio(frame).bets
    assert found["left_out"].to_list() == [None, "no_fair_probability", "stale", "suspended", None]
    assert found["stake"].to_list() == pytest.approx([0.0836, 0.0, 0.0, 0.0, 0.0836], abs=1e-3)
    assert found["kelly_fraction"].null_count() == 3
    late = frame.with_columns(net_odds=pl.Series([2.0, 2.0, 2.0, 2.0, 0.5]))
    with pytest.raises(oe.OddsError, match=r"bet 5: net_odds must be finite and above 1, got 0\.5"):
        oe.kelly_portfolio(late)


def test_rows_of_fair_can_be_staked_as_they_are() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    unbet = pl.col("fair_probability").is_null() | pl.col("guard").is_not_null()
    rows = oe.fair(odds).filter(unbet | (pl.col("ev") > 0.005))
    assert rows.select(unbet.any()).item()
    found = oe.kelly_portfolio(rows, fraction=0.25)
    assert found.bets.height == rows.height
    assert found.bets.filter(pl.col("stake") > 0)["guard"].null_count() == found.bets.filter(pl.col("stake") > 0).height
    costly = oe.fair(odds, sharp="pinnacle", commission=dict.fromkeys(odds["sportsbook"].unique().to_list(), 0.5))
    few = costly.filter(pl.col("event_id") == costly["event_id"][0])
    assert oe.kelly_portfolio(few).bets["stake"].sum() == 0.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_whole_board_can_be_staked(seed: int) -> None:
    if seed:
        look = next(iter(oe.World(seed, events=2, live=0.0).run(1)))
        odds = pl.DataFrame(look.quotes, infer_schema_length=None).with_columns(last_seen_at=pl.lit(look.now))
    else:
        odds = oe.read_odds(SAMPLE_BOARD)
    rows = oe.fair(odds)
    assert rows.height > 1000
    some = oe.kelly_portfolio(rows.filter(pl.col("ev") > 0.0), max_bet=0.05, uncertain=False)
    found = oe.kelly_portfolio(rows, max_bet=0.05, uncertain=False)
    # Bets without an edge are staked too, where they hedge others.
    assert found.growth > 0.5 * some.growth > 0.0
    assert found.bets["stake"].max() <= 0.05 + 1e-9  # type: ignore[operator]


def test_a_limit_of_a_book_is_that_of_all_its_names() -> None:
    names = pl.Series(["betmgm", "BetMGM"])
    pair = bets(("moneyline", "Lakers", None, 2.1, 0.55), ("total_points", "Over", 220.5, 2.1, 0.55), sportsbook=names)
    pair = pair.with_columns(sportsbook=names)
    for limit in ({"BetMGM": 0.05}, {"betmgm": 0.05}, 0.05):
        assert oe.kelly_portfolio(pair, max_book=limit).bets["stake"].sum() <= 0.05 + 1e-9
    with pytest.raises(ValueError, match="max_book must be for books in the catalog or in the bets, got 'betmgn'"):
        oe.kelly_portfolio(pair, max_book={"betmgn": 0.05})


def test_a_bet_alone_has_its_uncertain_stake() -> None:
    unsure = bets(("moneyline", "Lakers", None, 2.0, 0.55), fair_error=pl.lit(0.03))
    found = oe.kelly_portfolio(unsure).bets
    assert found["kelly_fraction"].item() == pytest.approx(found["stake_fraction"].item(), abs=1e-6)
    assert oe.kelly_portfolio(unsure, uncertain=False).bets["kelly_fraction"].item() == pytest.approx(0.1)


# ---- arbitrages ----


def arbitrages() -> pl.DataFrame:
    return oe.find_arbitrage(oe.read_odds(SAMPLE_BOARD), min_profit=0.0)


def test_a_plan_keeps_within_everything() -> None:
    arbs = arbitrages()
    plan = oe.arbitrage_plan(
        arbs,
        bankroll=1200.0,
        max_bet=150.0,
        max_book={"bet365": 250.0, "bovada": 300.0},
        step={"draftkings": 10.0},
        min_profit=0.5,
    )
    assert plan.height
    assert plan["stake"].sum() <= 1200.0
    by_book = dict(plan.group_by("sportsbook").agg(pl.col("stake").sum()).iter_rows())
    assert by_book.get("bet365", 0.0) <= 250.0
    assert plan["stake"].max() <= 150.0  # type: ignore[operator]
    assert (plan.filter(sportsbook="draftkings")["stake"] % 10.0 == 0.0).all()
    whole = (
        plan.group_by("rank")
        .agg(pl.col("payout").min() - pl.col("stake").sum(), pl.col("worst_case").first())
        .sort("rank")
    )
    assert whole["payout"].to_list() == pytest.approx(whole["worst_case"].to_list())
    assert whole["worst_case"].is_sorted(descending=True)
    assert whole["worst_case"].min() >= 0.5  # type: ignore[operator]


def test_the_largest_worst_case_comes_first() -> None:
    arbs = arbitrages()
    plan = oe.arbitrage_plan(arbs, bankroll=1e5, max_bet=100.0, step=1.0)
    alone = [
        oe.round_stakes([leg["net_odds"] for leg in legs], 1e5, 1.0, 100.0).profit for legs in arbs["legs"].to_list()
    ]
    assert plan["rank"].n_unique() == len(alone)
    assert plan["worst_case"].unique().sort(descending=True).to_list() == pytest.approx(sorted(alone, reverse=True))


def plan_of(*arbs: list[tuple[str, str, float]], **options: Any) -> pl.DataFrame:
    """A plan for arbitrages in one market, given by book, selection and price of their legs."""
    frame = pl.DataFrame(
        {
            "id": [str(at) for at in range(len(arbs))],
            "event_id": "e1",
            "event_name": "A @ B",
            "market_type": "moneyline",
            "line": pl.Series([None] * len(arbs), dtype=pl.Float64),
            "legs": [[{"sportsbook": b, "selection": s, "net_odds": d} for b, s, d in legs] for legs in arbs],
        }
    )
    return oe.arbitrage_plan(frame, **options)


def test_legs_at_one_book_share_its_limit_alone() -> None:
    both = [("x", "A", 2.1), ("x", "B", 2.05)]
    assert sorted(plan_of(both, bankroll=1000, max_bet=50)["stake"].to_list()) == [48.0, 50.0] or sorted(
        plan_of(both, bankroll=1000, max_bet=50)["stake"].to_list()
    ) == [49.0, 50.0]
    assert plan_of(both, bankroll=1000, max_book=50, step=5)["stake"].to_list() == [25.0, 25.0]
    three = [("x", "A", 4.0), ("X", "B", 3.5), ("y", "C", 3.6)]
    plan = plan_of(three, bankroll=1000, max_book={"x": 10}, step=5)
    assert plan["stake"].to_list() == [5.0, 5.0, 5.0]
    assert plan["worst_case"].to_list() == [2.5] * 3


def test_a_bet_has_one_limit_in_arbitrages_of_several_markets() -> None:
    """A home win in the three-way market is a leg of the spread too."""
    leg = {"sportsbook": "x", "market_type": "moneyline", "selection": "A", "line": None, "net_odds": 2.6}
    lay = {"sportsbook": "y", "market_type": "point_spread", "selection": "B", "line": 0.5, "net_odds": 1.8}
    rest = [leg | {"sportsbook": book, "selection": side, "net_odds": odds}
            for book, side, odds in (("z", "Draw", 3.9), ("w", "B", 3.4))]  # fmt: skip
    arbs = pl.DataFrame(
        {"id": ["1", "2"], "event_name": "B @ A", "event_id": "g", "market_type": ["point_spread", "moneyline"],
         "line": [-0.5, None], "legs": [[leg, lay], [leg, *rest]]}
    )  # fmt: skip
    plan = oe.arbitrage_plan(arbs, bankroll=1000, max_bet={"x": 50})
    assert plan.filter(sportsbook="x")["stake"].sum() <= 50.0


def test_a_bet_that_two_arbitrages_need_has_one_limit() -> None:
    shared = plan_of([("x", "A", 2.2), ("y", "B", 2.1)], [("x", "A", 2.2), ("z", "B", 2.05)], bankroll=1000, max_bet=50)
    assert shared.filter(sportsbook="x")["stake"].sum() <= 50.0


@pytest.mark.parametrize(
    ("market", "column", "names"),
    [
        ("team_total", "team_side", ("home", "away")),
        ("player_points", "player_name", ("Jayson Tatum", "Jaylen Brown")),
    ],
)
def test_bets_on_two_teams_or_players_have_limits_of_their_own(
    market: str, column: str, names: tuple[str, str]
) -> None:
    """Books write both selections as "Over"; only the team or the player tells the bets apart."""
    prices = pl.DataFrame(
        {
            "sportsbook": book, "event_id": "g1", "sport": "basketball", "home_team": "Boston Celtics",
            "away_team": "Miami Heat", "market_type": market, "line": 110.5, "selection": side, "odds_decimal": odds,
            column: name,
        }
        for name in names
        for book, side, odds in (("x", "Over", 2.2), ("x", "Under", 1.7), ("y", "Over", 1.7), ("y", "Under", 2.1))
    )  # fmt: skip
    plan = oe.arbitrage_plan(oe.find_arbitrage(prices), bankroll=1000, max_bet=100)
    assert plan.group_by("selection").agg(pl.col("stake").sum()).sort("selection").rows() == [
        ("Over", 190.0), ("Under", 200.0)
    ]  # fmt: skip


def test_other_frames_than_arbitrages_and_bets() -> None:
    with pytest.raises(oe.OddsError, match="with the columns legs and market_type, got market_type"):
        oe.arbitrage_plan(pl.DataFrame({"market_type": ["moneyline"]}), bankroll=1000)
    with pytest.raises(oe.OddsError, match=r"bet 1: fair_probability must be a number, got 'even'"):
        oe.kelly_portfolio(MANY().with_columns(fair_probability=pl.lit("even")))
    half = oe.kelly_portfolio(MANY(fair_probability=pl.lit("0.5")))
    assert half.bets["left_out"].null_count() == half.bets.height


@given(
    st.lists(st.floats(1.5, 6.0), min_size=2, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 20),
)
def test_joint_limits_leave_the_best_whole_stakes(
    odds: list[float], some: list[bool], each: int, joint: int, total: int
) -> None:
    members = np.array(some[: len(odds)])
    if not members.any():
        members[0] = True
    found = joint_stakes(odds, float(total), 1.0, float(each), [members], [float(joint)])
    grid = np.stack(np.meshgrid(*[np.arange(each + 1.0)] * len(odds), indexing="ij"), axis=-1).reshape(-1, len(odds))
    grid = grid[(grid.sum(axis=1) <= total) & (grid @ members <= joint)]
    best = ((grid * odds).min(axis=1) - grid.sum(axis=1)).max()
    assert found.profit == pytest.approx(max(best, 0.0), abs=1e-9)
    assert found.stakes.sum() <= total
    assert found.stakes @ members <= joint


def test_names_and_numbers_of_a_plan() -> None:
    legs = [("betmgm", "A", 2.1), ("y", "B", 2.1)]
    assert plan_of(legs, bankroll=100, max_book={"BetMGM": 20})["stake"].to_list() == [20.0, 20.0]
    assert plan_of(legs, bankroll=1, step=0.1, max_bet=0.3)["stake"].to_list() == [0.3, 0.3]
    for name, wrong in (
        ("max_book", {"betmgn": 5.0}), ("max_book", float("nan")), ("max_bet", -1.0), ("min_profit", float("nan")),
        ("step", 0.0), ("step", {"y": np.inf}), ("bankroll", "100"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"{name}.* must be .*, got "):
            plan_of(legs, **{"bankroll": 100.0, name: wrong})
    arbs = arbitrages()
    assert oe.arbitrage_plan(arbs.lazy(), bankroll=500.0).equals(oe.arbitrage_plan(arbs, bankroll=500.0))


def test_levelling_into_an_arbitrage_goes_on_to_the_end_of_the_money() -> None:
    best = oe.cover([1.7, 0.0], [3.258, 3.134], [3.215, 1.687], bankroll=179.57)
    stakes = best.filter(choice="level")["stakes"][0].to_numpy()
    worst = best.filter(choice="level")["worst_case"].item()
    assert worst == pytest.approx((179.57 - 1.7 + 1.7 * 3.258 / 3.215) / (1 / 3.215 + 1 / 1.687) - 179.57)
    assert stakes.sum() == pytest.approx(179.57 - 1.7)
    with pytest.raises(ValueError, match="an arbitrage with unbounded stakes; set bankroll or limits"):
        oe.cover([1.7, 0.0], [3.258, 3.134], [3.215, 1.687])


def test_what_is_available_is_decimal_odds() -> None:
    for wrong in ([2.1, -110.0], [2.1, 1.0], [2.1, np.inf]):
        with pytest.raises(ValueError, match="available must be finite decimal odds above 1, or nan if not available"):
            oe.cover([10.0, 0.0], [2.1, 2.0], wrong)
    for limits in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="limits must be 0 or more"):
            oe.cover([10.0, 0.0], [2.1, 2.0], [2.1, 1.9], limits=limits)


def test_no_money_and_no_arbitrages() -> None:
    assert oe.arbitrage_plan(arbitrages().clear(), bankroll=100.0).schema == oe.PLAN_SCHEMA
    assert oe.arbitrage_plan(arbitrages(), bankroll=100.0, max_bet=0.0).height == 0
    with pytest.raises(ValueError, match="bankroll must be"):
        oe.arbitrage_plan(arbitrages(), bankroll=0.0)


@given(
    st.lists(
        st.tuples(st.floats(0.0, 100.0), st.floats(1.3, 5.0), st.floats(1.1, 5.0), st.floats(0.0, 80.0)),
        min_size=2,
        max_size=3,
    ),
    st.floats(0.0, 200.0),
)
def test_no_way_to_cover_has_a_better_worst_case(legs: list[tuple[float, float, float, float]], cash: float) -> None:
    placed, odds, now, limits = (np.array(column) for column in zip(*legs, strict=True))
    bankroll = placed.sum() + cash + 1.0
    found = oe.cover(placed, odds, now, bankroll=bankroll, limits=limits)
    level = found.filter(choice="level").row(0, named=True)
    added = np.array(level["stakes"])
    assert (added >= 0.0).all()
    assert (added <= limits + 1e-9).all()
    assert added.sum() <= cash + 1.0 + 1e-6
    grid = np.stack(np.meshgrid(*(np.linspace(0.0, most, 9) for most in limits), indexing="ij"), axis=-1).reshape(
        -1, placed.size
    )
    grid = grid[grid.sum(axis=1) <= cash + 1.0]
    ends = placed * odds + grid * now - placed.sum() - grid.sum(axis=1, keepdims=True)
    assert level["worst_case"] >= ends.min(axis=1).max(initial=-np.inf) - 1e-6


@given(st.floats(0.05, 0.95), st.floats(1.2, 4.0), st.floats(1.2, 4.0), st.floats(1.0, 300.0))
def test_covering_for_growth_beats_every_stake(prob: float, odds: float, now: float, placed: float) -> None:
    found = oe.cover([placed, 0.0], [odds, 2.0], [np.nan, now], [prob, 1.0 - prob], bankroll=400.0)
    best = found.filter(choice="growth").row(0, named=True)
    assert best["stakes"][0] == 0.0
    for added in np.linspace(0.0, 399.0 - placed if placed < 399.0 else 0.0, 60):
        wealth = np.array([400.0 - placed - added + placed * odds, 400.0 - placed - added + added * now])
        assert best["growth"] >= np.log(wealth / 400.0) @ [prob, 1.0 - prob] - 1e-7
    assert found["growth"].is_sorted(descending=True)


def test_what_cannot_be_covered() -> None:
    stands = oe.cover([50.0, 0.0, 0.0], [2.5, 3.0, 4.0], [np.nan, np.nan, 4.0])
    assert stands["stakes"].to_list() == [[0.0, 0.0, 0.0]] * 2
    assert stands["mean"].null_count() == stands["growth"].null_count() == 2
    with pytest.raises(ValueError, match="one number per outcome"):
        oe.cover([50.0], [2.0, 2.0], [2.0, 2.0])
    with pytest.raises(ValueError, match="placed must be"):
        oe.cover([-1.0, 0.0], [2.0, 2.0], [2.0, 2.0])
    with pytest.raises(ValueError, match="probs must be"):
        oe.cover([1.0, 0.0], [2.0, 2.0], [2.0, 2.0], [0.5, 0.6])
    with pytest.raises(ValueError, match="more than was placed, 10"):
        oe.cover([10.0, 0.0], [2.0, 2.0], [2.0, 2.0], bankroll=5.0)


def limited_board() -> pl.DataFrame:
    """An arbitrage of 9 %, a middle, and a +EV price, at two books that accept at most 20 and 30."""
    prices = [
        ("fanduel", "Over", 220.5, 2.20, 20.0),
        ("draftkings", "Under", 220.5, 2.15, 30.0),
        ("draftkings", "Under", 222.5, 2.05, 30.0),
        *(
            (book, side, 220.5, 1.95, most)
            for book, most in (("pinnacle", 1e4), ("betmgm", None), ("caesars", 500.0))
            for side in ("Over", "Under")
        ),
    ]
    names = ["sportsbook", "selection", "line", "odds_decimal", "max_bet"]
    return pl.DataFrame(prices, schema=names, orient="row", infer_schema_length=None).with_columns(
        event_id=pl.lit("e1"), sport=pl.lit("basketball"), market_type=pl.lit("total_points")
    )


def test_limits_of_the_prices_reach_every_result_and_every_stake() -> None:
    odds = limited_board()
    arbs = oe.find_arbitrage(odds, guards=[])
    assert [(leg["sportsbook"], leg["max_bet"]) for leg in arbs["legs"][0]] == [("fanduel", 20.0), ("draftkings", 30.0)]
    plan = oe.arbitrage_plan(arbs, bankroll=1000)
    assert plan["stake"].to_list() == [20.0, 21.0]
    assert oe.arbitrage_plan(arbs, bankroll=1000, max_bet={"fanduel": 10})["stake"][0] == 10.0
    value = oe.find_ev(odds, guards=[], min_ev=1.0)
    limits = dict(value.filter(line=220.5).select("sportsbook", "max_bet").iter_rows())
    assert limits == {"fanduel": 20.0, "draftkings": 30.0}
    staked = oe.kelly_portfolio(value, bankroll=1000.0).bets
    assert (staked["stake"] <= staked["max_bet"] + 1e-9).all()
    middles = oe.find_middles(odds, guards=[], max_profit=None)
    assert (middles["side1"][0]["max_bet"], middles["side2"][0]["max_bet"]) == (20.0, 30.0)
    holds = oe.find_low_hold(odds, books=["betmgm", "caesars"], guards=[], max_hold=10)
    assert [(holds[side][0]["books"], holds[side][0]["max_bets"]) for side in ("side1", "side2")] == [
        (["betmgm", "caesars"], [None, 500.0])
    ] * 2


def test_a_limit_below_zero_is_unknown_in_prices_and_refused_in_a_plan() -> None:
    """Some sources mean "unknown" by -1; who makes legs of their own means something else."""
    board = limited_board()
    unknown = oe.find_arbitrage(board.with_columns(max_bet=pl.lit(-1.0)), guards=[])
    without = oe.find_arbitrage(board.drop("max_bet"), guards=[])
    assert oe.arbitrage_plan(unknown, bankroll=100.0).equals(oe.arbitrage_plan(without, bankroll=100.0))
    negative = unknown.with_columns(pl.col("legs").list.eval(pl.element().struct.with_fields(max_bet=pl.lit(-1.0))))
    with pytest.raises(oe.OddsError, match="arbitrage 1: max_bet must be 0 or more, got -1"):
        oe.arbitrage_plan(negative, bankroll=100.0)
