"""The board that ships with the package: honest opportunities are found, and only those; every hazard is rejected."""

import importlib.util
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from oddsengine import (
    GUARDS,
    OddsTable,
    Opportunities,
    find_all,
    markets,
    read_odds,
    rejected,
)
from oddsengine.tables.sample import SAMPLE_BOARD

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_sample_board.py"
# Hazards whose name is not that of the guard. A live leg that is too old is kept, and no opportunity may use it.
CAUGHT_BY = {"double_chance": "unmapped", "live_leg": None}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample_board", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table() -> OddsTable:
    return read_odds(SAMPLE_BOARD)


@pytest.fixture(scope="module")
def found(table: OddsTable) -> Opportunities:
    return find_all(table)


@pytest.fixture(scope="module")
def labels() -> pl.DataFrame:
    """Row number and label of every line of the file, those that the door turns away among them."""
    raw = pl.read_csv(SAMPLE_BOARD, infer_schema=False)
    return raw.select(row=pl.int_range(pl.len(), dtype=pl.UInt32), label=pl.col("planted").fill_null(""))


def priced(legs: pl.DataFrame, table: OddsTable) -> pl.DataFrame:
    """The board's rows behind legs: book, event, selection and price say which."""
    keys = ["sportsbook", "event_id", "selection", "odds_decimal", "line"]
    rows = table.select(*keys, "market_type", "planted", "true_probability").with_columns(
        pl.col("true_probability").cast(pl.Float64)
    )
    joined = legs.select(*keys).join(rows, on=keys, how="left", nulls_equal=True)
    assert joined.height == legs.height
    assert joined["market_type"].null_count() == 0
    return joined


def legs_of_arbitrages(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("event_id", "legs").explode("legs").unnest("legs")


def legs_of_middles(frame: pl.DataFrame) -> pl.DataFrame:
    sides = [frame.select("event_id", pl.col(side).struct.unnest()) for side in ("side1", "side2")]
    return pl.concat(sides)


def legs_of_low_holds(frame: pl.DataFrame) -> pl.DataFrame:
    sides = [
        frame.filter(pl.col(side).struct.field("selection").is_not_null())
        .select("event_id", pl.col(side).struct.unnest())
        .select("event_id", "selection", "line", pl.col("books").list.first().alias("sportsbook"),
                "odds_decimal")
        for side in ("side1", "side2", "side3")
    ]  # fmt: skip
    return pl.concat(sides)


def test_the_script_makes_the_file(maker: ModuleType) -> None:
    assert maker.text() == SAMPLE_BOARD.read_text(encoding="utf-8")


def test_size_and_books(table: OddsTable) -> None:
    assert 1900 <= table.height <= 2100
    assert table["sportsbook"].n_unique() == 12
    assert set(table["sport"].unique()) == {"basketball", "football", "hockey", "baseball", "soccer", "tennis"}
    assert table["is_live"].any()
    assert table["deep_link"].is_not_null().any()
    assert table["selection_id"].is_not_null().any()


def test_every_guard_has_rows(table: OddsTable) -> None:
    named = set(rejected(table)["guard"])
    # The sample has no pick'em operator, no price that another node rejected, and one game for each id; few_witnesses
    # sets nothing aside.
    assert named >= set(GUARDS) - {"parlay_only", "upstream", "other_game", "few_witnesses"}
    assert named >= {"suspended", "unmapped", "ambiguous_moneyline", "bad_value", "missing_value"}


def test_what_is_rejected_is_what_was_planted_for_it(table: OddsTable, labels: pl.DataFrame) -> None:
    hazards = labels.filter(pl.col("label").str.starts_with("hazard:"))
    wanted = {
        (row, CAUGHT_BY.get(name, name))
        for row, name in hazards.with_columns(pl.col("label").str.strip_prefix("hazard:")).iter_rows()
        if CAUGHT_BY.get(name, name) is not None
    }
    assert set(rejected(table).select("row", "guard").iter_rows()) == wanted


def test_only_planted_arbitrages(found: Opportunities, table: OddsTable) -> None:
    legs = priced(legs_of_arbitrages(found.arbitrage), table)
    assert set(legs["planted"]) == {"arb"}
    assert legs.height == (table["planted"] == "arb").sum()
    assert found.arbitrage["profit_percent"].is_between(0.6, 1.2).all()
    assert found.arbitrage["is_live"].any()


def test_only_planted_middles(found: Opportunities, table: OddsTable) -> None:
    legs = priced(legs_of_middles(found.middles), table)
    assert set(legs["planted"]) == {"middle"}
    assert legs.height == (table["planted"] == "middle").sum()


def test_every_edge_is_true(found: Opportunities, table: OddsTable) -> None:
    rows = priced(found.ev, table)
    worth = rows["true_probability"] * rows["odds_decimal"] - 1.0
    assert worth.min() > -0.005  # type: ignore[operator]
    assert not rows["planted"].fill_null("").str.starts_with("hazard").any()
    assert (rows["planted"] == "ev").sum() == (table["planted"] == "ev").sum()
    assert found.ev["ev_percentage"].max() < 5.0  # type: ignore[operator]


def test_low_holds_use_honest_prices(found: Opportunities, table: OddsTable) -> None:
    legs = priced(legs_of_low_holds(found.low_hold), table)
    assert not legs["planted"].fill_null("").str.starts_with("hazard").any()
    assert (legs["planted"] == "low_hold").sum() == (table["planted"] == "low_hold").sum()


def test_sister_brands_say_so(found: Opportunities) -> None:
    shared = found.ev.filter(pl.col("shared_feed").list.len() > 0)
    assert set(shared["sportsbook"]) == {"betrivers", "unibet"}


def test_odd_looking_neighbours_meet_the_others(table: OddsTable) -> None:
    """Accents left out, teams turned round, yes typed as home: one market, with all its books."""
    frame = markets(table)
    scores = frame.filter(pl.col("family") == "both_teams_to_score")
    assert scores["complete_books"].to_list() == [["betmgm", "draftkings", "fanduel", "pinnacle"]]
    for start, family in (("nhl_maple", "moneyline"), ("atp", "moneyline"), ("epl_chelsea", "moneyline_3way")):
        of = frame.filter(pl.col("event_id").str.starts_with(start) & (pl.col("family") == family))
        assert of.height == 1, (start, of)
        assert {"circa", "pinnacle", "draftkings"} <= set(of["complete_books"].item())
    doncic = frame.filter(pl.col("subject").str.contains("doncic") & (pl.col("family") == "player_points"))
    assert doncic.height == 1
    assert "pinnacle" in doncic["books"].item()
    assert {"draftkings", "fanduel", "betmgm", "bovada"} & set(doncic["books"].item())


def naive_arbitrages(table: OddsTable) -> pl.DataFrame:
    """Group by event, market and size of the line, compare the best prices: what everybody writes first."""
    text = pl.col("selection").str.to_lowercase()
    side = (
        pl.when(text.str.contains("over|yes")).then(pl.lit("first"))
        .when(text.str.contains("under|no$")).then(pl.lit("last"))
        .when(text == "draw").then(pl.lit("draw"))
        .when(pl.col("selection").str.contains(pl.col("home_team"), literal=True)).then(pl.lit("first"))
        .when(pl.col("selection").str.contains(pl.col("away_team"), literal=True)).then(pl.lit("last"))
    )  # fmt: skip
    market = ["event_id", "market_type", "size", "player_name"]
    best = (
        table.with_columns(side=side, size=pl.col("line").abs())
        .filter(pl.col("side").is_not_null())
        .group_by(*market, "side")
        .agg(pl.col("odds_decimal").max(), pl.col("planted").sort_by("odds_decimal").last().fill_null(""))
    )
    sums = best.group_by(market).agg(pl.len(), (1.0 / pl.col("odds_decimal")).sum().alias("sum"), "planted")
    return sums.filter((pl.col("len") >= 2) & (pl.col("sum") <= 1.0 / 1.005))


def test_plain_grouping_finds_phantoms(table: OddsTable, found: Opportunities) -> None:
    naive = naive_arbitrages(table)
    honest = naive.filter(pl.col("planted").list.eval(pl.element() == "arb").list.all())
    assert (naive.height, honest.height) == (36, 3)  # the README says so
    assert found.arbitrage.height == 4


def test_without_guards_the_board_lies(table: OddsTable) -> None:
    bare = find_all(table, guards=[], max_profit=None)
    assert bare.arbitrage.height >= 10
    assert bare.arbitrage["profit_percent"].max() > 10.0  # type: ignore[operator]
