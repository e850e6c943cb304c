"""What an engine tells those who record it."""

from collections.abc import Mapping, Sequence

from oddsengine import catalog
from oddsengine.board.state import Batch
from oddsengine.live.key import ViewKey


class Recorder:
    """What an engine tells a recorder; changes of views and constants apply from the next batch on."""

    def batch(self, batch: Batch, suspended: Sequence[ViewKey] = ()) -> None:
        """A batch was applied, and some views were suspended before it; an exception makes the engine undo it."""
        raise NotImplementedError

    def view_resumed(self, view: ViewKey) -> None:
        """A view is active."""

    def view_suspended(self, view: ViewKey) -> None:
        """A view is suspended."""

    def fair_changed(self, table: catalog.FairTable) -> None:
        """The constants of the fair price are others."""

    def guards_changed(self, guards: Mapping[str, float | bool]) -> None:
        """Other guards run from now on."""
