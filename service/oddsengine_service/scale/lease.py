"""The lease of this process."""

import asyncio
import time
from collections.abc import Callable

from oddsengine_service.scale.link import TROUBLE
from oddsengine_service.scale.shard_log import Lease, SharedLog
from oddsengine_service.scale.tasks import Tasks


class LeaseHolder:
    """The lease, without which this process must not write; on the link's loop."""

    def __init__(
        self, board: SharedLog, name: str, lease_s: float, tasks: Tasks, report: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._board, self._name, self._tasks, self._report = board, name, tasks, report
        self.period_s = lease_s / 5.0  # between two renewals, or two tries
        self.lease: Lease | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def take(self) -> Lease | None:
        """Get the lease if it is free, and renew it from then on. Raises an error of `TROUBLE`."""
        if self.lease is None:
            self.lease = await self._board.lease(self._name)
            if self.lease is not None:
                self._renewing = self._tasks.background(self._renew())
        return self.lease

    async def release(self) -> None:
        """Release the lease, if this process has it. Raises an error of `TROUBLE`."""
        lease, self.lease = self.lease, None
        if lease is not None and self._renewing is not None:
            self._renewing.cancel()
            await lease.release()

    async def _renew(self) -> None:
        lease, renewed_at = self.lease, time.monotonic()
        assert lease is not None
        while True:
            await asyncio.sleep(self.period_s)
            try:
                async with asyncio.timeout(2.0 * self.period_s):
                    if not await lease.renew():
                        self.lease = None
                        self._tasks.restart("another writer holds the lease")
                        return
                renewed_at = time.monotonic()
            except TROUBLE:
                # While no server responds, nobody can take it, and the log itself rejects late writers.
                self._report(f"not renewed for {time.monotonic() - renewed_at:.0f} s")
            else:
                self._report("")
