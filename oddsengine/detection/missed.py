"""Games that a search does not see whole, in sentences: split by names or starts, or without a usable price.

A table without `event_id` identifies a game by its day and teams, or by its name, so that a typo, or a start in
another time zone that falls on another day, makes a second game. Two games are probably one if both pairs of teams are
alike, no book has prices of both, and they start within 12 hours. Teams are alike as in `oddsengine.matching`, or if
one word of several letters differs by one letter that is added, left out, exchanged or swapped with the next. Such
games stay apart: only the author of the table knows.
"""

from collections import defaultdict
from collections.abc import Hashable
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from rapidfuzz.distance import OSA

from oddsengine import catalog
from oddsengine.catalog.reasons import NAMES
from oddsengine.columns import SECOND
from oddsengine.detection.question import PreparedTable
from oddsengine.identity.table_identity import times
from oddsengine.matching import THRESHOLD
from oddsengine.matching.doubleheaders import WINDOW
from oddsengine.matching.known_games import League, Spelling, fit
from oddsengine.tables.column_names import event_ids, teams_of
from oddsengine.tables.schema import OddsTable, row_column

_LEAST_WORD = 5  # letters of a word that may have a typo
_SHOWN = 2  # games named in a sentence
_MOST_GAMES = 2000  # compared
_MOST_NEAR = 20  # of them, with each


class _Game(NamedTuple):
    id: str
    league: League
    teams: Spelling
    start: datetime | None
    books: frozenset[Hashable]


def notes(prepared: PreparedTable) -> list[str]:
    """Say which games are split, and which are not used at all."""
    return [text for text in (split_games(prepared.table), unused_games(prepared)) if text]


def split_games(table: OddsTable) -> str:
    """Say which games without an `event_id` are probably one; empty if there are none."""
    groups = [group for group in _alike(_games(table)) if len(group) > 1]
    if not groups:
        return ""
    listed = "; ".join(_described(group) for group in groups[:_SHOWN])
    more = f"; and {len(groups) - _SHOWN:,} more" if len(groups) > _SHOWN else ""
    one = "a game is" if len(groups) == 1 else f"{len(groups):,} games are"
    return (
        f"{one} probably split, and prices of the parts are not compared: {listed}{more}; one spelling of the teams "
        "and one start for all books, or a column event_id, joins them"
    )


def _games(table: OddsTable) -> list[_Game]:
    """The games of a table whose ids are made of day and teams, or are their names; none if it has other ids."""
    made = event_ids(table.columns)
    if made is None or not table.height:
        return []
    ident, of_teams = table.head(1).select("event_id", made.alias("made")).row(0)
    if ident != of_teams and teams_of(ident) is None:
        return []
    firsts = [pl.col(name).drop_nulls().first() for name in ("sport", "league", "home_team", "away_team")]
    rows = (
        table.lazy()
        .group_by("event_id", maintain_order=True)
        .agg(*firsts, pl.col("event_start_time").min(), pl.col("sportsbook").unique())
        .drop_nulls(["home_team", "away_team"])
        .collect()
    )
    return [
        _Game(
            ident, (catalog.sport(sport).id if sport else "", league or ""), (home, away), start,
            frozenset(catalog.book(name).id for name in books),
        )
        for ident, sport, league, home, away, start, books in rows.head(_MOST_GAMES).iter_rows()
    ]  # fmt: skip


def _alike(games: list[_Game]) -> list[list[_Game]]:
    """Group games that are probably one; each group is of games of different books."""
    by_word = defaultdict[str, list[int]](list)
    groups: list[list[_Game]] = []
    of_game: list[int] = []
    for at, game in enumerate(games):
        words = {word for team in game.teams for word in catalog.normalise(team).split()}
        near: list[int] = []  # the rarest words first: hundreds of games may share one such as FC
        for word in sorted(words, key=lambda word: (len(by_word[word]), word)):
            near += by_word[word][-_MOST_NEAR:]
        candidates = dict.fromkeys(of_game[other] for other in sorted(near[:_MOST_NEAR]))
        joined = next((at for at in candidates if all(_same(game, each) for each in groups[at])), len(groups))
        groups += [[]] if joined == len(groups) else []
        groups[joined].append(game)
        of_game.append(joined)
        for word in words:
            by_word[word].append(at)
    return groups


def _same(one: _Game, other: _Game) -> bool:
    """Whether two games are probably one."""
    if one.books & other.books or one.league[0] != other.league[0]:
        return False
    if one.start is not None and other.start is not None:
        if abs(one.start - other.start) > WINDOW:
            return False
    elif (
        one.id.count("/") == other.id.count("/") == 2 and one.id.partition("/")[0] != other.id.partition("/")[0]
    ):  # days as text
        return False
    league = one.league if one.league == other.league else (one.league[0], "")
    (home, away), swapped = one.teams, other.teams[::-1]
    return fit(league, one.teams, other.teams)[0] >= THRESHOLD or any(
        _typo(home, teams[0]) and _typo(away, teams[1]) for teams in (other.teams, swapped)
    )


def _typo(one: str, other: str) -> bool:
    """Whether two names are equal but for one letter of a word."""
    words = catalog.normalise(one).split(), catalog.normalise(other).split()
    if len(words[0]) != len(words[1]):
        return False
    apart = [pair for pair in zip(*words, strict=True) if pair[0] != pair[1]]
    return not apart or (
        len(apart) == 1
        and all(word.isalpha() and len(word) >= _LEAST_WORD for word in apart[0])
        and OSA.distance(*apart[0]) == 1
    )


def _described(group: list[_Game]) -> str:
    return " and ".join(f"{game.id!r} of {', '.join(map(str, sorted(map(str, game.books))))}" for game in group)


def unused_games(prepared: PreparedTable) -> str:
    """Say which games have no usable price, and why; empty if there are none, or if no game has one."""
    rows = _unused_rows(prepared)
    if not rows.height:
        return ""
    codes = _codes(prepared)
    used = prepared.table["event_id"].filter(pl.Series(codes == 0)).unique()
    lost = (
        rows.filter(~pl.col("event").is_in(used.implode()))
        .group_by("event", maintain_order=True)
        .agg(pl.col("guard").mode(maintain_order=True).first())
    )
    if not lost.height or not used.len():
        return ""
    named = ", ".join(f"{event!r} ({_why(prepared, event, guard)})" for event, guard in lost[:_SHOWN].rows())
    more = f" and {lost.height - _SHOWN:,} more" if lost.height > _SHOWN else ""
    advice = ""
    if "stale" in lost["guard"].to_list():
        advice = "; guards={'stale': SECONDS} allows older prices, and guards={'stale': False} those of any age"
    verb = "is" if lost.height == 1 else "are"
    return f"{lost.height:,} of {used.len() + lost.height:,} games {verb} not used: {named}{more}{advice}"


def _codes(prepared: PreparedTable) -> npt.NDArray[np.uint8]:
    """The reason for which each row of the table is not used, else 0."""
    codes, groups = prepared.identity.verdict.copy(), prepared.identity.groups
    codes[groups.row] = np.where(codes[groups.row] > 0, codes[groups.row], prepared.guarded.reason)
    return codes


def _unused_rows(prepared: PreparedTable) -> pl.DataFrame:
    """Games and reasons of the rows that are not used, invalid ones at the end."""
    table, codes = prepared.table, _codes(prepared)
    at, position = np.flatnonzero(codes), row_column(table.columns)
    named = pl.Series([NAMES[code] for code in codes[at].tolist()], dtype=pl.String)
    invalid = table.unpriced.join(table.rejected.select(position, "guard"), on=position, how="left")
    return pl.concat(
        [table.select(event="event_id")[at].with_columns(guard=named), invalid.select(event="event_id", guard="guard")]
    )


def _why(prepared: PreparedTable, event: str, guard: str) -> str:
    """The reason of a game without a usable price; of stale ones, the age of the newest."""
    if guard != "stale":
        return guard
    seen = times(prepared.table.filter(event_id=event), "last_seen_at")
    return f"stale: the newest is {_ago(prepared.guarded.now - int(seen.max()))} old"


def _ago(micros: int) -> str:
    seconds = micros / SECOND
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
