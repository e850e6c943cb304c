"""Endpoint declarations, used for routing, request parsing and OpenAPI."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import msgspec

from oddsengine_service.board.views import Board
from oddsengine_service.http.params import MOST_OFFSET, Query
from oddsengine_service.node import Node
from oddsengine_service.tiers import Caller

_encode = msgspec.json.Encoder().encode


class Targets(Protocol):
    """What endpoints need to know of where alerts are sent."""

    def check_target(self, target: str) -> None:
        """Raise `ValueError` if nothing can be sent there."""

    def test(self, account: str, alert: Any) -> Sequence[str]:
        """Send a test message. Returns what went wrong."""


class Context(NamedTuple):
    """A parsed and authorised request."""

    caller: Caller
    query: Any  # of the class that the endpoint declares
    path: Mapping[str, str]
    body: Any
    board: Board  # the caller's board, delayed if the tier is
    node: Node
    ignored: Sequence[str]  # names of undeclared parameters
    root: str = ""  # where the application is mounted
    targets: Targets | None = None  # where alerts are sent


class Answer(NamedTuple):
    """A response that is not plain JSON with the status of its endpoint."""

    body: bytes
    status: int = 200
    type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One method of one path.

    `answer` runs in a worker thread and returns an `Answer`, or a value that is encoded as JSON. A key is `needed`,
    `optional` or `none`, or it is the token of an `operator`; `query_key` allows it in the query. `cache` says what the
    response depends on in addition to the request and the caller's rights: the `board` version, or more (`never`: not
    cached; `records`: what the key stores, which in a cluster the writer changes; neither is cached).
    """

    path: str
    answer: Callable[[Context], Any]
    summary: str
    tag: str
    returns: Any
    query: type[Query] = Query
    method: str = "GET"
    key: str = "needed"
    query_key: bool = False
    feature: str = ""
    body: type[msgspec.Struct] | None = None
    most_body: int = 1 << 20  # maximum size of it, in bytes
    cache: str = "board"
    status: int = 200
    errors: Sequence[int] = ()  # statuses in addition to those implied by the declaration
    doc: str = ""
    path_kinds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # JSON Schema of path parameters
    job_kind: Callable[[Context], Hashable] | None = None  # equal for requests of equal cost, None: unknown; see `Pool`
    outgoing: bool = False  # `answer` waits for other hosts, so it gets a thread of its own
    stream: Callable[..., Awaitable[None]] | None = None  # serves a stream in the event loop, instead of `answer`
    sends: Mapping[str, Any] = field(default_factory=dict)  # payload of each message of a stream, by name
    takes: Mapping[str, Any] = field(default_factory=dict)  # the same for messages that a client sends
    envelope: type[msgspec.Struct] | None = None  # fields added to every message that it sends

    @property
    def writes(self) -> bool:
        """Whether a request changes the account's keys or records."""
        return self.method != "GET" and (self.cache == "records" or self.tag == "Account")

    @property
    def cacheable(self) -> bool:
        return self.cache not in ("never", "records")

    def response(self, context: Context) -> Answer:
        """The encoded response."""
        result = self.answer(context)
        return result if isinstance(result, Answer) else Answer(_encode(result), self.status)


def no_answer(_: Context) -> Any:
    """The answer of endpoints that have none."""
    raise NotImplementedError


NOWHERE = Endpoint("(none)", no_answer, "No endpoint", "", dict)  # the endpoint of requests that no route matches


# ---- envelopes ----


def answer_meta(context: Context, unknown: Mapping[str, Sequence[str]] | None = None, **meta: Any) -> dict[str, Any]:
    """Build `meta` of a response, with unknown ids and ignored parameters."""
    if unknown:
        meta["unknown"] = dict(unknown)
    if context.ignored:
        meta["ignored"] = list(context.ignored)
    return meta


def damaged(context: Context, *kinds: str) -> dict[str, Any]:
    """`damaged` of a response's `meta`, if records of the key could not be read."""
    names = context.node.records.damaged(context.caller.key, kinds)
    return {"damaged": names} if names else {}


def data(
    context: Context, contents: Any, unknown: Mapping[str, Sequence[str]] | None = None, **meta: Any
) -> dict[str, Any]:
    more = answer_meta(context, unknown, **meta)
    return {"success": True, "data": contents, **({"meta": more} if more else {})}


def page(
    context: Context, rows: Any, count: int, total: int, meta: Mapping[str, Any], cursor: str | None = None,
    before: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The paginated envelope of one page of `count` rows, after `before` rows (default: its offset)."""
    limit, offset = context.query.limit, context.query.offset
    more = (offset if before is None else before) + count < total
    by_offset = more and context.query.get("cursor") is None
    following = offset + count if by_offset and offset + count <= MOST_OFFSET else None
    pages: dict[str, Any] = {"limit": limit, "offset": offset, "has_more": more, "next_offset": following}
    if cursor is not None or hasattr(context.query, "cursor"):
        pages["next_cursor"] = cursor if more else None
    return {"success": True, "data": rows, "pagination": pages, "meta": {"count": count, "total": total, **meta}}
