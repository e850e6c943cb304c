"""Identity: the meaning of the texts and the line of a price, for tables, the live board and tapes.

A *raw label* is the texts of one price (`RAW_LABEL`). Its parts repeat: a board of a million prices has a few thousand
distinct selections, teams and market types. Each distinct part is parsed once in plain Python and cached; the meaning
of whole raw labels is then assembled by columns. `read_raw_labels` does so for any number of raw labels.

What depends on other rows is left to the caller:

- Which team of an event is at home: `leading` chooses a pair, `crossed` flags the rows that name it the other way
  round. `TermMeanings` has both readings, straight and swapped.
- The sport and league of an event: `leading_league` chooses them. A raw label itself is read in its own.
- Which rows are of another game than their event: `other_games` decides, by the teams that the books name.
- Whether a moneyline (`two_way`) is three-way: its book then quotes a draw (side 1) in that event, live flag and
  `with_draw`. Otherwise side // 2 is its outcome in `kind`. It is ambiguous if `two_way` is 2 or an outcome of the book
  cannot be parsed (side -1), which takes precedence over `no_line` but not over other verdicts.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import Bools, Bytes, Floats, Int, Ints, Longs
from oddsengine.identity.groups import intern, mix
from oddsengine.identity.traits import MarketKind

RAW_LABEL = (
    "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "selection",
    "selection_type", "player_name", "stat_category", "team_side",
)  # fmt: skip
RawLabel = tuple[Any, ...]  # the texts of `RAW_LABEL`; on the live board followed by the line
SIDES = ("home", "draw", "away", "none", "over", "under", "yes", "no", "odd", "even")
HOME, DRAW, AWAY = 0, 1, 2
NO_LINE = np.iinfo(np.int32).min  # fixed line of market types without one
SUBJECTS = 3  # subjects below are none, home and away; players are name number + SUBJECTS

Sides = npt.NDArray[np.int8]
_Key = TypeVar("_Key", bound=Hashable)

_REMEMBERED = 1 << 15  # distinct parts of each kind
_SUBJECT_SORTS = ("none", "team", "player")
_NONE, _TEAM, _PLAYER = range(3)
_TYPED_OVER_UNDER = {"o": "over", "u": "under"}
_LABELS = {"home": HOME, "away": AWAY}
_NUMBERED = {"1": HOME, "2": AWAY}  # of a 1X2

# Numbers at the end of a text, matched from the end: with one start and no part that can be split in two ways, the
# time is linear; a backtracking search from the front would be exponential. White space is Unicode's White_Space.
_BLANK = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LAST_NUMBER = re.compile(rf"[{_BLANK}]*+[)\]]?+\d++(?:[.,]\d++)?+[+-]?+[{_BLANK}(\[]++")
_NUMBER = r"\d++(?:\.\d)?+[+-]?+"
_LAST_NUMBERS = re.compile(rf"[{_BLANK}]*+(?:[)\]]?+(?:[{_BLANK}/,]*+{_NUMBER})+[{_BLANK}(\[]++)++")
_SIDE_WORD = re.compile(r"(?:^| )(over|under)(?: |$)")
_SHORT_WORD = re.compile(r"^([ou]) ?\d")
_LAST_WORD = re.compile(r"(?:^| )(yes|no|odd|even)$")
_COUNTS = re.compile("(?:[0-9]+ )*")


# ---- parts of a raw label ----


class MarketMeaning(NamedTuple):
    """The meaning of a market type; tuples have one entry per side of `SIDES`, and -1 at the end for none."""

    kind: MarketKind
    with_draw: MarketKind  # for a moneyline whose book quotes a draw; otherwise equal to `kind`
    usable: bool
    two_way: int  # 1: a moneyline that depends on the book; 2: in a sport with draws
    positional: bool  # outcomes are teams
    team: int  # home or away, if the name says so
    implied: int  # side of a selection that names only the subject
    renamed: tuple[int, ...]
    place: tuple[int, ...]  # outcome within `with_draw`
    fixed: int  # its own line in hundredths, else NO_LINE


class ParsedSelection(NamedTuple):
    """A parsed selection. Aliases of the sport are applied to the first four; `plain` and `bare` are as written."""

    whole: str
    shorter: str  # without its last number
    stripped: str  # without trailing numbers
    rest: str  # without the word
    plain: str  # as written
    bare: str  # as written, without numbers
    word: int  # side named by one of its words


@lru_cache(maxsize=_REMEMBERED)
def market(sport: str, league: str, market_type: str, segment: str, stat: str) -> MarketMeaning:
    """Parse a market type; without a period in the name, the source's segment applies."""
    meaning = catalog.meaning(sport, market_type, stat, segment)
    kind = kind_of(meaning)
    splits = meaning.family == "moneyline"
    with_draw = kind._replace(family="moneyline_3way", outcomes=("home", "draw", "away")) if splits else kind
    outcomes, renames = with_draw.outcomes, dict(meaning.renames)
    return MarketMeaning(
        kind=kind,
        with_draw=with_draw,
        usable=meaning.usable,
        two_way=2 if splits and catalog.sport(sport).can_draw(league) else int(splits),
        positional="home" in outcomes,
        team=_side(meaning.team_side),
        implied=_side(meaning.default_outcome),
        renamed=(*(_side(renames.get(side, side)) for side in SIDES), -1),
        place=(*(outcomes.index(side) if side in outcomes else -1 for side in SIDES), -1),
        fixed=int(NO_LINE) if meaning.fixed_line is None else round(meaning.fixed_line * 100),
    )


def kind_of(meaning: catalog.MarketType) -> MarketKind:
    """Return the kind of a market type, as used by guards and detectors."""
    family = catalog.families().get(meaning.family)
    return MarketKind(
        period=meaning.period,
        family=meaning.family,
        outcomes=meaning.outcomes,
        has_line=meaning.has_line or meaning.fixed_line is not None,
        spread=family is not None and family.cuts == "margin",
        prop=meaning.is_prop,
        subject=meaning.subject,
        fraction=meaning.fraction if meaning.fraction > 0 else 0.0,
        stat=meaning.stat_category,
    )


@lru_cache(maxsize=_REMEMBERED)
def league_ids(sport: str, text: str) -> tuple[str, str]:
    """Return the ids of a sport and a league."""
    id_ = catalog.sport(sport).id
    return id_, catalog.league(text, id_).id if text else ""


@lru_cache(maxsize=_REMEMBERED)
def normalised_team(sport: str, text: str) -> str:
    """Normalise a team's name and apply the sport's aliases."""
    name = catalog.normalise(text)
    return catalog.team_aliases(sport).get(name, name)


@lru_cache(maxsize=_REMEMBERED)
def selection(sport: str, text: str) -> ParsedSelection:
    """Parse a selection.

    Examples
    --------
    >>> read = selection("basketball", "Lakers Over 110.5")
    >>> SIDES[read.word], read.rest, read.stripped
    ('over', 'los angeles lakers', 'lakers over')
    """
    aliases = catalog.team_aliases(sport)
    whole = catalog.normalise(text)
    shorter, bare = _without_numbers(text, whole)
    word, rest = _worded(whole, bare)
    whole, shorter, stripped, beside = (aliases.get(form, form) for form in (whole, shorter, bare, rest))
    return ParsedSelection(whole, shorter, stripped, beside, rest, bare, _side(word))


def team_word(sport: str, text: str) -> int:
    """Home or away if a selection is this word, as "Home" and "Away -2.5" are; -1 if not.

    Examples
    --------
    >>> [SIDES[team_word("basketball", text)] for text in ("Home", "AWAY -2.5")], team_word("basketball", "Home Run")
    (['home', 'away'], -1)
    """
    return _LABELS.get(selection(sport, text).bare, -1)


def numbered_side(text: str) -> int:
    """Return the team that a number stands for in a market of sides, such as a 1X2: home or away, else -1.

    Examples
    --------
    >>> SIDES[numbered_side(" 2 ")], numbered_side("12"), numbered_side("X")
    ('away', -1, -1)
    """
    return _NUMBERED.get(catalog.normalise(text), -1)


@lru_cache(maxsize=_REMEMBERED)
def selection_type(text: str) -> tuple[int, int]:
    """Parse a source's selection type, such as `home_over`, into team or draw, and the other word."""
    parts = [SIDES.index(part) for part in text.strip().lower().split("_") if part in SIDES]
    teams = [part for part in parts if part <= AWAY]
    words = [part for part in parts if part > AWAY]
    if len(teams) > 1 or len(words) > 1:
        return -1, -1
    return (teams or [-1])[0], (words or [-1])[0]


def _side(word: str) -> int:
    return SIDES.index(word) if word else -1


def _without_numbers(text: str, whole: str) -> tuple[str, str]:
    """Return a name without its last number, and without all trailing numbers; `whole` has them."""
    backwards = text[::-1]
    numbers = _LAST_NUMBERS.match(backwards)
    if numbers is None:
        return whole, whole
    number = _LAST_NUMBER.match(backwards)
    shorter = catalog.normalise(text[: len(text) - number.end()]) if number else whole
    return shorter, catalog.normalise(text[: len(text) - numbers.end()])


def _worded(whole: str, bare: str) -> tuple[str, str]:
    """Return the word that names a side, and the rest."""
    if phrase := catalog.selection_words().get(bare):
        return phrase, ""
    if match := _SIDE_WORD.search(bare):
        before = match if match.start() else _SIDE_WORD.search(bare, 1)
        beside = bare[: before.start()] if before else _COUNTS.sub("", bare[match.end() :], count=1)
        return match[1], beside
    if match := _SHORT_WORD.match(whole):
        return _TYPED_OVER_UNDER[match[1]], ""
    if match := _LAST_WORD.search(bare):
        return match[1], bare[: match.start()]
    return "", ""


# ---- whole raw labels, by columns ----


class DistinctValues(NamedTuple):
    """One part of some raw labels: its distinct values, and the index of each raw label's value."""

    values: Sequence[Any]
    at: Ints

    def column(self, meaning: Callable[[Any], Any], dtype: npt.DTypeLike, width: int = 1) -> npt.NDArray[Any]:
        """Map the part to numbers by raw label, `width` numbers each."""
        read = np.array([meaning(value) for value in self.values], dtype)
        return read.reshape((-1, width) if width > 1 else -1)[self.at]


class Parts(NamedTuple):
    """The parts of some raw labels."""

    market: DistinctValues  # arguments of `market`
    selection: DistinctValues  # arguments of `selection`
    home: DistinctValues  # arguments of `normalised_team`
    away: DistinctValues
    type: DistinctValues  # text
    player: DistinctValues
    label: DistinctValues  # the source's label for a team
    league: DistinctValues  # arguments of `league_ids`


_COLUMNS = {
    "market": ("sport", "league", "market_type", "market_segment", "stat_category"),
    "selection": ("sport", "selection"),
    "home": ("sport", "home_team"),
    "away": ("sport", "away_team"),
    "type": ("selection_type",),
    "player": ("player_name",),
    "label": ("team_side",),
    "league": ("sport", "league"),
}


_TEXTS = sorted({name for columns in _COLUMNS.values() for name in columns})


def parts_of_rows(raw_labels: Sequence[RawLabel]) -> Parts:
    """Split a few raw labels into parts; missing values are None."""
    at = np.arange(len(raw_labels), dtype=np.int32)

    def part(columns: Sequence[str]) -> DistinctValues:
        places = [RAW_LABEL.index(name) for name in columns]
        rows: Iterable[Any] = (tuple([raw_label[place] or "" for place in places]) for raw_label in raw_labels)
        return DistinctValues([row[0] for row in rows] if len(places) == 1 else list(rows), at)

    return Parts(*map(part, _COLUMNS.values()))


def parts_of_frame(raw_labels: pl.DataFrame) -> Parts:
    """Split many raw labels into parts, without duplicates."""
    hashes = {name: raw_labels.get_column(name).hash().to_numpy() for name in _TEXTS}

    def part(columns: Sequence[str]) -> DistinctValues:
        at, first = intern(mix(*map(hashes.__getitem__, columns)))
        rows = pl.Series(first)
        texts = ([text or "" for text in raw_labels.get_column(name)[rows].to_list()] for name in columns)
        return DistinctValues(next(texts) if len(columns) == 1 else list(zip(*texts, strict=True)), at)

    return Parts(*map(part, _COLUMNS.values()))


def distinct(frame: pl.DataFrame) -> tuple[Ints, Ints]:
    """Number equal rows of a frame, and return the first row of each."""
    if not frame.width:
        return np.zeros(frame.height, np.int32), np.zeros(min(frame.height, 1), np.int32)
    return intern(frame.hash_rows().to_numpy())


class TermMeanings(NamedTuple):
    """The meaning of raw labels, by column; `_swapped` for rows that name the event's teams the other way round.

    Names are numbered by `names`, which is sorted and starts with the empty one. A subject below `SUBJECTS` is none,
    home or away; otherwise it is a name's number plus `SUBJECTS`.
    """

    names: list[str]
    kinds: tuple[MarketKind, ...]
    kind: Ints  # index in `kinds`
    with_draw: Ints
    two_way: Bytes
    side: Sides  # outcome within `with_draw`, -1 if it cannot be parsed
    side_swapped: Sides
    subject: Ints
    subject_swapped: Ints
    fixed: Ints
    verdict: Bytes  # 0, or the code of a reason that depends on the texts alone
    home: Ints
    away: Ints
    sport: Ints  # name of its id
    league: Ints

    def take(self, at: Ints) -> "TermMeanings":
        """Return the meaning of other raw labels, by the place of each among these."""
        columns = {name: value[at] for name, value in self._asdict().items() if name not in ("names", "kinds")}
        return self._replace(**columns)

    def subject_name(self, subject: int) -> str:
        """Return the name of a subject: a player's, `home`, `away` or empty."""
        return self.names[subject - SUBJECTS] if subject >= SUBJECTS else ("", "home", "away")[subject]


class _Names:
    """Numbers names by appearance, then sorts them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def __call__(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def sorted(self) -> tuple[list[str], Ints]:
        """Return all names sorted, and the position of each by its number."""
        names = sorted(self._numbers)
        rank = np.empty(len(names), np.int32)
        rank[[self._numbers[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        return names, rank


def read_raw_labels(parts: Parts, off: frozenset[int] = frozenset()) -> TermMeanings:
    """Return the meaning of raw labels.

    Parameters
    ----------
    parts
        Parts of the raw labels.
    off
        Codes of disabled guards.

    Examples
    --------
    >>> texts = ("e", "basketball", "nba", "Boston Celtics", "LA Lakers", "spread", None, "Lakers +3.5", *[None] * 4)
    >>> terms = read_raw_labels(parts_of_rows([texts]))
    >>> kind = terms.kinds[terms.kind[0]]
    >>> kind.family, kind.outcomes[terms.side[0]], terms.names[terms.home[0]], terms.verdict[0].item()
    ('spread', 'away', 'boston celtics', 0)
    """
    number = _Names()
    markets = [market(*value) for value in parts.market.values]
    of = parts.market.at
    kinds = dict.fromkeys(each.kind for each in markets) | dict.fromkeys(each.with_draw for each in markets)
    code = {kind: at for at, kind in enumerate(kinds)}

    def per_market(field: Callable[[MarketMeaning], Any], dtype: npt.DTypeLike = np.int8) -> npt.NDArray[Any]:
        return np.array([field(each) for each in markets], dtype)[of]

    def by_side(field: Callable[[MarketMeaning], tuple[int, ...]]) -> Sides:
        return np.array([field(each) for each in markets], np.int8).reshape(-1, len(SIDES) + 1)

    place, renamed = by_side(lambda m: m.place), by_side(lambda m: m.renamed)
    positional, sort = (
        per_market(lambda m: m.positional, bool),
        per_market(lambda m: _SUBJECT_SORTS.index(m.kind.subject)),
    )

    forms = parts.selection.column(lambda value: _numbered(selection(*value), number), np.int32, 7)
    word = forms[:, 6]
    home = parts.home.column(lambda value: number(normalised_team(*value)), np.int32)
    away = parts.away.column(lambda value: number(normalised_team(*value)), np.int32)
    given = parts.player.column(lambda text: number(catalog.normalise(text)), np.int32)
    typed = parts.type.column(selection_type, np.int8, 2)
    label = parts.label.column(lambda text: _LABELS.get(text.lower(), -1), np.int8)
    places = parts.league.column(lambda value: tuple(map(number, league_ids(*value))), np.int32, 2)
    names, rank = number.sorted()
    home, away, given = rank[home], rank[away], rank[given]
    whole, shorter, stripped, rest, plain, bare = rank[forms[:, :6]].T

    # The team that a selection names, in full or by its first words, and its word: a team's own name may end in a word
    # that names a side.
    apart = home != away
    is_home = ((whole == home) | (shorter == home) | (stripped == home) | (rest == home)) & (home > 0) & apart
    is_away = ((whole == away) | (shorter == away) | (stripped == away) | (rest == away)) & (away > 0) & apart
    part = np.where(word >= 0, rest, stripped)
    unnamed = ~is_home & ~is_away & apart
    by_city = _begins(names, part, home, unnamed), _begins(names, part, away, unnamed)
    short = by_city[0] != by_city[1]
    is_home, is_away = is_home | (short & by_city[0]), is_away | (short & by_city[1])
    named = np.where(is_home == is_away, -1, np.where(is_home, HOME, AWAY))
    named = np.where(named < 0, parts.selection.column(lambda value: team_word(*value), np.int8), named)
    numbered = parts.selection.column(lambda value: numbered_side(value[1]), np.int8)
    # A number is a side, unless the other team's name begins with it: 1. FC Köln, away.
    counted = (named < 0) & positional & (numbered >= 0) & apart
    other = np.where(numbered == HOME, away, home)
    counted &= ~_begins(names, whole, other, counted) & (whole != other)
    named = np.where(counted | ((named < 0) & positional & (numbered >= 0) & ~apart), numbered, named)
    full = ((whole == home) | (whole == away) | (shorter == home) | (shorter == away)) & (shorter > 0) & apart
    word = np.where(full, -1, word)
    beside = (named >= 0) & (rest > 0) & ((rest == home) | (rest == away) | (short & (word >= 0)))

    # The side: from the text, else from the source's selection type.
    spoken = np.where(word >= 0, word, np.where(positional, named, -1))
    type_team, type_word = typed[:, 0], typed[:, 1]
    type_side = np.where((type_word < 0) & positional, type_team, type_word)
    spoken, type_side = renamed[of, spoken], renamed[of, type_side]  # an anytime scorer's yes is over
    conflict = (spoken >= 0) & (type_side >= 0) & (spoken != type_side)
    conflict &= (place[of, spoken] >= 0) & (place[of, type_side] >= 0)
    meant = np.where(spoken >= 0, spoken, np.where(type_side >= 0, type_side, per_market(lambda m: m.implied)))

    # The subject: a player, or the team of a team total.
    player, owned = sort == _PLAYER, sort == _TEAM
    who = np.where(given > 0, given, np.where(word >= 0, plain, bare))
    owners = np.stack([named, per_market(lambda m: m.team), np.where(type_team == DRAW, -1, type_team), label])
    owner = owners.max(axis=0)
    conflict |= owned & (owner >= 0) & (np.where(owners < 0, owner, owners).min(axis=0) != owner)
    lost = (player & (who == 0)) | (owned & (owner < 0)) | ((sort == _NONE) & ~positional & (word >= 0) & beside)

    def subject(owner: npt.NDArray[Any]) -> Ints:
        one = np.where(player & (who > 0), who + SUBJECTS, np.where(owned & (owner >= 0), 1 + (owner == AWAY), 0))
        return one.astype(np.int32)

    side = place[of, meant]
    verdict = np.zeros(of.size, np.uint8)
    verdict[(side < 0) | lost] = CODES["unknown_outcome"]
    if CODES["side_conflict"] not in off:
        verdict[conflict] = CODES["side_conflict"]
    verdict[~per_market(lambda m: m.usable, bool)] = CODES["unmapped"]
    return TermMeanings(
        names=names,
        kinds=tuple(kinds),
        kind=per_market(lambda m: code[m.kind], np.int32),
        with_draw=per_market(lambda m: code[m.with_draw], np.int32),
        two_way=per_market(lambda m: m.two_way, np.uint8),
        side=side,
        side_swapped=place[of, _other(meant)],
        subject=subject(owner),
        subject_swapped=subject(_other(owner)),
        fixed=per_market(lambda m: m.fixed, np.int32),
        verdict=verdict,
        home=home,
        away=away,
        sport=rank[places[:, 0]],
        league=rank[places[:, 1]],
    )


def _numbered(parsed: ParsedSelection, number: _Names) -> tuple[int, ...]:
    return (*map(number, parsed[:6]), parsed.word)


def _begins(names: Sequence[str], part: Ints, whole: Ints, where: Bools) -> Bools:
    """Flag names that are the first words of another: Boston, of the Boston Celtics."""
    out = np.zeros(part.size, bool)
    at = np.flatnonzero(where & (part > 0))
    pairs, of = np.unique(part[at].astype(np.int64) << 32 | whole[at], return_inverse=True)
    prefixed = [names[pair & 0xFFFFFFFF].startswith(f"{names[pair >> 32]} ") for pair in pairs.tolist()]
    out[at] = np.array(prefixed, bool)[of]
    return out


def _other(side: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the side as seen by the other team."""
    return np.where((side == HOME) | (side == AWAY), HOME + AWAY - side, side)


# ---- lines ----


@kernel
def threshold(line, side, lined, spread, fixed):
    """Convert a line to its market's threshold in hundredths, and whether it is valid.

    - `line`: the number
    - `side`: outcome
    - `lined`, `spread`: 1 if the market has lines, and if these are handicaps
    - `fixed`: the market's own line, or `NO_LINE`
    """
    if fixed != NO_LINE:
        return np.int32(fixed), True
    if lined == 0:
        return np.int32(0), line == 0.0 or np.isnan(line)
    x = line * 100.0
    hundredths = np.rint(x)
    if not (abs(x - hundredths) < 1e-6) or abs(hundredths) > 1e8:
        return np.int32(0), False
    return np.int32(-hundredths if spread != 0 and side == 0 else hundredths), True


_NO_MONEYLINE, _WITH_DRAWS = 0, 2  # two-way moneylines: a raw label that is none; one in a sport with draws
DRAW, MAYBE_DRAW = 1, 2  # besides the two sides, a book quotes a draw, or something unparsed that may be one


@kernel
def moneyline(
    ways: Int, draws: Int, side: Int, verdict: Int, ambiguous_code: Int, no_line_code: Int
) -> tuple[bool, Int, Int]:
    """Resolve a moneyline: whether it has a draw, its side and its verdict; `draws` is what its book quotes.

    `ways` is 0 for raw labels without a draw, 2 for those that are ambiguous without one.

    `side` and `verdict` are those of the raw label; `ambiguous_code` and `no_line_code` are codes of verdicts.
    """
    if ways == _NO_MONEYLINE:
        return False, side, verdict
    if draws & DRAW:
        return True, side, verdict
    if (ways == _WITH_DRAWS or draws != 0) and verdict in (ACCEPTED, no_line_code):
        verdict = ambiguous_code
    return False, side // 2, verdict


@kernel
def _thresholds(line, side, lined, spread, fixed, out, is_valid):
    """`threshold` for many lines: `line`, `side`, `lined`, `spread` and `fixed`.

    Writes the thresholds to `out`, and whether each line is valid to `is_valid`.
    """
    for i in range(line.size):
        out[i], is_valid[i] = threshold(line[i], side[i], lined[i], spread[i], fixed[i])


def thresholds(terms: TermMeanings, line: Floats, side: Sides) -> tuple[Ints, Bools]:
    """Convert lines of raw labels to thresholds, and whether each is valid for its market."""
    out, fits = np.empty(line.size, np.int32), np.empty(line.size, np.bool_)
    lined = np.array([kind.has_line for kind in terms.kinds], np.uint8)[terms.kind]
    spread = np.array([kind.spread for kind in terms.kinds], np.uint8)[terms.kind]
    # Columns of frames may be read-only, which is another type.
    _thresholds(np.array(line), side, lined, spread, terms.fixed, out, fits)
    return out, fits


# ---- rows of other games under the id of an event ----

Game = frozenset[str]
"""Ids of the teams that a row names, as far as the catalog is certain of them."""
_MOST_GAMES = 64  # an id for which more are named stands for none of them: all of their rows are rejected


@lru_cache(maxsize=_REMEMBERED)
def game(sport: str, league: str, home: str, away: str) -> Game:
    """Return the game that a row names, by the ids of its sport and league and the names of its teams.

    Only teams that are certain count (`certain_team`): a row is rejected for naming others than most books do.

    Examples
    --------
    >>> sorted(game("basketball", "nba", "celtics", "la lakers")), sorted(game("tennis", "atp", "r nadal", "sinner"))
    (['boston_celtics', 'los_angeles_lakers'], [])
    """
    teams = (catalog.certain_team(name, sport, league) for name in (home, away) if name)
    return frozenset(team.id for team in teams if team is not None)


def other_games(votes: Sequence[Mapping[Game, int]]) -> frozenset[Game]:
    """Return the games whose rows are rejected, because most books, or as many, name another game for the event.

    Two games exclude each other if they have three teams or more between them; a team that is not known may be any. A
    game is supported by the games that exclude all those that it excludes. A provider is for a game if more of its rows
    support than exclude it, against it if fewer do; a game that another excludes needs more providers for it than
    against. So no two games that remain exclude each other, and of two with equally many providers neither remains.

    Parameters
    ----------
    votes
        By provider: the number of rows that name each game.

    Examples
    --------
    >>> one, other = frozenset(("lakers", "celtics")), frozenset(("bulls", "knicks"))
    >>> other_games([{one: 2}, {one: 9}, {other: 50}]) == {other}, other_games([{one: 2}, {other: 50}]) == {one, other}
    (True, True)
    """
    games = {one for rows in votes for one in rows}
    if len(games) > _MOST_GAMES:
        return frozenset(one for one in games if one)
    excluded = {one: frozenset(other for other in games if len(one | other) > 2) for one in games}
    disputed = [one for one in games if excluded[one]]
    out = set()
    for one in disputed:
        support = [other for other in disputed if excluded[other] >= excluded[one]]
        margins = [
            sum(rows.get(each, 0) for each in support) - sum(rows.get(each, 0) for each in excluded[one])
            for rows in votes
        ]
        if sum(margin > 0 for margin in margins) <= sum(margin < 0 for margin in margins):
            out.add(one)
    return frozenset(out)


# ---- home and away ----


def leading(
    event: npt.NDArray[Any], home: npt.NDArray[Any], away: npt.NDArray[Any], rows: npt.NDArray[Any], events: int
) -> Ints:
    """Choose the pair of teams by which all rows of an event are read; returns its index, by event.

    Pairs that name both teams are preferred, then the one with most rows, then the smaller.

    Parameters
    ----------
    event, home, away, rows
        By pair: its event, its teams (name numbers or names), and the number of rows that use it.
    events
        Number of events; each has a pair.

    Examples
    --------
    >>> teams = np.array(["b", "a", "a"]), np.array(["a", "b", ""])
    >>> leading(np.zeros(3, int), *teams, np.array([2, 2, 9]), 1).tolist()
    [1]
    """
    named = _given(home) & _given(away)
    return _first(np.lexsort((away, home, -rows.astype(np.int64), ~named, event)), event, events)


def leading_league(event: npt.NDArray[Any], sport: Any, league: Any, rows: Any, events: int) -> Ints:
    """Choose the sport and league of each event, which decide its units and shapes; returns its index, by event.

    It is the sport of most rows, and of that sport the league of most rows; none only if no row names one. Of equals
    the smaller.

    Parameters
    ----------
    event, sport, league, rows
        By distinct event, sport and league (name numbers or names): the number of rows that name them.
    events
        Number of events; each has a row.

    Examples
    --------
    >>> sport, league = np.array(["tennis", "", "soccer", "soccer"]), np.array(["atp", "", "", "mls"])
    >>> leading_league(np.zeros(4, int), sport, league, np.array([3, 9, 2, 1]), 1).tolist()
    [3]
    """
    by_name = np.unique(sport, return_inverse=True)[1]
    pair = event.astype(np.int64) * (by_name.max(initial=0) + 1) + by_name
    of_sport = np.bincount(pair, weights=rows)[pair]
    order = np.lexsort((league, -rows.astype(np.int64), ~_given(league), by_name, -of_sport, ~_given(sport), event))
    return _first(order, event, events)


def _first(order: Longs, event: Longs, events: int) -> Ints:
    """Return the first of each event in an order by event."""
    return cast(Ints, order[np.searchsorted(event[order], np.arange(events))].astype(np.int32))


def crossed(home: Any, away: Any, lead_home: Any, lead_away: Any) -> Bools:
    """Flag rows that name the teams the other way round than the pair chosen for the event.

    Examples
    --------
    >>> home, away = np.array(["a", "", "a"]), np.array(["b", "b", "b"])
    >>> crossed(home, away, np.array(["b", "b", "a"]), np.array(["a", "a", "c"])).tolist()
    [True, True, False]
    """
    straight = (home == lead_home) | (away == lead_away)
    across = ((home == lead_away) & _given(lead_away)) | ((away == lead_home) & _given(lead_home))
    return np.asarray(across & ~straight)


def _given(names: npt.NDArray[Any]) -> Bools:
    """Flag names that are not empty."""
    return np.asarray(names != "" if names.dtype.kind == "U" else names > 0)
