"""The JSON of Kalshi: lists of markets, events, milestones and structured targets, order books, and messages.

Prices and sizes are decimal fractions in strings. Lists are decoded item by item, and an item that is not valid is
counted; a body without its list raises `FeedError`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Name, Text, Time, decode
from oddsengine.feeds.payload import FeedError

BOOK, SOURCE = "kalshi", "Kalshi"
_AT_LEAST = re.compile(r"\b(\d{1,4}(?:\.\d)?)\+")
ZERO, ONE = Decimal(0), Decimal(1)
_CENT, _LEAST, _MOST = Decimal("0.01"), Decimal("0.0001"), Decimal(10**12)

Ladder = dict[Decimal, Decimal]  # bids: price -> contracts
Levels = Sequence[Sequence[str | int | float]]


class Event(msgspec.Struct):
    event_ticker: Name
    fee_type_override: str | None = None
    fee_multiplier_override: float | str | None = None


class Series(msgspec.Struct):
    ticker: Name = ""
    fee_type: str | None = None
    fee_multiplier: float | str | None = None


class _SeriesPage(msgspec.Struct):
    series: Series


class FeeChange(msgspec.Struct):
    """An announced change of the fee of an event, or else of a series."""

    event_ticker: str = ""
    series_ticker: str = ""
    fee_type_override: str | None = None
    fee_multiplier_override: float | str | None = None
    fee_type: str | None = None
    fee_multiplier: float | str | None = None
    scheduled_ts: Time = None


class Details(msgspec.Struct):
    status: str = ""
    home_team_id: str = ""
    away_team_id: str = ""
    main_game_event_ticker: str = ""


class Milestone(msgspec.Struct):
    id: Name
    type: str = ""
    title: Text = ""
    start_date: Time = None
    details: Details = msgspec.field(default_factory=Details)
    primary_event_tickers: list[Name] | None = None
    related_event_tickers: list[Name] | None = None

    @property
    def events(self) -> list[str]:
        main = [self.details.main_game_event_ticker] if self.details.main_game_event_ticker else []
        return list(dict.fromkeys([*main, *(self.primary_event_tickers or ()), *(self.related_event_tickers or ())]))


class Target(msgspec.Struct):
    id: Name
    name: Text = ""


class Market(msgspec.Struct):
    ticker: Name
    event_ticker: Name
    status: str
    result: str | None = None  # empty until it is decided
    title: Text | None = None
    yes_sub_title: Text | None = None
    strike_type: str | None = None
    floor_strike: float | str | None = None
    cap_strike: float | str | None = None
    custom_strike: dict[str, Any] | None = None
    market_type: str | None = None
    notional_value_dollars: str | float | None = None
    fee_waiver_expiration_time: Time = None
    updated_time: Time = None
    fractional_trading_enabled: bool | None = None
    mve_collection_ticker: str | None = None
    yes_bid_dollars: str | float | None = None
    yes_ask_dollars: str | float | None = None
    yes_bid_size_fp: str | float | None = None
    yes_ask_size_fp: str | float | None = None
    volume_fp: str | float | None = None
    volume_24h_fp: str | float | None = None
    open_interest_fp: str | float | None = None

    @property
    def fewest(self) -> Decimal:
        """The smallest number of contracts of an order, and the step of others."""
        return _CENT if self.fractional_trading_enabled else ONE

    @property
    def targets(self) -> list[str]:
        return [value for value in (self.custom_strike or {}).values() if isinstance(value, str)]


class BookLevels(msgspec.Struct):
    yes_dollars: Levels | None = None
    no_dollars: Levels | None = None
    yes: Levels | None = None  # in cents, the older form
    no: Levels | None = None


class OrderBook(msgspec.Struct):
    ticker: str = ""
    orderbook_fp: BookLevels | None = None
    orderbook: BookLevels | None = None


class BookChange(msgspec.Struct):
    market_ticker: str = ""
    yes_dollars_fp: Levels | None = None
    no_dollars_fp: Levels | None = None
    price_dollars: str | float | None = None
    delta_fp: str | float | None = None
    side: str = ""
    event_type: str = ""
    strike_type: str | None = None
    floor_strike: float | str | None = None
    cap_strike: float | str | None = None
    custom_strike: dict[str, Any] | None = None
    yes_sub_title: Text | None = None
    event_ticker: str = ""
    fee_type_override: str | None = None
    fee_multiplier_override: float | str | None = None
    code: int = 0
    channel: str = ""  # of a new subscription
    sid: int | None = None

    @property
    def strike(self) -> dict[str, Any]:
        """What it says of the strike of its market."""
        return {name: value for name in _STRIKE if (value := getattr(self, name)) is not None}


class Message(msgspec.Struct):
    type: str
    sid: int | None = None
    seq: int | None = None
    msg: msgspec.Raw = msgspec.Raw(b"{}")


class Page(msgspec.Struct):
    cursor: str | None = None
    events: list[msgspec.Raw] | None = None
    milestones: list[msgspec.Raw] | None = None
    markets: list[msgspec.Raw] | None = None
    structured_targets: list[msgspec.Raw] | None = None
    orderbooks: list[msgspec.Raw] | None = None
    series_fee_change_arr: list[msgspec.Raw] | None = None
    event_fee_changes: list[msgspec.Raw] | None = None


_STRIKE = ("strike_type", "floor_strike", "cap_strike", "custom_strike", "yes_sub_title")
_page = msgspec.json.Decoder(Page)
_series = msgspec.json.Decoder(_SeriesPage)
_book = msgspec.json.Decoder(OrderBook)
_message = msgspec.json.Decoder(Message)
_change = msgspec.json.Decoder(BookChange)
_ITEMS: dict[str, msgspec.json.Decoder[Any]] = {
    "events": msgspec.json.Decoder(Event), "milestones": msgspec.json.Decoder(Milestone),
    "markets": msgspec.json.Decoder(Market), "structured_targets": msgspec.json.Decoder(Target), "orderbooks": _book,
    "series_fee_change_arr": msgspec.json.Decoder(FeeChange), "event_fee_changes": msgspec.json.Decoder(FeeChange),
}  # fmt: skip


def read_message(data: bytes) -> Message:
    """Decode the frame of a message."""
    return decode(_message, data, SOURCE)


def read_change(message: Message) -> BookChange:
    """Decode the content of a message about a market."""
    return decode(_change, bytes(message.msg), SOURCE)


def read_book(data: bytes) -> OrderBook:
    """Decode the order book of one market."""
    return decode(_book, data, SOURCE)


def read_series(data: bytes) -> Series:
    """Decode a series."""
    return decode(_series, data, SOURCE).series


def next_cursor(body: bytes) -> str:
    """Return where the next page of a list begins, or an empty string. Raises `FeedError` if this is not a page."""
    return decode(_page, body, SOURCE).cursor or ""


def items(pages: Iterable[bytes], kind: str, refused: Counter[str], *, required: bool = True) -> list[Any]:
    """Decode the items of pages one by one; those that are not valid are counted.

    Raises `FeedError` if a page has none that is valid.
    """
    out: list[Any] = []
    name = kind.replace("_", " ")
    for body in pages:
        listed = getattr(decode(_page, body, SOURCE), kind)
        if listed is None and required:
            raise FeedError(f"not a payload of {SOURCE}: it has no list of {name}")
        before = len(out)
        for raw in listed or ():
            try:
                out.append(_ITEMS[kind].decode(raw))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                refused[f"an entry of {name} that is not valid"] += 1
        if listed and len(out) == before:
            raise FeedError(f"not a payload of {SOURCE}: none of its {len(listed)} {name} is valid")
    return out


def decimal(value: str | float | None) -> Decimal | None:
    """Return a price or a size; None if it is not a number."""
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        return None
    return exact if exact.is_finite() and -_MOST < exact < _MOST else None


def number(value: str | float | None) -> float | None:
    """Return a number as a float; None if it is not one."""
    exact = decimal(value)
    return None if exact is None else float(exact)


def is_price(price: Decimal) -> bool:
    """Whether a contract can have this price."""
    return _LEAST <= price <= ONE - _LEAST


def ladder_of(levels: Levels | None, refused: Counter[str], unit: Decimal = ONE) -> Ladder:
    """Return the bids of one side, from levels in any order; `unit` is that of their prices, 1 or 0.01 USD."""
    ladder: Ladder = {}
    for level in levels or ():
        price, size = (decimal(level[0]), decimal(level[1])) if len(level) >= 2 else (None, None)
        if price is None or size is None or not is_price(price * unit):
            refused["a level of an order book that is not valid"] += 1
        elif size > 0:
            ladder[price * unit] = size
    return ladder


def book_ladders(book: OrderBook, refused: Counter[str]) -> dict[str, Ladder]:
    """Return the bids of an order book, in dollars or, in the older form, in cents."""
    levels = book.orderbook_fp or book.orderbook or BookLevels()
    return {
        "yes": ladder_of(levels.yes_dollars, refused) or ladder_of(levels.yes, refused, _CENT),
        "no": ladder_of(levels.no_dollars, refused) or ladder_of(levels.no, refused, _CENT),
    }


def listed_ladders(market: Market, refused: Counter[str]) -> dict[str, Ladder]:
    """Return the best bids that a list of markets has: a bid of 0 or an ask of 1 means no order."""
    bid, ask = decimal(market.yes_bid_dollars), decimal(market.yes_ask_dollars)
    levels = {"yes": (bid, market.yes_bid_size_fp), "no": (None if ask is None else ONE - ask, market.yes_ask_size_fp)}
    return {
        side: ladder_of([] if not price else [(str(price), size or 0)], refused)
        for side, (price, size) in levels.items()
    }


def is_crossed(ladders: dict[str, Ladder]) -> bool:
    """Whether the best bids for Yes and No are 1 USD or more together, which the exchange would have matched."""
    return max(ladders["yes"], default=ZERO) + max(ladders["no"], default=ZERO) >= ONE


def is_draw(market: Market) -> bool:
    """Whether Yes of a market is the draw."""
    return catalog.selection_words().get(catalog.normalise(market.yes_sub_title or "")) == "draw"


def line_of(market: Market) -> float | None:
    """Return the line of a market: what has to be exceeded.

    "At least 15" and "more than 15" are lines of 14.5 and 15.5, since scores are whole. Text that says "15+" has to
    agree with the strike, if there is one.
    """
    if market.strike_type == "between":
        return None
    match = _AT_LEAST.search(f"{market.yes_sub_title or ''} {market.title or ''}")
    floor = number(market.floor_strike)
    if floor is None:
        return None if match is None else float(match[1]) - 0.5
    if match is not None and floor in (float(match[1]), float(match[1]) - 0.5):
        return float(match[1]) - 0.5
    if match is not None or (market.strike_type or "").startswith("less"):
        return None
    if floor % 1.0 == 0.5:
        return floor
    shift = {"greater": 0.5, "greater_or_equal": -0.5}.get(market.strike_type or "")
    return None if shift is None or floor % 1.0 else floor + shift
