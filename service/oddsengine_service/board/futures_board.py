"""The node's futures: a board that only the writer replaces, and its evaluation.

A board is immutable, so readers take `board` once and use it. After a change, the same job of the writer makes a step
of the engine, so that responses cached by board version see it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oddsengine.futures import Evaluation, FieldsError, FuturesBoard, FuturesField, evaluate, parse_fields
from oddsengine.tables.timestamps import micros
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.settings import Settings, SettingsError

METHOD = "power"
_MOST = 64  # sets of books that are evaluated for one time
_Key = tuple[FuturesBoard | None, int]  # board, time of evaluation


class NodeFutures:
    """The futures of a node; `apply` and `state` may be called only by the writer, the rest from any thread."""

    def __init__(self, fields: Sequence[FuturesField] = (), replication: Replication = ALONE) -> None:
        self._replication = replication
        self.board = FuturesBoard(fields)
        self._judged: tuple[_Key, dict[tuple[frozenset[str] | None, str], Evaluation]] = ((None, -1), {})

    def __len__(self) -> int:
        return len(self.board)

    def apply(
        self, quotes: Sequence[Mapping[str, Any]], now: datetime, *, source: str = "", removed: Collection[str] = ()
    ) -> None:
        """Add and remove prices; all of them or, on an error, none."""
        board = self.board.apply(quotes, now, source=source, removed=removed)
        self._replication.changed("futures", [dict(quote) for quote in quotes], now, source, list(removed))
        self.board = board

    @contextmanager
    def applying(
        self, quotes: Sequence[Mapping[str, Any]], now: datetime, *, source: str, removed: Collection[str]
    ) -> Iterator[list[str]]:
        """Apply a source's prices, unless the body of the with statement fails; yields why prices were rejected."""
        before = self.board
        if quotes or any((source, one) in before.ids for one in removed):
            self.apply(quotes, now, source=source, removed=removed)
        try:
            yield [] if self.board is before else self.board.rejected["reason"].to_list()
        except BaseException:
            if self.board is not before:
                self.board = before
                self._replication.changed("futures", None)  # undo what was published last
            raise

    def dump(self) -> Any:
        return self.board.dump()

    def restore(self, state: Any) -> None:
        self.board = FuturesBoard.restore(state)

    def state(self, fields: Sequence[FuturesField]) -> None:
        self._replication.changed("fields", *fields)
        self.board = self.board.with_fields(fields)

    def judged(
        self, board: FuturesBoard, market: str, books: frozenset[str] | None, now: datetime | None
    ) -> Evaluation:
        """The evaluation of a market at a time, over some books."""
        key = board, micros(now or board.now or datetime.fromtimestamp(0, UTC))
        cache = self._judged  # other threads may replace it
        if cache[0] != key or len(cache[1]) > _MOST * max(len(board.markets), 1):
            cache = self._judged = key, {}
        evaluations = cache[1]
        evaluation = evaluations.get((books, market))
        if evaluation is None:
            evaluation = evaluations[books, market] = evaluate(board.sheets[market], key[1], books, None, METHOD)
        return evaluation


def stated_fields(settings: Settings) -> tuple[FuturesField, ...]:
    """The contestants in the operator's file. Raises `SettingsError` if the file is not valid."""
    name = settings.matching.fields
    if not name:
        return ()
    try:
        return parse_fields(Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, FieldsError) as error:
        raise SettingsError(f"{settings.file}: matching.fields is {name!r}, which is not valid: {error}") from None
