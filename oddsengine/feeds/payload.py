"""What a payload of a source says, in one form whatever the source.

A parser is pure: bytes in, `Payload` out, nothing fetched and no clock read. Quotes keep the source's own event id and
names; `Payload.games` says what that id is, so that the events of sources can be matched (`oddsengine.matching`) before
any quote reaches a board.

Whoever passes a payload on takes `removed` off first and then applies `quotes`: an id that is in both has moved to
another line. Rows are shared with the reader that made them, so a row is replaced, never written to.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from oddsengine.games import Reading


class FeedError(ValueError):
    """A payload that cannot be used; the message is one sentence for a person, and nothing of it was taken."""


class Game(NamedTuple):
    """One event as its source names it. `sport` and `league` are catalog ids where the catalog knows them."""

    id: str  # the source's
    sport: str
    league: str
    home: str  # empty, like `away`, where the event is no game of two
    away: str
    start: datetime | None = None
    status: str = ""  # upcoming, live, ended, postponed, cancelled; empty where the source does not say


class Payload(NamedTuple):
    """One payload.

    `quotes` are rows with the fields of `ODDS_SCHEMA`, ready for `Engine.step` but for their `event_id`, which is the
    source's. A suspended price is a quote with `is_active` false; it may have no price.
    """

    games: Sequence[Game] = ()
    quotes: Sequence[dict[str, Any]] = ()
    complete: Sequence[tuple[str, str | None]] = ()  # (book, source's event id): what is not quoted here is gone
    removed: Sequence[str] = ()  # the source's ids of prices that are gone; `Payload.quotes` have them as `id`
    # (book, market name) that the catalog does not know: served, not used
    unmapped: Counter[tuple[str, str]] = Counter()  # noqa: RUF012  nobody writes to it
    refused: Counter[str] = Counter()  # noqa: RUF012  reasons why parts of it were left out
    moment: datetime | None = None  # when the source says it was made
    scores: Sequence[Reading] = ()  # how games stand; `event` is the source's id, and the source is not named
    futures: Sequence[dict[str, Any]] = ()  # rows with the fields of `FUTURES_SCHEMA`; `removed` has their ids too
