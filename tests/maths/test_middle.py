"""Middles: settlement, windows and worth against enumeration; shapes against distributions written out."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from naive import maths as naive_maths

from oddsengine.maths.distributions import KINDS, Shapes, mass, tail
from oddsengine.maths.middle import evaluate, quality, settle_over, settle_under, window
from oddsengine.maths.shape_fitting import _deviate, fit

LINES = st.integers(-24, 24).map(lambda quarters: 25 * quarters)
NUMBERS = st.integers(-8, 8)
ODDS = st.floats(1.05, 12.0)


class Shape(NamedTuple):
    """One shape with its location, for our functions and for the twins."""

    kind: str
    location: float
    scale: float = 1.0
    level: float = math.nan
    weights: tuple[float, ...] = (1.0,)

    def ours(self) -> Shapes:
        return Shapes.of(KINDS[self.kind], self.scale, self.level, 0, [self.weights])

    def pmf(self) -> dict[int, float]:
        return naive_maths.distribution(*self)

    def spread(self) -> float:
        if self.kind in ("poisson", "negative_binomial"):
            return math.sqrt(self.location * self.scale)
        return math.sqrt(self.scale) if self.kind == "skellam" else self.scale


@st.composite
def a_shape(draw: st.DrawFn) -> Shape:
    kind = draw(st.sampled_from(sorted(KINDS)))
    if kind == "poisson":
        return Shape(kind, draw(st.floats(0.05, 60.0)))
    if kind == "negative_binomial":
        return Shape(kind, draw(st.floats(0.05, 40.0)), draw(st.floats(1.05, 4.0)))
    if kind == "normal":
        return Shape(kind, draw(st.floats(-30.0, 240.0)), draw(st.floats(1.0, 25.0)))
    if kind == "skellam":
        total = draw(st.floats(0.5, 22.0))
        shape = Shape(kind, total * draw(st.floats(-0.95, 0.95)), total)
        part = draw(st.sampled_from([math.nan, 0.0, 0.05, 1.0]))
        return shape._replace(level=part * shape.pmf()[0])
    weights = draw(st.lists(st.floats(0.2, 3.0), min_size=1, max_size=30))
    level = draw(st.sampled_from([math.nan, 0.0, 0.003]))
    return Shape(kind, draw(st.floats(-25.0, 25.0)), draw(st.floats(4.0, 18.0)), level, tuple(weights))


@st.composite
def a_middle(draw: st.DrawFn) -> tuple[int, int]:
    """Two lines with at least one whole number strictly between them."""
    low = draw(LINES)
    high = draw(st.integers(low // 25 + 1, low // 25 + 24)) * 25
    assume(naive_maths.inside(low, high))
    return low, high


@st.composite
def a_pmf(draw: st.DrawFn) -> dict[int, float]:
    weights = draw(st.lists(st.integers(0, 9), min_size=20, max_size=20))
    assume(sum(weights))
    return {x - 9: w / sum(weights) for x, w in enumerate(weights)}


class TestSettlement:
    @given(LINES, ODDS, NUMBERS)
    def test_twin(self, line: int, odds: float, number: int) -> None:
        assert settle_over(line, odds, number) == pytest.approx(naive_maths.settle_over(line, odds, number))
        assert settle_under(line, odds, number) == pytest.approx(naive_maths.settle_under(line, odds, number))

    @given(LINES.filter(lambda line: line % 50 != 0), ODDS, NUMBERS)
    def test_a_quarter_line_is_the_mean_of_its_halves(self, line: int, odds: float, number: int) -> None:
        for settle in (settle_over, settle_under):
            halves = settle([line - 25, line + 25], odds, number)
            assert settle(line, odds, number) == pytest.approx(halves.mean())

    @given(LINES, NUMBERS)
    def test_sides_mirror(self, line: int, number: int) -> None:
        assert settle_under(line, 1.9, number) == settle_over(-line, 1.9, -number)
        assert settle_over(line, 2.0, number) + settle_under(line, 2.0, number) == 2.0

    def test_edges(self) -> None:
        assert np.isnan(settle_over([260, 250], 1.9, 3)).tolist() == [True, False]
        with pytest.raises(ValueError, match="line must be integers"):
            settle_over(2.5, 1.9, 3)
        with pytest.raises(ValueError, match="number must be integers"):
            settle_under(250, 1.9, 3.0)


class TestWindow:
    @given(LINES, LINES)
    def test_numbers_inside(self, low: int, high: int) -> None:
        found = window(low, high)
        numbers = naive_maths.inside(low, high)
        assert found.size == len(numbers)
        if numbers:
            assert [int(found.first), int(found.last)] == [numbers[0], numbers[-1]]

    @given(LINES, LINES)
    def test_points_are_half_points_around_the_lines(self, low: int, high: int) -> None:
        points = window(low, high).points
        assert (points % 100 == 50).all()
        for line, (below, above) in zip((low, high), points.reshape(2, 2).tolist(), strict=True):
            assert above - below == (0 if line % 100 == 50 else 100)
            assert abs(line - (below + above) / 2) <= 25

    def test_shapes(self) -> None:
        assert window([], []).points.shape == (0, 4)
        assert window([[50], [150]], [250, 350, 450]).size.tolist() == [[2, 3, 4], [1, 2, 3]]
        with pytest.raises(ValueError, match="under_line must be integers"):
            window(250, 3.5)


class TestEvaluate:
    @given(a_middle(), ODDS, ODDS, a_pmf())
    @example((275, 325), 1.9, 2.1, {3: 1.0})  # half of each bet wins, at best
    @example((275, 425), 1.9, 2.6, {3: 0.5, 4: 0.5})
    @example((275, 525), 1.9, 2.6, {4: 1.0})  # 3 and 5 win one bet and a half, 4 both
    @example((0, 125), 1.25, 2.0, {1: 1.0})  # best is the push on 0
    @example((-125, 0), 2.0, 1.25, {-1: 1.0})
    def test_enumeration(
        self, lines: tuple[int, int], over_odds: float, under_odds: float, pmf: dict[int, float]
    ) -> None:
        chance = [naive_maths.tail(pmf, point) for point in window(*lines).points.tolist()]
        found = evaluate(*lines, over_odds, under_odds, chance)
        wanted = naive_maths.evaluate(*lines, over_odds, under_odds, pmf)
        assert [float(figure) for figure in found] == pytest.approx(wanted, abs=1e-9)

    @given(a_middle(), ODDS, ODDS)
    def test_worst_and_best(self, lines: tuple[int, int], over_odds: float, under_odds: float) -> None:
        s = 1.0 / over_odds + 1.0 / under_odds
        found = evaluate(*lines, over_odds, under_odds, [0.5] * 4)
        assert found.worst == pytest.approx(1.0 / s - 1.0)
        if lines[0] % 100 != 75 and lines[1] % 100 != 25:
            assert found.best == pytest.approx(2.0 / s - 1.0)

    def test_worked_example(self) -> None:
        # Over 2.5 and under 3.5 at 1.95 each, 3 with a chance of 20 %: S = 2/1.95, (1 + 0.2)/S - 1 = 17 %.
        found = evaluate(250, 350, 1.95, 1.95, [0.6, 0.6, 0.4, 0.4])
        assert [float(x) for x in found] == pytest.approx([0.2, 0.17, -0.025, 0.95])

    def test_break_even(self) -> None:
        # At -110 on both sides the window must come up once in 21 times.
        odds = 1.0 + 100.0 / 110.0
        found = evaluate(250, 350, odds, odds, [0.6, 0.6, 0.6 - 1 / 21, 0.6 - 1 / 21])
        assert found.ev == pytest.approx(0.0, abs=1e-12)

    @pytest.mark.parametrize(
        ("low", "high", "odds"),
        [
            (250, 250, 1.9),
            (350, 250, 1.9),
            (200, 300, 1.9),
            (200, 225, 1.9),
            (255, 350, 1.9),
            (250, 355, 1.9),
            (250, 350, 1.0),
        ],
    )
    def test_no_middle(self, low: int, high: int, odds: float) -> None:
        found = evaluate([low, 250], [high, 350], [odds, 1.9], 2.0, [0.5] * 4)
        assert np.isnan(found).tolist() == [[True, False]] * 4

    @pytest.mark.parametrize("odds", [math.nan, math.inf, -2.0])
    def test_no_price(self, odds: float) -> None:
        assert np.isnan(evaluate(250, 350, 1.9, odds, [0.5] * 4)).all()
        assert np.isnan(evaluate(250, 350, odds, 1.9, [0.5] * 4)).all()

    @pytest.mark.parametrize(
        "curve", [[0.4, 0.4, 0.6, 0.6], [0.6, 0.7, 0.5, 0.5], [0.6, 0.6, 0.4, 0.5], [math.nan, 0.6, 0.4, 0.4]]
    )
    def test_no_chance(self, curve: list[float]) -> None:
        found = evaluate(225, 375, 1.9, 1.9, curve)
        assert np.isnan([found.prob, found.ev]).all()
        assert not np.isnan([found.worst, found.best]).any()

    def test_edges(self) -> None:
        assert evaluate([], [], [], [], np.empty((0, 4))).ev.shape == (0,)
        with pytest.raises(ValueError, match="axis of 4 points"):
            evaluate(250, 350, 1.9, 1.9, [0.5, 0.4])


class TestTail:
    @given(a_shape(), st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=6))
    def test_twin(self, shape: Shape, deviations: list[float]) -> None:
        numbers = sorted(round(shape.location + z * shape.spread()) for z in deviations)
        points = [100 * n + 50 for n in numbers]
        pmf = shape.pmf()
        found = tail(shape.ours(), shape.location, points).tolist()
        assert found == pytest.approx([naive_maths.tail(pmf, point) for point in points], abs=1e-11)
        found = mass(shape.ours(), shape.location, numbers).tolist()
        assert found == pytest.approx([pmf.get(n, 0.0) for n in numbers], abs=1e-11)

    @given(a_shape())
    def test_falls_from_one_to_nothing(self, shape: Shape) -> None:
        far = int(12.0 * shape.spread() + 20.0 + 40.0 * (shape.kind == "negative_binomial"))
        numbers = np.arange(round(shape.location) - far, round(shape.location) + far)
        curve = tail(shape.ours(), shape.location, 100 * numbers + 50)
        assert (np.diff(curve) <= 1e-15).all()
        assert curve[[0, -1]].tolist() == pytest.approx([1.0, 0.0], abs=1e-9)

    def test_worked_examples(self) -> None:
        # Equal means of 1: P(0) = exp(-2) I0(2) with I0(2) = 2.2795853 (Skellam 1946).
        assert mass(Shapes.of(KINDS["skellam"], 2.0), 0.0, [0]) == pytest.approx([math.exp(-2.0) * 2.2795853023])
        # More than six tails before the third head, which is less than three heads in nine tosses.
        assert tail(Shapes.of(KINDS["negative_binomial"], 2.0), 3.0, [650]) == pytest.approx([46 / 512])
        # A favourite by 7 wins 69 % of football games: Phi(7 / 13.86) (Stern 1991).
        even = Shapes.of(KINDS["margin"], 13.86)
        assert tail(even, 7.0, [-50, 50]).mean() == pytest.approx(0.693, abs=1e-3)

    def test_a_ratio_of_one_is_poisson(self) -> None:
        points = [50, 250, 850]
        found = tail(Shapes.of(KINDS["negative_binomial"], 1.0), 2.7, points)
        assert found.tolist() == tail(Shapes.of(KINDS["poisson"]), 2.7, points).tolist()

    def test_poisson_has_no_scale(self) -> None:
        for scale in (6.1, math.nan):
            shapes = Shapes.of(KINDS["poisson"], scale)
            assert tail(shapes, 2.5, [250]) == pytest.approx([0.45619], abs=1e-5)
            assert fit(shapes, 250, 0.45619) == pytest.approx(2.5, abs=1e-4)

    def test_large_means(self) -> None:
        # exp(-60) is far below the terms that count: the sum must not stop before it has begun.
        assert tail(Shapes.of(KINDS["skellam"], 120.0), 0.0, [-50, 50]).sum() == pytest.approx(1.0)

    def test_level(self) -> None:
        open_end = Shapes.of([KINDS["skellam"], KINDS["margin"]], [6.0, 12.0], 0.0)
        assert mass(open_end, [0.4, 1.5], [0]).tolist() == [[0.0], [0.0]]
        plain = mass(Shapes.of(KINDS["skellam"], 6.0), 0.4, [-2, -1, 0, 1, 2])
        moved = mass(Shapes.of(KINDS["skellam"], 6.0, 0.0), 0.4, [-2, -1, 0, 1, 2])
        assert moved[[0, 4]].tolist() == pytest.approx(plain[[0, 4]].tolist())
        assert moved[1] + moved[3] == pytest.approx(plain[1:4].sum())

    def test_one_row_for_each(self) -> None:
        tables = [[1.0, 1.0, 1.0, 1.0], [1.0, 0.5, 0.5, 3.0]]
        rows = Shapes.of([KINDS["poisson"], KINDS["margin"]], [1.0, 12.0], 0.0, [0, 1], tables)
        shape = Shape("margin", -3.0, 12.0, 0.0, tuple(tables[1]))
        found = tail(rows, [2.5, -3.0], [[250, 250], [-150, -350]])
        assert found[0].tolist() == pytest.approx([0.45619] * 2, abs=1e-5)
        assert found[1].tolist() == pytest.approx([naive_maths.tail(shape.pmf(), x) for x in (-150, -350)])
        assert fit(rows, 250, found[:, 0])[1] != pytest.approx(-3.0)
        assert fit(rows, [250, -150], found[:, 0]).tolist() == pytest.approx([2.5, -3.0])

    @pytest.mark.parametrize(
        ("shape", "point"),
        [
            (Shape("poisson", math.nan), 250),
            (Shape("poisson", -0.1), 250),
            (Shape("poisson", 701.0), 250),
            (Shape("poisson", 2.5), 200),
            (Shape("negative_binomial", 2.5, 0.9), 250),
            (Shape("normal", 45.0, 0.0), 4450),
            (Shape("normal", 45.0, math.nan), 4450),
            (Shape("margin", 400.0, 12.0), 50),
            (Shape("skellam", 6.1, 6.0), 50),
            (Shape("skellam", 0.0, 6.0, 0.9), 150),  # a level that +1 and -1 cannot pay for
        ],
    )
    def test_no_answer(self, shape: Shape, point: int) -> None:
        found = tail(shape.ours(), shape.location, [point, point])
        assert np.isnan(found).all()

    def test_edges(self) -> None:
        assert tail(Shapes.of(KINDS["poisson"]), [], np.empty((0, 4), dtype=np.int64)).shape == (0, 4)
        with pytest.raises(ValueError, match="points must be integers"):
            tail(Shapes.of(KINDS["poisson"]), 2.5, [2.5])


class TestFit:
    @given(a_shape(), st.floats(-2.0, 2.0))
    def test_reproduces_the_anchor(self, shape: Shape, deviation: float) -> None:
        line = 25 * round(4.0 * (shape.location + deviation * shape.spread()))
        if shape.kind in ("poisson", "negative_binomial"):
            line = max(line, 25)
        prob = naive_maths.two_way(shape.pmf(), line)
        assume(1e-4 < prob < 1.0 - 1e-4)
        found = float(fit(shape.ours(), line, prob))
        again = naive_maths.two_way(shape._replace(location=found).pmf(), line)
        assert again == pytest.approx(prob, abs=1e-9)

    @pytest.mark.parametrize("line", [250, 300, 325, 375])
    @pytest.mark.parametrize(
        "shape",
        [
            Shape("poisson", 0.0),
            Shape("negative_binomial", 0.0, 1.4),
            Shape("normal", 0.0, 9.0),
            Shape("skellam", 0.0, 6.1, 0.0),
            Shape("margin", 0.0, 12.0, 0.0, (1.0, 0.9, 0.9, 1.5)),
        ],
    )
    def test_twin(self, shape: Shape, line: int) -> None:
        slow = naive_maths.fit(shape.kind, shape.scale, shape.level, shape.weights, line, 0.4)
        assert fit(shape.ours(), line, 0.4) == pytest.approx(slow, abs=1e-6)

    @pytest.mark.parametrize("prob", [0.02, 0.3, 0.6])
    def test_poisson_in_closed_form(self, prob: float) -> None:
        """Over 0.5 is every count but 0, whatever small mean that needs."""
        assert fit(Shapes.of(KINDS["poisson"]), 50, prob) == pytest.approx(-math.log(1.0 - prob), abs=1e-8)

    @pytest.mark.parametrize("line", [-125, -100, -75, 0, 75, 100, 125])
    @pytest.mark.parametrize("level", [0.0, 0.05])
    def test_lines_beside_a_level_that_moved(self, line: int, level: float) -> None:
        shape = Shape("skellam", 0.7, 5.0, level)
        assert fit(shape.ours(), line, naive_maths.two_way(shape.pmf(), line)) == pytest.approx(0.7, abs=1e-8)

    @pytest.mark.parametrize("line", [-500, -400, -300, 300, 400, 500])
    def test_lines_at_the_end_of_the_weights(self, line: int) -> None:
        shape = Shape("margin", 1.3, 5.0, 0.003, (1.0, 0.6, 0.7, 2.5))
        assert fit(shape.ours(), line, naive_maths.two_way(shape.pmf(), line)) == pytest.approx(1.3, abs=1e-8)

    def test_normal_in_closed_form(self) -> None:
        assert fit(Shapes.of(KINDS["normal"], 12.0), 4450, 0.5) == pytest.approx(44.5, abs=1e-9)
        # P(Z < 1.2815516) = 0.9
        assert fit(Shapes.of(KINDS["normal"], 12.0), 4450, 0.9) == pytest.approx(44.5 + 12.0 * 1.2815515655, abs=1e-7)

    @given(st.sampled_from(sorted(KINDS)), st.integers(1, 12), st.floats(0.02, 0.9), st.floats(0.001, 0.02))
    def test_more_likely_is_further(self, kind: str, quarters: int, prob: float, more: float) -> None:
        shapes = Shapes.of(KINDS[kind], 12.0)
        low, high = fit(shapes, 25 * quarters, [prob, prob + more])
        assert low < high

    @pytest.mark.parametrize("prob", [0.0, 1.0, -0.1, 1.1, math.nan])
    def test_no_probability(self, prob: float) -> None:
        every = Shapes.of(sorted(KINDS.values()), 12.0)
        assert np.isnan(fit(every, 250, prob)).all()

    def test_no_answer(self) -> None:
        every = Shapes.of(sorted(KINDS.values()), 12.0)
        assert np.isnan(fit(every, 260, 0.5)).all()
        assert np.isnan(fit(Shapes.of(KINDS["skellam"], 0.4), 450, 0.9)).all()  # out of reach
        assert np.isnan(fit(Shapes.of(KINDS["poisson"]), -50, 0.5)).all()  # always over
        assert np.isnan(fit(Shapes.of(KINDS["negative_binomial"], 0.8), 250, 0.5)).all()
        assert np.isnan(fit(Shapes.of(KINDS["normal"], [0.0, -1.0, math.nan]), 250, 0.5)).all()

    def test_flat_and_broadcast(self) -> None:
        one = Shapes.of(KINDS["poisson"])
        found = fit(one, [[250], [350]], [0.4, 0.5, 0.6])
        assert found.shape == (2, 3)
        assert found[1, 2] == fit(one, 350, 0.6)
        assert fit(one, [], []).shape == (0,)
        with pytest.raises(ValueError, match="line must be integers"):
            fit(one, 2.5, 0.5)


class TestShapes:
    def test_refusals(self) -> None:
        with pytest.raises(ValueError, match="kind must be one of"):
            Shapes.of(9)
        with pytest.raises(ValueError, match="table must be from 0 to 0, got"):
            Shapes.of(KINDS["margin"], 12.0, 0.0, 1)
        for weights in (np.ones(1), np.ones((1, 0)), np.array([[1.0, -1.0]]), np.array([[math.nan]])):
            with pytest.raises(ValueError, match="weights must be"):
                Shapes.of(KINDS["margin"], 12.0, 0.0, 0, weights)


@pytest.mark.parametrize("exponent", range(1, 13))
def test_the_normal_quantile_is_as_exact_as_it_says(exponent: int) -> None:
    for digit in range(1, 10):
        p = digit * 10.0**-exponent
        assert _deviate(p) == pytest.approx(NormalDist().inv_cdf(p), rel=0.0, abs=4.6e-4)
        assert _deviate(1.0 - p) == pytest.approx(-_deviate(p), abs=1e-3)


class TestQuality:
    @given(st.floats(-0.5, 0.5), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 900.0))
    def test_quality_twin(self, ev: float, prob: float, source: float, age: float) -> None:
        assert quality(ev, prob, source, age) == pytest.approx(naive_maths.quality(ev, prob, source, age), abs=1e-9)

    def test_quality_bounds(self) -> None:
        assert quality([0.05, 0.9, -0.2], [0.25, 0.9, 0.0], 1.0, 0.0).tolist() == [100.0, 100.0, 0.0]
        assert np.isnan(quality(math.nan, 0.1, 1.0, 0.0))
