"""Bets as their authors write them, and the events that they are on."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from oddsengine.backtesting.placed_bets import Event, find_events, on_events, read_bets
from oddsengine.tables.column_names import teams_of
from oddsengine.tables.schema import OddsError

BET = {"event_id": "e1", "market_type": "moneyline", "selection": "home", "sportsbook": "fanduel", "odds": 2.1}
NIGHT = datetime(2026, 2, 9, 0, 30, tzinfo=UTC)  # the evening of the 8th in the United States


def game(ident: str = "e1", start: datetime | None = NIGHT, home: str = "Lakers", away: str = "Celtics") -> Event:
    return Event(ident, "basketball", "nba", home, away, start)


def found(events: list[Event], **bet: Any) -> tuple[str | None, bool, str | None]:
    table = read_bets([{**BET, "event_id": "mine", **bet}], None).table
    (of,) = find_events(table, events)
    return of.event and of.event.id, of.swapped, of.missing


@pytest.mark.parametrize(
    ("selection", "line", "read"),
    [
        ("Over 2.5", None, ("over", 2.5)),
        ("o220.5", None, ("over", 220.5)),
        ("Under 47", "", ("under", 47.0)),
        ("Arsenal -1.5", None, ("Arsenal", -1.5)),
        ("Arsenal (+0.25)", None, ("Arsenal", 0.25)),
        ("Over 2.5", "3.5", ("Over 2.5", 3.5)),
        ("Schalke 04", None, ("Schalke 04", None)),
        ("Schalke-04", None, ("Schalke-04", None)),
        ("Arsenal", None, ("Arsenal", None)),
    ],
)
def test_lines_at_the_end_of_selections(selection: str, line: Any, read: tuple[str, float | None]) -> None:
    table = read_bets([{**BET, "selection": selection, "line": line}], None).table
    assert table.select("selection", "line").row(0) == read


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Celtics @ Lakers", ("Lakers", "Celtics")),
        ("Boston at Los Angeles", ("Los Angeles", "Boston")),
        ("Arsenal vs. Chelsea", ("Arsenal", "Chelsea")),
        ("Arsenal VS Chelsea", ("Arsenal", "Chelsea")),
        ("Arsenal - Chelsea", ("Arsenal", "Chelsea")),
        ("Super Bowl", None),
        ("a v b v c", None),
    ],
)
def test_teams_in_the_name_of_a_game(text: str, pair: tuple[str, str] | None) -> None:
    assert teams_of(text) == pair


def test_odds_in_any_format() -> None:
    for odds, decimal in (("+150", 2.5), ("2.5", 2.5), ("3/2", 2.5), (2.5, 2.5), (-200, 1.5)):
        assert read_bets([{**BET, "odds": odds}], None).table["odds_decimal"].item() == pytest.approx(decimal)


def test_days_with_slashes() -> None:
    def days(*texts: str) -> list[date]:
        return read_bets([{**BET, "Date": text} for text in texts], None).table["event_date"].dt.date().to_list()

    assert days("8/2/2026", "13/02/2026") == [date(2026, 2, 8), date(2026, 2, 13)]
    assert days("2/8/2026", "2/13/2026 19:30") == [date(2026, 2, 8), date(2026, 2, 13)]
    for texts in (("2/8/2026",), ("13/2/2026", "2/13/2026")):
        with pytest.raises(
            OddsError, match=r"bet 1: event_date '.*' (can be two days|has the day in another place than '2/13/2026')"
        ):
            days(*texts)


def test_an_event_is_found_by_its_id_or_its_teams() -> None:
    events = [game(), game("e2", home="Bulls", away="Heat")]
    assert found(events, event_id="e2") == ("e2", False, None)
    assert found(events, event_id="Boston Celtics @ LA Lakers") == ("e1", False, None)
    assert found(events, event_id="LA Lakers @ Boston Celtics") == ("e1", True, None)
    assert found(events, event_id=None, home_team="Miami Heat", away_team="Chicago Bulls") == ("e2", True, None)
    assert found(events, event_name="Heat v Bulls") == ("e2", True, None)
    assert found(events, event_id="Heat v Knicks") == (None, False, "teams not in the history")


def test_the_time_tells_games_of_the_same_teams_apart() -> None:
    before, after = game("e0", NIGHT - timedelta(days=1)), game("e2", NIGHT + timedelta(days=1))
    events = [before, game(), after]
    teams = {"event_id": "Celtics @ Lakers"}
    assert found(events, **teams, Date="2026-02-08")[0] == "e1"
    assert found(events, **teams, Date="2026-02-09")[0] == "e2"
    assert found([before, game()], **teams, Date="2026-02-09")[0] == "e1"  # the UTC day
    assert found(events, **teams, event_start_time="2026-02-08T23:00Z")[0] == "e1"
    assert found(events, **teams, event_start_time="2026-02-11")[0] is None
    assert found(events, **teams, event_start_time="2026-02-07")[0] == "e0"  # a day
    assert found(events, **teams, placed_at="2026-02-08T12:00Z")[0] == "e1"
    assert found(events, **teams) == (None, False, "several games of these teams: a time would tell which")
    assert found(events, **teams, Date="2026-02-20")[2] == "no game of these teams at that time in the history"


def test_outcomes_are_named_by_the_teams_of_the_history() -> None:
    def selection(text: str, **bet: Any) -> tuple[str, str | None]:
        bets = read_bets([{**BET, "selection": text, **bet}], None).table
        moved = on_events(bets, find_events(bets, [game()]))
        return moved.select("selection", "selection_type").row(0)

    assert selection("Los Angeles Lakers") == ("Lakers", None)
    assert selection("Home") == ("Lakers", "home")
    assert selection("2") == ("Celtics", "away")
    swapped = {"home_team": "Boston Celtics", "away_team": "LA Lakers"}
    assert selection("Home", **swapped) == ("Celtics", "away")
    assert selection("Boston Celtics", **swapped) == ("Celtics", None)
    assert selection("BOS", selection_type="home", **swapped)[1] == "away"
    assert selection("Over") == ("Over", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"odds": "soon"}, "bet 2: odds_decimal 'soon' is not a price: 1.95, 1,95 and 10/11 are accepted"),
        ({"odds": "1.0"}, "bet 2: odds_decimal '1.0' is not a finite price above 1"),
        ({"stake": "ten"}, "bet 2: stake must be a number of at least 0, got 'ten'"),
        ({"stake": "-1"}, "bet 2: stake must be a number of at least 0, got '-1'"),
        ({"net_odds": "0.5"}, "bet 2: net_odds must be a number of at least 1, got '0.5'"),
        ({"placed_at": "noon"}, "bet 2: placed_at 'noon' is not a time: ISO 8601"),
        ({"result": "maybe"}, "bet 2: result must be one of won, half won, push, half lost, lost, cashed out"),
        ({"closing_odds": "x"}, "closing_odds: bet 2: odds_decimal 'x' is not a price"),
        ({"line": "high"}, "bet 2: line 'high' is not a number: 6.5 and 6,5 are accepted"),
    ],
)
def test_an_invalid_bet_is_named(change: dict[str, str], message: str) -> None:
    valid = {"odds": "2.1", "stake": "1", "net_odds": "2.0", "placed_at": "2026-02-08", "closing_odds": "2.0"}
    columns = [*BET, *change]
    first = {name: {**BET, **valid}.get(name) for name in columns}
    with pytest.raises(OddsError, match=re.escape(message)):
        read_bets([first, {**first, **change}], None)


def test_what_is_no_table_of_bets(tmp_path: Path) -> None:
    with pytest.raises(OddsError, match=r"it has no selection, no odds .its columns: event_id, Market.; a column of"):
        read_bets([{"event_id": "e", "Market": "moneyline"}], None)
    with pytest.raises(OddsError, match=r"it has no event_id .nor home_team and away_team. .its columns: Market"):
        read_bets([{"Market": "moneyline", "Pick": "x", "Odds": 2.0}], None)
    with pytest.raises(OddsError, match="column 'Bet' cannot be 'picks', which is no column of a table of bets"):
        read_bets([{**BET, "Bet": "x"}], {"Bet": "picks"})
    with pytest.raises(OddsError, match="not a table of bets: expected a frame"):
        read_bets(3, None)  # type: ignore[arg-type]
    with pytest.raises(OddsError, match=r"cannot read .*none\.csv: no such file"):
        read_bets(tmp_path / "none.csv", None)
    (tmp_path / "bets.xls").write_bytes(b"x")
    with pytest.raises(OddsError, match=r"the suffix must be one of .csv, .*, got '.xls'"):
        read_bets(tmp_path / "bets.xls", None)
    (tmp_path / "bets.csv").write_text("Event,Market,Selection,Odds\ne1,moneyline,home,2.0\ne1,mon\n")
    with pytest.raises(OddsError, match=r"bets\.csv: line 3 cannot be read: the line has 2 fields, the header 4"):
        read_bets(tmp_path / "bets.csv", None)


def test_columns_of_other_names() -> None:
    bets = [{"Where": "Bet365", "Match": "e1", "Bet Type": "1X2", "Bet": "home", "Price": "+120", "Wager": "$5"}]
    read = read_bets(pl.DataFrame(bets), {"Where": "sportsbook", "Bet": "selection"})
    names = ("sportsbook", "event_id", "market_type", "selection", "odds_decimal", "stake")
    assert read.table.select(names).row(0) == ("Bet365", "e1", "1X2", "home", 2.2, 5.0)
