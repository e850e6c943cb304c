"""Portfolios: the growth of the kernel is that of every combination of scenarios, and its maximum the maximum."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import maths as naive

import oddsengine as oe
from oddsengine.staking import portfolio
from oddsengine.staking.portfolio import GameColumns, StakeLimits, best_stakes, growth, shrink, whole_steps

Pairs = list[tuple[list[float], list[list[float]]]]


@st.composite
def small_games(draw: st.DrawFn, bets: int = 4) -> Pairs:
    """Up to three games with a few bets in all, and gains from losses to long shots."""
    games: Pairs = []
    left = bets
    for _ in range(draw(st.integers(1, 3))):
        if left == 0:
            break
        n = draw(st.integers(1, left))
        left -= n
        scenarios = draw(st.integers(2, 4))
        weights = [draw(st.floats(0.05, 1.0)) for _ in range(scenarios)]
        odds = [draw(st.floats(1.05, 12.0)) for _ in range(n)]
        shares = [[draw(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, 1.0, -1.0])) for _ in range(n)] for _ in weights]
        gains = [[u * (d - 1.0) if u > 0 else u for u, d in zip(row, odds, strict=True)] for row in shares]
        games.append(([w / sum(weights) for w in weights], gains))
    return games


@given(small_games(), st.floats(0.0, 0.97))
def test_growth_is_that_of_all_combinations(games: Pairs, staked: float) -> None:
    n = sum(len(gains[0]) for _, gains in games)
    stakes = np.random.default_rng(n).dirichlet(np.ones(n)) * staked
    assert growth(GameColumns.from_pairs(games), stakes) == pytest.approx(
        naive.portfolio_growth(games, stakes.tolist()), abs=1e-8
    )


def test_growth_near_ruin() -> None:
    games = [([0.999, 0.001], [[0.5], [-1.0]])]
    for staked in (0.9, 0.999, 0.9999):
        assert growth(GameColumns.from_pairs(games), [staked]) == pytest.approx(
            naive.portfolio_growth(games, [staked]), abs=1e-8
        )


@settings(max_examples=25, deadline=None)
@given(small_games(3), st.sampled_from([1.0, 0.3]), st.sampled_from([1.0, 0.5]))
def test_no_search_finds_more_growth(games: Pairs, most: float, total: float) -> None:
    n = sum(len(gains[0]) for _, gains in games)
    stakes = best_stakes(GameColumns.from_pairs(games), StakeLimits.none(n)._replace(bet=np.full(n, most), total=total))
    assert (stakes >= 0.0).all()
    assert (stakes <= most + 1e-12).all()
    assert stakes.sum() <= total + 1e-12
    searched = naive.portfolio_search(games, [min(most, 0.9999)] * n, min(total, 0.9999))
    ours = growth(GameColumns.from_pairs(games), stakes)
    assert ours >= naive.portfolio_growth(games, searched) - 1e-7


@given(small_games(4), st.sampled_from([1.0, 0.2]), st.sampled_from([1.0, 0.3]))
def test_bets_may_be_added_one_at_a_time(games: Pairs, most: float, total: float) -> None:
    """Without an edge of its own a bet may still be a hedge."""
    of = GameColumns.from_pairs(games)
    n = int(of.bet[-1])
    halves = np.arange(n) % 2 == np.arange(2)[:, None]
    limits = StakeLimits(np.full(n, most), halves, np.full(2, 0.15), total)
    whole = growth(of, best_stakes(of, limits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portfolio, "_MANY", 1)
        assert growth(of, best_stakes(of, limits)) == pytest.approx(whole, abs=1e-7)


@given(st.floats(0.01, 0.99), st.floats(1.05, 50.0))
def test_one_bet_is_kelly(prob: float, odds: float) -> None:
    stakes = best_stakes(GameColumns.from_pairs([([prob, 1.0 - prob], [[odds - 1.0], [-1.0]])]), StakeLimits.none(1))
    assert stakes[0] == pytest.approx(float(oe.kelly(prob, odds)), abs=2e-6)


@given(st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(0.7, 1.25)), min_size=2, max_size=8))
def test_exclusive_outcomes_are_exclusive_kelly(outcomes: list[tuple[float, float]]) -> None:
    weights = np.array([w for w, _ in outcomes])
    p = weights / (weights.sum() + 0.2)  # an outcome that nobody quotes takes the rest
    odds = np.maximum(np.array([x for _, x in outcomes]) / p, 1.05)
    gains = np.vstack([np.where(np.eye(p.size) > 0.0, odds - 1.0, -1.0), np.full(p.size, -1.0)])
    games = GameColumns.from_pairs([([*p, 1.0 - p.sum()], gains)])
    wanted = oe.kelly_exclusive(p, odds)
    got = best_stakes(games, StakeLimits.none(p.size))
    assert growth(games, got) == pytest.approx(growth(games, wanted * (1.0 - 1e-9)), abs=1e-7)
    assert got == pytest.approx(wanted, abs=2e-4)


def binary_games(rng: np.random.Generator, games: int, bets: int) -> list[tuple[Any, Any]]:
    """Two-way games in which each bet takes one of the sides."""
    out = []
    for _ in range(games):
        p = rng.uniform(0.3, 0.7)
        sides = rng.random(bets) < 0.5
        odds = np.where(sides, 1.0 / p, 1.0 / (1.0 - p)) * rng.uniform(0.95, 1.1, bets)
        out.append(([p, 1.0 - p], np.where(np.stack([sides, ~sides]), odds - 1.0, -1.0)))
    return out


def solved(prob: Any, gains: Any, most: Any, groups: Any, ends: Any) -> float:
    """The largest growth by a convex solver, over listed scenarios."""
    cp: Any = pytest.importorskip("cvxpy", reason="`make test-all` installs it")
    f = cp.Variable(gains.shape[1], nonneg=True)
    limits = [f <= most, cp.sum(f) <= 1.0, *(cp.sum(f[g]) <= end for g, end in zip(groups, ends, strict=True))]
    problem = cp.Problem(cp.Maximize(prob @ cp.log(1.0 + gains @ f)), limits)
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("seed", range(3))
def test_limits_as_a_convex_solver_finds_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = binary_games(rng, 8, 3)
    ends = np.array(list(product(range(2), repeat=8)))
    prob = np.prod([np.array(p)[ends[:, g]] for g, (p, _) in enumerate(pairs)], axis=0)
    gains = np.hstack([np.asarray(r)[ends[:, g]] for g, (_, r) in enumerate(pairs)])
    books = np.arange(24) % 4
    most, groups, caps = np.full(24, 0.05), [np.flatnonzero(books == b) for b in range(4)], [0.1, 0.15, 0.0, 0.2]
    limits = StakeLimits(most, books == np.arange(4)[:, None], np.array(caps))
    stakes = best_stakes(GameColumns.from_pairs(pairs), limits)
    assert growth(GameColumns.from_pairs(pairs), stakes) == pytest.approx(
        solved(prob, gains, most, groups, caps), abs=1e-7
    )
    assert (stakes[books == 2] == 0.0).all()


def test_a_large_game_as_a_convex_solver_finds_it() -> None:
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(150))
    wins = rng.random((150, 120)) < 0.5
    odds = np.clip(1.0 / (p @ wins) * rng.uniform(0.9, 1.05, 120), 1.05, 20.0)
    gains = np.where(wins, odds - 1.0, -1.0)
    games = GameColumns.from_pairs([(p, gains)])
    stakes = best_stakes(games, StakeLimits.none(120))
    assert growth(games, stakes) == pytest.approx(solved(p, gains, np.ones(120), [], []), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_whole_steps_beside_every_combination(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = binary_games(rng, 2, 2)
    games, step = GameColumns.from_pairs(pairs), 0.05
    limits = StakeLimits(np.full(4, 0.2), np.array([[True, True, False, False]]), np.array([0.25]))
    stakes = whole_steps(games, best_stakes(games, limits), np.full(4, step), limits)
    count = np.rint(stakes / step)
    assert stakes == pytest.approx(count * step)
    fits = [c for c in product(range(5), repeat=4) if c[0] + c[1] <= 5]
    values = {c: growth(games, np.array(c) * step) for c in fits}
    here = values[tuple(int(c) for c in count)]
    for i in range(4):
        for change in (-1, 1):
            near = tuple(int(c) + change * (j == i) for j, c in enumerate(count))
            assert values.get(near, -1.0) <= here + 1e-12
    assert here >= max(values.values()) - 5e-4


def test_limits_that_meet_in_one_point() -> None:
    # Five bets of 0.02 fill a book's 0.1: the optimum has more active limits than bets.
    rng = np.random.default_rng(200)
    games = GameColumns.from_pairs(binary_games(rng, 200, 1))
    limits = StakeLimits(np.full(200, 0.02), np.arange(200) % 8 == np.arange(8)[:, None], np.full(8, 0.1))
    stakes = best_stakes(games, limits)
    assert np.isfinite(stakes).all()
    assert stakes.sum() == pytest.approx(0.8, abs=1e-5)


def test_shrinking() -> None:
    p, d, e = 0.55, 2.0, 0.03
    got = shrink([p, 1.0 - p], [d, np.nan], [e, e])
    x = p * d - 1.0
    assert oe.kelly(got[0], d) == pytest.approx(oe.kelly(p, d) * x * x / (x * x + (d * e) ** 2))
    assert got.sum() == pytest.approx(1.0)
    assert shrink([0.5, 0.5], [2.1, 2.1], [0.05, 0.05]).tolist() == pytest.approx([0.5, 0.5])  # legs of an arbitrage
    assert shrink([0.5, 0.3, 0.2], [1.9, 3.0, 4.0], [0.1] * 3).tolist() == [0.5, 0.3, 0.2]  # no edge, no bet
    three = shrink([0.5, 0.3, 0.2], [2.2, 3.0, np.nan], [0.05, 0.05, 0.05])
    assert three[1] / three[2] == pytest.approx(1.5)
    assert 1.0 / 2.2 < three[0] < 0.5


def test_nothing_to_bet() -> None:
    assert best_stakes(GameColumns.from_pairs([]), StakeLimits.none(0)).size == 0
    bad = GameColumns.from_pairs([([0.4, 0.6], [[1.0], [-1.0]])])
    assert best_stakes(bad, StakeLimits.none(1)).tolist() == [0.0]
    none = StakeLimits.none(1)._replace(bet=np.zeros(1))
    assert best_stakes(GameColumns.from_pairs([([0.6, 0.4], [[1.0], [-1.0]])]), none).tolist() == [0.0]
    with pytest.raises(ValueError, match="must sum to 1"):
        GameColumns.from_pairs([([0.6, 0.6], [[1.0], [-1.0]])])
    with pytest.raises(ValueError, match="got shapes"):
        GameColumns.from_pairs([([0.6, 0.4], [1.0, -1.0])])
