"""The meaning of single wordings: what `markets.identify` says of a whole table, for one price at a time.

A live board meets a handful of new wordings a step: too few for table expressions, whose fixed cost is tens of
milliseconds. A `Reader` remembers what it has read of team names, selection texts, selection types and market
types, each for itself, and puts a `Term` together from them in microseconds.

`identify` is the definition and a term says the same, with all guards on. What other rows decide is left to the caller:

- Which way round an event names its teams: count `Term.teams` over its rows, choose the `lead`, and ask `turned`.
- Whether a moneyline (`two_way`) is three-way: its book then quotes a draw (side 1) in that event, live flag and
  `with_draw`. If not, side // 2 is its place in `kind`; it is ambiguous where `two_way` is 2 or an outcome of the
  book's does not read (side -1), and that comes before `no_line` and after every other verdict.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from oddsengine import catalog
from oddsengine.markets import AWAY, HOME, kind_of, place_of, renamed_sides, three_way
from oddsengine.reasons import CODES
from oddsengine.traits import Kind
from oddsengine.wording import OVER_UNDER, SHORT, SIDES, TRAILING

Wording = tuple[str | None, ...]
"""Texts of one price, in the order of `markets.WORDING`."""
Teams = tuple[str, str]
"""Home and away as they compare: normalised, the sport's aliases applied; empty where nothing is given."""

_K = TypeVar("_K")
_V = TypeVar("_V")

_MOST = 1 << 15  # entries that one memory holds
_TYPED_OVER_UNDER = {"o": "over", "u": "under"}
_LABELS = {"home": HOME, "away": AWAY}

_UNKNOWN = CODES["unknown_outcome"]
_CONFLICT = CODES["side_conflict"]
_UNMAPPED = CODES["unmapped"]
_NO_LINE = CODES["no_line"]

# The trailing numbers of `wording`, for a text that is read backwards: one start, and no part that could be split in
# two ways, so that time is linear where a backtracking search from the front is exponential. White space is what the
# table expressions take for it, which are not those of Python's \s.
_BLANK = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LAST_NUMBER = re.compile(rf"[{_BLANK}]*+[)\]]?+\d++(?:[.,]\d++)?+[+-]?+[{_BLANK}(\[]++")
_NUMBER = r"\d++(?:\.\d)?+[+-]?+"
_LAST_NUMBERS = re.compile(rf"[{_BLANK}]*+(?:[)\]]?+(?:[{_BLANK}/,]*+{_NUMBER})+[{_BLANK}(\[]++)++")

_SIDE_WORD = re.compile(OVER_UNDER)
_SHORT_WORD = re.compile(SHORT)
_LAST_WORD = re.compile(TRAILING)
_COUNTS = re.compile("(?:[0-9]+ )*")


class Term(NamedTuple):
    """What one wording and line mean; `_turned` where the row's home and away are the event's away and home.

    A subject is empty, `home`, `away` or a player's normalised name; `kind.subject` says which of them it is.
    """

    kind: Kind
    with_draw: Kind  # of a moneyline, if its book quotes a draw; of all others, `kind`
    two_way: int  # a moneyline whose ways depend on the book: 1; in a sport with draws: 2
    side: int  # place in the outcomes of `with_draw`, -1 if it does not read
    side_turned: int
    subject: str
    subject_turned: str
    threshold: int  # hundredths; 0 where there is none
    threshold_turned: int
    verdict: int  # 0, or the code of the reason that lies in wording and line alone
    teams: Teams


class _Market(NamedTuple):
    """What a market type says; the tuples have one entry a side of `SIDES`, and -1 at the end for none."""

    kind: Kind
    with_draw: Kind
    usable: bool
    two_way: int
    positional: bool  # its outcomes are teams
    team: int  # home or away, where its name says whose it is
    implied: int  # the side of a selection that names only the subject
    renamed: tuple[int, ...]
    place: tuple[int, ...]
    fixed: int | None  # its own line, hundredths


class _Said(NamedTuple):
    """A selection text, read; `forms` with aliases: the whole, without its last number, without numbers, the rest."""

    forms: tuple[str, str, str, str]
    word: int  # the side that a word of it names
    rest: str  # beside that word, as written
    bare: str  # all but numbers, as written


class _Heard(NamedTuple):
    """A selection in a game between two teams."""

    team: int
    word: int
    beside: bool  # a team is named beside the word


class _Memory(dict[_K, _V]):
    """Answers by question; emptied when it is full, so that it never outgrows a long run."""

    def __init__(self, answer: Callable[[_K], _V]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, key: _K) -> _V:
        value = self._answer(key)
        if len(self) >= _MOST:
            self.clear()
        self[key] = value
        return value


def _market(key: Wording) -> _Market:
    """Read a market type: sport, league, market type, segment and stat."""
    sport, league, market_type, segment, stat = (text or "" for text in key)
    found = catalog.meaning(sport, market_type, stat, segment)
    kind = kind_of(found)
    splits = found.family == "moneyline"
    with_draw = three_way(kind) if splits else kind
    outcomes = with_draw.outcomes
    two_way = 2 if splits and catalog.sport(sport).can_draw(league) else int(splits)
    return _Market(
        kind=kind,
        with_draw=with_draw,
        usable=found.usable,
        two_way=two_way,
        positional="home" in outcomes,
        team=place_of(found.team_side),
        implied=place_of(found.default_outcome),
        renamed=tuple(renamed_sides(found)),
        place=(*(outcomes.index(side) if side in outcomes else -1 for side in SIDES), -1),
        fixed=None if found.fixed_line is None else round(found.fixed_line * 100),
    )


def _name(key: tuple[str | None, str | None]) -> str:
    """Read a team's name: sport and text."""
    sport, text = key
    name = catalog.normalise(text or "")
    return catalog.team_aliases(sport or "").get(name, name)


def _without_numbers(text: str, whole: str) -> tuple[str, str]:
    """Give a text's name without its last number, and without all numbers at its end; `whole` is with them."""
    backwards = text[::-1]
    numbers = _LAST_NUMBERS.match(backwards)
    if numbers is None:
        return whole, whole
    number = _LAST_NUMBER.match(backwards)
    shorter = catalog.normalise(text[: len(text) - number.end()]) if number else whole
    return shorter, catalog.normalise(text[: len(text) - numbers.end()])


def _beside(bare: str, found: re.Match[str]) -> str:
    """Give what stands before an over or under, else what stands after it and its count."""
    before = found if found.start() else _SIDE_WORD.search(bare, 1)
    return bare[: before.start()] if before else _COUNTS.sub("", bare[found.end() :], count=1)


def _worded(whole: str, bare: str) -> tuple[str, str]:
    """Find the word that names a side, and the rest."""
    if phrase := catalog.words().get(bare):
        return phrase, ""
    if found := _SIDE_WORD.search(bare):
        return found[1], _beside(bare, found)
    if found := _SHORT_WORD.match(whole):
        return _TYPED_OVER_UNDER[found[1]], ""
    if found := _LAST_WORD.search(bare):
        return found[1], bare[: found.start()]
    return "", ""


def _said(key: tuple[str | None, str | None]) -> _Said:
    """Read a selection text: sport and text."""
    sport, text = key[0] or "", key[1] or ""
    aliases = catalog.team_aliases(sport)
    whole = catalog.normalise(text)
    shorter, bare = _without_numbers(text, whole)
    word, rest = _worded(whole, bare)
    forms = (aliases.get(whole, whole), aliases.get(shorter, shorter), aliases.get(bare, bare), aliases.get(rest, rest))
    return _Said(forms, place_of(word), rest, bare)


def _typed(text: str | None) -> tuple[int, int]:
    """Read a source's selection type: its team or draw, and its other word."""
    parts = [SIDES.index(part) for part in (text or "").strip().lower().split("_") if part in SIDES]
    teams = [part for part in parts if part <= AWAY]
    words = [part for part in parts if part > AWAY]
    if len(teams) > 1 or len(words) > 1:
        return -1, -1
    return (teams or [-1])[0], (words or [-1])[0]


def _leads(part: str, whole: str) -> bool:
    """Whether one name is the first words of another and not all of them."""
    return part != "" and whole.startswith(f"{part} ")


def _heard(said: _Said, home: str, away: str) -> _Heard:
    """Tell which of two teams a selection names; a team's own name may end in a word that names a side."""
    if home == away:
        return _Heard(-1, said.word, beside=False)
    whole, shorter, _, rest = said.forms
    is_home, is_away = home != "" and home in said.forms, away != "" and away in said.forms
    short = False
    if not is_home and not is_away:
        part = said.forms[3] if said.word >= 0 else said.forms[2]
        is_home, is_away = _leads(part, home), _leads(part, away)
        short = is_home != is_away
    team = -1 if is_home == is_away else HOME if is_home else AWAY
    full = shorter != "" and (whole in (home, away) or shorter in (home, away))
    beside = team >= 0 and rest != "" and (rest in (home, away) or (short and said.word >= 0))
    return _Heard(team, -1 if full else said.word, beside=beside)


def _side(market: _Market, heard: _Heard, typed: tuple[int, int]) -> tuple[int, bool]:
    """Give the place in `SIDES` that is meant, and whether text and type name two outcomes."""
    team, word = typed
    if market.positional:
        spoken = heard.word if heard.word >= 0 else heard.team
        given = word if word >= 0 else team
    else:
        spoken, given = heard.word, word
    spoken, given = market.renamed[spoken], market.renamed[given]
    if spoken < 0:
        return (given if given >= 0 else market.implied), False
    differ = given >= 0 and spoken != given
    return spoken, differ and market.place[spoken] >= 0 and market.place[given] >= 0


def _owner(market: _Market, heard: _Heard, type_team: int, label: str | None) -> tuple[int, bool]:
    """Give the team of a team's market, and whether two sources of it differ."""
    named = {heard.team, market.team, type_team, _LABELS.get((label or "").lower(), -1)} & {HOME, AWAY}
    return max(named, default=-1), len(named) > 1


def _other(side: int) -> int:
    """The side in the eyes of the other team."""
    return HOME + AWAY - side if side in (HOME, AWAY) else side


def _hundredths(line: float | None) -> int | None:
    """A line in whole hundredths; None if it is missing or none."""
    if line is None or not abs(line) < 2e6:
        return None
    near = round(line * 100.0)
    return near if abs(line * 100.0 - near) < 1e-6 and abs(near) <= 1e8 else None


def _thresholds(market: _Market, line: float | None, side: int, turned: int) -> tuple[int, int, bool]:
    """Thresholds of a line straight and turned, and whether the line fits the market."""
    if market.fixed is not None:
        return market.fixed, market.fixed, True
    if not market.kind.has_line:
        return 0, 0, line is None or line == 0.0 or math.isnan(line)
    near = _hundredths(line)
    if near is None:
        return 0, 0, False
    if not market.kind.spread:
        return near, near, True
    return (-near if side == 0 else near), (-near if turned == 0 else near), True


class Reader:
    """Reads wordings one at a time, and remembers the parts of them.

    Examples
    --------
    >>> wording = ("e", "basketball", "nba", "Boston Celtics", "LA Lakers", "spread", None, "Lakers +3.5", *[None] * 4)
    >>> term = Reader().read(wording, 3.5)
    >>> term.kind.family, term.kind.outcomes[term.side], term.threshold, term.verdict
    ('spread', 'away', 350, 0)
    >>> term.teams
    ('boston celtics', 'los angeles lakers')
    """

    def __init__(self, off: frozenset[int] = frozenset()) -> None:
        self._off = off  # codes of guards that are switched off
        self._markets = _Memory(_market)
        self._names = _Memory(_name)
        self._selections = _Memory(_said)
        self._types = _Memory(_typed)

    def read(self, wording: Wording, line: float | None) -> Term:
        """Say what a price's texts and line mean.

        Parameters
        ----------
        wording
            The texts in the order of `markets.WORDING`; null and empty are one.
        line
            As the source gives it, of the row's own side.
        """
        _, sport, league, home, away, market_type, segment, selection, selection_type, player, stat, label = wording
        market = self._markets[sport, league, market_type, segment, stat]
        said = self._selections[sport, selection]
        teams = self._names[sport, home], self._names[sport, away]
        heard = _heard(said, *teams)
        typed = self._types[selection_type]
        meant, conflict = _side(market, heard, typed)
        side, side_turned = market.place[meant], market.place[_other(meant)]

        subject = subject_turned = ""
        lost = False
        if market.kind.subject == "player":
            subject = catalog.normalise(player or "") or (said.rest if heard.word >= 0 else said.bare)
            subject_turned, lost = subject, not subject
        elif market.kind.subject == "team":
            owner, differ = _owner(market, heard, typed[0], label)
            conflict, lost = conflict or differ, owner < 0
            if not lost:
                subject, subject_turned = SIDES[owner], SIDES[_other(owner)]
        elif heard.beside and heard.word >= 0 and not market.positional:
            lost = True

        threshold, threshold_turned, fits = _thresholds(market, line, side, side_turned)
        stray = not fits and (market.kind.has_line or _NO_LINE not in self._off)
        verdict = _NO_LINE if stray else 0
        if not market.usable:
            verdict = _UNMAPPED
        elif conflict and _CONFLICT not in self._off:
            verdict = _CONFLICT
        elif side < 0 or lost:
            verdict = _UNKNOWN
        return Term(
            market.kind, market.with_draw, market.two_way, side, side_turned, subject, subject_turned,
            threshold, threshold_turned, verdict, teams,
        )  # fmt: skip


def lead(rows: Mapping[Teams, int]) -> Teams:
    """Choose how an event names its teams, from the number of rows that name them each way.

    Pairs that name both teams come first, then the one of most rows, then the smaller.

    Examples
    --------
    >>> lead({("b", "a"): 2, ("a", "b"): 2, ("a", ""): 9})
    ('a', 'b')
    """
    return min(rows, key=lambda teams: (not all(teams), -rows[teams], teams), default=("", ""))


def turned(teams: Teams, lead: Teams) -> bool:
    """Whether a row names the teams the other way round than its event.

    Examples
    --------
    >>> turned(("a", "b"), ("b", "a")), turned(("", "b"), ("b", "a")), turned(("a", "b"), ("a", "c"))
    (True, True, False)
    """
    (home, away), (first, last) = teams, lead
    if home == first or away == last:
        return False
    return (home == last and last != "") or (away == first and first != "")
