import importlib
import math
from statistics import NormalDist
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from naive import devig as naive_devig
from support.strategies import Market, books, markets, not_prices, tables

from oddsengine.maths.devig import DEVIG_ALIASES, DEVIG_METHODS, Method, blend_weights, devig, devig_groups, method_name

Floats = npt.NDArray[np.float64]

EXACT = 1e-12  # how far an answer may be from the bisected one
LINEAR = ("additive", "goto")  # have no answer for long shots at a wide margin
FIVE = ("multiplicative", "additive", "power", "shin", "odds_ratio")
EVERY = pytest.mark.parametrize("method", DEVIG_METHODS)
SUM_TO_ONE = pytest.mark.parametrize("method", [name for name in DEVIG_METHODS if name != "worst_case"])

# J. Lindstrom, "implied" for R, its README, https://github.com/opisthokonta/implied: three matches. His
# "wpo" equals additive, his "or" is odds_ratio; his root finder stops near 1e-6, the others are exact.
MATCHES = [[4.20, 3.70, 1.95], [2.45, 3.70, 2.90], [2.05, 3.20, 3.80]]
IMPLIED = {
    "multiplicative": [
        [0.2331556, 0.2646631, 0.5021813],
        [0.3988848, 0.2641264, 0.3369888],
        [0.4586948, 0.2938514, 0.2474538],
    ],
    "additive": [
        [0.2310332, 0.2632083, 0.5057585],
        [0.4004096, 0.2625166, 0.3370739],
        [0.4666506, 0.2913457, 0.2420036],
    ],
    "power": [
        [0.2311414, 0.2630644, 0.5057942],
        [0.4003156, 0.2627189, 0.3369655],
        [0.4667139, 0.2908985, 0.2423876],
    ],
    "shin": [
        [0.2315716, 0.2635742, 0.5048542],
        [0.4000221, 0.2629271, 0.3370508],
        [0.4645882, 0.2919788, 0.2434331],
    ],
    "odds_ratio": [
        [0.2320048, 0.2636415, 0.5043537],
        [0.3996912, 0.2633869, 0.3369219],
        [0.4634406, 0.2919032, 0.2446562],
    ],
}


@pytest.mark.parametrize("method", list(IMPLIED))
def test_three_matches_as_published(method: str) -> None:
    np.testing.assert_allclose(devig(MATCHES, method), IMPLIED[method], rtol=0, atol=5e-6)


def test_shin_as_published() -> None:
    """The example of https://github.com/mberk/shin, all digits; its z is given to 1e-12."""
    published = [0.37299406033208965, 0.4047794109200184, 0.2222265287474275]
    np.testing.assert_allclose(devig([2.6, 2.4, 4.3], "shin"), published, rtol=0, atol=1e-12)


def test_power_as_published() -> None:
    """The example of https://penaltyblog.readthedocs.io/en/latest/implied/implied.html and its exponent."""
    odds = np.array([2.7, 2.3, 4.4])
    fair = devig(odds, "power")
    np.testing.assert_allclose(fair, [0.3591711, 0.42373075, 0.21709815], rtol=0, atol=6e-9)
    np.testing.assert_allclose(-np.log(fair) / np.log(odds), 1.0309132393, rtol=1e-9)


def assert_twin(odds: Market, fair: Floats, method: str) -> None:
    expected = naive_devig.devig(odds, method)
    np.testing.assert_allclose(fair, expected, rtol=0, atol=EXACT, err_msg=f"{method} of {odds}")


def near_the_edge(odds: Market) -> bool:
    """Whether additive or goto has a probability so close to 0 that rounding decides if there is an answer."""
    return any(abs(p) < EXACT for p in (*naive_devig.additive(odds), *naive_devig.goto(odds)))


@EVERY
@given(st.data())
def test_twin_on_books(method: str, data: st.DataObject) -> None:
    odds = data.draw(books())
    assume(not near_the_edge(odds))
    assert_twin(odds, devig(odds, method), method)


@EVERY
@given(odds=markets())
@example(odds=[1.001, 1.001])
@example(odds=[1000.0, 1000.0])
@example(odds=[1.0001, 1.5, 2.0])
@example(odds=[1.5, 2.0, 1.0001, 1.0001])
@example(odds=[1.01, 1.01, 1.01, 47.49])
@example(odds=[1.01, 1.01, 1.01, 1000.0])
@example(odds=[500.0, 600.0, 700.0])
@example(odds=[math.nextafter(1.0, 2.0)] * 3)
@example(odds=[1e6, 1e9, 1e12])
@example(odds=[1.0 + 1e-9, 1.0 + 1e-9, 1e6])
def test_twin_on_anything(method: str, odds: Market) -> None:
    assume(not near_the_edge(odds))
    assert_twin(odds, devig(odds, method), method)


@EVERY
def test_neighbours_do_not_matter(method: str) -> None:
    """Solved beside markets that take more rounds, an answer stays the same to the last bit."""
    rows = [[4.0] * 4, [1.01] * 4, [74.35, 114.74, 2.001953125, 865.0], [1.01, 1.01, 1.01, 47.49]]
    rows += [[2.0 + i / 7, 3.0, 5.0 + i, 9.0] for i in range(100)]
    np.testing.assert_array_equal(devig(rows, method), [devig(odds, method) for odds in rows])


@EVERY
@given(st.data())
def test_twin_on_many_markets(method: str, data: st.DataObject) -> None:
    """More markets than are solved side by side, hard ones among easy ones."""
    n = data.draw(st.integers(2, 5))
    few = data.draw(st.lists(st.one_of(books(st.just(n)), markets(st.just(n))), min_size=1, max_size=6))
    assume(not any(near_the_edge(odds) for odds in few))
    count = data.draw(st.sampled_from([1, 7, 127, 128, 129]))
    rows = [few[i % len(few)] for i in range(count)]
    fair = devig(rows, method)
    for odds, answer in zip(rows[: 2 * len(few)], fair, strict=False):
        assert_twin(odds, answer, method)
    np.testing.assert_array_equal(fair, [devig(odds, method) for odds in rows])


@SUM_TO_ONE
@given(odds=books())
def test_sums_to_one(method: str, odds: Market) -> None:
    total = devig(odds, method).sum()
    assert abs(total - 1.0) <= 1e-14 * len(odds) or (method in LINEAR and math.isnan(total))


@given(markets())
def test_worst_case_is_the_least(odds: Market) -> None:
    others = np.array([devig(odds, method) for method in FIVE])
    worst = devig(odds, "worst_case")
    np.testing.assert_array_equal(worst, others.min(axis=0))
    assert not worst.sum() > 1.0 + 1e-14


@EVERY
@given(odds=markets())
def test_order_is_kept(method: str, odds: Market) -> None:
    fair = devig(odds, method)
    assume(not np.isnan(fair).any())
    by_price = fair[np.argsort(odds)]
    assert (np.diff(by_price) <= 1e-15).all()


@EVERY
@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=12))
def test_a_fair_market_comes_back(method: str, weights: list[float]) -> None:
    fair = np.array(weights) / sum(weights)
    np.testing.assert_allclose(devig(1.0 / fair, method), fair, rtol=0, atol=1e-13)


@EVERY
@pytest.mark.parametrize("n", [2, 3, 10, 40])
@pytest.mark.parametrize("margin", [-0.1, 0.0, 0.05, 0.3])
def test_equal_prices_are_equally_likely(method: str, n: int, margin: float) -> None:
    np.testing.assert_allclose(devig([n / (1.0 + margin)] * n, method), 1.0 / n, rtol=1e-14)


@given(markets(st.just(2)))
def test_two_outcomes_coincide(odds: Market) -> None:
    np.testing.assert_array_equal(devig(odds, "shin"), devig(odds, "additive"))
    np.testing.assert_allclose(naive_devig.shin(odds), naive_devig.additive(odds), rtol=0, atol=EXACT)


@given(markets())
def test_logarithmic_is_odds_ratio(odds: Market) -> None:
    np.testing.assert_array_equal(devig(odds, "logarithmic"), devig(odds, "odds_ratio"))
    np.testing.assert_allclose(naive_devig.logarithmic(odds), naive_devig.odds_ratio(odds), rtol=0, atol=EXACT)


@given(markets(st.just(2)))
def test_probit_of_two_outcomes_is_half_the_difference_of_the_scores(odds: Market) -> None:
    a, b = (NormalDist().inv_cdf(1.0 / d) for d in odds)
    np.testing.assert_allclose(devig(odds, "probit")[0], NormalDist().cdf(0.5 * (a - b)), rtol=0, atol=EXACT)


@given(books())
def test_probit_moves_all_scores_by_one_shift(odds: Market) -> None:
    fair = devig(odds, "probit")
    shift = [NormalDist().inv_cdf(1.0 / d) - NormalDist().inv_cdf(p) for d, p in zip(odds, fair.tolist(), strict=True)]
    np.testing.assert_allclose(shift, shift[0], rtol=0, atol=1e-9)


@given(books())
def test_goto_takes_equally_many_standard_errors(odds: Market) -> None:
    q, fair = 1.0 / np.array(odds), devig(odds, "goto")
    assume(not np.isnan(fair).any())
    taken = (q - fair) / np.sqrt((q - q * q) / q)
    np.testing.assert_allclose(taken, taken[0], rtol=0, atol=1e-11)


def test_goto_as_published() -> None:
    """What goto_conversion 4.0.3 answers."""
    published = [0.3597574083515635, 0.4247271522431269, 0.2155154394053096]
    np.testing.assert_allclose(devig([2.7, 2.3, 4.4], "goto"), published, rtol=0, atol=1e-12)


def test_probit_as_published() -> None:
    """The example of https://mimir.rifterlabs.com/concepts/devigging.html, +150 and -180, to its digits."""
    assert devig([2.5, 1.0 + 100.0 / 180.0], "probit").round(3).tolist() == [0.378, 0.622]


# ---- other names, and blends ----


@pytest.mark.parametrize(("alias", "method"), DEVIG_ALIASES.items())
def test_an_alias_is_its_method(alias: str, method: str) -> None:
    assert alias not in DEVIG_METHODS
    assert method_name(alias) == method
    np.testing.assert_array_equal(devig(MATCHES, alias), devig(MATCHES, method))


@given(markets())
def test_margin_weights_proportional_to_the_odds_are_additive(odds: Market) -> None:
    """Buchdahl's fair price n d / (n - margin d)."""
    n, margin = len(odds), sum(1.0 / d for d in odds) - 1.0
    assume(not near_the_edge(odds))
    fair = devig(odds, "differential_margin_weighting")
    assume(not np.isnan(fair).any())
    np.testing.assert_allclose(fair, [(n - margin * d) / (n * d) for d in odds], rtol=0, atol=EXACT)


BLENDABLE = [name for name in DEVIG_METHODS if name != "worst_case"]
WEIGHTS = st.dictionaries(st.sampled_from(BLENDABLE), st.floats(0.01, 100.0), min_size=1, max_size=4)


@given(odds=markets(), weights=WEIGHTS)
def test_a_blend_is_the_weighted_mean(odds: Market, weights: dict[str, float]) -> None:
    assume(not near_the_edge(odds))
    fair = devig(odds, weights)
    np.testing.assert_allclose(fair, naive_devig.blend(odds, weights), rtol=0, atol=EXACT)
    assert np.isnan(fair).any() or fair.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.isnan(fair).all() == np.isnan(fair).any()
    np.testing.assert_array_equal(devig(odds, method_name(weights)), fair)  # its name is as good


@given(odds=st.lists(books(), min_size=1, max_size=6), weights=WEIGHTS)
def test_a_blend_of_groups_is_that_of_their_markets(odds: list[Market], weights: dict[str, float]) -> None:
    offsets = np.cumsum([0, *(len(each) for each in odds)])
    found = devig_groups([d for each in odds for d in each], offsets, weights)
    np.testing.assert_array_equal(found, np.concatenate([devig(each, weights) for each in odds]))


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("shin", "shin"),
        ({"shin": 2}, "shin"),
        ({"wpo": 1, "additive": 3}, "additive"),
        ({"shin": 1, "power": 0.5}, "power=0.5,shin=1.0"),
        ("shin=1, power=0.5", "power=0.5,shin=1.0"),
        ("goto_conversion=1,wpo=1", "additive=1.0,goto=1.0"),
    ],
)
def test_a_method_has_one_name(method: Method, name: str) -> None:
    assert method_name(method) == name
    assert method_name(name) == name
    assert list(blend_weights(name)) == [part.partition("=")[0] for part in name.split(",")]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({}, r"method must be one of multiplicative.*, got \{\}"),
        (7, r"method must be one of .*, got 7"),
        (["shin"], r"method must be one of .*, got \['shin'\]"),
        ({"shin": 0.0, "power": 1.0}, "finite numbers above 0, got 0.0 for shin"),
        ({"shin": -1.0}, "finite numbers above 0, got -1.0 for shin"),
        ({"shin": math.inf}, "finite numbers above 0, got inf for shin"),
        ({"shin": math.nan}, "finite numbers above 0, got nan for shin"),
        ({"shin": "1"}, "finite numbers above 0, got '1' for shin"),
        ({"guess": 1.0}, r"a blend must be of multiplicative, .*, got 'guess'"),
        ({"worst_case": 1.0, "shin": 1.0}, r"a blend must be of .*, got 'worst_case'"),
        ("shin=x", "written as in shin=0.5,power=0.5, got 'shin=x'"),
        ("shin=1,power", "written as in shin=0.5,power=0.5, got 'shin=1,power'"),
    ],
)
def test_what_is_no_method(method: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        devig([2.0, 2.0], method)
    with pytest.raises(ValueError, match=message):
        devig_groups([2.0, 2.0], [0, 2], method)


# ---- other packages, of the extra `bench` ----

COMPARED = [[2.7, 2.3, 4.4], [1.87, 2.05], [1.1, 8.0], [1.5, 4.2, 7.5], [4.0, 4.5, 5.0, 5.5, 6.0], *MATCHES]


@pytest.mark.parametrize("odds", COMPARED)
@pytest.mark.parametrize(
    "method",
    ["multiplicative", "additive", "power", "shin", "differential_margin_weighting", "odds_ratio", "logarithmic"],
)
def test_penaltyblog(method: str, odds: Market) -> None:
    implied = pytest.importorskip("penaltyblog.implied")
    np.testing.assert_allclose(
        devig(odds, method), implied.calculate_implied(odds, method=method).probabilities, rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("odds", COMPARED)
def test_goto_conversion(odds: Market) -> None:
    package = pytest.importorskip("goto_conversion")
    np.testing.assert_allclose(devig(odds, "goto"), package.goto_conversion(np.array(odds)), rtol=0, atol=EXACT)


@pytest.mark.parametrize("odds", COMPARED)
def test_shin_package(odds: Market) -> None:
    package = pytest.importorskip("shin")
    np.testing.assert_allclose(devig(odds, "shin"), package.calculate_implied_probabilities(odds), rtol=0, atol=1e-10)


@EVERY
def test_sums_below_one(method: str) -> None:
    """Public packages answer nan, an exception or a silent 0.75 here."""
    for odds in ([2.2, 2.2], [2.1, 2.05], [3.3, 3.4, 3.5], [11.0] * 10, [1.5, 40.0]):
        assert sum(1.0 / d for d in odds) < 1.0
        fair = devig(odds, method)
        assert_twin(odds, fair, method)
        assert not np.isnan(fair).any()


@EVERY
def test_long_shots_keep_their_order(method: str) -> None:
    odds = [1.05, 12.0, 1001.0, 1500.0, 4001.0, 4001.5]
    fair = devig(odds, method)
    if method in (*LINEAR, "worst_case"):
        assert np.isnan(fair).all()  # a probability would be negative
        return
    assert ((fair > 0.0) & (fair < 1.0)).all()
    assert (np.diff(fair) < 0.0).all()
    np.testing.assert_allclose(fair, naive_devig.devig(odds, method), rtol=1e-10)


@EVERY
@pytest.mark.parametrize("n", [30, 40, 200])
def test_many_outcomes(method: str, n: int) -> None:
    weights = np.linspace(1.0, 3.0, n)
    odds = (weights.sum() / weights / 1.25).tolist()
    fair = devig(odds, method)
    assert_twin(odds, fair, method)
    assert not np.isnan(fair).any()


@EVERY
@given(data=st.data())
def test_a_price_that_is_none_costs_its_market_only(method: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 4))
    rows = data.draw(st.lists(books(st.just(n)), min_size=2, max_size=5))
    clean = devig(rows, method)
    row, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, n - 1))
    rows[row][column] = data.draw(not_prices())
    fair = devig(rows, method)
    assert np.isnan(fair[row]).all()
    np.testing.assert_array_equal(np.delete(fair, row, axis=0), np.delete(clean, row, axis=0))


@EVERY
@pytest.mark.parametrize(
    "odds", [[1.0, 3.0], [1.0, 1.0], [1.0, 3.0, 3.0], [2.0, np.nan], [2.0, np.inf, 3.0], [0.0, 2.0, 2.0]]
)
def test_not_a_market(method: str, odds: Market) -> None:
    assert np.isnan(devig(odds, method)).all()


@EVERY
def test_one_outcome_is_no_market(method: str) -> None:
    assert np.isnan(devig([1.5], method)).all()
    assert np.isnan(devig([[1.5], [3.0]], method)).all()
    np.testing.assert_array_equal(np.isnan(devig_groups([2.0, 1.9, 5.0], [0, 2, 3], method)), [False, False, True])


@pytest.mark.parametrize(
    ("method", "odds"),
    [
        ("multiplicative", [1.001, 1e18]),
        ("power", [1.0001, 1.0001, 1e300]),
        ("multiplicative", [1e18, 1.001]),
        ("odds_ratio", [1.001, 1e40]),
        ("odds_ratio", [1e40, 1.001]),
        ("odds_ratio", [1.001, 1e40, 1e41]),
        ("worst_case", [1.001, 1e40]),
        ("probit", [1.001, 1e80]),
        ("probit", [1e80, 1.001]),
    ],
)
def test_answers_beyond_doubles_are_none(method: str, odds: Market) -> None:
    """A probability that rounds to 0 or 1 is not strictly between them."""
    assert np.isnan(devig(odds, method)).all()


@EVERY
def test_extreme_prices_are_answered_or_none(method: str) -> None:
    edges = [np.nextafter(1.0, 2.0), 1.0 + 1e-9, 1.5, 1e6, 1e15, 1e300, 1.7e308]
    rows = [[a, b, c] for a in edges for b in edges for c in edges]
    for fair in devig(rows, method):
        if not np.isnan(fair).all():
            assert ((fair > 0.0) & (fair < 1.0)).all()
            assert fair.sum() <= 1.0 + 1e-12
            assert method == "worst_case" or fair.sum() >= 1.0 - 1e-12


@EVERY
def test_the_largest_finite_price_is_a_price(method: str) -> None:
    largest = float(np.finfo(np.float64).max)
    pairs = [[largest, 2.0], [2.0, largest]] if method in ("additive", "shin", "power") else []
    for odds in (*pairs, [largest, 2.2, 2.2], [2.0, 4.0, largest]):
        fair = devig(odds, method)
        assert_twin(odds, fair, method)
        assert not np.isnan(fair).any()


def test_additive_that_leaves_the_unit_interval_is_none() -> None:
    assert np.isnan(devig([1.1, 3.0, 100.0], "additive")).all()


@EVERY
@given(rows=tables(st.one_of(books(), markets(), st.lists(st.just(3.0), max_size=1))))
def test_groups_are_their_markets(method: str, rows: list[Market]) -> None:
    offsets = np.cumsum([0, *(len(odds) for odds in rows)])
    flat = [d for odds in rows for d in odds]
    expected = [p for odds in rows for p in (devig(odds, method) if odds else [])]
    np.testing.assert_array_equal(devig_groups(flat, offsets, method), np.array(expected))


@EVERY
@pytest.mark.parametrize("n", [2, 3, 5])
def test_groups_of_one_size(method: str, n: int) -> None:
    rows = np.random.default_rng(n).uniform(0.8 * n, 1.2 * n, (200, n))
    fair = devig_groups(rows.ravel(), np.arange(0, rows.size + 1, n), method)
    np.testing.assert_array_equal(fair.reshape(rows.shape), devig(rows, method))


@EVERY
def test_nothing_in_nothing_out(method: str) -> None:
    assert devig([], method).shape == (0,)
    assert devig(np.empty((0, 3)), method).shape == (0, 3)
    assert devig(np.empty((3, 0)), method).shape == (3, 0)
    assert devig_groups([], [0], method).shape == (0,)
    assert devig_groups([], [0, 0, 0], method).shape == (0,)


def test_any_layout_in_memory() -> None:
    odds = np.array(MATCHES)
    expected = devig(odds)
    frozen = odds.copy()
    frozen.flags.writeable = False
    strided = np.repeat(odds, 2, axis=1)[:, ::2]
    for other in (np.asfortranarray(odds), frozen, strided, odds.tolist(), odds[::-1][::-1]):
        np.testing.assert_array_equal(devig(other), expected)
    np.testing.assert_array_equal(frozen, MATCHES)
    assert devig(np.array([2, 3, 4])).dtype == np.float64


BOOK_SUMS = ((0.2, 0.6), (0.9, 1.0), (1.0, 1.1), (1.1, 1.3), (2.0, 9.0))


@pytest.mark.parametrize(("method", "still_open"), [
    ("power", [[127, 0, 0, 0], [2, 0, 0, 0], [5, 0, 0, 0], [53, 0, 0, 0], [128, 119, 101, 100]]),
    ("shin", [[128, 64, 0, 0], [115, 14, 0, 0], [115, 14, 0, 0], [128, 51, 0, 0], [106, 83, 0, 0]]),
    ("odds_ratio", [[128, 127, 2, 0], [126, 3, 0, 0], [128, 6, 0, 0], [128, 78, 10, 0], [128, 128, 127, 101]]),
])  # fmt: skip
def test_few_markets_need_many_steps(method: str, still_open: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 128 markets, how many are left to bisection after 1 to 4 steps: it finds the same, ten times more slowly.

    One list for each range of the sum of a book's probabilities, `BOOK_SUMS`.
    """
    module = importlib.import_module("oddsengine.maths.margin_solvers")
    solver = getattr(module, method)
    bisected: list[int] = []
    monkeypatch.setattr(module, "_bisect", lambda method, cell, n, i: bisected.append(i))
    rng = np.random.default_rng(1)
    for (low, high), most in zip(BOOK_SUMS, still_open, strict=True):
        prob = np.clip(rng.dirichlet(np.ones(3), 128), 0.01, 0.98) * rng.uniform(low, high, (128, 1))
        odds = np.maximum(1.0 / prob, 1.01)
        counts = []
        for steps in range(1, 5):
            bisected.clear()
            monkeypatch.setattr(module, "_ROUNDS", steps)
            with np.errstate(all="ignore"):
                getattr(solver, "_function", solver)(odds.ravel(), 3, np.empty(0, np.int64), np.empty(odds.size))
            counts.append(len(bisected))
        assert all(a <= b for a, b in zip(counts, most, strict=True)), (low, counts)


def test_one_machine_code_per_kernel() -> None:
    """A second signature would compile at run time, inside someone's request."""
    module = importlib.import_module("oddsengine.maths.margin_solvers")
    frozen = np.array(MATCHES)
    frozen.flags.writeable = False
    devig(MATCHES)
    devig(frozen)
    devig(np.asfortranarray(frozen))
    devig(np.array([[2, 3, 4]]))
    devig_groups(frozen.ravel(), [0, 3, 9])
    devig_groups(frozen.ravel(), np.array([0, 3, 6, 9], dtype=np.int32))
    assert len(getattr(module.power.dispatcher(), "signatures", ["interpreted"])) == 1


def test_unknown_method() -> None:
    known = (
        r"multiplicative, additive, power, shin, odds_ratio, logarithmic, goto, probit, worst_case "
        r"\(or an alias: .*wpo.*\), or weights .*, got 'guess'"
    )
    with pytest.raises(ValueError, match=known):
        devig([2.0, 2.0], "guess")
    with pytest.raises(ValueError, match=known):
        devig_groups([2.0, 2.0], [0, 2], "guess")


@pytest.mark.parametrize("odds", [2.0, [[[2.0, 2.0]]]])
def test_wrong_rank(odds: npt.ArrayLike) -> None:
    with pytest.raises(ValueError, match="1-D"):
        devig(odds)


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3], [[0, 3]], 0])
def test_offsets_that_do_not_cover_the_odds(offsets: npt.ArrayLike) -> None:
    with pytest.raises(ValueError, match="offsets"):
        devig_groups([2.0, 3.0, 4.0], offsets)


def test_a_kernel_called_with_constants_is_compiled_once() -> None:
    devig(np.array([2.0, 3.0, 9.0]), "power")
    bisect: Any = importlib.import_module("oddsengine.maths.margin_solvers")._bisect.dispatcher()
    number, cells = numba.types.int64, numba.types.Array(numba.types.float64, 3, "C")
    for constant in range(3):
        bisect.get_call_template([numba.types.literal(constant), cells, number, number], {})  # type: ignore[no-untyped-call]
    assert len(bisect.signatures) == 1


def test_offsets_are_whole_numbers() -> None:
    assert devig_groups([2.0, 2.0], [0.0, 2.0]).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"offsets must be whole numbers, got \[0\.5, 2\.0\]"):
        devig_groups([2.0, 2.0], [0.5, 2])
