"""Saved filters of a key: parameters of a list under a name."""

from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from oddsengine_service.endpoints import Context, Endpoint, data
from oddsengine_service.params import MOST_TEXT
from oddsengine_service.problems import invalid
from oddsengine_service.wire.envelopes import Data, Deleted

_TAG = "Saved"
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


def named(name: str) -> str:
    """Check the name of a record."""
    if name.strip() in ("", ".", "..") or len(name) > MOST_TEXT or any(ord(c) < 32 for c in name):
        raise invalid(f"name must be 1 to {MOST_TEXT} printable characters, not . or .., got {len(name)}")
    return name


def filters(context: Context) -> Any:
    """All saved filters of the key."""
    return data(context, context.node.records.all(context.caller.key, "filter", Filter))


def save(context: Context) -> Any:
    """Save a filter under a name, in the place of one that has it."""
    new: NewFilter = context.body
    try:
        parse_qsl(new.query, keep_blank_values=True, strict_parsing=bool(new.query), max_num_fields=50)
    except ValueError as error:
        raise invalid(f"query must be a query string: {error}") from None
    one = Filter(name=named(context.path["filterName"]), list=new.list, query=new.query)
    context.node.records.put(context.caller.key, "filter", one.name, one)
    return data(context, one)


def forget(context: Context) -> Any:
    """Delete a saved filter."""
    context.node.records.delete(context.caller.key, "filter", context.path["filterName"])
    return data(context, Deleted(deleted=True))


endpoints = (
    Endpoint("/filters", filters, "Saved filters of this key", _TAG, Data[list[Filter]], lasts="never"),
    Endpoint(
        "/filters/{filterName}", save, "Save a filter", _TAG, Data[Filter], method="PUT", body=NewFilter, lasts="never"
    ),
    Endpoint(
        "/filters/{filterName}", forget, "Delete a saved filter", _TAG, Data[Deleted], method="DELETE", lasts="never"
    ),
)  # fmt: skip
