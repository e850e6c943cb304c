"""Endpoints for records that a key stores under its own names."""

from collections.abc import Callable
from typing import Any

import msgspec

from oddsengine_service.errors import invalid, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, damaged, data
from oddsengine_service.wire.envelopes import Data, DataWith, Deleted, RecordsMeta
from oddsengine_service.wire.texts import MOST_TEXT


def checked_name(parameter: str, name: str) -> str:
    """The name of a record. Raises `Problem` 400 if it is not valid."""
    if name.strip() in ("", ".", "..") or len(name) > MOST_TEXT or any(ord(c) < 32 for c in name):
        got = quoted(name) if len(name) <= MOST_TEXT else f"{len(name):,} characters"
        raise invalid(f"{parameter} must be 1 to {MOST_TEXT} printable characters, not . or .., got {got}")
    return name


def named(
    path: str, parameter: str, record_type: type[msgspec.Struct], body_type: type[msgspec.Struct],
    make: Callable[[Any, str], msgspec.Struct], summaries: tuple[str, str, str],
) -> tuple[Endpoint, ...]:  # fmt: skip
    """GET, PUT and DELETE of records of one kind; `make` builds a record from the body and the name."""
    kind, tag, one = record_type.__name__.lower(), "Saved", f"{path}/{{{parameter}}}"

    def every(context: Context) -> Any:
        records = context.node.records.all(context.caller.key, kind, record_type)
        return data(context, records, **damaged(context, kind))

    def put(context: Context) -> Any:
        name = checked_name(parameter, context.path[parameter])
        record = make(context.body, name)
        context.node.records.put(context.caller.key, kind, name, record)
        return data(context, record)

    def delete(context: Context) -> Any:
        context.node.records.delete(context.caller.key, kind, context.path[parameter])
        return data(context, Deleted(deleted=True))

    return (
        Endpoint(path, every, summaries[0], tag, DataWith[list[record_type], RecordsMeta], cache="records"),  # type: ignore[valid-type]
        Endpoint(one, put, summaries[1], tag, Data[record_type], method="PUT", body=body_type, cache="records"),  # type: ignore[valid-type]
        Endpoint(one, delete, summaries[2], tag, Data[Deleted], method="DELETE", cache="records"),
    )
