"""Saved filters: named query parameters of a list."""

from typing import Annotated, Literal

from msgspec import Meta

from oddsengine.detection.kinds import KINDS
from oddsengine_service.wire.envelopes import Body

MOST_QUERY = 4000
List = Literal[*KINDS]  # type: ignore[valid-type]


class NewFilter(Body):
    """A list and its parameters."""

    list: List
    query: Annotated[
        str, Meta(max_length=MOST_QUERY, description="Its query string, such as `sport=soccer&min_ev=2`.")
    ] = ""


class Filter(NewFilter, kw_only=True, forbid_unknown_fields=False):
    """A saved filter."""

    name: str
