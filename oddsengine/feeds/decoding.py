"""JSON decoding of feeds: strict if the payload has the expected schema, otherwise item by item.

If a source changes one field of one price, the others are still used; invalid parts are counted. Only a payload of an
entirely different shape raises `FeedError`.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from oddsengine.feeds.payload import FeedError
from oddsengine.tables.schema import MOST_CHARACTERS
from oddsengine.tables.timestamps import aware

T = TypeVar("T")
_DIGITS = 40
_AHEAD = timedelta(seconds=2)  # by which the clock of a source may differ from ours
Text = Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS)]
Time = datetime | int | float | None
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Level(NamedTuple):
    """A list within a payload: its item type, the name of an item, and the list inside an item."""

    kind: Any
    called: str
    inner: str = ""
    below: "Level | None" = None


def decode(decoder: msgspec.json.Decoder[T], data: bytes, source: str) -> T:
    """Decode a payload, or raise `FeedError`."""
    try:
        return decoder.decode(data)
    except _UNREADABLE as error:
        raise unreadable(source, error) from None


def decode_strictly(decoder: msgspec.json.Decoder[T], data: bytes, source: str) -> T | None:
    """Decode a payload; None if it is JSON with an invalid part, `FeedError` if it is not JSON."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except _UNREADABLE as error:
        raise unreadable(source, error) from None


def unreadable(source: str, error: Exception) -> FeedError:
    """Build the error for a payload that cannot be decoded."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
    return FeedError(f"not a payload of {source}: {why}")


def valid_items(items: Any, level: Level, refused: Counter[str], source: str, fault: str) -> tuple[list[Any], set[int]]:
    """Decode a list as `salvage` does; raises `FeedError` if it is not a list (`fault`) or has no valid item."""
    if not isinstance(items, list):
        raise FeedError(fault)
    valid, parts = salvage(items, level, refused)
    if items and not valid:
        raise FeedError(f"not a payload of {source}: none of its {len(items)} items is valid")
    return valid, parts


def salvage(items: Any, level: Level, refused: Counter[str]) -> tuple[list[Any], set[int]]:
    """Decode the items of a list one by one; also returns the indices of items that lost a part."""
    valid: list[Any] = []
    parts: set[int] = set()
    for item in items if isinstance(items, list | tuple) else ():
        try:
            valid.append(msgspec.convert(item, level.kind))
            continue
        except _UNREADABLE:
            below = level.below
        if below is not None and isinstance(item, dict) and isinstance(item.get(level.inner), list):
            inner, _ = salvage(item[level.inner], below, refused)
            try:
                valid.append(msgspec.convert({**item, level.inner: inner}, level.kind))
                parts.add(len(valid) - 1)
                continue
            except _UNREADABLE:
                pass
        refused[f"{level.called} that is not valid"] += 1
    return valid, parts


def plain(data: bytes, source: str) -> Any:
    """Decode a payload to plain lists and mappings."""
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise unreadable(source, error) from None


def moment(value: Time) -> datetime | None:
    """Parse a time given as text or in Unix seconds or milliseconds; None if invalid."""
    if isinstance(value, datetime):
        return aware(value)
    if value is None or not 0 < value < 1e14:
        return None
    return datetime.fromtimestamp(value / 1000 if value >= 1e11 else value, UTC)


def ordering_stamp(milliseconds: float | None, now: datetime) -> int:
    """Return the stamp of a message, by which messages are ordered; 0 if it has none, or one that is later than now.

    A message without such a stamp counts as one that was sent when it arrived.

    Examples
    --------
    >>> now = datetime(2026, 8, 7, tzinfo=UTC)
    >>> [ordering_stamp(1000 * (now.timestamp() + ahead), now) > 0 for ahead in (-60, 1, 3)]
    [True, True, False]
    """
    latest = (now + _AHEAD).timestamp() * 1000.0
    return int(milliseconds) if milliseconds is not None and 0.0 < milliseconds <= latest else 0


def past(when: datetime | None, now: datetime | None) -> datetime | None:
    """Return a time, or now if that is earlier: times in the future count as now.

    Examples
    --------
    >>> now = datetime(2026, 8, 7, tzinfo=UTC)
    >>> past(datetime(2036, 8, 7, tzinfo=UTC), now) == now, past(datetime(2026, 8, 6), now)
    (True, datetime.datetime(2026, 8, 6, 0, 0))
    """
    return when if when is None or now is None or aware(when) <= now else now


def inside(document: Any, *names: str) -> Any:
    """Return a value within nested mappings; None if there is none.

    Examples
    --------
    >>> inside({"data": {"markets": []}}, "data", "markets"), inside([], "data")
    ([], None)
    """
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def number(value: Any) -> float | None:
    """Parse a number that may be a text; None if it is not a finite number.

    Examples
    --------
    >>> number("-1.5"), number("+150"), number(".48"), number("x"), number([2])
    (-1.5, 150.0, 0.48, None, None)
    """
    if value is None or isinstance(value, bool):
        return None
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if isfinite(parsed) else None


def whole(value: int | str | None) -> int | None:
    """Parse a whole number of base units, up to 40 digits, that may be a text; None if it is not one.

    Examples
    --------
    >>> whole("50250000000000000000"), whole(5), whole("5.5"), whole("-1")
    (50250000000000000000, 5, None, None)
    """
    text = str(value)
    return int(text) if len(text) <= _DIGITS and text.isascii() and text.isdigit() else None
