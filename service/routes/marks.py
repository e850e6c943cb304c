"""Marks of a key: opportunities that it hides, and notes."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from oddsengine_service.endpoints import Context, Endpoint, data
from oddsengine_service.routes.filters import named
from oddsengine_service.wire.envelopes import Data, Deleted

_TAG = "Saved"


class Marking(msgspec.Struct):
    """What a bettor makes of an opportunity."""

    hidden: bool = False
    note: Annotated[str, Meta(max_length=1000)] = ""


class Mark(Marking, kw_only=True):
    """A marked opportunity."""

    id: str


def marks(context: Context) -> Any:
    """All marks of the key."""
    return data(context, context.node.records.all(context.caller.key, "mark", Mark))


def mark(context: Context) -> Any:
    """Hide an opportunity or write a note on it."""
    new: Marking = context.body
    one = Mark(id=named(context.path["id"]), hidden=new.hidden, note=new.note)
    context.node.records.put(context.caller.key, "mark", one.id, one)
    return data(context, one)


def unmark(context: Context) -> Any:
    """Delete a mark."""
    context.node.records.delete(context.caller.key, "mark", context.path["id"])
    return data(context, Deleted(deleted=True))


endpoints = (
    Endpoint("/marks", marks, "Hidden opportunities and notes of this key", _TAG, Data[list[Mark]], lasts="never"),
    Endpoint(
        "/marks/{id}", mark, "Hide an opportunity or note something", _TAG, Data[Mark], method="PUT", body=Marking,
        lasts="never",
    ),
    Endpoint("/marks/{id}", unmark, "Delete a mark", _TAG, Data[Deleted], method="DELETE", lasts="never"),
)  # fmt: skip
