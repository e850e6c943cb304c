"""Envelopes around the rows of a response, and field types that several bodies share."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

T = TypeVar("T")
M = TypeVar("M")
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. An unknown field is an error, since it may be misspelled."""


class GameState(msgspec.Struct, frozen=True):
    """State of a game."""

    period: str | None
    clock: str | None
    score_home: int | None
    score_away: int | None


class Pagination(msgspec.Struct):
    """Position of a page. `next_offset` is null on the last page and at the maximum offset; a cursor has no maximum."""

    limit: int
    offset: int
    has_more: bool
    next_offset: int | None
    next_cursor: str | UnsetType | None = UNSET


class AnswerMeta(msgspec.Struct):
    """Notes on a response: unknown ids, by parameter; undeclared parameters."""

    unknown: dict[str, list[str]] | UnsetType = UNSET
    ignored: list[str] | UnsetType = UNSET


Damaged = Annotated[
    list[str] | UnsetType,
    Meta(description="Names of records that cannot be read: restore them from a backup, or delete them."),
]


class RecordsMeta(AnswerMeta, kw_only=True):
    """Notes on a response with records of a key."""

    damaged: Damaged = UNSET


class Counted(AnswerMeta, kw_only=True):
    """Numbers of rows on the page and in total."""

    count: int
    total: int


class ListMeta(Counted, kw_only=True):
    """Contents of a list."""

    source: str
    last_update: str | None
    filters: dict[str, Any]


class DataWith(msgspec.Struct, Generic[T, M], kw_only=True):
    """The data envelope with its own `meta`."""

    success: bool
    data: T
    meta: M | UnsetType = UNSET


class Data(DataWith[T, AnswerMeta], Generic[T], kw_only=True):
    """The data envelope."""


class Deleted(msgspec.Struct):
    """Confirmation of a deletion."""

    deleted: bool


class PageWith(msgspec.Struct, Generic[T, M], kw_only=True):
    """The paginated envelope with its own `meta`."""

    success: bool
    data: list[T]
    pagination: Pagination
    meta: M


class Page(PageWith[T, Counted], Generic[T], kw_only=True):
    """The paginated envelope."""
