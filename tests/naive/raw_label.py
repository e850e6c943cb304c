"""The meaning of one raw label at a time, in plain Python: the slow twin of `oddsengine.identity.raw_labels`.

It reads the catalog and nothing else of the package. Which way round an event names its teams (`lead`, `swapped`) and
how many ways a moneyline has is decided over many rows, and left to the test.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES
from oddsengine.identity.traits import MarketKind

SIDES = ("home", "draw", "away", "none", "over", "under", "yes", "no", "odd", "even")
HOME, AWAY = 0, 2
RawLabel = tuple[str | None, ...]
"""Texts of one price, in the order of `identity.raw_labels.RAW_LABEL`."""
Teams = tuple[str, str]
"""Home and away as they compare: normalised, the sport's aliases applied; empty where nothing is given."""

_TYPED_OVER_UNDER = {"o": "over", "u": "under"}
_LABELS = {"home": HOME, "away": AWAY}
_UNKNOWN = CODES["unknown_outcome"]
_CONFLICT = CODES["side_conflict"]
_UNMAPPED = CODES["unmapped"]
_NO_LINE = CODES["no_line"]

# White space is Unicode's White_Space, not that of Python's \s. Numbers at the end of a text as one would write them:
# exponential on many numbers in a row, so the twin itself reads backwards.
_BLANK = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
LAST_NUMBER = re.compile(rf"[{_BLANK}(\[]+[+-]?\d++(?:[.,]\d++)?[)\]]?[{_BLANK}]*\Z")
LAST_NUMBERS = re.compile(rf"(?:[{_BLANK}(\[]+(?:[+-]?\d++(?:[.,]\d++)?[{_BLANK}/,]*)+[)\]]?)+[{_BLANK}]*\Z")
_LAST_BACKWARDS = re.compile(rf"[{_BLANK}]*+[)\]]?+\d++(?:[.,]\d++)?+[+-]?+[{_BLANK}(\[]++")
_NUMBER = r"\d++(?:\.\d)?+[+-]?+"
_ALL_BACKWARDS = re.compile(rf"[{_BLANK}]*+(?:[)\]]?+(?:[{_BLANK}/,]*+{_NUMBER})+[{_BLANK}(\[]++)++")
_SIDE_WORD = re.compile(r"(?:^| )(over|under)(?: |$)")
_SHORT_WORD = re.compile(r"^([ou]) ?\d")
_LAST_WORD = re.compile(r"(?:^| )(yes|no|odd|even)$")
_COUNTS = re.compile("(?:[0-9]+ )*")


def meaning(sport: str, market_type: str, stat: str, segment: str) -> catalog.MarketType:
    """What a market type says; where it names no period, the source's own segment does."""
    found = catalog.market_type(market_type, sport, stat)
    if found.usable and found.period == catalog.FULL_GAME and segment not in ("", catalog.FULL_GAME):
        return catalog.market_type(f"{segment} {market_type}", sport, stat)
    return found


def kind_of(found: catalog.MarketType) -> MarketKind:
    """What a market type is to guards and detectors."""
    family = catalog.families().get(found.family)
    lined = found.has_line or found.fixed_line is not None
    fraction = found.fraction if found.fraction > 0 else 0.0
    margin = family is not None and family.cuts == "margin"
    return MarketKind(
        found.period, found.family, found.outcomes, lined, margin, found.is_prop, found.subject, fraction,
        found.stat_category,
    )  # fmt: skip


def place_of(side: str) -> int:
    """Place of a side, -1 for none."""
    return SIDES.index(side) if side else -1


class Term(NamedTuple):
    """What one raw label and line mean; `_swapped` where the row's home and away are the event's away and home.

    A subject is empty, `home`, `away` or a player's normalised name; `kind.subject` says which of them it is.
    """

    kind: MarketKind
    with_draw: MarketKind  # of a moneyline, if its book quotes a draw; of all others, `kind`
    two_way: int  # a moneyline whose ways depend on the book: 1; in a sport with draws: 2
    side: int  # place in the outcomes of `with_draw`, -1 if it does not read
    side_swapped: int
    subject: str
    subject_swapped: str
    threshold: int  # hundredths; 0 where there is none
    threshold_swapped: int
    verdict: int  # 0, or the code of the reason that lies in raw label and line alone
    teams: Teams


class _Market(NamedTuple):
    """What a market type says; the tuples have one entry a side of `SIDES`, and -1 at the end for none."""

    kind: MarketKind
    with_draw: MarketKind
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


_TEAM_WORDS = {"home": HOME, "away": AWAY}


class _Heard(NamedTuple):
    """A selection in a game between two teams."""

    team: int
    word: int
    beside: bool  # a team is named beside the word


def _market(key: RawLabel) -> _Market:
    """Read a market type: sport, league, market type, segment and stat."""
    sport, league, market_type, segment, stat = (text or "" for text in key)
    found = meaning(sport, market_type, stat, segment)
    kind = kind_of(found)
    splits = found.family == "moneyline"
    with_draw = kind._replace(family="moneyline_3way", outcomes=("home", "draw", "away")) if splits else kind
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
        renamed=(*(place_of(dict(found.renames).get(side, side)) for side in SIDES), -1),
        place=(*(outcomes.index(side) if side in outcomes else -1 for side in SIDES), -1),
        fixed=None if found.fixed_line is None else round(found.fixed_line * 100),
    )


def _name(key: tuple[str | None, str | None]) -> str:
    """Read a team's name: sport and text."""
    sport, text = key
    name = catalog.normalise(text or "")
    return catalog.team_aliases(sport or "").get(name, name)


def without_numbers(text: str) -> tuple[str, str]:
    """Give a text's name without its last number, and without all numbers at its end."""
    found = [pattern.match(text[::-1]) for pattern in (_LAST_BACKWARDS, _ALL_BACKWARDS)]
    shorter, bare = (text[: len(text) - (match.end() if match else 0)] for match in found)
    return catalog.normalise(shorter), catalog.normalise(bare)


def _beside(bare: str, found: re.Match[str]) -> str:
    """Give what stands before an over or under, else what stands after it and its count."""
    before = found if found.start() else _SIDE_WORD.search(bare, 1)
    return bare[: before.start()] if before else _COUNTS.sub("", bare[found.end() :], count=1)


def _worded(whole: str, bare: str) -> tuple[str, str]:
    """Find the word that names a side, and the rest."""
    if phrase := catalog.selection_words().get(bare):
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
    shorter, bare = without_numbers(text)
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
        return _Heard(_TEAM_WORDS.get(said.bare, -1), said.word, beside=False)
    whole, shorter, _, rest = said.forms
    is_home, is_away = home != "" and home in said.forms, away != "" and away in said.forms
    short = False
    if not is_home and not is_away:
        part = said.forms[3] if said.word >= 0 else said.forms[2]
        is_home, is_away = _leads(part, home), _leads(part, away)
        short = is_home != is_away
    team = -1 if is_home == is_away else HOME if is_home else AWAY
    team = team if team >= 0 else _TEAM_WORDS.get(said.bare, -1)
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


def _thresholds(market: _Market, line: float | None, side: int, swapped: int) -> tuple[int, int, bool]:
    """Thresholds of a line straight and swapped, and whether the line fits the market."""
    if market.fixed is not None:
        return market.fixed, market.fixed, True
    if not market.kind.has_line:
        return 0, 0, line is None or line == 0.0 or math.isnan(line)
    near = _hundredths(line)
    if near is None:
        return 0, 0, False
    if not market.kind.spread:
        return near, near, True
    return (-near if side == 0 else near), (-near if swapped == 0 else near), True


def read(raw_label: RawLabel, line: float | None) -> Term:
    """Say what a price's texts and line mean, with all guards on."""
    _, sport, league, home, away, market_type, segment, selection, selection_type, player, stat, label = raw_label
    market = _market((sport, league, market_type, segment, stat))
    said = _said((sport, selection))
    teams = _name((sport, home)), _name((sport, away))
    heard = _heard(said, *teams)
    if market.positional and heard.team < 0:
        heard = heard._replace(team={"1": HOME, "2": AWAY}.get(catalog.normalise(selection or ""), -1))
    typed = _typed(selection_type)
    meant, conflict = _side(market, heard, typed)
    side, side_swapped = market.place[meant], market.place[_other(meant)]

    subject = subject_swapped = ""
    lost = False
    if market.kind.subject == "player":
        subject = catalog.normalise(player or "") or (said.rest if heard.word >= 0 else said.bare)
        subject_swapped, lost = subject, not subject
    elif market.kind.subject == "team":
        owner, differ = _owner(market, heard, typed[0], label)
        conflict, lost = conflict or differ, owner < 0
        if not lost:
            subject, subject_swapped = SIDES[owner], SIDES[_other(owner)]
    elif heard.beside and heard.word >= 0 and not market.positional:
        lost = True

    threshold, threshold_swapped, fits = _thresholds(market, line, side, side_swapped)
    stray = not fits
    verdict = _NO_LINE if stray else 0
    if not market.usable:
        verdict = _UNMAPPED
    elif conflict:
        verdict = _CONFLICT
    elif side < 0 or lost:
        verdict = _UNKNOWN
    return Term(
        market.kind, market.with_draw, market.two_way, side, side_swapped, subject, subject_swapped,
        threshold, threshold_swapped, verdict, teams,
    )  # fmt: skip


def game(raw_label: RawLabel, teams: Teams) -> frozenset[str]:
    """The ids of the teams that a row names, as far as the catalog is certain of them."""
    sport = catalog.sport(raw_label[1] or "").id
    known = [catalog.certain_team(name, sport, raw_label[2] or "") for name in teams if name]
    return frozenset(team.id for team in known if team)


def lead(rows: Mapping[Teams, int]) -> Teams:
    """Choose how an event names its teams, from the number of rows that name them each way.

    Pairs that name both teams come first, then the one of most rows, then the smaller.
    """
    return min(rows, key=lambda teams: (not all(teams), -rows[teams], teams), default=("", ""))


def swapped(teams: Teams, lead: Teams) -> bool:
    """Whether a row names the teams the other way round than its event."""
    (home, away), (first, last) = teams, lead
    if home == first or away == last:
        return False
    return (home == last and last != "") or (away == first and first != "")
