"""The stream: a snapshot of the board, followed by its changes.

The first event is `connected`; then `snapshot` events with all matching prices, open opportunities (`ev:detected` and
so on), and `snapshot:complete`. From then on, `odds:update` has the fields of a price that can change, by id;
`odds:removed` lists prices that were removed or suspended; a further `snapshot` has prices that are new, back, or have
another start or link. An opportunity whose figures change is sent again under its id; `expired` lists those that are
gone or below the thresholds of this stream. A client that reconnects with `Last-Event-ID` gets a fresh snapshot.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET

from oddsengine.detection.kinds import KINDS
from oddsengine.query import RowFilter
from oddsengine_service import shared_params
from oddsengine_service.accounts.database import DatabaseError
from oddsengine_service.accounts.keys import KeyStore
from oddsengine_service.api import Api
from oddsengine_service.errors import Problem, invalid
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, no_answer
from oddsengine_service.http.params import Param, Query
from oddsengine_service.http.request import Request
from oddsengine_service.http.responses import warning_of
from oddsengine_service.routes.odds_routes import books_for, index_of
from oddsengine_service.shared_params import Places
from oddsengine_service.stream.connection import server_send
from oddsengine_service.stream.group_opportunities import OpportunityFilter
from oddsengine_service.stream.moves import RowForm
from oddsengine_service.stream.sse import frame
from oddsengine_service.stream.stream_events import SSE, Resumable, Wire
from oddsengine_service.stream.stream_messages import CONNECTION, GAMES, OPPORTUNITIES, PRICES, StreamConnected
from oddsengine_service.stream.subscription import Subscription
from oddsengine_service.tiers import Caller, books_of, feature_above
from oddsengine_service.wire.envelopes import AnswerMeta

CHANNELS = ("odds", "opportunities", "gamestate", "all")
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"private, no-cache, no-store, no-transform"),
    (b"x-accel-buffering", b"no"),  # proxies must not buffer events
]
_AGAIN_S = 5
_ECHOED = ("sportsbook", "sport", "league", "event", "market")
MinEv = Annotated[float, Param("Minimum EV in percent of +EV opportunities.")]
MinProfit = Annotated[float, Param("Minimum profit in percent of arbitrages.")]


class _StreamQuery(Places):
    """Parameters of every stream."""

    sportsbook: shared_params.Sportsbook = None
    location: shared_params.Location = None
    location_unknown: shared_params.LocationUnknown = False
    market: shared_params.Market = None
    min_ev: MinEv = 2.0
    min_profit: MinProfit = 0.5
    stake: shared_params.Stake = None
    terms: shared_params.Terms = None
    state: shared_params.State = None
    include: shared_params.Include = None
    seen: shared_params.Seen = None
    resume: Annotated[
        bool | None,
        Param("True to receive the events since the last one received, if that is at most two minutes ago."),
    ] = None
    last_event_id: Annotated[
        str | None, Param("Id of the last event received, where the Last-Event-ID header cannot be set.")
    ] = None


class EventStreamQuery(_StreamQuery):
    """Parameters of the stream of one event."""

    live: shared_params.Live = None


class GamesStreamQuery(_StreamQuery):
    """Parameters of the stream of game states."""

    event: shared_params.Event = None


class ChannelStreamQuery(GamesStreamQuery):
    """Parameters of the stream of one channel."""

    live: shared_params.Live = None


class StreamQuery(ChannelStreamQuery):
    """Parameters of `/stream`."""

    channel: Annotated[
        tuple[str, ...],
        Param(f"Channels: any of {', '.join(CHANNELS)}.", choices=CHANNELS, aliases=("channels", "type")),
    ] = ("opportunities",)


async def stream(channel: str | None, api: Api, request: Request, scope: Any, receive: Any, send: Any) -> None:
    """Serve one connection until it ends; None is the channels of the query."""
    context = api.context(request)
    if "eventId" in context.path:
        context.query.event = (context.path["eventId"],)
    caller, query = context.caller, context.query
    if context.ignored:
        request.headers.append((b"warning", warning_of(context.ignored).encode()))
    channels = (channel,) if channel else query.channel or StreamQuery.channel
    wants = _wants(context, frozenset(channels))
    hub = api.streams()
    last = query.last_event_id or request.received.get(b"last-event-id", b"").decode("latin-1")
    since = None
    if query.resume:
        wire = Resumable(wants.hash)
        wants, since = wants._replace(wire=wire), wire.number(last)
    with slot(api, caller):
        if not await hub.reach(since):
            raise Problem(
                503, "not_ready", "the update of your last event has not reached this node; retry later", retry_after=1
            )
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if request.method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        if query.resume:
            wants = hub.resumable(wants, since)
        meta = answer_meta(context, await api.pool.run(caller.account, lambda: unknown_ids(context)))
        echoed = (*_ECHOED, *(name for name in ("live", "terms", "stake", "location") if query.get(name) is not None))
        connected = StreamConnected(
            stream_id=f"str_{secrets.token_hex(8)}", channel=",".join(channels),
            filters={name: query.get(name) for name in echoed}, reconnected=bool(last),
            resumed=wants.since is not None if query.resume else UNSET, seen=True if wants.seen else UNSET,
            meta=AnswerMeta(**meta) if meta else UNSET,
        )  # fmt: skip
        first, permit = [frame("connected", connected)], Permit.for_request(api, request)
        subscriber = hub.subscribers.enter(
            server_send(scope, send), caller.account, caller.key, permit, wants.wire, first
        )
        await hub.serve(subscriber, wants, _disconnected(receive))


async def _disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@contextmanager
def slot(api: Api, caller: Caller) -> Iterator[None]:
    """Take one of the concurrent streams of a caller.

    Raises `Problem` 429 if all are in use; 503 if the node is stopping.
    """
    if api.streams().subscribers.closed:
        raise Problem(503, "not_ready", "the node is stopping; retry in a few seconds")
    limits = api.node.limits
    if not limits.open(caller.account, caller.streams):
        raise Problem(
            429, "too_many_streams", f"limit of {caller.streams} concurrent streams reached", retry_after=_AGAIN_S
        )
    try:
        yield
    finally:
        limits.close(caller.account)


@dataclass(frozen=True)
class Permit:
    """The rights with which a stream was opened; equal for streams of one secret with equal rights."""

    keys: KeyStore
    secret: str | None  # None: the account was signed in elsewhere
    account: str
    rights: tuple[str, frozenset[str]]

    @classmethod
    def for_request(cls, api: Api, request: Request) -> "Permit":
        """The permit of a request."""
        secret = None
        if request.signed_in is None:
            secret = (request.credential(in_query=request.endpoint.query_key) or b"").decode("latin-1")
        return cls(api.node.keys, secret, request.caller.account, request.caller.rights)

    def __call__(self) -> bool:
        """Whether the key still has these rights; while keys cannot be read, it has."""
        if self.secret is None:
            return True
        try:
            now = self.keys.find(self.secret)
        except DatabaseError:
            return True
        return now is not None and (now.account, now.rights) == (self.account, self.rights) and now.streams > 0


def unknown_ids(context: Context) -> dict[str, list[str]]:
    """Ids in the filters that neither the catalog nor the board has, by parameter."""
    query, missing = context.query, dict[str, list[str]]()
    with index_of(context).reader() as reader:
        reader.matching_rows(
            RowFilter(**{name: query.get(name) for name in ("sport", "league", "market", "event")}), missing
        )
        if strange := reader.missing_books(query.sportsbook or ()):
            missing["sportsbook"] = strange
    return missing


def _wants(context: Context, channels: frozenset[str]) -> Subscription:
    """The subscription of a request.

    Raises `Problem` 400 if `live` is combined with `seen`; 403 if the tier lacks streams, the channel or a book.
    """
    caller, query = context.caller, context.query
    _check_streaming(caller)
    games = "gamestate" in caller.features
    if "gamestate" in channels and not games:
        raise feature_above("gamestate", caller.tier)
    seen = bool(query.seen and channels & {"odds", "all"})
    if seen and query.get("live") is not None:
        raise invalid("live and seen cannot be combined: seen=true streams the whole board")
    return wants_of(
        context,
        odds=bool(channels & {"odds", "all"}),
        kinds=frozenset(KINDS) & caller.features if channels & {"opportunities", "all"} else None,
        games=games and bool(channels & {"gamestate", "all"}),
        seen=seen,
    )


def _check_streaming(caller: Caller) -> None:
    if not caller.streams:
        raise Problem(
            403, "tier_restricted",
            f"streams require the streaming add-on or the enterprise tier; this key has the {caller.tier.id} tier",
        )  # fmt: skip


def wants_of(
    context: Context, *, odds: bool, kinds: frozenset[str] | None, games: bool = False, seen: bool = False,
    wire: Wire = SSE,
) -> Subscription:  # fmt: skip
    """The subscription of a caller from the filters of a query.

    Raises `Problem` 403 if the tier lacks streams or a book.
    """
    caller, query = context.caller, context.query
    _check_streaming(caller)
    books = books_for(context, query.sportsbook)
    chosen = {name: query.get(name) for name in ("sport", "league", "market", "event")}
    include, live = query.get("include") or (), query.get("live")
    form = RowForm(query.state or "", "refs" in include)
    low, high = query.get("min_odds"), query.get("max_odds")
    opportunities = None
    if kinds is not None:
        opportunities = OpportunityFilter(
            books, **chosen, live=live, kinds=kinds, min_ev=query.min_ev, min_profit=query.min_profit,
            form=form, game=context.node.games.state_of if "gamestate" in caller.features else None, low=low,
            high=high, include=tuple(name for name in include if name != "refs"), stake=query.stake,
            same_terms=query.terms == "same",
        )  # fmt: skip
    lines = books_of(caller.tier.id)
    prices = RowFilter(books, **chosen, live=live, low=low, high=high, lines=lines) if odds else None
    return Subscription(prices, opportunities, RowFilter(**chosen) if games else None, form, seen, wire)


_TAG = "Streaming"
_EMPTY = {"snapshot": PRICES["snapshot"]}  # sent to streams without prices too
_SENDS: Mapping[str, Mapping[str, Any]] = {
    "odds": PRICES, "opportunities": {**_EMPTY, **OPPORTUNITIES}, "gamestate": GAMES,
    "all": {**PRICES, **OPPORTUNITIES, **GAMES},
}  # fmt: skip
_EVENTS = f"""Server-Sent Events; ids are `evt_<sequence>`; heartbeats and errors have no id.

All channels: {", ".join(CONNECTION)}. `odds`: {", ".join(PRICES)}. `opportunities`: {", ".join(OPPORTUNITIES)}.
`gamestate`: {", ".join(GAMES)}. `all`: all channels of the key's tier. `/asyncapi.json` has their payloads.

`live` applies to prices and opportunities: a price that goes live is removed from a stream with `live=false`, and
sent as a complete row to one with `live=true`. It cannot be combined with `seen=true`."""


def _endpoint(path: str, channel: str | None, summary: str, query: type[Query] = ChannelStreamQuery) -> Endpoint:
    return Endpoint(
        path, no_answer, summary, _TAG, str, query, query_key=True, doc=_EVENTS, stream=partial(stream, channel),
        sends={**CONNECTION, **_SENDS[channel or "all"]},
    )  # fmt: skip


endpoints = (
    _endpoint("/stream", None, "Stream one or more channels", StreamQuery),
    _endpoint("/stream/odds", "odds", "Stream prices"),
    _endpoint("/stream/opportunities", "opportunities", "Stream opportunities"),
    _endpoint("/stream/gamestate", "gamestate", "Stream game states", GamesStreamQuery),
    _endpoint("/stream/all", "all", "Stream all channels"),
    _endpoint("/stream/events/{eventId}", "odds", "Stream the prices of one event", EventStreamQuery),
)
