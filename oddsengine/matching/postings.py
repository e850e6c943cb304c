"""Finds names that may be alike without comparing all of them.

The likeness of two names is above zero only if every word of one pairs with a word of the other (`Jets`, `New York
Jets`), if all but one do and that one is made of initials (`Sporting KC`), or if the names have equal letters or
initials as a whole. Words that pair have a key in common. A name is therefore posted under the keys of all its words,
and again under those of its rarest word only. A new name looks up its rarest word among all words, which finds longer
names, and all its words among the rarest, which finds shorter ones. A frequent word (Home 1, Home 2 ...) costs nothing
while names have a rarer one.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

LONGEST_INITIALS = 5

_Index = dict[str, str | dict[str, None]]  # most keys have one name, which needs no table


class Word(NamedTuple):
    """The keys of a word; whether it may be the initials of other words."""

    keys: frozenset[str]
    initials: bool = False


class NameForm(NamedTuple):
    """A way to read a name: its words, and keys of the whole that are posted or looked up."""

    words: tuple[Word, ...]
    posted: frozenset[str] = frozenset()
    sought: frozenset[str] = frozenset()


class Postings:
    """Names by the keys of their forms."""

    def __init__(self) -> None:
        self._every: _Index = {}  # by every word
        self._rarest: _Index = {}  # by the rarest word, and by keys of the whole
        self._posted: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def add(self, name: str, forms: Iterable[NameForm]) -> None:
        """Post a name; its forms must have been looked up before, if at all."""
        every, rarest = set[str](), set[str]()
        for form in forms:
            rarest |= form.posted
            rarest.update(key for word in self._chosen(form) for key in word.keys)
            every.update(key for word in form.words for key in word.keys)
        self._posted[name] = tuple(every), tuple(rarest)
        for index, keys in ((self._every, every), (self._rarest, rarest)):
            for key in keys:
                names = index.setdefault(key, name)
                if isinstance(names, dict):
                    names[name] = None
                elif names != name:
                    index[key] = {names: None, name: None}

    def discard(self, name: str) -> None:
        for index, keys in zip((self._every, self._rarest), self._posted.pop(name), strict=True):
            for key in keys:
                names = index[key]
                if isinstance(names, dict):
                    del names[name]
                if not names or names == name:
                    del index[key]

    def find(self, forms: Iterable[NameForm]) -> Iterator[str]:
        """Yield all names that may be alike, and others, some of them repeatedly."""
        for form in forms:
            for word in self._chosen(form):
                for key in word.keys:
                    yield from _at(self._every, key)
            for word in form.words:
                for key in word.keys:
                    yield from _at(self._rarest, key)
            for key in form.sought:
                yield from _at(self._rarest, key)

    def _chosen(self, form: NameForm) -> list[Word]:
        """Return the rarest word, and the next if that may be initials, which pair with no word."""
        ordered = sorted(form.words, key=lambda word: sum(len(_at(self._every, key)) for key in word.keys))
        return ordered[: 2 if ordered and ordered[0].initials else 1]


def _at(index: _Index, key: str) -> Collection[str]:
    names = index.get(key, ())
    return (names,) if isinstance(names, str) else names
