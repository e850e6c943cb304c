"""Rows of another game under an event's id: they are compared with nothing, and honest rows are left alone."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.test_interruption import interrupted
from naive.identity import other_games as twin
from support.hazards import Row
from support.rows import MOMENT, Rows, aside, ask, moneyline, reason, row, table, total, whatever_is_found

import oddsengine as oe
from oddsengine import Engine, catalog, find_all, find_arbitrage, find_ev, find_low_hold, find_middles
from oddsengine.board.events import Games, Votes
from oddsengine.board.names import Names
from oddsengine.board.terms import Terms
from oddsengine.identity.raw_labels import other_games
from oddsengine.query import BoardStats

LAKERS, CELTICS, BULLS, KNICKS = "Los Angeles Lakers", "Boston Celtics", "Chicago Bulls", "New York Knicks"
GAME: dict[str, Any] = dict(home_team=LAKERS, away_team=CELTICS)
OTHER: dict[str, Any] = dict(home_team=BULLS, away_team=KNICKS)
FIVE = ("pinnacle", "draftkings", "fanduel", "caesars", "betmgm")
# Two books whose prices are far from an arbitrage of their own game, and make one with those of `GAME`.
EVEN, SHIFTED = (1.90, 1.92), (1.75, 2.20)


def named(home: str | None, away: str | None, **more: Any) -> dict[str, Any]:
    return dict(home_team=home, away_team=away, **more)


def quoted(book: str, teams: Mapping[str, Any], prices: tuple[float, float] = EVEN) -> Rows:
    """A moneyline by position, so that any names of the teams do."""
    sides = zip(("home", "away"), prices, strict=True)
    return [row(book, "moneyline", side.title(), odds, selection_type=side, **teams) for side, odds in sides]


def game_of(*teams: Mapping[str, Any]) -> pl.DataFrame:
    """One book each, with some names of the teams."""
    return table(*(quoted(book, each) for book, each in zip(FIVE, teams, strict=False)))


def live(odds: pl.DataFrame, **words: Any) -> Engine:
    engine = Engine(**words)
    engine.step(odds, MOMENT)
    return engine


def rejected_live(engine: Engine) -> set[tuple[str, str]]:
    """Book and guard of what is rejected on a live board."""
    found = oe.rejected(engine.table(), guards=engine.guards, now=engine.now)
    here = {(book, guard) for book, guard in found.select("sportsbook", "guard").iter_rows()}
    assert engine.rejected_counts() == dict(found.group_by("guard").len().iter_rows())
    return here


def kept_and_not(odds: pl.DataFrame) -> tuple[set[str], set[str]]:
    """Books whose rows are used, and books with a row that is rejected as of another game: in a table, and live."""
    out = {odds["sportsbook"][at] for at, guard in aside(odds).items() if guard == "other_game"}
    assert out == {book for book, guard in rejected_live(live(odds)) if guard == "other_game"}
    return set(odds["sportsbook"]) - out, out


# -- the phantom -------------------------------------------------------------------------------------


def phantom() -> pl.DataFrame:
    """Two books quote a game; a third has another one under its id."""
    return table(
        moneyline("pinnacle", *EVEN, **GAME), moneyline("draftkings", *EVEN, **GAME),
        moneyline("caesars", *SHIFTED, **OTHER),
    )  # fmt: skip


def test_another_game_makes_no_arbitrage() -> None:
    odds = phantom()
    assert ask(find_arbitrage, odds, guards=[])
    assert ask(find_arbitrage, odds, guards={"other_game": False})
    with whatever_is_found():
        found = find_all(odds, now=MOMENT)
        assert not ask(find_arbitrage, odds, guards=["other_game"])
    assert [found.ev.height, found.arbitrage.height, found.middles.height, found.low_hold.height] == [0, 0, 0, 0]
    assert aside(odds) == {4: "other_game", 5: "other_game"}
    assert reason(odds, 4) == "other books name another game for this event"


def test_another_game_makes_no_arbitrage_on_a_live_board() -> None:
    odds = phantom()
    careless, careful = Engine(guards={"other_game": False}), Engine()
    views = [engine.view(keep=True) for engine in (careless, careful)]
    for engine in (careless, careful):
        engine.step(odds, MOMENT)
    assert [view.opportunities().arbitrage.height for view in views] == [1, 0]
    assert careful.rejected_counts() == {"other_game": 2}
    assert careless.rejected_counts() == {}


@pytest.mark.parametrize("find", [find_ev, find_arbitrage, find_low_hold, find_middles])
def test_no_finder_combines_two_games(find: Any) -> None:
    def book(name: str, line: float, prices: tuple[float, float], teams: dict[str, Any]) -> Rows:
        return [*moneyline(name, *prices, **teams), *total(name, line, 1.95, 1.87, **teams)]

    right = [book(name, 220.5, EVEN, GAME) for name in ("pinnacle", "draftkings")]
    odds = table(*right, book("caesars", 223.5, SHIFTED, OTHER), book("betmgm", 223.5, (1.95, 1.96), OTHER))
    assert ask(find, odds, guards=[], **(dict(max_hold=5) if find is find_low_hold else {}))
    with whatever_is_found():
        assert not ask(find, odds)
    third = book("fanduel", 220.5, EVEN, GAME)
    with whatever_is_found():
        assert not ask(find, table(*right, third, *(book(n, 223.5, SHIFTED, OTHER) for n in ("caesars", "betmgm"))))


# -- which rows are of another game --------------------------------------------------------------------


@pytest.mark.parametrize(("teams", "out"), [
    ((GAME, GAME, OTHER), {"fanduel"}),
    ((OTHER, GAME, GAME), {"pinnacle"}),
    # One team of another game is enough: games of the same evening.
    ((GAME, GAME, named(LAKERS, BULLS)), {"fanduel"}),
    ((GAME, GAME, named(BULLS, CELTICS)), {"fanduel"}),
    # Home and away the other way round are the same game, and so are a team's other names.
    ((GAME, named(CELTICS, LAKERS)), set()),
    ((GAME, named("LAL", "BOS")), set()),
    ((GAME, named("Celtics", "LA Lakers"), named("LA Lakers", "BOS Celtics", league=None)), set()),
    # Names that the catalog does not know are no finding, whatever they are.
    ((GAME, named("L.A. Lakres", "Bostn Celtics")), set()),
    ((GAME, named("LAL Basketball Club", CELTICS)), set()),
    ((GAME, named(LAKERS, None)), set()),
    ((GAME, named(None, None)), set()),
    ((GAME, named("Zork Giants", "Frobozz Wizards")), set()),
    # A known team that is neither of the two is one, beside a misspelt one too.
    ((GAME, GAME, named(BULLS, "NY Knikcs")), {"fanduel"}),
    ((named(LAKERS, "Celtcs"), named(LAKERS, "Bostn"), OTHER), {"fanduel"}),
    # Nothing says which of two misspelt teams another book means.
    ((named(LAKERS, "Celtcs"), named(BULLS, "NY Knikcs")), set()),
    # Equally many: nothing says who is right, and none of them is used.
    ((GAME, OTHER), {"pinnacle", "draftkings"}),
    ((GAME, OTHER, GAME, OTHER), {"pinnacle", "draftkings", "fanduel", "caesars"}),
    ((GAME, OTHER, named("Who", "Knows")), {"pinnacle", "draftkings"}),
    # More than half of the books, not just more than each of the others.
    ((GAME, GAME, OTHER, named("Miami Heat", "Utah Jazz"), named("Miami Heat", BULLS)), set(FIVE)),
    ((GAME, GAME, GAME, OTHER, named("Miami Heat", "Utah Jazz")), {"caesars", "betmgm"}),
])  # fmt: skip
def test_which_rows_are_of_another_game(teams: Sequence[dict[str, Any]], out: set[str]) -> None:
    assert kept_and_not(game_of(*teams))[1] == out


@pytest.mark.parametrize(("sport", "league", "one", "other"), [
    ("tennis", "atp", ("R. Nadal", "N. Djokovic"), ("Rafael Nadal", "Novak Djokovic")),
    ("tennis", "atp", ("Nadal", "Djokovic"), ("Alcaraz", "Sinner")),
    ("basketball", "ncaab", ("Louisville", "Kentucky"), ("Louisville Cardinals", "Kentucky Wildcats")),
    ("football", "ncaaf", ("Arizona", "Utah"), ("Arizona Wildcats", "Utah Utes")),
    # Nicknames and codes that are other leagues' teams.
    ("basketball", "ncaab", ("Grizzlies", "Hornets"), ("MONT", "SAC")),
    ("football", "ncaaf", ("Cardinals", "Panthers"), ("LOU", "PIT")),
    # A city may have another team.
    ("football", "nfl", ("Los Angeles Chargers", "Denver Broncos"), ("LA", "Denver")),
    ("soccer", "brazil_serie_a", ("Atletico-MG", "Botafogo"), ("Atlético Mineiro", "Botafogo RJ")),
])  # fmt: skip
def test_names_of_no_team_of_the_catalog(sport: str, league: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    teams = [named(*each, sport=sport, league=league) for each in (one, other)]
    assert kept_and_not(game_of(*teams))[1] == set()


def test_cities_under_the_label_of_another_league() -> None:
    wnba = dict(sport="basketball", league="wnba")
    right = named("Indiana Fever", "Minnesota Lynx", **wnba)
    assert kept_and_not(game_of(right, named("Indiana", "Minnesota", **wnba | dict(league="nba"))))[1] == set()


def test_a_game_of_another_sport() -> None:
    hockey = named("Boston Bruins", "New York Rangers", sport="hockey", league="nhl")
    assert kept_and_not(game_of(GAME, GAME, hockey))[1] == {"fanduel"}
    # Without a league as well, where the sport says which team is meant.
    assert kept_and_not(game_of(GAME, GAME, hockey | dict(league=None)))[1] == {"fanduel"}
    # A label alone is no finding: books label the sport in their own ways.
    assert kept_and_not(game_of(GAME, GAME, GAME | dict(sport="hockey", league="nhl")))[1] == set()
    assert kept_and_not(game_of(GAME, GAME, GAME | dict(league="wnba")))[1] == set()


def test_books_of_one_provider_have_one_vote() -> None:
    def board(*books: str) -> set[str]:
        odds = table(*(quoted(book, GAME) for book in books), quoted("pinnacle", OTHER))
        return kept_and_not(odds)[1]

    assert board("unibet", "betrivers") == {"unibet", "betrivers", "pinnacle"}
    assert board("unibet", "betrivers", "fanduel") == {"pinnacle"}


def test_the_vote_of_a_book_with_two_games_is_for_the_one_of_most_rows() -> None:
    both = [*quoted("fanduel", GAME), *total("fanduel", 220.5, 1.9, 1.9, **OTHER)[:1]]
    assert aside(table(both)) == {2: "other_game"}
    assert aside(table(both, quoted("pinnacle", OTHER))) == dict.fromkeys(range(5), "other_game")
    assert aside(table(both, quoted("pinnacle", GAME))) == {2: "other_game"}


def test_the_row_itself_says_more_about_its_price() -> None:
    """A suspended price or two that differ come first; a market that is only not compared does not."""

    def odd(market: str = "moneyline", selection: str = BULLS, **fields: Any) -> Row:
        return row("fanduel", market, selection, 1.9, **OTHER, **fields)

    right = [quoted(book, GAME) for book in FIVE[:2]]
    odds = table(
        *right, odd(selection=KNICKS, is_active=False), odd(odds_american=150.0), odd(selection="Nobody"), odd("zork"),
        odd(line=7.5),
    )  # fmt: skip
    assert list(aside(odds).values()) == ["suspended", "price_mismatch", *["other_game"] * 3]
    engine = live(odds)
    assert rejected_live(engine) == {("fanduel", why) for why in ("suspended", "price_mismatch", "other_game")}


def test_another_games_draw_makes_no_market_three_way() -> None:
    soccer = dict(sport="soccer", league="england_premier_league")
    right = named(LAKERS, CELTICS)
    foreign = moneyline("fanduel", 2.5, 2.9, 3.2, **named("Arsenal", "Chelsea", **soccer))
    odds = table(
        moneyline("pinnacle", *EVEN, **right), moneyline("draftkings", *EVEN, **right),
        moneyline("fanduel", *SHIFTED, **right), foreign,
    )  # fmt: skip
    assert aside(odds) == dict.fromkeys((6, 7, 8), "other_game")
    assert [leg["sportsbook"] for leg in ask(find_arbitrage, odds)[0]["legs"]] == ["draftkings", "fanduel"]


def test_many_rows_of_another_game_decide_nothing_about_the_event() -> None:
    """Neither which team is at home nor the sport."""
    swapped = [
        row("caesars", "moneyline", side.title(), odds, selection_type=side, **named(CELTICS, LAKERS))
        for side, odds in (("home", EVEN[1]), ("away", EVEN[0]))
    ]
    many = [
        each
        for line in range(20)
        for each in total("betmgm", 5.5 + line, 1.9, 1.9, "total_goals",
                          **named("Boston Bruins", "New York Rangers", sport="hockey", league="nhl"))
    ]  # fmt: skip
    odds = table(quoted("pinnacle", GAME), quoted("draftkings", GAME), swapped, many)
    assert set(aside(odds)) == set(range(6, 46))
    engine = live(odds)
    assert [(game.sport, game.home, game.away) for game in BoardStats(engine, None).games] == [
        ("basketball", LAKERS, CELTICS)
    ]
    for found in (odds, engine.table()):
        ((sport, league),) = oe.prepare(found, now=MOMENT).identity.sports
        assert (sport.id, league) == ("basketball", "nba")
        # One market of three books, of which one names the teams the other way round.
        assert oe.markets(found, now=MOMENT)["books"].to_list() == [["caesars", "draftkings", "pinnacle"]]


# -- on a live board: names come, change and go ---------------------------------------------------------


def test_who_is_right_follows_the_books_on_the_board() -> None:
    engine = Engine()
    view = engine.view(keep=True)

    def step(*rows: Rows, seconds: int, **words: Any) -> set[str]:
        engine.step([each for some in rows for each in some], MOMENT + timedelta(seconds=seconds), **words)
        assert not view.opportunities().arbitrage.height
        return {book for book, guard in rejected_live(engine) if guard == "other_game"}

    assert step(quoted("pinnacle", GAME), seconds=0) == set()
    assert step(quoted("caesars", OTHER, SHIFTED), seconds=1) == {"pinnacle", "caesars"}
    assert step(quoted("fanduel", GAME), seconds=2) == {"caesars"}
    assert step(quoted("betmgm", OTHER, SHIFTED), seconds=3) == {"pinnacle", "fanduel", "caesars", "betmgm"}
    assert step(quoted("betrivers", OTHER, SHIFTED), seconds=4) == {"pinnacle", "fanduel"}
    # A book that corrects its names, by a complete snapshot of the event.
    right = quoted("caesars", GAME)
    assert step(right, seconds=5, complete=[("caesars", "e")]) == {"betmgm", "betrivers"}
    gone = [("betmgm", "e"), ("betrivers", "e")]
    assert step(seconds=6, complete=gone) == set()
    assert engine.rejected_counts() == {}


@pytest.mark.parametrize(
    "inside",
    [Games.add, Games.decide, Names._append, Names._separate, Names.settle, Terms.separate, Votes.decide],
    ids=lambda inside: inside.__qualname__,
)
def test_a_step_that_is_interrupted_leaves_no_other_game(inside: Any) -> None:
    """Wherever it is: three more books turn the majority round."""
    first = [*quoted("pinnacle", GAME), *quoted("caesars", OTHER, SHIFTED), *quoted("fanduel", OTHER, SHIFTED)]
    second: dict[str, Any] = {
        "quotes": [
            *(row for book in ("betmgm", "bet365", "novig") for row in quoted(book, GAME)),
            *quoted("circa", named("Miami Heat", "Utah Jazz")),
        ],
        "now": MOMENT + timedelta(seconds=1),
    }

    def run(at: int = 0) -> tuple[Engine, bool]:
        engine = Engine()
        engine.step(first, MOMENT)
        before = engine.rejected_counts()
        stopped = bool(at) and interrupted(engine, at, inside, **second)
        if engine.number == 1:
            assert engine.rejected_counts() == before == {"other_game": 2}
            engine.step(**second)
        return engine, stopped

    whole, stopped = run()
    at = 0
    while at == 0 or stopped:
        at += 1
        engine, stopped = run(at)
        assert engine.rejected_counts() == whole.rejected_counts() == {"other_game": 6}, at
        assert engine.state_hash() == whole.state_hash(), at
    assert at > 2


# -- the rule against its twin ----------------------------------------------------------------------------

TEAMS = "abcd"
GAMES = st.frozensets(st.sampled_from(TEAMS), max_size=2)
VOTES = st.lists(st.dictionaries(GAMES, st.integers(1, 3), max_size=4), max_size=6)


@given(VOTES)
def test_the_rule(votes: list[dict[frozenset[str], int]]) -> None:
    out = other_games(votes)
    assert out == twin(votes)
    used = {each for named_ in votes for each in named_} - out
    assert all(len(one | other) <= 2 for one in used for other in used)


@given(VOTES, st.permutations(TEAMS), st.randoms())
def test_the_rule_knows_no_names_and_no_order(
    votes: list[dict[frozenset[str], int]], names: Sequence[str], rng: Any
) -> None:
    again = dict(zip(TEAMS, names, strict=True))

    def renamed(one: Iterable[str]) -> frozenset[str]:
        return frozenset(again[team] for team in one)

    other = [{renamed(each): rows for each, rows in named_.items()} for named_ in votes]
    rng.shuffle(other)
    assert other_games(other) == {renamed(each) for each in other_games(votes)}


def test_an_id_that_stands_for_everything() -> None:
    """A table in which a constant stands for the event: however many rows have it, none is used, at once."""
    clubs = [each.id for each in catalog.teams()]
    votes = [{frozenset((a, b)): 1 for a in clubs for b in clubs if a < b} | {frozenset(): 9}]
    assert other_games(votes) == set(votes[0]) - {frozenset()}
