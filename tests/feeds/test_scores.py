"""How games stand over several sources: worked examples, a slow twin, and the laws of the merge."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import scores as naive_games

from oddsengine.feeds.merged_scores import (
    ARRIVAL,
    ENDED_S,
    LATE_S,
    RECENT_S,
    SECOND,
    SILENT_S,
    STALE_S,
    Score,
    Scoreboard,
    ScoreReading,
    State,
    consensus,
    merge,
    progress,
    recent,
)

PERIODS = ("", "Q1", "Q2", "HT", "Q4", "OT")
SOURCES = ("a", "b", "c", "d", "e")


def read(source: str, seen: float, score: Score | None = (0, 0), event: str = "e", **more: Any) -> ScoreReading:
    home, away = score or (None, None)
    return ScoreReading(event, source, round(seen * SECOND), home, away, sport="soccer", **more)


def score_of(state: State) -> Score | None:
    return None if state.home is None or state.away is None else (state.home, state.away)


# ---- worked examples ----


def test_a_source_that_is_stuck_holds_nothing_back() -> None:
    board = Scoreboard()
    board.step([read(source, 0) for source in "abc"], 0)
    for second in range(1, 20):
        state = board.step([read("a", second, (1, 0)), read("b", second, (1, 0)), read("c", second)], second * SECOND)
        assert not state.changed or score_of(state.changed["e"]) == (1, 0)
    assert score_of(board.states["e"]) == (1, 0)


def test_of_two_the_newer_is_believed_and_the_slower_takes_nothing_away() -> None:
    board = Scoreboard()
    board.step([read("quick", 0), read("slow", 0)], 0)
    board.step([read("quick", 5, (1, 0))], 5 * SECOND)
    assert score_of(board.states["e"]) == (1, 0)
    board.step([read("slow", 6)], 6 * SECOND)
    assert score_of(board.states["e"]) == (1, 0)


def test_a_goal_that_is_taken_back() -> None:
    board = Scoreboard()
    board.step([read(source, 0, (1, 0)) for source in "abc"], 0)
    board.step([read("a", LATE_S)], LATE_S * SECOND)
    assert score_of(board.states["e"]) == (1, 0)  # one of three
    board.step([read("b", LATE_S + 2)], (LATE_S + 2) * SECOND)
    assert score_of(board.states["e"]) == (0, 0)  # two of three
    board.step([read("c", LATE_S + 3, (1, 0))], (LATE_S + 3) * SECOND)
    assert score_of(board.states["e"]) == (0, 0)  # who comes late does not bring it back


def test_what_has_just_come_is_not_taken_back_by_those_that_are_slow() -> None:
    board = Scoreboard()
    board.step([read(source, 0) for source in "abc"], 0)
    board.step([read("a", RECENT_S, (2, 0))], RECENT_S * SECOND)  # nobody else was heard lately
    for second in range(RECENT_S + 1, RECENT_S + LATE_S):
        board.step([read(source, second, (1, 0)) for source in "bc"], second * SECOND)
        assert score_of(board.states["e"]) == (2, 0)
    board.step([read("b", RECENT_S + LATE_S, (1, 0))], (RECENT_S + LATE_S) * SECOND)
    assert score_of(board.states["e"]) == (1, 0)  # by now they would have said so


def test_one_of_two_does_not_take_a_goal_back_while_the_other_is_heard() -> None:
    board = Scoreboard()
    board.step([read("a", 0, (1, 0)), read("b", 0, (1, 0))], 0)
    for second in range(1, RECENT_S):
        board.step([read("a", second)], second * SECOND)
        assert score_of(board.states["e"]) == (1, 0)
    board.step([read("a", RECENT_S)], RECENT_S * SECOND)  # b was last heard too long ago
    assert score_of(board.states["e"]) == (0, 0)


def test_a_wrong_score_alone_is_outvoted() -> None:
    held = [read("a", 10, (71, 68)), read("b", 10, (71, 68)), read("c", 10, (17, 86))]
    assert consensus(held, (71, 68)) == (71, 68)
    assert consensus([*held[:1], *held[2:]], (71, 68)) == (71, 68)


def test_the_clock_is_the_one_that_is_farthest_on() -> None:
    held = [
        read("a", 10, period="Q3", clock="4:10")._replace(sport="basketball"),
        read("b", 9, period="Q3", clock="3:58")._replace(sport="basketball"),
        read("c", 10, period="Q2", clock="0:02")._replace(sport="basketball"),
        read("d", 10)._replace(sport="basketball"),
    ]
    state = merge(held)
    assert (state.period, state.clock, state.primary, state.sources) == ("Q3", "3:58", "b", 4)
    assert merge([one._replace(sport="soccer", period="2H") for one in held]).primary == "a"  # there it counts up


def test_the_end_is_believed_when_half_say_so() -> None:
    held = [read("a", 10, (2, 1), over=True), read("b", 9, (2, 1), period="2H", clock="93:00"), read("c", 9, (2, 1))]
    assert merge(held).period == "2H"
    both = merge([held[0], held[1]._replace(over=True), held[2]])
    assert (both.period, both.clock, both.over, both.primary) == ("FT", "", True, "a")
    assert merge(held[:2]).over


def test_time_makes_a_state_stale_and_takes_games_away() -> None:
    board = Scoreboard()
    first = [read("a", 0), read("a", 0, event="ended", period="2H"), read("a", 0, event="never", over=True)]
    assert set(board.step(first, 0).changed) == {"e", "ended"}
    assert board.step([], STALE_S * SECOND - 1).changed == {}
    assert board.step([], STALE_S * SECOND).changed["e"].stale
    assert board.step([read("a", 61)], 61 * SECOND).changed["e"].stale is False
    assert board.step([read("a", 62, event="ended", over=True)], 62 * SECOND).changed["ended"].over
    assert board.step([], (62 + ENDED_S) * SECOND - 1).removed == ()
    assert not board.states["ended"].stale
    assert board.step([], (62 + ENDED_S) * SECOND).removed == ("ended",)
    stuck = board.step([read("b", 700, event="ended")], 700 * SECOND)
    assert (stuck.changed, stuck.removed) == ({}, ())
    assert board.step([], (61 + SILENT_S) * SECOND).removed == ("e",)
    assert board.states == {}
    again = (700 + SILENT_S) * SECOND
    board.step([], again)
    assert set(board.step([read("a", ARRIVAL / SECOND, event="ended")], again).changed) == {"ended"}


def test_what_was_said_of_another_game_is_forgotten() -> None:
    board = Scoreboard()
    board.step([read("a", 0, (3, 0)), read("b", 0), read("a", 0, event="only")], 0)
    assert score_of(board.states["e"]) == (3, 0)
    board.drop("a", "e")
    board.drop("a", "only")
    board.drop("a", "no such game")
    change = board.step([], SECOND)
    assert (score_of(change.changed["e"]), change.removed) == ((0, 0), ("only",))
    for second in (2, 3):
        said = [read(source, second, (2 if source in "ac" else 1, 0), event="f") for source in "abcd"]
        assert score_of(board.step(said, second * SECOND).changed.get("f", board.states["f"])) == (2, 0)
    board.drop("a", "f")
    assert score_of(board.step([], 3 * SECOND).changed["f"]) == (1, 0)  # as if it had never been said


def test_the_future_was_seen_now() -> None:
    board = Scoreboard()
    board.step([read("a", 50, (9, 9)), read("b", 0)], 10 * SECOND)
    assert board.states["e"].seen == 10 * SECOND
    board.step([], 5 * SECOND)  # time does not go back
    assert board.now == 10 * SECOND


ORDERS = {
    "basketball": [("", ""), ("Q1", "12:00"), ("Q1", "0:45.0"), ("Q1", "9.9"), ("Q2", "11:00"), ("HT", ""),
                   ("Q3", ""), ("Q4", "00:01"), ("OT", "4:00"), ("OT2", "4:00"), ("FT", "")],
    "soccer": [("1H", "9"), ("1H", "45"), ("1H", "45+2"), ("1H", "45+2:30"), ("HT", ""), ("2H", "45:01"), ("2H", "90'"),
               ("ET1", "91"), ("PEN", ""), ("FT", "")],
    "hockey": [("P1", "20:00"), ("P1", "3:12"), ("P3", "20:00"), ("OT", "5:00"), ("SO", ""), ("FT", "")],
    "baseball": [("T1", ""), ("B1", ""), ("T9", ""), ("B9", ""), ("T12", ""), ("FT", "")],
    "tennis": [("S1", ""), ("S2", ""), ("s5", ""), ("FT", "")],
}  # fmt: skip


@pytest.mark.parametrize("sport", ORDERS)
def test_how_far_a_game_is(sport: str) -> None:
    places = [progress(sport, *shown) for shown in ORDERS[sport] if shown != ("Q1", "0:45.0")]
    assert places == sorted(set(places))


@given(st.text(max_size=12), st.text(max_size=12))
def test_what_nobody_knows_is_no_progress(period: str, clock: str) -> None:
    assert progress("soccer", "", "") <= progress("soccer", period, clock)


# ---- laws ----

scores = st.tuples(st.integers(0, 3), st.integers(0, 2))


@st.composite
def readings(draw: st.DrawFn, most: int = 14, span: int = 50) -> list[ScoreReading]:
    made = []
    for _ in range(draw(st.integers(1, most))):
        made.append(
            read(
                draw(st.sampled_from(SOURCES)), draw(st.integers(0, span)), draw(st.one_of(st.none(), scores)),
                period=draw(st.sampled_from(PERIODS)), over=draw(st.booleans()),
            )
        )  # fmt: skip
    return made


@st.composite
def moments(draw: st.DrawFn) -> list[ScoreReading]:
    """One reading of each of some sources."""
    made = draw(readings())
    return list({reading.source: reading for reading in made}.values())


def play(batches: list[list[ScoreReading]]) -> State | None:
    board, now = Scoreboard(), 0
    for batch in batches:
        now = max([now, *(reading.seen for reading in batch)])
        board.step(batch, now)
    game = board._games.get("e")
    return game.state if game is not None else None


def cut(made: list[ScoreReading], draw: random.Random) -> list[list[ScoreReading]]:
    """Readings in order of time, in any batches, in any order within one time."""
    ordered = sorted(made, key=lambda reading: (reading.seen, draw.random()))
    places = sorted(draw.randint(0, len(ordered)) for _ in range(3))
    return [ordered[a:b] for a, b in zip([0, *places], [*places, len(ordered)], strict=True)]


def told(reading: ScoreReading) -> naive_games.Said:
    far = progress(reading.sport, reading.period, reading.clock)
    return naive_games.Said(reading.source, reading.seen, reading.score, far, reading.period, reading.over)


@given(readings(), st.randoms(use_true_random=False))
def test_twin(made: list[ScoreReading], draw: random.Random) -> None:
    state = play(cut(made, draw))
    assert state is not None
    slow = naive_games.stands([told(reading) for reading in made], RECENT_S, LATE_S)
    found = naive_games.Stands(score_of(state), state.period, state.over, state.primary, state.sources)
    assert found == slow


@given(readings(), st.randoms(use_true_random=False))
def test_order_within_a_time_and_batches_do_not_matter(made: list[ScoreReading], draw: random.Random) -> None:
    assert play(cut(made, draw)) == play(cut(made, draw))


@given(readings(), st.randoms(use_true_random=False))
def test_the_same_again_changes_nothing(made: list[ScoreReading], draw: random.Random) -> None:
    board = Scoreboard()
    now = max(reading.seen for reading in made)
    for batch in cut(made, draw):
        board.step(batch, now)
    before = board.states
    last = {reading.source: reading for reading in sorted(made, key=lambda reading: reading.seen)}
    change = board.step([reading for reading in last.values() if made.count(reading) > 0], now)
    if len({(reading.source, reading.seen) for reading in made}) == len(made):
        assert (change.changed, change.removed) == ({}, ())
        assert board.states == before


@given(readings(), st.integers(1, 10_000))
def test_the_hour_does_not_matter(made: list[ScoreReading], later: int) -> None:
    moved = [reading._replace(seen=reading.seen + later * SECOND) for reading in made]
    first, second = play([made]), play([moved])
    assert first is not None
    assert second is not None
    assert first == second._replace(seen=first.seen, changed=first.changed)


@given(moments(), st.one_of(st.none(), scores), st.one_of(st.none(), st.integers(0, 50)))
def test_a_score_is_somebodys_and_falls_only_where_most_agree(
    held: list[ScoreReading], before: Score | None, since: int | None
) -> None:
    voters = [reading.score for reading in recent(held) if reading.score is not None]
    came = None if since is None else since * SECOND
    found = consensus(recent(held), before, came)
    assert found in voters or (not voters and found == before)
    if before is not None and found is not None and (found[0] < before[0] or found[1] < before[1]):
        standing = [score for score in voters if score[0] >= before[0] and score[1] >= before[1]]
        long = came is None or max(reading.seen for reading in held) - came >= LATE_S * SECOND
        assert (2 * voters.count(found) > len(voters) and long) or not standing


@given(moments(), scores, st.one_of(st.none(), scores))
def test_where_all_agree_there_is_no_doubt(held: list[ScoreReading], score: Score, before: Score | None) -> None:
    agreed = [reading._replace(home=score[0], away=score[1]) for reading in held]
    assert consensus(recent(agreed), before) == score


@given(st.lists(scores, min_size=1, max_size=12), st.integers(1, 5), st.randoms(use_true_random=False))
def test_of_scores_that_only_rise_the_merged_one_only_rises(
    steps: list[Score], boards: int, draw: random.Random
) -> None:
    """Sources tell one true game, each some seconds late; its pace included, less than `LATE_S`."""
    truth = [(sum(h for h, _ in steps[:n]), sum(a for _, a in steps[:n])) for n in range(len(steps) + 1)]
    lags = [draw.randint(0, 14) for _ in range(boards)]
    paces = [draw.randint(1, LATE_S - 1 - lag) for lag in lags]
    board, shown = Scoreboard(), (0, 0)
    for second in range(6 * len(truth)):
        made = [
            read(SOURCES[at], second, truth[max(0, second - lag) // 6])
            for at, lag in enumerate(lags)
            if (second + at) % paces[at] == 0
        ]
        board.step(made, second * SECOND)
        found = score_of(board.states["e"]) if "e" in board.states else (0, 0)
        assert found is not None
        assert found[0] >= shown[0]
        assert found[1] >= shown[1]
        assert found in truth
        shown = found


@given(moments())
def test_the_clock_is_never_behind_a_source_that_counts(held: list[ScoreReading]) -> None:
    state = merge(held)
    if not state.over:
        places = [progress(r.sport, r.period, r.clock) for r in recent(held) if not r.over]
        assert progress("soccer", state.period, state.clock) == max(places)


@given(moments(), st.sampled_from(SOURCES))
def test_a_source_that_was_not_heard_for_long_has_no_voice(held: list[ScoreReading], silent: str) -> None:
    newest = max(reading.seen for reading in held)
    others = [reading for reading in held if reading.source != silent]
    if not others or max(reading.seen for reading in others) < newest:
        return
    for score in ((0, 0), (9, 9)):
        old = read(silent, newest / SECOND - RECENT_S, score, period="OT", over=True)
        assert merge([*others, old], (1, 1)) == merge(others, (1, 1))
