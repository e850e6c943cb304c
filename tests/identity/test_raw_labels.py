"""What raw labels mean: `identity`, by columns, against its slow twin, one raw label at a time."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.identity import other_games
from naive.raw_label import LAST_NUMBER, LAST_NUMBERS, Term, game, lead, read, swapped
from naive.raw_label import _said as twin_of_a_selection
from support.boards import boards, frame
from support.effort import less
from support.hazards import Row

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES, NAMES
from oddsengine.feeds.price_files import read_odds
from oddsengine.identity import raw_labels as identity
from oddsengine.identity.raw_labels import RAW_LABEL, parts_of_rows, selection, thresholds
from oddsengine.identity.table_identity import Identity, identify
from oddsengine.identity.traits import MarketKind
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.tables.schema import OddsTable, check_odds

TABLE_SIZE = 300


class Meant(NamedTuple):
    """What a row is, as far as its raw label, its line and the other rows' raw labels say."""

    verdict: str
    swapped: bool
    kind: MarketKind | None = None
    subject: str = ""
    threshold: int = 0
    side: int = -1


def of_table(table: OddsTable) -> list[Meant]:
    """What `identify` says of each row that has a price."""
    known = identify(table, frozenset())
    verdicts = [NAMES[code] for code in known.verdict.tolist()]
    flips = known.swapped.tolist()
    said = [Meant(why, flip) for why, flip in zip(verdicts, flips, strict=False)]
    g = known.groups
    for row, market, side in zip(g.row.tolist(), g.market.tolist(), g.side.tolist(), strict=True):
        ladder = int(g.ladder[market])
        said[row] = said[row]._replace(
            kind=known.kinds[g.kind[ladder]],
            subject=subject_of(known, int(g.subject[ladder])),
            threshold=int(g.threshold[market]),
            side=side,
        )
    return said


def subject_of(known: Identity, code: int) -> str:
    return ("", "home", "away")[code] if code < 3 else str(known.names[code - 3])


def of_twin(table: OddsTable) -> list[Meant]:
    """What the twin says of each row, and what follows from all it says, with the row's own verdicts."""
    rows = [*table.iter_rows(named=True), *table.unpriced.iter_rows(named=True)]
    said = [read(tuple(row[name] for name in RAW_LABEL), row["line"]) for row in rows]
    other = of_other_games(rows, said)
    own: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    every: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for row, term, apart in zip(rows, said, other, strict=True):
        every[row["event_id"]][term.teams] += 1
        own[row["event_id"]][term.teams] += not apart
    leads = {event: lead(+own[event] or counts) for event, counts in every.items()}
    quoted = {
        (vote(row, term), term.side)
        for row, term, apart in zip(rows, said, other, strict=True)
        if term.two_way and not apart
    }
    return [
        meant(row, term, swapped(term.teams, leads[row["event_id"]]), quoted, other=apart)
        for row, term, apart in zip(rows[: table.height], said, other, strict=False)
    ]


def of_other_games(rows: Sequence[Row], said: Sequence[Term]) -> list[bool]:
    """Which rows are of another game than their event."""
    games = [game(tuple(row[name] for name in RAW_LABEL), term.teams) for row, term in zip(rows, said, strict=True)]
    votes: dict[str, dict[str, Counter[frozenset[str]]]] = defaultdict(lambda: defaultdict(Counter))
    for row, named in zip(rows, games, strict=True):
        book = catalog.book(row["sportsbook"])
        votes[row["event_id"]][book.feed or f"={book.id}"][named] += 1
    rejected = {event: other_games(of.values()) for event, of in votes.items()}
    return [named in rejected[row["event_id"]] for row, named in zip(rows, games, strict=True)]


def vote(row: Row, term: Term) -> tuple[object, ...]:
    """What decides together how many ways a moneyline has."""
    return row["event_id"], row["is_live"], catalog.book(row["sportsbook"]).id, term.with_draw


def meant(row: Row, term: Term, flip: bool, quoted: set[tuple[tuple[object, ...], int]], *, other: bool) -> Meant:
    kind, why = term.kind, term.verdict
    side, subject, threshold = term.side, term.subject, term.threshold
    if flip:
        side, subject, threshold = term.side_swapped, term.subject_swapped, term.threshold_swapped
    if term.two_way:
        mine = vote(row, term)
        if (mine, 1) in quoted:
            kind = term.with_draw
        else:
            side //= 2
            if why in (0, CODES["no_line"]) and (term.two_way == 2 or (mine, -1) in quoted):
                why = CODES["ambiguous_moneyline"]
    if other:
        why = CODES["other_game"]
    if row["price_mismatch"]:
        why = CODES["price_mismatch"]
    if not row["is_active"]:
        why = CODES["suspended"]
    return Meant("", flip, kind, subject, threshold, side) if why == 0 else Meant(NAMES[why], flip)


def check(table: OddsTable) -> list[Meant]:
    """Row by row the same; what was said is returned."""
    found, expected = of_table(table), of_twin(table)
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert ours == theirs, table.select("sportsbook", *RAW_LABEL, "line").row(at, named=True)
    return found


# -- boards ------------------------------------------------------------------------------------------


@given(boards())
def test_boards_read_alike(rows: list[Row]) -> None:
    check(check_odds(frame(rows)))


def test_the_sample_board_reads_alike() -> None:
    said = check(read_odds(SAMPLE_BOARD))
    assert len({m.kind for m in said}) > 10
    assert {m.verdict for m in said} >= {"", "unmapped", "unknown_outcome", "side_conflict"}


# -- any pieces put together ------------------------------------------------------------------------------

SPORTS = (
    ("basketball", "nba"), ("soccer", "serie_a"), ("soccer_epl", None), ("cricket", "IPL"), ("cricket", "test"),
    ("hockey", "nhl"), ("Ice Hockey", "khl"), ("baseball", "mlb"), ("football", "nfl"), ("tennis", ""),
    ("mma", "ufc"), ("quidditch", "hogwarts"), (None, None), ("", ""),
)  # fmt: skip
TEAMS = (
    "Boston Celtics", "Celtics", "BOS", "LA Lakers", "Los Angeles Lakers", "Torino", "Iowa Hawkeyes", "Schalke 04",
    "Schalke", "St. John's", "Under Armour FC", "Over", "Draw", "Yes", "Atlético Madrid", "ATLETICO MADRID", "Köln",
    "Beşiktaş", "Team Over 2", "76ers", "No", "Зенит", "東京", "...", " ", "", None,
)  # fmt: skip
PLAYERS = (None, "", " ", "Nikola Jokić", "NIKOLA JOKIC", "Home", "LeBron James", "O'Neal", "Over Mars", "—")
BEFORE = ("", "", "", "Over ", "Under ", "over ", "O ", "U ", "o", "u", "Yes ", "X ", "Over over ", "Under/", "The ")
BARE = (
    "Over", "Under", "Draw", "Tie", "X", "x", "The Draw", "Yes", "No", "Odd", "Even", "None", "No Goal", "Neither",
    "Home", "Away", "O 2.5", "o2.5", "O", "U", "u 3", "Over 2.5 goals", "Over 2,5", "Ｏver", "OVER\u00a02.5", "1",
    "2", "10-9", "Yankees -1.5 (+120)", "Nobody", "Home or Draw", "Over\x1f2.5", "Under\n", "Over ٢", "²", "n/a",
    "Over 9 8 7", "1.2.3", " ", "\t", "-", "Over 2.5 Yes", "Yes No", "over under", "Over 1" + "0" * 400,
    "Over" + " 1" * 300 + "x", "a" * 3000,
)  # fmt: skip
AFTER = (
    "", "", "", " -1.5", " +3", " (+120)", " -1.5 (+120)", " Over", " Under 2.5", " Over 110.5", " Yes", " No", " Odd",
    " Even", " - Yes", " 0.5/1", " (2.5, 3)", "2", " 2", " [−1.5]", " -1.5 ", " ٣", " (1", " 1)", " +-1", " Draw",
)  # fmt: skip
SELECTION_TYPES = (
    None, None, None, None, "", "home", "away", "draw", "over", "under", "yes", "no", "odd", "even", "none",
    "home_over", "away_under", "HOME", " Over ", "home_away", "over_under", "player", "draw_yes", "home_or_draw",
)  # fmt: skip
TEAM_SIDES = (None, None, None, "", "home", "away", "Home", "AWAY", " home", "draw", "neither")
SEGMENTS = (None, None, None, None, "", "full_game", "1st_half", "regulation", "2nd_quarter", "overtime", "1h")
STATS = (None, None, None, "", "points", "pts", "rebounds", "nonsense", "Home Runs")
PERIODS = ("", "", "", "", "", "1st_half_", "alternate_", "regulation_", "1st 5 Innings ", "live_", "lay_")
USUAL_MARKETS = (
    "moneyline", "moneyline", "moneyline_3way", "point_spread", "spread", "total_points", "team_total",
    "home_team_total", "away_team_total", "draw_no_bet", "player_points", "anytime_goal_scorer", "player_prop", "yrfi",
    "nrfi", "both_teams_to_score", "odd_even", "team_odd_even", "home_team_to_score", "home_clean_sheet",
    "first_team_to_score", "total_corners", "team_corners", "corners", "double_chance", "correct_score", "batter_hits",
    "set_handicap", "to_advance", "nothing anyone knows", "...",
)  # fmt: skip
ALL_MARKETS = catalog.market_type_names()
LINES = (
    None, None, None, math.nan, 0.0, -0.0, 2.5, -2.5, 2.5, 3.0, 0.25, -0.75, 0.1 + 0.2, 2.3333, 2.005, 0.005, 1e6,
    1e6 + 0.01, -1e6, 1e6 + 0.5, 1e9, 1e300, 1e-9, 1e-7,
)  # fmt: skip


def some_selection(rng: random.Random, teams: Sequence[str | None]) -> str:
    """Any text at all."""
    named = rng.choice((*teams, *teams, rng.choice(TEAMS), rng.choice(PLAYERS), "")) or ""
    if rng.random() < 0.35:
        return rng.choice(BARE)
    if rng.random() < 0.2:  # a city alone
        named = " ".join(named.split()[: rng.choice((1, 1, 2))])
    return rng.choice(BEFORE) + named + rng.choice(AFTER) or "Over"


def fitting_selection(rng: random.Random, kind: catalog.MarketType, row: Row) -> str:
    """A text that names an outcome of the market, as some book would write it."""
    outcome = rng.choice(("home", "draw", "away") if kind.family == "moneyline" else kind.outcomes or ("over",))
    if outcome in ("home", "away"):
        return (row[f"{outcome}_team"] or outcome) + rng.choice(("", "", " -1.5", " +3", " (+120)", " 2"))
    word = {"draw": rng.choice(("Draw", "Tie", "X")), "none": rng.choice(("None", "No Goal"))}.get(outcome, outcome)
    owner = {"player": row["player_name"], "team": row[rng.choice(("home_team", "away_team"))]}.get(kind.subject)
    text = rng.choice((word.title(), word.title(), f"{word.title()} 2.5", word.upper()))
    return text if owner is None or rng.random() < 0.4 else f"{owner} {text}"


def some_row(rng: random.Random, events: Sequence[tuple[str, Any, Any]]) -> Row:
    """A row that makes sense, but for up to three of its pieces; its teams may stand the other way round."""
    event, (sport, league), teams = rng.choice(events)
    market = rng.choice(PERIODS) + rng.choice(USUAL_MARKETS if rng.random() < 0.8 else ALL_MARKETS)
    kind = catalog.market_type(market, sport or "")
    row: Row = dict.fromkeys(RAW_LABEL) | {
        "sportsbook": rng.choice(("pinnacle", "Pinnacle", "circa", "corner_shop")),
        "event_id": event,
        "sport": sport,
        "league": league,
        "market_type": market,
        "player_name": rng.choice(PLAYERS) if kind.subject == "player" else None,
        "team_side": rng.choice(TEAM_SIDES) if kind.subject == "team" else None,
        "line": rng.choice((2.5, -2.5, 0.25, 3.0)) if kind.has_line else None,
        "is_live": rng.random() < 0.3,
        "odds_decimal": rng.choice((1.9, 1.9, 1.9, 1.9, 1.0)),
    }
    row["home_team"], row["away_team"] = rng.choice((teams, teams, teams[::-1]))
    row["selection"] = fitting_selection(rng, kind, row) or "Over"
    others: dict[str, Any] = {
        "sport": rng.choice(SPORTS)[0],
        "home_team": rng.choice(TEAMS),
        "away_team": rng.choice((*TEAMS, row["home_team"])),
        "market_segment": rng.choice(SEGMENTS),
        "selection": some_selection(rng, (row["home_team"], row["away_team"])),
        "selection_type": rng.choice(SELECTION_TYPES),
        "player_name": rng.choice(PLAYERS),
        "stat_category": rng.choice(STATS),
        "team_side": rng.choice(TEAM_SIDES),
        "line": rng.choice(LINES),
    }
    return row | {name: others[name] for name in rng.sample(sorted(others), rng.choice((0, 1, 1, 2, 3, len(others))))}


def some_events(rng: random.Random) -> list[tuple[str, Any, Any]]:
    """Few enough that their rows meet; some have teams whose names are those of one of them, or of none."""
    return [(f"e{at}", rng.choice(SPORTS), tuple(rng.sample(TEAMS, 2))) for at in range(rng.choice((4, 12, 40)))]


TEXT_COLUMNS = (*RAW_LABEL, "sportsbook")


def tabulate(rows: Iterable[Mapping[str, Any]]) -> OddsTable:
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(TEXT_COLUMNS, pl.String)
    own = {"line": pl.Float64, "is_live": pl.Boolean, "odds_decimal": pl.Float64}
    return check_odds(pl.DataFrame(list(rows), schema=schema | own))


@settings(max_examples=less(200, 20))
@given(st.integers(0, 2**40))
def test_any_pieces_read_alike(seed: int) -> None:
    rng = random.Random(seed)
    events = some_events(rng)
    check(tabulate(some_row(rng, events) for _ in range(TABLE_SIZE)))


def test_the_pieces_reach_everything() -> None:
    """Every verdict, both turns, all kinds of subject: else the test above would prove little."""
    rng = random.Random(1)
    said = [m for _ in range(8) for m in check(tabulate(some_row(rng, some_events(rng)) for _ in range(TABLE_SIZE)))]
    counts = Counter(m.verdict for m in said)
    wanted = ("", "side_conflict", "unknown_outcome", "no_line", "unmapped", "ambiguous_moneyline")
    assert all(counts[name] > 3 for name in wanted)
    used = [m for m in said if m.kind is not None]
    assert sum(m.swapped for m in used) > 20
    assert {m.subject for m in used} >= {"", "home", "away", "nikola jokic"}
    assert {m.kind.family for m in used if m.kind} >= {"moneyline", "moneyline_3way", "spread", "total", "team_total"}
    assert sum(m.threshold < 0 for m in used) > 20


# -- selection texts --------------------------------------------------------------------------------------

NUMERIC = st.text(st.sampled_from(list(" \t()[]+-.,/123x\x1c\x85")), max_size=24)
PIECES = st.lists(
    st.sampled_from(
        ["over", "under", "yes", "no", "odd", "even", "x", "draw", "o", "u", "Torino", "2", "5", "2.5", "(+120)", "٣",
         " ", " ", " ", "  ", "-", "/", ".", "1.2.3", "\n", "\x1d", "no goal", "the", "é"]
    ),
    max_size=9,
).map("".join)  # fmt: skip
ASSIGNED = st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=12)


@settings(max_examples=less(300, 60))
@given(st.one_of(NUMERIC, PIECES, ASSIGNED))
def test_selection_texts_read_as_the_twin_reads_them(text: str) -> None:
    found, said = selection("", text), twin_of_a_selection(("", text))
    assert (found[:4], *found[4:]) == (said.forms, said.rest, said.bare, said.word)


@settings(max_examples=less(300, 60))
@given(NUMERIC)
def test_numbers_end_where_the_twin_finds_their_end(text: str) -> None:
    """Read backwards and without doubt, the same numbers are found as by plain patterns from the front."""
    for plain, pattern in ((LAST_NUMBER, identity._LAST_NUMBER), (LAST_NUMBERS, identity._LAST_NUMBERS)):
        found = pattern.match(text[::-1])
        assert text[: len(text) - (found.end() if found else 0)] == plain.sub("", text)


@pytest.mark.parametrize(
    "text",
    ["9" * 40_000, " 1" * 20_000 + "x", " (1" * 15_000 + ".", " " * 40_000, "Over 1" + ".23" * 15_000, "(" * 40_000],
)
def test_long_texts_take_no_time(text: str) -> None:
    """A search that went back on what it had found would not end."""
    row = some_row(random.Random(1), [("e", SPORTS[0], ("a", "b"))]) | {"selection": text}
    assert len(of_table(tabulate([row]))) <= 1


# -- by hand ----------------------------------------------------------------------------------------------


def term_of(selection: str, market: str = "moneyline", line: float | None = None, **fields: str) -> Term:
    own = dict(event_id="e", sport="basketball", home_team="Boston Celtics", away_team="LA Lakers")
    given = own | fields | {"selection": selection, "market_type": market}
    raw_label = tuple(given.get(name) for name in RAW_LABEL)
    term = read(raw_label, line)
    assert ours(raw_label, line) == term
    return term


def ours(raw_label: tuple[str | None, ...], line: float | None) -> Term:
    """What `identity` makes of one raw label, as the twin says it."""
    terms = identity.read_raw_labels(parts_of_rows([raw_label]))
    given = np.array([math.nan if line is None else line])
    (threshold, fits), (other, _) = (thresholds(terms, given, side) for side in (terms.side, terms.side_swapped))
    return Term(
        terms.kinds[terms.kind[0]],
        terms.kinds[terms.with_draw[0]],
        int(terms.two_way[0]),
        int(terms.side[0]),
        int(terms.side_swapped[0]),
        terms.subject_name(int(terms.subject[0])),
        terms.subject_name(int(terms.subject_swapped[0])),
        int(threshold[0]) if fits[0] else 0,
        int(other[0]) if fits[0] else 0,
        int(terms.verdict[0]) or (0 if fits[0] else CODES["no_line"]),
        (terms.names[terms.home[0]], terms.names[terms.away[0]]),
    )


def test_a_spread_is_signed_by_the_side_that_the_event_has() -> None:
    term = term_of("Celtics -3.5", "spread", -3.5)
    assert (term.side, term.threshold, term.side_swapped, term.threshold_swapped) == (0, 350, 1, -350)
    assert (term.teams, term.verdict) == (("boston celtics", "los angeles lakers"), 0)


def test_a_team_total_is_the_other_teams_when_swapped() -> None:
    term = term_of("Lakers Over 110.5", "team_total", 110.5)
    assert (term.kind.outcomes[term.side], term.subject, term.subject_swapped) == ("over", "away", "home")
    assert term.threshold == term.threshold_swapped == 11050


def test_a_player_stays_whom_he_is() -> None:
    term = term_of("Nikola Jokić Under 24.5", "player_points", 24.5)
    assert (term.side, term.subject, term.subject_swapped, term.verdict) == (1, "nikola jokic", "nikola jokic", 0)


def test_a_moneyline_keeps_both_its_kinds() -> None:
    term = term_of("Draw", sport="soccer", home_team="Torino", away_team="Roma")
    assert (term.kind.family, term.with_draw.family, term.two_way, term.side) == ("moneyline", "moneyline_3way", 2, 1)
    other = term_of("Over", "total", 200.5)
    assert (other.with_draw, other.two_way) == (other.kind, 0)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (dict(selection="Celtics", selection_type="away"), "side_conflict"),
        (dict(selection="Nonsense United"), "unknown_outcome"),
        (dict(selection="Over", market="team_total", line=1.0), "unknown_outcome"),
        (dict(selection="Over", market="total"), "no_line"),
        (dict(selection="Celtics", line=1.5), "no_line"),
        (dict(selection="Celtics", market="double_chance"), "unmapped"),
    ],
)
def test_a_verdict_says_why(given: dict[str, Any], verdict: str) -> None:
    assert NAMES[term_of(**given).verdict] == verdict


@pytest.mark.parametrize("line", [None, math.nan, 0.0, -0.0])
def test_no_line_is_none_however_it_is_written(line: float | None) -> None:
    assert term_of("Celtics", line=line).verdict == 0
    assert NAMES[term_of("Over", "total", line and math.nan).verdict] == ("" if line == 0.0 else "no_line")


def test_the_lead_is_of_both_teams_then_of_most_rows_then_the_smaller() -> None:
    assert lead({("b", "a"): 2, ("a", "b"): 2, ("", "a"): 9}) == ("a", "b")
    assert lead({("b", "a"): 3, ("a", "b"): 2}) == ("b", "a")
    assert lead({("", "b"): 1, ("a", ""): 1}) == ("", "b")
    assert lead({}) == ("", "")
