"""Validate the book names a caller passes, so that a typo raises instead of returning an empty result."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from oddsengine import catalog
from oddsengine.bounds import excerpt, shortened
from oddsengine.pricing.references import Reference, commission_rates

V = TypeVar("V")


def absent(named: Iterable[str], books: Iterable[str]) -> list[str]:
    """Return the names that match none of the books, however they are spelled."""
    ids = {catalog.book(book).id for book in books}
    return sorted(name for name in set(named) if catalog.book(name).id not in ids)


def by_book(word: str, given: Mapping[Any, V]) -> dict[str, V]:
    """Return values by id of the book; raise if a name is no text, or two are spellings of one book."""
    named: dict[str, tuple[str, V]] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise ValueError(f"the keys of {word} must be book ids, got {excerpt(name)}")
        book = catalog.book(name).id
        if book in named:
            raise ValueError(f"{word}: {shortened(named[book][0])} and {shortened(name)} are one book, {book}")
        named[book] = name, value
    return {book: value for book, (_, value) in named.items()}


def refused(word: str, named: Iterable[str], books: Iterable[str]) -> ValueError:
    """Build the error for unknown names in a parameter."""
    missing = ", ".join(map(shortened, named))
    return ValueError(f"{word}: no prices of {missing}; the books are {', '.join(sorted(books)) or 'none'}")


def check(books: Iterable[str], own: Iterable[str] | None, sharp: Any, commission: Mapping[str, float] | None) -> None:
    """Raise if a name is neither a book of the table nor one of the catalog.

    Parameters
    ----------
    books
        Books of the table.
    wanted, sharp, commission
        As in the public finders.
    """
    allowed = [*books, *catalog.books()]
    order = () if sharp is None else Reference.parse(sharp).order
    for word, given in (("books", own), ("sharp", order), ("commission", commission_rates(commission))):
        if given and (strange := absent(given, allowed)):
            raise refused(word, strange, books)
