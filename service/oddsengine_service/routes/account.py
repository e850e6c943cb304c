"""Account: rights of its key, usage, and management of its keys. A key manages the keys of its own account."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from oddsengine_service.accounts.keys import (
    FEATURES,
    MOST_GRACE,
    MOST_NAME,
    NAME_PATTERN,
    BeyondError,
    Record,
    UnfitError,
    UnknownKeyError,
)
from oddsengine_service.accounts.limits import period
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Param, Query
from oddsengine_service.tiers import TIERS
from oddsengine_service.wire.envelopes import Body, Data

_ALL_BOOKS = 999  # stands for all books in responses


class NewKey(Body):
    """Name and tier of a new key."""

    name: Annotated[
        str,
        Meta(max_length=MOST_NAME, description="A display name.", extra_json_schema={"pattern": NAME_PATTERN}),
    ] = ""
    tier: Annotated[
        str | None,
        Meta(
            description="The tier of the request's key (default), or a lower one.",
            extra_json_schema={"enum": [*TIERS, None]},
        ),
    ] = None


class RateLimit(msgspec.Struct):
    """Request limits."""

    requests_per_minute: int
    max_books: Annotated[int, Meta(description="999 is all.")]


class Streaming(msgspec.Struct):
    """Concurrent streams."""

    enabled: bool
    max_connections: int


class Masked(msgspec.Struct):
    """A key without its secret."""

    id: str
    id_masked: str


class AccountLimits(msgspec.Struct):
    """All limits in one place."""

    requests_per_minute: int
    max_streams: int
    odds_delay_seconds: int
    max_books: Annotated[int, Meta(description="999 is all.")]


class Account(msgspec.Struct):
    """Rights of this key."""

    key_id: str
    tier: str
    rate_limit: RateLimit
    features: Annotated[dict[str, bool], Meta(description="Whether the key may use each feature.")]
    streaming: Streaming
    key: Masked
    limits: AccountLimits
    add_ons: list[str]


class CurrentRate(msgspec.Struct):
    """The current minute."""

    per_minute: int
    remaining: int
    resets_at: datetime


class Requests(msgspec.Struct):
    """Answered requests of the account, UTC; weeks begin on Monday."""

    today: int
    this_week: int
    this_month: int
    limit: CurrentRate


class Streams(msgspec.Struct):
    """Streams of the account."""

    active: int
    max: int


class Period(msgspec.Struct):
    """The current month."""

    start: datetime
    end: datetime


class AccountUsage(msgspec.Struct):
    """Usage of the account."""

    requests: Requests
    streams: Streams
    period: Period


class Key(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A key; its secret is shown once, when it is created."""

    id: str
    id_masked: str
    name: str
    tier: str
    is_active: bool
    created_at: datetime
    updated_at: datetime
    old_secret_until: Annotated[
        datetime | None, Meta(description="Until when the secret that the last rotation replaced is valid.")
    ] = None
    key: str | None = None


class OldKey(msgspec.Struct):
    """The secret that a rotation replaced; `revoked` unless it has a grace period."""

    id: str
    revoked: bool
    expires_at: datetime


class RotatedKey(Key, kw_only=True):
    """A key with its new secret, repeated as `new_key`, and the state of the old one."""

    new_key: Key
    old_key: OldKey


class DeletedKey(msgspec.Struct):
    """A revoked key."""

    deleted: bool
    key_id: str
    message: str


def _key(record: Record, key: str | None = None) -> Key:
    return Key(
        id=record.id,
        id_masked=record.mask,
        name=record.name,
        tier=record.terms.tier,
        is_active=record.active,
        created_at=record.created_at,
        updated_at=record.updated_at,
        old_secret_until=record.old_until,
        key=key,
    )


@contextmanager
def _managing(context: Context) -> Iterator[None]:
    """Turn errors of the key store into problems. Raises `Problem` 404 if the account was signed in elsewhere."""
    if context.caller.signed_in:
        raise Problem(404, "not_found", "this node has no keys: the application that it is part of signs its users in")
    try:
        yield
    except (UnfitError, UnknownKeyError, BeyondError) as error:
        raise Problem(error.status, error.code, str(error)) from None


class RotateQuery(Query):
    """Parameters of a rotation."""

    grace_seconds: Annotated[int, Param("How long the old secret stays valid, in seconds.", low=0, high=MOST_GRACE)] = 0


# ---- endpoints ----


def account(context: Context) -> Any:
    caller = context.caller
    masked, add_ons = Masked(caller.key, caller.key), list[str]()
    if not caller.signed_in:
        with _managing(context):
            record = context.node.keys.record(caller.key, caller)
        masked, add_ons = Masked(record.id, record.mask), ["streaming"] if record.terms.streaming else []
    books = _ALL_BOOKS if caller.tier.books is None else caller.tier.books
    return data(
        context,
        Account(
            caller.key,
            caller.tier.id,
            RateLimit(caller.rate, books),
            {name: name in caller.features for name in sorted(FEATURES)} | {"streaming": caller.streams > 0},
            Streaming(caller.streams > 0, caller.streams),
            masked,
            AccountLimits(caller.rate, caller.streams, caller.tier.delay, books),
            add_ons,
        ),
    )


def usage(context: Context) -> Any:
    caller, limits = context.caller, context.node.limits
    room = limits.room(caller.account, caller.rate)
    minute = CurrentRate(room.limit, room.remaining, datetime.fromtimestamp(room.reset, UTC))
    streams = Streams(limits.streams(caller.account), caller.streams)
    requests = Requests(*limits.used(caller.account), minute)
    return data(context, AccountUsage(requests, streams, Period(*period(context.node.clock.time()))))


def keys(context: Context) -> Any:
    with _managing(context):
        return data(context, [_key(record) for record in context.node.keys.list(context.caller.account)])


def create(context: Context) -> Any:
    with _managing(context):
        made = context.node.keys.create_like(context.caller, context.body.tier, context.body.name)
    return data(context, _key(made.record, made.key))


def revoke(context: Context) -> Any:
    with _managing(context):
        record = context.node.keys.revoke(context.path["id"], context.caller)
    return data(context, DeletedKey(deleted=True, key_id=record.id, message="The key was revoked."))


def rotate(context: Context) -> Any:
    with _managing(context):
        made = context.node.keys.rotate(context.path["id"], context.caller, context.query.grace_seconds)
    key = _key(made.record, made.key)
    until = made.record.old_until
    old = OldKey(id=key.id, revoked=until is None, expires_at=until or key.updated_at)
    return data(context, RotatedKey(**msgspec.structs.asdict(key), new_key=key, old_key=old))


_TAG = "Account"
endpoints = (
    Endpoint("/account", account, "Rights of this key", _TAG, Data[Account], cache="never"),
    Endpoint("/account/usage", usage, "Usage of the account", _TAG, Data[AccountUsage], cache="never"),
    Endpoint(
        "/account/keys", keys, "All keys of the account", _TAG, Data[list[Key]], cache="never",
        doc="Includes revoked keys. Secrets are returned only when a key is created or rotated.",
    ),
    Endpoint(
        "/account/keys", create, "Create a key", _TAG, Data[Key], method="POST", body=NewKey, cache="never", status=201,
        doc=f"The new key has the rights of the request's key, or of a lower tier: {', '.join(TIERS)}.",
    ),
    Endpoint(
        "/account/keys/{id}", revoke, "Revoke a key", _TAG, Data[DeletedKey], method="DELETE", cache="never",
        doc="Permanent, and effective within a second. A key may revoke itself.",
    ),
    Endpoint(
        "/account/keys/{id}/rotate", rotate, "Rotate a key", _TAG, Data[RotatedKey], RotateQuery, method="POST",
        cache="never",
        doc="The new secret is returned once. The old one stops working within a second, or after `grace_seconds`. A "
        "key may rotate itself, and keys that do not have more rights. The key's records are kept.",
    ),
)  # fmt: skip
