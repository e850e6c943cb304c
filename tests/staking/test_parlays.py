"""Parlays: independent legs, legs of one game, pushes, offers, and what is no parlay."""

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive import parlays as naive

import oddsengine as oe
from oddsengine.staking.outcomes import factors
from oddsengine.staking.parlays import REFUNDS, PricedParlay
from oddsengine.staking.stakes import bet_columns
from oddsengine.tables.sample import SAMPLE_BOARD

TEAMS = {"home_team": "Lakers", "away_team": "Celtics", "sportsbook": "fanduel"}
Leg = dict[str, Any]


def leg(
    market: str, selection: str, line: float | None, odds: float, fair: float | None, event: str = "a", **more: Any
) -> Leg:
    return {
        **TEAMS, "event_id": event, "sport": "basketball", "market_type": market, "selection": selection, "line": line,
        "odds_decimal": odds, "fair_probability": fair, **more,
    }  # fmt: skip


def plain(*legs: tuple[float, float]) -> list[Leg]:
    """Legs of different games without a market."""
    return [
        {"event_id": str(at), "odds_decimal": odds, "fair_probability": p} for at, (odds, p) in enumerate(legs)
    ]  # fmt: skip


WINNER, OVER = leg("moneyline", "Lakers", None, 1.7, 0.6), leg("total_points", "Over", 221.5, 1.95, 0.52)
SPREAD = leg("point_spread", "Lakers", -4.5, 2.0, 0.5)
POINTS = leg("player_points", "Over", 25.5, 1.9, 0.52, player_name="LeBron James")
ASSISTS = leg("player_assists", "Over", 7.5, 1.9, 0.5, player_name="LeBron James")
NFL = {"sport": "football", "league": "nfl"}
SOCCER = {"sport": "soccer", "league": "epl"}

# ---- independent legs ----

CHANCES = st.tuples(st.floats(1.05, 20.0), st.floats(0.02, 0.98))


@given(st.lists(CHANCES, min_size=1, max_size=6))
def test_independent_legs_multiply(legs: list[tuple[float, float]]) -> None:
    found = oe.parlay(plain(*legs))
    odds, prob = math.prod(d for d, _ in legs), math.prod(p for _, p in legs)
    assert (found.odds, found.price) == pytest.approx((odds, odds))
    assert (found.fair_probability, found.fair_odds) == pytest.approx((prob, 1.0 / prob))
    assert found.ev_percentage == pytest.approx(100.0 * (prob * odds - 1.0), abs=1e-9 * odds)
    assert found.kelly_fraction == pytest.approx(max(0.0, (prob * odds - 1.0) / (odds - 1.0)), abs=1e-5)
    assert (found.dependent, found.reason) == ((), None)


def test_one_leg_is_a_bet() -> None:
    row = oe.find_ev(oe.read_odds(SAMPLE_BOARD), min_ev=1).filter(pl.col("market_type") == "moneyline")[:1]
    found = oe.parlay(row)
    assert found.ev_percentage == pytest.approx(row["ev_percentage"].item())
    assert found.kelly_fraction == pytest.approx(row["kelly_percent"].item(), abs=1e-7)


def test_rows_of_find_ev_are_legs() -> None:
    rows = oe.find_ev(oe.read_odds(SAMPLE_BOARD), min_ev=-5).unique("event_id", maintain_order=True)
    rows = rows.filter(pl.col("push_probability").fill_null(0.0).eq(0.0))
    two = rows.filter(pl.col("sportsbook") == rows["sportsbook"].mode().sort()[0])[:2]
    assert two.height == 2
    found = oe.parlay(two)
    both = float(np.prod(1.0 + two["ev_percentage"].to_numpy() / 100.0)) - 1.0
    assert found.ev_percentage == pytest.approx(100.0 * both)
    for rows_ in (two.to_dicts(), two.to_dict(as_series=False), two.lazy()):
        assert oe.parlay(rows_) == found


def test_legs_at_several_books_have_no_price() -> None:
    legs = [WINNER, WINNER | {"event_id": "b", "sportsbook": "DraftKings"}]
    found = oe.parlay(legs)
    assert (found.fair_probability, found.fair_odds) == pytest.approx((0.36, 1.0 / 0.36))
    assert found == PricedParlay(
        *found[:2], None, None, None, None, (),
        "a parlay is bet at one book, and the legs are at fanduel, draftkings: give the price as odds",
    )  # fmt: skip
    assert oe.parlay(legs, odds=3.0).ev_percentage == pytest.approx(8.0)
    assert oe.parlay([legs[0], legs[1] | {"sportsbook": "FanDuel"}]).odds == pytest.approx(1.7 * 1.7)


def test_legs_with_and_without_a_market() -> None:
    """What one row does not have is missing in the other."""
    found = oe.parlay([*plain((2.5, 0.42)), SPREAD, {"event_id": "c", "odds_decimal": 1.5, "fair_probability": 0.7}])
    assert found.fair_probability == pytest.approx(0.42 * 0.5 * 0.7)
    assert found.odds == pytest.approx(2.5 * 2.0 * 1.5)


def test_probabilities_count_as_they_are() -> None:
    uncertain = [each | {"fair_error": 0.03} for each in (WINNER, OVER | {"event_id": "b"})]
    assert oe.parlay(uncertain).fair_probability == pytest.approx(0.6 * 0.52)


# ---- pushes ----


def scenarios(legs: list[Leg]) -> list[naive.Game]:
    """What stakes know of the legs, as plain numbers."""
    table, prob, error, odds = bet_columns(pl.DataFrame(legs))
    return [
        (factor.bets.tolist(), list(zip(factor.prob.tolist(), factor.share.tolist(), strict=True)))
        for factor in factors(table, prob, np.full_like(error, np.nan), odds)
    ]


def test_a_push_reduces_a_parlay_to_the_other_legs() -> None:
    spread, other = leg("point_spread", "Lakers", -3.0, 1.95, 0.51, **NFL), WINNER | {"event_id": "b"}
    ((_, outcomes),) = scenarios([spread])
    pushed = sum(p for p, (share,) in outcomes if share == 0.0)
    assert 0.05 < pushed < 0.15  # three points are the most frequent margin
    found = oe.parlay([spread, other])
    both, one = (1.0 - pushed) * 0.51 * 0.6 * 1.95 * 1.7, pushed * 0.6 * 1.7
    assert found.ev_percentage == pytest.approx(100.0 * (both + one - 1.0))
    assert found.fair_probability == pytest.approx(0.51 * 0.6)
    refunded = oe.parlay([spread, other], refund="loss", refund_value=1.0)
    lost = 1.0 - (1.0 - pushed) * 0.51 * 0.6 - pushed * 0.6
    assert refunded.ev_percentage == pytest.approx(100.0 * (both + one + lost - 1.0))


def test_a_pushed_spread_says_that_the_favourite_won() -> None:
    """At 1 divided by the probability given no push, the price would be worth more than nothing."""
    legs = [leg("moneyline", "Lakers", None, 1.6, 0.62, **NFL), leg("point_spread", "Lakers", -3.0, 1.95, 0.51, **NFL)]
    found = oe.parlay(legs, odds=2.0)
    ((_, outcomes),) = scenarios(legs)
    both = sum(p for p, share in outcomes if share == [1.0, 1.0])
    winner_only = sum(p for p, share in outcomes if share == [1.0, 0.0])
    assert winner_only > 0.05
    assert found.ev_percentage == pytest.approx(100.0 * (both * 2.0 + winner_only * 1.6 - 1.0), abs=1e-6)
    assert found.fair_odds == pytest.approx((1.0 - winner_only * 1.6) / both, abs=1e-6)
    assert found.fair_odds < 1.0 / found.fair_probability - 0.05


def test_many_legs_that_can_be_pushed() -> None:
    """More returns than are kept: the mean stays exact, the stake nearly."""
    legs = [leg("point_spread", "Lakers", -3.0, 2.05, 0.5, event=str(at), **NFL) for at in range(20)]
    ((_, outcomes),) = scenarios(legs[:1])
    pushed = sum(p for p, (share,) in outcomes if share == 0.0)
    found = oe.parlay(legs)
    mean = (pushed + (1.0 - pushed) * 0.5 * 2.05) ** 20
    assert found.ev_percentage == pytest.approx(100.0 * (mean - 1.0))
    returns = [
        (math.comb(20, k) * pushed ** (20 - k) * ((1.0 - pushed) * 0.5) ** k, 2.05**k) for k in range(21)
    ]  # fmt: skip
    returns.append((1.0 - sum(p for p, _ in returns), 0.0))
    assert found.kelly_fraction == pytest.approx(naive.kelly(returns), rel=1e-2)


# ---- legs of one game ----


def test_legs_of_one_game_have_no_product() -> None:
    found = oe.parlay([WINNER, SPREAD])
    assert found.fair_probability == pytest.approx(0.5)  # who covers has won
    assert found.odds is found.price is found.ev_percentage is found.kelly_fraction is None
    assert found.reason == "bets 1 and 2 are of one game, which a book prices together: give its price as odds"
    ((legs, law, both, alone),) = found.dependent
    assert (legs, law, both) == ((0, 1), "score", found.fair_probability)
    assert alone == pytest.approx(0.3)
    assert oe.parlay([WINNER, SPREAD], odds=2.1).ev_percentage == pytest.approx(5.0, abs=1e-6)


def test_several_lines_of_one_number() -> None:
    found = oe.parlay([POINTS, POINTS | {"selection": "Under", "line": 29.5, "fair_probability": 0.7}], odds=5.0)
    assert found.fair_probability == pytest.approx(0.52 + 0.70 - 1.0)
    assert found.dependent[0].law == "number"
    assert found.ev_percentage == pytest.approx(10.0, abs=1e-5)


def test_soccer_by_its_scores() -> None:
    """Goals of both teams are Poisson; with the probabilities that follow, so does the parlay's."""
    home, away = 1.6, 1.1
    score = {
        (h, a): math.exp(-home - away) * home**h * away**a / math.factorial(h) / math.factorial(a)
        for h, a in product(range(25), repeat=2)
    }
    wins = sum(p for (h, a), p in score.items() if h > a)
    over = sum(p for (h, a), p in score.items() if h + a > 2)
    both_score = sum(p for (h, a), p in score.items() if h and a)
    legs = [
        leg("moneyline", "Lakers", None, 2.0, wins, **SOCCER), leg("total_goals", "Over", 2.5, 2.0, over, **SOCCER),
        leg("both_teams_to_score", "Yes", None, 2.0, both_score, **SOCCER),
    ]  # fmt: skip
    found = oe.parlay(legs, odds=5.0).fair_probability
    expected = sum(p for (h, a), p in score.items() if h > a and h + a > 2 and h and a)
    assert expected > 1.6 * wins * over * both_score
    assert found == pytest.approx(expected, rel=0.01)


def game(sport: str, p: float, q: float, event: str) -> list[Leg]:
    """Legs of one game whose probabilities are possible together."""
    if sport == "basketball":
        return [
            leg("moneyline", "Lakers", None, 1.9, p, event), leg("total_points", "Under", 220.5, 1.9, q, event),
        ]  # fmt: skip
    if sport == "football":
        return [
            leg("point_spread", "Lakers", -3.0, 1.95, p, event, **NFL),
            leg("total_points", "Over", 44.0, 1.9, q, event, **NFL),
            leg("moneyline", "Lakers", None, 1.6, p + 0.1, event, **NFL),
        ]
    if sport == "soccer":
        return [
            leg("asian_handicap", "Lakers", -0.25, 2.05, p, event, **SOCCER),
            leg("total_goals", "Over", 2.75, 1.85, q, event, **SOCCER),
            leg("both_teams_to_score", "Yes", None, 1.95, 0.5, event, **SOCCER),
        ]
    return [
        leg("moneyline", "Celtics", None, 1.9, p, event, sport="hockey", league="nhl"),
        leg("total_goals", "Under", 6.0, 1.9, q, event, sport="hockey", league="nhl"),
    ]


@st.composite
def parlays(draw: st.DrawFn) -> list[Leg]:
    """Up to three games with one to three legs."""
    legs: list[Leg] = []
    for at in range(draw(st.integers(1, 3))):
        sport = draw(st.sampled_from(["basketball", "football", "hockey", "soccer"]))
        some = game(sport, draw(st.floats(0.4, 0.6)), draw(st.floats(0.4, 0.6)), str(at))
        legs += draw(st.permutations(some))[: draw(st.integers(1, len(some)))]
    return draw(st.permutations(legs))


QUARTERS, WHOLE = game("soccer", 0.5, 0.55, "a"), game("football", 0.45, 0.5, "b")


@given(parlays(), st.floats(0.05, 1.2), st.sampled_from([0.0, 0.3]), st.sampled_from([None, *REFUNDS]))
@example(QUARTERS, 0.5, 0.0, None)
@example(WHOLE, 0.5, 0.3, "one_leg")
@example(WHOLE, 0.01, 0.0, "loss")  # what is left after a push pays no less than the stake
@example([*WHOLE[:2], OVER], 0.02, 0.0, None)  # less than the other game's leg alone
@example([*QUARTERS[:2], *WHOLE], 0.4, 0.0, None)
def test_every_scenario_counts(legs: list[Leg], generous: float, boost: float, refund: str | None) -> None:
    games = scenarios(legs)
    odds = [each["odds_decimal"] for each in legs]
    offered = 1.0 + (math.prod(odds) - 1.0) * generous
    value = None if refund is None else 0.7
    found = oe.parlay(legs, odds=offered, boost=boost, refund=refund, refund_value=value)
    returns = naive.outcomes(games, odds, offered, boost, refund or "", value or 0.0)
    ev = sum(p * x for p, x in returns) - 1.0
    assert found.ev_percentage == pytest.approx(100.0 * ev, abs=1e-7)
    assert found.price == pytest.approx(1.0 + (offered - 1.0) * (1.0 + boost))
    assert found.kelly_fraction == pytest.approx(naive.kelly(returns), abs=2e-6)
    prob = math.prod(naive.chance(outcomes, range(len(own))) for own, outcomes in games)
    assert found.fair_probability == pytest.approx(prob)
    fair = naive.outcomes(games, odds, found.fair_odds)
    assert sum(p * x for p, x in fair) == pytest.approx(1.0, abs=1e-9)
    several = {tuple(sorted(own)): outcomes for own, outcomes in games if len(own) > 1}
    assert {each.legs for each in found.dependent} == several.keys()


# ---- joint probabilities ----


def test_four_prices_say_how_two_props_depend() -> None:
    joint = oe.joint_probabilities([2.5, 4.6, 3.9, 3.0])
    found = oe.parlay(
        [POINTS | {"fair_probability": None}, ASSISTS | {"fair_probability": None}], odds=3.0, joint={(0, 1): joint}
    )
    assert found.fair_probability == pytest.approx(joint.both)
    assert found.ev_percentage == pytest.approx(100.0 * (3.0 * joint.both - 1.0))
    ((legs, law, both, alone),) = found.dependent
    assert (legs, law, both) == ((0, 1), "given", found.fair_probability)
    assert alone == pytest.approx(joint.first * joint.second)


@given(st.lists(st.floats(0.05, 1.0), min_size=4, max_size=4), st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_joint_probabilities_are_adjusted_to_those_of_the_legs(four: list[float], p: float, q: float) -> None:
    """The odds ratio stays."""
    joint = [each / sum(four) for each in four]
    legs = [POINTS | {"fair_probability": p}, ASSISTS | {"fair_probability": q}, WINNER | {"event_id": "b"}]
    both = oe.parlay(legs, joint={(0, 1): joint}, odds=5.0).dependent[0].fair_probability
    ratio = both * (1.0 - p - q + both) / (p - both) / (q - both)
    assert ratio == pytest.approx(joint[0] * joint[3] / joint[1] / joint[2], rel=1e-4)
    two = oe.parlay([WINNER | {"event_id": "b"}, OVER | {"event_id": "b"}, *legs[:2]], joint={(2, 3): joint}, odds=9.0)
    assert [(each.legs, each.law) for each in two.dependent] == [((0, 1), "score"), ((2, 3), "given")]
    swapped = [legs[1], legs[0], legs[2]]
    assert oe.parlay(swapped, joint={(1, 0): joint}, odds=5.0).dependent[0].fair_probability == pytest.approx(both)


# ---- offers ----


def test_offers_by_hand() -> None:
    """Two legs at 2.5 and 1.9 that win with 0.42 and 0.53: both 0.2226, one of them 0.5048, none 0.2726."""
    legs = plain((2.5, 0.42), (1.9, 0.53))
    assert oe.parlay(legs, boost=0.3).ev_percentage == pytest.approx(100.0 * (0.2226 * (1.0 + 3.75 * 1.3) - 1.0))
    paid = 0.2226 * 4.75 - 1.0
    any_loss = oe.parlay(legs, refund="loss", refund_value=0.7)
    assert any_loss.ev_percentage == pytest.approx(100.0 * (paid + 0.7774 * 0.7))
    one = oe.parlay(legs, refund="one_leg", refund_value=0.7)
    assert one.ev_percentage == pytest.approx(100.0 * (paid + 0.5048 * 0.7))
    assert (one.odds, one.price, one.fair_odds) == pytest.approx((4.75, 4.75, 1.0 / 0.2226))


# ---- what is no parlay ----


@pytest.mark.parametrize(("legs", "more", "message"), [
    ([], {}, "bets must have at least one leg, got none"),
    ([POINTS, ASSISTS], {"odds": 3.0}, r"bets 1 and 2 are of one game \(a\), and it is not known how they depend; if a "
     r"book prices all four parlays of the two, give joint=\{\(0, 1\): joint_probabilities\(...\)\}"),
    ([WINNER, OVER, POINTS], {"odds": 6.0}, r"bets 1, 2 and 3 are of one game \(a\), and it is not known how they "
     "depend$"),
    ([WINNER, OVER | {"market_type": "1st_half_total_points"}], {"odds": 3.0}, "not known how they depend"),
    ([WINNER | {"sport": "curling"}, OVER | {"sport": "curling"}], {"odds": 3.0}, "not known how they depend"),
    ([WINNER, leg("double_chance", "Lakers or Draw", None, 1.3, 0.7)], {"odds": 3.0}, "not known how they depend"),
    ([WINNER, WINNER], {"odds": 2.0}, "bets 1 and 2 are one bet: they win and lose together"),
    ([OVER, OVER | {"selection": "Under", "fair_probability": 0.48}], {"odds": 2.0}, "bets 1 and 2 cannot all win"),
    ([WINNER, SPREAD | {"fair_probability": 0.7}], {"odds": 2.0}, "fair probabilities of bets 1 and 2 contradict each "
     "other: 0.6, 0.7"),
    ([WINNER | {"fair_probability": None}], {}, "bet 1 cannot be a leg of a parlay: no_fair_probability"),
    ([WINNER | {"is_active": False}], {}, "bet 1 cannot be a leg of a parlay: suspended"),
    ([POINTS, ASSISTS | {"is_active": False}], {"joint": {(0, 1): [0.25] * 4}}, "bet 2 cannot be a leg of a parlay"),
    ([WINNER | {"guard": "stale"}], {}, "bet 1 cannot be a leg of a parlay: stale"),
    ([WINNER | {"fair_probability": 60.0}], {}, "bet 1: fair_probability must be above 0 and below 1, got 60.0"),
    ([{"odds_decimal": 2.0, "fair_probability": 0.5}], {}, "it has no event_id"),
    ([WINNER, OVER | {"event_id": "b", "odds_decimal": 1.0}], {}, "bet 2: odds_decimal"),
    ([WINNER], {"odds": 1.0}, "odds must be decimal odds above 1, got 1.0"),
    ([WINNER], {"boost": 30.0}, "share must be from 0 to 3, 0.5 for a boost of 50 %, got 30"),
    ([WINNER], {"refund": "always"}, "refund must be one of loss, one_leg, got 'always'"),
    ([WINNER], {"refund_value": 0.7}, "refund must be one of loss, one_leg, got None"),
    ([WINNER], {"refund": "loss"}, "refund_value must be the share of the stake that a refund is worth, 0 to 1, got N"),
    ([WINNER], {"refund": "loss", "refund_value": 70.0}, "refund_value must be the share"),
    ([POINTS, ASSISTS], {"joint": {(0, 2): [0.25] * 4}}, r"pairs of legs, as positions from 0 to 1, got \(0, 2\)"),
    ([POINTS, ASSISTS], {"joint": {(1, 1): [0.25] * 4}}, r"pairs of legs, as positions from 0 to 1, got \(1, 1\)"),
    ([POINTS, ASSISTS], {"joint": {(0, 1): [0.3] * 4}}, r"joint \(0, 1\) must be four probabilities that sum to 1"),
    ([POINTS, ASSISTS], {"joint": {(0, 1): [0.5] * 2}}, r"joint \(0, 1\) must be four probabilities that sum to 1"),
    ([POINTS, ASSISTS, WINNER], {"joint": {(0, 1): [0.25] * 4}}, r"joint \(0, 1\) must be all legs of one game, but "
     "bets 1, 2 and 3 of game a are"),
    ([POINTS, ASSISTS], {"joint": {(0, 1): [0.25] * 4, (1, 0): [0.25] * 4}}, "joint must have each leg in one pair"),
    ([POINTS, ASSISTS | {"line": 7.0}], {"joint": {(0, 1): [0.25] * 4}}, "bet 2 can be pushed"),
    ([POINTS, ASSISTS], {"joint": {(0, 1): [0.5, 0.0, 0.0, 0.5]}}, "fair probabilities of bets 1 and 2 contradict"),
])  # fmt: skip
def test_what_is_no_parlay(legs: list[Leg], more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        oe.parlay(legs, **more)
