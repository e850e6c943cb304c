"""Books that a caller names: a slip of the pen is refused, before it turns into a result without a row."""

from collections.abc import Iterable, Mapping
from typing import Any

from oddsengine import catalog
from oddsengine.references import Reference


def absent(named: Iterable[str], books: Iterable[str]) -> list[str]:
    """Those of some names that are none of the books, however either is spelled."""
    ids = {catalog.book(book).id for book in books}
    return sorted(name for name in set(named) if catalog.book(name).id not in ids)


def refused(word: str, named: Iterable[str], books: Iterable[str]) -> ValueError:
    """The complaint about names that stand in one of the caller's words."""
    return ValueError(f"{word}: no prices of {', '.join(named)}; the books are {', '.join(sorted(books)) or 'none'}")


def check(
    books: Iterable[str], wanted: Iterable[str] | None, sharp: Any, commission: Mapping[str, float] | None
) -> None:
    """Refuse names that are neither books of a table nor of the catalog; what only the table lacks may be asked for.

    Parameters
    ----------
    books
        Those of the table.
    wanted, sharp, commission
        As in the public finders.
    """
    known = [*books, *catalog.books()]
    order = () if sharp is None else Reference.of(sharp).order
    for word, given in (("books", wanted), ("sharp", order), ("commission", commission)):
        if strange := absent(given or (), known):
            raise refused(word, strange, books)
