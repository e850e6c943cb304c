"""Fills of a history: worked cases of two legs, and every order against a search through all snapshots."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine.execution.attempts import OUTCOMES

START = datetime(2026, 2, 7, 12, tzinfo=UTC)
GAME = {
    "event_id": "e1", "sport": "tennis", "league": "atp", "home_team": "X", "away_team": "Y",
    "market_type": "moneyline", "event_start_time": START + timedelta(hours=3),
}  # fmt: skip
AT_ONCE = {"novig": 0.0, "draftkings": 0.0, "fanduel": 0.0}
ARBS: dict[str, Any] = {"kinds": ["arbitrage"], "stakes": [100.0]}


def price(second: float, book: str, side: str, odds: float | None, levels: str | None = None, **more: Any) -> Any:
    """A price at a time; without odds it is suspended."""
    return {
        **GAME, "last_seen_at": START + timedelta(seconds=second), "sportsbook": book, "selection": side,
        "odds_decimal": odds, "levels": levels, "is_active": odds is not None, "max_bet": None, **more,
    }  # fmt: skip


def history(*rows: dict[str, Any], looks: Iterable[int] = range(5, 61, 5)) -> pl.DataFrame:
    """Prices in order of time, and again at each look as they stand by then."""
    every = list(rows)
    for second in looks:
        at = START + timedelta(seconds=second)
        known = {(row["sportsbook"], row["selection"]): row for row in _ordered(rows) if row["last_seen_at"] <= at}
        every += [{**row, "last_seen_at": at} for row in known.values() if row["last_seen_at"] < at]
    return pl.DataFrame(_ordered(every), infer_schema_length=None)


def _ordered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["last_seen_at"])


OPENING = (
    price(0, "novig", "X", 2.2, "2.2:100 2.16:200 2.1:500"), price(0, "novig", "Y", 1.6, "1.6:500"),
    price(0, "draftkings", "Y", 1.9, max_bet=300.0), price(0, "draftkings", "X", 1.8, max_bet=300.0),
    price(0, "fanduel", "Y", 1.85, max_bet=300.0), price(0, "fanduel", "X", 1.85, max_bet=300.0),
)  # fmt: skip
LAST = price(60, "fanduel", "X", 1.85, max_bet=300.0)


def attempt(frame: Any, bound: str = "least", **how: Any) -> dict[str, Any]:
    """The first attempt at an arbitrage of a history."""
    found = oe.fills(frame, **{**ARBS, "delays": AT_ONCE, **how})
    return found.attempts.filter(bound=bound).row(0, named=True)


# ---- one arbitrage ----


def test_an_arbitrage_that_stands_is_filled_at_equal_payouts() -> None:
    row = attempt(history(*OPENING, LAST))
    total = 1 / 2.2 + 1 / 1.9
    assert row["outcome"] == "whole"
    assert row["reason"] is None
    assert row["there"] is True
    assert row["units"] == pytest.approx([100 / total] * 2)
    assert row["staked"] == pytest.approx(100.0)
    assert row["profit"] == row["held"] == pytest.approx(100 / total - 100)
    assert row["shown"] == pytest.approx(100 / total - 100)


def test_no_more_is_taken_than_is_worth_its_cost() -> None:
    """2.2 and 2.16 against 1.9 are arbitrages, 2.1 against 1.9 is none."""
    row = attempt(history(*OPENING, LAST), stakes=[5000.0])
    assert row["outcome"] == "part"
    units = min(100 * 2.2 + 200 * 2.16 + 500 * 2.1, 300 * 1.9)
    assert 1 / 2.1 + 1 / 1.9 > 1.0
    assert 1 / 2.16 + 1 / 1.9 < 1.0
    assert row["units"] == pytest.approx([min(units, 100 * 2.2 + 200 * 2.16)] * 2)


def test_the_other_leg_that_fails_is_hedged_at_the_best_price_that_is_left() -> None:
    """Draftkings moves before its order arrives; fanduel has the next best price of that side."""
    moved = price(4, "draftkings", "Y", 1.5, max_bet=300.0)
    how: dict[str, Any] = {"delays": {"novig": 1.0, "draftkings": 5.0, "fanduel": 2.0}}
    row = attempt(history(*OPENING, moved, price(8, "fanduel", "Y", 1.85, max_bet=300.0), LAST), **how)
    x = row["units"][0]
    assert row["units"] == pytest.approx([x, 0.0])
    assert row["hedge_units"] == pytest.approx([0.0, x])
    assert row["outcome"] == "hedged"
    assert row["reason"] == "price moved"
    assert row["hedge_cost"] == pytest.approx(x / 1.85)
    assert row["profit"] == pytest.approx(x - x / 2.2 - x / 1.85)
    assert row["held"] is None  # there is no close by which the open leg could be valued


def test_a_leg_without_a_hedge_is_left_open() -> None:
    gone = [price(4, book, "Y", None) for book in ("draftkings", "fanduel", "novig")]
    row = attempt(history(*OPENING, *gone, LAST), delays={"novig": 1.0, "draftkings": 5.0, "fanduel": 2.0})
    assert (row["outcome"], row["reason"]) == ("open", "suspended")
    assert row["profit"] is None
    assert row["staked"] == pytest.approx(row["costs"][0])


def test_the_thinnest_leg_is_first_and_the_other_for_what_it_got() -> None:
    thin = price(2, "novig", "X", 2.2, "2.2:10")
    frame = history(*OPENING, thin, LAST)
    later: dict[str, Any] = {"delays": {"novig": 2.0, "draftkings": 3.0, "fanduel": 0.0}}
    row = attempt(frame, **later)
    assert row["units"] == pytest.approx([22.0, 22.0])  # novig's level has less room than draftkings' limit
    assert (row["outcome"], row["reason"]) == ("part", "not enough")
    row = attempt(frame, legs="together", **later)
    assert row["units"] == pytest.approx([22.0, 100 / (1 / 2.2 + 1 / 1.9)])
    assert row["outcome"] == "hedged"  # at novig's X, or another's


def test_of_two_snapshots_around_an_order_one_is_at_least_and_one_at_most() -> None:
    frame = history(*OPENING, price(10, "novig", "X", 2.2, "2.2:5"), LAST, looks=())
    how: dict[str, Any] = {"delays": {"novig": 4.0, "draftkings": 0.0}}
    assert attempt(frame, "least", **how)["units"][0] == pytest.approx(11.0)
    assert attempt(frame, "most", **how)["units"][0] == pytest.approx(100 / (1 / 2.2 + 1 / 1.9))


def test_a_history_without_snapshots_after_an_order_says_nothing_at_least() -> None:
    frame = history(*OPENING, looks=())
    assert attempt(frame, "least", delays=2.0)["reason"] == "unobserved"
    late = history(*OPENING, price(3600, "novig", "X", 2.2, "2.2:100"), looks=())
    rows = [attempt(late, bound, delays=2.0, guards=[]) for bound in ("least", "most")]
    assert [row["outcome"] for row in rows] == ["none", "whole"]
    assert [row["there"] for row in rows] == [None, None]


def test_a_price_that_turned_in_play_is_not_bet() -> None:
    live = [{**row, "is_live": True, "last_seen_at": START + timedelta(seconds=3)} for row in OPENING]
    row = attempt(history(*OPENING, *live, LAST), delays=5.0, legs="together")
    assert (row["outcome"], row["reason"]) == ("none", "in play")


def test_bets_in_play_wait_for_the_venue() -> None:
    rows = [{**row, "is_live": True, "bet_delay": 8.0 if row["sportsbook"] == "novig" else None} for row in OPENING]
    gone = price(6, "novig", "X", 1.7, "1.7:100", is_live=True, bet_delay=8.0)
    frame = history(*rows, gone, price(9, "fanduel", "X", 1.85, is_live=True, max_bet=300.0))
    assert attempt(frame, delays=0.0)["reason"] == "price moved"


def test_all_or_nothing() -> None:
    frame = history(*OPENING, price(1, "novig", "X", 2.2, "2.2:10"), LAST)
    row = attempt(frame, delays={"novig": 1.0, "draftkings": 1.0}, all_or_nothing=True)
    assert (row["outcome"], row["reason"]) == ("none", "not in whole")


def test_what_is_left_of_an_order_rests_and_is_met() -> None:
    """Novig shows 10 when the order arrives; later others offer more at its price."""
    shrinks = price(1, "novig", "X", 2.16, "2.16:50")
    back = price(20, "novig", "X", 2.2, "2.2:500")
    frame = history(*OPENING, shrinks, back, LAST)
    how: dict[str, Any] = {"delays": {"novig": 1.0, "draftkings": 1.0}, "legs": "together"}
    alone = attempt(frame, **how)
    assert alone["units"][0] == 0.0
    rested = attempt(frame, rest_s=30.0, **how)
    assert rested["units"] == pytest.approx([100 / (1 / 2.2 + 1 / 1.9)] * 2)
    assert rested["outcome"] == "whole"
    assert attempt(frame, rest_s=10.0, **how)["units"][0] == 0.0
    # At most, the queue may have passed; it is empty here: nobody offers Y at 2.2 / 1.2.
    assert attempt(frame, "most", rest_s=10.0, **how)["units"][0] > 0.0


def test_the_leg_after_an_order_that_rested_finds_what_was_shown_when_it_arrived() -> None:
    """Also if the feed was silent in the meantime: the order of 2 s is answered at 62, and rests until 12."""
    rows = [
        price(0, "novig", "X", 2.1, max_bet=100.0), price(0, "novig", "Y", 1.7, max_bet=50.0),
        price(0, "fanduel", "X", 1.8, max_bet=1000.0), price(0, "fanduel", "Y", 2.05, max_bet=1000.0),
        price(1, "novig", "X", 2.1, max_bet=20.0), price(13, "fanduel", "Y", None),
        price(20, "fanduel", "Y", 2.05, max_bet=1000.0), price(62, "fanduel", "X", 1.81, max_bet=1000.0),
        price(63, "fanduel", "Y", 2.06, max_bet=1000.0), price(75, "fanduel", "Y", 2.04, max_bet=1000.0),
    ]  # fmt: skip
    found = oe.fills(history(*rows, looks=()), **ARBS, delays=2.0, rest_s=10.0, orders=True)
    assert found.orders is not None
    first, second = found.orders.filter(bound="least", is_hedge=False)[:2].rows(named=True)
    assert (first["sportsbook"], first["reason"]) == ("novig", "not enough")
    assert second["arrives_at"] == START + timedelta(seconds=14)  # when it was suspended
    assert (second["units"], second["reason"]) == (0.0, "suspended")


def test_what_met_an_order_that_rested_is_used_too() -> None:
    back = price(20, "novig", "X", 2.2, "2.2:30")
    better = price(30, "fanduel", "Y", 1.95, max_bet=300.0)
    frame = history(*OPENING, price(1, "novig", "X", 2.16, "2.16:50"), back, better, LAST)
    how: dict[str, Any] = {
        "legs": "together",
        "rest_s": 60.0,
        "delays": {"novig": 1.0, "draftkings": 1.0, "fanduel": 0.0},
    }
    found = oe.fills(frame, kinds=["arbitrage"], stakes=[100.0], min_profit=0.0, **how).attempts
    rows = found.filter(bound="least").sort("born_at")
    assert rows["units"].list.first().to_list()[0] == pytest.approx(30 * 2.2)
    assert rows.filter(pl.col("born_at") >= START + timedelta(seconds=20))["units"].list.first().to_list() == [0.0] * (
        rows.height - 1
    )


def test_liquidity_is_used_once() -> None:
    """A level of novig is in two arbitrages, one after the other."""
    better = price(5, "fanduel", "Y", 1.95, max_bet=300.0)
    small = [price(0, "novig", "X", 2.2, "2.2:50"), *OPENING[1:]]
    found = oe.fills(history(*small, better, LAST), kinds=["arbitrage"], stakes=[105.0, 1000.0], delays=AT_ONCE)
    by = found.attempts.filter(bound="least").sort("stake", "born_at")
    assert by["outcome"].to_list() == ["whole", "part", "part", "none"]
    assert by["reason"].to_list()[-1] == "taken"
    # At a stake of 105 the first attempt leaves something to the second; at 1000, nothing.
    first, second = by.filter(stake=105.0)["units"].list.first()
    assert first + second == pytest.approx(50 * 2.2)
    more = price(3, "novig", "X", 2.2, "2.2:80")  # 30 are new
    found = oe.fills(history(*small, more, better, LAST), kinds=["arbitrage"], stakes=[1000.0], delays=AT_ONCE)
    first, second = found.attempts.filter(bound="least").sort("born_at")["units"].list.first()
    assert (first, second) == pytest.approx((110.0, 66.0))


def test_sizes_in_other_money_need_a_rate() -> None:
    pounds = history(
        *({**row, "sportsbook": "smarkets"} if row["sportsbook"] == "novig" else row for row in OPENING), LAST
    )
    with pytest.raises(ValueError, match="sizes at smarkets are in GBP: give its exchange rate, such as rates="):
        oe.fills(pounds, **ARBS)
    row = attempt(pounds, stakes=[1000.0], rates={"USD": 1, "GBP": 2.0})
    assert row["units"][0] == pytest.approx(300 * 1.9)  # draftkings' limit, not the level of 100 pounds


def test_payouts_are_what_all_venues_sell() -> None:
    """Kalshi sells whole contracts, and is the deeper leg."""
    kalshi = [price(0, "kalshi", "X", 2.2, "2.2:1000", bet_step=1 / 2.2), price(0, "kalshi", "Y", 1.5, "1.5:1000")]
    other = [price(0, "draftkings", "Y", 2.0, max_bet=100.0), price(0, "draftkings", "X", 1.7, max_bet=100.0)]
    for legs in ("thinnest", "together"):
        row = attempt(history(*kalshi, *other, LAST), delays=0.0, legs=legs)
        assert row["outcome"] == "whole"
        assert row["units"] == [102.0, 102.0]


def test_a_leg_that_is_too_small_stops_the_others() -> None:
    rows = [price(0, "novig", "X", 1.1, "1.1:500"), price(0, "novig", "Y", 8.0, "8:500"),
            price(0, "betmgm", "Y", 13.0, max_bet=300.0, min_bet=2.0)]  # fmt: skip
    row = attempt(history(*rows, LAST), stakes=[10.0], guards=[])
    assert (row["outcome"], row["reason"], row["staked"]) == ("none", "too small", 0.0)


def test_a_hedge_takes_the_best_prices_not_the_largest() -> None:
    gone = price(4, "draftkings", "Y", None)
    poor = price(0, "novig", "Y", 1.1, "1.1:5000")
    small = price(0, "fanduel", "Y", 1.85, max_bet=50.0)
    rows = [row for row in OPENING if (row["sportsbook"], row["selection"]) not in {("novig", "Y"), ("fanduel", "Y")}]
    frame = history(*rows, poor, small, gone, LAST)
    row = attempt(frame, delays={"novig": 1.0, "draftkings": 5.0, "fanduel": 2.0}, guards=[])
    units = row["units"][0]
    assert row["hedge_units"][1] == pytest.approx(units)
    assert row["hedge_cost"] == pytest.approx(50.0 + (units - 50 * 1.85) / 1.1)


def test_a_leg_that_arrived_while_the_first_was_not_seen_is_judged_by_the_looks_around_it() -> None:
    """The first leg is seen again only after the price of the second has come back."""
    changes = [price(2, "draftkings", "Y", 1.5, max_bet=300.0), price(15, "draftkings", "Y", 1.9, max_bet=300.0),
               price(20, "novig", "X", 2.2, "2.2:100 2.16:200 2.1:500")]  # fmt: skip
    how: dict[str, Any] = {"delays": {"novig": 1.0, "draftkings": 3.0, "fanduel": 0.0}, "min_profit": 1.0}
    row = attempt(history(*OPENING, *changes, LAST, looks=()), **how)
    assert row["units"][0] > 0.0
    assert (row["units"][1], row["reason"]) == (0.0, "price moved")


def test_what_the_venue_refuses_does_not_rest() -> None:
    rows = [{**row, "min_bet": 60.0} if row["sportsbook"] == "novig" else row for row in OPENING]
    for rest_s in (0.0, 20.0):
        row = attempt(history(*rows, LAST), rest_s=rest_s, legs="together")
        assert (row["outcome"], row["reason"]) == ("none", "too small")


def test_levels_of_equal_odds_are_one() -> None:
    better = price(5, "fanduel", "Y", 1.95, max_bet=300.0)
    double = [price(0, "novig", "X", 2.2, "2.2:50 2.2:50"), *OPENING[1:]]
    found = oe.fills(history(*double, better, LAST), kinds=["arbitrage"], stakes=[120.0], delays=AT_ONCE).attempts
    first, second = found.filter(bound="least").sort("born_at")["units"].list.first()
    assert first + second == pytest.approx(220.0)


# ---- any history, order by order ----


def snapshots(frame: pl.DataFrame) -> dict[tuple[str, str], list[tuple[datetime, dict[float, float]]]]:
    """Of each price, when it was seen and its levels: odds and units of payout."""
    out: dict[tuple[str, str], list[tuple[datetime, dict[float, float]]]] = {}
    for row in frame.sort("last_seen_at", maintain_order=True).iter_rows(named=True):
        levels = {}
        for text in (row["levels"] or "").split() if row["is_active"] else ():
            odds, size = map(float, text.split(":"))
            levels[odds] = odds * size
        out.setdefault((row["sportsbook"], row["selection"]), []).append((row["last_seen_at"], levels))
    return out


def searched(frame: pl.DataFrame, orders: pl.DataFrame) -> list[float]:
    """What each order gets, by going through all snapshots of its price for each of them."""
    looks, ours, out = snapshots(frame), dict[Any, list[Any]](), []
    times = sorted({row[0] for row in frame.select("last_seen_at").iter_rows()})
    for order in orders.iter_rows(named=True):
        of = order["sportsbook"], order["selection"]
        arrives = order["arrives_at"]
        answered = next(
            (
                time
                for time in times
                if time >= arrives
                and (time >= arrives + timedelta(seconds=30) or [at for at, _ in looks[of] if arrives <= at <= time])
            ),
            None if arrives > times[-1] else times[-1],
        )
        if answered is None:
            out.append(0.0)
            continue
        before = [time for time in times if time < answered][-1]
        mine = ours.setdefault((order["kind"], of), [])

        def left(when: datetime, of: Any = of, mine: Any = mine, answered: Any = answered) -> dict[float, float]:
            """What is there at a time, without what was ours and has not left since."""
            shown = next((levels for time, levels in reversed(looks[of]) if time <= when), {})
            left = dict(shown)
            for taken_at, taken in mine:
                path = [levels for time, levels in looks[of] if taken_at < time <= when]
                for odds, units in taken.items():
                    held = units
                    for levels in path:
                        held = min(held, levels.get(odds, 0.0))
                    if odds in left:
                        left[odds] -= held
            return left

        got: list[dict[float, float]] = []
        for when in (answered, before) if arrives < answered else (answered,):
            need, parts = order["wanted"], {}
            for odds, units in sorted(left(when).items(), reverse=True):
                if odds >= order["limit_odds"] - 1e-9 and units > 1e-9 and need > 1e-9:
                    parts[odds] = min(units, need)
                    need -= parts[odds]
            got.append(parts)
        least = min(got, key=lambda parts: sum(parts.values()))
        mine.append((answered, least))
        out.append(sum(least.values()))
    return out


ladders = st.lists(
    st.tuples(st.sampled_from([190, 200, 210, 220]), st.integers(1, 9)), max_size=3, unique_by=lambda level: level[0]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["novig", "draftkings"]), st.sampled_from("XY"), ladders),
                min_size=2, max_size=14), st.integers(0, 6), st.sampled_from(["ev", "low_hold"]))  # fmt: skip
def test_every_order_gets_what_a_search_through_all_snapshots_says(
    changes: list[tuple[int, str, str, list[tuple[int, int]]]], delay: int, kind: str
) -> None:
    rows, second = [], 0
    sharp = [price(0, "pinnacle", side, 1.95) for side in "XY"]
    for after, book, side, levels in changes:
        second += after
        text = " ".join(f"{odds / 100}:{10 * size}" for odds, size in sorted(levels, reverse=True))
        rows.append(price(second, book, side, max(levels)[0] / 100 if levels else None, text or None))
    frame = history(*sharp, *rows, price(second + 20, "pinnacle", "X", 1.95), looks=())
    found = oe.fills(
        frame, kinds=[kind], sharp="pinnacle", method="power", min_ev=-10.0, max_hold=30.0, delays=float(delay),
        books=["novig", "draftkings"], stakes=[60.0], legs="together", orders=True, guards=[],
    )  # fmt: skip
    assert found.orders is not None
    orders = found.orders.filter(~pl.col("is_hedge"), bound="least")
    if kind == "low_hold" and found.orders["is_hedge"].any():
        return  # hedges take liquidity between them
    expected = searched(frame, orders)
    assert orders["units"].to_list() == pytest.approx(expected)


# ---- the report ----


@pytest.fixture(scope="module")
def deep() -> pl.DataFrame:
    books = ["pinnacle", "kalshi", "novig", "draftkings", "fanduel"]
    world = oe.World(7, events=3, live=0.0, tick=20.0, levels=True, main_lines=True, exchange_hold=0.6, books=books)
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(600.0) for quote in batch.quotes]
    return pl.DataFrame(rows, infer_schema_length=None)


def test_figures_of_the_table_are_those_of_the_attempts(deep: pl.DataFrame) -> None:
    found = oe.fills(deep, min_ev=0.0, stakes=[10, 1000])
    rows, table = found.attempts, found.table(["kind", "stake", "books"])
    assert set(rows["outcome"].unique()) <= {*OUTCOMES}
    assert table["n"].sum() == rows.height > 20
    one = table.filter(pl.col("n") == pl.col("n").max()).row(0, named=True)
    books = pl.col("sportsbooks").list.sort().list.join(", ") == one["books"]
    some = rows.filter(books, kind=one["kind"], stake=one["stake"], bound=one["bound"])
    assert one["whole"] == pytest.approx(100 * some.filter(outcome="whole").height / some.height)
    known = some.filter(pl.col("staked") > 0).drop_nulls("profit")
    assert one["worth"] == pytest.approx(100 * float(known["profit"].sum()) / float(known["staked"].sum()))
    assert sum(one[name] for name in OUTCOMES) == pytest.approx(100)
    text = str(found)
    assert text.count("In percent:") == rows["kind"].n_unique()
    assert len(found.lines()) == 2 * rows["kind"].n_unique()
    least = rows.group_by("kind", "stake").agg(
        pl.col("staked").filter(bound=name).sum().alias(name) for name in ("least", "most")
    )
    assert (least["least"] <= least["most"] + 1e-9).all()


def test_a_file_played_in_two_processes_says_the_same(deep: pl.DataFrame, tmp_path: Path) -> None:
    deep.write_parquet(path := tmp_path / "deep.parquet")
    whole = oe.fills(deep, orders=True)
    parts = oe.fills(path, orders=True, processes=2)
    assert parts.attempts.equals(whole.attempts)
    assert parts.orders is not None
    assert whole.orders is not None
    assert parts.orders.equals(whole.orders)


def test_a_history_that_is_there_twice_is_refused(deep: pl.DataFrame, tmp_path: Path) -> None:
    path, link = tmp_path / "a.parquet", tmp_path / "b.parquet"
    deep.write_parquet(path)
    link.symlink_to(path)
    for twice in ([str(path), path], [path, str(link)]):
        with pytest.raises(ValueError, match=r"a history must be given once, got '.*a.parquet' twice"):
            oe.fills(twice)


def test_nothing_shown_is_an_empty_report(deep: pl.DataFrame) -> None:
    found = oe.fills(deep, min_profit=50.0, kinds=["arbitrage"])
    assert str(found) == "nothing was shown"
    assert found.attempts.is_empty()
    assert found.table().is_empty()
    assert found.lines() == []


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"stakes": []}, "stakes must have 1 to 20 amounts, got 0"),
        ({"stakes": 10}, "stakes must be a list of amounts, got 10"),
        ({"stakes": [0]}, "a stake must be from 0.01 to 1,000,000,000, got 0"),
        ({"delays": {"kalshi": (3, 1)}}, r"the delay of kalshi must be from 0 to 3600 seconds, the least first"),
        ({"delays": {"Kalshi": 3, "kalshi": 1}}, "delays: Kalshi and kalshi are one book, kalshi"),
        ({"delays": {5: 1}}, "the keys of delays must be book ids, got 5"),
        ({"delays": "fast"}, "delays must be seconds, or the least and the most of them, got 'fast'"),
        ({"delays": {"draftkingz": 5}}, "delays.*draftkingz.*draftkings"),
        ({"all_or_nothing": "no"}, "all_or_nothing must be True or False, got 'no'"),
        ({"legs": "any"}, "legs must be one of thinnest, together, got 'any'"),
        ({"rest_s": -1}, "rest_s must be"),
        ({"rates": {"GBP": 1.2}}, "the first of rates must be 1"),
        ({"rates": {"EUR": 1}}, "rates must be USD per unit of each currency, with 1 for USD, got {'EUR': 1}"),
    ],
)
def test_what_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        oe.fills(history(*OPENING), **how)


def test_a_table_is_by_known_columns() -> None:
    with pytest.raises(
        ValueError, match="by must be one of kind, stake, sport, league, market_type, is_live, books, got 'venue'"
    ):
        oe.fills(history(*OPENING, LAST)).table(["venue"])
