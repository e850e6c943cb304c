"""Words in names of teams and players: synonyms, insignificant words, and words that denote another team of a club.

`catalog/team_words.toml` has the lists, and what each is for.
"""

from oddsengine.catalog import data_files

_SOURCE = data_files.toml("team_words.toml")


def _set(name: str) -> frozenset[str]:
    return frozenset(_SOURCE["sets"][name])


def _table(name: str) -> dict[str, str]:
    """Map words to the full form."""
    return {word: meaning for meaning, words in _SOURCE[name].items() for word in words}


PERSONS = _set("persons")
COLLEGES = tuple(_SOURCE["sets"]["colleges"])
WOMENS_LEAGUES = _set("womens_leagues")
WOMEN = _set("women")
WOMEN_ENDINGS = tuple(_SOURCE["sets"]["women_endings"])
CONTESTS = _set("contests")
NEUTRAL = _set("neutral")
SECOND = _set("second")
EMPTY = _set("empty")
KINDS = _set("kinds")
SHARED = _set("shared")
TELLING = _set("telling")
MASCOTS = _set("mascots")
PENDING = _set("pending")
SYNONYMS = _table("synonyms")
COUNTRIES = _table("countries")
NATIONS = frozenset(COUNTRIES.values()) | _set("nations")
COLLEGE_NAMES = _table("college_names")
COLLEGE_WORDS = _table("college_words")
CLUBS = _table("clubs")
SHORT_NAMES = _table("short_names")
