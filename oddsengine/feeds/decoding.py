"""JSON of sources: decoded whole where it has the expected shape, else part by part.

A source that changes one field of one price does not lose the others: what reads is taken, what does not is counted.
Only a payload of another shape altogether is a `FeedError`.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from oddsengine.feeds.payload import FeedError
from oddsengine.schema import MOST_CHARACTERS

T = TypeVar("T")
Text = Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS)]
Time = datetime | int | float | None
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Level(NamedTuple):
    """A list within a payload: what its items are, what one is called, and the list inside an item."""

    kind: Any
    called: str
    inner: str = ""
    below: "Level | None" = None


def decode(decoder: msgspec.json.Decoder[T], data: bytes, source: str) -> T:
    """Decode a whole payload, or say in one sentence why it does not read."""
    try:
        return decoder.decode(data)
    except _UNREADABLE as error:
        raise unreadable(source, error) from None


def unreadable(source: str, error: Exception) -> FeedError:
    """The sentence for a payload that does not decode."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
    return FeedError(f"This is not a payload of {source}: {why}.")


def salvage(items: Any, level: Level, refused: Counter[str]) -> tuple[list[Any], set[int]]:
    """Read the items of a plain list one by one; also the places (in what is returned) of those that lost a part."""
    kept: list[Any] = []
    parts: set[int] = set()
    for item in items if isinstance(items, list | tuple) else ():
        try:
            kept.append(msgspec.convert(item, level.kind))
            continue
        except _UNREADABLE:
            below = level.below
        if below is not None and isinstance(item, dict) and isinstance(item.get(level.inner), list):
            inner, _ = salvage(item[level.inner], below, refused)
            try:
                kept.append(msgspec.convert({**item, level.inner: inner}, level.kind))
                parts.add(len(kept) - 1)
                continue
            except _UNREADABLE:
                pass
        refused[f"{level.called} that does not read"] += 1
    return kept, parts


def plain(data: bytes, source: str) -> Any:
    """A payload as plain lists and mappings."""
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise unreadable(source, error) from None


def taken(kept: Sequence[Any], given: Any, source: str) -> None:
    """Refuse a list of which nothing was read: the source has another form now."""
    if given and not kept:
        raise FeedError(f"This is not a payload of {source}: none of its {len(given)} items is valid.")


def moment(value: Time) -> datetime | None:
    """A time that a source gives as text or in Unix seconds (or milliseconds); None where it is none."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if value is None or not 0 < value < 1e14:
        return None
    return datetime.fromtimestamp(value / 1000 if value >= 1e11 else value, UTC)
