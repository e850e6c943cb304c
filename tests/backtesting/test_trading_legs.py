"""Strategies that take arbitrages and low holds: what is chosen, and that a trader on paper is the backtest."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import oddsengine as oe
from oddsengine.backtesting.backtest import Backtest, backtest
from oddsengine.backtesting.strategy import Strategy
from oddsengine.backtesting.summary import lines
from oddsengine.backtesting.trader import Trader

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ARBS = Strategy(kinds=("arbitrage",), staking="flat", size=0.1)
HOLDS = Strategy(kinds=("low_hold",), staking="flat", size=0.1)
ALL = Strategy(
    kinds=("ev", "arbitrage", "low_hold"), min_ev=1.0, min_profit=0.0, staking="flat", size=0.15, live=True,
    max_event=300.0, max_daily_stake_per_book={"novig": 400.0}, different_terms=True,
)  # fmt: skip


def price(
    minutes: float, book: str, side: str, odds: float, *, event: str = "e1", market: str = "total_points", **of: Any
) -> dict[str, Any]:  # fmt: skip
    """A total of a basketball game that starts two hours after noon."""
    return {
        "event_id": event, "sport": "basketball", "league": "nba", "home_team": "Lakers", "away_team": "Celtics",
        "event_start_time": NOON + timedelta(hours=2), "market_type": market, "line": 220.5,
        "last_seen_at": NOON + timedelta(minutes=minutes), "sportsbook": book, "selection": side,
        "odds_decimal": odds, **of,
    }  # fmt: skip


def both(minutes: float, over: float, under: float, **of: Any) -> list[dict[str, Any]]:
    """FanDuel's best over, and the best under at Pinnacle."""
    return [
        price(minutes, "fanduel", "Over", over, **of), price(minutes, "fanduel", "Under", 1.7, **of),
        price(minutes, "pinnacle", "Over", 1.8, **of), price(minutes, "pinnacle", "Under", under, **of),
    ]  # fmt: skip


def history(*snapshots: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([row for rows in snapshots for row in rows], infer_schema_length=None)


def both_ways(rule: Strategy, *snapshots: list[dict[str, Any]], **of: Any) -> Backtest:
    """A backtest, whose trades and positions are those of a trader on an engine."""
    found = backtest(history(*snapshots), rule, **of)
    engine = oe.Engine()
    trader = Trader(engine, rule, **of)
    for rows in snapshots:
        trader.follow(engine.step(rows, now=rows[0]["last_seen_at"]))
    assert_frame_equal(found.trades.select(trader.trades().columns), trader.trades())
    assert_frame_equal(found.positions.select(trader.positions().columns), trader.positions())
    return found


SCORE = pl.DataFrame({"event_id": ["e1"], "home_score": [112], "away_score": [110]})


def test_an_arbitrage_is_bet_leg_by_leg_and_settled() -> None:
    past = history(*(both(at, 2.1, 2.05) for at in (0, 1, 2)))
    found = backtest(past, ARBS, results=SCORE)
    first, second = found.trades.rows(named=True)
    assert (first["sportsbook"], first["selection"], first["wanted"]) == ("fanduel", "Over", 49.39)
    assert (second["sportsbook"], second["selection"], second["wanted"]) == ("pinnacle", "Under", 50.59)
    assert second["placed_at"] - first["placed_at"] == timedelta(seconds=5)  # as the first was answered then
    assert first["opportunity_id"] == second["opportunity_id"]
    (row,) = found.positions.rows(named=True)
    assert (row["kind"], row["outcome"], row["sportsbooks"]) == ("arbitrage", "whole", ["fanduel", "pinnacle"])
    assert row["shown_percent"] == pytest.approx(100.0 / (1.0 / 2.1 + 1.0 / 2.05) - 100.0)
    assert row["locked"] == pytest.approx(50.59 * 2.05 - 99.98)
    assert row["profit"] == pytest.approx(49.39 * 2.1 - 99.98)
    summary = found.summary()
    (of,) = summary.positions
    assert (of.kind, of.decided, of.outcomes, of.settled) == ("arbitrage", 1, {"whole": 1}, 1)
    assert (of.locked, of.worst, of.profit) == pytest.approx((row["locked"], 0.0, row["profit"]))
    assert dict(lines(summary)).items() >= {
        "arbitrage": "1: 1 whole", "arbitrage: staked": "99.98", "arbitrage: profit of 1 settled": "3.74",
        "EV shown": "unknown", "profit": "3.74",
    }.items()  # fmt: skip
    assert found.by("kind").select("kind", "bets").rows() == [("arbitrage", 2)]
    assert backtest(past, ARBS).positions.select("profit", "expected_profit").row(0) == (None, None)


@pytest.mark.parametrize("kind", ["arbitrage", "low_hold"])
def test_three_outcomes_are_three_legs(kind: str) -> None:
    best, sides = {"arbitrage": 3.1, "low_hold": 2.98}[kind], ("Lakers", "Draw", "Celtics")
    three = {"sport": "soccer", "league": "epl", "market_type": "moneyline", "line": None}
    rows = [
        price(0, book, side, best if at == own else 2.5) | three
        for at, book in enumerate(("fanduel", "pinnacle", "caesars")) for own, side in enumerate(sides)
    ]  # fmt: skip
    snapshots = [[row | {"last_seen_at": NOON + timedelta(minutes=at)} for row in rows] for at in range(5)]
    found = backtest(history(*snapshots), Strategy(kinds=(kind,), staking="flat", size=0.03), results=SCORE)
    assert both_ways(Strategy(kinds=(kind,), staking="flat", size=0.03), *snapshots).trades.height == 3
    assert found.trades["stake"].to_list() == [10.0] * 3
    assert found.trades["placed_at"].diff().to_list()[1:] == [timedelta(seconds=5)] * 2
    row = found.positions.row(0, named=True)
    assert (row["kind"], row["outcome"], len(set(row["sportsbooks"]))) == (kind, "whole", 3)
    assert row["locked"] == pytest.approx(row["profit"]) == pytest.approx(10.0 * best - 30.0)


def test_what_is_left_open() -> None:
    moved = both_ways(ARBS, both(0, 2.1, 2.05), both(1, 2.1, 2.0))
    assert moved.trades.select("status", "reason").rows() == [("filled", None), ("rejected", "price moved")]
    assert moved.positions.select("outcome", "reason", "locked").row(0) == ("open", "price moved", -49.39)
    (of,) = moved.summary().positions
    assert (of.worst, of.locked, of.settled) == (-49.39, 0.0, 0)
    assert ("arbitrage: worst case (open)", "-49.39") in lines(moved.summary())
    gone = both_ways(ARBS, both(0, 2.1, 2.05), both(1, 2.05, 2.05))
    assert gone.trades.select("status", "reason").rows() == [
        ("rejected", "price moved"),
        ("not sent", "leg before failed"),
    ]
    assert (gone.summary().placed, gone.positions["outcome"].item(), gone.positions["locked"].item()) == (
        1,
        "none",
        0.0,
    )
    unanswered = both_ways(ARBS, both(0, 2.1, 2.05), latency_s=90.0)
    assert unanswered.trades["status"].to_list() == ["waiting", "planned"]
    assert unanswered.positions.select("outcome", "locked").row(0) == ("waiting", None)
    assert ("arbitrage", "1: 1 waiting") in lines(unanswered.summary())
    at_once = both_ways(ARBS, both(0, 2.1, 2.05), latency_s=0.0)
    assert at_once.positions["outcome"].to_list() == ["whole"]


def test_no_leg_is_sent_after_the_start_or_at_odds_of_another_time() -> None:
    """In a history with hours between snapshots, both are answered as if the book had accepted the odds decided."""
    later = [both(at, 1.5, 1.5) for at in (150, 400)]
    found = backtest(history(both(0, 2.1, 2.05), *later), ARBS, results=SCORE)
    assert found.trades["reason"].to_list() == ["unobserved"] * 2
    assert found.trades["placed_at"].diff().to_list()[1:] == [timedelta(seconds=5)]
    assert (found.trades["placed_at"] < found.trades["event_start_time"]).all()


def test_a_bet_does_not_take_the_size_that_a_leg_needs() -> None:
    """Of a price that takes 30, a low hold gets what the bet on it has left."""
    rule = Strategy(kinds=("ev", "arbitrage"), min_ev=0.1, staking="flat", size=0.1)
    snaps = [[row | {"max_bet": 30.0} for row in both(at, 2.1, 2.05)] for at in range(4)]
    found = backtest(history(*snaps), rule)
    legs = found.trades.filter(pl.col("kind") != "ev")
    assert found.positions["outcome"].to_list() == ["whole"]
    assert legs["status"].to_list() == ["filled"] * 2
    taken = found.trades.filter(status="filled").group_by("odds_id").agg(pl.col("stake").sum())["stake"]
    assert taken.max() <= 30.0  # type: ignore[operator]


def test_what_one_leg_is_worth_at_the_close_is_not_what_all_are() -> None:
    others = [(book, 1.95, 1.9) for book in ("betmgm", "caesars")]
    snaps = [
        [*both(at, 2.1, 2.05), *(price(at, book, side, odds) for book, *two in others
         for side, odds in zip(("Over", "Under"), two, strict=True))]
        for at in (0, 1, 2, 3, 100, 115, 119)
    ]  # fmt: skip
    found = backtest(history(*snaps), ARBS)
    known = found.trades["expected_profit"].is_not_null()
    assert known.all() or not known.any()
    assert found.summary().expected_profit == pytest.approx(found.positions["expected_profit"].fill_null(0.0).sum())


def test_a_position_that_waits_has_no_result() -> None:
    found = backtest(history(both(0, 2.1, 2.05), both(1, 2.1, 2.05)), ARBS, results=SCORE, latency_s=45.0)
    assert found.positions.select("outcome", "profit", "reason").row(0) == ("waiting", None, None)
    assert found.summary().positions[0].settled == 0


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("choose_arbitrages", None, "choose_arbitrages must return rows of the polars frame that it gets, got None"),
        ("choose_arbitrages", pl.DataFrame({"x": [1]}), "choose_arbitrages must return rows of the polars frame"),
        ("total_stake", None, "total_stake must be a finite number, got None"),
        ("total_stake", float("nan"), "total_stake must be a finite number, got nan"),
    ],
)
def test_what_an_override_may_return(name: str, answer: Any, message: str) -> None:
    rule = type("Own", (Strategy,), {name: lambda *_: answer})(kinds=("arbitrage",))
    with pytest.raises(ValueError, match=message):
        backtest(history(both(0, 2.1, 2.05), both(1, 2.1, 2.05)), rule)


def test_the_thinnest_leg_is_sent_first_for_what_it_has() -> None:
    def snap(at: float, size: float) -> list[dict[str, Any]]:
        under = {"levels": f"2.05:{size}", "contract_fee": 0.0}
        rows = both(at, 2.1, 2.05)
        return [row | (under | {"sportsbook": "kalshi"} if row["odds_decimal"] == 2.05 else {}) for row in rows]

    found = both_ways(ARBS, snap(0, 30.0), snap(1, 12.0), snap(2, 12.0))
    assert found.trades.select("sportsbook", "leg", "reason").rows() == [
        ("kalshi", 1, "not enough"),
        ("fanduel", 0, None),
    ]
    kalshi, fanduel = found.trades["stake"].to_list()
    assert (kalshi, fanduel) == (pytest.approx(12.0, abs=0.01), pytest.approx(12.0 * 2.05 / 2.1, abs=0.02))
    assert found.positions.select("outcome", "sportsbooks").row(0) == ("part", ["fanduel", "kalshi"])
    assert found.positions["wanted"].item() == pytest.approx(30.0 + 30.0 * 2.05 / 2.1, abs=0.05)


def test_unknown_sizes_are_sent_to_sportsbooks_before_exchanges() -> None:
    novig = {"sportsbook": "novig", "market_type": "totals"}
    rows = [row | (novig if row["sportsbook"] == "fanduel" else {}) for row in both(0, 2.1, 2.05)]
    trades = both_ways(ARBS, rows).trades
    assert trades.select("sportsbook", "leg").rows() == [("pinnacle", 1), ("novig", 0)]
    assert trades["market_type"].to_list() == ["total_points"] * 2  # as of +EV prices, whatever the books call it


def test_a_market_is_taken_once_of_each_kind_whatever_it_is_called() -> None:
    rule = Strategy(**{**vars(HOLDS), "kinds": ("arbitrage", "low_hold")})
    other = [row | {"sportsbook": "novig", "market_type": "totals"} for row in both(1, 2.2, 2.1)[:2]]
    found = both_ways(rule, both(0, 2.1, 2.05), both(1, 2.0, 1.99) + other, both(2, 2.0, 1.99), both(3, 2.1, 2.05))
    assert found.positions.select("kind", "sportsbooks").rows() == [("arbitrage", ["fanduel", "pinnacle"])]
    found = both_ways(rule, both(0, 2.0, 1.99), both(1, 2.0, 1.99), both(2, 2.0, 1.99), both(3, 2.1, 2.05))
    assert found.positions.select("kind", "outcome").rows() == [("low_hold", "whole"), ("arbitrage", "waiting")]
    _, of = found.summary().positions
    assert of.locked == pytest.approx(found.positions["stake"][0] * (1.0 / (1.0 / 2.0 + 1.0 / 1.99) - 1.0), abs=0.02)


def test_the_legs_of_a_sparse_history_are_filled_unobserved() -> None:
    snapshots = both(-100, 1.9, 1.9), both(0, 2.1, 2.05)
    found = backtest(history(*snapshots), ARBS)
    assert found.trades.select("status", "reason").rows() == [("filled", "unobserved")] * 2
    assert found.positions.select("outcome", "reason").row(0) == ("whole", "unobserved")
    engine = oe.Engine()
    trader = Trader(engine, ARBS, sparse=True)
    for rows in snapshots:
        trader.follow(engine.step(rows, now=rows[0]["last_seen_at"]))
    trader.finish()
    assert_frame_equal(found.trades.select(trader.trades().columns), trader.trades())


def test_the_score_that_comes_late_pays_the_legs() -> None:
    engine = oe.Engine()
    trader = Trader(engine, ARBS)
    for at in range(3):
        trader.follow(engine.step(both(at, 2.1, 2.05), now=NOON + timedelta(minutes=at)))
    trader.follow(engine.step([], now=NOON + timedelta(days=1)))
    assert trader.cash == pytest.approx(1000.0)
    trader.settle("e1", 112, 110)
    trader.follow(engine.step([], now=NOON + timedelta(days=1, hours=1)))
    assert trader.cash == pytest.approx(1000.0 + 49.39 * 2.1 - 99.98)


def test_what_a_strategy_leaves_alone() -> None:
    past = history(*(both(at, 2.1, 2.05) for at in (0, 1)))
    holds = history(*(both(at, 2.0, 1.99) for at in (0, 1)))

    def count(rule: Strategy, quotes: pl.DataFrame, **changes: Any) -> int:
        return backtest(quotes, Strategy(**{**vars(rule), **changes})).positions.height

    assert count(ARBS, past) == count(HOLDS, holds) == 1
    assert count(ARBS, holds) == count(HOLDS, past) == count(Strategy(), past) == 0
    for rule, quotes in ((ARBS, past), (HOLDS, holds)):
        assert count(rule, quotes, max_hours=1.0) == count(rule, quotes, sports=("soccer",)) == 0
        assert count(rule, quotes, markets=("moneyline",)) == count(rule, quotes, books=("fanduel",)) == 0
        assert count(rule, quotes, min_odds=9.0, max_ev=-50.0) == 1  # of +EV prices
        assert count(rule, quotes.with_columns(is_live=True)) == 0
        assert count(rule, quotes.with_columns(is_live=True), live=True) == 1
    assert count(ARBS, past, min_profit=4.0) == count(HOLDS, holds, max_hold=0.2) == 0


def test_legs_that_settle_differently_are_left_alone_unless_that_never_loses() -> None:
    rows = pl.DataFrame(
        {
            "unconfirmed": False, "is_live": False, "terms_differ": [False, True, True, True],
            "terms_worst_case": [None, -100.0, 0.0, None],
        }
    )  # fmt: skip
    assert ARBS.choose_arbitrages(rows).rows() == HOLDS.choose_low_holds(rows).rows() == rows[[0, 2]].rows()
    assert Strategy(different_terms=True).choose_arbitrages(rows).height == 4


def test_a_subclass_decides_for_itself() -> None:
    class Own(Strategy):
        def choose_arbitrages(self, arbitrages: pl.DataFrame) -> pl.DataFrame:
            return arbitrages.filter(pl.col("profit_percent") > 5.0)

        def total_stake(self, bankroll: float, start: float) -> float:
            return 20.0

    past = history(*(both(at, 2.1, 2.05) for at in (0, 1, 2)))
    assert backtest(past, Own(kinds=("arbitrage",))).positions.height == 0
    better = history(*(both(at, 2.15, 2.2) for at in (0, 1, 2)))
    assert backtest(better, Own(kinds=("arbitrage",))).positions["wanted"].item() == pytest.approx(20.0, abs=0.05)

    class Old(Strategy):
        def choose_arbitrages(self, arbitrages: pl.DataFrame) -> pl.DataFrame:
            return arbitrages.filter(pl.col("game") != "x")

    with pytest.raises(oe.OddsError, match=r"a strategy chose by a column that arbitrages lack: .*game"):
        backtest(past, Old(kinds=("arbitrage",)))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kinds": "arbitrage"}, "kinds must be a list of names, got 'arbitrage'"),
        ({"kinds": ()}, "kinds must be a list of ev, arbitrage, low_hold, got ()"),
        ({"kinds": None}, "kinds must be a list of ev, arbitrage, low_hold, got None"),
        ({"kinds": ("ev", "middles")}, "kinds must be a list of ev, arbitrage, low_hold, got ('ev', 'middles')"),
        ({"min_profit": "1"}, "min_profit must be a finite number, got '1'"),
        ({"max_hold": None}, "max_hold must be a finite number, got None"),
        ({"kinds": ("low_hold",), "max_hold": -1.0}, "max_hold must be a finite number of at least 0, got -1.0"),
        ({"different_terms": 1}, "different_terms must be True or False, got 1"),
    ],
)
def test_what_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says) + "$"):
        Strategy(**wrong)


# ---- a world with exchanges ----


@pytest.fixture(scope="module")
def past() -> pl.DataFrame:
    """Order books of two exchanges, with levels, and two sportsbooks: two seconds to make."""
    world = oe.World(
        12, events=4, live=0.3, tick=20.0, traders=True, levels=True, exchange_hold=0.4, main_lines=True,
        books=["pinnacle", "kalshi", "novig", "fanduel"],
    )  # fmt: skip
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(800) for quote in batch.quotes]
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.fixture(scope="module")
def found(past: pl.DataFrame) -> Backtest:
    return backtest(past, ALL)


def test_paper_trading_on_a_live_engine_is_the_backtest(past: pl.DataFrame, found: Backtest) -> None:
    """Both play 40 snapshots, three seconds."""
    engine = oe.Engine()
    trader = Trader(engine, ALL)
    for batch in past.partition_by("last_seen_at", maintain_order=True):
        trader.follow(engine.step(batch, now=batch["last_seen_at"][0]))
    assert_frame_equal(trader.trades(), found.trades.select(trader.trades().columns))
    assert_frame_equal(trader.positions(), found.positions.select(trader.positions().columns))
    assert set(found.trades["kind"]) == {"ev", "arbitrage", "low_hold"}
    assert {"whole", "open", "none"} <= set(found.positions["outcome"])


def test_no_decision_knows_the_future(past: pl.DataFrame, found: Backtest) -> None:
    """Half of the history, played in a second."""
    end = past["last_seen_at"].unique().sort()[20]
    half = backtest(past.filter(pl.col("last_seen_at") <= end), ALL)
    decided = ["decided_at", "kind", "opportunity_id", "shown_percent", "wanted"]
    assert_frame_equal(
        half.positions.select(decided), found.positions.filter(pl.col("decided_at") <= end).select(decided)
    )
    ended = half.positions.filter(pl.col("outcome") != "waiting")
    assert ended.height > 3
    assert_frame_equal(ended, found.positions.filter(pl.col("opportunity_id").is_in(ended["opportunity_id"].implode())))


def test_games_played_side_by_side_are_the_same(past: pl.DataFrame, found: Backtest) -> None:
    """Two processes, which take seconds to start."""
    apart = backtest(past, ALL, processes=2)
    assert_frame_equal(apart.trades, found.trades)
    assert_frame_equal(apart.positions, found.positions)


def test_a_tape_is_the_same(past: pl.DataFrame, tmp_path: Path) -> None:
    """It is recorded, and played again: two seconds."""
    engine, writer = oe.resume(tmp_path / "tape")
    trader = Trader(engine, ALL)
    with writer:
        for batch in past.partition_by("last_seen_at", maintain_order=True)[:20]:
            trader.follow(engine.step(batch, now=batch["last_seen_at"][0]))
    taped = backtest(tmp_path / "tape", ALL)
    assert_frame_equal(taped.trades.select(trader.trades().columns), trader.trades())
    assert_frame_equal(taped.positions.select(trader.positions().columns), trader.positions())


def test_positions_are_their_trades(found: Backtest) -> None:
    for row in found.positions.iter_rows(named=True):
        trades = found.trades.filter(opportunity_id=row["opportunity_id"])
        assert trades["kind"].unique().to_list() == [row["kind"]]
        stakes, wanted = trades["stake"].to_list(), trades["wanted"].to_list()
        assert row["stake"] == pytest.approx(sum(stakes))
        assert row["wanted"] >= sum(wanted) - 1e-9
        if row["outcome"] in ("whole", "part"):
            payouts = [stake * odds for stake, odds in trades.select("stake", "net_odds").iter_rows()]
            assert row["locked"] == pytest.approx(min(payouts) - sum(stakes))
    summary = found.summary()
    assert summary.placed == found.trades.filter(pl.col("status").is_in(["waiting", "filled", "rejected"])).height
    assert sum(of.decided for of in summary.positions) == found.positions.height
    assert summary.ev == pytest.approx(found.bets.filter(kind="ev")["ev"].mean())
    by = found.by("kind")
    assert by["bets"].sum() == found.bets.height
    assert found.by("sportsbook")["bets"].sum() == found.bets.height
