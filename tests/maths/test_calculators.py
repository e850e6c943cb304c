"""Calculators: their laws, and the endpoints beside the library."""

from collections.abc import Callable, Iterator
from itertools import product

import httpx2
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.service_running import running

import oddsengine
from oddsengine import arbitrage_stakes, kelly
from oddsengine.maths import calculators

PRICES = st.floats(1.01, 100.0)
MONEY = st.floats(1.0, 1e6)


def close(a: float, b: float) -> bool:
    return a == pytest.approx(b, rel=1e-9, abs=1e-6)


@given(MONEY, PRICES, PRICES)
def test_a_hedge_earns_the_same_either_way(stake: float, odds: float, against: float) -> None:
    h = calculators.hedge(stake, odds, against)
    assert close(stake * (odds - 1) - h.stake, h.profit)
    assert close(h.stake * (against - 1) - stake, h.profit)
    assert close(h.no_loss_stake * (against - 1) - stake, 0.0)
    assert close(stake * (odds - 1) - h.no_loss_stake, h.no_loss_profit)


@given(MONEY, PRICES, PRICES, st.booleans())
def test_a_free_bet_keeps_the_same_either_way(amount: float, odds: float, against: float, returned: bool) -> None:
    f = calculators.free_bet(amount, odds, against, returned=returned)
    paid = amount * odds if returned else amount * (odds - 1)
    assert close(paid - f.stake, f.profit)
    assert close(f.stake * (against - 1), f.profit)
    assert close(f.conversion * amount, f.profit)


@given(st.lists(st.tuples(PRICES, st.floats(0.01, 0.99)), min_size=1, max_size=5))
def test_a_parlay_is_its_legs_one_after_the_other(legs: list[tuple[float, float]]) -> None:
    found = calculators.parlay([d for d, _ in legs], [p for _, p in legs])
    mean = 0.0
    for results in product((False, True), repeat=len(legs)):  # the slow way: every result of every leg
        money, p = 1.0, 1.0
        for won, (d, q) in zip(results, legs, strict=True):
            money, p = (money * d if won else 0.0), p * (q if won else 1 - q)
        mean += p * money
    assert found.ev is not None
    assert found.ev == pytest.approx(mean - 1.0, rel=1e-9, abs=1e-9)


@given(MONEY, PRICES, PRICES, st.floats(0.0, 1.0))
def test_a_middle_earns_the_same_on_both_sides(total: float, odds: float, other: float, p: float) -> None:
    m = calculators.middle_stakes(total, odds, other, p)
    assert close(sum(m.stakes), total)
    assert close(m.stakes[0] * odds - total, m.one)
    assert close(m.stakes[1] * other - total, m.one)
    assert close(m.ev or 0.0, p * m.both + (1 - p) * m.one)
    assert m.stakes == pytest.approx(arbitrage_stakes([odds, other], total).tolist(), rel=1e-9)
    if 0 < m.break_even <= 1:
        again = calculators.middle_stakes(total, odds, other, m.break_even)
        assert again.ev is not None
        assert close(again.ev, 0.0)


def test_a_middle_without_money_has_a_break_even() -> None:
    nothing, some = (calculators.middle_stakes(total, 1.0001, 1.0001) for total in (0.0, 100.0))
    assert nothing.break_even == some.break_even == pytest.approx(0.9998, abs=1e-4)
    assert (nothing.one, nothing.both, nothing.ev) == (0.0, 0.0, None)
    assert calculators.middle_stakes(0.0, 2.1, 2.1, 0.0).ev == 0.0


def test_a_free_bet_of_nothing_has_a_conversion() -> None:
    assert calculators.free_bet(0.0, 5.0, 1.25) == (0.0, 0.0, 0.8)


@given(PRICES, st.floats(0.0, 3.0))
def test_a_boost_raises_the_winnings_only(odds: float, share: float) -> None:
    assert calculators.boost(odds, share) - 1 == pytest.approx((odds - 1) * (1 + share))


@given(PRICES, st.floats(0.0, 3.0), MONEY, st.floats(0.0, 1e6))
def test_a_boost_adds_at_most_its_maximum(odds: float, share: float, stake: float, most: float) -> None:
    boosted = calculators.boost(odds, share, stake=stake, max_extra=most)
    assert stake * (boosted - odds) == pytest.approx(min(stake * (odds - 1.0) * share, most), rel=1e-6, abs=1e-6)
    assert close(calculators.boost(odds, share, stake=stake), calculators.boost(odds, share))


@given(MONEY, PRICES, PRICES, st.floats(0.0, 0.2))
def test_a_commission_is_taken_from_the_winnings_of_the_other_side(
    stake: float, odds: float, against: float, commission: float
) -> None:
    h = calculators.hedge(stake, odds, against, commission=commission)
    won = h.stake * (against - 1.0) * (1.0 - commission)
    assert close(stake * (odds - 1.0) - h.stake, h.profit)
    assert close(won - stake, h.profit)
    assert close(h.no_loss_stake * (against - 1.0) * (1.0 - commission), stake)
    f = calculators.free_bet(stake, odds, against, commission=commission)
    assert close(f.stake * (against - 1.0) * (1.0 - commission), f.profit)
    assert close(stake * (odds - 1.0) - f.stake, f.profit)


def test_a_parlay_without_probabilities_has_odds() -> None:
    assert calculators.parlay([2.0, 2.5, 3.0]) == (15.0, None, None)
    assert calculators.parlay(np.array([2.0, 2.5]), pl.Series([0.5, 0.5])) == (5.0, 0.25, 0.25)  # type: ignore[arg-type]


def test_calculators_are_public() -> None:
    for name in ("boost", "free_bet", "hedge", "qualifying"):
        assert getattr(oddsengine, name) is getattr(calculators, name)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calculators.hedge(-1.0, 2.0, 2.0), "stake must be a finite amount of 0 or more, got -1.0"),
        (lambda: calculators.free_bet(float("nan"), 2.0, 2.0), "amount must be a finite amount of 0 or more, got nan"),
        (lambda: calculators.hedge(1.0, 2.0, 2.0, commission=2.0), "commission must be from 0 to below 1, .*got 2"),
        (lambda: calculators.free_bet(1.0, 2.0, 2.0, commission=-0.1), "commission must be .*got -0.1"),
        (lambda: calculators.boost(2.0, 0.5, max_extra=5.0), "needs a stake above 0, got None"),
        (lambda: calculators.boost(2.0, 0.5, stake=0.0, max_extra=5.0), "needs a stake above 0, got 0.0"),
        (lambda: calculators.boost(2.0, 0.5, stake=1.0, max_extra=-5.0), "max_extra must be .*got -5.0"),
        (lambda: calculators.boost(2.0, 0.5, stake=-1.0), "stake must be .*got -1.0"),
        (lambda: calculators.parlay([]), "at least one leg, got none"),
        (lambda: calculators.parlay([2.0], [0.5, 0.5]), "same length, got 1 and 2"),
    ],
)
def test_what_is_no_amount_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("wrong", [1.0, 0.0, -110.0, float("nan"), float("inf")])
def test_odds_that_are_none_are_refused(wrong: float) -> None:
    for call in (
        lambda: calculators.hedge(1.0, wrong, 2.0), lambda: calculators.free_bet(1.0, 2.0, wrong),
        lambda: calculators.boost(wrong, 0.1), lambda: calculators.parlay([2.0, wrong], [0.5, 0.5]),
        lambda: calculators.middle_stakes(1.0, 2.0, wrong),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="decimal odds above 1"):
            call()


# ---- endpoints ----


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with running(tmp_path_factory.mktemp("calculators")) as server, server.client("pro") as client:
        yield client


def test_endpoints_say_what_the_library_does(client: httpx2.Client) -> None:
    def figures(path: str) -> dict[str, float | list[float] | None]:
        answer = client.get(f"/calculators/{path}")
        assert answer.status_code == 200, answer.text
        found: dict[str, float | list[float] | None] = answer.json()["data"]
        return found

    assert figures("hedge?stake=100&odds=3&against=2") == calculators.hedge(100, 3, 2)._asdict()
    free = calculators.free_bet(100, 5, 1.3, returned=True)
    assert figures("free-bet?stake=100&odds=5&against=1.3&returned=true") == pytest.approx(free._asdict(), abs=1e-4)
    boosted = figures("boost?odds=2&boost=50&probability=0.45")
    assert boosted == pytest.approx({"odds": 2.5, "ev_percent": 12.5, "kelly": float(kelly(0.45, 2.5))}, abs=1e-6)
    assert figures("boost?odds=2&boost=50") == {"odds": 2.5, "ev_percent": None, "kelly": None}
    assert figures("boost?odds=2&probability=0") == {"odds": 2.5, "ev_percent": -100.0, "kelly": 0.0}
    assert figures("middle?odds=1.95&against=1.95")["ev"] is None
    assert figures("middle?odds=1.95&against=1.95&probability=0")["ev"] == pytest.approx(-2.5)
    assert figures("parlay?odds=2,2.5&probabilities=0.5,0.45")["ev_percent"] == pytest.approx(12.5)
    assert figures("middle?total=100&odds=1.95&against=1.95&probability=0.1")["stakes"] == [50.0, 50.0]
    sure = figures("arbitrage?odds=2.1,2.05&total=100&step=5")
    assert sure == {"stakes": [50.0, 50.0], "payouts": [105.0, 102.5], "staked": 100.0,
                    "profit": pytest.approx(2.5)}  # fmt: skip
    assert figures("arbitrage?odds=2.1,2.0&total=1000&step=5&limits=100,500")["stakes"] == [100.0, 105.0]
    dear = figures("arbitrage?odds=1.9,1.9&total=100&step=0")
    assert dear["profit"] == pytest.approx(-5.0)
    short = figures("arbitrage?odds=3,3,3.1&total=90&step=1&limits=1,20,1000")  # no step fits a profit
    assert short["payouts"] == pytest.approx([3.0, 3.0, 3.0])


@pytest.mark.parametrize(
    "path",
    [
        "arbitrage?odds=2", "hedge?odds=1&against=2", "arbitrage?odds=2.1,x", "parlay?odds=2,2&probabilities=0.5",
        "arbitrage?odds=2.1,2&limits=1", "arbitrage?odds=2.1,2&total=1000000000&step=0.01", "boost?odds=2&boost=-1",
        "arbitrage?odds=2.1,2.1&limits=-0.5,10", "arbitrage?odds=2_0,1_0", "arbitrage?odds=inf,2",
        "hedge?odds=2&against=nan",
    ],
)  # fmt: skip
def test_what_cannot_be_calculated_is_refused(client: httpx2.Client, path: str) -> None:
    answer = client.get(f"/calculators/{path}")
    if path == "arbitrage?odds=2":  # one leg is a bet
        assert answer.status_code == 200
    else:
        assert answer.status_code == 400, answer.text


@pytest.mark.parametrize(
    "query",
    ["hedge?odds=%2B100&against=2", "hedge?odds=2&against=+100", "boost?odds=%20100", "arbitrage?odds=2.1,%2B150",
     "arbitrage?odds=+120,2.1", "parlay?odds=2,+150&probabilities=0.5,0.5", "free-bet?odds=-110&against=2"],
)  # fmt: skip
def test_american_odds_are_refused(client: httpx2.Client, query: str) -> None:
    """An unencoded plus sign arrives as a space."""
    answer = client.get(f"/calculators/{query}")
    assert answer.status_code == 400, answer.text
    assert "must be decimal odds" in answer.json()["error"]["message"]


def test_an_opportunity_is_explained_with_the_line_of_its_fair_price(client: httpx2.Client) -> None:
    rows = client.get("/opportunities/ev?limit=200").json()["data"]
    row = rows[0]
    found = client.get(f"/opportunities/explain/{row['id']}?event_id={row['game_id']}").json()["data"]
    assert found["figures"]["ev_percent"] == pytest.approx(row["ev_percentage"], abs=1e-3)
    assert row["odds_id"] in {price["odds_id"] for price in found["prices"] if price["role"] == "leg"}
    assert found["reference"] == row["reference"]
    own = client.get(f"/opportunities/ev?devig_book=circa&devig_method=shin&event={row['game_id']}&limit=1").json()[
        "data"
    ]
    assert own
    for each in own:
        path = f"/opportunities/explain/{each['id']}?event_id={row['game_id']}&devig_book=circa&devig_method=shin"
        found = client.get(path).json()["data"]
        assert found["reference"] == "circa"
        assert found["fair_line"][-1]["probability"] == pytest.approx(each["fair_probability"], abs=1e-6)
    assert client.get(f"/opportunities/explain/nothing?event_id={row['game_id']}").status_code == 404


def test_a_low_hold_is_explained_with_its_stakes(client: httpx2.Client) -> None:
    row = client.get("/opportunities/low-hold?max_hold=5&limit=1").json()["data"][0]
    found = client.get(f"/opportunities/explain/{row['id']}?event_id={row['event_id']}").json()["data"]
    legs = [price for price in found["prices"] if price["role"] == "leg"]
    total = sum(1.0 / leg["odds_decimal_after_commission"] for leg in legs)
    assert found["figures"]["hold_percent"] == pytest.approx((total - 1.0) * 100.0, abs=1e-3)
    assert found["formula"].startswith("hold_percent = (sum of 1 / odds_decimal - 1) x 100 of the best prices")
    shares = [100.0 / leg["odds_decimal_after_commission"] / total for leg in legs]
    assert [leg["stake_percent"] for leg in legs] == pytest.approx(shares, abs=1e-3)


@pytest.mark.parametrize(("book", "status"), [("mybookie", 403), ("MyBookie", 403), ("nobody", 404)])
def test_an_explanation_takes_no_reference_that_the_list_refuses(client: httpx2.Client, book: str, status: int) -> None:
    row = client.get("/opportunities/ev?min_ev=0&limit=1").json()["data"][0]
    listed = client.get(f"/opportunities/ev?min_ev=0&devig_book={book}")
    assert listed.status_code == 403 if status == 403 else listed.json()["data"] == []
    answer = client.get(f"/opportunities/explain/{row['id']}?event_id={row['game_id']}&devig_book={book}")
    assert answer.status_code == status
    assert status == 404 or answer.json()["error"]["message"].startswith("devig_book mybookie requires")
