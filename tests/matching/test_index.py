"""The index of names and games finds what comparing with all of them finds, and its work is nearly linear."""

import csv
import random
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import less, some

from oddsengine import catalog
from oddsengine.feeds.payload import Game
from oddsengine.matching import Match, Matcher, known_games, parse_overrides
from oddsengine.matching.doubleheaders import WINDOW, first_gap
from oddsengine.matching.known_games import LeagueNames, fit
from oddsengine.matching.matcher import DOUBT, MOST_OF_SOURCE
from oddsengine.matching.name_likeness import likeness

START = datetime(2026, 2, 8, 18, 0, tzinfo=UTC)
PAIRS = Path(__file__).parent / "pairs.csv"
LEAGUES = [
    ("soccer", "x"), ("soccer", "england_premier_league"), ("basketball", "nba"), ("basketball", "ncaab"),
    ("baseball", "mlb"), ("icehockey", "khl"), ("tennis", "atp"), ("esports", "cs2"),
]  # fmt: skip

# Names


def names_of_leagues() -> dict[tuple[str, str], list[str]]:
    """Names of the pairs and of the catalog's teams by sport and league."""
    leagues: dict[tuple[str, str], set[str]] = defaultdict(set)
    with PAIRS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            leagues[row["sport"], row["league"]] |= {row[column] for column in ("home", "away", "home2", "away2")}
    for team in catalog.teams():
        leagues[team.sport, team.league] |= {team.name, *team.aliases, *team.in_league}
    return {league: sorted(names) for league, names in leagues.items()}


def check(sport: str, league: str, names: list[str]) -> None:
    index = LeagueNames((sport, league))
    for at, name in enumerate(names):
        index.add(name, ("ab"[at % 2], str(at)))
    for name in dict.fromkeys(names):
        expected = {other for other in names if other == name or likeness(sport, league, name, other)}
        assert set(index.alike[name]) == expected, name
    sources = [source.postings for source in index._sources.values()]
    for at, name in enumerate(names):
        index.discard(name, ("ab"[at % 2], str(at)))
    assert not index
    assert not index.alike
    assert not index._added
    assert not index._sources
    assert not any(postings._every or postings._rarest for postings in sources)


def test_names_of_real_leagues_are_alike_as_compared_one_by_one() -> None:
    for (sport, league), names in names_of_leagues().items():
        shuffled = random.Random(len(names)).sample(names, len(names))
        check(sport, league, shuffled[: less(400, 60)])


TEXT = (
    "real madrid sporting kansas city kc mg magnitogorsk metallurg st saint man manchester u21 women ii fc sc 17 23 "
    "wolverhampton wolverhamptan wolvs wolves alexander alex zverev zverew a m jj jr / , united utd arsenal arsenle "
    "queens park rangers qpr new york los angeles la lakers 1860 h96 hannover schalke schalke04 (w) ny nyc"
)
WORDS = st.sampled_from(TEXT.split())


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A word with up to two letters changed, added or left out."""
    word = draw(
        st.sampled_from(("southampton", "wolverhampton", "arsenal", "chelse", "galatasaray", "zverev", "abcde"))
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(word)))
        word = word[:at] + draw(st.sampled_from(("", "x", "a"))) + word[at + draw(st.integers(0, 1)) :]
    return word


NAMES = st.lists(WORDS | misspelt(), min_size=1, max_size=4).map(" ".join)


@given(st.lists(NAMES, max_size=12), st.sampled_from(LEAGUES))
def test_generated_names_are_alike_as_compared_one_by_one(names: list[str], league: tuple[str, str]) -> None:
    check(*league, names)


# Games


@st.composite
def schedules(draw: st.DrawFn) -> list[tuple[str, Game]]:
    sport, league = draw(st.sampled_from(LEAGUES))
    teams = draw(st.lists(st.lists(WORDS, min_size=1, max_size=2).map(" ".join), min_size=2, max_size=5))
    entries = st.tuples(
        st.sampled_from("abc"), st.integers(0, 9), st.sampled_from(teams), st.sampled_from(teams),
        st.sampled_from((0, 5, 300, 720, 721, 1500)),
    )  # fmt: skip
    return [
        (source, Game(str(id_), sport, league, home, away, START + timedelta(minutes=minutes)))
        for source, id_, home, away, minutes in draw(st.lists(entries, max_size=14))
    ]


@given(schedules())
def test_games_around_are_those_that_fit_and_are_near(games: list[tuple[str, Game]]) -> None:
    matcher = Matcher()
    for source, game in games:
        matcher.match(source, game)
    index = matcher._index
    leaders = [entry for entry in index.entries.values() if entry.leader is None]
    for one in leaders:
        expected = {
            other.key: score
            for other in leaders
            if other is not one and other.league == one.league and first_gap(one.dated, other.dated) <= WINDOW
            if (score := fit(one.league, other.spelling, one.spelling)[0]) >= DOUBT
        }
        assert {other.key: score for score, other in index.around(one, DOUBT)} == expected
    for entry in index.entries.values():
        if entry.leader is not None:
            assert entry.leader.followers[entry.key] is entry
            assert (entry.spelling, entry.start, entry.first) == (
                entry.leader.spelling, entry.leader.start, entry.leader.first,
            )  # fmt: skip


# Games that differ in their ids only


def arsenal(id_: str, minutes: float = 0) -> Game:
    return Game(id_, "soccer", "x", "Arsenal", "Chelsea", START + timedelta(minutes=minutes))


def test_one_game_under_many_ids_is_one_game_and_each_id_may_leave() -> None:
    matcher = Matcher()
    ids = [str(at) for at in range(5)]
    events = {matcher.match("a", arsenal(id_)).event_id for id_ in ids}
    assert events == {"x_chelsea_arsenal_2026-02-08"}
    assert [matcher.match("a", arsenal(id_)).new for id_ in ids] == [True, False, False, False, False]
    assert matcher.match("b", arsenal("b")).event_id in events
    # The first becomes another game: the others stay.
    assert matcher.match("a", Game("0", "soccer", "x", "Everton", "Fulham", START)).event_id not in events
    assert {matcher.match("a", arsenal(id_)).event_id for id_ in ids[1:]} == events
    assert [(source, game.id) for source, game, _ in matcher.games(events.pop() or "")] == [
        ("a", "1"), ("a", "2"), ("a", "3"), ("a", "4"), ("b", "b"),
    ]  # fmt: skip
    # Another moves by days: it is a meeting of its own.
    assert matcher.match("a", arsenal("3", 3 * 1440)).event_id not in {matcher.match("a", arsenal("2")).event_id, None}
    assert len({matcher.match("a", arsenal(id_)).event_id for id_ in "124"}) == 1


def test_followers_move_with_their_leader() -> None:
    matcher = Matcher()
    first = matcher.match("a", arsenal("1")).event_id
    for source, id_ in (("b", "2"), ("b", "3")):
        assert matcher.match(source, arsenal(id_, 360)).event_id == first
    second = matcher.match("a", arsenal("2", 355)).event_id
    assert second != first
    assert [(source, id_, match.event_id) for source, id_, match in matcher.changes()] == [
        ("b", "2", second), ("b", "3", second),
    ]  # fmt: skip


def test_an_override_of_one_of_several_ids_is_for_that_one() -> None:
    matcher = Matcher()
    event = matcher.match("a", arsenal("1")).event_id
    assert matcher.match("a", arsenal("2")).event_id == event
    changed = matcher.reload(parse_overrides('[a]\n1 = "never"'))
    assert [(source, id_) for source, id_, _ in changed] == [("a", "1")]
    assert matcher.match("a", arsenal("2")).event_id == event
    assert matcher.reload(parse_overrides("")) != []
    assert matcher.match("a", arsenal("1")).event_id == event


def test_an_id_that_is_no_longer_used_is_forgotten_if_another_stands_for_its_game() -> None:
    matcher = Matcher()
    matcher.match("a", arsenal("1"))
    matcher.match("a", arsenal("2"))
    assert matcher.forget(START) == 0
    matcher.match("a", arsenal("1"))
    assert matcher.forget(START) == 1
    assert matcher.decision("a", "2") is None
    assert matcher.decision("a", "1") is not None


def test_another_matcher_adopts_followers() -> None:
    matcher, other = Matcher(), Matcher()
    games = [("a", arsenal("1")), ("a", arsenal("2")), ("b", arsenal("1", 5))]
    before = [matcher.match(*each) for each in games]
    other.adopt(decision for source, game in games if (decision := matcher.decision(source, game.id)))
    assert [other.match(*each) for each in games] == before


def test_weeks_of_fixtures_of_one_feed_are_one_event_each() -> None:
    """The same teams twice, and with home and away swapped, days apart."""
    matcher = Matcher()
    for source in "ab":
        for week, (home, away) in enumerate((("Arsenal", "Chelsea"), ("Arsenal", "Chelsea"), ("Chelsea", "Arsenal"))):
            minutes = week * 3 * 1440 + (5 if source == "b" else 0)
            start = START + timedelta(minutes=minutes)
            matcher.match(source, Game(f"{week}", "soccer", "x", home, away, start))
    events = [[source + game.id for source, game, _ in matcher.games(event)] for event in matcher.events()]
    assert events == [["a0", "b0"], ["a1", "b1"], ["a2", "b2"]]
    assert not any(match.swapped for event in matcher.events() for _, _, match in matcher.games(event))


# Work and bounds

RANDOM = random.Random(5)
ALONE = ["".join(RANDOM.choice("abcdefghijklmnoprstuvz") for _ in range(8)) for _ in range(4000)]
MANY: dict[str, Callable[[int], tuple[str, str, int]]] = {
    "one word": lambda at: (ALONE[2 * at], ALONE[2 * at + 1], 0),
    "a shared word": lambda at: (f"{ALONE[at]} {ALONE[at % 40]}", f"{ALONE[at + 2000]} {ALONE[(at + 7) % 40]}", 0),
    "numbered": lambda at: (f"Home {at}", f"Away {at}", 0),
    "one game": lambda at: ("Arsenal", "Chelsea", 0),
    "one game, new starts": lambda at: ("Arsenal", "Chelsea", at),
    "one home team": lambda at: ("Arsenal", ALONE[at], 0),
}


@pytest.mark.parametrize("kind", MANY)
def test_the_work_of_a_game_does_not_grow_with_the_games_before(kind: str) -> None:
    matcher, work, most = Matcher(), [], less(1600, 800)
    for at in range(most):
        home, away, seconds = MANY[kind](at)
        matcher.match("a", Game(str(at), "soccer", "x", home, away, START + timedelta(seconds=seconds)))
        work.append(matcher.work)
    half = work[most // 2 - 1]
    assert work[-1] - half < 2.5 * (half or 1)
    assert work[-1] < 60 * most


def test_too_many_games_of_a_source_between_two_teams_wait() -> None:
    matcher = Matcher()
    matches = [matcher.match("a", arsenal(str(at), at / 60)) for at in range(MOST_OF_SOURCE + 3)]
    assert [match.event_id is None for match in matches] == [False] * (MOST_OF_SOURCE) + [True] * 3
    assert matches[-1].reason == "too many games between these teams around this time"


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_a_name_like_too_many_others_of_its_source_joins_only_its_own_spelling() -> None:
    matcher = Matcher()
    names = [f"galatas{one}{two}ay" for one in LETTERS for two in LETTERS][: known_games.MOST_ALIKE + 5]
    for at, name in enumerate(names):
        matcher.match("a", Game(name, "soccer", "x", name, f"Away {at}", START))
    index = matcher._index._names["soccer", "x"]
    assert max(map(len, index.alike.values())) <= 1 + 2 * known_games.MOST_ALIKE
    assert len(index.crowded) >= 4
    last = matcher.match("a", Game(names[-1], "soccer", "x", names[-1], f"Away {len(names) - 1}", START))
    assert matcher.match("b", Game("1", "soccer", "x", names[-1], f"Away {len(names) - 1}", START)) == Match(
        last.event_id, 1.0, "the same names, 0 min apart"
    )
    assert matcher.forget(START + timedelta(days=1)) == len(names) + 1
    assert matcher._index._names == {}


def epl(id_: str, home: str, away: str = "Chelsea", days: int = 0) -> Game:
    return Game(id_, "soccer", "england_premier_league", home, away, START + timedelta(days=days))


@pytest.fixture
def few_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source may have fewer names that are alike: the work grows with their square."""
    monkeypatch.setattr(known_games, "MOST_ALIKE", less(known_games.MOST_ALIKE, 60))


@pytest.mark.usefixtures("few_alike")
@pytest.mark.parametrize("more", some([60, 400], 1))
@pytest.mark.parametrize("first", [True, False])
def test_names_made_up_by_one_source_do_not_keep_games_of_others_apart(more: int, first: bool) -> None:
    matcher = Matcher()
    made_up = [f"Arsenal {one}{two}" for one in LETTERS for two in LETTERS][: known_games.MOST_ALIKE + more]
    good = [("a", epl("1", "Arsenal")), ("b", epl("2", "Arsenal FC")), ("c", epl("3", "Arsenal"))]
    if first:
        matcher.match(*good[0])
    for at, name in enumerate(made_up):
        matcher.match("bad", epl(str(at), name, "Everton", 2 + at % 5))
    events = [matcher.match(source, game).event_id for source, game in good]
    assert events == ["england_premier_league_chelsea_arsenal_2026-02-08"] * 3
    # The source's own game, too: its team is in the catalog.
    assert matcher.match("bad", epl("own", "Arsenal FC")).event_id == events[0]
    assert matcher.match("bad", epl("own", "The Arsenal")).event_id == events[0]


@pytest.mark.usefixtures("few_alike")
def test_a_game_joins_others_when_the_names_that_kept_it_apart_leave() -> None:
    matcher = Matcher()
    made_up = [f"Galatas {one}{two}" for one in LETTERS for two in LETTERS][: known_games.MOST_ALIKE + 60]
    town = matcher.match("bad", Game("town", "soccer", "x", "Galatas Town", "Ionikos", START))
    for at, name in enumerate(made_up):
        matcher.match("bad", Game(str(at), "soccer", "x", name, "Ionikos", START + timedelta(days=2 + at % 3)))
    apart = Game("1", "soccer", "x", "Galatas", "Ionikos", START)
    assert matcher.match("a", apart).event_id not in {town.event_id, None}
    assert matcher._index._names["soccer", "x"].crowded
    for at in range(len(made_up)):
        matcher.drop("bad", str(at))
    assert matcher.match("a", apart).event_id == town.event_id
    assert [(source, id_) for source, id_, _ in matcher.changes()] == [("a", "1")]
    assert not matcher._index._names["soccer", "x"].crowded


def test_a_name_of_thousands_of_characters_waits() -> None:
    match = Matcher().match("a", Game("1", "soccer", "x", "A" * 30_000, "B", START))
    assert (match.event_id, match.reason) == (None, "a name of more than 200 characters")
