"""Marks of a key: hidden opportunities, and notes."""

from typing import Annotated

from msgspec import Meta

from oddsengine_service.routes.named import named
from oddsengine_service.wire.envelopes import Body


class Marking(Body):
    """How a bettor marked an opportunity."""

    hidden: bool = False
    note: Annotated[str, Meta(max_length=1000)] = ""


class Mark(Marking, kw_only=True, forbid_unknown_fields=False):
    """A marked opportunity."""

    id: str


endpoints = named(
    "/marks", "id", Mark, Marking, lambda new, name: Mark(id=name, hidden=new.hidden, note=new.note),
    ("Hidden opportunities and notes of this key", "Hide an opportunity or add a note", "Delete a mark"),
)  # fmt: skip
