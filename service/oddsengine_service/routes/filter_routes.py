"""Saved filters of a key."""

from urllib.parse import parse_qsl

from oddsengine_service.bettors.alerts import query_of
from oddsengine_service.errors import invalid
from oddsengine_service.routes.named import named
from oddsengine_service.routes.opportunities import lists
from oddsengine_service.wire.saved_filters import Filter, NewFilter

LISTS = {one.path.rpartition("/")[2]: one for one in lists.endpoints}
"""The endpoints of opportunities, by the name that a filter uses."""


def checked(new: NewFilter, name: str) -> Filter:
    """A filter to save. Raises `Problem` 400 if its list cannot be queried with it."""
    try:
        parse_qsl(new.query, keep_blank_values=True, strict_parsing=bool(new.query), max_num_fields=50)
    except ValueError as error:
        raise invalid(f"query must be a query string: {error}") from None
    query_of(new, LISTS[new.list])
    return Filter(name=name, list=new.list, query=new.query)


endpoints = named(
    "/filters", "filterName", Filter, NewFilter, checked,
    ("Saved filters of this key", "Save a filter", "Delete a saved filter"),
)  # fmt: skip
