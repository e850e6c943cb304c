"""The boards of a node that readers see, and what is kept of each for them."""

from collections.abc import Mapping

from oddsengine import query
from oddsengine.live.delayed import DelayedBoard
from oddsengine.live.engine import Engine
from oddsengine.query import StatsCache
from oddsengine_service.board.ended import EndedRows
from oddsengine_service.board.views import Board, Views
from oddsengine_service.tiers import TIERS, Tier
from oddsengine_service.wire.encoded_columns import RowEncoding

DELAYS = sorted({tier.delay for tier in TIERS.values() if tier.delay})


class Boards:
    """The engine's board, and the delayed ones of some tiers; readers use them from any thread.

    `method` is that of views without a reference, and `row_encodings` those of opportunities, by kind.
    """

    def __init__(self, engine: Engine, method: str, row_encodings: Mapping[str, RowEncoding]) -> None:
        self._engine, self.method, self.encodings = engine, method, row_encodings
        self.late: dict[int, DelayedBoard] = {}
        self._indexes: dict[Board, query.Index] = {}
        self.ended = EndedRows()
        self.views, self.stats = Views(method=method, ended=self.ended), StatsCache()

    def delay(self) -> None:
        """Create the delayed boards."""
        for delay in DELAYS:
            self.late[delay] = self._engine.delayed(delay)

    def of(self, tier: Tier) -> Board:
        """The board of a tier."""
        return self.late[tier.delay] if tier.delay else self._engine

    def index(self, board: Board) -> query.Index:
        """The index of a board; created on first use."""
        return self._indexes.get(board) or self._indexes.setdefault(board, query.Index(board))
