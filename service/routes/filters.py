"""Saved filters of a key: named query parameters of a list."""

from typing import Annotated, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from oddsengine_service.problems import invalid
from oddsengine_service.routes.named import named

MOST_QUERY = 4000
List = Literal["ev", "arbitrage", "low_hold", "middles"]


class NewFilter(msgspec.Struct):
    """A list and its parameters."""

    list: List
    query: Annotated[
        str, Meta(max_length=MOST_QUERY, description="Its query string, such as `sport=soccer&min_ev=2`.")
    ] = ""


class Filter(NewFilter, kw_only=True):
    """A saved filter."""

    name: str


def _checked(new: NewFilter, name: str) -> Filter:
    try:
        parse_qsl(new.query, keep_blank_values=True, strict_parsing=bool(new.query), max_num_fields=50)
    except ValueError as error:
        raise invalid(f"query must be a query string: {error}") from None
    return Filter(name=name, list=new.list, query=new.query)


endpoints = named(
    "/filters", "filterName", Filter, NewFilter, _checked,
    ("Saved filters of this key", "Save a filter", "Delete a saved filter"),
)  # fmt: skip
