"""What the texts of a price say: team, draw, over, under, yes, no, odd, even, and whose.

Everything here works on distinct wordings, with table expressions over distinct strings. Names become integers:
equal integers are equal names after accents, case and punctuation are dropped and the sport's alias table is applied.

A selection names a team in full, or by the first words of its name (Boston, for the Boston Celtics) if the other team's
name does not begin with them too.
"""

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine.groups import Ints, intern

SIDES = ("home", "draw", "away", "none", "over", "under", "yes", "no", "odd", "even")
_HOME, _DRAW, _AWAY = 0, 1, 2

_LAST_NUMBER = r"[\s(\[]+[+-]?\d+(?:[.,]\d+)?[)\]]?\s*$"
_TRAILING_NUMBER = r"(?:[\s(\[]+(?:[+-]?\d+(?:[.,]\d+)?[\s/,]*)+[)\]]?)+\s*$"
OVER_UNDER = r"(?:^| )(over|under)(?: |$)"
SHORT = r"^([ou]) ?\d"
_FORMS = ("full", "shorter", "stripped", "rest")
TRAILING = r"(?:^| )(yes|no|odd|even)$"


class Texts(NamedTuple):
    """What each wording says, as integers; -1 says nothing, name 0 is empty."""

    home: Ints
    away: Ints
    team: npt.NDArray[np.int8]  # home or away, where the selection names that team
    word: npt.NDArray[np.int8]  # the side its other words name
    rest_is_team: npt.NDArray[np.bool_]  # a team is named beside that word
    player: Ints  # the player's name
    team_side: npt.NDArray[np.int8]  # the source's own team label
    names: pl.Series  # sorted; a name's integer is its place


def _selections(texts: pl.Series) -> pl.DataFrame:
    """Distinct selection texts read: the whole name, the name without a number, the word, the rest."""
    words = dict(catalog.words())
    frame = pl.DataFrame({"text": texts}).select(
        full=catalog.normalised(pl.col("text")),
        shorter=catalog.normalised(pl.col("text").str.replace(_LAST_NUMBER, "")),
        stripped=catalog.normalised(pl.col("text").str.replace(_TRAILING_NUMBER, "")),
    )
    frame = frame.with_columns(
        phrase=pl.col("stripped").replace_strict(words, default=None, return_dtype=pl.String),
        over=pl.col("stripped").str.extract(OVER_UNDER, 1),
        short=pl.col("full").str.extract(SHORT, 1).replace_strict({"o": "over", "u": "under"}, default=None),
        tail=pl.col("stripped").str.extract(TRAILING, 1),
    )
    before = pl.col("stripped").str.extract(r"^(.*?) (?:over|under)(?: |$)", 1)
    after = pl.col("stripped").str.extract(r"^(?:over|under) (?:[0-9]+ )*(.*)$", 1)
    front = pl.col("stripped").str.extract(r"^(.*) (?:yes|no|odd|even)$", 1)
    return frame.select(
        "full",
        "shorter",
        "stripped",
        word=pl.coalesce("phrase", "over", "short", "tail"),
        rest=pl.when(pl.col("phrase").is_null() & pl.col("over").is_not_null())
        .then(pl.coalesce(before, after))
        .when(pl.col("phrase").is_null() & pl.col("short").is_null() & pl.col("tail").is_not_null())
        .then(front)
        .fill_null(""),
    )


def _side_codes(column: pl.Series) -> npt.NDArray[np.int8]:
    """Places of side words in `SIDES`; -1 for null and anything else."""
    places = {side: place for place, side in enumerate(SIDES)}
    found = column.replace_strict(places, default=-1, return_dtype=pl.Int8).fill_null(-1)
    return cast(npt.NDArray[np.int8], found.to_numpy())


class _Names:
    """Names as integers: equal after normalising and, within a sport, after its aliases."""

    def __init__(self, columns: list[pl.Series], sports: list[str]) -> None:
        tables = [catalog.team_aliases(sport) for sport in sports]
        canonical = pl.Series([name for table in tables for name in table.values()], dtype=pl.String)
        self.sorted = pl.concat([*columns, canonical, pl.Series([""])]).unique().drop_nulls().sort()
        same = np.arange(self.sorted.len(), dtype=np.int32)
        self._by_sport = np.tile(same, (len(sports), 1))
        for at, table in enumerate(tables):
            if table:
                alias, name = pl.Series(list(table)), pl.Series(list(table.values()))
                place = self.sorted.search_sorted(alias).to_numpy()
                hit = (place < self.sorted.len()) & (
                    self.sorted.gather(np.minimum(place, self.sorted.len() - 1)) == alias
                ).to_numpy()
                self._by_sport[at, place[hit]] = self.sorted.search_sorted(name).to_numpy()[hit]

    def codes(self, names: pl.Series, sport: Ints | None = None) -> Ints:
        """Integers of names; 0 is the empty one. Aliases count where a sport is given."""
        place = self.sorted.search_sorted(names.fill_null("")).to_numpy().astype(np.int32)
        if sport is None or not place.size:
            return place
        return cast(Ints, self._by_sport[sport, place])


def _spread_out(frame: pl.DataFrame, column: str) -> tuple[Ints, pl.Series]:
    """Codes of a column's distinct values, and those values, nulls as empty texts."""
    codes, first = intern(frame[column].hash().to_numpy())
    return codes, frame[column].gather(first).fill_null("")


def _leads(names: pl.Series, part: Ints, whole: Ints) -> npt.NDArray[np.bool_]:
    """Whether one name is the first words of another and not all of them: Boston, of the Boston Celtics."""
    texts = pl.DataFrame({"part": names.gather(part), "whole": names.gather(whole)})
    found = texts.select((pl.col("part") != "") & pl.col("whole").str.starts_with(pl.col("part") + " "))
    return cast(npt.NDArray[np.bool_], found.to_series().to_numpy())


def read_texts(wordings: pl.DataFrame) -> Texts:
    """Read the texts of distinct wordings."""
    sport_of, sport_values = _spread_out(wordings, "sport")
    sport_ids = [catalog.sport(s).id for s in sport_values]
    chosen_of, chosen = _spread_out(wordings, "selection")
    read = _selections(chosen)
    normal = {}
    for column in ("home_team", "away_team", "player_name"):
        codes, values = _spread_out(wordings, column)
        normal[column] = codes, pl.DataFrame({"text": values}).select(catalog.normalised(pl.col("text"))).to_series()
    names = _Names(
        [read["full"], read["shorter"], read["stripped"], read["rest"], *(values for _, values in normal.values())],
        sport_ids,
    )

    def named(column: str) -> Ints:
        codes, values = normal[column]
        place = names.codes(values)
        return names._by_sport[sport_of, place[codes]] if codes.size else place

    def spoken(column: str) -> Ints:
        place = names.codes(read[column])
        return names._by_sport[sport_of, place[chosen_of]] if chosen_of.size else place

    home, away = named("home_team"), named("away_team")
    full, shorter, stripped, rest = (spoken(form) for form in _FORMS)
    word = _side_codes(read["word"])[chosen_of]
    apart = home != away
    is_home = ((full == home) | (shorter == home) | (stripped == home) | (rest == home)) & (home > 0) & apart
    is_away = ((full == away) | (shorter == away) | (stripped == away) | (rest == away)) & (away > 0) & apart
    part = np.where(word >= 0, rest, stripped)
    leads_home, leads_away = _leads(names.sorted, part, home), _leads(names.sorted, part, away)
    short = ~is_home & ~is_away & apart & (leads_home != leads_away)
    is_home, is_away = is_home | (short & leads_home), is_away | (short & leads_away)
    team = np.where(is_home & ~is_away, _HOME, np.where(is_away & ~is_home, _AWAY, -1)).astype(np.int8)
    whole = (
        ((full == home) | (full == away) | (shorter == home) | (shorter == away)) & (full > 0) & (shorter > 0) & apart
    )
    word = np.where(whole, -1, word).astype(np.int8)  # a team whose name ends in such a word

    codes, values = normal["player_name"]
    given = names.codes(values)[codes] if codes.size else home
    plain = names.codes(read["rest"])[chosen_of] if chosen_of.size else home
    unworded = names.codes(read["stripped"])[chosen_of] if chosen_of.size else home
    player = np.where(given > 0, given, np.where(word >= 0, plain, unworded)).astype(np.int32)
    codes, values = _spread_out(wordings, "team_side")
    label = _side_codes(values.str.to_lowercase())[codes]
    return Texts(
        home=home,
        away=away,
        team=team,
        word=word,
        rest_is_team=(team >= 0) & (rest > 0) & ((rest == home) | (rest == away) | (short & (word >= 0))),
        player=player,
        team_side=np.where((label == _HOME) | (label == _AWAY), label, -1).astype(np.int8),
        names=names.sorted,
    )


def sides_of_type(types: pl.Series) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """The team and the other word of a source's selection type, `home_over` and the like."""
    codes, first = intern(types.hash().to_numpy())
    team = np.full(first.size, -1, np.int8)
    word = np.full(first.size, -1, np.int8)
    for at, text in enumerate(types.gather(first).fill_null("").to_list()):
        parts = [SIDES.index(p) for p in text.strip().lower().split("_") if p in SIDES]
        teams = [p for p in parts if p in (_HOME, _AWAY, _DRAW)]
        words = [p for p in parts if p not in (_HOME, _AWAY, _DRAW)]
        if len(teams) <= 1 and len(words) <= 1:
            team[at] = teams[0] if teams else -1
            word[at] = words[0] if words else -1
    return team[codes], word[codes]
