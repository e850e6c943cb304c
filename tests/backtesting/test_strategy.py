"""Backtests and paper trading: fills, limits, results, and that no decision knows the future."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.effort import less

import oddsengine as oe
from oddsengine.backtesting.backtest import Backtest, backtest
from oddsengine.backtesting.replay import source, steps
from oddsengine.backtesting.strategy import Strategy
from oddsengine.backtesting.summary import lines
from oddsengine.backtesting.trader import Trader
from oddsengine.feeds import football_data
from oddsengine.simulate.football_seasons import seasons
from oddsengine.staking.outcomes import settled

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
START = NOON + timedelta(hours=2)
OTHERS = ("pinnacle", "draftkings", "betmgm", "caesars")
RULE = Strategy(min_ev=2.0, sharp="pinnacle", method="power", staking="flat", size=0.01)


def snapshot(
    minutes: float, over: float | None, *, fair: float = 1.95, live: bool = False, active: bool = True
) -> list[dict[str, Any]]:
    """What all books show at a moment: FanDuel's over, and a market of the others around even."""
    base = {
        "event_id": "e1", "sport": "basketball", "league": "nba", "home_team": "Lakers", "away_team": "Celtics",
        "event_start_time": START, "market_type": "total_points", "line": 220.5, "is_live": live,
        "last_seen_at": NOON + timedelta(minutes=minutes),
    }  # fmt: skip
    rows = [
        {**base, "sportsbook": book, "selection": side, "odds_decimal": fair, "is_active": True}
        for book in OTHERS
        for side in ("Over", "Under")
    ]
    if over is not None:
        rows.append({**base, "sportsbook": "fanduel", "selection": "Over", "odds_decimal": over, "is_active": active})
        rows.append({**base, "sportsbook": "fanduel", "selection": "Under", "odds_decimal": 1.75, "is_active": active})
    return rows


def history(*snapshots: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([row for rows in snapshots for row in rows])


def scores(home: int, away: int) -> pl.DataFrame:
    return pl.DataFrame({"event_id": ["e1"], "home_score": [home], "away_score": [away]})


def test_a_bet_is_filled_and_settled_by_the_score() -> None:
    past = history(snapshot(0, 1.9), snapshot(1, 2.1), snapshot(2, 2.1))
    won = backtest(past, RULE, results=scores(112, 110))
    bet = won.bets.row(0, named=True)
    assert won.trades.height == 1
    assert (bet["selection"], bet["sportsbook"], bet["stake"]) == ("Over", "fanduel", 10.0)
    assert bet["placed_at"] == NOON + timedelta(minutes=1)
    assert (bet["gain"], bet["profit"], bet["graded_by"]) == (pytest.approx(1.1), pytest.approx(11.0), "score")
    lost = backtest(past, RULE, results=scores(100, 99))
    assert lost.bets["profit"].item() == pytest.approx(-10.0)
    assert lost.equity()["bankroll"].to_list() == pytest.approx([990.0])
    assert lost.summary().profit == pytest.approx(-10.0)


def test_without_a_score_the_close_says_what_it_was_worth() -> None:
    past = history(snapshot(0, 2.1), snapshot(1, 2.1), snapshot(100, 2.1, fair=1.9))
    found = backtest(past, RULE).bets.row(0, named=True)
    assert (found["graded_by"], found["no_result"]) == ("close", "no score")
    assert (found["gain"], found["profit"]) == (None, None)
    assert found["closing_ev"] == pytest.approx(2.1 * 0.5 - 1.0)
    assert found["expected_profit"] == pytest.approx(10.0 * (2.1 * 0.5 - 1.0))
    unknown = backtest(history(snapshot(0, 2.1), snapshot(1, 2.1)), RULE)
    assert unknown.bets.select("closing_ev", "gain", "profit").row(0) == (None, None, None)
    assert unknown.equity().height == 0
    assert unknown.summary().filled == 1


def test_by_the_close_a_push_returns_the_stake() -> None:
    """A total of 3 goals: the lines 2.5 and 3.5 give the probability of exactly three."""
    soccer = {"sport": "soccer", "league": "epl", "market_type": "total_goals"}
    whole = [{**row, **soccer, "line": 3.0} for at in (0, 1, 100) for row in snapshot(at, 2.1)]
    ladder = [
        {**row, "line": line, "odds_decimal": 1.65 if (row["selection"] == "Over") == (line < 3.0) else 2.25}
        for row in whole
        if row["sportsbook"] != "fanduel"
        for line in (2.5, 3.5)
    ]
    push = 2.0 * oe.devig([1.65, 2.25], "power")[0] - 1.0
    bet = backtest(pl.DataFrame([*whole, *ladder]), RULE).bets.row(0, named=True)
    assert bet["closing_ev"] == pytest.approx(2.1 * 0.5 - 1.0)
    assert bet["push_probability"] == pytest.approx(push, abs=1e-6)
    assert bet["expected_profit"] == pytest.approx(bet["stake"] * 0.05 * (1.0 - push), abs=1e-5)


@pytest.mark.parametrize(
    ("after", "tolerance", "status", "reason", "odds"),
    [
        (snapshot(1, 2.1), 0.0, "filled", None, 2.1),
        (snapshot(1, 2.2), 0.0, "filled", None, 2.1),
        (snapshot(1, 2.08), 0.0, "rejected", "price moved", 2.1),
        (snapshot(1, 2.08), 0.01, "filled", None, 2.08),
        (snapshot(1, 2.05), 0.01, "rejected", "price moved", 2.1),
        (snapshot(1, 2.1, active=False), 0.0, "rejected", "suspended", 2.1),
        (snapshot(1, 2.1, live=True), 0.0, "rejected", "in play", 2.1),
    ],
)
def test_what_the_book_answers(after: Any, tolerance: float, status: str, reason: str | None, odds: float) -> None:
    found = backtest(history(snapshot(0, 2.1), after), RULE, tolerance=tolerance).trades.row(0, named=True)
    assert (found["status"], found["reason"], found["odds_decimal"]) == (status, reason, odds)
    assert found["ev"] == pytest.approx(odds * 0.5 - 1.0)


def test_latency_and_orders_that_are_not_answered() -> None:
    past = history(snapshot(0, 2.1), snapshot(1, 2.1), snapshot(2, 1.9))
    assert backtest(past, RULE, latency_s=0.0).trades["status"].to_list() == ["filled"]
    assert backtest(past, RULE, latency_s=90.0).trades["reason"].to_list() == ["price moved"]
    unanswered = backtest(past, RULE, latency_s=600.0)
    assert unanswered.trades["status"].to_list() == ["waiting"]
    assert unanswered.summary().waiting == 1


def test_orders_are_counted_by_what_became_of_them() -> None:
    moved = backtest(history(snapshot(0, 2.1), snapshot(1, 1.9)), RULE).summary()
    assert (moved.placed, moved.filled, moved.rejected) == (1, 0, {"price moved": 1})
    assert ("orders: price moved", "1") in lines(moved)
    # A snapshot an hour later does not tell what the book answered after five seconds.
    late = backtest(history(snapshot(0, 2.1), snapshot(60, 1.9)), RULE)
    assert late.trades.select("status", "reason", "odds_decimal").row(0) == ("filled", "unobserved", 2.1)
    assert (late.summary().unobserved, late.summary().rejected) == (1, {})


@pytest.mark.parametrize("timed", [True, False], ids=["kick-offs", "days"])
def test_a_season_of_opening_and_closing_odds(timed: bool) -> None:
    """Every bet has a close, and the default latency does not ask for prices between the two."""
    text = "".join(next(seasons(7)).data.decode().splitlines(keepends=True)[: less(381, 96)])
    text = text if timed else text.replace(",Time,", ",Kick-off,", 1)
    season = football_data.read(text.encode())
    quotes = season.quotes.drop("closing").filter(pl.col("market_type") == "moneyline_3way")
    found = backtest(quotes, Strategy(min_ev=1.0), results=season.results).summary()
    assert found.filled == found.placed == found.closed > less(150, 30)
    assert found.unobserved > less(150, 30)
    assert 0.0 < found.closing_ev < 0.04


def test_a_file_of_football_data_in_one_line(tmp_path: Path) -> None:
    """Prices, scores and how orders are answered all follow from the file."""
    path, season = tmp_path / "E0.csv", next(seasons(7)).data
    season = b"".join(season.splitlines(keepends=True)[: less(161, 41)])
    path.write_bytes(season)
    read = football_data.read(season)
    rule = Strategy(min_ev=1.0)
    found = backtest(str(path), rule)
    assert found.trades.equals(backtest(read.quotes, rule, results=read.results).trades)
    assert found.trades.equals(backtest(oe.read_odds(path), rule).trades)
    summary = found.summary()
    assert summary.placed == summary.filled == summary.unobserved == summary.by_score > less(50, 8)
    assert (summary.sparse, summary.waiting, summary.no_result) == (True, 0, {})
    assert 4 * 3600 < summary.cadence_s < 72 * 3600
    assert "at the odds of the decision, unless the price is seen again" in str(summary)
    (tmp_path / "E1.csv").write_bytes(season.replace(b"E0,", b"E1,"))
    both = backtest(tmp_path, rule).trades  # a folder of them
    assert both["event_id"].str.head(2).value_counts(sort=True).height == 2
    (tmp_path / "notes.csv").write_text("a,b\n")
    with pytest.raises(oe.OddsError, match=r"notes\.csv: not an odds table"):
        backtest(tmp_path, rule)


def test_a_price_of_a_sparse_history_is_answered_only_if_it_is_seen_again() -> None:
    """Snapshots of other events do not tell what became of a price."""

    def other(minute: int) -> list[dict[str, Any]]:
        return [{**row, "event_id": "other"} for row in snapshot(minute, 1.9)]

    rows = [snapshot(0, 2.1), other(20), snapshot(100, 2.1), other(120)]
    sparse = backtest(history(*rows), RULE)
    assert sparse.summary().cadence_s == 6000.0
    assert sparse.trades.select("status", "reason").rows() == [("filled", "unobserved")]
    again = backtest(history(*rows[:2], snapshot(25, 1.9), snapshot(1000, 1.9)), RULE, latency_s=1300.0)
    assert again.trades.select("status", "reason").rows() == [("rejected", "price moved")]
    frequent = backtest(history(snapshot(0, 2.1), other(10), snapshot(20, 1.9), other(30)), RULE)
    assert not frequent.summary().sparse
    assert frequent.trades["reason"].to_list() == [None]
    last = backtest(history(snapshot(-100, 1.9), snapshot(0, 2.1)), RULE)  # nothing follows the decision
    assert last.trades.select("status", "reason").rows() == [("filled", "unobserved")]


def test_why_bets_have_no_close_and_no_result() -> None:
    past = history(snapshot(0, 2.1), snapshot(60, 2.1))  # the start is two hours later
    no_close = "no snapshot in the 30 minutes before the start"
    half = past.with_columns(market_type=pl.lit("1st_half_totals"))
    for quotes, results, why in (
        (past, None, "no score"),
        (past, scores(112, 110), None),
        (half, scores(112, 110), "not settled by the score"),
    ):
        summary = backtest(quotes, RULE, results=results).summary()
        assert summary.no_close == {no_close: 1}
        assert summary.no_result == ({} if why is None else {f"{why}; {no_close}": 1})
        assert (f"bets without a close: {no_close}", "1") in lines(summary)
    past = history(snapshot(0, 2.1, live=True), snapshot(1, 2.1, live=True))
    live = backtest(past, Strategy(**{**vars(RULE), "live": True}))
    assert live.summary().no_close == {"bet in play": 1}


def test_an_expected_profit_is_not_called_a_profit() -> None:
    snapshots = [(at, event) for at in (0, 1, 100) for event in ("e1", "e2")]
    past = history(*([row | {"event_id": event} for row in snapshot(at, 2.1)] for at, event in snapshots))
    nothing, half, everything = (
        backtest(past, RULE, results=pl.DataFrame({"event_id": events, "home_score": 112, "away_score": 110}))
        for events in (pl.Series([], dtype=pl.String), ["e1"], ["e1", "e2"])
    )
    for result, by_score, by_close, profit, expected in (
        (nothing, 0, 2, 0.0, 1.0), (half, 1, 1, 11.0, 0.5), (everything, 2, 0, 22.0, 0.0)
    ):  # fmt: skip
        summary = result.summary()
        assert (summary.by_score, summary.by_close) == (by_score, by_close)
        assert (summary.staked, summary.unsettled) == (10.0 * by_score, 10.0 * by_close)
        assert (summary.profit, summary.expected_profit) == pytest.approx((profit, expected))
        assert math.isnan(summary.rate) == math.isnan(summary.drawdown) == (by_score == 0)
        assert summary.no_result == ({"no score": by_close} if by_close else {})
        assert result.bets["expected_profit"].to_list() == pytest.approx([0.5, 0.5])
        assert result.equity().height == (by_score > 0)
        assert result.expected_equity()["bankroll"].to_list() == pytest.approx([1001.0])
    said = [{name for name, _ in lines(each.summary())} for each in (nothing, half, everything)]
    results, others = {"profit", "return on stakes"}, {"expected profit at the close", "EV at the close by stakes"}
    assert others <= said[0]
    assert not said[0] & results
    assert {f"{name} of settled bets" for name in results} | {f"{name} of other bets" for name in others} <= said[1]
    assert not said[1] & (results | others)
    assert results <= said[2]
    assert not said[2] & others


def test_scores_in_the_columns_of_a_history() -> None:
    """A score that changes is not a final one."""
    past = history(snapshot(0, 2.1), snapshot(60, 2.1)).with_columns(home_goals=pl.lit(3), away_goals=pl.lit(1))
    assert backtest(past, RULE).trades["graded_by"].to_list() == ["score"]
    running = past.with_columns(home_goals=pl.int_range(pl.len()))
    assert backtest(running, RULE).trades["graded_by"].to_list() == [None]


def test_stakes_stay_within_steps_limits_and_cash() -> None:
    past = history(snapshot(0, 2.2), snapshot(1, 2.2))

    def stake(**changes: Any) -> float:
        rule = Strategy(**{**vars(RULE), "staking": "kelly", "size": 1.0, **changes})
        return float(backtest(past, rule, bankroll=100.0).trades["stake"].sum())

    full = 100.0 * float(oe.kelly(0.5, 2.2))
    assert stake() == pytest.approx(full, abs=0.01)
    assert stake(step=1.0) == int(full)
    assert stake(max_bet=2.5) == 2.5
    assert stake(max_event=3.0) == 3.0
    assert stake(staking="portfolio") == pytest.approx(full, abs=0.02)
    assert stake(staking="flat", size=1.0) == 100.0


def test_what_a_strategy_leaves_alone() -> None:
    past = history(snapshot(0, 2.1), snapshot(1, 2.1))

    def count(**changes: Any) -> int:
        return backtest(past, Strategy(**{**vars(RULE), **changes})).trades.height

    assert count() == 1
    assert count(min_ev=6.0) == count(max_ev=4.0) == count(max_odds=2.0) == count(min_odds=2.2) == 0
    assert count(sports=("soccer",)) == count(markets=("moneyline",)) == count(books=("caesars",)) == 0
    assert count(max_hours=1.0) == 0
    assert count(max_hours=3.0, sports=("basketball",), markets=("total_points",)) == 1
    for name in ("NBA", "Basketball", "hoops"):
        with pytest.raises(ValueError, match=f"sports must be among .*basketball.*, got '{name}'"):
            count(sports=("soccer", name))
    refused: tuple[dict[str, Any], ...] = (
        {"size": 0.0}, {"staking": "all"}, {"step": 0.0}, {"step": np.inf}, {"min_ev": None}, {"min_ev": np.nan},
        {"max_bet": np.nan}, {"max_bet": -1.0}, {"max_event": -1.0}, {"max_ev": np.nan}, {"max_hours": "2"},
        {"sports": "soccer"}, {"min_odds": None}, {"sports": 5}, {"markets": [None]}, {"books": "fanduel"},
        {"books": 5}, {"books": [5]}, {"live": "x"}, {"live": None}, {"live": 1}, {"max_daily_stake_per_book": "x"},
        {"staking": None}, {"staking": []},
    )  # fmt: skip
    for wrong in refused:
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            Strategy(**wrong)


def test_limits_of_books_name_each_book_once() -> None:
    refused: list[tuple[Any, str]] = [
        ({"FanDuel": 1.0, "fanduel": 2.0}, "max_daily_stake_per_book: FanDuel and fanduel are one book, fanduel"),
        ({5: 1.0}, "the keys of max_daily_stake_per_book must be book ids, got 5"),
    ]
    for wrong, says in refused:
        with pytest.raises(ValueError, match=says):
            Strategy(max_daily_stake_per_book=wrong)
    rule = Strategy(**{**vars(RULE), "max_daily_stake_per_book": {"fanduell": 1.0}})
    says = "max_daily_stake_per_book: no prices of fanduell; the books are "
    with pytest.raises(ValueError, match=says):
        Trader(oe.Engine(), rule)
    with pytest.raises(ValueError, match=f"{says}betmgm, caesars"):
        backtest(history(snapshot(0, 2.1)), rule)
    own = snapshot(0, 2.1) + [row | {"sportsbook": "fanduell"} for row in snapshot(0, 2.1)[-2:]]
    engine = oe.Engine()
    engine.step(own, now=NOON)
    assert Trader(engine, rule).cash == 1000.0
    assert backtest(history(own), rule).bankroll == 1000.0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("tolerance", "a"),
        ("tolerance", None),
        ("tolerance", math.nan),
        ("sparse", "x"),
        ("sparse", 1),
        ("latency_s", "5"),
    ],
)
def test_parameters_of_a_trader(name: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, got {wrong!r}"):
        Trader(oe.Engine(), RULE, **{name: wrong})


@pytest.mark.parametrize("wrong", [math.nan, None, math.inf, -1.0, "3", True])
def test_scores_that_are_none(wrong: Any) -> None:
    trader = Trader(oe.Engine(), RULE)
    for at, given in enumerate(((wrong, 1.0), (1.0, wrong))):
        name = ("home_score", "away_score")[at]
        with pytest.raises(ValueError, match=f"{name} must be a finite number of at least 0, got {wrong!r}"):
            trader.settle("e1", *given)
    with pytest.raises(ValueError, match="event_id must be a text, got 5"):
        trader.settle(5, 1.0, 1.0)  # type: ignore[arg-type]


def test_the_totals_of_two_teams_are_two_bets() -> None:
    """Both selections are "Over" at the same line: only `team_side` tells them apart."""
    both = [
        {**row, "market_type": "team_total", "line": 110.5, "team_side": side}
        for side in ("home", "away")
        for row in snapshot(0, 2.1)
    ]
    engine = oe.Engine()
    trader = Trader(engine, RULE)
    assert trader.follow(engine.step(both, now=NOON)) == 2
    assert sorted(trader.trades()["team_side"].to_list()) == ["away", "home"]


def test_only_orders_that_were_placed_are_counted() -> None:
    engine = oe.Engine()
    trader = Trader(engine, Strategy(**{**vars(RULE), "max_bet": 0.0}))
    assert trader.follow(engine.step(snapshot(0, 2.1), now=NOON)) == 0
    assert trader.trades().height == 0


def test_orders_keep_to_the_rules_of_a_venue() -> None:
    """Of a flat stake of 10: in its steps, and none below its minimum."""

    def staked(**rules: float) -> list[float]:
        engine = oe.Engine()
        trader = Trader(engine, RULE)
        trader.follow(engine.step([{**row, **rules} for row in snapshot(0, 2.1)], now=NOON))
        return trader.trades()["wanted"].to_list()

    (plain,) = staked()
    assert plain == pytest.approx(10.0)
    assert staked(bet_step=3.0) == [pytest.approx(9.0)]
    assert staked(min_bet=10.0) == [pytest.approx(10.0)]
    assert staked(min_bet=11.0) == []


def test_a_bet_in_play_is_answered_after_the_delay_of_its_venue() -> None:
    """After 5 s and the 7 s of the venue: at 6 s the price is still there, at 13 s it is not."""

    def status(**of: Any) -> list[tuple[str, str | None]]:
        engine = oe.Engine()
        trader = Trader(engine, oe.Strategy(min_ev=1.0, sharp="pinnacle", live=True), latency_s=5.0)
        for seconds, odds in ((0, 2.1), (6, 2.1), (13, 1.8)):
            at = seconds / 60
            trader.follow(
                engine.step([row | of for row in snapshot(at, odds, live=True)], now=NOON + timedelta(minutes=at))
            )
        return trader.trades().select("status", "reason").rows()

    assert status() == status(bet_delay=None) == status(bet_delay=0.5) == [("filled", None)]
    assert status(bet_delay=7.0) == [("rejected", "price moved")]
    assert status(bet_delay=60.0) == [("waiting", None)]


def test_results_in_a_frame_of_pandas() -> None:
    won = backtest(history(snapshot(0, 2.1), snapshot(1, 2.1)), RULE, results=scores(112, 110).to_pandas())
    assert won.bets["profit"].to_list() == pytest.approx([11.0])


def test_a_subclass_decides_for_itself() -> None:
    class Never(Strategy):
        def choose(self, ev: pl.DataFrame) -> pl.DataFrame:
            assert "ev_percentage" in ev.columns
            return ev.clear()

    assert backtest(history(snapshot(0, 2.1)), Never()).trades.height == 0

    class Old(Strategy):
        def choose(self, ev: pl.DataFrame) -> pl.DataFrame:
            return ev.filter(pl.col("game") != "x")

    with pytest.raises(oe.OddsError, match=r"a strategy chose by a column that \+EV prices lack: .*game"):
        backtest(history(snapshot(0, 2.1)), Old())


def test_a_trader_that_has_halted_places_nothing_until_it_resumes() -> None:
    engine = oe.Engine()
    trader = Trader(engine, RULE)

    def follow(minute: int, event: str) -> int:
        rows = [row | {"event_id": event} for row in snapshot(minute, 2.1)]
        return trader.follow(engine.step(rows, now=NOON + timedelta(minutes=minute)))

    assert follow(0, "a") == 1
    trader.halt()
    assert follow(1, "b") == 0
    assert repr(trader) == "<Trader: cash 990.00, 1 open, 0 waiting, halted: by hand>"  # what was sent is filled
    trader.resume()
    assert (trader.halted, follow(2, "c")) == (None, 1)


# ---- prices with sizes ----


def sized(
    minutes: float, levels: str | None, *, live: bool = False, book: str = "kalshi", **of: Any
) -> list[dict[str, Any]]:
    """A snapshot in which the over is at an exchange, with levels; its best level is 2.1 unless they say another."""
    rows = snapshot(minutes, 2.1, live=live)
    best = 2.1 if levels is None else float(levels.split(":")[0])
    for row in rows:
        if row["sportsbook"] == "fanduel":
            row["sportsbook"] = book
            row["contract_fee"] = 0.0
            if row["selection"] == "Over":
                row |= {"levels": levels, "odds_decimal": best, **of}
    return rows


def both_ways(rule: Strategy, *snapshots: list[dict[str, Any]], **of: Any) -> pl.DataFrame:
    """The trades of a backtest, which are those of a trader on an engine."""
    found = backtest(history(*snapshots), rule, **of)
    engine = oe.Engine()
    trader = Trader(engine, rule, **of)
    for rows in snapshots:
        trader.follow(engine.step(rows, now=rows[0]["last_seen_at"]))
    assert_frame_equal(found.trades[:, : trader.trades().width], trader.trades())
    assert (found.summary().in_part > 0) == ("not enough" in found.bets["reason"])
    return trader.trades()


def test_an_order_takes_the_levels_within_the_tolerance() -> None:
    def got(after: str, tolerance: float, **of: Any) -> tuple[Any, ...]:
        trades = both_ways(RULE, sized(0, "2.1:50", **of), sized(1, after, **of), tolerance=tolerance)
        return trades.select("status", "reason", "wanted", "stake", "odds_decimal").row(0)

    assert got("2.1:50 2.0:50", 0.0) == ("filled", None, 10.0, 10.0, 2.1)
    assert got("2.1:4 2.08:50", 0.0) == ("filled", "not enough", 10.0, pytest.approx(4.0), pytest.approx(2.1))
    mean = (4.0 * 2.1 + 6.0 * 2.08) / 10.0
    assert got("2.1:4 2.08:50 2.0:9", 0.01) == ("filled", None, 10.0, 10.0, pytest.approx(mean))
    assert got("2.08:50", 0.0)[:2] == ("rejected", "price moved")


def test_an_order_that_nothing_answers_gets_no_more_than_was_shown() -> None:
    for at, rest in ((120, "unobserved"), (1, None)):
        trades = both_ways(RULE, sized(0, "2.1:3 2.09:40"), sized(at, "2.1:50"))
        assert trades.select("reason", "wanted", "stake").row(0) == (rest, 3.0, 3.0)


def test_what_was_taken_before_the_start_is_not_there_in_play() -> None:
    rule = Strategy(**{**vars(RULE), "live": True})
    first, much = [sized(0, "2.1:12"), sized(1, "2.1:12")], [sized(at, "2.1:12", live=True) for at in (2, 3)]
    trades = both_ways(rule, *first, *much)
    assert trades.select("stake", "reason").rows() == [(10.0, None), (pytest.approx(2.0), "not enough")]
    trades = both_ways(rule, *first, sized(1.5, "2.1:2"), *much)  # 2 of the 10 may still be shown
    assert trades["stake"].to_list() == [10.0, 10.0]


def test_sizes_in_another_currency_need_its_worth() -> None:
    pounds = [sized(at, "2.1:50", book="smarkets", commission=0.0) for at in (0, 1)]
    with pytest.raises(ValueError, match="sizes at smarkets are in GBP: give its exchange rate, such as rates="):
        backtest(history(*pounds), RULE)
    assert both_ways(RULE, *pounds, rates={"USD": 1, "GBP": 0.1})["stake"].to_list() == [pytest.approx(5.0)]
    plain = [sized(at, None, book="smarkets", commission=0.0) for at in (0, 1)]
    assert both_ways(RULE, *plain)["stake"].to_list() == [10.0]


def test_a_halt_ends_the_orders_of_a_backtest() -> None:
    """The first game's price has moved when the order arrives, then that of another one appears."""
    first, second = ([row | {"event_id": event} for at in (0, 1, 2) for row in snapshot(at, None)] for event in "ab")
    first += [row | {"event_id": "a"} for at, odds in ((0, 2.1), (1, 1.9)) for row in snapshot(at, odds)[-2:]]
    second += [row | {"event_id": "b"} for row in snapshot(2, 2.1)[-2:]]
    past = history(first, second)
    assert backtest(past, RULE).trades["event_id"].to_list() == ["a", "b"]
    found = backtest(past, Strategy(**{**vars(RULE), "max_rejections": 1}))
    assert found.trades["event_id"].to_list() == ["a"]
    assert found.halted == "orders rejected in a row: 1"
    assert ("halted", found.halted) in lines(found.summary())


# ---- a world ----


@pytest.fixture(scope="module")
def past() -> pl.DataFrame:
    world = oe.World(
        7,
        events=5,
        live=0.0,
        tick=less(300, 500),
        books=["pinnacle", "betfair_exchange", "draftkings", "fanduel", "betmgm", "caesars"],
    )
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(3600 * 3) for quote in batch.quotes]
    return pl.DataFrame(rows, infer_schema_length=None)


SOFT = Strategy(min_ev=1.0, books=("draftkings", "fanduel", "betmgm", "caesars"), max_event=40.0)


@pytest.fixture(scope="module")
def found(past: pl.DataFrame) -> Backtest:
    return backtest(past, SOFT)


def test_no_decision_knows_the_future(past: pl.DataFrame, found: Backtest) -> None:
    whole = found.trades
    assert whole.height > 10
    moments = past["last_seen_at"].unique().sort()
    for end in (moments[6], moments[17]):
        part = backtest(past.filter(pl.col("last_seen_at") <= end), SOFT).trades
        known = whole.filter(pl.col("placed_at") <= end)
        decided = ["placed_at", "event_id", "sportsbook", "selection", "wanted"]
        assert_frame_equal(part.select(decided), known.select(decided))
        answered = part.with_row_index().filter(pl.col("status") != "waiting")
        assert answered["status"].to_list() == known[answered["index"]]["status"].to_list()


def test_paper_trading_on_a_live_engine_is_the_backtest(past: pl.DataFrame, found: Backtest) -> None:
    engine = oe.Engine()
    trader = Trader(engine, SOFT)
    for batch in past.partition_by("last_seen_at", maintain_order=True):
        trader.follow(engine.step(batch, now=batch["last_seen_at"][0]))
    assert_frame_equal(trader.trades(), found.trades.select(trader.trades().columns))
    open_ = sum(found.trades.filter(pl.col("status") != "rejected")["stake"])
    assert trader.cash + open_ == pytest.approx(1000.0, abs=50.0)


def test_steps_of_a_tape_at_the_same_time_are_decided_one_after_the_other(tmp_path: Path) -> None:
    """The first takes most of the money, although the EV of the second is higher."""
    rule = Strategy(**{**vars(RULE), "size": 0.7})
    engine, writer = oe.resume(tmp_path / "tape")
    trader = Trader(engine, rule, latency_s=0.0)
    with writer:
        for event, odds in (("e1", 2.1), ("e2", 2.2)):
            trader.follow(engine.step([row | {"event_id": event} for row in snapshot(0, odds)], now=NOON))
    assert trader.trades().select("event_id", "stake").rows() == [("e1", 700.0), ("e2", 300.0)]
    assert_frame_equal(
        backtest(tmp_path / "tape", rule, latency_s=0.0).trades[:, : trader.trades().width], trader.trades()
    )


def test_money_is_never_spent_twice(past: pl.DataFrame) -> None:
    poor = Strategy(**{**vars(SOFT), "staking": "flat", "size": 0.2, "max_event": None})
    trades = backtest(past, poor, bankroll=100.0).trades
    assert trades.filter(pl.col("status") != "rejected")["stake"].sum() <= 100.0 + 1e-9


def test_groups_have_every_bet_once(found: Backtest) -> None:
    for column in ("sportsbook", "market_type", "hours"):
        assert found.by(column)["bets"].sum() == found.bets.height, column


# ---- settlement ----


@pytest.mark.parametrize(
    ("sport", "market", "selection", "line", "home", "away", "share"),
    [
        ("basketball", "moneyline", "Lakers", None, 101, 99, 1.0),
        ("basketball", "moneyline", "Celtics", None, 101, 99, -1.0),
        ("basketball", "point_spread", "Lakers", -2.0, 101, 99, 0.0),
        ("basketball", "point_spread", "Celtics", 2.5, 101, 99, 1.0),
        ("soccer", "asian_handicap", "Lakers", -0.25, 1, 1, -0.5),
        ("soccer", "total_goals", "Over", 2.25, 1, 1, -0.5),
        ("soccer", "total_goals", "Under", 2.25, 1, 1, 0.5),
        ("soccer", "moneyline", "Draw", None, 1, 1, 1.0),
        ("soccer", "both_teams_to_score", "Yes", None, 2, 0, -1.0),
        ("basketball", "player_points", "LeBron James Over 20.5", 20.5, 101, 99, float("nan")),
        ("basketball", "moneyline", "Lakers", None, None, 99, float("nan")),
    ],
)
def test_settlement(
    sport: str, market: str, selection: str, line: float | None, home: int | None, away: int, share: float
) -> None:
    frame = pl.DataFrame(
        {
            "event_id": ["e"] * 3, "sportsbook": ["b"] * 3, "sport": [sport] * 3, "home_team": ["Lakers"] * 3,
            "away_team": ["Celtics"] * 3, "market_type": [market, "moneyline", "moneyline"],
            "selection": [selection, "Draw", "Lakers"], "line": [line, None, None], "odds_decimal": [2.0, 3.0, 2.5],
            "player_name": ["LeBron James" if "LeBron" in selection else None, None, None],
        },
        schema_overrides={"line": pl.Float64},
    )  # fmt: skip
    if sport != "soccer":
        frame = frame.head(1)
    h = [float("nan") if home is None else float(home)] * frame.height
    got = settled(oe.check_odds(frame), np.array(h), np.full(frame.height, float(away)))[0]
    assert got == pytest.approx(share, nan_ok=True)


def test_a_history_is_played_in_order(past: pl.DataFrame) -> None:
    engine = oe.Engine()
    moments = [now for now, *_ in steps(engine, source(past))]
    assert moments == sorted(moments)


def test_stakes_stay_within_the_maximum_bet_of_the_price() -> None:
    past = history(*([{**row, "max_bet": 4.0} for row in snapshot(at, 2.1)] for at in (0, 1)))
    assert backtest(past, RULE).trades["stake"].to_list() == [4.0]
    assert backtest(past.lazy(), RULE).trades["stake"].to_list() == [4.0]
    assert backtest(past, Strategy(**{**vars(RULE), "max_bet": 3.0})).trades["stake"].to_list() == [3.0]
