"""Scores whether two names in a league are the same team, from 0 (no) to 1 (certain).

A name is parsed once into words, without insignificant ones (fc), and marks: women, age group (u21), second team (II,
B, Jong). Different marks are different teams. One and the same unknown word added to both teams, or a bracket added to
each, makes another contest (`other_contest`): Arsenal SRL and Chelsea SRL. Then, in order:

1. Both names are catalog teams: the same or not.
2. Words are paired: equal, prefix (Sheff, Sheffield), nearly equal if long (`rapidfuzz`), initials (QPR). Words with
   digits pair only if equal.
3. Words left on both sides: different teams. On one side: it depends on the words. Mascots and kinds of club are often
   omitted; a compass point or `state` denotes another team; a word shared by several teams (Dynamo, Sheffield) is not
   enough on its own.

For sports of individuals see `persons`.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from oddsengine import catalog
from oddsengine.matching import persons, words
from oddsengine.matching.postings import LONGEST_INITIALS, NameForm, Postings, Word

SURE, SHORTENED, PARTLY, VAGUE = 1.0, 0.92, 0.85, 0.6
_SPELLED, _ABBREVIATED, _LETTERS = 0.97, 0.94, 0.88
_RESOLVED, _NEXT_BEST = 0.9, 0.6  # minimum similarity to a catalog team, and maximum of the second best

_WITH_CLUBS = frozenset({"soccer", "esports", "basketball"})  # sports with short forms in `words.CLUBS`

_AGE = re.compile(r"\b(?:u|under|sub) ?(1[4-9]|2[0-3])\b")
_INVISIBLE = re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_BRACKETED = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
_GAME = re.compile(r"[(\[ ](?:game|gm|g) ?#?([12])[)\]]?\s*$", re.IGNORECASE)
_PITCHER = re.compile(r"\s*\([^()]*\w\W+\w{2,}[^()]*\)\s*$")
_PENDING = re.compile(
    r"^(?:winner|loser|w|l|runner up|qualifier|seed)\b.*\b(?:\d+|of|sf|qf|match|game|group|semi ?final)\b"
)
_SLOT = re.compile(r"^(?:[a-l]?[1-4][a-l]?|[wl]\d{1,3}|(?:1st|2nd|3rd)\b.*)$")


class Name(NamedTuple):
    """A parsed name. `words` are the significant ones, or all if none is."""

    words: tuple[str, ...]
    empty: tuple[str, ...]
    marks: frozenset[str]
    whole: str  # normalised, without marks
    game: str  # 1 or 2 if the name contains the game of a doubleheader


def pending(text: str) -> bool:
    """Whether a name is a placeholder for an undecided team.

    Examples
    --------
    >>> pending("TBD"), pending("Winner of Semi-Final 1"), pending("W. Michigan"), pending("")
    (True, True, False, True)
    """
    name = catalog.normalise(text)
    undecided = not name or name in words.PENDING or _PENDING.match(name) or _SLOT.match(name)
    return bool(undecided) and name != "g2"


def is_college(league: str) -> bool:
    return league.startswith(words.COLLEGES)


def has_mascots(sport: str, league: str) -> bool:
    """Whether the teams of a league are named by city and mascot."""
    return sport not in words.PERSONS and _kind(sport, league) == "team"


def _kind(sport: str, league: str) -> str:
    """Return whether the league has colleges, clubs, or teams with optional mascots."""
    return "college" if is_college(league) else "club" if sport == "soccer" else "team"


@lru_cache(maxsize=4096)
def _implied(league: str) -> frozenset[str]:
    """Return the marks shared by all teams of a league."""
    parts = league.replace("_", " ")
    marks = {f"u{age}" for age in _AGE.findall(parts)}
    if words.WOMENS_LEAGUES & set(parts.split()):
        marks.add("women")
    return frozenset(marks)


def _marks(tokens: list[str]) -> tuple[list[str], set[str]]:
    """Strip the parts of a name that denote another team of the club."""
    marks: set[str] = set()
    if tokens[-2:] == ["2nd", "xi"]:
        tokens, marks = tokens[:-2], {"second"}
    if len(tokens) > 1 and tokens[0] == "jong":
        tokens, marks = tokens[1:], {"second"}
    rest = []
    for at, token in enumerate(_stems(tokens, marks)):
        last = at > 0 and at == len(tokens) - 1
        if token in words.WOMEN or (last and token == "w"):
            marks.add("women")
        elif last and token in words.SECOND:
            marks.add("second")
        elif last and token == "iii":
            marks.add("third")
        elif last and token == "a" and len(tokens) == 2:
            marks.add("a side")
        else:
            rest.append(token)
    if len(rest) < len(tokens) and "women" in marks and len(rest) > 1 and rest[-1] in words.SECOND:
        rest.pop()
        marks.add("second")
    return rest, marks


def _stems(tokens: list[str], marks: set[str]) -> list[str]:
    """Strip endings that mark a team of women, where words have no spaces between them."""
    stems = []
    for token in tokens:
        ending = next((one for one in words.WOMEN_ENDINGS if token.endswith(one) and token != one), "")
        marks |= {"women"} if ending else set()
        stems.append(token.removesuffix(ending))
    return stems


def _college(tokens: list[str]) -> list[str]:
    scores = []
    for at, token in enumerate(tokens):
        if token == "st":
            scores.append("saint" if at == 0 or tokens[at - 1] == "mount" else "state")
        elif at == 0 and len(tokens) > 1:
            scores.append(words.COLLEGE_WORDS.get(token, token))
        else:
            scores.append(token)
    return scores


def _college_name(tokens: list[str]) -> list[str]:
    """Expand the name of a college; a mascot after it stays."""
    for size in range(len(tokens), 0, -1):
        meant = words.COLLEGE_NAMES.get(" ".join(tokens[:size]))
        if meant is not None and all(token in words.MASCOTS for token in tokens[size:]):
            return [*meant.split(), *tokens[size:]]
    return tokens


def _written_out(sport: str, tokens: list[str]) -> list[str]:
    """Normalise spellings of a name, with or without insignificant words."""
    tables = (words.CLUBS, words.COUNTRIES) if sport in _WITH_CLUBS else (words.COUNTRIES,)
    if sport == "soccer" and tokens == ["ireland"]:
        return ["republic", "of", "ireland"]
    spelled = [words.SYNONYMS.get(token, token) for token in tokens]
    for form in (tokens, spelled, [t for t in tokens if t not in words.EMPTY]):
        for table in tables:
            if named := table.get(" ".join(form)):
                return named.split()
    return spelled


@lru_cache(maxsize=1 << 14)
def parse_team(sport: str, league: str, text: str) -> Name:
    """Parse a team's name.

    Examples
    --------
    >>> parse_team("soccer", "friendlies", "Bayern München II")
    Name(words=('bayern', 'munich'), empty=(), marks=frozenset({'second'}), whole='bayern munich', game='')
    """
    name = _read(sport, league, text)
    if not text.isascii() and (spaced := _INVISIBLE.sub(" ", text)) != text:
        # An invisible character may stand within a word or between two: what has more marks is meant.
        name = max(name, _read(sport, league, spaced), key=lambda name: len(name.marks))
    return name


def _read(sport: str, league: str, text: str) -> Name:
    game = ""
    if sport == "baseball":
        if match := _GAME.search(text):
            game, text = match[1], text[: match.start()]
        text = _PITCHER.sub("", text)
    name = catalog.normalise(text).replace("a and m", "am")
    marks = {f"u{age}" for age in _AGE.findall(name)}
    tokens, more = _marks(_AGE.sub(" ", name).split())
    marks |= more
    if is_college(league):
        tokens = _college_name(_college(tokens))
    else:
        tokens = _written_out(sport, tokens)
    telling = tuple(token for token in tokens if token not in words.EMPTY)
    empty = tuple(token for token in tokens if token in words.EMPTY)
    if not telling:
        telling, empty = tuple(tokens), ()
    return Name(telling, empty, frozenset(marks) - _implied(league), " ".join(tokens), game)


def _pair(one: str, other: str) -> float:
    """Score two words: nearly equal, or one a prefix of the other. `_word` has the keys that such words share."""
    if not (one.isalpha() and other.isalpha()):
        return 0.0
    short, long = sorted((one, other), key=len)
    if len(short) >= 3 and long.startswith(short) and len(long) - len(short) > 1:
        return _ABBREVIATED
    allowed = 2 if len(short) >= 10 else 1 if len(short) >= 6 else 0
    if allowed and Levenshtein.distance(one, other, score_cutoff=allowed) <= allowed:
        return _SPELLED
    return 0.0


def _may_be_initials(word: str) -> bool:
    return 1 < len(word) <= LONGEST_INITIALS and word.isalpha()


def _initials(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Whether one left-over word is made of the first letters of the others."""
    return len(short) == 1 and len(short[0]) == len(long) and _may_be_initials(short[0]) and short[0] == _firsts(long)


def _firsts(tokens: tuple[str, ...]) -> str:
    return "".join(word[0] for word in tokens)


def _word(word: str) -> Word:
    """Return keys of which words that pair have one in common.

    Of six letters with one different, the first or the last three are equal; of ten with two different, or else three
    between, moved by at most one place.
    """
    keys = {word}
    if word.isalpha():
        keys |= {f"{word[:3]}-"} if len(word) >= 3 else set()
        keys |= {f"-{word[-3:]}"} if len(word) >= 6 else set()
        keys |= {f"-{word[at : at + 3]}-" for at in (2, 3, 4)} if len(word) >= 10 else set()
    return Word(frozenset(keys), _may_be_initials(word))


def _form(name: Name) -> NameForm:
    whole = tuple(name.whole.split())
    same, made, maker = {"=" + "".join(name.words)}, set(), set()
    for tokens in (name.words, whole):
        if len(tokens) == 1 and _may_be_initials(tokens[0]):
            made.add(tokens[0])
        elif 1 < len(tokens) <= LONGEST_INITIALS:
            maker.add(_firsts(tokens))
    posted = {*same, *("1" + each for each in made), *("2" + each for each in maker)}
    sought = {*same, *("2" + each for each in made), *("1" + each for each in maker)}
    return NameForm(tuple(_word(word) for word in dict.fromkeys(name.words)), frozenset(posted), frozenset(sought))


def forms(sport: str, league: str, text: str) -> list[NameForm]:
    """Return the forms of a name: `likeness` is zero for names that `Postings` does not find by them.

    Names of different marks or numbers of players have nothing in common.
    """
    if sport in words.PERSONS:
        return persons.forms(text)
    made = [_form(name) for name in _forms(sport, league, text)]
    marks = "+".join(sorted(parse_team(sport, league, text).marks))
    return [_marked(form, marks) for form in made] if marks else made


def _marked(form: NameForm, marks: str) -> NameForm:
    def add(keys: frozenset[str]) -> frozenset[str]:
        return frozenset(f"{key} {marks}" for key in keys)

    return NameForm(tuple(Word(add(w.keys), w.initials) for w in form.words), add(form.posted), add(form.sought))


def _align(one: Name, other: Name) -> tuple[float, list[str], list[str], list[str]]:
    """Pair words: return the score, which of `one` are paired, and the rest of each."""
    left, right = list(one.words), list(other.words)
    paired, fit = [], SURE
    for word in one.words:
        if word in right:
            left.remove(word)
            right.remove(word)
            paired.append(word)
    for word in tuple(left):
        best = max(((_pair(word, candidate), candidate) for candidate in right), default=(0.0, ""))
        if best[0]:
            left.remove(word)
            right.remove(best[1])
            paired.append(word)
            fit = min(fit, best[0])
    return fit, paired, left, right


def _rest(paired: list[str], rest: list[str], bare: Name, kind: str) -> float:
    """Score the words that only one side has; `bare` are the words of the other."""
    mascot = kind != "club" and all(word in words.MASCOTS for word in rest)
    if kind == "college" or mascot:
        return SHORTENED if mascot else 0.0
    if any(word in words.TELLING for word in rest):
        return 0.0
    stem = " ".join(paired)
    if stem in words.SHARED or stem in words.NATIONS or all(word in words.KINDS for word in paired):
        return VAGUE
    if all(word in words.KINDS for word in rest):
        return VAGUE if any(word in {"fc", "afc"} for word in bare.empty) else SHORTENED
    return PARTLY


def _compare(one: Name, other: Name, kind: str) -> float:
    if one.words == other.words or "".join(one.words) == "".join(other.words):
        return SURE
    if one.whole in words.NATIONS and other.whole in words.NATIONS:
        return 0.0
    fit, paired, left, right = _align(one, other)
    if not left and not right:
        return fit
    if not paired:
        whole = tuple(one.whole.split()), tuple(other.whole.split())
        initials = _initials(one.words, other.words) or _initials(other.words, one.words)
        return _ABBREVIATED if initials or _initials(*whole) or _initials(whole[1], whole[0]) else 0.0
    if left and right:
        if kind == "college":
            return 0.0
        spelled_out = _initials(tuple(left), tuple(right)) or _initials(tuple(right), tuple(left))
        return min(fit, _ABBREVIATED) if spelled_out else min(fit, _two_letters(left, right))
    return min(fit, _rest(paired, left or right, other if left else one, kind))


def _two_letters(left: list[str], right: list[str]) -> float:
    """Score two letters against a word that starts with the first and contains the second: Mg, Magnitogorsk."""
    short, long = sorted((" ".join(left), " ".join(right)), key=len)
    fits = len(short) == 2 and short.isalpha() and " " not in long and short[0] == long[0] and short[1] in long[1:]
    return _LETTERS if fits else 0.0


@cache
def _catalog_names(league: str) -> Mapping[str, tuple[Name, ...]]:
    """Return the catalog's teams of a league, with all forms of their names."""
    forms = {}
    for each in catalog.teams():
        if each.league == league:
            texts = (each.name, *each.aliases, *each.in_league)
            forms[each.name] = tuple(dict.fromkeys(parse_team(each.sport, league, text) for text in texts))
    return forms


@cache
def _catalog_index(league: str) -> Postings:
    index = Postings()
    for team, each in _catalog_names(league).items():
        index.add(team, map(_form, each))
    return index


@lru_cache(maxsize=1 << 14)
def catalog_team(sport: str, league: str, text: str) -> str:
    """Return the catalog name of a team; empty if none or several match.

    Examples
    --------
    >>> catalog_team("basketball", "nba", "BOS Celtics"), catalog_team("baseball", "mlb", "New York")
    ('Boston Celtics', '')
    """
    teams, name, kind = _catalog_names(league), parse_team(sport, league, text), _kind(sport, league)
    for form in (text, name.whole):
        entry = catalog.team(form, sport, league)
        if entry and (entry.league == league or sport == "soccer" or league.startswith(f"{entry.league}_")):
            return entry.name
    near = set(_catalog_index(league).find([_form(name)])) if teams else ()
    fits = sorted(((max(_compare(name, form, kind) for form in teams[each]), each) for each in near), reverse=True)
    if fits and fits[0][0] >= _RESOLVED and (len(fits) == 1 or fits[1][0] < _NEXT_BEST):
        return fits[0][1]
    return ""


def _forms(sport: str, league: str, text: str) -> tuple[Name, ...]:
    name = catalog_team(sport, league, text)
    if name:
        return (parse_team(sport, league, text), parse_team(sport, league, name))
    return (parse_team(sport, league, text),)


@lru_cache(maxsize=1 << 15)
def likeness(sport: str, league: str, one: str, other: str) -> float:
    """Score whether two names of a league are the same team.

    Examples
    --------
    >>> likeness("soccer", "england_premier_league", "Man Utd", "Manchester City")
    0.0
    >>> likeness("soccer", "", "Kelty", "Kelty Hearts"), likeness("soccer", "", "Dynamo", "Dynamo Brest")
    (0.85, 0.6)
    """
    if sport in words.PERSONS:
        return persons.likeness(one, other)
    first, second = parse_team(sport, league, one), parse_team(sport, league, other)
    if first.marks != second.marks or {first.game, second.game} == {"1", "2"}:
        return 0.0
    teams = catalog_team(sport, league, one), catalog_team(sport, league, other)
    if all(teams):
        return SURE if teams[0] == teams[1] else 0.0
    kind = _kind(sport, league)
    return max(_compare(a, b, kind) for a in _forms(sport, league, one) for b in _forms(sport, league, other))


def other_contest(sport: str, league: str, home: tuple[str, str], away: tuple[str, str]) -> bool:
    """Whether one spelling of a pair of teams names another contest than the other.

    Examples
    --------
    >>> other_contest("soccer", "", ("Arsenal", "Arsenal SRL"), ("Chelsea", "Chelsea SRL"))
    True
    >>> other_contest("soccer", "", ("Arsenal", "Arsenal FC"), ("Chelsea", "Chelsea FC"))
    False
    """
    return _added(sport, league, *home, *away) or _added(sport, league, *home[::-1], *away[::-1])


def _added(sport: str, league: str, home: str, home2: str, away: str, away2: str) -> bool:
    """Whether the second spelling of each team has a word that makes it another contest."""
    more = _more(sport, league, home, home2), _more(sport, league, away, away2)
    if not all(more):
        return False
    if more[0] & more[1] & words.CONTESTS and sport != "esports":
        return True
    if sport in words.PERSONS or not (_within(sport, league, home, home2) and _within(sport, league, away, away2)):
        return False
    return not more[0].isdisjoint(more[1]) or all(map(_bracketed, more, (home2, away2)))


def _bracketed(more: frozenset[str], text: str) -> bool:
    """Whether a bracket has a word that only this spelling has, other than two letters, such as a state."""
    inside = " ".join(one or other for one, other in _BRACKETED.findall(text))
    return any(len(word) > 2 for word in catalog.normalise(inside).split() if word in more)


def _within(sport: str, league: str, one: str, other: str) -> bool:
    """Whether the second spelling of a team has all words of the first."""
    others = parse_team(sport, league, other).words
    return all(
        any(word == each or _pair(word, each) for each in others) for word in parse_team(sport, league, one).words
    )


@lru_cache(maxsize=1 << 14)
def _more(sport: str, league: str, one: str, other: str) -> frozenset[str]:
    """Return the words of the second spelling of a team that may make it another contest."""
    tokens = catalog.normalise(other).split()
    if sport in words.PERSONS:
        return frozenset(tokens) - frozenset(catalog.normalise(one).split())
    own = parse_team(sport, league, one).whole.split()
    known = {*own, *_words_of(sport, league, catalog_team(sport, league, other))}
    neutral = words.KINDS | words.MASCOTS | words.SHARED | words.NEUTRAL | words.WOMEN | words.SECOND
    neutral |= words.EMPTY if sport == "esports" else words.EMPTY - words.CONTESTS
    more = [
        word for word in parse_team(sport, league, other).whole.split() if word not in known and word not in neutral
    ]
    more = [word for word in more if not _short(word) or word in words.CONTESTS]
    return frozenset(word for word in more if not any(_pair(word, each) for each in known))


def _short(word: str) -> bool:
    """Whether a word is two Latin letters, such as a state."""
    return len(word) == 2 and word.isascii() and word.isalpha()


@cache
def _words_of(sport: str, league: str, name: str) -> frozenset[str]:
    """Return the words of all forms of a catalog team's name."""
    if not name:
        return frozenset()
    forms = _catalog_names(league).get(name) or [
        parse_team(sport, league, text)
        for each in catalog.teams()
        if (each.sport, each.name) == (sport, name)
        for text in (each.name, *each.aliases, *each.in_league)
    ]
    return frozenset(word for form in forms for word in form.whole.split())
