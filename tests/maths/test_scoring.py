"""Backtests: plain loops beside the columns, answers by hand, and a made-up league whose chances are known."""

import csv
import io
import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.feeds import football_data
from oddsengine.feeds.football_data import SeasonFile
from oddsengine.history.clv import clv, means
from oddsengine.maths import scoring
from oddsengine.maths.devig import devig
from oddsengine.maths.kelly import kelly_exclusive
from oddsengine.maths.scoring import VOID, Return
from oddsengine.maths.value import edge
from oddsengine.simulate.football_seasons import TEAMS, Season, seasons

Floats = npt.NDArray[np.float64]
Table = list[list[float]]
NAN = float("nan")
SIDES = ["home", "draw", "away"]
KEYS = ["event_id", "market_type", "selection_type", "line", "closing"]

# ---- plain loops ----


def naive_log_loss(probs: Table, outcome: list[int]) -> list[float]:
    return [-math.log(p[won]) if p[won] > 0.0 else math.inf for p, won in zip(probs, outcome, strict=True)]


def naive_brier(probs: Table, outcome: list[int]) -> list[float]:
    return [
        sum((p - (1.0 if at == won else 0.0)) ** 2 for at, p in enumerate(row))
        for row, won in zip(probs, outcome, strict=True)
    ]


def naive_returns(stakes: Table, gains: Table) -> tuple[int, int, int, float, float, float, float]:
    bets = unknown = 0
    sums: list[tuple[float, float]] = []
    for row, paid in zip(stakes, gains, strict=True):
        staked = profit = 0.0
        any_bet = False
        for s, g in zip(row, paid, strict=True):
            if s > 0.0 and math.isnan(g):
                unknown += 1
            elif s > 0.0:
                bets, any_bet = bets + 1, True
                staked, profit = staked + s, profit + s * g
        if any_bet:
            sums.append((staked, profit))
    total, won = sum(s for s, _ in sums), sum(p for _, p in sums)
    many = len(sums)
    rate = won / total if many else NAN
    squares = sum((p - rate * s) ** 2 for s, p in sums)
    error = math.sqrt(many / (many - 1) * squares) / total if many > 1 else NAN
    return bets, many, unknown, total, won, rate, error


def naive_paths(stakes: Table, gains: Table, moment: list[int]) -> tuple[list[float], list[float]]:
    """Flat and compounding, moment by moment."""
    flat, grown = [1.0], [1.0]
    for now in range(max(moment, default=-1) + 1):
        rows = [at for at, when in enumerate(moment) if when == now]
        pairs = [(s, g) for at in rows for s, g in zip(stakes[at], gains[at], strict=True)]
        profit = sum(s * g for s, g in pairs if not math.isnan(g))
        asked = sum(s for s, _ in pairs)
        flat.append(flat[-1] + profit)
        cut = 1.0 / asked if asked > 1.0 else 1.0
        grown.append(grown[-1] * max(0.0, 1.0 + cut * profit))
    return flat, grown


def naive_drawdown(path: list[float]) -> list[float]:
    return [1.0 - x / max(path[: at + 1]) for at, x in enumerate(path)]


def naive_calibration(probs: list[float], right: list[bool], bins: int) -> list[tuple[float, int, float, float, float]]:
    """Mean, count, share, and Wilson's interval as the two roots of (f - p)^2 = z^2 p (1 - p) / n."""
    rows = sorted(zip(probs, range(len(probs)), right, strict=True))
    whole, more = divmod(len(rows), bins)
    out, first = [], 0
    for at in range(bins):
        size = whole + (at < more)
        part = rows[first : first + size]
        first += size
        if not part:
            continue
        n, z = len(part), 1.959963984540054
        f = sum(w for *_, w in part) / n
        a, b, c = 1 + z * z / n, -(2 * f + z * z / n), f * f
        root = math.sqrt(max(0.0, b * b - 4 * a * c))
        out.append((sum(p for p, *_ in part) / n, n, f, (-b - root) / (2 * a), (-b + root) / (2 * a)))
    return out


@st.composite
def forecasts(draw: st.DrawFn) -> tuple[Table, list[int]]:
    outcomes, matches = draw(st.integers(2, 4)), draw(st.integers(0, 12))
    weights = st.lists(st.floats(0.0, 1.0), min_size=outcomes, max_size=outcomes).filter(lambda w: sum(w) > 0.01)
    probs = [[x / sum(row) for x in row] for row in draw(st.lists(weights, min_size=matches, max_size=matches))]
    outcome = draw(st.lists(st.integers(0, outcomes - 1), min_size=matches, max_size=matches))
    return probs, outcome


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[Table, Table, list[int]]:
    """Stakes, gains and moments."""
    bets, matches = draw(st.integers(1, 3)), draw(st.integers(0, 12))
    stake = st.one_of(st.just(0.0), st.floats(0.001, 0.6))
    gain = st.one_of(st.just(NAN), st.just(-1.0), st.floats(0.05, 20.0))
    rows = [st.lists(cell, min_size=bets, max_size=bets) for cell in (stake, gain)]
    stakes, gains = (draw(st.lists(row, min_size=matches, max_size=matches)) for row in rows)
    steps = draw(st.lists(st.integers(0, 2), min_size=matches, max_size=matches))
    return stakes, gains, np.cumsum(steps).tolist()


def table(rows: Table) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else 2)


def codes(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@given(forecasts())
def test_scores_are_plain_loops(given_: tuple[Table, list[int]]) -> None:
    probs, outcome = given_
    np.testing.assert_allclose(scoring.log_loss(table(probs), codes(outcome)), naive_log_loss(probs, outcome))
    np.testing.assert_allclose(
        scoring.brier(table(probs), codes(outcome)), naive_brier(probs, outcome), rtol=1e-9, atol=1e-12
    )


@given(forecasts(), st.integers(1, 6))
def test_calibration_is_a_plain_loop(given_: tuple[Table, list[int]], bins: int) -> None:
    probs, outcome = given_
    flat = [p for row in probs for p in row]
    right = [at == won for row, won in zip(probs, outcome, strict=True) for at in range(len(row))]
    found = scoring.calibration(table(probs), codes(outcome), bins)
    expected = naive_calibration(flat, right, bins)
    assert found.height == len(expected)
    for row, wanted in zip(found.select("mean", "count", "observed", "low", "high").rows(), expected, strict=True):
        assert row == pytest.approx(wanted, abs=1e-7)
    assert (found["least"] <= found["mean"] + 1e-12).all()
    assert (found["mean"] <= found["most"] + 1e-12).all()


@given(ledgers())
def test_returns_are_a_plain_loop(ledger: tuple[Table, Table, list[int]]) -> None:
    stakes, gains, _ = ledger
    found = scoring.returns(table(stakes), table(gains), seed=1, draws=50)
    assert found[:7] == pytest.approx(naive_returns(stakes, gains), rel=1e-9, abs=1e-12, nan_ok=True)
    if found.matches > 1:
        assert found.low <= found.high
    else:
        assert math.isnan(found.low)
        assert math.isnan(found.high)


@given(ledgers())
def test_bankrolls_are_plain_loops(ledger: tuple[Table, Table, list[int]]) -> None:
    stakes, gains, moment = ledger
    flat, grown = naive_paths(stakes, gains, moment)
    arguments = table(stakes), table(gains), codes(moment)
    np.testing.assert_allclose(scoring.added(*arguments), flat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scoring.compounded(*arguments), grown, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scoring.drawdown(grown), naive_drawdown(grown), rtol=1e-9, atol=1e-12)


# ---- by hand ----


def test_scores_by_hand() -> None:
    probs, outcome = [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], [1, 2]
    assert scoring.log_loss(probs, outcome).tolist() == pytest.approx([math.log(4.0), -math.log(0.8)])
    assert scoring.brier(probs, outcome).tolist() == pytest.approx([0.875, 0.06])
    assert scoring.log_loss([[0.0, 1.0]], [0]).tolist() == [math.inf]


@pytest.mark.parametrize("row", [[0.5, NAN], [0.7, 0.4], [-0.1, 0.6], [1.0, -0.2]])
def test_what_are_no_probabilities_has_no_score(row: list[float]) -> None:
    probs = [row, [0.5, 0.5], [0.5, 0.5], [0.4, 0.4]]
    for score in (scoring.log_loss, scoring.brier):
        assert np.isnan(score(probs, [0, 0, VOID, 0])).tolist() == [True, False, True, False]
    assert scoring.calibration(probs, [0, 0, VOID, 0], bins=1)["count"].item() == 4


@given(st.lists(st.floats(0.02, 1.0), min_size=3, max_size=3), st.lists(st.floats(0.02, 1.0), min_size=3, max_size=3))
def test_the_truth_scores_best_on_average(true: list[float], said: list[float]) -> None:
    p, q = (np.array(x) / sum(x) for x in (true, said))
    for score in (scoring.log_loss, scoring.brier):
        own, other = (sum(p * score(np.tile(x, (3, 1)), [0, 1, 2])) for x in (p, q))
        assert own <= other + 1e-12


def test_wilson_by_the_book() -> None:
    """15 of 50 at 95 %: from 0.191 to 0.438, and none of 10: from 0 to 0.278."""
    half = [[0.4, 0.3]] * 50
    found = scoring.calibration(half, [1] * 15 + [0] * 35, bins=2).row(0, named=True)
    assert (found["low"], found["high"]) == pytest.approx((0.191, 0.438), abs=5e-4)
    never = scoring.calibration([[0.1]] * 10 + [[NAN]], [VOID] * 11)
    assert never.height == 0
    none = scoring.calibration([[0.9, 0.1]] * 10, [0] * 10, bins=2).row(0, named=True)
    assert (none["low"], none["high"]) == pytest.approx((0.0, 0.278), abs=5e-4)


def test_stakes_by_hand() -> None:
    probs, odds = (
        [[0.5, 0.3, 0.2], [NAN, NAN, NAN], [0.5, 0.3, 0.2]],
        [[2.1, 3.5, 4.9], [2.0, 3.0, 4.0], [2.1, NAN, 1.0]],
    )
    flat = scoring.flat_stakes(probs, odds, least=0.04, stake=2.0)
    assert flat.tolist() == [[2.0, 2.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    kelly = scoring.kelly_stakes(probs, odds, fraction=0.5)
    assert kelly[0].tolist() == pytest.approx([*(0.5 * kelly_exclusive([0.5, 0.3], [2.1, 3.5])), 0.0])
    assert kelly[1].tolist() == [0.0, 0.0, 0.0]
    assert kelly[2].tolist() == pytest.approx([0.5 * 0.05 / 1.1, 0.0, 0.0])
    assert scoring.kelly_stakes(probs, odds, least=0.06).sum() == 0.0
    insured = scoring.kelly_stakes([[0.6, 0.4]], [[2.0, 2.45]], least=-1.0)
    assert insured[0, 1] > 0.0  # 0.4 * 2.45 < 1 covers the other
    assert scoring.kelly_stakes([[0.6, 0.4]], [[2.0, 2.45]])[0, 1] == 0.0


def test_gains_by_hand() -> None:
    odds = [[2.5, 3.0], [2.5, 3.0], [NAN, 1.0]]
    np.testing.assert_array_equal(scoring.gains(odds, [0, VOID, 1]), [[1.5, -1.0], [0.0, 0.0], [NAN, NAN]])


def test_returns_by_hand() -> None:
    """Three matches, stakes 1, 2, 1 and profits 2, -2, 0: rate 0, error sqrt(3/2 (4 + 4)) / 4."""
    found = scoring.returns([[1, 0], [1, 1], [0, 1]], [[2, 9], [-1, -1], [9, 0]], seed=3)
    assert found[:6] == (4, 3, 0, 4.0, 0.0, 0.0)
    assert found.error == pytest.approx(math.sqrt(12.0) / 4.0)
    assert found.low < 0.0 < found.high
    assert scoring.returns([[1, 0], [1, 1], [0, 1]], [[2, 9], [-1, -1], [9, 0]], seed=3) == found
    alone = scoring.returns([[0.0, 1.0], [1.0, 0.0]], [[0.0, 2.0], [NAN, 0.0]], seed=3)
    assert alone[:6] == (1, 1, 1, 1.0, 2.0, 2.0)
    assert np.isnan(alone[6:]).all()
    assert math.isnan(scoring.returns(np.zeros((4, 2)), np.ones((4, 2)), seed=3).rate)


def test_error_of_equal_stakes_is_that_of_closing_line_values() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(0.02, 0.3, (60, 3))
    stakes = np.where(rng.random((60, 3)) < 0.6, 0.7, 0.0)
    match = np.repeat(np.arange(60), 3)
    other = means(np.where(stakes > 0, values, NAN).ravel(), np.zeros(180, int), match, 1)
    found = scoring.returns(stakes, values, seed=0)
    assert (found.rate, found.error) == pytest.approx((other.mean[0], other.error[0]))


def test_bets_on_one_match_are_no_more_proof_than_one() -> None:
    rng = np.random.default_rng(5)
    gain = scoring.gains(np.full((200, 1), 2.1), rng.integers(0, 1, 200))
    gain[rng.random(200) < 0.5] = -1.0
    once = scoring.returns(np.ones((200, 1)), gain, seed=6)
    four = scoring.returns(np.ones((200, 4)), np.tile(gain, 4), seed=6)
    assert four.bets == 4 * once.bets
    assert four[5:] == pytest.approx(once[5:])
    apart = scoring.returns(np.ones((800, 1)), np.repeat(gain, 4, axis=0), seed=6)
    assert apart.error == pytest.approx(once.error / 2.0, rel=0.01)  # what counting bets would claim


def test_bootstrap_draws_whole_matches() -> None:
    """Two matches, 1 of 1 and 0 of 3: what can be drawn is 1, 0 or 1/4, the last half of the time."""
    drawn = scoring.bootstrap([1.0, 0.0], [1.0, 3.0], seed=8, draws=40_000)
    values, count = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0.0, 0.25, 1.0]
    assert (count / 40_000).tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


def test_bootstrap_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(9).normal(size=30)
    whole = scoring.bootstrap(x, np.ones(30), seed=2, draws=101)
    monkeypatch.setattr(scoring, "_AT_ONCE", 70)
    np.testing.assert_array_equal(scoring.bootstrap(x, np.ones(30), seed=2, draws=101), whole)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Odds of 3 on a chance of 0.35, three correlated bets a match: 300 ledgers of 150 matches."""
    rng = np.random.default_rng(10)
    edge_, wilson, ratio = 0.35 * 3.0 - 1.0, 0, 0
    for seed in range(300):
        won = rng.random(150) < 0.35
        stakes = np.where(rng.random((150, 3)) < 0.7, rng.uniform(0.5, 2.0, (150, 3)), 0.0)
        found = scoring.returns(stakes, np.where(won[:, None], 2.0, -1.0).repeat(3, axis=1), seed, draws=400)
        ratio += abs(found.rate - edge_) <= 1.96 * found.error
        wilson += found.low <= edge_ <= found.high
    assert 273 <= ratio <= 296  # 285 expected, sd 4
    assert 273 <= wilson <= 296


def test_paths_by_hand() -> None:
    stakes, gains = [[0.5, 0.2], [0.4, 0.4], [0.5, 0.0]], [[1.0, -1.0], [-1.0, NAN], [-1.0, 5.0]]
    assert scoring.added(stakes, gains, [0, 1, 3]).tolist() == pytest.approx([1.0, 1.3, 0.9, 0.9, 0.4])
    assert scoring.compounded(stakes, gains, [0, 1, 3]).tolist() == pytest.approx([1.0, 1.3, 0.78, 0.78, 0.39])
    together = scoring.compounded(stakes, gains, [0, 0, 0])  # 2.0 is asked for: all are halved
    assert together.tolist() == pytest.approx([1.0, 1.0 + 0.5 * (0.3 - 0.4 - 0.5)])
    assert scoring.compounded([[1.0], [1.0]], [[-1.0], [8.0]], [0, 1]).tolist() == [1.0, 0.0, 0.0]
    assert scoring.added(np.zeros((0, 1)), np.zeros((0, 1)), codes([])).tolist() == [1.0]


def test_prices_by_hand() -> None:
    quotes = pl.DataFrame(
        {
            "event_id": ["a", "b", "b", "c"], "selection_type": ["home", "away", "draw", "home"],
            "odds_decimal": [2.0, 3.0, 4.0, 5.0], "win": [0.5, 0.3, 0.2, 0.1],
        }
    )  # fmt: skip
    np.testing.assert_array_equal(
        scoring.prices(quotes, ["b", "a", "z"], ["home", "away"]), [[NAN, 3.0], [2.0, NAN], [NAN, NAN]]
    )
    assert scoring.prices(quotes, ["a"], ["home"], "win").tolist() == [[0.5]]
    with pytest.raises(ValueError, match="two prices for home of a"):
        scoring.prices(pl.concat([quotes, quotes.head(1)]), ["a"], ["home"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: scoring.log_loss([0.5, 0.5], [0]), "probs must have one row per match"),
        (lambda: scoring.log_loss([[0.5, 0.5]], [2]), "outcome must be a column from 0 to 1"),
        (lambda: scoring.log_loss([[0.5, 0.5]], [-2]), "or -1 for none"),
        (lambda: scoring.brier([[0.5, 0.5]], [0, 1]), "outcome must have one whole number per match"),
        (lambda: scoring.brier([[0.5, 0.5]], [0.0]), "got float64 of shape"),
        (lambda: scoring.calibration([[0.5, 0.5]], [0], bins=0), "bins must be 1 or more"),
        (lambda: scoring.calibration([[0.5, 0.5]], [0], level=95.0), "level must be above 0 and below 1"),
        (lambda: scoring.flat_stakes([[0.5, 0.5]], [[2.0, 2.0, 2.0]]), "probs and odds must have the same shape"),
        (lambda: scoring.flat_stakes([[0.5, 0.5]], [[2.0, 2.0]], stake=0.0), "stake must be above 0"),
        (lambda: scoring.kelly_stakes([[0.5, 0.5]], [[2.0, 2.0]], fraction=2.0), "fraction"),
        (lambda: scoring.gains([[2.0, 2.0]], [2]), "outcome must be a column from 0"),
        (lambda: scoring.returns([[1.0]], [[1.0, 2.0]], seed=0), "stakes and gains must have the same shape"),
        (lambda: scoring.returns([[-1.0]], [[1.0]], seed=0), "stakes must be finite and at least 0"),
        (lambda: scoring.returns([[NAN]], [[1.0]], seed=0), "finite and at least 0"),
        (lambda: scoring.returns([[1.0]], [[math.inf]], seed=0), "gains must be finite"),
        (lambda: scoring.bootstrap([], [], seed=0), "one number per match"),
        (lambda: scoring.bootstrap([1.0], [0.0], seed=0), "below above 0"),
        (lambda: scoring.bootstrap([1.0], [1.0], seed=0, draws=0), "draws must be 1 or more"),
        (lambda: scoring.added([[1.0], [1.0]], [[1.0], [1.0]], [1, 0]), "must not decrease"),
        (lambda: scoring.compounded([[1.0]], [[1.0]], [-1]), "at least 0"),
        (lambda: scoring.drawdown([0.0, 1.0]), "above 0 at the start"),
        (lambda: next(seasons(1, -1)), "count must be 0 or more"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


# ---- a league whose chances are known ----


class World(NamedTuple):
    made: list[Season]
    read: list[SeasonFile]
    quotes: pl.DataFrame  # with win and lose, of every market
    events: list[str]
    won: npt.NDArray[np.int64]

    def odds(self, book: str, *, closing: bool) -> Floats:
        own = self.quotes.filter(sportsbook=book, closing=closing, market_type="moneyline_3way")
        return scoring.prices(own, self.events, SIDES)

    def chances(self, *, closing: bool) -> Floats:
        truth = pl.concat([season.truth for season in self.made])
        own = truth.filter(closing=closing, market_type="moneyline_3way")
        return scoring.prices(own, self.events, SIDES, "win")


@pytest.fixture(scope="module")
def world() -> World:
    made = list(seasons(2024, 8))
    read = [football_data.read(season.data) for season in made]
    results = pl.concat([history.results for history in read])
    quotes = pl.concat([history.quotes for history in read]).join(
        pl.concat([season.truth for season in made]), on=KEYS, how="left", nulls_equal=True
    )
    won = 1 - np.sign((results["home_goals"] - results["away_goals"]).to_numpy())
    return World(made, read, quotes, results["event_id"].to_list(), won)


def worse(scores: Floats, than: Floats) -> tuple[float, float]:
    """Mean difference and its error."""
    match = np.arange(scores.size)
    found = means(scores - than, np.zeros_like(match), match, 1)
    return float(found.mean[0]), float(found.error[0])


def test_a_season_is_a_double_round() -> None:
    for season in seasons(5, 2):
        rows = list(csv.DictReader(io.StringIO(season.data.decode())))
        pairs = [(row["HomeTeam"], row["AwayTeam"]) for row in rows]
        assert sorted(pairs) == sorted((a, b) for a in TEAMS for b in TEAMS if a != b)
        for team in TEAMS:
            mine = [(row["Date"][6:] + row["Date"][3:5] + row["Date"][:2]) for row in rows if team in row.values()]
            assert mine == sorted(mine)
            assert len(set(mine)) == 38  # no two matches on one day
        days = [row["Date"][6:] + row["Date"][3:5] + row["Date"][:2] for row in rows]
        assert days == sorted(days)


def test_the_parser_reads_all_of_it(world: World) -> None:
    for season, history in zip(world.made, world.read, strict=True):
        assert not history.refused
        assert history.results.height == len(history.games) == 380
        cells = list(csv.DictReader(io.StringIO(season.data.decode())))
        codes_ = ("B365", "BW", "IW", "PS", "P", "WH", "VC")
        ends = ("H", "D", "A", ">2.5", "<2.5", "AHH", "AHA")
        names = [f"{book}{mark}{end}" for book in codes_ for mark in ("", "C") for end in ends]
        assert history.quotes.height == sum(row.get(name, "") != "" for row in cells for name in names)
        goals = history.results.select("home_goals", "away_goals", "half_home_goals", "half_away_goals").rows()
        assert goals == [tuple(int(row[name]) for name in ("FTHG", "FTAG", "HTHG", "HTAG")) for row in cells]
    assert world.quotes["win"].null_count() == 0  # every price has its chance, under the parser's own ids and lines
    assert set(world.quotes["closing"].unique()) == {True, False}
    gaps = 1.0 - world.quotes.filter(market_type="total_goals", sportsbook="pinnacle").height / (8 * 380 * 4)
    assert 0.004 < gaps < 0.018


def test_best_and_average_are_those_of_the_books(world: World) -> None:
    row = next(csv.DictReader(io.StringIO(world.made[0].data.decode())))
    for mark in ("", "C"):
        for end in "HDA":
            own = [float(row[f"{book}{mark}{end}"]) for book in ("B365", "BW", "IW", "PS", "WH", "VC")]
            assert float(row[f"Max{mark}{end}"]) == max(own)
            assert float(row[f"Avg{mark}{end}"]) == pytest.approx(sum(own) / 6, abs=0.0051)


def test_the_same_seed_gives_the_same_bytes() -> None:
    one, other, longer = next(seasons(3)), next(seasons(3)), list(seasons(3, 2))
    assert one.data == other.data == longer[0].data
    assert one.truth.equals(longer[0].truth)
    assert one.data != longer[1].data
    assert one.data != next(seasons(4)).data


def test_results_have_the_chances_that_are_claimed(world: World) -> None:
    """Twelve bins at each time, against the error that exact chances would leave; and scores against the entropy."""
    for closing in (False, True):
        chances = world.chances(closing=closing)
        found = scoring.calibration(chances, world.won, bins=12)
        mean, observed, n = (found[name].to_numpy() for name in ("mean", "observed", "count"))
        z = (observed - mean) / np.sqrt(mean * (1.0 - mean) / n)
        assert (z**2).sum() < 28.3  # 0.995 of chi squared, 12 degrees
        surprise = scoring.log_loss(chances, world.won) + (chances * np.log(chances)).sum(axis=1)
        mean_, error = worse(surprise, np.zeros(surprise.size))
        assert abs(mean_) < 3.0 * error


def test_totals_and_handicaps_settle_at_their_chances(world: World) -> None:
    """Stakes of 1 on every closing price return what win and lose say, halves and pushes among them."""
    results = pl.concat([history.results for history in world.read])
    rows = world.quotes.filter(pl.col("closing"), sportsbook="bet365").join(results, on="event_id")
    margin, total = pl.col("home_goals") - pl.col("away_goals"), pl.col("home_goals") + pl.col("away_goals")
    beyond = {"over": total - pl.col("line"), "under": pl.col("line") - total}
    beyond |= {"home": margin + pl.col("line"), "away": pl.col("line") - margin}
    for market, sides in (("total_goals", ("over", "under")), ("asian_handicap", ("home", "away"))):
        for side in sides:
            own = rows.filter(market_type=market, selection_type=side)
            by = own.select(beyond[side].alias("by"))["by"].to_numpy()
            odds, win, lose = (own[name].to_numpy() for name in ("odds_decimal", "win", "lose"))
            share = np.clip(2.0 * by, -1.0, 1.0)  # a quarter line stands half on each neighbour
            gain = np.where(share > 0, share * (odds - 1.0), share)
            difference = gain - (win * (odds - 1.0) - lose)
            assert abs(difference.mean()) < 3.0 * difference.std() / len(difference) ** 0.5
            assert not market.startswith("asian") or {-0.5, 0.0, 0.5} <= set(share.tolist())


def test_the_close_is_the_next_value_of_a_martingale(world: World) -> None:
    early, close = world.chances(closing=False), world.chances(closing=True)
    for moved, before in zip((close - early).T, early.T, strict=True):
        error = moved.std() / len(moved) ** 0.5
        assert abs(moved.mean()) < 3.0 * error
        assert 0.005 < moved.std() < 0.05
        assert abs(np.corrcoef(moved, before)[0, 1]) < 3.0 / len(moved) ** 0.5


def test_the_sharp_close_knows_most(world: World) -> None:
    """By the chances themselves; results, which say it with more noise, agree with them."""
    chances = world.chances(closing=True)
    books = sorted(world.quotes["sportsbook"].unique())
    fair = {(book, closing): devig(world.odds(book, closing=closing)) for book in books for closing in (False, True)}
    sharp = fair.pop(("pinnacle", True))
    reference = scoring.log_loss(sharp, world.won)
    away: dict[tuple[str, bool], float] = {}
    for key, other in fair.items():
        by_match = (chances * (np.log(sharp) - np.log(other))).sum(axis=1)
        away[key] = float(np.nanmean(by_match))
        mean, error = worse(by_match, np.zeros(by_match.size))
        assert mean > 3.0 * error
        mean, error = worse(scoring.log_loss(other, world.won) - by_match, reference)
        assert abs(mean) < 3.0 * error
    assert min(away[book, False] for book in books) > max(away[book, True] for book in books if book != "pinnacle")


def test_the_sharp_close_is_best_calibrated(world: World) -> None:
    """Distance of the probabilities from the chances, in the bins in which calibration looks at them."""
    chances, off = world.chances(closing=True), {}
    for book in sorted(world.quotes["sportsbook"].unique()):
        for closing in (False, True):
            fair = devig(world.odds(book, closing=closing))
            known = ~np.isnan(fair).any(axis=1)
            p, true = fair[known].ravel(), chances[known].ravel()
            bins = np.array_split(np.argsort(p, kind="stable"), 10)
            off[book, closing] = sum(abs((p[part] - true[part]).sum()) for part in bins) / p.size
            found = scoring.calibration(fair, world.won, bins=10)
            assert found.filter(pl.col("mean").is_between("low", "high")).height >= 7
    assert min(off, key=lambda key: off[key]) == ("pinnacle", True)


def test_what_was_put_in_as_a_power_comes_out_by_power(world: World) -> None:
    """By the chances; and the results of eight seasons do not contradict it."""
    chances, odds = world.chances(closing=True), world.odds("bet365", closing=True)
    plain = devig(odds, "multiplicative")
    gap = {
        name: np.nanmean((chances * np.log(plain / devig(odds, name))).sum(axis=1))
        for name in ("power", "shin", "odds_ratio", "additive")
    }
    assert min(gap, key=lambda name: gap[name]) == "power"
    assert gap["power"] < -1e-4
    mean, error = worse(scoring.log_loss(devig(odds), world.won), scoring.log_loss(plain, world.won))
    assert abs(mean - gap["power"]) < 3.0 * error


def flat(world: World, *, prices: bool, by: bool) -> tuple[Return, Return, Return, Return]:
    """Claimed, paid, worth by the close, and true, of bets at an edge of 2 %; arguments: whether of the close."""
    soft = [book for book in sorted(world.quotes["sportsbook"].unique()) if book != "pinnacle"]
    best = np.fmax.reduce([world.odds(book, closing=prices) for book in soft])
    fair, close = (devig(world.odds("pinnacle", closing=closing)) for closing in (by, True))
    stakes = scoring.flat_stakes(fair, best, 0.02)
    found = [
        scoring.returns(stakes, gain, seed=1)
        for gain in (
            edge(fair, best),
            scoring.gains(best, world.won),
            clv(best, close),
            edge(world.chances(closing=True), best),
        )
    ]
    return found[0], found[1], found[2], found[3]


@pytest.mark.parametrize(("prices", "by"), [(False, False), (True, True), (False, True), (True, False)])
def test_bets_return_what_the_chances_say(world: World, prices: bool, by: bool) -> None:
    claimed, paid, worth, true = flat(world, prices=prices, by=by)
    assert paid.bets > 200
    assert abs(paid.rate - true.rate) < 3.0 * paid.error
    assert paid.low < true.rate + 0.03
    assert paid.high > true.rate - 0.03
    assert abs(worth.rate - true.rate) < 0.004  # the close errs a little, and bets are chosen where it does
    assert worth.error < paid.error / 10.0
    stale = prices and not by
    assert (true.rate < -0.02) if stale else (true.rate > 0.015)
    assert claimed.rate > 0.02


def test_claims_are_too_large_and_the_close_takes_that_back(world: World) -> None:
    """Bets are picked where the reference erred in their favour; the news after that is as often good as bad."""
    best = np.fmax.reduce([world.odds(book, closing=False) for book in ("bet365", "bwin", "betvictor", "williamhill")])
    fair = devig(world.odds("pinnacle", closing=False))
    stakes = scoring.flat_stakes(fair, best, 0.02)
    at_once, later = (edge(world.chances(closing=closing), best) for closing in (False, True))
    curse = scoring.returns(stakes, edge(fair, best) - at_once, seed=1)
    news = scoring.returns(stakes, later - at_once, seed=1)
    assert curse.rate > 10.0 * curse.error
    assert curse.rate > 0.004
    assert abs(news.rate) < 3.0 * news.error


def test_bets_at_random_lose_the_margin(world: World) -> None:
    odds = world.odds("bet365", closing=True)
    stakes = np.where(np.isnan(odds), 0.0, 1.0)
    found = scoring.returns(stakes, scoring.gains(odds, world.won), seed=2)
    true = scoring.returns(stakes, edge(world.chances(closing=True), odds), seed=2)
    assert abs(found.rate - true.rate) < 3.0 * found.error
    assert -0.09 < true.rate < -0.04


def test_full_kelly_on_the_truth_grows_as_it_should(world: World) -> None:
    """Mean log growth with true chances against that of half and of twice the stakes, by the chances themselves."""
    chances = world.chances(closing=True)
    best = world.odds("interwetten", closing=True)
    stakes = scoring.kelly_stakes(chances, best, least=-1.0)
    assert 0.0 < stakes.sum(axis=1).max() < 1.0

    def growth(factor: float) -> float:
        ends = 1.0 - factor * stakes.sum(axis=1, keepdims=True) + factor * stakes * np.nan_to_num(best)
        return float((chances * np.log(ends)).sum())

    assert growth(1.0) > max(growth(0.5), growth(2.0), 0.0)
    assert growth(2.0) == pytest.approx(0.0, abs=0.4 * growth(1.0))  # twice Kelly grows about as nothing
    path = scoring.compounded(stakes, scoring.gains(best, world.won), np.arange(len(best)))
    spread = math.sqrt(float((stakes**2 * np.nan_to_num(best)).sum()))
    assert abs(math.log(path[-1]) - growth(1.0)) < 3.5 * spread
    falls = scoring.drawdown(path)
    assert (falls >= 0.0).all()
    assert all(b > 0.0 or y >= x for (x, y), b in zip(pairwise(path), falls[1:], strict=True))
