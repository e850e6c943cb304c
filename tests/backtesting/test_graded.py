"""Bets graded by a history: the closes and results of a backtest, the formulas, and reasons for what is missing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal
from support.effort import less

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting.graded import GRADED_SCHEMA
from oddsengine.backtesting.grading import bet_gains
from oddsengine.simulate.football_seasons import seasons

START = datetime(2026, 2, 9, 0, 30, tzinfo=UTC)
BOOKS = ("pinnacle", "draftkings", "betmgm", "caesars", "fanduel")
EVENT = {
    "event_id": "e1", "sport": "basketball", "league": "nba", "home_team": "Los Angeles Lakers",
    "away_team": "Boston Celtics", "event_start_time": START,
}  # fmt: skip
BET = {"event_id": "e1", "market_type": "total", "selection": "Over 220.5", "sportsbook": "FanDuel", "odds": 2.1}


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("season") / "E0.csv"
    path.write_bytes(b"".join(next(seasons(1)).data.splitlines(keepends=True)[: less(381, 71)]))
    return path


def snapshot(minutes: float, over: float = 1.9, under: float = 2.0, **other: Any) -> list[dict[str, Any]]:
    """Totals of all books some minutes before the start."""
    base = {**EVENT, "market_type": "total_points", "line": 220.5, "last_seen_at": START - timedelta(minutes=minutes)}
    return [
        {**base, "sportsbook": book, "selection": side, "odds_decimal": odds, **other}
        for book in BOOKS
        for side, odds in (("Over", over), ("Under", under))
    ]


PAST = pl.DataFrame(snapshot(300) + snapshot(2))
FAIR = oe.devig([1.9, 2.0], "power")[0]


def graded(*bets: dict[str, Any], history: pl.DataFrame = PAST, **options: Any) -> pl.DataFrame:
    return oe.grade(list(bets), history, **options).bets


def test_trades_of_a_backtest_have_the_same_closes_and_results(season: Path) -> None:
    past = oe.backtest(season, oe.Strategy(min_ev=1.0, sharp="pinnacle"))
    trades = past.bets
    found = oe.grade(trades, season)
    assert trades.height > less(100, 20)
    assert trades["closing_ev"].null_count()
    assert_series_equal(found.bets["ev_at_close"], trades["closing_ev"], check_names=False)
    assert_series_equal(found.bets["profit"], trades["profit"], check_names=False)
    assert_series_equal(found.bets["profit_given"], trades["profit"], check_names=False)
    assert set(found.bets["settled_by"]) == {"score"}
    kept = [name for name in trades.columns if name not in GRADED_SCHEMA]
    assert_frame_equal(found.bets.select(kept), trades.select(kept))
    one, other = found.summary(), past.summary()
    assert (one.ev_at_close, one.ev_at_close_error) == (other.closing_ev, other.closing_ev_error)
    assert (one.rate, one.rate_error, one.staked) == (other.rate, other.rate_error, other.staked)


def test_trades_have_the_same_closes_in_a_history_with_many_snapshots() -> None:
    *others, over, under = snapshot(290)  # the last two of FanDuel
    good = [*others, {**over, "odds_decimal": 2.15}, {**under, "odds_decimal": 1.75}]
    past = pl.DataFrame([*snapshot(300), *good, *snapshot(200), *snapshot(3)])
    rule = oe.Strategy(min_ev=1.0, sharp="pinnacle", method="power")
    trades = oe.backtest(past, rule).bets
    assert trades["closing_ev"].to_list() == pytest.approx([2.15 * FAIR - 1.0])
    found = oe.grade(trades, past).bets
    assert_series_equal(found["ev_at_close"], trades["closing_ev"], check_names=False)
    assert found["closing_odds"].to_list() == [1.9]


def test_values_are_those_of_the_formulas() -> None:
    """Slow twin: CLV, EV at the close, results and profits of a handful of bets, by hand."""
    bets: list[dict[str, Any]] = [
        {**BET, "odds": 2.1, "stake": 10.0},
        {**BET, "odds": 1.8, "stake": 25.0},
        {**BET, "selection": "Under 220.5", "odds": 2.2, "stake": 4.0},
    ]
    score = pl.DataFrame({"event_id": ["e1"], "home_score": [120], "away_score": [110]})
    found = oe.grade(bets, PAST, results=score)
    rows = found.bets.to_dicts()
    clv, ev, profit = [], [], 0.0
    for bet, row in zip(bets, rows, strict=True):
        over = bet["selection"].startswith("Over")
        closing, fair = (1.9, FAIR) if over else (2.0, 1.0 - FAIR)
        assert row["closing_odds"] == closing
        assert row["closing_probability"] == pytest.approx(fair, abs=1e-12)
        assert row["clv"] == pytest.approx(bet["odds"] / closing - 1.0)
        assert row["ev_at_close"] == pytest.approx(bet["odds"] * fair - 1.0)
        assert row["result"] == ("won" if over else "lost")
        assert row["profit"] == pytest.approx(bet["stake"] * (bet["odds"] - 1.0 if over else -1.0))
        assert (row["no_clv"], row["no_close"], row["no_result"]) == (None, None, None)
        clv.append(row["clv"])
        ev.append(row["ev_at_close"])
        profit += row["profit"]
    s = found.summary()
    assert (s.clv, s.ev_at_close, s.profit) == pytest.approx((np.mean(clv), np.mean(ev), profit))
    assert s.rate == pytest.approx(profit / 39.0)
    assert np.isnan(s.clv_error)  # one event
    assert (s.bets, s.events, s.won, s.lost, s.pushed, s.beat_close) == (3, 1, 2, 1, 0, 2 / 3)


def test_errors_are_clustered_by_event() -> None:
    other: dict[str, Any] = {"event_id": "e2", "home_team": "Chicago Bulls", "away_team": "Miami Heat"}
    past = pl.concat([PAST, pl.DataFrame(snapshot(300, **other) + snapshot(2, over=2.0, under=1.9, **other))])
    s = oe.grade([BET, {**BET, "odds": 2.2}, {**BET, "event_id": "e2"}], past).summary()
    values = [[2.1 / 1.9 - 1.0, 2.2 / 1.9 - 1.0], [2.1 / 2.0 - 1.0]]
    mean = sum(map(sum, values)) / 3
    squares = sum(sum(x - mean for x in event) ** 2 for event in values)
    assert s.clv_error == pytest.approx((2 / 1 * squares) ** 0.5 / 3)
    absent = [
        {"event_id": None, "event_name": "Heat @ Bulls", "Date": day, "result": "won"}
        for day in ("2026-03-01", "2026-03-01", "2026-03-02")
    ]
    assert oe.grade([{**BET, **each} for each in absent], PAST).summary().events == 2


def test_commission_of_exchanges_counts() -> None:
    row = graded({**BET, "sportsbook": "betfair_exchange", "result": "won"})
    commission = catalog.book("betfair_exchange").commission
    assert commission > 0.0
    net = 1.0 + 1.1 * (1.0 - commission)
    assert row["profit"].item() == pytest.approx(net - 1.0)
    assert row["ev_at_close"].item() == pytest.approx(net * FAIR - 1.0)
    own = graded({**BET, "net_odds": 2.0, "result": "won"}).row(0, named=True)
    assert (own["profit"], own["ev_at_close"]) == (1.0, pytest.approx(2.0 * FAIR - 1.0))
    assert own["clv"] == pytest.approx(2.1 / 1.9 - 1.0)  # odds against odds, both before commission


def test_closing_odds_of_the_bets_count_only_if_asked_for() -> None:
    bets = [{**BET, "closing_odds": "-110"}, {**BET, "closing_odds": None}]
    assert graded(*bets)["closing_odds"].to_list() == [1.9, 1.9]
    own = graded(*bets, closing_odds="bets")
    assert own["closing_odds"].to_list() == pytest.approx([1.0 + 100 / 110, 1.9])
    assert own["clv"].to_list() == pytest.approx([2.1 / (1.0 + 100 / 110) - 1.0, 2.1 / 1.9 - 1.0])
    assert own["closing_odds_given"].to_list() == ["-110", None]
    absent = graded({**BET, "event_id": "e9", "closing_odds": 2.0}, closing_odds="bets")
    assert absent["clv"].item() == pytest.approx(0.05)
    assert absent.select("no_clv", "no_close").row(0) == (None, "event not in the history")


def test_a_result_of_the_bet_counts_before_the_score() -> None:
    score = pl.DataFrame({"event_id": ["e1"], "home_score": [120], "away_score": [110]})
    words = ["Won", "LOSS", "half_won", "Void", "half lost", None, "pending", "Cashed Out"]
    found = graded(*({**BET, "result": word} for word in words), results=score)
    assert found["result"].to_list() == ["won", "lost", "half won", "push", "half lost", "won", "won", None]
    assert found["profit"].to_list() == pytest.approx([1.1, -1.0, 0.55, 0.0, -0.5, 1.1, 1.1, None])
    assert found["settled_by"].to_list() == ["bet"] * 5 + ["score", "score", None]
    assert found["no_result"].to_list() == [None] * 7 + ["cashed out"]


def test_a_tie_is_a_push_only_where_the_book_returns_the_stake() -> None:
    """Kalshi and Polymarket pay 0.50 for either side of an NFL game that ends level: neither won, lost nor a push."""
    teams = {"sport": "football", "league": "nfl", "home_team": "Buffalo Bills", "away_team": "Miami Dolphins"}
    game = EVENT | teams | {"market_type": "moneyline", "selection": "Bills"}
    past = pl.DataFrame([game | {"sportsbook": "pinnacle", "odds_decimal": 1.5, "last_seen_at": START}])
    bets = [game | {"sportsbook": book, "odds": 1.5} for book in ("kalshi", "polymarket", "draftkings", "kalshi")]
    bets[3] |= {"market_type": "total_points", "selection": "Over", "line": 40.0}
    level, ahead = (
        graded(
            *bets, history=past, results=pl.DataFrame({"event_id": ["e1"], "home_score": [home], "away_score": [20]})
        )
        for home in (20, 27)
    )
    assert level["result"].to_list() == [None, None, "push", "push"]
    assert level.select("profit", "no_result").row(0) == (None, "not settled by the score")
    assert ahead["result"].to_list() == ["won"] * 4
    # A backtest knows the profit of half of what a winner gets.
    contracts = pl.DataFrame(
        [{**bet, "odds_decimal": odds, "net_odds": odds} for bet in bets[:3] for odds in (1.5, 2.6)]
    )
    assert bet_gains(contracts, {"e1": (20.0, 20.0)}) == pytest.approx([-0.25, 0.3, -0.25, 0.3, 0.0, 0.0])


@pytest.mark.parametrize(
    ("change", "no_clv", "no_close", "no_result"),
    [
        ({"event_id": "e9"}, *["event not in the history"] * 3),
        ({"event_id": "Bulls @ Heat"}, *["teams not in the history"] * 3),
        ({"event_id": "Celtics @ Lakers", "Date": "2026-03-01"},
         *["no game of these teams at that time in the history"] * 3),
        ({"is_live": True}, "bet in play", "bet in play", "no score"),
        ({"placed_at": START}, "placed after the start", "placed after the start", "no score"),
        ({"market_type": "wonders"}, *["market or selection not recognised"] * 2, "no score"),
        ({"market_type": None}, *["market or selection not recognised"] * 2, "no score"),
        ({"market_type": "moneyline", "selection": "Lakers"}, *["market not quoted at the close"] * 2, "no score"),
        ({"selection": "Over 221.5"}, "closed on another line at the sportsbook", "too few other books at the close",
         "no score"),
        ({"sportsbook": "bet365"}, "not quoted by the sportsbook at the close", None, "no score"),
        ({"sportsbook": None}, "no sportsbook given", None, "no score"),
    ],
)  # fmt: skip
def test_what_is_missing_has_a_reason(
    change: dict[str, Any], no_clv: str | None, no_close: str | None, no_result: str | None
) -> None:
    found = oe.grade([{**BET, **change}], PAST)
    assert found.bets.select("no_clv", "no_close", "no_result").row(0) == (no_clv, no_close, no_result)
    s = found.summary()
    assert (s.no_clv, s.no_close, s.no_result) == tuple(
        {} if why is None else {why: 1} for why in (no_clv, no_close, no_result)
    )
    assert (s.priced, s.closed, s.settled) == (no_clv is None, no_close is None, 0)


def test_a_history_without_a_close_says_so() -> None:
    row = graded(BET, history=pl.DataFrame(snapshot(300))).row(0, named=True)
    why = "no snapshot in the 30 minutes before the start"
    assert (row["history_event_id"], row["no_clv"], row["no_close"]) == ("e1", why, why)


def test_a_price_that_was_gone_at_the_close_is_no_closing_price() -> None:
    early = [row for row in snapshot(40) if row["sportsbook"] == "fanduel"]
    late = [row for row in snapshot(2) if row["sportsbook"] != "fanduel"]
    row = graded(BET, history=pl.DataFrame(early + late)).row(0, named=True)
    assert (row["closing_odds"], row["no_clv"]) == (None, "not quoted by the sportsbook at the close")
    assert row["ev_at_close"] == pytest.approx(2.1 * FAIR - 1.0)


def test_the_csv_file_of_a_tracker(season: Path, tmp_path: Path) -> None:
    path = tmp_path / "bets.csv"
    path.write_text(
        "Date,Sportsbook,Event,Market,Selection,Odds,Stake,Result,Closing Line,Notes\n"
        '14/08/2020,Bet365,West Ham v Chelsea,1X2,West Ham,+120,"$1,000.00",,+105,a\n'
        "14/08/2020,Bet365,Chelsea v West Ham,1X2,Home,+240,10,,,b\n"
        "14/08/2020,William Hill,West Ham United v Chelsea,Asian Handicap,West Ham -0.25,+100,10,,,c\n"
        "14/08/2020,Bet365,West Ham v Chelsea,Corners,Over 9.5,-110,10,Won,,d\n"
    )
    found = oe.grade(path, season)
    assert found.bets["Notes"].to_list() == ["a", "b", "c", "d"]
    assert found.bets["Closing Line"].to_list() == ["+105", None, None, None]
    assert found.bets["closing_odds"].to_list() == [2.09, 3.35, None, None]
    assert found.bets["result"].to_list() == ["lost", "lost", "half lost", "won"]
    assert found.bets["profit"].to_list() == pytest.approx([-1000.0, -10.0, -5.0, 1000 / 110])
    assert oe.grade(path, season, closing_odds="bets").bets["closing_odds"].to_list() == [2.05, 3.35, None, None]


def test_the_summary_has_a_figure_per_line() -> None:
    text = str(oe.grade([{**BET, "result": "won"}, {**BET, "event_id": "e9"}], PAST).summary())
    lines = dict(line.split("  ", 1) for line in text.splitlines())
    assert {name: value.strip() for name, value in lines.items()} == {
        "bets": "2",
        "events": "2",
        "bets with closing odds": "1",
        "CLV": "10.53%",
        "beat the closing odds": "100%",
        "bets without closing odds: event not in the history": "1",
        "bets with a fair price at the close": "1",
        "EV at the close": f"{2.1 * FAIR - 1.0:.2%}",
        "bets without a close: event not in the history": "1",
        "bets with a result": "1",
        "won, lost, pushed": "1, 0, 0",
        "staked": "1.00",
        "profit": "1.10",
        "return on stakes": "110.00%",
        "bets without a result: event not in the history": "1",
    }


def test_no_bets() -> None:
    found = oe.grade(pl.DataFrame(schema=dict.fromkeys(BET, pl.String)), PAST)
    assert found.bets.columns == [*BET, *GRADED_SCHEMA]
    assert found.bets.schema["clv"] == pl.Float64
    assert (found.summary().bets, found.summary().staked) == (0, 0.0)
    assert "unknown" in str(found.summary())


def test_a_tape_is_a_history(tmp_path: Path) -> None:
    engine, writer = oe.resume(tmp_path / "tape")
    with writer:
        for minutes in (300, 2):
            engine.step(snapshot(minutes), START - timedelta(minutes=minutes))
    bet = {**BET, "event_id": "Celtics @ Lakers"}
    assert_frame_equal(oe.grade([bet], tmp_path / "tape").bets, graded(bet))
    assert graded(bet)["history_event_id"].to_list() == ["e1"]


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="closing_odds must be history or bets, got 'mine'"):
        oe.grade([BET], PAST, closing_odds="mine")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="results must have the columns event_id, home_score and away_score, got a"):
        oe.grade([BET], PAST, results=pl.DataFrame({"a": [1]}))
    with pytest.raises(TypeError, match="a history must be a frame, a path or a tape, got int"):
        oe.grade([BET], 3)
