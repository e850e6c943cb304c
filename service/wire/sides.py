"""Links of opportunities with sides: to a book's site in a US state."""

from typing import Any

import msgspec

from oddsengine import catalog


def with_links_in(row: Any, state: str) -> Any:
    """A row whose links lead to the books' sites in a state."""
    changed: dict[str, Any] = {}
    for name in ("side1", "side2", "side3"):
        side: Any = getattr(row, name, None)
        links = getattr(side, "deep_links", None)
        if links is not None:
            links = {book: catalog.localised(link, state) for book, link in links.items()}
            changed[name] = msgspec.structs.replace(side, deep_links={book: url for book, url in links.items() if url})
        elif getattr(side, "deep_link", None):
            changed[name] = msgspec.structs.replace(side, deep_link=catalog.localised(side.deep_link, state) or None)
    return msgspec.structs.replace(row, **changed) if changed else row
