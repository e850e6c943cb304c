"""The node's futures: a board that only the writer replaces, what was judged of it, and the demo's seasons.

Readers take `board` once and hold on to it: a board never changes. Whoever applies something makes a step of the engine
afterwards, in the same job of the writer, so that answers which hang on the engine's update see it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from oddsengine.engine import micros
from oddsengine.futures import Evaluation, FieldsError, FuturesBoard, FuturesField, evaluate, parse_fields
from oddsengine.simulate.futures import FuturesSeason
from oddsengine_service.settings import Settings, SettingsError

METHOD = "power"
EVERY_S = 10.0  # between two looks of the demo's feeds
LEAGUES = ("nba", "nfl")  # of the demo
_MOST = 64  # sets of books that are judged for one moment
_Key = tuple[FuturesBoard | None, int]  # time of judging


class Futures:
    """All of it; `apply` and `state` are for the writer, everything else for any thread."""

    def __init__(self, fields: Sequence[FuturesField] = ()) -> None:
        self.board = FuturesBoard(fields)
        self.tell: Callable[..., None] = lambda *_: None  # hears what is taken in, where a log is written
        self._judged: tuple[_Key, dict[tuple[frozenset[str] | None, str], Evaluation]] = ((None, -1), {})

    def __len__(self) -> int:
        return len(self.board)

    def apply(
        self, quotes: Sequence[Mapping[str, Any]], now: datetime, *, source: str = "", removed: Collection[str] = ()
    ) -> None:
        """Take prices, and take prices back; all of it or, with an error, nothing."""
        board = self.board.apply(quotes, now, source=source, removed=removed)
        self.tell("futures", [dict(quote) for quote in quotes], now, source, list(removed))
        self.board = board

    @contextmanager
    def taking(
        self, quotes: Sequence[Mapping[str, Any]], now: datetime, *, source: str, removed: Collection[str]
    ) -> Iterator[list[str]]:
        """Take what a source brings, unless what is done meanwhile fails; gives why prices were refused."""
        before = self.board
        if quotes or any((source, one) in before.ids for one in removed):
            self.apply(quotes, now, source=source, removed=removed)
        try:
            yield [] if self.board is before else self.board.rejected["reason"].to_list()
        except BaseException:
            if self.board is not before:
                self.board = before
                self.tell("futures", None)  # the last ones count no more
            raise

    def state(self, fields: Sequence[FuturesField]) -> None:
        """Say who takes part, instead of what was said before."""
        self.tell("fields", *fields)
        self.board = self.board.with_fields(fields)

    def judged(
        self, board: FuturesBoard, market: str, books: frozenset[str] | None, now: datetime | None
    ) -> Evaluation:
        """What there is to say of a market at a moment, over some books."""
        key = board, micros(now or board.now or datetime.fromtimestamp(0, UTC))
        held = self._judged  # other threads put theirs in its place
        if held[0] != key or len(held[1]) > _MOST * max(len(board.markets), 1):
            held = self._judged = key, {}
        known = held[1]
        found = known.get((books, market))
        if found is None:
            found = known[books, market] = evaluate(board.sheets[market], key[1], books, None, METHOD)
        return found


def stated_fields(settings: Settings) -> tuple[FuturesField, ...]:
    """What the operator's file says of who takes part.

    Raises
    ------
    SettingsError
        If it does not read.
    """
    name = settings.matching.fields
    if not name:
        return ()
    try:
        return parse_fields(Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, FieldsError) as error:
        raise SettingsError(f"{settings.file}: matching.fields is {name!r}, which is not valid: {error}") from None


@lru_cache(maxsize=8)
def _season(seed: int, league: str, year: int) -> FuturesSeason:
    return FuturesSeason(seed, league, year)


def demonstrate(futures: Futures, now: datetime, *, seed: int = 7) -> None:
    """Put the demo's seasons on the board as they are at a moment, if its feeds look then; only in the writer."""
    if futures.board.now is not None and (now - futures.board.now).total_seconds() < EVERY_S:
        return
    seasons = [_season(seed, league, now.year if now.month > 6 else now.year - 1) for league in LEAGUES]
    if not futures.board.fields:
        futures.state([FuturesField(**dict(field)) for season in seasons for field in season.fields()])
    futures.apply([row for season in seasons for row in season.quotes(now)], now, source="demo")
