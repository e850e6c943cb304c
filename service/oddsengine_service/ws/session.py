"""The endpoint `/ws`: the handshake, the first messages, and the messages of a client.

A client may send `subscribe`, which changes its subscription, and `ping`. Anything else gets an `error` message, and
the connection stays open; too many messages close it. Keys, limits, filters and rights are those of the stream.
"""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from oddsengine.detection.kinds import KINDS
from oddsengine_service import shared_params
from oddsengine_service.accounts.limits import Bucket
from oddsengine_service.api import Api
from oddsengine_service.errors import INTERNAL, Problem, invalid, must_be, origin_of, quoted
from oddsengine_service.http.cors import Origins
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta
from oddsengine_service.http.middleware import refusal
from oddsengine_service.http.mismatch import decode
from oddsengine_service.http.params import MOST_FIELDS, Param, Words, text_of
from oddsengine_service.http.request import BASE, Request
from oddsengine_service.monitoring import log
from oddsengine_service.routes.stream import MinEv, MinProfit, Permit, slot, unknown_ids, wants_of
from oddsengine_service.shared_params import Places
from oddsengine_service.stream.connection import server_send
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.subscription import Subscription
from oddsengine_service.tiers import Caller, books_of, feature_above
from oddsengine_service.wire.envelopes import AnswerMeta
from oddsengine_service.wire.texts import MOST_TEXT
from oddsengine_service.ws.socket import BAD_KEY, NO_STREAMING, TOO_LARGE, TOO_MANY, Socket, kind_for
from oddsengine_service.ws.wire import WS, encoded
from oddsengine_service.ws.ws_messages import MESSAGES, BookRights, Pong, SocketConnected, SocketEnvelope, Subscribed
from oddsengine_service.ws.ws_protocol import MOST_MESSAGE

PATHS = (f"{BASE}/ws", "/ws")
CHANNELS = (*KINDS, "odds")
BURST, RATE = 30, 3.0  # messages of a client at once, and per second
_CLOSE = {401: BAD_KEY, 403: NO_STREAMING, 429: TOO_MANY, 503: 1013}
_POLICY = 1008


class FilterQuery(Places):
    """Filters of a connection, in its query and in `subscribe` messages."""

    sportsbook: shared_params.Sportsbook = None
    location: shared_params.Location = None
    location_unknown: shared_params.LocationUnknown = False
    market: shared_params.Market = None
    event: Annotated[Words, Param("Event ids.", name="event_id", aliases=("event",))] = None
    min_ev: MinEv = 2.0
    min_profit: MinProfit = 0.5
    stake: shared_params.Stake = None
    min_odds: shared_params.MinOdds = None
    max_odds: shared_params.MaxOdds = None
    terms: shared_params.Terms = None
    state: shared_params.State = None
    include: shared_params.Include = None


class SocketQuery(FilterQuery):
    """Parameters of `/ws`."""

    channels: Annotated[
        Words, Param(f"Any of {', '.join(CHANNELS)}; default: all that the tier includes.", choices=CHANNELS)
    ] = None
    resume: Annotated[bool, Param("True to receive the events since `from_seq` instead of a snapshot.")] = False
    from_seq: Annotated[
        int | None, Param("The `global_seq` of the last message that arrived.", low=0, high=1 << 53)
    ] = None
    subscription: Annotated[
        str | None, Param("The `subscription` of the last `subscribed` message, to resume on any gateway.")
    ] = None


_PLURALS = {
    "sport": "sports", "sportsbook": "sportsbooks", "league": "leagues", "market": "markets", "event": "eventIds",
}  # fmt: skip
_FILTERS = {_PLURALS.get(field.attribute, field.attribute): field for field in FilterQuery.declared.all}
Filters = msgspec.defstruct(
    "Filters", [(name, (list[str] if field.several else field.kind) | None, None) for name, field in _FILTERS.items()]
)
"""Filters of a `subscribe` message; missing ones are off, thresholds have their defaults."""


class ClientMessage(msgspec.Struct, kw_only=True):
    """A message from a client."""

    type: str
    channels: list[str] | None = None
    filters: Filters | UnsetType | None = UNSET  # type: ignore[valid-type]  # made of the query's fields


class Subscribe(msgspec.Struct, tag="subscribe", tag_field="type", kw_only=True):
    """Replace the channels and all filters."""

    channels: Annotated[list[Annotated[str, Meta(extra_json_schema={"enum": list(CHANNELS)})]], Meta(min_length=1)]
    filters: Filters | UnsetType | None = UNSET  # type: ignore[valid-type]  # made of the query's fields


class Ping(msgspec.Struct, tag="ping", tag_field="type"):
    """Ask for a `pong`."""


def refuse_plain(_: Context) -> Any:
    """Respond to a request without an upgrade. Raises `Problem` 426, always."""
    raise Problem(426, "upgrade_required", "connect with a WebSocket client: ws:// or wss://, not http://")


class Sockets:
    """Every WebSocket of a node, as an ASGI application."""

    def __init__(self, api: Api, origins: Origins) -> None:
        self._api, self._origins = api, origins

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one WebSocket until it ends."""
        request: Request = scope["state"]["request"]
        await receive()
        if not self._origins.allow(scope["headers"], request.host):
            text = "web pages of this origin may not connect; see [service] origins"
            whole = refusal(Problem(403, "origin_not_allowed", text), origin_of(request.host))
            whole.raw_headers += request.headers
            request.status = whole.status_code
            if "websocket.http.response" in (scope.get("extensions") or ()):
                await whole(scope, receive, send)  # as an HTTP response
            else:  # the server responds with 403
                await send({"type": "websocket.close", "code": _POLICY, "reason": "origin_not_allowed"})
            return
        await send({"type": "websocket.accept", "headers": request.headers})
        request.status, request.streamed = 101, True
        try:
            await self._serve(request, receive, server_send(scope, send))
        except Problem as problem:
            request.status = problem.status
            await _end(send, problem)
        except OSError:  # the client has disconnected
            request.status = 499
        except Exception as error:
            request.status = 500
            log.failure(request.ident, request.path, error)
            await _end(send, Problem(500, "internal_error", INTERNAL))

    async def _serve(self, request: Request, receive: Any, send: Any) -> None:
        api = self._api
        api.access.admit(request, api.routes["/ws"].endpoints["GET"])
        context = api.context(request)
        caller, query, wants = context.caller, context.query, _wants(context)
        hub = api.streams()
        given = query.subscription
        with slot(api, caller):
            if query.resume and (given == wants.hash if given else hub.holds(caller.account, wants)):
                if not await hub.reach(query.from_seq):
                    raise Problem(
                        503, "not_ready", "the update of your last message has not reached this node; retry later"
                    )
                wants = hub.resumable(wants, query.from_seq)
            missing = await api.pool.run(caller.account, lambda: unknown_ids(context))
            first = [_connected(context, wants, hub.subscribers.delivery.global_seq(api.node.engine.number))]
            first.append(_subscribed(context, wants, missing))
            subscriber = hub.subscribers.enter(
                send, caller.account, caller.key, Permit.for_request(api, request), WS, first, kind_for(send)
            )
            await hub.serve(subscriber, wants, Session(api, caller, subscriber).listen(receive))


class Session:
    """The messages of one client."""

    def __init__(self, api: Api, caller: Caller, subscriber: Subscriber) -> None:
        assert isinstance(subscriber.connection, Socket)
        self._api, self._caller = api, caller
        self._subscriber, self._socket = subscriber, subscriber.connection
        self._messages = Bucket(RATE, BURST, asyncio.get_running_loop().time())

    async def listen(self, receive: Any) -> None:
        """Process messages until the client disconnects."""
        while (received := await receive())["type"] != "websocket.disconnect":
            if self._messages.take_tokens(asyncio.get_running_loop().time(), 1.0) < 0.0:
                text = f"at most {BURST} messages at once and {RATE:g} a second are allowed"
                self._socket.refuse("rate_limited", WS.error("rate_limited", text))
                continue
            text = received.get("text")
            if text is not None and len(text) > MOST_MESSAGE:  # our own server does not deliver it
                self._socket.close(TOO_LARGE, "message too large")
                continue
            try:
                await self._answer(text)
            except Problem as problem:
                self._send(WS.error(problem.code, problem.message))

    def _send(self, body: bytes) -> None:
        self._api.streams().subscribers.delivery.send(body, self._subscriber)

    async def _answer(self, text: str | None) -> None:
        if text is None:
            raise invalid("messages must be text, got a binary message", "invalid_message")
        received: ClientMessage = decode(text, ClientMessage, "message", "invalid_message")
        if received.type == "ping":
            self._send(encoded(Pong()))
        elif received.type == "subscribe":
            await self._subscribe(received, _ignored(text))
        elif received.type in ("auth", "authenticate"):
            raise invalid("already authenticated during the handshake", "already_authenticated")
        else:
            raise invalid(f"type must be subscribe or ping, got {quoted(received.type)}", "unknown_message_type")

    async def _subscribe(self, received: ClientMessage, ignored: list[str]) -> None:
        api, caller = self._api, self._caller
        api.refuse(ignored, _KNOWN)
        if not received.channels:
            raise invalid(f"channels is required: one or more of {', '.join(CHANNELS)}", "missing_channels")
        room = api.node.limits.count_request(caller.account, caller.rate)
        if not room.allowed:
            raise Problem(429, "rate_limited", f"{room.limit} requests per minute reached")
        context = Context(caller, _query(received), {}, None, api.node.engine, api.node, ignored)
        wants = _wants(context)
        missing = await api.pool.run(caller.account, lambda: unknown_ids(context))
        if not self._socket.gone:
            api.streams().change(self._subscriber, wants, [_subscribed(context, wants, missing)])


_KNOWN = (*ClientMessage.__struct_fields__, *(f"filters.{name}" for name in Filters.__struct_fields__))


def _ignored(text: str) -> list[str]:
    """The fields of a `subscribe` message that have no meaning, for `meta.ignored`."""
    fields = _raw_fields(text)
    chosen = _raw_fields(fields["filters"]) if "filters" in fields else {}
    names = [name for name in fields if name not in ClientMessage.__struct_fields__]
    names += [f"filters.{name}" for name in chosen if name not in Filters.__struct_fields__]
    return [name[:MOST_TEXT] for name in names[:MOST_FIELDS]]


def _raw_fields(text: str | bytes) -> Mapping[str, msgspec.Raw]:
    """The fields of an object or null, whose values may be numbers or texts that nothing can hold."""
    return decode(text, dict[str, msgspec.Raw] | None, "message", "invalid_message") or {}


def _query(received: ClientMessage) -> SocketQuery:
    """Convert a `subscribe` message to the equivalent query."""
    query, channels = SocketQuery(), tuple(dict.fromkeys(received.channels or ()))
    if unknown := [word for word in channels if word not in CHANNELS]:
        raise invalid(must_be("channels", SocketQuery.declared["channels"].allowed, quoted(unknown[0])))
    query.channels = channels
    for name, field in _FILTERS.items():
        value = getattr(received.filters, name, None)
        if value not in (None, [], "") and (read := field.read(name, text_of(name, value))) != ():
            setattr(query, field.attribute, read)
    return query


def _wants(context: Context) -> Subscription:
    query: SocketQuery = context.query
    caller = context.caller
    chosen = query.channels
    for name in chosen or ():
        if name in KINDS and name not in caller.features:
            raise feature_above(name, caller.tier)
    kinds = frozenset(KINDS) & caller.features & frozenset(chosen or KINDS)
    return wants_of(
        context,
        odds=chosen is None or "odds" in chosen, kinds=kinds or None, wire=WS,
    )  # fmt: skip


def _connected(context: Context, wants: Subscription, number: int) -> bytes:
    caller, own = context.caller, books_of(context.caller.tier.id)
    chosen = context.query.channels
    return encoded(SocketConnected(
        message="connected", stream_id=f"str_{secrets.token_hex(8)}", tier=caller.tier.id,
        features={kind: kind in caller.features for kind in KINDS},
        channels=None if chosen is None else list(chosen), global_seq=number,
        books=BookRights(caller.tier.books or -1, None if own is None else sorted(own)),
        resumed=wants.since is not None,
    ))  # fmt: skip


def _subscribed(context: Context, wants: Subscription, missing: Mapping[str, list[str]]) -> bytes:
    query: SocketQuery = context.query
    kinds = wants.opportunities.kinds if wants.opportunities is not None else frozenset()
    own = [kind for kind in KINDS if kind in kinds] + (["odds"] if wants.prices is not None else [])
    meta = answer_meta(context, missing)
    return encoded(Subscribed(
        channels=own, sports=query.sport, sportsbooks=query.sportsbook, leagues=query.league,
        markets=query.market, eventIds=query.event, min_ev=query.min_ev, min_profit=query.min_profit,
        min_odds=query.min_odds, max_odds=query.max_odds, subscription=wants.hash,
        terms=query.terms or UNSET, stake=query.stake or UNSET, location=query.location or UNSET,
        meta=AnswerMeta(**meta) if meta else UNSET,
    ))  # fmt: skip


async def _end(send: Any, problem: Problem) -> None:
    try:
        body = b'{"seq":1,' + WS.error(problem.code, problem.message)
        await send({"type": "websocket.send", "text": body.decode()})
        await send({"type": "websocket.close", "code": _CLOSE.get(problem.status, _POLICY), "reason": problem.code})
    except (OSError, RuntimeError):  # already closed
        return


_TAKES = {"subscribe": Subscribe, "ping": Ping}
_DOC = f"""Upgrade this request to a WebSocket (`ws://` or `wss://`). Messages are JSON objects with `type`, `seq` and
`timestamp`: {", ".join(MESSAGES)}. A client sends {" and ".join(_TAKES)}. `/asyncapi.json` has their fields. It is a
stream: it needs the streaming add-on, and counts towards the same limit."""

endpoints = (
    Endpoint(
        "/ws", refuse_plain, "Open a WebSocket", "Streaming", None, SocketQuery, query_key=True, cache="never",
        status=101, errors=(426,), doc=_DOC, sends=MESSAGES, takes=_TAKES, envelope=SocketEnvelope,
    ),
)  # fmt: skip
