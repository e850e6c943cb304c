"""Prices in responses: encoding of board columns, request bodies, and envelopes."""
# mypy: allow-untyped-calls

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from oddsengine import catalog
from oddsengine.catalog.reasons import NAMES, reason
from oddsengine.columns import Floats, Ints
from oddsengine.live.update import hexadecimal
from oddsengine.query import BoardReader, OddsRows, OwnTexts, values
from oddsengine.tables.timestamps import timestamps
from oddsengine_service.tiers import TIERS
from oddsengine_service.wire.encoded_columns import home_page
from oddsengine_service.wire.envelopes import AnswerMeta, Body, Counted, DataWith, Moment, PageWith, Pagination, Share
from oddsengine_service.wire.numbers import PRECISE, americans, rounded_column
from oddsengine_service.wire.texts import MOST_TEXT, WORDS_PATTERN


class Rejection(msgspec.Struct, frozen=True):
    """Why a price is rejected: the guard, and its reason in words."""

    guard: str
    reason: str


class Level(msgspec.Struct, gc=False):
    """One level of an exchange's price: odds, and the stake that they take before charges."""

    odds_decimal: float
    stake: float


class Odds(msgspec.Struct, gc=False):
    """One price of one book. The last six fields are those of exchanges; charges are others than the book's."""

    id: str
    sportsbook: str
    event_id: str
    sport: str
    league: str
    home_team: str
    away_team: str
    market_type: str
    selection: str
    selection_type: str
    odds_american: float
    odds_decimal: float
    odds_probability: Share
    line: float | None
    event_start_time: Moment | None
    is_live: bool
    last_seen_at: Moment
    odds_changed_at: Moment
    deep_link: str | None
    sportsbook_name: str
    probability: Share
    timestamp: Moment
    is_active: bool
    is_main_line: bool | None
    is_alternate_line: bool | None
    player_name: str | None
    stat_category: str | None
    team_side: str | None
    market_segment: str
    external_event_id: str | None
    market_id: str | None
    selection_id: str | None
    max_bet: float | None
    volume: float | None
    volume_24h: float | None
    open_interest: float | None
    exchange_token_id: str | None
    player_id: str | None
    source_market_type: str | None
    rejection: Rejection | None
    levels: list[Level] | None
    commission: float | None
    contract_fee: float | None
    min_bet: float | None  # smallest stake, in the money of `max_bet`
    bet_step: float | None  # stakes are whole multiples of it
    bet_delay: float | None  # seconds between a bet and its acceptance, in play


class BestOdds(Odds, gc=False):
    """The best price of a selection: the one with the highest payout after commission."""

    odds_decimal_net: float


class EventOdds(msgspec.Struct):
    """One event with its prices."""

    event_id: str
    event_name: str
    sport: str
    league: str
    start_time: Moment | None
    odds: list[Odds]


class Removed(msgspec.Struct, gc=False):
    """A price removed from the board."""

    id: str
    sportsbook: str
    removed_at: Moment


class Batch(Body):
    """The requested events; books and market types are comma-separated as in queries."""

    event_ids: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"maxLength": MOST_TEXT})]],
        Meta(
            description=f"Ids of events, up to {', '.join(f'{tier.batch} ({id_})' for id_, tier in TIERS.items())}.",
            extra_json_schema={"minItems": 1, "maxItems": max(tier.batch for tier in TIERS.values())},
        ),
    ]
    sportsbook: Annotated[str | None, Meta(extra_json_schema={"pattern": WORDS_PATTERN})] = None
    market: Annotated[str | None, Meta(extra_json_schema={"pattern": WORDS_PATTERN})] = None


class TruncatedMeta(AnswerMeta, kw_only=True):
    """Notes on a response with a limit: whether prices were omitted."""

    truncated: bool | UnsetType = UNSET


class BatchMeta(TruncatedMeta, kw_only=True):
    """Notes on a batch: also events that are not on the board, and events that exceeded the limit."""

    missing: list[str] | UnsetType = UNSET
    remaining: list[str] | UnsetType = UNSET


class OddsByEvent(DataWith[dict[str, list[Odds]], BatchMeta]):
    """Lists of prices by event."""


class OddsLists(DataWith[dict[str, list[Odds]], TruncatedMeta]):
    """Lists of prices by market type."""


class DeltaMeta(Counted, kw_only=True):
    """The board's time of this response, for the next request; whether the requested time was too old."""

    server_time: Moment
    since_clamped: bool | UnsetType = UNSET
    seen: bool | UnsetType = UNSET  # prices that were only seen again are included


def _some(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a row with some of its fields."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return {key: value for key, value in components[kind.__name__].items() if key not in ("required", "title")}


def _shapes() -> list[Any]:
    """Rows of a list: prices; with `group_by` events; with `fields` some fields of either."""
    _, components = msgspec.json.schema_components([EventOdds], ref_template="#/components/schemas/{name}")
    return [{"$ref": "#/components/schemas/Odds"}, components["EventOdds"], _some(Odds)]


class OddsPage(msgspec.Struct, kw_only=True):
    """Prices; with `group_by` events with their prices, with `fields` only some fields."""

    success: bool
    data: Annotated[list[Any], Meta(extra_json_schema={"items": {"anyOf": _shapes()}})]
    pagination: Pagination
    meta: Counted


class BestPage(msgspec.Struct, kw_only=True):
    """The best prices; with `fields` only some fields."""

    success: bool
    data: Annotated[list[Any], Meta(extra_json_schema={"items": _some(BestOdds)})]
    pagination: Pagination
    meta: Counted


class Delta(PageWith[Odds, DeltaMeta], kw_only=True):
    """Prices that changed, and those removed."""

    removed: list[Removed]


ODDS, BEST = Odds.__struct_fields__, BestOdds.__struct_fields__
_MOST_ENCODED = 10_000  # rows, about a kilobyte each
_encode = msgspec.json.Encoder().encode


def odds(rows: OddsRows) -> list[Odds]:
    return list(map(Odds, *_columns(rows)))


def best_odds(rows: OddsRows, net: Floats) -> list[BestOdds]:
    """Encode rows of `/odds/best`; `net` are the prices after commission."""
    return list(map(BestOdds, *_columns(rows), rounded_column(net, PRECISE)))


class RowEncoder:
    """Encodes the rows of a response, reusing rows that were encoded before.

    Create it while the board is locked; new rows are encoded afterwards.
    """

    def __init__(self, reader: BoardReader, slots: Ints, *, best: bool = False) -> None:
        self._encoded, self._current = reader.index.encoded, reader.lines.encoded[best]
        self._slots: list[int] = slots.tolist()
        self._rows: list[Any] = list(map(self._current.get, self._slots))
        self._new: list[tuple[int, Any]] = []  # index, row contents
        if None not in self._rows:
            return
        if len(self._encoded) > _MOST_ENCODED:
            for table in (self._encoded, *(table for lines in reader.index.lines for table in lines.encoded)):
                table.clear()
        missing = [at for at, row in enumerate(self._rows) if row is None]
        for at, state in zip(missing, reader.states(slots[missing]), strict=True):
            key = (state, "best") if best else state
            row = self._encoded.get(key)
            if row is None:
                self._new.append((at, key))
            else:
                self._rows[at] = self._current[self._slots[at]] = row
        new = slots[[at for at, _ in self._new]]
        self._found = reader.take(new)
        self._net = reader.net(new) if best else None

    def encode(self) -> list[msgspec.Raw]:
        if self._new:
            made = odds(self._found) if self._net is None else best_odds(self._found, self._net)
            for (at, key), row in zip(self._new, made, strict=True):
                raw = msgspec.Raw(_encode(row))
                self._rows[at] = self._encoded[key] = self._current[self._slots[at]] = raw
        return self._rows


def fields_of(names: Sequence[str], state: str = "") -> Callable[..., list[dict[str, Any]]]:
    """An encoder for rows with only some fields, and with links for a US state."""
    at = [BEST.index(name) for name in names]

    def rows(board_rows: OddsRows, net: Floats | None = None) -> list[dict[str, Any]]:
        columns = _columns(board_rows, state)
        if net is not None:
            columns.append(rounded_column(net, PRECISE))
        return [dict(zip(names, row, strict=True)) for row in zip(*(columns[i] for i in at), strict=True)]

    return rows


def removed(rows: OddsRows) -> list[Removed]:
    books = [rows.books[b] for b in rows.book]
    return list(map(Removed, hexadecimal(rows.id), books, timestamps(rows.moved)))


def _columns(rows: OddsRows, state: str = "") -> list[Any]:
    """The columns of `Odds`, in its order."""
    n = len(rows.term)
    if not n:
        return [[] for _ in ODDS]
    texts = [rows.texts[t] for t in rows.term]
    (event, sport, league, home, away, market, selection, kind, line, player, stat, side, segment, source) = zip(
        *texts, strict=True
    )
    books = [rows.books[b] for b in rows.book]
    decimal = rounded_column(rows.odds, PRECISE)
    share = rounded_column(1.0 / rows.odds, PRECISE)
    times = timestamps(np.concatenate((rows.start, rows.seen, rows.changed)))
    begins, seen, changed = times[:n], times[n : 2 * n], times[2 * n :]
    main = [_MAIN[m] for m in rows.main]
    deep, named, *own, levels, commission, fee, least, step, delay = own_columns(rows, books, state)
    return [
        hexadecimal(rows.id), books, event, sport, league, home, away, market, selection, kind,
        americans(rows.odds, rows.american), decimal, share, line, begins, rows.live.tolist(), seen,
        changed, deep, named, share, seen, rows.active.tolist(), main, [_OTHER[m] for m in main],
        player, stat, side, segment, *own, list(map(values.player_id, player)), source,
        [_REJECTIONS[code] for code in rows.rejected.tolist()], levels, commission, fee,
        least, step, delay,
    ]  # fmt: skip


_MAIN = {1: True, 0: False, -1: None}


class _Rejections(dict[int, Rejection | None]):
    """Rejections by code, each made when it is first needed: guards of plugins get codes when a node starts."""

    def __missing__(self, code: int) -> Rejection:
        rejection = self[code] = Rejection(NAMES[code], reason(NAMES[code]))
        return rejection


_REJECTIONS = _Rejections({0: None})


def reason_of(code: int) -> str | None:
    """Why a price is rejected, in words; None if it is not."""
    rejection = _REJECTIONS[code]
    return None if rejection is None else rejection.reason


_OTHER = {True: False, False: True, None: None}


def own_columns(rows: OddsRows, books: Sequence[str], state: str = "") -> tuple[list[Any], ...]:
    """Columns of a single price: link, book's name, native ids, largest bet, exchange data, `DEPTH_SCHEMA`."""
    names, deep = list(map(_name, books)), [home_page(book, state) for book in books]
    nothing: list[Any] = [None] * len(books)
    if rows.links is None or not any(rows.links):
        return deep, names, *[nothing] * 14
    external, markets, selections, most, volume, day, interest, token = (list(nothing) for _ in range(8))
    levels, *numbers = (list(nothing) for _ in range(6))
    for at, text in enumerate(rows.links):
        if text is None:
            continue
        own = OwnTexts.split(text)
        _, url, name, event, market, selection, largest, _, _, *exchange = own
        names[at] = name or names[at]
        external[at], markets[at], selections[at] = event or None, market or None, selection or None
        most[at] = _number(largest)
        if any(exchange):
            volume[at], day[at], interest[at] = map(_number, exchange[:3])
            token[at] = exchange[3] or None
            levels[at] = [Level(*each) for each in own.ladder] or None
            for column, number in zip(numbers, exchange[5:], strict=True):
                column[at] = _number(number)
        if url and (state or "{state}" not in url):
            deep[at] = catalog.localised(url, state) or None
        else:
            link = catalog.link(books[at], event=event, market=market, selection=selection, state=state)
            deep[at] = link.url if link else None
    return deep, names, external, markets, selections, most, volume, day, interest, token, levels, *numbers


def _number(text: str) -> float | None:
    return float(text) if text else None


@lru_cache(maxsize=4096)
def _name(book: str) -> str:
    return catalog.book(book).display_name
