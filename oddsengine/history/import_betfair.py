"""Import Betfair's historical files: messages of its stream, a file per market or per event, most of them in a .tar.

ADVANCED and PRO files have best prices or ladders: they are read as the stream is, and prices that stand are written
again every `RENEWED_S` before the start, in play every few seconds, since a message has only what changed. BASIC files
have prices of last trades only. Nobody offers them, so they are of a book of their own, which is never bet at, and each
is as old as its trade.
"""

import heapq
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from oddsengine.feeds.betfair import DRAW, LAST_TRADED, BetfairMarkets
from oddsengine.feeds.betfair_format import SPORTS, Definition, meaning, message_decoder
from oddsengine.feeds.payload import FeedError, Payload
from oddsengine.history.import_files import OpenFile, RecordedFile
from oddsengine.history.import_step import ImportStep, StandingPrices, is_compared

RENEWED_S = 240.0  # before the start prices are stale after 600, and those of one opportunity 300 apart
_OFFERS = re.compile(rb'"b?d?at[bl]"\s*:\s*\[\s*\[')
_LONGEST_MS = 30 * 86_400_000  # between two messages of an event
_MOST_FILES = 500  # of one event that are open at once
_REMARK = (
    f"BASIC files have no offers: their prices are those of the last trades, of the book {LAST_TRADED}, which is never "
    "a bet, and a reference only without the guard mid_price_source"
)


class _Message(msgspec.Struct):
    pt: int = 0  # milliseconds


_time = msgspec.json.Decoder(_Message)


class _Market(NamedTuple):
    """What the first messages of a file say of it."""

    file: RecordedFile
    event: str
    offers: bool


def read(files: list[RecordedFile], step: ImportStep) -> None:
    """Read all files, event by event."""
    events: dict[str, list[_Market]] = {}
    for file in files:
        market = _described(file, step)
        if market is None:
            step.skipped(file)
        else:
            events.setdefault(market.event, []).append(market)
    if any(not market.offers for markets in events.values() for market in markets):
        step.remarks.append(_REMARK)
    for markets in events.values():
        for last_trades in (False, True):
            some = [market.file for market in markets if market.offers != last_trades]
            for begin in range(0, len(some), _MOST_FILES):
                _read_event(some[begin : begin + _MOST_FILES], step, last_trades=last_trades)


def _described(file: RecordedFile, step: ImportStep) -> _Market | None:
    """Read the beginning of a file; None, counted, if its market is not compared."""
    with file.open() as opened:
        head = b""
        first: Definition | None = None
        has_offers = False
        for line in opened.lines():
            if not head:
                head = line
                if not step.belongs(file, line):
                    return None
            first = first or _definition(line)
            has_offers = bool(_OFFERS.search(line))
            if first is not None and (has_offers or _why_not(first)):
                break
    if first is None:
        step.left_out.add("a file without the definition of a market", file.name)
        return None
    if why := _why_not(first):
        step.left_out.add(why, file.name)
        return None
    return _Market(file, first.eventId, has_offers)


def _definition(line: bytes) -> Definition | None:
    """The first definition of a market in a message."""
    try:
        message = message_decoder.decode(line)
    except msgspec.MsgspecError:
        return None
    return next((one.marketDefinition for one in message.mc or () if one.marketDefinition is not None), None)


def _why_not(market: Definition) -> str:
    """Why a market is not read; empty if it is."""
    sport = SPORTS.get(market.eventTypeId, "")
    if not sport:
        return f"a market of another sport (event type {market.eventTypeId or 'unknown'})"
    draw = any(runner.id == DRAW for runner in market.runners)
    if not is_compared(meaning(market.marketType, market.bettingType, sport, draw).market.name, sport):
        return f"a market of the type {market.marketType or 'unknown'}, which is not compared"
    return ""


def _read_event(files: Sequence[RecordedFile], step: ImportStep, *, last_trades: bool) -> None:
    """Read the files of one event, merged by time."""
    prices = StandingPrices()

    def write(payload: Payload, at: datetime, where: str) -> None:
        step.left_out.add_all(payload.refused, where)
        step.add(prices.apply(payload, at), at, where)

    reader = BetfairMarkets(last_trades=last_trades, renewed=RENEWED_S)
    with ExitStack() as stack:
        opened = [stack.enter_context(file.open()) for file in files]
        for file in opened:
            step.reading(file)
        before = 0
        for stamp, line, where in heapq.merge(*(_timed(file) for file in opened), key=lambda one: one[0]):
            if stamp - before > _LONGEST_MS:  # or the file has no prices until then
                before = 0
            while not last_trades and before and stamp - before > 1000 * RENEWED_S:
                before += round(1000 * RENEWED_S)
                write(reader.alive(_moment(before)), _moment(before), where)
            before = stamp
            try:
                payload = reader.read(line)
            except FeedError as error:
                step.left_out.add("a message that cannot be read", f"{where}: {error}")
                continue
            write(payload, _moment(stamp), where)
            if not last_trades:
                write(reader.alive(_moment(stamp)), _moment(stamp), where)


def _timed(file: OpenFile) -> Iterator[tuple[int, bytes, str]]:
    """Lines of a file with their times; a line without one has the time of the line before."""
    last = 0
    for number, line in enumerate(file.lines(), 1):
        if line.strip():
            with suppress(msgspec.MsgspecError):  # said when it is read
                last = max(last, _time.decode(line).pt)
            yield last, line, f"{file.of.name}, line {number:,}"
    file.close()


def _moment(stamp: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=stamp)
