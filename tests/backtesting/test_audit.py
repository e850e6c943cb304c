"""Audits: histories through the live engine, graded against closes that are worked out here by hand."""

import json
import math
import random
import tomllib
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from naive.devig import power
from polars.testing import assert_frame_equal
from support.effort import less, some

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine import catalog
from oddsengine.backtesting.cells import cell, clustered_mean, clustered_slope
from oddsengine.backtesting.fitting import _predicted, collect, fit
from oddsengine.backtesting.formats import read_history
from oddsengine.commands.audit import toml

BOOKS = ("fanduel", "draftkings", "betmgm", "caesars", "bovada", "mybookie", "betonline", "lowvig")
START = datetime(2026, 7, 1, 18, 0, tzinfo=UTC)
SIDES = {"moneyline": ("home", "away"), "spread": ("home", "away"), "total": ("over", "under")}
MOST_SNAPSHOTS = less(12, 6)
SNAPSHOTS = less(12, 4)  # at the games of a fit
Row = dict[str, Any]


def odds_of(x: float) -> tuple[float, float]:
    p = 1.0 / (1.0 + math.exp(-x))
    return p**-0.96, (1.0 - p) ** -0.96


def game(number: int, rng: random.Random, snapshots: int = MOST_SNAPSHOTS) -> list[Row]:
    """Spells of one game: books follow a walk of the truth, each with a lag of its own; a snapshot every 10 min."""
    start = START + timedelta(days=number)
    last = start - timedelta(minutes=5)
    times = [last - timedelta(minutes=10 * at) for at in reversed(range(snapshots))]
    rows: list[Row] = []
    for market, sides in SIDES.items():
        truth = [rng.gauss(0.0, 0.2)]
        for _ in times[1:]:
            truth.append(truth[-1] + rng.gauss(0.0, 0.06))
        for book in BOOKS:
            lag, line = rng.randrange(4), rng.choice([8.0, 8.5, 8.5, 8.5])
            open_: tuple[datetime, float] | None = None
            for at, now in enumerate(times):
                x = round(truth[max(0, at - lag)] + 0.01 * BOOKS.index(book), 2)
                if open_ is None or open_[1] != x:
                    open_ = (now, x)
                    for side, odds in zip(sides, odds_of(x), strict=True):
                        away = market == "spread" and side == "away"
                        rows.append(
                            {
                                "event": f"g{number}", "sport": "baseball", "league": "mlb", "home": "Home",
                                "away": "Away", "start": start, "last_look": last, "book": book, "market": market,
                                "selection": side,
                                "line": None if market == "moneyline" else (-line if away else line), "odds": odds,
                                "seen_from": now, "seen_to": now, "update_from": now - timedelta(seconds=20),
                                "update_to": now - timedelta(seconds=20),
                            }
                        )  # fmt: skip
                for row in rows[-2:]:
                    row["seen_to"], row["update_to"] = now, now - timedelta(seconds=20)
    return rows


def history(games: int, seed: int = 7, snapshots: int = MOST_SNAPSHOTS) -> pl.DataFrame:
    rng = random.Random(seed)
    rows = [row for number in range(games) for row in game(number, rng, snapshots)]
    return pl.DataFrame(rows, schema_overrides={"line": pl.Float64})


# ---- formats ----


def test_spells_become_snapshots_with_removed_prices_suspended() -> None:
    t = [START + timedelta(minutes=10 * at) for at in range(3)]

    def spell(odds: float, first: int, last: int, **said: Any) -> Row:
        facts = {
            "event": "e",
            "book": "b",
            "market": "moneyline",
            "selection": "home",
            "start": START + timedelta(hours=9),
        }
        return facts | {"odds": odds, "seen_from": t[first], "seen_to": t[last]} | said

    table = pl.DataFrame([spell(1.9, 0, 1), spell(2.0, 2, 2, book="c"), spell(1.8, 0, 0, selection="away")])
    seen = [
        (snapshot.now, sorted(snapshot.quotes.select("sportsbook", "odds_decimal", "is_active").rows()))
        for snapshot in read_history(table).snapshots
    ]
    assert seen == [
        (t[0], [("b", 1.8, True), ("b", 1.9, True)]),
        (t[1], [("b", 1.8, False), ("b", 1.9, True)]),
        (t[2], [("b", 1.9, False), ("c", 2.0, True)]),
    ]


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a history must have the columns of price intervals"):
        read_history(pl.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match=r"a tape, a folder of Parquet files, or a \.parquet"):
        oe.audit(tmp_path / "x.xlsx")


def test_a_book_that_is_nowhere_is_a_typing_error() -> None:
    past = pl.DataFrame(
        {
            "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": ["my book", "fanduel"],
            "selection": ["Over", "Under"], "odds_decimal": [2.1, 2.05], "last_seen_at": START,
        }
    )  # fmt: skip
    assert oe.scan_history(past, books=["my book", "FanDuel", "caesars"], kinds=["arbitrage"]).height == 1
    message = r"no prices of fandule; the books are fanduel, my book"
    with pytest.raises(ValueError, match=f"books: {message}"):
        oe.scan_history(past, books=["fandule"])
    with pytest.raises(ValueError, match=f"sharp: {message}"):
        oe.audit(past, sharp=["fandule"])
    with pytest.raises(ValueError, match=f"books: {message}"):
        oe.backtest(past, oe.Strategy(books=("fandule",)))


# ---- grading ----


def close_of(table: pl.DataFrame, row: Row) -> float | None:
    """The worth of a price: the others' last spells, in plain Python."""
    family = {"betonline", "lowvig"} if row["book"] in ("betonline", "lowvig") else {row["book"]}
    first = row["selection"] in ("home", "over")
    line = row["line"] or 0.0
    home = -line if row["selection"] == "away" else line
    sigma = {"moneyline": math.inf, "spread": 4.0, "total": 4.4}[row["market"]]
    slope = (1.0 if row["market"] == "spread" else -1.0) * 1.6 / sigma
    votes = []
    some = table.filter((pl.col("event") == row["event"]) & (pl.col("market") == row["market"]))
    for book in sorted(set(BOOKS) - family):
        at = some.filter((pl.col("book") == book) & (pl.col("seen_to") == pl.col("last_look")))
        odds = {side: (o, x) for side, o, x in at.select("selection", "odds", "line").rows()}
        sides = SIDES[row["market"]]
        theirs = odds[sides[0]][1] or 0.0
        p = power([odds[side][0] for side in sides])[0]
        if abs(theirs - home) <= 1.0:
            votes.append(math.log(p / (1.0 - p)) + slope * (home - theirs))
    votes.sort()
    if len(votes) < 4:
        return None
    x = sum(votes[1:-1]) / (len(votes) - 2) if len(votes) > 4 else (votes[1] + votes[2]) / 2
    return float(100.0 * (row["odds"] / (1.0 + math.exp(-x if first else x)) - 1.0))


def test_first_showings_are_graded_at_the_close_of_the_others() -> None:
    table = history(4)
    found = oe.audit(table)
    assert found.shown.height > 30
    assert set(found.shown["threshold"].unique()) >= {0.0, 1.0}
    assert found.shown.select(
        pl.struct("event", "market", "selection", "line", "book", "threshold").is_unique().all()
    ).item()
    for row in found.shown.iter_rows(named=True):
        expected = close_of(table, row)
        assert row["worth"] == pytest.approx(expected, abs=1e-6), row
        assert row["ev"] >= row["threshold"] - 1e-7
        assert row["close"] == "others"


def test_what_became_of_prices_after_a_delay() -> None:
    """Whether a price stood at the next look by its spells, and was shown by a view that is read there."""
    past, ten = history(6), timedelta(minutes=10)
    found = oe.audit(past, delays=["10m", timedelta(minutes=45), "1200s"])
    shown = found.shown.with_columns(pl.from_epoch("t").dt.replace_time_zone("UTC"))
    engine = oe.Engine()
    view, listed = engine.view(kinds=["ev"], include=["suspect"], keep=True), {}
    for snapshot in read_history(past).snapshots:
        engine.step(snapshot.quotes, snapshot.now)
        rows = view.opportunities(["ev"]).ev
        keys = rows.select("event_id", "market_type", "selection_type", "line", "sportsbook").rows()
        listed[snapshot.now] = dict(zip(keys, rows["ev_percentage"].to_list(), strict=True))
    names = {"moneyline": "moneyline", "spread": "run_line", "total": "total_runs"}
    seen = 0
    for row in shown.filter(pl.col("hours") > 0.3).iter_rows(named=True):
        then = row["t"] + ten
        stood = past.filter(
            (pl.col("event") == row["event"]) & (pl.col("book") == row["book"]) & (pl.col("market") == row["market"])
            & (pl.col("selection") == row["selection"]) & pl.col("line").eq_missing(row["line"])
            & (pl.col("seen_from") <= then) & (pl.col("seen_to") >= then) & (pl.col("odds") >= row["odds"] - 1e-6)
        ).height > 0  # fmt: skip
        key = (row["event"], names[row["market"]], row["selection"], row["line"], row["book"])
        again = listed[then].get(key, -99.0) >= row["threshold"] - 1e-7
        assert (row["there_10m"], row["shown_10m"]) == (stood, stood and again)
        seen += 1
    assert seen > 20
    assert 0 < shown["there_10m"].sum() < shown["there_10m"].count()
    assert (shown["there_20m"].count(), shown["there_45m"].count()) < (shown["there_10m"].count(),) * 2
    first = shown.filter((pl.col("threshold") == 1.0) & (pl.col("odds") < 4.0)).drop_nulls("there_10m")
    row = found.later.filter(threshold=1.0, delay="10m").row(0, named=True)
    there = int(first["there_10m"].sum())
    assert (row["n"], row["there"]) == (first.height, pytest.approx(100.0 * there / first.height))
    for of, part in (("there", first.filter("there_10m")), ("gone", first.filter(~pl.col("there_10m")))):
        graded = part.drop_nulls("worth")
        assert (row[f"{of}_graded"], row[f"{of}_worth"]) == (graded.height, pytest.approx(graded["worth"].mean()))
    assert "10m later" in str(found)


@pytest.mark.parametrize("wrong", ["10x", "", -5, 0.5, "8000h", True, None])
def test_a_delay_that_is_none(wrong: Any) -> None:
    with pytest.raises(ValueError, match="a delay must be a time from 1 second to 7 days, such as 90s, 10m or 2h, got"):
        oe.audit(history(1), delays=[wrong])


def test_shown_prices_have_what_their_rows_promised() -> None:
    past = history(3)
    shown = oe.audit(past).shown
    engine = oe.Engine()
    view = engine.view(kinds=["ev"], include=["suspect"], keep=True)
    promised: dict[Any, tuple[float, ...]] = {}
    for snapshot in read_history(past).snapshots:
        engine.step(snapshot.quotes, snapshot.now)
        for row in view.opportunities(["ev"]).ev.iter_rows(named=True):
            key = (round(snapshot.now.timestamp()), row["event_id"], row["sportsbook"], round(row["ev_percentage"], 9))
            promised[key] = tuple(row[name] for name in ("ev_low", "ev_high", "still_there"))
    assert shown.height > 10
    for row in shown.iter_rows(named=True):
        key = (row["t"], row["event"], row["book"], round(row["ev"], 9))
        assert (row["ev_low"], row["ev_high"], row["still_there"]) == pytest.approx(promised[key], rel=1e-9)
        assert 0.0 < row["still_there"] < 1.0


def rival(past: pl.DataFrame, **said: Any) -> pl.DataFrame:
    """A model that takes one book's prices without their margin for fair, from each time it moved."""
    rows = []
    for key, part in past.filter(book="caesars").group_by("event", "market", "seen_from", maintain_order=True):
        odds = dict(part.select("selection", "odds").rows())
        side = next(side for side in ("home", "over") if side in odds)
        p = power([odds[name] for name in SIDES[str(key[1])]])[0]
        line = part.filter(selection=side)["line"][0]
        rows.append({"event": key[0], "market": key[1], "selection": side, "line": line, "probability": p,
                     "at": key[2]} | said)  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"line": pl.Float64})


def test_a_model_is_compared_on_the_same_prices_and_closes(tmp_path: Path) -> None:
    past = history(5)
    model = rival(past)
    found = oe.audit(past, against={"caesars": model})
    # Its bets by loops over snapshots: the model's newest probability on the line, each price's first EV of 1 or more.
    said: dict[Any, list[tuple[datetime, float]]] = {}
    for event, market, side, line, p, at in model.rows():
        said.setdefault((event, market, line), []).append((at, p))
        assert side in ("home", "over")
    bets: dict[Any, Row] = {}
    engine = oe.Engine()
    view = engine.view(kinds=["ev"], min_ev=-100.0, keep=True)  # every price that we judge
    families = {"point_spread": "spread", "run_line": "spread", "total_runs": "total"}
    for snapshot in read_history(past).snapshots:
        engine.step(snapshot.quotes, snapshot.now)
        for q in view.opportunities(["ev"]).ev.iter_rows(named=True):
            market = families.get(q["market_type"], "moneyline")
            line = None if q["line"] is None else -q["line"] if q["selection_type"] == "away" else q["line"]
            known = [p for at, p in said.get((q["event_id"], market, line), []) if at <= snapshot.now]
            if not known or q["is_live"] or not q["odds_decimal"] < 4.0:
                continue
            p = known[-1] if q["selection_type"] in ("home", "over") else 1.0 - known[-1]
            ev = 100.0 * (p * q["odds_decimal"] - 1.0)
            row = {"event": q["event_id"], "market": market, "selection": q["selection_type"], "line": q["line"],
                   "book": q["sportsbook"], "odds": q["odds_decimal"], "ev": ev}  # fmt: skip
            if ev >= 1.0 and close_of(past, row) is not None:
                bets.setdefault(tuple(row[name] for name in ("event", "market", "selection", "line", "book")), row)
    ours, theirs = found.against.to_dicts()
    worth = [close_of(past, row) or 0.0 for row in bets.values()]
    assert (theirs["model"], theirs["graded"]) == ("caesars", len(bets))
    assert theirs["graded"] > 20
    assert theirs["shown"] == pytest.approx(np.mean([row["ev"] for row in bets.values()]))
    assert theirs["worth"] == pytest.approx(np.mean(worth))
    assert ours["excess"] is None
    assert theirs["excess"] == pytest.approx(theirs["log_loss"] - ours["log_loss"])
    for name in ("observations", "prices", "games"):
        assert ours[name] == theirs[name] > 0
    # In any form: by paths, by the other side, with the names of odds tables.
    file = tmp_path / "caesars.csv"
    swapped = model.with_columns(
        probability=1.0 - pl.col("probability"),
        selection=pl.col("selection").replace({"home": "away", "over": "under"}),
        line=pl.when(pl.col("market") == "spread").then(-pl.col("line")).otherwise("line"),
    ).rename({"event": "event_id", "market": "market_type"})
    swapped.write_csv(file)
    again = oe.audit(past, against=file).against
    assert_frame_equal(again, found.against)
    assert "caesars" in str(found)


def test_a_model_that_knows_the_close_wins_and_one_of_a_book_counts_for_its_prices_only() -> None:
    past = history(5)
    prices = oe.audit(past, against=rival(past)).against.row(0, named=True)["prices"]
    only = rival(past, book="fanduel")
    here = oe.audit(past, against={"mine": only}).against.row(1, named=True)
    assert 0 < here["prices"] < prices / 4
    both = pl.concat([rival(past, book=None).with_columns(pl.col("book").cast(pl.String)), only])
    same = oe.audit(past, against={"a": rival(past), "b": both}).against
    assert same["log_loss"][1] == pytest.approx(same["log_loss"][2])
    # Who says what the others will say at the close is better than we are, and his bets are worth what they show.
    votes = past.filter((pl.col("seen_to") == pl.col("last_look")) & pl.col("selection").is_in(["home", "over"]))
    rows = []
    for key, part in votes.group_by("event", "market", "line", maintain_order=True):
        row = {"event": key[0], "market": key[1], "selection": part["selection"][0], "line": key[2], "odds": 2.0,
               "book": "nobody"}  # fmt: skip
        worth = close_of(past, row)
        rows.append({**row, "probability": (worth / 100.0 + 1.0) / 2.0} if worth is not None else None)
    seer = pl.DataFrame([row for row in rows if row], schema_overrides={"line": pl.Float64}).drop("odds", "book")
    _, best = oe.audit(past, against={"seer": seer}).against.to_dicts()
    assert best["excess"] < 0.0
    assert abs(best["bias"]) < 1.0
    assert best["slope"] == pytest.approx(1.0, abs=0.2)


def test_models_that_cannot_be_compared() -> None:
    past = history(1)
    model = rival(past)
    for wrong, why in (
        (model.drop("probability"), "the model model has no probability; it has "),
        (model.with_columns(probability=1.0), "probability must be above 0 and below 1, got 1.0 in row 0"),
        (model.with_columns(probability=pl.lit("x")), "above 0 and below 1, got 'x' in row 0"),
        (model.with_columns(at=pl.lit("noon")), "the model model: at must be a time, got 'noon' in row 0"),
        ({"ours": model}, "a model cannot be named 'ours'"),
        ("model.xlsx", r"a model must be a \.csv, \.parquet, .* that a package registers, got 'model\.xlsx'"),
    ):
        with pytest.raises(ValueError, match=why):
            oe.audit(past, against=wrong)
    with pytest.raises(ValueError, match="method and sharp must be None"):
        oe.audit(past, against=model, method="power")
    strange = model.with_columns(event=pl.lit("another"))
    assert "no price has a close and a probability by each model" in str(oe.audit(past, against=strange))


def props(snapshots: int = 2) -> pl.DataFrame:
    """Snapshots of one player's points at five books; the last one is generous on the over."""
    rows = [
        {"event": "e", "sport": "basketball", "league": "NBA", "home": "Los Angeles Lakers", "away": "Boston Celtics",
         "player": player, "market": "player_points", "line": 20.5, "book": book, "start": START,
         "look": START - timedelta(minutes=0.5 + 60 * at), "over": 2.08 if book == BOOKS[5] else 1.9, "under": 1.9,
         "actual": actual}
        for at in range(snapshots) for book in BOOKS[:6]
        for player, actual in (("Sam Smith", 25.0), ("Jo Jones", 20.5), ("Al Brown", None))
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"actual": pl.Float64})


def test_props_are_a_history_with_the_numbers_of_players() -> None:
    found = oe.audit(props())
    shown = found.shown.filter(threshold=1.0)
    assert shown.select("player", "market", "line", "selection", "book", "won").sort("player").rows() == [
        ("Al Brown", "player_points", 20.5, "over", BOOKS[5], None),
        ("Jo Jones", "player_points", 20.5, "over", BOOKS[5], None),
        ("Sam Smith", "player_points", 20.5, "over", BOOKS[5], 1.0),
    ]
    assert shown["worth"].is_not_null().all()
    assert set(shown["flags"].list.join(",")) == {"unmeasured"}
    row = found.table.filter(threshold=1.0, by="all").row(0, named=True)
    assert (row["graded"], row["settled"], row["returned"]) == (3, 1, pytest.approx(108.0))
    assert (row["worth_se"], row["returned_se"]) == (None, None)  # of one game
    # As intervals, with the same names.
    spells = [
        {**row, "selection": side, "odds": row[side], "seen_from": row["look"], "seen_to": row["look"]}
        for row in props().to_dicts() for side in ("over", "under")
    ]  # fmt: skip
    again = oe.audit(pl.DataFrame(spells).drop("look", "over", "under", "actual"))
    assert again.shown.drop("won").equals(found.shown.drop("won"))
    assert oe.scan_history(props(), kinds=["ev"], min_ev=1.0)["player_name"].n_unique() == 3


def test_a_history_without_a_close_says_so_and_what_was_returned() -> None:
    early = props().with_columns(pl.col("look") - timedelta(hours=1))
    text = str(oe.audit(early))
    assert "no price has a close: a snapshot in the 30 minutes before the start with four other books" in text
    assert "no price has a close  returned +108.00 % (n 1)" in text


def test_a_history_in_which_nothing_is_shown_says_what_it_needs() -> None:
    world = oe.World(3, events=3, live=0.0, tick=30.0)
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(300.0) for quote in batch.quotes]
    history = pl.DataFrame(rows, infer_schema_length=None)
    assert "event_start_time" not in str(oe.audit(history))
    text = str(oe.audit(history.drop("event_start_time")))
    assert "no price was above its fair price before a start: prices need event_start_time" in text


def test_games_that_have_not_begun_are_left_out_and_counted() -> None:
    """The last snapshot of a history is five minutes before its last game."""
    found, later = oe.audit(history(4)), oe.audit(history(5))
    assert (found.waiting, set(found.shown["event"])) == (1, {"g0", "g1", "g2"})
    assert (later.waiting, set(later.shown["event"])) == (1, {"g0", "g1", "g2", "g3"})
    assert "left out: 1 games that had not begun at the end of the history" in str(found)


def test_spellings_of_a_league_and_of_a_book_are_one_cell() -> None:
    table = history(4)
    spelled = table.with_columns(
        league=pl.when(pl.col("event").rank("dense") % 2 == 0).then(pl.col("league").str.to_uppercase())
        .otherwise("league"),
        book=pl.when(pl.col("book") == "fanduel").then(pl.lit("FanDuel")).otherwise("book"),
    )  # fmt: skip
    assert spelled["league"].n_unique() > table["league"].n_unique()
    cells = oe.audit(spelled).table.filter(pl.col("by").is_in(["league", "book"]))
    wanted = oe.audit(table).table.filter(pl.col("by").is_in(["league", "book"]))
    assert_frame_equal(cells, wanted, rel_tol=1e-12)  # rows come in another order, and sums are rounded as they come


def test_the_figures_of_a_cell() -> None:
    ev, worth, game = np.array([1.0, 2.0, 3.0, 2.0]), np.array([2.0, 1.0, 4.0, 1.0]), np.array([0, 0, 1, 1])
    mean, error = clustered_mean(worth, game)
    assert (mean, error) == pytest.approx((2.0, math.sqrt(2.0 * (1.0 + 1.0)) / 4.0))
    slope, _ = clustered_slope(ev, worth, game)
    assert slope == pytest.approx(float(np.polyfit(ev, worth, 1)[0]))
    frame = pl.DataFrame(
        {
            "event": ["a", "a", "b", "b"], "ev": ev, "worth": worth, "error": [0.0, 0.22, 0.08, 0.0], "se": [0.1] * 4,
            "won": [1.0, 0.0, 1.0, 0.0], "odds": [2.0] * 4,
        }
    )  # fmt: skip
    of = cell(frame)
    assert (of["shown"], of["worth"], of["bias"], of["ratio"]) == pytest.approx((2.0, 2.0, 0.0, 1.0))
    assert (of["inside_90"], of["inside_50"], of["returned"]) == pytest.approx((75.0, 50.0, 0.0))


@pytest.mark.parametrize("few", some([8, 1, 40], 1))
def test_an_audit_is_the_same_while_names_are_dropped(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping names of old events renumbers the partitions of the board, also in the step that shows a price."""
    table = history(6)
    expected = oe.audit(table).shown
    monkeypatch.setattr("oddsengine.board.state._FEW", few)
    assert oe.audit(table).shown.equals(expected)


def test_an_audit_of_openings_grades_by_the_sharp_close_and_by_results() -> None:
    rng = random.Random(3)
    rows = []
    for number in range(30):
        x = [rng.gauss(0.0, 0.3) for _ in range(3)]
        for book in ("pinnacle", "bet365", "bwin", "williamhill", "ladbrokes"):
            p = [math.exp(v + rng.gauss(0.0, 0.05)) for v in x]
            odds = [sum(p) / q / 1.03 for q in p]
            sharp = book == "pinnacle"
            rows.append(
                {
                    "division": "E0", "season": "1213", "date": (START + timedelta(days=number)).date(), "home": "A",
                    "away": "B", "home_goals": rng.randrange(4), "away_goals": rng.randrange(4), "book": book,
                    "open_home": odds[0], "open_draw": odds[1], "open_away": odds[2],
                    "close_home": odds[0] if sharp else None, "close_draw": odds[1] if sharp else None,
                    "close_away": odds[2] if sharp else None,
                }
            )  # fmt: skip
    shown = oe.audit(pl.DataFrame(rows)).shown
    assert shown.height
    assert set(shown.filter(pl.col("book") != "pinnacle")["close"].unique()) == {"sharp"}
    assert shown["won"].is_not_null().all()


# ---- the run under it ----


def test_a_scan_has_births_and_deaths() -> None:
    def quote(minute: int, book: str, side: str, odds: float) -> Row:
        return {
            "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": book, "selection": side,
            "odds_decimal": odds, "last_seen_at": START + timedelta(minutes=minute),
        }  # fmt: skip

    board = [quote(0, "fanduel", "Over", 2.1), quote(0, "draftkings", "Under", 2.02), quote(1, "fanduel", "Over", 2.15)]
    board += [quote(2, "fanduel", "Over", 1.9), quote(3, "fanduel", "Over", 2.2), quote(3, "draftkings", "Under", 2.02)]
    found = oe.scan_history(pl.DataFrame(board), kinds=["arbitrage"])
    assert found.select("kind", "born_at", "died_at").rows() == [
        ("arbitrage", START, START + timedelta(minutes=2)),
        ("arbitrage", START + timedelta(minutes=3), None),
    ]
    first, best = (100.0 / (1.0 / a + 1.0 / 2.02) - 100.0 for a in (2.1, 2.15))
    assert found["first"][0] == pytest.approx(first)
    assert (found["best"][0], found["best_at"][0]) == (pytest.approx(best), START + timedelta(minutes=1))
    assert found["sportsbooks"][0].to_list() == ["fanduel", "draftkings"]


def test_times_of_a_history_come_in_any_form() -> None:
    moments = [START + timedelta(minutes=m) for m in (0, 0, 2)]
    frame = pl.DataFrame(
        {
            "event_id": "e1", "market_type": "total_points", "line": 220.5, "selection": ["Over", "Under", "Over"],
            "sportsbook": ["fanduel", "draftkings", "fanduel"], "odds_decimal": [2.1, 2.02, 1.9],
            "last_seen_at": moments, "event_start_time": START + timedelta(hours=5),
        }
    )  # fmt: skip
    wanted = oe.scan_history(frame, kinds=["arbitrage"])
    assert wanted.select("born_at", "died_at").rows() == [(moments[0], moments[2])]
    times = pl.col("last_seen_at", "event_start_time")
    for form in (
        frame.with_columns(times.dt.epoch("s")),
        frame.with_columns(times.dt.epoch("ms").cast(pl.Float64)),
        frame.with_columns(times.dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
        frame.rename({"last_seen_at": "timestamp"}),
        frame.lazy(),
        frame.to_pandas(),
        frame.to_arrow(),
    ):
        assert oe.scan_history(form, kinds=["arbitrage"]).equals(wanted)
    for wrong, value in ((None, "None"), ("soon", "'soon'")):
        text = frame.with_columns(pl.Series("last_seen_at", ["2026-02-01T12:00:00Z", wrong, "2026-02-01T12:00:00Z"]))
        with pytest.raises(ValueError, match=f"last_seen_at must be a time in every row, got {value} in row 1"):
            oe.scan_history(text)
    with pytest.raises(TypeError, match="a history must be a frame, a path or a tape, got int"):
        oe.scan_history(3)


def test_a_tape_is_a_history(tmp_path: Path) -> None:
    table = history(2)
    engine, writer = oe.resume(tmp_path / "tape")
    view = engine.view(method="close", kinds=("ev",), keep=True)
    with writer:
        for snapshot in read_history(table).snapshots:
            engine.step(snapshot.quotes, snapshot.now)
    assert view.active
    one, two = oe.audit(table), oe.audit(tmp_path / "tape")
    assert one.shown.equals(two.shown)
    with pytest.raises(ValueError, match="guards it was recorded with"):
        oe.audit(tmp_path / "tape", guards=[])
    assert oe.audit(table, sharp="fanduel").shown.equals(oe.audit(table, sharp="fanduel", method="power").shown)
    assert oe.replay(oe.Tape(tmp_path / "tape")).state_hash() == engine.state_hash()


# ---- constants of one's own ----


def test_few_games_are_refused() -> None:
    with pytest.raises(ValueError, match="calibrate requires at least 50 games with a close, got 3"):
        oe.calibrate(history(3))


def test_a_fit_is_drawn_to_the_table_and_never_by_itself_in_force() -> None:
    found = oe.calibrate(history(51, snapshots=SNAPSHOTS))
    assert found.games == 51
    assert found.changes["own"]["weight"] >= 0.0
    assert found.comparison["table"].to_list() == ["in force", "fitted"]
    table = catalog.amended_fair_table(tomllib.loads(toml(found.changes)))
    assert table == found.table
    assert (table.name, table.date, table.note["games"]) == ("calibrated", "2026-08-20", 51)


def test_errors_at_the_close_are_fitted_by_league_and_hours() -> None:
    """By their formula, in plain Python; a league without games keeps its own."""
    past = history(60, snapshots=SNAPSHOTS)
    table = catalog.fair_table()
    rows = collect(past, table, 72.0)
    fitted, _ = fit(rows, table)
    assert set(fitted.sigma) == set(table.sigma)
    assert fitted.sigma["nfl"] == table.sigma["nfl"]
    plain = rows.with_columns(z=pl.Series(rows["close"].to_numpy() - _predicted(rows, fitted)))
    sums: dict[int, dict[str, list[tuple[float, float]]]] = {}
    for hours, event, weight, error in plain.select("hours", "event", "weight", "z").iter_rows():
        at = sum(hours > math.sqrt(a * b) for a, b in pairwise(table.hours))
        z = error**2 / max(hours, 0.1) ** (2.0 / 3.0)
        sums.setdefault(at, {}).setdefault(event, []).append((z, weight))
    for at, games in sums.items():
        mean = [sum(z * w for z, w in of) / sum(w for _, w in of) for of in games.values()]
        expected = math.sqrt((50.0 * 0.05**2 + sum(mean)) / (50.0 + len(mean)))
        assert fitted.sigma["mlb"][at] == pytest.approx(expected, abs=6e-5)
    empty = set(range(len(table.hours))) - set(sums)
    assert empty
    assert all(fitted.sigma["mlb"][at] == table.sigma["mlb"][at] for at in empty)


def test_props_can_be_fitted_if_they_have_closes() -> None:
    with pytest.raises(ValueError, match="at least 50 games with a close, got 1"):
        oe.calibrate(props())


def test_a_fit_of_few_snapshots_keeps_the_constants_that_they_do_not_determine() -> None:
    table = catalog.fair_table()
    for snapshots, seed in (1, 1), (2, 1), (3, 2):
        rows = collect(history(9, seed, snapshots), table, 72.0)
        fitted, errors = fit(rows, table)
        assert fitted.constants.momentum_far == table.constants.momentum_far
        assert set(errors) == {"own_weight"} | ({"momentum_near", "fresh_weight"} if snapshots > 1 else set())
        assert all(math.isfinite(error) and error > 0.0 for error in errors.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize("snapshots", [6, 12])
def test_a_fit_keeps_what_an_operator_set(snapshots: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history(54, snapshots=snapshots).write_parquet(tmp_path / "history.parquet")
    own = {
        "sharp": {"books": {"circa": 0.8}},
        "flags": {"scale": {"total": 0.5}},
        "books": {"own": {"Zebra Bets": 0.7}},
    }
    before, after = tmp_path / "before.toml", tmp_path / "after.toml"
    before.write_text(toml(own))
    table = catalog.amended_fair_table(own)
    command = ["calibrate", str(tmp_path / "history.parquet"), "--fair", str(before), "--output", str(after)]
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    if snapshots == 12:  # no better on the last third of the games
        assert "the current ones stay in use" in said
        assert not after.exists()
        return
    fitted = catalog.amended_fair_table(tomllib.loads(after.read_text()))
    assert f"written to {after}" in said
    assert (fitted.sharps, fitted.scale) == (table.sharps, table.scale)
    assert fitted.own["Zebra Bets"] == 0.7
    assert set(fitted.own) >= set(BOOKS)
    assert fitted.constants.own_weight != table.constants.own_weight


# ---- the command ----


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history.parquet"
    history(3).write_parquet(file)
    shown, plot = tmp_path / "shown.ndjson", tmp_path / "plot.svg"
    assert cli.main(["audit", str(file), "--shown", str(shown), "--plot", str(plot), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cells"][0]["by"] == "all"
    lines = pl.read_ndjson(shown)
    assert {"t", "event", "market", "selection", "line", "book", "odds", "ev", "se", "flags"} <= set(lines.columns)
    assert "<svg" in plot.read_text()
    assert cli.main(["audit", str(file)]) == 0
    assert "EV >= 1:" in capsys.readouterr().out
    assert cli.main(["audit", "nothing.parquet", "--shown", "x.txt"]) == 2
    assert "--shown takes a .parquet, .ndjson or .jsonl file, got 'x.txt'" in capsys.readouterr().err
    assert cli.main(["audit", "nothing.parquet", "--plot", "x.gif"]) == 2
    assert "--plot takes a .svg, .png or .pdf file, got 'x.gif'" in capsys.readouterr().err
    assert cli.main(["calibrate", str(file)]) == 2
    assert "50 games" in capsys.readouterr().err
