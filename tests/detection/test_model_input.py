"""Own probabilities as the reference: by column, by outcome and by score, in tables, on a live board, in a backtest."""

import math
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.boards import unnumbered
from support.rows import AWAY, HOME, LA_LIGA, MOMENT, NBA, moneyline, prop, row, spread, table, total

import oddsengine as oe
from oddsengine.detection.model_input import winning
from oddsengine.live.snapshot import dump, restore
from oddsengine.pricing.close_errors import central_errors
from oddsengine.pricing.model import of_rows
from oddsengine.tape.writing import TapeWriter

BOARD = table(
    moneyline("a", 1.9, 2.1), moneyline("b", 1.8, 2.2), total("a", 220.5, 2.1, 1.8), total("b", 220.5, 1.9, 1.95),
    total("b", 223.0, 2.2, 1.7), spread("a", -3.5, 1.95, 1.95), prop("a", "LeBron James", 25.5, 2.3, 1.65),
)  # fmt: skip
PROBS = {"moneyline": 0.52, "total_points": 0.49, "point_spread": 0.5, "player_points": 0.46}


def own(board: pl.DataFrame = BOARD) -> pl.DataFrame:
    """A board with a probability for every outcome: that of its first side, or of the other."""
    first = pl.col("selection").str.contains("(?i)over|Boston")
    p = pl.col("market_type").replace_strict(PROBS, default=0.5, return_dtype=pl.Float64) - 0.01 * (
        pl.col("line").is_in([223.0, -223.0])
    ).fill_null(value=False)
    return board.with_columns(p=pl.when(first).then(p).otherwise(1.0 - p), p_error=pl.lit(0.03))


def outcomes(board: pl.DataFrame) -> pl.DataFrame:
    """The same probabilities, once per outcome, as a model would say them."""
    return board.select(
        "event_id", "market_type", "selection", "line", "player_name", probability="p", error="p_error"
    ).unique(["market_type", "selection", "line", "player_name"], maintain_order=True)


def test_every_price_is_judged_by_its_probability() -> None:
    board = own()
    found = oe.find_ev(board, model="p", min_ev=-100, guards=[])
    assert found.height == board.height
    for bet in found.iter_rows(named=True):
        p, d = bet["fair_probability"], bet["odds_decimal"]
        assert p == board["p"][bet["row"]]
        assert bet["ev_percentage"] == pytest.approx(100.0 * (p * d - 1.0))
        assert bet["kelly_percent"] == pytest.approx(max(0.0, (p * d - 1.0) / (d - 1.0)))
        assert bet["ev_error"] == pytest.approx(100.0 * d * 0.03)
        logit, error = math.log(p / (1.0 - p)), central_errors(90, 0.0) * 0.03 / (p * (1.0 - p))
        ends = [100.0 * (d / (1.0 + math.exp(-(logit + sign * error))) - 1.0) for sign in (-1.0, 1.0)]
        assert [bet["ev_low"], bet["ev_high"]] == pytest.approx(ends)
        assert (bet["prob_positive"] > 0.5) == (bet["ev_percentage"] > 0.0)
        assert (bet["reference"], bet["devig_method"], bet["independent_books"]) == ("model", None, None)
        assert (bet["kelly_shrunk"] or 0.0) <= bet["kelly_percent"]
    assert oe.find_ev(board.drop("p_error"), model="p", min_ev=-100, guards=[])["ev_error"].null_count() == board.height


def test_rows_without_a_price_do_no_harm() -> None:
    board = pl.concat(
        [own(), own().head(1).with_columns(odds_decimal=None, odds_american=None, sportsbook=pl.lit("z"))]
    )
    found = oe.find_ev(board, model=outcomes(own()), min_ev=-100, guards=[])
    assert found.height == own().height


def test_an_exact_model() -> None:
    found = oe.find_ev(own().with_columns(p_error=0.0), model="p", min_ev=-100, guards=[])
    assert found["prob_positive"].to_list() == pytest.approx([float(ev > 0.0) for ev in found["ev_percentage"]])
    assert found["kelly_shrunk"].to_list() == pytest.approx(found["kelly_percent"].to_list())
    assert found["ev_low"].to_list() == pytest.approx(found["ev_percentage"].to_list())


def test_by_outcome_is_the_same_as_by_column() -> None:
    board = own()
    by_column = oe.find_ev(board, model="p", min_ev=-100, guards=[])
    model = outcomes(board)
    for given_ in (model, model.lazy(), model.to_pandas(), model.sample(fraction=1.0, shuffle=True, seed=3)):
        by_outcome = oe.find_ev(board, model=given_, min_ev=-100, guards=[])
        assert by_outcome.drop("p", "p_error").equals(by_column.drop("p", "p_error"))
    # One side of two is enough.
    first = model.filter(pl.col("selection").str.contains("(?i)over|Boston"))
    half = oe.find_ev(board, model=first, min_ev=-100, guards=[])
    assert_frame_equal(half, by_column, abs_tol=1e-12)


def test_only_what_the_model_knows_is_found() -> None:
    board = own().with_columns(p=pl.when(pl.col("market_type") == "moneyline").then("p"))
    found = oe.find_ev(board, model="p", min_ev=-100, guards=[])
    assert set(found["market_type"]) == {"moneyline"}
    model = outcomes(own()).filter(market_type="moneyline")
    assert set(oe.find_ev(board, model=model, min_ev=-100, guards=[])["market_type"]) == {"moneyline"}
    fair = oe.fair(own(), model=model, guards=[])
    known = fair["market_type"] == "moneyline"
    assert fair["reference"].to_list() == ["model" if each else None for each in known]
    assert fair.filter(known)["fair_error"].to_list() == pytest.approx([0.03] * int(known.sum()))
    other = pl.DataFrame({"event_id": ["x"], "market_type": "moneyline", "selection": "A", "probability": 0.5})
    teams = {"home_team": pl.lit("A"), "away_team": pl.lit("B"), "sport": pl.lit("basketball")}
    with pytest.warns(oe.OddsWarning, match="the model has a probability for none of the usable prices"):
        assert not oe.find_ev(own(), model=other.with_columns(**teams)).height
    with pytest.raises(oe.OddsError, match="home_team and away_team of the model, say who plays"):
        oe.find_ev(own(), model=other)


def test_books_and_guards_are_as_without_a_model() -> None:
    board = own()
    found = oe.find_ev(board, books=["a"], model="p", min_ev=0.0)
    assert set(found["sportsbook"]) == {"a"}
    stakes = oe.kelly_portfolio(found.filter(pl.col("net_odds") > 1), bankroll=1000)
    assert stakes.bets["stake"].sum() > 0.0
    everything = oe.find_all(board, model="p", min_ev=-100, min_profit=-99, guards=[])
    assert everything.ev.height == board.height
    assert everything.arbitrage["ev_percentage"].drop_nulls().is_not_null().all()


def test_a_live_view_says_what_the_table_does() -> None:
    engine = oe.Engine(guards=[])
    engine.step(BOARD, MOMENT)
    model = outcomes(own())
    view = engine.view(model=model, min_ev=-100.0, kinds=["ev"], keep=True)
    other = engine.view(min_ev=-100.0, kinds=["ev"], keep=True)
    for odds in (1.9, 2.4, 2.7):
        changed = BOARD.with_columns(
            odds_decimal=pl.when(pl.col("sportsbook") == "a").then(pl.lit(odds)).otherwise("odds_decimal"),
            odds_american=None,
        )
        update = engine.step(changed, MOMENT + timedelta(seconds=odds))
        assert update.of(view).affected.size
        live = view.opportunities().ev.drop("detected_at", "odds_id")
        whole = oe.find_ev(engine.table(), model=model, min_ev=-100, guards=[], now=engine.moment)
        whole = whole.drop("detected_at", "odds_id")
        assert_frame_equal(unnumbered(live).sort("id"), unnumbered(whole).select(live.drop("row").columns).sort("id"))
        assert view.ids()["ev"]
    assert engine.view(min_ev=-100.0, kinds=["ev"]) is other
    with pytest.raises(oe.OddsError, match="a live board has no column 'p'"):
        engine.view(model="p")  # type: ignore[arg-type]


def test_a_view_with_a_model_is_neither_recorded_nor_in_snapshots(tmp_path: Any) -> None:
    engine = oe.Engine()
    with TapeWriter(tmp_path / "t") as tape:
        engine.record(tape)
        engine.step(BOARD, MOMENT)
        engine.view(model=outcomes(own()), keep=True).close()
        engine.view(keep=True)
        engine.step(BOARD, MOMENT + timedelta(seconds=1))
        engine.view(model=outcomes(own()), keep=True)
        assert len(dump(engine)["views"]) == 1
        restore(oe.Engine(), dump(engine))
    replayed = oe.replay(tmp_path / "t")
    assert replayed.table().equals(engine.table())
    assert [view.wanted.model for view in replayed.views] == [None]


def test_a_backtest_bets_by_the_model() -> None:
    moments = [MOMENT + timedelta(seconds=60 * at) for at in range(5)]
    history = pl.concat(
        BOARD.with_columns(last_seen_at=pl.lit(at), event_start_time=pl.lit(MOMENT + timedelta(hours=1)))
        for at in moments
    )
    model = outcomes(own()).drop("error")
    result = oe.backtest(history, oe.Strategy(model=model, min_ev=1.0, staking="flat", size=0.01))
    wanted = oe.find_ev(history.filter(last_seen_at=moments[0]), model=model, min_ev=1.0)
    assert wanted.height > 1
    assert sorted(result.trades["odds_id"].is_not_null()) == [True] * wanted.height
    assert sorted(result.trades["ev"].to_list()) == pytest.approx(sorted((wanted["ev_percentage"] / 100).to_list()))


def poisson(mean: float) -> Any:
    return np.array([math.exp(-mean) * mean**k / math.factorial(k) for k in range(13)])


GRID = np.outer(poisson(1.6), poisson(1.1))
SCORES = [(h, a, float(GRID[h, a] / GRID.sum())) for h in range(13) for a in range(13)]


def slow_winning(over: bool, line: float) -> float:
    """The share of stakes that win of those that are not returned, score by score."""
    won = lost = 0.0
    for part in (line - 0.25, line + 0.25) if (4 * line) % 2 else (line, line):
        for h, a, p in SCORES:
            if h + a != part:
                won, lost = (won + p / 2, lost) if (h + a > part) == over else (won, lost + p / 2)
    return won / (won + lost)


@given(st.integers(2, 30), st.booleans())
def test_quarter_and_whole_lines(quarters: int, over: bool) -> None:
    line = quarters / 4.0
    goals = np.add.outer(np.arange(13), np.arange(13))
    found = winning(GRID / GRID.sum(), goals if over else -goals, line if over else -line)
    assert found == pytest.approx(slow_winning(over, line))


class Grid:
    """As penaltyblog's `FootballProbabilityGrid`."""

    grid = GRID


@pytest.mark.parametrize("matrix", [GRID, GRID.tolist(), Grid()])
def test_probabilities_of_scores(matrix: Any) -> None:
    quotes = [
        [row("x", "moneyline", side, odds, **LA_LIGA) for side, odds in
         (("Atlético Madrid", 2.0), ("Draw", 3.5), ("Torino", 4.4))],
        [row("x", "total_goals", side, 2.0, line, **LA_LIGA)
         for line in (2.0, 2.25, 2.5) for side in ("Over", "Under")],
        [row("x", "both_teams_to_score", side, 2.0, **LA_LIGA) for side in ("Yes", "No")],
        [row("x", "point_spread", "Atlético Madrid", 2.0, -0.75, **LA_LIGA),
         row("x", "point_spread", "Torino", 2.0, 0.75, **LA_LIGA)],
    ]  # fmt: skip
    found = oe.find_ev(table(*quotes), model={"s": matrix}, min_ev=-100, guards=[])
    said = {(r["market_type"], r["selection"], r["line"]): r["fair_probability"] for r in found.iter_rows(named=True)}
    assert len(said) == 13
    home = sum(p for h, a, p in SCORES if h > a)
    assert next(p for (_, name, line), p in said.items() if name == "Atlético Madrid" and line is None) == (
        pytest.approx(home)
    )
    for line in (2.0, 2.25, 2.5):
        assert said["total_goals", "Over", line] == pytest.approx(slow_winning(True, line))
    assert said["both_teams_to_score", "Yes", None] == pytest.approx(sum(p for h, a, p in SCORES if h and a))
    lead = {d: sum(p for h, a, p in SCORES if h - a == d) for d in range(-12, 13)}
    won = sum(p for d, p in lead.items() if d >= 2) + 0.5 * lead[1]
    lost = sum(p for d, p in lead.items() if d <= 0)
    assert said["point_spread", "Atlético Madrid", -0.75] == pytest.approx(won / (won + lost))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"probability": 1.2}, r"model row 0: probability must be above 0 and below 1, got 1.2"),
        ({"probability": "soon"}, r"model row 0: probability must be a number, got 'soon'"),
        ({"error": -0.1}, r"model row 0: error must be 0 or more and below 1, got -0.1"),
        ({"selection": "Nobody"}, r"model row 0 .*'Nobody'.*unknown_outcome"),
        ({"market_type": "zz"}, r"model row 0 .*'zz'.*unmapped"),
    ],
)
def test_rows_that_are_no_outcome(change: dict[str, Any], said: str) -> None:
    with pytest.raises(oe.OddsError, match=said):
        oe.find_ev(BOARD, model=outcomes(own()).head(1).with_columns(**{k: pl.lit(v) for k, v in change.items()}))


def test_a_model_whose_columns_have_names_of_their_own() -> None:
    model = outcomes(own())
    mine = model.rename({"market_type": "kind", "selection": "bet", "probability": "p_win"})
    columns = {"kind": "market_type", "bet": "selection", "p_win": "probability"}
    assert_frame_equal(oe.find_ev(BOARD, model=oe.check_model(mine, columns=columns)), oe.find_ev(BOARD, model=model))
    with pytest.raises(
        oe.OddsError,
        match=r"model: it has no market_type, no selection, no prob.* check_model\(model, columns=",
    ):
        oe.find_ev(BOARD, model=mine)
    with pytest.raises(oe.OddsError, match="model: the table has no column 'kid', did you mean kind"):
        oe.check_model(mine, columns={"kid": "market_type"})


def test_models_that_are_none() -> None:
    model = outcomes(own())
    with pytest.raises(oe.OddsError, match=r"model: it has no probability \(its columns: event_id, "):
        oe.find_ev(BOARD, model=model.drop("probability"))
    with pytest.raises(oe.OddsError, match="model rows 0 and 1 are the same outcome"):
        oe.find_ev(BOARD, model=pl.concat([model.head(1)] * 2))
    with pytest.raises(oe.OddsError, match="model: the prices have no column 'q'"):
        oe.find_ev(BOARD, model="q")
    with pytest.raises(oe.OddsError, match="p of row 2: probability must be above 0"):
        oe.find_ev(own().with_columns(p=pl.when(pl.int_range(pl.len()) == 2).then(7.0).otherwise("p")), model="p")
    with pytest.raises(ValueError, match="method cannot be combined with a model"):
        oe.find_ev(own(), model="p", method="power")
    with pytest.raises(oe.OddsError, match="event 's' must sum to 1, got 2"):
        oe.find_ev(BOARD, model={"s": 2 * GRID / GRID.sum()})
    with pytest.raises(oe.OddsError, match="event 's' needs a matrix of the probabilities of scores, got list"):
        oe.find_ev(BOARD, model={"s": [0.5, 0.5]})
    with pytest.raises(oe.OddsError, match=r"model: .* got int"):
        oe.find_ev(BOARD, model=3)  # type: ignore[arg-type]


def swapped(books: str) -> pl.DataFrame:
    """A board of which some books name the teams the other way round."""
    lines = [total(b, 220.5, 1.9, 1.9) + spread(b, -3.5, 1.9, 1.9) + spread(b, 3.5, 1.9, 1.9) + moneyline(b, 1.9, 1.9)
             for b in "abc"]  # fmt: skip
    board = table(*(row for line in lines for row in line))
    across = pl.col("sportsbook").is_in(list(books))
    home, away = board["home_team"], board["away_team"]
    return board.with_columns(
        home_team=pl.when(across).then(pl.lit(away[0])).otherwise("home_team"),
        away_team=pl.when(across).then(pl.lit(home[0])).otherwise("away_team"),
        selection_type=None, team_side=None,
    )  # fmt: skip


@pytest.mark.parametrize("books", ["", "a", "c", "ab", "abc"])
@pytest.mark.parametrize("teams", [{}, {"home_team": HOME, "away_team": AWAY}, {"home_team": AWAY, "away_team": HOME}])
def test_a_probability_stays_with_its_team(books: str, teams: dict[str, str]) -> None:
    board = swapped(books)
    said = [("moneyline", HOME, None, 0.6), ("point_spread", HOME, -3.5, 0.45), ("point_spread", HOME, 3.5, 0.7)]
    model = pl.DataFrame(said, ["market_type", "selection", "line", "probability"], orient="row").with_columns(
        event_id=pl.lit("e"), **({"sport": pl.lit("basketball")} if teams else {}),
        **{name: pl.lit(team) for name, team in teams.items()},
    )  # fmt: skip
    wanted = {(HOME, None): 0.6, (AWAY, None): 0.4, (HOME, -3.5): 0.45, (AWAY, 3.5): 0.55, (HOME, 3.5): 0.7,
              (AWAY, -3.5): 0.3}  # fmt: skip
    engine = oe.Engine(guards=[])
    for book in "abc":  # the board may turn the event when the next book comes
        engine.step(board.filter(sportsbook=book), MOMENT)
        view = engine.view(model=model, min_ev=-100.0, kinds=["ev"], keep=True)
    early = oe.Engine(guards=[])
    early.step(board.filter(sportsbook="a"), MOMENT)
    old = early.view(model=model, min_ev=-100.0, kinds=["ev"], keep=True)
    early.step(board, MOMENT)
    found = [oe.find_ev(each, model=model, min_ev=-100, guards=[]) for each in (board, board[::-1])]
    assert [each.height for each in found] == [18, 18]
    for frame in (*found, view.opportunities().ev, old.opportunities().ev):
        for bet in frame.iter_rows(named=True):
            assert bet["fair_probability"] == pytest.approx(wanted[bet["selection"], bet["line"]])
    assert view.opportunities().ev.height == 18
    words = model.with_columns(selection=pl.lit("home"), selection_type=pl.lit("home"))
    if teams:  # home is the model's
        kept = {HOME: wanted, AWAY: {(AWAY if team == HOME else HOME, line): p for (team, line), p in wanted.items()}}
        for bet in oe.find_ev(board, model=words, min_ev=-100, guards=[]).iter_rows(named=True):
            assert bet["fair_probability"] == pytest.approx(kept[teams["home_team"]][bet["selection"], bet["line"]])


def test_probabilities_that_contradict_each_other() -> None:
    board = own()
    with pytest.raises(
        oe.OddsError, match=r"the prices of rows 0 and 2 are of the same outcome, and p is 0.52 and 0.7"
    ):
        oe.find_ev(board.with_columns(p=pl.when(pl.int_range(pl.len()) == 2).then(0.7).otherwise("p")), model="p")
    wrong = outcomes(board).with_columns(probability=pl.lit(0.6))
    with pytest.raises(
        oe.OddsError, match=r"model: the probabilities of the outcomes of .*moneyline.* must sum to 1, got 1.2"
    ):
        oe.find_ev(board, model=wrong)
    with pytest.raises(oe.OddsError, match=r"the outcomes of .* must sum to 1, got 1.2"):
        oe.find_ev(board.with_columns(p=0.6), model="p")


def test_events_that_only_the_model_has() -> None:
    model = outcomes(own())
    other = model.head(1).with_columns(event_id=pl.lit("typo"), home_team=pl.lit("A"), away_team=pl.lit("B"),
                                       sport=pl.lit("tennis"), selection=pl.lit("A"))  # fmt: skip
    with pytest.warns(oe.OddsWarning, match="the model has 1 of 2 events that the prices do not have"):
        oe.find_ev(own(), model=pl.concat([model, other], how="diagonal"))


def test_rows_keep_their_numbers() -> None:
    model = outcomes(own()).head(3)
    model = model.with_columns(probability=pl.Series([None, 0.48, 7.0]))
    with pytest.raises(oe.OddsError, match="model row 2: probability must be above 0"):
        oe.find_ev(BOARD, model=model)
    with pytest.raises(oe.OddsError, match=r"model row 1 .*Nobody"):
        oe.find_ev(BOARD, model=model.head(2).with_columns(selection=pl.lit("Nobody")))


def test_a_matrix_is_of_soccer() -> None:
    with pytest.raises(oe.OddsError, match="matrices of scores are for soccer, and event 'e' is basketball"):
        oe.find_ev(BOARD, model={"e": GRID})


def test_a_push_that_nobody_knows() -> None:
    board = table(total("a", 220.0, 2.1, 1.8), total("b", 220.5, 2.1, 1.8)).with_columns(p=pl.lit(0.5))
    found = oe.find_ev(board, model="p", min_ev=-100, guards=[])
    whole = found.filter(line=220.0)
    assert whole["push_probability"].is_null().equals(whole["ev_per_stake"].is_null())
    half = found.filter(line=220.5)
    assert half["ev_per_stake"].equals(half["ev_percentage"].alias("ev_per_stake"))


def test_a_price_without_a_probability_takes_that_of_its_outcome() -> None:
    prepared = oe.prepare(own(), guards=[])
    g = prepared.identity.groups
    prob = np.where(np.arange(g.row.size) % 2 == 0, np.nan, 0.25)
    fair = of_rows(g, prob, np.zeros(prob.size))
    segment = np.repeat(np.arange(g.rows.size - 1), np.diff(g.rows))
    for at in range(prob.size):
        mine = prob[segment == segment[at]]
        known = mine[~np.isnan(mine)]
        market = prob[g.market == g.market[at]]
        if not np.isnan(prob[at]):
            assert fair.row[at] == prob[at]
        elif known.size:
            assert fair.row[at] == known[0]
        else:
            assert fair.row[at] == 0.75 if (~np.isnan(market)).any() else np.isnan(fair.row[at])


@pytest.mark.parametrize("sides", [(HOME,), (AWAY,), (HOME, AWAY)])
@pytest.mark.parametrize("other", ["", "d", "z"])
def test_outcomes_that_nobody_quotes(sides: tuple[str, ...], other: str) -> None:
    """A market of one price, alone on the board or before and behind a complete game."""
    rows = [moneyline("a", 1.9, 1.9)[side == AWAY] for side in sides]
    complete = [row | {"event_id": other} for row in moneyline("a", 1.8, 2.0)] if other else []
    board = table(*rows, *complete).with_columns(
        p=pl.when(pl.col("event_id").is_in(["d", "z"])).then(0.5).when(selection=HOME).then(0.6).otherwise(0.4)
    )
    g = oe.prepare(board, guards=[]).identity.groups
    assert (np.diff(g.rows) == 0).any() == (len(sides) == 1)
    found = oe.find_ev(board, model="p", min_ev=-100, guards=[])
    assert found.height == board.height
    for bet in found.filter(event_id="e").iter_rows(named=True):
        assert bet["fair_probability"] == pytest.approx(0.6 if bet["selection"] == HOME else 0.4)
    prob = board["p"].to_numpy()[g.row]
    for at, p in enumerate(of_rows(g, prob, np.zeros(prob.size)).segment):  # an outcome without prices by the other
        own = prob[g.rows[at] : g.rows[at + 1]]
        assert p == pytest.approx(own[0] if own.size else 0.4 if sides == (HOME,) else 0.6)


def test_a_grid_of_penaltyblog_goes_in_as_it_is() -> None:
    models = pytest.importorskip("penaltyblog.models")
    grid = models.FootballProbabilityGrid(GRID, 1.6, 1.1)
    quotes = [row("x", "total_goals", side, 2.0, line, **LA_LIGA) for line in (2.25, 2.5) for side in ("Over", "Under")]
    found = oe.find_ev(table(quotes), model={"s": grid}, min_ev=-100, guards=[])
    for line in (2.25, 2.5):
        lose, _, win = grid.totals(line)
        over = found.filter(selection="Over", line=line)["fair_probability"].item()
        assert over == pytest.approx(win / (win + lose)) == pytest.approx(slow_winning(True, line))


def test_numbers_of_a_model_are_the_sides_of_its_own_teams() -> None:
    """A model may name the teams the other way round than the prices."""
    teams = {"event_id": "e", "sport": "soccer", "market_type": "moneyline_3way"}
    given = [("1", 0.26), ("X", 0.34), ("2", 0.4)]
    model = pl.DataFrame([(text, p) for text, p in given], ["selection", "probability"], orient="row").with_columns(
        home_team=pl.lit("Chelsea"), away_team=pl.lit("Arsenal"), **{name: pl.lit(text) for name, text in teams.items()}
    )
    odds = pl.DataFrame(
        [(book, side) for book in ("pinnacle", "fanduel") for side in ("Arsenal", "Draw", "Chelsea")],
        ["sportsbook", "selection"], orient="row",
    ).with_columns(
        home_team=pl.lit("Arsenal"), away_team=pl.lit("Chelsea"), odds_decimal=pl.lit(2.9),
        **{name: pl.lit(text) for name, text in teams.items()},
    )  # fmt: skip
    found = oe.find_ev(odds, model=model, min_ev=-100)
    assert dict(found.select("selection", pl.col("fair_probability").round(6)).unique().rows()) == {
        "Arsenal": 0.4, "Draw": 0.34, "Chelsea": 0.26,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["home_over", "HOME_OVER"])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_side_of_a_team_total_is_of_the_models_teams(kind: str, swapped: bool) -> None:
    sides = [(team, side) for team in (HOME, AWAY) for side in ("Over", "Under")]
    board = table([row("a", "team_total", f"{team} {side} 110.5", 1.9, 110.5, **NBA) for team, side in sides])
    teams = (AWAY, HOME) if swapped else (HOME, AWAY)
    model = pl.DataFrame({
        "event_id": ["e"], "market_type": "team_total", "selection": "Over 110.5", "selection_type": kind,
        "line": 110.5, "probability": 0.52, "sport": "basketball", "home_team": teams[0], "away_team": teams[1],
    })  # fmt: skip
    found = oe.find_ev(board, model=model, min_ev=-100, guards=[])
    assert {r["selection"]: round(r["fair_probability"], 9) for r in found.iter_rows(named=True)} == {
        f"{teams[0]} Over 110.5": 0.52, f"{teams[0]} Under 110.5": 0.48,
    }  # fmt: skip
