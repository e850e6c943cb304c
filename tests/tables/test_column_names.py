"""Names of columns: what is understood without a mapping, what a mapping can say, and in which format a price is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine.backtesting.formats import read_history
from oddsengine.backtesting.placed_bets import BET_COLUMNS
from oddsengine.tables.column_names import SYNONYMS, renames, teams_of
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, check_odds

COMMON: dict[str, list[Any]] = {
    "Book": ["a", "a"],
    "Home": ["Lakers", "Lakers"],
    "Away": ["Celtics", "Celtics"],
    "Market": ["moneyline", "moneyline"],
    "Team": ["Lakers", "Celtics"],
    "Odds": [1.9, 2.0],
}


def priced(prices: list[Any], name: str = "Odds") -> pl.DataFrame:
    """Build a table with prices under a name of the author's."""
    rest = {"book": "a", "event_id": "e", "market": "moneyline", "bet": [f"x{at}" for at in range(len(prices))]}
    return pl.DataFrame({**rest, name: prices}, strict=False)


def test_common_names_need_no_mapping() -> None:
    table = check_odds(COMMON)
    columns = ("sportsbook", "event_id", "home_team", "away_team", "market_type", "selection", "odds_decimal")
    assert table.select(columns).row(1) == ("a", "Lakers/Celtics", "Lakers", "Celtics", "moneyline", "Celtics", 2.0)
    for name in ("Bookmaker", "BOOKIE", "sports book", "Sports-Book"):
        other = {name if key == "Book" else key: values for key, values in COMMON.items()}
        assert check_odds(other)["sportsbook"].to_list() == ["a", "a"]


def test_every_kind_of_table_is_the_same_table() -> None:
    frame = pl.DataFrame(COMMON)
    expected = check_odds(frame)
    rows = frame.to_dicts()
    for same in (frame.lazy(), pa.table(COMMON), pd.DataFrame(COMMON), COMMON, rows, tuple(rows)):
        assert check_odds(same).equals(expected), type(same)
    assert oe.markets(rows).equals(oe.markets(expected))
    ragged = [{**rows[0], "colour": "red"}, rows[1]]
    assert check_odds(ragged)["colour"].to_list() == ["red", None]
    mixed = [{**rows[0], "Odds": "+150"}, {**rows[1], "Odds": -110}]
    assert check_odds(mixed)["odds_american"].to_list() == [150.0, -110.0]
    with pytest.raises(OddsError, match="height of column"):
        check_odds({**COMMON, "Odds": [1.9]})


def test_the_schema_comes_before_the_mapping_and_that_before_common_names() -> None:
    both = priced([1.9, 2.0]).with_columns(sportsbook=pl.lit("own"), Selection=pl.lit("own"), Match=pl.lit("m"))
    table = check_odds(both)
    assert table.select("sportsbook", "selection", "event_id").row(0) == ("own", "own", "e")
    assert table.select("book", "bet", "Match").row(0) == ("a", "x0", "m")  # kept
    swapped = check_odds(both, columns={"book": "sportsbook", "sportsbook": "sportsbook_name", "bet": "selection"})
    assert swapped.select("sportsbook", "sportsbook_name", "selection").row(0) == ("a", "own", "x0")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"bok": "sportsbook"}, r"the table has no column 'bok', did you mean book\?"),
        ({"book": "sportsbok"}, r"'book' cannot be 'sportsbok', .* did you mean sportsbook"),
        ({"book": "zzz"}, "'book' cannot be 'zzz', .*; allowed: id, sportsbook"),
        ({"book": "selection", "bet": "selection"}, "columns 'book' and 'bet' cannot both be selection"),
        ({"book": "event_id"}, "'book' cannot be event_id, which the table has already"),
        ({"book": 1}, "columns must map names .* got 'book': 1"),
    ],
)
def test_a_mapping_that_cannot_be(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(OddsError, match=said):
        check_odds(priced([1.9]), columns=columns)


def test_two_columns_for_one_name_are_an_error() -> None:
    two = priced([1.9]).with_columns(Outcome=pl.lit("x"), Team=pl.lit("y"))
    with pytest.raises(OddsError, match="'Outcome' and 'Team' can each be selection: choose one"):
        check_odds(two)
    assert check_odds(two, columns={"Team": "selection"})["selection"].to_list() == ["y"]


@pytest.mark.parametrize(
    ("prices", "decimal", "american"),
    [
        ([1.91, 2.0], [1.91, 2.0], None),
        (["10/11", "5 / 2", "evens"], [1 + 10 / 11, 3.5, 2.0], None),
        (["1,95", "2,1"], [1.95, 2.1], None),
        ([1.5, 101.0], [1.5, 101.0], None),
        ([-110, 150], None, [-110.0, 150.0]),
        (["+150", "-110", "120", "even"], None, [150.0, -110.0, 120.0, 100.0]),
    ],
)
@pytest.mark.parametrize("name", ["Odds", "price"])
def test_the_format_of_a_price_follows_from_the_values(
    prices: list[Any], decimal: list[float] | None, american: list[float] | None, name: str
) -> None:
    table = check_odds(priced(prices, name), columns={"bet": "selection"})
    column = "odds_decimal" if american is None else "odds_american"
    assert table[column].to_list() == pytest.approx(decimal or american)
    mapped = check_odds(priced(prices, "x"), columns={"bet": "selection", "x": "odds"})
    assert mapped.equals(table)


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ([1.91, -110], r"American odds \(-110.0 in row 1\) and decimal or fractional ones \(1.91 in row 0\)"),
        (["5/2", "+150"], r"American odds \(\+150 in row 1\) and decimal or fractional ones \(5/2 in row 0\)"),
        ([110, 150], r"can have decimal or American odds, such as 110 in row 0: say which with columns="),
    ],
)
def test_prices_whose_format_is_unclear(prices: list[Any], said: str) -> None:
    with pytest.raises(OddsError, match=said):
        check_odds(priced(prices), columns={"bet": "selection"})


def test_a_price_that_is_said_to_be_decimal_is_not_read_as_american() -> None:
    columns = {"bet": "selection", "Odds": "odds_decimal"}
    assert check_odds(priced([110.0, 150.0]), columns=columns)["odds_decimal"].to_list() == [110.0, 150.0]
    refused = check_odds(priced([-110, 150]), columns=columns).rejected
    assert refused["reason"].unique().to_list() == ["an American price: give it as odds_american"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("odds_decimal", "1,950", "not a price: 1.95, 1,95 and 10/11 are accepted"),
        ("odds_decimal", "5/0", "not a price: 1.95, 1,95 and 10/11 are accepted"),
        ("odds_american", "5/2", r"not a price: +150 and -110 are accepted"),
        ("line", "1,500", "not a number: 6.5 and 6,5 are accepted"),
        (
            "event_start_time",
            "26 November",
            "not a time: ISO 8601, such as 2026-11-26T18:00Z, and Unix times are accepted",
        ),
    ],
)
def test_what_is_ambiguous_is_refused_and_names_what_is_accepted(name: str, value: str, reason: str) -> None:
    frame = priced([2.0], "odds_decimal").with_columns(pl.lit(value).alias(name))
    table = check_odds(frame, columns={"bet": "selection"})
    assert table.rejected.select("field", "value", "reason").rows() == [(name, value, reason)]


@given(st.floats(1.01, 900.0), st.sampled_from(["odds_decimal", "line", "max_bet"]))
def test_a_decimal_comma_reads_as_a_point(number: float, name: str) -> None:
    text = f"{number:.2f}"
    frame = priced([2.0], "odds_decimal").with_columns(pl.lit(text.replace(".", ",")).alias(name))
    assert check_odds(frame, columns={"bet": "selection"})[name].to_list() == [float(text)]


def test_the_event_of_two_teams_has_their_day() -> None:
    day = {"Kickoff": ["2026-11-26T18:00Z", "2026-11-27T18:00Z"]}
    assert check_odds({**COMMON, **day})["event_id"].to_list() == [
        "2026-11-26/Lakers/Celtics",
        "2026-11-27/Lakers/Celtics",
    ]
    dates = {"Date": ["26/11/2026", "27/11/2026"]}
    assert check_odds({**COMMON, **dates})["event_id"].to_list() == [
        "26/11/2026/Lakers/Celtics",
        "27/11/2026/Lakers/Celtics",
    ]
    nameless = check_odds({**COMMON, "Away": ["Celtics", None]})
    assert nameless.rejected.select("row", "field").rows() == [(1, "event_id")]
    with pytest.raises(OddsError, match="it has no event_id"):
        check_odds({name: values for name, values in COMMON.items() if name != "Away"})


def test_synonyms_are_of_the_schema_and_of_one_name_each() -> None:
    assert set(SYNONYMS) <= {*ODDS_SCHEMA, "odds", "probability", *BET_COLUMNS}
    words = [word for names in SYNONYMS.values() for word in names]
    assert len(words) == len(set(words))
    assert not set(words) & set(ODDS_SCHEMA)
    assert renames(list(ODDS_SCHEMA), ODDS_SCHEMA) == {}
    assert not set(BET_COLUMNS) & set(ODDS_SCHEMA)
    assert renames(["Stake", "Result", "Closing Line"], ODDS_SCHEMA) == {}  # of bets only


def test_a_query_is_named_like_a_table() -> None:
    """A history can be a query, whose price column is read to know its format."""
    rows = priced([-110, 120]).with_columns(timestamp=pl.lit("2026-02-08T12:00Z"), Team=pl.lit("x")).drop("bet")
    for history in (rows, rows.lazy()):
        assert oe.backtest(history, oe.Strategy()).trades.height == 0
        with pytest.raises(ValueError, match="a history must have"):
            oe.backtest(history.drop("book"), oe.Strategy())


def test_a_mapping_is_a_mapping() -> None:
    with pytest.raises(TypeError, match=r"columns must map names of the table to names of the schema, got \['Book'\]"):
        check_odds([{"Book": "a"}], columns=["Book"])  # type: ignore[arg-type]


def test_a_path_is_not_read_where_a_table_is_expected() -> None:
    with pytest.raises(OddsError, match="got str; read_odds reads a file"):
        check_odds("prices.csv")  # type: ignore[arg-type]


# ---- games by name ----


def rows(**columns: Any) -> pl.DataFrame:
    """Build a table of two rows; a single value is for both."""
    return pl.DataFrame(
        {"book": ["a", "a"], "market": "moneyline", "team": ["Lakers", "Celtics"], "odds": 1.9} | columns
    )


NAMED = ("Celtics @ Lakers", "Celtics at Lakers", "Lakers v Celtics", "Lakers VS. Celtics", "Lakers – Celtics")
MIRRORED = ([1.7, 2.3], [2.3, 1.7])  # no arbitrage but between the two
OTHERS = ("e1", "2026-02-08", "Lakers", " @ Lakers", "A v B v C", "A - B @ C", "Trans-Tasman")


@pytest.mark.parametrize("name", [*NAMED, *OTHERS])
def test_a_table_is_read_by_the_names_of_its_games_as_grade_reads_bets(name: str) -> None:
    table = check_odds(rows(fixture=name))
    teams = table.select("home_team", "away_team").row(0)
    assert teams == (teams_of(name) or (None, None))
    assert (teams == ("Lakers", "Celtics")) == (name in NAMED)
    assert oe.rejected(table).height == (0 if name in NAMED else 2)


def test_names_of_games_come_before_ids_and_columns_of_teams_before_both() -> None:
    assert check_odds(rows(event_id="A v B", Matchup=["Celtics @ Lakers", None]))["home_team"].to_list() == [
        "Lakers",
        "A",
    ]
    assert check_odds(rows(event_id="A v B", home="Bulls"))["away_team"].null_count() == 2


@pytest.mark.parametrize("column", ["fixture", "game"])
@pytest.mark.parametrize("value", [["A v B"], {"a": "A v B"}, b"\xff", 7])
def test_names_of_games_are_text(column: str, value: Any) -> None:
    table = check_odds(rows(event_id="e1", **{column: pl.Series([value] * 2)}))
    assert table["home_team"].null_count() == 2


def test_a_name_beside_an_id_has_the_teams() -> None:
    table = check_odds(rows(event_id="e1", fixture="Celtics @ Lakers"))
    assert table.select("event_id", "home_team", "away_team").row(0) == ("e1", "Lakers", "Celtics")


@pytest.mark.parametrize("when", ["start", "date"])
def test_teams_that_meet_again_are_two_games(when: str) -> None:
    name, days = "Celtics @ Lakers", ("2026-02-08", "2026-02-09")
    both = [rows(fixture=name, book=day, odds=odds, **{when: day}) for day, odds in zip(days, MIRRORED, strict=True)]
    again = check_odds(pl.concat(both))
    assert again["event_id"].unique(maintain_order=True).to_list() == [f"{day}/Lakers/Celtics" for day in days]
    assert oe.find_arbitrage(again).height == 0
    assert set(check_odds(rows(fixture=name, **{when: days[0]}))["event_id"]) == {name}


def test_starts_in_two_time_zones_are_one_game() -> None:
    odds = rows(fixture="Celtics @ Lakers", start=["2026-02-08T19:30:00Z", "2026-02-09T00:30:00Z"])
    assert set(check_odds(odds)["event_id"]) == {"Celtics @ Lakers"}


def test_teams_that_meet_again_have_two_games_if_columns_name_them_too() -> None:
    days = ["2026-02-08T19:30:00Z", "2026-02-10T19:30:00Z"]
    odds = rows(fixture="Celtics @ Lakers", home="Lakers", away="Celtics", start=days)
    assert set(check_odds(odds)["event_id"]) == {"2026-02-08/Lakers/Celtics", "2026-02-10/Lakers/Celtics"}
    ids = odds.with_columns(fixture=pl.lit("4711"))  # of a postponed game
    assert set(check_odds(ids)["event_id"]) == {"4711"}


def test_a_name_alone_identifies_the_game_by_day_and_teams() -> None:
    table = check_odds(rows(event_name="Celtics @ Lakers", start="2026-02-08"))
    assert set(table["event_id"]) == {"2026-02-08/Lakers/Celtics"}


def test_what_has_no_teams_says_which_columns_are_missing() -> None:
    (said,) = set(oe.rejected(rows(event_id="e"))["reason"])
    assert (
        said == "the selection is not an outcome of the market; there is no home_team and no away_team to say who plays"
    )
    (said,) = set(oe.rejected(rows(event_id="e", home="Bulls"))["reason"])
    assert said.endswith("; there is no away_team to say who plays")
    for others in ({"home": "Bulls", "away": "Jazz"}, {"market": "total", "line": 200.5}):
        assert oe.rejected(rows(event_id="e", **others))["reason"][0].endswith("an outcome of the market")
    with pytest.warns(
        oe.OddsWarning, match=r"2 of 2 rows are rejected: unknown_outcome 2 \(no home_team, no away_team\)"
    ):
        oe.find_arbitrage(rows(event_id="e"))


def test_histories_are_read_by_the_names_of_their_games() -> None:
    odds = rows(fixture="Celtics @ Lakers", last_seen_at=datetime(2026, 2, 8, tzinfo=UTC))
    assert set(next(read_history(odds.lazy()).snapshots).quotes["home_team"]) == {"Lakers"}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_history_of_teams_that_meet_again_has_two_games(lazy: bool, as_text: bool) -> None:
    days = [datetime(2026, 2, day, 18, tzinfo=UTC) for day in (8, 9)]
    odds = pl.concat([rows(fixture="Celtics @ Lakers", start=day, last_seen_at=day) for day in days])
    odds = odds.with_columns(pl.col("start").dt.to_string("iso:strict")) if as_text else odds
    snapshots = read_history(odds.lazy() if lazy else odds).snapshots
    games = {event for piece in snapshots for event in piece.quotes["event_id"]}
    assert games == {"2026-02-08/Lakers/Celtics", "2026-02-09/Lakers/Celtics"}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("start", ["2026-02-08T19:30:00Z", datetime(2026, 2, 8, 19, 30, tzinfo=UTC)])
def test_a_history_without_ids_has_games_of_day_and_teams(lazy: bool, start: object) -> None:
    odds = rows(home="Lakers", away="Celtics", start=start, last_seen_at=datetime(2026, 2, 8, tzinfo=UTC))
    snapshots = read_history(odds.lazy() if lazy else odds).snapshots
    assert {event for piece in snapshots for event in piece.quotes["event_id"]} == {"2026-02-08/Lakers/Celtics"}


# ---- wide tables and columns to add ----


def test_an_error_says_how_a_wide_table_becomes_long() -> None:
    wide = dict(b365h=2.0, b365d=3.4, b365a=4.1, psh=2.1, psd=3.5, psa=4.0)
    frame = pl.DataFrame({"date": ["2026-12-05"], "home": "Arsenal", "away": "Chelsea", **wide})
    with pytest.raises(
        OddsError, match=r"not an odds table: it has no .*; it is wide, with a column for each outcome"
    ) as said:
        check_odds(frame)
    code = str(said.value).partition("and long as ")[2]
    table = check_odds(eval(code, {"frame": frame, "pl": pl}))
    assert (set(table["sportsbook"]), table["selection"].to_list()) == ({"b365", "ps"}, ["home", "draw", "away"] * 2)
    assert oe.rejected(table).height == 0
    assert table["odds_decimal"].to_list() == list(wide.values())


@pytest.mark.parametrize(
    "names",
    [
        ["match", "data", "home_score", "away_score"], ["home", "away", "home_line"], [],
        ["team_home", "team_away", "book", "odds"], ["match", "score_h", "score_a"],
    ],
)  # fmt: skip
def test_other_tables_are_not_called_wide(names: list[str]) -> None:
    with pytest.raises(OddsError) as said:
        check_odds({name: [1] for name in names})
    assert "wide" not in str(said.value)


def test_an_expression_adds_a_column() -> None:
    table = check_odds(
        rows(event_id="e").drop("market"), columns={"market_type": pl.lit("moneyline"), "team": "selection"}
    )
    assert set(table["market_type"]) == {"moneyline"}
    doubled = check_odds(rows(event_id="e").drop("odds").with_columns(x=1.0), columns={"odds_decimal": 2 * pl.col("x")})
    assert doubled["odds_decimal"].to_list() == [2.0, 2.0]
    with pytest.raises(
        OddsError, match="a column 'leage' cannot be added: it is no column of an odds table, did you mean lea"
    ):
        check_odds(rows(event_id="e"), columns={"leage": pl.lit("nba")})
    with pytest.raises(OddsError, match='columns cannot be added: unable to find column "x"'):
        check_odds(rows(event_id="e"), columns={"league": pl.col("x")})
    with pytest.raises(OddsError, match="the table has a column 'event_id' already: it cannot be added"):
        check_odds(rows(event_id="e"), columns={"event_id": pl.lit("f")})
    with pytest.raises(OddsError, match="columns 'league' and 'team' cannot both be league"):
        check_odds(rows(event_id="e"), columns={"league": pl.lit("nba"), "team": "league"})
    for wrong in (pl.col("none"), pl.lit("nba").append(pl.lit("nfl")).append(pl.lit("nhl")), pl.lit("x").str.to_date()):
        with pytest.raises(OddsError, match=r"^columns cannot be added: "):
            check_odds(rows(event_id="e"), columns={"league": wrong})


def test_a_model_takes_the_names_of_odds_tables() -> None:
    odds = rows(book=["a", "a"], event_id="e", home="Lakers", away="Celtics", odds=[2.1, 1.7])
    plain = {"event_id": ["e"], "market_type": ["moneyline"], "selection": ["Lakers"], "probability": [0.5]}
    other = dict(zip(("Game", "Market", "Team", "Prob"), plain.values(), strict=True))
    assert oe.find_ev(odds, model=pl.DataFrame(other)).equals(oe.find_ev(odds, model=plain))


@pytest.mark.parametrize("names", [("home_score", "away_score"), ("home_goals", "away_goals")])
def test_a_history_has_scores_by_either_name(names: tuple[str, str]) -> None:
    odds = rows(event_id="e", last_seen_at=datetime(2026, 2, 8, tzinfo=UTC), **dict.fromkeys(names, 3))
    results = read_history(odds).results
    assert results is not None
    assert results.rows() == [("e", 3, 3)]


def test_backtest_takes_names_of_columns() -> None:
    at = datetime(2026, 2, 8, tzinfo=UTC)
    odds = rows(event_id="e", home="Lakers", away="Celtics", start=at + timedelta(hours=1), seen=at)
    words: dict[str, Any] = dict(columns={"seen": "last_seen_at", "sport": pl.lit("basketball")})
    assert oe.backtest(odds, oe.Strategy(), **words).summary().placed == 0
    with pytest.raises(ValueError, match="; backtest takes columns itself"):
        oe.backtest(odds, oe.Strategy())
