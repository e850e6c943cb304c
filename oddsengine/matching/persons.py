"""Scores whether two names are the same person: tennis players and the like, and players of props within an event.

A name is parsed into words and a suffix (Jr, III). `Last, First` is reordered; otherwise words are paired in any order.
A single letter is an initial and pairs with any word starting with it; two or three letters written with points or
hyphens (J.J., J-W.) are initials too. At least one long word must be equal. Given names or initials that do not pair
mean different people, such as brothers.

Doubles pairs are two names separated by a slash, in any order.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.catalog.spelling import slug
from oddsengine.matching import words
from oddsengine.matching.postings import NameForm, Word

SURE, SPELLED, INITIAL, SURNAME = 1.0, 0.96, 0.94, 0.86
_PARTLY = 0.9  # one name has more words
_ACCEPT = 0.85  # minimum score of a player's name
_CLEAR = 0.02  # minimum advantage over the second best

_SUFFIXES = {"jr": "jr", "junior": "jr", "sr": "sr", "ii": "ii", "iii": "iii", "iv": "iv"}
_DOTTED = re.compile(r"\b[A-Za-z](?:[.\-][A-Za-z])+\.?(?=\s|$|,)|\b[A-Z](?:\.\s*[A-Z])+\.")
_QUOTED = re.compile(r"[\"\u201c\u201d'\u2018](\w[\w .]*)[\"\u201c\u201d'\u2019](?=\s|$)")
_BRACKET = re.compile(r"\s*[(\[][^)\]]*[)\]]\s*")
_SPELLINGS = (
    ("ae", "a"), ("oe", "o"), ("ue", "u"), ("sch", "sh"), ("tsch", "ch"), ("ph", "f"), ("th", "t"), ("x", "ks"),
    ("ck", "k"), ("c", "k"), ("q", "k"), ("y", "i"), ("j", "i"), ("w", "v"),
)  # fmt: skip
_DOUBLED = re.compile(r"(.)\1+")
_PARTNERS = re.compile(r"\s*(?:/|&|\+|;)\s*")


class Person(NamedTuple):
    """A parsed name: long words, initials, suffix."""

    words: tuple[str, ...]
    initials: str
    suffix: str


@lru_cache(maxsize=1 << 14)
def parse_person(text: str) -> Person:
    """Parse a person's name.

    Examples
    --------
    >>> parse_person("Porter Jr., Michael")
    Person(words=('michael', 'porter'), initials='', suffix='jr')
    >>> parse_person("J.J. Redick"), parse_person("Tsonga J-W.").initials
    (Person(words=('redick',), initials='jj', suffix=''), 'jw')
    """
    text = _QUOTED.sub(" ", _BRACKET.sub(" ", text))
    last, comma, first = text.partition(",")
    if comma and catalog.normalise(first) in _SUFFIXES:
        text = f"{last} {first}"
    elif comma:
        text = f"{first} {last}"
    letters = [letter for dotted in _DOTTED.findall(text) for letter in catalog.normalise(dotted) if letter != " "]
    tokens = ["saint" if token == "st" else token for token in catalog.normalise(_DOTTED.sub(" ", text)).split()]
    suffix = ""
    for token in tokens[1:]:
        suffix = _SUFFIXES.get(token, suffix)
    tokens = [token for at, token in enumerate(tokens) if at == 0 or token not in _SUFFIXES]
    letters += [token for token in tokens if len(token) == 1]
    return Person(tuple(token for token in tokens if len(token) > 1), "".join(letters), suffix)


def _given(word: str) -> str:
    return words.SHORT_NAMES.get(word, word)


@lru_cache(maxsize=1 << 14)
def _folded(word: str) -> str:
    """Normalise transliterations of a word. A single letter is not enough: Jermall and Jermell are two people."""
    for spelled, plain in _SPELLINGS:
        word = word.replace(spelled, plain)
    return _DOUBLED.sub(r"\1", word.removeprefix("i") if word.startswith("ie") else word)


def _pair(one: str, other: str) -> float:
    if one == other:
        return SURE
    if _given(one) == _given(other):
        return SPELLED
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.startswith(short) and len(long) - len(short) > 2:
        return SPELLED
    return SPELLED if len(short) >= 4 and _folded(one) == _folded(other) else 0.0


def _align(one: Person, other: Person) -> tuple[float, int, list[str], list[str]]:
    """Pair long words: return the score, the number of pairs, and the rest of each."""
    left, right = list(one.words), list(other.words)
    fit, equal = SURE, 0
    for near in (False, True):
        for word in tuple(left):
            pair = max(((_pair(word, candidate), candidate) for candidate in right), default=(0.0, ""))
            if pair[0] == SURE or (near and pair[0]):
                left.remove(word)
                right.remove(pair[1])
                fit = min(fit, pair[0])
                equal += 1
    return fit, equal, left, right


def _initials(letters: str, left: list[str]) -> list[str] | None:
    """Remove the words matched by initials; none if an initial has no match."""
    left = list(left)
    for letter in letters:
        word = next((word for word in left if word[0] == letter), None)
        if word is None:
            return None if left else []
        left.remove(word)
    return left


def _short_words(person: Person) -> Person:
    """Parse a first word of two letters as initials: JJ Redick."""
    if len(person.words) > 1 and len(person.words[0]) == 2 and not person.initials:
        return Person(person.words[1:], person.words[0], person.suffix)
    return person


def _one(one: Person, other: Person) -> float:
    fit, equal, left, right = _align(one, other)
    if not equal:
        return 0.0
    if one.initials and other.initials and not left and not right:
        short, long = sorted((one.initials, other.initials), key=len)
        same = long.startswith(short) or long.endswith(short)
        return min(fit, SURE if short == long else INITIAL) if same else 0.0
    if left and right:
        return 0.0
    surname_only = not (left or one.initials) or not (right or other.initials)
    if not left and not right:
        return fit if not (one.initials or other.initials) else min(fit, SURNAME if equal == 1 else _PARTLY)
    rest, letters = (left, other.initials) if left else (right, one.initials)
    own = one.initials if left else other.initials
    if letters:
        remaining = _initials(letters, rest)
        if remaining is None or (own and not own.startswith(letters[0])):
            return 0.0
        return min(fit, INITIAL if not remaining else _PARTLY)
    return min(fit, SURNAME if surname_only and equal == 1 else _PARTLY)


@lru_cache(maxsize=1 << 15)
def same(one: str, other: str) -> float:
    """Score whether two names are the same person.

    Examples
    --------
    >>> same("Zverev A.", "Alexander Zverev"), same("A. Zverev", "Mischa Zverev"), same("A. Zverev", "M. Zverev")
    (0.94, 0.0, 0.0)
    """
    first, second = parse_person(one), parse_person(other)
    if first.suffix and second.suffix and first.suffix != second.suffix:
        return 0.0
    fit = max(_one(a, b) for a in {first, _short_words(first)} for b in {second, _short_words(second)})
    return fit if first.suffix == second.suffix else min(fit, SPELLED)


@lru_cache(maxsize=1 << 15)
def likeness(one: str, other: str) -> float:
    """Score whether two entries, players or doubles pairs, are the same.

    Examples
    --------
    >>> likeness("Granollers / Zeballos", "Zeballos H/Granollers M"), likeness("A. Zverev", "Zverev / Melo")
    (0.86, 0.0)
    """
    first, second = _PARTNERS.split(one), _PARTNERS.split(other)
    if len(first) != len(second) or len(first) > 2:
        return 0.0
    if len(first) == 1:
        return same(one, other)
    straight = min(same(first[0], second[0]), same(first[1], second[1]))
    return max(straight, min(same(first[0], second[1]), same(first[1], second[0])))


def forms(text: str) -> list[NameForm]:
    """Return the forms of an entry for `Postings`: each reading of each player."""
    names = _PARTNERS.split(text)
    readings = {reading.words for name in names for one in [parse_person(name)] for reading in (one, _short_words(one))}
    return [NameForm(tuple(_word(word, len(names)) for word in dict.fromkeys(each))) for each in sorted(readings)]


def _word(word: str, players: int) -> Word:
    """Return keys of which words that `_pair` accepts have one in common."""
    keys = {f"={_given(word)}"} | ({f"~{_folded(word)}", word[:4]} if len(word) >= 4 else set())
    return Word(frozenset(f"{players} {key}" for key in keys))


class Player(NamedTuple):
    """The matching known name; None if there is none or more than one."""

    name: str | None
    score: float
    reason: str
    candidates: tuple[str, ...] = ()


def match_player(name: str, known_names: Iterable[str]) -> Player:
    """Match the player of a prop to the known names of the event.

    Examples
    --------
    >>> match_player("J. Brown", ["Jaylen Brown", "Jayson Tatum"]).name
    'Jaylen Brown'
    >>> match_player("M. Morris", ["Marcus Morris", "Markieff Morris"])
    Player(name=None, score=0.94, reason='fits more than one name', candidates=('Marcus Morris', 'Markieff Morris'))
    """
    names = sorted(set(known_names))
    if name in names:
        return Player(name, SURE, "the same name", (name,))
    plain = catalog.normalise(name)
    scored = ((SURE if catalog.normalise(text) == plain else same(name, text), text) for text in names)
    fits = sorted((fit for fit in scored if fit[0] >= _ACCEPT), key=lambda fit: (-fit[0], fit[1]))
    if not fits:
        return Player(None, 0.0, "no name fits")
    best, match = fits[0]
    # Any other match is a second person, unless the best is ahead by an equal given name or suffix.
    rivals = tuple(text for fit, text in fits if fit > best - _CLEAR or (best < SPELLED and fit))
    if len(rivals) > 1:
        return Player(None, best, "fits more than one name", rivals)
    return Player(match, best, "the same name" if best == SURE else "names alike", (match,))


def partners(text: str) -> tuple[str, ...]:
    """Split a doubles pair into its players."""
    return tuple(part for part in _PARTNERS.split(text) if part.strip())


def surname(text: str) -> str:
    """Guess the surname: the part before a comma or initials, else the last word.

    Examples
    --------
    >>> surname("Zverev A."), surname("Alexander Zverev"), surname("Auger-Aliassime, Felix")
    ('zverev', 'zverev', 'auger_aliassime')
    """
    last, comma, _ = text.partition(",")
    name = parse_person(last if comma else text)
    if comma or name.initials:
        return "_".join(name.words) or slug(text)
    return name.words[-1] if name.words else slug(text)
