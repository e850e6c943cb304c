"""Envelopes: what stands around the rows of an answer, and the types of fields that many bodies share."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

T = TypeVar("T")
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class GameState(msgspec.Struct, frozen=True):
    """How a game stands."""

    period: str | None
    clock: str | None
    score_home: int | None
    score_away: int | None


class Pagination(msgspec.Struct):
    """Where a page stands. `next_offset` is null on the last page and at the cap of offsets; a cursor has no cap."""

    limit: int
    offset: int
    has_more: bool
    next_offset: int | None
    next_cursor: str | UnsetType | None = UNSET


class AnswerMeta(msgspec.Struct):
    """Notes on an answer: unknown ids, by parameter; undeclared parameters."""

    unknown: dict[str, list[str]] | UnsetType = UNSET
    ignored: list[str] | UnsetType = UNSET


class Counted(AnswerMeta, kw_only=True):
    """How many are on the page, and in all."""

    count: int
    total: int


class ListMeta(Counted, kw_only=True):
    """What a list is of."""

    source: str
    last_update: str | None
    filters: dict[str, Any]


class Data(msgspec.Struct, Generic[T], kw_only=True):
    """The data envelope."""

    success: bool
    data: T
    meta: AnswerMeta | UnsetType = UNSET


class Deleted(msgspec.Struct):
    """What was deleted is gone."""

    deleted: bool


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """The paginated envelope."""

    success: bool
    data: list[T]
    pagination: Pagination
    meta: Counted
