"""The common result of all parsers.

A parser is pure: bytes in, `Payload` out, no I/O and no clock. Quotes keep the source's event ids and names;
`Payload.games` describes those events so that they can be matched across sources (`oddsengine.matching`) before quotes
reach a board.

Apply `removed` before `quotes`: an id in both has moved to another line. Rows are shared with the parser's state and
must not be modified.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from oddsengine.feeds.merged_scores import ScoreReading


class FeedError(ValueError):
    """An unusable payload; the message is for the user, and the parser's state is unchanged."""


class Game(NamedTuple):
    """An event as named by a source. `sport` and `league` are catalog ids where possible."""

    id: str  # of the source
    sport: str
    league: str
    home: str  # like `away`, empty if the event is not a game of two
    away: str
    start: datetime | None = None
    status: str = ""  # upcoming, live, ended, postponed or cancelled; empty if unknown

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields of a quote."""
        return {
            "event_id": self.id, "sport": self.sport, "league": self.league, "home_team": self.home,
            "away_team": self.away, "event_start_time": self.start,
        }  # fmt: skip


class Payload(NamedTuple):
    """A parsed payload.

    `quotes` are rows with the fields of `ODDS_SCHEMA`, ready for `Engine.step` except for `event_id`, which is the
    source's. A suspended price is a quote with `is_active` false, possibly without a price.
    """

    games: Sequence[Game] = ()
    quotes: Sequence[dict[str, Any]] = ()
    complete: Sequence[tuple[str, str | None]] = ()  # (book, source's event id): prices not quoted here are removed
    removed: Sequence[str] = ()  # source's ids of removed prices, the `id` of earlier quotes
    # (book, market name) pairs outside the catalog: served, not used
    unmapped: Counter[tuple[str, str]] = Counter()  # noqa: RUF012  nobody writes to it
    refused: Counter[str] = Counter()  # noqa: RUF012  reasons why parts of it were left out
    moment: datetime | None = None  # when the source created it
    scores: Sequence[ScoreReading] = ()  # game states; `event` is the source's id, `source` is empty
    futures: Sequence[dict[str, Any]] = ()  # rows with the fields of `FUTURES_SCHEMA`; `removed` includes their ids
