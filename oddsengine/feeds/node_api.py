"""Another node as a feed, by its API: pages of odds, changes since a time, and the stream.

Rows keep their names. A payload adds the events, and counts market types that the catalog does not have. Unknown fields
are ignored, so a newer upstream can be read.

The stream sends a price once and then only changes, so `InterfaceStream` holds the rows. Ages are the upstream's: a row
was last seen when the upstream saw it, not when it arrived here. With `seen=true` the stream sends these times as
`odds:seen`. An update only has the time when the price changed, which is a lower bound. With an upstream without
`odds:seen`, times are polled (`renew`), or else rows age.

Rows that the upstream rejects are marked `rejected_upstream`, because it has more information: books that it does not
pass on, and prices from before this node started.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, Required, TypedDict, TypeVar

import msgspec

from oddsengine.catalog.reasons import IDENTITY
from oddsengine.feeds.decoding import (
    Level,
    Name,
    Text,
    decode,
    decode_strictly,
    past,
    plain,
    salvage,
    unreadable,
    valid_items,
)
from oddsengine.feeds.feed_names import market
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.tables.timestamps import aware

_SOURCE = "the interface"
T = TypeVar("T")


class PublishedPrice(TypedDict, total=False):
    """A price as published by the API; see `ODDS_SCHEMA`."""

    id: Required[Name]
    sportsbook: Required[Name]
    event_id: Required[Name]
    market_type: Required[Name]
    selection: Required[Name]
    sport: Text | None
    league: Text | None
    home_team: Text | None
    away_team: Text | None
    selection_type: Text | None
    odds_american: float | None
    odds_decimal: float | None
    line: float | None
    event_start_time: datetime | None
    is_live: bool | None
    timestamp: datetime | None
    last_seen_at: datetime | None
    odds_changed_at: datetime | None
    deep_link: Text | None
    sportsbook_name: Text | None
    is_active: bool | None
    is_main_line: bool | None
    is_alternate_line: bool | None
    player_name: Text | None
    stat_category: Text | None
    team_side: Text | None
    market_segment: Text | None
    external_event_id: Text | None
    market_id: Text | None
    selection_id: Text | None
    max_bet: float | None
    volume: float | None
    volume_24h: float | None
    open_interest: float | None
    exchange_token_id: Text | None
    levels: list["PublishedLevel"] | None
    commission: float | None
    contract_fee: float | None
    min_bet: float | None
    bet_step: float | None
    bet_delay: float | None
    rejection: "PublishedRejection | None"
    source_market_type: Text | None


class PublishedLevel(TypedDict):
    """A level of an exchange's price."""

    odds_decimal: float
    stake: float


class PublishedRejection(TypedDict, total=False):
    """Why the upstream rejects a price."""

    guard: str


class SeenTime(TypedDict):
    """The time at which the upstream last saw a price."""

    id: Name
    last_seen_at: datetime


class PriceDelta(TypedDict, total=False):
    """The fields of a price that can change."""

    id: Required[Name]
    odds_american: float | None
    odds_decimal: float | None
    line: float | None
    is_live: bool | None
    is_active: bool | None
    odds_changed_at: datetime | None
    event_start_time: datetime | None
    timestamp: datetime | None


class _Removed(msgspec.Struct):
    id: Name


class _Pagination(msgspec.Struct):
    has_more: bool = False
    next_offset: int | None = None
    next_cursor: str | None = None


class _Meta(msgspec.Struct):
    pagination: _Pagination | None = None
    removed: list[Text | _Removed] = []
    server_time: str | None = None
    since_clamped: Any = None
    seen: Any = None


class _Page(msgspec.Struct):
    data: list[PublishedPrice]
    pagination: _Pagination | None = None
    meta: _Meta | None = None
    removed: list[Text | _Removed] = []


class _Prices(msgspec.Struct, Generic[T]):
    odds: list[T]


class _RemovedIds(msgspec.Struct):
    ids: list[str]


class _StreamMessage(msgspec.Struct):
    timestamp: datetime | None = None
    seen: bool = False
    code: str = ""
    message: str = ""


_LEVEL = Level(PublishedPrice, "a row")
_page = msgspec.json.Decoder(_Page)
_chunk = msgspec.json.Decoder(_Prices[PublishedPrice])
_deltas = msgspec.json.Decoder(_Prices[PriceDelta])
_renewed = msgspec.json.Decoder(_Prices[SeenTime])
_removed = msgspec.json.Decoder(_RemovedIds)
_message = msgspec.json.Decoder(_StreamMessage)
_rows = msgspec.json.Decoder(list[PublishedPrice])
_NOTHING = Payload()
_PRICE = ("odds_decimal", "odds_american", "line", "is_live")


class OddsPage(NamedTuple):
    """A page of odds, whether more pages follow, and where."""

    payload: Payload
    has_more: bool
    next_offset: int | None
    next_cursor: str | None
    server_time: str | None  # to request changes from then on
    since_clamped: bool  # the requested time was too long ago
    seen: bool  # rows that were only seen again are included


def read_page(data: bytes) -> OddsPage:
    """Parse a page of `/odds` or `/odds/delta` in either envelope, or a bare list of rows.

    Raises `FeedError` if the page is invalid or an error.
    """
    refused: Counter[str] = Counter()
    page = _read_page(data, refused)
    pagination = page.pagination or (page.meta and page.meta.pagination) or _Pagination()
    removed = page.removed or (page.meta.removed if page.meta else [])
    ids = [entry if isinstance(entry, str) else entry.id for entry in removed]
    more = pagination.has_more and bool(page.data or pagination.next_offset)  # an empty page would never end
    payload, meta = _payload(_stamped(page.data), refused, removed=ids), page.meta or _Meta()
    return OddsPage(
        payload, more, pagination.next_offset, pagination.next_cursor, meta.server_time, bool(meta.since_clamped),
        bool(meta.seen),
    )  # fmt: skip


def _read_page(data: bytes, refused: Counter[str]) -> _Page:
    if data.lstrip()[:1] == b"[":
        rows = decode_strictly(_rows, data, _SOURCE)
        page = None if rows is None else _Page(rows)
    else:
        page = decode_strictly(_page, data, _SOURCE)
    if page is not None:
        return page
    document = read_document(data)
    rest = document if isinstance(document, dict) else {"data": document}
    fault = f"not a payload of {_SOURCE}: it has no list of odds"
    valid, _ = valid_items(rest.get("data"), _LEVEL, refused, _SOURCE, fault)
    try:
        return msgspec.convert({**rest, "data": valid}, _Page)
    except msgspec.ValidationError as error:
        raise unreadable(_SOURCE, error) from None


def read_document(data: bytes) -> Any:
    """Decode a response to plain lists and mappings; raises `FeedError` if it is an error."""
    document = plain(data, _SOURCE)
    if isinstance(document, dict) and isinstance(document.get("error"), dict):
        raise FeedError(f"the upstream returned an error: {str(document['error'].get('message', ''))[:200]}")
    return document


def removed_ids(data: bytes) -> list[str]:
    """Return the ids of a stream event about removals."""
    return decode(_removed, data, _SOURCE).ids


def _stamped(rows: Sequence[Any]) -> Sequence[dict[str, Any]]:
    """Convert rows to our fields: `timestamp` of newer upstreams becomes the time seen, a rejection becomes a flag."""
    for row in rows:
        rejection = row.pop("rejection", None)
        if rejection is not None and rejection.get("guard") not in IDENTITY:
            row["rejected_upstream"] = True
        if source := row.pop("source_market_type", None):
            row["market_type"] = source  # a book's own name for a market distinguishes its markets
        if "timestamp" in row:
            stamp = row.pop("timestamp")
            if row.get("last_seen_at") is None:
                row["last_seen_at"] = stamp
    return rows


def _payload(rows: Sequence[dict[str, Any]], refused: Counter[str], *, removed: Sequence[str] = ()) -> Payload:
    events = {row["event_id"]: row for row in rows}
    live = {row["event_id"] for row in rows if row.get("is_live")}
    games = [
        Game(
            event, row.get("sport") or "", row.get("league") or "", row.get("home_team") or "",
            row.get("away_team") or "", row.get("event_start_time"), "live" if event in live else "",
        )
        for event, row in events.items()
    ]  # fmt: skip
    kinds = Counter(
        [(row["sportsbook"], row["market_type"], row.get("sport"), row.get("stat_category")) for row in rows]
    )
    unmapped: Counter[tuple[str, str]] = Counter()
    for (book, name, sport, stat), n in kinds.items():
        if not market(name, sport or "", stat or "").in_catalog:
            unmapped[book, name] += n
    return Payload(games, rows, (), removed, unmapped, refused)


class InterfaceStream:
    """The stream of one upstream, across reconnects.

    Examples
    --------
    >>> stream = InterfaceStream()
    >>> row = b'{"id":"r","sportsbook":"a","event_id":"e","market_type":"moneyline","selection":"X","odds_decimal":2.0}'
    >>> [stream.read("snapshot", b'{"odds":[' + row + b']}').quotes[0]["odds_decimal"]]
    [2.0]
    >>> stream.read("odds:update", b'{"odds":[{"id":"r","odds_decimal":2.1}]}').quotes[0]["selection"]
    'X'
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Any]] = {}
        self._before: dict[str, Any] = {}  # ids of earlier connections not listed by this one, with their lines
        self.ready = False  # the snapshot is complete
        self.reports_seen = False  # the upstream sends `odds:seen`
        self.errors: Counter[str] = Counter()  # error codes sent by the upstream

    @property
    def rows(self) -> int:
        return len(self._held)

    def read(self, event: str, data: bytes, now: datetime | None = None) -> Payload:
        """Parse one event of the stream; events of other channels return nothing. Times after `now` count as now.

        Raises `FeedError` if the event is invalid; the state is unchanged.
        """
        if event == "snapshot":
            return self._snapshot(data, now)
        if event in ("odds:update", "odds:locked"):
            return self._update(data, now, locked=event == "odds:locked")
        if event == "odds:seen":
            return self._renew(decode(_renewed, data, _SOURCE).odds, now)
        if event == "odds:removed":
            return self._remove(removed_ids(data))
        if event == "connected":
            self.reports_seen = decode(_message, data, _SOURCE).seen
            self._before |= {id_: row.get("line") for id_, row in self._held.items()}
            self._held, self.ready = {}, False
        elif event == "snapshot:complete":
            decode(_message, data, _SOURCE)
            removed = list(self._before)
            self._before, self.ready = {}, True
            return Payload(removed=removed)
        elif event == "heartbeat":
            return Payload(moment=decode(_message, data, _SOURCE).timestamp)
        elif event == "error":
            self.errors[decode(_message, data, _SOURCE).code[:80]] += 1
        return _NOTHING

    def renew(self, rows: Iterable[Mapping[str, Any]], now: datetime | None = None) -> Payload:
        """Apply polled times; rows whose price differs by now are left to the stream."""
        same: list[SeenTime] = []
        for row in rows:
            current, seen = self._held.get(row["id"]), row.get("last_seen_at")
            if current is not None and seen is not None and all(current.get(name) == row.get(name) for name in _PRICE):
                same.append({"id": row["id"], "last_seen_at": seen})
        return self._renew(same, now)

    def _renew(self, seen: Iterable[SeenTime], now: datetime | None) -> Payload:
        rows = []
        for id_, time in ((each["id"], past(each["last_seen_at"], now)) for each in seen):
            current = self._held.get(id_)
            if current is not None and _later(current.get("last_seen_at"), time) is time:
                self._held[id_] = row = {**current, "last_seen_at": time}
                rows.append(row)
        return Payload(quotes=rows) if rows else _NOTHING

    def _snapshot(self, data: bytes, now: datetime | None) -> Payload:
        refused: Counter[str] = Counter()
        if (chunk := decode_strictly(_chunk, data, _SOURCE)) is not None:
            return self._changed(_stamped(chunk.odds), now, refused)
        document = plain(data, _SOURCE)
        items = document.get("odds") if isinstance(document, dict) else None
        if not isinstance(items, list) and isinstance(document, dict | list):  # a snapshot of opportunities
            return _NOTHING
        fault = f"not a payload of {_SOURCE}: a snapshot is an object"
        valid, _ = valid_items(items, _LEVEL, refused, _SOURCE, fault)
        return self._changed(_stamped(valid), now, refused)

    def _update(self, data: bytes, now: datetime | None, *, locked: bool) -> Payload:
        refused: Counter[str] = Counter()
        update: Any = decode_strictly(_deltas, data, _SOURCE)
        if update is not None:
            deltas = update.odds
        else:
            document = plain(data, _SOURCE)
            items = document.get("odds") if isinstance(document, dict) else None
            fault = f"not a payload of {_SOURCE}: an update has a list of odds"
            deltas, _ = valid_items(items, Level(PriceDelta, "an update"), refused, _SOURCE, fault)
        current = self._held
        merged: dict[str, dict[str, Any]] = {}
        unknown = {delta["id"] for delta in deltas if delta["id"] not in current}
        new = self._full(data, unknown) if unknown else {}
        for delta in deltas:
            id_ = delta["id"]
            row = merged.get(id_) or current.get(id_) or new.get(id_)
            if row is None:
                refused["an update of a price that no snapshot listed"] += 1
                continue
            row = {**row, **_fields(delta)}
            if (seen := _later(row.get("last_seen_at"), delta.get("odds_changed_at"))) is not None:
                row["last_seen_at"] = seen
            row["is_active"] = False if locked else delta.get("is_active") is not False
            merged[id_] = row
        return self._changed(list(merged.values()), now, refused)

    def _changed(self, rows: Sequence[dict[str, Any]], now: datetime | None, refused: Counter[str]) -> Payload:
        """Store new or changed rows and return them."""
        for row in rows:
            if (seen := row.get("last_seen_at")) is not None:
                row["last_seen_at"] = past(seen, now)
        payload = _payload(rows, refused, removed=[row["id"] for row in rows if self._moved(row)])
        self._keep(rows)
        return payload

    def _moved(self, row: dict[str, Any]) -> bool:
        """Whether the id of a row has moved to another line, which removes the old price."""
        id_ = row["id"]
        was = self._held.get(id_)
        if was is not None:
            return bool(was.get("line") != row.get("line"))
        return id_ in self._before and bool(self._before[id_] != row.get("line"))

    @staticmethod
    def _full(data: bytes, unknown: set[str]) -> dict[str, dict[str, Any]]:
        """Return full rows in an update, as an upstream sends new prices between snapshots."""
        document = plain(data, _SOURCE)
        valid, _ = salvage(
            [row for row in document["odds"] if isinstance(row, dict) and row.get("id") in unknown], _LEVEL, Counter()
        )
        return {row["id"]: row for row in _stamped(valid)}

    def _remove(self, ids: Iterable[str]) -> Payload:
        removed = list(dict.fromkeys(ids))
        for id_ in removed:
            self._held.pop(id_, None)
            self._before.pop(id_, None)
        return Payload(removed=removed)

    def _keep(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            self._held[row["id"]] = row
            self._before.pop(row["id"], None)


def _fields(delta: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a delta; a price in one format clears the other."""
    fields = {name: value for name, value in delta.items() if name != "timestamp"}
    prices = ("odds_decimal", "odds_american")
    if any(fields.get(name) is not None for name in prices):
        return dict.fromkeys(prices) | fields
    for name in prices:
        fields.pop(name, None)
    return fields


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two times, the first if they are equal."""
    if one is None or other is None:
        return one or other
    return other if aware(other) > aware(one) else one
