"""Tables of odds as people have them: each is read as the right board, or refused with the cure.

`TABLES` are read, directly or by the line of code in the error, which is run. `HOSTILE` can be read in two ways, and
`ELSEWHERE` has no market that is compared: both are errors.
"""
# ruff: noqa: E501  tables are written as they are

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pytest

import oddsengine as oe
from oddsengine.backtesting.formats import read_history
from oddsengine.tables.schema import OddsError, OddsTable, check_odds
from oddsengine_cli import main

Row = tuple[Any, ...]
FACTS = ("sportsbook", "home_team", "away_team", "market_type", "selection", "line", "odds_decimal")


class Case(NamedTuple):
    """A table: the text of a file, or a frame, and the board that it is."""

    name: str
    table: Any
    rows: list[Row]
    suffix: str = ".csv"
    columns: dict[str, Any] | None = None
    cure: str = ""  # of the error: a part of it
    starts: str = ""  # of the first row, in ISO 8601
    rejected: int = 0
    unmapped: int = 0


def rows_of(table: OddsTable) -> list[Row]:
    """The facts of a board's prices, rounded."""
    return sorted(
        (*row[:-1], round(row[-1], 3))
        for row in table.select(FACTS).with_columns(pl.col("line").fill_null(999.0)).rows()
    )


def expected(rows: list[Row]) -> list[Row]:
    return sorted((*row[:5], 999.0 if row[5] is None else row[5], row[6]) for row in rows)


def read(case: Case, folder: Path) -> tuple[Callable[..., OddsTable], Any]:
    """How a case is read, and what is read."""
    if not isinstance(case.table, str):
        return check_odds, case.table
    path = folder / f"prices{case.suffix}"
    path.write_text(case.table, encoding="utf-8")
    return oe.read_odds, path


def cured(error: OddsError, case: Case, folder: Path) -> OddsTable:
    """Run the line of code that an error has."""
    said = str(error)
    names: dict[str, Any] = {"pl": pl, "oe": oe, "json": json, "Path": lambda name: folder / name}
    if mapping := re.findall(r"columns=(\{.*?\})(?:$| or |, and|;)", said):
        reader, source = read(case, folder)
        return reader(source, columns={**(case.columns or {}), **eval(mapping[-1], names)})
    frame = case.table
    if isinstance(frame, str):
        frame = pl.read_csv(folder / f"prices{case.suffix}", infer_schema=False)
    elif not isinstance(frame, pl.DataFrame):
        frame = pl.DataFrame(frame)
    code = re.search(r"(frame\..*?)(?:, or '.*|$)", said)
    assert code is not None, said
    return check_odds(eval(code[1], {**names, "frame": frame}), columns=case.columns)


def two(book: str, home: str, away: str, one: float, other: float) -> list[Row]:
    """A moneyline of two prices."""
    return [(book, home, away, "moneyline", home, None, one), (book, home, away, "moneyline", away, None, other)]


def three(book: str, home: str, away: str, *odds: float) -> list[Row]:
    names = (home, "Draw", away)
    return [(book, home, away, "1x2", name, None, price) for name, price in zip(names, odds, strict=True)]


L, C = "Lakers", "Celtics"
A, B = "Arsenal", "Chelsea"

TABLES = [
    Case("wide, two ways", "book,home,away,home_odds,away_odds\nbetmgm,Lakers,Celtics,-120,+105\n",
         two("betmgm", L, C, 1.833, 2.05)),
    Case("wide, three ways, books in rows",
         "date;home_team;away_team;bookmaker;home_odds;draw_odds;away_odds\n"
         "2026-12-05;Arsenal;Chelsea;Bet365;2,10;3,40;3,60\n", three("Bet365", A, B, 2.1, 3.4, 3.6)),
    Case("wide, 1 X 2", pl.DataFrame({"Match": ["Arsenal v Chelsea"], "Bookmaker": "Unibet", "1": [2.0], "X": [3.5], "2": [4.0]}),
         three("Unibet", A, B, 2.0, 3.5, 4.0)),
    Case("columns Home, Draw and Away with odds",
         "Match,Book,Home,Draw,Away\nArsenal - Chelsea,unibet,5/4,9/4,11/5\n", three("unibet", A, B, 2.25, 3.25, 3.2)),
    Case("wide, a book in each name",
         "Date,Home Team,Away Team,Pinnacle Home,Pinnacle Away,FanDuel_Home,FanDuel_Away\n2026-02-08,Lakers,Celtics,1.9,2.0,1.87,2.05\n",
         [*two("Pinnacle", L, C, 1.9, 2.0), *two("FanDuel", L, C, 1.87, 2.05)]),
    Case("spread and total in one row",
         pl.DataFrame({"home": [L], "away": [C], "book": ["betmgm"], "home_line": [-2.5], "home_odds": [1.91], "away_odds": [1.95],
                       "total": [220.5], "over_odds": [1.9], "under_odds": [1.92]}),
         [("betmgm", L, C, "spread", L, -2.5, 1.91), ("betmgm", L, C, "spread", C, 2.5, 1.95),
          ("betmgm", L, C, "total", "Over", 220.5, 1.9), ("betmgm", L, C, "total", "Under", 220.5, 1.92)]),
    Case("three markets in one row, American",
         "game,sportsbook,home_ml,away_ml,home_spread,home_spread_odds,away_spread,away_spread_odds,total,over_odds,under_odds\n"
         "Celtics @ Lakers,Circa,-150,+130,-3.5,-110,+3.5,-110,220.5,-105,-115\n",
         [*two("Circa", L, C, 1.667, 2.3), ("Circa", L, C, "spread", L, -3.5, 1.909), ("Circa", L, C, "spread", C, 3.5, 1.909),
          ("Circa", L, C, "total", "Over", 220.5, 1.952), ("Circa", L, C, "total", "Under", 220.5, 1.87)]),
    Case("long, one row a line with both sides",
         "game,book,market,line,home_odds,away_odds,over_odds,under_odds\n"
         "Celtics @ Lakers,fanduel,moneyline,,1.9,2.0,,\nCeltics @ Lakers,fanduel,total,220.5,,,1.91,1.93\n",
         [*two("fanduel", L, C, 1.9, 2.0), ("fanduel", L, C, "total", "Over", 220.5, 1.91), ("fanduel", L, C, "total", "Under", 220.5, 1.93)]),
    Case("both sides and a line of either team",
         "game,book,market,line,home_odds,away_odds\nCeltics @ Lakers,fanduel,spread,-2.5,1.9,2.0\n",
         [("fanduel", L, C, "spread", L, -2.5, 1.9), ("fanduel", L, C, "spread", C, 2.5, 2.0)],
         cure="column 'line' can be the line of the home or of the away team"),
    Case("totals with their lines in names",
         "Home,Away,Bookmaker,over_2.5,under_2.5,Over 3.5,Under 3.5\nArsenal,Chelsea,bwin,1.8,2.05,2.9,1.4\n",
         [("bwin", A, B, "total", "Over", 2.5, 1.8), ("bwin", A, B, "total", "Under", 2.5, 2.05),
          ("bwin", A, B, "total", "Over", 3.5, 2.9), ("bwin", A, B, "total", "Under", 3.5, 1.4)]),
    Case("one column per book",
         pl.DataFrame({"home": L, "away": C, "team": [L, C], "market": "moneyline", "Pinnacle": ["-130", "+120"],
                       "DraftKings": ["-135", "+125"], "FanDuel": ["-128", None]}),
         [*two("Pinnacle", L, C, 1.769, 2.2), *two("DraftKings", L, C, 1.741, 2.25), two("FanDuel", L, C, 1.781, 0)[0]]),
    Case("one column per book, without the market",
         pl.DataFrame({"game": "Celtics @ Lakers", "pick": [L, C], "pinnacle": [1.9, 2.0], "Best": [1.9, 2.0]}),
         two("pinnacle", L, C, 1.9, 2.0), cure="what all rows have in common as columns={'market_type'"),
    Case("one column per book, and an unknown one",
         pl.DataFrame({"game": "Celtics @ Lakers", "market": "moneyline", "pick": [L, C], "pinnacle": [1.9, 2.0], "mine": [1.95, 2.1]}),
         two("pinnacle", L, C, 1.9, 2.0), cure="'mine' can be odds of a book, which is not known from the name"),
    Case("The Odds API, its JSON in a file", json.dumps([{
        "id": "e1", "sport_key": "basketball_nba", "commence_time": "2026-02-09T00:30:00Z", "home_team": "Los Angeles Lakers",
        "away_team": "Boston Celtics", "bookmakers": [{"key": "betmgm", "title": "BetMGM", "last_update": "2026-02-08T20:00:00Z",
        "markets": [{"key": "h2h", "outcomes": [{"name": "Boston Celtics", "price": 2.05}, {"name": "Los Angeles Lakers", "price": 1.83}]},
                    {"key": "spreads", "outcomes": [{"name": "Boston Celtics", "price": 1.91, "point": 2.5},
                                                    {"name": "Los Angeles Lakers", "price": 1.91, "point": -2.5}]}]}]}]),
         [("betmgm", "Los Angeles Lakers", "Boston Celtics", "moneyline", "Boston Celtics", None, 2.05),
          ("betmgm", "Los Angeles Lakers", "Boston Celtics", "moneyline", "Los Angeles Lakers", None, 1.83),
          ("betmgm", "Los Angeles Lakers", "Boston Celtics", "point_spread", "Boston Celtics", 2.5, 1.91),
          ("betmgm", "Los Angeles Lakers", "Boston Celtics", "point_spread", "Los Angeles Lakers", -2.5, 1.91)],
         suffix=".json", starts="2026-02-09T00:30"),
    Case("The Odds API, flattened by a script",
         "commence_time,home_team,away_team,bookmaker,market,name,price,point\n"
         "2026-02-09T00:30:00Z,Lakers,Celtics,betmgm,spreads,Lakers,-110,-2.5\n"
         "2026-02-09T00:30:00Z,Lakers,Celtics,betmgm,spreads,Celtics,-110,2.5\n",
         [("betmgm", L, C, "spreads", L, -2.5, 1.909), ("betmgm", L, C, "spreads", C, 2.5, 1.909)],
         columns={"name": "selection"}, starts="2026-02-09T00:30"),
    Case("OddsHarvester",
         "scraped_date,match_date,match_link,home_team,away_team,league_name,home_score,away_score,1x2_market,over_under_2_5_market,asian_handicap_-1_5_market\n"
         "2026-03-02 18:50:32 UTC,2026-03-03 19:30:00 UTC,https://example.org/m,Arsenal,Chelsea,Premier League,,,"
         "\"[{'1': '9/10', 'X': '12/5', '2': '3/1', 'bookmaker_name': 'bet365', 'period': 'FullTime'}]\","
         "\"[{'odds_over': '1.95', 'odds_under': '1.90', 'bookmaker_name': 'Pinnacle', 'period': 'FullTime'}]\","
         "\"[{'team1_handicap': '2.60', 'team2_handicap': '-', 'bookmaker_name': 'Pinnacle', 'period': 'FullTime'}]\"\n",
         [("bet365", A, B, "1x2", A, None, 1.9), ("bet365", A, B, "1x2", "Draw", None, 3.4), ("bet365", A, B, "1x2", B, None, 4.0),
          ("Pinnacle", A, B, "total", "Over", 2.5, 1.95), ("Pinnacle", A, B, "total", "Under", 2.5, 1.9),
          ("Pinnacle", A, B, "spread", A, -1.5, 2.6)], starts="2026-03-03T19:30"),
    Case("merged dates",
         "Date,Home,Away,Bookmaker,Market,Selection,Odds\n08/02/2026,Lakers,Celtics,betmgm,moneyline,Lakers,1.9\n"
         ",Lakers,Celtics,betmgm,moneyline,Celtics,2.0\n", two("betmgm", L, C, 1.9, 2.0), cure="column 'Date' is empty in line 3"),
    Case("decimal commas and semicolons",
         "Spiel;Buch;Markt;Tipp;Quote\nArsenal - Chelsea;bwin;1x2;1;2,10\nArsenal - Chelsea;bwin;1x2;X;3,40\nArsenal - Chelsea;bwin;1x2;2;3,60\n",
         [("bwin", A, B, "1x2", "1", None, 2.1), ("bwin", A, B, "1x2", "X", None, 3.4), ("bwin", A, B, "1x2", "2", None, 3.6)],
         columns={"Spiel": "event_id", "Buch": "sportsbook", "Markt": "market_type", "Tipp": "selection", "Quote": "odds"}),
    Case("fractions",
         "event,bookie,market,outcome,price\nArsenal v Chelsea,ladbrokes,1x2,Arsenal,5/2\nArsenal v Chelsea,ladbrokes,1x2,Draw,9/4\n"
         "Arsenal v Chelsea,ladbrokes,1x2,Chelsea,evens\n",
         [("ladbrokes", A, B, "1x2", A, None, 3.5), ("ladbrokes", A, B, "1x2", "Draw", None, 3.25), ("ladbrokes", A, B, "1x2", B, None, 2.0)]),
    Case("days with dots",
         "start,home,away,book,market,team,odds\n08.02.2026 19:30,Lakers,Celtics,bwin,moneyline,Lakers,1.9\n08.02.2026 19:30,Lakers,Celtics,bwin,moneyline,Celtics,2.0\n",
         two("bwin", L, C, 1.9, 2.0), starts="2026-02-08T19:30"),
    Case("days with slashes, the day first in one",
         "start,home,away,book,market,team,odds\n08/02/2026 19:30,Lakers,Celtics,bwin,moneyline,Lakers,1.9\n13/02/2026 19:30,Lakers,Celtics,bwin,moneyline,Celtics,2.0\n",
         two("bwin", L, C, 1.9, 2.0), starts="2026-02-08T19:30"),
    Case("picks that say the market",
         "Game,Book,Pick,Odds\nCeltics @ Lakers,DK,Lakers ML,-150\nCeltics @ Lakers,DK,Celtics +3.5,-110\nCeltics @ Lakers,DK,O 220.5,-105\nCeltics @ Lakers,DK,U 220.5,-115\n",
         [("DK", L, C, "moneyline", L, None, 1.667), ("DK", L, C, "spread", C, 3.5, 1.909), ("DK", L, C, "total", "O 220.5", 220.5, 1.952),
          ("DK", L, C, "total", "U 220.5", 220.5, 1.87)]),
    Case("lines in the selections",
         "game,book,market,bet_name,odds\nCeltics @ Lakers,fanduel,total,Over 220.5,1.9\nCeltics @ Lakers,fanduel,total,Under 220.5,1.95\nCeltics @ Lakers,fanduel,spread,Lakers -2.5,1.9\n",
         [("fanduel", L, C, "total", "Over 220.5", 220.5, 1.9), ("fanduel", L, C, "total", "Under 220.5", 220.5, 1.95), ("fanduel", L, C, "spread", "Lakers -2.5", -2.5, 1.9)]),
    Case("selections Home and Away, no book",
         "home,away,market,selection,odds\nLakers,Celtics,moneyline,Home,1.9\nLakers,Celtics,moneyline,Away,2.0\n",
         [("BOOK", L, C, "moneyline", "Home", None, 1.9), ("BOOK", L, C, "moneyline", "Away", None, 2.0)],
         cure="it has no sportsbook"),
    Case("a pandas frame with an index",
         pd.DataFrame({"book": "fanduel", "home": L, "away": C, "market": "moneyline", "team": [L, C], "odds": [1.9, 2.0]},
                      index=pd.Index(["a", "b"], name="game")), two("fanduel", L, C, 1.9, 2.0)),
    Case("football-data.co.uk",
         "Div,Date,Time,HomeTeam,AwayTeam,FTHG,FTAG,FTR,B365H,B365D,B365A,MaxH,MaxD,MaxA\nE0,05/12/2026,15:00,Arsenal,Chelsea,2,1,H,2.1,3.4,3.6,2.2,3.5,3.7\n",
         [("bet365", A, B, "moneyline_3way", A, None, 2.1), ("bet365", A, B, "moneyline_3way", "Draw", None, 3.4), ("bet365", A, B, "moneyline_3way", B, None, 3.6)],
         starts="2026-12-05T15:00"),
    Case("two rows a game, with rotation numbers",
         "Date,Rot,VH,Team,1st,2nd,3rd,4th,Final,Open,Close,ML,2H\n1028,501,V,Celtics,28,22,13,22,85,179.5,182.5,220,93.5\n1028,502,H,Lakers,22,21,24,23,90,7,6,-260,5\n",
         [("BOOK", L, C, "moneyline", L, None, 1.385), ("BOOK", L, C, "moneyline", C, None, 3.2)], cure="it has no sportsbook"),
    Case("an odds service's export",
         "sport,league,start_date,home_team,away_team,sports_book_name,market_name,bet_name,bet_points,price,timestamp\n"
         "basketball,nba,2026-02-09T00:30:00Z,Lakers,Celtics,DraftKings,Moneyline,Lakers,,-150,1770580800\n"
         "basketball,nba,2026-02-09T00:30:00Z,Lakers,Celtics,DraftKings,Total Points,Over 220.5,220.5,-110,1770580800\n",
         [("DraftKings", L, C, "Moneyline", L, None, 1.667), ("DraftKings", L, C, "Total Points", "Over 220.5", 220.5, 1.909)], starts="2026-02-09T00:30"),
    Case("a row per team with its markets",
         "Game,Sportsbook,Team,Spread,Spread Odds,ML\nCeltics @ Lakers,Pinnacle,Lakers,-2.5,-110,-140\nCeltics @ Lakers,Pinnacle,Celtics,+2.5,-108,+125\n",
         [("Pinnacle", L, C, "spread", L, -2.5, 1.909), ("Pinnacle", L, C, "spread", C, 2.5, 1.926), *two("Pinnacle", L, C, 1.714, 2.25)]),
    Case("titles above the header, and a sum below",
         "My odds,,,,,\nexported 2026-02-08,,,,,\nBook,Game,Market,Team,Odds,Stake\nfanduel,Celtics @ Lakers,moneyline,Lakers,1.9,10\n"
         "fanduel,Celtics @ Lakers,moneyline,Celtics,2.0,20\nTotal,,,,,30\n", two("fanduel", L, C, 1.9, 2.0), rejected=1),
    Case("the same in a frame",
         pl.DataFrame([["My odds", None, None, None, None], ["Book", "Game", "Market", "Team", "Odds"],
                       ["fanduel", "Celtics @ Lakers", "moneyline", L, "1.9"], ["fanduel", "Celtics @ Lakers", "moneyline", C, "2.0"]], orient="row"),
         two("fanduel", L, C, 1.9, 2.0), cure="its row 1 is a header"),
    Case("opening and closing odds",
         "home,away,book,open_home_odds,open_away_odds,close_home_odds,close_away_odds\nLakers,Celtics,betmgm,1.8,2.1,1.9,2.0\n",
         two("betmgm", L, C, 1.9, 2.0), cure="leave out the opening ones"),
    Case("Betfair's historical data",
         "SPORTS_ID,EVENT_ID,SETTLED_DATE,FULL_DESCRIPTION,SCHEDULED_OFF,EVENT,DT ACTUAL_OFF,SELECTION_ID,SELECTION,ODDS,"
         "NUMBER_BETS,VOLUME_MATCHED,LATEST_TAKEN,FIRST_TAKEN,WIN_FLAG,IN_PLAY\n"
         "1,7,13-03-2016 19:59:23,English Soccer/Premier League/Fixtures 13 March/Arsenal v Chelsea,13-03-2016 19:30,"
         "Match Odds,13-03-2016 19:34:03,5,Arsenal,2.5,14,375.96,13-03-2016 19:47:50,13-03-2016 19:46:33,0,PE\n",
         [("betfair_exchange", A, B, "Match Odds", A, None, 2.5)], cure="prices matched at Betfair"),
    Case("a spread of the away team, and typographic minus signs",
         "away_team,home_team,book,spread_line,home_spread_odds,away_spread_odds,O/U,Over,Under\nCeltics,Lakers,Circa,3.5,−110,−105,220.5,+100,−120\n",
         [("Circa", L, C, "spread", L, -3.5, 1.909), ("Circa", L, C, "spread", C, 3.5, 1.952),
          ("Circa", L, C, "total", "Over", 220.5, 2.0), ("Circa", L, C, "total", "Under", 220.5, 1.833)],
         columns={"spread_line": "away_line"}),
    Case("probabilities",
         "book,game,market,team,odds\nkalshi,Celtics @ Lakers,moneyline,Lakers,0.5\nkalshi,Celtics @ Lakers,moneyline,Celtics,0.52\n",
         two("kalshi", L, C, 2.0, 1.923), cure="column 'odds': there are probabilities"),
]  # fmt: skip


@pytest.mark.parametrize("case", TABLES, ids=lambda case: case.name)
def test_a_table_is_the_right_board(case: Case, tmp_path: Path) -> None:
    reader, source = read(case, tmp_path)
    if case.cure:
        with pytest.raises(OddsError) as raised:
            reader(source, columns=case.columns)
        assert case.cure in str(raised.value)
        table = cured(raised.value, case, tmp_path)
    else:
        table = reader(source, columns=case.columns)
    assert rows_of(table) == expected(case.rows)
    assert table.rejected.height == case.rejected
    assert oe.rejected(table)["guard"].to_list().count("unknown_outcome") == 0
    if case.starts:
        start = table["event_start_time"][0]
        assert start is not None
        assert start.isoformat().startswith(case.starts)


def test_the_format_of_several_columns_is_said_by_their_names() -> None:
    wide = pl.DataFrame({"game": "Celtics @ Lakers", "book": "a", "home_odds": [120], "away_odds": [140]})
    with pytest.raises(
        OddsError, match="the columns 'home_odds', 'away_odds' can have decimal or American odds"
    ) as said:
        check_odds(wide)
    assert cured(said.value, Case("", wide, []), Path())["odds_decimal"].to_list() == [2.2, 2.4]
    shares = wide.with_columns(home_odds=pl.lit(0.5), away_odds=pl.lit(0.4))
    with pytest.raises(OddsError, match="the columns 'home_odds', 'away_odds': there are probabilities") as said:
        check_odds(shares)
    assert cured(said.value, Case("", shares, []), Path())["odds_decimal"].to_list() == [2.0, 2.5]


def test_the_gallery_has_thirty_tables() -> None:
    assert len({case.name for case in TABLES}) >= 30


# ---- what can be read in two ways ----


class Hostile(NamedTuple):
    name: str
    table: Any
    said: str
    columns: dict[str, Any] | None = None


BASE = {"book": ["betmgm", "betmgm"], "home": L, "away": C, "market": "moneyline", "team": [L, C]}


def frame(**columns: Any) -> pl.DataFrame:
    """A moneyline of two prices, with other columns; None leaves one out."""
    made = {**BASE, "odds": [1.9, 2.0], **columns}
    return pl.DataFrame({name: values for name, values in made.items() if values is not None})


WINNER = dict(home_odds=[1.9, 1.95], away_odds=[1.95, 1.9])
SPREAD = dict(home_spread_odds=[1.9, 1.95], away_spread_odds=[1.95, 1.9])
TOTAL = dict(over_odds=[1.9, 1.95], under_odds=[1.95, 1.9])


def wide(prices: dict[str, list[float]], **columns: Any) -> pl.DataFrame:
    """A game at two books, with a column for each outcome."""
    of_game = {"book": ["pinnacle", "betmgm"], "home": L, "away": C, "date": "2026-02-28"}
    game = {name: value for name, value in of_game.items() if name != "book" or prices}
    return pl.DataFrame({**game, **prices, **columns})


HOSTILE = [
    Hostile("unsigned prices above 100", frame(odds=[120, 140]), "'odds' can have decimal or American odds, such as 120 in row 0"),
    Hostile("American and decimal prices in one column", frame(odds=["-110", "1.95"]), "column 'odds': there are American odds (-110 in row 0) and decimal"),
    Hostile("a day that can be two", frame(start=["02/03/2026 19:30"] * 2), "column 'start': '02/03/2026 19:30' can be two days"),
    Hostile("days in two orders", frame(start=["13/02/2026", "02/13/2026"]), "has the day in another place than"),
    Hostile("two columns of odds", frame(Price=[1.9, 2.1]), "the columns 'odds' and 'Price' can each be odds"),
    Hostile("columns that each are the odds of a side",
            frame(team=None, odds=None, home_odds=1.9, away_odds=2.0, home_price=1.95),
            "'home_odds' and 'home_price' can each be the odds of home"),
    Hostile("teams the other way round than in the name", frame(matchup="Lakers @ Celtics"),
            "'Lakers @ Celtics' in column 'matchup' has 'Celtics' at home, and column 'home' has 'Lakers'"),
    Hostile("totals without a line", frame(team=None, odds=None, market=None, over_odds=1.9, under_odds=1.95),
            "'over_odds' has odds of over, and no column has the line of the total"),
    Hostile("a spread without its side", frame(team=None, odds=None, market=None, line=-2.5, home_spread_odds=1.9, away_spread_odds=1.95),
            "column 'line' can be the line of the home or of the away team"),
    Hostile("odds of home and away beside a line", frame(team=None, odds=None, market=None, spread=-2.5, home_odds=1.9, away_odds=1.95),
            "column 'spread' can be the line of the home or of the away team, or have nothing to do with 'home_odds'"),
    Hostile("two columns for the moneyline",
            frame(team=None, odds=None, market=None, home_odds=1.9, away_odds=1.95, home_ml=1.8, away_ml=2.1),
            "'home_odds' and 'home_ml' can each be the odds of home"),
    Hostile("picks with American prices in them", frame(market=None, team=["Lakers ML", "Celtics +150"]), "and not of 'Celtics +150'"),
    Hostile("a column of stakes, whose name is that of a book", frame(book=None, odds=None, pinnacle=[1.9, 2.0], Stake=[10, 20]),
            "the column 'Stake' can be odds of a book, which is not known from the name, or no odds"),
    Hostile("a spread of nflverse, positive for a home favourite",
            frame(team=None, odds=None, market=None, spread_line=3.5, home_spread_odds=1.9, away_spread_odds=1.95),
            "whether 'spread_line' has that of the home or of the away team is not said: columns={'spread_line': 'home_line'} or 'away_line'"),
    Hostile("a column of the table with the name of ours", frame(team=None, odds=None, market=None, home_odds=1.9, away_odds=2.0, source_row=1),
            "the column 'source_row' has the name of one that says where a price is from"),
    Hostile("a format that only some names say", frame(team=None, odds=None, market=None, home_odds_decimal=1.9, away_odds=1.95),
            "column 'home_odds_decimal' has decimal odds by its name, and 'away_odds' does not say which"),
    Hostile("an opening and a closing line", wide(SPREAD, home_spread_close=-3.5, home_spread_open=-2.5),
            "'home_spread_close' and 'home_spread_open' can each be the line"),
    Hostile("the line of a half", wide(SPREAD, **{"home_line": -3.5, "1h_home_line": -1.5}), "'1h_home_line'"),
    Hostile("how a line moved", wide(SPREAD, home_line=-3.5, home_line_move=0.5), "'home_line_move'"),
    Hostile("whether the spread was covered", wide(SPREAD, home_spread=-2.5, home_spread_cover=1), "'home_spread_cover'"),
    Hostile("totals of a team", wide(TOTAL, home_total_line=112.5, total=221), "'home_total_line' can be totals of a team"),
    Hostile("totals of both teams", wide(TOTAL, home_total=112.5, away_total=108.5, total=221), "'home_total' and 'away_total' can be"),
    Hostile("points scored beside a line", wide(TOTAL, total=215, line=220.5), "'line' and 'total' can each be the line of the total"),
    Hostile("a handicap without its side", wide(WINNER, ah_line=-0.5), "'ah_line' can be of prices or lines, and it is not known of which"),
    Hostile("a spread of a book without its side",
            wide({}, **{"Pinnacle Spread": -2.5, "Pinnacle Home": 1.9, "Pinnacle Away": 1.95}), "'Pinnacle Spread' can be of prices or lines"),
    Hostile("prices that are named as a line", wide(WINNER, ah_home=-105), "'ah_home' is no line, as -105 shows"),
    Hostile("decimal odds that are named as a line", wide(WINNER, ah_home=1.9), "'ah_home' is no line, as 1.9 shows"),
    Hostile("points of a team", wide(WINNER, home_points=112), "'home_points'"),
    Hostile("a moneyline beside a spread", wide({}, home_odds=1.3, away_odds=3.7, home_spread=-7.5),
            "'home_odds' can be the odds of the spread in 'home_spread', or of the moneyline"),
    Hostile("a French draw", wide({}, **{"1": [2.1, 2.2], "N": [3.3, 3.2], "2": [3.6, 3.5]}), "'N' can be of prices or lines"),
    Hostile("a third outcome", wide({}, odds_1=2.1, odds_2=3.3, odds_3=3.6), "'odds_3' can be of prices or lines"),
    Hostile("odds of a half", wide({}, pinnacle_home=1.9, pinnacle_away=1.95, betmgm_ht_home=1.9, betmgm_ht_away=1.95),
            "can be odds of a book 'betmgm ht'"),
    Hostile("opening prices and ids of a book", frame(book=None, odds=None, pinnacle=[1.9, 2.0], pinnacle_op=[1.8, 2.1], fanduel_id=[812345, 812346]),
            "the columns 'pinnacle_op' and 'fanduel_id' can be odds of a book"),
    Hostile("parts of a game", wide(WINNER, period=["FT", "1H"]), "column 'period' can be the part of the game that a price is for"),
    Hostile("parts of a game, by row", frame(period=["FT", "1H"]), "column 'period' can be the part of the game that a price is for"),
    Hostile("players without a market", wide(TOTAL, player=["Saka", "Havertz"], line=1.5), "prices of 'player' need a market"),
    Hostile("lists in lists without end", '1x2_market,home_team,away_team\n"' + "[" * 5000 + '",A,B\n', "must have lists of prices, got"),
    Hostile("rows of other games in pairs", "Rot,VH,Team,ML\n501,V,Celtics,120\n504,H,Lakers,-140\n", "numbers that follow each other"),
    Hostile("lines that are not opposite",
            frame(team=None, odds=None, market=None, home_line=-2.5, away_line=-2.5, home_odds=1.9, away_odds=1.95),
            "the lines of home and away must be opposite, got -2.5 and -2.5 in row 0"),
    Hostile("a column that occurs twice", "book,game,market,team,odds,odds\na,B @ A,moneyline,A,1.9,1.95\n", "each column must occur once, got 'odds'"),
    Hostile("a column that occurred twice where pandas read it", frame(**{"odds.1": [1.9, 2.1]}), "'odds.1' is a second column 'odds'"),
    Hostile("probabilities", frame(odds=[0.5, 0.52]), "column 'odds': there are probabilities, such as 0.5 in row 0"),
    Hostile("percent", frame(odds=["50%", "52%"]), "column 'odds': there are probabilities, such as 50% in row 0"),
    Hostile("prices and probabilities", frame(odds=[0.5, 1.9]), "column 'odds': there are prices (1.9 in row 1) and numbers below 1"),
    Hostile("times with and without a zone", frame(start=["2026-02-08T19:30:00Z", "2026-02-08 14:30"]),
            "column 'start' has times with a zone, such as '2026-02-08T19:30:00Z', and without, such as '2026-02-08 14:30'"),
    Hostile("odds of a book that nobody knows", frame(team=None, odds=None, mine_home=1.9, mine_away=2.0), "can be odds of a book 'mine'"),
    Hostile("half of a market", frame(team=None, odds=None, home_odds=1.9), "it has no selection"),
    Hostile("picks of which one says no market", frame(market=None, team=["Lakers ML", "Celtics"]), "and not of 'Celtics'"),
    Hostile("a game per group of rows", frame(date=["2026-02-08", None]), "column 'date' is empty in row 1"),
    Hostile("rows of The Odds API", [{"sport_key": "x", "home_team": L, "bookmakers": [{"key": "a"}]}], "oe.read_odds('odds.json')"),
    Hostile("Betfair's starting prices",
            "event_id,menu_hint,event_name,event_dt,selection_id,selection_name,win_lose,bsp,ppwap,morningwap,ppmax,ppmin,ipmax,ipmin,"
            "morningtradedvol,pptradedvol,iptradedvol\n258715928,Nottingham 31st May,1m2f Hcap,31-05-2026 16:55,96505154,Sharp Romance,1,2.51,"
            "2.49,2.99,3.0,2.46,2.74,1.01,3337.16,77465.12,38963.54\n",
            "starting prices of races"),
]  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.name)
def test_what_can_be_read_in_two_ways_is_an_error(case: Hostile, tmp_path: Path) -> None:
    reader, source = read(Case(case.name, case.table, []), tmp_path)
    with pytest.raises(OddsError, match=re.escape(case.said)):
        reader(source)


@pytest.mark.parametrize(
    ("table", "field"),
    [
        (frame(odds=["1,950", "2,10"]), "odds"),  # 1.95, or 1950
        (frame(team=["1", "2"], home="Mainz", away="1. FC Köln", market="moneyline", sport="soccer"), None),
        (frame(team=[C, L], selection_type=["home", "away"]), None),
    ],
)
def test_a_row_that_can_be_read_in_two_ways_is_rejected(table: pl.DataFrame, field: str | None) -> None:
    lost = oe.rejected(table)
    assert 0 in lost["row"].to_list()
    assert lost.filter(row=0)["field"].to_list() == [field]


# ---- what is said of columns and rows ----


def test_columns_of_says_what_each_column_was_taken_for(tmp_path: Path) -> None:
    text = "Match;Bookmaker;Home;Draw;Away;Kickoff;Note\nArsenal v Chelsea;bwin;2,10;3,40;3,60;08.02.2026 15:00;late\n"
    path = tmp_path / "prices.csv"
    path.write_text(text)
    found = oe.columns_of(path)
    assert found.rows() == [
        ("Match", "event_id", "a common name of event_id, with the teams", "Arsenal v Chelsea"),
        ("Bookmaker", "sportsbook", "a common name of sportsbook", "bwin"),
        ("Home", "odds of home, 1x2", "its name, and the other columns", "2,10"),
        ("Draw", "odds of draw, 1x2", "its name, and the other columns", "3,40"),
        ("Away", "odds of away, 1x2", "its name, and the other columns", "3,60"),
        ("Kickoff", "event_start_time", "a common name of event_start_time", "08.02.2026 15:00"),
        ("Note", None, "not used, and kept", "late"),
    ]
    frame = pl.read_csv(path, separator=";", infer_schema=False)
    assert oe.columns_of(frame).equals(found)
    less = oe.columns_of(frame.drop("Bookmaker"), columns={"Note": "league", "sport": pl.lit("soccer")})
    assert less.select("column", "taken_for", "why").rows()[-3:] == [
        ("Note", "league", "columns= says so"),
        ("sport", "sport", "added by columns="),
        (None, "sportsbook", "needed, and no column is taken for it"),
    ]
    with pytest.raises(OddsError, match="expected a frame"):
        oe.columns_of(7)  # type: ignore[arg-type]
    with pytest.raises(OddsError, match="the columns 'Home', 'Draw', 'Away' can have decimal or American"):
        oe.columns_of(frame.with_columns(pl.lit("120").alias(name) for name in ("Home", "Draw", "Away")))


def test_the_command_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("Match,1,X,2\nArsenal v Chelsea,2.1,3.4,3.6\n")
    assert main(["columns", str(path), "--columns", "sportsbook==bwin", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["column"], row["taken_for"]) for row in rows][1:3] == [
        ("1", "odds of home, 1x2"),
        ("X", "odds of draw, 1x2"),
    ]
    assert main(["columns", str(path)]) == 0
    assert "needed, and no column is taken for it" in " ".join(capsys.readouterr().out.split())


def test_rejected_rows_name_the_columns_of_the_table(tmp_path: Path) -> None:
    long = check_odds(frame(odds=None, Price=["1.9", "soon"]))
    assert long.rejected.select("row", "field", "value").rows() == [(1, "Price", "soon")]
    path = tmp_path / "prices.csv"
    path.write_text(
        "game,book,home_odds,away_odds\nCeltics @ Lakers,bwin,1.9,2.0\nJazz @ Bulls,bwin,soon,2.1\nA @ B,bwin,1\n"
    )
    wide = oe.read_odds(path)
    assert wide.rejected.select("field", "value").rows() == [("home_odds", "soon"), ("", "A @ B,bwin,1")]
    assert [text.rpartition("; ")[2] for text in wide.rejected["reason"]] == ["line 3", "line 4"]
    assert wide.select("source_row", "source_column").rows()[-1] == (1, "away_odds")
    assert oe.rejected(wide)["row"].n_unique() == oe.rejected(wide).height


def test_a_wide_history_is_replayed_as_a_long_one() -> None:
    seen = pl.Series(["2026-02-08T12:00:00Z", "2026-02-08T12:10:00Z"])
    wide = pl.DataFrame(
        {
            "game": "Celtics @ Lakers",
            "book": "pinnacle",
            "last_seen_at": seen,
            "home_odds": [1.9, 1.8],
            "away_odds": [2.0, 2.1],
        }
    )
    for history in (wide, wide.lazy()):
        quotes = pl.concat([snapshot.quotes for snapshot in read_history(history).snapshots], how="diagonal")
        assert quotes.select("market_type", "home_team", "odds_decimal").rows() == [
            ("moneyline", L, price) for price in (1.9, 2.0, 1.8, 2.1)
        ]


@pytest.mark.parametrize("draw", [["3.3", "N/A"], ["3.3*", "3.2"], [3.3, 0.0]])
def test_a_bad_price_is_a_rejected_row_and_not_another_market(draw: list[Any]) -> None:
    odds = oe.check_odds(wide({}, book=["pinnacle", "betmgm"], **{"1": [2.1, 2.2], "X": draw, "2": [3.6, 3.5]}))
    assert set(odds["market_type"]) == {"1x2"}
    assert (odds.height, odds.rejected["field"].to_list()) == (5, ["X"])


def test_a_bad_price_does_not_hide_a_book() -> None:
    odds = oe.check_odds(frame(book=None, odds=None, Pinnacle=["1.9", "2.0"], FanDuel=["1.95", "N/A"]))
    assert (odds.height, odds.rejected["field"].to_list()) == (3, ["FanDuel"])


def test_books_and_lines_are_read_whatever_their_names_are_like() -> None:
    odds = oe.check_odds(
        wide({}, **{f"{book} {side}": [1.9, 1.95] for book in ("BetMGM", "bet365") for side in ("Home", "Away")})
    )
    assert set(odds["sportsbook"]) == {"BetMGM", "bet365"}
    own = {
        "Pinnacle Over": 1.9,
        "Pinnacle Under": 1.95,
        "Pinnacle Total": 220.5,
        "FanDuel Over": 1.9,
        "FanDuel Under": 1.95,
        "FanDuel Total": 222.5,
    }
    odds = oe.check_odds(wide({}, **own))
    assert set(odds.select("sportsbook", "line").rows()) == {("Pinnacle", 220.5), ("FanDuel", 222.5)}
    odds = oe.check_odds(wide(SPREAD, home_spread=["\u22122.5", "-2\u00bd"]))
    assert odds["line"].to_list() == [-2.5, 2.5, -2.5, 2.5]
    odds = oe.check_odds(wide(TOTAL, over_line=220.5, under_line=221.5))
    assert odds["line"].to_list() == [220.5, 221.5, 220.5, 221.5]
